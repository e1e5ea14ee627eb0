//! What an attempt means: what it cost, what is recorded of it, and what follows.

use std::time::{Duration, Instant};

use bench_proto::{
    call::{CallOutcome, CallRecord, Phase},
    failure::{Failure, FailureClass},
    money::PicoUsd,
    price::TokenCounts,
};

use super::{Accept, Answered, Call, CallStop, micros};
use crate::{
    Attempt, AttemptError, ChatReply, PaceHint,
    budget::Reservation,
    classify,
    limiter::Seen,
    routes::{Sent, Way},
    stop::StopCause,
    tokens,
};

/// The most that one call is booked with, $10,000: sums of what a million calls cost stay numbers.
const MOST_COST: PicoUsd = PicoUsd(10_000_000_000_000_000);

/// Whether a failed attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    Yes,
    /// Refused for the sake of pace.
    No,
    /// It failed on the way: the route decides, by when it was sent.
    ByRoute(Instant),
}

/// What to do after an attempt.
pub(super) enum Next<T> {
    Done(Answered<T>),
    /// Repeat after a delay that the other side may have asked for.
    Retry {
        failure: Failure,
        counts: Counts,
    },
    /// Repeat at once.
    Again,
    Stop(CallStop),
}

/// What an attempt came to.
pub(super) struct Spent {
    outcome: CallOutcome,
    /// Of the prompt and of the completion.
    tokens: (u64, u64),
    cost: PicoUsd,
    duration_us: u64,
}

impl Call<'_> {
    /// Settles and records an attempt, and decides what follows.
    pub(super) fn settle<T>(
        &mut self,
        attempt: Attempt,
        reservation: Option<Reservation>,
        accept: Accept<'_, T>,
        failed: Option<Instant>,
    ) -> Next<T> {
        let duration_us = attempt.duration_us;
        match attempt.result {
            Ok(reply) => self.settle_reply(reply, duration_us, reservation, accept),
            Err(error) => self.settle_failure(error, duration_us, reservation, failed),
        }
    }

    pub(super) fn settle_reply<T>(
        &mut self,
        mut reply: ChatReply,
        duration_us: u64,
        reservation: Option<Reservation>,
        accept: Accept<'_, T>,
    ) -> Next<T> {
        // what it cost is known
        self.maybe_billed = false;
        let believed = tokens::is_plausible(self.request, &reply);
        if !believed {
            self.caller.doubt_count(&reply);
            (reply.prompt_tokens, reply.completion_tokens) = (None, None);
        }
        // a server that does not count is counted for; of vectors it may leave out what has no words
        let told =
            reply.prompt_tokens.is_some() && (reply.completion_tokens.is_some() || self.request.output_limit() == 0);
        self.usage.uncounted += u64::from(!told);
        let prompt_tokens = reply.prompt_tokens.unwrap_or_else(|| self.prompt_tokens());
        let completion_tokens = reply.completion_tokens.unwrap_or_else(|| match self.request.output_limit() {
            // vectors are no words
            0 => 0,
            _ => self.caller.encoding.count(&reply.text),
        });
        if let (Some(pace), Some(counted)) = (&self.caller.parts.pace, self.prompt_tokens)
            && pace.counts_tokens()
        {
            // the bound of an unknown vocabulary is far too large: what the prompt did not use goes to the next call
            let of_reply = match self.caller.parts.returns_unused_reply {
                true => self.request.output_limit().saturating_sub(completion_tokens),
                false => 0,
            };
            let unused = counted.saturating_sub(prompt_tokens).saturating_add(of_reply);
            pace.settled(unused);
            self.slot_tokens = self.slot_tokens.saturating_sub(unused);
        }
        let price = self.caller.parts.price.as_ref();
        let tokens = TokenCounts {
            prompt: prompt_tokens,
            cached: reply.cached_prompt_tokens,
            cache_write: reply.cache_write_tokens,
            cache_write_1h: reply.cache_write_1h_tokens,
            completion: completion_tokens,
        };
        // what was served is charged, also where another tier was asked for
        let served = reply.service_tier.as_deref().or_else(|| self.request.service_tier());
        let cost = price.map_or(PicoUsd::ZERO, |price| match believed {
            true => price.cost(&tokens, served).min(MOST_COST),
            // nobody knows what will be charged
            false => self.worst_case(price, prompt_tokens),
        });
        let accepted = accept(&reply);
        let outcome = if accepted.is_ok() { CallOutcome::Accepted } else { CallOutcome::Rejected };
        let tokens = (prompt_tokens, completion_tokens);
        self.record(reservation, &reply, Spent { outcome, tokens, cost, duration_us });
        self.usage.prompt_tokens += prompt_tokens;
        self.usage.completion_tokens += completion_tokens;
        self.note_reply(&reply, (prompt_tokens, completion_tokens));
        match accepted {
            Ok(value) => {
                self.usage.calls += 1;
                Next::Done(Answered { value, reply, cached: false })
            }
            Err(why) => match unusable(self.context.phase, &reply) {
                // the same words would be withheld again, and paid again
                code @ ("content_filter" | "refusal") => Next::Stop(CallStop::Failed(Failure::permanent(code, why))),
                code => {
                    self.usage.retries += 1;
                    Next::Retry { failure: Failure::transient(code, why), counts: Counts::Yes }
                }
            },
        }
    }

    pub(super) fn settle_failure<T>(
        &mut self,
        error: AttemptError,
        duration_us: u64,
        reservation: Option<Reservation>,
        failed: Option<Instant>,
    ) -> Next<T> {
        let rate_limited = error.status == 429 && error.failure.class == FailureClass::Transient;
        self.usage.retries += 1;
        self.usage.rate_limited += u64::from(rate_limited);
        self.record_failure(&error, duration_us, reservation);
        self.maybe_billed = error.maybe_billed;
        let AttemptError { failure, adapted, .. } = error;
        match failure.class {
            _ if adapted => Next::Again,
            FailureClass::Transient => {
                let counts = match failed {
                    _ if rate_limited => Counts::No,
                    Some(sent) => Counts::ByRoute(sent),
                    None => Counts::Yes,
                };
                Next::Retry { failure, counts }
            }
            // others may get through: the task is theirs, and the route finds out (P40)
            FailureClass::Terminal if self.leaves_to_others(&failure) => {
                Next::Stop(self.put_off(Duration::from_millis(300), failure.message, true))
            }
            FailureClass::Permanent => Next::Stop(CallStop::Failed(failure)),
            FailureClass::Terminal => {
                self.caller.parts.stop.set(StopCause::Terminal(failure.clone()));
                Next::Stop(CallStop::Terminal(failure))
            }
        }
    }

    /// Records a failed attempt that may have been billed; the money of others goes back.
    pub(super) fn record_failure(&mut self, error: &AttemptError, duration_us: u64, reservation: Option<Reservation>) {
        if error.maybe_billed {
            let prompt_tokens = self.prompt_tokens();
            let price = self.caller.parts.price.as_ref();
            let worst = price.map_or(PicoUsd::ZERO, |price| self.worst_case(price, prompt_tokens));
            let tokens = (prompt_tokens, self.request.output_limit());
            let spent = Spent { outcome: CallOutcome::Uncertain, tokens, cost: worst, duration_us };
            self.record(reservation, &ChatReply::default(), spent);
        } else if let Some(reservation) = reservation {
            reservation.free();
        }
    }

    /// A refused key, URL or model name is this process's own trouble, unless it is alone and they have never worked.
    pub(super) fn leaves_to_others(&self, failure: &Failure) -> bool {
        let route = self.caller.parts.route.as_ref();
        classify::is_refusal(&failure.code) && route.is_some_and(|route| !route.is_alone() || route.ever_worked())
    }

    /// Records an attempt under the id of its reservation, which the record settles.
    pub(super) fn record(&mut self, reservation: Option<Reservation>, reply: &ChatReply, spent: Spent) {
        let Spent { outcome, tokens, cost, duration_us } = spent;
        let attempt_id = reservation.as_ref().map_or_else(uuid::Uuid::now_v7, Reservation::id);
        if let Some(reservation) = reservation {
            let counts = self.caller.parts.settings.counts;
            reservation.settle(counts.map_or(cost, |unit| PicoUsd(unit.of_attempt(tokens.0.saturating_add(tokens.1)))));
        }
        let model = if reply.model.is_empty() { self.caller.parts.model.model() } else { &reply.model };
        if outcome != CallOutcome::Uncertain {
            self.usage.cost = self.usage.cost.saturating_add(cost);
        }
        self.records.push(CallRecord {
            attempt_id,
            key: self.key,
            phase: self.context.phase,
            outcome,
            reply: reply.text.clone(),
            finish: reply.finish.clone(),
            model: model.to_owned(),
            prompt_tokens: tokens.0,
            completion_tokens: tokens.1,
            cost,
            duration_us,
        });
    }
}

/// Ends when a call need not be waited for.
pub(super) async fn lost(sent: Option<&Sent<'_>>) {
    match sent {
        Some(sent) => sent.lost().await,
        None => std::future::pending().await,
    }
}

/// An attempt that is given up after a time; the provider may have done the work.
pub(super) fn unanswered(why: &str, after: Duration) -> Attempt {
    Attempt {
        result: Err(classify::transport(classify::Transport::Timeout, 0, why, None)),
        pace: PaceHint::default(),
        duration_us: micros(after),
    }
}

/// What an attempt says about the way to the provider (P39, P40).
pub(super) fn way_of(attempt: &Attempt) -> Way {
    let Err(error) = &attempt.result else { return Way::Through };
    let Failure { class, code, message, .. } = &error.failure;
    match (class, code.as_str()) {
        (FailureClass::Transient, "connect" | "cut") if classify::lacks(message) => Way::OwnFault,
        (FailureClass::Transient, "connect" | "cut" | "timeout" | "garbage" | "http_408") => Way::Failed,
        (FailureClass::Transient, code) if code.starts_with("http_5") => Way::Failed,
        (FailureClass::Terminal, code) if classify::is_refusal(code) => Way::Refused,
        _ => Way::Other,
    }
}

/// What an attempt teaches the limiter.
pub(super) fn seen(attempt: &Attempt) -> Seen {
    match &attempt.result {
        Ok(_) => Seen::Accepted { latency_us: attempt.duration_us },
        Err(error) if error.status == 429 => Seen::RateLimited(attempt.pace),
        Err(error) if matches!(error.status, 503 | 529) => Seen::Overloaded,
        Err(_) => Seen::Failed,
    }
}

/// For how long the account asked to be left alone; zero when it refused a call and named no time.
pub(super) fn held(attempt: &Attempt) -> Option<Duration> {
    let error = attempt.result.as_ref().err().filter(|error| matches!(error.status, 429 | 503))?;
    let asked = attempt.pace.retry_after_ms.map(Duration::from_millis);
    asked.or_else(|| (error.status == 429).then_some(Duration::ZERO))
}

/// Code of a reply that did not pass its parser: what the provider said of its end, if that explains it.
fn unusable(phase: Phase, reply: &ChatReply) -> &'static str {
    match (reply.finish.as_str(), phase) {
        ("content_filter", _) => return "content_filter",
        ("refusal", _) => return "refusal",
        ("length", _) => return "cut_off",
        _ if reply.text.trim().is_empty() => return "empty_reply",
        _ => {}
    }
    match phase {
        Phase::Judge => "unparsable_judgement",
        Phase::Answer => "unparsable_answer",
        Phase::Retain | Phase::Recall => "unparsable_reply",
    }
}

/// Whether a failure of this code is of replies that came and could not be read.
#[must_use]
pub fn is_unread(code: &str) -> bool {
    matches!(code, "cut_off" | "empty_reply" | "unparsable_judgement" | "unparsable_answer" | "unparsable_reply")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_parser_refuses_is_unread_and_what_a_provider_withholds_is_not() {
        let reply = |text: &str, finish: &str| ChatReply {
            text: text.to_owned(),
            finish: finish.to_owned(),
            ..ChatReply::default()
        };
        for phase in [Phase::Judge, Phase::Answer, Phase::Retain, Phase::Recall] {
            for unread in [reply("x", "stop"), reply(" ", "stop"), reply("x", "length")] {
                assert!(is_unread(unusable(phase, &unread)), "{phase:?} {unread:?}");
            }
            for withheld in [reply("", "content_filter"), reply("I cannot", "refusal")] {
                assert!(!is_unread(unusable(phase, &withheld)), "{phase:?} {withheld:?}");
            }
        }
    }
}
