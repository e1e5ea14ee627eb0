//! Where an archive is, and the names of its objects.

use std::{
    collections::{BTreeSet, VecDeque},
    fs::{Metadata, Permissions},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path as FilePath, PathBuf},
    sync::Arc,
    time::Duration,
};

use bench_proto::redact;
use bytes::Bytes;
use futures::{TryStreamExt as _, stream::FuturesUnordered};
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, ObjectStoreScheme, PutMode, PutOptions, PutPayload,
    RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
    local::LocalFileSystem,
    path::Path,
};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;

use super::{ArchiveError, secrets::Secrets};

/// Names of environment variables that hold accounts of object stores start with these.
const ACCOUNTS: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];
/// Largest object that is read as one: manifests and index entries.
const MOST_BYTES: u64 = 64 << 20;
/// Size of all parts of a large object but the last; stores take at most 10,000 of them, and none below 5 MiB.
const PART: usize = 8 << 20;
/// Parts under way at once.
const PARTS_AT_ONCE: usize = 2;

/// Where an archive lies: an object store, and the prefix below which everything of it is.
#[derive(Debug, Clone)]
pub struct ArchivePlace {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// As a person named it, without secrets.
    shown: String,
    /// Where it is a folder of this machine.
    folder: Option<Folder>,
    /// What of its account nothing may show.
    secrets: Secrets,
}

/// A folder of this machine, and how open it is: an archive that is shared stays so, one that is not becomes no more open.
#[derive(Debug, Clone)]
struct Folder {
    root: PathBuf,
    mode: u32,
}

impl Folder {
    fn open(root: &FilePath) -> std::io::Result<Self> {
        Ok(Self { root: root.to_owned(), mode: std::fs::metadata(root)?.permissions().mode() & 0o777 })
    }

    /// Refuses names that lead out of the archive, or elsewhere than the store puts them: it takes `..` for a name like others.
    fn check(name: &str) -> std::io::Result<()> {
        match name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            true => Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is no name within the archive")),
            false => Ok(()),
        }
    }

    /// Makes the folders above an object; those that are there stay as they are. Nothing is made below a link, which comes back: it may
    /// have come with the archive, and lead to any folder of whoever pushes.
    fn make_way(&self, name: &str) -> std::io::Result<Option<PathBuf>> {
        Self::check(name)?;
        let mut folder = self.root.clone();
        for part in name.split('/').rev().skip(1).collect::<Vec<_>>().into_iter().rev() {
            folder.push(part);
            match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => std::fs::set_permissions(&folder, Permissions::from_mode(self.mode))?,
                Err(_) if folder.is_symlink() => return Ok(Some(folder)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn settle(&self, name: &str) -> std::io::Result<()> {
        Self::check(name)?;
        std::fs::set_permissions(self.root.join(name), Permissions::from_mode(self.mode & 0o666))
    }

    /// Goes through a folder and what links in it lead to, each folder once. The store's own walk ends at the first name or link that
    /// is of no use.
    fn look(&self, below: &str) -> std::io::Result<Found> {
        let (root, start) = match (self.root.canonicalize(), self.root.join(below).canonicalize()) {
            (Ok(root), Ok(start)) => (root, start),
            (Err(error), _) | (_, Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Found::default());
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        // links that lead back up would list everything again, or what is no archive at all
        let above = root.ancestors().chain(start.ancestors()).filter(|above| *above != start);
        let mut seen: BTreeSet<(u64, u64)> =
            above.filter_map(|above| std::fs::metadata(above).ok()).map(|meta| identity(&meta)).collect();
        let (mut found, mut folders) = (Found::default(), VecDeque::from([below.to_owned()]));
        while let Some(folder) = folders.pop_front() {
            let path = self.root.join(&folder);
            match std::fs::metadata(&path).and_then(|meta| Ok((meta, std::fs::read_dir(&path)?))) {
                Ok((meta, entries)) if seen.insert(identity(&meta)) => {
                    for entry in entries {
                        found.sort_in(&entry?, &folder, &mut folders);
                    }
                }
                Ok(_) => found.left_out.push((folder, "it leads to a folder that is listed elsewhere".to_owned())),
                // taken away meanwhile
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) if folder == below => return Err(error),
                Err(error) => found.left_out.push((folder, error.to_string())),
            }
        }
        found.names.sort_unstable();
        found.left_out.sort_unstable();
        Ok(found)
    }
}

/// What tells a folder from all others, under whatever name.
fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// What lies below a folder of an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The names of all objects, in order.
    pub names: Vec<String>,
    /// What can be no object, by its name, and why: it hides no other.
    pub left_out: Vec<(String, String)>,
}

impl Found {
    fn sort_in(&mut self, entry: &std::fs::DirEntry, folder: &str, folders: &mut VecDeque<String>) {
        let own = entry.file_name();
        let shown = own.to_string_lossy();
        let name = if folder.is_empty() { shown.to_string() } else { format!("{folder}/{shown}") };
        if own.to_str().is_none_or(|own| Path::parse(own).is_err()) {
            self.left_out.push((name, "no object of an archive has such a name".to_owned()));
            return;
        }
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        match std::fs::metadata(entry.path()) {
            // after all real folders: of two ways to one folder the straight one counts
            Ok(meta) if meta.is_dir() && is_link => folders.push_back(name),
            Ok(meta) if meta.is_dir() => folders.push_front(name),
            Ok(meta) if meta.is_file() && is_unfinished(&shown) => {}
            Ok(meta) if meta.is_file() => self.names.push(name),
            Ok(_) => self.left_out.push((name, "it is no file".to_owned())),
            // taken away meanwhile, or a link to nothing
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => self.left_out.push((name, error.to_string())),
        }
    }
}

/// Whether a file has the name of one that is being written: the store puts a number behind it.
fn is_unfinished(name: &str) -> bool {
    let number = name.split_once('#').map(|(_, number)| number).filter(|number| !number.is_empty());
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A large object that is being read.
pub struct Pieces {
    /// Size of the whole object.
    pub bytes: u64,
    /// The byte with which the first piece begins.
    pub from: u64,
    /// What tells the version of the object, where the store says it exactly.
    pub tag: Option<String>,
    stream: futures::stream::BoxStream<'static, object_store::Result<Bytes>>,
    secrets: Secrets,
}

impl Pieces {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// What the store meets.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ArchiveError> {
        self.stream.try_next().await.map_err(|error| self.secrets.told(&error))
    }
}

/// What became of a conditional put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is there now.
    Written,
    /// Something was there before, and was not replaced.
    Exists,
}

/// Words of the store's library for accounts of which a part is missing, and what to do.
const ACCOUNT_LACKS: [(&str, &str); 4] = [
    // what it says of a key that it cannot read may quote it
    (
        "Unable to decode service account",
        "GOOGLE_SERVICE_ACCOUNT_KEY, or the file that GOOGLE_SERVICE_ACCOUNT names, is no JSON of a service account",
    ),
    (
        "Account must be specified",
        "name its account with AZURE_STORAGE_ACCOUNT_NAME, and its key with AZURE_STORAGE_ACCOUNT_KEY",
    ),
    ("Missing SecretAccessKey", "AWS_ACCESS_KEY_ID is set alone: set AWS_SECRET_ACCESS_KEY too"),
    ("Missing AccessKeyId", "AWS_SECRET_ACCESS_KEY is set alone: set AWS_ACCESS_KEY_ID too"),
];

/// Why a store cannot be used at all.
fn unbuilt(error: &object_store::Error) -> String {
    let text = error.to_string();
    let lacking = ACCOUNT_LACKS.iter().find(|(theirs, _)| text.contains(theirs));
    lacking.map_or(text, |(_, ours)| (*ours).to_owned())
}

/// A store of some kind; options that it does not know are left out. `None` for kinds that keep nothing.
fn build(
    scheme: ObjectStoreScheme,
    url: &url::Url,
    options: Vec<(String, String)>,
) -> object_store::Result<Option<Arc<dyn ObjectStore>>> {
    // whoever waits is a person or a run's end; who pushes in the background comes again anyway
    let retry = RetryConfig { max_retries: 4, retry_timeout: Duration::from_secs(15), ..RetryConfig::default() };
    Ok(match scheme {
        ObjectStoreScheme::AmazonS3 => {
            let known = options.into_iter().filter_map(|(name, value)| Some((name.parse().ok()?, value)));
            let with =
                |builder: AmazonS3Builder, (key, value): (AmazonS3ConfigKey, String)| builder.with_config(key, value);
            let builder = known.fold(AmazonS3Builder::new().with_url(url.as_str()), with);
            Some(Arc::new(builder.with_retry(retry).build()?))
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            let known = options.into_iter().filter_map(|(name, value)| Some((name.parse().ok()?, value)));
            let with = |builder: GoogleCloudStorageBuilder, (key, value): (GoogleConfigKey, String)| {
                builder.with_config(key, value)
            };
            let builder = known.fold(GoogleCloudStorageBuilder::new().with_url(url.as_str()), with);
            Some(Arc::new(builder.with_retry(retry).build()?))
        }
        ObjectStoreScheme::MicrosoftAzure => {
            let known = options.into_iter().filter_map(|(name, value)| Some((name.parse().ok()?, value)));
            let with = |builder: MicrosoftAzureBuilder, (key, value): (AzureConfigKey, String)| {
                builder.with_config(key, value)
            };
            let builder = known.fold(MicrosoftAzureBuilder::new().with_url(url.as_str()), with);
            Some(Arc::new(builder.with_retry(retry).build()?))
        }
        _ => None,
    })
}

impl ArchivePlace {
    /// Opens an archive by URL or path; accounts come from the environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, …).
    ///
    /// # Errors
    /// [`ArchiveError::Url`] for what is none.
    pub fn open(url: &str, environment: impl Iterator<Item = (String, String)>) -> Result<Self, ArchiveError> {
        if let Some(folder) = Self::folder_of(url) {
            return Self::folder(folder);
        }
        let parsed =
            url::Url::parse(url).map_err(|e| ArchiveError::Url(format!("the archive's URL cannot be read: {e}")))?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(ArchiveError::Url(
                "keys do not belong into the URL of an archive: set them in the environment".to_owned(),
            ));
        }
        let shown = redact::url(url).into_owned();
        let (scheme, prefix) = ObjectStoreScheme::parse(&parsed)
            .map_err(|e| ArchiveError::Url(format!("{shown}: {}", redact::words(&e.to_string()))))?;
        let accounts = environment.filter(|(name, _)| ACCOUNTS.iter().any(|start| name.starts_with(start)));
        let mut options: Vec<(String, String)> =
            accounts.map(|(name, value)| (name.to_lowercase(), value)).filter(|(_, value)| !value.is_empty()).collect();
        // tests and services in one's own network have no certificates
        let plain =
            options.iter().any(|(name, value)| name.starts_with("aws_endpoint") && value.starts_with("http://"));
        if plain {
            options.push(("aws_allow_http".to_owned(), "true".to_owned()));
        }
        options.push(("aws_conditional_put".to_owned(), "etag".to_owned()));
        let secrets = Secrets::from_account(&options);
        let store = build(scheme, &parsed, options)
            .map_err(|e| ArchiveError::Url(format!("{shown}: {}", secrets.hidden(&unbuilt(&e)))))?
            .ok_or_else(|| ArchiveError::Url(format!("{shown} is of no known kind")))?;
        Ok(Self { store, prefix, shown, folder: None, secrets })
    }

    /// The local folder that a URL or path stands for; `None` for object stores.
    #[must_use]
    pub fn folder_of(url: &str) -> Option<&FilePath> {
        let folder = url.strip_prefix("file://").or_else(|| (!url.contains("://")).then_some(url));
        folder.map(FilePath::new)
    }

    /// A local folder; it is made when it is not there, for its owner alone. What is written into it is as open as the folder itself.
    ///
    /// # Errors
    /// [`ArchiveError::Url`] when it cannot be made.
    pub fn folder(folder: &FilePath) -> Result<Self, ArchiveError> {
        let shown = folder.display().to_string();
        let broken = |e: &dyn std::fmt::Display| ArchiveError::Url(format!("{shown}: {e}"));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| broken(&e))?;
        let modes = Folder::open(folder).map_err(|e| broken(&e))?;
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|e| broken(&e))?.with_fsync(true);
        let (prefix, secrets) = (Path::default(), Secrets::default());
        Ok(Self { store: Arc::new(store), prefix, shown, folder: Some(modes), secrets })
    }

    /// A place in any store, such as one in memory.
    #[must_use]
    pub fn in_store(store: Arc<dyn ObjectStore>, shown: &str) -> Self {
        Self { store, prefix: Path::default(), shown: shown.to_owned(), folder: None, secrets: Secrets::default() }
    }

    /// As a person named it, without secrets.
    #[must_use]
    pub fn describe(&self) -> &str {
        &self.shown
    }

    /// Makes the folders of an object, where they are folders.
    fn before(&self, name: &str) -> Result<(), ArchiveError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        match folder.make_way(name).map_err(|e| self.unwritable(name, &e))? {
            None => Ok(()),
            Some(link) => Err(ArchiveError::Link(format!(
                "{} is a link, which may have come with the archive, and nothing is archived through one: mount the disk that it leads to \
                 there (a bind mount), or make the archive on that disk",
                link.display()
            ))),
        }
    }

    /// Gives an object the mode that it is to have, where it is a file.
    fn after(&self, name: &str) -> Result<(), ArchiveError> {
        self.folder.as_ref().map_or(Ok(()), |folder| folder.settle(name)).map_err(|e| self.unwritable(name, &e))
    }

    fn unwritable(&self, name: &str, error: &std::io::Error) -> ArchiveError {
        ArchiveError::Store(format!("{}/{name} cannot be written: {error}", self.shown))
    }

    fn full(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// Writes an object unless one of this name is there.
    ///
    /// # Errors
    /// What the store meets.
    pub async fn create(&self, name: &str, bytes: Bytes) -> Result<Put, ArchiveError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        self.before(name)?;
        match self.store.put_opts(&self.full(name), PutPayload::from(bytes), options).await {
            Ok(_) => {
                self.after(name)?;
                Ok(Put::Written)
            }
            // two creators at once: S3 refuses one with either of these
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Ok(Put::Exists)
            }
            Err(error) => Err(self.secrets.told(&error)),
        }
    }

    /// Writes a file of any size, in parts, over whatever is there: only for names that say what they hold. It is there whole
    /// or not at all; of an upload that fails nothing stays behind that would cost room, unless the store is away for that too.
    ///
    /// # Errors
    /// What the store or the file meets.
    pub async fn upload(&self, name: &str, path: &FilePath) -> Result<(), ArchiveError> {
        let unreadable = |e: std::io::Error| ArchiveError::Store(format!("{} cannot be read: {e}", path.display()));
        let mut file = tokio::fs::File::open(path).await.map_err(unreadable)?;
        self.before(name)?;
        let told = |error: object_store::Error| self.secrets.told(&error);
        let mut upload = self.store.put_multipart(&self.full(name)).await.map_err(told)?;
        let sent: Result<(), ArchiveError> = async {
            let mut under_way = FuturesUnordered::new();
            loop {
                let mut part = Vec::with_capacity(PART);
                if (&mut file).take(PART as u64).read_to_end(&mut part).await.map_err(unreadable)? == 0 {
                    break;
                }
                if under_way.len() == PARTS_AT_ONCE {
                    under_way.try_next().await.map_err(told)?;
                }
                under_way.push(upload.put_part(part.into()));
            }
            while under_way.try_next().await.map_err(told)?.is_some() {}
            Ok(())
        }
        .await;
        let done = match sent {
            Ok(()) => upload.complete().await.map_err(told).and_then(|_| self.after(name)),
            Err(error) => Err(error),
        };
        if done.is_err() {
            // the first error says more than one of cleaning up
            let _ = upload.abort().await;
        }
        done
    }

    /// Hexadecimal sha256 of an object; `None` when there is none.
    ///
    /// # Errors
    /// What the store meets.
    pub async fn sha256(&self, name: &str) -> Result<Option<String>, ArchiveError> {
        let Some(mut pieces) = self.pieces(name).await? else { return Ok(None) };
        let mut hash = Sha256::new();
        while let Some(piece) = pieces.next().await? {
            hash.update(&piece);
        }
        Ok(Some(hex::encode(hash.finalize())))
    }

    /// Reads a small object; `None` when there is none.
    ///
    /// # Errors
    /// What the store meets.
    pub async fn read(&self, name: &str) -> Result<Option<Bytes>, ArchiveError> {
        match self.store.get(&self.full(name)).await {
            Ok(found) if found.meta.size > MOST_BYTES => {
                Err(ArchiveError::Damaged(format!("{name} has {} bytes, more than is ever written", found.meta.size)))
            }
            Ok(found) => found.bytes().await.map(Some).map_err(|error| self.secrets.told(&error)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.secrets.told(&error)),
        }
    }

    /// Reads a large object in pieces: its size, and a function that gives the next piece; `None` when there is none.
    ///
    /// # Errors
    /// What the store meets.
    pub async fn pieces(&self, name: &str) -> Result<Option<Pieces>, ArchiveError> {
        self.pieces_from(name, None).await
    }

    /// The same from a byte on, as long as the object is still the version of this tag; another version comes whole.
    ///
    /// # Errors
    /// What the store meets.
    pub async fn pieces_from(&self, name: &str, from: Option<(u64, &str)>) -> Result<Option<Pieces>, ArchiveError> {
        let name = self.full(name);
        let rest = match from {
            None => None,
            Some((at, tag)) => {
                let options = GetOptions {
                    range: Some(GetRange::Offset(at)),
                    if_match: Some(tag.to_owned()),
                    ..GetOptions::default()
                };
                // another version, or nothing is left of it: the whole says which
                self.store.get_opts(&name, options).await.ok()
            }
        };
        let found = match rest {
            Some(rest) => Ok(rest),
            None => self.store.get(&name).await,
        };
        match found {
            Ok(found) => Ok(Some(Pieces {
                bytes: found.meta.size,
                from: found.range.start,
                tag: found.meta.e_tag.clone().filter(|tag| !tag.starts_with("W/")),
                stream: found.into_stream(),
                secrets: self.secrets.clone(),
            })),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.secrets.told(&error)),
        }
    }

    /// Names of all objects below a folder, in order.
    ///
    /// # Errors
    /// What the store meets.
    pub async fn names(&self, folder: &str) -> Result<Vec<String>, ArchiveError> {
        Ok(self.look(folder).await?.names)
    }

    /// The same, with what lies there and is no object.
    ///
    /// # Errors
    /// What the store meets.
    pub async fn look(&self, folder: &str) -> Result<Found, ArchiveError> {
        if let Some(own) = self.folder.clone() {
            let unreadable = |error: &dyn std::fmt::Display| {
                ArchiveError::Store(format!("{}/{folder} cannot be read: {error}", self.shown))
            };
            let below = folder.to_owned();
            let looked = tokio::task::spawn_blocking(move || own.look(&below)).await;
            return looked.map_err(|e| unreadable(&e))?.map_err(|e| unreadable(&e));
        }
        let below = self.full(folder);
        let found: Vec<_> = match self.store.list(Some(&below)).try_collect().await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(self.secrets.told(&error)),
        };
        let own = self.prefix.as_ref();
        let mut names: Vec<String> = found
            .into_iter()
            .map(|meta: object_store::ObjectMeta| {
                let whole = meta.location.to_string();
                whole.strip_prefix(own).unwrap_or(&whole).trim_start_matches('/').to_owned()
            })
            .collect();
        names.sort_unstable();
        Ok(Found { names, left_out: Vec::new() })
    }
}
