//! The questions of a run as lines for people and other tools.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bench_aggregate::causes::Known;
use bench_grading::{
    judging::rubric,
    prompts::{answer, search},
};
use bench_proto::{
    dataset::{GoldRecord, Question},
    facts::{Outcome, QuestionFacts},
    ids::{RunNo, TaskKey, TaskKind, trace_id},
    scenario::Scenario,
    spec::ModelSpec,
    step::{HitLevel, PlacedBy, RetrievedHit, StepFacts, StepText},
    summary::{FoundLine, JudgementLine, LineLevel, QuestionLine, RetrievedLine, SearchLine},
};
use bench_report::html::MOST_QUESTIONS;
use bench_store::{BankRow, Results, RunRow, Store};
use bench_systems::{BuildContext, adapter::ADAPTER, registry as systems};
use bench_worker::banks::BankQuestions;
use tokio::runtime::Handle;

use super::{ahead, judgements::Judgements};
use crate::exit::CliError;

/// Questions whose texts are read at once: what is in memory is a few times as much, whatever the size of run and banks.
const TEXT_PAGE: usize = 256;
/// Questions from which reading ahead is worth its threads.
const WORTH_THREADS: u64 = 5_000;

/// The first questions of a run, as many as a page holds.
///
/// # Errors
/// What the store meets.
pub(crate) async fn first_questions(store: &dyn Store, run: &RunRow) -> Result<Vec<QuestionLine>, CliError> {
    let mut first = Vec::new();
    each_question(store, run, |line| {
        first.push(line);
        Ok(first.len() < MOST_QUESTIONS)
    })
    .await?;
    Ok(first)
}

/// Makes every question's line, bank by bank, until `take` has enough. Of large runs the next banks are read, unpacked and
/// parsed on threads of their own while `take` is at work.
///
/// # Errors
/// What the store or `take` meets.
pub(crate) async fn each_question(
    store: &dyn Store,
    run: &RunRow,
    mut take: impl FnMut(QuestionLine) -> Result<bool, CliError>,
) -> Result<(), CliError> {
    let mut take_page = |page| take_page(page, &mut take);
    let banks = store.banks(run.run_no, None).await?;
    if run.spec.sample.n < WORTH_THREADS {
        for row in &banks {
            if !pages(store, run, row, &mut take_page).await? {
                break;
            }
        }
        return Ok(());
    }
    let runtime = Handle::current();
    let read = |row: &BankRow, give: &mut dyn FnMut(Vec<QuestionLine>) -> bool| {
        runtime.block_on(pages(store, run, row, |page| Ok(give(page)))).map(drop)
    };
    tokio::task::block_in_place(|| ahead::in_order(&banks, read, take_page))
}

/// The same for the questions of one bank.
///
/// # Errors
/// What the store or `take` meets.
pub(crate) async fn questions_of_bank(
    store: &dyn Store,
    run: &RunRow,
    bank: &BankRow,
    mut take: impl FnMut(QuestionLine) -> Result<bool, CliError>,
) -> Result<(), CliError> {
    pages(store, run, bank, |page| take_page(page, &mut take)).await.map(drop)
}

/// The lines of some questions of a run, by their ids; `wanted` has the ids of their banks with those of the questions.
///
/// # Errors
/// What the store meets.
pub(crate) async fn questions_named(
    store: &dyn Store,
    run: &RunRow,
    wanted: &BTreeMap<String, BTreeSet<String>>,
) -> Result<HashMap<String, QuestionLine>, CliError> {
    let mut found = HashMap::new();
    for row in store.banks(run.run_no, None).await? {
        let Some(of_bank) = wanted.get(&row.bank_id) else { continue };
        let give = |page: Vec<QuestionLine>| {
            found.extend(page.into_iter().map(|line| (line.question_id.clone(), line)));
            Ok(true)
        };
        pages_of(store, run, &row, |id| of_bank.contains(id), give).await?;
    }
    Ok(found)
}

/// Gives the lines of a page until `take` has enough; whether it wants more.
fn take_page(
    page: Vec<QuestionLine>,
    take: &mut impl FnMut(QuestionLine) -> Result<bool, CliError>,
) -> Result<bool, CliError> {
    for line in page {
        if !take(line)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Gives the lines of a bank page by page, until `give` wants no more; whether it wants more.
async fn pages(
    store: &dyn Store,
    run: &RunRow,
    row: &BankRow,
    give: impl FnMut(Vec<QuestionLine>) -> Result<bool, CliError>,
) -> Result<bool, CliError> {
    pages_of(store, run, row, |_| true, give).await
}

/// The same for the questions whose ids `wants` likes.
async fn pages_of(
    store: &dyn Store,
    run: &RunRow,
    row: &BankRow,
    wants: impl Fn(&str) -> bool,
    mut give: impl FnMut(Vec<QuestionLine>) -> Result<bool, CliError>,
) -> Result<bool, CliError> {
    let asked = BankQuestions::read(store, &run.asked_bank(row)).await?;
    let known = known_of(store, run, row).await?;
    let wanted: Vec<&Question> = asked.asked().filter(|question| wants(&question.question_id)).collect();
    for questions in wanted.chunks(TEXT_PAGE) {
        let keys: Vec<TaskKey> = questions.iter().map(|q| TaskKey::question(row.bank_no, q.index)).collect();
        let facts = store.facts_of(run.run_no, &keys).await?;
        let mut facts: HashMap<TaskKey, QuestionFacts> = facts.into_iter().map(|facts| (facts.task, facts)).collect();
        let mut texts: HashMap<TaskKey, Vec<StepText>> = HashMap::with_capacity(keys.len());
        let mut judgements = Judgements::read(store, run, &keys).await?;
        for (task, _, text) in store.question_texts(run.run_no, &keys).await? {
            match task.kind() {
                TaskKind::Judge => judgements.see(task, text),
                _ => texts.entry(task).or_default().push(text),
            }
        }
        let line = |(question, key): (&&Question, &TaskKey)| {
            let gold = asked.gold(&question.question_id);
            let texts = texts.remove(key).unwrap_or_default();
            let stored = Stored { facts: facts.remove(key), texts, judgements: judgements.of_question(*key) };
            question_line(run, (&row.bank_id, &known), question, gold, stored)
        };
        if !give(questions.iter().zip(&keys).map(line).collect())? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is known of what a bank holds.
async fn known_of(store: &dyn Store, run: &RunRow, row: &BankRow) -> Result<Known, CliError> {
    let capabilities =
        systems::capabilities(&run.spec.system.name, &run.spec.system.settings, &BuildContext::default());
    let mut known = Known::new(!run.imported && capabilities.is_ok_and(|can| can.from_items && !can.derived));
    // behind it are only questions that were asked when the run had stopped and went on
    let closing = row.segments.iter().rposition(|segment| segment.questions.is_empty());
    if let Some(closing) = closing.filter(|_| run.spec.lists) {
        let closing = TaskKey::ready(row.bank_no, u32::try_from(closing).unwrap_or(u32::MAX));
        for stored in store.question_steps(run.run_no, &[closing]).await? {
            if let (true, StepFacts::Ready { holdings: Some(holdings), .. }) = (stored.task == closing, stored.facts) {
                known.add(row.bank_no, *holdings);
            }
        }
    }
    Ok(known)
}

/// Facts of a bank's questions.
///
/// # Errors
/// What the store meets.
pub(crate) async fn facts_of_bank(
    store: &dyn Results,
    run: RunNo,
    (bank_no, bank): (u32, &BankQuestions),
) -> Result<HashMap<TaskKey, QuestionFacts>, CliError> {
    let (low, high) = TaskKey::range(TaskKind::Question, bank_no);
    let most = u32::try_from(bank.questions().len()).unwrap_or(u32::MAX);
    let page = store.facts(run, Some(TaskKey(low.0 - 1)), most).await?;
    Ok(page.into_iter().filter(|facts| facts.task <= high).map(|facts| (facts.task, facts)).collect())
}

/// Names of the prompts that models were given for a question.
fn prompts_of(run: &RunRow, question: &Question, gold: Option<&GoldRecord>, line: &QuestionLine) -> Vec<String> {
    let mut names = Vec::new();
    let mut add = |role: &str, model: &ModelSpec, name: &str| {
        if model.prompts.contains_key(name) {
            names.push(format!("{role}.{name}"));
        }
    };
    if line.answer.is_some() {
        let (profile, has_excerpts) = (&run.spec.dataset.profile, !line.retrieved.is_empty());
        let names = match run.spec.scenario {
            Scenario::Agentic => search::prompt_names(profile, question, gold),
            _ => vec![answer::prompt_name(profile, question, gold, has_excerpts)],
        };
        names.iter().for_each(|name| add("answerer", &run.spec.answerer, name));
    }
    if !line.searches.is_empty() {
        add("answerer", &run.spec.answerer, search::REPHRASE);
    }
    let rubric =
        rubric::rubric_of(&run.spec.dataset.profile, &question.category, gold).map_or("", |rubric| rubric.name);
    for (role, judge) in run.spec.judge_plan().metrics.iter().zip(&run.spec.judges) {
        if line.judgements.iter().any(|judgement| judgement.judge == judge.display()) {
            add(role, judge, rubric);
        }
    }
    names
}

/// What the store holds of a question.
struct Stored {
    facts: Option<QuestionFacts>,
    texts: Vec<StepText>,
    judgements: Vec<JudgementLine>,
}

/// What a step has found or said.
fn add_text(line: &mut QuestionLine, run: &RunRow, text: StepText) {
    match text {
        StepText::Recalled { hits } => {
            // built-in systems make their hits of the stored turns themselves
            let built_in = !run.imported && !run.spec.system.settings.contains_key(ADAPTER);
            let hit = |h: RetrievedHit| RetrievedLine {
                id: h.id,
                session_id: h.session_id,
                score: h.score,
                text: h.text,
                placed_by: h.placed_by.or(built_in.then_some(PlacedBy::Id)),
                level: h.level.or(built_in.then_some(HitLevel::Turn)).map(LineLevel::from),
                details: h.details,
            };
            line.retrieved = hits.into_iter().map(hit).collect();
        }
        StepText::Answered { answer, citations, .. } => {
            line.answer = Some(answer);
            line.answered_by = run.spec.answered_by();
            line.citations = citations;
        }
        StepText::Searched { query, hits } => {
            line.searches.push(SearchLine { query, hits: hits.len() as u64 });
        }
        StepText::Phrased { .. } | StepText::Judged { .. } | StepText::JudgedPart { .. } => {}
    }
}

fn question_line(
    run: &RunRow,
    (bank_id, known): (&str, &Known),
    question: &Question,
    gold: Option<&GoldRecord>,
    stored: Stored,
) -> QuestionLine {
    let Stored { facts, texts, judgements } = stored;
    let mut line = QuestionLine {
        question_id: question.question_id.clone(),
        bank_id: bank_id.to_owned(),
        category: question.category.clone(),
        facets: gold.map(|g| g.facets.clone()).unwrap_or_default(),
        question: question.text.clone(),
        gold: gold.map(|g| g.gold.text()),
        answer: None,
        answered_by: None,
        outcome: Outcome::NotRun,
        scores: BTreeMap::new(),
        retrieved: Vec::new(),
        searches: Vec::new(),
        evidence: gold.map(|g| g.evidence_turns.clone()).unwrap_or_default(),
        evidence_sessions: gold.map(|g| g.evidence_sessions.clone()).unwrap_or_default(),
        original_sessions: gold.map(GoldRecord::original_sessions).unwrap_or_default(),
        found: BTreeMap::new(),
        citations: Vec::new(),
        prompts: Vec::new(),
        failures: Vec::new(),
        cause: None,
        judgements,
        error: None,
        usage: Default::default(),
        timing_ms: Default::default(),
        trace_id: trace_id(&run.run_id, &question.question_id),
        trace_url: None,
        attempts: 0,
    };
    texts.into_iter().for_each(|text| add_text(&mut line, run, text));
    line.prompts = prompts_of(run, question, gold, &line);
    if let Some(facts) = facts {
        let headline = run.spec.headline_metric();
        let (scale, of_recalls) = (run.spec.metric(&headline), run.spec.grades_recalls(&headline));
        let failure = bench_aggregate::attribution::attribute(&facts, &headline, scale, of_recalls);
        line.failures = failure.map(|failure| failure.name().to_owned()).into_iter().collect();
        line.cause = known.cause_of(&facts, &headline, scale, of_recalls);
        line.outcome = facts.outcome;
        line.found = facts.retrieval.as_ref().map(FoundLine::of_levels).unwrap_or_default();
        line.trace_url = facts.kept.and_then(|_| run.spec.limits.trace.link(&line.trace_id));
        line.usage = (&facts.usage).into();
        line.timing_ms = (&facts.times).into();
        line.attempts = facts.attempts;
        line.error = facts.failure.map(|f| f.to_string());
        line.scores = facts.scores.into_iter().collect();
    }
    line
}
