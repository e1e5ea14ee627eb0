//! Runs that a long-running coordinator serves: leadership, supervision, the scaling signal, and what a client of such a run
//! does.
//!
//! `leader` decides which of several coordinators works, `supervisor` looks after workers and runs, `client` is the side of
//! `submit`, `resume` and `watch`.

pub(crate) mod client;
#[cfg(feature = "cluster")]
pub(crate) mod gauges;
#[cfg(feature = "cluster")]
pub(crate) mod leader;
pub(crate) mod overview;
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "a build for one machine has no `serve`"))]
pub(crate) mod past;
#[cfg(feature = "cluster")]
pub(crate) mod scale;
#[cfg(feature = "cluster")]
pub(crate) mod sessions;
#[cfg(feature = "cluster")]
pub(crate) mod supervisor;
pub(crate) mod takers;
pub(crate) mod trouble;

/// Domain of the sessions in which clients write plans: a plan whose session has ended is nobody's.
pub(crate) fn planner_domain(run: bench_proto::ids::RunNo) -> String {
    format!("{}/plan/{}", bench_proto::CLUSTER_DOMAIN, run.0)
}
