//! What several judges say together, and one of a sample about all questions.

use bench_proto::summary::{DifferingJudge, FacetScore, PanelSummary, SampledJudge, Summary};

use super::TEXT_WIDTH;
use crate::{
    blocks::{Block, heading, table},
    figures::{NONE, count, fraction, interval, one_line, percent, percent_or_none},
};

/// Tables of what there is.
pub(super) fn panel(summary: &Summary) -> Vec<Block> {
    let Some(PanelSummary { mean, majority, differing, sampled, .. }) = &summary.panel else { return Vec::new() };
    let mut blocks = vec![heading("Panel")];
    let row = |name: &str, score: &FacetScore| {
        vec![
            name.to_owned(),
            percent_or_none(score.value),
            interval(score.ci95.as_ref()),
            interval(score.naive_ci95.as_ref()),
            count(score.n),
            score.ci95_note.clone().unwrap_or_default(),
        ]
    };
    let together = [("mean of the judges", mean), ("majority of the judges", majority)];
    let rows: Vec<_> = together.into_iter().filter_map(|(name, score)| Some(row(name, score.as_ref()?))).collect();
    if !rows.is_empty() {
        blocks.push(table(&["Together", ">Score", ">95 %", ">Naive 95 %", ">n", "Note"], rows));
    }
    if !differing.is_empty() {
        blocks.push(differs(differing));
    }
    for judge in sampled {
        blocks.extend(of_sample(summary, judge));
    }
    blocks
}

/// Who stands against the majority of the others, the one that does most often first.
fn differs(judges: &[DifferingJudge]) -> Block {
    let mut judges: Vec<&DifferingJudge> = judges.iter().collect();
    judges.sort_by(|a, b| b.differs.unwrap_or(0.0).total_cmp(&a.differs.unwrap_or(0.0)));
    let row = |judge: &&DifferingJudge| {
        vec![judge.metric.clone(), percent_or_none(judge.differs), percent_or_none(judge.accepts_alone), count(judge.n)]
    };
    let columns = ["Judge", ">Against the majority of the others", ">Accepts against the majority", ">n"];
    table(&columns, judges.iter().map(row).collect())
}

/// A judge of a sample: the estimate, what it is worth, and what it costs.
fn of_sample(summary: &Summary, judge: &SampledJudge) -> Vec<Block> {
    let model = |metric: &str| {
        let judges = summary.spec.judges.iter().enumerate();
        let mut named = judges.filter(|(at, _)| bench_proto::facts::judge_metric(*at) == metric);
        named.next().map_or_else(|| metric.to_owned(), |(_, model)| one_line(model, TEXT_WIDTH))
    };
    let (strong, cheap) = (model(&judge.metric), model(&judge.helped_by));
    let width = |width: Option<f64>| width.map_or_else(|| NONE.to_owned(), percent);
    let dollars = |usd: f64| format!("${usd:.4}");
    let rows = vec![
        vec![
            format!("{strong} on all, by its sample and {cheap}"),
            percent_or_none(judge.value),
            interval(judge.ci95.as_ref()),
            width(judge.width),
            dollars(judge.usd),
            judge.ci95_note.clone().unwrap_or_default(),
        ],
        vec![
            "the same, about these questions alone".to_owned(),
            percent_or_none(judge.value),
            interval(judge.these_ci95.as_ref()),
            NONE.to_owned(),
            String::new(),
            "what it would say of all that were asked".to_owned(),
        ],
        vec![
            format!("{strong} by its sample alone"),
            percent_or_none(judge.alone),
            interval(judge.alone_ci95.as_ref()),
            width(judge.alone_width),
            String::new(),
            String::new(),
        ],
        vec![
            format!("{strong} asked about all"),
            NONE.to_owned(),
            NONE.to_owned(),
            width(judge.all_width),
            dollars(judge.all_usd),
            "expected".to_owned(),
        ],
    ];
    let text = format!(
        "{} ({strong}) graded {} of {} questions, {} ({cheap}) all of them; in the sample both correlate by {}, and {cheap} is relied on \
         with the weight {}. Dollars as if nothing had been cached.",
        judge.metric,
        count(judge.sampled),
        count(judge.n),
        judge.helped_by,
        fraction(judge.correlation),
        fraction(Some(judge.weight)),
    );
    vec![Block::Text(text), table(&["Estimate", ">Score", ">95 %", ">Width", ">Dollars", "Note"], rows)]
}
