//! Commits: from retain to conclusion, first results, refusals, money.

use bench_proto::{
    call::CallOutcome,
    facts::Outcome,
    ids::{Role, TaskKey},
    money::PicoUsd,
    step::{Effect, Opens, StepFacts, StepNo, StepRecord, StepText},
    task::TaskEvent,
};

use super::{
    Fresh, HEADLINE, Scene, answer_text, answered, bank, call, ending, failing, judged, judged_part, question_facts,
    recall_text, recalled, record, retained, scored,
};
use crate::{BankState, Conclusion, Release, StoreError};

/// A question whose steps are all stored by one commit is concluded by it; one that was begun before is not.
pub async fn p7_a_commit_concludes_what_it_stores_whole(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1])])]).await;
    scene.make_ready(0, 1).await;
    let (whole, begun) = (TaskKey::question(0, 0), TaskKey::question(0, 1));
    let epoch = scene.recall(begun).await;
    let mut records = scene.whole_question(whole, scene.claim(whole).await.epoch, 0.5, Opens::Nothing);
    records.extend(scene.whole_question(begun, epoch, 0.5, Opens::Nothing));
    let conclusions = [whole, begun].map(|task| Conclusion {
        run: scene.run,
        headline_metric: HEADLINE.to_owned(),
        facts: question_facts(task, Outcome::Scored, 0.5),
    });
    let outcome = store.commit_and_conclude(&records, &conclusions).await.expect("is stored");
    assert_eq!(
        outcome.already.iter().map(Option::is_some).collect::<Vec<_>>(),
        [false, false, false, true, false, false]
    );
    assert_eq!(outcome.to_conclude, [(scene.run, begun)]);
    let facts = store.facts(scene.run, None, 10).await.expect("are read");
    assert_eq!(facts, [conclusions[0].facts.clone()]);
    let counters = scene.counters().await;
    assert_eq!((counters.answered, counters.scored), (2, 1));
    assert!((counters.headline_sum - 0.5).abs() < 1e-12);
    let again = store.commit_and_conclude(&records, &conclusions).await.expect("is stored");
    assert_eq!(again.to_conclude, [(scene.run, begun)], "repeating changes nothing");
    assert_eq!(store.sweep(scene.run).await.expect("sweeps").to_conclude, [(scene.run, begun)]);
    assert_eq!(scene.counters().await, counters);
}

/// The whole way of a question, with everything that opens on it.
pub async fn p7_a_question_goes_from_retain_to_conclusion(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(2, &[0, 1])])]).await;
    let run = scene.run;
    let retain = TaskKey::retain(0, 0);
    let epoch = scene.claim(retain).await.epoch;
    let first = scene.commit(&[record(run, retain, StepNo::retain(0), epoch, retained(1))]).await;
    assert_eq!((first.already, first.opened), (vec![None], vec![]));
    assert_eq!(scene.bank(0).await.position, 1);
    let last = ending(run, retain, StepNo::retain(1), epoch, retained(1), Opens::ReadyTask);
    let done = scene.commit(std::slice::from_ref(&last)).await;
    assert_eq!(done.opened, [(run, Role::Retain)]);
    assert_eq!(scene.ready(Role::Retain).await, [TaskKey::ready(0, 0)]);
    assert_eq!(
        scene.commit(std::slice::from_ref(&last)).await.already,
        [Some(last.facts)],
        "repeating a commit changes nothing"
    );

    let proven = scene.prove(0, 0).await;
    assert_eq!(proven.opened, [(run, Role::Question)]);
    let row = scene.bank(0).await;
    assert_eq!((row.state, row.position, row.open_recalls), (BankState::Ready, 2, 2));
    let (q0, q1) = (TaskKey::question(0, 0), TaskKey::question(0, 1));
    assert_eq!(scene.ready(Role::Question).await, [q0, q1]);

    let epoch = scene.claim(q0).await.epoch;
    let steps = scene.whole_question(q0, epoch, 0.5, Opens::Nothing);
    for step in &steps[..2] {
        assert_eq!(scene.commit(std::slice::from_ref(step)).await.to_conclude, []);
    }
    assert_eq!(scene.commit(&steps[2..]).await.to_conclude, [(run, q0)]);
    assert_eq!(scene.answer(q1, 1.0, Opens::Nothing).await.to_conclude, [(run, q1)]);
    assert_eq!(scene.bank(0).await.open_recalls, 0);
    let stored = store.question_steps(run, &[q1, q0]).await.expect("are read");
    let keys: Vec<_> = stored.iter().map(|s| (s.task, s.step.0)).collect();
    assert_eq!(keys, [(q1, 0), (q1, 1), (q1, 2), (q0, 0), (q0, 1), (q0, 2)]);
    assert_eq!(stored[5].facts, scored(0.5));

    assert_eq!(scene.conclude(q0, Outcome::Scored, 0.5).await, 1);
    assert_eq!(scene.conclude(q0, Outcome::Scored, 0.9).await, 0, "the first conclusion stays");
    assert_eq!(scene.conclude(q1, Outcome::Scored, 1.0).await, 1);
    let counters = scene.counters().await;
    assert_eq!((counters.banks_ready, counters.entries_retained, counters.answered), (1, 2, 2));
    assert_eq!((counters.scored, counters.ended()), (2, 2));
    assert!((counters.headline_sum - 1.5).abs() < 1e-12);
    assert_eq!(store.commit(&[]).await.expect("nothing is fine"), crate::CommitOutcome::default());
}

/// A question with judges is complete when its last vote is stored or given up.
pub async fn p7_votes_are_counted_down(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    scene.make_ready(0, 1).await;
    let question = TaskKey::question(0, 0);
    let votes: Vec<TaskKey> = (0..3).map(|vote| TaskKey::judge(0, 0, 0, vote)).collect();
    let done = scene.answer(question, 1.0, Opens::Judges(votes.clone())).await;
    assert_eq!((done.to_conclude, done.opened), (vec![], vec![(scene.run, Role::Judge)]));
    assert_eq!(scene.ready(Role::Judge).await, votes);
    let vote = async |vote: TaskKey| {
        let epoch = scene.claim(vote).await.epoch;
        let record = ending(scene.run, vote, StepNo::JUDGE, epoch, judged(1.0), Opens::Nothing);
        (scene.commit(std::slice::from_ref(&record)).await, record)
    };
    let (first, record) = vote(votes[0]).await;
    assert_eq!(first.to_conclude, []);
    let again = scene.commit(&[record]).await;
    assert_eq!((again.to_conclude, again.already.len()), (vec![], 1), "a vote counts once");
    assert_eq!(scene.give_up(votes[1], "timeout").await.to_conclude, []);
    assert_eq!(vote(votes[2]).await.0.to_conclude, [(scene.run, question)]);
    let steps = store.question_steps(scene.run, &[question]).await.expect("are read");
    assert_eq!(steps.len(), 6, "votes belong to their question: {steps:?}");
}

/// Replies of a vote of several calls are stored as they come, each once, and end nothing; whoever goes on with the vote reads them.
pub async fn p7_the_calls_of_a_vote_are_steps_of_their_own(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1])])]).await;
    scene.make_ready(0, 1).await;
    let (question, other) = (TaskKey::question(0, 0), TaskKey::question(0, 1));
    let votes: Vec<TaskKey> = (0..2).map(|vote| TaskKey::judge(0, 0, 0, vote)).collect();
    let epoch = scene.claim(question).await.epoch;
    let mut records = scene.whole_question(question, epoch, 1.0, Opens::Judges(votes.clone()));
    records[0].text = Some(recall_text("found"));
    records[1].text = Some(answer_text("an answer"));
    scene.commit(&records).await;
    let epoch = scene.claim(votes[0]).await.epoch;
    let part = |no: u32, raw: &str, cost| StepRecord {
        text: Some(StepText::JudgedPart { raw: raw.into() }),
        calls: vec![call("q", CallOutcome::Accepted, cost)],
        ..record(scene.run, votes[0], StepNo::judge_call(no), epoch, judged_part())
    };
    // in the order in which they come
    for (no, raw) in [(2, "third"), (0, "first")] {
        let stored = scene.commit(&[part(no, raw, 10)]).await;
        assert_eq!((stored.already, stored.to_conclude, stored.opened), (vec![None], vec![], vec![]));
    }
    let again = scene.commit(&[part(0, "another first", 5)]).await;
    assert_eq!((again.already, again.refused), (vec![Some(judged_part())], vec![]), "the first reply stays");
    assert_eq!(scene.counters().await.spent, PicoUsd(25), "and each that came is paid");

    // its worker is gone: another goes on from what is stored, in the claim of the same vote
    store.end_session(scene.session).await.expect("ends");
    assert_eq!(scene.ready(Role::Judge).await, votes);
    let text = |raw: &str| StepText::JudgedPart { raw: raw.into() };
    let first = (votes[0], StepNo::judge_call(0), text("first"));
    let third = (votes[0], StepNo::judge_call(2), text("third"));
    let answer = (question, StepNo::ANSWER, answer_text("an answer"));
    let read = async |questions: &[TaskKey], begun: &[TaskKey]| {
        store.judging_texts(scene.run, questions, begun).await.expect("are read")
    };
    let of_both = read(&[question, question, other], &votes).await;
    assert_eq!(of_both, [answer.clone(), first.clone(), third.clone()], "no hits, and no answer that is not there");
    assert_eq!(read(&[question], &[]).await, [answer]);
    assert_eq!(read(&[], &votes[..1]).await, [first, third]);
    assert_eq!(read(&[], &votes[1..]).await, []);

    let session = store.open_session("w2", "local", "{}").await.expect("opens");
    let epoch = store.claim(session, &[(scene.run, votes[0])]).await.expect("claims")[0].epoch;
    let late = scene.commit(&[part(1, "second", 1)]).await;
    assert_eq!(late.already, [None], "a reply of the old claim counts while none is stored");
    let grade = ending(scene.run, votes[0], StepNo::JUDGE, epoch, judged(0.5), Opens::Nothing);
    assert_eq!(scene.commit(&[grade]).await.to_conclude, []);
    let too_late = scene.commit(&[part(3, "fourth", 1)]).await;
    assert_eq!(too_late.refused, [0], "a vote that is cast needs no more replies");
    let steps = store.question_steps(scene.run, &[question]).await.expect("are read");
    let of_vote: Vec<i32> = steps.iter().filter(|step| step.task == votes[0]).map(|step| step.step.0).collect();
    assert_eq!(of_vote, [0, 1, 2, 3]);

    // a part is no vote, and a vote is no part
    let vote_as_part = record(scene.run, votes[1], StepNo::judge_call(0), 1, judged(1.0));
    let part_as_vote = record(scene.run, votes[1], StepNo::JUDGE, 1, judged_part());
    let ends = ending(scene.run, votes[1], StepNo::judge_call(0), 1, judged_part(), Opens::Nothing);
    for bad in [vote_as_part, part_as_vote, ends] {
        let error = scene.try_commit(std::slice::from_ref(&bad)).await.expect_err("must be refused");
        assert!(matches!(error, StoreError::BadData(_)), "{bad:?}: {error}");
    }
}

/// A step is written once; a second copy learns what is stored, whoever brings it.
pub async fn p3_the_first_result_stays(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    scene.make_ready(0, 1).await;
    let question = TaskKey::question(0, 0);
    let epoch = scene.recall(question).await;
    let other = StepFacts::Recalled {
        generation: 1,
        hits: 99,
        effective_k: 10,
        context_bytes: 1,
        top1_score: None,
        retrieval: Default::default(),
        usage: Default::default(),
        timing: Default::default(),
    };
    let batch = [
        record(scene.run, question, StepNo::RECALL, epoch + 1, other.clone()),
        record(scene.run, question, StepNo::ANSWER, epoch, answered()),
        record(
            scene.run,
            question,
            StepNo::ANSWER,
            epoch,
            StepFacts::Answered { finish: "second".into(), usage: Default::default(), timing: Default::default() },
        ),
    ];
    let outcome = scene.commit(&batch).await;
    assert_eq!(outcome.already, [Some(recalled()), None, Some(answered())]);
    assert_eq!(outcome.refused, Vec::<usize>::new());
    let stored = store.question_steps(scene.run, &[question]).await.expect("are read");
    assert_eq!(stored.into_iter().map(|s| s.facts).collect::<Vec<_>>(), [recalled(), answered()]);
}

/// The result of a lost lease counts while none is stored, also when the task is ready again.
pub async fn p3_late_results_count_while_none_is_stored(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1])])]).await;
    scene.make_ready(0, 1).await;
    let (q0, q1) = (TaskKey::question(0, 0), TaskKey::question(0, 1));
    let late = scene.claim(q0).await.epoch;
    let late_too = scene.claim(q1).await.epoch;
    store.end_session(scene.session).await.expect("ends");
    let outcome = scene.commit(&scene.whole_question(q0, late, 1.0, Opens::Nothing)).await;
    assert_eq!(outcome.to_conclude, [(scene.run, q0)]);
    assert_eq!(scene.ready(Role::Question).await, [q1], "the task is done");

    let session = store.open_session("w2", "local", "{}").await.expect("opens");
    let claimed = store.claim(session, &[(scene.run, q1)]).await.expect("claims");
    assert_eq!(claimed[0].epoch, late_too + 1);
    let outcome = scene.commit(&scene.whole_question(q1, late_too, 1.0, Opens::Nothing)).await;
    assert_eq!(outcome.to_conclude, [(scene.run, q1)]);
    let second = scene.commit(&scene.whole_question(q1, claimed[0].epoch, 0.0, Opens::Nothing)).await;
    assert!(second.already.iter().all(Option::is_some));
    assert_eq!(second.already[2], Some(scored(1.0)));
}

/// Records of tasks that are done or failed change nothing.
pub async fn p3_ended_tasks_ignore_further_records(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1])])]).await;
    scene.make_ready(0, 1).await;
    let (q0, q1) = (TaskKey::question(0, 0), TaskKey::question(0, 1));
    assert_eq!(scene.give_up(q0, "filtered").await.to_conclude, [(scene.run, q0)]);
    let late = scene.commit(&[record(scene.run, q0, StepNo::RECALL, 1, recalled())]).await;
    assert!(
        matches!(&late.already[0], Some(StepFacts::Failed { failure, .. }) if failure.code == "filtered"),
        "{late:?}"
    );
    assert_eq!(late.refused, Vec::<usize>::new());
    scene.answer(q1, 1.0, Opens::Nothing).await;
    let failing = scene.commit(&[failing(scene.run, q1, 1, "late")]).await;
    assert_eq!(failing.refused, [0], "a question that has its result cannot fail any more");
    let steps = store.question_steps(scene.run, &[q0, q1]).await.expect("are read");
    assert_eq!(steps.len(), 1 + 3);
    let unknown = scene.commit(&[record(scene.run, TaskKey::question(5, 5), StepNo::RECALL, 1, recalled())]).await;
    assert_eq!(unknown.refused, [0]);
}

/// A record that contradicts itself is a fault of its data: it is found before anything is written.
pub async fn p8_contradictory_records_are_refused(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    scene.make_ready(0, 1).await;
    let question = TaskKey::question(0, 0);
    let epoch = scene.claim(question).await.epoch;
    let good = record(scene.run, question, StepNo::RECALL, epoch, recalled());
    let foreign_judge = Opens::Judges(vec![TaskKey::judge(0, 1, 0, 0)]);
    let bad: Vec<StepRecord> = vec![
        StepRecord { effect: Effect::Failed, ..good.clone() },
        StepRecord { step: StepNo::FAILED, ..good.clone() },
        StepRecord { step: StepNo::RECALL, ..failing(scene.run, question, epoch, "x") },
        StepRecord { text: Some(recall_text("x")), ..failing(scene.run, question, epoch, "x") },
        ending(scene.run, question, StepNo::SCORE, epoch, scored(1.0), Opens::ReadyTask),
        ending(scene.run, question, StepNo::SCORE, epoch, scored(1.0), foreign_judge),
    ];
    for bad in bad {
        let error = scene.try_commit(&[good.clone(), bad.clone()]).await.expect_err("must be refused");
        assert!(matches!(error, StoreError::BadData(_)), "{bad:?}: {error}");
    }
    assert_eq!(store.question_steps(scene.run, &[question]).await.expect("are read"), []);
    assert_eq!(scene.commit(&[good]).await.already, [None]);
}

/// What was paid is counted once, also when the result came too late.
pub async fn p8_calls_of_lost_races_are_paid(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    scene.make_ready(0, 1).await;
    let question = TaskKey::question(0, 0);
    let epoch = scene.recall(question).await;
    let paid = |cost, outcome| StepRecord {
        calls: vec![call("q", outcome, cost), call("q", CallOutcome::Rejected, 1)],
        ..record(scene.run, question, StepNo::ANSWER, epoch, answered())
    };
    let first = paid(100, CallOutcome::Accepted);
    scene.commit(std::slice::from_ref(&first)).await;
    scene.commit(&[first]).await;
    scene.commit(&[paid(40, CallOutcome::Uncertain)]).await;
    let counters = scene.counters().await;
    assert_eq!((counters.spent, counters.uncertain, counters.answered), (PicoUsd(142), PicoUsd(40), 1));
    let release = Release { run: scene.run, task: question, epoch, event: TaskEvent::Park, delay_ms: 0, reason: None };
    store.release(&[release]).await.expect("is released");
}
