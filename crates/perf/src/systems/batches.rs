//! How long a dialogue of single memories takes that goes in batches: as long as the system takes for its requests, or longer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bench_proto::{
    dataset::{BankContent, Memory, StreamEntry},
    ids::Sha256Hash,
};
use bench_systems::{
    BankRef, BuildContext, MemorySystem, StepContext, SystemSettings, adapter, policy::Policy, registry,
};
use serde_json::{Value, json};

use super::adapter::Server;
use crate::measure::median;

const MEMORIES: usize = 5_000;
const BATCH: usize = 50;
const REQUEST: Duration = Duration::from_millis(5);
/// Times the bare requests.
const TARGET: f64 = 1.2;

const ADAPTER: &str = "
name: batched
limits: {batch: 50}
item: {id: '{id}', text: '{content}', time: '{time?}'}
retain: {request: 'POST /banks/{bank}/batch', body: {items: '{items}'}, stored: stored}
recall: {request: 'POST /banks/{bank}/search', body: {query: '{query}'}, hits: [{list: hits, text: text, id: id}]}
";

/// Both in turn, so many rounds: entries go as a worker sends them, one retain after the other; what a store takes for their
/// checkpoints goes on beside the next request and is not in the figure.
pub(crate) async fn batches(rounds: usize) -> anyhow::Result<Value> {
    let server = Server::start("whole", REQUEST)?;
    let spec = adapter::file::parse(ADAPTER).map_err(anyhow::Error::msg)?;
    let settings = SystemSettings::from([
        (adapter::ADAPTER.to_owned(), serde_json::to_value(&spec)?),
        (adapter::URL.to_owned(), server.url.clone().into()),
    ]);
    let context = BuildContext { policy: Policy::anything().into(), ..BuildContext::default() };
    let system = registry::build("batched", &settings, &context)?;
    let client = reqwest::Client::builder().http1_only().tcp_nodelay(true).no_proxy().build()?;
    let memory = |n: usize| Memory {
        id: format!("m{n}"),
        text: format!("{n}: {}", "the heron sleeps in a bathtub of another colour ".repeat(4)),
        time: Some("2031-05-08T09:30:00".to_owned()),
        ..Memory::default()
    };
    let entries: Vec<StreamEntry> = (0..MEMORIES).map(|n| StreamEntry::Memory(memory(n))).collect();
    let (mut batched, mut bare) = (Vec::new(), Vec::new());
    for round in 0..rounds.max(1) {
        let began = Instant::now();
        for at in (0..MEMORIES).step_by(BATCH) {
            let items = (at..at + BATCH).map(memory).map(|m| json!({"id": m.id, "text": m.text, "time": m.time}));
            let body = json!({"items": items.collect::<Vec<_>>()}).to_string();
            let url = format!("{}/banks/bare-{round}/batch", server.url);
            let request = client.post(url).header("content-type", "application/json").body(body);
            request.send().await?.error_for_status()?.bytes().await?;
        }
        bare.push(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        retain(system.as_ref(), round, &entries).await?;
        batched.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let ratios: Vec<f64> = batched.iter().zip(&bare).map(|(batched, bare)| batched / bare).collect();
    let ratio = median(ratios.iter().copied());
    Ok(json!({
        "scenario": "systems-batches",
        "memories": MEMORIES,
        "batch": BATCH,
        "request_ms": REQUEST.as_millis() as u64,
        "retained_ms": median(batched.iter().copied()),
        "ratio": ratio,
        "target_ratio": TARGET,
        "met": ratio <= TARGET,
        "yardstick": {"what": "100 requests of a bare client with the same items, one after the other", "ms": median(bare.iter().copied())},
        "samples": ratios,
    }))
}

async fn retain(system: &dyn MemorySystem, round: usize, entries: &[StreamEntry]) -> anyhow::Result<()> {
    let name = format!("batched-{round}");
    let content = BankContent { bank_id: name.clone(), speakers: Vec::new(), entries: Vec::new() };
    let bank = BankRef {
        name: name.clone(),
        handle: None,
        bank_id: name.clone(),
        content_hash: Sha256Hash::of_bytes(name.as_bytes()),
        content: Some(Arc::new(content)),
    };
    let bank = BankRef { handle: Some(system.open_bank(&bank).await?), ..bank };
    let (mut rest, mut requests) = (entries, 0);
    while !rest.is_empty() {
        let receipt = system.retain(&bank, &rest[..system.together(rest)], StepContext::default()).await?;
        rest = &rest[usize::try_from(receipt.written)?..];
        requests += 1;
    }
    anyhow::ensure!(requests == MEMORIES / BATCH, "{requests} retains: the measurement is about something else");
    Ok(())
}
