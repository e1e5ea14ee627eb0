//! Banks of processes that keep their memories to themselves (`can: {survives_restart: false}`).
//!
//! Such a bank is gone when its process ends, and no other worker has it. Where a bank is asked that this process was not given,
//! it is given all of it again, under a name of its own, before it is asked: in the order and in the portions of the first
//! time. A bank that was being filled begins anew instead.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use bench_proto::failure::{Failure, code::MEMORIES_LOST};
use tokio::sync::OnceCell;

use super::{ProcessSystem, protocol::ProcessOp};
use crate::{BankRef, filled_again};

/// What is known once a bank is filled; several may wait for it.
type Name<P> = Arc<OnceCell<P>>;

/// What one process has been given. `P` is what it knows a bank by that it was given again.
#[derive(Default)]
pub(in super::super) struct Banks<P = String> {
    /// Handles of banks that it was asked to open.
    opened: Mutex<HashSet<String>>,
    /// Banks that it was given again, by handle and number of entries.
    given_again: Mutex<HashMap<(String, u32), Name<P>>>,
    names: AtomicU64,
}

impl<P> Banks<P> {
    /// Notes that it was asked to open a bank.
    pub(in super::super) fn opened(&self, handle: &str) {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).insert(handle.to_owned());
    }

    /// Whether it was asked to open a bank.
    pub(in super::super) fn has(&self, handle: &str) -> bool {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).contains(handle)
    }

    /// What it knows the first entries of a bank by that it is given again. `fill` gives it them, once; whoever waits for that is noted
    /// as filling.
    ///
    /// # Errors
    /// What `fill` says.
    pub(in super::super) async fn given_again(
        &self,
        handle: &str,
        entries: u32,
        fill: impl Future<Output = Result<P, Failure>>,
    ) -> Result<P, Failure>
    where
        P: Clone,
    {
        let given = self.cell(handle, entries);
        let _filling = (!given.initialized()).then(filled_again::begins);
        given.get_or_try_init(|| fill).await.cloned()
    }

    fn cell(&self, handle: &str, entries: u32) -> Name<P> {
        let mut given = self.given_again.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(given.entry((handle.to_owned(), entries)).or_default())
    }

    /// A name that no process before had: one that did keep what it stored is not given it twice. Bank and
    /// generation are read from it as from the other one (`given::generation_of`).
    pub(in super::super) fn new_name(&self, bank: &BankRef) -> String {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        format!("{}-i{since:x}-again-{}", bank.name, self.names.fetch_add(1, Ordering::Relaxed))
    }
}

/// A bank as one process knows it.
#[derive(Clone)]
pub(super) struct HeldBank {
    pub(super) name: String,
    /// The only process that may be asked about it, where memories are a process's own.
    pub(super) process: Option<Arc<Banks>>,
}

impl ProcessSystem {
    /// The bank, where nothing has to be in it or the process keeps what it was given; `None` for one that this process was not given.
    pub(super) async fn bank_if_here(&self, bank: &BankRef) -> Result<Option<HeldBank>, Failure> {
        let name = named(bank);
        if self.spec.can.survives_restart {
            return Ok(Some(HeldBank { name, process: None }));
        }
        let process = self.process("start").await?;
        Ok(process.has(&name).then_some(HeldBank { name, process: Some(process) }))
    }

    /// The bank, to add to it.
    ///
    /// # Errors
    /// A bank that another process was given: it has to begin anew.
    pub(super) async fn bank_to_fill(&self, bank: &BankRef) -> Result<HeldBank, Failure> {
        let held = self.bank_if_here(bank).await?;
        held.ok_or_else(|| Failure::transient(MEMORIES_LOST, self.lost(bank)))
    }

    /// The bank with its first entries in it.
    ///
    /// # Errors
    /// What storing them again says.
    pub(super) async fn bank_filled_to(&self, bank: &BankRef, entries: u32) -> Result<HeldBank, Failure> {
        if let Some(held) = self.bank_if_here(bank).await? {
            return Ok(held);
        }
        let Some(content) = bank.content.as_ref().filter(|_| !self.capabilities.consolidates) else {
            return Err(Failure::permanent(MEMORIES_LOST, self.lost(bank)));
        };
        let process = self.process("start").await?;
        // rare and large: on the heap, so that no future of an operation has room for it
        let fill = Box::pin(async {
            let name = process.new_name(bank);
            let mut held = HeldBank { name: name.clone(), process: Some(Arc::clone(&process)) };
            let reply = self.ask_in(Some(&process), ProcessOp::Open { bank: name }).await?.0;
            held.name = reply.handle.unwrap_or(held.name);
            for entry in content.entries.iter().take(entries as usize) {
                self.store(bank, &held, std::slice::from_ref(entry)).await?;
            }
            Ok::<_, Failure>(held.name)
        });
        let name = process.given_again(&named(bank), entries, fill).await?;
        Ok(HeldBank { name, process: Some(process) })
    }

    fn lost(&self, bank: &BankRef) -> String {
        format!("the process of {} is a new one and holds nothing of bank {}", self.spec.name, bank.bank_id)
    }
}

fn named(bank: &BankRef) -> String {
    bank.handle.clone().unwrap_or_else(|| bank.name.clone())
}

#[cfg(test)]
mod tests {
    use bench_proto::ids::Sha256Hash;

    use super::*;
    use crate::adapter::given::generation_of;

    #[test]
    fn p34_a_bank_that_is_given_again_has_a_name_that_says_which_bank_it_is() {
        let banks = Banks::<String>::default();
        for name in ["bench-12-g3", "bench-12-g3-i5f"] {
            let (handle, bank_id) = (None, "conv-1".to_owned());
            let bank = BankRef {
                name: name.to_owned(),
                handle,
                bank_id,
                content_hash: Sha256Hash::of_bytes(b""),
                content: None,
            };
            let (one, other) = (banks.new_name(&bank), banks.new_name(&bank));
            assert_ne!(one, other);
            assert_eq!((generation_of(&one), generation_of(&other)), (Some(("bench-12", 3)), Some(("bench-12", 3))));
        }
    }
}
