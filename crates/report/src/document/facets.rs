//! What questions count as beside their category: a table where the dataset has facets.

use bench_proto::summary::MetricScore;

use crate::{
    blocks::{Block, heading, table},
    figures::{TEXT_WIDTH_OF_NAMES, count, in_order, interval, one_line, percent_or_none},
};

/// A row for each value of each facet.
pub(super) fn facets(score: Option<&MetricScore>) -> Vec<Block> {
    let Some(score) = score.filter(|score| !score.by_facet.is_empty()) else { return Vec::new() };
    let rows = score.by_facet.iter().flat_map(|(facet, values)| {
        in_order(values).into_iter().map(|(value, score)| {
            vec![
                one_line(facet, TEXT_WIDTH_OF_NAMES),
                one_line(value, TEXT_WIDTH_OF_NAMES),
                percent_or_none(score.value),
                interval(score.ci95.as_ref()),
                interval(score.naive_ci95.as_ref()),
                count(score.n),
                count(score.clusters),
                score.ci95_note.clone().unwrap_or_default(),
            ]
        })
    });
    let columns = ["Facet", "Value", ">Score", ">95 %", ">Naive 95 %", ">n", ">Banks", "Note"];
    vec![
        heading(format!("Facets: {}", score.metric)),
        table(&columns, rows.collect()),
        Block::Text(
            "Plain means over the questions of the sample that have the value, whatever their category.".to_owned(),
        ),
    ]
}
