use mock_collector::{MockServer, Protocol as Spoken, ServerHandle};

use super::*;

async fn collector(spoken: Spoken) -> (ServerHandle, OtlpOptions) {
    let http = spoken != Spoken::Grpc;
    let server = MockServer::builder().protocol(spoken).port(0).start().await.expect("a collector");
    let options = OtlpOptions {
        endpoint: format!("http://{}", server.addr()),
        http,
        metrics_interval: Duration::from_millis(100),
        service: "bench-worker".into(),
        instance: "here".into(),
        patience: Duration::from_secs(60),
    };
    (server, options)
}

fn span(id: u8, process: &str) -> FinishedSpan {
    FinishedSpan {
        trace: [7; 16],
        id: [id; 8],
        parent: (id > 1).then_some([1; 8]),
        name: format!("span-{id}"),
        kind: Kind::Client,
        start_us: 1_700_000_000_000_000,
        end_us: 1_700_000_000_500_000,
        attributes: vec![("bench.run.id", Value::Text("r".into())), ("http.response.status_code", Value::Int(429))],
        links: vec![([9; 16], [9; 8])],
        error: (id == 2).then(|| "HTTP 429".to_owned()),
        process: process.into(),
    }
}

#[tokio::test]
async fn spans_arrive_over_both_protocols_under_the_names_of_their_processes() {
    for spoken in [Spoken::Grpc, Spoken::HttpBinary] {
        let (server, options) = collector(spoken).await;
        let sink = span_sink(&options).expect("a way");
        sink.send(vec![span(1, "one"), span(2, "two"), span(3, "")]).await.expect("are sent");
        server.wait_for_spans(3, Duration::from_secs(10)).await.expect("arrive");
        server
            .with_collector(|got| {
                for (name, process) in [("span-1", "one"), ("span-2", "two"), ("span-3", "here")] {
                    got.expect_span_with_name(name)
                        .with_resource_attribute("service.instance.id", process)
                        .with_resource_attribute("service.name", "bench-worker")
                        .with_attribute("http.response.status_code", 429_i64)
                        .assert_count(1);
                }
                let second = got.spans().iter().find(|s| s.span().name == "span-2").expect("is there");
                assert_eq!(second.span().trace_id, [7; 16]);
                assert_eq!(second.span().parent_span_id, [1; 8]);
                assert_eq!(second.span().links[0].span_id, [9; 8]);
            })
            .await;
        server.shutdown().await.expect("ends");
    }
}

#[tokio::test]
async fn a_collector_that_is_away_is_an_error_and_no_more() {
    let options = OtlpOptions {
        endpoint: "http://127.0.0.1:1".into(),
        http: false,
        metrics_interval: Duration::from_secs(1),
        service: "s".into(),
        instance: "i".into(),
        patience: Duration::from_secs(1),
    };
    let sink = span_sink(&options).expect("the endpoint makes sense");
    assert!(sink.send(vec![span(1, "one")]).await.is_err());
    let nonsense = OtlpOptions { endpoint: "http://user:secret@[nonsense".into(), ..options };
    let error = span_sink(&nonsense).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(!error.contains("secret"), "{error}");
}

#[tokio::test]
async fn metrics_are_on_the_page_and_at_the_collector() {
    let (server, options) = collector(Spoken::Grpc).await;
    crate::metrics::enable("bench-worker", "here");
    catalogue::QUESTIONS.add(2.0, &["scored"]);
    catalogue::CHECKPOINT_ROWS.record(7.0, &[]);
    catalogue::CLIENT_SECONDS.record(0.05, &["chat", "openai", "m", "", "api.example", "443", "429"]);
    catalogue::SLOTS.set_all(vec![(vec!["question".into()], 64.0), (vec!["judge".into()], 8.0)]);
    catalogue::SLOTS.set_all(vec![(vec!["question".into()], 32.0)]);
    let page = crate::metrics::render().expect("a page");
    for line in [
        "# TYPE bench_questions_total counter",
        "bench_questions_total{outcome=\"scored\"} 2",
        "bench_checkpoint_rows_count 1",
        "bench_checkpoint_rows_bucket{le=\"10\"} 1",
        "bench_slots{role=\"question\"} 32",
        // what is not known is no label
        "gen_ai_client_operation_duration_count{error_type=\"429\",gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"openai\",gen_ai_request_model=\"m\",server_address=\"api.example\",server_port=\"443\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is missing:\n{page}");
    }
    assert!(!page.contains("role=\"judge\""), "a series that is gone is no longer shown:\n{page}");
    let pusher = MetricsPusher::start(&options, None).expect("starts");
    pusher.close().await;
    server.wait_for_metrics(1, Duration::from_secs(10)).await.expect("arrive");
    server.with_collector(|got| got.expect_metric_with_name("bench_questions_total").assert_exists()).await;
    server.shutdown().await.expect("ends");
}

#[test]
fn what_is_sent_says_by_which_conventions_it_is_named() {
    assert_eq!(scope().schema_url(), Some(metrics::SCHEMA_URL));
    assert_eq!(metrics::resource("bench-worker", "here").schema_url(), Some(metrics::SCHEMA_URL));
}
