//! `bench-coord meter` as it is deployed: beside a coordinator, with PostgreSQL, for a run that is worked on.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::{Way, asking::Door};
use crate::{
    cluster::{Fleet, Services, Workers},
    measure::first_line,
    systems::MemoryServer,
};

pub(super) const RUN: &str = "metered";
/// A system that runs elsewhere, and the variable that says where.
const SYSTEM: &str = "mem0";
const WHERE: &str = "MEM0_URL";
const SECRET: (&str, &str) = ("BENCH_METER_SECRET", "0123456789abcdef0123456789abcdef");
/// How `submit --detach` ends: the run goes on without it.
const LEFT: i32 = 3;
/// Longest wait for a run to be planned.
const PLANNED: Duration = Duration::from_secs(60);

/// A fleet with a run of a memory system that runs elsewhere, and the meter for it.
pub(super) struct Role<'s> {
    meter: Child,
    pub(super) door: Door,
    _fleet: Fleet<'s>,
    _system: MemoryServer,
}

impl<'s> Role<'s> {
    /// With a run that nobody works on: it waits as long as it is asked about.
    pub(super) async fn start(services: &'s Services, provider: &str) -> anyhow::Result<Self> {
        let site = Site::start(services, provider, 0).await?;
        let args = ["--limit", "10", "--worker-timeout", "86400", "--detach"];
        let output = site.submit(&args).stderr(Stdio::piped()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(LEFT), "submit failed: {}", said.trim());
        site.metered().await
    }

    pub(super) fn asked(&self) -> Way<'_> {
        Way { door: &self.door, pid: self.meter.id() }
    }
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        let _ = self.meter.kill();
        let _ = self.meter.wait();
    }
}

/// A fleet that knows a memory system elsewhere, before a run.
pub(super) struct Site<'s> {
    services: &'s Services,
    fleet: Fleet<'s>,
    system: MemoryServer,
    provider: String,
}

impl<'s> Site<'s> {
    pub(super) async fn start(services: &'s Services, provider: &str, workers: usize) -> anyhow::Result<Self> {
        let system = MemoryServer::start(SYSTEM, Duration::ZERO)?;
        let workers = Workers { count: workers, slots: 64, provider: Some(provider.to_owned()) };
        let more = [(WHERE, system.url.as_str()), SECRET];
        let fleet = Fleet::start_with(services, &workers, &more).await?;
        Ok(Self { services, fleet, system, provider: provider.to_owned() })
    }

    /// `bench-coord submit` of the run.
    pub(super) fn submit(&self, more: &[&str]) -> Command {
        let args = ["--dataset", "locomo-sim", "--system", SYSTEM, "--meter", "--max-cost", "1000", "--run-id", RUN];
        let mut command = self.fleet.submit(&[&args[..], more].concat());
        command.env(WHERE, &self.system.url).env(SECRET.0, SECRET.1);
        command
    }

    fn command(&self) -> Command {
        let mut command = self.services.command("bench-coord", &self.fleet.place);
        command.env(SECRET.0, SECRET.1);
        command.env("OPENAI_BASE_URL", &self.provider).env("OPENAI_API_KEY", "sk-none");
        command
    }

    /// Starts the meter, and waits until it knows the run.
    pub(super) async fn metered(self) -> anyhow::Result<Role<'s>> {
        let mut url = self.command();
        url.args(["meter", "url", RUN, "--json", "--set", "meter.url=http://meter"]);
        let mut serve = self.command();
        serve.args(["meter", "--listen", "127.0.0.1:0"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut meter = serve.spawn().context("the meter cannot be started")?;
        let mut said = BufReader::new(meter.stderr.take().context("is piped")?).lines();
        let address = said.find_map(|line| Some(line.ok()?.split_once("memory systems at ")?.1.trim().to_owned()));
        let address = address.context("the meter does not say where it listens")?;
        // what it says later is read as well, so that its pipe is never full
        std::thread::spawn(move || said.for_each(drop));
        let mut role = Role {
            meter,
            door: Door { base_url: format!("{address}/m/{RUN}/v1"), key: String::new() },
            _fleet: self.fleet,
            _system: self.system,
        };
        let by = tokio::time::Instant::now() + PLANNED;
        role.door.key = loop {
            let told = url.output()?;
            if told.status.success() {
                let told: Value = serde_json::from_slice(&told.stdout)?;
                break told["key"].as_str().context("a key")?.to_owned();
            }
            ensure!(tokio::time::Instant::now() < by, "the run is not there: {}", first_line(&told.stderr));
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        Ok(role)
    }
}
