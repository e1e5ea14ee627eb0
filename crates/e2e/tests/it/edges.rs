//! Small mistakes and small accidents: each ends in words that say what to do, and none in an exit code that says success.

use std::{
    fs,
    process::{Command, Stdio},
};

use bench_testkit::bench::{Bench, Done, binary, signal, wait};
use bench_testkit::provider::Provider;
use serde_json::json;

const SMALL: [&str; 9] =
    ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--limit", "2", "--latency-probe", "off"];

fn into(mut command: Command, output: impl Into<Stdio>) -> Done {
    wait(command.stdout(output).spawn().expect("starts"))
}

/// A full disk takes nothing: no verb that prints a result says that it did.
#[test]
fn what_a_full_disk_did_not_take_is_no_success() {
    let bench = Bench::new();
    let _ = bench.run(SMALL).expect_code(0);
    let verbs: &[&[&str]] = &[
        &["--help"],
        &["--version"],
        &["submit", "--help"],
        &["version"],
        &["list"],
        &["status", "--json"],
        &["report", "latest"],
        &["report", "latest", "--format", "md"],
        &["show", "latest"],
        &["export", "latest"],
        &["config", "show"],
        &["datasets", "list"],
        &["systems", "list"],
        &["completions", "bash"],
        &["man"],
        &["score", "--list"],
        &["import", "--forms"],
        &["estimate", "--dataset", "locomo-sim"],
    ];
    for verb in verbs {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("is there");
        let done = into(bench.command(*verb), full);
        assert_eq!(done.code, 4, "{verb:?}: {}", done.stderr);
        assert!(
            done.stderr.contains("could not be written") || done.stderr.contains("cannot be written"),
            "{verb:?}: {}",
            done.stderr
        );
    }
}

/// Who closes a pipe knows: nothing is said, and it is no success all the same.
#[test]
fn a_closed_pipe_is_no_success_and_no_noise() {
    let bench = Bench::new();
    let _ = bench.run(SMALL).expect_code(0);
    for verb in [&["list"][..], &["report", "latest"], &["submit", "--help"], &["score", "--list"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let done = into(bench.command(verb), writer);
        assert_eq!((done.code, done.stderr.as_str()), (4, ""), "{verb:?}");
    }
}

#[test]
fn a_queue_or_store_of_an_unknown_kind_is_refused_with_those_that_there_are() {
    let bench = Bench::new();
    for (flag, url, known) in [
        ("--store", "mysql://u:secret@h/db", "known are sqlite:, postgres:"),
        ("--store", "redis://h", "known are sqlite:, postgres:"),
        ("--queue", "redis://u:secret@h", "amqp:"),
        ("--queue", "mysql://h/db", "amqp:"),
    ] {
        for verb in [&["status"][..], &["submit", "--dataset", "locomo-sim"], &["resume", "latest"]] {
            let refused = bench.run(verb.iter().chain(&[flag, url])).expect_code(2).stderr;
            assert!(refused.contains(known) && !refused.contains("secret"), "{verb:?} {url}: {refused}");
        }
    }
}

#[test]
fn counts_that_are_none_are_refused_in_words() {
    let bench = Bench::new();
    for (count, words) in
        [("-5", "no number below 0"), ("1.5", "is no whole number"), ("99999999999999999999", "is too large")]
    {
        for verb in [
            &["submit", "--dataset", "locomo-sim", "--limit"][..],
            &["list", "--limit"],
            &["show", "latest", "--worst"],
            &["datasets", "show", "locomo-sim", "--questions", "--most"],
        ] {
            let refused = bench.run(verb.iter().chain(&[count])).expect_code(2).stderr;
            assert!(refused.contains(words), "{verb:?} {count}: {refused}");
        }
        let set = format!("run.limit={count}");
        let refused = bench.run(["submit", "--dataset", "locomo-sim", "--set", &set]).expect_code(2).stderr;
        assert!(refused.contains("expected a whole number"), "{refused}");
    }
    for (program, args, words) in [
        ("bench-worker", ["--concurrency", "1.5"], "is no whole number"),
        ("bench-worker", ["--drain", "-5"], "'-5': no number below 0"),
        ("bench-sim", ["--latency-ms", "-5"], "'-5': no number below 0"),
    ] {
        let refused = Command::new(binary(program)).args(args).output().expect("starts");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(words), "{program} {args:?}: {said}");
    }
    let refused = bench.run(["submit", "--dataset", "locomo-sim", "--set", "recall.k=5"]).expect_code(2).stderr;
    assert!(refused.contains("did you mean 'run.top_k'?"), "{refused}");
    for flag in ["--name", "--tag"] {
        let refused = bench.run(["submit", "--dataset", "locomo-sim", flag, " "]).expect_code(2).stderr;
        assert!(refused.contains("it is empty"), "{refused}");
    }
}

/// Of a machine without a role and without variables nothing can be pushed: that is said, and not what a cloud's server answered.
#[test]
fn an_archive_without_an_account_says_so() {
    // nobody answers there
    let bench = Bench::new().with_env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9");
    let _ = bench.run(SMALL).expect_code(0);
    let refused = bench.run(["archive", "push", "latest", "--archive", "s3://bucket/runs"]);
    assert!(refused.stderr.contains("AWS_ACCESS_KEY_ID"), "{}", refused.stderr);
    assert_eq!(refused.code, 2);
}

#[test]
fn after_a_kill_status_says_resume() {
    let provider = Provider::start(&["--latency-ms", "200"]);
    let bench = provider.bench();
    let owner = bench.start(provider.submit(&["--run-id", "killed", "--concurrency", "4"]));
    provider.wait_for_requests(8);
    signal(&owner, "KILL");
    let _ = wait(owner);
    let status = bench.run(["status", "killed"]).expect_code(0).stdout;
    assert!(status.contains("interrupted") && status.contains("`bench-coord resume killed`"), "{status}");
}

/// Published answers often leave a category out: the flag that does so is named, and a field of another name is taken.
#[test]
fn a_file_that_leaves_a_category_out_is_told_the_flag() {
    let bench = Bench::new();
    let dataset = ["--dataset", "locomo-sim"];
    let questions =
        bench.run(["datasets", "show", "locomo-sim", "--questions", "--gold", "--most", "100000", "--json"]);
    let questions = questions.expect_code(0).json();
    let lines: Vec<String> = questions["questions"]
        .as_array()
        .expect("questions")
        .iter()
        .filter(|question| question["category"] != "adversarial")
        .map(|question| json!({"question_id": question["question_id"], "my_answer": question["gold"]}).to_string())
        .collect();
    fs::write(bench.path().join("answers.jsonl"), lines.join("\n")).expect("is written");
    let import = ["import", "--answers", "answers.jsonl", "--field", "answer=my_answer", "--system", "theirs"];
    let told = bench.run(import.iter().chain(&dataset)).stderr;
    assert!(told.contains("--exclude-category adversarial"), "{told}");
    let quiet = bench.run(import.iter().chain(&dataset).chain(&["--exclude-category", "adversarial"]));
    let quiet = quiet.expect_code(0).stderr;
    assert!(!quiet.contains("--exclude-category"), "{quiet}");
}

/// A model of this machine needs no key and no price.
#[test]
fn a_model_of_ollama_is_asked_where_it_listens() {
    let bench = Bench::new();
    let refused = bench.run(SMALL.iter().chain(&["--answerer", "ollama:llama3.1", "--set", "models.look_first=true"]));
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("127.0.0.1:11434"), "{}", refused.stderr);
    let provider = Provider::start(&[]);
    let bench = Bench::new().with_env("BENCH_ANSWERER_BASE_URL", provider.base_url());
    let done = bench.run(SMALL.iter().chain(&["--answerer", "ollama:llama3.1", "--json"])).expect_code(0).json();
    assert_eq!(done["usage"]["total"]["usd"], 0.0, "{}", done["usage"]);
}

/// A simulated model needs nothing but the programs, and does not outlive its run.
#[test]
fn a_fake_model_is_simulated_for_as_long_as_its_run() {
    let bench = Bench::new();
    let models = ["--answerer", "fake", "--judge", "fake", "--run-id", "a", "--json"];
    let done = bench.run(SMALL.iter().chain(&models)).expect_code(0).json();
    assert_eq!(done["usage"]["total"]["usd"], 0.0, "{}", done["usage"]);
    assert!(done["usage"]["total"]["calls"].as_u64().is_some_and(|calls| calls >= 4), "{}", done["usage"]);
    let again =
        bench.run(SMALL.iter().chain(&["--answerer", "fake", "--judge", "fake", "--json"])).expect_code(0).json();
    assert_eq!(again["result_digest"], done["result_digest"], "as deterministic as ever");
}
