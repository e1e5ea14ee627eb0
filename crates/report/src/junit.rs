//! `junit.xml`: what CI systems show. Rules of the verdict are test cases (`not checked` is skipped), categories are
//! cases that carry their score, and each kind of infrastructure error is a case that ended in an error.

use std::time::Duration;

use bench_proto::summary::{CheckState, Summary};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::{
    error::RenderError,
    figures::{counted, interval, percent_or_none},
};

/// The report as JUnit XML.
///
/// # Errors
/// Never for writing to memory.
pub fn render(summary: &Summary) -> Result<String, RenderError> {
    let mut report = Report::new(format!("bench-coord {}", summary.run.id));
    if let Some(seconds) = summary.run.wall_seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()) {
        report.set_time(seconds);
    }
    report.add_test_suites([verdict(summary), scores(summary)]);
    if !summary.errors.is_empty() {
        report.add_test_suite(errors(summary));
    }
    report.to_string().map_err(|error| RenderError::Junit(error.to_string()))
}

fn verdict(summary: &Summary) -> TestSuite {
    let mut suite = TestSuite::new("verdict");
    for property in [
        ("fingerprint", summary.run.fingerprint.as_str()),
        ("result_digest", summary.result_digest.as_str()),
        ("verdict", summary.run.verdict.name()),
    ] {
        suite.add_property(property);
    }
    for label in &summary.labels {
        suite.add_property(("label", label.as_str()));
    }
    for check in &summary.run.checks {
        let mut status = match check.state {
            CheckState::Passed => TestCaseStatus::success(),
            CheckState::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
            CheckState::NotChecked => TestCaseStatus::skipped(),
        };
        if check.state != CheckState::Passed {
            status.set_message(check.detail.as_str());
        }
        suite.add_test_case(case("verdict", &check.rule, status));
    }
    suite
}

fn scores(summary: &Summary) -> TestSuite {
    let mut suite = TestSuite::new("scores");
    let headline = &summary.headline;
    let line =
        |value, ci95, naive| format!("{} (95 % {}, naive {})", percent_or_none(value), interval(ci95), interval(naive));
    let scored = |name: &str, n: u64, line: String| {
        let status = if n > 0 { TestCaseStatus::success() } else { TestCaseStatus::skipped() };
        let mut case = case(&headline.metric, name, status);
        case.set_system_out(line);
        case
    };
    let all = line(headline.value, headline.ci95.as_ref(), headline.naive_ci95.as_ref());
    suite.add_test_case(scored(&summary.headline_part().name(), headline.n, all));
    for (part, total) in summary.all_totals() {
        let line = line(total.value, total.ci95.as_ref(), total.naive_ci95.as_ref());
        suite.add_test_case(scored(&part.name(), total.n, line));
    }
    for category in summary.scores.iter().take(1).flat_map(|score| &score.by_category) {
        let line = line(category.value, category.ci95.as_ref(), category.naive_ci95.as_ref());
        suite.add_test_case(scored(&category.category, category.n, line));
    }
    suite
}

fn errors(summary: &Summary) -> TestSuite {
    let mut suite = TestSuite::new("infrastructure errors");
    for (code, n) in &summary.errors {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        let said = summary.error_examples.get(code).map(|said| format!(", one of them: {said}")).unwrap_or_default();
        status.set_message(format!("{} without a score{said}", counted(*n, "question")));
        suite.add_test_case(case("infra_error", code, status));
    }
    suite
}

fn case(class: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(class);
    case
}
