//! One line per failure, where it is handled. Outages of the broker are counted where it is taken away (`cluster/broker.rs`).

use std::collections::BTreeSet;

use bench_proto::ids::{RunId, trace_id};
use bench_testkit::provider::Provider;
use serde_json::{Value, json};

/// The lines of a log in JSON; what is told to people is left out.
fn lines(stderr: &str) -> Vec<Value> {
    stderr.lines().filter(|line| line.starts_with('{')).filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn a_question_that_is_given_up_is_one_line_with_everything_to_find_it() {
    // no judgement can be read: attempts inside of calls are in traces, not in the log
    let provider = Provider::start(&["--fault-malformed-judge", "1", "--permanent-faults"]);
    let bench = provider.bench().with_env("BENCH_LOG_FORMAT", "json").with_env("RUST_LOG", "info");
    let flags = ["--run-id", "broken", "--retries", "2", "--set", "backoff.initial_interval=5ms", "--display", "none"];
    let done = bench.run(provider.submit(&flags)).expect_code(5);
    let of_judge = lines(&done.stderr).into_iter().filter(|line| line["code"] == "unparsable_judgement");
    let (said, counted): (Vec<Value>, Vec<Value>) = of_judge.partition(|line| line["question"].is_string());
    let questions = bench.questions("broken");
    assert_eq!((said.len(), questions.len()), (50, 50), "one line for each question:\n{}", done.stderr);
    let of_lines: BTreeSet<&str> = said.iter().filter_map(|line| line["question"].as_str()).collect();
    let of_run: BTreeSet<&str> = questions.iter().filter_map(|q| q["question_id"].as_str()).collect();
    assert_eq!(of_lines, of_run);
    let run = RunId("broken".to_owned());
    // a judge that keeps to no form is told once, and then by its number
    assert_eq!(said.iter().filter(|line| line["level"] == "WARN").count(), 1, "{said:#?}");
    let [counted] = counted.as_slice() else { panic!("of fifty the tenth is counted: {counted:#?}") };
    assert_eq!((&counted["level"], &counted["run"]), (&json!("WARN"), &json!("broken")));
    let message = counted["message"].as_str().expect("a message");
    assert!(message.contains("10 tasks of run broken are given up"), "{message}");
    for line in &said {
        let question = line["question"].as_str().expect("a question");
        assert_eq!((&line["run"], &line["attempt"]), (&json!("broken"), &json!(1)));
        assert_eq!(
            (&line["code"], &line["trace_id"]),
            (&json!("unparsable_judgement"), &json!(trace_id(&run, question))),
            "{line}"
        );
        let message = line["message"].as_str().expect("a message");
        assert!(message.contains(question) && message.contains("is given up"), "{message}");
    }
}
