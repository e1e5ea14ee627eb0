//! The yardstick: a bare HTTP client that sends as many requests of the same kind and keeps nothing. What the runner takes
//! beyond it is the runner's own.

use std::time::Instant;

use anyhow::ensure;
use futures::{StreamExt, stream};
use serde_json::json;

/// Requests in flight.
const IN_FLIGHT: usize = 256;
/// Bytes of a prompt with ten turns of context.
const PROMPT_BYTES: usize = 2500;

/// Seconds that `calls` chat requests take.
pub(crate) fn bare_client(base_url: &str, calls: usize) -> anyhow::Result<f64> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = reqwest::Client::builder().pool_max_idle_per_host(IN_FLIGHT).tcp_nodelay(true).build()?;
        let url = format!("{base_url}/chat/completions");
        let began = Instant::now();
        let answered = stream::iter(0..calls)
            .map(|n| {
                let prompt = format!("{n} {}", "some words of context ".repeat(PROMPT_BYTES / 22));
                let body = json!({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": prompt}], "max_completion_tokens": 256});
                let request = client.post(&url).json(&body);
                async move { Ok::<_, reqwest::Error>(request.send().await?.error_for_status()?.bytes().await?.len()) }
            })
            .buffer_unordered(IN_FLIGHT)
            .filter(|reply| std::future::ready(reply.is_ok()))
            .count()
            .await;
        ensure!(answered == calls, "{answered} of {calls} requests were answered");
        Ok(began.elapsed().as_secs_f64())
    })
}
