//! What pace and budget cost a process: CPU per call, calls per round trip, added latency, transactions a second.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context;
use bench_models::{
    ChatMessage, ChatRequest, MessageRole,
    budget::{Budget, reservations::Reservations},
    gate::Entry,
    gates::Gates,
    limiter::Seen,
    pace::Paced,
    tokens::Encoding,
};
use bench_proto::{call::Phase, ids::RunNo, money::PicoUsd};
use bench_store::{
    Allowance, Money, PaceLimits, Paces, RunRow, Store,
    conformance::{Counted, new_run},
};
use serde_json::{Value, json};

use crate::measure::cpu_of_this_process;

/// Calls of a measurement.
const CALLS: u64 = 20_000;
/// Calls a second at which budgets are measured.
const RATE: u64 = 1_000;
/// Longest wait of a call.
const PATIENCE: Duration = Duration::from_secs(60);

/// All measurements on one store.
pub(crate) async fn limiter(store_url: &str, name: &str) -> anyhow::Result<Value> {
    let store = bench_store::open(store_url).await?;
    let unlimited = pace(&store, "unlimited", PaceLimits::default(), 256).await?;
    let limited = pace(&store, "limited", PaceLimits { rpm: Some(RATE * 60), tpm: None }, 2_000).await?;
    let tokens = PaceLimits { rpm: Some(RATE * 60), tpm: Some(RATE * 60 * 2_000) };
    let token_limited = pace(&store, "tokens", tokens, 2_000).await?;
    let money = budget(&store).await?;
    store.close().await;
    let at = |of: &Value, key: &str| of[key].as_f64().unwrap_or(f64::NAN);
    let met = json!({
        "cpu_us_per_call": at(&limited, "cpu_us_per_call") < 50.0 && at(&token_limited, "cpu_us_per_call") < 50.0,
        "calls_per_round_trip": at(&limited, "calls_per_round_trip") >= 32.0,
        "budget_transactions_per_second": at(&money, "transactions_per_second") <= 100.0,
        "budget_p99_added_ms": at(&money["added_ms"], "p99") <= 20.0,
    });
    Ok(json!({
        "scenario": "limiter",
        "store": name,
        "build": if cfg!(debug_assertions) { "debug: figures of CPU say nothing" } else { "release" },
        "without_limits": unlimited,
        "at_1000_calls_a_second": limited,
        "at_1000_calls_a_second_with_tokens": token_limited,
        "budget_at_1000_calls_a_second": money,
        "counting": counting(),
        "targets": {
            "cpu_us_per_call": 50, "calls_per_round_trip": 32,
            "budget_transactions_per_second": 100, "budget_p99_added_ms": 20,
        },
        "met": met,
        "notes": {
            "cpu_us_per_call": "all of this process: queue, timers, gate, the store's client and, with sqlite, the store itself; no HTTP",
            "counting": "only where tokens are limited or the cap is near; not part of cpu_us_per_call",
        },
    }))
}

/// What counting a prompt costs, by its vocabulary: words of an ordinary conversation, and the parts that stay the same.
fn counting() -> Value {
    let words =
        "[D1:3] Caroline: I went to the support group on Tuesday, and we talked about the puppy that she adopted.\n";
    let message = |role, text: String| ChatMessage { role, text };
    let request = ChatRequest {
        messages: vec![message(MessageRole::System, words.repeat(10)), message(MessageRole::User, words.repeat(40))],
        params: Default::default(),
        schema: None,
        max_output_tokens: 500,
    };
    let bytes: usize = request.messages.iter().map(|message| message.text.len()).sum();
    let tokens = Encoding::O200k.prompt_tokens(&request);
    let (rounds, began) = (200, Instant::now());
    for _ in 0..rounds {
        std::hint::black_box(Encoding::O200k.prompt_tokens(std::hint::black_box(&request)));
    }
    let us = began.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
    json!({"prompt_bytes": bytes, "prompt_tokens": tokens, "us_per_prompt": us, "us_per_1000_tokens": us * 1000.0 / tokens as f64})
}

/// Calls through gate and pace, `at_once` of them waiting at any time.
async fn pace(store: &Arc<dyn Store>, group: &str, limits: PaceLimits, at_once: u64) -> anyhow::Result<Value> {
    let counted = Counted::new(store);
    let paces = Arc::clone(&counted) as Arc<dyn Paces>;
    let gates = Gates::default();
    let allowance = Allowance { account: "perf".to_owned(), limit_group: group.to_owned(), ..Allowance::default() };
    let (pace, gate) = (gates.pace(&paces, &allowance, limits), gates.gate(&allowance));
    let calls = if limits.is_none() { CALLS * 5 } else { CALLS };
    let tokens = if limits.tpm.is_some() { 1_000 } else { 0 };
    let (began, cpu) = (Instant::now(), cpu_of_this_process()?);
    let left = Arc::new(AtomicU64::new(calls));
    let callers: Vec<_> = (0..at_once)
        .map(|_| {
            let (pace, gate, left) = (Arc::clone(&pace), Arc::clone(&gate), Arc::clone(&left));
            tokio::spawn(async move {
                let lane = (RunNo(1), Phase::Answer);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                    match pace.acquire(lane, tokens, PATIENCE).await {
                        Paced::Go { .. } => {}
                        Paced::Later { wait } => tokio::time::sleep(wait.min(Duration::from_millis(50))).await,
                    }
                    if let Entry::Go(permit) = gate.enter(PATIENCE).await {
                        permit.finish(Seen::Accepted { latency_us: 200_000 });
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let cpu_us = (cpu_of_this_process()? - cpu) * 1e6 / calls as f64;
    Ok(json!({
        "calls": calls,
        "calls_per_second": calls as f64 / seconds,
        "cpu_us_per_call": cpu_us,
        "round_trips": counted.count(),
        "calls_per_round_trip": calls as f64 / counted.count().max(1) as f64,
    }))
}

/// Reservations at a steady rate under a cap far away.
async fn budget(store: &Arc<dyn Store>) -> anyhow::Result<Value> {
    const SECONDS: u64 = 8;
    let mut new = new_run("perf-limiter");
    new.spec.limits.max_cost = PicoUsd::parse("1000000");
    let run = store.create_run(&new).await?;
    let row: RunRow = store.run(run).await?;
    let session = store.open_session("perf", "local", "{}").await?;
    let counted = Counted::new(store);
    let reservations = Arc::new(Reservations::open(Arc::clone(&counted) as Arc<dyn Money>, &row, session));
    let amount = PicoUsd(400_000_000);
    let mut waits = Vec::new();
    let began = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    for _ in 0..SECONDS * 100 {
        ticks.tick().await;
        for _ in 0..RATE / 100 {
            let reservations = Arc::clone(&reservations);
            waits.push(tokio::spawn(async move {
                let asked = Instant::now();
                let reservation = reservations.reserve(Phase::Answer, amount).await;
                let waited = asked.elapsed();
                // a call's worth of time with the money in hand
                tokio::time::sleep(Duration::from_millis(200)).await;
                if let Ok(reservation) = reservation {
                    reservation.free();
                }
                waited
            }));
        }
    }
    let asking = began.elapsed().as_secs_f64();
    let transactions = counted.count();
    let mut waited = Vec::with_capacity(waits.len());
    for wait in waits {
        waited.push(wait.await?.as_secs_f64() * 1000.0);
    }
    reservations.close().await;
    waited.sort_by(f64::total_cmp);
    let at = |part: f64| waited.get((waited.len() as f64 * part) as usize).copied().context("some waits");
    Ok(json!({
        "calls": waited.len(),
        "transactions_per_second": transactions as f64 / asking,
        "calls_per_transaction": waited.len() as f64 / transactions.max(1) as f64,
        "added_ms": {"p50": at(0.5)?, "p99": at(0.99)?},
    }))
}
