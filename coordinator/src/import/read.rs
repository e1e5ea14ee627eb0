//! From a file to its records: JSON lines, one JSON document of any nesting, or CSV; packed with gzip or zstd or not.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use serde_json::{Map, Value};

use super::{ImportError, fields};

/// Most bytes that are read, unpacked: a bound for what a small packed file may become.
const MOST_BYTES: u64 = 2 << 30;
/// Longest line of JSON lines.
const MAX_LINE: usize = 16 << 20;
/// Deepest nesting of a document that is looked through.
const MOST_LEVELS: usize = 16;

/// One record with where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    /// `line 12`, or `record 12` of a document.
    pub(crate) place: String,
    /// Names of the objects that it lies in, the innermost first: often the conversation.
    pub(crate) groups: Vec<String>,
    /// Its fields.
    pub(crate) fields: Map<String, Value>,
}

/// Reads all records.
///
/// # Errors
/// A file that cannot be read, or is of no known form.
pub(crate) fn records(path: &Path) -> Result<Vec<Record>, ImportError> {
    let file = File::open(path).map_err(|e| ImportError::file(e.to_string()))?;
    let text = unpacked(BufReader::new(file))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let first = text.trim_start().chars().next();
    let named_csv = {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
        if plain.ends_with(".tsv") { Some(b'\t') } else { plain.ends_with(".csv").then_some(b',') }
    };
    let records = match (named_csv, first) {
        (_, None) => return Err(ImportError::file("no lines")),
        (Some(delimiter), _) => csv_records(text, delimiter)?,
        (None, Some('{')) if starts_as_lines(text) => json_lines(text)?,
        (None, Some('{' | '[')) => document(text)?,
        (None, Some(_)) => csv_records(text, b',')?,
    };
    if records.is_empty() {
        return Err(ImportError::file(
            "no record with an answer or a grade was found; docs/IMPORT.md lists the names of fields that are known",
        ));
    }
    Ok(records)
}

fn unpacked(mut file: impl BufRead) -> Result<String, ImportError> {
    let unreadable = |e: std::io::Error| ImportError::file(format!("cannot be read as text: {e}"));
    let start = file.fill_buf().map_err(unreadable)?;
    let (gzip, zstd) = (start.starts_with(&[0x1f, 0x8b]), start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    let reader: Box<dyn Read> = if gzip {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else if zstd {
        Box::new(zstd::Decoder::with_buffer(file).map_err(unreadable)?)
    } else {
        Box::new(file)
    };
    let mut text = String::new();
    reader.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(ImportError::file(format!("more than {MOST_BYTES} bytes")));
    }
    Ok(text)
}

/// JSON lines: the first line is a whole object by itself, and either more follow or the object is a record.
fn starts_as_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().map(serde_json::from_str::<Map<String, Value>>);
    let more = lines.next().is_some();
    match first {
        Some(Ok(object)) => more || fields::is_record(&object),
        // a broken first line followed by others that open an object: its own error says more
        Some(Err(_)) => {
            more && text.lines().take(50).filter(|line| !line.trim().is_empty()).all(|line| line.starts_with('{'))
        }
        None => false,
    }
}

fn json_lines(text: &str) -> Result<Vec<Record>, ImportError> {
    let mut records = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let place = format!("line {number}");
        if line.len() > MAX_LINE {
            return Err(ImportError::at(&place, format!("longer than {MAX_LINE} bytes")));
        }
        let fields = serde_json::from_str(line).map_err(|e| ImportError::at(&place, e.to_string()))?;
        records.push(Record { place, groups: Vec::new(), fields });
    }
    Ok(records)
}

fn document(text: &str) -> Result<Vec<Record>, ImportError> {
    let value: Value = serde_json::from_str(text).map_err(|e| ImportError::file(e.to_string()))?;
    let mut records = Vec::new();
    collect(value, &mut Vec::new(), &mut records);
    Ok(records)
}

/// Finds records in a document, in its order; names of objects on the way are groups.
fn collect(value: Value, groups: &mut Vec<String>, records: &mut Vec<Record>) {
    if groups.len() > MOST_LEVELS {
        return;
    }
    match value {
        Value::Object(fields) if fields::is_record(&fields) => {
            let place = format!("record {}", records.len() + 1);
            records.push(Record { place, groups: groups.iter().rev().cloned().collect(), fields });
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                groups.push(name);
                collect(value, groups, records);
                groups.pop();
            }
        }
        Value::Array(values) => values.into_iter().for_each(|value| collect(value, groups, records)),
        _ => {}
    }
}

fn csv_records(text: &str, delimiter: u8) -> Result<Vec<Record>, ImportError> {
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| ImportError::file(e.to_string()))?.clone();
    let mut records = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|e| ImportError::file(e.to_string()))?;
        let place = row.position().map_or_else(String::new, |at| format!("line {}", at.line()));
        // an empty cell is a field that is not there
        let cells = header.iter().zip(row.iter()).filter(|(_, cell)| !cell.is_empty());
        let fields = cells.map(|(name, cell)| (name.trim().to_owned(), Value::String(cell.to_owned()))).collect();
        records.push(Record { place, groups: Vec::new(), fields });
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(name: &str, bytes: &[u8]) -> Result<Vec<Record>, ImportError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("writable");
        records(&path)
    }

    #[test]
    fn the_same_record_in_all_forms() {
        let line = br#"{"question_id": "a:0", "answer": "x"}"#;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(line).expect("memory");
        let gzip = gzip.finish().expect("memory");
        let zstd = zstd::encode_all(line.as_slice(), 1).expect("memory");
        let forms: [(&str, &[u8]); 7] = [
            ("a.jsonl", line),
            ("a.json", br#"[{"question_id": "a:0", "answer": "x"}]"#),
            ("a.json", br#"{"runs": {"conv": [{"question_id": "a:0", "answer": "x"}], "n": 1}}"#),
            ("a.csv", b"question_id,answer,score\na:0,x,\n"),
            ("a.tsv", b"question_id\tanswer\na:0\tx\n"),
            ("a.json.gz", &gzip),
            ("a.zst", &zstd),
        ];
        for (name, bytes) in forms {
            let records = read(name, bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(records.len(), 1, "{name}");
            assert_eq!((&records[0].fields["question_id"], &records[0].fields["answer"]), (&"a:0".into(), &"x".into()));
        }
        let nested = read("a.json", forms[2].1).expect("reads");
        assert_eq!(nested[0].groups, ["conv", "runs"]);
    }

    #[test]
    fn broken_lines_are_named() {
        let message = |bytes: &[u8]| read("a.jsonl", bytes).expect_err("is refused").to_string();
        assert!(message(b"{\"question_id\": \"a\", \"score\": 1}\n{nonsense\n").starts_with("line 2: "));
        assert!(message(b"{nonsense\n{\"question_id\": \"a\"}\n").starts_with("line 1: "));
        assert_eq!(message(b" \n"), "no lines");
        assert!(message(b"{\"a\": {\"b\": 1}}").contains("docs/IMPORT.md"));
    }
}
