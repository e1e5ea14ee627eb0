//! What scoring costs beside the least that any scorer does: the token F1 of many pairs, and a pass over the same texts that
//! lower-cases and splits them.

use std::{hint::black_box, time::Instant};

use anyhow::ensure;
use bench_datasets::OpenOptions;
use bench_grading::scorers::{ScoreCase, Scorer, locomo_f1};
use bench_proto::dataset::{Bank, GoldRecord, Question, StreamEntry};
use serde_json::{Value, json};

use crate::measure::median;

/// Most times the yardstick that scoring may take.
const TARGET: f64 = 10.0;

/// Pairs of answers and golds, in turn by both; the first round is not counted.
pub(crate) fn scorers(rounds: usize, pairs: u32, options: &OpenOptions) -> anyhow::Result<Value> {
    // the published data where they are at hand, else ours of the same shape
    let (name, dataset) = match bench_datasets::open("locomo", options, &|_, _| ()) {
        Ok(dataset) => ("locomo", dataset),
        Err(_) => ("locomo-sim", bench_datasets::open("locomo-sim", &OpenOptions::default(), &|_, _| ())?),
    };
    let banks = (0..dataset.bank_count()).map(|bank| dataset.bank(bank)).collect::<Result<Vec<_>, _>>()?;
    let asked: Vec<(&Question, &GoldRecord)> = banks
        .iter()
        .flat_map(|bank| bank.questions.iter().zip(&bank.gold))
        .filter(|(_, gold)| has_text(gold))
        .collect();
    let answers: Vec<&str> = banks.iter().flat_map(turns).collect();
    ensure!(!asked.is_empty() && !answers.is_empty(), "{name} has nothing to compare");
    // both lists have other lengths, so that nearly every pair is another one
    let pair = |number: usize| (answers[number % answers.len()], asked[number % asked.len()]);
    let golds: Vec<String> = asked.iter().map(|(_, gold)| gold.gold.text()).collect();
    let (mut scoring, mut splitting, mut sum, mut words) = (Vec::new(), Vec::new(), 0.0, 0_u64);
    for _ in 0..=rounds {
        (sum, words) = (0.0, 0);
        let start = Instant::now();
        for number in 0..pairs as usize {
            let (answer, (question, gold)) = pair(number);
            let case = ScoreCase { answer: Some(answer), ..ScoreCase::unanswered(dataset.profile(), question, gold) };
            sum += black_box(locomo_f1::OFFICIAL.score(black_box(&case))).unwrap_or(0.0);
        }
        scoring.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for number in 0..pairs as usize {
            let (answer, _) = pair(number);
            for text in [answer, golds[number % golds.len()].as_str()] {
                words += black_box(text.to_lowercase()).split_whitespace().map(black_box).count() as u64;
            }
        }
        splitting.push(start.elapsed().as_secs_f64());
    }
    let [scoring, splitting] = [scoring, splitting].map(|seconds| median(seconds.into_iter().skip(1)));
    let to_yardstick = scoring / splitting;
    Ok(json!({
        "scenario": "scorers",
        "build": if cfg!(debug_assertions) { "debug: says little of a release build" } else { "release" },
        "scorer": locomo_f1::OFFICIAL.name(),
        "dataset": name,
        "pairs": pairs,
        "words_per_pair": words as f64 / f64::from(pairs),
        "mean_score": sum / f64::from(pairs),
        "wall_seconds": scoring,
        "us_per_pair": scoring * 1e6 / f64::from(pairs),
        "yardstick_seconds": splitting,
        "to_yardstick": to_yardstick,
        "target_to_yardstick": TARGET,
        "met": to_yardstick <= TARGET,
    }))
}

/// Whether an answer is compared with words, not with phrases of abstention.
fn has_text(gold: &GoldRecord) -> bool {
    !gold.gold.is_unanswerable()
}

/// What was said in a bank: texts of the length of answers.
fn turns(bank: &Bank) -> impl Iterator<Item = &str> {
    bank.content.entries.iter().flat_map(|entry| match entry {
        StreamEntry::Session(session) => session.turns.iter().map(|turn| turn.text.as_str()).collect(),
        StreamEntry::Memory(memory) => vec![memory.text.as_str()],
        StreamEntry::Update { .. } => Vec::new(),
    })
}
