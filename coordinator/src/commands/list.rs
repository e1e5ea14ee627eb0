//! `list`: runs, newest first, and which of them are looked for.

use std::collections::BTreeSet;

use bench_proto::{ids::random_end, summary::Verdict};
use bench_store::{RunFilter, RunRow, Runs};

use crate::{
    app::App,
    cli::{ListArgs, ListedVerdict},
    exit::{CliError, CliResult, Exit},
    out::{
        self,
        amounts::dollars,
        tables::{render, table},
        times::local,
    },
    runs::listed::Listed,
    standing::group::member,
};

/// Prints the newest runs of the store that are looked for, one a line.
pub(super) async fn run(app: &App, args: &ListArgs) -> CliResult {
    let store = app.open_store().await?;
    let mut listed = Vec::new();
    for run in candidates(store.as_ref(), args).await? {
        let run = Listed::of_run(app, store.as_ref(), run).await?;
        if args.verdict.is_some_and(|wanted| run.score.verdict != Some(wanted.into())) {
            continue;
        }
        listed.push(run);
        if by_line(&listed).len() > args.limit as usize {
            listed.pop();
            break;
        }
    }
    if args.json {
        out::json(&listed.iter().map(Listed::as_json).collect::<Vec<_>>());
    } else if listed.is_empty() {
        out::note(&nothing(args.chooses(), &store.describe()));
    } else {
        out::result(&lines(&by_line(&listed), out::view().width));
    }
    Ok(Exit::Done)
}

/// What is said where nothing is listed: what is looked for and not found may be there otherwise.
fn nothing(chooses: bool, store: &str) -> String {
    match chooses {
        true => format!("no such runs in {store}; `bench-coord list` shows all"),
        false => format!("no runs in {store}; `bench-coord submit` starts one"),
    }
}

/// Runs that the flags ask for as far as their rows tell, newest first; as many as are shown where nothing else decides.
async fn candidates(store: &dyn Runs, args: &ListArgs) -> Result<Vec<RunRow>, CliError> {
    let limit = (!args.chooses()).then_some(args.limit);
    let filter = RunFilter { controls: args.controls, limit, ..RunFilter::default() };
    let mut runs = store.list_runs(&filter).await?;
    if limit.is_some() && runs.iter().any(member) {
        // a group of repeats is one line, however many runs it has
        runs = store.list_runs(&RunFilter { limit: None, ..filter }).await?;
    }
    runs.retain(|run| args.fits(run));
    Ok(runs)
}

/// What stands on each line: a run, or all repeats of a group, where its newest stands. `report GROUP` opens it.
fn by_line(listed: &[Listed]) -> Vec<Vec<&Listed>> {
    let group =
        |each: &Listed| member(&each.run).then_some(each.run.group.as_ref()).flatten().map(|group| group.group_no);
    let mut lines: Vec<Vec<&Listed>> = Vec::new();
    for each in listed {
        let own = group(each);
        match lines.iter_mut().find(|line| own.is_some() && line.first().is_some_and(|first| group(first) == own)) {
            Some(line) => line.push(each),
            None => lines.push(vec![each]),
        }
    }
    lines
}

/// Narrower terminals show the random end of an id, which is accepted in its place.
const WIDE: usize = 100;

fn is_narrow(width: Option<usize>) -> bool {
    width.is_some_and(|width| width < WIDE)
}

/// An id as it is shown.
fn shown_id(id: &str, width: Option<usize>) -> &str {
    random_end(id).filter(|_| is_narrow(width)).unwrap_or(id)
}

/// A score as it is shown: narrower terminals show the figure alone.
fn shown_score(score: &str, width: Option<usize>) -> &str {
    let figure = score.split(' ').next().filter(|_| is_narrow(width));
    figure.unwrap_or(score)
}

/// What the repeats of a group have in one line: their id without its number, how they stand, the mean of their scores.
struct Together {
    id: String,
    status: String,
    score: String,
    name: String,
}

impl Together {
    fn of(line: &[&Listed], width: Option<usize>) -> Option<Self> {
        let first = line.first()?;
        let run = &first.run;
        let Some(group) = member(run).then_some(run.group.as_ref()).flatten() else {
            let name = run.name.clone().unwrap_or_default();
            return Some(Self {
                id: shown_id(&run.run_id.0, width).to_owned(),
                status: first.status.to_owned(),
                score: first.score.shown(),
                name,
            });
        };
        let ended = line.iter().filter(|each| each.status == "finished").count();
        let open = line.iter().map(|each| each.status).find(|status| *status != "finished");
        let scores: Vec<f64> = line.iter().filter_map(|each| each.score.value).collect();
        let mean = scores.iter().sum::<f64>() / scores.len().max(1) as f64;
        let name = run.name.as_deref().and_then(|name| name.rsplit_once('/')).map(|(name, _)| name);
        let name = name.map(|name| match run.cell() {
            Some(_) => name.rsplit_once('/').map_or(name, |(name, _)| name),
            None => name,
        });
        Some(Self {
            id: {
                let (id, n) = (shown_id(&group.id, width), line.len());
                match run.cell() {
                    _ if is_narrow(width) => format!("{id} ({n})"),
                    Some(_) => format!("{id} ({n} runs)"),
                    None => format!("{id} ({n} repeats)"),
                }
            },
            status: open.map_or_else(|| "finished".to_owned(), |open| format!("{open}, {ended} finished")),
            score: match scores.len() {
                // cells differ in what is measured: their mean says nothing
                _ if run.cell().is_some() => "-".to_owned(),
                0 => "-".to_owned(),
                n => format!("{mean:.3} mean of {n}"),
            },
            name: name.unwrap_or_default().to_owned(),
        })
    }
}

impl ListArgs {
    /// Whether more than the newest are looked for.
    fn chooses(&self) -> bool {
        let Self { limit: _, controls: _, json: _, dataset, system, tag, since, verdict } = self;
        dataset.is_some() || system.is_some() || !tag.is_empty() || since.is_some() || verdict.is_some()
    }

    fn fits(&self, run: &RunRow) -> bool {
        let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
        is(&self.dataset, &run.spec.dataset.name)
            && is(&self.system, &run.spec.system.name)
            && self.tag.iter().all(|tag| run.tags.contains(tag))
            && self.since.is_none_or(|since| run.created_ms >= since)
    }
}

impl From<ListedVerdict> for Verdict {
    fn from(listed: ListedVerdict) -> Self {
        match listed {
            ListedVerdict::Valid => Self::Valid,
            ListedVerdict::Invalid => Self::Invalid,
        }
    }
}

/// What the runs of a line have in common, or how many different ones there are: `3 systems`.
fn all_or_count(line: &[&Listed], what: &str, of: impl Fn(&Listed) -> String) -> String {
    let different: BTreeSet<String> = line.iter().map(|each| of(each)).collect();
    match different.len() {
        0 | 1 => different.into_iter().next().unwrap_or_default(),
        n => format!("{n} {what}"),
    }
}

/// A line for each run or group, for a terminal of this width.
fn lines(listed: &[Vec<&Listed>], width: Option<usize>) -> String {
    let mut table = table([
        "run",
        "status",
        "verdict",
        "created",
        "dataset",
        "system",
        "answerer",
        "judge",
        "questions",
        "score",
        "cost",
        "name",
        "source",
    ])
    .sparing(&["source", "answerer", "judge", "created", "questions", "cost"]);
    for line in listed {
        let (Some(each), Some(together)) = (line.first(), Together::of(line, width)) else { continue };
        let run = &each.run;
        let verdicts = line.iter().filter_map(|each| each.score.verdict);
        // one that is not valid is what must be seen
        let verdict = verdicts.max_by_key(|verdict| *verdict != Verdict::Valid);
        let ended: i64 = line.iter().map(|each| each.run.counters.ended()).sum();
        let questions: u64 = line.iter().map(|each| each.run.spec.sample.n).sum();
        let spent: f64 = line.iter().map(|each| each.run.counters.spent.usd()).sum();
        table.add_row([
            together.id,
            together.status,
            verdict.map_or("-", Verdict::name).to_owned(),
            local(run.created_ms),
            all_or_count(line, "samples", |each| {
                format!("{}/{}", each.run.spec.dataset.name, each.run.spec.sample.preset)
            }),
            all_or_count(line, "systems", |each| each.run.spec.system.name.clone()),
            all_or_count(line, "answerers", |each| each.run.spec.who_answers()),
            all_or_count(line, "judges", |each| {
                let judges = each.judges();
                if judges.is_empty() { "-".to_owned() } else { judges.join(", ") }
            }),
            format!("{ended}/{questions}"),
            shown_score(&together.score, width).to_owned(),
            dollars(spent),
            together.name,
            each.source.clone().unwrap_or_default(),
        ]);
    }
    render(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_were_drawn_are_short_where_there_is_no_room() {
        let drawn = "0193a1b2-aaaa-7bbb-8ccc-0123456789ab";
        assert_eq!([shown_id(drawn, Some(80)), shown_id("before", Some(80))], ["0123456789ab", "before"]);
        assert_eq!(
            [shown_id(drawn, Some(100)), shown_id(drawn, None)],
            [drawn; 2],
            "whoever reads a pipe gets all of it"
        );
    }

    #[test]
    fn runs_that_are_not_found_are_no_reason_to_start_one() {
        assert_eq!(nothing(true, "s"), "no such runs in s; `bench-coord list` shows all");
        assert_eq!(nothing(false, "s"), "no runs in s; `bench-coord submit` starts one");
    }
}
