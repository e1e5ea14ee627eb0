//! Tools that a request brings: those that the client runs cost the tokens that tell of them. What the provider runs itself (a search
//! of the web, a machine for code, a picture) has a price of its own, which no count of tokens tells, and may name further models.

use serde_json::value::RawValue;

use super::{
    head::Raw,
    members::{each_element, each_member},
    names::folded,
};
use crate::refusal::Rejection;

/// Types of tools that the client runs.
const OF_CLIENT: [&str; 2] = ["custom", "function"];

/// What is wrong with tools that are something else.
const NO_LIST: &str = "expected a list of objects";

/// Begins of the types of Anthropic's tools that the client runs; a date is behind them.
const OF_CLIENT_DATED: [&str; 4] = ["bash_", "computer_", "memory_", "text_editor_"];

/// Refuses tools that the provider runs.
pub(super) fn check(tools: Raw<'_>) -> Result<(), Rejection> {
    let Some(tools) = tools.filter(|tools| tools.get() != "null") else { return Ok(()) };
    let refuse = |why: &str| Rejection::unreadable(Some("tools"), format!("tools: {why}"));
    let mut refused = None;
    let listed = each_element(tools, |tool| {
        if refused.is_some() {
            return;
        }
        match kind(tool) {
            Err(why) => refused = Some(refuse(why)),
            Ok(kind) if !is_of_client(&kind) => {
                let shown: String = kind.chars().filter(|c| !c.is_control()).take(40).collect();
                refused = Some(refuse(&format!(
                    "'{shown}' is run by the provider at a price that no count of tokens tells; through the meter a request has tools of \
                     the types function and custom, and Anthropic's that the client runs: leave it out"
                )));
            }
            Ok(_) => {}
        }
    });
    listed.map_err(|_| refuse(NO_LIST))?;
    refused.map_or(Ok(()), Err)
}

fn is_of_client(kind: &str) -> bool {
    OF_CLIENT.contains(&kind) || OF_CLIENT_DATED.iter().any(|begin| kind.starts_with(begin))
}

/// The type of a tool; Anthropic's may leave it out of those that have a name.
fn kind(tool: &RawValue) -> Result<String, &'static str> {
    let (mut types, mut said, mut is_named) = (0_u32, None, false);
    let members = each_member(tool.get().as_bytes(), |name, value| {
        if folded(name) == "type" {
            types += 1;
            said = (name == "type").then_some(value);
        }
        is_named |= matches!(name, "function" | "name");
    });
    members.map_err(|_| NO_LIST)?;
    if types > 1 || (types == 1 && said.is_none()) {
        return Err("say type once, in small letters: readers of JSON differ in which of several they believe");
    }
    match said.filter(|value| value.get() != "null") {
        Some(kind) => serde_json::from_str(kind.get()).map_err(|_| "the type of each must be a text"),
        None if is_named => Ok("custom".to_owned()),
        None => Err("each needs a type or a name"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::ask::head::Head;

    fn refused(tools: &str) -> Option<String> {
        let body = format!(r#"{{"model":"m","tools":{tools}}}"#);
        let rejection = check(Head::read(body.as_bytes()).expect("is read").tools).err()?;
        assert_eq!(rejection.status.as_u16(), 400, "{body}");
        let (_, said) = rejection.written(crate::refusal::Form::OpenAi);
        let said: Value = serde_json::from_slice(&said).expect("json");
        assert_eq!(said["error"]["param"], "tools", "{said}");
        said["error"]["message"].as_str().map(str::to_owned)
    }

    #[test]
    fn what_the_provider_runs_at_a_price_of_its_own_is_not_passed_on() {
        for kind in [
            "web_search",
            "web_search_preview",
            "web_search_20250305",
            "web_fetch_20250910",
            "file_search",
            "code_interpreter",
            "code_execution_20250825",
            "image_generation",
            "mcp",
            "Function",
            "",
        ] {
            let tools = format!(r#"[{{"type":"function","function":{{}}}},{{"type":"{kind}","name":"x"}}]"#);
            let said = refused(&tools).unwrap_or_else(|| panic!("passes: {tools}"));
            assert!(said.starts_with(&format!("tools: '{kind}' is run by the provider")), "{said}");
        }
        for tools in [
            "{}",
            "[1]",
            r#""web_search""#,
            r#"[{"type":7}]"#,
            r#"[{"google_search":{}}]"#,
            r#"[{"type":null}]"#,
            r#"[{"type":"function","type":"web_search"}]"#,
            r#"[{"type":"web_search","type":"function"}]"#,
            r#"[{"type":"function","Type":"web_search"}]"#,
            r#"[{"Type":"web_search","name":"x"}]"#,
        ] {
            assert!(refused(tools).is_some(), "{tools}");
        }
    }

    #[test]
    fn what_the_client_runs_passes() {
        for tools in [
            "null",
            "[]",
            r#"[{"type":"function","function":{"name":"web_search","parameters":{"type":"object"}}}]"#,
            r#"[{"type":"function","name":"f"},{"type":"custom","name":"g"}]"#,
            r#"[{"name":"f","input_schema":{"type":"object"}},{"type":null,"name":"g"}]"#,
            r#"[{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"e"}]"#,
            r#"[{"type":"computer_20250124","name":"c"},{"type":"memory_20250818","name":"memory"}]"#,
        ] {
            assert_eq!(refused(tools), None, "{tools}");
        }
    }
}
