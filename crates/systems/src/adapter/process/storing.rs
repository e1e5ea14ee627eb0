//! What is stored in a bank: entries as items, in portions where none does anything to another, else one by one.

use bench_proto::{call::Usage, dataset::StreamEntry, failure::Failure};

use super::{
    ProcessSystem,
    abilities::batch_of,
    keeping::HeldBank,
    protocol::{ProcessOp, ProcessReply},
};
use crate::{
    BankRef,
    adapter::{
        call::believed,
        items::{Change, Cut, Item},
    },
};

impl ProcessSystem {
    fn cut<'a>(&self, bank: &'a BankRef) -> Cut<'a> {
        Cut::for_bank(&self.spec, bank)
    }

    /// Number of items that a bank holds after some entries.
    pub(super) fn expected(&self, bank: &BankRef, entries: u32) -> Result<u64, Failure> {
        Ok(self.cut(bank).expected(entries, &self.capabilities)?.len() as u64)
    }

    /// Stores items of which none does anything to another.
    async fn add(&self, held: &HeldBank, items: &[Item]) -> Result<Usage, Failure> {
        let mut used = Usage::default();
        for chunk in items.chunks(batch_of(&self.spec) as usize) {
            let items = chunk.iter().map(Item::for_process).collect();
            let reply = self.ask_at(held, ProcessOp::Retain { bank: held.name.clone(), items }).await?;
            if reply.count.is_some_and(|count| count < chunk.len() as u64) {
                let stored = reply.count.unwrap_or(0);
                return Err(Failure::transient(
                    "system_partial_batch",
                    format!("retain: {stored} of {} items were stored", chunk.len()),
                ));
            }
            used += usage(&reply);
        }
        Ok(used)
    }

    /// Replaces or withdraws what was stored before, as far as the process can: what it cannot is known before the run.
    async fn change(&self, held: &HeldBank, item: &Item) -> Result<Usage, Failure> {
        let can = &self.spec.can;
        let forget = |gone: &Vec<String>| ProcessOp::Forget { bank: held.name.clone(), replaces: gone.clone() };
        match &item.change {
            Change::Replaces(gone) if can.updates => {
                let item = Box::new(item.for_process());
                Ok(usage(
                    &self
                        .ask_at(held, ProcessOp::Update { bank: held.name.clone(), replaces: gone.clone(), item })
                        .await?,
                ))
            }
            Change::Replaces(gone) if can.withdraws => {
                let mut used = usage(&self.ask_at(held, forget(gone)).await?);
                used += self.add(held, std::slice::from_ref(item)).await?;
                Ok(used)
            }
            Change::Withdraws(gone) if can.withdraws => Ok(usage(&self.ask_at(held, forget(gone)).await?)),
            Change::Withdraws(_) => Ok(Usage::default()),
            Change::Adds | Change::Replaces(_) => self.add(held, std::slice::from_ref(item)).await,
        }
    }

    /// Stores entries; the tokens that it took.
    pub(super) async fn store(
        &self,
        bank: &BankRef,
        held: &HeldBank,
        entries: &[StreamEntry],
    ) -> Result<Usage, Failure> {
        let items = self.cut(bank).items(entries)?;
        let (mut used, mut next) = (Usage::default(), 0);
        while let Some(item) = items.get(next) {
            let added = items[next..].iter().take_while(|item| item.change == Change::Adds).count();
            used += match added {
                0 => self.change(held, item).await?,
                _ => self.add(held, &items[next..next + added]).await?,
            };
            next += added.max(1);
        }
        Ok(used)
    }
}

/// The tokens that a reply says were used, as far as they can be believed.
pub(super) fn usage(reply: &ProcessReply) -> Usage {
    let (prompt_tokens, completion_tokens) = (believed(reply.prompt_tokens), believed(reply.completion_tokens));
    Usage { prompt_tokens, completion_tokens, ..Usage::default() }
}
