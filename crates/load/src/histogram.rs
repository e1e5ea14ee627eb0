//! Latencies, kept so that those of several processes add up exactly.
//!
//! A histogram has fixed buckets, a thousandth of their value wide, from a microsecond to an hour. Adding two of them adds counts:
//! the sum is what one process would have had.

use std::time::Duration;

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest latency that is told from longer ones.
pub const LONGEST: Duration = Duration::from_secs(3600);
/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;
const LONGEST_US: u64 = LONGEST.as_micros() as u64;

/// Latencies of operations that were served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        // the bounds are constants that the library takes: the test below would fail
        Self(Histogram::new_with_bounds(1, LONGEST_US, DIGITS).unwrap_or_else(|_| unreachable!("bounds are valid")))
    }
}

impl Latencies {
    /// Notes one.
    pub fn record(&mut self, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(LONGEST_US);
        self.0.saturating_record(us.clamp(1, LONGEST_US));
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        // both have the same bounds
        let _ = self.0.add(&other.0);
    }

    /// How many there are.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.0.len()
    }

    /// Their mean in milliseconds; none without any.
    #[must_use]
    pub fn mean_ms(&self) -> Option<f64> {
        (self.n() > 0).then(|| self.0.mean() / 1e3)
    }

    /// The largest in milliseconds; none without any.
    #[must_use]
    pub fn max_ms(&self) -> Option<f64> {
        (self.n() > 0).then(|| self.0.max() as f64 / 1e3)
    }

    /// The latency in milliseconds that a share of all operations did not exceed (nearest rank), where `never` operations more
    /// were never served: none when the share is not reached by those that were.
    #[must_use]
    pub fn quantile_ms(&self, share: f64, never: u64) -> Option<f64> {
        let all = self.n() + never;
        // a share such as 0.999 of 1,000 is the 999th, whatever the product's last bit is
        let rank = ((share * all as f64 - 1e-9).ceil() as u64).clamp(1, all.max(1));
        if rank > self.n() {
            return None;
        }
        let (mut passed, mut found) = (0, None);
        for bucket in self.0.iter_recorded() {
            passed += bucket.count_at_value();
            if passed >= rank {
                found = Some(bucket.value_iterated_to() as f64 / 1e3);
                break;
            }
        }
        found
    }
}

/// As it is written: each bucket by the largest number of microseconds in it, with its count.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stored {
    significant_digits: u8,
    counts_by_us: Vec<(u64, u64)>,
}

impl From<Latencies> for Stored {
    fn from(Latencies(histogram): Latencies) -> Self {
        let counts = histogram.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()));
        Self { significant_digits: DIGITS, counts_by_us: counts.collect() }
    }
}

impl TryFrom<Stored> for Latencies {
    type Error = String;

    /// Files come from anywhere: values that no process of ours writes are refused.
    fn try_from(stored: Stored) -> Result<Self, String> {
        if stored.significant_digits != DIGITS {
            return Err(format!("latencies with {} significant digits, not {DIGITS}", stored.significant_digits));
        }
        let (mut latencies, mut all, mut before) = (Self::default(), 0_u64, 0);
        let longest = latencies.0.highest_equivalent(LONGEST_US);
        for (us, count) in stored.counts_by_us {
            if us <= before || us > longest {
                return Err(format!("latency of {us} us out of order or longer than an hour"));
            }
            all = all.checked_add(count).filter(|all| *all < 1 << 53).ok_or("more latencies than can be counted")?;
            latencies.0.record_n(us, count).map_err(|error| error.to_string())?;
            before = us;
        }
        Ok(latencies)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(us: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        us.iter().for_each(|us| latencies.record(Duration::from_micros(*us)));
        latencies
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(us in prop::collection::vec(1_u64..4_000_000_000, 1..300), at in 0_usize..300) {
            let (one, other) = us.split_at(at.min(us.len()));
            let mut sum = of(one);
            sum.add(&of(other));
            prop_assert_eq!(&sum, &of(&us));
            let written = serde_json::to_string(&sum).expect("is written");
            prop_assert_eq!(serde_json::from_str::<Latencies>(&written).expect("is read"), sum);
        }

        #[test]
        fn a_quantile_is_the_nearest_rank_within_a_thousandth(mut us in prop::collection::vec(1_u64..3_600_000_000, 1..300), share in 0.0_f64..1.0) {
            let latencies = of(&us);
            us.sort_unstable();
            let rank = ((share * us.len() as f64 - 1e-9).ceil() as usize).max(1);
            let exact = us[rank - 1] as f64 / 1e3;
            let told = latencies.quantile_ms(share, 0).expect("there are some");
            prop_assert!(told >= exact && told <= exact * 1.001 + 1e-3, "{} {}", told, exact);
        }
    }

    #[test]
    fn what_was_never_served_is_slower_than_all_that_was() {
        let latencies = of(&[1_000; 97]);
        assert_eq!(latencies.quantile_ms(0.97, 3), latencies.quantile_ms(0.5, 0));
        assert_eq!(latencies.quantile_ms(0.98, 3), None);
        assert_eq!(Latencies::default().quantile_ms(0.5, 0), None);
        assert_eq!(Latencies::default().quantile_ms(0.5, 5), None);
    }

    #[test]
    fn what_takes_longer_than_an_hour_is_kept_as_an_hour() {
        let latencies = of(&[u64::MAX]);
        let longest = latencies.max_ms().expect("one is there");
        assert!((3_600_000.0..3_604_000.0).contains(&longest), "{longest}");
        assert_eq!(of(&[0]).quantile_ms(1.0, 0), Some(0.001));
    }

    #[test]
    fn other_peoples_files_are_looked_at() {
        for wrong in [
            r#"{"significant_digits": 2, "counts_by_us": []}"#,
            r#"{"significant_digits": 3, "counts_by_us": [[5, 1], [4, 1]]}"#,
            r#"{"significant_digits": 3, "counts_by_us": [[99999999999999, 1]]}"#,
            r#"{"significant_digits": 3, "counts_by_us": [[0, 1]]}"#,
            r#"{"significant_digits": 3, "counts_by_us": [[5, 18446744073709551615], [7, 2]]}"#,
        ] {
            assert!(serde_json::from_str::<Latencies>(wrong).is_err(), "{wrong}");
        }
    }
}
