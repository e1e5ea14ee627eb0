//! Hebb Mind, the real server: its memories are in a file, so it comes back with them.

use bench_testkit::{
    bench::{Bench, signal, wait},
    cluster::Cluster,
    process::wait_until,
    provider::{KEY, Provider},
    python,
};

use super::{
    PATIENCE, assert_ended, digest, gone, killed_in_a_cluster, killed_while_filled, lives, logs, retained, started,
    submit,
};

fn env(provider: &Provider) -> [(&'static str, String); 3] {
    [
        ("HEBB_PYTHON", python::python(python::HEBB_MIND).display().to_string()),
        ("HEBB_EMBEDDINGS_URL", format!("{}/embeddings", provider.base_url())),
        ("HEBB_EMBEDDINGS_KEY", KEY.to_owned()),
    ]
}

fn bench(provider: &Provider) -> Bench {
    env(provider).into_iter().fold(Bench::new(), |bench, (name, value)| bench.with_env(name, value))
}

#[test]
fn hebb_mind_is_checked_and_benchmarked_in_one_command() {
    let provider = Provider::start(&[]);
    let bench = bench(&provider);
    let checked = bench.run(["systems", "check", "hebb-mind", "--json"]).expect_code(0).json();
    let of = |check: &str| {
        let steps = checked["steps"].as_array().expect("steps");
        steps.iter().find(|step| step["check"] == check).expect("is checked")["outcome"].clone()
    };
    for passed in [
        "health",
        "store",
        "ready is true",
        "counts",
        "unicode and length",
        "ids come back",
        "limits",
        "isolation",
        "reset",
    ] {
        assert_eq!(of(passed), "pass", "{passed}: {checked}");
    }
    let report = bench.run(submit("hebb-mind", "hebb")).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    assert_eq!(report["system_stats"]["version"], "0.3.0", "the version that was measured");
    assert!(report["system_stats"]["items"].as_f64().is_some_and(|items| items > 500.0), "{report}");
    let home = bench.path().join(".bench");
    assert_ended(&home);
    let logs = logs(&bench, "hebb", "hebb-mind");
    assert_eq!(logs.len(), 2, "one instance for each bank, and their logs are kept with the run");
    assert!(logs.iter().all(|log| log.contains("Application startup complete")), "{logs:?}");
    let found: u64 =
        bench.questions("hebb").iter().map(|q| q["retrieved"].as_array().map_or(0, |h| h.len() as u64)).sum();
    assert!(found > 0, "it finds something");
}

#[test]
fn hebb_mind_is_killed_while_it_is_filled_and_finds_the_same() {
    let provider = Provider::start(&["--latency-ms", "60"]);
    let bench = bench(&provider);
    let killed = killed_while_filled(&bench, &submit("hebb-mind", "killed"), "killed", 3).expect_code(0);
    let undisturbed = bench.run(submit("hebb-mind", "undisturbed")).expect_code(0);
    assert_eq!(digest(&killed), digest(&undisturbed));
}

#[test]
fn a_system_whose_runner_was_killed_is_ended_by_the_next_start() {
    let provider = Provider::start(&["--latency-ms", "60"]);
    let bench = bench(&provider);
    let home = bench.path().join(".bench");
    let child = bench.start(submit("hebb-mind", "hebb"));
    let first = started(&home);
    wait_until("a session is stored", PATIENCE, || retained(&bench, "hebb") >= 1);
    signal(&child, "KILL");
    let _ = wait(child);
    assert!(lives(first), "nobody could end it");
    let done = bench.run(["resume", "hebb", "--json"]).expect_code(0);
    assert_eq!(done.json()["outcomes"]["coverage"], 1.0, "{}", done.stdout);
    gone(first);
    assert_ended(&home);
}

#[test]
fn hebb_mind_through_rabbitmq_and_postgres_with_a_kill() {
    let provider = Provider::start(&["--latency-ms", "40"]);
    let cluster =
        env(&provider).into_iter().fold(Cluster::new(), |cluster, (name, value)| cluster.with_key(name, &value));
    let killed = killed_in_a_cluster(&cluster, &submit("hebb-mind", "hebb"), 3).expect_code(0);
    let undisturbed = bench(&provider).run(submit("hebb-mind", "hebb")).expect_code(0);
    assert_eq!(digest(&killed), digest(&undisturbed), "as in one process");
}

/// The system's own embeddings and chats go through the meter: it holds no key of the provider's, and its banks are known by their
/// address.
#[test]
fn p34_hebb_mind_is_metered_by_itself_and_its_instances_say_which_bank_they_serve() {
    let prices = ["--price", "text-embedding-3-small=0.02/0", "--price", "gpt-4o-mini=0.15/0.60"];
    let provider = Provider::start(&prices);
    let bench = bench(&provider).with_env("OPENAI_BASE_URL", provider.base_url()).with_env("OPENAI_API_KEY", KEY);
    let bench = bench.with_env("HEBB_LLM_URL", provider.base_url());
    let metered = [&submit("hebb-mind", "hebb")[..], &["--meter", "--mode", "consolidated"]].concat();
    let report = bench.run(metered).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    let metered = &report["metered"];
    assert_eq!(metered["calls"].as_u64(), Some(provider.count("requests")), "{metered}");
    assert!(
        (metered["usd"].as_f64().expect("dollars") - provider.paid()).abs() < 1e-12,
        "{metered} ${}",
        provider.paid()
    );
    assert!(metered["calls"].as_u64() > Some(0), "{metered}");
    let banks = metered["by_bank"].as_array().expect("a list");
    assert!(banks.iter().all(|of| of["bank"].is_string()), "each instance serves one bank: {metered}");
    let of = |list: &str, name: &str, wanted: &str| {
        let all = metered[list].as_array().expect("a list");
        all.iter().filter(|of| of[name] == wanted).filter_map(|of| of["calls"].as_u64()).sum::<u64>()
    };
    assert!(of("by_stage", "stage", "consolidate") > 0, "a model makes something of what was stored: {metered}");
    assert!(of("by_model", "service", "chat") > 0 && of("by_model", "service", "embeddings") > 0, "{metered}");
    let home = bench.path().join(".bench");
    let config = std::process::Command::new("grep").args(["-rl", KEY]).arg(&home).output().expect("grep is there");
    assert!(config.stdout.is_empty(), "the key of the provider lies in {}", String::from_utf8_lossy(&config.stdout));
}
