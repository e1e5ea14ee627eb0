//! From a file, or a folder of files, to records: JSON lines, JSON documents, CSV; packed with gzip or zstd or not.

use std::{
    borrow::Cow,
    collections::HashMap,
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use bench_proto::json_bound::Counted;
use serde_json::{Map, Value};

use super::{
    ImportError,
    advice::advice,
    fields::names_a_question,
    lookup::Fields,
    ours::Given,
    records::{Finder, MOST_LEVELS, Record, Search, Specimen},
};

/// Longest line of JSON lines.
const MAX_LINE: usize = 16 << 20;
/// Columns of a table, and bytes of their names.
const MOST_COLUMNS: usize = 4_096;
const MOST_HEADER: usize = 256 << 10;
/// What a table, or all documents, may take in memory, in bytes for each byte that files may hold.
const TABLE_TIMES: u64 = 4;
/// Bytes that a cell takes in memory beside the name of its column.
const CELL: usize = 64;
/// Endings of files that are taken from a folder.
const ENDINGS: [&str; 5] = ["json", "jsonl", "ndjson", "csv", "tsv"];
/// What may separate the cells of a table.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// What is read of a file.
struct Content {
    records: Vec<Record>,
    /// What is nearest to a record when there is none.
    specimen: Specimen,
}

/// Reads all records of a file, or of the files of a folder in the order of their names. `most_bytes` bounds what the files may
/// hold together, unpacked: a few packed kilobytes may become anything.
///
/// # Errors
/// A file that cannot be read, or without any record: then with what is nearest to one. More than may be read.
pub(crate) fn records(path: &Path, search: Search<'_>, most_bytes: u64) -> Result<Vec<Record>, ImportError> {
    let mut room = Room { most: most_bytes, left: most_bytes, trees: 0 };
    if !path.is_dir() {
        return of_file(path, None, search, &mut room)?.records(search.given);
    }
    let mut all = Content { records: Vec::new(), specimen: Specimen::default() };
    for file in files_of(path)? {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let group = name.split('.').next().map(str::to_owned);
        let found = of_file(&file, group, search, &mut room).map_err(|e| ImportError::at(&name, e.to_string()))?;
        let placed = |record: Record| Record { place: format!("{name}: {}", record.place), ..record };
        all.records.extend(found.records.into_iter().map(placed));
        all.specimen = all.specimen.or(found.specimen);
    }
    all.records(search.given)
}

impl Content {
    fn records(self, given: &Given) -> Result<Vec<Record>, ImportError> {
        if self.records.is_empty() {
            return Err(ImportError::file(format!(
                "no record with an answer or a grade was found: {}; docs/IMPORT.md says more",
                advice(&Fields::in_record(&self.specimen.fields), given)
            )));
        }
        Ok(self.records)
    }
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let listed = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut files: Vec<PathBuf> =
        listed.map_err(|e| ImportError::file(e.to_string()))?.into_iter().map(|entry| entry.path()).collect();
    files.retain(|file| ending(file).is_some_and(|ending| ENDINGS.contains(&ending.as_str())));
    files.sort();
    if files.is_empty() {
        return Err(ImportError::file(format!("the folder holds no file that ends in {}", ENDINGS.join(", "))));
    }
    Ok(files)
}

/// The ending of a file's name, without that of its packing.
fn ending(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
    plain.rsplit_once('.').map(|(_, ending)| ending.to_owned())
}

fn of_file(path: &Path, group: Option<String>, search: Search<'_>, room: &mut Room) -> Result<Content, ImportError> {
    let file = File::open(path).map_err(|e| ImportError::file(e.to_string()))?;
    of_bytes(BufReader::new(file), ending(path).as_deref(), group, search, room)
}

/// The records of a file's content.
///
/// # Errors
/// As [`records`].
pub(crate) fn of_content(
    name: &str,
    content: &[u8],
    search: Search<'_>,
    most_bytes: u64,
) -> Result<Vec<Record>, ImportError> {
    let mut room = Room { most: most_bytes, left: most_bytes, trees: 0 };
    of_bytes(content, ending(Path::new(name)).as_deref(), None, search, &mut room)?.records(search.given)
}

fn of_bytes(
    file: impl BufRead,
    ending: Option<&str>,
    group: Option<String>,
    search: Search<'_>,
    room: &mut Room,
) -> Result<Content, ImportError> {
    let text = unpacked(file, room)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let first = text.trim_start().chars().next().ok_or_else(|| ImportError::file("no lines"))?;
    let mut finder = Finder::new(search);
    if matches!(ending, Some("csv" | "tsv")) || !matches!(first, '{' | '[') {
        finder.records = csv_records(text, group, room)?;
    } else {
        room.take_trees(text)?;
        match first {
            '{' if starts_as_lines(text, search.given) => json_lines(text, group, &mut finder)?,
            _ => documents(text, group, &mut finder)?,
        }
    }
    Ok(Content { records: finder.records, specimen: finder.specimen })
}

/// What may still be read, in bytes.
struct Room {
    most: u64,
    left: u64,
    /// What the documents that were read take in memory, roughly.
    trees: u64,
}

impl Room {
    /// The bytes of a reader, when there is room for them.
    fn fill(&mut self, reader: impl Read) -> std::io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let read = reader.take(self.left.saturating_add(1)).read_to_end(&mut bytes)? as u64;
        let fits = read <= self.left;
        self.left = self.left.saturating_sub(read);
        Ok(fits.then_some(bytes))
    }

    /// Refuses a table that takes far more in memory than its file does.
    fn check_table(&self, rows: usize, bytes_of_row: usize) -> Result<(), ImportError> {
        let most = self.most.saturating_mul(TABLE_TIMES);
        let bytes = rows.saturating_mul(bytes_of_row) as u64;
        if bytes <= most {
            return Ok(());
        }
        Err(ImportError::file(format!(
            "the table becomes more than {} MiB in memory: leave out the columns that are not needed (docs/IMPORT.md), or raise \
             --max-mib",
            most >> 20
        )))
    }

    /// Refuses documents that take far more in memory than their files do: `{"":0}` are seven bytes, and several hundred as a tree.
    fn take_trees(&mut self, text: &str) -> Result<(), ImportError> {
        let most = self.most.saturating_mul(TABLE_TIMES);
        let counted = Counted::whole(text.as_bytes());
        self.trees = self.trees.saturating_add(counted.memory());
        if self.trees <= most {
            return Ok(());
        }
        Err(ImportError::file(format!(
            "holds {} values, and becomes more than {} MiB in memory: leave out the fields that are not needed (docs/IMPORT.md), or \
             raise --max-mib to {} (for what was read until here)",
            counted.values,
            most >> 20,
            self.trees.div_ceil(TABLE_TIMES << 20)
        )))
    }

    fn exceeded(&self) -> ImportError {
        ImportError::file(format!(
            "holds more than {} MiB unpacked, and all of it is read into memory: leave out the fields that are not needed \
             (docs/IMPORT.md), or raise --max-mib",
            self.most >> 20
        ))
    }
}

fn unpacked(mut file: impl BufRead, room: &mut Room) -> Result<String, ImportError> {
    let unreadable = |e: std::io::Error| ImportError::file(format!("cannot be read as text: {e}"));
    let start = file.fill_buf().map_err(unreadable)?;
    if start.starts_with(b"PAR1") {
        return Err(ImportError::file(
            "is a Parquet table, which is not read: bring JSON lines or CSV (of a run of ours `export --format jsonl`; in Python \
             pandas.read_parquet(FILE).to_json(OTHER, orient=\"records\", lines=True))",
        ));
    }
    let (gzip, zstd) = (start.starts_with(&[0x1f, 0x8b]), start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    let reader: Box<dyn Read> = if gzip {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else if zstd {
        Box::new(zstd::Decoder::with_buffer(file).map_err(unreadable)?)
    } else {
        Box::new(file)
    };
    let bytes = room.fill(reader).map_err(unreadable)?.ok_or_else(|| room.exceeded())?;
    // tables from spreadsheets may be UTF-16, with its mark
    let of_units = |unit: fn([u8; 2]) -> u16| {
        let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units).collect::<Result<String, _>>().map_err(|e| unreadable(std::io::Error::other(e)))
    };
    match bytes.first_chunk() {
        Some([0xff, 0xfe]) => of_units(u16::from_le_bytes),
        Some([0xfe, 0xff]) => of_units(u16::from_be_bytes),
        _ => String::from_utf8(bytes).map_err(|e| unreadable(std::io::Error::other(e))),
    }
}

/// JSON lines: the first line is a whole object by itself, and either more follow or the object is a record.
fn starts_as_lines(text: &str, given: &Given) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().map(|line| serde_json::from_str::<Map<String, Value>>(&standard(line)));
    let more = lines.next().is_some();
    match first {
        Some(Ok(object)) => more || names_a_question(&Fields::in_record(&object), given),
        // a broken first line followed by others that open an object: its own error says more
        Some(Err(_)) => {
            more && text.lines().take(50).filter(|line| !line.trim().is_empty()).all(|line| line.starts_with('{'))
        }
        None => false,
    }
}

fn json_lines(text: &str, group: Option<String>, finder: &mut Finder<'_>) -> Result<(), ImportError> {
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let place = format!("line {number}");
        if line.len() > MAX_LINE {
            return Err(ImportError::at(&place, format!("longer than {MAX_LINE} bytes")));
        }
        let fields: Map<String, Value> =
            serde_json::from_str(&standard(line)).map_err(|e| ImportError::at(&place, e.to_string()))?;
        finder.place = Some(place.clone());
        let before = finder.records.len();
        finder.within(group.clone(), Value::Object(fields.clone()));
        if finder.records.len() == before {
            // what it lacks is said when it is understood
            finder.records.push(Record { place, groups: group.iter().cloned().collect(), fields });
        }
    }
    Ok(())
}

/// One document, or several one after the other.
fn documents(text: &str, group: Option<String>, finder: &mut Finder<'_>) -> Result<(), ImportError> {
    let text = standard(text);
    for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        finder.within(group.clone(), value.map_err(|e| ImportError::file(e.to_string()))?);
    }
    Ok(())
}

/// Python writes numbers that JSON does not have: `NaN`, `Infinity` and `-Infinity` become `null`.
fn standard(text: &str) -> Cow<'_, str> {
    if !text.contains("NaN") && !text.contains("Infinity") {
        return text.into();
    }
    let mut json = String::with_capacity(text.len());
    let (mut rest, mut in_string) = (text, false);
    while let Some(c) = rest.chars().next() {
        let number = ["NaN", "-Infinity", "Infinity"].into_iter().find(|word| !in_string && rest.starts_with(word));
        let taken = match number {
            Some(word) => {
                json.push_str("null");
                word.len()
            }
            None if in_string && c == '\\' => {
                let escaped = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                json.push_str(&rest[..escaped]);
                escaped
            }
            None => {
                in_string ^= c == '"';
                json.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    json.into()
}

/// A table with a header. An empty cell of a column that is used says that there is nothing; columns without any cell are left
/// out. Names with dots are nested, as pandas flattens them.
fn csv_records(text: &str, group: Option<String>, room: &Room) -> Result<Vec<Record>, ImportError> {
    let header = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let count = |delimiter: &u8| header.bytes().filter(|byte| byte == delimiter).count();
    let delimiter = DELIMITERS.into_iter().rev().max_by_key(count).unwrap_or(b',');
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| ImportError::file(e.to_string()))?.clone();
    if header.len() > MOST_COLUMNS || header.as_slice().len() > MOST_HEADER {
        return Err(ImportError::file(format!(
            "the table has more than {MOST_COLUMNS} columns, or names of them of more than {} KiB: leave out those that are not \
             needed (docs/IMPORT.md)",
            MOST_HEADER >> 10
        )));
    }
    let mut rows: Vec<csv::StringRecord> = Vec::new();
    for row in reader.records() {
        rows.push(row.map_err(|e| ImportError::file(e.to_string()))?);
        // each keeps where its cells end
        room.check_table(rows.len(), header.len() * size_of::<usize>())?;
    }
    let used: Vec<bool> = (0..header.len()).map(|column| rows.iter().any(|row| !row[column].is_empty())).collect();
    // each row becomes a record that names all columns in use
    let names = header.iter().zip(&used).filter(|(_, used)| **used).map(|(name, _)| name.len() + CELL);
    room.check_table(rows.len(), names.sum())?;
    let is_ours = header.iter().any(|name| name == "outcome");
    check_columns(&header, &rows)?;
    let record = |row: &csv::StringRecord| {
        let mut fields = Map::new();
        for ((name, cell), _) in header.iter().zip(row).zip(&used).filter(|(_, used)| **used) {
            if let Some(metric) = name.strip_prefix(SCORE_OF).filter(|_| is_ours) {
                add_score(&mut fields, metric, cell);
                continue;
            }
            let cell = if cell.is_empty() { Value::Null } else { Value::String(cell.to_owned()) };
            nest(&mut fields, name.trim(), cell, MOST_LEVELS);
        }
        let place = row.position().map_or_else(String::new, |at| format!("line {}", at.line()));
        Record { place, groups: group.iter().cloned().collect(), fields }
    };
    Ok(rows.iter().map(record).collect())
}

/// Refuses a table of which nobody knows what a column says: two have one name and do not say the same.
fn check_columns(header: &csv::StringRecord, rows: &[csv::StringRecord]) -> Result<(), ImportError> {
    let mut columns: HashMap<&str, usize> = HashMap::new();
    for (column, name) in header.iter().enumerate().filter(|(_, name)| !name.trim().is_empty()) {
        let first = *columns.entry(name.trim()).or_insert(column);
        if rows.iter().any(|row| row[first] != row[column]) {
            return Err(ImportError::file(format!("two columns are called '{}': rename one of them", name.trim())));
        }
    }
    Ok(())
}

/// What columns of a table of ours are called by that hold a metric.
const SCORE_OF: &str = "score:";

/// Puts a metric of ours where `questions.jsonl` has it; an empty cell says that the question has none.
fn add_score(fields: &mut Map<String, Value>, metric: &str, cell: &str) {
    let scores = fields.entry("scores").or_insert_with(|| Value::Object(Map::new()));
    if let (Value::Object(scores), false) = (scores, cell.is_empty()) {
        scores.insert(metric.to_owned(), Value::String(cell.to_owned()));
    }
}

/// Puts a cell where its name says; what is deeper than anything is looked for keeps its dots.
fn nest(fields: &mut Map<String, Value>, name: &str, cell: Value, levels: usize) {
    if levels > 0
        && let Some((outer, inner)) = name.split_once('.')
        && !outer.is_empty()
        && !inner.is_empty()
        && let Value::Object(object) = fields.entry(outer).or_insert_with(|| Value::Object(Map::new()))
    {
        nest(object, inner, cell, levels - 1);
        return;
    }
    fields.insert(name.to_owned(), cell);
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(name: &str, bytes: &[u8]) -> Result<Vec<Record>, ImportError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("writable");
        records_at(&path)
    }

    fn records_at(path: &Path) -> Result<Vec<Record>, ImportError> {
        let search = Search { is_question: &|name| name.starts_with("a:"), given: &Given::default() };
        records(path, search, 1 << 20)
    }

    #[test]
    fn the_same_record_in_all_forms() {
        let line = br#"{"question_id": "a:0", "answer": "x"}"#;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(line).expect("memory");
        let gzip = gzip.finish().expect("memory");
        let zstd = zstd::encode_all(line.as_slice(), 1).expect("memory");
        let wide: Vec<u8> = "\u{feff}question_id\tanswer\na:0\tx\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let forms: [(&str, &[u8]); 12] = [
            ("a.jsonl", line),
            ("a.json", br#"[{"question_id": "a:0", "answer": "x"}]"#),
            ("a.json", br#"{"runs": {"conv": [{"question_id": "a:0", "answer": "x"}], "n": NaN}}"#),
            ("a.json", b"{\n\"n\": 1}\n{\n\"question_id\": \"a:0\", \"answer\": \"x\"}"),
            ("a.json", br#"{"a:0": {"answer": "x"}}"#),
            ("a.csv", b"question_id,answer,score\na:0,x,\n"),
            ("a.csv", b"question_id;answer;note\na:0;x;\"1,2,3\"\n"),
            ("a.tsv", b"question_id\tanswer\na:0\tx\n"),
            ("a.txt", b"question_id|answer\na:0|x\n"),
            ("a.json.gz", &gzip),
            ("a.zst", &zstd),
            ("a.csv", &wide),
        ];
        for (name, bytes) in forms {
            let records = read(name, bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(records.len(), 1, "{name}");
            let fields = &records[0].fields;
            assert_eq!((&fields["question_id"], &fields["answer"]), (&json!("a:0"), &json!("x")), "{name}");
            assert!(!fields.contains_key("score"), "an empty column says nothing");
        }
        let nested = read("a.json", forms[2].1).expect("reads");
        assert_eq!(nested[0].groups, ["conv", "runs"]);
    }

    #[test]
    fn a_folder_is_read_file_by_file_and_their_names_are_groups() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("writable");
        write("conv-2.results.json", r#"[{"question": "?", "score": 1}]"#);
        write("conv-1.jsonl", "{\"question\": \"!\", \"score\": 0}\n{\"question\": \"?\", \"score\": 0}\n");
        write("notes.md", "none");
        let records = records_at(folder.path()).expect("reads");
        let seen: Vec<(&str, &str)> = records.iter().map(|r| (r.groups[0].as_str(), r.place.as_str())).collect();
        assert_eq!(
            seen,
            [
                ("conv-1", "conv-1.jsonl: line 1"),
                ("conv-1", "conv-1.jsonl: line 2"),
                ("conv-2", "conv-2.results.json: record 1")
            ]
        );
    }

    #[test]
    fn flattened_columns_are_nested_again_and_empty_cells_are_null() {
        let records = read("a.csv", b"id,votes.1,votes.2,x.\na:0,True,False,\na:1,True,,z\n").expect("reads");
        assert_eq!(records[0].fields["votes"], json!({"1": "True", "2": "False"}));
        assert_eq!(records[1].fields["votes"], json!({"1": "True", "2": null}));
        assert_eq!(records[0].fields["x."], Value::Null);
    }

    #[test]
    fn columns_of_one_name_have_to_say_the_same() {
        let two = read("a.csv", b"question_id,score,score\na:0,1,0\n").expect_err("nobody knows which").to_string();
        assert!(two.contains("two columns are called 'score'"), "{two}");
        assert_eq!(read("a.csv", b"question_id,score,score\na:0,1,1\n").expect("reads").len(), 1);
    }

    #[test]
    fn lines_may_hold_whole_conversations() {
        let text = br#"{"sample_id": "c-1", "qa": [{"question": "?", "score": 1}, {"question": "!", "score": 0}]}
{"sample_id": "c-2", "qa": [{"question": "?", "score": 1}]}"#;
        let records = read("a.jsonl", text).expect("reads");
        let seen: Vec<(&str, &str)> = records.iter().map(|r| (r.groups[1].as_str(), r.place.as_str())).collect();
        assert_eq!(seen, [("c-1", "line 1"), ("c-1", "line 1"), ("c-2", "line 2")]);
    }

    #[test]
    fn broken_lines_are_named() {
        let message = |bytes: &[u8]| read("a.jsonl", bytes).expect_err("is refused").to_string();
        assert!(message(b"{\"question_id\": \"a\", \"score\": 1}\n{nonsense\n").starts_with("line 2: "));
        assert!(message(b"{nonsense\n{\"question_id\": \"a\"}\n").starts_with("line 1: "));
        let alone = read("a.jsonl", b"{\"question_id\": \"nobody\", \"score\": 1}\n").expect("reads");
        assert_eq!(alone[0].place, "line 1", "a line is a line, also when it is alone");
        assert_eq!(message(b" \n"), "no lines");
        assert!(message(b"{\"a\": {\"b\": 1}}").contains("try --field score=a.b"));
        let nearest = message(b"{\"runs\": [{\"asked\": \"who?\", \"weight\": 1}], \"n\": 1, \"m\": 2, \"o\": 3}");
        assert!(nearest.contains("try --field question=asked --field score=weight"), "{nearest}");
        assert!(message(b"{\"a\": 1}}").contains("trailing") || message(b"{\"a\": 1}}").contains("expected"));
    }

    #[test]
    fn a_parquet_table_is_refused_with_what_to_do() {
        let refused = read("questions.parquet", b"PAR1\x15\x04\xff").expect_err("is no text").to_string();
        assert!(refused.contains("Parquet") && refused.contains("export --format jsonl"), "{refused}");
    }

    #[test]
    fn a_header_of_dots_is_no_tower() {
        let deep = format!("id,{}\na:0,1\n", "a.".repeat(100_000));
        let records = read("a.csv", deep.as_bytes()).expect("reads");
        assert_eq!(records[0].fields["id"], json!("a:0"));
        let levels = std::iter::successors(Some(&records[0].fields["a"]), |value| value.get("a")).count();
        assert_eq!(levels, MOST_LEVELS, "what is deeper keeps its dots");
    }

    #[test]
    fn a_small_file_that_becomes_a_large_one_is_refused_with_what_to_do() {
        let much = vec![b' '; 3 << 20];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&much).expect("memory");
        let gzip = gzip.finish().expect("memory");
        for packed in [gzip, zstd::encode_all(much.as_slice(), 1).expect("memory"), much.clone()] {
            let refused = read("a.json", &packed).expect_err("is refused").to_string();
            assert!(refused.contains("more than 1 MiB") && refused.contains("--max-mib"), "{refused}");
        }
        // no more than what fits is ever unpacked
        let mut room = Room { most: 4096, left: 4096, trees: 0 };
        let filled = room.fill(std::io::repeat(0)).expect("reads");
        assert!(filled.is_none() && room.left == 0);
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a.json", "b.json"] {
            std::fs::write(folder.path().join(name), &much[..700 << 10]).expect("writable");
        }
        assert!(records_at(folder.path()).is_err(), "files of a folder count together");
    }

    #[test]
    fn a_document_of_many_values_is_refused_before_it_is_read() {
        let bomb = |pairs: usize| format!("[{}0]", "{\"\":0},".repeat(pairs));
        let lines = format!("{{\"a\": {}}}\n", bomb(1_000)).repeat(10);
        for (name, text) in [("a.json", bomb(10_000)), ("a.jsonl", lines), ("a", format!("\u{feff} {}", bomb(10_000)))]
        {
            let refused = read(name, text.as_bytes()).expect_err("is refused").to_string();
            // 839 bytes for each pair: 8 MiB, and a quarter of that
            assert!(
                refused.contains("more than 4 MiB in memory") && refused.contains("--max-mib to 3 "),
                "{name}: {refused}"
            );
        }
        let search = Search { is_question: &|_| false, given: &Given::default() };
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), bomb(10_000)).expect("writable");
        let refused = |mib: u64| {
            let read = records(file.path(), search, mib << 20);
            read.is_err_and(|error| error.to_string().contains("in memory"))
        };
        assert!(refused(2) && !refused(3), "what it names does, and no less");
        let records: Vec<Value> = (0..500)
            .map(|n| json!({"question_id": format!("a:{n}"), "answer": "x".repeat(1_000), "contexts": vec!["y".repeat(90); 10]}))
            .collect();
        assert_eq!(read("a.json", json!(records).to_string().as_bytes()).expect("reads").len(), 500);
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a.json", "b.json"] {
            std::fs::write(folder.path().join(name), bomb(3_000)).expect("writable");
        }
        let refused = records_at(folder.path()).expect_err("is refused").to_string();
        assert!(
            refused.contains("b.json") && refused.contains("in memory"),
            "files of a folder count together: {refused}"
        );
    }

    #[test]
    fn a_small_table_that_becomes_a_large_one_is_refused_with_what_to_do() {
        let names: Vec<String> = (0..200).map(|n| format!("{n}{}", "x".repeat(1_000))).collect();
        let filled = vec!["y"; 200].join(",");
        let table =
            |rows: usize| format!("{}\n{filled}\n{}", names.join(","), format!("{}\n", ",".repeat(199)).repeat(rows));
        assert_eq!(read("a.csv", table(10).as_bytes()).expect("reads").len(), 11);
        let refused = read("a.csv", table(100).as_bytes()).expect_err("is refused").to_string();
        assert!(refused.contains("more than 4 MiB in memory") && refused.contains("--max-mib"), "{refused}");
        let wide = format!("id{}\na{}\n", ",".repeat(5_000), ",".repeat(5_000));
        let long = format!("id,{}\na,b\n", "x".repeat(300 << 10));
        for text in [wide, long] {
            let refused = read("a.csv", text.as_bytes()).expect_err("is refused").to_string();
            assert!(refused.contains("more than 4096 columns, or names"), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn json_stays_as_it_is_whatever_its_texts_say(text in "[NaInfty\"\\\\ é-]{0,12}") {
            let value = json!([{ "t": text, "n": 1 }]);
            let written = value.to_string();
            prop_assert_eq!(serde_json::from_str::<Value>(&standard(&written)).expect("is JSON"), value);
        }
    }
}
