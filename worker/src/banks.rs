//! Bank data on a worker: items read from the store by key, parsed once, kept in a cache that is bounded by bytes (P16, P29).

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use bench_proto::{
    dataset::{BankContent, GoldRecord, Question, StreamEntry, Turn},
    ids::{RunNo, Sha256Hash},
    json_bound,
};
use bench_store::{BankRow, Items, Store, StoreError};
use bench_systems::kept::Kept;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;

/// Bytes of banks that a process keeps when nobody says otherwise: 96 MiB. The dispatcher hands questions out bank by bank, so few
/// are in use at once.
pub const DEFAULT_BANK_BYTES: u64 = 96 << 20;

/// Everything about a bank that a worker needs. What a memory system may see is `content` alone.
#[derive(Debug)]
pub struct BankData {
    /// The bank's row when it was read; generation and handle may be newer in the store.
    pub row: BankRow,
    /// What is retained.
    pub content: Arc<BankContent>,
    asked: BankQuestions,
}

/// What a bank is asked and what is expected: all that reports need of it, and the smaller part.
#[derive(Debug)]
pub struct BankQuestions {
    questions: Vec<Question>,
    gold: HashMap<String, GoldRecord>,
    /// Indexes of questions that the run left out when it stopped early.
    left_out: BTreeSet<u32>,
}

impl BankQuestions {
    /// What is expected of a question.
    #[must_use]
    pub fn gold(&self, question_id: &str) -> Option<&GoldRecord> {
        self.gold.get(question_id)
    }

    /// The sample's questions, by index.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Those of them that the run had not left out, by stopping early, when the row was read.
    pub fn asked(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| !self.left_out.contains(&question.index))
    }

    /// Reads and parses two items of a bank; what was retained stays where it is.
    ///
    /// # Errors
    /// As [`BankData::read`].
    pub async fn read(store: &dyn Items, row: &BankRow) -> Result<Self, StoreError> {
        Self::weighed(store, row).await.map(|(read, _)| read)
    }

    /// Reads a bank, with the bytes that it holds, roughly.
    async fn weighed(store: &dyn Items, row: &BankRow) -> Result<(Self, u64), StoreError> {
        let (mut questions, of_questions): (Vec<Question>, _) = weighed_item(store, row.questions).await?;
        let (gold, of_gold): (Vec<GoldRecord>, _) = weighed_item(store, row.gold).await?;
        questions.sort_unstable_by_key(|q| q.index);
        let structs = questions.len() * (size_of::<Question>() + size_of::<GoldRecord>());
        let gold = gold.into_iter().map(|g| (g.question_id.clone(), g)).collect();
        Ok((Self { questions, gold, left_out: row.left_out() }, (of_questions + of_gold + structs) as u64))
    }
}

impl BankData {
    /// The question with this index in the dataset's list.
    #[must_use]
    pub fn question(&self, index: u32) -> Option<&Question> {
        let questions = self.questions();
        let at = questions.binary_search_by_key(&index, |q| q.index).ok()?;
        questions.get(at)
    }

    /// What is expected of a question.
    #[must_use]
    pub fn gold(&self, question_id: &str) -> Option<&GoldRecord> {
        self.asked.gold(question_id)
    }

    /// The sample's questions, by index.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        self.asked.questions()
    }

    /// As [`BankQuestions::asked`].
    pub fn asked(&self) -> impl Iterator<Item = &Question> {
        self.asked.asked()
    }

    /// Reads and parses the three items of a bank.
    ///
    /// # Errors
    /// What the store meets; a damaged item is [`StoreError::Corrupt`].
    pub async fn read(store: &dyn Items, row: BankRow) -> Result<Self, StoreError> {
        Self::weighed(store, row).await.map(|(read, _)| read)
    }

    /// The same with the bytes that it holds, roughly: its texts are as long as the items in which they stood, and lists that grew
    /// may have twice the room that they need.
    async fn weighed(store: &dyn Items, row: BankRow) -> Result<(Self, u64), StoreError> {
        let (content, texts): (BankContent, _) = weighed_item(store, row.content).await?;
        let turns: usize = content.entries.iter().map(StreamEntry::turns).sum();
        let structs = 2 * (turns * size_of::<Turn>() + content.entries.len() * size_of::<StreamEntry>());
        let (asked, of_questions) = BankQuestions::weighed(store, &row).await?;
        Ok((Self { row, content: Arc::new(content), asked }, of_questions + (texts + structs) as u64))
    }
}

/// Reads and parses an item of the store.
///
/// # Errors
/// As [`BankData::read`].
pub(crate) async fn read_item<T: DeserializeOwned>(store: &dyn Items, hash: Sha256Hash) -> Result<T, StoreError> {
    weighed_item(store, hash).await.map(|(read, _)| read)
}

/// Reads a stored item, with its size in bytes.
async fn weighed_item<T: DeserializeOwned>(store: &dyn Items, hash: Sha256Hash) -> Result<(T, usize), StoreError> {
    let bytes = store.item(hash).await?;
    // those of a run that was archived are another's
    let read = json_bound::from_slice_within(&bytes, json_bound::BANK_BYTES)
        .map_err(|e| StoreError::Corrupt(format!("item {} cannot be read: {e}", hash.hex()).into()))?;
    Ok((read, bytes.len()))
}

type Key = (RunNo, u32);
/// A bank that is being read; nothing once nobody waits for it any more.
type Cell = OnceCell<Arc<BankData>>;

/// The banks of a process, with single flight: the first asker reads, the others wait for it.
pub struct BankCache {
    store: Arc<dyn Store>,
    banks: Mutex<Banks>,
}

struct Banks {
    kept: Kept<Key, Arc<BankData>>,
    reading: HashMap<Key, Weak<Cell>>,
}

impl BankCache {
    /// An empty cache over a store, with room for [`DEFAULT_BANK_BYTES`].
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::with_room(store, DEFAULT_BANK_BYTES)
    }

    /// A cache with room for so many bytes. A larger bank is kept alone.
    #[must_use]
    pub fn with_room(store: Arc<dyn Store>, bytes: u64) -> Self {
        Self { store, banks: Mutex::new(Banks { kept: Kept::new(bytes), reading: HashMap::new() }) }
    }

    /// The data of a bank.
    ///
    /// # Errors
    /// As [`BankData::read`]; a failed read is not kept.
    pub async fn get(&self, run: RunNo, bank_no: u32) -> Result<Arc<BankData>, StoreError> {
        let key = (run, bank_no);
        let cell = {
            let mut banks = self.lock();
            if let Some(data) = banks.kept.get(&key) {
                return Ok(Arc::clone(data));
            }
            banks.board(key)
        };
        let read = cell.get_or_try_init(|| async {
            let mut rows = self.store.banks(run, Some(&[bank_no])).await?;
            let row = rows.pop().ok_or_else(|| StoreError::Missing(format!("bank {bank_no} of run {}", run.0)))?;
            let (data, bytes) = BankData::weighed(self.store.as_ref(), row).await?;
            let data = Arc::new(data);
            // freed when the lock is gone
            let gone = self.lock().land(key, &cell, &data, bytes);
            drop(gone);
            Ok::<_, StoreError>(data)
        });
        read.await.map(Arc::clone)
    }

    /// Forgets a bank, so that its row is read anew.
    pub async fn forget(&self, run: RunNo, bank_no: u32) {
        let gone = {
            let mut banks = self.lock();
            banks.reading.remove(&(run, bank_no));
            banks.kept.remove(&(run, bank_no))
        };
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Banks> {
        // no code under the lock leaves it half changed
        self.banks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Banks {
    /// The flight that reads a bank; a new one where there is none.
    fn board(&mut self, key: Key) -> Arc<Cell> {
        if let Some(cell) = self.reading.get(&key).and_then(Weak::upgrade) {
            return cell;
        }
        self.reading.retain(|_, cell| cell.strong_count() > 0);
        let cell = Arc::new(Cell::default());
        self.reading.insert(key, Arc::downgrade(&cell));
        cell
    }

    /// Keeps what a flight has read, unless the bank was forgotten meanwhile; returns what had to go for it.
    fn land(&mut self, key: Key, cell: &Arc<Cell>, data: &Arc<BankData>, bytes: u64) -> Vec<Arc<BankData>> {
        if self.reading.get(&key).is_none_or(|reading| reading.as_ptr() != Arc::as_ptr(cell)) {
            return Vec::new();
        }
        self.reading.remove(&key);
        self.kept.keep(key, Arc::clone(data), bytes)
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::dataset::Session;
    use bench_store::{
        Item, NewBank,
        conformance::{Scene, bank},
    };

    use super::*;

    /// A store with banks of so many bytes of text each.
    async fn store(banks: &[usize]) -> (tempfile::TempDir, Arc<dyn Store>, RunNo) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = bench_store::conformance::store_in(folder.path()).await;
        let mut rows = Vec::new();
        for (bank_no, bytes) in (0..).zip(banks) {
            let turn = Turn { id: "S1:1".to_owned(), text: "x".repeat(*bytes), ..Turn::default() };
            let session = Session { id: format!("S{bank_no}"), turns: vec![turn], ..Session::default() };
            let content = BankContent { entries: vec![StreamEntry::Session(session)], ..BankContent::default() };
            let content = Item::from_bytes(serde_json::to_vec(&content).expect("serialises"));
            let nothing = Item::from_bytes(b"[]".to_vec());
            let row = bank(bank_no, &[(1, &[0])]);
            rows.push(NewBank { content: content.hash, questions: nothing.hash, gold: nothing.hash, ..row });
            store.put_items(&[content, nothing]).await.expect("are written");
        }
        let run = Scene::start(store.as_ref(), &rows).await.run;
        (folder, store, run)
    }

    #[tokio::test]
    async fn p29_banks_are_kept_by_bytes_and_a_large_one_alone() {
        let (_folder, store, run) = store(&[40_000, 40_000, 40_000, 400_000]).await;
        let cache = BankCache::with_room(store, 100_000);
        let kept = || cache.lock().kept.size();
        let mut first = None;
        for (bank, expected) in [(0, 1), (1, 2), (0, 2), (2, 2), (3, 1), (0, 1)] {
            let data = cache.get(run, bank).await.expect("reads");
            assert_eq!(data.content.entries[0].id(), format!("S{bank}"));
            let (banks, bytes) = kept();
            assert_eq!(banks, expected, "after bank {bank}");
            assert!(bytes > 40_000 && (bytes <= 100_000 || banks == 1), "{bytes}");
            first.get_or_insert(data);
        }
        let again = cache.get(run, 0).await.expect("reads");
        assert!(Arc::ptr_eq(&again, &cache.get(run, 0).await.expect("reads")), "it is kept");
        assert!(!Arc::ptr_eq(&again, &first.expect("was read")), "it went for a larger one, and came back");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn p29_those_who_ask_together_share_one_reading_and_what_was_forgotten_is_read_anew() {
        let (_folder, store, run) = store(&[10_000]).await;
        let cache = BankCache::new(store);
        let asked = futures::future::join_all((0..16).map(|_| cache.get(run, 0))).await;
        let asked: Vec<_> = asked.into_iter().map(|data| data.expect("reads")).collect();
        assert!(asked.iter().all(|data| Arc::ptr_eq(data, &asked[0])));
        assert!(cache.lock().reading.is_empty());
        cache.forget(run, 0).await;
        assert_eq!(cache.lock().kept.size(), (0, 0));
        assert!(!Arc::ptr_eq(&cache.get(run, 0).await.expect("reads"), &asked[0]));
        assert!(matches!(cache.get(run, 7).await, Err(StoreError::Missing(_))));
    }
}
