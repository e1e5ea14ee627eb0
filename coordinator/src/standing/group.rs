//! The runs that one command started as equals, repeats or the cells of a matrix: how their ids are made, and which runs are of a group.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    ids::RunId,
    matrix::{CELL_EVENT, CellNote},
    spec::{DatasetSpec, ModelSpec, RunSpec, SampleSpec},
};
use bench_store::{RunEvent, RunFilter, RunGroup, RunRow, RunState, Runs, Store, StoreError};
use serde_json::Value;

use super::{
    LATEST, find_run,
    meant::{Meant, meant_by},
};
use crate::exit::CliError;

/// Runs that one command started as equals.
#[derive(Debug, Clone)]
pub(crate) struct RunsOfGroup {
    /// Public id of the group.
    pub(crate) id: RunId,
    /// Its runs, in the order of their cells and numbers.
    pub(crate) runs: Vec<RunRow>,
}

/// Whether a run is one of several equals.
pub(crate) fn member(run: &RunRow) -> bool {
    run.repeat().is_some() || run.cell().is_some()
}

/// The group that a run is one of several equals of.
pub(crate) fn group_of_equals(run: &RunRow) -> Option<&RunGroup> {
    run.group.as_ref().filter(|_| member(run))
}

/// The name that a run has in a group of this name; none for a run that is not one of several equals.
pub(crate) fn name_in_group(run: &RunRow, group: &str) -> Option<String> {
    match (run.cell(), run.repeat()) {
        (Some((cell, number)), _) => Some(name_of_cell(group, cell, number)),
        (None, Some(number)) => Some(name_of_repeat(group, number)),
        (None, None) => None,
    }
}

/// The name of that group, by the name that the run got with it.
pub(crate) fn name_of_group(run: &RunRow) -> Option<&str> {
    let end = name_in_group(run, "")?;
    run.name.as_deref()?.strip_suffix(end.as_str())
}

/// The group of this name that a run is one of several equals of.
pub(crate) fn group_of_name<'a>(run: &'a RunRow, name: &str) -> Option<&'a RunGroup> {
    group_of_equals(run).filter(|_| name_of_group(run) == Some(name))
}

/// Id of the control of a run with a memory system: there is one of each, which is made with the run.
#[must_use]
pub(crate) fn id_of_control(run: &RunId, system: &str) -> RunId {
    RunId(format!("{run}-{system}"))
}

/// Id of a repeat, counted from 1; [`RunRow::repeat`] reads it.
#[must_use]
pub(crate) fn id_of_repeat(group: &RunId, number: u32) -> RunId {
    RunId(format!("{group}-r{number}"))
}

/// Id of a run of a cell, both counted from 1; [`RunRow::cell`] reads it.
#[must_use]
pub(crate) fn id_of_cell(group: &RunId, cell: u32, number: u32) -> RunId {
    RunId(format!("{group}-c{cell}-r{number}"))
}

/// Name of a run of a cell, where the matrix has one.
#[must_use]
pub(crate) fn name_of_cell(group: &str, cell: u32, number: u32) -> String {
    format!("{group}/{cell}/{number}")
}

/// Name of a repeat, where the group has one.
#[must_use]
pub(crate) fn name_of_repeat(group: &str, number: u32) -> String {
    format!("{group}/{number}")
}

/// The runs that a person means: all repeats of a group, or one run.
///
/// # Errors
/// As [`find_run`].
pub(crate) async fn find_runs(store: &dyn Store, selector: &str) -> Result<Vec<RunRow>, CliError> {
    match RunsOfGroup::find(store, selector).await? {
        Some(group) => Ok(group.runs),
        None => Ok(vec![find_run(store, selector).await?]),
    }
}

impl RunsOfGroup {
    /// The group behind its id, its name, the unique start or end of its id, or `latest`; nothing when that is a run.
    ///
    /// # Errors
    /// As [`find_run`], but that a word may stand for nothing.
    pub(crate) async fn find(store: &dyn Store, selector: &str) -> Result<Option<Self>, CliError> {
        match meant_by(store, selector).await? {
            Some(Meant::Group(group)) => Ok(Some(group)),
            // the newest run stands for the group that it was started with
            Some(Meant::Run(run)) if selector == LATEST => Self::around(store, Some(*run)).await,
            Some(Meant::Run(_)) | None => Ok(None),
        }
    }

    /// The group that a run is a repeat of.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn around(store: &dyn Store, run: Option<RunRow>) -> Result<Option<Self>, CliError> {
        let Some(run) = run.filter(member) else { return Ok(None) };
        let Some(group) = run.group else { return Ok(None) };
        Ok(Self::of_id(store, &RunId(group.id)).await?)
    }

    /// The group of exactly this id, where it has runs.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn of_id(store: &dyn Runs, id: &RunId) -> Result<Option<Self>, StoreError> {
        let filter = RunFilter { id_part: Some(format!("{id}-")), controls: true, ..RunFilter::default() };
        let mut runs = store.list_runs(&filter).await?;
        runs.retain(|run| member(run) && run.group.as_ref().is_some_and(|group| group.id == id.0));
        runs.sort_by_key(|run| (run.cell(), run.repeat()));
        Ok((!runs.is_empty()).then(|| Self { id: id.clone(), runs }))
    }

    /// The name of the group.
    pub(crate) fn name(&self) -> Option<String> {
        self.runs.iter().find_map(name_of_group).map(str::to_owned)
    }

    /// Whether its runs are the cells of a matrix.
    pub(crate) fn is_matrix(&self) -> bool {
        self.runs.iter().any(|run| run.cell().is_some())
    }

    /// Questions of all runs, and how many of them have ended.
    pub(crate) fn questions(&self) -> (u64, u64) {
        let all = self.runs.iter().map(RunRow::sample_size).sum();
        let ended = self.runs.iter().map(|run| u64::try_from(run.counters.ended()).unwrap_or(0)).sum();
        (all, ended)
    }
}

/// A cell of a matrix that exists.
#[derive(Debug, Clone)]
pub(crate) struct CellRows {
    /// Its number, from 1.
    pub(crate) number: u32,
    /// Axis → value.
    pub(crate) values: BTreeMap<String, String>,
    /// Its runs, in the order of their numbers; at least one.
    pub(crate) runs: Vec<RunRow>,
}

impl CellRows {
    /// The cells of a group by their numbers, each with the values that its runs were created with.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn of_group(store: &dyn Runs, group: &RunsOfGroup) -> Result<Vec<Self>, CliError> {
        let mut by_number: BTreeMap<u32, Vec<RunRow>> = BTreeMap::new();
        for run in &group.runs {
            if let Some((cell, _)) = run.cell() {
                by_number.entry(cell).or_default().push(run.clone());
            }
        }
        let mut cells = Vec::with_capacity(by_number.len());
        for (number, runs) in by_number {
            let mut values = BTreeMap::new();
            // the runs of a cell have the same note; where an axis was added, one of them has a later one
            for run in &runs {
                let events = store.events(run.run_no).await?;
                let notes = RunEvent::notes::<CellNote>(&events, CELL_EVENT);
                values.extend(notes.flat_map(|note| note.values));
            }
            cells.push(Self { number, values, runs });
        }
        Ok(cells)
    }

    /// Its runs that have ended.
    pub(crate) fn ended(&self) -> Vec<RunRow> {
        self.runs.iter().filter(|run| run.state == RunState::Finished).cloned().collect()
    }

    /// Axes in which it differs from another.
    pub(crate) fn differs_in(&self, other: &Self) -> Vec<String> {
        let axes: BTreeSet<&String> = self.values.keys().chain(other.values.keys()).collect();
        axes.into_iter().filter(|axis| self.values.get(*axis) != other.values.get(*axis)).cloned().collect()
    }

    /// Whether scores of both are the same figure: of the same questions, by the same metric and judges.
    pub(crate) fn is_measured_like(&self, other: &Self) -> bool {
        let of = |cell: &Self| cell.runs.first().map(|run| measured(&run.spec));
        of(self) == of(other)
    }

    /// The data that it is measured on: cells of different data are not held against each other.
    pub(crate) fn dataset(&self) -> Option<(&str, &str)> {
        let dataset = &self.runs.first()?.spec.dataset;
        Some((&dataset.name, &dataset.sha256))
    }
}

/// What makes two scores the same figure: data, sample, metric, judges and votes. What is said about a sample, such as whose banks it
/// asks, is not what it is.
fn measured(spec: &RunSpec) -> (DatasetSpec, SampleSpec, String, Vec<ModelSpec>, u32) {
    let sample = SampleSpec { notes: Vec::new(), request: Value::Null, ..spec.sample.clone() };
    (spec.dataset.clone(), sample, spec.headline_metric(), spec.judges.clone(), spec.votes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_the_same_figure_whoever_filled_the_banks() {
        let spec: RunSpec =
            serde_json::from_str(include_str!("../../../proto/golden/run_spec.v1.json")).expect("a spec");
        let mut reuses = spec.clone();
        reuses.sample.notes.push("2 of 2 banks were filled by run a".to_owned());
        assert_eq!(measured(&reuses), measured(&spec));
        reuses.sample.signature.push('0');
        assert_ne!(measured(&reuses), measured(&spec));
    }
}
