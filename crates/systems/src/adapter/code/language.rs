//! Who runs the code of a file, and what the runner brings along for it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// What the runner brings along for classes of Python, by paths below a folder that Python is told to run.
const PYTHON: &[(&str, &str)] = &[
    ("bench_coord/__init__.py", include_str!("../../../../../python/bench_coord/__init__.py")),
    ("bench_coord/_process.py", include_str!("../../../../../python/bench_coord/_process.py")),
    ("__main__.py", MAIN),
];

/// The same for TypeScript and JavaScript.
const NODE: &[(&str, &str)] = &[
    ("index.mjs", include_str!("../../../../../typescript/index.mjs")),
    ("hooks.mjs", include_str!("../../../../../typescript/hooks.mjs")),
    ("watch.cjs", include_str!("../../../../../typescript/watch.cjs")),
    (NODE_MAIN, include_str!("../../../../../typescript/process.mjs")),
];

/// What node is told to run.
const NODE_MAIN: &str = "process.mjs";

/// What Python runs; releases that are too old for the rest understand this much.
const MAIN: &str = "import sys

if sys.version_info < (3, 9):
    sys.exit('Python 3.9 or newer is needed, %s is %s' % (sys.executable, sys.version.split()[0]))

from bench_coord._process import main

main(sys.argv[1:])
";

/// Node cannot move its own standard output away from what a class prints: replies and requests get descriptors of their own
/// before it begins.
const APART: &str = "exec \"$@\" 3>&1 4<&0 1>&2 0</dev/null";

/// A language that classes are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// Run by the virtual environment that is active, else by `python3`.
    Python,
    /// TypeScript and JavaScript, run by node.
    Node,
}

impl Language {
    /// That of a file, by its name; `None` for what is no file of code.
    pub(super) fn from_file(file: &str) -> Option<Self> {
        let ends = |ends: &[&str]| ends.iter().any(|end| file.ends_with(end));
        if ends(&[".py"]) { Some(Self::Python) } else { ends(&[".ts", ".mts", ".js", ".mjs"]).then_some(Self::Node) }
    }

    /// What gives a class a name of its own.
    pub(super) fn naming(self) -> &'static str {
        match self {
            Self::Python => "name",
            Self::Node => "static name",
        }
    }

    /// What the runner brings along.
    pub(super) fn library(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Python => PYTHON,
            Self::Node => NODE,
        }
    }

    /// How its process is called in an adapter.
    pub(super) fn command(self, class: String) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Python => &["python3", "-m", "bench_coord"],
            Self::Node => &["node", "bench-coord"],
        };
        words.iter().map(|word| (*word).to_owned()).chain([class]).collect()
    }

    /// The program of this machine that runs it.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn program(self) -> Result<PathBuf, String> {
        match self {
            Self::Python => python(),
            Self::Node => on_path("node").ok_or_else(|| {
                "there is no node: PATH has none (22.18 or newer reads TypeScript, 20.6 or newer JavaScript)".to_owned()
            }),
        }
    }

    /// What is started to run what the runner brings along in a folder, with words of its own.
    pub(super) fn started(self, program: PathBuf, library: &Path, words: Vec<OsString>) -> (PathBuf, Vec<OsString>) {
        match self {
            Self::Python => (program, [vec![library.into()], words].concat()),
            Self::Node => {
                let (verb, rest) = words.split_first().map_or((None, &[][..]), |(verb, rest)| (Some(verb), rest));
                let runner = OsString::from(std::process::id().to_string());
                let begin = ["-c", APART, "sh"].map(OsString::from);
                let node = [program.into(), library.join(NODE_MAIN).into()];
                let own = verb.cloned().into_iter().chain([runner]).chain(rest.iter().cloned());
                ("/bin/sh".into(), begin.into_iter().chain(node).chain(own).collect())
            }
        }
    }

    /// The folder of a person's that goes with a file, whose modules are part of the system, and the path of the file below it.
    pub(super) fn place_of(self, file: &Path) -> Option<(PathBuf, PathBuf)> {
        let (lies, name) = (std::path::absolute(file).ok()?.parent()?.to_owned(), file.file_name()?);
        if self == Self::Python {
            return Some((lies, name.into()));
        }
        // without `..`, which would make other folders its ancestors
        let lies = lies.canonicalize().unwrap_or(lies);
        let project = lies.ancestors().find(|above| above.join("package.json").is_file());
        let folder = project.unwrap_or(&lies).to_owned();
        let path = lies.strip_prefix(&folder).ok()?.join(name);
        Some((folder, path))
    }
}

/// The Python of this machine: of the virtual environment that is active, of the one that this program is installed in, `python3`
/// of the `PATH`.
fn python() -> Result<PathBuf, String> {
    if let Some(active) = std::env::var_os("VIRTUAL_ENV").filter(|active| !active.is_empty()) {
        let python = Path::new(&active).join("bin/python");
        return if python.exists() {
            Ok(python)
        } else {
            Err(format!("VIRTUAL_ENV is {}, where there is no bin/python: activate another one", active.display()))
        };
    }
    let own = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    if let Some(bin) = own.filter(|bin| bin.parent().is_some_and(|above| above.join("pyvenv.cfg").is_file())) {
        return Ok(bin.join("python"));
    }
    on_path("python3").ok_or_else(|| {
        "there is no Python: no virtual environment is active, and PATH has no python3 (3.9 or newer)".to_owned()
    })
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|program| program.is_file())
}

/// Folders whose `node_modules` a class that runs from copies finds its packages in: that in which its person has named it, else
/// those that `NODE_PATH` names. What lies around the copies came with a home.
pub(super) fn packages(own: Option<&Path>) -> Vec<PathBuf> {
    if let Some(own) = own {
        return vec![own.to_owned()];
    }
    let named = std::env::var_os("NODE_PATH").unwrap_or_default();
    let folders = std::env::split_paths(&named).filter(|path| path.is_absolute() && path.ends_with("node_modules"));
    folders.filter_map(|path| path.parent().map(Path::to_owned)).collect()
}

/// The variables that a class of TypeScript names in `static env`, read without running it: whatever is imported could read those
/// that its process was started with. Texts of the first list of that name in the class are taken, or in the file where no class
/// is given.
pub(super) fn wanted_variables(source: &str, class: &str) -> Vec<String> {
    let own = source.match_indices("class ").map(|(at, word)| &source[at + word.len()..]).find(|rest| {
        let name: String = rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || "_$".contains(*c)).collect();
        name == class
    });
    let text = if class.is_empty() { source } else { own.unwrap_or_default() };
    let list = text.match_indices("static").find_map(|(at, word)| listed(&text[at + word.len()..]));
    let inside = list.unwrap_or_default();
    let quotes = ['"', '\'', '`'];
    let texts = inside.split(',').filter_map(|one| {
        let one = one.trim();
        one.strip_prefix(quotes)?.strip_suffix(quotes)
    });
    let is_name = |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    texts.filter(is_name).map(str::to_owned).collect()
}

/// What stands between the brackets of ` readonly env: string[] = [ … ]`.
fn listed(rest: &str) -> Option<&str> {
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("readonly").unwrap_or(rest).trim_start().strip_prefix("env")?;
    let rest = rest.strip_prefix(|c: char| c.is_whitespace() || c == ':' || c == '=').map(|_| rest)?;
    let (kind, value) = rest.split_once('=')?;
    if kind.contains(['{', '}', ';', '(']) {
        return None;
    }
    value.trim_start().strip_prefix('[')?.split_once(']').map(|(inside, _)| inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_a_class_are_read_without_running_it() {
        let source = "export class Other { static env = ['A'] }\nexport class Mine extends System {\n  static environment = ['B'];\n  \
            static readonly env: readonly string[] = [\n    \"C_1\", 'D',\n  ];\n}";
        for (class, names) in
            [("Mine", &["C_1", "D"][..]), ("Other", &["A"]), ("", &["A"]), ("None", &[]), ("Min", &[])]
        {
            assert_eq!(wanted_variables(source, class), names, "{class}");
        }
        for nothing in
            ["class M { static env = NAMES }", "class M { env = ['A'] }", "class M {}", "class M { static env"]
        {
            assert!(wanted_variables(nothing, "M").is_empty(), "{nothing}");
        }
    }

    #[test]
    fn a_class_of_a_project_goes_with_its_whole_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("is there");
        std::fs::create_dir_all(root.join("src/systems")).expect("is made");
        let file = root.join("src/../src/systems/mine.ts");
        let place = |folder: PathBuf, path: &str| Some((folder, PathBuf::from(path)));
        assert_eq!(Language::Node.place_of(&file), place(root.join("src/systems"), "mine.ts"));
        std::fs::write(root.join("package.json"), "{}").expect("is written");
        assert_eq!(Language::Node.place_of(&file), place(root.clone(), "src/systems/mine.ts"));
        let file = root.join("src/systems/mine.py");
        assert_eq!(Language::Python.place_of(&file), place(root.join("src/systems"), "mine.py"));
    }
}
