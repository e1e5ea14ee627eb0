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

use std::collections::BTreeMap;

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

/// The likelihood of the mean, with the best ρ for each. It remembers what it has worked out: the search for the summit and for both
/// bounds asks for the same means again, and that for ρ, whose steps halve the same intervals, for the same correlations.
struct Profile {
    trials: Values,
    passed: Values,
    failed: Values,
    /// Σ m_g² / Σ m_g.
    mean_trials: f64,
    /// The places of the coarse look, and what is known of each.
    coarse: [Correlation; COARSE.len()],
    curves: [Curve; COARSE.len()],
    /// Which of them was the best last.
    top: usize,
    /// Places between them, by the bits of ln ρ.
    narrow: BTreeMap<u64, Correlation>,
    /// The largest ln L and its ρ, by the bits of the mean on the logit scale.
    found: BTreeMap<u64, (f64, f64)>,
}

/// A figure of each bank. What is worked out of it, is so once for each value that differs.
struct Values {
    distinct: Vec<f64>,
    /// Place of each bank's among them.
    places: Vec<usize>,
    /// What was worked out last, for each of them.
    figures: Vec<f64>,
    /// Parts of it: where Stirling's series was taken, what it came to, and what is taken off again.
    far: Vec<f64>,
    series: Vec<f64>,
    below: Vec<f64>,
}

impl Values {
    fn new(of_banks: impl Iterator<Item = f64>) -> Self {
        let mut distinct: Vec<f64> = Vec::new();
        let places = of_banks.map(|value| {
            // to the last bit: what is nearly equal has figures of its own
            distinct.iter().position(|known| known.to_bits() == value.to_bits()).unwrap_or_else(|| {
                distinct.push(value);
                distinct.len() - 1
            })
        });
        let places = places.collect();
        let [figures, far, series, below] = std::array::from_fn(|_| vec![0.0; distinct.len()]);
        Self { distinct, places, figures, far, series, below }
    }

    /// Works out ln Γ(a + value) − ln Γ(a), which is 0 of 0. Part by part over all values: a processor then does several of a part at
    /// once.
    fn rise(&mut self, a: f64) {
        let of_a = ln_gamma(a);
        for ((value, far), below) in self.distinct.iter().zip(&mut self.far).zip(&mut self.below) {
            (*far, *below) = far_enough(a + value);
        }
        for (far, series) in self.far.iter().zip(&mut self.series) {
            *series = stirling(*far);
        }
        let parts = self.far.iter().zip(&self.series).zip(&self.below);
        for ((value, figure), ((far, series), below)) in self.distinct.iter().zip(&mut self.figures).zip(parts) {
            *figure = if *value > 0.0 { put_together(*far, *series, *below) - of_a } else { 0.0 };
        }
    }

    /// The figure of each bank, in their order.
    fn of_banks(&self) -> impl Iterator<Item = f64> {
        self.places.iter().map(|place| self.figures.get(*place).copied().unwrap_or_default())
    }
}

/// A correlation that is thought of.
#[derive(Debug, Clone, Copy)]
struct Correlation {
    rho: f64,
    /// C = (1 − ρ)/ρ.
    scale: f64,
    /// Σ_g ln Γ(C + m_g) − ln Γ(C): the part of ln L that no mean changes.
    sums: f64,
}

impl Correlation {
    fn new(rho: f64, trials: &mut Values) -> Self {
        let scale = (1.0 - rho) / rho;
        trials.rise(scale);
        Self { rho, scale, sums: trials.of_banks().sum() }
    }
}

/// Means and their ln L at one correlation. It is concave in the mean: each of its terms ln Γ(a + y) − ln Γ(a) is so in a, as the
/// trigamma function falls, and a goes with the mean.
#[derive(Default)]
struct Curve(Vec<(f64, f64)>);

/// How far rounding may move the chord of two means, and how far beyond them it is followed at most, in parts of their distance.
const ROUNDED: f64 = 0.01;
const FOLLOWED: f64 = 50.0;

impl Curve {
    /// What ln L is at most at another mean: no more than where the chord of the two nearest means on one side leads to.
    fn at_most(&self, mean: f64) -> f64 {
        let of_side = |direction: f64| {
            let mut nearest: [Option<(f64, f64)>; 2] = [None; 2];
            for (known, value) in &self.0 {
                let distance = (mean - known) * direction;
                let is_nearer = |than: Option<(f64, f64)>| than.is_none_or(|(other, _)| distance < other);
                if distance > 0.0 && is_nearer(nearest[0]) {
                    nearest = [Some((distance, *value)), nearest[0]];
                } else if distance > 0.0 && is_nearer(nearest[1]) {
                    nearest[1] = Some((distance, *value));
                }
            }
            let [Some((near, value)), Some((far, before))] = nearest else { return f64::INFINITY };
            let beyond = near / (far - near);
            let is_close = beyond < FOLLOWED;
            if is_close { value + (value - before) * beyond + ROUNDED * (1.0 + beyond) } else { f64::INFINITY }
        };
        of_side(1.0).min(of_side(-1.0))
    }
}

/// Where ρ is looked for first; the best is then narrowed down between its neighbours.
const COARSE: [f64; 8] = [UNCORRELATED, 3e-4, 1e-3, 4e-3, 0.012, 0.035, 0.1, MOST_CORRELATED];
/// Golden sections of the interval between neighbours: ln ρ is then known to a twentieth.
const NARROWED: u32 = 8;
const GOLDEN: f64 = 0.618_033_988_749_894_8;

impl Profile {
    fn new(banks: &[Bank]) -> Self {
        let sum: f64 = banks.iter().map(|bank| bank.trials).sum();
        let squares: f64 = banks.iter().map(|bank| bank.trials * bank.trials).sum();
        let mut trials = Values::new(banks.iter().map(|bank| bank.trials));
        let coarse = COARSE.map(|rho| Correlation::new(rho, &mut trials));
        Self {
            trials,
            passed: Values::new(banks.iter().map(|bank| bank.passed)),
            failed: Values::new(banks.iter().map(|bank| bank.trials - bank.passed)),
            mean_trials: squares / sum,
            coarse,
            curves: std::array::from_fn(|_| Curve::default()),
            top: 0,
            narrow: BTreeMap::new(),
            found: BTreeMap::new(),
        }
    }

    /// Ln L of a mean, given as the shares of passes and of fails, and a correlation.
    fn at(&mut self, (passes, fails): (f64, f64), Correlation { scale, sums, .. }: Correlation) -> f64 {
        self.passed.rise(scale * passes);
        self.failed.rise(scale * fails);
        self.passed.of_banks().zip(self.failed.of_banks()).map(|(passes, fails)| passes + fails).sum::<f64>() - sums
    }

    /// A correlation, given as its logarithm.
    fn correlation(&mut self, log: f64) -> Correlation {
        *self.narrow.entry(log.to_bits()).or_insert_with(|| Correlation::new(log.exp(), &mut self.trials))
    }

    /// The largest ln L of a mean, given on the logit scale, and the ρ that gives it.
    fn best(&mut self, eta: f64) -> (f64, f64) {
        if let Some(found) = self.found.get(&eta.to_bits()) {
            return *found;
        }
        let found = self.look(eta);
        self.found.insert(eta.to_bits(), found);
        found
    }

    fn look(&mut self, eta: f64) -> (f64, f64) {
        let mean = (expit(eta), expit(-eta));
        let (top, highest) = self.best_of_coarse(mean);
        let (mut low, mut high) = (COARSE[top.saturating_sub(1)].ln(), COARSE[(top + 1).min(COARSE.len() - 1)].ln());
        let mut of = |log: f64| {
            let correlation = self.correlation(log);
            (self.at(mean, correlation), correlation.rho)
        };
        let mut found = (highest, COARSE[top]);
        let (mut left, mut right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (mut at_left, mut at_right) = (of(left), of(right));
        for narrowed in 1..=NARROWED {
            let is_left = at_left.0 > at_right.0;
            let better = if is_left { at_left } else { at_right };
            if better.0 > found.0 {
                found = better;
            }
            if narrowed == NARROWED {
                break;
            }
            if is_left {
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

    /// The best place of the coarse look, the last of equal ones, and its ln L. Those that cannot be it are not worked out.
    fn best_of_coarse(&mut self, mean: (f64, f64)) -> (usize, f64) {
        let first = self.top;
        let mut best = (first, f64::NEG_INFINITY);
        for place in std::iter::once(first).chain((0..COARSE.len()).filter(|place| *place != first)) {
            if self.curves[place].at_most(mean.0) < best.1 {
                continue;
            }
            let value = self.at(mean, self.coarse[place]);
            self.curves[place].0.push((mean.0, value));
            if value > best.1 || (value.total_cmp(&best.1).is_eq() && place > best.0) {
                best = (place, value);
            }
        }
        self.top = best.0;
        best
    }

    fn bounds(&mut self, mean: f64) -> (f64, f64) {
        let start = (mean / (1.0 - mean)).ln().clamp(-FARTHEST, FARTHEST);
        let (top, (most, rho)) = self.summit(start);
        let share = self.mean_trials * rho / (1.0 + self.mean_trials * rho);
        let freedom = (self.trials.places.len() - 1) as f64 / (3.0 * share).clamp(1e-9, 1.0);
        let allowed = t_quantile(freedom).powi(2) / 2.0;
        let mut bound = |direction: f64| self.leave(top, direction, most - allowed).map(expit);
        (bound(-1.0).unwrap_or(0.0), bound(1.0).unwrap_or(1.0))
    }

    /// The mean of the largest likelihood: uphill from `start` by steps that double, then by golden sections.
    fn summit(&mut self, start: f64) -> (f64, (f64, f64)) {
        let mut value = |eta: f64| self.best(eta).0;
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
    fn leave(&mut self, top: f64, direction: f64, level: f64) -> Option<f64> {
        let mut over = |eta: f64| self.best(eta).0 - level;
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

/// ln √(2π).
const HALF_LN_TAU: f64 = 0.918_938_533_204_672_8;
/// From here on Stirling's series is exact to twelve digits.
const STIRLING_FROM: f64 = 8.0;

/// ln Γ(x) of x > 0: Stirling's series (Abramowitz and Stegun 6.1.41), after Γ(x + 1) = xΓ(x) where x is small. An interval takes
/// thousands of these.
fn ln_gamma(x: f64) -> f64 {
    let (far, below) = far_enough(x);
    put_together(far, stirling(far), below)
}

/// The number from [`STIRLING_FROM`] on that lies whole steps above `x`, and by what its ln Γ is larger.
fn far_enough(x: f64) -> (f64, f64) {
    let (mut far, mut product) = (x, 1.0);
    while far < STIRLING_FROM {
        product *= far;
        far += 1.0;
    }
    (far, if x < STIRLING_FROM { f64::ln(product) } else { 0.0 })
}

fn stirling(far: f64) -> f64 {
    let inverse = 1.0 / far;
    let square = inverse * inverse;
    let series =
        1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0)));
    inverse * series
}

fn put_together(far: f64, series: f64, below: f64) -> f64 {
    (far - 0.5) * far.ln() - far + HALF_LN_TAU + series - below
}

#[cfg(test)]
mod tests;
