//! The cells of a matrix before their runs are there: each is planned by its command line; those of which runs are to be created are
//! estimated and checked.

use std::{collections::BTreeSet, sync::Arc};

use bench_proto::{ids::RunId, spec::RunSpec, usage_cap::UsageCap};
use bench_store::Store;
use bench_systems::registry;

use super::matrix::{PlannedCell, Wanted, other_unit};
use crate::{
    app::App,
    cli::{Cli, MeterArgs, Verb},
    exit::CliError,
    out::{self, amounts::counted},
    planning::{
        matrix::{Cell, Matrix},
        self_check,
    },
    runs::{
        controls::PlannedGroup,
        estimate::{Counting, RunEstimate},
        start::{check_meter_address, check_servers, confirm, prepare_repeats},
    },
    standing::{group::RunsOfGroup, naming::check_new},
};

/// A cell with the command line that it stands for.
pub(crate) struct CellLine {
    pub(crate) cell: Cell,
    pub(crate) line: Cli,
}

/// Refuses a cell that is another command.
pub(crate) fn no_submit() -> CliError {
    CliError::usage(
        "what it sets makes another command than `submit` of it: give flags of `bench-coord submit --help` only",
    )
}

/// A matrix that exists and is capped in calls or tokens stays so, unless a cap is given: models without a price are planned under it.
///
/// # Errors
/// Exit 2 for a cap in another unit; what the store meets.
pub(crate) async fn keep_usage_cap(store: &dyn Store, id: &RunId, cells: &mut [CellLine]) -> Result<(), CliError> {
    let Some(group) = RunsOfGroup::of_id(store, id).await? else { return Ok(()) };
    let Some(cap) = group.runs.first().and_then(|run| run.spec.limits.max_usage) else { return Ok(()) };
    for cell in cells {
        let Verb::Submit(submit) = &mut cell.line.verb else { continue };
        let said = submit.limits.max_cost.get_or_insert_with(|| format!("{}{}", cap.most, cap.unit.name()));
        if UsageCap::parse(said).is_none_or(|said| said.unit != cap.unit) {
            return Err(other_unit(id, Some(cap)));
        }
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

/// Plans every cell; cells on the same data share it. The settings of each cell are kept in `apps`.
///
/// # Errors
/// As `submit`, with the cell that it is about.
pub(crate) async fn plan_all(
    matrix: &Matrix,
    cells: Vec<CellLine>,
    (repeats, will_call): (u32, bool),
    apps: &mut Vec<Arc<App>>,
) -> Result<Vec<PlannedCell>, CliError> {
    let (mut all, mut has_controls) = (Vec::<PlannedCell>::with_capacity(cells.len()), false);
    let mut unmetered = BTreeSet::new();
    for CellLine { cell, mut line } in cells {
        unmetered.extend(leave_unmetered(&mut line.verb));
        let in_cell = |error| matrix.of_cell(&cell, error);
        let Verb::Submit(args) = &line.verb else { return Err(in_cell(no_submit())) };
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
///
/// # Errors
/// Exit 2 where there is no cell.
pub(crate) async fn estimates(
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

/// Looks at whoever will be asked, asks the person, and checks the graders: for the cells of which runs are to be created.
///
/// # Errors
/// As `submit`, with the cell that it is about.
pub(crate) async fn check(matrix: &Matrix, wanted: &mut Wanted, store: &dyn Store) -> Result<(), CliError> {
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
