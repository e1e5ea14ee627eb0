//! An interval that holds at the edges: profile likelihood of a beta-binomial model, and a logit interval for many banks.
//!
//! Near 0 and 1 the error of a clustered mean goes with the mean itself, and a t interval, which takes it as fixed, covers
//! too little. Here bank g has `trials` m_g and `passed` y_g, and its share of passes is beta distributed around the mean μ
//! with intra-class correlation ρ, so that with a = μ(1−ρ)/ρ and b = (1−μ)(1−ρ)/ρ
//!
//! ln L(μ, ρ) = Σ_g ln B(a + y_g, b + m_g − y_g) − ln B(a, b)   (Williams 1975, up to a constant).
//!
//! The interval holds every μ with 2 · (max ln L − max_ρ ln L(μ, ρ)) ≤ t², t being Student's quantile in place of the normal
//! one. How few banks there are matters as far as they, not their questions, make the error: with λ = m̄ρ/(1 + m̄ρ), the
//! share of the error's variance that the banks bring at the maximum, t has (G − 1) / min(1, 3λ) degrees of freedom.
//!
//! Weighted means and graded scores have no trials. Theirs are as many as would have the variance that independent questions
//! have, n = s(1 − s)/v, shared out by the banks' weights (Rao and Scott 1981 for the idea of an effective number).
//!
//! Where scores are all equal, or vary no more than one other among them would make them, the interval reaches as far as the same
//! likelihood lets others be: from the mean to 0 and to 1 by the share of others that the banks leave open.

use crate::{
    design::{ClusterMean, Design},
    interval::{others, t_quantile},
};

/// The largest ρ that is thought of: published grades of conversations have 0 to 0.1. With few banks the data alone would not
/// exclude that all questions of a bank end alike, and the interval would say nothing.
const MOST_CORRELATED: f64 = 0.3;
/// The smallest one: banks do not differ.
const UNCORRELATED: f64 = 1e-5;
/// With more banks the likelihood takes long and the logit interval covers as well.
const MOST_BANKS: usize = 200;
/// Means are looked for on the logit scale within this.
const FARTHEST: f64 = 18.0;
/// Fewer banks with equal scores are taken for so many where Student's t is looked up.
const FEWEST_BANKS: usize = 10;
/// How often the share of others is narrowed down to a half.
const HALVED: u32 = 40;

/// Trials and successes of a bank, on the scale of independent verdicts.
#[derive(Debug, Clone, Copy)]
struct Bank {
    trials: f64,
    passed: f64,
}

/// How far the banks' scores let the mean be, and by what.
pub(crate) struct Reach {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) method: &'static str,
}

/// Bounds of a mean by the shape of the likelihood, or by a logit interval where there are very many banks, and where scores
/// hardly vary at least as far as equal ones leave it open; the mean lies between them. `error` is the cluster-robust one.
pub(crate) fn reach(design: &Design, error: f64) -> Reach {
    let mean = design.estimate().clamp(0.0, 1.0);
    let edge = mean * (1.0 - mean);
    let open = if design.hardly_varies() { others_of_banks(design) } else { 0.0 };
    let equal = (mean * (1.0 - open), mean + (1.0 - mean) * open);
    if edge <= f64::EPSILON {
        return Reach { low: equal.0, high: equal.1, method: "beta-binomial likelihood of equal scores" };
    }
    let independent = independent_variance(design, edge);
    let (bounds, method) = if design.clusters > MOST_BANKS {
        (logit(mean, error.max(independent.sqrt()), design.clusters - 1), "logit t")
    } else {
        let n = edge / independent;
        let of =
            |bank: ClusterMean| Bank { trials: n * bank.weight, passed: n * bank.weight * bank.mean.clamp(0.0, 1.0) };
        let banks: Vec<Bank> = design.banks().into_iter().map(of).collect();
        (Profile::new(&banks).bounds(mean), "beta-binomial profile likelihood")
    };
    Reach { low: bounds.0.min(equal.0).min(mean), high: bounds.1.max(equal.1).max(mean), method }
}

/// The variance of the estimate if questions were independent, no smaller than small strata let it be, and where these decide no
/// larger than that of verdicts: no scores between 0 and 1 vary more.
fn independent_variance(design: &Design, edge: f64) -> f64 {
    let (seen, cautious) = (design.independent_variance(), design.cautious_variance());
    if cautious > seen { cautious.min(edge / design.effective_questions()).max(seen) } else { seen }
}

/// The largest share of others behind banks whose scores are all equal: the largest 1 − μ that the likelihood holds. At any μ equal
/// verdicts are most likely where a bank's are most alike, so ρ is the largest that is thought of, and t has G − 1 degrees of
/// freedom, of fewer than ten banks those of ten: else equal scores would say less than scores that differ. Questions taken as
/// independent leave as much open at least.
fn others_of_banks(design: &Design) -> f64 {
    let n = design.effective_questions();
    let squares: f64 = design.banks().iter().map(|bank| bank.weight * bank.weight).sum();
    // very many banks are counted as equal ones that weigh as much together (Kish)
    let (trials, times) = if design.clusters > MOST_BANKS {
        (vec![n * squares], 1.0 / squares)
    } else {
        (design.banks().iter().map(|bank| n * bank.weight).collect(), 1.0)
    };
    let scale = (1.0 - MOST_CORRELATED) / MOST_CORRELATED;
    let log_of = |a: f64| trials.iter().map(|trials| ln_gamma(a + trials) - ln_gamma(a)).sum::<f64>() * times;
    let freedom = design.clusters.max(FEWEST_BANKS) - 1;
    let least = log_of(scale) - t_quantile(freedom as f64).powi(2) / 2.0;
    let (mut inside, mut outside) = (0.0, 1.0);
    for _ in 0..HALVED {
        let share = f64::midpoint(inside, outside);
        if log_of(scale * (1.0 - share)) >= least { inside = share } else { outside = share }
    }
    f64::max(outside, others(n))
}

/// logit(s) ± t · error / (s(1 − s)), turned back (Korn and Graubard 1998 for means of surveys).
fn logit(mean: f64, error: f64, freedom: usize) -> (f64, f64) {
    let half = t_quantile(freedom as f64) * error / (mean * (1.0 - mean));
    let middle = (mean / (1.0 - mean)).ln();
    (expit(middle - half), expit(middle + half))
}

fn expit(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The likelihood of the mean, with the best ρ for each.
struct Profile<'a> {
    banks: &'a [Bank],
    /// Σ m_g² / Σ m_g.
    mean_trials: f64,
    /// Ln Γ(C + m_g) − ln Γ(C) summed over banks, C = (1 − ρ)/ρ, at the places of the coarse look.
    coarse: [(f64, f64); COARSE.len()],
}

/// Where ρ is looked for first; the best is then narrowed down between its neighbours.
const COARSE: [f64; 8] = [UNCORRELATED, 3e-4, 1e-3, 4e-3, 0.012, 0.035, 0.1, MOST_CORRELATED];
/// Golden sections of the interval between neighbours: ln ρ is then known to a twentieth.
const NARROWED: u32 = 8;
const GOLDEN: f64 = 0.618_033_988_749_894_8;

impl<'a> Profile<'a> {
    fn new(banks: &'a [Bank]) -> Self {
        let trials: f64 = banks.iter().map(|bank| bank.trials).sum();
        let squares: f64 = banks.iter().map(|bank| bank.trials * bank.trials).sum();
        let coarse = COARSE.map(|rho| (rho, of_sums(banks, rho)));
        Self { banks, mean_trials: squares / trials, coarse }
    }

    /// Ln L of a mean, given on the logit scale, and a correlation; `sums` is [`of_sums`] of it.
    fn at(&self, eta: f64, rho: f64, sums: f64) -> f64 {
        let scale = (1.0 - rho) / rho;
        let (a, b) = (scale * expit(eta), scale * expit(-eta));
        let (of_a, of_b) = (ln_gamma(a), ln_gamma(b));
        let of = |bank: &Bank| {
            let failed = bank.trials - bank.passed;
            let passes = if bank.passed > 0.0 { ln_gamma(a + bank.passed) - of_a } else { 0.0 };
            let fails = if failed > 0.0 { ln_gamma(b + failed) - of_b } else { 0.0 };
            passes + fails
        };
        self.banks.iter().map(of).sum::<f64>() - sums
    }

    /// The largest ln L of a mean, and the ρ that gives it.
    fn best(&self, eta: f64) -> (f64, f64) {
        let coarse = self.coarse.map(|(rho, sums)| self.at(eta, rho, sums));
        let top = (0..coarse.len()).max_by(|x, y| coarse[*x].total_cmp(&coarse[*y])).unwrap_or(0);
        let (mut low, mut high) = (COARSE[top.saturating_sub(1)].ln(), COARSE[(top + 1).min(COARSE.len() - 1)].ln());
        let of = |log: f64| self.at(eta, log.exp(), of_sums(self.banks, log.exp()));
        let mut found = (coarse[top], COARSE[top]);
        let (mut left, mut right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (mut at_left, mut at_right) = (of(left), of(right));
        for _ in 0..NARROWED {
            let better = if at_left > at_right { (at_left, left) } else { (at_right, right) };
            if better.0 > found.0 {
                found = (better.0, better.1.exp());
            }
            if at_left > at_right {
                (high, right, at_right) = (right, left, at_left);
                left = high - GOLDEN * (high - low);
                at_left = of(left);
            } else {
                (low, left, at_left) = (left, right, at_right);
                right = low + GOLDEN * (high - low);
                at_right = of(right);
            }
        }
        found
    }

    fn bounds(&self, mean: f64) -> (f64, f64) {
        let start = (mean / (1.0 - mean)).ln().clamp(-FARTHEST, FARTHEST);
        let (top, (most, rho)) = self.summit(start);
        let share = self.mean_trials * rho / (1.0 + self.mean_trials * rho);
        let freedom = (self.banks.len() - 1) as f64 / (3.0 * share).clamp(1e-9, 1.0);
        let allowed = t_quantile(freedom).powi(2) / 2.0;
        let bound = |direction: f64| self.leave(top, direction, most - allowed).map(expit);
        (bound(-1.0).unwrap_or(0.0), bound(1.0).unwrap_or(1.0))
    }

    /// The mean of the largest likelihood: uphill from `start` by steps that double, then by golden sections.
    fn summit(&self, start: f64) -> (f64, (f64, f64)) {
        let value = |eta: f64| self.best(eta).0;
        let mut step = 0.1;
        let here = value(start);
        let direction = if value(start + step) > here { 1.0 } else { -1.0 };
        let (mut behind, mut at) = (start - direction * step, start);
        let mut height = here;
        let mut ahead = start + direction * step;
        while ahead.abs() <= FARTHEST {
            let next = value(ahead);
            if next <= height {
                break;
            }
            step *= 2.0;
            (behind, at, height, ahead) = (at, ahead, next, ahead + direction * step);
        }
        let ahead = ahead.clamp(-FARTHEST, FARTHEST);
        let (mut low, mut high) = if behind < ahead { (behind, ahead) } else { (ahead, behind) };
        let (mut left, mut right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (mut at_left, mut at_right) = (value(left), value(right));
        while high - low > 0.02 {
            if at_left > at_right {
                (high, right, at_right) = (right, left, at_left);
                left = high - GOLDEN * (high - low);
                at_left = value(left);
            } else {
                (low, left, at_left) = (left, right, at_right);
                right = low + GOLDEN * (high - low);
                at_right = value(right);
            }
        }
        let candidates = [at, left, right].map(|eta| (eta, self.best(eta)));
        candidates.into_iter().max_by(|x, y| x.1.0.total_cmp(&y.1.0)).unwrap_or((start, self.best(start)))
    }

    /// Where the likelihood falls to `level`, from `top` on in one direction; `None` when it does not.
    fn leave(&self, top: f64, direction: f64, level: f64) -> Option<f64> {
        let over = |eta: f64| self.best(eta).0 - level;
        let (mut inside, mut step) = (top, 0.25);
        let mut over_inside = over(inside);
        let (mut outside, mut over_outside) = loop {
            let next = inside + direction * step;
            if next.abs() > FARTHEST {
                return None;
            }
            let value = over(next);
            if value < 0.0 {
                break (next, value);
            }
            (inside, over_inside, step) = (next, value, step * 2.0);
        };
        // regula falsi with the Illinois rule: the curve is near a parabola
        let mut last = 0;
        for _ in 0..30 {
            if (outside - inside).abs() < 1e-4 {
                break;
            }
            let next = inside + (outside - inside) * over_inside / (over_inside - over_outside);
            let value = over(next);
            if value.abs() < 1e-4 {
                return Some(next);
            }
            if value > 0.0 {
                (inside, over_inside) = (next, value);
                if last == 1 {
                    over_outside /= 2.0;
                }
                last = 1;
            } else {
                (outside, over_outside) = (next, value);
                if last == -1 {
                    over_inside /= 2.0;
                }
                last = -1;
            }
        }
        Some(f64::midpoint(inside, outside))
    }
}

/// Σ_g ln Γ(C + m_g) − ln Γ(C): the part of ln L that no mean changes.
fn of_sums(banks: &[Bank], rho: f64) -> f64 {
    let scale = (1.0 - rho) / rho;
    let of_scale = ln_gamma(scale);
    banks.iter().map(|bank| ln_gamma(scale + bank.trials) - of_scale).sum()
}

/// ln √(2π).
const HALF_LN_TAU: f64 = 0.918_938_533_204_672_8;
/// From here on Stirling's series is exact to twelve digits.
const STIRLING_FROM: f64 = 8.0;

/// ln Γ(x) of x > 0: Stirling's series (Abramowitz and Stegun 6.1.41), after Γ(x + 1) = xΓ(x) where x is small. An interval takes
/// ten thousand of these.
fn ln_gamma(x: f64) -> f64 {
    let (mut at, mut product) = (x, 1.0);
    while at < STIRLING_FROM {
        product *= at;
        at += 1.0;
    }
    let inverse = 1.0 / at;
    let square = inverse * inverse;
    let series =
        1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0)));
    let below = if x < STIRLING_FROM { f64::ln(product) } else { 0.0 };
    (at - 0.5) * at.ln() - at + HALF_LN_TAU + inverse * series - below
}

#[cfg(test)]
mod tests;
