//! Four workers against one (P18): the same questions, the same slots a worker, from the first call to the last as the
//! provider saw them.

use anyhow::Context;
use serde_json::{Value, json};

use super::{
    conversations,
    cpu::round,
    fleet::{Fleet, Workers},
    services::Services,
};
use crate::{measure::run, scenarios::Sim};

/// Latency of every call.
const LATENCY_MS: &str = "200";

#[derive(Debug, Clone)]
pub(crate) struct Scaling<'a> {
    /// The dataset's name, and the folder where a real one lies.
    pub(crate) dataset: &'static str,
    pub(crate) datasets_dir: Option<&'a std::path::Path>,
    /// Questions to generate; `None` for a dataset as it is.
    pub(crate) questions: Option<u32>,
    pub(crate) slots: u32,
    pub(crate) target: f64,
}

/// One worker, then four.
pub(crate) async fn scaling(services: &Services, what: &Scaling<'_>) -> anyhow::Result<Value> {
    let (one, alone) = once(services, what, 1).await?;
    let (four, together) = once(services, what, 4).await?;
    Ok(json!({
        "scenario": "cluster-scaling",
        "dataset": what.dataset,
        "slots_per_worker": what.slots,
        "latency_ms": LATENCY_MS,
        "target_speedup": what.target,
        "speedup": round(one / four),
        "runs": [alone, together],
    }))
}

async fn once(services: &Services, what: &Scaling<'_>, workers: usize) -> anyhow::Result<(f64, Value)> {
    let sim = Sim::start(&services.binaries, &["--latency-ms", LATENCY_MS])?;
    let workers = Workers { count: workers, slots: what.slots, provider: Some(sim.base_url.clone()) };
    let fleet = Fleet::start(services, &workers).await?;
    let mut args = vec!["--dataset", what.dataset, "--answerer", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-mini"];
    args.extend(["--max-cost", "1000"]);
    let setting = what.questions.map(|questions| format!("sim.conversations={}", conversations(questions)));
    args.extend(setting.iter().flat_map(|setting| ["--set", setting.as_str()]));
    let mut submit = fleet.submit(&args);
    submit.envs(what.datasets_dir.map(|dir| ("BENCH_DATASETS_DIR", dir)));
    run(&mut submit).with_context(|| fleet.last_words())?;
    let finished = fleet.ledger().await?.finished().await?;
    let stats = sim.stats().await?;
    let at = |key: &str| stats[key].as_f64().with_context(|| format!("the simulator says {key}"));
    let seconds = (at("last_request_ms")? - at("first_request_ms")?) / 1000.0;
    let calls = at("requests")?;
    let detail = json!({
        "workers": workers.count,
        "questions": finished.questions,
        "calls": calls,
        "seconds_first_to_last_call": round(seconds),
        "seconds_of_run": round(finished.seconds),
        "most_in_flight": at("max_in_flight")?,
        "calls_per_second": round(calls / seconds),
        "cpu_ms_per_question": fleet.cpu_ms_per_item(finished.questions)?,
        "statements": services.longest_statements(&fleet.place)?,
    });
    Ok((seconds, detail))
}
