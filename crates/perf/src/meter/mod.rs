//! What the meter adds to a request: its latency at a steady rate, its CPU, and what it holds of many streams. The yardstick is the same
//! requests, straight to `bench-sim`, in the same rounds. Meter and simulator are processes of their own.
//!
//! `proxy` is the meter without money or store: what the way through it costs. `role` is `bench-coord meter` as it is deployed, where each
//! request is reserved and booked in a store. `streams` holds many of them open at once, and `pace` has the meter and a worker use one
//! allowance together.

mod asking;
mod pace;
mod proxy;
mod role;
mod streams;

use serde_json::{Value, json};

use self::{
    asking::{Door, PROMPT_BYTES, WARM_UP, steady},
    proxy::Proxy,
    role::Role,
};
pub(crate) use self::{pace::pace, proxy::serve};
use crate::{
    cluster::{Services, cpu::cpu_of_family},
    measure::median,
    scenarios::{Lab, Sim},
    systems::Percentiles,
};

const TARGET_P50_MS: f64 = 0.5;
const TARGET_P99_MS: f64 = 3.0;
const TARGET_CPU_US: f64 = 150.0;

/// Requests at a steady rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steady {
    /// Requests a second.
    pub(crate) rate: f64,
    /// Seconds of a round.
    pub(crate) seconds: f64,
}

/// All but the pace.
pub(crate) async fn meter(lab: &Lab, services: &Services, load: Steady, streams: usize) -> anyhow::Result<Vec<Value>> {
    let provider = Sim::start(&lab.binaries, &[])?;
    let proxy = Proxy::start(&provider.base_url)?;
    let alone = requests("meter-proxy", lab.rounds, load, &provider, &proxy.door, proxy.pid()).await?;
    drop(proxy);
    let role = Role::start(services, &provider.base_url).await?;
    let deployed = requests("meter-role", lab.rounds, load, &provider, &role.door, role.pid()).await?;
    drop(role);
    Ok(vec![alone, deployed, streams::many(lab.rounds, streams).await?])
}

async fn requests(
    scenario: &str,
    rounds: usize,
    load: Steady,
    provider: &Sim,
    meter: &Door,
    pid: u32,
) -> anyhow::Result<Value> {
    let provider = Door { base_url: provider.base_url.clone(), key: "sk-none".to_owned() };
    let (mut bare, mut metered, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let direct = steady(&provider, load).await?;
        let before = cpu_of_family(pid)?;
        let through = steady(meter, load).await?;
        let spent = cpu_of_family(pid)? - before;
        // the first round warms caches
        if round > 0 {
            bare.push(direct);
            metered.push(through);
            cpu.push(spent * 1e6 / (load.rate * load.seconds + WARM_UP as f64));
        }
    }
    type Pick = fn(&Percentiles) -> f64;
    let of = |rounds: &[Percentiles], pick: Pick| median(rounds.iter().map(pick));
    let (p50, p99): (Pick, Pick) = (|round| round.p50_ms, |round| round.p99_ms);
    let added = |pick: Pick| -> Vec<f64> {
        metered.iter().zip(&bare).map(|(metered, bare)| pick(metered) - pick(bare)).collect()
    };
    let (added_p50, added_p99) = (median(added(p50)), median(added(p99)));
    let cpu_us = median(cpu.iter().copied());
    Ok(json!({
        "scenario": scenario,
        "build": build(),
        "requests_per_second": load.rate,
        "seconds": load.seconds,
        "prompt_bytes": PROMPT_BYTES,
        "added_p50_ms": added_p50,
        "added_p99_ms": added_p99,
        "cpu_us_per_request": cpu_us,
        "p50_ms": of(&metered, p50),
        "p99_ms": of(&metered, p99),
        "target": {"added_p50_ms": TARGET_P50_MS, "added_p99_ms": TARGET_P99_MS, "cpu_us_per_request": TARGET_CPU_US},
        "met": added_p50 <= TARGET_P50_MS && added_p99 <= TARGET_P99_MS && cpu_us <= TARGET_CPU_US,
        "rounds": {"added_p50_ms": added(p50), "added_p99_ms": added(p99), "cpu_us_per_request": cpu},
        "yardstick": {
            "what": "the same requests straight to bench-sim, before each round through the meter",
            "p50_ms": of(&bare, p50),
            "p99_ms": of(&bare, p99),
        },
    }))
}

const fn build() -> &'static str {
    if cfg!(debug_assertions) { "dev profile: says little of a release build" } else { "release" }
}
