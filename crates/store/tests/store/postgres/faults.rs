//! Servers that go away and lines that are cut: calls say so in time, and work again afterwards.

use std::time::{Duration, Instant};

use bench_proto::ids::{Role, TaskKey};
use bench_store::{
    StoreError, StoreResult,
    conformance::{Scene, bank},
};
use bench_testkit::{
    postgres::Postgres,
    proxy::{Faults, Proxy},
};

use super::at;

/// Repeats a call while it is told that this may help.
async fn persist<T>(mut call: impl AsyncFnMut() -> StoreResult<T>) -> (T, u32) {
    let began = Instant::now();
    for failures in 0.. {
        match call().await {
            Ok(value) => return (value, failures),
            Err(error) if error.is_transient() && began.elapsed() < Duration::from_secs(20) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("after {failures} failures: {error:?}"),
        }
    }
    unreachable!("the loop ends by returning")
}

/// Nothing that was answered is lost, and repeating what was not answered changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_in_the_middle_of_work_is_survived() {
    let cluster = Postgres::start().expect("tests need PostgreSQL");
    let fresh = at(cluster.create_database().expect("a database is made")).await;
    let questions: Vec<u32> = (0..400).collect();
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &questions)])]).await;
    scene.make_ready(0, 1).await;
    let cluster = std::sync::Arc::new(cluster);
    let crash = {
        let cluster = cluster.clone();
        tokio::task::spawn_blocking(move || {
            std::thread::sleep(Duration::from_millis(150));
            cluster.stop().expect("stops");
            std::thread::sleep(Duration::from_millis(300));
            cluster.start_again().expect("starts again");
        })
    };
    let (mut failures, mut done) = (0, 0);
    let store = scene.store;
    while !crash.is_finished() || done < 50 {
        let task = TaskKey::question(0, done);
        let (mut claimed, failed) = persist(async || store.claim(scene.session, &[(scene.run, task)]).await).await;
        failures += failed;
        // a claim whose answer was lost has happened: its holder is this session, with the first epoch
        let epoch = claimed.pop().map_or(1, |claimed| claimed.epoch);
        let records = scene.whole_question(task, epoch, 1.0, bench_proto::step::Opens::Nothing);
        let (outcome, failed) = persist(async || store.commit(&records).await).await;
        failures += failed;
        assert_eq!(outcome.refused, [] as [usize; 0]);
        done += 1;
    }
    crash.await.expect("the server is up again");
    assert!(failures > 0, "the crash was noticed");
    assert_eq!(scene.counters().await.answered, i64::from(done));
    assert_eq!(scene.ready(Role::Question).await.len(), 400 - done as usize);
}

/// A line that swallows everything is noticed within five seconds, whether a call was under way or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_line_is_noticed_in_time() {
    let cluster = Postgres::start().expect("tests need PostgreSQL");
    let direct = cluster.create_database().expect("a database is made");
    let server = std::net::SocketAddr::from(([127, 0, 0, 1], cluster.port()));
    let proxy = Proxy::start(server).await.expect("the proxy listens");
    let url = direct.replace(&server.to_string(), &proxy.address().to_string());
    let fresh = at(url.clone()).await;
    let store = fresh.store.clone();
    let run = store.create_run(&bench_store::conformance::new_run("r")).await.expect("is created");

    for rested in [Duration::ZERO, Duration::from_millis(1_200)] {
        store.run(run).await.expect("is read");
        tokio::time::sleep(rested).await;
        proxy.set(Faults::black_hole());
        let began = Instant::now();
        let (read, written) = tokio::join!(store.run(run), store.add_event(run, "k", "m"));
        assert!(read.is_err_and(|e| e.is_transient()) && written.is_err_and(|e| e.is_transient()));
        assert!(began.elapsed() < Duration::from_millis(5_500), "it took {:?}", began.elapsed());
        proxy.heal();
        persist(async || store.run(run).await).await;
    }
    proxy.set(Faults::black_hole());
    match bench_store::open(&url).await.map(drop) {
        Err(StoreError::Unavailable(message)) => assert!(message.contains("firewalls"), "{message}"),
        other => panic!("must be refused: {other:?}"),
    }
    proxy.heal();
    proxy.cut();
    let ((), failures) = persist(async || store.add_event(run, "k", "m").await).await;
    assert!(failures <= 1, "the first failure renews all connections");
}

/// A long statement of a server that answers is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_is_not_dead() {
    let fresh = super::fresh().await;
    let run = fresh.store.create_run(&bench_store::conformance::new_run("r")).await.expect("is created");
    let mut conn = super::raw(&fresh.url).await;
    super::change(&mut conn, "BEGIN; LOCK TABLE run_events").await;
    let store = fresh.store.clone();
    let waiting = tokio::spawn(async move { store.add_event(run, "k", "m").await });
    tokio::time::sleep(Duration::from_millis(3_200)).await;
    assert!(!waiting.is_finished());
    super::change(&mut conn, "COMMIT").await;
    waiting.await.expect("ends").expect("is written");
}
