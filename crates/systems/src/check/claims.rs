//! What would claim an ability, as whoever wrote the system would write it.

use serde_json::Value;

/// What a system is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A file of YAML.
    File,
    /// A class of Python.
    Python,
    /// A class of TypeScript or JavaScript.
    TypeScript,
}

impl Form {
    /// That of a system, by its adapter.
    #[must_use]
    pub fn of_adapter(adapter: &Value) -> Self {
        match adapter["code"]["file"].as_str() {
            None => Self::File,
            Some(file) if file.ends_with(".py") => Self::Python,
            Some(_) => Self::TypeScript,
        }
    }
}

/// A line for each form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    file: &'static str,
    python: &'static str,
    typescript: &'static str,
}

impl Claim {
    const fn new(file: &'static str, python: &'static str, typescript: &'static str) -> Self {
        Self { file, python, typescript }
    }

    pub(super) const fn line(self, form: Form) -> &'static str {
        match form {
            Form::File => self.file,
            Form::Python => self.python,
            Form::TypeScript => self.typescript,
        }
    }
}

/// A claim that a class makes by a method: its name, what it is given, and what has to be said of it.
macro_rules! by_method {
    ($file:literal, $name:literal, $given:literal, $said:literal) => {
        Claim::new(
            $file,
            concat!("def ", $name, "(self, ", $given, ")", $said),
            concat!($name, "(", $given, ")", $said),
        )
    };
}

pub(super) const RECALL: Claim =
    by_method!("recall: {request: POST /…, hits: [{list: …, text: …}]}", "recall", "bank, query, k", "");
pub(super) const COUNT: Claim = by_method!(
    "verify: {request: \"GET /…/{bank}\", count: …}",
    "verify",
    "bank",
    ", which returns how many items the bank holds"
);
pub(super) const LIST: Claim = by_method!(
    "list: {request: \"GET /…/{bank}?offset={offset}\", hits: [{list: …, text: …, id: …}]}",
    "list",
    "bank",
    ", which returns everything that the bank holds"
);
pub(super) const TIMES: Claim = Claim::new(
    "\"{content}\" in place of \"{text}\", or \"{time}\" and can: {times: true}",
    "store item.content, which has the date, in place of item.text",
    "store item.content, which has the date, in place of item.text",
);
pub(super) const REPEAT: Claim = Claim::new("can: {repeat: true}", "repeat = True", "static repeat = true");
pub(super) const BANKS: Claim = Claim::new(
    "\"{bank}\" in every request, and no can: {banks: false}",
    "keep what each bank was given apart",
    "keep what each bank was given apart",
);
pub(super) const ANSWER: Claim = by_method!("answer: {request: POST /…, text: …}", "answer", "bank, query", "");
pub(super) const RESET: Claim = by_method!("reset: {request: \"DELETE /…/{bank}\"}", "reset", "bank", "");
pub(super) const CHANGES: Claim = Claim::new(
    "update: {request: …}, forget: {request: …}, and \"{tags?}\", \"{user?}\", \"{until?}\" in the body of recall",
    "def update(self, bank, replaces, item), def forget(self, bank, replaces), and filters = [\"tags\", \"user\", \"until\"]",
    "update(bank, replaces, item), forget(bank, replaces), and static filters = [\"tags\", \"user\", \"until\"]",
);
pub(super) const UPDATE: Claim =
    by_method!("update: {request: \"PUT /…/{replaces_key}\", body: …}", "update", "bank, replaces, item", "");
pub(super) const FORGET: Claim =
    by_method!("forget: {request: \"DELETE /…/{replaces_key}\"}", "forget", "bank, replaces", "");
pub(super) const FILTERS: Claim = Claim::new(
    "\"{tags?}\", \"{user?}\", \"{scopes?}\", \"{from?}\", \"{until?}\" in the body of recall",
    "filters = [\"tags\", \"user\", \"scopes\", \"from\", \"until\"], and recall(self, bank, query, k, filter)",
    "static filters = [\"tags\", \"user\", \"scopes\", \"from\", \"until\"], and asked.filter in recall(bank, query, k, asked)",
);
pub(super) const IDS: Claim = Claim::new(
    "meta: {turn: \"{id}\"} in retain and id: meta.turn in hits",
    "return the item itself, or bench_coord.Hit(text, id)",
    "return the item itself, or { text, id }",
);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_class_is_told_what_a_class_writes() {
        let form = |file: &str| Form::of_adapter(&json!({ "code": { "file": file } }));
        assert_eq!([form("mine.py"), form("src/mine.ts")], [Form::Python, Form::TypeScript]);
        assert_eq!(Form::of_adapter(&json!({ "recall": {} })), Form::File);
        assert_eq!(REPEAT.line(Form::Python), "repeat = True");
        assert_eq!(UPDATE.line(Form::Python), "def update(self, bank, replaces, item)");
        assert_eq!(LIST.line(Form::TypeScript), "list(bank), which returns everything that the bank holds");
        let all = [RECALL, COUNT, LIST, TIMES, REPEAT, BANKS, ANSWER, RESET, CHANGES, UPDATE, FORGET, FILTERS, IDS];
        for form in [Form::Python, Form::TypeScript] {
            assert!(all.iter().all(|claim| !claim.line(form).contains("request")), "{form:?}");
        }
    }
}
