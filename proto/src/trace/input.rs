//! What is stored of a question that its trace is built of.

use serde::Serialize;

use super::BankSpan;
use crate::{
    facts::QuestionFacts,
    ids::{RunId, TaskKey},
    spec::RunSpec,
    step::{StepFacts, StepNo},
};

/// A stored step with the time at which the store took it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSpan {
    /// Key of the task within its run.
    pub task: TaskKey,
    /// Number of the step within its task.
    pub step: StepNo,
    /// Its facts, with the timing.
    pub facts: StepFacts,
    /// When it was stored, microseconds since 1970 by the store's clock; unknown for steps of older builds.
    pub stored_us: Option<i64>,
}

/// How a try that stored no step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// It failed and is repeated.
    Retried,
    /// It waits for something without holding a slot (P11).
    Parked,
}

/// A try that stored no step: what is known of it besides.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
pub struct AttemptNote {
    /// Key of the task within its run.
    pub task: TaskKey,
    /// Lease epoch of its claim.
    pub epoch: i64,
    /// When it began, microseconds since 1970.
    pub started_us: i64,
    /// How long it took.
    pub total_us: u64,
    /// From ready to claimed.
    #[serde(default)]
    pub queue_wait_us: u64,
    /// The worker session that made it.
    pub session: i64,
    /// How it ended.
    pub end: AttemptEnd,
    /// How long the task then waits before it may be claimed again.
    pub delay_us: u64,
    /// Why, for people.
    pub reason: String,
}

/// Texts of a question, for traces that may hold them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceTexts {
    /// Text of the question as it was asked.
    pub question: String,
    /// What was answered; none when it did not come to an answer.
    pub answer: Option<String>,
    /// What was expected; none when the dataset expects no answer.
    pub gold: Option<String>,
}

/// What the tree is built of.
#[derive(Debug, Clone)]
pub struct TraceInput<'a> {
    /// Id of the run.
    pub run: &'a RunId,
    /// What the run was asked to do.
    pub spec: &'a RunSpec,
    /// Embedding model that its system calls on a server, and the account.
    pub embeddings: Option<(&'a str, &'a str)>,
    /// When the run was submitted, microseconds since 1970.
    pub submitted_us: i64,
    /// The question's task.
    pub task: TaskKey,
    /// The dataset's id of the question.
    pub question_id: &'a str,
    /// The dataset's id of its bank.
    pub bank_id: &'a str,
    /// The dataset's kind of question.
    pub category: &'a str,
    /// Stored steps of the question and of its judge tasks.
    pub steps: &'a [StoredSpan],
    /// Tries that stored nothing.
    pub attempts: &'a [AttemptNote],
    /// What it came to, once it has ended.
    pub facts: Option<&'a QuestionFacts>,
    /// What was retained for its bank: the links.
    pub banks: &'a [BankSpan],
    /// OpenTelemetry's name of the store (`postgresql`, `sqlite`).
    pub db_system: &'a str,
    /// OpenTelemetry's name of the queue (`rabbitmq`); none for a queue inside the process.
    pub messaging_system: Option<&'a str>,
    /// Texts, where the run allows them.
    pub texts: Option<TraceTexts>,
}
