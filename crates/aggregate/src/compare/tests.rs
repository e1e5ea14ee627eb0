//! Values of scipy 1.17, numpy 2 and statsmodels 0.15 on data that both sides make by the same integer arithmetic:
//!
//! ```python
//! i = np.arange(400); cl = (i*i//7) % 10; cat = (i*5 + i//9) % 4
//! a = ((i*7919 + 13*cl*cl) % 101 < 55 + 4*cl).astype(float); b = ((i*104729 + 17*cl) % 97 < 60 + 3*cl).astype(float); d = b - a
//! ```

use bench_proto::{
    comparison::{PairedDifference, Word},
    counting::CountingSpec,
    facts::{Outcome, QuestionFacts},
    metric::MetricSpec,
    profile::GoldRubrics,
    spec::ScorerSpec,
    summary::Interval,
};

use super::{
    difference::{Errors, paired_difference, word},
    pairs::Pair,
    *,
};
use crate::{
    Aggregator,
    aggregator::tests::{input, question},
    kinds::Kind,
};

mod in_common;

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
    Errors::of(&means.design(pairs, Pair::difference).expect("has pairs"))
}

#[track_caller]
fn near(got: Option<f64>, expected: f64) {
    assert!(got.is_some_and(|got| (got - expected).abs() < 1e-9), "{got:?} instead of {expected}");
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

/// The comparison of two runs of `question`, the second one changed.
fn compared(n: u64, change: impl Fn(u64, &mut QuestionFacts)) -> Comparison {
    let input = input(n);
    let side = |change: &dyn Fn(u64, &mut QuestionFacts)| {
        let mut run = RunFacts::new("judge", 10);
        let mut aggregator = Aggregator::new(input.clone());
        for i in 0..n {
            let mut facts = question(i);
            change(i, &mut facts);
            run.add(&facts);
            aggregator.add(&facts);
        }
        (run, aggregator.finish(std::iter::empty::<&str>()).summary)
    };
    let (of_a, mut summary_a) = side(&|_, _| {});
    let (of_b, mut summary_b) = side(&change);
    // one question in eleven fails by construction
    summary_a.run.verdict = Verdict::Valid;
    summary_b.run.verdict = Verdict::Valid;
    let a = Side { spec: &input.spec, summary: &summary_a, facts: &of_a, members: &[] };
    let b = Side { spec: &input.spec, summary: &summary_b, facts: &of_b, members: &[] };
    compare(&a, &b, &CompareOptions::default())
}

fn set_judge(facts: &mut QuestionFacts, grade: f64) {
    facts.scores.iter_mut().filter(|(metric, _)| metric == "judge").for_each(|(_, score)| *score = grade);
}

#[test]
fn equal_runs_do_not_change() {
    let comparison = compared(300, |_, _| {});
    assert!(comparison.comparable, "{:?}", comparison.reasons);
    assert_eq!((comparison.verdict, comparison.paired.difference), (Word::NoChange, Some(0.0)));
    assert_eq!(comparison.mcnemar.p_value, 1.0);
    assert!(comparison.flips.is_empty() && comparison.differences.is_empty());
    assert_eq!(comparison.bootstrap_note.as_deref(), Some("all banks agree: nothing to draw from"));
}

#[test]
fn facets_that_both_runs_have_are_compared_value_by_value() {
    // in the second run questions without an answer pass
    let better = |facts: &mut QuestionFacts| {
        if facts.facets["abstention"] == "yes" {
            set_judge(facts, 1.0);
        }
    };
    let comparison = compared(300, |_, facts| better(facts));
    let of_facet = &comparison.by_facet["abstention"];
    assert_eq!((of_facet["yes"].verdict, of_facet["no"].verdict), (Word::Better, Word::NoChange));
    assert_eq!(of_facet["yes"].n + of_facet["no"].n, comparison.paired.n);
    assert!(of_facet["yes"].p_holm >= of_facet["yes"].p_value && of_facet["yes"].p_holm.is_some());
    let without = compared(300, |_, facts| facts.facets.clear());
    assert!(without.by_facet.is_empty(), "the second run does not have it");
}

#[test]
fn where_lower_is_better_a_fall_is_better() {
    let mut input = input(300);
    input.spec.judges.clear();
    let drift = MetricSpec { name: "drift".into(), scale: Scale::lower(0.25) };
    input.spec.scorers = vec![ScorerSpec { name: "pairs".into(), version: 1, metrics: vec![drift], of_recalls: true }];
    let side = |drift: f64| {
        let (mut run, mut aggregator) = (RunFacts::new("drift", 10), Aggregator::new(input.clone()));
        for i in 0..300 {
            let scores = vec![("drift".to_owned(), drift + (i % 2) as f64 / 10.0)];
            let facts = QuestionFacts { scores, outcome: Outcome::Scored, failure: None, ..question(i) };
            run.add(&facts);
            aggregator.add(&facts);
        }
        (run, aggregator.finish(std::iter::empty::<&str>()).summary)
    };
    let ((of_a, summary_a), (of_b, summary_b)) = (side(0.4), side(0.1));
    let sides = |turned: bool| {
        let a = Side { spec: &input.spec, summary: &summary_a, facts: &of_a, members: &[] };
        let b = Side { spec: &input.spec, summary: &summary_b, facts: &of_b, members: &[] };
        let (a, b) = if turned { (b, a) } else { (a, b) };
        compare(&a, &b, &CompareOptions::default())
    };
    let fell = sides(false);
    assert_eq!((fell.verdict, fell.better, fell.scale()), (Word::Better, Better::Lower, Scale::lower(0.25)));
    assert!(fell.paired.difference.is_some_and(|difference| (difference + 0.3).abs() < 1e-9), "b − a all the same");
    assert_eq!((fell.mcnemar.only_b, fell.flip_counts["won"]), (300, 300));
    let rose = sides(true);
    assert_eq!((rose.verdict, rose.flip_counts["lost"]), (Word::Worse, 300));
    let policy = crate::gate::Policy::default();
    let code = |comparison: Comparison, summary: &Summary| {
        crate::gate::gate(summary, Some(("base".to_owned(), comparison)), &policy, crate::gate::GateFlags::default())
            .exit_code
    };
    assert_eq!((code(fell, &summary_b), code(rose, &summary_a)), (0, 1));
}

#[test]
fn samples_by_facets_are_compared_by_their_strata() {
    let plan = |strata: bool| {
        let mut plan = input(300);
        if strata {
            let of = |category: &str, value: &str, population| Stratum {
                category: category.to_owned(),
                facets: BTreeMap::from([("abstention".to_owned(), value.to_owned())]),
                population,
                n: 50,
            };
            let categories = plan.spec.dataset.population.keys();
            plan.spec.sample.strata = categories.flat_map(|c| [of(c, "no", 990), of(c, "yes", 10)]).collect();
        }
        plan
    };
    let run = |change: fn(&mut QuestionFacts)| {
        let mut run = RunFacts::new("judge", 10);
        for i in 0..300 {
            let mut facts =
                QuestionFacts { outcome: Outcome::Scored, scores: vec![("judge".into(), 0.0)], ..question(i) };
            change(&mut facts);
            run.add(&facts);
        }
        run
    };
    let (of_a, of_b) =
        (run(|_| {}), run(|facts| set_judge(facts, f64::from(u8::from(facts.facets["abstention"] == "yes")))));
    let difference = |first: bool, second: bool| {
        let (a, b) = (plan(first), plan(second));
        let summary = Aggregator::new(a.clone()).finish(std::iter::empty::<&str>()).summary;
        let side = |spec, facts| Side { spec, summary: &summary, facts, members: &[] };
        compare(&side(&a.spec, &of_a), &side(&b.spec, &of_b), &CompareOptions::default()).paired.difference
    };
    near(difference(true, true), 0.01);
    near(difference(false, true), 0.01);
    near(difference(true, false), 0.01);
}

#[test]
fn what_stratified_samples_share_is_weighted() {
    let spec = |stratified: bool, census: bool| {
        let mut spec = input(300).spec;
        (spec.sample.stratified, spec.sample.census) = (stratified, census);
        spec
    };
    let (sample, full, slice) = (spec(true, false), spec(true, true), spec(false, false));
    for (a, b, expected) in [
        (&sample, &sample, Estimator::Weighted),
        (&full, &sample, Estimator::Weighted),
        (&sample, &full, Estimator::Weighted),
        (&full, &full, Estimator::Mean),
        (&slice, &full, Estimator::Mean),
        (&sample, &slice, Estimator::Mean),
    ] {
        assert_eq!(estimator(a, b), expected, "{:?} {:?}", a.sample, b.sample);
    }
}

/// A full run and a sample of it by a metric that half of a category has no figure of: which one is named first is the sign alone.
#[test]
fn what_a_metric_applies_to_is_counted_among_what_both_runs_have() {
    let plan = |census: bool| {
        let mut plan = input(300);
        (plan.spec.sample.stratified, plan.spec.sample.census) = (true, census);
        plan
    };
    let (full, sample) = (plan(true), plan(false));
    // the judge has no figure of every second adversarial question, and the runs differ in opposite directions there and elsewhere
    let question_with = |i: u64, good: bool| {
        let scores = if i.is_multiple_of(6) { vec![] } else { vec![("judge".to_owned(), f64::from(u8::from(good)))] };
        QuestionFacts { outcome: Outcome::Scored, failure: None, scores, ..question(i) }
    };
    let run = |n: u64, adversarial: bool| {
        let mut run = RunFacts::new("judge", 10);
        (0..n).for_each(|i| run.add(&question_with(i, i.is_multiple_of(3) == adversarial)));
        run
    };
    let summary = Aggregator::new(full.clone()).finish(std::iter::empty::<&str>()).summary;
    let difference = |(spec_a, a): (&RunSpec, &RunFacts), (spec_b, b): (&RunSpec, &RunFacts)| {
        let side = |spec, facts| Side { spec, summary: &summary, facts, members: &[] };
        compare(&side(spec_a, a), &side(spec_b, b), &CompareOptions::default()).paired.difference
    };
    let (of_full, of_sample) = (run(300, false), run(60, true));
    // 446 adversarial questions, of which a half counts, 841 and 321
    let expected = (223.0 - 841.0 - 321.0) / (223.0 + 841.0 + 321.0);
    near(difference((&full.spec, &of_full), (&sample.spec, &of_sample)), expected);
    near(difference((&sample.spec, &of_sample), (&full.spec, &of_full)), -expected);
    // what only a later repeat has is counted too, and a failure takes no reason away
    let mut broken = RunFacts::new("judge", 10);
    (0..30).map(question).for_each(|facts| {
        broken.add(&QuestionFacts { outcome: Outcome::InfraError, scores: vec![], ..facts });
    });
    let mean = RunFacts::mean(vec![broken.clone(), run(60, true), broken]);
    near(difference((&full.spec, &of_full), (&sample.spec, &mean)), expected);
    near(difference((&sample.spec, &mean), (&full.spec, &of_full)), -expected);
}

#[test]
fn the_value_beside_an_interval_is_the_one_that_it_is_around() {
    // by a metric that is not the headline's
    let input = input(300);
    let mut run = RunFacts::new("locomo-f1", 10);
    let mut aggregator = Aggregator::new(input.clone());
    (0..300).map(question).for_each(|facts| {
        run.add(&facts);
        aggregator.add(&facts);
    });
    let mut summary = aggregator.finish(std::iter::empty::<&str>()).summary;
    for estimator in [Estimator::Mean, Estimator::Weighted] {
        summary.headline.estimator = estimator;
        let side = Side { spec: &input.spec, summary: &summary, facts: &run, members: &[] };
        let compared = compared_run(&side, "locomo-f1");
        let score = summary.scores.iter().find(|score| score.metric == "locomo-f1").expect("is there");
        let expected = if estimator == Estimator::Mean { score.micro } else { score.weighted };
        assert_eq!((compared.value, &compared.ci95), (expected, &score.ci95));
    }
}

#[test]
fn a_run_that_is_read_in_parts_is_the_same_run() {
    let part = |questions: std::ops::Range<u64>| {
        let mut part = RunFacts::new("judge", 10);
        questions.for_each(|i| part.add(&question(i)));
        part
    };
    let whole = part(0..300);
    let mut merged = part(170..300);
    merged.settle();
    merged.merge(part(0..80));
    merged.merge(part(80..170));
    let (of_whole, of_merged) =
        (PairedFacts::by_question(&whole, &part(0..300)), PairedFacts::by_question(&whole, &merged));
    assert_eq!((of_merged.ids, of_merged.pairs), (of_whole.ids, of_whole.pairs));
    let swapped = PairedFacts::by_question(&merged, &whole);
    let named = |facts: &PairedFacts<'_>| {
        let name = |pair: &Pair| (facts.banks[pair.cluster as usize].clone(), facts.category(pair).to_owned());
        facts.pairs.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(
        named(&swapped),
        named(&PairedFacts::by_question(&whole, &whole)),
        "banks and categories keep their names"
    );
}

#[test]
fn only_questions_that_both_runs_scored_count_and_the_others_are_told() {
    let comparison = compared(330, |i, facts| {
        if i % 11 == 2 {
            facts.outcome = Outcome::InfraError;
            facts.scores.clear();
        }
    });
    assert_eq!(comparison.unpaired, bench_proto::comparison::Unpaired { only_a: 30, only_b: 0, neither: 30 });
    assert_eq!(comparison.paired.n, 270);
    assert_eq!(comparison.paired.difference, Some(0.0));
}

#[test]
fn flips_are_counted_listed_and_ordered_lost_first() {
    let comparison = compared(300, |i, facts| match i % 50 {
        7 => set_judge(facts, 0.0),
        8 | 9 => set_judge(facts, 1.0),
        _ => {}
    });
    let counts = &comparison.flip_counts;
    assert_eq!(counts["won"] + counts["lost"], comparison.flips.len() as u64);
    assert_eq!(comparison.mcnemar.only_a, counts["lost"]);
    assert_eq!(comparison.mcnemar.only_b, counts["won"]);
    let directions: Vec<&str> = comparison.flips.iter().map(|flip| flip.direction.as_str()).collect();
    assert!(directions.is_sorted(), "lost before won: {directions:?}");
}

#[test]
fn of_many_flips_as_many_lost_as_won_are_listed() {
    let listed = |lost: usize, won: usize, most: usize| {
        let of = alike((0..lost + won).collect(), lost, most);
        let lost_listed = of.iter().filter(|place| **place < lost).count();
        (lost_listed, of.len() - lost_listed)
    };
    assert_eq!(listed(80, 70, 100), (50, 50));
    assert_eq!(listed(80, 10, 50), (40, 10), "few won ones leave room");
    assert_eq!(listed(3, 70, 10), (3, 7));
    assert_eq!((listed(2, 1, 10), listed(0, 0, 10), listed(9, 9, 1)), ((2, 1), (0, 0), (1, 0)));
}

#[test]
fn where_checks_disagree_a_note_says_so() {
    let said = |word: Word, ci95: (f64, f64), mcnemar_p: f64, bootstrap: Option<(f64, f64)>| {
        let interval = |(low, high): (f64, f64)| Interval { low, high, method: String::new() };
        let mut comparison = compared(30, |_, _| {});
        comparison.mcnemar.p_value = mcnemar_p;
        let paired =
            PairedDifference { verdict: word, p_value: Some(0.018), ci95: Some(interval(ci95)), ..comparison.paired };
        disagreement(&paired, &comparison.mcnemar, bootstrap.map(interval).as_ref())
    };
    let worse = (-0.05, -0.01);
    let note = said(Word::Worse, worse, 0.44, Some(worse)).expect("a note");
    assert!(note.contains("WORSE at p 0.018") && note.contains("p 0.440") && note.contains("no firm result"), "{note}");
    assert!(said(Word::Worse, worse, 0.01, Some((-0.06, 0.01))).is_some_and(|note| note.contains("bootstrap")));
    assert!(said(Word::Inconclusive, (-0.05, 0.01), 0.001, None).is_some_and(|note| note.contains("ignores banks")));
    assert_eq!(said(Word::Worse, worse, 0.01, Some(worse)), None);
    assert_eq!(said(Word::NoChange, (-0.01, 0.01), 0.3, None), None);
}

#[test]
fn a_category_that_may_have_changed_by_chance_among_so_many_is_named() {
    let said = |word: Word, p_holm: Option<f64>| {
        let mut by_category = compared(60, |_, _| {}).by_category;
        let first = &mut by_category[0].paired;
        (first.verdict, first.p_holm) = (word, p_holm);
        chance_among(&by_category)
    };
    let note = said(Word::Worse, Some(0.08)).expect("a note");
    assert!(note.contains("(WORSE by its own interval)") && note.contains("among 3 categories"), "{note}");
    for (word, p_holm) in [(Word::Worse, Some(0.01)), (Word::Inconclusive, Some(0.5)), (Word::Better, None)] {
        assert_eq!(said(word, p_holm), None, "{word:?} {p_holm:?}");
    }
}

#[test]
fn rounding_is_no_difference() {
    let pairs: Vec<Pair> = pairs().into_iter().map(|pair| Pair { a: 0.1 + 0.2, b: 0.3, ..pair }).collect();
    let paired = difference(&pairs, Estimator::Weighted);
    assert_eq!((paired.difference, paired.p_value, paired.verdict), (Some(0.0), Some(1.0), Word::NoChange));
}

/// A dataset's profile says by which rubrics its answers are graded, and in which styles they are given.
#[test]
fn who_grades_and_what_answers_look_like_is_not_the_dataset() {
    let run = |judged: bool, provider: &str, rubric: &str| {
        let mut spec = crate::aggregator::tests::spec(10);
        for rules in spec.dataset.profile.categories.values_mut() {
            (rules.rubric, rules.style) = (Some(rubric.to_owned()), Some("free".to_owned()));
        }
        spec.judges.truncate(usize::from(judged));
        provider.clone_into(&mut spec.answerer.provider);
        spec
    };
    let single = run(true, "openai", "judge-single");
    let unjudged = run(false, "openai", "judge-single");
    assert_eq!(reasons(&single, &unjudged, "locomo-f1"), Vec::<String>::new(), "both have this metric alike");
    let open = run(true, "openai", "judge-open");
    assert_eq!(reasons(&single, &open, "locomo-f1"), Vec::<String>::new());
    let graders = reasons(&single, &open, "judge");
    assert!(graders.len() == 1 && graders[0].starts_with("the graders of 'judge' differ"), "{graders:?}");
    let mut again = single.clone();
    again.taken_over.answered_again = 1;
    let tries = reasons(&single, &again, "judge");
    assert!(tries.len() == 1 && tries[0].contains("the better of several tries"), "{tries:?}");
    assert_eq!(reasons(&again, &again.clone(), "judge"), Vec::<String>::new());
    let demo = run(true, "extractive", "judge-single");
    assert_eq!(reasons(&single, &demo, "judge"), Vec::<String>::new(), "the answerers differ, and nothing else");
    let setting = |name: &str| {
        let mut spec = single.clone();
        spec.dataset.settings.insert(name.to_owned(), true.into());
        reasons(&single, &spec, "judge")
    };
    assert_eq!(setting("judge_without_halves"), graders, "which mistakes a judge makes");
    assert_eq!(setting("seed"), ["the datasets differ"]);
}

#[test]
fn one_thing_may_differ_and_two_may_not() {
    let compared = |change: &dyn Fn(&mut RunSpec), declared: &[&str]| {
        let a = crate::aggregator::tests::spec(10);
        let mut b = a.clone();
        change(&mut b);
        let declared: Vec<String> = declared.iter().map(|group| (*group).to_owned()).collect();
        let side = |spec| RunSettings { spec, imported: false };
        fingerprints::comparability(&side(&a), &side(&b), "judge", &declared)
    };
    let system = |spec: &mut RunSpec| spec.system.top_k = 5;
    let both = |spec: &mut RunSpec| {
        spec.system.top_k = 5;
        spec.answerer.version += 1;
    };
    let judge = |spec: &mut RunSpec| spec.judges[0].version += 1;
    let found = compared(&system, &[]);
    assert!(found.reasons.is_empty() && found.under_test.as_deref() == Some("system"), "{found:?}");
    assert!(found.differences[0].under_test);
    assert_eq!(compared(&both, &[]).reasons.len(), 1);
    assert!(compared(&both, &["system", "answerer"]).reasons.is_empty());
    assert_eq!(compared(&judge, &[]).reasons.len(), 1);
    assert!(compared(&judge, &["grading"]).reasons.is_empty());
    assert_eq!(compared(&|spec| spec.dataset.sha256 = "x".into(), &["all"]).reasons, ["the datasets differ"]);
    let changed = compared(&|spec| spec.dataset.profile.methodology = 2, &["all"]);
    let why = "the dataset's methodology has changed between the runs (version 1, then 2): their scores do not mean the same; run the \
               older one again";
    assert_eq!(changed.reasons, [why]);
    let keys: Vec<&str> = changed.differences.iter().map(|marked| marked.key.as_str()).collect();
    assert_eq!(keys, ["dataset.profile.methodology"], "what else the profile says is the same");
    let further = compared(
        &|spec| spec.scorers.push(ScorerSpec { name: "exact".into(), version: 1, ..ScorerSpec::default() }),
        &[],
    );
    assert!(
        further.reasons.is_empty() && further.under_test.is_none(),
        "a further scorer changes no judge: {further:?}"
    );
    let sample = compared(&|spec| spec.sample.signature = "other".into(), &[]);
    assert!(sample.reasons.is_empty() && sample.notes.len() == 1, "{sample:?}");
}

#[test]
fn another_rubric_is_another_grader_and_no_other_dataset() {
    let with = |rubric: &str| {
        let mut spec = crate::aggregator::tests::spec(10);
        let rules = spec.dataset.profile.categories.get_mut("temporal").expect("is LoCoMo's");
        rules.rubric = Some(rubric.to_owned());
        spec.dataset.profile.by_gold.abstain = Some(rubric.to_owned());
        spec
    };
    let (a, b) = (with("judge-open"), with("judge-multi"));
    let compared = |metric: &str, declared: &[&str]| {
        let declared: Vec<String> = declared.iter().map(|group| (*group).to_owned()).collect();
        let side = |spec| RunSettings { spec, imported: false };
        fingerprints::comparability(&side(&a), &side(&b), metric, &declared)
    };
    let undeclared = compared("judge", &[]).reasons;
    assert!(undeclared.len() == 1 && undeclared[0].contains("the graders of 'judge' differ"), "{undeclared:?}");
    let declared = compared("judge", &["grading"]);
    assert!(declared.reasons.is_empty() && declared.differences.len() == 2, "{declared:?}");
    assert_eq!(declared.under_test.as_deref(), Some("grading"));
    let scorer = compared("locomo-f1", &[]);
    assert!(scorer.reasons.is_empty() && scorer.under_test.is_none(), "no scorer asks for a rubric: {scorer:?}");
}

/// Whether two settings may be compared by a metric, and why not.
fn reasons(a: &RunSpec, b: &RunSpec, metric: &str) -> Vec<String> {
    let side = |spec| RunSettings { spec, imported: false };
    fingerprints::comparability(&side(a), &side(b), metric, &[]).reasons
}

#[test]
fn a_profile_that_says_by_what_is_graded_is_no_other_dataset() {
    let judged = {
        let mut spec = crate::aggregator::tests::spec(10);
        // a dataset of its own rubrics, as most are
        spec.dataset.profile.checks.clear();
        spec.dataset.profile.totals.clear();
        spec
    };
    assert!(!judged.dataset.profile.is_implied(), "its rubrics are told where there are judges");
    let unjudged = RunSpec { judges: Vec::new(), ..judged.clone() };
    assert_eq!(reasons(&judged, &unjudged, "locomo-f1"), Vec::<String>::new(), "both have it, and no judge changes it");
    let mut other = judged.clone();
    other.dataset.profile.categories.values_mut().for_each(|rules| rules.rubric = Some("judge-graded".to_owned()));
    assert_eq!(reasons(&judged, &other, "locomo-f1"), Vec::<String>::new());
    let graders = reasons(&judged, &other, "judge");
    assert!(graders.len() == 1 && graders[0].starts_with("the graders of 'judge' differ"), "{graders:?}");
    let mut golds = judged.clone();
    golds.dataset.profile.categories.values_mut().for_each(|rules| rules.unanswerable ^= true);
    assert_eq!(reasons(&judged, &golds, "judge"), ["the datasets differ"]);
}

#[test]
fn another_counting_is_the_reason_and_no_other_dataset() {
    let counted = |spec: &RunSpec, name: &str| {
        let mut spec = spec.clone();
        spec.counting = Some(CountingSpec { name: name.to_owned(), ..CountingSpec::default() });
        spec.dataset.profile.headline.without = vec!["adversarial".to_owned()];
        spec.dataset.profile.by_gold = GoldRubrics::default();
        spec.dataset.profile.categories.values_mut().for_each(|rules| rules.rubric = Some(format!("judge-{name}")));
        spec
    };
    let ours = crate::aggregator::tests::spec(10);
    assert!(ours.dataset.profile.is_implied());
    let (theirs, others) = (counted(&ours, "mem0-2025"), counted(&ours, "hindsight"));
    let between = reasons(&ours, &theirs, "judge");
    assert!(between[0].starts_with("one run is counted as our own rules say, the other as mem0-2025"), "{between:?}");
    assert!(between[1..].iter().all(|reason| reason.starts_with("the graders of 'judge' differ")), "{between:?}");
    let between = reasons(&theirs, &others, "judge");
    assert!(between.iter().all(|reason| reason != "the datasets differ"), "{between:?}");
}

#[test]
fn a_second_judge_changes_nothing_of_the_first() {
    let one = crate::aggregator::tests::spec(10);
    let mut two = one.clone();
    two.judges.push(two.judges[0].clone());
    two.judges[1].name = "another".to_owned();
    assert_eq!(reasons(&one, &two, "judge"), Vec::<String>::new());
    let mut other_first = two.clone();
    other_first.judges.swap(0, 1);
    assert_eq!(reasons(&one, &other_first, "judge").len(), 1, "its first judge is another");
    assert_eq!(reasons(&two, &other_first, "judge-2").len(), 1);
    let more_votes = RunSpec { votes: 3, ..two };
    assert_eq!(reasons(&one, &more_votes, "judge").len(), 1);
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

#[test]
fn p45_turns_are_not_compared_with_a_run_whose_hits_carry_none() {
    let facts = |carries: bool| {
        let mut run = RunFacts::new("locomo-f1", 10);
        for i in 0..60 {
            let mut facts = question(i);
            // a recall without any hit is no sign of turns
            if let Some(retrieval) = facts.retrieval.as_mut().filter(|_| !carries) {
                let empty = i % 4 == 3;
                retrieval.turn = if empty {
                    bench_proto::step::RankHits { gold: 1, ..Default::default() }
                } else {
                    Default::default()
                };
            }
            run.add(&facts);
        }
        run
    };
    let levels = |a: &RunFacts, b: &RunFacts| {
        let joined = PairedFacts::by_question(a, b);
        (joined.turn_recall.len(), joined.session_recall.len())
    };
    let (with, without) = (facts(true), facts(false));
    let (turns, sessions) = levels(&with, &with);
    assert!(turns > 0 && turns == sessions);
    assert_eq!(levels(&with, &without), (0, sessions));
    assert_eq!(levels(&without, &with), (0, sessions));
}

#[test]
fn sessions_are_compared_where_as_many_hits_were_asked_for() {
    let (input, summary) = (input(60), {
        let mut aggregator = Aggregator::new(input(60));
        (0..60).for_each(|i| aggregator.add(&question(i)));
        aggregator.finish(std::iter::empty::<&str>()).summary
    });
    let facts = |asked: u32| {
        let mut facts = RunFacts::new("judge", 3).asking_for(asked);
        (0..60).for_each(|i| facts.add(&question(i)));
        facts
    };
    let levels = |a: &RunFacts, b: &RunFacts| {
        let side = |facts| Side { spec: &input.spec, summary: &summary, facts, members: &[] };
        let compared = compare(&side(a), &side(b), &CompareOptions::default());
        let said = compared.notes.iter().any(|note| note.starts_with("session recall is not compared"));
        let levels: Vec<(String, u32)> = compared.retrieval.into_iter().map(|level| (level.level, level.k)).collect();
        (levels, said)
    };
    let (turn, session) = (("turn".to_owned(), 3), ("session".to_owned(), 3));
    assert_eq!(levels(&facts(3), &facts(3)), (vec![turn.clone(), session], false));
    assert_eq!(levels(&facts(3), &facts(10)), (vec![turn.clone()], true));
    // the mean of runs that asked for different numbers, whichever is the first
    assert_eq!(levels(&RunFacts::mean(vec![facts(10), facts(3)]), &facts(10)), (vec![turn], true));
}

#[test]
fn a_mean_of_runs_has_no_figure_of_its_first_one() {
    let (input, summary) = (input(60), {
        let mut aggregator = Aggregator::new(input(60));
        (0..60).for_each(|i| aggregator.add(&question(i)));
        aggregator.finish(std::iter::empty::<&str>()).summary
    });
    let headline = summary.headline.metric.clone();
    let mut others = summary.scores.iter().filter(|score| score.metric != headline && score.n > 0);
    let other = others.next().expect("has another metric").metric.clone();
    let facts = RunFacts::new(&headline, 3);
    let known = |metric: &str, runs: &[&str]| {
        let member = |id: &&str| {
            let one = Member::new(&input.spec, &summary, (*id).to_owned(), false);
            Member { id: (*id).to_owned(), ..one }
        };
        let members: Vec<Member> = runs.iter().map(member).collect();
        let side = Side { spec: &input.spec, summary: &summary, facts: &facts, members: &members };
        compared_run(&side, metric).value.is_some()
    };
    assert!(known(&headline, &["a"]) && known(&other, &["a"]), "a run has its own");
    assert!(known(&headline, &["a", "b"]), "that of the mean is computed");
    assert!(!known(&other, &["a", "b"]));
}

#[test]
fn each_cell_counts_alike_however_many_of_its_runs_have_ended() {
    let run = |grade: f64| {
        let mut run = RunFacts::new("judge", 10);
        for i in 0..30 {
            let scores = vec![("judge".to_owned(), grade)];
            run.add(&QuestionFacts { outcome: Outcome::Scored, failure: None, scores, ..question(i) });
        }
        run
    };
    let mean = RunFacts::mean_of_cells(vec![vec![run(1.0), run(1.0)], vec![run(0.0)], Vec::new()]);
    let scores: Vec<f64> = mean.scores_by_id().map(|(.., score)| score).collect();
    assert_eq!(scores, [0.5; 30]);
}
