//! Figures of which there is one for each run or each seed: mean, sample standard deviation, and Student's t interval.

use bench_proto::summary::Interval;

use crate::interval::{symmetric, t_quantile};

/// Variance of fractions that is rounding alone.
pub(super) const ROUNDING: f64 = 1e-24;

/// The spread of some figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// How many there are.
    pub n: u64,
    /// Sum of the figures over `n`.
    pub mean: f64,
    /// Their standard deviation with n − 1; none for a single figure.
    pub sd: Option<f64>,
    /// mean ± t · sd / √n with n − 1 degrees of freedom, clipped to [0, 1]; none where nothing differs.
    pub ci95: Option<Interval>,
}

impl Spread {
    /// t · sd, how far a single figure may lie from the mean of many (95 %).
    #[must_use]
    pub fn one_within(&self) -> Option<f64> {
        self.sd.filter(|sd| sd * sd > ROUNDING).map(|sd| t_quantile(self.n.saturating_sub(1) as f64) * sd)
    }
}

/// The spread of figures; `each` says what there is one of, such as `repeats` or `seeds`. Nothing of no figures.
#[must_use]
pub fn spread(figures: &[f64], each: &str) -> Option<Spread> {
    if figures.is_empty() {
        return None;
    }
    let n = figures.len() as f64;
    let (mean, variance) = variance_of(figures);
    let ci95 = variance.filter(|variance| *variance > ROUNDING).map(|variance| {
        let half = t_quantile(n - 1.0) * (variance / n).sqrt();
        symmetric(mean, half, format!("t over {each}, {} df", figures.len() - 1))
    });
    Some(Spread { n: figures.len() as u64, mean, sd: variance.map(f64::sqrt), ci95 })
}

/// Mean of some figures, at least one, and their variance with n − 1.
pub(super) fn variance_of(figures: &[f64]) -> (f64, Option<f64>) {
    let n = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / n;
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    (mean, (figures.len() > 1).then(|| squares / (n - 1.0)))
}
