//! What known mistakes of the dataset's answer key mean for the score.

use bench_proto::summary::{AnswerKeyScore, KeyedScore};

use super::TEXT_WIDTH;
use crate::{
    blocks::{Block, table},
    figures::{count, counted, one_line, percent_or_none},
};

/// A sentence, and a row for each category that was looked through.
pub(super) fn answer_key(key: &AnswerKeyScore) -> Vec<Block> {
    let KeyedScore { n, wrong, ceiling, corrected, .. } = &key.all;
    let how = match corrected {
        Some(_) => "",
        None => {
            " Grades by the corrected key need a judge again, and label fixes that hold it: `rejudge RUN --judge M --label-fixes NAME`."
        }
    };
    let text = format!(
        "Answer key ({}): {} of {} have a wrong expected answer, so a perfect system reaches {} by the published key.{how} {} (plain means):",
        one_line(&key.source, TEXT_WIDTH),
        count(*wrong),
        counted(*n, "question"),
        percent_or_none(*ceiling),
        key.metric,
    );
    let row = |name: &str, score: &KeyedScore| {
        vec![
            name.to_owned(),
            percent_or_none(score.published),
            percent_or_none(score.ceiling),
            percent_or_none(score.corrected),
            percent_or_none(score.without_wrong),
            count(score.wrong),
            count(score.n),
            if score.above_ceiling { "above the ceiling: wrong answers were taken for right" } else { "" }.to_owned(),
        ]
    };
    let each = key.by_category.iter().map(|of| row(&of.category, &of.score));
    let rows = each.chain([row("all of these", &key.all)]).collect();
    let columns = [
        "Questions",
        ">Published key",
        ">Its ceiling",
        ">Corrected key",
        ">Without wrong ones",
        ">Wrong",
        ">n",
        "Note",
    ];
    vec![Block::Text(text), table(&columns, rows)]
}
