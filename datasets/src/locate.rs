//! Where a file of a dataset is: given path, datasets folder, cache, download; in this order.

use std::path::{Path, PathBuf};

use crate::{DatasetError, Manifest, OnProgress, OpenOptions, SourceFile, fetch};

/// `<folder>/<dataset>/<file>`.
fn below(folder: &Path, manifest: &Manifest, file: &SourceFile) -> PathBuf {
    folder.join(manifest.name).join(file.path)
}

/// The place in the cache, whether or not a file is there.
pub(crate) fn cache_path(manifest: &Manifest, file: &SourceFile, options: &OpenOptions) -> PathBuf {
    below(&options.cache_dir, manifest, file)
}

/// The file that is already on this machine. A path that was given is taken as it is, also when nothing is there; of a
/// dataset of several files it is their folder.
pub(crate) fn find(manifest: &Manifest, file: &SourceFile, options: &OpenOptions) -> Option<PathBuf> {
    if let Some(path) = &options.path {
        return Some(if manifest.files.len() == 1 { path.clone() } else { path.join(file.path) });
    }
    let places = options.datasets_dir.iter().chain([&options.cache_dir]);
    places.map(|folder| below(folder, manifest, file)).find(|path| path.is_file())
}

/// The file, downloaded when it is nowhere and this is allowed.
pub(crate) fn find_or_fetch(
    manifest: &Manifest,
    file: &SourceFile,
    options: &OpenOptions,
    on_progress: OnProgress<'_>,
) -> Result<PathBuf, DatasetError> {
    match find(manifest, file, options) {
        Some(path) => {
            exists(file, &path)?;
            Ok(path)
        }
        None if options.allow_download => {
            let path = cache_path(manifest, file, options);
            fetch::fetch(manifest, file, &path, on_progress)?;
            Ok(path)
        }
        None => Err(nowhere(manifest, file, options)),
    }
}

/// A path that was given must be a file: said before anything is read.
fn exists(file: &SourceFile, path: &Path) -> Result<(), DatasetError> {
    if path.is_file() {
        return Ok(());
    }
    let what = if path.is_dir() { "is a folder, not a file" } else { "does not exist" };
    Err(DatasetError::NotFound(format!("{} {what}; give the path of {} to --dataset-path", path.display(), file.path)))
}

/// The error for a file that is in none of the places.
fn nowhere(manifest: &Manifest, file: &SourceFile, options: &OpenOptions) -> DatasetError {
    let mut places = Vec::new();
    places.extend(options.datasets_dir.as_deref().map(|folder| below(folder, manifest, file)));
    places.push(cache_path(manifest, file, options));
    let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let name = manifest.name;
    DatasetError::NotFound(format!(
        "dataset '{name}' is not at {}; run `bench-coord datasets fetch {name}`, give --dataset-path, or set BENCH_DATASETS_DIR",
        places.join(" or "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locomo::MANIFEST;

    fn put(folder: &Path) -> PathBuf {
        let path = below(folder, &MANIFEST, &MANIFEST.files[0]);
        std::fs::create_dir_all(path.parent().expect("has a parent")).expect("folder");
        std::fs::write(&path, "x").expect("write");
        path
    }

    #[test]
    fn looks_in_the_stated_order() {
        let root = tempfile::tempdir().expect("temporary folder");
        let (given, datasets_dir, cache_dir) =
            (root.path().join("given.json"), root.path().join("datasets"), root.path().join("cache"));
        let mut options = OpenOptions {
            datasets_dir: Some(datasets_dir.clone()),
            cache_dir: cache_dir.clone(),
            ..Default::default()
        };
        let found = |options: &OpenOptions| find_or_fetch(&MANIFEST, &MANIFEST.files[0], options, &|_, _| ());

        let error = found(&options).expect_err("nowhere").to_string();
        assert!(
            error.contains("datasets/locomo/locomo10.json or ") && error.contains("datasets fetch locomo"),
            "{error}"
        );
        let in_cache = put(&cache_dir);
        assert_eq!(found(&options).expect("cache"), in_cache);
        let in_folder = put(&datasets_dir);
        assert_eq!(found(&options).expect("folder"), in_folder);

        options.path = Some(given.clone());
        let error = found(&options).expect_err("given, but not there").to_string();
        assert!(error.contains("given.json does not exist"), "{error}");
        std::fs::write(&given, "x").expect("write");
        assert_eq!(found(&options).expect("given"), given);
        options.path = Some(root.path().to_owned());
        let error = found(&options).expect_err("a folder").to_string();
        assert!(error.contains("is a folder"), "{error}");
    }

    #[test]
    fn several_files_are_in_the_folder_that_was_given() {
        const TWO: &[SourceFile] = &[
            SourceFile { path: "a.json", sha256s: &[], bytes: 1 },
            SourceFile { path: "below/b.json", sha256s: &[], bytes: 1 },
        ];
        let manifest = Manifest { files: TWO, ..MANIFEST.clone() };
        let options = OpenOptions { path: Some("/given".into()), ..Default::default() };
        let found = TWO.iter().map(|file| find(&manifest, file, &options).expect("as it was given"));
        assert_eq!(found.collect::<Vec<_>>(), ["/given/a.json", "/given/below/b.json"].map(PathBuf::from));
    }
}
