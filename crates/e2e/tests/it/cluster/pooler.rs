//! The same run through PgBouncer in transaction mode: no process keeps anything in a session of the database (P14).

use bench_e2e::faults::{Size, Stage};
use bench_testkit::cluster::Setup;

#[test]
fn p14_a_run_through_a_pooler_in_transaction_mode() {
    let stage = Stage::set(Size::Middle, Setup { pooler: true, ..Setup::default() }, 20);
    let (_coordinator, mut workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(30);
    workers[0].kill();
    workers.push(stage.worker("another"));
    stage.check(client, 2 * bench_e2e::faults::SLOTS);
}
