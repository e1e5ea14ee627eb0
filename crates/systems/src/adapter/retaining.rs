//! Storing items: in batches, one by one in order, or several at a time, and what the response says was stored.

use bench_proto::{call::Usage, failure::Failure};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::{
    call::{Call, Read},
    items::Item,
    path::Path,
    system::{CHECKS_IN_FLIGHT, HttpSystem, bank_vars, handle},
};
use crate::BankRef;

impl HttpSystem {
    /// Sends items in the way that the adapter says.
    pub(super) async fn retain_item_calls(
        &self,
        call: &Call,
        bank: &BankRef,
        items: &[Item],
    ) -> Result<Usage, Failure> {
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
                            let vars = item.vars(bank_name, (at * batch + n) as u64, message);
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
                        let vars = items[n].vars(bank_name, n as u64, message);
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
                    let vars = item.vars(bank_name, n as u64, message);
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
