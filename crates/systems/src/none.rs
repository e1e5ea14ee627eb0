//! `none`: remembers nothing. The floor: what an answerer knows or guesses without any memory.

use std::sync::Arc;

use bench_proto::failure::Failure;

use crate::{
    BankRef, BuildContext, BuildError, Capabilities, MemorySystem, RecallQuery, SystemSettings,
    documents::Document,
    from_items::{FromItems, Pick},
};

/// Raised whenever a recall can change.
const VERSION: &str = "1.0.0";

struct Nothing;

/// Builds the system; it has no settings.
pub(crate) fn build(_: &SystemSettings, _: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let capabilities = Capabilities { empty_by_design: true, ..Capabilities::from_items(VERSION) };
    Ok(FromItems::system(capabilities, Nothing))
}

impl Pick for Nothing {
    fn pick<'a>(&self, _: &BankRef, _: Vec<Document<'a>>, _: &RecallQuery<'_>) -> Result<Vec<Document<'a>>, Failure> {
        Ok(Vec::new())
    }
}
