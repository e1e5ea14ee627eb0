//! What other processes do at a run's memory system, by the tasks that they hold, so that a call that comes to a meter beside them can be
//! said to be for it. A look begins after the call has come: what the call is for is still held then, since it waits for the reply.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex as SyncMutex, PoisonError},
    time::Duration,
};

use bench_proto::{
    ids::{RunNo, TaskKey, TaskKind},
    metered::Stage,
    spec::RunSpec,
};
use bench_store::{BankRow, Store, StoreError};
use bench_systems::{adapter, canary::CANARY_BANKS};
use tokio::{
    sync::Mutex,
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};
use tracing::debug;

/// A look rests for so many times as long as it took: looks use a small share of the store.
const REST: u32 = 19;
/// Longest rest, and longest look.
const LONGEST: Duration = Duration::from_millis(500);

/// An operation that may be in flight: its bank, and what it is.
pub(super) type Doing = (u32, Stage);

/// Looks at what is held of a run's tasks.
pub(crate) struct Leased {
    store: Arc<dyn Store>,
    run: RunNo,
    means: Means,
    /// Whoever looks has it.
    turn: Mutex<()>,
    last: SyncMutex<Option<Look>>,
}

/// What was found, and what the look before it had found. `None` where the store did not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    before: Option<Arc<BTreeSet<Doing>>>,
    now: Option<Arc<BTreeSet<Doing>>>,
}

#[derive(Clone)]
struct Look {
    begun: Instant,
    took: Duration,
    seen: Seen,
}

/// A look that is under way.
pub(super) struct Looking {
    task: JoinHandle<Seen>,
    /// The bank that the call names itself.
    named: Option<u32>,
}

/// What the tasks of a run do at its memory system.
#[derive(Debug, Clone, Copy)]
struct Means {
    /// Questions of the dataset.
    asking: Stage,
    /// Banks end with a segment of checks alone.
    closes: bool,
    /// Banks below this number are checked when they are proven ready.
    checked_banks: u32,
}

impl Means {
    fn of_spec(spec: &RunSpec) -> Self {
        let asking = match spec.answerer.provider.as_str() {
            "system" if adapter::searches(&spec.system.settings) => Stage::Unattributed,
            "system" => Stage::Answer,
            _ => Stage::Recall,
        };
        let checked_banks = if spec.canaries.is_some() { 0 } else { CANARY_BANKS };
        Self { asking, closes: spec.closes_banks(), checked_banks }
    }

    /// Whether the bank's row has to be known to say what a task does.
    const fn needs_row(&self, task: TaskKey) -> bool {
        self.closes && matches!(task.kind(), TaskKind::Ready) && task.index() > 0
    }

    /// What a task does; `None` where it asks the memory system nothing.
    fn of_task(&self, task: TaskKey, rows: &[BankRow]) -> Option<Doing> {
        let bank = task.bank();
        let is_closing = || {
            let row = rows.iter().find(|row| row.bank_no == bank);
            row.map(|row| row.closes_with(task.index()))
        };
        let stage = match task.kind() {
            TaskKind::Judge => return None,
            _ if task == TaskKey::PROBE => Stage::Check,
            TaskKind::Retain => Stage::Retain,
            TaskKind::Question => self.asking,
            TaskKind::Ready if self.needs_row(task) => match is_closing() {
                Some(true) => Stage::Check,
                Some(false) => Stage::Consolidate,
                None => Stage::Unattributed,
            },
            TaskKind::Ready if bank < self.checked_banks => Stage::Unattributed,
            TaskKind::Ready => Stage::Consolidate,
        };
        Some((bank, stage))
    }
}

/// Which bank and stage a call is for among what may be in flight: those that all of it agrees on. The probe, whose number no bank of a
/// plan has, asks all banks.
fn agreed<'a>(doing: impl IntoIterator<Item = &'a Doing>, named: Option<u32>) -> (Option<u32>, Stage) {
    let may_be_of = |bank: u32| bank >= TaskKey::MAX_BANKS || named.is_none_or(|named| named == bank);
    let mut doing = doing.into_iter().filter(|(bank, _)| may_be_of(*bank));
    let Some((first, stage)) = doing.next() else { return (named, Stage::Unattributed) };
    let (mut bank, mut stage) = (Some(*first), *stage);
    for (other, other_stage) in doing {
        bank = bank.filter(|bank| bank == other);
        if *other_stage != stage {
            stage = Stage::Unattributed;
        }
    }
    (named.or(bank.filter(|bank| *bank < TaskKey::MAX_BANKS)), stage)
}

impl Seen {
    /// Whom a call is for. A look that ended before the reply was there has seen its operation; one that came later may have missed it,
    /// and is believed where the one before says the same.
    fn attribute(&self, named: Option<u32>, in_time: bool) -> (Option<u32>, Stage) {
        match (&self.now, &self.before) {
            (Some(now), _) if in_time => agreed(now.iter(), named),
            (Some(now), Some(before)) if !now.is_empty() && !before.is_empty() => {
                agreed(now.iter().chain(before.iter()), named)
            }
            _ => (named, Stage::Unattributed),
        }
    }
}

impl Leased {
    pub(super) fn new(store: Arc<dyn Store>, run: RunNo, spec: &RunSpec) -> Self {
        Self { store, run, means: Means::of_spec(spec), turn: Mutex::default(), last: SyncMutex::default() }
    }

    fn last(&self) -> Option<Look> {
        // every change is complete when the lock is dropped
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a call is most likely for that comes now, by the last look that has ended; nothing is waited for.
    pub(super) fn guess(&self, named: Option<u32>) -> (Option<u32>, Stage) {
        let recent = self.last().filter(|look| look.begun.elapsed() < LONGEST);
        recent.map_or((named, Stage::Unattributed), |look| look.seen.attribute(named, true))
    }

    /// Looks for a call that comes now.
    pub(super) fn begin(self: &Arc<Self>, named: Option<u32>) -> Looking {
        let (this, came) = (Arc::clone(self), Instant::now());
        Looking { task: tokio::spawn(async move { this.look(came).await }), named }
    }

    /// A look that began after `came`: calls that come while another is under way share the next one.
    async fn look(&self, came: Instant) -> Seen {
        let _turn = self.turn.lock().await;
        let last = self.last();
        if let Some(look) = &last {
            if look.begun >= came {
                return look.seen.clone();
            }
            sleep_until(look.begun + look.took + (look.took * REST).min(LONGEST)).await;
        }
        let begun = Instant::now();
        let now = match timeout(LONGEST, self.read()).await {
            Ok(Ok(now)) => Some(Arc::new(now)),
            Ok(Err(error)) => {
                debug!("what is worked on could not be read: {error}");
                None
            }
            Err(_) => None,
        };
        let seen = Seen { before: last.and_then(|look| look.seen.now), now };
        let look = Look { begun, took: begun.elapsed(), seen: seen.clone() };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(look);
        seen
    }

    async fn read(&self) -> Result<BTreeSet<Doing>, StoreError> {
        let tasks = self.store.leased(self.run).await?;
        let unknown: BTreeSet<u32> =
            tasks.iter().filter(|task| self.means.needs_row(**task)).map(|task| task.bank()).collect();
        let rows = match unknown.is_empty() {
            true => Vec::new(),
            false => self.store.banks(self.run, Some(&unknown.into_iter().collect::<Vec<_>>())).await?,
        };
        Ok(tasks.into_iter().filter_map(|task| self.means.of_task(task, &rows)).collect())
    }
}

impl Looking {
    /// Whom the call is for, now that its reply has come.
    pub(super) async fn end(self) -> (Option<u32>, Stage) {
        let in_time = self.task.is_finished();
        match self.task.await {
            Ok(seen) => seen.attribute(self.named, in_time),
            // the process ends
            Err(_) => (self.named, Stage::Unattributed),
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_store::conformance::{Scene, bank, store_in};

    use super::*;

    fn seen(before: Option<&[Doing]>, now: &[Doing]) -> Seen {
        let set = |doing: &[Doing]| Arc::new(doing.iter().copied().collect());
        Seen { before: before.map(set), now: Some(set(now)) }
    }

    #[test]
    fn p34_what_one_worker_does_for_one_bank_is_what_a_call_elsewhere_is_for() {
        let (one, other) = ((0, Stage::Retain), (1, Stage::Retain));
        assert_eq!(seen(None, &[one]).attribute(None, true), (Some(0), Stage::Retain));
        assert_eq!(seen(None, &[one, other]).attribute(None, true), (None, Stage::Retain), "two banks");
        assert_eq!(
            seen(None, &[one, other]).attribute(Some(1), true),
            (Some(1), Stage::Retain),
            "its address says which"
        );
        let asking = (0, Stage::Recall);
        assert_eq!(seen(None, &[one, asking]).attribute(None, true), (Some(0), Stage::Unattributed));
        assert_eq!(seen(None, &[]).attribute(Some(4), true), (Some(4), Stage::Unattributed), "in the background");
        assert_eq!(Seen::default().attribute(None, true), (None, Stage::Unattributed), "the store is away");
        let probe = (TaskKey::MAX_BANKS, Stage::Check);
        assert_eq!(seen(None, &[probe]).attribute(None, true), (None, Stage::Check));
        assert_eq!(seen(None, &[probe]).attribute(Some(4), true), (Some(4), Stage::Check), "it asks all banks");
        assert_eq!(seen(None, &[probe, asking]).attribute(Some(0), true), (Some(0), Stage::Unattributed));
    }

    #[tokio::test]
    async fn p34_a_look_finds_what_a_session_elsewhere_holds() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = store_in(folder.path()).await;
        let scene = Scene::start(store.as_ref(), &[bank(0, &[(1, &[0])]), bank(1, &[(1, &[0])])]).await;
        let spec = store.run(scene.run).await.expect("is there").spec;
        let leased = Arc::new(Leased::new(Arc::clone(&store), scene.run, &spec));
        assert_eq!(leased.guess(None), (None, Stage::Unattributed), "nobody has looked yet");
        assert_eq!(leased.begin(None).end().await, (None, Stage::Unattributed), "nothing is held");
        let _ = scene.claim(TaskKey::retain(1, 0)).await;
        let looking = leased.begin(None);
        while !looking.task.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(looking.end().await, (Some(1), Stage::Retain));
    }

    #[tokio::test]
    async fn p34_a_guess_rests_on_the_last_look_while_another_is_under_way() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = store_in(folder.path()).await;
        let scene = Scene::start(store.as_ref(), &[bank(0, &[(1, &[0])])]).await;
        let spec = store.run(scene.run).await.expect("is there").spec;
        let leased = Arc::new(Leased::new(Arc::clone(&store), scene.run, &spec));
        let _ = scene.claim(TaskKey::retain(0, 0)).await;
        let _ = leased.begin(None).end().await;
        let looking = leased.begin(None);
        tokio::task::yield_now().await;
        assert!(!looking.task.is_finished(), "it rests first");
        assert_eq!(leased.guess(None), (Some(0), Stage::Retain));
    }

    #[test]
    fn p34_a_look_that_came_late_is_believed_where_the_one_before_says_the_same() {
        let (one, other) = ((0, Stage::Retain), (1, Stage::Retain));
        assert_eq!(seen(Some(&[one]), &[one]).attribute(None, false), (Some(0), Stage::Retain));
        assert_eq!(seen(Some(&[other]), &[one]).attribute(None, false), (None, Stage::Retain));
        for missing in [seen(None, &[one]), seen(Some(&[]), &[one]), seen(Some(&[one]), &[])] {
            assert_eq!(missing.attribute(None, false), (None, Stage::Unattributed));
        }
    }

    #[test]
    fn p34_a_held_task_says_what_is_done_where_it_does_one_thing() {
        let means = Means { asking: Stage::Recall, closes: false, checked_banks: 0 };
        let stage = |means: Means, task| means.of_task(task, &[]).map(|(_, stage)| stage);
        assert_eq!(stage(means, TaskKey::retain(3, 1)), Some(Stage::Retain));
        assert_eq!(stage(means, TaskKey::ready(3, 1)), Some(Stage::Consolidate));
        assert_eq!(stage(means, TaskKey::question(3, 0)), Some(Stage::Recall));
        assert_eq!(stage(means, TaskKey::judge(3, 0, 0, 0)), None);
        assert_eq!(stage(means, TaskKey::PROBE), Some(Stage::Check));
        let closes = Means { closes: true, ..means };
        assert_eq!(stage(closes, TaskKey::ready(3, 0)), Some(Stage::Consolidate));
        assert_eq!(stage(closes, TaskKey::ready(3, 1)), Some(Stage::Unattributed), "its row is not known");
        let checks = Means { checked_banks: CANARY_BANKS, ..means };
        assert_eq!(stage(checks, TaskKey::ready(0, 0)), Some(Stage::Unattributed), "it may be asked for turns then");
        assert_eq!(stage(checks, TaskKey::ready(CANARY_BANKS, 0)), Some(Stage::Consolidate));
    }
}
