//! What is refused, in whose words, and that nothing is forwarded.

use std::time::Duration;

use bench_meter::{MeterSettings, Paths, Refusal, Upstream};

use crate::{
    ledger::{FOREIGN_KEY, REAL_KEY, meter, meter_to, real_key},
    scripted::{Scripted, exchange, reply, request},
};

const CHAT: &str = "/m/run-1/v1/chat/completions";
const BODY: &[u8] = br#"{"model":"m","messages":[]}"#;

#[tokio::test]
async fn each_refusal_is_told_in_the_words_of_its_provider_and_nothing_is_sent() {
    let upstream = Scripted::saying(reply("200 OK", "", "{}")).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    let busy = Refusal::Busy { retry_after: Duration::from_millis(2500), reason: "20 s for its turn".to_owned() };
    let not_allowed = Refusal::ModelNotAllowed { model: "m".to_owned(), allowed: vec!["small".to_owned()] };
    for (refusal, status, code) in [
        (Refusal::UnknownRun, 404, "unknown_run"),
        (Refusal::ForeignKey, 401, "invalid_api_key"),
        (Refusal::RunEnded("completed".to_owned()), 403, "run_ended"),
        (not_allowed, 403, "model_not_allowed"),
        (Refusal::UnknownModel("m".to_owned()), 404, "model_not_found"),
        (Refusal::UnknownBank("b".to_owned()), 404, "unknown_bank"),
        (busy.clone(), 429, "rate_limit_exceeded"),
        (Refusal::OverBudget("5 USD are spent".to_owned()), 402, "insufficient_quota"),
        (Refusal::Stopped("resume it".to_owned()), 403, "run_stopped"),
        (Refusal::Unavailable("no store".to_owned()), 503, "meter_unavailable"),
    ] {
        meter.ledger.refuse(Some(refusal.clone()));
        let got = exchange(meter.address, &request(CHAT, "", BODY)).await;
        assert_eq!((got.status, got.json()["error"]["code"].as_str()), (status, Some(code)), "{refusal:?}");
        assert_eq!(got.header("retry-after"), (refusal == busy).then(|| "3".to_owned()).or(got.header("retry-after")));
        let got = exchange(meter.address, &request("/m/run-1/v1/messages", "", BODY)).await;
        assert_eq!((got.status, got.json()["type"].as_str()), (status, Some("error")), "{refusal:?}");
        assert!(!String::from_utf8_lossy(&got.body).contains(REAL_KEY));
        // each once, and only what somebody has to do something about
        let lasts = matches!(code, "model_not_allowed" | "model_not_found" | "unknown_bank");
        let told: Vec<&str> = meter.ledger.seen().refused.drain(..).map(|(code, _)| code).collect();
        assert_eq!(told, if lasts { vec![code; 2] } else { vec![] }, "{refusal:?}");
    }
    assert_eq!((upstream.requests().len(), meter.ledger.seen().sent), (0, 0));
}

#[tokio::test]
async fn who_asks_how_the_meter_is_needs_no_key_and_reaches_nothing_else() {
    let upstream = Scripted::saying(reply("200 OK", "", "{}")).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    let ask = |line: &str| format!("{line} HTTP/1.1\r\nhost: any.example\r\nconnection: close\r\n\r\n").into_bytes();
    for path in ["/healthz", "/readyz"] {
        let got = exchange(meter.address, &ask(&format!("GET {path}"))).await;
        assert_eq!((got.status, got.body.as_slice()), (200, &b"ok\n"[..]), "{path}");
        assert_ne!(exchange(meter.address, &ask(&format!("POST {path}"))).await.status, 200, "{path}");
        assert_ne!(exchange(meter.address, &ask(&format!("GET {path}/m/run-1"))).await.status, 200, "{path}");
    }
    assert!(upstream.requests().is_empty() && meter.ledger.seen().asked.is_empty(), "nobody was asked");
}

#[tokio::test]
async fn what_cannot_be_forwarded_is_not() {
    let upstream = Scripted::saying(reply("200 OK", "", "{}")).await;
    let meter = meter(&upstream.base(), MeterSettings { most_request_bytes: 4096, ..MeterSettings::default() }).await;
    let large = format!("{{\"model\":\"m\",\"input\":\"{}\"}}", "x".repeat(5000));
    let chunked = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer t\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len()
    );
    let get = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer t\r\nconnection: close\r\n\r\n")
            .into_bytes()
    };
    let without_key = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        BODY.len()
    );
    for (text, status, code) in [
        (request("/m/run-1/v1/files", "", BODY), 404, "unknown_url"),
        (request("/v1/chat/completions", "", BODY), 404, "unknown_url"),
        (request("/m/run-1/v1/models/../files", "", BODY), 404, "unknown_url"),
        (get(CHAT), 405, "method_not_supported"),
        (request("/m/run-1/v1/models", "", BODY), 405, "method_not_supported"),
        ([without_key.as_bytes(), BODY].concat(), 401, "invalid_api_key"),
        (request(CHAT, "", b"no json"), 400, "invalid_request"),
        (request(CHAT, "", b"{}"), 400, "invalid_request"),
        (request(CHAT, "", br#"{"model":"small,large","messages":[]}"#), 400, "invalid_request"),
        (request(CHAT, "", br#"{"model":"small","Model":"large"}"#), 400, "invalid_request"),
        (request(CHAT, "", br#"{"model":"small","max_tokens":-1}"#), 400, "invalid_request"),
        (request(CHAT, "", br#"{"model":"small","tools":[{"type":"web_search"}]}"#), 400, "invalid_request"),
        (request(&format!("{CHAT}?model=large"), "", BODY), 400, "invalid_request"),
        (request(CHAT, "", large.as_bytes()), 413, "request_too_large"),
        (chunked.into_bytes(), 413, "request_too_large"),
        (request(CHAT, "content-encoding: gzip\r\n", BODY), 415, "unsupported_encoding"),
        (request(CHAT, "content-type: multipart/form-data\r\n", BODY), 415, "unsupported_media_type"),
        (request(CHAT, "content-type: application/json; charset=utf-7\r\n", BODY), 415, "unsupported_media_type"),
    ] {
        let got = exchange(meter.address, &text).await;
        let shown = String::from_utf8_lossy(&text[..60.min(text.len())]).into_owned();
        assert_eq!((got.status, got.json()["error"]["code"].as_str()), (status, Some(code)), "{shown}");
        assert_eq!(got.header("x-should-retry").as_deref(), Some("false"), "{shown}");
        // what has no key of a run is of none
        let is_of_run = match code {
            "unknown_url" => text.starts_with(b"POST /m/run-1/"),
            _ => matches!(status, 400 | 413 | 415),
        };
        let told: Vec<&str> = meter.ledger.seen().refused.drain(..).map(|(code, _)| code).collect();
        assert_eq!(told, if is_of_run { vec![code] } else { vec![] }, "{shown}");
    }
    assert_eq!(upstream.requests().len(), 0);
    assert!(meter.ledger.seen().asked.is_empty(), "nobody was asked");
}

#[tokio::test]
async fn who_has_no_key_of_a_run_is_counted_for_none_whatever_the_body() {
    let upstream = Scripted::saying(reply("200 OK", "", "{}")).await;
    let meter = meter(&upstream.base(), MeterSettings { most_request_bytes: 4096, ..MeterSettings::default() }).await;
    let large = "content-length: 5000";
    for (path, headers, status, code) in [
        (CHAT, "content-encoding: gzip\r\ncontent-length: 27", 401, "invalid_api_key"),
        (CHAT, large, 401, "invalid_api_key"),
        ("/m/run-1/v1/files", large, 404, "unknown_url"),
    ] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {FOREIGN_KEY}\r\n{headers}\r\nconnection: close\r\n\r\n"
        );
        let got = exchange(meter.address, head.as_bytes()).await;
        assert_eq!((got.status, got.json()["error"]["code"].as_str()), (status, Some(code)), "{path} {headers}");
    }
    assert!(meter.ledger.seen().refused.is_empty() && upstream.requests().is_empty());
}

#[tokio::test]
async fn what_is_kept_of_a_body_that_cannot_be_read_has_nothing_of_it() {
    let upstream = Scripted::saying(reply("200 OK", "", "{}")).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    for (body, kind) in [
        (r#""my secret plan""#, "it is something else"),
        (r#"["my secret plan"]"#, "it is something else"),
        (r#"{"model":"my secret plan"#, "it ends too early"),
        (r#"{"model":"m"} my secret plan"#, "it is no JSON"),
        ("{\n\nmy secret plan}", "it is no JSON"),
    ] {
        let got = exchange(meter.address, &request(CHAT, "", body.as_bytes())).await;
        assert_eq!(got.status, 400, "{body}");
        let (code, why) = meter.ledger.seen().refused.pop().expect("is told");
        let kept = format!("the body is no JSON object that can be read: {kind}");
        assert_eq!((code, why), ("invalid_request", kept), "{body}");
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn what_has_no_address_at_its_provider_is_told_to_whoever_counts() {
    let mut of_another = Upstream::new("http://127.0.0.1:1/openai/deployments/n", real_key());
    of_another.paths = Paths::Azure;
    let azure = meter_to(of_another, MeterSettings::default()).await;
    let plain = meter("http://127.0.0.1:1/v1", MeterSettings::default()).await;
    let of_deployment = "/m/run-1/openai/deployments/small/chat/completions";
    for (meter, path, status, code) in
        [(azure, CHAT, 404, "model_not_found"), (plain, of_deployment, 400, "invalid_request")]
    {
        let got = exchange(meter.address, &request(path, "", BODY)).await;
        assert_eq!((got.status, got.json()["error"]["code"].as_str()), (status, Some(code)));
        let seen = meter.ledger.seen();
        let told: Vec<&str> = seen.refused.iter().map(|(code, _)| *code).collect();
        assert_eq!((told, seen.asked.len(), seen.sent, seen.uncertain), (vec![code], 1, 0, 0));
    }
}

#[tokio::test]
async fn loopback_answers_nobody_who_was_led_here_by_another_name() {
    let upstream = Scripted::saying(reply("200 OK", "", "{}")).await;
    let settings = MeterSettings { hosts: vec!["host.docker.internal".to_owned()], ..MeterSettings::default() };
    let meter = meter(&upstream.base(), settings).await;
    let text = |head: &str| {
        let head = format!(
            "POST {CHAT} HTTP/1.1\r\n{head}\r\nauthorization: Bearer t\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            BODY.len()
        );
        [head.as_bytes(), BODY].concat()
    };
    for head in [
        "host: evil.example",
        "host: localhost\r\norigin: https://evil.example",
        "host: localhost\r\norigin: null",
        "accept: */*",
    ] {
        assert_eq!(exchange(meter.address, &text(head)).await.status, 403, "{head}");
    }
    assert!(upstream.requests().is_empty());
    for head in
        ["host: 127.0.0.1:9", "host: localhost\r\norigin: http://localhost:3000", "host: host.docker.internal:9"]
    {
        assert_eq!(exchange(meter.address, &text(head)).await.status, 200, "{head}");
    }
}
