//! The simulated provider as a process of its own, with the questions that tests have about it.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;

use crate::{
    bench::{Bench, binary},
    http,
    process::mortal,
};

/// The key that runs are given; no output may ever hold it.
pub const KEY: &str = "sk-planted-0123456789abcdef";

/// A running `bench-sim`, and how tests talk about it.
#[derive(Debug)]
pub struct Provider {
    child: Child,
    base_url: String,
}

impl Provider {
    /// Starts one with these flags, on a free port.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(flags: &[&str]) -> Self {
        let counting: &[&str] = if flags.contains(&"--tokens") { &[] } else { &["--tokens", "bytes"] };
        let mut child = mortal(&binary("bench-sim"))
            .args(counting)
            .args(["--seed", "5"])
            .args(flags)
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

    /// Its base URL, as `OPENAI_BASE_URL` wants it.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// A working folder whose OpenAI is this provider.
    #[must_use]
    pub fn bench(&self) -> Bench {
        Bench::new().with_env("OPENAI_BASE_URL", &self.base_url).with_env("OPENAI_API_KEY", KEY)
    }

    /// `submit` of 50 questions with a model as answerer and judge.
    #[must_use]
    pub fn submit<'a>(&self, more: &[&'a str]) -> Vec<&'a str> {
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
    ///
    /// # Panics
    /// When that run does not end well.
    #[must_use]
    pub fn digest(&self, more: &[&str]) -> String {
        let report = self.bench().run(self.submit(more)).expect_code(0).json();
        report["result_digest"].as_str().expect("a digest").to_owned()
    }

    fn place(&self) -> &str {
        self.base_url.trim_start_matches("http://").trim_end_matches("/v1")
    }

    /// The provider's own count of everything.
    ///
    /// # Panics
    /// When it does not answer.
    #[must_use]
    pub fn stats(&self) -> Value {
        http::get(self.place(), "/stats").expect("bench-sim answers").json()
    }

    /// Changes latency, limits or faults of all later requests by a JSON merge patch.
    ///
    /// # Panics
    /// When it refuses the change.
    pub fn control(&self, patch: &Value) {
        let reply = http::request("POST", self.place(), "/control", None, &patch.to_string());
        let reply = reply.expect("bench-sim answers");
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    /// One of its counts.
    ///
    /// # Panics
    /// When there is none of this name.
    #[must_use]
    pub fn count(&self, key: &str) -> u64 {
        self.stats()[key].as_u64().unwrap_or_else(|| panic!("no {key}"))
    }

    /// Dollars by its own count.
    ///
    /// # Panics
    /// When it does not answer.
    #[must_use]
    pub fn paid(&self) -> f64 {
        self.stats()["cost_pico_usd"].as_f64().expect("pico-dollars") / 1e12
    }

    /// Answers to requests that had been answered before: paid twice.
    #[must_use]
    pub fn repeated_requests(&self) -> u64 {
        self.count("repeated_answers")
    }

    /// Waits until so many requests have arrived.
    ///
    /// # Panics
    /// When that takes longer than a minute.
    pub fn wait_for_requests(&self, n: u64) {
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
    ///
    /// # Panics
    /// When none has.
    #[must_use]
    pub fn last_request_at(&self) -> Instant {
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
