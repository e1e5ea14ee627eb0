//! How a run came to rest, and what is said of one that goes on without this process.

use bench_proto::ids::RunId;
use bench_store::{CANCELLED_NOW, RunRow, RunState};

use crate::{
    exit::{CliError, CliResult},
    out,
};

/// How a run came to rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// Every question ended.
    Finished,
    /// Held, resumable: by a user, by a signal, by the budget, by a provider.
    Paused {
        /// Why, for people.
        reason: String,
    },
    /// Ended by a user.
    Cancelled {
        /// Without waiting for calls in flight.
        now: bool,
    },
    /// A cluster goes on with it, this process does not wait any longer.
    LeftRunning {
        /// Why, for people.
        reason: String,
    },
}

impl RunEnd {
    /// How a run came to rest, by its row; nothing while it is running.
    #[must_use]
    pub(crate) fn of_row(run: &RunRow) -> Option<Self> {
        match run.state {
            RunState::Running => None,
            RunState::Finished => Some(Self::Finished),
            RunState::Cancelled => Some(Self::Cancelled { now: run.reason.as_deref() == Some(CANCELLED_NOW) }),
            RunState::Paused => {
                Some(Self::Paused { reason: run.reason.clone().unwrap_or_else(|| "paused".to_owned()) })
            }
        }
    }
}

/// Says what a person needs to come back to a run.
///
/// # Errors
/// Exit 3, always.
pub(crate) fn detached(run: &RunRow, json: bool) -> CliResult {
    if json {
        out::json(&serde_json::json!({"id": run.run_id, "status": "running"}));
    } else {
        out::result(&run.run_id.to_string());
    }
    Err(left_running(&run.run_id, "detached"))
}

/// Says that a run goes on without this process.
pub(crate) fn left_running(run: &RunId, reason: &str) -> CliError {
    CliError::resumable(format!(
        "{reason}: run {run} goes on without this command; `bench-coord watch {run}` follows it, `bench-coord cancel {run}` ends it"
    ))
}
