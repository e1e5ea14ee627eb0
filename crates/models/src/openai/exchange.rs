//! Sending once: the Tower side, which reads what async-openai does not hand out, and requests that are made without it.
//!
//! async-openai hands the body of a response to the type that it is asked for, or the error of its service to whoever asked, and
//! nothing else. So both carry what was seen: [`Seen`] beside the completion, [`Unserved`] beside the fault.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use async_openai::{error::OpenAIError, middleware::HttpRequestFactory};
use bench_proto::{
    json_bound,
    redact::Secrets,
    trace::{StepTrace, TRACEPARENT},
};
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use reqwest::Response;
use serde::{Deserialize, Serialize};
use tower::Service;

use super::{SharedHttp, headers, wire::Completion};
use crate::{
    AttemptError, PaceHint,
    classify::{self, Transport},
};

/// Bytes that a reply may take in memory for each byte that it may have.
const MEMORY_TIMES: u64 = 32;

/// What was seen of one attempt beside its body.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Exchange {
    /// HTTP status; 0 before one came.
    pub(crate) status: u16,
    /// Pace headers.
    pub(crate) pace: PaceHint,
}

/// Why an attempt brought no body that can be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// A status other than success.
    #[error("status {status}")]
    Response {
        /// HTTP status code.
        status: u16,
        /// The body, cut at the largest reply.
        body: Vec<u8>,
    },
    /// No usable response.
    #[error("{detail}")]
    Broken {
        /// How it broke.
        kind: Transport,
        /// The cause in words.
        detail: String,
    },
}

/// A fault, with what was seen before it.
#[derive(Debug, thiserror::Error)]
#[error("{fault}")]
pub(super) struct Unserved {
    pub(super) seen: Exchange,
    pub(super) fault: Fault,
}

impl From<Fault> for Unserved {
    fn from(fault: Fault) -> Self {
        Self { seen: Exchange::default(), fault }
    }
}

impl From<Unserved> for OpenAIError {
    fn from(unserved: Unserved) -> Self {
        Self::Boxed(Box::new(unserved))
    }
}

/// A completion, with what was seen beside it.
#[derive(Debug, Deserialize)]
pub(super) struct Seen {
    pub(super) seen: Exchange,
    pub(super) completion: Completion,
}

impl Fault {
    pub(super) fn broken(kind: Transport, detail: impl Into<String>) -> Self {
        Self::Broken { kind, detail: detail.into() }
    }

    /// What a `reqwest` error means; the URL is left out of the words.
    pub(crate) fn from_client(error: reqwest::Error) -> Self {
        let kind = match &error {
            error if error.is_builder() => Transport::Unsendable,
            error if error.is_connect() => Transport::Connect,
            error if error.is_timeout() => Transport::Timeout,
            _ => Transport::Cut,
        };
        Self::broken(kind, root_cause(&error.without_url()))
    }

    /// What it means for the attempt; the account's secrets are kept out of the words.
    pub(crate) fn failed(self, seen: &Exchange, secrets: &Secrets, is_azure: bool) -> AttemptError {
        match self {
            Self::Response { status, body } => AttemptError {
                maybe_billed: classify::may_be_billed(status, &body, is_azure),
                ..classify::response(status, &body, seen.pace.retry_after_ms, secrets)
            },
            Self::Broken { kind, detail } => classify::transport(kind, seen.status, &detail, secrets),
        }
    }
}

impl SharedHttp {
    /// Posts a body of JSON once, with the trace of the step that asks; what the headers said is told also when the body is bad.
    pub(crate) async fn post(
        &self,
        url: &reqwest::Url,
        mut headers: HeaderMap,
        body: Vec<u8>,
        trace: Option<&StepTrace>,
    ) -> (Exchange, Result<Vec<u8>, Fault>) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut request =
            self.client.post(url.clone()).headers(headers).timeout(self.settings.request_timeout).body(body);
        if let Some(trace) = trace {
            request = request.header(TRACEPARENT, trace.next_traceparent());
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return (Exchange::default(), Err(Fault::from_client(error))),
        };
        let status = response.status();
        let seen = Exchange { status: status.as_u16(), pace: headers::pace_hint(response.headers()) };
        let mut body = Vec::new();
        let read = read_body(response, self.settings.max_reply_bytes, &mut body).await;
        if !status.is_success() {
            // an error's words are worth having even when its body breaks off
            return (seen, Err(Fault::Response { status: status.as_u16(), body }));
        }
        (seen, read.map(|()| body))
    }
}

/// The last error of a chain: the one that says something (`connection refused`).
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

type Sending = Pin<Box<dyn Future<Output = Result<Response, Unserved>> + Send>>;

/// Sends a request once, with the attempt's time limit. Reads the body up to a limit, and lets only chat completions through:
/// async-openai would write the whole body of anything else into the log.
#[derive(Debug, Clone)]
pub(super) struct SendOnce {
    pub(super) client: reqwest::Client,
    pub(super) timeout: Duration,
    pub(super) max_reply_bytes: usize,
}

impl Service<HttpRequestFactory> for SendOnce {
    type Response = Response;
    type Error = Unserved;
    type Future = Sending;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unserved>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, factory: HttpRequestFactory) -> Sending {
        let Self { client, timeout, max_reply_bytes } = self.clone();
        Box::pin(async move {
            let mut request = match factory.build().await {
                Ok(request) => request,
                Err(OpenAIError::Reqwest(error)) => return Err(Fault::from_client(error).into()),
                Err(other) => return Err(Fault::broken(Transport::Unsendable, other.to_string()).into()),
            };
            *request.timeout_mut() = Some(timeout);
            let response = client.execute(request).await.map_err(Fault::from_client)?;
            let seen = Exchange { status: response.status().as_u16(), pace: headers::pace_hint(response.headers()) };
            match read_completion(response, &seen, max_reply_bytes).await {
                Ok(body) => Ok(Response::from(http::Response::new(body))),
                Err(fault) => Err(Unserved { seen, fault }),
            }
        })
    }
}

/// The body of a response that is a chat completion, as the JSON of [`Seen`].
async fn read_completion(response: Response, seen: &Exchange, limit: usize) -> Result<Vec<u8>, Fault> {
    let status = response.status();
    if !status.is_success() {
        // an error's words are worth having even when its body breaks off
        let mut body = Vec::new();
        let _ = read_body(response, limit, &mut body).await;
        return Err(Fault::Response { status: status.as_u16(), body });
    }
    let unwritable = |error: serde_json::Error| Fault::broken(Transport::Garbage, error.to_string());
    let mut body = br#"{"seen":"#.to_vec();
    serde_json::to_writer(&mut body, seen).map_err(unwritable)?;
    body.extend_from_slice(br#","completion":"#);
    let before = body.len();
    read_body(response, limit, &mut body).await?;
    let completion = &body[before..];
    if let Err(error) = serde_json::from_slice::<Completion>(completion) {
        return Err(Fault::broken(classify::unreadable(completion), error.to_string()));
    }
    body.push(b'}');
    Ok(body)
}

/// Reads a body to the end of `body`, at most `limit` bytes.
pub(crate) async fn read_body(mut response: Response, limit: usize, body: &mut Vec<u8>) -> Result<(), Fault> {
    let before = body.len();
    if let Some(length) = response.content_length() {
        // and the brace that may be put around it
        body.reserve_exact(usize::try_from(length).unwrap_or(limit).min(limit) + 1);
    }
    while let Some(chunk) = response.chunk().await.map_err(Fault::from_client)? {
        if body.len() - before + chunk.len() > limit {
            return Err(Fault::broken(Transport::TooLarge, format!("more than {limit} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    // a few megabytes of small objects take gigabytes once they are read
    let most = (limit as u64).saturating_mul(MEMORY_TIMES);
    json_bound::check_memory(body.get(before..).unwrap_or_default(), most)
        .map_err(|error| Fault::broken(Transport::TooLarge, error.to_string()))
}
