//! The decisions of the limiter (P19): how many calls may be in flight, and how fast they may leave. Pure: time comes in
//! as microseconds, so a simulation can drive it.
//!
//! In comes the end of each call ([`Seen`]); out come the most calls that may be in flight and the moment at which the next
//! one may leave. Start reading at [`Adaptive::learn`]: it grows, watches the latency or shrinks. A rate that is shared with
//! other processes is learned in the store and imposed here ([`Adaptive::impose`]).

use crate::PaceHint;

/// Calls in flight at the start.
pub const START: usize = 8;
/// Successes that a latency median is taken over: with log-normal noise of sigma 0.4 its error is 6 %, far from a knee.
const WINDOW: usize = 64;
/// Latency counts as grown only by this much: below it, our own processor is what is being measured.
const MIN_KNEE_US: u32 = 25_000;
/// An overload bounds growth for so long: it may have been a server that was started again.
const OVERLOAD_COUNTS_US: u64 = 60_000_000;
/// Additive growth per round of successes, as long as nobody answered 429.
const STEP_UNLIMITED: f64 = 8.0;
/// Step upwards after a 429, where the rate is what limits.
const STEP_LIMITED: f64 = 1.0;
/// The accepted rate is taken over this many buckets of [`BUCKET_US`]: 2 s.
const BUCKETS: usize = 20;
const BUCKET_US: u64 = 100_000;
/// A learned rate is held this long before it grows.
const HOLD_US: u64 = 3_000_000;
/// Growth of a learned rate per second while it is below the rate that was refused last (its ceiling).
const GROWTH_BELOW_CEILING_PER_S: f64 = 1.06;
/// Growth of a learned rate per second close to its ceiling, where the next refusal is near.
const GROWTH_NEAR_CEILING_PER_S: f64 = 1.001;
/// Growth of a learned rate per second above its ceiling: the allowance has grown.
const GROWTH_PER_S: f64 = 1.02;
/// Upward drift of the latency floor per second (it doubles in about 5 minutes): a load that has changed is forgotten.
const FLOOR_DRIFT_PER_S: f64 = 1.0025;
/// Without this many accepted calls in the last 2 s there is no rate to learn; Retry-After and the callers' own delays
/// have to do.
const MIN_EVIDENCE: u32 = 10;
/// Lowest learned rate, in calls per second.
const MIN_RATE: f64 = 0.2;

/// What the end of a call showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// A reply, good or bad: the provider took the call.
    Accepted {
        /// From send to the end of the reply, in microseconds.
        latency_us: u64,
    },
    /// 429, with what its headers said.
    RateLimited(PaceHint),
    /// 503 or 529: the provider has more in flight than it can take.
    Overloaded,
    /// Anything else (5xx, time-out, cut): says nothing about pace.
    Failed,
}

/// Calls accepted in the last 2 s.
#[derive(Debug, Default)]
struct Accepted {
    buckets: [u32; BUCKETS],
    newest: u64,
    since_us: Option<u64>,
    total: u64,
}

impl Accepted {
    fn advance(&mut self, now_us: u64) {
        let newest = now_us / BUCKET_US;
        let passed = newest.saturating_sub(self.newest).min(BUCKETS as u64);
        for i in 0..passed {
            self.buckets[((newest - i) % BUCKETS as u64) as usize] = 0;
        }
        self.newest = self.newest.max(newest);
    }

    fn add(&mut self, now_us: u64) {
        self.advance(now_us);
        self.since_us.get_or_insert(now_us);
        self.total += 1;
        self.buckets[(self.newest % BUCKETS as u64) as usize] += 1;
    }

    /// Calls per second since the beginning, if the first second's worth was a burst.
    fn without_burst(&self, now_us: u64) -> f64 {
        let seconds = self.since_us.map_or(0.0, |since| now_us.saturating_sub(since) as f64 / 1e6);
        self.total as f64 / (seconds + 1.0)
    }

    /// Calls per second over the newest `buckets`.
    fn rate(&mut self, now_us: u64, buckets: usize) -> f64 {
        self.advance(now_us);
        let window_us = BUCKET_US * buckets as u64;
        let seen_us = self.since_us.map_or(window_us, |since| now_us.saturating_sub(since));
        let seconds = seen_us.clamp(BUCKET_US * 2, window_us) as f64 / 1e6;
        f64::from(self.count(buckets)) / seconds
    }

    /// Calls in the newest `buckets`, as of the last time that was told.
    fn count(&self, buckets: usize) -> u32 {
        (0..buckets as u64).map(|i| self.buckets[(self.newest.wrapping_sub(i) % BUCKETS as u64) as usize]).sum()
    }
}

/// A rate learned from 429s.
#[derive(Debug)]
struct LearnedRate {
    per_second: f64,
    /// The accepted rate when the last 429 came.
    ceiling: f64,
    hold_until_us: u64,
    grown_at_us: u64,
    /// Theoretical arrival time of the next call, in microseconds.
    arrival_us: f64,
}

impl LearnedRate {
    fn grow(&mut self, now_us: u64) {
        let from = self.grown_at_us.max(self.hold_until_us);
        if now_us > from {
            let growth = match self.per_second / self.ceiling {
                part if part < 0.93 => GROWTH_BELOW_CEILING_PER_S,
                part if part < 1.05 => GROWTH_NEAR_CEILING_PER_S,
                _ => GROWTH_PER_S,
            };
            self.per_second *= growth.powf((now_us - from) as f64 / 1e6);
            self.grown_at_us = now_us;
        }
    }
}

/// State of the limiter of one (endpoint, account, limit group).
#[derive(Debug)]
pub struct Adaptive {
    limit: usize,
    max: usize,
    slow_start: bool,
    /// Part of a further place, earned by successes.
    credit: f64,
    /// Latencies since the last median, in microseconds.
    window: Vec<u32>,
    /// Smallest median seen, drifting up slowly.
    floor_us: f64,
    /// Moving mean of latency.
    mean_us: f64,
    /// When the last median was taken.
    median_at_us: u64,
    /// The last median was beyond the knee.
    crowded: bool,
    last_shrink_us: u64,
    /// When the provider was last overloaded although it served calls.
    overloaded_us: Option<u64>,
    /// Calls accepted before the last shrink.
    accepted_at_shrink: u64,
    accepted: Accepted,
    rate: Option<LearnedRate>,
    /// Rates are learned elsewhere, with other processes; here only places are.
    shared: bool,
}

/// Calls that were held up may follow each other more closely by this much time.
const SLACK_US: f64 = 50_000.0;

impl Adaptive {
    /// A limiter that grows up to `max` calls in flight.
    #[must_use]
    pub fn new(max: usize) -> Self {
        let max = max.max(1);
        Self {
            limit: START.min(max),
            max,
            slow_start: true,
            credit: 0.0,
            window: Vec::new(),
            floor_us: f64::INFINITY,
            mean_us: 0.0,
            median_at_us: 0,
            crowded: false,
            last_shrink_us: 0,
            overloaded_us: None,
            accepted_at_shrink: 0,
            accepted: Accepted::default(),
            rate: None,
            shared: false,
        }
    }

    /// From now on the rate is what [`Self::impose`] says.
    pub const fn share(&mut self) {
        self.shared = true;
    }

    /// Sets the rate that was learned together with other processes; `None` lifts it.
    pub fn impose(&mut self, now_us: u64, per_second: Option<f64>) {
        let Some(per_second) = per_second else {
            self.rate = None;
            return;
        };
        self.slow_start = false;
        match &mut self.rate {
            Some(rate) => rate.per_second = per_second,
            None => {
                let (arrival_us, ceiling) = (now_us as f64, per_second);
                self.rate =
                    Some(LearnedRate { per_second, ceiling, hold_until_us: now_us, grown_at_us: now_us, arrival_us });
            }
        }
        // places enough for this rate; without a mean nothing has come back yet
        let enough = (per_second * self.mean_us / 1e6 * 2.0).ceil() as usize + 1;
        self.limit = self.limit.max(enough.min(self.max));
    }

    /// Takes the next send slot of the rate if it is due; else microseconds until it.
    pub fn take_due_slot(&mut self, now_us: u64) -> Result<(), u64> {
        let Some(rate) = &mut self.rate else { return Ok(()) };
        let now = now_us as f64;
        if rate.arrival_us > now {
            return Err((rate.arrival_us - now).ceil() as u64);
        }
        rate.arrival_us = rate.arrival_us.max(now - SLACK_US) + 1e6 / rate.per_second;
        Ok(())
    }

    /// Calls that may be in flight.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// The learned rate in calls per second, when a 429 has taught one.
    #[must_use]
    pub fn learned_rate(&self) -> Option<f64> {
        self.rate.as_ref().map(|rate| rate.per_second)
    }

    /// Takes a send slot of the learned rate: microseconds until it.
    pub fn take_slot(&mut self, now_us: u64) -> u64 {
        let Some(rate) = &mut self.rate else { return 0 };
        // only a rate that holds calls back is tried out further
        if rate.arrival_us > now_us as f64 {
            rate.grow(now_us);
        } else {
            rate.grown_at_us = now_us;
        }
        let at = rate.arrival_us.max(now_us as f64);
        rate.arrival_us = at + 1e6 / rate.per_second;
        (at - now_us as f64) as u64
    }

    /// Learns from the end of a call that was sent at `sent_us`. `saturated`: every place was taken, so the limit (and
    /// not a lack of work) bounded what was in flight.
    pub fn learn(&mut self, now_us: u64, sent_us: u64, saturated: bool, seen: Seen) {
        match seen {
            Seen::Accepted { latency_us } => {
                self.accepted.add(now_us);
                self.watch_latency(now_us, latency_us);
                if saturated {
                    self.grow(now_us);
                }
            }
            // while nothing is served at all, fewer calls would not help: that is an outage, and others look after it
            Seen::Overloaded if sent_us > self.last_shrink_us && self.accepted.total > self.accepted_at_shrink => {
                self.slow_start = false;
                self.credit = 0.0;
                self.limit = (self.limit * 7 / 10).max(1);
                self.last_shrink_us = now_us.max(1);
                self.accepted_at_shrink = self.accepted.total;
                self.overloaded_us = Some(now_us);
            }
            // calls sent before the last shrink say nothing about the pace after it: one shrink per round trip
            Seen::RateLimited(hint) if self.last_shrink_us == 0 || sent_us > self.last_shrink_us => {
                self.shrink(now_us, hint)
            }
            Seen::RateLimited(_) | Seen::Overloaded | Seen::Failed => {}
        }
    }

    fn grow(&mut self, now_us: u64) {
        if self.crowded {
            return;
        }
        let overloaded = self.overloaded_us.is_some_and(|at| now_us.saturating_sub(at) < OVERLOAD_COUNTS_US);
        // one place per success doubles the limit in a round
        self.credit += match (self.slow_start, &self.rate) {
            (true, _) => 1.0,
            (false, None) if !overloaded => STEP_UNLIMITED / self.limit as f64,
            (false, _) => STEP_LIMITED / self.limit as f64,
        };
        let whole = self.credit.floor();
        self.credit -= whole;
        self.limit = (self.limit + whole as usize).min(self.max);
        if self.limit == self.max {
            self.slow_start = false;
        }
    }

    fn watch_latency(&mut self, now_us: u64, latency_us: u64) {
        self.window.push(u32::try_from(latency_us).unwrap_or(u32::MAX));
        self.mean_us += (latency_us as f64 - self.mean_us) * if self.mean_us == 0.0 { 1.0 } else { 0.05 };
        if self.window.len() < WINDOW {
            return;
        }
        let middle = self.window.len() / 2;
        let median = f64::from(*self.window.select_nth_unstable(middle).1);
        self.window.clear();
        self.crowded = median > (self.floor_us * 2.0).max(self.floor_us + f64::from(MIN_KNEE_US));
        if self.crowded && self.slow_start {
            // doubling has run past the knee for a round: back to where the median would be twice its floor
            self.slow_start = false;
            let at_knee = (self.limit as f64 * 2.0 * self.floor_us / median) as usize;
            self.limit = at_knee.max(START).min(self.limit);
        }
        let seconds = now_us.saturating_sub(self.median_at_us) as f64 / 1e6;
        self.median_at_us = now_us;
        self.floor_us = median.min(self.floor_us * FLOOR_DRIFT_PER_S.powf(seconds));
    }

    fn shrink(&mut self, now_us: u64, hint: PaceHint) {
        self.slow_start = false;
        self.accepted_at_shrink = self.accepted.total;
        self.last_shrink_us = now_us.max(1);
        self.credit = 0.0;
        if self.shared {
            // the rate is the bound; a few places less for what queues up at the provider
            let enough =
                self.rate.as_ref().map_or(1.0, |rate| (rate.per_second * self.mean_us / 1e6 * 2.0).ceil() + 1.0);
            self.limit = (self.limit * 7 / 10).max((enough as usize).min(self.limit)).max(1);
            return;
        }
        let accepted = self.accepted.rate(now_us, BUCKETS).max(MIN_RATE);
        let before = self.learned_rate();
        let evidence = self.accepted.count(BUCKETS) >= MIN_EVIDENCE;
        let hinted = hinted_rate(hint);
        if before.is_none() && hinted.is_none() && !evidence {
            self.limit = (self.limit * 7 / 10).max(1);
            return;
        }
        let per_second = match (hinted, before) {
            (Some(hinted), _) if evidence => hinted.min(accepted) * 0.98,
            (Some(hinted), _) => hinted * 0.98,
            // what was accepted holds the provider's burst, usually that of a second
            (None, None) => self.accepted.without_burst(now_us).max(accepted / 2.0),
            // several shrinks may fall into the window of the accepted rate: the last second bounds them from below
            (None, Some(before)) => {
                let recent = self.accepted.rate(now_us, BUCKETS / 2);
                (before.min(accepted) * 0.9).max(recent * 0.9).min(before)
            }
        };
        let ceiling = match &self.rate {
            // within one bout of 429s the allowance is what still comes through
            Some(rate) if now_us < rate.hold_until_us => rate.ceiling.min(accepted),
            // the rate at which calls left when one was refused is above the allowance, whatever a short count says
            Some(rate) => rate.per_second.min(accepted),
            None => accepted,
        };
        // a pause (Retry-After) empties the window of accepted calls: never fall by more than half at once
        let per_second = per_second.max(before.map_or(MIN_RATE, |before| before / 2.0)).max(MIN_RATE);
        // places enough for this rate (twice Little's law, latencies vary): from here on the rate is the bound
        let enough = (per_second * self.mean_us / 1e6 * 2.0).ceil() as usize + 1;
        self.limit = (self.limit * 7 / 10).max(enough.min(self.limit)).max(1);
        // slots that were handed out stay taken
        let arrival_us = self.rate.as_ref().map_or(now_us as f64, |rate| rate.arrival_us);
        self.rate =
            Some(LearnedRate { per_second, ceiling, hold_until_us: now_us + HOLD_US, grown_at_us: now_us, arrival_us });
    }
}

/// (limit − remaining) / reset (P24), in calls per second, when the numbers are large enough to say something.
pub(super) fn hinted_rate(hint: PaceHint) -> Option<f64> {
    let (limit, remaining, reset_ms) = hint.requests?;
    let used = limit.saturating_sub(remaining);
    (used >= 5 && reset_ms >= 100).then(|| used as f64 * 1000.0 / reset_ms as f64)
}

#[cfg(test)]
mod tests {
    use std::{cmp::Reverse, collections::BinaryHeap};

    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Log-normal latency around a median, by Box and Muller.
    fn latency(rng: &mut ChaCha8Rng, median_us: f64, sigma: f64) -> u64 {
        let (u, v): (f64, f64) = (rng.random_range(1e-12..1.0), rng.random());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        (median_us * (sigma * normal).exp()) as u64
    }

    /// A provider in virtual time.
    struct World {
        /// Calls per second and burst of a token bucket, if any.
        bucket: Option<(f64, f64)>,
        /// Places after which calls queue up, if any.
        capacity: Option<usize>,
        median_us: f64,
        sigma: f64,
    }

    #[derive(Default)]
    struct Outcome {
        seconds: f64,
        last_limit: usize,
        largest_limit: usize,
        /// (second, accepted, refused)
        by_second: Vec<(u64, u64)>,
    }

    /// Runs `calls` calls (refused ones are repeated) or until `until_s`, with as many callers as there are places.
    fn run(world: &World, calls: u64, until_s: f64) -> Outcome {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut adaptive = Adaptive::new(512);
        let (mut tokens, mut filled_us) = (world.bucket.map_or(0.0, |(_, burst)| burst), 0_u64);
        // (time, kind, sent, latency): kind 0 = send, 1 = reply, 2 = refusal
        let mut events = BinaryHeap::new();
        let (mut places, mut done, mut now) = (0_usize, 0_u64, 0_u64);
        let mut outcome = Outcome::default();
        loop {
            while places < adaptive.limit() && done + (places as u64) < calls {
                places += 1;
                events.push(Reverse((now + adaptive.take_slot(now), 0_u8, 0_u64, 0_u64)));
            }
            let Some(Reverse((at, kind, sent, took))) = events.pop() else {
                break;
            };
            now = at;
            if now as f64 / 1e6 > until_s {
                break;
            }
            let second = (now / 1_000_000) as usize;
            outcome.by_second.resize(outcome.by_second.len().max(second + 1), (0, 0));
            if kind == 0 {
                let slowdown = world.capacity.map_or(1.0, |capacity| (places as f64 / capacity as f64).max(1.0));
                let took = (latency(&mut rng, world.median_us, world.sigma) as f64 * slowdown) as u64;
                let refused = world.bucket.is_some_and(|(rate, burst)| {
                    tokens = (tokens + rate * (now - filled_us) as f64 / 1e6).min(burst);
                    filled_us = now;
                    let refused = tokens < 1.0;
                    tokens -= if refused { 0.0 } else { 1.0 };
                    refused
                });
                let (delay, kind) = if refused { (20_000, 2) } else { (took, 1) };
                events.push(Reverse((now + delay, kind, now, took)));
                continue;
            }
            let saturated = places >= adaptive.limit();
            places -= 1;
            if kind == 1 {
                done += 1;
                outcome.by_second[second].0 += 1;
                adaptive.learn(now, sent, saturated, Seen::Accepted { latency_us: took });
            } else {
                outcome.by_second[second].1 += 1;
                adaptive.learn(now, sent, saturated, Seen::RateLimited(PaceHint::default()));
            }
            outcome.largest_limit = outcome.largest_limit.max(adaptive.limit());
        }
        outcome.seconds = now as f64 / 1e6;
        outcome.last_limit = adaptive.limit();
        outcome
    }

    /// A server that takes six calls at once and answers 503 beyond: the limiter stays near what it takes.
    #[test]
    fn p19_an_overloaded_server_is_asked_less_and_one_that_is_away_changes_little() {
        let mut adaptive = Adaptive::new(512);
        let (mut served, mut refused) = (0_u32, 0_u32);
        for round in 1..=60_u64 {
            let (sent, at) = (round * 1_000_000, round * 1_000_000 + 990_000);
            let out = adaptive.limit();
            for call in 0..out {
                if call < 6 {
                    served += 1;
                    adaptive.learn(at, sent, true, Seen::Accepted { latency_us: 990_000 });
                } else {
                    refused += 1;
                    adaptive.learn(sent + 1_000 + call as u64, sent, true, Seen::Overloaded);
                }
            }
        }
        assert!(refused * 4 < served, "{refused} of {served} were refused");
        assert!(served > 60 * 4, "{served} were served");
        let before = adaptive.limit();
        for call in 0..1_000_u64 {
            let at = 100_000_000 + call * 1_000;
            adaptive.learn(at, at - 500, true, Seen::Overloaded);
        }
        assert!(adaptive.limit() * 2 >= before, "an outage says nothing of how much is too much");
    }

    #[test]
    fn p19_grows_quickly_without_limits() {
        let outcome =
            run(&World { bucket: None, capacity: None, median_us: 200_000.0, sigma: 0.4 }, 3972, f64::INFINITY);
        assert_eq!(outcome.largest_limit, 512, "latency noise is no knee");
        assert!(outcome.seconds < 4.5, "{}", outcome.seconds);
    }

    #[test]
    fn p19_stops_at_a_latency_knee() {
        let world = World { bucket: None, capacity: Some(40), median_us: 200_000.0, sigma: 0.4 };
        let outcome = run(&world, 20_000, 60.0);
        // doubling learns of the knee, at 80, a round trip late; after that it stays where it is
        assert!((80..=260).contains(&outcome.last_limit), "{}", outcome.last_limit);
    }

    #[test]
    fn p19_finds_an_unknown_rate() {
        for rate in [20.0, 50.0, 100.0, 200.0, 400.0] {
            let world = World { bucket: Some((rate, rate)), capacity: None, median_us: 200_000.0, sigma: 0.4 };
            let outcome = run(&world, u64::MAX / 2, 120.0);
            let sum = |range: std::ops::Range<usize>| {
                outcome.by_second[range].iter().fold((0, 0), |sum, second| (sum.0 + second.0, sum.1 + second.1))
            };
            let (accepted, refused) = sum(0..15);
            assert!(
                (refused as f64) < 0.05 * (accepted + refused) as f64 + 30.0,
                "{rate}: {refused} of {accepted} refused at first"
            );
            let (accepted, _) = sum(15..30);
            assert!(accepted as f64 > 0.9 * 15.0 * rate, "{rate}: {accepted} in 15 s");
            let (accepted, refused) = sum(60..120);
            assert!(refused as f64 <= 0.002 * accepted as f64 + 1.0, "{rate}: {refused} of {accepted} refused later");
            assert!(accepted as f64 > 0.9 * 60.0 * rate, "{rate}: {accepted} in 60 s");
        }
    }

    #[test]
    fn p19_an_imposed_rate_spaces_calls_and_follows_at_once() {
        let mut adaptive = Adaptive::new(512);
        adaptive.share();
        assert_eq!(adaptive.take_due_slot(1_000_000), Ok(()), "no rate, no slots");
        adaptive.impose(1_000_000, Some(50.0));
        assert_eq!((adaptive.take_due_slot(1_000_000), adaptive.take_due_slot(1_000_000)), (Ok(()), Err(20_000)));
        adaptive.impose(1_001_000, Some(10.0));
        assert_eq!((adaptive.take_due_slot(1_020_000), adaptive.take_due_slot(1_020_000)), (Ok(()), Err(100_000)));
        adaptive.learn(1_030_000, 1_020_000, true, Seen::RateLimited(PaceHint::default()));
        assert_eq!(adaptive.learned_rate(), Some(10.0), "refusals are judged elsewhere");
        adaptive.impose(2_000_000, None);
        assert_eq!(adaptive.take_due_slot(2_000_000), Ok(()));
    }

    #[test]
    fn p19_one_shrink_per_round_trip_and_none_for_other_failures() {
        let mut adaptive = Adaptive::new(512);
        for i in 0..100 {
            adaptive.learn(1000 + i, 1, true, Seen::Accepted { latency_us: 1000 });
        }
        let before = adaptive.limit();
        adaptive.learn(5000, 1, true, Seen::Failed);
        assert_eq!(adaptive.limit(), before);
        for _ in 0..50 {
            adaptive.learn(6000, 2000, true, Seen::RateLimited(PaceHint::default()));
        }
        assert_eq!(adaptive.limit(), before * 7 / 10);
        adaptive.learn(8000, 7000, true, Seen::RateLimited(PaceHint::default()));
        assert_eq!(adaptive.limit(), before * 7 / 10 * 7 / 10);
    }

    #[test]
    fn headers_teach_the_rate() {
        let mut adaptive = Adaptive::new(512);
        for i in 0..2000 {
            adaptive.learn(i * 1000, i * 1000, true, Seen::Accepted { latency_us: 1000 });
        }
        let hint = PaceHint { requests: Some((600, 0, 6000)), ..PaceHint::default() };
        adaptive.learn(2_000_000, 1_999_000, true, Seen::RateLimited(hint));
        assert_eq!(adaptive.learned_rate(), Some(98.0), "600 in 6 s, less 2 %");

        let mut adaptive = Adaptive::new(512);
        adaptive.learn(1000, 1, true, Seen::RateLimited(PaceHint::default()));
        assert_eq!(adaptive.learned_rate(), None, "one refusal and nothing accepted teach no rate");
        adaptive.learn(3000, 2000, true, Seen::RateLimited(hint));
        assert_eq!(adaptive.learned_rate(), Some(98.0));
    }

    proptest! {
        #[test]
        fn limits_stay_in_their_range(max in 1_usize..600, seen in proptest::collection::vec((0_u64..50_000, 0_u8..4, any::<bool>()), 1..400)) {
            let mut adaptive = Adaptive::new(max);
            let mut now = 1;
            for (step, kind, saturated) in seen {
                now += step;
                let seen = match kind {
                    0 => Seen::RateLimited(PaceHint::default()),
                    1 => Seen::Failed,
                    _ => Seen::Accepted { latency_us: step },
                };
                adaptive.learn(now, now.saturating_sub(step), saturated, seen);
                let wait = adaptive.take_slot(now);
                prop_assert!((1..=max).contains(&adaptive.limit()));
                prop_assert!(adaptive.learned_rate().is_none_or(|rate| rate >= MIN_RATE && rate.is_finite()));
                prop_assert!(wait < 4_000_000_000);
            }
        }
    }
}
