//! The pages that others rest on. docs/PROTOCOL.md states the rules that code, tests and pages cite by number, and is held to the
//! tree here: what is cited is stated, what is stated has files and tests, and its diagrams are those of the code. So are the tests
//! that docs/SECURITY-MODEL.md names. Decisions are numbered without holes, all prose has one width, crates
//! open with a map, the glossary defines a word once, and docs of items say more than a name.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use bench_proto::{
    bank, session,
    summary::REPORT_SCHEMA_VERSION,
    task::{TRANSITIONS, Transition},
    transition::Line,
};
use serde::Serialize;

/// The rules.
const PROTOCOL: &str = "docs/PROTOCOL.md";
/// Where rules are cited, and pages lie.
const FOLDERS: [&str; 12] = [
    "coordinator",
    "crates",
    "datasets",
    "deploy",
    "docs",
    "helm",
    "migrations",
    "proto",
    "python",
    "scripts",
    "typescript",
    "worker",
];
const PAGES: [&str; 4] = ["CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];
/// Files in which people write.
const WRITTEN: [&str; 8] = [".js", ".md", ".py", ".rs", ".sh", ".sql", ".yaml", ".yml"];
/// Most characters of a line of prose; code has the same (rustfmt.toml).
const WIDTH: usize = 120;

/// What a rule says of itself in a list: `- Held by: …`, `- Tests: …`, `- Measured: …`, `- Open: …`.
type Items = BTreeMap<String, String>;
/// An arrow of a diagram: from, to, what it is called.
type Arrow = (String, String, String);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Files below a folder, by their paths from the root of the tree.
fn files(folder: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(root().join(folder)).expect("the folder is there") {
        let entry = entry.expect("the folder can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        let path = format!("{folder}/{name}");
        if entry.file_type().expect("the folder can be read").is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// All files in which people write.
fn written() -> Vec<String> {
    let mut found = PAGES.map(str::to_owned).to_vec();
    for folder in FOLDERS {
        files(folder, &mut found);
    }
    found.retain(|path| WRITTEN.iter().any(|end| path.ends_with(*end)));
    found
}

/// Numbers of the rules that a text cites: a `P` and its number, as a word.
fn cited(text: &str) -> BTreeSet<u32> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let number = |at: usize| -> Option<u32> {
        if text[..at].ends_with(is_part) {
            return None;
        }
        let rest = &text[at + 1..];
        let word = &rest[..rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())];
        if word.len() > 2 { None } else { word.parse().ok() }
    };
    text.match_indices('P').filter_map(|(at, _)| number(at)).collect()
}

/// Numbers of the rules after which functions are named: `fn p39_p40_…` is named after two.
fn named(text: &str) -> BTreeSet<u32> {
    let number = |part: &str| -> Option<u32> { part.strip_prefix('p')?.parse().ok() };
    text.split("fn ").skip(1).flat_map(|rest| rest.split('_').map_while(number)).collect()
}

/// What stands in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The page from a heading to the next one of its kind.
fn section(heading: &str) -> String {
    let page = read(PROTOCOL);
    let (_, below) = page.split_once(&format!("\n## {heading}\n")).expect("the heading is there");
    below.split("\n## ").next().unwrap_or_default().to_owned()
}

/// The rules with what they say of themselves, in the order of the page.
fn rules() -> Vec<(u32, Items)> {
    let rule = |text: &str| -> (u32, Items) {
        let number = text.split(' ').next().and_then(|number| number.parse().ok());
        let item = |item: &str| -> Option<(String, String)> {
            let words: Vec<&str> = item.split_whitespace().collect();
            let words = words.join(" ");
            words.split_once(": ").map(|(label, text)| (label.to_owned(), text.to_owned()))
        };
        (number.expect("a rule has a number"), text.split("\n- ").skip(1).filter_map(item).collect())
    };
    section("The rules").split("\n### P").skip(1).map(rule).collect()
}

/// Files and their tests: `file`: `test`, `test`; `file`: `test`.
fn tests_of(item: &str) -> Vec<(&str, &str)> {
    let (mut file, mut tests) = ("", Vec::new());
    for word in quoted(item) {
        if word.contains('/') {
            file = word;
        } else {
            tests.push((file, word));
        }
    }
    tests
}

fn has_function(path: &str, name: &str) -> bool {
    fs::read_to_string(root().join(path)).is_ok_and(|text| text.contains(&format!("fn {name}(")))
}

#[test]
fn every_rule_that_is_cited_is_stated() {
    let stated: Vec<u32> = rules().iter().map(|(number, _)| *number).collect();
    let in_order: Vec<u32> = (1..).take(stated.len()).collect();
    assert_eq!(stated, in_order, "rules stand in their order, each once");
    let (mut citations, mut unknown) = (0, Vec::new());
    for path in written().iter().filter(|path| *path != PROTOCOL) {
        let text = read(path);
        let mut numbers = cited(&text);
        if path.ends_with(".rs") {
            numbers.extend(named(&text));
        }
        citations += numbers.len();
        let without = numbers.iter().filter(|number| !stated.contains(number));
        unknown.extend(without.map(|number| format!("{path} cites P{number}")));
    }
    assert!(unknown.is_empty(), "{PROTOCOL} does not state what is cited:\n{}", unknown.join("\n"));
    assert!(citations > 200, "only {citations} citations were found");
}

/// Rules of speed, whose figures stand on a page instead of in tests: the head of the page says why.
const MEASURED: [u32; 2] = [18, 37];

#[test]
fn every_rule_has_files_and_tests() {
    let mut missing = Vec::new();
    for (number, items) in rules() {
        if items.contains_key("Open") {
            continue;
        }
        let item = |label: &str| items.get(label).cloned().unwrap_or_default();
        let (held, measured, tests) = (item("Held by"), item("Measured"), item("Tests"));
        let (places, tests) = ([quoted(&held), quoted(&measured)].concat(), tests_of(&tests));
        if held.is_empty() || tests.is_empty() != MEASURED.contains(&number) {
            missing.push(format!("P{number} names no file or no test, or is measured and has tests"));
        }
        if measured.is_empty() == MEASURED.contains(&number) {
            missing.push(format!("P{number} is measured, or is not, other than the head of the page says"));
        }
        for path in places.iter().filter(|path| !root().join(path).is_file()) {
            missing.push(format!("P{number} is held by {path}, which is not there"));
        }
        for (path, test) in tests.iter().filter(|(path, test)| !has_function(path, test)) {
            missing.push(format!("P{number} is tested by {test}, which is not in {path}"));
        }
    }
    assert!(missing.is_empty(), "{PROTOCOL}:\n{}", missing.join("\n"));
}

/// The tables of a page, each with its head: rows of cells.
fn tables(text: &str) -> Vec<Vec<Vec<&str>>> {
    let row = |line| -> Option<Vec<&str>> {
        let cells = str::strip_prefix(line, "| ")?.trim_end_matches(" |");
        Some(cells.split(" | ").map(str::trim).collect())
    };
    let tables = text.split("\n\n").map(|part| part.lines().filter_map(row).collect());
    tables.filter(|table: &Vec<_>| !table.is_empty()).collect()
}

/// What a page about security promises without a test: rows that name none, or one that is not there, and cells of actors and
/// assets that name no row.
fn untested_promises(text: &str) -> Vec<String> {
    let (mut rows, mut lacks) = (BTreeSet::new(), Vec::new());
    let all = tables(text);
    for row in all.iter().filter(|table| table[0].last() == Some(&"Tests")).flat_map(|table| &table[1..]) {
        let (id, tests) = (row[0], tests_of(row.last().copied().unwrap_or_default()));
        if !rows.insert(id) || tests.is_empty() {
            lacks.push(format!("row {id} is there twice, or names no test"));
        }
        let gone = tests.into_iter().filter(|(path, test)| !has_function(path, test));
        lacks.extend(gone.map(|(path, test)| format!("{test} of row {id} is not in {path}")));
    }
    for table in all.iter().filter(|table| table[0][0] == "Actor" && table[0].len() > 3) {
        let head = &table[0];
        for (row, (asset, cell)) in
            table[1..].iter().flat_map(|row| head.iter().zip(row).skip(1).map(move |of| (row, of)))
        {
            let place = format!("{} × {asset}", row[0]);
            if row.len() != head.len() {
                lacks.push(format!("{place}: the row has {} cells, and the head {}", row.len(), head.len()));
            }
            for said in cell.split("; ") {
                let is_no_promise = ["may ", "not protected: "].iter().any(|word| said.starts_with(word));
                match said.split_once("stopped") {
                    None if is_no_promise => {}
                    None => lacks.push(format!("{place}: '{said}' says neither what is stopped nor that nothing is")),
                    Some((_, how)) => {
                        let named = how.split_once(": ").map_or("no row", |(_, named)| named).split(", ");
                        let unknown = named.filter(|row| !rows.contains(row));
                        lacks.extend(unknown.map(|row| format!("{place}: there is no row '{row}'")));
                    }
                }
            }
        }
    }
    lacks
}

#[test]
fn every_row_about_security_has_its_tests() {
    let text = read("docs/SECURITY-MODEL.md");
    let lacks = untested_promises(&text);
    assert!(lacks.is_empty(), "docs/SECURITY-MODEL.md:\n{}", lacks.join("\n"));
    let cells = tables(&text).iter().filter(|table| table[0].len() > 5).flatten().flatten().count();
    assert!(cells >= 11 * 8, "actors and assets have a table: {cells} cells");
    assert!(tests_of(&text).len() > 60, "the tests are found");
}

#[test]
fn a_promise_about_security_without_a_test_is_found() {
    let page = |cell: &str, tests: &str| {
        let matrix = format!(
            "| Actor | Keys | Gold | Money |\n|---|---|---|---|\n| reader | {cell} | may read | not protected: all |"
        );
        format!(
            "{matrix}\n\n| Row | Who | What | Tests |\n|---|---|---|---|\n| A1 | reader: keys | a wall | {tests} |\n"
        )
    };
    let here = "`proto/tests/documents.rs`: `every_row_about_security_has_its_tests`";
    assert_eq!(untested_promises(&page("may read; stopped from changing: A1", here)), Vec::<String>::new());
    for (cell, tests, lack) in [
        ("stopped: A1", "see the code", "row A1 is there twice, or names no test"),
        ("stopped: A1", "`proto/tests/documents.rs`: `no_such_test`", "no_such_test of row A1 is not in"),
        ("stopped", here, "reader × Keys: there is no row 'no row'"),
        ("stopped: A1, A2", here, "reader × Keys: there is no row 'A2'"),
        ("is safe", here, "reader × Keys: 'is safe' says neither"),
    ] {
        let lacks = untested_promises(&page(cell, tests));
        assert!(lacks.len() == 1 && lacks[0].starts_with(lack), "{cell}: {lacks:?}");
    }
}

#[test]
fn files_that_the_pages_name_are_there() {
    let (mut named, mut missing) = (0, Vec::new());
    for page in ["docs/ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = read(page);
        let is_path = |word: &&str| {
            let (folder, _) = word.split_once('/').unwrap_or_default();
            FOLDERS.contains(&folder) && !word.contains(['<', ' '])
        };
        for path in quoted(&text).into_iter().filter(is_path) {
            named += 1;
            if !root().join(path).exists() {
                missing.push(format!("{page} names {path}, which is not there"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(named > 50, "only {named} files were found");
}

/// Whether a file declares an item, with words above it that say what it is.
fn explains(path: &str, item: &str) -> bool {
    let is_word = |line: &str, before: &str| {
        let behind = line.split_once(&format!("{before}{item}")).map(|(_, behind)| behind);
        behind.is_some_and(|behind| !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let is_declared = |line: &str| match path.rsplit_once('.') {
        Some((_, "toml")) => line.starts_with(&format!("{item} = ")),
        _ => {
            ["fn ", "struct ", "enum ", "trait "].iter().any(|kind| is_word(line, kind))
                || line.trim() == format!("{item},")
        }
    };
    let text = fs::read_to_string(root().join(path)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    (0..lines.len()).filter(|at| is_declared(lines[*at])).any(|at| {
        let above = lines[..at].iter().rev().map(|line| line.trim()).find(|line| !line.starts_with("#["));
        above.is_some_and(|line| line.starts_with("/// ") || line.starts_with("# "))
    })
}

/// Whether a page below docs/ has the heading that a link leads to.
fn has_heading(link: &str) -> bool {
    let (page, anchor) = link.split_once('#').unwrap_or((link, ""));
    let text = fs::read_to_string(root().join("docs").join(page)).unwrap_or_default();
    let anchor_of = |line: &str| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    text.lines().filter(|line| line.starts_with('#')).any(|line| anchor_of(line) == anchor)
}

/// Five things that strangers look for take two steps from docs/ARCHITECTURE.md: a link or a file that is named, and the item in it.
#[test]
fn what_strangers_look_for_is_two_steps_away() {
    let page = read("docs/ARCHITECTURE.md");
    let (_, below) = page.split_once("\n## Where things are\n").expect("the heading is there");
    let table = below.split("\n## ").next().unwrap_or_default();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    for sought in ["interval", "infra_error", "back-off", "adding a dataset", "drain"] {
        let is_named = |row: &&str| row.split('|').nth(1).is_some_and(|name| name.contains(sought));
        assert!(rows.iter().any(is_named), "nothing says where to find: {sought}");
    }
    for row in rows {
        let (items, links) = (quoted(row), row.split("](").skip(1).filter_map(|rest| rest.split(')').next()));
        let links: Vec<&str> = links.collect();
        assert!(items.len() % 2 == 0 && items.len() + links.len() > 0, "an item and its file, or a link: {row}");
        for pair in items.chunks(2) {
            assert!(explains(pair[1], pair[0]), "{} does not explain {}: {row}", pair[1], pair[0]);
        }
        for link in links {
            assert!(has_heading(link), "{link} leads nowhere: {row}");
        }
    }
}

/// The arrows of the diagram below a heading.
fn arrows(heading: &str) -> Vec<Arrow> {
    let section = section(heading);
    let (_, diagram) = section.split_once("```mermaid\nstateDiagram-v2\n").expect("a diagram");
    let arrow = |line: &str| -> Option<Arrow> {
        let (from, rest) = line.trim().split_once(" --> ")?;
        let (to, name) = rest.split_once(": ")?;
        Some((from.to_owned(), to.to_owned(), name.to_owned()))
    };
    let lines = diagram.lines().take_while(|line| *line != "```");
    lines.map(|line| arrow(line).unwrap_or_else(|| panic!("{heading}: {line} is no arrow"))).collect()
}

/// A value as the word that is stored for it.
fn word(value: impl Serialize) -> String {
    let stored = serde_json::to_value(value).expect("it can be stored");
    stored.as_str().expect("a word").to_owned()
}

/// A line of the transition table as it is drawn.
fn drawn(line: &Transition) -> Arrow {
    let mut name = word(line.event);
    if line.needs_epoch {
        name += " (epoch)";
    }
    let (epoch, attempts, losses) = line.counts;
    for (what, count) in [("epoch", epoch), ("attempts", i64::from(attempts)), ("losses", i64::from(losses))] {
        if count != 0 {
            name += &format!(", {what} + {count}");
        }
    }
    (word(line.from), word(line.to), name)
}

#[test]
fn p27_the_diagram_of_tasks_is_the_transition_table() {
    let mut table = vec![("[*]".to_owned(), "ready".to_owned(), "planned".to_owned())];
    table.extend(TRANSITIONS.iter().map(drawn));
    assert_eq!(arrows("What can happen to a task"), table);
}

/// The lines of another table as they are drawn.
fn all_drawn<S: Serialize + Copy, E: Serialize + Copy>(table: &[Line<S, E>]) -> Vec<Arrow> {
    let drawn = |line: &Line<S, E>| {
        let from = line.from.map_or_else(|| "[*]".to_owned(), word);
        (from, word(line.to), word(line.event).replace('_', " "))
    };
    table.iter().map(drawn).collect()
}

#[test]
fn the_diagrams_of_banks_and_sessions_are_their_tables() {
    assert_eq!(arrows("What can happen to a bank"), all_drawn(bank::TRANSITIONS));
    assert_eq!(arrows("What can happen to a session"), all_drawn(session::TRANSITIONS));
}

/// Variants of an enum of the store's rows, in small letters.
fn variants(name: &str) -> BTreeSet<String> {
    let text = read("crates/store/src/rows/runs.rs");
    let (_, body) = text.split_once(&format!("pub enum {name} {{\n")).expect("the enum is there");
    let lines = body.lines().take_while(|line| *line != "}").map(str::trim);
    let variants = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    variants.map(|line| line.split([',', '(']).next().unwrap_or_default().to_lowercase()).collect()
}

#[test]
fn diagrams_have_the_states_of_the_code_and_say_where_each_arrow_is_made() {
    for what in ["bank", "run", "session"] {
        let heading = format!("What can happen to a {what}");
        let arrows = arrows(&heading);
        if what == "run" {
            let ends = arrows.iter().flat_map(|(from, to, _)| [from, to]).filter(|state| *state != "[*]");
            assert_eq!(ends.cloned().collect::<BTreeSet<String>>(), variants("RunState"), "{heading}");
        }
        let section = section(&heading);
        let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        let listed = rows.iter().filter_map(|row| row.split('|').nth(1)).map(str::trim);
        let names = arrows.iter().map(|(_, _, name)| name.as_str());
        assert_eq!(names.collect::<BTreeSet<&str>>(), listed.collect::<BTreeSet<&str>>(), "{heading}");
        for row in rows {
            let place = row.trim_end_matches(" |").rsplit('|').next().map(quoted).unwrap_or_default();
            let found = place.len() == 2 && has_function(place[0], place[1]);
            assert!(found, "{heading}: the place of this arrow is not there: {row}");
        }
    }
}

/// The arguments of a call, from behind its bracket to the one that closes it.
fn arguments(text: &str) -> &str {
    let mut open = 1;
    let end = text.find(|c: char| {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        open == 0
    });
    &text[..end.unwrap_or(text.len())]
}

/// A source without its items for tests: each ends with the line that closes it where it began.
fn without_tests(text: &str) -> String {
    let (mut kept, mut is_for_tests) = (String::new(), false);
    for line in text.lines() {
        let begins = line.starts_with("#[cfg(") && line.contains("test");
        is_for_tests |= begins;
        if !is_for_tests {
            kept.push_str(line);
            kept.push('\n');
        }
        let closes = line.starts_with('}') || (line.ends_with(';') && !line.starts_with(' '));
        is_for_tests &= begins || !closes;
    }
    kept
}

/// What the code does to the states of runs: from which, where a call names them, to which.
fn changes_of_runs() -> Vec<(Vec<String>, String)> {
    const ROOMS: [&str; 3] = ["coordinator/src/", "worker/src/", "crates/store/src/sql/"];
    let mut found = Vec::new();
    for path in written() {
        if path.ends_with("tests.rs") || !ROOMS.iter().any(|room| path.starts_with(*room)) {
            continue;
        }
        let text = without_tests(&read(&path));
        for call in ["set_run_state(", "change_state("] {
            for behind in text.split(call).skip(1) {
                let words = arguments(behind).split("RunState::").skip(1);
                let states = words.map(|word| word.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default());
                let mut states: Vec<String> = states.map(str::to_lowercase).collect();
                if let Some(to) = states.pop() {
                    found.push((states, to));
                }
            }
        }
    }
    found
}

#[test]
fn the_diagram_of_runs_has_what_the_code_does_to_them() {
    let arrows = arrows("What can happen to a run");
    let drawn: BTreeSet<(&str, &str)> =
        arrows.iter().map(|(from, to, _)| (from.as_str(), to.as_str())).filter(|(from, _)| *from != "[*]").collect();
    let changes = changes_of_runs();
    for (from, to) in &changes {
        for from in from {
            let is_drawn = drawn.contains(&(from.as_str(), to.as_str()));
            assert!(is_drawn, "the code brings runs from {from} to {to}, the diagram does not");
        }
    }
    for (from, to) in drawn {
        // a call that takes its states from a list names none
        let is_made = |(known, into): &(Vec<String>, String)| {
            into == to && (known.is_empty() || known.iter().any(|known| known == from))
        };
        assert!(changes.iter().any(is_made), "nothing brings a run from {from} to {to}");
    }
}

#[test]
fn what_tests_do_is_no_change_of_the_code() {
    let text = "fn a() {\n    one();\n}\n\n#[cfg(test)]\nmod tests {\n    fn b() {\n        two();\n    }\n}\n\nfn c() {}\n\
                #[cfg(test)]\nmod more;\nfn d() {}\n";
    assert_eq!(without_tests(text), "fn a() {\n    one();\n}\n\n\nfn c() {}\nfn d() {}\n");
}

#[test]
fn decisions_are_numbered_without_holes_and_listed() {
    let mut pages = Vec::new();
    files("docs/adr", &mut pages);
    pages.retain(|path| path != "docs/adr/README.md");
    pages.sort();
    let list = read("docs/adr/README.md");
    for (number, path) in (1..).zip(&pages) {
        let name = path.trim_start_matches("docs/adr/");
        assert!(name.starts_with(&format!("{number:04}-")), "{path} should be decision {number:04}");
        assert!(read(path).starts_with(&format!("# {number:04} ")), "{path}: its heading has another number");
        assert!(list.contains(&format!("| [{number:04}]({name}) | ")), "docs/adr/README.md does not list {path}");
    }
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u32>().ok());
    for path in written().iter().filter(|path| path.ends_with(".md")) {
        let text = read(path);
        let parts: Vec<&str> = text.split("](").collect();
        for link in parts.windows(2) {
            let said = number(link[0].get(link[0].len().saturating_sub(4)..));
            let file = link[1].split([')', '#']).next().and_then(|place| place.rsplit('/').next());
            let linked = number(file.filter(|file| file.get(4..5) == Some("-")).and_then(|file| file.get(..4)));
            if said.is_some() && linked.is_some() {
                assert_eq!(said, linked, "{path} names one decision and links to another");
                let page = format!("docs/adr/{}", file.unwrap_or_default());
                assert!(pages.contains(&page), "{path} links to {page}, which is not there");
            }
        }
    }
}

/// What the file of a crate or a module says of itself, on one line between two blanks.
fn head(text: &str) -> String {
    let words = text.lines().filter_map(|line| line.strip_prefix("//!")).flat_map(str::split_whitespace);
    format!(" {} ", words.collect::<Vec<_>>().join(" "))
}

/// What a crate's map says, and the words by which it is known.
const OF_A_MAP: [(&str, &[&str]); 3] = [
    ("what comes in", &[" in come ", " in comes ", " in: ", " comes in", " come in"]),
    ("what goes out", &[" out come ", " out comes ", " out: ", " out go ", " goes out", " go out", " comes out"]),
    ("where to start", &[" start reading at ", " start with ", " start at "]),
];

/// What the head of a crate does not say.
fn unsaid(text: &str) -> Vec<&'static str> {
    let head = head(text).to_lowercase();
    let lacks = OF_A_MAP.iter().filter(|(_, words)| !words.iter().any(|phrase| head.contains(*phrase)));
    lacks.map(|(what, _)| *what).collect()
}

/// Modules from which on one opens with a map of them.
const DENSE: usize = 8;
/// Lines of a head at least that says more than what a file is.
const LINES_OF_A_MAP: usize = 3;

/// Whether a file has many others below it and says too little of them.
fn has_no_map(text: &str) -> bool {
    let is_module = |line: &&str| {
        let parts = line.strip_suffix(';').and_then(|line| line.rsplit_once("mod "));
        parts.is_some_and(|(before, _)| before.is_empty() || before.starts_with("pub"))
    };
    let lines = text.lines().filter(|line| line.strip_prefix("//!").is_some_and(|said| !said.trim().is_empty()));
    text.lines().filter(is_module).count() >= DENSE && lines.count() < LINES_OF_A_MAP
}

#[test]
fn crates_and_dense_modules_open_with_a_map() {
    let (mut crates, mut lacks) = (0, Vec::new());
    let sources = written().into_iter().filter(|path| path.ends_with(".rs") && path.contains("/src/"));
    for path in sources {
        let text = read(&path);
        let is_library = path.ends_with("/src/lib.rs");
        let is_program = path.ends_with("/src/main.rs") && !root().join(path.replace("main.rs", "lib.rs")).is_file();
        if is_library || is_program {
            crates += 1;
            lacks.extend(unsaid(&text).into_iter().map(|what| format!("{path} does not say {what}")));
        }
        if has_no_map(&text) {
            lacks.push(format!("{path} has {DENSE} files or more below it and no map of them"));
        }
    }
    assert!(lacks.is_empty(), "say it in the `//!` lines at the head of the file:\n{}", lacks.join("\n"));
    assert!(crates > 15, "only {crates} crates were found");
}

#[test]
fn a_head_without_a_map_is_found() {
    let crate_of_ours =
        "//! Does it. In come words;\n//! out come numbers.\n//!\n//! Start reading at `all`.\n\nmod all;\n";
    assert!(unsaid(crate_of_ours).is_empty());
    let without = "//! Does it again: words.\n// In come words.\n";
    assert_eq!(unsaid(without), ["what comes in", "what goes out", "where to start"]);
    let modules: String = (0..DENSE).map(|n| format!("pub(crate) mod m{n};\n")).collect();
    assert!(has_no_map(&format!("//! Does it.\n//!\n\n{modules}")));
    assert!(!has_no_map(&format!("//! Does it:\n//! `m0` this,\n//! the others that.\n\n{modules}")));
    assert!(!has_no_map("//! Does it.\n\nmod one;\n"));
}

/// Words that a glossary's table defines: those in bold in its first column.
fn defined(glossary: &str) -> Vec<&str> {
    let cells = glossary.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    cells.flat_map(|cell| cell.split("**").skip(1).step_by(2)).collect()
}

/// Words that are defined more than once.
fn defined_again(glossary: &str) -> Vec<&str> {
    let mut known = BTreeSet::new();
    defined(glossary).into_iter().filter(|word| !known.insert(*word)).collect()
}

#[test]
fn no_word_of_the_glossary_is_defined_twice() {
    let glossary = read("docs/GLOSSARY.md");
    assert_eq!(defined_again(&glossary), Vec::<&str>::new(), "docs/GLOSSARY.md: one line that says all of it");
    assert!(defined(&glossary).len() > 100, "the words are found");
    assert_eq!(defined_again("| **a**, **b** | of **c** |\n| **c** | x |\n| **b** | y |\n"), ["b"]);
}

/// What a doc comment may not be alone: it says nothing that the item's name and type do not.
const SAYS_NOTHING: [&str; 16] = [
    "all of them",
    "how",
    "how many",
    "its id",
    "its kind",
    "its name",
    "its value",
    "see the module",
    "see there",
    "their names",
    "the same",
    "what",
    "where",
    "which one",
    "who",
    "why",
];
/// Words in front of the name of an item.
const BEFORE_A_NAME: [&str; 16] = [
    "async", "const", "crate", "enum", "extern", "fn", "in", "mod", "mut", "pub", "static", "struct", "super", "trait",
    "type", "unsafe",
];

/// Words of a doc comment that say nothing beside the words of its item.
const FILLERS: [&str; 8] = ["a", "an", "its", "of", "one", "the", "their", "which"];

/// The words of a name or a text, small and in the singular: of `RunGroup`, `run_groups` and "the run's groups" `run` and `group`.
fn own_words(text: &str) -> BTreeSet<String> {
    let (mut spaced, mut was_small) = (String::new(), false);
    for c in text.chars() {
        if c.is_uppercase() && was_small {
            spaced.push(' ');
        }
        was_small = c.is_lowercase();
        spaced.push(c.to_ascii_lowercase());
    }
    let singular = |word: &str| match word.strip_suffix("ies") {
        Some(start) => format!("{start}y"),
        None => {
            word.strip_suffix('s').filter(|start| start.len() > 2 && !start.ends_with('s')).unwrap_or(word).to_owned()
        }
    };
    spaced.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1 || *word == "a").map(singular).collect()
}

/// Whether a doc has no word but fillers and those of the name that it is about; a formula or a link is something else.
fn is_of_own_words(said: &str, name: &str) -> bool {
    let is_plain = said.chars().all(|c| c.is_alphanumeric() || " _'`.".contains(c));
    let (said, own) = (own_words(said), own_words(name));
    let fillers: BTreeSet<String> = FILLERS.iter().flat_map(|filler| own_words(filler)).collect();
    is_plain && said.iter().any(|word| own.contains(word)) && said.is_subset(&own.union(&fillers).cloned().collect())
}

/// Doc comments of one line that say nothing, or only the item's own name: line numbers and words.
fn empty_docs(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_doc = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("///"));
    let plain = |words: &str| words.replace(|c: char| !c.is_alphanumeric(), "").to_lowercase();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(said) = line.strip_prefix("/// ").filter(|_| !is_doc(at + 1) && (at == 0 || !is_doc(at - 1))) else {
            continue;
        };
        let item = lines[at + 1..].iter().find(|line| !line.starts_with("#["));
        let words = item.into_iter().flat_map(|item| item.split(|c: char| !c.is_alphanumeric() && c != '_'));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let before = words.iter().take_while(|word| BEFORE_A_NAME.contains(word)).count();
        let name = words.get(before).copied().unwrap_or_default();
        // what a function does its arguments may say
        let is_function = words[..before].contains(&"fn");
        let articles = ["a", "an", "its", "the", "their"];
        let told: String = said.split(' ').filter(|word| !articles.contains(&word.to_lowercase().as_str())).collect();
        let phrase = said.trim_end_matches('.').to_lowercase();
        let repeats = !plain(&told).is_empty() && plain(&told) == plain(name);
        let is_bare = !is_function && is_of_own_words(said, name);
        if repeats || is_bare || SAYS_NOTHING.contains(&phrase.as_str()) {
            found.push((at + 1, said));
        }
    }
    found
}

#[test]
fn docs_say_more_than_the_name_of_their_item() {
    let mut empty = Vec::new();
    for path in written().iter().filter(|path| path.ends_with(".rs")) {
        let text = read(path);
        empty.extend(empty_docs(&text).into_iter().map(|(line, said)| format!("{path}:{line}: {said}")));
    }
    let what = "say the meaning, the unit or the errors, or nothing where the item is private";
    assert!(empty.is_empty(), "{what}:\n{}", empty.join("\n"));
}

#[test]
fn a_doc_that_says_nothing_is_found() {
    let text = "/// The verb.\npub verb: Verb,\n/// Its name.\n#[serde(skip)]\npub(in super::super) id: String,\n\
                /// As JSON.\npub fn as_json() {}\n/// A cap.\n/// In dollars.\ncap: f64,\n/// Seconds of a call.\ncall: f64,\n";
    assert_eq!(empty_docs(text), [(1, "The verb."), (3, "Its name."), (6, "As JSON.")]);
    let bare = "/// The groups of one run.\npub struct RunGroup;\n/// Verbs of `models`.\nenum ModelsVerb {}\n/// Its copies.\ncopies: u32,\n\
                /// The price of a model, per million.\nstruct ModelPrice;\n/// The text of an answer.\nfn answer_text() {}\n";
    let found: Vec<usize> = empty_docs(bare).into_iter().map(|(line, _)| line).collect();
    assert_eq!(found, [1, 3, 5]);
}

#[test]
fn the_page_of_the_command_line_names_the_version_of_reports() {
    let named = format!("`$BENCH_HOME/runs/<run>/report.json` (schema version {REPORT_SCHEMA_VERSION},");
    assert!(read("docs/CLI.md").contains(&named), "docs/CLI.md: {named}");
}

#[test]
fn prose_has_one_width() {
    let mut wide = Vec::new();
    for path in written().iter().filter(|path| path.ends_with(".md")) {
        let (text, mut in_code) = (read(path), false);
        for (number, line) in (1..).zip(text.lines()) {
            let start = line.trim_start();
            in_code ^= start.starts_with("```");
            // tables, headings, quotes, HTML, pictures; and words that cannot be parted
            let is_whole = start.starts_with(['|', '#', '>', '<']) || start.starts_with("![");
            let is_free = in_code || is_whole || line.split_whitespace().count() < 3;
            if !is_free && line.chars().count() > WIDTH {
                wide.push(format!("{path}:{number}"));
            }
        }
    }
    assert!(wide.is_empty(), "wider than {WIDTH}; `python3 scripts/wrap-docs.py` wraps them:\n{}", wide.join("\n"));
}
