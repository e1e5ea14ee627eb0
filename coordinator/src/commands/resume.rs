//! `resume RUN`: goes on where a run stopped, and prints its result; nothing that is stored is done again.

use crate::{app::App, cli::ResumeArgs, exit::CliResult, runs::resume::resume, standing::find_run};

/// Takes up the run that is meant; of a finished one it prints the result again.
pub(super) async fn run(app: &App, args: &ResumeArgs) -> CliResult {
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), &args.run).await?;
    resume(app, store, run, args).await
}
