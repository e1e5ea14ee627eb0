//! All datasets of the registry, each with files for tests: published ones where they are at hand, else made, else small ones of
//! ours in the same schema.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use bench_testkit::{bench::Bench, data};

pub use bench_testkit::data::published;

/// Where the files of a dataset come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// As they were published, or a part of them.
    Published,
    /// A generator of this project.
    Generated,
    /// Small files of this project in the dataset's schema.
    Ours,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Published => "published",
            Self::Generated => "generated",
            Self::Ours => "of ours",
        })
    }
}

/// A dataset with the flags of `submit` that find it.
#[derive(Debug)]
pub struct AtHand {
    /// Its name, with its variant.
    pub name: String,
    /// What it is read from.
    pub from: Source,
    /// `--dataset-path` where the name alone does not find it.
    pub flags: Vec<String>,
}

/// All datasets that `datasets list` names, so that a new one is among them without being asked; small files are written
/// below `folder`. The bench and whoever submits must have [`published`] as their datasets folder.
///
/// # Panics
/// When one has no files: whoever adds a dataset without published files writes small ones ([`bench_testkit::small::write`]).
#[must_use]
pub fn all(bench: &Bench, folder: &Path) -> Vec<AtHand> {
    let listed = bench.run(["datasets", "list", "--json"]).expect_code(0).json();
    let listed = listed.as_array().expect("a list");
    let at_hand = |manifest: &serde_json::Value| {
        let name = manifest["name"].as_str().expect("a name").to_owned();
        let (from, path) = find(bench, &name, manifest["here"].as_str().unwrap_or_default(), folder);
        let flags = path.map_or_else(Vec::new, |path| {
            let path = path.to_str().expect("a path").to_owned();
            vec!["--dataset-path".to_owned(), path, "--allow-modified-dataset".to_owned()]
        });
        AtHand { name, from, flags }
    };
    listed.iter().map(at_hand).collect()
}

/// Where the files of a dataset come from, and their path where the name does not find them.
fn find(bench: &Bench, name: &str, here: &str, folder: &Path) -> (Source, Option<PathBuf>) {
    if let Some(path) = data::part(name) {
        return (Source::Published, Some(path));
    }
    match here {
        "here" => return (Source::Published, None),
        "generated" => return (Source::Generated, None),
        _ => {}
    }
    if name == "locomo" {
        let file = folder.join("locomo10.json");
        let path = file.to_str().expect("a path");
        let make = ["datasets", "generate", "locomo-sim", "--set", "sim.conversations=2", "--output", path];
        let _ = bench.run(make).expect_code(0);
        return (Source::Ours, Some(file));
    }
    let path = data::ours(name, folder).expect("small files can be written");
    assert!(path.is_some(), "{name} has no files for tests");
    (Source::Ours, path)
}
