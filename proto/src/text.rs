//! Words of others on a screen: what moves a cursor, hides a line or turns the direction of writing is taken out in one place.

use std::{borrow::Cow, fmt::Write as _};

/// Whether a character does something else than being read: control characters of both sets, marks and overrides of the
/// direction of writing, separators of lines, invisible marks and tags. Joiners stay: scripts and emoji need them.
#[must_use]
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Text of several lines for a screen: what [`acts`] becomes a blank; ends of lines and tabs stay.
///
/// ```
/// assert_eq!(bench_proto::text::plain("a\u{1b}[2Jb\n\u{202e}c"), "a [2Jb\n c");
/// ```
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    let bad = |c: char| acts(c) && !matches!(c, '\n' | '\t');
    if text.contains(bad) { text.replace(bad, " ").into() } else { text.into() }
}

/// Text as part of one line: ends of lines and tabs become blanks too.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(acts) { text.replace(acts, " ").into() } else { text.into() }
}

/// JSON that says the same without such characters: they are written as `\uXXXX`. They stand in strings only, ends of lines aside.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    let bad = |c: char| acts(c) && c != '\n';
    if !text.contains(bad) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if bad(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // writing to a String cannot fail
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

/// The first number in JSON that is none: `NaN` and `Infinity`, which JSON does not have and Python writes, or one beyond all
/// others (`1e999`). A long one is cut; what stands in strings is no number.
///
/// ```
/// assert_eq!(bench_proto::text::not_finite(r#"{"text": "score: NaN", "score": -Infinity}"#), Some("-Infinity"));
/// ```
#[must_use]
pub fn not_finite(json: &str) -> Option<&str> {
    const LONGEST: usize = 40;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let (mut rest, mut before) = (json, ' ');
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => end_of_string(rest),
            c if is_part(c) => rest.find(|c: char| !is_part(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        // elsewhere it is a word of a text that is no JSON
        if matches!(before, ':' | ',' | '[') && is_not_finite(token) {
            return Some(&token[..token.len().min(LONGEST)]);
        }
        if !c.is_whitespace() {
            before = c;
        }
        rest = behind;
    }
    None
}

fn is_not_finite(token: &str) -> bool {
    let is_number = token.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    matches!(token, "NaN" | "Infinity" | "-Infinity") || (is_number && token.parse::<f64>().is_ok_and(f64::is_infinite))
}

/// Bytes of a text up to the end of the string that it begins with.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    let ends = |(_, c): &(usize, char)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    };
    text.char_indices().skip(1).find(ends).map_or(text.len(), |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_acts_is_taken_out_and_what_is_read_stays() {
        for bad in
            ["\u{1b}]0;t\u{7}", "\u{9b}2J", "\r", "\u{7f}", "\u{202e}", "\u{2066}", "\u{200f}", "\u{2028}", "\u{e0041}"]
        {
            assert!(!plain(bad).chars().any(acts), "{bad:?}");
        }
        for good in ["Zürich – 東京", "نعم", "क\u{94d}\u{200d}ष", "👩\u{200d}💻", "a\tb\nc", ""] {
            assert!(matches!(plain(good), Cow::Borrowed(same) if same == good), "{good:?}");
        }
        assert_eq!(one_line("a\r\nb\tc"), "a  b c");
    }

    #[test]
    fn a_number_that_is_none_is_found_outside_of_strings() {
        for (json, found) in [
            (r#"{"score": NaN}"#, Some("NaN")),
            ("[1, Infinity]", Some("Infinity")),
            ("{\"score\":\n -Infinity }", Some("-Infinity")),
            (r#"{"a": "\"", "score": 1e999}"#, Some("1e999")),
            ("[-1E+400]", Some("-1E+400")),
            (r#"{"a": "x \\", "score": NaN"#, Some("NaN")),
            (r#"{"score": 1e308, "nan": "Infinity", "b": ": NaN"}"#, None),
            (r#"{"a": "cut \": NaN"#, None),
            ("to Infinity", None),
            ("{\"ä\": \"ö\"}", None),
            ("\"", None),
            ("", None),
        ] {
            assert_eq!(not_finite(json), found, "{json}");
        }
        let long = format!("[{}]", "9".repeat(1000));
        assert_eq!(not_finite(&long).map(str::len), Some(40));
    }

    proptest! {
        #[test]
        fn nothing_that_acts_is_left(text in any::<String>()) {
            prop_assert!(!plain(&text).chars().any(|c| acts(c) && !matches!(c, '\n' | '\t')));
            prop_assert!(!one_line(&text).chars().any(acts));
        }

        #[test]
        fn what_json_can_say_is_finite(text in any::<String>(), number in -1e300..1e300_f64) {
            let written = serde_json::json!({ "a": text, "b": [number, 1], "c": number }).to_string();
            prop_assert_eq!(not_finite(&written), None);
            let _ = not_finite(&text);
        }

        #[test]
        fn json_says_the_same(text in any::<String>()) {
            let written = serde_json::to_string_pretty(&[&text]).expect("is written");
            let shown = json(&written);
            prop_assert!(!shown.chars().any(|c| acts(c) && c != '\n'));
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&shown).expect("is read"), vec![text]);
        }
    }
}
