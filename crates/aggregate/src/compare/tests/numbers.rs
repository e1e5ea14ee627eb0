//! Differences held against other programs, and against the truth.
//!
//! Values of scipy 1.17, numpy 2 and statsmodels 0.15 on data that both sides make by the same integer arithmetic:
//!
//! ```python
//! i = np.arange(400); cl = (i*i//7) % 10; cat = (i*5 + i//9) % 4
//! a = ((i*7919 + 13*cl*cl) % 101 < 55 + 4*cl).astype(float); b = ((i*104729 + 17*cl) % 97 < 60 + 3*cl).astype(float); d = b - a
//! ```

use super::*;
use crate::{
    compare::difference::{Errors, paired_difference, word},
    kinds::Kind,
};

const NAMES: [&str; 4] = ["c0", "c1", "c2", "c3"];

fn pairs() -> Vec<Pair> {
    let of = |i: u64| {
        let (cluster, category) = (i * i / 7 % 10, (i * 5 + i / 9) % 4);
        let a = (i * 7_919 + 13 * cluster * cluster) % 101 < 55 + 4 * cluster;
        let b = (i * 104_729 + 17 * cluster) % 97 < 60 + 3 * cluster;
        let score = |right: bool| f64::from(u8::from(right));
        Pair { a: score(a), b: score(b), cluster: cluster as u32, kind: category as u32 }
    };
    (0..400).map(of).collect()
}

fn strata() -> Strata {
    let populations: BTreeMap<String, u64> = NAMES.iter().map(|n| (*n).to_owned()).zip([841, 282, 321, 96]).collect();
    let kinds = NAMES.map(|name| Kind { category: name.to_owned(), facets: BTreeMap::new() });
    Strata::new(&[], &populations, [], &kinds)
}

fn difference(pairs: &[Pair], estimator: Estimator) -> PairedDifference {
    let strata = strata();
    paired_difference(&Means { estimator, better: Better::Higher, strata: &strata }, pairs, 0.02)
}

fn errors(pairs: &[Pair], estimator: Estimator) -> Errors {
    let strata = strata();
    let means = Means { estimator, better: Better::Higher, strata: &strata };
    Errors::from_design(&means.design(pairs, Pair::difference).expect("has pairs"))
}

#[track_caller]
fn near_interval(got: Option<&Interval>, low: f64, high: f64) {
    near(got.map(|i| i.low), low);
    near(got.map(|i| i.high), high);
}

#[test]
fn paired_differences_match_statsmodels() {
    // sm.OLS(d, np.ones(400)).fit(cov_type='cluster', cov_kwds={'groups': cl}, use_t=True); conf_int(), pvalues
    // mde: (st.t.ppf(.975, 9) + st.t.ppf(.8, 9)) * bse; naive: st.t.interval(.95, 399, d.mean(), st.sem(d))
    let paired = difference(&pairs(), Estimator::Mean);
    near(paired.difference, 0.015);
    let (by_banks, d) = (errors(&pairs(), Estimator::Mean).clustered, 0.015);
    near_interval(Some(&by_banks.interval(d)), -0.020_775_022_986_185_67, 0.050_775_022_986_185_69);
    near(Some(by_banks.two_sided(d)), 0.367_649_790_130_820_66);
    near(Some(by_banks.detectable()), 0.049_745_667_425_072_686);
    // the banks happen to agree: questions taken as independent decide. 2 * st.t.sf(d.mean() / st.sem(d), 399)
    assert_eq!(paired.ci95, paired.naive_ci95);
    near(paired.p_value, 0.644_007_192_462_955_3);
    near(paired.mde, 0.091_093_750_226_416_58);
    near_interval(paired.naive_ci95.as_ref(), -0.048_766_016_908_069_49, 0.078_766_016_908_069_49);
    assert_eq!((paired.n, paired.clusters, paired.verdict), (400, 10, Word::Inconclusive));
    near(paired.b.zip(paired.a).map(|(b, a)| b - a), 0.015);
}

#[test]
fn categories_and_their_correction_match_statsmodels() {
    // the same regression within each category; multipletests(p, method='holm')[1]
    let expected = [
        (0.108_108_108_108_108_11, 0.002_340_113_278_767_042, 0.213_876_102_937_449_2, 0.046_069_757_409_835_044),
        (0.011_235_955_056_179_775, -0.157_518_405_338_997_89, 0.179_990_315_451_357_44, 0.883_598_525_039_339_6),
        (-0.009_009_009_009_009_009, -0.127_578_407_017_001_96, 0.109_560_388_998_983_9, 0.867_334_041_827_582_3),
        (-0.067_415_730_337_078_65, -0.226_747_678_782_358_69, 0.091_916_218_108_201_43, 0.363_493_479_866_197_46),
    ];
    let mut p_values = Vec::new();
    for (category, (mean, low, high, p)) in (0_u32..).zip(expected) {
        let of: Vec<Pair> = pairs().into_iter().filter(|pair| pair.kind == category).collect();
        let paired = difference(&of, Estimator::Mean);
        near(paired.difference, mean);
        let by_banks = errors(&of, Estimator::Mean).clustered;
        near_interval(Some(&by_banks.interval(mean)), low, high);
        near(Some(by_banks.two_sided(mean)), p);
        p_values.push(Some(by_banks.two_sided(mean)));
        let decides = paired.ci95.expect("has an interval");
        assert!(decides.low <= low + 1e-9 && high - 1e-9 <= decides.high, "the wider one decides: {decides:?}");
    }
    let corrected = holm::adjusted(&p_values);
    near(corrected[0], 0.184_279_029_639_340_17);
    near(corrected[1], 1.0);
}

#[test]
fn weighted_differences_match_statsmodels() {
    // r = sm.OLS(d, D).fit(cov_type='cluster', cov_kwds={'groups': cl, 'use_correction': False}); W @ r.params
    // ± t.ppf(.975, 9) * sqrt(W @ r.cov_params() @ W * 10/9)
    let paired = difference(&pairs(), Estimator::Weighted);
    let d = 0.055_015_361_195_136_49;
    near(paired.difference, d);
    let by_banks = errors(&pairs(), Estimator::Weighted).clustered;
    near_interval(Some(&by_banks.interval(d)), -0.000_574_001_184_718_737_9, 0.110_604_723_574_991_71);
    near(Some(by_banks.two_sided(d)), 0.051_945_072_213_152_36);
    // naive is of the same, weighted difference: t.ppf(.975, 396) * sqrt((W**2 * d[cat == h].var(ddof=1) / nh).sum())
    near_interval(paired.naive_ci95.as_ref(), -0.018_642_176_468_020_09, 0.128_672_898_858_293_03);
    assert_eq!(paired.ci95, paired.naive_ci95, "which is the wider one here");
}

#[test]
fn the_paired_bootstrap_matches_refitting_every_sign_vector() {
    // numpy: for each of the 1,024 sign vectors y = fit + sign[cl] * (d - fit), refitted by means (or category means), t* = |e - e0| / se;
    // e0 ± np.quantile(t*, .95, method='inverted_cdf') * se0
    let of = |estimator| {
        let strata = strata();
        let means = Means { estimator, better: Better::Higher, strata: &strata };
        difference::bootstrap(&means, &pairs(), 1).0
    };
    near_interval(of(Estimator::Mean).as_ref(), -0.020_104_439_213_264_207, 0.050_104_439_213_264_206);
    near_interval(of(Estimator::Weighted).as_ref(), 0.002_771_305_213_693_953, 0.107_259_417_176_579_01);
}

#[test]
fn words_follow_the_bounds_of_the_interval() {
    let of = |low: f64, high: f64| word(&Interval { low, high, method: String::new() }, 0.02, Better::Higher);
    assert_eq!(of(-0.01, 0.019), Word::NoChange);
    assert_eq!(of(0.001, 0.015), Word::NoChange, "a sure change that does not matter is none");
    assert_eq!(of(0.001, 0.03), Word::Better);
    assert_eq!(of(-0.05, -0.001), Word::Worse);
    assert_eq!(of(-0.05, 0.01), Word::Inconclusive);
}

#[test]
fn no_interval_below_three_banks_and_near_certainty_where_many_pairs_agree() {
    let two: Vec<Pair> = pairs().into_iter().filter(|pair| pair.cluster < 2).collect();
    let paired = difference(&two, Estimator::Mean);
    assert_eq!((paired.ci95, paired.p_value, paired.verdict), (None, None, Word::Inconclusive));
    let equal: Vec<Pair> = pairs().into_iter().map(|pair| Pair { b: pair.a, ..pair }).collect();
    let paired = difference(&equal, Estimator::Mean);
    assert_eq!((paired.difference, paired.p_value, paired.verdict), (Some(0.0), Some(1.0), Word::NoChange));
    let worse: Vec<Pair> = pairs().into_iter().map(|pair| Pair { a: 1.0, b: 0.0, ..pair }).collect();
    let paired = difference(&worse, Estimator::Mean);
    assert_eq!(paired.verdict, Word::Worse);
    assert!(paired.p_value.is_some_and(|p| p < 1e-9), "{:?}", paired.p_value);
}

#[test]
fn rounding_is_no_difference() {
    let pairs: Vec<Pair> = pairs().into_iter().map(|pair| Pair { a: 0.1 + 0.2, b: 0.3, ..pair }).collect();
    let paired = difference(&pairs, Estimator::Weighted);
    assert_eq!((paired.difference, paired.p_value, paired.verdict), (Some(0.0), Some(1.0), Word::NoChange));
}

/// Do the paired intervals cover the truth? Two runs over ten conversations: shared difficulty, and an effect of the second
/// run that differs from conversation to conversation.
#[test]
fn paired_intervals_cover_the_truth_and_naive_ones_do_not() {
    let mut state = 0x5EED_u64;
    let mut fraction = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let sizes = [199, 105, 193, 260, 242, 158, 190, 239, 196, 204];
    let (truth, draws) = (0.03, 4_000);
    let (mut clustered, mut naive) = (0, 0);
    for _ in 0..draws {
        let mut pairs = Vec::with_capacity(2_000);
        for (cluster, size) in (0_u32..).zip(sizes) {
            let (level, effect) = (0.5 + 0.3 * (fraction() - 0.5), truth + 0.16 * (fraction() - 0.5));
            for _ in 0..size / 4 {
                // the same draw for both: answers to one question are alike
                let draw = fraction();
                let grade = |p: f64| f64::from(u8::from(draw < p));
                pairs.push(Pair { a: grade(level), b: grade(level + effect), cluster, kind: 0 });
            }
        }
        let paired = difference(&pairs, Estimator::Mean);
        let covers = |interval: Option<Interval>| interval.is_some_and(|i| i.low <= truth && truth <= i.high);
        clustered += u32::from(covers(paired.ci95));
        naive += u32::from(covers(paired.naive_ci95));
    }
    let share = |covered: u32| f64::from(covered) / f64::from(draws);
    let (clustered, naive) = (share(clustered), share(naive));
    eprintln!("paired 95 % intervals cover {clustered} (clustered), {naive} (naive)");
    assert!((0.93..=0.97).contains(&clustered), "clustered intervals cover {clustered}");
    assert!(naive < 0.9, "naive intervals cover {naive}");
}
