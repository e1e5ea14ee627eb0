//! Local runs as a person sees them: submit, report, status, pause, cancel, resume, attach.

use std::{
    fs::File,
    process::Command,
    sync::mpsc,
    time::{Duration, Instant},
};

use bench_testkit::{
    bench::{Bench, signal, wait},
    provider::Provider,
};
use serde_json::Value;

const SMALL: [&str; 6] = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--json"];

#[test]
fn the_first_run_needs_nothing_and_says_what_it_found() {
    let bench = Bench::new();
    let done = bench.run(["submit", "--dataset", "locomo-sim", "--preset", "fair", "--run-id", "first"]).expect_code(0);
    for word in
        ["VALID", "demo answerer", "multi-hop", "temporal", "open-domain", "single-hop", "adversarial", "locomo-f1"]
    {
        assert!(done.stdout.contains(word), "'{word}' is missing in:\n{}", done.stdout);
    }
    let report = bench.report("first");
    assert_eq!(report["schema_version"], 4);
    assert_eq!(report["outcomes"]["sample"], 200);
    assert_eq!(report["outcomes"]["coverage"], 1.0);
    assert_eq!(report["headline"]["metric"], "locomo-f1");
    assert_eq!(report["headline"]["estimator"], "weighted");
    let (low, high) = (report["headline"]["ci95"]["low"].as_f64(), report["headline"]["ci95"]["high"].as_f64());
    assert!(low.is_some() && low < high, "a clustered interval: {low:?} {high:?}");
    let questions = bench.questions("first");
    assert_eq!(questions.len(), 200);
    for question in &questions {
        assert!(matches!(question["outcome"].as_str(), Some("scored" | "abstained")), "{question}");
        assert!(question["answer"].is_string() && question["gold"].is_string(), "{question}");
        assert!(question["retrieved"].as_array().is_some_and(|hits| hits.len() <= 10), "{question}");
        assert_eq!(question["trace_id"].as_str().map(str::len), Some(32));
    }
    let listed = bench.run(["list", "--json"]).expect_code(0).json();
    assert_eq!((&listed[0]["id"], &listed[0]["status"]), (&Value::from("first"), &Value::from("finished")));
    assert_eq!(bench.run(["report", "latest", "--format", "json"]).expect_code(0).json(), report);
}

#[test]
fn a_run_is_found_by_its_name_and_by_both_ends_of_its_id() {
    let bench = Bench::new();
    let submit = |more: &[&str]| bench.run(SMALL.iter().chain(more)).expect_code(0).json();
    let before = submit(&["--name", "before", "--tag", "nightly", "--run-id", "aaaa-1111"]);
    submit(&["--name", "after", "--system", "random", "--run-id", "aaaa-2222"]);
    let id_of = |selector: &str| {
        let report = bench.run(["report", selector, "--format", "json"]).expect_code(0).json();
        report["run"]["id"].as_str().expect("an id").to_owned()
    };
    assert_eq!(id_of("before"), "aaaa-1111");
    assert_eq!((id_of("2222"), id_of("aaaa-1")), ("aaaa-2222".to_owned(), "aaaa-1111".to_owned()));
    let _ = bench.run(["compare", "before", "after"]).expect_code(1);
    let unclear = bench.run(["report", "aaaa"]).expect_code(2);
    assert!(unclear.stderr.contains("more than one id (aaaa-2222, aaaa-1111"), "{}", unclear.stderr);
    submit(&["--name", "before", "--run-id", "bbbb"]);
    assert_eq!((id_of("before"), id_of("before@2")), ("bbbb".to_owned(), "aaaa-1111".to_owned()), "the newest first");
    let too_far = bench.run(["report", "before@3"]).expect_code(2);
    assert!(too_far.stderr.contains("2 runs have the name 'before'"), "{}", too_far.stderr);
    for refused in [["--name", ""], ["--name", "latest"], ["--tag", " "]] {
        let _ = bench.run(SMALL.iter().chain(&refused)).expect_code(2);
    }

    let _ = bench.run(["rename", "bbbb", "second try"]).expect_code(0);
    assert_eq!((id_of("second try"), id_of("before")), ("bbbb".to_owned(), "aaaa-1111".to_owned()));
    assert_eq!(bench.run(["tag", "bbbb", "x", "y", "x"]).expect_code(0).stdout, "x\ny\n");
    assert_eq!(bench.run(["tag", "bbbb", "y", "--remove"]).expect_code(0).stdout, "x\n");

    let listed = |flags: &[&str]| -> Vec<String> {
        let rows = bench.run(["list", "--json"].iter().chain(flags)).expect_code(0).json();
        rows.as_array().expect("rows").iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(
        (listed(&["--tag", "nightly"]), listed(&["--tag", "x"])),
        (vec!["aaaa-1111".to_owned()], vec!["bbbb".to_owned()])
    );
    assert_eq!(listed(&["--system", "random"]), ["aaaa-2222"]);
    assert_eq!(listed(&["--dataset", "locomo-sim", "--since", "1h", "-n", "2"]), ["bbbb", "aaaa-2222"]);
    assert!(listed(&["--dataset", "longmemeval"]).is_empty() && listed(&["--since", "2099-01-01"]).is_empty());
    let verdict = before["run"]["verdict"].as_str().expect("a verdict");
    assert!(listed(&["--verdict", verdict]).contains(&"aaaa-1111".to_owned()));
    let fork = bench.run(["rescore", "aaaa-1111", "--scorer", "contains", "--run-id", "fork"]);
    let _ = fork.expect_code(0);
    let rows = bench.run(["list", "--json"]).expect_code(0).json();
    assert_eq!((&rows[0]["source"], &rows[1]["source"]), (&Value::from("judge of aaaa-1111"), &Value::Null));
}

#[test]
fn equal_runs_have_equal_digests_and_other_seeds_have_others() {
    let bench = Bench::new();
    let digest = |more: &[&str]| {
        let done = bench.run(SMALL.iter().chain(more)).expect_code(0).json();
        done["result_digest"].as_str().expect("a digest").to_owned()
    };
    let first = digest(&[]);
    assert_eq!(first, digest(&["--concurrency", "1"]), "concurrency changes nothing");
    assert_eq!(first, digest(&["--set", "worker.slots=3"]), "slots change nothing");
    assert_ne!(first, digest(&["--set", "sim.seed=7"]), "another seed is another benchmark");
    assert_ne!(first, digest(&["--top-k", "1"]), "another k is another run");
}

#[test]
fn controls_stand_beside_the_result_in_their_order() {
    let bench = Bench::new();
    // without the unanswerable questions: their evidence misleads by design, so it helps nobody
    let args =
        ["submit", "--dataset", "locomo-sim", "--preset", "fair", "--exclude-category", "adversarial", "--controls"];
    let report = bench.run(args.iter().chain(&["--json"])).expect_code(0).json();
    let control = |name: &str| {
        let all = report["controls"].as_array().expect("controls");
        all.iter()
            .find(|c| c["name"] == name)
            .and_then(|c| c["value"].as_f64())
            .unwrap_or_else(|| panic!("no control {name}: {report}"))
    };
    let headline = report["headline"]["value"].as_f64().expect("a headline");
    assert!(control("oracle") > headline, "the gold evidence is the ceiling: {} against {headline}", control("oracle"));
    assert!(control("random") < headline, "search beats chance: {headline} against {}", control("random"));
    assert!(control("none") < headline);
    let listed = bench.run(["list", "--json"]).expect_code(0).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "controls are not listed by themselves");
}

#[test]
fn p30_the_same_submit_attaches_and_another_is_refused_with_its_differences() {
    let bench = Bench::new();
    let first = bench.run(SMALL.iter().chain(&["--run-id", "job"])).expect_code(0).json();
    let again = bench.run(SMALL.iter().chain(&["--run-id", "job"])).expect_code(0).json();
    assert_eq!(first["result_digest"], again["result_digest"]);
    let other = bench.run(SMALL.iter().chain(&["--run-id", "job", "--top-k", "3"])).expect_code(2);
    assert!(other.stderr.contains("system.top_k: 10 there, 3 here"), "{}", other.stderr);
}

#[test]
fn p21_a_run_has_one_owner_and_others_may_look() {
    let provider = Provider::start(&["--latency-ms", "300"]);
    let bench = provider.bench();
    let owner = bench.start(provider.submit(&["--run-id", "owned", "--concurrency", "4"]));
    provider.wait_for_requests(5);
    let second = bench.run(["resume", "owned"]).expect_code(2);
    assert!(second.stderr.contains(&format!("is running, pid {}", owner.id())), "{}", second.stderr);
    let status = bench.run(["status", "owned", "--json"]).expect_code(0).json();
    assert_eq!(status["status"], "running");
    let other = bench.run(SMALL).expect_code(0).json();
    assert_eq!(other["outcomes"]["coverage"], 1.0, "another run in the same store is not disturbed");
    assert_eq!(wait(owner).code, 0);
}

#[test]
fn p23_pause_stops_calls_within_a_second_and_resume_ends_with_the_same_digest() {
    let undisturbed = Provider::start(&[]);
    let expected = undisturbed.digest(&[]);

    let provider = Provider::start(&["--latency-ms", "150"]);
    let bench = provider.bench();
    let owner = bench.start(provider.submit(&["--run-id", "held", "--concurrency", "4"]));
    provider.wait_for_requests(10);
    let _ = bench.run(["pause", "held"]).expect_code(0);
    let paused = Instant::now();
    let owner = wait(owner).expect_code(3);
    assert!(owner.stderr.contains("bench-coord resume held"), "{}", owner.stderr);
    let last = provider.last_request_at();
    assert!(
        last < paused + Duration::from_millis(1100),
        "a call started {:?} after the pause",
        last.duration_since(paused)
    );
    assert_eq!(bench.run(["status", "held", "--json"]).expect_code(0).json()["status"], "paused");
    let resumed = bench.run(["resume", "held", "--json"]).expect_code(0).json();
    assert_eq!(resumed["result_digest"].as_str(), Some(expected.as_str()));
    assert_eq!(resumed["run"]["resumed_times"], 1);
    assert_eq!(provider.repeated_requests(), 0, "what was in flight at the pause was finished and kept");
}

#[test]
fn p23_cancel_ends_a_run_and_reopen_brings_it_back() {
    let provider = Provider::start(&["--latency-ms", "150"]);
    let bench = provider.bench();
    let owner = bench.start(provider.submit(&["--run-id", "ended", "--concurrency", "4", "--controls"]));
    provider.wait_for_requests(10);
    let _ = bench.run(["cancel", "ended"]).expect_code(0);
    let _ = wait(owner).expect_code(3);
    let refused = bench.run(["resume", "ended"]).expect_code(2);
    assert!(refused.stderr.contains("--reopen"), "{}", refused.stderr);
    let report = bench.run(["report", "ended", "--format", "json"]).expect_code(0).json();
    assert_eq!(report["run"]["verdict"], "INVALID", "a part of a run is no result");
    let outcomes = &report["outcomes"];
    let sum: i64 =
        ["scored", "abstained", "infra_error", "not_run"].iter().map(|k| outcomes[*k].as_i64().expect("a count")).sum();
    assert_eq!(Some(sum), outcomes["sample"].as_i64());
    // the simulator judges by lot: with controls beside it, the run is INVALID
    let reopened = bench.run(["resume", "ended", "--reopen", "--concurrency", "32", "--json"]).expect_code(5).json();
    assert_eq!(reopened["outcomes"]["coverage"], 1.0);
    assert_eq!(reopened["controls"].as_array().map(Vec::len), Some(3), "what was cancelled with it is back too");
}

#[test]
fn interrupting_once_finishes_what_is_in_flight_and_stays_resumable() {
    let provider = Provider::start(&["--latency-ms", "200"]);
    let bench = provider.bench();
    let owner = bench.start(provider.submit(&["--run-id", "stopped", "--concurrency", "4"]));
    provider.wait_for_requests(8);
    signal(&owner, "INT");
    let owner = wait(owner).expect_code(3);
    assert!(owner.stderr.contains("bench-coord resume stopped"), "{}", owner.stderr);
    let resumed = bench.run(["resume", "latest", "--json"]).expect_code(0).json();
    assert_eq!(resumed["outcomes"]["coverage"], 1.0);
    assert_eq!(provider.repeated_requests(), 0, "calls in flight were finished and stored");
}

#[test]
fn an_import_that_still_reads_its_file_ends_at_the_first_signal() {
    let bench = Bench::new();
    let pipe = bench.path().join("answers.jsonl");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    for name in ["TERM", "INT"] {
        let import = bench.start(["import", "--dataset", "locomo-sim", "--answers", "answers.jsonl"]);
        let ((tell, told), pipe) = (mpsc::channel(), pipe.clone());
        // is open once somebody reads, and never says anything
        std::thread::spawn(move || tell.send(File::options().write(true).open(pipe)));
        let silent = told.recv_timeout(Duration::from_secs(60)).expect("it is read").expect("it is open");
        signal(&import, name);
        let ended = wait(import).expect_code(3);
        assert!(ended.stderr.contains("interrupted"), "{name}: {}", ended.stderr);
        drop(silent);
    }
}

#[test]
fn import_gives_other_peoples_answers_our_intervals() {
    let bench = Bench::new();
    let _ = bench.run(["submit", "--dataset", "locomo-sim", "--preset", "full", "--run-id", "own"]).expect_code(0);
    let own = bench.report("own");
    let lines: Vec<String> = bench
        .questions("own")
        .iter()
        .map(|q| {
            let retrieved: Vec<&Value> = q["retrieved"].as_array().expect("hits").iter().map(|h| &h["id"]).collect();
            serde_json::json!({"question_id": q["question_id"], "answer": q["answer"], "retrieved": retrieved})
                .to_string()
        })
        .collect();
    std::fs::write(bench.path().join("answers.jsonl"), lines.join("\n")).expect("writable");
    let imported =
        bench.run(["import", "--dataset", "locomo-sim", "--answers", "answers.jsonl", "--json"]).expect_code(0).json();
    assert_eq!(imported["headline"]["value"], own["headline"]["value"]);
    assert_eq!(imported["headline"]["ci95"], own["headline"]["ci95"]);
    assert_eq!(imported["retrieval"], own["retrieval"]);

    std::fs::write(
        bench.path().join("graded.jsonl"),
        format!("{}\n", serde_json::json!({"question_id": "nobody:1", "score": 1.0})),
    )
    .expect("writable");
    let unknown = bench.run(["import", "--dataset", "locomo-sim", "--answers", "graded.jsonl"]).expect_code(2);
    assert!(unknown.stderr.contains("line 1") && unknown.stderr.contains("nobody:1"), "{}", unknown.stderr);
}

#[test]
fn a_panic_in_a_task_is_a_failed_attempt_and_changes_no_result() {
    let bench = Bench::new();
    let args = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--json", "--system"];
    let expected = bench.run(args.iter().chain(&["bm25"])).expect_code(0).json();
    let faults = ["faulty", "--set", "faulty.panic=0.2", "--set", "faulty.error=0.2", "--run-id", "faulty"];
    let faulty = bench.run(args.iter().chain(&faults)).expect_code(0);
    assert_eq!(faulty.json()["result_digest"], expected["result_digest"]);
    let attempts: Vec<u64> = bench.questions("faulty").iter().filter_map(|q| q["attempts"].as_u64()).collect();
    assert!(attempts.iter().any(|n| *n > 2), "some questions were tried again: {attempts:?}");
    let given_up = ["faulty", "--set", "faulty.panic=1", "--retries", "0"];
    let broken = bench.run(args.iter().chain(&given_up)).expect_code(5).json();
    assert_eq!(broken["outcomes"]["infra_error"], 50);
    assert_eq!(broken["errors"]["panic"], 50);
}

#[test]
fn p23_cancel_now_drops_calls_in_flight() {
    let provider = Provider::start(&["--latency-ms", "20000"]);
    let bench = provider.bench();
    let owner = bench.start(provider.submit(&["--run-id", "dropped", "--concurrency", "4"]));
    provider.wait_for_requests(4);
    // an owner that waits for the calls of a run that was paused hears of it too
    let _ = bench.run(["pause", "dropped"]).expect_code(0);
    std::thread::sleep(Duration::from_millis(800));
    let _ = bench.run(["cancel", "dropped", "--now"]).expect_code(0);
    let cancelled = Instant::now();
    let _ = wait(owner).expect_code(3);
    assert!(cancelled.elapsed() < Duration::from_secs(5), "the owner waited {:?} for calls", cancelled.elapsed());
}
