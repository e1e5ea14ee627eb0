//! Names of log fields. Names of metrics are in [`crate::metrics::catalogue`].

/// Fields of spans and log events. `tracing` takes field names as literals; this list is what they are chosen from.
pub mod field {
    /// Public id of a run.
    pub const RUN: &str = "run";
    /// The dataset's id of a bank.
    pub const BANK: &str = "bank";
    /// The dataset's id of a question.
    pub const QUESTION: &str = "question";
    /// Task key.
    pub const TASK: &str = "task";
    /// Lease epoch of a claim.
    pub const EPOCH: &str = "epoch";
    /// Name that a worker process gives itself.
    pub const WORKER: &str = "worker";
    /// Attempt, counted from 1.
    pub const ATTEMPT: &str = "attempt";
    /// Milliseconds something took.
    pub const ELAPSED_MS: &str = "elapsed_ms";
    /// Short stable word of a failure.
    pub const CODE: &str = "code";
    /// Trace id of a question.
    pub const TRACE_ID: &str = "trace_id";
    /// A URL without its password, see [`bench_proto::redact::url`].
    pub const URL: &str = "url";
    /// All fields of logs and spans.
    pub const ALL: &[&str] = &[RUN, BANK, QUESTION, TASK, EPOCH, WORKER, ATTEMPT, ELAPSED_MS, CODE, TRACE_ID, URL];
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_well_formed_and_unique() {
        let unique: BTreeSet<&&str> = field::ALL.iter().collect();
        assert_eq!(unique.len(), field::ALL.len());
        for name in field::ALL {
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        }
    }
}
