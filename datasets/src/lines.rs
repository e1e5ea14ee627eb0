//! The lines of a file, one in memory at a time.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read as _, Seek, SeekFrom},
    path::Path,
};

use serde::de::DeserializeOwned;

use crate::{
    DatasetError,
    broken::{broken, is_list, json, json_from_line},
    checksum,
};

/// The longest line that is read: a bank of the largest dataset has 45 MB.
const LONGEST: u64 = 256 << 20;

/// A line that says something.
pub(crate) struct Line {
    /// From 1.
    pub(crate) number: usize,
    /// Where it begins, in bytes.
    pub(crate) offset: u64,
    pub(crate) text: String,
}

impl Line {
    /// What it says in JSON; `path` names the file in errors.
    ///
    /// # Errors
    /// Line, column and field.
    pub(crate) fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, DatasetError> {
        json_from_line(path, self.text.as_bytes(), self.number)
    }

    /// Where it stands, to be read again when it is wanted.
    pub(crate) fn place(&self) -> LinePlace {
        let (number, offset, bytes) = (self.number, self.offset, self.text.len());
        LinePlace { number, offset, bytes, sha256: checksum::of_bytes(self.text.as_bytes()) }
    }
}

/// Where a line stands in its file, and by what a change of it is noticed.
#[derive(Debug)]
pub(crate) struct LinePlace {
    /// From 1.
    number: usize,
    /// Where it begins, in bytes.
    offset: u64,
    bytes: usize,
    sha256: String,
}

impl LinePlace {
    /// Reads the line from its file at `path`, which errors call `shown`.
    ///
    /// # Errors
    /// When the file cannot be read, or the line is another one by now.
    pub(crate) fn read(&self, path: &Path, shown: &Path) -> Result<Line, DatasetError> {
        let io = |source| DatasetError::io(shown, source);
        let mut file = File::open(path).map_err(io)?;
        file.seek(SeekFrom::Start(self.offset)).map_err(io)?;
        let mut bytes = Vec::with_capacity(self.bytes);
        file.take(self.bytes as u64).read_to_end(&mut bytes).map_err(io)?;
        let text = String::from_utf8(bytes).ok().filter(|text| checksum::of_bytes(text.as_bytes()) == self.sha256);
        let changed = || {
            let problem = "changed since the dataset was opened; start again";
            broken(&shown.display().to_string(), format!("line {}", self.number), problem)
        };
        Ok(Line { number: self.number, offset: self.offset, text: text.ok_or_else(changed)? })
    }
}

/// Everything that a file says in JSON, in its lines or as one list; `path` names the file in errors.
///
/// # Errors
/// What is no JSON of this kind, with its line and the field; a table in the form in which many datasets are published.
pub(crate) fn objects<T: DeserializeOwned>(path: &str, content: &[u8]) -> Result<Vec<T>, DatasetError> {
    if content.starts_with(b"PAR1") {
        let problem = "is a parquet table, and rows of JSON are read; docs/datasets/memoryagentbench.md has the command that \
                       writes them";
        return Err(broken(path, "file", problem));
    }
    if is_list(content) {
        return json(path, content);
    }
    Lines::new(path, content).map(|line| line?.json(path)).collect()
}

/// The lines of a file that are not blank.
pub(crate) struct Lines<R> {
    /// As errors name it.
    path: String,
    reader: R,
    number: usize,
    offset: u64,
    has_remarks: bool,
}

impl Lines<BufReader<File>> {
    /// Of the file at a path, which errors call by the name `shown`.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn open(path: &Path, shown: &Path) -> Result<Self, DatasetError> {
        let file = File::open(path).map_err(|source| DatasetError::io(shown, source))?;
        Ok(Self::new(shown.display().to_string(), BufReader::with_capacity(1 << 17, file)))
    }
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(path: impl Into<String>, reader: R) -> Self {
        Self { path: path.into(), reader, number: 0, offset: 0, has_remarks: false }
    }

    /// Lines that begin with `#` are remarks, and passed over too.
    pub(crate) fn with_remarks(self) -> Self {
        Self { has_remarks: true, ..self }
    }

    /// An error about the line that was read last.
    pub(crate) fn broken(&self, problem: impl Into<String>) -> DatasetError {
        broken(&self.path, format!("line {}", self.number), problem)
    }

    fn next_line(&mut self) -> Result<Option<Line>, DatasetError> {
        loop {
            let mut bytes = Vec::new();
            let read = self.reader.by_ref().take(LONGEST + 1).read_until(b'\n', &mut bytes);
            let offset = self.offset;
            self.number += 1;
            let read = read.map_err(|error| self.broken(error.to_string()))? as u64;
            self.offset += read;
            if read == 0 {
                return Ok(None);
            }
            if read > LONGEST {
                return Err(self.broken("is longer than 256 MiB"));
            }
            let text = String::from_utf8(bytes).map_err(|_| self.broken("is not UTF-8"))?;
            let (text, offset) = match text.strip_prefix('\u{feff}').filter(|_| offset == 0) {
                Some(text) => (text.to_owned(), '\u{feff}'.len_utf8() as u64),
                None => (text, offset),
            };
            let said = text.trim();
            if !(said.is_empty() || self.has_remarks && said.starts_with('#')) {
                return Ok(Some(Line { number: self.number, offset, text }));
            }
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Line, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_line().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: Lines<&[u8]>) -> Result<Vec<(usize, u64, String)>, String> {
        let lines = lines.map(|line| line.map(|line| (line.number, line.offset, line.text.trim().to_owned())));
        lines.collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    #[test]
    fn lines_are_numbered_and_blank_ones_passed_over() {
        let text = "\u{feff}one\r\n\n  \n# two\nthree".as_bytes();
        let line = |number, offset, text: &str| (number, offset, text.to_owned());
        let all = [line(1, 3, "one"), line(4, 12, "# two"), line(5, 18, "three")];
        assert_eq!(read(Lines::new("f", text)).expect("reads"), all);
        let [one, _, three] = all;
        assert_eq!(read(Lines::new("f", text).with_remarks()).expect("reads"), [one, three]);
        assert_eq!(read(Lines::new("f", &b"a\n\xff\n"[..])).expect_err("bytes"), "f: line 2: is not UTF-8");
        assert_eq!(objects::<u8>("f", b"1\n\n2\n").expect("lines"), objects::<u8>("f", b" [1, 2]").expect("a list"));
        let json = Lines::new("f", &b"\n{"[..]).next().expect("one").expect("text").json::<u8>("f");
        assert!(json.expect_err("no number").to_string().starts_with("f: line 2, column "));
    }
}
