//! Runs, summaries, events, items.

use std::time::Duration;

use bench_proto::{
    facts::Outcome,
    ids::{RunId, RunNo, Sha256Hash, TaskKey},
    money::PicoUsd,
    spec::Limits,
    step::{Opens, StepNo},
};

use super::{Fresh, HEADLINE, Scene, answer_text, bank, new_run, question_facts, recall_text};
use crate::{Creation, Item, Lacking, NewRun, RunFilter, RunState, StoreError};

/// Ids are taken once; lists show the newest first, of a user, by prefix, without controls unless asked.
pub async fn runs_are_created_once_and_listed_newest_first(fresh: &Fresh) {
    let store = &fresh.store;
    let first = store.create_run(&new_run("aa-1")).await.expect("is created");
    assert!(matches!(store.create_run(&new_run("aa-1")).await, Err(StoreError::Exists(_))));
    let there = store.run(first).await.expect("is read");
    let found = store.create_or_find(&NewRun { user: "bob".into(), ..new_run("aa-1") }, &[]).await.expect("is found");
    assert_eq!(found, Creation::Found(Box::new(there)), "the first one stays as it is");
    let bob = NewRun { user: "bob".into(), ..new_run("ab-2") };
    let second = store.create_run(&bob).await.expect("is created");
    let control = NewRun { control_of: Some(second), ..new_run("ab-3") };
    let third = store.create_run(&control).await.expect("is created");

    let row = store.run(first).await.expect("is read");
    assert_eq!((row.run_id, row.name, row.tags), (RunId("aa-1".into()), new_run("aa-1").name, new_run("x").tags));
    assert_eq!((row.spec, row.state, row.planned, row.resumed_times), (super::spec(), RunState::Running, false, 0));
    assert!(row.active_since_ms.is_some() && row.created_ms > 1_700_000_000_000);
    assert!(matches!(store.run(RunNo(999)).await, Err(StoreError::Missing(_))));
    let by_id = store.run_by_id(&RunId("ab-3".into())).await.expect("is read").expect("is there");
    assert_eq!((by_id.run_no, by_id.control_of), (third, Some(second)));
    assert_eq!(store.run_by_id(&RunId("ab".into())).await.expect("is read"), None);

    let list = async |filter: RunFilter| -> Vec<RunNo> {
        let rows = store.list_runs(&filter).await.expect("is listed");
        rows.into_iter().map(|row| row.run_no).collect()
    };
    assert_eq!(list(RunFilter::default()).await, [second, first]);
    assert_eq!(list(RunFilter { controls: true, ..RunFilter::default() }).await, [third, second, first]);
    assert_eq!(list(RunFilter { control_of: Some(second), ..RunFilter::default() }).await, [third]);
    assert_eq!(
        list(RunFilter { id_part: Some("ab".into()), controls: true, ..RunFilter::default() }).await,
        [third, second]
    );
    assert_eq!(list(RunFilter { id_part: Some("-2".into()), ..RunFilter::default() }).await, [second], "its end");
    assert_eq!(
        list(RunFilter { id_part: Some("xxab-2".into()), ..RunFilter::default() }).await,
        [],
        "longer than the id"
    );
    assert_eq!(
        list(RunFilter { id_part: Some("b-".into()), ..RunFilter::default() }).await,
        [],
        "its middle is no part"
    );
    assert_eq!(list(RunFilter { name: new_run("aa-1").name, ..RunFilter::default() }).await, [first]);
    assert_eq!(list(RunFilter { name: Some("name of".into()), ..RunFilter::default() }).await, [], "a whole name");
    assert_eq!(list(RunFilter { user: Some("ann".into()), ..RunFilter::default() }).await, [first]);
    assert_eq!(list(RunFilter { limit: Some(1), ..RunFilter::default() }).await, [second]);

    let tags = vec!["release".to_owned(), "\0 \\".to_owned()];
    store.set_labels(second, Some("a \\ name"), &tags).await.expect("is named");
    let named = store.run(second).await.expect("is read");
    assert_eq!((named.name.as_deref(), named.tags), (Some("a \\ name"), tags));
    assert_eq!(list(RunFilter { name: Some("a \\ name".into()), ..RunFilter::default() }).await, [second]);
    for (start, named) in [("a \\ ", &[second][..]), ("name of", &[first]), ("ame of", &[]), ("a \\ name or more", &[])]
    {
        assert_eq!(list(RunFilter { name_start: Some(start.into()), ..RunFilter::default() }).await, named, "{start}");
    }
    store.set_labels(second, None, &[]).await.expect("is unnamed");
    assert_eq!(store.run(second).await.expect("is read").name, None);
    assert!(matches!(store.set_labels(RunNo(999), None, &[]).await, Err(StoreError::Missing(_))));

    let domain = new_run("x").domain;
    assert_eq!(store.running_runs(&domain).await.expect("are read"), [(first, 1), (second, 1), (third, 1)]);
    assert_eq!(store.running_runs("elsewhere").await.expect("are read"), []);
    assert!(store.set_run_state(second, &[RunState::Running], RunState::Paused, None).await.expect("is paused"));
    assert_eq!(store.running_runs(&domain).await.expect("are read"), [(first, 1), (third, 1)]);

    let open = RunFilter { open: true, controls: true, ..RunFilter::default() };
    assert_eq!(list(open.clone()).await, [third, second, first]);
    for (run, end) in [(third, RunState::Finished), (second, RunState::Cancelled)] {
        assert!(store.set_run_state(run, &[RunState::Running, RunState::Paused], end, None).await.expect("ends"));
    }
    let newest = RunFilter { limit: Some(1), ..open };
    assert_eq!(list(newest).await, [first], "newer ones that have ended hide no open one");
}

/// Moves are made from the named states only; time counts in `running` only; entering it again is a resume.
pub async fn run_states_keep_active_time_and_versions(fresh: &Fresh) {
    let store = &fresh.store;
    let run = store.create_run(&new_run("r")).await.expect("is created");
    let before = store.run(run).await.expect("is read");
    tokio::time::sleep(Duration::from_millis(30)).await;
    let moved = store.set_run_state(run, &[RunState::Running], RunState::Paused, Some("budget")).await.expect("moves");
    assert!(moved);
    let again = store.set_run_state(run, &[RunState::Running], RunState::Paused, Some("again")).await.expect("answers");
    assert!(!again, "a run that is in none of the states stays");
    let paused = store.run(run).await.expect("is read");
    assert_eq!((paused.state, paused.reason.as_deref()), (RunState::Paused, Some("budget")));
    assert_eq!(paused.state_version, before.state_version + 1);
    assert!(paused.active_ms >= 29 && paused.active_since_ms.is_none() && paused.finished_ms.is_none());

    assert!(store.set_run_state(run, &[RunState::Paused], RunState::Running, None).await.expect("moves"));
    let resumed = store.run(run).await.expect("is read");
    assert_eq!((resumed.resumed_times, resumed.result_version), (1, before.result_version + 1));
    assert!(resumed.active_since_ms.is_some() && resumed.active_ms == paused.active_ms && resumed.reason.is_none());
    let open = [RunState::Running, RunState::Paused];
    assert!(store.set_run_state(run, &open, RunState::Finished, None).await.expect("moves"));
    let finished = store.run(run).await.expect("is read");
    assert!(finished.finished_ms.is_some() && finished.active_since_ms.is_none());
    let states = store.run_states(&[run, RunNo(999)]).await.expect("are read");
    assert_eq!(states, [(run, RunState::Finished, finished.state_version)]);
    let kinds: Vec<String> = store.events(run).await.expect("are read").into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["created", "paused", "resumed", "finished"]);
    assert!(store.set_run_state(RunNo(999), &open, RunState::Paused, None).await.is_err());
}

/// The owner died at an unknown time: what is known is its last commit.
pub async fn a_lost_interval_ends_at_the_last_commit(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let began = std::time::Instant::now();
    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    scene.retain(0, 0, 0, 1).await;
    let worked_ms = i64::try_from(began.elapsed().as_millis()).expect("a short time");
    tokio::time::sleep(Duration::from_millis(60)).await;
    store.close_lost_interval(scene.run).await.expect("closes");
    let row = store.run(scene.run).await.expect("is read");
    assert!(
        row.active_since_ms.is_none() && row.active_ms <= worked_ms,
        "the silence after the last commit does not count: {row:?}"
    );
    store.close_lost_interval(scene.run).await.expect("closing twice changes nothing");
    assert_eq!(store.run(scene.run).await.expect("is read").active_ms, row.active_ms);
    // the new owner resumes a run whose row still says `running`
    assert!(store.set_run_state(scene.run, &[RunState::Running], RunState::Running, None).await.expect("moves"));
    let row = store.run(scene.run).await.expect("is read");
    assert!(row.active_since_ms.is_some() && row.resumed_times == 1);
}

/// Limits are replaced as a whole; nothing else of the spec changes.
pub async fn p23_limits_change_alone_and_raise_the_state_version(fresh: &Fresh) {
    let store = &fresh.store;
    let run = store.create_run(&new_run("r")).await.expect("is created");
    let before = store.run(run).await.expect("is read");
    let limits = Limits { max_cost: Some(PicoUsd(5)), ..Limits::default() };
    store.set_limits(run, &limits).await.expect("are set");
    let after = store.run(run).await.expect("is read");
    assert_eq!(after.spec.limits, limits);
    assert_eq!(after.spec.fingerprint(), before.spec.fingerprint());
    assert_eq!(after.state_version, before.state_version + 1);
    assert!(matches!(store.set_limits(RunNo(999), &limits).await, Err(StoreError::Missing(_))));
}

/// Aggregating twice gives the first summary.
pub async fn p36_the_first_summary_of_a_version_stays(fresh: &Fresh) {
    let store = &fresh.store;
    let run = store.create_run(&new_run("r")).await.expect("is created");
    assert_eq!(store.summary(run).await.expect("is read"), None);
    assert_eq!(store.put_summary(run, 1, r#"{"a":1}"#).await.expect("is stored"), r#"{"a":1}"#);
    assert_eq!(store.put_summary(run, 1, r#"{"a":2}"#).await.expect("is answered"), r#"{"a":1}"#);
    assert_eq!(store.summary(run).await.expect("is read").as_deref(), Some(r#"{"a":1}"#));
    store.put_summary(run, 2, r#"{"b":1}"#).await.expect("is stored");
    assert_eq!(store.summary(run).await.expect("is read").as_deref(), Some(r#"{"a":1}"#), "of the current version");
    let all = [RunState::Running];
    assert!(store.set_run_state(run, &all, RunState::Paused, None).await.expect("is paused"));
    assert!(store.set_run_state(run, &[RunState::Paused], RunState::Running, None).await.expect("is resumed"));
    assert_eq!(store.summary(run).await.expect("is read").as_deref(), Some(r#"{"b":1}"#), "a resume is a new version");
}

/// Events come back oldest first.
pub async fn run_events_keep_their_order(fresh: &Fresh) {
    let store = &fresh.store;
    let run = store.create_run(&new_run("r")).await.expect("is created");
    for n in 0..5 {
        store.add_event(run, "note", &format!("number {n}")).await.expect("is added");
    }
    let events = store.events(run).await.expect("are read");
    let messages: Vec<&str> = events.iter().skip(1).map(|event| event.message.as_str()).collect();
    assert_eq!(messages, ["number 0", "number 1", "number 2", "number 3", "number 4"]);
    assert!(events.windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms));
    let marked =
        NewRun { events: vec![("mark", "its\u{0}message".into()), ("second", "mark".into())], ..new_run("marked") };
    let run = store.create_run(&marked).await.expect("is created");
    let events = store.events(run).await.expect("are read");
    let kinds: Vec<(&str, &str)> = events.iter().map(|event| (event.kind.as_str(), event.message.as_str())).collect();
    assert_eq!(kinds, [("created", ""), ("mark", "its\u{0}message"), ("second", "mark")]);
    // what is still to be done with a run that has finished is found by the event that it lacks
    let cell = store.create_run(&new_run("m-c1-r1")).await.expect("is created");
    let lacking = async |kind: &str, message: &str, or_kind: &str, cells: bool| -> Vec<RunNo> {
        let lacks = Lacking { kind: kind.into(), message: message.into(), or_kind: or_kind.into() };
        let filter = RunFilter { lacks: Some(lacks), cells, ..RunFilter::default() };
        let rows = store.list_runs(&filter).await.expect("is listed");
        rows.into_iter().map(|row| row.run_no).collect()
    };
    assert_eq!(lacking("mark", "", "", false).await, [], "none has finished");
    for run in [run, cell] {
        assert!(store.set_run_state(run, &[RunState::Running], RunState::Finished, None).await.expect("ends"));
    }
    assert_eq!(lacking("mark", "another", "", false).await, [cell, run]);
    assert_eq!(lacking("mark", "its\u{0}message", "", false).await, [cell]);
    assert_eq!(lacking("none", "", "mark", false).await, [cell]);
    assert_eq!(lacking("mark", "another", "", true).await, [cell]);
    let with = async |kind: &str| -> Vec<RunNo> {
        let filter = RunFilter { has_event: Some(kind.into()), ..RunFilter::default() };
        store.list_runs(&filter).await.expect("is listed").into_iter().map(|row| row.run_no).collect()
    };
    assert_eq!((with("mark").await, with("none").await), (vec![run], vec![]));
}

/// U+0000 and backslashes come back from every free text.
pub async fn p8_u0000_survives_everywhere(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let odd = "a\0b\\0c\\\0";
    let run = NewRun { name: Some(odd.into()), user: odd.into(), tags: vec![odd.into()], ..new_run("odd") };
    let run_no = store.create_run(&run).await.expect("is created");
    let row = store.run(run_no).await.expect("is read");
    assert_eq!((row.name.as_deref(), row.user.as_str(), row.tags[0].as_str()), (Some(odd), odd, odd));
    assert_eq!(
        store.list_runs(&RunFilter { user: Some(odd.into()), ..RunFilter::default() }).await.expect("lists").len(),
        1
    );
    store.add_event(run_no, "note", odd).await.expect("is added");
    assert_eq!(store.events(run_no).await.expect("are read")[1].message, odd);

    let scene = Scene::start(store, &[bank(0, &[(1, &[0])])]).await;
    let generation = scene.bank(0).await.generation;
    assert_eq!(store.set_bank_handle(scene.run, 0, generation, odd).await.expect("is set"), odd);
    scene.make_ready(0, 1).await;
    let question = TaskKey::question(0, 0);
    let epoch = scene.claim(question).await.epoch;
    let mut records = scene.whole_question(question, epoch, 1.0, Opens::Nothing);
    records[0].text = Some(recall_text(odd));
    records[1].text = Some(answer_text(odd));
    scene.commit(&records).await;
    let texts = store.question_texts(scene.run, &[question]).await.expect("are read");
    let expected = [(question, StepNo::RECALL, recall_text(odd)), (question, StepNo::ANSWER, answer_text(odd))];
    assert_eq!(texts, expected);
    let mut facts = question_facts(question, Outcome::Scored, 1.0);
    facts.question_id = odd.into();
    store.store_facts(scene.run, HEADLINE, std::slice::from_ref(&facts)).await.expect("is stored");
    assert_eq!(store.facts(scene.run, None, 10).await.expect("are read"), [facts]);
}

/// Items are stored once whoever needs them, and come back whole.
pub async fn p16_items_are_shared_and_checked(fresh: &Fresh) {
    let store = &fresh.store;
    let large: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let items = [Item::from_bytes(b"one".to_vec()), Item::from_bytes(large.clone()), Item::from_bytes(Vec::new())];
    store.put_items(&items).await.expect("are stored");
    store
        .put_items(&[items[1].clone(), Item::from_bytes(b"two".to_vec()), items[1].clone()])
        .await
        .expect("are stored again");
    assert_eq!(store.item(items[0].hash).await.expect("is read"), b"one");
    assert_eq!(store.item(items[1].hash).await.expect("is read"), large);
    assert_eq!(store.item(items[2].hash).await.expect("is read"), b"");
    assert_eq!(store.item(Sha256Hash::of_bytes(b"two")).await.expect("is read"), b"two");
    assert!(matches!(store.item(Sha256Hash::of_bytes(b"three")).await, Err(StoreError::Missing(_))));
    // an item under a wrong hash is never handed out
    let wrong = Item { hash: Sha256Hash::of_bytes(b"claimed"), bytes: b"other".to_vec() };
    store.put_items(&[wrong]).await.expect("is stored");
    let error = store.item(Sha256Hash::of_bytes(b"claimed")).await.expect_err("must be refused");
    assert!(
        matches!(&error, StoreError::Corrupt(what) if what.contains(&Sha256Hash::of_bytes(b"claimed").hex())),
        "{error}"
    );
    store.put_items(&[]).await.expect("nothing is fine");
}

/// Runs are deleted by the owner of the store, all that are named or none, and no number is given again.
pub async fn runs_are_deleted_whole_or_not_at_all(fresh: &Fresh) {
    let (store, owner) = (&fresh.store, crate::open(&fresh.url).await.expect("the owner opens it"));
    let live = store.create_run(&new_run("live")).await.expect("is created");
    let gone = Scene::start(store.as_ref(), &[bank(0, &[(1, &[0])])]).await.run;
    assert!(store.set_run_state(gone, &[RunState::Running], RunState::Paused, None).await.expect("is paused"));

    assert!(!owner.delete_runs(&[gone, live]).await.expect("is refused"), "one of them is running");
    assert!(matches!(owner.delete_runs(&[gone, RunNo(999)]).await, Err(StoreError::Missing(_))));
    assert_eq!(store.banks(gone, None).await.expect("are read").len(), 1, "nothing of it is deleted");

    assert!(owner.delete_runs(&[gone]).await.expect("is deleted"));
    assert!(matches!(store.run(gone).await, Err(StoreError::Missing(_))));
    assert_eq!(store.banks(gone, None).await.expect("are read"), []);
    assert_eq!(store.run(live).await.expect("is there").state, RunState::Running);
    let again = store.create_run(&new_run("r")).await.expect("its id is free");
    assert!(again > gone, "{again:?} after {gone:?}");
    owner.close().await;
}
