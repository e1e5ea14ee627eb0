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
use bench_models::classify;
use bench_proto::{
    failure::{Failure, code},
    ids::Sha256Hash,
};
use tokio::sync::Notify;
use tracing::{info, warn};

use super::blame::{Blame, SAME_REQUEST};

/// Code of what is said of a provider that is away.
pub(crate) const PROVIDER_AWAY: &str = "provider_away";
/// Failures on the way, with no reply between them, after which requests are held.
const HELD_AFTER: u32 = 3;
/// For so long a failure says that a provider is away, unless another follows.
pub(super) const RECENT: Duration = Duration::from_secs(30);
/// Pauses between two tries while a provider is away: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// What is away together: an account, a model, and whether it embeds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) account: String,
    pub(crate) model: String,
    pub(crate) embeds: bool,
    /// Its account names deployments of its own.
    pub(crate) is_azure: bool,
}

/// What a provider refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The key, or what it may do: another process may have another one.
    Key,
    /// The model, which it does not know.
    Model,
    /// The deployment, of which another process's account may have one.
    Deployment,
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
    /// It has failed several times, and its account has answered for no other model meanwhile.
    pub(crate) is_settled: bool,
    /// What it said last is a refusal of this.
    pub(crate) refused: Option<Refused>,
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
    /// Which requests fail by themselves: an answer to another one does not clear them.
    blame: Blame<Target>,
}

/// Failures in a row.
struct Failing {
    begun: Instant,
    last: Instant,
    failures: u32,
    reason: String,
    refused: Option<Refused>,
    /// The account has answered for another model since they began.
    others_answer: bool,
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
    /// It refused this.
    pub(crate) refused: Option<Refused>,
    /// The request: the fault may be its own.
    pub(crate) request: Sha256Hash,
    /// It was answered with 500, which few gateways say in the place of a provider that is away.
    pub(crate) is_500: bool,
    /// When it was sent.
    pub(crate) sent: Instant,
}

impl Outages {
    fn state(&self) -> MutexGuard<'_, State> {
        // every change is complete when the lock is dropped
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns from what became of a request whether its provider was there. Returns what no further call of the account can avoid.
    pub(crate) fn learn(&self, target: &Target, request: Sha256Hash, outcome: &Outcome) -> Option<Failure> {
        // the provider was not asked
        if outcome.failed_on_purpose() {
            return None;
        }
        let now = Instant::now();
        let sent = now.checked_sub(outcome.latency).unwrap_or(now);
        let missed = |reason: &str| Missed { reason: reason.to_owned(), refused: None, request, is_500: false, sent };
        match &outcome.ended {
            Ended::Complete => self.through(target, request, sent),
            Ended::NotReached(cause) | Ended::CutByProvider(cause) => self.failed(target, missed(cause)),
            Ended::NotAReply => self.failed(target, missed("what came is no reply")),
            Ended::Page => self.failed(target, missed("a web page came in the place of a reply")),
            Ended::Refused(status) => {
                let missed = missed(&format!("status {status}"));
                return self.refused(target, *status, outcome.error.as_deref().unwrap_or_default(), missed);
            }
            // of the client, or of nobody: nothing is learned
            Ended::Stored | Ended::CutByClient => {}
        }
        None
    }

    /// An answer other than success, told apart as those to the runner's own calls are.
    fn refused(&self, target: &Target, status: u16, error: &[u8], missed: Missed) -> Option<Failure> {
        let said = classify::response(status, error, None, None).failure;
        let (reason, refused) = match said.code.as_str() {
            // none of the account's calls can go on
            code::INSUFFICIENT_QUOTA => {
                let Target { account, model, .. } = target;
                let words = said.message;
                let message =
                    format!("account {account} does not answer for {model}, which the memory system calls: {words}");
                return Some(Failure::terminal(code::INSUFFICIENT_QUOTA, message));
            }
            code::RATE_LIMITED => {
                self.limited(target, missed.sent);
                return None;
            }
            code::INVALID_API_KEY | code::FORBIDDEN => (said.message, Some(Refused::Key)),
            code::MODEL_NOT_FOUND if target.is_azure => (said.message, Some(Refused::Deployment)),
            code::MODEL_NOT_FOUND => (said.message, Some(Refused::Model)),
            _ if status == 408 || status >= 500 => (missed.reason, None),
            // of the request: nothing is learned
            _ => return None,
        };
        self.failed(target, Missed { reason, refused, is_500: status == 500, ..missed });
        None
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

    /// A reply has come to a request that was sent then.
    fn through(&self, target: &Target, request: Sha256Hash, sent: Instant) {
        let mut state = self.state();
        if !state.answered.contains(target) {
            state.answered.insert(target.clone());
        }
        state.blame.answered(target, request, sent);
        let ended = state.failing.remove(target);
        for (other, failing) in &mut state.failing {
            failing.others_answer |= other.account == target.account && other.model != target.model;
        }
        drop(state);
        if let Some(failing) = ended {
            self.changed.notify_waiters();
            if failing.failures >= HELD_AFTER {
                info!(code = PROVIDER_AWAY, "account {} answers again for {}", target.account, target.model);
            }
        }
    }

    /// A request has failed on the way, or was refused.
    fn failed(&self, target: &Target, missed: Missed) {
        let mut state = self.state();
        let Missed { reason, refused, request, is_500, sent } = missed;
        if refused.is_none() {
            state.blame.failed(target, request, sent);
            // others are answered: nobody is held for it, and what the system fails by it is its own
            if state.blame.is_its_own(target, request) {
                return;
            }
        }
        let failing = state.failing(target, sent);
        failing.failures += 1;
        let only = is_500.then_some(request);
        failing.only = only.filter(|only| failing.failures == 1 || failing.only == Some(*only));
        (failing.reason, failing.refused) = (reason, refused);
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
    fn limited(&self, target: &Target, sent: Instant) {
        let mut state = self.state();
        let failing = state.failing(target, sent);
        "too many requests (429)".clone_into(&mut failing.reason);
        failing.refused = None;
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
    /// The failures of a target to which that of a request is added now. Old ones are forgotten: what lies between them and the sending
    /// of the request is not known.
    fn failing(&mut self, target: &Target, sent: Instant) -> &mut Failing {
        let now = Instant::now();
        let failing = self.failing.entry(target.clone()).or_insert_with(|| Failing::new(now));
        if !failing.is_recent(sent) {
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
            is_settled: failing.is_some_and(|failing| failing.failures >= HELD_AFTER && !failing.others_answer),
            refused: failing.and_then(|failing| failing.refused),
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
            refused: None,
            others_answer: false,
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
        Target { account: "openai".to_owned(), model: model.to_owned(), embeds: false, is_azure: false }
    }

    fn request(text: &str) -> Sha256Hash {
        Sha256Hash::of_bytes(text.as_bytes())
    }

    fn missed(reason: &str) -> Missed {
        let is_500 = reason == "status 500";
        Missed { reason: reason.to_owned(), refused: None, request: request("a"), is_500, sent: Instant::now() }
    }

    fn refused(what: Refused) -> Missed {
        Missed { refused: Some(what), ..missed("the provider answered 401") }
    }

    /// An answer to another request.
    fn through(outages: &Outages, target: &Target) {
        outages.through(target, request("answered"), Instant::now());
    }

    #[test]
    fn a_request_that_a_provider_cannot_take_does_not_make_it_be_away() {
        let (outages, target) = (Outages::default(), target("m"));
        let of = |text: &str| Missed { request: request(text), ..missed("status 500") };
        (0..SAME_REQUEST).for_each(|_| outages.failed(&target, of("poison")));
        assert!(outages.away().is_some(), "nobody knows that it takes others");
        through(&outages, &target);
        (1..SAME_REQUEST).for_each(|_| outages.failed(&target, of("poison")));
        assert!(outages.away().is_some(), "it may be away for a while");
        outages.failed(&target, of("poison"));
        assert_eq!(outages.away(), None);
        // another request, or no answer at all, says that it is the provider
        for other in [of("other"), missed("no connection")] {
            through(&outages, &target);
            (0..SAME_REQUEST).for_each(|_| outages.failed(&target, of("poison")));
            outages.failed(&target, other);
            outages.failed(&target, of("poison"));
            assert!(outages.away().is_some());
        }
    }

    /// A memory system that makes one call that works and then one that never does, whatever the provider says to it.
    #[tokio::test]
    async fn p39_a_request_that_always_fails_is_its_own_fault_although_others_are_answered_in_between() {
        for reason in ["status 500", "status 503", "status 504", "the connection broke", "what came is no reply"] {
            let (outages, target, begun) = (Outages::default(), target("m"), Instant::now());
            let at = |ms: u64| begun + Duration::from_millis(ms);
            let poison = |ms: u64| Missed { request: request("poison"), sent: at(ms), ..missed(reason) };
            for round in 0..u64::from(SAME_REQUEST) {
                outages.through(&target, request("answered"), at(10 * round));
                outages.failed(&target, poison(10 * round + 1));
                assert!(outages.away().is_some(), "{reason}, {round}");
            }
            outages.through(&target, request("answered"), at(100));
            (101..110).for_each(|ms| outages.failed(&target, poison(ms)));
            assert_eq!(outages.away(), None, "{reason}: what the system fails by it counts");
            assert_eq!(outages.wait(&target, Instant::now()).await, Ok(()), "{reason}: nobody is held for it");
            outages.failed(&target, Missed { request: request("other"), sent: at(110), ..missed(reason) });
            assert!(outages.away().is_some(), "{reason}: another one fails too");
        }
    }

    #[test]
    fn p39_an_outage_between_answers_is_nobodys_fault_however_often_a_request_fails_in_it() {
        let (outages, target, begun) = (Outages::default(), target("m"), Instant::now());
        let at = |ms: u64| begun + Duration::from_millis(ms);
        outages.through(&target, request("answered"), at(0));
        for ms in 1..100_u64 {
            let text = if ms.is_multiple_of(2) { "one" } else { "other" };
            outages.failed(&target, Missed { request: request(text), sent: at(ms), ..missed("status 503") });
        }
        assert!(outages.away().is_some());
        outages.through(&target, request("one"), at(200));
        outages.failed(&target, Missed { request: request("other"), sent: at(201), ..missed("status 503") });
        assert!(outages.away().is_some(), "the outage has counted once");
    }

    #[test]
    fn p39_failures_that_take_long_are_one_outage() {
        let (outages, target) = (Outages::default(), target("m"));
        let ago = |seconds: u64| {
            Instant::now().checked_sub(Duration::from_secs(seconds)).expect("the machine has been up for a minute")
        };
        let fails_after = |seconds: u64| outages.failed(&target, Missed { sent: ago(seconds), ..missed("status 504") });
        let passes = |seconds: u64| {
            let mut state = outages.state();
            let failing = state.failing.get_mut(&target).expect("fails");
            (failing.begun, failing.last) = (failing.begun - Duration::from_secs(seconds), ago(seconds));
        };
        fails_after(32);
        // it is put off for two seconds, and the next call takes as long again
        passes(34);
        fails_after(32);
        let away = outages.away().expect("away");
        assert!(away.since >= Duration::from_secs(34), "{away:?}");
        // nobody has asked for a while: what was then is not known
        passes(34);
        fails_after(1);
        assert!(outages.away().is_some_and(|away| away.since < Duration::from_secs(10)));
    }

    #[tokio::test]
    async fn p39_requests_are_held_after_three_failures_and_one_finds_out() {
        let (outages, target) = (Outages::default(), target("m"));
        assert_eq!(outages.away(), None);
        outages.failed(&target, missed("status 503"));
        assert!(
            outages.away().is_some_and(|away| away.reason.contains("status 503")),
            "what failed is not the system's"
        );
        let at_once = || Instant::now();
        assert_eq!(outages.wait(&target, at_once()).await, Ok(()), "one failure holds nobody");
        outages.failed(&target, missed("status 503"));
        outages.failed(&target, missed("status 503"));
        assert!(outages.wait(&target, at_once()).await.is_err());
        let begun = Instant::now();
        let wait = || outages.wait(&target, begun + Duration::from_millis(1_500));
        let (one, other) = tokio::join!(wait(), wait());
        assert!(one.is_ok() != other.is_ok(), "one goes, the other waits for what it finds: {one:?}, {other:?}");
        through(&outages, &target);
        assert_eq!(outages.wait(&target, at_once()).await, Ok(()));
        assert_eq!(outages.away(), None);
    }

    #[tokio::test]
    async fn p39_whoever_is_held_goes_as_soon_as_a_reply_has_come() {
        let (outages, target) = (Outages::default(), target("m"));
        (0..HELD_AFTER).for_each(|_| outages.failed(&target, missed("no connection")));
        let begun = Instant::now();
        let reply = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            through(&outages, &target);
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
        (0..HELD_AFTER).for_each(|_| outages.failed(&target("gone"), missed("status 500")));
        assert_eq!(outages.wait(&target("there"), Instant::now()).await, Ok(()));
        (0..9).for_each(|_| outages.limited(&target("busy"), Instant::now()));
        assert_eq!(outages.wait(&target("busy"), Instant::now()).await, Ok(()));
    }

    #[test]
    fn p40_a_model_that_a_system_only_tries_is_told_from_one_that_it_cannot_do_without() {
        let (outages, target) = (Outages::default(), target("gpt-9"));
        let is_settled = || outages.away().expect("away").is_settled;
        let fails = || outages.failed(&target, refused(Refused::Model));
        fails();
        assert!(!is_settled(), "once may be a try");
        (1..HELD_AFTER).for_each(|_| fails());
        assert!(is_settled());
        through(&outages, &Target { account: "other".to_owned(), ..target.clone() });
        assert!(is_settled(), "another account says nothing");
        through(&outages, &Target { model: "gpt-4o".to_owned(), ..target.clone() });
        fails();
        assert!(!is_settled(), "it goes on with another one");
    }

    #[test]
    fn p40_a_deployment_that_is_missing_may_be_there_for_others() {
        let outages = Outages::default();
        let target = Target { is_azure: true, ..target("mine") };
        let error = br#"{"error":{"code":"DeploymentNotFound","message":"The API deployment does not exist"}}"#;
        assert_eq!(outages.refused(&target, 404, error, missed("status 404")), None);
        assert_eq!(outages.away().and_then(|away| away.refused), Some(Refused::Deployment));
    }

    #[test]
    fn p40_a_key_that_is_refused_is_told_from_one_that_has_worked() {
        let (outages, target) = (Outages::default(), target("m"));
        outages.failed(&target, refused(Refused::Key));
        assert!(outages.away().is_some_and(|away| away.refused == Some(Refused::Key) && !away.has_answered));
        through(&outages, &target);
        outages.failed(&target, refused(Refused::Key));
        assert!(outages.away().is_some_and(|away| away.refused == Some(Refused::Key) && away.has_answered));
    }
}
