//! Every paid reply of a provider is in the books once, call for call, whoever is killed (P10, P34).

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use bench_testkit::{
    bench::submit_sim,
    cluster::{Cluster, wait_until_ready},
    ports,
    process::{Process, mortal, wait_until},
    provider::{KEY, Provider},
};
use serde_json::Value;

const SECRET: (&str, &str) = ("BENCH_METER_SECRET", "0123456789abcdef0123456789abcdef");
/// Longest time of a part of the run.
const LONG: Duration = Duration::from_secs(180);
/// Decimal places of a pico-dollar.
const PICO: f64 = 1e12;

/// What a reply was: its model, tokens of its prompt, tokens of its own, pico-dollars.
type Reply = (String, u64, u64, i64);

/// How many replies there were of each kind.
type Replies = BTreeMap<Reply, i64>;

fn counted(replies: impl IntoIterator<Item = Reply>) -> Replies {
    let mut counted = Replies::new();
    for reply in replies {
        *counted.entry(reply).or_default() += 1;
    }
    counted
}

/// What the provider has written down.
fn paid(ledger: &Path) -> Vec<Reply> {
    let text = fs::read_to_string(ledger).unwrap_or_default();
    let read = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a line of the ledger");
        let number = |key: &str| line[key].as_u64().unwrap_or_else(|| panic!("no {key}: {line}"));
        let cost = number("cost_pico_usd") as i64;
        (
            line["model"].as_str().expect("a model").to_owned(),
            number("prompt_tokens"),
            number("completion_tokens"),
            cost,
        )
    };
    text.lines().map(read).collect()
}

/// What the store says of replies that came whole.
fn booked(cluster: &Cluster) -> Vec<Reply> {
    let rows = cluster
        .sql("SELECT model, prompt_tokens, completion_tokens, cost FROM calls WHERE outcome < 2 AND prompt_tokens > 0");
    let read = |row: &str| {
        let mut cells = row.trim().split('|');
        let mut next = || cells.next().unwrap_or_else(|| panic!("four columns: {row}"));
        let model = next().to_owned();
        let mut number = || next().parse::<i64>().unwrap_or_else(|e| panic!("{row}: {e}"));
        (model, number() as u64, number() as u64, number())
    };
    rows.lines().filter(|row| !row.trim().is_empty()).map(read).collect()
}

/// The memory of the README elsewhere, which asks a model through the meter for each text that it keeps.
fn memory(cluster: &Cluster, port: u16, key: &Value, env: &[(&str, &str)]) -> Process {
    let readme = include_str!("../../../../README.md");
    let file = readme.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("README has a file");
    let file = file.replace("127.0.0.1:8080", &format!("127.0.0.1:{port}"));
    fs::write(cluster.bench().path().join("mine.yaml"), file).expect("is written");
    let mut command = mortal(Path::new("python3"));
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/systems/memory_server.py")).arg(port.to_string());
    let text = |name: &str| key[name].as_str().unwrap_or_else(|| panic!("no {name}: {key}"));
    command.env("MEMORY_MODEL", "gpt-4o-mini").env("OPENAI_BASE_URL", text("url")).env("OPENAI_API_KEY", text("key"));
    command.envs(env.iter().copied());
    cluster.spawn(command, "memory")
}

/// Where the meter of a run is to listen, the memory that is told so, and the hash by which workers allow it.
fn elsewhere(cluster: &Cluster, run: &str, env: &[(&str, &str)]) -> (String, Process, String) {
    let [meter_port, memory_port] = ports::reserve().expect("ports");
    let listen = format!("127.0.0.1:{meter_port}");
    let address = ["meter", "url", run, "--set", &format!("meter.listen={listen}"), "--json"];
    let key = cluster.run(&address).expect_code(0).json();
    let memory = memory(cluster, memory_port, &key, env);
    let hash = cluster.run(&["systems", "hash", "./mine.yaml", "--json"]).expect_code(0).json();
    (listen, memory, hash["sha256"].as_str().expect("a hash").to_owned())
}

#[test]
fn p34_ledger_and_report_agree_to_the_token_when_meter_provider_and_worker_are_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = folder.path().join("ledger.jsonl");
    let flags = ["--price", "gpt-4o-mini=0.15/0.60", "--latency-ms", "20", "--ledger"];
    let mut provider = Provider::start(&[&flags[..], &[ledger.to_str().expect("utf-8")]].concat());
    let cluster = Cluster::new().with_provider(provider.base_url(), KEY).with_env(SECRET.0, SECRET.1);
    let (listen, _memory, hash) = elsewhere(&cluster, "killed", &[]);
    let allowed = [("BENCH_ALLOW_SYSTEMS", hash.as_str())];
    let mut coordinator = cluster.coordinator("coordinator");
    let mut workers: Vec<_> = ["one", "two"].map(|name| cluster.worker_with(name, &[], &allowed)).into();
    wait_until_ready(&mut coordinator);
    workers.iter_mut().for_each(wait_until_ready);
    let mut meter = cluster.meter("meter", &listen);
    let _ = meter.wait_for_line("memory systems at", LONG);
    let models = ["--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-mini", "--max-cost", "5"];
    let system = ["--system", "./mine.yaml", "--meter", "--run-id", "killed", "--max-banks", "3", "--sample", "40"];
    let client = cluster.client(&submit_sim(&[&system[..], &models].concat()));
    let paid_for = |n: usize| wait_until("paid replies", LONG, || paid(&ledger).len() >= n);

    paid_for(20);
    meter.kill();
    meter = cluster.meter("meter-again", &listen);
    let _ = meter.wait_for_line("memory systems at", LONG);
    paid_for(50);
    provider.kill_and_start_again();
    paid_for(80);
    drop(workers.remove(0));

    let report = client.wait(LONG).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{}", report["errors"]);
    let number =
        |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path}: {report}"));
    let (paid, booked) = (paid(&ledger), booked(&cluster));
    // each reply in the books is one that was paid, to the token and the pico-dollar
    let mut left = counted(paid.iter().cloned());
    for (reply, count) in counted(booked.iter().cloned()) {
        let of = left.entry(reply.clone()).or_default();
        *of -= count;
        assert!(*of >= 0, "booked {count} times, {} times more than it was paid: {reply:?}", -*of);
    }
    // what is paid and in no row was cut by a kill, and is booked at its worst case
    let cut: i64 = left.values().sum();
    let uncertain = number("/usage/booked/uncertain/calls");
    assert!(cut as f64 <= uncertain, "{cut} replies are in no row, {uncertain} are uncertain");
    assert!(uncertain < 40.0, "three kills cut what was under way, and no more: {uncertain}");
    let cost = |replies: &[Reply]| replies.iter().map(|reply| reply.3).sum::<i64>();
    assert_eq!(
        (number("/usage/total/usd") * PICO).round() as i64,
        cost(&booked),
        "the report's dollars are those of the rows"
    );
    assert!(
        cost(&paid) <= (number("/usage/total/usd_booked") * PICO).round() as i64,
        "nothing was paid that is not booked"
    );
    let tokens = |of: fn(&Reply) -> u64| booked.iter().map(of).sum::<u64>() as f64;
    assert_eq!(number("/usage/total/prompt_tokens"), tokens(|reply| reply.1));
    assert_eq!(number("/usage/total/completion_tokens"), tokens(|reply| reply.2));
    assert!(number("/metered/calls") >= 60.0, "the memory asked for each text: {}", report["metered"]);
}

/// A server elsewhere that gives up at its first error, and the meter that says no to it in another process: the run's pace and the end of
/// its money are no failures of the server's, and what its calls are for is known by what the worker holds.
#[test]
fn p11_p34_what_a_server_elsewhere_fails_by_what_the_meter_says_is_given_back() {
    let provider = Provider::start(&["--price", "gpt-4o-mini=0.15/0.60", "--latency-ms", "20"]);
    let cluster = Cluster::new().with_provider(provider.base_url(), KEY).with_env(SECRET.0, SECRET.1);
    let (listen, _memory, hash) = elsewhere(&cluster, "given", &[("MEMORY_PASSES", "1")]);
    let allowed = [("BENCH_ALLOW_SYSTEMS", hash.as_str())];
    let mut coordinator = cluster.coordinator("coordinator");
    let mut worker = cluster.worker_with("one", &[], &allowed);
    wait_until_ready(&mut coordinator);
    wait_until_ready(&mut worker);
    let mut meter = cluster.meter("meter", &listen);
    let _ = meter.wait_for_line("memory systems at", LONG);

    let system = ["--system", "./mine.yaml", "--meter", "--run-id", "given", "--max-banks", "1", "--sample", "4"];
    let alone = ["--no-canaries", "--latency-probe", "off", "--max-rpm", "2", "--max-cost", "0.002", "--detach"];
    let _ = cluster.client(&submit_sim(&[&system[..], &alone].concat())).wait(LONG).expect_code(3);
    let waits = "SELECT count(*) FROM tasks WHERE reason LIKE '%calls had to wait%'";
    wait_until("the retain waits for the pace", LONG, || cluster.sql(waits).trim() == "1");
    let failed = "SELECT count(*) FROM tasks WHERE attempts > 0";
    assert_eq!(cluster.sql(failed).trim(), "0", "a wait is no attempt");

    let _ = cluster.run(&["pause", "given"]).expect_code(0);
    let faster = ["resume", "given", "--max-rpm", "100000", "--json"];
    let _ = cluster.client(&faster).wait(LONG).expect_code(3);
    let spent = "SELECT count(*) FROM runs WHERE reason LIKE 'budget%'";
    assert_eq!(cluster.sql(spent).trim(), "1", "it waits for its owner");
    assert_eq!(cluster.sql(failed).trim(), "0", "nor is the end of the money one");
    let report = cluster.client(&["resume", "given", "--max-cost", "5", "--json"]).wait(LONG).expect_code(0).json();
    assert_eq!(report["outcomes"]["infra_error"], 0, "{}", report["errors"]);
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{}", report["outcomes"]);
    let metered = &report["metered"];
    let calls = |list: &str, is: &dyn Fn(&Value) -> bool| -> u64 {
        let list = metered[list].as_array().expect("a list");
        list.iter().filter(|of| is(of)).filter_map(|of| of["calls"].as_u64()).sum()
    };
    let all = metered["calls"].as_u64().expect("a number");
    let (filling, known) =
        (calls("by_stage", &|of| of["stage"] == "retain"), calls("by_bank", &|of| of["bank"].is_string()));
    // the first call of all has no look before it
    assert!(filling * 100 >= all * 95 && known * 100 >= all * 95, "{filling} and {known} of {all}: {metered}");
}
