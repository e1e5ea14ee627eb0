//! The latency probe of a run: a task that is no question.

use bench_proto::{
    call::CallOutcome,
    facts::Outcome,
    ids::{Role, TaskKey},
    probe::ProbePart,
    step::{Opens, StepFacts, StepRecord},
    task::TaskState,
};

use super::{Fresh, Scene, bank, call, ending, failing, record};
use crate::Store;

fn part(first: u32, us: &[u64]) -> StepFacts {
    StepFacts::Probed(Box::new(ProbePart { first, of: 3, us: us.to_vec(), ..ProbePart::default() }))
}

async fn ended(scene: &Scene<'_>) {
    scene.make_ready(0, 1).await;
    for question in [TaskKey::question(0, 0), TaskKey::question(0, 1)] {
        scene.answer(question, 0.5, Opens::Nothing).await;
        scene.conclude(question, Outcome::Scored, 0.5).await;
    }
}

async fn parts(store: &dyn Store, scene: &Scene<'_>) -> u32 {
    let steps = store.question_steps(scene.run, &[TaskKey::PROBE]).await.expect("are read");
    ProbePart::made_of(&steps, 0)
}

/// It is opened once, goes on after the loss of its worker from what is stored, and touches nothing that questions count.
pub async fn p43_a_probe_is_opened_once_and_goes_on_from_its_parts(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1])])]).await;
    ended(&scene).await;
    let before = (scene.counters().await, store.facts(scene.run, None, 10).await.expect("are read"));
    assert_eq!(scene.ready(Role::Question).await, []);
    for _ in 0..2 {
        assert_eq!(store.open_probe(scene.run).await.expect("is opened"), TaskState::Ready);
    }
    assert_eq!(scene.ready(Role::Question).await, [TaskKey::PROBE]);

    let epoch = scene.claim(TaskKey::PROBE).await.epoch;
    let paid = StepRecord {
        calls: vec![call("probe", CallOutcome::Accepted, 7)],
        ..record(scene.run, TaskKey::PROBE, ProbePart::step(0, 0), epoch, part(0, &[50, 51]))
    };
    scene.commit(&[paid]).await;
    assert_eq!(store.end_session(scene.session).await.expect("ends"), 1);
    assert_eq!(store.open_probe(scene.run).await.expect("is looked at"), TaskState::Ready);
    assert_eq!(store.sweep(scene.run).await.expect("sweeps").to_conclude, []);

    let session = store.open_session("w2", "local", "{}").await.expect("opens");
    let scene = Scene { session, ..scene };
    let claimed = scene.claim(TaskKey::PROBE).await;
    assert_eq!((claimed.losses, parts(store, &scene).await), (1, 2));
    let step = ProbePart::step(0, 2);
    let last = ending(scene.run, TaskKey::PROBE, step, claimed.epoch, part(2, &[52]), Opens::Nothing);
    let stored = scene.commit(&[last]).await;
    assert_eq!((stored.to_conclude, stored.already), (vec![], vec![None]));
    assert_eq!(store.open_probe(scene.run).await.expect("is looked at"), TaskState::Done);
    assert_eq!(parts(store, &scene).await, 3);
    let swept = store.sweep(scene.run).await.expect("sweeps");
    assert_eq!((swept.to_conclude, swept.opened), (vec![], vec![]));

    let after = (scene.counters().await, store.facts(scene.run, None, 10).await.expect("are read"));
    assert_eq!(after.1, before.1);
    let questions = |c: &crate::RunCounters| (c.scored, c.abstained, c.infra_error, c.answered, c.entries_retained);
    assert_eq!(questions(&after.0), questions(&before.0));
    let row = store.run(scene.run).await.expect("is read");
    let ledger = store.ledger(&row).await.expect("is read");
    assert_eq!((ledger.overhead.calls, ledger.overhead.cost.0, row.counters.spent.0), (1, 7, 7));
}

/// What is repeated is another result, with a probe of its own.
pub async fn p43_a_retry_is_probed_anew(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1])])]).await;
    scene.make_ready(0, 1).await;
    scene.answer(TaskKey::question(0, 0), 0.5, Opens::Nothing).await;
    scene.conclude(TaskKey::question(0, 0), Outcome::Scored, 0.5).await;
    scene.give_up(TaskKey::question(0, 1), "timeout").await;
    scene.conclude(TaskKey::question(0, 1), Outcome::InfraError, 0.0).await;
    store.open_probe(scene.run).await.expect("is opened");
    let epoch = scene.claim(TaskKey::PROBE).await.epoch;
    let step = ProbePart::step(0, 0);
    scene.commit(&[ending(scene.run, TaskKey::PROBE, step, epoch, part(0, &[50]), Opens::Nothing)]).await;
    assert_eq!(store.reopen(scene.run, crate::RetryScope::Errors).await.expect("is reopened"), 1);
    assert_eq!(parts(store, &scene).await, 0);
    assert_eq!(store.open_probe(scene.run).await.expect("is opened"), TaskState::Ready);
}

/// A probe that fails takes no bank and no question with it.
pub async fn p43_a_probe_that_fails_fails_alone(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1])])]).await;
    ended(&scene).await;
    store.open_probe(scene.run).await.expect("is opened");
    let epoch = scene.claim(TaskKey::PROBE).await.epoch;
    let failed = scene.commit(&[failing(scene.run, TaskKey::PROBE, epoch, "system_cut_off")]).await;
    assert_eq!((failed.to_conclude, failed.opened), (vec![], vec![]));
    assert_eq!(store.open_probe(scene.run).await.expect("is looked at"), TaskState::Failed);
    assert_eq!(store.sweep(scene.run).await.expect("sweeps").to_conclude, []);
    let counters = scene.counters().await;
    assert_eq!((counters.scored, counters.infra_error), (2, 0));
}
