//! Memory systems made from their published contracts, traps included: a function per system from a request to a response,
//! over one small store. Tests switch their troubles on.

mod hosted;
mod systems;
mod whole;

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde_json::Value;
use tokio::{net::TcpSocket, sync::oneshot};

pub use systems::SYSTEMS;

/// Something that was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its id in the system.
    pub id: String,
    /// What it says.
    pub text: String,
    /// What came with it.
    pub meta: Value,
}

/// What a system holds and what is wrong with it.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Items by bank.
    pub banks: BTreeMap<String, Vec<Stored>>,
    /// Requests so far, as `METHOD /path`.
    pub requests: Vec<String>,
    /// Their bodies; `null` without one.
    pub bodies: Vec<Value>,
    /// Items that wait to be taken in; one is, with each request.
    pub waiting: Vec<(String, Stored)>,
    /// Its worker has ended: what waits stays where it is.
    pub worker_dead: bool,
    /// Every n-th item is accepted and forgotten.
    pub loses_every: usize,
    /// A share of all items is accepted and forgotten: which ones follows from this number and their texts.
    pub loses_share: Option<(u64, f64)>,
    /// What is stored after so many items is accepted and forgotten.
    pub keeps_at_most: Option<u64>,
    /// A search brings no more hits than so many, whatever is asked for.
    pub clips: Option<usize>,
    /// Hits are ranked as BM25 does, and not by the words that they share with a query.
    pub bm25: bool,
    /// This many requests to come are answered with this status.
    pub fails: (usize, u16),
    /// Responses are held back for this long.
    pub slow: Duration,
    /// Responses to what stores something are held back for this long, beside that.
    pub stores_take: Duration,
    /// A search takes this long, and one is made at a time.
    pub searches_take: Duration,
    /// The searches to come take so long, one at a time, in the order in which they arrive: a queue whose services are known. It
    /// keeps its own time, so that a wake-up that comes late is not added to everybody's wait.
    pub services: VecDeque<Duration>,
    /// Searches that succeed before all others fail; all do when nothing is said.
    pub searches_left: Option<usize>,
    /// Responses are of another shape than the contract says.
    pub other_shape: bool,
    /// Every request is sent elsewhere.
    pub redirects_to: Option<String>,
    /// Responses begin with this many blanks.
    pub bloat: usize,
    /// A search finds what is in any bank.
    pub mixes_banks: bool,
    /// Letters of other scripts are thrown away.
    pub ascii_only: bool,
    /// What is there already is stored once more.
    pub stores_twice: bool,
    /// The last item of a batch is not taken in, and the answer does not name it.
    pub takes_part: bool,
    /// The same of the next batch alone.
    pub takes_part_once: bool,
    /// How many items of a batch are taken in; the others are accepted and forgotten.
    pub first_of_batch: Option<usize>,
    /// The version that `whole` says it is; empty where it says none.
    pub version: String,
    /// How many requests to come are answered well, and the status that all behind them get.
    pub fails_after: Option<(usize, u16)>,
    /// Removing a bank removes all of them.
    pub resets_everything: bool,
    /// Removing a bank removes nothing.
    pub resets_nothing: bool,
    /// Every question gets this answer: a fake model.
    pub always_answers: Option<String>,
    /// It wants this key.
    pub key: Option<String>,
    /// What was sent and becomes a memory when the system is told that this is all.
    pub accumulated: Vec<(String, Stored)>,
    /// Events by their ids, with the items that they are about.
    pub events: BTreeMap<String, Vec<String>>,
    /// Removals that go on: events and what they remove.
    pub removals: BTreeMap<String, Option<String>>,
    /// Tokens that its model has used so far, and looks at them during which it uses more.
    pub tokens: (u64, u32),
    /// Replies name the dataset that they are of.
    pub access_control: bool,
    /// Counts items.
    next: u64,
}

/// A request.
#[derive(Debug)]
pub struct Ask<'a> {
    /// HTTP method, in capitals.
    pub method: &'a str,
    /// Parts of the path.
    pub path: Vec<&'a str>,
    /// Query parameters.
    pub query: BTreeMap<String, String>,
    /// HTTP headers of the request.
    pub headers: &'a HeaderMap,
    /// JSON body; `null` without one.
    pub body: Value,
    /// The body as it came.
    pub raw: &'a [u8],
    /// The path ends with a slash.
    pub slashed: bool,
}

impl Ask<'_> {
    /// A number among the query parameters.
    fn number(&self, name: &str, otherwise: usize) -> usize {
        self.query.get(name).and_then(|number| number.parse().ok()).unwrap_or(otherwise)
    }
}

/// A response.
#[derive(Debug)]
pub enum Reply {
    /// JSON with a status.
    Json(u16, Value),
    /// Server-sent events.
    Events(String),
    /// A plain text.
    Text(String),
    /// Nothing, with a status.
    Empty(u16),
}

/// A system: from a request to a response.
pub type System = fn(&mut World, &Ask<'_>) -> Reply;

impl World {
    /// Takes an item in, unless it is one of those that are lost.
    pub fn store(&mut self, bank: &str, text: &str, meta: Value) -> String {
        let (stored, kept) = self.item(text, meta);
        let id = stored.id.clone();
        if kept {
            self.banks.entry(bank.to_owned()).or_default().push(stored);
        }
        id
    }

    /// Notes an item that is taken in later, unless it is one of those that are lost.
    pub fn accept(&mut self, bank: &str, text: &str, meta: Value) -> String {
        let (stored, kept) = self.item(text, meta);
        let id = stored.id.clone();
        if kept {
            self.waiting.push((bank.to_owned(), stored));
        }
        id
    }

    /// The next item, and whether it is kept.
    fn item(&mut self, text: &str, meta: Value) -> (Stored, bool) {
        self.next += 1;
        let kept = (self.loses_every == 0 || !self.next.is_multiple_of(self.loses_every as u64))
            && self.keeps_at_most.is_none_or(|most| self.next <= most)
            && self.loses_share.is_none_or(|(seed, share)| lot(seed, text) >= share);
        let text = text.chars().filter(|c| !self.ascii_only || c.is_ascii()).collect();
        (Stored { id: format!("m{}", self.next), text, meta }, kept)
    }

    /// The items of a batch that are taken in.
    pub fn part_of(&mut self, mut items: Vec<Value>) -> Vec<Value> {
        if std::mem::take(&mut self.takes_part_once) || self.takes_part {
            items.pop();
        }
        items.truncate(self.first_of_batch.unwrap_or(usize::MAX));
        items
    }

    /// A number that no item has.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Takes an item in later, when the system is told that this is all; unless it is one of those that are lost.
    pub fn accumulate(&mut self, bank: &str, text: &str, meta: Value) {
        let (stored, kept) = self.item(text, meta);
        if kept {
            self.accumulated.push((bank.to_owned(), stored));
        }
    }

    /// What a bank has accumulated.
    pub fn accumulated_of(&mut self, bank: &str) -> Vec<(String, Stored)> {
        let (mine, others) = std::mem::take(&mut self.accumulated).into_iter().partition(|(name, _)| name == bank);
        self.accumulated = others;
        mine
    }

    /// Takes in everything that waits.
    pub fn take_in(&mut self) {
        for (bank, stored) in std::mem::take(&mut self.waiting) {
            self.banks.entry(bank).or_default().push(stored);
        }
    }

    /// The items of a bank that share words with a query, those with the most first.
    #[must_use]
    pub fn search(&self, bank: &str, query: &str, k: usize) -> Vec<(Stored, usize)> {
        let words = words(query);
        let all = self.banks.iter().filter(|(name, _)| self.mixes_banks || name.as_str() == bank);
        let stored = all.flat_map(|(_, items)| items);
        let common = |item: &Stored| self::words(&item.text).iter().filter(|word| words.contains(*word)).count();
        let mut found: Vec<(Stored, usize)> =
            stored.map(|item| (item.clone(), common(item))).filter(|(_, score)| *score > 0).collect();
        match self.bm25 {
            true => by_bm25(&mut found, &words),
            false => found.sort_by_key(|(_, score)| std::cmp::Reverse(*score)),
        }
        found.truncate(k.min(self.clips.unwrap_or(usize::MAX)));
        found
    }

    /// An answer from what is found.
    #[must_use]
    pub fn answer(&self, bank: &str, question: &str) -> String {
        if let Some(always) = &self.always_answers {
            return always.clone();
        }
        let wanted = words(question);
        let common = |line: &&str| words(line).iter().filter(|word| wanted.contains(*word)).count();
        let found = self.search(bank, question, 1).pop().map(|(item, _)| item.text).unwrap_or_default();
        found.lines().max_by_key(common).map_or_else(|| "nothing is known".to_owned(), str::to_owned)
    }
}

/// A number from 0 to 1 that follows from a seed and a text.
fn lot(seed: u64, text: &str) -> f64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // the last bytes of a text move the high bits little
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((hash ^ (hash >> 32)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Puts items in the order of BM25 (k1 1.2, b 0.75) over those that share a word with the query.
fn by_bm25(found: &mut [(Stored, usize)], query: &[String]) {
    let all = |text: &str| -> Vec<String> {
        text.to_lowercase().split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect()
    };
    let texts: Vec<Vec<String>> = found.iter().map(|(item, _)| all(&item.text)).collect();
    let (n, mean) = (texts.len() as f64, texts.iter().map(Vec::len).sum::<usize>() as f64 / texts.len().max(1) as f64);
    let times = |text: &[String], word: &String| text.iter().filter(|held| *held == word).count() as f64;
    let rarity = |word: &String| {
        let held = texts.iter().filter(|text| text.contains(word)).count() as f64;
        ((n - held + 0.5) / (held + 0.5) + 1.0).ln()
    };
    let rarities: Vec<f64> = query.iter().map(rarity).collect();
    let mut scored: Vec<(f64, (Stored, usize))> = Vec::with_capacity(found.len());
    for (text, item) in texts.iter().zip(found.iter()) {
        let of = |(word, rarity): (&String, &f64)| {
            let tf = times(text, word);
            rarity * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * text.len() as f64 / mean))
        };
        scored.push((query.iter().zip(&rarities).map(of).sum(), item.clone()));
    }
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    for (place, (_, item)) in found.iter_mut().zip(scored) {
        *place = item;
    }
}

fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut words: Vec<String> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3).map(str::to_owned).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// A running system.
#[derive(Debug)]
pub struct Fake {
    address: SocketAddr,
    url: String,
    system: System,
    world: Arc<Mutex<World>>,
    serving: Option<Serving>,
    /// Holds the port while nobody listens, so that nobody else takes it.
    held: Option<TcpSocket>,
}

/// A system that listens.
#[derive(Debug)]
struct Serving {
    runtime: tokio::runtime::Runtime,
    leave: oneshot::Sender<()>,
    gone: mpsc::Receiver<()>,
}

struct Served {
    system: System,
    world: Arc<Mutex<World>>,
    /// Held while a search is made that takes its time.
    searching: tokio::sync::Mutex<()>,
    /// When the queue of known services is empty.
    idle_from: Mutex<Option<tokio::time::Instant>>,
}

impl Fake {
    /// Starts a system on a free port.
    ///
    /// # Panics
    /// When it does not know the name or cannot listen.
    #[must_use]
    pub fn start(name: &str) -> Self {
        let (_, system) = SYSTEMS.iter().find(|(known, _)| *known == name).expect("a system of that name");
        let socket = bound(SocketAddr::from(([127, 0, 0, 1], 0)));
        let address = socket.local_addr().expect("has an address");
        let mut fake = Self {
            address,
            url: format!("http://{address}"),
            system: *system,
            world: Arc::default(),
            serving: None,
            held: Some(socket),
        };
        fake.come_back();
        fake
    }

    /// Ends as a process does that is stopped: requests under way are answered, then connections are refused.
    ///
    /// # Panics
    /// When its port cannot be kept.
    pub fn leave(&mut self) {
        let Some(Serving { runtime, leave, gone }) = self.serving.take() else { return };
        self.held = Some(bound(self.address));
        let _ = leave.send(());
        let _ = gone.recv_timeout(Duration::from_secs(10));
        // a test may itself be in a runtime
        runtime.shutdown_background();
    }

    /// Listens again, where it did, with what it held.
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn come_back(&mut self) {
        let Some(socket) = self.held.take() else { return };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let listener = {
            let _in_runtime = runtime.enter();
            socket.listen(1024).expect("can listen")
        };
        let served = Arc::new(Served {
            system: self.system,
            world: Arc::clone(&self.world),
            searching: Default::default(),
            idle_from: Mutex::default(),
        });
        let router = Router::new().fallback(serve).with_state(served);
        let (leave, asked) = oneshot::channel();
        let (tell, gone) = mpsc::channel();
        runtime.spawn(async move {
            let asked = async move { drop(asked.await) };
            let _ = axum::serve(listener, router).with_graceful_shutdown(asked).await;
            let _ = tell.send(());
        });
        self.serving = Some(Serving { runtime, leave, gone });
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Looks at, or changes, what it holds and what is wrong with it.
    pub fn with<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        change(&mut self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        // a test may itself be in a runtime
        if let Some(serving) = self.serving.take() {
            serving.runtime.shutdown_background();
        }
    }
}

/// A socket that holds an address and does not listen: connections to it are refused.
fn bound(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    // one socket takes the place of another without a moment in which the port is free
    socket.set_reuseport(true).expect("can share its port");
    socket.bind(address).expect("the port is free");
    socket
}

async fn serve(
    State(served): State<Arc<Served>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let served_at = if is_search(uri.path()) { queued(&served) } else { None };
    let takes = match is_search(uri.path()) {
        true => served.world.lock().unwrap_or_else(PoisonError::into_inner).searches_take,
        false => Duration::ZERO,
    };
    let _searching = if takes.is_zero() { None } else { Some(served.searching.lock().await) };
    let begun = tokio::time::Instant::now();
    let (slow, reply) = {
        let mut world = served.world.lock().unwrap_or_else(PoisonError::into_inner);
        let before = world.next;
        let reply = answer(&served, &mut world, &method, &uri, &headers, &body);
        let stores = if world.next > before { world.stores_take } else { Duration::ZERO };
        (world.slow + stores, reply)
    };
    tokio::time::sleep(slow).await;
    tokio::time::sleep_until(begun + takes).await;
    if let Some(served) = served_at {
        tokio::time::sleep_until(served).await;
    }
    reply
}

/// When a search that has arrived now ends, of a queue of known services.
fn queued(served: &Served) -> Option<tokio::time::Instant> {
    let service = served.world.lock().unwrap_or_else(PoisonError::into_inner).services.pop_front()?;
    let mut idle_from = served.idle_from.lock().unwrap_or_else(PoisonError::into_inner);
    let now = tokio::time::Instant::now();
    let begins = idle_from.map_or(now, |idle_from| idle_from.max(now));
    *idle_from = Some(begins + service);
    *idle_from
}

/// A value of a query as it was before it was escaped.
fn decoded(value: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), value.as_bytes());
    while let Some((first, tail)) = rest.split_first() {
        let escaped = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match (first, escaped.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
        rest = tail;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_search(path: &str) -> bool {
    ["/recall", "/search"].iter().any(|end| path.ends_with(end))
}

fn answer(served: &Served, world: &mut World, method: &Method, uri: &Uri, headers: &HeaderMap, raw: &[u8]) -> Response {
    let body: Value = serde_json::from_slice(raw).unwrap_or_default();
    world.requests.push(format!("{method} {}", uri.path()));
    world.bodies.push(body.clone());
    if let Some(to) = &world.redirects_to {
        return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, format!("{to}{uri}"))]).into_response();
    }
    if let Some(key) = &world.key
        && !headers.values().any(|value| value.to_str().is_ok_and(|value| value.ends_with(key.as_str())))
    {
        return (StatusCode::UNAUTHORIZED, "who are you?").into_response();
    }
    if world.fails.0 > 0 {
        world.fails.0 -= 1;
        return StatusCode::from_u16(world.fails.1).unwrap_or(StatusCode::IM_A_TEAPOT).into_response();
    }
    if let Some((left, status)) = &mut world.fails_after {
        match left.checked_sub(1) {
            Some(fewer) => *left = fewer,
            None => return StatusCode::from_u16(*status).unwrap_or(StatusCode::IM_A_TEAPOT).into_response(),
        }
    }
    if let Some(left) = world.searches_left.as_mut().filter(|_| is_search(uri.path())) {
        match left.checked_sub(1) {
            Some(fewer) => *left = fewer,
            None => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        }
    }
    if !world.worker_dead && !world.waiting.is_empty() {
        let (bank, stored) = world.waiting.remove(0);
        world.banks.entry(bank).or_default().push(stored);
    }
    let query = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let ask = Ask {
        method: method.as_str(),
        path: uri.path().split('/').filter(|part| !part.is_empty()).collect(),
        query: query.map(|(key, value)| (key.to_owned(), decoded(value))).collect(),
        headers,
        body,
        raw,
        slashed: uri.path().ends_with('/'),
    };
    let before = (world.resets_nothing && method == Method::DELETE).then(|| world.banks.clone());
    let reply = (served.system)(world, &ask);
    if let Some(before) = before {
        world.banks = before;
    } else if world.resets_everything && method == Method::DELETE {
        world.banks.clear();
    }
    match reply {
        Reply::Json(status, value) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT);
            let value = if world.other_shape { serde_json::json!({ "unexpected": value }) } else { value };
            let text = format!("{}{value}", " ".repeat(world.bloat));
            (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
        }
        Reply::Events(text) => ([(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")], text).into_response(),
        Reply::Text(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Reply::Empty(status) => StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT).into_response(),
    }
}
