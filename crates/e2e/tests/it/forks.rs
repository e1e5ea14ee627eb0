//! Runs made from what other runs paid for: judged again, scored again, answered again.

use bench_testkit::{
    bench::Bench,
    fakes::{Fake, World},
    provider::Provider,
};
use serde_json::{Value, json};

/// Calls that the provider has answered.
fn calls(provider: &Provider) -> u64 {
    provider.count("requests")
}

#[test]
fn judging_again_calls_the_judge_alone() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let first = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0).json();
    assert_eq!(calls(&provider), 100, "fifty answers and fifty judgements");
    // what is stored is no part of what a fork would cost
    let estimated = |judge: &str, votes: &str| {
        let args = ["rejudge", "first", "--judge", judge, "--votes", votes, "--dry-run", "--json"];
        let estimate = bench.run(args).expect_code(0).json();
        (estimate["calls"].as_u64(), estimate["stored_calls"].as_u64(), estimate["usd"]["worst"] == 0.0)
    };
    assert_eq!(estimated("openai:gpt-4o-mini", "1"), (Some(0), Some(50), true));
    assert_eq!(estimated("openai:gpt-4o-mini", "3"), (Some(100), Some(50), false), "two votes are new");
    assert_eq!(estimated("openai:gpt-4o", "1"), (Some(50), Some(0), false));
    // what passed keeps its answer, and is judged as all others are
    let asked_again = |set: &[&str]| {
        let args = ["retry", "first", "--wrong", "--dry-run", "--json"];
        let estimate = bench.run(args.iter().chain(set)).expect_code(0).json();
        let calls = |at: usize| estimate["phases"][at]["calls"].as_u64().expect("a count");
        (calls(0), calls(1), estimate["stored_calls"].as_u64().expect("a count"))
    };
    let (answers, judgements, stored) = asked_again(&[]);
    assert_eq!((judgements, answers + stored), (answers, 50), "those of right answers are stored");
    assert_eq!(asked_again(&["--set", "run.cache=off"]), (answers, 50, 0));
    // the same judge again: the lineage has paid for its judgements too
    let again = ["rejudge", "first", "--judge", "openai:gpt-4o-mini", "--run-id", "again", "--json"];
    let again = bench.run(again).expect_code(0);
    assert!(again.stderr.contains("50 further calls of judges are stored"), "{}", again.stderr);
    let again = again.json();
    assert_eq!(calls(&provider), 100, "nothing was paid twice");
    assert_eq!(again["result_digest"], first["result_digest"]);
    assert_eq!(
        (&again["usage"]["answer"]["calls"], &again["usage"]["answer"]["cached_calls"]),
        (&json!(0), &json!(50))
    );
    assert_eq!(again["total"]["usd"], 0.0);
    assert_eq!(again["retrieval"], first["retrieval"]);
    // what the judge said once is no evidence twice
    let gated = bench.run(["gate", "again", "--baseline", "first", "--json"]).expect_code(6).json();
    assert!(gated["checks"].to_string().contains("nothing was measured anew"), "{gated:#}");
    // another judge with three votes
    let voted = ["rejudge", "first", "--judge", "openai:gpt-4o", "--votes", "3", "--run-id", "voted", "--json"];
    let estimate = bench.run(voted.iter().chain(&["--dry-run"])).expect_code(0).json();
    let voted = bench.run(voted).expect_code(0);
    let tokens = ["prompt_tokens", "completion_tokens"].map(|name| estimate[name].as_u64().expect("a count"));
    let said = format!("150 calls, {} prompt and {} completion tokens", tokens[0], tokens[1]);
    assert!(voted.stderr.contains(&said), "the start says what the dry run did, {said}: {}", voted.stderr);
    let voted = voted.json();
    assert_eq!(calls(&provider), 250);
    assert_eq!((&voted["spec"]["judge"], &voted["spec"]["votes"]), (&json!("openai:gpt-4o"), &json!(3)));
    let agreement = &voted["judge_agreement"][0];
    assert_eq!(
        (&agreement["statistic"], &agreement["raters"], &agreement["n"]),
        (&json!("Fleiss"), &json!(3), &json!(50))
    );
    assert!(voted["failure_attribution"]["judge_in_doubt"].as_u64() > Some(0), "split votes leave doubts");
    // graders differ: comparing is allowed when that is what is under test
    let _ = bench.run(["compare", "first", "voted"]).expect_code(5);
    let compared = bench.run(["compare", "first", "voted", "--under-test", "grading", "--json"]).json();
    assert_eq!((&compared["comparable"], &compared["independent"]), (&json!(true), &json!(false)));
}

#[test]
fn two_judges_grade_the_same_answers_and_their_agreement_is_told() {
    let provider = Provider::start(&["--judge", "reference"]);
    let bench = provider.bench();
    let _ = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0);
    let args = ["rejudge", "first", "--judge", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o", "--json"];
    let both = bench.run(args).expect_code(0).json();
    let metrics: Vec<&str> =
        both["scores"].as_array().expect("scores").iter().filter_map(|score| score["metric"].as_str()).collect();
    assert_eq!(metrics[..2], ["judge", "judge-2"]);
    assert_eq!(both["judge_agreement"][0]["between"], "judge / judge-2");
    assert_eq!(both["judge_agreement"][0]["n"], 50);
}

#[test]
fn scoring_again_makes_no_call() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let first = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0).json();
    let before = calls(&provider);
    let again =
        bench.run(["rescore", "first", "--scorer", "exact", "--run-id", "exact", "--json"]).expect_code(0).json();
    assert_eq!(calls(&provider), before);
    assert_eq!(again["headline"]["metric"], "exact");
    let of = |report: &Value, metric: &str| {
        report["scores"].as_array().expect("scores").iter().find(|s| s["metric"] == metric).map(|s| s["micro"].clone())
    };
    assert_eq!(of(&again, "locomo-f1"), of(&first, "locomo-f1"), "the dataset's scorer says the same again");
    let answers = |run: &str| -> Vec<Value> { bench.questions(run).iter().map(|q| q["answer"].clone()).collect() };
    assert_eq!(answers("first"), answers("exact"));
}

#[test]
fn a_fork_answers_again_from_the_recalls_it_took_over() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let first = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0).json();
    let fork = ["submit", "--fork", "first", "--json"];
    let args = ["--from", "answer", "--answerer", "openai:gpt-4o", "--run-id", "other"];
    let other = bench.run(fork.iter().chain(&args)).expect_code(0).json();
    assert_eq!(calls(&provider), 200, "fifty answers and fifty judgements more");
    assert_eq!((&other["retrieval"], &other["spec"]["answerer"]), (&first["retrieval"], &json!("openai:gpt-4o")));
    let args = ["--from", "recall", "--top-k", "5", "--answerer", "extractive", "--run-id", "five"];
    let five = bench.run(fork.iter().chain(&args)).expect_code(0).json();
    assert_eq!(five["spec"]["top_k"], 5);
    assert!(five["latency_ms"]["retain"].is_null(), "nothing was retained");
    let refused = bench.run(fork.iter().chain(&["--from", "judge", "--top-k", "5"])).expect_code(2);
    assert!(refused.stderr.contains("--top-k"), "{}", refused.stderr);
    let _ = bench.run(["submit", "--fork", "nobody", "--from", "judge"]).expect_code(2);
}

#[test]
fn forks_are_estimated_and_dear_ones_are_not_started_unasked() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let _ = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0);
    let before = calls(&provider);
    let phases = |from: &str| -> Vec<(String, u64)> {
        let changed = if from == "judge" { "--judge" } else { "--answerer" };
        let args = ["submit", "--fork", "first", "--from", from, changed, "openai:gpt-4o", "--dry-run", "--json"];
        let estimate = bench.run(args).expect_code(0).json();
        let phases = estimate["phases"].as_array().expect("phases");
        phases
            .iter()
            .map(|p| (p["phase"].as_str().expect("a name").to_owned(), p["calls"].as_u64().expect("a count")))
            .collect()
    };
    assert_eq!(phases("judge"), [("judge".to_owned(), 50)]);
    assert_eq!(phases("answer"), [("answer".to_owned(), 50), ("judge".to_owned(), 50)]);
    assert_eq!(phases("recall"), [("answer".to_owned(), 50), ("judge".to_owned(), 50)]);
    let dear = ["rejudge", "first", "--judge", "openai:dear", "--price", "3000,3000", "--display", "none"];
    let refused = bench.run(dear).expect_code(2);
    assert!(refused.stderr.contains("--max-cost"), "{}", refused.stderr);
    let dry = bench.run(dear.iter().chain(&["--dry-run", "--json"])).expect_code(0).json();
    assert!(dry["usd"]["expected"].as_f64() > Some(20.0), "{dry}");
    assert_eq!(calls(&provider), before, "nothing was asked for any of this");
    let _ = bench.run(dear.iter().chain(&["--max-cost", "1000"])).expect_code(0);
    assert_eq!(calls(&provider), before + 50);
}

#[test]
fn imported_answers_can_be_judged() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let _ = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0);
    let lines: String = bench
        .questions("first")
        .iter()
        .map(|q| format!("{}\n", json!({"question_id": q["question_id"], "answer": q["answer"], "score": 1})))
        .collect();
    std::fs::write(bench.path().join("answers.jsonl"), lines).expect("writable");
    let import = ["import", "--dataset", "locomo-sim", "--answers", "answers.jsonl", "--subset", "--system", "theirs"];
    let _ = bench.run(import.iter().chain(&["--run-id", "theirs"])).expect_code(0);
    let before = calls(&provider);
    let args = ["rejudge", "theirs", "--judge", "openai:gpt-4o-mini", "--run-id", "judged", "--json"];
    let judged = bench.run(args).expect_code(0).json();
    assert_eq!(calls(&provider), before + 50);
    assert_eq!((&judged["headline"]["metric"], &judged["spec"]["system"]), (&json!("judge"), &json!("theirs")));
    let own = bench.report("first");
    assert_eq!(judged["scores"][0]["micro"], own["scores"][0]["micro"], "the same answers and the same judge");
    // the grades that came with the answers head no fork
    let again = ["submit", "--fork", "theirs", "--from", "judge", "--run-id", "again", "--display", "none", "--json"];
    let again = bench.run(again).expect_code(0);
    assert!(again.stderr.contains("'imported' came with the answers"), "{}", again.stderr);
    assert_ne!(again.json()["headline"]["metric"], "imported");

    // of a dataset of which a part is answered, that part is estimated, and the strong judge's sample is of it
    let whole = import.iter().filter(|flag| **flag != "--subset").chain(&["--run-id", "whole"]);
    let _ = bench.run(whole);
    let before = calls(&provider);
    let judges = ["rejudge", "whole", "--judge", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o=20"];
    let estimate = bench.run(judges.iter().chain(&["--dry-run", "--json"])).expect_code(0).json();
    assert_eq!((&estimate["calls"], &estimate["questions"]), (&json!(70), &json!(50)));
    let _ = bench.run(judges.iter().chain(&["--run-id", "part", "--display", "none"]));
    assert_eq!(calls(&provider), before + 70);
}

#[test]
fn judgements_that_cannot_be_read_are_errors_and_no_grades() {
    let first = Provider::start(&[]);
    let bench = first.bench();
    let _ = bench.run(first.submit(&["--run-id", "first"])).expect_code(0);
    let broken = Provider::start(&["--fault-malformed-judge", "1", "--permanent-faults"]);
    let args = ["rejudge", "first", "--judge", "openai:gpt-4o", "--retries", "1", "--json"];
    let judged = bench_testkit::bench::wait(
        bench.command(args).env("OPENAI_BASE_URL", broken.base_url()).spawn().expect("starts"),
    );
    let judged = judged.expect_code(5).json();
    assert_eq!((&judged["outcomes"]["infra_error"], &judged["headline"]["value"]), (&json!(50), &Value::Null));
}

#[test]
fn only_finished_runs_are_forked() {
    let bench = Bench::new();
    let refused = bench.run(["submit", "--fork", "latest", "--from", "judge"]).expect_code(2);
    assert!(refused.stderr.contains("no run"), "{}", refused.stderr);
    let usage = bench.run(["submit", "--fork", "latest"]).expect_code(2);
    assert!(usage.stderr.contains("--from"), "{}", usage.stderr);
}

#[test]
fn every_phase_makes_exactly_the_calls_that_it_must() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let first = bench.run(provider.submit(&["--run-id", "first"])).expect_code(0).json();
    let fork = |from: &str, id: &str, more: &[&str]| -> (u64, Value) {
        let before = calls(&provider);
        let args = ["submit", "--fork", "first", "--json", "--display", "none", "--from", from, "--run-id", id];
        let report = bench.run(args.iter().chain(more)).expect_code(0).json();
        assert_eq!(report["outcomes"]["coverage"], 1.0, "{id}: {report}");
        (calls(&provider) - before, report)
    };
    // with nothing changed the lineage has paid for all of it
    for from in ["judge", "answer", "recall"] {
        let (paid, again) = fork(from, &format!("same-{from}"), &[]);
        assert_eq!((paid, &again["result_digest"]), (0, &first["result_digest"]), "{from}");
    }
    // what is changed is paid, and so is what comes after it
    let (paid, judged) = fork("judge", "judged", &["--judge", "openai:gpt-4o"]);
    assert_eq!((paid, &judged["usage"]["answer"]["calls"]), (50, &json!(0)));
    assert_eq!((&judged["retrieval"], &judged["usage"]["judge"]["calls"]), (&first["retrieval"], &json!(50)));
    let (paid, answered) = fork("answer", "answered", &["--answerer", "openai:gpt-4o"]);
    assert_eq!((paid, &answered["retrieval"]), (100, &first["retrieval"]));
    let used = |phase: &str| answered["usage"][phase]["calls"].clone();
    assert_eq!((used("recall"), used("answer"), used("judge")), (json!(0), json!(50), json!(50)));
    // fewer hits make other prompts, and other answers are judged; an answer that came out the same is not judged twice
    let (paid, recalled) = fork("recall", "recalled", &["--top-k", "3"]);
    let used = |phase: &str| recalled["usage"][phase]["calls"].as_u64().expect("a count");
    assert_eq!((used("answer"), paid), (50, 50 + used("judge")));
    assert!(recalled["latency_ms"]["retain"].is_null() && !recalled["latency_ms"]["recall"].is_null(), "{recalled}");
    let hits = |run: &str| bench.questions(run).iter().map(|q| q["retrieved"].as_array().map_or(0, Vec::len)).max();
    assert_eq!((hits("first"), hits("recalled")), (Some(10), Some(3)));
    // flags that name what the source has do no harm
    let same = ["--dataset", "locomo-sim", "--preset", "quick", "--system", "bm25", "--top-k", "10"];
    assert_eq!(fork("answer", "named", &same).0, 0);
}

/// What a person is told of a fork that cannot be; nothing may come of it.
fn refused(bench: &Bench, args: &[&str]) -> String {
    let runs = || bench.run(["list", "--json", "-n", "100"]).expect_code(0).json().as_array().map(Vec::len);
    let before = runs();
    let said = bench.run(["submit", "--fork"].iter().chain(args)).expect_code(2).stderr;
    assert_eq!(runs(), before, "nothing was started: {said}");
    said
}

#[test]
fn a_fork_that_cannot_be_is_refused_before_anything_is_started() {
    let bench = Bench::new();
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--display", "none", "--run-id"];
    let _ = bench.run(submit.iter().chain(&["first"])).expect_code(0);
    for (flag, value) in [
        ("--dataset", "locomo"),
        ("--preset", "full"),
        ("--limit", "3"),
        ("--sample-total", "3"),
        ("--category", "temporal"),
        ("--question-id", "x"),
        ("--system", "vector"),
        ("--mode", "raw"),
    ] {
        let said = refused(&bench, &["first", "--from", "recall", flag, value]);
        assert!(said.contains(flag) && said.contains("locomo-sim") && said.contains("bm25"), "{said}");
    }
    assert!(refused(&bench, &["first", "--from", "recall", "--controls"]).contains("--controls"));
    assert!(refused(&bench, &["first", "--from", "answer", "--top-k", "3"]).contains("--top-k"));
    assert!(refused(&bench, &["first", "--from", "judge", "--answerer", "none"]).contains("--answerer"));
    assert!(refused(&bench, &["first", "--from", "answer", "--answerer", "system"]).contains("by itself"));
    assert!(refused(&bench, &["first", "--from", "recall", "--answerer", "openai:gpt-4o"]).contains("key"));

    // grades without answers: nothing to judge, to answer from, or to recall from
    let ids = bench.questions("first");
    let lines: String =
        ids.iter().map(|q| format!("{}\n", json!({"question_id": q["question_id"], "score": 1}))).collect();
    std::fs::write(bench.path().join("grades.jsonl"), lines).expect("writable");
    let import = ["import", "--dataset", "locomo-sim", "--answers", "grades.jsonl", "--subset", "--run-id", "grades"];
    let _ = bench.run(import).expect_code(0);
    assert!(refused(&bench, &["grades", "--from", "judge"]).contains("no question of run grades was answered"));
    for from in ["recall", "answer"] {
        assert!(refused(&bench, &["grades", "--from", from]).contains("was imported"), "{from}");
    }
}

/// What a fork asks of a metered memory system is counted too, and a system elsewhere has to know of the fork before.
#[test]
fn p34_a_fork_that_recalls_anew_is_metered_as_its_source_is() {
    let fake = Fake::start("jeffs-brain");
    let provider = Provider::start(&[]);
    let bench = provider.bench().with_env("JB_URL", fake.url());
    let submit = ["submit", "--dataset", "locomo-sim", "--max-banks", "2", "--sample", "2", "--system", "jeffs-brain"];
    let submit = [&submit[..], &["--meter", "--answerer", "extractive", "--display", "none", "--run-id", "a"]].concat();
    let _ = bench.run(submit).expect_code(0);
    let fork = ["submit", "--fork", "a", "--from", "recall", "--display", "none"];
    let drawn = bench.run(fork).expect_code(2).stderr;
    assert!(drawn.contains("`bench-coord meter url ID`") && drawn.contains("--run-id ID"), "{drawn}");
    let named = bench.run(fork.iter().chain(&["--run-id", "f"])).expect_code(0).stderr;
    assert!(named.contains("`bench-coord meter url f`"), "{named}");
    // its meter has ended with it; one that is not metered is told that it is none
    let told = bench.run(["meter", "url", "f"]).expect_code(2).stderr;
    assert!(told.contains("drawn anew by each process"), "{told}");
    let plain = ["submit", "--fork", "a", "--from", "answer", "--display", "none", "--run-id", "plain"];
    let _ = bench.run(plain).expect_code(0);
    let told = bench.run(["meter", "url", "plain"]).expect_code(2).stderr;
    assert!(told.contains("run plain is not metered"), "{told}");
}

#[test]
fn banks_in_a_service_are_recalled_from_again_while_they_are_there_and_what_they_gave_is_answered_again() {
    let fake = Fake::start("jeffs-brain");
    let bench = Bench::new().with_env("JB_URL", fake.url());
    let submit = ["submit", "--dataset", "locomo-sim", "--max-banks", "2", "--sample", "2", "--system", "jeffs-brain"];
    let _ = bench.run(submit.iter().chain(&["--display", "none", "--run-id", "first"])).expect_code(0);
    let stored = |world: &mut World| world.banks.values().map(Vec::len).sum::<usize>();
    let before = fake.with(stored);
    let recalled =
        ["submit", "--fork", "first", "--from", "recall", "--run-id", "recall", "--json", "--display", "none"];
    let recalled = bench.run(recalled).expect_code(0).json();
    assert_eq!(recalled["result_digest"], bench.report("first")["result_digest"]);
    assert!(before > 0 && fake.with(stored) == before, "nothing is stored again");
    // with the banks and the service gone, what was recalled is still there
    let _ = bench.run(["gc", "--banks", "first"]).expect_code(0);
    drop(fake);
    assert!(refused(&bench, &["first", "--from", "recall"]).contains("were removed from its memory system"));
    for from in ["answer", "judge"] {
        let args = ["submit", "--fork", "first", "--from", from, "--run-id", from, "--json", "--display", "none"];
        let again = bench.run(args).expect_code(0).json();
        assert_eq!(again["result_digest"], bench.report("first")["result_digest"], "{from}");
    }
}
