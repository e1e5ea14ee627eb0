//! Results as files: `load.json`, which can be added to those of other processes, or `stress.json`; a page and its plots.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use bench_load::{
    mix::Operation,
    result::{LoadResult, MergeError, OperationResult, Process, StepResult},
    saturation::Standing,
    stress::{self, AtOnce, Round, StressResult},
};
use bench_report::{
    html,
    svg::{Curve, Plot, latency_plot},
};
use bench_settings::{bounded, private};
use serde::{Deserialize, Serialize};

use super::table::Sheet;
use crate::{
    app::App,
    exit::{CliError, Exit},
    results::replace,
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
    fn name(&self) -> &'static str {
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

/// Writes the result as JSON, its page and its plots; each file appears whole or not at all.
///
/// # Errors
/// Exit 4 naming the file.
pub(crate) fn write(measured: &Measured, folder: &Path) -> Result<(), CliError> {
    let disk = |path: &Path, error: std::io::Error| {
        let path = path.display().to_string();
        CliError::infrastructure(format!("{path} cannot be written: {error}; --output-dir names another place"))
            .because(error)
    };
    private::create_folder(folder).map_err(|error| disk(folder, error))?;
    let json = serde_json::to_string_pretty(measured).map_err(CliError::infrastructure_of)?;
    let plots = match measured {
        Measured::Load(result) => plots(result),
        Measured::Stress(result) => plots_of_stress(result),
    };
    let Sheet { title, facts, header, rows, notes } = Sheet::of(measured);
    let page = html::Plain { title, facts, header, rows, notes, plots: &plots };
    let page = html::plain(page).map_err(CliError::infrastructure_of)?;
    let name = measured.name();
    let texts = [(format!("{name}.json"), json), (format!("{name}.html"), page)];
    let pictures = plots.iter().map(|plot| (plot.file_name.to_owned(), plot.standalone()));
    for (name, text) in texts.into_iter().chain(pictures) {
        let path = folder.join(name);
        replace(&path, |file| file.write_all(text.as_bytes())).map_err(|error| disk(&path, error))?;
    }
    Ok(())
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
    let text = bounded::text(path, bounded::RESULTS).map_err(|error| wrong(error.to_string()))?;
    let none = |error: serde_json::Error| wrong(format!("is no result of the verb `load`: {error}"));
    let head: Head = serde_json::from_str(&text).map_err(none)?;
    if head.schema == stress::SCHEMA {
        let result: StressResult = serde_json::from_str(&text).map_err(none)?;
        return result.checked().map(Measured::stress).map_err(|error| wrong(error.to_string()));
    }
    let result: LoadResult = serde_json::from_str(&text).map_err(none)?;
    result.checked().map(Measured::load).map_err(|error| wrong(error.to_string()))
}

/// The median by the size of the banks, for each number of recalls at once.
fn plots_of_stress(result: &StressResult) -> Vec<Plot> {
    let curve = |at: &AtOnce| {
        let point = |round: &Round| Some((f64::from(round.memories), round.median_ms?));
        Curve { name: format!("{} at once, p50", at.at_once), points: at.rounds.iter().filter_map(point).collect() }
    };
    let curves: Vec<Curve> = result.at_once.iter().map(curve).collect();
    let title = "latency of recalls in milliseconds by memories in a bank";
    latency_plot("latency-by-bank-size.svg", title, &curves).into_iter().collect()
}

/// Latency against rate, and against the size of banks where there are several.
fn plots(result: &LoadResult) -> Vec<Plot> {
    let sizes: Vec<u32> = result.at_bank_sizes.iter().map(|at| at.bank_size).collect();
    let mut plots = Vec::new();
    let by_rate = |step: &StepResult| step.rate;
    let curves = match sizes.as_slice() {
        [_] => both(result, by_rate, |_| true),
        sizes => {
            let of_size = |size: &u32| {
                let steps = result.steps.iter().filter(|step| step.bank_size == *size);
                curve(
                    format!("{} p99, banks of {size}", most_asked(result).name()),
                    steps,
                    by_rate,
                    most_asked(result),
                    0.99,
                )
            };
            sizes.iter().map(of_size).collect()
        }
    };
    plots.extend(latency_plot(
        "latency-by-rate.svg",
        "latency in milliseconds by operations a second, from the intended start",
        &curves,
    ));
    if sizes.len() > 1 {
        let held = result.steps.iter().filter(|step| step.standing == Standing::Held).map(|step| step.rate);
        let rate = held.fold(f64::INFINITY, f64::min);
        let rate = if rate.is_finite() { rate } else { result.plan.rates.first().copied().unwrap_or_default() };
        let at_rate = |step: &StepResult| step.rate.total_cmp(&rate).is_eq();
        let curves = both(result, |step| f64::from(step.bank_size), at_rate);
        let title = format!("latency in milliseconds by memories in a bank, at {rate} operations a second");
        plots.extend(latency_plot("latency-by-bank-size.svg", &title, &curves));
    }
    plots
}

/// The operation of which there are most.
fn most_asked(result: &LoadResult) -> Operation {
    if result.plan.mix.recall > 0 { Operation::Recall } else { Operation::Retain }
}

/// Median and 99 % of both operations.
fn both(
    result: &LoadResult,
    x: impl Fn(&StepResult) -> f64 + Copy,
    taken: impl Fn(&StepResult) -> bool + Copy,
) -> Vec<Curve> {
    let of = |(operation, share): (Operation, f64)| {
        let steps = result.steps.iter().filter(|step| taken(step));
        let name = format!("{} p{:.0}", operation.name(), share * 100.0);
        curve(name, steps, x, operation, share)
    };
    let all = [Operation::Recall, Operation::Retain].map(|operation| [(operation, 0.5), (operation, 0.99)]);
    all.into_iter().flatten().map(of).filter(|curve| !curve.points.is_empty()).collect()
}

fn curve<'a>(
    name: String,
    steps: impl Iterator<Item = &'a StepResult>,
    x: impl Fn(&StepResult) -> f64,
    operation: Operation,
    share: f64,
) -> Curve {
    let point = |step: &StepResult| {
        let tally = &step.operations.get(&operation)?.tally;
        Some((x(step), tally.served.quantile_ms(share, tally.unserved())?))
    };
    Curve { name, points: steps.filter_map(point).collect() }
}
