//! Finding runs by what people type, and saying how they stand.

use std::path::Path;

use bench_proto::{CLUSTER_DOMAIN, ids::RunId};
use bench_store::{MEASURED_FIRST, RunFilter, RunRow, RunState, Store};

use crate::{exit::CliError, lock::OwnerLock};

/// Name of the person at this machine: `latest` is per user.
#[must_use]
pub(crate) fn current_user() -> String {
    ["BENCH_USER", "USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The run behind an id, a unique prefix, or `latest`.
///
/// # Errors
/// Exit 2 with what to do, when there is none or more than one.
pub(crate) async fn find_run(store: &dyn Store, selector: &str) -> Result<RunRow, CliError> {
    if selector == "latest" {
        let filter = RunFilter { user: Some(current_user()), limit: Some(1), ..RunFilter::default() };
        let mut runs = store.list_runs(&filter).await?;
        return runs.pop().ok_or_else(|| {
            CliError::usage(format!("there is no run in {} yet; `bench-coord submit` starts one", store.describe()))
        });
    }
    if let Some(run) = store.run_by_id(&RunId(selector.to_owned())).await? {
        return Ok(run);
    }
    let filter =
        RunFilter { id_prefix: Some(selector.to_owned()), controls: true, limit: Some(4), ..RunFilter::default() };
    let mut found = store.list_runs(&filter).await?;
    match found.len() {
        0 => Err(CliError::usage(format!("no run '{selector}' in {}; `bench-coord list` shows all", store.describe()))),
        1 => Ok(found.remove(0)),
        _ => {
            let ids: Vec<String> = found.iter().map(|r| r.run_id.to_string()).collect();
            Err(CliError::usage(format!(
                "'{selector}' is the start of more than one run ({}, …); type more of it",
                ids.join(", ")
            )))
        }
    }
}

/// Kind of the run event of a run that is being rebuilt: the digest of its result.
pub(crate) const RESTORING: &str = "restoring";
/// Kind of the run event of a run that was rebuilt.
pub(crate) const RESTORED: &str = "restored";

/// Whether a run came from an archive.
///
/// # Errors
/// What the store meets.
pub(crate) async fn is_restored(store: &dyn Store, run: &RunRow) -> Result<bool, CliError> {
    Ok(store.events(run.run_no).await?.iter().any(|event| event.kind == RESTORING))
}

/// Refuses to go on with a run that came from an archive in part.
///
/// # Errors
/// Exit 2 with what to do.
pub(crate) async fn check_whole(store: &dyn Store, run: &RunRow) -> Result<(), CliError> {
    let events = store.events(run.run_no).await?;
    let has = |kind: &str| events.iter().any(|event| event.kind == kind);
    if has(RESTORING) && !has(RESTORED) {
        return Err(CliError::usage(format!(
            "run {0} was not restored to its end; `bench-coord archive fetch {0} --restore` does the rest",
            run.run_id
        )));
    }
    Ok(())
}

/// How a run stands, with what only the owner's lock can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A living process works on it, or a cluster does.
    Running {
        /// Id of the process that owns it.
        pid: Option<String>,
    },
    /// Nobody works on it although it is not at rest: its owner was killed.
    Interrupted,
    /// Held, resumable.
    Paused {
        /// Why.
        reason: String,
    },
    /// Ended by a user.
    Cancelled,
    /// All questions ended.
    Finished,
}

impl Standing {
    /// How `run` stands.
    #[must_use]
    pub(crate) fn of(run: &RunRow, store_file: Option<&Path>) -> Self {
        let owner = store_file.and_then(|file| OwnerLock::owner(file, &run.run_id));
        match (run.state, owner) {
            (RunState::Finished, _) => Self::Finished,
            (RunState::Cancelled, _) => Self::Cancelled,
            (RunState::Paused, _) => Self::Paused { reason: run.reason.clone().unwrap_or_else(|| "paused".to_owned()) },
            (RunState::Running, _) if run.domain == CLUSTER_DOMAIN => Self::Running { pid: None },
            (RunState::Running, Some(pid)) => Self::Running { pid: Some(pid) },
            (RunState::Running, None) => Self::Interrupted,
        }
    }

    /// One word for tables and JSON.
    #[must_use]
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Running { .. } => "running",
            Self::Interrupted => "interrupted",
            Self::Paused { .. } => "paused",
            Self::Cancelled => "cancelled",
            Self::Finished => "finished",
        }
    }

    /// Why nothing moves and what to do about it; nothing to say about a run that runs or is finished.
    #[must_use]
    pub(crate) fn advice(&self, run: &RunId) -> Option<String> {
        match self {
            Self::Running { .. } | Self::Finished => None,
            Self::Interrupted => {
                Some(format!("its process is gone; `bench-coord resume {run}` goes on where it stopped"))
            }
            Self::Paused { reason } if reason == MEASURED_FIRST => {
                Some(format!("{reason}, and this control when that has ended"))
            }
            Self::Paused { reason } if reason.starts_with("budget") => {
                Some(format!("{reason}; `bench-coord resume {run} --max-cost USD` goes on with a higher cap"))
            }
            Self::Paused { reason } => Some(format!("{reason}; `bench-coord resume {run}` goes on")),
            Self::Cancelled => Some(format!("cancelled; `bench-coord resume {run} --reopen` goes on all the same")),
        }
    }
}

/// The file of a local store, when it is one.
#[must_use]
pub(crate) fn store_file(url: &str) -> Option<std::path::PathBuf> {
    url.strip_prefix("sqlite:").map(|rest| std::path::PathBuf::from(rest.strip_prefix("//").unwrap_or(rest)))
}
