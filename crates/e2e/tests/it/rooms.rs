//! The rooms of a crate, the modules beside its root, import each other in one direction: a room that is read needs only those
//! below it. So do the modules of a folder further down, but for those that are listed here. Reads `use` and other paths through `crate`
//! and `super` in the source of every crate; tests are left out. What else such a reading can hold stands here too: who writes states of
//! runs, and how functions are not named.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::arrows::workspace;

/// Room → rooms that it imports, each with a path that does it.
type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// Circles below the rooms that stay: crate, folder, its modules, and why.
const CIRCLES_BELOW: [(&str, &str, &str, &str); 14] = [
    (
        "bench-coord",
        "import",
        "advice fields forms grades ours records",
        "the names of a form of file decide how its records are read, and advice on a record names the forms",
    ),
    (
        "bench-coord",
        "planning",
        "archived filled planner",
        "a plan waits for banks that others fill, and what they fill is known by the plan's own batches",
    ),
    (
        "bench-coord",
        "standing",
        "group meant naming",
        "a group is found by what a word means, and a word may mean a group",
    ),
    ("bench-worker", "metering", "call run", "a metered call is of its run, and the run knows its calls"),
    ("bench-proto", "trace", "attributes bank input tree", "spans of banks are a part of what a trace is built of"),
    ("bench-datasets", "precision_sim", "plot world", "the plot writes into the world that begins it"),
    ("bench-meter", "ask", "head names", "one macro makes the members of a body and the list of their names"),
    ("bench-queue", "amqp", "dead topology", "the queue of dead letters is declared as all others are, and with them"),
    ("bench-store", "postgres", "conn pool", "a connection goes back to the pool that it is from"),
    (
        "bench-store",
        "sql",
        "commit conclude",
        "a commit concludes, and the trait of checkpoints stands with conclusions",
    ),
    ("bench-store", "sql", "claims tasks", "the trait of tasks stands with the statements that claims use too"),
    (
        "bench-systems",
        "adapter",
        "call code file managed mcp process readiness retaining steps system",
        "the operations of the one type `AdapterSystem` stand in a file each",
    ),
    (
        "bench-systems",
        "policy",
        "hash refusal rehearsal",
        "what is refused is rehearsed, to say all that is missing at once",
    ),
    ("bench-testkit", "fakes", "hosted systems whole", "the list of fakes stands with the replies that they share"),
];

/// Every crate of the workspace with sources.
fn crates() -> Vec<(String, Crate)> {
    let read = |package: &serde_json::Value| {
        let name = package["name"].as_str().expect("a name");
        let src = Path::new(package["manifest_path"].as_str().expect("a path")).with_file_name("src");
        let root = ["lib.rs", "main.rs"].map(|name| src.join(name)).into_iter().find(|path| path.exists())?;
        Some((name.to_owned(), Crate::read(&root)))
    };
    workspace().iter().filter_map(read).collect()
}

/// The imports within a circle, for a person.
fn within(circle: &BTreeSet<String>, arrows: &Arrows) -> Vec<String> {
    let all = circle.iter().flat_map(|from| arrows[from].iter().map(move |(to, path)| (from, to, path)));
    let of_circle = all.filter(|(_, to, _)| circle.contains(*to));
    of_circle.map(|(from, to, path)| format!("{from} imports {to}: {path}")).collect()
}

#[test]
fn no_import_circle_between_the_rooms_of_a_crate() {
    let mut found = Vec::new();
    for (name, read) in crates() {
        let arrows = read.arrows();
        for circle in circles(&arrows) {
            let within = within(&circle, &arrows);
            found.push((name.clone(), circle, within));
        }
    }
    assert!(found.is_empty(), "rooms that import each other in a circle: {found:#?}");
}

#[test]
fn no_import_circle_between_the_modules_of_a_folder_but_those_that_are_listed() {
    let (mut found, mut there) = (Vec::new(), BTreeSet::new());
    for (name, read) in crates() {
        for (folder, arrows) in read.arrows_below() {
            for circle in circles(&arrows) {
                let is_listed = |(of, at, modules, _): &(&str, &str, &str, &str)| {
                    let modules: BTreeSet<&str> = modules.split(' ').collect();
                    (*of, *at) == (name.as_str(), folder.as_str())
                        && circle.iter().map(String::as_str).eq(modules.iter().copied())
                };
                match CIRCLES_BELOW.iter().position(is_listed) {
                    Some(at) => {
                        there.insert(at);
                    }
                    None => {
                        let within = within(&circle, &arrows);
                        found.push((name.clone(), folder.clone(), circle, within));
                    }
                }
            }
        }
    }
    assert!(found.is_empty(), "modules that import each other in a circle: {found:#?}");
    let listed = CIRCLES_BELOW.iter().enumerate().filter(|(at, _)| !there.contains(at));
    let gone: Vec<_> = listed.map(|(_, (of, folder, modules, _))| (of, folder, modules)).collect();
    assert!(gone.is_empty(), "circles that are no more: take them off CIRCLES_BELOW: {gone:#?}");
}

/// A verb parses, calls and prints: what moves a run between its states stands in `runs`.
#[test]
fn no_verb_writes_the_state_of_a_run() {
    let coordinator = crates().into_iter().find(|(name, _)| name == "bench-coord");
    let (_, read) = coordinator.expect("the crate of the verbs");
    let is_write = |source: &str| source.contains(".set_run_state(") || source.contains(".delete_runs(");
    let writes = |room: &str| -> Vec<String> {
        let modules = read.modules.iter().filter(|(path, _)| path.first().is_some_and(|first| first == room));
        modules.filter(|(_, source)| is_write(source)).map(|(path, _)| path.join("/")).collect()
    };
    assert!(!writes("runs").is_empty(), "the calls have other names now");
    let verbs = writes("commands");
    assert!(verbs.is_empty(), "verbs that write states of runs, which `coordinator/src/runs` does: {verbs:?}");
}

/// A function's name says what it makes: `Draws::from_spec`, `share_of`.
#[test]
fn no_function_is_named_of() {
    let is_of = |source: &str| ["fn of(", "fn of<"].iter().any(|declared| source.contains(declared));
    let mut named = Vec::new();
    for (name, read) in crates() {
        let of = read.modules.iter().filter(|(_, source)| is_of(source));
        named.extend(of.map(|(path, _)| format!("{name}: {}", path.join("/"))));
    }
    assert!(named.is_empty(), "functions that are named `of`: name them after what they make: {named:?}");
}

/// The source of a crate.
struct Crate {
    /// Module path (empty for the root) → source without comments and tests.
    modules: BTreeMap<Vec<String>, String>,
    rooms: BTreeSet<String>,
    /// Names at the root that belong to a room.
    of_rooms: BTreeMap<String, String>,
}

impl Crate {
    fn read(root: &Path) -> Self {
        let mut modules = BTreeMap::new();
        read_module(root, root.parent().expect("a folder"), Vec::new(), &mut modules);
        let rooms: BTreeSet<String> =
            modules.keys().filter(|path| path.len() == 1).map(|path| path[0].clone()).collect();
        let mut this = Self { modules, rooms, of_rooms: BTreeMap::new() };
        for path in this.paths(&[]) {
            let path: Vec<&str> = path.split("::").filter(|part| !matches!(*part, "crate" | "self")).collect();
            let (Some(room), Some(name)) = (path.first(), path.last()) else { continue };
            if !this.rooms.contains(*room) {
                continue;
            }
            let names = if *name == "*" { this.public_names(&[(*room).to_owned()]) } else { vec![(*name).to_owned()] };
            this.of_rooms.extend(names.into_iter().map(|name| (name, (*room).to_owned())));
        }
        this
    }

    /// Names of what a module lets others have, wherever in it.
    fn public_names(&self, module: &[String]) -> Vec<String> {
        let sources = self.modules.iter().filter(|(path, _)| path.starts_with(module));
        let lines = sources.flat_map(|(_, source)| source.lines());
        let public = |line: &str| {
            ["pub ", "pub(crate) ", "pub(super) "].iter().find_map(|word| line.strip_prefix(word).map(str::to_owned))
        };
        let words = lines.filter_map(public).map(|line| {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
            words
                .find(|word| {
                    !matches!(*word, "async" | "const" | "enum" | "fn" | "static" | "struct" | "trait" | "type")
                })
                .map(str::to_owned)
        });
        words.flatten().collect()
    }

    /// Paths that a module names, as they are written.
    fn paths(&self, module: &[String]) -> Vec<String> {
        let source = &self.modules[module];
        let mut paths = Vec::new();
        for (at, _) in source.match_indices("use ") {
            let before = source[..at].chars().next_back();
            if before.is_none_or(|c| c.is_whitespace() || c == '{')
                && let Some(tree) = source[at + 4..].split(';').next()
            {
                leaves("", tree, &mut paths);
            }
        }
        for start in ["crate::", "super::"] {
            for (at, _) in source.match_indices(start) {
                if !source[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                    let path = source[at..].split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next();
                    paths.extend(path.map(|path| path.trim_end_matches(':').to_owned()));
                }
            }
        }
        paths
    }

    /// The room that a path leads to, from within a module.
    fn room_of(&self, module: &[String], path: &str) -> Option<&str> {
        let mut parts = path.split("::").peekable();
        let mut base: &[String] = match parts.next()? {
            "crate" => &[],
            "super" => &module[..module.len() - 1],
            _ => return None,
        };
        while parts.next_if_eq(&"super").is_some() {
            base = &base[..base.len().checked_sub(1)?];
        }
        let first = base.first().map(String::as_str).or_else(|| parts.next())?;
        self.rooms.get(first).or_else(|| self.of_rooms.get(first)).map(String::as_str)
    }

    /// The module that a path leads to from within a module, and the name in it that is meant.
    fn leads_to<'a>(&self, module: &[String], path: &'a str) -> Option<(Vec<String>, Option<&'a str>)> {
        let mut parts = path.split("::").peekable();
        let mut base = module.to_vec();
        if parts.next_if_eq(&"crate").is_some() {
            base.clear();
        } else if parts.next_if_eq(&"self").is_none() {
            let mut is_above = false;
            while parts.next_if_eq(&"super").is_some() {
                base.pop()?;
                is_above = true;
            }
            let child = parts.peek().map(|part| [module, &[(*part).to_owned()]].concat());
            if !is_above && !child.is_some_and(|child| self.modules.contains_key(&child)) {
                return None;
            }
        }
        while let Some(part) = parts.peek() {
            base.push((*part).to_owned());
            if !self.modules.contains_key(&base) {
                base.pop();
                break;
            }
            parts.next();
        }
        Some((base, parts.next().filter(|name| *name != "self")))
    }

    /// (module, name that it has brought in from another one) → that one. What a `*` brings in is all that the other lets others have,
    /// but for names that are brought in by themselves.
    fn brought_in(&self, imports: &[(&Vec<String>, String)]) -> BTreeMap<(Vec<String>, String), Vec<String>> {
        let (mut named, mut by_star) = (BTreeMap::new(), BTreeMap::new());
        for (module, path) in imports {
            let (Some((of, Some(_))), Some(name)) = (self.leads_to(module, path), path.rsplit("::").next()) else {
                continue;
            };
            if name != "*" {
                named.insert(((*module).clone(), name.to_owned()), of);
            } else if !module.starts_with(&of) {
                let names = self.public_names(&of).into_iter();
                by_star.extend(names.map(|name| (((*module).clone(), name), of.clone())));
            }
        }
        by_star.extend(named);
        by_star
    }

    /// Folder below the root → imports between the modules in it. A name that a module has brought in from another one counts as that
    /// one's.
    fn arrows_below(&self) -> BTreeMap<String, Arrows> {
        let imports: Vec<(&Vec<String>, String)> = self
            .modules
            .keys()
            .flat_map(|module| self.paths(module).into_iter().map(move |path| (module, path)))
            .collect();
        let brought_in = self.brought_in(&imports);
        let mut below = BTreeMap::<String, Arrows>::new();
        for (module, path) in &imports {
            let Some((mut to, name)) = self.leads_to(module, path) else { continue };
            if let Some(of) =
                name.and_then(|name| brought_in.get(&(to.clone(), name.to_owned()))).filter(|_| to != **module)
            {
                to.clone_from(of);
            }
            // where the two part company
            let shared = module.iter().zip(&to).take_while(|(from, to)| from == to).count();
            if shared > 0
                && let (Some(from), Some(to)) = (module.get(shared), to.get(shared))
            {
                let arrows = below.entry(module[..shared].join("/")).or_default();
                arrows.entry(to.clone()).or_default();
                let known = arrows.entry(from.clone()).or_default();
                known.entry(to.clone()).or_insert_with(|| format!("{} has {path}", module.join("/")));
            }
        }
        below
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for module in self.modules.keys().filter(|module| !module.is_empty()) {
            let from = arrows.entry(module[0].clone()).or_default();
            for path in self.paths(module) {
                if let Some(to) = self.room_of(module, &path).filter(|to| *to != module[0]) {
                    from.entry(to.to_owned()).or_insert_with(|| format!("{} has {path}", module.join("/")));
                }
            }
        }
        arrows
    }
}

/// Reads a module and those that it declares, without what is compiled for tests only.
fn read_module(file: &Path, folder: &Path, path: Vec<String>, modules: &mut BTreeMap<Vec<String>, String>) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let source = without_tests(&text);
    for line in source.lines() {
        let line = line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ").trim_start_matches("pub ");
        let Some(name) = line.strip_prefix("mod ").and_then(|line| line.strip_suffix(';')) else { continue };
        let files: [PathBuf; 2] = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
        // a module with a path of its own is no room
        if let Some(file) = files.iter().find(|file| file.exists()) {
            let path = [path.as_slice(), &[name.to_owned()]].concat();
            read_module(file, &folder.join(name), path, modules);
        }
    }
    modules.insert(path, source);
}

/// A source without comments, and without items for tests.
fn without_tests(text: &str) -> String {
    let (mut kept, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(") && line.contains("test") && !line.contains("any(") {
            // the item: to the line that ends it where it began
            let ends = |line: &str| line.starts_with('}') || (line.ends_with(';') && !line.starts_with([' ', '#']));
            let _ = lines.by_ref().find(|line| ends(line));
            continue;
        }
        let code = line.split("//").next().unwrap_or_default();
        kept.push_str(code.trim_end());
        kept.push('\n');
    }
    kept
}

/// The paths of a `use` tree.
fn leaves(before: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((head, list)) = tree.split_once('{') else {
        let path = tree.split_whitespace().next().unwrap_or_default();
        paths.push(format!("{before}{path}"));
        return;
    };
    let (before, list) = (format!("{before}{}", head.trim()), list.rsplit_once('}').map_or(list, |(list, _)| list));
    let (mut depth, mut start) = (0, 0);
    for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !list[start..at].trim().is_empty() {
                    leaves(&before, &list[start..at], paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Groups of rooms that reach each other.
fn circles(arrows: &Arrows) -> BTreeSet<BTreeSet<String>> {
    let reached = |from: &String| {
        let (mut known, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(room) = next.pop() {
            let imported = arrows.get(room).into_iter().flat_map(BTreeMap::keys);
            next.extend(imported.filter(|room| known.insert((*room).clone())));
        }
        known
    };
    let reach: BTreeMap<&String, BTreeSet<String>> = arrows.keys().map(|room| (room, reached(room))).collect();
    let circle = |room: &&String| {
        let back = |other: &&String| reach.get(other).is_some_and(|known| known.contains(*room));
        reach[*room].iter().filter(back).cloned().collect::<BTreeSet<_>>()
    };
    reach.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let text = "use crate::{\n    a::{self, B},\n    c, // not::this\n};\n\nfn f() -> crate::d::E {\n    super::g::h()\n}\n\n\
                #[cfg(test)]\nmod tests {\n    use crate::z;\n}\n";
    let modules = BTreeMap::from([(vec!["m".to_owned()], without_tests(text))]);
    let this = Crate { modules, rooms: BTreeSet::new(), of_rooms: BTreeMap::new() };
    let paths = this.paths(&["m".to_owned()]);
    for path in ["crate::a::self", "crate::a::B", "crate::c", "crate::d::E", "super::g::h"] {
        assert!(paths.iter().any(|found| found == path), "{path}: {paths:?}");
    }
    assert!(!paths.iter().any(|path| path.contains("not") || path.contains('z')), "{paths:?}");
}

#[test]
fn a_circle_is_found_through_what_a_star_brings_in() {
    let module =
        |path: &[&str], text: &str| (path.iter().map(|part| (*part).to_owned()).collect(), without_tests(text));
    let modules = BTreeMap::from([
        module(&[], "mod cli;\n"),
        module(&["cli"], "mod a;\nmod b;\n\npub use a::*;\npub use b::*;\n"),
        module(&["cli", "a"], "use super::B;\n\npub struct A(B);\n"),
        module(&["cli", "b"], "use super::A;\n\npub(crate) struct B;\n"),
    ]);
    let this = Crate { modules, rooms: BTreeSet::new(), of_rooms: BTreeMap::new() };
    let circle = BTreeSet::from(["a", "b"].map(str::to_owned));
    assert_eq!(circles(&this.arrows_below()["cli"]), BTreeSet::from([circle]));
}
