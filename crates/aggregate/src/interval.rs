//! Quantiles and the textbook intervals.

use bench_proto::summary::Interval;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// 97.5 % quantile of the normal distribution.
pub(crate) const Z: f64 = 1.959_963_984_540_054;
/// From here on the expansion around the normal quantile is exact to eleven digits, and the inverse beta function is not.
pub(crate) const EXPANSION_FROM_DF: f64 = 1e3;
/// What lies outside of a 95 % interval on one side.
const ONCE_IN_FORTY: f64 = 0.025;

/// 97.5 % quantile of Student's t with `df` ≥ 1 degrees of freedom.
pub(crate) fn t_quantile(df: f64) -> f64 {
    if df >= EXPANSION_FROM_DF {
        // Cornish-Fisher (Abramowitz and Stegun 26.7.5)
        let g1 = (Z.powi(3) + Z) / 4.0;
        let g2 = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
        let g3 = (3.0 * Z.powi(7) + 19.0 * Z.powi(5) + 17.0 * Z.powi(3) - 15.0 * Z) / 384.0;
        return Z + g1 / df + g2 / (df * df) + g3 / (df * df * df);
    }
    // the only errors of `new` are a scale or df that is not positive
    StudentsT::new(0.0, 1.0, df.max(1.0)).map_or(Z, |t| t.inverse_cdf(0.975))
}

/// `middle` ± `half`, clipped to [0, 1].
pub(crate) fn symmetric(middle: f64, half: f64, method: String) -> Interval {
    Interval { low: (middle - half).clamp(0.0, 1.0), high: (middle + half).clamp(0.0, 1.0), method }
}

/// The most that others may be of the answers behind `n` > 0 equal ones: of a larger share so many equal answers come less than
/// once in forty, 1 − 0.025^(1/n) (Clopper and Pearson 1934; the "rule of three" of Hanley and Lippman-Hand 1983).
pub(crate) fn others(n: f64) -> f64 {
    others_beyond(n, ONCE_IN_FORTY)
}

/// The same of a larger share with which so many equal answers come less often than `rarely`.
pub(crate) fn others_beyond(n: f64, rarely: f64) -> f64 {
    -(rarely.ln() / n).exp_m1()
}

/// The least standard error of a mean of `n` > 0 scores from 0 to 1: of equal ones, a 95 % interval as wide as what [`others`]
/// could move the mean by. A single other verdict among them makes a larger one.
pub(crate) fn least_error(n: f64) -> f64 {
    others(n) / (2.0 * Z)
}

/// Wilson's interval of a share, `successes` of `n` > 0 (Wilson 1927; no continuity correction).
pub(crate) fn wilson(successes: f64, n: f64) -> Interval {
    let (share, z2) = (successes / n, Z * Z);
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    let Interval { low, high, method } = symmetric(middle, half, "Wilson".to_owned());
    // where all or none succeeded, rounding must not leave the share itself outside
    Interval { low: low.min(share), high: high.max(share), method }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_scipy() {
        // scipy.stats.t.ppf(0.975, df)
        for (df, expected) in [
            (2.0, 4.302_652_729_749_462),
            (9.0, 2.262_157_162_798_205),
            (195.0, 1.972_204_051_268_443_3),
            (499.0, 1.964_729_390_987_688_6),
            (999.0, 1.9623414611334493),
            (1_000.0, 1.9623390808264083),
            (999_999.0, 1.959_966_356_816_479_1),
        ] {
            let got = t_quantile(df);
            assert!((got - expected).abs() < 1e-9, "df {df}: {got} instead of {expected}");
        }
    }

    #[test]
    fn wilson_matches_statsmodels() {
        // statsmodels.stats.proportion.proportion_confint(k, n, method='wilson')
        for (k, n, low, high) in WILSON {
            let got = wilson(k, n);
            assert!((got.low - low).abs() < 1e-12 && (got.high - high).abs() < 1e-12, "{k}/{n}: {got:?}");
        }
    }

    #[test]
    fn what_equal_answers_leave_open_matches_scipy() {
        // scipy.stats.beta.ppf(0.025, n, 1) is the lower bound of n successes of n
        for (n, lower) in [(1.0, 0.025), (3.0, 0.292_401_773_821_286_6), (201.0, 0.981_814_749_945_613_7)] {
            assert!((1.0 - others(n) - lower).abs() < 1e-12, "{n}: {}", others(n));
        }
        for n in 1..500_u32 {
            let n = f64::from(n);
            assert!(others(n + 1.0) < others(n), "{n}");
            // one other verdict among n has the standard error 1 / n
            assert!(least_error(n) < 1.0 / n, "{n}");
        }
    }

    const WILSON: [(f64, f64, f64, f64); 3] = [
        (1157.0, 1540.0, 0.7291021921640313, 0.7722446239729321),
        (0.0, 50.0, 0.0, 0.07134759913335874),
        (41.0, 41.0, 0.9143324298155681, 0.9999999999999999),
    ];
}
