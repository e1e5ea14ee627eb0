//! Scenarios: who reads what, who answers, who searches, and that a killed agent goes on where it was.

use std::time::Duration;

use bench_testkit::{
    bench::Bench,
    cluster::{Cluster, Setup, wait_until_ready},
    fakes::Fake,
    process::Process,
    provider::{KEY, Provider},
};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(240);
const MODEL: &str = "openai:gpt-4o-mini";

/// A run of a few questions.
fn submit<'a>(run: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed =
        ["submit", "--dataset", "locomo-sim", "--sample", "2", "--max-banks", "2", "--json", "--latency-probe", "off"];
    fixed.into_iter().chain(["--run-id", run]).chain(more.iter().copied()).collect()
}

fn notes(report: &Value) -> String {
    report["spec"]["notes"].to_string()
}

#[test]
fn a_model_that_searches_by_itself_is_stored_step_by_step() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let agentic = ["--scenario", "agentic", "--max-recalls", "3", "--answerer", MODEL];
    let report = bench.run(submit("agent", &agentic)).expect_code(0).json();
    assert_eq!((&report["spec"]["scenario"], &report["outcomes"]["coverage"]), (&json!("agentic"), &json!(1.0)));
    assert!(notes(&report).contains("union of all hits"), "{}", report["spec"]);
    let mut moves = 0;
    let questions = bench.questions("agent");
    for question in &questions {
        let searches = question["searches"].as_array().expect("searches");
        assert!((1..=3).contains(&searches.len()), "{question}");
        let found: u64 = searches.iter().filter_map(|search| search["hits"].as_u64()).sum();
        let together = question["retrieved"].as_array().expect("hits").len() as u64;
        assert!(together <= found && (found == 0 || together >= 1), "{question}");
        assert_eq!(question["usage"]["answer"]["calls"], searches.len() as u64 + 1, "{question}");
        assert!(question["answer"].is_string(), "{question}");
        moves += searches.len() as u64 + 1;
    }
    assert_eq!(provider.count("requests"), moves, "each move is one call");
    let estimate = submit("estimated", &agentic);
    let estimate = bench.run([&["estimate"][..], &estimate[1..]].concat()).expect_code(0).json();
    assert_eq!(estimate["calls"], 4 * questions.len() as u64, "{estimate}");

    // what was found can be answered from, and graded again, and nothing is searched for once more
    let refused = bench.run(["submit", "--fork", "agent", "--from", "answer"]).expect_code(2);
    assert!(refused.stderr.contains("--scenario answer"), "{}", refused.stderr);
    let fork = ["submit", "--fork", "agent", "--from", "answer", "--scenario", "answer", "--answerer", "extractive"];
    let forked = bench.run([&fork[..], &["--run-id", "forked", "--json"]].concat()).expect_code(0).json();
    assert_eq!((&forked["retrieval"], forked["outcomes"]["coverage"].as_f64()), (&report["retrieval"], Some(1.0)));
    let rescored = bench.run(["rescore", "agent", "--scorer", "exact", "--json"]).expect_code(0).json();
    assert_eq!(rescored["outcomes"]["coverage"], 1.0);
    assert_eq!(provider.count("requests"), moves);
    let searches = |run: &str| bench.questions(run).into_iter().map(|q| q["searches"].clone()).collect::<Vec<_>>();
    let id = rescored["run"]["id"].as_str().expect("an id");
    assert_eq!([searches(id), searches("forked")], [searches("agent"), searches("agent")], "how it was found stays");
    assert_eq!(rescored["retrieval"], report["retrieval"]);

    // both tables say what was searched for
    let table = bench.run(["export", "agent", "--format", "csv"]).expect_code(0).stdout;
    assert!(table.starts_with("question_id,") && table.contains(",answered_by,retrieved,searches,"), "{table}");
    assert!(table.contains(r#"[{""query"":"#), "{table}");
    let page = bench.run(["report", "agent", "--format", "html"]).expect_code(0).stdout;
    assert!(page.contains(r#""se":[["#), "the page has the searches");
}

/// Writes `own.yaml`, a system at `url` that answers by itself.
fn answers_by_itself(bench: &Bench, url: &str) {
    let adapter = json!({
        "name": "own",
        "url": url,
        "retain": { "request": "POST /banks/{bank}/items", "body": { "id": "{id}", "key": "{key}", "text": "{content}" } },
        "answer": {
            "request": "POST /banks/{bank}/search",
            "body": { "query": "{query}", "k": "{k}", "mode": "{reader_mode}" },
            "text": "hits.0.text|none",
        },
        "verify": { "request": "GET /banks/{bank}", "count": "items" },
        "reset": { "request": "DELETE /banks/{bank}" },
        "health": { "request": "GET /health" },
    });
    std::fs::write(bench.path().join("own.yaml"), adapter.to_string()).expect("is written");
}

#[test]
fn questions_are_read_rephrased_and_reflected_on_as_the_scenario_says() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let run = |id: &str, more: &[&str]| bench.run(submit(id, more)).expect_code(0).json();
    let plain = run("plain", &["--answerer", MODEL]);
    for scenario in ["ask-basic", "ask-augmented"] {
        let report = run(scenario, &["--answerer", MODEL, "--scenario", scenario]);
        assert_eq!(report["retrieval"], plain["retrieval"], "{scenario}: the recall is the same");
        assert_ne!(report["spec"]["prompts"], plain["spec"]["prompts"], "{scenario}");
    }
    let before = provider.count("requests");
    let rephrased = run("rephrased", &["--answerer", MODEL, "--multi-query", "2"]);
    let questions = bench.questions("rephrased");
    assert_eq!(provider.count("requests") - before, 2 * questions.len() as u64, "one call words, one answers");
    assert!(notes(&rephrased).contains("reciprocal rank"), "{}", rephrased["spec"]);
    for question in &questions {
        let searches = question["searches"].as_array().expect("searches");
        assert_eq!((searches.len(), &searches[0]["query"]), (3, &question["question"]), "{question}");
        assert!(question["retrieved"].as_array().expect("hits").len() <= 10, "{question}");
        assert_eq!(question["usage"]["recall"]["calls"], 1, "{question}");
    }

    let fallback = run("fallback", &["--scenario", "reflect"]);
    assert_eq!(fallback["spec"]["answered_by"], "fallback");
    let fake = Fake::start("whole");
    answers_by_itself(&bench, fake.url());
    let native = run("native", &["--scenario", "reflect", "--system", "./own.yaml", "--answerer", MODEL]);
    assert_eq!((&native["spec"]["answered_by"], &native["spec"]["answerer"]), (&json!("native"), &json!("system")));
    assert!(bench.questions("native").iter().all(|question| question["answered_by"] == "native"));
    let compared = ["compare", "fallback", "native", "--under-test", "system,answerer", "--json"];
    let compared = bench.run(compared);
    assert!(compared.stdout.contains("fallback in the first run, native in the second"), "{}", compared.stdout);

    let with = |id: &str, more: &[&str]| {
        let hindsight = Fake::start("hindsight");
        let url = format!("system.url={}", hindsight.url());
        let fixed = ["--scenario", "reflect", "--system", "hindsight", "--set", &url];
        let done = bench.run(submit(id, &[&fixed[..], more].concat()));
        // answers of the fake may be too much alike for a valid run
        assert!([0, 5].contains(&done.code), "{}", done.stderr);
        let report = done.json();
        let opened = hindsight.with(|world| {
            let at = world.requests.iter().position(|request| request.starts_with("PUT ")).expect("a bank is made");
            world.bodies[at].clone()
        });
        (report, opened)
    };
    let (neutral, opened) = with("neutral", &[]);
    assert_eq!(opened.as_object().expect("an object").len(), 1, "a name and no traits: {opened}");
    let (sceptical, opened) = with("sceptical", &["--dispositions", "skepticism=5"]);
    assert_eq!(opened["disposition_skepticism"], 5, "{opened}");
    assert_ne!(neutral["run"]["fingerprint"], sceptical["run"]["fingerprint"]);
    let compared = ["compare", "neutral", "sceptical", "--under-test", "system", "--json"];
    let compared = bench.run(compared).json();
    assert!(!compared["reasons"].to_string().contains("differ"), "{}", compared["reasons"]);
}

#[test]
fn what_a_system_or_a_scenario_does_not_have_is_refused() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let fake = Fake::start("whole");
    answers_by_itself(&bench, fake.url());
    for (flags, said) in [
        (&["--dispositions", "skepticism=5"][..], "bm25 has no dispositions"),
        (&["--system", "astrocyte", "--dispositions", "skepticism=5"], "astrocyte has no dispositions"),
        (&["--system", "hindsight", "--dispositions", "humour=5"], "it has empathy, literalism, skepticism"),
        (&["--scenario", "agentic"], "extractive is not one"),
        (&["--scenario", "agentic", "--answerer", MODEL, "--system", "full-context"], "whole banks"),
        (&["--scenario", "agentic", "--answerer", MODEL, "--multi-query", "2"], "takes no rephrasings"),
        (&["--multi-query", "2"], "extractive is not one"),
        (&["--scenario", "retrieve-only", "--multi-query", "2"], "no model"),
        (&["--max-recalls", "2"], "only in the scenario agentic"),
        (&["--scenario", "reflect", "--system", "./own.yaml", "--scorer", "recall@10"], "--scenario retrieve-only"),
        (&["--scenario", "reflect", "--system", "./own.yaml", "--controls"], "--controls"),
        (&["--answerer", "system", "--system", "./own.yaml", "--controls"], "--controls"),
    ] {
        let refused = bench.run(submit("refused", flags)).expect_code(2);
        assert!(refused.stderr.contains(said), "{flags:?}: {}", refused.stderr);
    }
}

#[test]
fn an_agent_that_meets_its_cap_between_two_moves_goes_on_where_it_was() {
    let provider = Provider::start(&["--price", "gpt-4o-mini=0.15/0.60", "--tokens", "o200k"]);
    let flags = ["--scenario", "agentic", "--answerer", MODEL, "--concurrency", "1", "--cache", "off"];
    // as below: words of a model may find nothing
    let alone = provider.bench().run(submit("alone", &flags));
    let code = if alone.code == 5 { 5 } else { 0 };
    let alone = alone.expect_code(code).json();
    let (calls, paid) = (provider.count("requests"), provider.paid());
    let bench = provider.bench();
    let cap = |share: f64| format!("{:.6}", paid * share);
    let first = cap(0.3);
    let _ = bench.run(submit("capped", &[&flags[..], &["--max-cost", &first]].concat())).expect_code(3);
    // of fewer questions than moves one of the next caps is met between the moves of one
    let (mut stops, mut capped) = (1, None);
    for share in [0.45, 0.6, 0.75, 0.9, 5.0] {
        let resumed = bench.run(["resume", "capped", "--max-cost", &cap(share), "--json"]);
        if resumed.code != 3 {
            capped = Some(resumed.expect_code(code).json());
            break;
        }
        stops += 1;
    }
    let capped = capped.expect("the last cap is enough");
    let questions = alone["outcomes"]["sample"].as_u64().expect("a count");
    assert!(stops >= 3 && calls >= 2 * questions, "{stops} stops among {calls} moves of {questions} questions");
    assert_eq!(capped["result_digest"], alone["result_digest"], "after {stops} stops");
    assert_eq!(capped["run"]["fingerprint"], alone["run"]["fingerprint"]);
    assert_eq!(provider.count("requests"), 2 * calls, "no move was made twice");
}

#[test]
fn a_killed_agent_goes_on_where_it_was() {
    killed(&["--scenario", "agentic", "--answerer", MODEL, "--concurrency", "4"], 4);
}

#[test]
fn a_run_that_is_killed_among_its_rephrasings_goes_on_where_it_was() {
    killed(&["--multi-query", "2", "--answerer", MODEL, "--concurrency", "4"], 4);
}

/// Kills workers in the middle of a run with these flags, which asks at most so many calls at once.
fn killed(flags: &[&str], at_once: u64) {
    let provider = Provider::start(&["--latency-ms", "40"]);
    let alone = provider.bench().run(submit("alone", flags));
    // words of a model find nothing now and then, which makes a run INVALID: here it is asked whether both are the same
    let code = if alone.code == 5 { 5 } else { 0 };
    let alone = alone.expect_code(code).json();
    let calls = provider.count("requests");
    let cluster = Cluster::with(Setup::default()).with_provider(provider.base_url(), KEY);
    let mut coordinator = cluster.coordinator("coordinator");
    let mut workers: Vec<Process> = ["one", "two"].map(|name| cluster.worker(name, &[])).into();
    wait_until_ready(&mut coordinator);
    workers.iter_mut().for_each(wait_until_ready);
    let mut client = cluster.client(&submit("together", flags));
    let mut kills = 0;
    while kills < 3 && client.runs() {
        std::thread::sleep(Duration::from_millis(700));
        workers[kills % 2].kill();
        workers[kills % 2] = cluster.worker(["one", "two"][kills % 2], &[]);
        kills += 1;
    }
    let together = client.wait(PATIENCE).expect_code(code).json();
    assert_eq!(together["result_digest"], alone["result_digest"], "alone, and with {kills} kills");
    assert_eq!(together["run"]["fingerprint"], alone["run"]["fingerprint"]);
    let repeated = provider.count("requests") - 2 * calls;
    assert!(repeated <= at_once * kills as u64, "{repeated} calls of {calls} were repeated by {kills} kills");
}
