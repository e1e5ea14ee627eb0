//! Groups: the same run several times as one group, with one estimate, one confirmation and one cap (P41).
//!
//! Each repeat is a run like any other, of the group's own id with `-r1`, `-r2` … behind it, with a lineage of its own, so that no
//! repeat is answered from what another has stored (P9). They are created in one transaction and run at the same time: in a cluster
//! the dispatcher shares its room evenly between them, in this process each has its part of the slots.
//!
//! | module | question |
//! |---|---|
//! | this one | how is a group created? |
//! | [`cells`] | what are the cells of a matrix before their runs are there? |
//! | [`matrix`] | how is a matrix created, whose runs are cells? |
//! | [`execution`] | how do its runs come to rest? |
//! | [`resume`] | how does it go on after a stop? |
//! | [`ending`] | what is said at its end, and with which exit code? |

pub(crate) mod cells;
pub(crate) mod ending;
mod execution;
pub(crate) mod matrix;
pub(crate) mod resume;

use std::{collections::BTreeSet, sync::Arc};

use bench_proto::{ids::RunId, spec::RunSpec};
use bench_store::{Creation, NewGroup, NewRun, RunFilter, RunRow, Runs, Store};

use self::execution::{GroupExecution, Taken, to_the_end};
use crate::{
    app::App,
    cli::SubmitArgs,
    exit::{CliError, CliResult},
    out::{self, amounts::counted},
    planning::{filled, self_check::SelfCheckResult},
    results::{
        SELF_CHECK_EVENT,
        repeats::{Draws, filling, nothing_draws},
    },
    runs::{
        attach::{as_resume, check_goes_with},
        controls::PlannedGroup,
        executor::RunExecutor,
        start::new_run,
    },
    standing::group::{RunsOfGroup, id_of_repeat, name_of_repeat},
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

/// Refuses an id for a group that a run has.
///
/// # Errors
/// Exit 2 with what has it.
pub(crate) async fn check_no_run(store: &dyn Runs, id: &RunId) -> Result<(), CliError> {
    match store.run_by_id(id).await? {
        Some(_) => Err(CliError::usage(format!("{id} is a run already: choose another --run-id"))),
        None => Ok(()),
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
            return match group_or_free(store.as_ref(), &new.id, new.repeats).await? {
                Some(group) => attach(app, store, spec, group, (new.args, new.repeats)).await,
                None => Err(in_the_way(&existing, new.repeats)),
            };
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
    let (planned, output, detach) = (Some(measured), &new.args.output, new.args.detach);
    to_the_end(GroupExecution { app, store, group: &group, planned, output, detach }, taken).await
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

/// What has the ids of a group of so many repeats: the group itself, whichever of its runs are left; a run that is in the way of one of
/// them is refused.
///
/// # Errors
/// Exit 2 for a matrix of this id, and for a run that has the id of a repeat and is none.
pub(crate) async fn group_or_free(store: &dyn Runs, id: &RunId, repeats: u32) -> Result<Option<RunsOfGroup>, CliError> {
    if let Some(group) = RunsOfGroup::of_id(store, id).await? {
        if group.is_matrix() {
            return Err(CliError::usage(format!(
                "{id} is a matrix already: choose another --run-id; `bench-coord resume {id}` goes on with it"
            )));
        }
        return Ok(Some(group));
    }
    let ids: BTreeSet<RunId> = (1..=repeats).map(|number| id_of_repeat(id, number)).collect();
    let filter = RunFilter { id_part: Some(format!("{id}-r")), controls: true, ..RunFilter::default() };
    match store.list_runs(&filter).await?.iter().find(|run| ids.contains(&run.run_id)) {
        Some(run) => Err(in_the_way(run, repeats)),
        None => Ok(None),
    }
}

/// A run has the id of a repeat, and is of no group of this id.
fn in_the_way(run: &RunRow, repeats: u32) -> CliError {
    CliError::usage(format!("run {} exists and is none of {repeats} repeats: choose another --run-id", run.run_id))
}

/// Goes on with a group that exists, when it is the same run as many times (P30). Repeats that were deleted are not made anew: they were
/// paid for once, and whoever deleted them wanted them gone.
///
/// # Errors
/// Exit 2 with what differs; else as [`resume::resume`].
pub(crate) async fn attach(
    app: &App,
    store: &Arc<dyn Store>,
    spec: &RunSpec,
    group: RunsOfGroup,
    (args, repeats): (&SubmitArgs, u32),
) -> CliResult {
    group.runs.iter().try_for_each(|run| check_goes_with(run, spec, &group.id))?;
    let missing = missing_of(&group, repeats)?;
    out::note(&format!("group {} exists with the same settings: going on with it", group.id));
    if let Some(missing) = missing {
        out::note(&missing);
    }
    let as_resume = as_resume(&group.id, args);
    resume::resume(app, store, group, &as_resume).await
}

/// Which of so many repeats a group has lost, in words; nothing where all are there.
///
/// # Errors
/// Exit 2 for a group of another number of repeats.
fn missing_of(group: &RunsOfGroup, repeats: u32) -> Result<Option<String>, CliError> {
    let id = &group.id;
    let there: BTreeSet<u32> = group.runs.iter().filter_map(RunRow::repeat).collect();
    if there.last() != Some(&repeats) {
        let ids: Vec<&str> = group.runs.iter().map(|run| run.run_id.0.as_str()).collect();
        return Err(CliError::usage(format!(
            "{id} is a group of other repeats than the {repeats} that are asked for, or its last ones were deleted; it has {}: \
             `bench-coord resume {id}` goes on with these, and another --run-id makes {repeats} new ones",
            ids.join(", ")
        )));
    }
    let missing: Vec<String> =
        (1..repeats).filter(|number| !there.contains(number)).map(|number| id_of_repeat(id, number).0).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let verb = |number: usize| if number == 1 { "is" } else { "are" };
    let are = verb(missing.len());
    Ok(Some(format!(
        "{} {are} gone, and {are} not made anew: the group is the {} that {} left; for all {repeats} repeats choose another --run-id",
        missing.join(", "),
        counted(there.len() as u64, "run"),
        verb(there.len())
    )))
}

#[cfg(test)]
mod tests {
    use bench_store::conformance;

    use super::*;

    /// A store with such runs of the group `g`.
    async fn group_of(folder: &std::path::Path, ids: &[&str]) -> Arc<dyn Store> {
        let store = conformance::store_in(folder).await;
        for id in ids {
            let group = Some(NewGroup { id: "g".to_owned(), cap: None });
            let _ = store.create_run(&NewRun { group, ..conformance::new_run(id) }).await.expect("is created");
        }
        store
    }

    #[tokio::test]
    async fn what_is_left_of_a_group_is_found_and_what_is_gone_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = group_of(folder.path(), &["g-r2", "g-r4"]).await;
        let id = RunId("g".to_owned());
        let group = group_or_free(store.as_ref(), &id, 4).await.expect("is read").expect("is there");
        let said = missing_of(&group, 4).expect("is the same").expect("two are gone");
        assert!(said.starts_with("g-r1, g-r3 are gone, and are not made anew: the group is the 2 runs"), "{said}");
        for other in [1, 2, 3, 5] {
            let refused = missing_of(&group, other).expect_err("another number").message;
            assert!(refused.contains("it has g-r2, g-r4: `bench-coord resume g` goes on"), "{refused}");
        }
        let whole = RunsOfGroup { id: id.clone(), runs: group.runs.into_iter().take(1).collect() };
        let said = missing_of(&whole, 2).expect("is the same").expect("one is gone");
        assert!(said.starts_with("g-r1 is gone, and is not made anew: the group is the 1 run that is left"), "{said}");
    }

    #[tokio::test]
    async fn repeats_take_no_id_of_a_matrix_and_none_of_a_run_that_is_in_the_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = group_of(folder.path(), &["g-c2-r1"]).await;
        let refused = group_or_free(store.as_ref(), &RunId("g".to_owned()), 2).await.expect_err("a matrix").message;
        assert!(refused.contains("g is a matrix already"), "{refused}");
        let _ = store.create_run(&conformance::new_run("k-r2")).await.expect("is created");
        let refused = group_or_free(store.as_ref(), &RunId("k".to_owned()), 2).await.expect_err("in the way").message;
        assert!(refused.contains("run k-r2 exists and is none of 2 repeats"), "{refused}");
        assert!(group_or_free(store.as_ref(), &RunId("k".to_owned()), 1).await.expect("is read").is_none());
    }
}
