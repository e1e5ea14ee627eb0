//! Bank data on a worker: items read from the store by key, parsed once, kept in a small cache (P16, P29).

use std::{collections::HashMap, sync::Arc};

use bench_proto::{
    dataset::{BankContent, GoldRecord, Question},
    ids::{RunNo, Sha256Hash},
};
use bench_store::{BankRow, Items, Store, StoreError};
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, OnceCell};

/// Banks kept per process. The dispatcher hands questions out bank by bank, so few are in use at once.
const BANKS_KEPT: usize = 48;

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

    /// Reads and parses two items of a bank; what was retained stays where it is.
    ///
    /// # Errors
    /// As [`BankData::read`].
    pub async fn read(store: &dyn Items, row: &BankRow) -> Result<Self, StoreError> {
        let mut questions: Vec<Question> = read_item(store, row.questions).await?;
        let gold: Vec<GoldRecord> = read_item(store, row.gold).await?;
        questions.sort_unstable_by_key(|q| q.index);
        let gold = gold.into_iter().map(|g| (g.question_id.clone(), g)).collect();
        Ok(Self { questions, gold })
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

    /// Reads and parses the three items of a bank.
    ///
    /// # Errors
    /// What the store meets; a damaged item is [`StoreError::Corrupt`].
    pub async fn read(store: &dyn Items, row: BankRow) -> Result<Self, StoreError> {
        let content: BankContent = read_item(store, row.content).await?;
        let asked = BankQuestions::read(store, &row).await?;
        Ok(Self { row, content: Arc::new(content), asked })
    }
}

pub(crate) async fn read_item<T: DeserializeOwned>(store: &dyn Items, hash: Sha256Hash) -> Result<T, StoreError> {
    let bytes = store.item(hash).await?;
    serde_json::from_slice(&bytes).map_err(|e| StoreError::Corrupt(format!("item {} cannot be read: {e}", hash.hex())))
}

type Cell = Arc<OnceCell<Arc<BankData>>>;

/// A small cache with single flight: the first asker reads, the others wait for it.
pub struct BankCache {
    store: Arc<dyn Store>,
    cells: Mutex<Cells>,
}

#[derive(Default)]
struct Cells {
    by_bank: HashMap<(RunNo, u32), (Cell, u64)>,
    clock: u64,
}

impl BankCache {
    /// An empty cache over a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, cells: Mutex::default() }
    }

    /// The data of a bank.
    ///
    /// # Errors
    /// As [`BankData::read`]; a failed read is not kept.
    pub async fn get(&self, run: RunNo, bank_no: u32) -> Result<Arc<BankData>, StoreError> {
        let cell = self.cell((run, bank_no)).await;
        let data = cell
            .get_or_try_init(|| async {
                let mut rows = self.store.banks(run, Some(&[bank_no])).await?;
                let row = rows.pop().ok_or_else(|| StoreError::Missing(format!("bank {bank_no} of run {}", run.0)))?;
                BankData::read(self.store.as_ref(), row).await.map(Arc::new)
            })
            .await?;
        Ok(Arc::clone(data))
    }

    /// Forgets a bank, so that its row is read anew.
    pub async fn forget(&self, run: RunNo, bank_no: u32) {
        self.cells.lock().await.by_bank.remove(&(run, bank_no));
    }

    async fn cell(&self, key: (RunNo, u32)) -> Cell {
        let mut cells = self.cells.lock().await;
        cells.clock += 1;
        let now = cells.clock;
        if let Some((cell, used)) = cells.by_bank.get_mut(&key) {
            *used = now;
            return Arc::clone(cell);
        }
        if cells.by_bank.len() >= BANKS_KEPT
            && let Some(oldest) = cells.by_bank.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key)
        {
            cells.by_bank.remove(&oldest);
        }
        let cell = Cell::default();
        cells.by_bank.insert(key, (Arc::clone(&cell), now));
        cell
    }
}
