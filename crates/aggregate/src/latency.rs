//! Percentiles by linear interpolation.

use bench_proto::summary::Percentiles;

/// p50, p95 and p99 in milliseconds of microsecond values, in any order; NaN stands for "did not happen". `None` when
/// nothing did.
pub(crate) fn percentiles(microseconds: impl Iterator<Item = f32>) -> Option<Percentiles> {
    let mut values: Vec<f32> = microseconds.filter(|us| !us.is_nan()).collect();
    if values.is_empty() {
        return None;
    }
    let mut at = |percent| percentile(&mut values, percent) / 1e3;
    let (p50, p95, p99) = (at(50.0), at(95.0), at(99.0));
    Some(Percentiles { p50, p95, p99, n: values.len() as u64 })
}

/// Percentiles of the plots.
pub(crate) const CURVE: [f64; 13] = [0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.9, 100.0];

/// Milliseconds at the percentiles of [`CURVE`].
pub(crate) fn curve(microseconds: impl Iterator<Item = f32>) -> Option<Vec<f64>> {
    let mut values: Vec<f32> = microseconds.filter(|us| !us.is_nan()).collect();
    (!values.is_empty()).then(|| CURVE.iter().map(|percent| percentile(&mut values, *percent) / 1e3).collect())
}

/// The value at index (n − 1) · p / 100 of the sorted values, between its neighbours. Selects instead of sorting: a
/// million values are looked at nine times over.
fn percentile(values: &mut [f32], percent: f64) -> f64 {
    let index = (values.len() - 1) as f64 * percent / 100.0;
    let (_, low, above) = values.select_nth_unstable_by(index.floor() as usize, f32::total_cmp);
    let low = f64::from(*low);
    let high = above.iter().copied().min_by(f32::total_cmp).map_or(low, f64::from);
    low + (high - low) * (index - index.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_interpolate_like_numpy() {
        // numpy 2: np.percentile([7000, 1000, 3000, 20000, 5000], [50, 95, 99]) = [5000, 17400, 19480]
        let p = percentiles([7000.0, 1000.0, f32::NAN, 3000.0, 20000.0, 5000.0].into_iter()).expect("has values");
        assert!((p.p50 - 5.0).abs() < 1e-9 && (p.p95 - 17.4).abs() < 1e-9 && (p.p99 - 19.48).abs() < 1e-9, "{p:?}");
        assert_eq!(p.n, 5);
        assert_eq!(percentiles([f32::NAN].into_iter()), None);
        let one = percentiles([1500.0].into_iter()).expect("has a value");
        assert_eq!((one.p50, one.p99), (1.5, 1.5));
    }
}
