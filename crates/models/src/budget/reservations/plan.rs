//! The decisions about reservations: who waits, what to ask for, what to hold in reserve, when to give up. Pure: time comes in.

use std::{
    cmp::Reverse,
    collections::VecDeque,
    time::{Duration, Instant},
};

use bench_proto::{call::Phase, money::PicoUsd};
use bench_store::{BudgetAnswer, BudgetChange, BudgetScope, BudgetState, RunRow, Want};
use uuid::Uuid;

use super::{ASK_AGAIN, LOOK};
use crate::{
    Waiter,
    budget::{OverCap, Refusal},
};

/// Most reservations of one transaction.
const MOST_WANTS: usize = 256;
/// A float holds what is needed in this time.
const FLOAT_SECONDS: f64 = 0.15;
/// Below this demand, in calls per second, a float is not worth its money.
const FLOAT_FROM: f64 = 20.0;
/// Most reservations that a phase aims to hold ready.
const FLOAT_MOST: usize = 256;
/// Amounts are rounded up to eighths of the power of two below them: calls differ by a few bytes of their prompts, and a float for one is
/// to serve the next.
const STEPS: i64 = 8;
/// The largest amount is remembered for at least so long, and for at most twice as long: a rare large call is forgotten while others go on.
const RECENT: Duration = Duration::from_millis(500);
/// A float that was not touched for so long goes back.
const FLOAT_IDLE: Duration = Duration::from_millis(300);
/// Where less than this part of a cap is left, there is no float.
const NEAR: i64 = 10;
/// How long a call waits for what only other runs could free (the caps of a group and of the day).
const OTHERS: Duration = Duration::from_secs(60);

const PHASES: usize = Phase::ALL.len();

fn at(phase: Phase) -> usize {
    Phase::ALL.iter().position(|p| *p == phase).unwrap_or(0)
}

/// A call that waits for money; `A` is how it is told.
struct Waiting<A> {
    id: Uuid,
    phase: Phase,
    amount: i64,
    /// A refusal is an answer at once.
    once: bool,
    answer: A,
}

/// What a call gets at once.
pub(super) enum Given {
    /// A reservation that was held ready.
    FromFloat {
        /// Id of the reservation.
        id: Uuid,
        /// Its amount: at least what was asked for.
        amount: i64,
        /// The float needs filling.
        low: bool,
    },
    /// Nothing is ready yet: wait.
    Nothing,
    /// The reservations are closed.
    Closed,
}

/// What was asked of the store: the calls of the first wants, then float.
pub(super) struct Asked<A>(Vec<Waiting<A>>);

/// Demand of a phase.
#[derive(Debug, Clone, Copy, Default)]
struct Demand {
    /// Calls since the last look.
    taken: u32,
    /// Calls per second, smoothed.
    rate: f64,
    /// Largest amount since the last turn.
    now: i64,
    /// Largest amount between the turn before and the last one.
    before: i64,
}

impl Demand {
    /// Largest recent amount.
    fn largest(&self) -> i64 {
        self.now.max(self.before)
    }

    /// Whether what is held ready is large enough for any recent call, and not much too large. Other reservations count for nothing:
    /// where calls have grown, a float of them would stay full and serve nobody, and where they have shrunk, it would bind money.
    fn fits(&self, held: i64) -> bool {
        let largest = self.largest();
        held >= largest && held <= rounded_up(largest).saturating_mul(2)
    }
}

/// State of the reservations of a run in one process.
pub(super) struct Plan<A> {
    waiting: VecDeque<Waiting<A>>,
    float: [Vec<(Uuid, i64)>; PHASES],
    demand: [Demand; PHASES],
    looked: Option<Instant>,
    /// When the largest amounts were last set aside.
    turned: Option<Instant>,
    touched: Option<Instant>,
    release: Vec<Uuid>,
    lose: Vec<Uuid>,
    caps: Vec<BudgetState>,
    /// The last answer refused somebody.
    refused: bool,
    /// Since when the sums under the refusing cap have not changed.
    stuck: Option<(Instant, BudgetState)>,
    closed: bool,
    /// Whether nothing is held any more.
    empty: bool,
}

pub(super) type Answers<A> = Vec<(A, Result<(Uuid, Phase, i64), Refusal>)>;

impl<A: Waiter> Plan<A> {
    /// A plan before the first answer of the store: the day, the phases and other runs of the group are believed to be untouched.
    pub(super) fn new(run: &RunRow) -> Self {
        let state = |scope, cap, spent, reserved| BudgetState { scope, cap, spent, reserved };
        let (zero, limits) = (PicoUsd::ZERO, &run.spec.limits);
        let scope = if run.group.is_some() { BudgetScope::Group } else { BudgetScope::Run };
        let of_usage = limits.max_usage.map(|cap| state(BudgetScope::Usage(cap.unit), PicoUsd(cap.most), zero, zero));
        let of_run = limits.max_cost.map(|cap| state(scope, cap, run.counters.spent, run.counters.reserved));
        let phases =
            limits.max_cost_by_phase.iter().map(|(phase, cap)| state(BudgetScope::Phase(*phase), *cap, zero, zero));
        let day = limits.max_cost_per_day.map(|cap| state(BudgetScope::Day, cap, zero, zero));
        Self {
            waiting: VecDeque::new(),
            float: Default::default(),
            demand: Default::default(),
            looked: None,
            turned: None,
            touched: None,
            release: Vec::new(),
            lose: Vec::new(),
            // one on usage stands in the place of all
            caps: of_usage.map_or_else(|| of_run.into_iter().chain(phases).chain(day).collect(), |cap| vec![cap]),
            refused: false,
            stuck: None,
            closed: false,
            empty: false,
        }
    }

    fn caps_of(&self, phase: Phase) -> impl Iterator<Item = &BudgetState> {
        self.caps.iter().filter(move |state| state.scope.holds(phase))
    }

    /// Whether an amount leaves most of the money free.
    pub(super) fn roomy(&self, phase: Phase, amount: i64) -> bool {
        let own: i64 = self.waiting.iter().map(|w| w.amount).sum();
        self.caps_of(phase).all(|state| amount.saturating_add(own) <= state.left().0 / 2)
    }

    /// Whether some cap is too near for money to be held ready.
    fn near(&self, phase: Phase) -> bool {
        self.caps_of(phase).any(|state| state.left().0 < state.cap.0 / NEAR)
    }

    /// Takes a reservation that is held ready.
    pub(super) fn take(&mut self, phase: Phase, amount: i64) -> Given {
        if self.closed {
            return Given::Closed;
        }
        let place = at(phase);
        let demand = &mut self.demand[place];
        demand.taken += 1;
        demand.now = demand.now.max(amount);
        if !self.waiting.is_empty() {
            return Given::Nothing;
        }
        let float = &mut self.float[place];
        let enough = float.iter().enumerate().filter(|(_, (_, held))| *held >= amount);
        // the smallest of them: larger calls need the others
        let fits = enough.min_by_key(|(_, (_, held))| *held).map(|(at, _)| at);
        let Some(fits) = fits else { return Given::Nothing };
        let (id, amount) = float.swap_remove(fits);
        let low = self.fitting(place) * 2 < target(&self.demand[place]);
        self.touched = None;
        Given::FromFloat { id, amount, low }
    }

    /// How many of those that are held ready fit recent calls.
    fn fitting(&self, place: usize) -> usize {
        let demand = &self.demand[place];
        self.float[place].iter().filter(|(_, held)| demand.fits(*held)).count()
    }

    /// Lets a call wait for money.
    pub(super) fn wait(&mut self, phase: Phase, amount: i64, once: bool, answer: A) {
        self.waiting.push_back(Waiting { id: Uuid::now_v7(), phase, amount, once, answer });
    }

    /// An attempt was not sent, or cost nothing: its reservation serves the next one. True when the store must hear of it.
    pub(super) fn give_back(&mut self, id: Uuid, phase: Phase, amount: i64) -> bool {
        let place = at(phase);
        let keep = !self.closed && self.waiting.is_empty() && !self.near(phase) && self.float[place].len() < FLOAT_MOST;
        if keep {
            self.float[place].push((id, amount));
        } else {
            self.release.push(id);
        }
        // a float that began now is looked at later
        true
    }

    /// An attempt was sent and given up.
    pub(super) fn lose(&mut self, id: Uuid) {
        self.lose.push(id);
    }

    /// Whether somebody waits who was refused.
    pub(super) fn starving(&self) -> bool {
        self.refused && !self.waiting.is_empty()
    }

    /// Whether somebody was refused who waits, or is being asked for again. While it is so there is no float, and each call asks anew.
    pub(super) const fn has_refused(&self) -> bool {
        self.refused
    }

    /// Takes no more calls. True when something must be given back first.
    pub(super) fn close(&mut self) -> bool {
        self.closed = true;
        !self.empty
    }

    /// Whether the task can end: closed, and nothing to give back.
    pub(super) fn is_done(&mut self) -> bool {
        self.empty = self.closed
            && self.release.is_empty()
            && self.lose.is_empty()
            && self.waiting.is_empty()
            && self.float.iter().all(Vec::is_empty);
        self.empty
    }

    /// How long there is nothing to do; `None`: until somebody wakes.
    pub(super) fn pause(&self) -> Option<Duration> {
        let work = self.closed || !self.release.is_empty() || !self.lose.is_empty();
        if work || (!self.waiting.is_empty() && !self.refused) {
            return Some(Duration::ZERO);
        }
        if !self.waiting.is_empty() {
            return Some(ASK_AGAIN);
        }
        let holds = self.float.iter().any(|float| !float.is_empty());
        let used = self.demand.iter().any(|demand| demand.taken > 0 || demand.rate > 1.0);
        (holds || used).then_some(LOOK)
    }

    /// What goes back to the store: reservations of attempts that were never sent, and of those that were given up.
    pub(super) fn returns(&mut self) -> (Vec<Uuid>, Vec<Uuid>) {
        (std::mem::take(&mut self.release), std::mem::take(&mut self.lose))
    }

    /// What to ask the store for, after a look at the float.
    pub(super) fn wants(&mut self, now: Instant) -> (Vec<Want>, Asked<A>) {
        self.look(now);
        self.waiting.retain(|waiting| !waiting.answer.gone());
        let mut asked = Vec::new();
        if self.closed {
            // dropping their answers tells them
            self.waiting.clear();
            return (Vec::new(), Asked(asked));
        }
        let smallest = self.waiting.iter().map(|w| w.amount).min().unwrap_or(0);
        let mut left: Vec<i64> = self.caps.iter().map(|state| state.left().0).collect();
        for _ in 0..self.waiting.len() {
            let Some(waiting) = self.waiting.pop_front() else { break };
            // near the cap the last answer says who may fit; the smallest asks in any case
            let mut under = self.caps.iter().zip(&mut left).filter(|(cap, _)| cap.scope.holds(waiting.phase));
            let fits = under.all(|(_, left)| *left >= waiting.amount);
            let ask = asked.len() < MOST_WANTS && (!self.refused || fits || waiting.amount == smallest);
            if !ask {
                self.waiting.push_back(waiting);
                continue;
            }
            for (_, left) in self.caps.iter().zip(&mut left).filter(|(cap, _)| cap.scope.holds(waiting.phase)) {
                *left -= waiting.amount;
            }
            asked.push(waiting);
        }
        let mut wants: Vec<Want> =
            asked.iter().map(|w| Want { attempt: w.id, phase: w.phase, amount: PicoUsd(w.amount) }).collect();
        self.fill(&mut wants);
        (wants, Asked(asked))
    }

    /// Adds float to what is asked for.
    fn fill(&self, wants: &mut Vec<Want>) {
        if self.refused {
            return;
        }
        for (place, phase) in Phase::ALL.into_iter().enumerate() {
            let demand = &self.demand[place];
            let missing =
                target(demand).saturating_sub(self.fitting(place)).min(MOST_WANTS.saturating_sub(wants.len()));
            let amount = rounded_up(demand.largest());
            let money = amount.saturating_mul(i64::try_from(missing).unwrap_or(i64::MAX));
            if missing == 0 || amount <= 0 || self.near(phase) || !self.roomy(phase, money.saturating_mul(2)) {
                continue;
            }
            let amount = PicoUsd(amount);
            wants.extend((0..missing).map(|_| Want { attempt: Uuid::now_v7(), phase, amount }));
        }
    }

    /// Measures the demand; gives up a float that is not used, or that others may need, and what is too much of it.
    fn look(&mut self, now: Instant) {
        self.measure(now);
        let idle = *self.touched.get_or_insert(now);
        let unused = now.saturating_duration_since(idle) >= FLOAT_IDLE;
        for (place, phase) in Phase::ALL.into_iter().enumerate() {
            if self.closed || self.refused || unused || self.near(phase) {
                self.release.extend(self.float[place].drain(..).map(|(id, _)| id));
            } else {
                self.trim(place);
            }
        }
    }

    fn measure(&mut self, now: Instant) {
        let since = self.looked.map_or(LOOK, |looked| now.saturating_duration_since(looked));
        if since < Duration::from_millis(50) {
            return;
        }
        self.looked = Some(now);
        let turns = now.saturating_duration_since(*self.turned.get_or_insert(now)) >= RECENT;
        if turns {
            self.turned = Some(now);
        }
        for demand in &mut self.demand {
            let rate = f64::from(demand.taken) / since.as_secs_f64();
            // up at once, down over some looks
            demand.rate = rate.max(demand.rate * 0.7 + rate * 0.3);
            if demand.taken == 0 {
                demand.rate *= 0.5;
            }
            demand.taken = 0;
            if turns {
                demand.before = std::mem::take(&mut demand.now);
            }
        }
    }

    /// Keeps half as many again as are to be held ready at most. What fits no recent call stays until there is half a float of what does,
    /// and no more than half a float of it: together with what is then asked for, it is no more either.
    fn trim(&mut self, place: usize) {
        let demand = self.demand[place];
        let aim = target(&demand).max(1);
        let half = aim.div_ceil(2);
        let fitting = self.fitting(place);
        let keep_others = if fitting < half { half } else { 0 };
        if fitting <= aim + half && self.float[place].len() - fitting <= keep_others {
            return;
        }
        let held = std::mem::take(&mut self.float[place]);
        let (mut kept, mut others): (Vec<_>, Vec<_>) = held.into_iter().partition(|(_, held)| demand.fits(*held));
        // what binds more than is needed goes first
        kept.sort_unstable_by_key(|(_, held)| *held);
        // then the smallest, which serve the fewest calls
        let largest = demand.largest();
        others.sort_unstable_by_key(|(_, held)| (*held >= largest, Reverse(*held)));
        let over = kept.drain((aim + half).min(fitting)..).chain(others.drain(keep_others.min(others.len())..));
        self.release.extend(over.map(|(id, _)| id));
        kept.append(&mut others);
        self.float[place] = kept;
    }

    /// Takes the store's answer in; says who is answered what.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        Asked(asked): Asked<A>,
        wants: &[Want],
        answer: &BudgetAnswer,
    ) -> Answers<A> {
        if answer.stopped && !wants.is_empty() {
            let why = "the run is not running";
            return asked.into_iter().map(|w| (w.answer, Err(Refusal::Stopped(why.to_owned())))).collect();
        }
        self.caps.clone_from(&answer.caps);
        let refused_by = |place: usize| answer.refused.iter().find(|(at, _)| *at == place).map(|(_, scope)| *scope);
        let calls = asked.len();
        let mut answers = Vec::with_capacity(calls);
        let mut again = Vec::new();
        for (place, waiting) in asked.into_iter().enumerate() {
            match refused_by(place) {
                None => answers.push((waiting.answer, Ok((waiting.id, waiting.phase, waiting.amount)))),
                Some(scope) if waiting.once => {
                    let refusal = self.over_cap(scope, waiting.amount);
                    answers.push((waiting.answer, Err(refusal)));
                }
                Some(scope) => again.push((waiting, scope)),
            }
        }
        for (place, want) in wants.iter().enumerate().skip(calls) {
            if refused_by(place).is_none() {
                self.float[at(want.phase)].push((want.attempt, want.amount.0));
            }
        }
        self.refused = !again.is_empty();
        self.give_up(now, again, &mut answers);
        answers
    }

    /// Puts refused calls back, or refuses them for good: when nothing is outstanding that could make room, the smallest one that was
    /// asked for decides for all that are as large. A smaller one may have come while the store was asked.
    fn give_up(&mut self, now: Instant, again: Vec<(Waiting<A>, BudgetScope)>, answers: &mut Answers<A>) {
        let held = self.float.iter().any(|float| !float.is_empty()) || !self.release.is_empty();
        let mut hopeless = Vec::new();
        for (waiting, scope) in again.into_iter().rev() {
            let state = self.caps.iter().find(|state| state.scope == scope).copied();
            let outstanding = state.is_none_or(|state| state.reserved > PicoUsd::ZERO);
            if !outstanding && !held && answers.is_empty() {
                hopeless.push(scope);
            }
            if let (BudgetScope::Group | BudgetScope::Day, Some(state)) = (scope, state) {
                match self.stuck {
                    Some((since, before)) if before == state => {
                        if now.saturating_duration_since(since) > OTHERS {
                            hopeless.push(scope);
                        }
                    }
                    _ => self.stuck = Some((now, state)),
                }
            }
            self.waiting.push_front(waiting);
        }
        if hopeless.is_empty() {
            return;
        }
        for waiting in std::mem::take(&mut self.waiting) {
            let too_much = |scope: BudgetScope| scope.holds(waiting.phase) && waiting.amount > self.left_under(scope).0;
            let hit = hopeless.iter().copied().find(|scope| too_much(*scope));
            match hit {
                Some(scope) => {
                    let refusal = self.over_cap(scope, waiting.amount);
                    answers.push((waiting.answer, Err(refusal)));
                }
                None => self.waiting.push_back(waiting),
            }
        }
        self.refused = !self.waiting.is_empty();
    }

    fn over_cap(&self, scope: BudgetScope, amount: i64) -> Refusal {
        let cap = self.caps.iter().find(|state| state.scope == scope).map_or(PicoUsd::ZERO, |state| state.cap);
        Refusal::OverCap(OverCap { needed: PicoUsd(amount), left: self.left_under(scope), cap, scope })
    }

    /// What is left under a cap; nothing where there is no such cap.
    fn left_under(&self, scope: BudgetScope) -> PicoUsd {
        let state = self.caps.iter().find(|state| state.scope == scope);
        state.map_or(PicoUsd::ZERO, |state| state.left().max(PicoUsd::ZERO))
    }

    /// The store gives nothing: who asked is told why. What it may have reserved all the same is given back, unless the
    /// reservations are closed: then it becomes uncertain with the session.
    pub(super) fn failed(&mut self, Asked(asked): Asked<A>, change: BudgetChange, why: &str) -> Answers<A> {
        if !self.closed {
            self.release.extend(change.release);
            self.release.extend(change.wants.iter().map(|want| want.attempt));
            self.lose.extend(change.lose);
        }
        asked.into_iter().map(|waiting| (waiting.answer, Err(Refusal::Stopped(why.to_owned())))).collect()
    }
}

/// The amount that is held ready for calls of at most `amount`: by less than an eighth more.
fn rounded_up(amount: i64) -> i64 {
    let step = amount.checked_ilog2().map_or(1, |log| ((1_i64 << log) / STEPS).max(1));
    // there is no step above the largest number
    (amount.saturating_add(step - 1) / step * step).max(amount)
}

/// Reservations that are to be held ready.
fn target(demand: &Demand) -> usize {
    if demand.rate < FLOAT_FROM { 0 } else { ((demand.rate * FLOAT_SECONDS).ceil() as usize).min(FLOAT_MOST) }
}
