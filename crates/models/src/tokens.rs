//! Counting prompt tokens where a cap, a token limit or a missing usage needs it.
//!
//! The vocabularies are unpacked once per process, when first needed or ahead in a thread of their own
//! ([`Encoding::prepare`]). Models without a known vocabulary get an upper bound: a
//! byte-level tokenizer never makes more tokens than bytes.

use super::{ChatReply, ChatRequest, capabilities::bare_name};

/// A prompt's tokens as somebody else may count them: 5 % more.
#[must_use]
pub const fn with_margin(prompt_tokens: u64) -> u64 {
    prompt_tokens.saturating_mul(21).div_ceil(20)
}

/// Tokens around each message (role and separators), by OpenAI's published recipe for chat models: 3 and the role.
pub const TOKENS_PER_MESSAGE: u64 = 4;
/// Tokens that prime the reply.
pub const TOKENS_PER_REPLY: u64 = 3;
/// Allowance for what a provider adds around a JSON schema or tools.
pub const TOKENS_PER_SCHEMA: u64 = 32;

/// Tokens that a provider may put into a prompt beside what was sent: its own instructions, tools.
const HIDDEN_PROMPT: u64 = 200_000;
/// Tokens that a model may think beside what it says and beyond the limit it was given.
const HIDDEN_OUTPUT: u64 = 2_000_000;

/// How a model turns text into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// GPT-4o and later.
    O200k,
    /// GPT-4, GPT-3.5, `text-embedding-3`.
    Cl100k,
    /// Unknown: one token per byte is an upper bound.
    Bytes,
}

impl Encoding {
    /// The encoding of a model.
    #[must_use]
    pub fn for_model(model: &str) -> Self {
        let name = bare_name(model);
        let is = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if is(&["gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "o1", "o3", "o4", "chatgpt-4o"]) {
            Self::O200k
        } else if is(&["gpt-4", "gpt-3.5", "text-embedding-3", "text-embedding-ada"]) {
            Self::Cl100k
        } else {
            Self::Bytes
        }
    }

    /// Loads the vocabulary in a thread of its own, so that the first count does not wait for it.
    pub fn prepare(self) {
        if self != Self::Bytes {
            // without the thread the first count loads it
            let _ = std::thread::Builder::new().name("token-table".to_owned()).spawn(move || self.count(""));
        }
    }

    /// Tokens of a text, or their upper bound.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        match self {
            Self::O200k => count("o200k_base", text),
            Self::Cl100k => count("cl100k_base", text),
            Self::Bytes => text.len() as u64,
        }
    }

    /// Prompt tokens of a request with the chat's overhead, or their upper bound.
    #[must_use]
    pub fn prompt_tokens(self, request: &ChatRequest) -> u64 {
        sum(request, |text| self.count(text))
    }

    /// Whether counts are exact (to a few tokens of overhead).
    #[must_use]
    pub const fn is_exact(self) -> bool {
        !matches!(self, Self::Bytes)
    }
}

/// Tokens of a text in a vocabulary that the workspace's manifest has as a feature.
fn count(vocabulary: &str, text: &str) -> u64 {
    tiktoken::get_encoding(vocabulary).expect("the vocabulary is a feature of tiktoken").count(text) as u64
}

/// Upper bound of the prompt tokens of a request under any encoding: free to compute.
#[must_use]
pub fn prompt_bound(request: &ChatRequest) -> u64 {
    sum(request, |text| text.len() as u64)
}

/// Whether a provider's own count can be true of the request and its reply. What cannot is no count: sums of such numbers would
/// soon say nothing of all other calls.
#[must_use]
pub fn is_plausible(request: &ChatRequest, reply: &ChatReply) -> bool {
    let prompt = prompt_bound(request).saturating_add(HIDDEN_PROMPT);
    let output = request.output_limit().saturating_add(reply.text.len() as u64).saturating_add(HIDDEN_OUTPUT);
    // words are a token at least; vectors, of which no output is asked for, are none
    let least = u64::from(request.output_limit() > 0 && !reply.text.is_empty());
    let parts = [reply.cached_prompt_tokens, reply.cache_write_tokens, reply.cache_write_1h_tokens];
    let parts = parts.into_iter().fold(0, u64::saturating_add);
    // a request has something in it, and a part is no more than the whole
    reply.prompt_tokens.is_none_or(|tokens| (1..=prompt).contains(&tokens))
        && reply.completion_tokens.is_none_or(|tokens| (least..=output).contains(&tokens))
        && parts <= reply.prompt_tokens.unwrap_or(prompt)
}

/// Tokens of a reply with those that were thought: some servers (xAI's, Gemini's) count these in the total alone, beside what was said,
/// and charge for them. A total that cannot be true adds nothing, and neither does one beside a prompt that is not told.
#[must_use]
pub fn with_thoughts(prompt: Option<u64>, said: Option<u64>, total: Option<u64>) -> Option<u64> {
    let words = said.unwrap_or(0);
    let all = total.zip(prompt).and_then(|(total, prompt)| total.checked_sub(prompt));
    all.filter(|all| *all > words && *all - words <= HIDDEN_OUTPUT).or(said)
}

fn sum(request: &ChatRequest, count: impl Fn(&str) -> u64) -> u64 {
    let messages: u64 = request.messages.iter().map(|message| TOKENS_PER_MESSAGE + count(&message.text)).sum();
    let schema = request.schema.as_ref().map_or(0, |schema| TOKENS_PER_SCHEMA + count(&schema.schema.to_string()));
    messages + schema + TOKENS_PER_REPLY
}

#[cfg(test)]
mod tests {

    use proptest::prelude::*;

    use super::*;

    fn request(texts: &[&str]) -> ChatRequest {
        ChatRequest::saying(texts, 10)
    }

    #[test]
    fn thoughts_that_stand_in_the_total_alone_are_part_of_the_reply() {
        for (prompt, said, total, expected) in [
            (Some(32), Some(9), Some(135), Some(103)),
            (Some(20), Some(424), Some(1016), Some(996)),
            // all that it was allowed was thought
            (Some(20), None, Some(120), Some(100)),
            // inside of the completion, as most count them
            (Some(32), Some(103), Some(135), Some(103)),
            (Some(32), Some(9), Some(3), Some(9)),
            (Some(32), Some(9), Some(9_000_000_000), Some(9)),
            (Some(32), Some(9), None, Some(9)),
            (Some(32), Some(u64::MAX), Some(u64::MAX), Some(u64::MAX)),
            (None, Some(9), Some(90), Some(9)),
            (Some(32), None, Some(32), None),
        ] {
            assert_eq!(with_thoughts(prompt, said, total), expected, "{prompt:?} {said:?} {total:?}");
        }
    }

    #[test]
    fn models_have_their_encoding() {
        for (model, encoding) in [
            ("gpt-4o-mini-2024-07-18", Encoding::O200k),
            ("openai/gpt-4.1", Encoding::O200k),
            ("o4-mini", Encoding::O200k),
            ("gpt-4-turbo", Encoding::Cl100k),
            ("gpt-3.5-turbo", Encoding::Cl100k),
            ("text-embedding-3-small", Encoding::Cl100k),
            ("llama-3.1-8b", Encoding::Bytes),
        ] {
            assert_eq!(Encoding::for_model(model), encoding, "{model}");
        }
    }

    #[test]
    fn counts_are_those_of_the_vocabularies() {
        assert_eq!(Encoding::Cl100k.count("tiktoken is great!"), 6);
        assert_eq!(Encoding::O200k.count("hello world"), 2);
        assert_eq!(Encoding::Bytes.count("héllo"), 6);
        assert_eq!(Encoding::O200k.prompt_tokens(&request(&["hello world", "hello"])), 4 + 2 + 4 + 1 + 3);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
        #[test]
        fn the_bound_is_a_bound(texts in proptest::collection::vec(".{0,80}", 0..4)) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let request = request(&texts);
            for encoding in [Encoding::O200k, Encoding::Cl100k, Encoding::Bytes] {
                prop_assert!(encoding.prompt_tokens(&request) <= prompt_bound(&request));
            }
        }
    }
}
