//! The HTTP side: routes, transport faults, start and stop.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, RawQuery, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    admin,
    anthropic::{self, MessagesRequest},
    config::{LiveConfig, SimConfig, Used},
    connections::{Bounds, serve},
    core::{Admission, Core, Ticket},
    door::Doorkeeper,
    draw::{RequestKey, RequestKind},
    embed::embed,
    error::{ApiError, ConfigError, StartError},
    fault::FaultKind,
    outage::{About, Outage, OutageFigures},
    reply::{choice, is_judge},
    request::{ChatRequest, EmbeddingRequest},
    responses,
    stats::Stats,
    strike::{Early, hang, strike},
    wire::{ReplyHead, chat_body, chat_events, embeddings_body},
};

/// How long stopping waits for requests in flight.
const STOP: Duration = Duration::from_secs(5);

/// Starts simulators.
#[derive(Debug)]
pub struct Sim;

impl Sim {
    /// Starts one on the current runtime; it listens when this returns.
    ///
    /// # Errors
    /// Settings that cannot be used, an address that cannot be listened on, or a ledger that cannot be written.
    pub async fn start(config: SimConfig) -> Result<RunningSim, StartError> {
        config.check()?;
        let (listener, address) = listen(config.listen).await?;
        let (admin, admin_address) = listen(config.admin).await?;
        let core = Arc::new(Core::new(config)?);
        let stop = core.stop.clone();
        let doorkeeper = Doorkeeper::new(Arc::clone(&core), listener, address);
        let server = serve(doorkeeper, router(Arc::clone(&core)), Bounds::USUAL, stop.clone());
        let questions = admin::router().with_state(Arc::clone(&core));
        let admin = serve(admin, questions, Bounds::USUAL, stop.clone());
        let task = tokio::spawn(async move {
            tokio::join!(server, admin);
        });
        let (base_url, admin_url) = (format!("http://{address}/v1"), format!("http://{admin_address}"));
        Ok(RunningSim { base_url, admin_url, address, core, stop, task })
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let listen_error = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen_error)?;
    let address = listener.local_addr().map_err(listen_error)?;
    Ok((listener, address))
}

/// A running simulator; it stops when this is dropped.
#[derive(Debug)]
pub struct RunningSim {
    /// What clients use as base URL: `http://127.0.0.1:PORT/v1`.
    pub base_url: String,
    /// Where questions about the simulator itself are answered, also while it refuses connections: `http://127.0.0.1:PORT`.
    pub admin_url: String,
    /// Where it listens.
    pub address: SocketAddr,
    core: Arc<Core>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl RunningSim {
    /// The figures so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Forgets figures, tries and use of limits.
    pub fn reset(&self) {
        self.core.reset();
    }

    /// Keys, limits, latency and faults as they are now.
    #[must_use]
    pub fn live(&self) -> LiveConfig {
        LiveConfig::clone(&self.core.live())
    }

    /// Changes keys, limits, latency and faults for all later requests.
    ///
    /// # Errors
    /// Settings that cannot be used; nothing is changed then.
    pub fn control(&self, change: impl FnOnce(&mut LiveConfig)) -> Result<(), ConfigError> {
        let mut live = self.live();
        change(&mut live);
        live.check()?;
        self.core.set_live(live);
        Ok(())
    }

    /// Sets an outage; the answer is its number.
    ///
    /// # Errors
    /// An outage that means nothing.
    pub fn set_outage(&self, outage: Outage) -> Result<u64, ConfigError> {
        outage.check()?;
        Ok(self.core.set_outage(outage))
    }

    /// Ends all outages, those included that have not begun.
    pub fn end_outages(&self) {
        self.core.end_outages(None);
    }

    /// All outages, in the order in which they were set, with what was seen of them.
    #[must_use]
    pub fn outages(&self) -> Vec<OutageFigures> {
        self.core.outage_figures()
    }

    /// Stops listening, lets requests in flight end for up to 5 s (hanging ones end at once), and returns the figures.
    pub async fn stop(mut self) -> Stats {
        self.stop.cancel();
        if tokio::time::timeout(STOP, &mut self.task).await.is_err() {
            self.task.abort();
        }
        self.core.stats()
    }
}

impl Drop for RunningSim {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn router(core: Arc<Core>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/responses", post(respond_to))
        .route("/v1/embeddings", post(embeddings))
        .route("/v1/messages", post(messages))
        .route("/openai/deployments/{deployment}/chat/completions", post(azure_chat))
        .route("/openai/deployments/{deployment}/embeddings", post(azure_embeddings))
        .route("/v1/models", get(models))
        .route("/v1/key", get(spent_as_openrouter))
        .route("/key/info", get(spent_as_litellm))
        .merge(admin::router())
        .fallback(async || {
            ApiError::new(StatusCode::NOT_FOUND, "invalid_request_error", None, "unknown path: the simulator serves /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/messages, /v1/models, /openai/deployments/NAME, /healthz, /stats, /reset, /outages and /control")
        })
        .method_not_allowed_fallback(async || {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", Some("method_not_supported"), "Not allowed with this HTTP method.")
        })
        .layer(DefaultBodyLimit::max(64 << 20))
        .with_state(core)
}

async fn chat(State(core): State<Arc<Core>>, headers: HeaderMap, body: Bytes) -> Response {
    let mut ticket = Ticket::open(&core, RequestKind::Chat);
    let response = answer_chat(&core, &mut ticket, &headers, &body).await.unwrap_or_else(Early::openai);
    ticket.answered(response.status());
    response
}

async fn respond_to(State(core): State<Arc<Core>>, headers: HeaderMap, body: Bytes) -> Response {
    let mut ticket = Ticket::open(&core, RequestKind::Chat);
    let response = answer_responses(&core, &mut ticket, &headers, &body).await.unwrap_or_else(Early::openai);
    ticket.answered(response.status());
    response
}

async fn messages(State(core): State<Arc<Core>>, headers: HeaderMap, body: Bytes) -> Response {
    let mut ticket = Ticket::open(&core, RequestKind::Chat);
    let response = answer_messages(&core, &mut ticket, &headers, &body)
        .await
        .unwrap_or_else(|early| early.response(anthropic::error_response));
    ticket.answered(response.status());
    response
}

/// Azure's form of an OpenAI request: an API version in the query, the key in its own header, the deployment in the path.
fn azure(query: Option<&str>, headers: &HeaderMap) -> Result<(), ApiError> {
    let version = query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("api-version=")));
    if !version || !headers.contains_key("api-key") {
        let (code, message) = if version {
            ("401", "Access denied due to invalid subscription key or wrong API endpoint.")
        } else {
            ("404", "Resource not found")
        };
        let status = if version { StatusCode::UNAUTHORIZED } else { StatusCode::NOT_FOUND };
        return Err(ApiError::new(status, "invalid_request_error", Some(code), message));
    }
    Ok(())
}

async fn azure_chat(state: State<Arc<Core>>, RawQuery(query): RawQuery, headers: HeaderMap, body: Bytes) -> Response {
    match azure(query.as_deref(), &headers) {
        Ok(()) => chat(state, headers, body).await,
        Err(error) => error.into_response(),
    }
}

async fn azure_embeddings(
    state: State<Arc<Core>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match azure(query.as_deref(), &headers) {
        Ok(()) => embeddings(state, headers, body).await,
        Err(error) => error.into_response(),
    }
}

async fn embeddings(State(core): State<Arc<Core>>, headers: HeaderMap, body: Bytes) -> Response {
    let mut ticket = Ticket::open(&core, RequestKind::Embedding);
    let response = answer_embeddings(&core, &mut ticket, &headers, &body).await.unwrap_or_else(Early::openai);
    ticket.answered(response.status());
    response
}

async fn answer_chat(core: &Core, ticket: &mut Ticket, headers: &HeaderMap, body: &[u8]) -> Result<Response, Early> {
    let account = account(headers);
    let request = ChatRequest::parse(body, draw(headers))?;
    let (prompt_tokens, admission) = admit_chat(core, ticket, &request, account).await?;

    let choices: Vec<_> =
        (0..request.choices).map(|index| choice(&core.config, &request, index, admission.fault)).collect();
    let completion = choices.iter().map(|choice| choice.tokens).sum();
    let used = Used { prompt: prompt_tokens, cached: cached(core, prompt_tokens), cache_write: 0, completion };
    let head = paid(core, request.key, &request.model, used, &admission);
    let (content_type, parts) = if request.stream {
        ("text/event-stream", chat_events(&head, &choices, request.include_usage))
    } else {
        ("application/json", halves(chat_body(&head, &choices, request.tool.as_deref()), &admission))
    };
    Ok(respond(request.key, &admission, content_type, parts))
}

async fn answer_responses(
    core: &Core,
    ticket: &mut Ticket,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Response, Early> {
    let account = account(headers);
    let request = responses::parse(body, draw(headers))?;
    let (prompt_tokens, admission) = admit_chat(core, ticket, &request, account).await?;

    let choice = choice(&core.config, &request, 0, admission.fault);
    let cached = cached(core, prompt_tokens);
    let used = Used { prompt: prompt_tokens, cached, cache_write: 0, completion: choice.tokens };
    let head = paid(core, request.key, &request.model, used, &admission);
    let (content_type, parts) = if request.stream {
        ("text/event-stream", responses::response_events(&head, &choice))
    } else {
        ("application/json", halves(responses::response_body(&head, &choice), &admission))
    };
    Ok(respond(request.key, &admission, content_type, parts))
}

async fn answer_messages(
    core: &Core,
    ticket: &mut Ticket,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Response, Early> {
    let account = account(headers);
    let MessagesRequest { chat: request, tool } = MessagesRequest::parse(headers, body, draw(headers))?;
    let (prompt_tokens, admission) = admit_chat(core, ticket, &request, account).await?;

    let choice = choice(&core.config, &request, 0, admission.fault);
    let cached = cached(core, prompt_tokens);
    let cache_write = if request.writes_cache { (prompt_tokens - cached) / 2 } else { 0 };
    let used = Used { prompt: prompt_tokens, cached, cache_write, completion: choice.tokens };
    let head = paid(core, request.key, &request.model, used, &admission);
    let tool = tool.as_deref();
    let (content_type, parts) = if request.stream {
        ("text/event-stream", anthropic::message_events(&head, &choice, tool))
    } else {
        ("application/json", halves(anthropic::message_body(&head, &choice, tool), &admission))
    };
    let mut response = respond(request.key, &admission, content_type, parts);
    admission.announced.write_anthropic(response.headers_mut());
    Ok(response)
}

/// What happens to a chat before its reply is made: outages, key, model, context, limits, latency. Returns its prompt tokens too.
async fn admit_chat(
    core: &Core,
    ticket: &mut Ticket,
    request: &ChatRequest<'_>,
    account: &str,
) -> Result<(u64, Admission), Early> {
    let kind = if is_judge(request) { RequestKind::Judge } else { RequestKind::Chat };
    let has = |text: &str| request.messages.iter().any(|message| message.text.contains(text));
    let about = About { key: request.key, kind, model: &request.model, account, has: &has };
    let forced = strike(core, ticket, &about).await?;
    core.authorise(account)?;
    core.check_model(&request.model)?;
    let prompt_tokens = count_prompt(core, request);
    check_context(core, prompt_tokens, "messages")?;
    let worst_case = prompt_tokens.saturating_add(request.max_output.unwrap_or(0).saturating_mul(request.choices));
    let admission = core.admit(&about, worst_case, forced)?;
    pass_time(core, &admission).await?;
    Ok((prompt_tokens, admission))
}

fn count_prompt(core: &Core, request: &ChatRequest<'_>) -> u64 {
    let texts = request.messages.iter().map(|message| message.text.as_ref());
    core.config.tokens.count_chat(texts, request.schema_text)
}

/// The part of a prompt that is said to come from a cache.
fn cached(core: &Core, prompt_tokens: u64) -> u64 {
    (prompt_tokens as f64 * core.config.cached_share) as u64
}

async fn answer_embeddings(
    core: &Core,
    ticket: &mut Ticket,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Response, Early> {
    let account = account(headers);
    let request = EmbeddingRequest::parse(body, draw(headers))?;
    let has = |text: &str| request.inputs.iter().any(|input| input.contains(text));
    let about = About { key: request.key, kind: RequestKind::Embedding, model: &request.model, account, has: &has };
    let forced = strike(core, ticket, &about).await?;
    core.authorise(account)?;
    core.check_model(&request.model)?;
    let prompt_tokens = request.inputs.iter().map(|text| core.config.tokens.count_embedded(text)).sum();
    check_context(core, prompt_tokens, "input")?;
    let admission = core.admit(&about, prompt_tokens, forced)?;
    pass_time(core, &admission).await?;

    let dimensions = request.dimensions.unwrap_or(core.config.embed_dimensions);
    let vectors = request.inputs.iter().map(|text| embed(&request.model, text, dimensions));
    let used = Used { prompt: prompt_tokens, ..Used::default() };
    let head = paid(core, request.key, &request.model, used, &admission);
    let body = embeddings_body(&head, vectors, request.base64);
    Ok(respond(request.key, &admission, "application/json", halves(body, &admission)))
}

/// The API key, which names the account.
fn account(headers: &HeaderMap) -> &str {
    // Anthropic and Azure have headers of their own
    if let Some(key) = ["x-api-key", "api-key"].iter().find_map(|name| headers.get(*name)?.to_str().ok()) {
        return key.trim();
    }
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    authorization.strip_prefix("Bearer ").unwrap_or_default().trim()
}

fn draw(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-bench-draw").map(|value| value.to_str().unwrap_or("not ascii"))
}

fn check_context(core: &Core, prompt_tokens: u64, param: &str) -> Result<(), ApiError> {
    let max = core.config.max_context;
    if prompt_tokens <= max {
        return Ok(());
    }
    let message = format!(
        "This model's maximum context length is {max} tokens. However, your input resulted in {prompt_tokens} tokens. Please reduce the length of the input."
    );
    Err(ApiError::invalid(Some("context_length_exceeded"), Some(param), message))
}

/// Latency, then the faults that answer with an error or not at all.
async fn pass_time(core: &Core, admission: &Admission) -> Result<(), ApiError> {
    if !admission.delay.is_zero() {
        tokio::time::sleep(admission.delay).await;
    }
    match admission.fault {
        Some(FaultKind::Http500) => {
            let message = "The server had an error while processing your request. Sorry about that!";
            let error = ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", None, message);
            Err(error.announcing(admission.announced))
        }
        Some(FaultKind::Http503) => Err(ApiError::overloaded().announcing(admission.announced)),
        Some(FaultKind::Http429) => {
            let message = "Rate limit reached. Please try again in 20ms.";
            let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "requests", Some("rate_limit_exceeded"), message);
            Err(ApiError { retry_after_ms: Some(20), ..error }.announcing(admission.announced))
        }
        Some(FaultKind::Hang) => Err(hang(core).await.announcing(admission.announced)),
        _ => Ok(()),
    }
}

/// Notes what a reply to a request of this model used; the head of the reply says it.
fn paid<'a>(core: &Core, key: RequestKey, model: &'a str, used: Used, admission: &Admission) -> ReplyHead<'a> {
    core.paid(key, model, used, arrives_whole(admission));
    ReplyHead { key, seed: core.config.seed, model, used }
}

fn arrives_whole(admission: &Admission) -> bool {
    !matches!(admission.fault, Some(FaultKind::Cut | FaultKind::Garbage))
}

/// A body as one part, or as two where it will be cut or garbled.
fn halves(body: Vec<u8>, admission: &Admission) -> Vec<Bytes> {
    let body = Bytes::from(body);
    if arrives_whole(admission) { vec![body] } else { vec![body.slice(..body.len() / 2), body.slice(body.len() / 2..)] }
}

fn respond(key: RequestKey, admission: &Admission, content_type: &'static str, mut parts: Vec<Bytes>) -> Response {
    let is_stream = content_type == "text/event-stream";
    let whole_length: usize = parts.iter().map(Bytes::len).sum();
    if !arrives_whole(admission) {
        parts.truncate(parts.len().div_ceil(2));
    }
    let mut response = match admission.fault {
        Some(FaultKind::Cut) => Response::new(cut_body(parts)),
        fault => {
            if is_stream && fault == Some(FaultKind::Garbage) {
                parts.push(Bytes::from_static(b"data: {\"choices\": [{\"del\n\n"));
            }
            if is_stream {
                Response::new(Body::from_stream(stream::iter(parts.into_iter().map(Ok::<_, std::io::Error>))))
            } else {
                Response::new(parts.pop().map_or_else(Body::empty, Body::from))
            }
        }
    };
    if admission.fault == Some(FaultKind::Cut) && !is_stream {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(whole_length));
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(id) = HeaderValue::from_str(&format!("req_{:032x}_{}", key.0, admission.nth)) {
        headers.insert("x-request-id", id);
    }
    headers.insert("openai-processing-ms", HeaderValue::from(admission.delay.as_millis() as u64));
    admission.announced.write(headers);
    response
}

/// Sends the parts and then breaks the connection.
fn cut_body(parts: Vec<Bytes>) -> Body {
    // the pause lets what was sent leave before the connection goes
    let broken = stream::once(async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Err(std::io::Error::other("cut by the simulator"))
    });
    Body::from_stream(stream::iter(parts.into_iter().map(Ok)).chain(broken))
}

/// What was paid so far, in dollars.
fn spent(core: &Core, headers: &HeaderMap) -> Result<f64, ApiError> {
    core.authorise(account(headers))?;
    Ok(core.stats().cost_pico_usd as f64 / 1e12)
}

async fn spent_as_openrouter(State(core): State<Arc<Core>>, headers: HeaderMap) -> Result<Json<Value>, ApiError> {
    Ok(Json(json!({"data": {"label": "sim", "usage": spent(&core, &headers)?}})))
}

async fn spent_as_litellm(State(core): State<Arc<Core>>, headers: HeaderMap) -> Result<Json<Value>, ApiError> {
    Ok(Json(json!({"info": {"spend": spent(&core, &headers)?}})))
}

async fn models(State(core): State<Arc<Core>>, headers: HeaderMap) -> Result<Json<Value>, ApiError> {
    core.authorise(account(&headers))?;
    let mut names: Vec<&str> = core.config.prices.keys().map(String::as_str).collect();
    if names.is_empty() {
        names = vec!["sim-chat", "sim-embedding", "sim-judge"];
    }
    let data: Vec<Value> = names
        .into_iter()
        .map(|id| json!({"id": id, "object": "model", "created": 1_704_067_200, "owned_by": "bench-sim"}))
        .collect();
    Ok(Json(json!({"object": "list", "data": data})))
}
