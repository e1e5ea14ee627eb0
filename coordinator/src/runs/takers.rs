//! Whether somebody would take the memory system of a run (P42): workers decide what they run and say so, and a run that nobody
//! takes is not begun.

use bench_proto::{
    CLUSTER_DOMAIN,
    ids::Role,
    session::SessionInfo,
    spec::{IMPORTED_SYSTEM, RunSpec},
};
use bench_store::{RunRow, Sessions, Store};
use bench_systems::policy::{Policy, Refusal, would_take};

use crate::{
    app::{App, Deployment},
    exit::CliError,
    out,
    standing::is_restored,
};

/// Roles whose tasks ask a memory system.
const ROLES: [Role; 2] = [Role::Retain, Role::Question];

/// Makes sure that the memory system of a stored run may be asked where the run is executed: what came by a store, an archive or
/// an import decides nothing.
///
/// # Errors
/// Exit 2 with what it would do, and how to allow it.
pub(crate) async fn check_allowed(app: &App, store: &dyn Store, run: &RunRow) -> Result<(), CliError> {
    if app.deployment()? == Deployment::Cluster {
        return look_for_takers(store, &run.spec).await;
    }
    if run.spec.system.version == IMPORTED_SYSTEM {
        return Ok(());
    }
    let Err(refusal) = app.policy().check(&run.spec.system.settings) else { return Ok(()) };
    let reason = refusal.reason();
    if is_restored(store, run).await? {
        return Err(CliError::usage(format!(
            "run {0} came from an archive: {reason}; read system.settings.adapter in its run.json, then `bench-coord archive fetch {0} --restore --trust-system`",
            run.run_id
        )));
    }
    Err(CliError::usage(format!(
        "run {}: {reason}; when you know the adapter, name its file in a `submit`, or allow it:\n{}",
        run.run_id,
        refusal.lines()
    )))
}

/// Refuses a run whose memory system no live worker of its pool takes; says what is needed where no worker is alive.
///
/// # Errors
/// Exit 2 with the lines of settings, chart and environment that would allow it.
pub(crate) async fn look_for_takers(store: &dyn Sessions, spec: &RunSpec) -> Result<(), CliError> {
    let settings = &spec.system.settings;
    if spec.system.version == IMPORTED_SYSTEM || would_take(&Policy::default().told(), settings).is_ok() {
        return Ok(());
    }
    let sessions = store.open_sessions(CLUSTER_DOMAIN).await?;
    let workers: Vec<SessionInfo> =
        sessions.iter().filter(|row| row.is_alive()).map(|row| SessionInfo::from_json(&row.info_json)).collect();
    let pool = &spec.limits.pool;
    let mut missing = false;
    for role in ROLES {
        let mut refused: Option<Box<Refusal>> = None;
        let mut taken = false;
        for worker in workers.iter().filter(|worker| worker.slots_of(pool, role) > 0) {
            // builds before policies take everything
            match worker.policy.as_ref().map_or(Ok(()), |told| would_take(told, settings)) {
                Ok(()) => taken = true,
                Err(refusal) => refused = Some(refusal),
            }
        }
        match refused {
            Some(refusal) if !taken => {
                return Err(CliError::usage(format!(
                    "no live worker of pool '{pool}' takes the run: {}\nlook at what it does, add to what the workers are told, and submit again:\n{}",
                    refusal.reason(),
                    refusal.lines()
                )));
            }
            _ => missing |= !taken,
        }
    }
    if missing && let Err(refusal) = would_take(&Policy::default().told(), settings) {
        out::note(&format!(
            "no worker of pool '{pool}' is alive to say whether it takes the run; it has to be told before:\n{}",
            refusal.lines()
        ));
    }
    Ok(())
}
