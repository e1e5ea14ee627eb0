//! The simulated provider as a process of its own, with the questions that tests have about it.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;

use crate::{
    bench::{Bench, binary, submit_sim},
    http, ports,
    process::{mortal, wait_until},
};

/// The key that runs are given; no output may ever hold it.
pub const KEY: &str = "sk-planted-0123456789abcdef";

/// Faults that every client gets over by trying again.
pub const PASSING_FAULTS: [&str; 6] =
    ["--fault-cut", "0.05", "--fault-garbage", "0.05", "--fault-malformed-judge", "0.1"];

/// A running `bench-sim`, and how tests talk about it.
#[derive(Debug)]
pub struct Provider {
    child: Child,
    /// Where it listens, and with which flags, so that it can be started again.
    port: u16,
    flags: Vec<String>,
    base_url: String,
    admin_url: String,
}

impl Provider {
    /// Starts one with these flags, on a port that stays its own while it refuses connections.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(flags: &[&str]) -> Self {
        let counting: &[&str] = if flags.contains(&"--tokens") { &[] } else { &["--tokens", "bytes"] };
        let seed: &[&str] = if flags.contains(&"--seed") { &[] } else { &["--seed", "5"] };
        let [port] = ports::reserve().expect("a port");
        let flags: Vec<String> = [counting, seed, flags].concat().into_iter().map(str::to_owned).collect();
        let (child, [base_url, admin_url]) = Self::spawn(port, &flags);
        Self { child, port, flags, base_url, admin_url }
    }

    /// Kills it, and starts it again at the same address: what it has counted is gone, but for the file of `--ledger`.
    ///
    /// # Panics
    /// When it does not come up again.
    pub fn kill_and_start_again(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        (self.child, [self.base_url, self.admin_url]) = Self::spawn(self.port, &self.flags);
    }

    /// The process, and the URLs that it says: for clients, and for questions about itself.
    fn spawn(port: u16, flags: &[String]) -> (Child, [String; 2]) {
        let mut child = mortal(&binary("bench-sim"))
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .expect("bench-sim starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("is piped"))
            .read_line(&mut line)
            .expect("bench-sim says where it listens");
        let ready: Value = serde_json::from_str(&line).expect("one line of JSON");
        let url = |name: &str| ready[name].as_str().expect("a URL").to_owned();
        (child, ["listening", "admin"].map(url))
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
        let models = ["--preset", "quick", "--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-mini"];
        submit_sim(&[&models[..], more].concat())
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

    /// Where it answers questions about itself, also while it refuses connections.
    fn place(&self) -> &str {
        self.admin_url.trim_start_matches("http://")
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> http::Reply {
        let reply = http::request(method, self.place(), path, None, body).expect("bench-sim answers");
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply
    }

    /// The provider's own count of everything.
    ///
    /// # Panics
    /// When it does not answer.
    #[must_use]
    pub fn stats(&self) -> Value {
        self.ask("GET", "/stats", "").json()
    }

    /// Changes keys, latency, limits or faults of all later requests by a JSON merge patch.
    ///
    /// # Panics
    /// When it refuses the change.
    pub fn control(&self, patch: &Value) {
        self.ask("POST", "/control", &patch.to_string());
    }

    /// Sets an outage, such as `{"kind": "status", "status": 503, "model": "m", "for_ms": 3000}` (`bench-sim --help` says what
    /// there is); the answer is its number.
    ///
    /// # Panics
    /// When it is refused.
    pub fn outage(&self, outage: &Value) -> u64 {
        self.ask("POST", "/outages", &outage.to_string()).json()["id"].as_u64().expect("a number")
    }

    /// Ends all outages.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn end_outages(&self) {
        self.ask("DELETE", "/outages", "");
    }

    /// What was seen during an outage (`state`, `requests`, `distinct_requests`, `by_model`, `per_100ms`) and after it
    /// (`after.requests`, `.distinct_requests`, `.turned_away`, `.max_in_flight`, `.max_per_100ms`, `.per_100ms`). Those of
    /// `--outage` and `--poison` have the first numbers, from 1.
    ///
    /// # Panics
    /// When there is none of this number.
    #[must_use]
    pub fn seen_of(&self, outage: u64) -> Value {
        let all = self.ask("GET", "/outages", "").json();
        let found = all.as_array().expect("a list").iter().find(|one| one["id"].as_u64() == Some(outage));
        found.unwrap_or_else(|| panic!("no outage {outage}: {all}")).clone()
    }

    /// Waits until an outage is over.
    ///
    /// # Panics
    /// When it lasts longer than `patience`.
    pub fn wait_for_end_of(&self, outage: u64, patience: Duration) {
        wait_until("the end of the outage", patience, || self.seen_of(outage)["state"] == "over");
    }

    /// One of the counts of a model: `requests`, `distinct_requests`, `max_in_flight`, `paid_replies`, …
    ///
    /// # Panics
    /// When there is none of this name.
    #[must_use]
    pub fn count_of_model(&self, model: &str, key: &str) -> u64 {
        match &self.stats()["by_model"][model] {
            Value::Null => 0,
            counts => counts[key].as_u64().unwrap_or_else(|| panic!("no {key}")),
        }
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
