//! A coordinator and workers in a place, started as processes and stopped with their owner.

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Stdio},
    time::Duration,
};

use anyhow::Context;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    cpu::{CpuTimes, peak_mib, round},
    ledger::Ledger,
    services::{ServiceUrls, Services},
};

/// Longest wait for a fleet to be there.
const START: Duration = Duration::from_secs(30);

/// How the workers of a fleet are started.
#[derive(Debug, Clone)]
pub(crate) struct Workers {
    pub(crate) count: usize,
    pub(crate) slots: u32,
    /// Base URL of the provider, when models are called.
    pub(crate) provider: Option<String>,
}

/// Running processes.
pub(crate) struct Fleet<'s> {
    services: &'s Services,
    pub(crate) place: ServiceUrls,
    folder: TempDir,
    coordinator: Child,
    workers: Vec<Child>,
    started: CpuTimes,
}

impl<'s> Fleet<'s> {
    /// Starts a coordinator and workers in a fresh place, and waits until all are at work.
    pub(crate) async fn start(services: &'s Services, workers: &Workers) -> anyhow::Result<Self> {
        Self::start_with(services, workers, &[]).await
    }

    /// The same with these variables for all of them.
    pub(crate) async fn start_with(
        services: &'s Services,
        workers: &Workers,
        more: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let place = services.place()?;
        let folder = tempfile::tempdir()?;
        let log = |name: &str| File::create(folder.path().join(name));
        let mut serve = services.command("bench-coord", &place);
        serve.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(folder.path()).envs(more.iter().copied());
        serve.stdout(Stdio::null()).stderr(log("serve.log")?);
        let coordinator = serve.spawn().context("bench-coord serve cannot be started")?;
        let mut fleet =
            Self { services, place, folder, coordinator, workers: Vec::new(), started: CpuTimes::default() };
        for number in 0..workers.count {
            let mut work = services.command("bench-worker", &fleet.place);
            work.args(["--concurrency", &workers.slots.to_string()]).current_dir(fleet.folder.path());
            work.envs(more.iter().copied());
            work.envs(workers.provider.iter().map(|url| ("OPENAI_BASE_URL", url)));
            work.envs(workers.provider.iter().map(|_| ("OPENAI_API_KEY", "sk-none")));
            let log = File::create(fleet.folder.path().join(format!("worker{number}.log")))?;
            let work = work.stdout(Stdio::null()).stderr(log).spawn();
            fleet.workers.push(work.context("bench-worker cannot be started")?);
        }
        let mut ledger = fleet.ledger().await?;
        let arrived = tokio::time::timeout(START, ledger.wait_for_fleet(workers.count)).await;
        arrived.map_err(|_| anyhow::anyhow!("the fleet did not come up: {}", fleet.last_words()))??;
        fleet.started = fleet.cpu_times()?;
        Ok(fleet)
    }

    /// A view of what the fleet has stored.
    pub(crate) async fn ledger(&self) -> anyhow::Result<Ledger> {
        Ledger::open(&self.place.store).await
    }

    /// `bench-coord submit` in the fleet's place.
    pub(crate) fn submit(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.services.command("bench-coord", &self.place);
        command
            .current_dir(self.folder.path())
            .args(["submit", "--preset", "full", "--latency-probe", "off", "--display", "none"])
            .args(args);
        let log = File::create(self.folder.path().join("submit.log"));
        command.stdout(Stdio::null()).stderr(log.map_or_else(|_| Stdio::null(), Stdio::from));
        command
    }

    fn cpu_times(&self) -> anyhow::Result<CpuTimes> {
        let mut processes = self.services.processes()?;
        processes.push(("coordinator", self.coordinator.id()));
        processes.extend(self.workers.iter().map(|worker| ("workers", worker.id())));
        Ok(CpuTimes::read(&processes))
    }

    /// Milliseconds of CPU per item since the fleet's start.
    pub(crate) fn cpu_ms_per_item(&self, items: f64) -> anyhow::Result<Value> {
        Ok(self.cpu_times()?.per_item_since(&self.started, items))
    }

    /// Peak memory of the coordinator and of the largest worker.
    pub(crate) fn peaks_mib(&self) -> Value {
        let worker = self.workers.iter().map(|worker| peak_mib(worker.id())).fold(0.0, f64::max);
        json!({"coordinator": round(peak_mib(self.coordinator.id())), "worker": round(worker)})
    }

    /// The ends of all logs, for messages.
    pub(crate) fn last_words(&self) -> String {
        let files: Vec<PathBuf> =
            std::fs::read_dir(self.folder.path()).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        let logs = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "log"));
        let last = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(3).collect();
            format!("{}: {}", file.file_name().unwrap_or_default().to_string_lossy(), lines.join(" | "))
        };
        logs.map(last).collect::<Vec<_>>().join("; ")
    }
}

impl Drop for Fleet<'_> {
    fn drop(&mut self) {
        for process in self.workers.iter_mut().chain([&mut self.coordinator]) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
