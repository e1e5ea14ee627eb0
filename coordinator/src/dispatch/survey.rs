//! What the dispatcher learns of runs, workers, outages and the broker, and what it repairs of that.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use bench_models::routes::Needs;
use bench_proto::{
    ids::{Role, RunId, RunNo},
    outage::RouteKey,
    session::SessionInfo,
    task::QueueName,
    trace::TracePolicy,
};
use bench_queue::QueueError;
use bench_store::{OpenByRole, RunState, SessionRow};
use tracing::{info, warn};

use super::{
    DispatchError, Dispatcher, Scope,
    context::Contexts,
    losses::{LossWatch, Seen},
    outages::{AtHand, OutageWatch},
    refused::RefusedPools,
    trouble::LeftOut,
    window::{AtOnce, Slots},
};
use crate::standing::domains::session_domain;

/// How often live workers and the broker's queues are looked at.
const SURVEY: Duration = Duration::from_secs(1);

/// What the dispatcher needs to know of a run besides its tasks.
#[derive(Debug, Clone)]
pub(super) struct DispatchedRun {
    pub(super) run_id: RunId,
    pub(super) pool: String,
    pub(super) most: AtOnce,
    state_version: i64,
    pub(super) trace: TracePolicy,
    /// Lowest version of task messages whose readers know how to work on it.
    pub(super) message_version: u32,
    pub(super) needs: Needs,
    pub(super) judges: Vec<RouteKey>,
    outage_timeout: Option<Duration>,
}

/// A pool as its workers describe it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pool {
    pub(super) slots: Slots,
    /// Lowest version of task messages that every live worker reads (P12).
    pub(super) message_version: Option<u32>,
}

/// What a dispatcher knows between two looks; all of it can be learned anew.
#[derive(Default)]
pub(super) struct Learned {
    pub(super) runs: BTreeMap<RunNo, DispatchedRun>,
    pub(super) pools: BTreeMap<String, Pool>,
    pub(super) declared: BTreeSet<QueueName>,
    pub(super) open: BTreeMap<RunNo, OpenByRole>,
    /// Roles in which something of a run was handed out at the last look.
    pub(super) granted: BTreeMap<RunNo, BTreeSet<Role>>,
    surveyed: Option<Instant>,
    pub(super) moved: Option<Instant>,
    pub(super) reconnects: Option<u64>,
    losses: LossWatch,
    pub(super) outages: OutageWatch,
    pub(super) contexts: Contexts,
    pub(super) turn: usize,
    /// How often the store had gone back when all was published.
    pub(super) went_back: u64,
    /// Runs that cannot be read, with why.
    pub(super) left_out: LeftOut,
    /// Pools that the broker refuses, with why.
    pub(super) refused: RefusedPools,
}

impl Learned {
    /// Leaves the runs of a pool out for a while; then its queues are declared again: they may be gone.
    pub(super) fn refuse(&mut self, pool: &str, why: String) {
        self.declared.retain(|queue| queue.pool != pool);
        self.refused.add(pool, why, Instant::now());
    }

    fn runs_of(&self, pool: &str) -> Vec<RunNo> {
        self.runs.iter().filter(|(_, facts)| facts.pool == pool).map(|(run, _)| *run).collect()
    }
}

impl Dispatcher {
    /// Finds out which runs there are; what was published of a run that is new to this dispatcher is published again.
    pub(super) async fn learn_runs(&self, learned: &mut Learned) -> Result<(), DispatchError> {
        let running = match &self.scope {
            // the owner of a local run has forgotten what was published when it took the run over
            Scope::Run(run, _) if learned.runs.contains_key(run) => return Ok(()),
            Scope::Run(run, _) => vec![(*run, 0)],
            Scope::Domain(domain) => self.store.running_runs(domain).await?,
        };
        learned.runs.retain(|run, _| running.iter().any(|(running, _)| running == run));
        learned.left_out.look_again();
        for (run, state_version) in running {
            if learned.runs.get(&run).is_some_and(|known| known.state_version == state_version) {
                continue;
            }
            let row = match self.store.run(run).await {
                Err(error) if error.is_about_rows() && !self.is_local() => {
                    learned.left_out.add(run, &error);
                    continue;
                }
                row => row?,
            };
            if !self.is_local() {
                self.store.forget_published(run, None, 0).await?;
            }
            learned.moved = Some(Instant::now());
            let facts = DispatchedRun {
                needs: bench_worker::routes::needs(&row.spec),
                judges: row.spec.judge_routes(),
                outage_timeout: row.spec.limits.outage_timeout_s.map(Duration::from_secs),
                run_id: row.run_id,
                most: AtOnce::of_spec(&row.spec),
                message_version: row.spec.task_message_version(),
                pool: row.spec.limits.pool,
                state_version,
                trace: row.spec.limits.trace,
            };
            learned.runs.insert(run, facts);
        }
        Ok(())
    }

    /// Learns which routes are away, once a second.
    pub(super) async fn read_outages(&self, learned: &mut Learned) -> Result<(), DispatchError> {
        if learned.outages.is_due(SURVEY) {
            let rows = match &self.scope {
                Scope::Run(run, _) => self.store.outages(&session_domain(*run)).await?,
                Scope::Domain(domain) => self.store.outages(domain).await?,
            };
            learned.outages.read(rows, Instant::now());
            learned.outages.keep(|run| learned.runs.contains_key(run));
        }
        Ok(())
    }

    /// Pauses runs that have waited for long enough for what is away.
    pub(super) async fn give_up(
        &self,
        learned: &mut Learned,
        open: &BTreeMap<RunNo, OpenByRole>,
    ) -> Result<(), DispatchError> {
        for (run, facts) in &learned.runs {
            let Some(open) = open.get(run) else { continue };
            let longest = facts.outage_timeout.unwrap_or(self.outage_timeout);
            let at_hand = AtHand { open, granted: learned.granted.get(run) };
            let gives_up = learned.outages.gives_up(*run, &facts.needs, at_hand, longest, Instant::now());
            let Some((code, why)) = gives_up else { continue };
            if self.store.set_run_state(*run, &[RunState::Running], RunState::Paused, Some(&why)).await?
                && !self.is_local()
            {
                let run = facts.run_id.0.as_str();
                warn!(run, code, "run {run} is paused: {why}");
            }
        }
        Ok(())
    }

    /// Looks at workers and queues once a second, and repairs what the broker has lost.
    pub(super) async fn survey(&self, learned: &mut Learned) -> Result<(), DispatchError> {
        let Scope::Domain(domain) = &self.scope else {
            if let Scope::Run(run, slots) = &self.scope
                && learned.pools.is_empty()
                && let Some(facts) = learned.runs.get(run)
            {
                let pool = Pool { slots: slots.clone(), message_version: None };
                learned.pools.insert(facts.pool.clone(), pool);
            }
            return Ok(());
        };
        let (runs, now) = (&learned.runs, Instant::now());
        learned.refused.keep(|pool| runs.values().any(|facts| facts.pool == pool));
        let queues: BTreeSet<QueueName> = learned
            .runs
            .values()
            .filter(|facts| !learned.refused.is_left_alone(&facts.pool, now))
            .flat_map(|facts| Role::ALL.map(|role| QueueName::new(facts.pool.clone(), role)))
            .collect();
        let due = learned.surveyed.is_none_or(|surveyed| surveyed.elapsed() >= SURVEY);
        if !due && queues.is_subset(&learned.declared) {
            return Ok(());
        }
        let serving = |session: &SessionRow| {
            let mut info = SessionInfo::from_json(&session.info_json);
            // who can do nothing in a role for now has no slots in it (P40)
            info.slots.retain(|role, _| !session.evidence.idle_roles.contains(role));
            info
        };
        learned.pools = pools(self.store.open_sessions(domain).await?.iter().map(serving));
        learned.surveyed = Some(Instant::now());
        self.declare_missing(learned, &queues).await?;
        self.look_for_losses(learned, &queues).await
    }

    /// Declares queues pool by pool: the broker may refuse those of one.
    async fn declare_missing(&self, learned: &mut Learned, queues: &BTreeSet<QueueName>) -> Result<(), DispatchError> {
        let mut missing: BTreeMap<String, Vec<QueueName>> = BTreeMap::new();
        for queue in queues.difference(&learned.declared) {
            missing.entry(queue.pool.clone()).or_default().push(queue.clone());
        }
        for (pool, queues) in missing {
            match self.queue.declare(&queues).await {
                Err(QueueError::Setup(why)) => learned.refuse(&pool, why.to_string()),
                declared => {
                    declared?;
                    learned.declared.extend(queues);
                    if learned.refused.declared(&pool) {
                        // messages may have gone with the queues
                        let why = format!("the queues of pool '{pool}' are there again");
                        self.publish_again(&learned.runs_of(&pool), None, Duration::ZERO, &why).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Publishes again what the broker has lost: queues that are gone, connections that broke, tasks without a message.
    async fn look_for_losses(&self, learned: &mut Learned, queues: &BTreeSet<QueueName>) -> Result<(), DispatchError> {
        let mut lost = None;
        for queue in queues {
            if !learned.declared.contains(queue) {
                continue; // of a pool that was refused
            }
            let depth = match self.queue.depth(queue).await {
                Ok(depth) => depth,
                Err(QueueError::Setup(reason)) => {
                    info!("{reason}: declaring it again");
                    match self.queue.declare(std::slice::from_ref(queue)).await {
                        Err(QueueError::Setup(why)) => learned.refuse(&queue.pool, why.to_string()),
                        declared => {
                            declared?;
                            lost = Some("a queue was gone");
                        }
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let tasks = |run: &RunNo| learned.open.get(run).and_then(|open| open.get(&queue.role)).copied();
            let of_pool = learned.runs.iter().filter(|(_, facts)| facts.pool == queue.pool);
            let (queued, leased) = of_pool
                .filter_map(|(run, _)| tasks(run))
                .fold((0, 0), |(queued, leased), tasks| (queued + tasks.queued, leased + tasks.leased));
            let slots =
                learned.pools.get(&queue.pool).and_then(|pool| pool.slots.get(&queue.role)).copied().unwrap_or(0);
            let ready = i64::try_from(depth.ready).unwrap_or(i64::MAX);
            let seen = Seen { queued, leased, ready, consumers: depth.consumers, slots: i64::from(slots) };
            if let Some(lasting) = learned.losses.see(queue, seen, Instant::now()) {
                let runs = learned.runs_of(&queue.pool);
                let why = "the store counts more queued tasks than the broker holds";
                let again = self.publish_again(&runs, Some(queue.role), lasting, why).await?;
                learned.losses.repaired(queue, again);
            }
        }
        // counted after the broker has answered: the answer may have needed a new connection
        let reconnects = self.queue.reconnects();
        if learned.reconnects.is_some_and(|known| known != reconnects) {
            lost = Some("the connection to the broker was lost");
        } else if learned.reconnects.is_none() && learned.moved.is_some() {
            lost = Some("the broker was out of reach");
        }
        learned.reconnects = Some(reconnects);
        if let Some(why) = lost {
            let runs: Vec<RunNo> = learned.runs.keys().copied().collect();
            self.publish_again(&runs, None, Duration::ZERO, why).await?;
        }
        Ok(())
    }

    /// Forgets that tasks were published, where that is at least so long ago; returns how many.
    async fn publish_again(
        &self,
        runs: &[RunNo],
        role: Option<Role>,
        older_than: Duration,
        why: &str,
    ) -> Result<u64, DispatchError> {
        let older_than_ms = u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX);
        let mut again = 0;
        for run in runs {
            again += self.store.forget_published(*run, role, older_than_ms).await?;
        }
        if again > 0 {
            info!("{why}: {again} tasks are published again");
        }
        Ok(again)
    }
}

/// The runs of each pool.
pub(super) fn by_pool(runs: &BTreeMap<RunNo, DispatchedRun>) -> BTreeMap<&str, Vec<(&RunNo, &DispatchedRun)>> {
    let mut pools: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for (run, facts) in runs {
        pools.entry(facts.pool.as_str()).or_default().push((run, facts));
    }
    pools
}

/// Pools as their live workers describe them.
fn pools(workers: impl Iterator<Item = SessionInfo>) -> BTreeMap<String, Pool> {
    let mut pools: BTreeMap<String, Pool> = BTreeMap::new();
    for worker in workers {
        let pool = pools.entry(worker.pool).or_default();
        for (role, slots) in worker.slots {
            *pool.slots.entry(role).or_default() += slots;
        }
        let reads = worker.reads_messages.max(1);
        pool.message_version = Some(pool.message_version.map_or(reads, |lowest| lowest.min(reads)));
    }
    pools
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p12_the_lowest_version_that_every_worker_reads_is_written() {
        let worker = |pool: &str, slots, reads| SessionInfo {
            reads_messages: reads,
            ..SessionInfo::of_this_process("1", pool, BTreeMap::from([(Role::Question, slots)]), "h")
        };
        let pools = pools([worker("a", 8, 3), worker("a", 16, 2), worker("b", 1, 5)].into_iter());
        assert_eq!(pools["a"], Pool { slots: Slots::from([(Role::Question, 24)]), message_version: Some(2) });
        assert_eq!(pools["b"].message_version, Some(5));
    }
}
