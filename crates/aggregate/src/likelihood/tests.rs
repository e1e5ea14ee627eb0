use proptest::prelude::*;

use super::*;
use crate::cells::{Cell, Tally};

fn counts(pairs: &[(f64, f64)]) -> Vec<Bank> {
    pairs.iter().map(|(trials, passed)| Bank { trials: *trials, passed: *passed }).collect()
}

fn ends(pairs: &[(f64, f64)]) -> (f64, f64) {
    let banks = counts(pairs);
    let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    Profile::new(&banks).bounds(sum(|pair| pair.1) / sum(|pair| pair.0))
}

#[test]
fn the_bounds_are_where_scipy_finds_them() {
    for (pairs, low, high) in SCIPY {
        let got = ends(pairs);
        assert!((got.0 - low).abs() < 2e-4 && (got.1 - high).abs() < 2e-4, "{got:?} instead of {low} to {high}");
    }
}

#[test]
fn the_logarithm_of_the_gamma_function_is_that_of_a_library() {
    for x in [1e-12, 1e-4, 0.3, 1.0, 1.5, 2.0, 7.999, 8.0, 12.25, 150.0, 2.5e4, 1e6] {
        let (ours, library) = (ln_gamma(x), statrs::function::gamma::ln_gamma(x));
        assert!((ours - library).abs() <= 1e-11 * library.abs().max(1.0), "{x}: {ours} instead of {library}");
    }
}

#[test]
fn equal_verdicts_reach_the_edge_and_leave_room_on_the_other_side() {
    let (low, high) = ends(&[(200.0, 200.0); 10]);
    assert!(high == 1.0 && (0.96..0.99).contains(&low), "{low} to {high}");
    let (low, high) = ends(&[(200.0, 0.0); 10]);
    assert!(low == 0.0 && (0.01..0.04).contains(&high), "{low} to {high}");
}

#[test]
fn the_share_of_others_behind_equal_scores_is_where_scipy_finds_it() {
    // scipy.optimize.brentq of Σ_g ln Γ(C(1−q) + m) − ln Γ(C(1−q)) − ln Γ(C + m) + ln Γ(C) + t²/2, C = 0.7/0.3, t =
    // scipy.stats.t.ppf(0.975, max(G, 10) − 1), over q; of the last two 1 − scipy.stats.beta.ppf(0.025, Σ m, 1), which leaves more
    let cases: [(&[u64], f64); 7] = [
        (&[20; 10], 0.044_020_029_2),
        (&[200; 10], 0.023_311_664_7),
        (&[199, 105, 193, 260, 242, 158, 190, 239, 196, 204], 0.023_478_383_5),
        (&[5; 10], 0.081_636_893_1),
        (&[5; 3], 0.254_260_584_6),
        (&[1, 2, 3, 4], 0.308_497_107_8),
        (&[2; 201], 0.009_134_343_1),
    ];
    for (banks, expected) in cases {
        let of = |(cluster, n): (u32, &u64)| Cell { stratum: 0, cluster, tally: Tally::of_shares(*n, *n) };
        let cells: Vec<Cell> = (0..).zip(banks).map(of).collect();
        let got = others_of_banks(&Design::mean(&cells.iter().collect::<Vec<_>>()));
        assert!((got - expected).abs() < 1e-8, "{} banks: {got} instead of {expected}", banks.len());
    }
}

/// Banks of a few sizes with passes and fails that are no whole numbers, as weighted means have them.
fn shared_out(banks: &[(u32, f64)]) -> Vec<Bank> {
    let sizes = [7.25, 20.0, 20.0, 154.5];
    let of = |(size, share): &(u32, f64)| {
        let trials = sizes[*size as usize % sizes.len()];
        Bank { trials, passed: trials * (share * 8.0).round() / 8.0 }
    };
    banks.iter().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_remembered_of_banks_is_to_the_last_bit_what_would_be_worked_out_anew(
        banks in proptest::collection::vec((0_u32..4, 0.0_f64..=1.0), 3..14),
        etas in proptest::collection::vec(-6.0_f64..6.0, 1..24),
    ) {
        let banks = shared_out(&banks);
        let bits = |(value, rho): (f64, f64)| (value.to_bits(), rho.to_bits());
        let mut profile = Profile::new(&banks);
        for eta in etas.iter().chain(&etas) {
            prop_assert_eq!(bits(profile.best(*eta)), bits(Profile::new(&banks).look(*eta)));
            let (mean, rho) = ((expit(*eta), expit(-eta)), 0.02);
            let correlation = Correlation::new(rho, &mut profile.trials);
            let rise = |a: f64, x: f64| if x > 0.0 { ln_gamma(a + x) - ln_gamma(a) } else { 0.0 };
            let (a, b) = (correlation.scale * mean.0, correlation.scale * mean.1);
            let of = |bank: &Bank| rise(a, bank.passed) + rise(b, bank.trials - bank.passed);
            let sums: f64 = banks.iter().map(|bank| rise(correlation.scale, bank.trials)).sum();
            let plain = banks.iter().map(of).sum::<f64>() - sums;
            prop_assert_eq!(profile.at(mean, correlation).to_bits(), plain.to_bits());
        }
    }

    #[test]
    fn bounds_hold_the_mean_of_equal_banks_mirror_and_do_not_hang(
        shares in proptest::collection::vec((2_u32..300, 0.0_f64..=1.0), 3..14),
    ) {
        let pairs: Vec<(f64, f64)> =
            shares.iter().map(|(n, share)| (f64::from(*n), (f64::from(*n) * share).round())).collect();
        let (low, high) = ends(&pairs);
        prop_assert!(0.0 <= low && low <= high && high <= 1.0, "{low} to {high}");
        let turned: Vec<(f64, f64)> = pairs.iter().map(|(n, passed)| (*n, n - passed)).collect();
        let (other_low, other_high) = ends(&turned);
        prop_assert!((low + other_high - 1.0).abs() < 1e-3 && (high + other_low - 1.0).abs() < 1e-3);
    }
}

/// Questions and passed ones of each bank, and both bounds of the interval.
type Case = (&'static [(f64, f64)], f64, f64);

/// Banks, and the bounds that `scipy.special.gammaln`, `optimize.minimize_scalar` over ρ and `optimize.brentq` over the mean find.
const SCIPY: [Case; 5] = [
    (
        &[
            (199.0, 160.0),
            (105.0, 90.0),
            (193.0, 150.0),
            (260.0, 230.0),
            (242.0, 180.0),
            (158.0, 120.0),
            (190.0, 170.0),
            (239.0, 200.0),
            (196.0, 150.0),
            (204.0, 170.0),
        ],
        0.768181,
        0.853681,
    ),
    (
        &[
            (199.0, 199.0),
            (105.0, 104.0),
            (193.0, 193.0),
            (260.0, 258.0),
            (242.0, 220.0),
            (158.0, 158.0),
            (190.0, 189.0),
            (239.0, 239.0),
            (196.0, 196.0),
            (204.0, 203.0),
        ],
        0.917482,
        0.997029,
    ),
    (&[(20.0, 18.0), (20.0, 20.0), (20.0, 11.0)], 0.156673, 0.999236),
    (&[(40.5, 30.25), (33.5, 20.5), (60.0, 50.75), (20.0, 19.5), (44.0, 22.0)], 0.411050, 0.913361),
    (&[(100.0, 50.0), (100.0, 50.0), (100.0, 50.0), (100.0, 50.0), (100.0, 50.0), (100.0, 50.0)], 0.460008, 0.539992),
];
