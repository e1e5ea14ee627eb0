//! `anthropic:<model>`: Anthropic's messages API, one request and one reply.
//!
//! A structured reply is asked for as the only tool that the model may use, and its input is the reply's text; models that cannot
//! be made to use a tool get the schema for their text. Prompt tokens are the sum of fresh ones, those read from a cache and
//! those written into one.

mod wire;

use std::time::Instant;

use async_trait::async_trait;
use bench_proto::{
    failure::Failure,
    redact::{self, Secrets},
    trace::StepTrace,
};
use http::{HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use self::wire::{Message, WireRequest};
use super::{
    Attempt, AttemptError, ChatModel, ChatReply, ChatRequest, classify,
    classify::Transport,
    openai::{SharedHttp, checked_url, exchange::Exchange, secret_header},
};

/// The version of the API that replies are read by.
pub(super) const API_VERSION: &str = "2023-06-01";

/// The reply that a body holds.
#[must_use]
pub fn reply_of(body: &[u8]) -> Option<ChatReply> {
    serde_json::from_slice::<Message>(body).ok()?.into_reply()
}

/// A model of Anthropic's messages API.
pub struct AnthropicChat {
    http: SharedHttp,
    url: reqwest::Url,
    endpoint: String,
    headers: HeaderMap,
    secrets: Secrets,
    model: String,
    is_azure: bool,
    let_through: Vec<String>,
}

impl std::fmt::Debug for AnthropicChat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnthropicChat")
            .field("endpoint", &self.endpoint)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl AnthropicChat {
    /// A model behind `base_url`, with or without its `/v1`.
    ///
    /// # Errors
    /// When the base URL or the key cannot be used.
    pub fn new(base_url: &str, key: Option<&SecretString>, model: &str, http: &SharedHttp) -> Result<Self, Failure> {
        let mut url = checked_url(base_url)?;
        let secrets = Secrets::of_account(url.as_str(), key.map(ExposeSecret::expose_secret));
        let path = url.path().trim_end_matches('/').to_owned();
        let path = if path.is_empty() { "/v1" } else { path.as_str() };
        url.set_path(path);
        let endpoint = redact::identity(url.as_str());
        url.set_path(&format!("{path}/messages"));
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert("x-api-key", secret_header(key.expose_secret().trim())?);
        }
        headers.insert("anthropic-version", HeaderValue::from_static(API_VERSION));
        let is_azure = classify::is_azure(base_url);
        let (http, model) = (http.clone(), model.to_owned());
        Ok(Self { http, url, endpoint, headers, secrets, model, is_azure, let_through: Vec::new() })
    }

    /// Sends parameters of these names too.
    #[must_use]
    pub(super) fn letting_through(self, parameters: &[String]) -> Self {
        Self { let_through: parameters.to_vec(), ..self }
    }

    fn read(&self, body: &[u8], seen: &Exchange) -> Result<ChatReply, AttemptError> {
        let garbage =
            |detail: &str| classify::transport(classify::unreadable(body), seen.status, detail, &self.secrets);
        let message: Message = serde_json::from_slice(body).map_err(|error| garbage(&error.to_string()))?;
        let reply = message.into_reply().ok_or_else(|| garbage("it is no message"))?;
        Ok(reply.without(&self.secrets))
    }
}

#[async_trait]
impl ChatModel for AnthropicChat {
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn model(&self) -> &str {
        &self.model
    }

    async fn attempt(&self, request: &ChatRequest, trace: Option<&StepTrace>) -> Attempt {
        let begun = Instant::now();
        let asked = WireRequest { model: &self.model, request, let_through: &self.let_through };
        let body = match serde_json::to_vec(&asked) {
            Ok(body) => body,
            Err(error) => {
                let result = Err(classify::transport(Transport::Unsendable, 0, &error.to_string(), &self.secrets));
                return Attempt { result, pace: Default::default(), duration_us: 0 };
            }
        };
        let (seen, sent) = self.http.post(&self.url, self.headers.clone(), body, trace).await;
        let duration_us = begun.elapsed().as_micros() as u64;
        let result = match sent {
            Ok(body) => self.read(&body, &seen),
            Err(fault) => Err(fault.failed(&seen, &self.secrets, self.is_azure)),
        };
        Attempt { result, pace: seen.pace, duration_us }
    }
}

#[cfg(test)]
mod tests;
