//! A JSON array of records in a file that is larger than memory should be: one pass finds where each record stands, and from
//! then on each is read alone.

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use crate::{
    DatasetError,
    broken::{Fault, broken},
    place::Seen,
};

/// Bytes that are read at a time.
const BLOCK: u64 = 1 << 20;
/// Most bytes of a record, all of which is in memory while it is read.
const MOST_BYTES: usize = 256 << 20;
/// Bytes of a text from which on it is left out of what an outline is made of.
const LONG: usize = 512;
/// What stands for a text that was left out.
pub(crate) const LEFT_OUT: &str = "…";
/// Most records: more banks than a run can number.
const MOST_RECORDS: usize = 1 << 22;

/// Where the records of a file are. The file stays as it is while it is in use: a change is noticed and refused.
#[derive(Debug)]
pub(crate) struct ArrayFile {
    path: PathBuf,
    /// First byte and number of bytes of each record.
    records: Vec<(u64, usize)>,
    seen: Seen,
}

/// A record in memory, with where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordAt<'a> {
    path: &'a Path,
    /// Its place in the array, from 0.
    pub(crate) index: usize,
    start: u64,
    bytes: &'a [u8],
    /// Where its long texts are, without their quotes, where somebody has looked.
    long: &'a [(usize, usize)],
}

impl ArrayFile {
    /// Reads a file once and shows every record to `look`, in order. Memory holds one record and a block.
    ///
    /// # Errors
    /// When the file cannot be read, is no array, ends early, or `look` refuses a record.
    pub(crate) fn open(
        path: &Path,
        mut look: impl FnMut(RecordAt<'_>) -> Result<(), DatasetError>,
    ) -> Result<Self, DatasetError> {
        let io = |source| DatasetError::io(path, source);
        let mut file = File::open(path).map_err(io)?;
        let seen = Seen::from(&file.metadata().map_err(io)?);
        let (mut buffer, mut before) = (Vec::new(), 0);
        let (mut scanner, mut records) = (Scanner::default(), Vec::new());
        loop {
            let read = (&mut file).take(BLOCK).read_to_end(&mut buffer).map_err(io)?;
            while let Some((from, until)) =
                scanner.next(&buffer).map_err(|problem| broken_at(path, before + scanner.at as u64, problem))?
            {
                let (start, bytes) = (before + from as u64, &buffer[from..until]);
                look(RecordAt { path, index: records.len(), start, bytes, long: scanner.long_texts() })?;
                records.push((start, bytes.len()));
                if records.len() > MOST_RECORDS {
                    return Err(broken_at(path, start, "holds more records than a run can number; split the file"));
                }
            }
            if read == 0 {
                scanner.end().map_err(|problem| broken_at(path, before + buffer.len() as u64, problem))?;
                return Ok(Self { path: path.to_owned(), records, seen });
            }
            let done = scanner.forget();
            buffer.drain(..done);
            before += done as u64;
            if buffer.len() > MOST_BYTES {
                return Err(broken_at(path, before, "a record of more than 256 MiB begins here; split it"));
            }
        }
    }

    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Reads one record and makes something of it.
    ///
    /// # Errors
    /// When there is no such record, the file has changed since it was opened, or `make` refuses it.
    pub(crate) fn read<T>(
        &self,
        index: usize,
        make: impl FnOnce(RecordAt<'_>) -> Result<T, DatasetError>,
    ) -> Result<T, DatasetError> {
        let path = self.path.as_path();
        let io = |source| DatasetError::io(path, source);
        let &(start, length) = self
            .records
            .get(index)
            .ok_or_else(|| DatasetError::no_bank(&path.display().to_string(), index, self.records.len()))?;
        let mut file = File::open(path).map_err(io)?;
        if Seen::from(&file.metadata().map_err(io)?) != self.seen {
            return Err(DatasetError::Broken {
                path: path.display().to_string(),
                place: format!("record {}", index + 1),
                problem: "the file has changed since it was opened; start again".to_owned(),
            });
        }
        file.seek(SeekFrom::Start(start)).map_err(io)?;
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes).map_err(io)?;
        make(RecordAt { path, index, start, bytes: &bytes, long: &[] })
    }
}

impl RecordAt<'_> {
    /// The record with [`LEFT_OUT`] in place of its long texts, which are most of it: several times faster. What is broken
    /// inside of a long text is found when the whole record is read.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub(crate) fn skim<T: DeserializeOwned>(&self) -> Result<T, DatasetError> {
        let mut short = Vec::with_capacity(self.bytes.len() / 2);
        let mut from = 0;
        for (begin, end) in self.long {
            short.extend_from_slice(&self.bytes[from..*begin]);
            short.extend_from_slice(LEFT_OUT.as_bytes());
            from = *end;
        }
        short.extend_from_slice(&self.bytes[from..]);
        // the whole record knows where it is broken
        serde_json::from_slice(&short).or_else(|_| self.parse())
    }

    /// The record as serde reads it.
    ///
    /// # Errors
    /// Record, line and column in the file, and the field.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, DatasetError> {
        serde_json::from_slice(self.bytes).map_err(|error| {
            let fault = Fault::find::<T>(&error, self.bytes);
            let (line, column) = line_and_column(self.path, self.start);
            let within = (fault.column as u64).max(1);
            let column = if fault.line == 1 { column + within - 1 } else { within };
            let line = line + fault.line as u64 - 1;
            let place = format!("record {}, line {line}, column {column}{}", self.index + 1, fault.field);
            broken(&self.path.display().to_string(), place, fault.problem)
        })
    }

    /// An error in a field that serde could read, with the line in which the record begins.
    pub(crate) fn broken(&self, field: &str, problem: String) -> DatasetError {
        let (line, _) = line_and_column(self.path, self.start);
        let place = format!("record {} from line {line}, field {field}", self.index + 1);
        broken(&self.path.display().to_string(), place, problem)
    }
}

fn broken_at(path: &Path, offset: u64, problem: &str) -> DatasetError {
    let (line, column) = line_and_column(path, offset);
    broken(&path.display().to_string(), format!("line {line}, column {column}"), problem)
}

/// Line and column of a byte, both from 1. Only errors ask for them, so that nobody else pays for counting lines.
fn line_and_column(path: &Path, offset: u64) -> (u64, u64) {
    let (mut line, mut column) = (1, 1);
    let Ok(file) = File::open(path) else { return (line, column) };
    let mut file = BufReader::with_capacity(BLOCK as usize, file.take(offset));
    let mut block = vec![0; BLOCK as usize];
    while let Ok(read @ 1..) = file.read(&mut block) {
        let block = &block[..read];
        line += memchr::memchr_iter(b'\n', block).count() as u64;
        match memchr::memrchr(b'\n', block) {
            Some(last) => column = (read - last) as u64,
            None => column += read as u64,
        }
    }
    (line, column)
}

/// Finds the ends of an array's records in a stream of bytes, without reading what is in them: of a record it knows how deep
/// its brackets go and where its strings end. Whether a record is JSON is for its parser to say.
#[derive(Debug, Default)]
struct Scanner {
    state: State,
    /// The next byte to look at, and the first one of the record that is being looked at.
    at: usize,
    begin: usize,
    depth: u32,
    in_string: bool,
    /// The first byte of the string that is being looked at.
    text: usize,
    long: Vec<(usize, usize)>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    BeforeArray,
    /// A record, or the end of an array that has none.
    First,
    /// A record: there was a comma.
    Next,
    Inside,
    End,
}

impl Scanner {
    /// The first byte of the next record and the one behind its last; none when more bytes are needed.
    fn next(&mut self, buffer: &[u8]) -> Result<Option<(usize, usize)>, &'static str> {
        while let Some(&byte) = buffer.get(self.at) {
            if self.in_string {
                self.string(buffer);
                continue;
            }
            let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            match self.state {
                State::Inside => match byte {
                    b'"' => (self.in_string, self.text) = (true, self.at + 1),
                    b'{' | b'[' => self.depth += 1,
                    b',' if self.depth == 0 => return Ok(Some(self.record(buffer, State::Next))),
                    b']' if self.depth == 0 => return Ok(Some(self.record(buffer, State::End))),
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                },
                _ if is_space => {}
                State::BeforeArray if buffer[self.at..].starts_with(b"\xEF\xBB\xBF") => self.at += 2,
                State::BeforeArray if byte == b'[' => self.state = State::First,
                State::BeforeArray => return Err("is no JSON array of records: it does not begin with ["),
                State::First if byte == b']' => self.state = State::End,
                State::First | State::Next => {
                    // looked at again as a part of the record
                    (self.begin, self.state) = (self.at, State::Inside);
                    self.long.clear();
                    continue;
                }
                State::End => return Err("something follows the end of the array; take it away"),
            }
            self.at += 1;
        }
        Ok(None)
    }

    /// Goes on to the end of a string, or of the buffer.
    fn string(&mut self, buffer: &[u8]) {
        match memchr::memchr2(b'"', b'\\', &buffer[self.at..]) {
            Some(found) if buffer[self.at + found] == b'"' => {
                let end = self.at + found;
                if end - self.text >= LONG {
                    self.long.push((self.text, end));
                }
                self.at = end + 1;
                self.in_string = false;
            }
            // the byte behind a backslash may be in the next block: it is skipped there
            Some(found) => self.at += found + 2,
            None => self.at = buffer.len(),
        }
    }

    fn record(&mut self, buffer: &[u8], then: State) -> (usize, usize) {
        let record = buffer[self.begin..self.at].trim_ascii_end().len();
        self.state = then;
        self.at += 1;
        self.move_texts(self.begin);
        (self.begin, self.begin + record)
    }

    /// Where the long texts of the record are that was found last.
    fn long_texts(&self) -> &[(usize, usize)] {
        &self.long
    }

    /// Counts the places of texts from a later byte on.
    fn move_texts(&mut self, by: usize) {
        self.text = self.text.saturating_sub(by);
        for (begin, end) in &mut self.long {
            (*begin, *end) = (*begin - by, *end - by);
        }
    }

    /// Lets go of what is behind; the number of bytes that nobody needs any more.
    fn forget(&mut self) -> usize {
        if self.state != State::Inside {
            return std::mem::take(&mut self.at);
        }
        let done = std::mem::take(&mut self.begin);
        self.at -= done;
        self.move_texts(done);
        done
    }

    fn end(&self) -> Result<(), &'static str> {
        if self.state == State::End { Ok(()) } else { Err("the file ends inside the array: it is cut off") }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Pair {
        name: String,
        numbers: Vec<u32>,
    }

    fn file(content: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("temporary file");
        std::fs::write(file.path(), content).expect("writes");
        file
    }

    fn open(content: &[u8]) -> Result<Vec<Pair>, String> {
        let file = file(content);
        let mut pairs = Vec::new();
        let opened = ArrayFile::open(file.path(), |record| {
            let (skimmed, pair): (Pair, Pair) = (record.skim()?, record.parse()?);
            let is_long = serde_json::to_string(&pair.name).expect("JSON").len() >= LONG + 2;
            assert_eq!(skimmed.name, if is_long { LEFT_OUT } else { &pair.name });
            assert_eq!(skimmed.numbers, pair.numbers);
            pairs.push(pair);
            Ok(())
        });
        let opened = opened.map_err(|error| error.to_string().replace(&file.path().display().to_string(), "FILE"))?;
        assert_eq!(opened.len(), pairs.len());
        for (index, pair) in pairs.iter().enumerate() {
            assert_eq!(opened.read(index, |record| record.parse::<Pair>()).expect("again"), *pair);
        }
        assert!(opened.read(pairs.len(), |_| Ok(())).is_err());
        Ok(pairs)
    }

    #[test]
    fn records_of_every_layout_are_found() {
        let pair = |name: &str, numbers: &[u32]| Pair { name: name.to_owned(), numbers: numbers.to_vec() };
        assert_eq!(open(b"[]").expect("none"), []);
        assert_eq!(open(b"\xEF\xBB\xBF [ ] \n").expect("none"), []);
        let content = br#"[{"name":"a]},[{","numbers":[1,2]},
            { "name" : "\"\\", "numbers" : [ ] }  , {"numbers":[3],"name":"\\\\"}]
        "#;
        assert_eq!(open(content).expect("three"), [pair("a]},[{", &[1, 2]), pair("\"\\", &[]), pair("\\\\", &[3])]);
    }

    #[test]
    fn records_are_larger_than_blocks_and_cut_by_them_anywhere() {
        let name = |n: usize| "\\\"x\\\\".repeat(n * 90_000);
        let content: Vec<String> = (0..9).map(|n| format!(r#"{{"name":"{}","numbers":[{n}]}}"#, name(n))).collect();
        let pairs = open(format!("[{}]", content.join(",\n ")).as_bytes()).expect("nine");
        let lengths: Vec<usize> = pairs.iter().map(|pair| pair.name.len()).collect();
        assert_eq!(lengths, (0..9).map(|n| n * 3 * 90_000).collect::<Vec<_>>());
        assert!(pairs.iter().zip(0..).all(|(pair, n)| pair.numbers == [n]));
    }

    #[test]
    fn errors_name_record_line_column_and_field() {
        let error = |content: &[u8]| open(content).expect_err("is broken");
        insta::assert_snapshot!(error(b""), @"FILE: line 1, column 1: the file ends inside the array: it is cut off");
        insta::assert_snapshot!(error(b"{\"name\": 1}"), @"FILE: line 1, column 1: is no JSON array of records: it does not begin with [");
        insta::assert_snapshot!(error(b"[{\"name\": \"a\", \"numbers\": []}] x"), @"FILE: line 1, column 32: something follows the end of the array; take it away");
        insta::assert_snapshot!(error(b"[\n{\"name\": \"a\", \"numb"), @"FILE: line 2, column 20: the file ends inside the array: it is cut off");
        insta::assert_snapshot!(error(b"[{\"name\": \"a\", \"numbers\": []},]"), @"FILE: record 2, line 1, column 31: EOF while parsing a value");
        insta::assert_snapshot!(error(b"[{\"name\": \"a\", \"numbers\": []}, {\"name\": \"a\", \"numbers\": [1,\n 2, -3]}]"), @"FILE: record 2, line 2, column 6, field numbers[2]: invalid value: integer `-3`, expected u32");
        insta::assert_snapshot!(error(b"[\n\n  {\"name\": 7}]"), @"FILE: record 1, line 3, column 12, field name: invalid type: integer `7`, expected a string");
        insta::assert_snapshot!(error(b"[{\"name\": \"\xFF\", \"numbers\": []}]"), @"FILE: record 1, line 1, column 12, field name: invalid unicode code point");
    }

    #[test]
    fn what_is_broken_inside_of_a_long_text_is_found_when_it_is_read() {
        let file = file(format!("[\n{{\"name\": \"{}\\x\", \"numbers\": []}}]", "y".repeat(LONG)).as_bytes());
        let opened = ArrayFile::open(file.path(), |record| record.skim::<Pair>().map(drop)).expect("skims");
        let error = opened.read(0, |record| record.parse::<Pair>()).expect_err("is broken").to_string();
        assert!(error.contains("record 1, line 2, column 524, field name: invalid escape"), "{error}");
    }

    #[test]
    fn a_file_that_changes_is_refused() {
        let file = file(b"[[1], [2]]");
        let opened = ArrayFile::open(file.path(), |_| Ok(())).expect("opens");
        assert_eq!(opened.read(1, |record| record.parse::<Vec<u32>>()).expect("reads"), [2]);
        std::fs::write(file.path(), b"[[1], [22]]").expect("writes");
        let error = opened.read(1, |record| record.parse::<Vec<u32>>()).expect_err("has changed").to_string();
        assert!(error.ends_with("record 2: the file has changed since it was opened; start again"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(proptest::sample::select(b"[]{},\" \\\nx1:".to_vec()), 0..60)) {
            let file = file(&bytes);
            let mut values = Vec::new();
            let opened = ArrayFile::open(file.path(), |record| {
                values.push(record.parse::<serde_json::Value>()?);
                Ok(())
            });
            // what is taken is what a parser of the whole file finds, and nothing else is refused
            let whole = serde_json::from_slice::<Vec<serde_json::Value>>(&bytes).ok();
            proptest::prop_assert_eq!(opened.ok().map(|_| values), whole);
        }
    }
}
