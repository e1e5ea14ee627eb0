//! The command line read, with numbers that are refused in words that say what would be taken.

use std::{
    error::Error as _,
    io::{ErrorKind as IoErrorKind, Write as _},
    num::{IntErrorKind, ParseFloatError, ParseIntError},
};

use clap::{
    Parser as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{Cli, Several};

/// Reads the command line of this process; help, and whatever cannot be read, end it with clap's exit codes (0 and 2).
#[must_use]
pub fn parse() -> Cli {
    let words: Vec<_> = std::env::args_os().collect();
    let several = Several::find(&words);
    let parsed = Cli::try_parse_from(several.as_ref().map_or(words, Several::first)).map(|mut cli| {
        cli.several = several;
        cli
    });
    parsed.unwrap_or_else(|error| match number_problem(&error) {
        Some(problem) => {
            crate::out::note(&format!("error: {problem}\n\nFor more information, try '--help'."));
            std::process::exit(2)
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

/// What is wrong with a number, where that is what an error is about.
fn number_problem(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::ValueValidation => {
            let (flag, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
            let source = error.source()?;
            let problem = if let Some(error) = source.downcast_ref::<ParseIntError>() {
                match error.kind() {
                    IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "is too large",
                    _ => "is no whole number",
                }
            } else {
                source.downcast_ref::<ParseFloatError>().map(|_| "is no number; write 0.5, not 0,5 or 50%")?
            };
            Some(format!("{flag}: '{value}' {problem}"))
        }
        // clap takes the number for a flag of this name
        ErrorKind::UnknownArgument => {
            let value = text(ContextKind::InvalidArg)?;
            let is_below_zero = value.strip_prefix('-').is_some_and(|digits| digits.parse::<f64>().is_ok());
            is_below_zero.then(|| format!("'{value}': no number below 0 is taken here"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(words: &str) -> Option<String> {
        let line = ["bench-coord"].into_iter().chain(words.split(' '));
        number_problem(&Cli::try_parse_from(line).expect_err("is refused"))
    }

    #[test]
    fn numbers_are_refused_in_words_of_their_own() {
        let refused = [
            "submit --concurrency -5",
            "submit --concurrency 1.5",
            "submit --concurrency 99999999999999999999",
            "compare a b --tolerance 2%",
        ];
        insta::assert_snapshot!(refused.map(|words| problem(words).unwrap_or_default()).join("\n"), @r"
        '-5': no number below 0 is taken here
        --concurrency <N>: '1.5' is no whole number
        --concurrency <N>: '99999999999999999999' is too large
        --tolerance <FRACTION>: '2%' is no number; write 0.5, not 0,5 or 50%
        ");
        assert_eq!(problem("submit --no-such-flag"), None, "is no number");
        assert_eq!(problem("report"), None, "lacks a word");
    }
}
