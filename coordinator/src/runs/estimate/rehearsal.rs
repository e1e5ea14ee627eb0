//! The prompts that a run will send, made without sending them: built-in memory systems recall for questions of the sample, and
//! the same prompt builders as in the run make the messages.

use std::{panic::AssertUnwindSafe, sync::Arc};

use bench_grading::{
    judging::{JudgeCall, MOST_CALLS, Next, Replies, keys::Case},
    prompts::{Messages, answer::Instructions, search::rephrasing_messages},
};
use bench_plan::TokenGuess;
use bench_proto::{
    dataset::{BankContent, Gold, GoldRecord, Question},
    ids::Sha256Hash,
    scenario::Scenario,
    spec::{ModelSpec, RunSpec, SystemSpec},
};
use bench_systems::{
    BankRef, BuildContext, MemorySystem, RecallQuery,
    embed::EmbeddingModel,
    facts, registry as systems,
    vector::{self, Prefixes},
};
use bench_worker::answerer::{Shown, answer_prompt, move_prompts};
use futures::FutureExt;

use super::known::KnownCalls;
use crate::planning::PlannedRun;

/// Completion tokens of a reasoned verdict: (low, expected), where the store has no calls to learn from.
pub(super) const VERDICT_TOKENS: (u64, u64) = (10, 18);
/// Tokens that stand around the schema of a reply.
const SCHEMA_OVERHEAD: u64 = 32;

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
    /// Prompt tokens of a call for an answer; `None` when the system cannot be rehearsed here.
    pub answer: Option<TokenGuess>,
    /// Questions that are answered, where the others keep their answers; all of them without it.
    pub answered: Option<u64>,
    /// Prompt tokens of a call for rephrasings; `None` when the run has none.
    pub rephrase: Option<TokenGuess>,
    /// Calls of one vote on every question.
    pub judge_calls: VoteCalls,
    /// Each of them, per judge.
    pub judges: Vec<JudgeGuess>,
    /// Embeddings of banks and of questions, for systems that call a model for them.
    pub embeddings: Option<Embedded>,
    /// What a model is asked about banks, for the system that has it take notes.
    pub notes: Option<Notes>,
    /// Calls of judges that are stored.
    pub known: KnownCalls,
}

/// Calls by which a model takes notes of banks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notes {
    /// How often the model is asked, for all banks.
    pub calls: u64,
    /// Tokens of each of them.
    pub prompt: TokenGuess,
}

/// Calls of one vote on every question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct VoteCalls {
    /// Calls that are expected.
    pub expected: u64,
    /// The most that there can be.
    pub most: u64,
}

/// What a call of a judge needs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JudgeGuess {
    /// Prompt tokens, the reply's schema left out.
    pub prompt: TokenGuess,
    /// Tokens of the reply's schema.
    pub schema: TokenGuess,
    /// The longest reply that is asked for where the model's parameters set no limit, in tokens.
    pub reply: u64,
    /// Tokens of a reply of the forms that are asked for: (low, expected), where the store has no calls to learn from.
    pub said: (u64, u64),
}

/// Embeddings of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Embedded {
    /// Requests for what banks are given.
    pub bank_calls: u64,
    /// Their tokens.
    pub bank: TokenGuess,
    /// Requests for what is searched for, the latency probe's left out.
    pub searches: u64,
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
        self.add_calls(Sent { mean: tokens, longest: tokens });
    }

    /// Adds the calls for a question's answer.
    pub(crate) fn add_calls(&mut self, sent: Sent) {
        self.calls += 1;
        self.tokens += sent.mean;
        self.longest = self.longest.max(sent.longest);
    }

    /// Questions whose calls were measured.
    pub(crate) const fn calls(self) -> u64 {
        self.calls
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

/// Prompt tokens of the calls for a question's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Of each of them, on average.
    pub mean: u64,
    /// Tokens of the longest prompt.
    pub longest: u64,
}

impl Sent {
    /// Those that a run sends for a question. A model that searches by itself is taken to make all its searches, each of which
    /// brings as much as the question's own text does and nothing twice.
    pub(crate) fn for_question(
        spec: &RunSpec,
        instructions: &Instructions,
        shown: Shown<'_>,
        count: impl Fn(&Messages) -> u64,
    ) -> Self {
        let most = spec.recalls.at_most;
        if spec.scenario != Scenario::Agentic {
            let tokens = count(&answer_prompt(instructions, shown));
            return Self { mean: tokens, longest: tokens };
        }
        let [first, second] = move_prompts(instructions, shown, most).map(|messages| count(&messages));
        let found = second.saturating_sub(first) * u64::from(most);
        Self { mean: first + found / 2, longest: first + found }
    }
}

/// Measures the calls of votes.
pub(crate) struct MeasuredVotes<'a> {
    judges: &'a [ModelSpec],
    /// Prompts and schemas, by judge.
    measured: Vec<(Measured, Measured)>,
    questions: u64,
    calls: VoteCalls,
    reply: u64,
    said: (u64, u64),
    /// A call rested on a reply: what the judge really says may make others.
    rested: bool,
}

impl<'a> MeasuredVotes<'a> {
    /// Of these judges; nothing yet.
    pub(crate) fn for_judges(judges: &'a [ModelSpec]) -> Self {
        let measured = vec![(Measured::default(), Measured::default()); judges.len()];
        Self { judges, measured, questions: 0, calls: VoteCalls::default(), reply: 0, said: (0, 0), rested: false }
    }

    /// Adds a vote on an answer: all calls that its program makes when each reply is the one that good answers get. `answered`: it
    /// is the answer that will be graded, and no guess of its length.
    pub(crate) fn add(&mut self, case: &Case<'_>, answered: bool, count: Count<'_>, count_text: CountText<'_>) {
        self.questions += 1;
        let before = self.calls.expected;
        let mut replies = Replies::new();
        while let Next::Ask(mut calls) = case.next(&replies) {
            calls.retain(|call| call.no < MOST_CALLS && !replies.contains_key(&call.no));
            if calls.is_empty() {
                break;
            }
            self.rested |= !replies.is_empty();
            for call in calls {
                self.add_call(&call, count, count_text);
                replies.insert(call.no, call.form.example());
            }
        }
        self.calls.most += u64::from(case.most_calls(answered)).max(self.calls.expected - before);
    }

    fn add_call(&mut self, call: &JudgeCall, count: Count<'_>, count_text: CountText<'_>) {
        self.calls.expected += 1;
        self.reply = self.reply.max(call.form.max_tokens().into());
        let (low, expected) = call.form.tokens();
        self.said = (self.said.0 + low, self.said.1 + expected);
        let schema = call.form.schema().map(|schema| schema.to_string());
        for (judge, (prompts, schemas)) in self.judges.iter().zip(&mut self.measured) {
            prompts.add(count(&judge.name, &call.messages));
            schemas.add(schema.as_ref().map_or(0, |schema| count_text(&judge.name, schema) + SCHEMA_OVERHEAD));
        }
    }

    /// Calls of one vote on each of `n` questions, and what each needs, by judge; `all`: the answers were those that are judged.
    pub(crate) fn guess(self, n: u64, all: bool) -> (VoteCalls, Vec<JudgeGuess>) {
        let of_all = |calls: u64| {
            // where nothing could be measured a vote is one call
            let (calls, of) = if self.questions == 0 { (1, 1) } else { (calls, self.questions) };
            u64::try_from((u128::from(calls) * u128::from(n)).div_ceil(u128::from(of))).unwrap_or(u64::MAX)
        };
        let calls = VoteCalls { expected: of_all(self.calls.expected), most: of_all(self.calls.most) };
        let all = all && !self.rested;
        let said = match self.calls.expected {
            0 => VERDICT_TOKENS,
            made => (self.said.0 / made, self.said.1.div_ceil(made)),
        };
        let of_judge = |(prompts, schemas): (Measured, Measured)| JudgeGuess {
            prompt: prompts.guess(all).unwrap_or_default(),
            schema: TokenGuess { worst: schemas.longest, ..schemas.guess(true).unwrap_or_default() },
            reply: self.reply,
            said,
        };
        (calls, self.measured.into_iter().map(of_judge).collect())
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
    let mut of_system = OfSystem::from_spec(&spec.system);
    let system = stand_in_system(planned, &of_system);
    let (mut answers, mut rephrased) = (Measured::default(), Measured::default());
    let instructions = Instructions::from_profile(&spec.dataset.profile, spec.scenario).ok();
    let mut votes = MeasuredVotes::for_judges(&spec.judges);
    let mut asked = 0;
    for sampled in spread(&planned.sample.banks, effort.banks) {
        let Ok(mut bank) = planned.dataset.bank(sampled.file_index as usize) else { continue };
        if let Some(most) = spec.sample.max_sessions {
            bank.content.keep_sessions(most);
        }
        let content = Arc::new(std::mem::replace(&mut bank.content, empty_content()));
        let place = place_of(&sampled.bank_id, &content);
        of_system.add_bank(&content, sampled.turns, count, count_text);
        for index in spread(&sampled.questions, effort.questions) {
            let Some(question) = bank.questions.get(*index as usize) else { continue };
            let gold = bank.gold.get(*index as usize);
            asked += 1;
            of_system.add_question(&question.text, count_text);
            if spec.recalls.rephrased > 0 {
                let asked_at = question.time_text.as_deref();
                let messages = rephrasing_messages(&question.text, asked_at, spec.recalls.rephrased);
                rephrased.add(count(&spec.answerer.name, &messages));
            }
            if let (Some(system), Some(instructions)) = (&system, &instructions)
                && spec.answerer.is_remote()
            {
                let tokens = |messages: &Messages| count(&spec.answerer.name, messages);
                let sent = sent(system.as_ref(), spec, instructions, &place, (question, gold), &tokens);
                // a system that panics fails its questions, not their estimate
                if let Ok(Some(sent)) = AssertUnwindSafe(sent).catch_unwind().await {
                    answers.add_calls(sent);
                }
            }
            let stand_in = stand_in(gold.map(|gold| &gold.gold));
            let Ok(input) = Case::by_profile(&spec.dataset.profile, question, gold, &stand_in, &content) else {
                continue;
            };
            votes.add(&input, false, count, count_text);
        }
    }
    let all = asked == spec.sample.n;
    let (judge_calls, mut judges) = votes.guess(spec.sample.n, all);
    // what will be judged is only known when it is there
    judges.iter_mut().for_each(|judge| judge.prompt.low = judge.prompt.low.saturating_sub(4));
    Rehearsal {
        answer: answers.guess(all && !of_system.calls_models() && spec.scenario != Scenario::Agentic),
        answered: None,
        rephrase: rephrased.guess(all),
        embeddings: of_system.embeddings(planned, all),
        notes: of_system.notes(planned, all),
        known: KnownCalls::default(),
        judge_calls,
        judges,
    }
}

/// What the run's memory system asks models.
struct OfSystem {
    embeds: Option<EmbeddingModel>,
    before: Prefixes,
    /// Vectors of memories are made, and not given.
    embeds_banks: bool,
    notes: Option<ModelSpec>,
    /// Requests for embeddings of banks, of questions, and for notes.
    given: Measured,
    searched: Measured,
    noted: Measured,
    turns: u64,
}

impl OfSystem {
    fn from_spec(SystemSpec { name, settings, .. }: &SystemSpec) -> Self {
        Self {
            embeds: vector::remote_model(name, settings),
            before: vector::prefixes(settings),
            embeds_banks: vector::embeds_banks(settings),
            notes: facts::chat_model(name, settings),
            given: Measured::default(),
            searched: Measured::default(),
            noted: Measured::default(),
            turns: 0,
        }
    }

    const fn calls_models(&self) -> bool {
        self.embeds.is_some() || self.notes.is_some()
    }

    fn add_bank(&mut self, content: &BankContent, turns: u32, count: Count<'_>, count_text: CountText<'_>) {
        self.turns += u64::from(turns);
        if let Some(model) = self.embeds.as_ref().filter(|_| self.embeds_banks) {
            for request in vector::requests::of_entries(&content.entries, &self.before.text) {
                self.given.add(request.texts.iter().map(|text| count_text(&model.name, text)).sum());
            }
        }
        if let Some(model) = &self.notes {
            let schema = count_text(&model.name, &facts::schema().to_string()) + SCHEMA_OVERHEAD;
            for part in facts::parts(&content.entries) {
                let facts::Prompt { system, user } = part.prompt();
                self.noted.add(count(&model.name, &Messages { system, user }) + schema);
            }
        }
    }

    fn add_question(&mut self, text: &str, count_text: CountText<'_>) {
        if let Some(model) = &self.embeds {
            self.searched.add(count_text(&model.name, &format!("{}{text}", self.before.query)));
        }
    }

    fn embeddings(&self, planned: &PlannedRun, all: bool) -> Option<Embedded> {
        let spec = &planned.spec;
        self.searched.guess(all).map(|question| Embedded {
            bank_calls: of_all_banks(planned, self.given.calls, self.turns),
            bank: self.given.guess(all).unwrap_or_default(),
            searches: spec.sample.n.saturating_mul(u64::from(spec.recalls.most())),
            question,
        })
    }

    fn notes(&self, planned: &PlannedRun, all: bool) -> Option<Notes> {
        let calls = of_all_banks(planned, self.noted.calls, self.turns);
        self.noted.guess(all).map(|prompt| Notes { calls, prompt })
    }
}

/// Calls about all banks of a sample, where so many were for banks of so many turns.
fn of_all_banks(planned: &PlannedRun, calls: u64, turns: u64) -> u64 {
    let of_all: u64 = planned.sample.banks.iter().map(|bank| u64::from(bank.turns)).sum();
    let calls = (u128::from(calls) * u128::from(of_all)).div_ceil(u128::from(turns.max(1)));
    u64::try_from(calls).unwrap_or(u64::MAX)
}

/// The run's memory system where it can be rehearsed: it is computed from items, and embeds nothing that is paid for.
fn stand_in_system(planned: &PlannedRun, of_system: &OfSystem) -> Option<Arc<dyn MemorySystem>> {
    let SystemSpec { name, settings, .. } = &planned.spec.system;
    let (name, settings) = match of_system {
        OfSystem { embeds: Some(_), .. } => (name.as_str(), vector::rehearsed(settings)),
        OfSystem { notes: Some(_), .. } => facts::rehearsed(settings),
        _ => (name.as_str(), settings.clone()),
    };
    let build = || systems::build(name, &settings, &BuildContext::default()).ok();
    planned.capabilities.from_items.then(build).flatten()
}

fn place_of(bank_id: &str, content: &Arc<BankContent>) -> BankRef {
    BankRef {
        name: format!("rehearsal-{bank_id}"),
        handle: None,
        bank_id: bank_id.to_owned(),
        content_hash: Sha256Hash::of_bytes(bank_id.as_bytes()),
        content: Some(Arc::clone(content)),
    }
}

const fn empty_content() -> BankContent {
    BankContent { bank_id: String::new(), speakers: Vec::new(), entries: Vec::new() }
}

/// An answer of likely length: good ones are as long as what is expected.
pub(crate) fn stand_in(gold: Option<&Gold>) -> String {
    match gold {
        Some(Gold::Text(text)) => text.clone(),
        Some(Gold::Rubric(lines)) => lines.join("\n"),
        _ => "it was not mentioned".to_owned(),
    }
}

/// The prompts of a question's answer, of what the system recalls for its text.
async fn sent(
    system: &dyn MemorySystem,
    spec: &RunSpec,
    instructions: &Instructions,
    place: &BankRef,
    (question, gold): (&Question, Option<&GoldRecord>),
    count: &(dyn Fn(&Messages) -> u64 + Sync),
) -> Option<Sent> {
    let content = place.content.as_ref()?;
    let query = RecallQuery {
        evidence: system.capabilities().sees_gold.then(|| gold.map_or(&[][..], |gold| gold.evidence_turns.as_slice())),
        ..RecallQuery::from_question(question, spec.system.top_k, content.entries.len())
    };
    let recall = system.recall(place, &query).await.ok()?;
    Some(Sent::for_question(spec, instructions, Shown { question, gold, hits: &recall.hits, bank: content }, count))
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
    fn votes_are_measured_by_their_calls_and_the_part_that_was_looked_at_stands_for_all() {
        use bench_proto::{dataset::GoldRecord, profile::Profile};
        let judges = [ModelSpec {
            provider: "openai".to_owned(),
            name: "m".to_owned(),
            account: String::new(),
            params: Default::default(),
            prompts: Default::default(),
            version: 1,
        }];
        let (profile, bank) =
            (Profile { only_rubric: Some("judge-lines".to_owned()), ..Profile::implied() }, empty_content());
        let mut votes = MeasuredVotes::for_judges(&judges);
        for lines in [1, 4] {
            let gold = Gold::Rubric((0..lines).map(|line| format!("line {line}")).collect());
            let record = GoldRecord { gold, ..GoldRecord::default() };
            let question = Default::default();
            let input = Case::by_profile(&profile, &question, Some(&record), "an answer", &bank).expect("has a rubric");
            votes.add(&input, false, &|_, messages| messages.user.len() as u64, &|_, text| text.len() as u64);
        }
        let (calls, judges) = votes.guess(10, false);
        assert_eq!((calls, judges.len()), (VoteCalls { expected: 25, most: 25 }, 1));
        assert!(judges[0].reply >= 256 && judges[0].schema.worst > 32, "{judges:?}");
        assert_eq!(judges[0].said, VERDICT_TOKENS, "a reason and a number");
        assert_eq!(MeasuredVotes::for_judges(&[]).guess(10, false).0.most, 10, "nothing was looked at");
    }

    #[test]
    fn calls_that_rest_on_replies_are_measured_as_they_are() {
        use bench_proto::{dataset::GoldRecord, profile::Profile};
        let judges: Vec<ModelSpec> = vec![crate::planning::scenario::nobody()];
        let (profile, bank) =
            (Profile { only_rubric: Some("judge-ordering".to_owned()), ..Profile::implied() }, empty_content());
        let items: Vec<String> = (0..4).map(|item| format!("event number {item}")).collect();
        let record = GoldRecord { gold: Gold::Rubric(items), ..GoldRecord::default() };
        let question = Default::default();
        let answer = stand_in(Some(&record.gold));
        let case = Case::by_profile(&profile, &question, Some(&record), &answer, &bank).expect("has a rubric");
        // what is counted is how many things each call lists
        let things = |messages: &Messages| {
            let shown: serde_json::Value = serde_json::from_str(&messages.user).expect("one object");
            shown["things"].as_array().expect("a list").len() as u64
        };
        let mut votes = MeasuredVotes::for_judges(&judges);
        votes.add(&case, true, &|_, messages| things(messages), &|_, _| 0);
        let (calls, judges) = votes.guess(1, true);
        // of 4, 3, 2 and 1 things, and nobody knows what the judge will really match
        let four = VoteCalls { expected: 4, most: 4 };
        assert_eq!((calls, judges[0].prompt.expected, judges[0].prompt.worst), (four, 3, 4));
        let of_answer = |answer: &str, answered| {
            let case = Case::by_profile(&profile, &question, Some(&record), answer, &bank).expect("has a rubric");
            let mut votes = MeasuredVotes::for_judges(&[]);
            votes.add(&case, answered, &|_, _| 0, &|_, _| 0);
            votes.guess(5, true).0
        };
        let unread = VoteCalls { expected: 20, most: 5 * u64::from(MOST_CALLS) };
        assert_eq!(of_answer(&answer, false), unread, "answers that are not there yet may have any number of lines");
        assert_eq!(of_answer(&"a line\n".repeat(60), true), VoteCalls { expected: 20, most: 300 });
        assert_eq!(of_answer("", true), VoteCalls::default(), "an answer that says nothing is judged without a call");
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
