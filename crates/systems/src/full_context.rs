//! `full-context`: hands over the whole bank, in order. What memory is worth when the context window is the memory.

use std::sync::Arc;

use bench_proto::failure::Failure;

use crate::{
    BankRef, BuildContext, BuildError, Capabilities, MemorySystem, RecallQuery, SystemSettings,
    documents::Document,
    from_items::{FromItems, Pick},
};

/// Raised whenever a recall can change.
const VERSION: &str = "1.0.0";

struct Everything;

/// Builds the system; it has no settings.
pub(crate) fn build(_: &SystemSettings, _: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let capabilities = Capabilities { ignores_k: true, ..Capabilities::from_items(VERSION) };
    Ok(FromItems::system(capabilities, Everything))
}

impl Pick for Everything {
    fn pick<'a>(
        &self,
        _: &BankRef,
        documents: Vec<Document<'a>>,
        _: &RecallQuery<'_>,
    ) -> Result<Vec<Document<'a>>, Failure> {
        Ok(documents)
    }
}
