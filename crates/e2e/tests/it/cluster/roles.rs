//! Each program under a role of its own in Postgres, also over kills; and what the roles refuse, as people see it.

use std::time::Duration;

use bench_e2e::faults::{PATIENCE, RUN, Size, Stage};
use bench_testkit::{
    bench::Done,
    cluster::{Cluster, Setup, wait_until_ready},
};
use serde_json::json;

/// Longest time of a command that is refused.
const SHORT: Duration = Duration::from_secs(40);

/// A verb with the store of a URL.
fn with(cluster: &Cluster, store: &str, args: &[&str]) -> Done {
    let mut command = cluster.command("bench-coord", store, &cluster.vhost().worker);
    command.args(args);
    cluster.spawn(command, &format!("as-{}-{}", args[0], args.len())).wait(PATIENCE)
}

fn refused(done: Done, table: &str) {
    let done = done.expect_code(2);
    let said = &done.stderr;
    assert!(said.contains(table) && said.contains("docs/OPERATIONS.md"), "{said}");
    assert!(!said.contains("planted"), "{said}");
}

#[test]
fn each_program_works_under_its_own_role_also_over_kills() {
    let stage = Stage::set(Size::Small, Setup::default(), 200);
    let cluster = &stage.cluster;
    let users = "SELECT string_agg(DISTINCT usename, ' ' ORDER BY usename) FROM pg_stat_activity WHERE datname = current_database() \
                 AND usename LIKE 'bench%'";
    let (mut leader, mut workers) = stage.people(2);
    let mut second = cluster.coordinator("second");
    wait_until_ready(&mut second);
    let client = stage.submit(&["--controls"]);
    stage.wait_for_percent(20);
    assert_eq!(cluster.sql(users).trim(), "bench_coordinate bench_submit bench_work");
    workers[0].kill();
    workers[0] = stage.worker("worker1-again");
    leader.kill();
    // with the provider of tests its controls say that nothing is measured: exit 5
    let report = client.wait(PATIENCE).expect_code(5).json();
    assert_eq!(report["result_digest"].as_str(), Some(Size::Small.digest().as_str()));
    assert_eq!((&report["outcomes"]["coverage"], report["controls"].as_array().map(Vec::len)), (&json!(1.0), Some(3)));

    // verbs under the role that is listed for them
    for verb in [
        &["list"][..],
        &["report", RUN],
        &["trace", RUN, "--slowest"],
        &["export", RUN, "--format", "jsonl"],
        &["doctor"],
    ] {
        let done = cluster.run(verb);
        assert!(done.code == 0, "{verb:?}: {}", done.stderr);
    }
    let other = Size::Small.submit(&["--run-id", "other", "--detach"]);
    let _ = cluster.run(&other).expect_code(3);
    let _ = cluster.run(&["pause", "other"]).expect_code(0);
    let _ = cluster.run(&["resume", "other", "--max-cost", "2", "--detach"]).expect_code(3);
    let _ = cluster.run(&["cancel", "other"]).expect_code(0);
    for verb in [&["retry", RUN][..], &["rescore", RUN, "--scorer", "word-overlap"]] {
        let done = cluster.run(verb);
        assert!([0, 5].contains(&done.code), "{verb:?}: {}", done.stderr);
    }
    let _ = cluster.run(&["gc"]).expect_code(0);
    let _ = cluster.run(&["compare", RUN, "latest"]);
    for (name, text) in cluster.logs() {
        assert!(!text.contains("permission denied"), "{name}:\n{text}");
    }
}

#[test]
fn what_a_role_may_not_do_is_refused_before_anything_is_changed() {
    let cluster = Cluster::new();
    let roles = &cluster.database().roles;
    let submit = ["submit", "--dataset", "locomo-sim", "--preset", "quick", "--run-id", "r", "--detach"];
    refused(with(&cluster, &roles.read, &submit), "runs");
    assert_eq!(cluster.sql("SELECT count(*) FROM runs").trim(), "0");
    let _ = with(&cluster, &roles.submit, &submit).expect_code(3);
    let _ = with(&cluster, &roles.submit, &["rename", "r", "named"]).expect_code(0);
    let _ = with(&cluster, &roles.submit, &["tag", "r", "small"]).expect_code(0);
    let state = || cluster.sql("SELECT state || state_version || result_version FROM runs");
    let before = state();
    refused(with(&cluster, &roles.read, &["cancel", "r"]), "runs");
    refused(with(&cluster, &roles.submit, &["resume", "r", "--release-uncertain", "--detach"]), "results");
    let _ = with(&cluster, &roles.submit, &["cancel", "r"]).expect_code(0);
    let cancelled = state();
    assert_ne!(before, cancelled);
    refused(with(&cluster, &roles.submit, &["retry", "r"]), "results");
    refused(with(&cluster, &roles.submit, &["gc"]), "results");
    refused(with(&cluster, &roles.submit, &["banks", "remove", "r"]), "results");
    assert_eq!(state(), cancelled, "nothing was changed");
    for (program, args, store) in [
        ("bench-worker", &[][..], &roles.submit),
        ("bench-worker", &[], &roles.read),
        ("bench-coord", &["serve", "--listen", "127.0.0.1:0"], &roles.work),
        ("bench-coord", &["serve", "--listen", "127.0.0.1:0"], &roles.submit),
        ("bench-coord", &["meter", "--listen", "127.0.0.1:0"], &roles.coordinate),
    ] {
        let mut command = cluster.command(program, store, &cluster.vhost().coordinator);
        command.args(args);
        let done = cluster.spawn(command, &format!("{program}-as-{}", store.len())).wait(SHORT);
        assert!(
            done.code == 2 && done.stderr.contains("permission denied"),
            "{program}: {} {}",
            done.code,
            done.stderr
        );
    }
}
