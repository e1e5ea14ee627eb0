//! Tasks as people know them: lines of the log name the run, the bank or question, and the trace.

use bench_proto::ids::{RunId, TaskKey, TaskKind, trace_id};
use bench_store::ClaimedTask;
use tracing::{info, warn};

use crate::banks::BankCache;

/// The dataset's id of the question that a task belongs to; none for tasks of banks.
pub(crate) async fn question_id(task: ClaimedTask, banks: &BankCache) -> Option<String> {
    if !matches!(task.task.kind(), TaskKind::Question | TaskKind::Judge) {
        return None;
    }
    let bank = banks.get(task.run, task.task.bank()).await.ok()?;
    bank.question(task.task.index()).map(|question| question.question_id.clone())
}

/// The dataset's id of the bank that a task belongs to.
async fn bank_id(task: ClaimedTask, banks: &BankCache) -> Option<String> {
    let bank = banks.get(task.run, task.task.bank()).await.ok()?;
    Some(bank.content.bank_id.clone())
}

/// A task as lines of the log name it.
pub(crate) struct About {
    task: ClaimedTask,
    run: String,
    bank: Option<String>,
    question: Option<String>,
    trace_id: Option<String>,
}

impl About {
    /// Names a task, from memory where it is there; `run` is the public id of its run.
    pub(crate) async fn task(task: ClaimedTask, run: Option<RunId>, banks: &BankCache) -> Self {
        let question = question_id(task, banks).await;
        let bank = if question.is_none() { bank_id(task, banks).await } else { None };
        let trace_id = run.as_ref().zip(question.as_deref()).map(|(run, question)| trace_id(run, question));
        let run = run.map_or_else(|| task.run.0.to_string(), |run| run.0);
        Self { task, run, bank, question, trace_id }
    }

    /// Logs something that went wrong and goes on by itself.
    pub(crate) fn info(&self, code: &str, what: &str) {
        let Self { task, run, bank, question, trace_id } = self;
        let (bank, question, trace_id) = (bank.as_deref(), question.as_deref(), trace_id.as_deref());
        let (no, attempt, name) = (task.task.0, self.attempt(), self.name());
        info!(run, bank, question, task = no, trace_id, attempt, code, "{name} of run {run} {what}");
    }

    /// Logs something that is lost, or that somebody has to look at.
    pub(crate) fn warn(&self, code: &str, what: &str) {
        let Self { task, run, bank, question, trace_id } = self;
        let (bank, question, trace_id) = (bank.as_deref(), question.as_deref(), trace_id.as_deref());
        let (no, attempt, name) = (task.task.0, self.attempt(), self.name());
        warn!(run, bank, question, task = no, trace_id, attempt, code, "{name} of run {run} {what}");
    }

    fn attempt(&self) -> i32 {
        self.task.attempts.saturating_add(1)
    }

    /// What is asked of whom: `judge conv-26:0`, `retain conv-26`.
    fn name(&self) -> String {
        if self.task.task == TaskKey::PROBE {
            return "the latency probe".to_owned();
        }
        let kind = match self.task.task.kind() {
            TaskKind::Retain => "retain",
            TaskKind::Ready => "ready",
            TaskKind::Question => "question",
            TaskKind::Judge => "judge",
        };
        match self.question.as_ref().or(self.bank.as_ref()) {
            Some(of) => format!("{kind} {of}"),
            None => format!("{kind} {:?}", self.task.task),
        }
    }
}
