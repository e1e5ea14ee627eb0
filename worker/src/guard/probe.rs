//! Which request finds out whether an operation of a memory system works (P39): one that resembles the operation as closely as
//! it can without a question, and that leaves everything as it was.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bench_models::routes::{Probed, Prober, Way};
use bench_proto::{
    dataset::{BankContent, StreamEntry},
    failure::Failure,
    ids::RunNo,
    metered::Stage,
    outage::Operation,
};
use bench_store::{BankRow, BankState, Store, StoreError};
use bench_systems::{
    BankRef, MemorySystem, RecallQuery, StepContext,
    filled_again::{self, Held},
};

use super::way_of;
use crate::{banks::BankCache, metering::InFlight};

/// Banks among which one is looked for: those that were begun first.
const BANKS: std::ops::Range<u32> = 0..16;
/// Longest time of an operation when the system does not say.
const LONGEST: Duration = Duration::from_secs(600);
/// What is searched for.
const QUERY: &str = "yes";

/// Probes an operation of a run's memory system.
pub(super) struct SystemProbe {
    pub(super) system: Arc<dyn MemorySystem>,
    pub(super) operation: Operation,
    pub(super) run: RunNo,
    pub(super) store: Arc<dyn Store>,
    pub(super) banks: Arc<BankCache>,
    /// Whether this process has started the system.
    pub(super) is_own: bool,
    /// Where it is noted what the system is doing, in a metered run.
    pub(super) in_flight: Option<Arc<InFlight>>,
}

/// A bank that the system knows.
struct Known {
    bank: BankRef,
    content: Arc<BankContent>,
    /// Entries that it holds.
    position: u32,
    /// It is still being filled: nobody searches it.
    is_building: bool,
    /// When a question is asked, as the system is told.
    time_text: Option<String>,
}

#[async_trait]
impl Prober for SystemProbe {
    async fn probe(&self) -> Probed {
        let Ok(known) = self.known_bank().await else { return Probed::NotMade };
        let asking = self.noting(known.as_ref(), ask(self.system.as_ref(), self.operation, known.as_ref()));
        let asked = tokio::time::timeout(self.longest(), asking).await;
        let asked = asked.unwrap_or_else(|_| {
            let seconds = self.longest().as_secs();
            Err(Failure::transient("system_timeout", format!("{}: no reply for {seconds} s", self.operation.name())))
        });
        match asked {
            Ok(()) => Probed::Through,
            Err(failure) => match way_of(&failure, self.is_own) {
                Way::Failed | Way::OwnFault | Way::Refused => Probed::Failed(failure),
                // who does not like the request, or wants to be asked later, is there
                Way::Through | Way::Other => Probed::Through,
            },
        }
    }

    fn within(&self) -> Duration {
        self.longest() + Duration::from_secs(10)
    }
}

impl SystemProbe {
    fn longest(&self) -> Duration {
        self.system.capabilities().deadline.unwrap_or(LONGEST)
    }

    /// Carries a request out. The bank that it has to fill first is noted as one that is being filled.
    async fn noting<F: Future>(&self, known: Option<&Known>, request: F) -> F::Output {
        let (Some(in_flight), Some(known)) = (&self.in_flight, known) else { return request.await };
        let (in_flight, bank) = (Arc::clone(in_flight), known.bank.name.clone());
        let notes = move || Box::new(in_flight.enter(&bank, Stage::Retain)) as Held;
        filled_again::noting(Arc::new(notes), request).await
    }

    /// A bank that the system knows, the fullest of those that the operation is usually about.
    async fn known_bank(&self) -> Result<Option<Known>, StoreError> {
        let rows = self.store.banks(self.run, Some(&BANKS.collect::<Vec<_>>())).await?;
        let is_known = |row: &BankRow| row.handle.is_some() && !row.outdated && row.state != BankState::Failed;
        let usual = if self.operation == Operation::Retain { BankState::Building } else { BankState::Ready };
        let Some(row) = rows.into_iter().filter(is_known).max_by_key(|row| (row.state == usual, row.position)) else {
            return Ok(None);
        };
        let data = self.banks.get(self.run, row.bank_no).await?;
        let content = Arc::clone(&data.content);
        let bank = BankRef {
            name: row.name_of(row.generation),
            handle: row.handle,
            bank_id: row.bank_id,
            content_hash: row.content,
            content: Some(Arc::clone(&content)),
        };
        if self.system.on_this_machine(&bank).is_err() {
            return Ok(None);
        }
        let time_text = data.questions().first().and_then(|question| question.time_text.clone());
        let is_building = row.state == BankState::Building;
        Ok(Some(Known { bank, content, position: row.position, is_building, time_text }))
    }
}

/// Sends the probe of an operation.
async fn ask(system: &dyn MemorySystem, operation: Operation, known: Option<&Known>) -> Result<(), Failure> {
    let can = system.capabilities();
    let Some(known) = known else { return system.is_there().await };
    match operation {
        // storing again what is stored changes nothing, where the system says so; what is being searched is left alone
        Operation::Retain if can.retain_idempotent && known.is_building && !known.content.entries.is_empty() => system
            .retain(&known.bank, last(&known.content.entries, known.position), StepContext::default())
            .await
            .map(drop),
        Operation::Recall if can.recalls && !can.recall_mutates => recall(system, known).await,
        Operation::Answer if !can.recall_mutates => system.answer(&known.bank, &query(known)).await.map(drop),
        Operation::Ready if can.asked_ready => system.readiness(&known.bank, known.position).await.map(drop),
        Operation::Retain | Operation::Ready | Operation::Recall | Operation::Answer => look(system, known).await,
    }
}

/// Asks something about a bank that changes nothing in it: a server may say that it is well while what lies behind it is away.
async fn look(system: &dyn MemorySystem, known: &Known) -> Result<(), Failure> {
    let can = system.capabilities();
    system.is_there().await?;
    if can.verifies {
        system.verify(&known.bank, known.position).await.map(drop)
    } else if can.recalls && !can.recall_mutates {
        recall(system, known).await
    } else {
        system.readiness(&known.bank, known.position).await.map(drop)
    }
}

async fn recall(system: &dyn MemorySystem, known: &Known) -> Result<(), Failure> {
    system.recall(&known.bank, &query(known)).await.map(drop)
}

fn query(known: &Known) -> RecallQuery<'_> {
    RecallQuery {
        question_id: "probe",
        text: QUERY,
        time_text: known.time_text.as_deref(),
        k: 1,
        visible_entries: known.position,
        ..RecallQuery::default()
    }
}

/// The entry that was stored last, as after a checkpoint that was lost; of an empty bank the one that comes next.
fn last(entries: &[StreamEntry], position: u32) -> &[StreamEntry] {
    let at = (position as usize).clamp(1, entries.len()) - 1;
    entries.get(at..=at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use bench_proto::{
        dataset::{Memory, StreamEntry},
        ids::Sha256Hash,
    };

    use super::*;
    use bench_systems::{
        Capabilities, Counted, ListCursor, ListedPage, NativeAnswer, Readiness, Recall, RetainReceipt,
    };

    /// Notes what it is asked.
    struct Noting(Capabilities, Mutex<Vec<String>>);

    impl Noting {
        fn note<T>(&self, what: impl Into<String>, value: T) -> Result<T, Failure> {
            self.1.lock().expect("is not poisoned").push(what.into());
            Ok(value)
        }
    }

    #[async_trait]
    impl MemorySystem for Noting {
        fn capabilities(&self) -> &Capabilities {
            &self.0
        }

        async fn open_bank(&self, _bank: &BankRef) -> Result<String, Failure> {
            self.note("open", String::new())
        }

        async fn retain(
            &self,
            _bank: &BankRef,
            entries: &[StreamEntry],
            _step: StepContext<'_>,
        ) -> Result<RetainReceipt, Failure> {
            let ids: Vec<&str> = entries.iter().map(StreamEntry::id).collect();
            self.note(format!("retain {}", ids.join(",")), RetainReceipt::default())
        }

        async fn readiness(&self, _bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
            self.note(format!("ready {entries}"), Readiness::Proven)
        }

        async fn recall(&self, _bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
            self.note(format!("recall {} of {}", query.k, query.visible_entries), Recall::default())
        }

        async fn list(&self, _bank: &BankRef, _entries: u32, _from: &ListCursor) -> Result<ListedPage, Failure> {
            self.note("list", ListedPage::default())
        }

        async fn reset_bank(&self, _bank: &BankRef) -> Result<(), Failure> {
            self.note("reset", ())
        }

        async fn health(&self) -> Result<String, Failure> {
            self.note("health", String::new())
        }

        async fn answer(&self, _bank: &BankRef, _query: &RecallQuery<'_>) -> Result<NativeAnswer, Failure> {
            self.note("answer", NativeAnswer::default())
        }

        async fn verify(&self, _bank: &BankRef, _entries: u32) -> Result<Option<Counted>, Failure> {
            self.note("verify", None)
        }
    }

    fn known(position: u32) -> Known {
        let memory = |id: &str| {
            let (id, text) = (id.to_owned(), String::new());
            StreamEntry::Memory(Memory { id, text, ..Memory::default() })
        };
        let entries = ["first", "second", "third"].map(memory).to_vec();
        let content = Arc::new(BankContent { bank_id: "conv-1".to_owned(), entries, speakers: Vec::new() });
        let bank = BankRef {
            name: "bench-1-g1".to_owned(),
            handle: Some("h".to_owned()),
            bank_id: "conv-1".to_owned(),
            content_hash: Sha256Hash::of_bytes(b""),
            content: Some(Arc::clone(&content)),
        };
        Known { bank, content, position, is_building: true, time_text: None }
    }

    async fn asked(can: &Capabilities, operation: Operation, known: Option<Known>) -> String {
        let system = Noting(can.clone(), Mutex::default());
        ask(&system, operation, known.as_ref()).await.expect("it answers");
        system.1.into_inner().expect("is not poisoned").join(", ")
    }

    #[tokio::test]
    async fn p39_each_operation_is_probed_by_what_resembles_it_and_changes_nothing() {
        use Operation::{Answer, Ready, Recall, Retain};
        let can = Capabilities { retain_idempotent: false, asked_ready: true, ..Capabilities::from_items("1") };
        assert_eq!(asked(&can, Retain, Some(known(2))).await, "health, recall 1 of 2", "never a retain");
        assert_eq!(asked(&can, Recall, Some(known(2))).await, "recall 1 of 2");
        assert_eq!(asked(&can, Answer, Some(known(2))).await, "answer");
        assert_eq!(asked(&can, Ready, Some(known(2))).await, "ready 2");
        assert_eq!(asked(&can, Recall, None).await, "health", "it has no bank yet");
        let repeats = Capabilities { retain_idempotent: true, ..can.clone() };
        assert_eq!(asked(&repeats, Retain, Some(known(2))).await, "retain second", "what it holds already");
        assert_eq!(asked(&repeats, Retain, Some(known(0))).await, "retain first", "what comes next");
        let ready = Known { is_building: false, ..known(2) };
        assert_eq!(asked(&repeats, Retain, Some(ready)).await, "health, recall 1 of 2", "it is being searched");
        let promises = Capabilities { asked_ready: false, ..can.clone() };
        assert_eq!(asked(&promises, Ready, Some(known(2))).await, "health, recall 1 of 2", "it asks nothing itself");
        let counts = Capabilities { verifies: true, ..can.clone() };
        assert_eq!(asked(&counts, Retain, Some(known(2))).await, "health, verify");
        let learns = Capabilities { recall_mutates: true, ..can };
        for operation in [Retain, Recall, Answer] {
            assert_eq!(asked(&learns, operation, Some(known(2))).await, "health, ready 2", "searching changes it");
        }
    }
}
