//! The page of two runs: the difference, the checks, each category, and which questions flipped.

use bench_proto::comparison::{Comparison, Flip};

use super::{
    BoardPair, BoardRow, SiteDataset,
    board::warning,
    layout::{Laid, Part, page},
    names::{INDEX, from_folder},
};
use crate::{
    blocks::{Block, heading, table},
    comparison::{claim, lost_and_won, without_flips},
    error::RenderError,
    figures::{count, one_line, p_value, percent},
    svg::forest_plain,
};

/// Longest name that is shown.
const NAME_WIDTH: usize = 44;

/// What stands beside a comparison on its page.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// Dataset that both results are of.
    pub dataset: &'a SiteDataset,
    /// What the comparison says in view of all pairs of the dataset.
    pub pair: &'a BoardPair,
    /// The first result.
    pub a: &'a BoardRow,
    /// The second.
    pub b: &'a BoardRow,
}

/// The page.
///
/// # Errors
/// Never for text and pictures.
pub fn pair(comparison: &Comparison, beside: Beside<'_>) -> Result<String, RenderError> {
    let Beside { dataset, pair, a, b } = beside;
    let name = |row: &BoardRow| one_line(&row.name(), NAME_WIDTH);
    let mut parts = Vec::new();
    let warnings: Vec<String> = [a, b].into_iter().filter_map(warning).collect();
    if !warnings.is_empty() {
        parts.push(Part::Of(Block::Labels(warnings)));
    }
    if pair.ranked {
        parts.push(Part::Of(Block::Headline(format!(
            "in view of all pairs of the dataset: {} (p {} by Holm)",
            pair.verdict.name(),
            p_value(pair.p_holm)
        ))));
    }
    parts.push(Part::Picture(
        format!("{} (band: tolerance)", claim(comparison)),
        forest_plain(std::slice::from_ref(comparison)),
    ));
    parts.extend(without_flips(comparison).into_iter().map(|block| match block {
        Block::Headline(words) => Part::Of(Block::Headline(format!("the pair by itself: {words}"))),
        block => Part::Of(block),
    }));
    parts.extend(flips(comparison).into_iter().map(Part::Of));
    let trail = vec![
        (from_folder(INDEX), "all datasets".to_owned()),
        (from_folder(&dataset.page), one_line(&dataset.name, NAME_WIDTH)),
        (from_folder(&a.page), format!("first: {}", name(a))),
        (from_folder(&b.page), format!("second: {}", name(b))),
    ];
    page(Laid { title: format!("{} against {}", name(b), name(a)), trail, parts })
}

/// The questions that one run passed and the other did not, by their ids: texts may not be ours to hand on.
fn flips(comparison: &Comparison) -> Vec<Block> {
    let Some((lost, won)) = lost_and_won(comparison) else { return Vec::new() };
    let row = |flip: &Flip| {
        vec![
            flip.direction.clone(),
            one_line(&flip.question_id, NAME_WIDTH),
            one_line(&flip.category, NAME_WIDTH),
            percent(flip.a.score),
            percent(flip.b.score),
        ]
    };
    let shown = comparison.flips.len() as u64;
    vec![
        heading("Flips"),
        Block::Text(format!("{} lost, {} won; {} shown.", count(lost), count(won), count(shown))),
        table(&["", "Question", "Category", ">First", ">Second"], comparison.flips.iter().map(row).collect()),
    ]
}
