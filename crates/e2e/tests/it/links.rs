//! Links in folders that somebody else may have made: nothing is written, made or removed where they lead, unless a person has said it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use bench_testkit::bench::{Bench, Done, wait};

const SUBMIT: [&str; 9] =
    ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--run-id", "nightly-1"];

/// A folder of its user's own, with files that have the names of results.
fn victim(bench: &Bench) -> PathBuf {
    let victim = bench.path().join("victim");
    fs::create_dir_all(victim.join("nightly-1")).expect("writable");
    for file in ["report.md", "index.html", "nightly-1/report.md"] {
        fs::write(victim.join(file), "precious").expect("writable");
    }
    victim
}

/// All files below a folder, with what they hold.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("readable").flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path)),
            path => drop(found.insert(path.clone(), fs::read(&path).expect("readable"))),
        }
    }
    found
}

fn named(bench: &Bench, home: &str, verb: &[&str]) -> Done {
    wait(bench.command(verb).env("BENCH_HOME", home).spawn().expect("starts"))
}

#[test]
fn nothing_in_a_home_of_a_strange_folder_leads_elsewhere() {
    let fetch = ["archive", "fetch", "nightly-1", "--archive", "kept"];
    let import = ["import", "--dataset", "locomo-sim", "--answers", "answers.jsonl"];
    for (name, to) in [
        ("runs", ""),
        ("runs/nightly-1", ""),
        ("load", ""),
        ("banks/.downloads", ""),
        ("datasets", ""),
        ("datasets/locomo", ""),
        ("bench.db", "report.md"),
        ("bench.db-wal", "report.md"),
        ("bench.db.nightly-1.lock", "report.md"),
    ] {
        let bench = Bench::new();
        let victim = victim(&bench);
        fs::create_dir(bench.path().join("kept")).expect("writable");
        let link = bench.path().join(".bench").join(name);
        fs::create_dir_all(link.parent().expect("a folder")).expect("writable");
        symlink(victim.join(to), &link).expect("is linked");
        let before = files(&victim);
        for verb in
            [&SUBMIT[..], &["report", "--index"], &["migrate"], &["list"], &["delete", "latest"], &fetch, &import]
        {
            let refused = bench.run(verb).expect_code(2).stderr;
            let leads = format!(".bench/{name} leads to ");
            for said in [leads.as_str(), "BENCH_HOME=.bench says so"] {
                assert!(refused.contains(said), "{name}, {verb:?}: '{said}' is missing in {refused}");
            }
        }
        for verb in [["config", "show"], ["complete", "runs"], ["models", "list"]] {
            let _ = bench.run(verb).expect_code(0);
        }
        let found = bench.run(["doctor"]).expect_code(4).stdout;
        assert!(found.contains(&format!("FAILED  home: .bench/{name} leads to ")), "{name}: {found}");
        assert_eq!(found.contains("BENCH_DATASETS_DIR"), name.starts_with("datasets"), "{name}: {found}");
        assert!(link.is_symlink() && files(&victim) == before, "{name}");
    }
}

#[test]
fn a_home_that_is_a_link_wants_a_word_or_a_name() {
    let bench = Bench::new();
    let victim = victim(&bench);
    symlink(&victim, bench.path().join(".bench")).expect("is linked");
    let before = files(&victim);
    for verb in [&SUBMIT[..], &["report", "--index"], &["migrate"], &["list"]] {
        let refused = bench.run(verb).expect_code(2).stderr;
        for said in [".bench leads to ", "`bench-coord config trust`", "BENCH_HOME=.bench"] {
            assert!(refused.contains(said), "{verb:?}: '{said}' is missing in {refused}");
        }
    }
    let found = bench.run(["doctor"]).expect_code(4).stdout;
    assert!(found.contains("FAILED  home: .bench leads to "), "{found}");
    assert_eq!(files(&victim), before);
    // a word once, and it is its user's, until it leads elsewhere
    let _ = bench.run(["config", "trust"]).expect_code(0);
    let _ = bench.run(SUBMIT).expect_code(0);
    assert!(victim.join("runs/nightly-1/report.json").is_file());
    let other = bench.path().join("other");
    fs::create_dir(&other).expect("writable");
    fs::remove_file(bench.path().join(".bench")).expect("is removed");
    symlink(&other, bench.path().join(".bench")).expect("is linked");
    let _ = bench.run(["list"]).expect_code(2);
    // the word was for the way that led there, and for no folder that shows the same one
    let strange = bench.path().join("strange");
    fs::create_dir(&strange).expect("writable");
    symlink(&victim, strange.join(".bench")).expect("is linked");
    let refused = wait(bench.command(["delete", "nightly-1", "--yes"]).current_dir(&strange).spawn().expect("starts"));
    assert!(refused.expect_code(2).stderr.contains(".bench leads to "));

    // who names a home means it, wherever it leads: another disk
    let whole = bench.path().join(".bench").display().to_string();
    for home in [".bench", whole.as_str()] {
        let _ = named(&bench, home, &SUBMIT).expect_code(0);
        assert!(other.join("runs/nightly-1/report.json").is_file(), "{home}");
        fs::remove_dir_all(&other).and_then(|()| fs::create_dir(&other)).expect("is emptied");
    }
    // and in their own folder nobody else makes links
    for verb in [&SUBMIT[..], &["retry", "nightly-1"]] {
        let _ = wait(bench.command(verb).env("HOME", bench.path()).spawn().expect("starts")).expect_code(0);
    }
}

#[test]
fn a_link_in_a_home_that_its_user_has_allowed_is_used_until_it_leads_elsewhere() {
    let bench = Bench::new();
    let [disk, other] = ["disk", "other"].map(|name| bench.path().join(name));
    let runs = bench.path().join(".bench/runs");
    for made in [&disk, &other, &bench.path().join(".bench")] {
        fs::create_dir(made).expect("writable");
    }
    symlink(&disk, &runs).expect("is linked");
    let refused = bench.run(SUBMIT).expect_code(2).stderr;
    assert!(refused.contains("`bench-coord config trust` allows it"), "{refused}");
    let trusted = bench.run(["config", "trust"]).expect_code(0).stderr;
    assert!(trusted.contains(".bench/runs leads to "), "{trusted}");
    let _ = bench.run(SUBMIT).expect_code(0);
    assert!(disk.join("nightly-1/report.json").is_file());
    let _ = bench.run(["list"]).expect_code(0);
    fs::remove_file(&runs).and_then(|()| symlink(&other, &runs)).expect("is linked");
    let refused = bench.run(["list"]).expect_code(2).stderr;
    assert!(refused.contains(".bench/runs leads to "), "{refused}");
    assert_eq!(fs::read_dir(&other).expect("is read").count(), 0);
}

#[test]
fn a_page_of_all_runs_takes_the_place_of_a_link() {
    let bench = Bench::new();
    let victim = victim(&bench);
    let _ = bench.run(SUBMIT).expect_code(0);
    let before = files(&victim);
    let page = bench.path().join(".bench/runs/index.html");
    for to in [victim.join("index.html"), victim.join("report.md")] {
        let _ = fs::remove_file(&page);
        symlink(to, &page).expect("is linked");
        let _ = bench.run(["report", "--index"]).expect_code(0);
        assert!(page.is_file() && !page.is_symlink());
        assert_eq!(files(&victim), before);
    }
}

#[test]
fn nothing_is_pushed_through_a_link_of_an_archive() {
    let bench = Bench::new();
    let _ = bench.run(SUBMIT).expect_code(0);
    for linked in ["runs", "index"] {
        let (kept, victim) = (bench.path().join(format!("kept-{linked}")), victim(&bench));
        fs::create_dir(&kept).expect("writable");
        symlink(&victim, kept.join(linked)).expect("is linked");
        let before = files(&victim);
        let archive = format!("kept-{linked}");
        for verb in [&["archive", "push"][..], &["archive", "push", "nightly-1"]] {
            let refused = bench.run([verb, &["--archive", &archive]].concat()).expect_code(2).stderr;
            assert!(refused.contains(&format!("kept-{linked}/{linked} is a link")), "{refused}");
        }
        assert_eq!(files(&victim), before, "{linked}");
    }
    // an archive that is named by a link is that archive
    fs::create_dir(bench.path().join("disk")).expect("writable");
    symlink(bench.path().join("disk"), bench.path().join("kept")).expect("is linked");
    let _ = bench.run(["archive", "push", "nightly-1", "--archive", "kept"]).expect_code(0);
    assert!(bench.path().join("disk/index").is_dir());
}
