//! Whether the providers behind a run's meter can be reached, by what the memory system's own calls have shown (P39).
//!
//! While one is away, requests are held and one at a time is let through to find out; and what the system fails meanwhile is no failure
//! of its own.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bench_meter::{Ended, Outcome};
use bench_proto::ids::Sha256Hash;
use tokio::sync::Notify;
use tracing::{info, warn};

/// Code of what is said of a provider that is away.
pub(crate) const PROVIDER_AWAY: &str = "provider_away";
/// Failures on the way, with no reply between them, after which requests are held.
const HELD_AFTER: u32 = 3;
/// For so long a failure says that a provider is away, unless another follows.
const RECENT: Duration = Duration::from_secs(30);
/// After so many answers of 500 to one and the same request, and to nothing else, of a provider that has answered others, it is the
/// request that it cannot take.
const SAME_REQUEST: u32 = 6;
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
    /// It has answered this process before.
    pub(crate) has_answered: bool,
    /// What it said last is that the key may not do this.
    pub(crate) is_refused: bool,
}

/// The providers of a run.
#[derive(Default)]
pub(crate) struct Outages {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Those of which the last that is known is a failure.
    failing: HashMap<Target, Failing>,
    answered: HashSet<Target>,
}

/// Failures in a row.
struct Failing {
    begun: Instant,
    last: Instant,
    failures: u32,
    reason: String,
    is_refused: bool,
    pause: Duration,
    next_try: Instant,
    /// The request that was answered with 500 each time, as long as it was one and the same.
    only: Option<Sha256Hash>,
}

/// What a provider did not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missed {
    /// What it said, or what was met in its place.
    pub(crate) reason: String,
    /// It said that the key may not do this.
    pub(crate) is_refused: bool,
    /// The request, where it was answered with 500: the fault may be its own.
    pub(crate) request: Option<Sha256Hash>,
}

impl Outages {
    fn state(&self) -> MutexGuard<'_, State> {
        // every change is complete when the lock is dropped
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns from what became of a request whether its provider was there.
    pub(crate) fn learn(&self, target: &Target, request: Sha256Hash, outcome: &Outcome) {
        let failed = |reason: String| self.failed(target, Missed { reason, is_refused: false, request: None });
        match &outcome.ended {
            // the provider was not asked
            _ if outcome.failed_on_purpose() => {}
            Ended::Complete => self.through(target),
            Ended::NotReached(cause) | Ended::CutByProvider(cause) => failed(cause.clone()),
            Ended::NotAReply => failed("what came is no reply".to_owned()),
            Ended::Page => failed("a web page came in the place of a reply".to_owned()),
            Ended::Refused(429) => self.limited(target),
            Ended::Refused(status @ (401..=403 | 408 | 500..)) => {
                let request = (*status == 500).then_some(request);
                self.failed(target, Missed { reason: format!("status {status}"), is_refused: *status < 408, request });
            }
            // of the request, or of the client: nothing is learned
            Ended::Refused(_) | Ended::Stored | Ended::CutByClient => {}
        }
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
                let mut state = self.state();
                let failing = state.failing.get_mut(target).filter(|failing| failing.failures >= HELD_AFTER);
                let Some(failing) = failing else { return Ok(()) };
                if failing.next_try <= now {
                    failing.next_try = now + failing.pause;
                    failing.pause = (failing.pause * 2).min(PAUSES.1);
                    return Ok(());
                }
                let until = failing.next_try.min(by);
                if by <= now {
                    return Err(state.away(target, now));
                }
                until
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(until.into()) => {}
            }
        }
    }

    /// A reply has come.
    pub(crate) fn through(&self, target: &Target) {
        let mut state = self.state();
        if !state.answered.contains(target) {
            state.answered.insert(target.clone());
        }
        let ended = state.failing.remove(target);
        drop(state);
        if let Some(failing) = ended {
            self.changed.notify_waiters();
            if failing.failures >= HELD_AFTER {
                info!(code = PROVIDER_AWAY, "account {} answers again for {}", target.account, target.model);
            }
        }
    }

    /// A request has failed on the way, or was refused.
    pub(crate) fn failed(&self, target: &Target, missed: Missed) {
        let mut state = self.state();
        let failing = state.failing(target);
        failing.failures += 1;
        failing.only = missed.request.filter(|request| failing.failures == 1 || failing.only == Some(*request));
        (failing.reason, failing.is_refused) = (missed.reason, missed.is_refused);
        if failing.failures != HELD_AFTER {
            return;
        }
        failing.next_try = failing.last + failing.pause;
        let why = state.away(target, Instant::now()).reason;
        drop(state);
        warn!(
            code = PROVIDER_AWAY,
            "{why}; what the memory system asks of it is held, one request at a time finds out when it answers"
        );
    }

    /// A request has come too early for its account: the pace has to do with that, and no request is held for it here.
    pub(crate) fn limited(&self, target: &Target) {
        let mut state = self.state();
        let failing = state.failing(target);
        "too many requests (429)".clone_into(&mut failing.reason);
        failing.is_refused = false;
    }

    /// The provider that is away for the longest time, of those of which the last that is known is a failure, and a recent one.
    pub(crate) fn away(&self) -> Option<Away> {
        let (now, state) = (Instant::now(), self.state());
        let is_away = |(target, failing): &(&Target, &Failing)| {
            let of_request = failing.only.is_some() && failing.failures >= SAME_REQUEST;
            failing.is_recent(now) && !(of_request && state.answered.contains(*target))
        };
        let recent = state.failing.iter().filter(is_away);
        let target = recent.min_by_key(|(_, failing)| failing.begun).map(|(target, _)| target)?;
        Some(state.away(target, now))
    }
}

impl State {
    /// The failures of a target to which one is added now. Old ones are forgotten: what lies between them is not known.
    fn failing(&mut self, target: &Target) -> &mut Failing {
        let now = Instant::now();
        let failing = self.failing.entry(target.clone()).or_insert_with(|| Failing::new(now));
        if !failing.is_recent(now) {
            *failing = Failing::new(now);
        }
        failing.last = now;
        failing
    }

    fn away(&self, target: &Target, now: Instant) -> Away {
        let Target { account, model, .. } = target;
        let failing = self.failing.get(target);
        let said = failing.map_or("", |failing| failing.reason.as_str());
        Away {
            since: failing.map_or(Duration::ZERO, |failing| now.saturating_duration_since(failing.begun)),
            reason: format!("account {account} does not answer for {model}: {said}"),
            has_answered: self.answered.contains(target),
            is_refused: failing.is_some_and(|failing| failing.is_refused),
        }
    }
}

impl Failing {
    fn new(now: Instant) -> Self {
        Self {
            begun: now,
            last: now,
            failures: 0,
            reason: String::new(),
            is_refused: false,
            pause: PAUSES.0,
            next_try: now,
            only: None,
        }
    }

    fn is_recent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) < RECENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(model: &str) -> Target {
        Target { account: "openai".to_owned(), model: model.to_owned(), embeds: false }
    }

    fn missed(reason: &str, is_refused: bool) -> Missed {
        Missed { reason: reason.to_owned(), is_refused, request: None }
    }

    #[test]
    fn a_request_that_a_provider_cannot_take_does_not_make_it_be_away() {
        let (outages, target) = (Outages::default(), target("m"));
        let of = |text: &str| Missed { request: Some(Sha256Hash::of(text.as_bytes())), ..missed("status 500", false) };
        (0..SAME_REQUEST).for_each(|_| outages.failed(&target, of("poison")));
        assert!(outages.away().is_some(), "nobody knows that it takes others");
        outages.through(&target);
        (1..SAME_REQUEST).for_each(|_| outages.failed(&target, of("poison")));
        assert!(outages.away().is_some(), "it may be away for a while");
        outages.failed(&target, of("poison"));
        assert_eq!(outages.away(), None);
        // another request, or no answer at all, says that it is the provider
        for other in [of("other"), missed("no connection", false)] {
            outages.through(&target);
            (0..SAME_REQUEST).for_each(|_| outages.failed(&target, of("poison")));
            outages.failed(&target, other);
            outages.failed(&target, of("poison"));
            assert!(outages.away().is_some());
        }
    }

    #[tokio::test]
    async fn p39_requests_are_held_after_three_failures_and_one_finds_out() {
        let (outages, target) = (Outages::default(), target("m"));
        assert_eq!(outages.away(), None);
        outages.failed(&target, missed("status 503", false));
        assert!(
            outages.away().is_some_and(|away| away.reason.contains("status 503")),
            "what failed is not the system's"
        );
        let at_once = || Instant::now();
        assert_eq!(outages.wait(&target, at_once()).await, Ok(()), "one failure holds nobody");
        outages.failed(&target, missed("status 503", false));
        outages.failed(&target, missed("status 503", false));
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
        (0..HELD_AFTER).for_each(|_| outages.failed(&target, missed("no connection", false)));
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
        (0..HELD_AFTER).for_each(|_| outages.failed(&target("gone"), missed("status 500", false)));
        assert_eq!(outages.wait(&target("there"), Instant::now()).await, Ok(()));
        (0..9).for_each(|_| outages.limited(&target("busy")));
        assert_eq!(outages.wait(&target("busy"), Instant::now()).await, Ok(()));
    }

    #[test]
    fn p40_a_key_that_is_refused_is_told_from_one_that_has_worked() {
        let (outages, target) = (Outages::default(), target("m"));
        outages.failed(&target, missed("status 401", true));
        assert!(outages.away().is_some_and(|away| away.is_refused && !away.has_answered));
        outages.through(&target);
        outages.failed(&target, missed("status 401", true));
        assert!(outages.away().is_some_and(|away| away.is_refused && away.has_answered));
    }
}
