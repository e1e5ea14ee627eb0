//! A request of a memory system that was let through: what it has taken of pace and money, what it came to, and how it is booked.

use std::sync::Arc;

use async_trait::async_trait;
use bench_meter::{Admitted, Ended, Faults, Outcome, PromptTokens, StoredReply, Tokens, Upstream};
use bench_models::{
    budget::Reservation, caller::Bookkeeper as _, classify, gate::Gate, limiter::Seen, pace::Pace, prices, tokens,
};
use bench_proto::{
    call::{CallOutcome, CallRecord, Phase},
    ids::Sha256Hash,
    metered::{MeteredEnd, MeteredKey, Service},
    money::PicoUsd,
    price::{ModelPrice, TokenCounts},
    usage_cap::UsageUnit,
};
use tokio::sync::oneshot;
use tracing::warn;
use uuid::Uuid;

use super::{
    outages::Target,
    run::MeteredRun,
    told::{Answered, shown},
};

/// Code of what is said of a model that has answered in the place of another one.
const OTHER_MODEL: &str = "other_model";

/// A request that may be sent, and what it has reserved.
pub(super) struct MeteredCall {
    pub(super) run: Arc<MeteredRun>,
    pub(super) key: MeteredKey,
    pub(super) call_key: Sha256Hash,
    pub(super) model: String,
    /// Whose prices hold.
    pub(super) provider: String,
    pub(super) upstream: Upstream,
    pub(super) prompt_tokens: PromptTokens,
    pub(super) max_reply: u64,
    pub(super) price: Option<ModelPrice>,
    pub(super) is_kept: bool,
    pub(super) stored: Option<StoredReply>,
    pub(super) reservation: Option<Reservation>,
    pub(super) taken: Option<Taken>,
    pub(super) place: Option<oneshot::Sender<Seen>>,
    pub(super) gate: Arc<Gate>,
    pub(super) target: Target,
}

/// How an attempt ended that no provider can charge for; `None` where one may.
fn free_end(outcome: &Outcome) -> Option<MeteredEnd> {
    match &outcome.ended {
        Ended::Stored => Some(MeteredEnd::Stored),
        Ended::NotReached(_) => Some(MeteredEnd::NotReached),
        // whoever answers in the place of the provider charges nothing
        Ended::Page => Some(MeteredEnd::Refused(outcome.status)),
        Ended::Refused(status) if outcome.failed_on_purpose() => Some(MeteredEnd::FailedOnPurpose(*status)),
        Ended::Refused(status) if !classify::may_be_billed(*status) => Some(MeteredEnd::Refused(*status)),
        _ => None,
    }
}

/// Whether what became of a request says anything of calls that cost: lists of models and counts of tokens have limits, rights and
/// faults of their own, and what the meter fails on purpose never met the provider.
const fn teaches(service: Service, outcome: &Outcome) -> bool {
    !matches!(service, Service::Free) && !outcome.failed_on_purpose()
}

/// Tokens that a request has taken of the pace. When it is dropped, what it has not used goes to other calls.
pub(super) struct Taken {
    pace: Arc<dyn Pace>,
    prompt: u64,
    reply: u64,
    /// The provider's limit counts the reply that came, or the longest one is the meter's own guess.
    returns_reply: bool,
    unused: u64,
}

impl Taken {
    pub(super) fn new(pace: &Arc<dyn Pace>, (prompt, reply): (u64, u64), returns_reply: bool) -> Self {
        Self { pace: Arc::clone(pace), prompt, reply, returns_reply, unused: prompt.saturating_add(reply) }
    }

    /// It leaves: nobody knows yet what it uses.
    fn sent(&mut self) {
        self.unused = 0;
    }

    /// What it has used is known, where it is.
    fn settle(mut self, outcome: &Outcome) {
        match (&outcome.ended, outcome.usage) {
            (Ended::NotReached(_), _) => self.unused = self.prompt.saturating_add(self.reply),
            (Ended::Complete, Some(used)) if !outcome.implausible => {
                let of_reply = if self.returns_reply { self.reply.saturating_sub(used.completion) } else { 0 };
                self.unused = self.prompt.saturating_sub(used.prompt).saturating_add(of_reply);
            }
            _ => {}
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.unused > 0 {
            self.pace.settled(self.unused);
        }
    }
}

/// What an attempt came to.
struct Spent {
    end: MeteredEnd,
    outcome: CallOutcome,
    tokens: Tokens,
    cost: PicoUsd,
}

impl MeteredCall {
    /// What the run's cap counts in the place of dollars.
    fn counts(&self) -> Option<UsageUnit> {
        self.run.limits.max_usage.map(|cap| cap.unit)
    }

    /// What the run's cap counts of the request at most; `None` where nothing is to be reserved.
    pub(super) fn to_reserve(&self, prompt_tokens: u64) -> Option<PicoUsd> {
        let most = tokens::with_margin(prompt_tokens).saturating_add(self.max_reply);
        let usage = self.counts().map(|unit| PicoUsd(unit.of_attempt(most)));
        usage.or_else(|| self.price.is_some().then(|| self.worst(prompt_tokens, &Answered::AsAsked)))
    }

    /// Prompt × 1.05 and the longest reply, as for the runner's own calls.
    fn worst(&self, prompt_tokens: u64, answered: &Answered) -> PicoUsd {
        let prompt = tokens::with_margin(prompt_tokens);
        answered.cost(self.price.as_ref(), |price| price.worst(prompt, self.max_reply, None, true))
    }

    /// Whose price the reply has, by the model that it names.
    fn answered_by(&self, outcome: &Outcome) -> Answered {
        // what costs nothing, or was not sent, has no price
        if !self.key_costs() || free_end(outcome).is_some() {
            return Answered::AsAsked;
        }
        let price_of = |model: &str| prices::price_at(&self.provider, model, &self.run.limits);
        Answered::of(&self.model, &outcome.model, price_of)
    }

    /// Says once, for each pair of models, that what a reply costs is a guess: many servers name models in a way of their own, and a
    /// few have another one answer.
    fn say_unpriced(&self, outcome: &Outcome, answered: &Answered) {
        if *answered != Answered::Unpriced || self.price.is_none() {
            return;
        }
        let (asked, told, account) = (shown(&self.model), shown(&outcome.model), self.target.account.as_str());
        if self.run.unpriced.is_new(&asked, &told) {
            warn!(
                code = OTHER_MODEL,
                account,
                asked = asked.as_str(),
                told = told.as_str(),
                "the memory system asked account {account} for {asked}, and {told} has answered, whose price is not known: it is booked at the price of {asked}; if it is another model, give its price with --price {told}=INPUT,OUTPUT"
            );
        }
    }

    fn spent(&self, outcome: &Outcome, answered: &Answered) -> Spent {
        let nothing =
            |end| Spent { end, outcome: CallOutcome::Rejected, tokens: Tokens::default(), cost: PicoUsd::ZERO };
        if let Some(end) = free_end(outcome) {
            return nothing(end);
        }
        match (&outcome.ended, outcome.usage) {
            (Ended::Complete, Some(tokens)) if !outcome.implausible => self.answered(outcome, tokens, answered),
            (Ended::Complete, None) if !self.key_costs() => nothing(MeteredEnd::Answered { counted_here: false }),
            (_, seen) => {
                let seen = seen.unwrap_or_default();
                let prompt = seen.prompt.max(self.prompt_tokens.count());
                let tokens = Tokens { prompt, completion: seen.completion.max(self.max_reply), ..Tokens::default() };
                Spent {
                    end: MeteredEnd::Cut,
                    outcome: CallOutcome::Uncertain,
                    tokens,
                    cost: self.worst(prompt, answered),
                }
            }
        }
    }

    fn key_costs(&self) -> bool {
        self.key.service != Service::Free
    }

    fn answered(&self, outcome: &Outcome, tokens: Tokens, answered: &Answered) -> Spent {
        let counts = TokenCounts {
            prompt: tokens.prompt,
            cached: tokens.cached,
            cache_write: tokens.cache_write,
            cache_write_1h: tokens.cache_write_1h,
            completion: tokens.completion,
        };
        let tier = outcome.service_tier.as_deref();
        let cost = answered.cost(self.price.as_ref(), |price| price.cost(&counts, tier));
        let kept = self.is_kept && outcome.reply.as_ref().is_some_and(|reply| std::str::from_utf8(reply).is_ok());
        Spent {
            end: MeteredEnd::Answered { counted_here: outcome.counted_here },
            // only what is kept may be served again
            outcome: if kept { CallOutcome::Accepted } else { CallOutcome::Rejected },
            tokens,
            cost,
        }
    }

    /// What the run's cap counts of an attempt.
    fn booked(&self, spent: &Spent) -> PicoUsd {
        let tokens = spent.tokens.prompt.saturating_add(spent.tokens.completion);
        match (self.counts(), &spent.end) {
            (Some(unit), MeteredEnd::Answered { .. } | MeteredEnd::Cut) => PicoUsd(unit.of_attempt(tokens)),
            (Some(_), _) => PicoUsd::ZERO,
            (None, _) => spent.cost,
        }
    }

    fn record(&mut self, outcome: &Outcome, spent: &Spent) -> CallRecord {
        let booked = self.booked(spent);
        let attempt_id = match self.reservation.take() {
            // what costs nothing gives its reservation to another attempt, which has its id then
            Some(reservation) if booked == PicoUsd::ZERO && spent.outcome != CallOutcome::Uncertain => {
                reservation.free();
                Uuid::now_v7()
            }
            Some(reservation) => {
                let id = reservation.id();
                reservation.settle(booked);
                id
            }
            None => Uuid::now_v7(),
        };
        let reply = outcome.reply.as_ref().filter(|_| spent.outcome == CallOutcome::Accepted);
        let model = if outcome.model.is_empty() { &self.model } else { &outcome.model };
        CallRecord {
            attempt_id,
            key: self.call_key,
            phase: self.phase(),
            outcome: spent.outcome,
            reply: reply.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default(),
            finish: spent.end.to_text(),
            model: model.clone(),
            prompt_tokens: spent.tokens.prompt,
            completion_tokens: spent.tokens.completion,
            cost: spent.cost,
            duration_us: u64::try_from(outcome.latency.as_micros()).unwrap_or(u64::MAX),
        }
    }

    fn phase(&self) -> Phase {
        self.key.stage.phase()
    }

    /// Tells the allowance what the call has shown.
    fn teach(&mut self, outcome: &Outcome) {
        if let Some(taken) = self.taken.take() {
            taken.settle(outcome);
        }
        if !teaches(self.key.service, outcome) {
            return;
        }
        if matches!(outcome.status, 429 | 503)
            && let Some(wait) = outcome.retry_after
        {
            self.gate.block.hold(wait);
        }
        self.run.outages.learn(&self.target, self.call_key, outcome);
        let Some(place) = self.place.take() else { return };
        let seen = match (&outcome.ended, outcome.status) {
            (Ended::Complete, _) => {
                Seen::Accepted { latency_us: u64::try_from(outcome.latency.as_micros()).unwrap_or(u64::MAX) }
            }
            (_, 429) => Seen::RateLimited(bench_models::PaceHint::default()),
            (_, 503 | 529) => Seen::Overloaded,
            _ => Seen::Failed,
        };
        // the task that holds the place may have ended with the process
        let _ = place.send(seen);
    }
}

#[async_trait]
impl Admitted for MeteredCall {
    fn stored(&mut self) -> Option<StoredReply> {
        self.stored.take()
    }

    fn faults(&self) -> Faults {
        self.run.faults.clone()
    }

    fn upstream(&self) -> Upstream {
        self.upstream.clone()
    }

    fn sent(&mut self) {
        if let Some(reservation) = &mut self.reservation {
            reservation.sent();
        }
        if let Some(taken) = &mut self.taken {
            taken.sent();
        }
    }

    async fn settle(mut self: Box<Self>, outcome: Outcome) {
        self.teach(&outcome);
        let answered = self.answered_by(&outcome);
        self.say_unpriced(&outcome, &answered);
        let spent = self.spent(&outcome, &answered);
        let record = self.record(&outcome, &spent);
        let (run, task) = (Arc::clone(&self.run), self.key.task());
        if let Err(failure) = run.ledger.put(task, vec![record]).await {
            warn!(code = failure.code.as_str(), "a call of the memory system could not be booked: {}", failure.message);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use bench_meter::FaultKind;
    use bench_models::pace::{Lane, Paced};

    use super::*;
    use crate::metering::{outages::Outages, run::LONGEST_REPLY};

    fn outcome(ended: Ended, fault: Option<FaultKind>, usage: Option<Tokens>) -> Outcome {
        Outcome {
            status: if let Ended::Refused(status) = ended { status } else { 200 },
            usage,
            counted_here: false,
            implausible: false,
            latency: Duration::from_millis(5),
            to_first_byte: None,
            ended,
            retry_after: None,
            model: String::new(),
            service_tier: None,
            reply: None,
            error: None,
            fault,
            client_left: false,
        }
    }

    #[test]
    fn p39_a_request_that_is_slow_on_purpose_meets_the_provider_as_it_is() {
        let target = Target { account: "openai".to_owned(), model: "m".to_owned(), embeds: false };
        let away = |fault| {
            let outages = Outages::default();
            for _ in 0..3 {
                outages.learn(&target, Sha256Hash::of(b"x"), &outcome(Ended::Refused(503), Some(fault), None));
            }
            outages.away().is_some()
        };
        assert!(away(FaultKind::Slow) && !away(FaultKind::Status(503)));
        let end = |status, fault| free_end(&outcome(Ended::Refused(status), fault, None));
        assert_eq!(end(500, Some(FaultKind::Status(500))), Some(MeteredEnd::FailedOnPurpose(500)));
        assert_eq!(end(500, Some(FaultKind::Slow)), end(500, None), "the provider itself has failed");
        assert_eq!(end(400, Some(FaultKind::Slow)), Some(MeteredEnd::Refused(400)));
    }

    #[test]
    fn p39_what_costs_nothing_says_nothing_of_calls_that_do() {
        let answered = outcome(Ended::Complete, None, None);
        let failed_on_purpose = outcome(Ended::Refused(503), Some(FaultKind::Status(503)), None);
        for service in Service::ALL {
            let costs = service != Service::Free;
            for status in [403, 429, 503] {
                assert_eq!(teaches(service, &outcome(Ended::Refused(status), None, None)), costs, "{service:?}");
            }
            assert_eq!(teaches(service, &answered), costs, "{service:?}");
            assert!(!teaches(service, &failed_on_purpose));
        }
    }

    #[test]
    fn p39_a_web_page_in_the_place_of_a_reply_costs_nothing_and_says_that_the_provider_is_away() {
        let (target, outages) =
            (Target { account: "openai".to_owned(), model: "m".to_owned(), embeds: false }, Outages::default());
        let page = outcome(Ended::Page, None, None);
        assert_eq!(free_end(&page), Some(MeteredEnd::Refused(200)));
        assert_eq!(free_end(&outcome(Ended::NotAReply, None, None)), None, "another reply may have been billed");
        outages.learn(&target, Sha256Hash::of(b"x"), &page);
        assert!(outages.away().is_some_and(|away| away.reason.contains("web page")));
    }

    /// Notes what is given back.
    #[derive(Default)]
    struct Noted(Mutex<u64>);

    #[async_trait]
    impl Pace for Noted {
        async fn acquire(&self, _: Lane, _: u64, _: Duration) -> Paced {
            Paced::Go { waited: Duration::ZERO }
        }

        fn counts_tokens(&self) -> bool {
            true
        }

        fn settled(&self, unused_tokens: u64) {
            *self.0.lock().expect("whole") += unused_tokens;
        }
    }

    #[test]
    fn p24_tokens_of_the_pace_that_a_call_has_not_used_go_to_others() {
        let used = Some(Tokens { prompt: 20, completion: 10, ..Tokens::default() });
        let back = |returns_reply, outcome: Option<Outcome>| {
            let noted = Arc::new(Noted::default());
            let pace: Arc<dyn Pace> = Arc::clone(&noted) as Arc<dyn Pace>;
            let mut taken = Taken::new(&pace, (25, LONGEST_REPLY), returns_reply);
            if let Some(outcome) = outcome {
                taken.sent();
                taken.settle(&outcome);
            } else {
                drop(taken);
            }
            *noted.0.lock().expect("whole")
        };
        let all = 25 + LONGEST_REPLY;
        assert_eq!(back(true, Some(outcome(Ended::Complete, None, used))), all - 30);
        assert_eq!(
            back(false, Some(outcome(Ended::Complete, None, used))),
            5,
            "the provider counts what was asked for"
        );
        assert_eq!(back(true, Some(outcome(Ended::CutByClient, None, used))), 0, "nobody knows");
        let not_reached = Ended::NotReached("refused".to_owned());
        assert_eq!(
            (back(false, Some(outcome(not_reached, None, None))), back(false, None)),
            (all, all),
            "nothing left"
        );
    }
}
