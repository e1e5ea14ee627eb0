//! Tests that run every night and before a release, and not with every change: `long_tests.txt` names them, with what holds the
//! same more quickly. `scripts/test.sh` leaves them out unless `BENCH_TEST_FAULTS=long`; `cargo test` leaves out nothing.

use std::{collections::BTreeSet, process::Command};

const LONG: &str = include_str!("long_tests.txt");

/// A name that no test has would leave out nothing, and one with which others begin would leave them out too. A test that holds the
/// same has to run with every change.
#[test]
fn every_name_is_that_of_one_test_and_says_what_holds_the_same() {
    let program = std::env::current_exe().expect("this program");
    let listed = Command::new(program).arg("--list").output().expect("lists its tests");
    let listed = String::from_utf8(listed.stdout).expect("text");
    let tests: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let mut once = BTreeSet::new();
    let lines = || LONG.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines() {
        let (name, held_by) =
            line.split_once(" ").unwrap_or_else(|| panic!("{line} says nothing of what holds the same"));
        assert!(once.insert(name), "{name} stands twice");
        assert!(!held_by.trim().is_empty(), "{name} says nothing of what holds the same");
        let meant: Vec<&&str> = tests.iter().filter(|test| test.contains(name)).collect();
        assert_eq!(meant, [&name], "{name} has to be one test");
    }
    assert!(!once.is_empty());
    for (name, held_by) in lines().filter_map(|line| line.split_once(" ")) {
        let words = held_by.split_whitespace().map(|word| word.trim_end_matches(','));
        for word in words.filter(|word| word.contains("::")) {
            // a test, or a module of tests
            let of_module = format!("{word}::");
            let is_meant = |test: &str| test == word || test.starts_with(&of_module);
            let runs_always = tests.iter().any(|test| is_meant(test) && !once.contains(*test));
            assert!(runs_always, "{name} is held by {word}, which is no test that runs with every change");
        }
    }
}
