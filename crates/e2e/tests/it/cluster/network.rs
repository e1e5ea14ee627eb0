//! Lines that are cut, slow, or swallow everything; answers that are lost on their way.

use std::time::Duration;

use bench_e2e::faults::{PATIENCE, Size, Stage, randomness};
use bench_testkit::{
    cluster::Setup,
    proxy::{Faults, Proxy, Way},
};
use rand::Rng;
use serde_json::json;

const PROXIES: Setup = Setup { proxies: true, own_postgres: false, own_broker: false, pooler: false, one_role: false };

fn seconds(seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds));
}

#[test]
fn fault_14_connections_are_cut_and_slow() {
    let mut random = randomness();
    let stage = Stage::set(Size::Middle, PROXIES, 100);
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(5);
    for proxy in [stage.cluster.postgres_proxy(), stage.cluster.broker_proxy()] {
        proxy.set(Faults::delay(Duration::from_millis(60)));
    }
    for _ in 0..12 {
        seconds(random.random_range(0.1..0.6));
        let proxy: &Proxy = if random.random() { stage.cluster.postgres_proxy() } else { stage.cluster.broker_proxy() };
        proxy.cut();
    }
    for proxy in [stage.cluster.postgres_proxy(), stage.cluster.broker_proxy()] {
        proxy.heal();
    }
    stage.check(client, 0);
}

#[test]
fn fault_15_the_stores_answers_are_lost() {
    let mut random = randomness();
    let stage = Stage::set(Size::Middle, PROXIES, 100);
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    let deaf = Faults { to_client: Way { black_hole: true, ..Way::default() }, ..Faults::default() };
    for percent in [5, 15, 25, 35, 45, 55] {
        stage.wait_for_percent(percent);
        // what was asked is done, and nobody learns of it: claims, commits and releases of unknown outcome
        stage.cluster.postgres_proxy().set(deaf);
        seconds(random.random_range(0.2..0.8));
        stage.cluster.postgres_proxy().cut();
        stage.cluster.postgres_proxy().heal();
    }
    stage.check(client, 0);
}

#[test]
fn fault_16_both_services_fall_into_a_black_hole() {
    let stage = Stage::set(Size::Middle, PROXIES, 100);
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    for (percent, proxy) in [(10, stage.cluster.postgres_proxy()), (40, stage.cluster.broker_proxy())] {
        stage.wait_for_percent(percent);
        proxy.set(Faults::black_hole());
        seconds(8.0);
        // the old connections are never heard of again
        proxy.cut();
        proxy.heal();
    }
    stage.check(client, 0);
}

#[test]
fn fault_18_replies_that_were_paid_are_lost() {
    let stage = Stage::set(Size::Middle, Setup::default(), 50);
    stage.provider.control(&json!({"faults": {"cut": 0.15}}));
    let (_coordinator, _workers) = stage.people(2);
    let report = stage.check_end(stage.submit(&["--set", "backoff.initial_interval=20ms"]).wait(PATIENCE));
    let stats = stage.provider.stats();
    let cut = stats["faults"]["cut"].as_u64().expect("connections were cut after the reply was made");
    assert!(cut > 20, "{stats:#}");
    assert_eq!(stats["repeated_requests"], cut, "each lost reply is asked for once more, and nothing else is");
    // what may have been paid is not forgotten: its worst case stands beside what was booked
    assert!(report["usage"]["total"]["usd_uncertain"].as_f64() > Some(0.0), "{:#}", report["usage"]["total"]);
}
