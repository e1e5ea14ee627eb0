//! The cells of a matrix as runs of one group: `ID-c1-r1` is the first run of the first cell.
//!
//! A matrix grows: the same file with more cells, or more repeats, adds what is not there yet to the group and goes on with the rest.
//! A cell keeps the number that it was given first, wherever it stands in the file now.

use std::{collections::BTreeSet, sync::Arc};

use bench_proto::{
    ids::{RunId, RunNo},
    matrix::{CELL_EVENT, CellNote},
    money::PicoUsd,
    spec::Limits,
    usage_cap::UsageCap,
};
use bench_store::{Creation, NewGroup, NewRun, RunRow, RunState, Store};

use super::{
    execution::{GroupExecution, Taken, to_the_end},
    resume::{self, OfCell, OfCells},
};
use crate::{
    app::App,
    cli::{OutputArgs, SubmitArgs},
    exit::{CliError, CliResult},
    out::{self, amounts::counted},
    planning::{filled, matrix::Cell, self_check::SelfCheckResult},
    results::SELF_CHECK_EVENT,
    runs::{
        attach::{as_resume, check_goes_with},
        controls::PlannedGroup,
        executor::RunExecutor,
        resume::NewLimits,
        start::new_run,
    },
    standing::{
        are_banks_removed,
        group::{CellRows, RunsOfGroup, id_of_cell, name_of_cell},
        is_restored,
    },
};

/// A cell that could start.
pub(crate) struct PlannedCell {
    /// Its number and values.
    pub(crate) cell: Cell,
    /// The settings of its command line.
    pub(crate) app: Arc<App>,
    /// Its command line.
    pub(crate) args: SubmitArgs,
    /// Its plan, without controls.
    pub(crate) planned: PlannedGroup,
    /// What the grader self-check found; none where no run of it is to be created.
    pub(crate) graders: Option<SelfCheckResult>,
    /// Its runs that are to be created.
    pub(crate) missing: Vec<u32>,
}

/// A matrix that is to be created, or to go on.
pub(crate) struct Wanted {
    /// Public id of the group.
    pub(crate) id: RunId,
    /// Its cells; at least one.
    pub(crate) cells: Vec<PlannedCell>,
    /// The group, where it exists.
    pub(crate) existing: Option<RunsOfGroup>,
    /// Runs that are told the values of their cell anew, as an axis was added.
    told: Vec<(RunNo, String)>,
}

impl Wanted {
    /// Holds a file's cells against the group of that id: numbers those that exist as they were, the others behind them, and finds
    /// which runs are missing. All come under the group's cap, a cell that costs nothing too.
    ///
    /// # Errors
    /// Exit 2 for a cell that exists with other settings, and for a cap in another unit; what the store meets.
    pub(crate) async fn find(
        store: &dyn Store,
        id: RunId,
        mut cells: Vec<PlannedCell>,
        repeats: u32,
    ) -> Result<Self, CliError> {
        let existing = RunsOfGroup::of_id(store, &id).await?;
        let known = match &existing {
            Some(group) if !group.is_matrix() => {
                let why = format!("{id} is a group of repeats and no matrix: choose another --run-id");
                return Err(CliError::usage(why));
            }
            Some(group) => CellRows::of_group(store, group).await?,
            None => Vec::new(),
        };
        let (mut taken, mut told) = (BTreeSet::new(), Vec::new());
        let mut next = known.iter().map(|cell| cell.number).max().unwrap_or(0);
        for of in &mut cells {
            let cell = same_cell(&id, &known, of)?.filter(|cell| taken.insert(cell.number));
            of.cell.number = cell.map_or_else(
                || {
                    next += 1;
                    next
                },
                |cell| cell.number,
            );
            if let Some(run) = cell.and_then(|cell| cell.runs.first()) {
                // its further runs are like those that are there: one that is submitted without a wish for its banks takes theirs
                of.planned.measured.spec.limits.banks_after = run.spec.limits.banks_after;
            }
            let has = |number: &u32| cell.is_some_and(|cell| cell.runs.iter().any(|run| run.draw() == *number));
            of.missing = (1..=repeats).filter(|number| !has(number)).collect();
            let lacks = |cell: &&CellRows| of.cell.values.keys().any(|axis| !cell.values.contains_key(axis));
            if let Some(run) = cell.filter(lacks).and_then(|cell| cell.runs.first()) {
                told.push((run.run_no, note(&of.cell)?));
            }
        }
        let others = known.len() - taken.len();
        if others > 0 {
            let others = counted(others as u64, "cell");
            out::note(&format!("{others} of matrix {id} not in the file: what was measured stays"));
        }
        let mut wanted = Self { id, cells, existing, told };
        let cap = wanted.cap(store).await?;
        for of in &mut wanted.cells {
            let limits = &mut of.planned.measured.spec.limits;
            (limits.max_cost, limits.max_usage) = (cap.usd, cap.usage);
        }
        Ok(wanted)
    }

    /// Whether runs are to be created.
    pub(crate) fn grows(&self) -> bool {
        self.cells.iter().any(|of| !of.missing.is_empty())
    }

    /// The cap of all runs together: what the command says, what the group has, or what any cell brings along.
    ///
    /// # Errors
    /// What the store meets.
    async fn cap(&self, store: &dyn Store) -> Result<GroupCap, CliError> {
        let of_cells = GroupCap::highest(self.cells.iter().map(|of| &of.planned.measured.spec.limits))?;
        let is_said = self.cells.iter().any(|of| of.args.limits.max_cost.is_some());
        let Some(run) = self.existing.as_ref().and_then(|group| group.runs.first()) else { return Ok(of_cells) };
        let (said, had) = (of_cells.usage.map(|cap| cap.unit), run.spec.limits.max_usage);
        if is_said && said != had.map(|cap| cap.unit) {
            return Err(other_unit(&self.id, had));
        }
        if is_said {
            return Ok(of_cells);
        }
        let usd = store.group(run.run_no).await?.and_then(|group| group.cap).or(of_cells.usd);
        Ok(GroupCap { usd: usd.filter(|_| had.is_none()), usage: had })
    }
}

/// Refuses a cap in another unit than the one that a matrix has counted.
pub(crate) fn other_unit(id: &RunId, had: Option<UsageCap>) -> CliError {
    let unit = had.map_or("dollars", |cap| cap.unit.name());
    CliError::usage(format!(
        "matrix {id} has counted {unit} until now, and cannot be capped in anything else; give --max-cost in {unit}"
    ))
}

/// The cap of all runs of a group together: in dollars, or on what they use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupCap {
    pub(crate) usd: Option<PicoUsd>,
    pub(crate) usage: Option<UsageCap>,
}

impl GroupCap {
    /// The highest cap that any run brings along.
    ///
    /// # Errors
    /// Exit 2 where they count different things.
    pub(crate) fn highest<'a>(limits: impl Iterator<Item = &'a Limits>) -> Result<Self, CliError> {
        let mut cap: Option<Self> = None;
        for limits in limits {
            let own = Self { usd: limits.max_cost, usage: limits.max_usage };
            let Some(before) = cap else {
                cap = Some(own);
                continue;
            };
            let units = [before, own].map(|of| of.usage.map(|cap| cap.unit));
            if units[0] != units[1] {
                let [a, b] = units.map(|unit| unit.map_or("dollars", |unit| unit.name()));
                return Err(CliError::usage(format!(
                    "one cell is capped in {a} and another in {b}: a matrix has one cap; give it with --max-cost"
                )));
            }
            let usage = before.usage.zip(own.usage).map(|(a, b)| if a.most >= b.most { a } else { b });
            cap = Some(Self { usd: before.usd.max(own.usd), usage });
        }
        Ok(cap.unwrap_or(Self { usd: None, usage: None }))
    }
}

/// The cell of the group that a cell of the file is: the one with the same values, else one that is the same run.
///
/// # Errors
/// Exit 2 when the one with the same values is another run, is metered where this one is not, or has another wish for its banks.
fn same_cell<'a>(id: &RunId, known: &'a [CellRows], of: &PlannedCell) -> Result<Option<&'a CellRows>, CliError> {
    let spec = &of.planned.measured.spec;
    if let Some(cell) = known.iter().find(|cell| cell.values == of.cell.values) {
        cell.runs.iter().try_for_each(|run| check_goes_with(run, spec, id))?;
        return Ok(Some(cell));
    }
    // the file may have more axes by now, or fewer: those that both have must say the same
    let same =
        |cell: &CellRows, axis: &String, value: &String| cell.values.get(axis).is_none_or(|other| other == value);
    let fits = |cell: &&CellRows| of.cell.values.iter().all(|(axis, value)| same(cell, axis, value));
    Ok(known.iter().filter(fits).find(|cell| cell.runs.iter().all(|run| check_goes_with(run, spec, id).is_ok())))
}

/// Creates what is missing in one transaction, takes up what is open, and stays with all of it to the end. The first runs of all
/// cells come first, then the second ones.
///
/// # Errors
/// As `submit`.
pub(crate) async fn go_on(
    app: &App,
    store: &Arc<dyn Store>,
    wanted: Wanted,
    (output, detach): (&OutputArgs, bool),
) -> CliResult {
    let first = wanted.cells.first().ok_or_else(|| CliError::usage("the matrix has no cell"))?;
    let as_resume = as_resume(&wanted.id, &first.args);
    let Wanted { id, cells, existing, told } = &wanted;
    let there = existing.as_ref().map_or(&[][..], |group| &group.runs);
    let own = of_cells(there, cells, first.args.limits.max_cost.as_ref());
    for (run, note) in told {
        store.add_event(*run, CELL_EVENT, note).await?;
    }
    if !wanted.grows() {
        let group = existing.clone().ok_or_else(|| gone(id))?;
        out::note(&format!("matrix {id} exists with the same cells: going on with it"));
        return resume::go_on(app, store, group, &as_resume, &own).await;
    }
    let mut taken = match existing {
        Some(group) => resume::open_runs(app, store, group, &as_resume, &own).await?,
        None => Vec::new(),
    };
    resume::take_up_all(store, &mut taken, &[]).await?;
    let _listening = app.interrupts();
    let fillers = may_fill(store.as_ref(), there).await?;
    let (to_create, runs) = new_runs(app, (id, fillers.as_slice()), cells)?;
    let (first, others) = runs.split_first().ok_or_else(|| gone(id))?;
    let Creation::Made(made) = store.create_or_find(first, others).await? else {
        let why = format!(
            "another command has just begun the same cells of matrix {id}; `bench-coord resume {id}` goes on with it"
        );
        return Err(CliError::usage(why));
    };
    if existing.is_some() {
        // the group is there with the cap that it had
        store.set_limits(made, &first.spec.limits).await?;
        out::note(&format!("matrix {id}: {} added to it", counted(runs.len() as u64, "run")));
    }
    for (of, executor, number) in to_create {
        let of_cell = id_of_cell(id, of.cell.number, number);
        let run = store.run_by_id(&of_cell).await?.ok_or_else(|| gone(id))?;
        let planner = Some(of.planned.measured.planner(&run, &app.home()));
        taken.push(Taken { run, executor, planner, app: Some(Arc::clone(&of.app)) });
    }
    let group = RunsOfGroup::of_id(store.as_ref(), id).await?.ok_or_else(|| gone(id))?;
    let execution = GroupExecution { app, store, group: &group, planned: None, output, detach };
    to_the_end(execution, taken).await
}

/// What the command says of the runs that are there: each goes on with the limits of its own cell, under the cap of all.
fn of_cells(there: &[RunRow], cells: &[PlannedCell], cap: Option<&String>) -> OfCells {
    let cell_of = |run: &RunRow| {
        let (number, _) = run.cell()?;
        cells.iter().find(|of| of.cell.number == number)
    };
    let of = |run: &RunRow| {
        let cell = cell_of(run);
        let limits = under_cap(cell.map(|of| NewLimits::from_flags(&of.app, &of.args.limits)), cap);
        (run.run_no, OfCell { limits, app: cell.map(|of| Arc::clone(&of.app)) })
    };
    there.iter().map(of).collect()
}

/// The limits of a run of such a cell, under the cap of all; of a run whose cell is not in the file nothing else changes.
fn under_cap(of_cell: Option<NewLimits>, cap: Option<&String>) -> NewLimits {
    let mut limits = of_cell.unwrap_or_default();
    limits.flags.max_cost = cap.cloned();
    limits
}

fn gone(id: &RunId) -> CliError {
    CliError::infrastructure(format!("the group {id} is gone just now; start it again"))
}

/// A run that is to be created: its cell, who executes it, its number among the runs of the cell.
type CellRun<'a> = (&'a PlannedCell, RunExecutor, u32);

/// Those of some runs whose banks others can ask: they are in the memory system, or will be.
async fn may_fill(store: &dyn Store, runs: &[RunRow]) -> Result<Vec<RunRow>, CliError> {
    let mut all = Vec::new();
    for run in runs.iter().filter(|run| run.state != RunState::Cancelled) {
        if !are_banks_removed(store, run).await? && !is_restored(store, run).await? {
            all.push(run.clone());
        }
    }
    Ok(all)
}

/// The runs that are missing, in the order in which they are created. `fillers`: runs that are there and may have filled what they ask.
fn new_runs<'a>(
    app: &App,
    (id, fillers): (&RunId, &[RunRow]),
    cells: &'a [PlannedCell],
) -> Result<(Vec<CellRun<'a>>, Vec<NewRun>), CliError> {
    let mut order: Vec<(u32, &PlannedCell)> =
        cells.iter().flat_map(|of| of.missing.iter().map(move |number| (*number, of))).collect();
    order.sort_by_key(|(number, of)| (*number, of.cell.number));
    let mut to_create = Vec::with_capacity(order.len());
    let mut runs: Vec<NewRun> = Vec::with_capacity(order.len());
    for (number, of) in order {
        let executor = RunExecutor::for_run(app, &id_of_cell(id, of.cell.number, number))?;
        let mut new = new_cell(id, of, &executor, number)?;
        if filled::shares_banks(&of.args, &of.planned.measured) {
            // the first that is created fills, and the others ask what it has filled
            let made = runs.iter().map(|run| (&run.run_id, &run.spec));
            let mut others = fillers.iter().map(|run| (&run.run_id, &run.spec)).chain(made);
            let filler = others
                .find(|(_, spec)| !spec.taken_over.asks_filled_banks() && filled::fills_the_same(spec, &new.spec));
            new.spec.taken_over.banks_of.extend(filler.map(|(id, _)| id.0.clone()));
        }
        runs.push(new);
        to_create.push((of, executor, number));
    }
    Ok((to_create, runs))
}

/// A run of a cell that is to be created.
fn new_cell(id: &RunId, of: &PlannedCell, executor: &RunExecutor, repeat: u32) -> Result<NewRun, CliError> {
    let spec = of.planned.measured.spec.clone();
    let number = of.cell.number;
    let checked = of.graders.as_ref().map(|graders| (SELF_CHECK_EVENT, graders.event()));
    Ok(NewRun {
        name: of.args.naming.name.as_deref().map(|name| name_of_cell(name, number, repeat)),
        group: Some(NewGroup { id: id.0.clone(), cap: spec.limits.max_cost }),
        events: std::iter::once((CELL_EVENT, note(&of.cell)?)).chain(checked).collect(),
        ..new_run(&id_of_cell(id, number, repeat), &of.args.naming, spec, executor)
    })
}

/// What a run keeps of its cell.
fn note(cell: &Cell) -> Result<String, CliError> {
    let note = serde_json::to_string(&CellNote { values: cell.values.clone() });
    note.map_err(|e| CliError::infrastructure(format!("a cell cannot be noted: {e}")).because(e))
}

#[cfg(test)]
mod tests {
    use bench_store::{BANKS_GONE_EVENT, conformance};

    use super::*;
    use crate::{cli::LimitArgs, runs::resume::change_limits, standing::ALL_BANKS};

    #[tokio::test]
    async fn each_run_goes_on_with_the_limits_of_its_own_cell_under_the_cap_of_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let of_cell = |concurrency| {
            let flags = LimitArgs { concurrency, max_cost: Some("7".to_owned()), ..LimitArgs::default() };
            Some(NewLimits { flags, ..NewLimits::default() })
        };
        let cap = "50".to_owned();
        for (id, had, of_cell, expected) in [
            ("m-c1-r1", 4, of_cell(Some(1)), 1),
            ("m-c2-r1", 8, of_cell(None), 8),
            // its cell is not in the file any more
            ("m-c3-r1", 3, None, 3),
        ] {
            let group = Some(NewGroup { id: "m".to_owned(), cap: None });
            let mut new = NewRun { group, ..conformance::new_run(id) };
            new.spec.limits.concurrency = Some(had);
            let run = store.create_run(&new).await.expect("is created");
            let row = store.run(run).await.expect("is there");
            change_limits(store, &row, &under_cap(of_cell, Some(&cap))).await.expect("are set");
            let limits = store.run(run).await.expect("is there").spec.limits;
            assert_eq!((limits.concurrency, limits.max_cost.map(PicoUsd::usd)), (Some(expected), Some(50.0)), "{id}");
        }
    }

    #[tokio::test]
    async fn runs_without_their_banks_fill_for_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let mut runs = Vec::new();
        for id in ["m-c1-r1", "m-c2-r1", "m-c3-r1", "m-c4-r1"] {
            runs.push(store.create_run(&conformance::new_run(id)).await.expect("is created"));
        }
        store.add_event(runs[0], BANKS_GONE_EVENT, ALL_BANKS).await.expect("is noted");
        for (run, to) in [(0, RunState::Finished), (1, RunState::Cancelled), (2, RunState::Finished)] {
            let ended = store.set_run_state(runs[run], &[RunState::Running], to, None).await;
            assert!(ended.expect("is set"));
        }
        let mut rows = Vec::new();
        for run in runs {
            rows.push(store.run(run).await.expect("is there"));
        }
        let fill = may_fill(store.as_ref(), &rows).await.expect("are read");
        let ids: Vec<&str> = fill.iter().map(|run| run.run_id.0.as_str()).collect();
        assert_eq!(ids, ["m-c3-r1", "m-c4-r1"]);
    }
}
