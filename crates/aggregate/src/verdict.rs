//! May the result be used? One small pure function per rule; a rule without data is `not checked`.

use bench_proto::summary::{CheckState, Outcomes, Verdict, VerdictCheck};

use crate::{input::SelfCheck, questions::Bank};

/// Fewer answers than this say nothing about their variety.
const FEWEST_ANSWERS: u64 = 10;

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

/// At least 99 % of the sample has a score.
pub(crate) fn coverage(outcomes: &Outcomes) -> Finding {
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
    passed(format!("{covered} of {sample} questions have a score"))
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

/// No normalised answer, abstentions apart, stands on more than 90 % of the questions. `most_common` is its number.
pub(crate) fn one_answer(most_common: u64, answers: u64) -> Finding {
    if answers < FEWEST_ANSWERS {
        return not_checked(format!("fewer than {FEWEST_ANSWERS} answers to compare"));
    }
    if most_common * 10 > answers * 9 {
        return failed(format!(
            "{most_common} of {answers} questions ({:.1} %) got the same answer",
            percent(most_common, answers)
        ));
    }
    passed(format!("the most common answer stands on {most_common} of {answers} questions"))
}

/// Every bank with scored questions was proven ready. `proofs` says so by bank number, for the banks that were asked.
pub(crate) fn banks_ready(banks: &[Bank], proofs: &std::collections::BTreeMap<u32, bool>) -> Finding {
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
    passed(format!("{} {} proven ready", used.len(), plural(used.len(), "bank")))
}

/// The grader graded its own gold as it must.
pub(crate) fn self_check(result: &SelfCheck) -> Finding {
    match result {
        SelfCheck::NotRun => not_checked("the grader's self-check did not run"),
        SelfCheck::Passed => passed("gold scores 1, the empty answer 0, the whole conversation under 0.5"),
        SelfCheck::Failed(detail) => failed(format!("the grader's self-check failed: {detail}")),
    }
}

/// The verdict over named findings: the reasons are the details of those that failed.
pub(crate) fn conclude(findings: Vec<(&str, Finding)>) -> (Verdict, Vec<String>, Vec<VerdictCheck>) {
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
    use std::collections::BTreeMap;

    use CheckState::{Failed, NotChecked, Passed};

    use super::*;

    fn bank(name: &str, number: u32, contexts: u64, empty_contexts: u64) -> Bank {
        Bank { name: name.into(), number, contexts, empty_contexts, with_score: contexts }
    }

    fn outcomes(scored: u64, sample: u64) -> Outcomes {
        Outcomes { scored, sample, infra_error: sample - scored, ..Outcomes::default() }
    }

    #[test]
    fn p22_coverage_of_exactly_99_percent_is_enough() {
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
        assert_eq!(one_answer(90, 100).0, Passed);
        assert_eq!(one_answer(91, 100).0, Failed);
        assert_eq!(one_answer(3, 3).0, NotChecked);
    }

    #[test]
    fn every_asked_bank_must_be_proven_ready() {
        let banks = [bank("a", 0, 5, 0), bank("b", 1, 5, 0)];
        assert_eq!(banks_ready(&banks, &BTreeMap::new()).0, NotChecked);
        assert_eq!(banks_ready(&banks, &BTreeMap::from([(0, true), (1, true)])).0, Passed);
        assert_eq!(banks_ready(&banks, &BTreeMap::from([(0, true), (1, false)])).0, Failed);
        assert_eq!(banks_ready(&banks, &BTreeMap::from([(0, true)])).0, Failed, "a bank without any proof");
        assert_eq!(
            banks_ready(&banks[..1], &BTreeMap::from([(0, true), (1, false)])).0,
            Passed,
            "no score came from bank 1"
        );
    }

    #[test]
    fn a_failed_self_check_makes_the_run_invalid() {
        let findings = vec![
            ("self_check", self_check(&SelfCheck::Failed("gold scored 0.4".into()))),
            ("effective_k", effective_k(None, 10)),
        ];
        let (verdict, reasons, checks) = conclude(findings);
        assert_eq!(verdict, Verdict::Invalid);
        assert_eq!(reasons, ["the grader's self-check failed: gold scored 0.4"]);
        assert_eq!(checks[1].state, NotChecked);
        assert_eq!(conclude(vec![("effective_k", effective_k(None, 10))]).0, Verdict::Valid);
    }
}
