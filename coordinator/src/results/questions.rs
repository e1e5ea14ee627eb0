//! The questions of a run as lines for people and other tools.

use std::collections::{BTreeMap, HashMap};

use bench_proto::{
    facts::{Outcome, QuestionFacts},
    ids::{RunNo, TaskKey, TaskKind, trace_id},
    step::{StepNo, StepText},
    summary::{JudgementLine, QuestionLine, RetrievedLine},
};
use bench_report::html::MOST_QUESTIONS;
use bench_store::{RunRow, Store};
use bench_worker::banks::BankData;

use crate::exit::CliError;

/// Questions whose texts are in memory at once.
const TEXT_PAGE: usize = 256;

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

/// Makes every question's line, bank by bank, until `take` has enough.
///
/// # Errors
/// What the store or `take` meets.
pub(crate) async fn each_question(
    store: &dyn Store,
    run: &RunRow,
    mut take: impl FnMut(QuestionLine) -> Result<bool, CliError>,
) -> Result<(), CliError> {
    for row in store.banks(run.run_no, None).await? {
        let bank_no = row.bank_no;
        let bank = BankData::read(store, row).await?;
        let mut facts = facts_of_bank(store, run.run_no, &bank).await?;
        for questions in bank.questions().chunks(TEXT_PAGE) {
            let keys: Vec<TaskKey> = questions.iter().map(|q| TaskKey::question(bank_no, q.index)).collect();
            let mut texts: BTreeMap<TaskKey, Vec<(StepNo, StepText)>> = BTreeMap::new();
            for (task, step, text) in store.question_texts(run.run_no, &keys).await? {
                texts.entry(task.question_of()).or_default().push((step, text));
            }
            for (question, key) in questions.iter().zip(&keys) {
                let line =
                    question_line(run, &bank, question, facts.remove(key), texts.remove(key).unwrap_or_default());
                if !take(line)? {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Facts of a bank's questions.
///
/// # Errors
/// What the store meets.
pub(crate) async fn facts_of_bank(
    store: &dyn Store,
    run: RunNo,
    bank: &BankData,
) -> Result<HashMap<TaskKey, QuestionFacts>, CliError> {
    let (low, high) = TaskKey::range(TaskKind::Question, bank.row.bank_no);
    let most = u32::try_from(bank.questions().len()).unwrap_or(u32::MAX);
    let page = store.facts(run, Some(TaskKey(low.0 - 1)), most).await?;
    Ok(page.into_iter().filter(|facts| facts.task <= high).map(|facts| (facts.task, facts)).collect())
}

fn question_line(
    run: &RunRow,
    bank: &BankData,
    question: &bench_proto::dataset::Question,
    facts: Option<QuestionFacts>,
    texts: Vec<(StepNo, StepText)>,
) -> QuestionLine {
    let gold = bank.gold(&question.question_id);
    let mut line = QuestionLine {
        question_id: question.question_id.clone(),
        bank_id: bank.content.bank_id.clone(),
        category: question.category.clone(),
        question: question.text.clone(),
        gold: gold.map(|g| g.gold.text()),
        answer: None,
        outcome: Outcome::NotRun,
        scores: BTreeMap::new(),
        retrieved: Vec::new(),
        evidence: gold.map(|g| g.evidence_turns.clone()).unwrap_or_default(),
        evidence_sessions: gold.map(|g| g.evidence_sessions.clone()).unwrap_or_default(),
        citations: Vec::new(),
        failures: Vec::new(),
        judgements: Vec::new(),
        error: None,
        usage: Default::default(),
        timing_ms: Default::default(),
        trace_id: trace_id(&run.run_id, &question.question_id),
        trace_url: None,
        attempts: 0,
    };
    for (_, text) in texts {
        match text {
            StepText::Recalled { hits } => {
                let hit = |h: bench_proto::step::RetrievedHit| RetrievedLine {
                    id: h.id,
                    session_id: h.session_id,
                    score: h.score,
                    text: h.text,
                };
                line.retrieved = hits.into_iter().map(hit).collect();
            }
            StepText::Answered { answer, citations, .. } => {
                line.answer = Some(answer);
                line.citations = citations;
            }
            StepText::Judged { judge, vote, verdict, raw } => {
                line.judgements.push(JudgementLine { judge, vote, verdict, raw })
            }
        }
    }
    if let Some(facts) = facts {
        let headline = run.spec.headline_metric();
        line.failures = bench_aggregate::attribution::attribute(&facts, &headline, 0.5)
            .map(|a| a.name().to_owned())
            .into_iter()
            .collect();
        line.outcome = facts.outcome;
        line.trace_url = facts.kept.and_then(|_| run.spec.limits.trace.link(&line.trace_id));
        line.usage = (&facts.usage).into();
        line.timing_ms = (&facts.times).into();
        line.attempts = facts.attempts;
        line.error = facts.failure.map(|f| f.to_string());
        line.scores = facts.scores.into_iter().collect();
    }
    line
}
