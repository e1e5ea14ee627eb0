//! The datasets, by name.

use std::{path::PathBuf, sync::LazyLock};

use bench_proto::{
    nearest::{did_you_mean, nearest},
    profile::Profile,
    redact,
};

#[cfg(any(test, feature = "example"))]
use crate::example;
use crate::{
    Dataset, DatasetError, Manifest, OnProgress, OpenOptions, beam, convomem, label_fixes, lifebench, locomo,
    locomo_sim, long_horizon, longmemeval, membench, memoryagentbench,
    opening::Opening,
    own, personamem, precision_sim, precisionmembench,
    suites::{accuracy, basic, reflect, smoke},
};

/// Opens a dataset: finds, checks and reads its files, or sets up a generator.
pub type Open = fn(&Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError>;

/// A registered dataset.
pub struct DatasetEntry {
    /// Its [`Manifest`] as TOML; `[[variants]]` make it several.
    pub manifest: &'static str,
    /// Its [`Profile`] as TOML.
    pub profile: &'static str,
    /// Finds its files, checks them, and makes it ready to read.
    pub open: Open,
}

/// All datasets: one line each.
pub const DATASETS: &[DatasetEntry] = &[
    DatasetEntry { manifest: locomo::MANIFEST, profile: locomo::PROFILE, open: locomo::open },
    DatasetEntry { manifest: locomo_sim::MANIFEST, profile: locomo::PROFILE, open: locomo_sim::open },
    DatasetEntry { manifest: longmemeval::MANIFEST, profile: longmemeval::PROFILE, open: longmemeval::open },
    DatasetEntry { manifest: personamem::MANIFEST, profile: personamem::PROFILE, open: personamem::open },
    DatasetEntry { manifest: beam::MANIFEST, profile: beam::PROFILE, open: beam::open },
    DatasetEntry { manifest: lifebench::MANIFEST, profile: lifebench::PROFILE, open: lifebench::open },
    DatasetEntry {
        manifest: memoryagentbench::MANIFEST,
        profile: memoryagentbench::PROFILE,
        open: memoryagentbench::open,
    },
    DatasetEntry { manifest: convomem::MANIFEST, profile: convomem::PROFILE, open: convomem::open },
    DatasetEntry { manifest: membench::MANIFEST, profile: membench::PROFILE, open: membench::open },
    DatasetEntry { manifest: long_horizon::MANIFEST, profile: long_horizon::PROFILE, open: long_horizon::open },
    DatasetEntry {
        manifest: long_horizon::COMPATIBLE,
        profile: long_horizon::COMPATIBLE_PROFILE,
        open: long_horizon::open_compatible,
    },
    DatasetEntry { manifest: basic::MANIFEST, profile: basic::PROFILE, open: basic::open },
    DatasetEntry { manifest: accuracy::MANIFEST, profile: accuracy::PROFILE, open: accuracy::open },
    DatasetEntry { manifest: reflect::MANIFEST, profile: reflect::PROFILE, open: reflect::open },
    DatasetEntry { manifest: smoke::MANIFEST, profile: smoke::PROFILE, open: smoke::open },
    DatasetEntry {
        manifest: precisionmembench::MANIFEST,
        profile: precisionmembench::PROFILE,
        open: precisionmembench::open,
    },
    DatasetEntry { manifest: precision_sim::MANIFEST, profile: precision_sim::PROFILE, open: precision_sim::open },
    #[cfg(any(test, feature = "example"))]
    DatasetEntry { manifest: example::MANIFEST, profile: example::PROFILE, open: example::open },
];

/// A dataset that can be opened by its name; each variant is one.
pub struct Known {
    /// What is known about it.
    pub manifest: Manifest,
    /// How its questions are put, graded and counted.
    pub profile: Profile,
    open: Open,
}

impl DatasetEntry {
    /// Its variants, the default one first; itself when it has none. Their texts are held by the tests of this crate.
    fn variants(&self) -> Result<Vec<Known>, toml::de::Error> {
        let profile: Profile = toml::from_str(self.profile)?;
        let manifests = Manifest::read(self.manifest)?.into_iter();
        Ok(manifests.map(|manifest| Known { manifest, profile: profile.clone(), open: self.open }).collect())
    }
}

impl Known {
    /// Opens it.
    ///
    /// # Errors
    /// Everything that opening can meet.
    pub fn open(&self, options: &OpenOptions, on_progress: OnProgress<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
        if let Some(path) = options.path.as_ref().filter(|_| self.manifest.is_generated()) {
            let (name, path) = (&self.manifest.name, crate::shown_path(path));
            return Err(DatasetError::Setting(format!(
                "{name} is generated and reads no file: leave --dataset-path {path} out; `--dataset FILE` reads one of yours"
            )));
        }
        (self.open)(&Opening { manifest: &self.manifest, profile: &self.profile, options, on_progress })
    }
}

/// All datasets and their variants, in the order of the registry.
#[must_use]
pub fn known() -> &'static [Known] {
    static KNOWN: LazyLock<Vec<Known>> =
        LazyLock::new(|| DATASETS.iter().filter_map(|entry| entry.variants().ok()).flatten().collect());
    &KNOWN
}

/// The settings that datasets have of their own, by their dotted names (`sim.seed`); those of one section in the order of its first
/// dataset.
#[must_use]
pub fn setting_names() -> Vec<String> {
    let mut names = Vec::new();
    for Manifest { section, settings, .. } in known().iter().map(|known| &known.manifest) {
        for name in settings.iter().map(|setting| format!("{section}.{}", setting.name)) {
            // variants share theirs, and so may datasets
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// The dataset of a name; without a variant (`longmemeval`) it is the first one (`longmemeval@s`).
///
/// # Errors
/// Unknown names and variants, with the nearest one as a hint.
pub fn find(name: &str) -> Result<&'static Known, DatasetError> {
    let named = |known: &&Known| known.manifest.name == name || known.manifest.dataset() == name;
    known().iter().find(named).ok_or_else(|| {
        let mut names: Vec<&str> = known().iter().map(|known| known.manifest.name.as_str()).collect();
        names.extend(known().iter().map(|known| known.manifest.dataset()));
        names.sort_unstable();
        names.dedup();
        let hint = did_you_mean(&nearest(name, names)).map(|hint| format!(", {hint}")).unwrap_or_default();
        DatasetError::Unknown { name: redact::text(name).into_owned(), hint }
    })
}

/// What is known of files that are fetched by a name: a dataset's, or those of label fixes.
///
/// # Errors
/// As [`find`].
pub(crate) fn manifest(name: &str) -> Result<&'static Manifest, DatasetError> {
    label_fixes::manifest(name).map_or_else(|| find(name).map(|known| &known.manifest), Ok)
}

/// A name with its variant, where the dataset has some and the default one was meant; others as they are.
#[must_use]
pub fn full_name(name: &str) -> &str {
    find(name).map_or(name, |known| &known.manifest.name)
}

/// Whether a name is that of a registered dataset: no file of a user's may take it.
pub(crate) fn is_taken(name: &str) -> bool {
    find(name).is_ok()
}

/// The file of a user's that a name stands for.
pub(crate) fn own_file(name: &str, options: &OpenOptions) -> Option<PathBuf> {
    own::find(name, options, is_taken)
}

/// Opens a dataset by name: a registered one, a file by its path, or one of that name in the datasets folder.
///
/// # Errors
/// Unknown names and everything that opening can meet.
pub fn open(name: &str, options: &OpenOptions, on_progress: OnProgress<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    let Some(path) = own_file(name, options) else { return find(name)?.open(options, on_progress) };
    let dataset = own::open(&path, options, is_taken)?;
    let found = &dataset.manifest().name;
    // a run that is resumed has both; a person who gives both may mean something else
    if options.path.is_some() && found != name {
        return Err(DatasetError::Setting(format!(
            "{} is the dataset '{found}', and '{name}' was asked for; leave out one of the two",
            crate::shown_path(&path)
        )));
    }
    Ok(dataset)
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
        insta::assert_snapshot!(error("nothing"), @"unknown dataset 'nothing'; `bench-coord datasets list` shows all");
        assert!(find("LoCoMo").is_err(), "names are exact, the hint tells the right one");
    }

    #[test]
    fn an_address_that_is_taken_for_a_dataset_is_repeated_without_its_password() {
        let refused = |name: &str| open(name, &OpenOptions::default(), &|_, _| {}).err().expect("is none").to_string();
        for (name, said) in [
            ("http://u:s3cret@data.example/x.jsonl", "http://***@data.example/x.jsonl does not exist"),
            ("https://data.example/x.json?token=s3cret", "https://data.example/x.json?token=*** does not exist"),
        ] {
            assert!(refused(name).starts_with(said), "{}", refused(name));
        }
        let unknown = find("http://u:s3cret@data.example").err().expect("is none").to_string();
        assert!(unknown.starts_with("unknown dataset 'http://***@data.example/'"), "{unknown}");
        let broken = DatasetError::io("http://u:s3cret@h/x".as_ref(), std::io::ErrorKind::PermissionDenied.into());
        assert!(broken.to_string().starts_with("http://***@h/x: "), "{broken}");
    }

    #[test]
    fn a_generated_dataset_reads_no_file() {
        let options = OpenOptions { path: Some("mine.json".into()), ..OpenOptions::default() };
        for known in known().iter().filter(|known| known.manifest.is_generated()) {
            let said = open(&known.manifest.name, &options, &|_, _| ()).err().expect("is refused").to_string();
            assert!(said.starts_with(&format!("{} is generated and reads no file", known.manifest.name)), "{said}");
        }
    }

    /// What every manifest must hold: a new dataset is checked without being asked.
    #[test]
    fn manifests_are_sound() {
        let mut names = HashSet::new();
        let is_word = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        for entry in DATASETS {
            let variants = entry.variants().unwrap_or_else(|error| panic!("{}\n{error}", entry.manifest));
            assert!(!variants.is_empty(), "{}", entry.manifest);
            for Known { manifest, .. } in variants {
                let name = &manifest.name;
                assert!(names.insert(name.clone()), "{name} is there twice");
                assert!(name.split('@').count() <= 2 && name.split('@').all(is_word), "{name}");
                assert!(!manifest.description.is_empty() && !manifest.description.contains('\n'), "{name}");
                assert!(!manifest.licence.is_empty() && manifest.loader_version > 0, "{name}");
                assert!(manifest.abstention_phrases.iter().all(|phrase| *phrase == phrase.to_lowercase()), "{name}");
                assert!(manifest.is_generated() == (manifest.source == "generated"), "{name}");
                assert!(manifest.is_generated() || manifest.source.starts_with("https://"), "{name}");
                assert!(
                    manifest.files.iter().filter(|file| file.url.is_none()).count() < 2
                        || manifest.source.ends_with('/'),
                    "{name}: its source is a folder"
                );
                for file in &manifest.files {
                    let is_hash = |hash: &String| hash.len() == 64 && hex::decode(hash).is_ok();
                    assert!(file.sha256s.iter().all(is_hash) && !file.path.starts_with('/'), "{file:?}");
                    assert!(file.bytes > 0 || file.sha256s.is_empty(), "{file:?}: a known file has a size");
                    assert!(!file.path.split('/').any(|part| part == ".."), "{file:?}");
                }
            }
        }
    }
}
