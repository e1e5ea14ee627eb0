//! Which worker sessions are dead (P4): their counter stood still for 15 s of this process's own monotonic time, with every
//! read succeeding.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use bench_store::{SessionId, SessionRow};

/// How long a counter must stand still.
const PATIENCE: Duration = Duration::from_secs(15);
/// Two looks that are further apart than this are no watch.
const LONGEST_GAP: Duration = Duration::from_secs(4);

/// Watches the counters of sessions.
#[derive(Debug, Default)]
pub(crate) struct SessionWatch {
    seen: HashMap<SessionId, (i64, Instant)>,
    looked: Option<Instant>,
}

impl SessionWatch {
    /// The sessions that are dead by what was read now.
    pub(crate) fn see(&mut self, open: &[SessionRow], now: Instant) -> Vec<SessionId> {
        if self.looked.is_some_and(|looked| now.saturating_duration_since(looked) > LONGEST_GAP) {
            self.seen.clear();
        }
        self.looked = Some(now);
        self.seen.retain(|session, _| open.iter().any(|row| row.session == *session));
        let mut dead = Vec::new();
        for row in open {
            let (counter, since) = self.seen.entry(row.session).or_insert((row.counter, now));
            if *counter != row.counter {
                (*counter, *since) = (row.counter, now);
            } else if now.saturating_duration_since(*since) >= PATIENCE {
                dead.push(row.session);
            }
        }
        dead
    }

    /// A read failed: everything is counted anew.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(session: i64, counter: i64) -> SessionRow {
        SessionRow {
            session: SessionId(session),
            worker: "w".into(),
            info_json: "{}".into(),
            counter,
            silent_ms: 0,
            leased: 0,
        }
    }

    #[test]
    fn p4_a_session_dies_after_15_s_of_a_counter_that_stands_still() {
        let (mut watch, start) = (SessionWatch::default(), Instant::now());
        for second in 0..15 {
            let rows = [row(1, 7), row(2, second)];
            assert_eq!(watch.see(&rows, start + Duration::from_secs(second as u64)), []);
        }
        assert_eq!(watch.see(&[row(1, 7), row(2, 99)], start + Duration::from_secs(15)), [SessionId(1)]);
    }

    #[test]
    fn p4_after_an_outage_or_a_freeze_it_counts_anew() {
        let (mut watch, start) = (SessionWatch::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(watch.see(&[row(1, 7)], at(0)), []);
        assert_eq!(watch.see(&[row(1, 7)], at(30)), [], "this process slept, perhaps the worker too");
        for second in (33..45).step_by(3) {
            assert_eq!(watch.see(&[row(1, 7)], at(second)), []);
        }
        watch.forget();
        for second in (45..60).step_by(3) {
            assert_eq!(watch.see(&[row(1, 7)], at(second)), []);
        }
        assert_eq!(watch.see(&[row(1, 7)], at(60)), [SessionId(1)]);
    }
}
