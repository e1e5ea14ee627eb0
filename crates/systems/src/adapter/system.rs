//! The memory system that an adapter describes: where it is, how a request reaches it, and the operations that are one
//! request. Storing, waiting and finding have files of their own (`retaining`, `readiness`, `recalling`).
//!
//! In comes a compiled adapter (`file`), out comes a `MemorySystem`. Start reading at `build`, then at `send_for`, through which
//! every request goes; what a request is made of and how its response is read is in `call`.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bench_proto::{
    dataset::{FilterParts, StreamEntry},
    failure::{
        Failure,
        code::{CANNOT_SERVE, MEMORIES_LOST},
    },
    server::ServerAddress,
};
use futures::{StreamExt, TryStreamExt, stream};
use reqwest::{Url, header::HeaderMap};
use serde_json::Value;

use super::{
    AdapterContext,
    call::{Call, Connection, Read, Secret, ToServer},
    file::{self, Adapter},
    http::response_bytes,
    index::Indexes,
    items::{self, Cut, Item},
    managed::{Address, Managed},
    mcp::{ServerAt, ToolServer},
    path::Path,
    places::Places,
    process::surroundings::Surroundings,
    readiness::Progress,
    replaced::Replaced,
    retaining,
    secrets::Secrets,
    spec::{AdapterSpec, Permission, ReadyRule, Unit},
    template::Vars,
    time,
    variables::fill_env,
};
use crate::{
    BankRef, Capabilities, Consolidation, Counted, ListCursor, ListedPage, MemorySystem, NativeAnswer, Prepared,
    Readiness, Recall, RecallQuery, RetainReceipt, StepContext, SystemStats,
};

/// Requests of one readiness check in flight.
pub(super) const CHECKS_IN_FLIGHT: usize = 8;
/// Pages of items that are removed before it is clear that they do not go away.
const MAX_PURGE_PAGES: usize = 10_000;
/// An operation of many requests has as long as so many of its slowest one.
const MANY_REQUESTS: u32 = 20;
/// The last resort against an operation that hangs is no shorter.
const LEAST_DEADLINE: Duration = Duration::from_secs(600);

/// A system behind HTTP, or one whose tools are called.
pub(super) struct AdapterSystem {
    pub(super) adapter: Adapter,
    pub(super) capabilities: Capabilities,
    client: reqwest::Client,
    headers: HeaderMap,
    secret: Option<Secret>,
    place: Server,
    pub(super) indexes: Indexes,
    pub(super) places: Places,
    pub(super) progress: Mutex<HashMap<String, Progress>>,
}

enum Server {
    Fixed(Url),
    Managed(Box<Managed>),
    Tools(Box<ToolServer>),
}

/// Where a request goes. A started instance stays while its address is held.
struct Base {
    url: Url,
    instance: Option<Address>,
}

impl From<Address> for Base {
    fn from(at: Address) -> Self {
        Self { url: at.url.clone(), instance: Some(at) }
    }
}

/// Builds it; nothing is sent or started.
pub(super) fn build(
    spec: &AdapterSpec,
    url: Option<&str>,
    context: &AdapterContext,
    consolidated: bool,
    secrets: Secrets,
) -> Result<Arc<dyn MemorySystem>, String> {
    let adapter = file::compile(spec)?;
    let mut headers = HeaderMap::new();
    for (name, value) in &spec.headers {
        let value = fill_env(value)?;
        let name: reqwest::header::HeaderName = name.parse().map_err(|_| format!("headers: '{name}' is no header"))?;
        headers.insert(name, value.parse().map_err(|_| "headers: a value that no header can carry".to_owned())?);
    }
    let private = spec.allow.contains(&Permission::PrivateAddresses);
    let client = context.http.client(private).map_err(|failure| failure.message)?;
    let (fixed, secret) = match spec.program() {
        Some(_) => (None, None),
        None => file::place(spec, url)?,
    };
    let place = match (fixed, &spec.start) {
        (fixed, _) if spec.mcp.is_some() => {
            let at = tools_at(spec, context, (fixed, secret.as_ref()), (&client, &headers))?;
            Server::Tools(Box::new(tool_server(&adapter, at, secrets)))
        }
        (Some(url), _) => Server::Fixed(url),
        (None, Some(start)) => Server::Managed(Box::new(Managed::new(spec, start, context, secrets)?)),
        (None, None) => return Err("url is missing".to_owned()),
    };
    let mut capabilities = capabilities(&adapter);
    capabilities.consolidates &= consolidated;
    Ok(Arc::new(AdapterSystem {
        capabilities,
        adapter,
        client,
        headers,
        secret,
        place,
        indexes: Indexes::default(),
        places: Places::default(),
        progress: Mutex::default(),
    }))
}

/// Where a server of tools is.
fn tools_at(
    spec: &AdapterSpec,
    context: &AdapterContext,
    (url, secret): (Option<Url>, Option<&Secret>),
    (client, headers): (&reqwest::Client, &HeaderMap),
) -> Result<ServerAt, String> {
    if let Some(command) = spec.program() {
        let around = Surroundings::new(spec, context)?;
        return Ok(ServerAt::Process { command: around.words(command)?, around: Box::new(around) });
    }
    let (mut url, mut headers) = (url.ok_or("mcp.url is missing")?, headers.clone());
    if let Some(secret) = secret {
        secret.add(&mut headers, &mut url)?;
    }
    Ok(ServerAt::Http { client: client.clone(), url, headers })
}

fn tool_server(adapter: &Adapter, at: ServerAt, secrets: Secrets) -> ToolServer {
    let spec = &adapter.spec;
    ToolServer {
        name: spec.name.clone(),
        at,
        calls: adapter.calls().filter_map(Call::tool).cloned().collect(),
        longest: response_bytes(spec),
        at_once: spec.limits.parallel,
        secrets,
        forgets: spec.program().is_some() && !spec.can.survives_restart,
        current: tokio::sync::Mutex::default(),
        replaced: Replaced::default(),
    }
}

/// What an adapter's system can do.
pub(super) fn capabilities(adapter: &Adapter) -> Capabilities {
    let (spec, limits) = (&adapter.spec, &adapter.spec.limits);
    // what one of its searches does not honour comes back from that one
    let filters = adapter.searches.iter().map(|(call, _)| file::filters_of(call)).reduce(FilterParts::and);
    Capabilities {
        version: format!("{}+{}", spec.version, file::fingerprint(spec)),
        max_k: limits.max_k,
        // what a new process is given again it is given as it was the first time: entry by entry
        max_batch: if spec.program().is_none() || spec.can.survives_restart {
            retaining::max_batch(adapter)
        } else {
            1
        },
        ordered: spec.can.order,
        // what is started anew without its memories has to begin anew with each bank that it was given
        retain_idempotent: spec.can.repeat && (spec.can.survives_restart || spec.start.is_none()),
        recall_mutates: spec.can.learns_from_recall,
        event_times: spec.can.times,
        proves_ready: !matches!(spec.ready.when, ReadyRule::Stable | ReadyRule::Promised),
        max_parallel: limits.parallel,
        one_at_a_time: false,
        from_items: false,
        derived: false,
        ignores_k: false,
        sees_gold: false,
        empty_by_design: adapter.searches.is_empty(),
        remote: true,
        opens: adapter.open.is_some(),
        asked_ready: adapter.ready.is_some() || adapter.flush.is_some(),
        consolidates: adapter.consolidate.is_some(),
        answers: adapter.answer.is_some(),
        verifies: adapter.verify.is_some(),
        lists: adapter.list.is_some(),
        token_budget: spec.can.token_budget,
        updates: adapter.update.is_some() || adapter.forget.is_some(),
        withdraws: adapter.forget.is_some(),
        several_scopes: file::stores_several_scopes(adapter),
        filters: filters.unwrap_or_default(),
        answer_filters: adapter.answer.as_ref().map(file::filters_of).unwrap_or_default(),
        banks: spec.can.banks,
        stores_turns: spec.unit == Unit::Turn,
        recalls: !adapter.searches.is_empty(),
        deadline: Some(deadline(adapter)),
    }
}

/// The last resort against an operation that hangs, one for all of them: each request is cut by its own time. Storing, removing
/// and looking at a bank may be many requests; of all else none is cut that the file allows, and another one beside it.
fn deadline(adapter: &Adapter) -> Duration {
    let many = [&adapter.retain, &adapter.update, &adapter.forget, &adapter.ready];
    let purge = adapter.purge.iter().flat_map(|(list, _, remove)| [list, remove]);
    let slowest_of_many = many.into_iter().flatten().chain(purge).map(Call::timeout).max().unwrap_or_default();
    let start = adapter.spec.start.as_ref().and_then(|start| start.timeout.as_deref());
    let start = start.and_then(|text| time::parse(text).ok());
    let longest = adapter.calls().map(Call::timeout).chain(start).max().unwrap_or_default();
    slowest_of_many.saturating_mul(MANY_REQUESTS).max(longest.saturating_mul(2)).max(LEAST_DEADLINE)
}

impl AdapterSystem {
    /// The server, where its tools are called.
    pub(super) fn tools(&self) -> Option<&ToolServer> {
        match &self.place {
            Server::Tools(server) => Some(server),
            Server::Fixed(_) | Server::Managed(_) => None,
        }
    }

    async fn base(&self, bank: Option<&BankRef>) -> Result<Base, Failure> {
        match &self.place {
            Server::Fixed(url) => Ok(Base { url: url.clone(), instance: None }),
            // starting one takes a large future: on the heap, for those that have one
            Server::Managed(managed) => {
                Ok(Box::pin(managed.address(bank.map(|bank| bank.name.as_str()), self)).await?.into())
            }
            Server::Tools(_) => Err(Failure::permanent("system_request", "tools are called, and no request sent")),
        }
    }

    /// Where the bank is. A system that keeps its memories in its process has lost those of an earlier one.
    async fn base_of(&self, call: &Call, bank: &BankRef) -> Result<Base, Failure> {
        let Server::Managed(managed) = &self.place else { return self.base(Some(bank)).await };
        let at = Box::pin(managed.address(Some(&bank.name), self)).await?;
        let made_by = bank.handle.as_deref().and_then(|handle| handle.split_once('|')?.0.split_once('/'));
        if let Some((_, instance)) = made_by
            && instance != at.id
        {
            let message =
                format!("{} was started anew and holds nothing of bank {}", self.adapter.spec.name, bank.bank_id);
            // a bank that is still being filled is filled anew
            return Err(if call.what.starts_with("retain") {
                Failure::transient(MEMORIES_LOST, message)
            } else {
                Failure::permanent(MEMORIES_LOST, message)
            });
        }
        Ok(at.into())
    }

    /// Sends a request outside of a question.
    pub(super) async fn send(&self, call: &Call, bank: Option<&BankRef>, vars: &Vars) -> Result<Read, Failure> {
        self.send_for(StepContext::default(), call, bank, vars).await
    }

    /// Sends a request for a step.
    pub(super) async fn send_for(
        &self,
        step: StepContext<'_>,
        call: &Call,
        bank: Option<&BankRef>,
        vars: &Vars,
    ) -> Result<Read, Failure> {
        if let Some(server) = self.tools() {
            let known = bank.filter(|_| !call.what.starts_with("open"));
            let connected = server.connected_for(known).await?;
            return Box::pin(call.carry_out(&Connection::Tools(&connected, step.trace), vars)).await;
        }
        let base = match bank {
            Some(bank) => self.base_of(call, bank).await?,
            None => self.base(None).await?,
        };
        let sent = self.send_to(&base.url, step, call, vars).await;
        let (Server::Managed(managed), Some(at)) = (&self.place, &base.instance) else { return sent };
        match sent {
            Ok(read) => {
                managed.did(at, &call.what);
                Ok(read)
            }
            Err(failure) => Err(Box::pin(managed.failed(at, bank, &call.what, failure)).await),
        }
    }

    async fn send_to(&self, base: &Url, step: StepContext<'_>, call: &Call, vars: &Vars) -> Result<Read, Failure> {
        let connection = Connection::Server(ToServer { trace: step.trace, ..self.server_at(base) });
        call.carry_out(&connection, vars).await
    }

    /// What a request shares that belongs to no step.
    fn server_at<'a>(&'a self, base: &'a Url) -> ToServer<'a> {
        ToServer {
            client: &self.client,
            base,
            auth: self.secret.as_ref(),
            headers: &self.headers,
            trace: None,
            max_bytes: response_bytes(&self.adapter.spec),
            redirects: self.adapter.spec.allow.contains(&Permission::Redirects),
        }
    }

    /// One look at a system's health: its version, when it tells.
    pub(super) async fn probe(&self, base: &Url) -> Result<Option<String>, Failure> {
        let Some(call) = &self.adapter.health else {
            // without a health request a listener is all that can be seen
            let (host, port) = (base.host_str().unwrap_or("127.0.0.1"), base.port_or_known_default().unwrap_or(80));
            let connected = tokio::net::TcpStream::connect((host.trim_matches(['[', ']']), port)).await;
            return connected.map(|_| None).map_err(|e| Failure::transient(super::UNREACHABLE, e.to_string()));
        };
        let read = self.send_to(base, StepContext::default(), call, &Vars::default()).await?;
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

    pub(super) fn cut<'a>(&self, bank: &'a BankRef) -> Cut<'a> {
        Cut::for_bank(&self.adapter.spec, bank)
    }

    /// The items that a bank holds after some entries.
    pub(super) fn expected(&self, bank: &BankRef, entries: u32) -> Result<Vec<Item>, Failure> {
        self.cut(bank).expected(entries, &self.capabilities)
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

    /// What a server means that does not find what it is to remove: a bank that is gone is what was wanted, and an address that it does
    /// not have removes nothing. Where banks can be counted that tells the two apart.
    async fn check_gone(&self, bank: &BankRef, not_found: Failure) -> Result<(), Failure> {
        let (Some(call), Some(spec)) = (&self.adapter.verify, &self.adapter.spec.verify) else { return Ok(()) };
        let Ok(read) = self.send(call, Some(bank), &bank_vars(bank).with("expected", 0_u64)).await else {
            return Ok(());
        };
        match Path::new(spec.count.as_deref().unwrap_or_default()).count(&read.value) {
            Ok(held) if held > 0 => Err(Failure::permanent(
                "system_refused",
                format!("{}; {} says that the bank still holds {held} items", not_found.message, call.what),
            )),
            _ => Ok(()),
        }
    }
}

/// The bank's name for the system: its own handle, or ours.
pub(super) fn handle(bank: &BankRef) -> &str {
    bank.handle.as_deref().map_or(bank.name.as_str(), |handle| handle.split_once('|').map_or(handle, |(_, own)| own))
}

fn no_call(name: &str) -> Failure {
    Failure::permanent("system_cannot", format!("the adapter file has no `{name}`"))
}

pub(super) fn bank_vars(bank: &BankRef) -> Vars {
    Vars::default().with("bank", handle(bank)).with("name", bank.name.as_str())
}

#[async_trait]
impl MemorySystem for AdapterSystem {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
        let host = match &self.place {
            Server::Managed(managed) if self.adapter.spec.can.survives_restart => format!("{}|", managed.host()),
            Server::Managed(managed) => {
                let at = managed.address(Some(&bank.name), self).await?;
                format!("{}/{}|", managed.host(), at.id)
            }
            Server::Fixed(_) | Server::Tools(_) => String::new(),
        };
        let named = self.named(bank);
        let before = match self.tools() {
            Some(server) => Some((server, server.connected().await?.0)),
            None => None,
        };
        let Some(call) = &self.adapter.open else {
            match before {
                Some((server, before)) => server.opened(&before, bank, &named).await?,
                None => drop(self.base(Some(bank)).await?),
            }
            return Ok(format!("{host}{named}"));
        };
        let vars = Vars::default().with("bank", named.as_str()).with("name", bank.name.as_str());
        let read = self.send(call, Some(bank), &vars).await?;
        let path = self.adapter.spec.open.as_ref().and_then(|open| open.handle.as_deref());
        let own = match path {
            None => named,
            Some(path) => {
                let path = Path::new(path);
                let handle = path.string(&read.value);
                handle.ok_or_else(|| {
                    call.shape(format!("{}; it is the handle of the bank", path.absent("", &read.value)))
                })?
            }
        };
        let own = super::handle::checked(own).map_err(|error| call.shape(error))?;
        if let Some((server, before)) = before {
            server.opened(&before, bank, &own).await?;
        }
        Ok(format!("{host}{own}"))
    }

    fn together(&self, entries: &[StreamEntry]) -> usize {
        let by_turn = self.capabilities.stores_turns && retaining::batch_of(&self.adapter) > 1;
        items::together(entries, self.capabilities.max_batch, by_turn)
    }

    async fn retain(
        &self,
        bank: &BankRef,
        entries: &[StreamEntry],
        _step: StepContext<'_>,
    ) -> Result<RetainReceipt, Failure> {
        self.can_be_filled(bank).await?;
        self.take_in(bank, entries).await
    }

    async fn readiness(&self, bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
        let bank = self.bank_with(bank, entries).await?;
        self.look_ready(&bank, entries).await
    }

    async fn prepare(&self, bank: &BankRef, query: Option<&RecallQuery<'_>>) -> Result<Prepared, Failure> {
        let query = query.filter(|_| bank.handle.is_some());
        let (how, held) = match &self.place {
            Server::Managed(managed) => {
                let (_, how) = managed.prepared_address(Some(&bank.name), self).await?;
                (how, Cow::Borrowed(bank))
            }
            Server::Fixed(_) => (Prepared::Ready, Cow::Borrowed(bank)),
            Server::Tools(server) => {
                let (_, prepared) = server.connected().await?;
                match query {
                    Some(query) if !self.is_here(bank).await? => {
                        (Prepared::Built, self.bank_with(bank, query.visible_entries).await?)
                    }
                    _ => (prepared, Cow::Borrowed(bank)),
                }
            }
        };
        match query {
            // of a bank that was given again, under the name that it has there
            Some(query) => Ok(how.max(self.places_ahead(&held, query.visible_entries).await?)),
            None => Ok(how),
        }
    }

    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        let bank = self.bank_with(bank, query.visible_entries).await?;
        self.search(&bank, query).await
    }

    async fn answer(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<NativeAnswer, Failure> {
        let bank = self.bank_with(bank, query.visible_entries).await?;
        self.ask(&bank, query).await
    }

    async fn consolidate(&self, bank: &BankRef) -> Result<Consolidation, Failure> {
        let Some(call) = &self.adapter.consolidate else {
            return Err(Failure::permanent("system_cannot", "the adapter has no `consolidate`"));
        };
        self.can_be_filled(bank).await?;
        let read = self.send(call, Some(bank), &bank_vars(bank)).await?;
        // it is looked at again, with as many entries
        self.begin_anew(bank);
        self.note_work();
        Ok(Consolidation { usage: read.usage })
    }

    async fn verify(&self, bank: &BankRef, entries: u32) -> Result<Option<Counted>, Failure> {
        let (Some(call), Some(spec)) = (&self.adapter.verify, &self.adapter.spec.verify) else { return Ok(None) };
        let bank = &*self.bank_with(bank, entries).await?;
        let expected = self.expected(bank, entries)?.len() as u64;
        let read = self.send(call, Some(bank), &bank_vars(bank).with("expected", expected)).await?;
        let path = Path::new(spec.count.as_deref().unwrap_or_default());
        let found = path.count(&read.value).map_err(|error| call.shape(error))?;
        Ok(Some(Counted { expected, found }))
    }

    async fn list(&self, bank: &BankRef, entries: u32, from: &ListCursor) -> Result<ListedPage, Failure> {
        let bank = self.bank_with(bank, entries).await?;
        self.list_page(&bank, entries, from).await
    }

    async fn statistics(&self, bank: &BankRef) -> Result<SystemStats, Failure> {
        let version = match &self.place {
            Server::Managed(managed) => managed.address(Some(&bank.name), self).await?.version,
            Server::Fixed(url) if self.adapter.spec.health.as_ref().is_some_and(|health| health.version.is_some()) => {
                self.probe(url).await?
            }
            Server::Fixed(_) => None,
            Server::Tools(server) => server.connected().await?.0.version.clone(),
        };
        let is_here = self.is_here(bank).await?;
        let (Some(call), Some(spec), true) = (&self.adapter.statistics, &self.adapter.spec.statistics, is_here) else {
            return Ok(SystemStats { version, numbers: BTreeMap::new() });
        };
        let read = self.send(call, Some(bank), &bank_vars(bank)).await?;
        let number = |(name, path): (&String, &String)| {
            let found = Path::new(path).first(&read.value).and_then(Value::as_f64);
            found.map(|number| (name.clone(), number))
        };
        Ok(SystemStats { version, numbers: spec.numbers.iter().filter_map(number).collect() })
    }

    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure> {
        let Some(call) = &self.adapter.reset else {
            return Err(Failure::permanent("system_cannot", "the adapter has no `reset`"));
        };
        if !self.is_here(bank).await? {
            // what only its process held is gone with it
            return Ok(());
        }
        self.purge(bank).await?;
        match self.send(call, Some(bank), &bank_vars(bank)).await {
            Ok(_) => {}
            Err(failure) if failure.code == "system_http_404" => self.check_gone(bank, failure).await?,
            Err(failure) => return Err(failure),
        }
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(&bank.name);
        if let Server::Managed(managed) = &self.place {
            managed.end_bank(&bank.name).await;
        }
        Ok(())
    }

    async fn export_bank(&self, bank: &BankRef, to: &std::path::Path, most: u64) -> Result<u64, Failure> {
        let Some(call) = &self.adapter.export else { return Err(no_call("export")) };
        let base = self.base_of(call, bank).await?;
        call.download(&self.server_at(&base.url), &bank_vars(bank), (to, most)).await
    }

    async fn import_bank(&self, bank: &BankRef, from: &std::path::Path) -> Result<(), Failure> {
        let Some(call) = &self.adapter.import else { return Err(no_call("import")) };
        let base = self.base_of(call, bank).await?;
        call.upload(&self.server_at(&base.url), &bank_vars(bank), from).await
    }

    async fn health(&self) -> Result<String, Failure> {
        if let Some(server) = self.tools() {
            let (connected, _) = server.connected().await?;
            if let Some(call) = &self.adapter.health {
                self.send(call, None, &Vars::default()).await?;
            }
            return Ok(format!("{}: {}, {}", self.adapter.spec.name, connected.about, server.shown()));
        }
        let base = self.base(None).await?;
        let version = self.probe(&base.url).await?;
        let place = if matches!(self.place, Server::Managed(_)) { "started by the runner" } else { base.url.as_str() };
        Ok(match version {
            Some(version) => format!("{} {version}, {place}", self.adapter.spec.name),
            None => format!("{}, {place}", self.adapter.spec.name),
        })
    }

    async fn is_there(&self) -> Result<(), Failure> {
        match &self.place {
            Server::Managed(managed) if managed.is_per_bank() => Ok(()),
            _ => self.health().await.map(drop),
        }
    }

    fn on_this_machine(&self, bank: &BankRef) -> Result<(), Failure> {
        let Server::Managed(managed) = &self.place else { return Ok(()) };
        match bank.handle.as_deref().and_then(|handle| handle.split_once('|')) {
            Some((host, _)) if host.split_once('/').map_or(host, |(host, _)| host) != managed.host() => {
                Err(Failure::transient(
                    CANNOT_SERVE,
                    format!("bank {} is in a system that was started on {host}", bank.bank_id),
                ))
            }
            _ => Ok(()),
        }
    }

    fn place(&self) -> String {
        match &self.place {
            Server::Fixed(url) => url.origin().ascii_serialization(),
            Server::Managed(managed) => managed.place(),
            Server::Tools(server) => server.origin(),
        }
    }

    async fn server(&self, bank: &BankRef) -> Option<ServerAddress> {
        match &self.place {
            Server::Fixed(url) => ServerAddress::named_by(url),
            Server::Managed(managed) => ServerAddress::named_by(&managed.known_address(Some(&bank.name))?),
            Server::Tools(server) => ServerAddress::named_by(server.url()?),
        }
    }

    fn started_again(&self) -> Vec<String> {
        self.tools().map(|server| server.replaced.take()).unwrap_or_default()
    }

    async fn close(&self) {
        match &self.place {
            Server::Managed(managed) => managed.close().await,
            Server::Tools(server) => server.close().await,
            Server::Fixed(_) => {}
        }
    }
}
