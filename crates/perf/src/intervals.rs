//! Tables of docs/STATISTICS.md: how often intervals hold the truth, and how often comparisons and gates decide.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Instant,
};

use anyhow::{Context as _, ensure};
use bench_aggregate::{
    gate::Policy,
    simulate::{
        Coverage, CoverageCase, DecisionCase, Effects, Ends, LOCOMO_BANKS, Rate, SampleCase, SampleCoverage, Sampled,
        SampledStratum, Scores, Words, coverage, ends, sample_coverage, words,
    },
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Scores at which intervals are looked at.
const SCORES: [f64; 6] = [0.5, 0.8, 0.9, 0.92, 0.95, 0.98];
/// Intra-class correlations.
const CORRELATIONS: [f64; 4] = [0.0, 0.02, 0.05, 0.1];
/// Questions of a bank in a sample of twenty each.
const FAIR: u64 = 20;
/// The same in a sample of `quick`'s size.
const FEW: u64 = 5;

/// Works off `of` for each place below `n` on all cores, and keeps the order.
pub(crate) fn on_all_cores<T: Send>(n: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= n {
                return done;
            }
            done.push((place, of(place)));
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        // a worker that panicked has printed why
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, of_place)| of_place).collect()
}

fn cases() -> Vec<(&'static str, CoverageCase)> {
    let case =
        |banks: Vec<u64>, p, correlation, effects, scores| CoverageCase { banks, p, correlation, effects, scores };
    let sizes = |count: usize| LOCOMO_BANKS.iter().copied().cycle().take(count).collect::<Vec<u64>>();
    let mut cases = Vec::new();
    for effects in Effects::ALL {
        for p in SCORES {
            for correlation in CORRELATIONS {
                if correlation > 0.0 || effects == Effects::Beta {
                    cases.push(("full", case(sizes(10), p, correlation, effects, Scores::Verdicts)));
                }
            }
        }
    }
    for p in [0.5, 0.9, 0.98] {
        for correlation in CORRELATIONS {
            cases.push(("full, graded", case(sizes(10), p, correlation, Effects::Beta, Scores::Graded)));
            cases.push(("20 each", case(vec![FAIR; 10], p, correlation, Effects::Beta, Scores::Verdicts)));
        }
        for correlation in [0.02, 0.1] {
            for count in [3, 5, 20, 500] {
                cases.push(("full", case(sizes(count), p, correlation, Effects::Beta, Scores::Verdicts)));
            }
        }
    }
    // small banks, few and many: at the edge all of their answers are often equal
    for p in [0.5, 0.9, 0.98, 0.995] {
        for correlation in CORRELATIONS {
            cases.push(("5 each", case(vec![FEW; 10], p, correlation, Effects::Beta, Scores::Verdicts)));
            cases.push(("2 each", case(vec![2; 250], p, correlation, Effects::Beta, Scores::Verdicts)));
        }
    }
    cases
}

/// Correlations of the samples, which are small: a column each.
const SAMPLE_CORRELATIONS: [f64; 2] = [0.0, 0.05];
/// Questions of LoCoMo's conversations by category, on average, and those of them that `fair`, `quick` and `fair-2` ask: category 5
/// first, whose questions have no answer.
const CELLS: [(u64, [u64; 3]); 5] =
    [(45, [4, 1, 5]), (28, [4, 1, 3]), (10, [4, 1, 1]), (84, [4, 1, 8]), (32, [4, 1, 3])];
const PRESETS: [&str; 3] = ["fair", "quick", "fair-2"];

/// Samples of ten banks: all categories have one mean score, or the first another than the rest.
fn samples() -> Vec<(&'static str, String, SampleCase)> {
    let scores = [0.005, 0.02, 0.5, 0.9, 0.98, 0.995].map(|p| (p, p));
    let mut samples = Vec::new();
    for (place, preset) in PRESETS.into_iter().enumerate() {
        for (first, rest) in scores.into_iter().chain([(0.98, 0.02), (0.5, 0.98)]) {
            let score = if first == rest { format!("{rest}") } else { format!("{first}, others {rest}") };
            for correlation in SAMPLE_CORRELATIONS {
                let stratum = |(number, (of_bank, asked)): (usize, (u64, [u64; 3]))| SampledStratum {
                    p: if number == 0 { first } else { rest },
                    of_bank,
                    asked: asked[place],
                };
                let strata = CELLS.into_iter().enumerate().map(stratum).collect();
                samples.push((preset, score.clone(), SampleCase { strata, banks: 10, correlation }));
            }
        }
    }
    samples
}

/// A row for each preset and score, for each correlation both intervals.
fn sample_markdown(samples: &[(&str, String, SampleCase)], seen: &[SampleCoverage]) -> String {
    let header = SAMPLE_CORRELATIONS.map(|correlation| format!("ICC {correlation}")).join(" | ");
    let mut text = format!("| Sample | Score | {header} |\n|---|---|{}\n", "---|".repeat(SAMPLE_CORRELATIONS.len()));
    let rows = samples.chunks(SAMPLE_CORRELATIONS.len()).zip(seen.chunks(SAMPLE_CORRELATIONS.len()));
    for (cases, seen) in rows {
        let cells: Vec<String> = seen
            .iter()
            .map(|seen| {
                let [like_these, half] = [seen.like_these, seen.like_these_half_width].map(percent);
                let [this, this_half] = [seen.this_benchmark, seen.this_benchmark_half_width].map(percent);
                format!("{like_these} (± {half}), {this} (± {this_half})")
            })
            .collect();
        for (preset, score, _) in cases.iter().take(1) {
            text.push_str(&format!("| {preset} | {score} | {} |\n", cells.join(" | ")));
        }
    }
    text
}

/// How often 95 % intervals hold the truth.
pub(crate) fn coverage_table(draws: u32, seed: u64) -> Value {
    let start = Instant::now();
    let cases = cases();
    let seen = on_all_cores(cases.len(), |place| coverage(&cases[place].1, draws, seed + place as u64));
    let row = |((name, case), seen): (&(&str, CoverageCase), &Coverage)| {
        json!({
            "sample": name, "banks": case.banks.len(), "p": case.p, "icc": case.correlation,
            "effects": case.effects.name(), "covers": seen.covers, "above": seen.above, "below": seen.below,
            "none": seen.none, "half_width": seen.half_width, "t_covers": seen.t_covers,
            "naive_covers": seen.naive_covers,
        })
    };
    let cells: Vec<Value> = cases.iter().zip(&seen).map(row).collect();
    let samples = samples();
    let first = seed + cases.len() as u64;
    let of_samples =
        on_all_cores(samples.len(), |place| sample_coverage(&samples[place].2, draws, first + place as u64));
    let sample_row = |((preset, score, case), seen): (&(&str, String, SampleCase), &SampleCoverage)| {
        json!({
            "sample": preset, "p": score, "banks": case.banks, "icc": case.correlation,
            "like_these": seen.like_these, "like_these_half_width": seen.like_these_half_width,
            "this_benchmark": seen.this_benchmark, "this_benchmark_half_width": seen.this_benchmark_half_width,
            "none": seen.none,
        })
    };
    let markdown = format!("{}\n{}", coverage_markdown(&cases, &seen), sample_markdown(&samples, &of_samples));
    json!({
        "scenario": "coverage", "draws": draws, "seed": seed, "seconds": start.elapsed().as_secs_f64(),
        // three standard errors of a share near 95 %
        "monte_carlo": 3.0 * (0.95 * 0.05 / f64::from(draws.max(1))).sqrt(),
        "markdown": markdown, "cells": cells,
        "samples": samples.iter().zip(&of_samples).map(sample_row).collect::<Vec<_>>(),
    })
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// Two digits, or as many as tell it apart.
fn score_label(p: f64) -> String {
    let short = format!("{p:.2}");
    if short.parse::<f64>().is_ok_and(|read| (read - p).abs() < 1e-9) { short } else { p.to_string() }
}

/// Sample, banks, effects and score of a row.
type Row<'a> = (String, usize, &'a str, String);

/// A row for each kind of banks and score, a column for each correlation.
fn coverage_markdown(cases: &[(&str, CoverageCase)], seen: &[Coverage]) -> String {
    let mut rows: Vec<(Row<'_>, BTreeMap<String, String>)> = Vec::new();
    for ((name, case), seen) in cases.iter().zip(seen) {
        let key = ((*name).to_owned(), case.banks.len(), case.effects.name(), score_label(case.p));
        let cell = format!("{} ({})", percent(seen.covers), percent(seen.t_covers));
        let at = rows.iter().position(|(known, _)| *known == key).unwrap_or(rows.len());
        if at == rows.len() {
            rows.push((key, BTreeMap::new()));
        }
        rows[at].1.insert(case.correlation.to_string(), cell);
    }
    let header = CORRELATIONS.map(|correlation| format!("ICC {correlation}")).join(" | ");
    let mut text = format!("| Sample | Banks | Effects | Score | {header} |\n|---|---|---|---|{}\n", "---|".repeat(4));
    for ((name, banks, effects, p), cells) in rows {
        let cells = CORRELATIONS.map(|c| cells.get(&c.to_string()).cloned().unwrap_or_default()).join(" | ");
        text.push_str(&format!("| {name} | {banks} | {effects} | {p} | {cells} |\n"));
    }
    text
}

/// A line of a file of published grades.
#[derive(Deserialize)]
struct Graded {
    sample_id: String,
    category: u32,
    grades: Vec<f64>,
}

/// Published grades of a run as chances: a question that was passed in a share of the judgements is passed so often.
fn rates(path: &Path) -> anyhow::Result<Vec<Vec<Rate>>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut banks: BTreeMap<String, Vec<Rate>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Graded { sample_id, category, grades } = serde_json::from_str(line)?;
        ensure!(!grades.is_empty(), "{}: a question without grades", path.display());
        let rate = grades.iter().sum::<f64>() / grades.len() as f64;
        banks.entry(sample_id).or_default().push(Rate { category, rate });
    }
    Ok(banks.into_values().collect())
}

/// Chances with a part of one half mixed in: what a few judgements of one answer do not show.
fn softened(banks: &[Vec<Rate>], part: f64) -> Vec<Vec<Rate>> {
    let soften = |rate: &Rate| Rate { rate: rate.rate * (1.0 - part) + 0.5 * part, ..*rate };
    banks.iter().map(|bank| bank.iter().map(soften).collect()).collect()
}

/// Chances without published ones: as many questions, and as high a score, as published runs of LoCoMo have.
fn own_rates() -> Vec<Vec<Rate>> {
    let question = |bank: u64, i: u64| Rate {
        category: [4, 4, 1, 2, 4, 4, 1, 2, 4, 3][(i % 10) as usize],
        rate: f64::from(u8::from((i * 7_919 + bank * 104_729) % 101 < 72 + bank)),
    };
    (0..10).map(|bank| (0..LOCOMO_BANKS[bank as usize] * 3 / 4).map(|i| question(bank, i)).collect()).collect()
}

/// How much of one half is mixed into published chances: nothing, and so much that a verdict in twenty is turned.
const SOFTENED: [f64; 2] = [0.0, 0.1];
/// Standard deviation of what a run does to a bank.
const BANK_NOISE: f64 = 0.3;

/// Banks of the largest datasets. They are drawn a quarter as often: a draw of them takes fifty times as long as one of ten.
const MANY_BANKS: usize = 500;

/// Sets of chances by name: generated ones, and those of each file of published grades in a folder, both also softened.
pub(crate) fn sets(grades: Option<&Path>) -> anyhow::Result<Vec<(String, Vec<Vec<Rate>>)>> {
    let mut sets = vec![("generated".to_owned(), own_rates())];
    if let Some(folder) = grades {
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .with_context(|| folder.display().to_string())?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .collect();
        files.sort();
        for path in files {
            let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
            sets.push((name, rates(&path)?));
        }
    }
    let both = |(name, banks): &(String, Vec<Vec<Rate>>)| {
        SOFTENED.map(|part| (format!("{name}, {} % turned", part * 50.0), softened(banks, part)))
    };
    Ok(sets.iter().flat_map(both).collect())
}

/// How often comparisons and gates decide, and how often wrongly.
pub(crate) fn decisions(draws: u32, seed: u64, grades: Option<&Path>) -> anyhow::Result<Value> {
    let start = Instant::now();
    let sets = sets(grades)?;
    let of = |banks: &Vec<Vec<Rate>>| DecisionCase {
        banks: banks.clone(),
        sampled: Sampled::Full,
        population: BTreeMap::new(),
        count: 10,
        bank_noise: BANK_NOISE,
        drop: 0.0,
        baseline_runs: 1,
        runs: 1,
        tolerance: 0.0,
    };
    let mut pairs: Vec<(String, &str, DecisionCase)> = Vec::new();
    for (name, banks) in &sets {
        for (sample, sampled) in
            [("full", Sampled::Full), ("fair", Sampled::PerBank(FAIR)), ("fair-2", Sampled::Share(FAIR))]
        {
            for count in [3, 5, 10, 20, MANY_BANKS] {
                pairs.push((name.clone(), sample, DecisionCase { sampled, count, ..of(banks) }));
            }
            for drop in [0.02, 0.04, 0.08] {
                pairs.push((name.clone(), sample, DecisionCase { sampled, drop, ..of(banks) }));
            }
        }
        // as LongMemEval has them: each question with a bank of its own
        let single: Vec<Vec<Rate>> = banks.iter().flatten().map(|question| vec![*question]).collect();
        pairs.push((name.clone(), "1 each", DecisionCase { count: MANY_BANKS, ..of(&single) }));
    }
    let draws_of = |case: &DecisionCase| if case.count == MANY_BANKS { draws.div_ceil(4) } else { draws };
    let said =
        on_all_cores(pairs.len(), |place| words(&pairs[place].2, draws_of(&pairs[place].2), seed + place as u64));
    let policy = Policy::default();
    let tolerance = policy.overall.map_or(0.0, |rule| rule.tolerance);
    let mut gates: Vec<(String, &str, DecisionCase)> = Vec::new();
    for (name, banks) in &sets {
        for drop in [0.0, tolerance, 2.0 * tolerance] {
            gates.push((name.clone(), "full", DecisionCase { baseline_runs: 3, drop, ..of(banks) }));
        }
    }
    for (name, banks) in &sets {
        for baseline_runs in [1, 3] {
            let sampled = Sampled::PerBank(FAIR);
            gates.push((name.clone(), "fair", DecisionCase { sampled, baseline_runs, ..of(banks) }));
        }
    }
    let ended = on_all_cores(gates.len(), |place| ends(&gates[place].2, &policy, draws, seed + place as u64));
    let word_row = |((name, sample, case), said): (&(String, &str, DecisionCase), &Words)| {
        json!({
            "grades": name, "sample": sample, "banks": case.count, "draws": draws_of(case), "drop": case.drop, "better": said.better,
            "worse": said.worse, "no_change": said.no_change, "inconclusive": said.inconclusive,
            "detectable": said.detectable,
        })
    };
    let gate_row = |((name, sample, case), ended): (&(String, &str, DecisionCase), &Ends)| {
        json!({
            "grades": name, "sample": sample, "baseline_runs": case.baseline_runs, "drop": case.drop, "pass": ended.pass,
            "fail": ended.fail, "inconclusive": ended.inconclusive,
        })
    };
    Ok(json!({
        "scenario": "decisions", "draws": draws, "seed": seed, "seconds": start.elapsed().as_secs_f64(),
        "bank_noise": BANK_NOISE, "monte_carlo": 3.0 * (0.05 * 0.95 / f64::from(draws.max(1))).sqrt(),
        "markdown": decision_markdown(&pairs, &said, &gates, &ended),
        "pairs": pairs.iter().zip(&said).map(word_row).collect::<Vec<_>>(),
        "gates": gates.iter().zip(&ended).map(gate_row).collect::<Vec<_>>(),
    }))
}

fn decision_markdown(
    pairs: &[(String, &str, DecisionCase)],
    said: &[Words],
    gates: &[(String, &str, DecisionCase)],
    ended: &[Ends],
) -> String {
    let mut text =
        String::from("| Grades | Sample | Banks | True fall | BETTER + WORSE | WORSE |\n|---|---|---|---|---|---|\n");
    for ((name, sample, case), said) in pairs.iter().zip(said) {
        text.push_str(&format!(
            "| {name} | {sample} | {} | {} | {} | {} |\n",
            case.count,
            percent(case.drop),
            percent(said.better + said.worse),
            percent(said.worse)
        ));
    }
    text.push_str("\n| Grades | Sample | Baseline runs | True fall | PASS | FAIL | INCONCLUSIVE |\n");
    text.push_str("|---|---|---|---|---|---|---|\n");
    for ((name, sample, case), ended) in gates.iter().zip(ended) {
        let [drop, pass, fail, open] = [case.drop, ended.pass, ended.fail, ended.inconclusive].map(percent);
        let runs = case.baseline_runs;
        text.push_str(&format!("| {name} | {sample} | {runs} | {drop} | {pass} | {fail} | {open} |\n"));
    }
    text
}
