//! Whether a load or a suite is worse than before, or beyond a ceiling: the flags of a gate, read and answered.

use std::path::PathBuf;

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

/// Holds what was measured against baseline and ceilings; `None` where neither was given.
///
/// # Errors
/// Exit 2 for a baseline that cannot be read, 5 for one of other conditions.
pub(crate) fn gated(args: &LoadArgs, measured: &Measured) -> Result<Option<Gate>, CliError> {
    if args.baseline.is_none() && args.ceiling.is_empty() {
        return Ok(None);
    }
    let mut checks = ceilings(measured, &args.ceiling);
    if !args.ceiling.is_empty() && checks.is_empty() {
        return Err(CliError::new(Exit::Invalid, "nothing was measured that --ceiling is about"));
    }
    if let Some(path) = &args.baseline {
        checks.extend(against(measured, path, args.ratio)?);
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

fn against(measured: &Measured, path: &PathBuf, ratio: f64) -> Result<Vec<Check>, CliError> {
    let baseline = read_all(std::slice::from_ref(path))?;
    let checks = match (measured, &baseline) {
        (Measured::Load(new), Measured::Load(old)) => gate::load(new, old, ratio),
        (Measured::Stress(new), Measured::Stress(old)) => gate::stress(new, old, ratio),
        _ => Err("one is a load, the other a suite".to_owned()),
    };
    checks.map_err(|why| CliError::new(Exit::Invalid, format!("cannot be compared with {}: {why}", path.display())))
}
