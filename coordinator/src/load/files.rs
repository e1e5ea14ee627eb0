//! Results as files: `load.json`, which can be added to those of other processes, or `stress.json`.

use std::path::{Path, PathBuf};

use bench_load::{
    result::{LoadResult, MergeError, OperationResult, Process},
    stress::{self, StressResult},
};
use bench_proto::json_bound;
use bench_settings::bounded;
use serde::{Deserialize, Serialize};

use crate::{
    app::App,
    exit::{CliError, Exit},
};

/// What was measured.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Measured {
    /// A load at stated rates.
    Load(Box<LoadResult>),
    /// The suite `stress`.
    Stress(Box<StressResult>),
}

impl Measured {
    pub(super) fn load(result: LoadResult) -> Self {
        Self::Load(Box::new(result))
    }

    pub(super) fn stress(result: StressResult) -> Self {
        Self::Stress(Box::new(result))
    }

    /// What its files are named.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Load(_) => "load",
            Self::Stress(_) => "stress",
        }
    }

    fn processes(&self) -> &[Process] {
        match self {
            Self::Load(result) => &result.processes,
            Self::Stress(result) => std::slice::from_ref(&result.process),
        }
    }

    /// Whether a process was stopped before its time.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.processes().iter().any(|process| process.interrupted)
    }

    /// Why it is not whole, where no person has ended it.
    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Self::Load(result) => result.failure.as_deref(),
            Self::Stress(result) => result.failure.as_deref(),
        }
    }

    /// All operations.
    pub(crate) fn operations(&self) -> Vec<&OperationResult> {
        match self {
            Self::Load(result) => result.steps.iter().flat_map(|step| step.operations.values()).collect(),
            Self::Stress(result) => {
                std::iter::once(&result.retain).chain(result.at_once.iter().map(|at| &at.recall)).collect()
            }
        }
    }
}

/// Folder of the files: `$BENCH_HOME/load/<id>`, unless the person named one.
pub(crate) fn folder_of(app: &App, measured: &Measured, output_dir: Option<&Path>) -> PathBuf {
    let ids: Vec<&str> = measured.processes().iter().map(|process| process.id.as_str()).collect();
    let id = match ids.as_slice() {
        [first, _, _, rest @ ..] if !rest.is_empty() => format!("{first}+{}", ids.len() - 1),
        ids => ids.join("+"),
    };
    // a file's own id is no path
    let id: String = id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '+').take(64).collect();
    output_dir.map_or_else(|| app.home().join("load").join(id), Path::to_owned)
}

/// Reads the results of several processes and adds them up; a single one of any kind is read as it is.
///
/// # Errors
/// Exit 2 for files that are no results, 5 for results that are not of one load.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Measured, CliError> {
    let mut loads = Vec::new();
    for path in paths {
        match read(path)? {
            Measured::Load(result) => loads.push(*result),
            stress @ Measured::Stress(_) if paths.len() == 1 => return Ok(stress),
            Measured::Stress(_) => {
                let path = path.display();
                return Err(CliError::new(Exit::Invalid, format!("{path}: results of a suite are not added up")));
            }
        }
    }
    LoadResult::merged(loads).map(Measured::load).map_err(|error| match error {
        MergeError::NotOne(_) => CliError::new(Exit::Invalid, error.to_string()).because(error),
        MergeError::Unreadable(_) => CliError::usage_of(error),
    })
}

/// What every result begins with.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

fn read(path: &Path) -> Result<Measured, CliError> {
    let wrong = |why: String| CliError::usage(format!("{}: {why}", path.display()));
    let text = bounded::text(path, bounded::RESULTS).map_err(|error| wrong(error.to_string()).because(error))?;
    let none = |error: serde_json::Error| wrong(format!("is no result of the verb `load`: {error}")).because(error);
    let head: Head = json_bound::from_str(&text, json_bound::LIST).map_err(none)?;
    if head.schema == stress::SCHEMA {
        let result: StressResult = serde_json::from_str(&text).map_err(none)?;
        return result.checked().map(Measured::stress).map_err(|error| wrong(error.to_string()));
    }
    let result: LoadResult = serde_json::from_str(&text).map_err(none)?;
    result.checked().map(Measured::load).map_err(|error| wrong(error.to_string()))
}
