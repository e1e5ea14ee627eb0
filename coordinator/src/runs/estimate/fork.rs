//! What a fork will call, before it does: its prompts are made of what its source has stored.
//!
//! Every question counts as called, but for calls about the same answers that are found in the call store. Other replies that the
//! lineage has paid for are not paid again either, so the truth may be less.

use std::collections::{BTreeMap, HashSet};

use bench_datasets::LabelFixes;
use bench_grading::{
    judging::keys::Case,
    prompts::{answer::Instructions, search::rephrasing_messages},
};
use bench_plan::{TokenGuess, announce_spec};
use bench_proto::{
    dataset::Question,
    ids::TaskKey,
    scenario::{RecallPlan, Scenario},
    spec::RunSpec,
    step::{RetrievedHit, StepNo, StepText},
};
use bench_store::{Results, RunRow, Store};
use bench_systems::vector;
use bench_worker::{
    answerer::Shown,
    banks::{BankData, BankQuestions},
};

use super::{
    Counting, RunEstimate,
    known::{KnownCalls, KnownVotes},
    rehearsal::{Embedded, Measured, MeasuredVotes, Rehearsal, Sent, spread, stand_in},
};
use crate::{app::App, cli::ForkFrom, exit::CliError, planning::panel};

/// A fork that is to be estimated.
pub(crate) struct ForkOf<'a> {
    /// The run whose results are taken over.
    pub(crate) source: &'a RunRow,
    /// The fork's own settings.
    pub(crate) spec: &'a RunSpec,
    /// The first phase that is done anew.
    pub(crate) from: ForkFrom,
    /// Corrections of the answer key that judges are to see.
    pub(crate) fixes: Option<&'a LabelFixes>,
    /// What is answered again, where not all of it is.
    pub(crate) anew: Option<&'a Anew>,
}

/// Questions that are answered again, while the others keep their answers.
pub(crate) struct Anew {
    /// How many there are.
    pub(crate) questions: u64,
    /// The others: they are judged all the same, and their judgements may be stored.
    pub(crate) kept: HashSet<TaskKey>,
    /// Another run has answered them in the same draw: what it has paid for is not paid again.
    pub(crate) drawn: bool,
}

/// The estimate of a fork.
///
/// # Errors
/// What the store meets.
pub(crate) async fn estimate_fork(
    app: &App,
    store: &dyn Store,
    fork: &ForkOf<'_>,
    counting: Counting,
) -> Result<RunEstimate, CliError> {
    let &ForkOf { source, from, .. } = fork;
    let answers = fork.answers();
    let held = fork.held(store).await?;
    // what its source has not is neither called for nor counted
    let mut spec = fork.spec.clone();
    spec.sample.n = held.as_ref().map_or(spec.sample.n, |held| held.len() as u64);
    let spec = &spec;
    let mut measured = MeasuredFork::from_spec(spec);
    if answers || !spec.judges.is_empty() {
        fork.measure(&mut measured, store, held.as_ref(), counting).await?;
    }
    let MeasuredFork { asked, own_hits, answered, rephrased, searched, votes } = measured;
    let known = fork.known(app, store).await?;
    let all = asked == spec.sample.n && from == ForkFrom::Judge;
    let scaled = |guess: TokenGuess| match from {
        ForkFrom::Recall => by_hits(guess, (source.spec.system.top_k, spec.system.top_k), (own_hits, answered.calls())),
        ForkFrom::Answer | ForkFrom::Judge => guess,
    };
    let whole = asked == spec.sample.n && spec.scenario != Scenario::Agentic;
    let answer = answers.then(|| answered.guess(whole).map(scaled).unwrap_or_default());
    let (judge_calls, judges) = votes.guess(spec.sample.n, all);
    let announcement = announce_spec(&spec.sample, &spec.dataset.population);
    let rephrase = rephrased.guess(asked == spec.sample.n);
    // banks stay as the source has built them
    let embeddings = searched.guess(false).map(|question| Embedded {
        bank_calls: 0,
        bank: TokenGuess::default(),
        searches: new_searches(spec.sample.n, spec.scenario, spec.recalls),
        question,
    });
    let others = |anew: &Anew| spec.sample.n.saturating_sub(anew.kept.len() as u64);
    let answered = fork.anew.map(|anew| anew.questions.min(others(anew)));
    let prompts = Rehearsal { answer, answered, rephrase, judge_calls, judges, embeddings, notes: None, known };
    let mut estimate = RunEstimate::of_prompts(app, spec, &prompts, announcement).await;
    if fork.anew.is_some() {
        // what a judge of a sample saves is of runs that judge all anew
        estimate.samples.clear();
    }
    // calls of votes that were not looked at are taken to be as many as those of the others
    let is_rough = asked < spec.sample.n && !spec.judges.is_empty();
    Ok(RunEstimate { is_rough, ..estimate })
}

/// Searches of a fork that recalls anew for texts that its source has not searched for: the question's own is stored with it, unless
/// a model words all searches.
fn new_searches(questions: u64, scenario: Scenario, recalls: RecallPlan) -> u64 {
    let own = u32::from(scenario != Scenario::Agentic);
    questions.saturating_mul(recalls.most().saturating_sub(own).into())
}

/// Prompts of the questions that were looked at.
struct MeasuredFork<'a> {
    /// Questions that were looked at.
    asked: u64,
    /// Of those that are answered anew, the ones that ask for a number of hits of their own.
    own_hits: u64,
    answered: Measured,
    rephrased: Measured,
    /// What is embedded for a search, where that is paid for.
    searched: Measured,
    votes: MeasuredVotes<'a>,
}

impl<'a> MeasuredFork<'a> {
    fn from_spec(spec: &'a RunSpec) -> Self {
        let votes = MeasuredVotes::for_judges(&spec.judges);
        let none = Measured::default();
        Self { asked: 0, own_hits: 0, answered: none, rephrased: none, searched: none, votes }
    }
}

impl ForkOf<'_> {
    /// Whether a model answers anew.
    fn answers(&self) -> bool {
        self.from != ForkFrom::Judge && self.spec.answerer.is_remote()
    }

    /// The questions of which the source has stored what the fork goes on from; none: it asks all of them anew.
    async fn held(&self, store: &dyn Store) -> Result<Option<HashSet<TaskKey>>, CliError> {
        let &Self { source, from, .. } = self;
        let step = match from {
            ForkFrom::Recall => return Ok(None),
            ForkFrom::Judge if source.spec.scenario.answers() => StepNo::ANSWER,
            ForkFrom::Answer | ForkFrom::Judge => StepNo::RECALL,
        };
        let mut held = HashSet::new();
        for row in store.banks(source.run_no, None).await? {
            let bank = BankQuestions::read(store, &row).await?;
            held.extend(panel::with_step(store, source.run_no, (row.bank_no, &bank), step).await?);
        }
        Ok(Some(held))
    }

    /// What is known of the judgements of answers that are there.
    async fn known(&self, app: &App, store: &dyn Store) -> Result<KnownCalls, CliError> {
        let &Self { source, spec, from, anew, .. } = self;
        if !spec.limits.cache.reads() {
            return Ok(KnownCalls::default());
        }
        let has_answers = from == ForkFrom::Judge || anew.is_some();
        let mut known = match has_answers && !spec.judges.is_empty() {
            true => {
                let votes = KnownVotes::of_fork(app, spec).about(anew.map(|anew| &anew.kept));
                votes.look_up(store, source, self.fixes).await?
            }
            false => KnownCalls::default(),
        };
        known.at_most |= anew.is_some_and(|anew| anew.drawn);
        Ok(known)
    }

    /// Looks at questions of all banks that are `held`, as many as `counting` wants.
    async fn measure(
        &self,
        measured: &mut MeasuredFork<'_>,
        store: &dyn Store,
        held: Option<&HashSet<TaskKey>>,
        counting: Counting,
    ) -> Result<(), CliError> {
        let &Self { source, spec, from, .. } = self;
        let instructions = Instructions::from_profile(&spec.dataset.profile, spec.scenario)?;
        let (mut banks, effort) = (store.banks(source.run_no, None).await?, counting.effort());
        if let Some(held) = held {
            let with_some: HashSet<u32> = held.iter().map(|task| task.bank()).collect();
            banks.retain(|row| with_some.contains(&row.bank_no));
        }
        for row in spread(&banks, effort.banks) {
            let bank = BankData::read(store, row.clone()).await?;
            let is_held = |question: &&Question| {
                held.is_none_or(|held| held.contains(&TaskKey::question(row.bank_no, question.index)))
            };
            let asked: Vec<_> = bank.asked().filter(is_held).collect();
            let questions: Vec<_> = spread(&asked, effort.questions).copied().collect();
            let keys: Vec<TaskKey> = questions.iter().map(|q| TaskKey::question(row.bank_no, q.index)).collect();
            let mut stored = Stored::read(store, source, &keys, from).await?;
            for (question, key) in questions.into_iter().zip(&keys) {
                let mut gold = bank.gold(&question.question_id).cloned();
                if let (Some(fixes), Some(gold)) = (self.fixes, &mut gold) {
                    fixes.annotate(gold);
                }
                let stored = stored.take(key);
                let shown = Shown { question, gold: gold.as_ref(), hits: &[], bank: &bank.content };
                self.measure_question(measured, shown, stored, &instructions, counting)?;
            }
        }
        Ok(())
    }

    /// Adds the prompts of a question; `shown` is without the hits, which are among what is stored of it.
    fn measure_question(
        &self,
        measured: &mut MeasuredFork<'_>,
        shown: Shown<'_>,
        stored: StoredOne,
        instructions: &Instructions,
        counting: Counting,
    ) -> Result<(), CliError> {
        let (spec, Shown { question, gold, .. }) = (self.spec, shown);
        let tokens = |messages: &_| counting.message_tokens(&spec.answerer.name, messages);
        measured.asked += 1;
        if let Some(hits) = stored.hits.filter(|_| self.answers()) {
            let shown = Shown { hits: &hits, ..shown };
            measured.answered.add_calls(Sent::for_question(spec, instructions, shown, tokens));
            measured.own_hits += u64::from(question.k.is_some());
        }
        if let (ForkFrom::Recall, Some(model)) =
            (self.from, vector::remote_model(&spec.system.name, &spec.system.settings))
        {
            let before = vector::prefixes(&spec.system.settings).query;
            measured.searched.add(counting.tokens(&model.name, &format!("{before}{}", question.text)));
        }
        if self.from == ForkFrom::Recall && spec.recalls.rephrased > 0 {
            let asked_at = question.time_text.as_deref();
            measured.rephrased.add(tokens(&rephrasing_messages(&question.text, asked_at, spec.recalls.rephrased)));
        }
        if !spec.judges.is_empty() {
            // a fork that answers anew gets answers of about the same length
            let answered = stored.answer.is_some() && self.from == ForkFrom::Judge;
            let answer = stored.answer.unwrap_or_else(|| stand_in(gold.map(|gold| &gold.gold)));
            measured.votes.add(
                &Case::by_profile(&spec.dataset.profile, question, gold, &answer, shown.bank)?,
                answered,
                &|model, messages| counting.message_tokens(model, messages),
                &|model, text| counting.tokens(model, text),
            );
        }
        Ok(())
    }
}

/// Prompts grow with the hits that are asked for; what stands around them is left as room. Of so many questions, `own` ask
/// for a number of their own, which stays what it is.
fn by_hits(guess: TokenGuess, (before, now): (u32, u32), (own, questions): (u64, u64)) -> TokenGuess {
    let (before, now, questions) = (u64::from(before.max(1)), u64::from(now.max(1)), questions.max(1));
    let scale = |tokens: u64| tokens * (own * before + questions.saturating_sub(own) * now) / (questions * before);
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

/// What the source has stored of a question.
struct StoredOne {
    hits: Option<Vec<RetrievedHit>>,
    answer: Option<String>,
}

impl Stored {
    fn take(&mut self, key: &TaskKey) -> StoredOne {
        StoredOne { hits: self.hits.remove(key), answer: self.answers.remove(key) }
    }

    /// Reads it for a fork `from` a phase: one that recalls anew has no use for what several recalls found together.
    async fn read(store: &dyn Results, source: &RunRow, keys: &[TaskKey], from: ForkFrom) -> Result<Self, CliError> {
        let mut stored = Self::default();
        let mut found_first = BTreeMap::new();
        for (task, _, text) in store.question_texts(source.run_no, keys).await? {
            match text {
                StepText::Recalled { hits } => {
                    stored.hits.insert(task, hits);
                }
                StepText::Searched { hits, .. } if from == ForkFrom::Recall => {
                    found_first.entry(task).or_insert(hits);
                }
                StepText::Answered { answer, .. } => {
                    stored.answers.insert(task, answer);
                }
                StepText::Judged { .. }
                | StepText::JudgedPart { .. }
                | StepText::Searched { .. }
                | StepText::Phrased { .. } => {}
            }
        }
        stored.hits.extend(found_first);
        Ok(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_embeds_what_its_source_has_not_searched_for() {
        let of = |scenario, rephrased, at_most| new_searches(50, scenario, RecallPlan { rephrased, at_most });
        assert_eq!(of(Scenario::Answer, 0, 0), 0, "the questions' own texts are stored");
        assert_eq!(of(Scenario::Answer, 2, 0), 100);
        assert_eq!(of(Scenario::Agentic, 0, 5), 250, "a model words them all");
    }

    #[test]
    fn prompts_grow_with_the_hits_of_those_questions_alone_that_have_none_of_their_own() {
        let guess = TokenGuess { low: 900, expected: 1000, worst: 1100 };
        let expected = |hits, own| by_hits(guess, hits, own).expected;
        assert_eq!((expected((10, 20), (0, 50)), expected((10, 5), (0, 50))), (2000, 500));
        assert_eq!(by_hits(guess, (10, 20), (50, 50)), guess, "all ask for their own");
        assert_eq!(expected((10, 20), (25, 50)), 1500);
        assert_eq!(by_hits(guess, (10, 20), (0, 50)), TokenGuess { low: 900, expected: 2000, worst: 2200 });
        assert_eq!(expected((10, 20), (0, 0)), 2000, "nothing was measured");
    }
}
