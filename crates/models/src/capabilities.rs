//! What a model accepts beside messages: one small table, so that parameters can be stored as they will be sent.

use std::collections::BTreeMap;

use serde_json::Value;

/// Completion tokens that a reasoning model gets at least: its hidden reasoning counts as completion, and a small limit
/// would cut it off before the first word.
pub const REASONING_MIN_OUTPUT_TOKENS: u64 = 4096;

/// Names under which requests limit their completion tokens, in order of precedence.
pub const MAX_TOKENS_NAMES: [&str; 3] = ["max_completion_tokens", "max_tokens", "max_output_tokens"];

/// Parameters that reasoning models refuse.
const NOT_FOR_REASONING: [&str; 7] =
    ["temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias"];

/// What a model accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// It reasons before it answers: sampling parameters are refused, hidden tokens are billed as completion.
    pub reasoning: bool,
    /// Name of the parameter that limits completion tokens.
    pub max_tokens_name: &'static str,
}

/// A prefix of model names and what these models accept.
struct Row {
    prefix: &'static str,
    reasoning: bool,
}

/// First match wins. Models that no row names are somebody else's: they get the parameters as wanted and the older
/// `max_tokens`, which every compatible server knows.
const TABLE: &[Row] = &[
    Row { prefix: "gpt-5-chat", reasoning: false },
    Row { prefix: "gpt-5", reasoning: true },
    Row { prefix: "gpt-6", reasoning: true },
    Row { prefix: "o1", reasoning: true },
    Row { prefix: "o3", reasoning: true },
    Row { prefix: "o4", reasoning: true },
    Row { prefix: "gpt-4", reasoning: false },
    Row { prefix: "gpt-3.5", reasoning: false },
    Row { prefix: "chatgpt-", reasoning: false },
];

/// The model's own name: what follows a router's prefix (`openai/gpt-4o` is `gpt-4o`).
#[must_use]
pub fn bare_name(model: &str) -> &str {
    model.rsplit_once('/').map_or(model, |(_, name)| name)
}

/// `name` starts with `prefix`, and the prefix ends where a word ends (`o3` is no prefix of `o3x`).
fn has_prefix(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| {
        prefix.ends_with('-') || !rest.starts_with(|c: char| c.is_ascii_alphabetic()) || rest.starts_with('o')
    })
}

impl Capabilities {
    /// What `model` accepts.
    #[must_use]
    pub fn for_model(model: &str) -> Self {
        let name = bare_name(model);
        match TABLE.iter().find(|row| has_prefix(name, row.prefix)) {
            Some(row) => Self { reasoning: row.reasoning, max_tokens_name: "max_completion_tokens" },
            None => Self { reasoning: false, max_tokens_name: "max_tokens" },
        }
    }
}

/// The limit of completion tokens among `params`, under whichever name.
#[must_use]
pub fn max_tokens_of(params: &BTreeMap<String, Value>) -> Option<u64> {
    MAX_TOKENS_NAMES.iter().find_map(|name| params.get(*name).and_then(Value::as_u64))
}

/// Tokens that a model may think beside what it replies and beside the limit of that (SiliconFlow's parameter).
#[must_use]
pub fn thinking_budget_of(params: &BTreeMap<String, Value>) -> u64 {
    params.get("thinking_budget").and_then(Value::as_u64).unwrap_or(0)
}

/// Parameters that Anthropic's messages API does not know.
const NOT_FOR_ANTHROPIC: [&str; 9] = [
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "reasoning_effort",
    "response_format",
    "n",
];

/// Names of Claude models that refuse sampling parameters: thinking models from Opus 4.7 on, and everything of generation 5.
const CLAUDE_WITHOUT_SAMPLING: [&str; 7] = [
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-haiku-5",
    "claude-fable-",
    "claude-mythos-",
];

/// Names of Claude models that cannot be made to use a tool: they take a schema for their text instead.
const CLAUDE_WITHOUT_FORCED_TOOLS: [&str; 4] =
    ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-"];

/// Whether a Claude model gives structured replies as the input of the one tool that it must use.
#[must_use]
pub fn takes_forced_tools(model: &str) -> bool {
    !CLAUDE_WITHOUT_FORCED_TOOLS.iter().any(|prefix| has_prefix(bare_name(model), prefix))
}

/// Parameters that these models refuse.
const SAMPLING: [&str; 3] = ["temperature", "top_p", "top_k"];

/// The parameters that are really sent to a model of `provider` when `wanted` are asked for; this is what a run spec stores.
#[must_use]
pub fn sent_params(provider: &str, model: &str, wanted: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    if provider != "anthropic" {
        return effective_params(model, wanted);
    }
    let samples = wanted.get("thinking").is_none_or(|thinking| thinking["type"] != "enabled")
        && !CLAUDE_WITHOUT_SAMPLING.iter().any(|prefix| has_prefix(bare_name(model), prefix));
    let mut params: BTreeMap<String, Value> = wanted
        .iter()
        .filter(|(name, value)| !value.is_null() && !MAX_TOKENS_NAMES.contains(&name.as_str()))
        .filter(|(name, _)| !NOT_FOR_ANTHROPIC.contains(&name.as_str()))
        // with thinking the API takes no sampling parameters
        .filter(|(name, _)| samples || !SAMPLING.contains(&name.as_str()))
        .map(|(name, value)| match name.as_str() {
            // the range ends at 1 there
            "temperature" => (name.clone(), value.as_f64().map_or_else(|| value.clone(), |t| t.min(1.0).into())),
            "stop" => {
                let list = if value.is_string() { Value::from(vec![value.clone()]) } else { value.clone() };
                ("stop_sequences".to_owned(), list)
            }
            _ => (name.clone(), value.clone()),
        })
        .collect();
    if let Some(limit) = max_tokens_of(wanted) {
        params.insert("max_tokens".to_owned(), limit.into());
    }
    params
}

/// [`sent_params`] for OpenAI's own API and those that follow it.
///
/// The limit of completion tokens is taken from `max_completion_tokens`, `max_tokens` or `max_output_tokens` and gets the
/// name that the model knows; parameters that the model refuses are left out; nulls are left out.
#[must_use]
pub fn effective_params(model: &str, wanted: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let capabilities = Capabilities::for_model(model);
    let known = capabilities.max_tokens_name == "max_completion_tokens";
    let mut params: BTreeMap<String, Value> = wanted
        .iter()
        .filter(|(name, value)| !value.is_null() && !MAX_TOKENS_NAMES.contains(&name.as_str()))
        .filter(|(name, _)| !(capabilities.reasoning && NOT_FOR_REASONING.contains(&name.as_str())))
        .filter(|(name, _)| !(known && !capabilities.reasoning && name.as_str() == "reasoning_effort"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if let Some(limit) = max_tokens_of(wanted) {
        let limit = if capabilities.reasoning { limit.max(REASONING_MIN_OUTPUT_TOKENS) } else { limit };
        params.insert(capabilities.max_tokens_name.to_owned(), limit.into());
    }
    params
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn params(value: Value) -> BTreeMap<String, Value> {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn parameters_are_what_the_model_takes() {
        let wanted =
            params(json!({"temperature": 0, "seed": 7, "max_tokens": 256, "reasoning_effort": "low", "stop": null}));
        for (model, sent) in [
            ("gpt-4o-mini", json!({"temperature": 0, "seed": 7, "max_completion_tokens": 256})),
            ("openai/gpt-4.1-2025-04-14", json!({"temperature": 0, "seed": 7, "max_completion_tokens": 256})),
            ("gpt-6-sol", json!({"seed": 7, "max_completion_tokens": 4096, "reasoning_effort": "low"})),
            ("gpt-5-mini", json!({"seed": 7, "max_completion_tokens": 4096, "reasoning_effort": "low"})),
            ("gpt-5-chat-latest", json!({"temperature": 0, "seed": 7, "max_completion_tokens": 256})),
            ("o3-2025-04-16", json!({"seed": 7, "max_completion_tokens": 4096, "reasoning_effort": "low"})),
            ("llama-3.1-8b", json!({"temperature": 0, "seed": 7, "max_tokens": 256, "reasoning_effort": "low"})),
        ] {
            assert_eq!(effective_params(model, &wanted), params(sent), "{model}");
        }
    }

    #[test]
    fn anthropic_takes_what_it_knows() {
        let wanted = params(
            json!({"temperature": 1.5, "seed": 7, "max_completion_tokens": 256, "stop": "END", "service_tier": "auto", "top_p": null}),
        );
        let sent =
            params(json!({"temperature": 1.0, "max_tokens": 256, "stop_sequences": ["END"], "service_tier": "auto"}));
        assert_eq!(sent_params("anthropic", "claude-x", &wanted), sent);
        assert_eq!(sent_params("anthropic", "claude-x", &sent), sent);
        assert_eq!(sent_params("azure", "gpt-4o", &wanted), effective_params("gpt-4o", &wanted));
        let thinking = params(json!({"temperature": 0, "thinking": {"type": "enabled", "budget_tokens": 1024}}));
        assert!(!sent_params("anthropic", "claude-x", &thinking).contains_key("temperature"));
        let plain = params(json!({"temperature": 0, "top_p": 0.9, "max_tokens": 9}));
        for (model, samples) in [
            ("claude-sonnet-4-5-20250929", true),
            ("claude-opus-4-6", true),
            ("claude-opus-4-7", false),
            ("claude-sonnet-5", false),
            ("claude-opus-5-5", false),
            ("claude-haiku-5-5", false),
            ("claude-fable-5-1", false),
        ] {
            assert_eq!(sent_params("anthropic", model, &plain).contains_key("temperature"), samples, "{model}");
        }
    }

    #[test]
    fn names_end_where_a_word_ends() {
        assert!(Capabilities::for_model("o4-mini").reasoning);
        assert!(Capabilities::for_model("gpt-5.1").reasoning);
        assert!(!Capabilities::for_model("o3x").reasoning);
        assert!(!Capabilities::for_model("gpt-4o").reasoning);
        assert_eq!(Capabilities::for_model("o3x").max_tokens_name, "max_tokens");
    }

    #[test]
    fn p10_what_is_thought_beside_the_reply_is_part_of_the_most_that_can_be_billed() {
        let asked =
            |value: Value| crate::ChatRequest { params: params(value), ..crate::ChatRequest::saying(&["x"], 64) };
        assert_eq!(asked(json!({})).output_limit(), 64);
        assert_eq!(asked(json!({"thinking_budget": 32_768})).output_limit(), 32_832);
        assert_eq!(asked(json!({"max_tokens": 100, "thinking_budget": 4_096})).output_limit(), 4_196);
        assert_eq!(asked(json!({"max_tokens": 100, "thinking_budget": null})).output_limit(), 100);
    }

    #[test]
    fn resolving_twice_changes_nothing() {
        let wanted = params(json!({"temperature": 0.5, "max_tokens": 100}));
        for model in ["gpt-4o", "gpt-5", "qwen"] {
            let once = effective_params(model, &wanted);
            assert_eq!(effective_params(model, &once), once);
        }
    }
}
