//! What a leader was told of the store, and whether the store still knows it (P44). Nothing is handed out before that is certain,
//! and when the store went back in time not before the workers have written again what they were told.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bench_store::LeadTold;

/// How long nothing is handed out after the store went back: workers notice within a renewal, and write again.
const SETTLING: Duration = Duration::from_secs(4);

/// What the store has said to the leader of this process; shared by its parts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    told: Option<LeadTold>,
    /// Interruptions of the store that a renewal has outlived.
    confirmed: u64,
    went_back: Option<Instant>,
    times: u64,
}

impl Past {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that this process leads from now on, after so many interruptions of the store.
    pub(crate) fn begin(&self, interruptions: u64) {
        let mut state = self.lock();
        let incarnation = state.told.map(|told| told.incarnation);
        state.told = incarnation.map(|incarnation| LeadTold { counter: 0, incarnation });
        state.confirmed = interruptions;
    }

    /// A renewal that was sent after so many interruptions has been answered. True when the store knows less than before, and
    /// nobody has noticed yet.
    pub(crate) fn see(&self, told: LeadTold, interruptions: u64, now: Instant) -> bool {
        let mut state = self.lock();
        let (elsewhere, less) = state
            .told
            .map_or((false, false), |before| (told.incarnation != before.incarnation, told.counter <= before.counter));
        state.told = Some(told);
        state.confirmed = interruptions;
        if elsewhere || less {
            state.went_back(now);
        }
        less && !elsewhere
    }

    /// The store went back, by other signs.
    pub(crate) fn went_back(&self, now: Instant) {
        self.lock().went_back(now);
    }

    /// The incarnation that was begun because of it.
    pub(crate) fn reborn(&self, incarnation: i64) {
        if let Some(told) = &mut self.lock().told {
            told.incarnation = incarnation;
        }
    }

    /// Whether tasks may be handed out after so many interruptions of the store.
    pub(crate) fn is_settled(&self, interruptions: u64, now: Instant) -> bool {
        let state = self.lock();
        let settling = state.went_back.is_some_and(|at| now.saturating_duration_since(at) < SETTLING);
        state.confirmed == interruptions && !settling
    }

    /// Whether a renewal has outlived so many interruptions of the store.
    pub(crate) fn is_confirmed(&self, interruptions: u64) -> bool {
        self.lock().confirmed == interruptions
    }

    /// How often the store went back.
    pub(crate) fn times(&self) -> u64 {
        self.lock().times
    }
}

impl State {
    fn went_back(&mut self, now: Instant) {
        self.went_back = Some(now);
        self.times += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(counter: i64, incarnation: i64) -> LeadTold {
        LeadTold { counter, incarnation }
    }

    #[test]
    fn p44_a_leader_that_is_told_less_hands_nothing_out_for_a_while() {
        let (past, start) = (Past::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        past.begin(0);
        assert!(!past.see(told(5, 0), 0, at(0)) && past.is_settled(0, at(0)));
        assert!(!past.is_settled(1, at(1)), "the store was away, and nobody has asked it since");
        assert!(past.see(told(4, 0), 1, at(2)), "it knows less than before");
        past.reborn(7);
        assert!(!past.is_settled(1, at(5)));
        assert!(past.is_settled(1, at(6)));
        assert!(!past.see(told(5, 7), 1, at(7)) && past.times() == 1);
        assert!(!past.see(told(6, 9), 1, at(8)), "somebody else has noticed, and said so");
        assert!(!past.is_settled(1, at(8)) && past.times() == 2);
        past.begin(1);
        assert!(!past.see(told(1, 9), 1, at(20)) && past.is_settled(1, at(20)), "a new lead counts anew");
    }
}
