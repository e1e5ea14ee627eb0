//! That a process of a memory system was started again in the middle of a run: noted as an event of the run, once for each time.

use serde::{Deserialize, Serialize};

/// How a warning goes on with last words, which may quote what the process was given.
pub const ENDED_WITH: &str = "; the first one ended with ";

/// A process that took the place of one that had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedAgainNote {
    /// Microseconds since 1970: no two workers note the same.
    pub at_us: i64,
    /// Which one it is of those that a worker has seen, from 1.
    pub number: u32,
    /// How the one before it ended, and its last words; of the first one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}
