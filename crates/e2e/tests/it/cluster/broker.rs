//! What the broker loses, the store knows: restarts, outages, deleted queues, a forgotten broker, odd messages.

use std::time::{Duration, Instant};

use bench_e2e::{
    amqp::{Wire, queue_names},
    faults::{PATIENCE, RUN, Size, Stage, check_told},
};
use bench_testkit::cluster::Setup;
use serde_json::json;

const OWN: Setup = Setup { own_broker: true, own_postgres: false, proxies: false, pooler: false, one_role: false };

#[test]
fn fault_7_the_broker_is_killed_and_started_again() {
    let mut stage = Stage::set(Size::Middle, OWN, 150);
    stage.cluster.broker().settle().expect("settles");
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    for percent in [15, 50] {
        stage.wait_for_percent(percent);
        stage.cluster.broker().restart().expect("the broker comes back");
    }
    stage.check(client, 0);
}

#[test]
fn fault_8_the_broker_is_away_for_twenty_seconds() {
    let mut stage = Stage::set(Size::Middle, OWN, 150);
    stage.cluster.broker().settle().expect("settles");
    let (coordinator, workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(25);
    stage.cluster.broker().kill();
    std::thread::sleep(Duration::from_secs(10));
    let status = stage.cluster.status(RUN);
    let problem = status["cluster"]["broker_problem"].as_str().expect("status says that the broker is away");
    assert!(problem.contains("127.0.0.1") && !problem.contains("planted"), "{problem}");
    std::thread::sleep(Duration::from_secs(10));
    stage.cluster.broker().restart().expect("the broker comes back");
    stage.check(client, 0);
    check_told(&[&coordinator, &workers[0], &workers[1]], "broker_away");
}

#[test]
fn fault_9_all_queues_are_deleted() {
    let stage = Stage::set(Size::Middle, Setup::default(), 150);
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    let wire = Wire::to(&stage.cluster.vhost().admin);
    for percent in [15, 50] {
        stage.wait_for_percent(percent);
        for name in queue_names() {
            wire.delete(&name);
        }
    }
    stage.check(client, 0);
}

#[test]
fn fault_10_the_broker_forgets_everything() {
    let mut stage = Stage::set(Size::Middle, OWN, 150);
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(30);
    stage.cluster.broker().kill_and_forget().expect("its data are deleted");
    stage.cluster.broker().restart().expect("an empty broker comes up");
    // the operator's part: virtual host and users; queues are the coordinator's
    stage.cluster.make_vhost_again();
    stage.check(client, 0);
}

#[test]
fn fault_11_duplicate_reordered_and_unreadable_messages() {
    let stage = Stage::set(Size::Middle, Setup::default(), 150);
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    let wire = Wire::to(&stage.cluster.vhost().admin);
    let question = "bench.t1.default.question";
    for percent in [10, 30, 50] {
        stage.wait_for_percent(percent);
        // every task that there is, backwards, three times, into every queue
        let known = stage.cluster.sql("SELECT run_no, task_key FROM tasks ORDER BY task_key DESC LIMIT 100");
        let tasks: Vec<(i64, i64)> = known
            .lines()
            .filter_map(|line| line.split_once('|'))
            .map(|(run, task)| (run.parse().expect("a number"), task.parse().expect("a number")))
            .collect();
        assert!(!tasks.is_empty());
        for _ in 0..3 {
            for name in queue_names() {
                for (run, task) in &tasks {
                    wire.publish(
                        &name,
                        json!({"v": 1, "run": RUN, "run_no": run, "task": task}).to_string().as_bytes(),
                    );
                }
            }
        }
        wire.publish(question, b"this is no task");
        wire.publish(question, &[0, 159, 146, 150]);
        wire.publish(question, json!({"v": 1, "run": RUN, "run_no": 999_999, "task": 1}).to_string().as_bytes());
        // from a build of the future: put back, not lost
        let (run, task) = tasks[tasks.len() / 2];
        wire.publish(question, json!({"v": 99, "run": RUN, "run_no": run, "task": task}).to_string().as_bytes());
    }
    stage.check(client, 0);
    // the coordinator looks into the dead letters every five seconds
    let status = stage.cluster.wait_for_status(RUN, Duration::from_secs(30), |status| {
        status["cluster"]["trouble"].as_str().is_some_and(|trouble| trouble.starts_with("6 unreadable messages"))
    });
    assert_eq!((&status["status"], &status["cluster"]["dead_letters"]), (&json!("finished"), &json!(6)));
    let text = stage.cluster.run(&["status"]).expect_code(0).stdout;
    assert!(text.contains("dead letters: 6") && text.contains("lie in the dead letters"), "{text}");
    settle_dead_letters(&stage);
}

/// What cannot be read is shown, sent back and dropped by a person, and then nothing is left of it.
fn settle_dead_letters(stage: &Stage) {
    let (store, queue) = (&stage.cluster.database().runtime, &stage.cluster.vhost().coordinator);
    let calls = std::cell::Cell::new(0);
    let dead = |more: &[&str]| {
        calls.set(calls.get() + 1);
        let mut command = stage.cluster.command("bench-coord", store, queue);
        command.arg("dead").args(more);
        stage.cluster.spawn(command, &format!("dead-{}", calls.get())).wait(PATIENCE)
    };
    let list = dead(&["list", "--json"]).expect_code(0).json();
    assert_eq!((&list["count"], &list["messages"][0]["queue"]), (&json!(6), &json!("bench.t1.default.question")));
    assert!(list["messages"].as_array().is_some_and(|all| all.iter().all(|message| message["why"] != "")), "{list:#}");
    let text = dead(&["list", "--limit", "2"]).expect_code(0).stdout;
    assert!(text.contains("6 unreadable messages, the oldest of") && text.contains("… and 4 more"), "{text}");
    let shown: Vec<String> = (1..=6).map(|n: usize| dead(&["show", &n.to_string()]).expect_code(0).stdout).collect();
    assert!(shown.iter().any(|text| text.contains("body, 15 bytes: this is no task")), "{shown:#?}");
    let refused = dead(&["show", "7"]).expect_code(2).stderr;
    assert!(refused.contains("numbers them from 1 to 6"), "{refused}");
    assert!(dead(&["drop"]).expect_code(2).stderr.contains("--all"), "what is to be dropped must be said");
    assert!(dead(&["drop", "1"]).expect_code(0).stdout.contains("1 messages are dropped, 5 are left"));
    // it comes back: nobody here can read it
    assert!(dead(&["requeue", "1"]).expect_code(0).stdout.contains("1 messages are back in the queues"));
    let began = Instant::now();
    while dead(&["list", "--json"]).expect_code(0).json()["count"] != 5 {
        assert!(began.elapsed() < Duration::from_secs(30), "the message that was sent back does not come again");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(dead(&["drop", "--all"]).expect_code(0).stdout.contains("5 messages are dropped, 0 are left"));
    assert!(dead(&["list"]).expect_code(0).stdout.contains("no unreadable messages"));
    let status = stage.cluster.wait_for_status(RUN, Duration::from_secs(30), |status| {
        status["cluster"]["dead_letters"] == 0 && status["cluster"]["trouble"].is_null()
    });
    assert_eq!(status["status"], "finished");
    let local = stage.cluster.bench().run(["dead", "list"]).expect_code(2).stderr;
    assert!(local.contains("memory: has no dead letters"), "{local}");
}

#[test]
fn fault_32_all_queues_are_purged_while_the_run_goes_on() {
    let stage = Stage::set(Size::Large, Setup::default(), 400);
    let (coordinator, _workers) = stage.people(2);
    let mut client = stage.submit(&[]);
    stage.wait_for_percent(20);
    let wire = Wire::to(&stage.cluster.vhost().admin);
    let purged: u32 = queue_names().iter().map(|name| wire.purge(name)).sum();
    let began = Instant::now();
    assert!(purged > 0, "no message was ready: nothing was lost");
    let (mut repairs, mut last) = (0, Duration::ZERO);
    while client.runs() {
        let log = coordinator.stderr();
        let now = log.lines().filter(|line| line.contains("tasks are published again")).count();
        if now > repairs {
            (repairs, last) = (now, began.elapsed());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    eprintln!("{purged} messages were purged, published again in {repairs} repairs, the last after {last:?}");
    assert!((1..=4).contains(&repairs), "published again {repairs} times");
    assert!(last <= Duration::from_secs(10), "the last were published again after {last:?}");
    stage.check(client, 0);
}

#[test]
fn fault_19_a_broker_under_alarm_holds_publishers_and_drops_nothing() {
    // so slow that the run is not over before the alarm rings, however long the broker's tool takes to start
    let mut stage = Stage::set(Size::Middle, OWN, 3000);
    let (_coordinator, _workers) = stage.people(2);
    let client = stage.submit(&[]);
    stage.wait_for_percent(5);
    let alarm = |stage: &mut Stage, share: &str| {
        let _ = stage.cluster.broker().control(&["set_vm_memory_high_watermark", share]).expect("is set");
    };
    alarm(&mut stage, "0.000001");
    // a publisher waits for half a minute before it says so
    let status = stage.cluster.wait_for_status(RUN, Duration::from_secs(120), |status| {
        status["why"].as_str().is_some_and(|why| why.contains("blocks publishers"))
    });
    eprintln!("{}", status["why"]);
    assert_eq!(status["status"], "running");
    stage.provider.control(&json!({"latency": {"median_ms": 20.0}}));
    alarm(&mut stage, "0.8");
    stage.check(client, 0);
}
