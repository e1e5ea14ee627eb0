//! Several tasks and several processes on one store.

use std::{collections::BTreeSet, time::Duration};

use bench_proto::{
    ids::{Role, RunNo, TaskKey},
    outage::OutageEvent,
    spec::{Limits, ModelSpec},
    step::{Opens, StepNo},
};

use super::{Fresh, Scene, bank, ending, new_run, recalled, record, retained};
use crate::{ClaimedTask, open};

/// Eight workers want the same 200 tasks: each task is claimed once.
pub async fn p1_each_task_is_claimed_once(fresh: &Fresh) {
    let questions: Vec<u32> = (0..200).collect();
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &questions)])]).await;
    scene.make_ready(0, 1).await;
    let wanted: Vec<(RunNo, TaskKey)> =
        scene.ready(Role::Question).await.into_iter().map(|task| (scene.run, task)).collect();
    assert_eq!(wanted.len(), 200);
    let workers: Vec<_> = (0..8_usize)
        .map(|worker| {
            let (store, mut wanted) = (fresh.store.clone(), wanted.clone());
            tokio::spawn(async move {
                let session = store.open_session(&format!("w{worker}"), "local", "{}").await.expect("opens");
                wanted.rotate_left(worker * 25);
                let mut claimed = Vec::new();
                for part in wanted.chunks(10) {
                    claimed.extend(store.claim(session, part).await.expect("claims"));
                }
                claimed
            })
        })
        .collect();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.expect("the worker ends well"));
    }
    assert_eq!(all.len(), 200);
    assert_eq!(all.iter().map(|claimed| claimed.task).collect::<BTreeSet<_>>().len(), 200);
    assert!(all.iter().all(|claimed| claimed.epoch == 1));
}

/// Eight workers that claim together stay within the run's limit. A question counts until its votes are in, what is refused is
/// handed out again later, and a limit may change.
pub async fn p25_claims_beyond_the_limit_are_refused(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let questions: Vec<u32> = (0..40).collect();
    let mut new = new_run("r");
    new.spec.judges = vec![new.spec.answerer.clone()];
    let scene = Scene::start_as(store, &new, &[bank(0, &[(1, &questions)])]).await;
    scene.make_ready(0, 1).await;
    let limited = |concurrency| Limits { concurrency: Some(concurrency), ..Limits::default() };
    store.set_limits(scene.run, &limited(5)).await.expect("limits change");
    let ready = store.ready_tasks(scene.run, Role::Question, 40).await.expect("are read");
    store.note_published(scene.run, &ready).await.expect("is noted");
    let wanted: Vec<(RunNo, TaskKey)> = ready.iter().map(|ready| (scene.run, ready.task)).collect();
    let workers: Vec<_> = wanted
        .chunks(5)
        .map(|part| {
            let (store, part) = (fresh.store.clone(), part.to_vec());
            tokio::spawn(async move {
                let session = store.open_session("w", "local", "{}").await.expect("opens");
                store.claim(session, &part).await.expect("claims")
            })
        })
        .collect();
    let mut claimed = Vec::new();
    for worker in workers {
        claimed.extend(worker.await.expect("the worker ends well"));
    }
    assert_eq!(claimed.len(), 5, "{claimed:?}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(scene.ready(Role::Question).await.len(), 35, "what was refused can be published again");

    // four of five end; one waits for its vote
    let vote = TaskKey::judge(0, claimed[0].task.index(), 0, 0);
    for (number, task) in claimed.iter().enumerate() {
        let opens = if number == 0 { Opens::Judges(vec![vote]) } else { Opens::Nothing };
        scene.commit(&scene.whole_question(task.task, task.epoch, 1.0, opens)).await;
    }
    let open: Vec<(RunNo, TaskKey)> =
        scene.ready(Role::Question).await.into_iter().map(|task| (scene.run, task)).collect();
    assert_eq!(store.claim(scene.session, &open).await.expect("claims").len(), 4, "one counts until its vote is in");
    assert_eq!(
        store.claim(scene.session, &[(scene.run, vote)]).await.expect("claims").len(),
        1,
        "votes are never refused"
    );
    tokio::time::sleep(Duration::from_millis(300)).await;
    store.set_limits(scene.run, &Limits::default()).await.expect("limits change");
    assert_eq!(store.claim(scene.session, &open).await.expect("claims").len(), 31, "without a limit all are claimed");
}

/// A question has one place however many of its votes wait, and those of questions that are worked on hide no others.
pub async fn p25_a_question_has_one_place_while_its_votes_wait(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let mut new = new_run("r");
    new.spec.judges = vec![new.spec.answerer.clone()];
    new.spec.votes = 2;
    new.spec.limits.concurrency = Some(3);
    let questions: Vec<u32> = (0..10).collect();
    let scene = Scene::start_as(store, &new, &[bank(0, &[(1, &questions)])]).await;
    scene.make_ready(0, 1).await;
    for question in 0..3 {
        let votes = [0, 1].map(|vote| TaskKey::judge(0, question, 0, vote));
        scene.answer(TaskKey::question(0, question), 1.0, Opens::Judges(votes.to_vec())).await;
    }
    for question in 0..2 {
        scene.claim(TaskKey::judge(0, question, 0, 0)).await;
    }
    let open: Vec<(RunNo, TaskKey)> =
        scene.ready(Role::Question).await.into_iter().map(|task| (scene.run, task)).collect();
    assert_eq!(open.len(), 7);
    let claimed = store.claim(scene.session, &open).await.expect("claims");
    assert_eq!(claimed, [], "two are being judged, and one waits with both of its votes");
}

/// Votes that wait for a judge that is away take no place of the run's limit; when it is back, or somebody works on them, they do.
pub async fn p39_votes_that_wait_for_their_judge_take_no_place(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let mut new = new_run("r");
    let judge = ModelSpec {
        provider: "openai".into(),
        name: "judge".into(),
        account: "openai".into(),
        ..new.spec.answerer.clone()
    };
    let route = judge.chat_route().expect("is asked over the network").to_text();
    new.spec.judges = vec![judge];
    new.spec.limits.concurrency = Some(2);
    let questions: Vec<u32> = (0..20).collect();
    let scene = Scene::start_as(store, &new, &[bank(0, &[(1, &questions)])]).await;
    scene.make_ready(0, 1).await;
    let claim = async || -> Vec<ClaimedTask> {
        // what was refused before is due again
        tokio::time::sleep(Duration::from_millis(300)).await;
        let ready = scene.ready(Role::Question).await;
        let wanted: Vec<(RunNo, TaskKey)> = ready.into_iter().map(|task| (scene.run, task)).collect();
        store.claim(scene.session, &wanted).await.expect("claims")
    };
    let answer = async |claimed: Vec<ClaimedTask>| {
        for ClaimedTask { task, epoch, .. } in claimed {
            let opens = Opens::Judges(vec![TaskKey::judge(0, task.index(), 0, 0)]);
            scene.commit(&scene.whole_question(task, epoch, 1.0, opens)).await;
        }
    };
    let claimed = claim().await;
    assert_eq!(claimed.len(), 2);
    answer(claimed).await;
    assert_eq!(claim().await.len(), 0, "their votes are not in");

    let told = async |event| store.outage("local", &route, event, "503").await.expect("answers").0;
    assert!(told(OutageEvent::Suspect { known: 0 }).await);
    let claimed = claim().await;
    assert_eq!(claimed.len(), 2, "answers go on");
    answer(claimed).await;
    let votes = store.ready_tasks(scene.run, Role::Judge, 1).await.expect("are read");
    store.note_published(scene.run, &votes).await.expect("is noted");
    let claimed = claim().await;
    assert_eq!(claimed.len(), 1, "a vote is on its way to somebody");
    answer(claimed).await;
    assert!(told(OutageEvent::ProbeSucceeded { opening: 1 }).await);
    assert_eq!(claim().await.len(), 0, "five wait for votes that can be had");
}

/// A system that takes two operations at a time retains two segments at a time, whatever was asked for questions.
pub async fn p25_a_systems_own_limit_bounds_its_banks_too(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let banks: Vec<_> = (0..4).map(|no| bank(no, &[(1, &[0])])).collect();
    let scene = Scene::start(store, &banks).await;
    let limits = Limits { concurrency: Some(100), system_parallel: Some(2), ..Limits::default() };
    store.set_limits(scene.run, &limits).await.expect("limits change");
    let all: Vec<(RunNo, TaskKey)> =
        scene.ready(Role::Retain).await.into_iter().map(|task| (scene.run, task)).collect();
    let first = store.claim(scene.session, &all).await.expect("claims");
    assert_eq!(first.iter().map(|claimed| claimed.task.bank()).collect::<Vec<_>>(), [0, 1]);
    let facts = retained(scene.bank(0).await.generation);
    scene.commit(&[ending(scene.run, first[0].task, StepNo::retain(0), first[0].epoch, facts, Opens::ReadyTask)]).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let second = store.claim(scene.session, &all).await.expect("claims");
    assert_eq!(second.iter().map(|claimed| claimed.task.bank()).collect::<Vec<_>>(), [2]);
}

/// A second process sees what the first committed, and both may write.
pub async fn p14_two_processes_share_a_store(fresh: &Fresh) {
    let questions: Vec<u32> = (0..40).collect();
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &questions)])]).await;
    scene.make_ready(0, 1).await;
    let second = open(&fresh.url).await.expect("opens a second time");
    assert_eq!(second.run(scene.run).await.expect("is read").counters, scene.counters().await);
    let work = |store: std::sync::Arc<dyn crate::Store>, from: u32| {
        let run = scene.run;
        tokio::spawn(async move {
            let session = store.open_session("w", "local", "{}").await.expect("opens");
            for index in (from..40).step_by(2) {
                let task = TaskKey::question(0, index);
                let epoch = store.claim(session, &[(run, task)]).await.expect("claims")[0].epoch;
                store.commit(&[record(run, task, StepNo::RECALL, epoch, recalled())]).await.expect("is stored");
            }
        })
    };
    let (one, two) = (work(fresh.store.clone(), 0), work(second.clone(), 1));
    one.await.expect("ends well");
    two.await.expect("ends well");
    assert_eq!(scene.bank(0).await.open_recalls, 0);
    assert!(second.check().await.expect("is sound").contains("1 runs"));
    assert!(!second.describe().is_empty());
    second.close().await;
    assert!(fresh.store.run(scene.run).await.is_ok(), "closing one leaves the other");
}

/// A caller that goes away leaves either the whole change or nothing, and never a transaction open.
pub async fn dropped_calls_leave_no_transaction_open(fresh: &Fresh) {
    let questions: Vec<u32> = (0..50).collect();
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &questions)])]).await;
    scene.make_ready(0, 1).await;
    for index in 0..50 {
        let task = TaskKey::question(0, index);
        let epoch = scene.claim(task).await.epoch;
        let records = scene.whole_question(task, epoch, 1.0, Opens::Nothing);
        let commit = fresh.store.commit(&records);
        drop(tokio::time::timeout(Duration::from_micros(u64::from(index) * 40), commit).await);
        let again = scene.commit(&records).await;
        let stored = again.already.iter().filter(|facts| facts.is_some()).count();
        assert!(stored == 0 || stored == 3, "half a batch was stored: {again:?}");
    }
    assert_eq!(scene.bank(0).await.open_recalls, 0);
    assert_eq!(scene.counters().await.answered, 50);
}
