//! Names of members that are not passed on: those that name other models than the one that is priced, and those that some readers of
//! JSON take for a member that the meter has read.

use serde_json::value::RawValue;

use super::{
    head::HEAD,
    members::{each_element, each_member},
    prompt::READ,
};
use crate::refusal::Rejection;

/// What has gateways ask other models or other servers (OpenRouter, LiteLLM), or holds members that they put beside these.
const ELSEWHERE: [&str; 24] = [
    "api_base",
    "api_key",
    "api_type",
    "api_version",
    "base_url",
    "content_policy_fallbacks",
    "context_window_fallback_dict",
    "context_window_fallbacks",
    "custom_llm_provider",
    "deployment_id",
    "engine",
    "extra_body",
    "extra_headers",
    "extra_query",
    "fallbacks",
    "headers",
    "litellm_credential_name",
    "litellm_params",
    "model_list",
    "models",
    "organization",
    "preset",
    "route",
    "user_config",
];

/// What has a provider or gateway do more than answer (searches of OpenAI, xAI and Alibaba, OpenRouter's plugins, Anthropic's servers of
/// MCP, Azure's data of one's own), or answer aloud: no price of tokens tells it.
const BEYOND_TOKENS: [&str; 9] = [
    "audio",
    "data_sources",
    "enable_search",
    "mcp_servers",
    "plugins",
    "search_options",
    "search_parameters",
    "web_search",
    "web_search_options",
];

/// What multiplies the price of tokens (Anthropic's), and the one value of each that does not.
const MULTIPLYING: [(&str, &str); 2] = [("inference_geo", r#""global""#), ("speed", r#""standard""#)];

/// What a reply may be made of.
const MODALITIES: &str = "modalities";

/// What says by which provider a model is served, and may say by which model (Vercel); without capitals.
const ROUTING: [&str; 3] = ["provider", "provider_options", "provideroptions"];

/// Members of them that name a model.
const NAMING: [&str; 3] = ["fallbacks", "model", "models"];

/// Values within values that are looked into for them.
const DEEPEST: u8 = 8;

/// Bytes of the longest name that can be one of these, however it is written.
const LONGEST: usize = 96;

/// Refuses a member of a body that may not be passed on.
pub(super) fn check(name: &str, value: &RawValue) -> Result<(), Rejection> {
    let small = folded(name);
    let of = |names: &[&'static str]| names.iter().copied().find(|known| *known == small);
    if let Some(known) = of(HEAD).or_else(|| of(&READ))
        && known != name
    {
        let why = format!("{name}: write it as {known}, some readers of JSON take both for one member");
        return Err(Rejection::unreadable(Some(known), why));
    }
    if let Some(known) = of(&ELSEWHERE)
        && value.get() != "null"
    {
        let why =
            format!("{name}: leave it out, a request through the meter is priced by its own model and asks no other");
        return Err(Rejection::unreadable(Some(known), why));
    }
    if let Some(known) = of(&BEYOND_TOKENS)
        && !is_off(known, value)
    {
        let why = format!("{name}: leave it out, the provider charges for it what no count of tokens tells");
        return Err(Rejection::unreadable(Some(known), why));
    }
    if let Some((known, plain)) = MULTIPLYING.into_iter().find(|(known, _)| *known == small)
        && value.get() != "null"
        && value.get() != plain
    {
        let why = format!("{name}: leave it out, the provider charges more for it than the price of its tokens");
        return Err(Rejection::unreadable(Some(known), why));
    }
    if small == MODALITIES && !is_text_alone(value) {
        let why = format!("{name}: ask for text alone, sounds and pictures have prices of their own");
        return Err(Rejection::unreadable(Some(MODALITIES), why));
    }
    if let Some(known) = of(&ROUTING)
        && names_a_model(value, 0)
    {
        let why = format!("{name}: leave the models in it out, a request through the meter asks its own model alone");
        return Err(Rejection::unreadable(Some(known), why));
    }
    Ok(())
}

/// A name as readers see it that make no difference between capitals and small letters: to some, two letters beyond ASCII are small
/// ones of it. Empty where it is too long to matter.
pub(super) fn folded(name: &str) -> String {
    if name.len() > LONGEST {
        return String::new();
    }
    let small = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    };
    name.chars().map(small).collect()
}

/// Whether a member of [`BEYOND_TOKENS`] asks for nothing.
fn is_off(known: &str, value: &RawValue) -> bool {
    let (mut members, mut modes, mut are_off) = (0, 0, true);
    let read = each_member(value.get().as_bytes(), |name, value| {
        members += 1;
        if folded(name) == "mode" {
            modes += u32::from(name == "mode");
            are_off &= value.get() == r#""off""#;
        }
    });
    match known {
        _ if matches!(value.get(), "null" | "[]" | "false") => true,
        "plugins" | "search_options" => read.is_ok() && members == 0,
        // xAI's: without a mode it searches where it finds that it should
        "search_parameters" => read.is_ok() && modes > 0 && are_off,
        _ => false,
    }
}

/// Whether modalities are said in which a reply is text and nothing else.
fn is_text_alone(value: &RawValue) -> bool {
    let mut is_text = true;
    let listed = each_element(value, |kind| is_text &= kind.get() == r#""text""#);
    value.get() == "null" || (listed.is_ok() && is_text)
}

/// Whether a member anywhere in a value names a model. What is too deep may.
fn names_a_model(value: &RawValue, depth: u8) -> bool {
    let (json, mut is_named) = (value.get(), false);
    let read = match json.as_bytes().first() {
        Some(b'{' | b'[') if depth == DEEPEST => return true,
        Some(b'{') => each_member(json.as_bytes(), |name, value| {
            is_named |= match NAMING.contains(&folded(name).as_str()) {
                true => value.get() != "null",
                false => names_a_model(value, depth + 1),
            };
        }),
        Some(b'[') => each_element(value, |part| is_named |= names_a_model(part, depth + 1)),
        _ => return false,
    };
    is_named || read.is_err()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::ask::head::Head;

    fn refused(body: &str) -> Option<String> {
        let rejection = Head::read(body.as_bytes()).err()?;
        assert_eq!(rejection.status.as_u16(), 400, "{body}");
        let (_, said) = rejection.written(crate::refusal::Form::OpenAi);
        let said: Value = serde_json::from_slice(&said).expect("json");
        Some(format!("{} {}", said["error"]["param"], said["error"]["message"]))
    }

    #[test]
    fn other_models_than_the_priced_one_are_not_passed_on() {
        for (body, name) in [
            (r#"{"model":"m","models":["m","gpt-5-pro"]}"#, "models"),
            (r#"{"model":"m","models":null,"models":["gpt-5-pro"]}"#, "models"),
            (r#"{"model":"m","models":["gpt-5-pro"],"models":null}"#, "models"),
            (r#"{"model":"m","m\u006fdels":[]}"#, "models"),
            (r#"{"model":"m","MODELS":["gpt-5-pro"]}"#, "models"),
            (r#"{"model":"m","route":"fallback"}"#, "route"),
            (r#"{"model":"m","fallbacks":[{"model":"gpt-5-pro"}]}"#, "fallbacks"),
            (r#"{"model":"m","context_window_fallbacks":[]}"#, "context_window_fallbacks"),
            (r#"{"model":"m","extra_body":{"models":["gpt-5-pro"]}}"#, "extra_body"),
            (r#"{"model":"m","preset":"dear"}"#, "preset"),
            (r#"{"model":"m","web_search_options":{}}"#, "web_search_options"),
            (r#"{"model":"m","plugins":[{"id":"web"}]}"#, "plugins"),
            (r#"{"model":"m","Search_Parameters":{"mode":"on"}}"#, "search_parameters"),
            (r#"{"model":"m","provider":{"models":["gpt-5-pro"]}}"#, "provider"),
            (r#"{"model":"m","api_base":"https://evil.example"}"#, "api_base"),
            (r#"{"model":"m","Base_URL":"https://evil.example"}"#, "base_url"),
            (r#"{"model":"m","api_key":"x"}"#, "api_key"),
            (r#"{"model":"m","user_config":{"model_list":[]}}"#, "user_config"),
            (r#"{"model":"m","extra_headers":{"x":"y"}}"#, "extra_headers"),
            (r#"{"model":"m","providerOptions":{"gateway":{"models":["gpt-5-pro"]}}}"#, "provideroptions"),
        ] {
            let said = refused(body).unwrap_or_else(|| panic!("passes: {body}"));
            assert!(said.starts_with(&format!("\"{name}\"")), "{said}");
        }
        for (depth, is_refused) in [(8, false), (9, true), (500, true)] {
            let deep = format!(r#"{{"provider":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
            assert_eq!(refused(&deep).is_some(), is_refused, "{depth}: what is not looked into is not passed on");
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
    }

    #[test]
    fn p34_what_no_price_of_tokens_covers_is_not_passed_on() {
        for (body, name) in [
            (r#"{"model":"m","mcp_servers":[{"type":"url","url":"https://a.example"}]}"#, "mcp_servers"),
            (r#"{"model":"m","enable_search":true}"#, "enable_search"),
            (r#"{"model":"m","search_options":{"forced_search":true}}"#, "search_options"),
            (r#"{"model":"m","search_options":{"a":null}}"#, "search_options"),
            (r#"{"model":"m","search_options":true}"#, "search_options"),
            (r#"{"model":"m","plugins":{"id":"web"}}"#, "plugins"),
            (r#"{"model":"m","search_parameters":{}}"#, "search_parameters"),
            (r#"{"model":"m","search_parameters":{"mode":"auto"}}"#, "search_parameters"),
            (r#"{"model":"m","search_parameters":{"mode":"off","mode":"on"}}"#, "search_parameters"),
            (r#"{"model":"m","search_parameters":{"mode":"off","Mode":"on"}}"#, "search_parameters"),
            (r#"{"model":"m","search_parameters":{"Mode":"off"}}"#, "search_parameters"),
            (r#"{"model":"m","web_search_options":{"mode":"off"}}"#, "web_search_options"),
            (r#"{"model":"m","data_sources":[{"type":"azure_search"}]}"#, "data_sources"),
            (r#"{"model":"m","audio":{"voice":"a","format":"wav"}}"#, "audio"),
            (r#"{"model":"m","modalities":["text","audio"]}"#, "modalities"),
            (r#"{"model":"m","Modalities":["image"]}"#, "modalities"),
            (r#"{"model":"m","modalities":"audio"}"#, "modalities"),
            (r#"{"model":"m","speed":"fast"}"#, "speed"),
            (r#"{"model":"m","inference_geo":"us"}"#, "inference_geo"),
        ] {
            let said = refused(body).unwrap_or_else(|| panic!("passes: {body}"));
            assert!(said.starts_with(&format!("\"{name}\"")), "{said}");
        }
        for body in [
            r#"{"model":"m","speed":"standard","inference_geo":"global","enable_search":false,"mcp_servers":[]}"#,
            r#"{"model":"m","search_options":{},"plugins":{ },"search_parameters":{"mode":"off","return_citations":false}}"#,
            r#"{"model":"m","search_options":[],"plugins":false,"search_parameters":null}"#,
            r#"{"model":"m","speed":null,"modalities":null,"audio":null,"api_base":null,"data_sources":[]}"#,
        ] {
            assert_eq!(refused(body), None, "{body}");
        }
    }

    #[test]
    fn everything_else_passes() {
        for body in [
            r#"{"model":"m","messages":[{"role":"user","content":"x","Model":"y","models":["z"]}],"n":2,"stream":true}"#,
            r#"{"model":"m","provider":{"order":["a","b"],"allow_fallbacks":false,"sort":"price"}}"#,
            r#"{"model":"m","provider":"openai","models":null,"fallbacks":null,"plugins":[],"web_search_options":null}"#,
            r#"{"model":"m","modalities":["text"],"metadata":{"route":"a"},"tools":[{"function":{"name":"models"}}]}"#,
            r#"{}"#,
        ] {
            assert_eq!(refused(body), None, "{body}");
        }
        let long = format!(r#"{{"{}":1}}"#, "MODEL".repeat(100));
        assert_eq!(refused(&long), None);
    }
}
