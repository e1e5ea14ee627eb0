//! What stands between a task and a memory system that is another process: a deadline for every operation, a bound on how many
//! are in flight, the route of each operation (P39, P40), and a look at what is lost when a recall comes back empty.
//!
//! In: the operations of a memory system. Out: the same, or a failure that counts, or one that says when to come again. Start with
//! `Guarded::guarded`; `probe` finds out whether a route works again.
//!
//! A failure on the way is tried again here, as calls of models are, until it is known whether it counts: then the task has
//! failed, or it is put off and nothing is counted. What cannot be repeated waits for that instead. The way to a server is a
//! route of all workers; what this process has started itself has routes of its own.

mod probe;
mod started_again;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_models::{
    caller::CallSettings,
    classify,
    routes::{NotNow, Route, Routes, Way},
    stop::StopFlag,
};
use bench_proto::{
    dataset::StreamEntry,
    failure::{
        Failure, FailureClass,
        code::{MEMORIES_LOST, SYSTEM_UNAVAILABLE},
    },
    ids::Sha256Hash,
    metered::Stage,
    outage::{Operation, RouteKey},
    server::ServerAddress,
};
use bench_store::{RunRow, Runs, Store};
use bench_systems::{
    BankRef, Capabilities, Consolidation, Counted, ListCursor, ListedPage, MemorySystem, NativeAnswer, Prepared,
    Readiness, Recall, RecallQuery, RetainReceipt, StepContext, SystemStats,
    adapter::{NO_REPLY, UNREACHABLE},
    filled_again::{self, Held},
};
use tokio::sync::Semaphore;

use self::{probe::SystemProbe, started_again::StartedAgain};
use crate::{
    banks::BankCache,
    metering::{MeteredRun, Running},
    routes::memory_route,
};

/// Code of the same of an operation that may have been carried out and cannot be repeated.
pub(crate) const AWAY_IN_DOUBT: &str = "system_away";
/// Code of the failure of an operation that had to wait, of which it turned out meanwhile that what it met counts.
const FAILED_BEFORE: &str = "system_failed_before";
/// Code of a system that says itself that it will do later.
const BUSY: &str = "system_http_503";
/// Longest wait for what a system says about itself.
const STATISTICS_WITHIN: Duration = Duration::from_secs(10);
/// How long ending a system waits for operations in flight.
const CLOSE_WAIT: Duration = Duration::from_secs(30);
/// How long something that cannot be repeated waits until it is known whose fault its failure was.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);
/// For so long a system that this process has started may be away before the run is paused.
const LONGEST_AWAY: Duration = Duration::from_secs(600);
/// When a task may come again that waits for nothing that is known to last.
const COME_AGAIN: Duration = Duration::from_millis(500);

/// A memory system behind its guard.
pub(crate) struct Guarded {
    system: Arc<dyn MemorySystem>,
    name: String,
    /// The route of each operation; its prober lives as long as the system may be asked for this run.
    ways: BTreeMap<Operation, (Arc<Route>, Arc<SystemProbe>)>,
    stop: StopFlag,
    calls: CallSettings,
    active: AtomicUsize,
    /// Operations in flight in this process, when the system has a limit, and where it is noted what it is doing: then what waits for
    /// a system that does one thing after the other waits here, and is not taken for what it does.
    slots: Option<Semaphore>,
    /// Where it is noted what the system is doing, in a metered run, and what its calls have met elsewhere.
    metered: Option<Arc<MeteredRun>>,
    /// What its banks have to hold is known: not so of one that was there before the run.
    counts: bool,
    /// What is noted of its processes.
    again: StartedAgain,
}

/// What a guard needs of its surroundings.
pub(crate) struct Surroundings<'a> {
    pub(crate) run: &'a RunRow,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) banks: Arc<BankCache>,
    pub(crate) routes: &'a Arc<Routes>,
    pub(crate) stop: StopFlag,
    pub(crate) calls: CallSettings,
    pub(crate) metered: Option<Arc<MeteredRun>>,
}

/// An operation, as its route knows it.
struct Asked {
    operation: Operation,
    /// Name of the operation, for messages.
    what: &'static str,
    /// Name of the bank in the system.
    bank: String,
    /// Identity of the call: the same for every try of the task.
    call: Sha256Hash,
    /// Trying again does no harm.
    repeats: bool,
    /// The system is asked anything at all; otherwise that it went well says nothing.
    asks: bool,
    /// No question of the dataset asks.
    is_check: bool,
}

impl Asked {
    fn new(operation: Operation, what: &'static str, bank: &BankRef, of: &str) -> Self {
        let name = bank.name.clone();
        // a new generation is another try of the same task
        let bank = bank.name.rsplit_once("-g").map_or(bank.name.as_str(), |(bank, _)| bank);
        let call = Sha256Hash::of_bytes(format!("{what} {bank} {of}").as_bytes());
        Self { operation, what, bank: name, call, repeats: true, asks: true, is_check: false }
    }

    /// What the system does meanwhile, as its own calls are counted.
    fn stage(&self) -> Stage {
        match self.operation {
            _ if self.is_check => Stage::Check,
            Operation::Retain => Stage::Retain,
            Operation::Ready => Stage::Consolidate,
            Operation::Recall => Stage::Recall,
            Operation::Answer => Stage::Answer,
        }
    }
}

/// The failures of an operation, by when they were sent, while nobody knows whether they count.
struct Tries<'a> {
    route: &'a Route,
    call: Sha256Hash,
    pending: Vec<Instant>,
}

impl Tries<'_> {
    /// Whether one of them has turned out to be the operation's own.
    fn count(&mut self) -> bool {
        self.route.decide(&mut self.pending).0 > 0
    }

    /// Leaves them for the next try of the task.
    fn keep(&mut self) {
        self.route.keep(self.call, std::mem::take(&mut self.pending));
    }
}

impl Guarded {
    /// Puts a guard around systems that need one.
    pub(crate) fn around(system: Arc<dyn MemorySystem>, around: Surroundings<'_>) -> Arc<dyn MemorySystem> {
        if !system.capabilities().remote {
            return system;
        }
        let Surroundings { run, store, banks, routes, stop, calls, metered } = around;
        let spec = &run.spec.system;
        let again = StartedAgain::new(Arc::clone(&store) as Arc<dyn Runs>, run.run_no);
        let way = |operation: Operation| {
            let route = match memory_route(spec, operation) {
                Some(key) => routes.route(&key),
                None => {
                    let (system, place) = (spec.name.clone(), system.place());
                    routes.own_route(&RouteKey::Memory { operation, place, system })
                }
            };
            let (system, store, banks) = (Arc::clone(&system), Arc::clone(&store), Arc::clone(&banks));
            let (run, is_own) = (run.run_no, route.is_own());
            let in_flight = metered.as_ref().map(|metered| Arc::clone(&metered.in_flight));
            let probe = Arc::new(SystemProbe { system, operation, run, store, banks, is_own, in_flight });
            let prober: Weak<SystemProbe> = Arc::downgrade(&probe);
            route.can_be_probed_by(prober);
            (operation, (route, probe))
        };
        let ways = Operation::ALL.into_iter().map(way).collect();
        let name = format!("{}@{}", spec.name, system.place());
        let slots = slots(system.capabilities(), metered.is_some()).map(|most| Semaphore::new(most as usize));
        let counts = run.spec.taken_over.bank.is_none();
        let active = AtomicUsize::new(0);
        Arc::new(Self { slots, system, name, ways, stop, calls, active, metered, counts, again })
    }

    /// Carries an operation out, again and again while it fails on the way and nobody knows whose fault that is.
    async fn guarded<T, F>(&self, asked: Asked, work: impl Fn() -> F + Send + Sync) -> Result<T, Failure>
    where
        T: Send,
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let Some((route, _)) = self.ways.get(&asked.operation) else { return self.timed(asked.what, work()).await };
        let mut tries = Tries { route, call: asked.call, pending: route.kept(&asked.call) };
        let (mut delays, mut last) = (self.calls.backoff.delays(), None::<Failure>);
        loop {
            if tries.count() {
                return Err(last.unwrap_or_else(|| {
                    let what = asked.what;
                    let name = &self.name;
                    Failure::transient(
                        FAILED_BEFORE,
                        format!(
                            "{what}: {name} failed at it while it was there for others, which counts as a failure of its own: its log says why"
                        ),
                    )
                }));
            }
            self.find_way(&mut tries).await?;
            let slot = match &self.slots {
                Some(slots) => slots.acquire().await.ok(),
                None => None,
            };
            let Some(sent) = route.send() else { continue };
            let running = self.metered.as_ref().map(|of| Arc::new(of.in_flight.enter(&asked.bank, asked.stage())));
            let result = self.timed(asked.what, noting(running.as_ref(), work())).await;
            drop((slot, running));
            self.again.note(self.system.started_again()).await;
            let failure = match result {
                Err(failure) => failure,
                done => {
                    sent.end(if asked.asks { Way::Through } else { Way::Other }, None);
                    return done;
                }
            };
            if let Some(metered) = &self.metered {
                // a call that it is due to may have met the meter of another process
                metered.hear().await;
            }
            let way = way_of(&failure, route.is_own());
            let Some(at) = sent.end(way, Some(&failure)) else { return Err(failure) };
            if way == Way::Refused && route.is_alone() && !route.ever_worked() {
                return Err(failure);
            }
            if !asked.repeats && route.is_own() && failure.code != BUSY {
                // whether another instance does better is found out by trying
                return Err(failure);
            }
            tries.pending.push(at);
            if !asked.repeats {
                return Err(self.settle(tries, failure).await);
            }
            let asked_for = failure.retry_after_ms.map(Duration::from_millis);
            let delay = delays.next_delay(asked_for);
            if asked_for.is_some_and(|asked_for| asked_for > self.calls.patience) {
                if tries.count() {
                    return Err(failure);
                }
                tries.keep();
                return Err(come_again(SYSTEM_UNAVAILABLE, delay, failure.message));
            }
            last = Some(failure);
            if self.stop.unless_stopped(tokio::time::sleep(delay)).await.is_err() {
                tries.keep();
                return Err(come_again(SYSTEM_UNAVAILABLE, COME_AGAIN, "the run or the worker stops".to_owned()));
            }
        }
    }

    /// Waits until the route may be used, as long as that is worth a slot.
    async fn find_way(&self, tries: &mut Tries<'_>) -> Result<(), Failure> {
        let route = tries.route;
        let found = self.stop.unless_stopped(route.wait(self.calls.patience)).await;
        let (wait, reason) = match found {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(NotNow { wait, reason })) => (wait, format!("{} is away: {reason}", route.key())),
            Err(_) => (COME_AGAIN, "the run or the worker stops".to_owned()),
        };
        tries.count();
        tries.keep();
        if route.own_outage().is_some_and(|away| away > LONGEST_AWAY) {
            return Err(Failure::terminal(SYSTEM_UNAVAILABLE, format!("{reason}; mend it, then resume the run")));
        }
        Err(come_again(SYSTEM_UNAVAILABLE, wait, reason))
    }

    /// What the failure means of an operation that cannot be tried again: its route is looked into at once.
    async fn settle(&self, mut tries: Tries<'_>, failure: Failure) -> Failure {
        let begun = Instant::now();
        while begun.elapsed() < SETTLED_WITHIN && self.stop.cause().is_none() {
            if tries.count() {
                return failure;
            }
            if tries.pending.is_empty() {
                break;
            }
            // what others have found out since may have been about other failures
            tries.route.doubt();
            tries.route.news().await;
        }
        tries.keep();
        come_again(AWAY_IN_DOUBT, COME_AGAIN, failure.message)
    }

    async fn timed<T>(&self, what: &'static str, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        self.active.fetch_add(1, Ordering::SeqCst);
        let _active = Active(&self.active);
        match self.system.capabilities().deadline {
            None => work.await,
            Some(deadline) => tokio::time::timeout(deadline, work).await.unwrap_or_else(|_| {
                let seconds = deadline.as_secs();
                Err(Failure::transient("system_timeout", format!("{what}: {} hangs for {seconds} s", self.name)))
            }),
        }
    }

    /// Searches, and looks whether anything is lost where nothing was found.
    async fn search(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        let recall = self.system.recall(bank, query).await?;
        if recall.hits.is_empty()
            && self.counts
            && self.capabilities().recalls
            && self.capabilities().verifies
            && let Some(counted) = self.system.verify(bank, query.visible_entries).await?
            && let Some(failure) = lost(bank, counted)
        {
            return Err(failure);
        }
        Ok(recall)
    }
}

/// Carries an operation out, of which it is noted when it fills its bank first.
async fn noting<F: Future>(running: Option<&Arc<Running>>, operation: F) -> F::Output {
    let Some(running) = running.cloned() else { return operation.await };
    filled_again::noting(Arc::new(move || Box::new(running.filling()) as Held), operation).await
}

/// Operations that may be in flight in this process; any number when absent.
fn slots(can: &Capabilities, is_metered: bool) -> Option<u32> {
    let alone = (is_metered && can.one_at_a_time).then_some(1);
    alone.or(can.max_parallel)
}

fn come_again(code: &str, after: Duration, why: String) -> Failure {
    let mut failure = Failure::transient(code, why);
    failure.retry_after_ms = Some(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
    failure
}

struct Active<'a>(&'a AtomicUsize);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What a failure says about the way to the system. A system that this process has started refuses nobody but it.
fn way_of(failure: &Failure, is_own: bool) -> Way {
    match (failure.class, failure.code.as_str()) {
        (FailureClass::Transient, UNREACHABLE | "system_connection") if classify::lacks(&failure.message) => {
            Way::OwnFault
        }
        (
            FailureClass::Transient,
            UNREACHABLE | "system_connection" | "system_timeout" | "system_cut_off" | NO_REPLY,
        ) => Way::Failed,
        (FailureClass::Transient, code) if code.starts_with("system_http_5") || code == "system_http_408" => {
            Way::Failed
        }
        (FailureClass::Terminal, "system_auth") if !is_own => Way::Refused,
        _ => Way::Other,
    }
}

/// Whether nothing can be said against the task: it waits until the system is back.
pub(crate) fn is_away(failure: &Failure) -> bool {
    failure.class == FailureClass::Transient && matches!(failure.code.as_str(), SYSTEM_UNAVAILABLE | AWAY_IN_DOUBT)
}

/// What is wrong with a count, when something is.
pub(crate) fn lost(bank: &BankRef, counted: Counted) -> Option<Failure> {
    (counted.found < counted.expected).then(|| {
        Failure::permanent(
            MEMORIES_LOST,
            format!(
                "bank {} holds {} of {} items that were stored in it",
                bank.bank_id, counted.found, counted.expected
            ),
        )
    })
}

#[async_trait]
impl MemorySystem for Guarded {
    fn capabilities(&self) -> &Capabilities {
        self.system.capabilities()
    }

    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
        let asks = self.capabilities().opens;
        let asked = Asked { asks, ..Asked::new(Operation::Retain, "open", bank, "") };
        self.guarded(asked, || self.system.open_bank(bank)).await
    }

    fn together(&self, entries: &[StreamEntry]) -> usize {
        self.system.together(entries)
    }

    async fn retain(
        &self,
        bank: &BankRef,
        entries: &[StreamEntry],
        step: StepContext<'_>,
    ) -> Result<RetainReceipt, Failure> {
        self.system.on_this_machine(bank)?;
        let first = entries.first().map_or("", StreamEntry::id);
        let repeats = self.capabilities().retain_idempotent;
        let asked = Asked { repeats, ..Asked::new(Operation::Retain, "retain", bank, first) };
        self.guarded(asked, || self.system.retain(bank, entries, step)).await
    }

    async fn readiness(&self, bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
        self.system.on_this_machine(bank)?;
        let asks = self.capabilities().asked_ready;
        let asked = Asked { asks, ..Asked::new(Operation::Ready, "ready", bank, "") };
        self.guarded(asked, || self.system.readiness(bank, entries)).await
    }

    /// A part of the operation that follows: its failure counts as that one's, its success says nothing about it.
    async fn prepare(&self, bank: &BankRef, query: Option<&RecallQuery<'_>>) -> Result<Prepared, Failure> {
        self.system.on_this_machine(bank)?;
        let (operation, of) = query.map_or((Operation::Retain, ""), |query| (Operation::Recall, query.question_id));
        let is_check = query.is_some_and(|query| query.is_check);
        let asked = Asked { asks: false, is_check, ..Asked::new(operation, "prepare", bank, of) };
        self.guarded(asked, || self.system.prepare(bank, query)).await
    }

    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        self.system.on_this_machine(bank)?;
        let asks = self.capabilities().recalls;
        let is_check = query.is_check;
        let asked = Asked { asks, is_check, ..Asked::new(Operation::Recall, "recall", bank, query.question_id) };
        self.guarded(asked, || self.search(bank, query)).await
    }

    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure> {
        self.system.on_this_machine(bank)?;
        self.timed("reset", self.system.reset_bank(bank)).await
    }

    async fn health(&self) -> Result<String, Failure> {
        self.system.health().await
    }

    async fn consolidate(&self, bank: &BankRef) -> Result<Consolidation, Failure> {
        self.system.on_this_machine(bank)?;
        let asked = Asked::new(Operation::Ready, "consolidate", bank, "");
        self.guarded(asked, || self.system.consolidate(bank)).await
    }

    async fn answer(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<NativeAnswer, Failure> {
        self.system.on_this_machine(bank)?;
        let asked = Asked::new(Operation::Answer, "answer", bank, query.question_id);
        self.guarded(asked, || self.system.answer(bank, query)).await
    }

    async fn verify(&self, bank: &BankRef, entries: u32) -> Result<Option<Counted>, Failure> {
        if !self.capabilities().verifies {
            return Ok(None);
        }
        self.system.on_this_machine(bank)?;
        if !self.counts {
            return Ok(None);
        }
        let asked = Asked::new(Operation::Ready, "verify", bank, "");
        self.guarded(asked, || self.system.verify(bank, entries)).await
    }

    async fn list(&self, bank: &BankRef, entries: u32, from: &ListCursor) -> Result<ListedPage, Failure> {
        self.system.on_this_machine(bank)?;
        let from_here = from.listed.to_string();
        let asked = Asked { is_check: true, ..Asked::new(Operation::Recall, "list", bank, &from_here) };
        self.guarded(asked, || self.system.list(bank, entries, from)).await
    }

    /// Without a route: what is only said for the report says nothing about whether the system works.
    async fn statistics(&self, bank: &BankRef) -> Result<SystemStats, Failure> {
        self.system.on_this_machine(bank)?;
        let asked = tokio::time::timeout(STATISTICS_WITHIN, self.system.statistics(bank)).await;
        asked.unwrap_or_else(|_| Err(Failure::transient("system_timeout", "statistics: no reply in time")))
    }

    fn on_this_machine(&self, bank: &BankRef) -> Result<(), Failure> {
        self.system.on_this_machine(bank)
    }

    fn place(&self) -> String {
        self.system.place()
    }

    async fn server(&self, bank: &BankRef) -> Option<ServerAddress> {
        self.system.server(bank).await
    }

    async fn close(&self) {
        let asked = Instant::now();
        while self.active.load(Ordering::SeqCst) > 0 && asked.elapsed() < CLOSE_WAIT {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.again.note(self.system.started_again()).await;
        self.system.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metering::InFlight;

    #[test]
    fn p39_failures_on_the_way_to_a_memory_server_are_told_from_refusals_and_from_its_own_words() {
        let transient = |code: &str| way_of(&Failure::transient(code, "words"), false);
        for code in [UNREACHABLE, "system_connection", "system_timeout", "system_cut_off", NO_REPLY] {
            assert_eq!(transient(code), Way::Failed, "{code}");
        }
        for code in ["system_http_500", "system_http_503", "system_http_522", "system_http_408"] {
            assert_eq!(transient(code), Way::Failed, "{code}");
        }
        for code in ["system_http_429", "system_shape", SYSTEM_UNAVAILABLE, MEMORIES_LOST, "system_partial_batch"] {
            assert_eq!(transient(code), Way::Other, "{code}");
        }
        let full = Failure::transient(UNREACHABLE, "recall: cannot connect: Too many open files (os error 24)");
        assert_eq!(way_of(&full, false), Way::OwnFault);
        let refused = Failure::terminal("system_auth", "status 401");
        assert_eq!([false, true].map(|is_own| way_of(&refused, is_own)), [Way::Refused, Way::Other]);
        assert_eq!(way_of(&Failure::permanent("system_http_404", "no such bank"), false), Way::Other);
    }

    #[test]
    fn p34_what_waits_for_a_metered_class_is_not_what_the_class_does() {
        let any = Capabilities::from_items("1");
        let class = Capabilities { one_at_a_time: true, ..any.clone() };
        let server = Capabilities { max_parallel: Some(4), ..any.clone() };
        let of = |can: &Capabilities| [true, false].map(|is_metered| slots(can, is_metered));
        assert_eq!([of(&any), of(&class), of(&server)], [[None, None], [Some(1), None], [Some(4), Some(4)]]);
    }

    #[tokio::test]
    async fn p34_what_a_recall_spends_on_filling_its_bank_is_no_part_of_asking() {
        let in_flight = Arc::new(InFlight::default());
        in_flight.name("bench-7-g1", 0);
        let running = Arc::new(in_flight.enter("bench-7-g1", Stage::Recall));
        let recall = async {
            let before = in_flight.attribute(None);
            let filling = filled_again::begins();
            let meanwhile = in_flight.attribute(None);
            drop(filling);
            [before, meanwhile, in_flight.attribute(None)]
        };
        let seen = noting(Some(&running), recall).await;
        assert_eq!(seen, [Stage::Recall, Stage::Retain, Stage::Recall].map(|stage| (Some(0), stage)));
        drop(running);
        assert_eq!(in_flight.attribute(None), (None, Stage::Unattributed), "nothing is left of it");
        assert!(noting(None, async { filled_again::begins().is_none() }).await, "without a meter nobody looks");
    }

    #[test]
    fn p5_a_new_generation_is_another_try_of_the_same_operation() {
        let bank = |name: &str| BankRef {
            name: name.to_owned(),
            handle: None,
            bank_id: "conv-1".to_owned(),
            content_hash: Sha256Hash::of_bytes(b""),
            content: None,
        };
        let call = |name: &str, of: &str| Asked::new(Operation::Retain, "retain", &bank(name), of).call;
        assert_eq!(call("bench-12-g1", "s1"), call("bench-12-g2-i83", "s1"));
        assert_ne!(call("bench-12-g1", "s1"), call("bench-12-g1", "s2"));
        assert_ne!(call("bench-12-g1", "s1"), call("bench-13-g1", "s1"));
    }
}
