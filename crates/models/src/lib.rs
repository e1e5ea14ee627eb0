//! Chat models and how they are called: providers, the caller with its retries, pace, money, prices, routes.
//!
//! To add a provider, copy the smallest file here, and add a line to `providers` and one to `registry::build_chat`.
//!
//! A [`ChatModel`] makes exactly one attempt and tells what happened; retries, pace, prices, the cap and the call store
//! are the [`caller`]'s, once for all providers.
//!
//! In come a request, whose it is, and the store's narrow traits for calls, money, pace and outages; out come a reply with
//! what it cost and where its time went, or the failure that ends the task. Start reading at [`caller`]: it uses the rooms in
//! the order in which a call meets them (`call_key`, `call_store`, `routes`, `pace`, `gate`, `budget`, a provider, `classify`,
//! `prices`, `backoff`).

pub mod anthropic;
pub mod backoff;
pub mod budget;
pub mod call_key;
pub mod call_store;
pub mod caller;
pub mod capabilities;
pub mod classify;
pub mod extractive;
pub mod gate;
pub mod gates;
pub mod limiter;
pub mod look;
pub mod members;
pub mod openai;
pub mod pace;
pub mod parameters;
pub mod prices;
pub mod providers;
pub mod registry;
pub mod routes;
pub mod spent;
pub mod stop;
pub mod tokens;

use std::{borrow::Cow, collections::BTreeMap};

use async_trait::async_trait;
use bench_proto::{failure::Failure, redact::Secrets, trace::StepTrace};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::tokens::Encoding;

/// Somebody who waits, and may have gone away.
trait Waiter {
    /// Whether nobody waits any more.
    fn gone(&self) -> bool;
}

impl<T> Waiter for tokio::sync::oneshot::Sender<T> {
    fn gone(&self) -> bool {
        self.is_closed()
    }
}

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    /// Instructions.
    System,
    /// The request.
    User,
}

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Who says it.
    pub role: MessageRole,
    /// What is said in it.
    pub text: String,
}

/// A JSON schema that the reply must follow.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplySchema {
    /// Name of the schema, `[a-z_]+`.
    pub name: String,
    /// A JSON schema; the reply is one value of it.
    pub schema: Value,
}

/// A request. Equal requests have equal bodies: they depend on question, context, prompt and parameters alone (P17).
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// What was said so far, instructions first.
    pub messages: Vec<ChatMessage>,
    /// Parameters beside model and messages, as sent (`temperature`, `max_completion_tokens`, `seed`, …).
    pub params: BTreeMap<String, Value>,
    /// Structured reply, when one is wanted.
    pub schema: Option<ReplySchema>,
    /// Largest number of completion tokens: always sent, part of the worst case. `max_completion_tokens` or `max_tokens`
    /// in `params` takes its place when one is there.
    pub max_output_tokens: u32,
}

#[cfg(test)]
impl ChatRequest {
    /// A request without parameters whose user says these texts.
    pub(crate) fn saying(texts: &[&str], max_output_tokens: u32) -> Self {
        let message = |text: &&str| ChatMessage { role: MessageRole::User, text: (*text).to_owned() };
        let messages = texts.iter().map(message).collect();
        Self { messages, params: BTreeMap::new(), schema: None, max_output_tokens }
    }
}

impl ChatRequest {
    /// Largest number of completion tokens that can be billed for this request: those of the reply, and those that it may think
    /// beside them.
    #[must_use]
    pub fn output_limit(&self) -> u64 {
        let reply = capabilities::max_tokens_of(&self.params).unwrap_or_else(|| u64::from(self.max_output_tokens));
        reply.saturating_add(capabilities::thinking_budget_of(&self.params))
    }

    /// The service tier that is asked for.
    #[must_use]
    pub fn service_tier(&self) -> Option<&str> {
        self.params.get("service_tier").and_then(Value::as_str)
    }

    /// Whether the prompt may be written into a cache that costs extra: only when asked for.
    #[must_use]
    pub fn writes_cache(&self) -> bool {
        self.params.contains_key("cache_control")
    }
}

/// What a model replied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatReply {
    /// The text; empty when the model gave none.
    pub text: String,
    /// Why it stopped: `stop`, `length`, `content_filter`, `refusal`, or the provider's word.
    pub finish: String,
    /// The model's own name.
    pub model: String,
    /// `system_fingerprint`: what the provider ran the model with, where it says so.
    pub fingerprint: Option<String>,
    /// Prompt tokens by the provider's count; `None` when it gave none.
    pub prompt_tokens: Option<u64>,
    /// Completion tokens by the provider's count.
    pub completion_tokens: Option<u64>,
    /// Part of the prompt tokens that was read from a cache.
    pub cached_prompt_tokens: u64,
    /// Part of them that was written into a cache for a short time.
    pub cache_write_tokens: u64,
    /// Part of them that was written into a cache for an hour.
    pub cache_write_1h_tokens: u64,
    /// The service tier that the provider says it served, which is what it charges.
    pub service_tier: Option<String>,
}

impl ChatReply {
    /// Without what an account's server may not say, see [`Secrets::hide_in_reply`]: replies are stored.
    fn without(mut self, secrets: &Secrets) -> Self {
        let optional = [&mut self.fingerprint, &mut self.service_tier].into_iter().flatten();
        for text in [&mut self.text, &mut self.finish, &mut self.model].into_iter().chain(optional) {
            if let Cow::Owned(shown) = secrets.hide_in_reply(text) {
                *text = shown;
            }
        }
        self
    }
}

/// What the response headers said about pace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaceHint {
    /// Retry-After or `retry-after-ms`, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// `x-ratelimit-limit-requests`, `-remaining-requests`, and the reset in milliseconds.
    pub requests: Option<(u64, u64, u64)>,
    /// `x-ratelimit-limit-tokens`, `-remaining-tokens`, and the reset in milliseconds.
    pub tokens: Option<(u64, u64, u64)>,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptError {
    /// What and whether a repeat can help.
    pub failure: Failure,
    /// HTTP status; 0 when there was none.
    pub status: u16,
    /// The provider may have done (and billed) the work.
    pub maybe_billed: bool,
    /// The model has learned from the refusal (a server without JSON schemas) and will send something else: repeat at
    /// once, this one does not count as an attempt. A model says so a bounded number of times.
    pub adapted: bool,
}

/// What one attempt brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Reply or failure.
    pub result: Result<ChatReply, AttemptError>,
    /// Pace hints of the response headers.
    pub pace: PaceHint,
    /// From send to the end of the reply, in microseconds.
    pub duration_us: u64,
}

/// A model behind an endpoint: one that chats, or one that embeds ([`openai::embeddings`]).
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Endpoint for cache keys and pace: base URL and API version, without secrets.
    fn endpoint(&self) -> &str;

    /// Model name as sent.
    fn model(&self) -> &str;

    /// Prompt tokens of a request as the provider will count them, or their upper bound.
    fn prompt_tokens(&self, encoding: Encoding, request: &ChatRequest) -> u64 {
        encoding.prompt_tokens(request)
    }

    /// Makes one attempt. Its request carries the trace of the step that asks, where there is one.
    async fn attempt(&self, request: &ChatRequest, trace: Option<&StepTrace>) -> Attempt;
}
