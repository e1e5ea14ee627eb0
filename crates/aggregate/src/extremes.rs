//! The slowest and the worst questions.

use std::collections::BTreeMap;

use bench_proto::{
    ids::{RunId, TaskKey, trace_id},
    metric::Scale,
    summary::{SlowQuestion, Summary, WorstQuestion},
    trace::TracePolicy,
};

use crate::questions::{QuestionRow, Questions};

const SLOWEST: usize = 10;
const WORST: usize = 5;

/// The first `most` items by `before`; items that come earlier win ties.
fn first_by<T>(items: impl Iterator<Item = T>, most: usize, before: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut first: Vec<T> = Vec::with_capacity(most + 1);
    for item in items {
        if first.len() < most || first.last().is_some_and(|last| before(&item, last)) {
            let at = first.partition_point(|kept| !before(&item, kept));
            first.insert(at, item);
            first.truncate(most);
        }
    }
    first
}

/// The slowest questions of settled `questions`.
pub(crate) fn slowest(questions: &Questions, run: &RunId, policy: &TracePolicy) -> Vec<SlowQuestion> {
    let timed = questions.rows().filter(|row| !row.times.question.is_nan());
    let slow = first_by(timed, SLOWEST, |a, b| a.times.question > b.times.question);
    slow.into_iter().map(|row| slow_question(row, run, policy)).collect()
}

fn slow_question(row: &QuestionRow, run: &RunId, policy: &TracePolicy) -> SlowQuestion {
    let trace_id = trace_id(run, &row.id);
    let ms = |us: f32| f64::from(us) / 1e3;
    let t = &row.times;
    let parts = [
        ("recall", t.recall),
        ("answer", t.answer),
        ("judge", t.judge),
        ("queue_wait", t.queue_wait),
        ("rate_wait", t.rate_wait),
    ];
    let happened = parts.into_iter().filter(|(_, us)| !us.is_nan());
    SlowQuestion {
        question_id: row.id.to_string(),
        ms: ms(t.question),
        phase_ms: happened.map(|(phase, us)| (phase.to_owned(), ms(us))).collect::<BTreeMap<_, _>>(),
        trace_url: row.kept.then(|| policy.link(&trace_id)).flatten(),
        trace_id,
    }
}

/// The worst scores by `metric` of settled `questions`, and their tasks; texts are filled in later.
pub(crate) fn worst(questions: &Questions, metric: &str, scale: Scale) -> (Vec<WorstQuestion>, Vec<TaskKey>) {
    let question = |(row, score): (&QuestionRow, f64)| {
        (WorstQuestion { question_id: row.id.to_string(), score, gold: None, answer: None }, row.task)
    };
    first_by(questions.by_metric(metric), WORST, |(_, a), (_, b)| scale.gain(*a) < scale.gain(*b))
        .into_iter()
        .map(question)
        .unzip()
}

/// Fills in gold and answer of the worst questions: `texts` gives (gold, answer) of a question id.
pub fn fill_worst(summary: &mut Summary, mut texts: impl FnMut(&str) -> (Option<String>, Option<String>)) {
    for worst in &mut summary.worst {
        (worst.gold, worst.answer) = texts(&worst.question_id);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn first_by_is_a_stable_sort_cut_short(items in proptest::collection::vec(0_u8..5, 0..30)) {
            let tagged: Vec<(usize, u8)> = items.into_iter().enumerate().collect();
            let mut sorted = tagged.clone();
            sorted.sort_by_key(|(_, value)| *value);
            sorted.truncate(4);
            prop_assert_eq!(first_by(tagged.into_iter(), 4, |a, b| a.1 < b.1), sorted);
        }
    }
}
