//! The ways to models and memory servers (P39, P40): what calls ask before they are sent and tell when they end, and what
//! follows for all calls of the process. `state` is one route as a pure state machine, `remedy` what is done about its
//! failures, `watch` talks to the store and probes.

mod remedy;
mod state;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_proto::{
    failure::Failure,
    ids::{Role, Sha256Hash},
    outage::{EVIDENCE_VERSION, OutageEvent, RouteEvidence, RouteKey, SessionEvidence},
};
use bench_store::OutageRow;
use tokio::sync::Notify;
use tracing::warn;

#[cfg(test)]
pub(crate) use state::OVERTAKING;
use state::{Look, RouteState, Standing};
pub use watch::{Needs, RouteHost, stopped_roles, watch};

/// Code of the lines about a worker that leaves a route to others.
const WITHDRAWN: &str = "worker_withdrew";
/// Without any reply for so long while calls are out, or for three times the slowest reply seen, a route to a model is suspect.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);
/// How long somebody waits at most before he looks whether a failure was decided about.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Probers of a route that are asked for one probe.
const PROBERS: usize = 3;
/// For so long a process remembers failures of calls that were put off; the call may have come to another process.
const UNDECIDED: Duration = Duration::from_secs(3_600);

/// All routes of a process.
pub struct Routes {
    /// This process is the only one of its domain: it carries out a local run.
    alone: bool,
    routes: Mutex<BTreeMap<RouteKey, Arc<Route>>>,
    /// Wakes the watch before its time.
    alarm: Notify,
    /// Roles in which this process can do nothing for now.
    idle_roles: Mutex<BTreeSet<Role>>,
    /// Told when they change.
    pub roles_changed: Notify,
    /// Workers of the domain, this one included; 0 while not known.
    workers: AtomicUsize,
}

/// One route, shared by all calls of the process that need it.
pub struct Route {
    key: RouteKey,
    state: Mutex<RouteState>,
    changed: Notify,
    routes: Weak<Routes>,
    /// No other process can use it.
    alone: bool,
    /// Its newest outage, where it is nobody else's matter: what it leads to was started by this process.
    own: Option<Mutex<OutageRow>>,
    made: Instant,
    /// Who can make a probe: callers of runs that need the route, the latest last.
    probers: Mutex<Vec<Weak<dyn Prober>>>,
    /// Failures on the way of calls that were put off before anybody knew whose fault they were, by when they were sent.
    undecided: Mutex<BTreeMap<Sha256Hash, Vec<Instant>>>,
    /// Tasks that were put off and are not counted in the store yet.
    held: AtomicUsize,
}

/// Makes the smallest call that tells whether a route works; it is reserved, paid and booked like any other.
#[async_trait]
pub trait Prober: Send + Sync {
    /// Makes it.
    async fn probe(&self) -> Probed;

    /// The longest time that it may take.
    fn within(&self) -> Duration;
}

/// What became of a probe.
#[derive(Debug, Clone, PartialEq)]
pub enum Probed {
    /// It came through.
    Through,
    /// It failed on the way, or was refused.
    Failed(Failure),
    /// It could not be sent (no money, no allowance): nothing is learned.
    NotMade,
}

/// How a call ended, for its route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A reply came.
    Through,
    /// It failed on the way, and not because of what was asked.
    Failed,
    /// This process lacks something that every call needs: file descriptors, memory.
    OwnFault,
    /// The provider refuses this process: its key, its URL, the model's name.
    Refused,
    /// A reply came that says nothing about the route (429), or a failure of the request.
    Other,
}

/// Why a call cannot be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotNow {
    /// When to come again.
    pub wait: Duration,
    /// Why it cannot be sent, in words for people.
    pub reason: String,
}

/// A call that is out. Dropped without an end it tells nothing.
pub struct Sent<'a> {
    route: &'a Route,
    call: u64,
    ended: bool,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // every change is complete when the lock is dropped, so a panic elsewhere leaves it usable
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Routes {
    /// Whether this process is the only one of its domain.
    #[must_use]
    pub const fn is_alone(&self) -> bool {
        self.alone
    }

    /// The routes of a process, which is alone in its domain or not.
    #[must_use]
    pub fn new(alone: bool) -> Arc<Self> {
        Arc::new(Self {
            alone,
            routes: Mutex::default(),
            alarm: Notify::new(),
            idle_roles: Mutex::default(),
            roles_changed: Notify::new(),
            workers: AtomicUsize::new(0),
        })
    }

    /// The route of a key.
    pub fn route(self: &Arc<Self>, key: &RouteKey) -> Arc<Route> {
        self.find(key, false)
    }

    /// A route to something that this process has started: no other process hears of its outages. It lasts as long as it is held.
    pub fn own_route(self: &Arc<Self>, key: &RouteKey) -> Arc<Route> {
        self.find(key, true)
    }

    fn find(self: &Arc<Self>, key: &RouteKey, own: bool) -> Arc<Route> {
        let silence = match key {
            RouteKey::Model { .. } => Some(LONGEST_SILENCE),
            // an operation is many requests, of which each has its own time
            RouteKey::Memory { .. } => None,
        };
        let make = || {
            Arc::new(Route {
                key: key.clone(),
                state: Mutex::new(RouteState::new(silence)),
                changed: Notify::new(),
                routes: Arc::downgrade(self),
                alone: self.alone || own,
                own: own.then(|| Mutex::new(OutageRow { route: key.to_text(), ..OutageRow::default() })),
                made: Instant::now(),
                probers: Mutex::default(),
                undecided: Mutex::default(),
                held: AtomicUsize::new(0),
            })
        };
        let mut routes = lock(&self.routes);
        routes.retain(|_, route| !route.is_own() || Arc::strong_count(route) > 1);
        Arc::clone(routes.entry(key.clone()).or_insert_with(make))
    }

    fn all(&self) -> Vec<Arc<Route>> {
        lock(&self.routes).values().cloned().collect()
    }

    /// Whether something has to be looked at soon.
    fn is_troubled(&self) -> bool {
        let now = Instant::now();
        self.all().iter().any(|route| lock(&route.state).is_troubled(now))
    }

    /// What this process tells with its renewals.
    pub fn evidence(&self) -> SessionEvidence {
        let routes = self.all().iter().filter(|route| !route.is_own()).map(|route| route.evidence()).collect();
        let idle_roles = lock(&self.idle_roles).iter().copied().collect();
        SessionEvidence { v: EVIDENCE_VERSION, routes, idle_roles, ..SessionEvidence::default() }
    }

    /// Whether this process can serve a role at all.
    pub fn serves(&self, role: Role) -> bool {
        !lock(&self.idle_roles).contains(&role)
    }

    /// Whether there is a role in which it can do nothing.
    fn is_idle(&self) -> bool {
        !lock(&self.idle_roles).is_empty()
    }

    fn set_idle(&self, roles: BTreeSet<Role>) {
        let mut idle = lock(&self.idle_roles);
        if *idle != roles {
            *idle = roles;
            drop(idle);
            self.roles_changed.notify_waiters();
        }
    }

    /// Calls in flight that this process begins with after an outage.
    fn share(&self) -> usize {
        state::share_of(self.workers.load(Ordering::Relaxed))
    }
}

impl Route {
    /// What goes where.
    pub const fn key(&self) -> &RouteKey {
        &self.key
    }

    /// Somebody who can probe, as long as it lives. A process that is not let through asks again at once for it.
    pub fn can_be_probed_by(&self, prober: Weak<dyn Prober>) {
        let mut probers = lock(&self.probers);
        probers.retain(|prober| prober.strong_count() > 0);
        probers.push(prober);
        lock(&self.state).ask_again(Instant::now());
    }

    /// Who can probe, the latest first, and no more than can be asked one after the other.
    fn probers(&self) -> Vec<Arc<dyn Prober>> {
        lock(&self.probers).iter().rev().filter_map(Weak::upgrade).take(PROBERS).collect()
    }

    /// Keeps what nobody has decided about yet of a call that has to come again.
    pub fn keep(&self, call: Sha256Hash, pending: Vec<Instant>) {
        if pending.is_empty() {
            return;
        }
        let mut undecided = lock(&self.undecided);
        undecided.retain(|_, sent| sent.last().is_some_and(|sent| sent.elapsed() < UNDECIDED));
        undecided.insert(call, pending);
    }

    /// What was kept of a call.
    pub fn kept(&self, call: &Sha256Hash) -> Vec<Instant> {
        lock(&self.undecided).remove(call).unwrap_or_default()
    }

    fn alarm(&self) {
        if let Some(routes) = self.routes.upgrade() {
            routes.alarm.notify_one();
        }
    }

    /// Waits until calls may be sent, up to `patience`; what is known to last is not waited for.
    pub async fn wait(&self, patience: Duration) -> Result<(), NotNow> {
        let begun = Instant::now();
        loop {
            let changed = self.changed.notified();
            let look = lock(&self.state).look(Instant::now());
            let Look::Wait { wait, reason, lasts } = look else { return Ok(()) };
            let left = patience.saturating_sub(begun.elapsed());
            if lasts || left.is_zero() {
                self.held.fetch_add(1, Ordering::Relaxed);
                return Err(NotNow { wait, reason });
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(wait.min(left)) => {}
            }
        }
    }

    /// Sends a call, if the route has not been closed meanwhile.
    pub fn send(&self) -> Option<Sent<'_>> {
        let mut state = lock(&self.state);
        let at = Instant::now();
        match state.look(at) {
            Look::Go => Some(Sent { route: self, call: state.send(at), ended: false }),
            Look::Wait { .. } => None,
        }
    }

    /// Has a failure that cannot be tried again looked into at once.
    pub fn doubt(&self) {
        lock(&self.state).doubt();
        self.alarm();
    }

    /// Waits for something that may decide about failures, a moment at most.
    pub async fn news(&self) {
        let _ = tokio::time::timeout(LOOK_AGAIN, self.changed.notified()).await;
    }

    /// Whether it is to be found out whose fault the failures are.
    pub fn is_suspect(&self) -> bool {
        lock(&self.state).is_suspect()
    }

    /// Waits while it is to be found out whose fault the failures are, up to `patience`; false when that is still open.
    pub async fn fault_is_known(&self, patience: Duration) -> bool {
        let begun = tokio::time::Instant::now();
        while self.is_suspect() {
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return false;
            }
            let _ = tokio::time::timeout(left.min(LOOK_AGAIN), self.changed.notified()).await;
        }
        true
    }

    /// Nobody but this process hears of its outages.
    pub const fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// What is known of the newest outage of a route that is this process's own.
    fn own_row(&self) -> Option<OutageRow> {
        let row = lock(self.own.as_ref()?).clone();
        Some(OutageRow { now_us: self.now_us(), ..row })
    }

    /// For how long a route that is this process's own has been closed.
    pub fn own_outage(&self) -> Option<Duration> {
        let row = self.own_row().filter(|row| row.outage.is_open())?;
        Some(Duration::from_micros(u64::try_from(row.now_us - row.outage.from_us).unwrap_or(0)))
    }

    /// What the store does for the routes of all.
    fn take_own(&self, event: OutageEvent, why: &str) -> Option<(bool, OutageRow)> {
        let now_us = self.now_us();
        let mut row = lock(self.own.as_ref()?);
        let changed = row.outage.take(now_us, event);
        if changed && !why.is_empty() {
            why.clone_into(&mut row.reason);
        }
        row.now_us = now_us;
        Some((changed, row.clone()))
    }

    fn now_us(&self) -> i64 {
        i64::try_from(self.made.elapsed().as_micros()).unwrap_or(i64::MAX).saturating_add(1)
    }

    /// Decides about failures on the way, given by when they were sent: how many count as attempts, how many as none. Those
    /// that nobody can tell yet stay.
    pub fn decide(&self, pending: &mut Vec<Instant>) -> (u32, u32) {
        if pending.is_empty() { (0, 0) } else { lock(&self.state).decide(pending) }
    }

    /// No other process can use it.
    pub const fn is_alone(&self) -> bool {
        self.alone
    }

    /// Whether the provider has ever answered this process.
    pub fn ever_worked(&self) -> bool {
        lock(&self.state).ever()
    }

    /// Leaves the route to others.
    fn withdraw(&self, reason: &str, refused: Option<Failure>) {
        let news = lock(&self.state).withdraw(reason.to_owned(), refused, Instant::now());
        if news {
            self.tell_withdrawn(reason);
        }
        self.changed.notify_waiters();
        self.alarm();
    }

    fn tell_withdrawn(&self, reason: &str) {
        let key = &self.key;
        warn!(
            code = WITHDRAWN,
            "this worker does not get through to {key}: {reason}; it leaves these calls to others and tries again by itself"
        );
    }

    fn evidence(&self) -> RouteEvidence {
        lock(&self.state).evidence(self.key.to_text(), Instant::now())
    }

    fn is_withdrawn(&self) -> bool {
        matches!(lock(&self.state).standing, Standing::Withdrawn(_))
    }
}

impl Sent<'_> {
    /// Ends when the call need not be waited for: the provider was away meanwhile, is back, and has forgotten it.
    pub async fn lost(&self) {
        loop {
            let changed = self.route.changed.notified();
            if lock(&self.route.state).is_lost(self.call) {
                return;
            }
            changed.await;
        }
    }

    /// The call has ended. Returns when it was sent, if it failed on the way.
    pub fn end(mut self, way: Way, failure: Option<&Failure>) -> Option<Instant> {
        self.ended = true;
        let (now, words) = (Instant::now(), failure.map_or("", |failure| failure.message.as_str()));
        let mut state = lock(&self.route.state);
        match way {
            Way::Through => {
                let first = !state.ever();
                state.succeeded(self.call, now);
                drop(state);
                if first {
                    self.route.changed.notify_waiters();
                }
                None
            }
            Way::Other => {
                state.ended(self.call, now);
                None
            }
            Way::Failed => {
                let sent = state.failed(self.call, words, now);
                let troubled = state.is_troubled(now);
                drop(state);
                if troubled {
                    self.route.alarm();
                }
                Some(sent)
            }
            Way::OwnFault | Way::Refused => {
                let sent = state.failed(self.call, words, now);
                drop(state);
                let refused = failure.filter(|_| way == Way::Refused).cloned();
                self.route.withdraw(words, refused);
                Some(sent)
            }
        }
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if !self.ended {
            lock(&self.route.state).ended(self.call, Instant::now());
        }
    }
}
