//! How well the meter and a worker use a provider's allowance together.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    asking::{Door, ask, client},
    build,
    role::Site,
};
use crate::{
    cluster::{LATENCY_MS, RPM, Services, Used},
    measure::run,
    scenarios::Sim,
};

const TARGET_USED: f64 = 0.98;
const TARGET_REFUSED: f64 = 0.001;
/// Requests through the meter that are under way at a time: they alone would use up more than the allowance.
const AT_ONCE: usize = 32;
/// Numbers of requests of one client; no two ask the same.
const OF_ONE: usize = 1_000_000;

/// A run with answers and judgements, and a memory system that asks through the meter all the while.
pub(crate) async fn pace(services: &Services) -> anyhow::Result<Value> {
    let rpm = RPM.to_string();
    let sim = Sim::start(&services.binaries, &["--latency-ms", LATENCY_MS, "--rpm", &rpm])?;
    let site = Site::start(services, &sim.base_url, 1).await?;
    let models = ["--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-mini"];
    let size = ["--set", "sim.conversations=3", "--max-rpm", &rpm];
    let mut submit = site.submit(&[models, size].concat());
    let submitted = tokio::task::spawn_blocking(move || run(&mut submit));
    let role = site.metered().await?;
    let ended = Arc::new(AtomicBool::new(false));
    let mut asking = JoinSet::new();
    for number in 0..AT_ONCE {
        asking.spawn(ask_until(role.door.clone(), Arc::clone(&ended), number * OF_ONE));
    }
    submitted.await??;
    ended.store(true, Ordering::Relaxed);
    let (mut through, mut held_up) = (0, 0);
    while let Some(asked) = asking.join_next().await {
        let (answered, refused) = asked??;
        (through, held_up) = (through + answered, held_up + refused);
    }
    let used = Used::of_run("requests", &sim.stats().await?)?;
    let (allowance_used, refused_part) = used.parts();
    Ok(json!({
        "scenario": "meter-pace",
        "build": build(),
        "requests_per_minute": RPM,
        "seconds": used.seconds,
        "accepted": used.accepted,
        "of_these_through_the_meter": through,
        "told_to_come_again_by_the_meter": held_up,
        "allowance_used": allowance_used,
        "refused_part": refused_part,
        "target": {"allowance_used": TARGET_USED, "refused_part": TARGET_REFUSED},
        "met": allowance_used >= TARGET_USED && refused_part <= TARGET_REFUSED,
        "yardstick": "the provider's own allowance over the time from the first request to the last",
    }))
}

/// Asks one request after the other until the run has ended; how many were answered, and how many were to come again.
async fn ask_until(door: Door, ended: Arc<AtomicBool>, first: usize) -> anyhow::Result<(u64, u64)> {
    let client = client()?;
    let (mut answered, mut refused) = (0, 0);
    for number in first.. {
        let (status, body) = ask(&client, &door, number).await?;
        match status {
            StatusCode::OK => answered += 1,
            StatusCode::TOO_MANY_REQUESTS => refused += 1,
            // the run has ended
            _ if ended.load(Ordering::Relaxed) || status == StatusCode::FORBIDDEN => break,
            _ => anyhow::bail!("status {status}: {body}"),
        }
    }
    Ok((answered, refused))
}
