//! The part of a run's own trace that its questions are linked to.

use super::{
    Span, SpanClass, SpanId, SpanKind, StoredSpan, TraceId, TraceInput, attributes,
    paths::{span_of_bank, span_of_submit},
    tree::micros,
};
use crate::{
    ids::{RunId, TaskKey, TaskKind},
    server::ServerAddress,
};

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
    /// Where the memory system was, for its last step.
    pub server: Option<ServerAddress>,
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
                    span.server = timing.server.clone().or(span.server.take());
                }
                None => spans.push(Self {
                    task: step.task,
                    bank_id: bank_id.to_owned(),
                    start_us,
                    end_us,
                    entries: 1,
                    session: timing.session,
                    server: timing.server.clone(),
                }),
            }
        }
        spans
    }

    pub(super) fn id(&self, run: &RunId) -> SpanId {
        span_of_bank(run, self.task)
    }
}

/// The part of the run's own trace that a question is linked to: the submission, and what was retained for its bank.
#[must_use]
pub fn bank_spans(input: &TraceInput<'_>) -> Vec<Span> {
    let trace = TraceId::of_run(input.run);
    let submit = span_of_submit(input.run);
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
        spans.push(attributes::server(span, bank.server.as_ref()));
    }
    spans
}
