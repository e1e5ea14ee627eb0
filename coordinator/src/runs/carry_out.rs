//! The last two steps of whoever executes a run: to its rest, or left to a cluster, and what is shown of it.

use crate::{
    cli::OutputArgs,
    exit::CliResult,
    runs::{ending::show_ending, execution::Execution},
};

/// Executes a run to its rest and prints its result; with `detach` a cluster executes it.
///
/// # Errors
/// As [`show_ending`], and with `detach` as [`Execution::leave_to_cluster`].
pub(crate) async fn carry_out(execution: Execution<'_>, detach: bool, output: &OutputArgs) -> CliResult {
    if detach {
        return execution.leave_to_cluster(output.json).await;
    }
    let (app, store, run) = (execution.app, execution.store, execution.run);
    let end = execution.execute_to_rest(output).await?;
    show_ending(app, store.as_ref(), run, end, output).await
}
