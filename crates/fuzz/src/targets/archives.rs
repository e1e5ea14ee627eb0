//! Archives: index entry, manifest and packed file, with a zero byte between them; and the files that a run is rebuilt from.

use std::sync::{Arc, LazyLock};

use bench_report::archive::{
    ArchivePlace,
    fetch::{file, find, list, manifest},
    matrix,
};
use bytes::Bytes;
use object_store::memory::InMemory;
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime without threads"));

/// Most that a file may become here, whatever its manifest says.
const MOST: u64 = 1 << 20;

pub(super) fn archives(bytes: &[u8]) {
    let mut parts = bytes.split(|byte| *byte == 0);
    let [index, told, packed] = [(); 3].map(|()| parts.next().unwrap_or_default());
    RUNTIME.block_on(look(index, told, packed));
    for name in ["run.json", "banks.jsonl", "results.jsonl"] {
        let _ = bench_coord::heard::archived(name, index);
    }
}

async fn look(index: &[u8], told: &[u8], packed: &[u8]) {
    let place = ArchivePlace::in_store(Arc::new(InMemory::new()), "memory");
    let put = async |name: &str, bytes: &[u8]| {
        place.create(name, Bytes::copy_from_slice(bytes)).await.expect("memory holds it");
    };
    put("matrices/2026-01-01/x/results-matrix-2026-01-01.json", index).await;
    let (found, left_out) = matrix::find(&place, "x").await.expect("a document hides nothing");
    assert!(found.is_some() != (left_out.len() == 1), "it is read, or said to be left out");
    put("index/2026-01-01/x.json", index).await;
    let listed = list(&place).await.expect("one entry hides nothing");
    assert_eq!(listed.entries.len() + listed.left_out.len(), 1);
    let Ok((entry, _)) = find(&place, "latest").await else { return };
    let is_plain = |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    assert!(is_plain(&entry.run_id), "an id that is a path: {}", entry.run_id);
    assert!(entry.folder.starts_with("runs/") && entry.folder.split('/').all(is_plain), "{}", entry.folder);
    let _ = (entry.badge(), entry.object());
    put(&format!("{}/manifest.json", entry.folder), told).await;
    let Ok(manifest) = manifest(&place, &entry).await else { return };
    for of in &manifest.files {
        assert!(is_plain(&of.name) && is_plain(&of.object), "{} leads elsewhere", of.name);
        let name = format!("{}/{}", manifest.entry.folder, of.object);
        place.create(&name, Bytes::copy_from_slice(packed)).await.expect("memory holds it");
        let mut out = Vec::new();
        let unpacked = file(&place, &manifest, of, &mut out).await;
        assert!(out.len() as u64 <= of.plain_bytes.max(MOST), "more than was said");
        assert!(unpacked.is_err() || out.len() as u64 == of.plain_bytes);
    }
}
