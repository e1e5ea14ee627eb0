//! The mean of paired differences with its clustered interval.
//!
//! With d_i = b_i − a_i the estimate and its variance are those of one run's scores (`design`): the plain mean with
//! (G/(G−1)) · (1/n²) · Σ_g (Σ_{i∈g} (d_i − d̄))², or the mean weighted to the whole dataset with the linearised values.
//! Student's t has G − 1 degrees of freedom. Where questions taken as independent give a wider interval, that one decides: few
//! banks happened to agree, which is no precision. Nor are few pairs that agree: the interval reaches at least as far as others
//! could move the difference of which so many equal pairs say nothing ([`Unseen`]).

use bench_proto::{
    comparison::{PairedDifference, Word},
    metric::{Better, Scale},
    summary::{Estimator, Interval},
};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::pairs::Pair;
use crate::{
    bootstrap::wild_cluster_quantile,
    cells::cells_of,
    design::Design,
    interval::{least_error, others, t_quantile},
    score::{FEW_CLUSTERS, FEWEST_CLUSTERS, Used, used},
    strata::Strata,
};

/// How the mean of paired figures is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Means<'a> {
    pub(crate) estimator: Estimator,
    /// In which direction the figures are better.
    pub(crate) better: Better,
    /// What a weighted mean is weighted by.
    pub(crate) strata: &'a Strata,
}

impl Means<'_> {
    /// The design of some figures of the pairs; `None` without pairs, or when a population is not known.
    pub(crate) fn design(&self, pairs: &[Pair], figure: impl Fn(&Pair) -> f64) -> Option<Design> {
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

/// Sums of fractions are off by their last bits: what is as small as these is nothing.
const ROUNDING: f64 = 1e-12;

/// A difference without what is rounding alone.
fn no_rounding(difference: f64) -> f64 {
    if difference.abs() < ROUNDING { 0.0 } else { difference }
}

impl Pair {
    /// b − a.
    pub(super) fn difference(&self) -> f64 {
        no_rounding(self.b - self.a)
    }
}

/// `middle` ± `half`, clipped to where a difference of fractions can lie.
fn around(middle: f64, half: f64, method: String) -> Interval {
    Interval { low: (middle - half).clamp(-1.0, 1.0), high: (middle + half).clamp(-1.0, 1.0), method }
}

/// All figures of some pairs.
pub(crate) fn paired_difference(means: &Means<'_>, pairs: &[Pair], tolerance: f64) -> PairedDifference {
    let mean_of = |figure: fn(&Pair) -> f64| means.design(pairs, figure).map(|design| design.estimate());
    let design = means.design(pairs, Pair::difference);
    let difference = design.as_ref().map(Design::estimate).map(no_rounding);
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
        naive_ci95: None,
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
    let Errors { clustered, independent } = Errors::from_design(design);
    let unseen = Unseen { pairs: design.effective_questions() };
    paired.naive_ci95 = (pairs.len() > 1).then(|| unseen.widen(independent.interval(difference), difference));
    if clusters < FEWEST_CLUSTERS {
        paired.ci95_note = Some(format!("needs at least {FEWEST_CLUSTERS} banks, has {clusters}"));
        return paired;
    }
    if clusters < FEW_CLUSTERS {
        paired.ci95_note = Some(format!("only {clusters} banks: read with care"));
    }
    let wider = if independent.reach() > clustered.reach() { &independent } else { &clustered };
    let interval = unseen.widen(wider.interval(difference), difference);
    // of tests that may each be too sure, the one that is least sure
    let p_value = clustered.two_sided(difference).max(independent.two_sided(difference));
    paired.p_value = Some(p_value.max(unseen.two_sided(difference)));
    let detectable = clustered.detectable().max(independent.detectable()).max(unseen.detectable(&independent));
    // no difference is larger than 1
    paired.mde = Some(detectable.min(1.0));
    paired.verdict = word(&interval, tolerance, means.better);
    paired.ci95 = Some(interval);
    paired
}

/// How a difference may err: a standard error, the degrees of freedom that it is known with, and how it was made.
pub(super) struct Error {
    error: f64,
    freedom: f64,
    method: String,
}

/// Banks taken as drawn by chance, and questions taken as independent.
pub(super) struct Errors {
    pub(super) clustered: Error,
    pub(super) independent: Error,
}

impl Errors {
    pub(super) fn from_design(design: &Design) -> Self {
        let clusters = design.clusters.saturating_sub(1);
        let questions = design.strata.iter().map(|stratum| stratum.n - 1.0).sum::<f64>().max(1.0);
        Self {
            clustered: Error {
                error: design.cluster_variance().unwrap_or(0.0).sqrt(),
                freedom: clusters as f64,
                method: format!("paired, cluster-robust t, {clusters} df"),
            },
            independent: Error {
                error: design.independent_variance().sqrt(),
                freedom: questions,
                method: format!("paired t, {questions:.0} df"),
            },
        }
    }
}

impl Error {
    fn reach(&self) -> f64 {
        t_quantile(self.freedom) * self.error
    }

    pub(super) fn interval(&self, difference: f64) -> Interval {
        around(difference, self.reach(), self.method.clone())
    }

    /// p of |difference / error| under Student's t. Without any spread a difference is certain, and none is none.
    pub(super) fn two_sided(&self, difference: f64) -> f64 {
        if self.error == 0.0 {
            return if difference == 0.0 { 1.0 } else { 0.0 };
        }
        // the only errors of `new` are a scale or df that is not positive
        let t = (difference / self.error).abs();
        StudentsT::new(0.0, 1.0, self.freedom).map_or(1.0, |student| (2.0 * student.sf(t)).min(1.0))
    }

    /// The difference that is found with 80 % power at 5 %: (t_{0.975} + t_{0.8}) standard errors (Bloom 1995).
    pub(super) fn detectable(&self) -> f64 {
        // 80 % quantile of the normal distribution, for the case that cannot be
        let power = StudentsT::new(0.0, 1.0, self.freedom).map_or(0.841_621_233_572_914_3, |t| t.inverse_cdf(0.8));
        (t_quantile(self.freedom) + power) * self.error
    }
}

/// How the method of an interval ends that reaches as far as so many equal pairs leave open.
pub(crate) const RULE_OF_THREE: &str = "rule of three";

/// What pairs that were not seen may do to a difference: behind n equal pairs a share of others ([`others`]) is possible, and each
/// of them may lie anywhere from −1 to 1.
struct Unseen {
    /// n, the number of equally weighted pairs that say as much.
    pairs: f64,
}

impl Unseen {
    /// The interval, reaching as far as others could move the difference.
    fn widen(&self, interval: Interval, difference: f64) -> Interval {
        let others = others(self.pairs);
        let (low, high) = (difference - others * (1.0 + difference), difference + others * (1.0 - difference));
        if interval.low <= low && high <= interval.high {
            return interval;
        }
        let method = format!("{}, {RULE_OF_THREE}", interval.method);
        Interval { low: interval.low.min(low), high: interval.high.max(high), method }
    }

    /// The p value of which that interval is the inversion: of n pairs that differ by ±1 it is the sign test's.
    fn two_sided(&self, difference: f64) -> f64 {
        (2.0 * (1.0 + difference.abs()).powf(-self.pairs)).min(1.0)
    }

    /// What is found with 80 % power where pairs differ as little as equal ones allow: they lie between −1 and 1, twice as wide
    /// as scores.
    fn detectable(&self, independent: &Error) -> f64 {
        let error = 2.0 * least_error(self.pairs);
        Error { error, freedom: independent.freedom, method: String::new() }.detectable()
    }
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

/// The paired wild cluster bootstrap, or why there is none.
pub(super) fn bootstrap(means: &Means<'_>, pairs: &[Pair], seed: u64) -> (Option<Interval>, Option<String>) {
    let Some(design) = means.design(pairs, Pair::difference) else {
        return (None, Some("no question has a score in both runs".to_owned()));
    };
    match wild_cluster_quantile(&design, seed) {
        Ok(wild) => (Some(around(design.estimate(), wild.half_width, wild.method)), None),
        Err(reason) => (None, Some(reason)),
    }
}
