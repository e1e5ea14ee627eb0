//! What servers of the Model Context Protocol say: the name of a call on the first line, then the result of its tool; behind `tools`
//! the list of what they have.

use std::sync::LazyLock;

use bench_systems::adapter::{AdapterSpec, file, replay};

/// Longest message, in characters: names of tools and arguments stand in it, as many as it has room for.
const LONGEST: usize = 8192;

static CALLING: LazyLock<AdapterSpec> = LazyLock::new(|| {
    let text = "name: calling\nmcp: {command: [mem]}\n\
        retain: {tool: add, arguments: {text: '{text}', user: '{bank}'}}\n\
        recall: {tool: search, arguments: {query: '{query}'}, hits: [{list: results, text: memory, id: id}]}\n";
    file::parse(text).expect("is an adapter file")
});

pub(super) fn mcp(bytes: &[u8]) {
    let (name, result) = super::first_line(bytes);
    let message = match name {
        "tools" => replay::check_tools(&CALLING, result).err(),
        "retain" | "recall" => replay::read_tool(&CALLING, name, result).err(),
        _ => return,
    };
    let length = message.map_or(0, |failure| failure.message.chars().count());
    assert!(length < LONGEST, "{length} characters of message");
}
