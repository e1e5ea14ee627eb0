use bench_proto::{
    comparison::{PairedDifference, Word},
    dataset::FilterParts,
    facts::{Outcome, QuestionFacts},
    metric::MetricSpec,
    spec::ScorerSpec,
    summary::Interval,
};

use super::{pairs::Pair, *};
use crate::{
    Aggregator,
    aggregator::tests::{input, question},
};

mod comparable;
mod in_common;
mod numbers;

#[track_caller]
fn near(got: Option<f64>, expected: f64) {
    assert!(got.is_some_and(|got| (got - expected).abs() < 1e-9), "{got:?} instead of {expected}");
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
fn runs_of_one_digest_are_equal_and_say_so_also_where_few_questions_decide_nothing() {
    let few = compared(30, |_, _| {});
    assert_eq!((few.equal, few.verdict), (true, Word::Inconclusive));
    let other = compared(30, |i, facts| {
        if i == 2 {
            set_judge(facts, 0.25);
        }
    });
    assert!(!other.equal, "{:?}", other.paired);

    // what a folder's report says of its digest is held against its questions
    let input = input(30);
    let run = |score: f64, digest: &str| -> Made {
        let (mut run, mut aggregator) = (RunFacts::new("judge", 10), Aggregator::new(input.clone()));
        for i in 0..30 {
            let mut facts = question(i);
            set_judge(&mut facts, score);
            run.add(&facts);
            aggregator.add(&facts);
        }
        let mut summary = aggregator.finish(std::iter::empty::<&str>()).summary;
        summary.result_digest = digest.to_owned();
        (input.spec.clone(), run, summary)
    };
    let equal = |a: &Made, b: &Made| compare(&side(a), &side(b), &CompareOptions::default()).equal;
    assert!(equal(&run(1.0, "d"), &run(1.0, "d")));
    assert!(!equal(&run(1.0, "d"), &run(0.0, "d")), "of equal digests, and other scores");
    assert!(!equal(&run(1.0, "d"), &run(1.0, "e")), "by another metric or outcome they differ");
    assert!(!equal(&run(1.0, ""), &run(1.0, "")), "nobody computed any");
}

/// What a side of a comparison is made of.
type Made = (RunSpec, RunFacts, Summary);

fn side(of: &Made) -> Side<'_> {
    Side { spec: &of.0, facts: &of.1, summary: &of.2, members: &[] }
}

#[test]
fn runs_that_did_not_keep_to_filters_alike_are_not_comparable_whatever_is_under_test() {
    let run = |unfiltered: FilterParts, outside: u32| -> Made {
        let mut input = input(60);
        input.spec.sample.unfiltered = unfiltered;
        let (mut run, mut aggregator) = (RunFacts::new("judge", 10), Aggregator::new(input.clone()));
        for i in 0..60 {
            let mut facts = question(i);
            facts.retrieval.iter_mut().for_each(|found| found.outside = Some(outside));
            run.add(&facts);
            aggregator.add(&facts);
        }
        let mut summary = aggregator.finish(std::iter::empty::<&str>()).summary;
        let is_said = summary.warnings.iter().any(|line| line.contains("was ignored in 60 of 60 recalls"));
        assert_eq!(is_said, outside > 0, "{:?}", summary.warnings);
        summary.run.verdict = Verdict::Valid;
        (input.spec, run, summary)
    };
    let options = CompareOptions { under_test: vec!["all".to_owned()], ..CompareOptions::default() };
    let reasons = |a: &Made, b: &Made| compare(&side(a), &side(b), &options).reasons;
    let tags = FilterParts { tags: true, ..FilterParts::default() };
    let (kept, without, ignored) = (run(FilterParts::default(), 0), run(tags, 2), run(FilterParts::default(), 2));
    assert_eq!((reasons(&kept, &kept).len(), reasons(&without, &without).len()), (0, 0));
    let begin = "the questions' filters were not kept to alike: ";
    let of_parts = format!("{begin}the first run asked with all of their parts, the second without tags");
    assert_eq!(reasons(&kept, &without), [of_parts]);
    let of_hits = "they were ignored in 0 of 60 recalls of the first run, and in 60 of 60 of the second";
    assert_eq!(reasons(&kept, &ignored), [format!("{begin}{of_hits}")]);
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
fn a_difference_among_many_pairs_decides_by_its_corrected_p() {
    assert_eq!(in_view_of_all(Word::Worse, Some(0.34)), Word::Inconclusive);
    assert_eq!(in_view_of_all(Word::Better, None), Word::Inconclusive);
    assert_eq!(in_view_of_all(Word::Better, Some(0.01)), Word::Better);
    assert_eq!(in_view_of_all(Word::NoChange, Some(1.0)), Word::NoChange);
}

#[test]
fn a_category_that_may_have_changed_by_chance_among_so_many_decides_nothing_and_is_named() {
    let said = |p_values: [f64; 3], better: Better| {
        let mut by_category = compared(60, |_, _| {}).by_category;
        for (category, p) in by_category.iter_mut().zip(p_values) {
            let interval = Interval { low: -0.3, high: -0.1, method: String::new() };
            category.paired = PairedDifference {
                verdict: difference::word(&interval, category.paired.tolerance, better),
                ci95: Some(interval),
                p_value: Some(p),
                ..category.paired.clone()
            };
        }
        correct(by_category.iter_mut().map(|category| &mut category.paired));
        let words: Vec<Word> = by_category.iter().map(|category| category.paired.verdict).collect();
        (words, by_category[2].category.clone(), chance_among(&by_category, better))
    };
    let (words, third, note) = said([0.001, 0.002, 0.071], Better::Higher);
    assert_eq!(words, [Word::Worse, Word::Worse, Word::Inconclusive]);
    let note = note.expect("a note");
    let wanted = format!("among 3 categories a change like that of {third} (WORSE by its own interval) is no surprise");
    assert!(note.starts_with(&wanted) && note.ends_with(": INCONCLUSIVE"), "{note}");
    let (words, _, note) = said([0.001, 0.002, 0.071], Better::Lower);
    assert_eq!(words, [Word::Better, Word::Better, Word::Inconclusive]);
    assert!(note.is_some_and(|note| note.contains("(BETTER by its own interval)")));
    // the second smallest of three counts twice
    assert_eq!(said([0.001, 0.03, 0.03], Better::Higher).0, [Word::Worse, Word::Inconclusive, Word::Inconclusive]);
    assert_eq!(said([0.001, 0.002, 0.003], Better::Higher).2, None);
    let unchanged = compared(60, |_, _| {}).by_category;
    assert_eq!(chance_among(&unchanged, Better::Higher), None);
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
