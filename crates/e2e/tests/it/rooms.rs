//! The rooms of a crate, the modules beside its root, import each other in one direction: a room that is read needs only those
//! below it. Reads `use` and other paths through `crate` and `super` in the source of every crate; tests are left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::arrows::workspace;

/// Room → rooms that it imports, each with a path that does it.
type Arrows = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn no_import_circle_between_the_rooms_of_a_crate() {
    let mut found = Vec::new();
    for package in workspace() {
        let name = package["name"].as_str().expect("a name");
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let src = manifest.with_file_name("src");
        let Some(root) = ["lib.rs", "main.rs"].map(|name| src.join(name)).into_iter().find(|path| path.exists()) else {
            continue;
        };
        let arrows = Crate::read(&root).arrows();
        for circle in circles(&arrows) {
            let within: Vec<String> = circle
                .iter()
                .flat_map(|from| arrows[from].iter().map(move |(to, path)| (from, to, path)))
                .filter(|(_, to, _)| circle.contains(*to))
                .map(|(from, to, path)| format!("{from} imports {to}: {path}"))
                .collect();
            found.push((name.to_owned(), circle, within));
        }
    }
    assert!(found.is_empty(), "rooms that import each other in a circle: {found:#?}");
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
            let names = if *name == "*" { this.public_names(room) } else { vec![(*name).to_owned()] };
            this.of_rooms.extend(names.into_iter().map(|name| (name, (*room).to_owned())));
        }
        this
    }

    /// Names of what a room makes public, wherever in it.
    fn public_names(&self, room: &str) -> Vec<String> {
        let sources = self.modules.iter().filter(|(path, _)| path.first().is_some_and(|first| first == room));
        let lines = sources.flat_map(|(_, source)| source.lines());
        let words = lines.filter_map(|line| line.strip_prefix("pub ")).map(|line| {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
            words.find(|word| {
                !matches!(*word, "async" | "const" | "enum" | "fn" | "static" | "struct" | "trait" | "type")
            })
        });
        words.flatten().map(str::to_owned).collect()
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
