//! What is known about a dataset before it is read, as `manifest.toml` beside its loader says it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What stands in place of a licence where none is stated (SPDX).
const NO_LICENCE: &str = "NOASSERTION";

/// What is known about a dataset, or about one variant of it, before it is read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Its name: `locomo`, and with a variant `longmemeval@s`.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// Version of the data.
    pub version: String,
    /// Licence, as an SPDX id where there is one.
    pub licence: String,
    /// Where it comes from: the URL of its one file, the URL of the folder (with `/` at the end) that holds its files, or "generated".
    pub source: String,
    /// Its files; none for generated data.
    #[serde(default)]
    pub files: Vec<SourceFile>,
    /// Questions per category in the published files (for generated data: with default settings), where they were counted.
    #[serde(default)]
    pub categories: Vec<(String, u64)>,
    /// Banks; 0 where they were not counted.
    pub banks: u64,
    /// Sessions, or other stream entries, where they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u64>,
    /// Turns, where they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Phrases that make an answer an abstention, lower case.
    #[serde(default)]
    pub abstention_phrases: Vec<String>,
    /// Deterministic scorers, the headline's first; none where only judges grade, or only retrieval counts.
    #[serde(default)]
    pub scorers: Vec<String>,
    /// Version of the loader: raised whenever what it makes of the same file changes.
    pub loader_version: u32,
    /// Section of the settings that are its own (`sim` of `sim.seed`); empty when it has none.
    #[serde(default)]
    pub section: String,
    /// The settings of that section, in the order in which they are shown. A list of datasets does not tell them.
    #[serde(default, skip_serializing)]
    pub settings: Vec<DatasetSetting>,
}

/// A setting of a dataset's own, which its loader reads.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetSetting {
    /// Its name, without the section.
    pub name: String,
    /// Its value where nobody sets it.
    pub default: Value,
    /// The values that it takes, in the words of the error for others: `an integer from 1 to 1000`.
    pub takes: String,
    /// What it decides, in a line for people.
    pub words: String,
}

/// A published file of a dataset, or a folder of files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// Its path below `$BENCH_DATASETS_DIR/<dataset>/`, as unpacked. With `/` at the end it is a folder: all that is in it.
    pub path: String,
    /// sha256 of its published versions, the first being the one that is downloaded: of the file, of a folder's list of files,
    /// or of the packed form in which it came. None: it is not known, and reports say so.
    #[serde(default)]
    pub sha256s: Vec<String>,
    /// Size of the first version in bytes; 0 where it is not known.
    #[serde(default)]
    pub bytes: u64,
    /// Where it is downloaded from, when that is not its path below the manifest's source; `.gz` and `.tar.gz` are unpacked.
    /// Empty where it is published in another form alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl Manifest {
    /// The dataset's name without a variant.
    #[must_use]
    pub fn dataset(&self) -> &str {
        self.name.split_once('@').map_or(&self.name, |(dataset, _)| dataset)
    }

    /// Whether it is made by a generator of this project, not read from files.
    #[must_use]
    pub fn is_generated(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether somebody who has it may hand its texts on: not where no licence is stated, for then nobody has allowed it. Conditions of a
    /// licence, such as naming the authors or asking no money, are the reader's to keep.
    #[must_use]
    pub fn may_be_handed_on(&self) -> bool {
        self.licence != NO_LICENCE
    }

    /// Where one of its files is downloaded from.
    pub(crate) fn url_of(&self, file: &SourceFile) -> String {
        match &file.url {
            Some(url) => url.clone(),
            None if self.source.ends_with('/') => format!("{}{}", self.source, file.path),
            None => self.source.clone(),
        }
    }

    /// The manifests that a text in TOML holds: one, or one for each of its `[[variants]]`, which give what differs.
    pub(crate) fn read(text: &str) -> Result<Vec<Self>, toml::de::Error> {
        let mut common: toml::Table = text.parse()?;
        let Some(variants) = common.remove("variants") else { return Ok(vec![common.try_into()?]) };
        let variants: Vec<toml::Table> = variants.try_into()?;
        let variants = variants.into_iter().map(|own| {
            let mut all = common.clone();
            all.extend(own);
            if let (Some(toml::Value::String(dataset)), Some(toml::Value::String(variant))) =
                (common.get("name"), all.get_mut("name"))
            {
                *variant = format!("{dataset}@{variant}");
            }
            all.try_into()
        });
        variants.collect()
    }
}

impl SourceFile {
    /// sha256 of the version that is downloaded, where it is known.
    #[must_use]
    pub fn sha256(&self) -> Option<&str> {
        self.sha256s.first().map(String::as_str)
    }

    /// Whether a file with this sha256 is a published one; false where none is known.
    #[must_use]
    pub fn is_published(&self, sha256: &str) -> bool {
        self.sha256s.iter().any(|known| known == sha256)
    }

    /// Whether nobody publishes it in the form that is read: a person has to bring it.
    #[must_use]
    pub fn is_brought_by_hand(&self) -> bool {
        self.url.as_deref().map_or(self.is_folder(), str::is_empty)
    }

    /// Whether it is a folder of files.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.path.ends_with('/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
name = "many"
description = "in two sizes"
version = "1"
licence = "MIT"
source = "https://example.com/"
categories = [["a", 1], ["b", 2]]
loader_version = 1
[[variants]]
name = "small"
banks = 1
files = [{ path = "small.json" }]
[[variants]]
name = "large"
banks = 9
categories = [["a", 10]]
files = [{ path = "chats/", url = "https://example.com/chats.tar.gz" }]
"#;

    #[test]
    fn variants_give_what_differs() {
        let [small, large] = &Manifest::read(TEXT).expect("two")[..] else { panic!("two variants") };
        assert_eq!((small.name.as_str(), small.dataset(), small.banks), ("many@small", "many", 1));
        assert_eq!((large.name.as_str(), large.banks, large.categories.len()), ("many@large", 9, 1));
        assert_eq!(small.categories, [("a".to_owned(), 1), ("b".to_owned(), 2)]);
        assert_eq!(small.url_of(&small.files[0]), "https://example.com/small.json");
        assert_eq!(large.url_of(&large.files[0]), "https://example.com/chats.tar.gz");
        assert!(large.files[0].is_folder() && !small.files[0].is_folder());
    }

    #[test]
    fn keys_that_mean_nothing_are_refused() {
        for (text, expected) in [
            (TEXT.replace("licence", "license"), "license"),
            (TEXT.replace("path = \"small.json\"", "path = \"small.json\", size = 1"), "size"),
            ("name = ".to_owned(), "line 1"),
        ] {
            let error = Manifest::read(&text).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
