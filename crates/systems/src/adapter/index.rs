//! From what a system hands back to the dataset's ids: by id, by the tag that `{tagged}` puts before a text, by the text.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use bench_proto::{
    dataset::{BankContent, StreamEntry},
    ids::Sha256Hash,
    step::{HitLevel, PlacedBy, RetrievedHit},
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
    /// Sessions, and what is in them.
    session_of: HashMap<String, String>,
    /// Single memories: they are in no session.
    memories: HashSet<String>,
    id_of: HashMap<String, String>,
}

/// What a system hands back of a hit.
#[derive(Debug, Default)]
pub(super) struct Handed {
    pub(super) id: Option<String>,
    pub(super) session: Option<String>,
    pub(super) text: String,
    pub(super) score: Option<f64>,
}

impl BankIndex {
    fn build(content: &BankContent, unit: Unit) -> Self {
        let mut index = Self::default();
        for entry in &content.entries {
            match entry {
                StreamEntry::Session(session) => {
                    index.session_of.insert(session.id.clone(), session.id.clone());
                    for turn in &session.turns {
                        index.session_of.insert(turn.id.clone(), session.id.clone());
                    }
                }
                StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                    index.memories.insert(memory.id.clone());
                }
                StreamEntry::Update { memory: None, .. } => {}
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

    /// The hit number `at` (from 0) of a recall, placed among what was stored. What is not known keeps the system's own id.
    pub(super) fn place(&self, at: usize, handed: Handed) -> RetrievedHit {
        let Handed { id, session, text, score } = handed;
        let (tag, text) = match untag(&text) {
            Some((tag, rest)) if self.knows(tag) => (Some(tag.to_owned()), rest.to_owned()),
            _ => (None, text),
        };
        let known = |id: &String| self.knows(id);
        let by_id = id.clone().filter(known).or(tag);
        let by_text = if by_id.is_none() { self.id_of.get(text.trim()).cloned() } else { None };
        let placed_by = if by_text.is_some() { PlacedBy::Text } else { PlacedBy::Id };
        let found = by_id.or(by_text).or(session.clone().filter(known)).or(id);
        let id = found.map(|id| whole_id(&id).to_owned()).unwrap_or_default();
        let level = self.level(&id, session.as_deref());
        let session_id = self.session_of.get(&id).cloned().or(session).unwrap_or_default();
        let id = if id.is_empty() { format!("hit-{}", at + 1) } else { id };
        let placed_by = (level != HitLevel::Unknown).then_some(placed_by);
        RetrievedHit { id, session_id, score, text, placed_by, level: Some(level) }
    }

    fn knows(&self, id: &str) -> bool {
        let id = whole_id(id);
        self.session_of.contains_key(id) || self.memories.contains(id)
    }

    fn level(&self, id: &str, session: Option<&str>) -> HitLevel {
        let is_session = |id: &str| self.session_of.get(id).is_some_and(|session| session == id);
        if is_session(id) || (!self.knows(id) && session.is_some_and(is_session)) {
            HitLevel::Session
        } else if self.knows(id) {
            HitLevel::Turn
        } else {
            HitLevel::Unknown
        }
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
    pub(super) fn find_or_build(&self, hash: Sha256Hash, content: Option<&BankContent>, unit: Unit) -> Arc<BankIndex> {
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
