use super::*;
use crate::{
    call::{Ledger, Usage},
    facts::PhaseUsage,
    money::PicoUsd,
};

const GOLDEN: &str = include_str!("../../golden/report.v4.json");

/// Compares `text` with a file of the repository; `BENCH_BLESS=1 cargo test` writes it anew.
fn hold_to_file(path: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("BENCH_BLESS").is_some() {
        std::fs::write(&path, format!("{text}\n")).expect("the file can be written");
    }
    let stored = std::fs::read_to_string(&path).expect("the file exists");
    assert!(
        stored.trim_end() == text,
        "{} is not what the types say: run the tests with BENCH_BLESS=1",
        path.display()
    );
}

#[test]
fn published_schemas_are_those_of_the_types() {
    let pretty = |schema: schemars::Schema| serde_json::to_string_pretty(&schema).expect("schemas serialise");
    hold_to_file("schema/report.schema.json", &pretty(schemars::schema_for!(Summary)));
    hold_to_file("schema/question.schema.json", &pretty(schemars::schema_for!(QuestionLine)));
    hold_to_file("schema/comparison.schema.json", &pretty(schemars::schema_for!(crate::comparison::Comparison)));
    hold_to_file("schema/gate.schema.json", &pretty(schemars::schema_for!(crate::gate::GateReport)));
    hold_to_file("schema/matrix.schema.json", &pretty(schemars::schema_for!(crate::matrix::MatrixReport)));
    hold_to_file("schema/repeats.schema.json", &pretty(schemars::schema_for!(crate::repeats::RepeatsReport)));
}

#[test]
fn the_golden_report_is_read_and_written_unchanged() {
    let summary: Summary = serde_json::from_str(GOLDEN).expect("the golden report is a summary");
    hold_to_file("golden/report.v4.json", &serde_json::to_string_pretty(&summary).expect("serialises"));
    assert_eq!(summary.schema_version, REPORT_SCHEMA_VERSION);
    // what the version before wrote is the same report, whose precision had another meaning
    let before: Summary = serde_json::from_str(include_str!("../../golden/report.v3.json")).expect("is a summary");
    assert_eq!((&before.result_digest, &before.headline), (&summary.result_digest, &summary.headline));
    let (old, new) = (&before.retrieval.turn[&10], &summary.retrieval.turn[&10]);
    assert_eq!((before.schema_version, old.precision, old.precision_of_returned), (3, None, new.precision_of_returned));
    assert!(new.precision.is_some() && new.precision_of_returned.is_some(), "{new:?}");
    // and so is what the version before that wrote, whose recall had building in it
    let before: Summary = serde_json::from_str(include_str!("../../golden/report.v2.json")).expect("is a summary");
    assert_eq!((before.schema_version, before.latency_probe.is_none(), before.concurrency.is_none()), (2, true, true));
    assert_eq!((&before.result_digest, &before.headline), (&summary.result_digest, &summary.headline));
    for before in [include_str!("../../golden/report.v1.first.json"), include_str!("../../golden/report.v1.json")] {
        let before: Summary = serde_json::from_str(before).expect("is a summary");
        assert_eq!((before.result_digest, before.headline), (summary.result_digest.clone(), summary.headline.clone()));
        assert_eq!((before.schema_version, before.usage.booked, before.group), (1, None, None));
    }
}

/// The keys of the contract, by the object they stand in.
const CONTRACT: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "schema_version",
            "run",
            "dataset",
            "spec",
            "outcomes",
            "headline",
            "scores",
            "retrieval",
            "controls",
            "concurrency",
            "latency_ms",
            "latency_probe",
            "phases",
            "usage",
            "total",
            "slowest",
            "worst",
            "phase_seconds",
            "system_stats",
            "top1_score",
            "result_digest",
        ],
    ),
    (
        "/run",
        &[
            "id",
            "name",
            "fingerprint",
            "status",
            "verdict",
            "reasons",
            "code_version",
            "started_at",
            "finished_at",
            "wall_seconds",
            "resumed_times",
        ],
    ),
    ("/dataset", &["name", "version", "sha256", "questions", "banks", "sessions", "sample"]),
    ("/dataset/sample", &["preset", "sampler", "n", "signature"]),
    ("/spec", &["system", "answerer", "judge", "prompts", "scorers", "top_k"]),
    ("/outcomes", &["scored", "abstained", "infra_error", "not_run", "sample", "coverage"]),
    ("/headline", &["metric", "value", "estimator", "ci95", "naive_ci95", "benchmark_ci95", "strict"]),
    ("/headline/ci95", &["low", "high", "method"]),
    ("/headline/naive_ci95", &["low", "high"]),
    (
        "/scores/0",
        &[
            "metric",
            "micro",
            "macro",
            "weighted",
            "ci95",
            "naive_ci95",
            "n",
            "pass_rate",
            "pass_threshold",
            "by_category",
        ],
    ),
    (
        "/scores/0/by_category/0",
        &["category", "n", "population", "value", "min", "max", "clusters", "ci95", "naive_ci95"],
    ),
    ("/retrieval/turn/10", &["recall_any", "recall_all", "recall", "precision", "mrr", "ndcg", "n"]),
    ("/retrieval/session/10", &["recall_any", "recall_all", "recall", "precision", "mrr", "ndcg", "n"]),
    ("/controls/0", &["name", "metric", "value", "n"]),
    ("/latency_ms", &["retain", "recall", "answer", "judge", "question", "queue_wait", "rate_wait"]),
    ("/latency_ms/question", &["p50", "p95", "p99", "n"]),
    ("/concurrency", &["questions", "in_flight"]),
    ("/latency_probe", &["n", "p50_ms", "p95_ms", "p99_ms", "conditions"]),
    ("/latency_probe/conditions", &["concurrency", "recalls", "top_k", "sample", "machines", "other_tasks"]),
    ("/phases/build", &["n", "seconds", "p50_ms", "p95_ms", "p99_ms"]),
    ("/group", &["id", "cap_usd", "booked_usd"]),
    ("/usage", &["retain", "recall", "answer", "judge", "total", "booked"]),
    ("/usage/booked", &["usd", "unfinished", "unused", "overhead", "uncertain"]),
    (
        "/usage/answer",
        &["calls", "cached_calls", "retries", "rate_limited", "prompt_tokens", "completion_tokens", "usd"],
    ),
    ("/usage/total", &["usd", "usd_cap", "usd_list", "usd_booked", "usd_uncertain", "usd_overdraft"]),
    ("/slowest/0", &["question_id", "ms", "phase_ms", "trace_id"]),
    ("/worst/0", &["question_id", "score", "gold", "answer"]),
];

#[test]
fn the_keys_of_the_contract_are_all_there() {
    let report: Value = serde_json::from_str(GOLDEN).expect("the golden report is JSON");
    for (place, keys) in CONTRACT {
        let object = report.pointer(place).and_then(Value::as_object).unwrap_or_else(|| panic!("{place} is an object"));
        for key in *keys {
            assert!(object.contains_key(*key), "{place}/{key} is missing");
        }
    }
}

#[test]
fn keys_added_later_are_ignored_and_extra_keys_may_be_absent() {
    let newer = GOLDEN.replacen('{', "{\"added_later\": {\"x\": 1},", 1);
    let summary: Summary = serde_json::from_str(&newer).expect("unknown keys are ignored");
    let mut plain: Value = serde_json::to_value(&summary).expect("serialises");
    let top = plain.as_object_mut().expect("is an object");
    for extra in ["labels", "without_adversarial", "failure_attribution", "errors", "warnings"] {
        top.remove(extra).expect("the extra key is written");
    }
    serde_json::from_value::<Summary>(plain).expect("reads without the extra keys");
}

#[test]
fn usage_is_summed_in_whole_picodollars() {
    let usage = |cost| Usage { calls: 1, cost: PicoUsd(cost), ..Usage::default() };
    let questions = PhaseUsage { recall: usage(1), answer: usage(2), judge: usage(999_999_999_996) };
    let summary = UsageSummary::new(&usage(1), None, &questions, Some(20.0), None);
    assert_eq!((summary.total.used.calls, summary.total.used.usd, summary.total.usd_cap), (4, 1.0, Some(20.0)));
    assert_eq!((summary.total.usd_booked, summary.booked), (1.0, None));
}

#[test]
fn p41_the_total_is_the_ledgers_and_names_what_is_in_no_phase() {
    let usage = |calls, cost| Usage { calls, cost: PicoUsd(cost), prompt_tokens: calls * 10, ..Usage::default() };
    let questions = PhaseUsage { answer: usage(2, 200), judge: usage(1, 50), ..PhaseUsage::default() };
    let ledger = Ledger {
        booked: PicoUsd(1_020),
        overdraft: PicoUsd(3),
        ended: usage(5, 400),
        unfinished: usage(3, 300),
        overhead: usage(1, 5),
        metered: usage(2, 20),
        uncertain: usage(1, 295),
        lost: Default::default(),
    };
    let summary = UsageSummary::new(&usage(1, 100), None, &questions, None, Some(&ledger));
    let of = |figures: &UsageFigures| (figures.calls, figures.prompt_tokens, (figures.usd * 1e12).round() as i64);
    let booked = summary.booked.expect("there is a ledger");
    assert_eq!(of(&booked.unfinished), (3, 30, 300));
    assert_eq!(of(&booked.unused), (1, 10, 50), "what ended questions and banks did not need");
    assert_eq!(of(&booked.overhead), (1, 10, 5));
    assert_eq!(of(&booked.metered.expect("it was metered")), (2, 20, 20));
    assert_eq!(of(&booked.uncertain), (1, 10, 295));
    assert_eq!(of(&summary.total.used), (11, 110, 725), "all of them but the uncertain");
    let total = &summary.total;
    assert_eq!((total.usd_booked, total.usd_uncertain, total.usd_overdraft), (1020e-12, 295e-12, 3e-12));
    assert_eq!(total.usd_list, 350e-12, "what the results cost without the call store");
    // the calls of a restored run are elsewhere
    let restored = UsageSummary::new(&usage(1, 100), None, &questions, None, Some(&Ledger::default()));
    assert_eq!((of(&restored.total.used), restored.total.usd_booked), ((4, 40, 350), 350e-12));
}

#[test]
fn a_question_line_has_the_keys_of_the_contract() {
    let line = QuestionLine {
        prompts: vec!["answerer.answer".into(), "judge.judge-temporal".into()],
        question_id: "b:1".into(),
        bank_id: "b".into(),
        category: "temporal".into(),
        facets: BTreeMap::from([("abstention".into(), "no".into())]),
        question: "When?".into(),
        gold: Some("in May".into()),
        answer: None,
        answered_by: None,
        outcome: crate::facts::Outcome::InfraError,
        scores: BTreeMap::new(),
        searches: Vec::new(),
        retrieved: vec![RetrievedLine {
            id: "D1:1".into(),
            session_id: "D1".into(),
            score: None,
            text: "A: hi".into(),
            placed_by: Some(crate::step::PlacedBy::Text),
            level: Some(LineLevel::Turn),
            details: BTreeMap::default(),
        }],
        evidence: vec!["D1:1".into()],
        evidence_sessions: vec!["D1".into()],
        original_sessions: BTreeMap::from([("D1".into(), "answer_1".into())]),
        found: FoundLine::of_levels(&crate::step::Retrieval {
            turn: crate::step::RankHits { gold: 2, ranked: 4, ranks: vec![2] },
            ..Default::default()
        }),
        citations: vec![],
        failures: vec![],
        cause: Some(Cause { kind: Some(CauseKind::NotStored), stored: Some(false), retrieved: Some(false) }),
        judgements: vec![JudgementLine {
            judge: "openai:j".into(),
            vote: 0,
            verdict: "CORRECT".into(),
            raw: "{}".into(),
            calls: vec![],
            grade: None,
            chosen: false,
        }],
        error: Some("timeout: no reply".into()),
        usage: PhaseUsageLine::default(),
        timing_ms: TimingLine::default(),
        trace_id: "0".repeat(32),
        trace_url: None,
        attempts: 7,
    };
    let value = serde_json::to_value(&line).expect("serialises");
    let keys: Vec<&str> = value.as_object().expect("is an object").keys().map(String::as_str).collect();
    for key in [
        "question_id",
        "bank_id",
        "category",
        "facets",
        "question",
        "gold",
        "answer",
        "outcome",
        "scores",
        "retrieved",
        "citations",
        "failures",
        "judgements",
        "error",
        "usage",
        "timing_ms",
        "trace_id",
        "attempts",
    ] {
        assert!(keys.contains(&key), "{key} is missing");
    }
    let found = serde_json::json!({"turn": {"relevant": 1, "of": 2, "precision": 0.25, "reciprocal_rank": 0.5}});
    assert_eq!(value["found"], found, "a level without ground truth says nothing");
    assert_eq!(serde_json::from_value::<QuestionLine>(value).expect("reads back"), line);
}
