//! The log of a started system, and what messages quote of it.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::ExitStatus,
};

use bench_models::classify::one_line;

use super::super::secrets::Secrets;

/// Lines of a log that a message quotes; each is bounded by itself, so that the last one is always there.
const LINES: usize = 4;
/// Bytes at the end of a log that are read for it.
const BYTES: u64 = 4096;

/// The log of an instance.
pub(in super::super) fn log_path(folder: &Path) -> PathBuf {
    folder.join("system.log")
}

/// The last words of a log on one line: without control characters, keys and the given secrets.
pub(in super::super) fn last_words(log: &Path, secrets: &Secrets) -> String {
    let bytes = last_bytes(log, BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    // where the file goes on before it, the first word may be the end of a secret
    let cut = if bytes.len() as u64 == BYTES { text.find(char::is_whitespace).unwrap_or(text.len()) } else { 0 };
    let text = without_colours(&secrets.hide(&text[cut..]));
    let lines: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(LINES).collect();
    lines.into_iter().rev().map(|line| one_line(line, None)).collect::<Vec<_>>().join(" / ")
}

/// How a process ended and the last words of its log, to stand behind a sentence that says that it did; empty where nothing is known.
pub(in super::super) fn how_it_ended(status: Option<ExitStatus>, log: &Path, secrets: &Secrets) -> String {
    let status = status.map_or_else(String::new, |status| format!(" ({status})"));
    let said = last_words(log, secrets);
    if said.is_empty() { status } else { format!("{status}: {said}") }
}

/// A text without the sequences that colour a terminal.
fn without_colours(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |at| at + 1);
        rest = &after[end..];
    }
    plain.push_str(rest);
    plain
}

fn last_bytes(path: &Path, number: u64) -> std::io::Result<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(number)))?;
    let mut bytes = Vec::new();
    file.take(number).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(log: &str, secrets: &[&str]) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = log_path(folder.path());
        std::fs::write(&path, log).expect("is written");
        last_words(&path, &secrets.iter().map(|secret| ((*secret).to_owned(), "[key]".to_owned())).collect())
    }

    #[test]
    fn p39_a_quoted_log_is_one_bounded_line_of_its_last_words() {
        assert_eq!(quoted("", &[]), "");
        assert_eq!(last_words(Path::new("/nowhere/system.log"), &Secrets::default()), "");
        assert_eq!(quoted("a\n\nb\nc\n  d  \ne\n", &[]), "b / c / d / e");
        let long = format!("{}\nthe reason\n", "word ".repeat(2_000));
        let said = quoted(&long, &[]);
        assert!(said.ends_with("… / the reason"), "{said}");
        assert!(said.chars().count() < 400, "{said}");
        let cut = format!("{} the reason", "open-sesame-1234".repeat(1_000));
        assert_eq!(quoted(&cut, &["open-sesame-1234"]), "the reason", "half a secret is no word");
    }

    #[test]
    fn p39_a_quoted_log_has_no_control_characters_and_no_secrets() {
        let log = "\u{1b}[31mERROR\u{1b}[0m:\u{7} no such module: vec0\r\nkey sk-abcdefgh12345 and open-sesame-1234\n";
        assert_eq!(quoted(log, &["open-sesame-1234"]), "ERROR: no such module: vec0 / key [key] and [key]");
    }
}
