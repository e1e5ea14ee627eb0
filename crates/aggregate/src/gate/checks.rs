//! The rules of a policy, one by one.
//!
//! In come a summary or a comparison and the policy; out come the [`Check`]s of all rules that it names. Without a baseline: `least`,
//! `floors` and `by_path`. With one, [`of_comparison`]: scores and categories (`difference`), retrieval, latency, cost, calls, each in a
//! function of its own; what was not measured is a check too (`unmeasured`, `not_known`).

use bench_proto::{
    comparison::{CategoryDifference, ComparedRun, Comparison, PairedDifference, Unpaired},
    gate::{Change, Check, CheckOutcome, Level},
    metric::Better,
    summary::{Interval, LatencyProbe, Summary, UsageFigures, UsageSummary},
};

use serde_json::Value;

use crate::compare::{RULE_OF_THREE, gains, latency::probes};

use super::policy::{Floors, LatencyRule, PROBE, Policy, Ratio, Tolerance};

/// Below this probability a category's change is no accident, all categories counted.
const SIGNIFICANT: f64 = 0.05;
/// Latencies that differ by less than so many milliseconds are the same.
const SAME_MS: f64 = 1.0;
/// Of fewer recalls not even a median has a 95 % interval, which from their fastest to their slowest covers 1 − 2 · 0.5^n.
const FEWEST_RECALLS: u64 = 6;

fn points(fraction: f64) -> String {
    format!("{:+.2}", fraction * 100.0)
}

/// Digits behind the point of a percentage, at the least and at most.
const DIGITS: std::ops::RangeInclusive<usize> = 2..=12;

/// Two fractions as percentages, with as many digits as tell them apart.
fn told_apart(a: f64, b: f64) -> (String, String) {
    let shown = |digits: usize| (format!("{:.digits$} %", a * 100.0), format!("{:.digits$} %", b * 100.0));
    DIGITS.map(shown).find(|(a, b)| a != b).unwrap_or_else(|| shown(*DIGITS.start()))
}

/// On which side of a floor a score has not reached it.
const fn beyond(better: Better) -> &'static str {
    match better {
        Better::Higher => "below",
        Better::Lower => "above",
    }
}

/// What is said of a score that has not reached its floor, which is a ceiling where lower is better; nothing of one that has.
#[must_use]
pub fn beyond_floor(better: Better, value: f64, floor: f64) -> Option<String> {
    // sums of fractions may be off by their last bit
    (better.gain(value) < better.gain(floor) - 1e-12).then(|| {
        let (value, floor) = told_apart(value, floor);
        format!("{value} is {} {floor}", beyond(better))
    })
}

/// A headline that is next to the worst score there is. What has no score is told by other rules.
pub(super) fn least(summary: &Summary, floors: &Floors) -> Option<Check> {
    let (least, value) = (floors.least?, summary.headline.value?);
    let better = summary.scores.first().map_or(Better::Higher, |score| score.better);
    let (bound, beyond, worst) = match better {
        Better::Higher => (least, "below", value <= least - 1e-12),
        Better::Lower => (1.0 - least, "above", value >= 1.0 - least + 1e-12),
    };
    let (shown, limit) = told_apart(value, bound);
    let (outcome, detail) = match worst {
        true => (CheckOutcome::Regression, format!("{shown} is {beyond} {limit}: next to nothing of it is right")),
        false => (CheckOutcome::Pass, format!("{shown} is not {beyond} {limit}")),
    };
    let change = Some(Change::new(&summary.headline.metric, value, bound));
    let value = Some(value);
    Some(Check {
        rule: "floor:least".to_owned(),
        level: Level::Critical,
        outcome,
        value,
        bound: Some(bound),
        detail,
        change,
    })
}

/// A figure that a floor or a ceiling is about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    /// That of the run, or its mean over the repeats.
    Is(f64),
    /// There is none.
    IsNone,
    /// Some repeats do not have it: how many, and of how many.
    Lacks(usize, usize),
}

impl Figure {
    fn mean_over<T>(all: &[T], figure: impl Fn(&T) -> Option<f64>) -> Self {
        let values: Vec<f64> = all.iter().filter_map(figure).collect();
        match all.len() - values.len() {
            _ if values.is_empty() => Self::IsNone,
            0 => Self::Is(values.iter().sum::<f64>() / values.len() as f64),
            lacking => Self::Lacks(lacking, all.len()),
        }
    }

    fn value(self) -> Option<f64> {
        match self {
            Self::Is(value) => Some(value),
            Self::IsNone | Self::Lacks(..) => None,
        }
    }
}

/// Of how many runs a figure is the mean, where it is one.
fn mean_of<T>(all: &[T]) -> String {
    if all.len() > 1 { format!(" (mean of {} repeats)", all.len()) } else { String::new() }
}

/// Floors hold for the unrounded score; where lower is better they are ceilings. What has no score has not reached its floor. Of
/// repeats `each` is one, and the mean over them is held; the headline of `summary` is theirs already.
pub(super) fn floors(summary: &Summary, each: &[Summary], floors: &Floors) -> Vec<Check> {
    let metric = &summary.headline.metric;
    let better = summary.scores.first().map_or(Better::Higher, |score| score.better);
    let headline = summary.headline.value.map_or(Figure::IsNone, Figure::Is);
    let overall = floors.overall.map(|floor| ("floor:overall".to_owned(), headline, floor));
    let of_category = |name: &str| {
        Figure::mean_over(each, |run| {
            run.scores.first()?.by_category.iter().find(|category| category.category == name)?.value
        })
    };
    let categories = floors.category.iter().map(|(name, floor)| (format!("floor:{name}"), of_category(name), *floor));
    let check = |(rule, figure, floor): (String, Figure, f64)| {
        let (outcome, detail) = match figure {
            Figure::IsNone => {
                (CheckOutcome::Regression, format!("there is no score to hold against {:.2} %", floor * 100.0))
            }
            Figure::Lacks(lacking, of) => {
                let detail = format!("{lacking} of {of} repeats have no score to hold against {:.2} %", floor * 100.0);
                (CheckOutcome::Inconclusive, detail)
            }
            Figure::Is(value) => match beyond_floor(better, value, floor) {
                Some(detail) => (CheckOutcome::Regression, detail + &mean_of(each)),
                None => {
                    let not = format!("is not {}", beyond(better));
                    let detail = format!("{:.2} % {not} {:.2} %{}", value * 100.0, floor * 100.0, mean_of(each));
                    (CheckOutcome::Pass, detail)
                }
            },
        };
        let value = figure.value();
        let change = value.map(|value| Change::new(metric, value, floor));
        Check { rule, level: Level::Critical, outcome, value, bound: Some(floor), detail, change }
    };
    overall.into_iter().chain(categories).map(check).collect()
}

/// Floors and ceilings of figures that are named by their path in the report; of repeats of their means.
pub(super) fn by_path(each: &[Summary], policy: &Policy) -> Vec<Check> {
    let (floors, ceilings) = (&policy.floors.figures, &policy.ceilings);
    if floors.is_empty() && ceilings.is_empty() {
        return Vec::new();
    }
    // plain data with text keys: it always serialises
    let reports: Vec<Value> = each.iter().map(|run| serde_json::to_value(run).unwrap_or_default()).collect();
    let check = |(kind, path, bound): (&str, &String, f64)| {
        let rule = format!("{kind}:{path}");
        let figure = Figure::mean_over(&reports, |report| figure_at(report, path));
        let holds = |value: f64| if kind == "floor" { value >= bound - 1e-12 } else { value <= bound + 1e-12 };
        let mean = mean_of(each);
        let (outcome, detail) = match figure {
            Figure::IsNone => {
                (CheckOutcome::Regression, format!("the report has no figure {path} to hold against {bound}"))
            }
            Figure::Lacks(lacking, of) => {
                let detail = format!("{lacking} of {of} repeats have no figure {path} to hold against {bound}");
                (CheckOutcome::Inconclusive, detail)
            }
            Figure::Is(value) if holds(value) => {
                (CheckOutcome::Pass, format!("{value} keeps to the {kind} {bound}{mean}"))
            }
            Figure::Is(value) => (CheckOutcome::Regression, format!("{value} is beyond the {kind} {bound}{mean}")),
        };
        let value = figure.value();
        let change = value.map(|value| Change::new(path, value, bound));
        Check { rule, level: Level::Critical, outcome, value, bound: Some(bound), detail, change }
    };
    let floors = floors.iter().map(|(path, bound)| ("floor", path, *bound));
    floors.chain(ceilings.iter().map(|(path, bound)| ("ceiling", path, *bound))).map(check).collect()
}

/// Keys by which the entries of a list are named in a path.
const NAMES: [&str; 8] = ["metric", "category", "name", "role", "stage", "model", "bank", "between"];

/// The number at a path such as `retrieval.session.10.recall` or `scores.judge.by_category.temporal.value`: keys of objects, and
/// names of the entries of lists. Names may hold points themselves.
pub(super) fn figure_at(report: &Value, path: &str) -> Option<f64> {
    if path.is_empty() {
        return report.as_f64();
    }
    let mut ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
    ends.find_map(|end| {
        let (key, rest) = (&path[..end], path[end..].trim_start_matches('.'));
        let of_name = |entry: &&Value| NAMES.iter().any(|name| entry.get(name).is_some_and(|value| value == key));
        match report {
            Value::Object(fields) => figure_at(fields.get(key)?, rest),
            Value::Array(entries) => {
                let mut named = entries.iter().filter(of_name);
                let first = named.next()?;
                // a model that was asked for several services has an entry for each of them
                let others = named.filter(|_| first.get("service").is_some());
                let others = others.filter_map(|entry| figure_at(entry, rest));
                figure_at(first, rest).map(|figure| others.fold(figure, |sum, other| sum + other))
            }
            _ => None,
        }
    })
}

/// All rules that need a baseline.
pub(super) fn of_comparison(comparison: &Comparison, policy: &Policy) -> Vec<Check> {
    let mut checks = Vec::new();
    let better = comparison.better;
    if comparison.copied {
        checks.push(Check {
            rule: "measured".to_owned(),
            level: Level::Critical,
            outcome: CheckOutcome::Inconclusive,
            value: None,
            bound: None,
            detail: format!(
                "the run has from its baseline what '{}' looks at{}: nothing was measured anew; gate by another --metric",
                comparison.metric,
                comparison.copied_of.as_ref().map(|of| format!(" (made by {of})")).unwrap_or_default()
            ),
            change: None,
        });
    }
    let of_scores = score_checks((&comparison.paired, &comparison.by_category, better), policy);
    checks.extend(of_scores.into_iter().map(|check| named(check, &comparison.metric)));
    checks.extend(left_out(&comparison.unpaired, comparison.paired.n));
    checks.extend(absent_categories(comparison, policy));
    if let Some(rule) = policy.retrieval {
        if comparison.retrieval.is_empty() {
            let why = "no question has figures of retrieval in both runs";
            checks.push(unmeasured("retrieval".to_owned(), rule, why));
        }
        let of_level = comparison.retrieval.iter();
        checks.extend(of_level.map(|level| {
            let name = format!("retrieval:{}@{}", level.level, level.k);
            let metric = format!("{} {}@{}", level.level, level.metric, level.k);
            named(difference(name, rule, (&level.paired, Better::Higher), None), &metric)
        }));
    }
    let (a, b) = (&comparison.a, &comparison.b);
    checks.extend(policy.latency.iter().map(|rule| latency(rule, a, b)));
    checks.extend(policy.cost.map(|rule| cost(rule, a, b)));
    checks.extend(policy.calls.map(|rule| calls(rule, a, b)));
    checks
}

/// A line of what the scores leave out, where they do.
fn left_out(Unpaired { only_a, only_b, neither }: &Unpaired, paired: u64) -> Option<Check> {
    let all = only_a + only_b + neither;
    let detail = || {
        format!(
            "{all} questions are in no figure, {paired} are: {only_a} have a score in the baseline only, {only_b} in the run only, {neither} in neither"
        )
    };
    (all > 0).then(|| Check {
        rule: "left out".to_owned(),
        level: Level::Advisory,
        outcome: CheckOutcome::NotChecked,
        value: None,
        bound: None,
        detail: detail(),
        change: None,
    })
}

/// Categories that the policy names and that have no question with a score in both runs.
fn absent_categories(comparison: &Comparison, policy: &Policy) -> Vec<Check> {
    let known: Vec<&str> = comparison.by_category.iter().map(|category| category.category.as_str()).collect();
    let why = format!("no question of it has a score in both runs; categories that have: {}", known.join(", "));
    let absent = policy.categories.iter().filter(|(name, _)| !known.contains(&name.as_str()));
    absent.map(|(name, rule)| unmeasured(format!("category:{name}"), *rule, &why)).collect()
}

/// A rule on scores that the runs do not have: what is critical and was not measured did not pass.
fn unmeasured(rule: String, Tolerance { tolerance, level }: Tolerance, why: &str) -> Check {
    let outcome = if level == Level::Critical { CheckOutcome::Inconclusive } else { CheckOutcome::NotChecked };
    Check { outcome, ..not_checked(rule, level, -tolerance, why) }
}

/// A check whose figure has a name.
fn named(mut check: Check, metric: &str) -> Check {
    if let Some(change) = &mut check.change {
        metric.clone_into(&mut change.metric);
    }
    check
}

/// The rules on the score, overall and by category.
pub(crate) fn score_checks(
    (paired, by_category, better): (&PairedDifference, &[CategoryDifference], Better),
    policy: &Policy,
) -> Vec<Check> {
    let overall = policy.overall.map(|rule| difference("overall".to_owned(), rule, (paired, better), None));
    let of_category = |category: &CategoryDifference| {
        let rule = policy.categories.get(&category.category).copied().or(policy.category)?;
        let name = format!("category:{}", category.category);
        Some(difference(name, rule, (&category.paired, better), Some(SIGNIFICANT)))
    };
    overall.into_iter().chain(by_category.iter().filter_map(of_category)).collect()
}

/// A paired difference against a tolerance, by the bounds of its interval. A regression is surely one, and larger than what
/// is tolerated: with the first alone, one run in forty that is as good as its baseline would fail. With `significant` it must
/// also survive the correction over the categories.
fn difference(
    rule: String,
    tolerance: Tolerance,
    (paired, better): (&PairedDifference, Better),
    significant: Option<f64>,
) -> Check {
    let Tolerance { tolerance, level } = tolerance;
    let bound = Some(better.gain(-tolerance));
    let Some(interval) = &paired.ci95 else {
        let why = paired.ci95_note.clone().unwrap_or_else(|| "there is no interval".to_owned());
        let outcome = if paired.n == 0 { CheckOutcome::NotChecked } else { CheckOutcome::Inconclusive };
        return Check { rule, level, outcome, value: None, bound, detail: why, change: None };
    };
    let survives = significant.is_none_or(|limit| paired.p_holm.is_none_or(|p| p < limit));
    let (low, high) = gains(interval, better);
    // sums of fractions may be off by their last bits
    let beyond = |gain: f64| gain < -tolerance - 1e-12;
    let outcome = if !beyond(low) {
        CheckOutcome::Pass
    } else if high < 0.0 && paired.difference.is_some_and(|d| beyond(better.gain(d))) && survives {
        CheckOutcome::Regression
    } else {
        CheckOutcome::Inconclusive
    };
    let more = (outcome == CheckOutcome::Inconclusive).then(|| enough(paired, interval, tolerance)).flatten();
    let detail = format!(
        "{} points, 95 % {} to {}, tolerance {:.1}, {} questions in {} banks{}{}",
        points(paired.difference.unwrap_or(0.0)),
        points(interval.low),
        points(interval.high),
        tolerance * 100.0,
        paired.n,
        paired.clusters,
        paired.p_holm.map(|p| format!(", p {p:.3} (Holm)")).unwrap_or_default(),
        more.map(|n| format!("; equal runs pass with {n} questions or more")).unwrap_or_default()
    );
    let change = paired.a.zip(paired.b).map(|(old, new)| Change::new("", new, old));
    Check { rule, level, outcome, value: Some(better.gain(low)), bound, detail, change }
}

/// With how many questions like these an equal run would pass, where runs are equal and their questions too few to say so.
fn enough(paired: &PairedDifference, interval: &Interval, tolerance: f64) -> Option<u64> {
    let equal = paired.difference == Some(0.0) && interval.method.ends_with(RULE_OF_THREE);
    let possible = equal && tolerance > 0.0 && interval.high < 1.0;
    possible.then(|| (paired.n as f64 * (1.0 - interval.high).ln() / (1.0 - tolerance).ln()).ceil() as u64)
}

/// Latencies under load belong to their load: only probes of the same conditions are compared (P43).
fn latency(rule: &LatencyRule, a: &ComparedRun, b: &ComparedRun) -> Check {
    let name = format!("latency:{}:{}", rule.phase, rule.percentile);
    let not_compared = |why: String| not_checked(name.clone(), rule.level, rule.ratio, &format!("not compared: {why}"));
    if rule.phase != PROBE {
        return not_compared("it was measured under the run's own load; the latency probe is compared".to_owned());
    }
    let (a, b) = match probes(a, b) {
        Ok(probes) => probes,
        Err(why) => return not_compared(why),
    };
    // a percentile of fewer is the slowest recall or two
    let (of, fewest): (fn(&LatencyProbe) -> Option<f64>, u64) = match rule.percentile.as_str() {
        "p50" => (|probe| probe.p50_ms, FEWEST_RECALLS),
        "p99" => (|probe| probe.p99_ms, 100),
        _ => (|probe| probe.p95_ms, 20),
    };
    let recalls = a.n.min(b.n);
    if recalls < fewest {
        let outcome = if rule.level == Level::Critical { CheckOutcome::Inconclusive } else { CheckOutcome::NotChecked };
        let why = format!("{recalls} recalls do not tell a {}: --latency-probe {fewest} or more does", rule.percentile);
        return Check { outcome, ..not_compared(why) };
    }
    let (Some(old), Some(new)) = (of(a), of(b)) else {
        return not_compared("a latency probe has no such figure".to_owned());
    };
    let (quotient, same) = match (new - old).abs() <= SAME_MS {
        true => (1.0, format!(" (what differs by at most {SAME_MS:.0} ms counts as equal)")),
        false => (new / old.max(f64::MIN_POSITIVE), String::new()),
    };
    let unit = format!("{new:.1} ms after {old:.1} ms{same}");
    let change = Change::new(&format!("latency_probe.{}_ms", rule.percentile), new, old);
    quotient_check(name, (rule.level, rule.ratio), quotient, &unit, change)
}

/// What the memory system of a run has used of something beside the runner's own figures.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Own {
    /// What the meter saw.
    Metered(f64),
    /// Nothing: it calls no models, or what it calls is among the figures of the runner.
    Nothing,
    /// It may have used models, and has told nothing of it, or tokens alone.
    Untold,
    /// Nobody asked it: its grades come from elsewhere, or its run is a fork of one that did not know.
    Unasked,
}

impl Own {
    fn new(run: &ComparedRun, metered: Option<f64>) -> Self {
        let is_free = run.metered.as_ref().is_some_and(|metered| metered.usd <= 0.0);
        match metered {
            // a meter that saw nothing has not seen what went around it
            _ if run.usage.is_incomplete() => Self::Untold,
            Some(used) => Self::Metered(used),
            None if is_free || run.usage.memory.is_some() => Self::Nothing,
            None => Self::Unasked,
        }
    }
}

/// What of the memory systems themselves can be held against each other.
enum OfMemories {
    /// The figures of both, where one of them was metered at least.
    Both(f64, f64),
    /// Neither was metered: the runner's figures alone, with what has to be said of that.
    Neither(&'static str),
    /// It is not known of one side, and is on the other.
    UnknownOf(&'static str),
}

/// Both sides with what is known of them, or neither: what is not known is not nothing. Of two that were not metered the rest can be
/// compared, unless one of them is known to use nothing and of the other it is not known.
fn of_memories(a: Own, b: Own) -> OfMemories {
    match (a, b) {
        (Own::Metered(x), Own::Metered(y)) => OfMemories::Both(x, y),
        (Own::Metered(x), Own::Nothing) => OfMemories::Both(x, 0.0),
        (Own::Nothing, Own::Metered(y)) => OfMemories::Both(0.0, y),
        (Own::Untold | Own::Unasked, Own::Metered(_)) | (Own::Untold, Own::Nothing) => {
            OfMemories::UnknownOf("baseline")
        }
        (Own::Metered(_), Own::Untold | Own::Unasked) | (Own::Nothing, Own::Untold) => OfMemories::UnknownOf("run"),
        (Own::Untold, Own::Untold | Own::Unasked) | (Own::Unasked, Own::Untold) => {
            OfMemories::Neither(" (without what the memory systems use themselves, which is not known of both)")
        }
        (Own::Nothing | Own::Unasked, Own::Nothing | Own::Unasked) => OfMemories::Neither(""),
    }
}

/// A rule that needs what the memory system of one side has used.
fn unknown_memory(name: &str, rule: Ratio, whose: &str) -> Check {
    let why = format!("it is not known what the memory system of the {whose} used itself (--meter counts it)");
    not_known(name, rule, &why)
}

/// Dollars of the runner's calls, and of those of the memory systems where one of them was metered.
fn cost(rule: Ratio, a: &ComparedRun, b: &ComparedRun) -> Check {
    let own = |run: &ComparedRun| Own::new(run, run.metered.as_ref().map(|metered| metered.usd));
    let (metric, (of_a, of_b), left_out) = match of_memories(own(a), own(b)) {
        OfMemories::Both(x, y) => ("usage.total.usd_list and metered.total per question", (x, y), ""),
        OfMemories::Neither(left_out) => ("usage.total.usd_list per question", (0.0, 0.0), left_out),
        OfMemories::UnknownOf(whose) => return unknown_memory("cost", rule, whose),
    };
    let unit = |old: f64, new: f64| format!("${new:.6} after ${old:.6} per question{left_out}");
    let dollars = |run: &ComparedRun, own: f64| Used::new(&run.usage, run.usage.total.usd_list + own, run.n);
    per_question("cost", metric, rule, (dollars(a, of_a), dollars(b, of_b)), unit)
}

/// Calls of all phases, those that the call store answered too: what a change of code costs does not depend on the cache. Those
/// of the memory systems where one of them was metered.
fn calls(rule: Ratio, a: &ComparedRun, b: &ComparedRun) -> Check {
    let of_both = |used: &UsageFigures| used.calls.saturating_add(used.cached_calls);
    let own = |run: &ComparedRun| {
        let metered = run.usage.booked.as_ref().and_then(|booked| booked.metered.as_ref());
        Own::new(run, metered.map(|used| of_both(used) as f64))
    };
    let (metric, (of_a, of_b), left_out) = match of_memories(own(a), own(b)) {
        OfMemories::Both(x, y) => ("calls of all phases and usage.booked.metered per question", (x, y), ""),
        OfMemories::Neither(left_out) => ("calls of all phases per question", (0.0, 0.0), left_out),
        OfMemories::UnknownOf(whose) => return unknown_memory("calls", rule, whose),
    };
    let of_phases = |usage: &UsageSummary| {
        let phases = [&usage.retain, &usage.recall, &usage.answer, &usage.judge];
        phases.into_iter().chain(&usage.consolidate).map(of_both).fold(0, u64::saturating_add) as f64
    };
    let unit = |old: f64, new: f64| format!("{new:.3} calls after {old:.3} per question{left_out}");
    let used = |run: &ComparedRun, own: f64| Used::new(&run.usage, of_phases(&run.usage) + own, run.n);
    per_question("calls", metric, rule, (used(a, of_a), used(b, of_b)), unit)
}

/// What a run has used of something.
struct Used {
    /// For each of its questions; none without questions.
    per_question: Option<f64>,
    /// Whether 0 means none: imported runs say nothing of what they used, and some memory systems nothing of their models.
    is_known: bool,
}

impl Used {
    fn new(usage: &UsageSummary, figure: f64, n: u64) -> Self {
        let is_known = figure > 0.0 || (usage.booked.is_some() && !usage.is_incomplete());
        Self { per_question: (n > 0).then(|| figure / n as f64), is_known }
    }

    fn known(&self) -> Option<f64> {
        self.per_question.filter(|_| self.is_known)
    }
}

/// A rule on how often more of something is used for a question. More than none is beyond every ratio; what is not known did not
/// pass a critical rule.
fn per_question(
    name: &str,
    metric: &str,
    rule: Ratio,
    (a, b): (Used, Used),
    unit: impl Fn(f64, f64) -> String,
) -> Check {
    let (old, new) = match (a.known(), b.known()) {
        (Some(old), Some(new)) => (old, new),
        (old, _) => {
            let whose = if old.is_none() { "baseline" } else { "run" };
            return not_known(name, rule, &format!("it is not known what the {whose} used"));
        }
    };
    let (rule, level, bound) = (name.to_owned(), rule.level, rule.ratio);
    let change = Change::new(metric, new, old);
    if old > 0.0 {
        return quotient_check(rule, (level, bound), new / old, &unit(old, new), change);
    }
    let (outcome, detail) = match new > 0.0 {
        true => (CheckOutcome::Regression, format!("{}: the baseline has none", unit(old, new))),
        false => (CheckOutcome::Pass, format!("{}: neither has any", unit(old, new))),
    };
    Check { rule, level, outcome, value: None, bound: Some(bound), detail, change: Some(change) }
}

/// A rule on figures that are not known of both sides: what is critical and not known did not pass.
fn not_known(name: &str, Ratio { ratio, level }: Ratio, why: &str) -> Check {
    let outcome = if level == Level::Critical { CheckOutcome::Inconclusive } else { CheckOutcome::NotChecked };
    Check { outcome, ..not_checked(name.to_owned(), level, ratio, why) }
}

fn quotient_check(rule: String, (level, ratio): (Level, f64), quotient: f64, unit: &str, change: Change) -> Check {
    let outcome = if quotient <= ratio { CheckOutcome::Pass } else { CheckOutcome::Regression };
    let detail = format!("{unit}: {quotient:.2} times, at most {ratio} allowed");
    Check { rule, level, outcome, value: Some(quotient), bound: Some(ratio), detail, change: Some(change) }
}

fn not_checked(rule: String, level: Level, bound: f64, why: &str) -> Check {
    let detail = why.to_owned();
    Check { rule, level, outcome: CheckOutcome::NotChecked, value: None, bound: Some(bound), detail, change: None }
}
