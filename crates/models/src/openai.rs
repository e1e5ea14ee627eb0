//! `openai:<model>`: chat completions of any OpenAI-compatible server, through async-openai.
//!
//! async-openai's own retries are off: its client gets a Tower service of ours that sends once, over one `reqwest` client
//! that all models of the process share. The service reads status, pace headers and the bounded body, because async-openai
//! hands out none of these.

pub mod embeddings;
pub(super) mod exchange;
pub(super) mod headers;
mod wire;

use std::{
    sync::atomic::{AtomicU8, Ordering},
    time::{Duration, Instant},
};

use async_openai::{Client, config::Config, error::OpenAIError, traits::RequestOptionsBuilder as _};
use async_trait::async_trait;
use bench_proto::{
    failure::{Failure, code},
    redact::{self, Secrets},
    trace::{StepTrace, TRACEPARENT},
};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use self::{
    exchange::{Exchange, Fault, Seen, SendOnce, Unserved},
    wire::{Completion, Format, WireRequest},
};
use super::{Attempt, AttemptError, ChatModel, ChatReply, ChatRequest, PaceHint, classify, classify::Transport};

/// Settings of the HTTP side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpSettings {
    /// Time to make a connection.
    pub connect_timeout: Duration,
    /// Time of a whole attempt, from send to the end of the reply.
    pub request_timeout: Duration,
    /// Longest reply, in bytes.
    pub max_reply_bytes: usize,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(120),
            max_reply_bytes: 8 * 1024 * 1024,
        }
    }
}

/// The HTTP client that all models of a process share: one pool of kept-alive connections.
#[derive(Debug, Clone)]
pub struct SharedHttp {
    pub(super) client: reqwest::Client,
    pub(super) settings: HttpSettings,
}

impl SharedHttp {
    /// Builds the client.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(settings: HttpSettings) -> Result<Self, Failure> {
        let client = reqwest::Client::builder()
            .connect_timeout(settings.connect_timeout)
            .tcp_nodelay(true)
            // one HTTP/2 connection would bound calls in flight by the server's stream limit (often 100)
            .http1_only()
            .pool_max_idle_per_host(super::gate::DEFAULT_MAX_IN_FLIGHT)
            .pool_idle_timeout(Duration::from_secs(50))
            // a key is sent to its own base URL only (P32)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .user_agent(concat!("bench-coord/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Failure::terminal("http_client", format!("cannot set up HTTP: {error}")))?;
        Ok(Self { client, settings })
    }
}

/// Where a server is: base URL, query (API version), headers with the key. Its `Debug` shows no key, neither of the header nor of the
/// URL.
#[derive(Clone)]
struct Endpoint {
    base_url: String,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    key: SecretString,
    /// What the server may not say of all this.
    secrets: Secrets,
    /// It is Azure's, whoever it is said to be.
    is_azure: bool,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Endpoint").field(&self.shown()).finish()
    }
}

/// A header value that no log shows.
///
/// # Errors
/// When the key holds what no header can carry.
pub(super) fn secret_header(text: &str) -> Result<HeaderValue, Failure> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        Failure::terminal(code::INVALID_API_KEY, "the key holds characters that no header can carry; check it")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// A base URL that can be used.
///
/// # Errors
/// Anything but http and https, and URLs with a user name or password.
pub(super) fn checked_url(base_url: &str) -> Result<reqwest::Url, Failure> {
    let parsed = reqwest::Url::parse(base_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let parsed = parsed.filter(|_| !redact::is_misread(base_url));
    parsed.filter(|url| url.username().is_empty() && url.password().is_none()).ok_or_else(|| {
        Failure::terminal(
            "bad_base_url",
            "the base URL must be http:// or https:// without user name or password (an @ in its path is %40), such as https://api.openai.com/v1",
        )
    })
}

/// The reply that a body holds, whatever server it comes from.
#[must_use]
pub fn reply_of(body: &[u8]) -> Option<ChatReply> {
    serde_json::from_slice::<Completion>(body).ok()?.into_reply()
}

/// What headers say about pace.
#[must_use]
pub fn pace_of(headers: &HeaderMap) -> PaceHint {
    headers::pace_hint(headers)
}

/// How a server is addressed and told the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Base URL and path; the key as a bearer token.
    OpenAi,
    /// Azure's: one path per deployment, an API version in the query, the key in a header of its own.
    Azure,
}

/// A server of models, as an account names it.
#[derive(Debug, Clone, Copy)]
pub struct ModelServer<'a> {
    /// How it is addressed.
    pub scheme: Scheme,
    /// Its base URL, with its `/v1`. Azure's names a resource (`https://NAME.openai.azure.com`), with or without `?api-version=…`, and
    /// the model is the deployment.
    pub base_url: &'a str,
    /// The key that it wants, when it wants one.
    pub key: Option<&'a SecretString>,
}

/// The API version that Azure is asked for when the base URL names none.
const AZURE_API_VERSION: &str = "2024-10-21";

impl Endpoint {
    fn new(server: ModelServer<'_>, model: &str) -> Result<Self, Failure> {
        let ModelServer { scheme, base_url, key } = server;
        let base_url = checked_url(base_url)?;
        let base_url = base_url.as_str();
        let secrets = Secrets::of_account(base_url, key.map(ExposeSecret::expose_secret));
        let (base, query) = base_url.split_once('?').unwrap_or((base_url, ""));
        // whoever sends them writes their percent signs again
        let mut query: Vec<(String, String)> = Url::parse(&format!("http://any/?{query}"))
            .map(|url| url.query_pairs().into_owned().collect())
            .unwrap_or_default();
        let mut base = base.trim_end_matches('/').to_owned();
        // the newer form of Azure's API has OpenAI's own paths
        if scheme == Scheme::Azure && !base.ends_with("/v1") {
            if !base.contains("/openai/deployments/") {
                base = format!("{}/openai/deployments/{model}", base.trim_end_matches("/openai"));
            }
            if !query.iter().any(|(name, _)| name == "api-version") {
                query.push(("api-version".to_owned(), AZURE_API_VERSION.to_owned()));
            }
        }
        let mut headers = HeaderMap::new();
        if let Some(key) = key.map(|key| key.expose_secret().trim()) {
            match scheme {
                Scheme::OpenAi => headers.insert(AUTHORIZATION, secret_header(&format!("Bearer {key}"))?),
                Scheme::Azure => headers.insert("api-key", secret_header(key)?),
            };
        }
        // the content type is added where the body is: twice is refused by strict servers
        Ok(Self {
            base_url: base,
            query,
            headers,
            key: key.map_or_else(|| SecretString::from(""), |key| SecretString::from(key.expose_secret().trim())),
            secrets,
            is_azure: scheme == Scheme::Azure || classify::is_azure(base_url),
        })
    }

    /// Base URL and query, without secrets: for keys of calls, for pace and for reports.
    fn shown(&self) -> String {
        if self.query.is_empty() {
            return redact::identity(&self.base_url);
        }
        let query: Vec<String> = self.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        redact::identity(&format!("{}?{}", self.base_url, query.join("&")))
    }
}

impl Config for Endpoint {
    fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }

    fn query(&self) -> Vec<(&str, &str)> {
        self.query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    fn api_base(&self) -> &str {
        &self.base_url
    }

    fn api_key(&self) -> &SecretString {
        &self.key
    }
}

/// A chat model of an OpenAI-compatible server.
pub struct OpenAiChat {
    client: Client<Endpoint>,
    endpoint: String,
    model: String,
    /// How structured replies are asked for; falls from schema to JSON mode to plain text as the server refuses.
    format: AtomicU8,
    let_through: Vec<String>,
}

impl std::fmt::Debug for OpenAiChat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiChat")
            .field("endpoint", &self.endpoint)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl OpenAiChat {
    /// A model behind `base_url` (with its `/v1`; a query such as `?api-version=…` is sent with every request).
    ///
    /// # Errors
    /// When the base URL or the key cannot be used.
    pub fn new(base_url: &str, key: Option<&SecretString>, model: &str, http: &SharedHttp) -> Result<Self, Failure> {
        Self::at(ModelServer { scheme: Scheme::OpenAi, base_url, key }, model, http)
    }

    /// A model of a server of either scheme.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn at(server: ModelServer<'_>, model: &str, http: &SharedHttp) -> Result<Self, Failure> {
        let endpoint = Endpoint::new(server, model)?;
        let shown = endpoint.shown();
        let service = SendOnce {
            client: http.client.clone(),
            timeout: http.settings.request_timeout,
            max_reply_bytes: http.settings.max_reply_bytes,
        };
        let client = Client::build(http.client.clone(), endpoint).with_http_service(service);
        let (model, format) = (model.to_owned(), AtomicU8::new(Format::Schema as u8));
        Ok(Self { client, endpoint: shown, model, format, let_through: Vec::new() })
    }

    /// Sends parameters of these names too.
    #[must_use]
    pub(super) fn letting_through(self, parameters: &[String]) -> Self {
        Self { let_through: parameters.to_vec(), ..self }
    }

    fn secrets(&self) -> &Secrets {
        &self.client.config().secrets
    }

    /// Notes that the server refused `asked`. True when there is something simpler to ask for.
    fn ask_simpler(&self, asked: Format) -> bool {
        let Some(simpler) = asked.simpler() else { return false };
        self.format.fetch_max(simpler as u8, Ordering::Relaxed);
        true
    }

    fn failed(&self, fault: Fault, seen: &Exchange, asked: Format, structured: bool) -> AttemptError {
        let simpler = match &fault {
            Fault::Response { status, body } => {
                structured && classify::is_schema_refusal(*status, body) && self.ask_simpler(asked)
            }
            Fault::Broken { .. } => false,
        };
        let mut failed = fault.failed(seen, self.secrets(), self.client.config().is_azure);
        if simpler {
            failed.adapted = true;
            let words = format!("{}; asking in a simpler way", failed.failure.message);
            failed.failure = Failure::transient("no_json_schema", words);
        }
        failed
    }

    /// Sends the request and reads the completion, through async-openai.
    async fn send(&self, body: &WireRequest<'_>, trace: Option<&StepTrace>) -> Result<Seen, Unserved> {
        let mut chat = self.client.chat();
        if let Some(trace) = trace {
            chat = chat.header(TRACEPARENT, trace.next_traceparent()).map_err(unserved)?;
        }
        chat.create_byot(body).await.map_err(unserved)
    }

    fn reply(&self, completion: Completion, seen: &Exchange) -> Result<ChatReply, AttemptError> {
        if let Some(error) = completion.error {
            // routers answer 200 with the upstream's error inside
            let status = error.get("code").and_then(|code| code.as_u64()).and_then(|code| u16::try_from(code).ok());
            let status = status.filter(|status| (400..600).contains(status)).unwrap_or(502);
            let body = serde_json::json!({ "error": error }).to_string();
            let fault = Fault::Response { status, body: body.into_bytes() };
            return Err(fault.failed(seen, self.secrets(), self.client.config().is_azure));
        }
        completion
            .into_reply()
            .map(|reply| reply.without(self.secrets()))
            .ok_or_else(|| classify::transport(Transport::Garbage, seen.status, "it holds no choice", self.secrets()))
    }
}

#[async_trait]
impl ChatModel for OpenAiChat {
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn model(&self) -> &str {
        &self.model
    }

    async fn attempt(&self, request: &ChatRequest, trace: Option<&StepTrace>) -> Attempt {
        let format = Format::from(self.format.load(Ordering::Relaxed));
        let body = WireRequest { model: &self.model, request, format, let_through: &self.let_through };
        let begun = Instant::now();
        let sent = self.send(&body, trace).await;
        let duration_us = begun.elapsed().as_micros() as u64;
        let (result, pace) = match sent {
            Ok(Seen { seen, completion }) => (self.reply(completion, &seen), seen.pace),
            Err(Unserved { seen, fault }) => {
                (Err(self.failed(fault, &seen, format, request.schema.is_some())), seen.pace)
            }
        };
        Attempt { result, pace, duration_us }
    }
}

/// What async-openai says of a request: our service's own words, or why there was none.
fn unserved(error: OpenAIError) -> Unserved {
    let broken = |kind, error: &dyn std::error::Error| Fault::broken(kind, error.to_string()).into();
    match error {
        OpenAIError::Boxed(error) => match error.downcast::<Unserved>() {
            Ok(unserved) => *unserved,
            Err(other) => broken(Transport::Unsendable, other.as_ref()),
        },
        OpenAIError::JSONDeserialize(error, _) => broken(Transport::Garbage, &error),
        other => broken(Transport::Unsendable, &other),
    }
}

#[cfg(test)]
mod tests;
