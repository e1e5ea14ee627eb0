//! A question's trace from the store alone: the same for the terminal and for a collector.

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    CLUSTER_DOMAIN,
    dataset::Question,
    facts::QuestionFacts,
    ids::{TaskKey, trace_id},
    step::{StepNo, StepText},
    trace::{BankSpan, Span, TraceInput, TraceTexts, bank_spans, question_spans},
};
use bench_store::{BankRow, Items, RunRow, SessionId, Store, StoreError};
use bench_systems::vector::remote_model;

use crate::banks::{BankData, read_item};

/// A question, as a trace names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Key of the question's task, as the store has it.
    pub task: TaskKey,
    /// The dataset's id.
    pub question_id: String,
    /// The dataset's id of its bank.
    pub bank_id: String,
    /// The dataset's kind of question.
    pub category: String,
}

impl Subject {
    /// The question that some facts are about.
    #[must_use]
    pub fn from_facts(facts: &QuestionFacts) -> Self {
        Self {
            task: facts.task,
            question_id: facts.question_id.clone(),
            bank_id: facts.bank_id.clone(),
            category: facts.category.clone(),
        }
    }
}

/// What the store knows of where a question's time went.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionTrace {
    /// The question.
    pub subject: Subject,
    /// 32 hexadecimal characters.
    pub trace_id: String,
    /// Its spans, the root first; empty when nothing has happened yet.
    pub spans: Vec<Span>,
    /// The spans of the run's own trace that it is linked to, each with the part of that trace to which it belongs.
    pub linked: Vec<(TaskKey, Span)>,
    /// Names of the workers, by session.
    pub workers: BTreeMap<i64, String>,
    /// What it came to, once it has ended.
    pub facts: Option<QuestionFacts>,
}

/// Reads a question's trace.
///
/// # Errors
/// What the store meets.
pub async fn gather(store: &dyn Store, run: &RunRow, subject: Subject) -> Result<QuestionTrace, StoreError> {
    let task = subject.task;
    let steps = store.spans(run.run_no, &[task]).await?;
    let attempts = store.attempts(run.run_no, task).await?;
    let facts = store.facts_of(run.run_no, &[task]).await?.pop();
    let banks = BankSpan::from_steps(&subject.bank_id, &store.bank_steps(run.run_no, task.bank()).await?);
    let texts = if run.spec.limits.trace.content { texts(store, run, task).await? } else { None };
    let embeddings = remote_model(&run.spec.system.name, &run.spec.system.settings);
    let input = TraceInput {
        run: &run.run_id,
        spec: &run.spec,
        embeddings: embeddings.as_ref().map(|model| (model.name.as_str(), model.account.as_str())),
        submitted_us: run.created_ms.saturating_mul(1000),
        task,
        question_id: &subject.question_id,
        bank_id: &subject.bank_id,
        category: &subject.category,
        steps: &steps,
        attempts: &attempts,
        facts: facts.as_ref(),
        banks: &banks,
        db_system: if store.describe().starts_with("postgres") { "postgresql" } else { "sqlite" },
        messaging_system: (run.domain == CLUSTER_DOMAIN).then_some("rabbitmq"),
        texts,
    };
    let (spans, linked) = (question_spans(&input), bank_spans(&input));
    let sessions: BTreeSet<i64> =
        spans.iter().chain(linked.iter().map(|(_, span)| span)).map(|span| span.session).filter(|s| *s != 0).collect();
    let sessions: Vec<SessionId> = sessions.into_iter().map(SessionId).collect();
    let workers = store.session_names(&sessions).await?.into_iter().map(|(session, name)| (session.0, name)).collect();
    let trace_id = trace_id(&run.run_id, &subject.question_id);
    Ok(QuestionTrace { subject, trace_id, spans, linked, workers, facts })
}

async fn texts(store: &dyn Store, run: &RunRow, task: TaskKey) -> Result<Option<TraceTexts>, StoreError> {
    let Some(row) = store.banks(run.run_no, Some(&[task.bank()])).await?.pop() else { return Ok(None) };
    let bank = BankData::read(store, row).await?;
    let Some(question) = bank.question(task.index()) else { return Ok(None) };
    let answer = match store.step_texts(run.run_no, &[task], StepNo::ANSWER).await?.pop() {
        Some((_, StepText::Answered { answer, .. })) => Some(answer),
        _ => None,
    };
    let gold = bank.gold(&question.question_id).map(|gold| gold.gold.text());
    Ok(Some(TraceTexts { question: question.text.clone(), answer, gold }))
}

/// Finds a question by the dataset's id or by its trace id; questions that have ended are found at once, others by looking through
/// the plan.
///
/// # Errors
/// What the store meets.
pub async fn find_subject(store: &dyn Store, run: &RunRow, wanted: &str) -> Result<Option<Subject>, StoreError> {
    if let Some(facts) = store.facts_of_id(run.run_no, wanted).await? {
        return Ok(Some(Subject::from_facts(&facts)));
    }
    let is_wanted = |id: &str| id == wanted || (wanted.len() == 32 && trace_id(&run.run_id, id) == wanted);
    for row in store.banks(run.run_no, None).await? {
        if let Some(subject) = find_in(store, &row, &is_wanted).await? {
            return Ok(Some(subject));
        }
    }
    Ok(None)
}

async fn find_in(
    store: &dyn Items,
    row: &BankRow,
    is_wanted: &impl Fn(&str) -> bool,
) -> Result<Option<Subject>, StoreError> {
    let questions = read_questions(store, row).await?;
    Ok(questions.into_iter().find(|question| is_wanted(&question.question_id)).map(|question| Subject {
        task: TaskKey::question(row.bank_no, question.index),
        question_id: question.question_id,
        bank_id: row.bank_id.clone(),
        category: question.category,
    }))
}

/// The questions of a bank's sample, without what is retained and expected.
///
/// # Errors
/// What the store meets.
pub async fn read_questions(store: &dyn Items, row: &BankRow) -> Result<Vec<Question>, StoreError> {
    read_item(store, row.questions).await
}
