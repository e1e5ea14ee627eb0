//! Text rules of the Python that published scores were made with: white space, trimming, lower case.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, HirKind};

/// True for the characters that Python's `str.split()` and `str.strip()` treat as white space: Unicode `White_Space`
/// and the four ASCII separators U+001C to U+001F.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Like `str.strip()`.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// True for word characters as regular expressions count them (letters, marks, decimal digits, connectors): those of
/// Python's package `regex`.
pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || (!c.is_ascii() && regex_syntax::is_word_character(c))
}

/// True for word characters of Python's own `re`: letters and numbers of every kind (`²` too), but no marks, and none of
/// the circled letters that elsewhere count as letters.
pub(super) fn is_word_of_re(c: char) -> bool {
    static LETTERS_AND_NUMBERS: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
        let class = regex_syntax::parse(r"[\p{L}\p{N}]").map(|class| class.into_kind());
        let Ok(HirKind::Class(Class::Unicode(class))) = class else { return Vec::new() };
        class.ranges().iter().map(|range| (range.start(), range.end())).collect()
    });
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    let ranges = &LETTERS_AND_NUMBERS;
    let at = ranges.partition_point(|(_, end)| *end < c);
    ranges.get(at).is_some_and(|(start, _)| *start <= c)
}

/// True when the lower-cased `text` contains one of `phrases` (which are lower case).
pub(super) fn contains_any<P: AsRef<str>>(text: &str, phrases: &[P]) -> bool {
    let lower = text.to_lowercase();
    phrases.iter().any(|phrase| lower.contains(phrase.as_ref()))
}

/// Whether some words stand in a text of small letters, between the ends of words and numbers: `15` neither in `2015` nor in
/// `1,150` or `15.5`.
pub(super) fn stands_in(text: &str, words: &str) -> bool {
    let words = words.trim().to_lowercase();
    !words.is_empty()
        && text.match_indices(&words).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + words.len()..]);
            !goes_on(words.chars().next(), before.chars().rev()) && !goes_on(words.chars().next_back(), after.chars())
        })
}

/// Whether a word or a number goes on beyond its first or last character: `next` are the characters from there outwards.
fn goes_on(edge: Option<char>, mut next: impl Iterator<Item = char>) -> bool {
    let (first, second) = (next.next(), next.next());
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    match first {
        Some('.' | ',') => is_digit(edge) && is_digit(second),
        Some(c) => is_word(c) && edge.is_some_and(is_word),
        None => false,
    }
}

/// 1 or 0.
pub(super) fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_are_whole() {
        for (text, words, stands) in [
            ("it is 15.", "15", true),
            ("in 2015", "15", false),
            ("1,150 or 15.5 or 0.15", "15", false),
            ("15, 16", "15", true),
            ("submitted", "MIT", false),
            ("by mit's press", "MIT", true),
            ("due 13 may", "3 May", false),
            ("costs $410,000,000", "410,000", false),
            ("café", "CAFÉ", true),
            ("cafés", "café", false),
            ("10.1.2.3", "10.1.2.30", false),
            ("anything", " ", false),
        ] {
            assert_eq!(stands_in(text, words), stands, "{text}: {words}");
        }
    }

    #[test]
    fn separators_are_white_space() {
        assert_eq!(trim("\u{1c} a b\u{3000}\u{85}\n"), "a b");
        assert!(!is_space('\u{200b}'));
    }

    #[test]
    fn words_are_letters_marks_digits_and_connectors() {
        for c in ['a', 'Z', '0', '_', 'é', '\u{301}', 'ß', '七', '\u{203f}'] {
            assert!(is_word(c), "{c:?}");
        }
        for c in ['-', '’', '“', '²', '½', '—', ' ', '\u{0}'] {
            assert!(!is_word(c), "{c:?}");
        }
    }

    #[test]
    fn words_of_re_are_letters_and_numbers_without_marks() {
        for c in ['a', 'Z', '0', '_', 'é', 'ß', '七', '²', '½', 'Ⅷ', 'अ'] {
            assert!(is_word_of_re(c), "{c:?}");
        }
        for c in ['-', '’', '—', ' ', '\u{0}', '\u{301}', '\u{93e}', 'ⓐ', '\u{203f}', '\u{10ffff}'] {
            assert!(!is_word_of_re(c), "{c:?}");
        }
    }
}
