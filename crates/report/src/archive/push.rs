//! Bringing a run into the archive.

use bytes::Bytes;

use super::{
    ArchiveError,
    manifest::{FileEntry, IndexEntry, MANIFEST_VERSION, Manifest, parse, sha256},
    place::{Place, Put},
};

/// Level of compression: packed once, fetched rarely.
const LEVEL: i32 = 9;

/// A file of a run, unpacked.
#[derive(Debug, Clone)]
pub struct PlainFile {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// What a push did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The run is in the archive now.
    Archived,
    /// It was before, with the same result.
    WasThere,
}

/// Brings a run into the archive; may be repeated at any point.
///
/// # Errors
/// [`ArchiveError::Conflict`] when another result is archived under this id; what the store meets otherwise.
pub async fn push(place: &Place, entry: &IndexEntry, files: Vec<PlainFile>) -> Result<Pushed, ArchiveError> {
    let manifest_name = format!("{}/manifest.json", entry.folder);
    if let Some(there) = place.read(&manifest_name).await? {
        return finish_other(place, entry, parse(&manifest_name, &there)?).await;
    }
    let mut entries = Vec::with_capacity(files.len());
    for file in files {
        entries.push(put_file(place, &entry.folder, file).await?);
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let manifest = Manifest { manifest_version: MANIFEST_VERSION, entry: entry.clone(), files: entries };
    match place.create(&manifest_name, json(&manifest)?).await? {
        Put::Written => {
            index(place, entry).await?;
            Ok(Pushed::Archived)
        }
        Put::Exists => {
            let there = place.read(&manifest_name).await?;
            let there = there.ok_or_else(|| ArchiveError::Store(format!("{manifest_name} came and went")))?;
            finish_other(place, entry, parse(&manifest_name, &there)?).await
        }
    }
}

/// Somebody has written the manifest: the same result is a success, whose index entry may still be missing.
async fn finish_other(place: &Place, entry: &IndexEntry, there: Manifest) -> Result<Pushed, ArchiveError> {
    if (&there.entry.fingerprint, &there.entry.result_digest) != (&entry.fingerprint, &entry.result_digest) {
        return Err(ArchiveError::Conflict(format!(
            "another result is archived as {} (digest {}, here {}): give the run another id",
            entry.folder, there.entry.result_digest, entry.result_digest
        )));
    }
    index(place, &there.entry).await?;
    Ok(Pushed::WasThere)
}

async fn index(place: &Place, entry: &IndexEntry) -> Result<(), ArchiveError> {
    place.create(&entry.object(), json(entry)?).await.map(drop)
}

fn json(value: &impl serde::Serialize) -> Result<Bytes, ArchiveError> {
    serde_json::to_vec_pretty(value)
        .map(Bytes::from)
        .map_err(|e| ArchiveError::Store(format!("a document cannot be written: {e}")))
}

/// Writes a packed file. What an interrupted push of another build left under its name stays, and this one gets a name of its
/// own.
async fn put_file(place: &Place, folder: &str, file: PlainFile) -> Result<FileEntry, ArchiveError> {
    let (plain_sha256, plain_bytes) = (sha256(&file.bytes), file.bytes.len() as u64);
    let packed = zstd::encode_all(file.bytes.as_slice(), LEVEL)
        .map(Bytes::from)
        .map_err(|e| ArchiveError::Store(format!("{} cannot be packed: {e}", file.name)))?;
    let hash = sha256(&packed);
    let mut object = format!("{}.zst", file.name);
    for further in [Some(format!("{}.{}.zst", file.name, &hash[..16])), None] {
        let name = format!("{folder}/{object}");
        let same = match place.create(&name, packed.clone()).await? {
            Put::Written => true,
            Put::Exists => place.read(&name).await?.is_some_and(|there| sha256(&there) == hash),
        };
        match (same, further) {
            (true, _) => break,
            (false, Some(further)) => object = further,
            (false, None) => return Err(ArchiveError::Damaged(format!("{name} does not hold what its name says"))),
        }
    }
    Ok(FileEntry { name: file.name, object, sha256: hash, bytes: packed.len() as u64, plain_sha256, plain_bytes })
}
