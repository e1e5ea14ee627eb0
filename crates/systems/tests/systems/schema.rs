//! The published JSON Schemas of adapter files and of the process protocol, and what of Python and TypeScript has to say the same.
//! `BENCH_BLESS=1` rewrites the schemas.

use std::collections::{BTreeMap, BTreeSet};

use bench_systems::adapter::{AdapterSpec, ProcessReply, ProcessRequest};
use serde_json::Value;

fn published(name: &str, schema: &schemars::Schema) {
    let path = format!("{}/../../docs/schemas/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = serde_json::to_string_pretty(schema).expect("serialises") + "\n";
    if std::env::var_os("BENCH_BLESS").is_some() {
        std::fs::create_dir_all(format!("{}/../../docs/schemas", env!("CARGO_MANIFEST_DIR"))).expect("a folder");
        std::fs::write(&path, &text).expect("is written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, text, "docs/schemas/{name}.json is not what the types say: BENCH_BLESS=1 rewrites it");
}

#[test]
fn schemas_are_published() {
    published("adapter", &schemars::schema_for!(AdapterSpec));
    published("process-request", &schemars::schema_for!(ProcessRequest));
    published("process-reply", &schemars::schema_for!(ProcessReply));
}

/// What Python and TypeScript are written in by hand.
fn side(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).expect("is there")
}

/// The part of a text behind one mark and before the next of another.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let behind = text.split_once(begin).unwrap_or_else(|| panic!("{begin}")).1;
    behind.split_once(end).unwrap_or_else(|| panic!("{begin} … {end}")).0
}

/// The texts in quotes of a line.
fn quoted(line: &str) -> Vec<&str> {
    line.split('"').skip(1).step_by(2).collect()
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Names of the properties of an object of a schema.
fn properties(schema: &Value) -> BTreeSet<String> {
    schema["properties"].as_object().expect("has properties").keys().cloned().collect()
}

/// Names of the members of an interface of TypeScript.
fn members(types: &str, name: &str) -> BTreeSet<String> {
    let inside = between(types, &format!("export interface {name} {{\n"), "\n}\n");
    let lines = inside.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(['/', ' ']));
    set(lines.filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim_end_matches('?')))
}

/// Operations and what the method of each is given, of both languages.
fn operations(python: &str, node: &str) -> [BTreeMap<String, BTreeSet<String>>; 2] {
    let of_python = between(python, "\nMETHODS = {\n", "\n}\n").lines().map(quoted);
    let of_node = between(node, "\nconst GIVEN = {\n", "\n};\n").lines().filter_map(|line| line.trim().split_once(':'));
    [
        of_python.map(|words| (words[0].to_owned(), set(words[2..].iter().copied()))).collect(),
        of_node.map(|(name, given)| (name.to_owned(), set(quoted(given)))).collect(),
    ]
}

#[test]
fn both_sides_of_a_class_know_the_requests_of_the_schema() {
    let schema = serde_json::to_value(schemars::schema_for!(ProcessRequest)).expect("serialises");
    let (python, node, types) =
        (side("python/bench_coord/_process.py"), side("typescript/process.mjs"), side("typescript/index.d.ts"));
    let mut requests: BTreeMap<&str, &Value> = BTreeMap::new();
    for request in schema["oneOf"].as_array().expect("requests") {
        requests.insert(request["properties"]["op"]["const"].as_str().expect("an operation"), request);
    }
    // what a question brings besides its text
    let asked: BTreeSet<String> = [requests["recall"], requests["answer"]].into_iter().flat_map(properties).collect();
    let asked = &asked - &set(["op", "bank", "query"]);
    assert_eq!(set(quoted(between(&python, "\nON_REQUEST = (", ")\n"))), asked);
    assert_eq!(set(between(&node, "given.push({ ", " });").split(", ")), asked);
    assert_eq!(members(&types, "Asked"), asked);
    // the first one is no method
    requests.remove("hello");
    for known in operations(&python, &node) {
        assert_eq!(known.keys().map(String::as_str).collect::<Vec<_>>(), requests.keys().copied().collect::<Vec<_>>());
        for (op, given) in &known {
            let request = requests[op.as_str()];
            assert!(given.is_subset(&properties(request)), "{op}: {given:?}");
            let needed = set(request["required"].as_array().expect("names").iter().filter_map(Value::as_str));
            // of a listing both sides make the pages themselves
            let taken = &(given | &asked) | &set(["op", "limit", "offset"]);
            assert!(needed.is_subset(&taken), "{op}: {needed:?}");
        }
    }
    for op in requests.keys() {
        assert!(types.contains(&format!("\n  {op}?(")), "{op} has no type");
    }
}

#[test]
fn items_filters_and_hits_have_the_members_of_the_schemas() {
    let request = serde_json::to_value(schemars::schema_for!(ProcessRequest)).expect("serialises");
    let reply = serde_json::to_value(schemars::schema_for!(ProcessReply)).expect("serialises");
    let (python, types) = (side("python/bench_coord/__init__.py"), side("typescript/index.d.ts"));
    let item = properties(&request["$defs"]["ProcessItem"]);
    assert_eq!(members(&types, "Item"), item);
    let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let lines = between(&python, "\nclass Item(", "    def ").lines().filter_map(|line| line.strip_prefix("    "));
    assert_eq!(set(lines.filter_map(|line| line.split_once(": ")).map(|(name, _)| name).filter(is_name)), item);
    assert_eq!(members(&types, "Filter"), properties(&request["$defs"]["ProcessFilter"]));
    // a class has no details to tell
    assert_eq!(members(&types, "Hit"), &properties(&reply["$defs"]["ProcessHit"]) - &set(["details"]));
    assert!(members(&types, "Answer").is_subset(&properties(&reply)));
}
