//! From what a system hands back to the dataset's ids: by id, by the tag that `{tagged}` puts before a text, by the text.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bench_proto::{
    dataset::{BankContent, StreamEntry},
    ids::Sha256Hash,
    step::{HitLevel, PlacedBy, RetrievedHit},
};

use serde_json::Value;

use super::{
    items::{Cut, session_item_id, whole_id},
    spec::Unit,
};
use crate::{check::heard, kept::Kept};

/// Bytes of indexes that are kept: those of the banks that were asked last.
const KEPT_BYTES: u64 = 32 << 20;

/// Entries whose items are made at a time.
const ENTRIES_AT_A_TIME: usize = 64;

/// The ids and texts of a bank.
#[derive(Debug, Default)]
pub(super) struct BankIndex {
    /// Sessions, and what is in them.
    session_of: HashMap<String, String>,
    /// Single memories: each counts as a session by itself.
    memories: HashSet<String>,
    /// Items that are a further part of a session.
    parts: HashMap<String, String>,
    /// Ids by what a text hashes to: the texts themselves are in the bank.
    id_of: HashMap<TextKey, String>,
}

/// The first half of the sha256 of a text.
type TextKey = [u8; 16];

fn key_of(text: &str) -> TextKey {
    let mut key = TextKey::default();
    key.copy_from_slice(&Sha256Hash::of_bytes(text.as_bytes()).0[..16]);
    key
}

/// What a system hands back of a hit.
#[derive(Debug, Default)]
pub(super) struct Handed {
    pub(super) id: Option<String>,
    pub(super) session: Option<String>,
    pub(super) text: String,
    pub(super) score: Option<f64>,
    pub(super) details: BTreeMap<String, Value>,
}

impl BankIndex {
    fn build(content: &BankContent, unit: Unit) -> Self {
        let mut index = Self::default();
        for entry in &content.entries {
            match entry {
                StreamEntry::Session(session) => {
                    index.session_of.insert(session.id.clone(), session.id.clone());
                    if session.part > 0 {
                        index.parts.insert(session_item_id(session), session.id.clone());
                    }
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
        let cut = Cut { unit, text_bytes: None, content: Some(content) };
        // a few entries at a time, so that the texts of a bank are not there twice
        for item in content.entries.chunks(ENTRIES_AT_A_TIME).flat_map(|some| cut.items(some).unwrap_or_default()) {
            let (id, texts) = item.texts();
            for text in texts {
                index.id_of.entry(key_of(&text)).or_insert_with(|| id.clone());
            }
        }
        index
    }

    /// Bytes held, roughly.
    fn bytes(&self) -> usize {
        const SLOT: usize = 2 * size_of::<String>() + 16;
        let maps = [&self.session_of, &self.parts].into_iter().flatten();
        let ids: usize = maps.map(|(id, session)| id.len() + session.len() + SLOT).sum();
        let memories: usize = self.memories.iter().map(|id| id.len() + SLOT).sum();
        ids + memories + self.id_of.values().map(|id| id.len() + SLOT).sum::<usize>()
    }

    /// The hit number `at` (from 0) of a recall, placed among what was stored. What is not known keeps the system's own id.
    pub(super) fn place(&self, at: usize, handed: Handed) -> RetrievedHit {
        let Handed { id, session, text, score, details } = handed;
        let (tag, text) = match untag(&text) {
            Some((tag, rest)) if self.knows(tag) => (Some(tag.to_owned()), rest.to_owned()),
            _ => (None, text),
        };
        let known = |id: &String| self.knows(id);
        let by_id = id.clone().filter(known).or(tag);
        let by_text = if by_id.is_none() { self.id_of.get(&key_of(text.trim())).cloned() } else { None };
        let placed_by = if by_text.is_some() { PlacedBy::Text } else { PlacedBy::Id };
        let found = by_id.or(by_text).or(session.clone().filter(known)).or(id);
        let id = found.map(|id| self.dataset_id(&id).to_owned()).unwrap_or_default();
        let level = self.level(&id, session.as_deref());
        let session_id = self.session_of.get(&id).or_else(|| self.memories.get(&id)).cloned().or(session);
        let session_id = session_id.unwrap_or_default();
        let came_without = id.is_empty();
        let id = if came_without { format!("hit-{}", at + 1) } else { id };
        let placed_by = (level != HitLevel::Unknown).then_some(placed_by);
        let hit = RetrievedHit { id, session_id, score, text, placed_by, level: Some(level), details };
        if came_without {
            heard::note_made_up(&hit);
        }
        hit
    }

    /// The dataset's id of what may be a part of a text or of a session.
    fn dataset_id<'a>(&'a self, id: &'a str) -> &'a str {
        if self.holds(id) {
            return id;
        }
        let whole = whole_id(id);
        self.parts.get(whole).map_or(whole, String::as_str)
    }

    fn holds(&self, id: &str) -> bool {
        self.session_of.contains_key(id) || self.memories.contains(id)
    }

    fn knows(&self, id: &str) -> bool {
        self.holds(self.dataset_id(id))
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

/// Indexes of the banks in use: as many as [`KEPT_BYTES`] hold, and the last one in any case.
pub(super) struct Indexes {
    kept: Mutex<Kept<Sha256Hash, Arc<BankIndex>>>,
    /// Indexes that are being built: whoever asks for one meanwhile waits.
    building: Mutex<HashMap<Sha256Hash, Arc<OnceLock<Arc<BankIndex>>>>>,
}

impl Default for Indexes {
    fn default() -> Self {
        Self { kept: Mutex::new(Kept::new(KEPT_BYTES)), building: Mutex::default() }
    }
}

impl Indexes {
    /// The index of a bank, built at its first use, and once however many ask for it at the same time.
    pub(super) fn find_or_build(&self, hash: Sha256Hash, content: Option<&BankContent>, unit: Unit) -> Arc<BankIndex> {
        let Some(content) = content else { return Arc::default() };
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let building = || self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let place = {
            let mut building = building();
            // what is no longer being built is kept
            if let Some(index) = kept().get(&hash) {
                return Arc::clone(index);
            }
            Arc::clone(building.entry(hash).or_default())
        };
        let index = place.get_or_init(|| {
            let index = Arc::new(BankIndex::build(content, unit));
            // freed when the lock is gone
            let gone = kept().keep(hash, Arc::clone(&index), index.bytes() as u64);
            drop(gone);
            index
        });
        building().remove(&hash);
        Arc::clone(index)
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::dataset::Memory;

    use super::*;

    #[tokio::test]
    async fn an_id_of_our_own_making_is_known_by_where_it_was_made() {
        let handed =
            |id: Option<&str>| Handed { id: id.map(str::to_owned), text: "tea".to_owned(), ..Handed::default() };
        heard::listening(async {
            let index = BankIndex::default();
            let (ours, theirs) = (index.place(0, handed(None)), index.place(1, handed(Some("hit-2"))));
            assert_eq!((ours.id.as_str(), heard::is_made_up(&ours)), ("hit-1", true));
            assert_eq!((theirs.id.as_str(), heard::is_made_up(&theirs)), ("hit-2", false));
        })
        .await;
    }

    #[test]
    fn an_index_is_built_once_for_all_who_ask_at_the_same_time() {
        let memory = |n: u32| Memory { id: format!("m{n}"), text: "tea ".repeat(100), ..Memory::default() };
        let content = BankContent {
            entries: (0..2_000).map(|n| StreamEntry::Memory(memory(n))).collect(),
            ..BankContent::default()
        };
        let (indexes, all) = (Indexes::default(), std::sync::Barrier::new(8));
        let ask = || {
            all.wait();
            indexes.find_or_build(Sha256Hash::of_bytes(b"a"), Some(&content), Unit::Turn)
        };
        let built: Vec<Arc<BankIndex>> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            asking.into_iter().map(|one| one.join().expect("does not panic")).collect()
        });
        assert!(built.iter().all(|index| Arc::ptr_eq(index, &built[0])));
        assert!(indexes.building.lock().expect("is free").is_empty());
    }
}
