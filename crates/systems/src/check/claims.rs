//! What would claim an ability, as whoever wrote the system would write it.

use serde_json::Value;

/// What a system is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A file of YAML, whose requests are sent.
    File,
    /// A file of YAML that calls tools (`mcp`).
    Tools,
    /// A file of YAML of a process (`command`), which replies to operations.
    Process,
    /// A class of Python.
    Python,
    /// A class of TypeScript or JavaScript.
    TypeScript,
    /// It is a part of this program: nobody who checks it writes it.
    BuiltIn,
}

impl Form {
    /// That of a system, by its adapter.
    #[must_use]
    pub fn of_adapter(adapter: &Value) -> Self {
        match adapter["code"]["file"].as_str() {
            Some(file) if file.ends_with(".py") => Self::Python,
            Some(_) => Self::TypeScript,
            None if adapter["mcp"].is_object() => Self::Tools,
            None if adapter["command"].is_array() => Self::Process,
            None => Self::File,
        }
    }
}

/// A line for each form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    file: &'static str,
    tools: &'static str,
    process: &'static str,
    python: &'static str,
    typescript: &'static str,
}

impl Claim {
    /// None for what nobody writes.
    pub(super) const fn line(self, form: Form) -> Option<&'static str> {
        match form {
            Form::File => Some(self.file),
            Form::Tools => Some(self.tools),
            Form::Process => Some(self.process),
            Form::Python => Some(self.python),
            Form::TypeScript => Some(self.typescript),
            Form::BuiltIn => None,
        }
    }
}

/// A claim that a class makes by a method: its name, what it is given, and what has to be said of it. Before it what files say.
macro_rules! by_method {
    ($file:literal, $tools:literal, $process:literal; $name:literal, $given:literal, $said:literal) => {
        Claim {
            file: $file,
            tools: $tools,
            process: $process,
            python: concat!("def ", $name, "(self, ", $given, ")", $said),
            typescript: concat!($name, "(", $given, ")", $said),
        }
    };
}

pub(super) const RECALL: Claim = by_method!(
    "recall: {request: POST /…, hits: [{list: …, text: …}]}",
    "recall: {tool: …, arguments: {query: \"{query}\"}, hits: [{list: …, text: …}]}",
    "a reply to `recall` with `hits`";
    "recall", "bank, query, k", ""
);
pub(super) const COUNT: Claim = by_method!(
    "verify: {request: \"GET /…/{bank}\", count: …}",
    "verify: {tool: …, arguments: {user: \"{bank}\"}, count: …}",
    "a reply to `verify` with `count`";
    "verify", "bank", ", which returns how many items the bank holds"
);
pub(super) const LIST: Claim = by_method!(
    "list: {request: \"GET /…/{bank}?offset={offset}\", hits: [{list: …, text: …, id: …}]}",
    "list: {tool: …, arguments: {user: \"{bank}\", offset: \"{offset}\"}, hits: [{list: …, text: …, id: …}]}",
    "can: {lists: true}, and a reply to `list` with `hits`";
    "list", "bank", ", which returns everything that the bank holds"
);
pub(super) const TIMES: Claim = Claim {
    file: "\"{content}\" in place of \"{text}\", or \"{time}\" and can: {times: true}",
    tools: "\"{content}\" in place of \"{text}\", or \"{time}\" and can: {times: true}",
    process: "store the `content` of an item, which has the date, in place of its `text`, or its `time` and say can: {times: true}",
    python: "store item.content, which has the date, in place of item.text",
    typescript: "store item.content, which has the date, in place of item.text",
};
pub(super) const REPEAT: Claim = Claim {
    file: "can: {repeat: true}",
    tools: "can: {repeat: true}",
    process: "can: {repeat: true}",
    python: "repeat = True",
    typescript: "static repeat = true",
};
pub(super) const BANKS: Claim = Claim {
    file: "\"{bank}\" in every request, and no can: {banks: false}",
    tools: "\"{bank}\" in the arguments of every tool, and no can: {banks: false}",
    process: "keep what each bank was given apart, and no can: {banks: false}",
    python: "keep what each bank was given apart",
    typescript: "keep what each bank was given apart",
};
pub(super) const ANSWER: Claim = by_method!(
    "answer: {request: POST /…, text: …}",
    "answer: {tool: …, arguments: {question: \"{query}\"}, text: …}",
    "a reply to `answer` with `text`";
    "answer", "bank, query", ""
);
pub(super) const RESET: Claim = by_method!(
    "reset: {request: \"DELETE /…/{bank}\"}",
    "reset: {tool: …, arguments: {user: \"{bank}\"}}",
    "a reply to `reset`";
    "reset", "bank", ""
);
pub(super) const CHANGES: Claim = Claim {
    file: "update: {request: …}, forget: {request: …}, and \"{tags?}\", \"{user?}\", \"{until?}\" in the body of recall",
    tools: "update: {tool: …}, forget: {tool: …}, and \"{tags?}\", \"{user?}\", \"{until?}\" in the arguments of recall",
    process: "can: {updates: true, withdraws: true, filters: [tags, user, until]}",
    python: "def update(self, bank, replaces, item), def forget(self, bank, replaces), and filters = [\"tags\", \"user\", \"until\"]",
    typescript: "update(bank, replaces, item), forget(bank, replaces), and static filters = [\"tags\", \"user\", \"until\"]",
};
pub(super) const UPDATE: Claim = by_method!(
    "update: {request: \"PUT /…/{replaces_key}\", body: …}",
    "update: {tool: …, arguments: {id: \"{replaces_key}\", text: \"{content}\"}}",
    "can: {updates: true}";
    "update", "bank, replaces, item", ""
);
pub(super) const FORGET: Claim = by_method!(
    "forget: {request: \"DELETE /…/{replaces_key}\"}",
    "forget: {tool: …, arguments: {id: \"{replaces_key}\"}}",
    "can: {withdraws: true}";
    "forget", "bank, replaces", ""
);
pub(super) const FILTERS: Claim = Claim {
    file: "\"{tags?}\", \"{user?}\", \"{scopes?}\", \"{from?}\", \"{until?}\" in the body of recall",
    tools: "\"{tags?}\", \"{user?}\", \"{scopes?}\", \"{from?}\", \"{until?}\" in the arguments of recall",
    process: "can: {filters: [tags, user, scopes, from, until]}",
    python: "filters = [\"tags\", \"user\", \"scopes\", \"from\", \"until\"], and recall(self, bank, query, k, filter)",
    typescript: "static filters = [\"tags\", \"user\", \"scopes\", \"from\", \"until\"], and asked.filter in recall(bank, query, k, asked)",
};
pub(super) const IDS: Claim = Claim {
    file: "meta: {turn: \"{id}\"} in retain and id: meta.turn in hits",
    tools: "an argument with \"{id}\" in retain and its path as `id` in hits",
    process: "the `id` of the item in each of the `hits`",
    python: "return the item itself, or bench_coord.Hit(text, id)",
    typescript: "return the item itself, or { text, id }",
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everybody_is_told_what_they_write() {
        let form = |file: &str| Form::of_adapter(&json!({ "code": { "file": file } }));
        assert_eq!([form("mine.py"), form("src/mine.ts")], [Form::Python, Form::TypeScript]);
        assert_eq!(Form::of_adapter(&json!({ "recall": {} })), Form::File);
        assert_eq!(Form::of_adapter(&json!({ "mcp": { "command": ["mem"] } })), Form::Tools);
        assert_eq!(Form::of_adapter(&json!({ "command": ["mem"] })), Form::Process);
        assert_eq!(REPEAT.line(Form::Python), Some("repeat = True"));
        assert_eq!(UPDATE.line(Form::Python), Some("def update(self, bank, replaces, item)"));
        assert_eq!(LIST.line(Form::TypeScript), Some("list(bank), which returns everything that the bank holds"));
        assert_eq!(UPDATE.line(Form::Process), Some("can: {updates: true}"));
        assert_eq!(RESET.line(Form::Tools), Some("reset: {tool: …, arguments: {user: \"{bank}\"}}"));
        let all = [RECALL, COUNT, LIST, TIMES, REPEAT, BANKS, ANSWER, RESET, CHANGES, UPDATE, FORGET, FILTERS, IDS];
        for form in [Form::Tools, Form::Process, Form::Python, Form::TypeScript] {
            let is_other = |claim: &Claim| claim.line(form).is_none_or(|line| line.contains("request"));
            assert!(!all.iter().any(is_other), "{form:?}");
        }
        assert!(all.iter().all(|claim| claim.line(Form::BuiltIn).is_none()), "nobody writes it");
    }
}
