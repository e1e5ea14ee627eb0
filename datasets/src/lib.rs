//! Reads datasets: loaders, manifests, generators. To add one, copy the smallest file here and add a line to the registry.
//!
//! A dataset is opened once by the coordinator, which streams it bank by bank into the store; workers never see a dataset
//! file. Only data that this project generates is in its repository.
//!
//! In come a name, perhaps a path, and settings; out come [`Dataset`]s: what is known of one, its profile, and banks with
//! their questions and gold, one at a time. Start reading at `example.rs`, a whole dataset in one file, then at `registry` and
//! `loaded`, which hides what ids and orders would tell.

mod array_file;
mod beam;
mod broken;
mod by_file;
#[cfg(test)]
mod chance;
#[cfg(test)]
mod cheats;
mod checksum;
#[cfg(test)]
mod conformance;
mod convomem;
#[cfg(any(test, feature = "example"))]
mod example;
mod fetch;
mod files;
mod generator;
#[cfg(test)]
mod hiding;
mod incoming;
mod label_fixes;
mod lifebench;
mod lines;
mod loaded;
mod locate;
mod locomo;
mod locomo_sim;
mod long_horizon;
mod longmemeval;
mod manage;
mod manifest;
mod membench;
mod memoryagentbench;
mod mirror;
mod neutral;
mod notes;
mod opening;
mod own;
mod packed;
mod partial;
mod personamem;
mod place;
mod precision_sim;
mod precisionmembench;
mod published;
#[cfg(test)]
mod reference;
mod registry;
mod sets;
mod suites;
#[cfg(test)]
mod tiers;
mod whole_file;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use bench_proto::{
    dataset::{Bank, BankOutline},
    profile::Profile,
    reason::Reason,
    redact,
};
use serde_json::Value;

pub use fetch::download;
pub use label_fixes::{Annotated, LabelFixes};
pub use manage::{
    Content, Details, Form, Generated, Here, Listed, ListedQuestion, ListedQuestions, Verification, WantedQuestions,
    fetch, generate, licence_notice, list, questions, show, verify,
};
pub use manifest::{DatasetSetting, Manifest, SourceFile};
pub use mirror::{Arrival, Wanted, wanted};
pub use opening::{About, Opening};
pub use packed::{MOST_ARCHIVED, TOO_MUCH_COMES_OUT, unpack_archive, unpackable_name};
pub use published::{PublishedResult, published};
pub use registry::{DATASETS, DatasetEntry, Known, Open, find, full_name, known, open, setting_names};

/// How to find and read a dataset.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpenOptions {
    /// `--dataset-path`: exactly this file, or the folder of a dataset of several files.
    pub path: Option<PathBuf>,
    /// `$BENCH_DATASETS_DIR`: looked at before the cache.
    pub datasets_dir: Option<PathBuf>,
    /// Where downloads are kept (`$BENCH_HOME/datasets`).
    pub cache_dir: PathBuf,
    /// Accept a file with another checksum, and mark it.
    pub allow_modified: bool,
    /// May download.
    pub allow_download: bool,
    /// Settings below the dataset's prefix (`sim.seed` for `locomo-sim`), without the prefix.
    pub settings: BTreeMap<String, Value>,
}

/// A dataset that is open.
pub trait Dataset: Send + Sync {
    /// What is known of it beside its banks.
    fn about(&self) -> &About;

    /// What was known about it before it was read.
    fn manifest(&self) -> &Manifest {
        &self.about().manifest
    }

    /// How its questions are put, graded and counted.
    fn profile(&self) -> &Profile {
        &self.about().profile
    }

    /// sha256 of what was read, or of a generator's name, version and settings.
    fn sha256(&self) -> &str {
        &self.about().sha256
    }

    /// True when what was read is not what was published.
    fn is_modified(&self) -> bool {
        self.about().modified
    }

    /// Effective generator settings; empty for files.
    fn settings(&self) -> BTreeMap<String, Value> {
        self.about().settings.clone()
    }

    /// What did not resolve while reading (`conv-42:58: evidence D10:19 names no turn`), for the report.
    fn notes(&self) -> &[String] {
        &self.about().notes
    }

    /// Number of banks.
    fn bank_count(&self) -> usize;

    /// Outline of a bank: cheap, also for data that is generated on the way.
    ///
    /// # Errors
    /// When the file cannot be read or is broken: file, line and field.
    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError>;

    /// A whole bank.
    ///
    /// # Errors
    /// As [`Dataset::outline`].
    fn bank(&self, bank: usize) -> Result<Bank, DatasetError>;

    /// The ids that sessions, turns and memories of a bank have in its file, each with the id that the bank has for it: for people
    /// who say what was retrieved by their own ids. None where a bank has those of its file, or others are not known.
    fn given_ids(&self, _bank: usize) -> Option<&BTreeMap<String, String>> {
        None
    }
}

/// Progress of a download: (bytes so far, bytes in all when known).
pub type OnProgress<'a> = &'a (dyn Fn(u64, Option<u64>) + Send + Sync);

/// What can go wrong with a dataset. Every message says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// No dataset of this name.
    #[error("unknown dataset '{name}'{hint}; `bench-coord datasets list` shows all")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Nearest names, or empty.
        hint: String,
    },
    /// A setting that the dataset does not have, or a value it cannot use.
    #[error("{0}")]
    Setting(String),
    /// The file is nowhere and may not or cannot be downloaded.
    #[error("{0}")]
    NotFound(String),
    /// The download failed.
    #[error(
        "download of {url} failed: {reason}; place the file yourself and give it with --dataset-path, or set BENCH_DATASETS_DIR"
    )]
    Download {
        /// From where.
        url: String,
        /// Why it is refused.
        #[source]
        reason: Reason,
    },
    /// The content is not the published one.
    #[error(
        "{path} is not the published {name}: {found}, expected {expected}; \
         use the published file, or --allow-modified-dataset to go on with a mark in the report"
    )]
    NotPublished {
        /// The dataset.
        name: String,
        /// The file.
        path: String,
        /// What it has: `sha256 is …`, or `it has 7 bytes` where only the size is known.
        found: String,
        /// What it should have.
        expected: String,
    },
    /// The content is broken.
    #[error("{path}: {place}: {problem}")]
    Broken {
        /// The file.
        path: String,
        /// Line, or path of the field.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the operating system says.
        source: std::io::Error,
    },
}

/// A path as messages repeat it: an address that somebody took for one may hold a password.
pub(crate) fn shown_path(path: &Path) -> String {
    redact::text(&path.to_string_lossy()).into_owned()
}

impl DatasetError {
    /// An error of the disk, with its file.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: shown_path(path), source }
    }

    /// A bank that does not exist: a mistake of the caller, said instead of a panic.
    pub(crate) fn no_bank(name: &str, bank: usize, count: usize) -> Self {
        Self::NotFound(format!("dataset '{name}' has {count} banks, so there is no bank {bank}"))
    }
}
