//! From what a system hands back to the dataset's ids: by id, by the tag that `{tagged}` puts before a text, by the text.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use bench_proto::{
    dataset::{BankContent, StreamEntry},
    ids::Sha256Hash,
};

use super::{
    items::{items_of, whole_id},
    spec::Unit,
};

/// Banks that are kept.
const KEPT: usize = 32;

/// The ids and texts of a bank.
#[derive(Debug, Default)]
pub(super) struct BankIndex {
    session_of: HashMap<String, String>,
    id_of: HashMap<String, String>,
}

impl BankIndex {
    fn build(content: &BankContent, unit: Unit) -> Self {
        let mut index = Self::default();
        for entry in &content.entries {
            if let StreamEntry::Session(session) = entry {
                index.session_of.insert(session.id.clone(), session.id.clone());
                for turn in &session.turns {
                    index.session_of.insert(turn.id.clone(), session.id.clone());
                }
            }
        }
        for item in items_of(&content.entries, unit, None) {
            let (id, texts) = item.texts();
            for text in texts {
                index.id_of.entry(text).or_insert_with(|| id.clone());
            }
        }
        index
    }

    /// (id, session, text) of a hit. What is not known keeps the system's own id.
    pub(super) fn place(&self, id: Option<String>, session: Option<String>, text: String) -> (String, String, String) {
        let (tag, text) = match untag(&text) {
            Some((tag, rest)) if self.session_of.contains_key(whole_id(tag)) => (Some(tag.to_owned()), rest.to_owned()),
            _ => (None, text),
        };
        let known = |id: &String| self.session_of.contains_key(whole_id(id));
        let by_text = || self.id_of.get(text.trim()).cloned();
        let found = id.clone().filter(known).or(tag).or_else(by_text).or(session.clone().filter(known)).or(id);
        let id = found.map(|id| whole_id(&id).to_owned()).unwrap_or_default();
        let session = self.session_of.get(&id).cloned().or(session).unwrap_or_default();
        (id, session, text)
    }
}

/// Splits `[D1:3] text`.
fn untag(text: &str) -> Option<(&str, &str)> {
    let (tag, rest) = text.strip_prefix('[')?.split_once(']')?;
    Some((tag, rest.trim_start()))
}

/// Indexes of the banks in use.
#[derive(Default)]
pub(super) struct Indexes(Mutex<HashMap<Sha256Hash, Arc<BankIndex>>>);

impl Indexes {
    /// The index of a bank, built at its first use.
    pub(super) fn of(&self, hash: Sha256Hash, content: Option<&BankContent>, unit: Unit) -> Arc<BankIndex> {
        let Some(content) = content else { return Arc::default() };
        if let Some(index) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&hash) {
            return Arc::clone(index);
        }
        let index = Arc::new(BankIndex::build(content, unit));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(hash, Arc::clone(&index));
        index
    }
}
