//! The page of a run: its report without single questions' texts.

use bench_proto::summary::{SlowQuestion, Summary};

use super::{
    BoardRow, SiteDataset,
    board::warning,
    layout::{Laid, Part, page},
    names::{INDEX, from_folder},
};
use crate::{blocks::Block, document::document, error::RenderError, figures::one_line, svg};

/// Longest name that is shown.
const NAME_WIDTH: usize = 160;

/// The page.
///
/// # Errors
/// Never for text and pictures.
pub fn run(summary: &Summary, dataset: &SiteDataset, row: &BoardRow) -> Result<String, RenderError> {
    let shown = figures_of(summary);
    let mut parts: Vec<Part> = warning(row).map(|why| Part::Of(Block::Labels(vec![why]))).into_iter().collect();
    let mut title = row.name();
    let mut blocks = Vec::new();
    for block in document(&shown) {
        match block {
            Block::Title(of_report) => title = of_report,
            Block::Verdict(verdict, reasons) => {
                blocks.push(Block::Text(verdict.name().to_owned()));
                blocks.push(Block::List(reasons));
            }
            block => blocks.push(block),
        }
    }
    parts.push(Part::Of(Block::Text(format!(
        "Archived as {}; `bench-coord archive fetch {}` brings its questions and answers.",
        one_line(&row.archived_as, NAME_WIDTH),
        row.run
    ))));
    let pictures = svg::plots(&shown).into_iter().map(|plot| Part::Picture(plot.title, plot.svg));
    parts.extend(pictures);
    parts.extend(blocks.into_iter().map(Part::Of));
    let trail = vec![
        (from_folder(INDEX), "all datasets".to_owned()),
        (from_folder(&dataset.page), one_line(&dataset.name, NAME_WIDTH)),
    ];
    page(Laid { title: one_line(&title, NAME_WIDTH), trail, parts })
}

/// The summary without texts, without the list that is about them, and without addresses that are of no use elsewhere. An archived
/// report may have all of them.
fn figures_of(summary: &Summary) -> Summary {
    let told = summary.clone().without_texts();
    let slowest = told.slowest.iter().map(|slow| SlowQuestion { trace_url: None, ..slow.clone() }).collect();
    Summary { worst: Vec::new(), slowest, ..told }
}
