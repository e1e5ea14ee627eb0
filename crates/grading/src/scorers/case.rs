//! What is scored.

use std::sync::LazyLock;

use bench_proto::{
    dataset::{Gold, GoldRecord, Question},
    profile::{CategoryRules, Profile},
    step::{Retrieval, RetrievedHit},
};

/// Everything about a question that a scorer may look at.
#[derive(Debug, Clone, Copy)]
pub struct ScoreCase<'a> {
    /// The question that was answered.
    pub question: &'a Question,
    /// What is expected; `None` when nobody knows.
    pub gold: Option<&'a GoldRecord>,
    /// What the dataset's profile says of the question's category.
    pub rules: &'a CategoryRules,
    /// What was recalled, best first; empty too when nothing was.
    pub hits: &'a [RetrievedHit],
    /// Ranks of the evidence among the hits; `None` when nothing was recalled.
    pub retrieval: Option<&'a Retrieval>,
    /// What was answered; `None` where the scenario has no answers.
    pub answer: Option<&'a str>,
}

/// A question of which nothing is known.
static NOTHING: LazyLock<(Question, Profile)> = LazyLock::new(|| (Question::default(), Profile::implied()));

impl Default for ScoreCase<'_> {
    fn default() -> Self {
        let (question, profile) = &*NOTHING;
        Self { question, gold: None, rules: profile.rules(""), hits: &[], retrieval: None, answer: None }
    }
}

impl<'a> ScoreCase<'a> {
    /// A question of a run before anything was found or answered.
    #[must_use]
    pub fn unanswered(profile: &'a Profile, question: &'a Question, gold: &'a GoldRecord) -> Self {
        Self { question, gold: Some(gold), rules: profile.rules(&question.category), ..Self::default() }
    }

    /// The expected answer.
    #[must_use]
    pub fn gold(&self) -> Option<&'a Gold> {
        self.gold.map(|record| &record.gold)
    }

    /// Texts of which an answer must say one: none for golds that are no texts.
    pub(super) fn gold_texts(&self) -> Vec<String> {
        match self.gold() {
            Some(gold @ (Gold::Text(_) | Gold::Number(_) | Gold::Choice(_))) => vec![gold.text()],
            Some(Gold::AnyOf(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    }
}

/// Scores an answer to a question of one of LoCoMo's categories, or of one that has no rules.
#[cfg(test)]
pub(super) fn score(scorer: &dyn super::Scorer, answer: &str, gold: Option<&Gold>, category: &str) -> Option<f64> {
    let record = gold.map(|gold| GoldRecord { gold: gold.clone(), ..GoldRecord::default() });
    let rules = super::category::rules(category);
    scorer.score(&ScoreCase { answer: Some(answer), gold: record.as_ref(), rules, ..ScoreCase::default() })
}
