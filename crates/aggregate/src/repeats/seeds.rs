//! Two systems on generated data of several seeds: each seed gives one difference, and these are independent of each other, so that
//! Student's t interval over them holds what further seeds would give.

use bench_proto::{comparison::Word, metric::Better, summary::Interval};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::spread::{ROUNDING, variance_of};
use crate::{
    compare::{SIGNIFICANT, adjusted},
    interval::t_quantile,
};

/// The differences of several seeds, taken together.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedDifference {
    /// Mean difference, second minus first.
    pub mean: f64,
    /// Standard deviation with n − 1; none for a single seed.
    pub sd: Option<f64>,
    /// mean ± t · sd / √n with n − 1 degrees of freedom, clipped to [−1, 1]; none where nothing differs between the seeds.
    pub ci95: Option<Interval>,
    /// 2 · P(T > |mean| · √n / sd); none without an interval.
    pub p_value: Option<f64>,
}

/// What the differences of several seeds come to (Student 1908). Nothing of no seeds.
#[must_use]
pub fn over_seeds(differences: &[f64]) -> Option<SeedDifference> {
    if differences.is_empty() {
        return None;
    }
    let n = differences.len() as f64;
    let (mean, variance) = variance_of(differences);
    let error = variance.filter(|variance| *variance > ROUNDING).map(|variance| (variance / n).sqrt());
    let ci95 = error.map(|error| {
        let half = t_quantile(n - 1.0) * error;
        let method = format!("t over seeds, {} df", differences.len() - 1);
        Interval { low: (mean - half).max(-1.0), high: (mean + half).min(1.0), method }
    });
    // `new` fails for degrees of freedom that are not positive, which two figures have
    let p_value = error.map(|error| {
        StudentsT::new(0.0, 1.0, n - 1.0).map_or(1.0, |student| (2.0 * student.sf(mean.abs() / error)).min(1.0))
    });
    Some(SeedDifference { mean, sd: variance.map(f64::sqrt), ci95, p_value })
}

/// The differences of several pairs, with Holm's correction over all of them, and what each says: that one is better takes an interval
/// beyond 0 and a corrected p value of at most 0.05. With each pair goes the direction in which its metric is better.
#[must_use]
pub fn in_view_of_all(pairs: &[(SeedDifference, Better)]) -> Vec<(Option<f64>, Word)> {
    let p_values: Vec<Option<f64>> = pairs.iter().map(|(pair, _)| pair.p_value).collect();
    let told = |((pair, better), p_holm): (&(SeedDifference, Better), Option<f64>)| {
        let interval = pair.ci95.as_ref().filter(|_| p_holm.is_some_and(|p| p <= SIGNIFICANT));
        let (above, below) = match better {
            Better::Higher => (Word::Better, Word::Worse),
            Better::Lower => (Word::Worse, Word::Better),
        };
        let word = match interval {
            Some(interval) if interval.low > 0.0 => above,
            Some(interval) if interval.high < 0.0 => below,
            _ => Word::Inconclusive,
        };
        (p_holm, word)
    };
    pairs.iter().zip(adjusted(&p_values)).map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_over_seeds_have_the_interval_and_the_p_value_of_student() {
        // sd / √5 = 0.008602325, t = 5.579887, t_{0.975} of 4 df = 2.776445; the tail beyond t by Simpson's rule over the density
        let found = over_seeds(&[0.05, 0.02, 0.07, 0.04, 0.06]).expect("five seeds");
        let ci95 = found.ci95.expect("they differ");
        assert!((found.mean - 0.048).abs() < 1e-12 && (found.sd.expect("five") - 0.019_235_384).abs() < 1e-8);
        assert!((ci95.low - 0.024_116_3).abs() < 1e-6 && (ci95.high - 0.071_883_7).abs() < 1e-6, "{ci95:?}");
        assert!((found.p_value.expect("they differ") - 0.005_057_588_9).abs() < 1e-6, "{:?}", found.p_value);
    }

    #[test]
    fn equal_and_single_differences_decide_nothing() {
        assert_eq!(over_seeds(&[]), None);
        let one = over_seeds(&[0.3]).expect("one");
        assert_eq!((one.sd, one.ci95.clone(), one.p_value), (None, None, None));
        let equal = over_seeds(&[0.2, 0.2, 0.2]).expect("three");
        assert!(equal.ci95.is_none() && equal.p_value.is_none(), "{equal:?}");
        let words = in_view_of_all(&[(one, Better::Higher), (equal, Better::Lower)]);
        assert_eq!(words, [(None, Word::Inconclusive), (None, Word::Inconclusive)]);
    }

    #[test]
    fn a_difference_decides_by_its_corrected_p_and_in_the_direction_of_the_metric() {
        let pair = |differences: &[f64], better| (over_seeds(differences).expect("several"), better);
        let borderline = pair(&[0.02, 0.06, 0.04, 0.07], Better::Higher);
        let alone = in_view_of_all(std::slice::from_ref(&borderline));
        assert_eq!(alone[0].1, Word::Better, "{alone:?}");
        let lower = pair(&[0.10, 0.12, 0.11, 0.09], Better::Lower);
        let open = pair(&[0.01, -0.02, 0.03, 0.02], Better::Higher);
        // by Holm the second smallest of three counts twice, the third of five thrice
        let words = in_view_of_all(&[borderline.clone(), lower.clone(), open.clone()]);
        assert_eq!(words[0].0, borderline.0.p_value.map(|p| 2.0 * p), "{words:?}");
        assert_eq!([words[0].1, words[1].1, words[2].1], [Word::Better, Word::Worse, Word::Inconclusive]);
        let words = in_view_of_all(&[borderline, lower.clone(), open.clone(), open, lower]);
        assert_eq!(words[0].1, Word::Inconclusive, "{words:?}");
    }
}
