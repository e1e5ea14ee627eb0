//! A client that asks for chat completions: at a steady rate, or one after the other.

use std::time::{Duration, Instant};

use anyhow::ensure;
use reqwest::StatusCode;
use serde_json::json;
use tokio::task::JoinSet;

use super::Steady;
use crate::systems::Percentiles;

/// Bytes of a prompt: a few turns, and what a memory system says around them.
pub(super) const PROMPT_BYTES: usize = 2500;
/// Requests before each round that are not counted: connections are made, tables are unpacked.
pub(super) const WARM_UP: usize = 200;

/// Where requests go.
#[derive(Debug, Clone)]
pub(super) struct Door {
    pub(super) base_url: String,
    pub(super) key: String,
}

/// One that keeps its connections, as SDKs do.
pub(super) fn client() -> anyhow::Result<reqwest::Client> {
    Ok(reqwest::Client::builder().tcp_nodelay(true).no_proxy().pool_max_idle_per_host(256).build()?)
}

/// A prompt of the usual length; each number has another.
pub(super) fn prompt(number: usize) -> String {
    let words = "some words of context ";
    format!("{number} {}", words.repeat(PROMPT_BYTES / words.len()))
}

/// Requests that begin at a steady rate, whatever becomes of earlier ones.
pub(super) async fn steady(door: &Door, Steady { rate, seconds }: Steady) -> anyhow::Result<Percentiles> {
    let client = client()?;
    for number in 0..WARM_UP {
        answered(&client, door, number).await?;
    }
    let count = (rate * seconds) as usize;
    let handle = tokio::runtime::Handle::current();
    let (door, begin) = (door.clone(), Instant::now());
    // a thread that sleeps is more exact than a timer of the runtime
    let mut asking = tokio::task::spawn_blocking(move || {
        let mut asking = JoinSet::new();
        for number in 0..count {
            let due = begin + Duration::from_secs_f64(number as f64 / rate);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let (client, door) = (client.clone(), door.clone());
            let one = async move {
                let sent = Instant::now();
                answered(&client, &door, WARM_UP + number).await?;
                anyhow::Ok(sent.elapsed().as_secs_f64() * 1e3)
            };
            asking.spawn_on(one, &handle);
        }
        asking
    })
    .await?;
    let mut took = Vec::with_capacity(count);
    while let Some(asked) = asking.join_next().await {
        took.push(asked??);
    }
    Ok(Percentiles::from_times(took))
}

async fn answered(client: &reqwest::Client, door: &Door, number: usize) -> anyhow::Result<()> {
    let (status, body) = ask(client, door, number).await?;
    ensure!(status == StatusCode::OK, "status {status}: {body}");
    Ok(())
}

/// Asks once; what came.
pub(super) async fn ask(client: &reqwest::Client, door: &Door, number: usize) -> anyhow::Result<(StatusCode, String)> {
    let message = json!({"role": "user", "content": prompt(number)});
    let body = json!({"model": "gpt-4o-mini", "messages": [message], "max_completion_tokens": 256});
    let url = format!("{}/chat/completions", door.base_url);
    let reply = client.post(url).bearer_auth(&door.key).json(&body).send().await?;
    Ok((reply.status(), reply.text().await?))
}
