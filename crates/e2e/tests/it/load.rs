//! `load`: the figures against a server whose queue is known, and what a load does when a system, a file or a person is in its way.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use bench_load::{
    arrivals::{Arrivals, Schedule},
    draws::Draws,
    queueing::{lindley, mm1_mean_seconds},
};
use bench_testkit::{
    bench::{Bench, Done, signal, wait},
    fakes::Fake,
    provider::Provider,
};
use serde_json::Value;

/// A folder with an adapter for a memory server.
fn with_adapter(fake: &Fake, more: &str) -> Bench {
    let bench = Bench::new();
    write_adapter(bench.path(), fake.url(), more);
    bench
}

fn write_adapter(folder: &Path, url: &str, more: &str) {
    let text = format!(
        "name: mine
url: {url}
retain: {{request: 'POST /banks/{{bank}}/items', body: {{id: '{{id}}', text: '{{content}}'}}}}
recall:
  request: POST /banks/{{bank}}/search
  body: {{query: '{{query}}', k: '{{k}}', filter: {{}}}}
  hits: [{{list: hits, text: text, id: id}}]
reset: {{request: 'DELETE /banks/{{bank}}'}}
health: {{request: GET /health}}
{more}"
    );
    std::fs::write(folder.join("mine.yaml"), text).expect("is written");
}

const UNORDERED: &str = "can: {order: false}\n";

/// A short load of one bank by recalls alone, with further flags.
fn load(bench: &Bench, flags: &[&str]) -> Done {
    bench.run(arguments(flags))
}

fn arguments<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    let short =
        ["--seconds", "2", "--warm-up", "0", "--drain", "5", "--banks", "1", "--bank-size", "5", "--mix", "recall=1"];
    let all = [&["load", "./mine.yaml", "--json"][..], flags].concat();
    // what a test says itself is not said twice
    let own = short.chunks(2).filter(|pair| !flags.contains(&pair[0])).flatten().copied();
    all.iter().copied().chain(own).collect()
}

fn step(result: &Value) -> &Value {
    &result["steps"][0]
}

fn figures<'a>(result: &'a Value, operation: &str) -> &'a Value {
    &step(result)["operations"][operation]["figures"]
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Services a second of the server: they are long, so that what a busy machine adds is little.
const CAPACITY: f64 = 10.0;

/// Services by lot for a seed.
fn services(seed: u64, n: usize) -> Vec<f64> {
    let mut draws = Draws::new(seed, 77);
    (0..n).map(|_| draws.exponential(1.0 / CAPACITY)).collect()
}

/// A seed of which the mean of these few arrivals and services is, by Lindley's recursion, that of the theory: what is left between the
/// two and the program is the program's own.
fn typical_seed(rate: f64, seconds: f64) -> (u64, Vec<f64>) {
    let theory = mm1_mean_seconds(rate, CAPACITY).expect("it is stable");
    let of_seed = |seed: u64| {
        let due = Schedule::new(Arrivals::Poisson, rate, seed).map(|at| at.as_secs_f64());
        let due: Vec<f64> = due.take_while(|at| *at < seconds).collect();
        let services = services(seed, due.len());
        let waits = lindley(&due, &services);
        let mean = waits.iter().zip(&services).map(|(wait, service)| wait + service).sum::<f64>() / due.len() as f64;
        (mean, services)
    };
    let found = (1..).map(|seed| (seed, of_seed(seed))).find(|(_, (mean, _))| (mean / theory - 1.0).abs() < 0.003);
    let (seed, (_, services)) = found.expect("there is always another seed");
    (seed, services)
}

fn mm1(load_of: f64) {
    let (rate, seconds) = (CAPACITY * load_of, 40.0);
    let (seed, services) = typical_seed(rate, seconds);
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, UNORDERED);
    fake.with(|world| world.services = services.iter().map(|service| Duration::from_secs_f64(*service)).collect());
    let (rate_flag, seed) = (rate.to_string(), seed.to_string());
    let done = load(&bench, &["--rate", &rate_flag, "--seconds", "40", "--drain", "20", "--seed", &seed]);
    let result = done.expect_code(0).json();
    let recall = figures(&result, "recall");
    assert_eq!(recall["intended"].as_u64(), Some(services.len() as u64), "{recall}");
    assert_eq!(recall["intended"], recall["served"], "{recall}");
    let theory = mm1_mean_seconds(rate, CAPACITY).expect("it is stable") * 1e3;
    let told = number(&recall["mean_ms"]);
    assert!((told / theory - 1.0).abs() < 0.05, "at {load_of}: {told} ms, theory {theory} ms");
}

#[test]
fn the_mean_of_a_queue_is_that_of_the_theory_at_half_load() {
    mm1(0.5);
}

#[test]
fn the_mean_of_a_queue_is_that_of_the_theory_at_four_fifths() {
    mm1(0.8);
}

/// 50 a second with equal gaps, 1 ms each, and one that takes two seconds: a hundred were due meanwhile.
#[test]
fn a_stall_of_two_seconds_is_in_the_tail() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, UNORDERED);
    let service = |at| Duration::from_millis(if at == 100 { 2_000 } else { 1 });
    fake.with(|world| world.services = (0..300).map(service).collect());
    let flags = ["--rate", "50", "--seconds", "6", "--arrivals", "constant"];
    let result = load(&bench, &flags).expect_code(0).json();
    let recall = figures(&result, "recall");
    assert_eq!(recall["served"], 300, "{recall}");
    let counts = step(&result)["operations"]["recall"]["tally"]["served"]["counts_by_us"].as_array().expect("a list");
    let longer = |than: u64| -> u64 {
        let counts = counts.iter().map(|pair| (pair[0].as_u64().unwrap_or(0), pair[1].as_u64().unwrap_or(0)));
        counts.filter(|(us, _)| *us > than).map(|(_, n)| n).sum()
    };
    // one is due each 20 ms of the stall, and then the line is worked off
    assert!((48..=55).contains(&longer(1_000_000)), "{} waited longer than a second", longer(1_000_000));
    assert!((95..=110).contains(&longer(60_000)), "{} waited at all", longer(60_000));
    assert!(number(&recall["max_ms"]) > 1_990.0, "{recall}");
}

#[test]
fn what_was_stored_is_found_and_what_a_load_made_is_gone_afterwards() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, UNORDERED);
    let flags = ["--rate", "20,40", "--bank-size", "5,10", "--banks", "3", "--mix", "retain=1,recall=3"];
    let done = load(&bench, &flags).expect_code(0);
    let result = done.json();
    assert_eq!((result["schema"].as_str(), result["schema_version"].as_u64()), (Some("bench-load"), Some(1)));
    let steps = result["steps"].as_array().expect("steps");
    let made: Vec<(u64, f64)> =
        steps.iter().map(|step| (step["bank_size"].as_u64().unwrap_or(0), number(&step["rate"]))).collect();
    assert_eq!(made, [(5, 20.0), (5, 40.0), (10, 20.0), (10, 40.0)]);
    for step in steps {
        let recall = &step["operations"]["recall"];
        assert_eq!(recall["findings"]["missed"], 0, "{recall}");
        assert_eq!(recall["findings"]["found"], recall["figures"]["served"], "{recall}");
        assert!(number(&step["operations"]["retain"]["figures"]["served"]) > 0.0);
        assert_eq!(step["standing"], "held");
    }
    assert!(number(&steps[1]["memories_per_bank"]) > 5.0, "they have grown: {}", steps[1]["memories_per_bank"]);
    assert!(fake.with(|world| world.banks.is_empty()), "banks are removed");
    let folder = done.stderr.lines().find_map(|line| line.strip_prefix("files: ")).expect("says where").to_owned();
    for (file, part) in [
        ("load.json", "\"schema\": \"bench-load\""),
        ("load.html", "under load"),
        ("latency-by-rate.svg", "<polyline"),
        ("latency-by-bank-size.svg", "memories in a bank"),
    ] {
        let text = std::fs::read_to_string(bench.path().join(&folder).join(file)).expect(file);
        assert!(text.contains(part), "{file}: {text}");
    }
}

#[test]
fn a_table_for_people_fits_eighty_columns() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, UNORDERED);
    let flags = arguments(&["--rate", "100", "--banks", "4", "--mix", "retain=1,recall=1"]);
    let shown = bench.run(flags.into_iter().filter(|flag| *flag != "--json")).expect_code(0).stdout;
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    for part in ["recall", "retain", "held", "held 100 a second and more was not asked"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_system_that_mixes_banks_is_invalid() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, UNORDERED);
    fake.with(|world| world.mixes_banks = true);
    let result = load(&bench, &["--rate", "20", "--banks", "3"]).expect_code(5).json();
    let findings = &step(&result)["operations"]["recall"]["findings"];
    assert!(number(&findings["foreign"]) > 0.0, "{findings}");
    assert!(result["notes"].to_string().contains("banks are not kept apart"), "{}", result["notes"]);
}

/// A search takes 50 ms, one at a time, and 40 a second are due.
#[test]
fn a_system_that_is_behind_is_said_to_be_and_what_was_not_sent_is_counted() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, UNORDERED);
    fake.with(|world| world.searches_take = Duration::from_millis(50));
    let flags = ["--rate", "10,40", "--arrivals", "constant", "--drain", "0.5", "--in-flight", "4", "--seconds", "4"];
    let result = load(&bench, &flags).expect_code(0).json();
    let behind = &result["steps"][1];
    let recall = &behind["operations"]["recall"];
    assert_eq!((result["steps"][0]["standing"].as_str(), behind["standing"].as_str()), (Some("held"), Some("behind")));
    assert_eq!(recall["figures"]["intended"], 160, "{}", recall["figures"]);
    let unsent = number(&recall["tally"]["unsent"]);
    assert!((60.0..=80.0).contains(&unsent), "{unsent}");
    assert_eq!(recall["figures"]["latency_ms"]["p99"], Value::Null, "never");
    assert!((number(&recall["figures"]["served_per_second"]) - 20.0).abs() < 2.0, "{}", recall["figures"]);
    let at = &result["at_bank_sizes"][0];
    assert_eq!((number(&at["held"]), number(&at["behind"])), (10.0, 40.0));
    assert!(result["notes"].to_string().contains("never sent"), "{}", result["notes"]);
    assert!(fake.with(|world| world.banks.is_empty()));
}

#[test]
fn steps_rise_until_the_system_is_behind() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, UNORDERED);
    fake.with(|world| world.searches_take = Duration::from_millis(10));
    let flags = ["--rate", "20", "--arrivals", "steps", "--seconds", "3"];
    let result = load(&bench, &flags).expect_code(0).json();
    let at = &result["at_bank_sizes"][0];
    assert_eq!((number(&at["held"]), number(&at["behind"])), (80.0, 160.0), "{at}");
}

#[test]
fn errors_are_told_apart_and_are_no_fast_answers() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, UNORDERED);
    fake.with(|world| world.searches_left = Some(60));
    let result = load(&bench, &["--rate", "50", "--arrivals", "constant"]).expect_code(0).json();
    let recall = &step(&result)["operations"]["recall"];
    assert_eq!((recall["figures"]["served"].as_u64(), recall["figures"]["failed"].as_u64()), (Some(60), Some(40)));
    assert_eq!(recall["tally"]["failed"]["system_http_503"]["n"], 40, "{}", recall["tally"]["failed"]);
    assert_ne!(recall["figures"]["latency_ms"]["p50"], Value::Null);
    assert_eq!(recall["figures"]["latency_ms"]["p90"], Value::Null, "two fifths were never served");
    fake.with(|world| world.searches_left = Some(60));
    let flags = arguments(&["--rate", "50", "--arrivals", "constant"]);
    let told = bench.run(flags.into_iter().filter(|flag| *flag != "--json")).expect_code(0).stdout;
    assert!(told.contains("this may be no saturation"), "{told}");
    fake.with(|world| world.searches_left = Some(0));
    let nothing = load(&bench, &["--rate", "20"]).expect_code(4);
    assert!(nothing.stderr.contains("not one operation was served"), "{}", nothing.stderr);
}

#[test]
fn an_interrupted_load_prints_what_there_is_and_leaves_no_bank() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, UNORDERED);
    let child = bench.start(arguments(&["--rate", "50", "--seconds", "60"]));
    bench_testkit::process::wait_until("recalls are made", Duration::from_secs(60), || {
        fake.with(|world| world.requests.iter().filter(|request| request.ends_with("/search")).count() > 50)
    });
    let begun = Instant::now();
    signal(&child, "INT");
    let done = wait(child);
    assert!(begun.elapsed() < Duration::from_secs(5), "at once");
    assert_eq!(done.code, 3, "{}", done.stderr);
    let result = done.json();
    assert_eq!(result["processes"][0]["interrupted"], true);
    let (recall, seconds) = (figures(&result, "recall"), number(&step(&result)["seconds"]));
    assert!(number(&recall["served"]) >= 40.0 && (0.8..30.0).contains(&seconds), "{recall} {seconds}");
    assert!(fake.with(|world| world.banks.is_empty()));
}

/// A failure in the middle of filling, before and after a step was made, and a person.
#[test]
fn a_load_that_ends_while_it_fills_its_banks_leaves_none() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, "");
    fake.with(|world| world.slow = Duration::from_millis(20));
    let stored = || fake.with(|world| world.banks.values().map(Vec::len).sum::<usize>());
    for (ends, sizes, code) in
        [("by a failure", "1500", 4), ("by a failure after a step", "5,1500", 4), ("by a person", "1500", 3)]
    {
        let child = bench.start(arguments(&["--bank-size", sizes, "--seconds", "1"]));
        bench_testkit::process::wait_until("memories are stored", Duration::from_secs(60), || stored() > 20);
        match code {
            4 => fake.with(|world| world.fails = (1, 503)),
            _ => signal(&child, "INT"),
        }
        let done = wait(child);
        assert_eq!((done.code, stored()), (code, 0), "{ends}: {}", done.stderr);
        if sizes.contains(',') {
            let result = done.json();
            assert_eq!(result["steps"].as_array().map(Vec::len), Some(1), "what was measured is kept");
            assert!(result["failure"].as_str().is_some_and(|why| why.contains("cannot be filled")), "{result}");
        }
    }
}

/// The adapter's own bound holds: with one place, nothing overlaps, and whoever waits for it waits.
#[test]
fn the_adapters_limit_of_operations_holds() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, "can: {order: false}\nlimits: {parallel: 1}\n");
    fake.with(|world| world.slow = Duration::from_millis(20));
    let flags = ["--rate", "40", "--arrivals", "constant", "--drain", "5"];
    let result = load(&bench, &flags).expect_code(0).json();
    assert_eq!(result["plan"]["in_flight"], 1);
    assert!(number(&figures(&result, "recall")["served_per_second"]) <= 50.0);
}

/// Retains of one bank are sent one at a time, in order, where the system needs it.
#[test]
fn memories_of_a_bank_stay_in_order() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, "");
    fake.with(|world| world.slow = Duration::from_millis(15));
    let flags = ["--rate", "100", "--mix", "retain=1", "--keep-banks", "--seconds", "1"];
    let _ = load(&bench, &flags).expect_code(0);
    let ids = fake.with(|world| {
        let bank = world.banks.values().next().expect("the bank is kept");
        bank.iter().map(|stored| stored.meta["id"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    });
    let expected: Vec<String> = (0..ids.len()).map(|at| format!("m{at}")).collect();
    assert!(ids.len() > 50, "{}", ids.len());
    assert_eq!(ids, expected);
}

#[test]
fn no_host_is_asked_that_the_file_does_not_name() {
    let (fake, other) = (Fake::start("whole"), Fake::start("whole"));
    let bench = with_adapter(&fake, UNORDERED).with_env("HTTP_PROXY", other.url()).with_env("http_proxy", other.url());
    fake.with(|world| world.redirects_to = Some(other.url().to_owned()));
    let done = load(&bench, &["--rate", "20"]).expect_code(4);
    assert!(done.stderr.contains("redirected"), "{}", done.stderr);
    assert_eq!(other.with(|world| world.requests.clone()), Vec::<String>::new());
    // a person may name another place
    fake.with(|world| world.redirects_to = None);
    let (asked, url) = (fake.with(|world| world.requests.len()), format!("system.url={}", other.url()));
    let _ = load(&bench, &["--rate", "20", "--set", &url]).expect_code(0);
    assert_eq!(fake.with(|world| world.requests.len()), asked);
    assert!(other.with(|world| world.requests.len()) > 20);
}

#[test]
fn processes_that_load_together_add_up() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, UNORDERED);
    let start = std::process::Command::new("date").args(["-u", "-d", "+3 seconds", "+%Y-%m-%dT%H:%M:%SZ"]).output();
    let start = String::from_utf8(start.expect("date runs").stdout).expect("is text").trim().to_owned();
    let flags = ["--rate", "20,30", "--seconds", "2", "--drain", "1", "--start-at", &start, "--output-dir"];
    let two = ["one", "two"].map(|folder| bench.start(arguments(&[&flags[..], &[folder]].concat())));
    let results = two.map(|child| wait(child).expect_code(0).json());
    let merged = bench.run(["load", "--merge", "one/load.json", "two/load.json", "--json"]).expect_code(0).json();
    assert_eq!(merged["processes"].as_array().map(Vec::len), Some(2));
    for at in 0..2 {
        let of = |result: &Value| result["steps"][at].clone();
        let sum = |of: fn(&Value) -> f64| results.iter().map(|result| of(&result["steps"][at])).sum::<f64>();
        let merged = of(&merged);
        assert!((number(&merged["rate"]) - sum(|step| number(&step["rate"]))).abs() < 1e-9);
        let served = |step: &Value| number(&step["operations"]["recall"]["figures"]["served"]);
        assert!((served(&merged) - sum(served)).abs() < 1e-9, "{}", served(&merged));
    }
    let table = bench.run(["load", "--merge", "one/load.json", "two/load.json"]).expect_code(0).stdout;
    assert!(table.contains("2 processes"), "{table}");
    // the same result twice is no load of two
    let twice = bench.run(["load", "--merge", "one/load.json", "one/load.json"]).expect_code(5);
    assert!(twice.stderr.contains("named twice"), "{}", twice.stderr);
    std::fs::write(bench.path().join("broken.json"), "{\"schema\": \"bench-load\"}").expect("is written");
    let broken = bench.run(["load", "--merge", "broken.json"]).expect_code(2);
    assert!(broken.stderr.contains("broken.json: is no result"), "{}", broken.stderr);
}

#[test]
fn what_makes_no_load_is_refused_before_anything_is_sent() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, "can: {order: false, banks: false}\nlimits: {max_k: 20}\n");
    for (flags, part) in [
        (&["--rate", "0"][..], "--rate 0: give a number"),
        (&["--rate", "nan"], "--rate NaN: give a number"),
        (&["--rate", "2e6"], "--rate 2000000: give a number"),
        (&["--mix", "search=1"], "retain=1,recall=4"),
        (&["--banks", "2"], "one memory for everything"),
        (&["--top-k", "21"], "at most 20 hits"),
        (&["--banks", "4096", "--bank-size", "1000"], "are made up at a time"),
        (&["--start-at", "2020-01-01"], "that has passed"),
        (&["--start-at", "soon"], "give a time"),
        (&["--start-at", "2099-01-01", "--bank-size", "5,10"], "give one --bank-size"),
        (&["--in-flight", "0"], "--in-flight 0"),
    ] {
        let done = load(&bench, flags);
        assert_eq!(done.code, 2, "{flags:?}: {}", done.stderr);
        assert!(done.stderr.contains(part), "{flags:?}: {}", done.stderr);
    }
    assert_eq!(fake.with(|world| world.requests.len()), 0);
    let control = bench.run(["load", "oracle"]).expect_code(2);
    assert!(control.stderr.contains("is a control"), "{}", control.stderr);
    for system in ["vector", "hybrid", "pgvector"] {
        let paid = bench.run(["load", system, "--set", "vector.model=text-embedding-3-small"]).expect_code(2);
        assert!(paid.stderr.contains("vector"), "{}", paid.stderr);
    }
    assert!(bench.run(["load"]).expect_code(2).stderr.contains("NAME|FILE"));
    let no_baseline = load(&bench, &["--baseline", "nope.json"]).expect_code(2);
    assert!(no_baseline.stderr.contains("nope.json"), "{}", no_baseline.stderr);
    assert_eq!(fake.with(|world| world.requests.len()), 0);
}

/// Built-in systems need no server.
#[test]
fn bm25_can_be_loaded_as_it_is() {
    let bench = Bench::new();
    let flags =
        ["load", "bm25", "--rate", "200,200", "--seconds", "2", "--warm-up", "0.5", "--bank-size", "200", "--json"];
    let result = bench.run(flags).expect_code(0).json();
    let recall = &step(&result)["operations"]["recall"];
    assert_eq!(recall["findings"]["missed"], 0, "{recall}");
    assert!(number(&recall["figures"]["served_per_second"]) > 130.0, "{}", recall["figures"]);
    assert!((number(&result["steps"][1]["memories_per_bank"]) - 200.0).abs() < 1e-9, "what is retained is not stored");
    assert!(number(&step(&result)["warm_up"]["figures"]["served"]) > 50.0);
}

const COUNTS: &str = "can: {order: false}\nverify: {request: 'GET /banks/{bank}', count: items}\n";

/// The suite, with further flags.
fn stress(bench: &Bench, flags: &[&str]) -> Done {
    bench.run([&["load", "./mine.yaml", "--suite", "stress", "--json"][..], flags].concat())
}

#[test]
fn the_suite_tells_growth_findings_and_duplicates() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, COUNTS);
    let result = stress(&bench, &["--output-dir", "out"]).expect_code(0).json();
    assert_eq!((result["schema"].as_str(), result["schema_version"].as_u64()), (Some("bench-stress"), Some(1)));
    assert_eq!(result["retain"]["figures"]["served"], 1_000, "{}", result["retain"]["figures"]);
    let at_once = result["at_once"].as_array().expect("a list");
    assert_eq!(at_once.iter().map(|at| at["at_once"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(4), Some(16)]);
    for at in at_once {
        assert_eq!(at["recall"]["findings"], serde_json::json!({"found": 500, "missed": 0, "foreign": 0}));
        assert_eq!(at["found_by_width"]["1"]["found"], 100, "a hundred of each width");
        let line = &at["ms_per_1000_memories"];
        assert!(number(&line["low"]) <= number(&line["slope"]) && line["n"] == 10, "{line}");
    }
    // this server stores what it has a second time, and counts it
    let duplicates = &result["duplicates"];
    assert_eq!(result["stored"], serde_json::json!({"expected": 1_000, "found": 1_000}));
    assert_eq!((duplicates["sent"].as_u64(), duplicates["after"]["found"].as_u64()), (Some(100), Some(1_100)));
    assert_eq!((duplicates["asked"].as_u64(), duplicates["seen_twice"].as_u64()), (Some(100), Some(100)));
    let table = bench.run(["load", "--merge", "out/stress.json"]).expect_code(0).stdout;
    assert!(table.contains("100 memories sent again in bulk: stored twice"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(
        bench.path().join("out/latency-by-bank-size.svg").exists() && bench.path().join("out/stress.html").exists()
    );
    assert!(fake.with(|world| world.banks.is_empty()));
}

#[test]
fn a_slower_system_is_a_regression_and_an_equal_one_is_none() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, COUNTS);
    let _ = stress(&bench, &["--output-dir", "old"]).expect_code(0);
    // the same figures twice: whatever this machine did meanwhile is in both
    let merged = ["load", "--merge", "old/stress.json", "--json"];
    let same = bench.run([&merged[..], &["--baseline", "old/stress.json", "--ceiling", "p50=1000"]].concat());
    // chance may leave it undecided; it is never a regression
    assert!([0, 6].contains(&same.code), "{}\n{}", same.code, same.stderr);
    let checks = same.json()["gate"]["checks"].as_array().expect("a list").clone();
    assert!(!checks.is_empty() && checks.iter().all(|check| check["outcome"] != "regression"), "{checks:?}");

    fake.with(|world| world.slow = Duration::from_millis(30));
    let slower = stress(&bench, &["--baseline", "old/stress.json"]).expect_code(1).json();
    let worse: Vec<&str> = slower["gate"]["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|check| check["outcome"] == "regression")
        .filter_map(|check| check["what"].as_str())
        .collect();
    for what in ["recall, 1 at once: p50", "recall, 4 at once: p50", "retain: p50"] {
        assert!(worse.contains(&what), "{what}: {worse:?}");
    }
    let ceiling = ["load", "--merge", "old/stress.json", "--ceiling", "p95=1"];
    let beyond = bench.run(ceiling).expect_code(1).stdout;
    assert!(beyond.contains("gate: regression"), "{beyond}");
    // latencies of another machine are compared with nothing
    let text = std::fs::read_to_string(bench.path().join("old/stress.json")).expect("is there");
    let machine = serde_json::from_str::<Value>(&text).expect("is JSON")["process"]["machine"].clone();
    let other = text.replace(machine.as_str().expect("a text"), "another machine");
    std::fs::write(bench.path().join("other.json"), other).expect("is written");
    let refused = bench.run(["load", "--merge", "old/stress.json", "--baseline", "other.json"]).expect_code(5);
    assert!(refused.stderr.contains("machine is"), "{}", refused.stderr);
}

#[test]
fn a_leak_under_load_is_invalid_whatever_the_latencies() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, COUNTS);
    fake.with(|world| world.mixes_banks = true);
    let result = stress(&bench, &["--ceiling", "p50=100000"]).expect_code(5).json();
    assert!(result["notes"].to_string().contains("banks are not kept apart"), "{}", result["notes"]);
}

#[test]
fn a_load_is_gated_at_equal_rates() {
    let fake = Fake::start("whole");
    let bench = with_adapter(&fake, UNORDERED);
    fake.with(|world| world.searches_take = Duration::from_millis(5));
    let flags = ["--rate", "20,40", "--arrivals", "constant", "--seconds", "4"];
    let _ = load(&bench, &[&flags[..], &["--output-dir", "old"]].concat()).expect_code(0);
    fake.with(|world| world.searches_take = Duration::from_millis(40));
    let gated = load(&bench, &[&flags[..], &["--baseline", "old/load.json"]].concat()).expect_code(1).json();
    let checks = gated["gate"]["checks"].to_string();
    assert!(checks.contains("behind against held") && checks.contains("recall at 20 a second"), "{checks}");
    let other = ["--rate", "80", "--arrivals", "constant", "--seconds", "4", "--baseline", "old/load.json"];
    let refused = load(&bench, &other).expect_code(5);
    assert!(refused.stderr.contains("no rate and no size of banks in common"), "{}", refused.stderr);
}

#[test]
fn an_address_that_counts_as_free_is_named_before_it_is_called() {
    let provider = Provider::start(&[]);
    let flags =
        ["--rate", "1", "--seconds", "0.2", "--warm-up", "0", "--drain", "1", "--banks", "1", "--bank-size", "2"];
    for (system, set) in
        [("vector", "vector.model=text-embedding-3-small"), ("facts", "facts.model=openai:gpt-4o-mini")]
    {
        let short = [&["load", system, "--set", set, "--mix", "recall=1"][..], &flags].concat();
        let said = provider.bench().run(short).stderr;
        assert!(said.contains("counts as free because of its address"), "{said}");
        assert!(said.contains(provider.base_url()), "{said}");
    }
}
