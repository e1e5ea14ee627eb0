//! Messages of a broker, imports, settings, URLs.

use bench_proto::ids::TaskKey;
use bench_queue::amqp::wire;
use bench_settings::{Settings, Sources};
use bench_systems::adapter::{replay, shipped};
use url::Url;

use super::first_line;

/// A text header on the first line, then the body.
pub(super) fn amqp(bytes: &[u8]) {
    let (header, body) = first_line(bytes);
    let (name, value) = header.split_once(':').unwrap_or((header, ""));
    let Ok((message, headers)) = wire::read(body, &[(name, value.as_bytes())]) else { return };
    assert!(headers.len() <= 1 && body.len() <= 4096);
    let task = TaskKey::from_wire(message.task).expect("was checked");
    let _ = (task.kind(), task.bank(), task.index(), task.question_of(), message.message_id());
    assert!(!message.run.0.contains('/'), "an id that is a path: {}", message.run.0);
}

/// The name of a file on the first line, `--field`s behind it, then its content.
pub(super) fn imports(bytes: &[u8]) {
    let (first, content) = first_line(bytes);
    let mut words = first.split(' ');
    let name = words.next().unwrap_or_default();
    if let Err(message) = bench_coord::heard::import(name, content, &words.collect::<Vec<_>>()) {
        assert!(message.len() < 64 << 10, "{} bytes of message", message.len());
    }
}

/// `--set` on the first line, then a `bench.toml`.
pub(super) fn settings(bytes: &[u8]) {
    let (set, text) = first_line(bytes);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let sources = Sources {
        file: Some(("bench.toml".into(), text.to_owned())),
        sets: vec![set.to_owned()],
        ..Sources::default()
    };
    match Settings::load(&sources) {
        Ok(settings) => drop(bench_settings::render(&settings.show(true))),
        Err(error) => drop(error.to_string()),
    }
}

/// What is shown of a URL has no password, wherever it stands.
pub(super) fn urls(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = bench_proto::redact::url(text);
    // a memory system below it
    if let (Some(Ok(spec)), Ok(base)) = (shipped::find("hindsight"), Url::parse(text))
        && let Ok(url) = replay::request_url(&spec, "reset", text, "b")
    {
        let url = Url::parse(&url).expect("what is asked is a URL");
        let within = url.path().starts_with(base.path().trim_end_matches('/'));
        assert!(url.origin() == base.origin() && within, "{url} is not below {base}");
    }
    // the same with a password in its place
    let planted = "planted0123456789";
    let host = text.split(['/', '?', '#', '@', '\\', ':']).next().unwrap_or_default();
    let with = format!("postgres://ann:{planted}@{host}/b");
    let shown = bench_proto::redact::url(&with);
    assert!(!shown.contains(planted), "{shown}");
}
