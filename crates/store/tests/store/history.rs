//! P27: histories through the pure transition function and through a store must leave equal rows. Every event is tried in
//! every state with the current, an old and a future epoch; random histories of a few tasks follow.

use std::sync::Arc;

use bench_proto::{
    ids::{Role, RunNo, TaskKey},
    step::{Opens, StepNo},
    task::{TaskEvent, TaskState, transition},
};
use bench_store::{
    Release, RetryScope, SessionId, Store,
    conformance::{HEADLINE, Scene, bank, failing, question_facts, recalled, record},
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use tokio::runtime::Runtime;

const TASKS: u32 = 3;
const SESSIONS: usize = 2;

/// State, epoch, attempts and losses of a question's row.
pub(crate) type Core = (i64, i64, i64, i64);

/// Something that happens to a question.
#[derive(Debug, Clone, Copy)]
struct Happening {
    task: u32,
    event: TaskEvent,
    /// Its epoch minus the current one.
    epoch: i64,
    /// The session that claims, or dies.
    session: usize,
}

impl Happening {
    const fn new(task: u32, event: TaskEvent, epoch: i64) -> Self {
        Self { task, event, epoch, session: 0 }
    }

    /// Whether it happens to all tasks: banks and users' retries know no single ones, a session loses all of its leases.
    const fn is_for_all(self) -> bool {
        matches!(self.event, TaskEvent::LoseLease | TaskEvent::BankFailed | TaskEvent::Reopen)
    }
}

/// Random histories of a few tasks.
fn histories() -> impl Strategy<Value = Vec<Happening>> {
    // a claim stands behind most legal events: it comes more often
    let event = prop_oneof![
        8 => Just(TaskEvent::Claim),
        1 => Just(TaskEvent::Finish),
        2 => Just(TaskEvent::Retry),
        2 => Just(TaskEvent::Park),
        2 => Just(TaskEvent::LoseLease),
        2 => Just(TaskEvent::GiveUp),
        1 => Just(TaskEvent::BankFailed),
        2 => Just(TaskEvent::Reopen),
    ];
    let epoch = prop_oneof![6 => Just(0), 2 => Just(-1), 1 => Just(1)];
    let happening = (0..TASKS, event, epoch, 0..SESSIONS).prop_map(|(task, event, epoch, session)| Happening {
        task,
        event,
        epoch,
        session,
    });
    prop::collection::vec(happening, 1..40)
}

/// One history for each state, event and kind of epoch.
fn systematic() -> Vec<Vec<Happening>> {
    // an old epoch is one that was current before
    let begin = [TaskEvent::Claim, TaskEvent::Park];
    let into = |state| match state {
        TaskState::Ready => &[][..],
        TaskState::Leased => &[TaskEvent::Claim],
        TaskState::Done => &[TaskEvent::Claim, TaskEvent::Finish],
        TaskState::Failed => &[TaskEvent::Claim, TaskEvent::GiveUp],
    };
    let mut all = Vec::new();
    for state in TaskState::ALL {
        for event in TaskEvent::ALL {
            for epoch in [0, -1, 1] {
                let events = begin.iter().chain(into(state)).map(|event| Happening::new(0, *event, 0));
                all.push(events.chain([Happening::new(0, event, epoch)]).collect());
            }
        }
    }
    all
}

/// A task as the pure function sees it.
#[derive(Debug, Clone, Copy)]
struct Model {
    state: TaskState,
    epoch: i64,
    attempts: i32,
    losses: i32,
    holder: Option<usize>,
}

impl Model {
    fn apply(&mut self, happening: Happening) {
        let is_current = happening.epoch == 0 || happening.is_for_all();
        if happening.event == TaskEvent::LoseLease && self.holder != Some(happening.session) {
            return;
        }
        let Some(t) = transition(self.state, happening.event, is_current) else {
            return;
        };
        self.state = t.to;
        self.epoch += t.counts.0;
        self.attempts += t.counts.1;
        self.losses += t.counts.2;
        self.holder = (t.to == TaskState::Leased).then_some(happening.session);
        if happening.event == TaskEvent::Reopen {
            (self.attempts, self.losses) = (0, 0); // retry starts with fresh counters
        }
    }

    fn core(&self) -> Core {
        (i64::from(self.state.code()), self.epoch, i64::from(self.attempts), i64::from(self.losses))
    }
}

/// Drives all histories through the function and a store; `rows` reads the questions of a run.
pub(crate) fn agree(runtime: &Runtime, store: &Arc<dyn Store>, cases: u32, rows: impl AsyncFn(RunNo) -> Vec<Core>) {
    for (number, history) in systematic().iter().enumerate() {
        runtime.block_on(drive(store.as_ref(), &format!("s{number}"), history, &rows));
    }
    let number = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&histories(), |history| {
        number.set(number.get() + 1);
        runtime.block_on(drive(store.as_ref(), &format!("h{}", number.get()), &history, &rows));
        Ok(())
    });
    checked.expect("all histories agree");
}

/// Drives one history; compares all rows after every happening.
async fn drive(store: &dyn Store, run_id: &str, history: &[Happening], rows: &impl AsyncFn(RunNo) -> Vec<Core>) {
    let run = store.create_run(&bench_store::conformance::new_run(run_id)).await.expect("is created");
    let questions: Vec<u32> = (0..TASKS).collect();
    // the second segment is there to fail: it opens when the recalls of the first are stored
    store.add_banks(run, &[bank(0, &[(1, &questions), (2, &[])])]).await.expect("are added");
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(store.open_session("w", "local", "{}").await.expect("opens"));
    }
    let scene = Scene { store, run, session: sessions[0] };
    scene.make_ready(0, 1).await;
    assert_eq!(scene.ready(Role::Question).await.len(), TASKS as usize);
    let recall = |index| record(run, TaskKey::question(0, index), StepNo::RECALL, 0, recalled());
    scene.commit(&questions.iter().map(|index| recall(*index)).collect::<Vec<_>>()).await;
    let fresh = Model { state: TaskState::Ready, epoch: 0, attempts: 0, losses: 0, holder: None };
    let mut models = vec![fresh; TASKS as usize];
    for happening in history {
        let task = TaskKey::question(0, happening.task);
        let epoch = models[happening.task as usize].epoch + happening.epoch;
        apply(store, run, &mut sessions, *happening, task, epoch).await;
        for (index, model) in models.iter_mut().enumerate() {
            if happening.is_for_all() || index == happening.task as usize {
                model.apply(*happening);
            }
        }
        let expected: Vec<Core> = models.iter().map(Model::core).collect();
        assert_eq!(rows(run).await, expected, "after {happening:?} of {history:?}");
    }
}

async fn apply(
    store: &dyn Store,
    run: RunNo,
    sessions: &mut [SessionId],
    happening: Happening,
    task: TaskKey,
    epoch: i64,
) {
    let session = &mut sessions[happening.session];
    match happening.event {
        TaskEvent::Claim => drop(store.claim(*session, &[(run, task)]).await.expect("answers")),
        TaskEvent::Finish => {
            let facts = bench_store::conformance::scored(1.0);
            let last = bench_store::conformance::ending(run, task, StepNo::SCORE, epoch, facts, Opens::Nothing);
            drop(store.commit(&[last]).await.expect("answers"));
        }
        event @ (TaskEvent::Retry | TaskEvent::Park) => {
            let release = Release { run, task, epoch, event, delay_ms: 0, reason: None };
            store.release(&[release]).await.expect("answers");
        }
        TaskEvent::LoseLease => {
            store.end_session(*session).await.expect("answers");
            *session = store.open_session("w", "local", "{}").await.expect("opens");
        }
        TaskEvent::GiveUp => fail(store, run, task, epoch).await,
        TaskEvent::BankFailed => {
            // whatever the bank would do next fails; a bank that has failed does nothing
            let next = store.ready_tasks(run, Role::Retain, 1).await.expect("are read");
            for bank_task in next {
                let claimed = store.claim(*session, &[(run, bank_task.task)]).await.expect("answers");
                fail(store, run, bank_task.task, claimed[0].epoch).await;
            }
        }
        TaskEvent::Reopen => drop(store.reopen(run, RetryScope::Errors).await.expect("answers")),
    }
}

/// Gives a task up, and concludes the questions that end with it.
async fn fail(store: &dyn Store, run: RunNo, task: TaskKey, epoch: i64) {
    let outcome = store.commit(&[failing(run, task, epoch, "given_up")]).await.expect("answers");
    for (_, question) in outcome.to_conclude {
        let facts = question_facts(question, bench_proto::facts::Outcome::InfraError, 0.0);
        store.store_facts(run, HEADLINE, &[facts]).await.expect("is stored");
    }
}
