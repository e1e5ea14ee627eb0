//! Files of datasets for tests that do not lie where the loaders look for them: parts of published ones, and small ones of
//! ours in the same schema. So a test over all datasets leaves none out.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::small;

/// Published files, or parts of them, that lie in the reference folder under other names than the loaders look for.
const PARTS: [(&str, &str); 4] = [
    ("beam@100k", "beam/beam_100K_chats_and_questions.tar.gz"),
    ("longmemeval@oracle", "longmemeval/longmemeval_oracle_rebuilt_16.json"),
    ("longmemeval@s", "longmemeval/longmemeval_s_real_1.json"),
    ("memoryagentbench@conflict-resolution", "memoryagentbench/factconsolidation_sh_6k_first10.json"),
];

/// Files of ours below `datasets/testdata` that stand for several variants of a dataset. A folder there that has the whole name of a
/// dataset needs no line.
const OURS: [(&str, &str); 4] = [
    ("longmemeval@m", "longmemeval/whole.json"),
    ("longmemeval@oracle", "longmemeval/evidence.json"),
    ("longmemeval@s", "longmemeval/whole.json"),
    ("longmemeval@s-legacy", "longmemeval/whole.json"),
];

/// The files of PersonaMem's sizes.
const PERSONAMEM: [(&str, &str); 3] = [("personamem@32k", "32k"), ("personamem@128k", "128k"), ("personamem@1m", "1M")];

/// Folder of published data, which may not be in the repository: `data` below `BENCH_REFERENCE_DIR`, by default `../shared`.
#[must_use]
pub fn published() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    std::env::var_os("BENCH_REFERENCE_DIR").map_or(beside, PathBuf::from).join("data")
}

/// Folder of the files that this project may have.
#[must_use]
pub fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/testdata")
}

/// A published file of a dataset, or a part of one, that its name alone does not find.
#[must_use]
pub fn part(name: &str) -> Option<PathBuf> {
    path_of(&PARTS, name, &published())
}

fn path_of(table: &[(&str, &str)], name: &str, below: &Path) -> Option<PathBuf> {
    let named = table.iter().find(|(of, _)| *of == name).map(|(_, path)| below.join(path));
    named.filter(|path| path.exists())
}

/// Files of ours in a dataset's schema, for `--dataset-path PATH --allow-modified-dataset`; what is written for it lies below
/// `folder`. None for a dataset that is not known here.
///
/// # Errors
/// When the folder cannot be written.
pub fn ours(name: &str, folder: &Path) -> io::Result<Option<PathBuf>> {
    let of_its_name = Some(testdata().join(name)).filter(|folder| folder.is_dir());
    if let Some(path) = path_of(&OURS, name, &testdata()).or(of_its_name) {
        return Ok(Some(path));
    }
    let folder = folder.join(name.replace('@', "-"));
    fs::create_dir_all(&folder)?;
    if let Some((_, size)) = PERSONAMEM.iter().find(|(of, _)| *of == name) {
        let copy = |from: &str, to: String| fs::copy(testdata().join("personamem").join(from), folder.join(to));
        copy("small_questions.csv", format!("questions_{size}.csv"))?;
        copy("small_contexts.jsonl", format!("shared_contexts_{size}.jsonl"))?;
        return Ok(Some(folder));
    }
    Ok(small::write(name, &folder)?.then_some(folder))
}
