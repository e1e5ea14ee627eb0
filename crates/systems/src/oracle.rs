//! `oracle`: hands over the gold evidence. The ceiling: what an answerer makes of a perfect recall. A control, never a
//! competitor.

use std::{collections::HashMap, sync::Arc};

use bench_proto::failure::Failure;

use crate::{
    BankRef, BuildContext, BuildError, Capabilities, MemorySystem, RecallQuery, SystemSettings,
    documents::Document,
    from_items::{FromItems, Pick},
};

/// Raised whenever a recall can change.
const VERSION: &str = "1.0.0";

struct Evidence;

/// Builds the system; it has no settings.
pub(crate) fn build(_: &SystemSettings, _: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let capabilities = Capabilities { sees_gold: true, ..Capabilities::from_items(VERSION) };
    Ok(FromItems::system(capabilities, Evidence))
}

impl Pick for Evidence {
    fn pick<'a>(
        &self,
        _: &BankRef,
        documents: Vec<Document<'a>>,
        query: &RecallQuery<'_>,
    ) -> Result<Vec<Document<'a>>, Failure> {
        let evidence = query.evidence.ok_or_else(|| {
            let message = format!("the gold evidence of question {} was not handed over", query.question_id);
            Failure::permanent("evidence_missing", message)
        })?;
        let mut by_id: HashMap<&str, _> = documents.into_iter().map(|document| (document.id(), document)).collect();
        // published data cites turns that do not exist: those are skipped; taking out drops repeats
        let found = evidence.iter().filter_map(|id| by_id.remove(id.as_str()));
        Ok(found.take(query.k as usize).collect())
    }
}
