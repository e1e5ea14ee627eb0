//! What a process knows of one route: a state machine over explicit times, without calls and without a clock.
//!
//! In come what calls met (`send`, `succeeded`, `failed`, `ended`) and what the store tells of the route (`told`); out come
//! whether a call may leave (`look`), which failures count as attempts (`decide`), which calls need not be waited for
//! (`is_lost`) and what this process tells the others (`evidence`). What all processes together conclude from it is in
//! `routes/remedy.rs`; `routes/watch.rs` does the I/O; the model in `state/model` tries all of it with faults. Start
//! reading at `Standing`, then at `look` and `told`.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use bench_proto::{
    failure::Failure,
    outage::{FIRST_ALLOWANCE, RouteEvidence, SUSPICIOUS_FAILURES, Withdrawn},
};
use bench_store::OutageRow;

/// Replies whose durations are remembered.
const REPLIES_SEEN: usize = 128;
/// First and longest time between two probes of a process that has withdrawn.
const OWN_PROBE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// What is sent so soon after another may arrive before it: that it came through says nothing about the other.
pub(crate) const OVERTAKING: Duration = Duration::from_millis(200);
/// Longest time for which a task is put off.
const PUT_OFF: Duration = Duration::from_secs(5);
/// Allowance above which a route is no longer held back.
const WIDE: usize = 512;

/// Whether calls may use the route.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Standing {
    /// Calls may go out.
    Clear,
    /// Nobody gets through; probes find out when that is over.
    Away {
        /// A probe has failed: it is the route, not single calls.
        confirmed: bool,
        next_probe: Instant,
        reason: String,
    },
    /// Others get through, this process does not.
    Withdrawn(Leave),
}

/// A process that leaves a route to others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leave {
    pub(super) since: Instant,
    pub(super) reason: String,
    /// The provider refused the process: what it said.
    pub(super) refused: Option<Failure>,
    pub(super) next_probe: Instant,
    /// Somebody has asked since the last probe ended: what was found before is not the answer.
    pub(super) asked: bool,
    /// When somebody asked last: from then on others have time to get through.
    pub(super) asked_at: Instant,
    tries: u32,
}

/// Calls in flight that a route is trusted with after an outage.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    calls: usize,
    since: Instant,
    /// Something came through since.
    well: bool,
}

/// What a call finds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Look {
    Go,
    /// Not now; something may change after the time at the latest.
    Wait {
        wait: Duration,
        reason: String,
        /// It is known to last: nobody should stand in a slot for it.
        lasts: bool,
    },
}

/// What an event made of a route, for the log.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Turn {
    Nothing,
    /// Closed to everybody.
    WentAway,
    /// Calls go on.
    CameBack,
}

#[derive(Debug, Clone)]
pub(super) struct RouteState {
    pub(super) standing: Standing,
    /// Newest outage that was heard of, and whether it lasts.
    pub(super) opening: i64,
    pub(super) is_open: bool,
    /// When the last success came, and the latest send of any success.
    came: Option<Instant>,
    sent: Option<Instant>,
    failures: u32,
    failing: Option<Instant>,
    pub(super) words: String,
    /// Failures sent before are nobody's attempts.
    forgiven: Option<Instant>,
    /// Calls sent before have met an outage that is over, and have waited longer than any reply takes.
    lost: Option<Instant>,
    out: BTreeMap<u64, Instant>,
    next: u64,
    returned: Option<Instant>,
    /// Shortest silence that is suspicious while calls are out; `None` where none is.
    silence: Option<Duration>,
    durations: VecDeque<Duration>,
    allowance: Option<Allowance>,
    /// A probe of this process alone is under way.
    pub(super) asking: bool,
    /// Opening of the last probe of this process for everybody that has failed, and how many had failed with it.
    pub(super) failed_last: Option<(i64, i64)>,
}

impl RouteState {
    /// A route of which nothing is known. `silence`: without any reply for so long while calls are out it is suspect.
    pub(super) const fn new(silence: Option<Duration>) -> Self {
        Self {
            silence,
            standing: Standing::Clear,
            opening: 0,
            is_open: false,
            came: None,
            sent: None,
            failures: 0,
            failing: None,
            words: String::new(),
            forgiven: None,
            lost: None,
            out: BTreeMap::new(),
            next: 0,
            returned: None,
            durations: VecDeque::new(),
            allowance: None,
            asking: false,
            failed_last: None,
        }
    }

    /// What a call finds that wants to be sent now.
    pub(super) fn look(&self, now: Instant) -> Look {
        match &self.standing {
            Standing::Away { confirmed, next_probe, reason } => Look::Wait {
                // the dispatcher hands nothing out while it lasts; then nothing should have to wait longer
                wait: next_probe.saturating_duration_since(now).clamp(Duration::from_secs(1), PUT_OFF),
                reason: reason.clone(),
                lasts: *confirmed,
            },
            // somebody else serves the task
            Standing::Withdrawn(leave) => {
                Look::Wait { wait: Duration::from_millis(300), reason: leave.reason.clone(), lasts: true }
            }
            Standing::Clear => match self.allowance {
                Some(allowance) if self.out.len() >= allowance.calls => Look::Wait {
                    wait: Duration::from_millis(100),
                    reason: "calls come back slowly after an outage".to_owned(),
                    lasts: false,
                },
                _ => Look::Go,
            },
        }
    }

    /// A call is sent; the number names it when it ends.
    pub(super) fn send(&mut self, now: Instant) -> u64 {
        self.next += 1;
        self.out.insert(self.next, now);
        self.next
    }

    /// A call has ended; when it was sent.
    fn returned(&mut self, call: u64, now: Instant) -> Instant {
        self.returned = Some(now);
        self.out.remove(&call).unwrap_or(now)
    }

    /// A reply has come to a call; when that was sent.
    fn replied(&mut self, call: u64, now: Instant) -> Instant {
        let sent = self.returned(call, now);
        if self.durations.len() == REPLIES_SEEN {
            self.durations.pop_front();
        }
        self.durations.push_back(now.saturating_duration_since(sent));
        sent
    }

    /// A call came through.
    pub(super) fn succeeded(&mut self, call: u64, now: Instant) {
        let sent = self.replied(call, now);
        self.through(sent, now);
        if let Some(allowance) = &mut self.allowance {
            allowance.well = true;
            if now.saturating_duration_since(allowance.since) >= Duration::from_secs(1) {
                *allowance = Allowance { calls: allowance.calls * 2, since: now, well: false };
                if allowance.calls >= WIDE {
                    self.allowance = None;
                }
            }
        }
    }

    /// Something that was sent at `sent` has come through: a call, or a probe.
    pub(super) fn through(&mut self, sent: Instant, now: Instant) {
        self.sent = Some(self.sent.map_or(sent, |latest| latest.max(sent)));
        self.came = Some(now);
        (self.failures, self.failing) = (0, None);
    }

    /// A call has failed on the way; when it was sent.
    pub(super) fn failed(&mut self, call: u64, words: &str, now: Instant) -> Instant {
        let sent = self.returned(call, now);
        // what was sent before an outage was known belongs to it
        if self.forgiven.is_none_or(|forgiven| sent >= forgiven) {
            self.failures = self.failures.saturating_add(1);
            self.failing.get_or_insert(sent);
            words.clone_into(&mut self.words);
            if let Some(allowance) = &mut self.allowance {
                allowance.since = now;
            }
        }
        sent
    }

    /// What has failed cannot be tried again, so nothing more will be learned by waiting for further failures.
    pub(super) fn doubt(&mut self) {
        if self.failing.is_some() {
            self.failures = self.failures.max(SUSPICIOUS_FAILURES);
        }
    }

    /// A call has ended in a way that says nothing about the route, or was dropped.
    pub(super) fn ended(&mut self, call: u64, now: Instant) {
        self.returned(call, now);
    }

    /// Whether anything was ever answered.
    pub(super) const fn ever(&self) -> bool {
        self.came.is_some()
    }

    /// Takes those of `pending` (sends of failures) out that are decided: how many count as attempts, how many as none.
    pub(super) fn decide(&self, pending: &mut Vec<Instant>) -> (u32, u32) {
        let (mut charged, mut forgiven) = (0, 0);
        pending.retain(|sent| {
            if self.forgiven.is_some_and(|until| *sent < until) {
                forgiven += 1;
            } else if self.sent.is_some_and(|success| success > *sent + OVERTAKING) {
                charged += 1;
            } else {
                return true;
            }
            false
        });
        (charged, forgiven)
    }

    /// A reply that takes longer is suspicious, where silence says anything.
    fn patience(&self) -> Option<Duration> {
        Some(self.silence?.max(self.durations.iter().max().copied().unwrap_or_default() * 3))
    }

    /// For how long calls have been out without any reply, when that is suspicious. A probe that came through is a reply: asked
    /// again at once, it would say the same.
    fn silence(&self, now: Instant) -> Option<Duration> {
        let oldest = self.out.values().min().copied();
        let since = oldest?.max(self.returned.or(oldest)?).max(self.came.or(oldest)?);
        let silence = now.saturating_duration_since(since);
        (silence >= self.patience()?).then_some(silence)
    }

    /// Whether a call that is out need not be waited for: an outage that has begun after it is over, and still nothing came.
    pub(super) fn is_lost(&self, call: u64) -> bool {
        self.out.get(&call).zip(self.lost).is_some_and(|(sent, lost)| *sent < lost)
    }

    /// Whether so much has failed since the last success that it will be found out whose fault that is.
    pub(super) fn is_suspect(&self) -> bool {
        self.standing == Standing::Clear && self.failures >= SUSPICIOUS_FAILURES
    }

    /// Whether somebody has to look at the route before its time.
    pub(super) fn is_troubled(&self, now: Instant) -> bool {
        let failing = self.failing.is_some_and(|since| now.saturating_duration_since(since) >= Duration::from_secs(1));
        self.standing != Standing::Clear
            || self.failures >= SUSPICIOUS_FAILURES
            || failing
            || self.silence(now).is_some()
    }

    /// What others are told.
    pub(super) fn evidence(&self, route: String, now: Instant) -> RouteEvidence {
        let age = |at: Instant| u64::try_from(now.saturating_duration_since(at).as_millis()).unwrap_or(u64::MAX);
        let withdrawn = match &self.standing {
            Standing::Withdrawn(leave) => Some(Withdrawn {
                reason: leave.reason.clone(),
                for_ms: age(leave.since),
                refused: leave.refused.is_some(),
            }),
            _ => None,
        };
        let mut evidence = RouteEvidence {
            route,
            success_ms: self.came.map(age),
            success_sent_ms: self.sent.map(age),
            failures: self.failures,
            failing_ms: self.failing.map(age),
            withdrawn,
        };
        if let Some(silence) = self.silence(now) {
            evidence.failures = evidence.failures.max(SUSPICIOUS_FAILURES);
            evidence.failing_ms = evidence.failing_ms.max(u64::try_from(silence.as_millis()).ok());
        }
        evidence
    }

    /// What the failures are, in words.
    pub(super) fn why(&self, now: Instant) -> String {
        match self.silence(now) {
            Some(silence) if self.words.is_empty() => {
                format!("no reply for {} s while {} calls are out", silence.as_secs(), self.out.len())
            }
            _ => self.words.clone(),
        }
    }

    /// The newest outage that was heard of, and whether it lasts.
    pub(super) const fn known(&self) -> (i64, bool) {
        (self.opening, self.is_open)
    }

    /// The store has been set back (P44) and knows of fewer outages: what it says from now on holds.
    pub(super) fn set_back(&mut self, opening: i64) {
        self.opening = self.opening.min(opening);
        self.failed_last = None;
    }

    /// Takes over what the store says of the newest outage. `share`: calls in flight that this process begins with after it.
    pub(super) fn told(&mut self, row: &OutageRow, share: usize, now: Instant) -> Turn {
        let outage = &row.outage;
        if outage.opening < self.opening {
            return Turn::Nothing;
        }
        let news = outage.opening > self.opening;
        self.opening = outage.opening;
        let was_open = std::mem::replace(&mut self.is_open, outage.is_open());
        let was_away = match self.standing {
            Standing::Away { confirmed, .. } => Some(confirmed && !news),
            _ => None,
        };
        if outage.is_open() {
            if outage.is_confirmed() && was_away != Some(true) {
                self.forgive(now);
            }
            if matches!(self.standing, Standing::Withdrawn(_)) {
                return Turn::Nothing;
            }
            let left = u64::try_from(outage.next_probe_us - row.now_us).unwrap_or(0);
            let next_probe = now + Duration::from_micros(left);
            self.standing = Standing::Away { confirmed: outage.is_confirmed(), next_probe, reason: row.reason.clone() };
            return if was_away.is_none() { Turn::WentAway } else { Turn::Nothing };
        }
        if !news && !was_open && was_away.is_none() {
            return Turn::Nothing;
        }
        if outage.is_confirmed() {
            self.forgive(now);
            self.lost = self.patience().and_then(|patience| now.checked_sub(patience));
        } else if let Some(to_us) = outage.to_us {
            // The first probe came through: the route was sound. Whether what failed here was the calls' own or this
            // process's is found out by a success of its own, or by asking itself.
            let ago = u64::try_from(row.now_us - to_us).unwrap_or(0);
            let ended = now.checked_sub(Duration::from_micros(ago)).unwrap_or(now);
            self.came = self.came.max(Some(ended));
        }
        // what kept it away may have been the outage
        self.ask_again(now);
        if was_away.is_none() {
            return Turn::Nothing;
        }
        self.clear(share, now);
        Turn::CameBack
    }

    fn forgive(&mut self, now: Instant) {
        self.forgiven = Some(now);
        (self.failures, self.failing) = (0, None);
    }

    fn clear(&mut self, share: usize, now: Instant) {
        self.standing = Standing::Clear;
        self.allowance = Some(Allowance { calls: share.max(1), since: now, well: false });
    }

    /// The process leaves the route to others: what failed here says nothing about the calls. False when it had already.
    pub(super) fn withdraw(&mut self, reason: String, refused: Option<Failure>, now: Instant) -> bool {
        if matches!(self.standing, Standing::Withdrawn(_)) {
            return false;
        }
        // counted on: when nobody is left who gets through, it is an outage
        let (failures, failing) = (self.failures.max(SUSPICIOUS_FAILURES), self.failing.unwrap_or(now));
        self.forgiven = Some(now);
        (self.failures, self.failing) = (failures, Some(failing));
        let next_probe = now + OWN_PROBE.0;
        self.standing = Standing::Withdrawn(Leave {
            since: now,
            reason,
            refused,
            next_probe,
            asked: false,
            asked_at: now,
            tries: 0,
        });
        true
    }

    /// Its own probe has failed. True when it withdraws by that.
    pub(super) fn is_not_back(&mut self, words: &str, refused: Option<Failure>, now: Instant) -> bool {
        let Standing::Withdrawn(leave) = &mut self.standing else {
            self.withdraw(words.to_owned(), refused, now);
            return true;
        };
        leave.asked = false;
        leave.tries = leave.tries.saturating_add(1);
        let wait = OWN_PROBE.0.saturating_mul(1 << leave.tries.min(6)).min(OWN_PROBE.1);
        leave.next_probe = now + wait;
        words.clone_into(&mut leave.reason);
        // an outage that is over has forgiven the failures, and others may have gone since
        self.failures = self.failures.max(SUSPICIOUS_FAILURES);
        self.failing.get_or_insert(now);
        false
    }

    /// Somebody wants to know at once: a run was resumed, or has begun.
    pub(super) fn ask_again(&mut self, now: Instant) {
        if let Standing::Withdrawn(leave) = &mut self.standing {
            leave.next_probe = leave.next_probe.min(now);
            leave.asked = true;
            leave.asked_at = now;
        }
    }

    /// Its own probe has come through.
    pub(super) fn is_back(&mut self, sent: Instant, share: usize, now: Instant) -> bool {
        self.through(sent, now);
        let Standing::Withdrawn(leave) = &self.standing else { return false };
        if self.is_open {
            let reason = leave.reason.clone();
            self.standing = Standing::Away { confirmed: false, next_probe: now, reason };
        } else {
            self.clear(share, now);
        }
        true
    }
}

/// Calls in flight that one of `processes` begins with after an outage.
pub(super) fn share_of(processes: usize) -> usize {
    (FIRST_ALLOWANCE as usize).div_ceil(processes.max(1))
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use bench_proto::outage::Outage;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const SILENCE: Duration = Duration::from_secs(30);

    fn row(opening: i64, failed_probes: i64, to_us: Option<i64>) -> OutageRow {
        let outage = Outage { opening, failed_probes, to_us, next_probe_us: 4_000_000, ..Outage::default() };
        OutageRow { outage, now_us: 1_000_000, reason: "503".to_owned(), ..OutageRow::default() }
    }

    fn failing(state: &mut RouteState, times: u32, at: Instant) -> Vec<Instant> {
        (0..times)
            .map(|_| {
                let call = state.send(at);
                state.failed(call, "503", at)
            })
            .collect()
    }

    #[test]
    fn p39_a_success_that_was_sent_later_makes_a_failure_an_attempt() {
        let (mut state, now) = (RouteState::new(Some(SILENCE)), Instant::now());
        let early = state.send(now);
        let mut pending = failing(&mut state, 1, now + SECOND);
        state.succeeded(early, now + 2 * SECOND);
        assert_eq!(state.decide(&mut pending), (0, 0), "that was sent before");
        let overtaking = state.send(now + SECOND + OVERTAKING);
        state.succeeded(overtaking, now + 2 * SECOND);
        assert_eq!(state.decide(&mut pending), (0, 0), "that may have arrived before");
        let late = state.send(now + 3 * SECOND);
        state.succeeded(late, now + 4 * SECOND);
        assert_eq!(state.decide(&mut pending), (1, 0));
        assert!(pending.is_empty());
    }

    #[test]
    fn p39_a_confirmed_outage_forgives_and_a_false_alarm_charges() {
        for confirmed in [true, false] {
            let (mut state, now) = (RouteState::new(Some(SILENCE)), Instant::now());
            let mut pending = failing(&mut state, 5, now);
            assert_eq!(state.told(&row(1, 0, None), 8, now + 5 * SECOND), Turn::WentAway);
            assert_eq!(state.decide(&mut pending), (0, 0), "nobody knows yet whose fault it is");
            let Look::Wait { lasts: false, .. } = state.look(now + 5 * SECOND) else { panic!("is closed") };
            if confirmed {
                assert_eq!(state.told(&row(1, 1, None), 8, now + 6 * SECOND), Turn::Nothing);
                let Look::Wait { lasts: true, wait, .. } = state.look(now + 6 * SECOND) else { panic!("is closed") };
                assert_eq!(wait, 3 * SECOND, "until the next probe");
            }
            let ended = row(1, i64::from(confirmed), Some(1_000_000));
            assert_eq!(state.told(&ended, 8, now + 9 * SECOND), Turn::CameBack);
            if !confirmed {
                assert_eq!(state.decide(&mut pending), (0, 0), "another probed: the fault may be this process's");
                assert_eq!(state.evidence(String::new(), now + 9 * SECOND).failures, 5, "which asks itself then");
                assert!(!state.is_back(now + 8 * SECOND, 8, now + 9 * SECOND));
            }
            assert_eq!(state.decide(&mut pending), if confirmed { (0, 5) } else { (5, 0) });
            assert_eq!(state.look(now + 9 * SECOND), Look::Go);
        }
    }

    #[test]
    fn p39_calls_that_were_out_when_it_began_are_forgiven_too() {
        let (mut state, now) = (RouteState::new(Some(SILENCE)), Instant::now());
        let slow = state.send(now);
        failing(&mut state, 5, now);
        state.told(&row(1, 1, None), 8, now + 6 * SECOND);
        let mut pending = vec![state.failed(slow, "timeout", now + 60 * SECOND)];
        assert_eq!(state.decide(&mut pending), (0, 1));
        assert!(state.evidence(String::new(), now + 60 * SECOND).failures == 0, "and say nothing about later");
    }

    #[test]
    fn p39_after_an_outage_calls_in_flight_double_by_the_second() {
        let (mut state, now) = (RouteState::new(Some(SILENCE)), Instant::now());
        state.told(&row(1, 1, None), 2, now);
        state.told(&row(1, 1, Some(1)), 2, now);
        let calls: Vec<u64> = (0..2).map(|_| state.send(now)).collect();
        assert!(matches!(state.look(now), Look::Wait { lasts: false, .. }), "two at a time");
        state.succeeded(calls[0], now + SECOND);
        for _ in 0..3 {
            assert_eq!(state.look(now + SECOND), Look::Go);
            state.send(now + SECOND);
        }
        assert!(matches!(state.look(now + SECOND), Look::Wait { .. }), "four");
        assert_eq!((share_of(1), share_of(3), share_of(20)), (8, 3, 1));
    }

    #[test]
    fn p39_silence_while_calls_are_out_is_suspicious() {
        let (mut state, now) = (RouteState::new(Some(SILENCE)), Instant::now());
        let first = state.send(now);
        state.succeeded(first, now + 2 * SECOND);
        state.send(now + 2 * SECOND);
        assert!(!state.is_troubled(now + 31 * SECOND));
        let told = state.evidence("r".to_owned(), now + 32 * SECOND);
        assert_eq!((told.failures, told.failing_ms), (SUSPICIOUS_FAILURES, Some(30_000)));
        let slow = state.send(now + 2 * SECOND);
        state.succeeded(slow, now + 42 * SECOND);
        assert!(!state.is_troubled(now + 161 * SECOND), "a reply may take three times the slowest one");
        assert!(state.is_troubled(now + 162 * SECOND));
        let mut patient = RouteState::new(None);
        patient.send(now);
        assert!(!patient.is_troubled(now + 3600 * SECOND), "operations of many requests may take their time");
    }

    #[test]
    fn p39_a_failure_that_cannot_be_tried_again_is_looked_into_alone() {
        let (mut state, now) = (RouteState::new(None), Instant::now());
        state.doubt();
        assert_eq!(state.evidence(String::new(), now).failures, 0, "nothing has failed");
        failing(&mut state, 1, now);
        assert!(!state.is_troubled(now));
        state.doubt();
        assert!(state.is_troubled(now));
        assert_eq!(state.evidence(String::new(), now).failures, SUSPICIOUS_FAILURES);
    }

    /// Without this a call that hangs would be probed for at each look, and each probe is paid.
    #[test]
    fn p39_a_probe_that_came_through_breaks_the_silence() {
        let (mut state, now) = (RouteState::new(Some(SILENCE)), Instant::now());
        state.send(now);
        assert!(state.is_troubled(now + 30 * SECOND));
        state.through(now + 30 * SECOND, now + 31 * SECOND);
        assert!(!state.is_troubled(now + 60 * SECOND));
        assert!(state.is_troubled(now + 61 * SECOND));
    }

    #[test]
    fn p39_calls_that_hung_through_an_outage_are_lost_when_it_is_over() {
        let (mut state, now) = (RouteState::new(Some(SILENCE)), Instant::now());
        let (hung, late) = (state.send(now), state.send(now + 20 * SECOND));
        assert_eq!(state.told(&row(1, 0, None), 8, now + 31 * SECOND), Turn::WentAway);
        assert_eq!(state.told(&row(1, 1, None), 8, now + 33 * SECOND), Turn::Nothing);
        assert!(!state.is_lost(hung), "while it lasts, a reply may still come");
        assert_eq!(state.told(&row(1, 1, Some(1)), 8, now + 40 * SECOND), Turn::CameBack);
        assert!(state.is_lost(hung) && !state.is_lost(late), "a reply to the later one may still come");
        let mut pending = vec![state.failed(hung, "it hung", now + 40 * SECOND)];
        assert_eq!(state.decide(&mut pending), (0, 1));
        assert!(!state.is_lost(state.next + 1));
    }

    #[test]
    fn p40_a_process_that_withdrew_asks_itself_and_comes_back() {
        let (mut state, now) = (RouteState::new(Some(SILENCE)), Instant::now());
        let mut pending = failing(&mut state, 5, now);
        state.withdraw("refused".to_owned(), None, now + SECOND);
        assert_eq!(state.decide(&mut pending), (0, 5), "its own fault is nobody's attempt");
        let told = state.evidence("r".to_owned(), now + 3 * SECOND);
        assert_eq!(told.withdrawn.map(|withdrawn| withdrawn.for_ms), Some(2_000));
        let mut at = now + SECOND;
        let mut waits = Vec::new();
        for _ in 0..8 {
            let Standing::Withdrawn(leave) = &state.standing else { panic!("it came back by itself") };
            waits.push(leave.next_probe.saturating_duration_since(at).as_secs());
            at = leave.next_probe;
            assert!(!state.is_not_back("refused", None, at));
        }
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(state.told(&row(1, 1, None), 8, at), Turn::Nothing, "an outage of all does not bring it back");
        let mut meanwhile = state.clone();
        assert!(meanwhile.is_back(at, 3, at));
        assert!(matches!(meanwhile.look(at), Look::Wait { .. }), "the outage lasts");
        assert_eq!(state.told(&row(1, 1, Some(1_000_000)), 8, at), Turn::Nothing);
        let Standing::Withdrawn(leave) = &state.standing else { panic!("it came back by itself") };
        assert_eq!(leave.next_probe, at, "but its end is a reason to ask at once");
        assert!(state.is_back(at, 3, at));
        assert_eq!(state.look(at), Look::Go);
    }
}
