//! A cluster at a glance, for `status` and `doctor`: who hands out, who works, what waits where.

use std::{collections::BTreeSet, time::Duration};

use bench_proto::{
    CLUSTER_DOMAIN,
    ids::Role,
    outage::{RouteEvidence, RouteKey, Withdrawn},
    session::SessionInfo,
    task::QueueName,
};
use bench_queue::{Queue, QueueDepth, QueueError};
use bench_store::{LeaderRow, SessionRow, Store, StoreError};
use serde_json::{Value, json};

/// Longest wait for the broker: `status` also answers without it.
const PATIENCE: Duration = Duration::from_secs(3);

/// A cluster as it is now.
pub(crate) struct Overview {
    leader: Option<LeaderRow>,
    workers: Vec<(SessionRow, SessionInfo)>,
    broker: Result<Broker, String>,
}

struct Broker {
    queues: Vec<(QueueName, Option<QueueDepth>)>,
    dead_letters: u64,
}

impl Overview {
    /// Reads a cluster; a broker that does not answer is shown as such.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn read(store: &dyn Store, queue_url: &str, pools: &BTreeSet<String>) -> Result<Self, StoreError> {
        let workers = store.open_sessions(CLUSTER_DOMAIN).await?;
        let workers: Vec<_> = workers
            .into_iter()
            .map(|row| {
                let info = SessionInfo::from_json(&row.info_json);
                (row, info)
            })
            .collect();
        // in the order that people look for them
        let mut workers = workers;
        workers.sort_by(|(a, _), (b, _)| (&a.worker, a.session.0).cmp(&(&b.worker, b.session.0)));
        // a meter takes no task: its pool has no queues
        let serving = workers.iter().filter(|(_, info)| info.takes_tasks());
        let pools: BTreeSet<String> = serving.map(|(_, info)| info.pool.clone()).chain(pools.clone()).collect();
        let looking = tokio::time::timeout(PATIENCE, read_broker(queue_url, &pools));
        let broker = match looking.await {
            Ok(looked) => looked.map_err(|e| e.to_string()),
            Err(_) => Err(format!("the broker does not answer within {} s", PATIENCE.as_secs())),
        };
        Ok(Self { leader: store.leader(CLUSTER_DOMAIN).await?, workers, broker })
    }

    /// What is wrong with it, in one line, when something is.
    #[must_use]
    pub(crate) fn trouble(&self) -> Option<String> {
        match &self.leader {
            Some(leader) if leader.is_alive() && !leader.trouble.is_empty() => Some(leader.trouble.clone()),
            _ => None,
        }
    }

    /// Lines for people.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![match &self.leader {
            Some(leader) if leader.is_alive() => format!("coordinator: {} leads", leader.holder),
            Some(leader) if !leader.holder.is_empty() => {
                format!("coordinator: {} is silent for {:.0} s", leader.holder, seconds(leader.silent_ms))
            }
            _ => "coordinator: none, start `bench-coord serve`".to_owned(),
        }];
        if !self.workers.iter().any(|(_, info)| info.takes_tasks()) {
            lines.push("workers: none, start `bench-worker`".to_owned());
        }
        for (row, info) in &self.workers {
            let (state, silent) = (if row.is_alive() { "alive" } else { "silent" }, seconds(row.silent_ms));
            if !info.takes_tasks() {
                lines.push(format!("meter {}: {state}, heard of {silent:.0} s ago", row.worker));
                continue;
            }
            let slots: Vec<String> = info.slots.iter().map(|(role, slots)| format!("{role} {slots}")).collect();
            let withdrawn = withdrawn(row);
            lines.push(format!(
                "worker {}: {state}, {} tasks, heard of {silent:.0} s ago, pool {} ({})",
                row.worker,
                row.leased,
                info.pool,
                slots.join(", ")
            ));
            lines.extend(withdrawn.iter().map(|(key, left)| {
                let age = crate::out::amounts::duration(left.for_ms as f64 / 1e3);
                format!("  leaves {key} to the others for {age}: {}", left.reason)
            }));
        }
        match &self.broker {
            Err(problem) => lines.push(format!("broker: {problem}")),
            Ok(broker) => {
                for (queue, depth) in &broker.queues {
                    let depth = depth.map_or("not declared, run `bench-coord migrate`".to_owned(), |depth| {
                        format!("{} waiting, {} consumers", depth.ready, depth.consumers)
                    });
                    lines.push(format!("queue {}: {depth}", queue.wire_name()));
                }
                lines.push(format!("dead letters: {}", broker.dead_letters));
            }
        }
        if let Some(trouble) = self.trouble() {
            lines.push(format!("trouble: {trouble}"));
        }
        lines.join("\n")
    }

    /// The overview as JSON.
    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let worker = |(row, info): &(SessionRow, SessionInfo)| {
            json!({
                "name": row.worker, "alive": row.is_alive(), "busy": row.leased > 0, "tasks": row.leased,
                "silent_seconds": seconds(row.silent_ms), "pool": info.pool, "slots": info.slots,
                "withdrawn": withdrawn(row).iter().map(|(key, left)| json!({
                    "key": key.to_string(), "reason": left.reason, "since": since(left),
                })).collect::<Vec<_>>(),
                "host": info.host, "pid": info.pid, "code_version": info.code_version,
            })
        };
        let queue = |(name, depth): &(QueueName, Option<QueueDepth>)| {
            json!({
                "queue": name.wire_name(), "pool": name.pool, "role": name.role,
                "depth": depth.map(|d| d.ready), "consumers": depth.map(|d| d.consumers),
            })
        };
        json!({
            "coordinator": self.leader.as_ref().map(|leader| json!({
                "name": leader.holder, "alive": leader.is_alive(), "silent_seconds": seconds(leader.silent_ms),
                "epoch": leader.epoch,
            })),
            "workers": self.workers.iter().map(worker).collect::<Vec<_>>(),
            "queues": self.broker.as_ref().map(|b| b.queues.iter().map(queue).collect::<Vec<_>>()).unwrap_or_default(),
            "dead_letters": self.broker.as_ref().ok().map(|b| b.dead_letters),
            "broker_problem": self.broker.as_ref().err(),
            "trouble": self.trouble(),
        })
    }
}

async fn read_broker(url: &str, pools: &BTreeSet<String>) -> Result<Broker, QueueError> {
    let queue = bench_queue::connect(url).await?;
    let read = read_queues(queue.as_ref(), pools).await;
    queue.close().await;
    read
}

async fn read_queues(queue: &dyn Queue, pools: &BTreeSet<String>) -> Result<Broker, QueueError> {
    let mut queues = Vec::new();
    for pool in pools {
        for role in Role::ALL {
            let name = QueueName::new(pool.clone(), role);
            let depth = match queue.depth(&name).await {
                Ok(depth) => Some(depth),
                Err(QueueError::Setup(_)) => None,
                Err(error) => return Err(error),
            };
            queues.push((name, depth));
        }
    }
    let dead_letters = match queue.dead_letter_count().await {
        Err(QueueError::Setup(_)) => 0,
        count => count?,
    };
    Ok(Broker { queues, dead_letters })
}

/// Routes that a worker leaves to others (P40).
fn withdrawn(worker: &SessionRow) -> Vec<(RouteKey, &Withdrawn)> {
    let of_route = |told: &'_ RouteEvidence| RouteKey::from_text(&told.route);
    worker.evidence.routes.iter().filter_map(|told| Some((of_route(told)?, told.withdrawn.as_ref()?))).collect()
}

fn since(withdrawn: &Withdrawn) -> String {
    let for_ms = i64::try_from(withdrawn.for_ms).unwrap_or(i64::MAX);
    crate::out::times::rfc3339(jiff::Timestamp::now().as_millisecond().saturating_sub(for_ms))
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bench_store::conformance;

    use super::*;

    #[tokio::test]
    async fn a_meter_is_told_apart_from_workers_and_no_queue_of_it_is_missed() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let info = SessionInfo::of_this_process("1.0.0", "meter", BTreeMap::new(), "here").to_json();
        store.open_session("meter-here-7", CLUSTER_DOMAIN, &info).await.expect("is opened");
        let overview = Overview::read(store.as_ref(), "memory:", &BTreeSet::new()).await.expect("is read");
        let text = overview.text();
        assert!(text.contains("workers: none") && text.contains("meter meter-here-7: alive"), "{text}");
        assert!(!text.contains("queue ") && !text.contains("not declared"), "{text}");
    }
}
