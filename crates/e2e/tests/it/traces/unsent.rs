//! Traces that were decided and are not yet sent when their process is killed: another one sends them, whole.

use std::{collections::BTreeSet, time::Duration};

use bench_e2e::{
    collector::{Collector, tree},
    mute::Mute,
};
use bench_proto::ids::{RunId, trace_id};
use bench_testkit::{
    bench::{signal, wait},
    cluster::{Cluster, wait_until_ready},
    process::wait_until,
    provider::{KEY, Provider},
};
use serde_json::{Value, json};

use super::names;

const HTTP: (&str, &str) = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

#[test]
fn p20_what_a_killed_run_had_decided_and_not_sent_is_sent_when_it_goes_on() {
    let (mute, collector) = (Mute::start(), Collector::start(true));
    // one call after the other, so that the run is far from its end when it is killed
    let provider = Provider::start(&["--latency-ms", "300"]);
    let bench = provider.bench().with_env(HTTP.0, HTTP.1).with_env(ENDPOINT, mute.endpoint());
    let flags =
        ["--run-id", "killed", "--concurrency", "1", "--set", "trace.rate=1", "--set", "telemetry.patience=60s"];
    let child = bench.start(provider.submit(&flags));
    let killed = format!("local-{}", child.id());
    mute.wait_for_questions();
    signal(&child, "KILL");
    let _ = wait(child);

    let ended = bench.run(["trace", "killed", "--json"]).expect_code(0).json();
    let ended: Vec<&Value> = ended.as_array().expect("a list").iter().collect();
    let decided: BTreeSet<&str> = ended.iter().filter_map(|q| q["trace_id"].as_str()).collect();
    assert!(!decided.is_empty() && ended.iter().all(|q| q["kept"] == "sampled"), "{ended:#?}");
    assert!(decided.iter().any(|trace| mute.has_heard_of(trace)), "none of them was on its way");

    provider.control(&json!({"latency": {"median_ms": 10.0}}));
    let bench = bench.with_env(ENDPOINT, collector.endpoint());
    let _ = bench.run(["resume", "killed", "--json"]).expect_code(0);
    let spans = collector.spans();
    let roots: BTreeSet<&str> = spans.iter().filter(|s| s.name == "question").map(|s| s.trace.as_str()).collect();
    let questions = bench.questions("killed");
    let all: BTreeSet<&str> = questions.iter().filter_map(|q| q["trace_id"].as_str()).collect();
    assert_eq!((questions.len(), &roots), (50, &all), "the trace of every question has arrived, whoever ended it");
    for trace in decided {
        let tree = tree(&spans, trace);
        assert!(["recall", "answer", "judge", "checkpoint"].iter().all(|name| names(&tree).contains(name)));
        assert!(tree.iter().any(|s| s.name == "answer" && s.process == killed), "its work was the dead process's");
    }
}

#[test]
fn p20_what_a_killed_worker_had_decided_and_not_sent_the_next_one_sends() {
    let (mute, collector) = (Mute::start(), Collector::start(true));
    let provider = Provider::start(&["--latency-ms", "100"]);
    let cluster = Cluster::new().with_provider(provider.base_url(), KEY);
    let mut coordinator = cluster.coordinator("coordinator");
    wait_until_ready(&mut coordinator);
    let mut victim = cluster.worker_with("victim", &["--concurrency", "4"], &[HTTP, (ENDPOINT, mute.endpoint())]);
    let _client = cluster.client(&provider.submit(&["--run-id", "left", "--set", "trace.rate=1"]));
    mute.wait_for_questions();
    victim.kill();

    // decided in one transaction with the questions' ends: the store knows what nobody has sent
    let known = "SELECT f.task_key, f.question_id FROM unsent_traces AS u JOIN facts AS f USING (run_no, task_key)";
    let unsent = cluster.sql(known);
    let (tasks, questions): (Vec<&str>, Vec<&str>) = unsent.lines().filter_map(|line| line.split_once('|')).unzip();
    assert!(!tasks.is_empty(), "{unsent}");
    let run = RunId("left".to_owned());
    let decided: BTreeSet<String> = questions.iter().map(|question| trace_id(&run, question)).collect();
    assert!(decided.iter().any(|trace| mute.has_heard_of(trace)), "none of them was on its way");

    // half a minute later, when they are no longer the victim's alone
    let _ = cluster.sql("UPDATE unsent_traces SET due_us = 0");
    let next = cluster.worker_with("next", &[], &[HTTP, (ENDPOINT, &collector.endpoint())]);
    let left = format!("SELECT count(*) FROM unsent_traces WHERE task_key IN ({})", tasks.join(", "));
    wait_until("what the victim left behind is sent", Duration::from_secs(60), || cluster.sql(&left) == "0");
    let spans = collector.spans();
    for trace in &decided {
        let tree = tree(&spans, trace);
        assert!(["recall", "answer", "judge", "checkpoint"].iter().all(|name| names(&tree).contains(name)));
        assert!(tree.iter().any(|s| s.name == "answer" && s.process == "victim"), "its work was the dead worker's");
    }
    drop(next);
}
