//! A rate that 429s have taught all processes of an allowance together (P19). Pure: time comes in.
//!
//! Nobody knows a limit that a provider has changed without saying so, but all processes together see it at once. The first
//! refusal after a time of peace costs a little; refusals that go on although calls left more slowly mean that the allowance
//! has fallen, and the rate goes to what is still accepted. It grows quickly far below the rate that was refused last (its
//! ceiling), slowly near it, and above it only when it was not refused for long.

use serde::{Deserialize, Serialize};

use crate::{LearnedRate, Observed};

/// What was accepted is kept for this long.
const WINDOW_US: i64 = 2_000_000;
/// Counts that are closer to each other are one entry.
const BUCKET_US: i64 = 100_000;
/// Without this many accepted calls there is no rate to learn: Retry-After and the callers' own delays have to do.
const MIN_EVIDENCE: f64 = 10.0;
/// A refusal this long after the last one begins a new bout.
const PEACE_US: i64 = 1_000_000;
/// Part of the rate that the first refusal of a bout leaves.
const FIRST_STEP: f64 = 0.93;
/// Part of the rate that any later refusal of a bout leaves at least.
const LARGEST_STEP: f64 = 0.65;
/// Part of the accepted rate that is taken within a bout.
const MARGIN: f64 = 0.9;
/// After a bout the rate is held so long: after a single refusal, and after several.
const HOLD_US: (i64, i64) = (1_500_000, 700_000);
/// Growth per second far below the ceiling, below it, close to it, and when it was not refused for long.
const GROWTH: [f64; 4] = [1.15, 1.03, 1.001, 1.02];
/// Parts of the ceiling where the slower growth begins.
const SLOWER_FROM: [f64; 2] = [0.88, 0.96];
/// So long after a refusal the ceiling is no longer believed.
const CEILING_US: i64 = 30_000_000;
/// A rate that nobody has used for so long is forgotten: the provider may have changed its mind.
const FORGET_US: i64 = 120_000_000;
/// Lowest rate, in calls per second.
const MIN_RATE: f64 = 0.2;
/// Where limits are told, a refusal after so long without one is a matter of phase (calls reach a full window a little
/// earlier than those of a window before have left it), and all calls are held for a moment instead of slowed down.
const IN_PHASE_US: i64 = 10_000_000;
/// What is refused this soon after such a hold had left before it: it counts for nothing.
const ON_ITS_WAY_US: i64 = 400_000;

/// The learned rate of an allowance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Learned {
    /// Calls per second; 0 when nothing was learned.
    per_second: f64,
    /// The rate at which calls were refused last.
    ceiling: f64,
    /// Raised by every shrink: refusals of calls that left before say nothing about the rate after it.
    version: u32,
    shrunk_us: i64,
    grown_us: i64,
    bout_us: i64,
    /// The last refusal that was taken for a matter of phase.
    phase_us: i64,
    /// Shrinks of the current bout.
    shrinks: u32,
    /// (time, calls) accepted lately.
    accepted: Vec<(i64, u32)>,
    /// When counting began, and what was counted since.
    since_us: i64,
    total: u64,
    seen_us: i64,
}

impl Learned {
    /// What a process of the allowance holds itself to: its part of the rate.
    pub(super) fn share(&self, part: f64) -> Option<LearnedRate> {
        (self.per_second > 0.0)
            .then(|| LearnedRate { per_second: (self.per_second * part).max(0.001), version: self.version })
    }

    fn count(&self, now_us: i64, window_us: i64) -> f64 {
        self.accepted.iter().filter(|(at, _)| now_us - at < window_us).map(|(_, calls)| f64::from(*calls)).sum()
    }

    /// Takes in what a process has seen since it spoke last. `told`: calls leave at limits that somebody has stated.
    pub(super) fn observe(&mut self, now_us: i64, seen: &Observed, told: bool) {
        if now_us - self.seen_us > FORGET_US || now_us < self.seen_us {
            *self = Self { version: self.version, ..Self::default() };
        }
        self.seen_us = now_us;
        if seen.accepted > 0 {
            if self.total == 0 {
                self.since_us = now_us;
            }
            self.total += u64::from(seen.accepted);
            match self.accepted.last_mut() {
                Some((at, calls)) if now_us - *at < BUCKET_US => *calls += seen.accepted,
                _ => self.accepted.push((now_us, seen.accepted)),
            }
        }
        self.accepted.retain(|(at, _)| now_us - at <= WINDOW_US + BUCKET_US);
        if seen.refused > 0 && seen.version == self.version {
            if !(told && self.is_out_of_phase(now_us)) {
                self.shrink(now_us, seen.hinted);
            }
        } else if self.per_second > 0.0 {
            self.grow(now_us, seen.wants_more);
        }
    }

    /// A refusal at stated limits says nothing about them unless others follow it.
    fn is_out_of_phase(&mut self, now_us: i64) -> bool {
        if self.per_second > 0.0 {
            return false;
        }
        let since_us = now_us - self.phase_us;
        if since_us > IN_PHASE_US {
            self.phase_us = now_us;
        }
        !(ON_ITS_WAY_US..=IN_PHASE_US).contains(&since_us)
    }

    fn shrink(&mut self, now_us: i64, hinted: Option<f64>) {
        let per_second = if self.per_second == 0.0 {
            let counted = self.count(now_us, WINDOW_US);
            if counted < MIN_EVIDENCE {
                return;
            }
            let seconds = ((now_us - self.since_us).clamp(200_000, WINDOW_US)) as f64 / 1e6;
            let accepted = counted / seconds;
            self.ceiling = accepted;
            // what was accepted holds the provider's burst, usually that of a second
            let all = self.total as f64 / ((now_us - self.since_us) as f64 / 1e6 + 1.0);
            hinted.map_or_else(|| all.max(accepted / 2.0), |hinted| hinted.min(accepted) * 0.98)
        } else {
            if now_us - self.shrunk_us > PEACE_US {
                (self.bout_us, self.shrinks) = (now_us, 0);
            }
            self.shrinks += 1;
            self.ceiling = self.per_second;
            if self.shrinks == 1 {
                self.per_second * FIRST_STEP
            } else {
                let window_us = (now_us - self.bout_us).clamp(300_000, WINDOW_US);
                let accepted = self.count(now_us, window_us) / (window_us as f64 / 1e6);
                (accepted * MARGIN).clamp(self.per_second * LARGEST_STEP, self.per_second * MARGIN)
            }
        };
        self.per_second = per_second.max(MIN_RATE);
        self.version = self.version.wrapping_add(1);
        (self.shrunk_us, self.grown_us) = (now_us, now_us);
    }

    fn grow(&mut self, now_us: i64, wanted: bool) {
        let hold_us = if self.shrinks > 1 { HOLD_US.1 } else { HOLD_US.0 };
        let from_us = self.grown_us.max(self.shrunk_us + hold_us);
        // only a rate that holds calls back is tried out further
        if !wanted {
            self.grown_us = self.grown_us.max(now_us);
        } else if now_us > from_us {
            let part = self.per_second / self.ceiling.max(MIN_RATE);
            let growth = match part {
                part if part < SLOWER_FROM[0] => GROWTH[0],
                part if part < SLOWER_FROM[1] => GROWTH[1],
                _ if now_us - self.shrunk_us < CEILING_US => GROWTH[2],
                _ => GROWTH[3],
            };
            // a process that was silent for long does not leap
            self.per_second *= growth.powf(((now_us - from_us) as f64 / 1e6).min(1.0));
            self.grown_us = now_us;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const T0: i64 = 1_700_000_000_000_000;
    const TICK_US: i64 = 1_000;
    const EXCHANGE_US: i64 = 100_000;
    /// A refusal reaches the row this much later.
    const TOLD_US: i64 = 12_000;

    /// A process that holds itself to its part and tells what it saw.
    #[derive(Default, Clone)]
    struct Process {
        rate: Option<LearnedRate>,
        next_us: i64,
        held_us: i64,
        seen: Observed,
        due_us: i64,
        /// Ends of calls under way, and whether they were accepted.
        flying: Vec<(i64, bool, u32)>,
    }

    /// A provider with a token bucket of a second, whose allowance halves at `halve_s`, and `n` processes with work for ever.
    /// Returns accepted and refused calls by second.
    fn run(n: usize, per_second: f64, halve_s: i64, until_s: i64) -> Vec<(u32, u32)> {
        let mut row = Learned::default();
        let mut processes = vec![Process::default(); n];
        for (i, process) in processes.iter_mut().enumerate() {
            process.due_us = EXCHANGE_US * i as i64 / n as i64;
        }
        let (mut used, mut seconds) = (0.0_f64, vec![(0, 0); until_s as usize]);
        for tick in 0..until_s * 1_000_000 / TICK_US {
            let now = tick * TICK_US;
            let allowed = if now >= halve_s * 1_000_000 { per_second / 2.0 } else { per_second };
            used = (used - allowed * TICK_US as f64 / 1e6).max(0.0);
            for process in &mut processes {
                let ended = |call: &(i64, bool, u32)| call.0 <= now;
                for (_, accepted, version) in process.flying.iter().copied().filter(ended) {
                    process.seen.accepted += u32::from(accepted);
                    let counts = !accepted && process.rate.map_or(0, |rate| rate.version) == version;
                    process.seen.refused += u32::from(counts);
                    if counts {
                        process.due_us = process.due_us.min(now + TOLD_US);
                    }
                }
                process.flying.retain(|call| !ended(call));
                if process.due_us <= now {
                    let version = process.rate.map_or(0, |rate| rate.version);
                    let seen = Observed { version, ..std::mem::take(&mut process.seen) };
                    row.observe(T0 + now, &seen, false);
                    process.rate = row.share(1.0 / n as f64);
                    process.due_us = now + EXCHANGE_US;
                }
                let most = if process.rate.is_some() { 512 } else { 8 + 2 * (now / 100_000) as usize };
                while process.flying.len() < most && process.next_us <= now && process.held_us <= now {
                    let version = process.rate.map_or(0, |rate| rate.version);
                    let second = &mut seconds[(now / 1_000_000) as usize];
                    if used > allowed - 1.0 {
                        second.1 += 1;
                        process.flying.push((now + 3_000, false, version));
                        process.held_us = now + ((used - allowed + 1.0) / allowed * 1e6) as i64;
                    } else {
                        second.0 += 1;
                        used += 1.0;
                        process.flying.push((now + 200_000, true, version));
                    }
                    if let Some(rate) = process.rate {
                        process.next_us = process.next_us.max(now - 20_000) + (1e6 / rate.per_second) as i64;
                        process.seen.wants_more = true;
                    }
                }
            }
        }
        seconds
    }

    #[test]
    fn p19_processes_find_a_halved_allowance_together() {
        for (n, per_second) in [(1, 50.0), (4, 50.0), (4, 200.0), (8, 100.0)] {
            let seconds = run(n, per_second, 20, 60);
            let sum = |from: usize, to: usize| {
                seconds[from..to].iter().fold((0, 0), |sum, second| (sum.0 + second.0, sum.1 + second.1))
            };
            let (accepted, refused) = sum(20, 35);
            let used = f64::from(accepted) / (15.0 * per_second / 2.0);
            let part = f64::from(refused) / f64::from(accepted + refused);
            assert!(used >= 0.9, "{n} processes at {per_second}/s use {used} in 15 s");
            assert!(part <= 0.05, "{n} processes at {per_second}/s: {part} refused in 15 s");
            let (accepted, refused) = sum(35, 60);
            let used = f64::from(accepted) / (25.0 * per_second / 2.0);
            assert!(used >= 0.93, "{n} processes at {per_second}/s use {used} later");
            assert!(f64::from(refused) <= 0.01 * f64::from(accepted), "{n} at {per_second}/s: {refused} of {accepted}");
        }
    }

    #[test]
    fn p19_one_shrink_per_version_and_nothing_without_evidence() {
        let mut row = Learned::default();
        let refused = |version| Observed { refused: 3, version, ..Observed::default() };
        row.observe(T0, &refused(0), false);
        assert_eq!(row.share(1.0), None, "nothing was accepted yet");
        for tenth in 1..=10 {
            row.observe(T0 + tenth * 100_000, &Observed { accepted: 10, ..Observed::default() }, false);
        }
        row.observe(T0 + 1_000_000, &refused(0), false);
        let first = row.share(1.0).expect("learned");
        assert!((50.0..60.0).contains(&first.per_second) && first.version == 1, "{first:?}");
        row.observe(T0 + 1_100_000, &refused(0), false);
        assert_eq!(row.share(1.0), Some(first), "calls that left before the shrink say nothing about it");
        row.observe(T0 + 1_200_000, &refused(1), false);
        assert_eq!(row.share(1.0).map(|rate| rate.version), Some(2));
        assert_eq!(row.share(0.25).map(|rate| rate.per_second), row.share(1.0).map(|rate| rate.per_second / 4.0));
        row.observe(T0 + 200_000_000, &Observed::default(), false);
        assert_eq!(row.share(1.0), None, "forgotten");
    }

    #[test]
    fn p24_a_single_refusal_at_told_limits_slows_nobody_down() {
        let mut row = Learned::default();
        let (mut now, refused) = (T0, Observed { refused: 1, ..Observed::default() });
        let accepted = Observed { accepted: 5, ..Observed::default() };
        let mut pass = |row: &mut Learned, tenths: i64, last: &Observed| {
            for _ in 0..tenths {
                now += 100_000;
                row.observe(now, &accepted, true);
            }
            row.observe(now, last, true);
            row.share(1.0).is_some()
        };
        assert!(!pass(&mut row, 20, &refused), "the first one");
        assert!(!pass(&mut row, 2, &refused), "had left before it was known");
        assert!(!pass(&mut row, 120, &refused), "long after");
        assert!(pass(&mut row, 5, &refused), "calls go on being refused: the limit is not what was told");
        let first = row.share(1.0).expect("learned").per_second;
        assert!((25.0..=50.0).contains(&first), "{first}");
    }

    #[test]
    fn p24_headers_teach_the_first_rate() {
        let mut row = Learned::default();
        for tenth in 1..=20 {
            row.observe(T0 + tenth * 100_000, &Observed { accepted: 100, ..Observed::default() }, false);
        }
        row.observe(T0 + 2_000_000, &Observed { refused: 1, hinted: Some(100.0), ..Observed::default() }, false);
        assert_eq!(row.share(1.0).map(|rate| rate.per_second), Some(98.0));
    }

    proptest! {
        #[test]
        fn rates_stay_sane(seen in proptest::collection::vec((0_i64..3_000_000, 0_u32..200, 0_u32..3, any::<bool>()), 1..300), told in any::<bool>()) {
            let (mut row, mut now) = (Learned::default(), T0);
            for (step, accepted, refused, wants_more) in seen {
                now += step;
                let version = row.version;
                row.observe(now, &Observed { accepted, refused, version, wants_more, hinted: None }, told);
                prop_assert!(row.per_second == 0.0 || (row.per_second >= MIN_RATE && row.per_second.is_finite()));
                prop_assert!(row.accepted.len() <= 24);
            }
        }
    }
}
