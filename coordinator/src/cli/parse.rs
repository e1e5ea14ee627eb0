//! The command line read, with numbers that are refused in words that say what would be taken.

use std::io::{ErrorKind as IoErrorKind, Write as _};

use bench_proto::text::acts;
use bench_settings::numbers;
use clap::Parser as _;

use super::{Cli, Several};

/// Reads the command line of this process; help, and whatever cannot be read, end it with clap's exit codes (0 and 2).
#[must_use]
pub fn parse() -> Cli {
    let words: Vec<_> = std::env::args_os().collect();
    let several = Several::find(&words);
    let parsed = Cli::try_parse_from(several.as_ref().map_or_else(|| words.clone(), Several::first)).map(|mut cli| {
        cli.several = several;
        cli
    });
    parsed.unwrap_or_else(|error| match numbers::problem(&error, &words) {
        Some(problem) => {
            crate::out::note(&format!("error: {problem}\n\nFor more information, try '--help'."));
            std::process::exit(2)
        }
        // clap repeats what was typed as it is, and that may have come from elsewhere
        None if error.use_stderr() && words.iter().any(|word| word.to_string_lossy().contains(acts)) => {
            crate::out::note(error.to_string().trim_end());
            std::process::exit(error.exit_code())
        }
        None => end(&error),
    })
}

/// Prints help or what is wrong, as clap does. Help that did not reach its reader is no success.
fn end(error: &clap::Error) -> ! {
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    let code = match printed {
        Err(why) if error.exit_code() == 0 => {
            if why.kind() != IoErrorKind::BrokenPipe {
                crate::out::note(&format!("error: the result could not be written to standard output: {why}"));
            }
            4
        }
        _ => error.exit_code(),
    };
    std::process::exit(code)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn problem(words: &str) -> Option<String> {
        let line: Vec<OsString> = ["bench-coord"].into_iter().chain(words.split(' ')).map(OsString::from).collect();
        numbers::problem(&Cli::try_parse_from(&line).expect_err("is refused"), &line)
    }

    #[test]
    fn numbers_are_refused_in_words_of_their_own() {
        let refused = [
            "submit --concurrency -5",
            "submit --concurrency 1.5",
            "submit --concurrency 99999999999999999999",
            "submit --top-k 99999999999",
            "submit --top-k=-1",
            "list -n 0",
            "submit --floor -0.1",
            "submit --limit=-5",
            "submit --price -1,2",
            "list --since -5d",
            "compare a b --tolerance 2%",
        ];
        insta::assert_snapshot!(refused.map(|words| problem(words).unwrap_or_default()).join("\n"), @r"
        --concurrency: '-5': no number below 0 is taken here
        --concurrency <N>: '1.5' is no whole number
        --concurrency <N>: '99999999999999999999' is too large
        --top-k <K>: '99999999999' is too large
        --top-k <K>: '-1': no number below 0 is taken here
        --limit <LIMIT>: '0' is too small
        --floor: '-0.1': no number below 0 is taken here
        --limit <N>: '-5': no number below 0 is taken here
        --price: '-1,2': no number below 0 is taken here
        --since: '-5d': no number below 0 is taken here
        --tolerance <FRACTION>: '2%' is no number; write 0.5, not 0,5 or 50%
        ");
        assert_eq!(problem("submit --no-such-flag"), None, "is no number");
        for floor in ["--floor=1.5", "--floor=-0.1", "--floor=NaN", "--floor=inf"] {
            let line = ["bench-coord", "resume", "r", floor];
            let refused = Cli::try_parse_from(line).expect_err("is no share").to_string();
            assert!(refused.contains("give a fraction from 0 to 1"), "{floor}: {refused}");
        }
        assert_eq!(problem("report"), None, "lacks a word");
    }
}
