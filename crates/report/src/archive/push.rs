//! Bringing a run into the archive.

use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::{
    ArchiveError,
    fetch::{IndexNames, entries_of, manifest},
    manifest::{FileEntry, IndexEntry, MANIFEST_VERSION, Manifest, parse, shown},
    pack::{Packed, pack},
    place::{ArchivePlace, Put},
};

/// Packed files up to this size are written in one request; larger ones in parts.
const WHOLE: u64 = 8 << 20;

/// A file of a run, unpacked, somewhere on this machine.
#[derive(Debug, Clone)]
pub struct PlainFile {
    /// Its name in the archive.
    pub name: String,
    /// Where it is. Its packed form is written beside it, and taken away again.
    pub path: PathBuf,
}

/// What a push did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The run is in the archive now.
    Archived,
    /// It was before, with the same result.
    WasThere,
    /// It was before, with the same result, and its texts are there although they were not to be, or the other way round.
    WasThereOtherwise {
        /// Whether its texts are there.
        with_texts: bool,
    },
}

/// Brings a run into the archive; may be repeated at any point. Of large files only pieces are in memory.
///
/// # Errors
/// As [`there`]; what the store meets.
pub async fn push(place: &ArchivePlace, entry: &IndexEntry, files: &[PlainFile]) -> Result<Pushed, ArchiveError> {
    match there(place, entry, &mut IndexNames::default()).await? {
        Some((_, pushed)) => Ok(pushed),
        None => bring(place, entry, files).await,
    }
}

/// Looks whether a run can be brought, before anything is made of it: what the archive says of it when it is there with the same
/// result, whatever the day of that, and nothing when it is to be brought. Of `names` that are listed already no list is made.
///
/// # Errors
/// [`ArchiveError::Conflict`] when another result is archived under this id, on whatever day; [`ArchiveError::Damaged`] when id or
/// dataset of the run name no folder, as whoever writes the store may have them, or the archive's own word of it cannot be used; what
/// the store meets otherwise.
pub async fn there(
    place: &ArchivePlace,
    entry: &IndexEntry,
    names: &mut IndexNames,
) -> Result<Option<(IndexEntry, Pushed)>, ArchiveError> {
    entry
        .check()
        .map_err(|why| ArchiveError::Damaged(format!("{} cannot be archived: {why}", shown(&entry.run_id))))?;
    let manifest_name = format!("{}/manifest.json", entry.folder);
    if let Some(there) = place.read(&manifest_name).await? {
        return finish_other(place, entry, parse(&manifest_name, &there)?).await.map(Some);
    }
    // a result that was changed after it was archived has finished on another day, and so has another folder
    let is_other = |other: &IndexEntry| (other.object(), &other.folder) != (entry.object(), &entry.folder);
    let entries = entries_of(place, &entry.run_id, names).await?;
    let Some(other) = entries.into_iter().find(is_other) else { return Ok(None) };
    let there = manifest(place, &other).await?;
    as_archived(entry, there.entry).map(Some)
}

/// Brings a run that is [not there](there).
///
/// # Errors
/// As [`push`].
pub async fn bring(place: &ArchivePlace, entry: &IndexEntry, files: &[PlainFile]) -> Result<Pushed, ArchiveError> {
    let manifest_name = format!("{}/manifest.json", entry.folder);
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
            finish_other(place, entry, parse(&manifest_name, &there)?).await.map(|(_, pushed)| pushed)
        }
    }
}

/// Somebody has written the manifest: the same result is a success, whose index entry may still be missing.
async fn finish_other(
    place: &ArchivePlace,
    entry: &IndexEntry,
    there: Manifest,
) -> Result<(IndexEntry, Pushed), ArchiveError> {
    let (there, pushed) = as_archived(entry, there.entry)?;
    // whoever can write to the archive wrote it, and an object of the index is named by it
    let damaged = |why: String| ArchiveError::Damaged(format!("{}/manifest.json cannot be used: {why}", entry.folder));
    if (&there.run_id, &there.folder) != (&entry.run_id, &entry.folder) {
        return Err(damaged(format!("it is of run {} in {}", shown(&there.run_id), shown(&there.folder))));
    }
    there.check().map_err(damaged)?;
    index(place, &there).await?;
    Ok((there, pushed))
}

/// What is archived of a run with what that means for whoever would bring it.
///
/// # Errors
/// [`ArchiveError::Conflict`] for another result.
fn as_archived(entry: &IndexEntry, there: IndexEntry) -> Result<(IndexEntry, Pushed), ArchiveError> {
    if (&there.fingerprint, &there.result_digest) != (&entry.fingerprint, &entry.result_digest) {
        return Err(ArchiveError::Conflict(format!(
            "another result of this id is archived as {} and stays (digest {}, here {}): push this one to another archive, with --archive",
            shown(&there.folder),
            shown(&there.result_digest),
            entry.result_digest
        )));
    }
    let with_texts = there.without_texts.is_none();
    let pushed = match with_texts == entry.without_texts.is_none() {
        true => Pushed::WasThere,
        false => Pushed::WasThereOtherwise { with_texts },
    };
    Ok((there, pushed))
}

async fn index(place: &ArchivePlace, entry: &IndexEntry) -> Result<(), ArchiveError> {
    place.create(&entry.object(), json(entry)?).await.map(drop)
}

/// A document of the archive.
pub(super) fn json(value: &impl serde::Serialize) -> Result<Bytes, ArchiveError> {
    serde_json::to_vec_pretty(value)
        .map(Bytes::from)
        .map_err(|e| ArchiveError::Store(format!("a document cannot be written: {e}")))
}

/// Packs and writes a file.
async fn put_file(place: &ArchivePlace, folder: &str, file: &PlainFile) -> Result<FileEntry, ArchiveError> {
    let broken = |e: &dyn std::fmt::Display| ArchiveError::Store(format!("{} cannot be packed: {e}", file.name));
    let packed_path = file.path.with_added_extension("packed");
    let (from, to) = (file.path.clone(), packed_path.clone());
    let packed = tokio::task::spawn_blocking(move || pack(&from, &to)).await;
    let packed = packed.map_err(|e| broken(&e))?.map_err(|e| broken(&e))?;
    let by_hash = format!("{}.{}.zst", file.name, &packed.sha256[..16]);
    let object = if packed.bytes > WHOLE {
        // parts cannot be put on condition; under a name of its own hash nobody writes anything else
        let name = format!("{folder}/{by_hash}");
        if place.sha256(&name).await?.as_ref() != Some(&packed.sha256) {
            place.upload(&name, &packed_path).await?;
        }
        by_hash
    } else {
        put_whole(place, folder, file, &packed, &packed_path, by_hash).await?
    };
    tokio::fs::remove_file(&packed_path).await.map_err(|e| broken(&e))?;
    let Packed { plain_sha256, plain_bytes, sha256, bytes } = packed;
    Ok(FileEntry { name: file.name.clone(), object, sha256, bytes, plain_sha256, plain_bytes })
}

/// Writes a small packed file and returns its object. What an interrupted push of another build left under its name stays, and
/// this one gets a name of its own.
async fn put_whole(
    place: &ArchivePlace,
    folder: &str,
    file: &PlainFile,
    packed: &Packed,
    path: &Path,
    by_hash: String,
) -> Result<String, ArchiveError> {
    let unreadable = |e: std::io::Error| ArchiveError::Store(format!("{} cannot be read: {e}", file.name));
    let bytes = tokio::fs::read(path).await.map(Bytes::from).map_err(unreadable)?;
    for object in [format!("{}.zst", file.name), by_hash] {
        let name = format!("{folder}/{object}");
        let same = match place.create(&name, bytes.clone()).await? {
            Put::Written => true,
            Put::Exists => place.sha256(&name).await?.as_ref() == Some(&packed.sha256),
        };
        if same {
            return Ok(object);
        }
    }
    Err(ArchiveError::Damaged(format!("{folder}: {} does not hold what its name says", file.name)))
}
