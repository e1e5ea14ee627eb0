//! The repeats of one run as a group: how their ids are made, and which group is meant.

use bench_proto::ids::RunId;
use bench_store::{RunFilter, RunRow, Store};

use super::{LATEST, current_user, find_run};
use crate::exit::CliError;

/// The repeats that one command started.
#[derive(Debug, Clone)]
pub(crate) struct Repeats {
    /// Public id of the group.
    pub(crate) id: RunId,
    /// Its runs, in the order of their numbers.
    pub(crate) runs: Vec<RunRow>,
}

/// Id of a repeat, counted from 1; [`RunRow::repeat`] reads it.
#[must_use]
pub(crate) fn id_of_repeat(group: &RunId, number: u32) -> RunId {
    RunId(format!("{group}-r{number}"))
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
    match Repeats::find(store, selector).await? {
        Some(group) => Ok(group.runs),
        None => Ok(vec![find_run(store, selector).await?]),
    }
}

impl Repeats {
    /// The group behind its id, its name, the unique start or end of its id, or `latest`; nothing when that is a run.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn find(store: &dyn Store, selector: &str) -> Result<Option<Self>, CliError> {
        if selector == LATEST {
            let filter = RunFilter { user: Some(current_user()), limit: Some(1), ..RunFilter::default() };
            let newest = store.list_runs(&filter).await?.pop();
            return Self::around(store, newest).await;
        }
        // a run of exactly this id is that run
        if store.run_by_id(&RunId(selector.to_owned())).await?.is_some() {
            return Ok(None);
        }
        let first = id_of_repeat(&RunId(selector.to_owned()), 1);
        if let Some(group) = Self::around(store, store.run_by_id(&first).await?).await? {
            return Ok(Some(group));
        }
        let by_name = RunFilter { name: Some(name_of_repeat(selector, 1)), limit: Some(1), ..RunFilter::default() };
        if let Some(group) = Self::around(store, store.list_runs(&by_name).await?.pop()).await? {
            return Ok(Some(group));
        }
        Self::by_part(store, selector).await
    }

    /// The only group whose id starts or ends so, where no other run fits.
    async fn by_part(store: &dyn Store, part: &str) -> Result<Option<Self>, CliError> {
        let fitting = async |part: String| {
            store.list_runs(&RunFilter { id_part: Some(part), controls: true, ..RunFilter::default() }).await
        };
        let mut found = fitting(part.to_owned()).await?;
        found.extend(fitting(format!("{part}-r1")).await?);
        found.retain(|run| run.control_of.is_none());
        let group = |run: &RunRow| run.repeat().and(run.group.as_ref()).map(|group| group.group_no);
        let Some(one) = found.first().and_then(group) else { return Ok(None) };
        if found.iter().any(|run| group(run) != Some(one)) {
            return Ok(None);
        }
        // what the id of a single repeat ends with is that repeat
        let id = found.first().and_then(|run| run.group.as_ref()).map(|group| group.id.clone()).unwrap_or_default();
        if !(format!("{id}-r").starts_with(part) || id.ends_with(part)) {
            return Ok(None);
        }
        Self::around(store, found.pop()).await
    }

    /// The group that a run is a repeat of.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn around(store: &dyn Store, run: Option<RunRow>) -> Result<Option<Self>, CliError> {
        let Some(run) = run.filter(|run| run.repeat().is_some()) else { return Ok(None) };
        let Some(group) = run.group.clone() else { return Ok(None) };
        let filter = RunFilter { id_part: Some(format!("{}-r", group.id)), controls: true, ..RunFilter::default() };
        let mut runs = store.list_runs(&filter).await?;
        runs.retain(|run| run.repeat().is_some() && run.group.as_ref() == Some(&group));
        runs.sort_by_key(RunRow::repeat);
        Ok(Some(Self { id: RunId(group.id), runs }))
    }

    /// The name of the group.
    pub(crate) fn name(&self) -> Option<String> {
        let name = self.runs.first()?.name.as_ref()?;
        name.strip_suffix("/1").map(str::to_owned)
    }

    /// Questions of all repeats, and how many of them have ended.
    pub(crate) fn questions(&self) -> (u64, u64) {
        let all = self.runs.iter().map(|run| run.spec.sample.n).sum();
        let ended = self.runs.iter().map(|run| u64::try_from(run.counters.ended()).unwrap_or(0)).sum();
        (all, ended)
    }
}
