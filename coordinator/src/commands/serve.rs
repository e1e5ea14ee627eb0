//! `serve`: the long-running coordinator. Dispatches and supervises while it leads, answers health and scaling questions
//! always.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bench_proto::{
    CLUSTER_DOMAIN,
    ids::{Role, RunNo},
    session::SessionInfo,
};
use bench_queue::Queue;
use bench_store::{Right, RunRow, Store};
use bench_telemetry::{
    http::{BearerToken, Pages, listen},
    metrics::catalogue,
    otlp::Refresh,
};
use bench_worker::traces::{Keeper, ProcessTelemetry};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    app::{App, Deployment},
    cli::ServeArgs,
    cluster::{
        gauges::ClusterGauges,
        leader::Candidate,
        scale::{COUNTED, RunLoad, desired_workers},
        supervisor::Supervisor,
    },
    dispatch::{Dispatcher, OUTAGE_TIMEOUT, Scope, WakeUps, past::Past, trouble::Trouble},
    exit::{CliError, CliResult, Exit},
    out,
};

/// Calls of a run that its mean call time is taken from.
const CALLS_AVERAGED: u32 = 200;

/// Name of the service at a collector.
const SERVICE: &str = "bench-coord";

/// Leads when no other coordinator does: dispatches, supervises, archives; answers health and scaling questions always. Ends at
/// the first signal.
pub(super) async fn run(app: App, args: &ServeArgs) -> CliResult {
    if app.deployment()? != Deployment::Cluster {
        return Err(CliError::usage(
            "serve works on runs over many machines: give --store postgres://… and --queue amqp://…; runs on one machine need no server",
        ));
    }
    let token = BearerToken::from_environment().map_err(CliError::usage_of)?;
    let store = app.open_store().await?;
    store.may(Right::Lead).await?;
    let queue = app.open_queue().await?;
    let holder = args.name.clone().unwrap_or_else(|| format!("{}-{}", bench_settings::host_name(), std::process::id()));
    bench_telemetry::metrics::enable(SERVICE, &holder);
    let gauges = Arc::new(ClusterGauges::new(Arc::clone(&store), Arc::clone(&queue)));
    let pages =
        Arc::new(ServePages { store: Arc::clone(&store), queue: Arc::clone(&queue), gauges: Arc::clone(&gauges) });
    let telemetry = ProcessTelemetry::start(app.settings(), SERVICE, &holder, Some(Arc::clone(&pages) as _))
        .map_err(|failure| CliError::usage(failure.message))?;
    let keeper = telemetry.spans.as_ref().map(|sink| Keeper::start(Arc::clone(&store), Arc::clone(sink)));
    let listening = listen(&args.listen, token, pages).await.map_err(CliError::usage_of)?;
    out::note(&format!(
        "coordinator of {} and {}, health at http://{}/readyz, scaling at /api/scale/POOL/ROLE",
        store.describe(),
        queue.describe(),
        listening.address
    ));
    let interrupts = app.interrupts();
    let (app, trouble) = (Arc::new(app), Trouble::default());
    let (scope, past) = (CLUSTER_DOMAIN.to_owned(), Past::default());
    let candidate =
        Candidate { store: Arc::clone(&store), scope, holder, trouble: trouble.clone(), past: past.clone() };
    while let Some(epoch) = candidate.wait(&interrupts.stop).await {
        let term = CancellationToken::new();
        gauges.leading.store(true, Ordering::Relaxed);
        let dispatcher = Dispatcher {
            store: Arc::clone(&store),
            queue: Arc::clone(&queue),
            scope: Scope::Domain(CLUSTER_DOMAIN.to_owned()),
            wake_ups: WakeUps::default(),
            trouble: trouble.clone(),
            past: past.clone(),
            traced: telemetry.spans.is_some(),
            outage_timeout: app.settings().run.outage_timeout.map_or(OUTAGE_TIMEOUT, Duration::from_secs),
        };
        let supervisor = Supervisor {
            app: Arc::clone(&app),
            store: Arc::clone(&store),
            queue: Arc::clone(&queue),
            domain: CLUSTER_DOMAIN.to_owned(),
            trouble: trouble.clone(),
            keeper: keeper.clone(),
        };
        let duties = [
            tokio::spawn(dispatcher.run(term.clone())),
            tokio::spawn(supervisor.run(term.clone())),
            #[cfg(feature = "archive")]
            tokio::spawn(crate::archive::auto::keep_archiving(Arc::clone(&app), Arc::clone(&store), term.clone())),
        ];
        candidate.keep(epoch, &interrupts.stop).await;
        gauges.leading.store(false, Ordering::Relaxed);
        term.cancel();
        for duty in duties {
            if let Err(error) = duty.await {
                tracing::error!("a part of the coordinator stopped: {error}");
            }
        }
        if interrupts.stop.is_cancelled() {
            break;
        }
    }
    if let Some(keeper) = keeper {
        keeper.close().await;
    }
    telemetry.close().await;
    queue.close().await;
    store.close().await;
    Ok(Exit::Done)
}

/// What a coordinator answers, leading or not.
struct ServePages {
    store: Arc<dyn Store>,
    queue: Arc<dyn Queue>,
    gauges: Arc<ClusterGauges>,
}

#[async_trait::async_trait]
impl Pages for ServePages {
    async fn ready(&self) -> Result<(), String> {
        self.store.leader(CLUSTER_DOMAIN).await.map(drop).map_err(|e| e.to_string())
    }

    async fn refresh(&self) {
        Refresh::refresh(self).await;
    }

    async fn page(&self, path: &str) -> Option<Result<Value, String>> {
        let mut parts = path.trim_matches('/').split('/');
        match (parts.next()?, parts.next()?, parts.next(), parts.next(), parts.next()) {
            ("api", "scale", Some(pool), Some(role), None) => {
                let role = Role::ALL.into_iter().find(|known| known.name() == role)?;
                Some(self.scale(pool, role).await.map_err(|e| e.message))
            }
            ("api", "about", None, ..) => Some(Ok(json!({
                "store": self.store.describe(),
                "queue": self.queue.describe(),
                "code_version": bench_worker::version::VERSION,
            }))),
            _ => None,
        }
    }
}

#[async_trait::async_trait]
impl Refresh for ServePages {
    async fn refresh(&self) {
        let Some(pools) = self.gauges.refresh().await else { return };
        let mut desired = Vec::new();
        for pool in &pools {
            for role in Role::ALL {
                let scale = self.scale(pool, role).await.ok();
                let number = scale.and_then(|scale| scale["desired_workers"].as_f64());
                desired.extend(number.map(|number| (vec![pool.clone(), role.name().to_owned()], number)));
            }
        }
        catalogue::DESIRED_WORKERS.set_all(desired);
    }
}

impl ServePages {
    async fn scale(&self, pool: &str, role: Role) -> Result<Value, CliError> {
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
                loads.push(self.load(row, open.remove(&run).unwrap_or_default()).await?);
            }
        }
        let workers = self.store.open_sessions(CLUSTER_DOMAIN).await?;
        let slots: Vec<u32> = workers
            .iter()
            .map(|worker| SessionInfo::from_json(&worker.info_json).slots_of(pool, role))
            .filter(|slots| *slots > 0)
            .collect();
        let mean = (!slots.is_empty()).then(|| f64::from(slots.iter().sum::<u32>()) / slots.len() as f64);
        let desired = desired_workers(role, &loads, mean);
        Ok(json!({
            "pool": pool, "role": role, "desired_workers": desired, "live_workers": slots.len(), "runs": loads.len(),
        }))
    }

    async fn load(&self, row: RunRow, open: BTreeMap<Role, bench_store::OpenTasks>) -> Result<RunLoad, CliError> {
        let limits = &row.spec.limits;
        let call_seconds = match limits.max_rpm {
            Some(_) => self.store.mean_call_us(row.run_no, CALLS_AVERAGED).await?.map(|us| us / 1e6),
            None => None,
        };
        Ok(RunLoad {
            open,
            questions: limits.questions_at_once(),
            segments: limits.segments_at_once(),
            calls_per_second: limits.max_rpm.map(|rpm| rpm as f64 / 60.0),
            call_seconds,
        })
    }
}
