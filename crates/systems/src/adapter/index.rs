//! From what a system hands back to the dataset's ids: by id, by the tag that `{tagged}` puts before a text, by the text.

use std::{
    collections::{BTreeMap, HashMap},
    hash::BuildHasher as _,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bench_proto::{
    dataset::{BankContent, StreamEntry},
    ids::Sha256Hash,
    step::{HitLevel, PlacedBy, RetrievedHit},
};

use foldhash::{fast::RandomState, quality};
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
    /// The session of each session, of what is in it, and of each single memory, which counts as a session by itself.
    session_of: HashMap<String, Within, RandomState>,
    /// Items that are a further part of a session.
    parts: HashMap<String, String, RandomState>,
    /// Ids by what a text hashes to: the texts themselves are in the bank.
    id_of: HashMap<TextKey, String, RandomState>,
    /// Hash texts, in a way that no memory system knows, each by a seed of its own: texts that one takes for the same are two for
    /// the other.
    hashers: [quality::RandomState; 2],
}

/// What an id of the dataset is.
#[derive(Debug)]
enum Within {
    /// A session, or something in it.
    Session(String),
    /// A single memory.
    Alone,
}

/// Two hashes of a text.
type TextKey = [u64; 2];

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
                    let within = || Within::Session(session.id.clone());
                    index.session_of.insert(session.id.clone(), within());
                    if session.part > 0 {
                        index.parts.insert(session_item_id(session), session.id.clone());
                    }
                    for turn in &session.turns {
                        index.session_of.insert(turn.id.clone(), within());
                    }
                }
                StreamEntry::Memory(memory) | StreamEntry::Update { memory: Some(memory), .. } => {
                    index.session_of.entry(memory.id.clone()).or_insert(Within::Alone);
                }
                StreamEntry::Update { memory: None, .. } => {}
            }
        }
        let cut = Cut { unit, text_bytes: None, content: Some(content) };
        // a few entries at a time, so that the texts of a bank are not there twice
        for item in content.entries.chunks(ENTRIES_AT_A_TIME).flat_map(|some| cut.items(some).unwrap_or_default()) {
            let (id, texts) = item.texts();
            for text in texts {
                let key = index.key(&text);
                index.id_of.entry(key).or_insert_with(|| id.clone());
            }
        }
        index
    }

    /// Bytes held, roughly.
    fn bytes(&self) -> usize {
        const SLOT: usize = 2 * size_of::<String>() + 16;
        let sessions = self.session_of.iter().map(|(id, within)| match within {
            Within::Session(session) => id.len() + session.len() + SLOT,
            Within::Alone => id.len() + SLOT,
        });
        let parts = self.parts.iter().map(|(id, session)| id.len() + session.len() + SLOT);
        let texts = self.id_of.values().map(|id| id.len() + SLOT);
        sessions.chain(parts).chain(texts).sum()
    }

    fn key(&self, text: &str) -> TextKey {
        self.hashers.each_ref().map(|hasher| hasher.hash_one(text))
    }

    /// The hit number `at` (from 0) of a recall, placed among what was stored. What is not known keeps the system's own id.
    pub(super) fn place(&self, at: usize, handed: Handed) -> RetrievedHit {
        let Handed { id, session, text, score, details } = handed;
        let tagged = untag(&text).and_then(|(tag, rest)| Some((self.find(tag)?, rest.to_owned())));
        let (by_tag, text) = match tagged {
            Some((found, rest)) => (Some(found), rest),
            None => (None, text),
        };
        let by_id = id.as_deref().and_then(|id| self.find(id)).or(by_tag);
        let by_text = if by_id.is_none() { self.id_of.get(&self.key(text.trim())) } else { None };
        let in_session = || session.as_deref().and_then(|session| self.find(session));
        let found = match by_text {
            Some(id) => self.find(id),
            None => by_id.or_else(in_session),
        };
        let id = match (found, by_text.or(id.as_ref())) {
            (Some((id, _)), _) => id.to_owned(),
            (None, Some(id)) => self.dataset_id(id).to_owned(),
            (None, None) => String::new(),
        };
        let level = match found.or_else(|| self.find(&id)) {
            Some((_, Within::Session(session))) if *session == id => HitLevel::Session,
            Some(_) => HitLevel::Turn,
            None if session.as_deref().is_some_and(|session| self.is_session(session)) => HitLevel::Session,
            None => HitLevel::Unknown,
        };
        let session_id = match found {
            Some((_, Within::Session(session))) => session.clone(),
            Some((memory, Within::Alone)) => memory.to_owned(),
            None => session.unwrap_or_default(),
        };
        let came_without = id.is_empty();
        let id = if came_without { format!("hit-{}", at + 1) } else { id };
        let placed_by = if by_text.is_some() { PlacedBy::Text } else { PlacedBy::Id };
        let placed_by = (level != HitLevel::Unknown).then_some(placed_by);
        let hit = RetrievedHit { id, session_id, score, text, placed_by, level: Some(level), details };
        if came_without {
            heard::note_made_up(&hit);
        }
        hit
    }

    /// The dataset's id of what may be a part of a text or of a session, and what it is; `None` for an id that is not known.
    fn find(&self, id: &str) -> Option<(&str, &Within)> {
        let held = |id: &str| self.session_of.get_key_value(id).map(|(id, within)| (id.as_str(), within));
        held(id).or_else(|| {
            let whole = self.whole(id);
            // most have no parts, and were looked for above
            if whole == id { None } else { held(whole) }
        })
    }

    /// What this is a part of, or itself.
    fn whole<'a>(&'a self, id: &'a str) -> &'a str {
        let whole = whole_id(id);
        self.parts.get(whole).map_or(whole, String::as_str)
    }

    /// The dataset's id of what may be a part, or what it was a part of by its name.
    fn dataset_id<'a>(&'a self, id: &'a str) -> &'a str {
        if self.session_of.contains_key(id) { id } else { self.whole(id) }
    }

    /// Whether it is the dataset's id of something, or of a part of it.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.find(id).is_some()
    }

    fn is_session(&self, id: &str) -> bool {
        matches!(self.session_of.get(id), Some(Within::Session(session)) if session == id)
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
    fn the_two_hashes_of_a_text_have_nothing_in_common() {
        let index = BankIndex::default();
        let differences = |text: &str| {
            let [one, other] = index.key(text);
            one ^ other
        };
        // a seed that enters both in the same way would leave the same between them
        let long = "tea ".repeat(1_000);
        let texts = ["", "tea", "the heron sleeps in a bathtub", long.as_str()];
        let between: std::collections::BTreeSet<u64> = texts.iter().map(|text| differences(text)).collect();
        assert!(between.len() == texts.len() && !between.contains(&0), "{between:?}");
        assert_eq!(index.key("tea"), index.key("tea"));
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
