//! The operations of a memory system, each as what the process is asked for it.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, atomic::Ordering},
    time::Duration,
};

use async_trait::async_trait;
use bench_proto::{
    dataset::StreamEntry,
    failure::{Failure, FailureClass},
    scenario::ReaderMode,
    step::RetrievedHit,
};
use tracing::warn;

use super::{
    ProcessSystem,
    keeping::HeldBank,
    protocol::{ProcessFilter, ProcessHit, ProcessOp, ProcessReply, ProcessSearch},
    storing::usage,
};
use crate::{
    BankRef, Capabilities, Consolidation, Counted, ListCursor, ListedPage, MemorySystem, NativeAnswer, Prepared,
    Readiness, Recall, RecallQuery, RetainReceipt, StepContext, SystemStats,
    adapter::{
        handle,
        http::SHAPE,
        index::Handed,
        items::{self, PAGE_ITEMS, rfc3339},
        spec::ReadyRule,
        time,
    },
    system::bounded_details,
};

/// Longest time that a process has to end after its input has ended.
const LAST: Duration = Duration::from_secs(3);
/// Longest time that one has besides which puts something away then.
const LONGEST_CLOSE: Duration = Duration::from_secs(30);

impl ProcessSystem {
    /// What a process is told of a question.
    fn search(&self, held: &HeldBank, query: &RecallQuery<'_>) -> Result<ProcessSearch, Failure> {
        Ok(ProcessSearch {
            bank: held.name.clone(),
            query: query.text.to_owned(),
            k: query.k,
            time_text: query.time_text.map(str::to_owned),
            time: query.time.and_then(rfc3339),
            filter: ProcessFilter::honoured_part(query.filter, self.capabilities.filters)?,
        })
    }

    /// Asks about a bank what a process need not have; `None` of one that has not.
    async fn ask_if_had(&self, held: &HeldBank, op: ProcessOp, what: &str) -> Result<Option<ProcessReply>, Failure> {
        let (reply, _) = self.reply_in(held.process.as_ref(), op, what).await?;
        if is_lacking(&reply, what, self.spec.code.is_some()) {
            return Ok(None);
        }
        self.done(what, reply).map(Some)
    }

    /// Whether a process does not count. One of others may refuse in whatever words: until it has counted, a refusal says that it has no
    /// `verify`, and from then on that it has failed.
    fn is_without_count(&self, reply: &ProcessReply) -> bool {
        if reply.ok {
            self.has_counted.fetch_or(reply.count.is_some(), Ordering::Relaxed);
            return false;
        }
        let is_class = self.spec.code.is_some();
        let never_counts = !is_class && !reply.retry && !self.has_counted.load(Ordering::Relaxed);
        never_counts || is_lacking(reply, "verify", is_class)
    }
}

/// Whether a process does not have what it was asked for. A class that raises something has failed, and a memory that is lost is one
/// that cannot be counted; processes of others may say in words alone that they have no such operation, or nothing at all.
fn is_lacking(reply: &ProcessReply, what: &str, is_class: bool) -> bool {
    let in_words = || {
        let said = reply.error.as_deref().unwrap_or_default().to_lowercase();
        let own = [format!("no {what}"), format!("unknown {what}"), format!("'{what}'")];
        let usual =
            ["unknown op", "unknown request", "unknown command", "unsupported", "not supported", "not implemented"];
        said.trim().is_empty()
            || own.iter().any(|words| said.contains(words.as_str()))
            || usual.iter().any(|words| said.contains(words))
    };
    !reply.ok && !reply.retry && (reply.lacking || (!is_class && in_words()))
}

fn is_refused(failure: &Failure) -> bool {
    failure.code == "system_refused" && failure.class == FailureClass::Permanent
}

fn handed(hit: ProcessHit) -> Handed {
    let ProcessHit { id, session_id: session, text, score, details } = hit;
    Handed { id, session, text, score, details: bounded_details(details) }
}

fn missing(what: &str, field: &str) -> Failure {
    Failure::permanent(SHAPE, format!("{what}: field '{field}' is missing in the reply"))
}

#[async_trait]
impl MemorySystem for ProcessSystem {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
        let (reply, process) = self.ask_in(None, ProcessOp::Open { bank: bank.name.clone() }).await?;
        let named = reply.handle.unwrap_or_else(|| bank.name.clone());
        let handle = handle::checked(named).map_err(|error| Failure::permanent(SHAPE, format!("open: {error}")))?;
        process.opened(&handle);
        Ok(handle)
    }

    fn together(&self, entries: &[StreamEntry]) -> usize {
        items::together(entries, self.capabilities.max_batch, self.capabilities.stores_turns)
    }

    async fn retain(
        &self,
        bank: &BankRef,
        entries: &[StreamEntry],
        _step: StepContext<'_>,
    ) -> Result<RetainReceipt, Failure> {
        let held = self.bank_to_fill(bank).await?;
        let used = self.store(bank, &held, entries).await?;
        Ok(RetainReceipt {
            written: entries.iter().map(|entry| entry.turns() as u64).sum(),
            usage: used,
            ..RetainReceipt::default()
        })
    }

    async fn readiness(&self, bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
        if self.spec.ready.when == ReadyRule::Promised {
            return Ok(Readiness::Promised);
        }
        let held = self.bank_filled_to(bank, entries).await?;
        let op = ProcessOp::Ready { bank: held.name.clone(), expected: self.expected(bank, entries)? };
        let reply = self.ask_at(&held, op).await?;
        match reply.ready {
            Some(true) if reply.returned => Ok(Readiness::Returned),
            Some(true) => Ok(Readiness::Proven),
            Some(false) => {
                Ok(Readiness::NotYet { poll_after_ms: u64::try_from(self.every.as_millis()).unwrap_or(u64::MAX) })
            }
            None => Err(missing("ready", "ready")),
        }
    }

    async fn prepare(&self, bank: &BankRef, query: Option<&RecallQuery<'_>>) -> Result<Prepared, Failure> {
        let started = tokio::time::timeout(self.timeout, self.started("start")).await;
        let late = || format!("start: no reply within {}", time::show(self.timeout));
        let (running, prepared) = started.map_err(|_| Failure::transient("system_timeout", late()))??;
        drop(running);
        let Some(query) = query.filter(|_| bank.handle.is_some()) else { return Ok(prepared) };
        if self.bank_if_here(bank).await?.is_some() {
            return Ok(prepared);
        }
        self.bank_filled_to(bank, query.visible_entries).await.map(|_| Prepared::Built)
    }

    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        if let Some(most) = self.capabilities.max_k.filter(|most| query.k > *most) {
            let message = format!("{} hits are asked for, the system gives at most {most}", query.k);
            return Err(Failure::permanent("system_limit", message));
        }
        let held = self.bank_filled_to(bank, query.visible_entries).await?;
        let reply = self.ask_at(&held, ProcessOp::Recall { search: self.search(&held, query)? }).await?;
        let used = usage(&reply);
        let index = self.indexes.find_or_build(bank.content_hash, bank.content.as_deref(), self.spec.unit);
        let place = |(at, hit): (usize, ProcessHit)| index.place(at, handed(hit));
        let found = reply.hits.ok_or_else(|| missing("recall", "hits"))?;
        let most = if self.capabilities.token_budget { usize::MAX } else { query.k as usize };
        let hits: Vec<RetrievedHit> = found.into_iter().take(most).enumerate().map(place).collect();
        Ok(Recall { hits, effective_k: query.k, usage: used, ..Recall::default() })
    }

    async fn consolidate(&self, bank: &BankRef) -> Result<Consolidation, Failure> {
        let held = self.bank_to_fill(bank).await?;
        let reply = self.ask_at(&held, ProcessOp::Consolidate { bank: held.name.clone() }).await?;
        Ok(Consolidation { usage: usage(&reply) })
    }

    async fn answer(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<NativeAnswer, Failure> {
        let reader_mode = Some(query.reader_mode).filter(|mode| *mode != ReaderMode::default());
        let held = self.bank_filled_to(bank, query.visible_entries).await?;
        let op = ProcessOp::Answer { search: self.search(&held, query)?, reader_mode };
        let reply = self.ask_at(&held, op).await?;
        let used = usage(&reply);
        let text = reply.text.ok_or_else(|| missing("answer", "text"))?;
        Ok(NativeAnswer { text, citations: reply.citations, usage: used })
    }

    async fn verify(&self, bank: &BankRef, entries: u32) -> Result<Option<Counted>, Failure> {
        let held = self.bank_filled_to(bank, entries).await?;
        let op = ProcessOp::Verify { bank: held.name.clone() };
        let (reply, _) = self.reply_in(held.process.as_ref(), op, "verify").await?;
        if self.is_without_count(&reply) {
            return Ok(None);
        }
        let counted = self.done("verify", reply).map_err(|failure| {
            if self.spec.code.is_some() || !is_refused(&failure) {
                return failure;
            }
            let message = format!("{}; a process that does not count replies `lacking: true`", failure.message);
            Failure { message, ..failure }
        })?;
        let Some(found) = counted.count else { return Ok(None) };
        Ok(Some(Counted { expected: self.expected(bank, entries)?, found }))
    }

    async fn list(&self, bank: &BankRef, entries: u32, from: &ListCursor) -> Result<ListedPage, Failure> {
        let held = self.bank_filled_to(bank, entries).await?;
        let op = ProcessOp::List {
            bank: held.name.clone(),
            limit: PAGE_ITEMS,
            offset: from.listed,
            cursor: from.cursor.clone(),
        };
        let reply = self.ask_at(&held, op).await?;
        if reply.cursor.is_some() && reply.cursor == from.cursor {
            let message = "list: the next page is the one that was asked for: the listing has no end";
            return Err(Failure::permanent(SHAPE, message));
        }
        let found = reply.hits.ok_or_else(|| missing("list", "hits"))?;
        let index = self.indexes.find_or_build(bank.content_hash, bank.content.as_deref(), self.spec.unit);
        let items: Vec<RetrievedHit> =
            found.into_iter().enumerate().map(|(at, hit)| index.place(at, handed(hit))).collect();
        let next = reply.cursor.map(|cursor| from.behind(items.len(), Some(cursor)));
        Ok(ListedPage { items, next })
    }

    async fn statistics(&self, bank: &BankRef) -> Result<SystemStats, Failure> {
        let version = self.version.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(held) = self.bank_if_here(bank).await? else {
            return Ok(SystemStats { version, numbers: BTreeMap::new() });
        };
        let asked = self.ask_if_had(&held, ProcessOp::Statistics { bank: held.name.clone() }, "statistics").await;
        match asked {
            Ok(Some(reply)) => Ok(SystemStats { version: reply.version.or(version), numbers: reply.numbers }),
            // a process without numbers
            Ok(None) => Ok(SystemStats { version, numbers: BTreeMap::new() }),
            // nothing else depends on them
            Err(failure) if is_refused(&failure) => {
                if !self.without_numbers.swap(true, Ordering::Relaxed) {
                    warn!("{}: the report has no numbers of it", self.secrets.hide(&failure.message));
                }
                Ok(SystemStats { version, numbers: BTreeMap::new() })
            }
            Err(failure) => Err(failure),
        }
    }

    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure> {
        // what only its process held is gone with it
        let Some(held) = self.bank_if_here(bank).await? else { return Ok(()) };
        self.ask_at(&held, ProcessOp::Reset { bank: held.name.clone() }).await.map(drop)
    }

    async fn health(&self) -> Result<String, Failure> {
        let reply = self.ask(ProcessOp::Health).await?;
        Ok(format!("{} {}, a process of the runner", self.spec.name, reply.version.unwrap_or_default()))
    }

    fn started_again(&self) -> Vec<String> {
        self.replaced.take()
    }

    async fn close(&self) {
        // one that is started after this takes nobody's place
        self.greeted.store(0, Ordering::Relaxed);
        if let Some(mut running) = self.running.lock().await.take() {
            running.stdin = None;
            let closing = if running.closes { self.timeout.min(LONGEST_CLOSE) } else { Duration::ZERO };
            // its output ends with it; what is left then is killed when it is dropped
            let ended = tokio::time::timeout(LAST + closing, &mut running.reader).await;
            if ended.is_err() && running.closes {
                let within = time::show(closing);
                warn!("{}: close did not end within {within}: what it had not saved is lost", self.spec.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_no_count_is_told_apart_from_one_that_cannot_count_now() {
        let said = |error: &str| ProcessReply { error: Some(error.to_owned()), ..ProcessReply::default() };
        for (reply, of_class, of_others) in [
            (ProcessReply { lacking: true, ..said("whatever") }, true, true),
            (said("this system has no verify"), false, true),
            (said("Unknown operation: verify"), false, true),
            (ProcessReply::default(), false, true),
            (said("KeyError: 'bench-a-g1', mine.py line 9 in verify"), false, false),
            (ProcessReply { retry: true, ..said("no verify for now") }, false, false),
            (ProcessReply { ok: true, ..ProcessReply::default() }, false, false),
        ] {
            assert_eq!(is_lacking(&reply, "verify", true), of_class, "{reply:?}");
            assert_eq!(is_lacking(&reply, "verify", false), of_others, "{reply:?}");
        }
    }
}
