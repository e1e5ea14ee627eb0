//! The scaling signal (P15): one number per pool and role. Queue length is never the signal, because the window bounds it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bench_models::prices::limit_group;
use bench_proto::{
    CLUSTER_DOMAIN,
    ids::{Role, RunNo},
    session::SessionInfo,
    spec::{ModelSpec, RunSpec},
};
use bench_store::{OpenByRole, RunRow, Store, StoreError};
use percent_encoding::percent_decode_str;

/// Slots of a worker when none is alive to ask.
const SLOTS_PER_WORKER: f64 = 64.0;
/// Next tasks of a run and role that are counted: more than any pool has slots.
pub(crate) const COUNTED: u32 = 100_000;
/// Head room over what the allowance needs.
const HEAD_ROOM: f64 = 1.2;
/// Calls of a run that its mean call time is taken from.
const CALLS_AVERAGED: u32 = 200;
/// How long the store is waited for by whom a number of before can be told: autoscalers wait about three seconds.
const PATIENCE: Duration = Duration::from_secs(2);
/// Numbers that are remembered: more than there are pools, whatever is asked for.
const REMEMBERED: usize = 1_000;

/// How many workers of a pool and role would be of use, and what that was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    /// Workers that could be kept busy.
    pub desired: u64,
    /// Workers that are there.
    pub live: usize,
    /// Running runs of the pool.
    pub runs: usize,
}

/// Tells the number, from the store. While that is away it is the number of before: those who would be ended hold what was paid for.
pub(crate) struct Scaling {
    store: Arc<dyn Store>,
    /// Requests per minute of each model of an account, by the names of accounts that have a limit.
    allowed: BTreeMap<String, u64>,
    told: Mutex<HashMap<(String, Role), Scale>>,
}

impl Scaling {
    /// The numbers of a store's runs, under the limits of these accounts.
    pub(crate) fn new(store: Arc<dyn Store>, allowed: BTreeMap<String, u64>) -> Self {
        Self { store, allowed, told: Mutex::default() }
    }

    fn told(&self) -> MutexGuard<'_, HashMap<(String, Role), Scale>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many workers of a pool and role would be of use.
    ///
    /// # Errors
    /// What the store meets; while it is away only when no number was told before.
    pub(crate) async fn scale_of_role(self: &Arc<Self>, pool: &str, role: Role) -> Result<Scale, StoreError> {
        let before = self.told().get(&(pool.to_owned(), role)).copied();
        let (scaling, pool) = (Arc::clone(self), pool.to_owned());
        // a look that takes too long goes on, and whoever asks next is told what it found
        let looking = tokio::spawn(async move { scaling.look(pool, role).await });
        let looked = match before {
            None => looking.await,
            Some(before) => match tokio::time::timeout(PATIENCE, looking).await {
                Ok(looked) => looked,
                Err(_) => return Ok(before),
            },
        };
        match (looked, before) {
            (Ok(Err(error)), Some(before)) if error.is_transient() => Ok(before),
            (Ok(looked), _) => looked,
            (Err(ended), _) => Err(StoreError::Unavailable(format!("the look at the store ended: {ended}").into())),
        }
    }

    async fn look(&self, pool: String, role: Role) -> Result<Scale, StoreError> {
        let scale = self.read(&pool, role).await?;
        let mut told = self.told();
        let key = (pool, role);
        if told.len() < REMEMBERED || told.contains_key(&key) {
            told.insert(key, scale);
        }
        Ok(scale)
    }

    async fn read(&self, pool: &str, role: Role) -> Result<Scale, StoreError> {
        let running: Vec<RunNo> =
            self.store.running_runs(CLUSTER_DOMAIN).await?.into_iter().map(|(run, _)| run).collect();
        let mut open = self.store.open_tasks_of(&running, COUNTED).await?;
        let mut loads = Vec::new();
        for run in running {
            let row = match self.store.run(run).await {
                // the dispatcher names it
                Err(error) if error.is_about_rows() => continue,
                row => row?,
            };
            if row.spec.limits.pool == pool && (role != Role::Judge || !row.spec.judges.is_empty()) {
                loads.push(self.load(&row, role, open.remove(&run).unwrap_or_default()).await?);
            }
        }
        let workers = self.store.open_sessions(CLUSTER_DOMAIN).await?;
        let slots: Vec<u32> = workers
            .iter()
            .map(|worker| SessionInfo::from_json(&worker.info_json).slots_of(pool, role))
            .filter(|slots| *slots > 0)
            .collect();
        let mean = (!slots.is_empty()).then(|| f64::from(slots.iter().sum::<u32>()) / slots.len() as f64);
        Ok(Scale { desired: desired_workers(role, &loads, mean), live: slots.len(), runs: loads.len() })
    }

    async fn load(&self, row: &RunRow, role: Role, open: OpenByRole) -> Result<RunLoad, StoreError> {
        let calls_per_second = calls_per_second(role, &row.spec, &self.allowed);
        let call_seconds = match calls_per_second {
            Some(_) => self.store.mean_call_us(row.run_no, CALLS_AVERAGED).await?.map(|us| us / 1e6),
            None => None,
        };
        let limits = &row.spec.limits;
        Ok(RunLoad {
            open,
            questions: limits.questions_at_once(),
            segments: limits.segments_at_once(),
            calls_per_second,
            call_seconds,
        })
    }
}

/// The pool and role of an address such as `/api/scale/team%20a/judge`; `None` for any other.
#[must_use]
pub(crate) fn asked_for(path: &str) -> Option<(String, Role)> {
    let (pool, role) = path.trim_matches('/').strip_prefix("api/scale/")?.split_once('/')?;
    let role = Role::ALL.into_iter().find(|known| known.name() == role)?;
    Some((percent_decode_str(pool).decode_utf8().ok()?.into_owned(), role))
}

/// Calls per second that the models of a role allow a run. `None` when one of them has no limit that is known, and where no model is
/// called. As workers hold it, each model has a limit of its own, and the run's comes before that of the account.
fn calls_per_second(role: Role, spec: &RunSpec, allowed: &BTreeMap<String, u64>) -> Option<f64> {
    let models: &[ModelSpec] = match role {
        Role::Retain => &[],
        Role::Question => std::slice::from_ref(&spec.answerer),
        Role::Judge => &spec.judges,
    };
    let mut limits: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for model in models.iter().filter(|model| model.is_remote()) {
        let limit = spec.limits.max_rpm.or_else(|| allowed.get(&model.account).copied())?;
        limits.insert((model.account.as_str(), limit_group(&model.name)), limit);
    }
    (!limits.is_empty()).then(|| limits.values().map(|rpm| *rpm as f64 / 60.0).sum())
}

/// What the number is made of, for one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RunLoad {
    /// The run's open tasks.
    pub open: OpenByRole,
    /// The run's questions in flight at most.
    pub questions: Option<u32>,
    /// The run's segments in flight at most.
    pub segments: Option<u32>,
    /// Calls per second that its models of the role allow, when a limit is known.
    pub calls_per_second: Option<f64>,
    /// Mean seconds of a call, when some were made.
    pub call_seconds: Option<f64>,
}

/// Workers that a pool and role can keep busy: ceil(min(runnable + leased, limits of the runs) / slots of a worker). 0 only
/// when no run is open.
#[must_use]
pub(crate) fn desired_workers(role: Role, runs: &[RunLoad], slots_per_worker: Option<f64>) -> u64 {
    if runs.is_empty() {
        return 0;
    }
    let busy: f64 = runs.iter().map(|run| useful_slots(role, run)).sum();
    let slots = slots_per_worker.filter(|slots| *slots >= 1.0).unwrap_or(SLOTS_PER_WORKER);
    // an open run may get work of any role at any moment: one worker is there to take it
    ((busy / slots).ceil() as u64).max(1)
}

fn useful_slots(role: Role, run: &RunLoad) -> f64 {
    let tasks = run.open.get(&role).copied().unwrap_or_default();
    let mut useful = (tasks.unpublished + tasks.queued + tasks.leased) as f64;
    let limit = match role {
        Role::Retain => run.segments,
        Role::Question => run.questions,
        Role::Judge => None,
    };
    if let Some(limit) = limit {
        useful = useful.min(f64::from(limit));
    }
    if role != Role::Retain
        && let (Some(rate), Some(seconds)) = (run.calls_per_second, run.call_seconds)
    {
        // Little's law: so many calls are in flight when the allowance is used up
        useful = useful.min((rate * seconds * HEAD_ROOM).max(1.0));
    }
    useful
}

#[cfg(test)]
mod tests {
    use bench_store::{NewRun, OpenTasks, conformance};

    use super::*;

    fn load(unpublished: i64, leased: i64) -> RunLoad {
        let tasks = OpenTasks { unpublished, leased, ..OpenTasks::default() };
        RunLoad { open: OpenByRole::from([(Role::Question, tasks)]), ..RunLoad::default() }
    }

    #[test]
    fn p15_the_number_over_a_simulated_run() {
        let desired = |runs: &[RunLoad]| desired_workers(Role::Question, runs, Some(16.0));
        assert_eq!(desired(&[]), 0, "no run is open");
        assert_eq!(desired(&[load(0, 0)]), 1, "a run that is being planned finds a worker");
        assert_eq!(desired(&[load(1900, 86)]), 125);
        assert_eq!(desired(&[load(10, 20)]), 2);
        assert_eq!(desired(&[load(0, 3)]), 1);
        let delayed = OpenTasks { delayed: 500, ..OpenTasks::default() };
        let parked = RunLoad { open: OpenByRole::from([(Role::Question, delayed)]), ..RunLoad::default() };
        assert_eq!(desired(&[parked]), 1, "parked tasks need nobody");
        assert_eq!(desired(&[load(100, 0), load(60, 0)]), 10, "runs add up");
    }

    #[test]
    fn p15_limits_of_the_run_bound_the_number() {
        let desired = |run: RunLoad| desired_workers(Role::Question, &[run], Some(16.0));
        assert_eq!(desired(RunLoad { questions: Some(32), ..load(1900, 86) }), 2);
        // 50 calls a second of 2 s each keep 100 slots busy, 120 with head room
        let limited = RunLoad { calls_per_second: Some(50.0), call_seconds: Some(2.0), ..load(1900, 86) };
        assert_eq!(desired(limited), 8);
        assert_eq!(desired_workers(Role::Question, &[load(640, 0)], None), 10, "64 slots when nobody can be asked");
    }

    #[test]
    fn p15_the_allowance_of_accounts_bounds_what_has_no_limit_of_its_own() {
        let model = |name: &str, account: &str| ModelSpec {
            provider: "openai".to_owned(),
            name: name.to_owned(),
            account: account.to_owned(),
            ..conformance::spec().answerer
        };
        let allowed = BTreeMap::from([("openai".to_owned(), 600), ("eu".to_owned(), 60)]);
        let mut spec = conformance::spec();
        assert_eq!(calls_per_second(Role::Question, &spec, &allowed), None, "it calls nobody");
        spec.answerer = model("gpt-4o-mini", "openai");
        spec.judges = vec![model("gpt-4o", "eu"), model("gpt-4o", "eu"), model("gpt-4o-mini", "eu")];
        let of = |role, spec: &RunSpec| calls_per_second(role, spec, &allowed);
        assert_eq!(
            [Role::Retain, Role::Question, Role::Judge].map(|role| of(role, &spec)),
            [None, Some(10.0), Some(2.0)]
        );
        spec.limits.max_rpm = Some(120);
        assert_eq!(of(Role::Question, &spec), Some(2.0), "the run's own comes first");
        spec.limits.max_rpm = None;
        spec.judges.push(model("gpt-4o", "unknown"));
        assert_eq!(of(Role::Judge, &spec), None, "one of them is not bounded");
        // 10 calls a second of 2 s each keep 20 slots busy, 24 with head room
        let limited =
            RunLoad { calls_per_second: of(Role::Question, &spec), call_seconds: Some(2.0), ..load(1900, 86) };
        assert_eq!(desired_workers(Role::Question, &[limited], Some(16.0)), 2);
    }

    #[test]
    fn pools_are_asked_for_as_urls_write_them() {
        let pool = |path: &str| asked_for(path).map(|(pool, _)| pool);
        assert_eq!(asked_for("/api/scale/default/judge"), Some(("default".to_owned(), Role::Judge)));
        assert_eq!(pool("/api/scale/team%20a/question").as_deref(), Some("team a"));
        assert_eq!(pool("/api/scale/gr%C3%B6%C3%9Fe/question/").as_deref(), Some("größe"));
        assert_eq!(pool("/api/scale/a%2Fb+c/question").as_deref(), Some("a/b+c"));
        for nowhere in [
            "/api/scale/default",
            "/api/scale/default/answer",
            "/api/scale/a/b/judge",
            "/api/scale/%FF/judge",
            "/api/about",
        ] {
            assert_eq!(pool(nowhere), None, "{nowhere}");
        }
    }

    #[tokio::test]
    async fn p15_while_the_store_is_away_the_number_is_that_of_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let scaling = Arc::new(Scaling::new(Arc::clone(&store), BTreeMap::new()));
        let of = |pool: &'static str| {
            let scaling = Arc::clone(&scaling);
            async move { scaling.scale_of_role(pool, Role::Question).await }
        };
        assert_eq!(of("größe").await.expect("is read").desired, 0, "no run is open");
        let mut new = NewRun { domain: CLUSTER_DOMAIN.to_owned(), ..conformance::new_run("r") };
        new.spec.limits.pool = "größe".to_owned();
        store.create_run(&new).await.expect("is created");
        let told = of("größe").await.expect("is read");
        assert_eq!(told, Scale { desired: 1, live: 0, runs: 1 });
        store.close().await;
        assert_eq!(of("größe").await.expect("is remembered"), told);
        let error = of("others").await.expect_err("nobody has asked for it before");
        assert!(error.is_transient(), "{error}");
    }
}
