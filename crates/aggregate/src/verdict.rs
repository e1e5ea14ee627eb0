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

/// No more than 1 % of the contexts are empty, and no bank has empty contexts only. Not for systems without memory; where silence may be
/// right, it is neither empty nor among those that could have been.
pub(crate) fn empty_context(banks: &[Bank], expected: bool) -> Finding {
    let contexts: u64 = banks.iter().map(|bank| bank.contexts).sum();
    let empty: u64 = banks.iter().map(|bank| bank.empty_contexts).sum();
    let silent: u64 = banks.iter().map(|bank| bank.silent).sum();
    if expected {
        return not_checked("the system has no memory by design");
    }
    if contexts == 0 && silent > 0 {
        return not_checked(format!("nothing came back for any of {silent} questions, for which that may be right"));
    }
    if contexts == 0 {
        return not_checked("nothing was recalled");
    }
    let beside = match silent {
        0 => String::new(),
        _ => format!(", not counting {silent} for which nothing came back where that may be right"),
    };
    if empty * 100 > contexts {
        return failed(format!(
            "{empty} of {contexts} questions ({:.1} %) had an empty context{beside}",
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
    passed(format!("{empty} of {contexts} contexts were empty{beside}"))
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
/// `fewest` of what banks store are in the smallest one; `bounded` says why k does not bound a recall, where it does not.
pub(crate) fn k_served(
    lengths: RecallLengths,
    top_k: u32,
    (fewest, stored): (u64, &str),
    bounded: Result<(), &'static str>,
) -> Finding {
    if let Err(why) = bounded {
        return not_checked(why);
    }
    let RecallLengths { questions, banks, most, with_most } = lengths;
    // one that was served is proof enough, whatever the banks hold
    if most >= top_k && questions >= FEWEST_RECALLS && banks >= 2 {
        return passed(format!("recalls brought up to {most} hits, the run asks for {top_k}"));
    }
    if questions < FEWEST_RECALLS || banks < 2 || fewest < u64::from(top_k) {
        return not_checked(format!("needs {FEWEST_RECALLS} recalls in two banks of at least {top_k} {stored} each"));
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
mod tests;
