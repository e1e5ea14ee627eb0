//! Values of scipy 1.x, numpy 2 and statsmodels 0.15 on data that both sides make by the same integer arithmetic:
//!
//! ```python
//! i = np.arange(400); cl = (i*i//7) % 10; cat = (i*5 + i//9) % 4; x = (i*7919 + 13*cl*cl) % 101
//! binary = (x < 55 + 4*cl).astype(float); graded = x / 100; N = np.array([841, 282, 321, 96.]); W = N / N.sum()
//! D = (cat[:, None] == np.arange(4)).astype(float)
//! ```

use super::*;
use crate::{bootstrap::wild_cluster_interval, cells::cells_of};

const MEAN: Sampling = Sampling { estimator: Estimator::Mean, better: Better::Higher, by_chance: false, census: true };
const WEIGHTED: Sampling =
    Sampling { estimator: Estimator::Weighted, better: Better::Higher, by_chance: true, census: false };

fn data(score: impl Fn(u64, u64) -> f64) -> (Vec<Cell>, Vec<Category>) {
    let rows = (0..400_u64).map(|i| {
        let (cluster, category) = (i * i / 7 % 10, (i * 5 + i / 9) % 4);
        (category as u32, cluster as u32, score((i * 7919 + 13 * cluster * cluster) % 101, cluster))
    });
    let cells = cells_of(rows, Scale::PLAIN);
    let category = |(number, population): (u32, u64)| Category {
        number,
        name: format!("c{number}"),
        population: Some(population),
        asked: Tally::merged(of_stratum(&cells, number)).n,
        lost: 0,
    };
    let categories = (0..).zip([841, 282, 321, 96]).map(category).collect();
    (cells, categories)
}

fn binary() -> (Vec<Cell>, Vec<Category>) {
    data(|x, cluster| f64::from(u8::from(x < 55 + 4 * cluster)))
}

fn graded() -> (Vec<Cell>, Vec<Category>) {
    data(|x, _| x as f64 / 100.0)
}

#[track_caller]
fn near(got: Option<&Interval>, low: f64, high: f64) {
    let got = got.expect("has an interval");
    assert!((got.low - low).abs() < 1e-9 && (got.high - high).abs() < 1e-9, "{got:?} instead of {low}..{high}");
}

/// The t interval, as far as which `ci95` reaches at least.
#[track_caller]
fn t_of(total: &Estimate) -> Option<&Interval> {
    let (t, ci95) = (total.t_ci95.as_ref()?, total.ci95.as_ref().expect("has an interval"));
    assert!(ci95.low <= t.low && t.high <= ci95.high, "{ci95:?} around {t:?}");
    Some(t)
}

#[test]
fn means_match_statsmodels() {
    // sm.OLS(s, np.ones(400)).fit(cov_type='cluster', cov_kwds={'groups': cl}, use_t=True).conf_int()
    // proportion_confint(s.sum(), 400, method='wilson'); st.t.interval(.95, 399, s.mean(), st.sem(s))
    let (cells, categories) = binary();
    let total = estimate(&cells, &categories, MEAN);
    assert!((total.value.expect("has a value") - 0.72).abs() < 1e-12);
    near(t_of(&total), 0.635_506_419_523_519_7, 0.804_493_580_476_481_3);
    near(total.naive_ci95.as_ref(), 0.674_066_013_889_955_9, 0.761_748_576_602_953_5);
    assert_eq!(total.benchmark_ci95, None);
    assert_eq!(
        total.benchmark_note.as_deref(),
        Some("full run: only judge and model noise is left, which needs repeats")
    );

    let (cells, categories) = graded();
    let total = estimate(&cells, &categories, MEAN);
    near(t_of(&total), 0.483_428_294_048_155_2, 0.511_121_705_951_845_4);
    near(total.naive_ci95.as_ref(), 0.468_527_109_548_172_84, 0.526_022_890_451_827_2);
}

#[test]
fn weighted_scores_match_statsmodels() {
    // r = sm.OLS(s, D).fit(cov_type='cluster', cov_kwds={'groups': cl, 'use_correction': False})
    // W @ r.params ± t.ppf(.975, 9) * sqrt(W @ r.cov_params() @ W * 10/9)
    // naive: t.ppf(.975, 396) * sqrt((W**2 * v / nh).sum()); benchmark: … * (1 - nh/N); v = s[cat == h].var(ddof=1)
    let (cells, categories) = binary();
    let total = estimate(&cells, &categories, WEIGHTED);
    assert!((total.value.expect("has a value") - 0.702_268_027_548_926_4).abs() < 1e-12);
    near(t_of(&total), 0.615_677_542_015_822_9, 0.788_858_513_082_029_8);
    near(total.naive_ci95.as_ref(), 0.648_390_917_335_448_7, 0.756_145_137_762_404);
    near(total.benchmark_ci95.as_ref(), 0.653_540_366_242_643_8, 0.750_995_688_855_209);

    let (cells, categories) = graded();
    let total = estimate(&cells, &categories, WEIGHTED);
    near(t_of(&total), 0.482_108_729_304_482_23, 0.530_120_065_081_615_7);
    near(total.naive_ci95.as_ref(), 0.472_673_092_273_124_1, 0.539_555_702_112_973_8);
    near(total.benchmark_ci95.as_ref(), 0.476_030_212_059_936_9, 0.536_198_582_326_161);
}

#[test]
fn categories_use_clusters_too() {
    // sm.OLS(s[cat == 2], np.ones(111)).fit(cov_type='cluster', cov_kwds={'groups': cl[cat == 2]}, use_t=True).conf_int()
    let (cells, categories) = binary();
    let score = metric_score("m", &cells, (&categories, &categories), MEAN, Scale::PLAIN);
    let category = &score.by_category[2];
    assert_eq!((category.n, category.clusters, category.min, category.max), (111, 10, Some(0.0), Some(1.0)));
    let alone = |cells: &[Cell]| estimate(cells, &categories[2..3], PLAIN_MEAN);
    near(t_of(&alone(&cells)), 0.622_931_199_841_411_8, 0.800_492_223_582_012_4);
    assert_eq!(category.ci95, alone(&cells).ci95);
    assert_eq!(score.pass_rate, score.micro, "for shares they are the same");
    assert_eq!(score.weighted, score.micro, "on a full run");
    let (cells, categories) = graded();
    let category = &metric_score("m", &cells, (&categories, &categories), MEAN, Scale::PLAIN).by_category[2];
    near(t_of(&alone(&cells)), 0.425_853_903_076_617_4, 0.566_578_529_355_815_1);
    assert_eq!(category.ci95, alone(&cells).ci95);
}

#[test]
fn the_bootstrap_matches_refitting_every_sign_vector() {
    // for each of the 1,024 sign vectors: y = fitted + sign[cl] * residual, refit with D (or ones), t* = |e - e0| / se;
    // e0 ± sorted(t*)[ceil(.95 * 1024) - 1] * se0
    let mean = |(cells, categories): (Vec<Cell>, Vec<Category>), sampling| {
        wild_cluster_interval(&estimate(&cells, &categories, sampling).design.expect("has scores"), 1)
    };
    near(mean(binary(), MEAN).as_ref().ok(), 0.625_186_270_180_534_1, 0.814_813_729_819_466_1);
    near(mean(binary(), WEIGHTED).as_ref().ok(), 0.615_190_032_368_314_2, 0.789_346_022_729_538_4);
    near(mean(graded(), MEAN).as_ref().ok(), 0.483_984_386_094_235_1, 0.510_565_613_905_764_9);
    near(mean(graded(), WEIGHTED).as_ref().ok(), 0.482_759_528_040_149_43, 0.529_469_266_345_948_3);
}

#[test]
fn random_signs_are_seeded_and_near_the_t_interval() {
    let cells = cells_of(
        (0..600_u64).map(|i| (0, (i % 30) as u32, f64::from(u8::from(i * 7919 % 101 < 40 + i % 30)))),
        Scale::PLAIN,
    );
    let categories = [Category { number: 0, name: "c".into(), population: Some(600), asked: 600, lost: 0 }];
    let total = estimate(&cells, &categories, MEAN);
    let design = total.design.expect("has scores");
    let one = wild_cluster_interval(&design, 7).expect("is made");
    assert_eq!(one, wild_cluster_interval(&design, 7).expect("is made"));
    assert_eq!(one.method, "wild cluster bootstrap-t, 1999 draws");
    let t = total.ci95.expect("is made");
    assert!((one.low - t.low).abs() < 0.02 && (one.high - t.high).abs() < 0.02, "{one:?} and {t:?}");
}

fn one_category(scores: &[(u32, f64)]) -> Estimate {
    let cells = cells_of(scores.iter().map(|(cluster, score)| (0, *cluster, *score)), Scale::PLAIN);
    let n = scores.len() as u64;
    estimate(&cells, &[Category { number: 0, name: "c".into(), population: Some(n), asked: n, lost: 0 }], MEAN)
}

#[test]
fn two_banks_make_no_interval() {
    let total = one_category(&[(0, 1.0), (0, 0.0), (1, 1.0)]);
    assert_eq!(total.ci95, None);
    assert_eq!(total.ci95_note.as_deref(), Some("needs at least 3 banks, has 2"));
    assert!(total.naive_ci95.is_some());
}

#[test]
fn one_question_per_bank_equals_the_naive_interval() {
    let total = one_category(&[(0, 1.0), (1, 0.0), (2, 1.0), (3, 1.0)]);
    assert_eq!(total.ci95, total.naive_ci95);
    assert_eq!(total.ci95.expect("is made").method, "Wilson");
    assert_eq!(total.ci95_note.as_deref(), Some("only 4 banks: read with care"));
}

#[test]
fn intervals_are_clipped() {
    let total = one_category(&[(0, 1.0), (0, 1.0), (1, 1.0), (1, 1.0), (2, 0.0), (2, 1.0)]);
    let interval = total.ci95.expect("is made");
    assert_eq!(interval.high, 1.0);
    assert!(interval.low >= 0.0);
}

#[test]
fn nothing_scored_is_null_and_never_zero() {
    let total = one_category(&[]);
    assert_eq!((total.value, total.ci95, total.naive_ci95, total.benchmark_ci95), (None, None, None, None));
    let score = metric_score("m", &[], (&[], &[]), MEAN, Scale::PLAIN);
    assert_eq!((score.micro, score.macro_, score.weighted, score.pass_rate), (None, None, None, None));
}

#[test]
fn strict_counts_the_missing_as_zero() {
    let cells = cells_of([(0, 0, 1.0), (0, 1, 1.0), (1, 0, 0.5)].into_iter(), Scale::PLAIN);
    let category = |number, population, (asked, lost)| Category {
        number,
        name: format!("c{number}"),
        population: Some(population),
        asked,
        lost,
    };
    let categories = [category(0, 90, (4, 2)), category(1, 10, (1, 0))];
    assert_eq!(estimate(&cells, &categories, MEAN).strict, Some(0.5));
    let strict = estimate(&cells, &categories, WEIGHTED).strict.expect("is made");
    assert!((strict - (0.9 * 0.5 + 0.1 * 0.5)).abs() < 1e-12);
    // a question that ended and has no score by this metric is none of its questions, nor is a category of such
    let categories = [category(0, 90, (9, 2)), category(1, 10, (7, 0)), category(2, 50, (3, 0))];
    assert_eq!(estimate(&cells, &categories, MEAN).strict, Some(0.5));
    assert_eq!(estimate(&cells, &categories, WEIGHTED).strict.map(|strict| (strict * 1e9).round()), Some(0.5e9));
}

#[test]
fn a_category_with_a_single_score_varies_as_the_others_do() {
    let scores = [(0, 0, 1.0), (0, 1, 0.0), (0, 2, 1.0), (0, 3, 0.0), (1, 0, 1.0)];
    let cells = cells_of(scores.into_iter(), Scale::PLAIN);
    let category = |number, population, asked| Category {
        number,
        name: format!("c{number}"),
        population: Some(population),
        asked,
        lost: 0,
    };
    let total = estimate(&cells, &[category(0, 90, 4), category(1, 10, 1)], WEIGHTED);
    let (first, second): (f64, f64) = (0.81 / 3.0 / 4.0 * (1.0 - 4.0 / 90.0), 0.01 / 3.0 * (1.0 - 1.0 / 10.0));
    let half = t_quantile(3.0) * (first + second).sqrt();
    near(total.benchmark_ci95.as_ref(), (0.55 - half).max(0.0), (0.55 + half).min(1.0));
    let lonely = estimate(&cells, &[category(1, 10, 1)], WEIGHTED);
    assert_eq!(lonely.benchmark_note.as_deref(), Some("every category has a single score: how they vary is not known"));
}

#[test]
fn a_category_without_scores_is_left_out_of_the_weights() {
    let cells = cells_of([(0, 0, 1.0), (0, 1, 0.0)].into_iter(), Scale::PLAIN);
    let category = |number, population, lost| Category {
        number,
        name: format!("c{number}"),
        population: Some(population),
        asked: 2,
        lost,
    };
    let total = estimate(&cells, &[category(0, 90, 0), category(1, 10, 2)], WEIGHTED);
    assert_eq!(total.value, Some(0.5));
    let strict = total.strict.expect("is made");
    assert!((strict - 0.45).abs() < 1e-12, "but it counts as 0 in the strict score: {strict}");
}

#[test]
fn a_category_weighs_as_many_questions_as_the_metric_applies_to() {
    // of c0 all four that ended with scores have the figure, of c1 two of ten: 90 and 20 questions of the dataset have it
    let scores = [(0, 0, 1.0), (0, 1, 1.0), (0, 2, 1.0), (0, 3, 0.0), (1, 0, 0.0), (1, 1, 1.0)];
    let cells = cells_of(scores.into_iter(), Scale::PLAIN);
    let category = |number, population, scored: u64| Category {
        number,
        name: format!("c{number}"),
        population: Some(population),
        asked: scored + 3,
        lost: 3,
    };
    let total = estimate(&cells, &[category(0, 90, 4), category(1, 100, 10)], WEIGHTED);
    let expected = (90.0 * 0.75 + 20.0 * 0.5) / 110.0;
    assert!((total.value.expect("is made") - expected).abs() < 1e-12, "{total:?}");
    assert_eq!((total.n, total.without_figure), (6, 8));
    // of the 20 questions of the dataset two were seen
    let (weights, spreads) = ([90.0 / 110.0, 20.0 / 110.0_f64], [0.25, 0.5]);
    let variance = weights[0].powi(2) * spreads[0] / 4.0 * (1.0 - 4.0 / 90.0)
        + weights[1].powi(2) * spreads[1] / 2.0 * (1.0 - 2.0 / 20.0);
    let half = t_quantile(4.0) * f64::sqrt(variance);
    near(total.benchmark_ci95.as_ref(), (expected - half).max(0.0), (expected + half).min(1.0));
    // and the strict score is of the same questions: with nothing lost it is the score
    let whole = |number, population, asked| Category { asked, lost: 0, ..category(number, population, asked) };
    let whole = estimate(&cells, &[whole(0, 90, 4), whole(1, 100, 10)], WEIGHTED);
    assert!((whole.strict.expect("is made") - whole.value.expect("is made")).abs() < 1e-12, "{whole:?}");
    // three of each were lost: 7 of 7 and 5 of 13 stand for 90 and 100 · 5/13
    let (first, second) = (90.0, 100.0 * 5.0 / 13.0);
    let strict = (first * 3.0 / 7.0 + second * 1.0 / 5.0) / (first + second);
    assert!((total.strict.expect("is made") - strict).abs() < 1e-12, "{total:?}");
    // where it applies to all that have scores, nothing changes
    let all = estimate(&cells, &[category(0, 90, 4), category(1, 100, 2)], WEIGHTED);
    let expected = (90.0 * 0.75 + 100.0 * 0.5) / 190.0;
    assert!((all.value.expect("is made") - expected).abs() < 1e-12 && all.without_figure == 0, "{all:?}");
}

#[test]
fn equal_scores_make_no_interval_without_width() {
    let (cells, categories) = data(|_, _| 0.5);
    for sampling in [MEAN, WEIGHTED] {
        let total = estimate(&cells, &categories, sampling);
        assert_eq!(total.value.map(f64::to_bits), Some(0.5_f64.to_bits()));
        assert_eq!((total.ci95_note, total.t_ci95), (None, None), "the banks do not differ");
        let of_banks = total.ci95.expect("others may not be equal");
        let naive = total.naive_ci95.expect("nor are other questions");
        assert!((of_banks.low + of_banks.high - 1.0).abs() < 1e-9, "they may lie on both sides: {of_banks:?}");
        assert!(
            of_banks.low < naive.low && naive.low < 0.5 && naive.high < of_banks.high,
            "{of_banks:?} around {naive:?}"
        );
    }
    // t(396 df) · √Σ w² (1 − 0.025^(1/n))² / (2 z)² (1 − n / N)
    let total = estimate(&cells, &categories, WEIGHTED);
    let benchmark = total.benchmark_ci95.expect("is made");
    let all: f64 = 1_540.0;
    let variance: f64 = categories
        .iter()
        .map(|c| {
            let (n, of_dataset) = (c.asked as f64, c.population.unwrap_or(0) as f64);
            let least = (1.0 - 0.025_f64.powf(1.0 / n)) / (2.0 * 1.959_963_984_540_054);
            (of_dataset / all * least).powi(2) * (1.0 - n / of_dataset)
        })
        .sum();
    let half = t_quantile(396.0) * variance.sqrt();
    near(Some(&benchmark), 0.5 - half, 0.5 + half);
}

#[test]
fn equal_verdicts_leave_room_for_other_banks() {
    for verdict in [0.0, 1.0] {
        let (cells, categories) = data(|_, _| verdict);
        for sampling in [MEAN, WEIGHTED] {
            let total = estimate(&cells, &categories, sampling);
            let (interval, naive) = (total.ci95.expect("has an interval"), total.naive_ci95.expect("has one"));
            assert!(interval.low <= verdict && verdict <= interval.high && interval.high - interval.low < 0.2);
            // proportion_confint(400, 400, method='wilson') is (0.9904877, 1): new banks may differ more than new questions
            assert!((naive.high - naive.low - 0.009_512_294_334_296_7).abs() < 1e-9);
            assert!(interval.high - interval.low > naive.high - naive.low);
            assert_eq!((total.ci95_note, total.benchmark_ci95.is_some()), (None, sampling == WEIGHTED));
        }
    }
}
