//! Sending once: the Tower side, which reads what async-openai does not hand out, and requests that are made without it.

use std::{
    cell::RefCell,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use async_openai::{error::OpenAIError, middleware::HttpRequestFactory};
use bench_proto::trace::TRACEPARENT;
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use reqwest::Response;
use tower::{Layer, Service};

use super::{SharedHttp, headers, wire::Completion};
use crate::{
    AttemptError, PaceHint,
    classify::{self, Transport},
};

/// What the layer saw of one attempt.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    /// HTTP status; 0 before one came.
    pub(crate) status: u16,
    /// Pace headers.
    pub(crate) pace: PaceHint,
}

tokio::task_local! {
    /// The exchange of the attempt that this task is making: ties the layer to the call above async-openai.
    pub(super) static EXCHANGE: RefCell<Exchange>;
}

/// What the layer tells instead of a response that is not a chat completion.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// A status other than success.
    #[error("status {status}")]
    Response {
        /// The status.
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

impl From<Fault> for OpenAIError {
    fn from(fault: Fault) -> Self {
        Self::Boxed(Box::new(fault))
    }
}

impl Fault {
    fn broken(kind: Transport, detail: impl Into<String>) -> Self {
        Self::Broken { kind, detail: detail.into() }
    }

    /// What a `reqwest` error means; the URL is left out of the words.
    pub(crate) fn of(error: reqwest::Error) -> Self {
        let kind = match &error {
            error if error.is_builder() => Transport::Unsendable,
            error if error.is_connect() => Transport::Connect,
            error if error.is_timeout() => Transport::Timeout,
            _ => Transport::Cut,
        };
        Self::broken(kind, root_cause(&error.without_url()))
    }
}

impl Fault {
    /// What it means for the attempt; `key` is kept out of the words.
    pub(crate) fn failed(self, seen: &Exchange, key: Option<&str>) -> AttemptError {
        match self {
            Self::Response { status, body } => classify::response(status, &body, seen.pace.retry_after_ms, key),
            Self::Broken { kind, detail } => classify::transport(kind, seen.status, &detail, key),
        }
    }
}

impl SharedHttp {
    /// Posts a body of JSON once, with the context of the step that asks; what the headers said is told also when the body is bad.
    pub(crate) async fn post(
        &self,
        url: &reqwest::Url,
        mut headers: HeaderMap,
        body: Vec<u8>,
    ) -> (Exchange, Result<Vec<u8>, Fault>) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut request =
            self.client.post(url.clone()).headers(headers).timeout(self.settings.request_timeout).body(body);
        if let Some(traceparent) = crate::step_trace::next_traceparent() {
            request = request.header(TRACEPARENT, traceparent);
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return (Exchange::default(), Err(Fault::of(error))),
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

type Sending = Pin<Box<dyn Future<Output = Result<Response, Fault>> + Send>>;

/// Sends a request once, with the attempt's time limit.
#[derive(Debug, Clone)]
pub(super) struct SendOnce {
    pub(super) client: reqwest::Client,
    pub(super) timeout: Duration,
}

impl Service<HttpRequestFactory> for SendOnce {
    type Response = Response;
    type Error = Fault;
    type Future = Sending;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, factory: HttpRequestFactory) -> Sending {
        let Self { client, timeout } = self.clone();
        Box::pin(async move {
            let mut request = match factory.build().await {
                Ok(request) => request,
                Err(OpenAIError::Reqwest(error)) => return Err(Fault::of(error)),
                Err(other) => return Err(Fault::broken(Transport::Unsendable, other.to_string())),
            };
            *request.timeout_mut() = Some(timeout);
            if let Some(traceparent) = crate::step_trace::next_traceparent().and_then(|text| text.parse().ok()) {
                request.headers_mut().insert(TRACEPARENT, traceparent);
            }
            client.execute(request).await.map_err(Fault::of)
        })
    }
}

/// Notes status and pace headers, reads the body up to a limit, and lets only chat completions through: async-openai would
/// write the whole body of anything else into the log.
#[derive(Debug, Clone)]
pub(super) struct ObserveLayer {
    pub(super) max_reply_bytes: usize,
}

/// [`ObserveLayer`] around a service.
#[derive(Debug, Clone)]
pub(super) struct Observe<S> {
    inner: S,
    max_reply_bytes: usize,
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Observe<S> {
        Observe { inner, max_reply_bytes: self.max_reply_bytes }
    }
}

impl<S> Service<HttpRequestFactory> for Observe<S>
where
    S: Service<HttpRequestFactory, Response = Response, Error = Fault>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Fault;
    type Future = Sending;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, factory: HttpRequestFactory) -> Sending {
        let sending = self.inner.call(factory);
        let limit = self.max_reply_bytes;
        Box::pin(async move {
            let response = sending.await?;
            let status = response.status();
            let pace = headers::pace_hint(response.headers());
            // outside an attempt there is nobody to tell
            let _ = EXCHANGE.try_with(|exchange| {
                *exchange.borrow_mut() = Exchange { status: status.as_u16(), pace };
            });
            if !status.is_success() {
                // an error's words are worth having even when its body breaks off
                let mut body = Vec::new();
                let _ = read_body(response, limit, &mut body).await;
                return Err(Fault::Response { status: status.as_u16(), body });
            }
            let mut body = Vec::new();
            read_body(response, limit, &mut body).await?;
            if let Err(error) = serde_json::from_slice::<Completion>(&body) {
                return Err(Fault::broken(classify::unreadable(&body), error.to_string()));
            }
            Ok(Response::from(http::Response::new(body)))
        })
    }
}

/// Reads a body into `body`, at most `limit` bytes.
async fn read_body(mut response: Response, limit: usize, body: &mut Vec<u8>) -> Result<(), Fault> {
    if let Some(length) = response.content_length() {
        body.reserve_exact(usize::try_from(length).unwrap_or(limit).min(limit));
    }
    while let Some(chunk) = response.chunk().await.map_err(Fault::of)? {
        if body.len() + chunk.len() > limit {
            return Err(Fault::broken(Transport::TooLarge, format!("more than {limit} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(())
}
