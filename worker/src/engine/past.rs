//! A store that went back in time, as a worker sees it (P44): what it had acknowledged is written again, before anything is claimed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use bench_proto::{ids::RunNo, money::PicoUsd};
use bench_store::{ClaimedTask, LiveSession, Renewal, SessionId, StoreError, Told, WENT_BACK_EVENT};
use tracing::{debug, info, warn};

use super::Shared;
use crate::journal::{Journal, Write};

/// How long results wait for the tasks that they belong to: another process may have to bring these back first.
const TASKS_WITHIN: Duration = Duration::from_secs(3);
/// Most results that are tried again in one commit.
const MOST_RECORDS: usize = 100;
/// Wait between two looks for them.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What was brought back of a run.
#[derive(Debug, Default)]
struct Brought {
    /// Results of steps.
    results: usize,
    /// Results that nobody wants any more.
    overtaken: usize,
    tasks: u64,
    uncertain: (u64, PicoUsd),
}

impl Shared {
    /// Whether the store has been away since the session was renewed: whoever is there now may have forgotten it.
    pub(super) fn is_unsure(&self) -> bool {
        self.tools.journal.is_some()
            && self.tools.store.interruptions() != self.session.confirmed.load(Ordering::SeqCst)
    }

    /// Renews the session; false when a supervisor has ended it. A store that went back in time gets back what it had acknowledged.
    pub(crate) async fn renew_now(&self) -> Result<bool, StoreError> {
        let _one = self.session.renewing.lock().await;
        let (sent, session, interruptions) = (Instant::now(), self.session.id(), self.tools.store.interruptions());
        let before = self.tools.journal.as_ref().map(|journal| (journal, journal.told()));
        let mut evidence = self.runs.routes.evidence();
        evidence.metered = self.runs.metering.told();
        match (self.tools.store.renew_session(session, Some(&evidence.to_json())).await?, before) {
            (Renewal::Ended, _) | (Renewal::Unknown, None) => return Ok(false),
            (Renewal::Alive(_), None) => {}
            (Renewal::Alive(told), Some((journal, before))) if !Journal::is_less(before, told) => {
                journal.confirm(told, sent);
            }
            (Renewal::Alive(told), Some((journal, _))) => self.bring_back(journal, session, told).await?,
            (Renewal::Unknown, Some((journal, _))) => self.bring_back(journal, session, Told::default()).await?,
        }
        self.session.heartbeat.renewed(sent);
        self.session.confirmed.store(interruptions, Ordering::SeqCst);
        Ok(true)
    }

    /// Writes again what the store has forgotten. Every part may be repeated: should the store go away meanwhile, the next renewal
    /// begins anew.
    async fn bring_back(&self, journal: &Journal, session: SessionId, told: Told) -> Result<(), StoreError> {
        // no batch is committed meanwhile
        let _turn = journal.turn.lock().await;
        let before = journal.told();
        let (worker, missing) = (self.session.name.as_str(), before.mark > told.mark);
        let why = format!(
            "the store went back in time: {worker} was told of {} renewals and {} commits, of which it knows {} and {}",
            before.counter, before.mark, told.counter, told.mark
        );
        let incarnation = self.tools.store.change_incarnation(before.incarnation, &why).await?;
        warn!(worker, code = "store_went_back", "{why}; what is remembered is written again");
        let counter = before.counter.max(told.counter);
        let mut live = LiveSession {
            session,
            worker: self.session.name.clone(),
            domain: self.session.domain.clone(),
            info_json: self.session.info.clone(),
            counter,
            mark: told.mark,
        };
        self.tools.store.restore_session(&live).await?;
        let mut brought: BTreeMap<RunNo, Brought> = BTreeMap::new();
        let writes = journal.beyond(told.mark);
        let gone = self.gone_runs(&writes).await?;
        self.write_again(writes, &gone, &mut brought).await?;
        self.hold_again(session, &gone, &mut brought).await?;
        let (money, forgotten) = journal.outstanding();
        for (run, out) in money.into_iter().filter(|(run, _)| !gone.contains(run)) {
            match self.tools.store.restore_money(run, session, &out.open, &out.lost).await {
                Ok(uncertain) if uncertain.0 > 0 => brought.entry(run).or_default().uncertain = uncertain,
                Ok(_) | Err(StoreError::Missing(_)) => {}
                Err(error) => return Err(error),
            }
        }
        live.mark = before.mark;
        self.tools.store.restore_session(&live).await?;
        for (run, brought) in &brought {
            let message = brought.say(worker);
            let name = self.run_id(*run).await.map_or_else(|| run.0.to_string(), |run| run.0);
            info!(run = name, worker, code = "store_went_back", "run {name}: {message}");
            self.tools.store.add_event(*run, WENT_BACK_EVENT, &message).await?;
        }
        if forgotten > 0 && missing {
            warn!(worker, code = "store_went_back", "{forgotten} older calls are not remembered any more");
        }
        journal.confirm(Told { counter, mark: before.mark, incarnation }, Instant::now());
        self.opened.notify_one();
        Ok(())
    }

    /// Runs that the store does not know any more, or whose numbers it has given to others.
    async fn gone_runs(&self, writes: &[Write]) -> Result<BTreeSet<RunNo>, StoreError> {
        let contexts: Vec<_> = self.runs.contexts.lock().await.values().cloned().collect();
        let mut runs: BTreeSet<RunNo> = writes.iter().flat_map(Write::runs).collect();
        runs.extend(contexts.iter().map(|context| context.run_no()));
        let mut gone = BTreeSet::new();
        for run in runs {
            let known = contexts.iter().find(|context| context.run_no() == run);
            let same = match self.tools.store.run(run).await {
                Ok(row) => known.is_none_or(|context| context.row().run_id == row.run_id),
                Err(StoreError::Missing(_)) => false,
                Err(error) => return Err(error),
            };
            if !same {
                gone.insert(run);
                if let Some(context) = known {
                    context.stop_calls("the store has forgotten the run");
                    self.forget_context(context).await;
                }
            }
        }
        Ok(gone)
    }

    /// Repeats writes in their order. Results whose tasks are not there yet wait for those who bring these back.
    async fn write_again(
        &self,
        writes: Vec<Write>,
        gone: &BTreeSet<RunNo>,
        brought: &mut BTreeMap<RunNo, Brought>,
    ) -> Result<(), StoreError> {
        let began = Instant::now();
        let mut left = Vec::new();
        for write in writes {
            if write.runs().iter().any(|run| gone.contains(run)) {
                continue;
            }
            let written = match &write {
                Write::Handle { run, bank_no, generation, handle } => {
                    self.tools.store.set_bank_handle(*run, *bank_no, *generation, handle).await.map(drop)
                }
                Write::Calls(run, calls) => self.tools.store.book_calls(*run, calls).await,
                Write::Batch(_, batch) => {
                    let (records, conclusions) = (batch.0.clone(), batch.1.clone());
                    left.push((records, conclusions));
                    Ok(())
                }
            };
            match written {
                // a generation that was forgotten is not the bank's any more
                Ok(()) | Err(StoreError::Missing(_)) => {}
                Err(error) => return Err(error),
            }
        }
        loop {
            let (mut refused, mut waiting) = (Vec::new(), BTreeSet::new());
            for (mut records, conclusions) in left {
                // steps of a task stay in their order: none is taken once the task has ended
                let later = records.extract_if(.., |record| waiting.contains(&(record.run, record.task)));
                refused.extend(later.collect::<Vec<_>>());
                let outcome = match self.tools.store.commit_and_conclude(&records, &conclusions).await {
                    Ok(outcome) => outcome,
                    Err(StoreError::BadData(why)) => {
                        warn!(code = "store_went_back", "{} results cannot be stored again: {why}", records.len());
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                for question in &outcome.to_conclude {
                    // the concluder lives as long as the worker
                    let _ = self.to_conclude.send(*question);
                }
                let again = outcome.refused.iter().filter_map(|at| records.get(*at));
                waiting.extend(again.clone().map(|record| (record.run, record.task)));
                refused.extend(again.cloned());
                for (record, already) in records.iter().zip(&outcome.already) {
                    brought.entry(record.run).or_default().results += usize::from(already.is_none());
                }
            }
            if refused.is_empty() || began.elapsed() > TASKS_WITHIN {
                for record in &refused {
                    debug!(
                        "step {} of {:?} of run number {} is not wanted any more",
                        record.step.0, record.task, record.run.0
                    );
                    brought.entry(record.run).or_default().overtaken += 1;
                }
                return Ok(());
            }
            left = refused.chunks(MOST_RECORDS).map(|records| (records.to_vec(), Vec::new())).collect();
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Takes the tasks back that this process works on.
    async fn hold_again(
        &self,
        session: SessionId,
        gone: &BTreeSet<RunNo>,
        brought: &mut BTreeMap<RunNo, Brought>,
    ) -> Result<(), StoreError> {
        let claims = self.tools.active.claims();
        let mut by_run: BTreeMap<RunNo, Vec<ClaimedTask>> = BTreeMap::new();
        for task in claims.iter().filter(|task| task.session == session && !gone.contains(&task.run)).copied() {
            by_run.entry(task.run).or_default().push(task);
        }
        for (run, held) in by_run {
            let tasks = self.tools.store.restore_leases(session, &held).await?;
            if tasks > 0 {
                brought.entry(run).or_default().tasks = tasks;
            }
        }
        // their epochs may be those of others now: they are not handed back
        self.tools.active.overtake(&claims, &self.tools.store.leases(session).await?);
        Ok(())
    }
}

impl Brought {
    fn say(&self, worker: &str) -> String {
        let Self { results, overtaken, tasks, uncertain: (calls, cost) } = self;
        let mut parts = vec![format!("{worker} stored {results} results again")];
        if *overtaken > 0 {
            parts.push(format!("{overtaken} were overtaken"));
        }
        if *tasks > 0 {
            parts.push(format!("{tasks} tasks in work were taken back"));
        }
        if *calls > 0 {
            parts.push(format!("{calls} calls of {cost} became uncertain"));
        }
        parts.join(", ")
    }
}
