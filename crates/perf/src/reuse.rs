//! How soon a run has its first answer where an earlier one has filled its banks (`--reuse-banks`): against the time to the first
//! answer of that earlier one, over a server that takes its time to store, as those that ask models do.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::{
    measure::{median, run_until},
    scenarios::Lab,
    systems::MemoryServer,
    turnaround,
};

/// The adapter that is asked, and how long its server takes to store a session.
const SYSTEM: &str = "mem0";
const STORES: Duration = Duration::from_millis(300);
/// Most of the first run's time to its first answer.
const TARGET: f64 = 0.05;

/// A run that fills one conversation and one that finds it filled, in each round with a server and a store of their own.
pub(crate) async fn reuse(lab: &Lab) -> anyhow::Result<Value> {
    let (mut filling, mut finding) = (Vec::new(), Vec::new());
    for _ in 0..lab.rounds {
        let server = MemoryServer::slow_to_store(SYSTEM, STORES)?;
        let folder = tempfile::tempdir()?;
        filling.push(seconds_to_the_first_answer(lab, folder.path(), &server.url, &[]).await?);
        finding.push(seconds_to_the_first_answer(lab, folder.path(), &server.url, &["--reuse-banks"]).await?);
    }
    let ratios: Vec<f64> = finding.iter().zip(&filling).map(|(found, filled)| found / filled).collect();
    let ratio = median(ratios.iter().copied());
    Ok(json!({
        "scenario": "reuse",
        "adapter": SYSTEM,
        "stores_ms": STORES.as_millis() as u64,
        "first_answer_seconds": median(finding.iter().copied()),
        "yardstick": {"what": "the run that has filled the banks, from its start to its first answer", "first_answer_seconds": median(filling.iter().copied()), "samples": filling},
        "ratio": ratio,
        "target": TARGET,
        "met": ratio <= TARGET,
        "samples": finding,
    }))
}

/// From the start of the program to the commit of its first answer.
async fn seconds_to_the_first_answer(lab: &Lab, folder: &Path, server: &str, more: &[&str]) -> anyhow::Result<f64> {
    let url = format!("system.url={server}");
    let args = ["--dataset", "locomo-sim", "--set", "sim.conversations=1", "--system", SYSTEM, "--set", &url];
    let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    // a fake server may make a run INVALID, and answers all the same
    run_until(&mut lab.submit(folder, &[&args[..], more].concat()), &[0, 5])?;
    let store = format!("sqlite:{}", folder.join(".bench/bench.db").display());
    let stored = Duration::from_micros(turnaround::first_stored(&store).await?);
    Ok(stored.saturating_sub(began).as_secs_f64())
}
