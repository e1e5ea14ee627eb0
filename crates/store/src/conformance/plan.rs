//! Banks and the plan.

use bench_proto::{
    LOCAL_DOMAIN, PLANS_DOMAIN,
    ids::{Role, TaskKey},
    step::StepNo,
};

use super::{Fresh, Scene, bank, new_run, record, retained};
use crate::{BankState, FilledBank, NewBank, NewRun, RunState, Segment, StoreError};

/// Keys are a function of what a task is about, so a plan that was cut is simply made again.
pub async fn p28_planning_twice_makes_the_same_rows(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let banks = [bank(0, &[(3, &[0, 1])]), bank(1, &[(2, &[0]), (4, &[1])])];
    let scene = Scene::start(store, &banks).await;
    store.add_banks(scene.run, &banks).await.expect("are added again");
    store.add_banks(scene.run, &[bank(2, &[(1, &[])])]).await.expect("is added");
    store.add_banks(scene.run, &[]).await.expect("nothing is fine");
    assert_eq!(scene.ready(Role::Retain).await, [TaskKey::retain(0, 0), TaskKey::retain(1, 0), TaskKey::retain(2, 0)]);
    let rows = store.banks(scene.run, None).await.expect("are read");
    assert_eq!(rows.iter().map(|b| b.bank_no).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((rows[1].segments.clone(), rows[1].content), (banks[1].segments.clone(), banks[1].content));
    assert_eq!((rows[1].questions, rows[1].gold), (banks[1].questions, banks[1].gold));
    assert_eq!((rows[1].state, rows[1].position, rows[1].generation), (BankState::Building, 0, 1));
    assert!(rows[0].bank_row != rows[1].bank_row && rows[1].bank_row != rows[2].bank_row);
    let some = store.banks(scene.run, Some(&[2, 0, 77])).await.expect("are read");
    assert_eq!(some.iter().map(|b| b.bank_no).collect::<Vec<_>>(), [0, 2]);
    let counters = scene.counters().await;
    assert_eq!((counters.banks_planned, counters.entries_planned), (3, 8));
    assert!(store.run(scene.run).await.expect("is read").planned);
}

/// However many banks wait, one that is retained goes on: its questions are what a run waits for.
pub async fn p28_a_bank_is_proven_ready_before_the_next_is_begun(fresh: &Fresh) {
    let banks: Vec<_> = (0..4).map(|no| bank(no, &[(1, &[0])])).collect();
    let scene = Scene::start(fresh.store.as_ref(), &banks).await;
    scene.retain(2, 0, 0, 1).await;
    let retains = [0, 1, 3].map(|bank| TaskKey::retain(bank, 0));
    assert_eq!(scene.ready(Role::Retain).await, [&[TaskKey::ready(2, 0)][..], &retains].concat());
    let some = fresh.store.ready_tasks(scene.run, Role::Retain, 2).await.expect("are read");
    assert_eq!(some.iter().map(|ready| ready.task).collect::<Vec<_>>(), [TaskKey::ready(2, 0), retains[0]]);
}

/// Only items that nobody refers to are dropped, and none while a plan is being written.
pub async fn p16_unreferenced_items_are_dropped(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let used = crate::Item::from_bytes(b"[1]".to_vec());
    let unused = crate::Item::from_bytes(b"[2]".to_vec());
    store.put_items(&[used.clone(), unused.clone()]).await.expect("are put");
    let run = store.create_run(&new_run("r")).await.expect("is created");
    assert_eq!(store.drop_unreferenced_items().await.expect("answers"), None, "a plan is being written");
    store.add_banks(run, &[NewBank { content: used.hash, ..bank(0, &[(1, &[])]) }]).await.expect("is added");
    store.finish_plan(run).await.expect("is planned");
    assert_eq!(store.drop_unreferenced_items().await.expect("answers"), Some(1));
    assert_eq!(store.item(used.hash).await.expect("is read"), used.bytes);
    assert!(matches!(store.item(unused.hash).await, Err(StoreError::Missing(_))));
    assert_eq!(store.drop_unreferenced_items().await.expect("answers"), Some(0));

    // plans of runs that are held are written too, by clients of a cluster and by the owners of local runs
    let held = store.create_run(&NewRun { waits: true, ..new_run("held") }).await.expect("is created");
    assert_eq!(store.run(held).await.expect("is read").state, RunState::Paused);
    for domain in [format!("{PLANS_DOMAIN}/{}", held.0), format!("{LOCAL_DOMAIN}/{}", held.0)] {
        let writer = store.open_session("planner", &domain, "{}").await.expect("begins");
        store.put_items(std::slice::from_ref(&unused)).await.expect("is put");
        assert_eq!(store.drop_unreferenced_items().await.expect("answers"), None, "{domain}");
        store.close_session(writer).await.expect("ends");
        assert_eq!(store.drop_unreferenced_items().await.expect("answers"), Some(1), "{domain}");
    }
    let works = store.open_session("w1", &format!("{LOCAL_DOMAIN}/{}", run.0), "{}").await.expect("begins");
    assert_eq!(store.drop_unreferenced_items().await.expect("answers"), Some(0), "its plan is written");
    store.close_session(works).await.expect("ends");
}

/// Banks that no task key can name are refused with a reason, and so are banks of a run that is not there.
pub async fn contradictory_banks_are_refused(fresh: &Fresh) {
    let store = &fresh.store;
    let run = store.create_run(&new_run("r")).await.expect("is created");
    let no_segment = NewBank { segments: vec![], ..bank(0, &[(1, &[])]) };
    let far = NewBank { bank_no: TaskKey::MAX_BANKS, ..bank(0, &[(1, &[])]) };
    let wide =
        NewBank { segments: vec![Segment { until: 1, questions: vec![TaskKey::MAX_INDEX] }], ..bank(0, &[(1, &[])]) };
    for bad in [no_segment, far, wide] {
        let error = store.add_banks(run, &[bad]).await.expect_err("must be refused");
        assert!(matches!(error, StoreError::BadData(_)), "{error}");
    }
    let missing = store.add_banks(bench_proto::ids::RunNo(999), &[bank(0, &[(1, &[])])]).await;
    assert!(matches!(missing, Err(StoreError::Missing(_))));
}

/// The first handle of a generation stays; a new generation begins from nothing, and only for the holder.
pub async fn p5_handles_and_generations(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(3, &[0])])]).await;
    let (run, retain) = (scene.run, TaskKey::retain(0, 0));
    assert_eq!(store.set_bank_handle(run, 0, 1, "h1").await.expect("is set"), "h1");
    assert_eq!(store.set_bank_handle(run, 0, 1, "h2").await.expect("is answered"), "h1");
    assert!(matches!(store.set_bank_handle(run, 0, 2, "h3").await, Err(StoreError::Missing(_))));
    let epoch = scene.claim(retain).await.epoch;
    scene.commit(&[record(run, retain, StepNo::retain(0), epoch, retained(1))]).await;
    assert_eq!((scene.bank(0).await.position, scene.counters().await.entries_retained), (1, 1));

    assert_eq!(store.new_generation(run, 0, epoch + 1).await.expect("answers"), None);
    assert_eq!(store.new_generation(run, 0, epoch).await.expect("answers"), Some(2));
    let row = scene.bank(0).await;
    assert_eq!((row.generation, row.position, row.handle, row.state), (2, 0, None, BankState::Building));
    assert_eq!(scene.counters().await.entries_retained, 0);
    let again = scene.commit(&[record(run, retain, StepNo::retain(0), epoch, retained(2))]).await;
    assert_eq!(again.already, [None], "checkpoints of the old generation are forgotten");
    assert_eq!(store.set_bank_handle(run, 0, 2, "h4").await.expect("is set"), "h4");
    assert!(store.new_generation(run, 9, epoch).await.is_err());
}

/// What another run has filled is asked under the name and the handle that it has; whoever removes banks is told that it is in use.
pub async fn p33_a_bank_that_was_filled_before_keeps_its_name_until_it_begins_anew(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(2, &[0])]), bank(1, &[(2, &[0])])]).await;
    store.set_bank_handle(scene.run, 0, 1, "a handle").await.expect("is set");
    let filler = scene.bank(0).await;
    assert!(store.banks_in_use(scene.run).await.expect("are read").is_empty());
    let number = filler.name_of(1).replace(&format!("bench-{}-g1", filler.bank_row), "");

    let filled = FilledBank { name: filler.name_of(1), handle: "a handle".to_owned(), by: Some(filler.bank_row) };
    let there = FilledBank { name: "somebody's".to_owned(), handle: "theirs".to_owned(), by: None };
    let banks = [
        NewBank { filled: Some(filled.clone()), ..bank(0, &[(2, &[0])]) },
        NewBank { filled: Some(there.clone()), ..bank(1, &[(2, &[0])]) },
        bank(2, &[(2, &[0])]),
    ];
    let user = store.create_run(&new_run("user")).await.expect("is created");
    store.add_banks(user, &banks).await.expect("are added");
    store.finish_plan(user).await.expect("is finished");
    let user = Scene { store, run: user, session: scene.session };
    let rows = store.banks(user.run, None).await.expect("are read");
    assert_eq!(rows[0].filled_before(), Some(&filled));
    assert_eq!((rows[0].name_of(1), rows[0].handle.as_deref()), (filler.name_of(1), Some("a handle")));
    assert_eq!((rows[1].name_of(1), rows[1].handle.as_deref()), (there.name.clone(), Some("theirs")));
    assert_eq!((rows[2].filled.clone(), rows[2].handle.clone()), (None, None));
    assert_eq!(rows[2].name_of(1), format!("bench-{}-g1{number}", rows[2].bank_row));
    let in_use = store.banks_in_use(scene.run).await.expect("are read");
    assert_eq!(in_use.into_iter().collect::<Vec<_>>(), [(0, "user".to_owned())]);

    let epoch = user.claim(TaskKey::retain(0, 0)).await.epoch;
    assert_eq!(store.new_generation(user.run, 0, epoch).await.expect("is raised"), Some(2));
    let anew = user.bank(0).await;
    assert_eq!((anew.filled_before(), anew.handle.clone()), (None, None));
    assert_eq!(anew.name_of(2), format!("bench-{}-g2{number}", anew.bank_row));
    assert_eq!(anew.name_of(1), filler.name_of(1), "which is another run's to remove");
    assert!(store.banks_in_use(scene.run).await.expect("are read").is_empty());

    // a worker of an earlier release knows nothing of it: what it opens and fills is the run's
    assert_eq!(store.set_bank_handle(user.run, 1, 1, "own").await.expect("is set"), "own");
    let own = user.bank(1).await;
    assert_eq!((own.filled_before(), own.handle.as_deref()), (None, Some("own")));
    assert_eq!(own.name_of(1), format!("bench-{}-g1{number}", own.bank_row));

    let fork = store.create_run(&new_run("fork")).await.expect("is created");
    store.adopt(fork, &banks, &[]).await.expect("are adopted");
    let rows = store.banks(fork, None).await.expect("are read");
    assert_eq!((rows[0].filled.clone(), rows[0].handle.as_deref()), (Some(filled), Some("a handle")));
    assert_eq!(store.banks_in_use(scene.run).await.expect("are read").len(), 1);
    let ended = store.set_run_state(fork, &[RunState::Running], RunState::Finished, None).await.expect("changes");
    assert!(ended && store.banks_in_use(scene.run).await.expect("are read").is_empty());
}
