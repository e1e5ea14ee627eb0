//! Banks that are asked by their names alone (`--bank`): nobody says what they hold.

use bench_proto::{canary::CanarySpec, spec::RunSpec};

use super::{super::PlannedRun, kept::check_kept, look::note};
use crate::exit::CliError;

/// What stands for the dataset's id of a bank in a name.
pub(super) const BANK_ID: &str = "{bank_id}";

/// Lets a planned run ask a bank that is there already: nothing of its own is stored in it.
///
/// # Errors
/// Exit 2 for a memory system that keeps no banks, and for one bank where the sample has several.
pub(super) fn name_bank(name: &str, planned: &mut PlannedRun) -> Result<(), CliError> {
    let spec = &mut planned.spec;
    if planned.capabilities.from_items {
        return Err(CliError::usage(format!(
            "--bank: {} is computed from the dataset's texts, and has no bank that could be there already",
            spec.system.name
        )));
    }
    check_kept(spec, &planned.capabilities, "--bank")?;
    ask_by_name(name, spec)
}

/// Lets a run ask banks by their names alone: nobody says what they hold.
///
/// # Errors
/// Exit 2 for one bank where the sample has several, and for something else in braces than the id of a bank.
pub(in super::super) fn ask_by_name(name: &str, spec: &mut RunSpec) -> Result<(), CliError> {
    let others = name.replace(BANK_ID, "");
    if let Some((unknown, _)) = others.split_once('{').and_then(|(_, rest)| rest.split_once('}')) {
        return Err(CliError::usage(format!(
            "--bank {name}: {{{unknown}}} stands for nothing; {BANK_ID} is the dataset's id of each bank"
        )));
    }
    if spec.sample.banks > 1 && !name.contains(BANK_ID) {
        return Err(CliError::usage(format!(
            "--bank {name}: the sample has {} banks; put {BANK_ID} where the dataset's id of each stands in the names, or add \
             --max-banks 1",
            spec.sample.banks
        )));
    }
    // nothing is stored beside what is there, and nothing is known to be in it
    spec.canaries = Some(CanarySpec::OFF);
    spec.lists = false;
    note(
        spec,
        format!(
            "bank {name} was there before and nothing was stored in it: what it holds is not known here, and not proven"
        ),
    );
    spec.taken_over.bank = Some(name.to_owned());
    Ok(())
}
