//! Where an admitted request goes.

use std::{fmt, time::Duration};

use bench_proto::redact;
use http::{HeaderMap, header::AUTHORIZATION};

use crate::secrets::Secrets;

/// Whose paths a provider has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Paths {
    /// The operation's path behind the base URL (`https://api.openai.com/v1`).
    #[default]
    OpenAi,
    /// The same behind the base URL with or without its `/v1` (`https://api.anthropic.com`).
    Anthropic,
    /// A deployment's path, and the API version in the query (`https://name.openai.azure.com?api-version=2024-10-21`);
    /// OpenAI's paths where the base URL ends with `/v1`.
    Azure,
}

/// Where a request goes, and with which key. Its `Debug` shows no key, nor one that stands in the URL.
#[derive(Clone)]
pub struct Upstream {
    /// Base URL, http or https.
    pub(crate) base_url: String,
    /// Whose paths it has.
    pub paths: Paths,
    /// Headers that are put in.
    pub(crate) headers: HeaderMap,
    /// What is secret of both.
    pub(crate) secrets: Secrets,
    /// Those that look like keys: a secret that is a plain word (`?token=assistant`) is in many replies.
    pub(crate) keys: Secrets,
    /// Whether streams of chat and text completions are asked for their use where the client did not. Off for servers that refuse
    /// `stream_options`.
    pub asks_usage: bool,
    /// Names of parameters that its operator lets through, beside those that are known to cost nothing beyond tokens.
    pub parameters: Vec<String>,
    /// Longest wait for the head of the reply.
    pub first_byte: Duration,
    /// Longest silence within the reply.
    pub idle: Duration,
    /// Longest time from sending to the end of the reply.
    pub whole: Duration,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base_url, paths, headers, .. } = self;
        let mut shown = f.debug_struct("Upstream");
        shown.field("base_url", &redact::url(base_url)).field("paths", paths).field("headers", headers);
        shown.finish_non_exhaustive()
    }
}

impl Upstream {
    /// A provider with OpenAI's paths and the usual times: 10 minutes for the head, as its SDKs wait, 2 for a silence, 30 in all.
    ///
    /// The headers are put into requests, the real key among them (`authorization`, `api-key`, `x-api-key`). Mark other values that
    /// are secret as sensitive, as it is done here with these three: they are kept out of what clients and logs are told, and so are
    /// keys that stand in the base URL. They are looked for here, once: keep it for an account rather than make it for each request.
    #[must_use]
    pub fn new(base_url: impl Into<String>, mut headers: HeaderMap) -> Self {
        for name in [AUTHORIZATION.as_str(), "api-key", "x-api-key"] {
            if let Some(key) = headers.get_mut(name) {
                key.set_sensitive(true);
            }
        }
        let base_url: String = base_url.into();
        let secrets = Secrets::of_account(&base_url, &headers);
        Self {
            base_url,
            paths: Paths::OpenAi,
            headers,
            keys: secrets.like_keys(),
            secrets,
            asks_usage: true,
            parameters: Vec::new(),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(120),
            whole: Duration::from_secs(1800),
        }
    }
}
