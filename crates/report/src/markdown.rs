//! `report.md`.

use std::fmt::Write as _;

use bench_proto::{
    summary::{Summary, Verdict},
    text::one_line,
};

use crate::{
    blocks::{Block, Table},
    document::document,
    error::RenderError,
};

/// The whole report as GitHub-flavoured Markdown.
///
/// # Errors
/// Never; the signature is that of all formats.
pub fn render(summary: &Summary) -> Result<String, RenderError> {
    Ok(render_blocks(&document(summary)))
}

/// Any document as GitHub-flavoured Markdown.
pub(crate) fn render_blocks(blocks: &[Block]) -> String {
    blocks.iter().map(block).collect::<Vec<_>>().join("\n\n") + "\n"
}

fn block(block: &Block) -> String {
    match block {
        Block::Title(text) => format!("# {}", escape(text)),
        Block::Heading(text) => format!("## {}", escape(text)),
        Block::Labels(labels) => {
            labels.iter().map(|label| format!("> **{}**", escape(label))).collect::<Vec<_>>().join("\n>\n")
        }
        Block::Headline(text) => format!("**{}**", escape(text)),
        Block::Verdict(verdict, reasons) => verdict_lines(*verdict, reasons),
        Block::Text(text) => escape(text),
        Block::List(lines) => lines.iter().map(|line| format!("- {}", escape(line))).collect::<Vec<_>>().join("\n"),
        Block::Table(table) => table_lines(table),
    }
}

fn verdict_lines(verdict: Verdict, reasons: &[String]) -> String {
    let mut text = format!("**{}**", verdict.name());
    if !reasons.is_empty() {
        text.push_str(": an invalid run can be read, but is no result and no baseline\n");
    }
    for reason in reasons {
        // writing to a String cannot fail
        let _ = write!(text, "\n- {}", escape(reason));
    }
    text
}

fn table_lines(table: &Table) -> String {
    let line = |cells: &mut dyn Iterator<Item = String>| format!("| {} |", cells.collect::<Vec<_>>().join(" | "));
    let titles = line(&mut table.columns.iter().map(|(title, _)| escape(title)));
    let rule =
        line(&mut table.columns.iter().map(|(_, right)| if *right { "---:".to_owned() } else { "---".to_owned() }));
    let rows = table.rows.iter().map(|row| line(&mut row.iter().map(|cell| escape(cell))));
    [titles, rule].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

/// Breaks what a host of Markdown would turn into a link or a message to somebody; nobody sees it.
const BREAK: char = '\u{2060}';

/// Makes text harmless where Markdown, HTML or their host would read more into it: bare URLs and addresses are no links, nobody is
/// called by an `@`, no number of a bug is referred to.
fn escape(text: &str) -> String {
    let text = one_line(text);
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let after = &text[at + c.len_utf8()..];
        match c {
            '\\' | '|' | '`' | '*' | '[' | ']' | '~' => escaped.extend(['\\', c]),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            ':' if after.starts_with("//") => escaped.push_str("\\:"),
            '.' if is_www(&text[..at]) => escaped.push_str("\\."),
            '@' if calls(before, after) => escaped.extend([c, BREAK]),
            '#' if after.starts_with(|c: char| c.is_ascii_digit()) => escaped.extend([c, BREAK]),
            c => escaped.push(c),
        }
        before = c;
    }
    escaped
}

/// Whether a word ends in `www`.
fn is_www(before: &str) -> bool {
    let start = before.len().checked_sub(3).and_then(|start| Some((before.get(..start)?, before.get(start..)?)));
    start.is_some_and(|(start, word)| {
        word.eq_ignore_ascii_case("www") && !start.ends_with(|c: char| c.is_alphanumeric())
    })
}

/// Whether an `@` calls somebody (`@name`, `(@name`, `_@name_`: a sign of emphasis is no part of a word) or makes an address
/// (`name@host.example`); `recall@10` does neither.
fn calls(before: char, after: &str) -> bool {
    let word =
        after.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))).next().unwrap_or_default();
    let is_address =
        word.split_once('.').is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
    !word.is_empty() && (!before.is_ascii_alphanumeric() || is_address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_cannot_break_the_table() {
        assert_eq!(escape("a|b\n<img> *x* `y`"), "a\\|b &lt;img> \\*x\\* \\`y\\`");
        assert_eq!(escape("a\u{1b}[2Jb\u{202e}c"), "a \\[2Jb c");
    }

    #[test]
    fn names_and_addresses_in_answers_call_nobody() {
        for (given, written) in [
            ("see https://evil.example/x", "see https\\://evil.example/x"),
            ("www.evil.example", "www\\.evil.example"),
            ("(WWW.evil.example)", "(WWW\\.evil.example)"),
            ("awww.yes", "awww.yes"),
            ("@octocat and (@org/team)", "@\u{2060}octocat and (@\u{2060}org/team)"),
            ("_@octocat_ and __@octocat__", "_@\u{2060}octocat_ and __@\u{2060}octocat__"),
            ("*@octocat* and ~@octocat~", "\\*@\u{2060}octocat\\* and \\~@\u{2060}octocat\\~"),
            ("mail me@evil.example", "mail me@\u{2060}evil.example"),
            ("fixes #12", "fixes #\u{2060}12"),
            ("recall@10 and ndcg@5.", "recall@10 and ndcg@5."),
        ] {
            assert_eq!(escape(given), written);
        }
    }
}
