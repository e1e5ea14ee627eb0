use std::time::Duration;

use super::*;
use crate::{
    gate::{self, Ceiling, Check, Outcome},
    stress::{AtOnce, Count, Duplicates, Round, StressResult},
};

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
        failure: None,
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
    let mut other = result("b", 2, 1_000, &[5]);
    other.plan.in_flight = 11;
    assert!(told(other).contains("--in-flight is 10 in one and 11 in the other"));
    let mut other = result("b", 2, 1_000, &[5]);
    other.steps[0].seconds = 7.9;
    assert!(told(other).contains("7.9 s in one process and for 10.0 s in another"));
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

/// Each process serves twenty a second, one of them for a little less long.
#[test]
fn what_processes_of_unequal_length_served_a_second_adds_up() {
    let of = |id, seed, seconds: f64| {
        let mut step = step(1_000, 100, &[5; 3]);
        (step.rate, step.seconds) = (20.0, seconds);
        let recall = step.operations.get_mut(&Operation::Recall).expect("was asked");
        recall.tally.departed = (20.0 * seconds).round() as u64;
        LoadResult::new(Plan { rates: vec![20.0], ..plan() }, process(id, seed), vec![step])
    };
    let sum = LoadResult::merged(vec![of("a", 1, 10.0), of("b", 2, 8.5)]).expect("they are one load");
    assert!((recall(&sum).served_per_second - 40.0).abs() < 1e-9, "{}", recall(&sum).served_per_second);
    assert!((sum.steps[0].rate - 40.0).abs() < 1e-9);
}

#[test]
fn a_step_that_was_cut_says_nothing_of_a_rate() {
    let at = |rate, seconds, bank_size| StepResult { rate, seconds, ..step(0, bank_size, &[5; 10]) };
    let steps = vec![at(10.0, 10.0, 100), at(20.0, 3.0, 100)];
    let cut = LoadResult::new(plan(), Process { interrupted: true, ..process("a", 1) }, steps);
    assert_eq!((cut.at_bank_sizes[0].saturation.held, cut.at_bank_sizes[0].knee), (Some(10.0), None));
    assert!(cut.steps[1].is_cut(plan().seconds) && !cut.steps[0].is_cut(plan().seconds));
    let steps = vec![at(10.0, 10.0, 1_000), at(10.0, 10.0, 2_000), at(10.0, 3.0, 3_000)];
    assert!(LoadResult::new(plan(), process("a", 1), steps).growth_of_banks.is_empty(), "two sizes are whole");
}

#[test]
fn counts_that_nobody_can_have_counted_are_refused() {
    let mut of_load = result("a", 1, 1_000, &[5]);
    of_load.steps[0].operations.get_mut(&Operation::Recall).expect("was asked").tally.unsent = u64::MAX;
    assert!(of_load.checked().is_err());
    let mut findings = result("a", 1, 1_000, &[5]);
    findings.steps[0].operations.get_mut(&Operation::Recall).expect("was asked").findings =
        Some(Findings { found: u64::MAX, missed: u64::MAX, foreign: 0 });
    assert!(findings.checked().is_err());
    let of_suite = StressResult { duplicates: Duplicates { sent: u64::MAX, ..Duplicates::default() }, ..stress() };
    assert!(of_suite.checked().is_err());
    let mut of_suite = stress();
    of_suite.at_once[0].recall.tally.departed = 1 << 53;
    assert!(of_suite.checked().is_err());
    // each for itself can be counted
    let most = |id, seed| {
        let mut result = result(id, seed, 1_000, &[5]);
        result.steps[0].waited_for_a_place = (1 << 53) - 100;
        result.checked().expect("can be counted")
    };
    assert!(LoadResult::merged(vec![most("a", 1), most("b", 2)]).is_err());
}

#[test]
fn loads_of_other_conditions_are_not_held_against_each_other() {
    let one = || result("a", 1, 1_000, &[5; 100]);
    let against = |change: &dyn Fn(&mut LoadResult)| {
        let mut old = result("b", 2, 9_000, &[5; 100]);
        change(&mut old);
        gate::load(&one(), &old, 1.25)
    };
    assert!(against(&|_| {}).is_ok_and(|checks| checks.iter().all(|check| check.outcome == Outcome::Pass)));
    let other = |change: &dyn Fn(&mut LoadResult)| against(change).expect_err("is another one");
    assert_eq!(other(&|old| old.plan.in_flight = 11), "--in-flight is 10, and was 11");
    assert_eq!(other(&|old| old.plan.warm_up_seconds = 0.0), "--warm-up is 1, and was 0");
    assert_eq!(other(&|old| old.plan.drain_seconds = 2.0), "--drain is 1, and was 2");
    assert!(other(&|old| old.processes[0].interrupted = true).contains("ended before its time"));
    assert!(other(&|old| old.failure = Some("503".to_owned())).contains("ended before its time"));
    let grown = against(&|old| old.steps[0].memories_per_bank = 150.0).expect("they have a step in common");
    let [Check { outcome: Outcome::Inconclusive, seen, .. }] = &grown[..] else { panic!("{grown:?}") };
    assert!(seen.contains("banks had 100 memories on average when the step began, and 150 in the baseline"), "{seen}");
    assert!(seen.contains("whose banks are no longer counted as grown"), "{seen}");
    assert!(against(&|old| old.steps[0].memories_per_bank = 110.0).is_ok_and(|checks| checks.len() > 1));
    // two machines are the same two, whichever file was named first
    let of_two = |first: &str, second: &str| {
        let on = |machine: &str, id: &str, seed| {
            let mut one = result(id, seed, 1_000, &[5; 100]);
            one.processes[0].machine = machine.to_owned();
            one
        };
        LoadResult::merged(vec![on(first, "a", 1), on(second, "b", 2)]).expect("they are one load")
    };
    assert!(gate::load(&of_two("m", "n"), &of_two("n", "m"), 1.25).is_ok());
    assert!(gate::load(&of_two("m", "n"), &of_two("n", "n"), 1.25).is_err());
    let (whole, mut cut) = (stress(), stress());
    assert!(gate::stress(&whole, &cut, 1.25).is_ok());
    cut.process.interrupted = true;
    assert!(gate::stress(&whole, &cut, 1.25).is_err());
    let failed = StressResult { failure: Some("503".to_owned()), ..stress() };
    assert!(gate::stress(&whole, &failed, 1.25).is_err());
}

#[test]
fn what_a_suite_of_another_version_asked_is_not_held_against_this_one() {
    // the first one took what a system makes of a memory for a second one
    let first = StressResult { suite_version: 1, ..stress() };
    let text = serde_json::to_string(&first).expect("is written");
    let read: StressResult = serde_json::from_str(&text).expect("is read");
    let read = read.checked().expect("is a result");
    let told = gate::stress(&stress(), &read, 1.25).expect_err("is another suite");
    assert_eq!(told, "version of the suite is 2, and was 1");
}

#[test]
fn a_load_that_a_failure_ended_is_not_whole() {
    let of = |id, seed| result(id, seed, 1_000, &[5; 3]);
    let why = "the banks cannot be filled: HTTP 503";
    let failed = of("a", 1).ended_by(Some(why.to_owned()));
    assert!(of("a", 1).is_whole() && !failed.is_whole() && !failed.is_interrupted());
    assert!(failed.notes.iter().any(|note| note.ends_with(why)), "{:?}", failed.notes);
    let text = serde_json::to_string(&failed).expect("is written");
    let read: LoadResult = serde_json::from_str(&text).expect("is read");
    assert_eq!(read.checked().as_ref(), Ok(&failed));
    for both in [vec![failed.clone(), of("b", 2)], vec![of("b", 2), failed]] {
        let sum = LoadResult::merged(both).expect("they are one load");
        assert_eq!(sum.failure.as_deref(), Some(why));
        assert!(sum.notes.iter().any(|note| note.ends_with(why)), "{:?}", sum.notes);
    }
}

#[test]
fn a_ceiling_about_which_nothing_was_measured_is_not_kept() {
    let ceilings: Vec<Ceiling> =
        ["p95=1000", "slope=0.000001"].iter().map(|text| text.parse().expect("is one")).collect();
    let outcomes = |checks: Vec<Check>| checks.into_iter().map(|check| check.outcome).collect::<Vec<_>>();
    let one_size = gate::load_ceilings(&result("a", 1, 0, &[5; 100]), &ceilings);
    let [_, Check { what, seen, .. }] = &one_size[..] else { panic!("{one_size:?}") };
    assert!(what.ends_with("slope") && seen.starts_with("not measured: "), "{what} {seen}");
    assert_eq!(outcomes(one_size), [Outcome::Pass, Outcome::Inconclusive]);
    // a rate of which one size was behind, and one that held with all
    let sizes = |rate| [1_000, 2_000, 3_000].map(|size| StepResult { rate, ..step(0, size, &[5; 20]) });
    let (held, mut behind) = (sizes(10.0), sizes(20.0));
    let recall = behind[2].operations.get_mut(&Operation::Recall).expect("was asked");
    recall.tally.unsent = 20;
    let steps: Vec<StepResult> = held.into_iter().chain(behind).collect();
    let slope = &ceilings[1..];
    let of = |arrivals: &str| {
        let plan = Plan { arrivals: arrivals.to_owned(), ..plan() };
        outcomes(gate::load_ceilings(&LoadResult::new(plan, process("a", 1), steps.clone()), slope))
    };
    assert_eq!(of("poisson"), [Outcome::Pass, Outcome::Inconclusive]);
    assert_eq!(of("steps"), [Outcome::Pass], "where the last rate is behind by intention");
    let no_recall =
        LoadResult::new(plan(), process("a", 1), vec![StepResult { operations: BTreeMap::new(), ..step(0, 5, &[]) }]);
    assert_eq!(outcomes(gate::load_ceilings(&no_recall, &ceilings[..1])), [Outcome::Inconclusive]);
    let mut short = stress();
    short.at_once[0].ms_per_1000_memories = None;
    assert!(gate::stress_ceilings(&short, slope).iter().any(|check| check.outcome == Outcome::Inconclusive));
}
