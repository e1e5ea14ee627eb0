//! Money is whole pico-dollars (10⁻¹² USD) in an `i64`: a price of six decimals per million tokens is then an integer
//! per token, and sums never round. The range is ± 9.2 million dollars.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount in pico-dollars.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct PicoUsd(pub i64);

impl PicoUsd {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    const PER_USD: i64 = 1_000_000_000_000;

    /// Reads a decimal amount of dollars such as `20`, `0.5` or `1.000001`; no exponent, at most 12 decimals.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) || fraction.len() > 12 {
            return None;
        }
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let fraction: i64 = format!("{fraction:0<12}").parse().ok()?;
        whole.checked_mul(Self::PER_USD)?.checked_add(fraction).map(Self)
    }

    /// The amount in dollars, for reports only: floats never enter a sum.
    #[must_use]
    pub fn usd(self) -> f64 {
        self.0 as f64 / Self::PER_USD as f64
    }

    /// Sum that sticks at the ends of the range instead of wrapping.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::iter::Sum for PicoUsd {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Self::saturating_add)
    }
}

impl fmt::Display for PicoUsd {
    /// Dollars with as many decimals as it takes to see something: `$0.0042`, `$12.34`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usd = self.usd();
        if usd == 0.0 || usd.abs() >= 1.0 { write!(f, "${usd:.2}") } else { write!(f, "${usd:.4}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly() {
        assert_eq!(PicoUsd::parse("20"), Some(PicoUsd(20_000_000_000_000)));
        assert_eq!(PicoUsd::parse("0.000000000001"), Some(PicoUsd(1)));
        assert_eq!(PicoUsd::parse(".5"), Some(PicoUsd(500_000_000_000)));
        for bad in ["", ".", "-1", "1e3", "1.0000000000001", "9999999999999999999"] {
            assert_eq!(PicoUsd::parse(bad), None, "{bad}");
        }
    }
}
