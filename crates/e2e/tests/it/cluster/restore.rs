//! Everything is gone but a backup of Postgres: docs/OPERATIONS.md says what to do, and this does it.

use bench_e2e::faults::{SLOTS, Size, Stage};
use bench_testkit::{
    cluster::{Cluster, Setup},
    postgres,
    provider::KEY,
};
use serde_json::json;

#[test]
fn a_run_goes_on_from_a_backup_of_postgres_with_an_empty_broker() {
    let lost = Stage::set(Size::Middle, Setup::default(), 600);
    let (mut coordinator, mut workers) = lost.people(2);
    let mut client = lost.submit(&[]);
    lost.wait_for_percent(25);
    let folder = tempfile::tempdir().expect("a folder");
    let backup = folder.path().join("bench.dump");
    // in the middle of the run: whatever is asked from here on is not in it, nor what has no answer yet
    let known = lost.provider.count("requests");
    postgres::dump(&lost.cluster.database().owner, &backup).expect("pg_dump");
    lost.wait_for_percent(40);
    assert!(client.runs(), "the run is over: nothing can be lost");
    workers.iter_mut().for_each(|worker| worker.kill());
    coordinator.kill();
    client.kill();
    let unknown = lost.provider.count("requests") - known + 2 * 2 * SLOTS;

    // another server's empty database, a broker that has never heard of the run; the provider is the same
    let Stage { provider, cluster: gone, .. } = lost;
    let cluster = Cluster::without_schema(Setup::default()).with_provider(provider.base_url(), KEY);
    postgres::restore(&cluster.database().owner, &backup).expect("pg_restore");
    assert_ne!(cluster.database().owner, gone.database().owner);
    drop(gone);
    provider.control(&json!({"latency": {"median_ms": 20.0}}));
    let here = Stage::new(Size::Middle, provider, cluster);
    let _ = here.cluster.migrate().expect_code(0);
    let (_coordinator, _workers) = here.people(2);
    // the same command as before attaches to the run
    let _ = here.check(here.submit(&[]), unknown);
}
