//! What is expected of an answer: the gold, which no memory system and no answerer sees.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::LABEL_ERROR;
use crate::assertions::Assertions;

/// What is expected of a question. Never sent to a memory system or an answerer; model judges see [`Gold`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GoldRecord {
    /// The question that it is the gold of.
    pub question_id: String,
    /// The expected answer.
    pub gold: Gold,
    /// Ids of the turns that hold the evidence, repaired, in the dataset's order, without repeats.
    pub evidence_turns: Vec<String>,
    /// Ids of the sessions that hold the evidence.
    pub evidence_sessions: Vec<String>,
    /// Name of the rubric by which it is graded, in place of what the profile says of its category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// Name of the style in which it is answered, in place of what the profile says of its category. Here because it may tell
    /// why: an answerer is told the form alone, a memory system nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
    /// What it counts as beside its category: facet → value (`abstention` → `yes`). In the gold because some tell the answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facets: BTreeMap<String, String>,
    /// Fields that stay in the harness (a published wrong answer, the raw evidence).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hidden: BTreeMap<String, serde_json::Value>,
    /// What is known to be wrong with the expected answer; see [`crate::label_fixes`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<LabelFix>,
}

/// What is wrong with the expected answer of a question, and what is right.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelFix {
    /// The kind of the mistake, in the words of its source: `temporal-error`.
    pub kind: String,
    /// The corrected answer; none where the source does not know it either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gold: Option<Gold>,
}

impl GoldRecord {
    /// Key of [`GoldRecord::hidden`] under which a loader keeps the ids that evidence sessions have in its files, by those
    /// that it gives them: for datasets whose own ids tell which sessions are evidence.
    pub const SESSION_IDS: &str = "session_ids";

    /// Evidence session → its id in the dataset's files, where a loader has given it another.
    #[must_use]
    pub fn original_sessions(&self) -> BTreeMap<String, String> {
        let original =
            |(id, original): (&String, &serde_json::Value)| Some((id.clone(), original.as_str()?.to_owned()));
        let ids = self.hidden.get(Self::SESSION_IDS).and_then(serde_json::Value::as_object);
        ids.into_iter().flatten().filter_map(original).collect()
    }

    /// Notes what is wrong with the record, in place of what an earlier source has said of it.
    pub fn annotate(&mut self, fix: Option<&LabelFix>) {
        self.facets.remove(LABEL_ERROR);
        self.facets.extend(fix.map(|fix| (LABEL_ERROR.to_owned(), fix.kind.clone())));
        self.fix = fix.cloned();
    }

    /// The record with the corrected answer as its gold, where it is wrong and the right one is known.
    #[must_use]
    pub fn corrected(&self) -> Option<Self> {
        let gold = self.fix.as_ref()?.gold.clone()?;
        Some(Self { gold, fix: None, ..self.clone() })
    }
}

/// The expected answer, of one of several kinds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum Gold {
    /// Free text.
    Text(String),
    /// A number, printed as in the data.
    Number(serde_json::Number),
    /// The letter or text of the right option.
    Choice(String),
    /// Texts of which any one is right.
    AnyOf(Vec<String>),
    /// Criteria, each judged apart.
    Rubric(Vec<String>),
    /// Words that must and must not occur.
    Keywords(KeywordRubric),
    /// What a recall must and must not bring back.
    Retrieval {
        /// Ids or texts that must be found.
        must: Vec<String>,
        /// Ids or texts that must not be found.
        must_not: Vec<String>,
    },
    /// What of a memory must and must not surface, list by list.
    Assertions(Box<Assertions>),
    /// Unanswerable: the right answer says so.
    #[default]
    Abstain,
    /// The same, with what the dataset says of it: an explanation for judges, no answer that is scored.
    Unanswerable(String),
}

/// What an answer must and must not contain; substrings, without regard to case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeywordRubric {
    /// Each must occur.
    pub required_keywords: Vec<String>,
    /// Each earns a tenth.
    pub acceptable_paraphrases: Vec<String>,
    /// None may occur.
    pub incorrect_patterns: Vec<String>,
    /// What is graded of the answer, with the weight of each; empty: one grade.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dimension_weights: BTreeMap<String, f64>,
    /// The answer as a person would give it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl GoldRecord {
    /// Adds a turn that holds the evidence, with its session (for a memory both are its id): each once.
    pub fn add_evidence(&mut self, session: &str, turn: &str) {
        self.add_evidence_session(session);
        if !self.evidence_turns.iter().any(|known| known == turn) {
            self.evidence_turns.push(turn.to_owned());
        }
    }

    /// Adds a session that holds the evidence, where nobody knows in which turn: once.
    pub fn add_evidence_session(&mut self, session: &str) {
        if !self.evidence_sessions.iter().any(|known| known == session) {
            self.evidence_sessions.push(session.to_owned());
        }
    }

    /// Whether an empty recall says nothing about the memory system being in order: it is right, because nothing answers and
    /// nothing misleads, or what surfaces is itself what is graded.
    #[must_use]
    pub fn may_be_met_by_silence(&self) -> bool {
        let has_evidence = !(self.evidence_turns.is_empty() && self.evidence_sessions.is_empty());
        let is_graded = matches!(self.gold, Gold::Assertions(_));
        is_graded || self.gold.expects_nothing() || (self.gold.is_unanswerable() && !has_evidence)
    }
}

impl Gold {
    /// Whether the right recall brings nothing back.
    #[must_use]
    pub fn expects_nothing(&self) -> bool {
        match self {
            Self::Retrieval { must, .. } => must.is_empty(),
            Self::Assertions(assertions) => assertions.relevant.should_only_include.as_ref().is_some_and(Vec::is_empty),
            _ => false,
        }
    }

    /// The gold as a person reads it.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) | Self::Choice(text) | Self::Unanswerable(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::AnyOf(texts) | Self::Rubric(texts) => texts.join("\n"),
            Self::Keywords(rubric) => rubric.answer.clone().unwrap_or_else(|| rubric.required_keywords.join("\n")),
            Self::Assertions(assertions) => assertions.text(),
            Self::Retrieval { must, .. } => must.join("\n"),
            Self::Abstain => "No information available".to_owned(),
        }
    }

    /// Whether the right answer says that there is none.
    #[must_use]
    pub fn is_unanswerable(&self) -> bool {
        matches!(self, Self::Abstain | Self::Unanswerable(_))
    }
}
