//! The runs before one that it may be compared with: those of `last:K`.

use std::{cmp::Reverse, collections::BTreeSet};

use bench_aggregate::compare::{
    CompareOptions, common_metric,
    fingerprints::{self, Comparability, is_of_version},
};
use bench_proto::{comparison::MarkedDifference, gate::BaselineRun, ids::RunNo, spec::RunSpec, summary::Verdict};
use bench_store::{RunFilter, RunRow, RunState, Store};

use super::inputs::LoadedRun;
use crate::{
    app::App,
    exit::{CliError, Exit},
    out, results,
    standing::{LAST, RESTORING, find_run},
};

/// K of `last:K`; `None` of any other baseline.
///
/// # Errors
/// Exit 2 for a K that is no number from 1 to 1000.
pub(crate) fn last_of(named: &str) -> Result<Option<usize>, CliError> {
    let Some(k) = named.strip_prefix(LAST) else { return Ok(None) };
    let k = k.parse().ok().filter(|k| (1..=1_000).contains(k));
    k.map(Some).ok_or_else(|| CliError::usage(format!("--baseline {named}: give last:K with K from 1 to 1000")))
}

/// The last `k` finished, valid runs of the same settings before this one, the newest first, each with what is to be known of it. Where
/// there is none, those of the newest run that differs in its memory system alone: a changed setting of it is what a gate is about too.
///
/// # Errors
/// Exit 5 where there is none; what the store meets.
pub(crate) async fn last(
    app: &App,
    store: &dyn Store,
    (selector, new): (&str, &LoadedRun),
    k: usize,
    options: &CompareOptions,
) -> Result<Vec<(LoadedRun, BaselineRun)>, CliError> {
    let this = match new.row() {
        Some(row) => row.clone(),
        None => find_run(store, selector).await?,
    };
    let metric = common_metric(&new.spec, options);
    let before = Before { app, store, this, new, metric, options };
    let all = before.all().await?;
    let like_this = |system_too| -> Vec<&(RunRow, Comparability)> {
        all.iter().filter(|(row, with)| before.is_like(row, with, system_too)).collect()
    };
    let same = before.newest(k, like_this(false)).await?;
    if !same.is_empty() {
        return Ok(same);
    }
    if let Some((newest, _)) = before.newest(1, like_this(true)).await?.pop() {
        let is_like_it =
            |(row, _): &&(RunRow, Comparability)| before.is_like(row, &before.with(row, &newest.spec), false);
        return before.newest(k, all.iter().filter(is_like_it).collect()).await;
    }
    let metric = before.metric;
    Err(CliError::new(
        Exit::Invalid,
        format!(
            "no finished, VALID run before {selector} has its dataset, sample, memory system, answerer and graders, and scores by '{metric}'; name a baseline with --baseline RUN, or say what may differ with --under-test"
        ),
    ))
}

/// Whether a run has a value of a metric.
pub(super) fn has_metric(run: &LoadedRun, metric: &str) -> bool {
    run.summary.scores.iter().any(|score| score.metric == metric && score.micro.is_some())
}

/// The finished, valid runs before one that may be compared with it.
struct Before<'a> {
    app: &'a App,
    store: &'a dyn Store,
    this: RunRow,
    new: &'a LoadedRun,
    metric: String,
    options: &'a CompareOptions,
}

impl Before<'_> {
    /// A run compared with settings that this one has or could have.
    fn with(&self, row: &RunRow, other: &RunSpec) -> Comparability {
        let settings = |spec, imported| fingerprints::RunSettings { spec, imported };
        let (of_row, of_other) = (settings(&row.spec, row.imported), settings(other, self.this.imported));
        fingerprints::comparability(&of_row, &of_other, &self.metric, &self.options.under_test)
    }

    /// Whether a run has done the same, be it before or after: the whole of the same sample, and neither a second try at what was wrong
    /// nor a run of the same command.
    fn is_like_in_questions(&self, row: &RunRow) -> bool {
        let this = &self.this;
        let same_sample = row.spec.sample.signature == this.spec.sample.signature && row.looks.stopped().is_none();
        let same_draw = row.spec.taken_over.answered_again == this.spec.taken_over.answered_again;
        let same_command = row.group.is_some() && row.group == this.group;
        let has_ended = row.run_no != this.run_no && row.state == RunState::Finished && row.control_of.is_none();
        has_ended && same_sample && same_draw && !same_command && row.spec.system.name == self.new.spec.system.name
    }

    /// Whether runs of one baseline may differ in a setting: the version of the memory system is what a gate is about, and what is
    /// declared is under test. Datasets and samples are held against each other elsewhere, and by which rule a run would have ended
    /// early changes nothing of one that did not.
    fn may_differ(&self, differs: &MarkedDifference, imported: bool) -> bool {
        let declared = &self.options.under_test;
        let is_declared = declared.iter().any(|group| group == "all" || *group == differs.group);
        // who answered what was made elsewhere is not known, and what was recalled elsewhere is as long as it is
        let is_unknown = imported && (differs.group == "answerer" || differs.key == "system.top_k");
        !differs.under_test || is_of_version(&differs.key) || is_declared || is_unknown
    }

    /// All that may be compared with this one, the newest first, each with its differences from it. Whether they are valid is not
    /// known yet: their results are read where one is chosen.
    async fn all(&self) -> Result<Vec<(RunRow, Comparability)>, CliError> {
        let rows = self.store.list_runs(&RunFilter::default()).await?;
        let alike = rows.into_iter().filter(|row| self.is_like_in_questions(row)).map(|row| {
            let with_this = self.with(&row, &self.new.spec);
            (row, with_this)
        });
        self.before(alike.filter(|(_, with_this)| with_this.reasons.is_empty()).collect()).await
    }

    /// Those of some runs, the newest first, that were created before this one. A run that came from an archive has the number of its
    /// restore: where there is one among them, the times go by which their reports say that they began.
    async fn before(&self, runs: Vec<(RunRow, Comparability)>) -> Result<Vec<(RunRow, Comparability)>, CliError> {
        if runs.is_empty() {
            return Ok(runs);
        }
        let this = &self.this;
        let of_archives = RunFilter { has_event: Some(RESTORING.to_owned()), controls: true, ..RunFilter::default() };
        let restored = self.store.list_runs(&of_archives).await?;
        let restored: BTreeSet<RunNo> = restored.into_iter().map(|row| row.run_no).collect();
        if !runs.iter().map(|(row, _)| row).chain([this]).any(|row| restored.contains(&row.run_no)) {
            return Ok(runs.into_iter().filter(|(row, _)| row.run_no < this.run_no).collect());
        }
        let mut timed = Vec::with_capacity(runs.len());
        for run in runs {
            timed.push(((self.began(&run.0, &restored).await?, run.0.run_no), run));
        }
        let end = (self.began(this, &restored).await?, this.run_no);
        Ok(before_in_time(timed, end))
    }

    /// When a run began, in milliseconds since 1970.
    async fn began(&self, row: &RunRow, restored: &BTreeSet<RunNo>) -> Result<i64, CliError> {
        if !restored.contains(&row.run_no) {
            return Ok(row.created_ms);
        }
        let summary = results::summary_of(self.app, self.store, row).await;
        began_by_report(row, summary.map(|summary| summary.run.started_at))
    }

    /// Whether a run has the settings of the one that it was compared with, but for what may differ; `system_too`: and for those of its
    /// memory system.
    fn is_like(&self, row: &RunRow, with: &Comparability, system_too: bool) -> bool {
        let imported = row.imported || self.this.imported;
        let fits = |differs: &MarkedDifference| {
            (system_too && differs.group == "system") || self.may_differ(differs, imported)
        };
        with.reasons.is_empty() && with.differences.iter().all(fits)
    }

    /// The first `k` valid ones of some runs, each with what is to be known of it. Of runs that share paid answers the newest: a run
    /// that was graded again is no further draw.
    async fn newest(
        &self,
        k: usize,
        of: Vec<&(RunRow, Comparability)>,
    ) -> Result<Vec<(LoadedRun, BaselineRun)>, CliError> {
        let (mut found, mut lineages) = (Vec::new(), BTreeSet::new());
        for (row, with_this) in of {
            if found.len() == k {
                break;
            }
            let own = row.spec.taken_over.with_sources(&row.run_id.0, &row.lineage);
            if own.iter().any(|key| lineages.contains(key)) {
                continue;
            }
            let old = LoadedRun::of_row(self.app, self.store, row.clone()).await?;
            if old.summary.run.verdict == Verdict::Valid && has_metric(&old, &self.metric) {
                lineages.extend(own);
                let (id, name) = (old.summary.run.id.clone(), old.summary.run.name.clone());
                let (notes, differences) = (with_this.notes.clone(), with_this.differences.clone());
                found.push((old, BaselineRun { id, name, notes, differences }));
            }
        }
        Ok(found)
    }
}

/// The runs that began before a time and a number, the newest first.
fn before_in_time<T>(mut runs: Vec<((i64, RunNo), T)>, end: (i64, RunNo)) -> Vec<T> {
    runs.retain(|(began, _)| *began < end);
    runs.sort_by_key(|(began, _)| Reverse(*began));
    runs.into_iter().map(|(_, run)| run).collect()
}

/// When a restored run began by what was read of its report. One whose report cannot be read counts as the oldest, which is said: it
/// stands in nobody's way, and where it is needed after all the gate says why it cannot be had.
fn began_by_report(row: &RunRow, read: Result<Option<String>, CliError>) -> Result<i64, CliError> {
    match read {
        Ok(said) => {
            let said = said.and_then(|at| at.parse::<jiff::Timestamp>().ok());
            Ok(said.map_or(row.created_ms, jiff::Timestamp::as_millisecond))
        }
        Err(away) if away.is_transient() => Err(away),
        Err(why) => {
            let id = &row.run_id;
            out::note(&format!(
                "run {id} came from an archive and its report cannot be read, it counts as the oldest: {why}"
            ));
            Ok(i64::MIN)
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_store::{
        StoreError,
        conformance::{created, new_run, store_in},
    };

    use super::*;

    #[tokio::test]
    async fn a_run_that_was_restored_later_is_before_what_was_made_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store_in(folder.path()).await;
        let mut runs = Vec::new();
        // the last one came from an archive, of a run that began first
        for (id, began) in [("second", 20), ("third", 30), ("fourth", 40), ("first", 10)] {
            runs.push((began, created(store.as_ref(), &new_run(id)).await));
        }
        let before = |number: usize| -> Vec<String> {
            let end = (runs[number].0, runs[number].1.run_no);
            let timed = runs.iter().map(|(began, row)| ((*began, row.run_no), row.run_id.0.clone()));
            before_in_time(timed.collect(), end)
        };
        assert_eq!(before(1), ["second", "first"]);
        assert!(before(3).is_empty(), "nothing was before the first");
    }

    #[tokio::test]
    async fn a_restored_run_whose_report_cannot_be_read_is_the_oldest() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store_in(folder.path()).await;
        let row = created(store.as_ref(), &new_run("restored")).await;
        let began = |read| began_by_report(&row, read);
        assert_eq!(began(Ok(Some("1970-01-01T00:00:01Z".to_owned()))).expect("is read"), 1000);
        assert_eq!(began(Ok(None)).expect("is read"), row.created_ms);
        let damaged = StoreError::Corrupt("the facts of a question".to_owned().into());
        assert_eq!(began(Err(damaged.into())).expect("fails no gate"), i64::MIN);
        let away = StoreError::Unavailable("no server".to_owned().into());
        assert!(began(Err(away.into())).is_err(), "another try may pass");
    }
}
