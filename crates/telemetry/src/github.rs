//! What the runner of GitHub's workflows obeys in the log of a step: what others have put into a line is no command to it.

use std::{borrow::Cow, sync::LazyLock};

/// Whether this is a step of a workflow on GitHub, whose runner reads what it prints.
#[must_use]
pub fn on_github() -> bool {
    static ON: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true"));
    *ON
}

/// A text as it may stand in the log of whoever runs this process.
#[must_use]
pub fn logged(text: &str) -> Cow<'_, str> {
    if on_github() { without_commands(text) } else { text.into() }
}

/// JSON as it may stand there: it says the same.
#[must_use]
pub fn logged_json(json: &str) -> Cow<'_, str> {
    if on_github() { json_without_commands(json) } else { json.into() }
}

/// How a command begins that GitHub's runner finds anywhere in a line.
const ANYWHERE: &str = "##[";

/// A text of which GitHub's runner obeys nothing: it looks for `::` where a line begins, behind blanks too, and for `##[` anywhere.
pub(crate) fn without_commands(text: &str) -> Cow<'_, str> {
    let begins = |line: &str| line.trim_start().starts_with("::");
    let ends = ['\n', '\r'];
    if !text.contains(ANYWHERE) && !text.split(ends).any(begins) {
        return text.into();
    }
    let harmless = |line: &str| {
        let line = line.replace(ANYWHERE, "## [");
        if begins(&line) { line.replacen("::", ": :", 1) } else { line }
    };
    text.split_inclusive(ends).map(harmless).collect::<String>().into()
}

/// The same JSON: it stands in strings only, and no line of it begins with `::`.
fn json_without_commands(json: &str) -> Cow<'_, str> {
    if json.contains(ANYWHERE) { json.replace(ANYWHERE, r"##\u005b").into() } else { json.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_are_no_commands() {
        for (given, seen) in [
            ("a ##[set-output name=x]y", "a ## [set-output name=x]y"),
            ("::set-output name=x::y", ": :set-output name=x::y"),
            ("one\n  ::add-mask::x\r\u{a0}::stop-commands::t\n", "one\n  : :add-mask::x\r\u{a0}: :stop-commands::t\n"),
            ("##[group]\n::endgroup::", "## [group]\n: :endgroup::"),
            ("std::fmt, # [x], ##x[", "std::fmt, # [x], ##x["),
        ] {
            assert_eq!(without_commands(given), seen);
        }
    }

    #[test]
    fn json_without_commands_says_the_same() {
        let line = serde_json::json!({ "answer": "##[set-env name=x]y", "\\##[": "::error::" });
        let told = serde_json::to_string_pretty(&line).expect("is written");
        let harmless = json_without_commands(&told);
        assert!(!harmless.contains(ANYWHERE) && without_commands(&harmless) == harmless, "{harmless}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&harmless).expect("is JSON"), line);
    }
}
