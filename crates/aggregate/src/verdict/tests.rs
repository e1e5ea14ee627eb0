//! What verdicts rest on, check by check.

use CheckState::{Failed, NotChecked, Passed};
use bench_proto::metric::Better;

use super::*;

fn bank(name: &str, number: u32, contexts: u64, empty_contexts: u64) -> Bank {
    Bank { name: name.into(), number, contexts, empty_contexts, silent: 0, with_score: contexts }
}

fn outcomes(scored: u64, sample: u64) -> Outcomes {
    Outcomes { scored, sample, infra_error: sample - scored, ..Outcomes::default() }
}

fn headline(value: Option<f64>, n: u64, without_figure: u64) -> Headline {
    Headline {
        metric: "recall@10".to_owned(),
        without: vec![],
        value,
        estimator: bench_proto::summary::Estimator::Mean,
        n,
        without_figure,
        population: None,
        clusters: 0,
        ci95: None,
        ci95_note: None,
        t_ci95: None,
        naive_ci95: None,
        benchmark_ci95: None,
        benchmark_note: None,
        bootstrap_ci95: None,
        bootstrap_note: None,
        strict: None,
    }
}

#[test]
fn a_headline_without_a_value_fails_and_one_of_some_questions_says_of_how_many() {
    let all = outcomes(200, 200);
    let nothing = coverage(&all, &headline(None, 0, 200));
    let told = "no question that counts has a figure of 'recall@10', which heads the report: `rescore --scorer` puts another there";
    assert_eq!(nothing, failed(told));
    let some = coverage(&all, &headline(Some(0.5), 150, 50));
    assert_eq!(some, passed("200 of 200 questions have a score, 150 of 200 that count one of recall@10"));
}

#[test]
fn p22_coverage_of_exactly_99_percent_is_enough() {
    let coverage = |outcomes: &Outcomes| coverage(outcomes, &headline(Some(1.0), 1, 0));
    assert_eq!(coverage(&outcomes(198, 200)).0, Passed);
    assert_eq!(coverage(&outcomes(1_966, 1_986)).0, Failed, "98.99 %");
    assert_eq!(coverage(&outcomes(0, 0)).0, Failed);
    let abstained = Outcomes { abstained: 100, sample: 100, ..Outcomes::default() };
    assert_eq!(coverage(&abstained).0, Passed, "abstentions have scores");
    assert_eq!(
        coverage(&outcomes(1_966, 1_986)).1,
        "coverage 98.9 % is under 99 %: 20 of 1986 questions have no score"
    );
}

#[test]
fn empty_contexts_of_one_percent_or_of_a_whole_bank() {
    assert_eq!(empty_context(&[bank("a", 0, 100, 1)], false).0, Passed);
    assert_eq!(empty_context(&[bank("a", 0, 99, 1)], false).0, Failed);
    assert_eq!(empty_context(&[bank("a", 0, 1_000, 0), bank("b", 1, 2, 2)], false).0, Failed);
    assert_eq!(empty_context(&[bank("a", 0, 10, 10)], true).0, NotChecked, "system none");
    assert_eq!(empty_context(&[bank("a", 0, 0, 0)], false).0, NotChecked, "imported answers");
}

#[test]
fn silence_that_may_be_right_is_not_among_the_contexts() {
    let silent = |contexts, empty| Bank { silent: 2, ..bank("a", 0, contexts, empty) };
    assert_eq!(
        empty_context(&[silent(18, 18)], false).1,
        "18 of 18 questions (100.0 %) had an empty context, not counting 2 for which nothing came back where that may be right"
    );
    let (state, detail) = empty_context(&[silent(0, 0)], false);
    assert_eq!(
        (state, detail.as_str()),
        (NotChecked, "nothing came back for any of 2 questions, for which that may be right")
    );
    let whole = empty_context(&[bank("b", 1, 1_000, 0), silent(3, 3)], false);
    assert_eq!((whole.0, whole.1.contains("every context of 1 bank was empty")), (Failed, true), "{}", whole.1);
}

#[test]
fn a_cap_below_k_is_a_fault_and_few_hits_are_not() {
    assert_eq!(effective_k(Some(5), 10).0, Failed);
    assert_eq!(effective_k(Some(10), 10).0, Passed);
    assert_eq!(effective_k(None, 10).0, NotChecked);
}

#[test]
fn one_answer_on_more_than_nine_tenths() {
    let variety = |most_common, answers| Variety { answers, most_common, ..Variety::default() };
    assert_eq!(one_answer(variety(90, 100), false).0, Passed);
    assert_eq!(one_answer(variety(91, 100), false).0, Failed);
    assert_eq!(one_answer(variety(3, 3), false).0, NotChecked);
}

#[test]
fn p45_who_abstains_everywhere_has_not_been_measured() {
    let abstains = Variety { answers: 12, most_common: 0, all_same: true, should_differ: true };
    let (state, detail) = one_answer(abstains, false);
    assert_eq!((state, detail.as_str()), (Failed, "all 12 questions got the same answer, an abstention"));
    assert_eq!(one_answer(abstains, true).0, Passed, "the control none");
    let adversarial = Variety { should_differ: false, ..abstains };
    assert_eq!(one_answer(adversarial, false).0, Passed, "nothing else was asked for");
    assert_eq!(one_answer(Variety { answers: 9, ..abstains }, false).0, NotChecked);
}

#[test]
fn p45_oracle_must_be_above_none_by_more_than_chance() {
    let instrument = |seen: Option<&Instrument>, controls: &[ControlScore]| instrument(seen, controls, None);
    let seen = |n, p_value| Instrument { n, none: 0.706, oracle: 0.7, p_value, better: Better::Higher };
    let (state, detail) = instrument(Some(&seen(1_540, 0.7)), &[]);
    assert_eq!(
        (state, detail.as_str()),
        (
            Failed,
            "the score does not depend on memory: oracle 70.0 %, none 70.6 % on 1540 questions that evidence could help \
             (one-sided p 0.700)"
        )
    );
    assert_eq!(instrument(Some(&seen(34, 0.05)), &[]).0, Failed, "20.2 grades of the rarer kind");
    assert_eq!(instrument(Some(&seen(34, 0.049)), &[]).0, Passed);
    assert_eq!(instrument(Some(&seen(33, 1.0)), &[]).0, NotChecked, "too few to tell");
    assert_eq!(instrument(Some(&seen(0, 1.0)), &[]).0, NotChecked, "adversarial questions only");
    // published LoCoMo, extractive answers: 48 questions of category open-domain, of which few are ever right
    let weak = Instrument { n: 48, none: 0.021, oracle: 0.081, ..seen(48, 0.059) };
    assert_eq!(instrument(Some(&weak), &[]).0, NotChecked);
    assert_eq!(instrument(Some(&Instrument { oracle: 0.0, none: 0.0, ..seen(200, 1.0) }), &[]).0, Failed);
    let large = Instrument { oracle: 0.81, ..seen(60, 0.08) };
    assert_eq!(instrument(Some(&large), &[]).0, NotChecked, "a difference worth seeing");
    let (state, detail) = instrument(None, &[]);
    assert!(state == NotChecked && detail.starts_with("controls were not run"), "{detail}");
    let (_, detail) = super::instrument(Some(&seen(34, 0.01)), &[], Some("assertions"));
    assert!(detail.starts_with("oracle 70.0 %, none 70.6 % by assertions on 34 questions"), "{detail}");
}

fn votes(low: f64, rarer: u64) -> Agreement {
    Agreement {
        between: "judge (votes)".into(),
        raters: 3,
        n: 50,
        agreement: Some(0.6),
        kappa: Some(low + 0.1),
        kappa_ci95: Some(bench_proto::summary::Interval { low, high: low + 0.2, method: String::new() }),
        rarer: Some(rarer),
        statistic: "Fleiss".into(),
    }
}

#[test]
fn p45_judges_must_agree_better_than_chance() {
    let (state, detail) = judges(&[votes(-0.1, 20)]);
    assert_eq!(
        (state, detail.as_str()),
        (
            Failed,
            "the judges agree no better than chance: judge (votes): kappa 0.000, 95 % interval -0.100 to 0.100, 50 answers, \
             20 verdicts of the rarer kind"
        )
    );
    assert_eq!(judges(&[votes(0.01, 20)]).0, Passed);
    assert_eq!(judges(&[votes(-0.1, 19)]).0, NotChecked, "a warning says it");
    assert_eq!(judges(&[votes(0.4, 30), votes(-0.1, 30)]).0, Failed, "one of several");
    assert_eq!(judges(&[]).0, NotChecked);
    let unanimous = Agreement { kappa: None, kappa_ci95: None, rarer: Some(0), ..votes(0.0, 0) };
    assert_eq!(judges(&[unanimous]).0, NotChecked);
}

fn canary(asked: u64, found: u64, verbatim: bool) -> CanarySummary {
    CanarySummary { banks: asked / 3, asked, found, verbatim, others_asked: 2, ..CanarySummary::default() }
}

#[test]
fn p45_a_leak_makes_a_run_invalid() {
    let leak = bench_proto::summary::BankLeak { asked: "conv-30".into(), given: "conv-26".into() };
    let leaking = CanarySummary { leaks: vec![leak], ..canary(6, 6, true) };
    let (state, detail) = banks_apart(Some(&leaking), &Canaries::Possible);
    assert_eq!(
        (state, detail.as_str()),
        (
            Failed,
            "banks leak into each other: conv-30 brought back what only conv-26 had been given (1 of 2 banks that were asked)"
        )
    );
    assert_eq!(banks_apart(Some(&canary(6, 6, true)), &Canaries::Possible).0, Passed);
    assert_eq!(
        banks_apart(Some(&CanarySummary { others_asked: 0, ..canary(3, 3, true) }), &Canaries::Possible).0,
        NotChecked
    );
    assert_eq!(banks_apart(None, &Canaries::Impossible("no")), (NotChecked, "no".to_owned()));
}

#[test]
fn p45_a_system_that_loses_what_it_was_given_makes_a_run_invalid() {
    let of = |seen: CanarySummary| nothing_lost(Some(&seen), &Canaries::Possible).0;
    // scipy.stats.binom.cdf(16, 30, 0.8) = 0.0009, of 17 = 0.0031
    assert_eq!((of(canary(30, 16, true)), of(canary(30, 17, true))), (Failed, Passed));
    assert_eq!((of(canary(6, 0, true)), of(canary(6, 1, true)), of(canary(3, 0, true))), (Failed, Passed, Passed));
    assert_eq!(of(canary(30, 0, false)), NotChecked, "a system that rewrites is not held to its words");
    assert_eq!(of(CanarySummary { empty: 3, ..canary(3, 0, false) }), Failed, "nothing comes of what was stored");
    assert_eq!(of(canary(0, 0, false)), NotChecked);
}

fn share(n: u64, of: u64) -> Option<CanaryShare> {
    let ci95 = crate::interval::wilson(n as f64, of as f64);
    Some(CanaryShare { n, of, share: n as f64 / of as f64, ci95 })
}

fn planted(lost: u64, asked: u64, verbatim: bool) -> CanarySummary {
    CanarySummary { planted: true, lost: share(lost, asked), verbatim, ..canary(asked, asked - lost, verbatim) }
}

#[test]
fn p45_a_lost_fact_is_an_accident_and_two_of_sixty_are_not() {
    let of = |seen: CanarySummary| nothing_lost(Some(&seen), &Canaries::Possible);
    assert_eq!(of(planted(0, 60, true)).0, Passed);
    assert_eq!(of(planted(1, 60, true)).0, Passed, "one is said, and no more");
    assert_eq!(canary_warnings(&planted(1, 60, true)).len(), 1);
    let (state, detail) = of(planted(2, 60, true));
    assert_eq!(
        (state, detail.as_str()),
        (
            Failed,
            "the system loses what it was given: 2 of 60 facts (95 % interval 0.9 to 11.4 %) that were stored did not come back"
        )
    );
    // scipy.stats.binom.sf(1, 71, 0.005) = 0.0495, of 72 = 0.0507
    assert_eq!((of(planted(2, 71, true)).0, of(planted(2, 72, true)).0), (Failed, Passed));
    assert_eq!(of(planted(1, 5, true)).0, Passed, "of few too");
    assert_eq!(of(planted(20, 60, false)).0, NotChecked, "who rewrites is not held to words");
    let nothing = CanarySummary { empty: 60, ..planted(60, 60, false) };
    assert_eq!(of(nothing).0, Failed, "nothing comes of what was stored");
    let (state, detail) = of(CanarySummary { planted: true, failed: 90, ..CanarySummary::default() });
    assert_eq!((state, detail.as_str()), (NotChecked, "90 recalls failed, and none was answered"));
}

#[test]
fn p45_recalls_that_all_stop_at_one_number_are_clipped() {
    let seen = |n, of, at, banks, verbatim| CanarySummary {
        clipped: share(n, of),
        clipped_at: at,
        banks,
        verbatim,
        ..CanarySummary::default()
    };
    let of = |seen: CanarySummary| clipped(&seen, 10).map(|finding| finding.0);
    assert_eq!(of(seen(10, 10, Some(5), 2, false)), Some(Failed));
    assert_eq!(of(seen(9, 10, Some(5), 2, true)), None, "the numbers differ: a threshold, no limit");
    assert_eq!(of(seen(0, 10, None, 2, true)), None);
    assert_eq!(of(seen(4, 4, Some(5), 2, true)), None, "too few");
    assert_eq!(of(seen(10, 10, Some(5), 1, false)), None, "one bank that has made five memories of all");
    assert_eq!(of(seen(10, 10, Some(5), 1, true)), Some(Failed));
}

#[test]
fn p45_a_clipped_k_is_told_from_few_memories() {
    let of = |questions, banks, most, with_most, entries| {
        let lengths = RecallLengths { questions, banks, most, with_most };
        k_served(lengths, 10, (entries, "entries"), Ok(())).0
    };
    assert_eq!(of(20, 2, 5, 19, 10), Failed);
    assert_eq!(of(20, 2, 5, 18, 10), Passed, "the numbers differ: a threshold, no limit");
    assert_eq!(of(20, 2, 10, 20, 10), Passed);
    assert_eq!(of(20, 2, 0, 20, 10), Passed, "empty contexts have a rule of their own");
    for (questions, banks, entries) in [(19, 2, 10), (20, 1, 10), (20, 2, 9)] {
        assert_eq!(of(questions, banks, 5, questions, entries), NotChecked);
    }
    assert_eq!(of(20, 2, 10, 20, 0), Passed, "banks that another run has filled: k was served");
    let whole = RecallLengths { questions: 99, banks: 9, most: 5, with_most: 99 };
    assert_eq!(k_served(whole, 10, (99, "entries"), Err("built in")).0, NotChecked);
    let (_, detail) = k_served(whole, 100, (99, "turns"), Ok(()));
    assert_eq!(detail, "needs 20 recalls in two banks of at least 100 turns each");
}

#[test]
fn every_asked_bank_must_be_proven_ready() {
    let ready = |banks: &[Bank], proofs: &BTreeMap<u32, bool>| banks_ready(banks, proofs, &BTreeSet::new());
    let banks = [bank("a", 0, 5, 0), bank("b", 1, 5, 0)];
    assert_eq!(ready(&banks, &BTreeMap::new()).0, NotChecked);
    assert_eq!(ready(&banks, &BTreeMap::from([(0, true), (1, true)])).0, Passed);
    assert_eq!(ready(&banks, &BTreeMap::from([(0, true), (1, false)])).0, Failed);
    assert_eq!(ready(&banks, &BTreeMap::from([(0, true)])).0, Failed, "a bank without any proof");
    assert_eq!(ready(&banks[..1], &BTreeMap::from([(0, true), (1, false)])).0, Passed, "no score came from bank 1");
    let (state, detail) = banks_ready(&banks, &BTreeMap::from([(0, true), (1, true)]), &BTreeSet::from([1, 2]));
    assert_eq!(state, NotChecked, "that storing returned is no proof");
    assert!(detail.starts_with("of 1 bank it is only known that storing returned"), "{detail}");
}

#[test]
fn a_failed_self_check_makes_the_run_invalid() {
    let findings = vec![
        ("self_check", self_check(&SelfCheck::Failed("gold scored 0.4".into()))),
        ("effective_k", effective_k(None, 10)),
    ];
    let (verdict, reasons, checks) = verdict_over(findings);
    assert_eq!(verdict, Verdict::Invalid);
    assert_eq!(reasons, ["the grader's self-check failed: gold scored 0.4"]);
    assert_eq!(checks[1].state, NotChecked);
    assert_eq!(verdict_over(vec![("effective_k", effective_k(None, 10))]).0, Verdict::Valid);
}
