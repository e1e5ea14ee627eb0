//! Do 95 % intervals of stratified samples hold what they are about: the mean of all questions of the dataset, and that of banks
//! like these?

use bench_proto::{
    metric::Better,
    summary::{Estimator, Interval},
};

use crate::{
    cells::{Cell, Tally},
    draws::{Chance, Effects, Spread},
    score::{Category, Sampling, estimate},
};

/// A stratum of a sample that is simulated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledStratum {
    /// Mean score of its questions.
    pub p: f64,
    /// Its questions in each bank of the dataset.
    pub of_bank: u64,
    /// Those of them that are asked.
    pub asked: u64,
}

/// A sample that is simulated: verdicts of banks that have as many questions of a stratum each.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleCase {
    /// What the sample takes its shares of.
    pub strata: Vec<SampledStratum>,
    /// Number of banks.
    pub banks: u32,
    /// Intra-class correlation of the verdicts of a stratum. What a bank is like moves its chances in all strata alike, by a normal
    /// number on the logit scale.
    pub correlation: f64,
}

/// How often intervals hold what they are about, as shares of the draws. None counts as one that does not.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SampleCoverage {
    /// "Conversations like these" holds the mean of all banks that could be drawn.
    pub like_these: f64,
    /// "This benchmark" holds the mean of all questions of the dataset.
    pub this_benchmark: f64,
    /// One of both is not there.
    pub none: f64,
    /// Mean half-width of the first, where there is one.
    pub like_these_half_width: f64,
    /// Mean half-width of the second.
    pub this_benchmark_half_width: f64,
}

/// Draws samples and counts whose intervals hold.
#[must_use]
pub fn sample_coverage(case: &SampleCase, draws: u32, seed: u64) -> SampleCoverage {
    let mut chance = Chance::new(seed);
    let spreads = spreads(case);
    let banks = u64::from(case.banks);
    let categories: Vec<Category> = (0..)
        .zip(&case.strata)
        .map(|(number, stratum)| Category {
            number,
            name: number.to_string(),
            population: Some(stratum.of_bank * banks),
            asked: stratum.asked * banks,
            lost: 0,
        })
        .collect();
    let all = case.strata.iter().map(|stratum| stratum.of_bank).sum::<u64>() as f64;
    let of_others = case.strata.iter().map(|stratum| stratum.of_bank as f64 / all * stratum.p).sum::<f64>();
    let weighted = Sampling { estimator: Estimator::Weighted, better: Better::Higher, by_chance: true, census: false };
    let mut seen = SampleCoverage::default();
    for _ in 0..draws {
        let (mut cells, mut passed) = (Vec::with_capacity(case.strata.len() * case.banks as usize), 0);
        for cluster in 0..case.banks {
            let moved = chance.normal();
            for ((stratum, of), spread) in (0..).zip(&case.strata).zip(&spreads) {
                let q = spread.at(moved);
                let of_asked = chance.successes(of.asked, q);
                passed += of_asked + chance.successes(of.of_bank - of.asked, q);
                cells.push(Cell { stratum, cluster, tally: Tally::of_shares(of_asked, of.asked) });
            }
        }
        cells.sort_unstable_by_key(|cell| (cell.stratum, cell.cluster));
        let total = estimate(&cells, &categories, weighted);
        let of_dataset = passed as f64 / (all * f64::from(case.banks));
        seen.count((total.ci95.as_ref(), of_others), (total.benchmark_ci95.as_ref(), of_dataset));
    }
    seen.shares(draws)
}

/// How the chances of each stratum are spread. To find a spread takes as long as hundreds of draws: strata with one mean share it.
fn spreads(case: &SampleCase) -> Vec<Spread> {
    let mut known: Vec<(f64, Spread)> = Vec::new();
    let spread = |SampledStratum { p, .. }: &SampledStratum| {
        if let Some((_, spread)) = known.iter().find(|(of, _)| of == p) {
            return *spread;
        }
        let spread = Spread::new(Effects::LogitNormal, *p, case.correlation);
        known.push((*p, spread));
        spread
    };
    case.strata.iter().map(spread).collect()
}

impl SampleCoverage {
    fn count(&mut self, like_these: (Option<&Interval>, f64), this_benchmark: (Option<&Interval>, f64)) {
        // a mean that is a sum of fractions may be off by its last bits
        let holds = |(interval, truth): (Option<&Interval>, f64)| {
            interval.is_some_and(|i| i.low - 1e-12 <= truth && truth <= i.high + 1e-12)
        };
        let half = |(interval, _): (Option<&Interval>, f64)| interval.map_or(0.0, |i| (i.high - i.low) / 2.0);
        self.like_these += f64::from(u8::from(holds(like_these)));
        self.this_benchmark += f64::from(u8::from(holds(this_benchmark)));
        self.none += f64::from(u8::from(like_these.0.is_none() || this_benchmark.0.is_none()));
        self.like_these_half_width += half(like_these);
        self.this_benchmark_half_width += half(this_benchmark);
    }

    fn shares(self, draws: u32) -> Self {
        let draws = f64::from(draws.max(1));
        let with_intervals = (draws - self.none).max(1.0);
        Self {
            like_these: self.like_these / draws,
            this_benchmark: self.this_benchmark / draws,
            none: self.none / draws,
            like_these_half_width: self.like_these_half_width / with_intervals,
            this_benchmark_half_width: self.this_benchmark_half_width / with_intervals,
        }
    }
}
