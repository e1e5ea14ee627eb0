//! Percentiles by linear interpolation.

use bench_proto::summary::Percentiles;

/// p50, p95 and p99 in milliseconds of microsecond values, in any order; NaN stands for "did not happen". `None` when
/// nothing did.
pub(crate) fn percentiles(microseconds: impl Iterator<Item = f32>) -> Option<Percentiles> {
    let mut sorted: Vec<f32> = microseconds.filter(|us| !us.is_nan()).collect();
    if sorted.is_empty() {
        return None;
    }
    sorted.sort_unstable_by(f32::total_cmp);
    let at = |percent| percentile(&sorted, percent) / 1e3;
    Some(Percentiles {
        p50: at(50.0),
        p95: at(95.0),
        p99: at(99.0),
        n: sorted.len() as u64,
    })
}

/// The value at index (n − 1) · p / 100 of a sorted, non-empty list, between its neighbours.
fn percentile(sorted: &[f32], percent: f64) -> f64 {
    let index = (sorted.len() - 1) as f64 * percent / 100.0;
    let below = index.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let (low, high) = (f64::from(sorted[below]), f64::from(sorted[above]));
    low + (high - low) * (index - index.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_interpolate_like_numpy() {
        // numpy 2: np.percentile([7000, 1000, 3000, 20000, 5000], [50, 95, 99]) = [5000, 17400, 19480]
        let p = percentiles([7000.0, 1000.0, f32::NAN, 3000.0, 20000.0, 5000.0].into_iter()).expect("has values");
        assert!(
            (p.p50 - 5.0).abs() < 1e-9 && (p.p95 - 17.4).abs() < 1e-9 && (p.p99 - 19.48).abs() < 1e-9,
            "{p:?}"
        );
        assert_eq!(p.n, 5);
        assert_eq!(percentiles([f32::NAN].into_iter()), None);
        let one = percentiles([1500.0].into_iter()).expect("has a value");
        assert_eq!((one.p50, one.p99), (1.5, 1.5));
    }
}
