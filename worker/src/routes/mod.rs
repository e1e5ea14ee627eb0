//! The ways to models (P39, P40): what calls ask before they are sent and tell when they end, and what follows for all calls
//! of the process. `state` is one route as a pure state machine, `verdict` what its failures mean, `watch` talks to the store and probes.

mod state;
mod verdict;
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
    outage::{EVIDENCE_VERSION, RouteEvidence, RouteKey, RouteKind, SessionEvidence},
    spec::{ModelSpec, RunSpec},
};
use tokio::sync::Notify;
use tracing::warn;

use crate::systems::vector;
use state::{Look, RouteState, Standing};

pub(crate) use watch::watch;

/// Code of the lines about a worker that leaves a route to others.
const WITHDRAWN: &str = "worker_withdrew";
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
    pub(crate) roles_changed: Notify,
    /// Workers of the domain, this one included; 0 while not known.
    workers: AtomicUsize,
}

/// One route, shared by all calls of the process that need it.
pub(crate) struct Route {
    key: RouteKey,
    state: Mutex<RouteState>,
    changed: Notify,
    routes: Weak<Routes>,
    /// No other process can use it.
    alone: bool,
    /// Who can make a probe: callers of runs that need the route, the latest last.
    probers: Mutex<Vec<Weak<dyn Prober>>>,
    /// Failures on the way of calls that were put off before anybody knew whose fault they were, by when they were sent.
    undecided: Mutex<BTreeMap<Sha256Hash, Vec<Instant>>>,
    /// Tasks that were put off and are not counted in the store yet.
    held: AtomicUsize,
}

/// Makes the smallest call that tells whether a route works; it is reserved, paid and booked like any other.
#[async_trait]
pub(crate) trait Prober: Send + Sync {
    /// Makes it.
    async fn probe(&self) -> Probed;

    /// The longest time that it may take.
    fn within(&self) -> Duration;
}

/// What became of a probe.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Probed {
    /// It came through.
    Through,
    /// It failed on the way, or was refused.
    Failed(Failure),
    /// It could not be sent (no money, no allowance): nothing is learned.
    NotMade,
}

/// How a call ended, for its route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
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
pub(crate) struct NotNow {
    /// When to come again.
    pub(crate) wait: Duration,
    /// For people.
    pub(crate) reason: String,
}

/// A call that is out. Dropped without an end it tells nothing.
pub(crate) struct Sent<'a> {
    route: &'a Route,
    call: u64,
    ended: bool,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // every change is complete when the lock is dropped, so a panic elsewhere leaves it usable
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Routes {
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
    pub(crate) fn route(self: &Arc<Self>, key: &RouteKey) -> Arc<Route> {
        let make = || {
            Arc::new(Route {
                key: key.clone(),
                state: Mutex::default(),
                changed: Notify::new(),
                routes: Arc::downgrade(self),
                alone: self.alone,
                probers: Mutex::default(),
                undecided: Mutex::default(),
                held: AtomicUsize::new(0),
            })
        };
        Arc::clone(lock(&self.routes).entry(key.clone()).or_insert_with(make))
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
    pub(crate) fn evidence(&self) -> SessionEvidence {
        let routes = self.all().iter().map(|route| route.evidence()).collect();
        let idle_roles = lock(&self.idle_roles).iter().copied().collect();
        SessionEvidence { v: EVIDENCE_VERSION, routes, idle_roles }
    }

    /// Whether this process can serve a role at all.
    pub(crate) fn serves(&self, role: Role) -> bool {
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
    pub(crate) const fn key(&self) -> &RouteKey {
        &self.key
    }

    /// Somebody who can probe, as long as it lives. A process that is not let through asks again at once for it.
    pub(crate) fn can_be_probed_by(&self, prober: Weak<dyn Prober>) {
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
    pub(crate) fn keep(&self, call: Sha256Hash, pending: Vec<Instant>) {
        if pending.is_empty() {
            return;
        }
        let mut undecided = lock(&self.undecided);
        undecided.retain(|_, sent| sent.last().is_some_and(|sent| sent.elapsed() < UNDECIDED));
        undecided.insert(call, pending);
    }

    /// What was kept of a call.
    pub(crate) fn kept(&self, call: &Sha256Hash) -> Vec<Instant> {
        lock(&self.undecided).remove(call).unwrap_or_default()
    }

    fn alarm(&self) {
        if let Some(routes) = self.routes.upgrade() {
            routes.alarm.notify_one();
        }
    }

    /// Waits until calls may be sent, up to `patience`; what is known to last is not waited for.
    pub(crate) async fn wait(&self, patience: Duration) -> Result<(), NotNow> {
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
    pub(crate) fn send(&self) -> Option<Sent<'_>> {
        let mut state = lock(&self.state);
        let at = Instant::now();
        match state.look(at) {
            Look::Go => Some(Sent { route: self, call: state.send(at), ended: false }),
            Look::Wait { .. } => None,
        }
    }

    /// Decides about failures on the way, given by when they were sent: how many count as attempts, how many as none. Those
    /// that nobody can tell yet stay.
    pub(crate) fn decide(&self, pending: &mut Vec<Instant>) -> (u32, u32) {
        if pending.is_empty() { (0, 0) } else { lock(&self.state).decide(pending) }
    }

    /// No other process can use it.
    pub(crate) const fn is_alone(&self) -> bool {
        self.alone
    }

    /// Whether the provider has ever answered this process.
    pub(crate) fn ever_worked(&self) -> bool {
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
    pub(crate) async fn lost(&self) {
        loop {
            let changed = self.route.changed.notified();
            if lock(&self.route.state).is_lost(self.call) {
                return;
            }
            changed.await;
        }
    }

    /// The call has ended. Returns when it was sent, if it failed on the way.
    pub(crate) fn end(mut self, way: Way, failure: Option<&Failure>) -> Option<Instant> {
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

/// The route of a model's chats; `None` for what needs no server.
#[must_use]
pub fn chat_route(model: &ModelSpec) -> Option<RouteKey> {
    let key = || RouteKey { kind: RouteKind::Chat, account: model.account.clone(), model: model.name.clone() };
    model.is_remote().then(key)
}

/// What each role needs of routes to work on a run: any of the routes in a list is enough.
#[must_use]
pub fn needs(spec: &RunSpec) -> BTreeMap<Role, Vec<Vec<RouteKey>>> {
    let mut needs: BTreeMap<Role, Vec<Vec<RouteKey>>> = BTreeMap::new();
    if let Some(model) = vector::remote_model(&spec.system.name, &spec.system.settings) {
        let key = RouteKey { kind: RouteKind::Embeddings, account: model.account.clone(), model: model.name.clone() };
        needs.entry(Role::Retain).or_default().push(vec![key.clone()]);
        needs.entry(Role::Question).or_default().push(vec![key]);
    }
    if let Some(key) = chat_route(&spec.answerer) {
        needs.entry(Role::Question).or_default().push(vec![key]);
    }
    let judges: Vec<RouteKey> = spec.judges.iter().filter_map(chat_route).collect();
    if !judges.is_empty() && judges.len() == spec.judges.len() {
        needs.entry(Role::Judge).or_default().push(judges);
    }
    needs
}

/// Roles of a run that can do nothing while the routes in `closed` are.
#[must_use]
pub fn stopped_roles(needs: &BTreeMap<Role, Vec<Vec<RouteKey>>>, closed: impl Fn(&RouteKey) -> bool) -> BTreeSet<Role> {
    let stopped = |lists: &Vec<Vec<RouteKey>>| lists.iter().any(|any_of| any_of.iter().all(&closed));
    needs.iter().filter(|(_, lists)| stopped(lists)).map(|(role, _)| *role).collect()
}

/// All routes that a run may use.
#[must_use]
pub fn routes_of(spec: &RunSpec) -> BTreeSet<RouteKey> {
    needs(spec).into_values().flatten().flatten().collect()
}
