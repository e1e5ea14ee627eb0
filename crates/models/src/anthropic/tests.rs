//! Single attempts against a real local server.

use std::net::SocketAddr;

use axum::{Router, body::Bytes, http::StatusCode, response::IntoResponse, routing::post};
use bench_proto::{
    failure::FailureClass,
    ids::{RunId, TaskKey},
    step::StepNo,
    trace::{RunTrace, TraceContext, TraceId},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::openai::HttpSettings;

const KEY: &str = "sk-ant-test-0123456789";

async fn server(answer: fn(&HeaderMap, Value) -> axum::response::Response) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let handler = move |headers: HeaderMap, body: Bytes| async move {
        answer(&headers, serde_json::from_slice(&body).unwrap_or(Value::Null))
    };
    let app = Router::new().route("/v1/messages", post(handler));
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

fn request() -> ChatRequest {
    ChatRequest::saying(&["hello"], 16)
}

async fn ask(address: SocketAddr, path: &str) -> Attempt {
    ask_traced(address, path, None).await
}

async fn ask_traced(address: SocketAddr, path: &str, trace: Option<&StepTrace>) -> Attempt {
    let http = SharedHttp::new(HttpSettings::default()).expect("a client");
    let key = SecretString::from(KEY);
    let model = AnthropicChat::new(&format!("http://{address}{path}"), Some(&key), "claude-x", &http).expect("builds");
    assert_eq!(model.endpoint(), format!("http://{address}/v1"));
    assert!(!format!("{model:?}").contains(KEY));
    model.attempt(&request(), trace).await
}

#[tokio::test]
async fn a_good_reply_and_what_was_sent() {
    let address = server(|headers, body| {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        assert_eq!((header("x-api-key").as_str(), header("anthropic-version").as_str()), (KEY, API_VERSION));
        assert_eq!(body["max_tokens"], 16);
        axum::Json(json!({
            "type": "message", "model": "claude-x", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 9, "output_tokens": 2},
        }))
        .into_response()
    })
    .await;
    for path in ["", "/v1"] {
        let reply = ask(address, path).await.result.expect("answered");
        assert_eq!((reply.text.as_str(), reply.prompt_tokens), ("hi", Some(9)));
    }
}

#[tokio::test]
async fn p20_requests_of_a_traced_step_bring_its_context() {
    let address = server(|headers, _| {
        let sent = headers.get("traceparent").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let content = json!([{"type": "text", "text": sent}]);
        axum::Json(json!({"type": "message", "model": "claude-x", "content": content, "stop_reason": "end_turn"}))
            .into_response()
    })
    .await;
    let run = RunTrace::new(&RunId("r".into()), &bench_store::conformance::spec().limits.trace);
    let step = run.step("q", TaskKey::question(0, 0), StepNo::ANSWER);
    let attempt = ask_traced(address, "", Some(&step)).await;
    let context = TraceContext::parse(&attempt.result.expect("a reply").text).expect("a context");
    assert_eq!(context.trace, TraceId::of_question(&RunId("r".into()), "q"));
    assert_eq!(ask(address, "").await.result.expect("a reply").text, "", "nothing outside of a step");
}

#[tokio::test]
async fn errors_say_what_they_mean_and_limits_are_read() {
    let address = server(|_, _| {
        let body = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded sk-ant-test-0123456789"}});
        let reset = (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(30)).to_string();
        let headers = [
            ("anthropic-ratelimit-requests-limit", "50".to_owned()),
            ("anthropic-ratelimit-requests-remaining", "10".to_owned()),
            ("anthropic-ratelimit-requests-reset", reset),
            ("retry-after", "2".to_owned()),
        ];
        (StatusCode::from_u16(529).expect("a status"), headers, axum::Json(body)).into_response()
    })
    .await;
    let attempt = ask(address, "/v1").await;
    let error = attempt.result.expect_err("overloaded");
    assert_eq!((error.failure.class, error.status, error.maybe_billed), (FailureClass::Transient, 529, false));
    assert_eq!(error.failure.retry_after_ms, Some(2000));
    assert!(error.failure.message.contains("Overloaded") && !error.failure.message.contains(KEY));
    let (limit, remaining, reset_ms) = attempt.pace.requests.expect("told");
    assert!((limit, remaining) == (50, 10) && (25_000..=30_000).contains(&reset_ms), "{reset_ms}");
}

#[tokio::test]
async fn a_reply_that_is_no_message_is_garbage_that_may_have_been_paid() {
    let address = server(|_, _| "{\"type\": \"mess".into_response()).await;
    let error = ask(address, "/v1").await.result.expect_err("garbage");
    assert_eq!((error.failure.code.as_str(), error.maybe_billed), ("garbage", true));
}
