//! `gc`: drops what no run needs any more. Runs and their results stay.

use crate::{
    app::App,
    exit::{CliError, CliResult, Exit},
    out,
};

/// Runs the verb.
pub(super) async fn run(app: &App) -> CliResult {
    let store = app.open_store().await?;
    match store.drop_unreferenced_items().await? {
        Some(dropped) => {
            out::result(&format!("{dropped} dataset items that no run refers to were dropped"));
            Ok(Exit::Done)
        }
        None => Err(CliError::usage(
            "a plan is being written, and its items come before what refers to them: try again when no run is being planned",
        )),
    }
}
