//! Text rules of the Python that published scores were made with: white space, trimming, lower case.

/// True for the characters that Python's `str.split()` and `str.strip()` treat as white space: Unicode `White_Space`
/// and the four ASCII separators U+001C to U+001F.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Like `str.strip()`.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// True for word characters as regular expressions count them (letters, marks, decimal digits, connectors).
pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || (!c.is_ascii() && regex_syntax::is_word_character(c))
}

/// True when the lower-cased `text` contains one of `phrases` (which are lower case).
pub(super) fn contains_any<P: AsRef<str>>(text: &str, phrases: &[P]) -> bool {
    let lower = text.to_lowercase();
    phrases.iter().any(|phrase| lower.contains(phrase.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
