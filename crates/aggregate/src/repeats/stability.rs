//! How each question behaves from repeat to repeat: what passes always, never, sometimes; pass@k and pass^k; noisy questions.
//!
//! Of N repeats that c passed, pass@k = 1 − C(N − c, k) / C(N, k) is the chance that one of k drawn without replacement passes, and
//! pass^k = C(c, k) / C(N, k) that all of them do: unbiased for further draws (Chen et al. 2021, Yao et al. 2024).

use bench_proto::{
    metric::Scale,
    repeats::{NOISY_SD, PassesAtK, RepeatedQuestion, SharedFigure, Stability},
};

use super::{
    Weighing,
    table::{Complete, RepeatTable, ScoredQuestion},
};
use crate::score::Estimate;

/// Noisy questions that are listed.
const LISTED: usize = 20;
/// Largest k of which every one is told; beyond it round numbers are.
const EVERY_K: u32 = 10;
/// What is told beyond it, up to the number of repeats.
const ROUND: [u32; 5] = [20, 50, 100, 200, 500];

/// Rounding of scores, which makes no question noisy.
const ROUNDING: f64 = 1e-9;

/// Stability of the questions.
pub(super) fn stability(table: &RepeatTable, complete: &Complete<'_>, weighing: &Weighing, scale: Scale) -> Stability {
    let repeats = complete.repeats() as u32;
    let passed = |question: ScoredQuestion<'_>| question.scores().filter(|score| scale.passes(*score)).count() as u32;
    let share = |holds: &dyn Fn(ScoredQuestion<'_>) -> bool| {
        let count = complete.questions().filter(|question| holds(*question)).count() as u64;
        shared(weighing.mean_of(complete, |question| f64::from(u8::from(holds(question)))), count)
    };
    let noisy = |question: ScoredQuestion<'_>| question.sd() > NOISY_SD + ROUNDING;
    let mut noisiest: Vec<ScoredQuestion<'_>> = complete.questions().filter(|question| noisy(*question)).collect();
    noisiest.sort_by(|x, y| y.sd().total_cmp(&x.sd()).then_with(|| x.id().cmp(y.id())));
    let all = complete.len() as u64;
    let passes = cutoffs(repeats).map(|k| PassesAtK {
        k,
        pass_at_k: shared(weighing.mean_of(complete, |q| 1.0 - chosen(repeats - passed(q), k, repeats)), all),
        pass_all_k: shared(weighing.mean_of(complete, |q| chosen(passed(q), k, repeats)), all),
    });
    Stability {
        questions: all,
        left_out: table.len() as u64 - all,
        always_passed: share(&|question| passed(question) == repeats),
        never_passed: share(&|question| passed(question) == 0),
        mixed: share(&|question| (1..repeats).contains(&passed(question))),
        noisy: share(&noisy),
        noisiest: noisiest.into_iter().take(LISTED).map(told).collect(),
        passes: passes.collect(),
    }
}

/// The k that are told.
fn cutoffs(repeats: u32) -> impl Iterator<Item = u32> {
    let all = (1..=repeats.min(EVERY_K)).chain(ROUND.into_iter().filter(move |k| *k <= repeats));
    all.chain((repeats > EVERY_K && !ROUND.contains(&repeats)).then_some(repeats))
}

/// C(c, k) / C(n, k): the chance that k of n, drawn without replacement, are all among c of them.
pub(super) fn chosen(c: u32, k: u32, n: u32) -> f64 {
    if k > c {
        return 0.0;
    }
    (0..k).map(|i| f64::from(c - i) / f64::from(n - i)).product()
}

fn shared(estimate: Estimate, count: u64) -> SharedFigure {
    SharedFigure { value: estimate.value, count, ci95: estimate.ci95, note: estimate.ci95_note }
}

/// A question with its scores.
pub(super) fn told(question: ScoredQuestion<'_>) -> RepeatedQuestion {
    RepeatedQuestion {
        question_id: question.id().to_owned(),
        bank_id: question.bank_id().to_owned(),
        category: question.category().to_owned(),
        scores: question.scores().collect(),
        mean: question.mean(),
        sd: question.sd(),
    }
}
