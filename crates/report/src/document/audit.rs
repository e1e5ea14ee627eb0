//! How often judges erred about planted answers.

use bench_proto::summary::{AuditRate, JudgeAudit, JudgeError};

use crate::{
    blocks::{Block, heading, table},
    figures::{TEXT_WIDTH_OF_NAMES, count, interval, one_line, percent_or_none},
};

/// A row for all wrong and all right answers of each judge, for each kind, and for the parts of each kind.
pub(super) fn audit(audit: Option<&JudgeAudit>) -> Vec<Block> {
    let Some(JudgeAudit { planted, rates, medians_of }) = audit else { return Vec::new() };
    let row = |rate: &AuditRate| {
        let (error, all) = match rate.error {
            JudgeError::FalseAccept => ("false accepts", "all wrong answers"),
            JudgeError::FalseReject => ("false rejects", "all right answers"),
        };
        let part = rate.part.as_ref().map(|(facet, value)| {
            let facet = facet.strip_prefix("planted-").unwrap_or(facet);
            format!("{facet} {}", one_line(value, TEXT_WIDTH_OF_NAMES))
        });
        vec![
            rate.metric.clone(),
            rate.kind.as_deref().unwrap_or(all).to_owned(),
            part.unwrap_or_default(),
            error.to_owned(),
            percent_or_none(rate.rate.value),
            interval(rate.rate.ci95.as_ref()),
            interval(rate.rate.naive_ci95.as_ref()),
            percent_or_none(rate.by_majority),
            count(rate.rate.n),
        ]
    };
    let columns = ["Judge", "Answers", "Part", "Error", ">Rate", ">95 %", ">Naive 95 %", ">By majority", ">n"];
    let source = match (&planted.source, &planted.answers_of) {
        (Some(source), Some(run)) => format!(
            "Answers of run {}, graded by {}.",
            one_line(run, super::TEXT_WIDTH),
            one_line(source, super::TEXT_WIDTH)
        ),
        (Some(source), None) => format!("Answers from {}.", one_line(source, super::TEXT_WIDTH)),
        (None, _) => "Answers were made of the dataset's own questions and gold.".to_owned(),
    };
    let what = match medians_of {
        Some(votes) => format!(
            "A rate is the share of answers about which the judge errs, by the median of its {votes} votes: the single ones are not \
             known here, and an audit with --judge asks for them again."
        ),
        None => "A rate is the share of single judgements that err, each by the score at which its metric passes (grades that came \
                 with the answers as they are: the mean of several is the share of those that accept); by majority, the share of \
                 answers about which most of them do."
            .to_owned(),
    };
    vec![
        heading("Judge audit"),
        table(&columns, rates.iter().map(row).collect()),
        Block::Text(format!("{source} {what}")),
    ]
}
