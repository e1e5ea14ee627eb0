//! How one input becomes another: a few small changes, most of them of the kind that readers of texts fall over.

use rand::{Rng as _, rngs::StdRng, seq::IndexedRandom as _};

/// Longest input that is made.
pub const LONGEST: usize = 64 << 10;

/// What readers of JSON, YAML, TOML, CSV, URLs and events care about.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "\"", "{", "}", "[", "]", ":", ",", "\\", "\\u0000", "\\ud800", "\n", "\r\n", "\n\n", "\t", " ", "'", "|", "#",
    "&a", "*a", "<<: *a", "- ", "null", "true", "false", "0", "-1", "1e308", "1e-400", "-0", "NaN", "Infinity",
    "9223372036854775807", "9223372036854775808", "18446744073709551615", "-9223372036854775808", "9e18",
    "4294967296", "0.1", "\u{0}", "\u{7f}", "\u{202e}", "\u{feff}", "é", "\u{10ffff}", "..", "/", "//", "%2e%2e", "?",
    "@", "://", "http://[::1]:1/", ".", "a.a.a.a", "=", ";", "${env:X}", "{bank}", "{{", "}}", "{?}", "event: ",
    "data: ", "data:", ": ", "---\n", "!!binary ", "[[", "]]", "\"\"\"",
];

/// An input made of one of the pool, and perhaps of parts of another.
#[must_use]
pub fn made_of(pool: &[Vec<u8>], rng: &mut StdRng) -> Vec<u8> {
    let mut input = pool.choose(rng).cloned().unwrap_or_default();
    for _ in 0..1 << rng.random_range(0..4_u32) {
        change(&mut input, pool, rng);
    }
    input.truncate(LONGEST);
    input
}

fn change(input: &mut Vec<u8>, pool: &[Vec<u8>], rng: &mut StdRng) {
    let at = rng.random_range(0..=input.len());
    let most = 1 << rng.random_range(0..9_u32);
    let until = at + rng.random_range(0..=(input.len() - at).min(most));
    match rng.random_range(0..10_u32) {
        0 => drop(input.drain(at..until)),
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << rng.random_range(0..8_u32);
            }
        }
        2 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = rng.random();
            }
        }
        3 => {
            let part = input[at..until].to_vec();
            let to = rng.random_range(0..=input.len());
            splice(input, to, to, &part);
        }
        4 => {
            let part: Vec<u8> = input[at..until].repeat(1 << rng.random_range(0..8_u32));
            splice(input, at, at, &part);
        }
        5 => {
            let other = pool.choose(rng).map(Vec::as_slice).unwrap_or_default();
            let from = rng.random_range(0..=other.len());
            let to = from + rng.random_range(0..=(other.len() - from).min(512));
            splice(input, at, until, &other[from..to]);
        }
        6 => number(input, at, rng),
        _ => {
            let word = WORDS.choose(rng).copied().unwrap_or_default();
            let times = if rng.random_ratio(1, 16) { 1 << rng.random_range(0..11_u32) } else { 1 };
            let over = if rng.random() { until } else { at };
            splice(input, at, over, word.repeat(times).as_bytes());
        }
    }
}

/// Puts an extreme number in the place of the next one.
fn number(input: &mut Vec<u8>, at: usize, rng: &mut StdRng) {
    let Some(begin) = input[at..].iter().position(u8::is_ascii_digit).map(|digit| at + digit) else { return };
    let end =
        input[begin..].iter().position(|byte| !byte.is_ascii_digit()).map_or(input.len(), |digits| begin + digits);
    let numbers: Vec<&&str> = WORDS.iter().filter(|word| word.bytes().any(|byte| byte.is_ascii_digit())).collect();
    let number = numbers.choose(rng).map(|word| word.as_bytes()).unwrap_or_default();
    splice(input, begin, end, number);
}

fn splice(input: &mut Vec<u8>, from: usize, to: usize, part: &[u8]) {
    if input.len() + part.len() <= LONGEST {
        input.splice(from..to, part.iter().copied());
    }
}
