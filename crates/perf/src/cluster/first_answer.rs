//! From the start of `submit` to the first answer in the store, in a cluster that is up and has worked before.

use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};

use super::{
    cpu::round,
    fleet::{Fleet, Workers},
    services::Services,
};
use crate::measure::median;

/// Runs one after the other; the first one warms the cluster.
pub(crate) async fn first_answer(services: &Services, rounds: usize, slots: u32) -> anyhow::Result<Value> {
    let fleet = Fleet::start(services, &Workers { count: 1, slots, provider: None }).await?;
    let mut ledger = fleet.ledger().await?;
    let mut seen = Vec::new();
    for round in 0..=rounds {
        let latest = ledger.latest_run().await?;
        let began = Instant::now();
        let mut submit = fleet.submit(&["--dataset", "locomo-sim"]).spawn()?;
        let answered = ledger.wait_for_first_answer(latest);
        let answered = tokio::time::timeout(std::time::Duration::from_secs(30), answered).await;
        let answered = answered.with_context(|| format!("no answer: {}", fleet.last_words()))??;
        if round > 0 {
            seen.push(answered.saturating_duration_since(began).as_secs_f64() * 1000.0);
        }
        let status = tokio::task::spawn_blocking(move || submit.wait()).await??;
        anyhow::ensure!(status.success(), "submit ended with {status}: {}", fleet.last_words());
    }
    Ok(json!({
        "scenario": "cluster-first-answer",
        "slots": slots,
        "target_ms": 500,
        "median_ms": round(median(seen.iter().copied())),
        "ms": seen.into_iter().map(round).collect::<Vec<_>>(),
    }))
}
