//! Names of the queue domains in which processes work and tell each other things (P21).

use bench_proto::{CLUSTER_DOMAIN, ids::RunNo};

/// Domain of runs that one process owns.
pub(crate) const LOCAL_DOMAIN: &str = "local";

/// Domain of the sessions of a local run: its own, so that two local runs in one store never end each other's.
pub(crate) fn session_domain(run: RunNo) -> String {
    format!("{LOCAL_DOMAIN}/{}", run.0)
}

/// Domain of the sessions in which clients write plans: a plan whose session has ended is nobody's.
pub(crate) fn planner_domain(run: RunNo) -> String {
    format!("{CLUSTER_DOMAIN}/plan/{}", run.0)
}
