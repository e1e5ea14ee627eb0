use super::*;
use crate::{metric::Scale, money::PicoUsd, probe::ProbePlan, profile::CategoryRules};

const GOLDEN: &str = include_str!("../../golden/run_spec.v1.json");

fn golden() -> RunSpec {
    serde_json::from_str(GOLDEN).expect("the golden spec is a spec")
}

#[test]
fn a_stored_spec_is_read_without_what_later_builds_add_and_keeps_its_fingerprint() {
    let spec = golden();
    assert_eq!(spec.limits, Limits::default(), "limits that an old build did not store have their defaults");
    let stored: Value = serde_json::from_str(GOLDEN).expect("JSON");
    let again = serde_json::to_value(&spec).expect("serialises");
    for (key, value) in stored.as_object().expect("an object").iter().filter(|(key, _)| *key != "limits") {
        assert_eq!(&again[key.as_str()], value, "{key}");
    }
    assert_eq!(spec.fingerprint().hex(), "07c5a320922759d7a0e5eaee0d0749ad739b2853ca4be889d6a22fb6847e6f11");
}

#[test]
fn p13_a_profile_is_stored_and_counts_where_it_is_not_the_implied_one() {
    assert!(golden().dataset.profile.is_implied());
    let mut own = golden();
    own.dataset.profile.headline.without = vec!["trap".into()];
    own.dataset.profile.categories.insert("trap".into(), CategoryRules::default());
    let stored = serde_json::to_string(&own).expect("serialises");
    assert_eq!(serde_json::from_str::<RunSpec>(&stored).expect("a spec"), own);
    let of_profile = |spec: &RunSpec| -> Vec<String> {
        let keys = spec.fingerprint_parts().into_keys();
        keys.filter_map(|key| key.strip_prefix("dataset.profile.").map(str::to_owned)).collect()
    };
    assert_eq!((of_profile(&golden()).len(), of_profile(&own).len()), (0, 12));
    // the first methodology is that of every run before there were versions of it
    assert!(!stored.contains("methodology"), "{stored}");
    // the implied one says the same of all other categories
    let differing = |a: &RunSpec, b: &RunSpec| a.differences(b).into_iter().map(|d| d.key).collect::<Vec<_>>();
    let expected = ["dataset.profile.headline.without", "dataset.profile.rubric.trap"];
    assert_eq!(
        (differing(&golden(), &own), differing(&own, &golden())),
        (expected.map(String::from).into(), expected.map(String::from).into())
    );
    let mut unjudged = [golden(), own];
    unjudged.iter_mut().for_each(|spec| spec.judges.clear());
    assert_eq!(differing(&unjudged[0], &unjudged[1]), expected[..1]);
    let of_scores = ["gold.multi-hop", "gold.open-domain", "headline.without", "unanswerable.adversarial"];
    assert_eq!(of_profile(&unjudged[1]), of_scores);
}

#[test]
fn p13_what_can_change_a_score_changes_the_fingerprint() {
    type Change = fn(&mut RunSpec);
    let changes: [(&str, Change); 14] = [
        ("scenario", |s| s.scenario = Scenario::RetrieveOnly),
        ("recalls.rephrased", |s| s.recalls.rephrased = 3),
        ("recalls.at_most", |s| s.recalls.at_most = 3),
        ("dataset.sha256", |s| s.dataset.sha256 = "01".into()),
        ("dataset.loader", |s| s.dataset.loader += 1),
        ("dataset.profile.methodology", |s| s.dataset.profile.methodology = 2),
        ("sample.signature", |s| s.sample.signature = "x".into()),
        ("sample.strata", |s| {
            let facets = [("abstention".to_owned(), "yes".to_owned())].into();
            s.sample.strata = vec![Stratum { facets, ..Stratum::default() }];
        }),
        ("system.version", |s| s.system.version = "4".into()),
        ("system.settings.bm25.b", |s| drop(s.system.settings.insert("bm25.b".into(), 0.5.into()))),
        ("answerer.params.temperature", |s| drop(s.answerer.params.insert("temperature".into(), 1.into()))),
        ("judges.0.prompts.judge", |s| drop(s.judges[0].prompts.insert("judge".into(), "ef".into()))),
        ("votes", |s| s.votes = 5),
        ("scorers.locomo-f1", |s| s.scorers[0].version += 1),
    ];
    for (key, change) in changes {
        let mut changed = golden();
        change(&mut changed);
        assert_ne!(changed.fingerprint(), golden().fingerprint(), "{key}");
        let differences = golden().differences(&changed);
        assert_eq!(differences.iter().map(|d| d.key.as_str()).collect::<Vec<_>>(), [key]);
    }
}

#[test]
fn p45_controls_are_compared_by_the_first_metric_of_the_scorer_at_the_head() {
    let mut spec = golden();
    spec.judges.clear();
    let metrics = ["pairs", "drift"].map(|name| MetricSpec { name: name.into(), ..MetricSpec::default() });
    let pairs = ScorerSpec { name: "pairs".into(), version: 1, metrics: metrics.to_vec(), of_recalls: true };
    spec.scorers = vec![ScorerSpec { name: "exact".into(), version: 1, ..ScorerSpec::default() }, pairs];
    for (headline, expected, of_recalls) in
        [(None, "exact", false), (Some("drift"), "pairs", true), (Some("of an import"), "of an import", false)]
    {
        spec.headline = headline.map(str::to_owned);
        let metric = spec.headline_metric();
        assert_eq!((spec.control_metric().as_str(), spec.grades_recalls(&metric)), (expected, of_recalls));
    }
    spec.scenario = Scenario::RetrieveOnly;
    assert!(spec.grades_recalls("exact"), "there are no answers");
}

#[test]
fn a_fork_knows_who_recalled_and_who_answered() {
    let first = TakenOver::default();
    assert_eq!(TakenOver::of_fork(Phase::Recall, "a", &first), first);
    let answered = TakenOver::of_fork(Phase::Answer, "a", &first);
    assert_eq!(answered, TakenOver { recalls_of: Some("a".to_owned()), ..TakenOver::default() });
    let judged = TakenOver::of_fork(Phase::Judge, "b", &answered);
    let both = [Some("a".to_owned()), Some("b".to_owned())];
    assert_eq!([judged.recalls_of.clone(), judged.answers_of.clone()], both);
    let again = TakenOver { answered_again: 1, ..answered.clone() };
    assert_eq!(TakenOver::of_fork(Phase::Judge, "b", &again).answered_again, 1, "its answers are those");
    assert_eq!(TakenOver::of_fork(Phase::Answer, "b", &again).answered_again, 0, "all are answered anew");
    let fork = RunSpec { taken_over: again, ..golden() };
    assert_ne!(fork.fingerprint(), golden().fingerprint(), "other answers");
    assert_eq!(TakenOver::of_fork(Phase::Judge, "c", &judged), judged);
    let fork = RunSpec { taken_over: judged, ..golden() };
    assert_eq!(fork.fingerprint(), golden().fingerprint());
    let reuses = TakenOver { banks_of: vec!["a".to_owned()], ..TakenOver::default() };
    let named = TakenOver { bank: Some("prod".to_owned()), ..TakenOver::default() };
    assert!(reuses.asks_filled_banks() && named.asks_filled_banks() && !TakenOver::default().asks_filled_banks());
    assert_eq!(TakenOver::of_fork(Phase::Answer, "b", &reuses).banks_of, Vec::<String>::new(), "it asks none");
    let spec = |taken_over| RunSpec { taken_over, ..golden() };
    assert_eq!(spec(reuses.clone()).fingerprint(), golden().fingerprint(), "they hold the same");
    assert_ne!(spec(named).fingerprint(), golden().fingerprint(), "nobody knows what it holds");
    let archive = |filled_by: Option<&str>| TakenOver {
        archive: Some(AskedArchive { name: "a".into(), sha256: "0a".into(), filled_by: filled_by.map(str::to_owned) }),
        ..TakenOver::default()
    };
    assert!(archive(None).asks_filled_banks());
    assert_eq!(spec(archive(None)).fingerprint(), golden().fingerprint(), "they hold what the run would have filled");
    assert_ne!(spec(archive(Some("other 2"))).fingerprint(), golden().fingerprint(), "another system has filled them");
    assert_eq!(
        TakenOver::of_fork(Phase::Judge, "b", &archive(Some("other 2"))).archive,
        archive(Some("other 2")).archive
    );
    let stored = serde_json::to_string(&spec(reuses.clone())).expect("serialises");
    assert_eq!(serde_json::from_str::<RunSpec>(&stored).expect("a spec").taken_over, reuses);
    let stored = serde_json::to_string(&golden()).expect("serialises");
    assert!(!stored.contains("taken_over"), "{stored}");
}

#[test]
fn a_metric_is_read_as_its_scorer_says() {
    let mut spec = golden();
    let drift = MetricSpec { name: "drift".into(), scale: Scale::lower(0.0) };
    let passed = MetricSpec { name: "passed".into(), scale: Scale::PLAIN };
    spec.judges.clear();
    spec.scorers =
        vec![ScorerSpec { name: "pairs".into(), version: 1, metrics: vec![passed, drift], of_recalls: true }];
    assert_eq!((spec.headline_metric().as_str(), spec.metric("drift")), ("passed", Scale::lower(0.0)));
    assert_eq!([spec.metric("passed"), spec.metric("judge")], [Scale::PLAIN; 2]);
    let stored = serde_json::to_string(&spec).expect("serialises");
    assert_eq!(serde_json::from_str::<RunSpec>(&stored).expect("a spec"), spec);
}

#[test]
fn p13_a_judges_further_metrics_are_read_as_its_rubrics_say_and_their_forms_count() {
    let mut spec = golden();
    assert!(!spec.judges.is_empty() && !spec.fingerprint_parts().keys().any(|key| key.starts_with("judging")));
    spec.judges.push(spec.judges[0].clone());
    let made_up = MetricSpec { name: "made-up".into(), scale: Scale::lower(0.0) };
    spec.judging =
        JudgingSpec { forms: BTreeMap::from([("graded".into(), 2)]), metrics: vec![made_up], samples: vec![] };
    assert_eq!(spec.judge_metrics(), ["judge", "judge.made-up", "judge-2", "judge-2.made-up"]);
    assert_eq!([spec.metric("judge.made-up"), spec.metric("judge-2.made-up")], [Scale::lower(0.0); 2]);
    assert_eq!([spec.metric("judge"), spec.metric("judge-3.made-up"), spec.metric("made-up")], [Scale::PLAIN; 3]);
    let stored = serde_json::to_string(&spec).expect("serialises");
    assert_eq!(serde_json::from_str::<RunSpec>(&stored).expect("a spec"), spec);
    assert_eq!(spec.fingerprint_parts()["judging.forms.graded"], "2");
    // one rubric for all questions is one difference, whatever the profile says of each
    let mut only = golden();
    only.dataset.profile.only_rubric = Some("judge-graded".into());
    let keys: Vec<String> = golden().differences(&only).into_iter().map(|d| d.key).collect();
    assert_eq!(keys, ["judging.rubric"]);
    let mut own = [golden(), only];
    own.iter_mut().for_each(|spec| spec.dataset.profile.headline.without = vec!["temporal".into()]);
    assert_eq!(own[0].differences(&own[1]).len(), 1);
}

#[test]
fn p13_a_judge_of_a_sample_and_answers_of_a_run_count_where_they_are() {
    let mut sampled = golden();
    sampled.judging.samples = vec![JudgedSample { judge: 1, version: 1, n: 200, cutoffs: BTreeMap::new() }];
    let mut other = sampled.clone();
    other.judging.samples[0].n = 300;
    let keys = |a: &RunSpec, b: &RunSpec| a.differences(b).into_iter().map(|d| d.key).collect::<Vec<_>>();
    assert_eq!(keys(&golden(), &sampled), ["judges.1.sample"]);
    assert_eq!(keys(&sampled, &other), ["judges.1.sample"]);
    let mut planted = golden();
    planted.dataset.planted = Some(PlantedSpec::default());
    let mut own = planted.clone();
    own.dataset.planted = Some(PlantedSpec { answers_of: Some("mine".into()), ..PlantedSpec::default() });
    assert_eq!(keys(&planted, &own), ["dataset.answers_of"]);
}

#[test]
fn p13_what_stands_beside_the_published_key_counts_only_where_it_is() {
    let stored = serde_json::to_value(golden()).expect("serialises");
    let dataset = stored["dataset"].as_object().expect("an object");
    assert!(
        stored.get("counting").is_none() && !dataset.contains_key("label_fixes") && !dataset.contains_key("planted")
    );
    let mut fixed = golden();
    fixed.dataset.label_fixes = Some(LabelFixesSpec { name: "audit".into(), ..LabelFixesSpec::default() });
    let mut planted = golden();
    planted.dataset.planted = Some(PlantedSpec { version: 1, ..PlantedSpec::default() });
    let mut counted = golden();
    let counting = CountingSpec { name: "theirs".into(), version: 1, ..CountingSpec::default() };
    counted.counting = Some(counting.clone());
    for (changed, key) in [(&fixed, "label_fixes"), (&planted, "dataset.planted"), (&counted, "counting")] {
        let keys: Vec<String> = golden().differences(changed).into_iter().map(|d| d.key).collect();
        assert_eq!(keys, [key]);
        let stored = serde_json::to_string(changed).expect("serialises");
        assert_eq!(&serde_json::from_str::<RunSpec>(&stored).expect("a spec"), changed);
    }
    // in what a run differs from theirs is told, and is no setting
    counted.counting = Some(CountingSpec { departures: vec!["another judge".into()], ..counting.clone() });
    let mut same = golden();
    same.counting = Some(counting);
    assert_eq!(counted.fingerprint(), same.fingerprint());
}

#[test]
fn p13_caps_pace_accounts_and_places_are_not_part_of_it() {
    let mut changed = golden();
    changed.limits = Limits {
        max_cost: Some(PicoUsd(1)),
        max_rpm: Some(2),
        max_tpm: Some(3),
        concurrency: Some(4),
        retries: 5,
        pool: "gpu".into(),
        latency_probe: ProbePlan { recalls: 7, rates: vec![1.0] },
        ..Limits::default()
    };
    changed.answerer.account = "other".into();
    changed.dataset.path = Some("/elsewhere".into());
    changed.dataset.version = "2".into();
    assert_eq!(changed.fingerprint(), golden().fingerprint());
}

#[test]
fn p45_facts_are_a_part_of_the_fingerprint_of_runs_that_store_some() {
    let part = |canaries| RunSpec { canaries, ..golden() }.fingerprint_parts().remove("system.canaries");
    let some = CanarySpec { version: 1, facts: 60, most_in_bank: None };
    assert_eq!(part(Some(some)).as_deref(), Some("[1,60,null]"));
    assert_eq!(part(Some(CanarySpec { most_in_bank: Some(3), ..some })).as_deref(), Some("[1,60,3]"));
    assert_eq!((part(Some(CanarySpec::OFF)), part(None)), (None, None), "who wants none has the fingerprint of before");
    let stored = serde_json::to_string(&golden()).expect("serialises");
    assert!(!stored.contains("canaries"), "{stored}");
    let planted = RunSpec { canaries: Some(some), ..golden() };
    let stored = serde_json::to_string(&planted).expect("serialises");
    assert_eq!(serde_json::from_str::<RunSpec>(&stored).expect("a spec"), planted);
    assert!(planted.plants_canaries() && !golden().plants_canaries() && golden().facts_in(0, "b").is_empty());
}
