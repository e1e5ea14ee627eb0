//! Quantiles and the textbook intervals.

use bench_proto::summary::Interval;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// 97.5 % quantile of the normal distribution.
pub(crate) const Z: f64 = 1.959_963_984_540_054;
/// From here on the expansion around the normal quantile is exact to eleven digits, and the inverse beta function is not.
const EXPANSION_FROM_DF: f64 = 1e3;

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

/// Wilson's interval of a share, `successes` of `n` > 0 (Wilson 1927; no continuity correction).
pub(crate) fn wilson(successes: f64, n: f64) -> Interval {
    let (share, z2) = (successes / n, Z * Z);
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    symmetric(middle, half, "Wilson".to_owned())
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

    const WILSON: [(f64, f64, f64, f64); 3] = [
        (1157.0, 1540.0, 0.7291021921640313, 0.7722446239729321),
        (0.0, 50.0, 0.0, 0.07134759913335874),
        (41.0, 41.0, 0.9143324298155681, 0.9999999999999999),
    ];
}
