//! Memory systems: adapter files, and what servers and processes answer.

use std::sync::LazyLock;

use bench_systems::adapter::{AdapterSpec, ProcessReply, file, replay, shipped};
use url::Url;

const CALLS: [&str; 7] = ["open", "retain", "recall", "answer", "verify", "reset", "health"];

static SHIPPED: LazyLock<Vec<AdapterSpec>> =
    LazyLock::new(|| shipped::SHIPPED.iter().filter_map(|(_, text)| file::parse(text).ok()).collect());

/// One with events in its answer.
static STREAMING: LazyLock<Option<AdapterSpec>> = LazyLock::new(|| {
    let text = "name: streaming\nretain: {request: POST /add, body: {text: '{text}'}}\n\
        answer: {request: POST /ask, body: {query: '{query}'}, events: [answer, done], last_event: done, text: text}\n";
    file::parse(text).ok()
});

/// Adapter, call and status in the first three bytes, then the body.
pub(super) fn responses(bytes: &[u8]) {
    let [adapter, call, status, body @ ..] = bytes else { return };
    let spec = &SHIPPED[usize::from(*adapter) % SHIPPED.len()];
    let call = CALLS[usize::from(*call) % CALLS.len()];
    let status = [200, 201, 404, 429, 500, 302][usize::from(*status) % 6];
    for kind in ["application/json", "text/html"] {
        if let Err(failure) = replay::read(spec, call, status, kind, body) {
            assert!(failure.message.len() < 4096, "{} bytes of message", failure.message.len());
        }
    }
    for line in body.split(|byte| *byte == b'\n') {
        let _ = serde_json::from_slice::<ProcessReply>(line);
    }
}

/// A body of server-sent events.
pub(super) fn events(bytes: &[u8]) {
    let Some(spec) = STREAMING.as_ref() else { return };
    if let Err(failure) = replay::read(spec, "answer", 200, "text/event-stream", bytes) {
        assert!(failure.message.len() < 4096, "{} bytes of message", failure.message.len());
    }
}

/// The name of a bank on the first line, then an adapter file.
pub(super) fn files(bytes: &[u8]) {
    let (bank, text) = super::first_line(bytes);
    let Ok(spec) = std::str::from_utf8(text).map_or_else(|e| Err(e.to_string()), file::parse) else { return };
    let _ = file::fingerprint(&spec);
    let base = "http://127.0.0.1:1/base";
    for (call, request) in [("open", &spec.open), ("reset", &spec.reset)] {
        let Some(request) = request else { continue };
        let Ok(url) = replay::request_url(&spec, call, base, bank) else { continue };
        let url = Url::parse(&url).expect("what is asked is a URL");
        assert!(url.host_str() == Some("127.0.0.1") && url.port() == Some(1), "{url} is another server");
        assert!(url.path().starts_with("/base/"), "{url} leads out of the base");
        let about_a_bank = request.request.contains("{bank}");
        assert!(!about_a_bank || !bank.trim().is_empty(), "{url} is about no bank");
    }
}
