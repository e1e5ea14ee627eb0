//! Everything at once, again and again.

use std::time::{Duration, Instant};

use bench_e2e::{
    amqp::{Wire, queue_names},
    faults::{RUN, SLOTS, Size, Stage, poison, randomness},
};
use bench_testkit::{cluster::Setup, proxy::Faults};
use rand::Rng;
use serde_json::json;

/// How long the weather lasts.
const STORM: Duration = Duration::from_secs(240);

/// Coordinators and workers die and freeze, services restart, lines are cut, queues are deleted, in a random order.
#[test]
fn a_storm_of_all_faults() {
    let mut random = randomness();
    let setup = Setup { own_postgres: true, own_broker: true, proxies: true, pooler: false, one_role: false };
    let mut stage = Stage::set(Size::Large, setup, 5_000);
    stage.cluster.broker().settle().expect("settles");
    let (first, mut workers) = stage.people(4);
    let mut coordinators = [first, stage.cluster.coordinator("second")];
    let mut client = stage.submit(&[]);
    stage.provider.wait_for_requests(1);
    let (began, mut lost, mut n) = (Instant::now(), 0, 0);
    while began.elapsed() < STORM && client.runs() {
        n += 1;
        std::thread::sleep(Duration::from_millis(random.random_range(500..3_000)));
        match random.random_range(0..10) {
            0..=3 => {
                let victim = random.random_range(0..workers.len());
                workers[victim].kill();
                workers[victim] = stage.worker(&format!("worker{victim}"));
                lost += 2 * SLOTS;
            }
            4 => {
                let victim = random.random_range(0..workers.len());
                workers[victim].signal("STOP");
                std::thread::sleep(Duration::from_secs(random.random_range(1..20)));
                workers[victim].signal("CONT");
                lost += 2 * SLOTS;
            }
            5 => {
                let victim = random.random_range(0..2);
                coordinators[victim].kill();
                coordinators[victim] = stage.cluster.coordinator(&format!("coordinator-{n}"));
            }
            6 => stage.cluster.postgres().restart().expect("Postgres comes back"),
            7 => {
                stage.cluster.broker().settle().expect("settles");
                stage.cluster.broker().restart().expect("the broker comes back");
            }
            8 => {
                for proxy in [stage.cluster.postgres_proxy(), stage.cluster.broker_proxy()] {
                    proxy.set(Faults::delay(Duration::from_millis(random.random_range(0..100))));
                    proxy.cut();
                }
            }
            _ => {
                let wire = Wire::to(&stage.cluster.vhost().admin);
                queue_names().iter().for_each(|queue| wire.delete(queue));
            }
        }
        // what could not come up in the middle of an outage is started again, as an orchestrator would
        for (n, worker) in workers.iter_mut().enumerate() {
            if !worker.runs() {
                *worker = stage.worker(&format!("worker{n}"));
            }
        }
        for (n, coordinator) in coordinators.iter_mut().enumerate() {
            if !coordinator.runs() {
                *coordinator = stage.cluster.coordinator(&format!("again-{n}"));
            }
        }
    }
    for proxy in [stage.cluster.postgres_proxy(), stage.cluster.broker_proxy()] {
        proxy.heal();
    }
    stage.provider.control(&json!({"latency": {"median_ms": 20.0}}));
    eprintln!("{n} faults in {:.0} s", began.elapsed().as_secs_f64());
    assert!(n >= 40, "the run was over too soon");
    stage.check(client, lost);
}

#[test]
fn two_hundred_kills_of_workers() {
    let mut random = randomness();
    let stage = Stage::set(Size::Large, Setup::default(), 1_500);
    let (_coordinator, mut workers) = stage.people(4);
    let mut client = stage.submit(&[]);
    stage.provider.wait_for_requests(1);
    for kills in 0..200 {
        std::thread::sleep(Duration::from_millis(random.random_range(50..800)));
        assert!(client.runs(), "the run was over after {kills} kills:\n{}", client.stderr());
        let victim = random.random_range(0..workers.len());
        workers[victim].kill();
        workers[victim] = stage.worker(&format!("worker{victim}"));
    }
    stage.provider.control(&json!({"latency": {"median_ms": 20.0}}));
    stage.check(client, 200 * 2 * SLOTS);
}

#[test]
fn a_task_that_kills_ten_workers_ends_alone() {
    let stage = Stage::set(Size::Small, Setup::default(), 20);
    poison(&stage, 10);
}

#[test]
fn twenty_kills_of_the_leader() {
    let mut random = randomness();
    let stage = Stage::set(Size::Large, Setup::default(), 400);
    let (first, _workers) = stage.people(2);
    let mut coordinators = [first, stage.cluster.coordinator("second")];
    let client = stage.submit(&[]);
    stage.provider.wait_for_requests(1);
    for n in 0..20 {
        std::thread::sleep(Duration::from_millis(random.random_range(1_000..8_000)));
        let leader = stage.cluster.sql("SELECT holder FROM leaders WHERE scope = 'cluster'");
        let victim = coordinators.iter().position(|c| c.name() == leader).unwrap_or(0);
        coordinators[victim].kill();
        coordinators[victim] = stage.cluster.coordinator(&format!("coordinator-{n}"));
    }
    stage.check(client, 0);
    assert_eq!(stage.cluster.sql("SELECT COALESCE(sum(losses), 0) FROM tasks"), "0", "workers were not touched");
    assert_eq!(stage.cluster.status(RUN)["status"], "finished");
}
