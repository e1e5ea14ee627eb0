//! Reads datasets: loaders, manifests, generators. To add one, copy the smallest file here and add a line to the registry.
//!
//! A dataset is opened once by the coordinator, which streams it bank by bank into the store; workers never see a dataset
//! file. Only data that this project generates is in its repository.

mod checksum;
#[cfg(test)]
mod conformance;
#[cfg(any(test, feature = "example"))]
mod example;
mod fetch;
mod incoming;
// so far only the example has such files
#[cfg(any(test, feature = "example"))]
mod json_lines;
mod loaded;
mod locate;
mod locomo;
mod locomo_sim;
mod manage;
mod mirror;
mod registry;
mod sources;
mod whole_file;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use bench_proto::dataset::{Bank, BankOutline};
use serde_json::Value;

pub use manage::{Content, Details, Generated, Verification, fetch, generate, list, show, verify};
pub use mirror::{Arrival, Wanted, wanted};
pub use registry::{DATASETS, DatasetEntry, Open, find, open};

/// What is known about a dataset before it is read.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Manifest {
    /// Registered name.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// Version of the data.
    pub version: &'static str,
    /// Licence, as an SPDX id where there is one.
    pub licence: &'static str,
    /// Where it comes from: the URL of its file, the URL of a folder (with `/` at the end) that holds its files, or "generated".
    pub source: &'static str,
    /// Its files; none for generated data.
    pub files: &'static [SourceFile],
    /// Questions per category in the published files (for generated data: with default settings).
    pub categories: &'static [(&'static str, u64)],
    /// Banks.
    pub banks: u64,
    /// Sessions.
    pub sessions: u64,
    /// Turns.
    pub turns: u64,
    /// Phrases that make an answer an abstention, lower case.
    pub abstention_phrases: &'static [&'static str],
    /// Deterministic scorers, the headline's first.
    pub scorers: &'static [&'static str],
    /// Version of the loader: raised whenever what it makes of the same file changes.
    pub loader_version: u32,
    /// Section of the settings that are its own (`sim` of `sim.seed`); empty when it has none.
    pub section: &'static str,
}

impl Manifest {
    /// Whether it is made by a generator of this project, not read from files.
    #[must_use]
    pub fn is_generated(&self) -> bool {
        self.files.is_empty()
    }

    /// Where one of its files is downloaded from.
    fn url_of(&self, file: &SourceFile) -> String {
        if self.source.ends_with('/') { format!("{}{}", self.source, file.path) } else { self.source.to_owned() }
    }
}

/// A published file of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SourceFile {
    /// Its path below `$BENCH_DATASETS_DIR/<dataset>/`.
    pub path: &'static str,
    /// sha256 of its published versions; the first is the one that is downloaded.
    pub sha256s: &'static [&'static str],
    /// Size of the first version in bytes.
    pub bytes: u64,
}

impl SourceFile {
    /// sha256 of the version that is downloaded.
    #[must_use]
    pub fn sha256(&self) -> &'static str {
        self.sha256s.first().copied().unwrap_or_default()
    }

    /// Whether a file with this sha256 is a published one.
    #[must_use]
    pub fn is_published(&self, sha256: &str) -> bool {
        self.sha256s.contains(&sha256)
    }
}

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
    /// What is known about it.
    fn manifest(&self) -> &'static Manifest;

    /// sha256 of the file that was read, or of a generator's name, version and settings.
    fn sha256(&self) -> &str;

    /// True when the file is not the published one.
    fn is_modified(&self) -> bool;

    /// Effective generator settings; empty for files.
    fn settings(&self) -> BTreeMap<String, Value>;

    /// What did not resolve while reading (`conv-42:58: evidence D10:19 names no turn`), for the report.
    fn notes(&self) -> &[String];

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
        /// Why.
        reason: String,
    },
    /// The checksum is not the published one.
    #[error(
        "{path} is not the published {name}: sha256 is {found}, expected {expected}; \
         use the published file, or --allow-modified-dataset to go on with a mark in the report"
    )]
    Checksum {
        /// The dataset.
        name: String,
        /// The file.
        path: String,
        /// What it has.
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
        /// Why.
        source: std::io::Error,
    },
}

impl DatasetError {
    /// An error of the disk, with its file.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.display().to_string(), source }
    }

    /// A bank that does not exist: a mistake of the caller, said instead of a panic.
    pub(crate) fn no_bank(name: &str, bank: usize, count: usize) -> Self {
        Self::NotFound(format!("dataset '{name}' has {count} banks, so there is no bank {bank}"))
    }
}
