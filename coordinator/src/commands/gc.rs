//! `gc`: drops what no run needs any more. Runs and their results stay.
//!
//! Of memory systems it removes the banks that [`removal`](crate::runs::removal) says, and with `--banks RUN` all banks of an ended
//! run, as `banks remove RUN` does.

use bench_store::{Right, RunFilter};
use serde_json::json;

use crate::{
    app::App,
    cli::GcArgs,
    exit::{CliError, CliResult, Exit},
    out,
    runs::removal::{Remover, ended},
};

/// Removes banks from memory systems and items from the store, and prints how many; exit 4 when a memory system failed.
pub(super) async fn run(app: &App, args: &GcArgs) -> CliResult {
    let store = app.open_store().await?;
    store.may(Right::Results).await?;
    let wanted = ended(store.as_ref(), &args.banks).await?;
    let mut remover = Remover::new(app, store.as_ref());
    for run in store.list_runs(&RunFilter { controls: true, ..RunFilter::default() }).await? {
        let named = wanted.iter().any(|named| named.run_no == run.run_no);
        remover.of_run(&run, named).await?;
    }
    let (removed, failed) = (remover.removed, remover.failed);
    if !args.json {
        out::result(&format!("{removed} banks that no run needs were removed from memory systems"));
    }
    match store.drop_unreferenced_items().await? {
        Some(dropped) if args.json => {
            out::json(&json!({ "banks_removed": removed, "items_dropped": dropped, "failed": failed }));
        }
        Some(dropped) => out::result(&format!("{dropped} dataset items that no run refers to were dropped")),
        None => {
            return Err(CliError::usage(
                "a plan is being written, and its items come before what refers to them: try again when no run is being planned",
            ));
        }
    }
    Ok(if failed == 0 { Exit::Done } else { Exit::Infrastructure })
}
