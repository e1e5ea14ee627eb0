//! Which runs may be compared, and what is said of those that may not.

use bench_proto::{counting::CountingSpec, profile::GoldRubrics};

use super::*;

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
