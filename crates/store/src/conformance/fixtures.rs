//! Builders that make the cases read as stories.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use bench_proto::{
    call::{CallOutcome, CallRecord, Phase, Usage},
    facts::{Outcome, QuestionFacts, QuestionIdentity},
    failure::Failure,
    ids::{Role, RunId, RunNo, Sha256Hash, TaskKey},
    money::PicoUsd,
    scenario::{RecallPlan, Scenario},
    spec::{DatasetSpec, JudgingSpec, Limits, ModelSpec, RunSpec, SampleSpec, ScorerSpec, SystemSpec},
    step::{Effect, Opens, Retrieval, RetrievedHit, StepFacts, StepNo, StepRecord, StepText, Timing},
};

use crate::{ClaimedTask, CommitOutcome, Item, NewBank, NewRun, RunRow, Segment, SessionId, Store, StoreResult};

/// A store of its own in a folder, for tests of what stands on stores.
///
/// # Panics
/// When it cannot be opened.
pub async fn store_in(folder: &Path) -> Arc<dyn Store> {
    let url = format!("sqlite:{}", folder.join("bench.db").display());
    crate::open(&url).await.expect("the store opens")
}

/// The metric that heads the reports of [`spec`].
pub const HEADLINE: &str = "token-f1";

/// The spec of a small run without judges.
#[must_use]
pub fn spec() -> RunSpec {
    let model = ModelSpec {
        provider: "extractive".into(),
        name: String::new(),
        account: String::new(),
        params: BTreeMap::new(),
        prompts: BTreeMap::new(),
        version: 1,
    };
    RunSpec {
        spec_version: 1,
        dataset: DatasetSpec {
            name: "test".into(),
            version: "1".into(),
            sha256: "0".repeat(64),
            loader: 1,
            abstention_phrases: vec!["no information".into()],
            population: BTreeMap::from([("single-hop".into(), 4)]),
            banks: 1,
            sessions: 2,
            ..DatasetSpec::default()
        },
        sample: SampleSpec {
            preset: "full".into(),
            sampler: "hash".into(),
            sampler_version: 1,
            n: 4,
            banks: 1,
            by_category: BTreeMap::from([("single-hop".into(), 4)]),
            signature: "s".into(),
            census: true,
            ..SampleSpec::default()
        },
        system: SystemSpec { name: "lexical".into(), version: "1".into(), top_k: 10, settings: BTreeMap::new() },
        scenario: Scenario::default(),
        recalls: RecallPlan::default(),
        answerer: model,
        judges: vec![],
        votes: 1,
        judging: JudgingSpec::default(),
        scorers: vec![ScorerSpec { name: HEADLINE.into(), version: 1, ..ScorerSpec::default() }],
        counting: None,
        headline: None,
        limits: Limits::default(),
        canaries: None,
        stop: None,
        lists: false,
        taken_over: Default::default(),
    }
}

/// A run of user `ann`.
#[must_use]
pub fn new_run(id: &str) -> NewRun {
    NewRun {
        run_id: RunId(id.into()),
        name: Some(format!("name of {id}")),
        tags: vec!["nightly".into()],
        user: "ann".into(),
        spec: spec(),
        lineage: id.into(),
        control_of: None,
        domain: "local".into(),
        imported: false,
        code_version: "0.0.0".into(),
        group: None,
        waits: false,
        events: Vec::new(),
    }
}

/// A run that is created now, as the store has it.
///
/// # Panics
/// When it cannot be created.
pub async fn created(store: &dyn Store, new: &NewRun) -> RunRow {
    let run = store.create_run(new).await.expect("is created");
    store.run(run).await.expect("is there")
}

/// A bank with segments (entries up to its end, questions).
#[must_use]
pub fn bank(bank_no: u32, segments: &[(u32, &[u32])]) -> NewBank {
    let item = |what: &str| Item::from_bytes(format!("{what} {bank_no}").into_bytes()).hash;
    let segments = segments.iter().map(|(until, questions)| Segment { until: *until, questions: questions.to_vec() });
    NewBank {
        bank_no,
        bank_id: format!("bank-{bank_no}"),
        content: item("content"),
        questions: item("questions"),
        gold: item("gold"),
        segments: segments.collect(),
        filled: None,
        later: None,
    }
}

/// A record that leaves its task going on.
#[must_use]
pub fn record(run: RunNo, task: TaskKey, step: StepNo, epoch: i64, facts: StepFacts) -> StepRecord {
    StepRecord { run, task, step, epoch, facts, text: None, calls: vec![], effect: Effect::Continue }
}

/// A record that ends its task.
#[must_use]
pub fn ending(run: RunNo, task: TaskKey, step: StepNo, epoch: i64, facts: StepFacts, opens: Opens) -> StepRecord {
    StepRecord { effect: Effect::Done { opens }, ..record(run, task, step, epoch, facts) }
}

/// A record that gives its task up.
#[must_use]
pub fn failing(run: RunNo, task: TaskKey, epoch: i64, code: &str) -> StepRecord {
    let failure = Failure::permanent(code, "cannot be done");
    let facts = StepFacts::Failed { failure, usage: Usage::default(), timing: Timing::default() };
    StepRecord { effect: Effect::Failed, ..record(run, task, StepNo::FAILED, epoch, facts) }
}

/// Facts of a retained entry.
#[must_use]
pub fn retained(generation: i64) -> StepFacts {
    StepFacts::Retained { generation, turns: 3, usage: Usage::default(), timing: Timing::default() }
}

/// Facts of a proven segment.
#[must_use]
pub fn proven() -> StepFacts {
    StepFacts::Ready {
        polls: 1,
        proven: true,
        returned: false,
        stats: Default::default(),
        canary: None,
        holdings: None,
        timing: Timing::default(),
    }
}

/// Facts of a recall.
#[must_use]
pub fn recalled() -> StepFacts {
    StepFacts::Recalled {
        generation: 1,
        hits: 1,
        effective_k: 10,
        context_bytes: 20,
        top1_score: None,
        retrieval: Retrieval::default(),
        usage: Usage::default(),
        timing: Timing { total_us: 5, attempts: 1, ..Timing::default() },
    }
}

/// Facts of an answer.
#[must_use]
pub fn answered() -> StepFacts {
    StepFacts::Answered { finish: "stop".into(), usage: Usage::default(), timing: Timing::default() }
}

/// Facts of deterministic scores.
#[must_use]
pub fn scored(score: f64) -> StepFacts {
    StepFacts::Scored { scores: vec![(HEADLINE.into(), score)], abstained: false, answer_hash: u64::MAX }
}

/// Facts of a vote.
#[must_use]
pub fn judged(score: f64) -> StepFacts {
    StepFacts::Judged { score: Some(score), parts: vec![], usage: Usage::default(), timing: Timing::default() }
}

/// Facts of the reply to one call of a vote.
#[must_use]
pub fn judged_part() -> StepFacts {
    StepFacts::JudgedPart { usage: Usage::default(), timing: Timing::default() }
}

/// The text of an answer.
#[must_use]
pub fn answer_text(answer: &str) -> StepText {
    StepText::Answered { answer: answer.into(), raw: None, citations: vec![] }
}

/// The text of a recall.
#[must_use]
pub fn recall_text(text: &str) -> StepText {
    let (id, session_id, text) = ("t1".into(), "s1".into(), text.into());
    let hit = RetrievedHit { id, session_id, score: Some(0.5), text, ..RetrievedHit::default() };
    StepText::Recalled { hits: vec![hit] }
}

/// A paid attempt with its own id.
#[must_use]
pub fn call(asked: &str, outcome: CallOutcome, cost: i64) -> CallRecord {
    CallRecord {
        attempt_id: uuid::Uuid::now_v7(),
        key: Sha256Hash::of_bytes(asked.as_bytes()),
        phase: Phase::Answer,
        outcome,
        reply: format!("reply to {asked}"),
        finish: "stop".into(),
        model: "model-1".into(),
        prompt_tokens: 10,
        completion_tokens: 2,
        cost: PicoUsd(cost),
        duration_us: 900,
    }
}

/// Facts of an ended question.
#[must_use]
pub fn question_facts(task: TaskKey, outcome: Outcome, score: f64) -> QuestionFacts {
    let identity = QuestionIdentity {
        task,
        question_id: format!("bank-{}:{}", task.bank(), task.index()),
        bank_id: format!("bank-{}", task.bank()),
        category: "single-hop".into(),
        facets: BTreeMap::from([("abstention".to_owned(), "no".to_owned())]),
    };
    let scores = if outcome == Outcome::Scored { vec![(HEADLINE.into(), score)] } else { vec![] };
    QuestionFacts { scores, answer_hash: u64::MAX, attempts: 1, ..QuestionFacts::without_steps(identity, outcome) }
}

/// A run in a store, with one worker session.
pub struct Scene<'s> {
    /// The store that is tried.
    pub store: &'s dyn Store,
    /// Number of the run in it.
    pub run: RunNo,
    /// The worker's session.
    pub session: SessionId,
}

impl<'s> Scene<'s> {
    /// Creates run `r`, plans its banks and opens a session.
    pub async fn start(store: &'s dyn Store, banks: &[NewBank]) -> Self {
        Self::start_as(store, &new_run("r"), banks).await
    }

    /// The same of a run with settings of its own.
    pub async fn start_as(store: &'s dyn Store, new: &NewRun, banks: &[NewBank]) -> Self {
        let run = store.create_run(new).await.expect("a new run is created");
        store.add_banks(run, banks).await.expect("banks are added");
        store.finish_plan(run).await.expect("the plan is finished");
        let session = store.open_session("w1", "local", "{}").await.expect("a session opens");
        Self { store, run, session }
    }

    /// Keys of ready tasks of a role.
    pub async fn ready(&self, role: Role) -> Vec<TaskKey> {
        let ready = self.store.ready_tasks(self.run, role, 1000).await.expect("ready tasks are read");
        ready.into_iter().map(|ready| ready.task).collect()
    }

    /// Claims one task that must be free.
    pub async fn claim(&self, task: TaskKey) -> ClaimedTask {
        let claimed = self.store.claim(self.session, &[(self.run, task)]).await.expect("claiming works");
        assert_eq!(claimed.len(), 1, "{task:?} must be free");
        claimed[0]
    }

    /// Tries to commit.
    pub async fn try_commit(&self, records: &[StepRecord]) -> StoreResult<CommitOutcome> {
        self.store.commit(records).await
    }

    /// Stores records as one commit, which has to succeed.
    pub async fn commit(&self, records: &[StepRecord]) -> CommitOutcome {
        self.store.commit(records).await.expect("the batch is stored")
    }

    /// Retains the entries `from..until` of a bank's segment and ends its task.
    pub async fn retain(&self, bank: u32, segment: u32, from: u32, until: u32) -> CommitOutcome {
        let generation = self.bank(bank).await.generation;
        let task = TaskKey::retain(bank, segment);
        let epoch = self.claim(task).await.epoch;
        let mut records: Vec<StepRecord> =
            (from..until).map(|at| record(self.run, task, StepNo::retain(at), epoch, retained(generation))).collect();
        if let Some(last) = records.last_mut() {
            last.effect = Effect::Done { opens: Opens::ReadyTask };
        }
        self.commit(&records).await
    }

    /// Proves a bank's segment ready.
    pub async fn prove(&self, bank: u32, segment: u32) -> CommitOutcome {
        let task = TaskKey::ready(bank, segment);
        let epoch = self.claim(task).await.epoch;
        self.commit(&[ending(self.run, task, StepNo::READY, epoch, proven(), Opens::SegmentQuestions)]).await
    }

    /// Retains and proves the only segment of a bank.
    pub async fn make_ready(&self, bank: u32, until: u32) {
        self.retain(bank, 0, 0, until).await;
        self.prove(bank, 0).await;
    }

    /// Claims a question and stores its recall; returns the epoch.
    pub async fn recall(&self, question: TaskKey) -> i64 {
        let epoch = self.claim(question).await.epoch;
        self.commit(&[record(self.run, question, StepNo::RECALL, epoch, recalled())]).await;
        epoch
    }

    /// Records of a whole question.
    #[must_use]
    pub fn whole_question(&self, question: TaskKey, epoch: i64, score: f64, opens: Opens) -> Vec<StepRecord> {
        vec![
            record(self.run, question, StepNo::RECALL, epoch, recalled()),
            record(self.run, question, StepNo::ANSWER, epoch, answered()),
            ending(self.run, question, StepNo::SCORE, epoch, scored(score), opens),
        ]
    }

    /// Claims a question and stores all its steps.
    pub async fn answer(&self, question: TaskKey, score: f64, opens: Opens) -> CommitOutcome {
        let epoch = self.claim(question).await.epoch;
        let current = self.bank(question.bank()).await.generation;
        let mut records = self.whole_question(question, epoch, score, opens);
        for record in &mut records {
            if let StepFacts::Recalled { generation, .. } = &mut record.facts {
                *generation = current;
            }
        }
        self.commit(&records).await
    }

    /// Claims a task and gives it up.
    pub async fn give_up(&self, task: TaskKey, code: &str) -> CommitOutcome {
        let epoch = self.claim(task).await.epoch;
        self.commit(&[failing(self.run, task, epoch, code)]).await
    }

    /// Concludes a question.
    pub async fn conclude(&self, question: TaskKey, outcome: Outcome, score: f64) -> u64 {
        let facts = [question_facts(question, outcome, score)];
        self.store.store_facts(self.run, HEADLINE, &facts).await.expect("facts are stored")
    }

    /// A bank's row.
    pub async fn bank(&self, bank_no: u32) -> crate::BankRow {
        let banks = self.store.banks(self.run, Some(&[bank_no])).await.expect("banks are read");
        banks.into_iter().next().expect("the bank is there")
    }

    /// The run's counters.
    pub async fn counters(&self) -> crate::RunCounters {
        self.store.run(self.run).await.expect("the run is read").counters
    }
}
