//! How early rules for stopping decide, and how often wrongly: runs whose true scores, and true difference, are known.

use std::collections::BTreeMap;

use bench_proto::{
    metric::Better,
    stop::{LookOutcome, StopRule},
    summary::Estimator,
};

use crate::{
    compare::{
        difference::Means,
        pairs::{Pair, Rate},
    },
    draws::Chance,
    kinds::Kind,
    stopping::{bounds_of, look_at},
    strata::{Seen, Strata},
};

/// A run that may stop early, and its baseline.
#[derive(Debug, Clone)]
pub struct StopCase {
    /// Questions of each bank, all of which are asked if nothing is decided before.
    pub banks: Vec<Vec<Rate>>,
    /// When it may stop. The looks are of these questions.
    pub rule: StopRule,
    /// How much worse than its baseline the run truly is: so much of the mean is lost.
    pub drop: f64,
}

/// How such runs ended, as shares of the draws.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stops {
    /// Said to be better.
    pub better: f64,
    /// Said to be worse.
    pub worse: f64,
    /// Said not to differ by the margin.
    pub no_difference: f64,
    /// The score was known as exactly as asked for.
    pub narrow: f64,
    /// Nothing was decided at the last question.
    pub open: f64,
    /// Mean part of the questions that were asked.
    pub asked: f64,
    /// Whose last interval holds the true score, or the true difference.
    pub covers: f64,
}

/// What happens to such runs. Each draws new answers and verdicts of both runs, and another order of the questions: by chance within
/// the categories, spread evenly over these.
#[must_use]
pub fn stops(case: &StopCase, draws: u32, seed: u64) -> Stops {
    let mut simulation = Simulation::new(case, seed);
    let mut seen = Stops::default();
    for _ in 0..draws {
        simulation.run(&mut seen);
    }
    let share = |n: f64| n / f64::from(draws.max(1));
    Stops {
        better: share(seen.better),
        worse: share(seen.worse),
        no_difference: share(seen.no_difference),
        narrow: share(seen.narrow),
        open: share(seen.open),
        asked: share(seen.asked),
        covers: share(seen.covers),
    }
}

struct Simulation<'a> {
    case: &'a StopCase,
    chance: Chance,
    kinds: Vec<Kind>,
    population: BTreeMap<String, u64>,
    /// Bank and chance of each question.
    questions: Vec<(u32, Rate)>,
    /// Of each look.
    bounds: Vec<f64>,
    /// Means of the questions' chances, of the run and of its baseline.
    truths: [f64; 2],
}

impl<'a> Simulation<'a> {
    fn new(case: &'a StopCase, seed: u64) -> Self {
        let of_bank = |(bank, questions): (u32, &Vec<Rate>)| questions.iter().map(move |rate| (bank, *rate)).collect();
        let questions: Vec<(u32, Rate)> = (0..).zip(&case.banks).flat_map::<Vec<_>, _>(of_bank).collect();
        let most = questions.iter().map(|(_, question)| question.category).max().unwrap_or(0);
        let kind = |number: u32| Kind { category: format!("{number:03}"), facets: BTreeMap::new() };
        let kinds: Vec<Kind> = (0..=most).map(kind).collect();
        let mut population = BTreeMap::<String, u64>::new();
        for (_, question) in &questions {
            *population.entry(kinds[question.category as usize].category.clone()).or_default() += 1;
        }
        let mean = questions.iter().map(|(_, question)| question.rate).sum::<f64>() / questions.len().max(1) as f64;
        let truths = [mean - case.drop, mean];
        let bounds = bounds_of(&case.rule);
        Self { case, chance: Chance::new(seed), kinds, population, questions, bounds, truths }
    }

    fn run(&mut self, stops: &mut Stops) {
        let pairs = self.pairs();
        let rule = &self.case.rule;
        let truth = self.truths[0] - if rule.goal.compares() { self.truths[1] } else { 0.0 };
        for (number, look) in rule.looks.iter().enumerate() {
            let prefix = &pairs[..(*look as usize).min(pairs.len())];
            let seen = self.look(number, prefix);
            let last = number + 1 == rule.looks.len();
            if !seen.outcome.is_decided() && !last {
                continue;
            }
            stops.asked += prefix.len() as f64 / pairs.len() as f64;
            let holds = seen.interval.is_some_and(|[low, high]| low - 1e-12 <= truth && truth <= high + 1e-12);
            stops.covers += f64::from(u8::from(holds));
            *match seen.outcome {
                LookOutcome::Better => &mut stops.better,
                LookOutcome::Worse => &mut stops.worse,
                LookOutcome::NoDifference => &mut stops.no_difference,
                LookOutcome::Narrow => &mut stops.narrow,
                LookOutcome::Continues | LookOutcome::NoBaseline => &mut stops.open,
            } += 1.0;
            return;
        }
    }

    fn look(&self, number: usize, pairs: &[Pair]) -> crate::stopping::Seen {
        let mut strata = Strata::new(&[], &self.population, [], &self.kinds);
        let mut of_kinds = vec![Seen::default(); self.kinds.len()];
        for pair in pairs {
            let of = &mut of_kinds[pair.kind as usize];
            *of = Seen { all: of.all + 1, scored: of.scored + 1 };
        }
        strata.saw(&of_kinds);
        let means = Means { estimator: Estimator::Weighted, better: Better::Higher, strata: &strata };
        look_at(&self.case.rule.goal, self.bounds[number], &means, pairs)
    }

    /// Scores of both runs in the order of asking.
    fn pairs(&mut self) -> Vec<Pair> {
        let mut of_kinds: BTreeMap<u32, Vec<(u32, Rate)>> = BTreeMap::new();
        self.questions.iter().for_each(|each| of_kinds.entry(each.1.category).or_default().push(*each));
        let mut ordered: Vec<(f64, u32, Rate)> = Vec::with_capacity(self.questions.len());
        for questions in of_kinds.values_mut() {
            for at in 0..questions.len() {
                let other = at + self.chance.below(questions.len() - at);
                questions.swap(at, other);
            }
            let n = questions.len() as f64;
            ordered.extend(questions.iter().enumerate().map(|(rank, each)| ((rank as f64 + 0.5) / n, each.0, each.1)));
        }
        ordered.sort_by(|x, y| x.0.total_cmp(&y.0));
        let lost = self.case.drop / self.truths[1].max(1e-9);
        let chance = &mut self.chance;
        let pair = |(_, cluster, question): (f64, u32, Rate)| Pair {
            a: chance.verdict(question.rate * (1.0 - lost)),
            b: chance.verdict(question.rate),
            cluster,
            kind: question.category,
        };
        ordered.into_iter().map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::stop::StopGoal;

    use super::*;
    use crate::draws::LOCOMO_BANKS;

    /// As many questions of four categories as LoCoMo has, of which nine in ten are passed or failed by chance alone.
    fn case(goal: StopGoal, drop: f64) -> StopCase {
        let rate = |i: u64| [1.0, 0.0, 0.95, 0.6, 1.0, 0.9, 0.3, 1.0, 0.8, 0.7][(i % 10) as usize];
        let question = |i: u64| Rate { category: (i % 4) as u32, rate: rate(i / 3) };
        let banks: Vec<Vec<Rate>> = LOCOMO_BANKS.iter().map(|n| (0..n * 3 / 4).map(question).collect()).collect();
        let n: u64 = banks.iter().map(|bank| bank.len() as u64).sum();
        StopCase { banks, rule: StopRule { goal, looks: (1..=10).map(|look| n * look / 10).collect() }, drop }
    }

    fn by(margin: f64) -> StopGoal {
        StopGoal::Decided { run: "b".into(), digest: String::new(), margin }
    }

    /// Three standard errors of 5 % over 1,000 draws are 2 points.
    const DRAWS: u32 = 1_000;

    #[test]
    fn equal_runs_are_seldom_told_apart_however_often_is_looked() {
        let seen = stops(&case(by(0.08), 0.0), DRAWS, 1);
        assert!(seen.better + seen.worse <= 0.07 && seen.covers >= 0.93, "{seen:?}");
        assert!(seen.no_difference >= 0.9 && seen.asked <= 0.6, "{seen:?}");
    }

    #[test]
    fn a_large_difference_takes_few_of_the_questions() {
        let seen = stops(&case(by(0.08), 0.08), DRAWS, 2);
        assert!(seen.worse >= 0.95 && seen.asked <= 0.5 && seen.better == 0.0, "{seen:?}");
        let seen = stops(&case(by(0.04), 0.04), DRAWS, 3);
        assert!(seen.worse + seen.no_difference >= 0.7 && seen.asked <= 0.8, "{seen:?}");
    }

    #[test]
    fn a_score_that_is_known_is_where_it_is_said_to_be() {
        let seen = stops(&case(StopGoal::Interval { half_width: 0.03 }, 0.0), DRAWS, 4);
        assert!(seen.narrow == 1.0 && seen.covers >= 0.93 && seen.asked < 0.7, "{seen:?}");
    }
}
