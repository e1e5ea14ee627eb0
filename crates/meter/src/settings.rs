//! Bounds of a meter, and what its requests have in common.

use std::{sync::Arc, time::Duration};

use tokio::{runtime::Handle, sync::Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    faults::{Faults, Occurrences},
    room::Room,
};

/// How much a meter takes and holds, and what it does on purpose.
#[derive(Debug, Clone)]
pub struct MeterSettings {
    /// Longest body of a request, in bytes.
    pub most_request_bytes: usize,
    /// Longest body of a reply, in bytes, that is kept for the store or for counting its tokens; longer ones pass and are not kept.
    pub most_kept_bytes: usize,
    /// Longest event of a stream, in bytes, that is read; longer ones pass unread.
    pub most_event_bytes: usize,
    /// Bytes of all requests and of what is kept of replies, together. Who finds no room is told to come again.
    pub most_held_bytes: usize,
    /// Connections of clients at a time. Beyond it the one that has waited longest for a request is closed.
    pub most_connections: usize,
    /// Longest wait for the head of a request, also between two.
    pub head: Duration,
    /// Longest wait for room to hold the body of a request, and then for the body.
    pub body: Duration,
    /// Longest wait for a client that does not take its reply.
    pub client_stall: Duration,
    /// Longest reading on after a client has left, so that the use is known.
    pub linger: Duration,
    /// Most bytes that are read on.
    pub linger_bytes: u64,
    /// Replies that are read on at a time.
    pub most_lingering: usize,
    /// Longest wait for a connection to a provider.
    pub connect: Duration,
    /// Longest wait for requests in flight when the meter stops.
    pub stop: Duration,
    /// Keeps the body of every reply in its outcome, up to `most_kept_bytes`; otherwise those of cacheable requests alone.
    pub keep_replies: bool,
    /// Names of hosts by which clients may call a meter that listens on loopback, beside those of this machine.
    pub hosts: Vec<String>,
    /// Faults on purpose.
    pub faults: Faults,
    /// Decides which requests meet them.
    pub fault_seed: u64,
    /// How much later a request is sent that is slow on purpose.
    pub slow: Duration,
}

impl Default for MeterSettings {
    fn default() -> Self {
        Self {
            most_request_bytes: 16 << 20,
            most_kept_bytes: 1 << 20,
            most_event_bytes: 1 << 20,
            most_held_bytes: 96 << 20,
            most_connections: 4096,
            head: Duration::from_secs(60),
            body: Duration::from_secs(60),
            client_stall: Duration::from_secs(120),
            linger: Duration::from_secs(60),
            linger_bytes: 4 << 20,
            most_lingering: 256,
            connect: Duration::from_secs(10),
            stop: Duration::from_secs(20),
            keep_replies: false,
            hosts: Vec::new(),
            faults: Faults::default(),
            fault_seed: 0,
            slow: Duration::from_secs(10),
        }
    }
}

/// What all requests of a meter have in common.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) settings: MeterSettings,
    pub(crate) client: reqwest::Client,
    pub(crate) room: Room,
    /// Replies that are read on without their client.
    pub(crate) lingering: Arc<Semaphore>,
    /// Everything that has to end before the meter has.
    pub(crate) tasks: TaskTracker,
    /// The meter waits for them no longer.
    pub(crate) over: CancellationToken,
    pub(crate) occurrences: Occurrences,
}

impl Common {
    pub(crate) fn new(settings: MeterSettings) -> reqwest::Result<Self> {
        let client = reqwest::Client::builder()
            .connect_timeout(settings.connect)
            .tcp_nodelay(true)
            // one HTTP/2 connection would bound requests in flight by the server's stream limit (often 100)
            .http1_only()
            .pool_max_idle_per_host(settings.most_connections)
            .pool_idle_timeout(Duration::from_secs(50))
            // a key is sent to its own base URL only (P32), and replies pass as they are
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .build()?;
        Ok(Self {
            client,
            room: Room::new(settings.most_held_bytes),
            lingering: Arc::new(Semaphore::new(settings.most_lingering)),
            tasks: TaskTracker::new(),
            over: CancellationToken::new(),
            occurrences: Occurrences::default(),
            settings,
        })
    }

    /// Runs what has to end before the meter has. What does not end in time is dropped, and its cost is uncertain.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let over = self.over.clone();
        // a process that ends runs nothing any more
        if let Ok(runtime) = Handle::try_current() {
            let bounded = async move {
                tokio::select! {
                    () = task => {}
                    () = over.cancelled() => {}
                }
            };
            self.tasks.spawn_on(bounded, &runtime);
        }
    }
}
