//! What the meter adds to a request: its latency at a steady rate, its CPU, and what it holds of many streams. Yardsticks are the same
//! requests in the same rounds, straight to `bench-sim`, and through a proxy of the same libraries that only passes on: less than that
//! one takes no proxy of them. Meter, proxy and simulator are processes of their own.
//!
//! `proxy` is the meter without money or store: what the way through it costs. `role` is `bench-coord meter` as it is deployed, where each
//! request is reserved and booked in a store. `streams` holds many of them open at once, and `pace` has the meter and a worker use one
//! allowance together.

mod asking;
mod bare;
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
pub(crate) use self::{bare::serve as serve_bare, pace::pace, proxy::serve};
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
    let bare = Proxy::start("bare-proxy", &provider.base_url)?;
    let proxy = Proxy::start("meter-server", &provider.base_url)?;
    let alone = requests("meter-proxy", lab.rounds, load, &provider, bare.asked(), proxy.asked()).await?;
    drop(proxy);
    let role = Role::start(services, &provider.base_url).await?;
    let deployed = requests("meter-role", lab.rounds, load, &provider, bare.asked(), role.asked()).await?;
    drop((role, bare));
    Ok(vec![alone, deployed, streams::many(lab.rounds, streams).await?])
}

/// A process that requests go through.
#[derive(Clone, Copy)]
struct Way<'a> {
    door: &'a Door,
    pid: u32,
}

impl Way<'_> {
    /// A round through it, and the microseconds of the processor that it took for a request.
    async fn steady(self, load: Steady) -> anyhow::Result<(Percentiles, f64)> {
        let before = cpu_of_family(self.pid)?;
        let through = steady(self.door, load).await?;
        let spent = cpu_of_family(self.pid)? - before;
        Ok((through, spent * 1e6 / (load.rate * load.seconds + WARM_UP as f64)))
    }
}

async fn requests(
    scenario: &str,
    rounds: usize,
    load: Steady,
    provider: &Sim,
    bare: Way<'_>,
    meter: Way<'_>,
) -> anyhow::Result<Value> {
    let provider = Door { base_url: provider.base_url.clone(), key: "sk-none".to_owned() };
    let (mut direct, mut passed_on, mut bare_cpu) = (Vec::new(), Vec::new(), Vec::new());
    let (mut metered, mut cpu) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let straight = steady(&provider, load).await?;
        let (through_bare, of_bare) = bare.steady(load).await?;
        let (through, of_meter) = meter.steady(load).await?;
        // the first round warms caches
        if round > 0 {
            direct.push(straight);
            passed_on.push(through_bare);
            bare_cpu.push(of_bare);
            metered.push(through);
            cpu.push(of_meter);
        }
    }
    type Pick = fn(&Percentiles) -> f64;
    let of = |rounds: &[Percentiles], pick: Pick| median(rounds.iter().map(pick));
    let (p50, p99): (Pick, Pick) = (|round| round.p50_ms, |round| round.p99_ms);
    let added = |pick: Pick| -> Vec<f64> {
        metered.iter().zip(&direct).map(|(metered, direct)| pick(metered) - pick(direct)).collect()
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
            "p50_ms": of(&direct, p50),
            "p99_ms": of(&direct, p99),
            "bare_proxy": {
                "what": "the same through a proxy of the same libraries that reads, counts and keeps nothing",
                "p50_ms": of(&passed_on, p50),
                "p99_ms": of(&passed_on, p99),
                "cpu_us_per_request": median(bare_cpu),
            },
        },
    }))
}

const fn build() -> &'static str {
    if cfg!(debug_assertions) { "dev profile: says little of a release build" } else { "release" }
}
