//! What a commit tells the metrics: everything that is counted of steps, tokens and dollars is counted here, once, when it is stored.

use std::time::Duration;

use bench_proto::{
    call::Phase,
    facts::QuestionFacts,
    ids::TaskKind,
    step::{StepFacts, StepRecord, Timing, WaitFor},
};
use bench_telemetry::metrics::{catalogue, enabled};

/// Counts a commit; `stored` tells which records were stored by it.
pub(crate) fn committed(records: &[StepRecord], stored: impl Fn(usize) -> bool, took: Duration) {
    if !enabled() {
        return;
    }
    catalogue::CHECKPOINT_ROWS.record(records.len() as f64, &[]);
    catalogue::CHECKPOINT_SECONDS.record(took.as_secs_f64(), &[]);
    for (at, record) in records.iter().enumerate() {
        if stored(at) {
            step(record);
        }
    }
}

/// Counts questions that ended.
pub(crate) fn ended<'a>(questions: impl Iterator<Item = &'a QuestionFacts>) {
    if !enabled() {
        return;
    }
    for facts in questions {
        catalogue::QUESTIONS.add(1.0, &[facts.outcome.name()]);
    }
}

fn step(record: &StepRecord) {
    let name = match &record.facts {
        StepFacts::Retained { .. } => "retain",
        StepFacts::Consolidated { .. } => "consolidate",
        StepFacts::Ready { .. } => "ready",
        StepFacts::Recalled { .. } => "recall",
        StepFacts::Answered { .. } => "answer",
        StepFacts::Scored { .. } => "score",
        StepFacts::Judged { .. } => "judge",
        StepFacts::Failed { .. } => match record.task.kind() {
            TaskKind::Retain => "retain",
            TaskKind::Ready => "ready",
            TaskKind::Question => "answer",
            TaskKind::Judge => "judge",
        },
    };
    let outcome = if matches!(record.facts, StepFacts::Failed { .. }) { "failed" } else { "ok" };
    catalogue::STEPS.add(1.0, &[name, outcome]);
    if let Some(timing) = record.facts.timing() {
        times(name, timing);
    }
    let phase = match name {
        "retain" | "consolidate" | "ready" => Phase::Retain,
        "recall" => Phase::Recall,
        "judge" => Phase::Judge,
        _ => Phase::Answer,
    };
    if let Some(usage) = record.facts.usage() {
        let phase = phase.name();
        catalogue::RETRIES.add(usage.retries as f64, &[phase]);
        catalogue::CACHED_CALLS.add(usage.cached_calls as f64, &[phase]);
        catalogue::TOKENS.add(usage.prompt_tokens as f64, &[phase, "prompt"]);
        catalogue::TOKENS.add(usage.completion_tokens as f64, &[phase, "completion"]);
        catalogue::COST_USD.add(usage.cost.usd(), &[phase]);
    }
}

fn times(name: &str, timing: &Timing) {
    let seconds = |us: u64| us as f64 / 1e6;
    catalogue::STEP_SECONDS.record(seconds(timing.total_us), &[name]);
    if timing.provider_us > 0 {
        catalogue::PROVIDER_SECONDS.record(seconds(timing.provider_us), &[name]);
    }
    if timing.queue_wait_us > 0 {
        catalogue::WAIT_SECONDS.record(seconds(timing.queue_wait_us), &["queue_wait"]);
    }
    catalogue::RATE_WAIT_SECONDS.add(seconds(timing.rate_wait_us), &[name]);
    for (_, us, what) in &timing.waits {
        catalogue::WAIT_SECONDS.record(seconds(*us), &[WaitFor::name(*what)]);
    }
}
