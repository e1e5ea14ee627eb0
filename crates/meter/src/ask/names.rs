//! Which members of a body pass: those that the meter reads, those that operations have, and parameters that cost nothing beyond tokens.
//! All others are its operator's affair, and so is a value that is not known to cost nothing.

use std::borrow::Cow;

use bench_models::parameters;
use serde_json::value::RawValue;

use super::{head::HEAD, prompt::READ};
use crate::refusal::Rejection;

/// What operations have beside what is read here and what all models have: it says what is replied, and costs nothing beyond tokens.
const OF_OPERATIONS: [&str; 20] = [
    "anthropic_version",
    "dimensions",
    "embedding_type",
    "embedding_types",
    "encoding_format",
    "function_call",
    "include",
    "input_type",
    "late_chunking",
    "max_tool_calls",
    "normalize",
    "normalized",
    "output_config",
    "output_dimension",
    "output_dtype",
    "output_format",
    "prediction",
    "task",
    "tool_choice",
    "truncate",
];

/// Bytes of the longest name that can be one of these, however it is written.
const LONGEST: usize = 96;

/// A member that passes where the operator of the account lets it through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unlisted {
    pub(crate) name: String,
    /// What to do in its place.
    pub(crate) instead: &'static str,
}

/// What a member of a body needs to pass; nothing, for most.
///
/// # Errors
/// A name that some readers of JSON take for one that is read here.
pub(super) fn check(name: &str, value: &RawValue) -> Result<Option<Unlisted>, Rejection> {
    if HEAD.contains(&name) || READ.contains(&name) {
        return Ok(None);
    }
    let small = folded(name);
    if let Some(known) = HEAD.iter().chain(&READ).copied().find(|known| *known == small) {
        let why = format!("{name}: write it as {known}, some readers of JSON take both for one member");
        return Err(Rejection::unreadable(Some(known), why));
    }
    if OF_OPERATIONS.contains(&name) {
        return Ok(None);
    }
    Ok(parameters::check(name, value).err().map(|instead| Unlisted { name: name.to_owned(), instead }))
}

/// A name as readers see it that make no difference between capitals and small letters: to some, two letters beyond ASCII are small
/// ones of it. Empty where it is too long to matter.
pub(super) fn folded(name: &str) -> Cow<'_, str> {
    if name.len() > LONGEST {
        return Cow::Borrowed("");
    }
    if name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(name);
    }
    let small = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    };
    name.chars().map(small).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::ask::head::Head;

    /// What a body is refused for, whoever its account is.
    fn refused(body: &str) -> Option<String> {
        let rejection = Head::read(body.as_bytes()).err()?;
        assert_eq!(rejection.status.as_u16(), 400, "{body}");
        let (_, said) = rejection.written(crate::refusal::Form::OpenAi);
        let said: Value = serde_json::from_slice(&said).expect("json");
        Some(format!("{} {}", said["error"]["param"], said["error"]["message"]))
    }

    /// Members of a body that need the word of an operator.
    fn unlisted(body: &str) -> Vec<String> {
        let head = Head::read(body.as_bytes()).unwrap_or_else(|refused| panic!("{body}: {refused:?}"));
        head.unlisted.into_iter().map(|member| member.name).collect()
    }

    #[test]
    fn other_models_than_the_priced_one_are_not_passed_on() {
        for (body, name) in [
            (r#"{"model":"m","models":["m","gpt-5-pro"]}"#, "models"),
            (r#"{"model":"m","models":null,"models":["gpt-5-pro"]}"#, "models"),
            (r#"{"model":"m","models":["gpt-5-pro"],"models":null}"#, "models"),
            (r#"{"model":"m","m\u006fdels":["m"]}"#, "models"),
            (r#"{"model":"m","MODELS":["gpt-5-pro"]}"#, "MODELS"),
            (r#"{"model":"m","route":"fallback"}"#, "route"),
            (r#"{"model":"m","fallbacks":[{"model":"gpt-5-pro"}]}"#, "fallbacks"),
            (r#"{"model":"m","context_window_fallbacks":["gpt-5-pro"]}"#, "context_window_fallbacks"),
            (r#"{"model":"m","extra_body":{"models":["gpt-5-pro"]}}"#, "extra_body"),
            (r#"{"model":"m","preset":"dear"}"#, "preset"),
            (r#"{"model":"m","provider":{"models":["gpt-5-pro"]}}"#, "provider"),
            (r#"{"model":"m","api_base":"https://evil.example"}"#, "api_base"),
            (r#"{"model":"m","Base_URL":"https://evil.example"}"#, "Base_URL"),
            (r#"{"model":"m","api_key":"x"}"#, "api_key"),
            (r#"{"model":"m","user_config":{"model_list":[]}}"#, "user_config"),
            (r#"{"model":"m","extra_headers":{"x":"y"}}"#, "extra_headers"),
            (r#"{"model":"m","providerOptions":{"gateway":{"models":["gpt-5-pro"]}}}"#, "providerOptions"),
            (r#"{"model":"m","safety_model":"guard"}"#, "safety_model"),
            (r#"{"model":"m","lora":[{"id":0,"scale":1}]}"#, "lora"),
        ] {
            assert_eq!(unlisted(body), [name], "{body}");
        }
    }

    #[test]
    fn a_name_that_is_another_one_but_for_capitals_is_refused_and_named() {
        for name in HEAD.iter().chain(&READ) {
            let body = format!(r#"{{"{}":1}}"#, name.to_uppercase());
            let said = refused(&body).unwrap_or_else(|| panic!("passes: {body}"));
            assert!(said.contains(&format!("write it as {name}")), "{said}");
        }
        for name in ["Model", "MODEL", "Max_Tokens", "N", "Stream", "max_to\u{212a}ens", "\u{17f}tream", "Messages"] {
            let body = format!(r#"{{"model":"m","{name}":1}}"#);
            let said = refused(&body).unwrap_or_else(|| panic!("passes: {body}"));
            assert!(said.contains(&format!("{name}: write it as {}", folded(name))), "{said}");
        }
        assert!(refused(r#"{"model":"m","Model":null}"#).is_some());
        assert!(refused("[]").is_some() && refused("{\"a\":").is_some());
        assert_eq!(unlisted(r#"{"model":"m","Seed":7,"TOP_P":0.5}"#), ["Seed", "TOP_P"], "who reads them is not known");
    }

    #[test]
    fn p34_what_no_price_of_tokens_covers_is_not_passed_on() {
        for (body, name) in [
            (r#"{"model":"m","mcp_servers":[{"type":"url","url":"https://a.example"}]}"#, "mcp_servers"),
            (r#"{"model":"m","enable_search":true}"#, "enable_search"),
            (r#"{"model":"m","search_options":{}}"#, "search_options"),
            (r#"{"model":"m","plugins":[{"id":"web"}]}"#, "plugins"),
            (r#"{"model":"m","Search_Parameters":{"mode":"on"}}"#, "Search_Parameters"),
            (r#"{"model":"m","search_parameters":{"mode":"off","mode":"on"}}"#, "search_parameters"),
            (r#"{"model":"m","web_search_options":{}}"#, "web_search_options"),
            (r#"{"model":"m","data_sources":[{"type":"azure_search"}]}"#, "data_sources"),
            (r#"{"model":"m","audio":{"voice":"a","format":"wav"}}"#, "audio"),
            (r#"{"model":"m","modalities":["text","audio"]}"#, "modalities"),
            (r#"{"model":"m","Modalities":["image"]}"#, "Modalities"),
            (r#"{"model":"m","speed":"fast"}"#, "speed"),
            (r#"{"model":"m","inference_geo":"us"}"#, "inference_geo"),
            (r#"{"model":"m","container":"c_1"}"#, "container"),
            (r#"{"model":"m","context_management":{"edits":[{"type":"compact_20260112"}]}}"#, "context_management"),
            (
                r#"{"model":"m","context_management":[{"type":"compaction","compact_threshold":1}]}"#,
                "context_management",
            ),
            (r#"{"model":"m","compaction":{"type":"enabled"}}"#, "compaction"),
            (r#"{"model":"m","use_beam_search":true}"#, "use_beam_search"),
            (r#"{"model":"m","n_predict":100000}"#, "n_predict"),
            (r#"{"model":"m","deferred":true}"#, "deferred"),
            (r#"{"model":"m","chat_template":"{{ messages }}"}"#, "chat_template"),
            (r#"{"model":"m","metadata":{"guardrails":["bedrock"]}}"#, "metadata"),
            (r#"{"model":"m","num_retries":9}"#, "num_retries"),
            (r#"{"model":"m","what_comes_next_year":{}}"#, "what_comes_next_year"),
        ] {
            assert_eq!(unlisted(body), [name], "{body}");
        }
    }

    #[test]
    fn what_is_known_and_what_asks_for_nothing_passes() {
        for body in [
            r#"{"model":"m","messages":[{"role":"user","content":"x","Model":"y","models":["z"]}],"n":2,"stream":true}"#,
            r#"{"model":"m","provider":{"order":["a","b"],"allow_fallbacks":false,"sort":"price"},"usage":{"include":true}}"#,
            r#"{"model":"m","provider":"openai","models":null,"fallbacks":null,"plugins":[],"web_search_options":null}"#,
            r#"{"model":"m","modalities":["text"],"metadata":{"route":"a"},"tools":[{"function":{"name":"models"}}]}"#,
            r#"{"model":"m","speed":"standard","inference_geo":"global","enable_search":false,"mcp_servers":[]}"#,
            r#"{"model":"m","speed":null,"modalities":null,"audio":null,"api_base":null,"data_sources":[]}"#,
            r#"{"model":"m","temperature":0,"seed":7,"top_k":40,"repetition_penalty":1.1,"guided_json":{"type":"object"}}"#,
            r#"{"model":"m","input":"x","dimensions":256,"encoding_format":"base64","input_type":"query","truncate":"END"}"#,
            r#"{"model":"m","output_config":{"effort":"low"},"thinking":{"type":"adaptive"},"tool_choice":{"type":"auto"}}"#,
            r#"{"model":"m","context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}}"#,
            r#"{}"#,
        ] {
            assert_eq!(unlisted(body), Vec::<String>::new(), "{body}");
        }
    }

    #[test]
    fn names_without_end_are_refused_and_not_held() {
        let bodies = [
            format!(r#"{{"{}":1}}"#, "MODEL".repeat(100)),
            format!("{{{}}}", (0..100).map(|n| format!(r#""x{n}":1"#)).collect::<Vec<_>>().join(",")),
        ];
        let said = bodies.map(|body| refused(&body).unwrap_or_else(|| panic!("passes: {body}")));
        assert!(said[0].contains("leave it out"), "{said:?}");
        assert!(said[1].contains("more than 16 members") && said[1].contains("the first is x0"), "{said:?}");
        let again = format!("{{{}}}", vec![r#""x":1"#; 100].join(","));
        assert_eq!(unlisted(&again), ["x"]);
    }
}
