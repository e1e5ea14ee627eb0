//! McNemar's exact test: of the questions on which two runs disagree, how surprising is the split?

use bench_proto::{comparison::McNemar, metric::Scale};
use statrs::distribution::{Binomial, DiscreteCDF};

/// Counts passes and tests the discordant ones against a fair coin, two-sided: min(1, 2 · P(X ≤ min(b, c))).
pub(super) fn test(scores: impl Iterator<Item = (f64, f64)>, scale: Scale) -> McNemar {
    let mut counts = McNemar {
        pass_threshold: scale.threshold,
        pass_beyond: scale.beyond,
        both: 0,
        only_a: 0,
        only_b: 0,
        neither: 0,
        p_value: 1.0,
    };
    for (a, b) in scores {
        match (scale.passes(a), scale.passes(b)) {
            (true, true) => counts.both += 1,
            (true, false) => counts.only_a += 1,
            (false, true) => counts.only_b += 1,
            (false, false) => counts.neither += 1,
        }
    }
    counts.p_value = exact(counts.only_a, counts.only_b);
    counts
}

fn exact(b: u64, c: u64) -> f64 {
    // the only error of `new` is a probability outside [0, 1]
    Binomial::new(0.5, b + c).map_or(1.0, |coin| (2.0 * coin.cdf(b.min(c))).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_match_statsmodels() {
        // statsmodels.stats.contingency_tables.mcnemar([[10, b], [c, 10]], exact=True).pvalue
        for (b, c, expected) in MCNEMAR {
            let got = exact(b, c);
            assert!((got - expected).abs() <= 1e-10 * expected.max(1e-3), "{b}, {c}: {got} instead of {expected}");
        }
    }

    const MCNEMAR: [(u64, u64, f64); 6] = [
        (0, 0, 1.0),
        (1, 9, 0.021484375),
        (13, 20, 0.296206368599087),
        (60, 105, 0.0005722115632375066),
        (500, 430, 0.023608839292547163),
        (3, 3, 1.0),
    ];
}
