//! What a memory system fails and is not blamed for: what it calls is away (P39), or has to wait (P11).

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use bench_proto::failure::{Failure, LONGEST_RETRY_AFTER};

use super::outages::{Away, RECENT};
use crate::ending::TaskEnd;

/// Shortest wait of a task whose memory system met such a thing; the meter holds what it asks meanwhile.
const SHORTEST: Duration = Duration::from_secs(2);

/// Why a failure of a memory system may not be its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Excuse {
    /// What it calls is away.
    Away(Away),
    /// Its calls were told to come again later.
    Busy {
        /// How much later, from now on.
        left: Duration,
        /// What they wait for.
        reason: String,
    },
}

impl Excuse {
    /// How a task ends that has failed meanwhile: it waits, and no attempt is counted.
    pub(crate) fn end(self, failure: &Failure) -> TaskEnd {
        let ms = |wait: Duration| u64::try_from(wait.max(SHORTEST).as_millis()).unwrap_or(u64::MAX);
        match self {
            Self::Away(away) => TaskEnd::PutOff {
                delay_ms: ms(Duration::ZERO),
                reason: format!("{}, while {}", failure.message, away.reason),
            },
            Self::Busy { left, reason } => TaskEnd::Park {
                delay_ms: ms(left),
                reason: format!("{}, while its calls had to wait: {reason}", failure.message),
                calls: Vec::new(),
            },
        }
    }
}

/// Until when requests were told to come again, the longest time of all that were told, and why.
#[derive(Default)]
pub(crate) struct Busy(Mutex<Option<(Instant, String)>>);

impl Busy {
    /// A request was told to come again.
    pub(super) fn tell(&self, retry_after: Duration, reason: &str) {
        let until = Instant::now() + retry_after.min(LONGEST_RETRY_AFTER);
        // every change is complete when the lock is dropped
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.as_ref().is_none_or(|(last, _)| *last <= until) {
            *told = Some((until, reason.to_owned()));
        }
    }

    /// What is to be waited for, as long as a failure may be due to it: who was told to come again gives up soon after.
    pub(super) fn excuse(&self, now: Instant) -> Option<Excuse> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, reason) = told.as_ref()?;
        let is_recent = now.saturating_duration_since(*until) < RECENT;
        is_recent.then(|| Excuse::Busy { left: until.saturating_duration_since(now), reason: reason.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p11_what_a_system_fails_while_its_calls_have_to_wait_is_waited_for_and_counts_nothing() {
        let (busy, now) = (Busy::default(), Instant::now());
        assert_eq!(busy.excuse(now), None);
        busy.tell(Duration::from_secs(200), "account openai is in full use");
        // a shorter wait for something else changes nothing
        busy.tell(Duration::from_secs(5), "the run's pace is used up");
        let later = Instant::now() + Duration::from_secs(60);
        let failure = Failure::transient("system_refused", "retain: no");
        let end = busy.excuse(later).expect("still held").end(&failure);
        let TaskEnd::Park { delay_ms, reason, calls } = end else { panic!("it is parked") };
        assert!((138_000..=141_000).contains(&delay_ms) && calls.is_empty(), "{delay_ms}");
        assert!(reason.contains("retain: no") && reason.contains("in full use"), "{reason}");
        let over = Instant::now() + Duration::from_secs(201);
        let just_over = busy.excuse(over);
        assert!(matches!(&just_over, Some(Excuse::Busy { left, .. }) if left.is_zero()), "it gives up just now");
        assert_eq!(busy.excuse(over + RECENT), None);
    }

    #[test]
    fn p40_no_wait_is_believed_for_longer_than_five_minutes() {
        let busy = Busy::default();
        busy.tell(Duration::from_secs(86_400), "a day");
        assert_eq!(busy.excuse(Instant::now() + LONGEST_RETRY_AFTER + RECENT), None);
    }

    #[test]
    fn p39_what_a_system_fails_while_its_provider_is_away_is_put_off() {
        let away = Away {
            since: Duration::from_secs(9),
            reason: "account openai does not answer for m: status 503".to_owned(),
            has_answered: true,
            refused: None,
        };
        let end = Excuse::Away(away).end(&Failure::permanent("system_refused", "retain: 503"));
        assert!(
            matches!(&end, TaskEnd::PutOff { delay_ms: 2000, reason } if reason.contains("does not answer")),
            "{end:?}"
        );
    }
}
