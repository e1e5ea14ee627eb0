//! What a fork will call, before it does: its prompts are made of what its source has stored.
//!
//! Every question counts as called. Replies that the lineage has paid for are not paid again, so the truth may be less.

use std::collections::BTreeMap;

use bench_grading::prompts::{
    answer::style_rules,
    judge::{JudgeInput, judge_messages},
};
use bench_plan::{TokenGuess, announce_spec};
use bench_proto::{
    ids::TaskKey,
    spec::RunSpec,
    step::{RetrievedHit, StepText},
};
use bench_store::{RunRow, Store};
use bench_worker::{answerer::answer_prompt, banks::BankData};

use super::{
    Counting, RunEstimate,
    rehearsal::{Measured, Rehearsal, spread, stand_in},
};
use crate::{app::App, cli::ForkFrom, exit::CliError};

/// The estimate of a fork with the settings `spec`.
///
/// # Errors
/// What the store meets.
pub(crate) async fn estimate_fork(
    app: &App,
    store: &dyn Store,
    source: &RunRow,
    spec: &RunSpec,
    from: ForkFrom,
    counting: Counting,
) -> Result<RunEstimate, CliError> {
    let answers = from != ForkFrom::Judge && spec.answerer.is_remote();
    let (mut answered, mut judged) = (Measured::default(), vec![Measured::default(); spec.judges.len()]);
    let mut asked = 0;
    if answers || !spec.judges.is_empty() {
        let profile = &spec.dataset.profile;
        let style = style_rules(profile)?;
        let (banks, effort) = (store.banks(source.run_no, None).await?, counting.effort());
        for row in spread(&banks, effort.banks) {
            let bank = BankData::read(store, row.clone()).await?;
            let questions: Vec<_> = spread(bank.questions(), effort.questions).collect();
            let keys: Vec<TaskKey> = questions.iter().map(|q| TaskKey::question(row.bank_no, q.index)).collect();
            let mut stored = Stored::read(store, source, &keys).await?;
            for (question, key) in questions.into_iter().zip(&keys) {
                asked += 1;
                let gold = bank.gold(&question.question_id).map(|gold| &gold.gold);
                if let Some(hits) = stored.hits.remove(key).filter(|_| answers) {
                    let messages = answer_prompt(style, question, &hits, &bank.content);
                    answered.add(counting.message_tokens(&spec.answerer.name, &messages));
                }
                // a fork that answers anew gets answers of about the same length
                let answer = stored.answers.remove(key).unwrap_or_else(|| stand_in(gold));
                if spec.judges.is_empty() {
                    continue;
                }
                let messages = judge_messages(&JudgeInput::of(profile, question, gold, &answer)?);
                for (judge, measured) in spec.judges.iter().zip(&mut judged) {
                    measured.add(counting.message_tokens(&judge.name, &messages));
                }
            }
        }
    }
    let all = asked == spec.sample.n && from == ForkFrom::Judge;
    let scaled = |guess: TokenGuess| match from {
        ForkFrom::Recall => by_hits(guess, source.spec.system.top_k, spec.system.top_k),
        ForkFrom::Answer | ForkFrom::Judge => guess,
    };
    let answer = answers.then(|| answered.guess(asked == spec.sample.n).map(scaled).unwrap_or_default());
    let judges: Vec<TokenGuess> = judged.into_iter().map(|measured| measured.guess(all).unwrap_or_default()).collect();
    let announcement = announce_spec(&spec.sample, &spec.dataset.population);
    let prompts = Rehearsal { answer, judges, embeddings: None };
    Ok(RunEstimate::of_prompts(app, spec, &prompts, counting, announcement).await)
}

/// Prompts grow with the hits that are asked for; what stands around them is left as room.
fn by_hits(guess: TokenGuess, before: u32, now: u32) -> TokenGuess {
    let scale = |tokens: u64| tokens * u64::from(now.max(1)) / u64::from(before.max(1));
    TokenGuess {
        low: guess.low.min(scale(guess.low)),
        expected: scale(guess.expected),
        worst: guess.worst.max(scale(guess.worst)),
    }
}

/// What the source has stored of some questions.
#[derive(Default)]
struct Stored {
    hits: BTreeMap<TaskKey, Vec<RetrievedHit>>,
    answers: BTreeMap<TaskKey, String>,
}

impl Stored {
    async fn read(store: &dyn Store, source: &RunRow, keys: &[TaskKey]) -> Result<Self, CliError> {
        let mut stored = Self::default();
        for (task, _, text) in store.question_texts(source.run_no, keys).await? {
            match text {
                StepText::Recalled { hits } => {
                    stored.hits.insert(task, hits);
                }
                StepText::Answered { answer, .. } => {
                    stored.answers.insert(task, answer);
                }
                StepText::Judged { .. } => {}
            }
        }
        Ok(stored)
    }
}
