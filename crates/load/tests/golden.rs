//! Results that were written stay readable, and what is written is what was written. `BENCH_BLESS=1` writes the files anew, which is
//! right for a new key and wrong for another meaning: that raises the version of the form.

use std::{collections::BTreeMap, path::Path, time::Duration};

use bench_load::{
    histogram::Latencies,
    mix::{Mix, Operation},
    result::{Findings, LoadResult, OperationResult, Percentiles, Plan, Process, StepResult},
    saturation::Standing,
    stress::{self, AtOnce, Count, Duplicates, Round, StressResult},
    tally::{Failed, Tally},
};
use serde::{Serialize, de::DeserializeOwned};

fn process() -> Process {
    Process {
        id: "0a1b2c3d".to_owned(),
        seed: 7,
        machine: "linux x86_64, 2 cores".to_owned(),
        code_version: "0.1.0".to_owned(),
        build: "release".to_owned(),
        started_at: "2026-11-25T08:00:00Z".to_owned(),
        ended_at: "2026-11-25T08:01:00Z".to_owned(),
        interrupted: false,
    }
}

fn recalls(ms: u64) -> OperationResult {
    let mut tally = Tally { unsent: 1, unfinished: 2, departed: 20, ..Tally::default() };
    (0..20).for_each(|at| tally.note(f64::from(at) / 20.0, Duration::from_millis(ms + u64::from(at as u32)), Ok(())));
    let failed = || Failed { kind: "system_http_503".to_owned(), message: "recall: HTTP 503".to_owned() };
    tally.note(0.5, Duration::from_millis(1), Err(failed()));
    let findings = Some(Findings { found: 19, missed: 1, foreign: 0 });
    OperationResult { tally, findings, ..OperationResult::default() }
}

fn load() -> LoadResult {
    let plan = Plan {
        system: "mine".to_owned(),
        system_version: "1".to_owned(),
        settings_sha256: "ab".repeat(32),
        arrivals: "poisson".to_owned(),
        rates: vec![10.0],
        mix: Mix::default(),
        banks: 2,
        bank_sizes: vec![100, 200, 300],
        top_k: 10,
        seconds: 2.0,
        warm_up_seconds: 1.0,
        drain_seconds: 1.0,
        in_flight: 100,
    };
    let mut late = Latencies::default();
    late.record(Duration::from_micros(120));
    let step = |bank_size: u32| StepResult {
        bank_size,
        memories_per_bank: f64::from(bank_size),
        rate: 10.0,
        begun_at_ms: 1_795_593_600_000,
        seconds: 2.0,
        standing: Standing::Held,
        growth: None,
        operations: BTreeMap::from([(Operation::Recall, recalls(u64::from(bank_size) / 10))]),
        warm_up: recalls(5),
        waited_for_a_place: 3,
        late_ms: Percentiles::default(),
        late: late.clone(),
    };
    LoadResult::new(plan, process(), [100, 200, 300].map(step).to_vec())
}

fn stress() -> StressResult {
    let at_once = |at_once: u32| AtOnce {
        at_once,
        recall: recalls(u64::from(at_once)),
        found_by_width: BTreeMap::from([(1, Findings { found: 19, missed: 1, foreign: 0 })]),
        rounds: (1..=3).map(|round| Round { memories: 10 * round, median_ms: Some(f64::from(round)), n: 20 }).collect(),
        ms_per_1000_memories: None,
    };
    let count = Count { expected: 1_000, found: 1_000 };
    StressResult {
        schema: stress::SCHEMA.to_owned(),
        schema_version: stress::SCHEMA_VERSION,
        suite_version: stress::SUITE_VERSION,
        system: "mine".to_owned(),
        system_version: "1".to_owned(),
        settings_sha256: "ab".repeat(32),
        process: process(),
        widths: stress::WIDTHS.to_vec(),
        retain: recalls(3),
        at_once: stress::AT_ONCE.map(at_once).to_vec(),
        stored: Some(count),
        duplicates: Duplicates {
            sent: 100,
            refused: 0,
            failed: 0,
            before: Some(count),
            after: Some(count),
            asked: 100,
            seen_once: 100,
            seen_twice: 0,
        },
        notes: Vec::new(),
        failure: None,
    }
    .counted()
}

/// The file of a value: written as it is there, and read as the value.
fn holds<T: Serialize + DeserializeOwned>(name: &str, value: &T) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name);
    let written = serde_json::to_string_pretty(value).expect("is written") + "\n";
    if std::env::var_os("BENCH_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("can be made");
        std::fs::write(&path, &written).expect("can be written");
    }
    let file = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(file, written, "{} is not what is written now: run the tests with BENCH_BLESS=1", path.display());
    serde_json::from_str(&file).expect("is read")
}

#[test]
fn a_load_stays_readable() {
    let load = load();
    assert_eq!(holds("load-v1.json", &load).checked(), Ok(load));
}

#[test]
fn a_stress_stays_readable() {
    let stress = stress();
    assert_eq!(holds("stress-v1.json", &stress).checked(), Ok(stress));
}
