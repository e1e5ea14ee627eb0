//! `watch RUN`: follows a run until it comes to rest, without touching it.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    cli::WatchArgs,
    display,
    exit::{CliError, CliResult},
    runs::ending::print_finished,
    standing::{Standing, find_run},
};

/// How often the run's standing is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Shows progress until the run is at rest, then prints its result; exit 3 when it is not finished.
pub(super) async fn run(app: &App, args: &WatchArgs) -> CliResult {
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), &args.run).await?;
    let stop = CancellationToken::new();
    let view = display::follow(store.clone(), run.run_no, args.display, stop.clone());
    let standing = loop {
        let row = store.run(run.run_no).await?;
        match Standing::of_run(&row, app.store_file().as_deref()) {
            Standing::Running { .. } => tokio::time::sleep(LOOK).await,
            at_rest => break at_rest,
        }
    };
    stop.cancel();
    let _ = view.await;
    match standing {
        Standing::Finished => print_finished(app, store.as_ref(), run.run_no).await,
        other => Err(CliError::resumable(format!(
            "{} is {}: {}",
            run.run_id,
            other.word(),
            other.advice(&run.run_id).unwrap_or_default()
        ))),
    }
}
