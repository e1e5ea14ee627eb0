//! A line as the result of its question: facts and texts like those of a run of ours, without times, calls and usage.

use std::collections::{BTreeMap, HashMap, HashSet};

use bench_grading::scorers::{ScoreCase, Scorer, abstention::is_abstention, corrected_scores};
use bench_proto::{
    dataset::{BankContent, GoldRecord, Question, StreamEntry},
    facts::{Outcome, QuestionFacts, QuestionIdentity, answer_hash},
    failure::Failure,
    ids::TaskKey,
    profile::Profile,
    step::{HitLevel, PlacedBy, Retrieval, RetrievedHit, StepNo, StepText},
};

use super::{ImportError, fields::Line, grades::Grade};
use crate::{exit::CliError, planning::planner::Prepared};

/// Items of a prepared bank; the first is its content.
const ITEMS_OF_BANK: usize = 3;

/// Facts of a question, with the texts of its steps.
pub(crate) type Graded = (QuestionFacts, Vec<(StepNo, StepText)>);

/// How answers are scored.
pub(crate) struct Grading<'a> {
    /// Metric of the grades that the lines bring.
    pub(crate) metric: Option<&'a str>,
    /// The dataset's scorers.
    pub(crate) scorers: &'a [&'static dyn Scorer],
    /// The dataset's profile.
    pub(crate) profile: &'a Profile,
    /// What counts as an abstention.
    pub(crate) phrases: &'a [String],
}

/// Refuses lines whose question is not in a sample.
///
/// # Errors
/// The first such line, by the id of its question.
pub(crate) fn check_sampled(
    sampled: &HashSet<String>,
    lines: &BTreeMap<String, Line>,
    dataset: &str,
) -> Result<(), ImportError> {
    match lines.iter().find(|(id, _)| !sampled.contains(*id)) {
        Some((id, line)) => {
            let problem =
                format!("question '{id}' is not in the sample of {dataset}; leave the sample's flags out, or the line");
            Err(ImportError::at(&line.place, problem))
        }
        None => Ok(()),
    }
}

/// The results of all lines that are of some prepared banks, in the order of the sample.
///
/// # Errors
/// A bank that cannot be read.
pub(crate) fn of_lines(
    prepared: &Prepared,
    lines: &BTreeMap<String, Line>,
    grading: &Grading<'_>,
) -> Result<Vec<Graded>, CliError> {
    let mut results = Vec::new();
    let contents = prepared.items.iter().step_by(ITEMS_OF_BANK);
    for ((row, bank), content) in prepared.banks.iter().zip(&prepared.parts).zip(contents) {
        let known = KnownIds::read(&content.bytes)?;
        for (question, gold) in bank.questions.iter().zip(&bank.gold) {
            let task = TaskKey::question(row.bank_no, question.index);
            let asked = SampledQuestion { task, bank_id: &bank.bank_id, known: &known, question, gold };
            results.extend(lines.get(&question.question_id).map(|line| asked.result(line, grading)));
        }
    }
    Ok(results)
}

/// Ids of what a bank was given.
struct KnownIds {
    sessions: HashSet<String>,
    /// Turn or memory → its session.
    session_of: HashMap<String, String>,
}

impl KnownIds {
    /// The turns and sessions of a bank, of its content as it is stored.
    fn read(content: &[u8]) -> Result<Self, CliError> {
        let content: BankContent = serde_json::from_slice(content).map_err(|e| {
            CliError::infrastructure(format!("a bank that was just prepared cannot be read: {e}")).because(e)
        })?;
        let mut known = Self { sessions: HashSet::new(), session_of: HashMap::new() };
        for entry in content.entries {
            match entry {
                StreamEntry::Session(session) => {
                    let turns = session.turns.into_iter().map(|turn| (turn.id, session.id.clone()));
                    known.session_of.extend(turns);
                    known.sessions.insert(session.id);
                }
                StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                    known.session_of.insert(memory.id.clone(), memory.id);
                }
                StreamEntry::Update { memory: None, .. } => {}
            }
        }
        Ok(known)
    }

    fn hit(&self, id: &str) -> RetrievedHit {
        let by_name = || id.split_once(':').map_or(id, |(session, _)| session).to_owned();
        let level = match (self.session_of.contains_key(id), self.sessions.contains(id)) {
            (true, _) => HitLevel::Turn,
            (false, true) => HitLevel::Session,
            (false, false) => HitLevel::Unknown,
        };
        RetrievedHit {
            id: id.to_owned(),
            session_id: self.session_of.get(id).cloned().unwrap_or_else(by_name),
            placed_by: (level != HitLevel::Unknown).then_some(PlacedBy::Id),
            level: Some(level),
            ..RetrievedHit::default()
        }
    }
}

/// A question of the sample.
struct SampledQuestion<'a> {
    task: TaskKey,
    bank_id: &'a str,
    known: &'a KnownIds,
    question: &'a Question,
    gold: &'a GoldRecord,
}

impl SampledQuestion<'_> {
    fn result(&self, line: &Line, grading: &Grading<'_>) -> Graded {
        let failed = line.grade == Grade::Failed;
        let abstained = line.answer.as_ref().is_some_and(|answer| is_abstention(answer, grading.phrases));
        let mut texts = Vec::new();
        if let Some(answer) = line.answer.clone() {
            texts.push((StepNo::ANSWER, StepText::Answered { answer, raw: None, citations: Vec::new() }));
        }
        let recalled = line.retrieved.as_ref().map(|ids| {
            let hits: Vec<RetrievedHit> = ids.iter().map(|id| self.known.hit(id)).collect();
            let placed = hits.iter().map(|hit| (hit.id.as_str(), hit.session_id.as_str(), hit.level));
            let retrieval = Retrieval::from_hits(placed, &self.gold.evidence_turns, &self.gold.evidence_sessions);
            (retrieval, hits)
        });
        let case = ScoreCase {
            hits: recalled.as_ref().map_or(&[], |(_, hits)| hits),
            retrieval: recalled.as_ref().map(|(retrieval, _)| retrieval),
            answer: line.answer.as_deref(),
            ..ScoreCase::unanswered(grading.profile, self.question, self.gold)
        };
        let scores = if failed { Vec::new() } else { scores(line, grading, &case) };
        let retrieval = recalled.map(|(retrieval, hits)| {
            texts.push((StepNo::RECALL, StepText::Recalled { hits }));
            retrieval
        });
        let identity = QuestionIdentity {
            task: self.task,
            question_id: self.question.question_id.clone(),
            bank_id: self.bank_id.to_owned(),
            category: self.question.category.clone(),
            facets: self.gold.facets.clone(),
        };
        let outcome = match (failed, abstained) {
            (true, _) => Outcome::InfraError,
            (false, true) => Outcome::Abstained,
            (false, false) => Outcome::Scored,
        };
        let facts = QuestionFacts {
            scores,
            retrieval,
            hits: line.retrieved.as_ref().and_then(|ids| u32::try_from(ids.len()).ok()),
            answer_hash: line.answer.as_deref().map_or(0, answer_hash),
            failure: failed.then(|| Failure::permanent("imported", "the file has no grade for this question")),
            ..QuestionFacts::without_steps(identity, outcome)
        };
        (facts, texts)
    }
}

/// The grade that the line brings, then what the dataset's scorers say of its answer and of what was retrieved for it.
fn scores(line: &Line, grading: &Grading<'_>, case: &ScoreCase<'_>) -> Vec<(String, f64)> {
    let mut scores = Vec::new();
    if let (Grade::Score(score), Some(metric)) = (line.grade, grading.metric) {
        scores.push((metric.to_owned(), score));
    }
    scores.extend(grading.scorers.iter().flat_map(|scorer| scorer.named_scores(case)));
    scores.extend(corrected_scores(grading.scorers, case));
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p45_an_imported_hit_is_a_turn_a_session_or_unknown() {
        let content = br#"{"bank_id":"b","speakers":[],"entries":[{"kind":"session","id":"D1","turns":[{"id":"D1:1","speaker":"A","text":"x"}]}]}"#;
        let known = KnownIds::read(content).expect("reads");
        let seen = |id: &str| (known.hit(id).level, known.hit(id).session_id);
        assert_eq!(seen("D1:1"), (Some(HitLevel::Turn), "D1".to_owned()));
        assert_eq!(seen("D1"), (Some(HitLevel::Session), "D1".to_owned()));
        assert_eq!(seen("D9:1"), (Some(HitLevel::Unknown), "D9".to_owned()));
    }
}
