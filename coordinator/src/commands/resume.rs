//! `resume RUN`: goes on where a run stopped, and prints its result; nothing that is stored is done again.

use crate::{
    app::App,
    cli::ResumeArgs,
    exit::CliResult,
    runs::{group, resume::resume},
    standing::{find_run, group::RunsOfGroup},
};

/// Takes up the run that is meant; of a finished one it prints the result again.
pub(super) async fn run(app: &App, args: &ResumeArgs) -> CliResult {
    let store = app.open_store().await?;
    if let Some(group) = RunsOfGroup::find(store.as_ref(), &args.run).await? {
        return group::resume::resume(app, &store, group, args).await;
    }
    let run = find_run(store.as_ref(), &args.run).await?;
    resume(app, store, run, args).await
}
