//! The shipped workflows of every night and every week, as they are written, on machines of which none has seen the store of another.

use std::{path::Path, process::Command};

use bench_testkit::{
    bench::{Bench, Done, wait},
    provider::Provider,
};

const NIGHTLY: &str = include_str!("../../../../deploy/github/nightly.yml");
const WEEKLY: &str = include_str!("../../../../deploy/github/weekly.yml");

/// Commands of a workflow, each in its words; a line that begins with a flag goes on with the one before.
fn commands(workflow: &str) -> Vec<Vec<&str>> {
    let mut commands: Vec<Vec<&str>> = Vec::new();
    let mut goes_on = false;
    for line in workflow.lines().map(str::trim) {
        let line = line.strip_prefix("run: ").unwrap_or(line);
        if let Some(words) = line.strip_prefix("bench-coord ") {
            commands.push(words.split_whitespace().collect());
            goes_on = true;
        } else if goes_on && line.starts_with("--") {
            commands.last_mut().expect("it goes on").extend(line.split_whitespace());
        } else {
            goes_on = false;
        }
    }
    commands
}

/// The variables of both that the program reads.
fn machine(provider: &Provider) -> Bench {
    for workflow in [NIGHTLY, WEEKLY] {
        assert!(workflow.contains("\n  BENCH_HOME: .bench\n"), "the home is named");
    }
    provider.bench().with_env("BENCH_HOME", ".bench")
}

/// Runs a verb of the nightly workflow.
fn step(bench: &Bench, verb: &str, night: &str) -> Done {
    step_of(NIGHTLY, bench, verb, night)
}

/// Runs a verb of a workflow as the shell would, over data that need no file, and little of it.
fn step_of(workflow: &str, bench: &Bench, verb: &str, run: &str) -> Done {
    let all = commands(workflow);
    let words = all.iter().find(|words| words[0] == verb).unwrap_or_else(|| panic!("no {verb} in the workflow"));
    let words = words.iter().take_while(|word| **word != ">>").map(|word| match *word {
        "locomo" => "locomo-sim".to_owned(),
        "locomo,longmemeval@s" => "locomo-sim,basic".to_owned(),
        "fair" => "quick".to_owned(),
        word => word.trim_matches('"').replace("$GITHUB_RUN_ID", run),
    });
    wait(bench.command(words).spawn().expect("bench-coord starts"))
}

/// What a cache does: a folder of one machine is on another.
fn restore(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(copied.expect("cp is there").success());
}

#[test]
fn every_week_a_matrix_runs_and_another_attempt_pays_for_nothing_twice() {
    let verbs: Vec<&str> = commands(WEEKLY).iter().map(|words| words[0]).collect();
    assert_eq!(verbs, ["submit", "report"], "what is run here is all that the workflow runs");
    let provider = Provider::start(&[]);
    let first = machine(&provider);
    let _ = step_of(WEEKLY, &first, "submit", "1").expect_code(0);
    let said = step_of(WEEKLY, &first, "report", "1").expect_code(0).stdout;
    assert!(said.contains("4 of 4 cells") && said.contains("All pairs"), "{said}");
    assert!(first.path().join("report/report.html").is_file(), "a page to keep");
    let paid = provider.count("requests");
    let again = machine(&provider);
    restore(&first.path().join(".bench"), &again.path().join(".bench"));
    let _ = step_of(WEEKLY, &again, "submit", "1").expect_code(0);
    assert_eq!(provider.count("requests"), paid);
}

#[test]
fn every_night_goes_on_from_what_another_machine_has_left() {
    let verbs: Vec<&str> = commands(NIGHTLY).iter().map(|words| words[0]).collect();
    assert_eq!(verbs, ["submit", "report", "gate"], "what is run here is all that the workflow runs");
    let provider = Provider::start(&[]);
    let first = machine(&provider);
    let _ = step(&first, "submit", "1").expect_code(0);
    assert!(step(&first, "report", "1").expect_code(0).stdout.contains("nightly-1"));
    let paid = provider.count("requests");

    // another attempt, with the store of the first in a folder of another name: it pays for nothing twice
    let again = machine(&provider);
    restore(&first.path().join(".bench"), &again.path().join(".bench"));
    let _ = step(&again, "submit", "1").expect_code(0);
    assert!(step(&again, "report", "1").expect_code(0).stdout.contains("nightly-1"));
    let more = provider.count("requests") - paid;
    assert!(more <= 2, "{more} requests beside a look at each model");
    assert!(again.path().join("report/report.json").is_file(), "kept for the next night");

    // the next night has a report of the last one and no store, or the store of an attempt that was cut off
    for with_store in [false, true] {
        let next = machine(&provider);
        restore(&again.path().join("report"), &next.path().join("before"));
        if with_store {
            restore(&again.path().join(".bench"), &next.path().join(".bench"));
        }
        let _ = step(&next, "submit", "2").expect_code(0);
        let gated = step(&next, "gate", "2");
        assert_eq!(gated.code, 0, "{}\n{}", gated.stdout, gated.stderr);
    }

    // without the name of the home the store of another machine wants a word
    let unnamed = provider.bench();
    restore(&first.path().join(".bench"), &unnamed.path().join(".bench"));
    let refused = step(&unnamed, "submit", "1").expect_code(2);
    assert!(refused.stderr.contains("BENCH_HOME=.bench"), "{}", refused.stderr);
}
