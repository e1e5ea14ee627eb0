//! What `submit` and `report` print.

mod brief;

use bench_proto::{
    summary::{Summary, Verdict},
    text::{one_line, plain},
};
use comfy_table::{Cell, CellAlignment, LineStyle, Table as Grid, TableStyle};

use crate::{
    blocks::{Block, Table},
    document::document,
};

/// How to print.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Use colours: the caller looks at `NO_COLOR` and at whether this is a terminal.
    pub colour: bool,
    /// Print everything that the Markdown report holds, instead of what fits a screen.
    pub full: bool,
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
pub fn render(summary: &Summary, options: TerminalOptions) -> String {
    if options.full {
        render_blocks(&document(summary), options.colour)
    } else {
        brief::render(summary, Painter { colour: options.colour })
    }
}

/// Any document for a terminal; ends with a newline.
pub(crate) fn render_blocks(blocks: &[Block], colour: bool) -> String {
    let painter = Painter { colour };
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

/// Paints, or does not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Painter {
    colour: bool,
}

impl Painter {
    /// Words of the document in a style; what they hold of their own to drive a terminal is taken out.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        let text = plain(text);
        if self.colour { format!("\u{1b}[{}m{text}\u{1b}[0m", style.code()) } else { text.into_owned() }
    }

    fn block(self, block: &Block) -> String {
        match block {
            Block::Title(text) | Block::Heading(text) | Block::Headline(text) => self.paint(Style::Bold, text),
            Block::Labels(labels) => self
                .paint(Style::Yellow, &labels.iter().map(|label| format!("[{label}]")).collect::<Vec<_>>().join(" ")),
            Block::Verdict(verdict, reasons) => self.verdict(*verdict, reasons),
            Block::Text(text) => plain(text).into_owned(),
            Block::List(lines) => lines.iter().map(|line| plain(line)).collect::<Vec<_>>().join("\n"),
            Block::Table(table) => grid(table),
        }
    }

    fn verdict(self, verdict: Verdict, reasons: &[String]) -> String {
        let word = self.paint(Style::for_verdict(verdict), verdict.name());
        std::iter::once(word)
            .chain(reasons.iter().map(|reason| format!("  {}", one_line(reason))))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Rules under the header and below, none between rows.
const GRID: TableStyle = TableStyle::new()
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

fn grid(table: &Table) -> String {
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
    grid.trim_fmt()
}
