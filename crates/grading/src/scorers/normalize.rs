//! Answer normalisation of the official LoCoMo evaluation.
//!
//! In this order: delete commas, lower-case, delete ASCII punctuation (nothing is put in its place: `well-known` becomes
//! one token, curly quotes stay), replace the whole words *a, an, the, and* by a space, collapse white space.

use super::text::{is_space, is_word};

/// Calls `emit` with every token of the normalised text, in order. `scratch` is reused between calls.
pub fn for_each_token(text: &str, scratch: &mut String, mut emit: impl FnMut(&str)) {
    scratch.clear();
    if text.is_ascii() {
        for byte in text.bytes() {
            match byte {
                b'\t'..=b'\r' | b'\x1c'..=b' ' => flush(scratch, &mut emit),
                _ if byte.is_ascii_punctuation() => {}
                _ => scratch.push(char::from(byte.to_ascii_lowercase())),
            }
        }
    } else {
        // commas go first: whether a capital sigma ends its word is decided without them, but with other punctuation
        let lower = text.replace(',', "").to_lowercase();
        for c in lower.chars() {
            if is_space(c) {
                flush(scratch, &mut emit);
            } else if !c.is_ascii_punctuation() {
                scratch.push(c);
            }
        }
    }
    flush(scratch, &mut emit);
}

/// The normalised text: its tokens joined by single spaces.
#[must_use]
pub fn normalize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for_each_token(text, &mut String::new(), |token| {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(token);
    });
    out
}

/// Emits what is left of a run without white space once articles are gone, and clears it.
fn flush(run: &mut String, emit: &mut impl FnMut(&str)) {
    if run.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        if !run.is_empty() && !is_article(run) {
            emit(run);
        }
    } else {
        emit_around_articles(run, emit);
    }
    run.clear();
}

/// The rare case of a run with characters that are no letters: an article between word boundaries splits it.
fn emit_around_articles(run: &str, emit: &mut impl FnMut(&str)) {
    let mut start = 0; // of what is kept
    let mut word = 0; // of the current word
    let mut cut = |word: usize, end: usize| {
        if is_article(&run[word..end]) {
            if start < word {
                emit(&run[start..word]);
            }
            start = end;
        }
    };
    for (at, c) in run.char_indices() {
        if !is_word(c) {
            cut(word, at);
            word = at + c.len_utf8();
        }
    }
    cut(word, run.len());
    if start < run.len() {
        emit(&run[start..]);
    }
}

fn is_article(word: &str) -> bool {
    matches!(word, "a" | "an" | "the" | "and")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scorers::reference;

    #[test]
    fn rules_in_their_order() {
        for (text, expected) in [
            ("", ""),
            ("the, an AND a", ""),
            ("1,000 dollars", "1000 dollars"),
            ("a well-known  band\tand the_Who!", "wellknown band thewho"),
            ("th,e end", "end"),
            ("a.n apple", "apple"),
            ("“the” — and’s", "“ ” — ’s"),
            ("a\u{301} la carte", "a\u{301} la carte"),
            ("ΟΔΟΣ,Α ΟΔΟΣ", "οδοσα οδος"),
            ("İ", "i\u{307}"),
            ("x\u{1c}y\u{0}the\u{0}z", "x y\u{0} \u{0}z"),
        ] {
            assert_eq!(normalize(text), expected, "{text:?}");
        }
    }

    #[test]
    fn locomo_normalize() {
        if let Some(vectors) = reference::json("vectors/astrocyte-and-jeffs-brain.json") {
            let cases = reference::list(&vectors["sections"]["locomo_normalize"]["vectors"]);
            for case in cases {
                assert_eq!(normalize(reference::str(&case["input"])), reference::str(&case["official"]));
            }
        }
        if let Some(vectors) = reference::json("vectors/locomo-f1.json") {
            for case in reference::list(&vectors["vectors"]).iter().filter(|case| case.get("norm_gold").is_some()) {
                assert_eq!(normalize(reference::str(&case["prediction"])), reference::str(&case["norm_prediction"]));
                assert_eq!(normalize(reference::str(&case["gold_used"])), reference::str(&case["norm_gold"]));
            }
        }
    }

    /// The rules again, step by step on whole strings.
    fn naive(text: &str) -> String {
        let text = text.replace(',', "").to_lowercase();
        let text: String = text.chars().filter(|c| !c.is_ascii_punctuation()).collect();
        let chars: Vec<char> = text.chars().collect();
        let mut out = String::new();
        let mut at = 0;
        while at < chars.len() {
            let boundary = at == 0 || is_word(chars[at]) != is_word(chars[at - 1]);
            let article = ["and", "the", "an", "a"].into_iter().find(|article| {
                let end = at + article.len();
                boundary
                    && end <= chars.len()
                    && chars[at..end].iter().copied().eq(article.chars())
                    && (end == chars.len() || !is_word(chars[end]))
            });
            match article {
                Some(article) => {
                    out.push(' ');
                    at += article.len();
                }
                None => {
                    out.push(chars[at]);
                    at += 1;
                }
            }
        }
        out.split(is_space).filter(|token| !token.is_empty()).collect::<Vec<_>>().join(" ")
    }

    proptest! {
        #[test]
        fn equals_the_step_by_step_form(text in "([Tt]he|an?|AND|[a-zA-Z0-9'’“”,.;_ \t-]|\\PC|[\u{0}-\u{20}]){0,24}") {
            prop_assert_eq!(normalize(&text), naive(&text));
        }
    }
}
