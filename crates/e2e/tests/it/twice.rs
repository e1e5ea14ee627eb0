//! No block of statements stands twice: what two functions do alike has a name. Reads the bodies of functions in the source of every
//! crate; imports, signatures and tests are left out, and blocks that are closing braces, fields and arms of names for the most part.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::arrows::workspace;

/// Lines of a block, without empty ones, comments and attributes.
const LINES: usize = 6;
/// Lines that say what is done, in a block that counts.
const STATEMENTS: usize = 3;

/// Files that may have blocks in common, each with why.
const KNOWN: &[(&[&str], &str)] = &[(
    &["crates/store/src/postgres/conn.rs", "crates/store/src/sqlite/conn.rs"],
    "arms that give a value of each kind to a library's own type: what the two types have in common names no kind",
)];

/// Lines of a function with their numbers.
type Body = Vec<(usize, String)>;

#[test]
fn no_block_of_statements_stands_twice() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace");
    let mut places: BTreeMap<Vec<String>, Vec<(String, usize)>> = BTreeMap::new();
    for package in workspace() {
        if ["bench-e2e", "bench-testkit"].iter().any(|tests| package["name"] == *tests) {
            continue;
        }
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        for file in sources(&manifest.with_file_name("src")) {
            let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
            let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
            for (block, line) in bodies(&text).iter().flat_map(|body| blocks(body)) {
                places.entry(block).or_default().push((name.clone(), line));
            }
        }
    }
    assert!(places.len() > 10_000, "{} blocks", places.len());
    let is_known = |at: &[(String, usize)]| {
        KNOWN.iter().any(|(files, _)| at.iter().all(|(name, _)| files.contains(&name.as_str())))
    };
    let twice: Vec<_> = places.into_iter().filter(|(_, at)| at.len() > 1 && !is_known(at)).collect();
    assert!(twice.is_empty(), "blocks that stand twice: give what they do a name, once: {twice:#?}");
}

/// Files of a folder that are no tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if matches!(stem, "tests" | "conformance") {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The blocks of a body that count, each with the number of its first line.
fn blocks(body: &[(usize, String)]) -> impl Iterator<Item = (Vec<String>, usize)> {
    let counts =
        |block: &&[(usize, String)]| block.iter().filter(|(_, line)| says_something(line)).count() >= STATEMENTS;
    let text = |block: &[(usize, String)]| -> Vec<String> { block.iter().map(|(_, line)| line.clone()).collect() };
    body.windows(LINES).filter(counts).map(move |block| (text(block), block[0].0))
}

/// The bodies of all functions that are no tests.
fn bodies(text: &str) -> Vec<Body> {
    let (mut open, mut bodies): (Vec<(usize, Body)>, Vec<Body>) = (Vec::new(), Vec::new());
    let mut lines = without_tests(text).into_iter();
    while let Some((number, line)) = lines.next() {
        let said = line.trim();
        if is_signature(said) {
            let mut last = said;
            while !last.ends_with(['{', '}', ';']) {
                let Some((_, line)) = lines.next() else { break };
                last = line.trim();
            }
            if last.ends_with('{') {
                open.push((indent(line), Vec::new()));
            }
        } else if said.starts_with('}') && open.last().is_some_and(|(of_function, _)| indent(line) <= *of_function) {
            bodies.extend(open.pop().map(|(_, body)| body));
        } else if let Some((_, body)) = open.last_mut()
            && !said.is_empty()
            && !said.starts_with("//")
            && !said.starts_with("#[")
        {
            body.push((number, said.to_owned()));
        }
    }
    bodies.extend(open.into_iter().map(|(_, body)| body));
    bodies
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_signature(line: &str) -> bool {
    let line = line.strip_prefix("pub(in ").and_then(|path| path.split_once(") ")).map_or(line, |(_, rest)| rest);
    let is_before = |word: &&str| word.starts_with("pub") || matches!(*word, "async" | "const" | "default" | "unsafe");
    line.split_whitespace().find(|word| !is_before(word)) == Some("fn")
}

/// The numbered lines of a source without items for tests.
fn without_tests(text: &str) -> Vec<(usize, &str)> {
    let (mut kept, mut lines) = (Vec::new(), text.lines().enumerate());
    while let Some((at, line)) = lines.next() {
        let said = line.trim_start();
        if said.starts_with("#[cfg(") && said.contains("test") && !said.contains("any(") {
            // the item: to the line that ends it where it began
            let ends = |end: &str| end.trim_start().starts_with('}') || end.ends_with(';');
            let _ = lines.by_ref().find(|(_, end)| indent(end) == indent(line) && ends(end));
            continue;
        }
        kept.push((at + 1, line));
    }
    kept
}

/// Whether a line is more than a closing brace, a field, a path or an arm that makes a name of a name.
fn says_something(line: &str) -> bool {
    let all = |text: &str, signs: &str| text.chars().all(|c| c.is_alphanumeric() || c == '_' || signs.contains(c));
    if !line.contains(|c: char| c.is_alphanumeric() || c == '"') {
        return false;
    }
    let field = line.strip_suffix(',').map(|item| item.split_once(": ").map_or(item, |(name, _)| name));
    let path = line.trim_start_matches("..").trim_end_matches("()");
    let arm = line.strip_suffix(',').and_then(|arm| arm.split_once(" => "));
    let is_arm_of_names = arm.is_some_and(|(from, to)| all(from, ":|& (),{}.") && all(to, ":.\"- "));
    !(field.is_some_and(|name| all(name, "")) || all(path, ":") || is_arm_of_names)
}

#[test]
fn a_block_is_found_where_it_is_said_again() {
    let work = "    let a = first(x);\n    let b = second(a);\n    if b {\n        third();\n    }\n    fourth(a, b)\n";
    let deeper: String = work.lines().map(|line| format!("    {line}\n")).collect();
    assert!(is_signature("pub(in super::super) async fn two(") && !is_signature("let second = fn_of(x);"));
    let fields = "    Said {\n        a,\n        b: 1,\n        c: None,\n        d,\n        e,\n        f,\n    }\n";
    let text = format!(
        "fn one(x: u8) -> u8 {{\n{work}}}\n\nimpl T {{\n    pub(crate) async fn two(\n        &self,\n    ) -> u8 {{\n{deeper}    }}\n}}\n\
         fn three() -> Said {{\n{fields}}}\n\n#[cfg(test)]\nmod tests {{\n    fn four() {{\n{work}    }}\n}}\n"
    );
    let bodies = bodies(&text);
    let found: Vec<usize> = bodies.iter().flat_map(|body| blocks(body)).map(|(_, line)| line).collect();
    assert_eq!(found, [2, 14], "{bodies:#?}");
    let of_two = bodies.iter().map(|body| blocks(body).map(|(block, _)| block).collect::<Vec<_>>()).collect::<Vec<_>>();
    assert_eq!(of_two[0], of_two[1]);
}
