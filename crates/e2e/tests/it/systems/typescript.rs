//! Classes of TypeScript and JavaScript: what they have that others do not.

use std::{fs, path::Path, process::Command};

use bench_testkit::{
    bench::{Bench, submit_sim},
    node::{NODE, OLD_NODE, folder_of},
    python::Packages,
};

fn write(bench: &Bench, name: &str, text: &str) {
    let path = bench.path().join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("is made");
    fs::write(path, text).expect("is written");
}

fn submit<'a>(system: &'a str, run: &'a str) -> Vec<&'a str> {
    submit_sim(&["--preset", "quick", "--max-banks", "5", "--system", system, "--run-id", run])
}

fn bench(release: Packages) -> Bench {
    Bench::new().with_env("PATH", format!("{}:/usr/bin:/bin", folder_of(release).display()))
}

#[test]
fn mistakes_in_a_class_are_exit_2_before_anything_is_made() {
    let bench = bench(NODE);
    let methods = "retain(bank, items) {} recall(bank, query, k) { return []; }";
    let file = format!(
        "export class Mine {{ {methods} }}\nexport class Add {{ add(bank, items) {{}} }}\n\
         export class Short {{ retain(items) {{}} recall(bank, query, k) {{}} }}\n\
         export class Asks {{ constructor(url) {{}} {methods} }}\nexport class Odd {{ static unit = 'word'; {methods} }}\n\
         export class Bm25 {{ {methods} }}\nexport class Sets {{ static settings = {{ top: null }}; {methods} }}\n\
         export class Named {{ static name = 'Two Words'; {methods} }}\n\
         export class Filters {{ static filters = ['tags']; {methods} }}\n"
    );
    write(&bench, "mine.ts", &file);
    write(&bench, "lacks.ts", "import 'no-such-package';\n");
    write(&bench, "broken.ts", "export class {\n");
    write(&bench, "types.ts", "import { Item } from 'bench-coord';\nexport const one: Item[] = [];\n");
    write(&bench, "enums.ts", "enum Kind { One }\n");
    write(&bench, "away.ts", "import '../elsewhere.ts';\n");
    let key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD";
    write(&bench, "keyed.ts", &format!("const KEY = '{key}';\nexport class Mine {{ {methods} }}\n"));
    for (system, said) in [
        ("no.ts:Mine", "no.ts: there is no such file"),
        ("mine:Mine", "a class is named by its file: mine.ts:Mine"),
        (
            "mine.ts:Nine",
            "mine.ts exports no class 'Nine'; the classes that it exports: Add, Asks, Bm25, Filters, Mine",
        ),
        ("mine.ts", "which class of mine.ts? Write mine.ts:NAME; the classes that it exports: "),
        ("mine.ts:Add", "Add has no method retain: write retain(bank, items) { … } (is it what you call 'add'?)"),
        ("mine.ts:Short", "Short.retain must be retain(bank, items), it is retain(items)"),
        ("mine.ts:Asks", "Asks must be made without arguments: name what it is to be given in static settings"),
        ("mine.ts:Odd", "Odd.unit must be \"turn\" or \"session\", it is 'word'"),
        ("mine.ts:Bm25", "'bm25' is the name of another system: give the class one of its own, static name ="),
        ("mine.ts:Sets", "Sets.settings.top must be a number, a text, true or false, a list of them"),
        ("mine.ts:Named", "give the class one, static name = \"mine\""),
        ("mine.ts:Filters", "recall has no parameter that brings them: write recall(bank, query, k, asked) { … }"),
        ("lacks.ts:Mine", "Cannot find package 'no-such-package'"),
        ("lacks.ts:Mine", "install it beside the file: npm install NAME"),
        ("broken.ts:Mine", "broken.ts cannot be imported: "),
        ("types.ts:Mine", "of what is only a type say so: import { type NAME }"),
        ("enums.ts:Mine", "enum is not supported"),
        ("away.ts:Mine", "'../elsewhere.ts' leads out of "),
        ("keyed.ts:Mine", "keyed.ts holds what looks like a key"),
        ("keyed.ts:Mine", "process.env.NAME"),
    ] {
        let refused = bench.run(submit(system, "a")).expect_code(2);
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
        assert!(!refused.stderr.contains(key), "{}", refused.stderr);
    }
    let nowhere = Bench::new().with_env("PATH", "/nowhere");
    write(&nowhere, "mine.ts", &file);
    let refused = nowhere.run(submit("mine.ts:Mine", "a")).expect_code(2);
    assert!(refused.stderr.contains("there is no node: PATH has none"), "{}", refused.stderr);
    assert!(!bench.path().join(".bench/bench.db").exists(), "nothing was made");
}

/// What a project is made of lies above the file, and a package.json says what goes where: it does not go with the run.
#[test]
fn modules_of_a_project_go_along_and_what_its_package_json_explains_does_not() {
    for (release, end) in [(NODE, "ts"), (OLD_NODE, "mjs")] {
        let bench = bench(release);
        write(
            &bench,
            "package.json",
            r##"{"name": "mine", "imports": {"#words": "./other.mjs"}, "exports": "./other.mjs"}"##,
        );
        write(&bench, &format!("words.{end}"), "export const most = 3;\n");
        write(&bench, "parts.cjs", "module.exports = { least: require('./least.json') };\n");
        write(&bench, "least.json", "1\n");
        let class = "import { most } from '../words';
import parts from '../parts.cjs';
export class Mine {
  retain(bank, items) {}
  recall(bank, query, k) { return [`${most} ${parts.least}`]; }
}
";
        let file = format!("systems/mine.{end}");
        write(&bench, &file, class);
        let done = bench.run(submit(&format!("{file}:Mine"), "a"));
        let code = &done.json()["spec"]["system_settings"]["adapter"]["code"];
        let files: Vec<&str> = code["files"].as_object().into_iter().flatten().map(|(path, _)| path.as_str()).collect();
        let words = format!("words.{end}");
        assert_eq!(files, ["least.json", "parts.cjs", file.as_str(), words.as_str()]);
        assert_eq!(bench.questions("a")[0]["retrieved"][0]["text"], "3 1");
        write(&bench, "other.mjs", "export const most = 4;\n");
        for import in ["#words", "mine"] {
            write(&bench, &file, &class.replace("../words", import));
            let refused = bench.run(submit(&format!("{file}:Mine"), "c")).expect_code(2);
            assert!(refused.stderr.contains("a package.json, which does not go with the run"), "{}", refused.stderr);
        }
    }
}

/// A program that a class starts and leaves behind holds neither its replies nor its end.
#[test]
fn a_program_that_is_started_has_no_way_to_the_replies_and_goes_with_the_run() {
    let bench = bench(NODE);
    let text = "import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
export class Mine {
  constructor() {
    fs.writeFileSync('open', spawnSync('/bin/sh', ['-c', 'ls /proc/self/fd']).stdout);
    const sleeps = spawn('/bin/sleep', ['600'], { stdio: 'inherit' });
    fs.writeFileSync('pid', String(sleeps.pid));
  }
  retain(bank, items) {}
  recall(bank, query, k) { return Array.from({ length: k }, (_, n) => `${query} ${n}`); }
}
";
    write(&bench, "mine.ts", text);
    let _ = bench.run(["systems", "try", "mine.ts:Mine"]).expect_code(0);
    let open = fs::read_to_string(bench.path().join("open")).expect("was made");
    // the three that every program has, and what lists the folder; what the runner has inherited lies above
    let open: Vec<&str> = open.split_whitespace().filter(|number| number.len() == 1).collect();
    assert_eq!(open, ["0", "1", "2", "3"]);
    let pid = fs::read_to_string(bench.path().join("pid")).expect("was made");
    super::gone(pid.parse().expect("a number"));
}

/// An older node reads TypeScript by the package that newer ones are built with.
#[test]
fn an_old_node_says_what_it_needs_to_read_types() {
    let bench = bench(OLD_NODE);
    write(&bench, "mine.ts", "export class Mine { retain(bank: string) {} recall() {} }\n");
    let refused = bench.run(submit("mine.ts:Mine", "a")).expect_code(2);
    for said in ["node 20.18.0 reads no TypeScript: 22.18 or newer does", "install the package amaro beside the file"] {
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    // one of the same interface that takes out a little
    write(&bench, "node_modules/amaro/package.json", r#"{"name": "amaro", "main": "index.js"}"#);
    let strips = "exports.transformSync = (source) => ({ code: source.replaceAll(': string', '') });\n";
    write(&bench, "node_modules/amaro/index.js", strips);
    let read = bench.run(["systems", "hash", "mine.ts:Mine"]);
    assert!(read.stderr.contains("retain must be retain(bank, items), it is retain(bank)"), "{}", read.stderr);
}

#[test]
fn the_package_for_editors_has_what_the_runner_brings_along() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../typescript");
    let text = |name: &str| fs::read_to_string(package.join(name)).expect("is there");
    let (types, code) = (text("index.d.ts"), text("index.mjs"));
    for class in ["System", "TryAgain"] {
        assert!(
            types.contains(&format!("export declare class {class}")) && code.contains(&format!("export class {class}"))
        );
    }
    assert!(types.contains("export declare function meterUrl(") && code.contains("export function meterUrl("));
    let given = text("process.mjs");
    let operations = given.split("const GIVEN = {").nth(1).and_then(|rest| rest.split("};").next()).expect("a table");
    for line in operations.lines().filter_map(|line| line.trim().split_once(':')) {
        assert!(types.contains(&format!("\n  {}?(", line.0)), "{}: no type", line.0);
    }
    let version: serde_json::Value = serde_json::from_str(&text("package.json")).expect("is JSON");
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn p34_calls_for_a_bank_go_to_an_address_that_names_it() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../typescript/index.mjs");
    let text = format!(
        "import {{ meterUrl }} from {:?};\nconsole.log([meterUrl('a b-g3-i5f'), meterUrl('try')].join(' '));\n\
         delete process.env.BENCH_METER_URL;\nconsole.log(meterUrl('bench-1-g1', 'elsewhere'), meterUrl('bench-1-g1'));",
        library.to_str().expect("utf-8")
    );
    let mut node = Command::new(folder_of(NODE).join("node"));
    node.args(["--input-type=module", "-e", &text]).env("BENCH_METER_URL", "http://127.0.0.1:7/m/r1/v1");
    let said = node.output().expect("node runs");
    let at = "http://127.0.0.1:7/m/r1";
    assert_eq!(
        String::from_utf8_lossy(&said.stdout),
        format!("{at}/a%20b/3/v1 {at}/v1\nelsewhere undefined\n"),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
}

#[test]
fn init_writes_a_class_of_typescript_that_works() {
    let bench = bench(NODE);
    let done = bench.run(["init", "--typescript"]).expect_code(0);
    assert_eq!(done.stdout, "bench.toml\nmine.ts\nbench-coord.d.ts\n");
    assert!(done.stderr.contains("next: `bench-coord systems try mine.ts:Mine`"), "{}", done.stderr);
    let tried = bench.run(["systems", "try", "mine.ts:Mine"]).expect_code(0).stdout;
    assert!(tried.contains("Brunswick") && tried.contains("found 1 hit"), "{tried}");
    let flags = ["--system", "mine.ts:Mine", "--limit", "2", "--latency-probe", "off", "--no-canaries"];
    let worst = ["--set", "mine.best_first=false"];
    let _ = bench.run(["submit"].iter().chain(&flags).chain(&worst)).expect_code(0);
    let both = bench.run(["init", "--typescript", "--python"]).expect_code(2);
    assert!(both.stderr.contains("cannot be used with"), "{}", both.stderr);
}
