//! The Snowball English stemmer (Porter2) as published in Snowball 3.1.
//!
//! Later than what most ports have: special beginnings (`inter`, `organ`, …), `past` as a short word, `-ogist`, and the
//! forms in `-eed` and `-ing` that step 1b leaves alone.

use super::stem::StemBuffer;

/// Stems a lower-case word.
pub fn stem<'a>(word: &str, buffer: &'a mut StemBuffer) -> &'a str {
    buffer.load(word);
    if let Some(form) = exception(&buffer.word) {
        buffer.word.clear();
        buffer.word.extend_from_slice(form);
        return buffer.text(word);
    }
    if buffer.word.len() < 3 {
        return buffer.text(word);
    }
    let word = match word.strip_prefix('\'') {
        Some(rest) => {
            buffer.word.remove(0);
            rest
        }
        None => word,
    };
    mark_consonant_y(&mut buffer.word);
    let regions = Regions::of_word(&buffer.word);
    step_1a(buffer);
    step_1b(buffer, regions);
    step_1c(buffer);
    step_2(buffer, regions);
    step_3(buffer, regions);
    step_4(buffer, regions);
    step_5(buffer, regions);
    for byte in &mut buffer.word {
        if *byte == b'Y' {
            *byte = b'y';
        }
    }
    buffer.text(word)
}

/// Words that the rules would spoil.
fn exception(word: &[u8]) -> Option<&'static [u8]> {
    Some(match word {
        b"skis" => b"ski",
        b"skies" | b"sky" => b"sky",
        b"idly" => b"idl",
        b"gently" => b"gentl",
        b"ugly" => b"ugli",
        b"early" => b"earli",
        b"only" => b"onli",
        b"singly" => b"singl",
        b"news" => b"news",
        b"howe" => b"howe",
        b"atlas" => b"atlas",
        b"cosmos" => b"cosmos",
        b"bias" => b"bias",
        b"andes" => b"andes",
        _ => return None,
    })
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// Writes `Y` for a `y` that is a consonant: the first letter, or behind a vowel.
fn mark_consonant_y(word: &mut [u8]) {
    let mut after_vowel = true;
    for byte in word {
        if *byte == b'y' && after_vowel {
            *byte = b'Y';
        }
        after_vowel = is_vowel(*byte);
    }
}

/// Where the regions R1 and R2 start.
#[derive(Clone, Copy)]
struct Regions {
    r1: usize,
    r2: usize,
}

impl Regions {
    fn of_word(word: &[u8]) -> Self {
        const BEGINNINGS: [&[u8]; 9] =
            [b"gener", b"commun", b"arsen", b"past", b"univers", b"later", b"emerg", b"organ", b"inter"];
        let r1 = BEGINNINGS
            .iter()
            .find(|beginning| word.starts_with(beginning))
            .map_or_else(|| after_vowel_and_consonant(word, 0), |beginning| beginning.len());
        Self { r1, r2: after_vowel_and_consonant(word, r1) }
    }
}

/// The place behind the first consonant that follows a vowel, from `start` on; the word's length when there is none.
fn after_vowel_and_consonant(word: &[u8], start: usize) -> usize {
    word[start..]
        .windows(2)
        .position(|pair| is_vowel(pair[0]) && !is_vowel(pair[1]))
        .map_or(word.len(), |at| start + at + 2)
}

/// Ends in a short syllable: consonant, vowel, consonant other than w, x, Y; or is vowel, consonant; or ends in `past`.
fn ends_short(word: &[u8]) -> bool {
    match word {
        [.., a, b, c] if !is_vowel(*a) && is_vowel(*b) && !is_vowel(*c) && !matches!(c, b'w' | b'x' | b'Y') => true,
        [a, b] => is_vowel(*a) && !is_vowel(*b),
        _ => word.ends_with(b"past"),
    }
}

/// The longest of the suffixes that the word ends in.
fn longest<'r, T>(word: &[u8], rules: &'r [(&'static [u8], T)]) -> Option<&'r (&'static [u8], T)> {
    rules.iter().filter(|(suffix, _)| word.ends_with(suffix)).max_by_key(|(suffix, _)| suffix.len())
}

fn step_1a(buffer: &mut StemBuffer) {
    for suffix in [&b"'s'"[..], b"'s", b"'"] {
        if buffer.word.ends_with(suffix) {
            buffer.replace_end(suffix.len(), b"");
            break;
        }
    }
    let word = &buffer.word;
    let n = word.len();
    if word.ends_with(b"sses") {
        buffer.replace_end(2, b"");
    } else if word.ends_with(b"ied") || word.ends_with(b"ies") {
        buffer.replace_end(if n >= 5 { 2 } else { 1 }, b"");
    } else if word.ends_with(b"s")
        && !word.ends_with(b"us")
        && !word.ends_with(b"ss")
        && word[..n.saturating_sub(2)].iter().any(|&byte| is_vowel(byte))
    {
        buffer.word.pop();
    }
}

fn step_1b(buffer: &mut StemBuffer, regions: Regions) {
    let word = &buffer.word;
    let n = word.len();
    for suffix in [&b"eedly"[..], b"eed"] {
        if let Some(rest) = word.strip_suffix(suffix) {
            if rest.len() >= regions.r1 && !matches!(rest, b"succ" | b"proc" | b"exc") {
                buffer.replace_end(suffix.len(), b"ee");
            }
            return;
        }
    }
    let Some(suffix) = [&b"ingly"[..], b"edly", b"ing", b"ed"].into_iter().find(|suffix| word.ends_with(suffix)) else {
        return;
    };
    let rest = &word[..n - suffix.len()];
    if suffix == b"ing" {
        if matches!(rest, b"inn" | b"out" | b"cann" | b"herr" | b"earr" | b"even") {
            return;
        }
        if let [consonant, b'y'] = rest
            && !is_vowel(*consonant)
        {
            return buffer.replace_end(4, b"ie");
        }
    }
    if !rest.iter().any(|&byte| is_vowel(byte)) {
        return;
    }
    buffer.replace_end(suffix.len(), b"");
    match buffer.word.as_slice() {
        [.., b'a', b't'] | [.., b'b', b'l'] | [.., b'i', b'z'] => buffer.word.push(b'e'),
        // add, egg, off stay
        [b'a' | b'e' | b'o', a, b] if is_double(*a, *b) => {}
        [.., a, b] if is_double(*a, *b) => {
            buffer.word.pop();
        }
        word if word.len() == regions.r1 && ends_short(word) => buffer.word.push(b'e'),
        _ => {}
    }
}

fn is_double(a: u8, b: u8) -> bool {
    a == b && matches!(a, b'b' | b'd' | b'f' | b'g' | b'm' | b'n' | b'p' | b'r' | b't')
}

fn step_1c(buffer: &mut StemBuffer) {
    if let [_, .., before, last @ (b'y' | b'Y')] = buffer.word.as_mut_slice()
        && !is_vowel(*before)
    {
        *last = b'i';
    }
}

fn step_2(buffer: &mut StemBuffer, regions: Regions) {
    const RULES: &[(&[u8], &[u8])] = &[
        (b"tional", b"tion"),
        (b"enci", b"ence"),
        (b"anci", b"ance"),
        (b"abli", b"able"),
        (b"entli", b"ent"),
        (b"izer", b"ize"),
        (b"ization", b"ize"),
        (b"ational", b"ate"),
        (b"ation", b"ate"),
        (b"ator", b"ate"),
        (b"alism", b"al"),
        (b"aliti", b"al"),
        (b"alli", b"al"),
        (b"fulness", b"ful"),
        (b"ousli", b"ous"),
        (b"ousness", b"ous"),
        (b"iveness", b"ive"),
        (b"iviti", b"ive"),
        (b"biliti", b"ble"),
        (b"bli", b"ble"),
        (b"ogist", b"og"),
        (b"ogi", b"og"),
        (b"fulli", b"ful"),
        (b"lessli", b"less"),
        (b"li", b""),
    ];
    let Some((suffix, by)) = longest(&buffer.word, RULES) else {
        return;
    };
    let rest = buffer.word.len() - suffix.len();
    let before = buffer.word[..rest].last().copied().unwrap_or(0);
    let allowed = match *suffix {
        b"ogi" => before == b'l',
        b"li" => b"cdeghkmnrt".contains(&before),
        _ => true,
    };
    if rest >= regions.r1 && allowed {
        buffer.replace_end(suffix.len(), by);
    }
}

fn step_3(buffer: &mut StemBuffer, regions: Regions) {
    const RULES: &[(&[u8], &[u8])] = &[
        (b"tional", b"tion"),
        (b"ational", b"ate"),
        (b"alize", b"al"),
        (b"icate", b"ic"),
        (b"iciti", b"ic"),
        (b"ical", b"ic"),
        (b"ful", b""),
        (b"ness", b""),
        (b"ative", b""),
    ];
    let Some((suffix, by)) = longest(&buffer.word, RULES) else {
        return;
    };
    let region = if *suffix == b"ative" { regions.r2 } else { regions.r1 };
    if buffer.word.len() - suffix.len() >= region {
        buffer.replace_end(suffix.len(), by);
    }
}

fn step_4(buffer: &mut StemBuffer, regions: Regions) {
    const RULES: &[(&[u8], ())] = &[
        (b"al", ()),
        (b"ance", ()),
        (b"ence", ()),
        (b"er", ()),
        (b"ic", ()),
        (b"able", ()),
        (b"ible", ()),
        (b"ant", ()),
        (b"ement", ()),
        (b"ment", ()),
        (b"ent", ()),
        (b"ism", ()),
        (b"ate", ()),
        (b"iti", ()),
        (b"ous", ()),
        (b"ive", ()),
        (b"ize", ()),
        (b"ion", ()),
    ];
    let Some((suffix, ())) = longest(&buffer.word, RULES) else {
        return;
    };
    let rest = buffer.word.len() - suffix.len();
    let allowed = *suffix != b"ion" || matches!(buffer.word[..rest].last(), Some(b's' | b't'));
    if rest >= regions.r2 && allowed {
        buffer.word.truncate(rest);
    }
}

fn step_5(buffer: &mut StemBuffer, regions: Regions) {
    let drop = match buffer.word.as_slice() {
        [rest @ .., b'e'] => rest.len() >= regions.r2 || (rest.len() >= regions.r1 && !ends_short(rest)),
        [rest @ .., b'l'] => rest.len() >= regions.r2 && rest.ends_with(b"l"),
        _ => false,
    };
    if drop {
        buffer.word.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stemmed(word: &str) -> String {
        stem(word, &mut StemBuffer::default()).to_owned()
    }

    #[test]
    fn rules_and_exceptions() {
        for (word, expected) in [
            ("", ""),
            ("is", "is"),
            ("was", "was"),
            ("yes", "yes"),
            ("caresses", "caress"),
            ("ties", "tie"),
            ("cries", "cri"),
            ("gaps", "gap"),
            ("gas", "gas"),
            ("bus", "bus"),
            ("skies", "sky"),
            ("early", "earli"),
            ("proceed", "proceed"),
            ("agreed", "agre"),
            ("feed", "feed"),
            ("herring", "herring"),
            ("evenings", "evening"),
            ("dying", "die"),
            ("hopping", "hop"),
            ("adding", "add"),
            ("hoping", "hope"),
            ("luxuriating", "luxuri"),
            ("pasted", "paste"),
            ("say", "say"),
            ("by", "by"),
            ("cry", "cri"),
            ("organization", "organiz"),
            ("international", "internat"),
            ("community", "communiti"),
            ("generate", "generat"),
            ("geologist", "geolog"),
            ("calmly", "calm"),
            ("fruitlessly", "fruitless"),
            ("replacement", "replac"),
            ("adoption", "adopt"),
            ("controlling", "control"),
            ("yyyying", "yyyi"),
            ("'tis'", "tis"),
            ("ann's", "ann"),
            ("cafés", "café"),
            ("jalapeños", "jalapeño"),
        ] {
            assert_eq!(stemmed(word), expected, "{word}");
        }
    }
}
