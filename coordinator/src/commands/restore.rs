//! `restore`: tells a store that it was brought back from a backup, and has forgotten what came after it (P44). From then on
//! banks are retained under names that were never given, and running coordinators publish again what is ready.

use crate::{
    app::App,
    exit::{CliError, CliResult, Exit},
    out,
};

/// Begins a new incarnation of the store (P44), so that every process writes again what it was told; exit 2 where there is none.
pub(super) async fn run(app: &App) -> CliResult {
    if let Some(file) = app.store_file().filter(|file| !file.metadata().is_ok_and(|found| found.len() > 0)) {
        return Err(CliError::usage(format!(
            "there is no store {}: put the backup in its place first, or name it with --store sqlite:PATH",
            file.display()
        )));
    }
    let store = app.open_store().await?;
    let seen = store.incarnation().await?;
    let incarnation = store.change_incarnation(seen.number, "it was brought back from a backup").await?;
    out::result(&format!("store: incarnation {incarnation:x}; banks that were not ready begin anew under new names"));
    Ok(Exit::Done)
}
