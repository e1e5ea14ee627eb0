//! Banks of servers whose process keeps its memories to itself (`can: {survives_restart: false}`), as those of other processes
//! (`process::keeping`): what a process was not given it is given again, under a name of its own, before it is asked, and a bank that
//! was being filled begins anew.

use std::{borrow::Cow, sync::Arc, time::Duration};

use bench_proto::failure::{Failure, code::MEMORIES_LOST};

use super::{CONNECTION, Connected, ToolServer};
use crate::{
    BankRef, MemorySystem as _, Readiness,
    adapter::system::{AdapterSystem, handle},
};

impl ToolServer {
    /// The connection over which a bank may be asked about.
    ///
    /// # Errors
    /// Also where the process is another one than the bank was given to.
    pub(in super::super) async fn connected_for(&self, bank: Option<&BankRef>) -> Result<Arc<Connected>, Failure> {
        let (connected, _) = self.connected().await?;
        match bank.filter(|bank| self.forgets && !connected.banks.has(handle(bank))) {
            Some(bank) => Err(Failure::transient(CONNECTION, self.lost(bank))),
            None => Ok(connected),
        }
    }

    fn lost(&self, bank: &BankRef) -> String {
        format!("the process of {} is a new one and holds nothing of bank {}", self.name, bank.bank_id)
    }

    /// Notes that a bank was opened between two looks at the connection, where memories end with it.
    ///
    /// # Errors
    /// When the process ended in between.
    pub(in super::super) async fn opened(
        &self,
        before: &Arc<Connected>,
        bank: &BankRef,
        name: &str,
    ) -> Result<(), Failure> {
        let (now, _) = self.connected().await?;
        if self.forgets && !Arc::ptr_eq(before, &now) {
            return Err(Failure::transient(CONNECTION, self.lost(bank)));
        }
        now.banks.opened(name);
        Ok(())
    }
}

impl AdapterSystem {
    fn forgetful(&self) -> Option<&ToolServer> {
        self.tools().filter(|server| server.forgets)
    }

    /// Whether the bank is where it can be asked about.
    ///
    /// # Errors
    /// What keeps its server from being greeted.
    pub(in super::super) async fn is_here(&self, bank: &BankRef) -> Result<bool, Failure> {
        let Some(server) = self.forgetful() else { return Ok(true) };
        Ok(server.connected().await?.0.banks.has(handle(bank)))
    }

    /// Refuses to add to a bank that another process was given: it has to begin anew.
    ///
    /// # Errors
    /// Where that is so.
    pub(in super::super) async fn can_be_filled(&self, bank: &BankRef) -> Result<(), Failure> {
        match self.forgetful() {
            Some(server) if !self.is_here(bank).await? => Err(Failure::transient(MEMORIES_LOST, server.lost(bank))),
            _ => Ok(()),
        }
    }

    /// The bank with its first entries in it, as it can be asked about.
    ///
    /// # Errors
    /// What storing them again says.
    pub(in super::super) async fn bank_with<'b>(
        &self,
        bank: &'b BankRef,
        entries: u32,
    ) -> Result<Cow<'b, BankRef>, Failure> {
        let Some(server) = self.forgetful() else { return Ok(Cow::Borrowed(bank)) };
        let (connected, _) = server.connected().await?;
        if connected.banks.has(handle(bank)) {
            return Ok(Cow::Borrowed(bank));
        }
        let Some(content) = bank.content.as_ref().filter(|_| !self.capabilities.consolidates) else {
            return Err(Failure::permanent(MEMORIES_LOST, server.lost(bank)));
        };
        // rare and large: on the heap, so that no future of an operation has room for it
        let fill = Box::pin(async {
            let mut again = BankRef { name: connected.banks.new_name(bank), handle: None, ..bank.clone() };
            let own = self.open_bank(&again).await?;
            again.handle = Some(own.clone());
            for entry in content.entries.iter().take(entries as usize) {
                if self.take_in(&again, std::slice::from_ref(entry)).await?.left > 0 {
                    return Err(Failure::transient("system_partial_batch", "the bank could not be given again"));
                }
            }
            while let Readiness::NotYet { poll_after_ms } = self.look_ready(&again, entries).await? {
                tokio::time::sleep(Duration::from_millis(poll_after_ms)).await;
            }
            Ok::<_, Failure>((again.name, own))
        });
        let (name, own) = connected.banks.given_again(handle(bank), entries, fill).await?;
        Ok(Cow::Owned(BankRef { name, handle: Some(own), ..bank.clone() }))
    }
}
