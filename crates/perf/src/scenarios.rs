//! The scenarios: the real binaries in temporary folders.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::Context;
use serde_json::{Value, json};

use crate::{
    measure::{Sample, median, run},
    yardstick,
};

/// Where things are.
pub(crate) struct Lab {
    pub(crate) binaries: PathBuf,
    pub(crate) datasets_dir: Option<PathBuf>,
    pub(crate) rounds: usize,
}

/// Questions of a full run; real and generated data have the same number.
pub(crate) const QUESTIONS: f64 = 1986.0;

impl Lab {
    pub(crate) fn new(binaries: PathBuf, datasets_dir: Option<PathBuf>, rounds: usize) -> anyhow::Result<Self> {
        for name in ["bench-coord", "bench-sim", "bench-worker"] {
            let path = binaries.join(name);
            anyhow::ensure!(
                path.exists(),
                "{} is missing: `cargo build --release --workspace --bins` builds it",
                path.display()
            );
        }
        // the scenarios run in folders of their own
        let binaries = binaries.canonicalize()?;
        let datasets_dir = datasets_dir.map(|dir| dir.canonicalize()).transpose()?;
        Ok(Self { binaries, datasets_dir, rounds: rounds.max(1) })
    }

    /// The real LoCoMo when it is there, else generated data of its size.
    pub(crate) fn dataset(&self) -> &'static str {
        let real = self.datasets_dir.as_ref().is_some_and(|dir| dir.join("locomo/locomo10.json").exists());
        if real { "locomo" } else { "locomo-sim" }
    }

    /// `bench-coord submit` of a full run in a folder.
    pub(crate) fn submit(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(self.binaries.join("bench-coord"));
        command
            .current_dir(folder)
            .args(["submit", "--preset", "full", "--latency-probe", "off", "--display", "none"])
            .args(args);
        command.envs(self.datasets_dir.iter().map(|dir| ("BENCH_DATASETS_DIR", dir)));
        command
    }

    fn once(&self, args: &[&str], base_url: Option<&str>) -> anyhow::Result<Sample> {
        let folder = tempfile::tempdir()?;
        let mut command = self.submit(folder.path(), args);
        if let Some(base_url) = base_url {
            command.env("OPENAI_BASE_URL", base_url).env("OPENAI_API_KEY", "sk-none");
        }
        run(&mut command)
    }

    /// Without models, with these variables.
    pub(crate) fn once_with(&self, args: &[&str], env: &[(&str, String)]) -> anyhow::Result<Sample> {
        let folder = tempfile::tempdir()?;
        run(self.submit(folder.path(), args).envs(env.iter().map(|(name, value)| (name, value))))
    }

    /// No model at all.
    pub(crate) fn extractive(&self) -> anyhow::Result<Value> {
        let args = ["--dataset", self.dataset()];
        self.once(&args, None)?;
        let samples = (0..self.rounds).map(|_| self.once(&args, None)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(
            json!({"scenario": "extractive", "dataset": self.dataset(), "summary": summary(&samples, QUESTIONS), "samples": samples}),
        )
    }

    /// One answer and one judge call per question, no latency.
    pub(crate) fn zero_latency(&self) -> anyhow::Result<Value> {
        self.with_models("zero-latency", &[])
    }

    /// The same at 200 ms.
    pub(crate) fn latency(&self) -> anyhow::Result<Value> {
        self.with_models("latency-200ms", &["--latency-ms", "200", "--latency-sigma", "0.4"])
    }

    fn with_models(&self, name: &str, flags: &[&str]) -> anyhow::Result<Value> {
        let args = [
            "--dataset",
            self.dataset(),
            "--answerer",
            "openai:gpt-4o-mini",
            "--judge",
            "openai:gpt-4o-mini",
            "--max-cost",
            "1000",
        ];
        let (mut samples, mut bare) = (Vec::new(), Vec::new());
        for round in 0..=self.rounds {
            let sim = Sim::start(&self.binaries, flags)?;
            let sample = self.once(&args, Some(&sim.base_url))?;
            let yardstick = yardstick::bare_client(&sim.base_url, 2 * QUESTIONS as usize)?;
            // the first round warms caches
            if round > 0 {
                samples.push(sample);
                bare.push(yardstick);
            }
        }
        let ratios = samples.iter().zip(&bare).map(|(s, b)| s.wall_seconds / b);
        Ok(json!({
            "scenario": name,
            "dataset": self.dataset(),
            "calls": 2.0 * QUESTIONS,
            "summary": summary(&samples, QUESTIONS),
            "yardstick": {"what": "bare reqwest client, 256 in flight, same number of calls", "wall_seconds": median(bare.iter().copied()), "wall_ratio": median(ratios)},
            "samples": samples,
        }))
    }

    /// Cost per question of 1,000 conversations against 10.
    pub(crate) fn scale(&self) -> anyhow::Result<Value> {
        let small_args = ["--dataset", "locomo-sim"];
        let large_args = ["--dataset", "locomo-sim", "--set", "sim.conversations=1000"];
        self.once(&small_args, None)?;
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds.min(3) {
            small.push(self.once(&small_args, None)?);
            large.push(self.once(&large_args, None)?);
        }
        let ratio =
            |pick: fn(&Sample) -> f64| median(small.iter().zip(&large).map(|(s, l)| (pick(l) / 100.0) / pick(s)));
        Ok(json!({
            "scenario": "scale",
            "per_question_wall_ratio": ratio(|s| s.wall_seconds),
            "per_question_cpu_ratio": ratio(|s| s.cpu_seconds),
            "summary_10": summary(&small, QUESTIONS),
            "summary_1000": summary(&large, 100.0 * QUESTIONS),
        }))
    }
}

fn summary(samples: &[Sample], questions: f64) -> Value {
    let of = |pick: fn(&Sample) -> f64| median(samples.iter().map(pick));
    json!({
        "wall_seconds": of(|s| s.wall_seconds),
        "cpu_ms_per_question": of(|s| s.cpu_seconds) * 1000.0 / questions,
        "peak_mib": of(|s| s.peak_mib),
        "questions_per_second": questions / of(|s| s.wall_seconds),
    })
}

/// A running `bench-sim` in a process of its own.
pub(crate) struct Sim {
    child: Child,
    pub(crate) base_url: String,
}

impl Sim {
    /// Starts it and waits until it listens.
    pub(crate) fn start(binaries: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        // counting by the vocabulary costs the simulator more than the program under test
        let counting: &[&str] = if flags.contains(&"--tokens") { &[] } else { &["--tokens", "bytes"] };
        let mut child = Command::new(binaries.join("bench-sim"))
            .args(counting)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("bench-sim cannot be started")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("is piped")?).read_line(&mut line)?;
        let ready: Value = serde_json::from_str(&line).context("bench-sim says where it listens")?;
        let base_url = ready["listening"].as_str().context("a URL")?.to_owned();
        Ok(Self { child, base_url })
    }

    /// What it has seen.
    pub(crate) async fn stats(&self) -> anyhow::Result<Value> {
        let url = self.base_url.replace("/v1", "/stats");
        Ok(reqwest::get(url).await?.error_for_status()?.json().await?)
    }

    /// Changes its limits, latency or faults by a JSON merge patch.
    pub(crate) async fn control(&self, patch: &Value) -> anyhow::Result<()> {
        let url = self.base_url.replace("/v1", "/control");
        reqwest::Client::new().post(url).body(patch.to_string()).send().await?.error_for_status()?;
        Ok(())
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
