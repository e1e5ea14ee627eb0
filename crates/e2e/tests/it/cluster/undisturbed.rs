//! A cluster gives what one machine gives.

use bench_e2e::faults::{Size, Stage};
use bench_testkit::cluster::Setup;

#[test]
fn a_cluster_gives_the_digest_of_one_machine_and_pays_nothing_twice() {
    let stage = Stage::set(Size::Middle, Setup::default(), 20);
    let (_coordinator, _workers) = stage.people(3);
    let client = stage.submit(&[]);
    stage.check(client, 0);
}
