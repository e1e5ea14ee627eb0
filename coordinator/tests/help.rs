//! The first screen, and what every verb answers to `--help`.

use std::{collections::BTreeSet, process::Command};

use bench_coord::cli::Cli;
use clap::CommandFactory as _;

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
fn every_verb_explains_itself_and_stands_on_the_first_screen() {
    let (_, first, _) = run(&["--help"]);
    let words: BTreeSet<&str> = first.split(|c: char| !(c.is_ascii_lowercase() || c == '-')).collect();
    for verb in Cli::command().get_subcommands().filter(|verb| !verb.is_hide_set()).map(clap::Command::get_name) {
        assert!(words.contains(verb), "{verb} is not on the first screen:\n{first}");
        let (code, help, _) = run(&[verb, "--help"]);
        assert_eq!(code, 0, "{verb}");
        assert!(help.contains("Usage: bench-coord"), "{verb}:\n{help}");
    }
}

/// A flag that several verbs have says what it does at this one.
#[test]
fn the_help_of_a_verb_is_about_that_verb() {
    let says = |verb: &str, words: &str| {
        let (_, help, _) = run(&[verb, "--help"]);
        help.split_whitespace().collect::<Vec<_>>().join(" ").contains(words)
    };
    assert!(says("submit", "(1,2,3) are a matrix"));
    for verb in ["import", "judge-audit"] {
        assert!(says(verb, "--dataset-seed") && !says(verb, "are a matrix"), "{verb}");
    }
    for verb in ["submit", "matrix", "retry"] {
        assert!(says(verb, "--max-cost <USD|Ncalls|Ntokens>"), "{verb}");
    }
    assert!(says("banks", "list, show, remove, export, import, fetch"));
    assert!(says("config", "take a .bench that came with this folder as your own"));
}

#[test]
fn unknown_verbs_and_flags_are_bad_usage() {
    for args in [&["sumbit"][..], &["submit", "--datasett", "x"], &["report"], &[]] {
        let (code, _, error) = run(args);
        assert_eq!(code, 2, "{args:?}: {error}");
        assert!(error.contains("Usage"), "{args:?}: {error}");
    }
}

/// Names come from the registries, and where a file may be given instead, files are offered too.
#[test]
fn completions_are_made_for_the_usual_shells() {
    for (shell, expected) in [
        (
            "bash",
            &["compgen -W \"quick fair fair-2 full\"", "compgen -W \"locomo locomo-sim longmemeval longmemeval@s "][..],
        ),
        (
            "zsh",
            &[
                ":NAME:_bench-coord_datasets' \\",
                ":NAME|FILE:_bench-coord_systems' \\",
                "_bench-coord_datasets() {\n    _alternative 'names:datasets:(locomo locomo-sim longmemeval longmemeval@s ",
                "'--preset=[",
            ],
        ),
        ("fish", &[" -r -F -a \"locomo\\t''\nlocomo-sim\\t''\n", " -r -F -a \"bm25\\t''\n", " -r -f -a \"quick\\t''"]),
        ("elvish", &["submit"]),
        ("powershell", &["submit"]),
    ] {
        let (code, script, _) = run(&["completions", shell]);
        assert_eq!(code, 0);
        for part in expected {
            assert!(script.contains(part), "{shell}: {part}");
        }
    }
}

/// Pages say what the help says, of verbs within verbs too, and a folder gets one for each.
#[test]
fn manual_pages_are_those_of_the_verbs() {
    let (code, page, _) = run(&["man", "datasets", "show"]);
    assert_eq!(code, 0);
    for part in [".TH bench-coord-datasets-show 1", ".SH SYNOPSIS", "What is known about one", "\\-\\-dataset\\-path"] {
        assert!(page.contains(part), "{part}:\n{page}");
    }
    let (code, _, error) = run(&["man", "datasets", "shwo"]);
    assert_eq!((code, error.contains("there is no verb 'datasets shwo'")), (2, true), "{error}");

    let folder = tempfile::tempdir().expect("temporary folder");
    let pages = folder.path().join("man1");
    let (code, _, error) = run(&["man", "--output-dir", pages.to_str().expect("a path")]);
    assert_eq!(code, 0, "{error}");
    let program = std::fs::read_to_string(pages.join("bench-coord.1")).expect("the program's page");
    for (verb, page) in [("submit", "bench-coord-submit.1"), ("archive push", "bench-coord-archive-push.1")] {
        let text = std::fs::read_to_string(pages.join(page)).expect(page);
        assert!(text.contains(".SH OPTIONS"), "{verb}:\n{text}");
    }
    assert!(program.contains("bench\\-coord\\-submit(1)"), "{program}");
    assert!(!pages.join("bench-coord-probe.1").exists(), "what the help hides has no page");
}

/// What bash offers at the end of a line, whose words are given as bash breaks them, in the folder of the script.
fn offered(script: &std::path::Path, words: &[&str]) -> Vec<String> {
    const ASK: &str = r#"
        source "$1"; COMP_LINE="$2"; COMP_POINT=${#COMP_LINE}; cur="$3"; prev="$4"; shift 4
        of=$(complete -p bench-coord); of=${of#*-F }; of=${of%% *}
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        "$of" bench-coord "$cur" "$prev"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let (last, prev) = (words[words.len() - 1], words[words.len() - 2]);
    // bash ends words at `@`, and leaves it before the last one
    let cur = if prev == "@" { format!("@{last}") } else { last.to_owned() };
    let line = words.join(" ").replace(" @ ", "@").replace(" @", "@").replace(" = ", "=");
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-c", ASK, "bash"]).arg(script).args([&line, &cur, prev]).args(words);
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_bench-coord")).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a PATH"));
    bash.env_clear().env("PATH", path).current_dir(script.parent().expect("a folder"));
    let output = bash.output().expect("bash runs");
    assert!(output.stderr.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_verbs_their_flags_and_names() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("completions.bash");
    std::fs::write(&path, run(&["completions", "bash"]).1).expect("writes");
    let offered = |words: &[&str]| offered(&path, words);
    assert_eq!(offered(&["bench-coord", "subm"]), ["submit"]);
    // after a verb: clap's own script is dead there, since the name of the program holds a hyphen
    assert_eq!(offered(&["bench-coord", "submit", "--dataset-"]), ["--dataset-seed", "--dataset-path"]);
    assert_eq!(offered(&["bench-coord", "judge-audit", "--dataset-p"]), ["--dataset-path"]);
    assert_eq!(offered(&["bench-coord", "archive", "traj"]), ["trajectory"]);
    assert_eq!(offered(&["bench-coord", "submit", "--preset", ""]), ["quick", "fair", "fair-2", "full"]);
    assert_eq!(offered(&["bench-coord", "submit", "--dataset", "locomo"]), ["locomo", "locomo-sim"]);
    assert_eq!(offered(&["bench-coord", "estimate", "-b", "long-h"]), ["long-horizon", "long-horizon-compat"]);
    assert_eq!(offered(&["bench-coord", "datasets", "show", "precision-"]), ["precision-sim"]);
    assert_eq!(offered(&["bench-coord", "submit", "--system", "b"]), ["bm25"]);
    assert!(offered(&["bench-coord", "submit", "-p", ""]).contains(&"mem0".to_owned()), "shipped adapters too");
    assert_eq!(offered(&["bench-coord", "submit", "--dataset", "./mi"]), [""], "bash offers files by itself");
    // a flag that is tied to its value, which bash takes apart
    assert_eq!(offered(&["bench-coord", "submit", "--preset", "="]), ["quick", "fair", "fair-2", "full"]);
    assert_eq!(offered(&["bench-coord", "submit", "--preset", "=", "fa"]), ["fair", "fair-2"]);
    // names of variants, of which bash wants what begins with the `@`
    assert_eq!(offered(&["bench-coord", "submit", "--dataset", "personamem", "@"]), ["@32k", "@128k", "@1m"]);
    assert_eq!(offered(&["bench-coord", "submit", "--dataset", "personamem", "@", "1"]), ["@128k", "@1m"]);
    assert_eq!(offered(&["bench-coord", "submit", "--dataset", "=", "personamem", "@", "1"]), ["@128k", "@1m"]);
    assert_eq!(offered(&["bench-coord", "man", "subm"]), ["submit"]);
    let of_one = offered(&["bench-coord", "submit", "--dataset", "locomo-sim", "--category", ""]);
    assert!(of_one.contains(&"temporal".to_owned()) && of_one.len() < 10, "{of_one:?}");
    assert_eq!(
        offered(&["bench-coord", "submit", "--dataset", "beam", "@", "1m", "--preset", "f"]),
        ["fair", "fair-2", "full"]
    );
}

/// What is known only when it is asked for.
#[test]
fn bash_offers_runs_categories_and_settings() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("completions.bash");
    std::fs::write(&path, run(&["completions", "bash"]).1).expect("writes");
    let offered = |words: &[&str]| offered(&path, words);
    assert!(offered(&["bench-coord", "report", ""]).contains(&"--full".to_owned()), "there are no runs");
    assert!(!folder.path().join(".bench").exists(), "who looks for runs makes no store");
    for (id, name) in [("before-1", "first try"), ("after-1", "after")] {
        let mut submit = Command::new(env!("CARGO_BIN_EXE_bench-coord"));
        submit.args(["submit", "--dataset", "locomo-sim", "--sample", "1", "--max-banks", "1", "--no-canaries"]);
        submit.args(["--run-id", id, "--name", name, "--display", "none"]).env_clear().current_dir(folder.path());
        assert!(submit.output().expect("runs").status.success());
    }
    assert_eq!(offered(&["bench-coord", "report", ""]), ["after", "after-1", "before-1", "latest"]);
    assert_eq!(offered(&["bench-coord", "report", "b"]), ["before-1"]);
    assert_eq!(offered(&["bench-coord", "compare", "before-1", "af"]), ["after", "after-1"]);
    assert_eq!(offered(&["bench-coord", "archive", "push", "--texts", "never", "be"]), ["before-1"]);
    assert_eq!(offered(&["bench-coord", "gate", "after", "--baseline", "be"]), ["before-1"]);
    assert_eq!(offered(&["bench-coord", "gate", "after", "--baseline", "=", "be"]), ["before-1"]);
    assert_eq!(offered(&["bench-coord", "report", "after", "--ful"]), ["--full"]);
    assert_eq!(offered(&["bench-coord", "show", "be"]), ["before-1"]);
    assert!(!offered(&["bench-coord", "show", "after", ""]).contains(&"before-1".to_owned()), "a question is no run");
    assert_eq!(offered(&["bench-coord", "submit", "--exclude-category", "adversarial_"]), ["adversarial_distractor"]);
    assert_eq!(offered(&["bench-coord", "submit", "--set", "run.top"]), ["run.top_k="]);
    assert_eq!(offered(&["bench-coord", "submit", "--name", "b"]), [""], "a name is free");
}
