//! Does a run pass? A policy over a comparison with a baseline, decided on bounds of intervals and on exact counts. Pure.
//!
//! Every rule has a level. `critical`: a regression fails the gate; an inconclusive interval, and a score that the runs do not both
//! have, leaves it inconclusive.
//! `supporting`: a regression fails the gate, everything else passes. `advisory`: it is only said.

pub mod policy;

mod checks;

use bench_proto::{
    comparison::Comparison,
    gate::{Check, CheckOutcome, GATE_SCHEMA_VERSION, GateReport, GateVerdict, Level},
    summary::{Summary, Verdict},
};

pub use checks::beyond_floor;
pub(crate) use checks::score_checks;
pub use policy::{Floors, Policy};

/// How a person wants failures to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GateFlags {
    /// `--advisory`: exit 0 whatever was found.
    pub advisory: bool,
    /// `--allow-inconclusive`: inconclusive passes.
    pub allow_inconclusive: bool,
}

/// Holds a run against its floors and, when there is one, against its baseline.
#[must_use]
pub fn gate(
    summary: &Summary,
    baseline: Option<(String, Comparison)>,
    policy: &Policy,
    flags: GateFlags,
) -> GateReport {
    gate_of_repeats(summary, std::slice::from_ref(summary), baseline, policy, flags)
}

/// The same of the mean of repeats: `summary` has their headline, and what else a floor or a ceiling is about is the mean over
/// `repeats`. A figure that some of them do not have decides nothing.
#[must_use]
pub fn gate_of_repeats(
    summary: &Summary,
    repeats: &[Summary],
    baseline: Option<(String, Comparison)>,
    policy: &Policy,
    flags: GateFlags,
) -> GateReport {
    let mut checks = checks::floors(summary, repeats, &policy.floors);
    checks.extend(checks::by_path(repeats, policy));
    let mut reasons = Vec::new();
    if summary.run.verdict == Verdict::Invalid {
        reasons.extend(summary.run.reasons.iter().map(|reason| format!("the run is INVALID: {reason}")));
    }
    if let Some((_, comparison)) = &baseline {
        checks.extend(checks::of_comparison(comparison, policy));
        if !comparison.comparable {
            reasons.extend(comparison.reasons.iter().cloned());
        }
    }
    checks.extend(checks::least(summary, &policy.floors));
    reasons.dedup();
    let verdict = if reasons.is_empty() { decide(&checks) } else { GateVerdict::Invalid };
    let exit_code = match verdict {
        _ if flags.advisory => 0,
        GateVerdict::Inconclusive if flags.allow_inconclusive => 0,
        verdict => verdict.exit_code(),
    };
    let troubled =
        checks.iter().any(|check| matches!(check.outcome, CheckOutcome::Regression | CheckOutcome::Inconclusive));
    let severity = match verdict {
        GateVerdict::Fail | GateVerdict::Invalid => Some("critical"),
        GateVerdict::Inconclusive => Some("warning"),
        GateVerdict::Pass => troubled.then_some("warning"),
    };
    let (baseline, comparison) = baseline.unzip();
    GateReport {
        schema_version: GATE_SCHEMA_VERSION,
        run: summary.run.id.clone(),
        baseline,
        verdict,
        exit_code,
        advisory: flags.advisory,
        reasons,
        checks,
        severity: severity.map(str::to_owned),
        comparison,
        baseline_runs: Vec::new(),
    }
}

/// How the rules end together.
pub(crate) fn decide(checks: &[Check]) -> GateVerdict {
    let any = |outcome: CheckOutcome, levels: &[Level]| {
        checks.iter().any(|check| check.outcome == outcome && levels.contains(&check.level))
    };
    if any(CheckOutcome::Regression, &[Level::Critical, Level::Supporting]) {
        GateVerdict::Fail
    } else if any(CheckOutcome::Inconclusive, &[Level::Critical]) {
        GateVerdict::Inconclusive
    } else {
        GateVerdict::Pass
    }
}

#[cfg(test)]
mod tests;
