//! Tables of docs/STATISTICS.md about stopping early, and what a look takes.

use std::{path::Path, time::Instant};

use bench_aggregate::{
    compare::RunFacts,
    simulate::{Rate, StopCase, Stops, stops},
    stopping,
};
use bench_proto::stop::{StopGoal, StopRule};
use serde_json::{Value, json};

use crate::{
    intervals::{on_all_cores, percent, sets},
    measure,
    results::written,
};

/// True falls of the run below its baseline, with the margin of the rule.
const FALLS: [(f64, f64); 4] = [(0.0, 0.08), (0.08, 0.08), (0.0, 0.04), (0.04, 0.04)];
/// Half-widths of rules about a score.
const WIDTHS: [f64; 2] = [0.03, 0.04];
/// Looks that are timed.
const TIMED: usize = 101;
/// Most milliseconds of a look.
const TARGET_MS: f64 = 5.0;

/// A rule with ten even looks.
fn rule(goal: StopGoal, banks: &[Vec<Rate>]) -> StopRule {
    let n: u64 = banks.iter().map(|bank| bank.len() as u64).sum();
    StopRule { goal, looks: (1..=10).map(|look| n * look / 10).collect() }
}

fn decided(margin: f64) -> StopGoal {
    StopGoal::Decided { run: "baseline".to_owned(), digest: String::new(), margin }
}

/// How early rules decide, and how often wrongly, over all sets of chances.
pub(crate) fn stopping(draws: u32, seed: u64, grades: Option<&Path>) -> anyhow::Result<Value> {
    let start = Instant::now();
    let mut cases: Vec<(String, String, StopCase)> = Vec::new();
    for (name, banks) in sets(grades)? {
        let mut add = |goal: StopGoal, drop: f64| {
            let text = goal.to_string();
            cases.push((name.clone(), text, StopCase { rule: rule(goal, &banks), banks: banks.clone(), drop }));
        };
        FALLS.iter().for_each(|(drop, margin)| add(decided(*margin), *drop));
        WIDTHS.iter().for_each(|half_width| add(StopGoal::Interval { half_width: *half_width }, 0.0));
    }
    let seen = on_all_cores(cases.len(), |place| stops(&cases[place].2, draws, seed + place as u64));
    let row = |((grades, rule, case), seen): (&(String, String, StopCase), &Stops)| {
        json!({
            "grades": grades, "rule": rule, "fall": case.drop, "better": seen.better, "worse": seen.worse,
            "no_difference": seen.no_difference, "narrow": seen.narrow, "open": seen.open, "asked": seen.asked,
            "covers": seen.covers,
        })
    };
    let mut markdown = String::from(
        "| Grades | Rule | True fall | Better | Worse | No difference | Exact enough | Open | Asked | Interval holds |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for ((grades, rule, case), seen) in cases.iter().zip(&seen) {
        let [fall, better, worse, none, narrow, open, asked, covers] =
            [case.drop, seen.better, seen.worse, seen.no_difference, seen.narrow, seen.open, seen.asked, seen.covers]
                .map(percent);
        markdown.push_str(&format!(
            "| {grades} | {rule} | {fall} | {better} | {worse} | {none} | {narrow} | {open} | {asked} | {covers} |\n"
        ));
    }
    let [look_ms, yardstick_ms] = timed();
    Ok(json!({
        "scenario": "stopping", "draws": draws, "seed": seed, "seconds": start.elapsed().as_secs_f64(),
        "monte_carlo": 3.0 * (0.05 * 0.95 / f64::from(draws.max(1))).sqrt(),
        "look_ms": look_ms, "yardstick_ms": yardstick_ms,
        "look_to_yardstick": look_ms / yardstick_ms, "target_ms": TARGET_MS,
        "met": look_ms <= TARGET_MS,
        "markdown": markdown, "rows": cases.iter().zip(&seen).map(row).collect::<Vec<_>>(),
    }))
}

/// Milliseconds of the last of ten looks at 1,540 questions of two runs, by a process that has kept nothing of those before it; and of
/// joining them by a sorted list alone: medians.
fn timed() -> [f64; 2] {
    let spec = written::spec(1_540, 0);
    let facts = |variant: u32| {
        let mut all = RunFacts::new(&spec.headline_metric(), spec.system.top_k);
        (0..1_540).for_each(|i| all.add(&written::question(i, variant)));
        all
    };
    let (run, baseline) = (facts(0), facts(1));
    let rule = StopRule { goal: decided(0.08), looks: (1..=10).map(|look| 154 * look).collect() };
    let ids: Vec<String> = (0..1_540).map(|i| format!("question-{i}")).collect();
    let look = median(&mut || {
        let seen = stopping::look(&rule, 9, &spec, &run, Some(&baseline));
        assert!(seen.used == 1_540, "a look uses all pairs");
    });
    let yardstick = median(&mut || {
        let mut two = [ids.clone(), ids.clone()];
        two.iter_mut().for_each(|ids| ids.sort());
        assert!(two[0] == two[1], "both hold the same questions");
    });
    [look, yardstick]
}

/// The median of so many milliseconds.
fn median(timed: &mut dyn FnMut()) -> f64 {
    let time = || {
        let start = Instant::now();
        timed();
        start.elapsed().as_secs_f64() * 1e3
    };
    measure::median(std::iter::repeat_with(time).take(TIMED))
}
