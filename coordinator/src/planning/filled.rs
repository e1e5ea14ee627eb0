//! Banks that earlier runs have filled, for a run that asks them instead of filling its own (`--reuse-banks`, `--bank`; P33).
//!
//! In come flags and a planned run; out come what its spec takes over, and for its plan the banks that it asks. Start at [`choose`].
//!
//! | module | question |
//! |---|---|
//! | [`kept`] | may one run ask what another fills? |
//! | [`named`] | which bank is asked by its name alone? |
//! | [`reuse`] | which runs have filled the same banks? |
//! | [`still_there`] | does the memory system still hold what they filled? |
//! | [`look`] | what is there for each bank of a run? |
//! | [`bank`] | is a bank filled, and how is it asked? |
//! | [`before`] | while a plan is written: where is each of its banks filled, or about to be? |

mod bank;
mod before;
mod kept;
pub(super) mod look;
pub(super) mod named;
mod reuse;
mod still_there;

pub(super) use self::before::FilledBefore;
pub(crate) use self::{
    bank::{as_filled, is_filled},
    before::paused_filler,
    kept::{check_kept, fills_the_same, shares_banks, why_not_kept},
};
use self::{named::name_bank, reuse::reuse_banks};
use super::{PlannedRun, archived};
use crate::{app::App, cli::BankArgs, exit::CliError};

/// Lets a planned run ask the filled banks that flags name, and notes what becomes of those that it fills itself.
///
/// # Errors
/// As [`reuse_banks`] and [`name_bank`].
pub(crate) async fn choose(app: &App, args: &BankArgs, planned: &mut PlannedRun, look: bool) -> Result<(), CliError> {
    planned.spec.limits.banks_after = args.after();
    if let Some(archive) = &args.banks_from {
        return archived::ask(app, archive, args.bank.as_deref(), planned).await;
    }
    match &args.bank {
        Some(name) => name_bank(name, planned),
        None if args.reuse_banks => reuse_banks(app, planned, look).await,
        None => Ok(()),
    }
}
