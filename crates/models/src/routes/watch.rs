//! Looks after the routes of a process: hears of outages and tells of them, probes what is closed, and finds out whether a
//! fault is the process's own (P39, P40). Nothing is asked of the store for routes that work, but for one look in two seconds.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_proto::{
    failure::Failure,
    ids::Role,
    outage::{OutageEvent, RouteEvidence, RouteKey},
    session::SessionInfo,
};
use bench_store::{OutageRow, SessionId, SessionRow, Store, StoreError, StoreResult};
use futures::FutureExt;
use rand::Rng;
use tracing::{debug, info, warn};

use super::{
    Probed, Route, Routes, WITHDRAWN, lock,
    remedy::{Remedy, probes_for_all, probes_for_itself, remedy},
    state::Turn,
};

/// For each role of a run, what it needs of routes: of each list one of them must work.
pub type Needs = BTreeMap<Role, Vec<Vec<RouteKey>>>;

/// The process whose routes are looked after, and what it knows of its runs.
#[async_trait]
pub trait RouteHost: Send + Sync + 'static {
    /// Where outages are written.
    fn store(&self) -> &dyn Store;
    /// The routes of the process.
    fn routes(&self) -> &Arc<Routes>;
    /// The queue domain whose outages concern it.
    fn domain(&self) -> &str;
    /// Its name, for people.
    fn name(&self) -> &str;
    /// Its session, which holds the leases of probes.
    fn session(&self) -> SessionId;
    /// Whether other workers serve its domain too.
    fn is_served(&self) -> bool;
    /// Tells the others now what it has seen of its routes, with a renewal of its session.
    async fn renew_now(&self) -> StoreResult<bool>;
    /// Gets to know the running runs of its domain, `most` at most, so that their callers can probe.
    async fn meet_running_runs(&self, most: usize) -> StoreResult<()>;
    /// What the runs that it knows need.
    async fn needs_at_hand(&self) -> Vec<Needs>;
    /// Stops the runs that need a route whose provider refuses from everywhere.
    async fn stop_refused(&self, key: &RouteKey, failure: &Failure);
    /// Something has changed: hands out what waited for it.
    fn wake(&self);
}

/// Roles of a run that can do nothing while the routes in `closed` are.
#[must_use]
pub fn stopped_roles(needs: &Needs, closed: impl Fn(&RouteKey) -> bool) -> BTreeSet<Role> {
    let stopped = |lists: &Vec<Vec<RouteKey>>| lists.iter().any(|any_of| any_of.iter().all(&closed));
    needs.iter().filter(|(_, lists)| stopped(lists)).map(|(role, _)| *role).collect()
}

/// Time between two looks while every route works.
const CALM: Duration = Duration::from_secs(2);
/// Shortest and usual time between two looks while one does not.
const TROUBLED: (Duration, Duration) = (Duration::from_millis(300), Duration::from_millis(500));
/// Time between two looks for runs that need a route that nobody here can probe.
const FIND_RUNS: Duration = Duration::from_secs(5);
/// Most runs that are looked at for that.
const RUNS_AT_ONCE: usize = 32;
/// Watches until the process ends.
pub async fn watch(host: Arc<dyn RouteHost>) {
    let (mut told, mut searched) = (None::<Instant>, None::<Instant>);
    let mut silent = None;
    loop {
        match look(&host, &mut told, &mut searched).await {
            Ok(()) => silent = None,
            Err(error) if error.is_transient() => bench_telemetry::outage::STORE.met(&mut silent, &error),
            Err(error) => debug!("outages could not be looked at: {error}"),
        }
        let routes = host.routes();
        let troubled = routes.is_troubled();
        tokio::select! {
            () = tokio::time::sleep(if troubled { TROUBLED.1 } else { CALM }) => {}
            () = routes.alarm.notified() => tokio::time::sleep(TROUBLED.0).await,
        }
    }
}

async fn look(
    host: &Arc<dyn RouteHost>,
    told: &mut Option<Instant>,
    searched: &mut Option<Instant>,
) -> Result<(), StoreError> {
    let (routes, domain) = (host.routes(), host.domain());
    // noted before the store is read: what is heard of a newer outage meanwhile is no sign that the store was set back
    let known = |route: &Arc<Route>| (route.key.clone(), lock(&route.state).known());
    let known: BTreeMap<RouteKey, (i64, bool)> = routes.all().iter().map(known).collect();
    let rows = host.store().outages(domain).await?;
    let may_lack_runs = rows.iter().any(|row| row.outage.is_open()) || routes.is_idle();
    if may_lack_runs && searched.is_none_or(|at| at.elapsed() >= FIND_RUNS) {
        *searched = Some(Instant::now());
        find_probers(host.as_ref(), &rows).await?;
    }
    for route in routes.all() {
        let text = route.key.to_text();
        let (opening, is_open) = known.get(&route.key).copied().unwrap_or_default();
        let row = match newest(&route, &rows) {
            // it ended longer ago than the store tells of, or the store was set back to before it (P44)
            None if is_open => Some(newest_of_all(host.as_ref(), &text).await?),
            told => told,
        };
        if let Some(row) = row {
            if row.outage.opening < opening {
                lock(&route.state).set_back(row.outage.opening);
            }
            route.hear(routes, &row);
        }
        let held = route.held.swap(0, Ordering::Relaxed);
        if held > 0 && !route.is_own() {
            host.store().held_back(domain, &text, i64::try_from(held).unwrap_or(i64::MAX)).await?;
        }
    }
    let now = Instant::now();
    let troubled: Vec<Arc<Route>> =
        routes.all().into_iter().filter(|route| lock(&route.state).is_troubled(now)).collect();
    if troubled.is_empty() {
        routes.set_idle(BTreeSet::new());
        return Ok(());
    }
    let others = others(host.as_ref()).await?;
    routes.workers.store(others.len() + 1, Ordering::Relaxed);
    for route in &troubled {
        let text = route.key.to_text();
        let told = |row: &SessionRow| row.evidence.of_route(&text).cloned().unwrap_or_default();
        let others: Vec<RouteEvidence> = if route.is_own() { Vec::new() } else { others.iter().map(told).collect() };
        look_into(host.as_ref(), route, &others).await?;
        probe(host, route, newest(route, &rows).as_ref(), &others).await?;
    }
    leave_roles(host.as_ref()).await;
    if host.is_served() && told.is_none_or(|told| told.elapsed() >= Duration::from_secs(1)) {
        *told = Some(Instant::now());
        // the usual renewal says what to do when the session has ended
        let _alive = host.renew_now().await?;
    }
    Ok(())
}

/// The newest outage of a route, of those that the store knows or of its own.
fn newest(route: &Route, rows: &[OutageRow]) -> Option<OutageRow> {
    let text = route.key.to_text();
    route.own_row().or_else(|| rows.iter().find(|row| row.route == text).cloned())
}

/// The newest outage of a route in the store, however long ago it ended; without an opening where there was none.
async fn newest_of_all(host: &dyn RouteHost, route: &str) -> StoreResult<OutageRow> {
    // who knows of less than none is told of the newest, and changes nothing
    let event = OutageEvent::Suspect { known: -1 };
    host.store().outage(host.domain(), route, event, "").await.map(|(_, row)| row)
}

/// Tells what has happened to an outage: the store, or who alone is concerned.
async fn tell(host: &dyn RouteHost, route: &Route, event: OutageEvent, why: &str) -> StoreResult<(bool, OutageRow)> {
    match route.take_own(event, why) {
        Some(told) => Ok(told),
        None => host.store().outage(host.domain(), &route.key.to_text(), event, why).await,
    }
}

/// The other workers of the domain; a local run has none.
async fn others(host: &dyn RouteHost) -> StoreResult<Vec<SessionRow>> {
    if !host.is_served() {
        return Ok(Vec::new());
    }
    let mut sessions = host.store().open_sessions(host.domain()).await?;
    let serves = |row: &SessionRow| SessionInfo::from_json(&row.info_json).slots.values().any(|slots| *slots > 0);
    sessions.retain(|row| row.session != host.session() && serves(row));
    Ok(sessions)
}

/// A route that is away, and that no run at hand needs, can be probed once the contexts of the running runs are there: a worker
/// that has just begun is handed no task of them. And one that leaves a role is not handed tasks of runs that it could serve.
async fn find_probers(host: &dyn RouteHost, rows: &[OutageRow]) -> Result<(), StoreError> {
    let unknown = |row: &&OutageRow| {
        let key = RouteKey::from_text(&row.route).filter(|_| row.outage.is_open());
        key.is_some_and(|key| host.routes().route(&key).probers().is_empty())
    };
    if !host.routes().is_idle() && !rows.iter().any(|row| unknown(&row)) {
        return Ok(());
    }
    host.meet_running_runs(RUNS_AT_ONCE).await
}

impl Route {
    /// Takes over what the store says of the newest outage.
    fn hear(&self, routes: &Routes, row: &OutageRow) -> Turn {
        let turn = lock(&self.state).told(row, routes.share(), Instant::now());
        self.changed.notify_waiters();
        turn
    }
}

/// Finds out what a route's failures mean, and acts on it.
async fn look_into(host: &dyn RouteHost, route: &Arc<Route>, others: &[RouteEvidence]) -> Result<(), StoreError> {
    let (remedy, known, why) = {
        let (state, now) = (lock(&route.state), Instant::now());
        (remedy(&state, others, now), state.opening, state.why(now))
    };
    match remedy {
        Remedy::Nothing => {}
        Remedy::Close => {
            let event = OutageEvent::Suspect { known };
            let (opened, row) = tell(host, route, event, &why).await?;
            route.hear(host.routes(), &row);
            if opened {
                let key = &route.key;
                warn!(
                    code = key.away_code(),
                    "{key} is away: {why}; what needs it waits and loses no attempt, probes find out when it is back"
                );
            }
        }
        Remedy::AskMyself => ask_myself(host, route),
        Remedy::StopRuns(failure) => host.stop_refused(&route.key, &failure).await,
    }
    Ok(())
}

/// A probe that this process has under way; dropped when it has ended, however that was.
struct Asking(Arc<Route>);

impl Asking {
    /// `None` while another is under way, or when nobody can make one.
    fn begin(route: &Arc<Route>) -> Option<Self> {
        let begins = !route.probers().is_empty() && !std::mem::replace(&mut lock(&route.state).asking, true);
        begins.then(|| Self(Arc::clone(route)))
    }

    /// Asks those who can probe, the latest first, until one of them could: another run's budget may have room.
    async fn probe(&self) -> Probed {
        for prober in self.0.probers() {
            // one that panics, which is logged, has found out nothing; another may
            match AssertUnwindSafe(prober.probe()).catch_unwind().await {
                Ok(Probed::NotMade) | Err(_) => {}
                Ok(probed) => return probed,
            }
        }
        Probed::NotMade
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        lock(&self.0.state).asking = false;
        self.0.changed.notify_waiters();
    }
}

/// Probes a route for this process alone.
fn ask_myself(host: &dyn RouteHost, route: &Arc<Route>) {
    let Some(asking) = Asking::begin(route) else { return };
    let (route, routes) = (Arc::clone(route), Arc::clone(host.routes()));
    let worker = host.name().to_owned();
    tokio::spawn(async move {
        let sent = Instant::now();
        let probed = asking.probe().await;
        let (now, key) = (Instant::now(), route.key.clone());
        match probed {
            Probed::Through => {
                if lock(&route.state).is_back(sent, routes.share(), now) {
                    info!(worker, code = WITHDRAWN, "worker {worker} gets through to {key} again");
                }
            }
            Probed::Failed(failure) => {
                let why = failure.message.clone();
                let refused = Some(failure).filter(is_refusal);
                if lock(&route.state).is_not_back(&why, refused, now) {
                    route.tell_withdrawn(&why);
                }
            }
            Probed::NotMade => {}
        }
        drop(asking);
        route.alarm();
    });
}

/// Whether the provider refused this process's key, URL or model name.
fn is_refusal(failure: &Failure) -> bool {
    crate::classify::is_refusal(&failure.code)
}

/// Makes the probes that are due: of a process that has withdrawn for itself, of an outage for everybody, one at a time.
async fn probe(
    host: &Arc<dyn RouteHost>,
    route: &Arc<Route>,
    row: Option<&OutageRow>,
    others: &[RouteEvidence],
) -> Result<(), StoreError> {
    let now = Instant::now();
    let (for_itself, row) = {
        let state = lock(&route.state);
        (probes_for_itself(&state, now), row.filter(|row| probes_for_all(&state, row, others)))
    };
    if for_itself {
        ask_myself(host.as_ref(), route);
        return Ok(());
    }
    let Some(row) = row else { return Ok(()) };
    let Some(asking) = Asking::begin(route) else { return Ok(()) };
    let within = route.probers().iter().map(|prober| prober.within()).max().unwrap_or_default();
    let within_us = i64::try_from(within.as_micros()).unwrap_or(i64::MAX);
    let (session, opening) = (host.session().0, row.outage.opening);
    let event = OutageEvent::TakeProbe { session, within_us };
    let (granted, _) = tell(host.as_ref(), route, event, "").await?;
    if !granted {
        return Ok(());
    }
    let (host, route) = (Arc::clone(host), Arc::clone(route));
    tokio::spawn(async move {
        let sent = Instant::now();
        let (event, words) = match asking.probe().await {
            Probed::Through => (OutageEvent::ProbeSucceeded { opening }, String::new()),
            Probed::Failed(failure) => {
                let spread = rand::rng().random_range(-200..=200);
                (OutageEvent::ProbeFailed { session, opening, spread }, failure.message)
            }
            Probed::NotMade => (OutageEvent::ProbeNotMade { session, opening }, String::new()),
        };
        match tell(host.as_ref(), &route, event, &words).await {
            Ok((changed, row)) => {
                if changed && matches!(event, OutageEvent::ProbeFailed { .. }) {
                    lock(&route.state).failed_last = Some((opening, row.outage.failed_probes));
                }
                if matches!(event, OutageEvent::ProbeSucceeded { .. }) {
                    lock(&route.state).is_back(sent, host.routes().share(), Instant::now());
                    if changed {
                        tell_back(&route, &row);
                    }
                }
                route.hear(host.routes(), &row);
            }
            Err(error) => debug!("what a probe of {} found could not be told: {error}", route.key),
        }
        drop(asking);
        route.alarm();
        host.wake();
    });
    Ok(())
}

fn tell_back(route: &Route, row: &OutageRow) {
    let took_us = row.outage.to_us.unwrap_or(row.now_us) - row.outage.from_us;
    let (key, held, seconds) = (&route.key, row.held, took_us as f64 / 1e6);
    warn!(code = key.away_code(), "{key} is back after {seconds:.1} s; {held} tasks had been put off and go on");
}

/// Stops serving roles in which this process can do nothing for any of its runs.
async fn leave_roles(host: &dyn RouteHost) {
    let routes = host.routes();
    let withdrawn: BTreeSet<RouteKey> =
        routes.all().iter().filter(|route| route.is_withdrawn()).map(|route| route.key.clone()).collect();
    let needs = if withdrawn.is_empty() { Vec::new() } else { host.needs_at_hand().await };
    routes.set_idle(idle_roles(needs.iter(), &withdrawn));
}

/// Roles that no run can be served in without the routes in `withdrawn`.
fn idle_roles<'a>(runs: impl Iterator<Item = &'a Needs>, withdrawn: &BTreeSet<RouteKey>) -> BTreeSet<Role> {
    let stopped = runs.map(|needs| stopped_roles(needs, |key| withdrawn.contains(key)));
    stopped.reduce(|idle, stopped| idle.intersection(&stopped).copied().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Weak,
        atomic::{AtomicUsize, Ordering},
    };

    use bench_proto::outage::RouteKind;

    use super::{super::Prober, *};

    fn key(account: &str) -> RouteKey {
        RouteKey::Model { kind: RouteKind::Chat, account: account.to_owned(), model: "gpt-4o-mini".to_owned() }
    }

    /// A worker that serves nobody, with a store of its own.
    struct Looking(Arc<dyn Store>, Arc<Routes>);

    #[async_trait]
    impl RouteHost for Looking {
        fn store(&self) -> &dyn Store {
            self.0.as_ref()
        }

        fn routes(&self) -> &Arc<Routes> {
            &self.1
        }

        fn domain(&self) -> &str {
            "cluster"
        }

        fn name(&self) -> &str {
            "w1"
        }

        fn session(&self) -> SessionId {
            SessionId(1)
        }

        fn is_served(&self) -> bool {
            false
        }

        async fn renew_now(&self) -> StoreResult<bool> {
            Ok(true)
        }

        async fn meet_running_runs(&self, _: usize) -> StoreResult<()> {
            Ok(())
        }

        async fn needs_at_hand(&self) -> Vec<Needs> {
            Vec::new()
        }

        async fn stop_refused(&self, _: &RouteKey, _: &Failure) {}

        fn wake(&self) {}
    }

    async fn looks(host: &Arc<dyn RouteHost>) {
        look(host, &mut None, &mut None).await.expect("a look");
    }

    #[tokio::test]
    async fn p44_a_store_that_knows_less_of_a_route_closes_it_no_longer_than_it_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = format!("sqlite:{}", folder.path().join("store.db").display());
        let store = bench_store::sqlite::open(&url).await.expect("a store");
        let routes = Routes::new(false);
        let route = routes.route(&key("openai"));
        let host: Arc<dyn RouteHost> = Arc::new(Looking(Arc::clone(&store), Arc::clone(&routes)));
        let outage = bench_proto::outage::Outage { opening: 3, from_us: 1, failed_probes: 1, ..Default::default() };
        let heard = OutageRow { route: route.key.to_text(), outage, ..OutageRow::default() };
        route.hear(&routes, &heard);
        assert!(route.send().is_none(), "closed");

        looks(&host).await;
        assert_eq!(lock(&route.state).known(), (0, false), "the store has never heard of it");
        assert!(route.send().is_some() && !route.ever_worked(), "calls go on, and nothing has come through");

        // the store was set back into an earlier outage: that one holds, and its end is heard
        route.hear(&routes, &heard);
        let tell = |event| store.outage("cluster", &heard.route, event, "503");
        assert!(tell(OutageEvent::Suspect { known: 0 }).await.expect("opens").0);
        looks(&host).await;
        assert_eq!(lock(&route.state).known(), (1, true));
        assert!(tell(OutageEvent::ProbeSucceeded { opening: 1 }).await.expect("ends").0);
        looks(&host).await;
        assert_eq!(lock(&route.state).known(), (1, false));
        assert!(route.send().is_some());
    }

    /// Finds this, or panics, and counts how often it was asked.
    struct Fixed(Option<Probed>, AtomicUsize);

    impl Fixed {
        fn on_route(route: &Route, probed: Option<Probed>) -> Arc<Self> {
            let prober = Arc::new(Self(probed, AtomicUsize::new(0)));
            let weak: Weak<Self> = Arc::downgrade(&prober);
            route.can_be_probed_by(weak);
            prober
        }

        fn asked(&self) -> usize {
            self.1.load(Ordering::Relaxed)
        }
    }

    #[async_trait]
    impl Prober for Fixed {
        async fn probe(&self) -> Probed {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.clone().expect("a prober that panics")
        }

        fn within(&self) -> Duration {
            Duration::from_secs(1)
        }
    }

    #[tokio::test]
    async fn p39_the_runs_of_a_route_probe_it_for_each_other() {
        let route = Routes::new(false).route(&key("openai"));
        assert!(Asking::begin(&route).is_none(), "nobody can");
        let through = Fixed::on_route(&route, Some(Probed::Through));
        let no_money = Fixed::on_route(&route, Some(Probed::NotMade));
        let asking = Asking::begin(&route).expect("somebody can");
        assert!(Asking::begin(&route).is_none(), "one at a time");
        assert_eq!(asking.probe().await, Probed::Through, "another run has room in its budget");
        assert_eq!((through.asked(), no_money.asked()), (1, 1), "the latest is asked first");
        drop(asking);
        let latest = Fixed::on_route(&route, Some(Probed::Failed(Failure::transient("http_503", "503"))));
        let asking = Asking::begin(&route).expect("the last probe has ended");
        assert!(matches!(asking.probe().await, Probed::Failed(_)));
        assert_eq!((through.asked(), latest.asked()), (1, 1), "one request finds out");
        drop((asking, latest, through));
        let asking = Asking::begin(&route).expect("one run goes on");
        assert_eq!(asking.probe().await, Probed::NotMade);
        drop((asking, no_money));
        assert!(Asking::begin(&route).is_none(), "runs that have ended probe no more");
    }

    #[tokio::test]
    async fn p39_a_probe_that_panics_has_found_out_nothing_and_another_is_made() {
        let route = Routes::new(false).route(&key("openai"));
        let through = Fixed::on_route(&route, Some(Probed::Through));
        let panics = Fixed::on_route(&route, None);
        let asking = Asking::begin(&route).expect("somebody can");
        assert_eq!(asking.probe().await, Probed::Through);
        drop(through);
        assert_eq!(asking.probe().await, Probed::NotMade);
        assert_eq!(panics.asked(), 2);
        drop(asking);
        assert!(!lock(&route.state).asking, "the next probe can be made");
    }

    #[test]
    fn p40_a_worker_without_a_way_to_one_provider_serves_the_runs_of_another() {
        let needs = |account: &str| BTreeMap::from([(Role::Question, vec![vec![key(account)]])]);
        let (openai, anthropic) = (needs("openai"), needs("anthropic"));
        let idle = |withdrawn: &[&str], runs: &[&BTreeMap<Role, Vec<Vec<RouteKey>>>]| {
            idle_roles(runs.iter().copied(), &withdrawn.iter().map(|account| key(account)).collect())
        };
        let question = BTreeSet::from([Role::Question]);
        assert_eq!(idle(&["openai"], &[&openai]), question);
        assert_eq!(idle(&["openai"], &[&openai, &anthropic]), BTreeSet::new());
        assert_eq!(idle(&["openai", "anthropic"], &[&openai, &anthropic]), question);
        assert_eq!(idle(&[], &[&openai]), BTreeSet::new());
        assert_eq!(idle(&["openai"], &[]), BTreeSet::new(), "it has no run at hand to judge by");
    }

    #[test]
    fn p39_outages_of_what_a_process_has_started_are_its_own() {
        let routes = Routes::new(false);
        let system = RouteKey::Memory {
            operation: bench_proto::outage::Operation::Recall,
            place: "/home/systems/run/mine".to_owned(),
            system: "mine".to_owned(),
        };
        let route = routes.own_route(&system);
        assert_eq!(route.own_outage(), None);
        let (opened, row) = route.take_own(OutageEvent::Suspect { known: 0 }, "it answers 503").expect("its own");
        assert!(opened && row.outage.is_open() && row.reason == "it answers 503");
        route.hear(&routes, &newest(&route, &[]).expect("its own"));
        assert!(route.own_outage().is_some() && route.send().is_none(), "closed");
        assert_eq!(routes.evidence().routes, [], "nobody else hears of it");
        assert!(routes.route(&key("openai")).take_own(OutageEvent::ProbeNow, "").is_none());
        drop(route);
        let _another = routes.route(&key("anthropic"));
        assert_eq!(routes.all().len(), 2, "it has ended with its run");
    }
}
