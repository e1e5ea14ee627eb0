//! A store that went back in time (P44). What a failover takes back is taken back here by hand.

use bench_proto::{
    call::{CallOutcome, CallRecord, Phase},
    ids::TaskKey,
    money::PicoUsd,
    step::{Opens, StepNo},
};
use uuid::Uuid;

use super::{Fresh, Scene, bank, call, ending, record, retained};
use crate::{BudgetChange, CommitMark, LiveSession, Renewal, RunState, SessionId, Told, WENT_BACK_EVENT, Want};

fn alive(renewal: Renewal) -> Told {
    match renewal {
        Renewal::Alive(told) => told,
        other => panic!("the session is {other:?}"),
    }
}

/// A renewal tells how far a session's batches are stored without a gap, and says when the store has never heard of it.
pub async fn p44_a_session_is_told_what_the_store_knows_of_it(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(9, &[0, 1])])]).await;
    let session = scene.session;
    let task = TaskKey::retain(0, 0);
    let epoch = scene.claim(task).await.epoch;
    let step = |at| [record(scene.run, task, StepNo::retain(at), epoch, retained(1))];
    let told = async || alive(store.renew_session(session, None).await.expect("renews"));
    assert_eq!(told().await, Told { counter: 1, mark: 0, incarnation: 0 });
    for number in 1..=3 {
        let mark = CommitMark { session, number };
        store.commit_marked(&step(number as u32), &[], Some(mark)).await.expect("is stored");
        // its answer was lost
        store.commit_marked(&step(number as u32), &[], Some(mark)).await.expect("is stored once");
    }
    assert_eq!(told().await, Told { counter: 2, mark: 3, incarnation: 0 });
    store.commit_marked(&step(5), &[], Some(CommitMark { session, number: 5 })).await.expect("is stored");
    assert_eq!(told().await.mark, 3, "the fourth is missing");
    let live = |session, counter, mark| LiveSession {
        session,
        worker: "w1".into(),
        domain: "local".into(),
        info_json: "{}".into(),
        counter,
        mark,
    };
    store.restore_session(&live(session, 1, 5)).await.expect("is put back");
    assert_eq!(told().await, Told { counter: 4, mark: 5, incarnation: 0 }, "the higher counter stays");

    let forgotten = SessionId(4711);
    let unknown = store.renew_session(forgotten, None).await.expect("answers");
    assert_eq!(unknown, Renewal::Unknown);
    let late = CommitMark { session: forgotten, number: 9 };
    store.commit_marked(&step(6), &[], Some(late)).await.expect("is stored");
    store.restore_session(&live(forgotten, 8, 9)).await.expect("is put back");
    let back = alive(store.renew_session(forgotten, None).await.expect("renews"));
    assert_eq!(back, Told { counter: 9, mark: 9, incarnation: 0 });
    store.end_session(forgotten).await.expect("is ended");
    assert_eq!(store.renew_session(forgotten, None).await.expect("answers"), Renewal::Ended);
}

/// However many notice, the incarnation changes once, and each open run says why.
pub async fn p44_an_incarnation_changes_once_for_all_who_notice(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    let ended = store.create_run(&super::new_run("ended")).await.expect("is created");
    store.set_run_state(ended, &[RunState::Running], RunState::Finished, None).await.expect("ends");
    assert_eq!(store.incarnation().await.expect("is read").number, 0);
    let first = store.change_incarnation(0, "worker1 was told less").await.expect("changes");
    assert!(first > 0);
    assert_eq!(store.change_incarnation(0, "worker2 was told less").await.expect("is told"), first);
    let now = store.incarnation().await.expect("is read");
    assert_eq!((now.number, now.note.as_str()), (first, "worker1 was told less"));
    let told = async |run| {
        let events = store.events(run).await.expect("are read");
        events.into_iter().filter(|event| event.kind == WENT_BACK_EVENT).map(|event| event.message).collect::<Vec<_>>()
    };
    assert_eq!(told(scene.run).await, ["worker1 was told less"]);
    assert_eq!(told(ended).await, Vec::<String>::new());
    let second = store.change_incarnation(first, "again").await.expect("changes");
    assert!(![0, first].contains(&second));
    let told = alive(store.renew_session(scene.session, None).await.expect("renews"));
    assert_eq!(told.incarnation, second, "every session hears of it");
    let epoch = store.take_lead("local", "c", None).await.expect("is taken").expect("is free");
    let lead = store.renew_lead("local", epoch, "").await.expect("renews").expect("still leads");
    assert_eq!((lead.counter, lead.incarnation), (1, second));
}

/// Names that were given before the store went back are never given again, and those of the first incarnation stay.
pub async fn p44_banks_never_get_a_name_that_was_forgotten(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(2, &[0])]), bank(1, &[(2, &[0])])]).await;
    let old = scene.bank(0).await;
    let name = old.name_of(1);
    // the store's own number
    let own = name.strip_prefix(&format!("bench-{}-g1", old.bank_row)).expect("has its number and generation");
    assert!(own.starts_with("-i") && own.len() > 2 && !old.outdated, "{name}");
    let retain = TaskKey::retain(0, 0);
    let epoch = scene.claim(retain).await.epoch;
    let incarnation = store.change_incarnation(0, "a failover").await.expect("changes");
    let same = scene.bank(0).await;
    assert_eq!((same.name_of(1), same.outdated), (old.name_of(1), true), "its name stays, what it holds is in doubt");
    assert_eq!(store.new_generation(scene.run, 0, epoch).await.expect("is raised"), Some(2));
    let raised = scene.bank(0).await;
    let row = raised.bank_row;
    assert_eq!(raised.name_of(2), format!("bench-{row}-g2-i{incarnation:x}"));
    assert_eq!((raised.name_of(1), raised.outdated), (format!("bench-{row}-g1{own}"), false));
    assert_eq!(raised.forgotten_names(), [(2, format!("bench-{row}-g2{own}"))]);

    let again = store.change_incarnation(incarnation, "another failover").await.expect("changes");
    assert_eq!(store.new_generation(scene.run, 0, epoch).await.expect("is raised"), Some(3));
    assert_eq!(store.new_generation(scene.run, 0, epoch).await.expect("is raised"), Some(4));
    let raised = scene.bank(0).await;
    let names = [1, 2, 3, 4].map(|generation| raised.name_of(generation));
    let expected = [own.to_owned(), format!("-i{incarnation:x}"), format!("-i{again:x}"), format!("-i{again:x}")];
    let numbered = expected.iter().enumerate().map(|(at, suffix)| format!("bench-{row}-g{}{suffix}", at + 1));
    assert_eq!(names.to_vec(), numbered.collect::<Vec<_>>());
    assert_eq!(
        raised.forgotten_names(),
        [(2, format!("bench-{row}-g2{own}")), (3, format!("bench-{row}-g3-i{incarnation:x}"))]
    );

    let mut later = super::new_run("later");
    later.run_id = bench_proto::ids::RunId::parse("later").expect("an id");
    let run = store.create_run(&later).await.expect("is created");
    store.add_banks(run, &[bank(0, &[(2, &[0])])]).await.expect("are added");
    let new = store.banks(run, None).await.expect("are read").remove(0);
    assert_eq!(new.name_of(1), format!("bench-{}-g1-i{again:x}", new.bank_row));
    assert!(!new.outdated);
}

/// Tasks that the store has forgotten to be held go back to who works on them, unless somebody else has them by now.
pub async fn p44_leases_go_back_to_who_works_on_them(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0, 1, 2])])]).await;
    scene.make_ready(0, 1).await;
    let questions = [0, 1, 2].map(|index| TaskKey::question(0, index));
    let (free, taken, done) = (questions[0], questions[1], questions[2]);
    let other = store.open_session("w2", "local", "{}").await.expect("opens");
    let claimed = store.claim(other, &[(scene.run, taken)]).await.expect("claims");
    assert_eq!(claimed.len(), 1);
    scene.answer(done, 1.0, Opens::Nothing).await;
    // what this session was told before the store forgot it
    let held = |task, epoch| crate::ClaimedTask { task, epoch, session: scene.session, ..claimed[0] };
    let all = [held(free, 3), held(taken, 1), held(done, 1), held(TaskKey::question(7, 7), 1)];
    assert_eq!(store.restore_leases(scene.session, &all).await.expect("are restored"), 1);
    assert_eq!(store.restore_leases(scene.session, &all).await.expect("is repeated"), 0);
    let leases = store.leases(scene.session).await.expect("are read");
    assert_eq!(leases.iter().map(|lease| (lease.task, lease.epoch)).collect::<Vec<_>>(), [(free, 3)]);
    let theirs = store.leases(other).await.expect("are read");
    assert_eq!(theirs.iter().map(|lease| lease.task).collect::<Vec<_>>(), [taken]);
    store.end_session(other).await.expect("is ended");
    assert_eq!(
        store.restore_leases(other, &[held(taken, 9)]).await.expect("answers"),
        0,
        "an ended session holds nothing"
    );
}

/// What the store has forgotten of reservations and of lost or paid calls is booked again, once.
pub async fn p44_forgotten_money_is_booked_once(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    let (run, session) = (scene.run, scene.session);
    let want = |amount| Want { attempt: Uuid::now_v7(), phase: Phase::Answer, amount: PicoUsd(amount) };
    let sums = async || {
        let counters = scene.counters().await;
        [counters.spent.0, counters.reserved.0, counters.uncertain.0]
    };
    let (known, settled, forgotten, lost, lost_later) = (want(10), want(20), want(40), want(80), want(160));
    let wants = vec![known, settled, lost_later];
    let reserve = BudgetChange { run, session, release: vec![], lose: vec![], wants };
    store.change_budget(&reserve).await.expect("are reserved");
    let paid = CallRecord { attempt_id: settled.attempt, ..call("x", CallOutcome::Accepted, 7) };
    store.put_calls(run, TaskKey::question(0, 0), std::slice::from_ref(&paid)).await.expect("is put");
    assert_eq!(sums().await, [7, 170, 0]);

    let open = [known, settled, forgotten];
    let gone = [lost, lost_later, settled];
    for repeat in 0..2 {
        let booked = store.restore_money(run, session, &open, &gone).await.expect("is restored");
        assert_eq!(booked, if repeat == 0 { (2, PicoUsd(240)) } else { (0, PicoUsd(0)) });
        assert_eq!(sums().await, [7 + 240, 50, 240]);
    }
    // a record that comes late replaces what was uncertain
    let late = CallRecord { attempt_id: gone[0].attempt, ..call("y", CallOutcome::Accepted, 60) };
    store.put_calls(run, TaskKey::question(0, 0), std::slice::from_ref(&late)).await.expect("is put");
    assert_eq!(sums().await, [7 + 60 + 160, 50, 160]);
}

/// A batch that was acknowledged and forgotten is stored by its repeat, whatever has become of its task meanwhile.
pub async fn p44_a_batch_is_committed_again_over_a_later_claim(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    scene.make_ready(0, 1).await;
    let question = TaskKey::question(0, 0);
    // the store has forgotten this claim and this batch, and another holds the task under the same epoch
    let batch = scene.whole_question(question, 1, 1.0, Opens::Nothing);
    let other = store.open_session("w2", "local", "{}").await.expect("opens");
    let claimed = store.claim(other, &[(scene.run, question)]).await.expect("claims");
    assert_eq!(claimed[0].epoch, 1);
    let again = scene.commit(&batch).await;
    assert_eq!((again.already, again.to_conclude), (vec![None, None, None], vec![(scene.run, question)]));
    let step = ending(scene.run, question, StepNo::SCORE, 1, super::scored(0.0), Opens::Nothing);
    assert!(scene.commit(&[step]).await.already[0].is_some(), "the other learns that it is done");
}
