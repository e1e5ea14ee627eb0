//! What passes: every byte but those that are named.

use bench_meter::{Ended, MeterSettings, Paths, StoredReply, Tokens, Upstream};
use serde_json::json;

use crate::{
    ledger::{REAL_KEY, meter, meter_to, real_key},
    scripted::{Scripted, exchange, reply, request, streamed},
};

/// A body that no writer of JSON would write.
const ODD: &str = "{ \"model\" :\t\"gpt-4o\",\n  \"logit_bias\": {\"b\":1, \"a\": [1.0, 1e2]},\"messages\":[{\"content\":\"h\\u00e9llo \\/ \u{e9}\",\"role\":\"user\"}] , \"temperature\":0 }\n\n";
const COMPLETION: &str = "{\"id\":\"c\",  \"model\":\"gpt-4o-2024\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\"finish_reason\":\"stop\"}],\n\"odd\": 1.50,\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"total_tokens\":11,\"prompt_tokens_details\":{\"cached_tokens\":4}},\"service_tier\":\"default\"}\n";

#[tokio::test]
async fn bodies_are_equal_byte_for_byte_and_the_use_is_told() {
    let headers = "content-type: application/json\r\nx-request-id: req_1\r\nopenai-processing-ms: 7\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nkeep-alive: timeout=5\r\nconnection: close\r\n";
    let upstream = Scripted::saying(reply("200 OK", headers, COMPLETION)).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    let sent =
        "openai-organization: org-1\r\nx-stainless-lang: python\r\naccept-encoding: gzip, deflate\r\nte: trailers\r\n";
    let text = request("/m/run-1/conv-26/3/v1/chat/completions?api-version=2025%2D01-01", sent, ODD.as_bytes());
    let got = exchange(meter.address, &text).await;
    assert_eq!((got.status, got.body.as_slice()), (200, COMPLETION.as_bytes()));
    assert_eq!(got.header("x-request-id").as_deref(), Some("req_1"));
    assert_eq!(got.header("openai-processing-ms").as_deref(), Some("7"));
    assert_eq!(got.head.matches("set-cookie:").count(), 2);
    assert_eq!(got.header("keep-alive"), None);
    assert_eq!(got.header("content-length"), Some(COMPLETION.len().to_string()));

    let [came] = &upstream.requests()[..] else { panic!("one request") };
    assert_eq!(came.body, ODD.as_bytes());
    assert!(came.head.starts_with("POST /v1/chat/completions?api-version=2025%2D01-01 HTTP/1.1\r\n"), "{}", came.head);
    assert_eq!(came.header("authorization"), Some(format!("Bearer {REAL_KEY}").as_str()));
    assert_eq!(came.header("host"), Some(upstream.address.to_string().as_str()));
    assert_eq!(came.header("x-stainless-lang"), Some("python"));
    assert_eq!(came.header("accept-encoding"), Some("identity"));
    assert_eq!((came.header("openai-organization"), came.header("te")), (None, None));
    assert!(!came.head.contains("token-1"));

    let told = meter.ledger.only().await;
    let usage = Tokens { prompt: 9, completion: 2, cached: 4, ..Tokens::default() };
    assert_eq!((told.usage, told.counted_here, told.ended, told.status), (Some(usage), false, Ended::Complete, 200));
    assert_eq!((told.model.as_str(), told.service_tier.as_deref()), ("gpt-4o-2024", Some("default")));
    assert_eq!(told.reply.as_deref(), Some(COMPLETION.as_bytes()), "it is cacheable");
    assert!(told.to_first_byte.is_some_and(|first| first <= told.latency) && !told.client_left);
    let noted = ("run-1".to_owned(), Some("conv-26".to_owned()), Some(3), "token-1".to_owned(), "gpt-4o".to_owned());
    assert_eq!(meter.ledger.seen().asked, [noted]);
}

#[tokio::test]
async fn each_operation_tells_its_use() {
    let usage = |prompt, completion, cached| Tokens { prompt, completion, cached, ..Tokens::default() };
    for (path, body, replied, expected) in [
        (
            "embeddings",
            json!({"model": "e", "input": "x"}),
            json!({"object": "list", "data": [{"embedding": [0.1, 0.2]}], "model": "e", "usage": {"prompt_tokens": 5, "total_tokens": 5}}),
            usage(5, 0, 0),
        ),
        (
            "chat/completions",
            json!({"model": "t", "messages": []}),
            json!({"choices": [{"message": {"content": "y"}}], "usage": {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}}),
            usage(32, 103, 0),
        ),
        (
            "completions",
            json!({"model": "c", "prompt": "x"}),
            json!({"choices": [{"text": "y"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
            usage(1, 2, 0),
        ),
        (
            "responses",
            json!({"model": "r", "input": "x"}),
            json!({"object": "response", "error": null, "output": [], "usage": {"input_tokens": 3, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 2}}}),
            usage(3, 4, 2),
        ),
        (
            "messages",
            json!({"model": "a", "max_tokens": 9, "messages": []}),
            json!({"type": "message", "content": [], "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 2}}),
            usage(5, 4, 2),
        ),
    ] {
        let replied = replied.to_string();
        let upstream = Scripted::saying(reply("200 OK", "content-type: application/json\r\n", &replied)).await;
        let meter = meter(&upstream.base(), MeterSettings::default()).await;
        let body = body.to_string();
        let got = exchange(meter.address, &request(&format!("/m/run-1/v1/{path}"), "", body.as_bytes())).await;
        assert_eq!(got.body, replied.as_bytes(), "{path}");
        assert_eq!(upstream.requests()[0].body, body.as_bytes(), "{path}");
        let told = meter.ledger.only().await;
        assert_eq!((told.usage, told.counted_here, told.ended), (Some(expected), false, Ended::Complete), "{path}");
    }
}

#[tokio::test]
async fn p34_a_parameter_that_nobody_here_knows_passes_where_its_operator_lets_it_through() {
    const BODY: &str = r#"{"model":"m","messages":[],"chat_template":"{{ messages }}","speed":"fast"}"#;
    let upstream = Scripted::saying(reply("200 OK", "content-type: application/json\r\n", COMPLETION)).await;
    let text = request("/m/run-1/v1/chat/completions", "", BODY.as_bytes());
    let to = |parameters: &[&str]| {
        let mut to = Upstream::new(upstream.base(), real_key());
        to.parameters = parameters.iter().map(|&name| name.to_owned()).collect();
        to
    };
    for (let_through, param) in [
        (&[][..], "chat_template"),
        (&["chat_template"][..], "speed"),
        (&["CHAT_TEMPLATE", "speed"][..], "chat_template"),
    ] {
        let meter = meter_to(to(let_through), MeterSettings::default()).await;
        let got = exchange(meter.address, &text).await;
        assert_eq!((got.status, got.json()["error"]["param"].as_str()), (400, Some(param)), "{let_through:?}");
        let said = got.json()["error"]["message"].to_string();
        assert!(said.contains("leave it out") && said.contains(".parameters"), "{said}");
        let seen = meter.ledger.seen();
        assert_eq!((seen.sent, seen.uncertain, seen.refused.len()), (0, 0, 1), "nothing left, and it is counted");
    }
    assert!(upstream.requests().is_empty());
    let meter = meter_to(to(&["speed", "chat_template"]), MeterSettings::default()).await;
    assert_eq!(exchange(meter.address, &text).await.status, 200);
    let [came] = &upstream.requests()[..] else { panic!("one request") };
    assert_eq!(came.body, BODY.as_bytes());
}

#[tokio::test]
async fn the_list_of_models_passes_and_costs_nothing() {
    let upstream = Scripted::saying(reply("200 OK", "content-type: application/json\r\n", "{\"data\":[]}")).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    let text = b"GET /m/run-1/v1/models HTTP/1.1\r\nhost: localhost\r\napi-key: token-1\r\nconnection: close\r\n\r\n";
    let got = exchange(meter.address, text).await;
    assert_eq!((got.status, got.body.as_slice()), (200, b"{\"data\":[]}".as_slice()));
    assert!(upstream.requests()[0].head.starts_with("GET /v1/models HTTP/1.1"));
    let told = meter.ledger.only().await;
    assert_eq!((told.usage, told.ended), (None, Ended::Complete));
}

#[tokio::test]
async fn azure_and_anthropic_get_the_key_in_their_own_header() {
    let replied = reply("200 OK", "content-type: application/json\r\n", COMPLETION);
    for (paths, name, path, expected) in [
        (
            Paths::Azure,
            "api-key",
            "openai/deployments/gpt-4o/chat/completions?api-version=2025-01-01",
            "POST /openai/deployments/gpt-4o/chat/completions?api-version=2025-01-01 ",
        ),
        (Paths::Anthropic, "x-api-key", "v1/messages?beta=true", "POST /v1/messages?beta=true "),
    ] {
        let upstream = Scripted::saying(replied.clone()).await;
        let mut headers = http::HeaderMap::new();
        headers.insert(name, http::HeaderValue::from_static(REAL_KEY));
        let base = format!("http://{}", upstream.address);
        let mut to = Upstream::new(base, headers);
        to.paths = paths;
        let meter = meter_to(to, MeterSettings::default()).await;
        let sent = format!("{name}: token-1\r\n");
        let body = b"{\"model\":\"gpt-4o\"}";
        exchange(meter.address, &request(&format!("/m/run-1/{path}"), &sent, body)).await;
        let [came] = &upstream.requests()[..] else { panic!("one request") };
        assert!(came.head.starts_with(expected), "{}", came.head);
        assert_eq!((came.header(name), came.header("authorization")), (Some(REAL_KEY), None));
        assert_eq!(meter.ledger.only().await.ended, Ended::Complete);
    }
}

#[tokio::test]
async fn a_use_that_is_not_told_or_cannot_be_true_is_counted_here() {
    let hello =
        json!({"choices": [{"message": {"role": "assistant", "content": "hello world"}, "finish_reason": "stop"}]});
    for (usage, is_doubted) in [
        (json!(null), false),
        (json!({"prompt_tokens": -1, "completion_tokens": 2}), false),
        (json!({"prompt_tokens": 9_000_000_000_u64, "completion_tokens": 2}), true),
        (json!({"prompt_tokens": 9, "completion_tokens": 9_000_000_000_u64}), true),
        // servers that do not count
        (json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}), false),
        (json!({"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 6}}), true),
    ] {
        let mut body = hello.clone();
        body["usage"] = usage.clone();
        let upstream = Scripted::saying(reply("200 OK", "content-type: application/json\r\n", &body.to_string())).await;
        let meter = meter(&upstream.base(), MeterSettings::default()).await;
        let sent = br#"{"model":"gpt-4o","messages":[{"role":"user","content":"hello world"}]}"#;
        exchange(meter.address, &request("/m/run-1/v1/chat/completions", "", sent)).await;
        let told = meter.ledger.only().await;
        let counted = Tokens { prompt: 2 + 4 + 3, completion: 2, ..Tokens::default() };
        assert_eq!(
            (told.usage, told.counted_here, told.doubted.is_some()),
            (Some(counted), true, is_doubted),
            "{usage}"
        );
    }
}

#[tokio::test]
async fn what_is_no_reply_is_told_and_passes() {
    for (kind, body, ended) in [
        ("text/html", "<html>welcome</html>", Ended::Page),
        // its braces are no object
        ("text/html", "\n<!doctype html><style>p{color:red}</style>", Ended::Page),
        ("application/json", "{\"error\":{\"message\":\"no\"}}", Ended::NotAReply),
        ("application/json", "[1]", Ended::NotAReply),
    ] {
        let upstream = Scripted::saying(reply("200 OK", &format!("content-type: {kind}\r\n"), body)).await;
        let meter = meter(&upstream.base(), MeterSettings::default()).await;
        let sent = br#"{"model":"m","messages":[],"temperature":0}"#;
        let got = exchange(meter.address, &request("/m/run-1/v1/chat/completions", "", sent)).await;
        assert_eq!((got.status, got.body.as_slice()), (200, body.as_bytes()));
        let told = meter.ledger.only().await;
        assert_eq!((told.usage, told.ended, told.reply), (None, ended, None), "{body}");
    }
}

#[tokio::test]
async fn errors_and_redirects_pass_as_they_are_but_for_a_key_that_they_show() {
    let shown =
        json!({"error": {"message": format!("Incorrect API key provided: {REAL_KEY}."), "code": "invalid_api_key"}})
            .to_string();
    let limited = "{\"error\": {\"message\":\"slow down\"}}\n";
    for (status, headers, body, wait) in [
        ("401 Unauthorized", "content-type: application/json\r\n", shown.as_str(), None),
        ("429 Too Many Requests", "retry-after: 7\r\nx-ratelimit-remaining-requests: 0\r\n", limited, Some(7)),
        ("307 Temporary Redirect", "location: http://127.0.0.1:1/elsewhere\r\n", "", None),
        ("500 Internal Server Error", "", "oops", None),
    ] {
        let upstream = Scripted::saying(reply(status, headers, body)).await;
        let meter = meter(&upstream.base(), MeterSettings::default()).await;
        let got =
            exchange(meter.address, &request("/m/run-1/v1/embeddings", "", br#"{"model":"m","input":"x"}"#)).await;
        let code: u16 = status[..3].parse().expect("a status");
        let expected = body.replace(REAL_KEY, &"*".repeat(REAL_KEY.len()));
        assert_eq!((got.status, String::from_utf8_lossy(&got.body).into_owned()), (code, expected.clone()));
        if let Some((name, value)) = headers.split_once(": ") {
            assert_eq!(got.header(name).as_deref(), value.lines().next());
        }
        let told = meter.ledger.only().await;
        assert_eq!((told.status, told.ended, told.usage, told.reply), (code, Ended::Refused(code), None, None));
        assert_eq!(told.retry_after.map(|wait| wait.as_secs()), wait);
        assert_eq!(told.error.as_deref(), Some(expected.as_bytes()));
        assert_eq!(upstream.requests().len(), 1, "nothing is repeated or followed");
    }
}

#[tokio::test]
async fn a_key_in_a_reply_of_success_or_its_headers_is_hidden_too() {
    let shown =
        format!("{{\"model\":\"m\",\"data\":[],\"sent\":\"Bearer {REAL_KEY}\",\"usage\":{{\"prompt_tokens\":1}}}}");
    let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{REAL_KEY}\"}}}}]}}\n\ndata: [DONE]\n\n");
    let starred = |text: &str| text.replace(REAL_KEY, &"*".repeat(REAL_KEY.len()));
    let headers = format!("content-type: application/json\r\nx-sent: Bearer {REAL_KEY}\r\nx-request-id: r\r\n");
    let list = b"GET /m/run-1/v1/models HTTP/1.1\r\nhost: localhost\r\napi-key: token-1\r\nconnection: close\r\n\r\n";
    let embed = request("/m/run-1/v1/embeddings", "", br#"{"model":"m","input":"x"}"#);
    let stream = request("/m/run-1/v1/chat/completions", "", br#"{"model":"m","stream":true,"messages":[]}"#);
    for (text, said, body) in [
        (list.to_vec(), reply("200 OK", &headers, &shown), &shown),
        (embed.clone(), reply("200 OK", &headers, &shown), &shown),
        (embed, reply("400 Bad Request", &headers, &shown), &shown),
        (stream.clone(), streamed(&event, 5), &event),
        (stream, streamed(&event, usize::MAX), &event),
    ] {
        let upstream = Scripted::saying(said).await;
        let meter = meter(&upstream.base(), MeterSettings { keep_replies: true, ..MeterSettings::default() }).await;
        let got = exchange(meter.address, &text).await;
        assert_eq!(String::from_utf8_lossy(&got.body), starred(body));
        assert!(!got.head.contains(REAL_KEY) && got.header("x-sent").is_none(), "{}", got.head);
        let told = meter.ledger.only().await;
        let kept = told.reply.or(told.error).expect("kept");
        assert_eq!(String::from_utf8_lossy(&kept), starred(body), "nor is it kept");
    }
}

/// Many servers repeat the path that they were asked at, and some gateways want a key there.
#[tokio::test]
async fn keys_of_a_base_url_are_hidden_in_errors_replies_streams_and_headers() {
    const IN_PATH: &str = "zQ7kXp20Ld9RtW4m";
    const IN_QUERY: &str = "zq9open0sesame7value";
    let asked = format!("/{IN_PATH}/v1/embeddings?key={IN_QUERY}");
    let starred = |text: &str| {
        [IN_PATH, IN_QUERY].iter().fold(text.to_owned(), |text, key| text.replace(key, &"*".repeat(key.len())))
    };
    let (json, to) =
        ("content-type: application/json\r\n", format!("location: http://127.0.0.1:1{asked}\r\nx-request-id: r\r\n"));
    let error = json!({"error": {"message": format!("Invalid URL (POST {asked})")}}).to_string();
    let page = format!("<pre>Cannot POST {asked}</pre>");
    let shown = json!({"model": "m", "data": [], "asked": asked, "usage": {"prompt_tokens": 1}}).to_string();
    let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{asked}\"}}}}]}}\n\ndata: [DONE]\n\n");
    let list = b"GET /m/run-1/v1/models HTTP/1.1\r\nhost: localhost\r\napi-key: token-1\r\nconnection: close\r\n\r\n";
    let embed = request("/m/run-1/v1/embeddings", "", br#"{"model":"m","input":"x"}"#);
    let stream = request("/m/run-1/v1/chat/completions", "", br#"{"model":"m","stream":true,"messages":[]}"#);
    for (text, said, body) in [
        (list.to_vec(), reply("404 Not Found", json, &error), &error),
        (embed.clone(), reply("404 Not Found", "content-type: text/html\r\n", &page), &page),
        (embed.clone(), reply("308 Permanent Redirect", &to, &page), &page),
        (embed, reply("200 OK", &format!("{json}{to}"), &shown), &shown),
        (stream.clone(), streamed(&event, 5), &event),
        (stream, streamed(&event, usize::MAX), &event),
    ] {
        let upstream = Scripted::saying(said).await;
        let base = format!("http://{}/{IN_PATH}/v1?key={IN_QUERY}", upstream.address);
        let meter = meter(&base, MeterSettings { keep_replies: true, ..MeterSettings::default() }).await;
        let got = exchange(meter.address, &text).await;
        assert!(upstream.requests()[0].head.contains(&format!("/{IN_PATH}/v1/")), "it is asked with its keys");
        assert_eq!(String::from_utf8_lossy(&got.body), starred(body));
        assert!(!got.head.contains(IN_PATH) && !got.head.contains(IN_QUERY), "{}", got.head);
        assert_eq!(got.header("location"), None);
        let told = meter.ledger.only().await;
        let kept = told.reply.or(told.error).expect("kept");
        assert_eq!(String::from_utf8_lossy(&kept), starred(body), "nor is it kept");
    }
}

/// Such a secret tells nothing where it stands, and every reply has the word.
#[tokio::test]
async fn a_secret_that_is_a_plain_word_stays_in_replies_and_is_hidden_in_errors() {
    let body = r#"{"model":"m","choices":[{"message":{"role":"assistant","content":"tea"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let event = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\ndata: [DONE]\n\n";
    let json = "content-type: application/json\r\n";
    let starred = body.replace("assistant", "*********");
    let whole = request("/m/run-1/v1/chat/completions", "", br#"{"model":"m","messages":[]}"#);
    let stream = request("/m/run-1/v1/chat/completions", "", br#"{"model":"m","stream":true,"messages":[]}"#);
    for (text, said, expected) in [
        (whole.clone(), reply("200 OK", json, body), body),
        (stream, streamed(event, 5), event),
        (whole, reply("404 Not Found", json, body), starred.as_str()),
    ] {
        let upstream = Scripted::saying(said).await;
        let base = format!("http://{}/v1?token=assistant", upstream.address);
        let meter = meter(&base, MeterSettings::default()).await;
        let got = exchange(meter.address, &text).await;
        assert_eq!(String::from_utf8_lossy(&got.body), expected);
    }
}

#[tokio::test]
async fn no_client_leads_a_gateway_elsewhere() {
    let upstream = Scripted::saying(reply("200 OK", "content-type: application/json\r\n", COMPLETION)).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    let sent = "x-portkey-custom-host: https://evil.example\r\nhelicone-target-url: https://evil.example\r\nx-request-id: r-1\r\n";
    exchange(meter.address, &request("/m/run-1/v1/chat/completions", sent, ODD.as_bytes())).await;
    let [came] = &upstream.requests()[..] else { panic!("one request") };
    assert!(!came.head.contains("evil.example"), "{}", came.head);
    assert_eq!((came.header("x-request-id"), came.header("content-type")), (Some("r-1"), Some("application/json")));
}

#[tokio::test]
async fn a_stored_reply_needs_no_provider() {
    let upstream = Scripted::saying("").await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    meter.ledger.store(StoredReply::json(COMPLETION.into()));
    let got = exchange(meter.address, &request("/m/run-1/v1/chat/completions", "", ODD.as_bytes())).await;
    assert_eq!((got.status, got.body.as_slice()), (200, COMPLETION.as_bytes()));
    assert_eq!(got.header("content-type").as_deref(), Some("application/json"));
    let told = meter.ledger.only().await;
    assert_eq!((told.ended, told.usage.map(|usage| usage.prompt)), (Ended::Stored, Some(9)));
    assert_eq!((meter.ledger.seen().sent, upstream.requests().len()), (0, 0));
}

#[tokio::test]
async fn a_compressed_reply_that_nobody_asked_for_passes_unread() {
    let body = "\u{1f}not really gzip";
    let upstream =
        Scripted::saying(reply("200 OK", "content-type: application/json\r\ncontent-encoding: gzip\r\n", body)).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    let got = exchange(meter.address, &request("/m/run-1/v1/embeddings", "", br#"{"model":"m","input":"x"}"#)).await;
    assert_eq!((got.body.as_slice(), got.header("content-encoding").as_deref()), (body.as_bytes(), Some("gzip")));
    let told = meter.ledger.only().await;
    assert_eq!((told.usage, told.ended), (None, Ended::Complete));
}

#[tokio::test]
async fn a_key_in_no_header_of_a_log() {
    let upstream = Upstream::new("http://127.0.0.1:9/v1?key=zq9open0sesame7value", real_key());
    let shown = format!("{upstream:?}");
    assert!(!shown.contains(REAL_KEY) && !shown.contains("sesame"), "{shown}");
}
