//! Runs without answers: what was recalled is scored, compared, forked into answers, and survives a kill.

use std::time::Duration;

use bench_testkit::bench::{Bench, signal, wait};
use serde_json::{Value, json};

const ONLY: [&str; 10] = [
    "submit",
    "--dataset",
    "locomo-sim",
    "--scenario",
    "retrieve-only",
    "--system",
    "bm25",
    "--display",
    "none",
    "--json",
];

fn submit(bench: &Bench, id: &str, more: &[&str]) -> Value {
    let named = ["--run-id", id];
    let args = ONLY.iter().chain(&named).chain(more);
    bench.run(args).expect_code(0).json()
}

/// Mean of a metric over all questions.
fn mean(report: &Value, metric: &str) -> Option<f64> {
    report["scores"].as_array()?.iter().find(|score| score["metric"] == metric)?["micro"].as_f64()
}

#[test]
fn a_recall_is_scored_without_an_answer() {
    let bench = Bench::new();
    let only = submit(&bench, "only", &["--preset", "quick"]);
    // three questions of the sample name no evidence: there is nothing to measure
    assert_eq!((&only["headline"]["metric"], &only["headline"]["n"]), (&json!("session-recall@10"), &json!(47)));
    assert!(only["headline"]["ci95"]["low"].as_f64() < only["headline"]["value"].as_f64(), "{}", only["headline"]);
    assert_eq!(only["spec"]["scenario"], "retrieve-only");
    let outcomes = &only["outcomes"];
    assert_eq!((&outcomes["scored"], &outcomes["abstained"]), (&json!(50), &json!(0)), "{outcomes}");
    assert_eq!(only["run"]["verdict"], "VALID", "{}", only["run"]);
    for question in bench.questions("only") {
        assert!(question["answer"].is_null() && question["retrieved"].is_array(), "{question}");
    }
    let written = std::fs::read_to_string(bench.path().join(".bench/runs/only/report.md")).expect("written");
    assert!(written.contains("retrieve-only") && !written.contains("extractive"), "{written}");
    let status = bench.run(["status", "only"]).expect_code(0);
    assert!(status.stdout.contains("50"), "{}", status.stdout);

    // the same figures stand in a run with answers, beside its own scorer
    let figures = ["--scorer", "session-recall@10", "--scorer", "recall@10", "--headline", "recall@10"];
    let args = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--run-id", "answered", "--json"];
    let answered = bench.run(args.iter().chain(&figures)).expect_code(0).json();
    assert_eq!(answered["headline"]["metric"], "recall@10");
    for metric in ["session-recall@10", "recall@10"] {
        assert_eq!(mean(&only, metric), mean(&answered, metric), "{metric}");
    }
    assert!(mean(&answered, "locomo-f1").is_some());
    let compared = bench.run(["compare", "only", "answered", "--metric", "recall@10", "--json"]).expect_code(0).json();
    assert_eq!((&compared["verdict"], &compared["paired"]["n"]), (&json!("INCONCLUSIVE"), &json!(47)));

    // another cut-off needs no recall, and answers are made of the recalls that are there
    let rescored = ["rescore", "only", "--scorer", "session-recall-any@3", "--run-id", "at-3", "--json"];
    let rescored = bench.run(rescored).expect_code(0).json();
    assert_eq!(rescored["headline"]["metric"], "session-recall-any@3");
    assert_eq!(mean(&rescored, "recall@10"), mean(&only, "recall@10"));
    let forked = ["submit", "--fork", "only", "--from", "answer", "--scenario", "answer", "--scorer", "locomo-f1"];
    let forked = bench.run(forked.iter().chain(&["--run-id", "forked", "--json"])).expect_code(0).json();
    assert_eq!(mean(&forked, "locomo-f1"), mean(&answered, "locomo-f1"));
}

#[test]
fn what_needs_answers_is_refused() {
    let bench = Bench::new();
    for (flags, said) in [
        (&["--scorer", "exact"][..], "grades answers"),
        (&["--judge", "openai:gpt-4o-mini"], "--judge: "),
        (&["--answerer", "extractive"], "--answerer: "),
        (&["--scorer", "recall@20"], "--top-k 20"),
        (&["--scorer", "recal@5"], "recall@5"),
        (&["--headline", "locomo-f1"], "grades answers"),
        (&["--headline", "nonsense"], "session-recall@10"),
    ] {
        let refused = bench.run(ONLY.iter().chain(flags)).expect_code(2);
        assert!(refused.stderr.contains(said), "{flags:?}: {}", refused.stderr);
    }
    let estimate = ONLY.iter().skip(1).filter(|flag| **flag != "--display" && **flag != "none");
    let estimate = bench.run(["estimate", "--preset", "quick"].iter().chain(estimate)).expect_code(0).json();
    assert_eq!((&estimate["phases"], &estimate["questions"]), (&json!([]), &json!(50)), "{estimate}");
}

#[test]
fn a_cut_off_and_a_headline_mean_what_they_say() {
    let bench = Bench::new();
    // judges of a configuration are not asked where nothing is answered
    std::fs::write(bench.path().join("bench.toml"), "[run]\njudge = [\"openai:gpt-4o-mini\"]\n").expect("writable");
    let args = ONLY.iter().chain(&["--run-id", "by-default", "--preset", "quick"]);
    let done = bench.run(args).expect_code(0);
    assert!(done.stderr.contains("the configured judges are left out"), "{}", done.stderr);
    std::fs::remove_file(bench.path().join("bench.toml")).expect("is there");
    let headed = submit(&bench, "headed", &["--preset", "quick", "--headline", "recall@10"]);
    assert_eq!(headed["headline"]["without_figure"], 3, "{}", headed["headline"]);
    let written = std::fs::read_to_string(bench.path().join(".bench/runs/headed/report.md")).expect("written");
    assert!(written.contains("47 of 50 questions have this figure"), "{written}");
    assert!(written.contains("session@k turns"), "its hits are of fewer sessions: {written}");
    assert!(!written.contains("the answer failed") && !written.contains("Recall and answer"), "{written}");

    // what a run is headed by is a part of what it says
    let again = ["--run-id", "headed", "--preset", "quick", "--headline", "ndcg@10"];
    let refused = bench.run(ONLY.iter().chain(&again)).expect_code(2);
    assert!(refused.stderr.contains("headline: recall@10 there, ndcg@10 here"), "{}", refused.stderr);

    // three hits have no figure at ten
    let fork = ["submit", "--from", "recall", "--top-k", "3", "--json", "--fork"];
    let few = bench.run(fork.iter().chain(&["by-default", "--run-id", "few"])).expect_code(0).json();
    assert_eq!(few["headline"]["metric"], "session-recall@3", "{}", few["headline"]);
    let refused = bench.run(fork.iter().chain(&["headed"])).expect_code(2);
    assert!(refused.stderr.contains("nothing gives recall@10 any more"), "{}", refused.stderr);
    let named = ["headed", "--scorer", "recall@3", "--headline", "recall@3"];
    let named = bench.run(fork.iter().chain(&named)).expect_code(0).json();
    assert_eq!(named["headline"]["metric"], "recall@3", "{}", named["headline"]);
}

#[test]
fn questions_that_ask_for_hits_of_their_own_get_so_many() {
    let bench = Bench::new();
    let sim = ["submit", "--dataset", "precision-sim", "--scenario", "retrieve-only", "--json", "--top-k", "50"];
    let refused = bench.run(sim.iter().chain(&["--scorer", "recall@50"])).expect_code(2);
    assert!(refused.stderr.contains("a question of the sample asks for"), "{}", refused.stderr);
    let run = bench.run(sim.iter().chain(&["--preset", "quick"])).expect_code(0).json();
    let notes = run["dataset"]["sample"]["notes"].to_string();
    assert!(notes.contains("hits on their own, whatever --top-k says"), "{notes}");
}

#[test]
fn what_others_retrieved_is_scored_without_their_answers() {
    let bench = Bench::new();
    let own = submit(&bench, "own", &["--preset", "quick"]);
    let lines: String = bench
        .questions("own")
        .iter()
        .map(|question| {
            let hits = question["retrieved"].as_array().expect("are listed").iter();
            let ids: Vec<&Value> = hits.map(|hit| &hit["id"]).collect();
            format!("{}\n", json!({"question_id": question["question_id"], "retrieved": ids}))
        })
        .collect();
    std::fs::write(bench.path().join("theirs.jsonl"), lines).expect("writable");
    let import = ["import", "--dataset", "locomo-sim", "--answers", "theirs.jsonl", "--subset", "--json"];
    let named = ["--run-id", "theirs", "--scorer", "mrr@5", "--headline", "recall@10"];
    let theirs = bench.run(import.iter().chain(&named)).expect_code(0).json();
    assert_eq!(
        (&theirs["spec"]["scenario"], &theirs["headline"]["metric"]),
        (&json!("retrieve-only"), &json!("recall@10"))
    );
    assert_eq!(mean(&theirs, "recall@10"), mean(&own, "recall@10"));
    assert!(mean(&theirs, "mrr@5").is_some());
    let rescored = ["rescore", "theirs", "--scorer", "session-recall-any@3", "--run-id", "again", "--json"];
    let rescored = bench.run(rescored).expect_code(0).json();
    assert!(mean(&rescored, "session-recall-any@3").is_some(), "{}", rescored["scores"]);
    let refused = bench.run(import.iter().chain(&["--scorer", "recall@20"])).expect_code(2);
    assert!(refused.stderr.contains("no line has more than 10"), "{}", refused.stderr);
}

#[test]
fn a_table_of_recalls_reads_back_with_the_same_figures() {
    let bench = Bench::new();
    // of precision-sim some questions find nothing
    for (id, dataset) in [("own", "locomo-sim"), ("few", "precision-sim")] {
        let run = ["submit", "--dataset", dataset, "--scenario", "retrieve-only", "--preset", "quick", "--run-id", id];
        let own = bench.run(run.iter().chain(&["--json", "--display", "none"])).expect_code(0).json();
        for format in ["csv", "jsonl"] {
            let (file, name) = (format!("{id}.{format}"), format!("{id}-{format}"));
            let exported = bench.run(["export", id, "--format", format]).expect_code(0).stdout;
            std::fs::write(bench.path().join(&file), exported).expect("writable");
            let import = ["import", "--dataset", dataset, "--answers", &file, "--subset", "--json", "--run-id", &name];
            let back = bench.run(import).expect_code(0).json();
            assert_eq!(back["spec"]["scenario"], "retrieve-only", "{file}: {}", back["spec"]);
            assert_eq!(back["outcomes"]["scored"], own["outcomes"]["scored"], "{file}");
            if id == "own" {
                for metric in ["session-recall@10", "recall@10", "ndcg@10"] {
                    assert_eq!(mean(&back, metric), mean(&own, metric), "{file}: {metric}");
                }
            }
        }
    }
}

#[test]
fn a_killed_run_without_answers_ends_with_the_same_digest() {
    let bench = Bench::new();
    let expected = submit(&bench, "whole", &["--preset", "fair"])["result_digest"].clone();
    let args: Vec<&str> = ONLY.into_iter().chain(["--preset", "fair", "--run-id", "victim"]).collect();
    let mut child = bench.start(&args);
    let mut hit = 0;
    for pause in [300, 500, 700] {
        std::thread::sleep(Duration::from_millis(pause));
        if child.try_wait().expect("is a child").is_some() {
            break;
        }
        signal(&child, "KILL");
        let killed = wait(child);
        hit += usize::from(killed.code != 0);
        let exists = bench.run(["status", "victim"]).code == 0;
        child = if exists { bench.start(["resume", "victim", "--json"]) } else { bench.start(&args) };
    }
    assert_eq!(wait(child).expect_code(0).json()["result_digest"], expected);
    assert!(hit > 0, "the run ended before the first kill");
}
