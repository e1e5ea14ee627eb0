//! Send slots of an allowance (P24), as a pure function of the row and the database's clock.
//!
//! Two theoretical arrival times, as in the generic cell rate algorithm (GCRA, ITU-T I.371): a call leaves at the later of
//! both and now; then each moves on by what the call uses of it, and the one that lags is pulled up, so that a wait for
//! tokens is no reason for a burst of requests afterwards. Who asks while slots are scarce is held to its share by an
//! arrival time of its own, which moves on by the slot divided by the share.

mod learned;

use std::collections::BTreeMap;

use bench_proto::failure::LONGEST_RETRY_AFTER;
use serde::{Deserialize, Serialize};

use self::learned::Learned;
use crate::{PaceLimits, SlotAnswer, SlotAsk};

/// Slots are given at most so far ahead, in microseconds.
pub(crate) const HORIZON_US: f64 = 500_000.0;
/// Requests (or tokens) that were held up by the other limit may follow each other more closely by this much time.
pub(crate) const SLACK_US: f64 = 100_000.0;
/// No arrival time is further ahead: the clock has stepped back. One minute's allowance is the largest single call.
const FURTHEST_US: f64 = 60_000_000.0;
/// With so little backlog slots are not scarce, and shares do not matter.
const FREE_US: f64 = 100_000.0;
/// Who has not asked for so long no longer counts.
const LIVE_US: i64 = 2_000_000;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PaceRow {
    pub(crate) requests_us: i64,
    pub(crate) tokens_us: i64,
    pub(crate) blocked_us: i64,
    pub(crate) doc: PaceDoc,
}

/// The part of the row that is JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PaceDoc {
    /// Processes that asked lately.
    askers: BTreeMap<String, Asker>,
    /// What 429s have taught all of them.
    learned: Learned,
}

/// A process that asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Asker {
    /// Calls that wait.
    demand: f64,
    /// When it asked last.
    at_us: i64,
    /// Its own arrival time.
    next_us: i64,
}

/// Microseconds per request and per token; 0 without a limit.
#[derive(Debug, Clone, Copy)]
struct Spacing {
    request_us: f64,
    token_us: f64,
}

impl Spacing {
    fn from_limits(limits: PaceLimits) -> Self {
        let interval = |limit: Option<u64>| limit.map_or(0.0, |limit| 60e6 / limit.max(1) as f64);
        Self { request_us: interval(limits.rpm), token_us: interval(limits.tpm) }
    }
}

impl PaceRow {
    /// Answers who asks, at `now_us` of the database's clock.
    pub(crate) fn answer(&mut self, now_us: i64, ask: &SlotAsk) -> SlotAnswer {
        let spacing = Spacing::from_limits(ask.limits);
        let now = now_us as f64;
        // also what was stored when more was believed, or before the clock stepped back
        let longest = now_us.saturating_add(LONGEST_RETRY_AFTER.as_micros() as i64);
        if ask.hold_us > 0 {
            self.blocked_us = self.blocked_us.max(now_us.saturating_add(micros(ask.hold_us)));
        }
        self.blocked_us = self.blocked_us.min(longest);
        let back = |at: i64, by: f64| (at as f64 - by).min(now + FURTHEST_US);
        let mut requests = back(self.requests_us, f64::from(ask.give_back.0) * spacing.request_us);
        let mut tokens = back(self.tokens_us, ask.give_back.1 as f64 * spacing.token_us);
        let share = self.share(now_us, ask);
        let own = self.doc.askers.get(&ask.asker).map_or(0, |asker| asker.next_us);
        let mut own = (own as f64).min(now + FURTHEST_US);

        let mut starts_us = Vec::with_capacity(ask.calls.len());
        let mut wait = 0.0;
        for used in &ask.calls {
            let start = requests.max(tokens).max(now).max(self.blocked_us as f64);
            let ahead = start - now;
            let turn = own - now;
            if ahead > HORIZON_US || (ahead > FREE_US && turn > HORIZON_US) {
                // again when half of what may be ahead is free
                wait = (if ahead > HORIZON_US { ahead } else { turn }) - HORIZON_US / 2.0;
                break;
            }
            let cost = *used as f64 * spacing.token_us;
            let pulled = (start - SLACK_US).max(now);
            // what is not limited lags for ever
            if spacing.request_us > 0.0 {
                requests = requests.max(pulled) + spacing.request_us;
            }
            if spacing.token_us > 0.0 {
                tokens = tokens.max(pulled) + cost;
            }
            own = own.max(now) + spacing.request_us.max(cost) / share;
            starts_us.push(ahead as u64);
        }
        // rounded up: never faster than allowed
        self.requests_us = requests.ceil() as i64;
        self.tokens_us = tokens.ceil() as i64;
        if let Some(asker) = self.doc.askers.get_mut(&ask.asker) {
            asker.next_us = own.ceil() as i64;
        }
        self.doc.learned.observe(now_us, &ask.seen, !ask.limits.is_none());
        SlotAnswer {
            starts_us,
            wait_us: wait.max(0.0) as u64,
            blocked_us: u64::try_from(self.blocked_us - now_us).unwrap_or(0),
            askers: self.doc.askers.len() as u32,
            learned: self.doc.learned.share(share),
        }
    }

    /// Notes the asker's demand; its part of all live demand.
    fn share(&mut self, now_us: i64, ask: &SlotAsk) -> f64 {
        let live = |asker: &Asker| asker.at_us <= now_us && now_us - asker.at_us <= LIVE_US;
        self.doc.askers.retain(|name, asker| *name == ask.asker || live(asker));
        let asker = self.doc.askers.entry(ask.asker.clone()).or_default();
        let demand = f64::from(ask.demand.max(ask.calls.len() as u32));
        // up at once, down over some asks: a process that was just served is not without demand
        asker.demand = demand.max(asker.demand * 0.7);
        asker.at_us = now_us;
        let own = asker.demand.max(1.0);
        let all: f64 = self.doc.askers.values().map(|asker| asker.demand).sum();
        (own / all.max(own)).clamp(0.001, 1.0)
    }
}

fn micros(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Allowance, Observed};

    fn ask(asker: &str, limits: PaceLimits, calls: &[u64]) -> SlotAsk {
        SlotAsk {
            allowance: Allowance::default(),
            asker: asker.to_owned(),
            limits,
            calls: calls.to_vec(),
            demand: calls.len() as u32,
            give_back: (0, 0),
            hold_us: 0,
            seen: Observed::default(),
        }
    }

    fn rpm(rpm: u64) -> PaceLimits {
        PaceLimits { rpm: Some(rpm), tpm: None }
    }

    const T0: i64 = 1_700_000_000_000_000;

    #[test]
    fn p24_slots_are_even_and_not_far_ahead() {
        let mut row = PaceRow::default();
        let first = row.answer(T0, &ask("a", rpm(600), &[0; 10]));
        assert_eq!(first.starts_us, [0, 100_000, 200_000, 300_000, 400_000, 500_000]);
        assert_eq!(first.wait_us, 350_000);
        let later = row.answer(T0 + 350_000, &ask("a", rpm(600), &[0; 10]));
        assert_eq!(later.starts_us, [250_000, 350_000, 450_000]);
        // an hour later nothing is saved up; after a step back of the clock nobody waits for an hour
        assert_eq!(row.answer(T0 + 3_600_000_000, &ask("a", rpm(600), &[0; 2])).starts_us, [0, 100_000]);
        let back = row.answer(T0, &ask("b", rpm(600), &[0]));
        assert!(back.starts_us.is_empty() && back.wait_us <= 60_000_000, "{back:?}");
    }

    #[test]
    fn p24_unused_slots_come_back_and_a_hold_holds_all() {
        let mut row = PaceRow::default();
        row.answer(T0, &ask("a", rpm(600), &[0; 5]));
        let mut returning = ask("a", rpm(600), &[]);
        returning.give_back = (3, 0);
        row.answer(T0, &returning);
        assert_eq!(row.answer(T0, &ask("b", rpm(600), &[0])).starts_us, [200_000]);
        let mut told = ask("a", rpm(600), &[]);
        told.hold_us = 2_000_000;
        row.answer(T0, &told);
        let held = row.answer(T0 + 1_000_000, &ask("b", rpm(600), &[0]));
        assert_eq!((held.starts_us.len(), held.blocked_us, held.askers), (0, 1_000_000, 2));
        assert_eq!(row.answer(T0 + 1_600_000, &ask("b", rpm(600), &[0])).starts_us, [400_000]);
    }

    #[test]
    fn p40_five_minutes_are_the_longest_hold_also_of_what_was_stored_before() {
        let mut row = PaceRow::default();
        let day = SlotAsk { hold_us: 86_400_000_000, ..ask("a", PaceLimits::default(), &[]) };
        assert_eq!(row.answer(T0, &day).blocked_us, 300_000_000);
        assert_eq!(row.answer(T0 + 60_000_000, &ask("b", PaceLimits::default(), &[])).blocked_us, 240_000_000);
        row.blocked_us = T0 + 86_400_000_000;
        assert_eq!(row.answer(T0, &ask("a", PaceLimits::default(), &[])).blocked_us, 300_000_000);
    }

    #[test]
    fn p24_scarce_slots_are_shared_by_demand() {
        let mut row = PaceRow::default();
        let (mut large, mut small) = (0, 0);
        for tick in 0..200 {
            let now = T0 + tick * 50_000;
            large += row.answer(now, &ask("a", rpm(6000), &[0; 300])).starts_us.len();
            small += row.answer(now + 1, &ask("b", rpm(6000), &[0; 100])).starts_us.len();
        }
        let (all, part) = (large + small, small as f64 / (large + small) as f64);
        assert!((1000..=1060).contains(&all), "{all} in 10 s at 100/s");
        assert!((0.2..0.32).contains(&part), "a quarter of the demand: {part}");
    }

    #[test]
    fn p24_an_idle_share_is_used_by_others() {
        let mut row = PaceRow::default();
        let (mut busy, mut idle) = (0, 0);
        for tick in 0..200 {
            let now = T0 + tick * 50_000;
            busy += row.answer(now, &ask("a", rpm(6000), &[0; 200])).starts_us.len();
            if tick % 20 == 0 {
                idle += row.answer(now + 1, &ask("b", rpm(6000), &[0; 2])).starts_us.len();
            }
        }
        assert!(busy > 900, "{busy} of 1000");
        // a hundredth of the demand, for a tenth of the time: its calls wait no longer than those of the other one
        assert!(idle >= 9, "{idle}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
        /// However processes ask: no window holds more than its length and the slack allow, slots are at most the horizon
        /// ahead, and whoever goes on asking is served.
        #[test]
        fn p24_never_above_the_limit_and_nobody_starves(
            rpm in 300_u64..20_000,
            tpm in 20_000_u64..2_000_000,
            asks in proptest::collection::vec((0_usize..4, 0_i64..120_000, 1_usize..40, 1_u64..1500), 40..200),
        ) {
            let limits = PaceLimits { rpm: Some(rpm), tpm: Some(tpm) };
            let names = ["a", "b", "c", "d"];
            let (mut row, mut now) = (PaceRow::default(), T0);
            let mut sent: Vec<(i64, u64)> = Vec::new();
            for (who, gap, calls, used) in asks {
                now += gap;
                let answer = row.answer(now, &ask(names[who], limits, &vec![used; calls]));
                for start in answer.starts_us {
                    prop_assert!(start as f64 <= HORIZON_US);
                    sent.push((now + start as i64, used));
                }
            }
            sent.sort_unstable();
            for (i, (from, _)) in sent.iter().enumerate().step_by(7) {
                let (mut requests, mut tokens) = (0.0, 0.0);
                for (at, used) in &sent[i..] {
                    let minutes = ((at - from) as f64 + SLACK_US + 2.0) / 60e6;
                    prop_assert!(requests <= rpm as f64 * minutes + 1.0, "{requests} in {minutes} min");
                    prop_assert!(tokens <= tpm as f64 * minutes + 1500.0, "{tokens} in {minutes} min");
                    requests += 1.0;
                    tokens += *used as f64;
                }
            }
            // all four go on asking for one call: each gets it within the time that the others' share and the backlog take
            let mut waiting = vec![0, 1, 2, 3];
            let worst = 4.0 * (60e6 / rpm as f64).max(60e6 / tpm as f64 * 1500.0);
            let deadline = now + 60_000_000 + (worst * 40.0) as i64;
            while !waiting.is_empty() {
                now += 50_000;
                prop_assert!(now < deadline, "{waiting:?} still wait");
                waiting.retain(|who| row.answer(now, &ask(names[*who], limits, &[100])).starts_us.is_empty());
            }
        }
    }
}
