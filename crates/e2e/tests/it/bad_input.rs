//! Bad input: one clear line, the right exit code, nothing started.

use bench_testkit::{
    bench::{Bench, submit_sim},
    provider::Provider,
};

fn refused(bench: &Bench, args: &[&str], words: &[&str]) {
    let done = bench.run(args).expect_code(2);
    for word in words {
        assert!(done.stderr.contains(word), "'{word}' is missing for {args:?} in:\n{}", done.stderr);
    }
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
}

#[test]
fn unknown_names_are_refused_with_the_nearest_and_where_to_look() {
    let bench = Bench::new();
    refused(&bench, &["submit", "--dataset", "locomo-smi"], &["locomo-sim", "datasets list"]);
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--system", "bm52"], &["bm25"]);
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--preset", "fiar"], &["fair"]);
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--answerer", "opanai:gpt-4o"], &["openai"]);
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--category", "multihop"], &["multi-hop"]);
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--question-id", "nobody:1"], &["nobody:1"]);
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--scorer", "locomo-f2"], &["locomo-f1"]);
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--set", "sim.sed=1"], &["sim.sed"]);
    refused(&bench, &["submit"], &["--dataset"]);
    refused(&bench, &["resume", "nothing"], &["nothing", "bench-coord list"]);
    refused(&bench, &["status", "latest"], &["bench-coord submit"]);
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--detach"], &["--detach"]);
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--run-id", "../up"], &["run id"]);
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--votes", "2"], &["odd"]);
    for params in [r#"{"model": "o1-pro"}"#, r#"{"n": 128}"#, r#"{"stream": true}"#, r#"{"tools": []}"#] {
        let set = format!("answerer.params={params}");
        let args = ["submit", "--dataset", "locomo-sim", "--answerer", "openai:gpt-4o-mini", "--set", &set];
        refused(&bench, &args, &["answerer.params holds", "take it out"]);
    }
    for params in [r#"{"api_base": "https://evil.example"}"#, r#"{"fallbacks": ["o1-pro"]}"#, r#"{"speed": "fast"}"#] {
        let set = format!("answerer.params={params}");
        let args = ["submit", "--dataset", "locomo-sim", "--answerer", "openai:gpt-4o-mini", "--set", &set];
        refused(&bench, &args, &["answerer.params holds", "accounts.openai.parameters"]);
        let name = params.split('"').nth(1).unwrap_or_default();
        let through = format!("accounts.openai.parameters={name}");
        refused(&bench, &[&args[..], &["--set", &through]].concat(), &["OPENAI_API_KEY"]);
    }
    let several = ["submit", "--dataset", "locomo-sim", "--answerer", "openai:o1-pro,gpt-4o-mini"];
    refused(&bench, &several, &["o1-pro,gpt-4o-mini", "is no name of one model"]);
    let key = r#"answerer.params={"extra_headers": {"Authorization": "Bearer opensesame123"}}"#;
    let args = ["submit", "--dataset", "locomo-sim", "--answerer", "openai:gpt-4o-mini", "--set", key];
    refused(&bench, &args, &["answerer.params.extra_headers.Authorization holds what looks like a key"]);
    let judges = ["--judge", "openai:gpt-4o-mini"].repeat(17);
    refused(&bench, &[&["submit", "--dataset", "locomo-sim"], &*judges].concat(), &["17 judges", "at most 15"]);
    refused(
        &bench,
        &["submit", "--dataset", "locomo-sim", "--queue", "amqp://localhost"],
        &["sqlite:", "--queue memory:"],
    );
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--queue", "kafka://localhost"], &["queue"]);
    assert!(!bench.path().join(".bench/runs/nothing").exists());
    let listed = bench.run(["list", "--json"]).expect_code(0);
    assert_eq!(listed.json().as_array().map(Vec::len), Some(0), "nothing was started");
}

#[test]
fn a_missing_key_and_an_unpriced_model_are_refused_before_the_first_call() {
    let bench = Bench::new();
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--answerer", "openai:gpt-4o-mini"], &["OPENAI_API_KEY"]);
    let estimate = ["estimate", "--dataset", "locomo-sim", "--answerer", "openai:gpt-4o-mini", "--json"];
    let estimate = bench.run(estimate).expect_code(0).json();
    assert_eq!(estimate["calls"], 200, "an estimate needs no key");
    assert!(estimate["usd"]["low"].as_f64() < estimate["usd"]["expected"].as_f64());
    assert!(estimate["usd"]["expected"].as_f64() < estimate["usd"]["worst"].as_f64());
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    refused(
        &bench,
        &["submit", "--dataset", "locomo-sim", "--answerer", "openai:my-own-model"],
        &["--price", "--unpriced-ok"],
    );
    assert_eq!(provider.stats()["requests"], 0);
    let free = submit_sim(&["--preset", "quick", "--answerer", "openai:my-own-model", "--unpriced-ok"]);
    assert_eq!(bench.run(free).expect_code(0).json()["total"]["usd"], 0.0);
}

#[test]
fn broken_files_name_their_place() {
    let bench = Bench::new();
    let file = bench.path().join("broken.json");
    std::fs::write(&file, "[{\"sample_id\": \"x\",\n \"qa\": [{\"question\": 5}]}]").expect("writable");
    refused(
        &bench,
        &["submit", "--dataset", "locomo", "--dataset-path", "broken.json", "--allow-modified-dataset"],
        &["broken.json", "line 2"],
    );
    refused(
        &bench,
        &["submit", "--dataset", "locomo", "--dataset-path", "broken.json"],
        &["--allow-modified-dataset", "sha256"],
    );
    refused(&bench, &["submit", "--dataset", "locomo", "--dataset-path", "nowhere.json"], &["nowhere.json"]);
    refused(
        &bench,
        &["submit", "--dataset", "locomo-sim", "--dataset-path", "broken.json"],
        &["locomo-sim is generated and reads no file", "`--dataset FILE` reads one of yours"],
    );
    std::fs::write(bench.path().join("bench.toml"), "[run]\ntop_kk = 3\n").expect("writable");
    refused(&bench, &["submit", "--dataset", "locomo-sim"], &["bench.toml:2", "top_k"]);
}

#[test]
fn places_that_cannot_be_written_are_found_before_any_work() {
    let bench = Bench::new();
    std::fs::write(bench.path().join("file"), "").expect("writable");
    refused(
        &bench,
        &["submit", "--dataset", "locomo-sim", "--output-dir", "file/below"],
        &["file/below", "--output-dir"],
    );
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--store", "sqlite:file/below/bench.db"], &["file/below"]);
    refused(&bench, &["submit", "--dataset", "locomo-sim", "--store", "mysql://x"], &["mysql"]);
}

#[test]
fn a_damaged_store_is_a_clear_error_and_no_panic() {
    let bench = Bench::new();
    let _ = bench.run(["submit", "--dataset", "locomo-sim", "--preset", "quick", "--run-id", "good"]).expect_code(0);
    let store = bench.path().join(".bench/bench.db");
    std::fs::write(&store, b"this is no database, and it is long enough to be looked at as one: ".repeat(80))
        .expect("writable");
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(bench.path().join(format!(".bench/bench.db{suffix}")));
    }
    let done = bench.run(["report", "good"]).expect_code(4);
    assert!(done.stderr.contains("bench.db") || done.stderr.contains("damaged"), "{}", done.stderr);
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
}

#[test]
fn a_result_that_nobody_got_is_no_success() {
    let bench = Bench::new();
    let _ = bench.run(["submit", "--dataset", "locomo-sim", "--preset", "quick"]).expect_code(0);
    let mut child = bench.start(["report", "latest", "--format", "json"]);
    drop(child.stdout.take());
    let status = child.wait().expect("is a child");
    assert_eq!(status.code(), Some(4), "the reader went away");
    for verb in [&["report", "latest"][..], &["list"], &["export", "latest"], &["score", "--list"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a disk that is always full");
        let done = bench.command(verb).stdout(full).output().expect("runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(4) && said.contains("No space left"), "{verb:?}: {said}");
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a disk that is always full");
    let gate = bench.command(["gate", "latest", "--floor", "0.999"]).stdout(full).output().expect("runs");
    let said = String::from_utf8_lossy(&gate.stderr);
    assert!(gate.status.code() == Some(1) && said.contains("No space left"), "the verdict stands: {said}");
}
