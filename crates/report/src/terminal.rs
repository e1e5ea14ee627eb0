//! What `submit` and `report` print.

pub(crate) mod brief;
mod wrapping;

use std::path::Path;

use bench_proto::{
    summary::{Summary, Verdict},
    text::{one_line, plain},
};
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table as Grid, TableStyle, Width,
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub use self::wrapping::within;
use crate::{
    blocks::{Block, Table},
    document::document,
};

/// What the reader has before him.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct View {
    /// Whether it shows colours: the caller looks at `NO_COLOR` and at whether this is a terminal.
    pub colour: bool,
    /// Columns of a line; `None` for a file or a pipe, in which a line is as long as what it says.
    pub width: Option<usize>,
}

/// How much of a report of a run or of a group to print, and for whom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TerminalOptions<'a> {
    /// Who reads it.
    pub view: View,
    /// Print everything that the Markdown report holds, instead of what fits a screen.
    pub full: bool,
    /// Where its page lies already; none where nobody has written one.
    pub page: Option<&'a Path>,
}

/// Select Graphic Rendition codes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    Bold,
    Green,
    Red,
    Yellow,
}

impl Style {
    /// Colour of a verdict's word.
    pub(crate) fn for_verdict(verdict: Verdict) -> Self {
        if verdict == Verdict::Valid { Self::Green } else { Self::Red }
    }

    const fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Green => "1;32",
            Self::Red => "1;31",
            Self::Yellow => "1;33",
        }
    }
}

/// The report for a terminal; ends with a newline.
#[must_use]
pub fn render(summary: &Summary, options: TerminalOptions<'_>) -> String {
    if options.full { render_blocks(&document(summary), options.view) } else { brief::render(summary, options) }
}

/// Any document for a terminal; ends with a newline.
pub(crate) fn render_blocks(blocks: &[Block], view: View) -> String {
    let painter = Painter(view);
    let mut text = String::new();
    for block in blocks {
        // a heading stands directly above what it heads
        let heading = matches!(block, Block::Heading(_));
        text.push_str(&painter.block(block));
        text.push_str(if heading { "\n" } else { "\n\n" });
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Writes for a reader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Painter(View);

impl Painter {
    /// Words of the document in a style; what they hold of their own to drive a terminal is taken out.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        let text = plain(text);
        if self.0.colour { format!("\u{1b}[{}m{text}\u{1b}[0m", style.code()) } else { text.into_owned() }
    }

    fn block(self, block: &Block) -> String {
        match block {
            Block::Title(text) | Block::Heading(text) | Block::Headline(text) => {
                self.paint(Style::Bold, &self.wrapped(&plain(text)))
            }
            Block::Labels(labels) => self
                .paint(Style::Yellow, &labels.iter().map(|label| format!("[{label}]")).collect::<Vec<_>>().join(" ")),
            Block::Verdict(verdict, reasons) => self.verdict(*verdict, reasons),
            Block::Text(text) => self.wrapped(&plain(text)),
            Block::List(lines) => lines.iter().map(|line| self.wrapped(&plain(line))).collect::<Vec<_>>().join("\n"),
            Block::Table(table) => grid(table, self.0.width),
        }
    }

    fn verdict(self, verdict: Verdict, reasons: &[String]) -> String {
        let word = self.paint(Style::for_verdict(verdict), verdict.name());
        std::iter::once(word)
            .chain(reasons.iter().map(|reason| self.wrapped(&format!("  {}", one_line(reason)))))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// A text within the width, where one is known.
    fn wrapped(self, text: &str) -> String {
        self.0.width.map_or_else(|| text.to_owned(), |width| within(text, width))
    }
}

/// A text of at most so many columns; one that is longer ends in `…`.
#[must_use]
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    text.chars().take_while(fits).chain(std::iter::once('…')).collect()
}

/// Rules under the header and below, none between rows.
const GRID: TableStyle = TableStyle::new()
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

/// Words up to so many columns are not broken to keep a column.
const WHOLE: usize = 24;
/// No table has fewer columns than these because of its width, and which of them stay in any.
const FEWEST: usize = 4;
const KEPT: [&str; 3] = ["Score", "Verdict", "Says"];

/// A table; within a width its last columns are left out where words would be broken for them.
fn grid(table: &Table, width: Option<usize>) -> String {
    let Some((width, out)) = width.map(|width| (width, left_out(table, width))).filter(|(_, out)| !out.is_empty())
    else {
        return all_columns(table, width);
    };
    let shown = |at: &usize| !out.contains(at);
    let places: Vec<usize> = (0..table.columns.len()).filter(shown).collect();
    let of_row = |row: &Vec<String>| places.iter().filter_map(|&at| row.get(at).cloned()).collect::<Vec<_>>();
    let columns = places.iter().map(|&at| table.columns[at].clone()).collect();
    let kept = Table { columns, rows: table.rows.iter().map(of_row).collect() };
    let names: Vec<&str> = out.iter().rev().map(|&at| table.columns[at].0.as_str()).collect();
    let said = one_line(&format!("not shown in this width: {}", names.join(", "))).into_owned();
    format!("{}\n{}", all_columns(&kept, Some(width)), within(&said, width))
}

/// Columns that are left out of a table within a width, the last one first.
fn left_out(table: &Table, width: usize) -> Vec<usize> {
    let words = longest_words(table);
    let mut out: Vec<usize> = Vec::new();
    for at in (1..words.len()).rev() {
        let shown = words.iter().enumerate().filter(|(at, _)| !out.contains(at));
        // beside each a blank of its own, and one before the next
        let fits = shown.map(|(_, &word)| word.min(WHOLE) + 2).sum::<usize>() <= width + 1;
        if fits || words.len() - out.len() <= FEWEST {
            break;
        }
        if !KEPT.contains(&table.columns[at].0.as_str()) {
            out.push(at);
        }
    }
    out
}

/// The width of the longest word of each column.
fn longest_words(table: &Table) -> Vec<usize> {
    let longest = |text: &str| one_line(text).split(' ').map(UnicodeWidthStr::width).max().unwrap_or_default();
    (0..table.columns.len())
        .map(|column| {
            let cells = table.rows.iter().filter_map(|row| row.get(column)).map(|cell| longest(cell));
            cells.chain([longest(&table.columns[column].0)]).max().unwrap_or_default()
        })
        .collect()
}

/// A table with all of its columns; within a width its cells go on in further lines.
fn all_columns(table: &Table, width: Option<usize>) -> String {
    let mut grid = Grid::new();
    grid.load_style(GRID).force_no_tty();
    let align = |right: bool| {
        if right { CellAlignment::Right } else { CellAlignment::Left }
    };
    grid.set_header(table.columns.iter().map(|(title, right)| Cell::new(one_line(title)).set_alignment(align(*right))));
    for row in &table.rows {
        grid.add_row(
            row.iter()
                .zip(&table.columns)
                .map(|(cell, (_, right))| Cell::new(one_line(cell)).set_alignment(align(*right))),
        );
    }
    if let Some(width) = width {
        grid.set_content_arrangement(ContentArrangement::Dynamic).set_width(u16::try_from(width).unwrap_or(u16::MAX));
        keep_words_whole(&mut grid, table, width);
    }
    grid.trim_fmt()
}

/// Lets no column be narrower than its longest word, where there is room for that, if need be with less space between columns. Else
/// the longest ones of the table are broken.
fn keep_words_whole(grid: &mut Grid, table: &Table, width: usize) {
    let words = longest_words(table);
    // beside its padding a column has a blank between itself and the next
    let room = (width + 1).saturating_sub(words.len());
    let all = |most: usize, padding: usize| words.iter().map(|&word| word.min(most) + padding).sum::<usize>();
    let mut most = words.iter().copied().max().unwrap_or_default();
    let padding = if all(most, 2) <= room { 2 } else { 1 };
    while most > 1 && all(most, padding) > room {
        most -= 1;
    }
    for (column, word) in grid.column_iter_mut().zip(&words) {
        if padding == 1 {
            column.set_padding((0, 1));
        }
        let least = u16::try_from(word.min(&most) + padding).unwrap_or(u16::MAX);
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(cut("記憶の実験", 10), "記憶の実験");
        assert_eq!(cut("記憶の実験", 9), "記憶の実…");
        assert_eq!(cut("記憶の実験", 8), "記憶の…");
    }

    #[test]
    fn words_of_narrow_tables_stay_whole_where_there_is_room() {
        let columns = ["metric", "of both", "of the second", "verdict"].map(|title| (title.to_owned(), false));
        let row = ["a score of many words that tells what it is", "0.5, 0.3 to 0.7", "0.4, 0.2 to 0.6", "INCONCLUSIVE"];
        let table = Table { columns: columns.to_vec(), rows: vec![row.map(str::to_owned).to_vec()] };
        for width in [40, 50, 60] {
            let text = grid(&table, Some(width));
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
            assert!(text.contains("INCONCLUSIVE"), "{text}");
        }
        let titles = ["", "First", "Second", "Points", "95 %", "p", "n", "Banks", "Verdict"];
        let row =
            ["adversarial", "70.00 %", "90.00 %", "+20.00", "-17.02 to +57.02", "0.969", "10", "10", "INCONCLUSIVE"];
        let columns = titles.map(|title| (title.to_owned(), true)).to_vec();
        let text = grid(&Table { columns, rows: vec![row.map(str::to_owned).to_vec()] }, Some(80));
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        assert!(text.contains("INCONCLUSIVE") && text.contains("adversarial"), "{text}");
        let text = grid(&table, Some(24));
        assert!(text.lines().all(|line| line.width() <= 24), "{text}");
    }

    #[test]
    fn columns_are_left_out_before_words_are_broken() {
        let titles =
            ["Cell", "answerer", "dataset-seed", "system", "Score", "95 %", "Verdict", "$/run", "Front", "Metric"];
        let row =
            ["1", "openai:gpt-4o-mini", "12345678", "bm25", "61.00 %", "57.1 to 67.4", "INVALID", "$0.0012", "$ ms"];
        let row = row.into_iter().chain(["judge"]).map(str::to_owned).collect();
        let columns = titles.map(|title| (title.to_owned(), false)).to_vec();
        let table = Table { columns, rows: vec![row] };
        let text = grid(&table, Some(80));
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        for whole in ["dataset-seed", "INVALID", "openai:gpt-4o-mini", "not shown in this width: ", "Metric"] {
            assert!(text.contains(whole), "{whole}: {text}");
        }
        assert!(!grid(&table, None).contains("not shown"));
        assert!(grid(&table, Some(60)).contains("INVALID"));
    }
}
