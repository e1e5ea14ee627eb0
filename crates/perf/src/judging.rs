//! Votes of several calls: an answer that is graded line by line, one call each, must go as fast as answers with one call each.

use std::path::Path;

use anyhow::{Context, ensure};
use bench_testkit::beam;
use serde_json::{Value, json};

use crate::{
    measure::{median, run_until},
    scenarios::{Lab, Sim},
};

/// The least share of the yardstick's calls a second.
const TARGET: f64 = 0.9;
const RUBRIC: [&str; 2] = ["--rubric", "judge-lines"];

/// Calls of judges a second, by the provider's clock, of a run of BEAM's shape and of as many votes on LoCoMo, in turns.
pub(crate) async fn judging(lab: &Lab) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    beam::write(folder.path(), &beam::published_shape())?;
    let path = folder.path().to_str().context("a path")?;
    let lines = ["--dataset", "beam", "--dataset-path", path, "--allow-modified-dataset"];
    let votes = beam::LINES.to_string();
    let votes = ["--dataset", "locomo-sim", "--limit", &votes];
    let (mut by_lines, mut by_votes) = (Vec::new(), Vec::new());
    for round in 0..=lab.rounds {
        let of_lines = one(lab, &lines, &RUBRIC).await?;
        let of_votes = one(lab, &votes, &[]).await?;
        // the first round warms caches
        if round > 0 {
            by_lines.push(of_lines);
            by_votes.push(of_votes);
        }
    }
    let ratio = median(by_lines.iter().zip(&by_votes).map(|(lines, votes)| lines / votes));
    Ok(json!({
        "scenario": "judging",
        "questions": beam::QUESTIONS,
        "calls": beam::LINES,
        "latency_ms": 200,
        "calls_per_second": median(by_lines.iter().copied()),
        "yardstick": {"what": "as many votes of one call on locomo-sim", "calls_per_second": median(by_votes.iter().copied())},
        "ratio": ratio,
        "target": TARGET,
        "met": ratio >= TARGET,
        "build": if cfg!(debug_assertions) { "debug" } else { "release" },
        "samples": {"lines": by_lines, "votes": by_votes},
    }))
}

/// Calls a second of judging a finished run again.
async fn one(lab: &Lab, dataset: &[&str], how: &[&str]) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    let sim = Sim::start(&lab.binaries, &["--latency-ms", "200", "--latency-sigma", "0.4"])?;
    // graders by lot, and short chats, give what no verdict stands on
    run_until(lab.submit(folder.path(), dataset).args(["--run-id", "answered"]), &[0, 5])?;
    rejudge(lab, folder.path(), &sim, how)?;
    let stats = sim.stats().await?;
    let count = |key: &str| stats[key].as_u64().with_context(|| format!("bench-sim counts {key}"));
    let calls = count("requests")?;
    ensure!(calls == beam::LINES as u64, "{calls} calls were made, not {}", beam::LINES);
    // from the first to the last request, and the time of its reply
    let seconds = (count("last_request_ms")? - count("first_request_ms")? + 200) as f64 / 1e3;
    Ok(calls as f64 / seconds)
}

fn rejudge(lab: &Lab, folder: &Path, sim: &Sim, how: &[&str]) -> anyhow::Result<()> {
    let mut command = std::process::Command::new(lab.binaries.join("bench-coord"));
    command
        .current_dir(folder)
        .args(["rejudge", "answered", "--judge", "openai:gpt-4o-mini", "--max-cost", "1000", "--display", "none"])
        .args(how)
        .env("OPENAI_BASE_URL", &sim.base_url)
        .env("OPENAI_API_KEY", "sk-none");
    run_until(&mut command, &[0, 5]).map(drop)
}
