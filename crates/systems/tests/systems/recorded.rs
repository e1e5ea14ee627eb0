//! Exchanges that were recorded with a real Astrocyte gateway and a real jeffs-brain daemon, replayed: what the adapters
//! send is what was sent, and they read what came back.

use std::path::PathBuf;

use bench_systems::adapter::{file, replay};
use serde_json::{Value, json};

/// (adapter, call, exchange, what is read)
#[rustfmt::skip]
const READ: &[(&str, &str, &str, Result<&str, &str>)] = &[
    ("astrocyte", "retain", "gw retain", Ok("")),
    ("astrocyte", "retain", "gw retain dup", Ok("")),
    ("astrocyte", "retain", "gw retain unknown keys", Ok("")),
    ("astrocyte", "retain", "gw retain empty", Err("system_refused")),
    ("astrocyte", "recall", "gw recall", Ok("session_1")),
    ("astrocyte", "recall", "gw recall clamp", Ok("session_1")),
    ("astrocyte", "recall", "gw recall no bank", Err("system_http_400")),
    ("astrocyte", "recall", "gw recall after forget", Ok("")),
    ("astrocyte", "answer", "gw reflect", Ok("I don't have relevant information")),
    ("astrocyte", "reset", "gw forget all", Ok("")),
    ("astrocyte", "reset", "gw bad scope", Err("system_http_400")),
    ("astrocyte", "health", "gw health", Ok("")),
    ("jeffs-brain", "open", "jb create", Ok("")),
    ("jeffs-brain", "open", "jb create dup", Ok("")),
    ("jeffs-brain", "retain", "jb batch", Ok("")),
    ("jeffs-brain", "recall", "jb search", Ok("s1")),
    ("jeffs-brain", "recall", "jb search auto", Ok("pottery")),
    ("jeffs-brain", "recall", "jb search session filter", Ok("s1")),
    ("jeffs-brain", "recall", "jb search bad", Err("system_http_400")),
    ("jeffs-brain", "answer", "jb ask", Ok("ok")),
    ("jeffs-brain", "answer", "jb ask augmented", Ok("ok")),
    ("jeffs-brain", "answer", "jb ask no brain", Err("system_http_404")),
    ("jeffs-brain", "answer", "jb ask bad reader", Err("system_http_400")),
    ("jeffs-brain", "verify", "jb list", Ok("10")),
    ("jeffs-brain", "reset", "jb delete", Ok("")),
    ("jeffs-brain", "reset", "jb delete no header", Err("system_http_428")),
];

/// Exchanges about routes that the adapters do not use, on purpose.
const UNUSED: &[&str] =
    &["gw debug recall", "jb get", "jb put document", "jb ingest file", "jb remember", "jb extract", "jb recall"];

fn exchanges() -> Option<Vec<Value>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("BENCH_REFERENCE_DIR").map_or(root, PathBuf::from);
    let path = root.join("vectors/wire-exchanges-astrocyte-jeffs-brain.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("NOT TESTED: {} is not there, set BENCH_REFERENCE_DIR", path.display());
        return None;
    };
    Some(serde_json::from_str(&text).expect("a list of exchanges"))
}

fn adapter(name: &str) -> bench_systems::adapter::AdapterSpec {
    let (_, text) = bench_systems::adapter::shipped::SHIPPED.iter().find(|(n, _)| *n == name).expect("is shipped");
    file::parse(text).expect("reads")
}

#[test]
fn every_recorded_exchange_is_read_or_left_out_on_purpose() {
    let Some(exchanges) = exchanges() else { return };
    for exchange in &exchanges {
        let name = exchange["name"].as_str().expect("a name");
        let used: Vec<_> = READ.iter().filter(|(_, _, n, _)| *n == name).collect();
        assert!(!used.is_empty() || UNUSED.contains(&name), "{name} is not replayed");
        for (system, call, _, expected) in used {
            let body = match &exchange["body"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let status = u16::try_from(exchange["status"].as_u64().expect("a status")).expect("a status");
            let kind = exchange["content_type"].as_str().unwrap_or_default();
            let read = replay::read(&adapter(system), call, status, kind, body.as_bytes());
            match (read, expected) {
                (Ok(read), Ok(part)) => assert!(read.contains(part), "{name}: '{part}' is not in {read}"),
                (Err(failure), Err(code)) => assert_eq!(failure.code, *code, "{name}: {failure}"),
                (read, expected) => panic!("{name}: {read:?} instead of {expected:?}"),
            }
            // what goes out has the method, the path and the fields that the real server took
            let path = exchange["request"]["path"].as_str().expect("a path").split('?').next().unwrap_or_default();
            if expected.is_ok() {
                let line = replay::request_line(&adapter(system), call, "bench-r1-conv-26");
                assert_eq!(
                    line,
                    format!("{} {path}", exchange["request"]["method"].as_str().expect("a method")),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn what_a_reply_must_say_one_of_its_events_must_say() {
    let text = "
name: events
retain: {request: 'POST /items', body: {text: '{content}'}}
recall: {request: 'POST /search', body: {query: '{query}'}, hits: [{list: hits, text: text}]}
answer: {request: 'POST /answer', body: {query: '{query}'}, text: text, expect: [{path: ok, is: true}]}
";
    let spec = file::parse(text).expect("the adapter reads");
    let ask = |ok: bool| {
        let body = format!("data: {{\"text\": \"Max\"}}\n\ndata: {{\"ok\": {ok}}}\n\n");
        replay::read(&spec, "answer", 200, "text/event-stream", body.as_bytes())
    };
    assert_eq!(ask(true).expect("reads"), "Max");
    assert_eq!(ask(false).expect_err("it says that it failed").code, "system_refused");
}

#[test]
fn the_same_is_true_of_exchanges_made_here() {
    let hit = json!({ "text": "[D1] hello", "score": 0.5, "metadata": { "session_id": "D1", "unit_id": "D1" } });
    let read = |call: &str, status: u16, kind: &str, body: &str| {
        replay::read(
            &adapter(if call == "open" { "jeffs-brain" } else { "astrocyte" }),
            call,
            status,
            kind,
            body.as_bytes(),
        )
    };
    let json = "application/json";
    assert!(read("recall", 200, json, &json!({ "hits": [hit] }).to_string()).expect("reads").contains("D1"));
    assert_eq!(read("recall", 200, json, "{\"hits\": {}}").expect_err("no list").code, "system_shape");
    assert_eq!(
        read("recall", 200, json, "{\"hits\": [{}]}").expect_err("no text").message,
        "recall (POST /v1/recall): field 'text' of hit 0 is missing: it has no field at all"
    );
    for (reply, field) in
        [(json!({ "hits": null }), "field 'hits'"), (json!({ "hits": [{ "text": null }] }), "field 'text' of hit 0")]
    {
        let message = read("recall", 200, json, &reply.to_string()).expect_err("it is null").message;
        assert_eq!(message, format!("recall (POST /v1/recall): {field} is null"));
    }
    assert_eq!(read("retain", 200, json, "{\"stored\": false}").expect_err("not stored").code, "system_refused");
    assert!(read("open", 409, json, "{}").is_ok());
    let events = "event: answer_delta\ndata: {\"text\": \"Ma\"}\n\nevent: answer_delta\ndata: {\"text\": \"x\"}\n\n";
    let ask = |body: &str| replay::read(&adapter("jeffs-brain"), "answer", 200, "text/event-stream", body.as_bytes());
    assert_eq!(ask(events).expect_err("no end").code, "system_cut_off");
    assert_eq!(ask(&format!("{events}event: done\ndata: {{}}\n\n")).expect("reads"), "Max");
    let error = format!("{events}event: error\ndata: {{\"message\": \"x\"}}\n\nevent: done\ndata: {{}}\n\n");
    assert_eq!(ask(&error).expect_err("an error event").code, "system_error_event");
    let silent = "event: answer_delta\ndata: {\"words\": \"Max\"}\n\nevent: done\ndata: {}\n\n";
    let failure = ask(silent).expect_err("no event has a text");
    let said = "in every event is missing: it has ";
    assert!(failure.code == "system_shape" && failure.message.contains(said), "{failure}");
    let empty = "event: answer_delta\ndata: {\"text\": \"\"}\n\nevent: done\ndata: {}\n\n";
    assert_eq!(ask(empty).expect("is an answer of nothing"), "");
    assert_eq!(ask("<!DOCTYPE html><html>502</html>").expect_err("a page").code, "system_no_reply");
}
