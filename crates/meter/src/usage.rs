//! What a provider says that a request used, in each operation's words, and whether it can be true.

use bench_models::tokens::with_thoughts;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{address::Operation, ask::Asked, outcome::Tokens};

/// Tokens that may be in a prompt beside what was sent: a provider's instructions, tools, files and conversations that it keeps. No
/// model takes more at once.
const HIDDEN_PROMPT: u64 = 2_000_000;
/// Tokens that a model may think beside what it says and beyond the limit that it was given, for each reply that was asked for.
const HIDDEN_REPLY: u64 = 2_000_000;
/// Replies at once that a provider may tell of: more than any gives. What is told of more is held to be a mistake, whatever was asked for.
const MOST_CHOICES: u64 = 4_096;
/// The window of most models: no more of a prompt is booked by a count that cannot be true, beside what was sent.
const WINDOW: u64 = 200_000;
/// The longest reply that widely used models give: no more of each is booked by a count that cannot be true, beside what was asked for.
const MOST_DOUBTED_REPLY: u64 = 131_072;

/// A use as it crosses the wire, in any provider's words. What is no number of tokens, such as -1, is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Told {
    #[serde(deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    total_tokens: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    prompt_tokens_details: Details,
    #[serde(deserialize_with = "or_default")]
    input_tokens_details: Details,
    // Anthropic's: beside `input_tokens`, not part of them
    #[serde(deserialize_with = "count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    cache_creation: Creation,
    // the calls that were made for one reply, where it took several: what stands above leaves out those that summed up before
    #[serde(deserialize_with = "of_all")]
    iterations: Option<Iterations>,
}

/// What they have used together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Iterations {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_creation: u64,
    /// Part of `cache_creation`.
    hour: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Details {
    #[serde(deserialize_with = "count")]
    cached_tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Creation {
    #[serde(deserialize_with = "count")]
    ephemeral_1h_input_tokens: Option<u64>,
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_u64())
}

/// The sums over a list of uses; none where there is no list.
fn of_all<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Iterations>, D::Error> {
    let told = Value::deserialize(deserializer)?;
    Ok(told.as_array().map(|calls| {
        let sum = |at: &str| calls.iter().filter_map(|call| call.pointer(at)?.as_u64()).fold(0, u64::saturating_add);
        Iterations {
            input: sum("/input_tokens"),
            output: sum("/output_tokens"),
            cache_read: sum("/cache_read_input_tokens"),
            cache_creation: sum("/cache_creation_input_tokens"),
            hour: sum("/cache_creation/ephemeral_1h_input_tokens"),
        }
    }))
}

/// Null, or another kind of value, is the default.
fn or_default<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

impl Told {
    /// Reads one; `None` where there is none.
    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Option<Self>>(value).ok().flatten()
    }

    /// With what was told later in the same stream: counts grow, and what is not said again holds.
    pub(crate) fn then(self, later: Self) -> Self {
        let details =
            |later: Details, before: Details| Details { cached_tokens: later.cached_tokens.or(before.cached_tokens) };
        let creation = later.cache_creation.ephemeral_1h_input_tokens.or(self.cache_creation.ephemeral_1h_input_tokens);
        Self {
            prompt_tokens: later.prompt_tokens.or(self.prompt_tokens),
            input_tokens: later.input_tokens.or(self.input_tokens),
            completion_tokens: later.completion_tokens.or(self.completion_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
            total_tokens: later.total_tokens.or(self.total_tokens),
            prompt_tokens_details: details(later.prompt_tokens_details, self.prompt_tokens_details),
            input_tokens_details: details(later.input_tokens_details, self.input_tokens_details),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            cache_creation_input_tokens: later.cache_creation_input_tokens.or(self.cache_creation_input_tokens),
            cache_creation: Creation { ephemeral_1h_input_tokens: creation },
            iterations: later.iterations.or(self.iterations),
        }
    }

    /// As tokens; `None` where a number is missing that the operation has.
    fn tokens(&self, embeds: bool) -> Option<Tokens> {
        let all = self.iterations.unwrap_or_default();
        let written = self.cache_creation_input_tokens.unwrap_or(0).max(all.cache_creation);
        let hour = self.cache_creation.ephemeral_1h_input_tokens.unwrap_or(0).max(all.hour).min(written);
        let beside = self.cache_read_input_tokens.unwrap_or(0).max(all.cache_read);
        let with_parts = |input: u64| input.saturating_add(written).saturating_add(beside);
        let prompt = match self.prompt_tokens {
            // gateways such as LiteLLM tell Anthropic's parts beside a prompt that has them in it
            Some(whole) => whole.max(if self.iterations.is_some() { with_parts(all.input) } else { 0 }),
            None => with_parts(self.input_tokens?.max(all.input)),
        };
        let told = self.completion_tokens.or(self.output_tokens).map(|told| told.max(all.output));
        let completion = if embeds { told.or(Some(0)) } else { with_thoughts(Some(prompt), told, self.total_tokens) };
        let details = self.prompt_tokens_details.cached_tokens.or(self.input_tokens_details.cached_tokens);
        let cached = details.unwrap_or(0).max(beside);
        Some(Tokens { prompt, completion: completion?, cached, cache_write: written - hour, cache_write_1h: hour })
    }
}

/// A provider's count, as far as it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Believed {
    Yes(Tokens),
    /// It says none.
    Nothing,
    /// What it says cannot be true; this is it, as far as it may be.
    No(Tokens),
}

/// Whether what a provider says can be true of a request and of a reply of so many bytes. What cannot is no count: sums of such numbers
/// would soon say nothing of all other requests. It may be charged all the same: what of it can be is told to whoever books it. A
/// prompt of 0 tokens is what servers tell that do not count.
pub(crate) fn believe(told: Option<&Told>, asked: &Asked, reply_bytes: u64) -> Believed {
    let embeds = asked.operation == Operation::Embeddings;
    let told = told.and_then(|told| told.tokens(embeds)).filter(|tokens| tokens.prompt > 0);
    let Some(tokens) = told else { return Believed::Nothing };
    let prompt = asked.prompt_bytes.saturating_add(HIDDEN_PROMPT);
    let choices = asked.choices.min(MOST_CHOICES);
    let hidden = HIDDEN_REPLY.saturating_mul(choices);
    // a limit may be any number
    let limit = asked.max_reply_tokens.unwrap_or(0).min(hidden);
    let reply = limit.max(reply_bytes).saturating_add(hidden);
    let parts = tokens.cached.saturating_add(tokens.cache_write).saturating_add(tokens.cache_write_1h);
    // a part is no more than the whole
    let can_be = tokens.prompt <= prompt && tokens.completion <= reply && parts <= tokens.prompt;
    if can_be {
        return Believed::Yes(tokens);
    }
    let most = limit.max(reply_bytes).saturating_add(MOST_DOUBTED_REPLY.saturating_mul(choices));
    Believed::No(Tokens {
        prompt: tokens.prompt.min(asked.prompt_bytes.saturating_add(WINDOW)),
        completion: tokens.completion.min(most),
        ..Tokens::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(value: &Value) -> Told {
        Told::read(value.to_string().as_bytes()).expect("a use")
    }

    fn asked(body: &str) -> Asked {
        let target = crate::address::read("/m/r/v1/chat/completions").expect("a path");
        Asked::read(target, None, &http::HeaderMap::new(), hyper::body::Bytes::copy_from_slice(body.as_bytes()))
            .expect(body)
    }

    #[test]
    fn p10_a_count_of_many_choices_is_believed_and_what_cannot_be_true_is_told_as_far_as_it_may_be() {
        let use_of =
            |prompt: u64, completion: u64| told(&json!({"prompt_tokens": prompt, "completion_tokens": completion}));
        let many = asked(r#"{"model":"m","n":128}"#);
        let believed = believe(Some(&use_of(9, 2_048_000)), &many, 0);
        assert_eq!(believed, Believed::Yes(Tokens { prompt: 9, completion: 2_048_000, ..Tokens::default() }));
        let absurd = 9_000_000_000_000_000_000;
        for (body, most) in [
            (r#"{"model":"m"}"#, 131_072),
            (r#"{"model":"m","n":128}"#, 128 * 131_072),
            (r#"{"model":"m","max_tokens":1000}"#, 1_000 + 131_072),
            (r#"{"model":"m","max_tokens":1000,"n":2}"#, 2_000 + 2 * 131_072),
            // neither a limit nor a number of choices makes it true
            (r#"{"model":"m","max_tokens":9000000000000000000}"#, 2_000_000 + 131_072),
            (r#"{"model":"m","n":9000000000000000000}"#, 4_096 * 131_072),
        ] {
            let asked = asked(body);
            let may_be = Tokens { prompt: body.len() as u64 + 200_000, completion: most, ..Tokens::default() };
            assert_eq!(believe(Some(&use_of(absurd, absurd)), &asked, 0), Believed::No(may_be), "{body}");
        }
        let parts = asked(r#"{"model":"m"}"#);
        let wrong = json!({"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 6}});
        let may_be = Tokens { prompt: 5, completion: 1, ..Tokens::default() };
        assert_eq!(believe(Some(&told(&wrong)), &parts, 0), Believed::No(may_be));
    }

    #[test]
    fn each_operation_has_its_words() {
        let tokens = |prompt, completion, cached| Tokens { prompt, completion, cached, ..Tokens::default() };
        for (value, expected) in [
            (
                json!({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11, "prompt_tokens_details": {"cached_tokens": 4}}),
                tokens(9, 2, 4),
            ),
            (
                json!({"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}),
                tokens(9, 2, 4),
            ),
            (json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": null}), tokens(9, 2, 0)),
            (json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": 4}), tokens(9, 2, 0)),
            (
                json!({"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7, "cache_creation": {"ephemeral_1h_input_tokens": 3}}),
                Tokens { prompt: 21, completion: 2, cached: 5, cache_write: 4, cache_write_1h: 3 },
            ),
            (
                json!({"prompt_tokens": 21, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7}),
                Tokens { prompt: 21, completion: 2, cached: 5, cache_write: 7, cache_write_1h: 0 },
            ),
        ] {
            assert_eq!(told(&value).tokens(false), Some(expected), "{value}");
        }
        assert_eq!(told(&json!({"prompt_tokens": 9, "total_tokens": 9})).tokens(true), Some(tokens(9, 0, 0)));
        assert_eq!(told(&json!({"prompt_tokens": 9, "total_tokens": 12})).tokens(true), Some(tokens(9, 0, 0)));
        assert_eq!(told(&json!({"prompt_tokens": 9})).tokens(false), None);
        assert_eq!(told(&json!({"prompt_tokens": -1, "completion_tokens": 1.5})).tokens(false), None);
        assert_eq!(Told::read(b"null"), None);
        assert_eq!(Told::read(b"7"), None);
    }

    #[test]
    fn p34_the_use_of_a_reply_that_took_several_calls_is_that_of_all() {
        let summed_up = json!({"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500, "cache_creation_input_tokens": 7});
        let last = json!({"type": "message", "input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 5});
        let used = |iterations: Value| {
            let value =
                json!({"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 5, "iterations": iterations});
            told(&value).tokens(false).expect("is told")
        };
        let all = Tokens { prompt: 180_022, completion: 3_503, cached: 5, cache_write: 7, cache_write_1h: 0 };
        assert_eq!(used(json!([summed_up, last])), all);
        let plain = Tokens { prompt: 15, completion: 3, cached: 5, ..Tokens::default() };
        for nothing in [json!(null), json!([]), json!([last]), json!([7, {"output_tokens": -1}]), json!("none")] {
            assert_eq!(used(nothing.clone()), plain, "{nothing}");
        }
        let for_an_hour = json!({"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 9, "cache_creation": {"ephemeral_1h_input_tokens": 8}});
        let hour = used(json!([for_an_hour, for_an_hour, last]));
        assert_eq!((hour.cache_write, hour.cache_write_1h), (2, 16), "{hour:?}");
        let gateway = json!({"prompt_tokens": 15, "completion_tokens": 3, "iterations": [summed_up, last]});
        assert_eq!(told(&gateway).tokens(false), Some(all));
        // a stream tells them at its end
        let start = told(&json!({"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 5}));
        let end = told(&json!({"output_tokens": 3, "iterations": [summed_up, last]}));
        assert_eq!(start.then(end).then(told(&json!({"output_tokens": 3}))).tokens(false), Some(all));
    }

    #[test]
    fn thoughts_that_stand_in_the_total_alone_are_part_of_the_reply() {
        for (value, expected) in [
            (json!({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}), 103),
            (json!({"prompt_tokens": 20, "total_tokens": 120}), 100),
            (json!({"input_tokens": 20, "output_tokens": 4, "total_tokens": 30}), 10),
            (json!({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": -1}), 9),
        ] {
            assert_eq!(told(&value).tokens(false).map(|tokens| tokens.completion), Some(expected), "{value}");
        }
    }

    #[test]
    fn what_is_told_later_is_added() {
        let start = told(&json!({"input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 5}));
        let whole = start.then(told(&json!({"output_tokens": 20})));
        assert_eq!(whole.tokens(false), Some(Tokens { prompt: 14, completion: 20, cached: 5, ..Tokens::default() }));
    }
}
