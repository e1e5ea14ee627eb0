//! Files for tests. Published ones, which may not be in the repository, are read from `$BENCH_REFERENCE_DIR`, else from the folder
//! `shared` beside the repository.

use std::{collections::BTreeMap, fs, io::Read, path::PathBuf};

use flate2::read::GzDecoder;

/// Where a file below `data` lies; `None`, loudly, on machines without the folder.
pub(crate) fn path(path: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    let folder = std::env::var_os("BENCH_REFERENCE_DIR").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if !folder.is_dir() {
        eprintln!("NOT TESTED: no reference data at {} (set BENCH_REFERENCE_DIR)", folder.display());
        return None;
    }
    Some(folder.join("data").join(path))
}

/// The content of a file below `data`, unpacked when its name ends in `.gz`.
pub(crate) fn data(name: &str) -> Option<Vec<u8>> {
    let packed = fs::read(path(name)?).unwrap_or_else(|error| panic!("{name}: {error}"));
    if !name.ends_with(".gz") {
        return Some(packed);
    }
    let mut content = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut content).unwrap_or_else(|error| panic!("{name}: {error}"));
    Some(content)
}

/// The files of a packed archive below `data`, by their paths in it.
pub(crate) fn archive(path: &str) -> Option<BTreeMap<String, Vec<u8>>> {
    let content = data(path)?;
    let (mut files, mut at) = (BTreeMap::new(), 0);
    // blocks of 512 bytes: a head with name and size (octal digits), then the content; an empty head ends the archive
    while let Some(head) = content.get(at..at + 512).filter(|head| head[0] != 0) {
        let text = |from: usize, to: usize| {
            let field = head[from..to].split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(field).trim().to_owned()
        };
        let size = usize::from_str_radix(&text(124, 136), 8).unwrap_or_else(|error| panic!("{path}: {error}"));
        if matches!(head[156], 0 | b'0') {
            files.insert(text(0, 100), content[at + 512..at + 512 + size].to_vec());
        }
        at += 512 + size.div_ceil(512) * 512;
    }
    Some(files)
}

/// A file that came to harm: some of its bytes are others.
pub(crate) fn spoiled(content: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut content = content.to_vec();
    let at = at % (content.len() + 1);
    let end = content.len().min(at + bytes.len());
    content.splice(at..end, bytes.iter().copied());
    content
}
