//! What a score owes to the judge that gave it, where several graded the same answers.

use bench_proto::{
    facts::judge_metric,
    summary::{MetricScore, Summary},
};

use crate::figures::{percent, percent_or_none};

/// `the judge moves this by 9.3 points: openai:a 71.4 %, openai:b 62.1 %`; none with a single judge.
pub(crate) fn spread(summary: &Summary) -> Option<String> {
    let total = |score: &MetricScore| score.total(summary.headline.estimator);
    let value = |at: usize| summary.scores.iter().find(|score| score.metric == judge_metric(at)).and_then(total);
    // those of other questions are no measure of the judge
    let of_sample = |at: usize| {
        let mut sampled = summary.panel.iter().flat_map(|panel| &panel.sampled);
        sampled.any(|judge| judge.metric == judge_metric(at))
    };
    let of_all = summary.spec.judges.iter().enumerate().filter(|(at, _)| !of_sample(*at));
    let judges: Vec<(&String, f64)> = of_all.filter_map(|(at, judge)| Some((judge, value(at)?))).collect();
    if judges.len() < 2 {
        return None;
    }
    let values = || judges.iter().map(|(_, value)| *value);
    let moved = values().fold(0.0, f64::max) - values().fold(1.0, f64::min);
    let told: Vec<String> =
        judges.iter().map(|(judge, value)| format!("{judge} {}", percent_or_none(Some(*value)))).collect();
    Some(format!("the judge moves this by {} points: {}", percent(moved).trim_end_matches([' ', '%']), told.join(", ")))
}
