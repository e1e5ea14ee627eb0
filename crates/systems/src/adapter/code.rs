//! Systems that are a class in a file of the user's: `--system mine.py:Mine`, `mine.ts:Mine`.
//!
//! [`read`] asks its language what the class can do and makes an adapter of it, which carries the code ([`CodeSpec`]): a worker
//! needs no copy of the file, and a run goes on with the code that it began with. `launch` says how the process of such an adapter
//! is started. The runner brings along the other side (`python/bench_coord`, `typescript`): nothing has to be installed.
//! [`libraries`] are classes that come along too.

pub mod libraries;

mod language;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use bench_settings::private;
use serde::Deserialize;
use tracing::warn;

use self::language::{Language, packages, wanted_variables};
use super::{
    managed, mistakes,
    said::excerpt,
    secrets::Secrets,
    spec::{AdapterSpec, CodeSpec, FilterName, SettingSpec, Unit},
    time,
};

/// Most bytes that the modules of a system have together.
const MOST_BYTES: usize = 256 * 1024;
/// Most processes of a class side by side.
const MOST_PROCESSES: u32 = 64;
/// Most modules of a system.
const MOST_FILES: usize = 200;
/// Longest time that importing a file takes.
const LONGEST_IMPORT: Duration = Duration::from_secs(120);
/// Most bytes that are read of what a class says of itself.
const MOST_DESCRIBED: u64 = 1024 * 1024;
/// Most bytes at the end of what a file prints while it is imported that are read.
const MOST_SAID: u64 = 64 * 1024;

/// A file and a class, as `--system` names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassName {
    file: PathBuf,
    /// Empty where the file is to have only one.
    class: String,
}

/// Takes `mine.py:Mine` apart; `None` for what does not name a file of code.
#[must_use]
pub fn split(name: &str) -> Option<ClassName> {
    let (file, class) = if Language::from_file(name).is_some() { (name, "") } else { name.rsplit_once(':')? };
    Language::from_file(file).map(|_| ClassName { file: file.into(), class: class.to_owned() })
}

/// What to write in place of a name that is nearly one of a class; `None` for other names.
#[must_use]
pub fn meant(name: &str) -> Option<String> {
    let (module, class) = name.rsplit_once([':', '.'])?;
    let files = ["py", "ts", "mts", "js", "mjs"].map(|end| format!("{module}.{end}"));
    let file = files.iter().find(|file| Path::new(file).is_file())?;
    Some(format!("a class is named by its file: {file}:{class}"))
}

/// The Python of this machine that classes run with: of the virtual environment that is active, of the one that this program is
/// installed in, `python3` of the `PATH`.
///
/// # Errors
/// There is none.
pub fn python() -> Result<PathBuf, String> {
    Language::Python.program()
}

/// What its language says of a class, or what is wrong with it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Class(Box<Described>),
    Mistake { error: String },
}

/// What a class says of itself, by the names that it uses.
#[derive(Deserialize)]
struct Described {
    name: String,
    class: String,
    description: String,
    durable: bool,
    repeat: bool,
    learns_from_recall: bool,
    unit: Unit,
    batch: u32,
    parallel: Option<u32>,
    processes: Option<u32>,
    settings: BTreeMap<String, SettingSpec>,
    max_k: Option<u32>,
    timeout: Option<String>,
    filters: Vec<String>,
    env: Vec<String>,
    updates: bool,
    withdraws: bool,
    lists: bool,
    files: Vec<String>,
}

impl ClassName {
    /// What gives the class a name of its own, in its language.
    #[must_use]
    pub fn naming(&self) -> &'static str {
        self.language().naming()
    }

    fn language(&self) -> Language {
        self.file.to_str().and_then(Language::from_file).unwrap_or(Language::Python)
    }

    /// Full path of the folder whose modules go with the class: the one that the file lies in, of TypeScript the whole project.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        self.language().place_of(&self.file).map(|(folder, _)| folder)
    }
}

/// The adapter of a class: its file is imported, by the Python or node of this machine, and what it says goes into the adapter.
///
/// # Errors
/// A file or class that does not exist, what is wrong with it, and no Python or node.
pub fn read(named: &ClassName) -> Result<AdapterSpec, String> {
    if !named.file.is_file() {
        let what = if named.file.exists() { "is no file" } else { "there is no such file" };
        return Err(format!("{}: {what}", named.file.display()));
    }
    let (folder, path) = named.language().place_of(&named.file).ok_or("the folder of the file has no path")?;
    let name = path.to_str().ok_or("the name of the file is no text")?;
    made_of(named.language(), &folder, name, &named.class)
}

/// The adapter of a class of a folder, by the path of its file below it.
fn made_of(language: Language, folder: &Path, file: &str, class: &str) -> Result<AdapterSpec, String> {
    // what a file says when it cannot be imported may hold its keys
    let described =
        describe(language, folder, file, class).map_err(|error| Secrets::from_environment().hide(&error))?;
    let files = modules(folder, &described.files)?;
    adapter(described, language, file, files)
}

fn adapter(
    said: Described,
    language: Language,
    file: &str,
    files: BTreeMap<String, String>,
) -> Result<AdapterSpec, String> {
    mistakes::check_name(&said.name)
        .map_err(|e| format!("{e}: give the class one, {} = \"mine\"", language.naming()))?;
    if let Some(timeout) = &said.timeout {
        time::parse(timeout).map_err(|e| format!("{}.timeout: {e}", said.class))?;
    }
    let filters = said.filters.iter().map(|name| {
        serde_json::from_value::<FilterName>(name.as_str().into()).map_err(|_| {
            format!("{}.filters: no filter is '{name}'; there are tags, user, scope, scopes, from, until", said.class)
        })
    });
    let mut spec: AdapterSpec =
        serde_json::from_value(serde_json::json!({ "name": said.name })).map_err(|e| e.to_string())?;
    spec.can.filters = filters.collect::<Result<_, _>>()?;
    spec.command = Some(language.command(format!("{file}:{}", said.class)));
    let file = file.to_owned();
    spec.code = Some(CodeSpec {
        folder: String::new(),
        file,
        class: said.class,
        at_once: said.parallel,
        processes: said.processes,
        settings: BTreeMap::new(),
        files,
    });
    spec.settings = said.settings;
    spec.env = said.env.into_iter().map(|name| (name.clone(), format!("${{env:{name}}}"))).collect();
    spec.description = said.description;
    (spec.unit, spec.timeout) = (said.unit, said.timeout);
    (spec.limits.batch, spec.limits.max_k) = (Some(said.batch), said.max_k);
    (spec.can.updates, spec.can.withdraws) = (said.updates, said.withdraws);
    spec.can.lists = said.lists;
    (spec.can.repeat, spec.can.learns_from_recall) = (said.repeat, said.learns_from_recall);
    spec.can.survives_restart = said.durable;
    Ok(spec)
}

/// Imports the file and asks what its class can do. What it prints goes nowhere, unless it fails.
fn describe(language: Language, folder: &Path, file: &str, class: &str) -> Result<Described, String> {
    let library = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
    put(library.path(), language.library().iter().copied())
        .map_err(|e| format!("{}: {e}", library.path().display()))?;
    let output = || tempfile::tempfile().map_err(|e| format!("no temporary file: {e}"));
    let (mut said, mut log) = (output()?, output()?);
    let copy = |file: &fs::File| file.try_clone().map_err(|e| e.to_string());
    let program = language.program()?;
    let words = ["describe".into(), folder.into(), file.into(), class.into()].to_vec();
    let (started, arguments) = language.started(program.clone(), library.path(), words);
    let mut command = Command::new(&started);
    if language == Language::Node {
        // Python begins anew by itself with the variables that the class names
        let source = fs::read_to_string(folder.join(file)).unwrap_or_default();
        let wanted = wanted_variables(&source, class);
        let own = wanted.into_iter().chain(["HOME".to_owned()]).filter_map(|name| {
            let value = std::env::var_os(&name)?;
            Some((name, value))
        });
        command.env_clear().envs(managed::passed_on()).envs(own);
    }
    let mut child = command
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .stdout(copy(&said)?)
        .stderr(copy(&log)?)
        .spawn()
        .map_err(|e| format!("{} cannot be started: {e}", started.display()))?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) => break status,
            None if begun.elapsed() > LONGEST_IMPORT => {
                let _ = child.kill();
                let _ = child.wait();
                let within = time::show(LONGEST_IMPORT);
                return Err(format!(
                    "{file} was not imported within {within}: do slow work when the object is made, not at the top"
                ));
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    match serde_json::from_str(end_of(&mut said, MOST_DESCRIBED).lines().last().unwrap_or_default()) {
        Ok(Said::Class(described)) => Ok(*described),
        Ok(Said::Mistake { error }) => Err(error),
        Err(_) => {
            let log = end_of(&mut log, MOST_SAID);
            let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            Err(format!("{} ended while it imported {file} ({status}): {}", program.display(), excerpt(last)))
        }
    }
}

/// The last bytes of a file as text; nothing where it cannot be read.
fn end_of(file: &mut fs::File, most: u64) -> String {
    let mut bytes = Vec::new();
    let length = file.metadata().map_or(0, |about| about.len());
    let found = file.seek(SeekFrom::Start(length.saturating_sub(most)));
    let read = found.and_then(|_| file.take(most).read_to_end(&mut bytes));
    read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The texts of the modules that a file consists of.
fn modules(folder: &Path, paths: &[String]) -> Result<BTreeMap<String, String>, String> {
    let mut files = BTreeMap::new();
    for path in paths {
        let text = fs::read_to_string(folder.join(path)).map_err(|e| format!("{path}: {e}"))?;
        files.insert(path.clone(), text);
    }
    let bytes: usize = files.values().map(String::len).sum();
    if bytes > MOST_BYTES || files.len() > MOST_FILES {
        return Err(format!(
            "it imports {} modules with {bytes} bytes from its own folder, and they go with the run: at most {MOST_FILES} with \
             {MOST_BYTES} bytes; install what is a package of its own",
            files.len()
        ));
    }
    Ok(files)
}

/// A process that serves a class: program and arguments.
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

/// What of a class cannot be started.
///
/// # Errors
/// Its file is none of those that go with the run: what is started would be something else. More processes than there may be.
pub(super) fn check(code: &CodeSpec) -> Result<(), String> {
    if code.processes.is_some_and(|processes| !(1..=MOST_PROCESSES).contains(&processes)) {
        return Err(format!("code.processes: from 1 to {MOST_PROCESSES}"));
    }
    if code.files.contains_key(&code.file) {
        Ok(())
    } else {
        Err(format!("code.file: '{}' is not among code.files", code.file))
    }
}

/// How the process of a class is started: with the files of the folder in which its user has named it, while they say what the run
/// carries, else with copies in the run's folder. Its process is told which files these are: what has come to lie beside them is no
/// part of the class.
///
/// # Errors
/// There is no Python or node; what the disk says.
pub(super) fn launch(code: &CodeSpec, folder: &Path, own: Option<&Path>) -> Result<Launch, String> {
    let language = Language::from_file(&code.file).unwrap_or(Language::Python);
    let program = language.program()?;
    let at = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let library = folder.join("library");
    let files = language.library();
    clear(&library, &|path| files.iter().any(|(name, _)| library.join(name) == path)).map_err(|e| at(&library, e))?;
    put(&library, files.iter().copied()).map_err(|e| at(&library, e))?;
    let mut found_in = None;
    let from = match own.filter(|own| holds(own, &code.files)) {
        Some(own) => own.to_owned(),
        None => {
            if own.is_some() {
                warn!(
                    "{} is not what it was when the run was submitted: the run goes on with the code that it began with",
                    code.file
                );
            }
            let copies = folder.join("code");
            clear(&copies, &|path| code.files.keys().any(|name| copies.join(name) == path))
                .map_err(|e| at(&copies, e))?;
            put(&copies, &code.files).map_err(|e| at(&copies, e))?;
            found_in = Some(packages(own));
            copies
        }
    };
    let settings = serde_json::to_string(&code.settings).map_err(|e| e.to_string())?;
    let recorded = serde_json::to_string(&code.files.keys().collect::<Vec<_>>()).map_err(|e| e.to_string())?;
    let further = match language {
        Language::Python => [code.at_once.unwrap_or(0).to_string(), settings, recorded],
        Language::Node => [settings, serde_json::to_string(&found_in).map_err(|e| e.to_string())?, recorded],
    };
    let words = ["serve".into(), from.into(), code.file.clone().into(), code.class.clone().into()];
    let words = words.into_iter().chain(further.map(OsString::from)).collect();
    let (program, arguments) = language.started(program, &library, words);
    Ok(Launch { program, arguments })
}

/// Whether a folder has these files as they are.
fn holds(folder: &Path, files: &BTreeMap<String, String>) -> bool {
    files.iter().all(|(path, text)| {
        let path = folder.join(path);
        fs::metadata(&path).is_ok_and(|about| about.is_file() && about.len() == text.len() as u64)
            && fs::read(&path).is_ok_and(|there| there == text.as_bytes())
    })
}

/// Leaves nothing that could be imported in a folder but what is kept: files that came with a home would take the place of
/// modules of Python. Links are removed, and not followed.
fn clear(folder: &Path, keeps: &dyn Fn(&Path) -> bool) -> std::io::Result<()> {
    let is_gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    match fs::symlink_metadata(folder) {
        Err(error) if is_gone(&error) => return Ok(()),
        Ok(about) if !about.is_dir() => return fs::remove_file(folder),
        _ => {}
    }
    for entry in fs::read_dir(folder)? {
        let (entry, path) = entry.map(|entry| (entry.file_type(), entry.path()))?;
        let kind = entry?;
        // another process may be writing what it is about to rename
        let stays = kind.is_file() && (keeps(&path) || path.extension().is_some_and(|end| end == "new"));
        if kind.is_dir() {
            clear(&path, keeps)?;
        } else if !stays {
            fs::remove_file(&path).or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })?;
        }
    }
    Ok(())
}

/// Writes files below a private folder, those that are there already excepted: another process may be reading them.
fn put<P: AsRef<str>, T: AsRef<str>>(folder: &Path, files: impl IntoIterator<Item = (P, T)>) -> std::io::Result<()> {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    for (path, text) in files {
        let (path, text) = (path.as_ref(), text.as_ref().as_bytes());
        // the paths come with the run
        if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(std::io::Error::other(format!("'{path}' leads out of the folder")));
        }
        let path = folder.join(path);
        if fs::read(&path).is_ok_and(|there| there == text) {
            continue;
        }
        if let Some(above) = path.parent() {
            private::create_folder(above)?;
        }
        // processes of one class are started at the same moment
        let write = WRITES.fetch_add(1, Ordering::Relaxed);
        let new = path.with_extension(format!("{}-{write}.new", std::process::id()));
        private::write(&new, text)?;
        fs::rename(&new, &path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(file: &str, path: &str) -> CodeSpec {
        let files = BTreeMap::from([(path.to_owned(), "pass".to_owned())]);
        CodeSpec {
            folder: "/tmp".to_owned(),
            file: file.to_owned(),
            class: "Mine".to_owned(),
            at_once: None,
            processes: None,
            settings: BTreeMap::new(),
            files,
        }
    }

    #[test]
    fn what_a_class_says_of_itself_is_read_to_its_end_and_of_a_log_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mine.py");
        let values = "typing.Literal[tuple(f'{n:04000}' for n in range(30))]";
        let methods = "    def retain(self, bank, items): pass\n    def recall(self, bank, query, k): return []\n";
        let text = format!(
            "import typing\nclass Mine:\n    def __init__(self, kind: {values} = f'{{1:04000}}'): pass\n{methods}"
        );
        fs::write(&path, &text).expect("is written");
        let named = |path: &Path| split(path.to_str().expect("is a text")).expect("is a file of code");
        let spec = read(&named(&path)).expect("is described");
        assert_eq!(spec.settings["kind"].values.len(), 30);
        let can = |spec: &AdapterSpec| crate::adapter::process::capabilities(spec).expect("is complete");
        assert!(can(&spec).one_at_a_time, "its methods are not async");
        let mut several = spec;
        several.code.as_mut().expect("is a class").processes = Some(2);
        assert!(!can(&several).one_at_a_time, "each of its processes does something");

        fs::write(&path, "import os\nos.write(2, b'much\\n' * 20000 + b'the reason\\n')\nos._exit(3)\n")
            .expect("is written");
        let refused = read(&named(&path)).expect_err("has ended");
        assert!(refused.ends_with(": the reason"), "{refused}");
    }

    #[test]
    fn what_is_started_is_among_the_files_that_go_with_the_run() {
        assert!(check(&code("mine.py", "mine.py")).is_ok());
        for other in ["other.py", "/tmp/mine.py", "../mine.py", ""] {
            assert!(check(&code(other, "mine.py")).is_err(), "{other}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        for wrong in ["/tmp/mine.py", "../mine.py", "a/../mine.py", "./mine.py"] {
            assert!(launch(&code(wrong, wrong), folder.path(), None).is_err(), "{wrong} leads out of the folder");
        }
    }

    #[test]
    fn a_process_is_told_which_files_of_a_folder_are_those_of_its_class() {
        let (run, own) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        for file in ["mine.py", "colorsys.py"] {
            fs::write(own.path().join(file), "pass").expect("is written");
        }
        for from in [Some(own.path()), None] {
            let started = launch(&code("mine.py", "mine.py"), run.path(), from).expect("Python is there");
            assert_eq!(started.arguments.last(), Some(&OsString::from(r#"["mine.py"]"#)));
        }
    }

    #[test]
    fn what_lay_in_the_folders_of_a_run_is_not_imported_and_links_in_them_lead_nowhere() {
        let (run, elsewhere) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let at = |path: &str| run.path().join(path);
        let victim = elsewhere.path().join("mine.py");
        fs::write(&victim, "precious").expect("is written");
        for folder in ["code/json", "library"] {
            fs::create_dir_all(at(folder)).expect("is made");
        }
        let planted = ["code/colorsys.py", "code/json/__init__.py", "library/asyncio.py", "library/x.so"];
        for path in planted {
            fs::write(at(path), "raise SystemExit").expect("is written");
        }
        std::os::unix::fs::symlink(elsewhere.path(), at("code/parts")).expect("is linked");
        let code = code("parts/mine.py", "parts/mine.py");
        launch(&code, run.path(), None).expect("Python is there");
        assert!(planted.iter().all(|path| !at(path).exists()));
        assert_eq!(fs::read_to_string(&victim).expect("is there"), "precious");
        assert_eq!(fs::read_to_string(at("code/parts/mine.py")).expect("is a copy"), "pass");
        fs::remove_dir_all(at("code")).expect("is removed");
        std::os::unix::fs::symlink(elsewhere.path(), at("code")).expect("is linked");
        launch(&code, run.path(), None).expect("Python is there");
        assert!(victim.exists() && !elsewhere.path().join("parts").exists());
    }
}
