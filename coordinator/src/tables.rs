//! The one look of tables on a terminal: no borders, no wrapping, so that lines can be cut and searched.

use comfy_table::{ContentArrangement, Table, presets};

/// A table with a header.
#[must_use]
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table
}

/// Its lines, without trailing blanks.
#[must_use]
pub(crate) fn render(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
