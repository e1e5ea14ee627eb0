//! Whether a load, or the suite `stress`, is worse than an earlier one of the same conditions, or beyond a ceiling.
//!
//! A latency is worse when its interval lies above that of the baseline by more than a ratio, no worse when its whole interval lies
//! within that ratio, and undecided otherwise. Intervals of percentiles are those of order statistics: they take operations as
//! independent, which those of a queue are not, so that the ratio has to hold for more than chance.

use std::{fmt, str::FromStr};

use serde::Serialize;

use crate::{
    histogram::Latencies,
    line::Line,
    mix::Operation,
    result::{Findings, GrowthOfBanks, LoadResult, OperationResult, Process, StepResult},
    saturation::Standing,
    stress::StressResult,
};

/// Quantile of the normal distribution for a two-sided 95 % interval.
const Z: f64 = 1.959_964;
/// Share of recalls that may be found less often before that is worse.
const FOUND_TOLERANCE: f64 = 0.02;
/// Share of the larger of two banks that the smaller one has to have to be about as large.
const ABOUT: f64 = 0.8;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Not worse.
    Pass,
    /// These measurements cannot tell.
    Inconclusive,
    /// Worse.
    Regression,
}

impl Outcome {
    /// For tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Inconclusive => "inconclusive",
            Self::Regression => "regression",
        }
    }
}

/// A line of a gate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub what: String,
    /// What was seen, and against what.
    pub seen: String,
    /// How it ended.
    pub outcome: Outcome,
}

/// A figure that must not be above a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Ceiling {
    figure: CeilingOf,
    limit: f64,
}

impl Ceiling {
    /// The line of a ceiling about which nothing was measured: it is not kept, and not broken.
    fn not_measured(&self, of: &str, why: &str) -> Check {
        let seen = format!("not measured: {why}");
        Check { what: format!("{of}: {}", self.figure), seen, outcome: Outcome::Inconclusive }
    }
}

impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.figure, self.limit)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum CeilingOf {
    /// A percentile of the recalls, in milliseconds.
    Share(f64),
    /// Milliseconds for a thousand memories more.
    Slope,
}

impl fmt::Display for CeilingOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => write!(f, "p{}", percent(*share)),
            Self::Slope => f.write_str("slope"),
        }
    }
}

/// What is wrong with a ceiling.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no ceiling: give p50, p90, p95, p99 or p99.9 in milliseconds, or slope in milliseconds for 1,000 memories: p95=50"
)]
pub struct CeilingError(String);

impl FromStr for Ceiling {
    type Err = CeilingError;

    fn from_str(text: &str) -> Result<Self, CeilingError> {
        let wrong = || CeilingError(text.to_owned());
        let (name, limit) = text.split_once('=').ok_or_else(wrong)?;
        let limit: f64 = limit.parse().ok().filter(|limit: &f64| limit.is_finite()).ok_or_else(wrong)?;
        let figure = match name {
            "p50" => CeilingOf::Share(0.5),
            "p90" => CeilingOf::Share(0.9),
            "p95" => CeilingOf::Share(0.95),
            "p99" => CeilingOf::Share(0.99),
            "p99.9" => CeilingOf::Share(0.999),
            "slope" => CeilingOf::Slope,
            _ => return Err(wrong()),
        };
        Ok(Self { figure, limit })
    }
}

/// A percentile with its interval, in milliseconds; infinite where fewer operations were served.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Percentile {
    low: f64,
    value: f64,
    high: f64,
}

impl Percentile {
    fn from_latencies(latencies: &Latencies, never: u64, share: f64) -> Option<Self> {
        let n = (latencies.n() + never) as f64;
        if n < 1.0 {
            return None;
        }
        let half = Z * (share * (1.0 - share) / n).sqrt();
        let at = |share: f64| match share {
            share if share > 1.0 => f64::INFINITY,
            share => latencies.quantile_ms(share.max(0.0), never).unwrap_or(f64::INFINITY),
        };
        Some(Self { low: at(share - half), value: at(share), high: at(share + half) })
    }

    fn of_operation(of: &OperationResult, share: f64) -> Option<Self> {
        Self::from_latencies(&of.tally.served, of.tally.unserved(), share)
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ms: f64| if ms.is_finite() { format!("{ms:.1}") } else { "never".to_owned() };
        write!(f, "{} ms ({} to {})", ms(self.value), ms(self.low), ms(self.high))
    }
}

/// A latency against an earlier one: worse when it is more than `ratio` times as large, chance aside.
fn against(what: String, new: Percentile, old: Percentile, ratio: f64) -> Check {
    let never = new.value.is_infinite() && old.value.is_infinite();
    let outcome = if new.low > old.high * ratio && !never {
        Outcome::Regression
    } else if !never && (new.value <= old.value || new.high <= old.low * ratio) {
        Outcome::Pass
    } else {
        Outcome::Inconclusive
    };
    Check { what, seen: format!("{new} against {old}, at most {ratio} times"), outcome }
}

fn found(what: String, new: Findings, old: Findings) -> Check {
    let share = |findings: Findings| {
        let n = (findings.found + findings.missed) as f64;
        (findings.found as f64 / n.max(1.0), n)
    };
    let ((new_share, new_n), (old_share, old_n)) = (share(new), share(old));
    let variance = |share: f64, n: f64| share * (1.0 - share) / n.max(1.0);
    let half = Z * (variance(new_share, new_n) + variance(old_share, old_n)).sqrt();
    let difference = new_share - old_share;
    let outcome = if difference + half < -FOUND_TOLERANCE {
        Outcome::Regression
    } else if difference >= -FOUND_TOLERANCE {
        Outcome::Pass
    } else {
        Outcome::Inconclusive
    };
    let seen = format!("{:.1} % against {:.1} %", new_share * 100.0, old_share * 100.0);
    Check { what, seen, outcome }
}

fn apart(foreign: u64) -> Check {
    let outcome = if foreign == 0 { Outcome::Pass } else { Outcome::Regression };
    let seen = format!("{foreign} recalls with a memory of another bank");
    Check { what: "banks are kept apart".to_owned(), seen, outcome }
}

fn ceiling_of_line(what: String, line: Line, limit: f64) -> Check {
    let outcome = if line.low > limit {
        Outcome::Regression
    } else if line.high <= limit {
        Outcome::Pass
    } else {
        Outcome::Inconclusive
    };
    let Line { slope, low, high, .. } = line;
    let seen = format!("{slope:.2} ms for 1,000 memories ({low:.2} to {high:.2}), at most {limit}");
    Check { what, seen, outcome }
}

fn ceiling_of_share(what: &str, of: &OperationResult, share: f64, limit: f64) -> Option<Check> {
    let percentile = Percentile::of_operation(of, share)?;
    let outcome = if percentile.value > limit { Outcome::Regression } else { Outcome::Pass };
    let what = format!("{what}: p{}", percent(share));
    Some(Check { what, seen: format!("{percentile}, at most {limit}"), outcome })
}

/// `95`, `99.9`.
fn percent(share: f64) -> String {
    let written = format!("{:.1}", share * 100.0);
    written.trim_end_matches(".0").to_owned()
}

/// Why nothing is compared with what was cut.
const NOT_WHOLE: &str = "it ended before its time: measure a whole one";

/// Percentiles that are held against a baseline: beyond them, few operations decide.
const SHARES: [f64; 2] = [0.5, 0.95];

/// The suite against ceilings.
#[must_use]
pub fn stress_ceilings(new: &StressResult, ceilings: &[Ceiling]) -> Vec<Check> {
    let of = |at: &crate::stress::AtOnce, ceiling: &Ceiling| {
        let what = format!("recall, {} at once", at.at_once);
        let (checked, why) = match ceiling.figure {
            CeilingOf::Share(share) => {
                (ceiling_of_share(&what, &at.recall, share, ceiling.limit), "no recall was asked for")
            }
            CeilingOf::Slope => {
                let of_line = |line| ceiling_of_line(format!("{what}: slope"), line, ceiling.limit);
                (at.ms_per_1000_memories.map(of_line), "recalls were served in fewer than three rounds")
            }
        };
        checked.unwrap_or_else(|| ceiling.not_measured(&what, why))
    };
    new.at_once.iter().flat_map(|at| ceilings.iter().map(move |ceiling| of(at, ceiling))).collect()
}

/// The suite against an earlier one.
///
/// # Errors
/// In which condition the two differ: their latencies are not comparable (P43).
pub fn stress(new: &StressResult, old: &StressResult, ratio: f64) -> Result<Vec<Check>, String> {
    let conditions = |result: &StressResult| {
        [
            ("version of the suite", result.suite_version.to_string()),
            ("widths", format!("{:?}", result.widths)),
            ("machine", result.process.machine.clone()),
            ("build", result.process.build.clone()),
        ]
    };
    equal(&conditions(new), &conditions(old))?;
    if !old.is_whole() {
        return Err(NOT_WHOLE.to_owned());
    }
    let mut checks = vec![found("recalls that found their memory".to_owned(), new.findings(), old.findings())];
    checks.push(apart(new.findings().foreign));
    for at in &new.at_once {
        let Some(before) = old.at_once.iter().find(|before| before.at_once == at.at_once) else {
            return Err(format!("{} recalls at once were not measured before", at.at_once));
        };
        let what = format!("recall, {} at once", at.at_once);
        checks.extend(shares(&what, &at.recall, &before.recall, ratio));
        if let (Some(new), Some(old)) = (at.ms_per_1000_memories, before.ms_per_1000_memories) {
            let outcome = if new.low > old.high { Outcome::Regression } else { Outcome::Pass };
            let seen = format!(
                "{:.2} ms for 1,000 memories ({:.2} to {:.2}) against {:.2} ({:.2} to {:.2})",
                new.slope, new.low, new.high, old.slope, old.low, old.high
            );
            checks.push(Check { what: format!("{what}: slope"), seen, outcome });
        }
    }
    checks.extend(shares("retain", &new.retain, &old.retain, ratio));
    if let (Some(now), Some(before)) = (new.duplicates.stored_once(), old.duplicates.stored_once()) {
        let word = |once: bool| if once { "stored once" } else { "stored twice" };
        let outcome = if before && !now { Outcome::Regression } else { Outcome::Pass };
        let seen = format!("{} against {}", word(now), word(before));
        checks.push(Check { what: "memories that are sent twice".to_owned(), seen, outcome });
    }
    Ok(checks)
}

fn shares(what: &str, new: &OperationResult, old: &OperationResult, ratio: f64) -> Vec<Check> {
    let of = |share: &f64| {
        let (now, before) = (Percentile::of_operation(new, *share)?, Percentile::of_operation(old, *share)?);
        Some(against(format!("{what}: p{}", percent(*share)), now, before, ratio))
    };
    SHARES.iter().filter_map(of).collect()
}

/// A load against ceilings: those of recalls, of steps that were held or not; the slope over sizes of banks.
#[must_use]
pub fn load_ceilings(new: &LoadResult, ceilings: &[Ceiling]) -> Vec<Check> {
    let mut checks = Vec::new();
    for ceiling in ceilings {
        match ceiling.figure {
            CeilingOf::Share(share) => checks.extend(new.steps.iter().map(|step| {
                let what = format!("recall at {} a second, banks of {}", step.rate, step.bank_size);
                let recall = step.operations.get(&Operation::Recall);
                let checked = recall.and_then(|recall| ceiling_of_share(&what, recall, share, ceiling.limit));
                checked.unwrap_or_else(|| ceiling.not_measured(&what, "no recall was due"))
            })),
            CeilingOf::Slope => checks.extend(slopes(new, ceiling)),
        }
    }
    checks
}

/// The slope of recalls at each rate against a ceiling.
fn slopes(new: &LoadResult, ceiling: &Ceiling) -> Vec<Check> {
    let of_rate = |rate: f64| {
        let is_it =
            |growth: &&GrowthOfBanks| growth.operation == Operation::Recall && growth.rate.total_cmp(&rate).is_eq();
        (rate, new.growth_of_banks.iter().find(is_it))
    };
    let all: Vec<(f64, Option<&GrowthOfBanks>)> = rates(new).into_iter().map(of_rate).collect();
    // such steps end with a rate that is not held
    let is_enough = new.plan.arrivals == "steps" && all.iter().any(|(_, growth)| growth.is_some());
    let check = |(rate, growth): (f64, Option<&GrowthOfBanks>)| {
        let what = format!("recall at {rate} a second");
        match growth {
            Some(growth) => Some(ceiling_of_line(format!("{what}: slope"), growth.ms_per_1000_memories, ceiling.limit)),
            None if is_enough => None,
            None => Some(ceiling.not_measured(&what, "it takes three sizes of banks with which the rate is held")),
        }
    };
    all.into_iter().filter_map(check).collect()
}

/// The rates of its steps, each once.
fn rates(result: &LoadResult) -> Vec<f64> {
    let mut rates: Vec<f64> = result.steps.iter().map(|step| step.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
}

/// In which conditions loads are equal whose latencies are compared.
fn conditions(result: &LoadResult) -> [(&'static str, String); 11] {
    let plan = &result.plan;
    // of the same processes, in whatever order they were added up
    let of = |of: fn(&Process) -> &String| {
        let mut all: Vec<&str> = result.processes.iter().map(|process| of(process).as_str()).collect();
        all.sort_unstable();
        all.join("; ")
    };
    [
        ("--arrivals", plan.arrivals.clone()),
        ("--mix", plan.mix.to_string()),
        ("--banks", plan.banks.to_string()),
        ("--top-k", plan.top_k.to_string()),
        ("--seconds", plan.seconds.to_string()),
        ("--warm-up", plan.warm_up_seconds.to_string()),
        ("--drain", plan.drain_seconds.to_string()),
        ("--in-flight", plan.in_flight.to_string()),
        ("processes", result.processes.len().to_string()),
        ("machine", of(|process| &process.machine)),
        ("build", of(|process| &process.build)),
    ]
}

/// A load against an earlier one, at the rates and sizes that both have.
///
/// # Errors
/// In which condition the two differ: their latencies are not comparable (P43).
pub fn load(new: &LoadResult, old: &LoadResult, ratio: f64) -> Result<Vec<Check>, String> {
    equal(&conditions(new), &conditions(old))?;
    if !old.is_whole() {
        return Err(NOT_WHOLE.to_owned());
    }
    let mut checks = Vec::new();
    for step in &new.steps {
        let same =
            |before: &&StepResult| before.bank_size == step.bank_size && before.rate.total_cmp(&step.rate).is_eq();
        let Some(before) = old.steps.iter().find(same) else { continue };
        checks.extend(of_step(step, before, grows(new, step.bank_size), ratio));
    }
    if checks.is_empty() { Err("they have no rate and no size of banks in common".to_owned()) } else { Ok(checks) }
}

/// Whether banks of a size have more memories in later steps than in the first one.
fn grows(result: &LoadResult, bank_size: u32) -> bool {
    let of_size = result.steps.iter().filter(|step| step.bank_size == bank_size);
    of_size.skip(1).any(|step| step.memories_per_bank > f64::from(bank_size))
}

/// A step against the same one before, where the banks had grown about as much until then.
fn of_step(step: &StepResult, before: &StepResult, grows: bool, ratio: f64) -> Vec<Check> {
    let at = format!("at {} a second, banks of {}", step.rate, step.bank_size);
    let (now, then) = (step.memories_per_bank, before.memories_per_bank);
    if now.min(then) < ABOUT * now.max(then) {
        // what a built-in system is sent under load was once counted, and never stored
        let why = if grows {
            "; the steps before it were others"
        } else {
            "; where the system is a built-in one, whose banks are no longer counted as grown, measure a new baseline"
        };
        let seen = format!(
            "not compared: banks had {now:.0} memories on average when the step began, and {then:.0} in the baseline{why}"
        );
        return vec![Check { what: at, seen, outcome: Outcome::Inconclusive }];
    }
    let outcome = match (before.standing, step.standing) {
        (Standing::Held, Standing::Behind) => Outcome::Regression,
        _ => Outcome::Pass,
    };
    let seen = format!("{} against {}", step.standing.name(), before.standing.name());
    let mut checks = vec![Check { what: at.clone(), seen, outcome }];
    for (operation, now) in &step.operations {
        let Some(before) = before.operations.get(operation) else { continue };
        checks.extend(shares(&format!("{} {at}", operation.name()), now, before, ratio));
        if let (Some(now), Some(before)) = (now.findings, before.findings) {
            checks.push(found(format!("{} {at}: found", operation.name()), now, before));
            checks.push(apart(now.foreign));
        }
    }
    checks
}

fn equal(new: &[(&str, String)], old: &[(&str, String)]) -> Result<(), String> {
    let differs = new.iter().zip(old).find(|(new, old)| new.1 != old.1);
    differs.map_or(Ok(()), |((what, new), (_, old))| Err(format!("{what} is {new}, and was {old}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tally::Tally;

    fn percentile(ms: impl Iterator<Item = u64>, share: f64) -> Percentile {
        let mut latencies = Latencies::default();
        ms.for_each(|ms| latencies.record(Duration::from_millis(ms)));
        Percentile::from_latencies(&latencies, 0, share).expect("there are some")
    }

    #[test]
    fn twice_as_slow_is_worse_and_as_slow_is_not() {
        let (old, same, slower) =
            (percentile(100..300, 0.5), percentile(101..301, 0.5), percentile((100..300).map(|ms| ms * 2), 0.5));
        let outcome = |new| against(String::new(), new, old, 1.25).outcome;
        assert_eq!((outcome(same), outcome(slower)), (Outcome::Pass, Outcome::Regression));
        let few = percentile([150, 260, 270, 150].into_iter(), 0.5);
        assert_eq!(outcome(percentile([190, 300, 310, 320].into_iter(), 0.5)), Outcome::Inconclusive, "{few}");
    }

    #[test]
    fn what_is_never_served_is_above_every_ceiling() {
        let mut tally = Tally { unsent: 50, ..Tally::default() };
        (0..50).for_each(|_| tally.note(0.0, Duration::from_millis(1), Ok(())));
        let of = OperationResult { tally, ..OperationResult::default() };
        let check = ceiling_of_share("recall", &of, 0.99, 1e9).expect("there are some");
        assert_eq!((check.outcome, check.seen.starts_with("never")), (Outcome::Regression, true));
        assert_eq!(ceiling_of_share("recall", &of, 0.4, 2.0).expect("there are some").outcome, Outcome::Pass);
    }

    #[test]
    fn a_slope_is_judged_by_its_interval() {
        let line = |low, high| Line { slope: f64::midpoint(low, high), low, high, at_zero: 0.0, n: 10 };
        let outcome = |low, high| ceiling_of_line(String::new(), line(low, high), 2.0).outcome;
        assert_eq!(outcome(0.5, 1.5), Outcome::Pass);
        assert_eq!(outcome(1.5, 2.5), Outcome::Inconclusive);
        assert_eq!(outcome(2.5, 3.5), Outcome::Regression);
    }

    #[test]
    fn found_less_often_is_worse_when_it_is_no_chance() {
        let of = |found, missed| Findings { found, missed, foreign: 0 };
        let outcome = |new| found_of(new, of(1_490, 10));
        fn found_of(new: Findings, old: Findings) -> Outcome {
            found(String::new(), new, old).outcome
        }
        assert_eq!(outcome(of(1_480, 20)), Outcome::Pass);
        assert_eq!(outcome(of(1_350, 150)), Outcome::Regression);
        assert_eq!(outcome(of(48, 2)), Outcome::Inconclusive);
    }

    #[test]
    fn ceilings_are_read() {
        assert_eq!("p95=50".parse(), Ok(Ceiling { figure: CeilingOf::Share(0.95), limit: 50.0 }));
        assert_eq!("slope=1.5".parse(), Ok(Ceiling { figure: CeilingOf::Slope, limit: 1.5 }));
        for wrong in ["p95", "p94=1", "p95=fast", "slope=inf", ""] {
            assert!(wrong.parse::<Ceiling>().is_err(), "{wrong}");
        }
    }
}
