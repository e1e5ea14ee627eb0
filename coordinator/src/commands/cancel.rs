//! `cancel RUN`: ends a run; what was scored stays readable (P23). Of a group of repeats it ends all.

use bench_store::{CANCELLED_NOW, RunRow, RunState, Store};

use crate::{
    app::App,
    cli::CancelArgs,
    exit::{CliError, CliResult, Exit},
    out,
    runs::controls,
    standing::{
        FILLER_PAUSED,
        group::{RunsOfGroup, find_runs},
    },
};

/// Puts a run and the controls that wait for it into state `cancelled`; exit 2 when it had ended before.
pub(super) async fn run(app: &App, args: &CancelArgs) -> CliResult {
    let store = app.open_store().await?;
    let runs = find_runs(store.as_ref(), &args.run).await?;
    let several = runs.len() > 1;
    for run in runs {
        // repeats that have ended stay what they are
        if !several || matches!(run.state, RunState::Running | RunState::Paused) {
            cancel(store.as_ref(), &run, args.now).await?;
        }
    }
    Ok(Exit::Done)
}

/// Runs of its group that were paused with a run because it fills their banks go on without it.
async fn tell_who_waits(store: &dyn Store, run: &RunRow) -> Result<(), CliError> {
    let group = RunsOfGroup::around(store, Some(run.clone())).await?;
    for other in group.into_iter().flat_map(|group| group.runs) {
        let waits = other.reason.as_deref().is_some_and(|reason| reason.starts_with(FILLER_PAUSED));
        if waits && other.spec.taken_over.banks_of.contains(&run.run_id.0) {
            let why = Some("the run that was to fill its banks was cancelled");
            store.set_run_state(other.run_no, &[RunState::Paused], RunState::Paused, why).await?;
        }
    }
    Ok(())
}

async fn cancel(store: &dyn Store, run: &RunRow, now: bool) -> CliResult {
    let reason = if now { CANCELLED_NOW } else { "cancelled by a user" };
    if store
        .set_run_state(run.run_no, &[RunState::Running, RunState::Paused], RunState::Cancelled, Some(reason))
        .await?
    {
        controls::cancel_waiting(store, run.run_no).await?;
        tell_who_waits(store, run).await?;
        out::note(&format!(
            "{} is cancelled; `bench-coord report {}` shows what was scored, `resume {} --reopen` goes on all the same",
            run.run_id, run.run_id, run.run_id
        ));
        return Ok(Exit::Done);
    }
    match run.state {
        RunState::Cancelled => {
            out::note(&format!("{} was cancelled already", run.run_id));
            Ok(Exit::Done)
        }
        state => Err(CliError::usage(format!("{} is {}: there is nothing to cancel", run.run_id, state.name()))),
    }
}

#[cfg(test)]
mod tests {
    use bench_store::{NewGroup, NewRun, conformance};

    use super::*;

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
