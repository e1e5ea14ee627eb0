//! The dataset model: banks, an ordered stream to retain, questions with the point after which they may be asked.
//!
//! What a memory system may see ([`BankContent`]), what the answerer may see besides ([`Question`]) and what never leaves
//! the harness ([`GoldRecord`]) are three types, stored as three items (P16), so that a leak is a type error.

mod filter;
mod gold;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::{
    filter::{Filter, FilterParts},
    gold::{Gold, GoldRecord, KeywordRubric, LabelFix},
};
use crate::call::is_default;

/// Facet of questions that may have no answer whatever their category; `yes` for those that have none.
pub const ABSTENTION: &str = "abstention";

/// Facet of questions whose expected answer is wrong; its value says how (`hallucination`).
pub const LABEL_ERROR: &str = "label-error";

/// The months in English, as datasets and answers write dates.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Everything of one bank, as a loader hands it over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bank {
    /// What is retained.
    pub content: BankContent,
    /// What is asked, in the dataset's order.
    pub questions: Vec<Question>,
    /// What is expected, one record per question, in the same order.
    pub gold: Vec<GoldRecord>,
}

impl Bank {
    /// What sampling and planning need of it.
    #[must_use]
    pub fn outline(&self) -> BankOutline {
        let questions = self.questions.iter().zip(&self.gold).map(|(question, gold)| QuestionOutline {
            question_id: question.question_id.clone(),
            category: question.category.clone(),
            ask_after: question.ask_after,
            facets: gold.facets.clone(),
            filters: question.filter.parts(),
            k: question.k,
            file_place: None,
        });
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let entries = &self.content.entries;
        let counted = |is: fn(&StreamEntry) -> bool| count(entries.iter().filter(|entry| is(entry)).count());
        BankOutline {
            bank_id: self.content.bank_id.clone(),
            entries: count(entries.len()),
            continued: counted(StreamEntry::continues),
            updates: counted(|entry| matches!(entry, StreamEntry::Update { memory: Some(_), .. })),
            withdrawals: counted(|entry| matches!(entry, StreamEntry::Update { memory: None, .. })),
            in_several_scopes: counted(|entry| entry.memory().is_some_and(|memory| memory.scopes.len() > 1)),
            turns: count(entries.iter().map(StreamEntry::turns).sum()),
            questions: questions.collect(),
        }
    }
}

/// The part of a bank that a memory system sees.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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

impl BankContent {
    /// Keeps the first `most` sessions; the parts of a session are one, and each memory and update counts as one too.
    pub fn keep_sessions(&mut self, most: u32) {
        let begins = self.entries.iter().enumerate().filter(|(_, entry)| !entry.continues());
        if let Some((at, _)) = begins.take(most as usize + 1).nth(most as usize) {
            self.entries.truncate(at);
        }
    }
}

impl StreamEntry {
    /// Whether it goes on with the session of the entry before it.
    #[must_use]
    pub fn continues(&self) -> bool {
        matches!(self, Self::Session(session) if session.part > 0)
    }

    /// Id of the session or memory. Parts of a session share it, and a withdrawal has that of what it withdraws.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Session(session) => &session.id,
            Self::Memory(memory) | Self::Update { memory: Some(memory), .. } => &memory.id,
            Self::Update { replaces, memory: None } => replaces,
        }
    }

    /// The memory that it brings, alone or in place of another.
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        match self {
            Self::Memory(memory) => Some(memory),
            Self::Update { memory, .. } => memory.as_ref(),
            Self::Session(_) => None,
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

/// A session of a conversation, or a part of one: a long session comes in parts when questions are asked in the middle of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Id unique in the bank, the same for all parts of a session; LoCoMo: `D<session number>`.
    pub id: String,
    /// Number of the part, from 0; parts of a session follow each other.
    #[serde(default, skip_serializing_if = "is_default")]
    pub part: u32,
    /// When it took place, in the dataset's own words (answers quote them).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_text: Option<String>,
    /// `time_text` as `YYYY-MM-DDTHH:MM:SS` without zone, when it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The turns, in order.
    pub turns: Vec<Turn>,
}

impl Session {
    /// When a turn of it was said: its own time where it has one, else that of the session.
    #[must_use]
    pub fn time_of<'a>(&'a self, turn: &'a Turn) -> Time<'a> {
        if turn.has_own_time() { turn.own_time() } else { self.shown_time() }
    }

    /// When it took place.
    #[must_use]
    pub fn shown_time(&self) -> Time<'_> {
        Time { text: self.time_text.as_deref().or(self.time.as_deref()), iso: self.time.as_deref() }
    }
}

/// When something was: in the words that are shown, and as [`Session::time`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Time<'a> {
    /// In the dataset's words; the other form where it has none.
    pub text: Option<&'a str>,
    /// As [`Session::time`], when it could be read.
    pub iso: Option<&'a str>,
}

/// One turn of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// When it was said, as in [`Session::time_text`], where it has a time of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_text: Option<String>,
    /// The same as in [`Session::time`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}

impl Turn {
    /// Whether it has a time that is not just its session's.
    #[must_use]
    pub const fn has_own_time(&self) -> bool {
        self.time_text.is_some() || self.time.is_some()
    }

    /// When it was said or happened, where it says so itself.
    #[must_use]
    pub fn own_time(&self) -> Time<'_> {
        Time { text: self.time_text.as_deref().or(self.time.as_deref()), iso: self.time.as_deref() }
    }

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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Id unique in the bank.
    pub id: String,
    /// The text to retain.
    pub text: String,
    /// Event time as in [`Session::time`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Labels by which a question may restrict what it is answered from; often none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whose it is, where one bank holds the memories of several users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The scopes in which it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Further fields that the memory system may see (a type, aliases).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

/// A question without its answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Id unique in the dataset and stable over its versions; LoCoMo: `<sample_id>:<index in qa>`.
    pub question_id: String,
    /// Id that memory systems see instead, where the dataset's own tells something of the answer (`…_abs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_id: Option<String>,
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
    /// The same as in [`Session::time`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Hits to ask for, where the question has a number of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// What it may be answered from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub filter: Filter,
}

impl Question {
    /// The id that leaves the harness.
    #[must_use]
    pub fn shown_id(&self) -> &str {
        self.shown_id.as_deref().unwrap_or(&self.question_id)
    }
}

/// What sampling and planning need of a bank, without its texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BankOutline {
    /// The dataset's id of the bank.
    pub bank_id: String,
    /// Number of stream entries: sessions or their parts, memories, updates.
    pub entries: u32,
    /// Sessions that are a further part of the session before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub continued: u32,
    /// Entries that replace a memory.
    #[serde(default, skip_serializing_if = "is_default")]
    pub updates: u32,
    /// Entries that take a memory away and put nothing in its place.
    #[serde(default, skip_serializing_if = "is_default")]
    pub withdrawals: u32,
    /// Memories that hold in more than one scope.
    #[serde(default, skip_serializing_if = "is_default")]
    pub in_several_scopes: u32,
    /// Number of turns.
    pub turns: u32,
    /// All questions in the dataset's order.
    pub questions: Vec<QuestionOutline>,
}

impl BankOutline {
    /// Number of whole sessions; memories and updates count as one each.
    #[must_use]
    pub const fn sessions(&self) -> u32 {
        self.entries.saturating_sub(self.continued)
    }
}

/// What sampling needs of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionOutline {
    /// See [`Question::question_id`].
    pub question_id: String,
    /// See [`Question::category`].
    pub category: String,
    /// See [`Question::ask_after`].
    pub ask_after: u32,
    /// See [`GoldRecord::facets`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facets: BTreeMap<String, String>,
    /// Parts of [`Question::filter`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub filters: FilterParts,
    /// See [`Question::k`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// Its place among the questions of its bank in the file, from 0, where a loader has put them into another order. Known to
    /// sampling alone: files have those without an answer at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_place: Option<u32>,
}
