//! A request of a memory system that was let through: what it has taken of pace and money, what it came to, and how it is booked.

use std::sync::Arc;

use async_trait::async_trait;
use bench_meter::{Admitted, Ended, Faults, Outcome, PromptTokens, StoredReply, Tokens, Upstream};
use bench_models::{
    budget::Reservation, caller::Bookkeeper as _, classify, gate::Gate, limiter::Seen, pace::Pace, prices,
    stop::StopCause, tokens,
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
    leased::Looking,
    measures::Measured,
    outages::Target,
    run::MeteredRun,
    told::{Answered, shown},
};

/// Code of what is said of a model that has answered in the place of another one.
const OTHER_MODEL: &str = "other_model";

/// A request that may be sent, and what it has reserved.
pub(super) struct MeteredCall {
    pub(super) run: Arc<MeteredRun>,
    /// What it is for, as far as that is known when it comes: whose cap and turn it takes.
    pub(super) key: MeteredKey,
    /// Finds out what it is for, where another process does that.
    pub(super) looking: Option<Looking>,
    pub(super) call_key: Sha256Hash,
    pub(super) model: String,
    /// Whose prices hold.
    pub(super) provider: String,
    pub(super) upstream: Upstream,
    pub(super) prompt_tokens: PromptTokens,
    pub(super) terms: Terms,
    pub(super) is_kept: bool,
    pub(super) stored: Option<StoredReply>,
    pub(super) reservation: Option<Reservation>,
    pub(super) taken: Option<Taken>,
    pub(super) place: Option<oneshot::Sender<Seen>>,
    pub(super) gate: Arc<Gate>,
    pub(super) target: Target,
}

/// What an attempt may cost.
pub(super) struct Terms {
    /// Of the model that is asked for.
    pub(super) price: Option<ModelPrice>,
    pub(super) max_reply: u64,
    /// The service tier that is asked for.
    pub(super) tier: Option<String>,
    /// Of Azure, which charges for what it has processed, whatever it answers.
    pub(super) is_azure: bool,
}

impl Terms {
    /// How an attempt ended that its provider cannot charge for; `None` where it may.
    fn free_end(&self, outcome: &Outcome) -> Option<MeteredEnd> {
        match &outcome.ended {
            Ended::Stored => Some(MeteredEnd::Stored),
            Ended::NotReached(_) => Some(MeteredEnd::NotReached),
            // whoever answers in the place of the provider charges nothing
            Ended::Page => Some(MeteredEnd::Refused(outcome.status)),
            Ended::Refused(status) if outcome.failed_on_purpose() => Some(MeteredEnd::FailedOnPurpose(*status)),
            Ended::Refused(status) => {
                let said = outcome.error.as_deref().unwrap_or_default();
                let may_cost = classify::may_be_billed(*status, said, self.is_azure);
                (!may_cost).then_some(MeteredEnd::Refused(*status))
            }
            _ => None,
        }
    }

    /// Prompt × 1.05 and the longest reply, as for the runner's own calls.
    fn worst(&self, prompt_tokens: u64, answered: &Answered) -> PicoUsd {
        self.most(tokens::with_margin(prompt_tokens), self.max_reply, answered)
    }

    /// The most that so many tokens can cost. Another tier than the one that is asked for may serve it.
    fn most(&self, prompt: u64, completion: u64, answered: &Answered) -> PicoUsd {
        answered.cost(self.price.as_ref(), |price| {
            let of = |tier| price.worst(prompt, completion, tier, true);
            of(self.tier.as_deref()).max(of(None))
        })
    }

    /// What so many tokens cost; `served` is the tier that the reply names.
    fn cost(&self, tokens: &Tokens, served: Option<&str>, answered: &Answered) -> PicoUsd {
        let counts = TokenCounts {
            prompt: tokens.prompt,
            cached: tokens.cached,
            cache_write: tokens.cache_write,
            cache_write_1h: tokens.cache_write_1h,
            completion: tokens.completion,
        };
        let tier = served.or(self.tier.as_deref());
        answered.cost(self.price.as_ref(), |price| price.cost(&counts, tier))
    }

    /// What a whole reply costs. Where the provider's count cannot be true nobody knows what it will charge: the worst case, or what it
    /// has told where that is more, as far as it may be.
    fn of_reply(&self, outcome: &Outcome, tokens: &Tokens, answered: &Answered) -> PicoUsd {
        let cost = self.cost(tokens, outcome.service_tier.as_deref(), answered);
        let Some(told) = outcome.doubted else { return cost };
        let told = self.most(told.prompt, told.completion, answered);
        cost.max(self.worst(tokens.prompt, answered)).max(told)
    }

    /// The same for a cap in tokens, which counts those that are booked.
    fn tokens_of_reply(&self, outcome: &Outcome, tokens: Tokens) -> Tokens {
        let Some(told) = outcome.doubted else { return tokens };
        Tokens {
            prompt: tokens::with_margin(tokens.prompt).max(told.prompt),
            completion: tokens.completion.max(self.max_reply).max(told.completion),
            ..tokens
        }
    }
}

/// How a request for what costs nothing has ended, where its provider has answered it, with whatever.
fn end_without_cost(outcome: &Outcome) -> Option<MeteredEnd> {
    match outcome.ended {
        Ended::Complete => Some(MeteredEnd::Answered { counted_here: false }),
        Ended::Refused(status) => Some(MeteredEnd::Refused(status)),
        _ => None,
    }
}

/// Tokens of a reply that came whole: the provider's count, or the meter's own in its place.
fn of_whole_reply(outcome: &Outcome) -> Option<Tokens> {
    outcome.usage.filter(|_| outcome.ended == Ended::Complete)
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

    /// What it has used is known, where it is. Returns the tokens that it keeps.
    fn settle(mut self, outcome: &Outcome) -> u64 {
        match (&outcome.ended, outcome.usage) {
            (Ended::NotReached(_), _) => self.unused = self.prompt.saturating_add(self.reply),
            (Ended::Complete, Some(used)) if outcome.doubted.is_none() => {
                let of_reply = if self.returns_reply { self.reply.saturating_sub(used.completion) } else { 0 };
                self.unused = self.prompt.saturating_sub(used.prompt).saturating_add(of_reply);
            }
            _ => {}
        }
        self.prompt.saturating_add(self.reply).saturating_sub(self.unused)
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
        let most = tokens::with_margin(prompt_tokens).saturating_add(self.terms.max_reply);
        let usage = self.counts().map(|unit| PicoUsd(unit.of_attempt(most)));
        let worst = || self.terms.worst(prompt_tokens, &Answered::AsAsked);
        usage.or_else(|| self.terms.price.is_some().then(worst))
    }

    /// Whose price the reply has, by the model that it names.
    fn answered_by(&self, outcome: &Outcome) -> Answered {
        // what costs nothing, or was not sent, has no price
        if !self.key_costs() || self.terms.free_end(outcome).is_some() {
            return Answered::AsAsked;
        }
        let price_of = |model: &str| prices::price_at(&self.provider, model, &self.run.limits);
        Answered::from_reply(&self.model, &outcome.model, price_of)
    }

    /// Says once, for each pair of models, that what a reply costs is a guess: many servers name models in a way of their own, and a
    /// few have another one answer.
    fn say_unpriced(&self, outcome: &Outcome, answered: &Answered) {
        if *answered != Answered::Unpriced || self.terms.price.is_none() {
            return;
        }
        let (asked, told, account) = (shown(&self.model), shown(&outcome.model), self.target.account.as_str());
        if self.run.unpriced.is_new(&asked, &told) {
            warn!(
                code = OTHER_MODEL,
                account,
                asked = asked.as_str(),
                told = told.as_str(),
                "the memory system asked account {account} for {asked}, and {told} has answered, whose price is not known: it is booked at the price of {asked}; if it is another model, submit with --price {told}=IN,OUT (dollars per million tokens)"
            );
        }
    }

    fn spent(&self, outcome: &Outcome, answered: &Answered) -> Spent {
        let nothing =
            |end| Spent { end, outcome: CallOutcome::Rejected, tokens: Tokens::default(), cost: PicoUsd::ZERO };
        if let Some(end) = self.terms.free_end(outcome) {
            return nothing(end);
        }
        if let Some(tokens) = of_whole_reply(outcome) {
            return self.answered(outcome, tokens, answered);
        }
        if let Some(end) = end_without_cost(outcome).filter(|_| !self.key_costs()) {
            return nothing(end);
        }
        let seen = outcome.usage.unwrap_or_default();
        let told = outcome.doubted.unwrap_or_default();
        let prompt = seen.prompt.max(self.prompt_tokens.count()).max(told.prompt);
        let completion = seen.completion.max(self.terms.max_reply).max(told.completion);
        Spent {
            end: MeteredEnd::Cut,
            outcome: CallOutcome::Uncertain,
            tokens: Tokens { prompt, completion, ..Tokens::default() },
            cost: self.terms.most(tokens::with_margin(prompt), completion, answered),
        }
    }

    fn key_costs(&self) -> bool {
        self.key.service != Service::Free
    }

    fn answered(&self, outcome: &Outcome, tokens: Tokens, answered: &Answered) -> Spent {
        let kept = self.is_kept && outcome.reply.as_ref().is_some_and(|reply| std::str::from_utf8(reply).is_ok());
        Spent {
            end: MeteredEnd::Answered { counted_here: outcome.counted_here },
            // only what is kept may be served again
            outcome: if kept { CallOutcome::Accepted } else { CallOutcome::Rejected },
            tokens: match self.counts() {
                Some(UsageUnit::Tokens) => self.terms.tokens_of_reply(outcome, tokens),
                Some(UsageUnit::Calls) | None => tokens,
            },
            cost: self.terms.of_reply(outcome, &tokens, answered),
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

    /// Tells the allowance what the call has shown, and the run what ends all its calls. Returns the tokens that it keeps of the pace.
    fn teach(&mut self, outcome: &Outcome) -> u64 {
        let taken = self.taken.take().map_or(0, |taken| taken.settle(outcome));
        if !teaches(self.key.service, outcome) {
            return taken;
        }
        let refused = self.run.outages.learn(&self.target, self.call_key, outcome);
        let is_refused = refused.is_some();
        if let Some(failure) = refused {
            self.run.stop.set(StopCause::Terminal(failure));
        } else if matches!(outcome.status, 429 | 503)
            && let Some(wait) = outcome.retry_after
        {
            self.gate.block.hold(wait);
        }
        let Some(place) = self.place.take() else { return taken };
        let seen = match (&outcome.ended, outcome.status) {
            (Ended::Complete, _) => {
                Seen::Accepted { latency_us: u64::try_from(outcome.latency.as_micros()).unwrap_or(u64::MAX) }
            }
            // a quota that is used up is no pace
            (_, 429) if !is_refused => Seen::RateLimited(bench_models::PaceHint::default()),
            (_, 503 | 529) => Seen::Overloaded,
            _ => Seen::Failed,
        };
        // the task that holds the place may have ended with the process
        let _ = place.send(seen);
        taken
    }

    /// Tells the metrics what the call came to; `taken`: tokens of the pace.
    fn measure(&self, outcome: &Outcome, spent: &Spent, taken: u64) {
        if !self.key_costs() {
            return;
        }
        let measured = Measured {
            account: &self.target.account,
            model: &self.model,
            phase: self.phase(),
            end: spent.end,
            status: outcome.status,
            latency: outcome.latency,
            tokens: spent.tokens,
            cost: spent.cost,
            allowance_tokens: taken,
        };
        measured.tell(&self.run.measured);
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
        let taken = self.teach(&outcome);
        let answered = self.answered_by(&outcome);
        if self.key_costs() && self.terms.free_end(&outcome).is_none() && of_whole_reply(&outcome).is_none() {
            // it is looked at below, and may not be counted yet
            self.prompt_tokens.counted().await;
        }
        self.say_unpriced(&outcome, &answered);
        let spent = self.spent(&outcome, &answered);
        self.measure(&outcome, &spent, taken);
        let record = self.record(&outcome, &spent);
        // what was reserved for one phase is booked for it, whatever turns out
        let key = match self.looking.take() {
            Some(looking) => {
                let (bank, stage) = looking.end().await;
                MeteredKey { bank, stage, ..self.key }
            }
            None => self.key,
        };
        let (run, task) = (Arc::clone(&self.run), key.task());
        // its client has the reply, and in a process that takes no task nothing waits for its booking but calls that lack its money
        let booked = match run.is_apart() && !run.budget.are_starving() {
            true => run.ledger.put_with_others(task, record).await,
            false => run.ledger.put(task, vec![record]).await,
        };
        if let Err(failure) = booked {
            warn!(code = failure.code.as_str(), "a call of the memory system could not be booked: {}", failure.message);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use bench_meter::FaultKind;
    use bench_models::pace::{Lane, Paced};
    use bench_proto::price::{Rates, Tier};

    use super::*;
    use crate::metering::{
        outages::{Outages, Refused},
        run::LONGEST_REPLY,
    };

    fn outcome(ended: Ended, fault: Option<FaultKind>, usage: Option<Tokens>) -> Outcome {
        Outcome {
            status: if let Ended::Refused(status) = ended { status } else { 200 },
            usage,
            counted_here: false,
            doubted: None,
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

    /// Of a model with tiers of which one is dearer and one cheaper, and replies of ten tokens at most.
    fn terms(tier: Option<&str>) -> Terms {
        let of = |input, output| Tier { rates: Rates::flat(PicoUsd(input), PicoUsd(output)), long: None };
        let services = [("priority".to_owned(), of(200, 800)), ("flex".to_owned(), of(50, 200))].into();
        let price = ModelPrice { standard: of(100, 400), services, batch_percent: None };
        Terms { price: Some(price), max_reply: 10, tier: tier.map(str::to_owned), is_azure: false }
    }

    const USED: Tokens = Tokens { prompt: 10, completion: 2, cached: 0, cache_write: 0, cache_write_1h: 0 };

    #[test]
    fn p34_the_tier_that_is_asked_for_is_reserved_and_holds_where_the_reply_names_none() {
        let worst = |tier: Option<&str>| terms(tier).worst(100, &Answered::AsAsked);
        assert_eq!((worst(None), worst(Some("priority"))), (PicoUsd(14_500), PicoUsd(29_000)));
        for cheaper in ["flex", "auto", "default"] {
            assert_eq!(worst(Some(cheaper)), worst(None), "nobody has to serve it in {cheaper}");
        }
        for (asked, served, cost) in [
            (Some("priority"), None, 3_600),
            (Some("priority"), Some("default"), 1_800),
            (Some("flex"), None, 900),
            (None, Some("priority"), 3_600),
            (None, None, 1_800),
        ] {
            assert_eq!(terms(asked).cost(&USED, served, &Answered::AsAsked), PicoUsd(cost), "{asked:?} {served:?}");
        }
    }

    #[test]
    fn p34_a_whole_reply_whose_count_cannot_be_true_is_answered_and_costs_the_most() {
        let whole = Outcome { counted_here: true, ..outcome(Ended::Complete, None, Some(USED)) };
        let doubted = Outcome { doubted: Some(Tokens::default()), ..whole.clone() };
        let terms = terms(None);
        let cost = |outcome: &Outcome| terms.of_reply(outcome, &USED, &Answered::AsAsked);
        assert_eq!((of_whole_reply(&whole), of_whole_reply(&doubted)), (Some(USED), Some(USED)));
        assert_eq!((cost(&whole), cost(&doubted)), (PicoUsd(1_800), terms.worst(USED.prompt, &Answered::AsAsked)));
        let cut = outcome(Ended::CutByProvider("reset".to_owned()), None, Some(USED));
        assert_eq!(of_whole_reply(&cut), None);
    }

    #[test]
    fn p10_a_count_that_cannot_be_true_is_booked_at_no_less_than_the_worst_case_or_what_may_be_true_of_it() {
        let doubted = |told| Outcome { doubted: told, ..outcome(Ended::Complete, None, Some(USED)) };
        // ten dollars for a million tokens of a reply; 128 choices without a limit
        let price = ModelPrice::flat(PicoUsd(1), PicoUsd(10_000_000));
        let terms = Terms { price: Some(price), max_reply: 128 * LONGEST_REPLY, tier: None, is_azure: false };
        let cost = |told| terms.of_reply(&doubted(Some(told)), &USED, &Answered::AsAsked);
        let told = |completion| Tokens { prompt: 10, completion, ..Tokens::default() };
        let worst = terms.worst(USED.prompt, &Answered::AsAsked);
        assert!(worst >= PicoUsd(20_480_000_000_000), "{worst}");
        assert_eq!((cost(Tokens::default()), cost(told(2_048_000))), (worst, worst));
        assert_eq!(cost(told(3_000_000)), PicoUsd(30_000_000_000_010));
        let tokens = |told| terms.tokens_of_reply(&doubted(Some(told)), USED).completion;
        assert_eq!((tokens(Tokens::default()), tokens(told(3_000_000))), (terms.max_reply, 3_000_000));
        assert_eq!(terms.tokens_of_reply(&doubted(None), USED), USED);
    }

    #[test]
    fn p39_a_request_that_is_slow_on_purpose_meets_the_provider_as_it_is() {
        let target = Target { account: "openai".to_owned(), model: "m".to_owned(), embeds: false, is_azure: false };
        let away = |fault| {
            let outages = Outages::default();
            for _ in 0..3 {
                outages.learn(&target, Sha256Hash::of_bytes(b"x"), &outcome(Ended::Refused(503), Some(fault), None));
            }
            outages.away().is_some()
        };
        assert!(away(FaultKind::Slow) && !away(FaultKind::Status(503)));
        let end = |status, fault| terms(None).free_end(&outcome(Ended::Refused(status), fault, None));
        assert_eq!(end(500, Some(FaultKind::Status(500))), Some(MeteredEnd::FailedOnPurpose(500)));
        assert_eq!(end(500, Some(FaultKind::Slow)), end(500, None), "the provider itself has failed");
        assert_eq!(end(400, Some(FaultKind::Slow)), Some(MeteredEnd::Refused(400)));
    }

    #[test]
    fn p10_an_answer_other_than_success_that_may_be_billed_is_not_free() {
        let end = |is_azure, status, said: &str| {
            let refused = outcome(Ended::Refused(status), None, None);
            let terms = Terms { is_azure, ..terms(None) };
            terms.free_end(&Outcome { error: Some(said.as_bytes().to_vec().into()), ..refused })
        };
        let withheld =
            r#"{"error":{"message":"no","code":"400","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#;
        let invalid = r#"{"error":{"message":"no","type":"invalid_request_error"}}"#;
        for is_azure in [true, false] {
            for (status, said) in [(400, withheld), (408, ""), (499, ""), (504, ""), (524, "")] {
                assert_eq!(end(is_azure, status, said), None, "{status}: it may have been read, and charged");
            }
            for (status, said) in [(400, invalid), (401, ""), (404, ""), (429, ""), (500, ""), (503, "")] {
                assert_eq!(end(is_azure, status, said), Some(MeteredEnd::Refused(status)), "{status}");
            }
        }
        assert_eq!((end(true, 400, "failed"), end(false, 400, "failed")), (None, Some(MeteredEnd::Refused(400))));
    }

    #[test]
    fn p34_a_refusal_of_what_costs_nothing_costs_nothing_whatever_its_status() {
        for status in [400, 404, 408, 499, 500, 504, 524] {
            let refused = outcome(Ended::Refused(status), None, None);
            assert_eq!(end_without_cost(&refused), Some(MeteredEnd::Refused(status)));
        }
        let whole = outcome(Ended::Complete, None, None);
        assert_eq!(end_without_cost(&whole), Some(MeteredEnd::Answered { counted_here: false }));
        let cut = outcome(Ended::CutByProvider("reset".to_owned()), None, None);
        assert_eq!(end_without_cost(&cut), None);
    }

    /// Told apart as answers to the runner's own calls are (ADR 0011).
    #[test]
    fn p40_a_quota_that_is_used_up_is_no_pace_and_a_request_that_is_refused_no_outage() {
        let target = Target { account: "openai".to_owned(), model: "m".to_owned(), embeds: false, is_azure: false };
        let learned = |status: u16, body: &str| {
            let (outages, error) = (Outages::default(), Some(body.as_bytes().to_vec().into()));
            let refused = Outcome { error, ..outcome(Ended::Refused(status), None, None) };
            let stops = outages.learn(&target, Sha256Hash::of_bytes(b"x"), &refused);
            (stops.map(|failure| failure.message), outages.away().map(|away| (away.refused, away.reason)))
        };
        let quota = r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
        for (status, body) in [(429, quota), (402, r#"{"error":{"message":"Insufficient credits"}}"#)] {
            let (stops, away) = learned(status, body);
            let words = stops.unwrap_or_else(|| panic!("{status} stops the run"));
            let said = if status == 429 { "exceeded your current quota" } else { "Insufficient credits" };
            assert!(words.contains(said) && words.contains("account openai") && away.is_none(), "{words}");
        }
        let pace = r#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#;
        let key = r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#;
        let model = r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#;
        for (status, body, refused, said) in [
            (429, pace, None, "429"),
            (401, key, Some(Refused::Key), "Incorrect API key"),
            (404, model, Some(Refused::Model), "does not exist"),
            (503, "overloaded", None, "503"),
        ] {
            let (stops, away) = learned(status, body);
            let (of, why) = away.unwrap_or_else(|| panic!("{status} says that it is away"));
            assert!(stops.is_none() && of == refused && why.contains(said), "{status}: {why}");
        }
        for (status, body) in [(400, "bad"), (403, "flagged by moderation"), (404, "no path")] {
            assert_eq!(learned(status, body), (None, None), "{status} {body}");
        }
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
        let (target, outages) = (
            Target { account: "openai".to_owned(), model: "m".to_owned(), embeds: false, is_azure: false },
            Outages::default(),
        );
        let page = outcome(Ended::Page, None, None);
        assert_eq!(terms(None).free_end(&page), Some(MeteredEnd::Refused(200)));
        let other = outcome(Ended::NotAReply, None, None);
        assert_eq!(terms(None).free_end(&other), None, "another reply may have been billed");
        outages.learn(&target, Sha256Hash::of_bytes(b"x"), &page);
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
