use bench_proto::{
    ids::TaskKey,
    trace::{SpanId, SpanKind, TraceId},
};
use bench_worker::traces::Subject;

use super::*;

fn span(id: u8, parent: Option<u8>, name: &str, class: SpanClass, start_us: i64, end_us: i64) -> Span {
    let id_of = |id| SpanId([0, 0, 0, 0, 0, 0, 0, id]);
    Span {
        trace: TraceId([1; 16]),
        id: id_of(id),
        parent: parent.map(id_of),
        name: name.to_owned(),
        class,
        kind: SpanKind::Internal,
        start_us,
        end_us,
        attributes: Vec::new(),
        links: Vec::new(),
        error: None,
        session: 1,
    }
}

/// The trace of a question that one worker has worked on.
fn trace_of(spans: Vec<Span>) -> QuestionTrace {
    QuestionTrace {
        subject: Subject {
            task: TaskKey::question(0, 0),
            question_id: "conv-26:0".into(),
            bank_id: "conv-26".into(),
            category: "temporal".into(),
        },
        trace_id: "ab".repeat(16),
        spans,
        linked: Vec::new(),
        workers: [(1, "worker-1".to_owned())].into(),
        facts: None,
    }
}

#[test]
fn a_waterfall_shows_where_the_time_went() {
    let mut refused = span(5, Some(4), "chat gpt-4o-mini", SpanClass::Call, 60_000, 65_000);
    refused.attributes.push(("http.response.status_code", SpanValue::Int(429)));
    let mut wait = span(6, Some(4), "retry_wait", SpanClass::Wait, 65_000, 1_000_000);
    wait.attributes.push(("bench.reason", "asked to wait".into()));
    let spans = vec![
        span(1, None, "question", SpanClass::Question, 0, 2_000_000),
        span(2, Some(1), "queue_wait", SpanClass::Queue, 0, 50_000),
        span(3, Some(1), "recall", SpanClass::Step, 50_000, 60_000),
        span(4, Some(1), "answer", SpanClass::Step, 60_000, 1_990_000),
        refused,
        wait,
        span(7, Some(4), "chat gpt-4o-mini", SpanClass::Call, 1_000_000, 1_990_000),
        span(8, Some(1), "checkpoint", SpanClass::Checkpoint, 1_990_000, 2_000_000),
    ];
    let retained = (TaskKey::retain(0, 0), span(9, None, "retain", SpanClass::Run, -9_000_000, -4_000_000));
    let trace = QuestionTrace { linked: vec![retained], ..trace_of(spans) };
    insta::assert_snapshot!(draw(&trace, "nightly", Some("https://jaeger/trace/abab"), PIPE));

    let narrow = draw(&trace, "nightly", None, View { width: Some(80), colour: false });
    let body = narrow.lines().skip(4).take(9);
    assert!(body.clone().all(|line| line.chars().count() <= 80), "{narrow}");
    assert!(body.clone().any(|line| line.contains("HTTP 429")), "{narrow}");
    let wide = draw(&trace, "nightly", None, View { width: Some(400), colour: true });
    assert!(wide.contains(&"─".repeat(BARS.1)) && wide.contains("\u{1b}[32m█"), "{wide}");
    for width in 40..120 {
        let narrow = draw(&trace, "nightly", None, View { width: Some(width), colour: false });
        let too_wide: Vec<&str> = narrow.lines().filter(|line| line.chars().count() > width).collect();
        assert!(too_wide.is_empty(), "{width}: {too_wide:#?}");
        assert!(narrow.contains("▒ checkpoint") && narrow.contains("1.93 s"), "{narrow}");
    }
}

#[test]
fn an_index_that_is_built_is_no_wait_for_an_allowance() {
    let spans = vec![
        span(1, None, "question", SpanClass::Question, 0, 900_000),
        span(2, Some(1), "recall", SpanClass::Step, 0, 900_000),
        span(3, Some(2), "build", SpanClass::Wait, 0, 300_000),
        span(4, Some(2), "build_wait", SpanClass::Wait, 300_000, 500_000),
        span(5, Some(2), "rate_wait", SpanClass::Wait, 500_000, 510_000),
    ];
    let told = totals(&trace_of(spans)).expect("something was waited for");
    assert_eq!(told, ["500 ms building, or waiting for it", "10 ms waiting for allowances, money and repeats"]);
}

#[test]
fn votes_are_numbered_and_what_belongs_to_one_stands_together() {
    let of_vote = |span: Span, vote: u64| span.with("bench.judge", 0_u64).with("bench.vote", vote);
    let mut failed = span(9, Some(6), "chat gpt-4o-mini", SpanClass::Call, 20_000, 30_000);
    failed.error = Some("HTTP 500".into());
    failed = failed.with("http.response.status_code", 500_u64).with("server.address", "api.openai.com");
    failed = failed.with("server.port", 443_u64);
    let called = span(10, Some(6), "chat gpt-4o-mini", SpanClass::Call, 30_000, 70_000);
    let called = called.with("http.response.status_code", 200_u64);
    let called = called.with("server.address", "10.0.0.3").with("server.port", 8080_u64);
    let spans = vec![
        span(1, None, "question", SpanClass::Question, 0, 100_000),
        span(2, Some(1), "recall", SpanClass::Step, 0, 10_000),
        of_vote(span(3, Some(1), "queue_wait", SpanClass::Queue, 10_000, 20_000), 0),
        of_vote(span(4, Some(1), "queue_wait", SpanClass::Queue, 10_000, 20_000), 1),
        of_vote(span(5, Some(1), "judge", SpanClass::Step, 20_000, 60_000), 0),
        of_vote(span(6, Some(1), "judge", SpanClass::Step, 20_000, 70_000), 1),
        failed,
        called,
        of_vote(span(7, Some(1), "checkpoint", SpanClass::Checkpoint, 60_000, 61_000), 0),
        of_vote(span(8, Some(1), "checkpoint", SpanClass::Checkpoint, 70_000, 71_000), 1),
    ];
    let trace = trace_of(spans);
    insta::assert_snapshot!(draw(&trace, "nightly", None, PIPE));
    assert_eq!(repeats(&trace).as_deref(), Some("1 failed call"));
}

const PIPE: View = View { width: None, colour: false };

#[test]
fn the_overview_has_one_line_a_question() {
    let slow = |id: &str, ms, kept| Slow {
        question_id: id.into(),
        ms,
        recall_ms: ms * 0.1,
        answer_ms: ms * 0.5,
        judge_ms: ms * 0.4,
        wait_ms: if kept { ms * 0.8 } else { 0.0 },
        kept,
    };
    let both = [slow("conv-26:0", 12_000.0, true), slow("conv-1:17", 800.0, false)];
    insta::assert_snapshot!(overview(&both, PIPE));
    let long = [slow(&"conversation-".repeat(3), 12_000.0, true), slow("conv-1:17", 800.0, false)];
    for width in 64..160 {
        for questions in [&both, &long] {
            let narrow = overview(questions, View { width: Some(width), colour: false });
            assert!(narrow.lines().all(|line| line.chars().count() <= width), "{width}:\n{narrow}");
            assert!(narrow.contains("9.60 s of it waiting  trace kept") && narrow.contains('▓'), "{narrow}");
        }
    }
}

#[test]
fn durations_keep_three_digits() {
    let words = [0, 950, 1_500, 45_000, 999_000, 1_234_000, 90_000_000].map(duration);
    assert_eq!(words, ["0 µs", "950 µs", "1.5 ms", "45 ms", "999 ms", "1.23 s", "1.5 min"]);
}
