//! `list`: runs, newest first, and which of them are looked for; `list GROUP`: the runs of a group.

use std::collections::{BTreeSet, HashSet};

use bench_proto::{
    ids::random_end,
    nearest::{did_you_mean, nearest},
    summary::{LABEL_SIMULATED_ANSWERER, LABEL_SIMULATED_JUDGE, Verdict},
};
use bench_store::{RunFilter, RunRow, Store};

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
    runs::{
        lines::{GroupSizes, Line},
        listed::Listed,
    },
    standing::group::{find_runs, group_of_equals, member},
};

/// Prints the newest runs of the store that are looked for, one a line, and each group as one; or the runs of one group.
pub(super) async fn run(app: &App, args: &ListArgs) -> CliResult {
    if args.tag.iter().any(|tag| tag.trim().is_empty()) {
        return Err(CliError::usage("no tag is named for --tag (an empty word, as of a variable that is not set)"));
    }
    let store = app.open_store().await?;
    let (runs, sizes) = candidates(store.as_ref(), args).await?;
    // all runs of a group are shown, unless less is asked for
    let limit = args.limit.or_else(|| args.run.is_none().then_some(NEWEST)).map(|limit| limit as usize);
    let (mut listed, mut lines, mut groups) = (Vec::new(), 0, HashSet::new());
    let mut are_more = false;
    for run in runs {
        let group = group_of_equals(&run).filter(|_| args.run.is_none()).map(|group| group.group_no);
        let is_new = group.is_none_or(|group| !groups.contains(&group));
        // older runs of a group that is shown may still come
        if is_new && limit.is_some_and(|limit| lines >= limit) {
            are_more = true;
            continue;
        }
        let run = Listed::of_run(app, store.as_ref(), run).await?;
        if args.verdict.is_some_and(|wanted| run.score.verdict != Some(wanted.into())) {
            continue;
        }
        lines += usize::from(is_new);
        groups.extend(group);
        listed.push(run);
    }
    if args.json {
        out::json(&listed.iter().map(Listed::as_json).collect::<Vec<_>>());
    } else if listed.is_empty() {
        let meant = probably_meant(store.as_ref(), args).await?;
        out::note(&nothing(args.chooses() || args.run.is_some(), &store.describe(), meant.as_deref()));
    } else {
        out::result(&table_of(&lines_of(args, &listed, &sizes), out::view().width));
        if are_more && args.limit.is_none() {
            out::note(&format!("the newest {NEWEST} are shown: --limit 100 shows more"));
        }
    }
    Ok(Exit::Done)
}

/// Lines that are shown where nobody says how many.
const NEWEST: u32 = 20;

/// What stands on each line: a run, or all runs of a group, which is opened by its name.
fn lines_of<'a>(args: &ListArgs, listed: &'a [Listed], sizes: &GroupSizes) -> Vec<Line<'a>> {
    match args.run {
        Some(_) => Line::of_runs(listed),
        None => Line::of_groups(listed, sizes),
    }
}

/// What is said where nothing is listed: what is looked for and not found may be there otherwise.
fn nothing(chooses: bool, store: &str, meant: Option<&str>) -> String {
    let meant = meant.map_or_else(|| "; ".to_owned(), |meant| format!(", {meant} "));
    match chooses {
        true => format!("no such runs in {store}{meant}`bench-coord list` shows all"),
        false => format!("no runs in {store}; `bench-coord submit` starts one"),
    }
}

/// The dataset, the system or the tag that was probably meant, where no run has the one that is named.
async fn probably_meant(store: &dyn Store, args: &ListArgs) -> Result<Option<String>, CliError> {
    if args.dataset.is_none() && args.system.is_none() && args.tag.is_empty() {
        return Ok(None);
    }
    let runs = store.list_runs(&RunFilter { controls: true, ..RunFilter::default() }).await?;
    let looked_for: [(&[String], BTreeSet<&str>); 3] = [
        (args.dataset.as_slice(), runs.iter().map(|run| run.spec.dataset.name.as_str()).collect()),
        (args.system.as_slice(), runs.iter().map(|run| run.spec.system.name.as_str()).collect()),
        (args.tag.as_slice(), runs.iter().flat_map(|run| &run.tags).map(String::as_str).collect()),
    ];
    Ok(looked_for.iter().find_map(|(names, known)| {
        let unknown = names.iter().find(|name| !known.contains(name.as_str()))?;
        did_you_mean(&nearest(unknown, known.iter().copied()))
    }))
}

/// Runs that the flags ask for as far as their rows tell, newest first; as many as are shown where nothing else decides. With them
/// how many runs each group has.
async fn candidates(store: &dyn Store, args: &ListArgs) -> Result<(Vec<RunRow>, GroupSizes), CliError> {
    let mut runs = match &args.run {
        Some(named) => of_group(store, named, args.controls).await?,
        None => newest(store, args).await?,
    };
    let sizes = GroupSizes::of_runs(&runs);
    runs.retain(|run| args.fits(run));
    Ok((runs, sizes))
}

/// The newest runs of the store: all where it is not known yet how many lines they make.
async fn newest(store: &dyn Store, args: &ListArgs) -> Result<Vec<RunRow>, CliError> {
    // one more says that there are more
    let limit = (!args.chooses()).then_some(args.limit.unwrap_or(NEWEST).saturating_add(1));
    let filter = RunFilter { controls: args.controls, limit, ..RunFilter::default() };
    let runs = store.list_runs(&filter).await?;
    if limit.is_some() && runs.iter().any(member) {
        // a group is one line, however many runs it has
        return Ok(store.list_runs(&RunFilter { limit: None, ..filter }).await?);
    }
    Ok(runs)
}

/// The runs of a group in the order of their numbers, or a run alone; with their controls where these are asked for.
async fn of_group(store: &dyn Store, named: &str, controls: bool) -> Result<Vec<RunRow>, CliError> {
    let mut runs = Vec::new();
    for run in find_runs(store, named).await? {
        let control_of = Some(run.run_no);
        runs.push(run);
        if controls {
            runs.extend(store.list_runs(&RunFilter { control_of, controls, ..RunFilter::default() }).await?);
        }
    }
    Ok(runs)
}

/// Narrower terminals show an id from its random end on, which is accepted in its place.
const WIDE: usize = 100;

fn is_narrow(width: Option<usize>) -> bool {
    width.is_some_and(|width| width < WIDE)
}

/// An id as it is shown.
fn shown_id(id: &str, width: Option<usize>) -> &str {
    random_end(id).filter(|_| is_narrow(width)).unwrap_or(id)
}

/// What a run was made from as it is shown: `answer of` and the id. A narrow terminal has room for what kind of run that makes it.
fn shown_source(source: &str, width: Option<usize>) -> &str {
    match source.contains(" of ") && is_narrow(width) {
        true => "fork",
        false => source,
    }
}

/// Marks of a result as they are shown. A narrow terminal has room for the one that must be seen, that of a rehearsal; all of them are
/// in wider ones, in `--json` and in reports.
fn shown_labels(labels: &[String], width: Option<usize>) -> String {
    match is_narrow(width) {
        true if labels
            .iter()
            .any(|label| [LABEL_SIMULATED_ANSWERER, LABEL_SIMULATED_JUDGE].contains(&label.as_str())) =>
        {
            "simulated".to_owned()
        }
        true => String::new(),
        false => labels.join(", "),
    }
}

/// A score as it is shown: narrower terminals show the figure alone, and whose counting it is by where that is not ours.
fn shown_score(score: &str, counted_as: Option<&str>, width: Option<usize>) -> String {
    let Some(figure) = score.split(' ').next().filter(|_| is_narrow(width)) else { return score.to_owned() };
    match counted_as.filter(|_| figure != NO_SCORE) {
        Some(name) => format!("{figure} as {name}"),
        None => figure.to_owned(),
    }
}

/// What stands where there is no score.
const NO_SCORE: &str = "-";

/// The id of a line, and how many runs stand behind it.
fn named(line: &Line<'_>, width: Option<usize>) -> String {
    let id = shown_id(line.id(), width);
    match line.count() {
        None => id.to_owned(),
        Some(_) if is_narrow(width) => format!("{id} ({})", line.runs.len()),
        Some(count) => format!("{id} ({count})"),
    }
}

/// By whose counting the score of a line is, where that is not ours; repeats have one.
fn counted_as<'a>(line: &Line<'a>) -> Option<&'a str> {
    line.runs.first()?.score.counted_as.as_deref()
}

/// What a line has cost, as far as it is known.
fn spent(line: &Line<'_>) -> String {
    format!("{}{}", dollars(line.usd()), if line.usd_incomplete() { " + unknown" } else { "" })
}

/// The score of a line: that of its run, or the mean of repeats.
fn scored(line: &Line<'_>) -> String {
    match (line.group, line.runs.first()) {
        (None, Some(run)) => run.score.shown(),
        _ => line.mean().map_or_else(
            || NO_SCORE.to_owned(),
            |(mean, n)| {
                let counted = counted_as(line).map(|name| format!(", counted as {name}")).unwrap_or_default();
                format!("{mean:.3} mean of {n}{counted}")
            },
        ),
    }
}

impl ListArgs {
    /// Whether more than the newest are looked for.
    fn chooses(&self) -> bool {
        let Self { run: _, limit: _, controls: _, json: _, dataset, system, tag, since, verdict } = self;
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

/// A row for each line, for a terminal of this width.
fn table_of(lines: &[Line<'_>], width: Option<usize>) -> String {
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
        "labels",
    ])
    .of_short_texts()
    .alike(&["status", "dataset", "answerer", "system", "judge", "labels"])
    .sparing(&[
        "created",
        "questions",
        "answerer",
        "dataset",
        "judge",
        "system",
        "cost",
        "labels",
        "source",
        "name",
    ]);
    for line in lines {
        let Some(each) = line.runs.first() else { continue };
        let ended: i64 = line.runs.iter().map(|each| each.run.counters.ended()).sum();
        let questions: u64 = line.runs.iter().map(|each| each.run.sample_size()).sum();
        table.add_row([
            named(line, width),
            line.status(),
            line.verdict().map_or("-", Verdict::name).to_owned(),
            local(each.run.created_ms),
            line.all_or_count("samples", |each| {
                format!("{}/{}", each.run.spec.dataset.name, each.run.spec.sample.preset)
            }),
            line.all_or_count("systems", |each| each.run.spec.system.name.clone()),
            line.all_or_count("answerers", |each| each.run.spec.who_answers()),
            line.all_or_count("judges", |each| {
                let judges = each.judges();
                if judges.is_empty() { "-".to_owned() } else { judges.join(", ") }
            }),
            format!("{ended}/{questions}"),
            shown_score(&scored(line), counted_as(line), width),
            spent(line),
            line.name().unwrap_or_default().to_owned(),
            each.source.as_deref().map(|source| shown_source(source, width)).unwrap_or_default().to_owned(),
            shown_labels(&line.of_all(Listed::labels), width),
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
        assert_eq!(shown_id(&format!("{drawn}-c2-r1"), Some(80)), "0123456789ab-c2-r1");
        assert_eq!(
            [shown_id(drawn, Some(100)), shown_id(drawn, None)],
            [drawn; 2],
            "whoever reads a pipe gets all of it"
        );
        let source = format!("answer of {drawn}");
        assert_eq!([Some(80), None].map(|width| shown_source(&source, width)), ["fork", source.as_str()]);
        assert_eq!([Some(80), None].map(|width| shown_source("import", width)), ["import"; 2]);
    }

    #[test]
    fn a_rehearsal_is_marked_in_every_width() {
        let labels = [LABEL_SIMULATED_ANSWERER, LABEL_SIMULATED_JUDGE].map(str::to_owned);
        let shown = [Some(80), None].map(|width| shown_labels(&labels, width));
        assert_eq!(shown, ["simulated", "simulated answerer, simulated judge"]);
        let demo = ["demo answerer".to_owned()];
        assert_eq!([Some(80), None].map(|width| shown_labels(&demo, width)), ["", "demo answerer"]);
    }

    #[test]
    fn whose_counting_a_score_is_by_is_said_in_every_width() {
        let (theirs, name) = ("0.583 counted as mem0-2025", Some("mem0-2025"));
        assert_eq!(shown_score(theirs, name, Some(80)), "0.583 as mem0-2025");
        assert_eq!([shown_score(theirs, name, None), shown_score("-", name, Some(80))], [theirs, "-"]);
        let ours = "0.583 mean";
        assert_eq!([shown_score(ours, None, Some(80)), shown_score(ours, None, Some(100))], ["0.583", ours]);
    }

    #[test]
    fn runs_that_are_not_found_are_no_reason_to_start_one() {
        assert_eq!(nothing(true, "s", None), "no such runs in s; `bench-coord list` shows all");
        let meant = nothing(true, "s", Some("did you mean 'locomo'?"));
        assert_eq!(meant, "no such runs in s, did you mean 'locomo'? `bench-coord list` shows all");
        assert_eq!(nothing(false, "s", None), "no runs in s; `bench-coord submit` starts one");
    }
}
