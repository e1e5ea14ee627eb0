//! The one look of lists on a terminal: no borders, no wrapping, one line a row, so that lines can be cut and searched. Where the
//! width is known, a row is no wider: columns that say nothing go first, then those that say the same in every row, which is told
//! below, then those that a list can spare, then the ends of texts.

use bench_proto::text::one_line;
use bench_report::terminal::{cut, within};
use comfy_table::{ContentArrangement, presets};
use unicode_width::UnicodeWidthStr as _;

/// Blanks that a column has around its text.
const PADDING: usize = 2;
/// A text is not cut below so many columns, and can be read in so many.
const LEAST: usize = 12;
const READABLE: usize = 24;
/// The same of the texts of a list in which figures and short names stand: a date is not cut.
const READABLE_IF_SHORT: usize = 16;

/// A table whose cells are one line each, whatever they are given.
pub(crate) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Columns that a narrow terminal does not show, the first to go first.
    spare: Vec<String>,
    /// Columns that go before these where all rows say the same in them.
    alike: Vec<String>,
    /// Columns in which a text can be read.
    readable: usize,
    /// The last column goes on below itself, where a row would be too wide.
    is_wrapping: bool,
}

/// A table with a header.
#[must_use]
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: Vec::new(),
        spare: Vec::new(),
        alike: Vec::new(),
        readable: READABLE,
        is_wrapping: false,
    }
}

impl Table {
    pub(crate) fn add_row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.iter().map(|cell| one_line(cell).into_owned()).collect());
    }

    /// Takes a column away in which no row has anything.
    #[must_use]
    pub(crate) fn without_empty(mut self, column: &str) -> Self {
        let place = self.header.iter().position(|name| name == column);
        if let Some(at) = place
            && self.rows.iter().all(|row| row.get(at).is_none_or(|cell| cell == "-"))
        {
            let without = |cells: &mut Vec<String>| {
                if at < cells.len() {
                    cells.remove(at);
                }
            };
            without(&mut self.header);
            self.rows.iter_mut().for_each(without);
        }
        self
    }

    /// Names columns that a narrow terminal does not show, the first to go first.
    #[must_use]
    pub(crate) fn sparing(mut self, columns: &[&str]) -> Self {
        self.spare = columns.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Names columns of which a narrow terminal shows below the table, and once, what all rows have in common.
    #[must_use]
    pub(crate) fn alike(mut self, columns: &[&str]) -> Self {
        self.alike = columns.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Its texts are short, and can be read where they are cut: more columns are shown for that.
    #[must_use]
    pub(crate) const fn of_short_texts(mut self) -> Self {
        self.readable = READABLE_IF_SHORT;
        self
    }

    /// The last column is what the table is read for: it goes on below itself, and is cut only where it has no room to be read in.
    #[must_use]
    pub(crate) const fn wrapping(mut self) -> Self {
        self.is_wrapping = true;
        self
    }
}

/// The lines of a table, without trailing blanks, for the terminal that standard output is.
#[must_use]
pub(crate) fn render(table: &Table) -> String {
    render_within(table, super::width())
}

fn render_within(table: &Table, width: Option<usize>) -> String {
    let shown = width.map_or_else(|| (0..table.header.len()).collect(), |width| columns_within(table, width));
    let (mut header, mut rows) = (picked(&table.header, &shown), Vec::with_capacity(table.rows.len()));
    rows.extend(table.rows.iter().map(|row| picked(row, &shown)));
    if let Some(width) = width {
        match room_of_last(table, &shown, width) {
            Some(room) => {
                let last = rows.iter_mut().filter_map(|row| row.last_mut()).chain(header.last_mut());
                last.for_each(|cell| *cell = within(cell, room));
            }
            None => cut_to(&mut header, &mut rows, width),
        }
    }
    let mut grid = comfy_table::Table::new();
    grid.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    grid.set_header(header);
    grid.add_rows(rows);
    let mut text = grid.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n");
    for line in said_below(table, &shown) {
        text.push('\n');
        text.push_str(&width.map_or(line.clone(), |width| within(&line, width)));
    }
    text
}

/// What is told of columns that are not shown: what all rows have in common, and which are missing.
fn said_below(table: &Table, shown: &[usize]) -> Vec<String> {
    let gone = (0..table.header.len()).filter(|column| !shown.contains(column) && !says_nothing(table, *column));
    let (common, missing): (Vec<usize>, Vec<usize>) = gone.partition(|&column| is_alike(table, column));
    let said = |&column: &usize| format!("{} {}", table.header[column], table.rows[0][column]);
    let common: Vec<String> = common.iter().map(said).collect();
    let missing: Vec<&str> = missing.iter().map(|&column| table.header[column].as_str()).collect();
    let line = |what: &str, parts: String| (!parts.is_empty()).then(|| format!("{what}: {parts}"));
    let lines = [line("all", common.join(", ")), line("not shown in this width", missing.join(", "))];
    lines.into_iter().flatten().collect()
}

/// Whether a column that may be told once says the same in all rows.
fn is_alike(table: &Table, column: usize) -> bool {
    let is_told = table.rows.len() > 1 && table.alike.contains(&table.header[column]);
    is_told && table.rows.iter().all(|row| row[column] == table.rows[0][column])
}

fn picked(cells: &[String], columns: &[usize]) -> Vec<String> {
    columns.iter().map(|&column| cells[column].clone()).collect()
}

/// The columns that are shown within a width.
fn columns_within(table: &Table, width: usize) -> Vec<usize> {
    let widths: Vec<usize> = (0..table.header.len()).map(|column| width_of(table, column)).collect();
    let mut shown: Vec<usize> = (0..table.header.len()).collect();
    let readable = |column: usize| if column == 0 { widths[0] } else { widths[column].min(table.readable) };
    let fits = |shown: &[usize]| shown.iter().map(|&column| readable(column) + PADDING).sum::<usize>() <= width;
    if shown.iter().map(|&column| widths[column] + PADDING).sum::<usize>() > width {
        shown.retain(|&column| !says_nothing(table, column));
    }
    let place = |name: &&String| table.header.iter().position(|title| title == *name);
    let common = table.alike.iter().filter(|name| place(name).is_some_and(|column| is_alike(table, column)));
    for name in common.chain(&table.spare) {
        if fits(&shown) {
            break;
        }
        shown.retain(|&column| table.header[column] != *name);
    }
    // what no cut makes narrow enough goes from the end
    let least = |column: usize| if column == 0 { widths[0] } else { widths[column].min(LEAST) };
    while !table.is_wrapping
        && shown.len() > 1
        && shown.iter().map(|&column| least(column) + PADDING).sum::<usize>() > width
    {
        shown.pop();
    }
    shown
}

/// Columns that the last column of a table has, where it wraps and that is enough to read in.
fn room_of_last(table: &Table, shown: &[usize], width: usize) -> Option<usize> {
    let (_, others) = shown.split_last().filter(|_| table.is_wrapping)?;
    let taken: usize = others.iter().map(|&column| width_of(table, column) + PADDING).sum();
    width.checked_sub(taken + PADDING).filter(|&room| room >= LEAST)
}

fn width_of(table: &Table, column: usize) -> usize {
    let cells = table.rows.iter().map(|row| row[column].width());
    cells.chain([table.header[column].width()]).max().unwrap_or_default()
}

/// Whether no row has anything in a column.
fn says_nothing(table: &Table, column: usize) -> bool {
    !table.rows.is_empty() && table.rows.iter().all(|row| matches!(row[column].as_str(), "" | "-"))
}

/// Cuts the widest texts until rows fit; the first column, by which a row is named, stays whole.
fn cut_to(header: &mut [String], rows: &mut [Vec<String>], width: usize) {
    loop {
        let widths: Vec<usize> = (0..header.len())
            .map(|column| rows.iter().map(|row| row[column].width()).chain([header[column].width()]).max().unwrap_or(0))
            .collect();
        let over = (widths.iter().sum::<usize>() + PADDING * widths.len()).saturating_sub(width);
        let widest = (1..widths.len()).max_by_key(|&column| widths[column]).filter(|&column| widths[column] > LEAST);
        let Some(widest) = widest.filter(|_| over > 0) else { return };
        // no further than the next widest, which is cut with it from there on
        let next = (1..widths.len()).filter(|&column| column != widest).map(|column| widths[column]).max().unwrap_or(0);
        let to = widths[widest].saturating_sub(over).max(next.min(widths[widest] - 1)).max(LEAST);
        for cells in rows.iter_mut().map(Vec::as_mut_slice).chain([&mut *header]) {
            cells[widest] = cut(&cells[widest], to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_no_row_of_its_own() {
        let mut names = table(["run", "name"]);
        names.add_row(["one".to_owned(), "x\nfake  VALID\u{1b}[2J\u{202e}".to_owned()]);
        let text = render_within(&names, None);
        assert_eq!(text.lines().count(), 2);
        assert!(text.ends_with("x fake  VALID [2J"), "{text}");
    }

    fn runs() -> Table {
        let mut runs = table(["run", "status", "judge", "name", "what it is"]).sparing(&["status", "name"]);
        let long = "a memory of everything that was ever said ".repeat(3);
        runs.add_row(["01a211cd-09b2".to_owned(), "finished".to_owned(), "-".to_owned(), "before".to_owned(), long]);
        runs.add_row([
            "01a211cd-09b3".to_owned(),
            "running".to_owned(),
            String::new(),
            "after".to_owned(),
            "短い".to_owned(),
        ]);
        runs
    }

    #[test]
    fn a_row_is_no_wider_than_the_terminal_and_says_what_it_leaves_out() {
        for width in 40..200 {
            let text = render_within(&runs(), Some(width));
            let widest = text.lines().map(str::width).max();
            assert!(widest <= Some(width), "{width}: {widest:?}\n{text}");
            assert!(text.contains("01a211cd-09b2") && text.contains("01a211cd-09b3"), "{text}");
            let names = text.lines().next().is_some_and(|head| head.contains("name"));
            assert!(names || text.ends_with("name"), "a column went without a word: {text}");
        }
        assert!(render_within(&runs(), Some(40)).ends_with("not shown in this width: status, name"));
        assert!(!render_within(&runs(), Some(60)).contains("judge"), "nobody judged");
    }

    #[test]
    fn what_a_table_is_read_for_goes_on_below_itself() {
        let mut checks = table(["check", "result", "what was done and seen"]).wrapping();
        let why = "system_refused: recall: b says: ValueError: the index of this bank was never opened";
        checks.add_row(["ready is true".to_owned(), "fail".to_owned(), why.to_owned()]);
        for width in [60, 80, 200] {
            let text = render_within(&checks, Some(width));
            assert!(text.lines().map(str::width).max() <= Some(width), "{width}: {text}");
            assert_eq!(text.split_whitespace().skip(11).collect::<Vec<_>>().join(" "), why, "{text}");
        }
    }

    #[test]
    fn what_all_rows_have_in_common_goes_first_and_is_told_once() {
        let row = |id: &str, system: &str| [id, "finished", system, "$0.10", "before"].map(str::to_owned);
        let mut same =
            table(["run", "status", "system", "cost", "name"]).alike(&["status", "system"]).sparing(&["cost"]);
        same.add_row(row("01a211cd-09b2", "bm25"));
        same.add_row(row("01a211cd-09b3", "bm25"));
        let text = render_within(&same, Some(34));
        assert!(text.ends_with("\nall: status finished, system bm25") && text.contains("$0.10"), "{text}");
        assert!(!render_within(&same, Some(80)).contains("all: "));
        same.add_row(row("01a211cd-09b4", "random"));
        let text = render_within(&same, Some(40));
        assert!(text.ends_with("\nall: status finished") && text.contains("random"), "{text}");
        let text = render_within(&same, Some(18));
        assert!(text.lines().take(4).all(|line| line.width() <= 18), "{text}");
    }

    #[test]
    fn whoever_reads_a_pipe_gets_everything() {
        let text = render_within(&runs(), None);
        assert!(text.lines().next().is_some_and(|head| head.contains("judge")), "{text}");
        assert!(text.lines().any(|line| line.width() > 120), "{text}");
    }
}
