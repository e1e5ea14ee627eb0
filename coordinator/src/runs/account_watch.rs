//! A watch on the accounts of a metered run: what they say was spent while it was executed is held against what was booked, so that a
//! memory system which goes around the meter is found.

use std::time::Duration;

use bench_models::{
    registry::Account,
    spent::{SpentAt, spent},
};
use bench_proto::summary::AccountsSpent;
use bench_store::{RunRow, Store};

use crate::{
    app::App,
    exit::CliError,
    out,
    results::accounts_spent::{SPENT_EVENT, UNWATCHED_EVENT, WATCHED_EVENT, Watched, Watches},
    standing::group::group_of_equals,
};

/// How long a figure is waited for that lags behind what was paid, and how often it is asked meanwhile.
const LAG: Duration = Duration::from_secs(60);
const ASKED_EVERY: Duration = Duration::from_secs(5);

/// The accounts of a run, with what they said when it began.
pub(super) struct AccountWatch {
    accounts: Vec<(Account, SpentAt)>,
    begun: Watched,
}

impl AccountWatch {
    /// Begins a watch where all accounts of a metered run say what they have spent, or goes on with one whose process was killed. Runs
    /// that are executed side by side share accounts, and nobody could say whose it was. That a watch was not possible is kept.
    ///
    /// # Errors
    /// What the store meets.
    pub(super) async fn begin(app: &App, store: &dyn Store, run: &RunRow) -> Result<Option<Self>, CliError> {
        if run.spec.limits.meter.is_none() || group_of_equals(run).is_some() {
            return Ok(None);
        }
        let watches = Watches::read(&store.events(run.run_no).await?);
        let Some(accounts) = app.accounts_that_tell(&run.spec) else {
            if watches.are_any() {
                let why = "the settings of a later part did not say how its accounts are asked (accounts.NAME.spent)";
                store.add_event(run.run_no, UNWATCHED_EVENT, why).await?;
            }
            return Ok(None);
        };
        let names: Vec<String> = accounts.iter().map(|(account, _)| account.name.clone()).collect();
        let usd = match sum(&accounts).await {
            Ok(usd) => usd,
            Err(why) => {
                out::note(&format!("{why}: whether the memory system goes around the meter is not looked at"));
                store.add_event(run.run_no, UNWATCHED_EVENT, &why).await?;
                return Ok(None);
            }
        };
        if let Some(begun) = watches.open.filter(|begun| begun.accounts == names && begun.usd <= usd) {
            return Ok(Some(Self { accounts, begun }));
        }
        let begun = Watched { accounts: names, usd, usd_booked: booked(store, run).await? };
        let text = serde_json::to_string(&begun).map_err(CliError::infrastructure_of)?;
        store.add_event(run.run_no, WATCHED_EVENT, &text).await?;
        Ok(Some(Self { accounts, begun }))
    }

    /// Ends it, and keeps what was found with the run. Of a run that has `finished` a figure is waited for that lags behind what was
    /// booked; whoever has interrupted one does not wait.
    ///
    /// # Errors
    /// What the store meets.
    pub(super) async fn end(self, store: &dyn Store, run: &RunRow, finished: bool) -> Result<(), CliError> {
        let Self { accounts, begun } = self;
        let counters = store.run(run.run_no).await?.counters;
        let usd_booked = counters.spent.usd() - begun.usd_booked;
        // of uncertain calls nobody knows whether they were paid: they are not waited for
        let sure = usd_booked - counters.uncertain.usd();
        let (began, mut told) = (tokio::time::Instant::now(), false);
        let found = loop {
            match sum(&accounts).await {
                Ok(now) if now < begun.usd => {
                    break Err(format!("the accounts say less than before: ${now:.4}, and ${:.4} then", begun.usd));
                }
                Ok(now) if !finished || now - begun.usd >= sure * 0.99 || began.elapsed() > LAG => {
                    break Ok(now - begun.usd);
                }
                Ok(_) => {
                    if !std::mem::replace(&mut told, true) {
                        out::note(
                            "waiting for the account's figure, which lags behind what was booked: a minute at most",
                        );
                    }
                    tokio::time::sleep(ASKED_EVERY).await;
                }
                Err(why) => break Err(why),
            }
        };
        let (kind, text) = match found {
            Ok(usd) => {
                let spent = AccountsSpent { accounts: begun.accounts, usd, usd_booked, not_watched: None };
                (SPENT_EVENT, serde_json::to_string(&spent).map_err(CliError::infrastructure_of)?)
            }
            Err(why) => {
                out::note(&format!("{why}: whether the memory system went around the meter is not known"));
                (UNWATCHED_EVENT, why)
            }
        };
        Ok(store.add_event(run.run_no, kind, &text).await?)
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
