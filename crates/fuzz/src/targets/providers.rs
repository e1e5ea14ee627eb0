//! Replies of model providers: `STATUS HEADER: VALUE` on the first line, then the body.

use std::collections::BTreeMap;

use bench_grading::judging::verdict;
use bench_models::{ChatReply, ChatRequest, anthropic, classify, openai, tokens};
use bench_proto::{
    money::PicoUsd,
    price::{ModelPrice, TokenCounts},
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{assert_one_line, first_line};

/// Stands for the key of the account.
const KEY: &str = "sk-planted-0123456789";

pub(super) fn replies(bytes: &[u8]) {
    let (line, body) = first_line(bytes);
    let (status, header) = line.split_once(' ').unwrap_or((line, ""));
    let mut headers = HeaderMap::new();
    if let Some((name, value)) = header.split_once(':')
        && let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value.trim()))
    {
        headers.insert(name, value);
    }
    let pace = openai::pace_of(&headers);
    assert!(pace.retry_after_ms.is_none_or(|ms| ms <= 300_000), "five minutes are believed: {pace:?}");
    for reply in [openai::reply_of(body), anthropic::reply_of(body), openai::embeddings::reply_of(body, 1).ok()] {
        reply.iter().for_each(look);
    }
    let status = status.parse().unwrap_or(500);
    let failure = classify::response(status, body, pace.retry_after_ms, Some(KEY)).failure;
    assert_one_line(&failure.message);
    assert!(!failure.message.contains(KEY), "the key is repeated: {}", failure.message);
}

fn look(reply: &ChatReply) {
    let _ = verdict::parse(&reply.text);
    let _ = openai::embeddings::vectors(&reply.text, 1);
    let request = ChatRequest { messages: Vec::new(), params: BTreeMap::new(), schema: None, max_output_tokens: 500 };
    let counts = TokenCounts {
        prompt: reply.prompt_tokens.unwrap_or(0),
        completion: reply.completion_tokens.unwrap_or(0),
        cached: reply.cached_prompt_tokens,
        cache_write: reply.cache_write_tokens,
        cache_write_1h: reply.cache_write_1h_tokens,
    };
    if tokens::is_plausible(&request, reply) {
        let most = 1_000_000_000 + reply.text.len() as u64;
        assert!(counts.prompt <= most && counts.completion <= most, "{counts:?} passes for plausible");
    }
    let price = ModelPrice::flat(PicoUsd(15_000_000), PicoUsd(75_000_000));
    assert!(price.cost(&counts, reply.service_tier.as_deref()) >= PicoUsd::ZERO, "{counts:?}");
}
