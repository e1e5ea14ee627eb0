//! Where words go: results to standard output, everything else to standard error. A result that could not be written is told
//! to who ends the process ([`lost`]).
//!
//! Whatever goes to a terminal goes through here, and what others have put into it (names of runs, answers, a system's words)
//! neither moves the cursor nor turns the direction of writing, nor is it a command to GitHub's runner, which obeys lines of what a
//! step prints. [`data`] is what other programs read; [`tables`] is the one look of tables, [`amounts`] and [`times`] say dollars,
//! seconds and dates as people read them.

pub(crate) mod amounts;
pub(crate) mod data;
pub(crate) mod tables;
pub(crate) mod times;

use std::{
    borrow::Cow,
    io::{IsTerminal, Write},
    sync::OnceLock,
};

use bench_proto::text::{self, plain};
use bench_report::terminal::{View, within};
use bench_telemetry::logged;
pub(crate) use bench_telemetry::on_github;
pub(crate) use data::Kind;

/// What says that it is narrower is not believed: nothing could be read there.
const NARROWEST: usize = 40;

/// Writes a result with a newline to standard output.
pub(crate) fn result(text: &str) {
    write_as(Kind::Words, &plain(text));
}

/// Writes a result that is made of words: its lines end between them, within the width of the terminal.
pub(crate) fn words(text: &str) {
    let text = plain(text);
    match width() {
        Some(width) => write_as(Kind::Words, &within(&text, width)),
        None => write_as(Kind::Words, &text),
    }
}

/// Writes a result that has colours of its own; what others have put into it was cleaned before it was painted.
pub(crate) fn painted(text: &str) {
    write_as(Kind::Words, &without_acts(text));
}

/// Writes the text of a file, which its format has made harmless to all but GitHub's runner.
pub(crate) fn file(kind: Kind, text: &str) {
    write_as(kind, text);
}

/// Writes the text of a file as it is, for who has asked for that.
pub(crate) fn raw(text: &str) {
    write(text);
}

/// Writes a line for the person to standard error.
pub(crate) fn note(text: &str) {
    say(&logged(&plain(text)));
}

/// Writes a command for GitHub's runner, whose parts were escaped, to standard error.
pub(crate) fn command(text: &str) {
    say(&plain(text));
}

fn say(line: &str) {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "{line}");
}

/// Whether a person sits in front of this program and can be asked.
#[must_use]
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether a person has standard output before him.
#[must_use]
pub(crate) fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Asks a person; anything but a yes is a no. Ctrl-C is heard meanwhile.
pub(crate) async fn ask(question: &str) -> bool {
    note(&format!("{question} [y/N]"));
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next().and_then(Result::ok)).await;
    matches!(line.ok().flatten().unwrap_or_default().trim(), "y" | "Y" | "yes")
}

/// Writes a value as pretty JSON to standard output.
pub(crate) fn json<T: serde::Serialize>(value: &T) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => write_as(Kind::Json, &text::json(&text)),
        Err(error) => note(&format!("cannot be shown as JSON: {error}")),
    }
}

/// What the reader of standard output has before him.
#[must_use]
pub(crate) fn view() -> View {
    View { colour: colour(), width: width() }
}

fn colour() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    is_terminal() && std::env::var_os("NO_COLOR").is_none() && !dumb
}

/// Columns of a line: those of the terminal, else what `COLUMNS` says; `None` for a file or a pipe of which nothing is said.
fn width() -> Option<usize> {
    let terminal = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    let told = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(told).filter(|columns| *columns >= NARROWEST)
}

/// Writes what is no command to GitHub's runner, where that may read it.
fn write_as(kind: Kind, text: &str) {
    match kind.harmless() {
        Some(harmless) => write(&harmless(text)),
        None => write(text),
    }
}

fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    if let Err(error) = write!(out, "{text}{newline}").and_then(|()| out.flush()) {
        lose(&error);
    }
}

/// Why a result did not reach its reader.
pub(crate) enum Lost {
    /// Who read it closed the pipe.
    Closed,
    /// It could not be written: a full disk.
    Unwritable(String),
}

static LOST: OnceLock<Lost> = OnceLock::new();

/// Remembers that a result could not be written.
pub(crate) fn lose(error: &std::io::Error) {
    let why = match error.kind() {
        std::io::ErrorKind::BrokenPipe => Lost::Closed,
        _ => Lost::Unwritable(error.to_string()),
    };
    let _ = LOST.set(why);
}

/// Why not all results reached their reader; `None` when they did.
pub(crate) fn lost() -> Option<&'static Lost> {
    LOST.get()
}

/// A text in which nothing is obeyed but colours.
fn without_acts(text: &str) -> Cow<'_, str> {
    let mut pieces = text.split("\u{1b}[");
    let Some(first) = pieces.next().filter(|first| first.len() < text.len()) else { return plain(text) };
    let mut clean = plain(first).into_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !(c.is_ascii_digit() || c == ';')).unwrap_or(piece.len());
        clean.push_str(if piece[end..].starts_with('m') { "\u{1b}[" } else { " [" });
        clean.push_str(&plain(piece));
    }
    clean.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_all_that_is_obeyed() {
        let red = "\u{1b}[1;31mINVALID\u{1b}[0m";
        assert_eq!(without_acts(red), red);
        assert_eq!(without_acts("a\u{1b}[2Jb\u{1b}]0;t\u{7}\u{202e}"), "a [2Jb ]0;t  ");
        assert_eq!(without_acts(&format!("{red}\u{1b}[1A\u{1b}[")), format!("{red} [1A ["));
    }
}
