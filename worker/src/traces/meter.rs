//! What a commit tells the metrics: everything that is counted of steps, tokens and dollars is counted here, once, when it is stored.

use std::time::Duration;

use bench_proto::{
    call::Phase,
    facts::QuestionFacts,
    ids::TaskKind,
    step::{StepFacts, StepRecord, Timing, WaitFor},
};
use bench_telemetry::metrics::{Counter, Histogram, catalogue, enabled};

/// Counts a commit; `stored` tells which records were stored by it.
pub(crate) fn committed(records: &[StepRecord], stored: impl Fn(usize) -> bool, took: Duration) {
    if !enabled() {
        return;
    }
    let mut tally = Tally::default();
    records.iter().enumerate().filter(|(at, _)| stored(*at)).for_each(|(_, record)| tally.step(record));
    tally.tell();
    catalogue::CHECKPOINT_ROWS.record(records.len() as f64, &[]);
    catalogue::CHECKPOINT_SECONDS.record(took.as_secs_f64(), &[]);
}

/// Counts questions that ended.
pub(crate) fn ended<'a>(questions: impl Iterator<Item = &'a QuestionFacts>) {
    if !enabled() {
        return;
    }
    let mut tally = Tally::default();
    questions.for_each(|facts| tally.add(&catalogue::QUESTIONS, 1.0, [facts.outcome.name(), ""]));
    tally.tell();
}

/// What one commit counts, added up before the metrics hear of it: a question costs them next to nothing. Series are few, so they are
/// found by looking through them.
#[derive(Default)]
struct Tally {
    /// Sums by counter and its labels, as many as it has.
    sums: Vec<(&'static Counter, [&'static str; 2], f64)>,
    /// Values by histogram and its label.
    values: Vec<(&'static Histogram, &'static str, Vec<f64>)>,
}

impl Tally {
    fn add(&mut self, counter: &'static Counter, value: f64, labels: [&'static str; 2]) {
        if value <= 0.0 {
            return;
        }
        let known = self.sums.iter_mut().find(|(of, known, _)| std::ptr::eq(*of, counter) && *known == labels);
        match known {
            Some((_, _, sum)) => *sum += value,
            None => self.sums.push((counter, labels, value)),
        }
    }

    fn record(&mut self, histogram: &'static Histogram, value: f64, label: &'static str) {
        let known = self.values.iter_mut().find(|(of, known, _)| std::ptr::eq(*of, histogram) && *known == label);
        match known {
            Some((_, _, values)) => values.push(value),
            None => self.values.push((histogram, label, vec![value])),
        }
    }

    fn tell(self) {
        for (counter, labels, sum) in self.sums {
            let labels = if labels[1].is_empty() { &labels[..1] } else { &labels[..] };
            counter.add(sum, labels);
        }
        for (histogram, label, values) in self.values {
            histogram.record_all(&values, &[label]);
        }
    }

    fn step(&mut self, record: &StepRecord) {
        let name = match &record.facts {
            StepFacts::Retained { .. } => "retain",
            StepFacts::Consolidated { .. } => "consolidate",
            StepFacts::Ready { .. } => "ready",
            StepFacts::Recalled { .. }
            | StepFacts::Searched { .. }
            | StepFacts::Phrased { phase: Phase::Recall, .. } => "recall",
            StepFacts::Phrased { .. } => "answer",
            StepFacts::Answered { .. } => "answer",
            StepFacts::Scored { .. } => "score",
            StepFacts::Judged { .. } => "judge",
            StepFacts::JudgedPart { .. } => "judge_call",
            StepFacts::Probed(_) => "probe",
            StepFacts::Listed(_) => "list",
            StepFacts::Failed { .. } => match record.task.kind() {
                TaskKind::Retain => "retain",
                TaskKind::Ready => "ready",
                TaskKind::Question => "answer",
                TaskKind::Judge => "judge",
            },
        };
        let outcome = if matches!(record.facts, StepFacts::Failed { .. }) { "failed" } else { "ok" };
        self.add(&catalogue::STEPS, 1.0, [name, outcome]);
        if let Some(timing) = record.facts.timing() {
            self.times(name, timing);
        }
        let phase = match name {
            "retain" | "consolidate" | "ready" | "list" => Phase::Retain,
            "recall" | "probe" => Phase::Recall,
            "judge" | "judge_call" => Phase::Judge,
            _ => Phase::Answer,
        };
        if let Some(usage) = record.facts.usage() {
            let phase = phase.name();
            self.add(&catalogue::RETRIES, usage.retries as f64, [phase, ""]);
            self.add(&catalogue::CACHED_CALLS, usage.cached_calls as f64, [phase, ""]);
            self.add(&catalogue::TOKENS, usage.prompt_tokens as f64, [phase, "prompt"]);
            self.add(&catalogue::TOKENS, usage.completion_tokens as f64, [phase, "completion"]);
            self.add(&catalogue::COST_USD, usage.cost.usd(), [phase, ""]);
        }
    }

    fn times(&mut self, name: &'static str, timing: &Timing) {
        let seconds = |us: u64| us as f64 / 1e6;
        self.record(&catalogue::STEP_SECONDS, seconds(timing.operation_us()), name);
        if timing.build_us > 0 {
            self.record(&catalogue::STEP_SECONDS, seconds(timing.build_us), "build");
        }
        if timing.provider_us > 0 {
            self.record(&catalogue::PROVIDER_SECONDS, seconds(timing.provider_us), name);
        }
        if timing.queue_wait_us > 0 {
            self.record(&catalogue::WAIT_SECONDS, seconds(timing.queue_wait_us), "queue_wait");
        }
        self.add(&catalogue::RATE_WAIT_SECONDS, seconds(timing.rate_wait_us), [name, ""]);
        for (_, us, what) in &timing.waits {
            self.record(&catalogue::WAIT_SECONDS, seconds(*us), WaitFor::name(*what));
        }
    }
}
