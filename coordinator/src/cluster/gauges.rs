//! The cluster as gauges: read from the store and the broker when somebody looks, by the coordinator that leads.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use bench_proto::{
    CLUSTER_DOMAIN,
    ids::{Role, RunNo},
    money::PicoUsd,
    outage::{RouteKey, RouteKind},
    session::SessionInfo,
    task::QueueName,
};
use bench_queue::Queue;
use bench_store::{OpenByRole, OutageRow, RunFilter, RunRow, RunState, Store};
use bench_telemetry::metrics::{Gauge, Series, catalogue};
use tokio::sync::Mutex;
use tracing::debug;

use super::{leader::Lead, scale::COUNTED};
use crate::{
    dispatch::window::{Slots, window},
    exit::CliError,
    standing::{
        progress::ProgressMeter,
        waiting::{has_open, waits_for},
    },
};

/// Two looks at the cluster that are closer together than this show the same gauges.
const FRESH: Duration = Duration::from_millis(500);
/// Longest wait for the broker.
const PATIENCE: Duration = Duration::from_secs(2);
/// Open runs that are shown.
const RUNS: u32 = 100;

/// Reads the gauges of a cluster.
pub(crate) struct ClusterGauges {
    store: Arc<dyn Store>,
    queue: Arc<dyn Queue>,
    /// Whether this coordinator leads: the others show nothing of the cluster, so that sums are right.
    lead: Lead,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    looked: Option<Instant>,
    meters: HashMap<i64, ProgressMeter>,
    /// What a run had done when it last moved, and when that was seen.
    moved: HashMap<i64, (i64, Instant)>,
}

/// Everything that one look found, by metric.
#[derive(Default)]
struct Found(BTreeMap<&'static str, (&'static Gauge, Vec<Series>)>);

impl Found {
    fn put(&mut self, gauge: &'static Gauge, labels: &[&str], value: f64) {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        self.0.entry(gauge.name()).or_insert_with(|| (gauge, Vec::new())).1.push((labels, value));
    }
}

/// Gauges that a coordinator without the lead shows nothing of.
const OF_CLUSTER: &[&Gauge] = &[
    &catalogue::TASKS,
    &catalogue::OLDEST_TASK_SECONDS,
    &catalogue::QUEUE_DEPTH,
    &catalogue::QUEUE_CONSUMERS,
    &catalogue::WINDOW,
    &catalogue::WORKERS,
    &catalogue::DEAD_LETTERS,
    &catalogue::PROVIDER_AWAY_SECONDS,
    &catalogue::WORKERS_WITHDRAWN,
    &catalogue::SYSTEM_AWAY_SECONDS,
    &catalogue::SYSTEM_WITHDRAWN,
    &catalogue::RUN_QUESTIONS,
    &catalogue::RUN_PROGRESS,
    &catalogue::RUN_ETA_SECONDS,
    &catalogue::RUN_STILL_SECONDS,
    &catalogue::RUN_COST_USD,
    &catalogue::RUN_INFO,
];

impl ClusterGauges {
    /// Gauges of a store and a broker, shown while the lead is held.
    pub(crate) fn new(store: Arc<dyn Store>, queue: Arc<dyn Queue>, lead: Lead) -> Self {
        Self { store, queue, lead, seen: Mutex::default() }
    }

    /// Brings the gauges up to date; what cannot be read is no longer shown. Returns the pools that it has seen, when it has looked.
    pub(crate) async fn refresh(&self) -> Option<BTreeSet<String>> {
        let leading = self.lead.is_held(Instant::now());
        catalogue::LEADING.set(f64::from(u8::from(leading)));
        let mut seen = self.seen.lock().await;
        if seen.looked.is_some_and(|looked| looked.elapsed() < FRESH) {
            return None;
        }
        seen.looked = Some(Instant::now());
        let mut found = Found::default();
        if leading && let Err(error) = self.look(&mut seen, &mut found).await {
            debug!("some gauges could not be read: {}", error.message);
        }
        let seen = found.0.get(catalogue::WINDOW.name()).into_iter().flat_map(|(_, series)| series);
        let pools = seen.filter_map(|(labels, _)| labels.first().cloned()).collect();
        for gauge in OF_CLUSTER {
            let series = found.0.remove(gauge.name()).map(|(_, series)| series);
            gauge.set_all(series.unwrap_or_default());
        }
        Some(pools)
    }

    async fn look(&self, seen: &mut Seen, found: &mut Found) -> Result<(), CliError> {
        let filter = RunFilter { controls: true, open: true, limit: Some(RUNS), ..RunFilter::default() };
        let mut runs = self.store.list_runs(&filter).await?;
        runs.retain(|run| run.domain == CLUSTER_DOMAIN);
        let open_runs: BTreeSet<i64> = runs.iter().map(|run| run.run_no.0).collect();
        seen.meters.retain(|run, _| open_runs.contains(run));
        seen.moved.retain(|run, _| open_runs.contains(run));
        let running: Vec<_> = runs.iter().filter(|run| run.state == RunState::Running).map(|run| run.run_no).collect();
        let open = self.store.open_tasks_of(&running, COUNTED).await?;
        let is_at_work = |run: RunNo| open.get(&run).is_some_and(has_open);
        for run in &runs {
            look_at_run(seen, found, run);
            let waits = open.get(&run.run_no).is_some_and(|open| !waits_for(run, open, &runs, is_at_work).is_empty());
            look_at_moves(seen, found, run, waits);
        }
        self.look_at_caps(found, &runs).await?;
        look_at_outages(found, &self.store.outages(CLUSTER_DOMAIN).await?);
        let slots = self.look_at_workers(found).await?;
        let mut by_pool: BTreeMap<&str, Vec<&OpenByRole>> = BTreeMap::new();
        for run in &runs {
            if let Some(of_run) = open.get(&run.run_no) {
                by_pool.entry(&run.spec.limits.pool).or_default().push(of_run);
            }
        }
        for (pool, of_runs) in &by_pool {
            look_at_tasks(found, pool, of_runs);
        }
        for (run, role, ms) in self.store.oldest_ready(&running).await? {
            if let Some(row) = runs.iter().find(|row| row.run_no == run) {
                found.put(&catalogue::OLDEST_TASK_SECONDS, &[&row.spec.limits.pool, role.name()], ms as f64 / 1e3);
            }
        }
        keep_largest(found, &catalogue::OLDEST_TASK_SECONDS);
        let pools: BTreeSet<&str> = by_pool.keys().copied().chain(slots.keys().map(String::as_str)).collect();
        for pool in &pools {
            for role in Role::ALL {
                let of_role = slots.get(*pool).and_then(|slots| slots.get(&role)).copied().unwrap_or(0);
                found.put(&catalogue::WINDOW, &[pool, role.name()], window(of_role) as f64);
            }
        }
        let looking = tokio::time::timeout(PATIENCE, self.look_at_broker(&pools, found));
        if looking.await.is_err() {
            debug!("the broker does not answer");
        }
        Ok(())
    }

    /// What is spent under the cap of each run: by its group where it is in one, runs that have ended included (P41).
    async fn look_at_caps(&self, found: &mut Found, runs: &[RunRow]) -> Result<(), CliError> {
        let mut of_groups: BTreeMap<i64, PicoUsd> = BTreeMap::new();
        for run in runs.iter().filter(|run| run.spec.limits.max_cost.is_some()) {
            let group_no = run.group.as_ref().map(|group| group.group_no);
            let spent = match group_no.and_then(|group_no| of_groups.get(&group_no)) {
                Some(spent) => *spent,
                None if group_no.is_none() => run.counters.spent,
                None => self.store.group(run.run_no).await?.map_or(run.counters.spent, |group| group.spent),
            };
            of_groups.extend(group_no.map(|group_no| (group_no, spent)));
            found.put(&catalogue::RUN_COST_USD, &[&run.run_id.0, "under_cap"], spent.usd());
        }
        Ok(())
    }

    async fn look_at_workers(&self, found: &mut Found) -> Result<BTreeMap<String, Slots>, CliError> {
        let mut slots: BTreeMap<String, Slots> = BTreeMap::new();
        let mut counts: BTreeMap<(String, &str), u32> = BTreeMap::new();
        let mut gone: BTreeMap<RouteKey, u32> = BTreeMap::new();
        for session in self.store.open_sessions(CLUSTER_DOMAIN).await? {
            let info = SessionInfo::from_json(&session.info_json);
            // a meter is no worker, and its pool has no queues
            if !info.takes_tasks() {
                continue;
            }
            for state in ["alive", "silent"] {
                counts.entry((info.pool.clone(), state)).or_default();
            }
            let state = if session.is_alive() { "alive" } else { "silent" };
            *counts.entry((info.pool.clone(), state)).or_default() += 1;
            let withdrawn = session.evidence.routes.iter().filter(|told| told.withdrawn.is_some());
            let keys: BTreeSet<RouteKey> =
                withdrawn.filter_map(|told| RouteKey::from_text(&told.route)).map(as_shown).collect();
            for key in keys {
                *gone.entry(key).or_default() += 1;
            }
            let of_pool = slots.entry(info.pool).or_default();
            for (role, count) in info.slots {
                *of_pool.entry(role).or_default() += count;
            }
        }
        for ((pool, state), count) in counts {
            found.put(&catalogue::WORKERS, &[&pool, state], f64::from(count));
        }
        for (key, count) in gone {
            let count = f64::from(count);
            match &key {
                RouteKey::Model { account, model, .. } => {
                    found.put(&catalogue::WORKERS_WITHDRAWN, &[account, model], count);
                }
                RouteKey::Memory { system, operation, .. } => {
                    found.put(&catalogue::SYSTEM_WITHDRAWN, &[system, operation.name()], count);
                }
            }
        }
        Ok(slots)
    }

    async fn look_at_broker(&self, pools: &BTreeSet<&str>, found: &mut Found) {
        for pool in pools {
            for role in Role::ALL {
                if let Ok(depth) = self.queue.depth(&QueueName::new(*pool, role)).await {
                    found.put(&catalogue::QUEUE_DEPTH, &[pool, role.name()], depth.ready as f64);
                    found.put(&catalogue::QUEUE_CONSUMERS, &[pool, role.name()], depth.consumers as f64);
                }
            }
        }
        if let Ok(count) = self.queue.dead_letter_count().await {
            found.put(&catalogue::DEAD_LETTERS, &[], count as f64);
        }
    }
}

/// For how long routes have been away.
fn look_at_outages(found: &mut Found, rows: &[OutageRow]) {
    for row in rows.iter().filter(|row| row.outage.is_open()) {
        let away = (row.now_us - row.outage.from_us) as f64 / 1e6;
        match RouteKey::from_text(&row.route) {
            Some(RouteKey::Model { account, model, .. }) => {
                found.put(&catalogue::PROVIDER_AWAY_SECONDS, &[&account, &model], away);
            }
            Some(RouteKey::Memory { system, operation, .. }) => {
                found.put(&catalogue::SYSTEM_AWAY_SECONDS, &[&system, operation.name()], away);
            }
            None => {}
        }
    }
    keep_largest(found, &catalogue::PROVIDER_AWAY_SECONDS);
    keep_largest(found, &catalogue::SYSTEM_AWAY_SECONDS);
}

/// A route as the labels of gauges tell it: the places of a memory system are one, and so are what a model answers and embeds.
fn as_shown(key: RouteKey) -> RouteKey {
    match key {
        RouteKey::Model { account, model, .. } => RouteKey::Model { kind: RouteKind::Chat, account, model },
        RouteKey::Memory { operation, system, .. } => RouteKey::Memory { operation, place: String::new(), system },
    }
}

fn look_at_run(seen: &mut Seen, found: &mut Found, run: &RunRow) {
    let id = run.run_id.0.as_str();
    let counters = &run.counters;
    let sample = i64::try_from(run.sample_size()).unwrap_or(i64::MAX);
    for (state, count) in [
        ("sample", sample),
        ("scored", counters.scored),
        ("abstained", counters.abstained),
        ("infra_error", counters.infra_error),
        ("open", sample - counters.ended()),
    ] {
        found.put(&catalogue::RUN_QUESTIONS, &[id, state], count.max(0) as f64);
    }
    let progress = if sample > 0 { counters.ended() as f64 / sample as f64 } else { 1.0 };
    found.put(&catalogue::RUN_PROGRESS, &[id], progress.clamp(0.0, 1.0));
    let snapshot = seen.meters.entry(run.run_no.0).or_default().look(run);
    if let Some(eta) = snapshot.eta_seconds.filter(|eta| eta.is_finite()) {
        found.put(&catalogue::RUN_ETA_SECONDS, &[id], eta);
    }
    for (kind, usd) in [
        ("spent", Some(counters.spent)),
        ("reserved", Some(counters.reserved)),
        ("uncertain", Some(counters.uncertain)),
        ("cap", run.spec.limits.max_cost),
    ] {
        if let Some(usd) = usd {
            found.put(&catalogue::RUN_COST_USD, &[id, kind], usd.usd());
        }
    }
    let spec = &run.spec;
    let labels = [id, &spec.dataset.name, &spec.system.name, &spec.answerer.display(), run.state.name()];
    found.put(&catalogue::RUN_INFO, &labels, 1.0);
}

/// How long nothing of a run has moved: nothing of one that is held, or that waits for others at its end.
fn look_at_moves(seen: &mut Seen, found: &mut Found, run: &RunRow, waits: bool) {
    if run.state != RunState::Running || waits {
        seen.moved.remove(&run.run_no.0);
        return;
    }
    let counters = &run.counters;
    let done = counters.ended() + counters.answered + counters.entries_retained + counters.banks_ready;
    let (before, since) = seen.moved.entry(run.run_no.0).or_insert((done, Instant::now()));
    if *before != done {
        (*before, *since) = (done, Instant::now());
    }
    found.put(&catalogue::RUN_STILL_SECONDS, &[run.run_id.0.as_str()], since.elapsed().as_secs_f64());
}

fn look_at_tasks(found: &mut Found, pool: &str, of_runs: &[&OpenByRole]) {
    for role in Role::ALL {
        let of_role = || of_runs.iter().filter_map(|open| open.get(&role));
        for (state, count) in [
            ("unpublished", of_role().map(|tasks| tasks.unpublished).sum::<i64>()),
            ("queued", of_role().map(|tasks| tasks.queued).sum()),
            ("delayed", of_role().map(|tasks| tasks.delayed).sum()),
            ("leased", of_role().map(|tasks| tasks.leased).sum()),
        ] {
            found.put(&catalogue::TASKS, &[pool, role.name(), state], count as f64);
        }
    }
}

/// One series for each set of labels: the largest.
fn keep_largest(found: &mut Found, gauge: &'static Gauge) {
    let Some((_, series)) = found.0.get_mut(gauge.name()) else { return };
    let mut largest: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    for (labels, value) in series.drain(..) {
        let entry = largest.entry(labels).or_insert(value);
        *entry = entry.max(value);
    }
    series.extend(largest);
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        call::CallOutcome,
        ids::TaskKey,
        outage::{Operation, Outage},
    };
    use bench_queue::memory::MemoryQueue;
    use bench_store::{NewGroup, NewRun, conformance};

    use super::*;

    #[tokio::test]
    async fn a_process_that_meters_alone_is_no_worker_and_its_pool_has_no_queues() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        for (worker, pool, slots) in
            [("w-1", "default", BTreeMap::from([(Role::Question, 4)])), ("meter-1", "meter", BTreeMap::new())]
        {
            let info = SessionInfo::of_this_process("1.0.0", pool, slots, "here").to_json();
            store.open_session(worker, CLUSTER_DOMAIN, &info).await.expect("is opened");
        }
        let gauges = ClusterGauges::new(store, Arc::new(MemoryQueue::default()), Lead::default());
        let mut found = Found::default();
        gauges.look(&mut Seen::default(), &mut found).await.expect("is read");
        for (_, series) in found.0.values() {
            assert!(series.iter().all(|(labels, _)| !labels.iter().any(|label| label == "meter")), "{series:?}");
        }
        let (_, workers) = &found.0[catalogue::WORKERS.name()];
        let alive = |labels: &[String]| labels == ["default", "alive"];
        assert!(workers.iter().any(|(labels, count)| alive(labels) && *count == 1.0), "{workers:?}");
    }

    #[tokio::test]
    async fn what_all_runs_of_a_group_have_spent_stands_beside_its_cap() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let dollars = |text: &str| PicoUsd::parse(text).expect("an amount");
        for (id, group, spent) in [("g-r1", Some("g"), "6"), ("g-r2", Some("g"), "3"), ("alone", None, "2")] {
            let group = group.map(|id| NewGroup { id: id.to_owned(), cap: Some(dollars("10")) });
            let mut new = NewRun { domain: CLUSTER_DOMAIN.to_owned(), group, ..conformance::new_run(id) };
            new.spec.limits.max_cost = Some(dollars("10"));
            let run = store.create_run(&new).await.expect("is created");
            let call = conformance::call(id, CallOutcome::Accepted, dollars(spent).0);
            store.put_calls(run, TaskKey::question(0, 0), &[call]).await.expect("is booked");
            if id == "g-r1" {
                let ended = store.set_run_state(run, &[RunState::Running], RunState::Finished, None).await;
                assert!(ended.expect("is written"), "it is not open any more");
            }
        }
        let gauges = ClusterGauges::new(store, Arc::new(MemoryQueue::default()), Lead::default());
        let mut found = Found::default();
        gauges.look(&mut Seen::default(), &mut found).await.expect("is read");
        let of_kind = |kind: &str| -> BTreeMap<String, f64> {
            let (_, series) = &found.0[catalogue::RUN_COST_USD.name()];
            let of_kind = series.iter().filter(|(labels, _)| labels[1] == kind);
            of_kind.map(|(labels, usd)| (labels[0].clone(), *usd)).collect()
        };
        let told = |of_alone, of_g_r2| BTreeMap::from([("alone".to_owned(), of_alone), ("g-r2".to_owned(), of_g_r2)]);
        assert_eq!(of_kind("spent"), told(2.0, 3.0));
        assert_eq!(of_kind("cap"), told(10.0, 10.0));
        assert_eq!(of_kind("under_cap"), told(2.0, 9.0));
    }

    #[test]
    fn places_of_one_memory_system_are_one_series() {
        let route =
            |place: &str| RouteKey::Memory { operation: Operation::Recall, place: place.into(), system: "mem0".into() };
        let row = |place, from_us| OutageRow {
            route: route(place).to_text(),
            outage: Outage { opening: 1, from_us, ..Outage::default() },
            now_us: 100_000_000,
            ..OutageRow::default()
        };
        let mut found = Found::default();
        look_at_outages(&mut found, &[row("http://a", 10_000_000), row("http://b", 70_000_000)]);
        let (_, series) = &found.0[catalogue::SYSTEM_AWAY_SECONDS.name()];
        assert_eq!(series, &[(vec!["mem0".to_owned(), "recall".to_owned()], 90.0)], "the longest");
        assert_eq!(as_shown(route("http://a")), as_shown(route("http://b")), "who withdrew from both counts once");
    }
}
