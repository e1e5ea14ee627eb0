//! Where a file of a dataset is: given path, datasets folder, cache, download; in this order.

use std::path::{Path, PathBuf};

use crate::{
    DatasetError, Manifest, OnProgress, OpenOptions, SourceFile, fetch,
    packed::{self, Packing},
    place::{self, Content, Place, Standing},
};

impl Place {
    /// What is there, if anything.
    fn at_path(path: PathBuf) -> Option<Self> {
        let kind = path.metadata().ok()?;
        if kind.is_dir() {
            Some(Self::Folder(path))
        } else if kind.is_file() {
            Some(match Packing::by_name(&path.to_string_lossy()) {
                None => Self::File(path),
                Some(Packing::Gzip) => Self::Gzip(path),
                Some(Packing::Archive) => Self::Archive(path),
            })
        } else {
            None
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Folder(path) | Self::Gzip(path) | Self::Archive(path) => path,
        }
    }

    /// Whether it can be what the manifest names.
    fn fits(&self, file: &SourceFile) -> bool {
        match self {
            Self::File(_) | Self::Gzip(_) => !file.is_folder(),
            Self::Folder(_) => file.is_folder(),
            Self::Archive(_) => true,
        }
    }

    /// What lies there, unpacked and hashed.
    pub(crate) fn content(
        &self,
        manifest: &Manifest,
        file: &SourceFile,
        options: &OpenOptions,
    ) -> Result<Content, DatasetError> {
        match self {
            Self::File(_) | Self::Folder(_) => Ok(Content { hashed: place::hash(file, self)?, packed: None }),
            Self::Gzip(path) => {
                let one = |unpacked: &Path| Ok(Self::File(unpacked.to_owned()));
                packed::content(path, Packing::Gzip, file.bytes, file, options, one)
            }
            Self::Archive(path) => {
                let bytes = manifest.files.iter().map(|file| file.bytes).sum();
                let inside = |unpacked: &Path| {
                    let nothing = || DatasetError::NotFound(format!("{} holds no {}", path.display(), file.path));
                    in_archive(manifest, file, unpacked).ok_or_else(nothing)
                };
                packed::content(path, Packing::Archive, bytes, file, options, inside)
            }
        }
    }
}

/// What an archive holds of a dataset: below its root, or below the one folder that all of it is in.
fn in_archive(manifest: &Manifest, file: &SourceFile, root: &Path) -> Option<Place> {
    let own_name = std::slice::from_ref(&file.path);
    let mut inside = root.read_dir().ok()?.filter_map(Result::ok).map(|entry| entry.path());
    match (inside.next(), inside.next()) {
        (Some(only), None) if only.join(first_part(file)).exists() => {
            Place::at_path(only.join(&file.path)).filter(|place| place.fits(file))
        }
        _ => in_given(manifest, own_name, file, root),
    }
}

/// The outermost folder of a file's path.
fn first_part(file: &SourceFile) -> &str {
    file.path.split('/').next().unwrap_or_default()
}

/// `<folder>/<dataset>/<file>`; the variants of a dataset share its folder.
fn below(folder: &Path, manifest: &Manifest, file: &SourceFile) -> PathBuf {
    folder.join(manifest.dataset()).join(&file.path)
}

/// The place in the cache, whether or not a file is there; what arrives packed stays so.
pub(crate) fn cache_path(manifest: &Manifest, file: &SourceFile, options: &OpenOptions) -> PathBuf {
    options.cache_dir.join(manifest.dataset()).join(arrives_as(file))
}

/// The name under which a file arrives, below the folder of its dataset: folders are packed on their way.
pub(crate) fn arrives_as(file: &SourceFile) -> String {
    match download_name(file) {
        Some(name) => name.to_owned(),
        None if file.is_folder() => format!("{}.tar.gz", file.path.trim_end_matches('/')),
        None => file.path.clone(),
    }
}

/// Names under which a file may lie: its own, packed, and that of its download.
fn names(file: &SourceFile) -> Vec<String> {
    let packed = file.path.trim_end_matches('/');
    let endings: &[&str] = if file.is_folder() { &[".tar.gz", ".tgz"] } else { &[".gz"] };
    let mut names = vec![file.path.clone()];
    names.extend(endings.iter().map(|ending| format!("{packed}{ending}")));
    names.extend(download_name(file).map(str::to_owned));
    names
}

/// The name of a packed file that is downloaded.
fn download_name(file: &SourceFile) -> Option<&str> {
    let (_, name) = file.url.as_deref()?.rsplit_once('/')?;
    Packing::by_name(name).map(|_| name)
}

/// What lies at a path that was given: the dataset's one file or folder itself, an archive, or the folder that holds all of it.
fn in_given(manifest: &Manifest, names: &[String], file: &SourceFile, path: &Path) -> Option<Place> {
    let inside = || names.iter().filter_map(|name| Place::at_path(path.join(name))).find(|place| place.fits(file));
    let itself = || {
        let place = Place::at_path(path.to_owned()).filter(|place| place.fits(file))?;
        // where other parts of the dataset lie, the one that is wanted is missing
        if path.join(first_part(file)).exists() {
            return None;
        }
        (manifest.files.len() == 1 || matches!(place, Place::Archive(_))).then_some(place)
    };
    inside().or_else(itself)
}

/// The file that is already on this machine.
pub(crate) fn find(manifest: &Manifest, file: &SourceFile, options: &OpenOptions) -> Option<Place> {
    if let Some(path) = &options.path {
        return in_given(manifest, &names(file), file, path);
    }
    let folders = options.datasets_dir.iter().chain([&options.cache_dir]);
    let mut places = folders.flat_map(|folder| {
        names(file).into_iter().filter_map(|name| Place::at_path(folder.join(manifest.dataset()).join(name)))
    });
    places.find(|place| place.fits(file))
}

/// The file, downloaded when it is nowhere and this is allowed.
pub(crate) fn find_or_fetch(
    manifest: &Manifest,
    file: &SourceFile,
    options: &OpenOptions,
    on_progress: OnProgress<'_>,
) -> Result<Place, DatasetError> {
    match (find(manifest, file, options), &options.path) {
        (Some(place), _) => Ok(place),
        (None, Some(path)) => Err(not_there(file, path)),
        (None, None) if options.allow_download && !file.is_brought_by_hand() => {
            download(manifest, file, options, on_progress)
        }
        (None, None) => Err(nowhere(manifest, file, options)),
    }
}

/// Downloads a file into the cache.
pub(crate) fn download(
    manifest: &Manifest,
    file: &SourceFile,
    options: &OpenOptions,
    on_progress: OnProgress<'_>,
) -> Result<Place, DatasetError> {
    if file.is_brought_by_hand() {
        return Err(nowhere(manifest, file, options));
    }
    let path = cache_path(manifest, file, options);
    fetch::fetch(manifest, file, &path, on_progress)?;
    Place::at_path(path).ok_or_else(|| nowhere(manifest, file, options))
}

/// Whether what lies at a place is published, as far as this can be told.
pub(crate) fn is_good(
    manifest: &Manifest,
    file: &SourceFile,
    place: &Place,
    options: &OpenOptions,
) -> Result<bool, DatasetError> {
    match place.content(manifest, file, options) {
        Ok(content) => Ok(content.standing(file) != Standing::Other),
        // damaged, or something else: it has to come again
        Err(DatasetError::Broken { .. } | DatasetError::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The error for a path that was given and does not hold what it should: said before anything is read.
fn not_there(file: &SourceFile, path: &Path) -> DatasetError {
    let what = if path.is_dir() {
        "does not hold it"
    } else if path.exists() {
        "is one file"
    } else {
        "does not exist"
    };
    let wanted = if file.is_folder() { "the folder" } else { "the path of" };
    DatasetError::NotFound(format!(
        "{} {what}; give {wanted} {}, or the folder that holds it, to --dataset-path",
        path.display(),
        file.path
    ))
}

/// The error for a file that is in none of the places.
fn nowhere(manifest: &Manifest, file: &SourceFile, options: &OpenOptions) -> DatasetError {
    let mut places = Vec::new();
    places.extend(options.datasets_dir.as_deref().map(|folder| below(folder, manifest, file)));
    places.push(cache_path(manifest, file, options));
    let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let name = &manifest.name;
    let fetch = if file.is_brought_by_hand() {
        format!("it has to be brought by hand, docs/datasets/{}.md says how: ", manifest.dataset())
    } else {
        format!("run `bench-coord datasets fetch {name}`, ")
    };
    DatasetError::NotFound(format!(
        "dataset '{name}' is not at {}; {fetch}give --dataset-path, or set BENCH_DATASETS_DIR",
        places.join(" or "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locomo() -> &'static Manifest {
        &crate::find("locomo").expect("registered").manifest
    }

    fn put(folder: &Path) -> PathBuf {
        let path = below(folder, locomo(), &locomo().files[0]);
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
        let found = |options: &OpenOptions| find_or_fetch(locomo(), &locomo().files[0], options, &|_, _| ());

        let error = found(&options).expect_err("nowhere").to_string();
        assert!(
            error.contains("datasets/locomo/locomo10.json or ") && error.contains("datasets fetch locomo"),
            "{error}"
        );
        let in_cache = put(&cache_dir);
        assert_eq!(found(&options).expect("cache"), Place::File(in_cache));
        let in_folder = put(&datasets_dir);
        assert_eq!(found(&options).expect("folder"), Place::File(in_folder));

        options.path = Some(given.clone());
        let error = found(&options).expect_err("given, but not there").to_string();
        assert!(error.contains("given.json does not exist"), "{error}");
        std::fs::write(&given, "x").expect("write");
        assert_eq!(found(&options).expect("given"), Place::File(given));
        options.path = Some(root.path().to_owned());
        let error = found(&options).expect_err("a folder without it").to_string();
        assert!(error.contains("does not hold it; give the path of locomo10.json"), "{error}");
        let inside = root.path().join("locomo10.json");
        std::fs::write(&inside, "x").expect("write");
        assert_eq!(found(&options).expect("the folder that holds it"), Place::File(inside));
    }

    /// What nobody publishes in the form that is read is not asked for where it cannot be.
    #[test]
    fn what_has_to_be_brought_by_hand_is_never_downloaded() {
        let root = tempfile::tempdir().expect("temporary folder");
        let options = OpenOptions { cache_dir: root.path().to_owned(), allow_download: true, ..Default::default() };
        for name in ["memoryagentbench@conflict-resolution", "convomem@mixed"] {
            let manifest = &crate::find(name).expect("registered").manifest;
            let error = find_or_fetch(manifest, &manifest.files[0], &options, &|_, _| ()).expect_err("nowhere");
            let page = format!("has to be brought by hand, docs/datasets/{}.md says how", manifest.dataset());
            assert!(error.to_string().contains(&page), "{error}");
            let page =
                Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/datasets/{}.md", manifest.dataset()));
            assert!(page.is_file(), "{page:?}");
        }
    }

    #[test]
    fn several_files_and_folders_are_in_the_folder_that_was_given() {
        let root = tempfile::tempdir().expect("temporary folder");
        let file = |path: &str| SourceFile { path: path.to_owned(), ..SourceFile::default() };
        let files = vec![file("a.json"), file("below/b.json"), file("chats/")];
        let manifest = Manifest { files, ..locomo().clone() };
        std::fs::create_dir_all(root.path().join("chats")).expect("a folder");
        std::fs::create_dir_all(root.path().join("below")).expect("a folder");
        for name in ["a.json", "below/b.json"] {
            std::fs::write(root.path().join(name), "x").expect("write");
        }
        let options = OpenOptions { path: Some(root.path().to_owned()), ..Default::default() };
        let found: Option<Vec<Place>> = manifest.files.iter().map(|file| find(&manifest, file, &options)).collect();
        let at = |name: &str| root.path().join(name);
        let expected = [Place::File(at("a.json")), Place::File(at("below/b.json")), Place::Folder(at("chats/"))];
        assert_eq!(found.expect("all"), expected);
        let alone = Manifest { files: vec![file("chats/")], ..manifest };
        let options = OpenOptions { path: Some(at("chats")), ..options };
        assert_eq!(find(&alone, &alone.files[0], &options), Some(Place::Folder(at("chats"))), "the folder itself");
    }
}
