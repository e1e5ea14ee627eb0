//! Systems that are no servers: one long-lived process that reads requests and writes replies, one JSON object per line.
//! Requests carry a number, replies give it back; several may be under way at the same time. What it writes to stderr is its
//! log, which is kept with the run. [`protocol`] is what goes over the pipes, [`transport`] how.

pub(super) mod keeping;
mod protocol;
mod several;
pub(super) mod surroundings;
mod transport;

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bench_proto::{
    call::Usage,
    dataset::{FilterParts, StreamEntry},
    failure::{Failure, FailureClass},
    scenario::ReaderMode,
    step::RetrievedHit,
};
use serde_json::Value;
use tokio::{
    io::BufReader,
    process::Command,
    sync::{Mutex, MutexGuard, Semaphore, oneshot},
};

pub use self::protocol::{
    PROTOCOL, ProcessFilter, ProcessHit, ProcessItem, ProcessOp, ProcessReply, ProcessRequest, ProcessSearch,
};
use self::{
    keeping::{Banks, Place},
    several::Several,
    surroundings::Surroundings,
    transport::{Running, Waiting, put, read_replies, send, take_all},
};
use super::{
    AdapterContext, UNREACHABLE,
    call::{believed, excerpt},
    code, file, handle,
    http::{SHAPE, response_bytes},
    index::{Handed, Indexes, bounded},
    items::{self, Change, Cut, Item, rfc3339},
    managed,
    recalling::PAGE_ITEMS,
    secrets::Secrets,
    spec::{AdapterSpec, FilterName, ReadyRule},
    time,
};
use crate::{
    BankRef, Capabilities, Consolidation, Counted, ListCursor, ListedPage, MemorySystem, NativeAnswer, Prepared,
    Readiness, Recall, RecallQuery, RetainReceipt, StepContext, SystemStats,
};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time that a process has to end after its input has ended.
const LAST: Duration = Duration::from_secs(3);

/// Most ends of processes that are kept for who asks for them.
const MOST_REPLACED: usize = 1_000;

/// Longest wait for the status of a process whose replies have ended.
const NOTICED: Duration = Duration::from_millis(500);

struct ProcessSystem {
    spec: AdapterSpec,
    command: Vec<String>,
    around: Surroundings,
    /// Where its user has the class that it is made of.
    own_code: Option<PathBuf>,
    /// What is taken out of words of it that are logged.
    secrets: Secrets,
    capabilities: Capabilities,
    timeout: Duration,
    every: Duration,
    running: Mutex<Option<Running>>,
    /// Whose turn it is, where it is given a few operations at a time only.
    turns: Option<Semaphore>,
    next: AtomicU64,
    indexes: Indexes,
    /// What it said of itself when it was greeted.
    version: std::sync::Mutex<Option<String>>,
    /// Processes that were greeted.
    greeted: AtomicU64,
    /// How those ended in whose place another one was greeted, until somebody asks.
    replaced: std::sync::Mutex<Vec<String>>,
}

pub(super) fn capabilities(spec: &AdapterSpec) -> Result<Capabilities, String> {
    let http = [
        ("url", spec.url.is_some()),
        ("start", spec.start.is_some()),
        ("retain", spec.retain.is_some()),
        ("update", spec.update.is_some()),
        ("forget", spec.forget.is_some()),
        ("recall", spec.recall.is_some()),
        ("item", spec.item.is_some()),
        ("list", spec.list.is_some()),
        ("export", spec.export.is_some()),
        ("import", spec.import.is_some()),
        ("mcp", spec.mcp.is_some()),
    ];
    if let Some((field, _)) = http.iter().find(|(_, given)| *given) {
        return Err(format!("{field}: a system with `command` is asked over stdin, not over HTTP"));
    }
    if spec.command.as_ref().is_none_or(Vec::is_empty) {
        return Err("command: give a program and its arguments".to_owned());
    }
    spec.code.as_ref().map_or(Ok(()), code::check)?;
    let filters = filters(&spec.can.filters);
    Ok(Capabilities {
        version: format!("{}+{}", spec.version, file::fingerprint(spec)),
        updates: spec.can.updates || spec.can.withdraws,
        withdraws: spec.can.withdraws,
        filters,
        answer_filters: filters,
        max_k: spec.limits.max_k,
        // what a new process is given again it is given as it was the first time: entry by entry
        max_batch: if spec.can.survives_restart { batch_of(spec) } else { 1 },
        ordered: spec.can.order,
        retain_idempotent: spec.can.repeat,
        recall_mutates: spec.can.learns_from_recall,
        event_times: spec.can.times,
        proves_ready: spec.ready.when != ReadyRule::Promised,
        max_parallel: spec.limits.parallel,
        remote: true,
        opens: true,
        asked_ready: true,
        token_budget: spec.can.token_budget,
        banks: spec.can.banks,
        // the process says what it cannot do
        consolidates: true,
        answers: true,
        verifies: true,
        lists: spec.can.lists,
        deadline: Some(Duration::from_secs(3600)),
        from_items: false,
        ..Capabilities::from_items("")
    })
}

/// Items of a request.
fn batch_of(spec: &AdapterSpec) -> u32 {
    spec.limits.batch.unwrap_or(64).clamp(1, 1024)
}

/// The parts of a filter that a file names.
fn filters(names: &[FilterName]) -> FilterParts {
    let has = |name| names.contains(&name);
    FilterParts {
        tags: has(FilterName::Tags),
        user: has(FilterName::User),
        scope: has(FilterName::Scope) || has(FilterName::Scopes),
        scopes: has(FilterName::Scopes),
        from: has(FilterName::From),
        until: has(FilterName::Until),
    }
}

pub(super) fn build(
    spec: AdapterSpec,
    context: &AdapterContext,
    consolidated: bool,
    secrets: Secrets,
    own_code: Option<PathBuf>,
) -> Result<Arc<dyn MemorySystem>, String> {
    let several = spec.code.as_ref().and_then(|code| code.processes).unwrap_or(1);
    // too many are refused when the first of them is made
    let further = (1..several)
        .map(|_| build_one(spec.clone(), context, consolidated, secrets.clone(), own_code.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    let first = build_one(spec, context, consolidated, secrets, own_code)?;
    let system: Arc<dyn MemorySystem> = if further.is_empty() { first } else { Arc::new(Several::new(first, further)) };
    Ok(system)
}

fn build_one(
    spec: AdapterSpec,
    context: &AdapterContext,
    consolidated: bool,
    secrets: Secrets,
    own_code: Option<PathBuf>,
) -> Result<Arc<ProcessSystem>, String> {
    let mut capabilities = capabilities(&spec)?;
    capabilities.consolidates = consolidated;
    let around = Surroundings::new(&spec, context)?;
    let duration = |text: &Option<String>, default| text.as_deref().map_or(Ok(default), time::parse);
    Ok(Arc::new(ProcessSystem {
        command: around.words(spec.command.as_deref().unwrap_or_default())?,
        around,
        own_code,
        turns: spec.code.as_ref().and_then(|code| code.at_once).map(|most| Semaphore::new(most as usize)),
        secrets,
        timeout: duration(&spec.timeout, DEFAULT_TIMEOUT).map_err(|e| format!("timeout: {e}"))?,
        every: duration(&spec.ready.every, Duration::from_secs(1)).map_err(|e| format!("ready.every: {e}"))?,
        spec,
        capabilities,
        running: Mutex::default(),
        next: AtomicU64::new(1),
        version: std::sync::Mutex::default(),
        greeted: AtomicU64::new(0),
        replaced: std::sync::Mutex::default(),
        indexes: Indexes::default(),
    }))
}

impl ProcessSystem {
    fn start(&self) -> Result<Running, Failure> {
        let cannot = |error: std::io::Error| {
            let program = self.command.first().map_or("", String::as_str);
            Failure::terminal("system_start", format!("{}: '{program}' cannot be started: {error}", self.spec.name))
        };
        let mut child = self.around.spawn(self.program()?, None).map_err(cannot)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::terminal("system_start", "a pipe of the process is missing"));
        };
        let waiting: Waiting = Arc::new(std::sync::Mutex::new(Some(HashMap::new())));
        let longest = response_bytes(&self.spec) as u64;
        let (name, secrets, replies) = (self.spec.name.clone(), self.secrets.clone(), Arc::clone(&waiting));
        let reader = tokio::spawn(async move {
            read_replies(BufReader::new(stdout), longest, &name, &secrets, &replies).await;
            // whoever waits is told that nothing comes any more
            drop(take_all(&replies));
        });
        let group = child.id();
        Ok(Running { stdin: Some(stdin), waiting, child, group, reader, banks: Arc::default() })
    }

    /// The program with its arguments.
    fn program(&self) -> Result<Command, Failure> {
        let cannot = |error: String| Failure::terminal("system_start", format!("{}: {error}", self.spec.name));
        let (program, arguments) = match &self.spec.code {
            Some(code) => {
                let launch = code::launch(code, &self.around.home, self.own_code.as_deref()).map_err(cannot)?;
                (launch.program, launch.arguments)
            }
            None => {
                let (program, words) = self.command.split_first().ok_or_else(|| cannot("no command".to_owned()))?;
                (program.into(), words.iter().map(Into::into).collect())
            }
        };
        let mut command = Command::new(program);
        command.args(arguments);
        Ok(command)
    }

    async fn ask(&self, op: ProcessOp) -> Result<ProcessReply, Failure> {
        self.ask_in(None, op).await.map(|(reply, _)| reply)
    }

    /// Asks about a bank.
    async fn ask_at(&self, place: &Place, op: ProcessOp) -> Result<ProcessReply, Failure> {
        self.ask_in(place.process.as_ref(), op).await.map(|(reply, _)| reply)
    }

    /// Asks one process and none that was started in its place; any where none is given. Says which one replied.
    async fn ask_in(&self, wanted: Option<&Arc<Banks>>, op: ProcessOp) -> Result<(ProcessReply, Arc<Banks>), Failure> {
        let what = match serde_json::to_value(&op) {
            Ok(value) => value.get("op").and_then(Value::as_str).unwrap_or_default().to_owned(),
            Err(_) => String::new(),
        };
        // whoever waits for a turn is not asked yet
        let _turn = match &self.turns {
            Some(turns) => turns.acquire().await.ok(),
            None => None,
        };
        let exchange = self.exchange(wanted, op, &what);
        let (reply, process) = tokio::time::timeout(self.timeout, exchange).await.unwrap_or_else(|_| {
            Err(Failure::transient("system_timeout", format!("{what}: no reply within {}", time::show(self.timeout))))
        })?;
        if reply.ok {
            return Ok((reply, process));
        }
        let error = excerpt(reply.error.as_deref().unwrap_or("no reason given"));
        let message = format!("{what}: {} says: {error}", self.spec.name);
        Err(if reply.retry {
            Failure::transient("system_refused", message)
        } else {
            Failure::permanent("system_refused", message)
        })
    }

    /// The process, started first when it does not run; and whether it had to be.
    async fn started(&self, what: &str) -> Result<(MutexGuard<'_, Option<Running>>, Prepared), Failure> {
        let (mut running, mut prepared) = match self.running.try_lock() {
            Ok(running) => (running, Prepared::Ready),
            Err(_) => (self.running.lock().await, Prepared::Waited),
        };
        let mut status = None;
        if let Some(over) = running.as_mut()
            && over.is_over()
        {
            status = over.child.try_wait().ok().flatten();
            *running = None;
        }
        if running.is_none() {
            // before the next one says anything in the same log
            let ended = (self.greeted.load(Ordering::Relaxed) > 0)
                .then(|| managed::how_it_ended(status, &self.around.log, &self.secrets));
            let mut started = self.start()?;
            let hello = ProcessRequest { id: 0, op: ProcessOp::Hello { protocol: PROTOCOL } };
            let (ready, greeted) = oneshot::channel();
            put(&started.waiting, 0, ready);
            send(&mut started, &hello).await.map_err(|_| self.gone(what))?;
            match greeted.await {
                Ok(Ok(reply)) if reply.ok => {
                    *self.version.lock().unwrap_or_else(PoisonError::into_inner) = reply.version;
                }
                Ok(reply) => {
                    let error = reply.map_or_else(|failure| failure.message, |reply| reply.error.unwrap_or_default());
                    return Err(Failure::terminal("system_start", format!("{}: {error}", self.spec.name)));
                }
                Err(_) => {
                    let how = managed::how_it_ended(started.child.wait().await.ok(), &self.around.log, &self.secrets);
                    let message = format!("{}: the process ended before its first reply{how}", self.spec.name);
                    return Err(Failure::transient(UNREACHABLE, message));
                }
            }
            *running = Some(started);
            prepared = Prepared::Built;
            self.greeted.fetch_add(1, Ordering::Relaxed);
            self.note_replaced(ended);
        }
        Ok((running, prepared))
    }

    /// Notes how a process ended in whose place another one runs now.
    fn note_replaced(&self, ended: Option<String>) {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        if replaced.len() < MOST_REPLACED {
            replaced.extend(ended.map(|how| how.trim_start_matches([' ', ':']).to_owned()));
        }
    }

    fn gone(&self, what: &str) -> Failure {
        Failure::transient("system_connection", format!("{what}: the process {} ended", self.spec.name))
    }

    /// The process, by what it was given; started first when it does not run.
    async fn process(&self, what: &str) -> Result<Arc<Banks>, Failure> {
        let started = tokio::time::timeout(self.timeout, self.started(what)).await;
        let late = || format!("start: no reply within {}", time::show(self.timeout));
        let (running, _) = started.map_err(|_| Failure::transient("system_timeout", late()))??;
        running.as_ref().map(|running| Arc::clone(&running.banks)).ok_or_else(|| self.gone(what))
    }

    async fn exchange(
        &self,
        wanted: Option<&Arc<Banks>>,
        op: ProcessOp,
        what: &str,
    ) -> Result<(ProcessReply, Arc<Banks>), Failure> {
        let gone = || self.gone(what);
        let (sender, receiver) = oneshot::channel();
        let process = {
            let (mut running, _) = self.started(what).await?;
            // taken out while the line is written: of whoever gives up in the middle of it no process is left that has read half a line
            let Some(mut process) = running.take() else { return Err(gone()) };
            if wanted.is_some_and(|wanted| !Arc::ptr_eq(wanted, &process.banks)) {
                *running = Some(process);
                return Err(gone());
            }
            let banks = Arc::clone(&process.banks);
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            if !put(&process.waiting, id, sender) {
                return Err(gone());
            }
            send(&mut process, &ProcessRequest { id, op }).await.map_err(|_| gone())?;
            *running = Some(process);
            banks
        };
        match receiver.await {
            Ok(Ok(reply)) => Ok((reply, process)),
            Ok(Err(failure)) => Err(Failure { message: format!("{what}: {}", failure.message), ..failure }),
            Err(_) => Err(self.ended(what, &process).await),
        }
    }

    /// That a process ended while it was asked; how, and its last words, where nobody has started another one yet.
    async fn ended(&self, what: &str, process: &Arc<Banks>) -> Failure {
        let mut running = self.running.lock().await;
        let Some(of_it) = running.as_mut().filter(|running| Arc::ptr_eq(&running.banks, process)) else {
            return self.gone(what);
        };
        let status = tokio::time::timeout(NOTICED, of_it.child.wait()).await;
        let how = managed::how_it_ended(status.ok().and_then(Result::ok), &self.around.log, &self.secrets);
        let gone = self.gone(what);
        Failure { message: format!("{}{how}", gone.message), ..gone }
    }

    fn cut<'a>(&self, bank: &'a BankRef) -> Cut<'a> {
        Cut::for_bank(&self.spec, bank)
    }

    /// What a process is told of a question.
    fn search(&self, place: &Place, query: &RecallQuery<'_>) -> Result<ProcessSearch, Failure> {
        Ok(ProcessSearch {
            bank: place.name.clone(),
            query: query.text.to_owned(),
            k: query.k,
            time_text: query.time_text.map(str::to_owned),
            time: query.time.and_then(rfc3339),
            filter: ProcessFilter::honoured_part(query.filter, self.capabilities.filters)?,
        })
    }

    /// Number of items that a bank holds after some entries.
    fn expected(&self, bank: &BankRef, entries: u32) -> Result<u64, Failure> {
        Ok(self.cut(bank).expected(entries, &self.capabilities)?.len() as u64)
    }

    /// Stores items of which none does anything to another.
    async fn add(&self, place: &Place, items: &[Item]) -> Result<Usage, Failure> {
        let mut used = Usage::default();
        for chunk in items.chunks(batch_of(&self.spec) as usize) {
            let items = chunk.iter().map(Item::for_process).collect();
            let reply = self.ask_at(place, ProcessOp::Retain { bank: place.name.clone(), items }).await?;
            if reply.count.is_some_and(|count| count < chunk.len() as u64) {
                let stored = reply.count.unwrap_or(0);
                return Err(Failure::transient(
                    "system_partial_batch",
                    format!("retain: {stored} of {} items were stored", chunk.len()),
                ));
            }
            used += usage(&reply);
        }
        Ok(used)
    }

    /// Replaces or withdraws what was stored before, as far as the process can: what it cannot is known before the run.
    async fn change(&self, place: &Place, item: &Item) -> Result<Usage, Failure> {
        let can = &self.spec.can;
        let forget = |gone: &Vec<String>| ProcessOp::Forget { bank: place.name.clone(), replaces: gone.clone() };
        match &item.change {
            Change::Replaces(gone) if can.updates => {
                let item = Box::new(item.for_process());
                Ok(usage(
                    &self
                        .ask_at(place, ProcessOp::Update { bank: place.name.clone(), replaces: gone.clone(), item })
                        .await?,
                ))
            }
            Change::Replaces(gone) if can.withdraws => {
                let mut used = usage(&self.ask_at(place, forget(gone)).await?);
                used += self.add(place, std::slice::from_ref(item)).await?;
                Ok(used)
            }
            Change::Withdraws(gone) if can.withdraws => Ok(usage(&self.ask_at(place, forget(gone)).await?)),
            Change::Withdraws(_) => Ok(Usage::default()),
            Change::Adds | Change::Replaces(_) => self.add(place, std::slice::from_ref(item)).await,
        }
    }

    /// Stores entries; the tokens that it took.
    async fn store(&self, bank: &BankRef, place: &Place, entries: &[StreamEntry]) -> Result<Usage, Failure> {
        let items = self.cut(bank).items(entries)?;
        let (mut used, mut next) = (Usage::default(), 0);
        while let Some(item) = items.get(next) {
            let added = items[next..].iter().take_while(|item| item.change == Change::Adds).count();
            used += match added {
                0 => self.change(place, item).await?,
                _ => self.add(place, &items[next..next + added]).await?,
            };
            next += added.max(1);
        }
        Ok(used)
    }
}

fn named(bank: &BankRef) -> String {
    bank.handle.clone().unwrap_or_else(|| bank.name.clone())
}

fn usage(reply: &ProcessReply) -> Usage {
    let (prompt_tokens, completion_tokens) = (believed(reply.prompt_tokens), believed(reply.completion_tokens));
    Usage { prompt_tokens, completion_tokens, ..Usage::default() }
}

/// Whether the process does not have what it was asked for: it said no, and not that another try may help.
fn is_lacking(failure: &Failure) -> bool {
    failure.code == "system_refused" && failure.class == FailureClass::Permanent
}

fn handed(hit: ProcessHit) -> Handed {
    let ProcessHit { id, session_id: session, text, score, details } = hit;
    Handed { id, session, text, score, details: bounded(details) }
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
        items::together(entries, self.capabilities.max_batch)
    }

    async fn retain(
        &self,
        bank: &BankRef,
        entries: &[StreamEntry],
        _step: StepContext<'_>,
    ) -> Result<RetainReceipt, Failure> {
        let place = self.place_to_fill(bank).await?;
        let used = self.store(bank, &place, entries).await?;
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
        let place = self.place_with(bank, entries).await?;
        let op = ProcessOp::Ready { bank: place.name.clone(), expected: self.expected(bank, entries)? };
        let reply = self.ask_at(&place, op).await?;
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
        if self.place_if_here(bank).await?.is_some() {
            return Ok(prepared);
        }
        self.place_with(bank, query.visible_entries).await.map(|_| Prepared::Built)
    }

    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        if let Some(most) = self.capabilities.max_k.filter(|most| query.k > *most) {
            let message = format!("{} hits are asked for, the system gives at most {most}", query.k);
            return Err(Failure::permanent("system_limit", message));
        }
        let place = self.place_with(bank, query.visible_entries).await?;
        let reply = self.ask_at(&place, ProcessOp::Recall { search: self.search(&place, query)? }).await?;
        let used = usage(&reply);
        let index = self.indexes.find_or_build(bank.content_hash, bank.content.as_deref(), self.spec.unit);
        let place = |(at, hit): (usize, ProcessHit)| index.place(at, handed(hit));
        let found = reply.hits.ok_or_else(|| missing("recall", "hits"))?;
        let most = if self.capabilities.token_budget { usize::MAX } else { query.k as usize };
        let hits: Vec<RetrievedHit> = found.into_iter().take(most).enumerate().map(place).collect();
        Ok(Recall { hits, effective_k: query.k, usage: used })
    }

    async fn consolidate(&self, bank: &BankRef) -> Result<Consolidation, Failure> {
        let place = self.place_to_fill(bank).await?;
        let reply = self.ask_at(&place, ProcessOp::Consolidate { bank: place.name.clone() }).await?;
        Ok(Consolidation { usage: usage(&reply) })
    }

    async fn answer(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<NativeAnswer, Failure> {
        let reader_mode = Some(query.reader_mode).filter(|mode| *mode != ReaderMode::default());
        let place = self.place_with(bank, query.visible_entries).await?;
        let op = ProcessOp::Answer { search: self.search(&place, query)?, reader_mode };
        let reply = self.ask_at(&place, op).await?;
        let used = usage(&reply);
        let text = reply.text.ok_or_else(|| missing("answer", "text"))?;
        Ok(NativeAnswer { text, citations: reply.citations, usage: used })
    }

    async fn verify(&self, bank: &BankRef, entries: u32) -> Result<Option<Counted>, Failure> {
        let place = self.place_with(bank, entries).await?;
        match self.ask_at(&place, ProcessOp::Verify { bank: place.name.clone() }).await {
            Ok(reply) => {
                let expected = self.expected(bank, entries)?;
                Ok(reply.count.map(|found| Counted { expected, found }))
            }
            // a process that does not count
            Err(failure) if is_lacking(&failure) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn list(&self, bank: &BankRef, entries: u32, from: &ListCursor) -> Result<ListedPage, Failure> {
        let place = self.place_with(bank, entries).await?;
        let op = ProcessOp::List {
            bank: place.name.clone(),
            limit: PAGE_ITEMS,
            offset: from.listed,
            cursor: from.cursor.clone(),
        };
        let reply = self.ask_at(&place, op).await?;
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
        let Some(place) = self.place_if_here(bank).await? else {
            return Ok(SystemStats { version, numbers: BTreeMap::new() });
        };
        match self.ask_at(&place, ProcessOp::Statistics { bank: place.name.clone() }).await {
            Ok(reply) => Ok(SystemStats { version: reply.version.or(version), numbers: reply.numbers }),
            // a process without numbers
            Err(failure) if is_lacking(&failure) => Ok(SystemStats { version, numbers: BTreeMap::new() }),
            Err(failure) => Err(failure),
        }
    }

    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure> {
        // what only its process held is gone with it
        let Some(place) = self.place_if_here(bank).await? else { return Ok(()) };
        self.ask_at(&place, ProcessOp::Reset { bank: place.name.clone() }).await.map(drop)
    }

    async fn health(&self) -> Result<String, Failure> {
        let reply = self.ask(ProcessOp::Health).await?;
        Ok(format!("{} {}, a process of the runner", self.spec.name, reply.version.unwrap_or_default()))
    }

    fn started_again(&self) -> Vec<String> {
        std::mem::take(&mut *self.replaced.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn close(&self) {
        // one that is started after this takes nobody's place
        self.greeted.store(0, Ordering::Relaxed);
        if let Some(mut running) = self.running.lock().await.take() {
            running.stdin = None;
            // its output ends with it; what is left then is killed when it is dropped
            let _ = tokio::time::timeout(LAST, &mut running.reader).await;
        }
    }
}
