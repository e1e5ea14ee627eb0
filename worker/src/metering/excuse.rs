//! What a memory system fails and is not blamed for: what it calls is away (P39), or has to wait (P11).

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bench_proto::{
    failure::{Failure, FailureClass, LONGEST_RETRY_AFTER},
    ids::RunNo,
    outage::MeterTold,
};

use super::outages::{Away, RECENT};
use crate::ending::TaskEnd;

/// Rounds of waiting in which a bank does not move, after which what it fails counts: a wait is no excuse for ever.
const MOST_ROUNDS: u32 = 8;

/// Shortest wait of a task whose failure is excused; the meter holds what it asks meanwhile.
const SHORTEST: Duration = Duration::from_secs(2);

/// Waits of a run that other processes are told of: they ride on a renewal of the session.
const MOST_TOLD: usize = 64;

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

/// What requests were told to wait for, by the bank that they are for; those of no known bank may be for any.
#[derive(Default)]
pub(crate) struct Waits(Mutex<State>);

#[derive(Default)]
struct State {
    told: HashMap<Option<u32>, Told>,
    rounds: HashMap<Option<u32>, Rounds>,
}

/// Until when requests were told to come again, the longest time of all that were told, and why.
struct Told {
    until: Instant,
    reason: String,
}

/// How often a bank was excused and has not moved since. What fails within one wait is one round, however many of its tasks fail.
struct Rounds {
    count: u32,
    /// When the wait of the last one is over.
    end: Instant,
}

impl Waits {
    fn state(&self) -> MutexGuard<'_, State> {
        // every change is complete when the lock is dropped
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request for a bank was told to come again.
    pub(super) fn tell(&self, bank: Option<u32>, retry_after: Duration, reason: &str) {
        self.wait_until(bank, Instant::now() + retry_after.min(LONGEST_RETRY_AFTER), reason);
    }

    /// What the meter of another process has told requests.
    pub(super) fn hear(&self, told: &MeterTold, now: Instant) {
        let wait = Duration::from_millis(told.left_ms.unsigned_abs());
        let until = match told.left_ms {
            0.. => Some(now + wait.min(LONGEST_RETRY_AFTER)),
            _ => now.checked_sub(wait),
        };
        if let Some(until) = until {
            self.wait_until(told.bank, until, &told.reason);
        }
    }

    /// What requests of a run have been told, for other processes: as long as it excuses anything, the longest waits first.
    pub(super) fn told(&self, run: RunNo, now: Instant) -> Vec<MeterTold> {
        let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let of = |(bank, told): (&Option<u32>, &Told)| MeterTold {
            run,
            bank: *bank,
            left_ms: ms(told.until.saturating_duration_since(now)) - ms(now.saturating_duration_since(told.until)),
            reason: told.reason.clone(),
            is_away: false,
        };
        let mut all: Vec<MeterTold> = self.state().told.iter().map(of).collect();
        all.retain(|told| told.left_ms > -ms(RECENT));
        all.sort_by_key(|told| std::cmp::Reverse(told.left_ms));
        all.truncate(MOST_TOLD);
        all
    }

    fn wait_until(&self, bank: Option<u32>, until: Instant, reason: &str) {
        let mut state = self.state();
        if state.told.get(&bank).is_none_or(|told| told.until <= until) {
            state.told.insert(bank, Told { until, reason: reason.to_owned() });
        }
    }

    /// What is to be waited for, as long as a failure of a bank may be due to it: who was told to come again gives up soon after. What
    /// would not pass by waiting has another cause.
    pub(super) fn excuse(&self, bank: Option<u32>, failure: &Failure, now: Instant) -> Option<Excuse> {
        if failure.class != FailureClass::Transient {
            return None;
        }
        let state = self.state();
        if state.rounds.get(&bank).is_some_and(|rounds| rounds.count >= MOST_ROUNDS && rounds.end <= now) {
            return None;
        }
        let told = [bank, None].into_iter().filter_map(|bank| state.told.get(&bank)).max_by_key(|told| told.until)?;
        let is_recent = now.saturating_duration_since(told.until) < RECENT;
        let left = told.until.saturating_duration_since(now);
        is_recent.then(|| Excuse::Busy { left, reason: told.reason.clone() })
    }

    /// A task of a bank was excused and waits for so long.
    pub(crate) fn count_round(&self, bank: Option<u32>, left: Duration, now: Instant) {
        let mut state = self.state();
        let rounds = state.rounds.entry(bank).or_insert(Rounds { count: 0, end: now });
        if rounds.end <= now {
            *rounds = Rounds { count: rounds.count + 1, end: now + left.max(SHORTEST) };
        }
    }

    /// The memory system has done something for a bank.
    pub(crate) fn moved(&self, bank: Option<u32>) {
        self.state().rounds.remove(&bank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANK: Option<u32> = Some(7);

    fn failure() -> Failure {
        Failure::transient("system_refused", "retain: no")
    }

    #[test]
    fn p11_what_a_system_fails_while_its_calls_have_to_wait_is_waited_for_and_counts_nothing() {
        let (waits, now) = (Waits::default(), Instant::now());
        assert_eq!(waits.excuse(BANK, &failure(), now), None);
        waits.tell(BANK, Duration::from_secs(200), "account openai is in full use");
        // a shorter wait for something else changes nothing
        waits.tell(BANK, Duration::from_secs(5), "the run's pace is used up");
        waits.tell(None, Duration::from_secs(5), "the run's pace is used up");
        let later = Instant::now() + Duration::from_secs(60);
        let end = waits.excuse(BANK, &failure(), later).expect("still held").end(&failure());
        let TaskEnd::Park { delay_ms, reason, calls } = end else { panic!("it is parked") };
        assert!((138_000..=141_000).contains(&delay_ms) && calls.is_empty(), "{delay_ms}");
        assert!(reason.contains("retain: no") && reason.contains("in full use"), "{reason}");
        let over = Instant::now() + Duration::from_secs(201);
        let just_over = waits.excuse(BANK, &failure(), over);
        assert!(matches!(&just_over, Some(Excuse::Busy { left, .. }) if left.is_zero()), "it gives up just now");
        assert_eq!(waits.excuse(BANK, &failure(), over + RECENT), None);
    }

    #[test]
    fn p11_a_wait_excuses_its_own_bank_or_all_and_nothing_that_waiting_does_not_mend() {
        let (waits, now) = (Waits::default(), Instant::now());
        waits.tell(BANK, Duration::from_secs(20), "the run's pace is used up");
        assert!(waits.excuse(BANK, &failure(), now).is_some());
        assert_eq!(waits.excuse(Some(8), &failure(), now), None, "another bank");
        for own in [Failure::permanent("system_http_400", "no"), Failure::terminal("system_auth", "no")] {
            assert_eq!(waits.excuse(BANK, &own, now), None, "{own}");
        }
        waits.tell(None, Duration::from_secs(20), "the run's pace is used up");
        assert!(waits.excuse(Some(8), &failure(), now).is_some(), "nobody knows whose it was");
    }

    #[test]
    fn p11_a_bank_that_never_moves_is_not_excused_for_ever() {
        let (waits, wait) = (Waits::default(), Duration::from_secs(10));
        let begun = Instant::now();
        let fails = |bank: Option<u32>, round: u32| {
            let now = begun + wait * round;
            let excuse = waits.excuse(bank, &failure(), now);
            // several of its tasks fail at once
            (0..3).for_each(|_| waits.count_round(bank, wait, now));
            excuse.is_some()
        };
        waits.tell(None, LONGEST_RETRY_AFTER, "the run's pace is used up");
        assert!((0..MOST_ROUNDS).all(|round| fails(BANK, round)));
        assert!(!fails(BANK, MOST_ROUNDS), "its failure counts");
        assert!(fails(Some(8), MOST_ROUNDS), "another one has not failed before");
        waits.moved(BANK);
        assert!(fails(BANK, MOST_ROUNDS + 1), "it has moved");
    }

    #[test]
    fn p11_a_wait_that_one_process_has_told_excuses_in_another() {
        let (meter, worker, now) = (Waits::default(), Waits::default(), Instant::now());
        meter.tell(None, Duration::from_secs(20), "the run's pace is used up");
        let told = meter.told(RunNo(4), now);
        assert!(matches!(told.as_slice(), [one] if one.run == RunNo(4) && (19_000..=21_000).contains(&one.left_ms)));
        told.iter().for_each(|told| worker.hear(told, now));
        let excuse = worker.excuse(BANK, &failure(), now);
        assert!(
            matches!(&excuse, Some(Excuse::Busy { left, reason }) if left.as_secs() >= 19 && reason.contains("pace"))
        );
        // one that was over when it was heard of excuses what gives up just now, and no longer
        let over = Waits::default();
        over.hear(&MeterTold { left_ms: -1_000, ..told[0].clone() }, now);
        assert!(over.excuse(BANK, &failure(), now).is_some());
        assert_eq!(over.excuse(BANK, &failure(), now + RECENT), None);
        assert_eq!(meter.told(RunNo(4), now + Duration::from_secs(60)), []);
    }

    #[test]
    fn p40_no_wait_is_believed_for_longer_than_five_minutes() {
        let waits = Waits::default();
        waits.tell(BANK, Duration::from_secs(86_400), "a day");
        assert_eq!(waits.excuse(BANK, &failure(), Instant::now() + LONGEST_RETRY_AFTER + RECENT), None);
    }

    #[test]
    fn p39_what_a_system_fails_while_its_provider_is_away_is_put_off() {
        let away = Away {
            since: Duration::from_secs(9),
            reason: "account openai does not answer for m: status 503".to_owned(),
            has_answered: true,
            is_settled: false,
            refused: None,
        };
        let end = Excuse::Away(away).end(&Failure::permanent("system_refused", "retain: 503"));
        assert!(
            matches!(&end, TaskEnd::PutOff { delay_ms: 2000, reason } if reason.contains("does not answer")),
            "{end:?}"
        );
    }
}
