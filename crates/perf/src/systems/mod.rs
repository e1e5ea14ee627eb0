//! Memory systems in this process: how quick the built-in ones search and take in, and what an adapter costs beside the
//! network. Every figure stands beside a yardstick of the same round.

mod adapter;
mod banks;
mod batches;
mod pgvector;
mod search;
mod take_in;

use serde_json::Value;

pub(crate) use self::{
    adapter::{Server as MemoryServer, memory_server},
    batches::batches,
    pgvector::by_size as pgvector,
};
use crate::scenarios::Lab;

/// Measures the built-in systems and the adapter, one scenario after the other.
pub(crate) async fn systems(lab: &Lab, memories: usize, calls: usize) -> anyhow::Result<Vec<Value>> {
    let conversations = banks::conversations(lab.datasets_dir.as_deref())?;
    Ok(vec![
        search::keywords("systems-bm25-locomo", &conversations, lab.rounds, 2.0).await?,
        search::keywords("systems-bm25-large", &[banks::large(memories)?], lab.rounds, 20.0).await?,
        search::vectors(memories, lab.rounds)?,
        pgvector::recalls("systems-pgvector", &conversations, lab.rounds, &own_database()?).await?,
        take_in::take_in(lab, &conversations).await?,
        adapter::overhead(&conversations[0], calls, lab.rounds).await?,
    ])
}

/// An empty database of a PostgreSQL that is started for it, with the extension vector.
fn own_database() -> anyhow::Result<String> {
    bench_testkit::postgres::with_vector().create_database()
}

/// Percentiles of times in milliseconds, by nearest rank.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    n: usize,
}

impl Percentiles {
    pub(crate) fn from_times(mut milliseconds: Vec<f64>) -> Self {
        milliseconds.sort_by(f64::total_cmp);
        let n = milliseconds.len();
        let at = |share: f64| milliseconds.get(((n as f64 * share).ceil() as usize).max(1) - 1).copied();
        Self { p50_ms: at(0.5).unwrap_or(f64::NAN), p99_ms: at(0.99).unwrap_or(f64::NAN), n }
    }
}

/// Milliseconds that some work takes, and its result.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let began = std::time::Instant::now();
    let result = work();
    (began.elapsed().as_secs_f64() * 1e3, result)
}
