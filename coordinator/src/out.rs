//! Where words go: results to standard output, everything else to standard error. A reader that went away is no error.

use std::io::Write;

/// Writes a result with a newline to standard output.
pub(crate) fn result(text: &str) {
    let mut out = std::io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    // a closed pipe (`| head`) only means that nobody wants more
    let _ = write!(out, "{text}{newline}").and_then(|()| out.flush());
}

/// Writes a line for the person to standard error.
pub(crate) fn note(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "{text}");
}

/// Writes a value as pretty JSON to standard output.
pub(crate) fn json<T: serde::Serialize>(value: &T) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => result(&text),
        Err(error) => note(&format!("cannot be shown as JSON: {error}")),
    }
}
