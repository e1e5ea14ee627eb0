//! The latency probe where several could make it (P43).

use std::time::Duration;

use bench_testkit::{
    cluster::{Cluster, Setup, wait_until_ready},
    fakes::Fake,
};

#[test]
fn p43_one_of_two_workers_probes_and_the_other_is_idle() {
    let fake = Fake::start("astrocyte");
    fake.with(|world| world.searches_take = Duration::from_millis(20));
    let cluster = Cluster::with(Setup::default()).with_env("ASTROCYTE_URL", fake.url());
    let mut coordinator = cluster.coordinator("coordinator");
    let mut workers = [cluster.worker("one", &[]), cluster.worker("two", &[])];
    wait_until_ready(&mut coordinator);
    workers.iter_mut().for_each(wait_until_ready);
    let fixed = ["submit", "--dataset", "locomo-sim", "--max-banks", "2", "--per-bank", "20", "--json"];
    let args = [&fixed[..], &["--system", "astrocyte", "--run-id", "r", "--no-canaries"]].concat();
    let report = cluster.client(&args).wait(Duration::from_secs(120)).expect_code(0).json();
    let (probe, conditions) = (&report["latency_probe"], &report["latency_probe"]["conditions"]);
    assert_eq!((&probe["n"], &probe["failure"]), (&40.into(), &serde_json::Value::Null), "{probe}");
    assert_eq!((&conditions["workers"], &conditions["other_tasks"]), (&1.into(), &0.into()), "{probe}");
    assert!(probe["p50_ms"].as_f64().is_some_and(|p50| p50 >= 20.0), "{probe}");
    let searches = fake.with(|world| world.requests.iter().filter(|request| request.ends_with("/recall")).count());
    assert_eq!(searches, 40 + 40 + 1, "one probe, and one recall that opens its connection");
}
