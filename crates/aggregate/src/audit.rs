//! How often judges err about planted answers: false accepts of wrong ones, false rejects of right ones.

use std::collections::BTreeMap;

use bench_proto::{
    audit::{PLANTED, PLANTED_FORM, PLANTED_LENGTH},
    metric::Scale,
    summary::{AuditRate, FacetScore, Interval, JudgeAudit, JudgeError},
};

use crate::{
    agreement::Votes, cells::cells_of, input::AggregateInput, kinds::Kind, questions::Questions, score::facet_scores,
};

/// How errors are added up: they are shares already.
const ERRORS: Scale = Scale::PLAIN;

/// Some planted answers, in the order of the report: all that can err in a direction, a kind, a part of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    depth: usize,
    error: JudgeError,
    kind: Option<String>,
    part: Option<(String, String)>,
}

/// The audit of a run whose answers are planted.
pub(crate) fn audit(input: &AggregateInput, questions: &Questions, votes: &Votes) -> Option<JudgeAudit> {
    let planted = input.spec.dataset.planted.clone()?;
    let judges = input.spec.judge_plan().metrics;
    // a grade that came with its answer may be the mean of several judgements, and each of them has erred or not
    let by_judges = !judges.is_empty();
    let metrics = if by_judges { judges } else { vec![input.headline_metric()] };
    let error_of = |kind: &str| {
        let is_in = |kinds: &[String]| kinds.iter().any(|known| known == kind);
        let wrong = is_in(&planted.wrong).then_some(JudgeError::FalseAccept);
        wrong.or_else(|| is_in(&planted.right).then_some(JudgeError::FalseReject))
    };
    let groups_of = |kind: &Kind| -> Vec<Group> {
        let Some(name) = kind.facets.get(PLANTED) else { return Vec::new() };
        let Some(error) = error_of(name) else { return Vec::new() };
        let whole = [(0, None), (1, Some(name.clone()))];
        let whole = whole.into_iter().map(|(depth, kind)| Group { depth, error, kind, part: None });
        let parts = [PLANTED_FORM, PLANTED_LENGTH].into_iter().filter_map(|facet| {
            let part = Some((facet.to_owned(), kind.facets.get(facet)?.clone()));
            Some(Group { depth: 2, error, kind: Some(name.clone()), part })
        });
        whole.chain(parts).collect()
    };
    let of_kinds: Vec<Vec<Group>> = questions.kinds.list().iter().map(groups_of).collect();
    let rates = metrics.iter().enumerate().flat_map(|(judge, metric)| {
        let (shares, scale) = (votes.shares(judge), input.spec.metric(metric));
        let mut groups: BTreeMap<&Group, Vec<Judged>> = BTreeMap::new();
        for (row, score) in questions.by_metric(metric) {
            let share = shares.get(&row.task).copied();
            let passing = share.unwrap_or_else(|| f64::from(u8::from(scale.passes(score))));
            let judged = Judged { bank: row.bank, accepted: if by_judges { passing } else { score }, passing };
            for group in of_kinds.get(row.kind as usize).into_iter().flatten() {
                groups.entry(group).or_default().push(judged);
            }
        }
        groups.into_iter().map(|(group, answers)| rate(metric, group, &answers)).collect::<Vec<_>>()
    });
    // of grades that were brought with their judge, what its votes were is not
    let medians_of = Some(input.spec.votes).filter(|several| by_judges && *several > 1 && votes.is_empty());
    Some(JudgeAudit { rates: rates.collect(), planted, medians_of })
}

/// What judgements make of an answer.
#[derive(Debug, Clone, Copy)]
struct Judged {
    bank: u32,
    /// Share of them that accept it: a grade that came with its answer is taken for that.
    accepted: f64,
    /// The same, with such a grade as one judgement.
    passing: f64,
}

/// Of answers, the share of judgements that err, and how often most of them do: of two halves neither is most.
fn rate(metric: &str, group: &Group, answers: &[Judged]) -> AuditRate {
    let errs = |accepted: f64| match group.error {
        JudgeError::FalseAccept => accepted,
        JudgeError::FalseReject => 1.0 - accepted,
    };
    let scores = answers.iter().map(|judged| (0, judged.bank, errs(judged.accepted)));
    let cells = cells_of(scores, ERRORS);
    let rate = facet_scores(&cells, &["all".to_owned()]).remove("all").unwrap_or(FacetScore {
        n: 0,
        value: None,
        clusters: 0,
        ci95: None::<Interval>,
        ci95_note: None,
        naive_ci95: None,
    });
    let most = answers.iter().filter(|judged| errs(judged.passing) > 0.5).count();
    AuditRate {
        metric: metric.to_owned(),
        error: group.error,
        kind: group.kind.clone(),
        part: group.part.clone(),
        rate,
        by_majority: (!answers.is_empty()).then(|| most as f64 / answers.len() as f64),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bench_proto::{
        audit::PlantedSpec,
        facts::QuestionFacts,
        ids::TaskKey,
        step::{StepFacts, StepNo, StoredStep},
    };

    use super::*;
    use crate::{
        Aggregator,
        aggregator::tests::{input, question},
    };

    /// Planted answers of two kinds: a question's number says how many of its three votes accept it.
    fn audited(votes: u32) -> JudgeAudit {
        let mut input = input(40);
        input.spec.votes = votes;
        input.spec.dataset.planted = Some(PlantedSpec {
            version: 1,
            source: None,
            answers_of: None,
            wrong: vec!["vague".to_owned()],
            right: vec!["paraphrase".to_owned()],
        });
        let mut aggregator = Aggregator::new(input);
        for i in (0..40_u64).filter(|i| i % 11 != 1) {
            let accepted = (i % 4) as u32;
            let passes = f64::from(u8::from(accepted >= 2));
            let kind = if i % 2 == 0 { "vague" } else { "paraphrase" };
            let facets =
                [(PLANTED, kind), (PLANTED_LENGTH, "bare")].map(|(name, value)| (name.to_owned(), value.to_owned()));
            let facts = QuestionFacts {
                facets: BTreeMap::from(facets),
                scores: vec![("judge".to_owned(), passes)],
                ..question(i)
            };
            aggregator.add(&facts);
            for vote in 0..votes {
                let task = TaskKey::judge(facts.task.bank(), facts.task.index(), 0, vote);
                let score = f64::from(u8::from(vote < accepted));
                let score = Some(score);
                let facts =
                    StepFacts::Judged { score, parts: vec![], usage: Default::default(), timing: Default::default() };
                aggregator.add_judge_step(&StoredStep { task, step: StepNo::JUDGE, facts });
            }
        }
        aggregator.finish(Vec::<String>::new()).summary.judge_audit.expect("is an audit")
    }

    #[test]
    fn false_accepts_are_of_wrong_answers_and_false_rejects_of_right_ones() {
        let audit = audited(3);
        let of = |error: JudgeError, kind: Option<&str>| {
            let found = audit.rates.iter().find(|rate| rate.error == error && rate.kind.as_deref() == kind);
            let rate = found.expect("is told");
            (rate.rate.n, rate.rate.value.expect("has one"), rate.by_majority.expect("has one"))
        };
        // even numbers accept 0 or 2 of 3 votes, odd ones 1 or 3
        let (n, mean, majority) = of(JudgeError::FalseAccept, Some("vague"));
        let twos = (0..40).filter(|i| i % 11 != 1 && i % 4 == 2).count() as f64;
        assert!((mean - twos * 2.0 / 3.0 / n as f64).abs() < 1e-12 && (majority - twos / n as f64).abs() < 1e-12);
        let (n, mean, majority) = of(JudgeError::FalseReject, Some("paraphrase"));
        let ones = (0..40).filter(|i| i % 11 != 1 && i % 4 == 1).count() as f64;
        assert!((mean - ones * 2.0 / 3.0 / n as f64).abs() < 1e-12 && (majority - ones / n as f64).abs() < 1e-12);
        assert_eq!(of(JudgeError::FalseAccept, None), of(JudgeError::FalseAccept, Some("vague")));
        let parts = audit.rates.iter().filter_map(|rate| rate.part.as_ref()).collect::<Vec<_>>();
        assert_eq!(parts, [&(PLANTED_LENGTH.to_owned(), "bare".to_owned()); 2]);
        assert!(audit.rates.iter().all(|rate| rate.rate.naive_ci95.is_some()));
    }

    /// Planted answers that one judge grades by so many votes, or that came with their grades: a third each gets 0.2, 0.5 and 0.9.
    fn graded(by_judge: bool, votes: u32) -> JudgeAudit {
        let mut input = input(30);
        input.spec.votes = votes;
        if !by_judge {
            input.spec.judges.clear();
            input.spec.headline = Some("imported".to_owned());
        }
        input.spec.dataset.planted =
            Some(PlantedSpec { version: 1, wrong: vec!["vague".to_owned()], ..PlantedSpec::default() });
        let mut aggregator = Aggregator::new(input);
        let metric = if by_judge { "judge" } else { "imported" };
        for (i, grade) in (0..30).zip([0.2, 0.5, 0.9].into_iter().cycle()) {
            let facts = QuestionFacts {
                facets: BTreeMap::from([(PLANTED.to_owned(), "vague".to_owned())]),
                scores: vec![(metric.to_owned(), grade)],
                outcome: bench_proto::facts::Outcome::Scored,
                ..question(i)
            };
            aggregator.add(&facts);
        }
        aggregator.finish(Vec::<String>::new()).summary.judge_audit.expect("is an audit")
    }

    #[test]
    fn a_grade_between_the_verdicts_errs_by_the_threshold_of_its_metric() {
        for rate in graded(true, 1).rates {
            assert_eq!((rate.rate.value, rate.by_majority), (Some(2.0 / 3.0), Some(2.0 / 3.0)), "{rate:?}");
        }
        for rate in graded(false, 1).rates {
            let mean = rate.rate.value.expect("has one");
            assert!((mean - 1.6 / 3.0).abs() < 1e-9, "the mean of what came with the answers: {rate:?}");
        }
    }

    #[test]
    fn medians_of_votes_that_are_not_known_are_told_as_such() {
        let audit = graded(true, 3);
        assert_eq!(audit.medians_of, Some(3));
        assert!(audit.rates.iter().all(|rate| rate.rate.value == rate.by_majority), "{audit:?}");
        assert_eq!(audited(3).medians_of, None, "each vote is known");
        assert_eq!([graded(true, 1), graded(false, 3)].map(|audit| audit.medians_of), [None, None]);
    }

    #[test]
    fn of_two_halves_neither_is_the_majority() {
        // a vote of three failed, and of the two that are left one accepts; the median, one half, would pass
        for error in [JudgeError::FalseAccept, JudgeError::FalseReject] {
            let group = Group { depth: 0, error, kind: None, part: None };
            let split = Judged { bank: 0, accepted: 0.5, passing: 0.5 };
            let rate = rate("judge", &group, &[split, split]);
            assert_eq!((rate.rate.value, rate.by_majority), (Some(0.5), Some(0.0)), "{error:?}");
        }
    }

    #[test]
    fn without_votes_the_grades_are_the_judgements() {
        let audit = audited(0);
        assert!(audit.rates.iter().all(|rate| rate.rate.value == rate.by_majority), "{audit:?}");
    }
}
