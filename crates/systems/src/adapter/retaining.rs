//! Storing items: in batches, one by one in order, or several at a time, and what the response says was stored. What replaces or
//! withdraws an earlier one is a request by itself, after all that came before it.

use bench_proto::{call::Usage, failure::Failure};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::{
    call::{Call, Read},
    items::{Change, Item, replaced_vars},
    path::Path,
    system::{CHECKS_IN_FLIGHT, HttpSystem, bank_vars, handle},
};
use crate::BankRef;

impl HttpSystem {
    /// Sends items in the way that the adapter says.
    pub(super) async fn take_in(&self, bank: &BankRef, items: &[Item]) -> Result<Usage, Failure> {
        let Some(retain) = &self.adapter.retain else {
            return Err(Failure::permanent("system_cannot", "the adapter has no `retain`"));
        };
        let (mut usage, mut next) = (Usage::default(), 0);
        while let Some(item) = items.get(next) {
            let added = items[next..].iter().take_while(|item| item.change == Change::Adds).count();
            usage += match added {
                0 => self.change(retain, bank, item, next).await?,
                _ => self.add(retain, bank, &items[next..next + added], next).await?,
            };
            next += added.max(1);
        }
        Ok(usage)
    }

    /// Replaces or withdraws what was stored before, as far as the system can: what it cannot is known before the run.
    async fn change(&self, retain: &Call, bank: &BankRef, item: &Item, index: usize) -> Result<Usage, Failure> {
        let (update, forget) = (&self.adapter.update, &self.adapter.forget);
        let (gone, stored) = match &item.change {
            Change::Adds => (&[][..], true),
            Change::Replaces(gone) => (gone.as_slice(), true),
            Change::Withdraws(gone) => (gone.as_slice(), false),
        };
        let (mut usage, mut left) = (Usage::default(), gone);
        if let (Some(update), true, Some((first, more))) = (update, stored, gone.split_first()) {
            if !more.is_empty() && forget.is_none() {
                let parts = gone.len();
                let message =
                    format!("{first} was too long and stored as {parts} items, and the adapter has no `forget`");
                return Err(Failure::permanent("system_cannot", message));
            }
            let vars = item.vars(handle(bank), index as u64, self.adapter.message.as_ref());
            let vars = vars.with("bank", handle(bank)).with("name", bank.name.as_str());
            usage += self.send(update, Some(bank), &replaced_vars(vars, handle(bank), first)).await?.usage;
            left = more;
        }
        if let Some(forget) = forget {
            for id in left {
                usage += self.send(forget, Some(bank), &replaced_vars(bank_vars(bank), handle(bank), id)).await?.usage;
            }
        }
        if stored && update.is_none() {
            usage += self.add(retain, bank, std::slice::from_ref(item), index).await?;
        }
        Ok(usage)
    }

    /// Stores items of which none does anything to another; `from` is the place of the first.
    async fn add(&self, call: &Call, bank: &BankRef, items: &[Item], from: usize) -> Result<Usage, Failure> {
        let message = self.adapter.message.as_ref();
        let mut usage = Usage::default();
        let batch = self.adapter.spec.limits.batch.unwrap_or(1).max(1) as usize;
        let bank_name = handle(bank);
        match &self.adapter.item {
            Some(template) => {
                for (at, chunk) in items.chunks(batch).enumerate() {
                    let rendered: Vec<Value> = chunk
                        .iter()
                        .enumerate()
                        .filter_map(|(n, item)| {
                            let vars = item.vars(bank_name, (from + at * batch + n) as u64, message);
                            template.render(&vars.with("bank", bank_name).with("name", bank.name.as_str()))
                        })
                        .collect();
                    let sent = rendered.len();
                    let read = self.send(call, Some(bank), &bank_vars(bank).with("items", rendered)).await?;
                    self.check_stored(call, &read, sent)?;
                    usage += read.usage;
                }
            }
            None if !self.adapter.spec.can.order => {
                let in_flight = self.adapter.spec.limits.parallel.unwrap_or(CHECKS_IN_FLIGHT as u32).clamp(1, 64);
                let reads: Vec<Usage> = stream::iter(0..items.len())
                    .map(|n| async move {
                        let vars = items[n].vars(bank_name, (from + n) as u64, message);
                        let vars = vars.with("bank", bank_name).with("name", bank.name.as_str());
                        let read = self.send(call, Some(bank), &vars).await?;
                        self.check_stored(call, &read, 1)?;
                        Ok::<_, Failure>(read.usage)
                    })
                    .buffer_unordered(in_flight as usize)
                    .try_collect()
                    .await?;
                reads.into_iter().for_each(|read| usage += read);
            }
            None => {
                for (n, item) in items.iter().enumerate() {
                    let vars = item.vars(bank_name, (from + n) as u64, message);
                    let vars = vars.with("bank", bank_name).with("name", bank.name.as_str());
                    let read = self.send(call, Some(bank), &vars).await?;
                    self.check_stored(call, &read, 1)?;
                    usage += read.usage;
                }
            }
        }
        Ok(usage)
    }

    fn check_stored(&self, call: &Call, read: &Read, sent: usize) -> Result<(), Failure> {
        let Some(path) = self.adapter.spec.retain.as_ref().and_then(|retain| retain.stored.as_deref()) else {
            return Ok(());
        };
        let stored = Path::new(path).count(&read.value).map_err(|error| call.shape(error))?;
        if stored < sent as u64 {
            return Err(Failure::transient(
                "system_partial_batch",
                format!("{}: {stored} of {sent} items were stored", call.what),
            ));
        }
        Ok(())
    }
}
