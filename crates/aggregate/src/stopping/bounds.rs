//! How sure each of several looks must be so that all of them together err no more often than one.
//!
//! The 5 % of a two-sided test are spent over the looks as O'Brien and Fleming's boundaries spend them: by the time a part t of the
//! questions has ended, 2 − 2Φ(z/√t) on each side, z the 98.75 % quantile (Lan and DeMets 1983). The bounds follow by integrating over what the estimate may have been at
//! the look before (Armitage, McPherson and Rowe 1969).

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::interval::EXPANSION_FROM_DF;

/// Points of the grid over which is integrated, an odd number (Simpson's rule).
const GRID: usize = 161;
/// Halvings of the search for a bound: more than a float has digits for.
const HALVINGS: usize = 60;
/// Bounds this far from a first estimate lie surely on its side of the true one: sums of so few chances are known to 2e-14 of them,
/// and fall by at least twice of what a bound moves.
const CLEAR: f64 = 1e-13;
/// Two estimates this near to each other are followed by none that is better: each is as exact as both before it together.
const CLOSE: f64 = 1e-9;
/// A bound lies between this part of that of the look before and the whole of it, but for the first and for looks far apart.
const A_LITTLE_BELOW: f64 = 0.97;
/// Half the difference of two squares beyond which the chance of the farther tail is no half of the last bit of the nearer one's:
/// e⁻⁴⁰ is less than 2⁻⁵⁷.
const LOST: f64 = 40.0;
/// Beyond this many standard deviations nothing lies.
const FAR: f64 = 9.0;

fn normal() -> Normal {
    Normal::standard()
}

/// 98.75 % quantile of the normal distribution.
const Z_OF_A_SIDE: f64 = 2.241_402_727_604_947;

/// What may have been spent of the 5 % when a part `t` of the questions has ended.
fn spent(t: f64) -> f64 {
    if t <= 0.0 { 0.0 } else { 4.0 * normal().sf(Z_OF_A_SIDE / t.min(1.0).sqrt()) }
}

/// The estimate at a look, times the root of its part t (a Brownian motion), as far as no look has decided: a density over a grid.
#[derive(Debug, Clone)]
struct Density {
    points: Vec<f64>,
    /// Density times Simpson's weight times the distance of the points.
    mass: Vec<f64>,
    /// The bound of the look before, where the next one is looked for first.
    about: f64,
}

impl Density {
    /// Before the first look.
    fn begin() -> Self {
        Self { points: vec![0.0], mass: vec![1.0], about: Z_OF_A_SIDE }
    }

    /// The chance that a step with this standard deviation ends beyond ± `bound`.
    fn beyond(&self, bound: f64, step: f64) -> f64 {
        let normal = normal();
        let above = |x: f64| normal.sf((bound - x) / step);
        let below = |x: f64| normal.cdf((-bound - x) / step);
        // the squares of both arguments differ by 4 x · bound / step²: beyond this x one of both changes no bit of their sum
        let alone = LOST / 2.0 * step * step / bound;
        let of = |(x, mass): (&f64, &f64)| match *x {
            x if x > alone => mass * above(x),
            x if x < -alone => mass * below(x),
            x => mass * (above(x) + below(x)),
        };
        self.points.iter().zip(&self.mass).map(of).sum()
    }

    /// The bound, at most `far`, beyond which a step ends with a chance of `may`: by halving, down to the last bit. A first estimate
    /// spares most of the sums.
    fn bound(&self, step: f64, may: f64, far: f64) -> f64 {
        let is_too_much = |bound: f64| self.beyond(bound, step) > may;
        // logarithms are nearly straight where the chances themselves are nearly 0
        let ratio = |bound: f64| (self.beyond(bound, step).max(f64::MIN_POSITIVE) / may).ln();
        let near = (may > 0.0).then(|| crossing(ratio, self.about, far));
        let by_estimate = near.and_then(|near| halved_near(is_too_much, far, near));
        by_estimate.unwrap_or_else(|| halved(is_too_much, far).1)
    }

    /// The density after a step that has stayed within ± `bound`.
    fn step(&self, bound: f64, step: f64) -> Self {
        let distance = 2.0 * bound / (GRID - 1) as f64;
        let points: Vec<f64> = (0..GRID).map(|i| i as f64 * distance - bound).collect();
        let scale = 1.0 / (step * std::f64::consts::TAU.sqrt());
        let mass = points.iter().enumerate().map(|(i, x)| {
            let from = |(y, mass): (&f64, &f64)| mass * (-0.5 * ((x - y) / step).powi(2)).exp();
            let density: f64 = self.points.iter().zip(&self.mass).map(from).sum::<f64>() * scale;
            let weight = if i == 0 || i == GRID - 1 { 1.0 } else { f64::from(2 + 2 * (i as u32 % 2)) };
            density * weight * distance / 3.0
        });
        Self { mass: mass.collect(), points, about: bound }
    }
}

/// What is left of 0 to `far` by halving: its lower end is too much, its upper one is not.
fn halved(is_too_much: impl Fn(f64) -> bool, far: f64) -> (f64, f64) {
    let (mut low, mut high) = (0.0, far);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if middle == low || middle == high {
            break;
        }
        if is_too_much(middle) { low = middle } else { high = middle }
    }
    (low, high)
}

/// The upper end of the same, asking only near to an estimate; `None` where that is wrong. One that is 0 or `far` was asked itself.
fn halved_near(is_too_much: impl Fn(f64) -> bool, far: f64, near: f64) -> Option<f64> {
    let is_clear = |bound: f64| (bound - near).abs() > CLEAR;
    let (low, high) = halved(|bound| if is_clear(bound) { bound < near } else { is_too_much(bound) }, far);
    // an end that is clear of the estimate was taken for granted
    let is_asked = !is_clear(low) && !is_clear(high);
    (is_asked || near == 0.0 || near == far).then_some(high)
}

/// About where a falling function crosses 0 between 0 and `far`; one of these where it does not. By false position, in which the value
/// of an end that stays is made smaller by as much as that of the other end has become (Anderson and Björck 1973).
fn crossing(of: impl Fn(f64) -> f64, about: f64, far: f64) -> f64 {
    let [(mut low, mut above), (mut high, mut below)] = ends(&of, about.min(far), far);
    if above <= 0.0 {
        return low;
    }
    if below > 0.0 {
        return high;
    }
    let smaller = |stays: bool, ratio: f64| match ratio {
        _ if !stays => 1.0,
        ratio if ratio < 1.0 => 1.0 - ratio,
        _ => 0.5,
    };
    let (mut before, mut was_above) = (f64::NAN, None);
    for _ in 0..HALVINGS {
        let at = low + (high - low) * above / (above - below);
        if (at - before).abs() < CLOSE {
            return at;
        }
        let value = of(at);
        let is_above = value > 0.0;
        let stays = was_above == Some(is_above);
        if is_above {
            below *= smaller(stays, value / above);
            (low, above) = (at, value);
        } else {
            above *= smaller(stays, value / below);
            (high, below) = (at, value);
        }
        (before, was_above) = (at, Some(is_above));
    }
    (low + high) / 2.0
}

/// Two places with the values there of a falling function, between which it crosses 0 if it does between 0 and `far`.
fn ends(of: impl Fn(f64) -> f64, about: f64, far: f64) -> [(f64, f64); 2] {
    let with_value = |at: f64| (at, of(at));
    let low = with_value(about * A_LITTLE_BELOW);
    if low.1 <= 0.0 {
        return [with_value(0.0), low];
    }
    let high = with_value(about);
    if high.1 > 0.0 { [high, with_value(far)] } else { [low, high] }
}

/// The bounds of looks in standard errors, when parts `t` (ascending, the last at most 1) of the questions have ended.
pub(super) fn bounds(parts: &[f64]) -> Vec<f64> {
    let (mut density, mut before) = (Density::begin(), 0.0_f64);
    let mut bounds = Vec::with_capacity(parts.len());
    for (at, t) in parts.iter().enumerate() {
        let (step, may) = ((t - before).max(1e-9).sqrt(), spent(*t) - spent(before));
        let bound = density.bound(step, may, FAR * t.sqrt());
        // behind the last look nothing is asked
        if at + 1 < parts.len() {
            density = density.step(bound, step);
        }
        bounds.push(bound / t.sqrt());
        before = *t;
    }
    bounds
}

/// The quantile of Student's t that is as rarely exceeded as `bound` is by a normal number.
pub(super) fn t_of(bound: f64, df: f64) -> f64 {
    if df >= EXPANSION_FROM_DF {
        // Cornish-Fisher, as in `t_quantile`
        return bound + (bound.powi(3) + bound) / (4.0 * df);
    }
    // the only errors of `new` are a scale or df that is not positive
    StudentsT::new(0.0, 1.0, df.max(1.0)).map_or(bound, |t| -t.inverse_cdf(normal().sf(bound)))
}

/// The probability beyond ± `bound`.
pub(super) fn outside(bound: f64) -> f64 {
    2.0 * normal().sf(bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Z;

    #[test]
    fn bounds_are_those_of_the_published_tables() {
        // ldbounds 2.0.2: ldBounds(t = seq(0.2, 1, 0.2), iuse = c(1, 1), alpha = c(0.025, 0.025)), also Lan and DeMets 1983
        let five = bounds(&[0.2, 0.4, 0.6, 0.8, 1.0]);
        for (bound, table) in five.iter().zip([4.8769, 3.3569, 2.6803, 2.2898, 2.0310]) {
            assert!((bound - table).abs() < 5e-4, "{five:?}");
        }
        assert!((bounds(&[1.0])[0] - Z).abs() < 1e-6);
    }

    #[test]
    fn the_first_estimate_changes_no_bit() {
        let plain = |density: &Density, step: f64, may: f64, far: f64| {
            let (mut low, mut high) = (0.0, far);
            for _ in 0..HALVINGS {
                let middle = (low + high) / 2.0;
                if density.beyond(middle, step) > may { low = middle } else { high = middle }
            }
            high
        };
        for looks in [1, 2, 3, 7, 10, 24] {
            // the last has first looks at so few questions that nothing may be spent
            for power in [1.0, 0.5, 2.0, 12.0] {
                let (mut density, mut before) = (Density::begin(), 0.0_f64);
                for look in 1..=looks {
                    let t = (f64::from(look) / f64::from(looks)).powf(power);
                    let (step, may) = ((t - before).sqrt(), spent(t) - spent(before));
                    let bound = density.bound(step, may, FAR * t.sqrt());
                    assert_eq!(bound, plain(&density, step, may, FAR * t.sqrt()), "look {look} of {looks}, {power}");
                    (density, before) = (density.step(bound, step), t);
                }
            }
        }
    }

    #[test]
    fn a_tail_that_is_left_out_changes_no_bit() {
        let both = |density: &Density, bound: f64, step: f64| {
            let normal = normal();
            let of = |(x, mass): (&f64, &f64)| mass * (normal.sf((bound - x) / step) + normal.cdf((-bound - x) / step));
            density.points.iter().zip(&density.mass).map(of).sum::<f64>()
        };
        for step in [0.05_f64, 0.2, 0.316, 0.7, 1.0] {
            let density = Density::begin().step(2.2, step).step(2.1, step);
            for bound in [0.0, 1e-9, 0.3, 1.0, 1.9, 2.0, 2.1, 2.3, 4.0, 9.0] {
                let [sum, plain] = [density.beyond(bound, step), both(&density, bound, step)];
                assert_eq!(sum.to_bits(), plain.to_bits(), "{bound}, {step}");
            }
        }
    }

    #[test]
    fn an_estimate_that_is_wrong_is_found_out() {
        for crosses in [0.3, 2.0, 7.9] {
            let is_too_much = |bound: f64| bound < crosses;
            let (_, high) = halved(is_too_much, 9.0);
            assert_eq!(halved_near(is_too_much, 9.0, crosses + CLEAR / 2.0), Some(high));
            for wrong in [crosses - 1e-12, crosses + 1e-12, 1.0] {
                assert_eq!(halved_near(is_too_much, 9.0, wrong), None, "{wrong} for {crosses}");
            }
        }
        // what crosses nowhere, or is wrong at once
        assert_eq!(crossing(|bound| 10.0 - bound, 2.0, 9.0), 9.0);
        assert_eq!(crossing(|bound| -1.0 - bound, 2.0, 9.0), 0.0);
        for crosses in [0.1, 1.95, 1.99, 2.5, 8.9] {
            let found = crossing(|bound: f64| (crosses - bound) * (1.0 + bound), 2.0, 9.0);
            assert!((found - crosses).abs() < CLEAR, "{found} for {crosses}");
        }
    }

    #[test]
    fn looks_at_uneven_distances_spend_no_more_either() {
        let parts = [0.0125, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
        let all = bounds(&parts);
        assert!(all.windows(2).all(|two| two[0] >= two[1]), "{all:?}");
        assert!((Z..2.2).contains(all.last().expect("has some")), "{all:?}");
        let (mut density, mut before, mut erred) = (Density::begin(), 0.0_f64, 0.0);
        for (t, bound) in parts.iter().zip(&all) {
            let step = (t - before).sqrt();
            erred += density.beyond(bound * t.sqrt(), step);
            density = density.step(bound * t.sqrt(), step);
            before = *t;
        }
        assert!((erred - 0.05).abs() < 1e-6, "{erred}");
    }

    #[test]
    fn a_bound_of_students_t_is_wider_and_tends_to_the_normal_one() {
        // scipy.stats.t.isf(scipy.stats.norm.sf(3.3569), 100)
        assert!((t_of(3.3569, 100.0) - 3.461).abs() < 2e-3, "{}", t_of(3.3569, 100.0));
        assert!((t_of(2.0310, 999.0) - t_of(2.0310, 1_001.0)).abs() < 1e-4);
        let far = t_of(6.2, 150.0);
        assert!(far > 6.2 && far < 7.2, "{far}");
    }
}
