//! What it costs, and how much it says, that a judge grades a sample of the questions.

use bench_plan::{EstimateInput, estimate};
use bench_proto::spec::RunSpec;
use serde::Serialize;

/// Correlation of two judges' verdicts that is taken for granted until they have been given.
const CORRELATION: f64 = 0.8;
/// Variance of verdicts of which three quarters pass.
const VARIANCE: f64 = 0.1875;

/// A judge of a sample, before it has graded anything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct JudgedPart {
    /// The model.
    judge: String,
    /// Questions that it grades.
    questions: u64,
    /// Questions of the run.
    of: u64,
    /// Dollars that are expected of it.
    usd: f64,
    /// The same on all questions.
    usd_of_all: f64,
    /// Half-widths of its score on all questions, in points, questions taken as independent: with the help of the first judge, where
    /// both correlate by 0.8; of the sample alone; of the judge on all.
    points: f64,
    points_alone: f64,
    points_of_all: f64,
}

/// Notes in an estimate's input how many questions each judge grades; returns those that do not grade all.
pub(super) fn judged(spec: &RunSpec, input: &mut EstimateInput) -> Vec<JudgedPart> {
    let size = |judge: usize| {
        let mut samples = spec.judging.samples.iter();
        samples.find(|sample| sample.judge as usize == judge).map(|sample| sample.n)
    };
    input.judged = (0..spec.judges.len()).map(size).collect();
    let part = |(at, judge): (usize, &bench_proto::spec::ModelSpec)| {
        let questions = size(at)?;
        let alone = EstimateInput {
            questions: input.questions,
            judges: input.judges.get(at).cloned().into_iter().collect(),
            judge_calls: input.judge_calls,
            votes: input.votes,
            ..EstimateInput::default()
        };
        let of_sample = EstimateInput { judged: vec![Some(questions)], ..alone.clone() };
        let [points, points_alone, points_of_all] = half_widths(questions, input.questions);
        Some(JudgedPart {
            judge: judge.display(),
            questions,
            of: input.questions,
            usd: estimate(&of_sample).expected.usd(),
            usd_of_all: estimate(&alone).expected.usd(),
            points,
            points_alone,
            points_of_all,
        })
    };
    spec.judges.iter().enumerate().filter_map(part).collect()
}

/// In points: with help, of the sample alone, of all.
fn half_widths(sampled: u64, all: u64) -> [f64; 3] {
    let (m, n) = (sampled as f64, all as f64);
    let unexplained = 1.0 - CORRELATION * CORRELATION;
    let helped = VARIANCE * (1.0 / n + (1.0 / m - 1.0 / n) * unexplained);
    [helped, VARIANCE / m, VARIANCE / n].map(|variance| 196.0 * variance.sqrt())
}

impl JudgedPart {
    /// One line for people.
    pub(super) fn words(&self) -> String {
        format!(
            "judge {} on {} of {} questions: expected ${:.4}, on all ${:.4}; its score of all to ± {:.1} points if the judges correlate by \
             {CORRELATION} (± {:.1} by the sample alone, ± {:.1} asked about all; naive)",
            self.judge,
            self.questions,
            self.of,
            self.usd,
            self.usd_of_all,
            self.points,
            self.points_alone,
            self.points_of_all
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lies_between_the_sample_alone_and_all() {
        let [helped, alone, all] = half_widths(200, 1_540);
        // 1.96 · √(0.1875 · (1/1540 + (1/200 − 1/1540) · 0.36)) and so on
        assert!((helped - 3.995).abs() < 0.001 && (alone - 6.001).abs() < 0.001 && (all - 2.163).abs() < 0.001);
        let [helped, alone, all] = half_widths(300, 300);
        assert!((helped - alone).abs() < 1e-12 && (alone - all).abs() < 1e-12);
    }
}
