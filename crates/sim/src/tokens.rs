//! Token counting.

use crate::config::TokenCounter;

/// Tokens that each chat message and the reply's start cost beside their text, as OpenAI counts them.
const PER_MESSAGE: u64 = 4;
const PER_REPLY: u64 = 3;
/// What a provider writes around a schema to tell the model about it.
const PER_SCHEMA: u64 = 32;

impl TokenCounter {
    /// Tokens of a text.
    pub(crate) fn count(self, text: &str) -> u64 {
        match self {
            Self::O200k => count("o200k_base", text),
            Self::Bytes => text.len().div_ceil(4) as u64,
        }
    }

    /// Tokens of a text that is embedded: OpenAI's embedding models have an older table.
    pub(crate) fn count_embedded(self, text: &str) -> u64 {
        match self {
            Self::O200k => count("cl100k_base", text),
            Self::Bytes => self.count(text),
        }
    }

    /// Tokens of a chat prompt, given the texts of its messages and the schema of its reply.
    pub(crate) fn count_chat<'a>(self, texts: impl Iterator<Item = &'a str>, schema: Option<&str>) -> u64 {
        let schema = schema.map_or(0, |schema| self.count(schema) + PER_SCHEMA);
        texts.map(|text| self.count(text) + PER_MESSAGE).sum::<u64>() + schema + PER_REPLY
    }
}

/// Tokens of a text in a vocabulary, which is unpacked at the first call and then shared by the process.
fn count(vocabulary: &str, text: &str) -> u64 {
    tiktoken::get_encoding(vocabulary).expect("the vocabulary is a feature of tiktoken").count(text) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_counts() {
        assert_eq!(TokenCounter::O200k.count("hello world"), 2);
        assert_eq!(TokenCounter::O200k.count_embedded("tiktoken is great!"), 6);
        assert_eq!(TokenCounter::Bytes.count("hello"), 2);
        assert_eq!(TokenCounter::Bytes.count_chat(["four", ""].into_iter(), None), 1 + 4 + 4 + 3);
        assert_eq!(TokenCounter::Bytes.count_chat([""].into_iter(), Some("{}{}")), 4 + 3 + 32 + 1);
    }
}
