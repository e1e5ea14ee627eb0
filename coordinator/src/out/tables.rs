//! The one look of tables on a terminal: no borders, no wrapping, one line a row, so that lines can be cut and searched.

use bench_proto::text::one_line;
use comfy_table::{ContentArrangement, presets};

/// A table whose cells are one line each, whatever they are given.
pub(crate) struct Table(comfy_table::Table);

/// A table with a header.
#[must_use]
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = comfy_table::Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    Table(table)
}

impl Table {
    pub(crate) fn add_row<const N: usize>(&mut self, cells: [String; N]) {
        self.0.add_row(cells.iter().map(|cell| one_line(cell)));
    }
}

/// The lines of a table, without trailing blanks.
#[must_use]
pub(crate) fn render(table: &Table) -> String {
    table.0.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_no_row_of_its_own() {
        let mut names = table(["run", "name"]);
        names.add_row(["one".to_owned(), "x\nfake  VALID\u{1b}[2J\u{202e}".to_owned()]);
        assert_eq!(render(&names).lines().count(), 2);
        assert!(render(&names).ends_with("x fake  VALID [2J"), "{}", render(&names));
    }
}
