//! What `load` costs beside a loop that does nothing but begin operations: CPU, and how well intended starts are kept.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use bench_load::{
    arrivals::{Arrivals, Schedule},
    pacer::{self, Metronome, Step, Wait},
    tally::Failed,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    measure::{cpu_of_this_process, median},
    scenarios::Lab,
};

/// An operation takes so long and costs next to nothing: what is measured is what is around it.
const SERVICE: Duration = Duration::from_millis(1);
/// The bare loop wakes as often as this, at most.
const WAKE: Duration = Duration::from_micros(250);
const SEED: u64 = 5;
const TARGET_LATE_MS: f64 = 1.0;
const TARGET_RATIO: f64 = 2.0;

/// The open loop against the bare one, in turn; and the whole program once, with a system that finds nothing.
pub(crate) async fn load(lab: &Lab, rate: f64, seconds: f64) -> anyhow::Result<Vec<Value>> {
    let (mut loops, mut bares, mut late) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..lab.rounds.max(1) {
        bares.push(bare(rate, seconds).await?);
        let (cpu, p99) = open_loop(rate, seconds).await?;
        loops.push(cpu);
        late.push(p99);
    }
    let (cpu, bare) = (median(loops.iter().copied()), median(bares.iter().copied()));
    let late_p99_ms = median(late.iter().copied());
    let of_loop = json!({
        "scenario": "load-loop",
        "arrivals_per_second": rate,
        "seconds": seconds,
        "late_p99_ms": late_p99_ms,
        "late_p99_ms_of_rounds": late,
        "cpu_us_per_operation": cpu,
        "ratio": cpu / bare,
        "target": {"late_p99_ms": TARGET_LATE_MS, "ratio": TARGET_RATIO},
        "met": late_p99_ms <= TARGET_LATE_MS && cpu / bare <= TARGET_RATIO,
        "samples_us": loops,
        "yardstick": {"what": "a thread that sleeps until the next of the same starts and spawns the same operation, and notes nothing", "cpu_us_per_operation": bare, "samples_us": bares},
    });
    Ok(vec![of_loop, whole_program(lab, rate, seconds)?])
}

/// CPU microseconds of this process for each operation, and how late 99 % of them began at most, in milliseconds.
async fn open_loop(rate: f64, seconds: f64) -> anyhow::Result<(f64, f64)> {
    let step = Step {
        arrivals: Arrivals::Poisson,
        rate,
        seed: SEED,
        warm_up: Duration::ZERO,
        window: Duration::from_secs_f64(seconds),
        drain: Duration::from_secs(5),
        in_flight: 10_000,
    };
    let mut wait = Wait::Exact(Metronome::start()?);
    let before = cpu_of_this_process()?;
    let perform = |()| async {
        tokio::time::sleep(SERVICE).await;
        Ok::<(), Failed>(())
    };
    let tally = pacer::run(&step, &mut wait, &CancellationToken::new(), 1, |_| (0, ()), perform).await;
    let cpu = cpu_of_this_process()? - before;
    let served = tally.classes[0].served.n();
    ensure!(served as f64 > 0.98 * rate * seconds && tally.classes[0].unserved() == 0, "{served} were served");
    let late = tally.late.quantile_ms(0.99, 0).context("some began")?;
    Ok((cpu * 1e6 / served as f64, late))
}

/// The same for a loop that begins the same operations and knows nothing of them.
async fn bare(rate: f64, seconds: f64) -> anyhow::Result<f64> {
    let handle = tokio::runtime::Handle::current();
    let before = cpu_of_this_process()?;
    let begun = tokio::task::spawn_blocking(move || {
        let (begin, mut begun, mut woke) = (Instant::now(), 0_u64, Instant::now());
        for at in Schedule::new(Arrivals::Poisson, rate, SEED).take_while(|at| at.as_secs_f64() < seconds) {
            let due = begin + at;
            if due > Instant::now() {
                std::thread::sleep(due.max(woke + WAKE).saturating_duration_since(Instant::now()));
                woke = Instant::now();
            }
            handle.spawn(tokio::time::sleep(SERVICE));
            begun += 1;
        }
        begun
    });
    let begun = begun.await?;
    tokio::time::sleep(2 * SERVICE).await;
    Ok((cpu_of_this_process()? - before) * 1e6 / begun as f64)
}

/// `bench-coord load` as a person runs it.
fn whole_program(lab: &Lab, rate: f64, seconds: f64) -> anyhow::Result<Value> {
    let folder = tempfile::tempdir()?;
    let (rate_flag, seconds_flag) = (rate.to_string(), seconds.to_string());
    let flags = ["--mix", "recall=1", "--bank-size", "10", "--warm-up", "1", "--in-flight", "10000", "--json"];
    let output = Command::new(lab.binaries.join("bench-coord"))
        .args(["load", "none", "--rate", &rate_flag, "--seconds", &seconds_flag])
        .args(flags)
        .current_dir(folder.path())
        .output()
        .context("bench-coord cannot be started")?;
    ensure!(output.status.success(), "load ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let step = &result["steps"][0];
    let figures = &step["operations"]["recall"]["figures"];
    let (late, served) = (step["late_ms"]["p99"].as_f64(), figures["served_per_second"].as_f64().unwrap_or_default());
    Ok(json!({
        "scenario": "load-program",
        "arrivals_per_second": rate,
        "seconds": seconds,
        "late_p99_ms": late,
        "served_per_second": served,
        "unserved": figures["intended"].as_u64().unwrap_or_default() - figures["served"].as_u64().unwrap_or_default(),
        "target": {"late_p99_ms": TARGET_LATE_MS},
        "met": late.is_some_and(|late| late <= TARGET_LATE_MS) && served > 0.95 * rate,
    }))
}
