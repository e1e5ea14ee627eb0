//! Reads tar archives as they come out of a stream: plain files and folders, in the forms of POSIX (ustar, pax) and GNU. What
//! could reach outside of its folder, or is no plain file, is refused; nothing of an archive's size is kept in memory.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use super::{Refused, write};

/// Size of a block: headers are one, contents are filled up to whole ones.
const BLOCK: usize = 512;
/// Most files and folders: a hundred times what a dataset has. Each costs a file of the disk, however little it holds.
pub(super) const MOST_ENTRIES: usize = 20_000;
/// Most folders inside each other.
const DEEPEST: usize = 16;
/// Most bytes of a long name, or of a pax header.
const MOST_NAME: u64 = 16 << 10;

/// What an entry is, by its letter.
enum Kind {
    File,
    Folder,
    /// A GNU header whose content is the next entry's name.
    LongName,
    /// A pax header for the next entry.
    Pax,
    /// A pax header for all that follow: it names no file.
    PaxGlobal,
}

struct Header {
    name: String,
    size: u64,
    kind: Kind,
}

/// A file or a folder of an archive.
struct Entry<'a> {
    name: &'a str,
    /// The last part of its name, and those above it, each of them a plain one.
    last: &'a str,
    above: &'a [&'a str],
    is_folder: bool,
}

/// Unpacks an archive below a new folder. It is gone through once before, so that nothing is written of one that is refused:
/// thousands of files cost minutes of a disk.
pub(super) fn unpack<R: Read>(open: impl Fn() -> Result<R, Refused>, folder: &Path) -> Result<(), Refused> {
    each_entry(&mut open()?, |_, content| io::copy(content, &mut io::sink()).map(drop).map_err(Refused::from))?;
    fs::create_dir(folder)?;
    each_entry(&mut open()?, |entry, content| {
        let path = entry.above.iter().fold(folder.to_owned(), |path, part| path.join(part));
        fs::create_dir_all(&path)?;
        let path = path.join(entry.last);
        if entry.is_folder {
            return Ok(fs::create_dir_all(&path)?);
        }
        write(content, &path).map_err(|problem| match problem {
            Refused::Disk(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Refused::content(entry.name, "is there twice")
            }
            other => other,
        })
    })
}

/// Shows the files and folders of an archive in their order, each with its content, which is read whole.
fn each_entry<R: Read>(
    archive: &mut R,
    mut show: impl FnMut(&Entry<'_>, &mut io::Take<&mut R>) -> Result<(), Refused>,
) -> Result<(), Refused> {
    let mut entries = 0_usize;
    // what a header said of the entry behind it
    let (mut long_name, mut long_size) = (None, None);
    while let Some(Header { name, size, kind }) = header(archive)? {
        entries += 1;
        if entries > MOST_ENTRIES {
            return Err(Refused::content(
                &name,
                &format!("is one entry more than {MOST_ENTRIES}, the most there may be"),
            ));
        }
        match kind {
            Kind::LongName => {
                let text = small(archive, size, &name)?;
                long_name = Some(text.trim_end_matches('\0').to_owned());
                continue;
            }
            Kind::Pax => {
                let text = small(archive, size, &name)?;
                for (key, value) in pax(&text) {
                    match key {
                        "path" => long_name = Some(value.to_owned()),
                        "size" => long_size = value.parse().ok(),
                        _ => {}
                    }
                }
                continue;
            }
            Kind::PaxGlobal => {
                small(archive, size, &name)?;
                continue;
            }
            Kind::File | Kind::Folder => {}
        }
        let is_folder = matches!(kind, Kind::Folder);
        let name = long_name.take().unwrap_or(name);
        // a folder has no content whatever is said of it
        let size = long_size.take().unwrap_or(size) * u64::from(!is_folder);
        let parts = parts(&name)?;
        let Some((last, above)) = parts.split_last() else { continue };
        let mut content = archive.by_ref().take(size);
        show(&Entry { name: &name, last, above, is_folder }, &mut content)?;
        if content.limit() > 0 {
            return Err(Refused::content(&name, "is cut off"));
        }
        skip_filling(archive, size)?;
    }
    Ok(())
}

/// The parts of a name, each of them a plain one.
pub(super) fn parts(name: &str) -> Result<Vec<&str>, Refused> {
    let refused = |why: &str| Err(Refused::content(name, why));
    if name.starts_with('/') {
        return refused("is an absolute name; archives are unpacked only into their own folder");
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return refused("has '..' in its name; archives are unpacked only into their own folder");
    }
    if parts.iter().any(|part| part.contains(|c: char| matches!(c, '\\' | ':') || c.is_control()) || part.len() > 255) {
        return refused("has a name that is none on every machine");
    }
    if parts.len() > DEEPEST {
        return refused("is too many folders deep");
    }
    Ok(parts)
}

/// The next entry; none at the end.
fn header(archive: &mut impl Read) -> Result<Option<Header>, Refused> {
    let mut block = [0_u8; BLOCK];
    let mut filled = 0;
    while filled < BLOCK {
        match archive.read(&mut block[filled..])? {
            0 if filled == 0 => return Ok(None),
            0 => return Err(Refused::content("archive", "is cut off")),
            read => filled += read,
        }
    }
    if block.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let name = name(&block);
    let noted = number(&block[148..156]);
    // the sum counts its own place as spaces
    let sum =
        block.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) }).sum();
    if noted != Some(sum) {
        return Err(Refused::content(&name, "has a damaged header, or this is no tar archive"));
    }
    let kind = match block[156] {
        b'0' | 0 | b'7' => Kind::File,
        b'5' => Kind::Folder,
        b'L' => Kind::LongName,
        b'x' => Kind::Pax,
        b'g' => Kind::PaxGlobal,
        b'1' | b'2' => return Err(Refused::content(&name, "is a link; only plain files are unpacked")),
        _ => return Err(Refused::content(&name, "is no plain file")),
    };
    let size = number(&block[124..136]).ok_or_else(|| Refused::content(&name, "has a size that is no number"))?;
    // a folder has no content whatever it says
    let size = if matches!(kind, Kind::Folder) { 0 } else { size };
    Ok(Some(Header { name, size, kind }))
}

/// The name of a header: with the prefix that POSIX puts before long ones.
fn name(block: &[u8; BLOCK]) -> String {
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    let (own, prefix) = (text(&block[..100]), text(&block[345..500]));
    // GNU has other things where POSIX has the prefix
    if &block[257..263] == b"ustar\0" && !prefix.is_empty() { format!("{prefix}/{own}") } else { own }
}

/// An octal number with spaces or zero bytes around it, or a binary one as GNU writes large ones.
fn number(field: &[u8]) -> Option<u64> {
    if field.first()? & 0x80 != 0 {
        let bytes = field.last_chunk::<8>()?;
        // a field of eight bytes has no room for one: no number, and no panic
        let above = field.get(1..field.len() - 8)?;
        return (field[0] == 0x80 && above.iter().all(|byte| *byte == 0)).then(|| u64::from_be_bytes(*bytes));
    }
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

/// The content of a header's header, bounded.
fn small(archive: &mut impl Read, size: u64, name: &str) -> Result<String, Refused> {
    if size > MOST_NAME {
        return Err(Refused::content(name, "has a name or header of more than 16 KiB"));
    }
    let mut content = Vec::new();
    archive.by_ref().take(size).read_to_end(&mut content)?;
    if (content.len() as u64) < size {
        return Err(Refused::content(name, "is cut off"));
    }
    skip_filling(archive, size)?;
    String::from_utf8(content).map_err(|_| Refused::content(name, "has a name that is not UTF-8"))
}

/// The records of a pax header, each `<length> <key>=<value>\n`.
fn pax(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (length, _) = rest.split_once(' ')?;
        let record = rest.get(..length.parse().ok()?)?;
        rest = &rest[record.len()..];
        record.get(length.len() + 1..)?.strip_suffix('\n')?.split_once('=')
    })
}

/// Skips what fills a content up to whole blocks.
fn skip_filling(archive: &mut impl Read, size: u64) -> Result<(), Refused> {
    let filling = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    io::copy(&mut archive.by_ref().take(filling), &mut io::sink())?;
    Ok(())
}
