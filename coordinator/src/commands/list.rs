//! `list`: all runs, newest first.

use bench_proto::summary::{Estimator, Headline, Interval};
use bench_store::{RunFilter, RunRow, RunState, Store};
use serde_json::json;

use crate::{
    app::App,
    cli::ListArgs,
    exit::{CliError, CliResult, Exit},
    out::{
        self,
        tables::{render, table},
    },
    standing::Standing,
};

/// Prints the newest runs of the store, one a line.
pub(super) async fn run(app: &App, args: &ListArgs) -> CliResult {
    let store = app.open_store().await?;
    let filter = RunFilter { controls: args.controls, limit: Some(args.limit), ..RunFilter::default() };
    let runs = store.list_runs(&filter).await?;
    let file = app.store_file();
    let standing = |run: &RunRow| Standing::of_run(run, file.as_deref());
    let mut scores = Vec::with_capacity(runs.len());
    for run in &runs {
        scores.push(score(store.as_ref(), run).await?);
    }
    if args.json {
        let rows: Vec<_> = runs
            .iter()
            .zip(&scores)
            .map(|(run, score)| {
                json!({
                    "id": run.run_id, "name": run.name, "tags": run.tags, "user": run.user,
                    "status": standing(run).word(), "created_ms": run.created_ms,
                    "dataset": run.spec.dataset.name, "preset": run.spec.sample.preset, "questions": run.spec.sample.n,
                    "system": run.spec.system.name, "answerer": run.spec.answerer.display(),
                    "ended": run.counters.ended(), "score": score.value, "estimator": score.estimator,
                    "metric": score.metric, "ci95": score.ci95, "usd": run.counters.spent.usd(),
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
    for (run, score) in runs.iter().zip(&scores) {
        table.add_row([
            run.run_id.to_string(),
            standing(run).word().to_owned(),
            crate::out::times::local(run.created_ms),
            format!("{}/{}", run.spec.dataset.name, run.spec.sample.preset),
            run.spec.system.name.clone(),
            run.spec.answerer.display(),
            format!("{}/{}", run.counters.ended(), run.spec.sample.n),
            score.shown(),
            run.name.clone().unwrap_or_default(),
        ]);
    }
    out::result(&render(&table));
    Ok(Exit::Done)
}

/// A run's figure: the report's headline, or the plain mean of what has ended where there is no report yet.
struct Score {
    value: Option<f64>,
    estimator: &'static str,
    metric: String,
    ci95: Option<Interval>,
}

impl Score {
    fn shown(&self) -> String {
        self.value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3} {}", self.estimator))
    }
}

/// The part of a stored summary that is shown.
#[derive(serde::Deserialize)]
struct Stored {
    headline: Headline,
}

async fn score(store: &dyn Store, run: &RunRow) -> Result<Score, CliError> {
    let stored = match run.state {
        RunState::Finished => store.summary(run.run_no).await?,
        _ => None,
    };
    if let Some(Stored { headline }) = stored.and_then(|text| serde_json::from_str(&text).ok()) {
        let estimator = headline.estimator.name();
        return Ok(Score { value: headline.value, estimator, metric: headline.metric, ci95: headline.ci95 });
    }
    let with_score = run.counters.scored + run.counters.abstained;
    let value = (with_score > 0).then(|| run.counters.headline_sum / with_score as f64);
    Ok(Score { value, estimator: Estimator::Mean.name(), metric: run.spec.headline_metric(), ci95: None })
}
