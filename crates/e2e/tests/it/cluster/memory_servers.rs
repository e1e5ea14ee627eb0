//! Memory servers that are away for everybody (P39), and workers that alone do not reach theirs (P40).

use std::time::Duration;

use bench_e2e::faults::{PATIENCE, RUN};
use bench_testkit::{
    bench::Bench,
    cluster::{Cluster, wait_until_ready},
    fakes::Fake,
    ports,
    process::{Process, wait_until},
};
use serde_json::Value;

use crate::systems::away::many;

/// A request of a server that works.
const QUICK: Duration = Duration::from_millis(50);
/// Slots of a worker for each role.
const FEW: [&str; 2] = ["--concurrency", "2"];

/// The digest of the undisturbed run, of a server and a machine of its own.
fn undisturbed() -> String {
    let fake = Fake::start("jeffs-brain");
    let bench = Bench::new().with_env("JB_URL", fake.url());
    let done = bench.run(many("jeffs-brain", "undisturbed")).expect_code(0);
    done.json()["result_digest"].as_str().expect("a digest").to_owned()
}

fn check(cluster: &Cluster, client: Process) -> Value {
    let report = client.wait(PATIENCE).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report:#}");
    assert_eq!(report["result_digest"].as_str(), Some(undisturbed().as_str()), "{report:#}");
    let attempts = cluster.sql("SELECT coalesce(sum(attempts), 0) FROM tasks");
    assert_eq!(attempts, "0", "an outage is not an attempt");
    report
}

fn lines(people: &[Process], words: &str) -> usize {
    let said = |process: &Process| process.stderr().lines().filter(|line| line.contains(words)).count();
    people.iter().map(said).sum()
}

fn wait_for_requests(fake: &Fake, of: &str, count: usize) {
    wait_until("the server is asked", PATIENCE, || {
        fake.with(|world| world.requests.iter().filter(|request| request.ends_with(of)).count()) >= count
    });
}

#[test]
fn fault_23_a_memory_server_is_overloaded_and_then_gone() {
    let mut fake = Fake::start("jeffs-brain");
    fake.with(|world| world.slow = QUICK);
    let cluster = Cluster::new().with_env("JB_URL", fake.url());
    let mut coordinator = cluster.coordinator("coordinator");
    let mut workers: Vec<Process> = ["one", "two", "three"].map(|name| cluster.worker(name, &FEW)).into();
    wait_until_ready(&mut coordinator);
    workers.iter_mut().for_each(wait_until_ready);
    let client = cluster.client(&many("jeffs-brain", RUN));
    wait_for_requests(&fake, "/search", 8);
    fake.with(|world| world.fails = (usize::MAX, 503));
    let mut seen = Value::Null;
    wait_until("status says what is away", PATIENCE, || {
        seen = cluster.status(RUN);
        seen["why"].as_str().is_some_and(|why| why.contains("jeffs-brain (") && why.contains("is away"))
    });
    fake.leave();
    // each operation in use is found to be away for itself, and probed, before the server is back
    std::thread::sleep(Duration::from_secs(10));
    fake.with(|world| world.fails = (0, 200));
    fake.come_back();
    let report = check(&cluster, client);
    assert!(report["outages"].as_array().is_some_and(|met| !met.is_empty()), "{report:#}");
    let told = (lines(&workers, "is away:"), lines(&workers, "is back after"));
    assert!(told.0 == told.1 && (1..=3).contains(&told.0), "each operation once by the fleet: {told:?}");
}

/// Two workers reach the memory server and one does not: it leaves the tasks to the two, and nobody waits.
#[test]
fn fault_24_a_worker_without_a_way_to_the_memory_server_leaves_its_tasks_to_others() {
    let fake = Fake::start("jeffs-brain");
    fake.with(|world| world.slow = Duration::from_millis(400));
    let cluster = Cluster::new().with_env("JB_URL", fake.url());
    let [closed] = ports::reserve().expect("a port");
    let nowhere = format!("http://127.0.0.1:{closed}");
    let mut coordinator = cluster.coordinator("coordinator");
    let mut workers: Vec<Process> = ["one", "two"].map(|name| cluster.worker(name, &FEW)).into();
    workers.push(cluster.worker_with("sick", &FEW, &[("JB_URL", &nowhere)]));
    wait_until_ready(&mut coordinator);
    workers.iter_mut().for_each(wait_until_ready);
    let mut client = cluster.client(&many("jeffs-brain", RUN));
    wait_for_requests(&fake, "/brains", 1);
    let mut seen = Value::Null;
    wait_until("status names it", PATIENCE, || {
        seen = cluster.status(RUN)["cluster"]["workers"].clone();
        assert!(client.runs(), "the run is over, and it has not withdrawn: {seen:#}");
        let named = |worker: &Value| {
            let left = &worker["withdrawn"][0];
            let key = left["key"].as_str().is_some_and(|key| key.starts_with("jeffs-brain ("));
            worker["name"] == "sick" && key && left["reason"].is_string() && left["since"].is_string()
        };
        seen.as_array().is_some_and(|workers| workers.iter().any(named))
    });
    fake.with(|world| world.slow = QUICK);
    let report = check(&cluster, client);
    assert_eq!(report["outages"], Value::Null, "nobody else waits: {report:#}");
    assert_eq!(lines(&workers, "is away:"), 0);
}
