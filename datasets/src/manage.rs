//! What the verb `datasets` does: list, show, verify, fetch, generate.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::Value;

use crate::{
    Dataset, DatasetError, Manifest, OnProgress, OpenOptions, find, known, locate,
    locomo::write,
    own,
    place::{Hashed, Standing},
    registry::{self, is_taken, own_file},
    whole_file::WholeFile,
};

/// A dataset in the list of all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listed {
    /// What is known about it.
    #[serde(flatten)]
    pub manifest: Manifest,
    /// Whether it can be read without a download.
    pub here: Here,
    /// Where it lies, when it does.
    pub places: Vec<PathBuf>,
    /// Bytes of what is published, or lies here; absent where this is not known.
    pub bytes: Option<u64>,
    /// The name that it gives itself and has in reports, where that is not the one that opens it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_name: Option<String>,
    /// Why it cannot be listed as it should: a file of one's own that is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Whether a dataset is on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Here {
    /// All of its files are.
    Here,
    /// At least one of them is not.
    NotHere,
    /// It is made when it is asked for.
    Generated,
    /// It is a file of the user's in the datasets folder.
    Own,
}

impl Here {
    /// As tables show it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::NotHere => "not here",
            Self::Generated => "generated",
            Self::Own => "your own",
        }
    }
}

/// All datasets and their variants in the order of the registry, then the files of one's own in the datasets folder.
#[must_use]
pub fn list(options: &OpenOptions) -> Vec<Listed> {
    let registered = known().iter().map(|known| {
        let manifest = known.manifest.clone();
        let found = manifest.files.iter().map(|file| locate::find(&manifest, file, options));
        let places: Option<Vec<PathBuf>> = found.map(|place| place.map(|place| place.path().to_owned())).collect();
        let here = match (manifest.is_generated(), &places) {
            (true, _) => Here::Generated,
            (false, Some(_)) => Here::Here,
            (false, None) => Here::NotHere,
        };
        let known_size = !manifest.is_generated() && manifest.files.iter().all(|file| file.bytes > 0);
        let bytes = known_size.then(|| manifest.files.iter().map(|file| file.bytes).sum());
        Listed { manifest, here, places: places.unwrap_or_default(), bytes, own_name: None, problem: None }
    });
    registered.chain(own::in_folder(options, is_taken).into_iter().map(|path| list_own(path, options))).collect()
}

/// The largest file of one's own that is read for a list.
const MOST_FOR_LIST: u64 = 64 << 20;

fn list_own(path: PathBuf, options: &OpenOptions) -> Listed {
    let bytes = path.metadata().map_or(0, |kind| kind.len());
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (manifest, problem) = match (bytes <= MOST_FOR_LIST).then(|| own::open(&path, options, is_taken)) {
        Some(Ok(dataset)) => (dataset.manifest().clone(), None),
        Some(Err(error)) => (Manifest { name: name.clone(), ..Manifest::default() }, Some(error.to_string())),
        None => {
            let description = format!("a large file of your own; `bench-coord datasets show {name}` reads it");
            (Manifest { name: name.clone(), description, ..Manifest::default() }, None)
        }
    };
    let own_name = (manifest.name != name).then(|| manifest.name.clone());
    let manifest = Manifest { name, ..manifest };
    Listed { manifest, here: Here::Own, places: vec![path], bytes: Some(bytes), own_name, problem }
}

/// What a person should know of a dataset's licence before the first use: told once, which is noted in the cache.
pub fn licence_notice(manifest: &Manifest, options: &OpenOptions) -> Option<String> {
    if manifest.is_generated() || registry::manifest(&manifest.name).is_err() {
        return None;
    }
    let note = options.cache_dir.join(manifest.dataset()).join(".licence-told");
    let already = std::fs::read_to_string(&note).is_ok_and(|told| told.trim() == manifest.licence);
    // it takes the place of a link, and what that leads to stays
    let write = || -> std::io::Result<()> {
        let mut file = WholeFile::create(&note)?;
        file.write_all(manifest.licence.as_bytes())?;
        file.keep()
    };
    if !already {
        // where the cache cannot be written it is told again
        let _ = write();
    }
    let licence = match manifest.licence.as_str() {
        "NOASSERTION" => "states no licence".to_owned(),
        licence => format!("is under the licence {licence}"),
    };
    (!already).then(|| {
        let (name, source) = (manifest.dataset(), &manifest.source);
        let what = if find(name).is_ok() { "dataset" } else { "label fixes" };
        format!("{what} {name} {licence}, from {source}; what it allows is between you and its authors")
    })
}

/// A dataset as it is on this machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Details {
    /// What is known about it.
    pub manifest: Manifest,
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
    /// True when no checksum of the published file is known.
    pub checksum_unknown: bool,
    /// Effective settings, without their prefix.
    pub settings: BTreeMap<String, Value>,
    /// Number of banks.
    pub banks: u64,
    /// Sessions, or other stream entries; the parts of a session are one.
    pub entries: u64,
    /// Number of turns.
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
    if let Some(path) = own_file(name, options) {
        let dataset = own::open(&path, options, is_taken)?;
        return Ok(Details {
            manifest: dataset.manifest().clone(),
            files: vec![path],
            content: Some(count(&*dataset)?),
        });
    }
    let known = find(name)?;
    let manifest = &known.manifest;
    let files: Option<Vec<PathBuf>> = manifest
        .files
        .iter()
        .map(|file| locate::find(manifest, file, options).map(|place| place.path().to_owned()))
        .collect();
    let content = if files.is_some() {
        let options = OpenOptions { allow_modified: true, allow_download: false, ..options.clone() };
        Some(count(&*known.open(&options, &|_, _| ())?)?)
    } else {
        None
    };
    Ok(Details { manifest: manifest.clone(), files: files.unwrap_or_default(), content })
}

fn count(dataset: &dyn Dataset) -> Result<Content, DatasetError> {
    let mut content = Content {
        sha256: dataset.sha256().to_owned(),
        modified: dataset.is_modified(),
        checksum_unknown: dataset.about().checksum_unknown,
        settings: dataset.settings(),
        banks: dataset.bank_count() as u64,
        entries: 0,
        turns: 0,
        categories: BTreeMap::new(),
        notes: dataset.notes().to_vec(),
    };
    for bank in 0..dataset.bank_count() {
        let outline = dataset.outline(bank)?;
        content.entries += u64::from(outline.sessions());
        content.turns += u64::from(outline.turns);
        for question in outline.questions {
            *content.categories.entry(question.category).or_default() += 1;
        }
    }
    Ok(content)
}

/// Which questions of a dataset are listed.
#[derive(Debug, Clone, Default)]
pub struct WantedQuestions {
    /// Those of this category alone.
    pub category: Option<String>,
    /// How many are left out before the first one.
    pub skip: usize,
    /// How many are listed.
    pub most: usize,
    /// Whether what is expected is listed too.
    pub with_gold: bool,
}

/// A question of a dataset, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedQuestion {
    /// See [`bench_proto::dataset::Question::question_id`].
    pub question_id: String,
    /// The bank that it is about.
    pub bank_id: String,
    /// The dataset's kind of question that it is.
    pub category: String,
    /// Its text.
    pub question: String,
    /// Options of a multiple-choice question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// What is expected; absent unless it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gold: Option<String>,
}

/// Questions of a dataset in its order, and how many there are to choose from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ListedQuestions {
    /// Questions that fit.
    pub total: usize,
    /// Those that are listed.
    pub questions: Vec<ListedQuestion>,
}

/// Questions of a dataset, read bank by bank. Never downloads, as [`show`].
///
/// # Errors
/// As [`show`]; a dataset that is not on this machine; a category that it does not have, with those that it has.
pub fn questions(name: &str, options: &OpenOptions, wanted: &WantedQuestions) -> Result<ListedQuestions, DatasetError> {
    let dataset: Box<dyn Dataset> = match own_file(name, options) {
        Some(path) => own::open(&path, options, is_taken)?,
        None => {
            let options = OpenOptions { allow_modified: true, allow_download: false, ..options.clone() };
            find(name)?.open(&options, &|_, _| ())?
        }
    };
    let fits = |category: &str| wanted.category.as_ref().is_none_or(|wanted| wanted == category);
    let (mut listed, mut categories) = (ListedQuestions::default(), BTreeSet::new());
    for at in 0..dataset.bank_count() {
        let outline = dataset.outline(at)?;
        categories.extend(outline.questions.iter().map(|question| question.category.clone()));
        let of_bank = outline.questions.iter().filter(|question| fits(&question.category)).count();
        let (before, full) = (listed.total, listed.questions.len() >= wanted.most);
        listed.total += of_bank;
        if full || listed.total <= wanted.skip {
            continue;
        }
        let bank = dataset.bank(at)?;
        let asked = bank.questions.iter().zip(&bank.gold).filter(|(question, _)| fits(&question.category));
        let room = wanted.most - listed.questions.len();
        let chosen = asked.skip(wanted.skip.saturating_sub(before)).take(room);
        listed.questions.extend(chosen.map(|(question, gold)| ListedQuestion {
            question_id: question.question_id.clone(),
            bank_id: outline.bank_id.clone(),
            category: question.category.clone(),
            question: question.text.clone(),
            choices: question.choices.clone(),
            gold: wanted.with_gold.then(|| gold.gold.text()),
        }));
    }
    match &wanted.category {
        Some(category) if !categories.contains(category) => {
            let known: Vec<&str> = categories.iter().map(String::as_str).collect();
            Err(DatasetError::Setting(format!("{name} has no category '{category}': it has {}", known.join(", "))))
        }
        _ => Ok(listed),
    }
}

/// Whether a file is the published one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The dataset.
    pub name: String,
    /// The file, or folder, that was hashed.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Published size; 0 where it is not known.
    pub expected_bytes: u64,
    /// 64 hexadecimal characters.
    pub sha256: String,
    /// Published sha256; absent where it is not known.
    pub expected_sha256: Option<String>,
    /// True when it is the published one, or this cannot be told.
    pub ok: bool,
}

/// Hashes the given files, or those that are found, and compares them with the manifest. Never downloads.
///
/// # Errors
/// Unknown names, generated datasets, and files that are not there or cannot be read. Another checksum is no error here.
pub fn verify(name: &str, options: &OpenOptions) -> Result<Vec<Verification>, DatasetError> {
    let manifest = published(name, "verify", options)?;
    let options = OpenOptions { allow_download: false, ..options.clone() };
    let verified = manifest.files.iter().map(|file| {
        let place = locate::find_or_fetch(manifest, file, &options, &|_, _| ())?;
        let content = place.content(manifest, file, &options)?;
        let ok = content.standing(file) != Standing::Other;
        let Hashed { bytes, sha256, .. } = content.hashed;
        Ok(Verification {
            name: manifest.name.clone(),
            path: place.path().to_owned(),
            bytes,
            expected_bytes: file.bytes,
            ok,
            sha256,
            expected_sha256: file.sha256().map(str::to_owned),
        })
    });
    verified.collect()
}

/// Downloads a dataset into the cache, except the published files that are there already; returns their paths. Blocks.
///
/// # Errors
/// Unknown names, generated datasets, and downloads that fail.
pub fn fetch(name: &str, options: &OpenOptions, on_progress: OnProgress<'_>) -> Result<Vec<PathBuf>, DatasetError> {
    fetch_all(published(name, "fetch", options)?, options, on_progress)
}

fn fetch_all(
    manifest: &Manifest,
    options: &OpenOptions,
    on_progress: OnProgress<'_>,
) -> Result<Vec<PathBuf>, DatasetError> {
    let fetched = manifest.files.iter().map(|file| {
        let in_cache = OpenOptions { datasets_dir: None, path: None, ..options.clone() };
        match locate::find(manifest, file, &in_cache) {
            Some(place) if locate::is_good(manifest, file, &place, &in_cache)? => Ok(place.path().to_owned()),
            _ => Ok(locate::download(manifest, file, &in_cache, on_progress)?.path().to_owned()),
        }
    });
    fetched.collect()
}

fn published(name: &str, verb: &str, options: &OpenOptions) -> Result<&'static Manifest, DatasetError> {
    if let Some(path) = own_file(name, options) {
        let text = format!("{} is a file of your own, there is nothing to {verb}", path.display());
        return Err(DatasetError::Setting(text));
    }
    let manifest = registry::manifest(name)?;
    if manifest.is_generated() {
        let text = format!(
            "dataset '{name}' is generated, there is nothing to {verb}; `bench-coord datasets generate {name} --output FILE` writes it to \
             a file"
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
    /// 64 hexadecimal characters.
    pub sha256: String,
    /// Number of banks in it.
    pub banks: usize,
}

/// The form in which a generated dataset is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// LoCoMo's schema, for what fits into it: `--dataset locomo --dataset-path FILE --allow-modified-dataset` reads the same
    /// questions and evidence back, and so do other runners.
    #[default]
    Locomo,
    /// The project's own, which holds everything: `--dataset ./FILE` reads the same banks back.
    Jsonl,
}

/// Writes a generated dataset to a file.
///
/// # Errors
/// Unknown names, datasets that are not generated, settings that do not exist, what the form cannot hold, and a path that cannot
/// be written.
pub fn generate(name: &str, options: &OpenOptions, path: &Path, form: Form) -> Result<Generated, DatasetError> {
    let known = find(name)?;
    if !known.manifest.is_generated() {
        let text = format!("dataset '{name}' is not generated; `bench-coord datasets fetch {name}` downloads it");
        return Err(DatasetError::Setting(text));
    }
    let dataset = known.open(options, &|_, _| ())?;
    let (bytes, sha256) = match form {
        Form::Locomo => write::write(&*dataset, path)?,
        Form::Jsonl => own::write(&*dataset, path, is_taken)?,
    };
    Ok(Generated { path: path.to_owned(), bytes, sha256, banks: dataset.bank_count() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bench_proto::dataset::{Bank, Filter, Gold, StreamEntry};
    use serde_json::json;

    use super::*;
    use crate::{SourceFile, checksum, known, open, packed::tests::gz};

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
        let generated = generate("locomo-sim", &sim(3), &path, Form::Locomo).expect("writes");
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
        assert!(matches!(open("locomo", &options, &|_, _| ()), Err(DatasetError::NotPublished { .. })));
        let verified = verify("locomo", &options).expect("hashes");
        assert!(!verified[0].ok && verified[0].sha256 == generated.sha256);
        let shown = show("locomo", &options).expect("shows").content.expect("a file");
        assert!(shown.modified && shown.banks == 3);
    }

    #[test]
    fn show_counts_what_is_there() {
        let shown = show("locomo-sim", &OpenOptions::default()).expect("shows");
        let content = shown.content.expect("generated data is always there");
        assert_eq!((content.banks, content.entries, content.turns), (10, 272, 5_882));
        let expected: BTreeMap<String, u64> = shown.manifest.categories.into_iter().collect();
        assert_eq!(content.categories, expected);
        assert_eq!(show("locomo-sim", &sim(12)).expect("shows").content.expect("there").banks, 12);

        let folder = tempfile::tempdir().expect("temporary folder");
        let nowhere = OpenOptions { cache_dir: folder.path().to_owned(), allow_download: true, ..Default::default() };
        let shown = show("locomo", &nowhere).expect("shows the manifest");
        assert_eq!((shown.files, shown.content), (vec![], None));
        assert!(matches!(verify("locomo", &nowhere), Err(DatasetError::NotFound(_))), "verify never downloads");
    }

    /// What each generator writes in the project's own form, read back by its path, holds the same: withdrawals, updates,
    /// assertions, filters and numbers of hits too.
    #[test]
    fn generated_files_of_our_own_form_hold_everything() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut written = BTreeSet::new();
        for name in known().iter().filter(|known| known.manifest.is_generated()).map(|known| &known.manifest.name) {
            let path = folder.path().join(format!("my-{name}.jsonl"));
            let generated = generate(name, &OpenOptions::default(), &path, Form::Jsonl).expect("writes");
            let generator = open(name, &OpenOptions::default(), &|_, _| ()).expect("opens");
            let file = open(&path.display().to_string(), &OpenOptions::default(), &|_, _| ()).expect("reads");
            assert_eq!((file.sha256(), file.manifest().name.as_str()), (&*generated.sha256, &*format!("my-{name}")));
            assert_eq!((file.bank_count(), file.profile()), (generator.bank_count(), generator.profile()), "{name}");
            assert_eq!(file.manifest().scorers, generator.manifest().scorers, "{name}");
            for bank in 0..generator.bank_count() {
                let (read, made) = (file.bank(bank).expect("a bank"), generator.bank(bank).expect("a bank"));
                assert_eq!(file.outline(bank).expect("an outline"), made.outline(), "{name}");
                assert!(read == made, "{name}: bank {bank} is not what was made");
                written.extend(kinds(&made));
            }
            assert!(!file.is_modified() && file.bank(generator.bank_count()).is_err(), "{name}");
        }
        let all = ["assertions", "filter", "k", "memory", "session", "update", "withdrawal"];
        assert_eq!(written.into_iter().collect::<Vec<_>>(), all, "generators make everything that a bank may hold");
        let packed = folder.path().join("locomo-sim.jsonl");
        generate("locomo-sim", &sim(1), &packed, Form::Jsonl).expect("writes");
        let named = packed.display().to_string();
        let other = open(&named, &OpenOptions::default(), &|_, _| ()).expect("reads");
        assert_eq!(other.manifest().name, "locomo-sim-file", "the name of the generator stays its own");
    }

    /// What a bank holds that not every form could say.
    fn kinds(bank: &Bank) -> impl Iterator<Item = &'static str> {
        let entries = bank.content.entries.iter().map(|entry| match entry {
            StreamEntry::Session(_) => "session",
            StreamEntry::Memory(_) => "memory",
            StreamEntry::Update { memory: Some(_), .. } => "update",
            StreamEntry::Update { memory: None, .. } => "withdrawal",
        });
        let of_questions = bank.questions.iter().zip(&bank.gold).flat_map(|(question, gold)| {
            [
                (question.filter != Filter::default()).then_some("filter"),
                question.k.map(|_| "k"),
                matches!(gold.gold, Gold::Assertions(_)).then_some("assertions"),
            ]
        });
        entries.chain(of_questions.flatten())
    }

    #[test]
    fn the_list_says_what_is_here() {
        let root = tempfile::tempdir().expect("temporary folder");
        let mut options = OpenOptions {
            datasets_dir: Some(root.path().join("datasets")),
            cache_dir: root.path().join("cache"),
            ..OpenOptions::default()
        };
        let here = |options: &OpenOptions, name: &str| {
            list(options).into_iter().find(|listed| listed.manifest.name == name).map(|listed| listed.here)
        };
        assert_eq!(here(&options, "locomo"), Some(Here::NotHere));
        assert_eq!(here(&options, "locomo-sim"), Some(Here::Generated));
        std::fs::create_dir_all(root.path().join("datasets/locomo")).expect("folder");
        std::fs::write(root.path().join("datasets/locomo/locomo10.json"), "x").expect("write");
        assert_eq!(here(&options, "locomo"), Some(Here::Here));
        assert_eq!(here(&options, "small-talk"), None);
        let own = root.path().join("datasets/small-talk.jsonl");
        generate("locomo-sim", &sim(1), &own, Form::Jsonl).expect("writes");
        std::fs::write(root.path().join("datasets/broken.jsonl"), "{").expect("write");
        assert_eq!(here(&options, "small-talk"), Some(Here::Own));
        let broken = list(&options).into_iter().find(|listed| listed.manifest.name == "broken").expect("is listed");
        assert!(broken.problem.is_some_and(|problem| problem.contains("line 1")));
        assert_eq!(open("small-talk", &options, &|_, _| ()).expect("by its name").bank_count(), 1);
        // every name that is listed opens; the one that a file gives itself is told beside it
        let set = "{\"dataset\": {\"name\": \"friends\"}}\n{\"memory\": {\"text\": \"a\"}}\n{\"id\": 1, \"question\": \"b\", \"reference_answer\": \"a\"}";
        std::fs::write(root.path().join("datasets/my.set.jsonl"), set).expect("write");
        std::fs::write(
            root.path().join("datasets/plain.set.jsonl"),
            set.lines().skip(1).collect::<Vec<_>>().join("\n"),
        )
        .expect("write");
        let own: Vec<Listed> = list(&options).into_iter().filter(|listed| listed.here == Here::Own).collect();
        let names: Vec<_> =
            own.iter().map(|listed| (listed.manifest.name.as_str(), listed.own_name.as_deref())).collect();
        let expected = [("broken", None), ("my.set", Some("friends")), ("plain.set", None), ("small-talk", None)];
        assert_eq!(names, expected);
        for listed in own.iter().filter(|listed| listed.problem.is_none()) {
            let opened = open(&listed.manifest.name, &options, &|_, _| ()).expect("opens");
            assert_eq!(opened.manifest().name, listed.own_name.as_deref().unwrap_or(&listed.manifest.name));
        }
        assert_eq!(show("small-talk", &options).expect("shows").content.expect("counts").banks, 1);
        options.datasets_dir = None;
        assert!(matches!(open("small-talk", &options, &|_, _| ()), Err(DatasetError::Unknown { .. })));
    }

    #[test]
    fn the_licence_is_told_once() {
        let root = tempfile::tempdir().expect("temporary folder");
        let options = OpenOptions {
            cache_dir: root.path().to_owned(),
            datasets_dir: Some(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"))),
            ..OpenOptions::default()
        };
        let example = open("example", &options, &|_, _| ()).expect("opens");
        // whoever made the folder of the cache can know where that is noted
        let victim = root.path().join("victim");
        std::fs::write(&victim, "precious").expect("is written");
        let noted = root.path().join(example.manifest().dataset());
        std::fs::create_dir_all(&noted).expect("is made");
        std::os::unix::fs::symlink(&victim, noted.join(".licence-told")).expect("is linked");
        let told = licence_notice(example.manifest(), &options).expect("the first time");
        assert!(told.starts_with("dataset example is under the licence Apache-2.0, from https://"), "{told}");
        assert_eq!(licence_notice(example.manifest(), &options), None);
        assert_eq!(std::fs::read_to_string(&victim).expect("is there"), "precious");
        let generated = open("locomo-sim", &sim(1), &|_, _| ()).expect("opens");
        assert_eq!(licence_notice(generated.manifest(), &options), None, "it is this project's own");
    }

    #[test]
    fn wrong_verbs_say_the_right_one() {
        let options = OpenOptions::default();
        let error = verify("locomo-sim", &options).expect_err("generated").to_string();
        insta::assert_snapshot!(error, @"dataset 'locomo-sim' is generated, there is nothing to verify; `bench-coord datasets generate locomo-sim --output FILE` writes it to a file");
        let error = generate("locomo", &options, Path::new("f"), Form::Locomo).expect_err("not generated").to_string();
        insta::assert_snapshot!(error, @"dataset 'locomo' is not generated; `bench-coord datasets fetch locomo` downloads it");
        assert!(matches!(fetch("locomo-sim", &options, &|_, _| ()), Err(DatasetError::Setting(_))));
        let error = generate("locomo-sim", &options, Path::new("/proc/nowhere/f"), Form::Locomo)
            .expect_err("no such folder")
            .to_string();
        assert!(error.starts_with("/proc/nowhere/f: "), "{error}");
    }

    /// A packed file that is cut off is no reason to give up, but one to download it again (which there is no server for here).
    #[test]
    fn a_damaged_packed_file_is_downloaded_again() {
        let root = tempfile::tempdir().expect("temporary folder");
        let options = OpenOptions { cache_dir: root.path().to_owned(), ..Default::default() };
        let manifest = Manifest {
            name: "many".to_owned(),
            files: vec![SourceFile {
                path: "data.json".to_owned(),
                url: Some("http://127.0.0.1:9/data.json.gz".to_owned()),
                ..SourceFile::default()
            }],
            ..Manifest::default()
        };
        let packed = root.path().join("many/data.json.gz");
        std::fs::create_dir_all(root.path().join("many")).expect("folder");
        let whole = gz(b"[1, 2, 3]");
        std::fs::write(&packed, &whole).expect("write");
        let fetched = fetch_all(&manifest, &options, &|_, _| ()).expect("is good");
        assert_eq!(fetched, std::slice::from_ref(&packed));
        std::fs::write(&packed, &whole[..whole.len() - 6]).expect("write");
        let error = fetch_all(&manifest, &options, &|_, _| ()).expect_err("nobody answers");
        assert!(matches!(error, DatasetError::Download { .. }), "{error}");
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
