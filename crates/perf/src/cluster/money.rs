//! How well a provider's allowance is used by one worker and by four: limits that are told, limits that change unseen.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::{
    books::round,
    fleet::{Fleet, Workers},
    services::Services,
};
use crate::{measure::run, scenarios::Sim};

/// Latency of every call.
const LATENCY_MS: &str = "200";
/// Requests a minute that the provider allows.
const RPM: u32 = 3_000;
/// Tokens a minute that the provider allows where tokens are limited: fewer calls than by requests.
const TPM: u32 = 1_500_000;

/// One provider and what the run is told about it.
struct Case {
    name: &'static str,
    provider: Vec<String>,
    told: Vec<String>,
    /// Least part of the allowance that is to be used, most requests that may be refused.
    targets: (f64, f64),
    /// Halve the provider's limit after this time.
    halve_after: Option<Duration>,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn cases(full: bool) -> Vec<Case> {
    let case = |name, provider: &str, told: &str| Case {
        name,
        provider: words(provider),
        told: words(told),
        targets: (0.98, 0.001),
        halve_after: None,
    };
    let mut cases = vec![
        case("requests", &format!("--rpm {RPM}"), &format!("--max-rpm {RPM}")),
        // both sides count by the model's own vocabulary, or the allowance could not be used to its end
        case("tokens", &format!("--tpm {TPM} --tokens o200k"), &format!("--max-tpm {TPM}")),
        Case {
            targets: (0.9, 0.05),
            halve_after: Some(Duration::from_secs(if full { 20 } else { 6 })),
            ..case("halved-unseen", &format!("--rpm {RPM}"), "")
        },
    ];
    // a short run must be several times as long as the window
    let window = if full { 60 } else { 5 };
    cases.push(case("sliding-window", &format!("--rpm {RPM} --window sliding{window}"), &format!("--max-rpm {RPM}")));
    cases
}

/// All cases with one worker and with four.
pub(crate) async fn money(services: &Services, full: bool) -> anyhow::Result<Value> {
    let mut runs = Vec::new();
    for case in cases(full) {
        for workers in [1, 4] {
            runs.push(once(services, &case, workers, full).await?);
        }
    }
    Ok(json!({
        "scenario": "cluster-money",
        "latency_ms": LATENCY_MS,
        "yardstick": "the provider's own allowance over the time from the first request to the last",
        "runs": runs,
    }))
}

async fn once(services: &Services, case: &Case, workers: usize, full: bool) -> anyhow::Result<Value> {
    let mut flags = vec!["--latency-ms", LATENCY_MS];
    flags.extend(case.provider.iter().map(String::as_str));
    let sim = Sim::start(&services.binaries, &flags)?;
    let fleet =
        Fleet::start(services, &Workers { count: workers, slots: 64, provider: Some(sim.base_url.clone()) }).await?;
    let size = format!("sim.conversations={}", if full { 10 } else { 3 });
    let mut args = vec!["--dataset", "locomo-sim", "--set", &size, "--max-cost", "1000"];
    args.extend(["--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-mini"]);
    args.extend(case.told.iter().map(String::as_str));
    let mut submit = fleet.submit(&args);
    let submitted = tokio::task::spawn_blocking(move || run(&mut submit));
    let halved = match case.halve_after {
        Some(after) => Some(halve(&sim, after).await?),
        None => None,
    };
    submitted.await?.with_context(|| fleet.last_words())?;
    let stats = sim.stats().await?;
    let at = |key: &str| stats[key].as_f64().with_context(|| format!("the simulator says {key}"));
    let before = |key: &str| halved.as_ref().and_then(|stats| stats[key].as_f64()).unwrap_or(0.0);
    let from = if halved.is_some() { before("last_request_ms") } else { at("first_request_ms")? };
    let seconds = (at("last_request_ms")? - from) / 1000.0;
    let (requests, refused) = (at("requests")? - before("requests"), at("rate_limited")? - before("rate_limited"));
    let rpm = f64::from(if halved.is_some() { RPM / 2 } else { RPM });
    let used = match case.name {
        // a provider counts the prompt and the largest completion
        "tokens" => (at("prompt_tokens")? + requests * 500.0) / (f64::from(TPM) / 60.0 * seconds),
        _ => (requests - refused - 1.0) / (rpm / 60.0 * seconds),
    };
    Ok(json!({
        "case": case.name,
        "workers": workers,
        "requests": requests,
        "seconds": round(seconds),
        "allowance_used": round(used),
        "refused_part": refused / requests,
        "target_allowance_used": case.targets.0,
        "target_refused_part": case.targets.1,
        "met": used >= case.targets.0 && refused / requests <= case.targets.1,
    }))
}

/// Halves the limit while the run is at work; what the provider had seen until then.
async fn halve(sim: &Sim, after: Duration) -> anyhow::Result<Value> {
    loop {
        if sim.stats().await?["requests"].as_u64() > Some(0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(after).await;
    sim.control(&json!({"limits": {"factor": 0.5}})).await?;
    sim.stats().await
}
