//! The page of all datasets.

use super::{
    Board, BoardRow, Site, SiteDataset,
    board::mark,
    layout::{Cell, Laid, Part, linked, page},
};
use crate::{
    blocks::{Block, heading},
    error::RenderError,
    figures::{NONE, count, counted, interval, one_line, percent_or_none},
};

/// Longest name that is shown.
const NAME_WIDTH: usize = 44;
/// Leaders that are named.
const MOST_LEADERS: usize = 4;

/// The page: datasets, who leads in the table with most results, and the newest result of each.
///
/// # Errors
/// Never for text.
pub fn index(site: &Site) -> Result<String, RenderError> {
    let row = |dataset: &SiteDataset| {
        let (newest, ranked) = (dataset.newest(), dataset.tables.iter().flat_map(|table| &table.rows));
        let ranked = ranked.filter(|row| row.rank.is_some()).count() as u64;
        let at = newest.and_then(|row| row.finished_at.as_deref()).and_then(|at| at.get(..10)).unwrap_or(NONE);
        vec![
            Cell::link(one_line(&dataset.name, NAME_WIDTH), dataset.page.clone()),
            Cell::text(dataset.tables.first().and_then(leaders).unwrap_or_else(|| NONE.to_owned())),
            Cell::text(count(ranked)),
            Cell::text(count(dataset.archived_runs)),
            newest.map_or_else(
                || Cell::text(NONE),
                |row| Cell::link(one_line(&row.name(), NAME_WIDTH), row.page.clone()).marked(mark(row)),
            ),
            Cell::text(percent_or_none(newest.and_then(|row| row.score))),
            Cell::text(interval(newest.and_then(|row| row.ci95.as_ref()))),
            Cell::text(at),
        ]
    };
    let columns = ["Dataset", "Rank 1", ">Ranked", ">Runs", "Newest result", ">Score", ">95 %", ">Date"];
    let mut parts = vec![linked(&columns, site.datasets.iter().map(row).collect())];
    if !site.left_out.is_empty() {
        parts.push(Part::Of(heading("Left out")));
        parts.push(Part::Of(Block::List(site.left_out.clone())));
    }
    let title = format!("Results on {}", counted(site.datasets.len() as u64, "dataset"));
    page(Laid { title, trail: Vec::new(), parts })
}

/// Who shares the first rank of a table.
fn leaders(table: &Board) -> Option<String> {
    let first: Vec<String> = table.rows.iter().filter(|row| row.rank == Some(1)).map(BoardRow::name).collect();
    let named: Vec<String> = first.iter().take(MOST_LEADERS).map(|name| one_line(name, NAME_WIDTH)).collect();
    let more = first.len().saturating_sub(MOST_LEADERS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}
