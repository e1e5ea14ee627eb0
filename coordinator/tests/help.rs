//! The first screen, and what every verb answers to `--help`.

use std::process::Command;

fn run(args: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_bench-coord")).args(args).env_clear().output().expect("bench-coord runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_first_screen_shows_where_to_begin() {
    let (code, help, _) = run(&["--help"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(help);
}

#[test]
fn every_verb_explains_itself() {
    let verbs = [
        "submit",
        "resume",
        "pause",
        "cancel",
        "retry",
        "status",
        "list",
        "watch",
        "report",
        "trace",
        "score",
        "import",
        "estimate",
        "datasets",
        "systems",
        "config",
        "doctor",
        "serve",
        "dead",
        "migrate",
        "restore",
        "gc",
        "backup",
        "completions",
    ];
    for verb in verbs {
        let (code, help, _) = run(&[verb, "--help"]);
        assert_eq!(code, 0, "{verb}");
        assert!(help.contains("Usage: bench-coord"), "{verb}:\n{help}");
    }
}

#[test]
fn unknown_verbs_and_flags_are_bad_usage() {
    for args in [&["sumbit"][..], &["submit", "--datasett", "x"], &["report"], &[]] {
        let (code, _, error) = run(args);
        assert_eq!(code, 2, "{args:?}: {error}");
        assert!(error.contains("Usage"), "{args:?}: {error}");
    }
}

#[test]
fn completions_are_made_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = run(&["completions", shell]);
        assert_eq!(code, 0);
        assert!(script.contains("bench-coord") && script.contains("submit"), "{shell}");
    }
}
