//! The tree of spans of one question, built from what is stored: nothing else is needed, no collector and no process that took
//! part.
//!
//! ```text
//! question ─┬─ dispatch            ready → published
//!           ├─ queue_wait          published → claimed
//!           ├─ attempt             an earlier try that failed, or was parked
//!           ├─ phrase, search      a move of a model and one of several recalls, as often as there are
//!           ├─ recall ── call      of several recalls what they found together, without a call
//!           ├─ answer ─┬─ rate_wait, budget_wait, retry_wait
//!           │          └─ call     one per HTTP attempt
//!           ├─ checkpoint          step ended → stored
//!           └─ judge (one per vote, with dispatch, queue_wait and checkpoint of its own; a vote of several calls has a
//!                    judge_call for each beside it)
//! ```
//!
//! The question is linked to the submission of its run and to what was retained for its bank, which are in the run's own trace:
//! they are shared by many questions, and hours may lie between.

use super::{
    AttemptEnd, AttemptNote, Span, SpanClass, SpanId, SpanKind, SpanLink, StoredSpan, TraceId, TraceInput,
    attributes::{self, Model},
    paths::{path_of, span_of_question, span_of_submit},
};
use crate::{
    ids::{TaskKey, TaskKind},
    scenario::RecallPlan,
    step::{StepFacts, StepNo, Timing},
    task::QueueName,
};

/// The whole tree of a question, its root first, children behind their parents, in the order of their begins. Empty when nothing
/// of the question has happened yet.
#[must_use]
pub fn question_spans(input: &TraceInput<'_>) -> Vec<Span> {
    if input.spec.recalls.is_once() {
        return spans_of(input);
    }
    // numbers of several recalls lie behind that of what they found together
    let mut steps = input.steps.to_vec();
    steps.sort_by_key(|stored| stored.facts.timing().map_or(i64::MAX, |timing| timing.started_us));
    spans_of(&TraceInput { steps: &steps, ..input.clone() })
}

fn spans_of(input: &TraceInput<'_>) -> Vec<Span> {
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

/// From when to when, in microseconds since 1970.
#[derive(Clone, Copy)]
struct Period {
    start_us: i64,
    end_us: i64,
}

const fn from_to(start_us: i64, end_us: i64) -> Period {
    Period { start_us, end_us }
}

/// A step that has its span.
struct StepInTree<'a> {
    span: SpanId,
    path: &'a str,
    task: TaskKey,
    /// The step that it is shown as.
    step: StepNo,
    timing: &'a Timing,
    facts: &'a StepFacts,
}

pub(super) fn micros(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

impl Tree<'_> {
    fn root(&self) -> SpanId {
        span_of_question(&self.trace)
    }

    /// A child of `parent`; ends never come before begins.
    fn span(&self, parent: SpanId, path: &str, name: &str, class: SpanClass, during: Period) -> Span {
        let Period { start_us, end_us } = during;
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
        let end = begin.saturating_add(micros(whole(timing)));
        self.before(task, stored.step, begin, timing);
        let step = match (task.kind(), &stored.facts) {
            // a failure has the place of the step that it came to
            (TaskKind::Question, StepFacts::Failed { .. }) => self.failed_at(task),
            _ => stored.step,
        };
        let path = match step {
            // a model that searches by itself does not know ahead that it will answer: the call was sent as its next move
            StepNo::ANSWER if self.input.spec.recalls.at_most > 0 => {
                let moves = self.input.steps.iter().filter(|s| s.task == task && s.step.is_phrase()).count();
                path_of(task, StepNo::phrase(u32::try_from(moves).unwrap_or(u32::MAX)))
            }
            step => path_of(task, step),
        };
        let name = match (task.kind(), step) {
            (TaskKind::Judge, step) if step.call_of_vote().is_some() => "judge_call",
            (TaskKind::Judge, _) => "judge",
            (_, StepNo::RECALL) => "recall",
            (_, StepNo::SCORE) => "score",
            (_, step) if step.is_phrase() => "phrase",
            (_, step) if step.is_search() => "search",
            _ => "answer",
        };
        let mut span = self.span(self.root(), &path, name, SpanClass::Step, from_to(begin, end));
        span.session = timing.session;
        span = span.with("bench.attempts", timing.attempts);
        if let Some(no) = step.call_of_vote().filter(|_| task.kind() == TaskKind::Judge) {
            span = span.with("bench.call", u64::from(no));
        }
        span = attributes::facts_of(attributes::vote(span, task), self.input, &stored.facts);
        if !self.inside(&StepInTree { span: span.id, path: &path, task, step, timing, facts: &stored.facts }) {
            span = attributes::tokens(span, attributes::untold(&stored.facts));
        }
        self.spans.push(span);
        self.checkpoint(at, stored, &path, end);
    }

    /// The step that a question had come to when it failed: the first that is not stored.
    fn failed_at(&self, task: TaskKey) -> StepNo {
        let is_missing = |step: &StepNo| !self.input.steps.iter().any(|s| s.task == task && s.step == *step);
        let RecallPlan { rephrased, at_most } = self.input.spec.recalls;
        if is_missing(&StepNo::RECALL) && (rephrased > 0 || at_most > 0) {
            let phrases = if rephrased > 0 { 1 } else { at_most + 1 };
            let of = |n: u32| [(n < phrases).then(|| StepNo::phrase(n)), Some(StepNo::search(n))].into_iter().flatten();
            let steps = (0..self.input.spec.recalls.most()).flat_map(of);
            return steps.into_iter().find(is_missing).unwrap_or(StepNo::ANSWER);
        }
        let before: &[StepNo] = match self.input.spec.scenario.answers() {
            true => &[StepNo::RECALL, StepNo::ANSWER],
            false => &[StepNo::RECALL],
        };
        before.iter().copied().find(is_missing).unwrap_or(StepNo::SCORE)
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
        let message =
            |span, operation| attributes::message(attributes::vote(span, task), self.input, task, &queue, operation);
        let path = format!("dispatch/{}{again}", task.0);
        let dispatch = self.span(self.root(), &path, "dispatch", SpanClass::Dispatch, from_to(ready, published));
        let dispatch = message(Span { kind: SpanKind::Producer, ..dispatch }, "send");
        let path = format!("queue/{}{again}", task.0);
        let queue_wait = self.span(self.root(), &path, "queue_wait", SpanClass::Queue, from_to(published, claimed_us));
        let queue_wait = Span { kind: SpanKind::Consumer, session: timing.session, ..queue_wait };
        let queue_wait = message(queue_wait, "receive");
        self.spans.extend([dispatch, queue_wait]);
    }

    /// Waits and calls inside a step. Returns whether one of them tells of the tokens that no reply has told of.
    fn inside(&mut self, of: &StepInTree<'_>) -> bool {
        let StepInTree { span: parent, path, timing, facts, .. } = *of;
        let place = |offset: u64, duration: u64| {
            let begin = timing.started_us.saturating_add(micros(offset));
            from_to(begin, begin.saturating_add(micros(duration)))
        };
        let builds = [("build", 0, timing.build_us), ("build_wait", timing.build_us, timing.build_wait_us)];
        for (name, offset, duration) in builds.into_iter().filter(|(.., duration)| *duration > 0) {
            let span = self.span(parent, &format!("{path}/{name}"), name, SpanClass::Wait, place(offset, duration));
            self.spans.push(Span { session: timing.session, ..span });
        }
        for (number, (offset, duration, what)) in timing.waits.iter().enumerate() {
            let (path, times) = (format!("{path}/wait/{number}"), place(*offset, *duration));
            let mut span = self.span(parent, &path, what.name(), SpanClass::Wait, times);
            span.session = timing.session;
            self.spans.push(span);
        }
        let model = Model::called_by(self.input, of.task, of.step);
        let call = |number: usize, name: &str, during: Period| {
            let span = self.span(parent, &format!("{path}/call/{number}"), name, SpanClass::Call, during);
            let span = Span { kind: SpanKind::Client, session: timing.session, ..span };
            attributes::server(span, timing.server.as_ref())
        };
        let mut calls = Vec::with_capacity(timing.calls.len().max(1));
        for (number, (offset, duration, status)) in timing.calls.iter().enumerate() {
            let name = model.as_ref().map_or_else(|| "call".to_owned(), Model::span_name);
            let span = call(number, &name, place(*offset, *duration));
            let mut span = match &model {
                Some(model) => model.describe(span),
                None => span,
            };
            if let Some(reply) = timing.replies.iter().find(|reply| reply.call == number) {
                // the step rests on its last reply
                let finish = match facts {
                    StepFacts::Answered { finish, .. } if timing.replies.last() == Some(reply) => Some(finish.as_str()),
                    _ => None,
                };
                span = attributes::reply(span, reply, finish);
            }
            calls.push(attributes::http(span, number, *status));
        }
        let mut is_told = false;
        if let Some(operation) = self.of_system(facts)
            && timing.calls.is_empty()
            && timing.provider_us > 0
        {
            let times = place(timing.build_us + timing.build_wait_us, timing.provider_us);
            let system = &self.input.spec.system.name;
            let span = call(0, &format!("{operation} {system}"), times);
            // a memory system's own tokens belong to what was asked of it
            let span = attributes::tokens(span, attributes::untold(facts));
            is_told = true;
            calls.push(attributes::database(span, system, operation, None));
        }
        self.spans.extend(calls);
        is_told
    }

    /// What a step asked of the memory system itself.
    fn of_system(&self, facts: &StepFacts) -> Option<&'static str> {
        match facts {
            StepFacts::Recalled { .. } | StepFacts::Searched { .. } => Some("search"),
            StepFacts::Answered { .. } if self.input.spec.answerer.provider == "system" => Some("answer"),
            _ => None,
        }
    }

    /// From the end of a step until it was stored; steps that were stored together have one.
    fn checkpoint(&mut self, at: usize, stored: &StoredSpan, path: &str, end: i64) {
        let Some(stored_us) = stored.stored_us else { return };
        // the replies of a vote are stored as they come
        let later = self.input.steps.iter().skip(at + 1);
        let later = later.filter(|s| s.task == stored.task && s.task.kind() != TaskKind::Judge);
        let together = later.filter_map(|s| s.facts.timing()).any(|timing| timing.started_us < stored_us);
        if together {
            return;
        }
        let span = self.span(
            self.root(),
            &format!("{path}/checkpoint"),
            "checkpoint",
            SpanClass::Checkpoint,
            from_to(end, stored_us),
        );
        let session = stored.facts.timing().map_or(0, |timing| timing.session);
        let span = Span { kind: SpanKind::Client, session, ..span };
        let span = attributes::database(span, self.input.db_system, "INSERT", Some("checkpoints"));
        self.spans.push(attributes::vote(span.with("bench.step", path), stored.task));
    }

    fn attempt(&mut self, note: &AttemptNote) {
        let end = note.started_us.saturating_add(micros(note.total_us));
        let path = format!("attempt/{}/{}", note.task.0, note.epoch);
        if note.queue_wait_us > 0 {
            let ready = note.started_us.saturating_sub(micros(note.queue_wait_us));
            let queue_path = format!("{path}/queue");
            let wait =
                self.span(self.root(), &queue_path, "queue_wait", SpanClass::Queue, from_to(ready, note.started_us));
            let wait = Span { kind: SpanKind::Consumer, session: note.session, ..wait };
            self.spans.push(attributes::vote(wait, note.task));
        }
        let mut span = self.span(self.root(), &path, "attempt", SpanClass::Attempt, from_to(note.started_us, end));
        span.session = note.session;
        span = attributes::vote(span, note.task);
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
            let times = from_to(end, end.saturating_add(micros(note.delay_us)));
            let wait = self.span(self.root(), &format!("{path}/wait"), waits, SpanClass::Wait, times);
            let wait = wait.with("bench.reason", note.reason.as_str());
            self.spans.push(attributes::vote(wait, note.task));
        }
    }

    fn finish(mut self) -> Vec<Span> {
        let (Some(start), Some(end)) =
            (self.spans.iter().map(|s| s.start_us).min(), self.spans.iter().map(|s| s.end_us).max())
        else {
            return Vec::new();
        };
        let input = self.input;
        let mut root = self.span(self.root(), "question", "question", SpanClass::Question, from_to(start, end));
        root.parent = None;
        root.links.push(SpanLink { trace: TraceId::of_run(input.run), span: span_of_submit(input.run) });
        root.links.extend(
            input.banks.iter().map(|bank| SpanLink { trace: TraceId::of_run(input.run), span: bank.id(input.run) }),
        );
        let root = attributes::root(root, input);
        self.spans.sort_by_key(|span| (span.start_us, span.end_us));
        let mut ordered = Vec::with_capacity(self.spans.len() + 1);
        take_with_children(root, &mut self.spans, &mut ordered);
        ordered
    }
}

/// How long a step took: never less than what is shown inside of it.
fn whole(timing: &Timing) -> u64 {
    let calls = timing.calls.iter().map(|(offset, took, _)| offset.saturating_add(*took));
    let waits = timing.waits.iter().map(|(offset, took, _)| offset.saturating_add(*took));
    calls.chain(waits).fold(timing.total_us.max(timing.provider_us), u64::max)
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

#[cfg(test)]
mod tests;
