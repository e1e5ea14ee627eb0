//! Names of members that are not passed on: those that name other models than the one that is priced, and those that some readers of
//! JSON take for a member that the meter has read.

use serde_json::{Value, value::RawValue};

use super::head::HEAD;
use crate::{refusal::Rejection, texts};

/// What has gateways ask other models (OpenRouter, LiteLLM), or holds members that they put beside these.
const ELSEWHERE: [&str; 8] = [
    "content_policy_fallbacks",
    "context_window_fallback_dict",
    "context_window_fallbacks",
    "extra_body",
    "fallbacks",
    "models",
    "preset",
    "route",
];

/// What has a provider or gateway do more than answer (searches of OpenAI and xAI, OpenRouter's plugins): no tokens tell its price.
const BEYOND_TOKENS: [&str; 3] = ["plugins", "search_parameters", "web_search_options"];

/// What says by which provider a model is served, and may say by which model (Vercel); without capitals.
const ROUTING: [&str; 3] = ["provider", "provider_options", "provideroptions"];

/// Members of them that name a model.
const NAMING: [&str; 3] = ["fallbacks", "model", "models"];

/// Bytes of the longest name that can be one of these, however it is written.
const LONGEST: usize = 96;

/// Refuses a member of a body that may not be passed on.
pub(super) fn check(name: &str, value: &RawValue) -> Result<(), Rejection> {
    let small = folded(name);
    let of = |names: &[&'static str]| names.iter().copied().find(|known| *known == small);
    if let Some(known) = of(HEAD).or_else(|| of(&texts::READ))
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
        && !matches!(value.get(), "null" | "[]")
    {
        let why = format!("{name}: leave it out, the provider charges for it what no count of tokens tells");
        return Err(Rejection::unreadable(Some(known), why));
    }
    if let Some(known) = of(&ROUTING)
        && names_a_model(value)
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

/// Whether a member anywhere in a value names a model. What is too deep to be read may.
fn names_a_model(value: &RawValue) -> bool {
    fn within(value: &Value) -> bool {
        match value {
            Value::Array(parts) => parts.iter().any(within),
            Value::Object(parts) => parts
                .iter()
                .any(|(name, value)| (NAMING.contains(&folded(name).as_str()) && !value.is_null()) || within(value)),
            _ => false,
        }
    }
    match serde_json::from_str::<Value>(value.get()) {
        Ok(value) => within(&value),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
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
            (r#"{"model":"m","providerOptions":{"gateway":{"models":["gpt-5-pro"]}}}"#, "provideroptions"),
        ] {
            let said = refused(body).unwrap_or_else(|| panic!("passes: {body}"));
            assert!(said.starts_with(&format!("\"{name}\"")), "{said}");
        }
        let deep = format!(r#"{{"provider":{}1{}}}"#, "[".repeat(500), "]".repeat(500));
        assert!(refused(&deep).is_some(), "what is not read is not passed on");
    }

    #[test]
    fn a_name_that_is_another_one_but_for_capitals_is_refused_and_named() {
        for name in HEAD.iter().chain(&texts::READ) {
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
