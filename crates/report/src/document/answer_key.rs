//! What known mistakes of the dataset's answer key mean for the score.

use bench_proto::summary::{AnswerKeyScore, KeyedScore};

use super::TEXT_WIDTH;
use crate::{
    blocks::{Block, table},
    figures::{count, counted, one_line, percent_or_none},
};

/// A sentence, and a row for each category that was looked through.
pub(super) fn answer_key(key: &AnswerKeyScore) -> Vec<Block> {
    let KeyedScore { n, wrong, ceiling, corrected, without_correction, .. } = &key.all;
    let how = match (corrected, without_correction) {
        (Some(_), 0) => String::new(),
        (Some(_), unknown) => {
            format!(" Of {} of them no right answer is known: the corrected key is without them.", count(*unknown))
        }
        (None, 0) => {
            " Grades by the corrected key need a judge again, and label fixes that hold it: `rejudge RUN --judge M --label-fixes NAME`."
                .to_owned()
        }
        (None, _) => " No right answer is known of them; a file of yours gives it as `correct_answer`.".to_owned(),
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
            note(score),
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

/// What to know of a row.
fn note(score: &KeyedScore) -> String {
    let unknown = score.without_correction;
    let above = score.above_ceiling.then(|| "above the ceiling: wrong answers were taken for right".to_owned());
    let left_out = (unknown > 0 && score.corrected.is_some())
        .then(|| format!("corrected key: of {}", counted(score.n.saturating_sub(unknown), "question")));
    above.into_iter().chain(left_out).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_of_how_many_questions_its_corrected_figure_is() {
        let of = |corrected, without_correction| {
            note(&KeyedScore { n: 9, wrong: 3, corrected, without_correction, ..KeyedScore::default() })
        };
        assert_eq!(of(Some(0.5), 2), "corrected key: of 7 questions");
        assert_eq!((of(Some(0.5), 0), of(None, 3)), (String::new(), String::new()));
    }
}
