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

    proptest! {
        #[test]
        fn nothing_that_acts_is_left(text in any::<String>()) {
            prop_assert!(!plain(&text).chars().any(|c| acts(c) && !matches!(c, '\n' | '\t')));
            prop_assert!(!one_line(&text).chars().any(acts));
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
