//! Getting runs out of the archive, with every byte checked.

use std::io::Read as _;

use super::{
    ArchiveError,
    manifest::{FileEntry, IndexEntry, MANIFEST_VERSION, Manifest, parse, sha256},
    place::Place,
    push::PlainFile,
};

/// All archived runs, oldest first.
///
/// # Errors
/// What the store meets; an entry that cannot be read is an error that names it.
pub async fn list(place: &Place) -> Result<Vec<IndexEntry>, ArchiveError> {
    let mut entries: Vec<IndexEntry> = Vec::new();
    for name in place.names("index").await? {
        if let Some(bytes) = place.read(&name).await? {
            entries.push(parse(&name, &bytes)?);
        }
    }
    entries.sort_by(|a, b| (&a.finished_at, &a.run_id).cmp(&(&b.finished_at, &b.run_id)));
    Ok(entries)
}

/// The archived run with this id or unique start of one; `latest` is the one that finished last.
///
/// # Errors
/// [`ArchiveError::Missing`] when none or several fit.
pub async fn find(place: &Place, selector: &str) -> Result<IndexEntry, ArchiveError> {
    let mut entries = list(place).await?;
    if selector == "latest" {
        return entries.pop().ok_or_else(|| ArchiveError::Missing(format!("{} holds no run", place.describe())));
    }
    if let Some(exact) = entries.iter().find(|entry| entry.run_id == selector) {
        return Ok(exact.clone());
    }
    let mut found: Vec<IndexEntry> = entries.into_iter().filter(|entry| entry.run_id.starts_with(selector)).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(ArchiveError::Missing(format!(
            "{} holds no run '{selector}'; `bench-coord archive list` shows all",
            place.describe()
        ))),
        n => Err(ArchiveError::Missing(format!("'{selector}' is the start of {n} archived runs; type more of it"))),
    }
}

/// The manifest of a run.
///
/// # Errors
/// [`ArchiveError::Damaged`] when it is missing, unreadable, or of a newer build.
pub async fn manifest(place: &Place, entry: &IndexEntry) -> Result<Manifest, ArchiveError> {
    let name = format!("{}/manifest.json", entry.folder);
    let bytes = place.read(&name).await?.ok_or_else(|| ArchiveError::Damaged(format!("{name} is missing")))?;
    let manifest: Manifest = parse(&name, &bytes)?;
    if manifest.manifest_version > MANIFEST_VERSION {
        return Err(ArchiveError::Damaged(format!(
            "{name} has version {}, this build reads {MANIFEST_VERSION}: use a newer one",
            manifest.manifest_version
        )));
    }
    if manifest.entry.result_digest != entry.result_digest {
        return Err(ArchiveError::Damaged(format!("{name} and the index tell different digests")));
    }
    Ok(manifest)
}

/// One file, checked and unpacked.
///
/// # Errors
/// [`ArchiveError::Damaged`] with the file's name when a byte is not as it was written.
pub async fn file(place: &Place, manifest: &Manifest, entry: &FileEntry) -> Result<PlainFile, ArchiveError> {
    let name = format!("{}/{}", manifest.entry.folder, entry.object);
    let packed = place.read(&name).await?.ok_or_else(|| ArchiveError::Damaged(format!("{name} is missing")))?;
    if sha256(&packed) != entry.sha256 {
        return Err(ArchiveError::Damaged(format!("{name} is not what was written: its sha256 differs")));
    }
    // never more than the manifest says: a small object may unpack to anything
    let mut bytes = Vec::new();
    zstd::Decoder::new(packed.as_ref())
        .and_then(|unpacked| unpacked.take(entry.plain_bytes + 1).read_to_end(&mut bytes))
        .map_err(|e| ArchiveError::Damaged(format!("{name} cannot be unpacked: {e}")))?;
    if bytes.len() as u64 != entry.plain_bytes || sha256(&bytes) != entry.plain_sha256 {
        return Err(ArchiveError::Damaged(format!("{name} does not unpack to what was packed")));
    }
    Ok(PlainFile { name: entry.name.clone(), bytes })
}

/// Checks every file of a run; returns what is wrong, one line each.
///
/// # Errors
/// What the store meets; damage is no error here.
pub async fn verify(place: &Place, entry: &IndexEntry) -> Result<Vec<String>, ArchiveError> {
    let manifest = match manifest(place, entry).await {
        Ok(manifest) => manifest,
        Err(ArchiveError::Damaged(what)) => return Ok(vec![what]),
        Err(error) => return Err(error),
    };
    let mut wrong = Vec::new();
    for entry in &manifest.files {
        match file(place, &manifest, entry).await {
            Ok(_) => {}
            Err(ArchiveError::Damaged(what)) => wrong.push(what),
            Err(error) => return Err(error),
        }
    }
    Ok(wrong)
}
