//! What an adapter calls of a server's tools, and whether the server has them: names and arguments, looked at before anything is
//! called. Start reading at `check`.

use std::collections::BTreeSet;

use bench_proto::text::one_line;
use serde_json::{Map, Value};

use super::reply::Texts;
use crate::adapter::{
    spec::CallSpec,
    template::{Template, Vars},
};

/// Names that a message lists.
const MOST_NAMES: usize = 40;

/// A call of a tool, compiled.
#[derive(Debug, Clone)]
pub(in super::super) struct ToolCall {
    /// What it is for, such as `recall`.
    of: String,
    pub(in super::super) name: String,
    arguments: Template,
    /// Names of its arguments.
    given: BTreeSet<String>,
    /// What its texts are, where the result is nothing else.
    pub(super) texts: Texts,
}

impl ToolCall {
    /// Compiles a call; `known` are its variables.
    ///
    /// # Errors
    /// What is wrong, with the name of the field.
    pub(in super::super) fn compile(what: &str, tool: &str, spec: &CallSpec, known: &[&str]) -> Result<Self, String> {
        let at = |error: String| format!("{what}.arguments: {error}");
        let arguments = spec.arguments.clone().unwrap_or_else(|| Value::Object(Map::new()));
        let Value::Object(names) = &arguments else {
            return Err(at("give them by their names, such as {query: \"{query}\"}".to_owned()));
        };
        let lists = ["recall", "list"].iter().any(|operation| what.starts_with(operation));
        Ok(Self {
            of: what.to_owned(),
            name: tool.to_owned(),
            given: names.keys().cloned().collect(),
            arguments: Template::compile(&arguments, known).map_err(at)?,
            texts: if lists { Texts::EachAnElement } else { Texts::OneText },
        })
    }

    /// Its variables.
    pub(in super::super) fn names(&self, names: &mut BTreeSet<String>) {
        self.arguments.names(names);
    }

    /// The arguments for these variables.
    pub(super) fn arguments(&self, vars: &Vars) -> Map<String, Value> {
        match self.arguments.render(vars) {
            Some(Value::Object(arguments)) => arguments,
            _ => Map::new(),
        }
    }
}

/// A tool that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) name: String,
    required: BTreeSet<String>,
    /// All arguments that it has; none where it says that it takes any.
    known: Option<BTreeSet<String>>,
}

impl Tool {
    /// A tool by the JSON Schema of its arguments. A name that the schema does not have is nearly always dropped in silence, so only
    /// a schema that speaks of further ones takes any.
    #[cfg_attr(not(feature = "mcp"), allow(dead_code, reason = "only the protocol brings tools"))]
    pub(super) fn new(name: &str, schema: &Map<String, Value>) -> Self {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let takes_any = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
        let is_plain =
            ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"].iter().all(|word| !schema.contains_key(*word));
        let no_properties = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&no_properties);
        Self {
            name: name.to_owned(),
            required: required.filter_map(Value::as_str).map(str::to_owned).collect(),
            known: (is_plain && !takes_any).then(|| properties.keys().cloned().collect()),
        }
    }
}

/// Whether a server has the tools that are called, and they the arguments that they are given.
///
/// # Errors
/// What is missing, each with the names that there are.
pub(super) fn check<'c>(calls: impl Iterator<Item = &'c ToolCall>, tools: &[Tool]) -> Result<(), String> {
    let wrong: Vec<String> = calls.filter_map(|call| mistake(call, tools)).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

fn mistake(call: &ToolCall, tools: &[Tool]) -> Option<String> {
    let ToolCall { of, name, given, .. } = call;
    let Some(tool) = tools.iter().find(|tool| tool.name == *name) else {
        let there = listed(tools.iter().map(|tool| tool.name.as_str()));
        return Some(format!("{of}.tool: the server has no tool '{name}', it has {there}"));
    };
    if let Some(lacking) = tool.required.iter().find(|argument| !given.contains(*argument)) {
        let all = listed(tool.required.iter().map(String::as_str));
        let lacking = listed([lacking.as_str()].into_iter());
        return Some(format!("{of}.arguments: '{lacking}' is missing, the tool '{name}' requires {all}"));
    }
    let known = tool.known.as_ref()?;
    let unknown = given.iter().find(|argument| !known.contains(*argument))?;
    let there = listed(known.iter().map(String::as_str));
    Some(format!("{of}.arguments: the tool '{name}' has no argument '{unknown}', it has {there}"))
}

/// Names that somebody else has chosen, as far as a message has room for them.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<String> = names.map(|name| one_line(name).chars().take(80).collect()).collect();
    let all = names.len();
    names.truncate(MOST_NAMES);
    if all > MOST_NAMES {
        names.push(format!("{} more", all - MOST_NAMES));
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(what: &str, tool: &str, arguments: Value) -> ToolCall {
        let spec = CallSpec { arguments: Some(arguments), ..CallSpec::default() };
        ToolCall::compile(what, tool, &spec, &["query", "k"]).expect("compiles")
    }

    fn tool(name: &str, schema: Value) -> Tool {
        Tool::new(name, schema.as_object().expect("an object"))
    }

    #[test]
    fn tools_and_arguments_are_named_with_those_that_there_are() {
        let tools = [
            tool("add", json!({"properties": {"text": {}, "user": {}}, "required": ["text"]})),
            tool(
                "search",
                json!({"properties": {"query": {}, "limit": {}}, "required": ["query"], "additionalProperties": false}),
            ),
            tool("any", json!({"additionalProperties": true})),
            tool("either", json!({"anyOf": [{"properties": {"a": {}}}]})),
        ];
        let said = |what: &str, name: &str, arguments: Value| {
            check([call(what, name, arguments)].iter(), &tools).err().unwrap_or_default()
        };
        for (name, arguments) in [
            ("search", json!({"query": "{query}", "limit": "{k}"})),
            ("any", json!({"whatever": 1})),
            ("either", json!({"a": 1})),
        ] {
            assert_eq!(said("recall", name, arguments), "", "{name}");
        }
        assert_eq!(
            said("recall", "find", json!({})),
            "recall.tool: the server has no tool 'find', it has add, search, any, either"
        );
        assert_eq!(
            said("retain", "add", json!({"user": "a"})),
            "retain.arguments: 'text' is missing, the tool 'add' requires text"
        );
        assert_eq!(
            said("recall", "search", json!({"query": "{query}", "top_k": "{k}"})),
            "recall.arguments: the tool 'search' has no argument 'top_k', it has limit, query"
        );
        let long = [tool("add", json!({"properties": {}, "required": ["x".repeat(10_000)]}))];
        let error = check([call("retain", "add", json!({}))].iter(), &long).expect_err("it is missing");
        assert!(error.len() < 300, "{error}");
        let lines = [tool("add\n2026 ERROR forged\u{1b}[2J", json!({}))];
        let error = check([call("retain", "store", json!({}))].iter(), &lines).expect_err("it is another");
        assert!(error.ends_with("it has add 2026 ERROR forged [2J"), "{error:?}");
        let both = [call("retain", "store", json!({})), call("recall", "find", json!({}))];
        let error = check(both.iter(), &[]).expect_err("it has none");
        assert_eq!(error.matches("it has none").count(), 2, "{error}");
    }

    #[test]
    fn arguments_have_names() {
        let spec = CallSpec { arguments: Some(json!(["{query}"])), ..CallSpec::default() };
        let error = ToolCall::compile("recall", "search", &spec, &["query"]).expect_err("is a list");
        assert!(error.starts_with("recall.arguments: give them by their names"), "{error}");
    }
}
