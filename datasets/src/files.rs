//! The files of a dataset: found, checked, and read one by one.

use std::{fs::File, io::Read, path::Path};

use flate2::read::MultiGzDecoder;

use crate::{
    DatasetError, Manifest, OnProgress, OpenOptions, checksum, locate,
    place::{OneFile, Seen, Standing},
};

/// Most bytes of a file that is read into memory; larger ones are streamed.
const MOST_IN_MEMORY: u64 = 1 << 30;

/// What was found, by the paths of the manifest.
#[derive(Debug)]
pub(crate) struct Files {
    dataset: String,
    /// In the order of the manifest; those of a folder by name.
    files: Vec<OneFile>,
    /// sha256 of the file, of a folder its list's; of several the hash of their hashes.
    pub(crate) sha256: String,
    /// True when one of them is not a published one.
    pub(crate) modified: bool,
    /// True when of one of them no checksum is known.
    pub(crate) checksum_unknown: bool,
}

impl Files {
    /// Finds and hashes all files of a dataset; nothing of them stays in memory.
    pub(crate) fn find(
        manifest: &Manifest,
        options: &OpenOptions,
        on_progress: OnProgress<'_>,
    ) -> Result<Self, DatasetError> {
        let mut files = Self {
            dataset: manifest.name.clone(),
            files: Vec::new(),
            sha256: String::new(),
            modified: false,
            checksum_unknown: false,
        };
        let mut hashes = Vec::new();
        for file in &manifest.files {
            let place = locate::find_or_fetch(manifest, file, options, on_progress)?;
            let content = place.content(manifest, file, options)?;
            match content.standing(file) {
                Standing::Published => {}
                Standing::Other if options.allow_modified => files.modified = true,
                Standing::Other => return Err(content.not_published(&manifest.name, file, place.path())),
                Standing::Unknown => {}
            }
            files.checksum_unknown |= file.sha256s.is_empty();
            files.files.extend(content.hashed.inside);
            hashes.push(content.hashed.sha256);
        }
        files.sha256 = match <[String; 1]>::try_from(hashes) {
            Ok([of_the_file]) => of_the_file,
            Err(several) => checksum::of_bytes(several.join("\n").as_bytes()),
        };
        Ok(files)
    }

    fn one(&self, name: &str) -> Result<&OneFile, DatasetError> {
        self.files.iter().find(|file| file.name == name).ok_or_else(|| {
            DatasetError::NotFound(format!("dataset '{}' needs {name}, which is not among its files", self.dataset))
        })
    }

    /// Where a file lies, unpacked, for loaders that stream: the file that was hashed. Errors call it [`Files::shown`].
    pub(crate) fn path(&self, name: &str) -> Result<&Path, DatasetError> {
        let OneFile { path, seen, .. } = self.one(name)?;
        if Seen::at_path(path)? != *seen {
            return Err(self.broken(name, "file".to_owned(), "changed while it was read; start again".to_owned()));
        }
        Ok(path)
    }

    /// Where a file lies as a person knows it: of what came packed, the packed file.
    pub(crate) fn shown(&self, name: &str) -> Result<&Path, DatasetError> {
        Ok(&self.one(name)?.shown)
    }

    /// A whole file, bounded; the bytes are those that were checked.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, DatasetError> {
        let OneFile { path, sha256, .. } = self.one(name)?;
        let mut content = Vec::new();
        let file = File::open(path).map_err(|source| DatasetError::io(path, source))?;
        file.take(MOST_IN_MEMORY + 1).read_to_end(&mut content).map_err(|source| DatasetError::io(path, source))?;
        let broken = |problem: &str| self.broken(name, "file".to_owned(), problem.to_owned());
        if content.len() as u64 > MOST_IN_MEMORY {
            return Err(broken("is larger than 1 GiB; split it"));
        }
        if checksum::of_bytes(&content) != *sha256 {
            return Err(broken("changed while it was read; start again"));
        }
        Ok(content)
    }

    /// As [`Files::read`], of a file inside a folder that may be packed (`.gz`).
    pub(crate) fn read_unpacked(&self, name: &str) -> Result<Vec<u8>, DatasetError> {
        let content = self.read(name)?;
        if !name.ends_with(".gz") {
            return Ok(content);
        }
        let mut unpacked = Vec::new();
        let broken = |problem: String| self.broken(name, "packed content".to_owned(), problem);
        let mut all = MultiGzDecoder::new(&content[..]).take(MOST_IN_MEMORY + 1);
        all.read_to_end(&mut unpacked).map_err(|error| broken(error.to_string()))?;
        if unpacked.len() as u64 > MOST_IN_MEMORY {
            return Err(broken("unpacks to more than 1 GiB; split it".to_owned()));
        }
        Ok(unpacked)
    }

    /// The objects of a whole file: one a line, or a list of them.
    pub(crate) fn objects<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, DatasetError> {
        crate::lines::objects(&self.shown(name)?.display().to_string(), &self.read(name)?)
    }

    /// Names of the files below a folder, such as `chats/`, in order.
    pub(crate) fn list<'a>(&'a self, below: &'a str) -> impl Iterator<Item = &'a str> {
        self.files.iter().map(|file| file.name.as_str()).filter(move |name| name.starts_with(below))
    }

    /// An error that names a file or a folder as the manifest does, or by its place in the cache, with where a person knows it.
    pub(crate) fn located(&self, error: DatasetError) -> DatasetError {
        let DatasetError::Broken { path: name, place, problem } = error else { return error };
        if let Some(file) = self.files.iter().find(|file| file.path.to_str() == Some(name.as_str())) {
            return DatasetError::Broken { path: file.shown.display().to_string(), place, problem };
        }
        let below = self.files.iter().find(|file| file.name.starts_with(&name));
        let root = below.and_then(|file| match name.ends_with('/') {
            true => file.shown.to_str()?.strip_suffix(file.name.strip_prefix(&name)?),
            false => file.shown.to_str(),
        });
        DatasetError::Broken { path: root.unwrap_or(&name).to_owned(), place, problem }
    }

    /// An error in a file's content, with where the file lies.
    pub(crate) fn broken(&self, name: &str, place: String, problem: String) -> DatasetError {
        let path = self.one(name).map_or_else(|_| name.to_owned(), |file| file.shown.display().to_string());
        DatasetError::Broken { path, place, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::PathBuf};

    use crate::{
        SourceFile,
        packed::tests::{archive, entry, gz},
    };

    const CHATS: [(&str, &[u8]); 3] = [("1/chat.json", b"[1]"), ("10/chat.json", b"[10]"), ("2/chat.json", b"[2]")];

    fn find(manifest: &Manifest, options: &OpenOptions) -> Result<Files, DatasetError> {
        Files::find(manifest, options, &|_, _| ())
    }

    fn manifest(path: &str, sha256s: &[&str]) -> Manifest {
        let sha256s = sha256s.iter().map(|sha256| (*sha256).to_owned()).collect();
        let file = SourceFile { path: path.to_owned(), sha256s, bytes: 3, url: None };
        Manifest { name: "many@small".to_owned(), files: vec![file], ..Manifest::default() }
    }

    fn put(root: &Path, name: &str, content: &[u8]) -> PathBuf {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folder");
        fs::write(&path, content).expect("write");
        path
    }

    /// However a folder comes, it is the same files with the same checksum.
    #[test]
    fn a_folder_is_the_same_packed_or_not() {
        let root = tempfile::tempdir().expect("temporary folder");
        for (name, content) in CHATS {
            put(root.path(), &format!("plain/chats/100K/{name}"), content);
        }
        put(root.path(), "plain/chats/100K/.DS_Store", b"hidden");
        let packed = |top: &str| {
            let entries = CHATS.map(|(name, content)| entry(&format!("{top}{name}"), b'0', content));
            archive(&entries)
        };
        let from_repository = put(root.path(), "repository.tar.gz", &packed("BEAM-abc/chats/100K/"));
        let as_published = put(root.path(), "published.tgz", &packed("chats/100K/"));
        let bare = put(root.path(), "bare.tar.gz", &packed(""));
        put(root.path(), "datasets/many/chats/100K.tar.gz", &packed("chats/100K/"));
        let list: String = CHATS.map(|(name, content)| format!("{}  {name}\n", checksum::of_bytes(content))).concat();
        let sha256 = checksum::of_bytes(list.as_bytes());
        let options = |path: Option<PathBuf>| OpenOptions {
            path,
            datasets_dir: Some(root.path().join("datasets")),
            cache_dir: root.path().join("cache"),
            ..OpenOptions::default()
        };
        let at = |name: &str| Some(root.path().join(name));
        for path in
            [at("plain"), at("plain/chats/100K"), Some(from_repository), Some(as_published.clone()), Some(bare), None]
        {
            let files = find(&manifest("chats/100K/", &[&sha256]), &options(path.clone()))
                .unwrap_or_else(|error| panic!("{path:?}: {error}"));
            assert_eq!(
                (files.sha256.as_str(), files.modified, files.checksum_unknown),
                (sha256.as_str(), false, false)
            );
            let names = CHATS.map(|(name, _)| format!("chats/100K/{name}"));
            assert_eq!(files.list("chats/").collect::<Vec<_>>(), names, "{path:?}");
            assert_eq!(files.read("chats/100K/10/chat.json").expect("reads"), b"[10]");
            assert!(files.path("chats/100K/3/chat.json").is_err());
            let shown = files.shown("chats/100K/10/chat.json").expect("is there").display().to_string();
            assert!(shown.ends_with("10/chat.json") && !shown.contains("cache"), "{shown}");
        }
        let of_packed = checksum::of_file(&as_published).expect("hash").1;
        let files = find(&manifest("chats/100K/", &[&of_packed]), &options(Some(as_published.clone()))).expect("known");
        assert_eq!((files.sha256.as_str(), files.modified), (sha256.as_str(), false), "known by the packed file");
        let error = find(&manifest("chats/1M/", &[]), &options(Some(as_published))).expect_err("another").to_string();
        assert!(error.contains("published.tgz holds no chats/1M/"), "{error}");
    }

    #[test]
    fn a_file_is_known_unpacked_or_packed_or_not_at_all() {
        let root = tempfile::tempdir().expect("temporary folder");
        let (plain, packed) = (put(root.path(), "a.json", b"[1]"), put(root.path(), "b.json.gz", &gz(b"[1]")));
        let options = |path: &Path, allow_modified| OpenOptions {
            path: Some(path.to_owned()),
            cache_dir: root.path().join("cache"),
            allow_modified,
            ..OpenOptions::default()
        };
        let (of_plain, of_packed) = (checksum::of_bytes(b"[1]"), checksum::of_bytes(&gz(b"[1]")));
        for (path, known) in [(&plain, &of_plain), (&packed, &of_plain), (&packed, &of_packed)] {
            let files = find(&manifest("data.json", &["00", known]), &options(path, false)).expect("published");
            assert_eq!((files.sha256.as_str(), files.modified), (of_plain.as_str(), false), "the same content");
            assert_eq!(files.read("data.json").expect("reads"), b"[1]");
        }
        let error = || DatasetError::Broken {
            path: "data.json".to_owned(),
            place: "line 1".to_owned(),
            problem: "x".to_owned(),
        };
        let files = find(&manifest("data.json", &[&of_plain]), &options(&packed, false)).expect("published");
        assert!(files.located(error()).to_string().starts_with(&format!("{}: ", packed.display())), "as it was given");
        let unknown = find(&manifest("data.json", &[]), &options(&packed, false)).expect("any");
        assert!(unknown.checksum_unknown && !unknown.modified);
        let cut = put(root.path(), "cut.json", b"[1");
        let error = find(&manifest("data.json", &[]), &options(&cut, false)).expect_err("cut off").to_string();
        assert!(error.contains("cut.json is not the published many@small: it has 2 bytes, expected 3; "), "{error}");
        let allowed = find(&manifest("data.json", &[]), &options(&cut, true)).expect("allowed");
        assert!(allowed.checksum_unknown && allowed.modified, "its size is known");
        let other = manifest("data.json", &["00"]);
        assert!(matches!(find(&other, &options(&plain, false)), Err(DatasetError::NotPublished { .. })));
        let files = find(&other, &options(&plain, true)).expect("allowed");
        assert!(files.modified && !files.checksum_unknown);
        fs::rename(put(root.path(), "other.json", b"[2]"), &plain).expect("another file of the same size");
        assert!(files.path("data.json").expect_err("another").to_string().contains("changed while it was read"));
        assert!(files.read("data.json").expect_err("another").to_string().contains("changed while it was read"));
    }

    /// Does something to a folder in the cache.
    type Damage<'a> = dyn Fn(&Path) -> std::io::Result<()> + 'a;

    /// What lies unpacked in the cache is what came out of the packed file, or it comes out anew.
    #[test]
    fn an_altered_cache_never_passes_as_what_was_packed() {
        let root = tempfile::tempdir().expect("temporary folder");
        let entries = CHATS.map(|(name, content)| entry(name, b'0', content));
        let (one, many) = (put(root.path(), "b.json.gz", &gz(b"[1]")), put(root.path(), "c.tgz", &archive(&entries)));
        let cases: [(&Path, &str, &str); 2] = [(&one, "data.json", "file"), (&many, "chats/", "files/2/chat.json")];
        for (packed, name, inside) in cases {
            let sha256 = checksum::of_file(packed).expect("hash").1;
            let options = OpenOptions {
                path: Some(packed.to_owned()),
                cache_dir: root.path().join("cache"),
                ..OpenOptions::default()
            };
            let content = || {
                let files = find(&manifest(name, &[&sha256]), &options).unwrap_or_else(|error| panic!("{error}"));
                assert!(!files.modified);
                let names: Vec<String> = files.list("").map(str::to_owned).collect();
                names.iter().map(|name| files.read(name).expect("reads")).collect::<Vec<_>>()
            };
            let expected = content();
            let place = root.path().join("cache/unpacked").join(&sha256);
            let damages: [&Damage<'_>; 5] = [
                &|place| fs::write(place.join(inside), "[3]"),
                &|place| fs::remove_file(place.join(inside)),
                &|place| fs::remove_file(place.join("sha256sums")),
                &|place| fs::write(place.join("sha256sums"), "nonsense"),
                // of the same size, with the same time
                &|place| {
                    let (path, before) = (place.join(inside), fs::metadata(place.join(inside))?.modified()?);
                    fs::write(&path, vec![b'x'; fs::read(&path)?.len()])?;
                    File::options().write(true).open(&path)?.set_modified(before)
                },
            ];
            for damage in damages {
                damage(&place).expect("damages");
                assert_eq!(content(), expected, "{name}");
            }
            if name == "chats/" {
                put(&place, "files/3/chat.json", b"added");
                assert_eq!(content(), expected, "a file that nobody packed");
            }
        }
        assert_eq!(
            fs::read_dir(root.path().join("cache/unpacked")).expect("folder").count(),
            2,
            "nothing is left over"
        );
    }

    #[test]
    fn names_that_would_make_a_list_ambiguous_are_refused() {
        let root = tempfile::tempdir().expect("temporary folder");
        put(root.path(), "chats/a\nb", b"x");
        let options = OpenOptions { path: Some(root.path().to_owned()), ..OpenOptions::default() };
        let error = find(&manifest("chats/", &[]), &options).expect_err("two lines").to_string();
        assert!(error.contains("control characters (\"a\\nb\")"), "{error}");
    }

    #[test]
    fn a_folder_without_end_is_refused() {
        let root = tempfile::tempdir().expect("temporary folder");
        put(root.path(), &format!("chats/{}f", "d/".repeat(20)), b"x");
        let options = OpenOptions { path: Some(root.path().to_owned()), ..OpenOptions::default() };
        let error = find(&manifest("chats/", &[]), &options).expect_err("too deep").to_string();
        assert!(error.contains("more than 16 deep"), "{error}");
    }
}
