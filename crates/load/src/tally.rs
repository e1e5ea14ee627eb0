//! What became of the operations of a step: latencies of those that were served, failures by kind, and what never ended or was
//! never sent. Tallies of several processes add up.

use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{histogram::Latencies, line::Line};

/// Equal parts of a step, by when an operation was due: whether latency grows shows in them.
pub const PARTS: usize = 10;
/// Kinds of failures that are told apart.
const MOST_KINDS: usize = 32;
/// The kind of all further ones.
const OTHER: &str = "other";
/// Numbers from here on are no counts: no process makes so many, and sums of them are no numbers.
const MOST_COUNTED: u64 = 1 << 53;

/// Whether counts, and their sum, are such that a process can have counted them. Files come from anywhere.
pub(crate) fn countable(counts: impl IntoIterator<Item = u64>) -> bool {
    let mut counts = counts.into_iter();
    counts.try_fold(0_u64, |sum, n| sum.checked_add(n).filter(|sum| *sum < MOST_COUNTED)).is_some()
}

/// How an operation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// A code for it, of a small number of them.
    pub kind: String,
    /// For people.
    pub message: String,
}

/// Failures of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kind {
    /// Number of such failures.
    pub n: u64,
    /// The message of the first.
    pub example: String,
}

/// Served operations that were due in one part of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Number of such operations.
    pub n: u64,
    /// Seconds that they took in all, from their intended starts.
    pub seconds: f64,
}

/// What became of the operations of one class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Latencies of those that were served, from their intended starts.
    pub served: Latencies,
    /// Failures by kind.
    pub failed: BTreeMap<String, Kind>,
    /// Due, and never sent: the system was behind until the end.
    pub unsent: u64,
    /// Sent, and not ended when nobody waited any longer.
    pub unfinished: u64,
    /// Ended well within the step, whenever they were due: its rate is what leaves the system.
    pub departed: u64,
    /// The served ones by when they were due.
    pub parts: [Part; PARTS],
}

impl Tally {
    /// Notes an operation that was due `at` (0 to 1) of the step and ended.
    pub fn note(&mut self, at: f64, latency: Duration, ended: Result<(), Failed>) {
        match ended {
            Ok(()) => {
                self.served.record(latency);
                let part = &mut self.parts[((at * PARTS as f64) as usize).min(PARTS - 1)];
                part.n += 1;
                part.seconds += latency.as_secs_f64();
            }
            Err(Failed { kind, message }) => {
                let is_known = self.failed.contains_key(&kind) || self.failed.len() < MOST_KINDS;
                let kind = if is_known { kind } else { OTHER.to_owned() };
                self.failed.entry(kind).or_insert_with(|| Kind { n: 0, example: message }).n += 1;
            }
        }
    }

    /// Adds that of another process.
    pub fn add(&mut self, other: &Self) {
        self.served.add(&other.served);
        for (kind, Kind { n, example }) in &other.failed {
            self.failed.entry(kind.clone()).or_insert_with(|| Kind { n: 0, example: example.clone() }).n += n;
        }
        self.unsent += other.unsent;
        self.unfinished += other.unfinished;
        self.departed += other.departed;
        for (part, more) in self.parts.iter_mut().zip(&other.parts) {
            part.n += more.n;
            part.seconds += more.seconds;
        }
    }

    /// Everything that it counts.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        let failed = self.failed.values().map(|kind| kind.n);
        let parts = self.parts.iter().map(|part| part.n);
        [self.served.n(), self.unsent, self.unfinished, self.departed].into_iter().chain(failed).chain(parts)
    }

    /// Operations that failed.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.failed.values().map(|kind| kind.n).sum()
    }

    /// Operations that were due and not served, for whatever reason.
    #[must_use]
    pub fn unserved(&self) -> u64 {
        self.errors() + self.unsent + self.unfinished
    }

    /// Operations that were due.
    #[must_use]
    pub fn intended(&self) -> u64 {
        self.served.n() + self.unserved()
    }
}

/// How the latency of some tallies of one step grows while the step goes on: seconds for each second, from the means of its parts.
/// 0 of a queue that is stable; what the rate is above the capacity, as a share of the capacity, of one that is not.
#[must_use]
pub fn growth<'a>(tallies: impl Iterator<Item = &'a Tally> + Clone, step_seconds: f64) -> Option<Line> {
    let middle = |at: usize| (at as f64 + 0.5) / PARTS as f64 * step_seconds;
    let points = (0..PARTS).filter_map(|at| {
        let of_part = tallies.clone().map(|tally| tally.parts[at]);
        let (n, seconds) = of_part.fold((0, 0.0), |(n, sum), part| (n + part.n, sum + part.seconds));
        (n > 0).then(|| (middle(at), seconds / n as f64))
    });
    Line::through(&points.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: &str) -> Result<(), Failed> {
        Err(Failed { kind: kind.to_owned(), message: format!("{kind} was said") })
    }

    #[test]
    fn kinds_of_failures_are_bounded_and_none_is_lost() {
        let mut tally = Tally::default();
        (0..1_000).for_each(|n| tally.note(0.0, Duration::ZERO, failed(&format!("kind {}", n % 100))));
        assert_eq!((tally.failed.len(), tally.errors()), (MOST_KINDS + 1, 1_000));
        assert_eq!(tally.failed["kind 3"].example, "kind 3 was said");
    }

    #[test]
    fn two_processes_are_as_one() {
        let (mut one, mut other, mut both) = (Tally::default(), Tally::default(), Tally::default());
        for at in 0..100 {
            let ended = || if at % 7 == 0 { failed("away") } else { Ok(()) };
            let (place, took) = (f64::from(at) / 100.0, Duration::from_millis(u64::from(at as u32) + 1));
            if at % 2 == 0 { &mut one } else { &mut other }.note(place, took, ended());
            both.note(place, took, ended());
        }
        (one.unsent, other.unfinished, both.unsent, both.unfinished) = (3, 4, 3, 4);
        one.add(&other);
        assert_eq!((one.intended(), one.unserved()), (107, 22));
        assert_eq!((one.served, one.failed, one.unsent), (both.served, both.failed, both.unsent));
        for (one, both) in one.parts.iter().zip(&both.parts) {
            assert!(one.n == both.n && (one.seconds - both.seconds).abs() < 1e-9);
        }
    }

    /// A server of 80 a second that is asked for 100 with equal gaps: what is due at t is served after t / 4 more.
    #[test]
    fn latency_grows_by_what_the_rate_is_above_the_capacity() {
        let mut tally = Tally::default();
        for n in 0..1_000 {
            let due = f64::from(n) / 100.0;
            tally.note(due / 10.0, Duration::from_secs_f64(f64::from(n + 1) / 80.0 - due), Ok(()));
        }
        let growth = growth(std::iter::once(&tally), 10.0).expect("there are ten parts");
        assert!((growth.slope - 0.25).abs() < 1e-3 && growth.low > 0.24, "{growth:?}");
    }
}
