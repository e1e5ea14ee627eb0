//! The names of metrics and span fields, each once. Names are stable: dashboards and alerts hold on to them.
//!
//! Metrics follow the Prometheus rules: base units, `_total` for counters, labels of few values. Run ids and question
//! ids are span fields and never labels: they would make a time series each.

/// Metric names.
pub mod metric {
    /// Counter: steps that ended, by [`super::label::STEP`] and [`super::label::OUTCOME`].
    pub const STEPS: &str = "bench_steps_total";
    /// Histogram: seconds a step took, waits excluded, by [`super::label::STEP`].
    pub const STEP_SECONDS: &str = "bench_step_seconds";
    /// Counter: questions that ended, by [`super::label::OUTCOME`].
    pub const QUESTIONS: &str = "bench_questions_total";
    /// Counter: attempts of model calls, by [`super::label::PHASE`], [`super::label::ACCOUNT`] and
    /// [`super::label::OUTCOME`].
    pub const CALLS: &str = "bench_model_calls_total";
    /// Histogram: seconds from send to the end of the reply, by [`super::label::PHASE`].
    pub const CALL_SECONDS: &str = "bench_model_call_seconds";
    /// Counter: tokens, by [`super::label::PHASE`] and [`super::label::DIRECTION`].
    pub const TOKENS: &str = "bench_model_tokens_total";
    /// Counter: dollars spent, by [`super::label::PHASE`].
    pub const COST_USD: &str = "bench_cost_usd_total";
    /// Counter: 429 replies, by [`super::label::ACCOUNT`].
    pub const RATE_LIMITED: &str = "bench_rate_limited_total";
    /// Histogram: seconds spent waiting, by [`super::label::WAIT`].
    pub const WAIT_SECONDS: &str = "bench_wait_seconds";
    /// Gauge: tasks by [`super::label::ROLE`] and [`super::label::STATE`].
    pub const TASKS: &str = "bench_tasks";
    /// Counter: leases that were lost, by [`super::label::ROLE`].
    pub const LEASES_LOST: &str = "bench_leases_lost_total";
    /// Histogram: seconds of a checkpoint transaction.
    pub const CHECKPOINT_SECONDS: &str = "bench_checkpoint_seconds";
    /// Histogram: rows of a checkpoint transaction.
    pub const CHECKPOINT_ROWS: &str = "bench_checkpoint_rows";
    /// Gauge: workers that scaling asks for, by [`super::label::POOL`] and [`super::label::ROLE`].
    pub const DESIRED_WORKERS: &str = "bench_desired_workers";
    /// Gauge: slots in use of a process, by [`super::label::ROLE`].
    pub const SLOTS_BUSY: &str = "bench_slots_busy";
    /// All of them.
    pub const ALL: &[&str] = &[
        STEPS,
        STEP_SECONDS,
        QUESTIONS,
        CALLS,
        CALL_SECONDS,
        TOKENS,
        COST_USD,
        RATE_LIMITED,
        WAIT_SECONDS,
        TASKS,
        LEASES_LOST,
        CHECKPOINT_SECONDS,
        CHECKPOINT_ROWS,
        DESIRED_WORKERS,
        SLOTS_BUSY,
    ];
}

/// Labels of metrics.
pub mod label {
    /// Name of an account.
    pub const ACCOUNT: &str = "account";
    /// `prompt` or `completion`.
    pub const DIRECTION: &str = "direction";
    /// How something ended.
    pub const OUTCOME: &str = "outcome";
    /// `retain`, `recall`, `answer` or `judge`.
    pub const PHASE: &str = "phase";
    /// Worker pool.
    pub const POOL: &str = "pool";
    /// `retain`, `question` or `judge`.
    pub const ROLE: &str = "role";
    /// State of a task.
    pub const STATE: &str = "state";
    /// Step of a task.
    pub const STEP: &str = "step";
    /// What is waited for: `queue`, `rate`, `budget`.
    pub const WAIT: &str = "wait";
    /// All of them.
    pub const ALL: &[&str] = &[ACCOUNT, DIRECTION, OUTCOME, PHASE, POOL, ROLE, STATE, STEP, WAIT];
}

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
    /// Worker.
    pub const WORKER: &str = "worker";
    /// Attempt, counted from 1.
    pub const ATTEMPT: &str = "attempt";
    /// Milliseconds something took.
    pub const ELAPSED_MS: &str = "elapsed_ms";
    /// Short stable word of a failure.
    pub const CODE: &str = "code";
    /// Trace id of a question.
    pub const TRACE_ID: &str = "trace_id";
    /// A URL without its password, see [`crate::redact_url`].
    pub const URL: &str = "url";
    /// All of them.
    pub const ALL: &[&str] = &[RUN, BANK, QUESTION, TASK, EPOCH, WORKER, ATTEMPT, ELAPSED_MS, CODE, TRACE_ID, URL];
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_well_formed_and_unique() {
        for names in [metric::ALL, label::ALL, field::ALL] {
            let unique: BTreeSet<&&str> = names.iter().collect();
            assert_eq!(unique.len(), names.len());
            for name in names {
                assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            }
        }
        assert!(metric::ALL.iter().all(|name| name.starts_with("bench_")));
    }
}
