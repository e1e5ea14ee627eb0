//! Classes as memory systems, the same cases for each language that they are written in: the languages are in [`sides`], the classes
//! in [`texts`].

mod sides;
mod texts;

use std::{fs, path::Path};

use bench_testkit::{
    bench::{Bench, signal, wait},
    cluster::{Cluster, wait_until_ready},
    process::wait_until,
};
use serde_json::Value;

use self::{
    sides::{JAVASCRIPT, LANGUAGES, PYTHON, SIDES, TYPESCRIPT},
    texts::{compile, endless, failing, hanging, that_dies, with_keys, with_settings, with_words, write},
};
use super::{LONG, PATIENCE, digest, logs};

fn hash(bench: &Bench, system: &str) -> Value {
    bench.run(["systems", "hash", system, "--json"]).expect_code(0).json()["sha256"].clone()
}

#[test]
fn the_class_of_a_readme_is_measured_and_what_it_prints_does_no_harm() {
    let mut found = Vec::new();
    for side in SIDES {
        let (bench, readme, mine) = (side.bench(), side.readme(), side.named("Mine"));
        write(bench.path(), side.file, &readme);
        let quiet = bench.run(side.submit(&mine, "quiet")).expect_code(0);
        let report = quiet.json();
        assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
        let version = report["system_stats"]["version"].as_str().expect("a version");
        assert!(version.starts_with(side.or("Python 3.", "node 2")), "{version}");
        assert_eq!(bench.questions("quiet")[0]["retrieved"][0]["placed_by"], "id");
        let checked = bench.run(["systems", "check", &mine]).expect_code(0);
        assert!(checked.stdout.contains("ids come back"), "{}", checked.stdout);
        let claims = side.or("to claim it: def verify(self, bank)", "to claim it: verify(bank)");
        assert!(checked.stdout.contains(claims), "what a class would write: {}", checked.stdout);

        // the language, and a program that is started, write to the same stdout
        let noisy = side.behind(
            &readme,
            side.retain,
            "        print('{\"id\": 1, \"ok\": false}')\n        import os; os.system('echo from a program')\n",
            "    console.log('{\"id\": 1, \"ok\": false}');\n    execSync('echo from a program', { stdio: 'inherit' });\n",
        );
        let noisy = side.behind(&noisy, side.top, "", "import { execSync } from 'node:child_process';\n");
        write(bench.path(), side.file, &noisy);
        let noisy = bench.run(side.submit(&mine, "noisy")).expect_code(0);
        assert_eq!(digest(&noisy), digest(&quiet));
        let log = logs(&bench, "noisy", "mine").concat();
        assert!(log.contains("from a program") && log.contains("\"ok\": false"), "{log}");
        assert_ne!(noisy.json()["run"]["fingerprint"], report["run"]["fingerprint"], "other code is another system");
        // and the same one to a gate
        let gate = bench.run(["gate", "noisy", "--baseline", "last:3", "--json"]).json();
        let before = &gate["baseline_runs"][0];
        assert_eq!(
            (&before["id"], &before["differences"][0]["key"]),
            (&"quiet".into(), &"system.version".into()),
            "{gate}"
        );
        assert_ne!(gate["verdict"], "INVALID", "{gate}");

        // its last method is called
        let closes = side.behind(
            &readme,
            side.class,
            "    def close(self):\n        open('closed', 'w').close()\n",
            "  close() { fs.writeFileSync('closed', ''); }\n",
        );
        let closes = side.behind(&closes, side.top, "", "import fs from 'node:fs';\n");
        write(bench.path(), side.file, &closes);
        let _ = bench.run(side.submit(&mine, "closes")).expect_code(0);
        assert!(bench.path().join("closed").exists(), "{closes}");

        let later = readme
            .replace("    def r", "    async def r")
            .replace("\n  retain(", "\n  async retain(")
            .replace("\n  recall(", "\n  async recall(");
        write(bench.path(), side.file, &later);
        assert_eq!(digest(&bench.run(side.submit(&mine, "later")).expect_code(0)), digest(&quiet));
        found.push(digest(&quiet));
    }
    assert!(found.iter().all(|one| *one == found[0]), "one class in several languages: {found:?}");
}

#[test]
fn a_kill_in_the_middle_changes_nothing_nor_does_another_file_in_its_place() {
    for side in LANGUAGES {
        let system = format!("src/{}:Mine", side.file);
        let put = |bench: &Bench| {
            fs::create_dir_all(bench.path().join("src")).expect("a folder");
            with_words(side, &bench.path().join("src"));
            let file = bench.path().join("src").join(side.file);
            let text = fs::read_to_string(&file).expect("is there");
            let slow = side.behind(
                &text,
                side.recall,
                "        import time; time.sleep(0.03)\n",
                "    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30);\n",
            );
            fs::write(file, slow).expect("is written");
        };
        let whole = side.bench();
        put(&whole);
        let expected = digest(&whole.run(side.submit(&system, "a")).expect_code(0));
        let bench = side.bench();
        put(&bench);
        let child = bench.start(side.submit(&system, "a"));
        wait_until("some questions are done", PATIENCE, || {
            let status = bench.run(["status", "a", "--json"]).stdout;
            serde_json::from_str::<Value>(&status)
                .is_ok_and(|status| status["progress"]["ended"].as_u64().is_some_and(|ended| ended >= 10))
        });
        signal(&child, "KILL");
        let _ = wait(child);
        // the run goes on with the code that it began with
        write(
            &bench.path().join("src"),
            side.words,
            side.or("def words_of(text):\n    return set()\n", "export const words_of = () => new Set();\n"),
        );
        let resumed = bench.run(["resume", "a", "--json"]).expect_code(0);
        assert_eq!(digest(&resumed), expected);
        assert!(resumed.stderr.contains(&format!("{} is not what it was", side.file)), "{}", resumed.stderr);
    }
}

#[test]
fn what_a_class_raises_is_said_with_its_place_and_without_its_keys() {
    for side in LANGUAGES {
        let bench = side.bench().with_env("MINE_KEY", "open-sesame-1234");
        write(bench.path(), side.file, failing(side));
        let file = side.file;
        let place = |error: &str, line: usize, code: &str| format!("{error}, {file} line {line} in recall: {code}");
        let raised = side.or("raise ValueError(", "throw new RangeError(");
        let said_of_mine = place(side.or("ValueError: no such key [key]", "RangeError: no such key [key]"), 6, raised);
        let ends = side.or("SystemExit: enough", "Exit: process.exit(3) was called");
        let nothing = side.or("it returned NoneType", "it returned undefined");
        for (class, said) in [
            ("Mine", format!("recall: mine says: {said_of_mine}")),
            ("Ends", format!("recall: ends says: {ends}, {file} line {}", side.or("8", "9"))),
            ("Nothing", format!("recall must return a list, empty where nothing is found; {nothing}")),
        ] {
            let run = format!("run-{}", class.to_lowercase());
            let _ = bench.run(side.submit(&side.named(class), &run)).expect_code(5);
            let done = bench.run(["retry", &run, "--errors"]);
            assert!(done.stderr.contains(&said), "{said}: {}", done.stderr);
            assert!(!done.stderr.contains("open-sesame"), "{}", done.stderr);
        }
        let log = logs(&bench, "run-ends", "ends").concat();
        assert!(log.contains(side.or("Traceback (most recent call last)", "    at Ends.recall (")), "{log}");
        let tires = bench.run(side.submit(&side.named("Tires"), "tires")).expect_code(0).json();
        assert_eq!(tires["outcomes"]["coverage"], 1.0, "what may pass is tried again: {tires}");
    }
}

#[test]
fn a_class_is_made_with_the_settings_of_its_run() {
    for side in LANGUAGES {
        let (bench, mine) = (side.bench(), side.named("Mine"));
        write(bench.path(), side.file, &with_settings(side));
        let run = |id: &'static str, flags: &[&'static str], code| {
            let report = bench.run([side.submit(&mine, id), flags.to_vec()].concat()).expect_code(code).json();
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
        // a fork has the system of its source, with its settings
        let fork = |set: &str| bench.run(["submit", "--fork", "less", "--from", "answer", "--dry-run", "--set", set]);
        let _ = fork("mine.most=2").expect_code(0);
        for (set, said) in [
            ("mine.most=3", "--set mine.most cannot change what a fork --from answer takes over"),
            ("yours.most=2", "unknown setting 'yours.most': the memory system of a fork is that of its source, mine"),
        ] {
            let refused = fork(set).expect_code(2);
            assert!(refused.stderr.contains(said), "{set}: {}", refused.stderr);
        }
        for (setting, said) in [
            ("mine.most=few", "setting mine.most must be a whole number, not \"few\""),
            ("mine.order=odd", "setting mine.order must be best, worst, not \"odd\""),
            ("mine.mots=2", "mine has no setting 'mots', it has most, note, order"),
        ] {
            let refused = bench.run([side.submit(&mine, "no"), vec!["--set", setting]].concat()).expect_code(2);
            assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
        }
        let refused = bench.run([side.submit("bm25", "no"), vec!["--set", "mine.most=2"]].concat()).expect_code(2);
        assert!(refused.stderr.contains("mine.most"), "{}", refused.stderr);
    }
}

/// Who allows a class allows the values that it lists; a text of any words may be a path or a program to it.
#[test]
fn p42_the_words_that_a_run_gives_to_a_class_are_in_its_hash_and_a_found_file_gives_none() {
    for side in SIDES {
        let (bench, mine) = (side.bench(), side.named("Mine"));
        write(bench.path(), side.file, &with_settings(side));
        let hash = |flags: &[&str]| {
            let words = [&["systems", "hash", &mine, "--json"][..], flags].concat();
            bench.run(words).expect_code(0).json()["sha256"].clone()
        };
        assert_eq!(hash(&["--set", "mine.most=2"]), hash(&[]));
        assert_eq!(hash(&["--set", "mine.note="]), hash(&[]), "the default is no choice");
        assert_ne!(hash(&["--set", "mine.note=/etc/passwd"]), hash(&[]));
        write(bench.path(), "bench.toml", "[mine]\nnote = '/etc/passwd'\n");
        let refused = bench.run(side.submit(&mine, "no")).expect_code(2);
        assert!(refused.stderr.contains("unknown setting 'mine'"), "{}", refused.stderr);
        assert!(!bench.path().join(".bench/bench.db").exists(), "nothing was made");
    }
}

/// A class may be called as a part of the runner is.
#[test]
fn a_class_whose_name_has_settings_of_the_runner_takes_none_of_them() {
    for side in LANGUAGES {
        let (bench, store) = (side.bench(), side.named("Store"));
        write(bench.path(), side.file, &with_settings(side).replace("class Mine", "class Store"));
        let set = ["--set", "store.url=sqlite:own.db"];
        let _ = bench.run([side.submit(&store, "a"), set.to_vec()].concat()).expect_code(0);
        assert!(bench.path().join("own.db").exists());
        let refused = bench.run([side.submit(&store, "b"), vec!["--set", "store.most=3"]].concat()).expect_code(2);
        assert!(refused.stderr.contains("store.most"), "{}", refused.stderr);
    }
}

#[test]
fn processes_side_by_side_find_what_one_finds_also_when_some_die() {
    for side in LANGUAGES {
        let (bench, mine) = (side.bench(), side.named("Mine"));
        write(bench.path(), side.file, &side.readme());
        let expected = digest(&bench.run(side.submit(&mine, "one")).expect_code(0));
        write(bench.path(), side.file, &that_dies(side, side.recall, 3));
        let done = bench.run(side.submit(&mine, "three")).expect_code(0);
        assert_eq!(digest(&done), expected);
        assert!(bench.path().join("died").exists(), "one process has died");
        let warnings = bench.report("three")["warnings"].to_string();
        assert!(warnings.contains("a process of mine had ended and was started again 1 time"), "{warnings}");
        let log = logs(&bench, "three", "mine").concat();
        let processes: std::collections::BTreeSet<&str> =
            log.lines().filter(|line| line.starts_with("asked ")).collect();
        assert!((3..=4).contains(&processes.len()), "three, and one in the place of the dead one: {processes:?}");
    }
}

/// Two workers have a process each: what one was not given it is given when a question about it comes.
#[test]
fn a_class_that_holds_its_banks_in_memory_works_in_a_cluster_that_allows_it() {
    for side in LANGUAGES {
        let (alone, mine) = (side.bench(), side.named("Mine"));
        write(alone.path(), side.file, &side.readme());
        let expected = digest(&alone.run(side.submit(&mine, "a")).expect_code(0));

        let cluster = Cluster::new().with_env("PATH", &side.path());
        write(cluster.bench().path(), side.file, &side.readme());
        let hash = cluster.run(&["systems", "hash", &mine, "--json"]).expect_code(0).json();
        let allowed = [("BENCH_ALLOW_SYSTEMS", hash["sha256"].as_str().expect("a hash"))];
        let mut coordinator = cluster.coordinator("coordinator");
        wait_until_ready(&mut coordinator);
        let mut strict = cluster.worker("strict", &[]);
        wait_until_ready(&mut strict);
        let refused = cluster.client(&side.submit(&mine, "a")).wait(PATIENCE).expect_code(2);
        let brings = format!("brings the code of {}", side.file);
        for said in [brings.as_str(), "BENCH_ALLOW_SYSTEMS="] {
            assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
        }
        drop(strict);
        let mut workers = [cluster.worker_with("one", &[], &allowed), cluster.worker_with("two", &[], &allowed)];
        workers.iter_mut().for_each(wait_until_ready);
        let done = cluster.client(&side.submit(&mine, "b")).wait(LONG).expect_code(0);
        assert_eq!(digest(&done), expected);
        let copy = cluster.bench().path().join(".bench/systems/b/mine/code").join(side.file);
        assert_eq!(fs::read_to_string(copy).expect("the code came with the run"), side.readme());
    }
}

#[test]
fn p42_the_hash_of_a_class_covers_its_code() {
    for side in SIDES {
        let (bench, readme, mine) = (side.bench(), side.readme(), side.named("Mine"));
        let hash = |text: &str| {
            write(bench.path(), side.file, text);
            let done = bench.run(["systems", "hash", &mine]).expect_code(0);
            let packages = side.or("not the packages that Python has installed", "not the packages in node_modules");
            assert!(done.stderr.contains(packages), "{}", done.stderr);
            self::hash(&bench, &mine)
        };
        let first = hash(&readme);
        assert_ne!(hash(&format!("{readme}\n{}\n", side.or("MORE = 1", "const MORE = 1;"))), first);
        assert_eq!(hash(&readme), first);
    }
}

#[test]
fn what_is_compiled_beside_the_text_is_not_run() {
    let bench = Bench::new();
    with_words(&PYTHON, bench.path());
    let expected = digest(&bench.run(PYTHON.submit("mine.py:Mine", "text")).expect_code(0));
    let other = "def words_of(text):\n    return set()\n";
    compile(bench.path(), other, "importlib.util.cache_from_source('words.py')");
    assert_eq!(digest(&bench.run(PYTHON.submit("mine.py:Mine", "planted")).expect_code(0)), expected);

    fs::remove_file(bench.path().join("words.py")).expect("is removed");
    compile(bench.path(), other, "'words.pyc'");
    let refused = bench.run(PYTHON.submit("mine.py:Mine", "alone")).expect_code(2);
    assert!(refused.stderr.contains("words.pyc is compiled, and only text goes with the run"), "{}", refused.stderr);

    for side in [&TYPESCRIPT, &JAVASCRIPT] {
        let bench = side.bench();
        let text = side.behind(
            &side.readme(),
            side.top,
            "",
            "import { createRequire } from 'node:module';\ncreateRequire(import.meta.url)('./words.node');\n",
        );
        write(bench.path(), side.file, &text);
        write(bench.path(), "words.node", "no matter what");
        let refused = bench.run(side.submit(&side.named("Mine"), "a")).expect_code(2);
        assert!(refused.stderr.contains("words.node is compiled, and only text goes with"), "{}", refused.stderr);
    }
}

#[test]
fn a_file_behind_a_link_goes_with_the_run() {
    for side in SIDES {
        let bench = side.bench();
        with_words(side, bench.path());
        fs::create_dir(bench.path().join("kept")).expect("a folder");
        for file in [side.file, side.words] {
            let (lies, kept) = (bench.path().join(file), bench.path().join("kept").join(file));
            fs::rename(&lies, kept).expect("is moved");
            std::os::unix::fs::symlink(format!("kept/{file}"), lies).expect("is linked");
        }
        let mine = side.named("Mine");
        for file in [side.file, side.words] {
            let (first, kept) = (hash(&bench, &mine), bench.path().join("kept").join(file));
            let text = fs::read_to_string(&kept).expect("is there");
            fs::write(kept, format!("{text}\n{}\n", side.or("MORE = 1", "const MORE = 1;"))).expect("is written");
            assert_ne!(hash(&bench, &mine), first, "{file}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_imported_sees_the_variables_that_its_class_names_and_no_others() {
    for side in SIDES {
        let bench = side.bench().with_env("OTHER_KEY", "open-sesame-1234").with_env("MINE_KEY", "of-mine");
        let class = side.behind(
            &side.readme(),
            side.top,
            "open('seen', 'w').write(open('/proc/self/environ').read())\n",
            "import fs from 'node:fs';\nfs.writeFileSync('seen', fs.readFileSync('/proc/self/environ'));\n",
        );
        let class =
            side.behind(&class, side.class, "    env = ['MINE_KEY']\n", "  static readonly env = ['MINE_KEY'];\n");
        let class = if side.is_typed { class } else { class.replace(" readonly", "") };
        write(bench.path(), side.file, &class);
        let _ = bench.run(["systems", "hash", &side.named("Mine")]).expect_code(0);
        let seen = fs::read_to_string(bench.path().join("seen")).expect("was imported");
        assert!(seen.contains("MINE_KEY=of-mine") && !seen.contains("open-sesame"), "{seen}");
    }
}

#[test]
fn a_file_that_cannot_be_imported_tells_no_key() {
    for side in SIDES {
        let keyed =
            |bench: Bench| bench.with_env("MINE_URL", "open-sesame-1234").with_env("OTHER_KEY", "open-sesame-5678");
        let bench = keyed(side.bench());
        let class = |end: &str| {
            let class = side.or(
                "import os\nclass Mine:\n    env = ['MINE_URL', 'OTHER_KEY']\n    def retain(self, bank, items): pass\n    \
                 def recall(self, bank, query, k): return []\n",
                "import fs from 'node:fs';\nexport class Mine { static env = ['MINE_URL', 'OTHER_KEY']; retain(bank, items) {} \
                 recall(bank, query, k) { return []; } }\n",
            );
            format!("{class}{end}\n")
        };
        let raises = side
            .or("raise ValueError('no ' + os.environ['MINE_URL'])", "throw new Error('no ' + process.env.MINE_URL);");
        let ends = side.or(
            "os.write(2, ('no ' + os.environ['OTHER_KEY']).encode())\nos._exit(3)",
            "fs.writeSync(2, 'no ' + process.env.OTHER_KEY);\nprocess.kill(process.pid, 'SIGTERM');\nwhile (true);",
        );
        for end in [raises, ends] {
            write(bench.path(), side.file, &class(end));
            let refused = bench.run(side.submit(&side.named("Mine"), "a")).expect_code(2);
            assert!(refused.stderr.contains("no [key]") && !refused.stderr.contains("sesame"), "{}", refused.stderr);
        }
    }
}

#[test]
fn a_class_whose_description_has_the_value_of_a_variable_is_refused() {
    for side in SIDES {
        let bench = side.bench().with_env("MINE_KEY", "open-sesame-1234");
        let bench = bench.with_env("MINE_NOTE", "a-model-of-mine").with_env("MINE_TOKEN", "localhost");
        write(bench.path(), side.file, with_keys(side));
        for (class, place) in [("Keyed", "settings.api_key"), ("Told", "description")] {
            let refused = bench.run(side.submit(&side.named(class), "a")).expect_code(2);
            let why = format!("{place} comes from the variable MINE_KEY and would be stored with the run");
            assert!(refused.stderr.contains(&why) && !refused.stderr.contains("sesame"), "{}", refused.stderr);
        }
        // a word that stands in the file is not from the variable that has the same, and a variable whose name is none of a key
        // is a setting like any other
        let _ = bench.run(["systems", "hash", &side.named("Mine")]).expect_code(0);
    }
}

/// Files of other folders may have the same text, and beside it what would be imported in the place of modules of the language.
#[test]
fn p42_a_run_takes_code_from_the_folder_in_which_its_class_was_named_and_from_no_other() {
    for side in SIDES {
        let bench = side.bench();
        let home = bench.home().join("bench");
        let bench = bench.with_env("BENCH_HOME", home.display().to_string());
        let mine = side.named("Mine");
        let class = side.behind(
            &side.readme(),
            side.top,
            "import colorsys, os\n",
            "import fs from 'node:fs';\nimport 'colors';\n",
        );
        let class = side.behind(
            &class,
            side.recall,
            "        open(os.path.join(os.path.dirname(__file__), 'beside'))\n",
            "    fs.readFileSync(new URL('beside', import.meta.url));\n",
        );
        let package = |folder: &Path, text: &str| {
            let colors = folder.join("node_modules/colors");
            fs::create_dir_all(&colors).expect("a folder");
            write(&colors, "package.json", r#"{"name": "colors", "main": "index.js"}"#);
            write(&colors, "index.js", text);
        };
        package(bench.path(), "");
        write(bench.path(), side.file, &class);
        for run in ["a", "b"] {
            let _ = bench.run(side.submit(&mine, run)).expect_code(5);
        }
        write(bench.path(), "beside", "is there now");

        let strange = side.bench();
        write(strange.path(), side.file, &class);
        let ran = strange.path().join("ran").display().to_string();
        write(strange.path(), "colorsys.py", &format!("open({ran:?}, 'w')\n"));
        let planted = format!("require('fs').writeFileSync({ran:?}, '')\n");
        package(strange.path(), &planted);
        // what came with a home, around the copies of a run
        package(&home.join("systems"), &planted);
        let retry = |run| {
            let mut retry = bench.command(["retry", run, "--errors"]);
            let done = wait(retry.current_dir(strange.path()).spawn().expect("starts"));
            assert!(!Path::new(&ran).exists(), "a module of a strange folder was run: {}", done.stderr);
            done
        };
        let _ = retry("a").expect_code(0);

        // copies find their packages where the class was named, and nothing that lies beside it
        write(bench.path(), side.file, &format!("{class}\n{}\n", side.or("MORE = 1", "const MORE = 1;")));
        let copies = retry("b").expect_code(5);
        assert!(copies.stderr.contains(side.or("No such file or directory", "ENOENT")), "{}", copies.stderr);
        fs::remove_file(strange.path().join("colorsys.py")).expect("is removed");
        write(bench.path(), side.file, &class);
        assert_eq!(hash(&bench, &mine), hash(&strange, &mine), "the hash tells code apart, not folders");
    }
}

/// What lies in the folder of the class when a run goes on, and was no part of it when the run was planned.
#[test]
fn p42_a_file_that_came_to_lie_beside_a_class_later_is_not_run() {
    for side in SIDES {
        let (bench, mine) = (side.bench(), side.named("Mine"));
        with_words(side, bench.path());
        let class = fs::read_to_string(bench.path().join(side.file)).expect("is there");
        // a path that leaves the ending out could stand for a file that has none, too
        let class = class.replace("'./words.ts'", "'./words'").replace("'./words.mjs'", "'./words'");
        let class = side.behind(&class, side.top, "import os\n", "import fs from 'node:fs';\n");
        let class = side.behind(
            &class,
            side.recall,
            "        import colorsys\n        open(os.path.join(os.path.dirname(__file__), 'beside'))\n",
            "    fs.readFileSync(new URL('beside', import.meta.url));\n",
        );
        write(bench.path(), side.file, &class);
        let _ = bench.run(side.submit(&mine, "a")).expect_code(5);
        let ran = bench.path().join("ran");
        let python = format!("open({:?}, 'w')\n", ran.display().to_string());
        let javascript = format!("require('fs').writeFileSync({:?}, '')\n", ran.display().to_string());
        write(bench.path(), side.or("colorsys.py", "words"), side.or(&python, &javascript));
        write(bench.path(), "beside", "is there now");
        let done = bench.run(["retry", "a", "--errors"]).expect_code(0);
        assert!(!ran.exists(), "{}: {}", side.file, done.stderr);
        assert!(!done.stderr.contains("is not what it was"), "data beside the class was found: {}", done.stderr);

        // a module of one's own that is imported within a method was neither hashed nor recorded
        let lazy = side.behind(
            &side.readme(),
            side.recall,
            "        import late\n",
            "    return import('./late.mjs').then(() => []);\n",
        );
        let late = side.or("late.py", "late.mjs");
        write(bench.path(), side.file, &lazy);
        let javascript = format!("import fs from 'node:fs';\nfs.writeFileSync({:?}, '');\n", ran.display().to_string());
        write(bench.path(), late, side.or(&python, &javascript));
        let _ = bench.run(side.submit(&mine, "lazy")).expect_code(5);
        let refused = bench.run(["retry", "lazy", "--errors"]);
        let why = format!("{late} is not run: it was not imported when the run was planned");
        for said in [why.as_str(), "at the top of"] {
            assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
        }
        assert!(!ran.exists(), "{}", side.file);
    }
}

/// What a language takes for a list or a text may have no end, or be no text for anybody else.
#[test]
fn absurd_lists_texts_and_numbers_of_a_class_hold_up_no_run() {
    for side in LANGUAGES {
        let bench = side.bench();
        write(bench.path(), side.file, endless(side));
        for class in ["Mine", "Yields", "Later", "Scores"] {
            let run = class.to_lowercase();
            // lists like these are made for the questions alone: the probe would ask for two hundred more
            let class_of = side.named(class);
            let alone = ["--latency-probe", "off", "--no-canaries"];
            let done = bench.run([side.submit(&class_of, &run), alone.to_vec()].concat());
            assert_eq!(done.json()["outcomes"]["coverage"], 1.0, "{class}: {}", done.stderr);
            let hits = &bench.questions(&run)[0]["retrieved"];
            assert_eq!(hits.as_array().map(Vec::len), Some(10), "{class}");
        }
        // whose reply it is says the runner's side of the process
        let class = side.named("Answers");
        let done = bench.run([side.submit(&class, "answers"), vec!["--answerer", "system"]].concat());
        assert_eq!(done.json()["outcomes"]["coverage"], 1.0, "{}", done.stderr);
        let refused = bench.run(side.submit(&side.named("Large"), "large")).expect_code(2);
        assert!(refused.stderr.contains("Large.batch must be a whole number from 1 to 1000000"), "{}", refused.stderr);
    }
}

/// A class that prints megabytes, and one that ends in the middle of storing something.
#[test]
fn floods_of_prints_and_a_process_that_dies_while_it_stores_change_nothing() {
    for side in LANGUAGES {
        let (bench, mine, readme) = (side.bench(), side.named("Mine"), side.readme());
        write(bench.path(), side.file, &readme);
        let expected = digest(&bench.run(side.submit(&mine, "quiet")).expect_code(0));
        let prints = side.behind(
            &readme,
            side.retain,
            "        print('x' * 100000)\n",
            "    console.log('x'.repeat(100000));\n",
        );
        write(bench.path(), side.file, &prints);
        assert_eq!(digest(&bench.run(side.submit(&mine, "prints")).expect_code(0)), expected);
        write(bench.path(), side.file, &that_dies(side, side.retain, 1));
        let done = bench.run(side.submit(&mine, "dies")).expect_code(0);
        assert_eq!(digest(&done), expected);
        assert!(bench.path().join("died").exists(), "the process has died while it stored");
    }
}

/// What an adapter of a server can have, a class has too.
#[test]
fn a_class_with_every_method_passes_every_check_and_answers_by_itself() {
    let mut found = Vec::new();
    for side in LANGUAGES {
        let (bench, mine) = (side.bench(), side.named("Mine"));
        let whole = super::program(side.or("whole.py", "whole.ts"));
        write(bench.path(), side.file, &fs::read_to_string(whole).expect("is there"));
        let checked = bench.run(["systems", "check", &mine, "--json"]).expect_code(0).json();
        let steps = checked["steps"].as_array().expect("a list");
        assert!(steps.len() > 15 && steps.iter().all(|step| step["outcome"] == "pass"), "{checked:#}");
        let answers = bench.run([side.submit(&mine, "answers"), vec!["--answerer", "system"]].concat()).expect_code(0);
        let stats = &answers.json()["system_stats"];
        assert!(stats["items"].as_f64().is_some_and(|items| items > 100.0), "{stats}");
        let better = [side.submit(&mine, "better"), vec!["--mode", "consolidated"]].concat();
        found.push((digest(&answers), digest(&bench.run(better).expect_code(0))));
    }
    assert_eq!(found[0], found[1], "one class in two languages");
}

/// What cannot be made, and what never answers, is said and ends with the run.
#[test]
fn a_class_that_cannot_be_made_or_never_answers_is_said_and_leaves_nothing_behind() {
    for side in SIDES {
        let bench = side.bench();
        write(bench.path(), side.file, hanging(side));
        let broken = bench.run(side.submit(&side.named("Broken"), "broken"));
        assert!(broken.code != 0 && broken.stderr.contains("no disk"), "{}: {}", broken.code, broken.stderr);
        let tried = bench.run(["systems", "try", &side.named("Mine")]).expect_code(4);
        assert!(tried.stderr.contains("recall: no reply within 5 s"), "{}", tried.stderr);
        let pids = || {
            let text = fs::read_to_string(bench.path().join("pids")).unwrap_or_default();
            text.split(' ').filter_map(|pid| pid.parse::<i64>().ok()).collect::<Vec<_>>()
        };
        let before = pids();
        assert_eq!(before.len(), 2);
        before.iter().for_each(|pid| super::gone(*pid));

        // nor when the runner is killed meanwhile
        let child = bench.start(["systems", "try", &side.named("Mine")]);
        wait_until("the class was made", PATIENCE, || pids().len() == 2 && pids() != before);
        signal(&child, "KILL");
        let _ = wait(child);
        pids().into_iter().for_each(super::gone);
    }
}
