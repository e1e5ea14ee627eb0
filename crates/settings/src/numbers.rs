//! Numbers on a command line that are refused, in words that say what would be taken: the library's own words are those of its
//! programmers.

use std::{
    error::Error,
    ffi::OsString,
    num::{IntErrorKind, ParseFloatError, ParseIntError},
};

use clap::error::{ContextKind, ContextValue};

/// What is wrong with a number among the words that were typed, where that is what an error is about.
#[must_use]
pub fn problem(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    problem_of((text(ContextKind::InvalidArg), text(ContextKind::InvalidValue)), error.source(), words)
}

/// The same of a flag and its value, as far as they are known, and of what refused the value.
fn problem_of(
    about: (Option<&str>, Option<&str>),
    why: Option<&(dyn Error + 'static)>,
    words: &[OsString],
) -> Option<String> {
    match (about, why) {
        ((Some(flag), Some(value)), Some(why)) => refused(flag, value, why),
        ((Some(flag), None), _) => taken_for_flags(flag, words),
        _ => None,
    }
}

/// What is wrong with the value of a flag.
fn refused(flag: &str, value: &str, why: &(dyn Error + 'static)) -> Option<String> {
    // what a number is kept in is no bound that a person would know
    let is_beyond_its_bytes = why.to_string().ends_with(&format!("..={}", u32::MAX));
    let of_whole_number = why.downcast_ref::<ParseIntError>();
    if (of_whole_number.is_some() || is_beyond_its_bytes) && is_below_zero(value) {
        return Some(format!("{flag}: {}", too_low(value)));
    }
    let problem = match of_whole_number.map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => "is too large",
        Some(_) => "is no whole number",
        None if is_beyond_its_bytes => match value.parse::<i64>() {
            Ok(n) if n > i64::from(u32::MAX) => "is too large",
            _ => "is too small",
        },
        None => why.downcast_ref::<ParseFloatError>().map(|_| "is no number; write 0.5, not 0,5 or 50%")?,
    };
    Some(format!("{flag}: '{value}' {problem}"))
}

/// What is wrong where a number below 0 was taken for flags of one letter, of which `flag` is the first that is not known. It is the
/// value of the flag that was typed before it.
fn taken_for_flags(flag: &str, words: &[OsString]) -> Option<String> {
    let typed: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let at = typed.iter().position(|word| word.starts_with(flag) && is_below_zero(word))?;
    let value = too_low(typed[at]);
    let before = at.checked_sub(1).and_then(|at| typed.get(at)).filter(|word| word.starts_with('-'));
    Some(before.map_or_else(|| value.clone(), |flag| format!("{flag}: {value}")))
}

/// Whether a word begins as a number below 0 does: `-5`, `-.5`, `-5d`, `-1,2`.
fn is_below_zero(word: &str) -> bool {
    let number = word.strip_prefix('-').map(|rest| rest.strip_prefix('.').unwrap_or(rest));
    number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
}

fn too_low(value: &str) -> String {
    format!("'{value}': no number below 0 is taken here")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_refused_in_words_that_say_what_would_be_taken() {
        let whole = |value: &str| refused("-n <N>", value, &value.parse::<u64>().expect_err("is refused"));
        assert_eq!(whole("1.5").as_deref(), Some("-n <N>: '1.5' is no whole number"));
        assert_eq!(whole("99999999999999999999").as_deref(), Some("-n <N>: '99999999999999999999' is too large"));
        assert_eq!(whole("-5").as_deref(), Some("-n <N>: '-5': no number below 0 is taken here"));
        let share = |value: &str| refused("-f <F>", value, &value.parse::<f64>().expect_err("is refused"));
        assert_eq!(share("2%").as_deref(), Some("-f <F>: '2%' is no number; write 0.5, not 0,5 or 50%"));
        assert_eq!(refused("-n <N>", "x", &std::io::Error::other("of something else")), None);
    }

    #[test]
    fn a_number_below_0_is_no_flag() {
        let told = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            problem_of((Some("-5"), None), None, &words)
        };
        for (line, value) in [
            ("list --since -5d", "--since: '-5d'"),
            ("sim --latency-ms -5", "--latency-ms: '-5'"),
            ("submit --price -5,2", "--price: '-5,2'"),
            ("list -5", "'-5'"),
        ] {
            assert_eq!(told(line), Some(format!("{value}: no number below 0 is taken here")));
        }
        assert_eq!(told("list -x"), None);
        assert!(is_below_zero("-.5") && !is_below_zero("-x5") && !is_below_zero("--5") && !is_below_zero("5"));
    }
}
