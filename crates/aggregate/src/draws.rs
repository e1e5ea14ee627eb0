//! Draws of scores whose truth is known.

use statrs::distribution::{ContinuousCDF, Normal};

/// Questions of LoCoMo's ten conversations.
pub const LOCOMO_BANKS: [u64; 10] = [199, 105, 193, 260, 242, 158, 190, 239, 196, 204];

/// Fast numbers by chance for simulations (Steele et al. 2014, SplitMix64); nothing that needs secrecy.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// 1 with probability `p`, else 0.
    pub(crate) fn verdict(&mut self, p: f64) -> f64 {
        f64::from(u8::from(self.fraction() < p))
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((self.fraction() * n as f64) as usize).min(n.saturating_sub(1))
    }

    /// Successes of `n` tosses, each with probability `p`.
    pub(crate) fn successes(&mut self, n: u64, p: f64) -> u64 {
        let limit = (p.clamp(0.0, 1.0) * 4_294_967_296.0) as u64;
        let mut successes = 0;
        for _ in 0..n / 2 {
            let word = self.next();
            successes += u64::from(word >> 32 < limit) + u64::from(word & 0xFFFF_FFFF < limit);
        }
        successes + if n % 2 == 1 { u64::from(self.next() >> 32 < limit) } else { 0 }
    }

    /// Standard normal (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.fraction()).cos()
    }

    /// Gamma with scale 1 (Marsaglia and Tsang 2000).
    pub(crate) fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            return self.gamma(shape + 1.0) * (1.0 - self.fraction()).powf(1.0 / shape);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && (1.0 - self.fraction()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    fn beta(&mut self, a: f64, b: f64) -> f64 {
        let (x, y) = (self.gamma(a), self.gamma(b));
        // both are 0 where the shapes are tiny: one side has it all then
        if x + y > 0.0 { x / (x + y) } else { self.verdict(a / (a + b)) }
    }
}

/// How the banks' chances of a right answer are spread around their mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effects {
    /// Beta distributed.
    Beta,
    /// Normal on the logit scale.
    LogitNormal,
    /// Two kinds of banks: as even a split as the mean and the correlation allow.
    TwoPoint,
}

impl Effects {
    /// Every distribution, in the order of tables.
    pub const ALL: [Self; 3] = [Self::Beta, Self::LogitNormal, Self::TwoPoint];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Beta => "beta",
            Self::LogitNormal => "logit-normal",
            Self::TwoPoint => "two-point",
        }
    }
}

/// A distribution of banks' chances with mean `p` and variance `correlation` · p(1 − p).
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spread {
    Fixed(f64),
    Beta(f64, f64),
    LogitNormal(f64, f64),
    TwoPoint { low: f64, high: f64, low_share: f64 },
}

impl Spread {
    pub(crate) fn new(effects: Effects, p: f64, correlation: f64) -> Self {
        if correlation <= 0.0 {
            return Self::Fixed(p);
        }
        let rest = (1.0 - correlation) / correlation;
        match effects {
            Effects::Beta => Self::Beta(p * rest, (1.0 - p) * rest),
            Effects::LogitNormal => {
                let (middle, deviation) = logit_normal(p, correlation * p * (1.0 - p));
                Self::LogitNormal(middle, deviation)
            }
            Effects::TwoPoint => {
                let variance = correlation * p * (1.0 - p);
                // the better kind answers all right where an even split would ask for more than that
                let low_share = 0.5_f64.min((1.0 - p).powi(2) / ((1.0 - p).powi(2) + variance));
                let ratio = (low_share / (1.0 - low_share)).sqrt();
                Self::TwoPoint { low: p - variance.sqrt() / ratio, high: p + variance.sqrt() * ratio, low_share }
            }
        }
    }

    /// The chance of a bank that a normal number moves, where chances are spread so; else their mean.
    pub(crate) fn at(&self, moved: f64) -> f64 {
        match *self {
            Self::Fixed(p) => p,
            Self::Beta(a, b) => a / (a + b),
            Self::LogitNormal(middle, deviation) => logistic(middle + deviation * moved),
            Self::TwoPoint { low, high, low_share } => low * low_share + high * (1.0 - low_share),
        }
    }

    pub(crate) fn draw(&self, chance: &mut Chance) -> f64 {
        match *self {
            Self::Fixed(p) => p,
            Self::Beta(a, b) => chance.beta(a, b),
            Self::LogitNormal(..) => self.at(chance.normal()),
            Self::TwoPoint { low, high, low_share } => {
                if chance.fraction() < low_share {
                    low
                } else {
                    high.min(1.0)
                }
            }
        }
    }
}

pub(crate) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Places of equal probability at which means over the normal distribution are taken.
const PLACES: usize = 400;

/// Middle and deviation on the logit scale that give a mean and a variance: two bisections over means of quantiles.
fn logit_normal(mean: f64, variance: f64) -> (f64, f64) {
    let quantile = |place: usize| Normal::standard().inverse_cdf((place as f64 + 0.5) / PLACES as f64);
    let places: Vec<f64> = (0..PLACES).map(quantile).collect();
    let values = |middle: f64, deviation: f64| places.iter().map(move |z| logistic(middle + deviation * z));
    let mean_of = |middle: f64, deviation: f64| values(middle, deviation).sum::<f64>() / PLACES as f64;
    let variance_of = |middle: f64, deviation: f64| {
        let mean = mean_of(middle, deviation);
        values(middle, deviation).map(|value| (value - mean).powi(2)).sum::<f64>() / PLACES as f64
    };
    let middle_of = |deviation: f64| bisect(-40.0, 40.0, |middle| mean_of(middle, deviation) < mean);
    let deviation = bisect(0.0, 15.0, |deviation| variance_of(middle_of(deviation), deviation) < variance);
    (middle_of(deviation), deviation)
}

/// Where a condition that holds below and not above turns.
fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..45 {
        let middle = f64::midpoint(low, high);
        if below(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_have_the_mean_and_the_variance_that_were_asked_for() {
        for effects in Effects::ALL {
            for (p, correlation) in [(0.5, 0.1), (0.9, 0.05), (0.98, 0.1)] {
                let spread = Spread::new(effects, p, correlation);
                let mut chance = Chance::new(1);
                let draws: Vec<f64> = (0..200_000).map(|_| spread.draw(&mut chance)).collect();
                let mean = draws.iter().sum::<f64>() / draws.len() as f64;
                let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
                let wanted = correlation * p * (1.0 - p);
                assert!((mean - p).abs() < 0.002, "{effects:?} {p} {correlation}: mean {mean}");
                assert!(
                    (variance / wanted - 1.0).abs() < 0.06,
                    "{effects:?} {p} {correlation}: {variance} for {wanted}"
                );
            }
        }
    }
}
