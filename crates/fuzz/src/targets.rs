//! What is read of others, each kind as a function of bytes. A target panics when a promise is broken; that a reader refuses its input
//! is no finding.

mod archives;
mod datasets;
mod files;
mod metered;
mod providers;
mod systems;
mod tools;

/// A kind of input.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, that of its folder in the corpus.
    pub name: &'static str,
    /// Feeds an input to the code under test, which may refuse it and may not panic.
    pub read: fn(&[u8]),
}

/// All kinds.
pub const TARGETS: &[Target] = &[
    Target { name: "provider_replies", read: providers::replies },
    Target { name: "adapter_responses", read: systems::responses },
    Target { name: "events", read: systems::events },
    Target { name: "adapter_files", read: systems::files },
    Target { name: "mcp", read: tools::mcp },
    Target { name: "metered", read: metered::metered },
    Target { name: "amqp", read: files::amqp },
    Target { name: "imports", read: files::imports },
    Target { name: "archives", read: archives::archives },
    Target { name: "datasets", read: datasets::datasets },
    Target { name: "settings", read: files::settings },
    Target { name: "urls", read: files::urls },
];

/// The target with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// The first line, and what follows it.
fn first_line(bytes: &[u8]) -> (&str, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let rest = bytes.get(end + 1..).unwrap_or_default();
    (std::str::from_utf8(&bytes[..end]).unwrap_or_default(), rest)
}

/// Whether a text can stand in one line of a message.
fn assert_one_line(text: &str) {
    assert!(text.len() < 4096 && !text.contains('\n'), "a message of {} bytes: {text}", text.len());
}
