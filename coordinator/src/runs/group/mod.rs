//! RunsOfGroup: the same run several times as one group, with one estimate, one confirmation and one cap (P41).
//!
//! Each repeat is a run like any other, of the group's own id with `-r1`, `-r2` … behind it, with a lineage of its own, so that no
//! repeat is answered from what another has stored (P9). They are created in one transaction and run at the same time: in a cluster
//! the dispatcher shares its room evenly between them, in this process each has its part of the slots.
//!
//! | module | question |
//! |---|---|
//! | this one | how is a group created? |
//! | [`matrix`] | how is a matrix created, whose runs are cells? |
//! | [`execution`] | how do its runs come to rest? |
//! | [`resume`] | how does it go on after a stop? |
//! | [`ending`] | what is said at its end, and with which exit code? |

pub(crate) mod ending;
mod execution;
pub(crate) mod matrix;
pub(crate) mod resume;

use std::sync::Arc;

use bench_proto::{ids::RunId, spec::RunSpec};
use bench_store::{Creation, NewGroup, NewRun, RunRow, Runs, Store};

use self::execution::Taken;
use crate::{
    app::App,
    cli::SubmitArgs,
    exit::{CliError, CliResult},
    out,
    planning::{filled, self_check::SelfCheckResult},
    results::{
        SELF_CHECK_EVENT,
        repeats::{Draws, filling, nothing_draws},
    },
    runs::{
        attach::{as_resume, check_same},
        controls::PlannedGroup,
        executor::RunExecutor,
        start::new_run,
    },
    standing::group::{RunsOfGroup, id_of_cell, id_of_repeat, member, name_of_repeat},
};

/// What creating a group needs of its command.
pub(crate) struct NewRepeats<'a> {
    /// Flags.
    pub args: &'a SubmitArgs,
    /// The run that is repeated, with its controls.
    pub planned: &'a PlannedGroup,
    /// Public id of the group.
    pub id: RunId,
    /// Number of runs that are created.
    pub repeats: u32,
    /// What the grader self-check found.
    pub graders: &'a SelfCheckResult,
}

/// Refuses an id that a run and a group would share.
///
/// # Errors
/// Exit 2 with what has it.
pub(crate) async fn check_free(store: &dyn Runs, id: &RunId, repeats: Option<u32>) -> Result<(), CliError> {
    let own = store.run_by_id(id).await?.is_some();
    let mut equals = false;
    for first in [id_of_repeat(id, 1), id_of_cell(id, 1, 1)] {
        equals |= store.run_by_id(&first).await?.is_some_and(|run| member(&run));
    }
    match (repeats, own, equals) {
        (Some(_), true, _) => Err(CliError::usage(format!("{id} is a run already: choose another --run-id"))),
        (None, _, true) => Err(CliError::usage(format!("{id} is a group of runs already: choose another --run-id"))),
        _ => Ok(()),
    }
}

/// Says how banks are filled, and when repeats say nothing.
fn tell(spec: &RunSpec, asks_filled: bool) {
    let draws = Draws::from_spec(spec, asks_filled);
    out::note(&filling(spec, &draws));
    if draws.none() {
        out::note(&nothing_draws(spec));
    }
}

/// Creates the group and stays with it to its end.
///
/// # Errors
/// As `submit`.
pub(crate) async fn start(app: &App, store: &Arc<dyn Store>, new: NewRepeats<'_>) -> CliResult {
    let measured = &new.planned.measured;
    let spec = &measured.spec;
    let shares = filled::shares_banks(new.args, measured);
    tell(spec, shares || spec.taken_over.asks_filled_banks());
    let executors = (1..=new.repeats).map(|number| RunExecutor::for_run(app, &id_of_repeat(&new.id, number)));
    let executors: Vec<RunExecutor> = executors.collect::<Result<_, _>>()?;
    let _listening = app.interrupts();
    let mut runs = executors.iter().zip(1..).map(|(executor, number)| new_repeat(&new, executor, number, shares));
    let Some(first) = runs.next() else { return Err(CliError::usage("--repeats: at least one")) };
    let others: Vec<NewRun> = runs.chain(new.planned.new_controls(&first)).collect();
    let first = match store.create_or_find(&first, &others).await? {
        Creation::Made(run) => store.run(run).await?,
        Creation::Found(existing) => {
            // their locks, where there are some, are taken anew like those of any run that exists
            drop(executors);
            return attach(app, store, spec, *existing, (new.args, new.repeats)).await;
        }
    };
    let Some(group) = RunsOfGroup::around(store.as_ref(), Some(first)).await? else {
        return Err(CliError::infrastructure(format!("the group {} is gone just now; submit it again", new.id)));
    };
    let mut taken = Vec::with_capacity(group.runs.len());
    for (run, executor) in group.runs.iter().zip(executors) {
        let planner = Some(new.planned.measured.planner(run, &app.home()));
        taken.push(Taken { run: run.clone(), executor, planner, app: None });
    }
    execution::to_the_end(app, store, &group, taken, (Some(&new.planned.measured), &new.args.output, new.args.detach))
        .await
}

/// A repeat that is to be created; where they share banks, all ask those that the first one fills.
fn new_repeat(new: &NewRepeats<'_>, executor: &RunExecutor, number: u32, shares: bool) -> NewRun {
    let id = id_of_repeat(&new.id, number);
    let mut spec = new.planned.measured.spec.clone();
    if shares && number > 1 {
        spec.taken_over.banks_of = vec![id_of_repeat(&new.id, 1).0];
    }
    let group = NewGroup { id: new.id.0.clone(), cap: spec.limits.max_cost };
    NewRun {
        name: new.args.naming.name.as_deref().map(|name| name_of_repeat(name, number)),
        group: Some(group),
        events: vec![(SELF_CHECK_EVENT, new.graders.event())],
        ..new_run(&id, &new.args.naming, spec, executor)
    }
}

/// Goes on with the group whose first repeat exists, when it is the same run as many times (P30).
///
/// # Errors
/// Exit 2 with what differs; else as [`resume::resume`].
pub(crate) async fn attach(
    app: &App,
    store: &Arc<dyn Store>,
    spec: &RunSpec,
    existing: RunRow,
    (args, repeats): (&SubmitArgs, u32),
) -> CliResult {
    check_same(&existing, spec)?;
    let found = RunsOfGroup::around(store.as_ref(), Some(existing.clone())).await?;
    let group = found.filter(|group| group.runs.len() == repeats as usize).ok_or_else(|| {
        CliError::usage(format!(
            "run {} exists and is none of {repeats} repeats; choose another --run-id, or the same --repeats",
            existing.run_id
        ))
    })?;
    out::note(&format!("group {} exists with the same settings: going on with it", group.id));
    let as_resume = as_resume(&group.id, args);
    resume::resume(app, store, group, &as_resume).await
}
