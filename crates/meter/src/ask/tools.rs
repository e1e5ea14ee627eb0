//! Tools that a request brings: those that the client runs cost the tokens that tell of them. What the provider runs itself (a search
//! of the web, a machine for code, a picture) has a price of its own, which no count of tokens tells, and may name further models.

use bench_models::members::{each_element, each_member};
use serde_json::value::RawValue;

use super::head::Raw;
use crate::refusal::Rejection;

/// Types of tools that the client runs.
const OF_CLIENT: [&str; 2] = ["custom", "function"];

/// What is wrong with tools that are something else.
const NO_LIST: &str = "expected a list of objects";

/// Begins of the types of Anthropic's tools that the client runs; a date is behind them.
const OF_CLIENT_DATED: [&str; 4] = ["bash_", "computer_", "memory_", "text_editor_"];

/// The one that has no name.
const NAMELESS: &str = "computer_use_preview";

/// What tells of a tool that the client runs. Gateways take a type away and go by what is left (`googleSearch`), so nothing else may
/// stand beside it.
const MEMBERS: [&str; 21] = [
    "cache_control",
    "custom",
    "defer_loading",
    "description",
    "display_height",
    "display_height_px",
    "display_number",
    "display_width",
    "display_width_px",
    "eager_input_streaming",
    "enable_zoom",
    "format",
    "function",
    "input_examples",
    "input_schema",
    "max_characters",
    "name",
    "output_schema",
    "parameters",
    "strict",
    "type",
];

/// Whether a member tells of a tool that the client runs.
fn tells(name: &str, value: &RawValue) -> bool {
    match name {
        // code that the provider runs at a price of its own may call it else
        "allowed_callers" => {
            let mut are_direct = true;
            let listed = each_element(value, |caller| are_direct &= caller.get() == "\"direct\"");
            listed.is_ok() && are_direct
        }
        // what a computer is, in a word; a container has members
        "environment" => value.get().starts_with('"'),
        _ => MEMBERS.contains(&name),
    }
}

/// Refuses tools that the provider runs, among those of a member of the body.
pub(super) fn check(member: &'static str, tools: Raw<'_>) -> Result<(), Rejection> {
    let Some(tools) = tools.filter(|tools| tools.get() != "null") else { return Ok(()) };
    let refuse = |why: &str| Rejection::unreadable(Some(member), format!("{member}: {why}"));
    let mut refused = None;
    let listed = each_element(tools, |tool| {
        if refused.is_none() {
            refused = check_tool(tool).err().map(|why| refuse(&why));
        }
    });
    listed.map_err(|_| refuse(NO_LIST))?;
    refused.map_or(Ok(()), Err)
}

/// Refuses a tool that the provider runs, within a member of the body.
pub(super) fn check_one(member: &'static str, tool: &RawValue) -> Result<(), Rejection> {
    check_tool(tool).map_err(|why| Rejection::unreadable(Some(member), format!("{member}: {why}")))
}

/// What is wrong with a tool.
fn check_tool(tool: &RawValue) -> Result<(), String> {
    let (mut types, mut said, mut is_named, mut foreign) = (0_u32, None, false, None);
    let members = each_member(tool.get().as_bytes(), |name, value| {
        if name == "type" {
            types += 1;
            said = Some(value);
        } else if value.get() != "null" {
            is_named |= matches!(name, "custom" | "function" | "name");
            if !tells(name, value) {
                foreign.get_or_insert_with(|| name.to_owned());
            }
        }
    });
    members.map_err(|_| NO_LIST)?;
    if types > 1 {
        return Err("say type once: readers of JSON differ in which of several they believe".to_owned());
    }
    let kind = match said.filter(|value| value.get() != "null") {
        Some(kind) => serde_json::from_str(kind.get()).map_err(|_| "the type of each must be a text")?,
        None => "custom".to_owned(),
    };
    let shown = |what: &str| what.chars().filter(|c| !c.is_control()).take(40).collect::<String>();
    match foreign {
        _ if !is_of_client(&kind) => Err(format!(
            "'{}' is run by the provider at a price that no count of tokens tells; through the meter a request has tools of the types \
             function and custom, and Anthropic's that the client runs: leave it out",
            shown(&kind)
        )),
        Some(foreign) => Err(format!(
            "'{}' beside a tool is not known here; gateways take a type away and go by what is left, so that a tool has nothing beside \
             what is known to tell of it: leave it out",
            shown(&foreign)
        )),
        None if !is_named && kind != NAMELESS => {
            Err("each needs a name, or what its type is called with one in it".to_owned())
        }
        None => Ok(()),
    }
}

fn is_of_client(kind: &str) -> bool {
    OF_CLIENT.contains(&kind) || OF_CLIENT_DATED.iter().any(|begin| kind.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::ask::head::Head;

    fn refused(tools: &str) -> Option<String> {
        let body = format!(r#"{{"model":"m","tools":{tools},"functions":{tools}}}"#);
        let head = Head::read(body.as_bytes()).expect("is read");
        let said = [("tools", head.tools), ("functions", head.functions)].map(|(member, tools)| {
            let rejection = check(member, tools).err()?;
            assert_eq!(rejection.status.as_u16(), 400, "{body}");
            let (_, said) = rejection.written(crate::refusal::Form::OpenAi);
            let said: Value = serde_json::from_slice(&said).expect("json");
            assert_eq!(said["error"]["param"], member, "{said}");
            Some(said["error"]["message"].as_str()?.replacen(member, "tools", 1))
        });
        let [of_tools, of_functions] = said;
        assert_eq!(of_tools, of_functions, "gateways take both for one");
        of_tools
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
            r#"[{"type":"function"}]"#,
            r#"[{"type":"custom","description":"x"}]"#,
            r#"[{"type":"function","function":null}]"#,
        ] {
            assert!(refused(tools).is_some(), "{tools}");
        }
    }

    #[test]
    fn what_stands_beside_a_tool_is_no_way_to_another_one() {
        for (tools, name) in [
            (r#"[{"type":"function","googleSearch":{}}]"#, "googleSearch"),
            (r#"[{"type":"function","function":{"name":"f"},"enterpriseWebSearch":{}}]"#, "enterpriseWebSearch"),
            (r#"[{"name":"f","description":"x"},{"name":"g","code_execution":{}}]"#, "code_execution"),
            (r#"[{"type":"computer_20250124","name":"computer","urlContext":{}}]"#, "urlContext"),
            (r#"[{"name":"f","Name":"g"}]"#, "Name"),
            (r#"[{"name":"f","allowed_callers":["direct","code_execution_20250825"]}]"#, "allowed_callers"),
            (r#"[{"name":"f","allowed_callers":"direct"}]"#, "allowed_callers"),
            (r#"[{"name":"f","environment":{"type":"container_auto"}}]"#, "environment"),
            (r#"[{"type":"function","name":"f","server_url":"https://evil.example"}]"#, "server_url"),
        ] {
            let said = refused(tools).unwrap_or_else(|| panic!("passes: {tools}"));
            assert!(said.starts_with(&format!("tools: '{name}' beside a tool is not known here")), "{said}");
        }
    }

    #[test]
    fn what_the_client_runs_passes() {
        for tools in [
            "null",
            "[]",
            r#"[{"type":"function","function":{"name":"web_search","parameters":{"type":"object"}}}]"#,
            r#"[{"type":"function","name":"f"},{"type":"custom","name":"g"}]"#,
            r#"[{"name":"f","input_schema":{"type":"object"}},{"type":null,"name":"g","googleSearch":null}]"#,
            r#"[{"name":"f","description":"x","parameters":{"type":"object"},"strict":true}]"#,
            r#"[{"type":"custom","name":"g","format":{"type":"text"},"cache_control":{"type":"ephemeral"}}]"#,
            r#"[{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"e"}]"#,
            r#"[{"type":"computer_20250124","name":"c"},{"type":"memory_20250818","name":"memory"}]"#,
            r#"[{"name":"f","allowed_callers":["direct"],"output_schema":{"type":"object"}}]"#,
            r#"[{"type":"function","name":"f","allowed_callers":null}]"#,
            r#"[{"type":"computer_use_preview","display_width":1024,"display_height":768,"environment":"browser"}]"#,
        ] {
            assert_eq!(refused(tools), None, "{tools}");
        }
    }
}
