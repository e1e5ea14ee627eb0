//! The decisions of a shared pace: who waits in which lane, who asks next, what goes back. Pure: time comes in.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use bench_proto::{call::Phase, ids::RunNo};
use bench_store::{PaceLimits, SlotAnswer};

use crate::Waiter;

/// Calls of one run and phase: lanes are served in turn (P11).
pub type Lane = (RunNo, Phase);

/// Most calls of one request to the store.
const MOST_CALLS: usize = 256;
/// Shortest time between two requests.
const GATHER: Duration = Duration::from_millis(10);
/// How often a process in use exchanges what it knows with the store, even when nobody waits.
const EXCHANGE: Duration = Duration::from_millis(500);
/// The same while a rate is being learned: others must hear of a refusal soon.
const EXCHANGE_LEARNING: Duration = Duration::from_millis(100);

/// A call that waits for its slot.
struct Waiting<A> {
    lane: Lane,
    tokens: u64,
    answer: A,
}

/// Calls that wait for their turn.
pub(super) struct PaceQueue<A> {
    lanes: VecDeque<(Lane, VecDeque<Waiting<A>>)>,
    waiting: usize,
    waiting_tokens: u64,
    give_back: (u32, u64),
    hold: Duration,
    /// A call was refused: the others hear of it at once.
    urgent: bool,
    /// A rate has been learned and is being tried out.
    learning: bool,
    /// Somebody called since the last exchange.
    active: bool,
    /// When the store was asked last, and when to ask again for those who wait.
    asked: Option<Instant>,
    ask_at: Option<Instant>,
    /// The last slot that was given.
    given_until: Option<Instant>,
    request: Duration,
    token: Duration,
}

/// What is asked of the store.
pub(super) struct StoreRequest<A> {
    calls: Vec<Waiting<A>>,
    pub(super) demand: u32,
    pub(super) give_back: (u32, u64),
    pub(super) hold: Duration,
}

impl<A> StoreRequest<A> {
    /// Tokens of the calls.
    pub(super) fn tokens(&self) -> Vec<u64> {
        self.calls.iter().map(|call| call.tokens).collect()
    }
}

impl<A: Waiter> PaceQueue<A> {
    pub(super) fn new(limits: PaceLimits) -> Self {
        let each =
            |limit: Option<u64>| limit.map_or(Duration::ZERO, |n| Duration::from_secs_f64(60.0 / n.max(1) as f64));
        Self {
            lanes: VecDeque::new(),
            waiting: 0,
            waiting_tokens: 0,
            give_back: (0, 0),
            hold: Duration::ZERO,
            urgent: false,
            learning: false,
            active: false,
            asked: None,
            ask_at: None,
            given_until: None,
            request: each(limits.rpm),
            token: each(limits.tpm),
        }
    }

    /// Notes that a call passes. True when the task has to be woken for it.
    pub(super) fn touch(&mut self) -> bool {
        !std::mem::replace(&mut self.active, true)
    }

    /// How long a call of a lane that comes now will wait, as far as this process can tell: lanes that are served in turn
    /// have the same part of the slots, and those of others that are left over.
    pub(super) fn expected_wait(&self, lane: Lane, now: Instant) -> Duration {
        let given = self.given_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        let own = self.lanes.iter().find(|(of, _)| *of == lane).map_or(0, |(_, queue)| queue.len());
        let lanes = self.lanes.len() + usize::from(own == 0);
        let before = (own * lanes).min(self.waiting);
        let requests = self.request.mul_f64(before as f64);
        let tokens_each = self.waiting_tokens as f64 / self.waiting.max(1) as f64;
        given + requests.max(self.token.mul_f64(tokens_each * before as f64))
    }

    /// Lets a call wait. True when the task has to be woken.
    pub(super) fn wait(&mut self, lane: Lane, tokens: u64, answer: A) -> bool {
        let waiting = Waiting { lane, tokens, answer };
        match self.lanes.iter_mut().find(|(of, _)| *of == lane) {
            Some((_, queue)) => queue.push_back(waiting),
            None => self.lanes.push_back((lane, VecDeque::from([waiting]))),
        }
        self.waiting += 1;
        self.waiting_tokens += tokens;
        self.active = true;
        self.waiting == 1
    }

    /// A slot was not used.
    pub(super) fn unused(&mut self, tokens: u64) {
        self.give_back.0 += 1;
        self.give_back.1 += tokens;
    }

    /// A call used fewer tokens than it had taken.
    pub(super) fn settled(&mut self, unused_tokens: u64) {
        self.give_back.1 += unused_tokens;
    }

    /// The provider wants to be left alone. All processes hear of it.
    pub(super) fn told(&mut self, hold: Duration) {
        self.hold = self.hold.max(hold);
        self.urgent = true;
    }

    /// When the store is to be asked; `None`: not before somebody comes.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let earliest = self.asked.map_or(now, |asked| asked + GATHER);
        if self.urgent {
            return Some(earliest);
        }
        let pause = if self.learning { EXCHANGE_LEARNING } else { EXCHANGE };
        let exchange = self.active.then(|| self.asked.map_or(now, |asked| asked + pause));
        if self.waiting > 0 {
            let ask = self.ask_at.unwrap_or(now).max(earliest);
            return Some(exchange.map_or(ask, |exchange| exchange.min(ask)));
        }
        exchange
    }

    /// Takes calls for a request, one of each lane in turn.
    pub(super) fn request(&mut self, now: Instant) -> StoreRequest<A> {
        self.asked = Some(now);
        self.active = false;
        self.urgent = false;
        let due = self.ask_at.is_none_or(|at| at <= now);
        let mut calls = Vec::new();
        while due && calls.len() < MOST_CALLS {
            let Some((lane, mut queue)) = self.lanes.pop_front() else { break };
            if let Some(waiting) = queue.pop_front() {
                self.waiting -= 1;
                self.waiting_tokens -= waiting.tokens;
                // who has gone away takes no slot
                if !waiting.answer.gone() {
                    calls.push(waiting);
                }
            }
            if !queue.is_empty() {
                self.lanes.push_back((lane, queue));
            }
        }
        let demand = u32::try_from(self.waiting + calls.len()).unwrap_or(u32::MAX);
        StoreRequest {
            calls,
            demand,
            give_back: std::mem::take(&mut self.give_back),
            hold: std::mem::take(&mut self.hold),
        }
    }

    /// Takes the store's answer in; returns who leaves when. `base` is this process's time of the store's now.
    pub(super) fn answered(
        &mut self,
        request: StoreRequest<A>,
        base: Instant,
        answer: &SlotAnswer,
    ) -> Vec<(A, Instant, u64)> {
        self.learning = answer.learned.is_some();
        let mut calls = request.calls.into_iter();
        let mut leaves = Vec::with_capacity(answer.starts_us.len());
        for (start, call) in answer.starts_us.iter().zip(calls.by_ref()) {
            let at = base + Duration::from_micros(*start);
            self.given_until = Some(at);
            leaves.push((call.answer, at, call.tokens));
        }
        self.put_back(calls);
        self.ask_at = (answer.wait_us > 0).then(|| base + Duration::from_micros(answer.wait_us));
        leaves
    }

    /// The store did not answer: everything is asked again.
    pub(super) fn failed(&mut self, request: StoreRequest<A>, again: Instant) {
        self.give_back.0 += request.give_back.0;
        self.give_back.1 += request.give_back.1;
        self.hold = self.hold.max(request.hold);
        self.urgent |= !request.hold.is_zero();
        self.put_back(request.calls.into_iter());
        self.active = true;
        self.asked = Some(again);
    }

    fn put_back(&mut self, calls: impl DoubleEndedIterator<Item = Waiting<A>>) {
        for call in calls.rev() {
            self.waiting += 1;
            self.waiting_tokens += call.tokens;
            match self.lanes.iter_mut().find(|(of, _)| *of == call.lane) {
                Some((_, queue)) => queue.push_front(call),
                None => self.lanes.push_front((call.lane, VecDeque::from([call]))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Waiter for i32 {
        fn gone(&self) -> bool {
            *self < 0
        }
    }

    fn lane(run: i64) -> Lane {
        (RunNo(run), Phase::Answer)
    }

    #[test]
    fn p11_lanes_are_served_in_turn_and_keep_their_order() {
        let now = Instant::now();
        let mut queue = PaceQueue::new(PaceLimits { rpm: Some(600), tpm: None });
        for call in 0..6 {
            queue.wait(lane(1), 10, call);
        }
        queue.wait(lane(2), 10, 100);
        queue.wait(lane(2), 10, 101);
        assert_eq!(queue.expected_wait(lane(1), now), Duration::from_millis(800));
        assert_eq!(queue.expected_wait(lane(2), now), Duration::from_millis(400), "in turn with the other lane");
        let request = queue.request(now);
        assert_eq!((request.demand, request.tokens().len()), (8, 8));
        let answer = SlotAnswer { starts_us: vec![0, 100_000, 200_000], wait_us: 150_000, ..SlotAnswer::default() };
        let leaves = queue.answered(request, now, &answer);
        assert_eq!(leaves.iter().map(|(call, ..)| *call).collect::<Vec<_>>(), [0, 100, 1]);
        assert_eq!(queue.due(now), Some(now + Duration::from_millis(150)));
        let later = now + Duration::from_millis(150);
        let request = queue.request(later);
        let answer = SlotAnswer { starts_us: vec![0; 5], ..SlotAnswer::default() };
        let mut rest: Vec<i32> = queue.answered(request, later, &answer).into_iter().map(|(call, ..)| call).collect();
        assert_eq!(rest.iter().filter(|call| **call < 100).copied().collect::<Vec<_>>(), [2, 3, 4, 5]);
        rest.sort_unstable();
        assert_eq!(rest, [2, 3, 4, 5, 101]);
    }

    #[test]
    fn a_failed_request_is_asked_again_in_full() {
        let now = Instant::now();
        let mut queue = PaceQueue::new(PaceLimits::default());
        assert!(queue.due(now).is_none());
        queue.wait(lane(1), 10, 1);
        queue.wait(lane(1), 10, -1);
        queue.told(Duration::from_secs(2));
        queue.unused(7);
        let request = queue.request(now);
        assert_eq!((request.hold, request.give_back), (Duration::from_secs(2), (1, 7)));
        queue.failed(request, now + Duration::from_millis(200));
        assert!(queue.due(now) > Some(now + Duration::from_millis(200)));
        let again = queue.request(now + Duration::from_millis(300));
        assert_eq!((again.tokens(), again.hold, again.give_back), (vec![10], Duration::from_secs(2), (1, 7)));
    }
}
