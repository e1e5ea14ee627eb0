//! Servers of models are looked at before a run starts, and by `doctor`.

use std::time::{Duration, Instant};

use bench_testkit::{
    bench::{Bench, Done},
    ports,
    provider::{KEY, Provider},
};
use serde_json::json;

fn at(base_url: &str) -> Bench {
    Bench::new().with_env("OPENAI_BASE_URL", base_url).with_env("OPENAI_API_KEY", KEY)
}

#[test]
fn a_wrong_base_url_is_refused_with_a_guess_before_anything_starts() {
    let provider = Provider::start(&[]);
    let root = provider.base_url().trim_end_matches("/v1");
    let place = root.trim_start_matches("http://");
    let [dead] = ports::reserve().expect("a port");
    for (url, words) in [
        (format!("{place}/v1"), format!("did you mean {root}/v1?")),
        (root.to_owned(), format!("{root}/v1 does: set its base URL to that")),
        (format!("{root}/v1/chat/completions"), format!("{root}/v1 does: set its base URL to that")),
        (format!("{root}/v2"), format!("{root}/v1 does: set its base URL to that")),
        (format!("http://127.0.0.1:{dead}/v1"), "cannot be reached".to_owned()),
        ("http://nobody.invalid/v1".to_owned(), "cannot be reached".to_owned()),
    ] {
        let bench = at(&url);
        let began = Instant::now();
        let refused = bench.run(provider.submit(&["--run-id", "never"])).expect_code(2);
        assert!(refused.stderr.contains(&words), "{url}: {}", refused.stderr);
        assert!(began.elapsed() < Duration::from_secs(10), "{url}: {:?}", began.elapsed());
        let runs = Bench::run(&bench, ["status", "never"]);
        assert_eq!(runs.code, 2, "{url}: {}", runs.stdout);
    }
    assert_eq!(provider.count("requests"), 0);
}

#[test]
fn a_server_that_comes_later_is_waited_for_when_that_is_said() {
    let provider = Provider::start(&[]);
    let expected = provider.digest(&[]);
    // longer than the start of a program on a busy machine
    provider.outage(&json!({"kind": "refuse", "for_ms": 8000}));
    let refused = provider.bench().run(provider.submit(&[])).expect_code(2);
    assert!(refused.stderr.contains("--set models.look_first=false"), "{}", refused.stderr);
    let report = provider.bench().run(provider.submit(&["--set", "models.look_first=false"])).expect_code(0).json();
    assert_eq!(report["result_digest"].as_str(), Some(&*expected));
}

/// The lines of `doctor` that are about accounts.
fn accounts(done: &Done) -> String {
    done.stdout.lines().filter(|line| line.contains("account")).collect::<Vec<_>>().join("\n")
}

#[test]
fn doctor_says_ok_of_accounts_that_can_be_used_and_of_no_others() {
    let answerer = ["--set", "run.answerer=openai:gpt-4o-mini"];
    let provider = Provider::start(&["--bad-key", "sk-revoked-0123456789"]);
    let fine = provider.bench().run(["doctor"].iter().chain(&answerer)).expect_code(0);
    assert!(accounts(&fine).contains("ok      account of the answerer: openai"), "{}", fine.stdout);
    assert!(accounts(&fine).contains("3 models"), "{}", fine.stdout);
    assert_eq!(provider.count("requests"), 0, "a list of models costs nothing");
    let paid = provider.bench().run(["doctor", "--paid"].iter().chain(&answerer)).expect_code(0);
    assert!(accounts(&paid).contains("gpt-4o-mini answers"), "{}", paid.stdout);
    assert_eq!(provider.count("requests"), 1);

    let fresh = Bench::new().run(["doctor"]).expect_code(0);
    assert!(accounts(&fresh).contains("-       account of the answerer: openai, not set up"), "{}", fresh.stdout);
    let [dead] = ports::reserve().expect("a port");
    let revoked = at(provider.base_url()).with_env("OPENAI_API_KEY", "sk-revoked-0123456789");
    let root = provider.base_url().trim_end_matches("/v1");
    let keyless = Bench::new().with_env("OPENAI_BASE_URL", "https://models.example.org/v1");
    for (bench, words) in [
        (revoked, "the provider answered 401"),
        (at(&format!("http://127.0.0.1:{dead}/v1")), "cannot be reached"),
        (at(root), "set its base URL to that"),
        (keyless, "needs a key"),
    ] {
        let failed = bench.run(["doctor"].iter().chain(&answerer)).expect_code(4);
        let said = accounts(&failed);
        assert!(said.contains("FAILED  account of the answerer") && said.contains(words), "{words}: {said}");
    }
}
