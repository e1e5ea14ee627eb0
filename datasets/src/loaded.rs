//! A dataset that was read from files: all of it is in memory.

use std::collections::BTreeMap;

use bench_proto::dataset::{Bank, BankOutline, QuestionOutline, StreamEntry};
use serde_json::Value;

use crate::{Dataset, DatasetError, Manifest, sources::Sources};

/// The banks of a dataset with what is known of its files.
#[derive(Debug)]
pub(crate) struct Loaded {
    manifest: &'static Manifest,
    sha256: String,
    modified: bool,
    banks: Vec<Bank>,
    notes: Vec<String>,
}

impl Loaded {
    /// What a loader made of its files, and what did not resolve.
    pub(crate) fn new(manifest: &'static Manifest, sources: &Sources, banks: Vec<Bank>, notes: Vec<String>) -> Self {
        Self { manifest, sha256: sources.sha256.clone(), modified: sources.modified, banks, notes }
    }

    fn bank_ref(&self, bank: usize) -> Result<&Bank, DatasetError> {
        self.banks.get(bank).ok_or_else(|| DatasetError::no_bank(self.manifest.name, bank, self.banks.len()))
    }
}

impl Dataset for Loaded {
    fn manifest(&self) -> &'static Manifest {
        self.manifest
    }

    fn sha256(&self) -> &str {
        &self.sha256
    }

    fn is_modified(&self) -> bool {
        self.modified
    }

    fn settings(&self) -> BTreeMap<String, Value> {
        BTreeMap::new()
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn bank_count(&self) -> usize {
        self.banks.len()
    }

    fn outline(&self, bank: usize) -> Result<BankOutline, DatasetError> {
        let bank = self.bank_ref(bank)?;
        let questions = bank.questions.iter().map(|question| QuestionOutline {
            question_id: question.question_id.clone(),
            category: question.category.clone(),
            ask_after: question.ask_after,
        });
        Ok(BankOutline {
            bank_id: bank.content.bank_id.clone(),
            entries: count(bank.content.entries.len()),
            turns: count(bank.content.entries.iter().map(StreamEntry::turns).sum()),
            questions: questions.collect(),
        })
    }

    fn bank(&self, bank: usize) -> Result<Bank, DatasetError> {
        self.bank_ref(bank).cloned()
    }
}

/// A number of things that fit into memory.
pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
