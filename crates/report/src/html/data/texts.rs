//! Texts of a page, each once, and how much room there is for more of them.

use std::{borrow::Cow, collections::HashMap};

use serde::{Serialize, Serializer};

/// Longest text that travels, in characters; longer ones are cut and marked.
pub(super) const MOST_CHARACTERS: usize = 6_000;
/// What may be told beside the lines of questions, in bytes of all of them: with it a page of LoCoMo's size stays below 6 MB.
pub(super) const MOST_BESIDE: usize = 3_000_000;

/// A text for people, cut where it is too long.
pub(super) fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((at, _)) => format!("{}… ({} characters left out)", &text[..at], text[at..].chars().count()).into(),
        None => text.into(),
    }
}

/// Texts by their numbers.
pub(super) struct Texts<'a> {
    all: Vec<Cow<'a, str>>,
    numbers: HashMap<&'a str, usize>,
    /// Those that travel cut, by the whole text.
    shortened: HashMap<&'a str, usize>,
    /// Bytes that may still be told beside lines.
    room: usize,
}

impl Default for Texts<'_> {
    fn default() -> Self {
        Self { all: Vec::new(), numbers: HashMap::new(), shortened: HashMap::new(), room: MOST_BESIDE }
    }
}

impl<'a> Texts<'a> {
    /// The number of a text, which travels whole.
    pub(super) fn number(&mut self, text: &'a str) -> usize {
        *self.numbers.entry(text).or_insert_with(|| {
            self.all.push(Cow::Borrowed(text));
            self.all.len() - 1
        })
    }

    /// The number of a text that is told where there is room for it, cut where it is long; none where there is no room.
    pub(super) fn fitting(&mut self, text: &'a str) -> Option<usize> {
        let known = self.numbers.get(text).or_else(|| self.shortened.get(text)).copied();
        if known.is_some() {
            return known;
        }
        let shown = cut(text);
        if !self.take(shown.len() + 3) {
            return None;
        }
        let is_whole = matches!(shown, Cow::Borrowed(_));
        self.all.push(shown);
        let number = self.all.len() - 1;
        if is_whole { &mut self.numbers } else { &mut self.shortened }.insert(text, number);
        Some(number)
    }

    /// Bytes that a text takes: none where it travels already.
    pub(super) fn cost(&self, text: &str) -> usize {
        if self.numbers.contains_key(text) { 0 } else { text.len() + 3 }
    }

    /// Takes so much of the room, if there is as much.
    pub(super) const fn take(&mut self, bytes: usize) -> bool {
        match self.room.checked_sub(bytes) {
            Some(rest) => {
                self.room = rest;
                true
            }
            None => false,
        }
    }
}

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all.serialize(serializer)
    }
}
