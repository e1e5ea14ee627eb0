//! `matrix FILE`, and `submit` with several systems, presets or datasets: plans every cell of a matrix, estimates all of them, and starts them as one group.

use std::{ffi::OsString, sync::Arc};

use bench_proto::{money::PicoUsd, redact};
use bench_settings::bounded;
use clap::Parser as _;
use serde_json::json;

use crate::{
    app::{App, Deployment},
    cli::{Cli, GlobalArgs, MatrixArgs, NamingArgs, OutputArgs, Several, SubmitArgs, Verb},
    exit::{CliError, CliResult, Exit},
    out::{
        self,
        amounts::{counted, dollars},
        tables::{render, table},
    },
    planning::matrix::{Cell, Matrix},
    results,
    runs::{
        estimate::{Counting, RunEstimate},
        group::{
            self,
            cells::{self, CellLine, estimates, keep_usage_cap, no_submit, plan_all},
            matrix::{PlannedCell, Wanted},
        },
        start::check_detach,
    },
};

/// A matrix whose cells are command lines.
pub(super) struct Lines {
    matrix: Matrix,
    cells: Vec<CellLine>,
    whole: Whole,
}

/// What is of the whole matrix, and not of a cell.
struct Whole {
    repeats: u32,
    naming: NamingArgs,
    output: OutputArgs,
    dry_run: bool,
    detach: bool,
}

/// Reads the file and makes a `submit` of each cell.
///
/// # Errors
/// Exit 2 with the file, the line and the cell.
pub(super) fn read(cli: &Cli, args: &MatrixArgs) -> Result<Lines, CliError> {
    let path = args.file.display().to_string();
    let text =
        bounded::text(&args.file, bounded::BY_HAND).map_err(|e| CliError::usage(format!("{path}: {e}")).because(e))?;
    let matrix = Matrix::read(&path, text)?;
    let repeats = args.repeats.or(matrix.file.repeats).unwrap_or(1);
    let begin = ["bench-coord".to_owned(), "submit".to_owned(), format!("--repeats={repeats}")].map(OsString::from);
    let line = |cell: &Cell| -> Result<CellLine, CliError> {
        let (global, mut submit) = submit_of(&matrix, cell, &begin)?;
        submit.limits.max_cost.clone_from(&args.max_cost);
        submit.yes = args.yes;
        submit.dry_run = args.dry_run;
        submit.detach = args.detach;
        submit.naming = args.naming.clone();
        submit.output = args.output.clone();
        if submit.naming.name.is_none() {
            submit.naming.name.clone_from(&matrix.file.name);
        }
        let mut all = cli.global.clone();
        all.set.extend(global.set);
        Ok(CellLine { cell: cell.clone(), line: Cli { global: all, verb: Verb::Submit(submit), several: None } })
    };
    let cells = matrix.cells.iter().map(line).collect::<Result<_, CliError>>()?;
    let (naming, output) = (args.naming.clone(), args.output.clone());
    let whole = Whole { repeats, naming, output, dry_run: args.dry_run, detach: args.detach };
    Ok(Lines { matrix, cells, whole })
}

/// The same of a `submit` with several systems, presets or datasets; of an `estimate` nothing is started.
///
/// # Errors
/// Exit 2 with the cell; for a fork, which is of one run.
pub(super) fn read_several(
    args: &SubmitArgs,
    several: &Several,
    (here, is_estimate): (&[String], bool),
) -> Result<Lines, CliError> {
    if args.fork.is_some() {
        return Err(CliError::usage("--fork makes one run of one run: give one system, preset and dataset"));
    }
    let is_all = several.has_all_datasets();
    let named = |(flag, values): &(String, Vec<String>)| match flag == "dataset" && is_all {
        true => (flag.clone(), here.to_vec()),
        false => (flag.clone(), values.clone()),
    };
    let matrix = Matrix::of_axes("submit", several.axes.iter().map(named).collect())?;
    let line = |cell: &Cell| -> Result<CellLine, CliError> {
        let (global, submit) = submit_of(&matrix, cell, &several.rest)?;
        Ok(CellLine { cell: cell.clone(), line: Cli { global, verb: Verb::Submit(submit), several: None } })
    };
    let cells = matrix.cells.iter().map(line).collect::<Result<_, CliError>>()?;
    let whole = Whole {
        repeats: args.repeats.unwrap_or(1),
        naming: args.naming.clone(),
        output: args.output.clone(),
        dry_run: args.dry_run || is_estimate,
        detach: args.detach,
    };
    Ok(Lines { matrix, cells, whole })
}

/// The `submit` that a cell stands for: some words, and the cell's flags behind them.
fn submit_of(matrix: &Matrix, cell: &Cell, words: &[OsString]) -> Result<(GlobalArgs, Box<SubmitArgs>), CliError> {
    let words = words.iter().cloned().chain(cell.flags.iter().map(OsString::from));
    let parsed = Cli::try_parse_from(words).map_err(|e| {
        let said = e.to_string();
        let first = said.lines().next().unwrap_or_default().trim_start_matches("error: ");
        // clap repeats a word of the file as it is
        matrix.of_cell(cell, CliError::usage(redact::words(first)))
    })?;
    match parsed.verb {
        Verb::Submit(submit) | Verb::Estimate(submit) => Ok((parsed.global, submit)),
        _ => Err(matrix.of_cell(cell, no_submit())),
    }
}

impl Lines {
    /// The settings of the first cell: the process works with them, where no cell says otherwise.
    ///
    /// # Errors
    /// Exit 2 with the cell, unless what is wrong is of no cell: a settings file, the environment.
    pub(super) fn load_first(&self, cli: &Cli) -> Result<App, CliError> {
        let first = self.cells.first().ok_or_else(|| CliError::usage("the matrix has no cell"))?;
        App::load(&first.line).map_err(|error| match App::load(cli) {
            Err(same) if same.message == error.message => error,
            _ => self.matrix.of_cell(&first.cell, error),
        })
    }

    /// Whether nothing is to be started.
    pub(super) fn is_dry_run(&self) -> bool {
        self.whole.dry_run
    }
}

/// Plans all cells before anything is paid, then goes the way of `submit`: estimate, check, create, execute, end.
pub(super) async fn run(app: &App, lines: Lines) -> CliResult {
    let mut apps = Vec::new();
    let ended = go(app, lines, &mut apps).await;
    for of_cell in apps.into_iter().filter_map(Arc::into_inner) {
        of_cell.close().await;
    }
    ended
}

/// The same; the settings of each cell are kept in `apps`, to be closed however it ended.
async fn go(app: &App, lines: Lines, apps: &mut Vec<Arc<App>>) -> CliResult {
    let Lines { matrix, mut cells, whole: Whole { repeats, naming, output, dry_run, detach } } = lines;
    check_detach(detach, app.deployment()?)?;
    let run_id = naming.id()?;
    if !dry_run {
        app.check_queue().await?;
        app.telemetry()?;
    }
    let will_call = !dry_run && app.deployment()? == Deployment::Local;
    let there = match &run_id {
        // nothing is made for a dry run: without a store there is no matrix that it could be about
        Some(_) if dry_run => app.open_store().await.ok(),
        Some(_) => Some(app.open_store().await?),
        None => None,
    };
    if let Some((id, store)) = run_id.as_ref().zip(there.as_ref()) {
        keep_usage_cap(store.as_ref(), id, &mut cells).await?;
    }
    let mut planned = plan_all(&matrix, cells, (repeats, will_call), apps).await?;
    if dry_run {
        if let Some((id, store)) = run_id.zip(there) {
            let wanted = Wanted::find(store.as_ref(), id, planned, repeats).await?;
            planned = wanted.cells.into_iter().filter(|of| !of.missing.is_empty()).collect();
        }
        if planned.is_empty() {
            out::note("all runs of the matrix are there: nothing would be made");
            if output.json {
                out::json(&json!({"cells": [], "repeats": repeats, "usd_cap": null, "total": null}));
            }
            return Ok(Exit::Done);
        }
        return print(&planned, repeats, output.json).await;
    }
    let run_id = run_id.unwrap_or_else(bench_proto::ids::RunId::fresh);
    results::check_run_folder(app, &run_id, output.output_dir.as_deref())?;
    let store = app.open_store().await?;
    group::check_no_run(store.as_ref(), &run_id).await?;
    let mut wanted = Wanted::find(store.as_ref(), run_id, planned, repeats).await?;
    if wanted.grows() {
        cells::check(&matrix, &mut wanted, store.as_ref()).await?;
    }
    group::matrix::go_on(app, &store, wanted, (&output, detach)).await
}

/// Prints what a matrix would be and cost.
async fn print(planned: &[PlannedCell], repeats: u32, json: bool) -> CliResult {
    let new = |of: &PlannedCell| u32::try_from(of.missing.len()).unwrap_or(u32::MAX);
    let (total, each) = estimates(planned.iter().map(|of| (of, new(of))).collect(), Counting::Exact).await?;
    let is_paid = planned.iter().any(|of| of.planned.measured.is_paid());
    let caps = planned.iter().filter_map(|of| of.planned.measured.spec.limits.max_cost).max();
    let cap = caps.filter(|_| is_paid).map(PicoUsd::usd);
    if json {
        let cell = |(of, one): &(&PlannedCell, RunEstimate)| {
            json!({
                "number": of.cell.number, "values": of.cell.values, "flags": of.cell.flags, "repeats": new(of),
                "questions": of.planned.measured.spec.sample.n, "estimate": one.totals(),
            })
        };
        let cells: Vec<_> = each.iter().map(cell).collect();
        out::json(&json!({"cells": cells, "repeats": repeats, "usd_cap": cap, "total": total.totals()}));
        return Ok(Exit::Done);
    }
    let mut rows = table(["CELL", "QUESTIONS", "CALLS", "USD"]);
    for (of, one) in &each {
        let questions = of.planned.measured.spec.sample.n.to_string();
        rows.add_row([of.cell.label(), questions, one.calls().to_string(), dollars(one.expected_usd())]);
    }
    out::result(&render(&rows));
    let used = planned.iter().filter_map(|of| of.planned.measured.spec.limits.max_usage).max_by_key(|cap| cap.most);
    let cap = used.map(|cap| cap.to_string()).or(cap.map(dollars));
    let cap = cap.map(|cap| format!(" (cap {cap})")).unwrap_or_default();
    let cells = counted(planned.len() as u64, "cell");
    let what = match planned.iter().all(|of| new(of) == repeats) {
        true => format!("{cells} × {}", counted(u64::from(repeats), "run")),
        false => format!("{cells}, {}", counted(planned.iter().map(|of| u64::from(new(of))).sum(), "run")),
    };
    out::result(&format!("{what}: {} calls, {}{cap}", total.calls(), dollars(total.expected_usd())));
    if let Some(beside) = total.metered_beside() {
        out::result(beside);
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_submit_does_not_take_is_told_without_its_password() {
        let text = "[axes]\nmax-recalls = ['http://u:s3cret@h']\n";
        let matrix = Matrix::read("m.toml", text.to_owned()).unwrap_or_else(|e| panic!("{}", e.message));
        let words = ["bench-coord", "submit"].map(OsString::from);
        let said = submit_of(&matrix, &matrix.cells[0], &words).err().map(|error| error.message).unwrap_or_default();
        assert!(said.starts_with("m.toml:2: cell 1 ") && said.contains("invalid value 'http://***@h/'"), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
}
