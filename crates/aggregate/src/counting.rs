//! A run's figures by somebody else's counting.

use std::collections::BTreeMap;

use bench_proto::{
    counting::{Counted, CountedCategory, CountingSpec, CountingSummary, OnFailure},
    metric::Scale,
};

use crate::{agreement::Votes, input::AggregateInput, questions::Questions};

/// How verdicts are read.
const VERDICT: Scale = Scale::PLAIN;

/// A question in a category that counts.
#[derive(Debug, Clone, PartialEq)]
struct Graded {
    category: String,
    /// What it counts as; none where it got no grade.
    grade: Option<f64>,
    /// Of several judgements each that was made, by its number.
    judgements: Vec<(u32, bool)>,
}

/// The figures, where the run is counted so.
pub(crate) fn counting(input: &AggregateInput, questions: &Questions, votes: &Votes) -> Option<CountingSummary> {
    let counting = input.spec.counting.as_ref()?;
    let plan = input.spec.judge_plan();
    let judge = plan.metrics.iter().position(|metric| *metric == counting.metric);
    let judgements = judge.map(|judge| votes.by_question(judge)).unwrap_or_default();
    let scores: BTreeMap<&str, f64> =
        questions.by_metric(&counting.metric).map(|(row, score)| (&*row.id, score)).collect();
    let kinds = questions.kinds.list();
    let runs = if judge.is_some() { plan.votes } else { 1 };
    let (mut graded, mut left_out) = (Vec::new(), 0);
    for row in questions.rows() {
        let Some(kind) = kinds.get(row.kind as usize) else { continue };
        if counting.without.contains(&kind.category) {
            left_out += 1;
            continue;
        }
        let judgements = judgements.get(&row.task).cloned().unwrap_or_default();
        let grade = scores.get(&*row.id).map(|score| counts_as(counting, *score, &judgements, runs));
        graded.push(Graded {
            category: kind.category.clone(),
            grade: grade.filter(|_| row.outcome.has_score()),
            judgements,
        });
    }
    Some(figures(counting, &graded, runs, left_out))
}

/// What a question with this score, of which these of `runs` judgements were made, counts as.
fn counts_as(counting: &CountingSpec, score: f64, judgements: &[(u32, bool)], runs: u32) -> f64 {
    match counting.counted {
        Counted::Passes | Counted::MeanOfRuns if judgements.is_empty() => f64::from(u8::from(VERDICT.passes(score))),
        Counted::Passes | Counted::MeanOfRuns => {
            let right = judgements.iter().filter(|(_, right)| *right).count();
            // a judgement that failed is wrong where failures are, and none elsewhere; of two halves neither is most
            let all = if counting.on_failure == OnFailure::Wrong { runs as usize } else { judgements.len() };
            f64::from(u8::from(right * 2 > all))
        }
        Counted::Score => score,
        // the decimal nearest to the binary value, as their Python rounds: a half is no more up than down
        Counted::RoundedScore => format!("{score:.3}").parse().unwrap_or(score),
    }
}

fn figures(counting: &CountingSpec, graded: &[Graded], runs: u32, left_out: u64) -> CountingSummary {
    let in_total = |question: &&Graded| question.grade.is_some() || counting.on_failure == OnFailure::Wrong;
    let in_category = |question: &&Graded| question.grade.is_some() || counting.on_failure != OnFailure::Drop;
    let total: Vec<&Graded> = graded.iter().filter(in_total).collect();
    let mean = |questions: &[&Graded]| {
        let sum = questions.iter().map(|question| question.grade.unwrap_or(0.0)).sum::<f64>();
        (!questions.is_empty()).then(|| sum / questions.len() as f64)
    };
    let (value, sd) = match counting.counted {
        Counted::MeanOfRuns if runs > 1 => mean_of_runs(&total, runs),
        _ => (mean(&total), None),
    };
    let mut by_category: BTreeMap<&str, Vec<&Graded>> = BTreeMap::new();
    for question in graded {
        let of_category = by_category.entry(&question.category).or_default();
        of_category.extend(Some(question).filter(in_category));
    }
    let by_category = by_category.into_iter().map(|(category, questions)| CountedCategory {
        category: category.to_owned(),
        called: counting.names.get(category).cloned().unwrap_or_else(|| category.to_owned()),
        value: mean(&questions),
        n: questions.len() as u64,
    });
    CountingSummary {
        counting: counting.clone(),
        value,
        sd,
        runs,
        n: total.len() as u64,
        failed: graded.iter().filter(|question| question.grade.is_none()).count() as u64,
        left_out,
        by_category: by_category.collect(),
    }
}

/// Mean and population standard deviation of the accuracies of single judgements; one that was not made is wrong.
fn mean_of_runs(questions: &[&Graded], runs: u32) -> (Option<f64>, Option<f64>) {
    if questions.is_empty() {
        return (None, None);
    }
    let accuracies: Vec<f64> = (0..runs)
        .map(|run| {
            let right = |question: &&&Graded| question.judgements.contains(&(run, true));
            questions.iter().filter(right).count() as f64 / questions.len() as f64
        })
        .collect();
    let mean = accuracies.iter().sum::<f64>() / f64::from(runs);
    let variance = accuracies.iter().map(|accuracy| (accuracy - mean).powi(2)).sum::<f64>() / f64::from(runs);
    (Some(mean), Some(variance.sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graded(category: &str, grade: Option<f64>, judgements: &[bool]) -> Graded {
        Graded { category: category.to_owned(), grade, judgements: (0..).zip(judgements.iter().copied()).collect() }
    }

    fn counted(on_failure: OnFailure, counted: Counted) -> CountingSummary {
        let spec = CountingSpec {
            name: "theirs".to_owned(),
            names: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            on_failure,
            counted,
            ..CountingSpec::default()
        };
        let questions = [
            graded("a", Some(1.0), &[true, true, false]),
            graded("a", Some(0.0), &[false, true, false]),
            graded("a", None, &[]),
            graded("c", Some(1.0), &[true, true, true]),
        ];
        figures(&spec, &questions, 3, 7)
    }

    #[test]
    fn failures_count_as_the_counting_says() {
        for (on_failure, total, n, of_a) in [
            (OnFailure::Drop, 2.0 / 3.0, 3, 0.5),
            (OnFailure::Wrong, 0.5, 4, 1.0 / 3.0),
            (OnFailure::DropFromTotal, 2.0 / 3.0, 3, 1.0 / 3.0),
        ] {
            let found = counted(on_failure, Counted::Passes);
            assert_eq!((found.value, found.n, found.failed, found.left_out), (Some(total), n, 1, 7), "{on_failure:?}");
            let [a, c] = &found.by_category[..] else { panic!("{found:?}") };
            assert_eq!((a.value, a.called.as_str(), c.value, c.called.as_str()), (Some(of_a), "b", Some(1.0), "c"));
        }
    }

    #[test]
    fn scores_round_to_the_nearest_decimal_as_in_python() {
        let spec = CountingSpec { counted: Counted::RoundedScore, ..CountingSpec::default() };
        // round(5/16, 3), round(13/16, 3), round(7/16, 3), round(1/16, 3), round(2/3, 3)
        for (score, rounded) in [(0.3125, 0.312), (0.8125, 0.812), (0.4375, 0.438), (0.0625, 0.062), (2.0 / 3.0, 0.667)]
        {
            assert_eq!(counts_as(&spec, score, &[], 1), rounded, "{score}");
        }
    }

    #[test]
    fn a_failed_judgement_makes_no_majority() {
        let of = |counted, on_failure, score: f64, judgements: &[bool]| {
            let spec = CountingSpec { counted, on_failure, ..CountingSpec::default() };
            let judgements: Vec<(u32, bool)> = (0..).zip(judgements.iter().copied()).collect();
            counts_as(&spec, score, &judgements, 3)
        };
        // one of three judgements was made: the two that failed are wrong there, and nothing elsewhere
        assert_eq!(of(Counted::MeanOfRuns, OnFailure::Wrong, 1.0, &[true]), 0.0);
        assert_eq!(of(Counted::MeanOfRuns, OnFailure::Wrong, 1.0, &[true, true]), 1.0);
        assert_eq!(of(Counted::Passes, OnFailure::Drop, 1.0, &[true]), 1.0);
        // the median of one against one is one half, which would pass
        assert_eq!(of(Counted::Passes, OnFailure::Drop, 0.5, &[true, false]), 0.0);
        assert_eq!(of(Counted::Passes, OnFailure::Drop, 1.0, &[]), 1.0, "no votes were kept");
    }

    #[test]
    fn single_judgements_are_runs_and_categories_go_by_their_majority() {
        let found = counted(OnFailure::Wrong, Counted::MeanOfRuns);
        // 2, 3 and 1 of 4 questions are right
        let (mean, sd) = (0.5, (2.0_f64 * 0.25 * 0.25 / 3.0).sqrt());
        assert!((found.value.expect("one") - mean).abs() < 1e-12 && (found.sd.expect("one") - sd).abs() < 1e-12);
        assert_eq!(found.by_category[0].value, Some(1.0 / 3.0), "one of three passed by majority, one failed");
        assert_eq!(figures(&CountingSpec::default(), &[], 1, 0).value, None);
    }

    /// The same answers, three judgements each, as their own file of figures has them.
    #[test]
    fn the_published_grades_give_the_published_means() {
        let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
        let folder = std::env::var_os("BENCH_REFERENCE_DIR").map_or_else(|| beside.into(), std::path::PathBuf::from);
        let path = folder.join("data/reference-results/grades/locomo_audit_gpt-4o-mini-cot.jsonl");
        let Ok(text) = std::fs::read_to_string(&path) else {
            eprintln!("NOT TESTED: no {} (set BENCH_REFERENCE_DIR)", path.display());
            return;
        };
        let line = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).expect("a line");
            let grades = line["grades"].as_array().expect("grades").iter();
            let grades: Vec<bool> = grades.map(|grade| grade.as_u64() == Some(1)).collect();
            let passed = grades.iter().filter(|grade| **grade).count() * 2 > grades.len();
            graded(&line["category"].to_string(), Some(f64::from(u8::from(passed))), &grades)
        };
        let questions: Vec<Graded> = text.lines().map(line).collect();
        let spec =
            CountingSpec { counted: Counted::MeanOfRuns, on_failure: OnFailure::Wrong, ..CountingSpec::default() };
        let found = figures(&spec, &questions, 3, 0);
        assert_eq!((found.n, format!("{:.2}", found.value.expect("one") * 100.0)), (1540, "79.89".to_owned()));
    }
}
