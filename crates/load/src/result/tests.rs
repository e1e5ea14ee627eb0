use std::time::Duration;

use super::*;
use crate::stress::{AtOnce, Count, Duplicates, Round, StressResult};

fn plan() -> Plan {
    Plan {
        system: "bm25".to_owned(),
        system_version: "1.0.0".to_owned(),
        settings_sha256: "00".to_owned(),
        arrivals: "poisson".to_owned(),
        rates: vec![10.0],
        mix: Mix::default(),
        banks: 1,
        bank_sizes: vec![100],
        top_k: 10,
        seconds: 10.0,
        warm_up_seconds: 1.0,
        drain_seconds: 1.0,
        in_flight: 10,
    }
}

fn process(id: &str, seed: u64) -> Process {
    Process {
        id: id.to_owned(),
        seed,
        machine: "m".to_owned(),
        code_version: "1".to_owned(),
        build: "release".to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        ended_at: "2026-01-01T00:01:00Z".to_owned(),
        interrupted: false,
    }
}

fn step(begun_at_ms: u64, bank_size: u32, ms: &[u64]) -> StepResult {
    let mut tally = Tally::default();
    for (at, ms) in ms.iter().enumerate() {
        tally.departed += 1;
        tally.note(at as f64 / ms.max(&1).to_owned() as f64, Duration::from_millis(*ms), Ok(()));
    }
    let findings = Some(Findings { found: ms.len() as u64, missed: 0, foreign: 0 });
    let recall = OperationResult { tally, findings, ..OperationResult::default() };
    StepResult {
        bank_size,
        memories_per_bank: f64::from(bank_size),
        rate: 10.0,
        begun_at_ms,
        seconds: 10.0,
        standing: Standing::Held,
        growth: None,
        operations: BTreeMap::from([(Operation::Recall, recall)]),
        warm_up: OperationResult::default(),
        waited_for_a_place: 0,
        late_ms: Percentiles::default(),
        late: Latencies::default(),
    }
}

fn result(id: &str, seed: u64, begun_at_ms: u64, ms: &[u64]) -> LoadResult {
    LoadResult::new(plan(), process(id, seed), vec![step(begun_at_ms, 100, ms)])
}

/// Compares a text with a file of the repository; `BENCH_BLESS=1 cargo test` writes it anew.
fn hold_to_file(path: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto").join(path);
    if std::env::var_os("BENCH_BLESS").is_some() {
        std::fs::write(&path, format!("{text}\n")).expect("the file can be written");
    }
    let stored = std::fs::read_to_string(&path).expect("the file exists");
    let path = path.display();
    assert!(stored.trim_end() == text, "{path} is not what the types say: run the tests with BENCH_BLESS=1");
}

fn golden_of(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../proto/golden/{name}.v1.json"));
    std::fs::read_to_string(path).expect("the file exists")
}

/// The schema of what is written.
fn schema_of<T: JsonSchema>() -> String {
    let generator = schemars::generate::SchemaSettings::default().for_serialize().into_generator();
    serde_json::to_string_pretty(&generator.into_root_schema_for::<T>()).expect("is serialised")
}

#[test]
fn published_schemas_and_golden_files_are_those_of_the_types() {
    hold_to_file("schema/load.schema.json", &schema_of::<LoadResult>());
    hold_to_file("schema/stress.schema.json", &schema_of::<StressResult>());
    let pretty = |value: serde_json::Value| serde_json::to_string_pretty(&value).expect("is serialised");
    let load = result("a1b2c3d4", 7, 1_790_000_000_000, &[5, 7, 9, 11, 250]);
    hold_to_file("golden/load.v1.json", &pretty(serde_json::to_value(&load).expect("is serialised")));
    let stress = stress();
    hold_to_file("golden/stress.v1.json", &pretty(serde_json::to_value(&stress).expect("is serialised")));
    // what any build of this version has written is read
    let load_of: LoadResult = serde_json::from_str(&golden_of("load")).expect("is read");
    assert_eq!(load_of.checked().expect("is a result"), load);
    let stress_of: StressResult = serde_json::from_str(&golden_of("stress")).expect("is read");
    assert_eq!(stress_of.checked().expect("is a result"), stress);
}

fn stress() -> StressResult {
    let of = |ms: &[u64]| step(0, 10, ms).operations.remove(&Operation::Recall).expect("was asked");
    let at = |at_once| AtOnce {
        at_once,
        recall: of(&[3, 4, 5]),
        found_by_width: BTreeMap::from([(1, Findings { found: 3, missed: 0, foreign: 0 })]),
        rounds: [10, 20, 30].map(|memories| Round { memories, median_ms: Some(4.0), n: 50 }).to_vec(),
        ms_per_1000_memories: None,
    };
    StressResult {
        schema: crate::stress::SCHEMA.to_owned(),
        schema_version: crate::stress::SCHEMA_VERSION,
        suite_version: crate::stress::SUITE_VERSION,
        system: "bm25".to_owned(),
        system_version: "1.0.0".to_owned(),
        settings_sha256: "00".to_owned(),
        process: process("a1b2c3d4", 7),
        widths: vec![1, 3, 5, 10, 20],
        retain: OperationResult { findings: None, ..of(&[1, 2]) },
        at_once: [1, 4, 16].map(at).to_vec(),
        stored: Some(Count { expected: 1_000, found: 1_000 }),
        duplicates: Duplicates::default(),
        notes: Vec::new(),
    }
    .counted()
}

fn recall(result: &LoadResult) -> Figures {
    result.steps[0].operations[&Operation::Recall].figures
}

#[test]
fn processes_add_up_to_what_one_would_have_measured() {
    let (one, other) = (result("a", 1, 1_000, &[5, 7, 9]), result("b", 2, 2_500, &[1, 2, 100]));
    let whole = result("c", 3, 1_000, &[5, 7, 9, 1, 2, 100]);
    let sum = LoadResult::merged(vec![one, other]).expect("they are one load");
    assert_eq!(sum.processes.len(), 2);
    assert!((sum.steps[0].rate - 20.0).abs() < 1e-9);
    let (summed, of_one) = (recall(&sum), recall(&whole));
    assert_eq!(summed.latency_ms, of_one.latency_ms);
    assert_eq!((summed.served, summed.max_ms), (of_one.served, of_one.max_ms));
    assert_eq!(sum.steps[0].operations[&Operation::Recall].findings.map(|found| found.found), Some(6));
}

#[test]
fn what_is_not_one_load_is_not_added_up() {
    let one = || result("a", 1, 1_000, &[5]);
    let told = |other: LoadResult| LoadResult::merged(vec![one(), other]).expect_err("is refused").to_string();
    assert!(told(result("b", 2, 60_000, &[5])).contains("--start-at"));
    assert!(told(result("a", 2, 1_000, &[5])).contains("twice"));
    assert!(told(result("b", 1, 1_000, &[5])).contains("arrivals coincide"));
    let mut other = result("b", 2, 1_000, &[5]);
    other.plan.mix = Mix { retain: 0, recall: 1 };
    assert_eq!(told(other), "not of one load: --mix is retain=1,recall=4 in one and retain=0,recall=1 in the other");
    assert!(LoadResult::merged(Vec::new()).is_err());
}

#[test]
fn a_file_is_read_as_it_was_written_and_its_figures_are_made_anew() {
    let written = result("a", 1, 1_000, &[5, 7, 9]);
    let mut text = serde_json::to_value(&written).expect("is written");
    text["steps"][0]["operations"]["recall"]["figures"]["latency_ms"]["p50"] = 1.into();
    let read: LoadResult = serde_json::from_value(text.clone()).expect("is read");
    assert_eq!(read.checked().expect("is a result"), written);
    for (key, value) in [("schema", "x".into()), ("schema_version", 2.into()), ("processes", serde_json::json!([]))] {
        let mut other = text.clone();
        other[key] = value;
        let read: LoadResult = serde_json::from_value(other).expect("is read");
        assert!(read.checked().is_err(), "{key}");
    }
}

#[test]
fn latency_is_followed_over_the_sizes_of_banks() {
    let sizes = [1_000, 2_000, 3_000];
    let steps = sizes.map(|size| step(0, size, &[u64::from(size) / 100; 20])).to_vec();
    let result = LoadResult::new(plan(), process("a", 1), steps);
    assert_eq!(result.at_bank_sizes.len(), 3);
    let [growth] = result.growth_of_banks[..] else { panic!("{:?}", result.growth_of_banks) };
    assert!((growth.ms_per_1000_memories.slope - 10.0).abs() < 0.02, "{growth:?}");
}

#[test]
fn what_a_reader_has_to_know_is_said() {
    let mut odd = step(0, 100, &[5; 10]);
    let recall = odd.operations.get_mut(&Operation::Recall).expect("is there");
    (recall.tally.unsent, recall.tally.unfinished) = (3, 2);
    recall.findings = Some(Findings { found: 6, missed: 4, foreign: 1 });
    odd.late.record(Duration::from_millis(40));
    let result = LoadResult::new(plan(), Process { interrupted: true, ..process("a", 1) }, vec![odd]);
    let notes = result.notes.join("\n");
    for part in [
        "interrupted",
        "3 operations were due and never sent",
        "2 operations",
        "4 of 10",
        "another bank",
        "40.0 ms late",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert_eq!(result.steps[0].standing, Standing::Behind);
}
