//! A gate for people, for pull requests (GitHub step summary and annotations) and for CI systems (JUnit).

use bench_proto::{
    comparison::Comparison,
    gate::{BaselineRun, Check, CheckOutcome, GatePlan, GateReport, GateVerdict, Level, PlannedGate},
};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::{
    blocks::{Block, heading, table},
    comparison,
    error::RenderError,
    figures::{NONE, one_line},
    markdown,
    terminal::{self, View},
    words,
};

/// Longest name of a run that is shown.
const NAME_WIDTH: usize = 40;

/// The gate for a terminal.
#[must_use]
pub fn terminal(report: &GateReport, view: View) -> String {
    let mut blocks = document(report);
    // who names a baseline knows it; what `last:K` has found is said
    let notes = report.comparison.iter().filter(|_| !report.baseline_runs.is_empty()).map(|of| of.notes.clone());
    blocks.extend(notes.filter(|notes| !notes.is_empty()).map(Block::List));
    blocks.extend(bank_explained(report));
    terminal::render_blocks(&blocks, view)
}

/// The gate as Markdown, with the comparison that it rests on: fit for a step summary or a pull request.
#[must_use]
pub fn markdown(report: &GateReport) -> String {
    let mut blocks = document(report);
    match &report.comparison {
        // It explains its words itself. A gate goes by the word of the interval: beside INCONCLUSIVE nobody is to read that there is
        // nothing to decide.
        Some(comparison) => blocks.extend(comparison::document(&Comparison { equal: false, ..comparison.clone() })),
        None => blocks.extend(bank_explained(report)),
    }
    markdown::render_blocks(&blocks)
}

/// What a bank is, where the gate speaks of banks.
fn bank_explained(report: &GateReport) -> Option<Block> {
    let mut said = report.checks.iter().map(|check| &check.detail).chain(&report.reasons);
    said.any(|text| text.contains(" bank")).then(|| Block::Text(words::BANK.to_owned()))
}

fn document(report: &GateReport) -> Vec<Block> {
    let against = report.baseline.as_deref().map(|baseline| format!(" against {baseline}")).unwrap_or_default();
    let advisory = if report.advisory { " (advisory: exit 0)" } else { "" };
    let mut blocks = vec![Block::Headline(format!("{}{advisory}: {}{against}", report.verdict.name(), report.run))];
    if !report.reasons.is_empty() {
        blocks.push(Block::List(report.reasons.clone()));
    }
    let row = |check: &Check| {
        vec![check.rule.clone(), check.level.name().to_owned(), check.outcome.name().to_owned(), check.detail.clone()]
    };
    blocks.push(heading("Rules"));
    blocks.push(table(&["Rule", "Level", "Outcome", "Seen"], report.checks.iter().map(row).collect()));
    blocks.extend(baseline_runs(&report.baseline_runs));
    blocks
}

/// The runs that the baseline is the mean of, each with what differs and what to know of it.
fn baseline_runs(runs: &[BaselineRun]) -> Vec<Block> {
    let row = |run: &BaselineRun| {
        let name = run.name.as_deref().map_or_else(|| NONE.to_owned(), |name| one_line(name, NAME_WIDTH));
        let differs = run.differences.iter().map(|differs| differs.key.as_str()).collect::<Vec<_>>().join(", ");
        let or_none = |text: String| if text.is_empty() { NONE.to_owned() } else { text };
        vec![run.id.clone(), name, or_none(differs), or_none(run.notes.join("; "))]
    };
    if runs.is_empty() {
        return Vec::new();
    }
    vec![heading("Baseline"), table(&["Run", "Name", "What differs", "Notes"], runs.iter().map(row).collect())]
}

/// How gates with a policy end, for a terminal.
#[must_use]
pub fn plan(plan: &GatePlan, view: View) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let row = |case: &PlannedGate| {
        let truth = match case.drop {
            0.0 => "as good as its baseline".to_owned(),
            drop => format!("worse by {:.1} points", drop * 100.0),
        };
        vec![truth, percent(case.pass), percent(case.fail), percent(case.inconclusive)]
    };
    let of = match plan.measured_over {
        1 => "assumed; with --baseline last:K, or of repeats, it is measured over runs".to_owned(),
        runs => format!("measured over {runs} runs"),
    };
    let mean_of = |runs: u32| match runs {
        1 => "one run".to_owned(),
        runs => format!("the mean of {runs} runs"),
    };
    let (what, baseline) = (mean_of(plan.runs), mean_of(plan.baseline_runs));
    let false_alarms = plan.cases.iter().find(|case| case.drop == 0.0).map_or(0.0, |case| case.fail);
    let mut blocks = vec![
        Block::Headline(format!("{} of runs that are as good as their baseline fail", percent(false_alarms))),
        table(&["The run is", ">PASS", ">FAIL", ">INCONCLUSIVE"], plan.cases.iter().map(row).collect()),
        Block::List(vec![
            format!(
                "{} simulated pairs each, of {} questions in {} banks; {what} is held against {baseline}",
                plan.draws, plan.questions, plan.banks
            ),
            format!("variance of a verdict from run to run: {:.4} ({of})", plan.verdict_variance),
            format!("noise of a bank that is filled anew: {} on the logit scale (assumed)", plan.bank_noise),
            words::BANK.to_owned(),
            only_scores(&plan.not_simulated),
        ]),
    ];
    if !plan.beyond_score.is_empty() {
        let falls: Vec<String> = plan.beyond_score.iter().map(|fall| format!("{:.1}", fall * 100.0)).collect();
        blocks.push(Block::Text(format!(
            "The score cannot fall by {} points: it is lower than that, so these rows are left out.",
            falls.join(" or ")
        )));
    }
    terminal::render_blocks(&blocks, view)
}

/// Which rules the shares of a plan leave out, and in which direction they are off by it.
fn only_scores(not_simulated: &[String]) -> String {
    if not_simulated.is_empty() {
        return "all rules of the policy that can keep a run from passing are simulated".to_owned();
    }
    format!(
        "rules on scores alone: the policy's rules on {} are not simulated, and can only lower the share of PASS",
        not_simulated.join(", ")
    )
}

/// Workflow commands that GitHub shows as annotations, one a line.
#[must_use]
pub fn annotations(report: &GateReport) -> Vec<String> {
    let line = |kind: &str, title: &str, text: &str| format!("::{kind} title={}::{}", property(title), data(text));
    let mut lines: Vec<String> = Vec::new();
    if report.verdict == GateVerdict::Invalid {
        lines.extend(report.reasons.iter().map(|reason| line("error", "bench-coord gate", reason)));
    }
    for check in &report.checks {
        let kind = match (check.outcome, check.level) {
            (CheckOutcome::Regression, Level::Critical | Level::Supporting) if !report.advisory => "error",
            (CheckOutcome::Regression, _) | (CheckOutcome::Inconclusive, Level::Critical) => "warning",
            (CheckOutcome::Inconclusive, _) => "notice",
            (CheckOutcome::Pass | CheckOutcome::NotChecked, _) => continue,
        };
        lines.push(line(kind, &format!("bench-coord gate: {}", check.rule), &check.detail));
    }
    lines
}

/// Escapes the text of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of one.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Each rule as a JUnit test case: regressions fail, inconclusive critical rules too, the rest is skipped or passes.
///
/// # Errors
/// Never for writing to memory.
pub fn junit(report: &GateReport) -> Result<String, RenderError> {
    let mut suite = TestSuite::new("gate");
    suite.add_property(("verdict", report.verdict.name()));
    suite.add_property(("exit_code", report.exit_code.to_string().as_str()));
    for reason in &report.reasons {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(reason.as_str());
        suite.add_test_case(case("comparable", status));
    }
    for check in &report.checks {
        let mut status = match (check.outcome, check.level) {
            (CheckOutcome::Pass, _) => TestCaseStatus::success(),
            (CheckOutcome::Regression, Level::Critical | Level::Supporting)
            | (CheckOutcome::Inconclusive, Level::Critical) => TestCaseStatus::non_success(NonSuccessKind::Failure),
            _ => TestCaseStatus::skipped(),
        };
        if check.outcome != CheckOutcome::Pass {
            status.set_message(format!("{}: {}", check.outcome.name(), check.detail));
        }
        let mut case = case(&check.rule, status);
        case.set_system_out(check.detail.as_str());
        suite.add_test_case(case);
    }
    let mut document = Report::new(format!("bench-coord gate {}", report.run));
    document.add_test_suite(suite);
    document.to_string().map_err(|error| RenderError::Junit(error.to_string()))
}

fn case(name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname("gate");
    case
}

#[cfg(test)]
mod tests {
    use bench_proto::{comparison::MarkedDifference, spec::Difference};

    use super::*;

    fn report() -> GateReport {
        let check = |rule: &str, level, outcome| Check {
            rule: rule.to_owned(),
            level,
            outcome,
            value: Some(-0.05),
            bound: Some(-0.02),
            detail: "-3.0 points, 95 % -5.0 to -1.0\nof 200".to_owned(),
            change: None,
        };
        GateReport {
            schema_version: 1,
            run: "new".into(),
            baseline: Some("old".into()),
            verdict: GateVerdict::Fail,
            exit_code: 1,
            advisory: false,
            reasons: vec![],
            checks: vec![
                check("overall", Level::Critical, CheckOutcome::Regression),
                check("category:temporal", Level::Supporting, CheckOutcome::Inconclusive),
                check("cost", Level::Advisory, CheckOutcome::Regression),
                check("retrieval:turn@10", Level::Supporting, CheckOutcome::Pass),
            ],
            severity: Some("critical".into()),
            comparison: None,
            baseline_runs: vec![],
        }
    }

    #[test]
    fn a_gate_reads_well_everywhere() {
        insta::assert_snapshot!("gate_terminal", terminal(&report(), View::default()));
        insta::assert_snapshot!("gate_markdown", markdown(&report()));
        insta::assert_snapshot!("gate_annotations", annotations(&report()).join("\n"));
        insta::assert_snapshot!("gate_junit", junit(&report()).expect("renders"));
    }

    #[test]
    fn beside_a_word_of_a_gate_nothing_is_told_as_equal() {
        let with = |equal: bool| {
            let comparison = Some(Comparison { equal, ..comparison::tests::comparison("q1") });
            markdown(&GateReport { comparison, ..report() })
        };
        let said = with(true);
        assert!(said.contains("INCONCLUSIVE: ") && !said.contains("EQUAL"), "{said}");
        assert!(!said.contains("the runs are equal"), "{said}");
        assert_eq!(said, with(false));
    }

    #[test]
    fn a_bank_is_explained_where_one_is_named() {
        let without = report();
        let mut with = report();
        with.checks[0].detail = "-3.0 points, 95 % -5.0 to -1.0, tolerance 2.0, 200 questions in 10 banks".to_owned();
        for (report, times) in [(without, 0), (with, 1)] {
            for view in [terminal(&report, View::default()), markdown(&report)] {
                assert_eq!(view.matches(words::BANK).count(), times, "{view}");
            }
        }
    }

    #[test]
    fn the_runs_that_a_baseline_is_the_mean_of_are_named_with_what_is_to_be_known_of_each() {
        let run = |id: &str, name: Option<&str>, notes: &[&str]| BaselineRun {
            id: id.to_owned(),
            name: name.map(str::to_owned),
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            differences: vec![],
        };
        let mut differs = run("id-1", Some("nightly"), &["they may end early"]);
        let version = Difference { key: "system.version".into(), left: "1".into(), right: "2".into() };
        differs.differences.push(MarkedDifference::new(version, "system", true));
        let plain = report();
        let report = GateReport { baseline_runs: vec![differs, run("id-2", None, &[])], ..plain.clone() };
        for view in [terminal(&report, View::default()), markdown(&report)] {
            let line = |id: &str| view.lines().find(|line| line.contains(id)).map(str::to_owned).unwrap_or_default();
            let first = line("id-1");
            let said = ["nightly", "system.version", "they may end early"];
            assert!(said.iter().all(|said| first.contains(said)), "{view}");
            assert!(!line("id-2").is_empty(), "{view}");
        }
        assert!(!terminal(&plain, View::default()).contains("Baseline"));
    }

    #[test]
    fn a_plan_says_of_how_many_runs_either_side_is_the_mean() {
        let case = PlannedGate { drop: 0.0, pass: 0.9, fail: 0.02, inconclusive: 0.08 };
        let plan = |runs: u32, baseline_runs: u32| GatePlan {
            draws: 2_000,
            questions: 200,
            banks: 10,
            baseline_runs,
            runs,
            verdict_variance: 0.02,
            measured_over: u64::from(runs + baseline_runs),
            bank_noise: 0.3,
            cases: vec![case.clone()],
            beyond_score: vec![0.03, 0.06],
            not_simulated: vec!["retrieval".to_owned(), "floors".to_owned()],
        };
        let said = |runs, baseline_runs| super::plan(&plan(runs, baseline_runs), View::default()).replace('\n', " ");
        assert!(said(1, 1).contains("one run is held against one run"), "{}", said(1, 1));
        assert!(said(3, 5).contains("the mean of 3 runs is held against the mean of 5 runs"), "{}", said(3, 5));
        assert!(said(1, 1).contains(words::BANK), "{}", said(1, 1));
        assert!(said(1, 1).contains("rules on retrieval, floors are not simulated"), "{}", said(1, 1));
        assert!(said(1, 1).contains("cannot fall by 3.0 or 6.0 points"), "{}", said(1, 1));
    }

    #[test]
    fn advisory_gates_only_warn() {
        let advisory = GateReport { advisory: true, exit_code: 0, ..report() };
        assert!(annotations(&advisory).iter().all(|line| !line.starts_with("::error")));
    }
}
