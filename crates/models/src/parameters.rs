//! Parameters of requests: those that change what is said and cost nothing beyond tokens. One list for the runner's own calls and for
//! what memory systems send through the meter.
//!
//! It says what passes, for nobody knows all that does not. Behind other names providers and gateways charge apart (searches, guards,
//! residence), run something (tools, other people's templates), ask another model or server or one's stored prompt, answer later, more
//! often, or beyond the limit that was reserved for. What costs nothing at one provider is let through by the operator of its account
//! ([`Account::parameters`](crate::registry::Account::parameters)).

use std::collections::BTreeMap;

use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use crate::members::{each_element, each_member};

/// What passes whatever its value: sampling, the form of what is said, thinking, limits, caches and labels, in the words of OpenAI,
/// Anthropic, Mistral, Groq, xAI, DeepSeek, OpenRouter, Alibaba, vLLM, SGLang, llama.cpp and Ollama. In the order of their letters.
///
/// Not in it, among others: `n_predict` (a limit that nothing is reserved by), `use_beam_search` (replies that nobody counts),
/// `chat_template`, `documents` and `logits_processors` (texts and code around the prompt), `deferred` (an answer that comes later).
const LISTED: [&str; 95] = [
    "add_generation_prompt",
    "add_special_tokens",
    "allowed_token_ids",
    "bad_words",
    "cache_control",
    "cache_prompt",
    "cache_salt",
    "continue_final_message",
    "do_sample",
    "dry_allowed_length",
    "dry_base",
    "dry_multiplier",
    "dry_penalty_last_n",
    "dry_sequence_breakers",
    "dynatemp_exponent",
    "dynatemp_range",
    "ebnf",
    "echo",
    "enable_thinking",
    "frequency_penalty",
    "grammar",
    "guided_choice",
    "guided_decoding_backend",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "guided_whitespace_pattern",
    "ignore_eos",
    "include_reasoning",
    "include_stop_str_in_output",
    "json_schema",
    "keep_alive",
    "length_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "min_p",
    "min_tokens",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "no_repeat_ngram_size",
    "num_ctx",
    "parallel_tool_calls",
    "penalize_nl",
    "presence_penalty",
    "priority",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "prompt_logprobs",
    "prompt_mode",
    "random_seed",
    "reasoning_budget",
    "reasoning_effort",
    "reasoning_format",
    "regex",
    "repeat_last_n",
    "repeat_penalty",
    "repetition_penalty",
    "request_id",
    "return_token_ids",
    "return_tokens_as_token_ids",
    "safe_prompt",
    "safety_identifier",
    "samplers",
    "seed",
    "separate_reasoning",
    "service_tier",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "stop",
    "stop_regex",
    "stop_sequences",
    "stop_token_ids",
    "store",
    "structured_outputs",
    "suffix",
    "temperature",
    "tfs_z",
    "thinking",
    "top_a",
    "top_k",
    "top_logprobs",
    "top_p",
    "transforms",
    "truncate_prompt_tokens",
    "truncation",
    "typical_p",
    "user",
    "verbosity",
    "xtc_probability",
    "xtc_threshold",
];

/// A parameter that passes with some of its values: which, and what else to say.
type Condition = (&'static str, fn(&RawValue) -> bool, &'static str);

/// Those that do.
const CONDITIONS: [Condition; 12] = [
    ("chat_template_kwargs", brings_no_template, "take the template in it out"),
    // Anthropic's: what summarises is another call, whose tokens are told apart
    ("context_management", clears_alone, "leave everything but edits of the types clear_… out of it"),
    ("inference_geo", is_global, "leave it out, or say global"),
    // LiteLLM's guards and tags stand in it as lists
    ("metadata", is_flat, "leave lists and objects in it out"),
    ("modalities", is_text_alone, "ask for text alone"),
    ("provider", routes_alone, "leave everything but the choice of providers out of it"),
    ("providerOptions", routes_in_gateway, "leave everything but gateway, with order and only, out of it"),
    ("provider_options", routes_in_gateway, "leave everything but gateway, with order and only, out of it"),
    // OpenRouter's "pro" asks another model
    ("reasoning", reasons_as_usual, "leave its mode out of it, or say standard"),
    ("speed", is_standard, "leave it out, or say standard"),
    // beside the limit of the reply: as many tokens are reserved
    ("thinking_budget", is_whole, "give it as a whole number of 0 or more"),
    ("usage", includes_alone, "leave everything but include out of it"),
];

/// What may stand in OpenRouter's `provider`: who is to serve the model, and none of it says which model.
const ROUTING: [&str; 13] = [
    "allow_fallbacks",
    "data_collection",
    "enforce_distillable_text",
    "ignore",
    "max_price",
    "only",
    "order",
    "preferred_max_latency",
    "preferred_min_throughput",
    "quantizations",
    "require_parameters",
    "sort",
    "zdr",
];

/// What the body of a request of the runner says by itself: what is asked of whom, how often, and in which form the reply comes. A
/// parameter of the same name would send one thing and have another one reserved, booked and reported, so nobody lets it through.
const SAID_BY_ITSELF: [&str; 15] = [
    "best_of",
    "function_call",
    "functions",
    "input",
    "messages",
    "model",
    "n",
    "output_config",
    "prompt",
    "response_format",
    "stream",
    "stream_options",
    "system",
    "tool_choice",
    "tools",
];

fn is_listed(name: &str) -> bool {
    LISTED.binary_search(&name).is_ok()
}

/// Whether a parameter is known to cost nothing beyond tokens.
///
/// # Errors
/// What to do where nobody here knows that, or not of this value.
pub fn check(name: &str, value: &RawValue) -> Result<(), &'static str> {
    // what asks for nothing costs nothing, whatever it is
    if is_listed(name) || matches!(value.get(), "null" | "false" | "[]") {
        return Ok(());
    }
    match CONDITIONS.iter().find(|(known, ..)| *known == name) {
        Some((_, is_met, _)) if is_met(value) => Ok(()),
        Some((_, _, instead)) => Err(*instead),
        None => Err("leave it out"),
    }
}

/// A parameter that is not sent to an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsent<'p> {
    /// As requests have it.
    pub name: &'p str,
    /// What to do in its place; none where the request says by itself what it would say.
    instead: Option<&'static str>,
}

impl Unsent<'_> {
    /// Why, and what to do about it, as the end of "… holds 'name', ".
    #[must_use]
    pub fn why(&self, account: &str) -> String {
        match self.instead {
            None => "which a request says by itself: take it out".to_owned(),
            Some(instead) => format!(
                "of which it is not known that it costs nothing beyond tokens: {instead}; where it costs nothing else at this provider, list \
                 it in accounts.{account}.parameters where you submit, and in a cluster for the workers too"
            ),
        }
    }
}

/// The first of these parameters that is not sent to an account whose operator lets those of these names through.
#[must_use]
pub fn unsent<'p>(params: &'p BTreeMap<String, Value>, let_through: &[String]) -> Option<Unsent<'p>> {
    params.iter().find_map(|(name, value)| {
        let refused = |instead| Some(Unsent { name, instead });
        if SAID_BY_ITSELF.contains(&name.as_str()) {
            return refused(None);
        }
        if let_through.contains(name) {
            return None;
        }
        let instead = to_raw_value(value).map_or(Err("leave it out"), |value| check(name, &value)).err()?;
        refused(Some(instead))
    })
}

/// Whether a parameter is sent to such an account. A second guard: who builds a model has refused what is [`unsent`] before, and what
/// comes around that is left out of the request.
pub(crate) fn is_sent(name: &str, value: &Value, let_through: &[String]) -> bool {
    // few values decide anything, and the others are not copied for each request
    let is_known = || is_listed(name) || to_raw_value(value).is_ok_and(|value| check(name, &value).is_ok());
    !SAID_BY_ITSELF.contains(&name) && (let_through.iter().any(|known| known == name) || is_known())
}

/// Whether a value is an object of which each member passes.
fn is_object_of(value: &RawValue, mut passes: impl FnMut(&str, &RawValue) -> bool) -> bool {
    let mut all_pass = true;
    let read = each_member(value.get().as_bytes(), |name, value| all_pass &= passes(name, value));
    read.is_ok() && all_pass
}

fn is_flat(value: &RawValue) -> bool {
    is_object_of(value, |_, value| !value.get().starts_with(['{', '[']))
}

fn brings_no_template(value: &RawValue) -> bool {
    is_object_of(value, |name, _| !name.eq_ignore_ascii_case("chat_template"))
}

fn clears_alone(value: &RawValue) -> bool {
    is_object_of(value, |name, edits| {
        let mut all_clear = name == "edits";
        let listed = each_element(edits, |edit| all_clear &= clears(edit));
        all_clear && listed.is_ok()
    })
}

/// Whether an edit of a context takes something out of it, and does nothing else.
fn clears(edit: &RawValue) -> bool {
    let mut types = 0_u32;
    let is_known = is_object_of(edit, |name, value| match name {
        "type" => {
            types += 1;
            value.get().starts_with("\"clear_")
        }
        "clear_at_least" | "clear_tool_inputs" | "exclude_tools" | "keep" | "trigger" => true,
        _ => false,
    });
    is_known && types == 1
}

fn is_global(value: &RawValue) -> bool {
    value.get() == "\"global\""
}

fn is_standard(value: &RawValue) -> bool {
    value.get() == "\"standard\""
}

fn reasons_as_usual(value: &RawValue) -> bool {
    is_object_of(value, |name, value| !name.eq_ignore_ascii_case("mode") || value.get() == "null" || is_standard(value))
}

/// A number as digits alone: what is written in another way reserves nothing.
fn is_whole(value: &RawValue) -> bool {
    value.get().bytes().all(|byte| byte.is_ascii_digit())
}

fn is_text_alone(value: &RawValue) -> bool {
    let mut is_text = true;
    let listed = each_element(value, |kind| is_text &= kind.get() == "\"text\"");
    listed.is_ok() && is_text
}

/// The name of a provider, or which of them are to serve the model.
fn routes_alone(value: &RawValue) -> bool {
    value.get().starts_with('"') || is_object_of(value, |name, _| ROUTING.contains(&name))
}

/// The same in Vercel's words.
fn routes_in_gateway(value: &RawValue) -> bool {
    is_object_of(value, |name, gateway| {
        name == "gateway" && is_object_of(gateway, |name, _| matches!(name, "only" | "order"))
    })
}

fn includes_alone(value: &RawValue) -> bool {
    is_object_of(value, |name, _| name == "include")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check_text(name: &str, value: &str) -> Result<(), &'static str> {
        check(name, serde_json::from_str(value).expect(value))
    }

    #[test]
    fn the_list_is_in_order_and_nothing_in_it_is_said_by_a_request_itself() {
        assert!(LISTED.is_sorted_by(|a, b| a < b));
        for name in SAID_BY_ITSELF {
            assert!(!LISTED.contains(&name) && check_text(name, "1").is_err(), "{name}");
        }
    }

    #[test]
    fn what_asks_for_nothing_passes_of_the_runner_as_of_others() {
        for value in ["null", "false", "[]"] {
            assert_eq!(check_text("enable_search", value), Ok(()), "{value}");
        }
        for value in ["true", "0", "{}", "\"\"", "[1]"] {
            assert!(check_text("enable_search", value).is_err(), "{value}");
        }
        let params = BTreeMap::from([("enable_search".to_owned(), json!(false)), ("plugins".to_owned(), json!([]))]);
        assert_eq!(unsent(&params, &[]), None);
        assert!(params.iter().all(|(name, value)| is_sent(name, value, &[])));
    }

    #[test]
    fn the_page_of_the_meter_names_what_passes() {
        let page = include_str!("../../../docs/METER.md");
        for name in LISTED.into_iter().chain(CONDITIONS.map(|(name, ..)| name)) {
            assert!(page.contains(&format!("`{name}`")), "docs/METER.md does not name {name}");
        }
    }

    #[test]
    fn what_changes_what_is_said_passes_and_what_nobody_knows_does_not() {
        for name in
            ["temperature", "seed", "service_tier", "reasoning_effort", "thinking", "max_tokens", "stop", "num_ctx"]
        {
            assert_eq!(check_text(name, "1"), Ok(()), "{name}");
        }
        // of gateways and providers: other models and servers, searches, guards, templates, limits of other names, later answers
        for name in [
            "Temperature",
            "agent_id",
            "api_base",
            "api_key",
            "audio",
            "base_url",
            "cache",
            "cached_content",
            "chat_template",
            "compaction",
            "compound_custom",
            "connectors",
            "container",
            "context_window_fallback_dict",
            "data_sources",
            "deferred",
            "deployment_id",
            "documents",
            "enable_search",
            "extra_body",
            "extra_headers",
            "fallbacks",
            "fastest_response",
            "guardrails",
            "input_cost_per_token",
            "litellm_params",
            "logits_processors",
            "lora_path",
            "mcp_servers",
            "mm_processor_kwargs",
            "mock_response",
            "models",
            "n_predict",
            "num_retries",
            "options",
            "plugins",
            "preset",
            "prompt_id",
            "route",
            "router_settings_override",
            "safety_model",
            "search_parameters",
            "tags",
            "ttl",
            "use_beam_search",
            "user_config",
            "vector_store_ids",
            "vllm_xargs",
            "web_search_options",
        ] {
            assert_eq!(check_text(name, "1"), Err("leave it out"), "{name}");
        }
    }

    #[test]
    fn what_passes_with_some_values_passes_with_these_alone() {
        for (name, value) in [
            ("speed", r#""standard""#),
            ("speed", "null"),
            ("inference_geo", r#""global""#),
            ("modalities", r#"["text"]"#),
            ("provider", r#""openai""#),
            ("provider", r#"{"order":["a","b"],"allow_fallbacks":false,"sort":{"by":"price"}}"#),
            ("providerOptions", r#"{"gateway":{"order":["a"]}}"#),
            ("usage", r#"{"include":true}"#),
            ("metadata", r#"{"user_id":"a","try":1}"#),
            ("chat_template_kwargs", r#"{"enable_thinking":false}"#),
            ("context_management", "null"),
            (
                "context_management",
                r#"{"edits":[{"type":"clear_tool_uses_20250919","keep":{"type":"tool_uses","value":3}}]}"#,
            ),
            ("context_management", r#"{"edits":[]}"#),
            ("reasoning", r#"{"effort":"high","max_tokens":2000,"exclude":true}"#),
            ("reasoning", r#"{"mode":null}"#),
            ("reasoning", r#"{"summary":"auto","mode":"standard"}"#),
            ("thinking_budget", "32768"),
            ("thinking_budget", "null"),
        ] {
            assert_eq!(check_text(name, value), Ok(()), "{name} {value}");
        }
        for (name, value) in [
            ("speed", r#""fast""#),
            ("inference_geo", r#""us""#),
            ("modalities", r#"["text","audio"]"#),
            ("modalities", r#""audio""#),
            ("provider", r#"{"order":["a"],"models":["gpt-5-pro"]}"#),
            ("provider", r#"[{"model":"gpt-5-pro"}]"#),
            ("providerOptions", r#"{"gateway":{"models":["gpt-5-pro"]}}"#),
            ("providerOptions", r#"{"gateway":{"byok":{}}}"#),
            ("provider_options", r#"{"xai":{"searchParameters":{"mode":"on"}}}"#),
            ("usage", r#"{"include":true,"limit":1}"#),
            ("metadata", r#"{"guardrails":["bedrock"]}"#),
            ("metadata", r#"{"tags":["dear"],"tags":"x"}"#),
            ("metadata", r#""{\"guardrails\":[\"bedrock\"]}""#),
            ("chat_template_kwargs", r#"{"Chat_Template":"{{ messages }}"}"#),
            ("context_management", r#"{"edits":[{"type":"compact_20260112"}]}"#),
            ("context_management", r#"{"edits":[{"type":"clear_thinking_20251015"},{"type":"compact_20260112"}]}"#),
            ("context_management", r#"{"edits":[{"type":"clear_thinking_20251015","type":"compact_20260112"}]}"#),
            ("context_management", r#"{"edits":[{"type":"clear_thinking_20251015","Type":"compact_20260112"}]}"#),
            ("context_management", r#"{"edits":[{}]}"#),
            ("context_management", r#"{"edits":[],"compact":{}}"#),
            ("context_management", r#"[{"type":"compaction"}]"#),
            ("reasoning", r#"{"effort":"high","mode":"pro"}"#),
            ("reasoning", r#"{"mode":"standard","mode":"pro"}"#),
            ("reasoning", r#"{"Mode":"pro"}"#),
            ("reasoning", r#"{"m\u006fde":"pro"}"#),
            ("thinking_budget", "-1"),
            ("thinking_budget", "1e6"),
            ("thinking_budget", r#""32768""#),
        ] {
            let instead = check_text(name, value).expect_err(value);
            assert_ne!(instead, "leave it out", "{name} {value}: what passes is said");
        }
    }

    #[test]
    fn what_a_request_says_by_itself_is_no_parameter_and_what_nobody_knows_is_its_operators_affair() {
        let params = |value: Value| -> BTreeMap<String, Value> { serde_json::from_value(value).expect("an object") };
        let through = ["api_base".to_owned(), "n".to_owned(), "speed".to_owned()];
        for name in ["model", "messages", "n", "stream", "tools", "response_format", "system"] {
            let said = params(json!({ name: null }));
            let unsent = unsent(&said, &through).unwrap_or_else(|| panic!("{name} is sent"));
            assert!(unsent.name == name && unsent.why("a").contains("says by itself: take it out"), "{unsent:?}");
        }
        for (unknown, word) in [
            (json!({"api_base": "https://evil.example", "seed": 7}), "leave it out"),
            (json!({"speed": "fast"}), "say standard"),
        ] {
            let unknown = params(unknown);
            let found = unsent(&unknown, &[]).expect("is not sent");
            let why = found.why("mine");
            assert!(why.contains(word) && why.contains("accounts.mine.parameters where you submit"), "{why}");
            assert_eq!(unsent(&unknown, &through), None, "it is let through by its name");
            let is_sent =
                |let_through: &[String]| unknown.iter().all(|(name, value)| is_sent(name, value, let_through));
            assert!(is_sent(&through) && !is_sent(&[]));
        }
        assert!(!is_sent("n", &json!(128), &through), "nobody lets that through");
        assert_eq!(
            unsent(&params(json!({"seed": 7, "thinking": {"type": "enabled"}, "speed": "standard"})), &[]),
            None
        );
    }
}
