//! The rules of a policy, one by one.

use bench_proto::{
    comparison::{ComparedRun, Comparison, PairedDifference},
    gate::{Check, CheckOutcome, Level},
    metric::Better,
    summary::{LatencyProbe, Summary, UsageSummary},
};

use crate::compare::{gains, latency::probes};

use super::policy::{Floors, LatencyRule, PROBE, Policy, Ratio, Tolerance};

/// Below this probability a category's change is no accident, all categories counted.
const SIGNIFICANT: f64 = 0.05;
/// Latencies that differ by less than so many milliseconds are the same.
const SAME_MS: f64 = 1.0;

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

/// Floors hold for the unrounded score; where lower is better they are ceilings. What has no score has not reached its floor.
pub(super) fn floors(summary: &Summary, floors: &Floors) -> Vec<Check> {
    let overall = floors.overall.map(|floor| ("floor:overall".to_owned(), summary.headline.value, floor));
    let better = summary.scores.first().map_or(Better::Higher, |score| score.better);
    let beyond = match better {
        Better::Higher => "below",
        Better::Lower => "above",
    };
    let by_category = summary.scores.first().map_or(&[][..], |score| score.by_category.as_slice());
    let of_category = |name: &str| by_category.iter().find(|c| c.category == name).and_then(|c| c.value);
    let categories = floors.category.iter().map(|(name, floor)| (format!("floor:{name}"), of_category(name), *floor));
    overall
        .into_iter()
        .chain(categories)
        .map(|(rule, value, floor)| {
            let (outcome, detail) = match value {
                None => {
                    let detail = format!("there is no score to hold against {:.2} %", floor * 100.0);
                    (CheckOutcome::Regression, detail)
                }
                // sums of fractions may be off by their last bit
                Some(value) if better.gain(value) >= better.gain(floor) - 1e-12 => {
                    (CheckOutcome::Pass, format!("{:.2} % is not {beyond} {:.2} %", value * 100.0, floor * 100.0))
                }
                Some(value) => {
                    let (value, floor) = told_apart(value, floor);
                    (CheckOutcome::Regression, format!("{value} is {beyond} {floor}"))
                }
            };
            Check { rule, level: Level::Critical, outcome, value, bound: Some(floor), detail }
        })
        .collect()
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
                "the run has from its baseline what '{}' looks at: nothing was measured anew; gate by another --metric",
                comparison.metric
            ),
        });
    }
    if let Some(rule) = policy.overall {
        checks.push(difference("overall".to_owned(), rule, (&comparison.paired, better), None));
    }
    for category in &comparison.by_category {
        let rule = policy.categories.get(&category.category).copied().or(policy.category);
        if let Some(rule) = rule {
            let name = format!("category:{}", category.category);
            checks.push(difference(name, rule, (&category.paired, better), Some(SIGNIFICANT)));
        }
    }
    if let Some(rule) = policy.retrieval {
        let of_level = comparison.retrieval.iter();
        checks.extend(of_level.map(|level| {
            let name = format!("retrieval:{}@{}", level.level, level.k);
            difference(name, rule, (&level.paired, Better::Higher), None)
        }));
    }
    let (a, b) = (&comparison.a, &comparison.b);
    checks.extend(policy.latency.iter().map(|rule| latency(rule, a, b)));
    checks.extend(policy.cost.map(|rule| cost(rule, (&a.usage, a.n), (&b.usage, b.n))));
    checks
}

/// A paired difference against a tolerance, by the bounds of its interval. With `significant`, a regression must also
/// survive the correction over the categories.
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
        return Check { rule, level, outcome, value: None, bound, detail: why };
    };
    let survives = significant.is_none_or(|limit| paired.p_holm.is_none_or(|p| p < limit));
    let (low, high) = gains(interval, better);
    let outcome = if low >= -tolerance {
        CheckOutcome::Pass
    } else if high < 0.0 && survives {
        CheckOutcome::Regression
    } else {
        CheckOutcome::Inconclusive
    };
    let detail = format!(
        "{} points, 95 % {} to {}, tolerance {:.1}, {} questions in {} banks{}",
        points(paired.difference.unwrap_or(0.0)),
        points(interval.low),
        points(interval.high),
        tolerance * 100.0,
        paired.n,
        paired.clusters,
        paired.p_holm.map(|p| format!(", p {p:.3} (Holm)")).unwrap_or_default()
    );
    Check { rule, level, outcome, value: Some(better.gain(low)), bound, detail }
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
    let of = |probe: &LatencyProbe| match rule.percentile.as_str() {
        "p50" => probe.p50_ms,
        "p99" => probe.p99_ms,
        _ => probe.p95_ms,
    };
    let (Some(old), Some(new)) = (of(a), of(b)) else {
        return not_compared("a latency probe has no such figure".to_owned());
    };
    let quotient = if (new - old).abs() <= SAME_MS { 1.0 } else { new / old.max(f64::MIN_POSITIVE) };
    let unit = format!("{new:.1} ms after {old:.1} ms");
    quotient_check(name, rule.level, quotient, rule.ratio, &unit)
}

fn cost(rule: Ratio, (a, n_a): (&UsageSummary, u64), (b, n_b): (&UsageSummary, u64)) -> Check {
    let per_question = |usage: &UsageSummary, n: u64| (n > 0).then(|| usage.total.usd_list / n as f64);
    let name = "cost".to_owned();
    match (per_question(a, n_a), per_question(b, n_b)) {
        (Some(old), Some(new)) if old > 0.0 => {
            quotient_check(name, rule.level, new / old, rule.ratio, &format!("${new:.6} after ${old:.6} per question"))
        }
        _ => not_checked(name, rule.level, rule.ratio, "the baseline cost nothing"),
    }
}

fn quotient_check(rule: String, level: Level, quotient: f64, ratio: f64, unit: &str) -> Check {
    let outcome = if quotient <= ratio { CheckOutcome::Pass } else { CheckOutcome::Regression };
    let detail = format!("{unit}: {quotient:.2} times, at most {ratio} allowed");
    Check { rule, level, outcome, value: Some(quotient), bound: Some(ratio), detail }
}

fn not_checked(rule: String, level: Level, bound: f64, why: &str) -> Check {
    Check { rule, level, outcome: CheckOutcome::NotChecked, value: None, bound: Some(bound), detail: why.to_owned() }
}
