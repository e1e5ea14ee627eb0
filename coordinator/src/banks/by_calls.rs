//! Banks that a server hands on and takes in by calls of its own (`export` and `import` of its adapter), where nobody can copy its
//! folder: each is a file, of which nobody but such a server knows what it says.

use std::path::Path;

use bench_proto::{
    banks_archive::{ArchivedBank, BanksManifest, EXPORTED, FILES},
    failure::Failure,
};
use bench_systems::{BankRef, MemorySystem};

use super::imported::{ImportedBanks, folder};
use crate::exit::CliError;

/// Most bytes that are taken of one bank.
const MOST: u64 = 16 << 30;

/// Whether a server has handed on what an archive holds.
pub(crate) fn are_in(manifest: &BanksManifest) -> bool {
    let below = format!("{EXPORTED}/");
    manifest.files.iter().any(|file| file.name.starts_with(&below))
}

/// Has a memory system hand banks on, each into a file of its name in an empty folder.
///
/// # Errors
/// Exit 4 with the first bank that it did not hand on.
pub(crate) async fn export(system: &dyn MemorySystem, banks: &[ArchivedBank], folder: &Path) -> Result<(), CliError> {
    for bank in banks {
        let handed_on = system.export_bank(&reference(bank), &folder.join(&bank.name), MOST).await;
        handed_on.map_err(|failure| stopped(bank, "handed on", &failure))?;
    }
    Ok(())
}

/// Gives the banks of an archive that lies here to a memory system, under the handles that they had.
///
/// # Errors
/// Exit 2 for an archive that does not have them; exit 4 with the first bank that the system did not take in.
pub(crate) async fn import(system: &dyn MemorySystem, archive: &ImportedBanks, home: &Path) -> Result<(), CliError> {
    let files = folder(home, &archive.name)?.join(FILES);
    for bank in &archive.manifest.banks {
        let name = format!("{EXPORTED}/{}", bank.name);
        // its files were held to its manifest, so that no other file is read in their place
        if !archive.manifest.files.iter().any(|file| file.name == name) {
            return Err(CliError::usage(format!("the archive is damaged: bank {} has no file in it", bank.bank_id)));
        }
        let taken_in = system.import_bank(&reference(bank), &files.join(&name)).await;
        taken_in.map_err(|failure| stopped(bank, "taken in", &failure))?;
    }
    Ok(())
}

fn stopped(bank: &ArchivedBank, what: &str, failure: &Failure) -> CliError {
    CliError::infrastructure(format!("bank {} was not {what}: {}", bank.bank_id, failure.message))
}

/// A bank as its memory system knows it.
fn reference(bank: &ArchivedBank) -> BankRef {
    BankRef {
        name: bank.name.clone(),
        handle: Some(bank.handle.clone()),
        bank_id: bank.bank_id.clone(),
        content_hash: bank.content,
        content: None,
    }
}
