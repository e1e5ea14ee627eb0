//! `pause RUN`: holds a run and its controls. Whoever executes them sees the changed rows within half a second (P21, P23). Of a group of
//! repeats it holds all.

use bench_store::{RunRow, RunState, Store};

use crate::{
    app::App,
    cli::RunArg,
    exit::{CliError, CliResult, Exit},
    out,
    runs::{by_hand::pause_one, controls},
    standing::group::find_runs,
};

/// Puts a run and its controls that are at work into state `paused`, which their owner reads; exit 2 when none is running.
pub(super) async fn run(app: &App, args: &RunArg) -> CliResult {
    let store = app.open_store().await?;
    let runs = find_runs(store.as_ref(), &args.run).await?;
    pause_all(store.as_ref(), &args.run, &runs).await
}

/// Holds runs; of several, those that are not running stay what they are.
async fn pause_all(store: &dyn Store, selector: &str, runs: &[RunRow]) -> CliResult {
    let mut are_held = false;
    for run in runs {
        if let Some(said) = pause(store, run).await? {
            out::note(&said);
            are_held = true;
        }
    }
    if are_held {
        return Ok(Exit::Done);
    }
    let named = match runs {
        [one] => one.run_id.0.as_str(),
        _ => selector,
    };
    if runs.iter().any(|run| run.state == RunState::Paused) {
        out::note(&format!("{named} was paused already"));
        return Ok(Exit::Done);
    }
    Err(CliError::usage(match runs {
        [one] => format!("{named} is {}: only a running run can be paused", one.state.name()),
        _ => format!("no run of {named} is running: there is nothing to pause"),
    }))
}

/// Holds a run and says so; nothing where neither it nor a control of it is at work.
async fn pause(store: &dyn Store, run: &RunRow) -> Result<Option<String>, CliError> {
    let is_paused = pause_one(store, run.run_no).await?;
    let controls = controls::pause(store, run.run_no).await?;
    let id = &run.run_id;
    let what = match (is_paused, controls) {
        (true, None) => format!("{id} is"),
        (true, Some(controls)) => format!("{id} is paused, and {controls}"),
        (false, Some(controls)) => format!("{id} is {}; {controls}", run.state.name()),
        (false, None) => return Ok(None),
    };
    Ok(Some(format!("{what} paused; calls in flight finish; `bench-coord resume {id}` goes on")))
}

#[cfg(test)]
mod tests {
    use bench_store::conformance;

    use super::*;

    #[tokio::test]
    async fn where_nothing_is_at_work_there_is_nothing_to_pause() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let store = store.as_ref();
        let mut runs = Vec::new();
        for id in ["g-r1", "g-r2"] {
            runs.push(conformance::created(store, &conformance::new_run(id)).await);
        }
        pause_all(store, "g", &runs).await.expect("both are held");
        for run in &mut runs {
            *run = store.run(run.run_no).await.expect("is there");
            assert_eq!(run.state, RunState::Paused);
        }
        pause_all(store, "g", &runs).await.expect("they are held already");
        for run in &mut runs {
            let ended = store.set_run_state(run.run_no, &[RunState::Paused], RunState::Cancelled, None).await;
            assert!(ended.expect("is set"));
            *run = store.run(run.run_no).await.expect("is there");
        }
        let all = pause_all(store, "g", &runs).await.expect_err("all have ended").message;
        assert_eq!(all, "no run of g is running: there is nothing to pause");
        let one = pause_all(store, "g-r1", &runs[..1]).await.expect_err("it has ended").message;
        assert_eq!(one, "g-r1 is cancelled: only a running run can be paused");
    }
}
