//! The languages that classes are written in: the class of the README of each, and what runs it.

use bench_testkit::{
    bench::{Bench, submit_sim},
    node::{NODE, OLD_NODE, folder_of},
    python::Packages,
};

/// A language, the file that its class stands in, and the lines of that class that others are put behind.
pub(super) struct Side {
    pub(super) file: &'static str,
    pub(super) words: &'static str,
    node: Option<Packages>,
    pub(super) is_typed: bool,
    pub(super) top: &'static str,
    pub(super) class: &'static str,
    pub(super) retain: &'static str,
    pub(super) recall: &'static str,
}

pub(super) const PYTHON: Side = Side {
    file: "mine.py",
    words: "words.py",
    node: None,
    is_typed: false,
    top: "import bench_coord\n",
    class: "class Mine(bench_coord.System):\n",
    retain: "(self, bank, items):\n",
    recall: "(self, bank, query, k):\n",
};

pub(super) const TYPESCRIPT: Side = Side {
    file: "mine.ts",
    words: "words.ts",
    node: Some(NODE),
    is_typed: true,
    top: "import { System, type Item } from \"bench-coord\";\n",
    class: "export class Mine extends System {\n",
    retain: "retain(bank: string, items: Item[]) {\n",
    recall: "recall(bank: string, query: string, k: number) {\n",
};

/// By a node that reads no types, and finds modules by hooks in a thread of their own.
pub(super) const JAVASCRIPT: Side = Side {
    file: "mine.mjs",
    words: "words.mjs",
    node: Some(OLD_NODE),
    is_typed: false,
    top: "import { System } from \"bench-coord\";\n",
    class: "export class Mine extends System {\n",
    retain: "retain(bank, items) {\n",
    recall: "recall(bank, query, k) {\n",
};

pub(super) const SIDES: [&Side; 3] = [&PYTHON, &TYPESCRIPT, &JAVASCRIPT];
/// One of each host: classes of JavaScript are run by what runs those of TypeScript, so they are tried where the text or an old node
/// makes a difference.
pub(super) const LANGUAGES: [&Side; 2] = [&PYTHON, &TYPESCRIPT];

/// What the types of the README's class are in its text.
const TYPES: [&str; 7] =
    [", type Item", "<string, Item[]>", ": string", ": Item[]", ": number", ": [Item, number]", ": Item"];

impl Side {
    pub(super) fn is_python(&self) -> bool {
        self.node.is_none()
    }

    /// What `--system` takes.
    pub(super) fn named(&self, class: &str) -> String {
        format!("{}:{class}", self.file)
    }

    pub(super) fn path(&self) -> String {
        let node = self.node.map(|release| format!("{}:", folder_of(release).display()));
        format!("{}/usr/bin:/bin", node.unwrap_or_default())
    }

    pub(super) fn bench(&self) -> Bench {
        Bench::new().with_env("PATH", self.path())
    }

    /// The class of the README of its language.
    pub(super) fn readme(&self) -> String {
        let (text, fence) = if self.is_python() {
            (include_str!("../../../../../../README.md"), "```python\n")
        } else {
            (include_str!("../../../../../../typescript/README.md"), "```ts\n")
        };
        let class = text.split(fence).nth(1).and_then(|rest| rest.split("```").next()).expect("it has a class");
        if self.is_python() || self.is_typed {
            return class.to_owned();
        }
        let plain = TYPES.iter().fold(class.to_owned(), |text, kind| text.replace(kind, ""));
        plain.replace("get(bank)!", "get(bank)")
    }

    /// A text with lines behind a line of the class, in Python or in JavaScript.
    pub(super) fn behind(&self, text: &str, line: &str, python: &str, javascript: &str) -> String {
        assert!(text.contains(line), "{line}: {text}");
        text.replacen(line, &format!("{line}{}", if self.is_python() { python } else { javascript }), 1)
    }

    /// The same, of what the language has.
    pub(super) fn or<'a>(&self, python: &'a str, javascript: &'a str) -> &'a str {
        if self.is_python() { python } else { javascript }
    }

    pub(super) fn submit<'a>(&self, system: &'a str, run: &'a str) -> Vec<&'a str> {
        submit_sim(&["--preset", "quick", "--max-banks", "5", "--system", system, "--run-id", run])
    }
}
