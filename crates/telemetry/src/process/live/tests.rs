use mock_collector::{MockServer, Protocol as Spoken};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::{
    process::{link, started},
    process_span,
};

/// The way to the collector belongs to the process: one test after the other.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn options(endpoint: String, http: bool) -> OtlpOptions {
    OtlpOptions {
        endpoint,
        http,
        metrics_interval: Duration::from_secs(60),
        service: "bench-worker".into(),
        instance: "here".into(),
        patience: Duration::from_secs(60),
    }
}

fn listening() -> DefaultGuard {
    tracing::subscriber::set_default(tracing_subscriber::registry().with(layer()))
}

/// A span that ends at once.
fn brief(span: Span) {
    started(span).in_scope(|| ());
}

#[tokio::test]
async fn what_tells_something_arrives_over_both_protocols_and_the_rest_does_not() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let _listening = listening();
    for spoken in [Spoken::Grpc, Spoken::HttpBinary] {
        let http = spoken != Spoken::Grpc;
        let server = MockServer::builder().protocol(spoken).port(0).start().await.expect("a collector");
        assert!(process_span!("sweep", run = "before").is_none(), "nothing is made before there is a way");
        let sending = ProcessSpans::start(&options(format!("http://{}", server.addr()), http), 0.0).expect("a way");
        brief(process_span!("sweep", run = "nothing to tell"));
        brief(process_span!("submit", run = "rare"));
        let batch = process_span!("checkpoint_batch", records = 3_i64);
        link(&batch, [9; 16], [9; 8]);
        started(batch).in_scope(|| {
            tracing::info!(target: "bench_worker::writer", records = 3_u64, "the store was away");
            tracing::debug!(target: "bench_worker::writer", "of no interest");
            tracing::warn!(target: "h2::client", "none of ours");
        });
        let attempt = process_span!("task", question = "q");
        link(&attempt, [7; 16], [1; 8]);
        brief(attempt);
        let refused = started(process_span!("claim_batch", messages = 1_i64));
        crate::process::failed(&refused, "the store refuses");
        refused.in_scope(|| ());
        drop(refused);
        sending.close().await;
        let never = || -> u64 { unreachable!("fields of a span that is not made are not evaluated") };
        assert!(process_span!("sweep", tasks = never()).is_none());
        server.wait_for_spans(4, Duration::from_secs(10)).await.expect("arrive");
        server
            .with_collector(|got| {
                let mut names: Vec<&str> = got.spans().iter().map(|s| s.span().name.as_str()).collect();
                names.sort_unstable();
                assert_eq!(names, ["checkpoint_batch", "claim_batch", "submit", "task"]);
                got.expect_span_with_name("checkpoint_batch")
                    .with_resource_attribute("service.instance.id", "here")
                    .with_attribute("records", 3_i64)
                    .assert_count(1);
                let of = |name: &str| got.spans().iter().find(|s| s.span().name == name).expect("is there").span();
                let (batch, attempt) = (of("checkpoint_batch"), of("task"));
                assert_eq!(
                    (batch.links[0].trace_id.as_slice(), batch.links[0].span_id.as_slice()),
                    (&[9; 16][..], &[9; 8][..])
                );
                let said: Vec<&str> = batch.events.iter().map(|event| event.name.as_str()).collect();
                assert_eq!(said, ["the store was away"]);
                assert_eq!(attempt.links[0].span_id, [1; 8]);
                assert!(got.spans().iter().all(|s| s.span().parent_span_id.is_empty()), "all are roots");
                assert_eq!(of("claim_batch").status.as_ref().expect("has one").message, "the store refuses");
            })
            .await;
        server.shutdown().await.expect("ends");
    }
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_never_answers_costs_a_bounded_number_of_spans_and_nothing_else() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let _listening = listening();
    metrics::enable("bench-worker", "here");
    // takes connections and says nothing
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let place = silent.local_addr().expect("an address");
    let taking = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            held.push(stream);
        }
    });
    let sending = ProcessSpans::start(&options(format!("http://{place}"), true), 1.0).expect("a way");
    let before = dropped();
    for _ in 0..WAITING + 100 {
        brief(process_span!("sweep", run = "many"));
    }
    assert!(dropped() - before >= 100.0, "what found no room is counted");
    let began = tokio::time::Instant::now();
    sending.close().await;
    assert!(began.elapsed() <= Duration::from_secs(20), "the end waits for {:?}", began.elapsed());
    taking.abort();
}

/// Spans that were dropped, by the Prometheus page.
fn dropped() -> f64 {
    let page = metrics::render().expect("a page");
    let line = page.lines().find_map(|line| line.strip_prefix("bench_spans_total{outcome=\"dropped\"} "));
    line.map_or(0.0, |number| number.parse().expect("a number"))
}

#[tokio::test]
async fn lines_of_the_log_inside_of_a_span_carry_its_trace() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let lines = crate::logs::capture("info");
    let _listening = tracing::dispatcher::set_default(&lines.dispatch);
    let sending = ProcessSpans::start(&options("http://127.0.0.1:1".into(), false), 0.0).expect("a way");
    let span = started(process_span!("checkpoint_batch", records = 1_i64));
    let trace = span.context().span().span_context().trace_id().to_string();
    span.in_scope(|| tracing::warn!("the store is away"));
    tracing::warn!("outside");
    drop(span);
    drop(sending);
    set_way(None);
    let text = lines.text();
    let (inside, outside) = text.split_once('\n').expect("two lines");
    assert!(inside.contains(&format!("trace_id={trace}")) && inside.contains("the store is away"), "{text}");
    assert!(!outside.contains("trace_id"), "{text}");
}
