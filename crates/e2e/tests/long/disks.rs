//! The disk under Postgres runs full.

use std::time::Duration;

use bench_e2e::faults::{Size, Stage};
use bench_testkit::{cluster::Setup, disk::SmallDisk};

#[test]
fn the_disk_under_postgres_is_full() {
    // needs root, as every mount does; without it this fails and says so
    let disk = SmallDisk::mount("48m");
    let own = Setup { own_postgres: true, ..Setup::default() };
    let stage = Stage::set(Size::Middle, own, 100);
    disk.give_to("postgres");
    let database = bench_testkit::postgres::database_of(&stage.cluster.database().admin).to_owned();
    let sql = |sql: &str| stage.cluster.postgres().sql("postgres", sql).unwrap_or_else(|e| panic!("{sql}: {e:#}"));
    let _ = sql(&format!("CREATE TABLESPACE small LOCATION '{}'", disk.path().display()));
    let _ = sql(&format!("ALTER DATABASE {database} SET TABLESPACE small"));
    let (mut coordinator, mut workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(20);
    disk.fill();
    // workers cannot keep what they are paid for: they stop, and say why
    let line = workers[0].wait_for_line("no space left for the store", Duration::from_secs(60));
    eprintln!("{line}");
    let done = workers.remove(0).wait(Duration::from_secs(30)).expect_code(4);
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    assert!(coordinator.runs(), "the coordinator waits");
    disk.make_room();
    // an orchestrator starts them again
    workers.clear();
    let _workers = [stage.worker("again1"), stage.worker("again2")];
    stage.check(client, 2 * 2 * bench_e2e::faults::SLOTS);
}
