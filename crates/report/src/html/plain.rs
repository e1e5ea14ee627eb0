//! A page without questions: facts, tables, notes and plots.

use askama::Template;

use super::page::STYLE;
use crate::{
    blocks::{Block, table},
    error::RenderError,
    svg::Plot,
};

/// What such a page is made from.
#[derive(Debug, Clone)]
pub struct Plain<'a, const N: usize> {
    /// Heading of the page, and what its tab is called.
    pub title: String,
    /// Lines above the table.
    pub facts: Vec<String>,
    /// What stands above the columns; one that begins with `>` is written to the right.
    pub header: [&'a str; N],
    /// The table.
    pub rows: Vec<[String; N]>,
    /// Lines below it.
    pub notes: Vec<String>,
    /// Pictures.
    pub plots: &'a [Plot],
}

#[derive(Template)]
#[template(path = "plain.html")]
struct View<'a> {
    title: String,
    blocks: Vec<Block>,
    plots: &'a [Plot],
    style: &'static str,
}

/// The page: one file that needs no network.
///
/// # Errors
/// Never for text and pictures.
pub fn plain<const N: usize>(page: Plain<'_, N>) -> Result<String, RenderError> {
    let rows = page.rows.into_iter().map(Vec::from).collect();
    let blocks = vec![Block::List(page.facts), table(&page.header, rows), Block::List(page.notes)];
    of_blocks(page.title, blocks, page.plots)
}

/// The page of blocks that begin with a title, which is that of the page.
///
/// # Errors
/// Never for text and pictures.
pub(crate) fn of_document(blocks: Vec<Block>, plots: &[Plot]) -> Result<String, RenderError> {
    let title = blocks.iter().find_map(|block| match block {
        Block::Title(title) => Some(title.clone()),
        _ => None,
    });
    of_blocks(title.unwrap_or_default(), blocks, plots)
}

fn of_blocks(title: String, blocks: Vec<Block>, plots: &[Plot]) -> Result<String, RenderError> {
    let view = View { title, blocks, plots, style: STYLE };
    Ok(view.render()?)
}
