//! `oracle`: hands over the gold evidence. The ceiling: what an answerer makes of a perfect recall. A control, never a
//! competitor.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use bench_proto::{dataset::BankContent, failure::Failure, step::RetrievedHit};

use super::{
    BankRef, BuildContext, BuildError, Capabilities, MemorySystem, RecallQuery, SystemSettings, documents,
    from_items::{FromItems, Search},
};

/// Raised whenever a recall can change.
const VERSION: &str = "1.0.0";

struct Evidence;

/// Builds the system; it has no settings.
pub(super) fn build(_: &SystemSettings, _: &BuildContext) -> Result<Arc<dyn MemorySystem>, BuildError> {
    let capabilities = Capabilities { sees_gold: true, ..Capabilities::from_items(VERSION) };
    Ok(FromItems::system(capabilities, Evidence))
}

#[async_trait]
impl Search for Evidence {
    async fn search(
        &self,
        _: &BankRef,
        content: &Arc<BankContent>,
        query: &RecallQuery<'_>,
    ) -> Result<Vec<RetrievedHit>, Failure> {
        let evidence = query.evidence.ok_or_else(|| {
            let message = format!("the gold evidence of question {} was not handed over", query.question_id);
            Failure::permanent("evidence_missing", message)
        })?;
        let documents = documents::visible(content, query.visible_entries);
        let mut by_id: HashMap<&str, _> = documents.into_iter().map(|document| (document.id(), document)).collect();
        // published data cites turns that do not exist: those are skipped; taking out drops repeats
        let found = evidence.iter().filter_map(|id| by_id.remove(id.as_str()));
        Ok(found.take(query.k as usize).map(|document| document.hit(None)).collect())
    }
}
