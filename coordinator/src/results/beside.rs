//! What a page tells of questions beside their lines: the words of missed evidence, and prompts as they were sent.
//!
//! A prompt is stored with no question: it follows from what is stored (question, gold, hits, answer) and from words of this build
//! whose hash is in the run's settings. So it is made again, and only where that hash is one of this build's.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bench_grading::{
    judging::{self, Next, Replies, keys::Case},
    prompts::{Messages, answer::Instructions, search},
};
use bench_proto::{
    dataset::{Question, StreamEntry},
    scenario::Scenario,
    spec::ModelSpec,
    step::{HitLevel, RetrievedHit},
    summary::{QuestionLine, RetrievedLine},
};
use bench_report::html::{Beside, SentPrompt, missed, pieces};
use bench_store::{RunRow, Store};
use bench_worker::{
    answerer::{Shown, answer_prompt},
    banks::BankData,
};

use super::questions::first_questions;
use crate::exit::CliError;

/// What is told of each of these questions of a run beside its line, by their ids. A bank of which nothing is needed is not read.
///
/// # Errors
/// What the store meets.
pub(crate) async fn beside(
    store: &dyn Store,
    run: &RunRow,
    questions: &[QuestionLine],
) -> Result<HashMap<String, Beside>, CliError> {
    let prompts = Prompts::of_run(run);
    let mut by_bank: BTreeMap<&str, Vec<&QuestionLine>> = BTreeMap::new();
    for line in questions.iter().filter(|line| !missed(line).is_empty() || prompts.knows_any(line)) {
        by_bank.entry(&line.bank_id).or_default().push(line);
    }
    let mut told = HashMap::with_capacity(questions.len());
    for row in store.banks(run.run_no, None).await? {
        let Some(lines) = by_bank.remove(row.bank_id.as_str()) else { continue };
        let bank = BankData::read(store, row).await?;
        let texts = EvidenceTexts::of_bank(&bank);
        let asked: HashMap<&str, &Question> =
            bank.questions().iter().map(|question| (question.question_id.as_str(), question)).collect();
        for line in lines {
            let evidence = missed(line).into_iter().filter_map(|id| Some((id.to_owned(), texts.text(id)?)));
            let question = asked.get(line.question_id.as_str());
            let prompts = question.map(|question| prompts.sent(&bank, question, line)).unwrap_or_default();
            let beside = Beside { evidence: evidence.collect(), prompts, other: None };
            told.insert(line.question_id.clone(), beside);
        }
    }
    Ok(told)
}

/// The first questions of a run, as many as a page holds, with what is told beside them.
///
/// # Errors
/// What the store meets.
pub(crate) async fn told_questions(
    store: &dyn Store,
    run: &RunRow,
) -> Result<(Vec<QuestionLine>, HashMap<String, Beside>), CliError> {
    let questions = first_questions(store, run).await?;
    let beside = beside(store, run, &questions).await?;
    Ok((questions, beside))
}

/// What turns, memories and sessions of a bank say.
struct EvidenceTexts<'a> {
    /// Of turns and memories.
    turns: HashMap<&'a str, String>,
    sessions: HashMap<&'a str, Vec<String>>,
}

impl<'a> EvidenceTexts<'a> {
    /// Those of a bank.
    fn of_bank(bank: &'a BankData) -> Self {
        let mut texts = Self { turns: HashMap::new(), sessions: HashMap::new() };
        for entry in &bank.content.entries {
            if let StreamEntry::Session(session) = entry {
                texts.turns.extend(session.turns.iter().map(|turn| (turn.id.as_str(), turn.line())));
                let lines = session.turns.iter().map(bench_proto::dataset::Turn::line);
                // the parts of a session share its id
                texts.sessions.entry(&session.id).or_default().extend(lines);
            }
            texts.turns.extend(entry.memory().map(|memory| (memory.id.as_str(), memory.text.clone())));
        }
        texts
    }

    /// What a turn or memory of this id says, or the turns of a session of this id.
    fn text(&self, id: &str) -> Option<String> {
        self.turns.get(id).cloned().or_else(|| self.sessions.get(id).map(|lines| lines.join("\n")))
    }
}

/// The prompts of a run that can be made again.
struct Prompts<'a> {
    run: &'a RunRow,
    instructions: Option<Instructions>,
    /// Names, as questions have them, of prompts whose words are those of this build.
    known: BTreeSet<String>,
}

impl<'a> Prompts<'a> {
    fn of_run(run: &'a RunRow) -> Self {
        let spec = &run.spec;
        let texts = judging::texts(&spec.dataset.profile);
        let judges = spec.judge_plan().metrics.into_iter().zip(&spec.judges);
        let models = std::iter::once(("answerer".to_owned(), &spec.answerer)).chain(judges);
        let of_model = |(role, model): (String, &ModelSpec)| {
            let known = model.prompts.iter().filter(|(_, hash)| texts.contains_key(*hash));
            known.map(|(name, _)| format!("{role}.{name}")).collect::<Vec<_>>()
        };
        let known: BTreeSet<String> = models.flat_map(of_model).collect();
        let instructions = match known.is_empty() {
            true => None,
            false => Instructions::from_profile(&spec.dataset.profile, spec.scenario).ok(),
        };
        Self { run, instructions, known }
    }

    fn knows_any(&self, line: &QuestionLine) -> bool {
        line.prompts.iter().any(|name| self.known.contains(name))
    }

    /// Prompts of a question as they were sent; those that rest on replies that are not stored with it are left out.
    fn sent(&self, bank: &BankData, question: &Question, line: &QuestionLine) -> Vec<SentPrompt> {
        let mut sent: Vec<SentPrompt> = Vec::new();
        for name in line.prompts.iter().filter(|name| self.known.contains(*name)) {
            for (name, messages) in self.messages(name, bank, question, line) {
                let user = pieces(&messages.user, &line.retrieved);
                match sent.iter_mut().find(|same| same.system == messages.system && same.user == user) {
                    Some(same) => same.names.push(name),
                    None => sent.push(SentPrompt { names: vec![name], system: messages.system, user }),
                }
            }
        }
        sent
    }

    /// The messages under a name; of several calls each with its number.
    fn messages(
        &self,
        name: &str,
        bank: &BankData,
        question: &Question,
        line: &QuestionLine,
    ) -> Vec<(String, Messages)> {
        match name.split_once('.') {
            Some(("answerer", search::REPHRASE)) => {
                let (asked_at, n) = (question.time_text.as_deref(), self.run.spec.recalls.rephrased);
                vec![(name.to_owned(), search::rephrasing_messages(&question.text, asked_at, n))]
            }
            Some(("answerer", _)) => {
                self.answering(bank, question, line).map(|messages| (name.to_owned(), messages)).into_iter().collect()
            }
            Some(_) => self.judging(name, bank, question, line),
            None => Vec::new(),
        }
    }

    fn answering(&self, bank: &BankData, question: &Question, line: &QuestionLine) -> Option<Messages> {
        // a model that searches by itself was sent what it had found so far, and of a whole bank no text is stored again
        let is_whole = line.retrieved.iter().any(|hit| hit.text.is_empty());
        if is_whole || self.run.spec.scenario == Scenario::Agentic {
            return None;
        }
        let hits: Vec<RetrievedHit> = line.retrieved.iter().map(stored_hit).collect();
        let gold = bank.gold(&question.question_id);
        let shown = Shown { question, gold, hits: &hits, bank: &bank.content };
        self.instructions.as_ref().map(|instructions| answer_prompt(instructions, shown))
    }

    /// The calls of a vote that rest on no reply: all of them, for most rubrics.
    fn judging(
        &self,
        name: &str,
        bank: &BankData,
        question: &Question,
        line: &QuestionLine,
    ) -> Vec<(String, Messages)> {
        let Some(answer) = &line.answer else { return Vec::new() };
        let gold = bank.gold(&question.question_id);
        let case = Case::by_profile(&self.run.spec.dataset.profile, question, gold, answer, &bank.content);
        let Ok(Next::Ask(calls)) = case.map(|case| case.next(&Replies::new())) else { return Vec::new() };
        let of = calls.len();
        let named = |at: usize| if of == 1 { name.to_owned() } else { format!("{name}, call {} of {of}", at + 1) };
        calls.into_iter().enumerate().map(|(at, call)| (named(at), call.messages)).collect()
    }
}

/// A hit as it is stored.
fn stored_hit(hit: &RetrievedLine) -> RetrievedHit {
    RetrievedHit {
        id: hit.id.clone(),
        session_id: hit.session_id.clone(),
        score: hit.score,
        text: hit.text.clone(),
        placed_by: hit.placed_by,
        level: hit.level.map(HitLevel::from),
        details: hit.details.clone(),
    }
}
