//! The mean of paired differences with its clustered interval.
//!
//! With d_i = b_i − a_i the estimate and its variance are those of one run's scores (`design`): the plain mean with
//! (G/(G−1)) · (1/n²) · Σ_g (Σ_{i∈g} (d_i − d̄))², or the mean weighted to the whole dataset with the linearised values.
//! Student's t has G − 1 degrees of freedom.

use bench_proto::{
    comparison::{PairedDifference, Word},
    metric::{Better, Scale},
    summary::{Estimator, Interval},
};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::pairs::Pair;
use crate::{
    bootstrap::wild_cluster_quantile,
    cells::{Tally, cells_of},
    design::Design,
    interval::t_quantile,
    score::{FEW_CLUSTERS, FEWEST_CLUSTERS, Used, used},
    strata::Strata,
};

/// How the mean of paired figures is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) estimator: Estimator,
    /// In which direction the figures are better.
    pub(super) better: Better,
    /// What a weighted mean is weighted by.
    pub(super) strata: &'a Strata,
}

impl Means<'_> {
    /// The design of some figures of the pairs; `None` without pairs, or when a population is not known.
    fn design(&self, pairs: &[Pair], figure: impl Fn(&Pair) -> f64) -> Option<Design> {
        if pairs.is_empty() {
            return None;
        }
        let figures =
            pairs.iter().filter_map(|pair| Some((self.strata.of_kind(pair.kind)?, pair.cluster, figure(pair))));
        let cells = cells_of(figures, Scale::PLAIN);
        if self.estimator == Estimator::Mean {
            return Some(Design::mean(&cells.iter().collect::<Vec<_>>()));
        }
        let strata: Vec<_> =
            used(&cells, &self.strata.list).into_iter().filter(|used| !used.cells.is_empty()).collect();
        let total: f64 = strata.iter().map(Used::applies_to).sum::<Option<f64>>()?;
        let weighted = strata.into_iter().map(|used| Some((used.applies_to()? / total, used.cells)));
        Some(Design::new(&weighted.collect::<Option<Vec<_>>>()?))
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
    paired.verdict = word(&interval, tolerance, means.better);
    paired.ci95 = Some(interval);
    paired
}

/// The bounds of an interval of differences, signed so that more is better.
pub(crate) fn gains(interval: &Interval, better: Better) -> (f64, f64) {
    match better {
        Better::Higher => (interval.low, interval.high),
        Better::Lower => (-interval.high, -interval.low),
    }
}

/// What an interval says. A change that surely lies inside the tolerance is none, also when it is not 0.
pub(super) fn word(interval: &Interval, tolerance: f64, better: Better) -> Word {
    let (low, high) = gains(interval, better);
    if low >= -tolerance && high <= tolerance {
        Word::NoChange
    } else if low > 0.0 {
        Word::Better
    } else if high < 0.0 {
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
    pairs.iter().for_each(|pair| tally.add(pair.b - pair.a, Scale::PLAIN));
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
