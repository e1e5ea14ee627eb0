//! `matrix FILE`, and `submit` with several systems, presets or datasets: plans every cell of a matrix, estimates all of them, and starts them as one group.

use std::{collections::BTreeSet, ffi::OsString, sync::Arc};

use bench_proto::{ids::RunId, money::PicoUsd, redact, spec::RunSpec, usage_cap::UsageCap};
use bench_settings::bounded;
use bench_store::Store;
use bench_systems::registry;
use clap::Parser as _;
use serde_json::json;

use crate::{
    app::{App, Deployment},
    cli::{Cli, GlobalArgs, MatrixArgs, MeterArgs, NamingArgs, OutputArgs, Several, SubmitArgs, Verb},
    exit::{CliError, CliResult, Exit},
    out::{
        self,
        amounts::{counted, dollars},
        tables::{render, table},
    },
    planning::{
        matrix::{Cell, Matrix},
        self_check,
    },
    results,
    runs::{
        controls::PlannedGroup,
        estimate::{Counting, RunEstimate},
        group::{
            self,
            matrix::{PlannedCell, Wanted},
        },
        start::{check_detach, check_meter_address, check_servers, confirm, prepare_repeats},
    },
    standing::{group::RunsOfGroup, naming::check_new},
};

/// A cell with the command line that it stands for.
pub(super) struct CellLine {
    cell: Cell,
    line: Cli,
}

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
        _ => Err(matrix.of_cell(cell, CliError::usage("its flags are none of `submit`"))),
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
        check(&matrix, &mut wanted, store.as_ref()).await?;
    }
    group::matrix::go_on(app, &store, wanted, (&output, detach)).await
}

/// A matrix that exists and is capped in calls or tokens stays so, unless a cap is given: models without a price are planned under it.
async fn keep_usage_cap(store: &dyn Store, id: &RunId, cells: &mut [CellLine]) -> Result<(), CliError> {
    let Some(group) = RunsOfGroup::of_id(store, id).await? else { return Ok(()) };
    let Some(cap) = group.runs.first().and_then(|run| run.spec.limits.max_usage) else { return Ok(()) };
    for cell in cells {
        let Verb::Submit(submit) = &mut cell.line.verb else { continue };
        let said = submit.limits.max_cost.get_or_insert_with(|| format!("{}{}", cap.most, cap.unit.name()));
        if UsageCap::parse(said).is_none_or(|said| said.unit != cap.unit) {
            return Err(group::matrix::other_unit(id, Some(cap)));
        }
    }
    Ok(())
}

/// Looks at whoever will be asked, asks the person, and checks the graders: for the cells of which runs are to be created.
async fn check(matrix: &Matrix, wanted: &mut Wanted, store: &dyn Store) -> Result<(), CliError> {
    let new: Vec<(&PlannedCell, u32)> =
        wanted.cells.iter().filter(|of| !of.missing.is_empty()).map(|of| (of, of.missing.len() as u32)).collect();
    let name = wanted.cells.first().and_then(|of| of.args.naming.name.as_deref());
    check_new(store, name, &wanted.id).await?;
    for (of, _) in &new {
        let checked = check_servers(&of.app, store, &of.planned.measured.spec, false).await;
        checked.map_err(|error| matrix.of_cell(&of.cell, error))?;
    }
    let runs = new.iter().map(|(_, runs)| u64::from(*runs)).sum();
    let (cells, runs) = (counted(new.len() as u64, "cell"), counted(runs, "run"));
    let (total, each) = estimates(new, Counting::Rough).await?;
    if let Some((first, _)) = each.first() {
        confirm(&total, &first.planned.measured.spec, &first.args).await?;
    }
    out::note(&format!("matrix {}: {cells}, {runs} to make\n{}", wanted.id, total.line()));
    for of in &mut wanted.cells {
        if of.missing.is_empty() {
            continue;
        }
        let checked = self_check::run(&of.planned.measured).await;
        of.graders = Some(checked.map_err(|error| matrix.of_cell(&of.cell, error))?);
    }
    Ok(())
}

/// Takes the meter from a cell whose memory system is part of this program, and names the system: beside others that are metered it
/// needs none.
fn leave_unmetered(verb: &mut Verb) -> Option<String> {
    let Verb::Submit(args) = verb else { return None };
    let system = args.system.clone().filter(|name| args.meter.meter && registry::find(name).is_ok())?;
    args.meter = MeterArgs::default();
    Some(system)
}

/// Plans every cell; cells on the same data share it.
async fn plan_all(
    matrix: &Matrix,
    cells: Vec<CellLine>,
    (repeats, will_call): (u32, bool),
    apps: &mut Vec<Arc<App>>,
) -> Result<Vec<PlannedCell>, CliError> {
    let (mut all, mut has_controls) = (Vec::<PlannedCell>::with_capacity(cells.len()), false);
    let mut unmetered = BTreeSet::new();
    for CellLine { cell, mut line } in cells {
        unmetered.extend(leave_unmetered(&mut line.verb));
        let Verb::Submit(args) = &line.verb else { return Err(CliError::usage("its flags are none of `submit`")) };
        let in_cell = |error| matrix.of_cell(&cell, error);
        if args.stop_when.is_some() {
            return Err(in_cell(CliError::usage(
                "--stop-when: runs of a group are held against each other on all of their questions; leave it out",
            )));
        }
        let app = Arc::new(App::load(&line).map_err(in_cell)?);
        apps.push(Arc::clone(&app));
        let mut planned = PlannedGroup::plan(&app, args, will_call).await.map_err(in_cell)?;
        has_controls |= !planned.controls.is_empty();
        planned.controls.clear();
        if repeats > 1 {
            prepare_repeats(args, &mut planned).map_err(in_cell)?;
        }
        let own = &planned.measured.spec.dataset;
        if let Some(same) = all.iter().find(|other| other.planned.measured.spec.dataset == *own) {
            planned.measured.dataset = Arc::clone(&same.planned.measured.dataset);
        }
        let (args, missing) = (args.as_ref().clone(), (1..=repeats).collect());
        all.push(PlannedCell { cell, app, args, planned, graders: None, missing });
    }
    if !unmetered.is_empty() {
        let systems = unmetered.into_iter().collect::<Vec<_>>().join(", ");
        out::note(&format!("--meter: cells of {systems} have no meter, for what they call is counted already"));
    }
    let specs: Vec<&RunSpec> = all.iter().map(|cell| &cell.planned.measured.spec).collect();
    if let Some(first) = all.first() {
        check_meter_address(&first.app, &specs, repeats)?;
    }
    if has_controls {
        out::note("controls are no part of a matrix: make them cells, such as system = \"none\"");
    }
    Ok(all)
}

/// The estimate of some runs of each cell together, and that of each cell.
async fn estimates(
    cells: Vec<(&PlannedCell, u32)>,
    counting: Counting,
) -> Result<(RunEstimate, Vec<(&PlannedCell, RunEstimate)>), CliError> {
    let (mut total, mut each) = (None::<RunEstimate>, Vec::new());
    for (of, runs) in cells {
        let one = RunEstimate::of_group(&of.app, &of.planned, counting).await.repeated(runs);
        match &mut total {
            None => total = Some(one.clone()),
            Some(total) => total.and(&one),
        }
        each.push((of, one));
    }
    total.map(|total| (total, each)).ok_or_else(|| CliError::usage("the matrix has no cell"))
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
