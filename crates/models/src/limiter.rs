//! The adaptive limiter: how many calls of one (endpoint, account, limit group) are in flight in this process, and how
//! fast they leave once a 429 has taught a rate (P19). Fair: first come, first served. No work per call beyond two locks.

pub mod adaptive;

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use bench_store::{LearnedRate, Observed};
use tokio::sync::{Semaphore, SemaphorePermit};

use self::adaptive::Adaptive;
pub use self::adaptive::Seen;

/// Who waits for a slot looks this often whether the rate has changed.
const RATE_POLL: Duration = Duration::from_millis(50);

/// A limiter shared by all calls of one allowance.
#[derive(Debug)]
pub struct Limiter {
    epoch: Instant,
    places: Semaphore,
    state: Mutex<State>,
    /// Callers that wait for a place, for their slot, or for their reply.
    present: AtomicU32,
    /// Who holds it waits for the next slot of a shared rate.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    adaptive: Adaptive,
    /// Places of the semaphore, taken or free.
    places: usize,
    /// The rate is learned together with other processes.
    shared: bool,
    /// What the others have not been told yet.
    seen: Observed,
}

impl State {
    /// Brings the semaphore to the limit as far as free places allow; taken ones follow when they are given back.
    fn adjust(&mut self, semaphore: &Semaphore) {
        let limit = self.adaptive.limit();
        if limit > self.places {
            semaphore.add_permits(limit - self.places);
            self.places = limit;
        } else if limit < self.places {
            self.places -= semaphore.forget_permits(self.places - limit);
        }
    }
}

/// A place in flight. Dropping it gives it back and teaches nothing.
#[derive(Debug)]
pub struct Permit<'a> {
    limiter: &'a Limiter,
    place: Option<SemaphorePermit<'a>>,
    sent_us: u64,
    /// The shared rate under which it left.
    version: u32,
    _present: Present<'a>,
}

/// A caller that is counted until it leaves.
#[derive(Debug)]
struct Present<'a>(&'a AtomicU32);

impl<'a> Present<'a> {
    fn enter(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Limiter {
    /// A limiter that grows up to `max` calls in flight.
    #[must_use]
    pub fn new(max: usize) -> Self {
        let adaptive = Adaptive::new(max.min(Semaphore::MAX_PERMITS));
        let places = adaptive.limit();
        let state = State { adaptive, places, shared: false, seen: Observed::default() };
        Self {
            epoch: Instant::now(),
            places: Semaphore::new(places),
            state: Mutex::new(state),
            present: AtomicU32::new(0),
            turn: tokio::sync::Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // every change of the state is complete when the lock is dropped, so a panic elsewhere leaves it usable
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_us(&self) -> u64 {
        self.epoch.elapsed().as_micros() as u64
    }

    /// Calls that may be in flight now.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.lock().adaptive.limit()
    }

    /// The rate in calls per second that 429s have taught.
    #[must_use]
    pub fn learned_rate(&self) -> Option<f64> {
        self.lock().adaptive.learned_rate()
    }

    /// From now on rates are learned together with other processes: what calls show is collected for them, and the rate is
    /// what they agree on.
    pub fn share(&self) {
        let mut state = self.lock();
        state.shared = true;
        state.adaptive.share();
    }

    /// What calls have shown since the last time.
    #[must_use]
    pub fn take_seen(&self) -> Observed {
        let mut state = self.lock();
        let version = state.seen.version;
        std::mem::replace(&mut state.seen, Observed { version, ..Observed::default() })
    }

    /// Takes back what the others could not be told.
    pub fn put_back(&self, seen: Observed) {
        let mut state = self.lock();
        state.seen.accepted += seen.accepted;
        if state.seen.version == seen.version {
            state.seen.refused += seen.refused;
        }
        state.seen.wants_more |= seen.wants_more;
        state.seen.hinted = state.seen.hinted.or(seen.hinted);
    }

    /// Sets this process's part of the shared rate.
    pub fn impose(&self, rate: Option<LearnedRate>) {
        let now_us = self.now_us();
        let mut state = self.lock();
        if let Some(rate) = rate
            && rate.version != state.seen.version
        {
            // what was refused under another rate says nothing about this one
            state.seen.refused = 0;
            state.seen.version = rate.version;
        }
        state.adaptive.impose(now_us, rate.map(|rate| rate.per_second));
        state.adjust(&self.places);
    }

    /// Callers that wait or are under way.
    #[must_use]
    pub fn present(&self) -> u32 {
        self.present.load(Ordering::Relaxed)
    }

    /// Waits for the next slot of the shared rate, one caller after the other: who waits follows a change of the rate.
    async fn next_slot(&self) -> u32 {
        let _turn = self.turn.lock().await;
        loop {
            let wait_us = {
                let now_us = self.now_us();
                let mut state = self.lock();
                match state.adaptive.take_due_slot(now_us) {
                    Ok(()) => return state.seen.version,
                    Err(wait_us) => {
                        state.seen.wants_more = true;
                        wait_us
                    }
                }
            };
            tokio::time::sleep(Duration::from_micros(wait_us).min(RATE_POLL)).await;
        }
    }

    /// Waits for a place and, where a rate was learned, for its send slot.
    pub async fn acquire(&self) -> Permit<'_> {
        let present = Present::enter(&self.present);
        // the semaphore is never closed
        let place = self.places.acquire().await.ok();
        let now_us = self.now_us();
        let mut permit = Permit { limiter: self, place, sent_us: now_us, version: 0, _present: present };
        let wait_us = {
            let mut state = self.lock();
            permit.version = state.seen.version;
            if state.shared { None } else { Some(state.adaptive.take_slot(now_us)) }
        };
        let Some(wait_us) = wait_us else {
            if self.lock().adaptive.learned_rate().is_some() {
                permit.version = self.next_slot().await;
                permit.sent_us = self.now_us();
            }
            return permit;
        };
        if wait_us > 0 {
            tokio::time::sleep(Duration::from_micros(wait_us)).await;
            permit.sent_us = self.now_us();
        }
        permit
    }

    fn give_back(&self, place: SemaphorePermit<'_>, sent_us: u64, version: u32, seen: Option<Seen>) {
        let now_us = self.now_us();
        let mut state = self.lock();
        if let Some(seen) = seen {
            match seen {
                Seen::Accepted { .. } => state.seen.accepted = state.seen.accepted.saturating_add(1),
                Seen::RateLimited(hint) if version == state.seen.version => {
                    state.seen.refused = state.seen.refused.saturating_add(1);
                    state.seen.hinted = adaptive::hinted_rate(hint).or(state.seen.hinted);
                }
                Seen::RateLimited(_) | Seen::Overloaded | Seen::Failed => {}
            }
            let saturated = self.places.available_permits() == 0;
            state.adaptive.learn(now_us, sent_us, saturated, seen);
        }
        if state.places > state.adaptive.limit() {
            state.places -= 1;
            place.forget();
        } else {
            drop(place);
        }
        state.adjust(&self.places);
    }
}

impl Permit<'_> {
    /// Gives the place back and teaches the limiter what the call showed.
    pub fn finish(mut self, seen: Seen) {
        if let Some(place) = self.place.take() {
            self.limiter.give_back(place, self.sent_us, self.version, Some(seen));
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.limiter.give_back(place, self.sent_us, self.version, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use proptest::prelude::*;

    use super::*;
    use crate::PaceHint;

    #[tokio::test]
    async fn waiting_is_first_come_first_served() {
        let limiter = Arc::new(Limiter::new(1));
        let first = limiter.acquire().await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..20)
            .map(|i| {
                let (limiter, order) = (limiter.clone(), order.clone());
                tokio::spawn(async move {
                    let permit = limiter.acquire().await;
                    order.lock().expect("no panic").push(i);
                    permit.finish(Seen::Accepted { latency_us: 10 });
                })
            })
            .collect();
        tokio::task::yield_now().await;
        first.finish(Seen::Failed);
        for task in waiting {
            task.await.expect("no panic");
        }
        assert_eq!(*order.lock().expect("no panic"), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn places_follow_the_limit_up_and_down() {
        let limiter = Limiter::new(64);
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(limiter.acquire().await);
        }
        held.pop().expect("one").finish(Seen::Accepted { latency_us: 1000 });
        assert_eq!(limiter.limit(), 9);
        held.push(limiter.acquire().await);
        held.push(limiter.acquire().await);
        held.pop().expect("one").finish(Seen::RateLimited(PaceHint::default()));
        assert_eq!(limiter.limit(), 6);
        assert_eq!(limiter.places.available_permits(), 0);
        for _ in 0..3 {
            drop(held.pop());
        }
        assert_eq!((limiter.lock().places, limiter.places.available_permits()), (6, 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
        /// Whatever ends how, in flight never passes the limit that held when the call left, and no place is lost.
        #[test]
        fn in_flight_stays_within_the_limit(max in 1_usize..40, ends in proptest::collection::vec((0_u8..5, 0_u8..4), 1..150)) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            runtime.block_on(async {
                let limiter = Arc::new(Limiter::new(max));
                let flying = Arc::new(AtomicUsize::new(0));
                let tasks: Vec<_> = ends.into_iter().map(|(end, yields)| {
                    let (limiter, flying) = (limiter.clone(), flying.clone());
                    tokio::spawn(async move {
                        let permit = limiter.acquire().await;
                        assert!(flying.fetch_add(1, Ordering::SeqCst) < max);
                        for _ in 0..yields { tokio::task::yield_now().await; }
                        flying.fetch_sub(1, Ordering::SeqCst);
                        match end {
                            0 => drop(permit),
                            1 => permit.finish(Seen::Failed),
                            _ => permit.finish(Seen::Accepted { latency_us: 1000 }),
                        }
                    })
                }).collect();
                for task in tasks { task.await.expect("no panic"); }
                let limit = limiter.limit();
                assert_eq!((limiter.lock().places, limiter.places.available_permits()), (limit, limit));
            });
        }
    }
}
