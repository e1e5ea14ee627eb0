//! A matrix of four cells against the same four runs alone, at a provider's full allowance: it must ask for no more.
//! How long both sides take is shown beside that, and has no target.
//!
//! The allowance decides how long it takes: 4 × 199 questions with two calls each at 50 calls a second are 32 s a side, and what the
//! programs need to start and to end. Both sides go at the same time, each on a provider of its own, for calls are counted and a
//! machine that works a twentieth of the time is no matter. There are as many rounds as are over in `LONGEST`.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Context;
use serde_json::{Value, json};

use crate::{
    cluster::{LATENCY_MS, RPM, Used},
    measure::{median, run_within},
    scenarios::{Lab, Sim},
};

/// Most calls of the matrix for each call of its cells alone.
const TARGET: f64 = 1.02;
/// No further round is begun that would end after this time, if it took as long as those before.
const LONGEST: Duration = Duration::from_secs(90);
/// What has not ended by then hangs.
const HANGS: Duration = Duration::from_secs(120);
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

/// Where a side asks, and until when.
struct Place {
    binaries: PathBuf,
    base_url: String,
    until: Instant,
}

/// Both sides beside each other, each on a provider of its own with the same allowance.
pub(crate) async fn matrix(lab: &Lab) -> anyhow::Result<Value> {
    let began = Instant::now();
    let (mut together, mut alone) = (Vec::new(), Vec::new());
    for round in 1..=lab.rounds {
        let until = began + HANGS;
        let (of_matrix, of_cells) = tokio::join!(one_side(lab, until, as_matrix), one_side(lab, until, one_by_one));
        let (of_matrix, of_cells) = (of_matrix.context("the matrix")?, of_cells.context("the cells alone")?);
        eprintln!(
            "round {round}, {:.0} s: {} calls as a matrix in {:.1} s, {} alone in {:.1} s",
            began.elapsed().as_secs_f64(),
            of_matrix.calls,
            of_matrix.wall_seconds,
            of_cells.calls,
            of_cells.wall_seconds
        );
        together.push(of_matrix);
        alone.push(of_cells);
        if !has_time_for_another(began.elapsed(), round) {
            break;
        }
    }
    let ratios = |figure: fn(&Took) -> f64| median(together.iter().zip(&alone).map(|(a, b)| figure(a) / figure(b)));
    let ratio = ratios(|took| took.calls);
    Ok(json!({
        "scenario": "matrix",
        "rounds": together.len(),
        "seconds": began.elapsed().as_secs_f64(),
        "cells": SYSTEMS.len() * CUT_OFFS.len(),
        "requests_per_minute": RPM,
        "latency_ms": LATENCY_MS,
        "build": if cfg!(debug_assertions) { "debug" } else { "release" },
        "matrix": side(&together),
        "yardstick": {
            "what": "the four runs alone, one after the other, at the same time on another provider with the same allowance",
            "took": side(&alone),
        },
        "call_ratio": ratio,
        "wall_ratio": ratios(|took| took.wall_seconds),
        "target": TARGET,
        "met": ratio <= TARGET,
        "samples": {"matrix": calls(&together), "alone": calls(&alone)},
    }))
}

/// Whether one more round like the `rounds` before it ends in time.
fn has_time_for_another(elapsed: Duration, rounds: usize) -> bool {
    elapsed + elapsed.div_f64(rounds as f64) <= LONGEST
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

fn calls(rounds: &[Took]) -> Vec<f64> {
    rounds.iter().map(|took| took.calls).collect()
}

/// One side, and what its provider counted: refused requests are calls too.
async fn one_side(lab: &Lab, until: Instant, asks: fn(&Place) -> anyhow::Result<f64>) -> anyhow::Result<Took> {
    let sim = Sim::start(&lab.binaries, &["--latency-ms", LATENCY_MS, "--rpm", &RPM.to_string()])?;
    let place = Place { binaries: lab.binaries.clone(), base_url: sim.base_url.clone(), until };
    // waiting for a program takes a thread, and there are two sides
    let wall_seconds = tokio::task::spawn_blocking(move || asks(&place)).await??;
    let stats = sim.stats().await?;
    let count = |key: &str| stats[key].as_f64().with_context(|| format!("bench-sim counts {key}"));
    let (allowance_used, _) = Used::of_run("requests", &stats)?.parts();
    Ok(Took { calls: count("requests")?, refused: count("rate_limited")?, wall_seconds, allowance_used })
}

fn as_matrix(place: &Place) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    let quoted = |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    let rpm = RPM.to_string();
    let flags = quoted(&[&COMMON[..], &["--max-rpm", &rpm]].concat());
    let (systems, cut_offs) = (quoted(&SYSTEMS), CUT_OFFS.join(", "));
    let text = format!("flags = [{flags}]\n[axes]\nsystem = [{systems}]\ntop-k = [{cut_offs}]\n");
    std::fs::write(folder.path().join("cells.toml"), text)?;
    seconds(place, folder.path(), &["matrix", "cells.toml"])
}

fn one_by_one(place: &Place) -> anyhow::Result<f64> {
    let (mut all, rpm) = (0.0, RPM.to_string());
    for (system, cut_off) in SYSTEMS.iter().flat_map(|system| CUT_OFFS.map(|cut_off| (system, cut_off))) {
        // a store of its own: nothing is answered from what another cell has asked
        let folder = tempfile::tempdir()?;
        let own = ["submit", "--max-rpm", &rpm, "--system", system, "--top-k", cut_off];
        all += seconds(place, folder.path(), &[&own[..], &COMMON].concat())?;
    }
    Ok(all)
}

/// Wall time of a command. A run whose verdict is INVALID has made its calls all the same.
fn seconds(place: &Place, folder: &Path, args: &[&str]) -> anyhow::Result<f64> {
    let mut command = Command::new(place.binaries.join("bench-coord"));
    command
        .current_dir(folder)
        .args(args)
        .args(["--max-cost", "1000", "--display", "none"])
        .env("OPENAI_BASE_URL", &place.base_url)
        .env("OPENAI_API_KEY", "sk-none");
    let left = place.until.saturating_duration_since(Instant::now());
    Ok(run_within(&mut command, &[0, 5], left)?.wall_seconds)
}
