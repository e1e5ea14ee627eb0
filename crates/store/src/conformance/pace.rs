//! Send slots and refused accounts, seen by several processes.

use std::time::Duration;

use bench_proto::{
    CLUSTER_DOMAIN,
    ids::{Role, RunNo, TaskKey},
    spec::ModelSpec,
    task::TaskEvent,
};

use super::{Fresh, Scene, bank, new_run, tasks::released};
use crate::{Allowance, CallKind, NewRun, Observed, PaceLimits, RunState, SlotAsk, open};

fn ask(asker: &str, calls: usize) -> SlotAsk {
    SlotAsk {
        allowance: Allowance {
            endpoint: "http://a/v1".into(),
            account: "openai".into(),
            limit_group: "gpt-4o".into(),
            kind: CallKind::Chat,
        },
        asker: asker.into(),
        limits: PaceLimits { rpm: Some(600), tpm: Some(1_000_000) },
        calls: vec![100; calls],
        demand: calls as u32,
        give_back: (0, 0),
        hold_us: 0,
        seen: Observed::default(),
    }
}

/// Two processes never get more together than one would; a Retry-After holds all allowances of the account.
pub async fn p24_processes_share_one_row_of_slots(fresh: &Fresh) {
    let other = open(&fresh.url).await.expect("another process opens the store");
    let began = std::time::Instant::now();
    let mut slots = 0;
    while began.elapsed() < Duration::from_millis(1500) {
        for (store, name) in [(&fresh.store, "a"), (&other, "b")] {
            slots += store.take_slots(&ask(name, 4)).await.expect("answers").starts_us.len();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // ten a second, and what may be given ahead
    let most = began.elapsed().as_secs_f64() * 10.0 + 7.0;
    assert!(slots >= 13 && slots as f64 <= most, "{slots} slots, at most {most}");
    let embeddings = Allowance { kind: CallKind::Embeddings, ..ask("a", 0).allowance };
    let apart = other.take_slots(&SlotAsk { allowance: embeddings, ..ask("a", 1) }).await.expect("answers");
    assert_eq!((apart.starts_us, apart.askers), (vec![0], 1), "embeddings are counted apart");
    let told = SlotAsk { hold_us: 30_000_000, ..ask("a", 0) };
    fresh.store.take_slots(&told).await.expect("answers");
    let sibling = Allowance { limit_group: "gpt-4o-mini".into(), ..ask("b", 0).allowance };
    let held = other.take_slots(&SlotAsk { allowance: sibling, ..ask("b", 1) }).await.expect("answers");
    assert!(held.starts_us.is_empty() && held.blocked_us > 20_000_000, "{held:?}");
    let heard = other.take_slots(&ask("b", 0)).await.expect("answers");
    assert_eq!((heard.learned, heard.askers), (None, 2));
    let accepted = Observed { accepted: 500, ..Observed::default() };
    fresh.store.take_slots(&SlotAsk { seen: accepted, ..ask("a", 0) }).await.expect("answers");
    let refused = Observed { refused: 1, ..Observed::default() };
    let told = fresh.store.take_slots(&SlotAsk { seen: refused, ..ask("a", 0) }).await.expect("answers");
    assert_eq!(told.learned, None, "one refusal does not contradict a stated limit");
    let unknown = SlotAsk { seen: refused, limits: PaceLimits::default(), ..ask("a", 0) };
    let told = fresh.store.take_slots(&unknown).await.expect("answers");
    let (told, heard) = (told.learned, other.take_slots(&ask("b", 0)).await.expect("answers").learned);
    let (told, heard) = (told.expect("a rate was learned"), heard.expect("and is heard of"));
    assert!(told.version == 1 && heard.version == 1 && told.per_second > 0.0, "{told:?} {heard:?}");
    let elsewhere = Allowance { account: "judge-eu".into(), ..ask("b", 0).allowance };
    let free = other.take_slots(&SlotAsk { allowance: elsewhere, ..ask("b", 1) }).await.expect("answers");
    assert_eq!((free.starts_us, free.blocked_us), (vec![0], 0), "another account is free");
    other.close().await;
}

/// A hold of any length ends within five minutes, and at once for a run that goes on, whose delayed tasks are due then.
pub async fn p40_a_resumed_run_waits_for_no_hold(fresh: &Fresh) {
    let store = &fresh.store;
    let scene = Scene::start(store.as_ref(), &[bank(1, &[(1, &[0])])]).await;
    let run = scene.run;
    let parked = scene.claim(TaskKey::retain(1, 0)).await;
    store.release(&[released(&parked, TaskEvent::Park, 300_000)]).await.expect("is released");
    assert!(scene.ready(Role::Retain).await.is_empty(), "it waits");
    let other = open(&fresh.url).await.expect("another process opens the store");
    let held = SlotAsk { hold_us: 86_400_000_000, ..ask("a", 0) };
    let answer = store.take_slots(&held).await.expect("answers");
    assert!((290_000_000..=300_000_000).contains(&answer.blocked_us), "a day is not believed: {answer:?}");
    store.release_holds(run, &["judge-eu".into()]).await.expect("is done");
    assert!(other.take_slots(&ask("b", 1)).await.expect("answers").starts_us.is_empty(), "another account stays held");
    for _ in 0..2 {
        store.release_holds(run, &["judge-eu".into(), "openai".into()]).await.expect("is done");
    }
    let answer = other.take_slots(&ask("b", 1)).await.expect("answers");
    assert_eq!((answer.starts_us.len(), answer.blocked_us), (1, 0), "{answer:?}");
    assert_eq!(scene.ready(Role::Retain).await, [TaskKey::retain(1, 0)], "what was parked is due");
    other.close().await;
}

/// The provider's words reach every run of the cluster that uses the account, and no other.
pub async fn p23_a_refused_account_pauses_the_runs_that_use_it(fresh: &Fresh) {
    let store = &fresh.store;
    let create = async |id: &str, domain: &str, account: &str, model: &str| -> RunNo {
        let mut run = NewRun { domain: domain.into(), ..new_run(id) };
        run.spec.judges = vec![ModelSpec {
            provider: "openai".into(),
            account: account.into(),
            name: model.into(),
            ..run.spec.answerer.clone()
        }];
        store.create_run(&run).await.expect("is created")
    };
    let own = create("own", CLUSTER_DOMAIN, "openai", "gpt-4o").await;
    let same = create("same", CLUSTER_DOMAIN, "openai", "gpt-4o").await;
    let sibling = create("sibling", CLUSTER_DOMAIN, "openai", "gpt-4o-mini").await;
    let other = create("other", CLUSTER_DOMAIN, "judge-eu", "gpt-4o").await;
    let local = create("local", "local", "openai", "gpt-4o").await;
    let alone = create("alone", "local", "openai", "gpt-4o").await;
    let state = async |run: RunNo| store.run(run).await.expect("is read").state;
    let stop = async |run: RunNo, model: Option<&str>| {
        store.stop_account(run, "openai", model, "openai: you have no quota").await.expect("is stopped")
    };
    assert_eq!(stop(own, Some("gpt-4o")).await, [own, same]);
    assert_eq!(store.run(same).await.expect("is read").reason.as_deref(), Some("openai: you have no quota"));
    assert_eq!(stop(own, Some("gpt-4o")).await, [], "once");
    assert_eq!(stop(same, None).await, [sibling]);
    assert_eq!((state(other).await, state(local).await), (RunState::Running, RunState::Running));
    assert_eq!(stop(alone, None).await, [alone]);
    assert_eq!(state(local).await, RunState::Running);
}
