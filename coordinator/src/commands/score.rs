//! `score`: JSON lines in, the same objects with `score` (or `error`) out, in order.

use std::{
    fmt,
    io::{BufRead, BufReader, BufWriter, Read, Write},
};

use bench_grading::{
    counting,
    scorers::{
        registry,
        score_line::{ADDED, LineScorer},
    },
};
use bench_proto::{json_bound, text};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};

use crate::{
    cli::ScoreArgs,
    exit::{CliError, CliResult, Exit},
    out::{self, data::Data},
};

/// Longest line that is read, in bytes.
const MAX_LINE: u64 = 64 << 20;

/// Scores JSON lines from a file or standard input and prints a line for each; needs no settings and no store.
pub(super) fn run(args: &ScoreArgs) -> CliResult {
    if args.list {
        match args.json {
            true => out::result(&json!(registry::listed()).to_string()),
            false => out::words(&registry::list().join("\n")),
        }
        return Ok(Exit::Done);
    }
    if args.counting {
        match args.json {
            true => out::json(&counting::listed()),
            false => out::words(&counting::list().join("\n")),
        }
        return Ok(Exit::Done);
    }
    let name = args.scorer.as_deref().ok_or_else(|| CliError::usage("give --scorer NAME, or --list to see all"))?;
    let scorer = LineScorer::find(name).map_err(CliError::usage_of)?;
    let input: Box<dyn Read> = match &args.input {
        None => Box::new(std::io::stdin()),
        Some(path) => Box::new(
            std::fs::File::open(path).map_err(|e| CliError::usage(format!("{}: {e}", path.display())).because(e))?,
        ),
    };
    let mut output = BufWriter::new(Data::json());
    let written = score_lines(scorer, BufReader::new(input), &mut output, MAX_LINE).and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            out::lose(&error);
            Ok(Exit::Done)
        }
        Err(error) => Err(CliError::infrastructure(format!("scoring stopped: {error}")).because(error)),
        Ok(()) => Ok(Exit::Done),
    }
}

/// Scores each line; a line that cannot be read, or has more than `most` bytes, becomes an object with `error`, so that output lines
/// match input lines.
fn score_lines(scorer: LineScorer, mut input: impl BufRead, output: &mut impl Write, most: u64) -> std::io::Result<()> {
    let mut line = Vec::new();
    // some editors put one before every file
    let mut mark: &[u8] = "\u{feff}".as_bytes();
    loop {
        line.clear();
        let read = input.by_ref().take(most.saturating_add(1)).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        if read as u64 > most && !line.ends_with(b"\n") {
            input.skip_until(b'\n')?;
            writeln!(
                output,
                "{}",
                unreadable(&format!("the line has more than {most} bytes; leave out what is not scored"))
            )?;
            continue;
        }
        let line = line.strip_prefix(std::mem::take(&mut mark)).unwrap_or(&line);
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        // lines of others would drive the terminal that shows what is wrong with them
        writeln!(output, "{}", text::json(&scored(scorer, line)))?;
    }
}

/// A line with what the scorer says behind its members, which stay as they are written.
fn scored(scorer: LineScorer, line: &[u8]) -> String {
    let object = match json_bound::from_slice::<Value>(line, json_bound::REPORT) {
        Ok(Value::Object(object)) => object,
        Ok(other) => return unreadable(&format!("expected an object, found {other}")),
        Err(e) => return unreadable(&format!("not JSON: {e}")),
    };
    let members = match serde_json::from_slice::<Members<'_>>(line) {
        Ok(Members(members)) => members,
        Err(e) => return unreadable(&format!("not JSON: {e}")),
    };
    let kept = members.iter().filter(|(name, _)| !ADDED.contains(&name.as_str()));
    // tabs and the like stand between values only, and would be written as if they stood in a string
    let kept = kept.map(|(name, raw)| (name.clone(), raw.get().replace(['\t', '\r'], " ")));
    let added = scorer.added(&object).into_iter().map(|(name, value)| (name, value.to_string()));
    let all: Vec<String> = kept.chain(added).map(|(name, value)| format!("{}:{value}", Value::from(name))).collect();
    format!("{{{}}}", all.join(","))
}

/// What stands in place of a line that cannot be read.
fn unreadable(why: &str) -> String {
    json!({ "error": why }).to_string()
}

/// The members of an object in their order, with their values as they are written.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(scorer: &str, input: &str, most: u64) -> String {
        let mut output = Vec::new();
        score_lines(LineScorer::find(scorer).expect("known"), input.as_bytes(), &mut output, most)
            .expect("memory takes everything");
        String::from_utf8(output).expect("is text")
    }

    #[test]
    fn one_line_out_for_each_line_in() {
        let input =
            "\u{feff}{\"id\": 1, \"prediction\": \"Paris\", \"gold\": \"paris\", \"category\": 4}\n\nnonsense\n[1]\n";
        let output = written("locomo-f1", input, MAX_LINE);
        let lines: Vec<Value> = output.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!((&lines[0]["id"], &lines[0]["score"]), (&json!(1), &json!(1.0)));
        assert!(lines[1]["error"].is_string() && lines[1].get("score").is_none());
        assert!(lines[2]["error"].is_string());
    }

    #[test]
    fn nothing_else_of_a_line_is_changed() {
        let line = "{\"z\": 123456789012345678901, \"score\": 7, \"p\": {\"a\":\t0.1000}, \"prediction\": \"red\", \"gold\": \"red\"}\r\n";
        let expected = "{\"z\":123456789012345678901,\"p\":{\"a\": 0.1000},\"prediction\":\"red\",\"gold\":\"red\",\"score\":1.0}\n";
        assert_eq!(written("exact", line, MAX_LINE), expected);
    }

    #[test]
    fn a_line_that_is_too_long_is_one_error() {
        let good = "{\"prediction\": \"a\", \"gold\": \"a\"}";
        let most = good.len() as u64;
        let output = written("exact", &format!("{}\n{good}\n{}\n{good}", "x".repeat(200), " x".repeat(100)), most);
        let errors: Vec<bool> = output.lines().map(|line| line.starts_with("{\"error\"")).collect();
        assert_eq!(errors, [true, false, true, false], "{output}");
    }

    #[test]
    fn lines_of_others_drive_no_terminal() {
        let input = "{\"prediction\": \"a\u{9b}2J\u{202e}\", \"gold\": \"a\", \"category\": 4}\n[\"\u{9b}2J\"]\n";
        let shown = written("locomo-f1", input, MAX_LINE);
        assert!(
            shown.contains("\\u009b2J\\u202e") && !shown.contains(|c: char| text::acts(c) && c != '\n'),
            "{shown:?}"
        );
    }
}
