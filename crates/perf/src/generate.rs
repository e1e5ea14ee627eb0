//! What a generated dialogue costs beside writing it down: making a bank of `long-horizon`, and its JSON.

use std::{hint::black_box, time::Instant};

use bench_datasets::OpenOptions;
use serde_json::{Value, json};

use crate::measure::median;

/// Most of the time of its serialisation that making a dialogue may take.
const TARGET: f64 = 5.0;

/// Generation against serialisation, in turn; the first of each is not counted.
pub(crate) fn generate(rounds: usize, turns: u32) -> anyhow::Result<Value> {
    let settings = [("turns".to_owned(), json!(turns))].into();
    let options = OpenOptions { settings, ..OpenOptions::default() };
    let dataset = bench_datasets::open("long-horizon", &options, &|_, _| ())?;
    let (mut making, mut writing, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..=rounds {
        let start = Instant::now();
        let bank = black_box(dataset.bank(0)?);
        making.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        bytes = black_box(serde_json::to_vec(&bank)?).len();
        writing.push(start.elapsed().as_secs_f64());
    }
    let [making, writing] = [making, writing].map(|seconds| median(seconds.into_iter().skip(1)));
    let to_yardstick = making / writing;
    Ok(json!({
        "scenario": "generate",
        "turns": turns,
        "bytes": bytes,
        "wall_seconds": making,
        "yardstick_seconds": writing,
        "to_yardstick": to_yardstick,
        "target_to_yardstick": TARGET,
        "met": to_yardstick <= TARGET,
    }))
}
