//! A real Prometheus, and promtool: scraped pages are read by what operators run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    http, packages,
    process::{Process, mortal},
};

/// Longest wait for Prometheus to come up, and for a query to be as wanted.
const PATIENCE: Duration = Duration::from_secs(60);

/// Path of a program of Debian's package, installed when it is missing.
fn program(name: &str) -> anyhow::Result<PathBuf> {
    let path = Path::new("/usr/bin").join(name);
    if !path.exists() {
        packages::install("prometheus")?;
    }
    Ok(path)
}

/// Runs promtool with these arguments.
///
/// # Errors
/// With what it said, when it finds a fault.
pub fn promtool(arguments: &[&str], folder: &Path) -> anyhow::Result<String> {
    let output = Command::new(program("promtool")?).args(arguments).current_dir(folder).output()?;
    packages::succeeded(&format!("promtool {}", arguments.join(" ")), &output)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A running Prometheus.
#[derive(Debug)]
pub struct Prometheus {
    process: Process,
    place: String,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes these places (`host:port`) every second, and holds these rules.
    ///
    /// # Errors
    /// When it cannot be installed or does not come up.
    pub fn start(targets: &[&str], rules: Option<&Path>) -> anyhow::Result<Self> {
        let program = program("prometheus")?;
        let folder = tempfile::tempdir()?;
        let rules = rules.map(|path| format!("rule_files: ['{}']\n", path.display())).unwrap_or_default();
        let targets: Vec<String> = targets.iter().map(|target| format!("'{target}'")).collect();
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n{rules}scrape_configs:\n  - job_name: bench\n    \
             static_configs: [{{targets: [{}]}}]\n",
            targets.join(", ")
        );
        fs::write(folder.path().join("prometheus.yml"), config)?;
        let place = format!("127.0.0.1:{}", free_port()?);
        let mut command = mortal(&program);
        command
            .current_dir(folder.path())
            .arg("--config.file=prometheus.yml")
            .arg(format!("--web.listen-address={place}"))
            .arg("--storage.tsdb.path=data")
            .stdin(Stdio::null());
        let process = Process::start(command, folder.path(), "prometheus");
        let mut prometheus = Self { process, place, _folder: folder };
        let began = Instant::now();
        while !http::get(&prometheus.place, "/-/ready").is_ok_and(|reply| reply.status == 200) {
            anyhow::ensure!(
                prometheus.process.runs() && began.elapsed() < PATIENCE,
                "prometheus does not come up: {}",
                prometheus.process.stderr()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(prometheus)
    }

    /// The answer of its HTTP API.
    ///
    /// # Errors
    /// When it refuses.
    pub fn api(&self, path: &str) -> anyhow::Result<Value> {
        let reply = http::get(&self.place, path)?;
        anyhow::ensure!(reply.status == 200, "{path}: {} {}", reply.status, reply.body);
        serde_json::from_str::<Value>(&reply.body)?.get("data").cloned().context("no data")
    }

    /// Waits until every target was scraped without a fault.
    ///
    /// # Errors
    /// With what it says of its targets, when that takes too long.
    pub fn wait_for_targets(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let targets = self.api("/api/v1/targets")?;
            let active = targets["activeTargets"].as_array().cloned().unwrap_or_default();
            if !active.is_empty() && active.iter().all(|target| target["health"] == "up") {
                return Ok(());
            }
            anyhow::ensure!(began.elapsed() < PATIENCE, "targets are not up: {targets:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Names of all metrics that it has.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn metric_names(&self) -> anyhow::Result<Vec<String>> {
        let names = self.api("/api/v1/label/__name__/values")?;
        Ok(names.as_array().into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_owned())).collect())
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
