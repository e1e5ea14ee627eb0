//! The Porter stemmer with the extensions of NLTK's default mode: the one behind LoCoMo's published token F1.
//!
//! Martin Porter's algorithm of 1980 plus what NLTK adds: a list of irregular forms, words of up to two letters stay,
//! `ies`/`ied` of four-letter words become `ie`, final `y` turns into `i` only behind a consonant that is not the first
//! letter, `bli` for `abli`, `alli` twice, `fulli`, `logi`, and a two-letter vowel-consonant word counts as short.

use super::stem::StemBuffer;

/// Stems a lower-case word.
pub fn stem<'a>(word: &str, buffer: &'a mut StemBuffer) -> &'a str {
    buffer.load(word);
    if let Some(form) = irregular(&buffer.word) {
        buffer.word.clear();
        buffer.word.extend_from_slice(form);
    } else if buffer.word.len() > 2 {
        step_1a(buffer);
        step_1b(buffer);
        step_1c(buffer);
        step_2(buffer);
        step_3(buffer);
        step_4(buffer);
        step_5(buffer);
    }
    buffer.text(word)
}

/// Words that the rules would spoil.
fn irregular(word: &[u8]) -> Option<&'static [u8]> {
    Some(match word {
        b"sky" | b"skies" => b"sky",
        b"dying" => b"die",
        b"lying" => b"lie",
        b"tying" => b"tie",
        b"news" => b"news",
        b"innings" | b"inning" => b"inning",
        b"outings" | b"outing" => b"outing",
        b"cannings" | b"canning" => b"canning",
        b"howe" => b"howe",
        b"proceed" => b"proceed",
        b"exceed" => b"exceed",
        b"succeed" => b"succeed",
        _ => return None,
    })
}

/// Whether a letter is a vowel, given its place and whether the letter before it is one: `y` is one behind a consonant.
fn is_vowel(byte: u8, at: usize, after_vowel: bool) -> bool {
    match byte {
        b'a' | b'e' | b'i' | b'o' | b'u' => true,
        b'y' => at > 0 && !after_vowel,
        _ => false,
    }
}

/// Whether the letter at `at` is a vowel.
fn vowel_at(word: &[u8], at: usize) -> bool {
    // a run of y alternates, so it has to be read from its start
    let run = word[..=at].iter().rev().take_while(|&&byte| byte == b'y').count();
    if run == 0 {
        return is_vowel(word[at], at, false);
    }
    let first = at + 1 - run;
    let first_is_vowel = first > 0 && !is_vowel(word[first - 1], first - 1, false);
    first_is_vowel == (run % 2 == 1)
}

/// Number of vowel-consonant sequences: the *m* of the paper.
fn measure(stem: &[u8]) -> u32 {
    let mut after_vowel = false;
    let mut count = 0;
    for (at, &byte) in stem.iter().enumerate() {
        let vowel = is_vowel(byte, at, after_vowel);
        count += u32::from(after_vowel && !vowel);
        after_vowel = vowel;
    }
    count
}

fn contains_vowel(stem: &[u8]) -> bool {
    (0..stem.len()).any(|at| vowel_at(stem, at))
}

fn ends_in_double_consonant(word: &[u8]) -> bool {
    let n = word.len();
    n >= 2 && word[n - 1] == word[n - 2] && !vowel_at(word, n - 1)
}

/// Ends in consonant, vowel, consonant other than w, x, y; or is vowel, consonant.
fn is_short(word: &[u8]) -> bool {
    match word.len() {
        0 | 1 => false,
        2 => vowel_at(word, 0) && !vowel_at(word, 1),
        n => {
            !vowel_at(word, n - 3)
                && vowel_at(word, n - 2)
                && !vowel_at(word, n - 1)
                && !matches!(word[n - 1], b'w' | b'x' | b'y')
        }
    }
}

/// The first rule whose suffix matches decides; its replacement happens when the rest has a measure above `above`.
fn apply(buffer: &mut StemBuffer, rules: &[(&[u8], &[u8])], above: u32) {
    if let Some((suffix, by)) = rules.iter().find(|(suffix, _)| buffer.word.ends_with(suffix))
        && measure(&buffer.word[..buffer.word.len() - suffix.len()]) > above
    {
        buffer.replace_end(suffix.len(), by);
    }
}

fn step_1a(buffer: &mut StemBuffer) {
    let word = &buffer.word;
    if word.ends_with(b"ies") {
        let cut = if word.len() == 4 { 1 } else { 2 };
        buffer.replace_end(cut, b"");
    } else if word.ends_with(b"sses") {
        buffer.replace_end(2, b"");
    } else if word.ends_with(b"s") && !word.ends_with(b"ss") {
        buffer.replace_end(1, b"");
    }
}

fn step_1b(buffer: &mut StemBuffer) {
    let word = &buffer.word;
    let n = word.len();
    if word.ends_with(b"ied") {
        let cut = if n == 4 { 1 } else { 2 };
        return buffer.replace_end(cut, b"");
    }
    if word.ends_with(b"eed") {
        if measure(&word[..n - 3]) > 0 {
            buffer.replace_end(1, b"");
        }
        return;
    }
    let cut = if word.ends_with(b"ed") {
        2
    } else if word.ends_with(b"ing") {
        3
    } else {
        return;
    };
    if !contains_vowel(&word[..n - cut]) {
        return;
    }
    buffer.replace_end(cut, b"");
    let word = &buffer.word;
    if word.ends_with(b"at") || word.ends_with(b"bl") || word.ends_with(b"iz") {
        buffer.word.push(b'e');
    } else if ends_in_double_consonant(word) {
        if !matches!(word.last(), Some(b'l' | b's' | b'z')) {
            buffer.word.pop();
        }
    } else if measure(word) == 1 && is_short(word) {
        buffer.word.push(b'e');
    }
}

fn step_1c(buffer: &mut StemBuffer) {
    let n = buffer.word.len();
    if n > 2 && buffer.word[n - 1] == b'y' && !vowel_at(&buffer.word, n - 2) {
        buffer.word[n - 1] = b'i';
    }
}

fn step_2(buffer: &mut StemBuffer) {
    const RULES: &[(&[u8], &[u8])] = &[
        (b"ational", b"ate"),
        (b"tional", b"tion"),
        (b"enci", b"ence"),
        (b"anci", b"ance"),
        (b"izer", b"ize"),
        (b"bli", b"ble"),
        (b"alli", b"al"),
        (b"entli", b"ent"),
        (b"eli", b"e"),
        (b"ousli", b"ous"),
        (b"ization", b"ize"),
        (b"ation", b"ate"),
        (b"ator", b"ate"),
        (b"alism", b"al"),
        (b"iveness", b"ive"),
        (b"fulness", b"ful"),
        (b"ousness", b"ous"),
        (b"aliti", b"al"),
        (b"iviti", b"ive"),
        (b"biliti", b"ble"),
        (b"fulli", b"ful"),
    ];
    let n = buffer.word.len();
    if buffer.word.ends_with(b"alli") && measure(&buffer.word[..n - 4]) > 0 {
        buffer.replace_end(2, b"");
        return step_2(buffer);
    }
    if buffer.word.ends_with(b"logi") {
        // the l counts with the rest
        if measure(&buffer.word[..n - 3]) > 0 {
            buffer.replace_end(1, b"");
        }
        return;
    }
    apply(buffer, RULES, 0);
}

fn step_3(buffer: &mut StemBuffer) {
    const RULES: &[(&[u8], &[u8])] = &[
        (b"icate", b"ic"),
        (b"ative", b""),
        (b"alize", b"al"),
        (b"iciti", b"ic"),
        (b"ical", b"ic"),
        (b"ful", b""),
        (b"ness", b""),
    ];
    apply(buffer, RULES, 0);
}

fn step_4(buffer: &mut StemBuffer) {
    const RULES: &[(&[u8], &[u8])] = &[
        (b"al", b""),
        (b"ance", b""),
        (b"ence", b""),
        (b"er", b""),
        (b"ic", b""),
        (b"able", b""),
        (b"ible", b""),
        (b"ant", b""),
        (b"ement", b""),
        (b"ment", b""),
        (b"ent", b""),
        (b"ou", b""),
        (b"ism", b""),
        (b"ate", b""),
        (b"iti", b""),
        (b"ous", b""),
        (b"ive", b""),
        (b"ize", b""),
    ];
    if let Some(rest) = buffer.word.strip_suffix(b"ion") {
        if matches!(rest.last(), Some(b's' | b't')) && measure(rest) > 1 {
            buffer.replace_end(3, b"");
        }
        return;
    }
    apply(buffer, RULES, 1);
}

fn step_5(buffer: &mut StemBuffer) {
    if let Some(rest) = buffer.word.strip_suffix(b"e") {
        let m = measure(rest);
        if m > 1 || (m == 1 && !is_short(rest)) {
            buffer.word.pop();
        }
    }
    if let Some(rest) = buffer.word.strip_suffix(b"l")
        && rest.ends_with(b"l")
        && measure(rest) > 1
    {
        buffer.word.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorers::reference;

    fn stemmed(word: &str) -> String {
        stem(word, &mut StemBuffer::default()).to_owned()
    }

    #[test]
    fn rules_and_extensions() {
        for (word, expected) in [
            ("", ""),
            ("is", "is"),
            ("was", "wa"),
            ("caresses", "caress"),
            ("ties", "tie"),
            ("ponies", "poni"),
            ("died", "die"),
            ("cried", "cri"),
            ("agreed", "agre"),
            ("feed", "feed"),
            ("sing", "sing"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("conflated", "conflat"),
            ("adding", "ad"),
            ("owed", "owe"),
            ("enjoy", "enjoy"),
            ("happy", "happi"),
            ("by", "by"),
            ("dying", "die"),
            ("skies", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("radically", "radic"),
            ("hopefully", "hope"),
            ("archaeology", "archaeolog"),
            ("geology", "geolog"),
            ("adoption", "adopt"),
            ("replacement", "replac"),
            ("controlling", "control"),
            ("probate", "probat"),
            ("cease", "ceas"),
            ("yyyying", "yyyi"),
            ("2022s", "2022"),
            ("cafés", "café"),
            ("jalapeños", "jalapeño"),
        ] {
            assert_eq!(stemmed(word), expected, "{word}");
        }
    }

    #[test]
    fn stems() {
        let Some(vectors) = reference::json("vectors/locomo-f1.json") else {
            return;
        };
        let stems = vectors["stems"].as_object().expect("the file has stems");
        assert!(stems.len() > 1000);
        for (word, expected) in stems {
            assert_eq!(stemmed(word), reference::str(expected), "{word}");
        }
    }
}
