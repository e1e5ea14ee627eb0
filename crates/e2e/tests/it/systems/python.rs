//! Classes of Python as memory systems: `--system mine.py:Mine`.

use std::{fs, path::Path, process::Command};

use bench_testkit::{
    bench::{Bench, signal, submit_sim, wait},
    cluster::{Cluster, wait_until_ready},
    process::wait_until,
};

use super::{LONG, PATIENCE, digest, logs};

/// The class of the README.
fn readme() -> &'static str {
    let text = include_str!("../../../../../README.md");
    text.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).expect("README has a class")
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("is written");
}

fn submit<'a>(system: &'a str, run: &'a str) -> Vec<&'a str> {
    submit_sim(&["--preset", "quick", "--system", system, "--run-id", run])
}

#[test]
fn the_class_of_the_readme_is_measured_and_what_it_prints_does_no_harm() {
    let bench = Bench::new();
    write(bench.path(), "mine.py", readme());
    let quiet = bench.run(submit("mine.py:Mine", "quiet")).expect_code(0);
    let report = quiet.json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    assert!(report["system_stats"]["version"].as_str().is_some_and(|v| v.starts_with("Python 3.")), "{report}");
    let question = bench.questions("quiet").remove(0);
    assert_eq!(question["retrieved"][0]["placed_by"], "id", "{question}");
    let checked = bench.run(["systems", "check", "mine.py:Mine"]).expect_code(0);
    assert!(checked.stdout.contains("ids come back"), "{}", checked.stdout);

    // Python, and a program that it starts, write to the same stdout
    let noisy = readme().replace("(self, bank, items):\n", "(self, bank, items):\n        print('{\"id\": 1, \"ok\": false}')\n        import os; os.system('echo from a program')\n");
    assert_ne!(noisy, readme());
    write(bench.path(), "mine.py", &noisy);
    let noisy = bench.run(submit("mine.py:Mine", "noisy")).expect_code(0);
    assert_eq!(digest(&noisy), digest(&quiet));
    let log = logs(&bench, "noisy", "mine").concat();
    assert!(log.contains("from a program") && log.contains("\"ok\": false"), "{log}");
    assert_ne!(noisy.json()["run"]["fingerprint"], report["run"]["fingerprint"], "other code is another system");

    // its last method is called, and what it has started goes with it
    let closes = format!("{}\n    def close(self):\n        open('closed', 'w').close()\n", readme().trim_end());
    write(bench.path(), "closes.py", &closes);
    let _ = bench.run(submit("closes.py:Mine", "closes")).expect_code(0);
    assert!(bench.path().join("closed").exists(), "{closes}");

    let methods = readme().replace("    def r", "    async def r");
    write(bench.path(), "later.py", &methods);
    let later = bench.run(submit("later.py:Mine", "later")).expect_code(0);
    assert_eq!(digest(&later), digest(&quiet));
}

#[test]
fn a_kill_in_the_middle_changes_nothing_nor_does_another_file_in_its_place() {
    let whole = Bench::new();
    let slow = |seconds: &str| {
        let slow = format!("        import time; time.sleep({seconds})\n        return sorted(");
        readme()
            .replace("        return sorted(", &slow)
            .replace("import bench_coord\n", "import bench_coord\nfrom parts.words import words_of\n")
            .replace("set(query.lower().split())", "words_of(query)")
    };
    let system = slow("0.03");
    assert!(system.contains("words_of(query)") && system.contains("sleep"), "{system}");
    let put = |bench: &Bench| {
        fs::create_dir_all(bench.path().join("src/parts")).expect("a folder");
        write(bench.path(), "src/mine.py", &system);
        write(bench.path(), "src/parts/words.py", "def words_of(text):\n    return set(text.lower().split())\n");
    };
    put(&whole);
    let expected = digest(&whole.run(submit("src/mine.py:Mine", "a")).expect_code(0));
    let bench = Bench::new();
    put(&bench);
    let child = bench.start(submit("src/mine.py:Mine", "a"));
    let done = |bench: &Bench| bench.run(["status", "a", "--json"]).stdout;
    wait_until("some questions are done", PATIENCE, || {
        let status = done(&bench);
        serde_json::from_str::<serde_json::Value>(&status)
            .is_ok_and(|status| status["progress"]["scored"].as_u64().is_some_and(|scored| scored >= 10))
    });
    signal(&child, "KILL");
    let _ = wait(child);
    // the run goes on with the code that it began with
    write(bench.path(), "src/parts/words.py", "def words_of(text):\n    return set()\n");
    let resumed = bench.run(["resume", "a", "--json"]).expect_code(0);
    assert_eq!(digest(&resumed), expected);
    assert!(resumed.stderr.contains("mine.py is not what it was"), "{}", resumed.stderr);
}

#[test]
fn what_a_class_raises_is_said_with_its_place_and_without_its_keys() {
    let bench = Bench::new().with_env("MINE_KEY", "open-sesame-1234");
    let raises = "import os
class Mine:
    env = ['MINE_KEY']
    def retain(self, bank, items): pass
    def recall(self, bank, query, k):
        raise ValueError('no such key ' + os.environ['MINE_KEY'])
class Ends(Mine):
    def recall(self, bank, query, k): raise SystemExit('enough')
class Tires:
    calls = 0
    def retain(self, bank, items): pass
    def recall(self, bank, query, k):
        self.calls += 1
        if self.calls == 1: raise ConnectionError('away for now')
        return [f'{query} {n}' for n in range(k)]
class Unnamed(Mine):
    env = []
class Nothing(Mine):
    def recall(self, bank, query, k): pass
";
    write(bench.path(), "mine.py", raises);
    for (class, said) in [
        ("Mine", "recall: mine says: ValueError: no such key [key], mine.py line 6 in recall: raise ValueError("),
        ("Ends", "recall: ends says: SystemExit: enough, mine.py line 8"),
        ("Unnamed", "KeyError: 'MINE_KEY', mine.py line 6 in recall"),
        ("Unnamed", "a system sees the variables that its class names: env = [\"MINE_KEY\"]"),
        ("Nothing", "recall must return a list, empty where nothing is found; it returned NoneType"),
    ] {
        let run = format!("run-{}", class.to_lowercase());
        if !bench.path().join(".bench/runs").join(&run).exists() {
            let _ = bench.run(submit(&format!("mine.py:{class}"), &run)).expect_code(5);
        }
        let done = bench.run(["retry", &run, "--errors"]);
        assert!(done.stderr.contains(said), "{said}: {}", done.stderr);
        assert!(!done.stderr.contains("open-sesame"), "{}", done.stderr);
    }
    let log = logs(&bench, "run-ends", "ends").concat();
    assert!(log.contains("Traceback (most recent call last)"), "{log}");
    let tires = bench.run(submit("mine.py:Tires", "tires")).expect_code(0).json();
    assert_eq!(tires["outcomes"]["coverage"], 1.0, "what may pass is tried again: {tires}");
}

#[test]
fn mistakes_in_a_class_are_exit_2_before_anything_is_made() {
    let bench = Bench::new();
    let methods = "    def retain(self, bank, items): pass\n    def recall(self, bank, query, k): return []\n";
    let file = format!(
        "import bench_coord\nclass Mine(bench_coord.System):\n{methods}class Add(bench_coord.System):\n    def add(self, bank, items): pass\n\
         class Short:\n    def retain(self, items): pass\n    def recall(self, bank, query, k): return []\n\
         class Asks:\n    def __init__(self, url): pass\n{methods}class Odd:\n    unit = 'word'\n{methods}class Bm25:\n{methods}"
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
        ("mine.ts:Mine", "a class has to be one of Python"),
        ("mine.py:Nine", "mine.py has no class 'Nine'; its classes: Mine, Add, Short, Asks, Odd, Bm25"),
        ("mine.py", "which class of mine.py? Write mine.py:NAME; its classes: Mine, Add"),
        ("mine.py:Add", "Add has no method retain: write def retain(self, bank, items) (is it what you call 'add'?)"),
        ("mine.py:Short", "Short.retain must be retain(self, bank, items), it is retain(self, items)"),
        ("mine.py:Asks", "Asks must be made without arguments: give those of __init__ defaults"),
        ("mine.py:Odd", "Odd.unit must be \"turn\" or \"session\", it is 'word'"),
        ("mine.py:Bm25", "'bm25' is the name of another system"),
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

/// A class with settings: `most` hits, the `order` of them, and a `note`.
fn with_settings() -> String {
    let text = readme()
        .replace("import bench_coord\n", "import bench_coord\nfrom typing import Literal\n")
        .replace(
            "def __init__(self):",
            "def __init__(self, most: int = 10, order: Literal['best', 'worst'] = 'best', note='', client=None):",
        )
        .replace("self.banks = {}", "self.banks, self.most, self.order = {}, most, order")
        .replace("reverse=True)[:k]", "reverse=self.order == 'best')[:min(k, self.most)]");
    assert!(text.contains("self.most)]") && text.contains("self.order = {}"), "{text}");
    text
}

#[test]
fn a_class_is_made_with_the_settings_of_its_run() {
    let bench = Bench::new();
    write(bench.path(), "mine.py", &with_settings());
    let run = |id: &'static str, flags: &[&'static str], code| {
        let report = bench.run([submit("mine.py:Mine", id), flags.to_vec()].concat()).expect_code(code).json();
        (report["result_digest"].clone(), report["run"]["fingerprint"].clone())
    };
    let most = |id: &str| bench.questions(id).iter().map(|q| q["retrieved"].as_array().map_or(0, Vec::len)).max();
    let plain = run("plain", &[], 0);
    let same = run("same", &["--set", "mine.most=10", "--set", "mine.order=best"], 0);
    assert_eq!(same, plain, "what is the default anyway changes nothing");
    // fewer hits than the run asks for: the runner sees that too
    let less = run("less", &["--set", "mine.most=2"], 5);
    assert_ne!(less.1, plain.1, "another setting is another system");
    assert_eq!((most("plain"), most("less")), (Some(10), Some(2)));
    for (setting, said) in [
        ("mine.most=few", "setting mine.most must be a whole number, not \"few\""),
        ("mine.order=odd", "setting mine.order must be best, worst, not \"odd\""),
        ("mine.mots=2", "mine has no setting 'mots', it has most, note, order"),
    ] {
        let refused = bench.run([submit("mine.py:Mine", "no"), vec!["--set", setting]].concat()).expect_code(2);
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    let refused = bench.run([submit("bm25", "no"), vec!["--set", "mine.most=2"]].concat()).expect_code(2);
    assert!(refused.stderr.contains("mine.most"), "{}", refused.stderr);
}

/// Who allows a class allows the values that it lists; a text of any words may be a path or a program to it.
#[test]
fn p42_the_words_that_a_run_gives_to_a_class_are_in_its_hash_and_a_found_file_gives_none() {
    let bench = Bench::new();
    write(bench.path(), "mine.py", &with_settings());
    let hash = |flags: &[&str]| {
        let words = [&["systems", "hash", "mine.py:Mine", "--json"][..], flags].concat();
        bench.run(words).expect_code(0).json()["sha256"].clone()
    };
    assert_eq!(hash(&["--set", "mine.most=2"]), hash(&[]));
    assert_eq!(hash(&["--set", "mine.note="]), hash(&[]), "the default is no choice");
    assert_ne!(hash(&["--set", "mine.note=/etc/passwd"]), hash(&[]));
    write(bench.path(), "bench.toml", "[mine]\nnote = '/etc/passwd'\n");
    let refused = bench.run(submit("mine.py:Mine", "no")).expect_code(2);
    assert!(refused.stderr.contains("unknown setting 'mine'"), "{}", refused.stderr);
    assert!(!bench.path().join(".bench/bench.db").exists(), "nothing was made");
}

/// A class may be called as a part of the runner is.
#[test]
fn a_class_whose_name_has_settings_of_the_runner_takes_none_of_them() {
    let bench = Bench::new();
    write(bench.path(), "mine.py", &with_settings().replace("class Mine", "class Store"));
    let set = ["--set", "store.url=sqlite:own.db"];
    let _ = bench.run([submit("mine.py:Store", "a"), set.to_vec()].concat()).expect_code(0);
    assert!(bench.path().join("own.db").exists());
    let refused = bench.run([submit("mine.py:Store", "b"), vec!["--set", "store.most=3"]].concat()).expect_code(2);
    assert!(refused.stderr.contains("store.most"), "{}", refused.stderr);
}

#[test]
fn processes_side_by_side_find_what_one_finds_also_when_some_die() {
    let bench = Bench::new();
    write(bench.path(), "mine.py", readme());
    let expected = digest(&bench.run(submit("mine.py:Mine", "one")).expect_code(0));
    let several = readme()
        .replace("(bench_coord.System):\n", "(bench_coord.System):\n    processes = 3\n")
        .replace("import bench_coord\n", "import bench_coord, os\n")
        .replace(
            "        words = set",
            "        print('asked', os.getpid(), flush=True)\n        self.die()\n        words = set",
        )
        + "\n    def die(self):\n        try:\n            os.close(os.open('died', os.O_CREAT | os.O_EXCL))\n        \
           except FileExistsError:\n            return\n        os._exit(1)\n";
    write(bench.path(), "mine.py", &several);
    let done = bench.run(submit("mine.py:Mine", "three")).expect_code(0);
    assert_eq!(digest(&done), expected);
    assert!(bench.path().join("died").exists(), "one process has died");
    let log = logs(&bench, "three", "mine").concat();
    let processes: std::collections::BTreeSet<&str> = log.lines().filter(|line| line.starts_with("asked ")).collect();
    assert!((3..=4).contains(&processes.len()), "three, and one in the place of the dead one: {processes:?}");
}

/// Two workers have a process each: what one was not given it is given when a question about it comes.
#[test]
fn a_class_that_holds_its_banks_in_memory_works_in_a_cluster_that_allows_it() {
    let alone = Bench::new();
    write(alone.path(), "mine.py", readme());
    let expected = digest(&alone.run(submit("mine.py:Mine", "a")).expect_code(0));

    let cluster = Cluster::new();
    write(cluster.bench().path(), "mine.py", readme());
    let hash = cluster.run(&["systems", "hash", "mine.py:Mine", "--json"]).expect_code(0).json();
    let allowed = [("BENCH_ALLOW_SYSTEMS", hash["sha256"].as_str().expect("a hash"))];
    let mut coordinator = cluster.coordinator("coordinator");
    wait_until_ready(&mut coordinator);
    let mut strict = cluster.worker("strict", &[]);
    wait_until_ready(&mut strict);
    let refused = cluster.client(&submit("mine.py:Mine", "a")).wait(PATIENCE).expect_code(2);
    for said in ["brings the code of mine.py", "BENCH_ALLOW_SYSTEMS="] {
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    drop(strict);
    let mut workers = [cluster.worker_with("one", &[], &allowed), cluster.worker_with("two", &[], &allowed)];
    workers.iter_mut().for_each(wait_until_ready);
    let done = cluster.client(&submit("mine.py:Mine", "b")).wait(LONG).expect_code(0);
    assert_eq!(digest(&done), expected);
    let copy = cluster.bench().path().join(".bench/systems/b/mine/code/mine.py");
    assert_eq!(fs::read_to_string(copy).expect("the code came with the run"), readme());
}

#[test]
fn p42_the_hash_of_a_class_covers_its_code() {
    let bench = Bench::new();
    let hash = |text: &str| {
        write(bench.path(), "mine.py", text);
        let done = bench.run(["systems", "hash", "mine.py:Mine"]).expect_code(0);
        assert!(done.stderr.contains("not the packages that Python has installed"), "{}", done.stderr);
        bench.run(["systems", "hash", "mine.py:Mine", "--json"]).expect_code(0).json()["sha256"].clone()
    };
    let first = hash(readme());
    assert_ne!(hash(&format!("{}\nMORE = 1\n", readme())), first);
    assert_eq!(hash(readme()), first);
}

/// A class whose words come from a module beside it.
fn with_words(folder: &Path) {
    let class = readme()
        .replace("import bench_coord\n", "import bench_coord\nfrom words import words_of\n")
        .replace("set(query.lower().split())", "words_of(query)");
    assert!(class.contains("words_of(query)"), "{class}");
    write(folder, "mine.py", &class);
    write(folder, "words.py", "def words_of(text):\n    return set(text.lower().split())\n");
}

/// Compiles a text as Python does for itself, so that it is taken without a look at the text that it stands for.
fn compile(folder: &Path, text: &str, into: &str) {
    write(folder, "compiled.py", text);
    let program = format!(
        "import importlib.util, py_compile; into = {into}\n\
         py_compile.compile('compiled.py', cfile=into, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)"
    );
    let done = Command::new("/usr/bin/python3").args(["-c", &program]).current_dir(folder).status();
    assert!(done.expect("python3 is there").success());
    fs::remove_file(folder.join("compiled.py")).expect("is removed");
}

#[test]
fn what_is_compiled_beside_the_text_is_not_run() {
    let bench = Bench::new();
    with_words(bench.path());
    let expected = digest(&bench.run(submit("mine.py:Mine", "text")).expect_code(0));
    let other = "def words_of(text):\n    return set()\n";
    compile(bench.path(), other, "importlib.util.cache_from_source('words.py')");
    assert_eq!(digest(&bench.run(submit("mine.py:Mine", "planted")).expect_code(0)), expected);

    fs::remove_file(bench.path().join("words.py")).expect("is removed");
    compile(bench.path(), other, "'words.pyc'");
    let refused = bench.run(submit("mine.py:Mine", "alone")).expect_code(2);
    assert!(refused.stderr.contains("words.pyc is compiled, and only text goes with the run"), "{}", refused.stderr);
}

#[test]
fn a_file_behind_a_link_goes_with_the_run() {
    let bench = Bench::new();
    fs::create_dir(bench.path().join("kept")).expect("a folder");
    write(&bench.path().join("kept"), "mine.py", readme());
    std::os::unix::fs::symlink("kept/mine.py", bench.path().join("mine.py")).expect("is linked");
    let hash = || {
        let done = bench.run(["systems", "hash", "mine.py:Mine", "--json"]).expect_code(0);
        done.json()["sha256"].clone()
    };
    let first = hash();
    write(&bench.path().join("kept"), "mine.py", &format!("{}\nMORE = 1\n", readme()));
    assert_ne!(hash(), first);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_imported_sees_the_variables_that_its_class_names_and_no_others() {
    let bench = Bench::new().with_env("OTHER_KEY", "open-sesame-1234").with_env("MINE_KEY", "of-mine");
    let class = readme().replace(
        "import bench_coord\n",
        "import bench_coord\nopen('seen', 'w').write(open('/proc/self/environ').read())\n",
    );
    write(bench.path(), "mine.py", &class.replace("    def __init__", "    env = ['MINE_KEY']\n    def __init__"));
    let _ = bench.run(["systems", "hash", "mine.py:Mine"]).expect_code(0);
    let seen = fs::read_to_string(bench.path().join("seen")).expect("was imported");
    assert!(seen.contains("MINE_KEY=of-mine") && !seen.contains("open-sesame"), "{seen}");
}

#[test]
fn a_file_that_cannot_be_imported_tells_no_key() {
    let bench = Bench::new().with_env("MINE_URL", "open-sesame-1234").with_env("OTHER_KEY", "open-sesame-5678");
    let methods = "    def retain(self, bank, items): pass\n    def recall(self, bank, query, k): return []\n";
    let class = |end: &str| format!("import os\nclass Mine:\n    env = ['MINE_URL', 'OTHER_KEY']\n{methods}{end}\n");
    write(bench.path(), "raises.py", &class("raise ValueError('no ' + os.environ['MINE_URL'])"));
    write(bench.path(), "ends.py", &class("os.write(2, ('no ' + os.environ['OTHER_KEY']).encode())\nos._exit(3)"));
    for file in ["raises.py", "ends.py"] {
        let refused = bench.run(submit(&format!("{file}:Mine"), "a")).expect_code(2);
        assert!(refused.stderr.contains("no [key]") && !refused.stderr.contains("sesame"), "{}", refused.stderr);
    }
}

/// Files of other folders may have the same text, and beside it what would be imported in the place of modules of Python.
#[test]
fn p42_a_run_takes_code_from_the_folder_in_which_its_class_was_named_and_from_no_other() {
    let bench = Bench::new();
    let home = bench.home().join("bench");
    let bench = bench.with_env("BENCH_HOME", home.display().to_string());
    let class = readme().replace("import bench_coord\n", "import bench_coord, colorsys, os\n").replace(
        "(self, bank, query, k):\n",
        "(self, bank, query, k):\n        open(os.path.join(os.path.dirname(__file__), 'beside'))\n",
    );
    assert!(class.contains("beside") && class.contains("colorsys"), "{class}");
    write(bench.path(), "mine.py", &class);
    let _ = bench.run(submit("mine.py:Mine", "a")).expect_code(5);
    write(bench.path(), "beside", "is there now");

    let strange = Bench::new();
    write(strange.path(), "mine.py", &class);
    let ran = strange.path().join("ran");
    write(strange.path(), "colorsys.py", &format!("open({:?}, 'w')\n", ran.display().to_string()));
    let mut retry = bench.command(["retry", "a"]);
    let done = wait(retry.current_dir(strange.path()).spawn().expect("starts")).expect_code(0);
    assert!(!ran.exists(), "a module of a strange folder was run: {}", done.stderr);
    fs::remove_file(strange.path().join("colorsys.py")).expect("is removed");
    let hashes = [&bench, &strange]
        .map(|bench| bench.run(["systems", "hash", "mine.py:Mine", "--json"]).expect_code(0).json()["sha256"].clone());
    assert_eq!(hashes[0], hashes[1], "the hash tells code apart, not folders");
}

/// What Python takes for a list or a text may have no end, or be no text for anybody else.
#[test]
fn absurd_lists_texts_and_numbers_of_a_class_hold_up_no_run() {
    let bench = Bench::new();
    let endless = "import itertools
class Mine:
    def retain(self, bank, items): pass
    def recall(self, bank, query, k): return itertools.cycle(['a half \\ud83d of a character'])
class Yields(Mine):
    def recall(self, bank, query, k):
        while True: yield 'again'
class Later(Mine):
    async def recall(self, bank, query, k):
        while True: yield 'again'
class Large(Mine):
    batch = 10 ** 12
";
    write(bench.path(), "mine.py", endless);
    for class in ["Mine", "Yields", "Later"] {
        let done = bench.run(submit(&format!("mine.py:{class}"), &class.to_lowercase()));
        assert_eq!(done.json()["outcomes"]["coverage"], 1.0, "{class}: {}", done.stderr);
        let hits = &bench.questions(&class.to_lowercase())[0]["retrieved"];
        assert_eq!(hits.as_array().map(Vec::len), Some(10), "{class}");
    }
    let refused = bench.run(submit("mine.py:Large", "large")).expect_code(2);
    assert!(refused.stderr.contains("Large.batch must be a whole number from 1 to 1000000"), "{}", refused.stderr);
}

/// A person's folder may lie above everything, the Python that a virtual environment was made by included.
#[test]
fn python_itself_is_no_part_of_a_class() {
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python");
    let looks = "import sys; sys.path.insert(0, sys.argv[1])
from bench_coord._process import own_path
sys.prefix = sys.exec_prefix = '/home/ann/work/env'
sys.base_prefix = sys.base_exec_prefix = '/home/ann/.pyenv/versions/3.12'
for path, own in [
    ('/home/ann/mine.py', 'mine.py'), ('/home/ann/work/parts/words.py', 'work/parts/words.py'), ('/home/bob/mine.py', None),
    ('/home/ann/work/env/lib/python3.12/site-packages/x.py', None), ('/home/ann/.local/lib/site-packages/x.py', None),
    ('/home/ann/.pyenv/versions/3.12/lib/python3.12/asyncio/__init__.py', None), (sys.argv[1] + '/bench_coord/_process.py', None),
]:
    assert own_path(path, '/home/ann') == own, path
assert own_path(sys.argv[1] + '/bench_coord/_process.py', '/') is None";
    let done = Command::new("/usr/bin/python3").args(["-c", looks, library]).output().expect("python3 is there");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
