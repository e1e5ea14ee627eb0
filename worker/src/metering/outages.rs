//! Whether the providers behind a run's meter can be reached, by what the memory system's own calls have shown (P39).
//!
//! While one is away, requests are held and one at a time is let through to find out; and what the system fails meanwhile is no failure
//! of its own.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

/// Failures on the way, with no reply between them, after which requests are held.
const HELD_AFTER: u32 = 3;
/// For so long a failure says that a provider is away, unless another follows.
const RECENT: Duration = Duration::from_secs(30);
/// Pauses between two tries while a provider is away: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// What is away together: an account, a model, and whether it embeds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) account: String,
    pub(crate) model: String,
    pub(crate) embeds: bool,
}

/// A provider that does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Away {
    /// For how long.
    pub(crate) since: Duration,
    /// What it said last, and which it is.
    pub(crate) reason: String,
}

/// The providers of a run.
#[derive(Default)]
pub(crate) struct Outages {
    rows: Mutex<HashMap<Target, Row>>,
    changed: Notify,
}

/// Failures in a row.
struct Row {
    begun: Instant,
    last: Instant,
    failures: u32,
    reason: String,
    pause: Duration,
    next_try: Instant,
}

impl Outages {
    fn rows(&self) -> MutexGuard<'_, HashMap<Target, Row>> {
        // every change is complete when the lock is dropped
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request may be tried.
    ///
    /// # Errors
    /// When that is not before `by`.
    pub(crate) async fn wait(&self, target: &Target, by: Instant) -> Result<(), Away> {
        loop {
            let changed = self.changed.notified();
            let now = Instant::now();
            let until = {
                let mut rows = self.rows();
                let Some(row) = rows.get_mut(target).filter(|row| row.failures >= HELD_AFTER) else { return Ok(()) };
                if row.next_try <= now {
                    row.next_try = now + row.pause;
                    row.pause = (row.pause * 2).min(PAUSES.1);
                    return Ok(());
                }
                if by <= now {
                    return Err(row.away(target, now));
                }
                row.next_try.min(by)
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(until.into()) => {}
            }
        }
    }

    /// A reply has come.
    pub(crate) fn through(&self, target: &Target) {
        if self.rows().remove(target).is_some() {
            self.changed.notify_waiters();
        }
    }

    /// A request has failed on the way.
    pub(crate) fn failed(&self, target: &Target, reason: String) {
        let now = Instant::now();
        let mut rows = self.rows();
        let row = rows.entry(target.clone()).or_insert_with(|| Row::new(now));
        row.failures += 1;
        row.last = now;
        row.reason = reason;
        if row.failures == HELD_AFTER {
            row.next_try = now + row.pause;
        }
    }

    /// A request has come too early for its account: the pace has to do with that, and no request is held for it here.
    pub(crate) fn limited(&self, target: &Target) {
        let now = Instant::now();
        let mut rows = self.rows();
        let row = rows.entry(target.clone()).or_insert_with(|| Row::new(now));
        row.last = now;
        "too many requests (429)".clone_into(&mut row.reason);
    }

    /// The provider that is away for the longest time, of those of which the last that is known is a failure, and a recent one.
    pub(crate) fn away(&self) -> Option<Away> {
        let (now, rows) = (Instant::now(), self.rows());
        let recent = rows.iter().filter(|(_, row)| now.saturating_duration_since(row.last) < RECENT);
        recent.min_by_key(|(_, row)| row.begun).map(|(target, row)| row.away(target, now))
    }
}

impl Row {
    fn new(now: Instant) -> Self {
        Self { begun: now, last: now, failures: 0, reason: String::new(), pause: PAUSES.0, next_try: now }
    }

    fn away(&self, target: &Target, now: Instant) -> Away {
        let Target { account, model, .. } = target;
        Away {
            since: now.saturating_duration_since(self.begun),
            reason: format!("account {account} does not answer for {model}: {}", self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(model: &str) -> Target {
        Target { account: "openai".to_owned(), model: model.to_owned(), embeds: false }
    }

    #[tokio::test]
    async fn p39_requests_are_held_after_three_failures_and_one_finds_out() {
        let (outages, target) = (Outages::default(), target("m"));
        assert_eq!(outages.away(), None);
        outages.failed(&target, "status 503".to_owned());
        assert!(
            outages.away().is_some_and(|away| away.reason.contains("status 503")),
            "what failed is not the system's"
        );
        let at_once = || Instant::now();
        assert_eq!(outages.wait(&target, at_once()).await, Ok(()), "one failure holds nobody");
        outages.failed(&target, "status 503".to_owned());
        outages.failed(&target, "status 503".to_owned());
        assert!(outages.wait(&target, at_once()).await.is_err());
        let begun = Instant::now();
        let wait = || outages.wait(&target, begun + Duration::from_millis(1_500));
        let (one, other) = tokio::join!(wait(), wait());
        assert!(one.is_ok() != other.is_ok(), "one goes, the other waits for what it finds: {one:?}, {other:?}");
        outages.through(&target);
        assert_eq!(outages.wait(&target, at_once()).await, Ok(()));
        assert_eq!(outages.away(), None);
    }

    #[tokio::test]
    async fn p39_whoever_is_held_goes_as_soon_as_a_reply_has_come() {
        let (outages, target) = (Outages::default(), target("m"));
        (0..HELD_AFTER).for_each(|_| outages.failed(&target, "no connection".to_owned()));
        let begun = Instant::now();
        let reply = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            outages.through(&target);
        };
        let (held, ()) = tokio::join!(outages.wait(&target, begun + Duration::from_secs(20)), reply);
        assert_eq!(held, Ok(()));
        assert!(
            begun.elapsed() < Duration::from_millis(900),
            "it did not wait for its next try: {:?}",
            begun.elapsed()
        );
    }

    #[tokio::test]
    async fn p39_one_model_that_is_away_holds_no_other_and_429_holds_nobody() {
        let outages = Outages::default();
        (0..HELD_AFTER).for_each(|_| outages.failed(&target("gone"), "status 500".to_owned()));
        assert_eq!(outages.wait(&target("there"), Instant::now()).await, Ok(()));
        (0..9).for_each(|_| outages.limited(&target("busy")));
        assert_eq!(outages.wait(&target("busy"), Instant::now()).await, Ok(()));
    }
}
