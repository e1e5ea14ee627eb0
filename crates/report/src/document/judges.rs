//! What a score owes to the judge that gave it, where several graded the same answers.

use bench_proto::{
    facts::judge_metric,
    summary::{MetricScore, Summary},
    text::one_line,
};

use crate::figures::{interval, percent, percent_or_none};

/// How far the score moves with the judge.
pub(crate) struct Spread {
    /// `the judge moves this by 9.30 points (95 % interval 5.1 to 13.4)`
    pub(crate) said: String,
    /// `openai:a 71.40 %`, of each judge.
    pub(crate) values: Vec<String>,
}

/// What the judges of all questions make of a score that one of them heads; none with a single judge.
pub(crate) fn spread(summary: &Summary) -> Option<Spread> {
    let total = |score: &MetricScore| score.total(summary.headline.estimator);
    let value = |at: usize| summary.scores.iter().find(|score| score.metric == judge_metric(at)).and_then(total);
    // those of other questions are no measure of the judge
    let of_sample = |at: usize| {
        let mut sampled = summary.panel.iter().flat_map(|panel| &panel.sampled);
        sampled.any(|judge| judge.metric == judge_metric(at))
    };
    let of_all = summary.spec.judges.iter().enumerate().filter(|(at, _)| !of_sample(*at));
    let judges: Vec<(usize, &String, f64)> = of_all.filter_map(|(at, judge)| Some((at, judge, value(at)?))).collect();
    if judges.len() < 2 || !judges.iter().any(|(at, ..)| judge_metric(*at) == summary.headline.metric) {
        return None;
    }
    let values = || judges.iter().map(|(.., value)| *value);
    let moved = values().fold(0.0, f64::max) - values().fold(1.0, f64::min);
    // reports from before it was known have none
    let known = summary.panel.as_ref().and_then(|panel| panel.spread.as_ref());
    let around = known.and_then(|spread| spread.ci95.as_ref());
    let around = around.map(|ci| format!(" (95 % interval {})", interval(Some(ci)))).unwrap_or_default();
    Some(Spread {
        said: format!("the judge moves this by {} points{around}", percent(moved).trim_end_matches([' ', '%'])),
        values: judges
            .iter()
            .map(|(_, judge, value)| format!("{} {}", one_line(judge), percent_or_none(Some(*value))))
            .collect(),
    })
}
