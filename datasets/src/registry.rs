//! The datasets, by name.

use bench_proto::{
    nearest::{did_you_mean, nearest},
    profile::Profile,
};

#[cfg(any(test, feature = "example"))]
use crate::example;
use crate::{Dataset, DatasetError, Manifest, OnProgress, OpenOptions, locomo, locomo_sim};

/// Opens a dataset: finds, checks and reads a file, or sets up a generator.
pub type Open = fn(&OpenOptions, OnProgress<'_>) -> Result<Box<dyn Dataset>, DatasetError>;

/// A registered dataset.
pub struct DatasetEntry {
    /// What is known about it.
    pub manifest: &'static Manifest,
    /// Its [`Profile`] as TOML.
    pub profile: &'static str,
    /// Opens it.
    pub open: Open,
}

impl DatasetEntry {
    /// How its questions are put, graded and counted.
    ///
    /// # Errors
    /// When its text is no profile, which the tests of this crate rule out.
    pub fn profile(&self) -> Result<Profile, DatasetError> {
        toml::from_str(self.profile).map_err(|error| DatasetError::Broken {
            path: self.manifest.name.to_owned(),
            place: "profile".to_owned(),
            problem: error.to_string(),
        })
    }
}

/// All datasets: one line each.
pub const DATASETS: &[DatasetEntry] = &[
    DatasetEntry { manifest: &locomo::MANIFEST, profile: locomo::PROFILE, open: locomo::open },
    DatasetEntry { manifest: &locomo_sim::MANIFEST, profile: locomo::PROFILE, open: locomo_sim::open },
    #[cfg(any(test, feature = "example"))]
    DatasetEntry { manifest: &example::MANIFEST, profile: example::PROFILE, open: example::open },
];

/// The entry of a name.
///
/// # Errors
/// Unknown names, with the nearest one as a hint.
pub fn find(name: &str) -> Result<&'static DatasetEntry, DatasetError> {
    DATASETS.iter().find(|entry| entry.manifest.name == name).ok_or_else(|| {
        let near = nearest(name, DATASETS.iter().map(|entry| entry.manifest.name));
        let hint = did_you_mean(&near).map(|hint| format!(", {hint}")).unwrap_or_default();
        DatasetError::Unknown { name: name.to_owned(), hint }
    })
}

/// Opens a dataset by name.
///
/// # Errors
/// Unknown names and everything that opening can meet.
pub fn open(name: &str, options: &OpenOptions, on_progress: OnProgress<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    (find(name)?.open)(options, on_progress)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn unknown_names_get_a_hint() {
        let error = |name: &str| find(name).err().expect("unknown").to_string();
        insta::assert_snapshot!(error("lokomo"), @"unknown dataset 'lokomo', did you mean 'locomo'?; `bench-coord datasets list` shows all");
        insta::assert_snapshot!(error("locomo_sim"), @"unknown dataset 'locomo_sim', did you mean 'locomo-sim'?; `bench-coord datasets list` shows all");
        insta::assert_snapshot!(error("beam"), @"unknown dataset 'beam'; `bench-coord datasets list` shows all");
        assert!(find("LoCoMo").is_err(), "names are exact, the hint tells the right one");
    }

    /// What every manifest must hold: a new dataset is checked without being asked.
    #[test]
    fn manifests_are_sound() {
        let mut names = HashSet::new();
        for DatasetEntry { manifest, .. } in DATASETS {
            let name = manifest.name;
            assert!(names.insert(name), "{name} is there twice");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
                "{name}"
            );
            assert!(!manifest.description.is_empty() && !manifest.description.contains('\n'), "{name}");
            assert!(
                !manifest.scorers.is_empty() && !manifest.licence.is_empty() && manifest.loader_version > 0,
                "{name}"
            );
            assert!(manifest.abstention_phrases.iter().all(|phrase| *phrase == phrase.to_lowercase()), "{name}");
            assert!(manifest.is_generated() == (manifest.source == "generated"), "{name}");
            assert!(manifest.is_generated() || manifest.source.starts_with("https://"), "{name}");
            assert!(manifest.files.len() < 2 || manifest.source.ends_with('/'), "{name}: its source is a folder");
            for file in manifest.files {
                let is_hash = |hash: &&str| hash.len() == 64 && hex::decode(hash).is_ok();
                assert!(file.bytes > 0 && !file.sha256s.is_empty() && file.sha256s.iter().all(is_hash), "{file:?}");
            }
        }
    }
}
