//! How often comparisons and gates decide, and how often wrongly: pairs of runs whose true difference is known.

use std::collections::BTreeMap;

use bench_proto::{
    comparison::{CategoryDifference, PairedDifference, Word},
    gate::GateVerdict,
    metric::Better,
    summary::Estimator,
};

use crate::{
    compare::{
        category_differences,
        difference::{Means, paired_difference},
        pairs::{Pair, Rate},
    },
    draws::{Chance, logistic},
    gate::{Policy, decide, score_checks},
    kinds::Kind,
    strata::{Seen, Strata},
};

/// Which questions of a dataset are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    /// All: the estimate is a mean.
    Full,
    /// A number of questions of each bank, the same of each of its categories: the estimate is weighted.
    PerBank(u64),
    /// A number for each bank on average, of each category of each bank its share and one at least: weighted.
    Share(u64),
}

/// Pairs of runs that are simulated.
#[derive(Debug, Clone)]
pub struct DecisionCase {
    /// Questions of each bank of the dataset.
    pub banks: Vec<Vec<Rate>>,
    /// Which of them are asked.
    pub sampled: Sampled,
    /// Questions of each category in the dataset, where `banks` are a sample of it whose score is weighted; none where they are
    /// the dataset.
    pub population: BTreeMap<u32, u64>,
    /// Banks of each draw, taken from these; none is repeated where there are enough.
    pub count: usize,
    /// Standard deviation, on the logit scale, of what a run does to all questions of a bank: filled anew, it differs.
    pub bank_noise: f64,
    /// How much worse the second run truly is: so much of the mean is lost.
    pub drop: f64,
    /// Runs whose mean is the baseline.
    pub baseline_runs: u32,
    /// Runs whose mean is held against it: the repeats of a group; 1 for a single run.
    pub runs: u32,
    /// Change that does not matter, for the words.
    pub tolerance: f64,
}

impl DecisionCase {
    /// No fall, one by the tolerance and one by twice as much; apart from these what the score cannot fall by, being lower itself.
    #[must_use]
    pub fn falls(&self) -> (Vec<f64>, Vec<f64>) {
        let questions = || self.banks.iter().flatten();
        let score = questions().map(|question| question.rate).sum::<f64>() / questions().count().max(1) as f64;
        [0.0, self.tolerance, 2.0 * self.tolerance].into_iter().partition(|fall| *fall <= score)
    }
}

/// Shares of the words that were said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Words {
    /// Share of comparisons that say BETTER.
    pub better: f64,
    /// Share that says WORSE.
    pub worse: f64,
    /// Share that says NO CHANGE.
    pub no_change: f64,
    /// Share that says INCONCLUSIVE.
    pub inconclusive: f64,
    /// Mean of the smallest difference that a comparison says it finds with 80 % power.
    pub detectable: f64,
}

/// Shares of the ways in which a gate ended.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ends {
    /// Share of gates that pass.
    pub pass: f64,
    /// Share that fails.
    pub fail: f64,
    /// Share that cannot decide.
    pub inconclusive: f64,
}

/// What comparisons say of such pairs.
#[must_use]
pub fn words(case: &DecisionCase, draws: u32, seed: u64) -> Words {
    let mut simulation = Simulation::new(case, seed);
    let mut said = Words::default();
    for _ in 0..draws {
        let (paired, _) = simulation.pair(false);
        said.detectable += paired.mde.unwrap_or(0.0);
        *match paired.verdict {
            Word::Better => &mut said.better,
            Word::Worse => &mut said.worse,
            Word::NoChange => &mut said.no_change,
            Word::Inconclusive => &mut said.inconclusive,
        } += 1.0;
    }
    let share = |n: f64| n / f64::from(draws.max(1));
    Words {
        better: share(said.better),
        worse: share(said.worse),
        no_change: share(said.no_change),
        inconclusive: share(said.inconclusive),
        detectable: share(said.detectable),
    }
}

/// How gates with the rules on scores of a policy end.
#[must_use]
pub fn ends(case: &DecisionCase, policy: &Policy, draws: u32, seed: u64) -> Ends {
    let mut simulation = Simulation::new(case, seed);
    let mut seen = Ends::default();
    for _ in 0..draws {
        let (paired, by_category) = simulation.pair(true);
        *match decide(&score_checks((&paired, &by_category, Better::Higher), policy)) {
            GateVerdict::Pass => &mut seen.pass,
            GateVerdict::Inconclusive => &mut seen.inconclusive,
            GateVerdict::Fail | GateVerdict::Invalid => &mut seen.fail,
        } += 1.0;
    }
    let share = |n: f64| n / f64::from(draws.max(1));
    Ends { pass: share(seen.pass), fail: share(seen.fail), inconclusive: share(seen.inconclusive) }
}

struct Simulation<'a> {
    case: &'a DecisionCase,
    chance: Chance,
    kinds: Vec<Kind>,
    /// Order of the banks of the dataset, shuffled anew for each draw.
    order: Vec<usize>,
}

impl<'a> Simulation<'a> {
    fn new(case: &'a DecisionCase, seed: u64) -> Self {
        let most = case.banks.iter().flatten().map(|question| question.category).max().unwrap_or(0);
        let kind = |number: u32| Kind { category: format!("{number:03}"), facets: BTreeMap::new() };
        Self {
            case,
            chance: Chance::new(seed),
            kinds: (0..=most).map(kind).collect(),
            order: (0..case.banks.len()).collect(),
        }
    }

    /// The differences of one pair of runs, by category too where they are wanted.
    fn pair(&mut self, categories: bool) -> (PairedDifference, Vec<CategoryDifference>) {
        let banks = self.banks();
        let (pairs, population) = self.scores(&banks);
        let of_dataset = &self.case.population;
        let weighted = self.case.sampled != Sampled::Full || !of_dataset.is_empty();
        let population = if of_dataset.is_empty() { &population } else { of_dataset };
        let named = population.iter().map(|(kind, n)| (self.kinds[*kind as usize].category.clone(), *n));
        let mut strata = Strata::new(&[], &named.collect(), [], &self.kinds);
        let mut seen = vec![Seen::default(); self.kinds.len()];
        for pair in &pairs {
            let of = &mut seen[pair.kind as usize];
            *of = Seen { all: of.all + 1, scored: of.scored + 1 };
        }
        strata.saw(&seen);
        let estimator = if weighted { Estimator::Weighted } else { Estimator::Mean };
        let means = Means { estimator, better: Better::Higher, strata: &strata };
        let paired = paired_difference(&means, &pairs, self.case.tolerance);
        if !categories {
            return (paired, Vec::new());
        }
        let mut of_kinds: BTreeMap<&str, Vec<Pair>> = BTreeMap::new();
        for pair in &pairs {
            of_kinds.entry(&self.kinds[pair.kind as usize].category).or_default().push(*pair);
        }
        (paired, category_differences(&means, of_kinds, self.case.tolerance))
    }

    /// The banks of a draw.
    fn banks(&mut self) -> Vec<usize> {
        let known = self.order.len();
        (0..self.case.count)
            .map(|at| {
                if at >= known {
                    return self.chance.below(known);
                }
                let other = at + self.chance.below(known - at);
                self.order.swap(at, other);
                self.order[at]
            })
            .collect()
    }

    /// Scores of both sides, and how many questions of each category the dataset has.
    fn scores(&mut self, banks: &[usize]) -> (Vec<Pair>, BTreeMap<u32, u64>) {
        let case = self.case;
        let (of_baseline, of_new) = (case.baseline_runs.max(1), case.runs.max(1));
        let mut population: BTreeMap<u32, u64> = BTreeMap::new();
        let mut pairs = Vec::new();
        let questions: usize = banks.iter().map(|bank| case.banks[*bank].len()).sum();
        for (cluster, bank) in (0_u32..).zip(banks) {
            for question in &case.banks[*bank] {
                *population.entry(question.category).or_default() += 1;
            }
            let shifts: Vec<f64> = (0..of_new + of_baseline).map(|_| case.bank_noise * self.chance.normal()).collect();
            let (news, olds) = shifts.split_at(of_new as usize);
            for question in self.asked(&case.banks[*bank], questions as f64 / banks.len() as f64) {
                let mut score = |shift: f64| {
                    let rate = question.rate;
                    let moved =
                        if rate <= 0.0 || rate >= 1.0 { rate } else { logistic((rate / (1.0 - rate)).ln() + shift) };
                    self.chance.verdict(moved)
                };
                let a = olds.iter().map(|shift| score(*shift)).sum::<f64>() / f64::from(of_baseline);
                let b = news.iter().map(|shift| score(*shift)).sum::<f64>() / f64::from(of_new);
                pairs.push(Pair { a, b, cluster, kind: question.category });
            }
        }
        self.lose(&mut pairs);
        (pairs, population)
    }

    /// Takes passed questions of the second side away by chance, so that its mean falls by the drop: what has truly fallen is lost in
    /// each of its runs.
    fn lose(&mut self, pairs: &mut [Pair]) {
        let passed: f64 = pairs.iter().map(|pair| pair.b).sum();
        let lost = self.case.drop * pairs.len() as f64 / passed.max(1.0);
        if lost > 0.0 {
            for pair in pairs {
                pair.b *= self.chance.verdict(1.0 - lost);
            }
        }
    }

    /// The questions of a bank that are asked; `mean_size` is the mean number of questions of a bank.
    fn asked(&mut self, bank: &[Rate], mean_size: f64) -> Vec<Rate> {
        let mut of_categories: BTreeMap<u32, Vec<Rate>> = BTreeMap::new();
        bank.iter().for_each(|question| of_categories.entry(question.category).or_default().push(*question));
        let present = of_categories.len() as u64;
        let mut asked = Vec::new();
        for mut questions in of_categories.into_values() {
            let wanted = match self.case.sampled {
                Sampled::Full => questions.len(),
                Sampled::PerBank(n) => n.div_ceil(present).max(1) as usize,
                // rounded by chance, so that every question has its share
                Sampled::Share(n) => {
                    let share = questions.len() as f64 * n as f64 / mean_size;
                    ((share + self.chance.fraction()).floor() as usize).max(1)
                }
            };
            for at in 0..wanted.min(questions.len()) {
                let other = at + self.chance.below(questions.len() - at);
                questions.swap(at, other);
                asked.push(questions[at]);
            }
        }
        asked
    }
}
