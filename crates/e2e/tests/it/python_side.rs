//! The Python package: runs from scripts, cells and pytest, by every Python of this machine that it is for.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use bench_testkit::{
    bench::{Bench, Done, binary, signal, wait},
    process::wait_until,
    python::{self, Packages},
};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(120);

/// What builds and tests the package.
const PYTEST: Packages =
    Packages { name: "pytest", with_dependencies: &["pytest==8.4.2", "flit-core==3.12.0"], alone: &[] };

/// A class with settings, which keeps its memories in the object.
const MINE: &str = "
import bench_coord

class Mine(bench_coord.System):
    def __init__(self, best_first: bool = True):
        self.banks, self.best_first = {}, best_first

    def retain(self, bank, items):
        self.banks.setdefault(bank, []).extend(items)

    def recall(self, bank, query, k):
        words = set(query.lower().split())
        overlap = lambda item: len(words & set(item.text.lower().split()))
        return sorted(self.banks[bank], key=overlap, reverse=self.best_first)[:k]
";

/// The folder of the package's sources.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python")
}

/// `python3`, and of the Pythons that pyenv has here the oldest and the newest that the package is for.
fn pythons() -> Vec<PathBuf> {
    let roots = [std::env::var("PYENV_ROOT").ok(), std::env::var("HOME").ok().map(|home| format!("{home}/.pyenv"))];
    let versions = roots.into_iter().flatten().map(|root| Path::new(&root).join("versions"));
    let of_pyenv =
        versions.flat_map(fs::read_dir).flatten().flatten().map(|version| version.path().join("bin/python3"));
    let mut found: Vec<(u32, PathBuf)> =
        of_pyenv.filter_map(|python| Some((minor(&python).filter(|minor| *minor >= 9)?, python))).collect();
    found.sort();
    let ends = [found.first(), found.last()].into_iter().flatten().map(|(_, python)| python.clone());
    let mut pythons: Vec<_> = ends.chain(["python3".into()]).collect();
    pythons.dedup();
    pythons
}

/// The second number of the version of a Python 3.
fn minor(python: &Path) -> Option<u32> {
    let asked = Command::new(python).args(["-c", "import sys; print(sys.version_info[1])"]).output().ok()?;
    String::from_utf8_lossy(&asked.stdout).trim().parse().ok()
}

/// `python` with arguments in the folder of a bench, as a person would start it.
fn command(bench: &Bench, python: &Path, modules: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(python);
    command
        .args(arguments)
        .current_dir(bench.path())
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("USER", "tester"), ("NO_COLOR", "1"), ("PYTHONDONTWRITEBYTECODE", "1")])
        .env("HOME", bench.home())
        .env("PYTHONPATH", modules)
        .env("BENCH_COORD", binary("bench-coord"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a script to its end.
fn script(bench: &Bench, python: &Path, text: &str) -> Done {
    fs::write(bench.path().join("script.py"), text).expect("is written");
    wait(command(bench, python, &sources(), &["script.py"]).spawn().expect("Python starts"))
}

fn put(bench: &Bench, name: &str, text: &str) {
    fs::write(bench.path().join(name), text).expect("is written");
}

#[test]
fn a_script_runs_compares_and_looks_at_questions_with_every_python() {
    let script_text = "
import json, os, sys
import bench_coord
from mine import Mine

if __name__ == '__main__':
    size = dict(dataset='locomo-sim', preset='quick', latency_probe='off')
    own = f'Python {sys.version.split()[0]}'
    seen = []
    better = bench_coord.run(system=Mine, name='better', display=seen.append, **size)
    worse = bench_coord.run(system='mine.py:Mine', set={'mine.best_first': False}, check=False, **size)
    compared = worse.compare(better, check=False)
    gate = worse.gate(better)
    question = better.questions()[0]
    assert better.show(question.question_id).question == question['question']
    assert bench_coord.load('better').summary == better.summary
    assert better.report().startswith('better'), better.report()
    page = better._repr_html_()
    assert page.count('data:image/svg+xml') == len(better.pictures) >= 2 and '<script' not in page
    assert os.path.getsize(better.page) > 10000
    group = bench_coord.run(system='bm25', repeats=2, **size)
    assert [one.score for one in group.runs] == [group.score] * 2 and group.interval[0] < group.score, group
    assert group.report().startswith(group.id), group.report()
    estimate = bench_coord.estimate(system=Mine, **size)
    print(json.dumps(dict(
        score=better.score, low=better.interval[0], verdict=better.verdict, questions=len(better.questions()),
        states=sorted({one['state'] for one in seen}), worse=worse.score, difference=compared.paired.difference,
        passed=gate.passed, gate=str(gate), estimated=estimate.questions, own=own, version=better.summary.system_stats.version,
    )))
";
    for python in pythons() {
        let bench = Bench::new();
        put(&bench, "mine.py", MINE);
        let done = script(&bench, &python, script_text).expect_code(0);
        let said: Value = done.json();
        assert_eq!(said["verdict"], "VALID", "{python:?}: {said}");
        assert_eq!(said["questions"], said["estimated"], "{python:?}: {said}");
        assert!(said["score"].as_f64() > said["worse"].as_f64(), "{python:?}: {said}");
        assert!(said["low"].as_f64() < said["score"].as_f64(), "{python:?}: {said}");
        assert!(said["difference"].as_f64().is_some_and(|points| points < 0.0), "{python:?}: {said}");
        assert_eq!(said["passed"], false, "{python:?}: {said}");
        assert!(said["gate"].as_str().is_some_and(|gate| gate.contains("lost ")), "flips are listed: {said}");
        assert!(said["states"].as_array().is_some_and(|states| states.contains(&"running".into())), "{said}");
    }
}

#[test]
fn what_the_program_refuses_is_an_exception_with_its_words_and_code() {
    let bench = Bench::new();
    put(&bench, "mine.py", MINE);
    put(&bench, "runs_itself.py", &format!("{MINE}\nbench_coord.run(dataset='locomo-sim', system=Mine)\n"));
    let said = script(
        &bench,
        Path::new("python3"),
        "
import bench_coord, json, os, sys
from mine import Mine
size = dict(dataset='locomo-sim', sample=1, max_banks=2, latency_probe='off', display='none')
said = []
for more in [
    dict(preset='tiny'), dict(datset='x'), dict(system='mine.py:Nine'), dict(floor=0.99), dict(floor=0.98),
    dict(system=Mine, set={'mine.best_fist': False}), dict(system=Mine, set={'mine.best_first': 'maybe'}),
    dict(system='bm25', set={'mine.best_first': False}), dict(system='runs_itself.py:Mine'), dict(system=Mine()),
]:
    try:
        bench_coord.run(**{**size, **more})
        said.append(None)
    except bench_coord.Error as error:
        run = error.result
        said.append([type(error).__name__, error.exit_code, error.message, run and run.verdict, error.run])
os.environ['BENCH_COORD'] = '/nowhere/bench-coord'
try:
    bench_coord.load()
except bench_coord.Unavailable as error:
    said.append(str(error))
print(json.dumps(said))
",
    )
    .expect_code(0)
    .json();
    for (at, kind, code, words) in [
        (0, "UsageError", 2, "expected one of quick, fair, fair-2, full"),
        (1, "UsageError", 2, "unexpected argument '--datset'"),
        (2, "UsageError", 2, "mine.py has no class 'Nine'"),
        (3, "Regression", 1, "is below 99.00 %"),
        (4, "Regression", 1, "is below 98.00 %"),
        (5, "UsageError", 2, "mine has no setting 'best_fist', it has best_first"),
        (6, "UsageError", 2, "setting mine.best_first must be true or false, not \"maybe\""),
        (7, "UsageError", 2, "mine.best_first"),
        (8, "UsageError", 2, "put it below `if __name__ == \"__main__\":`"),
        (9, "UsageError", 2, "system is an object of Mine: give the class itself"),
    ] {
        let error = &said[at];
        assert_eq!((error[0].as_str(), error[1].as_i64()), (Some(kind), Some(code)), "{at}: {error}");
        assert!(error[2].as_str().is_some_and(|message| message.contains(words)), "{at}: {error}");
    }
    assert_eq!((&said[3][3], &said[4][3]), (&"VALID".into(), &"VALID".into()), "{said}");
    assert!(said[3][4].is_string() && said[0][4].is_null(), "the run is named where there is one: {said}");
    assert!(said[10].as_str().is_some_and(|said| said.contains("BENCH_COORD is /nowhere/bench-coord")), "{said}");
}

#[test]
fn ctrl_c_stops_a_script_so_that_the_run_goes_on_later() {
    // it waits for a word behind the first few questions, however slow the machine is
    let waits = "        import os, time
        self.asked = getattr(self, 'asked', 0) + 1
        while self.asked > 45 and not os.path.exists('go'):
            time.sleep(0.02)
        words = set";
    let slow = MINE.replace("        words = set", waits);
    let text = "
import bench_coord, json, signal
# what a shell has begun in the background hears no Ctrl-C otherwise
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    # two at a time: when these are finished there is something left to stop
    run = bench_coord.run(dataset='locomo-sim', preset='quick', system='mine.py:Mine', latency_probe='off', concurrency=2)
    print(json.dumps(dict(digest=run.summary.result_digest)))
except bench_coord.Interrupted as stopped:
    assert isinstance(stopped, KeyboardInterrupt)
    resumed = bench_coord.resume(stopped.run, display='none')
    print(json.dumps(dict(said=str(stopped), digest=resumed.summary.result_digest)))
";
    let whole = Bench::new();
    put(&whole, "mine.py", &slow);
    put(&whole, "go", "");
    let expected = script(&whole, Path::new("python3"), text).expect_code(0).json()["digest"].clone();

    let bench = Bench::new();
    put(&bench, "mine.py", &slow);
    put(&bench, "script.py", text);
    let python = command(&bench, Path::new("python3"), &sources(), &["script.py"]).spawn().expect("Python starts");
    wait_until("some questions are done", PATIENCE, || {
        let status = bench.run(["status", "latest", "--json"]).stdout;
        let status: Option<Value> = serde_json::from_str(&status).ok();
        status.is_some_and(|status| status["progress"]["ended"].as_u64().is_some_and(|ended| ended >= 1))
    });
    signal(&python, "INT");
    // what is in flight is finished, and is let go only when the signal has surely arrived
    std::thread::sleep(std::time::Duration::from_secs(3));
    put(&bench, "go", "");
    let said = wait(python).expect_code(0).json();
    assert!(said["said"].as_str().is_some_and(|said| said.starts_with("stopped; bench_coord.resume(\"")), "{said}");
    assert_eq!(said["digest"], expected);
}

/// Cells of a prompt: their text is known to Python, no file has it.
#[test]
fn a_class_that_was_typed_in_is_measured_with_what_it_uses() {
    let bench = Bench::new();
    put(&bench, "words.py", "def words_of(text):\n    return set(text.lower().split())\n");
    let done = script(
        &bench,
        Path::new("python3"),
        r#"
import json, linecache, sys, types
import bench_coord

def cell(number, text):
    name = f'<cell {number}>'
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, 'exec'), prompt.__dict__)

prompt = types.ModuleType('prompt')
sys.modules['prompt'] = prompt
cell(1, 'import re as regex\nfrom heapq import nlargest\nimport words\nMOST = {"hits": 50}\nlock = __import__("threading").Lock()')
cell(2, 'def overlap(query, item):\n    return len(words.words_of(query) & words.words_of(regex.sub("_", " ", item.text)))')
cell(3, 'from __future__ import annotations\nclass Base:\n    def retain(self, bank, items: Unknown):\n        self.banks.setdefault(bank, []).extend(items)')
cell(4, '''class Typed(Base):
    version = "1"
    def __init__(self, scale: float = 1.0):
        self.banks = {}
        self.lock = self.overlap = None
    def recall(self, bank, query, k):
        lock = overlap
        return nlargest(min(k, MOST["hits"]), self.banks[bank], key=lambda item: lock(query, item))''')
cell(5, 'class Holds(Typed):\n    def recall(self, bank, query, k):\n        with lock:\n            return []')
size = dict(dataset='locomo-sim', sample=1, max_banks=2, latency_probe='off', display='none')
run = bench_coord.run(system=prompt.Typed, **size)
try:
    bench_coord.run(system=prompt.Holds, **size)
except bench_coord.UsageError as error:
    print(json.dumps([run.score, run.summary.system_stats.version, str(error)]))
"#,
    )
    .expect_code(0)
    .json();
    assert!(done[0].as_f64().is_some_and(|score| score > 0.0), "{done}");
    assert!(done[1].as_str().is_some_and(|version| version.starts_with("1, Python 3.")), "{done}");
    assert!(
        done[2].as_str().is_some_and(|said| said.contains("the class uses lock, a lock of the notebook")),
        "{done}"
    );
}

/// The package as pip installs it: its files, its entry point, and the gate as a test.
#[test]
fn a_gate_is_a_test_of_pytest_and_shows_what_flipped() {
    let python = python::python(PYTEST);
    let bench = Bench::new();
    let package = bench.path().join("package");
    let installed = Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target"])
        .args([&package, &sources()])
        .output()
        .expect("pip runs");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    put(&bench, "mine.py", MINE);
    put(
        &bench,
        "test_memory.py",
        "
import pytest
from mine import Mine

size = dict(dataset='locomo-sim', preset='quick', latency_probe='off')

@pytest.mark.bench_gate(system='bm25', floor=0.2, name='before', **size)
def test_first(bench_run):
    assert bench_run.summary.outcomes.coverage == 1

@pytest.mark.bench_gate(system='bm25', baseline='before', allow_inconclusive=True, **size)
def test_the_same():
    pass

@pytest.mark.bench_gate(system=Mine, baseline='before', **size)
def test_worse():
    raise AssertionError('its gate comes first')

@pytest.mark.bench_gate(system='bm25', baseline='nothing', name='never', **size)
def test_without_baseline():
    pass
",
    );
    let arguments = ["-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "--junit-xml", "tests.xml"];
    let done = wait(command(&bench, &python, &package, &arguments).spawn().expect("pytest starts")).expect_code(1);
    let said = &done.stdout;
    assert!(said.contains("1 failed, 2 passed") && said.contains("1 error"), "{said}");
    for words in [
        "FAIL: ",
        "overall (critical): regression, -",
        "  lost sim-",
        "expected 'Cafe Thirsty Raven', before 'Cafe Thirsty Raven', now ",
        "there is no run to test (exit 2): no run 'nothing' in",
        "test_memory.py::test_the_same: INCONCLUSIVE, <bench_coord.Run ",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("its gate comes first"), "{said}");
    let junit = fs::read_to_string(bench.path().join("tests.xml")).expect("is written");
    assert!(junit.contains("<property name=\"bench_coord_score\" value=\"0."), "{junit}");
    let list = bench.run(["list", "--json"]).expect_code(0).stdout;
    assert!(!list.contains("never"), "a baseline that is not there is found before the run: {list}");
}
