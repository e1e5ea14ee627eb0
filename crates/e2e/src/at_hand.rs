//! All datasets of the registry, each with files for tests: published ones where they are at hand, else made, else small ones of
//! ours in the same schema.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use bench_testkit::{bench::Bench, small};

/// Published files, or parts of them, that lie in the reference folder under other names than the loaders look for.
const PARTS: [(&str, &str); 4] = [
    ("beam@100k", "beam/beam_100K_chats_and_questions.tar.gz"),
    ("longmemeval@oracle", "longmemeval/longmemeval_oracle_rebuilt_16.json"),
    ("longmemeval@s", "longmemeval/longmemeval_s_real_1.json"),
    ("memoryagentbench@conflict-resolution", "memoryagentbench/factconsolidation_sh_6k_first10.json"),
];

/// Files of ours below `datasets/testdata`.
const OURS: [(&str, &str); 5] = [
    ("example", "example"),
    ("longmemeval@m", "longmemeval/whole.json"),
    ("longmemeval@oracle", "longmemeval/evidence.json"),
    ("longmemeval@s", "longmemeval/whole.json"),
    ("longmemeval@s-legacy", "longmemeval/whole.json"),
];

/// The files of PersonaMem's sizes.
const PERSONAMEM: [(&str, &str); 3] = [("personamem@32k", "32k"), ("personamem@128k", "128k"), ("personamem@1m", "1M")];

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

/// Folder of published data, which may not be in the repository: `data` below `BENCH_REFERENCE_DIR`, by default `../shared`.
#[must_use]
pub fn published() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    std::env::var_os("BENCH_REFERENCE_DIR").map_or(beside, PathBuf::from).join("data")
}

/// All datasets that `datasets list` names, so that a new one is among them without being asked; small files are written
/// below `folder`. The bench and whoever submits must have [`published`] as their datasets folder.
///
/// # Panics
/// When one has no files: whoever adds a dataset without published files writes small ones ([`small::write`]).
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
    let of = |table: &[(&str, &str)], below: &Path| {
        let named = table.iter().find(|(of, _)| *of == name).map(|(_, path)| below.join(path));
        named.filter(|path| path.exists())
    };
    if let Some(path) = of(&PARTS, &published()) {
        return (Source::Published, Some(path));
    }
    match here {
        "here" => return (Source::Published, None),
        "generated" => return (Source::Generated, None),
        _ => {}
    }
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/testdata");
    if let Some(path) = of(&OURS, &ours) {
        return (Source::Ours, Some(path));
    }
    let folder = folder.join(name.replace('@', "-"));
    std::fs::create_dir_all(&folder).expect("a folder for small files");
    if let Some((_, size)) = PERSONAMEM.iter().find(|(of, _)| *of == name) {
        let copy = |from: &str, to: String| std::fs::copy(ours.join("personamem").join(from), folder.join(to));
        let copied = copy("small_questions.csv", format!("questions_{size}.csv"));
        copied.and_then(|_| copy("small_contexts.jsonl", format!("shared_contexts_{size}.jsonl"))).expect("copies");
    } else if name == "locomo" {
        let file = folder.join("locomo10.json");
        let file = file.to_str().expect("a path");
        let make = ["datasets", "generate", "locomo-sim", "--set", "sim.conversations=2", "--output", file];
        let _ = bench.run(make).expect_code(0);
        return (Source::Ours, Some(file.into()));
    } else {
        assert!(small::write(name, &folder).expect("small files can be written"), "{name} has no files for tests");
    }
    (Source::Ours, Some(folder))
}
