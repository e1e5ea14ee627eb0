//! The banks of a load: filled with made-up memories before, asked for them, and removed afterwards.

use std::sync::{
    Arc, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use bench_load::{
    draws::Draws,
    facts::{BankWords, Fact, Facts},
};
use bench_proto::{
    dataset::{BankContent, Memory, StreamEntry},
    failure::Failure,
    ids::Sha256Hash,
};
use bench_systems::{BankRef, MemorySystem, RecallQuery, filling::fill};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::sync::Mutex;

use super::plan::LoadPlan;
use crate::exit::CliError;

/// Banks that are filled, or removed, at a time.
pub(super) const AT_A_TIME: usize = 4;

/// A bank under load.
pub(super) struct Bank {
    pub(super) reference: BankRef,
    /// Which of the banks it is, from 0.
    pub(super) number: u32,
    /// The next memory to retain.
    next: AtomicU32,
    /// Held by the retain that is under way, of a system that takes the memories of a bank in order.
    pub(super) turn: Mutex<()>,
}

impl Bank {
    /// The number of the next memory.
    pub(super) fn take_next(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// All banks of one size.
pub(super) struct Banks {
    pub(super) all: Vec<Arc<Bank>>,
    pub(super) facts: Facts,
    pub(super) words: BankWords,
    /// Memories that each was filled with.
    pub(super) size: u32,
    /// What is retained is stored: not by a system that is computed from what a bank was filled with.
    grow: bool,
}

/// Banks that were opened, whatever becomes of them: they are removed at the end.
#[derive(Default)]
pub(super) struct Opened(std::sync::Mutex<Vec<BankRef>>);

impl Opened {
    fn note(&self, bank: &BankRef) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(BankRef { content: None, ..bank.clone() });
    }

    /// All of them, as the system knows them.
    pub(super) fn into_all(self) -> Vec<BankRef> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the names of the banks of a size begin.
pub(super) fn named(id: &str, size: u32) -> String {
    format!("bench-load-{id}-s{size}")
}

impl Banks {
    /// Makes and fills the banks of a size, and builds what their recalls rest on. What it opens is noted, also where it fails or is
    /// dropped in the middle.
    ///
    /// # Errors
    /// Exit 4 with what the system said.
    pub(super) async fn fill(
        system: &dyn MemorySystem,
        plan: &LoadPlan,
        name: &str,
        size: u32,
        opened: &Opened,
    ) -> Result<Self, CliError> {
        let facts = plan.facts;
        let at_a_time = AT_A_TIME.min(plan.shown.in_flight as usize);
        let fillings: Vec<_> =
            (0..plan.shown.banks).map(|number| fill_one(system, facts, name, number, size, opened)).collect();
        let filled = stream::iter(fillings).buffered(at_a_time).try_collect::<Vec<_>>().await.map_err(|failure| {
            CliError::infrastructure(format!(
                "the banks cannot be filled: {failure}; `bench-coord systems check SYSTEM` shows what works"
            ))
        })?;
        let words = BankWords::from_facts(facts, plan.shown.banks);
        Ok(Self { all: filled, facts, words, size, grow: !system.capabilities().from_items })
    }

    /// A bank by lot.
    pub(super) fn draw(&self, draws: &mut Draws) -> Arc<Bank> {
        Arc::clone(&self.all[draws.below(self.all.len() as u64) as usize])
    }

    /// Memories of a bank on average, those among them whose retain was begun.
    pub(super) fn memories_per_bank(&self) -> f64 {
        if !self.grow {
            return self.size.into();
        }
        let all: u64 = self.all.iter().map(|bank| u64::from(bank.next.load(Ordering::Relaxed))).sum();
        all as f64 / self.all.len() as f64
    }
}

/// A bank of made-up memories, not opened yet.
pub(super) fn bank_of(facts: Facts, name: String, number: u32, size: u32) -> BankRef {
    let entries = (0..size).map(|index| entry(facts, number, index)).collect();
    let content = BankContent { bank_id: format!("load-{number}"), speakers: Vec::new(), entries };
    BankRef {
        content_hash: Sha256Hash::of_bytes(name.as_bytes()),
        bank_id: content.bank_id.clone(),
        handle: None,
        content: Some(Arc::new(content)),
        name,
    }
}

async fn fill_one(
    system: &dyn MemorySystem,
    facts: Facts,
    name: &str,
    number: u32,
    size: u32,
    opened: &Opened,
) -> Result<Arc<Bank>, Failure> {
    let mut reference = bank_of(facts, format!("{name}-b{number}"), number, size);
    reference.handle = Some(system.open_bank(&reference).await?);
    opened.note(&reference);
    if let Some(content) = &reference.content {
        fill(system, &reference, &content.entries).await?;
    }
    let first = facts.fact(number, 0);
    system.prepare(&reference, Some(&query(&first.query, 1, size))).await?;
    if !system.capabilities().from_items {
        // the system holds them now
        reference.content = None;
    }
    Ok(Arc::new(Bank { reference, number, next: AtomicU32::new(size), turn: Mutex::default() }))
}

/// A made-up memory as it is retained.
pub(super) fn entry(facts: Facts, bank: u32, index: u32) -> StreamEntry {
    StreamEntry::Memory(Memory { id: format!("m{index}"), text: facts.fact(bank, index).text, ..Memory::default() })
}

/// A search for `k` memories among the first `entries`.
pub(super) fn query(text: &str, k: u32, entries: u32) -> RecallQuery<'_> {
    RecallQuery { question_id: text, text, k, visible_entries: entries, ..RecallQuery::default() }
}

/// What a recall brought.
pub(super) struct Brought {
    /// Hits with the memory that was asked for, in equal words: a text that a system has made of it beside it is no second one.
    pub(super) copies: usize,
    /// Whether one of another bank was among the hits.
    pub(super) foreign: bool,
}

/// A search of a bank for a made-up memory.
pub(super) struct MemorySearch<'a> {
    pub(super) bank: &'a BankRef,
    /// Number of the bank.
    pub(super) number: u32,
    /// The memory.
    pub(super) fact: &'a Fact,
    /// By which a memory of another bank is known.
    pub(super) words: &'a BankWords,
    /// Hits that are asked for.
    pub(super) k: u32,
    /// Memories that the bank holds.
    pub(super) entries: u32,
}

/// Searches a bank for a made-up memory.
pub(super) async fn look_for(system: &dyn MemorySystem, search: MemorySearch<'_>) -> Result<Brought, Failure> {
    let MemorySearch { bank, number, fact, words, k, entries } = search;
    let hits = system.recall(bank, &query(&fact.query, k, entries)).await?.hits;
    let mut with_it: Vec<&str> =
        hits.iter().map(|hit| hit.text.trim()).filter(|text| text.contains(&fact.sign)).collect();
    with_it.sort_unstable();
    Ok(Brought {
        copies: with_it.chunk_by(|one, other| one == other).map(|equal| equal.len()).max().unwrap_or(0),
        foreign: hits.iter().any(|hit| words.is_foreign(&hit.text, number)),
    })
}

/// Removes banks.
///
/// # Errors
/// The first failure of the system.
pub(super) async fn remove_all(system: &dyn MemorySystem, banks: &[&BankRef]) -> Result<(), Failure> {
    let removals: Vec<_> = banks.iter().map(|bank| system.reset_bank(bank)).collect();
    stream::iter(removals).buffer_unordered(AT_A_TIME).try_for_each(|()| std::future::ready(Ok(()))).await
}
