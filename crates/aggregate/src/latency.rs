//! Percentiles by linear interpolation.

use bench_proto::summary::Percentiles;

/// Percentiles of the plots.
pub(crate) const CURVE: [f64; 13] = [0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.9, 100.0];

/// Microseconds in order; at least one.
pub(crate) struct Spread(Vec<f32>);

impl Spread {
    /// Of values in any order; NaN stands for "did not happen". `None` when nothing did.
    pub(crate) fn from_values(microseconds: impl Iterator<Item = f32>) -> Option<Self> {
        let mut values: Vec<f32> = microseconds.filter(|us| !us.is_nan()).collect();
        values.sort_unstable_by(f32::total_cmp);
        (!values.is_empty()).then_some(Self(values))
    }

    /// p50, p95 and p99 in milliseconds.
    pub(crate) fn percentiles(&self) -> Percentiles {
        let at = |percent| self.at(percent) / 1e3;
        Percentiles { p50: at(50.0), p95: at(95.0), p99: at(99.0), n: self.0.len() as u64 }
    }

    /// Milliseconds at the percentiles of [`CURVE`].
    pub(crate) fn curve(&self) -> Vec<f64> {
        CURVE.iter().map(|percent| self.at(*percent) / 1e3).collect()
    }

    /// The value at index (n − 1) · p / 100, between its neighbours.
    fn at(&self, percent: f64) -> f64 {
        let index = (self.0.len() - 1) as f64 * percent / 100.0;
        let low = f64::from(self.0[index.floor() as usize]);
        let high = self.0.get(index.floor() as usize + 1).map_or(low, |high| f64::from(*high));
        low + (high - low) * (index - index.floor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_interpolate_like_numpy() {
        // numpy 2: np.percentile([7000, 1000, 3000, 20000, 5000], [50, 95, 99]) = [5000, 17400, 19480]
        let of = |values: &[f32]| Spread::from_values(values.iter().copied()).map(|spread| spread.percentiles());
        let p = of(&[7000.0, 1000.0, f32::NAN, 3000.0, 20000.0, 5000.0]).expect("has values");
        assert!((p.p50 - 5.0).abs() < 1e-9 && (p.p95 - 17.4).abs() < 1e-9 && (p.p99 - 19.48).abs() < 1e-9, "{p:?}");
        assert_eq!(p.n, 5);
        assert_eq!(of(&[f32::NAN]), None);
        let one = of(&[1500.0]).expect("has a value");
        assert_eq!((one.p50, one.p99), (1.5, 1.5));
    }
}
