//! Looks of a run that may stop early: what is known of its score, or of its difference to another run, at a prefix of its order.
//!
//! What is known is about *this benchmark* under new answers and verdicts: the mean of the categories, each with its part of the
//! sample, taken as a sample of ever so many questions of that kind. Without the factor for a finite population, for an interval
//! that shrinks to nothing at the last question would decide every pair of equal runs. A difference is looked at several times, and
//! its interval holds at all looks together (`bounds`); the width of a score's interval says nothing of where it lies, so that one
//! is the plain one (Chow and Robbins 1965). Pure.

mod bounds;

use bench_proto::{
    metric::Better,
    spec::RunSpec,
    stop::{LookOutcome, StopGoal, StopRule},
    summary::Estimator,
};

use crate::{
    compare::{PairedFacts, RunFacts, difference::Means, pairs::Pair},
    design::Design,
    interval::{Z, others_beyond, t_quantile},
    score::FEWEST_CLUSTERS,
    strata::Strata,
};

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Questions that the figure rests on.
    pub used: u64,
    /// The score, or the difference to the baseline.
    pub estimate: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// The interval for conversations like these, at this look alone.
    pub clustered: Option<[f64; 2]>,
    /// What follows.
    pub outcome: LookOutcome,
}

impl Seen {
    /// A look that has no figure.
    #[must_use]
    pub const fn nothing(outcome: LookOutcome) -> Self {
        Self { used: 0, estimate: None, interval: None, clustered: None, outcome }
    }
}

/// Looks at the questions of a run that have ended: all of the first `number` + 1 rounds. The rule compares them with the baseline,
/// where it names one.
#[must_use]
pub fn look(rule: &StopRule, number: usize, spec: &RunSpec, run: &RunFacts, baseline: Option<&RunFacts>) -> Seen {
    let compares = rule.goal.compares();
    let facts = PairedFacts::by_question(run, baseline.filter(|_| compares).unwrap_or(run));
    let sample = &spec.sample;
    let whole = if sample.stratified || sample.census { &spec.dataset.population } else { &sample.by_category };
    let mut strata = Strata::new(&sample.strata, whole, [], facts.kinds.list());
    strata.saw(&facts.seen());
    let better = spec.metric(&spec.headline_metric()).better;
    let means = Means { estimator: Estimator::Weighted, better, strata: &strata };
    let counted = facts.counted(&spec.dataset.profile.headline);
    look_at(&rule.goal, bound(rule, number), &means, &counted)
}

/// The same of pairs, the run's figure and the baseline's, at a look with this bound.
pub(crate) fn look_at(goal: &StopGoal, bound: f64, means: &Means<'_>, pairs: &[Pair]) -> Seen {
    let nothing = Seen { used: pairs.len() as u64, ..Seen::nothing(LookOutcome::Continues) };
    let compares = goal.compares();
    let figure = |pair: &Pair| if compares { pair.a - pair.b } else { pair.a };
    let Some(design) = means.design(pairs, figure) else { return nothing };
    let estimate = design.estimate();
    let least = if compares { -1.0 } else { 0.0 };
    let clustered = clustered(&design, least);
    let [low, high] = interval(&design, bound, least);
    let outcome = match goal {
        StopGoal::Interval { half_width } if (high - low) / 2.0 <= *half_width => LookOutcome::Narrow,
        StopGoal::Interval { .. } => LookOutcome::Continues,
        StopGoal::Decided { margin, .. } => decided((low, high), *margin, means.better),
    };
    Seen { estimate: Some(estimate), interval: Some([low, high]), clustered, outcome, ..nothing }
}

/// The bound of a look in standard errors.
fn bound(rule: &StopRule, number: usize) -> f64 {
    match rule.goal.compares() {
        true => bounds::bounds(&parts(rule, number + 1)).pop().unwrap_or(f64::INFINITY),
        false => Z,
    }
}

/// The same of each look of a rule.
pub(crate) fn bounds_of(rule: &StopRule) -> Vec<f64> {
    match rule.goal.compares() {
        true => bounds::bounds(&parts(rule, rule.looks.len())),
        false => vec![Z; rule.looks.len()],
    }
}

/// The part of the questions that has ended at each of the first looks: later ones change nothing of their bounds.
fn parts(rule: &StopRule, looks: usize) -> Vec<f64> {
    let all = rule.looks.last().copied().unwrap_or(1).max(1) as f64;
    rule.looks.iter().take(looks).map(|look| *look as f64 / all).collect()
}

/// The interval of an estimate, questions taken as independent: so many standard errors of Student's t.
fn interval(design: &Design, bound: f64, least: f64) -> [f64; 2] {
    let questions = design.strata.iter().map(|stratum| stratum.n - 1.0).sum::<f64>().max(1.0);
    let t = if bound == Z { t_quantile(questions) } else { bounds::t_of(bound, questions) };
    around(design, t * design.independent_variance().sqrt(), bound, least)
}

/// The interval with banks taken as drawn by chance, at this look alone.
fn clustered(design: &Design, least: f64) -> Option<[f64; 2]> {
    let variance = design.cluster_variance().filter(|_| design.clusters >= FEWEST_CLUSTERS)?;
    Some(around(design, t_quantile(design.clusters as f64 - 1.0) * variance.sqrt(), Z, least))
}

/// The estimate ± `half`, and at least as far as others could move it of which so many equal ones say nothing.
fn around(design: &Design, half: f64, bound: f64, least: f64) -> [f64; 2] {
    let estimate = design.estimate();
    let others = others_beyond(design.effective_questions(), bounds::outside(bound) / 2.0);
    let (low, high) = (estimate - others * (estimate - least), estimate + others * (1.0 - estimate));
    [(estimate - half).min(low).max(least), (estimate + half).max(high).min(1.0)]
}

/// What an interval of differences says.
fn decided((low, high): (f64, f64), margin: f64, better: Better) -> LookOutcome {
    let (above, below) = (low > 0.0, high < 0.0);
    match better {
        Better::Higher if above => LookOutcome::Better,
        Better::Higher if below => LookOutcome::Worse,
        Better::Lower if above => LookOutcome::Worse,
        Better::Lower if below => LookOutcome::Better,
        _ if -margin <= low && high <= margin => LookOutcome::NoDifference,
        _ => LookOutcome::Continues,
    }
}

/// A score whose answers vary little, and one in the middle: what a rule needs at the least, and what it may need.
const STANDARD_DEVIATIONS: [f64; 2] = [0.218, 0.5];
/// The same of a difference of two verdicts: two runs that differ on one question in twenty, and on four.
const OF_DIFFERENCES: [f64; 2] = [0.224, 0.45];

/// Questions that a goal takes, from scores of 95 % (or runs that differ on one question in twenty) to scores of 50 % (or runs that
/// differ on four in twenty): n = (z · sd / half-width)².
#[must_use]
pub fn questions_needed(goal: &StopGoal) -> [u64; 2] {
    let (half, deviations, z) = match goal {
        StopGoal::Interval { half_width } => (*half_width, STANDARD_DEVIATIONS, Z),
        // the last of ten looks
        StopGoal::Decided { margin, .. } => (*margin, OF_DIFFERENCES, LAST_OF_TEN),
    };
    deviations.map(|deviation| (z * deviation / half).powi(2).ceil() as u64)
}

/// The largest share of others that equal pairs may leave open for their sign to be told, the pairs being as far apart as pairs can
/// be: of a difference d a share q leaves d − q (1 + d), at d = 1 more than 0 below a half.
const SIGN_IS_TOLD: f64 = 0.5;

/// Fewest counted questions with which a rule can hold at all, at its last look: equal scores, or pairs that are all equal or all as
/// far apart as can be. What so many equal ones leave open, 1 − p^(1/n), has to fit in.
#[must_use]
pub fn fewest_questions(rule: &StopRule) -> u64 {
    let open = match &rule.goal {
        StopGoal::Interval { half_width } => 2.0 * half_width,
        StopGoal::Decided { margin, .. } => margin.max(SIGN_IS_TOLD),
    };
    if open >= 1.0 {
        return 1;
    }
    let last = bound(rule, rule.looks.len().saturating_sub(1));
    let rarely = bounds::outside(last) / 2.0;
    (rarely.ln() / (-open).ln_1p()).ceil() as u64
}

/// The bound of the last of ten even looks.
const LAST_OF_TEN: f64 = 2.0812;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::kinds::Kind;

    fn rule(goal: StopGoal) -> StopRule {
        StopRule { goal, looks: (1..=10).map(|look| look * 154).collect() }
    }

    fn decided_by(margin: f64) -> StopGoal {
        StopGoal::Decided { run: "b".into(), digest: String::new(), margin }
    }

    /// Looks at so many pairs of two categories, of which every fifth is what `odd` says and the others are (1, 1).
    fn look_of(rule: &StopRule, n: u32, odd: (f64, f64)) -> Seen {
        let kinds = ["c0", "c1"].map(|name| Kind { category: name.to_owned(), facets: BTreeMap::new() });
        let population = BTreeMap::from([("c0".to_owned(), 3_000), ("c1".to_owned(), 1_000)]);
        let strata = Strata::new(&[], &population, [], &kinds);
        let means = Means { estimator: Estimator::Weighted, better: Better::Higher, strata: &strata };
        let pair = |i: u32| {
            let (a, b) = if i.is_multiple_of(5) { odd } else { (1.0, 1.0) };
            Pair { a, b, cluster: i % 10, kind: i / 10 % 2 }
        };
        let number = rule.looks.iter().position(|look| u64::from(n) <= *look).expect("is a look");
        let bound = bound(rule, number);
        look_at(&rule.goal, bound, &means, &(0..n).map(pair).collect::<Vec<_>>())
    }

    #[test]
    fn equal_runs_are_found_equal_and_never_told_apart() {
        let rule = rule(decided_by(0.08));
        assert_eq!(look_of(&rule, 154, (0.0, 0.0)).outcome, LookOutcome::Continues, "so few equal pairs say little");
        let later = look_of(&rule, 616, (0.0, 0.0));
        assert_eq!((later.outcome, later.estimate), (LookOutcome::NoDifference, Some(0.0)));
        assert!(later.interval.is_some_and(|[low, high]| low < -0.005 && high > 0.005), "{later:?}");
    }

    #[test]
    fn what_differs_is_told_by_the_sign() {
        let rule = rule(decided_by(0.02));
        assert_eq!(look_of(&rule, 462, (0.0, 1.0)).outcome, LookOutcome::Worse);
        assert_eq!(look_of(&rule, 462, (1.0, 0.0)).outcome, LookOutcome::Better);
        for better in [Better::Higher, Better::Lower] {
            let words = |low, high| decided((low, high), 0.05, better);
            assert_eq!(words(-0.04, 0.04), LookOutcome::NoDifference);
            assert_eq!(words(-0.06, 0.04), LookOutcome::Continues);
            assert_eq!(words(0.01, 0.04) == LookOutcome::Better, better == Better::Higher, "beyond 0 goes first");
        }
    }

    #[test]
    fn a_rule_holds_with_the_fewest_questions_and_with_no_fewer() {
        let kinds = [Kind { category: "c".to_owned(), facets: BTreeMap::new() }];
        let strata = Strata::new(&[], &BTreeMap::from([("c".to_owned(), 4_000)]), [], &kinds);
        let means = Means { estimator: Estimator::Weighted, better: Better::Higher, strata: &strata };
        for (goal, b) in [(StopGoal::Interval { half_width: 0.03 }, 1.0), (decided_by(0.03), 0.0)] {
            let rule = rule(goal);
            let at = |n: u64| {
                let pairs: Vec<Pair> = (0..n).map(|i| Pair { a: 1.0, b, cluster: i as u32 % 5, kind: 0 }).collect();
                look_at(&rule.goal, bound(&rule, 9), &means, &pairs).outcome
            };
            let fewest = fewest_questions(&rule);
            assert_ne!(at(fewest), LookOutcome::Continues, "{rule:?}");
            assert_eq!(at(fewest - 1), LookOutcome::Continues, "{rule:?}");
        }
    }

    #[test]
    fn a_score_is_known_when_its_interval_is_narrow() {
        let rule = rule(StopGoal::Interval { half_width: 0.03 });
        // 1.96 · √(0.8 · 0.2 / n), and of n four fifths, for a half of the questions has a quarter of the weight
        for (n, narrow) in [(154, false), (770, false), (924, true)] {
            let seen = look_of(&rule, n, (0.0, 0.0));
            assert_eq!(seen.outcome == LookOutcome::Narrow, narrow, "{n}: {seen:?}");
            assert!((seen.estimate.expect("has one") - 0.8).abs() < 0.01);
        }
    }

    #[test]
    fn what_a_rule_takes_is_said_before() {
        // 1.96² · 0.25 / 0.03², and of scores of 95 % 1.96² · 0.0475 / 0.03²
        assert_eq!(questions_needed(&StopGoal::Interval { half_width: 0.03 }), [203, 1068]);
        let [few, many] = questions_needed(&decided_by(0.08));
        assert!((30..40).contains(&few) && (130..140).contains(&many), "{few} {many}");
        // ln 0.025 / ln (1 − 0.01), whatever the scores; a difference can be beyond 0 with few
        assert_eq!(fewest_questions(&rule(StopGoal::Interval { half_width: 0.005 })), 368);
        assert_eq!(fewest_questions(&rule(StopGoal::Interval { half_width: 0.03 })), 60);
        assert_eq!(fewest_questions(&rule(StopGoal::Interval { half_width: 0.5 })), 1);
        assert_eq!(fewest_questions(&rule(decided_by(0.03))), 6);
        let even: Vec<f64> = (1..=10).map(|look| f64::from(look) / 10.0).collect();
        let last = bounds::bounds(&even)[9];
        assert!((last - LAST_OF_TEN).abs() < 1e-3, "{last}");
    }
}
