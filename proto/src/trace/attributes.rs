//! What spans tell, by OpenTelemetry's semantic conventions (1.41: `gen_ai.*`, `messaging.*`, `db.*`, `http.*`, `error.type`); names that
//! begin with `bench.` are our own. Servers are named by `server.address` and `server.port` alone: paths and queries of URLs may hold keys,
//! and nobody stores them.

use super::{Span, SpanValue, TraceInput};
use crate::{
    call::Usage,
    facts::QuestionFacts,
    ids::{TaskKey, TaskKind},
    server::ServerAddress,
    step::{ReplyNote, StepFacts, StepNo},
};

/// A model that a step calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Model<'a> {
    /// The conventions' name of what is asked of it.
    operation: &'static str,
    provider: &'a str,
    name: &'a str,
    account: &'a str,
}

impl<'a> Model<'a> {
    /// The model that a step of a run calls, when it calls one.
    pub(super) fn called_by(input: &TraceInput<'a>, task: TaskKey, step: StepNo) -> Option<Self> {
        let model = match task.kind() {
            TaskKind::Judge => input.spec.judges.get(task.judge_no() as usize)?,
            TaskKind::Question if step == StepNo::ANSWER || step.is_phrase() => &input.spec.answerer,
            TaskKind::Question if step == StepNo::RECALL || step.is_search() => return Self::of_embeddings(input),
            _ => return None,
        };
        let chat = Self { operation: "chat", provider: &model.provider, name: &model.name, account: &model.account };
        model.is_remote().then_some(chat)
    }

    /// The embedding model of a system that searches by vectors, where a server makes them.
    pub(super) fn of_embeddings(input: &TraceInput<'a>) -> Option<Self> {
        let (name, account) = input.embeddings?;
        let provider = if account == "azure" { "azure" } else { "openai" };
        Some(Self { operation: "embeddings", provider, name, account })
    }

    /// The conventions' name of a call's span.
    pub(super) fn span_name(&self) -> String {
        format!("{} {}", self.operation, self.name)
    }

    /// A call to the model.
    pub(super) fn describe(&self, span: Span) -> Span {
        span.with("gen_ai.operation.name", self.operation)
            .with("gen_ai.provider.name", conventional_provider(self.provider))
            .with("gen_ai.request.model", self.name)
            .with("bench.account", self.account)
    }
}

/// Where a call went.
pub(super) fn server(span: Span, server: Option<&ServerAddress>) -> Span {
    match server {
        None => span,
        Some(server) => span.with("server.address", server.name.as_str()).with("server.port", u64::from(server.port)),
    }
}

/// OpenTelemetry's name of a provider of ours (`gen_ai.provider.name`).
#[must_use]
pub fn conventional_provider(name: &str) -> &str {
    match name {
        "azure" => "azure.ai.openai",
        name => name,
    }
}

/// What calls have cost. Tokens are told by the span of each call alone, see [`tokens`].
fn used(span: Span, usage: &Usage) -> Span {
    if *usage == Usage::default() {
        return span;
    }
    span.with("bench.cost_usd", usage.cost.usd())
        .with("bench.cached_calls", usage.cached_calls)
        .with("bench.rate_limited", usage.rate_limited)
}

/// Tokens, prompt and completion. Each is told by one span of all, so that sums over spans are sums of tokens.
pub(super) fn tokens(span: Span, (prompt, completion): (u64, u64)) -> Span {
    match (prompt, completion) {
        (0, 0) => span,
        _ => span.with("gen_ai.usage.input_tokens", prompt).with("gen_ai.usage.output_tokens", completion),
    }
}

/// What a reply said of itself, and why it ended, where that is known.
pub(super) fn reply(span: Span, reply: &ReplyNote, finish: Option<&str>) -> Span {
    let mut span = tokens(span, (reply.prompt_tokens, reply.completion_tokens));
    if !reply.served.model.is_empty() {
        span = span.with("gen_ai.response.model", reply.served.model.as_str());
    }
    if let Some(fingerprint) = &reply.served.fingerprint {
        span = span.with("openai.response.system_fingerprint", fingerprint.as_str());
    }
    match finish {
        // an answer without a word is one that ended freely
        Some("empty") => span.with("gen_ai.response.finish_reasons", SpanValue::Texts(vec!["stop".to_owned()])),
        Some(finish) => span.with("gen_ai.response.finish_reasons", SpanValue::Texts(vec![finish.to_owned()])),
        None => span,
    }
}

/// Tokens of a step that no reply has told of: those that a memory system says it used itself, and all of a step that an older
/// build has stored.
pub(super) fn untold(facts: &StepFacts) -> (u64, u64) {
    let (Some(usage), Some(timing)) = (facts.usage(), facts.timing()) else { return (0, 0) };
    let told = |of: fn(&ReplyNote) -> u64| timing.replies.iter().map(of).fold(0, u64::saturating_add);
    (
        usage.prompt_tokens.saturating_sub(told(|reply| reply.prompt_tokens)),
        usage.completion_tokens.saturating_sub(told(|reply| reply.completion_tokens)),
    )
}

/// Which vote of which judge something belongs to; nothing for the question's own steps.
pub(super) fn vote(span: Span, task: TaskKey) -> Span {
    match task.kind() {
        TaskKind::Judge => {
            span.with("bench.judge", u64::from(task.judge_no())).with("bench.vote", u64::from(task.vote()))
        }
        _ => span,
    }
}

/// A message on its way through a broker: `send` or `receive`. Messages go through the default exchange, whose destinations are named by
/// their routing key.
pub(super) fn message(span: Span, input: &TraceInput<'_>, task: TaskKey, queue: &str, operation: &str) -> Span {
    let Some(system) = input.messaging_system else { return span };
    span.with("messaging.system", system)
        .with("messaging.destination.name", queue)
        .with("messaging.rabbitmq.destination.routing_key", queue)
        .with("messaging.operation.type", operation)
        .with("messaging.operation.name", operation)
        .with("messaging.message.id", format!("{}:{}", input.run, task.0))
}

/// An HTTP attempt and how it was answered; `status` is 0 when it was not. `number` counts the attempts before it.
pub(super) fn http(span: Span, number: usize, status: u16) -> Span {
    let mut span = span.with("http.request.method", "POST");
    if number > 0 {
        span = span.with("http.request.resend_count", number as u64);
    }
    if status == 0 {
        span.error = Some("no reply".to_owned());
        return span.with("error.type", "transport");
    }
    span = span.with("http.response.status_code", u64::from(status));
    if status >= 400 {
        span = span.with("error.type", status.to_string());
        span.error = Some(format!("HTTP {status}"));
    }
    span
}

/// A database operation.
pub(super) fn database(span: Span, system: &str, operation: &str, collection: Option<&str>) -> Span {
    let span = span.with("db.system.name", system).with("db.operation.name", operation);
    match collection {
        Some(collection) => span.with("db.collection.name", collection),
        None => span,
    }
}

/// What a step came to.
pub(super) fn facts_of(span: Span, input: &TraceInput<'_>, facts: &StepFacts) -> Span {
    let span = match facts {
        StepFacts::Recalled { hits, effective_k, context_bytes, generation, .. } => span
            .with("bench.system", input.spec.system.name.as_str())
            .with("bench.hits", *hits)
            .with("bench.k", *effective_k)
            .with("bench.context_bytes", *context_bytes)
            .with("bench.generation", u64::try_from(*generation).unwrap_or(0)),
        StepFacts::Searched { hits, effective_k, generation, .. } => span
            .with("bench.system", input.spec.system.name.as_str())
            .with("bench.hits", *hits)
            .with("bench.k", *effective_k)
            .with("bench.generation", u64::try_from(*generation).unwrap_or(0)),
        StepFacts::Judged { score: Some(score), .. } => span.with("bench.score", *score),
        StepFacts::Failed { failure, .. } => {
            let mut span = span.with("error.type", failure.code.as_str());
            span.error = Some(format!("{}: {}", failure.code, failure.message));
            span
        }
        StepFacts::Retained { .. }
        | StepFacts::Consolidated { .. }
        | StepFacts::Ready { .. }
        | StepFacts::Probed(_)
        | StepFacts::Listed(_)
        | StepFacts::Phrased { .. }
        | StepFacts::Answered { .. }
        | StepFacts::Judged { .. }
        | StepFacts::JudgedPart { .. }
        | StepFacts::Scored { .. } => span,
    };
    match facts.usage() {
        Some(usage) => used(span, usage),
        None => span,
    }
}

/// What the question is, and what it came to.
pub(super) fn root(mut root: Span, input: &TraceInput<'_>) -> Span {
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
        root = ended(root, input, facts);
    }
    let Some(texts) = &input.texts else { return root };
    root = root.with("bench.question.text", texts.question.as_str());
    if let Some(answer) = &texts.answer {
        root = root.with("bench.answer.text", answer.as_str());
    }
    match &texts.gold {
        Some(gold) => root.with("bench.gold.text", gold.as_str()),
        None => root,
    }
}

fn ended(mut root: Span, input: &TraceInput<'_>, facts: &QuestionFacts) -> Span {
    root = root.with("bench.outcome", facts.outcome.name()).with("bench.attempts", facts.attempts);
    if let Some(kept) = facts.kept {
        root = root.with("bench.trace.kept", kept.name());
    }
    let headline = input.spec.headline_metric();
    if let Some(score) = facts.score(&headline) {
        root = root.with("bench.score.metric", headline).with("bench.score", score);
    }
    let mut total = facts.usage.recall;
    total += facts.usage.answer;
    total += facts.usage.judge;
    root = used(root, &total);
    if let Some(failure) = &facts.failure {
        root = root.with("error.type", failure.code.as_str());
        root.error = Some(failure.to_string());
    }
    root
}
