//! Streams: each event as it came, wherever the pieces end; the use is asked for and taken out again.

use bench_meter::{Ended, MeterSettings, Tokens, Upstream};

use crate::{
    ledger::{meter, meter_to, real_key},
    scripted::{Scripted, exchange, request, streamed},
};

/// What a client gets that did not ask for the use.
const PLAIN: &str = "data: {\"id\":\"c\",\"model\":\"gpt-4o-x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n: keep alive\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\u{e9}llo \\\"usage\\\":null\"}}]}\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const USAGE: &str = "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"total_tokens\":11}}\n\n";

/// The same events from a provider that was asked for the use.
fn asked_for() -> String {
    let with_null =
        PLAIN.replace("}]}\n\n", "}],\"usage\":null}\n\n").replace("}]}\r\n\r\n", "}] , \"usage\" : null}\r\n\r\n");
    assert_ne!(with_null, PLAIN);
    format!("{with_null}{USAGE}{DONE}")
}

/// What the client gets where commas were written with spaces.
fn expected() -> String {
    format!("{}{DONE}", PLAIN.replace("}]}\r\n\r\n", "}] }\r\n\r\n"))
}

const WITHOUT: &str = "{\"model\":\"gpt-4o\", \"stream\": true,\"messages\":[]}";

#[tokio::test]
async fn the_use_is_asked_for_and_taken_out_again_wherever_pieces_end() {
    for size in [1, 2, 3, 7, 16, 61, 10_000] {
        // sizes count bytes, and chunks of text may not end within a character
        let events = asked_for().replace('\u{e9}', "e");
        let upstream = Scripted::saying(streamed(&events, size)).await;
        let meter = meter(&upstream.base(), MeterSettings::default()).await;
        let got = exchange(meter.address, &request("/m/run-1/v1/chat/completions", "", WITHOUT.as_bytes())).await;
        assert_eq!(String::from_utf8_lossy(&got.body), expected().replace('\u{e9}', "e"), "{size}");
        assert_eq!(got.header("content-type").as_deref(), Some("text/event-stream; charset=utf-8"));
        let sent =
            "{\"model\":\"gpt-4o\", \"stream\": true,\"messages\":[],\"stream_options\":{\"include_usage\":true}}";
        assert_eq!(upstream.requests()[0].body, sent.as_bytes());
        let told = meter.ledger.only().await;
        let usage = Tokens { prompt: 9, completion: 2, ..Tokens::default() };
        assert_eq!((told.usage, told.counted_here, told.ended), (Some(usage), false, Ended::Complete), "{size}");
        assert_eq!(told.model, "gpt-4o-x");
    }
}

#[tokio::test]
async fn a_client_that_asks_itself_gets_every_byte() {
    let upstream = Scripted::saying(streamed(&asked_for(), usize::MAX)).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    let body = r#"{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true}}"#;
    let got = exchange(meter.address, &request("/m/run-1/v1/chat/completions", "", body.as_bytes())).await;
    assert_eq!(got.body, asked_for().as_bytes());
    assert_eq!(upstream.requests()[0].body, body.as_bytes());
    assert_eq!(meter.ledger.only().await.usage.map(|usage| usage.prompt), Some(9));
}

#[tokio::test]
async fn a_server_that_takes_no_such_wish_is_not_asked_and_its_words_are_counted() {
    let events = format!("{PLAIN}{DONE}");
    let upstream = Scripted::saying(streamed(&events, usize::MAX)).await;
    let mut settings = Upstream::new(upstream.base(), real_key());
    settings.asks_usage = false;
    let meter = meter_to(settings, MeterSettings::default()).await;
    let got = exchange(meter.address, &request("/m/run-1/v1/chat/completions", "", WITHOUT.as_bytes())).await;
    assert_eq!((got.body.as_slice(), upstream.requests()[0].body.as_slice()), (events.as_bytes(), WITHOUT.as_bytes()));
    let told = meter.ledger.only().await;
    let usage = told.usage.expect("counted");
    assert!(told.counted_here && usage.prompt >= 3 && (3..12).contains(&usage.completion), "{usage:?}");
}

#[tokio::test]
async fn responses_and_messages_tell_their_use_in_their_events() {
    let response = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":\"r-1\",\"usage\":null}}\n\nevent: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":\"r-1\",\"service_tier\":\"flex\",\"usage\":{\"input_tokens\":7,\"output_tokens\":3,\"input_tokens_details\":{\"cached_tokens\":1}}}}\n\n";
    let message = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"r-1\",\"usage\":{\"input_tokens\":4,\"cache_read_input_tokens\":1,\"cache_creation_input_tokens\":2,\"output_tokens\":1,\"service_tier\":\"flex\"}}}\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    for (path, events, written) in [("responses", response, 0), ("messages", message, 2)] {
        for size in [5, 64, usize::MAX] {
            let upstream = Scripted::saying(streamed(events, size)).await;
            let meter = meter(&upstream.base(), MeterSettings::default()).await;
            let body = r#"{"model":"m","stream":true,"max_tokens":9}"#;
            let got = exchange(meter.address, &request(&format!("/m/run-1/v1/{path}"), "", body.as_bytes())).await;
            assert_eq!(got.body, events.as_bytes(), "{path}");
            assert_eq!(upstream.requests()[0].body, body.as_bytes(), "{path} is not asked");
            let told = meter.ledger.only().await;
            let usage = Tokens { prompt: 7, completion: 3, cached: 1, cache_write: written, cache_write_1h: 0 };
            assert_eq!((told.usage, told.counted_here, told.ended), (Some(usage), false, Ended::Complete), "{path}");
            assert_eq!(told.model, "r-1");
        }
    }
}

#[tokio::test]
async fn a_response_that_fails_in_its_stream_is_no_answer() {
    let begun = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":\"r-1\",\"error\":null}}\n\n";
    let failed = |error: &str| {
        format!(
            "{begun}event: response.failed\ndata: {{\"type\":\"response.failed\",\"response\":{{\"model\":\"r-1\",\"error\":{error}}}}}\n\n"
        )
    };
    let overloaded = failed(r#"{"code":"server_error","message":"the model is overloaded"}"#);
    for (events, why) in [(overloaded, "the model is overloaded"), (failed("null"), "an error")] {
        let upstream = Scripted::saying(streamed(&events, 64)).await;
        let meter = meter(&upstream.base(), MeterSettings::default()).await;
        let body = br#"{"model":"m","stream":true}"#;
        let got = exchange(meter.address, &request("/m/run-1/v1/responses", "", body)).await;
        assert_eq!(got.body, events.as_bytes(), "it passes as it came");
        let told = meter.ledger.only().await;
        assert!(matches!(&told.ended, Ended::CutByProvider(cause) if cause == why), "{told:?}");
        assert_eq!((told.status, told.model.as_str()), (200, "r-1"));
    }
}

#[tokio::test]
async fn an_event_beyond_the_bound_passes_and_the_use_is_found_behind_it() {
    let long = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "x".repeat(50_000));
    let upstream = Scripted::saying(streamed(&format!("{long}{USAGE}{DONE}"), 1000)).await;
    let meter = meter(&upstream.base(), MeterSettings { most_event_bytes: 4096, ..MeterSettings::default() }).await;
    let got = exchange(meter.address, &request("/m/run-1/v1/chat/completions", "", WITHOUT.as_bytes())).await;
    assert_eq!(got.body, format!("{long}{DONE}").as_bytes());
    assert_eq!(meter.ledger.only().await.usage.map(|usage| usage.completion), Some(2));
}

#[tokio::test]
async fn replies_are_kept_as_they_came_where_that_is_wished() {
    let events = asked_for();
    let upstream = Scripted::saying(streamed(&events, usize::MAX)).await;
    let meter = meter(&upstream.base(), MeterSettings { keep_replies: true, ..MeterSettings::default() }).await;
    exchange(meter.address, &request("/m/run-1/v1/chat/completions", "", WITHOUT.as_bytes())).await;
    assert_eq!(meter.ledger.only().await.reply.as_deref(), Some(events.as_bytes()));
}
