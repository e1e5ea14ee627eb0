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
    // workers cannot keep what they are paid for: they say why, and wait with it
    let line = workers[0].wait_for_line("the disk under Postgres is full", Duration::from_secs(60));
    eprintln!("{line}");
    std::thread::sleep(Duration::from_secs(5));
    assert!(coordinator.runs() && workers.iter_mut().all(|worker| worker.runs()), "all wait");
    disk.make_room();
    stage.check(client, 0);
    assert!(workers.iter_mut().all(|worker| worker.runs()), "workers outlive a full disk");
    assert!(workers.iter().all(|worker| !worker.stderr().contains("panicked")));
}
