//! `list`: all runs, newest first.

use bench_store::{RunFilter, RunRow};
use serde_json::json;

use crate::{
    app::App,
    cli::ListArgs,
    exit::{CliResult, Exit},
    out,
    runs::Standing,
    tables::{render, table},
};

/// Runs the verb.
pub(super) async fn run(app: &App, args: &ListArgs) -> CliResult {
    let store = app.open_store().await?;
    let filter = RunFilter { controls: args.controls, limit: Some(args.limit), ..RunFilter::default() };
    let runs = store.list_runs(&filter).await?;
    let file = app.store_file();
    let standing = |run: &RunRow| Standing::of(run, file.as_deref());
    if args.json {
        let rows: Vec<_> = runs
            .iter()
            .map(|run| {
                json!({
                    "id": run.run_id, "name": run.name, "tags": run.tags, "user": run.user,
                    "status": standing(run).word(), "created_ms": run.created_ms,
                    "dataset": run.spec.dataset.name, "preset": run.spec.sample.preset, "questions": run.spec.sample.n,
                    "system": run.spec.system.name, "answerer": run.spec.answerer.display(),
                    "ended": run.counters.ended(), "score": mean_score(run), "usd": run.counters.spent.usd(),
                })
            })
            .collect();
        out::json(&rows);
        return Ok(Exit::Done);
    }
    if runs.is_empty() {
        out::note(&format!("no runs in {}; `bench-coord submit` starts one", store.describe()));
        return Ok(Exit::Done);
    }
    let mut table = table(["run", "status", "created", "dataset", "system", "answerer", "questions", "score", "name"]);
    for run in &runs {
        table.add_row([
            run.run_id.to_string(),
            standing(run).word().to_owned(),
            crate::times::local(run.created_ms),
            format!("{}/{}", run.spec.dataset.name, run.spec.sample.preset),
            run.spec.system.name.clone(),
            run.spec.answerer.display(),
            format!("{}/{}", run.counters.ended(), run.spec.sample.n),
            mean_score(run).map_or_else(|| "-".to_owned(), |s| format!("{s:.3}")),
            run.name.clone().unwrap_or_default(),
        ]);
    }
    out::result(&render(&table));
    Ok(Exit::Done)
}

fn mean_score(run: &RunRow) -> Option<f64> {
    let with_score = run.counters.scored + run.counters.abstained;
    (with_score > 0).then(|| run.counters.headline_sum / with_score as f64)
}
