//! Providers and memory servers that are away, as people see them: for a run's status and progress, for its report, as gauges.

use bench_proto::{CLUSTER_DOMAIN, outage::RouteKey, summary::OutageMet};
use bench_store::{OutageRow, Outages, RunRow, StoreResult};
use bench_worker::routes::routes_of;
use serde::Serialize;

use crate::{out::times::rfc3339, standing::domains::session_domain};

/// A route that is away.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Away {
    /// What is away: `gpt-4o-mini (account openai)`.
    pub key: String,
    /// Since when, RFC 3339.
    pub since: String,
    /// Seconds since then.
    pub seconds: f64,
    /// What the last probe, or the calls before it, met.
    pub reason: String,
    /// Seconds to the next probe; 0 while one is under way.
    pub next_probe_seconds: f64,
    /// Tasks that were put off so far.
    pub held: i64,
}

impl Away {
    fn from_row(row: &OutageRow, key: &RouteKey) -> Self {
        let seconds = |us: i64| (us as f64 / 1e6).max(0.0);
        Self {
            key: key.to_string(),
            since: rfc3339(row.outage.from_us / 1000),
            seconds: seconds(row.now_us - row.outage.from_us),
            reason: row.reason.clone(),
            next_probe_seconds: seconds(row.outage.next_probe_us - row.now_us),
            held: row.held,
        }
    }

    /// One line: `gpt-4o-mini (account openai) is away for 42 s (the provider answered 503), next probe in 4 s`.
    #[must_use]
    pub(crate) fn line(&self) -> String {
        let Self { key, seconds, reason, next_probe_seconds, .. } = self;
        let probe = match next_probe_seconds {
            0.0 => "a probe is under way".to_owned(),
            left => format!("next probe in {}", crate::out::amounts::duration(left.ceil())),
        };
        format!("{key} is away for {} ({reason}), {probe}", crate::out::amounts::duration(*seconds))
    }
}

/// The queue domain in which a run's processes tell each other of outages.
pub(crate) fn domain_of(run: &RunRow) -> String {
    if run.domain == CLUSTER_DOMAIN { CLUSTER_DOMAIN.to_owned() } else { session_domain(run.run_no) }
}

/// What a run needs and is away.
///
/// # Errors
/// What the store meets.
pub(crate) async fn away(store: &dyn Outages, run: &RunRow) -> StoreResult<Vec<Away>> {
    let needed = routes_of(&run.spec);
    if needed.is_empty() {
        return Ok(Vec::new());
    }
    let rows = store.outages(&domain_of(run)).await?;
    let of_run = |row: &OutageRow| {
        let key = RouteKey::from_text(&row.route).filter(|key| row.outage.is_open() && needed.contains(key))?;
        Some(Away::from_row(row, &key))
    };
    Ok(rows.iter().filter_map(of_run).collect())
}

/// The outages that a run has met, for its report.
///
/// # Errors
/// What the store meets.
pub(crate) async fn met(store: &dyn Outages, run: &RunRow) -> StoreResult<Vec<OutageMet>> {
    let needed = routes_of(&run.spec);
    if needed.is_empty() {
        return Ok(Vec::new());
    }
    let rows = store.outages_since(&domain_of(run), run.created_ms.saturating_mul(1000)).await?;
    let until_us = run.finished_ms.map_or(i64::MAX, |ms| ms.saturating_mul(1000));
    let of_run = |row: &OutageRow| {
        let key = RouteKey::from_text(&row.route).filter(|key| needed.contains(key))?;
        let met = row.outage.is_confirmed() && row.outage.from_us <= until_us;
        met.then(|| OutageMet {
            key: key.to_string(),
            from: rfc3339(row.outage.from_us / 1000),
            to: row.outage.to_us.map(|to_us| rfc3339(to_us / 1000)),
            reason: row.reason.clone(),
            calls_held: u64::try_from(row.held).unwrap_or(0),
        })
    };
    Ok(rows.iter().filter_map(of_run).collect())
}

/// Has every provider that the run needs and that is away probed at once, not at the next turn (`resume`).
///
/// # Errors
/// What the store meets.
pub(crate) async fn probe_now(store: &dyn Outages, run: &RunRow) -> StoreResult<()> {
    for key in routes_of(&run.spec) {
        store.outage(&domain_of(run), &key.to_text(), bench_proto::outage::OutageEvent::ProbeNow, "").await?;
    }
    Ok(())
}
