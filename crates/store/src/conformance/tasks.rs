//! Handing out tasks: claims, notes, releases, sessions.

use std::time::Duration;

use bench_proto::{
    ids::{Role, RunNo, TaskKey},
    task::TaskEvent,
};

use super::{Fresh, Scene, bank};
use crate::{ClaimedTask, Release, Renewal, RunState, SessionId, StoreError};

pub(super) fn released(claimed: &ClaimedTask, event: TaskEvent, delay_ms: u64) -> Release {
    Release {
        run: claimed.run,
        task: claimed.task,
        epoch: claimed.epoch,
        event,
        delay_ms,
        reason: Some("because".into()),
    }
}

/// Claims are legal from `ready` only, raise the epoch, and are refused for paused runs and tasks that are not due.
pub async fn p1_claims_need_a_running_run_and_a_due_task(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])]), bank(1, &[(1, &[0])])]).await;
    let (a, b) = (TaskKey::retain(0, 0), TaskKey::retain(1, 0));
    store.set_run_state(scene.run, &[RunState::Running], RunState::Paused, None).await.expect("moves");
    assert_eq!(store.claim(scene.session, &[(scene.run, a)]).await.expect("answers"), []);
    store.set_run_state(scene.run, &[RunState::Paused], RunState::Running, None).await.expect("moves");
    tokio::time::sleep(Duration::from_millis(5)).await;
    let unknown = TaskKey::question(7, 7);
    let wanted = [(scene.run, b), (scene.run, a), (scene.run, a), (scene.run, unknown), (RunNo(999), a)];
    let mut claimed = store.claim(scene.session, &wanted).await.expect("answers");
    claimed.sort_by_key(|c| c.task);
    assert_eq!(claimed.iter().map(|c| c.task).collect::<Vec<_>>(), [a, b]);
    assert_eq!((claimed[0].epoch, claimed[0].attempts, claimed[0].losses), (1, 0, 0));
    assert!(claimed[0].queue_wait_us >= 5_000, "{claimed:?}");
    assert_eq!(store.claim(scene.session, &wanted).await.expect("answers"), [], "leased tasks are refused");
    store.release(&[released(&claimed[0], TaskEvent::Retry, 1_000)]).await.expect("is released");
    assert_eq!(store.claim(scene.session, &[(scene.run, a)]).await.expect("answers"), [], "not due yet");
    assert_eq!(scene.ready(Role::Retain).await, []);
    tokio::time::sleep(Duration::from_millis(1_020)).await;
    let again = scene.claim(a).await;
    assert_eq!((again.epoch, again.attempts, again.losses), (2, 1, 0));
    assert!(again.queue_wait_us < 1_000_000, "a retry's delay is no queue wait: {again:?}");
    assert_eq!(store.claim(scene.session, &[]).await.expect("answers"), []);
}

/// After a claim without an answer the session finds out what it holds; nobody else is told.
pub async fn p1_a_claim_whose_answer_was_lost_is_found_again(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])]), bank(1, &[(1, &[0])])]).await;
    let a = (scene.run, TaskKey::retain(0, 0));
    assert_eq!(store.leases(scene.session).await.expect("answers"), [], "nothing is claimed yet");
    let claimed = store.claim(scene.session, &[a]).await.expect("answers");
    let mut held = store.leases(scene.session).await.expect("answers");
    for task in &mut held {
        task.queue_wait_us = claimed[0].queue_wait_us;
    }
    assert_eq!(held, claimed);
    let other = store.open_session("other", "local", "{}").await.expect("opens");
    assert_eq!(store.leases(other).await.expect("answers"), []);
    let theirs = (scene.run, TaskKey::retain(1, 0));
    let taken = store.claim(other, &[theirs]).await.expect("answers");
    assert_eq!(store.leased(scene.run).await.expect("answers"), [a.1, theirs.1], "whoever holds them");
    store.release(&[released(&taken[0], TaskEvent::Park, 0)]).await.expect("is released");
    assert_eq!(store.leased(scene.run).await.expect("answers"), [a.1]);
    store.release(&[released(&claimed[0], TaskEvent::Park, 0)]).await.expect("is released");
    assert_eq!(store.leases(scene.session).await.expect("answers"), []);
}

/// Published tasks are not handed to the dispatcher again until somebody says so; claims do not care.
pub async fn p2_published_is_only_a_note(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let banks: Vec<_> = (0..4).map(|no| bank(no, &[(1, &[0])])).collect();
    let scene = Scene::start(store, &banks).await;
    let tasks = scene.ready(Role::Retain).await;
    assert_eq!(store.ready_tasks(scene.run, Role::Retain, 2).await.expect("are read").len(), 2, "limits hold");
    let rows = store.ready_tasks(scene.run, Role::Retain, 10).await.expect("are read");
    store.note_published(scene.run, &rows[..2]).await.expect("is noted");
    store.note_published(scene.run, &rows[..2]).await.expect("is noted twice");
    assert_eq!(scene.ready(Role::Retain).await, tasks[2..]);
    let claimed = scene.claim(tasks[0]).await;
    store.note_published(scene.run, &rows[..1]).await.expect("a leased task stays as it is");
    store.release(&[released(&claimed, TaskEvent::Park, 0)]).await.expect("is released");
    store.note_published(scene.run, &rows[..1]).await.expect("a note that comes too late changes nothing");
    let ready = store.ready_tasks(scene.run, Role::Retain, 10).await.expect("are read");
    assert_eq!((ready[0].task, ready[0].publish_count), (tasks[0], 1), "a task that came back is published again");
    assert_eq!(store.forget_published(scene.run, None, 60_000).await.expect("forgets"), 0, "it was published just now");
    let judge = store.forget_published(scene.run, Some(Role::Judge), 0).await.expect("forgets");
    assert_eq!(judge, 0, "of another role");
    assert_eq!(store.forget_published(scene.run, None, 0).await.expect("forgets"), 1);
    assert_eq!(store.forget_published(scene.run, None, 0).await.expect("forgets"), 0);
    assert_eq!(scene.ready(Role::Retain).await, tasks);
}

/// Retry and park need the current epoch.
pub async fn p3_events_of_an_old_epoch_change_nothing(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    let task = TaskKey::retain(0, 0);
    let first = scene.claim(task).await;
    store.release(&[released(&first, TaskEvent::Park, 0)]).await.expect("is released");
    let second = scene.claim(task).await;
    for event in [TaskEvent::Retry, TaskEvent::Park] {
        store.release(&[released(&first, event, 0)]).await.expect("is answered");
    }
    let commit = scene.commit(&[super::failing(scene.run, task, first.epoch, "late")]).await;
    assert_eq!(commit.refused, [0], "giving up needs the current epoch too");
    assert_eq!(scene.ready(Role::Retain).await, [], "the second holder keeps the task");
    store.release(&[released(&second, TaskEvent::Retry, 0)]).await.expect("is released");
    assert_eq!(scene.claim(task).await.attempts, 1, "repeating a release counts once");
    let wrong = store.release(&[released(&second, TaskEvent::Finish, 0)]).await;
    assert!(matches!(wrong, Err(StoreError::BadData(_))));
}

/// Waiting long is neither an attempt nor a loss.
pub async fn p11_parking_counts_nothing(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    for _ in 0..3 {
        let claimed = scene.claim(TaskKey::retain(0, 0)).await;
        assert_eq!((claimed.attempts, claimed.losses), (0, 0));
        store.release(&[released(&claimed, TaskEvent::Park, 0)]).await.expect("is released");
    }
}

/// Ending a session makes its tasks ready with one more loss; an ended session gets nothing.
pub async fn p4_the_tasks_of_a_dead_session_are_ready_again(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])]), bank(1, &[(1, &[0])])]).await;
    let other = store.open_session("w2", "local", "{}").await.expect("opens");
    let elsewhere = store.open_session("w3", "cluster", "{}").await.expect("opens");
    assert!(matches!(store.renew_session(scene.session, None).await.expect("renews"), Renewal::Alive(_)));
    let open = store.open_sessions("local").await.expect("are read");
    let seen: Vec<_> = open.iter().map(|s| (s.session, s.worker.as_str(), s.counter, s.leased)).collect();
    assert_eq!(seen, [(scene.session, "w1", 1, 0), (other, "w2", 0, 0)]);
    assert!(open.iter().all(|s| s.info_json == "{}" && (0..60_000).contains(&s.silent_ms)), "{open:?}");
    assert_eq!(store.open_sessions("cluster").await.expect("are read").len(), 1);
    assert!(elsewhere != other);

    let task = TaskKey::retain(0, 0);
    scene.claim(task).await;
    store.claim(other, &[(scene.run, TaskKey::retain(1, 0))]).await.expect("claims");
    let leased: Vec<i64> = store.open_sessions("local").await.expect("are read").iter().map(|s| s.leased).collect();
    assert_eq!(leased, [1, 1]);
    assert_eq!(store.end_session(scene.session).await.expect("ends"), 1);
    assert_eq!(store.end_session(scene.session).await.expect("ends"), 0);
    let renewal = store.renew_session(scene.session, None).await.expect("answers");
    assert_eq!(renewal, Renewal::Ended, "the worker learns that it was ended");
    assert_eq!(store.claim(scene.session, &[(scene.run, task)]).await.expect("answers"), []);
    let claimed = store.claim(other, &[(scene.run, task)]).await.expect("claims");
    assert_eq!((claimed[0].epoch, claimed[0].attempts, claimed[0].losses), (2, 0, 1));
    assert_eq!(store.claim(SessionId(999), &[(scene.run, task)]).await.expect("answers"), []);
    assert_eq!(store.renew_session(SessionId(999), None).await.expect("answers"), Renewal::Unknown);
}

/// A message that came back: the note is forgotten, the task waits, nothing is counted.
pub async fn p12_what_came_back_is_published_again(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])]), bank(1, &[(1, &[0])])]).await;
    let (first, second) = (TaskKey::retain(0, 0), TaskKey::retain(1, 0));
    let rows = store.ready_tasks(scene.run, Role::Retain, 10).await.expect("are read");
    store.note_published(scene.run, &rows).await.expect("is noted");
    scene.claim(second).await;
    let back = store.put_back(scene.run, &[first, second], 0, None).await.expect("is put back");
    assert_eq!(back, 1, "a task that was claimed is not touched");
    let ready = store.ready_tasks(scene.run, Role::Retain, 10).await.expect("is read");
    assert_eq!(ready.iter().map(|t| (t.task, t.publish_count)).collect::<Vec<_>>(), [(first, 1)]);
    store.put_back(scene.run, &[first], 60_000, Some("no worker reads v3")).await.expect("is put back");
    assert_eq!(store.ready_tasks(scene.run, Role::Retain, 10).await.expect("is read"), []);
    assert_eq!(store.claim(scene.session, &[(scene.run, first)]).await.expect("answers"), [], "it waits");
}

/// One leader a scope, taken over by compare-and-set; a leader that was passed over learns it.
pub async fn p14_leadership_is_a_row(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    assert_eq!(store.leader("cluster").await.expect("is read"), None);
    let first = store.take_lead("cluster", "a", None).await.expect("is taken").expect("nobody led");
    assert_eq!(store.take_lead("cluster", "b", None).await.expect("answers"), None, "somebody leads");
    let seen = store.leader("cluster").await.expect("is read").expect("is there");
    assert_eq!((seen.holder.as_str(), seen.epoch), ("a", first));
    assert!(store.renew_lead("cluster", first, "").await.expect("renews").is_some());
    let stale = Some((seen.epoch, seen.counter));
    assert_eq!(store.take_lead("cluster", "b", stale).await.expect("answers"), None, "the leader has moved");
    let seen = store.leader("cluster").await.expect("is read").expect("is there");
    assert!(seen.counter > 0);
    let second = store.take_lead("cluster", "b", Some((seen.epoch, seen.counter))).await.expect("is taken");
    let second = second.expect("it stood still");
    assert!(second > first);
    assert!(store.renew_lead("cluster", first, "").await.expect("answers").is_none(), "the old leader learns it");
    store.resign_lead("cluster", first).await.expect("changes nothing");
    assert!(store.renew_lead("cluster", second, "the broker blocks").await.expect("renews").is_some());
    let leader = store.leader("cluster").await.expect("is read").expect("is there");
    assert_eq!((leader.holder.as_str(), leader.trouble.as_str()), ("b", "the broker blocks"));
    store.resign_lead("cluster", second).await.expect("resigns");
    assert!(store.renew_lead("cluster", second, "").await.expect("answers").is_none());
    assert_eq!(store.leader("cluster").await.expect("is read").expect("is there").holder, "");
    assert_eq!(store.leader("elsewhere").await.expect("is read"), None, "scopes are apart");
}

/// Ready, published, delayed and leased tasks by role.
pub async fn open_tasks_are_counted_by_role(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let banks: Vec<_> = (0..5).map(|no| bank(no, &[(1, &[0, 1, 2])])).collect();
    let scene = Scene::start(store, &banks).await;
    scene.make_ready(0, 1).await;
    let parked = scene.claim(TaskKey::retain(1, 0)).await;
    store.release(&[released(&parked, TaskEvent::Park, 60_000)]).await.expect("is released");
    scene.claim(TaskKey::retain(2, 0)).await;
    let rows = store.ready_tasks(scene.run, Role::Retain, 10).await.expect("are read");
    let third: Vec<_> = rows.into_iter().filter(|ready| ready.task == TaskKey::retain(3, 0)).collect();
    store.note_published(scene.run, &third).await.expect("is noted");
    let open = store.open_tasks(scene.run).await.expect("are counted");
    let retain = open[&Role::Retain];
    assert_eq!((retain.unpublished, retain.queued, retain.delayed, retain.leased), (1, 1, 1, 1));
    let due = retain.next_due_ms.expect("one is delayed");
    assert!((50_000..=60_001).contains(&due), "{due}");
    assert_eq!(store.waits_for(scene.run).await.expect("is read").as_deref(), Some("because"));
    let question = open[&Role::Question];
    assert_eq!((question.unpublished, question.leased, question.next_due_ms), (3, 0, None));
    assert_eq!(open[&Role::Judge], crate::OpenTasks::default());
}
