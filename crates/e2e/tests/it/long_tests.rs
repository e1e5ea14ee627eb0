//! Tests that run every night and before a release, and not with every change: `long_tests.txt` names them, with what holds the
//! same more quickly. `scripts/test.sh` leaves them out unless `BENCH_TEST_FAULTS=long`; `cargo test` leaves out nothing.

use std::{collections::BTreeSet, process::Command};

const LONG: &str = include_str!("long_tests.txt");

/// A name that no test has would leave out nothing, and one with which others begin would leave them out too.
#[test]
fn every_name_is_that_of_one_test_and_says_what_holds_the_same() {
    let program = std::env::current_exe().expect("this program");
    let listed = Command::new(program).arg("--list").output().expect("lists its tests");
    let listed = String::from_utf8(listed.stdout).expect("text");
    let tests: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let mut once = BTreeSet::new();
    for line in LONG.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, held_by) =
            line.split_once(" ").unwrap_or_else(|| panic!("{line} says nothing of what holds the same"));
        assert!(once.insert(name), "{name} stands twice");
        assert!(!held_by.trim().is_empty(), "{name} says nothing of what holds the same");
        let meant: Vec<&&str> = tests.iter().filter(|test| test.contains(name)).collect();
        assert_eq!(meant, [&name], "{name} has to be one test");
    }
    assert!(!once.is_empty());
}
