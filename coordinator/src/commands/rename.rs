//! `rename RUN NAME`: how people call a run. Results, fingerprint and digest know nothing of it.

use crate::{
    app::App,
    cli::RenameArgs,
    exit::{CliResult, Exit},
    out,
    standing::{find_run, naming::check_no_id},
};

/// Gives a run another name, whatever its state.
pub(super) async fn run(app: &App, args: &RenameArgs) -> CliResult {
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), &args.run).await?;
    check_no_id(store.as_ref(), Some(&args.name), &run.run_id).await?;
    store.set_labels(run.run_no, Some(&args.name), &run.tags).await?;
    let before = run.name.map(|name| format!(" instead of '{name}'")).unwrap_or_default();
    out::note(&format!("{} has the name '{}'{before}", run.run_id, args.name));
    Ok(Exit::Done)
}
