//! Two stores on one database, eight tasks that claim, commit, conclude, sweep and die: the sums come out right.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use bench_proto::{
    call::Phase,
    facts::Outcome,
    ids::{Role, RunNo, TaskKey, TaskKind},
    money::PicoUsd,
    step::{Opens, StepNo, StepRecord},
};
use bench_store::{
    BudgetChange, CommitOutcome, Creation, NewGroup, NewRun, RetryScope, RunState, SessionId, Store, StoreError,
    StoreResult, Want,
    conformance::{HEADLINE, Scene, bank, ending, judged, new_run, proven, question_facts, retained},
    open,
};
use tokio::sync::Mutex;

const BANKS: u32 = 4;
const QUESTIONS: u32 = 30;

/// What a task does, apart from what all do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    Works,
    /// Sweeps between its batches.
    Sweeps,
    /// Ends its session with tasks in hand, and commits what it had anyway.
    Dies,
}

struct Worker {
    store: Arc<dyn Store>,
    run: RunNo,
    number: usize,
    habit: Habit,
    /// Why calls had to be repeated.
    repeated: Arc<Mutex<Vec<String>>>,
}

impl Worker {
    async fn persist<T>(&self, mut call: impl AsyncFnMut() -> StoreResult<T>) -> T {
        loop {
            match call().await {
                Ok(value) => return value,
                Err(error) if error.is_transient() => self.repeated.lock().await.push(error.to_string()),
                Err(error) => panic!("{error:?}"),
            };
        }
    }

    async fn open_session(&self) -> SessionId {
        self.persist(async || self.store.open_session(&format!("w{}", self.number), "local", "{}").await).await
    }

    /// Works until nothing is left.
    async fn work(self) {
        let mut session = self.open_session().await;
        let began = Instant::now();
        for round in 0.. {
            assert!(began.elapsed() < Duration::from_secs(90), "the run does not end");
            if self.habit == Habit::Sweeps {
                let found = self.persist(async || self.store.sweep(self.run).await).await;
                self.conclude(found).await;
            }
            let mut wanted = Vec::new();
            for role in [Role::Judge, Role::Question, Role::Retain] {
                let ready = self.persist(async || self.store.ready_tasks(self.run, role, 1000).await).await;
                wanted.extend(ready.into_iter().map(|ready| (self.run, ready.task)));
            }
            if wanted.is_empty() {
                let row = self.persist(async || self.store.run(self.run).await).await;
                if row.counters.scored == i64::from(BANKS * QUESTIONS) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
                continue;
            }
            // neighbours want overlapping parts, in different orders
            let shift = (self.number * 7 + round) % wanted.len();
            wanted.rotate_left(shift);
            wanted.truncate(6);
            if self.number % 2 == 1 {
                wanted.reverse();
            }
            let claimed = self.persist(async || self.store.claim(session, &wanted).await).await;
            let records: Vec<StepRecord> = claimed.iter().flat_map(|c| self.records(c.task, c.epoch)).collect();
            if self.habit == Habit::Dies && round % 5 == 4 {
                self.persist(async || self.store.end_session(session).await).await;
                session = self.open_session().await;
            }
            let outcome = self.persist(async || self.store.commit(&records).await).await;
            self.conclude(outcome).await;
        }
    }

    /// All of a task; every other question opens two votes.
    fn records(&self, task: TaskKey, epoch: i64) -> Vec<StepRecord> {
        let scene = Scene { store: self.store.as_ref(), run: self.run, session: SessionId(0) };
        let one = |step, facts, opens| vec![ending(self.run, task, step, epoch, facts, opens)];
        match task.kind() {
            // each segment has one stream entry
            TaskKind::Retain => return one(StepNo::retain(task.index()), retained(1), Opens::ReadyTask),
            TaskKind::Ready => return one(StepNo::READY, proven(), Opens::SegmentQuestions),
            TaskKind::Judge => return one(StepNo::JUDGE, judged(1.0), Opens::Nothing),
            TaskKind::Question => {}
        }
        let votes = (0..2).map(|vote| TaskKey::judge(task.bank(), task.index(), 0, vote)).collect();
        let opens = if task.index().is_multiple_of(2) { Opens::Judges(votes) } else { Opens::Nothing };
        scene.whole_question(task, epoch, 1.0, opens)
    }

    async fn conclude(&self, outcome: CommitOutcome) {
        let questions: BTreeSet<TaskKey> = outcome.to_conclude.into_iter().map(|(_, task)| task).collect();
        let facts: Vec<_> =
            questions.into_iter().map(|question| question_facts(question, Outcome::Scored, 1.0)).collect();
        self.persist(async || self.store.store_facts(self.run, HEADLINE, &facts).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_commits_and_sweeps_race_to_the_right_end() {
    let fresh = super::fresh().await;
    let questions: Vec<u32> = (0..QUESTIONS).collect();
    let [first, second, third] = [0, 1, 2].map(|part| &questions[part * 10..][..10]);
    let banks: Vec<_> = (0..BANKS).map(|number| bank(number, &[(1, first), (2, second), (3, third)])).collect();
    let scene = Scene::start(fresh.store.as_ref(), &banks).await;
    let second = open(&fresh.url).await.expect("opens a second time");
    let repeated = Arc::new(Mutex::new(Vec::new()));
    let workers = (0..8).map(|number| {
        let store = if number % 2 == 0 { fresh.store.clone() } else { second.clone() };
        let habit = [Habit::Works, Habit::Sweeps, Habit::Dies, Habit::Works][number / 2];
        Worker { store, run: scene.run, number, habit, repeated: repeated.clone() }.work()
    });
    futures::future::join_all(workers).await;
    let all = i64::from(BANKS * QUESTIONS);
    let counters = scene.counters().await;
    assert_eq!((counters.answered, counters.scored, counters.banks_ready), (all, all, i64::from(BANKS)));
    assert_eq!(counters.entries_retained, i64::from(BANKS) * 3);
    assert!((counters.headline_sum - all as f64).abs() < 1e-9);
    for number in 0..BANKS {
        assert_eq!(scene.bank(number).await.open_recalls, 0);
    }
    assert_eq!(fresh.store.facts(scene.run, None, 1000).await.expect("are read").len(), all as usize);
    let third = open(&fresh.url).await.expect("a process that has never swept");
    let swept = third.sweep(scene.run).await.expect("sweeps in full");
    assert_eq!((swept.opened, swept.to_conclude), (vec![], vec![]));
    assert_eq!(scene.counters().await, counters, "counting again finds the same");
    let deadlocks: Vec<String> = repeated.lock().await.drain(..).filter(|why| why.contains("deadlock")).collect();
    assert_eq!(deadlocks, [] as [&str; 0], "locks are taken in one order");
}

/// What two processes do at once happens once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_change_at_once_is_made_once() {
    let fresh = super::fresh().await;
    let second = open(&fresh.url).await.expect("opens a second time");
    let questions: Vec<u32> = (0..20).collect();
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &questions)])]).await;
    let again = new_run("r");
    let (one, two) = tokio::join!(fresh.store.create_run(&again), second.create_run(&again));
    assert!(matches!((one, two), (Err(StoreError::Exists(_)), Err(StoreError::Exists(_)))));
    let other = new_run("other");
    let (one, two) = tokio::join!(fresh.store.create_or_find(&other, &[]), second.create_or_find(&other, &[]));
    let (made, found) = match (one.expect("answers"), two.expect("answers")) {
        (Creation::Made(made), Creation::Found(found)) | (Creation::Found(found), Creation::Made(made)) => {
            (made, found)
        }
        both => panic!("one of them creates it, and the other is told of that one: {both:?}"),
    };
    assert_eq!((found.run_no, found.run_id), (made, other.run_id));
    scene.make_ready(0, 1).await;
    for index in 0..20 {
        let question = TaskKey::question(0, index);
        scene.give_up(question, "timeout").await;
        scene.conclude(question, Outcome::InfraError, 0.0).await;
    }
    let (store, run, scope) = (scene.store, scene.run, RetryScope::Errors);
    let (one, two) = tokio::join!(store.reopen(run, scope), second.reopen(run, scope));
    assert_eq!(one.expect("reopens") + two.expect("reopens"), 20);
    assert_eq!(scene.counters().await.infra_error, 0);
    assert_eq!(scene.ready(Role::Question).await.len(), 20);
    let (from, to) = (&[RunState::Running][..], RunState::Paused);
    let (one, two) = tokio::join!(store.set_run_state(run, from, to, None), second.set_run_state(run, from, to, None));
    assert!(one.expect("answers") ^ two.expect("answers"), "one of them paused it");
}

/// A run may take minutes to delete: nobody waits meanwhile for what its group and its day have, and whoever resumes it keeps it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p41_who_deletes_a_run_keeps_the_others_of_its_group_from_nothing() {
    let fresh = super::fresh().await;
    let store = fresh.store.as_ref();
    let owner = open(&fresh.url).await.expect("the owner opens it");
    let in_group = |id| {
        let group = Some(NewGroup { id: "g".to_owned(), cap: Some(PicoUsd(100)) });
        NewRun { group, ..new_run(id) }
    };
    let gone = store.create_run(&in_group("gone")).await.expect("is created");
    let stays = store.create_run(&in_group("stays")).await.expect("is created");
    let session = store.open_session("w", "local", "{}").await.expect("opens");
    let reserve = async |run| {
        let want = Want { attempt: uuid::Uuid::now_v7(), phase: Phase::Answer, amount: PicoUsd(10) };
        let change = BudgetChange { run, session, release: vec![], lose: vec![], wants: vec![want] };
        let reserving = tokio::time::timeout(Duration::from_secs(10), store.change_budget(&change));
        let answer = reserving.await.expect("nobody holds the group").expect("answers");
        assert_eq!(answer.refused, []);
    };
    let set = async |from, to| store.set_run_state(gone, &[from], to, None).await.expect("answers");
    reserve(gone).await;
    assert!(set(RunState::Running, RunState::Paused).await);
    // it takes its time: somebody holds one of its rows
    let mut holding = super::raw(&fresh.url).await;
    let hold = format!("BEGIN; SELECT kind FROM run_events WHERE run_no = {} FOR UPDATE", gone.0);
    super::change(&mut holding, sqlx::AssertSqlSafe(hold)).await;
    let deleting = tokio::spawn({
        let owner = Arc::clone(&owner);
        async move { owner.delete_runs(&[gone]).await }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!deleting.is_finished());
    reserve(stays).await;
    assert!(set(RunState::Paused, RunState::Running).await);
    super::change(&mut holding, "ROLLBACK").await;
    assert!(!deleting.await.expect("ends").expect("answers"), "it runs again");
    let events = store.events(gone).await.expect("are read");
    assert_eq!(events.last().map(|event| event.kind.as_str()), Some("resumed"));
    assert!(set(RunState::Running, RunState::Paused).await && owner.delete_runs(&[gone]).await.expect("is deleted"));
    let group = store.group(stays).await.expect("is read").expect("is there");
    assert_eq!((group.cap, group.reserved), (Some(PicoUsd(90)), PicoUsd(10)), "what was reserved may have been paid");
    owner.close().await;
}
