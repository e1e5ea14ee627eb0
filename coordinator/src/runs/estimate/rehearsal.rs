//! The prompts that a run will send, made without sending them: built-in memory systems recall for questions of the sample, and
//! the same prompt builders as in the run make the messages.

use std::{panic::AssertUnwindSafe, sync::Arc};

use bench_grading::prompts::{
    Messages,
    answer::style_rules,
    judge::{JudgeInput, judge_messages},
};
use bench_plan::TokenGuess;
use bench_proto::{
    dataset::{Bank, Gold},
    ids::Sha256Hash,
    spec::RunSpec,
};
use bench_systems::{BankRef, BuildContext, MemorySystem, RecallQuery, registry as systems, vector};
use bench_worker::answerer::answer_prompt;
use futures::FutureExt;

use crate::planning::PlannedRun;

/// Entries, turns and questions are read of at most so many banks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Banks, spread over the sample.
    pub banks: usize,
    /// Questions, spread over each bank.
    pub questions: usize,
}

/// Counts tokens of a model's messages.
pub(crate) type Count<'a> = &'a (dyn Fn(&str, &Messages) -> u64 + Sync);

/// Counts tokens of a text for a model.
pub(crate) type CountText<'a> = &'a (dyn Fn(&str, &str) -> u64 + Sync);

/// What was measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rehearsal {
    /// Prompt tokens of an answer; `None` when the system cannot be rehearsed here.
    pub answer: Option<TokenGuess>,
    /// Prompt tokens of a judgement, per judge, the reply's schema left out.
    pub judges: Vec<TokenGuess>,
    /// Embeddings of banks and of questions, for systems that call a model for them.
    pub embeddings: Option<Embedded>,
}

/// Embeddings of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Embedded {
    /// Requests for what banks are given.
    pub bank_calls: u64,
    /// Their tokens.
    pub bank: TokenGuess,
    /// Tokens of a question.
    pub question: TokenGuess,
}

/// Sums, and the longest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    calls: u64,
    tokens: u64,
    longest: u64,
}

impl Measured {
    /// Adds a call.
    pub(crate) fn add(&mut self, tokens: u64) {
        self.calls += 1;
        self.tokens += tokens;
        self.longest = self.longest.max(tokens);
    }

    /// Where every question was measured, the mean is what each costs in the sum; else others may be shorter or longer.
    pub(crate) fn guess(self, all: bool) -> Option<TokenGuess> {
        let mean = (self.calls > 0).then(|| self.tokens.div_ceil(self.calls))?;
        Some(match all {
            true => TokenGuess { low: self.tokens / self.calls, expected: mean, worst: mean },
            false => TokenGuess { low: mean * 9 / 10, expected: mean, worst: self.longest.max(mean * 11 / 10) },
        })
    }
}

/// Every `n`-th of `all`, at most `most`, beginning with the first.
pub(crate) fn spread<T>(all: &[T], most: usize) -> impl Iterator<Item = &T> {
    let step = all.len().div_ceil(most.max(1)).max(1);
    all.iter().step_by(step)
}

/// Measures the prompts of a run. Systems that are servers are left out; where embeddings are paid for, words stand in for
/// their meaning: other turns are found, of about the same length.
pub(crate) async fn rehearse(
    planned: &PlannedRun,
    effort: Effort,
    count: Count<'_>,
    count_text: CountText<'_>,
) -> Rehearsal {
    let spec = &planned.spec;
    let embeds = vector::remote_model(&spec.system.name, &spec.system.settings);
    let before = vector::prefixes(&spec.system.settings);
    let settings =
        if embeds.is_some() { vector::rehearsed(&spec.system.settings) } else { spec.system.settings.clone() };
    let system = match planned.capabilities.from_items {
        true => systems::build(&spec.system.name, &settings, &BuildContext::default()).ok(),
        false => None,
    };
    let (mut given, mut searched, mut turns) = (Measured::default(), Measured::default(), 0);
    let mut answers = Measured::default();
    let mut judged = vec![Measured::default(); spec.judges.len()];
    let mut asked = 0;
    for sampled in spread(&planned.sample.banks, effort.banks) {
        let Ok(mut bank) = planned.dataset.bank(sampled.file_index as usize) else { continue };
        bank.content.entries.truncate(sampled.entries as usize);
        let content = Arc::new(std::mem::replace(&mut bank.content, empty_content()));
        let place = BankRef {
            name: format!("rehearsal-{}", sampled.bank_id),
            handle: None,
            bank_id: sampled.bank_id.clone(),
            content_hash: Sha256Hash::of(sampled.bank_id.as_bytes()),
            content: Some(Arc::clone(&content)),
        };
        if let Some(model) = &embeds {
            turns += u64::from(sampled.turns);
            for request in vector::requests::of_entries(&content.entries, &before.text) {
                given.add(request.texts.iter().map(|text| count_text(&model.name, text)).sum());
            }
        }
        for index in spread(&sampled.questions, effort.questions) {
            let Some(question) = bank.questions.get(*index as usize) else { continue };
            asked += 1;
            if let Some(model) = &embeds {
                searched.add(count_text(&model.name, &format!("{}{}", before.query, question.text)));
            }
            if let Some(system) = &system
                && spec.answerer.is_remote()
                // a system that panics fails its questions, not their estimate
                && let Ok(Some(messages)) =
                    AssertUnwindSafe(answer_messages(system.as_ref(), spec, &place, &bank, *index))
                        .catch_unwind()
                        .await
            {
                answers.add(count(&spec.answerer.name, &messages));
            }
            let gold = bank.gold.get(*index as usize).map(|gold| &gold.gold);
            let stand_in = stand_in(gold);
            let Ok(input) = JudgeInput::of(&spec.dataset.profile, question, gold, &stand_in) else { continue };
            let messages = judge_messages(&input);
            for (judge, measured) in spec.judges.iter().zip(&mut judged) {
                measured.add(count(&judge.name, &messages));
            }
        }
    }
    let all = asked == spec.sample.n;
    Rehearsal {
        answer: answers.guess(all && embeds.is_none()),
        embeddings: given.guess(all).zip(searched.guess(all)).map(|(bank, question)| {
            let of_all: u64 = planned.sample.banks.iter().map(|bank| u64::from(bank.turns)).sum();
            let calls = (u128::from(given.calls) * u128::from(of_all)).div_ceil(u128::from(turns.max(1)));
            Embedded { bank_calls: u64::try_from(calls).unwrap_or(u64::MAX), bank, question }
        }),
        // what will be judged is only known when it is there
        judges: judged
            .into_iter()
            .map(|measured| {
                let guess = measured.guess(all).unwrap_or_default();
                TokenGuess { low: guess.low.saturating_sub(4), ..guess }
            })
            .collect(),
    }
}

const fn empty_content() -> bench_proto::dataset::BankContent {
    bench_proto::dataset::BankContent { bank_id: String::new(), speakers: Vec::new(), entries: Vec::new() }
}

/// An answer of likely length: good ones are as long as what is expected.
pub(crate) fn stand_in(gold: Option<&Gold>) -> String {
    match gold {
        Some(Gold::Text(text)) => text.clone(),
        _ => "it was not mentioned".to_owned(),
    }
}

async fn answer_messages(
    system: &dyn MemorySystem,
    spec: &RunSpec,
    place: &BankRef,
    bank: &Bank,
    index: u32,
) -> Option<Messages> {
    let question = bank.questions.get(index as usize)?;
    let gold = bank.gold.get(index as usize);
    let content = place.content.as_ref()?;
    let query = RecallQuery {
        question_id: &question.question_id,
        text: &question.text,
        time_text: question.time_text.as_deref(),
        k: spec.system.top_k,
        visible_entries: question.ask_after.min(u32::try_from(content.entries.len()).unwrap_or(u32::MAX)),
        evidence: system.capabilities().sees_gold.then(|| gold.map_or(&[][..], |gold| gold.evidence_turns.as_slice())),
        ..RecallQuery::default()
    };
    let recall = system.recall(place, &query).await.ok()?;
    let style = style_rules(&spec.dataset.profile).ok()?;
    Some(answer_prompt(style, question, &recall.hits, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_spread_and_never_more_than_wanted() {
        let all: Vec<u32> = (0..10).collect();
        assert_eq!(spread(&all, 3).copied().collect::<Vec<_>>(), [0, 4, 8]);
        assert_eq!(spread(&all, 100).count(), 10);
        assert_eq!(spread(&all, 10).count(), 10);
        assert_eq!(spread::<u32>(&[], 3).count(), 0);
    }

    #[test]
    fn a_part_leaves_room_and_the_whole_does_not() {
        let mut measured = Measured::default();
        assert_eq!(measured.guess(true), None);
        for tokens in [90, 100, 140] {
            measured.add(tokens);
        }
        assert_eq!(measured.guess(true), Some(TokenGuess { low: 110, expected: 110, worst: 110 }));
        assert_eq!(measured.guess(false), Some(TokenGuess { low: 99, expected: 110, worst: 140 }));
    }
}
