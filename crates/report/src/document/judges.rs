//! What a score owes to the judge that gave it, where several graded the same answers.

use bench_proto::{
    facts::judge_metric,
    summary::{MetricScore, Summary},
    text::one_line,
};

use crate::figures::{counted, interval, percent, percent_or_none};

/// How far the score moves with the judge.
pub(crate) struct Spread {
    /// `the judge moves this by 9.30 points (95 % interval 5.1 to 13.4)`
    pub(crate) said: String,
    /// `openai:a 71.40 %`, of each judge.
    pub(crate) values: Vec<String>,
    /// `the points are of the 180 questions that all judges graded`, where not all of them graded all.
    pub(crate) over: Option<String>,
}

/// What the judges of all questions make of a score that one of them heads; none with a single judge.
pub(crate) fn spread(summary: &Summary) -> Option<Spread> {
    let total = |score: &MetricScore| score.total(summary.headline.estimator);
    let score = |at: usize| summary.scores.iter().find(|score| score.metric == judge_metric(at));
    // those of other questions are no measure of the judge
    let of_sample = |at: usize| {
        let mut sampled = summary.panel.iter().flat_map(|panel| &panel.sampled);
        sampled.any(|judge| judge.metric == judge_metric(at))
    };
    let of_all = summary.spec.judges.iter().enumerate().filter(|(at, _)| !of_sample(*at));
    let judges: Vec<(usize, &String, f64)> =
        of_all.filter_map(|(at, judge)| Some((at, judge, total(score(at)?)?))).collect();
    if judges.len() < 2 || !judges.iter().any(|(at, ..)| judge_metric(*at) == summary.headline.metric) {
        return None;
    }
    let values = || judges.iter().map(|(.., value)| *value);
    let apart = || values().fold(0.0, f64::max) - values().fold(1.0, f64::min);
    // reports from before it was known have none; the interval is of the questions that all graded, and so is what it is around
    let known = summary.panel.as_ref().and_then(|panel| panel.spread.as_ref());
    let moved = known.map_or_else(apart, |spread| spread.value);
    let most = judges.iter().filter_map(|(at, ..)| Some(score(*at)?.n)).max().unwrap_or_default();
    let fewer = known.filter(|spread| spread.n < most).map(|spread| counted(spread.n, "question"));
    let around = known.and_then(|spread| spread.ci95.as_ref());
    let around = around.map(|ci| format!(" (95 % interval {})", interval(Some(ci)))).unwrap_or_default();
    Some(Spread {
        said: format!("the judge moves this by {} points{around}", percent(moved).trim_end_matches([' ', '%'])),
        values: judges
            .iter()
            .map(|(_, judge, value)| format!("{} {}", one_line(judge), percent_or_none(Some(*value))))
            .collect(),
        over: fewer.map(|questions| format!("the points are of the {questions} that all judges graded")),
    })
}

#[cfg(test)]
mod tests {
    use bench_proto::summary::{JudgeSpread, PanelSummary};

    use super::*;
    use crate::golden;

    #[test]
    fn the_points_are_of_the_questions_that_all_judges_graded_and_so_is_the_interval() {
        let mut summary = golden::report();
        summary.spec.judges = ["openai:a", "openai:b"].map(str::to_owned).to_vec();
        summary.headline.metric = judge_metric(0);
        let graded = MetricScore { n: 200, ..summary.scores[0].clone() };
        summary.scores = (0..2).map(|at| MetricScore { metric: judge_metric(at), ..graded.clone() }).collect();
        let mut told = |n: u64| {
            let (low_judge, high_judge) = (judge_metric(0), judge_metric(1));
            let known = JudgeSpread { value: 0.051, low_judge, high_judge, n, ci95: None, ci95_note: None };
            summary.panel = Some(PanelSummary { spread: Some(known), ..PanelSummary::default() });
            spread(&summary).expect("there are two judges")
        };
        let all = told(200);
        assert!(all.said.contains("by 5.10 points") && all.over.is_none(), "{} {:?}", all.said, all.over);
        let fewer = told(180);
        assert_eq!(fewer.values, all.values, "of each judge, and of nothing else");
        assert_eq!(fewer.over.as_deref(), Some("the points are of the 180 questions that all judges graded"));
    }
}
