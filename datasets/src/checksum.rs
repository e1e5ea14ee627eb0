//! sha256 of files and bytes, as 64 lower-case hexadecimal characters.

use std::{fs::File, io::Read, path::Path};

use sha2::{Digest, Sha256};

use crate::DatasetError;

/// Of bytes in memory.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Of a file, read in blocks: (bytes, sha256).
pub(crate) fn of_file(path: &Path) -> Result<(u64, String), DatasetError> {
    let io = |source| DatasetError::io(path, source);
    let mut file = File::open(path).map_err(io)?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 64 * 1024];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut block).map_err(io)?;
        if read == 0 {
            return Ok((bytes, hex::encode(hash.finalize())));
        }
        hash.update(&block[..read]);
        bytes += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_and_bytes_agree() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("f");
        let content = vec![7_u8; 200_000];
        std::fs::write(&path, &content).expect("write");
        assert_eq!(of_file(&path).expect("hash"), (200_000, of_bytes(&content)));
        // published test vector of SHA-256
        assert_eq!(of_bytes(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
