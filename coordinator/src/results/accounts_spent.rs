//! What the accounts of a metered run said while it was executed, kept as events of the run.

use bench_proto::summary::AccountsSpent;
use bench_store::{RunEvent, RunRow, Runs};

use crate::exit::CliError;

/// Kind of the event that keeps what was found, as JSON: one for each time that the run was executed.
pub(crate) const SPENT_EVENT: &str = "accounts_spent";

/// What was found of a run, over all times that it was executed; none where nobody looked.
///
/// # Errors
/// What the store meets.
pub(super) async fn found(store: &dyn Runs, run: &RunRow) -> Result<Option<AccountsSpent>, CliError> {
    let events = store.events(run.run_no).await?;
    let of_event = |event: &RunEvent| serde_json::from_str::<AccountsSpent>(&event.message).ok();
    let all = events.iter().filter(|event| event.kind == SPENT_EVENT).filter_map(of_event);
    Ok(all.reduce(|mut sum, next| {
        sum.usd += next.usd;
        sum.usd_booked += next.usd_booked;
        next.accounts.into_iter().for_each(|name| {
            if !sum.accounts.contains(&name) {
                sum.accounts.push(name);
            }
        });
        sum
    }))
}
