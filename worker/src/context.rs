//! What the tasks of one run share in a process: system, answerer, judges, scorers, stop flag.
//!
//! In come the run's row and the parts of the process; out comes a `RunContext`, built once for each run and asked by every task
//! of it. Start reading at `RunContext::build`: what is wrong with a run on this machine is found there, before its first task.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Instant,
};

use bench_grading::{
    judging::rubric,
    prompts,
    scorers::{self, Scorer},
};
use bench_models::{
    budget::reservations::Reservations,
    routes::{Needs, Routes},
    stop::{Liveness, StopCause, StopFlag},
};
use bench_proto::{
    failure::{
        Failure, FailureClass,
        code::{CANNOT_SERVE, NOT_ALLOWED},
    },
    ids::RunNo,
    server::ServerAddress,
    spec::{IMPORTED_SYSTEM, RunSpec, SystemSpec, check_grading},
    trace::{RunTrace, StepTrace},
};
use bench_store::{BankRow, ClaimedTask, RunRow, SessionId, Store};
use bench_systems::{
    BankRef, BuildContext, BuildError, Embeddings, MemorySystem, SystemSettings, adapter, facts, policy::RefusedSystem,
    vector,
};
use tokio_util::sync::CancellationToken;

use crate::{
    answerer::{Answerer, Rephraser},
    banks::BankData,
    calls::{CallersParts, RunCallers},
    embedder::{NOT_MADE, NOT_MADE_DELAY_MS, Paid, PaidCalls, PaidModels, Payer},
    ending::{BEGUN_TOO_OFTEN, LEFT_BY_THE_NEXT, TaskEnd},
    environment::WorkerEnvironment,
    guard::{self, Guarded, Surroundings},
    judge::Judge,
    metering::{Excuse, MeteredRun, Metering},
    routes,
    tools::Tools,
};

/// Why a run stopped by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StopReason {
    /// Short stable word.
    pub(crate) code: String,
    /// One line, with the provider's own words where they are the cause.
    pub(crate) message: String,
}

/// At whom an operation is in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At {
    /// The memory system.
    System,
    /// The model that answers.
    Answerer,
    /// The models that judge.
    Judges,
}

/// An operation in flight, until it is dropped.
pub(crate) struct Entered<'a> {
    counter: &'a AtomicU32,
    /// How many there were when it began, itself counted.
    pub(crate) in_flight: u32,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where the archive lies whose filled banks a run asks.
fn filled_archive(building: &BuildContext, spec: &RunSpec) -> Option<PathBuf> {
    let (home, archive) = (building.adapters.home.as_ref()?, spec.taken_over.archive.as_ref()?);
    Some(adapter::imported_banks(home, &archive.name))
}

/// What the context of a run is built of.
pub(crate) struct Building<'a> {
    pub(crate) environment: &'a Arc<WorkerEnvironment>,
    pub(crate) metering: &'a Arc<Metering>,
    pub(crate) tools: &'a Tools,
    pub(crate) routes: &'a Arc<Routes>,
    /// The session under which the run's money is reserved.
    pub(crate) session: SessionId,
    /// Whether that session is known to be alive: no call starts without.
    pub(crate) liveness: Arc<dyn Liveness>,
    pub(crate) row: RunRow,
}

/// Everything that the tasks of a run need besides the task.
pub(crate) struct RunContext {
    row: RunRow,
    system: Arc<dyn MemorySystem>,
    /// What the system asks models.
    models: PaidModels,
    /// Why the system is not asked here, when that is so.
    refused: Option<Failure>,
    answerer: Answerer,
    rephraser: Option<Rephraser>,
    judges: Vec<Judge>,
    scorers: Vec<&'static dyn Scorer>,
    stop: StopFlag,
    drop: CancellationToken,
    reservations: Arc<Reservations>,
    trace: Option<RunTrace>,
    session: SessionId,
    needs: Needs,
    doubted: AtomicBool,
    in_flight: [AtomicU32; 3],
    /// Lets the memory system's own calls through, in a metered run.
    metered: Option<Arc<MeteredRun>>,
}

impl RunContext {
    /// Builds the context of a run.
    ///
    /// # Errors
    /// When this worker cannot serve the run: an unknown name, a missing account or key.
    pub(crate) async fn build(building: Building<'_>) -> Result<Self, Failure> {
        let Building { environment, metering, tools, routes, session, liveness, row } = building;
        let cannot = |what: String| Failure::terminal(CANNOT_SERVE, what);
        let spec = &row.spec;
        // whoever wrote the run chose it: a vote beyond the keys of its question has no task
        check_grading(spec.judges.len(), spec.votes).map_err(cannot)?;
        // results made elsewhere can be graded again, and nothing is ever asked of their system
        let imported = spec.system.version == IMPORTED_SYSTEM;
        let nothing = SystemSettings::new();
        let (name, settings) =
            if imported { ("none", &nothing) } else { (spec.system.name.as_str(), &spec.system.settings) };
        let stop = StopFlag::guarded(liveness);
        let store = Arc::clone(&tools.store);
        let parts = CallersParts { environment, tools, row: &row, session, stop: stop.clone(), routes };
        let callers = RunCallers::open(parts).await?;
        let mut building = environment.systems.for_run(row.run_id.to_string());
        building.adapters.given = metering.given(&row).await?;
        building.adapters.filled = filled_archive(&building, spec);
        let metered =
            row.spec.limits.meter.is_some().then(|| callers.metered(environment, metering.is_apart())).transpose()?;
        let metered = metered.map(Arc::new);
        if let Some(metered) = &metered {
            // a process that takes no task of a bank learns its name in no other way; those that are planned later come with their tasks
            metered.in_flight.name_all(&store.banks(row.run_no, None).await?);
            metering.admit_run(&row.run_id, metered);
        }
        let taken_over = &spec.taken_over;
        let models = models_of(name, settings, &callers, taken_over.recalls_of.is_some())?;
        building.embeddings = Embeddings::OfStep;
        building.chats = None;
        let (system, refused) = system_of(name, settings, &building).map_err(|e| cannot(e.to_string()))?;
        check_version(system.as_ref(), &spec.system).map_err(cannot)?;
        let around = Surroundings {
            run: &row,
            store,
            banks: Arc::clone(&tools.banks),
            routes,
            stop: stop.clone(),
            calls: environment.calls,
            metered: metered.clone(),
        };
        let system = if refused.is_some() { system } else { Guarded::around(system, around) };
        let scorers = spec.scorers.iter().map(|s| scorers::registry::find(&s.name)).collect::<Result<Vec<_>, _>>();
        let profile = &spec.dataset.profile;
        rubric::check(profile, None, !spec.judges.is_empty()).map_err(|e| cannot(e.to_string()))?;
        let told =
            prompts::answer::Instructions::from_profile(profile, spec.scenario).map_err(|e| cannot(e.to_string()))?;
        spec.recalls.check(spec.scenario).map_err(cannot)?;
        let rephraser = match Rephraser::build(&callers, spec) {
            Err(_) if taken_over.recalls_of.is_some() => None,
            built => built?,
        };
        let answerer = match Answerer::build(&callers, spec, told) {
            Err(failure) if taken_over.answers_of.is_some() => Answerer::Absent(failure),
            built => built?,
        };
        let judges = spec.judges.iter().map(|model| Judge::build(&callers, model)).collect::<Result<_, _>>()?;
        Ok(Self {
            system,
            models,
            refused,
            answerer,
            rephraser,
            judges,
            scorers: scorers.map_err(|e| cannot(e.to_string()))?,
            stop,
            drop: CancellationToken::new(),
            reservations: callers.reservations(),
            trace: environment.spans.as_ref().map(|_| RunTrace::new(&row.run_id, &row.spec.limits.trace)),
            session,
            needs: routes::needs(&row.spec),
            doubted: AtomicBool::new(false),
            in_flight: Default::default(),
            metered,
            row,
        })
    }

    /// Number of the run.
    pub(crate) fn run_no(&self) -> RunNo {
        self.row.run_no
    }

    /// The run as it was when the context was built.
    pub(crate) fn row(&self) -> &RunRow {
        &self.row
    }

    /// What each role needs of routes.
    pub(crate) const fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Stops the run because its provider refuses every call.
    pub(crate) fn refuse(&self, failure: &Failure) {
        self.stop.set(StopCause::Terminal(failure.clone()));
    }

    /// What requests bring along, where this process has a collector.
    pub(crate) fn trace(&self) -> Option<&RunTrace> {
        self.trace.as_ref()
    }

    /// The session under which its money is reserved.
    pub(crate) const fn session(&self) -> SessionId {
        self.session
    }

    /// Makes sure that the memory system may be asked here, before anything is done for it (P42).
    pub(crate) fn check_allowed(&self) -> Result<(), Failure> {
        self.refused.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn system(&self) -> &dyn MemorySystem {
        self.system.as_ref()
    }

    /// Where an operation of the system went: to the server that made its embeddings, where it asked for any, else to its own.
    pub(crate) async fn server(&self, bank: &BankRef, embedded: Option<ServerAddress>) -> Option<ServerAddress> {
        match embedded {
            Some(embedded) => Some(embedded),
            None => self.system.server(bank).await,
        }
    }

    /// Counts an operation of the run among those in flight in this process (P43).
    pub(crate) fn enter(&self, at: At) -> Entered<'_> {
        let counter = &self.in_flight[at as usize];
        Entered { in_flight: counter.fetch_add(1, Ordering::Relaxed) + 1, counter }
    }

    /// Whether this is the first time that it is not known what the run's system has stored: what would help is said once.
    pub(crate) fn is_first_doubt(&self) -> bool {
        !self.doubted.swap(true, Ordering::Relaxed)
    }

    /// Ends what this process has started for the run.
    pub(crate) async fn close_system(&self) {
        self.system.close().await;
    }

    pub(crate) fn answerer(&self) -> &Answerer {
        &self.answerer
    }

    /// Who says questions in other words, where the run wants that.
    pub(crate) fn rephraser(&self) -> Option<&Rephraser> {
        self.rephraser.as_ref()
    }

    pub(crate) fn judge(&self, judge_no: u32) -> Option<&Judge> {
        self.judges.get(judge_no as usize)
    }

    pub(crate) fn scorers(&self) -> &[&'static dyn Scorer] {
        &self.scorers
    }

    /// Stops all calls of the run in this process (P23); a resumed run gets a new context.
    pub(crate) fn stop_calls(&self, reason: &str) {
        self.stop.stop(reason);
    }

    /// The same for a cause of another kind.
    pub(crate) fn stop_by(&self, cause: &StopCause) {
        self.stop.set(cause.clone());
    }

    /// Drops the run's calls in flight (`cancel --now`).
    pub(crate) fn drop_calls(&self, reason: &str) {
        self.stop.stop(reason);
        self.drop.cancel();
    }

    /// Waits until calls in flight are to be dropped.
    pub(crate) async fn dropped(&self) {
        self.drop.cancelled().await;
    }

    /// Gives back what is reserved and not in use; nothing is reserved afterwards.
    pub(crate) async fn close_reservations(&self) {
        self.reservations.close().await;
    }

    /// Tells the store in full what was refused of the memory system's own calls; nothing is let through or refused afterwards.
    pub(crate) async fn note_refused_calls(&self) {
        if let Some(metered) = &self.metered {
            metered.refused.note_last().await;
        }
    }

    /// Why the run has to stop by itself, when it has to.
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        match self.stop.cause()? {
            StopCause::Asked(_) | StopCause::Here(_) => None,
            StopCause::Terminal(failure) => Some(StopReason { code: failure.code, message: failure.message }),
        }
    }

    /// Hands the task back when the run no longer runs.
    pub(crate) fn check_running(&self) -> Result<(), TaskEnd> {
        self.stop.cause().map_or(Ok(()), |cause| Err(TaskEnd::hand_back(cause.into_reason())))
    }

    /// Whether a failure is not the memory system's own, because it or what it calls is away, or its calls have to wait: what was asked
    /// is to be asked again.
    pub(crate) fn is_excused(&self, bank: &BankRef, failure: &Failure) -> bool {
        guard::is_away(failure) || self.excuse(self.number_of(bank), failure).is_some()
    }

    /// Whether the memory system or what it calls is away, which ends by itself or stops the run.
    pub(crate) fn is_outage(&self, failure: &Failure) -> bool {
        let meets_nobody = || self.metered.as_ref().is_some_and(|metered| metered.away().is_some());
        guard::is_away(failure) || !is_ours(failure) && meets_nobody()
    }

    fn number_of(&self, bank: &BankRef) -> Option<u32> {
        self.metered.as_ref()?.in_flight.number(&bank.name)
    }

    /// What the memory system's own calls have met, to which a failure of it may be due.
    fn excuse(&self, bank: Option<u32>, failure: &Failure) -> Option<Excuse> {
        let metered = self.metered.as_ref()?;
        if is_ours(failure) { None } else { metered.excuse(bank, failure) }
    }

    /// How a task ends that a memory system has failed. One that is away is waited for and costs no attempt; one that refuses
    /// everything stops the run (resumable).
    pub(crate) fn system_end(&self, bank: &BankRef, failure: Failure) -> TaskEnd {
        self.end_of(self.number_of(bank), failure)
    }

    fn end_of(&self, bank: Option<u32>, failure: Failure) -> TaskEnd {
        if failure.code == LEFT_BY_THE_NEXT {
            return TaskEnd::Failed(failure);
        }
        // its own calls were refused because the run stops: that is no failure of its
        if self.metered.is_some()
            && let Err(stopped) = self.check_running()
        {
            return stopped;
        }
        // it is no fault of the system that what it calls is away (P39), or has to wait (P11)
        if let Some(excuse) = self.excuse(bank, &failure) {
            if let (Excuse::Busy { left, .. }, Some(metered)) = (&excuse, &self.metered) {
                metered.waits.count_round(bank, *left, Instant::now());
            }
            return excuse.end(&failure);
        }
        if guard::is_away(&failure) {
            return TaskEnd::PutOff { delay_ms: failure.retry_after_ms.unwrap_or(0), reason: failure.message };
        }
        if failure.code == NOT_MADE {
            return TaskEnd::Park { delay_ms: NOT_MADE_DELAY_MS, reason: failure.message, calls: Vec::new() };
        }
        if failure.class == FailureClass::Terminal && ![CANNOT_SERVE, NOT_ALLOWED].contains(&failure.code.as_str()) {
            let message = format!("memory system {}: {}", self.row.spec.system.name, failure.message);
            self.stop.set(StopCause::Terminal(Failure { message: message.clone(), ..failure }));
            return TaskEnd::hand_back(message);
        }
        TaskEnd::Failed(failure)
    }

    /// A step of a task that begins now, at whose expense the system may ask models.
    pub(crate) fn payer(&self, task: ClaimedTask, trace: Option<StepTrace>) -> Payer {
        Payer::begin(task, trace, &self.models)
    }

    /// What became of an operation of the system that a step has paid for.
    pub(crate) fn settle<T>(&self, payer: Payer, result: Result<T, Failure>) -> Result<(T, Paid), TaskEnd> {
        let bank = Some(payer.bank_no());
        if let (Ok(_), Some(metered)) = (&result, &self.metered) {
            metered.waits.moved(bank);
        }
        payer.settle(result, |failure| self.end_of(bank, failure))
    }

    /// The bank's row as it is now. Systems that are computed from items have nothing in it that changes.
    pub(crate) async fn current_row(&self, store: &dyn Store, data: &BankData) -> Result<BankRow, Failure> {
        if self.system.capabilities().from_items {
            return Ok(data.row.clone());
        }
        let mut rows = store.banks(self.run_no(), Some(&[data.row.bank_no])).await?;
        rows.pop().ok_or_else(|| Failure::permanent("store", format!("bank {} is missing", data.row.bank_no)))
    }

    /// How a memory system is told which bank is meant.
    pub(crate) fn bank_ref(&self, row: &BankRow, data: &BankData) -> BankRef {
        BankRef { content: Some(Arc::clone(&data.content)), ..self.bank_at(row) }
    }

    /// A bank as memory systems know it, without its content.
    pub(crate) fn bank_at(&self, row: &BankRow) -> BankRef {
        let name = row.name_of(row.generation);
        if let Some(metered) = &self.metered {
            metered.in_flight.name(&name, row.bank_no);
        }
        BankRef {
            name,
            handle: row.handle.clone(),
            bank_id: row.bank_id.clone(),
            content_hash: row.content,
            content: None,
        }
    }
}

/// Whether a failure is what the runner itself has made of those before it, or of its own place: no provider has a part in it.
fn is_ours(failure: &Failure) -> bool {
    [BEGUN_TOO_OFTEN, LEFT_BY_THE_NEXT, CANNOT_SERVE, NOT_ALLOWED].contains(&failure.code.as_str())
}

/// The models that a memory system asks. A key that nothing needs may be missing.
fn models_of(
    name: &str,
    settings: &SystemSettings,
    callers: &RunCallers<'_>,
    unneeded: bool,
) -> Result<PaidModels, Failure> {
    let built = |calls: Option<Result<PaidCalls, Failure>>| -> Result<Option<Arc<PaidCalls>>, Failure> {
        match calls {
            Some(Err(_)) if unneeded => Ok(None),
            calls => Ok(calls.transpose()?.map(Arc::new)),
        }
    };
    let embeddings = vector::remote_model(name, settings).map(|model| PaidCalls::embeddings(callers, &model));
    let chat = facts::chat_model(name, settings).map(|model| PaidCalls::chat(callers, &model));
    Ok(PaidModels { embeddings: built(embeddings)?, chat: built(chat)? })
}

/// The memory system of a run; where this process may not ask it, one that refuses everything, and why.
fn system_of(
    name: &str,
    settings: &SystemSettings,
    building: &BuildContext,
) -> Result<(Arc<dyn MemorySystem>, Option<Failure>), BuildError> {
    match bench_systems::registry::build(name, settings, building) {
        Err(error @ BuildError::NotAllowed(_)) => {
            let failure = Failure::terminal(NOT_ALLOWED, error.to_string());
            // nothing is done by it
            let capabilities = bench_systems::registry::capabilities(name, settings, building)?;
            Ok((RefusedSystem::instead(capabilities, failure.clone()), Some(failure)))
        }
        built => Ok((built?, None)),
    }
}

/// A built-in system whose version has a part after `+` depends on something outside of the binary, such as a local model
/// or given vectors, or on words of a prompt: a worker that has another one must not mix its results in.
fn check_version(system: &dyn MemorySystem, planned: &SystemSpec) -> Result<(), String> {
    let capabilities = system.capabilities();
    if !capabilities.from_items || !planned.version.contains('+') || capabilities.version == planned.version {
        return Ok(());
    }
    let SystemSpec { name, version, .. } = planned;
    Err(format!(
        "the run was planned with {name} {version}, here it is {}: what it rests on (a local model, given vectors, words of a prompt) is another",
        capabilities.version
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p39_what_the_runner_has_decided_is_not_put_off_because_a_provider_is_away() {
        assert!(is_ours(&Failure::permanent(BEGUN_TOO_OFTEN, "begun 8 times")));
        assert!(is_ours(&Failure::transient(LEFT_BY_THE_NEXT, "in doubt")));
        assert!(!is_ours(&Failure::permanent("system_refused", "a class that gives up at the first error")));
    }

    #[test]
    fn p13_a_worker_with_another_prompt_or_other_files_than_were_planned_mixes_nothing_in() {
        let built = |name: &str| {
            bench_systems::registry::build(name, &SystemSettings::new(), &BuildContext::default()).expect("builds")
        };
        let planned = |name: &str, version: &str| SystemSpec {
            name: name.to_owned(),
            version: version.to_owned(),
            top_k: 10,
            settings: SystemSettings::new(),
        };
        let facts = built("facts");
        let here = facts.capabilities().version.clone();
        assert_eq!(check_version(facts.as_ref(), &planned("facts", &here)), Ok(()));
        let refused =
            check_version(facts.as_ref(), &planned("facts", "1.0.0+000000000000")).expect_err("another prompt");
        assert!(refused.contains(&here) && refused.contains("given vectors, words of a prompt"), "{refused}");
        // files that were given where none are here
        let vector = check_version(built("vector").as_ref(), &planned("vector", "1.1.0+0123456789abcdef"));
        assert!(vector.is_err_and(|refused| refused.contains("here it is 1.1.0")));
        assert_eq!(check_version(built("bm25").as_ref(), &planned("bm25", "0.9.0")), Ok(()), "no part of its own");
    }
}
