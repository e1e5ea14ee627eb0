//! `list`: runs, newest first, and which of them are looked for.

use bench_proto::summary::Verdict;
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
        if listed.len() >= args.limit as usize {
            break;
        }
    }
    if args.json {
        out::json(&listed.iter().map(Listed::as_json).collect::<Vec<_>>());
    } else if listed.is_empty() {
        let which = if args.chooses() { "no such runs" } else { "no runs" };
        out::note(&format!("{which} in {}; `bench-coord submit` starts one", store.describe()));
    } else {
        out::result(&lines(&listed));
    }
    Ok(Exit::Done)
}

/// Runs that the flags ask for as far as their rows tell, newest first; as many as are shown where nothing else decides.
async fn candidates(store: &dyn Runs, args: &ListArgs) -> Result<Vec<RunRow>, CliError> {
    let limit = (!args.chooses()).then_some(args.limit);
    let filter = RunFilter { controls: args.controls, limit, ..RunFilter::default() };
    let mut runs = store.list_runs(&filter).await?;
    runs.retain(|run| args.fits(run));
    Ok(runs)
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

/// A line for each run.
fn lines(listed: &[Listed]) -> String {
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
    .sparing(&["source", "answerer", "judge", "created", "questions", "cost", "status"]);
    for each in listed {
        let run = &each.run;
        let judges = each.judges();
        table.add_row([
            run.run_id.to_string(),
            each.status.to_owned(),
            each.score.verdict.map_or("-", Verdict::name).to_owned(),
            local(run.created_ms),
            format!("{}/{}", run.spec.dataset.name, run.spec.sample.preset),
            run.spec.system.name.clone(),
            run.spec.who_answers(),
            if judges.is_empty() { "-".to_owned() } else { judges.join(", ") },
            format!("{}/{}", run.counters.ended(), run.spec.sample.n),
            each.score.shown(),
            dollars(run.counters.spent.usd()),
            run.name.clone().unwrap_or_default(),
            each.source.clone().unwrap_or_default(),
        ]);
    }
    render(&table)
}
