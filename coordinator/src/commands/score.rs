//! `score`: JSON lines in, the same objects with `score` (or `error`) out, in order.

use std::io::{BufRead, BufReader, BufWriter, Read, Write};

use bench_grading::{
    counting,
    scorers::{registry, score_line::LineScorer},
};
use bench_proto::text;
use serde_json::{Value, json};

use crate::{
    cli::ScoreArgs,
    exit::{CliError, CliResult, Exit},
    out,
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
    let mut output = BufWriter::new(std::io::stdout().lock());
    let written = score_lines(scorer, BufReader::new(input), &mut output).and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            out::lose(&error);
            Ok(Exit::Done)
        }
        Err(error) => Err(CliError::infrastructure(format!("scoring stopped: {error}"))),
        Ok(()) => Ok(Exit::Done),
    }
}

/// Scores each line; a line that cannot be read becomes an object with `error`, so that output lines match input lines.
fn score_lines(scorer: LineScorer, mut input: impl BufRead, output: &mut impl Write) -> std::io::Result<()> {
    let mut line = Vec::new();
    // some editors put one before every file
    let mut mark: &[u8] = "\u{feff}".as_bytes();
    loop {
        line.clear();
        let read = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let line = line.strip_prefix(std::mem::take(&mut mark)).unwrap_or(&line);
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let scored = match serde_json::from_slice::<Value>(line) {
            Ok(object @ Value::Object(_)) => scorer.score(object),
            Ok(other) => json!({"error": format!("expected an object, found {other}")}),
            Err(error) => json!({"error": format!("not JSON: {error}")}),
        };
        // lines of others would drive the terminal that shows what is wrong with them
        writeln!(output, "{}", text::json(&scored.to_string()))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_out_for_each_line_in() {
        let input =
            "\u{feff}{\"id\": 1, \"prediction\": \"Paris\", \"gold\": \"paris\", \"category\": 4}\n\nnonsense\n[1]\n";
        let mut output = Vec::new();
        score_lines(LineScorer::find("locomo-f1").expect("known"), input.as_bytes(), &mut output)
            .expect("memory takes everything");
        let lines: Vec<Value> = output
            .split(|b| *b == b'\n')
            .filter(|l| !l.is_empty())
            .map(|l| serde_json::from_slice(l).expect("JSON"))
            .collect();
        assert_eq!(lines.len(), 3);
        assert_eq!((&lines[0]["id"], &lines[0]["score"]), (&json!(1), &json!(1.0)));
        assert!(lines[1]["error"].is_string() && lines[1].get("score").is_none());
        assert!(lines[2]["error"].is_string());
    }

    #[test]
    fn lines_of_others_drive_no_terminal() {
        let input = "{\"prediction\": \"a\u{9b}2J\u{202e}\", \"gold\": \"a\", \"category\": 4}\n[\"\u{9b}2J\"]\n";
        let mut output = Vec::new();
        score_lines(LineScorer::find("locomo-f1").expect("known"), input.as_bytes(), &mut output)
            .expect("memory takes everything");
        let shown = String::from_utf8(output).expect("is text");
        assert!(
            shown.contains("\\u009b2J\\u202e") && !shown.contains(|c: char| text::acts(c) && c != '\n'),
            "{shown:?}"
        );
    }
}
