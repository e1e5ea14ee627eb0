//! All datasets, open: as published where they are at hand, else parts of that and small files of ours in the same schema.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use bench_datasets::{Dataset, OpenOptions, known, open};
use bench_proto::{dataset::Bank, ids::Sha256Hash};
use bench_systems::BankRef;
use bench_testkit::data;

fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Files that are there in place of published ones, and whose.
static IN_PLACE: LazyLock<Vec<(&str, PathBuf)>> = LazyLock::new(|| {
    let names = known().iter().map(|known| known.manifest.name.as_str());
    let missing = names.filter(|name| by_name(name).is_none());
    let paths = |name| {
        let ours = data::ours(name, &scratch().join("small")).expect("small files can be written");
        [data::part(name), ours].into_iter().flatten().map(move |path| (name, path))
    };
    missing.flat_map(paths).collect()
});

fn options(folder: PathBuf) -> OpenOptions {
    OpenOptions { datasets_dir: Some(folder), cache_dir: scratch().join("datasets"), ..OpenOptions::default() }
}

/// A dataset whose name finds its files.
fn by_name(name: &str) -> Option<Box<dyn Dataset>> {
    let folders = [data::testdata(), data::published()];
    folders.into_iter().find_map(|folder| open(name, &options(folder), &|_, _| ()).ok())
}

/// All datasets; LoCoMo is left out where its file is not at hand.
pub(crate) fn all() -> impl Iterator<Item = Box<dyn Dataset>> {
    let in_place = IN_PLACE.iter().map(|(name, path)| {
        let options = OpenOptions { path: Some(path.clone()), allow_modified: true, ..options(data::testdata()) };
        open(name, &options, &|_, _| ()).unwrap_or_else(|error| panic!("{name}: {error}"))
    });
    known().iter().filter_map(|known| by_name(&known.manifest.name)).chain(in_place)
}

/// A bank as a system is told of it.
pub(crate) fn place(bank: &Bank, number: usize) -> BankRef {
    BankRef {
        name: format!("bench-{number}-g1"),
        handle: None,
        bank_id: bank.content.bank_id.clone(),
        content_hash: Sha256Hash::of_bytes(&serde_json::to_vec(&bank.content).expect("JSON")),
        content: Some(Arc::new(bank.content.clone())),
    }
}
