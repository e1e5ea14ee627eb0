//! The mean over the repeats and its two intervals.
//!
//! *Conversations like these*: the interval of the questions' means over the repeats, clustered by bank; the noise of single
//! draws is in these means already. What all questions of a repeat have in common, such as a provider that drifts, is not: its
//! variance, (s²_runs − what the rest explains)⁺ / N, is added, half = √(half² + (t · error)²) with N − 1 degrees of freedom.
//!
//! *This benchmark* under new draws: Student's t over the runs' headlines, which assumes nothing of how they vary. For a sample
//! it is the stratified interval of the means, with the same addition.

use bench_proto::{repeats::RepeatsMean, summary::Interval};

use super::{
    Repeated,
    spread::{ROUNDING, spread},
    table::Complete,
};
use crate::{interval::t_quantile, score::Estimate};

/// Mean, standard deviation and intervals.
pub(super) fn mean(complete: &Complete<'_>, of: &Repeated<'_>, questions: &Estimate, census: bool) -> RepeatsMean {
    let Some(runs) = spread(of.headlines, "repeats") else {
        return RepeatsMean { ci95_note: Some("no repeat has ended".to_owned()), ..RepeatsMean::default() };
    };
    let drift = drift(complete);
    let n = complete.repeats() as f64;
    let error = drift.map_or(0.0, |drift| t_quantile(n - 1.0) * (drift / n).sqrt());
    // the headline counts what single repeats lack too: its mean is what is printed, and the intervals lie around that
    let moved = questions.value.map_or(0.0, |value| runs.mean - value);
    let around = |interval: &Interval| widened(interval, questions.value.unwrap_or(runs.mean), moved, error);
    let ci95 = questions.ci95.as_ref().map(around);
    let benchmark_ci95 = match census {
        true => runs.ci95.clone(),
        false => questions.benchmark_ci95.as_ref().map(around),
    };
    let equal = || match runs.n {
        0 | 1 => "one repeat shows no noise".to_owned(),
        _ => "all repeats have the same score: nothing says how another would differ".to_owned(),
    };
    let benchmark_note = match (&benchmark_ci95, census) {
        (Some(_), _) => None,
        (None, true) => Some(equal()),
        (None, false) => questions.benchmark_note.clone().or_else(|| Some(equal())),
    };
    RepeatsMean {
        value: Some(runs.mean),
        sd: runs.sd,
        ci95,
        ci95_note: questions.ci95_note.clone(),
        benchmark_ci95,
        benchmark_note,
        one_run_within: runs.one_within(),
        drift_variance: drift,
    }
}

/// The interval moved, and wider on both sides by an independent error.
fn widened(interval: &Interval, value: f64, moved: f64, error: f64) -> Interval {
    let wider = |side: f64| (side * side + error * error).sqrt();
    let method = match error > 0.0 {
        true => format!("{}, and drift between repeats", interval.method),
        false => interval.method.clone(),
    };
    Interval {
        low: (value + moved - wider((value - interval.low).max(0.0))).clamp(0.0, 1.0),
        high: (value + moved + wider((interval.high - value).max(0.0))).clamp(0.0, 1.0),
        method,
    }
}

/// Variance between repeats that all questions share: the variance of the repeats' means, less what banks that vary by
/// themselves explain of it. (Two-way layout without interaction: MS_repeats against MS_banks×repeats.)
fn drift(complete: &Complete<'_>) -> Option<f64> {
    let (repeats, questions) = (complete.repeats(), complete.len());
    if repeats < 2 || questions < 2 {
        return None;
    }
    let n = questions as f64;
    let mut of_banks = vec![0.0_f64; complete.bank_names() * repeats];
    let mut all = vec![0.0_f64; repeats];
    for question in complete.questions() {
        let mean = question.mean();
        for (repeat, score) in question.scores().enumerate() {
            of_banks[question.bank as usize * repeats + repeat] += score - mean;
            all[repeat] += score - mean;
        }
    }
    // sums of deviations: Σ over a bank's questions, for each repeat
    let between: f64 = all.iter().map(|sum| (sum / n).powi(2)).sum::<f64>() / (repeats - 1) as f64;
    let banks: Vec<&[f64]> = of_banks.chunks(repeats).filter(|bank| bank.iter().any(|sum| *sum != 0.0)).collect();
    let g = banks.len() as f64;
    if banks.len() < 2 {
        return Some(0.0);
    }
    // each bank's sums around their share of the common part
    let shared = |repeat: usize| all[repeat] / g;
    let own: f64 =
        banks.iter().flat_map(|bank| bank.iter().enumerate()).map(|(r, sum)| (sum - shared(r)).powi(2)).sum();
    let by_chance = own * g / (g - 1.0) / (n * n) / (repeats - 1) as f64;
    let drift = between - by_chance;
    Some(if drift > ROUNDING { drift } else { 0.0 })
}
