//! `full-context`: hands over the whole bank, in order. What memory is worth when the context window is the memory.

use std::sync::Arc;

use async_trait::async_trait;
use bench_proto::{dataset::BankContent, failure::Failure, step::RetrievedHit};

use super::{
    BankRef, BuildContext, BuildError, Capabilities, MemorySystem, RecallQuery, SystemSettings, documents,
    from_items::{FromItems, Search},
};

/// Raised whenever a recall can change.
const VERSION: &str = "1.0.0";

struct Everything;

/// Builds the system; it has no settings.
pub(super) fn build(_: &SystemSettings, _: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let capabilities = Capabilities { ignores_k: true, ..Capabilities::from_items(VERSION) };
    Ok(FromItems::system(capabilities, Everything))
}

#[async_trait]
impl Search for Everything {
    async fn search(
        &self,
        _: &BankRef,
        content: &Arc<BankContent>,
        query: &RecallQuery<'_>,
    ) -> Result<Vec<RetrievedHit>, Failure> {
        let documents = documents::visible(content, query.visible_entries);
        Ok(documents.into_iter().map(|document| document.hit(None)).collect())
    }
}
