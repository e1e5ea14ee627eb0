//! What the verb `datasets` does: list, show, verify, fetch, generate.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;

use crate::{
    DATASETS, Dataset, DatasetEntry, DatasetError, Manifest, OnProgress, OpenOptions, checksum, find, locate,
    locomo::write,
};

/// All manifests, in the order of the registry.
pub fn list() -> impl Iterator<Item = &'static Manifest> {
    DATASETS.iter().map(|entry| entry.manifest)
}

/// A dataset as it is on this machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Details {
    /// What is known about it.
    pub manifest: &'static Manifest,
    /// The files that would be read; none when one of them is not there yet, and for generated data.
    pub files: Vec<PathBuf>,
    /// What was read; absent when there is no file yet.
    pub content: Option<Content>,
}

/// What a dataset holds, counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Content {
    /// sha256 of the file, or of the generator's name, version and settings.
    pub sha256: String,
    /// True when the file is not the published one.
    pub modified: bool,
    /// Effective settings, without their prefix.
    pub settings: BTreeMap<String, Value>,
    /// Banks.
    pub banks: u64,
    /// Sessions, or other stream entries.
    pub entries: u64,
    /// Turns.
    pub turns: u64,
    /// Questions per category.
    pub categories: BTreeMap<String, u64>,
    /// What did not resolve while reading.
    pub notes: Vec<String>,
}

/// Manifest, files and content of a dataset. Never downloads; a file with another checksum is shown as modified.
///
/// # Errors
/// Unknown names, settings that do not exist, files that cannot be read.
pub fn show(name: &str, options: &OpenOptions) -> Result<Details, DatasetError> {
    let DatasetEntry { manifest, open, .. } = find(name)?;
    let files: Option<Vec<PathBuf>> = manifest.files.iter().map(|file| locate::find(manifest, file, options)).collect();
    let content = if files.is_some() {
        let options = OpenOptions { allow_modified: true, allow_download: false, ..options.clone() };
        Some(count(&*open(&options, &|_, _| ())?)?)
    } else {
        None
    };
    Ok(Details { manifest, files: files.unwrap_or_default(), content })
}

fn count(dataset: &dyn Dataset) -> Result<Content, DatasetError> {
    let mut content = Content {
        sha256: dataset.sha256().to_owned(),
        modified: dataset.is_modified(),
        settings: dataset.settings(),
        banks: dataset.bank_count() as u64,
        entries: 0,
        turns: 0,
        categories: BTreeMap::new(),
        notes: dataset.notes().to_vec(),
    };
    for bank in 0..dataset.bank_count() {
        let outline = dataset.outline(bank)?;
        content.entries += u64::from(outline.entries);
        content.turns += u64::from(outline.turns);
        for question in outline.questions {
            *content.categories.entry(question.category).or_default() += 1;
        }
    }
    Ok(content)
}

/// Whether a file is the published one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The dataset.
    pub name: &'static str,
    /// The file that was hashed.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Published size.
    pub expected_bytes: u64,
    /// Its sha256.
    pub sha256: String,
    /// Published sha256.
    pub expected_sha256: &'static str,
    /// True when the file is the published one.
    pub ok: bool,
}

/// Hashes the given files, or those that are found, and compares them with the manifest. Never downloads.
///
/// # Errors
/// Unknown names, generated datasets, and files that are not there or cannot be read. Another checksum is no error here.
pub fn verify(name: &str, options: &OpenOptions) -> Result<Vec<Verification>, DatasetError> {
    let manifest = published(name, "verify")?;
    let options = OpenOptions { allow_download: false, ..options.clone() };
    let verified = manifest.files.iter().map(|file| {
        let path = locate::find_or_fetch(manifest, file, &options, &|_, _| ())?;
        let (bytes, sha256) = checksum::of_file(&path)?;
        let ok = file.is_published(&sha256);
        let (expected_bytes, expected_sha256) = (file.bytes, file.sha256());
        Ok(Verification { name: manifest.name, path, bytes, expected_bytes, sha256, expected_sha256, ok })
    });
    verified.collect()
}

/// Downloads a dataset into the cache, except the published files that are there already; returns their paths. Blocks.
///
/// # Errors
/// Unknown names, generated datasets, and downloads that fail.
pub fn fetch(name: &str, options: &OpenOptions, on_progress: OnProgress<'_>) -> Result<Vec<PathBuf>, DatasetError> {
    let manifest = published(name, "fetch")?;
    let fetched = manifest.files.iter().map(|file| {
        let cached = locate::cache_path(manifest, file, options);
        if !cached.is_file() || !file.is_published(&checksum::of_file(&cached)?.1) {
            crate::fetch::fetch(manifest, file, &cached, on_progress)?;
        }
        Ok(cached)
    });
    fetched.collect()
}

fn published(name: &str, verb: &str) -> Result<&'static Manifest, DatasetError> {
    let manifest = find(name)?.manifest;
    if manifest.is_generated() {
        let text = format!(
            "dataset '{name}' is generated, there is nothing to {verb}; `bench-coord datasets generate` writes it to a file"
        );
        return Err(DatasetError::Setting(text));
    }
    Ok(manifest)
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Generated {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Its sha256.
    pub sha256: String,
    /// Banks in it.
    pub banks: usize,
}

/// Writes a generated dataset as a file in LoCoMo's schema: `--dataset locomo --dataset-path FILE --allow-modified-dataset`
/// reads the same questions and evidence back.
///
/// # Errors
/// Unknown names, datasets that are not generated, settings that do not exist, and a path that cannot be written.
pub fn generate(name: &str, options: &OpenOptions, path: &Path) -> Result<Generated, DatasetError> {
    let DatasetEntry { manifest, open, .. } = find(name)?;
    if !manifest.is_generated() {
        let text = format!("dataset '{name}' is not generated; `bench-coord datasets fetch {name}` downloads it");
        return Err(DatasetError::Setting(text));
    }
    let dataset = open(options, &|_, _| ())?;
    let (bytes, sha256) = write::write(&*dataset, path)?;
    Ok(Generated { path: path.to_owned(), bytes, sha256, banks: dataset.bank_count() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::open;

    fn sim(conversations: u64) -> OpenOptions {
        OpenOptions {
            settings: BTreeMap::from([
                ("seed".to_owned(), json!("tests")),
                ("conversations".to_owned(), json!(conversations)),
            ]),
            ..Default::default()
        }
    }

    /// The written file, read as LoCoMo, is the same dataset.
    #[test]
    fn generated_files_read_back_as_locomo() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("below").join("sim.json");
        let generated = generate("locomo-sim", &sim(3), &path).expect("writes");
        assert_eq!((generated.banks, &generated.path), (3, &path));
        assert_eq!(checksum::of_file(&path).expect("hash"), (generated.bytes, generated.sha256.clone()));

        let generator = open("locomo-sim", &sim(3), &|_, _| ()).expect("opens");
        let options = OpenOptions { path: Some(path.clone()), allow_modified: true, ..Default::default() };
        let file = open("locomo", &options, &|_, _| ()).expect("reads");
        assert_eq!((file.sha256(), file.is_modified(), file.bank_count()), (generated.sha256.as_str(), true, 3));
        assert!(file.notes().is_empty(), "{:?}", file.notes());
        for bank in 0..3 {
            assert_eq!(file.outline(bank).expect("an outline"), generator.outline(bank).expect("an outline"));
            assert_eq!(file.bank(bank).expect("a bank"), generator.bank(bank).expect("a bank"));
        }

        let options = OpenOptions { allow_modified: false, ..options };
        assert!(matches!(open("locomo", &options, &|_, _| ()), Err(DatasetError::Checksum { .. })));
        let verified = verify("locomo", &options).expect("hashes");
        assert!(!verified[0].ok && verified[0].sha256 == generated.sha256);
        let shown = show("locomo", &options).expect("shows").content.expect("a file");
        assert!(shown.modified && shown.banks == 3);
    }

    #[test]
    fn show_counts_what_is_there() {
        let names: Vec<&str> = list().map(|manifest| manifest.name).collect();
        assert_eq!(names, ["locomo", "locomo-sim", "example"]);
        let shown = show("locomo-sim", &OpenOptions::default()).expect("shows");
        let content = shown.content.expect("generated data is always there");
        assert_eq!((content.banks, content.entries, content.turns), (10, 272, 5_882));
        let expected: BTreeMap<String, u64> =
            shown.manifest.categories.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        assert_eq!(content.categories, expected);
        assert_eq!(show("locomo-sim", &sim(12)).expect("shows").content.expect("there").banks, 12);

        let folder = tempfile::tempdir().expect("temporary folder");
        let nowhere = OpenOptions { cache_dir: folder.path().to_owned(), allow_download: true, ..Default::default() };
        let shown = show("locomo", &nowhere).expect("shows the manifest");
        assert_eq!((shown.files, shown.content), (vec![], None));
        assert!(matches!(verify("locomo", &nowhere), Err(DatasetError::NotFound(_))), "verify never downloads");
    }

    #[test]
    fn wrong_verbs_say_the_right_one() {
        let options = OpenOptions::default();
        let error = verify("locomo-sim", &options).expect_err("generated").to_string();
        insta::assert_snapshot!(error, @"dataset 'locomo-sim' is generated, there is nothing to verify; `bench-coord datasets generate` writes it to a file");
        let error = generate("locomo", &options, Path::new("f")).expect_err("not generated").to_string();
        insta::assert_snapshot!(error, @"dataset 'locomo' is not generated; `bench-coord datasets fetch locomo` downloads it");
        assert!(matches!(fetch("locomo-sim", &options, &|_, _| ()), Err(DatasetError::Setting(_))));
        let error =
            generate("locomo-sim", &options, Path::new("/proc/nowhere/f")).expect_err("no such folder").to_string();
        assert!(error.starts_with("/proc/nowhere/f: "), "{error}");
    }

    /// What is in the cache already is not downloaded again (there is no server here).
    #[test]
    fn a_published_file_in_the_cache_stays() {
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
        let root = std::env::var_os("BENCH_REFERENCE_DIR").map_or(root, PathBuf::from).join("data");
        if !root.join("locomo/locomo10.json").is_file() {
            eprintln!("NOT TESTED: the published LoCoMo is not below {}; set BENCH_REFERENCE_DIR", root.display());
            return;
        }
        let options = OpenOptions { cache_dir: root.clone(), ..Default::default() };
        assert_eq!(fetch("locomo", &options, &|_, _| ()).expect("is there"), [root.join("locomo/locomo10.json")]);
        let verified = verify("locomo", &options).expect("hashes");
        assert!(verified[0].ok && verified[0].bytes == verified[0].expected_bytes);
        let content = show("locomo", &options).expect("shows").content.expect("is there");
        assert_eq!((content.entries, content.turns, content.notes.len()), (272, 5_882, 3));
    }
}
