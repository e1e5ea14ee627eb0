//! What is written of a result: its file, a page and its plots.

use std::{io::Write as _, path::Path};

use bench_load::{
    mix::Operation,
    result::{LoadResult, StepResult},
    saturation::Standing,
    stress::{AtOnce, Round, StressResult},
};
use bench_report::{
    html,
    svg::{Curve, Plot, latency_plot},
};
use bench_settings::private;

use super::{files::Measured, table::Sheet};
use crate::{exit::CliError, results::replace};

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
    let Sheet { title, facts, header, rows, notes } = Sheet::from_measured(measured);
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
