//! Known mistakes of datasets' answer keys, from files that others have published. They annotate gold records and replace nothing.
//!
//! To add those of another dataset: a file here with a manifest beside it, and a line in [`FIX_SETS`]. The file is found,
//! fetched and checked as a dataset's is.

mod locomo_audit;

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use bench_proto::{
    dataset::{Bank, BankOutline, GoldRecord},
    label_fixes::{LABEL_ERROR, LabelFix, LabelFixesSpec},
    nearest::{did_you_mean, nearest},
};

use crate::{About, Dataset, DatasetError, Manifest, OnProgress, OpenOptions, files::Files};

/// What was found wrong, by the ids of the questions.
type Found = BTreeMap<String, LabelFix>;

/// Published mistakes of a dataset's answer key.
struct FixSet {
    /// The [`Manifest`] of its file as TOML.
    manifest: &'static str,
    /// The dataset that it is about.
    dataset: &'static str,
    /// Categories whose answers were looked through.
    categories: &'static [&'static str],
    /// Reads the file, and holds it to the questions and answers of the dataset.
    read: fn(&Files, &dyn Dataset) -> Result<Found, DatasetError>,
}

/// All sets of label fixes: one line each.
const FIX_SETS: &[FixSet] = &[FixSet {
    manifest: locomo_audit::MANIFEST,
    dataset: "locomo",
    categories: &locomo_audit::CATEGORIES,
    read: locomo_audit::read,
}];

/// Their manifests, in the order of [`FIX_SETS`].
fn manifests() -> &'static [Manifest] {
    static MANIFESTS: LazyLock<Vec<Manifest>> =
        LazyLock::new(|| FIX_SETS.iter().filter_map(|set| toml::from_str(set.manifest).ok()).collect());
    &MANIFESTS
}

/// What is known of the file of a set before it is read.
pub(crate) fn manifest(name: &str) -> Option<&'static Manifest> {
    manifests().iter().find(|manifest| manifest.name == name)
}

/// What can be done where a file cannot be downloaded: a path that is given names the dataset's.
fn by_folder(manifest: &Manifest, error: DatasetError) -> DatasetError {
    let DatasetError::Download { url, reason } = error else { return error };
    let files: Vec<&str> = manifest.files.iter().map(|file| file.path.as_str()).collect();
    DatasetError::NotFound(format!(
        "download of {url} failed: {reason}; place the file yourself, as {}/{} in the folder that BENCH_DATASETS_DIR names",
        manifest.name,
        files.join(", ")
    ))
}

/// The mistakes of a dataset's answer key.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelFixes {
    manifest: &'static Manifest,
    spec: LabelFixesSpec,
    found: Found,
}

impl LabelFixes {
    /// Opens the set of a name for a dataset: finds, fetches and checks its file. `options` say where to look.
    ///
    /// # Errors
    /// Unknown names, sets of another dataset, a file that cannot be had or read, and one that names other questions or answers
    /// than the dataset has.
    pub fn open(
        name: &str,
        dataset: &dyn Dataset,
        options: &OpenOptions,
        on_progress: OnProgress<'_>,
    ) -> Result<Self, DatasetError> {
        let of = dataset.manifest().dataset();
        let known = manifests().iter().zip(FIX_SETS);
        let Some((manifest, set)) = known.into_iter().find(|(manifest, _)| manifest.name == name) else {
            let names = manifests().iter().map(|manifest| manifest.name.as_str());
            let all = names.clone().collect::<Vec<_>>().join(", ");
            let hint = did_you_mean(&nearest(name, names)).map(|hint| format!(", {hint}")).unwrap_or_default();
            return Err(DatasetError::Setting(format!("unknown label fixes '{name}'{hint}; there are: {all}")));
        };
        if set.dataset != of {
            let text = format!("label fixes '{name}' are of {}, and this is {of}: leave them out", set.dataset);
            return Err(DatasetError::Setting(text));
        }
        // a path that was given is the dataset's
        let files = Files::find(manifest, &OpenOptions { path: None, ..options.clone() }, on_progress);
        let files = files.map_err(|error| by_folder(manifest, error))?;
        let found = (set.read)(&files, dataset)?;
        let spec = LabelFixesSpec {
            name: manifest.name.clone(),
            sha256: files.sha256.clone(),
            modified: files.modified,
            categories: set.categories.iter().map(|name| (*name).to_owned()).collect(),
            wrong: wrong(&found, dataset)?,
        };
        Ok(Self { manifest, spec, found })
    }

    /// What is known of their file.
    #[must_use]
    pub fn manifest(&self) -> &'static Manifest {
        self.manifest
    }

    /// What the spec of a run says of them.
    #[must_use]
    pub fn spec(&self) -> &LabelFixesSpec {
        &self.spec
    }

    /// What is wrong with the answer of a question, if anything is.
    #[must_use]
    pub fn fix_of(&self, question_id: &str) -> Option<&LabelFix> {
        self.found.get(question_id)
    }

    /// All fixes, by the ids of the questions.
    pub fn all(&self) -> impl Iterator<Item = (&str, &LabelFix)> {
        self.found.iter().map(|(id, fix)| (id.as_str(), fix))
    }

    /// Notes in a gold record what is wrong with it.
    pub fn annotate(&self, record: &mut GoldRecord) {
        record.annotate(self.found.get(&record.question_id));
    }
}

/// Wrong answers of the whole dataset, by category.
fn wrong(found: &Found, dataset: &dyn Dataset) -> Result<BTreeMap<String, u64>, DatasetError> {
    let mut wrong = BTreeMap::new();
    for bank in 0..dataset.bank_count() {
        for question in dataset.outline(bank)?.questions {
            *wrong.entry(question.category).or_default() += u64::from(found.contains_key(&question.question_id));
        }
    }
    wrong.retain(|_, n| *n > 0);
    Ok(wrong)
}

/// A dataset whose gold records say what is known to be wrong with them.
pub struct Annotated {
    dataset: Arc<dyn Dataset>,
    fixes: LabelFixes,
}

impl Annotated {
    /// The dataset with its label fixes.
    #[must_use]
    pub fn new(dataset: Arc<dyn Dataset>, fixes: LabelFixes) -> Self {
        Self { dataset, fixes }
    }
}

impl Dataset for Annotated {
    fn about(&self) -> &About {
        self.dataset.about()
    }

    fn bank_count(&self) -> usize {
        self.dataset.bank_count()
    }

    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError> {
        let mut outline = self.dataset.outline(bank)?;
        for question in &mut outline.questions {
            let fix = self.fixes.fix_of(&question.question_id);
            question.facets.extend(fix.map(|fix| (LABEL_ERROR.to_owned(), fix.kind.clone())));
        }
        Ok(outline)
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        let mut bank = self.dataset.bank(bank)?;
        bank.gold.iter_mut().for_each(|record| self.fixes.annotate(record));
        Ok(bank)
    }

    fn given_ids(&self, bank: usize) -> Option<&BTreeMap<String, String>> {
        self.dataset.given_ids(bank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_name_one_file_of_known_content_and_a_dataset_that_exists() {
        assert_eq!(manifests().len(), FIX_SETS.len(), "every manifest can be read");
        for (manifest, set) in manifests().iter().zip(FIX_SETS) {
            assert!(crate::registry::find(&manifest.name).is_err(), "{} is the name of a dataset", manifest.name);
            let known = crate::registry::find(set.dataset).expect("is registered");
            assert!(manifest.files.len() == 1 && manifest.files[0].sha256s.len() == 1, "{manifest:?}");
            let has = |category: &&str| known.profile.categories.contains_key(*category);
            assert!(!set.categories.is_empty() && set.categories.iter().all(has), "{}", manifest.name);
        }
    }

    #[test]
    fn where_the_file_may_lie_is_said_when_it_cannot_be_had() {
        let failed = DatasetError::Download { url: "https://x.example/errors.json".to_owned(), reason: "no".into() };
        let told = by_folder(&manifests()[0], failed).to_string();
        assert!(told.contains("as locomo-audit/errors.json in the folder that BENCH_DATASETS_DIR names"), "{told}");
        assert!(!told.contains("--dataset-path"), "that is the dataset's: {told}");
    }

    #[test]
    fn sets_of_other_datasets_and_unknown_ones_are_refused() {
        let dataset = crate::open("locomo-sim", &OpenOptions::default(), &|_, _| ()).expect("is generated");
        let refused = |name: &str| {
            let opened = LabelFixes::open(name, &*dataset, &OpenOptions::default(), &|_, _| ());
            opened.expect_err("is refused").to_string()
        };
        assert_eq!(
            refused("locomo-audit"),
            "label fixes 'locomo-audit' are of locomo, and this is locomo-sim: leave them out"
        );
        assert_eq!(
            refused("locomo-audits"),
            "unknown label fixes 'locomo-audits', did you mean 'locomo-audit'?; there are: locomo-audit"
        );
    }
}
