//! Classes of Python: what they have that others do not.

use std::{fs, path::Path, process::Command};

use bench_testkit::bench::{Bench, submit_sim};

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("is written");
}

fn submit<'a>(system: &'a str, run: &'a str) -> Vec<&'a str> {
    submit_sim(&["--preset", "quick", "--max-banks", "5", "--system", system, "--run-id", run])
}

#[test]
fn mistakes_in_a_class_are_exit_2_before_anything_is_made() {
    let bench = Bench::new();
    let methods = "    def retain(self, bank, items): pass\n    def recall(self, bank, query, k): return []\n";
    let file = format!(
        "import bench_coord\nclass Mine(bench_coord.System):\n{methods}class Add(bench_coord.System):\n    def add(self, bank, items): pass\n\
         class Short:\n    def retain(self, items): pass\n    def recall(self, bank, query, k): return []\n\
         class Asks:\n    def __init__(self, url): pass\n{methods}class Odd:\n    unit = 'word'\n{methods}class Bm25:\n{methods}\
         class Filters:\n    filters = ['tags']\n{methods}"
    );
    write(bench.path(), "mine.py", &file);
    write(bench.path(), "lacks.py", "import no_such_package\n");
    write(bench.path(), "broken.py", "class Mine(:\n");
    write(bench.path(), "json5.py", "from json5 import loads\n");
    let key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD";
    write(bench.path(), "keyed.py", &format!("KEY = '{key}'\nclass Mine:\n{methods}"));
    for (system, said) in [
        ("no.py:Mine", "no.py: there is no such file"),
        ("mine:Mine", "a class is named by its file: mine.py:Mine"),
        ("mine.Mine", "a class is named by its file: mine.py:Mine"),
        ("mine.ts:Mine", "mine.ts: there is no such file"),
        ("mine.py:Nine", "mine.py has no class 'Nine'; its classes: Mine, Add, Short, Asks, Odd, Bm25, Filters"),
        ("mine.py", "which class of mine.py? Write mine.py:NAME; its classes: Mine, Add"),
        ("mine.py:Add", "Add has no method retain: write def retain(self, bank, items) (is it what you call 'add'?)"),
        ("mine.py:Short", "Short.retain must be retain(self, bank, items), it is retain(self, items)"),
        ("mine.py:Asks", "Asks must be made without arguments: give those of __init__ defaults"),
        ("mine.py:Odd", "Odd.unit must be \"turn\" or \"session\", it is 'word'"),
        ("mine.py:Bm25", "'bm25' is the name of another system"),
        (
            "mine.py:Filters",
            "recall has no parameter filter that brings them: write def recall(self, bank, query, k, filter=None)",
        ),
        ("lacks.py:Mine", "No module named 'no_such_package'"),
        ("broken.py:Mine", "broken.py cannot be imported: broken.py line 1: SyntaxError"),
        ("json5.py:Mine", "call it something other than json5.py"),
        ("keyed.py:Mine", "keyed.py holds what looks like a key"),
    ] {
        let refused = bench.run(submit(system, "a")).expect_code(2);
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
        assert!(!refused.stderr.contains(key), "{}", refused.stderr);
    }
    for (variable, value, said) in [
        ("PATH", "/nowhere", "PATH has no python3"),
        ("VIRTUAL_ENV", "/nowhere", "VIRTUAL_ENV is /nowhere, where there is no bin/python"),
    ] {
        let bench = Bench::new().with_env(variable, value);
        write(bench.path(), "mine.py", &file);
        let refused = bench.run(submit("mine.py:Mine", "a")).expect_code(2);
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    assert!(!bench.path().join(".bench/bench.db").exists(), "nothing was made");
}

#[test]
fn a_variable_that_a_class_has_not_named_is_said_with_how_to_name_it() {
    let bench = Bench::new().with_env("MINE_KEY", "open-sesame-1234");
    let unnamed = "import os
class Unnamed:
    def retain(self, bank, items): pass
    def recall(self, bank, query, k):
        raise ValueError('no such key ' + os.environ['MINE_KEY'])
";
    write(bench.path(), "mine.py", unnamed);
    let _ = bench.run(submit("mine.py:Unnamed", "a")).expect_code(5);
    let done = bench.run(["retry", "a", "--errors"]);
    for said in [
        "KeyError: 'MINE_KEY', mine.py line 5 in recall",
        "a system sees the variables that its class names: env = [\"MINE_KEY\"]",
    ] {
        assert!(done.stderr.contains(said), "{said}: {}", done.stderr);
    }
}

/// A person's folder may lie above everything, the Python that a virtual environment was made by included.
#[test]
fn python_itself_is_no_part_of_a_class() {
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python");
    let looks = "import sys; sys.path.insert(0, sys.argv[1])
from bench_coord._process import own_path
sys.prefix = sys.exec_prefix = '/home/ann/project/env'
sys.base_prefix = sys.base_exec_prefix = '/home/ann/.pyenv/versions/3.12'
for path, own in [
    ('/home/ann/mine.py', 'mine.py'), ('/home/ann/project/parts/words.py', 'project/parts/words.py'), ('/home/bob/mine.py', None),
    ('/home/ann/project/env/lib/python3.12/site-packages/x.py', None), ('/home/ann/.local/lib/site-packages/x.py', None),
    ('/home/ann/.pyenv/versions/3.12/lib/python3.12/asyncio/__init__.py', None), (sys.argv[1] + '/bench_coord/_process.py', None),
]:
    assert own_path(path, '/home/ann') == own, path
assert own_path(sys.argv[1] + '/bench_coord/_process.py', '/') is None";
    let done = Command::new("/usr/bin/python3").args(["-c", looks, library]).output().expect("python3 is there");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
