//! Stored replies, as the caller sees them (P9).

use std::sync::Arc;

use async_trait::async_trait;
use bench_proto::{call::CallRecord, failure::Failure, ids::Sha256Hash};
use bench_store::Calls;

/// Finds replies that were paid for before.
#[async_trait]
pub trait CallStore: Send + Sync {
    /// The oldest accepted call of a lineage with this key.
    ///
    /// # Errors
    /// A transient failure when the store cannot be read: calling anyway could pay twice.
    async fn find(&self, lineage: &str, key: Sha256Hash) -> Result<Option<CallRecord>, Failure>;
}

/// The run's store as a call store.
pub struct StoredCalls(pub Arc<dyn Calls>);

#[async_trait]
impl CallStore for StoredCalls {
    async fn find(&self, lineage: &str, key: Sha256Hash) -> Result<Option<CallRecord>, Failure> {
        match self.0.find_calls(lineage, &[key]).await {
            Ok(found) => Ok(found.into_iter().next().map(|call| call.record)),
            Err(error) => Err(Failure::transient("store", format!("cannot look up stored calls: {error}"))),
        }
    }
}
