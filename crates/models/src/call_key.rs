//! The key of the call store (P9): what was asked, of whom, for which draw.

use bench_proto::ids::Sha256Hash;
use sha2::{Digest, Sha256};

use super::{ChatRequest, MessageRole};

/// Hash of endpoint, account, model, parameters as sent, messages, reply schema, question id and draw. Every part is
/// preceded by its length, so that no two calls share a key by shifting text from one part to the next.
#[must_use]
pub fn call_key(
    endpoint: &str,
    account: &str,
    model: &str,
    request: &ChatRequest,
    question_id: &str,
    draw: u32,
) -> Sha256Hash {
    let mut hash = Sha256::new();
    hash.update(b"bench-call-v1\n");
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for text in [endpoint, account, model, question_id] {
        part(text.as_bytes());
    }
    part(&draw.to_le_bytes());
    part(&request.output_limit().to_le_bytes());
    part(&(request.params.len() as u64).to_le_bytes());
    for (name, value) in &request.params {
        part(name.as_bytes());
        part(value.to_string().as_bytes());
    }
    if let Some(schema) = &request.schema {
        part(schema.name.as_bytes());
        part(schema.schema.to_string().as_bytes());
    }
    for message in &request.messages {
        part(match message.role {
            MessageRole::System => b"system",
            MessageRole::User => b"user",
        });
        part(message.text.as_bytes());
    }
    Sha256Hash(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, HashSet},
        time::Instant,
    };

    use serde_json::json;

    use super::*;
    use crate::ReplySchema;

    fn request(texts: &[&str]) -> ChatRequest {
        let params = BTreeMap::from([("temperature".to_owned(), json!(0))]);
        ChatRequest { params, ..ChatRequest::saying(texts, 10) }
    }

    #[test]
    fn p9_every_part_makes_another_key() {
        let base = request(&["ab", "c"]);
        let mut keys = HashSet::new();
        let mut add = |endpoint: &str, account: &str, model: &str, request: &ChatRequest, question: &str, draw| {
            assert!(
                keys.insert(call_key(endpoint, account, model, request, question, draw)),
                "{endpoint} {question} {draw}"
            );
        };
        add("e", "a", "m", &base, "q", 0);
        add("ea", "", "m", &base, "q", 0);
        add("e", "a", "m", &base, "q", 1);
        add("e", "a", "mq", &base, "", 0);
        add("e", "a", "m", &request(&["a", "bc"]), "q", 0);
        add("e", "a", "m", &request(&["abc"]), "q", 0);
        add("e", "a", "m", &ChatRequest { max_output_tokens: 11, ..base.clone() }, "q", 0);
        add("e", "a", "m", &ChatRequest { params: BTreeMap::new(), ..base.clone() }, "q", 0);
        let schema = ReplySchema { name: "v".to_owned(), schema: json!({}) };
        add("e", "a", "m", &ChatRequest { schema: Some(schema), ..base.clone() }, "q", 0);
        let mut system = base.clone();
        system.messages[0].role = MessageRole::System;
        add("e", "a", "m", &system, "q", 0);
    }

    #[test]
    fn p9_the_key_stays_what_it_is() {
        // a change of this value makes every stored call unknown: raise the `v` of the first line then
        insta::assert_snapshot!(call_key("http://localhost/v1", "openai", "gpt-4o-mini", &request(&["hello"]), "conv-1:0", 0).hex(), @"7edc7b5d845a13956ba60f8c6fccf04d2c343e3e70aaf34c18a1e9b2e21d33f4");
    }

    #[test]
    fn long_prompts_are_cheap() {
        let long = request(&["x".repeat(20_000).as_str()]);
        let begun = Instant::now();
        for draw in 0..100 {
            assert_ne!(call_key("e", "a", "m", &long, "q", draw).0, [0; 32]);
        }
        assert!(begun.elapsed().as_millis() < 500, "{:?}", begun.elapsed());
    }
}
