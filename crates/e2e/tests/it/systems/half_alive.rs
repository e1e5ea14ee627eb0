//! Started systems that are half alive: they start, say that they are healthy, and fail at what they are asked; at everything
//! or now and then. And many that start at the same time.

use std::path::{Path, PathBuf};

use bench_testkit::bench::Bench;

use super::{
    assert_ended, logs,
    started::{adapter, command},
    submit,
};

/// A secret of the person that a system is started with.
const SECRET: &str = "open-sesame-1234";

/// While this file is there, the memory server refuses every n-th memory.
fn refuses(bench: &Bench, every: &str) -> PathBuf {
    let file = bench.path().join("refuses");
    std::fs::write(&file, every).expect("can be written");
    file
}

fn failing(bench: &Bench, file: &Path, per: &str) -> String {
    let env = format!("env: {{MEMORY_FAILS: '{}', MINE_KEY: '${{env:MINE_SECRET}}'}}", file.display());
    adapter(bench.path(), &format!("{{{}, {env}, per: {per}}}", command()))
}

#[test]
fn p39_a_system_that_fails_at_everything_stops_the_run_with_its_own_words_and_no_third_instance() {
    let bench = Bench::new().with_env("MINE_SECRET", SECRET);
    let file = refuses(&bench, "1");
    let mine = failing(&bench, &file, "bank");
    let done = bench.run(submit(&mine, "broken")).expect_code(3);
    assert_eq!(logs(&bench, "broken", "mine").len(), 2, "no third instance: {}", done.stderr);
    let warned = done.stderr.lines().find(|line| line.contains("fails at the first it is asked")).expect("is warned");
    let stopped = done.stderr.lines().find(|line| line.contains("no other instance is started")).expect("is stopped");
    for said in [warned, stopped] {
        assert!(said.contains("ERROR no such module: vec0, asked with [key]"), "the reason stands in its log: {said}");
        assert!(said.contains("system.log") && said.contains("status 500"), "{said}");
    }
    assert!(stopped.contains("mend it") && stopped.contains("resume"), "what to do: {stopped}");
    assert!(!done.stderr.contains(SECRET) && !done.stderr.contains("[31m"), "{}", done.stderr);
    let status = bench.run(["status", "broken"]).expect_code(0).stdout;
    assert!(status.contains("no such module: vec0") && !status.contains(SECRET), "{status}");
    assert_ended(&bench.path().join(".bench"));
    // nothing is lost: once it is mended, the run goes on
    std::fs::remove_file(file).expect("is there");
    let report = bench.run(["resume", "broken", "--json"]).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    assert_ended(&bench.path().join(".bench"));
}

#[test]
fn p39_a_system_that_cannot_repeat_and_fails_now_and_then_is_given_up_with_what_would_help() {
    let bench = Bench::new().with_env("MINE_SECRET", SECRET);
    let file = refuses(&bench, "90");
    let mine = failing(&bench, &file, "run");
    let done = bench.run([submit(&mine, "now-and-then"), vec!["--set", "run.retries=50"]].concat()).expect_code(5);
    let helps = "`can: {repeat: true}` in the adapter";
    let said = done.stderr.lines().filter(|line| line.contains("at most 8 times") && line.contains(helps));
    assert_eq!(said.count(), 1, "said once: {}", done.stderr);
    let report = done.json();
    assert_eq!(report["errors"]["system_cannot_repeat"], report["outcomes"]["infra_error"], "{report}");
    let questions = bench.questions("now-and-then");
    let failed = questions.iter().find(|question| question["outcome"] == "infra_error").expect("one has failed");
    let error = failed["error"].to_string();
    for part in ["was begun 8 times", "status 500", helps, "retry --errors"] {
        assert!(error.contains(part), "{error}");
    }
    // and what failed begins anew: the generations that were used up do not count any more
    refuses(&bench, "100000000");
    let mended = bench.run(["retry", "now-and-then", "--errors", "--json"]).expect_code(0).json();
    assert_eq!(mended["outcomes"]["coverage"], 1.0, "{mended}");
}

#[test]
fn p39_instances_start_as_few_at_a_time_as_the_machine_or_the_file_says() {
    let cores = std::thread::available_parallelism().expect("is known").get();
    for (run, more, most) in [("one-by-one", ", at_once: 1", 1), ("machine", "", cores)] {
        let bench = Bench::new();
        let start = format!("{{{}, env: {{MEMORY_STARTS: '0.2'}}, per: bank{more}}}", command());
        let mine = adapter(bench.path(), &start);
        let five = |word: &str| if word == "2" { "5".to_owned() } else { word.to_owned() };
        let args: Vec<String> = submit(&mine, run).into_iter().map(five).collect();
        let _ = bench.run(args).expect_code(0);
        let logs = logs(&bench, run, "mine");
        assert_eq!(logs.len(), 5, "one for each bank");
        let at = |log: &String, word: &str| -> f64 {
            let line = log.lines().find_map(|line| line.strip_prefix(word)).expect("is said");
            line.trim().parse().expect("a time")
        };
        let starts: Vec<(f64, f64)> = logs.iter().map(|log| (at(log, "begins"), at(log, "listens"))).collect();
        for (begun, _) in &starts {
            let starting = starts.iter().filter(|(from, until)| from <= begun && begun < until).count();
            assert!(starting <= most, "{starting} start at the same time: {starts:?}");
        }
    }
}
