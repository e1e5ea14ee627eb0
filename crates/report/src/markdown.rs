//! `report.md`.

use std::fmt::Write as _;

use bench_proto::summary::{Summary, Verdict};

use crate::{
    document::{Block, Detail, Table, document},
    registry::RenderError,
};

/// The whole report as GitHub-flavoured Markdown.
///
/// # Errors
/// Never; the signature is that of all formats.
pub fn render(summary: &Summary) -> Result<String, RenderError> {
    Ok(render_blocks(&document(summary, Detail::Full)))
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

/// Makes text harmless where Markdown or HTML would read more into it.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' | '`' | '*' | '[' | ']' | '~' => escaped.extend(['\\', c]),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' | '\r' => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_cannot_break_the_table() {
        assert_eq!(escape("a|b\n<img> *x* `y`"), "a\\|b &lt;img> \\*x\\* \\`y\\`");
    }
}
