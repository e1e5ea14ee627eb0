//! Names of the queue domains in which processes work and tell each other things (P21).

pub(crate) use bench_proto::LOCAL_DOMAIN;
use bench_proto::{CLUSTER_DOMAIN, PLANS_DOMAIN, ids::RunNo, session::SessionInfo};
use bench_store::{SessionRow, Sessions, StoreError};

/// Domain of the sessions of a local run: its own, so that two local runs in one store never end each other's.
pub(crate) fn session_domain(run: RunNo) -> String {
    format!("{LOCAL_DOMAIN}/{}", run.0)
}

/// Domain of the sessions in which clients write plans: a plan whose session has ended is nobody's.
pub(crate) fn planner_domain(run: RunNo) -> String {
    format!("{PLANS_DOMAIN}/{}", run.0)
}

/// The living workers of a pool, as they describe themselves.
///
/// # Errors
/// What the store meets.
pub(crate) async fn workers_of(store: &dyn Sessions, pool: &str) -> Result<Vec<SessionInfo>, StoreError> {
    let workers = store.open_sessions(CLUSTER_DOMAIN).await?;
    let alive = workers.iter().filter(|worker| SessionRow::is_alive(worker));
    Ok(alive.map(|worker| SessionInfo::from_json(&worker.info_json)).filter(|info| info.pool == pool).collect())
}

/// Whether a worker of the cluster serves a pool, in whichever role.
///
/// # Errors
/// What the store meets.
pub(crate) async fn is_served(store: &dyn Sessions, pool: &str) -> Result<bool, StoreError> {
    Ok(!workers_of(store, pool).await?.is_empty())
}
