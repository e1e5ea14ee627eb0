//! Filled banks as a file that others can ask: what its manifest says. In comes what a run has stored in a memory system; out comes
//! an archive whose first entry is [`MANIFEST`], with what the system keeps below [`FILES`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::Sha256Hash;

/// Version of the manifest that this build writes, and the newest that it reads.
pub const BANKS_ARCHIVE_VERSION: u32 = 1;
/// Name of the manifest in an archive.
pub const MANIFEST: &str = "bench-banks.json";
/// Folder of an archive that holds what the memory system keeps.
pub const FILES: &str = "files";

/// Folder below [`FILES`] of what a server has handed on by calls of its own: a file for each bank, of the bank's name. Everything
/// else is folders that memory systems keep.
pub const EXPORTED: &str = "exported";

/// What an archive of filled banks holds, and what filled them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BanksManifest {
    /// [`BANKS_ARCHIVE_VERSION`].
    pub version: u32,
    /// The run that filled the banks; `None` where no run of this program did.
    #[serde(default)]
    pub run: Option<String>,
    /// Builds of this program that worked on it.
    #[serde(default)]
    pub code_version: Option<String>,
    /// The memory system.
    pub system: FilledSystem,
    /// What was stored.
    pub dataset: FilledDataset,
    /// Turns or memories that were stored, over all banks; `None` where nobody says.
    #[serde(default)]
    pub turns: Option<u64>,
    /// Under what terms it may be handed on; `None` where nobody says.
    #[serde(default)]
    pub licence: Option<String>,
    /// The banks; none where nobody says what they hold.
    #[serde(default)]
    pub banks: Vec<ArchivedBank>,
    /// Every file below [`FILES`], by name.
    #[serde(default)]
    pub files: Vec<ArchivedFile>,
    /// What another program says of it, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// A memory system that filled banks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FilledSystem {
    /// Registered name, or that of the adapter file.
    pub name: String,
    /// Its version, with the fingerprint of its adapter file.
    pub version: String,
    /// Its settings, without the adapter file and its address.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

/// What banks were filled with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FilledDataset {
    /// Name of the dataset.
    pub name: String,
    /// Version of the dataset, where its loader tells one.
    #[serde(default)]
    pub version: Option<String>,
    /// sha256 of its file, or of its generator's settings.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Settings of its generator, its seed among them.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

/// A filled bank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedBank {
    /// The dataset's id.
    pub bank_id: String,
    /// Its name in the memory system.
    pub name: String,
    /// The memory system's handle of it, without the machine that a started system ran on.
    pub handle: String,
    /// Hash of what it was given, canaries included: a run may ask it for the same.
    pub content: Sha256Hash,
    /// Sessions or memories that it holds.
    pub retained: u32,
    /// Items that the memory system counted in it when it handed it on; `None` where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
}

/// A file of the memory system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ArchivedFile {
    /// Path below [`FILES`], with `/`.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// sha256, in hexadecimal.
    pub sha256: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_of_a_manifest() {
        let golden = include_str!("../golden/banks_archive.v1.json");
        let read: BanksManifest = serde_json::from_str(golden).expect("the golden file can be read");
        assert_eq!(read.version, BANKS_ARCHIVE_VERSION);
        let written = serde_json::to_string_pretty(&read).expect("serialises");
        assert_eq!(written.trim(), golden.trim());
        assert_eq!((read.banks.len(), read.files.len(), read.turns), (1, 2, Some(19)));
    }
}
