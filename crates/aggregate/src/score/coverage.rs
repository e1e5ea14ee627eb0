//! Do 95 % intervals cover the truth in 95 % of the cases? Simulated: ten conversations of about LoCoMo's sizes, grades 0
//! and 1, and an effect of the conversation that gives an intra-class correlation of 0.02 to 0.1.

use super::*;
use crate::cells::cells_of;

/// Questions per category of each conversation: 1,986 in all.
const SIZES: [u64; 10] = [199, 105, 193, 260, 242, 158, 190, 239, 196, 204];
/// Categories of the whole dataset: share of the questions, and the chance of a right answer.
const CATEGORIES: [(f64, f64); 5] = [(0.142, 0.45), (0.162, 0.5), (0.048, 0.4), (0.423, 0.6), (0.225, 0.55)];
const POPULATION: [u64; 5] = [282, 321, 96, 841, 446];
const DRAWS: u32 = 4_000;

/// Fast in debug builds; quality is enough for coin tosses (Steele et al. 2014, SplitMix64).
struct Coins(u64);

impl Coins {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Successes of `n` tosses, each with probability `p`.
    fn successes(&mut self, n: u64, p: f64) -> u64 {
        let limit = (p * 4_294_967_296.0) as u64;
        let mut successes = 0;
        for _ in 0..n.div_ceil(2) {
            let word = self.next();
            successes += u64::from(word >> 32 < limit);
            successes += u64::from(word & 0xFFFF_FFFF < limit);
        }
        // an odd n tosses once too often: take that one back at random
        if n % 2 == 1 && self.fraction() < successes as f64 / (n + 1) as f64 { successes - 1 } else { successes }
    }
}

/// Shares of the draws in which (clustered, naive) intervals cover the truth.
fn coverage(icc: f64, sampling: Sampling, per_cell: impl Fn(u64, usize) -> u64) -> (f64, f64) {
    let mut coins = Coins(icc.to_bits());
    let asked: Vec<Vec<u64>> =
        SIZES.iter().map(|size| (0..CATEGORIES.len()).map(|h| per_cell(*size, h)).collect()).collect();
    let categories: Vec<Category> = (0..CATEGORIES.len())
        .map(|h| Category {
            number: h as u16,
            name: h.to_string(),
            population: Some(POPULATION[h]),
            asked: asked.iter().map(|conversation| conversation[h]).sum(),
        })
        .collect();
    // a mean tells of questions like those that were asked, a weighted score of the whole dataset
    let share = |c: &Category| match sampling.estimator {
        Estimator::Mean => c.asked,
        Estimator::Weighted => POPULATION[usize::from(c.number)],
    };
    let total: u64 = categories.iter().map(share).sum();
    let weight = |c: &Category| share(c) as f64 / total as f64;
    let truth: f64 = categories.iter().map(|c| weight(c) * CATEGORIES[usize::from(c.number)].1).sum();
    let (mut clustered, mut naive) = (0, 0);
    for _ in 0..DRAWS {
        let mut cells = Vec::with_capacity(SIZES.len() * CATEGORIES.len());
        for (cluster, conversation) in (0_u32..).zip(&asked) {
            // a uniform effect with standard deviation sqrt(icc · p · q), the same sign for all categories
            let effect = (coins.fraction() - 0.5) * (12.0_f64 * icc * 0.25).sqrt();
            for ((category, (_, p)), n) in (0_u16..).zip(CATEGORIES).zip(conversation) {
                if *n > 0 {
                    let tally = Tally::of_shares(coins.successes(*n, p + effect), *n);
                    cells.push(Cell { category, cluster, tally });
                }
            }
        }
        cells.sort_unstable_by_key(|cell| (cell.category, cell.cluster));
        let total = estimate(&cells, &categories, sampling);
        let covers = |interval: Option<Interval>| interval.is_some_and(|i| i.low <= truth && truth <= i.high);
        clustered += u32::from(covers(total.ci95));
        naive += u32::from(covers(total.naive_ci95));
    }
    (f64::from(clustered) / f64::from(DRAWS), f64::from(naive) / f64::from(DRAWS))
}

#[track_caller]
fn check(what: &str, (clustered, naive): (f64, f64), naive_below: f64) {
    eprintln!("{what}: 95 % intervals cover {clustered} (clustered), {naive} (naive)");
    assert!((0.93..=0.97).contains(&clustered), "{what}: clustered intervals cover {clustered}");
    assert!(naive < naive_below, "{what}: naive intervals cover {naive}");
}

#[test]
fn full_runs_cover_new_conversations() {
    let full = Sampling { estimator: Estimator::Mean, by_chance: false, census: true };
    let cell = |size: u64, h: usize| (size as f64 * CATEGORIES[h].0).round() as u64;
    check("ICC 0.02", coverage(0.02, full, cell), 0.75);
    check("ICC 0.1", coverage(0.1, full, cell), 0.5);
}

#[test]
fn fair_samples_cover_new_conversations() {
    let fair = Sampling { estimator: Estimator::Weighted, by_chance: true, census: false };
    check("ICC 0.02", coverage(0.02, fair, |_, _| 4), 0.92);
    check("ICC 0.1", coverage(0.1, fair, |_, _| 4), 0.85);
}

#[test]
fn plain_means_of_fair_samples_cover_new_conversations() {
    let mean = Sampling { estimator: Estimator::Mean, by_chance: true, census: false };
    check("ICC 0.02", coverage(0.02, mean, |_, _| 4), 0.92);
    check("ICC 0.1", coverage(0.1, mean, |_, _| 4), 0.8);
}

#[test]
fn single_grades_and_counted_shares_are_the_same_tally() {
    let from_scores = cells_of([(0, 0, 1.0), (0, 0, 0.0), (0, 0, 1.0)].into_iter(), 0.5);
    assert_eq!(from_scores[0].tally, Tally::of_shares(2, 3));
}
