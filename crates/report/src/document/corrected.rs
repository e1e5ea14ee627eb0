//! The score without the errors of its judge, beside the score.

use bench_proto::summary::{Corrected, CorrectedBy, CorrectedScore, Interval};

use super::TEXT_WIDTH;
use crate::{
    blocks::{Block, heading, table},
    figures::{NONE, count, interval, one_line, percent, percent_or_none},
};

/// A row for all questions and one for each category; then what each kind of answers makes of it.
pub(super) fn corrected(corrected: Option<&CorrectedScore>) -> Vec<Block> {
    let Some(score) = corrected else { return Vec::new() };
    let row = |name: &str, of: &Corrected| {
        let range = of.range.map(|range| format!("{} to {}", percent(range.low), percent(range.high)));
        let mut cells = vec![name.to_owned(), percent_or_none(of.raw)];
        match score.own_answers {
            true => {
                cells.extend([percent_or_none(of.value), interval(of.ci95.as_ref()), interval(of.naive_ci95.as_ref())])
            }
            false => cells.push(range.unwrap_or_else(|| NONE.to_owned())),
        }
        cells.push(of.note.clone().unwrap_or_default());
        cells
    };
    let rows = std::iter::once(row("all that count", &score.all));
    let rows = rows.chain(score.by_category.iter().map(|of| row(&one_line(&of.category, TEXT_WIDTH), &of.score)));
    let columns: &[&str] = match score.own_answers {
        true => &["Questions", ">As judged", ">Corrected", ">95 %", ">Naive 95 %", "Note"],
        false => &["Questions", ">As judged", ">Range over kinds", "Note"],
    };
    let mut blocks = vec![
        heading(format!("Corrected for the judge's errors: {}", score.metric)),
        Block::Text(words(score)),
        table(columns, rows.collect()),
        Block::Text(
            "What the judge made of answers whose truth is known, and what the score is by each kind of them:"
                .to_owned(),
        ),
        table(
            &[
                "Wrong answers",
                "Right answers",
                ">Sensitivity",
                ">95 %",
                ">n",
                ">Specificity",
                ">95 %",
                ">n",
                ">Corrected",
                ">95 %",
            ],
            score.all.by_kind.iter().map(kind).collect(),
        ),
    ];
    if !score.notes.is_empty() {
        blocks.push(Block::List(score.notes.iter().map(|note| format!("Note: {note}.")).collect()));
    }
    blocks
}

fn words(score: &CorrectedScore) -> String {
    let audit = one_line(&score.audit, TEXT_WIDTH);
    let n = count(score.n);
    match score.own_answers {
        true => format!(
            "From {n} answers of this system that somebody who knows has graded (run {audit}). The score stays what the judge gave; \
             corrected is (score + specificity − 1) / (sensitivity + specificity − 1), with the uncertainty of all three."
        ),
        false => format!(
            "From {n} planted answers (run {audit}): how often a judge takes a wrong answer for right depends on the kind of wrong answer, \
             and nobody knows which kinds this system gives, so there is a range and no value. `bench-coord judge-audit --of RUN --grades \
             FILE` takes graded answers of the run itself, and gives one."
        ),
    }
}

fn kind(by: &CorrectedBy) -> Vec<String> {
    let bounds = |ci: &Option<Interval>| interval(ci.as_ref());
    vec![
        by.wrong.clone(),
        by.right.clone(),
        percent_or_none(by.sensitivity.value),
        bounds(&by.sensitivity.ci95),
        count(by.sensitivity.n),
        percent_or_none(by.specificity.value),
        bounds(&by.specificity.ci95),
        count(by.specificity.n),
        percent_or_none(by.value),
        bounds(&by.ci95),
    ]
}
