//! Which questions keep their traces (P20): decided once, by the process that ends the question, from what is known then.

use std::collections::BTreeMap;

use super::TraceId;
use crate::{
    facts::{Kept, Outcome, QuestionFacts},
    spec::TracePolicy,
};

impl TracePolicy {
    /// The base-rate decision about a question, which every process makes alike before anything of it has happened.
    #[must_use]
    pub fn samples(&self, trace: &TraceId) -> bool {
        trace.lot() < self.rate
    }
}

/// Questions that must have ended before the run's own quantile says anything.
pub const MIN_QUESTIONS: u64 = 20;
/// Without a threshold a slow question takes at least so many times the median: in a run whose questions all take about the same
/// time, one in a hundred lies above the quantile and none is slow.
pub const TIMES_MEDIAN: u64 = 3;
/// Without a threshold nothing below half a second is slow: that is the noise of a busy machine.
pub const FLOOR_US: u64 = 500_000;

/// How the times of a run's questions are spread: counts in buckets whose borders grow by 9 %. Merging is addition, so any number
/// of processes may add to one in the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LatencySketch {
    counts: BTreeMap<u16, u64>,
    total: u64,
}

/// Buckets per doubling.
const PER_DOUBLING: f64 = 8.0;

impl LatencySketch {
    /// The bucket of a time.
    #[must_use]
    pub fn bucket(us: u64) -> u16 {
        // at most 8 × 64: fits
        ((us.max(1) as f64).log2() * PER_DOUBLING).floor() as u16
    }

    /// The upper border of a bucket, in microseconds.
    fn upper_us(bucket: u16) -> u64 {
        ((f64::from(bucket) + 1.0) / PER_DOUBLING).exp2().ceil() as u64
    }

    /// Adds a time.
    pub fn add(&mut self, us: u64) {
        self.add_many(Self::bucket(us), 1);
    }

    /// Adds a number of times of one bucket.
    pub fn add_many(&mut self, bucket: u16, count: u64) {
        *self.counts.entry(bucket).or_default() += count;
        self.total += count;
    }

    /// Times that were added.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Buckets with their counts, in order.
    pub fn counts(&self) -> impl Iterator<Item = (u16, u64)> {
        self.counts.iter().map(|(bucket, count)| (*bucket, *count))
    }

    /// The time below which the share `q` of all lies, as the upper border of its bucket; 0 when nothing was added.
    #[must_use]
    pub fn quantile_us(&self, q: f64) -> u64 {
        let wanted = (q.clamp(0.0, 1.0) * self.total as f64).ceil() as u64;
        let mut below = 0;
        for (bucket, count) in &self.counts {
            below += count;
            if below >= wanted.max(1) {
                return Self::upper_us(*bucket);
            }
        }
        0
    }
}

/// The time of a question that is its own and the provider's: waits for pace, money and retries are excluded, as are queues.
#[must_use]
pub const fn own_us(facts: &QuestionFacts) -> u64 {
    facts.times.question_us.saturating_sub(facts.times.rate_wait_us)
}

/// Why the trace of a question that has just ended is kept, if it is.
///
/// `sketch` holds the questions of the run that ended before, `votes` is the number of judgements that the question gets; each has
/// one call or more.
#[must_use]
pub fn decide(
    policy: &TracePolicy,
    facts: &QuestionFacts,
    votes: u32,
    trace: &TraceId,
    sketch: &LatencySketch,
) -> Option<Kept> {
    if facts.outcome == Outcome::InfraError {
        return Some(Kept::Failed);
    }
    if is_slow(policy, own_us(facts), sketch) {
        return Some(Kept::Slow);
    }
    let steps = u64::from(facts.times.recall_us.is_some()) + u64::from(facts.times.answer_us.is_some());
    let judge = &facts.usage.judge;
    let steps = steps + u64::from(votes).max(judge.calls.saturating_add(judge.cached_calls));
    let refused =
        [facts.usage.recall, facts.usage.answer, facts.usage.judge].iter().map(|u| u.rate_limited).sum::<u64>();
    if u64::from(facts.attempts).saturating_sub(refused) > steps {
        return Some(Kept::Retried);
    }
    policy.samples(trace).then_some(Kept::Sampled)
}

fn is_slow(policy: &TracePolicy, us: u64, sketch: &LatencySketch) -> bool {
    if let Some(threshold) = policy.slow_ms {
        return us >= threshold.saturating_mul(1000);
    }
    sketch.total() >= MIN_QUESTIONS
        && us >= FLOOR_US
        && us > sketch.quantile_us(policy.quantile)
        && us >= sketch.quantile_us(0.5).saturating_mul(TIMES_MEDIAN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        facts::{PhaseTimes, QuestionIdentity},
        ids::{RunId, TaskKey},
    };

    fn question(ms: u64) -> QuestionFacts {
        let identity = QuestionIdentity {
            task: TaskKey::question(0, 0),
            question_id: "q".into(),
            bank_id: "b".into(),
            category: "c".into(),
            facets: BTreeMap::new(),
        };
        let times =
            PhaseTimes { recall_us: Some(1), answer_us: Some(2), question_us: ms * 1000, ..PhaseTimes::default() };
        QuestionFacts { times, attempts: 2, ..QuestionFacts::without_steps(identity, Outcome::Scored) }
    }

    fn never() -> TracePolicy {
        TracePolicy { rate: 0.0, ..TracePolicy::default() }
    }

    fn sketch_of(ms: u64, questions: u64) -> LatencySketch {
        let mut sketch = LatencySketch::default();
        sketch.add_many(LatencySketch::bucket(ms * 1000), questions);
        sketch
    }

    fn decided(policy: &TracePolicy, facts: &QuestionFacts, sketch: &LatencySketch) -> Option<Kept> {
        decide(policy, facts, 0, &TraceId::of_question(&RunId("r".into()), "q"), sketch)
    }

    #[test]
    fn p20_failed_and_retried_questions_keep_their_traces_and_429s_are_no_retries() {
        let nothing = LatencySketch::default();
        assert_eq!(decided(&never(), &question(1), &nothing), None);
        let failed = QuestionFacts { outcome: Outcome::InfraError, ..question(1) };
        assert_eq!(decided(&never(), &failed, &nothing), Some(Kept::Failed));
        let mut retried = QuestionFacts { attempts: 4, ..question(1) };
        assert_eq!(decided(&never(), &retried, &nothing), Some(Kept::Retried));
        retried.usage.answer.rate_limited = 2;
        assert_eq!(decided(&never(), &retried, &nothing), None);
        assert_eq!(decided(&TracePolicy { rate: 1.0, ..never() }, &question(1), &nothing), Some(Kept::Sampled));
        let mut judged = QuestionFacts { attempts: 7, ..question(1) };
        (judged.usage.judge.calls, judged.usage.judge.cached_calls) = (3, 2);
        assert_eq!(decided(&never(), &judged, &nothing), None, "a vote of five calls has repeated none");
        judged.attempts = 8;
        assert_eq!(decided(&never(), &judged, &nothing), Some(Kept::Retried));
    }

    #[test]
    fn p20_slow_is_by_the_threshold_or_far_out_of_the_runs_own_times() {
        let threshold = TracePolicy { slow_ms: Some(800), ..never() };
        let nothing = LatencySketch::default();
        assert_eq!(decided(&threshold, &question(799), &nothing), None);
        assert_eq!(decided(&threshold, &question(800), &nothing), Some(Kept::Slow));
        let mut waited = question(5_000);
        waited.times.rate_wait_us = 4_900_000;
        assert_eq!(decided(&threshold, &waited, &nothing), None, "waiting for an allowance is not slow");

        let hundred = sketch_of(300, 100);
        assert_eq!(decided(&never(), &question(600), &hundred), None, "twice the median");
        assert_eq!(decided(&never(), &question(2_000), &hundred), Some(Kept::Slow));
        assert_eq!(decided(&never(), &question(2_000), &sketch_of(300, 5)), None, "too few to know");
        assert_eq!(decided(&never(), &question(400), &sketch_of(1, 100)), None, "noise of a machine");
    }

    #[test]
    fn trace_urls_are_checked() {
        assert_eq!(TracePolicy::check_url("https://jaeger/trace/{trace_id}"), Ok(()));
        for bad in
            ["jaeger/{trace_id}", "https://jaeger/trace/", "https://j/{trace_id}\"onclick", "javascript:{trace_id}"]
        {
            assert!(TracePolicy::check_url(bad).is_err(), "{bad}");
        }
        let policy = TracePolicy { url: Some("https://jaeger/trace/{trace_id}?x={trace_id}".into()), ..never() };
        assert_eq!(policy.link("ab").as_deref(), Some("https://jaeger/trace/ab?x=ab"));
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_bucket_and_merging_is_addition(mut times in proptest::collection::vec(1_u64..1 << 40, 1..200), cut in 0_usize..200) {
            let mut whole = LatencySketch::default();
            times.iter().for_each(|us| whole.add(*us));
            let (left, right) = times.split_at(cut.min(times.len()));
            let mut merged = LatencySketch::default();
            for part in [left, right] {
                let mut sketch = LatencySketch::default();
                part.iter().for_each(|us| sketch.add(*us));
                sketch.counts().for_each(|(bucket, count)| merged.add_many(bucket, count));
            }
            prop_assert_eq!(&merged, &whole);
            times.sort_unstable();
            for q in [0.0, 0.5, 0.99, 1.0] {
                let rank = ((q * times.len() as f64).ceil() as usize).max(1) - 1;
                let (exact, found) = (times[rank] as f64, whole.quantile_us(q) as f64);
                prop_assert!(found >= exact && found <= exact * 1.1 + 1.0, "{} is not near {}", found, exact);
            }
        }
    }
}
