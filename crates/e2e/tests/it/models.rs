//! Runs with a model as answerer and judge, against the simulated provider: faults, limits, money, keys.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant, SystemTime},
};

use bench_testkit::bench::{Bench, binary};
use serde_json::Value;

/// A running `bench-sim`, and how tests talk about it.
pub(crate) struct Provider {
    child: Child,
    base_url: String,
}

impl Provider {
    /// Starts one with these flags, on a free port.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut child = Command::new(binary("bench-sim"))
            .args(["--tokens", "bytes", "--seed", "5"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bench-sim starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("is piped"))
            .read_line(&mut line)
            .expect("bench-sim says where it listens");
        let ready: Value = serde_json::from_str(&line).expect("one line of JSON");
        Self { child, base_url: ready["listening"].as_str().expect("a URL").to_owned() }
    }

    /// A working folder whose OpenAI is this provider.
    pub(crate) fn bench(&self) -> Bench {
        Bench::new()
            .with_env("OPENAI_BASE_URL", &self.base_url)
            .with_env("OPENAI_API_KEY", "sk-planted-0123456789abcdef")
    }

    /// `submit` of 50 questions with a model as answerer and judge.
    pub(crate) fn submit<'a>(&self, more: &[&'a str]) -> Vec<&'a str> {
        let fixed = [
            "submit",
            "--dataset",
            "locomo-sim",
            "--preset",
            "quick",
            "--answerer",
            "openai:gpt-4o-mini",
            "--judge",
            "openai:gpt-4o-mini",
            "--json",
        ];
        fixed.iter().chain(more).copied().collect()
    }

    /// The digest of an undisturbed run against this provider.
    pub(crate) fn digest(&self, more: &[&str]) -> String {
        let report = self.bench().run(self.submit(more)).expect_code(0).json();
        report["result_digest"].as_str().expect("a digest").to_owned()
    }

    /// The provider's own count of everything.
    pub(crate) fn stats(&self) -> Value {
        let host = self.base_url.trim_start_matches("http://").trim_end_matches("/v1");
        let mut stream = TcpStream::connect(host).expect("bench-sim listens");
        write!(stream, "GET /stats HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .expect("the request is sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("the reply is text");
        let body = reply.split_once("\r\n\r\n").expect("a body").1;
        serde_json::from_str(body).expect("statistics are JSON")
    }

    fn count(&self, key: &str) -> u64 {
        self.stats()[key].as_u64().unwrap_or_else(|| panic!("no {key}"))
    }

    /// Answers to requests that had been answered before: paid twice.
    pub(crate) fn repeated_requests(&self) -> u64 {
        self.count("repeated_answers")
    }

    /// Waits until so many requests have arrived.
    pub(crate) fn wait_for_requests(&self, n: u64) {
        let began = Instant::now();
        while self.count("requests") < n {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "fewer than {n} requests after a minute: {}",
                self.stats()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// When the last request arrived, on this process's clock.
    pub(crate) fn last_request_at(&self) -> Instant {
        let ms = self.count("last_request_ms");
        let ago =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + Duration::from_millis(ms)).unwrap_or_default();
        Instant::now().checked_sub(ago).expect("the test began before its requests")
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn faults_never_change_a_digest() {
    let expected = Provider::start(&[]).digest(&[]);
    let faulty = Provider::start(&[
        "--fault-500",
        "0.05",
        "--fault-503",
        "0.05",
        "--fault-429",
        "0.05",
        "--fault-cut",
        "0.05",
        "--fault-garbage",
        "0.05",
        "--fault-malformed-judge",
        "0.1",
    ]);
    let bench = faulty.bench();
    let fast = ["--set", "backoff.initial_interval=20ms", "--set", "backoff.max_interval=100ms"];
    let report = bench.run(faulty.submit(&fast)).expect_code(0).json();
    assert_eq!(report["result_digest"].as_str(), Some(expected.as_str()));
    assert_eq!(report["outcomes"]["coverage"], 1.0);
    assert!(report["total"]["retries"].as_u64() > Some(5), "the faults were really met: {}", report["total"]);
}

#[test]
fn a_provider_that_stays_broken_is_an_infrastructure_error_and_never_a_wrong_answer() {
    let broken = Provider::start(&["--fault-500", "1", "--permanent-faults"]);
    let bench = broken.bench();
    let fast = ["--retries", "1", "--set", "backoff.initial_interval=5ms", "--run-id", "down"];
    let report = bench.run(broken.submit(&fast)).expect_code(5).json();
    assert_eq!(report["outcomes"]["infra_error"], 50);
    assert_eq!(report["outcomes"]["scored"], 0);
    assert_eq!(report["headline"]["value"], Value::Null, "nothing was scored: no score may be invented");
    assert_eq!(report["run"]["verdict"], "INVALID");

    let healthy = Provider::start(&[]);
    let expected = healthy.digest(&[]);
    let mended = bench
        .command(["retry", "down", "--errors", "--json"])
        .env("OPENAI_BASE_URL", &healthy.base_url)
        .spawn()
        .expect("starts");
    let mended = bench_testkit::bench::wait(mended).expect_code(0).json();
    assert_eq!(mended["result_digest"].as_str(), Some(expected.as_str()));
}

#[test]
fn the_providers_count_of_tokens_and_dollars_is_ours() {
    let provider = Provider::start(&["--price", "gpt-4o-mini=0.15/0.60"]);
    let report = provider.bench().run(provider.submit(&[])).expect_code(0).json();
    let stats = provider.stats();
    assert_eq!(report["total"]["calls"], 100);
    assert_eq!(report["total"]["prompt_tokens"], stats["prompt_tokens"]);
    assert_eq!(report["total"]["completion_tokens"], stats["completion_tokens"]);
    let ours = report["total"]["usd"].as_f64().expect("dollars");
    let theirs = stats["cost_pico_usd"].as_f64().expect("pico-dollars") / 1e12;
    assert!((ours - theirs).abs() < 1e-12, "{ours} against {theirs}");
    assert_eq!(report["headline"]["metric"], "judge");
    assert_eq!(report["spec"]["judge"], "openai:gpt-4o-mini");
}

#[test]
fn a_spent_budget_pauses_and_a_higher_cap_goes_on() {
    let provider = Provider::start(&["--latency-ms", "5", "--price", "gpt-4o-mini=0.15/0.60"]);
    let bench = provider.bench();
    let paused = bench.run(provider.submit(&["--run-id", "capped", "--max-cost", "0.003"])).expect_code(3);
    assert!(paused.stderr.contains("--max-cost"), "{}", paused.stderr);
    let spent = provider.stats()["cost_pico_usd"].as_f64().expect("pico-dollars") / 1e12;
    assert!(spent <= 0.003, "${spent} is above the cap");
    let status = bench.run(["status", "capped", "--json"]).expect_code(0).json();
    assert_eq!(status["status"], "paused");
    let resumed = bench.run(["resume", "capped", "--max-cost", "1", "--json"]).expect_code(0).json();
    assert_eq!(resumed["outcomes"]["coverage"], 1.0);
    assert_eq!(provider.repeated_requests(), 0, "nothing was paid twice");
}

#[test]
fn quota_and_bad_keys_stop_the_run_with_the_providers_words() {
    for (flags, word) in
        [(&["--quota-after", "20"][..], "quota"), (&["--bad-key", "sk-planted-0123456789abcdef"][..], "key")]
    {
        let provider = Provider::start(flags);
        let bench = provider.bench();
        let stopped = bench.run(provider.submit(&["--run-id", "stopped", "--concurrency", "4"])).expect_code(3);
        assert!(stopped.stderr.to_lowercase().contains(word), "{}", stopped.stderr);
        assert!(stopped.stderr.contains("bench-coord resume stopped"), "{}", stopped.stderr);
        assert!(provider.count("requests") < 60, "calls went on after the account was refused");
    }
}

#[test]
fn a_key_is_written_nowhere() {
    let provider = Provider::start(&["--fault-500", "0.1"]);
    let bench = provider.bench();
    let done = bench.run(provider.submit(&["-vv", "--set", "backoff.initial_interval=5ms"])).expect_code(0);
    let mut places =
        vec![("stdout".to_owned(), done.stdout.into_bytes()), ("stderr".to_owned(), done.stderr.into_bytes())];
    let mut folders = vec![bench.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                places.push((path.display().to_string(), std::fs::read(&path).expect("readable")));
            }
        }
    }
    assert!(places.len() > 4, "store and reports are among the places");
    let key = b"sk-planted-0123456789abcdef";
    for (place, bytes) in places {
        assert!(!bytes.windows(key.len()).any(|w| w == key), "the key stands in {place}");
    }
}

#[test]
fn several_votes_are_independent_draws_and_their_median_counts() {
    let provider = Provider::start(&[]);
    let bench = provider.bench();
    let report = bench.run(provider.submit(&["--votes", "3", "--run-id", "voted"])).expect_code(0).json();
    assert_eq!(report["total"]["calls"], 50 + 150);
    let questions = bench.questions("voted");
    assert!(questions.iter().all(|q| q["judgements"].as_array().map(Vec::len) == Some(3)));
    let split = questions.iter().filter(|q| {
        let verdicts: std::collections::BTreeSet<&str> =
            q["judgements"].as_array().into_iter().flatten().filter_map(|j| j["verdict"].as_str()).collect();
        verdicts.len() > 1
    });
    assert!(split.count() > 0, "three draws of a judge that accepts 70 % do not always agree");
}
