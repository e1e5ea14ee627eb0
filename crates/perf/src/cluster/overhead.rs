//! What the product adds to the services (P18): questions per second of runs without a model against items per second of
//! the yardstick, in interleaved pairs.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::{
    conversations,
    cpu::round,
    fleet::{Fleet, Workers},
    services::Services,
    yardstick::Pace,
};
use crate::measure::{first_line, median, run};

/// Items of the yardstick per question of the run: it is quicker, and both should take seconds.
const ITEMS_PER_QUESTION: u32 = 3;

/// A pair of runs of either.
struct Pair {
    items_per_second: f64,
    questions_per_second: f64,
    detail: Value,
}

/// Runs the pairs.
pub(crate) async fn overhead(services: &Services, pairs: usize, questions: u32, slots: u32) -> anyhow::Result<Value> {
    let mut seen = Vec::new();
    let mut statements = Vec::new();
    for number in 0..=pairs {
        let pace = yardstick(services, questions * ITEMS_PER_QUESTION)?;
        let (pair, longest) = pair(services, pace, questions, slots).await?;
        statements = longest;
        // the first one warms the services
        if number > 0 || pairs == 0 {
            seen.push(pair);
        }
    }
    Ok(json!({
        "scenario": "cluster-overhead",
        "slots": slots,
        "questions": questions,
        "target_ratio": 0.15,
        "ratio": round(median(seen.iter().map(|pair| pair.questions_per_second / pair.items_per_second))),
        "questions_per_second": round(median(seen.iter().map(|pair| pair.questions_per_second))),
        "yardstick_items_per_second": round(median(seen.iter().map(|pair| pair.items_per_second))),
        "pairs": seen.into_iter().map(|pair| pair.detail).collect::<Vec<_>>(),
        "statements": statements,
    }))
}

/// The yardstick in a process of its own.
fn yardstick(services: &Services, items: u32) -> anyhow::Result<Pace> {
    let place = services.place()?;
    let program = std::env::current_exe()?;
    let output = std::process::Command::new(program)
        .args(["yardstick", "--store", &place.store, "--queue", &place.queue, "--items", &items.to_string()])
        .stdin(std::process::Stdio::null())
        .output()?;
    ensure!(output.status.success(), "the yardstick failed: {}", first_line(&output.stderr));
    serde_json::from_slice(&output.stdout).context("the yardstick prints JSON")
}

async fn pair(services: &Services, pace: Pace, questions: u32, slots: u32) -> anyhow::Result<(Pair, Vec<String>)> {
    let fleet = Fleet::start(services, &Workers { count: 1, slots, provider: None }).await?;
    let setting = format!("sim.conversations={}", conversations(questions));
    let submit = run(&mut fleet.submit(&["--dataset", "locomo-sim", "--set", &setting]));
    let submit = submit.with_context(|| fleet.last_words())?;
    let finished = fleet.ledger().await?.finished().await?;
    let (items_per_second, questions_per_second) = (pace.items / pace.seconds, finished.questions / finished.seconds);
    let detail = json!({
        "items_per_second": round(items_per_second),
        "questions_per_second": round(questions_per_second),
        "ratio": round(questions_per_second / items_per_second),
        "run_seconds": round(finished.seconds),
        "questions": finished.questions,
        "cpu_ms_per_question": fleet.cpu_ms_per_item(finished.questions)?,
        "submit_cpu_ms_per_question": round(submit.cpu_seconds * 1000.0 / finished.questions),
        "peak_mib": fleet.peaks_mib(),
    });
    let statements = services.longest_statements(&fleet.place)?;
    Ok((Pair { items_per_second, questions_per_second, detail }, statements))
}
