//! `serve`: the long-running coordinator. Dispatches and supervises while it leads, answers health and scaling questions
//! always.

use std::{sync::Arc, time::Duration};

use bench_proto::{CLUSTER_DOMAIN, ids::Role};
use bench_queue::Queue;
use bench_settings::Settings;
use bench_store::{Right, Store};
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
        leader::{Candidate, Lead},
        scale::{Scaling, asked_for},
        supervisor::Supervisor,
    },
    dispatch::{Dispatcher, OUTAGE_TIMEOUT, Scope, WakeUps, past::Past, trouble::Trouble},
    exit::{CliError, CliResult, Exit},
    out,
};

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
    let lead = Lead::default();
    let pages = Arc::new(ServePages::new(&store, &queue, app.settings(), lead.clone()));
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
        Candidate { store: Arc::clone(&store), scope, holder, trouble: trouble.clone(), past: past.clone(), lead };
    while let Some(epoch) = candidate.wait(&interrupts.stop).await {
        let term = CancellationToken::new();
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
    gauges: ClusterGauges,
    scaling: Arc<Scaling>,
}

impl ServePages {
    fn new(store: &Arc<dyn Store>, queue: &Arc<dyn Queue>, settings: &Settings, lead: Lead) -> Self {
        let limited = settings.accounts.iter().filter_map(|(name, account)| Some((name.clone(), account.rpm?)));
        Self {
            store: Arc::clone(store),
            queue: Arc::clone(queue),
            gauges: ClusterGauges::new(Arc::clone(store), Arc::clone(queue), lead),
            scaling: Arc::new(Scaling::new(Arc::clone(store), limited.collect())),
        }
    }
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
        if path.trim_matches('/') == "api/about" {
            return Some(Ok(json!({
                "store": self.store.describe(),
                "queue": self.queue.describe(),
                "code_version": bench_worker::version::VERSION,
            })));
        }
        let (pool, role) = asked_for(path)?;
        let told = self.scaling.scale_of_role(&pool, role).await.map_err(|error| CliError::from(error).message);
        Some(told.map(|scale| {
            json!({
                "pool": pool, "role": role, "desired_workers": scale.desired, "live_workers": scale.live,
                "runs": scale.runs,
            })
        }))
    }
}

#[async_trait::async_trait]
impl Refresh for ServePages {
    async fn refresh(&self) {
        let Some(pools) = self.gauges.refresh().await else { return };
        let mut desired = Vec::new();
        for pool in &pools {
            for role in Role::ALL {
                let scale = self.scaling.scale_of_role(pool, role).await.ok();
                let series = |number: u64| (vec![pool.clone(), role.name().to_owned()], number as f64);
                desired.extend(scale.map(|scale| series(scale.desired)));
            }
        }
        catalogue::DESIRED_WORKERS.set_all(desired);
    }
}
