//! What both stemmers share: a reusable buffer that holds one byte per character.
//!
//! Stemming rules only know ASCII letters; every other character is "some consonant" to them, and all they ever ask about
//! two of them is whether neighbours are equal. So other characters become the placeholder bytes 0x80 and 0x81, chosen
//! so that neighbours have equal bytes exactly when they are equal, and the stem is mapped back at the end.

/// A stemmer: lower-case word and buffer to stem.
pub type StemFn = for<'a> fn(&str, &'a mut StemBuffer) -> &'a str;

/// Memory that is reused from word to word.
#[derive(Debug, Default)]
pub struct StemBuffer {
    /// The word, one byte per character; stemmers edit its end.
    pub(super) word: Vec<u8>,
    text: String,
}

impl StemBuffer {
    /// Loads a word.
    pub(super) fn load(&mut self, word: &str) {
        self.word.clear();
        if word.is_ascii() {
            self.word.extend_from_slice(word.as_bytes());
            return;
        }
        let mut last = '\0';
        let mut code = 0x80;
        for c in word.chars() {
            if c.is_ascii() {
                self.word.push(c as u8);
            } else {
                if c != last {
                    code ^= 1;
                }
                self.word.push(code);
            }
            last = c;
        }
    }

    /// The edited word as text; `original` is what was loaded.
    pub(super) fn text(&mut self, original: &str) -> &str {
        self.text.clear();
        if original.is_ascii() {
            self.text.extend(self.word.iter().map(|&byte| char::from(byte)));
        } else {
            // edits replace ends by ASCII letters only, so a placeholder still stands where its character stood
            let mut chars = original.chars();
            for &byte in &self.word {
                let c = chars.next();
                self.text.push(if byte.is_ascii() {
                    char::from(byte)
                } else {
                    c.unwrap_or(char::REPLACEMENT_CHARACTER)
                });
            }
        }
        &self.text
    }

    /// Replaces the last `cut` characters.
    pub(super) fn replace_end(&mut self, cut: usize, by: &[u8]) {
        self.word.truncate(self.word.len() - cut);
        self.word.extend_from_slice(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_characters_survive_and_neighbours_stay_comparable() {
        let mut buffer = StemBuffer::default();
        buffer.load("éé七a七’’x");
        let word = buffer.word.clone();
        assert_eq!(word.len(), 8);
        assert_eq!(word[0], word[1]);
        assert_ne!(word[1], word[2]);
        assert_ne!(word[4], word[5]);
        assert_eq!(word[5], word[6]);
        buffer.replace_end(1, b"ing");
        assert_eq!(buffer.text("éé七a七’’x"), "éé七a七’’ing");
    }
}
