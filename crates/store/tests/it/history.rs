//! P27: random histories through the pure transition function and through a store must leave equal rows.

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
use proptest::prelude::*;

const TASKS: u32 = 3;

/// Something that happens to a question, and whether it carries the current epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Happening {
    task: u32,
    event: TaskEvent,
    current: bool,
}

/// Random histories of a few tasks.
pub(crate) fn histories() -> impl Strategy<Value = Vec<Happening>> {
    // a claim stands behind most legal events: it comes more often
    let event = prop_oneof![
        6 => Just(TaskEvent::Claim),
        1 => Just(TaskEvent::Finish),
        2 => Just(TaskEvent::Retry),
        2 => Just(TaskEvent::Park),
        2 => Just(TaskEvent::LoseLease),
        1 => Just(TaskEvent::GiveUp),
        1 => Just(TaskEvent::Reopen),
    ];
    let happening = (0..TASKS, event, prop::bool::weighted(0.8)).prop_map(|(task, event, current)| Happening {
        task,
        event,
        current,
    });
    prop::collection::vec(happening, 1..40)
}

/// A task as the pure function sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Model {
    state: TaskState,
    epoch: i64,
    attempts: i32,
    losses: i32,
}

impl Model {
    fn apply(&mut self, event: TaskEvent, current: bool) {
        let Some(t) = transition(self.state, event, current) else {
            return;
        };
        self.state = t.to;
        self.epoch += t.counts.0;
        self.attempts += t.counts.1;
        self.losses += t.counts.2;
        if event == TaskEvent::Reopen {
            (self.attempts, self.losses) = (0, 0); // retry starts with fresh counters
        }
    }
}

/// Drives a history through both; compares all rows after every happening.
pub(crate) async fn drive(
    store: Arc<dyn Store>,
    run_id: &str,
    history: &[Happening],
    rows: impl AsyncFn(RunNo) -> Vec<(i64, i64, i64, i64)>,
) {
    let run = store.create_run(&bench_store::conformance::new_run(run_id)).await.expect("is created");
    let questions: Vec<u32> = (0..TASKS).collect();
    store.add_banks(run, &[bank(0, &[(1, &questions)])]).await.expect("are added");
    let mut session = store.open_session("w", "local", "{}").await.expect("opens");
    let scene = Scene { store: store.as_ref(), run, session };
    scene.make_ready(0, 1).await;
    assert_eq!(scene.ready(Role::Question).await.len(), TASKS as usize);
    let fresh = Model { state: TaskState::Ready, epoch: 0, attempts: 0, losses: 0 };
    let mut models = vec![fresh; TASKS as usize];
    for happening in history {
        let model = models[happening.task as usize];
        let task = TaskKey::question(0, happening.task);
        let epoch = if happening.current { model.epoch } else { model.epoch - 1 };
        apply(store.as_ref(), run, &mut session, task, epoch, happening.event).await;
        // a dead session takes all of its leases with it; reopening is for all that failed
        for (index, model) in models.iter_mut().enumerate() {
            let all = matches!(happening.event, TaskEvent::LoseLease | TaskEvent::Reopen);
            if all || index == happening.task as usize {
                model.apply(happening.event, happening.current || all);
            }
        }
        let expected: Vec<_> = models
            .iter()
            .map(|m| (i64::from(m.state.code()), m.epoch, i64::from(m.attempts), i64::from(m.losses)))
            .collect();
        assert_eq!(rows(run).await, expected, "after {happening:?}");
    }
}

async fn apply(store: &dyn Store, run: RunNo, session: &mut SessionId, task: TaskKey, epoch: i64, event: TaskEvent) {
    match event {
        TaskEvent::Claim => drop(store.claim(*session, &[(run, task)]).await.expect("answers")),
        TaskEvent::Finish => {
            let recall = record(run, task, StepNo::RECALL, epoch, recalled());
            let facts = bench_store::conformance::scored(1.0);
            let last = bench_store::conformance::ending(run, task, StepNo::SCORE, epoch, facts, Opens::Nothing);
            drop(store.commit(&[recall, last]).await.expect("answers"));
        }
        TaskEvent::Retry | TaskEvent::Park => {
            let release = Release { run, task, epoch, event, delay_ms: 0, reason: None };
            store.release(&[release]).await.expect("answers");
        }
        TaskEvent::LoseLease => {
            store.end_session(*session).await.expect("answers");
            *session = store.open_session("w", "local", "{}").await.expect("opens");
        }
        TaskEvent::GiveUp => {
            let outcome = store.commit(&[failing(run, task, epoch, "given_up")]).await.expect("answers");
            for (_, question) in outcome.to_conclude {
                let facts = question_facts(question, bench_proto::facts::Outcome::InfraError, 0.0);
                store.conclude(run, HEADLINE, &[facts]).await.expect("is stored");
            }
        }
        TaskEvent::Reopen => drop(store.reopen(run, RetryScope::Errors).await.expect("answers")),
    }
}
