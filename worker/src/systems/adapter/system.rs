//! The memory system that an adapter describes.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_proto::{call::Usage, dataset::StreamEntry, failure::Failure, step::RetrievedHit};
use futures::{StreamExt, TryStreamExt, stream};
use reqwest::{Url, header::HeaderMap};
use serde_json::Value;

use super::{
    super::{
        BankRef, BuildContext, Capabilities, Consolidation, Counted, MemorySystem, NativeAnswer, Readiness, Recall,
        RecallQuery, RetainReceipt,
    },
    call::{Call, Connection, Read, Secret, excerpt},
    file::{self, Adapter, Hits},
    index::Indexes,
    items::{Item, items_of},
    managed::Managed,
    path::{Path, kind},
    spec::{AdapterSpec, CallSpec, Merge, Permission, ReadyRule, Unit},
    template::Vars,
};

/// Bytes of a response when nothing is said.
const DEFAULT_RESPONSE_BYTES: usize = 8 << 20;
/// Requests of one readiness check in flight.
const CHECKS_IN_FLIGHT: usize = 8;
/// Tokens of a recall for systems that are asked by budget, when nothing is said.
const DEFAULT_MAX_TOKENS: u32 = 4096;
/// Pages of items that are removed before it is clear that they do not go away.
const MAX_PURGE_PAGES: usize = 10_000;
/// Banks whose progress is remembered.
const PROGRESS_KEPT: usize = 4096;

/// A system behind HTTP.
pub(super) struct HttpSystem {
    adapter: Adapter,
    capabilities: Capabilities,
    client: reqwest::Client,
    headers: HeaderMap,
    secret: Option<Secret>,
    place: Place,
    indexes: Indexes,
    progress: Mutex<HashMap<String, Progress>>,
}

enum Place {
    Fixed(Url),
    Managed(Managed),
}

/// How far a bank has come on its way to be ready, seen from this process.
struct Progress {
    seen: Value,
    since: Instant,
    done: BTreeSet<String>,
    flushed: bool,
}

/// Builds it; nothing is sent or started.
pub(super) fn build(
    spec: &AdapterSpec,
    url: Option<&str>,
    context: &BuildContext,
    consolidated: bool,
) -> Result<Arc<dyn MemorySystem>, String> {
    let adapter = file::compile(spec)?;
    let (fixed, secret) = file::place(spec, url)?;
    let place = match (fixed, &spec.start) {
        (Some(url), _) => Place::Fixed(url),
        (None, Some(start)) => Place::Managed(Managed::new(spec, start, context)?),
        (None, None) => return Err("url is missing".to_owned()),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in &spec.headers {
        let value = file::fill_env(value)?;
        let name: reqwest::header::HeaderName = name.parse().map_err(|_| format!("headers: '{name}' is no header"))?;
        headers.insert(name, value.parse().map_err(|_| "headers: a value that no header can carry".to_owned())?);
    }
    let private = spec.allow.contains(&Permission::PrivateAddresses);
    let client = context.http.client(private).map_err(|failure| failure.message)?;
    let mut capabilities = capabilities(&adapter);
    capabilities.consolidates &= consolidated;
    Ok(Arc::new(HttpSystem {
        capabilities,
        adapter,
        client,
        headers,
        secret,
        place,
        indexes: Indexes::default(),
        progress: Mutex::default(),
    }))
}

/// What an adapter's system can do.
pub(super) fn capabilities(adapter: &Adapter) -> Capabilities {
    let (spec, limits) = (&adapter.spec, &adapter.spec.limits);
    let longest = |calls: &[&Option<Call>]| calls.iter().filter_map(|c| c.as_ref()).map(Call::timeout).max();
    let slowest = longest(&[&adapter.open, &adapter.retain, &adapter.answer, &adapter.consolidate, &adapter.reset]);
    Capabilities {
        version: format!("{}+{}", spec.version, file::fingerprint(spec)),
        max_k: limits.max_k,
        max_batch: 1,
        ordered: spec.can.order,
        // what is started anew without its memories has to begin anew with each bank that it was given
        retain_idempotent: spec.can.repeat && (spec.can.survives_restart || spec.start.is_none()),
        recall_mutates: spec.can.learns_from_recall,
        event_times: spec.can.times,
        proves_ready: !matches!(spec.ready.when, ReadyRule::Stable | ReadyRule::Promised),
        max_parallel: limits.parallel,
        from_items: false,
        ignores_k: false,
        sees_gold: false,
        empty_by_design: adapter.searches.is_empty(),
        remote: true,
        consolidates: adapter.consolidate.is_some(),
        answers: adapter.answer.is_some(),
        verifies: adapter.verify.is_some(),
        token_budget: spec.can.token_budget,
        banks: spec.can.banks,
        recalls: !adapter.searches.is_empty(),
        // a session may be many requests; what hangs is cut by each request's own time, this is the last resort
        deadline: slowest.map(|slowest| slowest.saturating_mul(20).max(Duration::from_secs(600))),
    }
}

impl HttpSystem {
    async fn base(&self, bank: Option<&BankRef>) -> Result<Url, Failure> {
        match &self.place {
            Place::Fixed(url) => Ok(url.clone()),
            Place::Managed(managed) => Ok(managed.address(bank.map(|bank| bank.name.as_str()), self).await?.url),
        }
    }

    /// Where the bank is. A system that keeps its memories in its process has lost those of an earlier one.
    async fn base_of(&self, call: &Call, bank: &BankRef) -> Result<Url, Failure> {
        let Place::Managed(managed) = &self.place else { return self.base(Some(bank)).await };
        let at = managed.address(Some(&bank.name), self).await?;
        let made_by = bank.handle.as_deref().and_then(|handle| handle.split_once('|')?.0.split_once('/'));
        if let Some((_, instance)) = made_by
            && instance != at.id
        {
            let message =
                format!("{} was started anew and holds nothing of bank {}", self.adapter.spec.name, bank.bank_id);
            // a bank that is still being filled is filled anew
            return Err(if call.what.starts_with("retain") {
                Failure::transient(crate::guard::MEMORIES_LOST, message)
            } else {
                Failure::permanent(crate::guard::MEMORIES_LOST, message)
            });
        }
        Ok(at.url)
    }

    async fn send(&self, call: &Call, bank: Option<&BankRef>, vars: &Vars) -> Result<Read, Failure> {
        let base = match bank {
            Some(bank) => self.base_of(call, bank).await?,
            None => self.base(None).await?,
        };
        let sent = self.send_to(&base, call, vars).await;
        if let (Err(failure), Place::Managed(managed)) = (&sent, &self.place)
            && matches!(failure.code.as_str(), super::UNREACHABLE | "system_connection")
        {
            managed.doubt(bank.map(|bank| bank.name.as_str()), &base).await;
        }
        sent
    }

    async fn send_to(&self, base: &Url, call: &Call, vars: &Vars) -> Result<Read, Failure> {
        let connection = Connection {
            client: &self.client,
            base,
            auth: self.secret.as_ref(),
            headers: &self.headers,
            max_bytes: self.adapter.spec.limits.response_bytes.map_or(DEFAULT_RESPONSE_BYTES, |n| n as usize),
            redirects: self.adapter.spec.allow.contains(&Permission::Redirects),
        };
        call.send(&connection, vars).await
    }

    /// One look at a system's health: its version, when it tells.
    pub(super) async fn probe(&self, base: &Url) -> Result<Option<String>, Failure> {
        let Some(call) = &self.adapter.health else {
            // without a health request a listener is all that can be seen
            let (host, port) = (base.host_str().unwrap_or("127.0.0.1"), base.port_or_known_default().unwrap_or(80));
            let connected = tokio::net::TcpStream::connect((host.trim_matches(['[', ']']), port)).await;
            return connected.map(|_| None).map_err(|e| Failure::transient(super::UNREACHABLE, e.to_string()));
        };
        let read = self.send_to(base, call, &Vars::default()).await?;
        let version = self.adapter.spec.health.as_ref().and_then(|health| health.version.as_deref());
        Ok(version.and_then(|path| Path::new(path).string(&read.value)))
    }

    /// The bank's name in the system, before the system has given it a handle of its own.
    fn named(&self, bank: &BankRef) -> String {
        let slug: String =
            bank.name.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let vars = Vars::default().with("name", bank.name.as_str()).with("slug", slug);
        self.adapter.bank.render_text(&vars, &|text| text.to_owned())
    }

    fn items(&self, entries: &[StreamEntry]) -> Vec<Item> {
        items_of(entries, self.adapter.spec.unit, self.adapter.spec.limits.text_bytes)
    }

    fn expected(&self, bank: &BankRef, entries: u32) -> Vec<Item> {
        let entries_of = |content: &bench_proto::dataset::BankContent| {
            self.items(&content.entries[..content.entries.len().min(entries as usize)])
        };
        bank.content.as_deref().map(entries_of).unwrap_or_default()
    }

    /// Notes what was seen of a bank; `Err` when nothing has moved for too long.
    fn note(&self, bank: &BankRef, seen: Value) -> Result<Duration, Duration> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.len() >= PROGRESS_KEPT {
            progress.clear();
        }
        let entry = progress.entry(bank.name.clone()).or_insert_with(|| Progress {
            seen: Value::Null,
            since: Instant::now(),
            done: BTreeSet::new(),
            flushed: false,
        });
        if entry.seen != seen {
            (entry.seen, entry.since) = (seen, Instant::now());
        }
        let still = entry.since.elapsed();
        if still > self.adapter.stalled_after { Err(still) } else { Ok(still) }
    }

    fn stalled(&self, bank: &BankRef, still: Duration, what: &str) -> Failure {
        Failure::permanent(
            "system_stalled",
            format!(
                "bank {}: {what} for {}; the system's worker may have died",
                bank.bank_id,
                super::time::show(still)
            ),
        )
    }

    fn not_yet(&self) -> Readiness {
        Readiness::NotYet { poll_after_ms: u64::try_from(self.adapter.every.as_millis()).unwrap_or(u64::MAX) }
    }

    async fn flush(&self, bank: &BankRef) -> Result<(), Failure> {
        let Some(call) = &self.adapter.flush else { return Ok(()) };
        let _ = self.note(bank, Value::Null);
        let flushed = |progress: &HashMap<String, Progress>| progress.get(&bank.name).is_some_and(|p| p.flushed);
        if flushed(&self.progress.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(());
        }
        self.send(call, Some(bank), &bank_vars(bank)).await?;
        if let Some(progress) = self.progress.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&bank.name) {
            progress.flushed = true;
        }
        Ok(())
    }

    async fn each_done(&self, call: &Call, bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
        let spec = &self.adapter.spec.ready;
        let status = Path::new(spec.status.as_deref().unwrap_or_default());
        let done: BTreeSet<String> = {
            let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.get(&bank.name).map(|progress| progress.done.clone()).unwrap_or_default()
        };
        let items: Vec<(u64, Item)> = (0..).zip(self.expected(bank, entries)).collect();
        let all = items.len();
        let open = items.into_iter().filter(|(_, item)| !done.contains(&item.id));
        let looks: Vec<(String, bool)> = stream::iter(open)
            .map(|(index, item)| {
                let status = &status;
                async move {
                    let vars = item
                        .vars(handle(bank), index, None)
                        .with("bank", handle(bank))
                        .with("name", bank.name.as_str());
                    let read =
                        self.send(call, Some(bank), &vars).await.map_err(|failure| match failure.code.as_str() {
                            // what has failed is deleted by some systems, and then it is not done
                            "system_http_404" | "system_http_410" => Failure::permanent(
                                "system_item_failed",
                                format!("item {} is gone: the system could not take it in", item.id),
                            ),
                            _ => failure,
                        })?;
                    let state = status
                        .first(&read.value)
                        .cloned()
                        .ok_or_else(|| call.shape(format!("field '{}' is missing", status.text())))?;
                    if spec.failed.contains(&state) {
                        return Err(Failure::permanent(
                            "system_item_failed",
                            format!("item {}: the system says {state}", item.id),
                        ));
                    }
                    Ok((item.id, spec.done.contains(&state)))
                }
            })
            .buffer_unordered(CHECKS_IN_FLIGHT)
            .try_collect()
            .await?;
        let _ = self.note(bank, Value::from(0));
        let ready = {
            let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            match progress.get_mut(&bank.name) {
                Some(entry) => {
                    entry.done.extend(looks.into_iter().filter(|(_, done)| *done).map(|(id, _)| id));
                    entry.done.len()
                }
                None => 0,
            }
        };
        if ready >= all {
            return Ok(Readiness::Proven);
        }
        match self.note(bank, Value::from(ready)) {
            Ok(_) => Ok(self.not_yet()),
            Err(still) => Err(self.stalled(bank, still, &format!("{ready} of {all} items are done, no more"))),
        }
    }

    /// Removes the items of a bank one by one.
    async fn purge(&self, bank: &BankRef) -> Result<(), Failure> {
        let Some((list, ids, remove)) = &self.adapter.purge else { return Ok(()) };
        for _ in 0..MAX_PURGE_PAGES {
            let read = self.send(list, Some(bank), &bank_vars(bank)).await?;
            let items: Vec<Value> = ids.all(&read.value).into_iter().cloned().collect();
            if items.is_empty() {
                return Ok(());
            }
            stream::iter(items)
                .map(|item| async move { self.send(remove, Some(bank), &bank_vars(bank).with("item", item)).await })
                .buffer_unordered(CHECKS_IN_FLIGHT)
                .try_for_each(|_| std::future::ready(Ok(())))
                .await?;
        }
        Err(Failure::permanent("system_refused", format!("{}: the items of the bank do not go away", list.what)))
    }

    fn recall_vars(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Vars, Failure> {
        let limits = &self.adapter.spec.limits;
        let refuse = |what: String| Failure::permanent("system_limit", what);
        if let Some(most) = limits.max_k.filter(|most| query.k > *most) {
            return Err(refuse(format!("{} hits are asked for, the system gives at most {most}", query.k)));
        }
        if let Some(most) = limits.query_bytes.filter(|most| query.text.len() > *most as usize) {
            return Err(refuse(format!("the query has {} bytes, the system takes at most {most}", query.text.len())));
        }
        Ok(bank_vars(bank)
            .with("query", query.text)
            .with("k", query.k)
            .with("time_text", query.time_text.map(str::to_owned))
            .with("max_tokens", limits.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS))
            .with("question_id", query.question_id))
    }

    async fn retain_item_calls(&self, call: &Call, bank: &BankRef, items: &[Item]) -> Result<Usage, Failure> {
        let message = self.adapter.message.as_ref();
        let mut usage = Usage::default();
        let batch = self.adapter.spec.limits.batch.unwrap_or(1).max(1) as usize;
        let bank_name = handle(bank);
        match &self.adapter.item {
            Some(template) => {
                for (at, chunk) in items.chunks(batch).enumerate() {
                    let rendered: Vec<Value> = chunk
                        .iter()
                        .enumerate()
                        .filter_map(|(n, item)| {
                            let vars = item.vars(bank_name, (at * batch + n) as u64, message);
                            template.render(&vars.with("bank", bank_name).with("name", bank.name.as_str()))
                        })
                        .collect();
                    let sent = rendered.len();
                    let read = self.send(call, Some(bank), &bank_vars(bank).with("items", rendered)).await?;
                    self.check_stored(call, &read, sent)?;
                    usage += read.usage;
                }
            }
            None if !self.adapter.spec.can.order => {
                let in_flight = self.adapter.spec.limits.parallel.unwrap_or(CHECKS_IN_FLIGHT as u32).clamp(1, 64);
                let reads: Vec<Usage> = stream::iter(0..items.len())
                    .map(|n| async move {
                        let vars = items[n].vars(bank_name, n as u64, message);
                        let vars = vars.with("bank", bank_name).with("name", bank.name.as_str());
                        let read = self.send(call, Some(bank), &vars).await?;
                        self.check_stored(call, &read, 1)?;
                        Ok::<_, Failure>(read.usage)
                    })
                    .buffer_unordered(in_flight as usize)
                    .try_collect()
                    .await?;
                reads.into_iter().for_each(|read| usage += read);
            }
            None => {
                for (n, item) in items.iter().enumerate() {
                    let vars = item.vars(bank_name, n as u64, message);
                    let vars = vars.with("bank", bank_name).with("name", bank.name.as_str());
                    let read = self.send(call, Some(bank), &vars).await?;
                    self.check_stored(call, &read, 1)?;
                    usage += read.usage;
                }
            }
        }
        Ok(usage)
    }

    fn check_stored(&self, call: &Call, read: &Read, sent: usize) -> Result<(), Failure> {
        let Some(path) = self.adapter.spec.retain.as_ref().and_then(|retain| retain.stored.as_deref()) else {
            return Ok(());
        };
        let stored = Path::new(path).count(&read.value).map_err(|error| call.shape(error))?;
        if stored < sent as u64 {
            return Err(Failure::transient(
                "system_partial_batch",
                format!("{}: {stored} of {sent} items were stored", call.what),
            ));
        }
        Ok(())
    }
}

/// The hits of one list in a response.
pub(super) fn hits_of(
    call: &Call,
    read: &Read,
    hits: &Hits,
    bank: &BankRef,
    indexes: &Indexes,
    unit: Unit,
) -> Result<Vec<RetrievedHit>, Failure> {
    let list = hits.list.list(&read.value).map_err(|error| call.shape(error))?;
    let list = match list {
        Some(list) => list,
        None if hits.optional => return Ok(Vec::new()),
        None => return Err(call.shape(format!("field '{}' is missing", hits.list.shown()))),
    };
    let index = indexes.of(bank.content_hash, bank.content.as_deref(), unit);
    let mut found = Vec::with_capacity(list.len());
    for (at, element) in list.into_iter().enumerate() {
        let text = match hits.text.first(element) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => {
                return Err(call.shape(format!(
                    "field '{}' of hit {at} must be a text, not {}",
                    hits.text.shown(),
                    kind(other)
                )));
            }
            None => return Err(call.shape(format!("field '{}' of hit {at} is missing", hits.text.shown()))),
        };
        let read_path = |path: &Option<Path>| path.as_ref().and_then(|path| path.string(element));
        let (id, session_id, text) = index.place(read_path(&hits.id), read_path(&hits.session), text);
        let id = if id.is_empty() { format!("hit-{}", at + 1) } else { id };
        let score = hits.score.as_ref().and_then(|path| path.first(element)).and_then(Value::as_f64);
        found.push(RetrievedHit { id, session_id, score, text });
    }
    Ok(found)
}

/// The text of an answer: of a field, or of all events together.
pub(super) fn answer_text(call: &Call, read: &Read, spec: Option<&CallSpec>) -> Result<String, Failure> {
    let path = Path::new(spec.and_then(|spec| spec.text.as_deref()).unwrap_or_default());
    let text = if read.events.is_empty() {
        let found =
            path.first(&read.value).ok_or_else(|| call.shape(format!("field '{}' is missing", path.shown())))?;
        found.as_str().map_or_else(|| found.to_string(), str::to_owned)
    } else {
        read.events.iter().filter_map(|event| path.string(&event.data)).collect()
    };
    Ok(text.trim().to_owned())
}

/// The bank's name for the system: its own handle, or ours.
fn handle(bank: &BankRef) -> &str {
    bank.handle.as_deref().map_or(bank.name.as_str(), |handle| handle.split_once('|').map_or(handle, |(_, own)| own))
}

fn bank_vars(bank: &BankRef) -> Vars {
    Vars::default().with("bank", handle(bank)).with("name", bank.name.as_str())
}

/// One list of several, best first; hits of the same id and text once.
fn merge(lists: Vec<Vec<RetrievedHit>>, how: Merge) -> Vec<RetrievedHit> {
    let mut merged: Vec<RetrievedHit> = match how {
        Merge::Append => lists.into_iter().flatten().collect(),
        Merge::Score => {
            let mut all: Vec<RetrievedHit> = lists.into_iter().flatten().collect();
            all.sort_by(|a, b| b.score.unwrap_or(f64::MIN).total_cmp(&a.score.unwrap_or(f64::MIN)));
            all
        }
        Merge::Interleave => {
            let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
            let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
            (0..longest).flat_map(|_| lists.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>()).collect()
        }
    };
    let mut seen = BTreeSet::new();
    merged.retain(|hit| seen.insert((hit.id.clone(), hit.text.clone())));
    merged
}

#[async_trait]
impl MemorySystem for HttpSystem {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
        let host = match &self.place {
            Place::Managed(managed) if self.adapter.spec.can.survives_restart => format!("{}|", managed.host()),
            Place::Managed(managed) => {
                let at = managed.address(Some(&bank.name), self).await?;
                format!("{}/{}|", managed.host(), at.id)
            }
            Place::Fixed(_) => String::new(),
        };
        let named = self.named(bank);
        let Some(call) = &self.adapter.open else {
            self.base(Some(bank)).await?;
            return Ok(format!("{host}{named}"));
        };
        let vars = Vars::default().with("bank", named.as_str()).with("name", bank.name.as_str());
        let read = self.send(call, Some(bank), &vars).await?;
        let path = self.adapter.spec.open.as_ref().and_then(|open| open.handle.as_deref());
        let own = match path {
            None => named,
            Some(path) => Path::new(path)
                .string(&read.value)
                .ok_or_else(|| call.shape(format!("field '{path}' is missing: no handle for the bank")))?,
        };
        Ok(format!("{host}{own}"))
    }

    async fn retain(&self, bank: &BankRef, entries: &[StreamEntry]) -> Result<RetainReceipt, Failure> {
        let Some(call) = &self.adapter.retain else {
            return Err(Failure::permanent("system_cannot", "the adapter has no `retain`"));
        };
        let usage = self.retain_item_calls(call, bank, &self.items(entries)).await?;
        Ok(RetainReceipt { written: entries.iter().map(|entry| entry.turns() as u64).sum(), usage })
    }

    async fn readiness(&self, bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
        self.flush(bank).await?;
        let spec = &self.adapter.spec.ready;
        let Some(call) = &self.adapter.ready else {
            return Ok(if spec.when == ReadyRule::Promised { Readiness::Promised } else { Readiness::Proven });
        };
        if spec.when == ReadyRule::EachDone {
            return self.each_done(call, bank, entries).await;
        }
        let expected = self.expected(bank, entries).len() as u64;
        let read = self.send(call, Some(bank), &bank_vars(bank).with("expected", expected)).await?;
        match spec.when {
            ReadyRule::Count => {
                let path = Path::new(spec.call.as_ref().and_then(|call| call.count.as_deref()).unwrap_or_default());
                let count = path.count(&read.value).map_err(|error| call.shape(error))?;
                if count >= expected {
                    return Ok(Readiness::Proven);
                }
                match self.note(bank, Value::from(count)) {
                    Ok(_) => Ok(self.not_yet()),
                    Err(still) => {
                        Err(self.stalled(bank, still, &format!("the count has stayed at {count} of {expected}")))
                    }
                }
            }
            ReadyRule::Status | ReadyRule::Stable => {
                let path = Path::new(spec.status.as_deref().unwrap_or_default());
                let Some(state) = path.first(&read.value).cloned() else {
                    return Err(call.shape(format!("field '{}' is missing", path.shown())));
                };
                if spec.failed.contains(&state) {
                    return Err(Failure::permanent(
                        "system_item_failed",
                        format!("bank {}: the system says {state}", bank.bank_id),
                    ));
                }
                if spec.when == ReadyRule::Status && spec.done.contains(&state) {
                    return Ok(Readiness::Proven);
                }
                let said = excerpt(&state.to_string());
                match (spec.when, self.note(bank, state)) {
                    (ReadyRule::Stable, Ok(still) | Err(still)) if still >= self.adapter.stable_for => {
                        Ok(Readiness::Promised)
                    }
                    (ReadyRule::Stable, _) | (_, Ok(_)) => Ok(self.not_yet()),
                    (_, Err(still)) => Err(self.stalled(bank, still, &format!("the state has stayed at {said}"))),
                }
            }
            ReadyRule::Returned | ReadyRule::EachDone => Ok(Readiness::Proven),
            ReadyRule::Promised => Ok(Readiness::Promised),
        }
    }

    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        if self.adapter.searches.is_empty() {
            return Ok(Recall { hits: Vec::new(), effective_k: 0, usage: Usage::default() });
        }
        let vars = self.recall_vars(bank, query)?;
        let reads = self.adapter.searches.iter().map(|(call, _)| self.send(call, Some(bank), &vars));
        let reads = futures::future::try_join_all(reads).await?;
        let (mut lists, mut usage) = (Vec::new(), Usage::default());
        for ((call, lists_of), read) in self.adapter.searches.iter().zip(reads) {
            usage += read.usage;
            for hits in lists_of {
                lists.push(hits_of(call, &read, hits, bank, &self.indexes, self.adapter.spec.unit)?);
            }
        }
        let mut hits = merge(lists, self.adapter.spec.merge);
        // a system that ignores k does not get an advantage of it; one that is asked by tokens has no k
        let effective_k = if self.capabilities.token_budget {
            u32::try_from(hits.len()).unwrap_or(u32::MAX)
        } else {
            hits.truncate(query.k as usize);
            query.k
        };
        Ok(Recall { hits, effective_k, usage })
    }

    async fn consolidate(&self, bank: &BankRef) -> Result<Consolidation, Failure> {
        let Some(call) = &self.adapter.consolidate else {
            return Err(Failure::permanent("system_cannot", "the adapter has no `consolidate`"));
        };
        let read = self.send(call, Some(bank), &bank_vars(bank)).await?;
        Ok(Consolidation { usage: read.usage })
    }

    async fn answer(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<NativeAnswer, Failure> {
        let (Some(call), Some(spec)) = (&self.adapter.answer, &self.adapter.spec.answer) else {
            return Err(Failure::permanent("system_cannot", "the adapter has no `answer`"));
        };
        let read = self.send(call, Some(bank), &self.recall_vars(bank, query)?).await?;
        let text = answer_text(call, &read, Some(spec))?;
        let cites = spec.cites.as_deref().map(Path::new);
        let values = std::iter::once(&read.value).chain(read.events.iter().map(|event| &event.data));
        let citations = values
            .flat_map(|value| cites.as_ref().map(|path| path.all(value)).unwrap_or_default())
            .filter_map(|value| value.as_str().map(str::to_owned))
            .collect();
        Ok(NativeAnswer { text, citations, usage: read.usage })
    }

    async fn verify(&self, bank: &BankRef, entries: u32) -> Result<Option<Counted>, Failure> {
        let (Some(call), Some(spec)) = (&self.adapter.verify, &self.adapter.spec.verify) else { return Ok(None) };
        let expected = self.expected(bank, entries).len() as u64;
        let read = self.send(call, Some(bank), &bank_vars(bank).with("expected", expected)).await?;
        let path = Path::new(spec.count.as_deref().unwrap_or_default());
        let found = path.count(&read.value).map_err(|error| call.shape(error))?;
        Ok(Some(Counted { expected, found }))
    }

    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure> {
        let Some(call) = &self.adapter.reset else {
            return Err(Failure::permanent("system_cannot", "the adapter has no `reset`"));
        };
        self.purge(bank).await?;
        match self.send(call, Some(bank), &bank_vars(bank)).await {
            Ok(_) => {}
            Err(failure) if failure.code == "system_http_404" => {}
            Err(failure) => return Err(failure),
        }
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(&bank.name);
        if let Place::Managed(managed) = &self.place {
            managed.end_bank(&bank.name).await;
        }
        Ok(())
    }

    async fn health(&self) -> Result<String, Failure> {
        let base = self.base(None).await?;
        let version = self.probe(&base).await?;
        let place = if matches!(self.place, Place::Managed(_)) { "started by the runner" } else { base.as_str() };
        Ok(match version {
            Some(version) => format!("{} {version}, {place}", self.adapter.spec.name),
            None => format!("{}, {place}", self.adapter.spec.name),
        })
    }

    fn on_this_machine(&self, bank: &BankRef) -> Result<(), Failure> {
        let Place::Managed(managed) = &self.place else { return Ok(()) };
        match bank.handle.as_deref().and_then(|handle| handle.split_once('|')) {
            Some((host, _)) if host.split_once('/').map_or(host, |(host, _)| host) != managed.host() => {
                Err(Failure::transient(
                    crate::context::CANNOT_SERVE,
                    format!("bank {} is in a system that was started on {host}", bank.bank_id),
                ))
            }
            _ => Ok(()),
        }
    }

    fn place(&self) -> String {
        match &self.place {
            Place::Fixed(url) => url.origin().ascii_serialization(),
            Place::Managed(managed) => managed.place(),
        }
    }

    async fn close(&self) {
        if let Place::Managed(managed) = &self.place {
            managed.close().await;
        }
    }
}
