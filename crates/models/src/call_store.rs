//! Stored replies, as the caller sees them (P9).

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use bench_proto::{
    call::{CacheScope, CallRecord},
    failure::Failure,
    ids::{RunNo, Sha256Hash, TaskKey},
};
use bench_store::{Calls, SHARED_CALLS_EVENT, Store, StoreError, StoredCall};

/// Finds replies that were paid for before.
#[async_trait]
pub trait CallStore: Send + Sync {
    /// An accepted call with this key, of a lineage or of whoever else its run may use calls of, for a task.
    ///
    /// # Errors
    /// A transient failure when the store cannot be read: calling anyway could pay twice.
    async fn find(&self, lineage: &str, key: Sha256Hash, task: TaskKey) -> Result<Option<Found>, Failure>;
}

/// A stored call.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What was sent and what came back.
    pub record: CallRecord,
    /// The task made it itself, before it was interrupted: it is counted now, and nowhere else.
    pub own: bool,
}

/// The store as a run's call store.
pub struct StoredCalls {
    store: Arc<dyn Store>,
    run: RunNo,
    scope: CacheScope,
    /// A run finds what it has made itself under any scope: it is what its banks hold.
    of_banks: bool,
    /// Runs whose calls were used and noted.
    noted: Mutex<HashSet<RunNo>>,
}

impl StoredCalls {
    /// The calls that `run` may use.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, run: RunNo, scope: CacheScope) -> Self {
        Self { store, run, scope, of_banks: false, noted: Mutex::default() }
    }

    /// The calls that the banks of `run` may rest on: what a chat model has made of them is read back whatever the scope says.
    #[must_use]
    pub fn of_banks(store: Arc<dyn Store>, run: RunNo, scope: CacheScope) -> Self {
        Self { of_banks: true, ..Self::new(store, run, scope) }
    }

    async fn look_up(&self, lineage: &str, key: Sha256Hash) -> Result<Option<StoredCall>, StoreError> {
        // what is read back only because the run has made it is nobody else's
        let usable = |call: &StoredCall| self.scope.reads() || call.run == self.run;
        let own = self.store.find_calls(lineage, &[key]).await?.into_iter().find(usable);
        if own.is_some() || self.scope != CacheScope::Shared {
            return Ok(own);
        }
        Ok(self.store.find_shared_calls(&[key]).await?.into_iter().next())
    }

    /// Notes once whose calls a run uses, before it uses them: its report names them.
    async fn note(&self, of: RunNo) -> Result<(), StoreError> {
        let noted = |of: RunNo| self.noted.lock().unwrap_or_else(PoisonError::into_inner).contains(&of);
        if of == self.run || noted(of) {
            return Ok(());
        }
        let id = self.store.run(of).await?.run_id;
        self.store.add_event(self.run, SHARED_CALLS_EVENT, &id.0).await?;
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).insert(of);
        Ok(())
    }
}

/// The store as a run's memory of embeddings, which are no draw: those of all runs unless the run's scope is its own.
pub struct StoredEmbeddings {
    store: Arc<dyn Calls>,
    run: RunNo,
    scope: CacheScope,
}

impl StoredEmbeddings {
    /// The embeddings that `run` may use.
    #[must_use]
    pub fn new(store: Arc<dyn Calls>, run: RunNo, scope: CacheScope) -> Self {
        Self { store, run, scope }
    }
}

#[async_trait]
impl CallStore for StoredEmbeddings {
    async fn find(&self, lineage: &str, key: Sha256Hash, task: TaskKey) -> Result<Option<Found>, Failure> {
        if task == TaskKey::PROBE {
            // a reply that is read back says nothing about how long it takes
            return Ok(None);
        }
        // a run always finds what it has made itself, under any scope: it is what its banks hold
        let usable = |call: &StoredCall| self.scope.reads() || call.run == self.run;
        let own = self.store.find_calls(lineage, &[key]).await.map_err(not_read)?;
        let found = match own.into_iter().find(usable) {
            Some(call) => Some(call),
            None => self.store.find_shared_calls(&[key]).await.map_err(not_read)?.into_iter().find(usable),
        };
        Ok(found.map(|call| Found { own: call.run == self.run && call.task == task, record: call.record }))
    }
}

fn not_read(error: StoreError) -> Failure {
    Failure::transient("store", format!("cannot look up stored calls: {error}"))
}

#[async_trait]
impl CallStore for StoredCalls {
    async fn find(&self, lineage: &str, key: Sha256Hash, task: TaskKey) -> Result<Option<Found>, Failure> {
        if !self.scope.reads() && !self.of_banks {
            return Ok(None);
        }
        let Some(call) = self.look_up(lineage, key).await.map_err(not_read)? else { return Ok(None) };
        self.note(call.run).await.map_err(not_read)?;
        // an answer is stored together with its step; what a bank rests on before it
        let own = self.of_banks && call.run == self.run && call.task == task;
        Ok(Some(Found { record: call.record, own }))
    }
}
