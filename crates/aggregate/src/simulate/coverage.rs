//! Do 95 % intervals hold the truth in 95 % of the cases?

use bench_proto::{
    metric::{Better, Scale},
    summary::Estimator,
};

use crate::{
    cells::{Cell, Tally},
    draws::{Chance, Effects, Spread},
    score::{Category, Estimate, Sampling, estimate},
};

/// What the scores of a simulated run are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scores {
    /// 0 or 1.
    Verdicts,
    /// Full marks with a part taken off, evenly spread, for as many questions as make the mean; none, with a part given, below ½.
    Graded,
}

/// A run that is simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct CoverageCase {
    /// Questions of each bank.
    pub banks: Vec<u64>,
    /// Mean score.
    pub p: f64,
    /// Intra-class correlation of verdicts: the banks' chances have the variance `correlation` · p(1 − p).
    pub correlation: f64,
    /// How banks differ.
    pub effects: Effects,
    /// What is scored.
    pub scores: Scores,
}

/// How often intervals hold the truth, as shares of the draws.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Coverage {
    /// The interval of the report does.
    pub covers: f64,
    /// It lies above the truth.
    pub above: f64,
    /// It lies below.
    pub below: f64,
    /// There is none, which counts as one that does not hold it.
    pub none: f64,
    /// The cluster-robust t interval alone does.
    pub t_covers: f64,
    /// Questions taken as independent.
    pub naive_covers: f64,
    /// Mean half-width, where there is an interval.
    pub half_width: f64,
}

/// Draws runs and counts whose intervals hold the mean that they were drawn with.
#[must_use]
pub fn coverage(case: &CoverageCase, draws: u32, seed: u64) -> Coverage {
    let mut chance = Chance::new(seed);
    let spread = Spread::new(case.effects, case.p, case.correlation);
    let asked = case.banks.iter().sum();
    let category = Category { number: 0, name: String::new(), population: Some(asked), asked, lost: 0 };
    let full = Sampling { estimator: Estimator::Mean, better: Better::Higher, by_chance: false, census: true };
    let mut seen = Coverage::default();
    let mut cells = Vec::with_capacity(case.banks.len());
    for _ in 0..draws {
        cells.clear();
        cells.extend((0_u32..).zip(&case.banks).map(|(cluster, n)| {
            let q = spread.draw(&mut chance);
            Cell { stratum: 0, cluster, tally: tally(*n, q, case.scores, &mut chance) }
        }));
        seen.count(&estimate(&cells, std::slice::from_ref(&category), full), case.p);
    }
    seen.shares(draws)
}

fn tally(n: u64, q: f64, scores: Scores, chance: &mut Chance) -> Tally {
    if scores == Scores::Verdicts {
        return Tally::of_shares(chance.successes(n, q), n);
    }
    let mut tally = Tally::EMPTY;
    for _ in 0..n {
        let (part, high) = (chance.fraction(), q >= 0.5);
        let score = if chance.fraction() < 2.0 * q.min(1.0 - q) { part } else { 0.0 };
        tally.add(if high { 1.0 - score } else { score }, Scale::PLAIN);
    }
    tally
}

impl Coverage {
    fn count(&mut self, total: &Estimate, truth: f64) {
        let one = |holds: bool| f64::from(u8::from(holds));
        let covers = |interval: Option<&bench_proto::summary::Interval>| {
            one(interval.is_some_and(|i| i.low <= truth && truth <= i.high))
        };
        self.naive_covers += covers(total.naive_ci95.as_ref());
        self.t_covers += covers(total.t_ci95.as_ref());
        match &total.ci95 {
            None => self.none += 1.0,
            Some(interval) => {
                self.above += one(interval.low > truth);
                self.below += one(interval.high < truth);
                self.covers += covers(Some(interval));
                self.half_width += (interval.high - interval.low) / 2.0;
            }
        }
    }

    fn shares(self, draws: u32) -> Self {
        let draws = f64::from(draws.max(1));
        let with_interval = draws - self.none;
        Self {
            covers: self.covers / draws,
            above: self.above / draws,
            below: self.below / draws,
            none: self.none / draws,
            t_covers: self.t_covers / draws,
            naive_covers: self.naive_covers / draws,
            half_width: self.half_width / with_interval.max(1.0),
        }
    }
}
