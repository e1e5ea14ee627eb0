//! What a loader is given to open its dataset, and what is known of a dataset once it is open.

use std::{collections::BTreeMap, path::PathBuf};

use bench_proto::profile::Profile;
use serde_json::{Value, json};

use crate::{DatasetError, Manifest, OnProgress, OpenOptions, checksum, files::Files, notes::Notes};

/// A dataset that is being opened: its manifest, and how to come by its files.
pub struct Opening<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) profile: &'a Profile,
    pub(crate) options: &'a OpenOptions,
    pub(crate) on_progress: OnProgress<'a>,
}

/// What is known of an open dataset beside its banks.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// The manifest of the variant.
    pub manifest: Manifest,
    /// How its questions are put, graded and counted.
    pub profile: Profile,
    /// sha256 of what was read, or of a generator's name, version and settings.
    pub sha256: String,
    /// True when what was read is not what was published.
    pub modified: bool,
    /// True when nobody has noted the checksum of what was published: whether this is it cannot be told.
    pub checksum_unknown: bool,
    /// Effective generator settings; empty for files.
    pub settings: BTreeMap<String, Value>,
    /// What did not resolve while reading (`conv-42:58: evidence D10:19 names no turn`), for the report.
    pub notes: Vec<String>,
    /// Where it was read from, when that was said: a run that is resumed looks there again.
    pub path: Option<PathBuf>,
}

impl<'a> Opening<'a> {
    /// The manifest of the variant that was asked for.
    #[must_use]
    pub fn manifest(&self) -> &'a Manifest {
        self.manifest
    }

    /// How and where to look.
    #[must_use]
    pub fn options(&self) -> &'a OpenOptions {
        self.options
    }

    /// Its files: found, else downloaded where this is allowed, and checked.
    ///
    /// # Errors
    /// When one is nowhere, cannot be read, or is not the published one and that is not allowed.
    pub(crate) fn files(&self) -> Result<Files, DatasetError> {
        self.has_no_settings()?;
        Files::find(self.manifest, self.options, self.on_progress)
    }

    /// Refuses settings, for datasets that have none.
    ///
    /// # Errors
    /// With the name of one that was given.
    pub(crate) fn has_no_settings(&self) -> Result<(), DatasetError> {
        let Some(key) = self.options.settings.keys().next() else { return Ok(()) };
        let name = self.manifest.dataset();
        Err(DatasetError::Setting(format!("dataset '{name}' has no setting '{key}': it has none; remove it")))
    }

    /// What is known of a dataset that was read from files.
    pub(crate) fn about(&self, files: &Files, notes: Notes) -> About {
        About {
            manifest: self.manifest.clone(),
            profile: self.profile.clone(),
            sha256: files.sha256.clone(),
            modified: files.modified,
            checksum_unknown: files.checksum_unknown,
            settings: BTreeMap::new(),
            notes: notes.lines(),
            path: self.options.path.clone(),
        }
    }

    /// What is known of a dataset that a generator makes, whose version is the manifest's `loader_version`.
    pub(crate) fn generated(&self, settings: BTreeMap<String, Value>) -> About {
        let Manifest { name, loader_version, .. } = self.manifest;
        // keys are sorted here and in the settings, so equal settings give equal bytes
        let identity = json!({ "generator_version": loader_version, "name": name, "settings": settings });
        About {
            manifest: self.manifest.clone(),
            profile: self.profile.clone(),
            sha256: checksum::of_bytes(identity.to_string().as_bytes()),
            modified: false,
            checksum_unknown: false,
            settings,
            notes: Vec::new(),
            path: None,
        }
    }
}
