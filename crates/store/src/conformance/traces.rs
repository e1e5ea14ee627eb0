//! What traces are built of.

use bench_proto::{
    facts::{Outcome, PhaseTimes, QuestionFacts},
    ids::{Role, RunNo, TaskKey},
    step::{Opens, StepNo},
    trace::{AttemptEnd, AttemptNote, Kept},
};

use super::{Fresh, HEADLINE, Scene, bank, question_facts};
use crate::SessionId;

/// Steps come back with the time of their commit, questions apart from what was retained for their bank.
pub async fn p20_steps_tell_when_they_were_stored(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(2, &[0, 1])])]).await;
    let oldest = store.oldest_ready(&[scene.run]).await.expect("are read");
    assert_eq!(oldest.iter().map(|(run, role, _)| (*run, *role)).collect::<Vec<_>>(), [(scene.run, Role::Retain)]);
    scene.make_ready(0, 2).await;
    let [q0, q1] = [0, 1].map(|index| TaskKey::question(0, index));
    scene.answer(q0, 1.0, Opens::Nothing).await;
    scene.conclude(q0, Outcome::Scored, 1.0).await;
    let spans = store.spans(scene.run, &[q1, q0, q0]).await.expect("are read");
    assert_eq!(spans.iter().map(|s| (s.task, s.step)).collect::<Vec<_>>(), [0, 1, 2].map(|step| (q0, StepNo(step))));
    let stored: Vec<i64> = spans.iter().map(|s| s.stored_us.expect("is known")).collect();
    assert!(stored.iter().all(|us| *us > 1_600_000_000_000_000), "{stored:?}");
    let retained = store.bank_steps(scene.run, 0).await.expect("are read");
    let tasks: Vec<_> = retained.iter().map(|s| (s.task, s.step)).collect();
    let task = TaskKey::retain(0, 0);
    assert_eq!(tasks, [(task, StepNo(0)), (task, StepNo(1)), (TaskKey::ready(0, 0), StepNo::READY)]);
    assert_eq!(store.bank_steps(scene.run, 1).await.expect("are read"), []);

    let facts = store.facts_of(scene.run, &[q1, q0]).await.expect("are read");
    assert_eq!(facts.iter().map(|f| f.task).collect::<Vec<_>>(), [q0]);
    assert_eq!(store.facts_of_id(scene.run, "bank-0:0").await.expect("is read").map(|f| f.task), Some(q0));
    assert_eq!(store.facts_of_id(scene.run, "bank-0:1").await.expect("is read"), None);
    let names = store.session_names(&[scene.session, SessionId(-1)]).await.expect("are read");
    assert_eq!(names, [(scene.session, "w1".to_owned())]);
}

/// The slowest come first, ties in the order of keys; what took no time is there too, and any text may stand beside it.
pub async fn p20_the_slowest_questions_come_first(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1, 2, 3, 4])])]).await;
    let took = [7, 0, 4_000_000_000, 7, 9];
    let results: Vec<_> = (0..5)
        .map(|index| {
            let times = PhaseTimes { question_us: took[index as usize], ..PhaseTimes::default() };
            let facts = question_facts(TaskKey::question(0, index), Outcome::Scored, 1.0);
            (QuestionFacts { times, category: "\u{0} \"question_us\":1".to_owned(), ..facts }, Vec::new())
        })
        .collect();
    store.import_results(scene.run, HEADLINE, &results, false).await.expect("are stored");
    let slowest = async |most| -> Vec<u32> {
        let facts = store.slowest(scene.run, most).await.expect("are read");
        facts.iter().map(|facts| facts.task.index()).collect()
    };
    assert_eq!(slowest(10).await, [2, 4, 0, 3, 1]);
    assert_eq!(slowest(3).await, [2, 4, 0]);
    assert_eq!(store.slowest(scene.run, 1).await.expect("are read"), [results[2].0.clone()]);
    assert_eq!(store.slowest(RunNo(scene.run.0 + 1), 3).await.expect("are read"), [], "of another run");
}

/// A second note of the same claim changes nothing; notes of judge tasks belong to their question.
pub async fn p20_tries_that_stored_nothing_are_noted_once(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    let (question, judge) = (TaskKey::question(0, 0), TaskKey::judge(0, 0, 0, 1));
    let note = |task, epoch, reason: &str| AttemptNote {
        task,
        epoch,
        started_us: 7,
        total_us: 8,
        queue_wait_us: 9,
        session: scene.session.0,
        end: AttemptEnd::Retried,
        delay_us: 10,
        reason: reason.to_owned(),
    };
    let (first, second, vote) = (note(question, 1, "first"), note(question, 2, "second"), note(judge, 1, "vote\u{0}"));
    store.note_attempts(scene.run, &[second.clone(), vote.clone()]).await.expect("are noted");
    store.note_attempts(scene.run, &[first.clone(), note(question, 2, "again")]).await.expect("are noted");
    assert_eq!(store.attempts(scene.run, question).await.expect("are read"), [first, second, vote]);
    assert_eq!(store.attempts(scene.run, TaskKey::question(0, 1)).await.expect("are read"), []);
}

/// Who decides has some time to send; what it could not send others have at once, each trace one of them.
pub async fn p20_traces_that_were_decided_and_not_sent_are_found(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1, 2, 3])])]).await;
    scene.make_ready(0, 1).await;
    let questions = [0, 1, 2, 3].map(|index| (scene.run, TaskKey::question(0, index)));
    for (number, (_, task)) in questions.iter().enumerate() {
        scene.answer(*task, 1.0, Opens::Nothing).await;
        let kept = (number != 3).then_some(Kept::Slow);
        let facts = QuestionFacts { kept, ..question_facts(*task, Outcome::Scored, 1.0) };
        store.store_facts(scene.run, HEADLINE, &[facts]).await.expect("is concluded");
    }
    let take = async |limit| store.take_unsent_traces(limit).await.expect("are taken");
    assert_eq!(take(10).await, [], "who decided is still at it");
    store.settle_traces(&questions, false).await.expect("are free");
    let (mut one, mut other) = (take(2).await, take(10).await);
    assert_eq!((one.len(), other.len()), (2, 1), "three are kept, and each is taken once");
    assert_eq!(take(10).await, []);
    store.settle_traces(&one, true).await.expect("are settled");
    store.settle_traces(&questions, false).await.expect("are free");
    assert_eq!(take(10).await, other, "those that were sent are forgotten");
    assert_eq!(take(10).await, [], "who took it is still at it");
    store.inherit_traces(scene.run).await.expect("is inherited");
    assert_eq!(take(10).await, other, "who took it is known to be gone");
    one.append(&mut other);
    one.sort_unstable();
    assert_eq!(one, questions[..3]);
}

/// A part of the run's own trace goes with one question, whoever asks first; that one has it again when it is sent again.
pub async fn p20_parts_of_a_runs_trace_go_with_one_question(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1])])]).await;
    let [submit, retain, ready] = [TaskKey::OVERHEAD, TaskKey::retain(0, 0), TaskKey::ready(0, 0)];
    let own = async |run, index, parts: &[TaskKey]| {
        let mut own = store.own_trace_parts(run, TaskKey::question(0, index), parts).await.expect("are told apart");
        own.sort_unstable();
        own
    };
    assert_eq!(own(scene.run, 0, &[retain, submit, retain]).await, [retain, submit]);
    assert_eq!(own(scene.run, 1, &[submit, retain, ready]).await, [ready], "the others are another's");
    assert_eq!(own(scene.run, 0, &[submit, retain, ready]).await, [retain, submit], "as before");
    assert_eq!(own(RunNo(scene.run.0 + 1), 1, &[submit]).await, [submit], "of another run");
}

/// Processes add to one spread, and each learns of all.
pub async fn p20_the_spread_of_times_is_added_up(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    assert_eq!(store.add_latencies(scene.run, &[]).await.expect("is read"), []);
    assert_eq!(store.add_latencies(scene.run, &[(9, 2), (3, 1)]).await.expect("is added"), [(3, 1), (9, 2)]);
    assert_eq!(
        store.add_latencies(scene.run, &[(9, 5), (511, 1)]).await.expect("is added"),
        [(3, 1), (9, 7), (511, 1)]
    );
}
