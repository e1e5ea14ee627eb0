//! Reopening what failed.

use bench_proto::{
    facts::{Outcome, QuestionFacts},
    failure::{Failure, code::MEMORIES_LOST},
    ids::{Role, TaskKey},
    step::{Opens, StepNo},
};

use super::{Fresh, HEADLINE, Scene, bank, ending, failing, judged, question_facts};
use crate::{BankState, RetryScope, RunState};

/// Good steps are kept, the rest is tried again with fresh counters.
pub async fn retry_repeats_failed_questions_from_their_stored_recall(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1, 2])])]).await;
    scene.make_ready(0, 1).await;
    let [q0, q1, q2] = [0, 1, 2].map(|index| TaskKey::question(0, index));
    let epoch = scene.recall(q0).await;
    scene.commit(&[failing(scene.run, q0, epoch, "timeout")]).await;
    scene.give_up(q1, "timeout").await;
    scene.answer(q2, 1.0, Opens::Nothing).await;
    for (question, outcome) in [(q0, Outcome::InfraError), (q1, Outcome::InfraError), (q2, Outcome::Scored)] {
        scene.conclude(question, outcome, 1.0).await;
    }
    let before = store.run(scene.run).await.expect("is read");
    assert_eq!(store.reopen(scene.run, RetryScope::Errors).await.expect("reopens"), 2);
    assert_eq!(store.reopen(scene.run, RetryScope::Errors).await.expect("reopens"), 0, "nothing is left to reopen");
    let after = store.run(scene.run).await.expect("is read");
    assert_eq!(after.result_version, before.result_version + 1);
    assert_eq!((after.counters.infra_error, after.counters.scored), (0, 1));
    assert_eq!(scene.ready(Role::Question).await, [q0, q1]);
    let row = scene.bank(0).await;
    assert_eq!((row.generation, row.state, row.open_recalls), (1, BankState::Ready, 1));
    let steps = store.question_steps(scene.run, &[q0, q1]).await.expect("are read");
    assert_eq!(steps.iter().map(|s| (s.task, s.step)).collect::<Vec<_>>(), [(q0, StepNo::RECALL)]);
    let claimed = scene.claim(q0).await;
    assert_eq!((claimed.epoch, claimed.attempts, claimed.losses), (epoch + 1, 0, 0), "epochs go on");
    let records = scene.whole_question(q0, claimed.epoch, 1.0, Opens::Nothing);
    assert_eq!(scene.commit(&records[1..]).await.to_conclude, [(scene.run, q0)]);
    assert_eq!(store.facts(scene.run, None, 10).await.expect("are read").len(), 1);
}

/// What was opened is never part of a run that is over: whoever opens it may be killed before anything else is written.
pub async fn retry_pauses_a_run_that_has_ended_with_what_it_opens(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    scene.make_ready(0, 1).await;
    let question = TaskKey::question(0, 0);
    let set = async |from, to| store.set_run_state(scene.run, &[from], to, None).await.expect("is set");
    let reopen = async || store.reopen(scene.run, RetryScope::Errors).await.expect("reopens");
    let state = async || store.run(scene.run).await.expect("is read").state;
    for ended in [RunState::Finished, RunState::Cancelled] {
        scene.give_up(question, "timeout").await;
        scene.conclude(question, Outcome::InfraError, 0.0).await;
        assert!(set(RunState::Running, ended).await);
        assert_eq!((reopen().await, state().await), (1, RunState::Paused), "{ended:?}");
        assert_eq!((reopen().await, state().await), (0, RunState::Paused), "{ended:?}");
        assert!(set(RunState::Paused, RunState::Running).await);
    }
    scene.answer(question, 1.0, Opens::Nothing).await;
    scene.conclude(question, Outcome::Scored, 1.0).await;
    assert!(set(RunState::Running, RunState::Finished).await);
    assert_eq!((reopen().await, state().await), (0, RunState::Finished), "nothing of it is repeated");
}

/// A bank that could not be retained begins again in a fresh namespace; its questions wait for it.
pub async fn retry_starts_failed_banks_in_a_new_generation(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(2, &[0, 1])])]).await;
    let retain = TaskKey::retain(0, 0);
    let first = scene.claim(retain).await.epoch;
    scene.commit(&[super::record(scene.run, retain, StepNo::retain(0), first, super::retained(1))]).await;
    store.set_bank_handle(scene.run, 0, 1, "h1").await.expect("is set");
    let failed = scene.commit(&[failing(scene.run, retain, first, "disk_full")]).await;
    for (_, question) in failed.to_conclude {
        scene.conclude(question, Outcome::InfraError, 0.0).await;
    }
    assert_eq!(scene.counters().await.infra_error, 2);
    assert_eq!(store.reopen(scene.run, RetryScope::Errors).await.expect("reopens"), 2);
    let row = scene.bank(0).await;
    assert_eq!(
        (row.state, row.generation, row.position, row.handle, row.reason),
        (BankState::Building, 2, 0, None, None)
    );
    assert_eq!((scene.counters().await.infra_error, scene.counters().await.entries_retained), (0, 0));
    assert_eq!(scene.ready(Role::Retain).await, [retain]);
    assert_eq!(scene.ready(Role::Question).await, [], "questions wait for their bank");
    let again = scene.claim(retain).await;
    assert!(again.epoch > first, "an old holder never has a current epoch");
    store
        .release(&[crate::Release {
            run: scene.run,
            task: retain,
            epoch: again.epoch,
            event: bench_proto::task::TaskEvent::Park,
            delay_ms: 0,
            reason: None,
        }])
        .await
        .expect("is released");
    scene.retain(0, 0, 0, 2).await;
    scene.prove(0, 0).await;
    assert_eq!(scene.ready(Role::Question).await.len(), 2);
    assert_eq!(scene.bank(0).await.open_recalls, 2);
    scene.answer(TaskKey::question(0, 0), 1.0, Opens::Nothing).await;
    assert_eq!(store.sweep(scene.run).await.expect("sweeps").opened, []);
}

/// Votes that were given up are asked for again, the others stay.
pub async fn retry_repeats_only_the_failed_votes(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    scene.make_ready(0, 1).await;
    let question = TaskKey::question(0, 0);
    let votes = [TaskKey::judge(0, 0, 0, 0), TaskKey::judge(0, 0, 1, 0)];
    scene.answer(question, 1.0, Opens::Judges(votes.to_vec())).await;
    let epoch = scene.claim(votes[0]).await.epoch;
    scene.commit(&[ending(scene.run, votes[0], StepNo::JUDGE, epoch, judged(1.0), Opens::Nothing)]).await;
    scene.give_up(votes[1], "unparsable_judgement").await;
    scene.conclude(question, Outcome::InfraError, 0.0).await;
    assert_eq!(store.reopen(scene.run, RetryScope::Errors).await.expect("reopens"), 1);
    assert_eq!(scene.ready(Role::Judge).await, votes[1..]);
    assert_eq!(scene.ready(Role::Question).await, []);
    assert_eq!(store.sweep(scene.run).await.expect("sweeps").to_conclude, []);
    let epoch = scene.claim(votes[1]).await.epoch;
    let last = ending(scene.run, votes[1], StepNo::JUDGE, epoch, judged(0.0), Opens::Nothing);
    assert_eq!(scene.commit(&[last]).await.to_conclude, [(scene.run, question)]);
    assert_eq!(scene.conclude(question, Outcome::Scored, 0.5).await, 1);
}

/// What the memory system has lost is stored again, also for a bank some of whose questions have their scores.
pub async fn retry_fills_a_bank_anew_that_was_lost(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1])])]).await;
    scene.make_ready(0, 1).await;
    let [q0, q1] = [0, 1].map(|index| TaskKey::question(0, index));
    scene.answer(q0, 1.0, Opens::Nothing).await;
    scene.give_up(q1, MEMORIES_LOST).await;
    scene.conclude(q0, Outcome::Scored, 1.0).await;
    let failure = Some(Failure::permanent(MEMORIES_LOST, "bank b holds 0 of 1 items"));
    let facts = QuestionFacts { failure, ..question_facts(q1, Outcome::InfraError, 0.0) };
    store.store_facts(scene.run, HEADLINE, &[facts]).await.expect("is concluded");
    assert_eq!(store.reopen(scene.run, RetryScope::Errors).await.expect("reopens"), 1);
    let row = scene.bank(0).await;
    assert_eq!((row.generation, row.position, row.state), (2, 0, BankState::Building));
    assert_eq!((scene.counters().await.scored, scene.counters().await.infra_error), (1, 0));
    assert_eq!(scene.ready(Role::Retain).await, [TaskKey::retain(0, 0)]);
    scene.retain(0, 0, 0, 1).await;
    scene.prove(0, 0).await;
    assert_eq!(scene.ready(Role::Question).await, [q1], "what has its score is not asked again");
    scene.answer(q1, 1.0, Opens::Nothing).await;
    assert_eq!(scene.conclude(q1, Outcome::Scored, 1.0).await, 1);
}

/// A recall that is missing after its segment closed can only be made in a new generation.
pub async fn retry_reaches_closed_segments_by_a_new_generation(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1]), (2, &[2])])]).await;
    let [q0, q1, q2] = [0, 1, 2].map(|index| TaskKey::question(0, index));
    scene.retain(0, 0, 0, 1).await;
    scene.prove(0, 0).await;
    scene.answer(q0, 1.0, Opens::Nothing).await;
    scene.give_up(q1, "timeout").await;
    scene.retain(0, 1, 1, 2).await;
    scene.prove(0, 1).await;
    scene.answer(q2, 1.0, Opens::Nothing).await;
    scene.conclude(q0, Outcome::Scored, 1.0).await;
    scene.conclude(q1, Outcome::InfraError, 0.0).await;
    scene.conclude(q2, Outcome::NotRun, 0.0).await;
    assert_eq!(store.reopen(scene.run, RetryScope::ErrorsAndNotRun).await.expect("reopens"), 2);
    let row = scene.bank(0).await;
    assert_eq!((row.generation, row.segment, row.position, row.state), (2, 0, 0, BankState::Building));
    assert_eq!(scene.ready(Role::Retain).await, [TaskKey::retain(0, 0)]);
    scene.retain(0, 0, 0, 1).await;
    scene.prove(0, 0).await;
    assert_eq!(scene.ready(Role::Question).await, [q1]);
    let outcome = scene.answer(q1, 1.0, Opens::Nothing).await;
    assert_eq!((outcome.to_conclude, outcome.opened), (vec![(scene.run, q1)], vec![(scene.run, Role::Retain)]));
    scene.retain(0, 1, 1, 2).await;
    scene.prove(0, 1).await;
    assert_eq!(scene.ready(Role::Question).await, [], "what has its steps is not asked again");
    assert_eq!(scene.counters().await.banks_ready, 1);
    let sweep = store.sweep(scene.run).await.expect("sweeps");
    assert_eq!(sweep.to_conclude, [(scene.run, q1), (scene.run, q2)]);
}
