//! How well a provider's allowance is used by one worker and by four: limits that are told, limits that change unseen.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};

use super::{
    cpu::round,
    fleet::{Fleet, Workers},
    services::Services,
};
use crate::{measure::run, scenarios::Sim};

/// Latency of every call.
pub(crate) const LATENCY_MS: &str = "200";
/// Requests a minute that the provider allows.
pub(crate) const RPM: u32 = 3_000;
/// Tokens a minute that the provider allows where tokens are limited: fewer calls than by requests.
const TPM: u32 = 1_500_000;

/// Time after a halved limit for which there is a target (P19).
const ADAPTING: Duration = Duration::from_secs(15);

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
    // a short run must be several times as long as the window; a full window refuses one call and costs 200 ms
    let (window, targets) = if full { (60, (0.98, 0.001)) } else { (5, (0.95, 0.004)) };
    let provider = format!("--rpm {RPM} --window sliding{window}");
    cases.push(Case { targets, ..case("sliding-window", &provider, &format!("--max-rpm {RPM}")) });
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
        "yardstick": "the provider's own allowance over the time from the first request to the last; after a halved limit, over the next 15 s",
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
    let used = match case.halve_after {
        Some(after) => Some(halve(&sim, after).await?),
        None => None,
    };
    submitted.await?.with_context(|| fleet.last_words())?;
    let used = match used {
        Some(used) => used,
        None => Used::of_run(case.name, &sim.stats().await?)?,
    };
    let (allowance_used, refused_part) = used.parts();
    Ok(json!({
        "case": case.name,
        "workers": workers,
        "seconds": round(used.seconds),
        "accepted": round(used.accepted),
        "refused": used.refused,
        "allowance_used": round(allowance_used),
        "refused_part": refused_part,
        "target_allowance_used": case.targets.0,
        "target_refused_part": case.targets.1,
        "met": allowance_used >= case.targets.0 && refused_part <= case.targets.1,
    }))
}

/// What was used of an allowance in a time: calls, or tokens where these are limited.
pub(crate) struct Used {
    pub(crate) seconds: f64,
    pub(crate) accepted: f64,
    allowed: f64,
    refused: f64,
}

fn figure(stats: &Value, key: &str) -> anyhow::Result<f64> {
    stats[key].as_f64().with_context(|| format!("the simulator says {key}"))
}

impl Used {
    /// The part of the allowance that was used, and the part of the requests that was refused.
    pub(crate) fn parts(&self) -> (f64, f64) {
        (self.accepted / self.allowed, self.refused / (self.accepted + self.refused))
    }

    /// From the first request of a run to its last.
    pub(crate) fn of_run(case: &str, stats: &Value) -> anyhow::Result<Self> {
        let seconds = (figure(stats, "last_request_ms")? - figure(stats, "first_request_ms")?) / 1000.0;
        let (requests, refused) = (figure(stats, "requests")?, figure(stats, "rate_limited")?);
        let (accepted, per_minute) = match case {
            // a provider counts the prompt and the largest completion
            "tokens" => (figure(stats, "prompt_tokens")? + requests * 500.0, TPM),
            // the last one begins a time of its own
            _ => (requests - refused - 1.0, RPM),
        };
        Ok(Self { seconds, accepted, allowed: f64::from(per_minute) / 60.0 * seconds, refused })
    }
}

/// Halves the limit while the run is at work; what was used of the new one in the time that the target names.
async fn halve(sim: &Sim, after: Duration) -> anyhow::Result<Used> {
    loop {
        if sim.stats().await?["requests"].as_u64() > Some(0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(after).await;
    sim.control(&json!({"limits": {"factor": 0.5}})).await?;
    let (began, before) = (Instant::now(), sim.stats().await?);
    tokio::time::sleep(ADAPTING).await;
    let (seconds, stats) = (began.elapsed().as_secs_f64(), sim.stats().await?);
    let since = |key| anyhow::Ok(figure(&stats, key)? - figure(&before, key)?);
    let (requests, refused) = (since("requests")?, since("rate_limited")?);
    let allowed = f64::from(RPM) / 2.0 / 60.0 * seconds;
    Ok(Used { seconds, accepted: requests - refused, allowed, refused })
}
