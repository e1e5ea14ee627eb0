//! Stored replies, as the caller sees them (P9).

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use bench_proto::{
    call::{CacheScope, CallRecord},
    failure::Failure,
    ids::{RunNo, Sha256Hash},
};
use bench_store::{SHARED_CALLS_EVENT, Store, StoreError, StoredCall};

/// Finds replies that were paid for before.
#[async_trait]
pub trait CallStore: Send + Sync {
    /// An accepted call with this key, of a lineage or of whoever else its run may use calls of.
    ///
    /// # Errors
    /// A transient failure when the store cannot be read: calling anyway could pay twice.
    async fn find(&self, lineage: &str, key: Sha256Hash) -> Result<Option<CallRecord>, Failure>;
}

/// The store as a run's call store.
pub struct StoredCalls {
    store: Arc<dyn Store>,
    run: RunNo,
    scope: CacheScope,
    /// Runs whose calls were used and noted.
    noted: Mutex<HashSet<RunNo>>,
}

impl StoredCalls {
    /// The calls that `run` may use.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, run: RunNo, scope: CacheScope) -> Self {
        Self { store, run, scope, noted: Mutex::default() }
    }

    async fn look_up(&self, lineage: &str, key: Sha256Hash) -> Result<Option<StoredCall>, StoreError> {
        let own = self.store.find_calls(lineage, &[key]).await?.into_iter().next();
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

#[async_trait]
impl CallStore for StoredCalls {
    async fn find(&self, lineage: &str, key: Sha256Hash) -> Result<Option<CallRecord>, Failure> {
        if !self.scope.reads() {
            return Ok(None);
        }
        let failed = |error: StoreError| Failure::transient("store", format!("cannot look up stored calls: {error}"));
        let Some(call) = self.look_up(lineage, key).await.map_err(failed)? else { return Ok(None) };
        self.note(call.run).await.map_err(failed)?;
        Ok(Some(call.record))
    }
}
