//! Several tasks and several processes on one store.

use std::{collections::BTreeSet, time::Duration};

use bench_proto::{
    ids::{Role, RunNo, TaskKey},
    step::{Opens, StepNo},
};

use super::{Fresh, Scene, bank, recalled, record};
use crate::open;

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
