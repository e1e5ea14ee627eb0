//! A watch on the accounts of a metered run: what they say was spent while it was executed is held against what was booked, so that a
//! memory system which goes around the meter is found.

use std::time::Duration;

use bench_models::{
    registry::Account,
    spent::{SpentAt, spent},
};
use bench_proto::summary::AccountsSpent;
use bench_store::{RunRow, Store};

use crate::{app::App, exit::CliError, out, results::accounts_spent::SPENT_EVENT, standing::group::group_of_equals};

/// How long a figure is waited for that lags behind what was paid, and how often it is asked meanwhile.
const LAG: Duration = Duration::from_secs(60);
const ASKED_EVERY: Duration = Duration::from_secs(5);

/// The accounts of a run, with what they said when it began.
pub(super) struct AccountWatch {
    accounts: Vec<(Account, SpentAt)>,
    usd: f64,
    booked: f64,
}

impl AccountWatch {
    /// Begins a watch where all accounts of a metered run say what they have spent; runs that are executed side by side share them, and
    /// nobody could say whose it was.
    ///
    /// # Errors
    /// What the store meets.
    pub(super) async fn begin(app: &App, store: &dyn Store, run: &RunRow) -> Result<Option<Self>, CliError> {
        if run.spec.limits.meter.is_none() || group_of_equals(run).is_some() {
            return Ok(None);
        }
        let Some(accounts) = app.accounts_that_tell(&run.spec) else { return Ok(None) };
        let usd = match sum(&accounts).await {
            Ok(usd) => usd,
            Err(why) => {
                out::note(&format!("{why}: whether the memory system goes around the meter is not looked at"));
                return Ok(None);
            }
        };
        Ok(Some(Self { accounts, usd, booked: booked(store, run).await? }))
    }

    /// Ends it, and keeps what was found with the run. A figure that lags behind what was booked is waited for.
    ///
    /// # Errors
    /// What the store meets.
    pub(super) async fn end(self, store: &dyn Store, run: &RunRow) -> Result<(), CliError> {
        let usd_booked = booked(store, run).await? - self.booked;
        let began = tokio::time::Instant::now();
        let usd = loop {
            match sum(&self.accounts).await {
                Ok(usd) if usd - self.usd >= usd_booked * 0.99 || began.elapsed() > LAG => break usd - self.usd,
                Ok(_) => tokio::time::sleep(ASKED_EVERY).await,
                Err(why) => {
                    out::note(&format!("{why}: whether the memory system went around the meter is not known"));
                    return Ok(());
                }
            }
        };
        let accounts = self.accounts.into_iter().map(|(account, _)| account.name).collect();
        let found = serde_json::to_string(&AccountsSpent { accounts, usd, usd_booked });
        store.add_event(run.run_no, SPENT_EVENT, &found.map_err(CliError::infrastructure_of)?).await?;
        Ok(())
    }
}

/// Dollars of a run so far, uncertain ones included.
async fn booked(store: &dyn Store, run: &RunRow) -> Result<f64, CliError> {
    Ok(store.run(run.run_no).await?.counters.spent.usd())
}

/// What all accounts say together.
async fn sum(accounts: &[(Account, SpentAt)]) -> Result<f64, String> {
    let mut sum = 0.0;
    for (account, at) in accounts {
        sum += spent(account, *at)
            .await
            .map_err(|why| format!("what the key of account {} has spent cannot be asked ({why})", account.name))?;
    }
    Ok(sum)
}
