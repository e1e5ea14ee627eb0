//! Where the time of a step went, and what its calls said of themselves.

use serde::{Deserialize, Serialize};

use super::is_none_u32;
use crate::{server::ServerAddress, text::acts};

/// Where the time of a step went, in microseconds; the compact span of P20.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// Start as microseconds since 1970 (database or process clock; only for display).
    #[serde(rename = "at")]
    pub started_us: i64,
    /// From ready to claimed (first step of a task only).
    #[serde(rename = "q", skip_serializing_if = "is_zero")]
    pub queue_wait_us: u64,
    /// The part of `queue_wait_us` before the task was published.
    #[serde(rename = "d", skip_serializing_if = "is_zero")]
    pub dispatch_us: u64,
    /// Waiting for pace, for a free connection slot of the account, or for a retry's delay.
    #[serde(rename = "w", skip_serializing_if = "is_zero")]
    pub rate_wait_us: u64,
    /// Inside calls to the memory system or model.
    #[serde(rename = "p", skip_serializing_if = "is_zero")]
    pub provider_us: u64,
    /// Whole step, waits included, queue wait excluded, and without a second recall that canaries alone made necessary.
    #[serde(rename = "t")]
    pub total_us: u64,
    /// The part of `total_us` in which the step built what it then used: an index, embeddings of a bank, a server that it started.
    #[serde(rename = "b", skip_serializing_if = "is_zero")]
    pub build_us: u64,
    /// The part of `total_us` in which it waited for another that built the same.
    #[serde(rename = "bw", skip_serializing_if = "is_zero")]
    pub build_wait_us: u64,
    /// Operations of the run that this worker had in flight at the same system or model when this one began, itself counted; 0 when
    /// nobody noted it.
    #[serde(rename = "f", skip_serializing_if = "is_none_u32")]
    pub in_flight: u32,
    /// Attempts made; 1 when nothing had to be repeated.
    #[serde(rename = "n")]
    pub attempts: u32,
    /// One entry per call: (start offset, duration, HTTP status or 0).
    #[serde(rename = "c", skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<(u64, u64, u16)>,
    /// What those of the calls said that were answered, in their order.
    #[serde(rename = "r", skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<ReplyNote>,
    /// Waits long enough to be seen: (start offset, duration, what for).
    #[serde(rename = "v", skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<(u64, u64, WaitFor)>,
    /// Where the calls went; none when nothing was sent to a server.
    #[serde(rename = "h", skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerAddress>,
    /// Number of the worker session that did it; 0 when nobody noted it.
    #[serde(rename = "s", skip_serializing_if = "is_nobody")]
    pub session: i64,
}

impl Timing {
    /// Microseconds of the step's own operation: building, and waiting for it, are a phase of their own (P43).
    #[must_use]
    pub const fn operation_us(&self) -> u64 {
        self.total_us.saturating_sub(self.build_us).saturating_sub(self.build_wait_us)
    }

    /// The time in which at least one of these operations went on, whether beside each other or one after the other: (all of it,
    /// its provider's part, the part in which it waited). Times between them, such as those between two claims, do not count.
    #[must_use]
    pub fn together<'a>(operations: impl Iterator<Item = &'a Self> + Clone) -> (u64, u64, u64) {
        let place = |timing: &Self, offset: u64, took: u64| {
            let begin = timing.started_us.saturating_add_unsigned(offset);
            (begin, begin.saturating_add_unsigned(took))
        };
        let total = covered(operations.clone().map(|timing| place(timing, 0, timing.total_us)).collect());
        let calls = |timing: &'a Self| timing.calls.iter().map(move |(at, took, _)| place(timing, *at, *took));
        let provider = covered(operations.clone().flat_map(calls).collect()).min(total);
        let waited = operations.map(|timing| timing.rate_wait_us).fold(0, u64::saturating_add);
        (total, provider, waited.min(total - provider))
    }

    /// Adds calls, waits and replies that were timed from a moment `offset_us` after the begin of the step.
    pub fn add_calls(
        &mut self,
        calls: &[(u64, u64, u16)],
        waits: &[(u64, u64, WaitFor)],
        replies: &[ReplyNote],
        offset_us: u64,
    ) {
        let before = self.calls.len();
        self.replies.extend(replies.iter().map(|reply| ReplyNote { call: reply.call + before, ..reply.clone() }));
        self.calls.extend(calls.iter().map(|&(at, took, status)| (at + offset_us, took, status)));
        self.waits.extend(waits.iter().map(|&(at, took, what)| (at + offset_us, took, what)));
    }
}

/// The length of the union of intervals.
fn covered(mut intervals: Vec<(i64, i64)>) -> u64 {
    intervals.sort_unstable();
    let (mut sum, mut until) = (0_u64, i64::MIN);
    for (begin, end) in intervals {
        sum = sum.saturating_add(end.abs_diff(begin.max(until).min(end)));
        until = until.max(end);
    }
    sum
}

/// What the reply to a call said of itself. Stored as `[call, prompt tokens, completion tokens, model, fingerprint]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ReplyRow", into = "ReplyRow")]
pub struct ReplyNote {
    /// Number of the call that it answered, among those of the step, from 0.
    pub call: usize,
    /// Tokens of the prompt, as the provider counted them.
    pub prompt_tokens: u64,
    /// Tokens of the reply, as the provider counted them.
    pub completion_tokens: u64,
    /// The model that answered, and its make.
    pub served: Served,
}

type ReplyRow = (usize, u64, u64, String, Option<String>);

impl From<ReplyRow> for ReplyNote {
    fn from((call, prompt_tokens, completion_tokens, model, fingerprint): ReplyRow) -> Self {
        Self { call, prompt_tokens, completion_tokens, served: Served { model, fingerprint } }
    }
}

impl From<ReplyNote> for ReplyRow {
    fn from(note: ReplyNote) -> Self {
        (note.call, note.prompt_tokens, note.completion_tokens, note.served.model, note.served.fingerprint)
    }
}

/// A model as its provider names it in a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Served {
    /// The model's name; empty when the reply had none.
    pub model: String,
    /// `system_fingerprint`: what the provider ran it with, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// Longest name that is taken from a reply, in characters: others write them.
const LONGEST_NAME: usize = 128;

impl Served {
    /// The names in a reply, cut to what names can be.
    #[must_use]
    pub fn named(model: &str, fingerprint: Option<&str>) -> Self {
        let name = |text: &str| -> String { text.chars().filter(|c| !acts(*c)).take(LONGEST_NAME).collect() };
        Self { model: name(model), fingerprint: fingerprint.map(name).filter(|name| !name.is_empty()) }
    }
}

/// What a step waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WaitFor {
    /// The allowance of an account: pace, a place among the calls in flight, Retry-After.
    #[serde(rename = "p")]
    Pace,
    /// Money of other attempts that may come back.
    #[serde(rename = "m")]
    Budget,
    /// The delay before another attempt.
    #[serde(rename = "r")]
    Retry,
}

impl WaitFor {
    /// Every reason to wait.
    pub const ALL: [Self; 3] = [Self::Pace, Self::Budget, Self::Retry];

    /// Its word in traces and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pace => "rate_wait",
            Self::Budget => "budget_wait",
            Self::Retry => "retry_wait",
        }
    }
}

/// Waits shorter than this are not stored one by one: they are part of [`Timing::rate_wait_us`] all the same.
pub const SHORTEST_WAIT_US: u64 = 1_000;

fn is_nobody(session: &i64) -> bool {
    *session == 0
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}
