//! What a judge of a sample would have said of all questions, helped by a judge of all of them.
//!
//! The difference estimator of survey sampling (Särndal, Swensson and Wretman 1992, 6.3), which prediction-powered inference is
//! (Angelopoulos et al. 2023; with a tuned weight: Angelopoulos, Duchi and Zrnic 2023, "PPI++"): with grades f of the judge of all,
//! y of the judge of the sample, e = y − λf, and strata h with weights W_h,
//!
//! θ(λ) = Σ W_h · (mean of y in the sample + λ · (mean of f in all − mean of f in the sample)).
//!
//! λ is the slope of y on f in the sample, pooled over the strata, which makes the variance of independent questions least:
//! V(λ) = Σ W_h² · (s²_e / m_h · (1 − m_h / n_h) + s²_y / n_h). What banks add to it, C, is what the cluster-robust variance at λ is
//! more than V(λ). It belongs to y, so that it is the same whoever helps, and is best seen where the least noise lies over it; so
//! V(λ) + C is never more than the V(0) + C of the sample alone, and nothing is chosen by a look at the few banks, which would make
//! intervals too narrow.

use std::collections::BTreeMap;

use crate::interval::{least_error, t_quantile};

/// A question that the judge of all has graded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    pub(crate) stratum: u32,
    pub(crate) bank: u32,
    /// Grade of the judge of all.
    pub(crate) of_all: f64,
    /// Grade of the judge of the sample, where it is in it.
    pub(crate) of_sample: Option<f64>,
}

/// A stratum: weight, and sums of the questions in it.
#[derive(Debug, Clone, Copy, Default)]
struct Stratum {
    weight: f64,
    /// Questions of all, and their mean of f.
    n: f64,
    f: f64,
    /// Questions of the sample, their means, and their variances and covariance.
    m: f64,
    y_m: f64,
    f_m: f64,
    yy: f64,
    ff: f64,
    yf: f64,
}

impl Stratum {
    /// s²_e at a weight.
    fn residual(&self, lambda: f64) -> f64 {
        (self.yy - 2.0 * lambda * self.yf + lambda * lambda * self.ff).max(0.0)
    }

    /// Part of the sample that is missing.
    fn missing(&self) -> f64 {
        (1.0 - self.m / self.n).max(0.0)
    }
}

/// An estimate at one weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Helped {
    pub(crate) lambda: f64,
    pub(crate) value: f64,
    /// Half-widths: by banks or of independent questions, whichever is wider (none with too few banks); of independent questions;
    /// of what the judge of the sample would say of these very questions.
    pub(crate) half: Option<f64>,
    pub(crate) naive_half: f64,
    pub(crate) these_half: f64,
}

/// All that is said of a judge of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimates {
    pub(crate) n: u64,
    pub(crate) sampled: u64,
    /// Banks of the sample.
    pub(crate) clusters: usize,
    pub(crate) helped: Helped,
    pub(crate) alone: Helped,
    /// Half-width that is expected of the judge of the sample on all questions.
    pub(crate) all_half: Option<f64>,
    pub(crate) correlation: Option<f64>,
}

/// Fewest banks that make an interval.
const FEWEST_BANKS: usize = crate::score::FEWEST_CLUSTERS;

/// The estimates from some questions; `weights` has what each stratum counts for. None where fewer than two questions have both
/// grades.
pub(crate) fn estimates(pairs: &[Pair], weights: &BTreeMap<u32, f64>) -> Option<Estimates> {
    let with = joined(pairs);
    let strata = strata(pairs, weights, &with);
    let sampled = pairs.iter().filter(|pair| pair.of_sample.is_some()).count();
    if sampled < 2 || strata.is_empty() {
        return None;
    }
    let banks = Banks::new(pairs, &strata, &with);
    let freedom = (sampled.saturating_sub(strata.len()) as f64).max(1.0);
    let slope = slope(&strata);
    // rounding, small strata and the slope that is fitted must not make it worse than nothing
    let helps = Variance::at(&strata, slope, freedom).total() <= Variance::at(&strata, 0.0, freedom).total();
    let lambda = if helps { slope } else { 0.0 };
    let of_banks = banks.excess(lambda, Variance::at(&strata, lambda, freedom).total());
    let estimate = |lambda: f64| {
        let variance = Variance::at(&strata, lambda, freedom);
        Helped {
            lambda,
            value: strata.values().map(|s| s.weight * (s.y_m + lambda * (s.f - s.f_m))).sum(),
            half: of_banks.map(|of_banks| banks.half(variance.total(), of_banks, freedom)),
            naive_half: t_quantile(freedom) * variance.total().sqrt(),
            these_half: t_quantile(freedom) * variance.these.sqrt(),
        }
    };
    let drawn = Variance::at(&strata, lambda, freedom).drawn;
    Some(Estimates {
        n: pairs.len() as u64,
        sampled: sampled as u64,
        clusters: banks.sampled,
        helped: estimate(lambda),
        alone: estimate(0.0),
        all_half: of_banks.map(|of_banks| banks.half(drawn, of_banks, freedom)),
        correlation: correlation(&strata),
    })
}

/// The variance of an estimate if questions were independent. No stratum is surer than as many equal grades would be.
#[derive(Debug, Clone, Copy)]
struct Variance {
    /// Of what the judge of the sample would say of these very questions.
    these: f64,
    /// Of that with other questions.
    drawn: f64,
}

impl Variance {
    /// At a weight; `freedom` degrees of freedom are left by the means of the strata.
    fn at(strata: &BTreeMap<u32, Stratum>, lambda: f64, freedom: f64) -> Self {
        // a slope that was fitted takes one
        let fitted = if lambda == 0.0 || freedom < 2.0 { 1.0 } else { freedom / (freedom - 1.0) };
        let at_least = |spread: f64, n: f64| spread.max(least_error(n).powi(2));
        let these = |s: &Stratum| s.weight.powi(2) * at_least(s.residual(lambda) * fitted / s.m, s.m) * s.missing();
        let drawn = |s: &Stratum| s.weight.powi(2) * at_least(s.yy / s.n, s.n);
        Self { these: strata.values().map(these).sum(), drawn: strata.values().map(drawn).sum() }
    }

    fn total(self) -> f64 {
        self.these + self.drawn
    }
}

/// For each stratum the one that it is counted with: itself, or the largest where fewer than two of its questions have both grades.
fn joined(pairs: &[Pair]) -> BTreeMap<u32, u32> {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for pair in pairs {
        *counts.entry(pair.stratum).or_default() += u64::from(pair.of_sample.is_some());
    }
    // the first of the largest
    let largest = counts.iter().rev().max_by_key(|(_, n)| **n).map_or(0, |(stratum, _)| *stratum);
    counts.into_iter().map(|(stratum, n)| (stratum, if n < 2 { largest } else { stratum })).collect()
}

fn strata(pairs: &[Pair], weights: &BTreeMap<u32, f64>, with: &BTreeMap<u32, u32>) -> BTreeMap<u32, Stratum> {
    let mut strata: BTreeMap<u32, Stratum> = BTreeMap::new();
    for (stratum, with) in with {
        strata.entry(*with).or_default().weight += weights.get(stratum).copied().unwrap_or_default();
    }
    let all: f64 = strata.values().map(|stratum| stratum.weight).sum();
    let place = |pair: &Pair| with.get(&pair.stratum).copied().unwrap_or_default();
    for pair in pairs {
        let stratum = strata.entry(place(pair)).or_default();
        stratum.n += 1.0;
        stratum.f += pair.of_all;
        if let Some(y) = pair.of_sample {
            stratum.m += 1.0;
            stratum.y_m += y;
            stratum.f_m += pair.of_all;
        }
    }
    for stratum in strata.values_mut() {
        stratum.weight /= all.max(f64::MIN_POSITIVE);
        stratum.f /= stratum.n;
        stratum.y_m /= stratum.m.max(1.0);
        stratum.f_m /= stratum.m.max(1.0);
    }
    for pair in pairs {
        let (Some(y), Some(stratum)) = (pair.of_sample, strata.get_mut(&place(pair))) else { continue };
        let (y, f, freedom) = (y - stratum.y_m, pair.of_all - stratum.f_m, (stratum.m - 1.0).max(1.0));
        stratum.yy += y * y / freedom;
        stratum.ff += f * f / freedom;
        stratum.yf += y * f / freedom;
    }
    strata
}

/// λ: where the variance of independent questions is least.
fn slope(strata: &BTreeMap<u32, Stratum>) -> f64 {
    let pooled = |of: fn(&Stratum) -> f64| -> f64 {
        strata
            .values()
            .map(|stratum| stratum.weight.powi(2) / stratum.m.max(1.0) * stratum.missing() * of(stratum))
            .sum()
    };
    let spread = pooled(|stratum| stratum.ff);
    if spread > 0.0 { pooled(|stratum| stratum.yf) / spread } else { 0.0 }
}

fn correlation(strata: &BTreeMap<u32, Stratum>) -> Option<f64> {
    let pooled = |of: fn(&Stratum) -> f64| -> f64 {
        strata.values().map(|stratum| (stratum.m - 1.0).max(0.0) * of(stratum)).sum()
    };
    let spread = (pooled(|stratum| stratum.yy) * pooled(|stratum| stratum.ff)).sqrt();
    (spread > 0.0).then(|| (pooled(|stratum| stratum.yf) / spread).clamp(-1.0, 1.0))
}

/// What each bank adds to the estimate: by y and f of the sample, and by f of all.
struct Banks {
    parts: Vec<[f64; 3]>,
    /// Banks with a question in the sample.
    sampled: usize,
}

impl Banks {
    fn new(pairs: &[Pair], strata: &BTreeMap<u32, Stratum>, with: &BTreeMap<u32, u32>) -> Self {
        let mut parts: BTreeMap<u32, ([f64; 3], bool)> = BTreeMap::new();
        for pair in pairs {
            let Some(stratum) = with.get(&pair.stratum).and_then(|place| strata.get(place)) else { continue };
            let (part, has) = parts.entry(pair.bank).or_default();
            part[2] += stratum.weight * (pair.of_all - stratum.f) / stratum.n;
            if let Some(y) = pair.of_sample {
                *has = true;
                part[0] += stratum.weight * (y - stratum.y_m) / stratum.m;
                part[1] += stratum.weight * (pair.of_all - stratum.f_m) / stratum.m;
            }
        }
        let sampled = parts.values().filter(|(_, has)| *has).count();
        Self { parts: parts.into_values().map(|(part, _)| part).collect(), sampled }
    }

    /// C: what the cluster-robust variance at a weight is more than that of independent questions; none with too few banks.
    fn excess(&self, lambda: f64, independent: f64) -> Option<f64> {
        if self.sampled < FEWEST_BANKS {
            return None;
        }
        let g = self.sampled as f64;
        let of_bank = |[y, f, all]: &[f64; 3]| (y + lambda * (all - f)).powi(2);
        let robust = g / (g - 1.0) * self.parts.iter().map(of_bank).sum::<f64>();
        Some((robust - independent).max(0.0))
    }

    /// Half-width of an estimate: by banks, or of independent questions where that is wider.
    fn half(&self, independent: f64, of_banks: f64, freedom: f64) -> f64 {
        let by_banks = t_quantile(self.sampled as f64 - 1.0) * (independent + of_banks).sqrt();
        by_banks.max(t_quantile(freedom) * independent.sqrt())
    }
}
