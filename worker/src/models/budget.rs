//! The hard cap on spending within a process (P10): reserve the worst case, send, settle what it really cost.
//!
//! `spent + reserved ≤ cap` holds at every moment; only a call that costs more than its own worst case can pass the cap,
//! by that excess, and is reported as overdraft. A reservation that does not fit waits while others are outstanding; when
//! none is, the smallest waiting one decides: if even that does not fit, all are refused.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bench_proto::money::PicoUsd;
use tokio::sync::oneshot;

/// Money of one run in this process.
#[derive(Debug)]
pub struct Budget(Mutex<State>);

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
    amount: i64,
    answer: oneshot::Sender<Result<Reservation, OverCap>>,
}

/// A reservation does not fit and nothing is outstanding that could make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the next call may cost {needed}, {left} are left under the cap: raise it with `resume --max-cost`")]
pub struct OverCap {
    /// Worst case of the call.
    pub needed: PicoUsd,
    /// What is left under the cap.
    pub left: PicoUsd,
}

/// Where the money is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetState {
    /// The cap, if there is one.
    pub cap: Option<PicoUsd>,
    /// Settled.
    pub spent: PicoUsd,
    /// Reserved for attempts under way.
    pub reserved: PicoUsd,
    /// What attempts cost beyond their own worst case.
    pub overdraft: PicoUsd,
}

/// A reserved worst case. Dropping it releases it when the attempt was not sent, and books it in full when it was.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    amount: i64,
    sent: bool,
    open: bool,
}

impl State {
    fn fits(&self, amount: i64) -> bool {
        self.cap.is_none_or(|cap| self.spent.saturating_add(self.reserved).saturating_add(amount) <= cap)
    }

    fn take(&mut self, amount: i64) {
        self.reserved = self.reserved.saturating_add(amount);
        self.outstanding += 1;
    }

    fn over_cap(&self, amount: i64) -> OverCap {
        let left = self.cap.unwrap_or(i64::MAX).saturating_sub(self.spent).saturating_sub(self.reserved).max(0);
        OverCap { needed: PicoUsd(amount), left: PicoUsd(left) }
    }
}

impl Budget {
    /// A budget with a cap (none: unlimited) of which `spent` is gone already.
    #[must_use]
    pub fn new(cap: Option<PicoUsd>, spent: PicoUsd) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            cap: cap.map(|cap| cap.0),
            spent: spent.0,
            reserved: 0,
            outstanding: 0,
            overdraft: 0,
            waiting: VecDeque::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // every change of the state is complete when the lock is dropped, so a panic elsewhere leaves it usable
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reservation(self: &Arc<Self>, amount: i64) -> Reservation {
        Reservation { budget: Arc::clone(self), amount, sent: false, open: true }
    }

    /// Whether there is a cap: only then worst cases must be counted.
    #[must_use]
    pub fn is_capped(&self) -> bool {
        self.lock().cap.is_some()
    }

    /// Where the money is.
    #[must_use]
    pub fn state(&self) -> BudgetState {
        let state = self.lock();
        BudgetState {
            cap: state.cap.map(PicoUsd),
            spent: PicoUsd(state.spent),
            reserved: PicoUsd(state.reserved),
            overdraft: PicoUsd(state.overdraft),
        }
    }

    /// Sets another cap; who waits is looked at again.
    pub fn set_cap(self: &Arc<Self>, cap: Option<PicoUsd>) {
        self.lock().cap = cap.map(|cap| cap.0);
        self.serve();
    }

    /// Books money that others spent (a memory system's own usage, another process).
    pub fn add_spent(&self, amount: PicoUsd) {
        let mut state = self.lock();
        state.spent = state.spent.saturating_add(amount.0);
    }

    /// Reserves a generous bound if that leaves at least half of the rest free: spares counting tokens far from the cap.
    pub fn try_reserve_generously(self: &Arc<Self>, amount: PicoUsd) -> Option<Reservation> {
        let mut state = self.lock();
        let roomy = state.cap.is_none_or(|cap| {
            let rest = cap.saturating_sub(state.spent).max(0);
            state.reserved.saturating_add(amount.0) <= rest / 2
        });
        (roomy && state.waiting.is_empty()).then(|| {
            state.take(amount.0);
            self.reservation(amount.0)
        })
    }

    /// Reserves `amount`, waiting for the settlement of others while there are any.
    ///
    /// # Errors
    /// When it does not fit and nothing is outstanding.
    pub async fn reserve(self: &Arc<Self>, amount: PicoUsd) -> Result<Reservation, OverCap> {
        let answer = {
            let mut state = self.lock();
            if state.fits(amount.0) {
                state.take(amount.0);
                return Ok(self.reservation(amount.0));
            }
            if state.outstanding == 0 {
                return Err(state.over_cap(amount.0));
            }
            let (sender, receiver) = oneshot::channel();
            state.waiting.push_back(Waiting { amount: amount.0, answer: sender });
            receiver
        };
        // the sender is dropped unanswered only with the budget itself
        answer.await.unwrap_or(Err(OverCap { needed: amount, left: PicoUsd::ZERO }))
    }

    /// Gives what is free to those who wait, in order; refuses all when nothing fits and nothing is outstanding.
    fn serve(self: &Arc<Self>) {
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
                if state.fits(waiting.amount) {
                    state.take(waiting.amount);
                    answers.push((waiting.answer, Ok(self.reservation(waiting.amount))));
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

    fn close(self: &Arc<Self>, amount: i64, actual: i64) {
        {
            let mut state = self.lock();
            state.reserved -= amount;
            state.outstanding -= 1;
            state.spent = state.spent.saturating_add(actual);
            state.overdraft = state.overdraft.saturating_add((actual - amount).max(0));
        }
        self.serve();
    }
}

impl Reservation {
    /// The reserved amount.
    #[must_use]
    pub const fn amount(&self) -> PicoUsd {
        PicoUsd(self.amount)
    }

    /// Notes that the attempt is being sent: from now on dropping books the worst case.
    pub const fn sent(&mut self) {
        self.sent = true;
    }

    /// Books what the attempt cost and frees the rest.
    pub fn settle(mut self, actual: PicoUsd) {
        self.open = false;
        self.budget.close(self.amount, actual.0);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.open {
            self.budget.close(self.amount, if self.sent { self.amount } else { 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn usd(amount: i64) -> PicoUsd {
        PicoUsd(amount)
    }

    #[tokio::test]
    async fn p10_waits_for_settlement_and_refuses_only_when_nothing_is_outstanding() {
        let budget = Budget::new(Some(usd(100)), usd(20));
        let first = budget.reserve(usd(70)).await.expect("fits");
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { budget.reserve(usd(30)).await.map(|reservation| reservation.amount()) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        first.settle(usd(10));
        assert_eq!(waiting.await.expect("no panic"), Ok(usd(30)));
        assert_eq!(budget.state().spent, usd(30), "the second was dropped unsent");
        assert_eq!(budget.reserve(usd(71)).await.err(), Some(OverCap { needed: usd(71), left: usd(70) }));
    }

    #[tokio::test]
    async fn p10_the_smallest_waiting_call_decides() {
        let budget = Budget::new(Some(usd(100)), usd(0));
        let mut holder = budget.reserve(usd(90)).await.expect("fits");
        let ask = |amount| {
            let budget = budget.clone();
            tokio::spawn(
                async move { budget.reserve(usd(amount)).await.map(|reservation| reservation.settle(usd(amount))) },
            )
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
        assert!(budget.reserve(usd(110)).await.is_ok());
    }

    #[tokio::test]
    async fn overdraft_is_booked_in_full() {
        let budget = Budget::new(Some(usd(100)), usd(0));
        budget.reserve(usd(60)).await.expect("fits").settle(usd(120));
        assert_eq!(
            budget.state(),
            BudgetState { cap: Some(usd(100)), spent: usd(120), reserved: usd(0), overdraft: usd(60) }
        );
        assert!(budget.reserve(usd(1)).await.is_err());
    }

    #[tokio::test]
    async fn who_goes_away_leaves_nothing_reserved() {
        let budget = Budget::new(Some(usd(100)), usd(0));
        let first = budget.reserve(usd(80)).await.expect("fits");
        let gone = tokio::spawn({
            let budget = budget.clone();
            async move { budget.reserve(usd(50)).await }
        });
        tokio::task::yield_now().await;
        gone.abort();
        let _ = gone.await;
        first.settle(usd(0));
        assert_eq!(budget.state().reserved, usd(0));
        assert!(budget.try_reserve_generously(usd(51)).is_none());
        assert!(budget.try_reserve_generously(usd(50)).is_some());
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
                let budget = Budget::new(Some(usd(cap)), usd(0));
                let check = move |budget: &Budget| {
                    let state = budget.state();
                    assert!(state.spent.0 + state.reserved.0 <= cap && state.reserved.0 >= 0, "{state:?}");
                };
                let tasks: Vec<_> = calls.iter().map(|&(worst, percent, yields, fate)| {
                    let budget = budget.clone();
                    tokio::spawn(async move {
                        for _ in 0..yields { tokio::task::yield_now().await; }
                        let Ok(mut reservation) = budget.reserve(usd(worst)).await else {
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
