//! `cancel RUN`: ends a run and its controls; what was scored stays readable (P23). Of a group of repeats it ends all.

use bench_store::{CANCELLED_NOW, RunRow, RunState, Store};

use crate::{
    app::App,
    cli::CancelArgs,
    exit::{CliError, CliResult, Exit},
    out,
    runs::{
        by_hand::{cancel_one, leave_alone},
        controls,
    },
    standing::group::find_runs,
};

/// Puts a run and its controls that have not ended into state `cancelled`; exit 2 when all had ended before.
pub(super) async fn run(app: &App, args: &CancelArgs) -> CliResult {
    let store = app.open_store().await?;
    let runs = find_runs(store.as_ref(), &args.run).await?;
    match runs.as_slice() {
        [one] => cancel(store.as_ref(), one, args.now).await,
        several => cancel_all(store.as_ref(), &args.run, several, args.now).await,
    }
}

/// Ends runs of a group; those that have ended stay what they are.
async fn cancel_all(store: &dyn Store, selector: &str, runs: &[RunRow], now: bool) -> CliResult {
    let mut are_cancelled = false;
    for run in runs {
        if can_cancel(store, run, now).await? {
            cancel(store, run, now).await?;
            are_cancelled = true;
        }
    }
    if are_cancelled {
        return Ok(Exit::Done);
    }
    if runs.iter().all(|run| run.state == RunState::Finished) {
        return Err(CliError::usage(format!("all runs of {selector} are finished: there is nothing to cancel")));
    }
    out::note(&format!("{selector} was cancelled already"));
    Ok(Exit::Done)
}

/// Whether there is something of a run to cancel.
async fn can_cancel(store: &dyn Store, run: &RunRow, now: bool) -> Result<bool, CliError> {
    Ok(match run.state {
        RunState::Running | RunState::Paused => true,
        // its calls may be in flight yet
        RunState::Cancelled if now => true,
        RunState::Cancelled | RunState::Finished => !controls::not_ended(store, run.run_no).await?.is_empty(),
    })
}

async fn cancel(store: &dyn Store, run: &RunRow, now: bool) -> CliResult {
    let reason = if now { CANCELLED_NOW } else { "cancelled by a user" };
    let is_cancelled = cancel_one(store, run, reason).await?;
    let controls = controls::cancel(store, run.run_no, now).await?;
    let id = &run.run_id;
    match (run.state, is_cancelled) {
        (RunState::Cancelled, true) => {
            out::note(&format!("{id} was cancelled already; its calls in flight are dropped"))
        }
        (RunState::Cancelled, false) => out::note(&format!("{id} was cancelled already")),
        (_, true) => {
            leave_alone(store, run).await?;
            out::note(&format!(
                "{id} is cancelled; `bench-coord report {id}` shows what was scored, `resume {id} --reopen` goes on all the same"
            ));
        }
        (state, false) if controls.is_none() => {
            return Err(CliError::usage(format!("{id} is {}: there is nothing to cancel", state.name())));
        }
        (_, false) => {}
    }
    if let Some(controls) = controls {
        out::note(&format!("{controls} cancelled"));
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bench_proto::ids::{RunId, RunNo};
    use bench_store::{Creation, NewGroup, NewRun, conformance};

    use super::*;
    use crate::standing::FILLER_PAUSED;

    /// A store with the run `r`, its control `r-none`, which has begun, and `r-oracle`, which waits.
    async fn with_controls() -> (tempfile::TempDir, Arc<dyn Store>, RunNo) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let waits = |id: &str| NewRun { waits: true, ..conformance::new_run(id) };
        let created = store.create_or_find(&conformance::new_run("r"), &[waits("r-none"), waits("r-oracle")]).await;
        let Creation::Made(run) = created.expect("is created") else { panic!("it is new") };
        let none = store.run_by_id(&RunId("r-none".to_owned())).await.expect("is read").expect("is there");
        let begun = store.set_run_state(none.run_no, &[RunState::Paused], RunState::Running, None).await;
        assert!(begun.expect("is set"));
        (folder, store, run)
    }

    #[tokio::test]
    async fn p23_a_run_takes_its_controls_with_it_whatever_has_ended() {
        let (_folder, store, run) = with_controls().await;
        let store = store.as_ref();
        let row = async |id: &str| store.run_by_id(&RunId(id.to_owned())).await.expect("is read").expect("is there");
        let ended = store.set_run_state(run, &[RunState::Running], RunState::Finished, None).await;
        assert!(ended.expect("is set"));

        let paused = controls::pause(store, run).await.expect("is set");
        assert_eq!(paused.as_deref(), Some("its control lexical is"));
        assert_eq!(row("r-none").await.state, RunState::Paused);
        assert!(row("r-oracle").await.waits(), "nobody has begun it");

        cancel(store, &row("r").await, false).await.expect("its controls are cancelled");
        assert_eq!(row("r").await.state, RunState::Finished);
        for control in ["r-none", "r-oracle"] {
            assert_eq!(row(control).await.state, RunState::Cancelled, "{control}");
        }
        let nothing = cancel(store, &row("r").await, false).await.expect_err("nothing is left");
        assert!(nothing.message.contains("r is finished: there is nothing to cancel"), "{}", nothing.message);
        // what they have in flight is dropped all the same
        cancel(store, &row("r").await, true).await.expect("calls are dropped");
        assert_eq!(row("r-none").await.reason.as_deref(), Some(CANCELLED_NOW));
    }

    #[tokio::test]
    async fn p23_controls_that_were_cancelled_with_their_run_wait_for_it_again() {
        let (_folder, store, run) = with_controls().await;
        let store = store.as_ref();
        let row = async |id: &str| store.run_by_id(&RunId(id.to_owned())).await.expect("is read").expect("is there");
        cancel(store, &row("r").await, false).await.expect("all are cancelled");

        assert_eq!(controls::going_on(store, run, false).await.expect("are read"), []);
        let mut again = controls::going_on(store, run, true).await.expect("are read");
        controls::reopen(store, &mut again).await.expect("are reopened");
        assert_eq!(again, [row("r-none").await, row("r-oracle").await]);
        assert!(again.iter().all(RunRow::waits), "{again:?}");
        assert_eq!(controls::not_ended(store, run).await.expect("are read").len(), 2);
        // a cluster begins them when their run has ended
        controls::start_beside(store, &row("r").await, &again).await.expect("none is begun");
        assert!(row("r-none").await.waits());
        let ended = RunRow { state: RunState::Finished, ..row("r").await };
        controls::start_beside(store, &ended, &again).await.expect("are begun");
        assert_eq!(row("r-none").await.state, RunState::Running);
    }

    #[tokio::test]
    async fn of_a_group_that_has_ended_there_is_nothing_to_cancel() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let mut runs = Vec::new();
        for id in ["g-r1", "g-r2"] {
            let run = conformance::created(store, &conformance::new_run(id)).await;
            let ended = store.set_run_state(run.run_no, &[RunState::Running], RunState::Finished, None).await;
            assert!(ended.expect("is set"));
            runs.push(RunRow { state: RunState::Finished, ..run });
        }
        let refused = cancel_all(store, "g", &runs, false).await.expect_err("all have ended").message;
        assert_eq!(refused, "all runs of g are finished: there is nothing to cancel");
        runs[1].state = RunState::Cancelled;
        cancel_all(store, "g", &runs, false).await.expect("what was cancelled is");
    }

    #[tokio::test]
    async fn p23_what_was_paused_or_cancelled_before_is_cancelled_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let run = store.create_run(&conformance::new_run("r")).await.expect("is created");
        let reason = async |now| {
            let row = store.run(run).await.expect("is read");
            cancel(store, &row, now).await.expect("is cancelled");
            store.run(run).await.expect("is read").reason.expect("a reason")
        };
        assert_eq!(reason(false).await, "cancelled by a user");
        assert_eq!(reason(true).await, CANCELLED_NOW, "its calls need not be waited for any more");
        assert_eq!(reason(false).await, CANCELLED_NOW, "what was dropped is dropped");
    }

    #[tokio::test]
    async fn who_waits_for_a_run_that_is_cancelled_is_told_to_go_on_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let of_group = |id: &str| {
            let group = Some(NewGroup { id: "g".to_owned(), cap: None });
            NewRun { group, ..conformance::new_run(id) }
        };
        let fills = store.create_run(&of_group("g-r1")).await.expect("is created");
        let mut second = of_group("g-r2");
        second.spec.taken_over.banks_of = vec!["g-r1".to_owned()];
        let asks = store.create_run(&second).await.expect("is created");
        let why = format!("{FILLER_PAUSED}; `bench-coord resume g` goes on with both (g-r1: paused)");
        let paused = store.set_run_state(asks, &[RunState::Running], RunState::Paused, Some(&why)).await;
        assert!(paused.expect("is set"));
        let fills = store.run(fills).await.expect("is there");
        cancel(store, &fills, false).await.expect("is cancelled");
        let row = store.run(asks).await.expect("is there");
        assert_eq!(row.state, RunState::Paused);
        let reason = row.reason.expect("is told");
        assert_eq!(reason, "the run that was to fill its banks was cancelled");
    }
}
