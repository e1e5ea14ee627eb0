//! The figures by somebody else's counting.

use bench_proto::counting::{CountedCategory, CountingSummary};

use crate::{
    blocks::{Block, heading, table},
    figures::{NONE, count, counted, one_line, percent, percent_or_none},
};

/// Longest note on a departure.
const DEPARTURE_WIDTH: usize = 200;

/// The total, each category under the name that it has there, and in what this run differs from theirs.
pub(super) fn counting(summary: Option<&CountingSummary>) -> Vec<Block> {
    let Some(summary) = summary else { return Vec::new() };
    let spec = &summary.counting;
    let row = |of: &CountedCategory| {
        let called = if of.called == of.category { String::new() } else { format!("there: {}", of.called) };
        vec![of.category.clone(), called, percent_or_none(of.value), count(of.n)]
    };
    let sd = summary.sd.map_or_else(String::new, |sd| format!(", sd {}", percent(sd)));
    let total =
        vec!["total".to_owned(), String::new(), format!("{}{sd}", percent_or_none(summary.value)), count(summary.n)];
    let rows = std::iter::once(total).chain(summary.by_category.iter().map(row)).collect();
    let without = if spec.without.is_empty() { NONE.to_owned() } else { spec.without.join(", ") };
    let rules = format!(
        "{} ({}), judgements of an answer: {}; {} without a grade {}; left out: {} ({}). The same grades stand below by our \
         own rules for failures, strata and graded scores, over {}. Neither is comparable with the other.",
        spec.counted.words(),
        spec.metric,
        summary.runs,
        counted(summary.failed, "question"),
        spec.on_failure.words(),
        without,
        counted(summary.left_out, "question"),
        if spec.without.is_empty() {
            "all categories".to_owned()
        } else {
            format!("the same categories (without {without})")
        },
    );
    let departures = spec.departures.iter().map(|line| format!("Not theirs: {}.", one_line(line, DEPARTURE_WIDTH)));
    vec![
        heading(format!("Counted as {}", spec.name)),
        table(&["Questions", "Called", ">Figure", ">n"], rows),
        Block::Text(rules),
        Block::List(departures.collect()),
    ]
}
