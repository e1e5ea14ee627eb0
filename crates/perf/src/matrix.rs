//! A matrix of four cells against the same four runs alone, at a provider's full allowance: it must ask for no more.
//! How long both sides take is shown beside that, and has no target.

use std::{path::Path, process::Command};

use anyhow::Context;
use serde_json::{Value, json};

use crate::{
    cluster::{LATENCY_MS, RPM, Used},
    measure::{median, run_until},
    scenarios::{Lab, Sim},
};

/// Most calls of the matrix for each call of its cells alone.
const TARGET: f64 = 1.02;
/// What the cells differ in.
const SYSTEMS: [&str; 2] = ["bm25", "random"];
const CUT_OFFS: [&str; 2] = ["5", "10"];
/// What they have in common, beside the pace.
const COMMON: [&str; 12] = [
    "--dataset",
    "locomo-sim",
    "--preset",
    "full",
    "--set",
    "sim.conversations=1",
    "--answerer",
    "openai:gpt-4o-mini",
    "--judge",
    "openai:gpt-4o-mini",
    "--latency-probe",
    "off",
];

/// What one side took.
struct Took {
    calls: f64,
    refused: f64,
    wall_seconds: f64,
    allowance_used: f64,
}

/// Both sides in turns, each on a provider of its own with the same allowance.
pub(crate) async fn matrix(lab: &Lab) -> anyhow::Result<Value> {
    let (mut together, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..lab.rounds {
        together.push(one_side(lab, as_matrix).await?);
        alone.push(one_side(lab, one_by_one).await?);
    }
    let ratios = |figure: fn(&Took) -> f64| median(together.iter().zip(&alone).map(|(a, b)| figure(a) / figure(b)));
    let ratio = ratios(|took| took.calls);
    Ok(json!({
        "scenario": "matrix",
        "cells": SYSTEMS.len() * CUT_OFFS.len(),
        "requests_per_minute": RPM,
        "latency_ms": LATENCY_MS,
        "build": if cfg!(debug_assertions) { "debug" } else { "release" },
        "matrix": side(&together),
        "yardstick": {"what": "the four runs alone, one after the other, on a provider with the same allowance", "took": side(&alone)},
        "call_ratio": ratio,
        "wall_ratio": ratios(|took| took.wall_seconds),
        "target": TARGET,
        "met": ratio <= TARGET,
    }))
}

fn side(rounds: &[Took]) -> Value {
    let of = |figure: fn(&Took) -> f64| median(rounds.iter().map(figure));
    json!({
        "calls": of(|took| took.calls),
        "refused": of(|took| took.refused),
        "wall_seconds": of(|took| took.wall_seconds),
        "allowance_used": of(|took| took.allowance_used),
    })
}

/// One side, and what its provider counted: refused requests are calls too.
async fn one_side(lab: &Lab, asks: fn(&Lab, &Sim) -> anyhow::Result<f64>) -> anyhow::Result<Took> {
    let sim = Sim::start(&lab.binaries, &["--latency-ms", LATENCY_MS, "--rpm", &RPM.to_string()])?;
    let wall_seconds = asks(lab, &sim)?;
    let stats = sim.stats().await?;
    let count = |key: &str| stats[key].as_f64().with_context(|| format!("bench-sim counts {key}"));
    let (allowance_used, _) = Used::of_run("requests", &stats)?.parts();
    Ok(Took { calls: count("requests")?, refused: count("rate_limited")?, wall_seconds, allowance_used })
}

fn as_matrix(lab: &Lab, sim: &Sim) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    let quoted = |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    let rpm = RPM.to_string();
    let flags = quoted(&[&COMMON[..], &["--max-rpm", &rpm]].concat());
    let (systems, cut_offs) = (quoted(&SYSTEMS), CUT_OFFS.join(", "));
    let text = format!("flags = [{flags}]\n[axes]\nsystem = [{systems}]\ntop-k = [{cut_offs}]\n");
    std::fs::write(folder.path().join("cells.toml"), text)?;
    seconds(lab, folder.path(), sim, &["matrix", "cells.toml"])
}

fn one_by_one(lab: &Lab, sim: &Sim) -> anyhow::Result<f64> {
    let (mut all, rpm) = (0.0, RPM.to_string());
    for (system, cut_off) in SYSTEMS.iter().flat_map(|system| CUT_OFFS.map(|cut_off| (system, cut_off))) {
        // a store of its own: nothing is answered from what another cell has asked
        let folder = tempfile::tempdir()?;
        let own = ["submit", "--max-rpm", &rpm, "--system", system, "--top-k", cut_off];
        all += seconds(lab, folder.path(), sim, &[&own[..], &COMMON].concat())?;
    }
    Ok(all)
}

/// Wall time of a command. A run whose verdict is INVALID has made its calls all the same.
fn seconds(lab: &Lab, folder: &Path, sim: &Sim, args: &[&str]) -> anyhow::Result<f64> {
    let mut command = Command::new(lab.binaries.join("bench-coord"));
    command
        .current_dir(folder)
        .args(args)
        .args(["--max-cost", "1000", "--display", "none"])
        .env("OPENAI_BASE_URL", &sim.base_url)
        .env("OPENAI_API_KEY", "sk-none");
    Ok(run_until(&mut command, &[0, 5])?.wall_seconds)
}
