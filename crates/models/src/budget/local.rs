//! A budget within a process, for callers without a store.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use async_trait::async_trait;
use bench_proto::{call::Phase, money::PicoUsd};
use bench_store::BudgetScope;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{Budget, Ended, Holder, OverCap, Refusal, Reservation};

/// Money of one run in this process.
#[derive(Debug)]
pub struct LocalBudget {
    state: Mutex<State>,
    /// Reservations keep their budget alive.
    own: Weak<Self>,
}

#[derive(Debug)]
struct State {
    cap: Option<i64>,
    spent: i64,
    reserved: i64,
    outstanding: u64,
    overdraft: i64,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    phase: Phase,
    amount: i64,
    answer: oneshot::Sender<Result<Reservation, Refusal>>,
}

/// Where the money is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocalState {
    /// The cap, if there is one.
    pub cap: Option<PicoUsd>,
    /// Settled.
    pub spent: PicoUsd,
    /// Reserved for attempts under way.
    pub reserved: PicoUsd,
    /// What attempts cost beyond their own worst case.
    pub overdraft: PicoUsd,
}

impl State {
    fn fits(&self, amount: i64) -> bool {
        self.cap.is_none_or(|cap| self.spent.saturating_add(self.reserved).saturating_add(amount) <= cap)
    }

    fn take(&mut self, amount: i64) {
        self.reserved = self.reserved.saturating_add(amount);
        self.outstanding += 1;
    }

    fn over_cap(&self, amount: i64) -> Refusal {
        let cap = self.cap.unwrap_or(i64::MAX);
        let left = cap.saturating_sub(self.spent).saturating_sub(self.reserved).max(0);
        let (needed, left, cap) = (PicoUsd(amount), PicoUsd(left), PicoUsd(cap));
        Refusal::OverCap(OverCap { needed, left, cap, scope: BudgetScope::Run })
    }
}

impl LocalBudget {
    /// A budget with a cap (none: unlimited) of which `spent` is gone already.
    #[must_use]
    pub fn new(cap: Option<PicoUsd>, spent: PicoUsd) -> Arc<Self> {
        let state = State {
            cap: cap.map(|cap| cap.0),
            spent: spent.0,
            reserved: 0,
            outstanding: 0,
            overdraft: 0,
            waiting: VecDeque::new(),
        };
        Arc::new_cyclic(|own| Self { state: Mutex::new(state), own: own.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // every change of the state is complete when the lock is dropped, so a panic elsewhere leaves it usable
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` only while the budget is being dropped.
    fn reservation(&self, phase: Phase, amount: i64) -> Option<Reservation> {
        let holder = self.own.upgrade()?;
        Some(Reservation::new(holder, Uuid::now_v7(), phase, PicoUsd(amount)))
    }

    /// Where the money is.
    #[must_use]
    pub fn state(&self) -> LocalState {
        let state = self.lock();
        LocalState {
            cap: state.cap.map(PicoUsd),
            spent: PicoUsd(state.spent),
            reserved: PicoUsd(state.reserved),
            overdraft: PicoUsd(state.overdraft),
        }
    }

    /// Sets another cap; who waits is looked at again.
    pub fn set_cap(&self, cap: Option<PicoUsd>) {
        self.lock().cap = cap.map(|cap| cap.0);
        self.serve();
    }

    /// Gives what is free to those who wait, in order; refuses all when nothing fits and nothing is outstanding.
    fn serve(&self) {
        let mut answers = Vec::new();
        {
            let mut state = self.lock();
            if state.waiting.is_empty() {
                return;
            }
            for waiting in std::mem::take(&mut state.waiting) {
                if waiting.answer.is_closed() {
                    continue;
                }
                if state.fits(waiting.amount)
                    && let Some(reservation) = self.reservation(waiting.phase, waiting.amount)
                {
                    state.take(waiting.amount);
                    answers.push((waiting.answer, Ok(reservation)));
                } else {
                    state.waiting.push_back(waiting);
                }
            }
            if state.outstanding == 0 {
                for waiting in std::mem::take(&mut state.waiting) {
                    let refusal = state.over_cap(waiting.amount);
                    answers.push((waiting.answer, Err(refusal)));
                }
            }
        }
        // outside the lock: an answer whose reader has gone drops its reservation, which settles and serves again
        for (answer, result) in answers {
            let _ = answer.send(result);
        }
    }
}

#[async_trait]
impl Budget for LocalBudget {
    async fn reserve_generously(&self, phase: Phase, bound: PicoUsd) -> Option<Reservation> {
        let mut state = self.lock();
        let roomy = state.cap.is_none_or(|cap| {
            let rest = cap.saturating_sub(state.spent).max(0);
            state.reserved.saturating_add(bound.0) <= rest / 2
        });
        if !roomy || !state.waiting.is_empty() {
            return None;
        }
        let reservation = self.reservation(phase, bound.0)?;
        state.take(bound.0);
        Some(reservation)
    }

    async fn reserve(&self, phase: Phase, amount: PicoUsd) -> Result<Reservation, Refusal> {
        let gone = || Refusal::Stopped("the budget is gone".to_owned());
        let answer = {
            let mut state = self.lock();
            if state.fits(amount.0) {
                let reservation = self.reservation(phase, amount.0).ok_or_else(gone)?;
                state.take(amount.0);
                return Ok(reservation);
            }
            if state.outstanding == 0 {
                return Err(state.over_cap(amount.0));
            }
            let (sender, receiver) = oneshot::channel();
            state.waiting.push_back(Waiting { phase, amount: amount.0, answer: sender });
            receiver
        };
        // the sender is dropped unanswered only with the budget itself
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Holder for LocalBudget {
    fn ended(self: Arc<Self>, _: Uuid, _: Phase, amount: PicoUsd, end: Ended) {
        let actual = match end {
            Ended::Free => PicoUsd::ZERO,
            Ended::Settled(actual) => actual,
            Ended::Lost => amount,
        };
        {
            let mut state = self.lock();
            state.reserved -= amount.0;
            state.outstanding -= 1;
            state.spent = state.spent.saturating_add(actual.0);
            state.overdraft = state.overdraft.saturating_add((actual.0 - amount.0).max(0));
        }
        self.serve();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PHASE: Phase = Phase::Answer;

    const fn usd(amount: i64) -> PicoUsd {
        PicoUsd(amount)
    }

    #[tokio::test]
    async fn p10_waits_for_settlement_and_refuses_only_when_nothing_is_outstanding() {
        let budget = LocalBudget::new(Some(usd(100)), usd(20));
        let first = budget.reserve(PHASE, usd(70)).await.expect("fits");
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { budget.reserve(PHASE, usd(30)).await.map(|reservation| reservation.amount()) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        first.settle(usd(10));
        assert_eq!(waiting.await.expect("no panic"), Ok(usd(30)));
        assert_eq!(budget.state().spent, usd(30), "the second was dropped unsent");
        assert_eq!(
            budget.reserve(PHASE, usd(71)).await.err(),
            Some(Refusal::OverCap(OverCap { needed: usd(71), left: usd(70), cap: usd(100), scope: BudgetScope::Run }))
        );
    }

    #[tokio::test]
    async fn p10_the_smallest_waiting_call_decides() {
        let budget = LocalBudget::new(Some(usd(100)), usd(0));
        let mut holder = budget.reserve(PHASE, usd(90)).await.expect("fits");
        let ask = |amount| {
            let budget = budget.clone();
            tokio::spawn(async move {
                budget.reserve(PHASE, usd(amount)).await.map(|reservation| reservation.settle(usd(amount)))
            })
        };
        let (large, small, middle) = (ask(60), ask(15), ask(55));
        tokio::task::yield_now().await;
        holder.sent();
        drop(holder);
        assert!(large.await.expect("no panic").is_err());
        assert!(middle.await.expect("no panic").is_err());
        assert!(small.await.expect("no panic").is_err(), "90 were booked because the call had been sent");
        assert_eq!(budget.state().spent, usd(90));
        budget.set_cap(Some(usd(200)));
        assert!(budget.reserve(PHASE, usd(110)).await.is_ok());
    }

    #[tokio::test]
    async fn overdraft_is_booked_in_full() {
        let budget = LocalBudget::new(Some(usd(100)), usd(0));
        budget.reserve(PHASE, usd(60)).await.expect("fits").settle(usd(120));
        assert_eq!(
            budget.state(),
            LocalState { cap: Some(usd(100)), spent: usd(120), reserved: usd(0), overdraft: usd(60) }
        );
        assert!(budget.reserve(PHASE, usd(1)).await.is_err());
    }

    #[tokio::test]
    async fn who_goes_away_leaves_nothing_reserved() {
        let budget = LocalBudget::new(Some(usd(100)), usd(0));
        let first = budget.reserve(PHASE, usd(80)).await.expect("fits");
        let gone = tokio::spawn({
            let budget = budget.clone();
            async move { budget.reserve(PHASE, usd(50)).await }
        });
        tokio::task::yield_now().await;
        gone.abort();
        let _ = gone.await;
        first.settle(usd(0));
        assert_eq!(budget.state().reserved, usd(0));
        assert!(budget.reserve_generously(PHASE, usd(51)).await.is_none());
        assert!(budget.reserve_generously(PHASE, usd(50)).await.is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        /// Callers with random worst cases, costs, waits and deaths, in random order.
        #[test]
        fn p10_spent_and_reserved_stay_under_the_cap(
            cap in 50_i64..400,
            calls in proptest::collection::vec((1_i64..120, 0_u8..=100, 0_u8..4, 0_u8..4), 1..60),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            runtime.block_on(async {
                let budget = LocalBudget::new(Some(usd(cap)), usd(0));
                let check = move |budget: &LocalBudget| {
                    let state = budget.state();
                    assert!(state.spent.0 + state.reserved.0 <= cap && state.reserved.0 >= 0, "{state:?}");
                };
                let tasks: Vec<_> = calls.iter().map(|&(worst, percent, yields, fate)| {
                    let budget = budget.clone();
                    tokio::spawn(async move {
                        for _ in 0..yields { tokio::task::yield_now().await; }
                        let Ok(mut reservation) = budget.reserve(PHASE, usd(worst)).await else {
                            check(&budget);
                            return 0;
                        };
                        check(&budget);
                        tokio::task::yield_now().await;
                        let cost = match fate {
                            0 => { drop(reservation); 0 }
                            1 => { reservation.sent(); drop(reservation); worst }
                            _ => {
                                let cost = worst * i64::from(percent) / 100;
                                reservation.sent();
                                reservation.settle(usd(cost));
                                cost
                            }
                        };
                        check(&budget);
                        cost
                    })
                }).collect();
                let mut total = 0;
                for task in tasks { total += task.await.expect("no panic"); }
                let state = budget.state();
                assert_eq!((state.spent.0, state.reserved.0, state.overdraft.0), (total, 0, 0));
            });
        }
    }
}
