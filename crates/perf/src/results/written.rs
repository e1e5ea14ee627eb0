//! The runs that are read: made up question by question, as a run of LoCoMo's shape leaves them.

use std::collections::BTreeMap;

use bench_proto::{
    dataset::{BankContent, Gold, GoldRecord, Question},
    facts::{Outcome, PhaseTimes, PhaseUsage, QuestionFacts},
    ids::{RunId, RunNo, TaskKey},
    scenario::{RecallPlan, Scenario},
    spec::{DatasetSpec, JudgingSpec, Limits, ModelSpec, RunSpec, SPEC_VERSION, SampleSpec, ScorerSpec, SystemSpec},
    step::{RankHits, Retrieval, RetrievedHit, StepNo, StepText},
};
use bench_store::{Item, NewBank, NewRun, RunState, Segment, Store};
use serde::Serialize;

const CATEGORIES: [&str; 5] = ["adversarial", "multi-hop", "open-domain", "single-hop", "temporal"];
/// Questions of a bank, as in LoCoMo.
pub(super) const PER_BANK: u32 = 200;
const METRIC: &str = "locomo-f1";
/// Questions written at once.
const PART: u32 = 20_000;
/// Hits of a recall.
const HITS: u32 = 10;

/// Whether a run has banks, questions, and what was recalled and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texts {
    With,
    Without,
}

/// A finished run of `n` questions; another `variant` has other scores.
pub(super) async fn write_run(store: &dyn Store, id: &str, n: u32, variant: u32, texts: Texts) -> anyhow::Result<()> {
    write_new(store, &new_run(id, spec(n, variant)), n, variant, texts).await
}

/// The same for a run that is to be created as it is.
pub(super) async fn write_new(
    store: &dyn Store,
    new: &NewRun,
    n: u32,
    variant: u32,
    texts: Texts,
) -> anyhow::Result<()> {
    let run = store.create_run(new).await?;
    if texts == Texts::With {
        write_banks(store, run, n).await?;
    }
    for first in (0..n).step_by(PART as usize) {
        let texts_of = |i| if texts == Texts::With { said(i) } else { Vec::new() };
        let part: Vec<_> = (first..n.min(first + PART)).map(|i| (question(i, variant), texts_of(i))).collect();
        store.import_results(run, METRIC, &part, false).await?;
    }
    store.finish_plan(run).await?;
    store.set_run_state(run, &[RunState::Running], RunState::Finished, None).await?;
    Ok(())
}

/// A run of its own lineage, on this machine.
pub(crate) fn new_run(id: &str, spec: RunSpec) -> NewRun {
    NewRun {
        run_id: RunId(id.to_owned()),
        name: None,
        tags: Vec::new(),
        user: "perf".to_owned(),
        spec,
        lineage: id.to_owned(),
        control_of: None,
        domain: "local".to_owned(),
        imported: false,
        code_version: bench_proto::CODE_VERSION.to_owned(),
        group: None,
        waits: false,
        events: Vec::new(),
    }
}

/// Writes a bank with its questions and gold; returns the bytes of its content.
pub(crate) async fn write_bank(
    store: &dyn Store,
    run: RunNo,
    bank_no: u32,
    content: &BankContent,
    (asked, gold): (&[Question], &[GoldRecord]),
    segment: Segment,
) -> anyhow::Result<usize> {
    fn item<T: Serialize + ?Sized>(value: &T) -> anyhow::Result<Item> {
        Ok(Item::from_bytes(serde_json::to_vec(value)?))
    }
    let bank_id = content.bank_id.clone();
    let [content, questions, gold] = [item(content)?, item(asked)?, item(gold)?];
    let bytes = content.bytes.len();
    let bank = NewBank {
        bank_no,
        bank_id,
        content: content.hash,
        questions: questions.hash,
        gold: gold.hash,
        segments: vec![segment],
        filled: None,
        later: None,
    };
    store.put_items(&[content, questions, gold]).await?;
    store.add_banks(run, &[bank]).await?;
    Ok(bytes)
}

/// Banks with their questions and gold; nothing was retained that anybody asks for.
async fn write_banks(store: &dyn Store, run: RunNo, n: u32) -> anyhow::Result<()> {
    for bank_no in 0..n.div_ceil(PER_BANK) {
        let bank_id = format!("conversation-{bank_no}");
        let of_bank = 0..PER_BANK.min(n - bank_no * PER_BANK);
        let asked: Vec<Question> = of_bank.clone().map(|index| asked(bank_no, index)).collect();
        let gold: Vec<GoldRecord> = asked.iter().map(gold).collect();
        let content = BankContent { bank_id, speakers: Vec::new(), entries: Vec::new() };
        let segment = Segment { until: 0, questions: of_bank.collect() };
        write_bank(store, run, bank_no, &content, (&asked, &gold), segment).await?;
    }
    Ok(())
}

fn asked(bank: u32, index: u32) -> Question {
    Question {
        question_id: format!("conversation-{bank}:{index}"),
        index,
        category: CATEGORIES[((bank * PER_BANK + index) % 5) as usize].to_owned(),
        text: format!("When did the speakers of conversation {bank} first talk about subject number {index}?"),
        ..Question::default()
    }
}

fn gold(question: &Question) -> GoldRecord {
    GoldRecord {
        question_id: question.question_id.clone(),
        gold: Gold::Text(format!("in the week before {} May 2023", 1 + question.index % 31)),
        evidence_turns: vec![format!("D{}:3", 1 + question.index % 20), format!("D{}:9", 1 + question.index % 20)],
        evidence_sessions: vec![format!("D{}", 1 + question.index % 20)],
        ..GoldRecord::default()
    }
}

/// What a question recalled and answered: turns as long as LoCoMo's, no two alike.
fn said(i: u32) -> Vec<(StepNo, StepText)> {
    let hit = |rank: u32| RetrievedHit {
        id: format!("D{}:{}", 1 + (i + rank) % 20, 1 + i % 30),
        session_id: format!("D{}", 1 + (i + rank) % 20),
        score: Some(f64::from(HITS - rank) + f64::from(i % 997) / 997.0),
        text: format!(
            "8:{:02} pm on {} May, 2023. Caroline: hit {rank} of question {i} tells how the support group met again, and that \
             nobody had thought {} of them would come",
            i % 60,
            1 + i % 31,
            i.wrapping_mul(2_654_435_761) % 1_000_003
        ),
        ..RetrievedHit::default()
    };
    let answer = format!("{} May 2023", 1 + i % 31);
    vec![
        (StepNo::RECALL, StepText::Recalled { hits: (0..HITS).map(hit).collect() }),
        (StepNo::ANSWER, StepText::Answered { answer, raw: None, citations: Vec::new() }),
    ]
}

/// Facts of a question of a large run.
pub(crate) fn question(i: u32, variant: u32) -> QuestionFacts {
    let bank = i / PER_BANK;
    let hits = RankHits { gold: 2, ranked: 10, ranks: vec![1 + i % 7, 9] };
    let turned = i.wrapping_mul(7_919).wrapping_add(variant * (i % 13)) % 1_001;
    QuestionFacts {
        task: TaskKey::question(bank, i % PER_BANK),
        question_id: format!("conversation-{bank}:{}", i % PER_BANK),
        bank_id: format!("conversation-{bank}"),
        category: CATEGORIES[(i % 5) as usize].to_owned(),
        facets: BTreeMap::new(),
        outcome: Outcome::Scored,
        scores: vec![(METRIC.to_owned(), f64::from(turned) / 1_000.0)],
        retrieval: Some(Retrieval { turn: hits.clone(), session: hits, ..Retrieval::default() }),
        hits: Some(10),
        top1_score: None,
        empty_context: false,
        context_bytes: Some(u64::from(1_000 + i % 3_000)),
        judge_in_doubt: false,
        answer_hash: u64::from(i),
        times: PhaseTimes {
            started_us: 1_700_000_000_000_000 + i64::from(i),
            recall_us: Some(u64::from(i % 999)),
            answer_us: Some(u64::from(i % 99_991)),
            question_us: u64::from(i % 99_999),
            ..PhaseTimes::default()
        },
        usage: PhaseUsage::default(),
        attempts: 2,
        failure: None,
        finish: None,
        kept: None,
    }
}

/// The spec of a run of `n` questions.
pub(crate) fn spec(n: u32, variant: u32) -> RunSpec {
    let population: BTreeMap<String, u64> =
        CATEGORIES.iter().map(|name| ((*name).to_owned(), u64::from(n / 5))).collect();
    RunSpec {
        spec_version: SPEC_VERSION,
        dataset: DatasetSpec {
            name: "locomo-sim".to_owned(),
            version: "1".to_owned(),
            sha256: "0".repeat(64),
            loader: 1,
            population: population.clone(),
            banks: u64::from(n.div_ceil(PER_BANK)),
            sessions: u64::from(n / 8),
            ..DatasetSpec::default()
        },
        sample: SampleSpec {
            preset: "full".to_owned(),
            sampler: "hash".to_owned(),
            sampler_version: 1,
            n: u64::from(n),
            banks: u64::from(n.div_ceil(PER_BANK)),
            by_category: population,
            signature: format!("perf-{n}"),
            census: true,
            ..SampleSpec::default()
        },
        system: SystemSpec {
            name: "bm25".to_owned(),
            version: variant.to_string(),
            top_k: 10,
            settings: BTreeMap::new(),
        },
        scenario: Scenario::default(),
        recalls: RecallPlan::default(),
        answerer: ModelSpec {
            provider: "extractive".to_owned(),
            name: String::new(),
            account: String::new(),
            params: BTreeMap::new(),
            prompts: BTreeMap::new(),
            version: 1,
        },
        judges: Vec::new(),
        votes: 1,
        judging: JudgingSpec::default(),
        scorers: vec![ScorerSpec { name: METRIC.to_owned(), version: 1, ..ScorerSpec::default() }],
        counting: None,
        headline: None,
        limits: Limits::default(),
        canaries: None,
        stop: None,
        lists: false,
        taken_over: Default::default(),
    }
}
