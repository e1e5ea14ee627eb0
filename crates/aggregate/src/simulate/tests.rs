use super::*;

fn case(p: f64, correlation: f64, effects: Effects) -> CoverageCase {
    CoverageCase { banks: LOCOMO_BANKS.to_vec(), p, correlation, effects, scores: Scores::Verdicts }
}

/// Three standard errors of a share near 95 % over 2,000 draws are 1.5 points.
const DRAWS: u32 = 2_000;

#[test]
fn high_scores_are_covered_with_ten_banks() {
    for effects in [Effects::Beta, Effects::LogitNormal] {
        for (p, correlation) in [(0.5, 0.1), (0.9, 0.05), (0.95, 0.1), (0.98, 0.02), (0.98, 0.1)] {
            let seen = coverage(&case(p, correlation, effects), DRAWS, 17);
            eprintln!("{effects:?} {p} {correlation}: {seen:?}");
            // of a normal effect with the strongest correlation at the edge 92 % are reached
            let least = if effects == Effects::LogitNormal && p > 0.9 && correlation > 0.05 { 0.90 } else { 0.935 };
            assert!((least..=0.99).contains(&seen.covers), "{effects:?} {p} {correlation}: {seen:?}");
            assert!(seen.covers >= seen.t_covers, "the report's interval holds the t interval");
        }
    }
    let edge = coverage(&case(0.98, 0.1, Effects::Beta), DRAWS, 18);
    assert!(edge.t_covers < 0.85, "the t interval alone is too narrow there: {edge:?}");
}

#[test]
fn graded_scores_near_the_edge_are_covered_too() {
    for (p, correlation) in [(0.9, 0.05), (0.98, 0.1)] {
        let graded = CoverageCase { scores: Scores::Graded, ..case(p, correlation, Effects::Beta) };
        let seen = coverage(&graded, 1_000, 19);
        assert!((0.925..=0.99).contains(&seen.covers), "{p} {correlation}: {seen:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let of = |seed| coverage(&case(0.9, 0.05, Effects::Beta), 50, seed);
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

/// LoCoMo's categories in ten banks, of which so many questions each are asked: the first has another score than the others.
fn sample(asked: u64, first: f64, others: f64, correlation: f64) -> SampleCase {
    let stratum = |(number, of_bank): (usize, u64)| SampledStratum {
        p: if number == 0 { first } else { others },
        of_bank,
        asked: asked.min(of_bank),
    };
    let strata = [45, 28, 10, 84, 32].into_iter().enumerate().map(stratum).collect();
    SampleCase { strata, banks: 10, correlation }
}

#[test]
fn intervals_of_small_strata_hold_where_all_of_their_answers_agree() {
    for asked in [1, 4] {
        for (first, others) in [(0.9, 0.9), (0.98, 0.98), (0.995, 0.995), (0.02, 0.02), (0.98, 0.02), (0.5, 0.98)] {
            for correlation in [0.0, 0.05] {
                let seen = sample_coverage(&sample(asked, first, others, correlation), 1_000, 47);
                let what = format!("{asked} of a category, {first} and {others}, {correlation}: {seen:?}");
                eprintln!("{what}");
                assert_eq!(seen.none, 0.0, "{what}");
                assert!(seen.like_these >= 0.92, "{what}");
                // four of a category at 0.9 reach 93 %, less two standard errors
                assert!(seen.this_benchmark >= 0.91, "{what}");
            }
        }
    }
}

#[test]
fn small_banks_whose_answers_are_often_all_equal_are_covered() {
    for (banks, p) in [(vec![5; 10], 0.98), (vec![5; 10], 0.995), (vec![2; 250], 0.995)] {
        for correlation in [0.0, 0.1] {
            let what = format!("{} banks, {p}, {correlation}", banks.len());
            let seen =
                coverage(&CoverageCase { banks: banks.clone(), ..case(p, correlation, Effects::Beta) }, 1_000, 53);
            assert!(seen.none == 0.0 && seen.covers >= 0.92, "{what}: {seen:?}");
        }
    }
}

/// Ten banks whose questions are passed by all runs, by none, or by some.
fn rates() -> Vec<Vec<Rate>> {
    let question = |bank: u64, i: u64| Rate {
        category: (i % 4) as u32,
        rate: [1.0, 1.0, 0.95, 1.0, 0.0, 1.0, 0.05, 1.0, 0.7, 1.0][((i * 7 + bank * 3) % 10) as usize],
    };
    (0..10).map(|bank| (0..LOCOMO_BANKS[bank as usize] * 3 / 4).map(|i| question(bank, i)).collect()).collect()
}

fn pairs(sampled: Sampled, count: usize) -> DecisionCase {
    DecisionCase {
        banks: rates(),
        sampled,
        population: std::collections::BTreeMap::new(),
        count,
        bank_noise: 0.3,
        drop: 0.0,
        baseline_runs: 1,
        runs: 1,
        tolerance: 0.0,
    }
}

#[test]
fn pairs_without_a_difference_are_rarely_told_apart() {
    for sampled in [Sampled::Full, Sampled::PerBank(20), Sampled::Share(20)] {
        for count in [3, 5, 10, 40] {
            let said = words(&pairs(sampled, count), 1_000, 23);
            let wrong = said.better + said.worse;
            // 5 % and three standard errors
            assert!(wrong <= 0.071, "{sampled:?} with {count} banks: {said:?}");
        }
    }
}

#[test]
fn a_difference_of_the_size_that_is_announced_is_found_as_often_as_announced() {
    let still = pairs(Sampled::Full, 10);
    // that a difference of the size at hand is there brings noise of its own, which is announced too
    let first = words(&still, 400, 29).detectable;
    let detectable = words(&DecisionCase { drop: first, ..still.clone() }, 400, 29).detectable;
    let said = words(&DecisionCase { drop: detectable, ..still }, 1_000, 31);
    assert!((0.7..=0.92).contains(&said.worse), "{detectable}: {said:?}");
    assert!(said.better < 0.005, "{said:?}");
}

#[test]
fn the_shipped_gate_passes_what_is_equal_and_stops_what_fell() {
    let policy = crate::gate::Policy::default();
    let tolerance = policy.overall.expect("has one").tolerance;
    let still = DecisionCase { baseline_runs: 3, ..pairs(Sampled::Full, 10) };
    let equal = ends(&still, &policy, 600, 37);
    assert!(equal.pass >= 0.85 && equal.fail <= 0.03, "{equal:?}");
    let at = ends(&DecisionCase { drop: tolerance, ..still.clone() }, &policy, 600, 41);
    assert!(at.pass <= 0.07, "{at:?}");
    let twice = ends(&DecisionCase { drop: 2.0 * tolerance, ..still }, &policy, 600, 43);
    assert!(twice.fail >= 0.8, "{twice:?}");
}

#[test]
fn the_mean_of_repeats_differs_less_from_its_baseline_than_a_single_run_does() {
    let one = pairs(Sampled::Full, 10);
    let detectable = |case: &DecisionCase| words(case, 200, 47).detectable;
    let means = DecisionCase { baseline_runs: 5, runs: 5, ..one.clone() };
    // the variance of a difference of means of five is a fifth of that of single runs
    let (of_one, of_means) = (detectable(&one), detectable(&means));
    assert!((0.35..=0.6).contains(&(of_means / of_one)), "{of_one} {of_means}");
    let of_one_against_five = detectable(&DecisionCase { runs: 1, ..means });
    assert!(of_means < of_one_against_five && of_one_against_five < of_one, "{of_one_against_five}");
}

#[test]
fn no_score_falls_by_more_than_it_is() {
    let case = DecisionCase { tolerance: 0.03, ..pairs(Sampled::Full, 10) };
    assert_eq!(case.falls(), (vec![0.0, 0.03, 0.06], Vec::new()));
    let rate = |rate: f64| vec![vec![Rate { category: 0, rate }; 10]; 3];
    assert_eq!(DecisionCase { banks: rate(0.04), ..case.clone() }.falls(), (vec![0.0, 0.03], vec![0.06]));
    assert_eq!(DecisionCase { banks: rate(0.0), ..case }.falls(), (vec![0.0], vec![0.03, 0.06]));
}
