//! What a collector adds up is what the report says: tokens are told once, spans lie inside their parents, and each arrives once.

use std::collections::{BTreeMap, BTreeSet};

use bench_e2e::collector::{Arrived, Collector, Point};
use bench_testkit::provider::Provider;
use serde_json::Value;

use super::names;

/// Tokens of a report, prompt and completion.
fn reported(usage: &Value) -> [u64; 2] {
    ["prompt_tokens", "completion_tokens"].map(|name| usage[name].as_u64().expect("a count"))
}

/// Holds what has arrived of an undisturbed run, all of whose traces are kept, against its report.
pub(super) fn adds_up(collector: &Collector, report: &Value) {
    let arrived = collector.arrivals();
    let mut by_id: BTreeMap<&str, &Arrived> = BTreeMap::new();
    for span in &arrived {
        let again = by_id.insert(&span.id, span);
        assert!(again.is_none(), "{} arrived twice: {span:?}", span.name);
    }
    let mut sums = [0, 0];
    for span in &arrived {
        for (sum, name) in sums.iter_mut().zip(["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"]) {
            *sum += span.attributes.get(name).map_or(0, |number| number.parse::<u64>().expect("a number"));
        }
        let Some(parent) = by_id.get(span.parent.as_str()) else {
            assert!(span.parent.is_empty(), "its parent did not arrive: {span:?}");
            continue;
        };
        let inside = parent.times.0 <= span.times.0 && span.times.1 <= parent.times.1;
        assert!(inside, "{span:?}\nis not inside of\n{parent:?}");
    }
    // probes belong to no question, and have no trace
    let (total, probes) = (reported(&report["usage"]["total"]), reported(&report["usage"]["booked"]["overhead"]));
    let questions = [total[0] - probes[0], total[1] - probes[1]];
    assert_eq!(sums, questions, "sums over all spans are the report's");
}

/// Sums of a histogram's points, by one of their attributes.
fn by(points: &[Point], attribute: &str) -> BTreeMap<String, u64> {
    points.iter().fold(BTreeMap::new(), |mut sums, (attributes, sum, _)| {
        *sums.entry(attributes.get(attribute).cloned().unwrap_or_default()).or_default() += *sum as u64;
        sums
    })
}

/// What is said of an undisturbed run: on a machine that is too busy for the collector to answer in time, spans are sent again.
#[test]
fn p20_tokens_of_spans_and_metrics_add_up_to_the_reports() {
    if (0..2).all(|_| std::panic::catch_unwind(tokens_add_up).is_err()) {
        tokens_add_up();
    }
}

fn tokens_add_up() {
    let collector = Collector::start(false);
    // judgements that cannot be read are paid too, and asked for again
    let provider = Provider::start(&["--latency-ms", "5", "--fault-malformed-judge", "0.2"]);
    let bench = provider.bench().with_env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint());
    let flags =
        ["--run-id", "sums", "--system", "vector", "--set", "trace.rate=1", "--set", "telemetry.process_rate=1"];
    let flags = [&flags[..], &["--set", "telemetry.patience=60s", "--set", "backoff.initial_interval=5ms"]].concat();
    let report = bench.run(provider.submit(&flags)).expect_code(0).json();
    adds_up(&collector, &report);
    let spans = collector.spans();
    let with_tokens: Vec<&Arrived> =
        spans.iter().filter(|span| span.attributes.contains_key("gen_ai.usage.input_tokens")).collect();
    let told = names(&with_tokens);
    assert_eq!(told, BTreeSet::from(["chat gpt-4o-mini", "embeddings text-embedding-3-small"]));
    for span in with_tokens {
        let attribute = |name: &str| span.attributes.get(name).map(String::as_str);
        assert_eq!(attribute("gen_ai.response.model"), attribute("gen_ai.request.model"), "as the provider names it");
    }
    let retried = spans.iter().filter(|span| span.name.starts_with("chat ")).count();
    assert!(retried > 100, "no judgement was asked for again");

    let tokens = collector.histogram("gen_ai.client.token.usage");
    let [prompt, completion] = reported(&report["usage"]["total"]);
    assert_eq!(
        by(&tokens, "gen_ai.token.type"),
        BTreeMap::from([("input".to_owned(), prompt), ("output".to_owned(), completion)])
    );
    let seconds = collector.histogram("gen_ai.client.operation.duration");
    let operations: BTreeSet<&str> = seconds.iter().map(|(of, ..)| of["gen_ai.operation.name"].as_str()).collect();
    assert_eq!(operations, BTreeSet::from(["chat", "embeddings"]));
    for (attributes, _, bounds) in tokens.iter().chain(&seconds) {
        let server = format!("http://{}:{}/v1", attributes["server.address"], attributes["server.port"]);
        assert_eq!(server, provider.base_url());
        assert_eq!(attributes["gen_ai.provider.name"], "openai");
        assert_eq!(attributes["gen_ai.request.model"], attributes["gen_ai.response.model"]);
        assert!(matches!((bounds[0], bounds.len()), (1.0 | 0.01, 14)), "the buckets of the conventions: {bounds:?}");
    }
}
