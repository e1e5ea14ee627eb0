//! Errors of broken input that name file, place and field, and JSON that is read so that it has them.

use bench_proto::{
    json_bound,
    nearest::{did_you_mean, nearest},
    text,
};
use serde::de::DeserializeOwned;

use crate::DatasetError;

/// Most of a place or a problem that is told, in characters: names of fields are somebody else's words.
const MOST_TOLD: usize = 1_000;

/// Bytes that a file may take in memory for each of its own: records of a hundred letters and more take fewer, small objects a hundred.
const MEMORY_TIMES: u64 = 8;

/// Broken content of a file, at a place: a line, a field. What a file says of itself stays within one line.
pub(crate) fn broken(path: &str, place: impl Into<String>, problem: impl Into<String>) -> DatasetError {
    let told = |words: String| text::one_line(&words).chars().take(MOST_TOLD).collect();
    DatasetError::Broken { path: path.to_owned(), place: told(place.into()), problem: told(problem.into()) }
}

/// Reads JSON. The path of a broken field costs time to track, so it is looked for only after a failure.
///
/// # Errors
/// [`DatasetError::Broken`] with line, column and field.
pub(crate) fn json<T: DeserializeOwned>(path: &str, content: &[u8]) -> Result<T, DatasetError> {
    json_from_line(path, content, 1)
}

/// As [`json`], for JSON whose first line is this one of its file.
pub(crate) fn json_from_line<T: DeserializeOwned>(path: &str, content: &[u8], first: usize) -> Result<T, DatasetError> {
    let content = if first == 1 { without_mark(content) } else { content };
    // what is cut off is cut off in its last line, not in an empty one behind it
    let content = content.trim_ascii_end();
    let most = (content.len() as u64).saturating_mul(MEMORY_TIMES).max(json_bound::BANK_BYTES);
    json_bound::check_memory(content, most).map_err(|error| {
        broken(path, format!("line {first}"), format!("{error}: give it as JSON lines, or split it"))
    })?;
    serde_json::from_slice(content).map_err(|error| {
        let Fault { line, column, field, problem } = Fault::find::<T>(&error, content);
        broken(path, format!("line {}, column {column}{field}", line - 1 + first), problem)
    })
}

/// A file without the mark that some programs put at its beginning to say that it is UTF-8.
pub(crate) fn without_mark(content: &[u8]) -> &[u8] {
    content.strip_prefix("\u{feff}".as_bytes()).unwrap_or(content)
}

/// Whether a file of JSON begins as a list does.
pub(crate) fn is_list(content: &[u8]) -> bool {
    without_mark(content).trim_ascii_start().starts_with(b"[")
}

/// What serde says of JSON that is not what is expected.
pub(crate) struct Fault {
    /// From 1.
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// `, field a.b`, where it is in one.
    pub(crate) field: String,
    /// What is wrong, with a hint.
    pub(crate) problem: String,
}

impl Fault {
    /// Reads the content again for the path of the field.
    pub(crate) fn find<T: DeserializeOwned>(error: &serde_json::Error, content: &[u8]) -> Self {
        let text = error.to_string();
        let mut again = serde_json::Deserializer::from_slice(content);
        let field = serde_path_to_error::deserialize::<_, T>(&mut again).err().map(|error| error.path().to_string());
        let field = field.filter(|field| !matches!(field.as_str(), "." | "?" | ""));
        // the place is a field of our own error
        let place = format!(" at line {} column {}", error.line(), error.column());
        let problem = match text.strip_suffix(&place).unwrap_or(&text) {
            // a line that was cut ends in a text, and so does one with a raw character such as a tab
            cut if cut.starts_with("control character") => {
                "a text is not closed before the line ends, or holds a control character that is not written as \\uXXXX"
            }
            "EOF while parsing a string" => "a text is not closed before the end",
            problem => problem,
        };
        Self {
            // line 0 is what serde_json says of content that has none
            line: error.line().max(1),
            column: error.column(),
            field: field.map_or(String::new(), |field| format!(", field {field}")),
            problem: format!("{problem}{}", hint(problem)),
        }
    }
}

/// For ``unknown field `a`, expected one of `b`, `c` `` the nearest of those that are expected.
pub(crate) fn hint(problem: &str) -> String {
    let mut quoted = problem.split('`').skip(1).step_by(2);
    match (problem.contains("unknown field"), quoted.next()) {
        (true, Some(unknown)) => {
            did_you_mean(&nearest(unknown, quoted)).map(|hint| format!("; {hint}")).unwrap_or_default()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_broken_json_is_named() {
        let error = |content: &str| json::<Vec<Vec<u8>>>("a.json", content.as_bytes()).expect_err("broken").to_string();
        assert_eq!(
            error("[[1],\n[2, \"x\"]]"),
            "a.json: line 2, column 7, field [1][1]: invalid type: string \"x\", expected u8"
        );
        assert_eq!(error("[[1],"), "a.json: line 1, column 5: EOF while parsing a value");
        assert!(error("").starts_with("a.json: line 1, column 0: EOF"), "{}", error(""));
        assert_eq!(json::<Vec<u8>>("a.json", "\u{feff}[1]".as_bytes()).expect("a mark does no harm"), [1]);
        let marked =
            json_from_line::<Vec<u8>>("a.jsonl", "\u{feff}[1]".as_bytes(), 7).expect_err("no beginning").to_string();
        assert!(marked.starts_with("a.jsonl: line 7, column 1: "), "{marked}");
        assert!(is_list("\u{feff}\n [1]".as_bytes()) && !is_list(b"{}") && !is_list(b""));
        let bomb = format!("[{}0]", "{\"\":0},".repeat(4 << 20));
        let refused = json_from_line::<Vec<u8>>("a.jsonl", bomb.as_bytes(), 7).expect_err("too much").to_string();
        assert!(refused.contains("line 7") && refused.contains("memory"), "{refused}");
        let later = json_from_line::<u8>("a.jsonl", b"{}", 7).expect_err("broken").to_string();
        assert!(later.starts_with("a.jsonl: line 7, column "), "{later}");
        let cut = json_from_line::<Vec<u8>>("a.jsonl", b"[1,\r\n", 7).expect_err("broken").to_string();
        assert_eq!(cut, "a.jsonl: line 7, column 3: EOF while parsing a value", "not in the line behind it");
    }
}
