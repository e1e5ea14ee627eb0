//! May the result be used? One small pure function per rule; a rule without data is `not checked`.
//!
//! In come sums of the summary's sections, out come findings (state and a sentence), and the verdict over all of them. Start
//! reading at `verdict_over`, and at its caller in `sections.rs` for the names and the order of the rules (P45).

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::summary::{
    Agreement, CanaryShare, CanarySummary, CheckState, ControlScore, Headline, Interval, Outcomes, Verdict,
    VerdictCheck,
};
use statrs::distribution::{Binomial, DiscreteCDF};

use crate::{
    input::{Canaries, SelfCheck},
    instrument::Instrument,
    questions::Bank,
};

/// Fewer answers than this say nothing about their variety.
const FEWEST_ANSWERS: u64 = 10;
/// The chance at which `oracle` counts as above `none`.
const CHANCE: f64 = 0.05;
/// Where nearly all grades are the same, so many questions tell a dead instrument from an answerer that is hardly ever right.
const ENOUGH_COMPARED: u64 = 200;
/// A difference that is no sign of a dead instrument, however few questions leave it to chance.
const WORTH_SEEING: f64 = 0.1;
/// Fewer verdicts of the rarer kind than this make a warning of judges that agree no better than chance.
pub(crate) const FEWEST_OF_RARER: u64 = 20;
/// Fewest facts that do not come back before a run is INVALID, and the share that a system may lose by accident: what
/// such a system loses in one run of twenty is no more than an accident.
const FEWEST_LOST: u64 = 2;
const LOST_BY_ACCIDENT: f64 = 0.005;
/// Fewest recalls of which all must bring the same number of hits, in percent, before a run is INVALID.
const FEWEST_WIDE: u64 = 5;
const CLIPPED_PERCENT: u64 = 95;
/// Stored turns that a system which does not rewrite finds at least, and how sure it must be that one finds fewer.
const FINDS: f64 = 0.8;
const SURELY: f64 = 0.001;
/// Fewer questions than this say nothing about the length of recalls.
const FEWEST_RECALLS: u64 = 20;

/// A rule's result before it has its name.
type Finding = (CheckState, String);

fn passed(detail: impl Into<String>) -> Finding {
    (CheckState::Passed, detail.into())
}

fn failed(detail: impl Into<String>) -> Finding {
    (CheckState::Failed, detail.into())
}

fn not_checked(detail: impl Into<String>) -> Finding {
    (CheckState::NotChecked, detail.into())
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// At least 99 % of the sample has a score, and the headline has a value.
pub(crate) fn coverage(outcomes: &Outcomes, headline: &Headline) -> Finding {
    let (covered, sample) = (outcomes.scored + outcomes.abstained, outcomes.sample);
    if sample == 0 {
        return failed("the sample is empty");
    }
    if covered * 100 < sample * 99 {
        // rounded down, so that 98.96 % is not printed as 99.0 %
        let shown = (percent(covered, sample) * 10.0).floor() / 10.0;
        return failed(format!(
            "coverage {shown:.1} % is under 99 %: {} of {sample} questions have no score",
            sample - covered
        ));
    }
    if headline.value.is_none() {
        return failed(format!(
            "no question that counts has a figure of '{}', which heads the report: `rescore --scorer` puts another there",
            headline.metric
        ));
    }
    let which = match headline.without_figure {
        0 => String::new(),
        without => format!(", {} of {} that count one of {}", headline.n, headline.n + without, headline.metric),
    };
    passed(format!("{covered} of {sample} questions have a score{which}"))
}

/// No more than 1 % of the contexts are empty, and no bank has empty contexts only. Not for systems without memory.
pub(crate) fn empty_context(banks: &[Bank], expected: bool) -> Finding {
    let contexts: u64 = banks.iter().map(|bank| bank.contexts).sum();
    let empty: u64 = banks.iter().map(|bank| bank.empty_contexts).sum();
    if expected {
        return not_checked("the system has no memory by design");
    }
    if contexts == 0 {
        return not_checked("nothing was recalled");
    }
    if empty * 100 > contexts {
        return failed(format!(
            "{empty} of {contexts} questions ({:.1} %) had an empty context",
            percent(empty, contexts)
        ));
    }
    let whole: Vec<&str> =
        banks.iter().filter(|b| b.contexts > 0 && b.empty_contexts == b.contexts).map(|b| b.name.as_str()).collect();
    if let Some(first) = whole.first() {
        return failed(format!(
            "every context of {} {} was empty (first: {first})",
            whole.len(),
            plural(whole.len(), "bank")
        ));
    }
    passed(format!("{empty} of {contexts} contexts were empty"))
}

/// The system can be asked for as many hits as the run asks for; fewer hits are no fault.
pub(crate) fn effective_k(effective: Option<u32>, top_k: u32) -> Finding {
    match effective {
        None => not_checked("the system's own limit is not known"),
        Some(k) if k < top_k => failed(format!("the system caps a recall at {k} hits, the run asks for {top_k}")),
        Some(_) => passed(format!("up to {top_k} hits per recall")),
    }
}

/// How the answers of a run differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Variety {
    pub(crate) answers: u64,
    /// Times of the most common one that is no abstention.
    pub(crate) most_common: u64,
    /// Every answer is the same, abstentions too.
    pub(crate) all_same: bool,
    /// That is what some question of the sample should get: one that is not adversarial.
    pub(crate) should_differ: bool,
}

/// No normalised answer, abstentions apart, stands on more than 90 % of the questions, and not every answer is the same: who
/// abstains everywhere has not been measured, unless nothing else is asked for or there is no memory by design.
pub(crate) fn one_answer(variety: Variety, no_memory: bool) -> Finding {
    let Variety { answers, most_common, all_same, should_differ } = variety;
    if answers < FEWEST_ANSWERS {
        return not_checked(format!("fewer than {FEWEST_ANSWERS} answers to compare"));
    }
    if most_common * 10 > answers * 9 {
        return failed(format!(
            "{most_common} of {answers} questions ({:.1} %) got the same answer",
            percent(most_common, answers)
        ));
    }
    if all_same && should_differ && !no_memory {
        return failed(format!("all {answers} questions got the same answer, an abstention"));
    }
    passed(format!("the most common answer stands on {most_common} of {answers} questions"))
}

/// `oracle`, which is given the evidence, is above `none` by more than chance, by a metric that is named where it is not the
/// headline's.
pub(crate) fn instrument(seen: Option<&Instrument>, controls: &[ControlScore], by: Option<&str>) -> Finding {
    let Some(seen) = seen else {
        return not_checked(if controls.is_empty() {
            "controls were not run: --controls shows whether the score depends on memory"
        } else {
            "the controls none and oracle have not both been run to their end"
        });
    };
    let Instrument { n, none, oracle, p_value, .. } = *seen;
    if n == 0 {
        return not_checked("the sample has no question that evidence could help");
    }
    let figures = format!(
        "oracle {:.1} %, none {:.1} %{} on {n} questions that evidence could help (one-sided p {p_value:.3})",
        100.0 * oracle,
        100.0 * none,
        by.map(|metric| format!(" by {metric}")).unwrap_or_default(),
    );
    let enough = n >= ENOUGH_COMPARED || seen.rarer() >= FEWEST_OF_RARER as f64;
    match p_value < CHANCE {
        true => passed(figures),
        false if enough && seen.gain() < WORTH_SEEING => {
            failed(format!("the score does not depend on memory: {figures}"))
        }
        false => not_checked(format!("too few grades to tell: {figures}")),
    }
}

/// Whether graders agree no better than chance, as far as can be seen.
pub(crate) fn is_chance(agreement: &Agreement) -> bool {
    agreement.kappa_ci95.as_ref().is_some_and(|ci| ci.low <= 0.0)
}

/// How graders agree, for people.
pub(crate) fn agreement_line(agreement: &Agreement) -> String {
    let Agreement { between, kappa, kappa_ci95, rarer, n, .. } = agreement;
    let figures = kappa.zip(kappa_ci95.as_ref()).map_or_else(
        || "every verdict is the same".to_owned(),
        |(kappa, ci)| format!("kappa {kappa:.3}, 95 % interval {:.3} to {:.3}", ci.low, ci.high),
    );
    format!("{between}: {figures}, {n} answers, {} verdicts of the rarer kind", rarer.unwrap_or(0))
}

/// Judges, and votes of a judge, agree better than chance.
pub(crate) fn judges(agreements: &[Agreement]) -> Finding {
    if agreements.is_empty() {
        return not_checked("one grade for each answer: nobody to agree with");
    }
    let enough = |agreement: &&Agreement| agreement.rarer.unwrap_or(0) >= FEWEST_OF_RARER;
    let dead: Vec<String> = agreements.iter().filter(enough).filter(|one| is_chance(one)).map(agreement_line).collect();
    if !dead.is_empty() {
        return failed(format!("the judges agree no better than chance: {}", dead.join("; ")));
    }
    if agreements.iter().any(|agreement| enough(&agreement)) {
        return passed(agreements.iter().map(agreement_line).collect::<Vec<_>>().join("; "));
    }
    not_checked(format!("fewer than {FEWEST_OF_RARER} verdicts of the rarer kind"))
}

fn no_canary(canaries: &Canaries) -> Finding {
    match canaries {
        Canaries::Impossible(why) => not_checked(*why),
        Canaries::Possible => not_checked("no canary was sent"),
    }
}

/// `3 of 60 facts (95 % interval 1.7 to 13.7 %)`.
fn facts(share: &CanaryShare) -> String {
    let Interval { low, high, .. } = share.ci95;
    format!("{} of {} facts (95 % interval {:.1} to {:.1} %)", share.n, share.of, 100.0 * low, 100.0 * high)
}

/// What canaries found that does not make a run INVALID by itself.
pub(crate) fn canary_warnings(seen: &CanarySummary) -> Vec<String> {
    let lost = seen.lost.iter().filter(|lost| lost.n > 0 && !is_lossy(lost));
    let first = |facts: &[String]| facts.first().map(|fact| format!(", such as: {fact}")).unwrap_or_default();
    let mut lines: Vec<String> = lost
        .map(|lost| format!("canaries: {} that were stored did not come back{}", facts(lost), first(&seen.lost_facts)))
        .collect();
    if seen.failed > 0 && seen.planted {
        lines.push(format!("canaries: {} recalls failed; what they asked for is not counted", seen.failed));
    }
    lines
}

/// Whether so many are lost that it is no accident.
fn is_lossy(lost: &CanaryShare) -> bool {
    // the only error of `new` is a probability outside [0, 1]
    let by_accident = Binomial::new(LOST_BY_ACCIDENT, lost.of).map_or(1.0, |loses| loses.sf(lost.n.saturating_sub(1)));
    lost.n >= FEWEST_LOST && by_accident < CHANCE
}

/// A system that stops at one number of hits, as far as canaries show it; `None` where they do not.
pub(crate) fn clipped(seen: &CanarySummary, top_k: u32) -> Option<Finding> {
    let (share, at) = (seen.clipped.as_ref()?, seen.clipped_at?);
    // one bank of a system that makes few memories of many has no more
    let has_more = seen.banks > 1 || seen.verbatim;
    if !has_more || share.of < FEWEST_WIDE || share.n * 100 < share.of * CLIPPED_PERCENT {
        return None;
    }
    Some(failed(format!(
        "k is clipped: {} of {} recalls brought {at} hits and none of the run brought more, the run asks for {top_k} and the \
         banks have as many",
        share.n, share.of
    )))
}

/// The system holds the facts that it was given. One that rewrites or chooses what it keeps cannot be held to them.
fn facts_kept(seen: &CanarySummary) -> Finding {
    let Some(lost) = &seen.lost else {
        return not_checked(match seen.failed {
            0 => "no bank has a fact".to_owned(),
            failed => format!("{failed} recalls failed, and none was answered"),
        });
    };
    let what = format!("{} that were stored did not come back", facts(lost));
    if seen.empty == lost.of {
        return failed(format!("the system loses what it was given: no hit came for any of {} facts", lost.of));
    }
    if !seen.verbatim {
        return not_checked(format!("the system does not hand back what was stored word by word: {what}"));
    }
    match is_lossy(lost) {
        true => failed(format!("the system loses what it was given: {what}")),
        false => passed(what),
    }
}

/// No bank brought back what only another had been given.
pub(crate) fn banks_apart(seen: Option<&CanarySummary>, canaries: &Canaries) -> Finding {
    let Some(seen) = seen else { return no_canary(canaries) };
    if let Some(leak) = seen.leaks.first() {
        let share = seen.leaked.as_ref().map(|leaked| format!("; {} of others came back", facts(leaked)));
        return failed(format!(
            "banks leak into each other: {} brought back what only {} had been given ({} of {} banks that were asked{})",
            leak.asked,
            leak.given,
            seen.leaks.len(),
            seen.others_asked,
            share.unwrap_or_default()
        ));
    }
    if seen.others_asked == 0 {
        return not_checked("there was no other bank to ask");
    }
    passed(format!(
        "{} banks were asked for what only another had been given, and had nothing of it",
        seen.others_asked
    ))
}

/// The system holds what it was given. One that rewrites cannot be held to its words; one that hands turns back as they were
/// stored finds most of them by a half of their words.
pub(crate) fn nothing_lost(seen: Option<&CanarySummary>, canaries: &Canaries) -> Finding {
    let Some(seen) = seen else { return no_canary(canaries) };
    if seen.planted {
        return facts_kept(seen);
    }
    let CanarySummary { asked, found, empty, verbatim, .. } = *seen;
    let what = format!("{found} of {asked} stored turns were found by a half of their words");
    if asked == 0 {
        return not_checked("no stored turn had words of its own to look for");
    }
    if empty == asked {
        return failed(format!("the system loses what it was given: no hit came for any of {asked} stored turns"));
    }
    // the only error of `new` is a probability outside [0, 1]
    let chance = Binomial::new(FINDS, asked).map_or(1.0, |finds| finds.cdf(found));
    if verbatim && chance < SURELY {
        return failed(format!("the system loses what it was given: {what}"));
    }
    if !verbatim {
        return not_checked(format!("the system does not hand back what was stored word by word ({what})"));
    }
    passed(what)
}

/// How many hits the questions of a run got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecallLengths {
    /// Questions whose number of hits is known.
    pub(crate) questions: u64,
    /// Banks of them.
    pub(crate) banks: u64,
    /// The most hits that any of them got.
    pub(crate) most: u32,
    /// How many got so many.
    pub(crate) with_most: u64,
}

/// A recall brings as many hits as are asked for, or fewer because there are no more: the same smaller number nearly everywhere
/// is a limit of the system that nobody was told of.
///
/// `fewest_entries` are those of the smallest bank; `bounded` says why k does not bound a recall, where it does not.
pub(crate) fn k_served(
    lengths: RecallLengths,
    top_k: u32,
    fewest_entries: u64,
    bounded: Result<(), &'static str>,
) -> Finding {
    if let Err(why) = bounded {
        return not_checked(why);
    }
    let RecallLengths { questions, banks, most, with_most } = lengths;
    if questions < FEWEST_RECALLS || banks < 2 || fewest_entries < u64::from(top_k) {
        return not_checked(format!("needs {FEWEST_RECALLS} recalls in two banks of at least {top_k} entries each"));
    }
    if most > 0 && most < top_k && with_most * 100 >= questions * 95 {
        return failed(format!(
            "k is clipped: {with_most} of {questions} recalls brought {most} hits and none brought more, the run asks for {top_k}"
        ));
    }
    passed(format!("recalls brought up to {most} hits, the run asks for {top_k}"))
}

/// Every bank with scored questions was proven ready. `proofs` says so by bank number, for the banks that were asked;
/// of those that are `returned` it is only known that storing returned.
pub(crate) fn banks_ready(banks: &[Bank], proofs: &BTreeMap<u32, bool>, returned: &BTreeSet<u32>) -> Finding {
    if proofs.is_empty() {
        return not_checked("no bank was made in this run");
    }
    let used: Vec<&Bank> = banks.iter().filter(|bank| bank.with_score > 0).collect();
    let unproven: Vec<&&Bank> = used.iter().filter(|bank| proofs.get(&bank.number) != Some(&true)).collect();
    if let Some(first) = unproven.first() {
        return failed(format!(
            "{} of {} banks were not proven ready (first: {})",
            unproven.len(),
            used.len(),
            first.name
        ));
    }
    let unasked = used.iter().filter(|bank| returned.contains(&bank.number)).count();
    if unasked > 0 {
        return not_checked(format!(
            "of {unasked} {} it is only known that storing returned: a `verify` or `ready` of the system would show more",
            plural(unasked, "bank")
        ));
    }
    passed(format!("{} {} proven ready", used.len(), plural(used.len(), "bank")))
}

/// A bank that was there before the run began: what it holds is not known, so nothing of it can be proven.
pub(crate) fn there_before() -> Finding {
    not_checked("the bank was there before the run (--bank): what it holds is not proven")
}

/// The grader graded its own gold as it must.
pub(crate) fn self_check(result: &SelfCheck) -> Finding {
    match result {
        SelfCheck::NotRun => not_checked("the grader's self-check did not run"),
        SelfCheck::Passed => passed("gold scores 1, the empty answer 0, the whole conversation under 0.5"),
        SelfCheck::Noted(notes) => passed(format!("the graders' self-check passed, with notes: {notes}")),
        SelfCheck::Failed(detail) => failed(format!("the grader's self-check failed: {detail}")),
    }
}

/// The verdict over named findings: the reasons are the details of those that failed.
pub(crate) fn verdict_over(findings: Vec<(&str, Finding)>) -> (Verdict, Vec<String>, Vec<VerdictCheck>) {
    let checks: Vec<VerdictCheck> = findings
        .into_iter()
        .map(|(rule, (state, detail))| VerdictCheck { rule: rule.to_owned(), state, detail })
        .collect();
    let reasons: Vec<String> =
        checks.iter().filter(|c| c.state == CheckState::Failed).map(|c| c.detail.clone()).collect();
    let verdict = if reasons.is_empty() { Verdict::Valid } else { Verdict::Invalid };
    (verdict, reasons, checks)
}

fn plural(n: usize, word: &str) -> String {
    if n == 1 { word.to_owned() } else { format!("{word}s") }
}

#[cfg(test)]
mod tests {
    use CheckState::{Failed, NotChecked, Passed};
    use bench_proto::metric::Better;

    use super::*;

    fn bank(name: &str, number: u32, contexts: u64, empty_contexts: u64) -> Bank {
        Bank { name: name.into(), number, contexts, empty_contexts, with_score: contexts }
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
            k_served(lengths, 10, entries, Ok(())).0
        };
        assert_eq!(of(20, 2, 5, 19, 10), Failed);
        assert_eq!(of(20, 2, 5, 18, 10), Passed, "the numbers differ: a threshold, no limit");
        assert_eq!(of(20, 2, 10, 20, 10), Passed);
        assert_eq!(of(20, 2, 0, 20, 10), Passed, "empty contexts have a rule of their own");
        for (questions, banks, entries) in [(19, 2, 10), (20, 1, 10), (20, 2, 9)] {
            assert_eq!(of(questions, banks, 5, questions, entries), NotChecked);
        }
        let whole = RecallLengths { questions: 99, banks: 9, most: 5, with_most: 99 };
        assert_eq!(k_served(whole, 10, 99, Err("built in")).0, NotChecked);
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
}
