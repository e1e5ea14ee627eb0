//! What is printed on a terminal of 80 columns fits there.

use bench_testkit::bench::{Bench, submit_sim};
use unicode_width::UnicodeWidthStr as _;

/// Columns of the terminal.
const WIDTH: usize = 80;

#[test]
fn no_line_is_wider_than_the_terminal() {
    let bench = Bench::new();
    let long = "a name that nobody would call short, and that is one all the same";
    for args in [
        &["--preset", "quick", "--name", long, "--controls"][..],
        &["--preset", "quick", "--run-id", "before", "--tag", "some-tag-of-a-team"],
        &["--preset", "quick", "--system", "random", "--top-k", "3", "--run-id", "after", "--controls"],
        &["--sample", "2", "--repeats", "3", "--run-id", "thrice"],
    ] {
        let _ = bench.run(submit_sim(args)).expect_code(0);
    }
    let id = bench.run(["list", "--json"]).expect_code(0).json();
    let drawn = id.as_array().into_iter().flatten().filter_map(|run| run["id"].as_str()).find(|id| id.len() == 36);
    let (drawn, archive) = (drawn.expect("an id that was drawn").to_owned(), ["--archive", "kept"]);
    let _ = bench.run([&["archive", "push"][..], &archive].concat()).expect_code(0);
    let narrow = bench.with_env("COLUMNS", WIDTH.to_string());
    let shown = narrow.run(["list"]).expect_code(0).stdout;
    let end = drawn.rsplit('-').next().expect("an end");
    assert!(shown.contains(end) && !shown.contains(&drawn), "{shown}");
    let _ = narrow.run(["show", end]).expect_code(0);
    // of runs that were started with it too
    let listed = narrow.run(["list", "--controls", "--json"]).expect_code(0).json();
    let ids = listed.as_array().into_iter().flatten().filter_map(|run| run["id"].as_str());
    let control = ids.filter_map(|id| id.strip_prefix(&drawn)).find(|system| system.len() > 1).expect("a control");
    let control = format!("{end}{control}");
    let shown = narrow.run(["list", "--controls"]).expect_code(0).stdout;
    assert!(shown.lines().any(|line| line.trim_start().starts_with(&control)), "{shown}");
    let _ = narrow.run(["show", &control]).expect_code(0);
    for args in [
        &["list"][..],
        &["list", "--controls"],
        &["list", "thrice"],
        &["status", "before"],
        &["compare", "before", "after"],
        &["compare", "before", "after", "thrice-r1"],
        &["gate", "after", "--baseline", "before"],
        &["report", "before"],
        &["report", "after", "--full"],
        &["report", "thrice"],
        &["report", "thrice", "--full"],
        &["show", "before"],
        &["show", "before", "--worst", "3"],
        &["show", "after", "--flipped", "before"],
        &["trace", "before"],
        &["score", "--list"],
        &["score", "--counting"],
        &["models", "list"],
        &["import", "--forms"],
        &["datasets", "list"],
        &["datasets", "show", "locomo-sim"],
        &["systems", "list"],
        &["doctor"],
        &["config", "show", "--all"],
        &["estimate", "--dataset", "locomo-sim", "--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-mini"],
        &["archive", "list", "--archive", "kept"],
        &["archive", "trajectory", "--archive", "kept"],
        &["submit", "--help"],
    ] {
        fits(&narrow, args, WIDTH);
    }
    let head = narrow.run(["list"]).expect_code(0).stdout.lines().next().unwrap_or_default().to_owned();
    assert!(["verdict", "cost", "name"].iter().all(|column| head.contains(column)), "{head}");
    let question = narrow.questions("before")[0]["question_id"].as_str().expect("an id").to_owned();
    let narrower = narrow.with_env("COLUMNS", "60");
    for args in [
        &["list"][..],
        &["datasets", "list"],
        &["report", "before"],
        &["report", "thrice"],
        &["show", "before"],
        &["show", "before", &question],
        &["trace", "before"],
        &["trace", "before", &question],
        &["systems", "try", "bm25"],
        &["load", "bm25", "--rate", "50", "--seconds", "0.5", "--warm-up", "0.1", "--banks", "2", "--bank-size", "20"],
    ] {
        fits(&narrower, args, 60);
    }
}

/// What a verb prints is no wider than the terminal; a single word, as an address or a hash, stays whole.
fn fits(bench: &Bench, args: &[&str], width: usize) {
    let done = bench.run(args);
    assert!(done.code <= 1 && !done.stdout.is_empty(), "{args:?}: {}", done.stderr);
    let is_wide = |line: &&str| line.width() > width && line.trim().contains(' ');
    let wide: Vec<&str> = done.stdout.lines().filter(is_wide).collect();
    assert!(wide.is_empty(), "{args:?}: {wide:#?}");
}

/// What was made from another run, and what came from elsewhere, is told from what a run has measured.
#[test]
fn forks_and_imports_are_marked_in_a_narrow_list() {
    let bench = Bench::new();
    let _ = bench.run(submit_sim(&["--preset", "quick", "--run-id", "own", "--latency-probe", "off"])).expect_code(0);
    let fork = ["submit", "--fork", "own", "--from", "judge", "--run-id", "again", "--scorer", "exact"];
    let _ = bench.run(fork).expect_code(0);
    let id = bench.questions("own")[0]["question_id"].as_str().expect("an id").to_owned();
    let line = serde_json::json!({"question_id": id, "answer": "tea", "score": 1});
    std::fs::write(bench.path().join("answers.jsonl"), line.to_string()).expect("is written");
    let import = ["import", "--dataset", "locomo-sim", "--answers", "answers.jsonl", "--subset", "--run-id", "theirs"];
    let _ = bench.run(import).expect_code(0);
    let list = bench.with_env("COLUMNS", WIDTH.to_string()).run(["list"]).expect_code(0).stdout;
    assert!(list.lines().all(|line| line.width() <= WIDTH), "{list}");
    for (run, mark) in [("again", Some("fork")), ("theirs", Some("import")), ("own", None)] {
        let row = list.lines().find(|line| line.trim_start().starts_with(run)).expect("a row");
        let marks: Vec<&str> = ["fork", "import"].into_iter().filter(|mark| row.contains(mark)).collect();
        assert_eq!(marks, Vec::from_iter(mark), "{list}");
    }
}
