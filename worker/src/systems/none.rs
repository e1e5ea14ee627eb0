//! `none`: remembers nothing. The floor: what an answerer knows or guesses without any memory.

use std::sync::Arc;

use async_trait::async_trait;
use bench_proto::{dataset::BankContent, failure::Failure, step::RetrievedHit};

use super::{
    BankRef, BuildContext, BuildError, Capabilities, MemorySystem, RecallQuery, SystemSettings,
    from_items::{FromItems, Search},
};

/// Raised whenever a recall can change.
const VERSION: &str = "1.0.0";

struct Nothing;

/// Builds the system; it has no settings.
pub(super) fn build(_: &SystemSettings, _: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let capabilities = Capabilities { empty_by_design: true, ..Capabilities::from_items(VERSION) };
    Ok(FromItems::system(capabilities, Nothing))
}

#[async_trait]
impl Search for Nothing {
    async fn search(
        &self,
        _: &BankRef,
        _: &Arc<BankContent>,
        _: &RecallQuery<'_>,
    ) -> Result<Vec<RetrievedHit>, Failure> {
        Ok(Vec::new())
    }
}
