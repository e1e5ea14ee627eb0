//! May two runs be compared? Only when what differs is one thing, and both were asked and graded alike.

use std::collections::BTreeSet;

use bench_proto::{
    comparison::MarkedDifference,
    spec::{AskedArchive, RunSpec},
};

/// Groups that may be under test.
pub const TESTABLE: [&str; 3] = ["system", "answerer", "grading"];

/// A run as far as its settings are concerned.
#[derive(Debug, Clone, Copy)]
pub struct RunSettings<'a> {
    /// Effective settings.
    pub spec: &'a RunSpec,
    /// Made elsewhere: who answered is not known, and belongs to the system.
    pub imported: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparability {
    /// All differences, marked.
    pub differences: Vec<MarkedDifference>,
    /// Why the runs are not comparable; empty when they are.
    pub reasons: Vec<String>,
    /// What to know all the same.
    pub notes: Vec<String>,
    /// The groups that differ and may, joined by `+`.
    pub under_test: Option<String>,
}

/// Parts that stand with the dataset, since its profile or its settings bring them, and say who grades its answers or what these
/// look like: by how they begin.
const OF_OTHERS: [(&str, &str); 3] = [
    ("dataset.profile.rubric", "grading"),
    ("dataset.settings.judge_", "grading"),
    ("dataset.profile.style.", "answerer"),
];

/// The group of a fingerprint's part.
#[must_use]
pub fn group_of(key: &str) -> &'static str {
    if let Some((_, group)) = OF_OTHERS.iter().find(|(begin, _)| key.starts_with(begin)) {
        return group;
    }
    match key.split('.').next().unwrap_or_default() {
        "dataset" => "dataset",
        "sample" => "sample",
        "system" => "system",
        "answerer" | "scenario" | "recalls" => "answerer",
        _ => "grading",
    }
}

/// Whether a part says which version of a memory system was run: where canaries go depends on what a version says that it can.
#[must_use]
pub fn is_of_version(key: &str) -> bool {
    matches!(key, "system.version" | "system.canaries")
}

/// Says when one run has answered again what was wrong and the other has not.
fn say_tries((a, b): (&RunSpec, &RunSpec), is_declared: bool, reasons: &mut Vec<String>, notes: &mut Vec<String>) {
    if a.taken_over.answered_again == b.taken_over.answered_again {
        return;
    }
    let tries = "one of the runs has answered again what was wrong (`retry --wrong`): its score is the better of several tries, and the \
                 other's that of fewer";
    match is_declared {
        true => notes.push(tries.to_owned()),
        false => reasons.push(format!("{tries} (--under-test grading compares all the same)")),
    }
}

/// Says in what two samples differ, or the rules by which they may end early.
fn say_samples((a, b): (&RunSpec, &RunSpec), reasons: &mut Vec<String>, notes: &mut Vec<String>) {
    if a.sample.max_sessions != b.sample.max_sessions {
        reasons.push("one run saw fewer sessions than the other (--max-sessions)".to_owned());
    } else if a.sample.signature != b.sample.signature {
        notes.push("the samples differ: only shared questions are compared".to_owned());
    } else if a.stop != b.stop {
        notes.push(
            "the sample is the same, and the runs may end early by different rules (--stop-when): only questions that both have asked \
             are compared"
                .to_owned(),
        );
    }
}

/// Refuses to hold a run on banks that another system has filled against one on other banks: what differs may be what was filled.
fn say_banks((a, b): (&RunSpec, &RunSpec), is_declared: bool, reasons: &mut Vec<String>) {
    let [of_a, of_b] = [a, b].map(|spec| spec.taken_over.archive.as_ref());
    let foreign = [of_a, of_b].into_iter().flatten().find(|archive| archive.filled_by.is_some());
    let are_same = of_a.zip(of_b).is_some_and(|(a, b)| a.sha256 == b.sha256);
    if let Some(AskedArchive { name, filled_by: Some(filler), .. }) = foreign.filter(|_| !are_same && !is_declared) {
        reasons.push(format!(
            "one run asks banks of the archive {name}, which {filler} has filled, and the other one other banks: compare runs on the \
             same archive (--under-test all compares all the same)"
        ));
    }
}

/// Marks the differences of two runs that are compared by `metric`; `declared` are the groups that the user wants to
/// differ.
#[must_use]
pub fn comparability(a: &RunSettings<'_>, b: &RunSettings<'_>, metric: &str, declared: &[String]) -> Comparability {
    let differences = a.spec.differences(b.spec);
    let counted_alike = counting_of(a.spec) == counting_of(b.spec);
    let matters = |key: &str| match key {
        // another counting leaves out other categories, and is a reason of its own
        "dataset.profile.headline.without" => counted_alike,
        // a reason of its own too: the graders are the same
        "answered_again" => false,
        _ => group_of(key) != "grading" || grades(key, metric, a.spec, b.spec),
    };
    let unknown_answerer = a.imported || b.imported;
    let differing: BTreeSet<&'static str> = differences
        .iter()
        .filter(|difference| matters(&difference.key))
        .map(|difference| group_of(&difference.key))
        .filter(|group| !(*group == "answerer" && unknown_answerer))
        .collect();
    let (mut reasons, mut notes) = (Vec::new(), Vec::new());
    match (counting_of(a.spec), counting_of(b.spec)) {
        (None, None) => {}
        (Some(one), Some(other)) if one == other => notes.push(format!(
            "both runs are counted as {one}: what is compared are the grades, and questions that failed are left out"
        )),
        (one, other) => {
            let words = |name: Option<&str>| name.unwrap_or("our own rules say").to_owned();
            reasons.push(format!("one run is counted as {}, the other as {}", words(one), words(other)));
        }
    }
    let [of_a, of_b] = [a, b].map(|run| run.spec.dataset.profile.methodology);
    if of_a != of_b {
        reasons.push(format!(
            "the dataset's methodology has changed between the runs (version {of_a}, then {of_b}): their scores do not mean the same; run \
             the older one again"
        ));
    } else if differing.contains("dataset") {
        reasons.push("the datasets differ".to_owned());
    }
    if differing.contains("sample") {
        say_samples((a.spec, b.spec), &mut reasons, &mut notes);
    }
    say_banks((a.spec, b.spec), declared.iter().any(|name| name == "all"), &mut reasons);
    let testable: Vec<&str> = TESTABLE.into_iter().filter(|group| differing.contains(group)).collect();
    let is_declared = |group: &str| declared.iter().any(|name| name == group || name == "all");
    let undeclared: Vec<&str> = testable.iter().copied().filter(|group| !is_declared(group)).collect();
    if undeclared.contains(&"grading") {
        reasons.push(format!(
            "the graders of '{metric}' differ, so a difference may be theirs (--under-test grading compares all the same)"
        ));
    }
    say_tries((a.spec, b.spec), is_declared("grading"), &mut reasons, &mut notes);
    let others = undeclared.iter().filter(|group| **group != "grading").count();
    if others > 1 {
        reasons.push(
            "system and answerer differ both, so a difference may come from either (--under-test system,answerer compares all the same)"
                .to_owned(),
        );
    }
    if unknown_answerer && differences.iter().any(|difference| group_of(&difference.key) == "answerer") {
        notes.push("a run was made elsewhere: its answerer is not known and counts as a part of the system".to_owned());
    }
    if let (Some(of_a), Some(of_b)) = (a.spec.answered_by(), b.spec.answered_by())
        && of_a != of_b
    {
        notes.push(format!(
            "whose the answers are differs: {} in the first run, {} in the second",
            of_a.name(),
            of_b.name()
        ));
    }
    let differences = differences
        .into_iter()
        .map(|difference| {
            let group = group_of(&difference.key);
            let under_test = TESTABLE.contains(&group) && matters(&difference.key) && reasons.is_empty();
            MarkedDifference::new(difference, group, under_test)
        })
        .collect();
    let under_test = (!testable.is_empty()).then(|| testable.join("+"));
    Comparability { differences, reasons, notes, under_test }
}

/// The name of the counting that a run is held to.
fn counting_of(spec: &RunSpec) -> Option<&str> {
    spec.counting.as_ref().map(|counting| counting.name.as_str())
}

/// Whether a setting of the graders can change the compared metric.
fn grades(key: &str, metric: &str, a: &RunSpec, b: &RunSpec) -> bool {
    if let Some(scorer) = key.strip_prefix("scorers.") {
        // a scorer that only one of them ran beside changes nothing
        let gives = |spec: &RunSpec| {
            let mut scorers = spec.scorers.iter().filter(|one| one.name == scorer);
            scorers.any(|one| one.metric_names().any(|name| name == metric))
        };
        return gives(a) || gives(b);
    }
    if matches!(key, "label_fixes" | "counting") {
        // what stands beside the published key changes nothing by it; another counting is a reason of its own
        return false;
    }
    let judges = [a, b].map(|spec| judge_of(spec, metric));
    // a judge of fewer questions grades them alike
    if judges == [None, None] || key.ends_with(".sample") {
        return false;
    }
    // the votes of another judge, which only one of them has, change nothing about this one
    if let Some(number) = key.strip_prefix("judges.").and_then(|rest| rest.split('.').next()) {
        return judges.iter().flatten().any(|judge| judge.to_string() == number);
    }
    true
}

/// The number of the judge that a metric is of, where it is one's.
fn judge_of(spec: &RunSpec, metric: &str) -> Option<usize> {
    let is_of = |judge: &String| {
        metric.strip_prefix(judge.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    spec.judge_plan().metrics.iter().position(is_of)
}
