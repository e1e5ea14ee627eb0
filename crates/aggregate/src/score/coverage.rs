//! Do 95 % intervals cover the truth in 95 % of the cases? Simulated: ten conversations of about LoCoMo's sizes, grades 0
//! and 1, and an effect of the conversation that gives an intra-class correlation of 0.02 to 0.1.

use std::collections::BTreeMap;

use bench_plan::{SampleRequest, sample};
use bench_proto::{
    dataset::{BankOutline, QuestionOutline},
    profile::PresetSizes,
};

use super::*;
use crate::{
    cells::cells_of,
    draws::{Chance, LOCOMO_BANKS as SIZES},
    kinds::Kind,
    strata::Strata,
};

/// Categories of the whole dataset: share of the questions, and the chance of a right answer.
const CATEGORIES: [(f64, f64); 5] = [(0.142, 0.45), (0.162, 0.5), (0.048, 0.4), (0.423, 0.6), (0.225, 0.55)];
const POPULATION: [u64; 5] = [282, 321, 96, 841, 446];
const DRAWS: u32 = 4_000;

/// Shares of the draws in which (clustered, naive) intervals cover the truth.
fn coverage(icc: f64, sampling: Sampling, per_cell: impl Fn(u64, usize) -> u64) -> (f64, f64) {
    let mut coins = Chance::new(icc.to_bits());
    let asked: Vec<Vec<u64>> =
        SIZES.iter().map(|size| (0..CATEGORIES.len()).map(|h| per_cell(*size, h)).collect()).collect();
    let categories: Vec<Category> = (0..CATEGORIES.len())
        .map(|h| Category {
            number: h as u32,
            name: h.to_string(),
            population: Some(POPULATION[h]),
            asked: asked.iter().map(|conversation| conversation[h]).sum(),
            lost: 0,
        })
        .collect();
    // a mean tells of questions like those that were asked, a weighted score of the whole dataset
    let share = |c: &Category| match sampling.estimator {
        Estimator::Mean => c.asked,
        Estimator::Weighted => POPULATION[c.number as usize],
    };
    let total: u64 = categories.iter().map(share).sum();
    let weight = |c: &Category| share(c) as f64 / total as f64;
    let truth: f64 = categories.iter().map(|c| weight(c) * CATEGORIES[c.number as usize].1).sum();
    let (mut clustered, mut naive) = (0, 0);
    for _ in 0..DRAWS {
        let mut cells = Vec::with_capacity(SIZES.len() * CATEGORIES.len());
        for (cluster, conversation) in (0_u32..).zip(&asked) {
            // a uniform effect with standard deviation sqrt(icc · p · q), the same sign for all categories
            let effect = (coins.fraction() - 0.5) * (12.0_f64 * icc * 0.25).sqrt();
            for ((category, (_, p)), n) in (0_u32..).zip(CATEGORIES).zip(conversation) {
                if *n > 0 {
                    let tally = Tally::of_shares(coins.successes(*n, p + effect), *n);
                    cells.push(Cell { stratum: category, cluster, tally });
                }
            }
        }
        cells.sort_unstable_by_key(|cell| (cell.stratum, cell.cluster));
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
    assert!((0.93..=0.985).contains(&clustered), "{what}: clustered intervals cover {clustered}");
    assert!(naive < naive_below, "{what}: naive intervals cover {naive}");
}

#[test]
fn full_runs_cover_new_conversations() {
    let full = Sampling { estimator: Estimator::Mean, better: Better::Higher, by_chance: false, census: true };
    let cell = |size: u64, h: usize| (size as f64 * CATEGORIES[h].0).round() as u64;
    check("ICC 0.02", coverage(0.02, full, cell), 0.75);
    check("ICC 0.1", coverage(0.1, full, cell), 0.5);
}

#[test]
fn fair_samples_cover_new_conversations() {
    let fair = Sampling { estimator: Estimator::Weighted, better: Better::Higher, by_chance: true, census: false };
    check("ICC 0.02", coverage(0.02, fair, |_, _| 4), 0.92);
    check("ICC 0.1", coverage(0.1, fair, |_, _| 4), 0.85);
}

#[test]
fn plain_means_of_fair_samples_cover_new_conversations() {
    let mean = Sampling { estimator: Estimator::Mean, better: Better::Higher, by_chance: true, census: false };
    check("ICC 0.02", coverage(0.02, mean, |_, _| 4), 0.92);
    check("ICC 0.1", coverage(0.1, mean, |_, _| 4), 0.8);
}

/// Strata of a dataset of LongMemEval's shape, a bank for each of its 500 questions: category, whether they have no answer, how
/// many, and the chance of a right answer, which differs most where there is none.
const HAYSTACKS: [(&str, &str, usize, f64); 10] = [
    ("knowledge-update", "no", 72, 0.7),
    ("knowledge-update", "yes", 6, 0.2),
    ("multi-session", "no", 121, 0.45),
    ("multi-session", "yes", 12, 0.95),
    ("single-session-assistant", "no", 56, 0.9),
    ("single-session-preference", "no", 30, 0.3),
    ("single-session-user", "no", 64, 0.85),
    ("single-session-user", "yes", 6, 0.1),
    ("temporal-reasoning", "no", 127, 0.4),
    ("temporal-reasoning", "yes", 6, 0.95),
];

/// The same of PersonaMem's shape, whose smallest category gives a single question to a small sample.
const PERSONAS: [(&str, &str, usize, f64); 7] = [
    ("a", "no", 57, 0.3),
    ("b", "no", 55, 0.8),
    ("c", "no", 129, 0.6),
    ("d", "no", 17, 0.9),
    ("e", "no", 99, 0.5),
    ("f", "no", 93, 0.2),
    ("g", "no", 139, 0.65),
];

/// What many samples of so many questions say: mean of the estimates minus what the whole dataset says, and the shares of the
/// intervals that cover what they are about (this benchmark, conversations like these).
fn of_strata(dataset: &[(&str, &str, usize, f64)], total: u64) -> (f64, f64, f64) {
    let strata = dataset.iter().flat_map(|stratum| (0..stratum.2).map(move |_| stratum));
    let facets = |value: &str| BTreeMap::from([("abstention".to_owned(), value.to_owned())]);
    let outlines: Vec<BankOutline> = strata
        .clone()
        .enumerate()
        .map(|(number, (category, value, ..))| BankOutline {
            bank_id: number.to_string(),
            questions: vec![QuestionOutline {
                question_id: format!("q{number}"),
                category: (*category).to_owned(),
                facets: facets(value),
                ..QuestionOutline::default()
            }],
            ..BankOutline::default()
        })
        .collect();
    let chances: Vec<f64> = strata.clone().map(|(.., p)| *p).collect();
    let kinds = dataset
        .iter()
        .map(|(category, value, ..)| Kind { category: (*category).to_owned(), facets: facets(value) })
        .collect::<Vec<_>>();
    let kind_of: Vec<u32> = (0..).zip(dataset).flat_map(|(kind, (.., n, _))| vec![kind; *n]).collect();
    let mut coins = Chance::new(total);
    let fixed: Vec<f64> = chances.iter().map(|p| f64::from(u8::from(coins.fraction() < *p))).collect();
    let mean = |figures: &[f64]| figures.iter().sum::<f64>() / figures.len() as f64;
    let (of_fixed, of_chances) = (mean(&fixed), mean(&chances));
    let weighted = Sampling { estimator: Estimator::Weighted, better: Better::Higher, by_chance: true, census: false };
    let (mut error, mut this, mut like_these) = (0.0, 0, 0);
    for seed in 0..SAMPLES {
        let sizes = PresetSizes { strata: vec!["abstention".to_owned()], ..PresetSizes::default() };
        let seed = Some(seed.to_string());
        let request = SampleRequest { sample_total: Some(total), sizes, seed, ..SampleRequest::default() };
        let taken = sample(&outlines, request).expect("a valid request");
        let strata = Strata::new(&taken.spec.strata, &BTreeMap::new(), [], &kinds);
        let of = |score: &mut dyn FnMut(usize) -> f64| {
            let scored = taken.banks.iter().map(|bank| {
                let number = bank.file_index as usize;
                (strata.of_kind(kind_of[number]).expect("has one"), bank.file_index, score(number))
            });
            estimate(&cells_of(scored, Scale::PLAIN), &strata.list, weighted)
        };
        let covers =
            |interval: Option<Interval>, truth: f64| interval.is_some_and(|i| i.low <= truth && truth <= i.high);
        let total = of(&mut |number| fixed[number]);
        error += total.value.expect("has a value") - of_fixed;
        this += u32::from(covers(total.benchmark_ci95, of_fixed));
        let drawn = of(&mut |number| f64::from(u8::from(coins.fraction() < chances[number])));
        like_these += u32::from(covers(drawn.ci95, of_chances));
    }
    let share = |n: u32| f64::from(n) / f64::from(SAMPLES);
    (error / f64::from(SAMPLES), share(this), share(like_these))
}

/// Samples are drawn by their hashes, which takes longer than tossing coins.
const SAMPLES: u32 = 1_000;

#[test]
fn samples_by_category_and_facet_are_unbiased_and_their_intervals_cover() {
    // at 50 questions strata of which one at most was taken are counted with the largest of their category
    for (dataset, total, most_bias) in
        [(&HAYSTACKS[..], 50, 0.01), (&HAYSTACKS[..], 200, 0.003), (&PERSONAS[..], 50, 0.005)]
    {
        let (bias, this, like_these) = of_strata(dataset, total);
        eprintln!(
            "{total} questions: bias {bias:.4}, intervals cover {this} (this benchmark), {like_these} (like these)"
        );
        assert!(bias.abs() < most_bias, "{total} questions: biased by {bias}");
        assert!((0.93..=0.98).contains(&this), "{total} questions: {this} of this benchmark's intervals cover");
        assert!((0.93..=0.98).contains(&like_these), "{total} questions: {like_these} of the first intervals cover");
    }
}

#[test]
fn single_grades_and_counted_shares_are_the_same_tally() {
    let from_scores = cells_of([(0, 0, 1.0), (0, 0, 0.0), (0, 0, 1.0)].into_iter(), Scale::PLAIN);
    assert_eq!(from_scores[0].tally, Tally::of_shares(2, 3));
}
