//! What memory systems have a model make of a text: statements, names, and a graph of both.
//!
//! Their servers ask in many shapes (a schema of the request, a schema in the prompt, an example in the prompt) for the same thing:
//! a list of what a text says. A rule stands in for the model: a statement is a line of the text, a name is a capitalised word, two
//! names are related when one statement has both. So what is stored can be told from what was said, and nothing is invented.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::{
    request::{ChatRequest, ReplyForm},
    schema::Schema,
};

/// What a request asks to be made of its text.
pub(crate) enum Wanted<'a> {
    /// An object of this schema.
    Schema(Box<Cow<'a, Schema>>),
    /// `{"memory": [{"id", "text"}]}`, as Mem0's prompt shows it.
    Memories,
}

/// Where the text stands in prompts that wrap it: what is before it, and what is behind it.
const AROUND: [(&str, &str); 5] = [
    ("## New Messages\n", "\n\n## "),
    ("### New facts\n", "\n\n### "),
    ("<CURRENT MESSAGE>", "</CURRENT MESSAGE>"),
    ("<CURRENT_MESSAGE>", "</CURRENT_MESSAGE>"),
    ("\nContent:\n", "\n\n\n"),
];

/// Where a prompt lists the names that it asks about, each in an object of JSON.
const NAMES: (&str, &str) = ("<ENTITIES>", "</ENTITIES>");

/// A statement has at least so many words: fewer are greetings and thanks.
const WORDS: usize = 4;
/// Statements and names of one reply.
const MOST: usize = 64;
const MOST_NAMES: usize = 16;
/// References are followed and objects nested to this depth.
const MAX_DEPTH: usize = 8;

/// What a request asks to be extracted; `None` when it asks for something else.
pub(crate) fn wanted<'a>(request: &'a ChatRequest<'_>) -> Option<Wanted<'a>> {
    let systems = || request.messages.iter().filter(|message| message.role == "system");
    match &request.form {
        ReplyForm::JsonSchema(schema) => extracts(schema).then_some(Wanted::Schema(Box::new(Cow::Borrowed(schema)))),
        ReplyForm::JsonObject => {
            let told = systems().find_map(|message| schema_in(&message.text)).filter(extracts);
            let shown = || {
                request.last_user_text().contains(AROUND[0].0) && systems().any(|of| of.text.contains("{\"memory\": ["))
            };
            told.map(|schema| Wanted::Schema(Box::new(Cow::Owned(schema))))
                .or_else(|| shown().then_some(Wanted::Memories))
        }
        ReplyForm::Text => None,
    }
}

/// The reply to such a request.
pub(crate) fn reply(wanted: &Wanted<'_>, text: &str) -> String {
    let statements: Vec<Statement<'_>> = lines(text).filter_map(Statement::read).take(MOST).collect();
    match wanted {
        Wanted::Memories => {
            let memories = statements.iter().enumerate();
            let memories: Vec<Value> =
                memories.map(|(n, said)| json!({"id": n.to_string(), "text": said.text})).collect();
            json!({ "memory": memories }).to_string()
        }
        Wanted::Schema(schema) => {
            let listed = listed(text);
            let names = match &listed {
                Some(listed) => listed.iter().map(String::as_str).collect(),
                None => names_of(&statements),
            };
            Writer { root: schema, statements: &statements, names }.object()
        }
    }
}

/// Whether a schema asks for what a text says: a list of objects or texts, a summary, or nothing that has to be there, as the dates of
/// a fact; and for nothing that speaks a verdict.
fn extracts(schema: &Schema) -> bool {
    let top = schema.resolved(schema);
    let properties = || top.properties.0.iter().map(|(name, of)| (name.as_str(), of.resolved(schema)));
    let speaks = |of: &Schema| of.choices.is_some() || matches!(of.kind(), "boolean" | "integer" | "number");
    let lists = |of: &Schema| of.kind() == "array" && of.item(schema).is_some_and(|item| item.kind() != "boolean");
    let needs_nothing =
        properties().next().is_some() && properties().all(|(_, of)| of.may_be_null() && !of.any_of.iter().any(speaks));
    let says = |(name, of): (&str, &Schema)| lists(of) || name == "summary";
    (needs_nothing || properties().any(says)) && !properties().any(|(_, of)| speaks(of))
}

/// The first schema of an object that stands in a prompt.
fn schema_in(prompt: &str) -> Option<Schema> {
    if !prompt.contains("\"properties\"") {
        return None;
    }
    let mut from = 0;
    while let Some(at) = prompt[from..].find('{').map(|at| from + at) {
        let mut read = serde_json::Deserializer::from_str(&prompt[at..]).into_iter::<Value>();
        match read.next() {
            Some(Ok(value)) if value.get("properties").is_some() => {
                // read again: values forget the order of their members, schemas keep it
                return serde_json::Deserializer::from_str(&prompt[at..]).into_iter::<Schema>().next()?.ok();
            }
            Some(Ok(_)) => from = at + read.byte_offset(),
            _ => from = at + 1,
        }
    }
    None
}

/// The lines of what a prompt wraps, or of all of it.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let wrapped = AROUND.iter().find_map(|(before, behind)| {
        let (_, from) = text.split_once(before)?;
        Some(from.split_once(behind).map_or(from, |(inside, _)| inside))
    });
    wrapped.unwrap_or(text).lines()
}

/// The names that a prompt lists.
fn listed(text: &str) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let (inside, _) = text.split_once(NAMES.0)?.1.split_once(NAMES.1)?;
    let named: Vec<Named> = serde_json::from_str(inside).ok()?;
    Some(named.into_iter().map(|named| named.name).collect())
}

/// A line that says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Statement<'a> {
    /// The whole line, with an id that may stand before it.
    line: &'a str,
    text: &'a str,
}

impl<'a> Statement<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let mut text = line;
        for role in ["user: ", "assistant: ", "system: "] {
            text = text.strip_prefix(role).unwrap_or(text);
        }
        // a number of what was said before: `[1c3f…] it rained | When: … (mentioned_at=…)`
        if let Some((id, said)) = text.strip_prefix('[').and_then(|rest| rest.split_once("] "))
            && id.len() >= 32
            && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
        {
            text = said.split(" | ").next().unwrap_or(said);
            text = text.split(" (mentioned_at=").next().unwrap_or(text);
        }
        (text.split_whitespace().count() >= WORDS).then_some(Self { line, text })
    }

    /// Capitalised words that do not begin a sentence, and whoever speaks (`Ann: …`).
    fn names(&self) -> Vec<&'a str> {
        let mut names = Vec::new();
        let mut begins = true;
        for word in self.text.split_whitespace() {
            let name = word.trim_matches(|c: char| !c.is_alphanumeric());
            let speaks = word.ends_with(':');
            let is_name = name.chars().count() > 2
                && name.starts_with(char::is_uppercase)
                && name.chars().all(char::is_alphabetic);
            if is_name && (!begins || speaks) && !names.contains(&name) {
                names.push(name);
            }
            begins = word.ends_with(['.', '!', '?', ':', ']']);
        }
        names
    }
}

fn names_of<'a>(statements: &[Statement<'a>]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for name in statements.iter().flat_map(Statement::names) {
        if !names.contains(&name) && names.len() < MOST_NAMES {
            names.push(name);
        }
    }
    names
}

/// What an element of a list is about.
#[derive(Debug, Clone, Copy)]
enum About<'a> {
    Statement(Statement<'a>),
    Name(&'a str),
    Pair(&'a str, &'a str),
    Nothing,
}

/// Writes an object of a schema, its members in the schema's order.
struct Writer<'a> {
    root: &'a Schema,
    statements: &'a [Statement<'a>],
    names: Vec<&'a str>,
}

impl<'a> Writer<'a> {
    fn object(&self) -> String {
        let whole = self.statements.first().map_or(About::Nothing, |first| About::Statement(*first));
        let top = self.root.resolved(self.root);
        let members = top.properties.0.iter().map(|(name, of)| {
            let of = of.resolved(self.root);
            let value = if of.kind() == "array" { self.list(name, of) } else { self.value(name, of, whole, 1) };
            (name.as_str(), value)
        });
        object(members)
    }

    /// A list of the reply itself: of a graph's names or relations, else of the statements.
    fn list(&self, name: &str, of: &Schema) -> String {
        // it adds what is said, and knows of nothing that this would change
        let item = of.item(self.root).filter(|_| !matches!(name, "updates" | "deletes"));
        // numbers name what it was shown: it finds nothing repeated and nothing contradicted
        let Some(item) = item.filter(|item| !matches!(item.kind(), "integer" | "number")) else {
            return "[]".to_owned();
        };
        let about: Vec<About<'_>> = if is_relation(item) {
            self.pairs().map(|(one, other)| About::Pair(one, other)).collect()
        } else if has(item, "name") {
            self.names.iter().map(|name| About::Name(name)).collect()
        } else {
            self.statements.iter().map(|said| About::Statement(*said)).collect()
        };
        let most = of.max_items.unwrap_or(MOST);
        array(about.into_iter().take(most).map(|about| self.value(name, item, about, 1)))
    }

    /// Names that stand in one statement: the first with each of the others.
    fn pairs(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.statements.iter().flat_map(|said| {
            let names: Vec<&str> = said.names().into_iter().filter(|name| self.names.contains(name)).collect();
            let first = names.first().copied().unwrap_or_default();
            names.into_iter().skip(1).map(move |other| (first, other))
        })
    }

    /// The number of an element is its place; what it would repeat is none of what is there.
    fn number(&self, name: &str, of: &Schema, about: About<'_>) -> i64 {
        let place = match about {
            About::Name(name) => self.names.iter().position(|known| *known == name),
            About::Statement(said) => {
                self.statements.iter().position(|known| known.line.as_ptr() == said.line.as_ptr())
            }
            About::Pair(..) | About::Nothing => None,
        };
        match (name, place) {
            ("id", Some(place)) => i64::try_from(place).unwrap_or(i64::MAX),
            _ if name.starts_with("duplicate_") => -1,
            _ => of.minimum.unwrap_or_default() as i64,
        }
    }

    fn value(&self, name: &str, of: &Schema, about: About<'_>, depth: usize) -> String {
        let of = of.resolved(self.root);
        if depth > MAX_DEPTH || of.may_be_null() {
            return "null".to_owned();
        }
        if let Some(constant) = &of.constant {
            return constant.to_string();
        }
        if let Some(choices) = of.choices.as_deref().filter(|choices| !choices.is_empty()) {
            return chosen(choices, about).to_string();
        }
        if let Some(first) = of.any_of.first() {
            return self.value(name, first, about, depth + 1);
        }
        match of.kind() {
            "boolean" => "false".to_owned(),
            "integer" | "number" => self.number(name, of, about).to_string(),
            "null" => "null".to_owned(),
            "object" => {
                let members = of.properties.0.iter();
                object(members.map(|(name, of)| (name.as_str(), self.value(name, of, about, depth + 1))))
            }
            "array" => match (of.item(self.root), about) {
                (Some(item), _) if item.choices.is_some() => array([self.value(name, item, about, depth + 1)]),
                (Some(item), About::Statement(said)) if item.kind() == "string" => {
                    array(said.names().into_iter().map(|name| Value::from(name).to_string()))
                }
                _ => "[]".to_owned(),
            },
            _ => Value::from(word(name, about)).to_string(),
        }
    }
}

/// The text of a member, by its name.
fn word(member: &str, about: About<'_>) -> String {
    match (member, about) {
        ("id", About::Name(name)) => name.to_lowercase(),
        ("name" | "description" | "summary" | "text", About::Name(name)) => name.to_owned(),
        ("type" | "label" | "entity_type", About::Name(_)) => "Entity".to_owned(),
        (_, About::Pair(one, other)) if member.starts_with("source") || member.starts_with("target") => {
            let name = if member.starts_with("source") { one } else { other };
            if member.contains("id") { name.to_lowercase() } else { name.to_owned() }
        }
        ("fact" | "text" | "description", About::Pair(one, other)) => format!("{one} mentions {other}"),
        (_, About::Pair(..)) => "mentions".to_owned(),
        ("who", About::Statement(said)) if !said.names().is_empty() => said.names().join(", "),
        ("fact_kind", _) => "conversation".to_owned(),
        ("when" | "where" | "why" | "who" | "reason", _) | (_, About::Name(_) | About::Nothing) => "N/A".to_owned(),
        (_, About::Statement(said)) => said.text.to_owned(),
    }
}

/// The choice that stands in the statement's line, such as its id; else the first.
fn chosen<'v>(choices: &'v [Value], about: About<'_>) -> &'v Value {
    let stands = |choice: &&Value| match (choice.as_str(), about) {
        (Some(choice), About::Statement(said)) => said.line.contains(choice),
        _ => false,
    };
    choices.iter().find(stands).unwrap_or(&choices[0])
}

/// Whether the elements of a list are relations between two others.
fn is_relation(item: &Schema) -> bool {
    let begins = |with: &str| item.names().any(|name| name.starts_with(with));
    begins("source_") && begins("target_")
}

fn has(item: &Schema, member: &str) -> bool {
    item.names().any(|name| name == member)
}

fn object<'n>(members: impl Iterator<Item = (&'n str, String)>) -> String {
    let members: Vec<String> = members.map(|(name, value)| format!("{}:{value}", Value::from(name))).collect();
    format!("{{{}}}", members.join(","))
}

fn array(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Ann: I adopted a puppy called Biscuit in March.\nBob: Thanks!\nBob: Does Biscuit like Carol?";

    fn made(system: &str, user: &str, format: Value) -> Option<Value> {
        let messages = json!([{"role": "system", "content": system}, {"role": "user", "content": user}]);
        let body = json!({"model": "m", "messages": messages, "response_format": format}).to_string();
        let request = ChatRequest::parse(body.as_bytes(), None).expect("a good request");
        let wanted = wanted(&request)?;
        Some(serde_json::from_str(&reply(&wanted, request.last_user_text())).expect("JSON"))
    }

    fn schema(schema: &Value) -> Value {
        json!({"type": "json_schema", "json_schema": {"name": "s", "schema": schema}})
    }

    /// As Hindsight asks: JSON mode, the schema in the prompt, the text behind headers of its own.
    #[test]
    fn facts_by_a_schema_in_the_prompt_are_the_lines_of_the_text() {
        let text = json!({"type": "string"});
        let nullable = json!({"anyOf": [text, {"type": "null"}]});
        let fact = json!({"type": "object", "properties": {
            "what": text, "when": text, "who": text, "occurred_start": nullable,
            "fact_type": {"enum": ["world", "assistant"]}, "entities": {"type": "array", "items": text}}});
        let schema = json!({"$defs": {"Fact": fact}, "type": "object",
            "properties": {"facts": {"type": "array", "items": {"$ref": "#/$defs/Fact"}}}});
        let system = format!("Examples: {{\"a\": 1}} and entities=[{{text}}].\nMatch this schema:\n{schema:#}");
        let user = format!("Extract facts.\n\nContext: conversation of some length\n\nContent:\n{SAID}");
        let facts = made(&system, &user, json!({"type": "json_object"})).expect("is asked for");
        let facts = facts["facts"].as_array().expect("a list");
        assert_eq!(facts.len(), 2, "thanks are no fact, and what stands before the text is none: {facts:?}");
        let expected = json!({"what": "Ann: I adopted a puppy called Biscuit in March.", "when": "N/A",
            "who": "Ann, Biscuit, March", "occurred_start": null, "fact_type": "world",
            "entities": ["Ann", "Biscuit", "March"]});
        assert_eq!(facts[0], expected);
    }

    /// As Hindsight consolidates: each new fact with its id, nothing is taken back.
    #[test]
    fn observations_name_the_facts_that_they_rest_on() {
        let ids = ["2be56a04-2120-481b-b5b2-3cfb9b72ac3e", "2f8b8990-1bc5-4a77-a54a-c081fb31ffc5"];
        let list = |item: Value| json!({"type": "array", "items": item});
        let create = json!({"type": "object", "properties": {
            "text": {"type": "string"}, "source_fact_ids": list(json!({"type": "string", "enum": ids})), "reason": {"type": "string"}}});
        let mut creates = list(create.clone());
        creates["maxItems"] = 1.into();
        let schema = json!({"type": "object", "properties": {"creates": creates, "updates": list(create.clone()), "deletes": list(create)}});
        let user = format!(
            "## INPUT\n\n### New facts\n\n[{}] it rained all day | When: May (mentioned_at=2023)\n[{}] Bob went home by bus (mentioned_at=2023)\n\n### Existing observations\n\n[]",
            ids[1], ids[0]
        );
        let made = made(&format!("{schema}"), &user, json!({"type": "json_object"})).expect("is asked for");
        let first = json!({"text": "it rained all day", "source_fact_ids": [ids[1]], "reason": "N/A"});
        assert_eq!(made, json!({"creates": [first], "updates": [], "deletes": []}), "at most one is taken");
    }

    /// As Mem0 asks: no schema, an example.
    #[test]
    fn memories_are_made_of_new_messages_alone() {
        let system = "Output:\n{\"memory\": [\n  {\"id\": \"0\", \"text\": \"User's name is Marcus\"}\n]}";
        let user = "## Existing Memories\n[{\"id\": \"0\", \"text\": \"it is here all along\"}]\n\n## New Messages\nuser: [8 May 2023] I adopted a puppy\nassistant: ok\n\n## Current Date\n2026-11-28 is not a message";
        let made = made(system, user, json!({"type": "json_object"})).expect("is asked for");
        assert_eq!(made, json!({"memory": [{"id": "0", "text": "[8 May 2023] I adopted a puppy"}]}));
    }

    /// As Cognee asks: a graph whose relations are between nodes that it has, and a summary.
    #[test]
    fn graphs_hang_together_and_summaries_say_what_was_said() {
        let text = json!({"type": "string"});
        let node =
            json!({"type": "object", "properties": {"id": text, "name": text, "type": text, "description": text}});
        let edge = json!({"type": "object", "properties": {
            "source_node_id": text, "target_node_id": text, "relationship_name": text,
            "description": {"anyOf": [text, {"type": "null"}]}}});
        let graph = json!({"type": "object", "properties": {
            "nodes": {"type": "array", "items": node}, "edges": {"type": "array", "items": edge}}});
        let made_graph = made("", SAID, schema(&graph)).expect("is asked for");
        let ids: Vec<&Value> = made_graph["nodes"].as_array().expect("nodes").iter().map(|node| &node["id"]).collect();
        assert_eq!(ids, ["ann", "biscuit", "march", "bob", "carol"]);
        let edges = made_graph["edges"].as_array().expect("edges");
        assert!(edges.len() >= 3, "{edges:?}");
        for edge in edges {
            assert!(ids.contains(&&edge["source_node_id"]) && ids.contains(&&edge["target_node_id"]), "{edge}");
            assert_eq!(edge["relationship_name"], "mentions");
        }
        let summary = json!({"type": "object", "properties": {"summary": text, "description": text}});
        let made = made("", SAID, schema(&summary)).expect("is asked for");
        assert_eq!(made["summary"], "Ann: I adopted a puppy called Biscuit in March.");
    }

    /// As Graphiti asks: names and relations by schemas, then whether each is one that it has.
    #[test]
    fn what_is_new_repeats_and_contradicts_nothing_that_is_there() {
        let (text, whole) = (json!({"type": "string"}), json!({"type": "integer"}));
        let list = |item: &Value| json!({"type": "array", "items": item});
        let asked = |name: &str, item: Value| {
            json!({"$defs": {"Of": {"type": "object", "properties": item}}, "type": "object",
                "properties": {name: list(&json!({"$ref": "#/$defs/Of"}))}})
        };
        let nodes = asked(
            "extracted_entities",
            json!({"name": text, "entity_type_id": whole, "episode_indices": list(&whole)}),
        );
        let prompt = format!(
            "NEVER Extract Pronouns of any kind\n<CURRENT MESSAGE>\n{SAID}\n</CURRENT MESSAGE>\nMake A List now"
        );
        let named = made("", &prompt, schema(&nodes)).expect("is asked for");
        let first = json!({"name": "Ann", "entity_type_id": 0, "episode_indices": []});
        assert_eq!(
            (&named["extracted_entities"][0], named["extracted_entities"].as_array().map(Vec::len)),
            (&first, Some(5))
        );

        // what was known before is no longer asked about: two of five are left
        let left = r#"<ENTITIES>
[{"id": 0, "name": "Ann"}, {"id": 1, "name": "Biscuit"}]
</ENTITIES>"#;
        let prompt = format!(
            "{prompt}\n{left}\n<EXISTING ENTITIES>\n[{{\"candidate_id\": 0, \"name\": \"Zoe\"}}]\n</EXISTING ENTITIES>"
        );
        let resolutions =
            asked("entity_resolutions", json!({"id": whole, "name": text, "duplicate_candidate_id": whole}));
        let resolved = made("", &prompt, schema(&resolutions)).expect("is asked for");
        let new = |id: i64, name: &str| json!({"id": id, "name": name, "duplicate_candidate_id": -1});
        assert_eq!(resolved, json!({"entity_resolutions": [new(0, "Ann"), new(1, "Biscuit")]}));

        let relations = asked(
            "edges",
            json!({"source_entity_name": text, "target_entity_name": text, "relation_type": text,
            "fact": text, "valid_at": {"anyOf": [text, {"type": "null"}]}, "episode_indices": list(&whole)}),
        );
        let prompt = format!(
            "NEVER Join Strangers here\n<CURRENT_MESSAGE>\n{SAID}\n</CURRENT_MESSAGE>\n{left}\nExtract Facts From it"
        );
        let related = made("", &prompt, schema(&relations)).expect("is asked for");
        let edge = json!({"source_entity_name": "Ann", "target_entity_name": "Biscuit", "relation_type": "mentions",
            "fact": "Ann mentions Biscuit", "valid_at": null, "episode_indices": []});
        assert_eq!(related, json!({"edges": [edge]}));

        let duplicate = json!({"type": "object", "properties": {"duplicate_facts": list(&whole), "contradicted_facts": list(&whole)}});
        let facts = "<EXISTING FACTS>\n[{'idx': 0, 'fact': 'Ann adopted a puppy'}]\n</EXISTING FACTS>\nBob works in Hamburg now";
        let unlike = json!({"duplicate_facts": [], "contradicted_facts": []});
        assert_eq!(made("", facts, schema(&duplicate)), Some(unlike));
        let nullable = json!({"anyOf": [text, {"type": "null"}]});
        let dates = json!({"type": "object", "properties": {"valid_at": nullable, "invalid_at": nullable}});
        assert_eq!(made("", facts, schema(&dates)), Some(json!({"valid_at": null, "invalid_at": null})));
    }

    #[test]
    fn verdicts_and_plain_questions_are_no_extraction() {
        let verdict = json!({"type": "object", "properties": {"reasons": {"type": "array", "items": {"type": "string"}}, "correct": {"type": "boolean"}}});
        assert_eq!(made("", SAID, schema(&verdict)), None);
        for kind in [
            json!({"type": ["boolean", "null"]}),
            json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]}),
            json!({"anyOf": [{"enum": ["yes", "no"]}, {"type": "null"}]}),
        ] {
            let left_open = json!({"type": "object", "properties": {"correct": kind}});
            assert_eq!(made("", SAID, schema(&left_open)), None, "{left_open}");
        }
        assert_eq!(made("Reply as {\"label\": \"yes\"}", SAID, json!({"type": "json_object"})), None);
        assert_eq!(made("", SAID, Value::Null), None);
        let empty = json!({"type": "object", "properties": {"facts": {"type": "array", "items": {"type": "string"}}}});
        assert_eq!(made("", "Thanks!", schema(&empty)), Some(json!({"facts": []})), "nothing was said");
        assert_eq!(
            made("", SAID, schema(&empty)).expect("is asked for")["facts"][0],
            "Ann: I adopted a puppy called Biscuit in March."
        );
    }
}
