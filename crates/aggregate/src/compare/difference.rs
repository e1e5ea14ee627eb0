//! The mean of paired differences with its clustered interval.
//!
//! With d_i = b_i − a_i the estimate and its variance are those of one run's scores (`design`): the plain mean with
//! (G/(G−1)) · (1/n²) · Σ_g (Σ_{i∈g} (d_i − d̄))², or the mean weighted to the whole dataset with the linearised values.
//! Student's t has G − 1 degrees of freedom.

use std::collections::BTreeMap;

use bench_proto::{
    comparison::{PairedDifference, Word},
    summary::{Estimator, Interval},
};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::pairs::Pair;
use crate::{
    bootstrap::wild_cluster_quantile,
    cells::{Cell, Tally, cells_of, of_category},
    design::Design,
    interval::t_quantile,
    score::{FEW_CLUSTERS, FEWEST_CLUSTERS},
};

/// How the mean of paired figures is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) estimator: Estimator,
    /// N_h by category.
    pub(super) populations: &'a BTreeMap<String, u64>,
    /// Names by number.
    pub(super) categories: &'a [String],
}

impl Means<'_> {
    /// The design of some figures of the pairs; `None` without pairs, or when a population is not known.
    fn design(&self, pairs: &[Pair], figure: impl Fn(&Pair) -> f64) -> Option<Design> {
        if pairs.is_empty() {
            return None;
        }
        let cells = cells_of(pairs.iter().map(|pair| (pair.category, pair.cluster, figure(pair))), 0.5);
        if self.estimator == Estimator::Mean {
            return Some(Design::mean(&cells.iter().collect::<Vec<_>>()));
        }
        let population = |number: usize| self.populations.get(&self.categories[number]).copied();
        let strata: Vec<(u64, Vec<&Cell>)> = (0..self.categories.len())
            .map(|number| (number, of_category(&cells, number as u16)))
            .filter(|(_, cells)| !cells.is_empty())
            .map(|(number, cells)| Some((population(number)?, cells.iter().collect())))
            .collect::<Option<_>>()?;
        let total: u64 = strata.iter().map(|(n, _)| n).sum();
        let weighted = strata.into_iter().map(|(n, cells)| (n as f64 / total as f64, cells));
        Some(Design::new(&weighted.collect::<Vec<_>>()))
    }
}

/// `middle` ± `half`, clipped to where a difference of fractions can lie.
fn around(middle: f64, half: f64, method: String) -> Interval {
    Interval { low: (middle - half).clamp(-1.0, 1.0), high: (middle + half).clamp(-1.0, 1.0), method }
}

/// All figures of some pairs.
pub(super) fn paired_difference(means: &Means<'_>, pairs: &[Pair], tolerance: f64) -> PairedDifference {
    let mean_of = |figure: fn(&Pair) -> f64| means.design(pairs, figure).map(|design| design.estimate());
    let design = means.design(pairs, |pair| pair.b - pair.a);
    let difference = design.as_ref().map(Design::estimate);
    let clusters = design.as_ref().map_or(0, |design| design.clusters);
    let mut paired = PairedDifference {
        n: pairs.len() as u64,
        clusters: clusters as u64,
        a: mean_of(|pair| pair.a),
        b: mean_of(|pair| pair.b),
        difference,
        estimator: means.estimator,
        ci95: None,
        ci95_note: None,
        naive_ci95: naive(pairs),
        p_value: None,
        p_holm: None,
        mde: None,
        tolerance,
        verdict: Word::Inconclusive,
    };
    let (Some(design), Some(difference)) = (&design, difference) else {
        paired.ci95_note = Some("no question has a score in both runs".to_owned());
        return paired;
    };
    if clusters < FEWEST_CLUSTERS {
        paired.ci95_note = Some(format!("needs at least {FEWEST_CLUSTERS} banks, has {clusters}"));
        return paired;
    }
    if clusters < FEW_CLUSTERS {
        paired.ci95_note = Some(format!("only {clusters} banks: read with care"));
    }
    let freedom = (clusters - 1) as f64;
    let error = design.cluster_variance().unwrap_or(0.0).sqrt();
    let interval =
        around(difference, t_quantile(freedom) * error, format!("paired, cluster-robust t, {} df", clusters - 1));
    paired.p_value = Some(two_sided(difference, error, freedom));
    paired.mde = Some(detectable(error, freedom));
    paired.verdict = word(&interval, tolerance);
    paired.ci95 = Some(interval);
    paired
}

/// What an interval says. A change that surely lies inside the tolerance is none, also when it is not 0.
pub(super) fn word(interval: &Interval, tolerance: f64) -> Word {
    if interval.low >= -tolerance && interval.high <= tolerance {
        Word::NoChange
    } else if interval.low > 0.0 {
        Word::Better
    } else if interval.high < 0.0 {
        Word::Worse
    } else {
        Word::Inconclusive
    }
}

/// p of |difference / error| under Student's t. Without any spread a difference is certain, and none is none.
fn two_sided(difference: f64, error: f64, freedom: f64) -> f64 {
    if error == 0.0 {
        return if difference == 0.0 { 1.0 } else { 0.0 };
    }
    // the only errors of `new` are a scale or df that is not positive
    StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |t| (2.0 * t.sf((difference / error).abs())).min(1.0))
}

/// The difference that is found with 80 % power at 5 %: (t_{0.975} + t_{0.8}) standard errors (Bloom 1995).
pub(super) fn detectable(error: f64, freedom: f64) -> f64 {
    // 80 % quantile of the normal distribution, for the case that cannot be
    let power = StudentsT::new(0.0, 1.0, freedom).map_or(0.841_621_233_572_914_3, |t| t.inverse_cdf(0.8));
    (t_quantile(freedom) + power) * error
}

/// Questions taken as independent.
fn naive(pairs: &[Pair]) -> Option<Interval> {
    let mut tally = Tally::EMPTY;
    pairs.iter().for_each(|pair| tally.add(pair.b - pair.a, 0.5));
    let n = pairs.len() as f64;
    let half = t_quantile(n - 1.0) * (tally.variance()? / n).sqrt();
    Some(around(tally.mean()?, half, format!("paired t, {} df", pairs.len() - 1)))
}

/// The paired wild cluster bootstrap, or why there is none.
pub(super) fn bootstrap(means: &Means<'_>, pairs: &[Pair], seed: u64) -> (Option<Interval>, Option<String>) {
    let Some(design) = means.design(pairs, |pair| pair.b - pair.a) else {
        return (None, Some("no question has a score in both runs".to_owned()));
    };
    match wild_cluster_quantile(&design, seed) {
        Ok(wild) => (Some(around(design.estimate(), wild.half_width, wild.method)), None),
        Err(reason) => (None, Some(reason)),
    }
}
