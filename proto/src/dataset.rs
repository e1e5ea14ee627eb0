//! The dataset model: banks, an ordered stream to retain, questions with the point after which they may be asked.
//!
//! What a memory system may see ([`BankContent`]), what the answerer may see besides ([`Question`]) and what never leaves
//! the harness ([`GoldRecord`]) are three types, stored as three items (P16), so that a leak is a type error.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything of one bank, as a loader hands it over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bank {
    /// What is retained.
    pub content: BankContent,
    /// What is asked, in the dataset's order.
    pub questions: Vec<Question>,
    /// What is expected, one record per question, in the same order.
    pub gold: Vec<GoldRecord>,
}

/// The part of a bank that a memory system sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BankContent {
    /// The dataset's id of the bank, such as LoCoMo's `sample_id`.
    pub bank_id: String,
    /// Names of the speakers, in the dataset's order; empty when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speakers: Vec<String>,
    /// The stream, in the order in which it has to be retained.
    pub entries: Vec<StreamEntry>,
}

/// One thing to retain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StreamEntry {
    /// A session of a conversation.
    Session(Session),
    /// A single memory that is not part of a conversation.
    Memory(Memory),
    /// Something that replaces or withdraws an earlier memory.
    Update {
        /// Id of the memory that is replaced.
        replaces: String,
        /// The new memory; absent when the old one is withdrawn.
        memory: Option<Memory>,
    },
}

impl StreamEntry {
    /// Id of the entry, unique in its bank.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Session(session) => &session.id,
            Self::Memory(memory) | Self::Update { memory: Some(memory), .. } => &memory.id,
            Self::Update { replaces, memory: None } => replaces,
        }
    }

    /// Number of turns (memories count as one).
    #[must_use]
    pub fn turns(&self) -> usize {
        match self {
            Self::Session(session) => session.turns.len(),
            Self::Memory(_) | Self::Update { .. } => 1,
        }
    }
}

/// A session of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Id unique in the bank; LoCoMo: `D<session number>`.
    pub id: String,
    /// When it took place, in the dataset's own words (answers quote them).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_text: Option<String>,
    /// The same as `YYYY-MM-DDTHH:MM:SS` without zone, when it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The turns, in order.
    pub turns: Vec<Turn>,
}

/// One turn of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Id unique in the bank; LoCoMo: `D<session>:<turn>`.
    pub id: String,
    /// Who speaks.
    pub speaker: String,
    /// What is said.
    pub text: String,
    /// Description of a shared image, visible to the speakers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
}

impl Turn {
    /// The turn as one line that systems retain and models read: `speaker: text [shares an image: caption]`.
    #[must_use]
    pub fn line(&self) -> String {
        match &self.caption {
            Some(caption) => format!("{}: {} [shares an image: {caption}]", self.speaker, self.text),
            None => format!("{}: {}", self.speaker, self.text),
        }
    }
}

/// A single memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Id unique in the bank.
    pub id: String,
    /// The text to retain.
    pub text: String,
    /// Event time as in [`Session::time`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Further fields that the memory system may see (scopes, tags).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

/// A question without its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Id unique in the dataset and stable over its versions; LoCoMo: `<sample_id>:<index in qa>`.
    pub question_id: String,
    /// Index in the bank's list of the whole dataset (not of the sample): part of the task key.
    pub index: u32,
    /// Category name.
    pub category: String,
    /// The question's text, as published.
    pub text: String,
    /// Number of stream entries after which it may be asked; the bank's length when it is asked at the end.
    pub ask_after: u32,
    /// Options of a multiple-choice question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// When the question is asked, as in [`Session::time_text`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_text: Option<String>,
}

/// What is expected of a question. Never sent to a memory system or an answerer; model judges see [`Gold`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoldRecord {
    /// Id of the question.
    pub question_id: String,
    /// The expected answer.
    pub gold: Gold,
    /// Ids of the turns that hold the evidence, repaired, in the dataset's order, without repeats.
    pub evidence_turns: Vec<String>,
    /// Ids of the sessions that hold the evidence.
    pub evidence_sessions: Vec<String>,
    /// Fields that stay in the harness (a published wrong answer, the raw evidence).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hidden: BTreeMap<String, serde_json::Value>,
}

/// The expected answer, of one of several kinds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum Gold {
    /// Free text.
    Text(String),
    /// A number, printed as in the data.
    Number(serde_json::Number),
    /// The letter or text of the right option.
    Choice(String),
    /// Criteria, each judged apart.
    Rubric(Vec<String>),
    /// What a recall must and must not bring back.
    Retrieval {
        /// Ids or texts that must be found.
        must: Vec<String>,
        /// Ids or texts that must not be found.
        must_not: Vec<String>,
    },
    /// Unanswerable: the right answer says so.
    Abstain,
}

impl Gold {
    /// The gold as a person reads it.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) | Self::Choice(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Rubric(lines) => lines.join("\n"),
            Self::Retrieval { must, .. } => must.join("\n"),
            Self::Abstain => "No information available".to_owned(),
        }
    }
}

/// What sampling and planning need of a bank, without its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BankOutline {
    /// The dataset's id of the bank.
    pub bank_id: String,
    /// Number of stream entries (sessions).
    pub entries: u32,
    /// Number of turns.
    pub turns: u32,
    /// All questions in the dataset's order.
    pub questions: Vec<QuestionOutline>,
}

/// What sampling needs of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionOutline {
    /// See [`Question::question_id`].
    pub question_id: String,
    /// See [`Question::category`].
    pub category: String,
    /// See [`Question::ask_after`].
    pub ask_after: u32,
}
