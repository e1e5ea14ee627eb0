//! What a commit did, and calls and facts that are read again.

use bench_proto::{
    call::{CallRecord, Phase},
    facts::QuestionFacts,
    ids::{Role, RunNo, TaskKey},
    step::StepFacts,
};

/// What a batch of step records did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommitOutcome {
    /// For each record of the batch: `None` when it was stored now, the facts that were there before otherwise.
    pub already: Vec<Option<StepFacts>>,
    /// Places of records that changed nothing although nothing is stored under their keys: their task ended otherwise
    /// and says no reason, a later claim holds it, its bank has a newer generation, or it was never planned. Their entry
    /// in `already` is the record's own facts; the worker drops the task. (A record of a task that failed finds the
    /// stored failure in `already`.)
    pub refused: Vec<usize>,
    /// Questions of which no step is missing any more: to be concluded (P7).
    pub to_conclude: Vec<(RunNo, TaskKey)>,
    /// Runs and roles in which tasks became ready.
    pub opened: Vec<(RunNo, Role)>,
}

/// The facts of a question that ends with the records of one commit: all its steps are among them.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// Number of the run in its store.
    pub run: RunNo,
    /// The metric that is summed for progress.
    pub headline_metric: String,
    /// Derived from the records, as [`bench_proto::facts::conclude`] does.
    pub facts: QuestionFacts,
}

/// A stored reply that may be served again (P9).
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCall {
    /// The record; its outcome is `Accepted`.
    pub record: CallRecord,
    /// The run that paid.
    pub run: RunNo,
    /// The task of that run for which it was made.
    pub task: TaskKey,
}

/// What calls of a model used on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallProfile {
    /// The phase that paid.
    pub phase: Phase,
    /// Number of calls that were looked at.
    pub calls: u64,
    /// Mean prompt tokens of a call.
    pub prompt_tokens: f64,
    /// Mean completion tokens of a call.
    pub completion_tokens: f64,
    /// Microseconds from send to the end of the reply.
    pub duration_us: f64,
}

/// A page of question facts, in key order.
pub type FactsPage = Vec<QuestionFacts>;
