//! Seeing inside: waterfalls from the store, traces at a real collector, metrics in a real Prometheus, and nothing secret in any.

mod lines;
mod tokens;
mod unsent;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use bench_e2e::{
    amqp::Wire,
    collector::{Arrived, Collector, tree},
};
use bench_testkit::{
    bench::Bench,
    cluster::{Cluster, health_of, wait_until_ready},
    http,
    prometheus::Prometheus,
    provider::{KEY, Provider},
};
use serde_json::{Value, json};

/// Longest time that a run of these tests may take.
const PATIENCE: Duration = Duration::from_secs(120);
const PLACE: &str = "https://jaeger.example/trace/{trace_id}";

fn names<'s>(spans: &[&'s Arrived]) -> BTreeSet<&'s str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

#[test]
fn p20_a_question_is_drawn_from_the_store_alone() {
    let provider = Provider::start(&["--latency-ms", "20", "--fault-500", "0.2"]);
    let bench = provider.bench();
    let _ = bench.run(provider.submit(&["--run-id", "seen", "--set", "backoff.initial_interval=10ms"])).expect_code(0);
    let slowest = bench.run(["trace", "seen", "--json"]).expect_code(0).json();
    let slowest: Vec<&Value> = slowest.as_array().expect("a list").iter().collect();
    assert_eq!(slowest.len(), 10);
    assert_eq!(slowest[0]["trace_id"], bench.report("seen")["slowest"][0]["trace_id"]);
    let id = slowest[0]["question_id"].as_str().expect("an id");
    let drawn = bench.run(["trace", "seen", id]).expect_code(0).stdout;
    for word in ["question ", "queue_wait", "recall", "answer", "judge", "checkpoint", "chat gpt-4o-mini", "HTTP 200"] {
        assert!(drawn.contains(word), "'{word}' is missing in:\n{drawn}");
    }
    let by_id = bench.run(["trace", "seen", id, "--json"]).expect_code(0).json();
    let trace_id = by_id["trace_id"].as_str().expect("an id");
    assert_eq!(bench.run(["trace", "seen", trace_id, "--json"]).expect_code(0).json(), by_id);
    assert_eq!(bench.run(["trace", "latest", "--slowest", "--json"]).expect_code(0).json(), by_id);
    assert_eq!(by_id["kept"], Value::Null, "without a collector nothing is kept");
    // every try of every question is there: the provider failed one in five
    let questions = bench.questions("seen");
    let retried = questions.iter().find(|q| q["attempts"].as_u64() > Some(4)).expect("some were tried again");
    let trace = bench.run(["trace", "seen", retried["question_id"].as_str().expect("an id"), "--json"]).expect_code(0);
    let trace = trace.json();
    let spans = trace["spans"].as_array().expect("spans");
    let of_status =
        |status: u64| spans.iter().filter(|s| s["attributes"]["http.response.status_code"] == status).count();
    assert_eq!(of_status(200), 2, "{trace:#}");
    assert!(of_status(500) > 0, "{trace:#}");
    let unknown = bench.run(["trace", "seen", "no-such-question"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("has no question"), "{}", unknown.stderr);
}

#[test]
fn p20_a_question_is_one_tree_over_two_workers_with_a_broker_between() {
    let collector = Collector::start(false);
    let provider = Provider::start(&["--latency-ms", "20"]);
    let cluster = Cluster::new()
        .with_provider(provider.base_url(), KEY)
        .with_env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint());
    // what the processes themselves do is sent too, also where it tells nothing
    std::fs::write(cluster.bench().path().join("bench.toml"), "[telemetry]\nprocess_rate = 1.0\npatience = \"60s\"\n")
        .expect("is written");
    let mut coordinator = cluster.coordinator("coordinator");
    wait_until_ready(&mut coordinator);
    // nobody works yet: what is handed out lies in the broker
    let client = cluster.client(&provider.submit(&["--run-id", "tree", "--set", "trace.rate=1", "--trace-url", PLACE]));
    let wire = Wire::to(&cluster.vhost().admin);
    let headers = wire.next_headers_when_there("bench.t1.default.retain");
    let carried = headers.iter().find(|(name, _)| name == "traceparent").map(|(_, value)| value.as_str());
    assert!(carried.is_some_and(|text| text.starts_with("00-") && text.len() == 55), "{headers:?}");

    let mut asker = cluster.worker("asker", &["--roles", "retain,question"]);
    let mut judge = cluster.worker("judge", &["--roles", "judge"]);
    wait_until_ready(&mut asker);
    wait_until_ready(&mut judge);
    let report = client.wait(PATIENCE).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0);

    let questions = cluster.questions("tree");
    assert_eq!(questions.len(), 50);
    let traces: Vec<&str> = questions.iter().filter_map(|q| q["trace_id"].as_str()).collect();
    let all_roots = |spans: &[Arrived]| {
        let roots: BTreeSet<&str> = spans.iter().filter(|s| s.name == "question").map(|s| s.trace.as_str()).collect();
        traces.iter().all(|trace| roots.contains(trace))
    };
    let spans = collector.wait_for("the tree of every question", all_roots);
    for (question, trace) in questions.iter().zip(&traces) {
        let tree = tree(&spans, trace);
        for name in ["dispatch", "queue_wait", "recall", "answer", "judge", "checkpoint", "chat gpt-4o-mini"] {
            assert!(names(&tree).contains(name), "{name} is missing: {:?}", names(&tree));
        }
        let process = |name: &str| tree.iter().find(|s| s.name == name).map(|s| s.process.as_str());
        assert_eq!(
            (process("recall"), process("answer"), process("judge")),
            (Some("asker"), Some("asker"), Some("judge"))
        );
        let root = tree[0];
        let attribute = |name: &str| root.attributes.get(name).map(String::as_str);
        assert_eq!(attribute("bench.question.id"), question["question_id"].as_str());
        assert_eq!(attribute("bench.outcome"), question["outcome"].as_str());
        assert_eq!(attribute("bench.trace.kept"), Some("sampled"));
        let linked: BTreeSet<&str> =
            spans.iter().filter(|s| root.links.contains(&s.id)).map(|s| s.name.as_str()).collect();
        assert_eq!(linked, BTreeSet::from(["ready", "retain", "submit"]), "what came before is linked");
        let queue = tree.iter().find(|s| s.name == "queue_wait").expect("is there");
        assert_eq!(queue.attributes["messaging.system"], "rabbitmq");
        assert_eq!(queue.attributes["messaging.destination.name"], "bench.t1.default.question");
        let call = tree.iter().find(|s| s.name == "chat gpt-4o-mini").expect("is there");
        assert_eq!(call.attributes["gen_ai.request.model"], "gpt-4o-mini");
        assert_eq!(call.attributes["http.response.status_code"], "200");
        let server = format!("http://{}:{}/v1", call.attributes["server.address"], call.attributes["server.port"]);
        assert_eq!(server, provider.base_url());
        assert_eq!(question["trace_url"], PLACE.replace("{trace_id}", trace));
    }
    // texts are nobody's business, keys least of all
    let text = questions[0]["question"].as_str().expect("a text").to_owned();
    asker.signal("TERM");
    judge.signal("TERM");
    let metrics = ["bench_questions_total", "bench_step_seconds", "bench_cost_usd_total", "bench_tokens_total"];
    let (_, _) = (asker.wait(PATIENCE).expect_code(0), judge.wait(PATIENCE).expect_code(0));
    for name in metrics {
        assert!(collector.metrics().contains(name), "{name} did not arrive: {:?}", collector.metrics());
    }
    coordinator.signal("TERM");
    let _ = coordinator.wait(PATIENCE).expect_code(0);
    what_the_processes_did(&collector.spans(), &traces);
    tokens::adds_up(&collector, &report);
    let everything = collector.dump() + &cluster.logs().into_iter().map(|(_, log)| log).collect::<String>();
    assert!(!everything.contains(KEY), "the key is in what was sent or logged");
    assert!(!collector.dump().contains(&text), "a question's text is in a trace");
}

/// Every process shows its batches as traces of its own, linked to questions that are sent.
fn what_the_processes_did(spans: &[Arrived], questions: &[&str]) {
    let of = |name: &str| spans.iter().filter(|s| s.name == name).collect::<Vec<_>>();
    for (name, process) in [
        ("dispatch_batch", "coordinator"),
        ("sweep", "coordinator"),
        ("aggregate", "coordinator"),
        ("claim_batch", "asker"),
        ("claim_batch", "judge"),
        ("checkpoint_batch", "asker"),
        ("checkpoint_batch", "judge"),
        ("bank_task", "asker"),
        ("task", "asker"),
        ("task", "judge"),
    ] {
        let found = of(name);
        assert!(found.iter().any(|s| s.process == process), "no {name} of {process}: {found:?}");
        assert!(found.iter().all(|s| s.parent.is_empty() && !questions.contains(&s.trace.as_str())), "{found:?}");
    }
    for trace in questions {
        let tree = tree(spans, trace);
        let attempts = spans.iter().filter(|s| s.name == "task" && s.links.contains(&tree[0].id));
        let attempts: BTreeSet<&str> = attempts.map(|s| s.process.as_str()).collect();
        assert_eq!(attempts, BTreeSet::from(["asker", "judge"]), "each process shows its part of the question live");
    }
    assert!(of("submit").iter().any(|s| s.process.starts_with("local-")), "the client shows what it did");
    let roots: BTreeSet<&str> = spans.iter().filter(|s| s.name == "question").map(|s| s.id.as_str()).collect();
    let dispatched: BTreeSet<&str> = spans.iter().filter(|s| s.name == "dispatch").map(|s| s.id.as_str()).collect();
    for (name, linked) in [("dispatch_batch", &dispatched), ("claim_batch", &dispatched), ("conclude_batch", &roots)] {
        let known = of(name).iter().any(|s| s.links.iter().any(|id| linked.contains(id.as_str())));
        assert!(known, "no {name} is linked to a question that arrived");
    }
}

#[test]
fn p20_slow_questions_are_kept_whole_with_a_link_and_fast_ones_are_not() {
    let collector = Collector::start(true);
    // two calls in a hundred are not answered
    let provider = Provider::start(&["--latency-ms", "10", "--fault-hang", "0.03"]);
    let bench = provider
        .bench()
        .with_env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint())
        .with_env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
    let flags = ["--run-id", "slow", "--trace-url", PLACE, "--trace-content", "--set", "trace.rate=0"];
    let flags =
        [&flags[..], &["--set", "trace.slow=4s", "--set", "models.timeout=5s", "--set", "telemetry.patience=60s"]]
            .concat();
    let report = bench.run(provider.submit(&flags)).expect_code(0).json();
    let questions = bench.questions("slow");
    let kept: BTreeSet<&str> =
        questions.iter().filter(|q| q["trace_url"].is_string()).filter_map(|q| q["trace_id"].as_str()).collect();
    let hung: BTreeSet<&str> =
        questions.iter().filter(|q| q["attempts"].as_u64() > Some(3)).filter_map(|q| q["trace_id"].as_str()).collect();
    assert!(!hung.is_empty(), "the provider hung on no question");
    assert_eq!(kept, hung, "slow ones and no others");
    let slowest = &report["slowest"][0];
    let id = slowest["trace_id"].as_str().expect("an id");
    assert_eq!(slowest["trace_url"], PLACE.replace("{trace_id}", id));
    assert!(slowest["ms"].as_f64() > Some(4_000.0), "{slowest}");
    let fast = report["slowest"].as_array().and_then(|all| all.last()).expect("ten of them");
    assert_eq!(fast["trace_url"], Value::Null, "{fast}");

    // the process has ended: what was kept has arrived
    let spans = collector.spans();
    let arrived: BTreeSet<&str> =
        spans.iter().filter(|span| span.name == "question").map(|span| span.trace.as_str()).collect();
    assert_eq!(arrived, kept);
    let tree = tree(&spans, id);
    assert!(["recall", "answer", "judge", "checkpoint"].iter().all(|name| names(&tree).contains(name)));
    let longest = tree.iter().filter(|s| s.name == "chat gpt-4o-mini").max_by_key(|s| s.times.1 - s.times.0);
    let longest = longest.expect("calls are there");
    assert_eq!(longest.attributes["error.type"], "transport", "what was slow is in it: {longest:?}");
    assert!(tree[0].attributes.contains_key("bench.question.text"), "this run allows texts");
    assert!(!collector.dump().contains(KEY));
}

#[test]
fn a_collector_that_is_away_costs_nothing_but_its_traces() {
    let provider = Provider::start(&["--latency-ms", "10"]);
    let digest = provider.digest(&[]);
    let bench = provider.bench().with_env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let done = bench.run(provider.submit(&["--run-id", "away", "--set", "trace.rate=1"])).expect_code(0);
    assert_eq!(done.json()["result_digest"].as_str(), Some(digest.as_str()));
    let said = done.stderr.lines().filter(|line| line.contains("cannot be sent")).count();
    assert!((1..=2).contains(&said), "traces and metrics, once each:\n{}", done.stderr);
    let trace = bench.run(["trace", "away", "--slowest", "--json"]).expect_code(0).json();
    assert_eq!(trace["kept"], "sampled", "the decision is stored all the same");

    // the next process that has a collector sends what this one could not
    let collector = Collector::start(false);
    let bench = bench.with_env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint());
    let flags = ["--run-id", "back", "--set", "trace.rate=0", "--set", "telemetry.patience=60s"];
    let _ = bench.run(provider.submit(&flags)).expect_code(0);
    let sent: BTreeSet<String> =
        bench.questions("away").iter().filter_map(|q| q["trace_id"].as_str().map(str::to_owned)).collect();
    let spans = collector.wait_for("what was left over", |spans| {
        let arrived: BTreeSet<_> = spans.iter().filter(|s| s.name == "question").map(|s| s.trace.clone()).collect();
        sent.is_subset(&arrived)
    });
    let slowest = trace["trace_id"].as_str().expect("an id");
    assert!(tree(&spans, slowest).len() > 5, "whole, as it would have been at once");
}

#[test]
fn a_collector_that_never_answers_costs_nothing_but_a_little_patience_at_the_end() {
    let provider = Provider::start(&["--latency-ms", "10"]);
    let digest = provider.digest(&[]);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", silent.local_addr().expect("an address"));
    // connections are taken by the kernel, nobody reads from them
    let bench = provider.bench().with_env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    let flags = ["--run-id", "silent", "--set", "trace.rate=1", "--set", "telemetry.process_rate=1"];
    let done = bench.run(provider.submit(&flags)).expect_code(0);
    assert_eq!(done.json()["result_digest"].as_str(), Some(digest.as_str()));
    assert!(done.stderr.contains("cannot be sent"), "{}", done.stderr);
    let trace = bench.run(["trace", "silent", "--slowest", "--json"]).expect_code(0).json();
    assert_eq!(trace["kept"], "sampled", "nothing else is lost");
    drop(silent);
}

#[test]
fn bad_telemetry_settings_are_refused_before_any_work() {
    let bench = Bench::new();
    for (flags, word) in [
        (&["--trace-url", "https://jaeger/trace/"][..], "{trace_id}"),
        (&["--trace-url", "jaeger/{trace_id}"], "web address"),
        (&["--trace-url", "https://u:opensesame1@jaeger/{trace_id}"], "trace.url holds what looks like a key"),
        (&["--set", "trace.url=https://jaeger/{trace_id}?token=opensesame1"], "trace.url holds what looks like a key"),
        (&["--set", "telemetry.protocol=carrier-pigeon"], "grpc"),
        (&["--set", "trace.rate=2"], "from 0 to 1"),
    ] {
        let done = bench.run([&["submit", "--dataset", "locomo-sim", "--preset", "quick"][..], flags].concat());
        assert_eq!(done.code, 2, "{flags:?}: {}", done.stderr);
        assert!(done.stderr.contains(word) && !done.stderr.contains("opensesame"), "{flags:?}: {}", done.stderr);
    }
}

#[test]
fn prometheus_reads_coordinator_and_workers_and_their_logs_change_while_they_run() {
    // so slow that the run lasts until somebody has looked
    let provider = Provider::start(&["--latency-ms", "3000"]);
    let cluster = Cluster::new().with_provider(provider.base_url(), KEY);
    let mut coordinator = cluster.coordinator("coordinator");
    let mut worker = cluster.worker("worker", &["--concurrency", "4"]);
    let places = [health_of(&mut coordinator), health_of(&mut worker)];
    let prometheus = Prometheus::start(&places.each_ref().map(String::as_str), None)
        .unwrap_or_else(|e| panic!("tests need Prometheus: {e:#}"));
    let client = cluster.client(&provider.submit(&["--run-id", "metered", "--max-cost", "5"]));
    prometheus.wait_for_targets().expect("both are scraped");
    provider.wait_for_requests(1);
    let page = |place: &str| http::get(place, "/metrics").expect("answers").body;
    let mut running = page(&places[0]);
    let began = Instant::now();
    while !running.contains("run=\"metered\"") && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(100));
        running = page(&places[0]);
    }
    for series in [
        "bench_coordinator_leading 1",
        "bench_run_cost_usd{kind=\"cap\",run=\"metered\"} 5",
        "bench_run_questions{run=\"metered\",state=\"sample\"} 50",
        "bench_workers{pool=\"default\",state=\"alive\"} 1",
        "bench_dead_letters 0",
    ] {
        assert!(running.lines().any(|line| line == series), "{series} is missing:\n{running}");
    }
    provider.control(&json!({"latency": {"median_ms": 10.0}}));
    let _ = client.wait(PATIENCE).expect_code(0);
    let questions_of = |page: &str| -> f64 {
        let counters = page.lines().filter(|line| line.starts_with("bench_questions_total{"));
        counters.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    };
    // a worker counts behind its commit, at which the run has ended for others; what is late the coordinator concludes, and counts
    let counted = || places.iter().map(|place| questions_of(&page(place))).sum::<f64>();
    let began = Instant::now();
    while counted() < 50.0 && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let ended = page(&places[1]);
    assert_eq!(counted(), 50.0, "{ended}");
    let fed = [
        "bench_step_seconds_bucket",
        "bench_provider_seconds_bucket",
        "bench_wait_seconds_bucket",
        "bench_tokens_total",
        "bench_model_calls_total",
        "bench_model_call_seconds_bucket",
        "bench_rate_used_total{account=\"openai\",unit=\"requests\"}",
        "bench_cost_usd_total",
        "bench_checkpoint_rows_bucket",
        "bench_checkpoint_seconds_bucket",
        "bench_slots_busy",
    ];
    for name in fed {
        assert!(ended.contains(name), "{name} is missing:\n{ended}");
    }
    assert!(!(running + &ended).contains(KEY), "the key is in a metric");
    // what was scraped last is there at the next scrape
    let began = Instant::now();
    while !prometheus.metric_names().expect("answers").iter().any(|name| name == "bench_questions_total") {
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", prometheus.metric_names());
        std::thread::sleep(Duration::from_millis(200));
    }

    // the filter of a running process
    let place = places[1].as_str();
    let asked = |method: &str, body: &str| http::request(method, place, "/api/log-level", None, body).expect("answers");
    assert!(asked("GET", "").json()["filter"].as_str().is_some_and(|filter| filter.starts_with("info")));
    assert_eq!(asked("PUT", "debug,lapin=off").status, 200);
    assert_eq!(asked("GET", "").json(), json!({"filter": "debug,lapin=off"}));
    let refused = asked("PUT", "bench=loud");
    assert_eq!(refused.status, 400, "{}", refused.body);
    let _ = worker.wait_for_line("the filter of the logs is now", Duration::from_secs(10));
}
