//! Holm's step-down correction: how surprising is the best of several p values?

/// Adjusted p values in the order given; `None` stays `None` and counts for nothing (Holm 1979).
pub(crate) fn adjusted(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> = p_values.iter().enumerate().filter_map(|(i, p)| Some((i, (*p)?))).collect();
    order.sort_by(|x, y| x.1.total_cmp(&y.1));
    let mut adjusted = vec![None; p_values.len()];
    let mut so_far = 0.0_f64;
    for (rank, (place, p)) in order.iter().enumerate() {
        so_far = so_far.max((p * (order.len() - rank) as f64).min(1.0));
        adjusted[*place] = Some(so_far);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn corrections_match_statsmodels() {
        // statsmodels.stats.multitest.multipletests([0.01, 0.04, 0.03, 0.005, 0.5], method='holm')[1]
        let got = adjusted(&[Some(0.01), Some(0.04), None, Some(0.03), Some(0.005), Some(0.5)]);
        let expected = [Some(0.04), Some(0.09), None, Some(0.09), Some(0.025), Some(0.5)];
        for (got, expected) in got.iter().zip(expected) {
            match (got, expected) {
                (Some(got), Some(expected)) => assert!((got - expected).abs() < 1e-12, "{got} instead of {expected}"),
                (got, expected) => assert_eq!(*got, expected),
            }
        }
    }

    proptest! {
        #[test]
        fn corrections_only_raise_and_keep_the_order(p in proptest::collection::vec(0.0_f64..=1.0, 0..8)) {
            let got: Vec<f64> = adjusted(&p.iter().map(|p| Some(*p)).collect::<Vec<_>>()).into_iter().flatten().collect();
            prop_assert!(got.iter().zip(&p).all(|(adjusted, p)| adjusted >= p && *adjusted <= 1.0));
            for i in 0..p.len() {
                for j in 0..p.len() {
                    prop_assert!(p[i] > p[j] || got[i] <= got[j]);
                }
            }
        }
    }
}
