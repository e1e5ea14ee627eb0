//! Sums that do not depend on the order of their parts.

/// A sum of fractions in [0, 1] in fixed point, units of 2⁻⁶⁴. Integer addition commutes, so order and merging cannot
/// show; a value loses less than 2⁻⁶⁴.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ExactSum(u128);

impl ExactSum {
    const UNIT: f64 = 18_446_744_073_709_551_616.0; // 2^64

    pub(crate) fn add(&mut self, fraction: f64) {
        // scaling by a power of two is exact; the cast saturates and turns NaN into 0
        self.0 += (fraction.clamp(0.0, 1.0) * Self::UNIT) as u128;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0 += other.0;
    }

    /// Mean over `n` values, `None` for none.
    pub(crate) fn mean(self, n: u64) -> Option<f64> {
        (n > 0).then(|| self.0 as f64 / Self::UNIT / n as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn order_cannot_show(mut values in proptest::collection::vec(0.0_f64..=1.0, 0..50)) {
            let sum = |values: &[f64]| {
                let mut sum = ExactSum::default();
                values.iter().for_each(|v| sum.add(*v));
                sum
            };
            let forward = sum(&values);
            values.reverse();
            prop_assert_eq!(forward, sum(&values));
            let plain: f64 = values.iter().sum();
            prop_assert!((forward.mean(1).expect("has a mean") - plain).abs() < 1e-12);
        }
    }
}
