//! The common part of all systems that are computed from the stored items alone (P29): nothing is written on retain,
//! everything is ready at once, and any worker can serve any question.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bench_proto::{
    dataset::{BankContent, StreamEntry},
    failure::Failure,
    step::RetrievedHit,
};

use crate::{
    BankRef, Capabilities, ListCursor, ListedPage, MemorySystem, Prepared, Readiness, Recall, RecallQuery,
    RetainReceipt, StepContext,
    documents::{self, Document},
};

/// A search of a bank, with the content that makes up the bank.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) bank: &'a BankRef,
    pub(crate) content: &'a Arc<BankContent>,
    pub(crate) query: &'a RecallQuery<'a>,
}

impl Lookup<'_> {
    /// Which of the visible documents may be found; `None` for all of them.
    ///
    /// # Errors
    /// A filter whose times cannot be read.
    pub(crate) fn admitted(&self) -> Result<Option<Vec<bool>>, Failure> {
        documents::admitted(self.content, self.query.visible_entries, self.query.filter)
    }
}

impl<'a> Lookup<'a> {
    /// # Errors
    /// A bank without content, which is a mistake of whoever runs the system.
    fn new(bank: &'a BankRef, query: &'a RecallQuery<'a>) -> Result<Self, Failure> {
        let content = bank.content.as_ref().ok_or_else(|| {
            let message = format!("the content of bank {} was not handed to its system", bank.bank_id);
            Failure::permanent("bank_content_missing", message)
        })?;
        Ok(Self { bank, content, query })
    }
}

/// How such a system searches: the only thing in which they differ.
#[async_trait]
pub(crate) trait Search: Send + Sync {
    /// Hits for the query, best first.
    async fn search(&self, lookup: Lookup<'_>) -> Result<Vec<RetrievedHit>, Failure>;

    /// Builds the index of what the query may see, unless it is there.
    async fn index(&self, _lookup: Lookup<'_>) -> Result<Prepared, Failure> {
        Ok(Prepared::Ready)
    }

    /// Does ahead, once per bank, what all searches rest on and what others can find: nothing, unless it must be paid for. How long
    /// that took; nothing where nothing was done.
    async fn ahead(&self, _entries: &[StreamEntry], _step: StepContext<'_>) -> Result<Duration, Failure> {
        Ok(Duration::ZERO)
    }
}

/// A search without an index and without waiting: it picks among the documents that the query may see.
pub(crate) trait Pick: Send + Sync {
    /// The documents for the query, best first.
    fn pick<'a>(
        &self,
        bank: &BankRef,
        documents: Vec<Document<'a>>,
        query: &RecallQuery<'_>,
    ) -> Result<Vec<Document<'a>>, Failure>;
}

#[async_trait]
impl<P: Pick> Search for P {
    async fn search(&self, Lookup { bank, content, query }: Lookup<'_>) -> Result<Vec<RetrievedHit>, Failure> {
        let picked = self.pick(bank, documents::visible_to(content, query.visible_entries, query.filter)?, query)?;
        Ok(picked.into_iter().map(|document| document.hit(None)).collect())
    }
}

/// A memory system made of a [`Search`].
pub(crate) struct FromItems<S> {
    capabilities: Capabilities,
    search: S,
}

impl<S: Search + 'static> FromItems<S> {
    /// The system, ready to be handed out.
    pub(crate) fn system(capabilities: Capabilities, search: S) -> Arc<dyn MemorySystem> {
        Arc::new(Self { capabilities, search })
    }
}

#[async_trait]
impl<S: Search> MemorySystem for FromItems<S> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
        Ok(bank.name.clone())
    }

    async fn retain(
        &self,
        _bank: &BankRef,
        entries: &[StreamEntry],
        step: StepContext<'_>,
    ) -> Result<RetainReceipt, Failure> {
        let built = self.search.ahead(entries, step).await?;
        let build_us = u64::try_from(built.as_micros()).unwrap_or(u64::MAX);
        let written = entries.iter().map(|entry| entry.turns() as u64).sum();
        Ok(RetainReceipt { written, build_us, ..RetainReceipt::default() })
    }

    async fn readiness(&self, _bank: &BankRef, _entries: u32) -> Result<Readiness, Failure> {
        Ok(Readiness::Proven)
    }

    async fn prepare(&self, bank: &BankRef, query: Option<&RecallQuery<'_>>) -> Result<Prepared, Failure> {
        match query {
            Some(query) => self.search.index(Lookup::new(bank, query)?).await,
            None => Ok(Prepared::Ready),
        }
    }

    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        let hits = self.search.search(Lookup::new(bank, query)?).await?;
        let effective_k = if self.capabilities.ignores_k { hits.len() as u32 } else { query.k };
        Ok(Recall { hits, effective_k, ..Recall::default() })
    }

    async fn list(&self, bank: &BankRef, entries: u32, _from: &ListCursor) -> Result<ListedPage, Failure> {
        let query = RecallQuery::default();
        let Lookup { content, .. } = Lookup::new(bank, &query)?;
        Ok(ListedPage { items: documents::hits(content, entries), next: None })
    }

    async fn reset_bank(&self, _bank: &BankRef) -> Result<(), Failure> {
        Ok(())
    }

    async fn health(&self) -> Result<String, Failure> {
        Ok("built in, nothing to reach".to_owned())
    }
}
