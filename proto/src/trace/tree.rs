//! The tree of spans of one question, built from what is stored: nothing else is needed, no collector and no process that took
//! part.
//!
//! ```text
//! question ─┬─ dispatch            ready → published
//!           ├─ queue_wait          published → claimed
//!           ├─ attempt             an earlier try that failed, or was parked
//!           ├─ recall ── call
//!           ├─ answer ─┬─ rate_wait, budget_wait, retry_wait
//!           │          └─ call     one per HTTP attempt
//!           ├─ checkpoint          step ended → stored
//!           └─ judge (one per vote, with dispatch, queue_wait and checkpoint of its own)
//! ```
//!
//! The question is linked to the submission of its run and to what was retained for its bank, which are in the run's own trace:
//! they are shared by many questions, and hours may lie between.

use serde::Serialize;

use super::{SpanId, TraceContext, TraceId};
use crate::{
    call::Usage,
    facts::QuestionFacts,
    ids::{RunId, TaskKey, TaskKind},
    spec::{ModelSpec, RunSpec},
    step::{StepFacts, StepNo, Timing},
    task::QueueName,
};

/// A stored step with the time at which the store took it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSpan {
    /// The task.
    pub task: TaskKey,
    /// The step.
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
    /// The task.
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
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: Option<String>,
    /// What was expected.
    pub gold: Option<String>,
}

/// What the tree is built of.
#[derive(Debug, Clone)]
pub struct TraceInput<'a> {
    /// The run.
    pub run: &'a RunId,
    /// Its spec.
    pub spec: &'a RunSpec,
    /// When the run was submitted, microseconds since 1970.
    pub submitted_us: i64,
    /// The question's task.
    pub task: TaskKey,
    /// The dataset's id of the question.
    pub question_id: &'a str,
    /// The dataset's id of its bank.
    pub bank_id: &'a str,
    /// Its category.
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

/// What a span is about: its colour, so to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanClass {
    /// The whole.
    Question,
    /// From ready to published.
    Dispatch,
    /// From published to claimed.
    Queue,
    /// A step.
    Step,
    /// Waiting for an allowance, money, or another attempt.
    Wait,
    /// A call to a memory system or a model.
    Call,
    /// A try that stored no step.
    Attempt,
    /// From the end of a step until it is stored.
    Checkpoint,
    /// Of the run's own trace.
    Run,
}

/// OpenTelemetry's kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// Work of this system.
    Internal,
    /// A request to another.
    Client,
    /// A message sent.
    Producer,
    /// A message received.
    Consumer,
}

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SpanValue {
    /// A text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Bool(bool),
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
impl From<u64> for SpanValue {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}
impl From<u32> for SpanValue {
    fn from(number: u32) -> Self {
        Self::Int(i64::from(number))
    }
}
impl From<f64> for SpanValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}
impl From<bool> for SpanValue {
    fn from(yes: bool) -> Self {
        Self::Bool(yes)
    }
}

/// A span of another trace that belongs to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Its trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
}

/// One span.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Its trace.
    pub trace: TraceId,
    /// Its id.
    pub id: SpanId,
    /// Whose child it is.
    pub parent: Option<SpanId>,
    /// What happened.
    pub name: String,
    /// What it is about.
    pub class: SpanClass,
    /// OpenTelemetry's kind.
    pub kind: SpanKind,
    /// Begin, microseconds since 1970.
    pub start_us: i64,
    /// End.
    pub end_us: i64,
    /// Attributes by the OpenTelemetry conventions, and our own (`bench.*`).
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// Spans of other traces.
    pub links: Vec<Link>,
    /// Why it failed.
    pub error: Option<String>,
    /// The worker session that did it; 0 when it was nobody's.
    pub session: i64,
}

impl Span {
    fn with(mut self, name: &'static str, value: impl Into<SpanValue>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }
}

/// Path of a step in its question's trace.
fn path_of(task: TaskKey, step: StepNo) -> String {
    match (task.kind(), step) {
        (TaskKind::Judge, _) => format!("judge/{}/{}", task.judge_no(), task.vote()),
        (TaskKind::Question, StepNo::RECALL) => "recall".to_owned(),
        (TaskKind::Question, StepNo::ANSWER) => "answer".to_owned(),
        _ => format!("{}/{}", task.0, step.0),
    }
}

/// The span of a step, known before it has begun.
#[must_use]
pub fn span_of_step(trace: &TraceId, task: TaskKey, step: StepNo) -> SpanId {
    SpanId::derive(trace, &path_of(task, step))
}

/// The span of the `number`th call of a step (from 0): what goes along with the request as `traceparent`.
#[must_use]
pub fn span_of_call(trace: &TraceId, task: TaskKey, step: StepNo, number: usize) -> SpanId {
    SpanId::derive(trace, &format!("{}/call/{number}", path_of(task, step)))
}

/// The span of handing a task out: what goes along with its message.
#[must_use]
pub fn span_of_dispatch(trace: &TraceId, task: TaskKey) -> SpanId {
    SpanId::derive(trace, &format!("dispatch/{}", task.0))
}

/// The whole tree of a question, its root first, children behind their parents, in the order of their begins. Empty when nothing
/// of the question has happened yet.
#[must_use]
pub fn question_spans(input: &TraceInput<'_>) -> Vec<Span> {
    let mut tree = Tree { trace: TraceId::of_question(input.run, input.question_id), input, spans: Vec::new() };
    for (at, stored) in input.steps.iter().enumerate() {
        tree.step(at, stored);
    }
    for note in input.attempts {
        tree.attempt(note);
    }
    tree.finish()
}

struct Tree<'a> {
    trace: TraceId,
    input: &'a TraceInput<'a>,
    spans: Vec<Span>,
}

fn micros(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

impl Tree<'_> {
    fn root(&self) -> SpanId {
        SpanId::derive(&self.trace, "question")
    }

    /// A child of `parent`; ends never come before begins.
    fn span(&self, parent: SpanId, path: &str, name: &str, class: SpanClass, start_us: i64, end_us: i64) -> Span {
        Span {
            trace: self.trace,
            id: SpanId::derive(&self.trace, path),
            parent: Some(parent),
            name: name.to_owned(),
            class,
            kind: SpanKind::Internal,
            start_us,
            end_us: end_us.max(start_us),
            attributes: Vec::new(),
            links: Vec::new(),
            error: None,
            session: 0,
        }
    }

    fn step(&mut self, at: usize, stored: &StoredSpan) {
        let Some(timing) = stored.facts.timing() else { return };
        // what a fork took over happened in the run that it goes on from, and is shown there
        if timing.started_us < self.input.submitted_us && stored.stored_us.is_none() {
            return;
        }
        let (task, begin) = (stored.task, timing.started_us);
        let end = begin.saturating_add(micros(timing.total_us));
        self.before(task, stored.step, begin, timing);
        let step = match (task.kind(), &stored.facts) {
            // a failure has the place of the step that it came to
            (TaskKind::Question, StepFacts::Failed { .. }) => self.failed_at(task),
            _ => stored.step,
        };
        let path = path_of(task, step);
        let name = match (task.kind(), step) {
            (TaskKind::Judge, _) => "judge",
            (_, StepNo::RECALL) => "recall",
            _ => "answer",
        };
        let mut span = self.span(self.root(), &path, name, SpanClass::Step, begin, end);
        span.session = timing.session;
        span = span.with("bench.attempts", timing.attempts);
        if task.kind() == TaskKind::Judge {
            span = span.with("bench.judge", u64::from(task.judge_no())).with("bench.vote", u64::from(task.vote()));
        }
        span = self.facts_of(span, &stored.facts, task, step);
        let id = span.id;
        self.spans.push(span);
        self.inside(id, &path, task, step, timing, &stored.facts);
        self.checkpoint(at, stored, &path, end);
    }

    /// The step that a question had come to when it failed.
    fn failed_at(&self, task: TaskKey) -> StepNo {
        let recalled = self.input.steps.iter().any(|s| s.task == task && s.step == StepNo::RECALL);
        if recalled { StepNo::ANSWER } else { StepNo::RECALL }
    }

    /// Handing out and queueing, for the first step after a claim.
    fn before(&mut self, task: TaskKey, step: StepNo, claimed_us: i64, timing: &Timing) {
        if timing.queue_wait_us == 0 {
            return;
        }
        let first = self.input.steps.iter().find(|s| s.task == task).is_some_and(|s| s.step == step);
        // a task that was claimed again goes on with a later step: its first hand-out keeps the id that messages carry
        let again = if first { String::new() } else { format!("/{}", step.0) };
        let queue = QueueName::new(self.input.spec.limits.pool.clone(), task.kind().role()).wire_name();
        let ready = claimed_us.saturating_sub(micros(timing.queue_wait_us));
        let published = ready.saturating_add(micros(timing.dispatch_us)).min(claimed_us);
        let message = |span: Span, operation: &str| match self.input.messaging_system {
            None => span,
            Some(system) => span
                .with("messaging.system", system)
                .with("messaging.destination.name", queue.clone())
                .with("messaging.operation.type", operation)
                .with("messaging.operation.name", operation)
                .with("messaging.message.id", format!("{}:{}", self.input.run, task.0)),
        };
        let path = format!("dispatch/{}{again}", task.0);
        let dispatch = self.span(self.root(), &path, "dispatch", SpanClass::Dispatch, ready, published);
        let dispatch = message(Span { kind: SpanKind::Producer, ..dispatch }, "send");
        let path = format!("queue/{}{again}", task.0);
        let queue_wait = self.span(self.root(), &path, "queue_wait", SpanClass::Queue, published, claimed_us);
        let queue_wait = Span { kind: SpanKind::Consumer, session: timing.session, ..queue_wait };
        let queue_wait = message(queue_wait, "receive");
        self.spans.extend([dispatch, queue_wait]);
    }

    fn facts_of(&self, span: Span, facts: &StepFacts, task: TaskKey, step: StepNo) -> Span {
        let span = match facts {
            StepFacts::Recalled { hits, effective_k, context_bytes, generation, .. } => span
                .with("bench.system", self.input.spec.system.name.as_str())
                .with("bench.hits", *hits)
                .with("bench.k", *effective_k)
                .with("bench.context_bytes", *context_bytes)
                .with("bench.generation", u64::try_from(*generation).unwrap_or(0)),
            StepFacts::Answered { finish, .. } => span.with("gen_ai.response.finish_reasons", finish.as_str()),
            StepFacts::Judged { score, .. } => span.with("bench.score", *score),
            StepFacts::Failed { failure, .. } => {
                let mut span = span.with("error.type", failure.code.as_str());
                span.error = Some(format!("{}: {}", failure.code, failure.message));
                span
            }
            StepFacts::Retained { .. }
            | StepFacts::Consolidated { .. }
            | StepFacts::Ready { .. }
            | StepFacts::Scored { .. } => span,
        };
        let span = match self.model(task, step) {
            Some(model) => gen_ai(span, model),
            None => span,
        };
        match facts.usage() {
            Some(usage) => used(span, usage),
            None => span,
        }
    }

    /// The model that a step calls.
    fn model(&self, task: TaskKey, step: StepNo) -> Option<&ModelSpec> {
        let model = match task.kind() {
            TaskKind::Judge => self.input.spec.judges.get(task.judge_no() as usize)?,
            _ if step == StepNo::ANSWER => &self.input.spec.answerer,
            _ => return None,
        };
        model.is_remote().then_some(model)
    }

    /// Waits and calls inside a step.
    fn inside(&mut self, parent: SpanId, path: &str, task: TaskKey, step: StepNo, timing: &Timing, facts: &StepFacts) {
        let place = |offset: u64, duration: u64| {
            let begin = timing.started_us.saturating_add(micros(offset));
            (begin, begin.saturating_add(micros(duration)))
        };
        for (number, (offset, duration, what)) in timing.waits.iter().enumerate() {
            let (begin, end) = place(*offset, *duration);
            let mut span =
                self.span(parent, &format!("{path}/wait/{number}"), what.name(), SpanClass::Wait, begin, end);
            span.session = timing.session;
            self.spans.push(span);
        }
        let model = self.model(task, step).cloned();
        for (number, (offset, duration, status)) in timing.calls.iter().enumerate() {
            let (begin, end) = place(*offset, *duration);
            let name = model.as_ref().map_or_else(|| "call".to_owned(), |model| format!("chat {}", model.name));
            let span = self.span(parent, &format!("{path}/call/{number}"), &name, SpanClass::Call, begin, end);
            let mut span = Span { kind: SpanKind::Client, session: timing.session, ..span }
                .with("http.request.method", "POST")
                .with("http.request.resend_count", number as u64);
            if let Some(model) = &model {
                span = gen_ai(span, model);
            }
            match status {
                0 => {
                    span = span.with("error.type", "transport");
                    span.error = Some("no reply".to_owned());
                }
                status => {
                    span = span.with("http.response.status_code", u64::from(*status));
                    if *status >= 400 {
                        span = span.with("error.type", status.to_string());
                        span.error = Some(format!("HTTP {status}"));
                    }
                }
            }
            self.spans.push(span);
        }
        if let StepFacts::Recalled { .. } = facts
            && timing.calls.is_empty()
            && timing.provider_us > 0
        {
            let (begin, end) = place(0, timing.provider_us);
            let system = &self.input.spec.system.name;
            let span =
                self.span(parent, &format!("{path}/call/0"), &format!("search {system}"), SpanClass::Call, begin, end);
            let span = Span { kind: SpanKind::Client, session: timing.session, ..span }
                .with("db.system.name", system.as_str())
                .with("db.operation.name", "search");
            self.spans.push(span);
        }
    }

    /// From the end of a step until it was stored; steps that were stored together have one.
    fn checkpoint(&mut self, at: usize, stored: &StoredSpan, path: &str, end: i64) {
        let Some(stored_us) = stored.stored_us else { return };
        let later = self.input.steps.iter().skip(at + 1).filter(|s| s.task == stored.task);
        let together = later.filter_map(|s| s.facts.timing()).any(|timing| timing.started_us < stored_us);
        if together {
            return;
        }
        let span =
            self.span(self.root(), &format!("{path}/checkpoint"), "checkpoint", SpanClass::Checkpoint, end, stored_us);
        let session = stored.facts.timing().map_or(0, |timing| timing.session);
        let span = Span { kind: SpanKind::Client, session, ..span }
            .with("db.system.name", self.input.db_system)
            .with("db.operation.name", "INSERT")
            .with("db.collection.name", "checkpoints")
            .with("bench.step", path);
        self.spans.push(span);
    }

    fn attempt(&mut self, note: &AttemptNote) {
        let end = note.started_us.saturating_add(micros(note.total_us));
        let path = format!("attempt/{}/{}", note.task.0, note.epoch);
        if note.queue_wait_us > 0 {
            let ready = note.started_us.saturating_sub(micros(note.queue_wait_us));
            let queue_path = format!("{path}/queue");
            let wait = self.span(self.root(), &queue_path, "queue_wait", SpanClass::Queue, ready, note.started_us);
            self.spans.push(Span { kind: SpanKind::Consumer, session: note.session, ..wait });
        }
        let mut span = self.span(self.root(), &path, "attempt", SpanClass::Attempt, note.started_us, end);
        span.session = note.session;
        span =
            span.with("bench.reason", note.reason.as_str()).with("bench.epoch", u64::try_from(note.epoch).unwrap_or(0));
        let waits = match note.end {
            AttemptEnd::Retried => {
                span.error = Some(note.reason.clone());
                "retry_wait"
            }
            AttemptEnd::Parked => "parked",
        };
        self.spans.push(span);
        if note.delay_us > 0 {
            let wait = self.span(
                self.root(),
                &format!("{path}/wait"),
                waits,
                SpanClass::Wait,
                end,
                end.saturating_add(micros(note.delay_us)),
            );
            self.spans.push(wait.with("bench.reason", note.reason.as_str()));
        }
    }

    fn finish(mut self) -> Vec<Span> {
        let (Some(start), Some(end)) =
            (self.spans.iter().map(|s| s.start_us).min(), self.spans.iter().map(|s| s.end_us).max())
        else {
            return Vec::new();
        };
        let input = self.input;
        let mut root = self.span(self.root(), "question", "question", SpanClass::Question, start, end);
        root.parent = None;
        root.links.push(Link { trace: TraceId::of_run(input.run), span: submit_span(input.run) });
        root.links.extend(
            input.banks.iter().map(|bank| Link { trace: TraceId::of_run(input.run), span: bank.id(input.run) }),
        );
        root.attributes = vec![
            ("bench.run.id", input.run.0.as_str().into()),
            ("bench.bank.id", input.bank_id.into()),
            ("bench.question.id", input.question_id.into()),
            ("bench.question.category", input.category.into()),
            ("bench.dataset", input.spec.dataset.name.as_str().into()),
            ("bench.system", input.spec.system.name.as_str().into()),
            ("bench.run.submitted_us", SpanValue::Int(input.submitted_us)),
        ];
        if let Some(facts) = input.facts {
            root = root.with("bench.outcome", facts.outcome.name()).with("bench.attempts", facts.attempts);
            if let Some(kept) = facts.kept {
                root = root.with("bench.trace.kept", kept.name());
            }
            let headline = input.spec.headline_metric();
            if let Some((_, score)) = facts.scores.iter().find(|(metric, _)| *metric == headline) {
                root = root.with("bench.score.metric", headline).with("bench.score", *score);
            }
            let mut total = facts.usage.recall;
            total += facts.usage.answer;
            total += facts.usage.judge;
            root = used(root, &total);
            root.error = facts.failure.as_ref().map(ToString::to_string);
        }
        if let Some(texts) = &input.texts {
            root = root.with("bench.question.text", texts.question.as_str());
            if let Some(answer) = &texts.answer {
                root = root.with("bench.answer.text", answer.as_str());
            }
            if let Some(gold) = &texts.gold {
                root = root.with("bench.gold.text", gold.as_str());
            }
        }
        self.spans.sort_by_key(|span| (span.start_us, span.end_us));
        let mut ordered = Vec::with_capacity(self.spans.len() + 1);
        take_with_children(root, &mut self.spans, &mut ordered);
        ordered
    }
}

/// Moves a span and, behind it, everything below it.
fn take_with_children(span: Span, spans: &mut Vec<Span>, ordered: &mut Vec<Span>) {
    let id = span.id;
    ordered.push(span);
    while let Some(at) = spans.iter().position(|child| child.parent == Some(id)) {
        let child = spans.remove(at);
        take_with_children(child, spans, ordered);
    }
}

fn gen_ai(span: Span, model: &ModelSpec) -> Span {
    span.with("gen_ai.operation.name", "chat")
        .with("gen_ai.provider.name", model.provider.as_str())
        .with("gen_ai.request.model", model.name.as_str())
        .with("bench.account", model.account.as_str())
}

fn used(span: Span, usage: &Usage) -> Span {
    if *usage == Usage::default() {
        return span;
    }
    span.with("gen_ai.usage.input_tokens", usage.prompt_tokens)
        .with("gen_ai.usage.output_tokens", usage.completion_tokens)
        .with("bench.cost_usd", usage.cost.usd())
        .with("bench.cached_calls", usage.cached_calls)
        .with("bench.rate_limited", usage.rate_limited)
}

fn submit_span(run: &RunId) -> SpanId {
    SpanId::derive(&TraceId::of_run(run), "submit")
}

/// One task that retained for a bank, or proved it ready.
#[derive(Debug, Clone, PartialEq)]
pub struct BankSpan {
    /// The task.
    pub task: TaskKey,
    /// The dataset's id of the bank.
    pub bank_id: String,
    /// Begin of its first step, microseconds since 1970.
    pub start_us: i64,
    /// End of its last.
    pub end_us: i64,
    /// Steps.
    pub entries: u64,
    /// The worker session of its last step.
    pub session: i64,
}

impl BankSpan {
    /// The tasks behind stored steps of a bank.
    #[must_use]
    pub fn of(bank_id: &str, steps: &[StoredSpan]) -> Vec<Self> {
        let mut spans: Vec<Self> = Vec::new();
        for step in steps {
            let Some(timing) = step.facts.timing() else { continue };
            let start_us = timing.started_us;
            // what built-in systems retain is the store's write alone
            let end_us = start_us.saturating_add(micros(timing.total_us)).max(step.stored_us.unwrap_or(i64::MIN));
            match spans.iter_mut().find(|span| span.task == step.task) {
                Some(span) => {
                    span.start_us = span.start_us.min(start_us);
                    span.end_us = span.end_us.max(end_us);
                    span.entries += 1;
                    span.session = timing.session;
                }
                None => spans.push(Self {
                    task: step.task,
                    bank_id: bank_id.to_owned(),
                    start_us,
                    end_us,
                    entries: 1,
                    session: timing.session,
                }),
            }
        }
        spans
    }

    fn id(&self, run: &RunId) -> SpanId {
        SpanId::derive(&TraceId::of_run(run), &format!("bank/{}", self.task.0))
    }
}

/// The part of the run's own trace that a question is linked to: the submission, and what was retained for its bank.
#[must_use]
pub fn bank_spans(input: &TraceInput<'_>) -> Vec<Span> {
    let trace = TraceId::of_run(input.run);
    let submit = submit_span(input.run);
    let span = |id, parent, name: &str, start_us: i64, end_us: i64, session| Span {
        trace,
        id,
        parent,
        name: name.to_owned(),
        class: SpanClass::Run,
        kind: SpanKind::Internal,
        start_us,
        end_us: end_us.max(start_us),
        attributes: vec![("bench.run.id", input.run.0.as_str().into())],
        links: Vec::new(),
        error: None,
        session,
    };
    let mut spans = vec![
        span(submit, None, "submit", input.submitted_us, input.submitted_us, 0)
            .with("bench.dataset", input.spec.dataset.name.as_str())
            .with("bench.questions", input.spec.sample.n),
    ];
    for bank in input.banks {
        let name = if bank.task.kind() == TaskKind::Ready { "ready" } else { "retain" };
        let span = span(bank.id(input.run), Some(submit), name, bank.start_us, bank.end_us, bank.session)
            .with("bench.bank.id", bank.bank_id.as_str())
            .with("bench.system", input.spec.system.name.as_str())
            .with("bench.entries", bank.entries);
        spans.push(span);
    }
    spans
}

impl TraceContext {
    /// What goes along with the message of a task that retains for a bank or proves it ready.
    #[must_use]
    pub fn of_bank_message(run: &RunId, policy: &crate::trace::TracePolicy, task: TaskKey) -> Self {
        let trace = TraceId::of_run(run);
        Self { trace, span: SpanId::derive(&trace, &format!("bank/{}", task.0)), sampled: policy.samples(&trace) }
    }

    /// What goes along with the message of a question's task.
    #[must_use]
    pub fn of_message(run: &RunId, spec: &crate::trace::TracePolicy, question_id: &str, task: TaskKey) -> Self {
        let trace = TraceId::of_question(run, question_id);
        Self { trace, span: span_of_dispatch(&trace, task), sampled: spec.samples(&trace) }
    }
}

#[cfg(test)]
mod tests;
