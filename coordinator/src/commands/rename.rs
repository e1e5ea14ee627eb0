//! `rename RUN NAME`: how people call a run. Results, fingerprint and digest know nothing of it.

use bench_proto::ids::RunId;

use crate::{
    app::App,
    cli::RenameArgs,
    exit::{CliError, CliResult, Exit},
    out,
    standing::{find_run, group::RunsOfGroup},
};

/// Gives a run another name, whatever its state.
pub(super) async fn run(app: &App, args: &RenameArgs) -> CliResult {
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), &args.run).await?;
    if store.run_by_id(&RunId(args.name.clone())).await?.is_some_and(|other| other.run_no != run.run_no) {
        return Err(CliError::usage(format!(
            "'{}' is the id of another run, and would always mean that one: choose another name",
            args.name
        )));
    }
    if RunsOfGroup::of_id(store.as_ref(), &RunId(args.name.clone())).await?.is_some() {
        return Err(CliError::usage(format!(
            "'{}' is the id of a group of runs, and to most verbs would mean that one: choose another name",
            args.name
        )));
    }
    store.set_labels(run.run_no, Some(&args.name), &run.tags).await?;
    let before = run.name.map(|name| format!(" instead of '{name}'")).unwrap_or_default();
    out::note(&format!("{} has the name '{}'{before}", run.run_id, args.name));
    Ok(Exit::Done)
}
