//! Files that people name, or that lie in a folder, are read up to a size: one that does not end, or that somebody has made to fill a
//! memory, is refused instead.

use std::{
    fs::File,
    io::{self, BufRead, Read as _},
    path::Path,
};

/// Most bytes of a file that a person writes by hand: settings, adapters, policies, matrices, price lists.
pub const BY_HAND: u64 = 4 << 20;
/// Most bytes of a file of results that is read as a whole.
pub const RESULTS: u64 = 256 << 20;

/// The bytes of a file of at most so many.
///
/// # Errors
/// What the disk says, and a file that is longer.
pub fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long(most)) } else { Ok(bytes) }
}

/// The text of a file of at most so many bytes.
///
/// # Errors
/// As [`bytes`], and a file that is no text.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(bytes(path, most)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// Adds the next line of at most so many bytes, with its end; 0 where there is none.
///
/// # Errors
/// What the disk says, and a line that is longer or no text.
pub fn line(file: &mut impl BufRead, most: u64, into: &mut String) -> io::Result<usize> {
    let read = file.take(most + 1).read_line(into)?;
    if read as u64 > most { Err(too_long(most)) } else { Ok(read) }
}

fn too_long(most: u64) -> io::Error {
    let shown = match most {
        0..0x400 => format!("{most} bytes"),
        0x400..0x10_0000 => format!("{} KiB", most >> 10),
        _ => format!("{} MiB", most >> 20),
    };
    io::Error::new(io::ErrorKind::InvalidData, format!("it has more than {shown}, and is not read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_or_does_not_end_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        std::fs::write(&path, "äbcd").expect("is written");
        assert_eq!(text(&path, 5).expect("is read"), "äbcd");
        for most in [1, 4] {
            assert_eq!(text(&path, most).expect_err("is longer").kind(), io::ErrorKind::InvalidData, "{most}");
        }
        for (most, shown) in [(64, "64 bytes"), (64 << 10, "64 KiB"), (2 << 20, "2 MiB")] {
            assert!(text(Path::new("/dev/zero"), most).expect_err("has no end").to_string().contains(shown));
        }
        std::fs::write(&path, [0xff]).expect("is written");
        assert_eq!(text(&path, 5).expect_err("is no text").kind(), io::ErrorKind::InvalidData);
        assert_eq!(bytes(&path, 5).expect("is read"), [0xff]);
        assert_eq!(text(&folder.path().join("b"), 5).expect_err("is not there").kind(), io::ErrorKind::NotFound);
        let mut lines = io::Cursor::new("ab\ncdefg\n");
        let mut read = String::new();
        assert_eq!(line(&mut lines, 3, &mut read).expect("is read"), 3);
        assert!(line(&mut lines, 3, &mut read).is_err());
    }
}
