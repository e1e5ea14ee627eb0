//! The one figure by which lists, `status` and progress show a run.

use bench_proto::{
    counting::CountingSummary,
    summary::{Estimator, Headline, Interval, UsageSummary, Verdict},
};
use bench_store::{RunRow, RunState, Runs};
use serde::Deserialize;
use serde_json::Value;

use crate::exit::CliError;

/// A run's figure: the report's headline, or the plain mean of what has ended where there is no report yet.
pub(crate) struct Score {
    /// The figure; none where no question has one.
    pub value: Option<f64>,
    /// How it is made of the questions' scores.
    pub estimator: &'static str,
    /// What it measures.
    pub metric: String,
    /// The headline's interval.
    pub ci95: Option<Interval>,
    /// Whose counting the figure is by, where it is not ours.
    pub counted_as: Option<String>,
    /// Whether it may be used; none where there is no report yet.
    pub verdict: Option<Verdict>,
    /// Digest of the result; none where there is no report yet.
    pub result_digest: Option<String>,
    /// Dollars of its report: all that is known to be paid.
    pub usd: Option<f64>,
    /// By its report nobody knows all that its memory system has spent.
    pub usd_incomplete: bool,
}

impl Score {
    /// As a table shows it.
    #[must_use]
    pub(crate) fn shown(&self) -> String {
        let how =
            self.counted_as.as_ref().map_or_else(|| self.estimator.to_owned(), |name| format!("counted as {name}"));
        self.value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3} {how}"))
    }

    /// What it measures, and by whose counting where that is not ours.
    #[must_use]
    pub(crate) fn counted(&self) -> String {
        match &self.counted_as {
            Some(name) => format!("{} as {name}", self.metric),
            None => self.metric.clone(),
        }
    }
}

/// The part of a stored summary that is shown.
#[derive(serde::Deserialize)]
struct Stored {
    headline: Headline,
    #[serde(default)]
    counting: Option<CountingSummary>,
    run: StoredRun,
    #[serde(default)]
    result_digest: Option<String>,
    #[serde(default)]
    usage: Value,
}

/// Of the run's own part.
#[derive(serde::Deserialize)]
struct StoredRun {
    verdict: Verdict,
}

/// A run's figure, without aggregating anything.
///
/// # Errors
/// What the store meets.
pub(crate) async fn score_of(store: &dyn Runs, run: &RunRow) -> Result<Score, CliError> {
    let stored = match run.state {
        RunState::Finished => store.summary(run.run_no).await?,
        _ => None,
    };
    let counted_as = run.spec.counting.as_ref().map(|counting| counting.name.clone());
    if let Some(stored) = stored.and_then(|text| serde_json::from_str::<Stored>(&text).ok()) {
        let Stored { headline, counting, run, result_digest, usage } = stored;
        let usd = usage["total"]["usd"].as_f64();
        let usd_incomplete = UsageSummary::deserialize(&usage).is_ok_and(|usage| usage.is_incomplete());
        let (value, ci95) = match counting {
            // a figure of theirs has no interval of ours
            Some(counted) => (counted.value, None),
            None => (headline.value, headline.ci95),
        };
        let (estimator, metric) = (headline.estimator.name(), headline.metric);
        let verdict = Some(run.verdict);
        return Ok(Score { value, estimator, metric, ci95, counted_as, verdict, result_digest, usd, usd_incomplete });
    }
    let (estimator, metric) = (Estimator::Mean.name(), run.spec.headline_metric());
    let value = run.counters.mean();
    Ok(Score {
        value,
        estimator,
        metric,
        ci95: None,
        counted_as,
        verdict: None,
        result_digest: None,
        usd: None,
        usd_incomplete: false,
    })
}

/// The figure of the report of runs that are looked at as one, once all have one: that of a run, or the mean over repeats. None for
/// cells of a matrix, whose scores say different things.
pub(crate) async fn reported(store: &dyn Runs, runs: &[RunRow]) -> Option<f64> {
    let has_ended = |run: &RunRow| run.state == RunState::Finished;
    if !runs.iter().all(has_ended) || (runs.len() > 1 && runs.iter().any(|run| run.cell().is_some())) {
        return None;
    }
    let mut sum = 0.0;
    for run in runs {
        let score = score_of(store, run).await.ok()?;
        score.verdict?;
        sum += score.value?;
    }
    (!runs.is_empty()).then(|| sum / runs.len() as f64)
}

#[cfg(test)]
mod tests {
    use bench_store::conformance;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_figure_of_a_report_is_there_when_all_runs_have_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let ended = async |id: &str, value: f64| {
            let run = store.create_run(&conformance::new_run(id)).await.expect("is created");
            assert!(store.set_run_state(run, &[RunState::Running], RunState::Finished, None).await.expect("is set"));
            let row = store.run(run).await.expect("is there");
            assert_eq!(reported(store, std::slice::from_ref(&row)).await, None, "there is no report yet");
            let summary = json!({
                "headline": { "metric": "token-f1", "value": value, "estimator": "mean" },
                "run": { "verdict": "VALID" },
            });
            let put = store.put_summary(run, row.result_version, &summary.to_string()).await;
            let _ = put.expect("is stored");
            row
        };
        let (first, second) = (ended("a", 0.5).await, ended("b", 0.25).await);
        assert_eq!(reported(store, std::slice::from_ref(&first)).await, Some(0.5));
        assert_eq!(reported(store, &[first.clone(), second]).await, Some(0.375));
        let open = RunRow { state: RunState::Running, ..first.clone() };
        assert_eq!(reported(store, &[first, open]).await, None);
    }
}
