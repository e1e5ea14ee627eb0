//! Single attempts against a real local server, with real sockets.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    response::IntoResponse,
    routing::post,
};
use bench_proto::{
    call::{CallOutcome, Phase},
    failure::FailureClass,
    ids::{RunId, RunNo, TaskKey},
    money::PicoUsd,
    step::StepNo,
    trace::{RunTrace, TraceContext, TraceId, span_of_call},
};
use bench_store::Allowance;
use bench_testkit::raw_request::{assert_each_header_once, hear_one};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;
use crate::{
    PaceHint, ReplySchema,
    anthropic::AnthropicChat,
    backoff::BackoffSettings,
    budget::LocalBudget,
    caller::{CallContext, CallSettings, Caller, CallerParts, Named},
    gates::Gates,
    prices, registry,
    stop::StopFlag,
};

const KEY: &str = "sk-test-0123456789abcdef";

/// What a test server does with a request: (number of the request, headers, URI, body) → response.
type Answer = fn(usize, &HeaderMap, &Uri, Value) -> axum::response::Response;

#[derive(Clone)]
struct Server {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Server {
    async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let server = Self { address: listener.local_addr().expect("bound"), requests: Arc::default() };
        let app = Router::new()
            .route(
                "/v1/chat/completions",
                post(move |State(requests): State<Arc<AtomicUsize>>, uri: Uri, headers: HeaderMap, body: Bytes| async move {
                    let number = requests.fetch_add(1, Ordering::SeqCst);
                    answer(number, &headers, &uri, serde_json::from_slice(&body).unwrap_or(Value::Null))
                }),
            )
            .with_state(server.requests.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        server
    }

    /// A server that reads a request, writes `bytes`, and keeps or drops the connection.
    async fn raw(bytes: &'static [u8], hold: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let server = Self { address: listener.local_addr().expect("bound"), requests: Arc::default() };
        let requests = server.requests.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let requests = requests.clone();
                tokio::spawn(async move {
                    let mut buffer = [0; 4096];
                    let _ = socket.read(&mut buffer).await;
                    requests.fetch_add(1, Ordering::SeqCst);
                    let _ = socket.write_all(bytes).await;
                    if hold {
                        tokio::time::sleep(Duration::from_secs(600)).await;
                    }
                });
            }
        });
        server
    }

    fn model_with(&self, settings: HttpSettings, query: &str) -> OpenAiChat {
        let http = SharedHttp::new(settings).expect("a client");
        let url = format!("http://{}/v1{query}", self.address);
        OpenAiChat::new(&url, Some(&SecretString::from(KEY)), "gpt-4o-mini", &http).expect("builds")
    }

    fn model(&self) -> OpenAiChat {
        self.model_with(HttpSettings { request_timeout: Duration::from_secs(5), ..HttpSettings::default() }, "")
    }

    fn count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn request() -> ChatRequest {
    ChatRequest::saying(&["hello"], 16)
}

fn completion(text: &str) -> axum::response::Response {
    axum::Json(json!({
        "id": "c", "object": "chat.completion", "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 8, "completion_tokens": 3, "total_tokens": 11}
    }))
    .into_response()
}

fn error_of(attempt: Attempt) -> AttemptError {
    let shown = format!("{attempt:?}");
    assert!(!shown.contains(KEY), "{shown}");
    attempt.result.expect_err("a failure")
}

#[tokio::test]
async fn an_attempt_sends_what_it_should_and_reads_what_came() {
    let server = Server::start(|_, headers, uri, body| {
        assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(uri.query(), Some("api-version=1"));
        assert_eq!(body["max_completion_tokens"], 16);
        let headers = [
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "1s"),
        ];
        (headers, completion("hi")).into_response()
    })
    .await;
    let model = server.model_with(HttpSettings::default(), "?api-version=1");
    let attempt = model.attempt(&request(), None).await;
    let reply = attempt.result.expect("a reply");
    assert_eq!((reply.text.as_str(), reply.prompt_tokens, reply.completion_tokens), ("hi", Some(8), Some(3)));
    assert_eq!(attempt.pace, PaceHint { requests: Some((60, 59, 1000)), ..PaceHint::default() });
    assert!(attempt.duration_us > 0);
    assert_eq!(model.endpoint(), format!("http://{}/v1?api-version=1", server.address));
    let model = server.model_with(HttpSettings::default(), "?api-version=1&key=s3cret-of-mine");
    assert_eq!(model.endpoint(), format!("http://{}/v1?api-version=1&key=***", server.address));
}

#[tokio::test]
async fn the_query_of_a_base_url_is_sent_as_it_is_written() {
    let server = Server::start(|_, _, uri, _| {
        assert_eq!(uri.query(), Some("key=a%3D%2Fb&api-version=1"));
        completion("x")
    })
    .await;
    let model = server.model_with(HttpSettings::default(), "?key=a%3D%2Fb&api-version=1");
    assert_eq!(model.attempt(&request(), None).await.result.expect("a reply").text, "x");
}

#[tokio::test]
async fn each_header_is_sent_once_by_every_provider() {
    let key = SecretString::from(KEY);
    for name in ["openai", "azure", "anthropic", "embeddings"] {
        let (address, heard) = hear_one().await;
        let http = SharedHttp::new(HttpSettings::default()).expect("a client");
        let url = format!("http://{address}/v1");
        let at = |scheme| ModelServer { scheme, base_url: &url, key: Some(&key) };
        let model: Box<dyn ChatModel> = match name {
            "anthropic" => Box::new(AnthropicChat::new(&url, Some(&key), "m", &http).expect("builds")),
            "embeddings" => {
                let of = embeddings::OpenAiEmbeddings::at(at(Scheme::OpenAi), "m", &http);
                Box::new(of.expect("builds"))
            }
            "azure" => Box::new(OpenAiChat::at(at(Scheme::Azure), "m", &http).expect("builds")),
            _ => Box::new(OpenAiChat::new(&url, Some(&key), "m", &http).expect("builds")),
        };
        let _ = model.attempt(&request(), None).await;
        assert_each_header_once(&heard.await.expect("no panic"));
    }
}

#[tokio::test]
async fn p20_requests_of_a_traced_step_bring_its_context() {
    let server = Server::start(|_, headers, _, _| {
        let sent = headers.get("traceparent").and_then(|value| value.to_str().ok()).unwrap_or_default();
        completion(sent)
    })
    .await;
    let model = server.model();
    let run = RunTrace::new(&RunId("r".into()), &bench_store::conformance::spec().limits.trace);
    let (task, step) = (TaskKey::question(0, 0), StepNo::ANSWER);
    let replied = |attempt: Attempt| attempt.result.expect("a reply").text;
    for number in 0..2 {
        let (asking, mut last) = (run.step("q", task, step), String::new());
        for _ in 0..=number {
            last = replied(model.attempt(&request(), Some(&asking)).await);
        }
        let context = TraceContext::parse(&last).expect("a context");
        assert_eq!(context.trace, TraceId::of_question(&RunId("r".into()), "q"));
        assert_eq!(context.span, span_of_call(&context.trace, task, step, number));
    }
    assert_eq!(replied(model.attempt(&request(), None).await), "", "without a collector nothing is sent along");
}

#[tokio::test]
async fn no_failure_is_repeated_by_the_client() {
    let answers: [(Answer, &str, Option<u64>); 6] = [
        (|_, _, _, _| StatusCode::INTERNAL_SERVER_ERROR.into_response(), "http_500", None),
        (
            |_, _, _, _| (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")], "slow").into_response(),
            "rate_limited",
            Some(1000),
        ),
        (
            |_, _, _, _| (StatusCode::TOO_MANY_REQUESTS, [("retry-after-ms", "20")]).into_response(),
            "rate_limited",
            Some(20),
        ),
        (
            |_, _, _, _| (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "2")]).into_response(),
            "http_503",
            Some(2000),
        ),
        (|_, _, _, _| (StatusCode::FOUND, [("location", "/elsewhere")]).into_response(), "redirected", None),
        (|_, _, _, _| (StatusCode::OK, "not json").into_response(), "garbage", None),
    ];
    for (answer, code, retry_after_ms) in answers {
        let server = Server::start(answer).await;
        let attempt = server.model().attempt(&request(), None).await;
        assert_eq!(attempt.pace.retry_after_ms, retry_after_ms, "{code}");
        let error = error_of(attempt);
        assert_eq!(error.failure.code, code);
        assert_eq!(error.failure.retry_after_ms, retry_after_ms, "{code}");
        assert_eq!(server.count(), 1, "{code}: exactly one attempt");
    }
}

#[tokio::test]
async fn the_key_is_never_shown() {
    let server = Server::start(|_, headers, _, _| {
        let sent = headers["authorization"].to_str().expect("text").to_owned();
        let body = json!({"error": {"message": format!("Incorrect API key provided: {sent}. Bye"), "code": "invalid_api_key"}});
        (StatusCode::UNAUTHORIZED, axum::Json(body)).into_response()
    })
    .await;
    let model = server.model();
    let error = error_of(model.attempt(&request(), None).await);
    assert_eq!((error.failure.class, error.failure.code.as_str()), (FailureClass::Terminal, "invalid_api_key"));
    assert!(error.failure.message.contains("[key]"), "{}", error.failure.message);
    assert!(!format!("{model:?} {:?}", model.client).contains(KEY));
}

#[tokio::test]
async fn time_outs_and_cuts_may_have_been_billed_and_refusals_not() {
    let settings = HttpSettings { request_timeout: Duration::from_millis(150), ..HttpSettings::default() };
    const HEAD: &[u8] =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"choices\": [";
    for (bytes, hold, code, status) in [
        (b"".as_slice(), true, "timeout", 0),
        (HEAD, true, "timeout", 200),
        (b"", false, "cut", 0),
        (HEAD, false, "cut", 200),
        (b"HTTP/1.1 2", false, "cut", 0),
    ] {
        let server = Server::raw(bytes, hold).await;
        let error = error_of(server.model_with(settings, "").attempt(&request(), None).await);
        assert_eq!((error.failure.code.as_str(), error.status), (code, status), "{error:?}");
        assert!(error.maybe_billed && error.failure.class == FailureClass::Transient, "{error:?}");
        assert_eq!(server.count(), 1, "{code}: exactly one attempt");
    }
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("bound");
    let server = Server { address: gone, requests: Arc::default() };
    let error = error_of(server.model().attempt(&request(), None).await);
    assert_eq!((error.failure.code.as_str(), error.maybe_billed), ("connect", false), "{error:?}");
    assert!(error.failure.message.to_lowercase().contains("refused"), "{}", error.failure.message);
}

#[tokio::test]
async fn what_azure_refuses_may_have_been_billed_unless_it_says_that_nothing_was_done() {
    const WITHHELD: &str = r#"{"error":{"message":"filtered","code":"content_filter"}}"#;
    let server = Server::start(|number, _, _, _| match number {
        0 | 1 => (StatusCode::BAD_REQUEST, "the request failed").into_response(),
        2 | 3 => (StatusCode::REQUEST_TIMEOUT, "").into_response(),
        4 | 5 => (StatusCode::BAD_REQUEST, WITHHELD).into_response(),
        6 | 7 => axum::Json(json!({"error": {"code": 400, "message": "the request failed"}})).into_response(),
        _ => (StatusCode::TOO_MANY_REQUESTS, "").into_response(),
    })
    .await;
    let http = SharedHttp::new(HttpSettings::default()).expect("a client");
    let (url, key) = (format!("http://{}/v1", server.address), SecretString::from(KEY));
    let of = |scheme| {
        let server = ModelServer { scheme, base_url: &url, key: Some(&key) };
        OpenAiChat::at(server, "gpt-4o", &http).expect("builds")
    };
    let (azure, openai) = (of(Scheme::Azure), of(Scheme::OpenAi));
    for (on_azure, elsewhere) in [(true, false), (true, true), (true, true), (true, false), (false, false)] {
        let [of_azure, of_openai] =
            [error_of(azure.attempt(&request(), None).await), error_of(openai.attempt(&request(), None).await)];
        let billed = (of_azure.maybe_billed, of_openai.maybe_billed);
        assert_eq!(billed, (on_azure, elsewhere), "{of_azure:?} {of_openai:?}");
    }
}

#[tokio::test]
async fn replies_are_bounded() {
    let server = Server::start(|_, _, _, _| completion(&"x".repeat(20_000))).await;
    let small = HttpSettings { max_reply_bytes: 10_000, ..HttpSettings::default() };
    let error = error_of(server.model_with(small, "").attempt(&request(), None).await);
    assert_eq!((error.failure.code.as_str(), error.maybe_billed), ("reply_too_large", true));
    assert!(server.model().attempt(&request(), None).await.result.is_ok());
}

#[tokio::test]
async fn errors_inside_a_200_are_errors() {
    let server = Server::start(|_, _, _, _| {
        axum::Json(json!({"error": {"code": 429, "message": "upstream is busy"}})).into_response()
    })
    .await;
    let error = error_of(server.model().attempt(&request(), None).await);
    assert_eq!((error.status, error.failure.code.as_str()), (429, "rate_limited"));
    let server = Server::start(|_, _, _, _| axum::Json(json!({"object": "list"})).into_response()).await;
    let error = error_of(server.model().attempt(&request(), None).await);
    assert_eq!((error.failure.code.as_str(), error.maybe_billed), ("garbage", true));
}

#[tokio::test]
async fn a_key_in_the_query_of_a_base_url_is_repeated_by_no_error_and_no_reply() {
    const IN_QUERY: &str = "zq9open0sesame7value";
    let server = Server::start(|number, _, uri, _| match number {
        0 => (StatusCode::NOT_FOUND, format!("Cannot POST {uri}")).into_response(),
        1 => {
            axum::Json(json!({"error": {"code": 400, "message": format!("Invalid URL (POST {uri})")}})).into_response()
        }
        2 => axum::Json(json!({"choices": uri.to_string()})).into_response(),
        _ => completion(&format!("you asked {uri}, with {KEY}")),
    })
    .await;
    let model = server.model_with(HttpSettings::default(), &format!("?key={IN_QUERY}"));
    for _ in 0..3 {
        let error = error_of(model.attempt(&request(), None).await).failure.message;
        assert!(error.contains("[key]") && !error.contains(IN_QUERY), "{error}");
    }
    let reply = model.attempt(&request(), None).await.result.expect("a reply");
    assert_eq!(reply.text, "you asked /v1/chat/completions?key=[key], with [key]");
    assert!(!format!("{:?}", model.client.config()).contains(IN_QUERY));
}

#[tokio::test]
async fn servers_without_schemas_are_asked_in_a_simpler_way_and_remembered() {
    let server = Server::start(|_, _, _, body| match body["response_format"]["type"].as_str() {
        None => completion("{}"),
        Some(format) => {
            let message = format!("response_format '{format}' is not supported");
            (StatusCode::BAD_REQUEST, axum::Json(json!({"error": {"message": message}}))).into_response()
        }
    })
    .await;
    let model = server.model();
    let mut request = request();
    request.schema = Some(ReplySchema { name: "verdict".to_owned(), schema: json!({"type": "object"}) });
    for _ in 0..2 {
        let error = error_of(model.attempt(&request, None).await);
        assert!(error.adapted && error.failure.code == "no_json_schema", "{error:?}");
    }
    for _ in 0..3 {
        assert!(model.attempt(&request, None).await.result.is_ok());
    }
    assert_eq!(server.count(), 5, "one request an attempt");
}

#[tokio::test]
async fn one_pool_serves_many_calls_at_once() {
    let server = Server::start(|_, _, _, _| completion("hi")).await;
    let model = Arc::new(server.model());
    for _ in 0..2 {
        let calls: Vec<_> = (0..100)
            .map(|_| {
                let model = model.clone();
                tokio::spawn(async move { model.attempt(&request(), None).await.result.is_ok() })
            })
            .collect();
        for call in calls {
            assert!(call.await.expect("no panic"));
        }
    }
    assert_eq!(server.count(), 200);
}

#[tokio::test]
async fn a_caller_gets_through_a_bad_day() {
    let server = Server::start(|number, _, _, _| match number {
        0 => StatusCode::BAD_GATEWAY.into_response(),
        1 => (StatusCode::TOO_MANY_REQUESTS, [("retry-after-ms", "30")]).into_response(),
        2 => (StatusCode::OK, "{\"choices\": [").into_response(),
        3 => completion("perhaps"),
        _ => completion("yes"),
    })
    .await;
    let account = registry::Account {
        name: "sim".to_owned(),
        base_url: format!("http://{}/v1", server.address),
        key: None,
        limits: Default::default(),
        counts_used_tokens: false,
        asks_stream_usage: true,
        parameters: Vec::new(),
    };
    let http = SharedHttp::new(HttpSettings::default()).expect("a client");
    let model = registry::build_chat("openai", "gpt-4o-mini", &account, &http).expect("builds");
    let backoff = BackoffSettings { initial_interval: Duration::from_millis(1), ..BackoffSettings::default() };
    let budget = LocalBudget::new(Some(PicoUsd(1_000_000_000_000)), PicoUsd::ZERO);
    let caller = Caller::new(CallerParts {
        named: Named::default(),
        gate: Gates::default().gate(&Allowance::default()),
        model,
        account: account.name,
        pace: None,
        returns_unused_reply: false,
        stop: StopFlag::new(),
        budget: budget.clone(),
        price: prices::price_of("gpt-4o-mini", &bench_proto::spec::Limits::default()),
        store: None,
        ledger: None,
        route: None,
        settings: CallSettings { backoff, ..CallSettings::default() },
    });
    let context = CallContext {
        run: RunNo(1),
        task: TaskKey::question(0, 0),
        question_id: "q:0",
        draw: 0,
        phase: Phase::Answer,
        lineage: "l",
        known_calls: false,
        failed_attempts: 0,
        trace: None,
    };
    let accept = |reply: &ChatReply| {
        if reply.text == "yes" { Ok(()) } else { Err("no".to_owned()) }
    };
    let result = caller.call(context, &request(), &accept).await;
    assert!(result.outcome.is_ok(), "{result:?}");
    let statuses: Vec<u16> = result.timing.calls.iter().map(|call| call.2).collect();
    assert_eq!(statuses, [502, 429, 200, 200, 200]);
    let outcomes: Vec<CallOutcome> = result.records.iter().map(|record| record.outcome).collect();
    assert_eq!(outcomes, [CallOutcome::Uncertain, CallOutcome::Rejected, CallOutcome::Accepted]);
    assert_eq!((result.usage.calls, result.usage.retries, result.usage.rate_limited), (1, 4, 1));
    let uncertain = result.records[0].cost;
    assert_eq!(budget.state().spent, result.usage.cost.saturating_add(uncertain));
    assert_eq!(server.count(), 5);
}
