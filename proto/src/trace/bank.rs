//! The part of a run's own trace that its questions are linked to.

use std::collections::BTreeSet;

use super::{
    Span, SpanClass, SpanId, SpanKind, SpanLink, StoredSpan, TraceId, TraceInput,
    attributes::{self, Model},
    paths::{span_of_bank, span_of_submit},
    tree::micros,
};
use crate::{
    ids::{RunId, TaskKey, TaskKind},
    server::ServerAddress,
    step::{ReplyNote, StepNo, Timing},
};

/// One task that retained for a bank, or proved it ready.
#[derive(Debug, Clone, PartialEq)]
pub struct BankSpan {
    /// Key of the task within its run.
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
    /// Where the memory system was, for its last step.
    pub server: Option<ServerAddress>,
    /// Calls for embeddings, in the order of its steps.
    pub calls: Vec<BankCall>,
    /// Tokens that the memory system says it used itself, prompt and completion.
    pub own_tokens: (u64, u64),
}

/// A call for embeddings of what a bank retains.
#[derive(Debug, Clone, PartialEq)]
pub struct BankCall {
    /// Begin, microseconds since 1970.
    pub start_us: i64,
    /// Microseconds since 1970.
    pub end_us: i64,
    /// HTTP status, or 0.
    pub status: u16,
    /// What the reply said of itself, if there was one.
    pub reply: Option<ReplyNote>,
    /// Where the model was.
    pub server: Option<ServerAddress>,
}

impl BankSpan {
    /// The tasks behind stored steps of a bank, where its segment has come to an end: what still goes on is told with later questions.
    #[must_use]
    pub fn from_steps(bank_id: &str, steps: &[StoredSpan]) -> Vec<Self> {
        let ends = |step: &StoredSpan| match step.task.kind() {
            TaskKind::Ready => step.step == StepNo::READY || step.step == StepNo::FAILED,
            _ => step.step == StepNo::FAILED,
        };
        let ended: BTreeSet<u32> = steps.iter().filter(|step| ends(step)).map(|step| step.task.index()).collect();
        let mut spans: Vec<Self> = Vec::new();
        for step in steps.iter().filter(|step| ended.contains(&step.task.index())) {
            let Some(timing) = step.facts.timing() else { continue };
            let start_us = timing.started_us;
            // what built-in systems retain is the store's write alone
            let end_us = start_us.saturating_add(micros(timing.total_us)).max(step.stored_us.unwrap_or(i64::MIN));
            let at = spans.iter().position(|span| span.task == step.task).unwrap_or_else(|| {
                spans.push(Self {
                    task: step.task,
                    bank_id: bank_id.to_owned(),
                    start_us,
                    end_us,
                    entries: 0,
                    session: 0,
                    server: None,
                    calls: Vec::new(),
                    own_tokens: (0, 0),
                });
                spans.len() - 1
            });
            let Some(span) = spans.get_mut(at) else { continue };
            let (prompt, completion) = attributes::untold(&step.facts);
            span.own_tokens = (span.own_tokens.0.saturating_add(prompt), span.own_tokens.1.saturating_add(completion));
            span.calls.extend(calls_of(timing));
            span.start_us = span.start_us.min(start_us);
            // steps of a batch share its time; its calls may have taken longer than the share of the step that has them
            span.end_us = span.calls.iter().map(|call| call.end_us).fold(span.end_us.max(end_us), i64::max);
            span.entries += 1;
            span.session = timing.session;
            span.server = timing.server.clone().or(span.server.take());
        }
        spans
    }

    pub(super) fn id(&self, run: &RunId) -> SpanId {
        span_of_bank(run, self.task)
    }
}

fn calls_of(timing: &Timing) -> impl Iterator<Item = BankCall> {
    timing.calls.iter().enumerate().map(|(number, (offset, took, status))| {
        let start_us = timing.started_us.saturating_add(micros(*offset));
        BankCall {
            start_us,
            end_us: start_us.saturating_add(micros(*took)),
            status: *status,
            reply: timing.replies.iter().find(|reply| reply.call == number).cloned(),
            server: timing.server.clone(),
        }
    })
}

/// The part of the run's own trace that a question is linked to: the submission, and what was retained for its bank. Each begins a
/// tree of its own, linked to the submission: that is over before they begin. They are shared by many questions and sent with one of them,
/// so each comes with the task that it belongs to, the submission with [`TaskKey::OVERHEAD`].
#[must_use]
pub fn bank_spans(input: &TraceInput<'_>) -> Vec<(TaskKey, Span)> {
    let trace = TraceId::of_run(input.run);
    let submit = span_of_submit(input.run);
    let span = |id, name: &str, start_us: i64, end_us: i64, session| Span {
        trace,
        id,
        parent: None,
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
    let submitted = span(submit, "submit", input.submitted_us, input.submitted_us, 0)
        .with("bench.dataset", input.spec.dataset.name.as_str())
        .with("bench.questions", input.spec.sample.n);
    let mut spans = vec![(TaskKey::OVERHEAD, submitted)];
    for bank in input.banks {
        let name = if bank.task.kind() == TaskKind::Ready { "ready" } else { "retain" };
        let mut retained = span(bank.id(input.run), name, bank.start_us, bank.end_us, bank.session)
            .with("bench.bank.id", bank.bank_id.as_str())
            .with("bench.system", input.spec.system.name.as_str())
            .with("bench.entries", bank.entries);
        retained.links.push(SpanLink { trace, span: submit });
        retained = attributes::tokens(attributes::server(retained, bank.server.as_ref()), bank.own_tokens);
        let parent = retained.id;
        spans.push((bank.task, retained));
        for (number, call) in bank.calls.iter().enumerate() {
            let path = format!("bank/{}/call/{number}", bank.task.0);
            let id = SpanId::derive(&trace, &path);
            let model = Model::of_embeddings(input);
            let name = model.as_ref().map_or_else(|| "call".to_owned(), Model::span_name);
            let mut called = span(id, &name, call.start_us, call.end_us, bank.session);
            (called.parent, called.kind) = (Some(parent), SpanKind::Client);
            if let Some(model) = &model {
                called = model.describe(called);
            }
            if let Some(reply) = &call.reply {
                called = attributes::reply(called, reply, None);
            }
            called = attributes::server(called, call.server.as_ref());
            spans.push((bank.task, attributes::http(called, 0, call.status)));
        }
    }
    spans
}
