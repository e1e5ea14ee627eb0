use std::{collections::HashMap, path::PathBuf};

use bench_proto::{
    facts::{Outcome, QuestionFacts, QuestionIdentity},
    ids::TaskKey,
    profile::Part,
    repeats::NOISY_SD,
};
use serde_json::Value;

use super::{stability::chosen, *};
use crate::{
    Aggregator,
    aggregator::tests::{input, question},
    compare::RunFacts,
    draws::Chance,
};

/// A file of the reference data, `BENCH_REFERENCE_DIR` or `../shared` beside the repository.
fn reference(path: &str) -> Value {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("BENCH_REFERENCE_DIR").map_or_else(beside, PathBuf::from);
    let file = folder.join(path);
    let text = std::fs::read_to_string(&file)
        .unwrap_or_else(|e| panic!("{}: {e}; set BENCH_REFERENCE_DIR to the folder of reference data", file.display()));
    serde_json::from_str(&text).expect("is JSON")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number")).collect()
}

#[test]
fn zeps_ten_published_runs_give_their_mean_and_standard_deviation() {
    let file = reference("data/reference-results/zep_experiment_20251203_171523.json");
    let accuracy = &file["aggregated_metrics"]["accuracy"];
    let runs = spread(&numbers(&accuracy["runs"]), "repeats").expect("ten runs");
    assert_eq!((runs.n, format!("{:.4}", runs.mean)), (10, "0.8006".to_owned()));
    assert_eq!(format!("{:.4}", runs.sd.expect("has one")), "0.0033");
    assert!((runs.mean - accuracy["mean"].as_f64().expect("a number")).abs() < 1e-12);
    assert!((runs.sd.expect("has one") - accuracy["std_dev"].as_f64().expect("a number")).abs() < 1e-12);
    // scipy.stats.t.interval(0.95, 9, mean, sd / sqrt(10))
    let ci = runs.ci95.expect("has one");
    assert!((ci.low - 0.798_191_2).abs() < 1e-6 && (ci.high - 0.802_977_6).abs() < 1e-6, "{ci:?}");
}

#[test]
fn spreads_match_the_statistics_of_amplihack() {
    let file = reference("vectors/hebb-amplihack-precisionmembench.json");
    for case in file["amplihack_statistics"]["cases"].as_array().expect("cases") {
        let values = numbers(&case["values"]);
        let found = spread(&values, "seeds").expect("some");
        let (sd, n) = (found.sd.expect("has one"), values.len() as f64);
        let of = |name: &str| case[name].as_f64().expect("a number");
        assert!((found.mean - of("mean")).abs() < 1e-12 && (sd - of("sample_stddev")).abs() < 1e-12, "{case}");
        assert_eq!(sd > NOISY_SD, case["is_noisy"].as_bool().expect("yes or no"));
        let z = numbers(&case["ci95_z_unclamped"]);
        assert!((found.mean - 1.96 * sd / n.sqrt() - z[0]).abs() < 1e-12, "{case}");
        // their table of t is rounded, and of twelve values takes the t of ten, as their source says
        let (ours, theirs) = (found.ci95.expect("has one"), numbers(&case["ci95_t"]));
        let table = if values.len() == 12 { 2.262 - 2.201 } else { 0.0005 };
        let off = (table + 0.0005) * sd / n.sqrt();
        assert!((ours.low - theirs[0]).abs() <= off && (ours.high - theirs[1]).abs() <= off, "{ours:?} {theirs:?}");
    }
}

#[test]
fn single_and_equal_figures_make_no_interval() {
    assert_eq!(spread(&[], "repeats"), None);
    let one = spread(&[0.5], "repeats").expect("one");
    assert_eq!((one.sd, one.ci95.clone(), one.one_within()), (None, None, None));
    let equal = spread(&[0.3, 0.3, 0.3], "repeats").expect("three");
    assert!(equal.ci95.is_none() && equal.one_within().is_none(), "{equal:?}");
}

/// Scores of a simulated group, by question and repeat, with the bank of each question.
struct Drawn {
    banks: Vec<usize>,
    /// By question and repeat.
    scores: Vec<Vec<f64>>,
    /// By question and repeat: variance of the votes.
    votes: Vec<Vec<f64>>,
    /// Mean over the questions of what new draws are expected to score.
    expected: f64,
}

/// What a simulated group is made of: variances of normal effects.
#[derive(Clone, Copy)]
struct Truth {
    sizes: &'static [usize],
    repeats: usize,
    bank: f64,
    question: f64,
    ingest: f64,
    answer: f64,
    judge: f64,
    votes: usize,
}

const SIZES: [usize; 10] = [199, 105, 193, 260, 242, 158, 190, 239, 196, 204];

const PLAIN: Truth =
    Truth { sizes: &SIZES, repeats: 5, bank: 0.01, question: 0.15, ingest: 0.0, answer: 0.04, judge: 0.0, votes: 1 };

fn draw(truth: &Truth, seed: u64) -> Drawn {
    let mut chance = Chance::new(seed);
    let mut drawn = Drawn { banks: Vec::new(), scores: Vec::new(), votes: Vec::new(), expected: 0.0 };
    for (bank, size) in truth.sizes.iter().enumerate() {
        let hard = truth.bank.sqrt() * chance.normal();
        let fillings: Vec<f64> = (0..truth.repeats).map(|_| truth.ingest.sqrt() * chance.normal()).collect();
        for _ in 0..*size {
            let own = truth.question.sqrt() * chance.normal();
            let (mut scores, mut variances) = (Vec::new(), Vec::new());
            for filling in &fillings {
                let answer = 0.5 + hard + own + filling + truth.answer.sqrt() * chance.normal();
                let votes: Vec<f64> = (0..truth.votes).map(|_| answer + truth.judge.sqrt() * chance.normal()).collect();
                let mean = votes.iter().sum::<f64>() / votes.len() as f64;
                let squares: f64 = votes.iter().map(|vote| (vote - mean).powi(2)).sum();
                scores.push(mean);
                variances.push(squares / (votes.len().max(2) - 1) as f64);
            }
            drawn.expected += 0.5 + hard + own;
            drawn.banks.push(bank);
            drawn.scores.push(scores);
            drawn.votes.push(variances);
        }
    }
    drawn.expected /= drawn.scores.len() as f64;
    drawn
}

fn id(question: usize) -> String {
    format!("q{question:07}")
}

fn facts(drawn: &Drawn, repeat: usize) -> RunFacts {
    let mut run = RunFacts::new("judge", 10);
    for (question, scores) in drawn.scores.iter().enumerate() {
        let identity = QuestionIdentity {
            task: TaskKey::question(drawn.banks[question] as u32, question as u32),
            question_id: id(question),
            bank_id: format!("b{}", drawn.banks[question]),
            category: "any".to_owned(),
            facets: BTreeMap::new(),
        };
        let facts = QuestionFacts::without_steps(identity, Outcome::Scored);
        run.add(&QuestionFacts { scores: vec![("judge".to_owned(), scores[repeat])], ..facts });
    }
    run
}

fn table(drawn: &Drawn, votes: usize) -> RepeatTable {
    let mut table = RepeatTable::default();
    for repeat in 0..drawn.scores[0].len() {
        let of_votes = (votes > 1).then(|| {
            let of = |(question, scores): (usize, &Vec<f64>)| {
                let on = VotesOn { mean: scores[repeat], variance: drawn.votes[question][repeat], n: votes as u32 };
                (id(question), on)
            };
            drawn.scores.iter().enumerate().map(of).collect::<HashMap<_, _>>()
        });
        table.add(&facts(drawn, repeat), &Part::default(), of_votes.as_ref());
    }
    table
}

fn spec() -> RunSpec {
    let text = include_str!("../../../../proto/golden/run_spec.v1.json");
    let mut spec: RunSpec = serde_json::from_str(text).expect("a golden spec");
    (spec.sample.census, spec.sample.stratified) = (true, false);
    spec.sample.strata.clear();
    spec
}

fn of<'a>(spec: &'a RunSpec, headlines: &'a [f64], truth: &Truth) -> Repeated<'a> {
    Repeated {
        spec,
        metric: "judge",
        headlines,
        filled_anew: truth.ingest > 0.0,
        fills_alike: false,
        answers_draw: true,
        judges_draw: true,
        seed: 1,
    }
}

fn figures(truth: &Truth, seed: u64) -> RepeatFigures {
    let drawn = draw(truth, seed);
    let n = drawn.scores.len() as f64;
    let mean = |repeat: usize| drawn.scores.iter().map(|scores| scores[repeat]).sum::<f64>() / n;
    let headlines: Vec<f64> = (0..truth.repeats).map(mean).collect();
    report(&table(&drawn, truth.votes), &of(&spec(), &headlines, truth))
}

/// How often the intervals of the shares hold the truth, by source, over `groups` simulated groups; and the mean shares.
fn held(truth: &Truth, wanted: &[(Source, f64)], groups: u64) -> Vec<(Source, f64, f64)> {
    let total: f64 = wanted.iter().map(|(_, variance)| variance).sum();
    let all: Vec<RepeatFigures> = (0..groups).map(|seed| figures(truth, 1_000 + seed)).collect();
    let of = |(source, variance): &(Source, f64)| {
        let share = variance / total;
        let found = || all.iter().map(|f| f.variance.components.iter().find(|c| c.source == *source).expect("is told"));
        let holds = found().filter(|c| {
            let ci = c.share_ci95.as_ref().expect("has one");
            ci.low <= share && share <= ci.high
        });
        let mean = found().map(|c| c.share).sum::<f64>() / groups as f64;
        (*source, holds.count() as f64 / groups as f64, mean - share)
    };
    wanted.iter().map(of).collect()
}

#[test]
fn shares_of_known_components_come_back() {
    let votes = Truth { judge: 0.03, votes: 3, ..PLAIN };
    let everything = Truth { ingest: 0.01, ..votes };
    let cases: [(&Truth, Vec<(Source, f64)>); 3] = [
        (&PLAIN, vec![(Source::Bank, 0.01), (Source::Question, 0.15), (Source::AnswerDraw, 0.04)]),
        (
            &votes,
            vec![(Source::Bank, 0.01), (Source::Question, 0.15), (Source::AnswerDraw, 0.04), (Source::JudgeDraw, 0.03)],
        ),
        (
            &everything,
            vec![
                (Source::Bank, 0.01),
                (Source::Question, 0.15),
                (Source::Ingest, 0.01),
                (Source::AnswerDraw, 0.04),
                (Source::JudgeDraw, 0.03),
            ],
        ),
    ];
    for (truth, wanted) in cases {
        for (source, held, bias) in held(truth, &wanted, 60) {
            // 60 groups: three standard errors of 95 % are 8.4 points
            assert!(held >= 0.86, "{source:?}: the interval holds in {held}");
            assert!(bias.abs() < 0.012, "{source:?}: off by {bias}");
        }
    }
}

#[test]
fn shares_of_verdicts_come_back_too() {
    // a bank passes in about 70 % of cases, a question nearly always or hardly ever
    let (sure, repeats, groups) = ([0.05, 0.95], 4, 60_u64);
    let verdicts = |seed: u64| {
        let mut chance = Chance::new(seed);
        let mut drawn = Drawn { banks: Vec::new(), scores: Vec::new(), votes: Vec::new(), expected: 0.0 };
        for (bank, size) in SIZES.iter().enumerate() {
            let mean = (0.7 + 0.08 * chance.normal()).clamp(0.05, 0.95);
            for _ in 0..*size {
                let p = sure[usize::from(chance.fraction() < (mean - 0.05) / 0.9)];
                drawn.banks.push(bank);
                drawn.scores.push((0..repeats).map(|_| chance.verdict(p)).collect());
            }
        }
        drawn
    };
    // E w(1 − w) with w = (0.7 − 0.05) / 0.9 on average and a variance of 0.0064 / 0.81, times 0.9²; p(1 − p) of both kinds
    let wanted = [(Source::Bank, 0.0064), (Source::Question, 0.1561), (Source::AnswerDraw, 0.0475)];
    let total: f64 = wanted.iter().map(|(_, variance)| variance).sum();
    let spec = spec();
    let all: Vec<VarianceShares> = (0..groups)
        .map(|seed| report(&table(&verdicts(500 + seed), 1), &of(&spec, &[0.7, 0.7, 0.7, 0.7], &PLAIN)).variance)
        .collect();
    for (source, variance) in wanted {
        let found = || all.iter().map(|v| v.components.iter().find(|c| c.source == source).expect("is told"));
        let holds = found().filter(|c| {
            let ci = c.share_ci95.as_ref().expect("has one");
            ci.low <= variance / total && variance / total <= ci.high
        });
        let held = holds.count();
        assert!(held >= 52, "{source:?}: the interval holds in {held} of {groups}");
        let mean = found().map(|c| c.share).sum::<f64>() / groups as f64;
        assert!((mean - variance / total).abs() < 0.012, "{source:?}: {mean} for {}", variance / total);
    }
}

#[test]
fn equal_repeats_have_no_interval_of_what_varies_between_them() {
    let mut drawn = draw(&Truth { answer: 0.0, ..PLAIN }, 7);
    // the mean of three equal thirds is off by a bit
    drawn.scores.iter_mut().for_each(|scores| *scores = vec![scores[0] / 3.0; 5]);
    let spec = spec();
    let shares = report(&table(&drawn, 1), &of(&spec, &[0.5; 5], &PLAIN)).variance;
    let found = |source| shares.components.iter().find(|c| c.source == source).expect("is told");
    let answers = found(Source::AnswerDraw);
    assert!(answers.share < 1e-12, "{answers:?}");
    assert_eq!((&answers.share_ci95, &answers.variance_ci95), (&None, &None));
    assert!(found(Source::Question).share_ci95.as_ref().is_some_and(|ci| ci.low < ci.high), "{shares:?}");
}

/// Scores of six questions in three banks, the same in each of three repeats.
fn alike(score: impl Fn(usize) -> f64) -> Drawn {
    let scores = (0..6).map(|question| vec![score(question); 3]).collect();
    Drawn { banks: vec![0, 0, 1, 1, 2, 2], scores, votes: Vec::new(), expected: 0.5 }
}

#[test]
fn the_last_bits_of_equal_grades_are_no_drift_and_no_noise() {
    // (0.1 + 0.1 + 0.1) / 3 is not 0.1
    let spec = spec();
    let found = |drawn: &Drawn| report(&table(drawn, 1), &of(&spec, &[0.3; 3], &PLAIN));
    let all = alike(|_| 0.1);
    let same = found(&all);
    assert_eq!(same.mean.drift_variance, Some(0.0));
    assert!(same.mean.ci95.as_ref().is_some_and(|ci| !ci.method.contains("drift")), "{:?}", same.mean.ci95);
    assert!(questions(&table(&all, 1)).all(|question| (question.mean, question.sd) == (0.1, 0.0)));
    assert_eq!((same.variance.total, same.variance.components.len()), (None, 0), "{:?}", same.variance);
    let by = &same.halving.conversations;
    assert!(by.note.as_ref().is_some_and(|note| note.starts_with("nothing varies")), "{by:?}");
    // questions differ, and repeats do not
    let graded = found(&alike(|question| 0.1 * (1 + question) as f64));
    assert_eq!((graded.mean.drift_variance, graded.halving.conversations.repeats), (Some(0.0), None));
    let benchmark = &graded.halving.benchmark;
    assert_eq!(benchmark.repeats, None, "{benchmark:?}");
    assert!(benchmark.note.as_ref().is_some_and(|note| note.contains("no noise to halve")), "{benchmark:?}");
}

/// A run's score is the median of its votes, in its own files and in those of the group; the judge's noise is told by their means.
#[test]
fn votes_change_no_score_and_tell_what_the_noise_is_made_of() {
    let drawn = alike(|question| if question < 3 { 0.4 } else { 1.0 });
    let mut with_votes = RepeatTable::default();
    for repeat in 0..3 {
        // the mean of three grades passes, their median does not
        let on = VotesOn { mean: 0.6 + 0.01 * repeat as f64, variance: 0.12, n: 3 };
        let votes: HashMap<String, VotesOn> = (0..6).map(|question| (id(question), on)).collect();
        with_votes.add(&facts(&drawn, repeat), &Part::default(), Some(&votes));
    }
    let spec = spec();
    let of = of(&spec, &[0.7; 3], &PLAIN);
    let (found, without) = (report(&with_votes, &of), report(&table(&drawn, 1), &of));
    let counts = |stable: &Stability| [stable.always_passed.count, stable.never_passed.count, stable.noisy.count];
    assert_eq!(counts(&found.stability), [3, 3, 0]);
    assert_eq!(found.stability, without.stability);
    assert_eq!(found.mean, without.mean);
    let first = questions(&with_votes).next().expect("six questions");
    assert_eq!((first.scores, first.mean), (vec![0.4; 3], 0.4));
    let draw = |shares: &VarianceShares| {
        let of_source = shares.components.iter().find(|component| component.source == Source::JudgeDraw);
        of_source.map(|component| component.variance)
    };
    assert!(draw(&found.variance).is_some_and(|variance| (variance - 0.12).abs() < 1e-12), "{:?}", found.variance);
    assert_eq!(draw(&without.variance), None);
}

#[test]
fn what_the_design_confounds_is_joined() {
    let joined = |truth: &Truth| -> Vec<(Source, Vec<Source>)> {
        let shares = figures(truth, 5).variance;
        let sum: f64 = shares.components.iter().map(|component| component.share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{shares:?}");
        shares.components.into_iter().map(|component| (component.source, component.joined_with)).collect()
    };
    use Source::{AnswerDraw, Bank, Ingest, JudgeDraw, Question};
    assert_eq!(
        joined(&PLAIN),
        [(Bank, vec![Ingest]), (Question, vec![Ingest]), (AnswerDraw, vec![JudgeDraw])],
        "one filling, one vote"
    );
    assert_eq!(
        joined(&Truth { ingest: 0.01, judge: 0.02, votes: 3, ..PLAIN }),
        [(Bank, vec![]), (Question, vec![]), (Ingest, vec![]), (AnswerDraw, vec![Ingest]), (JudgeDraw, vec![])]
    );
}

#[test]
fn pass_at_k_and_pass_all_k_are_unbiased_choices() {
    // C(3, 2) / C(5, 2), and of everything
    assert!((chosen(3, 2, 5) - 0.3).abs() < 1e-15 && chosen(5, 5, 5) == 1.0 && chosen(2, 3, 5) == 0.0);
    let drawn = Drawn {
        banks: vec![0, 0, 1, 1, 2, 2],
        scores: [[1, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1]]
            .map(|row| row.map(f64::from).to_vec())
            .to_vec(),
        votes: vec![vec![0.0; 3]; 6],
        expected: 0.5,
    };
    let spec = spec();
    let found = report(&table(&drawn, 1), &of(&spec, &[4.0 / 6.0, 0.5, 0.5], &PLAIN));
    let stable = &found.stability;
    let counts = [&stable.always_passed, &stable.never_passed, &stable.mixed, &stable.noisy].map(|figure| figure.count);
    assert_eq!(counts, [2, 1, 3, 3]);
    let of_k = |k: usize| {
        let passes = &stable.passes[k - 1];
        [&passes.pass_at_k, &passes.pass_all_k].map(|figure| figure.value.expect("has one"))
    };
    // by hand: of c = 3, 1, 2, 0, 3, 1 of three
    let mean = |each: [f64; 6]| each.iter().sum::<f64>() / 6.0;
    let close = |found: [f64; 2], wanted: [f64; 2]| found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(close(of_k(1), [mean([1.0, 1.0 / 3.0, 2.0 / 3.0, 0.0, 1.0, 1.0 / 3.0]); 2]), "{:?}", of_k(1));
    let two = [mean([1.0, 2.0 / 3.0, 1.0, 0.0, 1.0, 2.0 / 3.0]), mean([1.0, 0.0, 1.0 / 3.0, 0.0, 1.0, 0.0])];
    assert!(close(of_k(2), two), "{:?}", of_k(2));
    assert!(close(of_k(3), [5.0 / 6.0, 2.0 / 6.0]), "{:?}", of_k(3));
    assert!(stable.passes.iter().all(|p| p.pass_at_k.ci95.is_some()), "three banks make an interval");
}

#[test]
fn what_lacks_in_a_repeat_is_counted_and_left_out() {
    let mut drawn = draw(&Truth { sizes: &[3, 4, 5], repeats: 3, ..PLAIN }, 3);
    drawn.scores[2][1] = f64::NAN;
    let spec = spec();
    let found = report(&table(&drawn, 1), &of(&spec, &[0.5, 0.5, 0.6], &PLAIN));
    assert_eq!((found.stability.questions, found.stability.left_out, found.variance.questions), (11, 1, 11));
}

/// Of every second adversarial question the judge has no figure, so that the category counts for half of its questions.
#[test]
fn equal_repeats_have_the_headline_and_the_intervals_of_one() {
    let input = input(60);
    let (mut run, mut aggregator) = (RunFacts::new("judge", 10), Aggregator::new(input.clone()));
    for i in 0..60_u64 {
        let verdict = f64::from(u8::from(i.is_multiple_of(3) || i.is_multiple_of(5)));
        let mut scores = vec![("locomo-f1".to_owned(), 0.5)];
        scores.extend((!i.is_multiple_of(6)).then(|| ("judge".to_owned(), verdict)));
        let facts = QuestionFacts { outcome: Outcome::Scored, failure: None, scores, ..question(i) };
        run.add(&facts);
        aggregator.add(&facts);
    }
    let headline = aggregator.finish(std::iter::empty::<&str>()).summary.headline;
    let value = headline.value.expect("has one");
    let mut table = RepeatTable::default();
    (0..3).for_each(|_| table.add(&run, &Part::default(), None));
    let found = report(&table, &of(&input.spec, &[value; 3], &PLAIN));
    assert_eq!((found.estimator, found.stability.questions), (Estimator::Weighted, 50));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} instead of {b}");
    // what passes always is what a run passes
    near(found.stability.always_passed.value.expect("has one"), value);
    for (of_all, of_one) in [(&found.mean.ci95, &headline.ci95), (&found.mean.benchmark_ci95, &headline.benchmark_ci95)]
    {
        let (of_all, of_one) = (of_all.as_ref().expect("has one"), of_one.as_ref().expect("has one"));
        near(of_all.low, of_one.low);
        near(of_all.high, of_one.high);
    }
}

#[test]
fn a_question_that_one_run_alone_knows_is_merged_in_order() {
    let whole = draw(&Truth { sizes: &[2, 2], repeats: 2, ..PLAIN }, 3);
    let (banks, scores) = (whole.banks[..2].to_vec(), whole.scores[..2].to_vec());
    let part = Drawn { banks, scores, votes: Vec::new(), expected: 0.5 };
    let mut table = RepeatTable::default();
    table.add(&facts(&part, 0), &Part::default(), None);
    table.add(&facts(&whole, 1), &Part::default(), None);
    let complete: Vec<&str> = table.complete().questions().map(|question| question.id()).collect();
    assert_eq!((table.len(), complete), (4, vec!["q0000000", "q0000001"]));
}

#[test]
fn halving_takes_what_the_components_say() {
    let found = figures(&PLAIN, 9);
    let by = &found.halving.conversations;
    assert_eq!(by.repeats, None, "banks and questions are most of it, and no repeat lowers them");
    assert!(by.questions_new_banks.is_some_and(|more| (3 * 1986..4 * 1986).contains(&more)), "{by:?}");
    assert_eq!(found.halving.benchmark.repeats, Some(15));
    // without banks that differ, further questions suffice: three times as many, up to the draws
    let alike = figures(&Truth { bank: 0.0, ..PLAIN }, 11).halving.conversations;
    assert!(alike.questions_same_banks.is_none_or(|more| more >= 3 * 1986), "{alike:?}");
    // with nothing but draws, repeats do it
    let draws = figures(&Truth { bank: 0.0, question: 0.0, answer: 0.2, ..PLAIN }, 12).halving.conversations;
    assert!(draws.repeats.is_some_and(|more| (10..=40).contains(&more)), "{draws:?}");
}

#[test]
fn halving_knows_of_drift_and_of_what_a_sample_leaves_out() {
    let truth = Truth { repeats: 4, bank: 0.001, answer: 0.0004, ..PLAIN };
    let mut drawn = draw(&truth, 1);
    let found = |drawn: &Drawn, spec: &RunSpec, headlines: &[f64]| {
        report(&table(drawn, 1), &of(spec, headlines, &truth)).halving
    };
    let mut sample = spec();
    (sample.sample.census, sample.sample.stratified, sample.sample.sampler) = (false, true, "hash".to_owned());
    sample.sample.by_category = BTreeMap::from([("any".to_owned(), 1_986)]);
    sample.dataset.population = BTreeMap::from([("any".to_owned(), 6_000)]);
    let still = found(&drawn, &sample, &[0.5; 4]).benchmark;
    // 1 / (1/P + (1/n − 1/P) / 4) − n = 2,000, but for the little that the answers seem to drift
    assert!(still.questions_same_banks.is_some_and(|more| (1_900..2_200).contains(&more)), "{still:?}");
    assert_eq!((still.repeats, &still.note), (None, &None));
    let shifts = [-0.1, 0.1, 0.05, -0.05];
    drawn.scores.iter_mut().for_each(|scores| scores.iter_mut().zip(shifts).for_each(|(s, d)| *s += d));
    let headlines = [0.4, 0.6, 0.55, 0.45];
    let by = found(&drawn, &spec(), &headlines).conversations;
    assert_eq!((by.questions_new_banks, by.questions_same_banks), (None, None), "no question takes drift away: {by:?}");
    assert!(by.repeats.is_some_and(|more| more >= 12), "{by:?}");
    let by = found(&drawn, &sample, &headlines).benchmark;
    assert_eq!((by.questions_same_banks, by.repeats.is_some()), (None, true), "{by:?}");
}

#[test]
fn the_interval_of_the_mean_holds_banks_questions_and_drift() {
    let truth = Truth { repeats: 4, ..PLAIN };
    let held = (0..150).filter(|seed| {
        let ci = figures(&truth, 7_000 + seed).mean.ci95.expect("has one");
        ci.low <= 0.5 && 0.5 <= ci.high
    });
    let held = held.count();
    // 95 % of 150 less three standard errors
    assert!(held >= 135, "{held} of 150");
    let mut drawn = draw(&truth, 1);
    let still = report(&table(&drawn, 1), &of(&spec(), &[0.5; 4], &truth)).mean.ci95.expect("has one");
    drawn
        .scores
        .iter_mut()
        .for_each(|scores| scores.iter_mut().zip([-0.1, 0.1, 0.05, -0.05]).for_each(|(s, d)| *s += d));
    let found = report(&table(&drawn, 1), &of(&spec(), &[0.4, 0.6, 0.55, 0.45], &truth));
    let ci = found.mean.ci95.expect("has one");
    assert!(found.mean.drift_variance.expect("has one") > 0.005, "{:?}", found.mean.drift_variance);
    assert!(ci.high - ci.low > still.high - still.low + 0.1, "{ci:?} {still:?}");
}

#[test]
fn the_benchmarks_interval_comes_from_the_repeats() {
    let held = (0..300_u64).filter(|seed| {
        let truth = Truth { repeats: 3, ..PLAIN };
        let drawn = draw(&truth, 20_000 + seed);
        let n = drawn.scores.len() as f64;
        let mean = |repeat: usize| drawn.scores.iter().map(|scores| scores[repeat]).sum::<f64>() / n;
        let headlines = [mean(0), mean(1), mean(2)];
        let found = spread(&headlines, "repeats").expect("three").ci95.expect("has one");
        found.low <= drawn.expected && drawn.expected <= found.high
    });
    let held = held.count();
    assert!((270..=297).contains(&held), "{held} of 300");
}
