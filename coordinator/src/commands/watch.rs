//! `watch RUN`: follows a run, or the repeats of a group, until it comes to rest, without touching it.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    cli::WatchArgs,
    display,
    exit::{CliError, CliResult, Exit},
    runs::{ending::print_finished, group::ending},
    standing::{
        Standing,
        group::{RunsOfGroup, find_runs},
    },
};

/// How often the run's standing is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Shows progress until the run, or each repeat of a group, is at rest, then prints the result; exit 3 when it is not finished.
pub(super) async fn run(app: &App, args: &WatchArgs) -> CliResult {
    let store = app.open_store().await?;
    let runs = find_runs(store.as_ref(), &args.run).await?;
    let stop = CancellationToken::new();
    let all = runs.iter().map(|run| run.run_no).collect();
    let view = display::look_on(store.clone(), all, args.display, stop.clone(), app.store_file());
    let mut standings = Vec::with_capacity(runs.len());
    for run in &runs {
        standings.push(loop {
            let row = store.run(run.run_no).await?;
            match Standing::of_run(&row, app.store_file().as_deref()) {
                Standing::Running { .. } => tokio::time::sleep(LOOK).await,
                at_rest => break at_rest,
            }
        });
    }
    stop.cancel();
    let _ = view.await;
    let open = runs.iter().zip(&standings).find(|(_, standing)| **standing != Standing::Finished);
    if let Some((run, standing)) = open {
        return Err(CliError::resumable(format!(
            "{} is {}: {}",
            run.run_id,
            standing.word(),
            standing.advice(&run.run_id).unwrap_or_default()
        )));
    }
    match (runs.as_slice(), RunsOfGroup::find(store.as_ref(), &args.run).await?) {
        (_, Some(group)) => ending::print_group(app, store.as_ref(), &group, args.json).await,
        ([run], None) => print_finished(app, store.as_ref(), run.run_no, args.json).await,
        _ => Ok(Exit::Done),
    }
}
