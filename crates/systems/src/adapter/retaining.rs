//! Storing items: in batches, one by one in order, or several at a time, and what the response says was stored. What replaces or
//! withdraws an earlier one is a request by itself, after all that came before it.

use std::collections::BTreeSet;

use bench_proto::{call::Usage, dataset::StreamEntry, failure::Failure};
use futures::{StreamExt, stream};
use serde_json::Value;

use super::{
    call::{Call, Read},
    file::Adapter,
    items::{Change, Item, replaced_vars},
    path::Path,
    spec::AdapterSpec,
    system::{AdapterSystem, CHECKS_IN_FLIGHT, bank_vars, handle},
};
use crate::{BankRef, RetainReceipt};

/// Most entries of a retain, whatever a file says of its batches.
const MOST_TOGETHER: u32 = 1024;

/// Requests of a retain in flight.
fn in_flight(spec: &AdapterSpec) -> u32 {
    if spec.can.order { 1 } else { spec.limits.parallel.unwrap_or(CHECKS_IN_FLIGHT as u32).clamp(1, 64) }
}

/// Items of a request.
pub(super) fn batch_of(adapter: &Adapter) -> u32 {
    if adapter.item.is_some() { adapter.spec.limits.batch.unwrap_or(1).clamp(1, MOST_TOGETHER) } else { 1 }
}

/// Most entries of a retain: as many whole batches as are in flight, within [`MOST_TOGETHER`].
pub(super) fn max_batch(adapter: &Adapter) -> u32 {
    let batch = batch_of(adapter);
    batch * in_flight(&adapter.spec).min(MOST_TOGETHER / batch).max(1)
}

/// How far storing some items has come.
#[derive(Default)]
struct Taken {
    usage: Usage,
    /// The first of the items, which are stored.
    stored: usize,
    /// What kept the others from being stored.
    failure: Option<Failure>,
    /// It is known that none of the others is.
    exact: bool,
}

impl Taken {
    /// With so many items that a request has stored, or what became of it.
    fn then(mut self, done: Result<Stored, Failure>) -> Self {
        match done {
            Ok(Stored { items, usage, missing }) => {
                self.usage += usage;
                self.stored += items;
                (self.exact, self.failure) = (missing.is_some(), missing);
            }
            Err(failure) => (self.exact, self.failure) = (false, Some(failure)),
        }
        self
    }
}

/// What a request has stored.
struct Stored {
    /// The first of its items.
    items: usize,
    usage: Usage,
    /// The failure that it is that the others are not.
    missing: Option<Failure>,
}

impl AdapterSystem {
    /// Stores entries in the way that the adapter says. Where storing an item again changes nothing, and where it is known that
    /// the others are not stored, the first ones stand although the others failed; what these met is met again by who asks again.
    pub(super) async fn take_in(&self, bank: &BankRef, entries: &[StreamEntry]) -> Result<RetainReceipt, Failure> {
        self.note_work();
        let taken = self.store(bank, entries).await;
        // what was sent is worked on from its end on, whatever came of it
        self.note_work();
        taken
    }

    async fn store(&self, bank: &BankRef, entries: &[StreamEntry]) -> Result<RetainReceipt, Failure> {
        let Some(retain) = &self.adapter.retain else {
            return Err(Failure::permanent("system_cannot", "the adapter has no `retain`"));
        };
        let (mut items, ends) = self.cut(bank).items_and_ends(entries)?;
        if let Some(undated) = &self.adapter.spec.undated {
            items = items.into_iter().map(|item| item.or_at(undated)).collect();
        }
        let mut taken = Taken::default();
        while let Some(item) = items.get(taken.stored).filter(|_| taken.failure.is_none()) {
            let from = taken.stored;
            let added = items[from..].iter().take_while(|item| item.change == Change::Adds).count();
            taken = match added {
                0 => {
                    let changed = self.change(retain, bank, item, from).await;
                    taken.then(changed.map(|usage| Stored { items: 1, usage, missing: None }))
                }
                _ => self.add(retain, bank, &items[from..from + added], taken).await,
            };
        }
        let whole = ends.iter().take_while(|end| **end <= taken.stored).count();
        let stands =
            whole > 0 && (self.capabilities.retain_idempotent || taken.exact && ends[whole - 1] == taken.stored);
        match taken.failure {
            Some(failure) if !stands => return Err(failure),
            _ => {}
        }
        Ok(RetainReceipt {
            written: entries[..whole].iter().map(|entry| entry.turns() as u64).sum(),
            left: u32::try_from(entries.len() - whole).unwrap_or(u32::MAX),
            usage: taken.usage,
            ..RetainReceipt::default()
        })
    }

    /// Replaces or withdraws what was stored before, as far as the system can: what it cannot is known before the run.
    async fn change(&self, retain: &Call, bank: &BankRef, item: &Item, index: usize) -> Result<Usage, Failure> {
        let (update, forget) = (&self.adapter.update, &self.adapter.forget);
        let (gone, stored) = match &item.change {
            Change::Adds => (&[][..], true),
            Change::Replaces(gone) => (gone.as_slice(), true),
            Change::Withdraws(gone) => (gone.as_slice(), false),
        };
        self.no_longer_done(bank, gone.iter().chain([&item.id]));
        let (mut usage, mut left) = (Usage::default(), gone);
        if let (Some(update), true, Some((first, more))) = (update, stored, gone.split_first()) {
            if !more.is_empty() && forget.is_none() {
                let parts = gone.len();
                let message =
                    format!("{first} was too long and stored as {parts} items, and the adapter has no `forget`");
                return Err(Failure::permanent("system_cannot", message));
            }
            let vars = item.vars(handle(bank), index as u64, self.adapter.message.as_ref(), |name| update.uses(name));
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
            let added = self.add_some(retain, bank, std::slice::from_ref(item), index).await?;
            usage += added.usage;
            return added.missing.map_or(Ok(usage), Err);
        }
        Ok(usage)
    }

    /// Stores items of which none does anything to another, behind those that are taken in already.
    async fn add(&self, call: &Call, bank: &BankRef, items: &[Item], mut taken: Taken) -> Taken {
        let (batch, side_by_side) = (batch_of(&self.adapter) as usize, in_flight(&self.adapter.spec) as usize);
        let from = taken.stored;
        let add = |at: usize| self.add_some(call, bank, &items[at..items.len().min(at + batch)], from + at);
        let mut requests = stream::iter((0..items.len()).step_by(batch)).map(add).buffered(side_by_side);
        while taken.failure.is_none()
            && let Some(done) = requests.next().await
        {
            taken = taken.then(done);
        }
        // requests that were under way beside the one that failed may have stored what is behind it
        taken.exact &= side_by_side == 1;
        taken
    }

    /// Stores the items of one request; `from` is the place of the first.
    async fn add_some(&self, call: &Call, bank: &BankRef, items: &[Item], from: usize) -> Result<Stored, Failure> {
        let (name, message) = (handle(bank), self.adapter.message.as_ref());
        let vars = |(n, item): (usize, &Item)| {
            let vars = item.vars(name, (from + n) as u64, message, |name| self.adapter.item_vars.contains(name));
            vars.with("bank", name).with("name", bank.name.as_str())
        };
        let vars = match &self.adapter.item {
            Some(template) => {
                let rendered = items.iter().enumerate().filter_map(|item| template.render(&vars(item)));
                bank_vars(bank).with("items", rendered.collect::<Vec<Value>>())
            }
            None => items.iter().enumerate().map(vars).next().unwrap_or_else(|| bank_vars(bank)),
        };
        let read = self.send(call, Some(bank), &vars).await?;
        let stored = self.stored_of(call, &read, items, name)?;
        let missing = (stored < items.len()).then(|| partial(call, stored, items.len()));
        Ok(Stored { items: stored, usage: read.usage, missing })
    }

    /// How many of the first items of a request are stored, where it is known that the others are not.
    ///
    /// # Errors
    /// When fewer are stored than were sent and it is not known which.
    fn stored_of(&self, call: &Call, read: &Read, items: &[Item], bank: &str) -> Result<usize, Failure> {
        let spec = self.adapter.spec.retain.as_ref();
        let Some(path) = spec.and_then(|retain| retain.stored.as_deref()).map(Path::new) else {
            return Ok(items.len());
        };
        let Some(id) = spec.and_then(|retain| retain.stored_id.as_deref()).map(Path::new) else {
            let stored = path.count(&read.value).map_err(|error| call.shape(error))?;
            let all = stored >= items.len() as u64;
            return if all { Ok(items.len()) } else { Err(partial(call, stored as usize, items.len())) };
        };
        let list = path.list(&read.value).map_err(|error| call.shape(error))?;
        let list = list.ok_or_else(|| call.shape(path.absent("", &read.value)))?;
        let names: BTreeSet<String> = list.iter().filter_map(|element| id.string(element)).collect();
        if names.is_empty() && !list.is_empty() {
            return Err(call.shape(format!("field '{}' of element 0 of '{}' is missing", id.shown(), path.shown())));
        }
        let is_stored = |item: &Item| names.contains(&item.id) || names.contains(&item.key(bank));
        let first = items.iter().take_while(|item| is_stored(item)).count();
        match items[first..].iter().filter(|item| is_stored(item)).count() {
            0 => Ok(first),
            behind => Err(partial(call, first + behind, items.len())),
        }
    }
}

fn partial(call: &Call, stored: usize, sent: usize) -> Failure {
    Failure::transient("system_partial_batch", format!("{}: {stored} of {sent} items were stored", call.what))
}
