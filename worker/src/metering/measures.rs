//! What metrics say of the calls of memory systems: the same as of the runner's own.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bench_meter::Tokens;
use bench_proto::{call::Phase, metered::MeteredEnd, money::PicoUsd};
use bench_telemetry::metrics::{Counter, catalogue, enabled};

/// Models of a run that are told by name: whoever names a new one in each request makes no new series of each.
const MOST_MODELS: usize = 32;
/// All the others.
const OTHER: &str = "other";

/// Models that are told by name.
#[derive(Default)]
pub(crate) struct ModelLabels(Mutex<BTreeSet<String>>);

impl ModelLabels {
    fn label<'a>(&self, model: &'a str) -> &'a str {
        // every change is complete when the lock is dropped
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(model) {
            return model;
        }
        if known.len() >= MOST_MODELS {
            return OTHER;
        }
        known.insert(model.to_owned());
        model
    }
}

/// A call that has ended.
pub(super) struct Measured<'a> {
    pub(super) account: &'a str,
    pub(super) model: &'a str,
    pub(super) phase: Phase,
    pub(super) end: MeteredEnd,
    pub(super) status: u16,
    pub(super) latency: Duration,
    pub(super) tokens: Tokens,
    pub(super) cost: PicoUsd,
    /// Of an allowance that counts them.
    pub(super) allowance_tokens: u64,
}

/// A counter, what is added to it, and its labels.
type Count<'a> = (&'static Counter, f64, Vec<&'a str>);

impl Measured<'_> {
    /// Tells the metrics of a call.
    pub(super) fn tell(mut self, models: &ModelLabels) {
        if !enabled() {
            return;
        }
        self.model = models.label(self.model);
        if self.was_sent() {
            catalogue::CALL_SECONDS.record(self.latency.as_secs_f64(), &[self.account, self.model]);
        }
        for (counter, value, labels) in self.counts() {
            counter.add(value, &labels);
        }
    }

    fn was_sent(&self) -> bool {
        !matches!(self.end, MeteredEnd::Stored | MeteredEnd::FailedOnPurpose(_))
    }

    fn outcome(&self) -> &'static str {
        match (self.end, self.status) {
            (MeteredEnd::Answered { .. }, _) => "ok",
            (_, 429) => "rate_limited",
            (_, 0) | (MeteredEnd::Cut, 200..=299) => "transport",
            _ => "error",
        }
    }

    fn counts(&self) -> Vec<Count<'_>> {
        let (account, phase) = (self.account, self.phase.name());
        let mut counts: Vec<Count<'_>> = Vec::new();
        if self.end == MeteredEnd::Stored {
            counts.push((&catalogue::CACHED_CALLS, 1.0, vec![phase]));
        }
        if !self.was_sent() {
            return counts;
        }
        counts.push((&catalogue::CALLS, 1.0, vec![account, self.model, self.outcome()]));
        counts.push((&catalogue::RATE_USED, 1.0, vec![account, "requests"]));
        counts.push((&catalogue::RATE_USED, self.allowance_tokens as f64, vec![account, "tokens"]));
        if self.status == 429 {
            counts.push((&catalogue::RATE_LIMITED, 1.0, vec![account]));
        }
        if matches!(self.end, MeteredEnd::Answered { .. }) {
            counts.push((&catalogue::TOKENS, self.tokens.prompt as f64, vec![phase, "prompt"]));
            counts.push((&catalogue::TOKENS, self.tokens.completion as f64, vec![phase, "completion"]));
            counts.push((&catalogue::COST_USD, self.cost.usd(), vec![phase]));
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(end: MeteredEnd, status: u16) -> Measured<'static> {
        Measured {
            account: "openai",
            model: "gpt-4o-mini",
            phase: Phase::Retain,
            end,
            status,
            latency: Duration::from_millis(5),
            tokens: Tokens { prompt: 9, completion: 2, ..Tokens::default() },
            cost: PicoUsd(3_000_000_000_000),
            allowance_tokens: 11,
        }
    }

    /// What is added to a counter, with its labels.
    fn of<'a>(measured: &'a Measured<'_>, counter: &'static Counter) -> Vec<(f64, Vec<&'a str>)> {
        let counts = measured.counts().into_iter().filter(|(of, ..)| std::ptr::eq(*of, counter));
        counts.map(|(_, value, labels)| (value, labels)).collect()
    }

    #[test]
    fn p34_calls_of_a_memory_system_are_in_the_metrics_of_calls() {
        let answered = measured(MeteredEnd::Answered { counted_here: false }, 200);
        assert_eq!(of(&answered, &catalogue::CALLS), [(1.0, vec!["openai", "gpt-4o-mini", "ok"])]);
        assert_eq!(
            of(&answered, &catalogue::RATE_USED),
            [(1.0, vec!["openai", "requests"]), (11.0, vec!["openai", "tokens"])]
        );
        assert_eq!(
            of(&answered, &catalogue::TOKENS),
            [(9.0, vec!["retain", "prompt"]), (2.0, vec!["retain", "completion"])]
        );
        assert_eq!(of(&answered, &catalogue::COST_USD), [(3.0, vec!["retain"])]);
        assert!(of(&answered, &catalogue::RATE_LIMITED).is_empty());
        let refused = measured(MeteredEnd::Refused(429), 429);
        assert_eq!(of(&refused, &catalogue::RATE_LIMITED), [(1.0, vec!["openai"])]);
        assert!(of(&refused, &catalogue::TOKENS).is_empty() && of(&refused, &catalogue::COST_USD).is_empty());
        for (end, status, outcome) in [
            (MeteredEnd::Refused(429), 429, "rate_limited"),
            (MeteredEnd::Refused(500), 500, "error"),
            (MeteredEnd::Cut, 504, "error"),
            (MeteredEnd::Cut, 200, "transport"),
            (MeteredEnd::NotReached, 0, "transport"),
        ] {
            let ended = measured(end, status);
            assert_eq!(of(&ended, &catalogue::CALLS), [(1.0, vec!["openai", "gpt-4o-mini", outcome])], "{end:?}");
        }
        for (end, cached) in [(MeteredEnd::Stored, 1), (MeteredEnd::FailedOnPurpose(500), 0)] {
            let unsent = measured(end, 200);
            assert_eq!((of(&unsent, &catalogue::CACHED_CALLS).len(), unsent.counts().len()), (cached, cached));
        }
    }

    #[test]
    fn models_without_end_make_no_series_without_end() {
        let models = ModelLabels::default();
        let names: Vec<String> = (0..100).map(|n| format!("m{n}")).collect();
        let labels: BTreeSet<&str> = names.iter().map(|name| models.label(name)).collect();
        assert_eq!(labels.len(), MOST_MODELS + 1);
        assert_eq!((models.label("m0"), models.label("m99")), ("m0", OTHER));
    }
}
