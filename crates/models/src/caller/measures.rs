//! Where the time of a call went, and what metrics say of it.

use std::time::Instant;

use bench_proto::step::{ReplyNote, SHORTEST_WAIT_US, Served, WaitFor};
use bench_telemetry::metrics::{Histogram, catalogue};

use super::{Call, CallerParts, Named, micros};
use crate::{Attempt, ChatReply};

impl Call<'_> {
    /// Counts a wait that ends now; what was noted of it already under another name stays so.
    pub(super) fn waited(&mut self, since: Instant, what: WaitFor) {
        self.timing.rate_wait_us += micros(since.elapsed());
        let (begin, before) = (self.offset_of(since), self.timing.waits.last().copied());
        let from = before.map_or(begin, |(start, duration, _)| begin.max(start + duration));
        self.push_wait(from, what);
    }

    /// Notes a wait that ends now, as a part of one that goes on.
    pub(super) fn noted(&mut self, since: Instant, what: WaitFor) {
        self.push_wait(self.offset_of(since), what);
    }

    pub(super) fn offset_of(&self, moment: Instant) -> u64 {
        micros(moment.saturating_duration_since(self.begun))
    }

    pub(super) fn push_wait(&mut self, from: u64, what: WaitFor) {
        let duration = micros(self.begun.elapsed()).saturating_sub(from);
        if duration >= SHORTEST_WAIT_US {
            self.timing.waits.push((from, duration, what));
        }
    }

    pub(super) fn note(&mut self, offset_us: u64, attempt: &Attempt) {
        let status = attempt.result.as_ref().map_or_else(|error| error.status, |_| 200);
        self.timing.attempts += 1;
        self.timing.provider_us += attempt.duration_us;
        self.timing.calls.push((offset_us, attempt.duration_us, status));
        let (account, model) = (self.caller.parts.account.as_str(), self.caller.parts.model.model());
        let outcome = match status {
            200 => "ok",
            429 => "rate_limited",
            0 => "transport",
            _ => "error",
        };
        catalogue::CALLS.add(1.0, &[account, model, outcome]);
        catalogue::CALL_SECONDS.record(attempt.duration_us as f64 / 1e6, &[account, model]);
        if status == 429 {
            catalogue::RATE_LIMITED.add(1.0, &[account]);
        }
        let status = status.to_string();
        let (served, error) = match &attempt.result {
            Ok(reply) => (reply.model.as_str(), ""),
            Err(error) if error.status == 0 => ("", "transport"),
            Err(error) if error.status >= 400 => ("", status.as_str()),
            Err(error) => ("", error.failure.code.as_str()),
        };
        self.measure(&catalogue::CLIENT_SECONDS, attempt.duration_us as f64 / 1e6, served, error);
    }

    /// Records a value of one of the conventions' metrics; `last` is the value of its last label.
    pub(super) fn measure(&self, of: &Histogram, value: f64, served: &str, last: &str) {
        let CallerParts { model, named: Named { operation, provider, server }, .. } = &self.caller.parts;
        let served = Served::named(served, None).model;
        of.record(value, &[operation, provider, model.model(), &served, &server.0, &server.1, last]);
    }

    /// Notes what a reply said of itself, with the tokens that are counted for it.
    pub(super) fn note_reply(&mut self, reply: &ChatReply, (prompt_tokens, completion_tokens): (u64, u64)) {
        self.measure(&catalogue::CLIENT_TOKENS, prompt_tokens as f64, &reply.model, "input");
        self.measure(&catalogue::CLIENT_TOKENS, completion_tokens as f64, &reply.model, "output");
        // a probe belongs to no step
        let Some(call) = self.timing.calls.len().checked_sub(1) else { return };
        let served = Served::named(&reply.model, reply.fingerprint.as_deref());
        self.timing.replies.push(ReplyNote { call, prompt_tokens, completion_tokens, served });
    }

    /// Counts what an attempt took of the account's allowance, what it gave back left out.
    pub(super) fn count_allowance(&mut self) {
        let account = self.caller.parts.account.as_str();
        catalogue::RATE_USED.add(1.0, &[account, "requests"]);
        catalogue::RATE_USED.add(std::mem::take(&mut self.slot_tokens) as f64, &[account, "tokens"]);
    }
}
