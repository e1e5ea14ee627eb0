//! Whether a load or a suite is worse than before, or beyond a ceiling: the flags of a gate, read and answered.

use std::path::Path;

use bench_load::gate::{self, Ceiling, Check, Outcome};
use serde::Serialize;

use super::files::{Measured, read_all};
use crate::{
    cli::LoadArgs,
    exit::{CliError, Exit},
};

/// What a gate says.
#[derive(Debug, Serialize)]
pub(crate) struct Gate {
    /// The worst of its checks.
    pub(crate) outcome: Outcome,
    /// Its lines.
    pub(crate) checks: Vec<Check>,
}

impl Gate {
    /// How the program ends when nothing else is wrong.
    pub(crate) fn exit(&self) -> Exit {
        match self.outcome {
            Outcome::Pass => Exit::Done,
            Outcome::Inconclusive => Exit::Inconclusive,
            Outcome::Regression => Exit::Regression,
        }
    }
}

/// What is measured is held against this: it is read before anything is loaded.
pub(crate) struct Baseline<'a> {
    path: &'a Path,
    measured: Measured,
}

impl<'a> Baseline<'a> {
    /// That of the flags, where one is given.
    ///
    /// # Errors
    /// Exit 2 for one that cannot be read.
    pub(crate) fn read(args: &'a LoadArgs) -> Result<Option<Self>, CliError> {
        let Some(path) = &args.baseline else { return Ok(None) };
        Ok(Some(Self { path, measured: read_all(std::slice::from_ref(path))? }))
    }
}

/// Holds what was measured against baseline and ceilings; `None` where neither was given.
///
/// # Errors
/// Exit 5 for a baseline of other conditions, and when nothing at all was measured.
pub(crate) fn gated(
    args: &LoadArgs,
    baseline: Option<&Baseline<'_>>,
    measured: &Measured,
) -> Result<Option<Gate>, CliError> {
    if baseline.is_none() && args.ceiling.is_empty() {
        return Ok(None);
    }
    let mut checks = ceilings(measured, &args.ceiling);
    if !args.ceiling.is_empty() && checks.is_empty() {
        let named: Vec<String> = args.ceiling.iter().map(ToString::to_string).collect();
        let has = match measured {
            Measured::Load(_) => "this load has no step",
            Measured::Stress(_) => "this suite has no round of recalls",
        };
        return Err(CliError::new(
            Exit::Invalid,
            format!(
                "--ceiling {}: {has} whose latencies could be held against it: measure a whole one, or give the file of one to --merge",
                named.join(",")
            ),
        ));
    }
    if let Some(baseline) = baseline {
        checks.extend(against(measured, baseline, args.ratio)?);
    }
    let outcome = checks.iter().map(|check| check.outcome).max().unwrap_or(Outcome::Pass);
    Ok(Some(Gate { outcome, checks }))
}

fn ceilings(measured: &Measured, ceilings: &[Ceiling]) -> Vec<Check> {
    match measured {
        Measured::Load(result) => gate::load_ceilings(result, ceilings),
        Measured::Stress(result) => gate::stress_ceilings(result, ceilings),
    }
}

fn against(measured: &Measured, baseline: &Baseline<'_>, ratio: f64) -> Result<Vec<Check>, CliError> {
    let path = baseline.path;
    let checks = match (measured, &baseline.measured) {
        (Measured::Load(new), Measured::Load(old)) => gate::load(new, old, ratio),
        (Measured::Stress(new), Measured::Stress(old)) => gate::stress(new, old, ratio),
        _ => Err("one is a load, the other a suite".to_owned()),
    };
    checks.map_err(|why| CliError::new(Exit::Invalid, format!("cannot be compared with {}: {why}", path.display())))
}
