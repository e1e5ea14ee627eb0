//! What a long-running coordinator does (`serve`), and what people see of a cluster.
//!
//! In come rows of the store (leader, sessions, runs) and depths of queues; out go changes of runs and sessions, gauges, and one
//! number for each role of a pool: how many workers would be of use. Start reading at `supervisor`.
//!
//! | module | question |
//! |---|---|
//! | `leader` | which of several coordinators works (P14)? |
//! | `supervisor` | which runs are swept, finished, summed up, and what becomes of dead letters? |
//! | `sessions` | which workers are dead (P4)? |
//! | `gauges` | what do metrics say? |
//! | `scale` | how many workers would be of use (P15)? |
//! | [`overview`] | what does `status` show of leader, workers and queues? |

#[cfg(feature = "cluster")]
pub(crate) mod gauges;
#[cfg(feature = "cluster")]
pub(crate) mod leader;
pub(crate) mod overview;
#[cfg(feature = "cluster")]
pub(crate) mod scale;
#[cfg(feature = "cluster")]
pub(crate) mod sessions;
#[cfg(feature = "cluster")]
pub(crate) mod supervisor;
