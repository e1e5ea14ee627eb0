//! Somebody who admits everything, or nothing, and writes down what became of it; and a meter that asks it.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bench_meter::{Address, Admission, Admitted, Asked, Meter, MeterSettings, Outcome, Refusal, StoredReply, Upstream};
use http::{HeaderMap, HeaderValue};
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// The key that no client has.
pub(crate) const REAL_KEY: &str = "sk-real-and-secret-1";

/// A key of no run.
pub(crate) const FOREIGN_KEY: &str = "foreign";

/// Run, bank, generation, key and model of a request.
pub(crate) type Note = (String, Option<String>, Option<u32>, String, String);

/// What has been seen of requests.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) asked: Vec<Note>,
    /// What was refused and does not pass by itself: the code of the answer, and why.
    pub(crate) refused: Vec<(&'static str, String)>,
    pub(crate) sent: usize,
    pub(crate) settled: Vec<Outcome>,
    /// Dropped after they were sent.
    pub(crate) uncertain: usize,
}

/// The cost ledger of the tests: what requests were let through, and what became of each.
pub(crate) struct Ledger {
    upstream: Upstream,
    refusal: Mutex<Option<Refusal>>,
    stored: Mutex<Option<StoredReply>>,
    seen: Mutex<Seen>,
    changed: Notify,
}

struct Entry {
    ledger: Arc<Ledger>,
    is_open: bool,
}

impl Ledger {
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("whole")
    }

    pub(crate) fn refuse(&self, refusal: Option<Refusal>) {
        *self.refusal.lock().expect("whole") = refusal;
    }

    pub(crate) fn store(&self, reply: StoredReply) {
        *self.stored.lock().expect("whole") = Some(reply);
    }

    /// The outcomes, when there are so many.
    pub(crate) async fn settled(&self, count: usize) -> Vec<Outcome> {
        let wait = async {
            loop {
                let changed = self.changed.notified();
                if self.seen().settled.len() >= count {
                    return self.seen().settled.clone();
                }
                changed.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("settled in time")
    }

    /// The outcome of the only request.
    pub(crate) async fn only(&self) -> Outcome {
        let mut settled = self.settled(1).await;
        assert_eq!(settled.len(), 1, "{settled:?}");
        settled.remove(0)
    }
}

/// The ledger as the meter sees it.
struct Open(Arc<Ledger>);

#[async_trait::async_trait]
impl Admission for Open {
    async fn authenticate(&self, _: &Address, token: &str) -> Result<(), Refusal> {
        if token == FOREIGN_KEY { Err(Refusal::ForeignKey) } else { Ok(()) }
    }

    async fn refused(&self, _: &Address, code: &'static str, why: &str) {
        self.0.seen().refused.push((code, why.to_owned()));
    }

    async fn admit(&self, asked: &Asked) -> Result<Box<dyn Admitted>, Refusal> {
        if let Some(refusal) = self.0.refusal.lock().expect("whole").clone() {
            return Err(refusal);
        }
        let address = &asked.address;
        let note =
            (address.run.clone(), address.bank.clone(), address.generation, asked.token.clone(), asked.model.clone());
        self.0.seen().asked.push(note);
        Ok(Box::new(Entry { ledger: Arc::clone(&self.0), is_open: false }))
    }
}

#[async_trait::async_trait]
impl Admitted for Entry {
    fn stored(&mut self) -> Option<StoredReply> {
        self.ledger.stored.lock().expect("whole").clone()
    }

    fn upstream(&self) -> Upstream {
        self.ledger.upstream.clone()
    }

    fn sent(&mut self) {
        self.is_open = true;
        self.ledger.seen().sent += 1;
    }

    async fn settle(mut self: Box<Self>, outcome: Outcome) {
        self.is_open = false;
        self.ledger.seen().settled.push(outcome);
        self.ledger.changed.notify_waiters();
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.is_open {
            self.ledger.seen().uncertain += 1;
            self.ledger.changed.notify_waiters();
        }
    }
}

/// A meter that runs; it stops when this is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) ledger: Arc<Ledger>,
    /// Cancelled, it waits for nothing.
    pub(crate) hurry: CancellationToken,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    /// The base URL of a run's requests.
    pub(crate) fn base(&self) -> String {
        format!("http://{}/m/run-1/v1", self.address)
    }

    /// Stops it, and returns when it has stopped.
    pub(crate) async fn stop(mut self) -> Arc<Ledger> {
        self.stop.cancel();
        (&mut self.task).await.expect("it ends well");
        Arc::clone(&self.ledger)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Headers with the real key.
pub(crate) fn real_key() -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut value = HeaderValue::from_str(&format!("Bearer {REAL_KEY}")).expect("a value");
    value.set_sensitive(true);
    headers.insert("authorization", value);
    headers
}

pub(crate) async fn meter(base_url: &str, settings: MeterSettings) -> Running {
    meter_to(Upstream::new(base_url, real_key()), settings).await
}

pub(crate) async fn meter_to(upstream: Upstream, settings: MeterSettings) -> Running {
    let ledger = Arc::new(Ledger {
        upstream,
        refusal: Mutex::default(),
        stored: Mutex::default(),
        seen: Mutex::default(),
        changed: Notify::new(),
    });
    let meter = Meter::new(Arc::new(Open(Arc::clone(&ledger))), settings).expect("a meter");
    let hurry = meter.hurry();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
    let address = listener.local_addr().expect("an address");
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let task = tokio::spawn(async move { meter.serve(listener, stopped).await.expect("serves") });
    Running { address, ledger, hurry, stop, task }
}
