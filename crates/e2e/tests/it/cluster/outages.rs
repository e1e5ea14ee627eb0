//! Providers that are away for everybody (P39), and workers that alone do not get through (P40).

use bench_e2e::faults::{PATIENCE, RUN, SLOTS, Size, Stage};
use bench_testkit::{
    cluster::{Cluster, Setup, wait_until_ready},
    ports,
    process::{Process, wait_until},
    provider::{KEY, Provider},
};
use serde_json::{Value, json};

fn lines(people: &[Process], words: &str) -> usize {
    let said = |process: &Process| process.stderr().lines().filter(|line| line.contains(words)).count();
    people.iter().map(said).sum()
}

fn attempts(stage: &Stage) -> Vec<u64> {
    let questions = stage.cluster.questions(RUN);
    questions.iter().filter_map(|question| question["attempts"].as_u64()).filter(|attempts| *attempts != 3).collect()
}

#[test]
fn fault_21_a_provider_is_overloaded_and_then_gone() {
    let stage = Stage::set(Size::Large, Setup::default(), 150);
    let (_coordinator, workers) = stage.people(3);
    let client = stage.submit(&[]);
    stage.wait_for_percent(20);
    stage.provider.outage(&json!({"kind": "status", "status": 503, "for_ms": 8000}));
    let refused = stage.provider.outage(&json!({"kind": "refuse", "after_ms": 8000, "for_ms": 5000}));
    wait_until("status says what is away", PATIENCE, || {
        let status = stage.cluster.status(RUN);
        status["why"].as_str().is_some_and(|why| why.contains("gpt-4o-mini (account openai) is away"))
    });
    stage.provider.wait_for_end_of(refused, PATIENCE);
    let report = stage.check(client, 3 * 2 * SLOTS);
    assert_eq!(attempts(&stage), [] as [u64; 0], "an outage is not an attempt");
    assert_eq!((lines(&workers, "is away:"), lines(&workers, "is back after")), (1, 1), "said once by the fleet");
    assert_eq!(report["outages"].as_array().map(Vec::len), Some(1));
    // three workers of four slots a role would begin with 24 calls
    let first = stage.provider.seen_of(refused)["after"]["per_100ms"][0].as_u64();
    assert!(first <= Some(12), "calls came back as a wave: {first:?}");
}

/// Two workers get through and six do not, each for another reason: they leave the calls to the two.
#[test]
fn fault_22_workers_without_a_way_leave_their_calls_to_others() {
    // so slow that the two cannot end the run before the others have found out, however busy the machine is
    let provider = Provider::start(&["--latency-ms", "2000", "--accept-key", KEY]);
    let cluster = Cluster::with(Setup::default()).with_provider(provider.base_url(), KEY);
    let stage = Stage::new(Size::Large, provider, cluster);
    let [closed] = ports::reserve().expect("a port");
    let base = stage.provider.base_url();
    let urls = [
        ("refused", format!("http://127.0.0.1:{closed}/v1")),
        ("dns", "http://provider.invalid/v1".to_owned()),
        ("tls", base.replace("http://", "https://")),
        ("wrong-url", base.replace("/v1", "/elsewhere/v1")),
    ];
    let slots = SLOTS.to_string();
    let flags = ["--concurrency", slots.as_str()];
    let (_coordinator, _healthy) = stage.people(2);
    let mut sick: Vec<Process> = urls
        .iter()
        .map(|(name, url)| stage.cluster.worker_with(name, &flags, &[("OPENAI_BASE_URL", url.as_str())]))
        .collect();
    sick.push(stage.cluster.worker_with("bad-key", &flags, &[("OPENAI_API_KEY", "sk-of-somebody-else")]));
    let mut full = stage.cluster.worker("files", &flags);
    wait_until_ready(&mut full);
    full.leave_no_file_descriptors();
    sick.iter_mut().for_each(wait_until_ready);
    // it is asked no more whether it is ready: it may have no descriptor left to be asked by
    sick.push(full);

    let mut client = stage.submit(&[]);
    stage.provider.wait_for_requests(1);
    let names = ["refused", "dns", "tls", "wrong-url", "bad-key", "files"];
    let mut seen = Value::Null;
    wait_until("status names all of them", PATIENCE, || {
        seen = stage.cluster.status(RUN)["cluster"]["workers"].clone();
        let withdrawn = |name: &str| {
            let workers = seen.as_array().map(Vec::as_slice).unwrap_or_default();
            workers.iter().any(|worker| {
                let left = &worker["withdrawn"][0];
                worker["name"] == name && left["reason"].is_string() && left["since"].is_string()
            })
        };
        assert!(client.runs(), "the run is over, and not all have withdrawn: {seen:#}");
        names.iter().all(|name| withdrawn(name))
    });
    stage.provider.control(&json!({"latency": {"median_ms": 20.0}}));
    let report = stage.check_end(client.wait(PATIENCE));
    // all probes of a model are the same request, so each that is answered repeats the first; the ledger has them apart
    let overhead = &report["usage"]["booked"]["overhead"];
    let probes = overhead["calls"].as_u64().zip(overhead["retries"].as_u64()).map_or(0, |(used, unused)| used + unused);
    let repeated = stage.provider.count("repeated_answers");
    assert!(repeated <= probes, "{repeated} calls were repeated, {probes} were probes");
    assert_eq!(attempts(&stage), [] as [u64; 0], "what a worker lacks is nobody's attempt");
}
