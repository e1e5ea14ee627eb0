//! The call store.

use bench_proto::{
    call::{CacheScope, CallOutcome, CallRecord, Phase},
    ids::{Sha256Hash, TaskKey},
    metered::{MeteredEnd, MeteredKey, Service, Stage},
    money::PicoUsd,
};

use super::{Fresh, call, new_run};
use crate::{NewRun, StoreError};

fn key(asked: &str) -> Sha256Hash {
    Sha256Hash::of_bytes(asked.as_bytes())
}

/// A run finds the calls of its lineage, and of no other.
pub async fn p9_calls_are_found_by_lineage_the_oldest_first(fresh: &Fresh) {
    let store = &fresh.store;
    let task = TaskKey::question(0, 0);
    let first = store.create_run(&NewRun { lineage: "l1".into(), ..new_run("a") }).await.expect("is created");
    let fork = store.create_run(&NewRun { lineage: "l1".into(), ..new_run("b") }).await.expect("is created");
    let other = store.create_run(&NewRun { lineage: "l2".into(), ..new_run("c") }).await.expect("is created");
    let oldest = call("x", CallOutcome::Accepted, 5);
    store.put_calls(first, task, std::slice::from_ref(&oldest)).await.expect("are put");
    store.put_calls(first, task, std::slice::from_ref(&oldest)).await.expect("are put again");
    store
        .put_calls(fork, task, &[call("x", CallOutcome::Accepted, 7), call("y", CallOutcome::Accepted, 1)])
        .await
        .expect("are put");
    let elsewhere = (TaskKey::question(0, 7), call("z", CallOutcome::Accepted, 1));
    store.book_calls(other, std::slice::from_ref(&elsewhere)).await.expect("are booked");
    store.book_calls(other, std::slice::from_ref(&elsewhere)).await.expect("are booked once");
    assert_eq!(store.call_count("l1").await.expect("is counted"), 3);
    assert_eq!(store.call_count("nobody").await.expect("is counted"), 0);
    let mean = store.mean_call_us(first, 100).await.expect("is computed");
    assert_eq!(mean, Some(oldest.duration_us as f64));
    let empty = store.create_run(&new_run("empty")).await.expect("is created");
    assert_eq!(store.mean_call_us(empty, 100).await.expect("is computed"), None);
    let profile = store.call_profile("model", Phase::Answer).await.expect("is computed").expect("dated versions of it");
    assert_eq!((profile.calls, profile.prompt_tokens, profile.completion_tokens), (4, 10.0, 2.0));
    assert_eq!(store.call_profile("model-1", Phase::Judge).await.expect("is computed"), None);
    assert_eq!(store.call_profile("mod", Phase::Answer).await.expect("is computed"), None);
    let mut found = store.find_calls("l1", &[key("x"), key("y"), key("z"), key("x")]).await.expect("are found");
    found.sort_by_key(|stored| stored.run);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].record.clone(), found[0].run), (oldest, first));
    assert_eq!((found[1].record.key, found[1].run), (key("y"), fork));
    assert_eq!(store.run(first).await.expect("is read").counters.spent, PicoUsd(5), "an attempt is paid once");
    assert_eq!(store.find_calls("l1", &[]).await.expect("are found"), []);
}

/// Whoever asks all runs gets the newest reply, and none of a run that shares nothing.
pub async fn p9_shared_calls_are_those_of_all_runs_the_newest_first(fresh: &Fresh) {
    let store = &fresh.store;
    let task = TaskKey::question(0, 0);
    let of = |id: &str, cache: CacheScope| {
        let mut new = NewRun { lineage: id.into(), ..new_run(id) };
        new.spec.limits.cache = cache;
        new
    };
    let old = store.create_run(&of("old", CacheScope::Lineage)).await.expect("is created");
    let new = store.create_run(&of("new", CacheScope::Refresh)).await.expect("is created");
    let private = store.create_run(&of("private", CacheScope::Off)).await.expect("is created");
    let cut_off = CallRecord { finish: "length".into(), ..call("x", CallOutcome::Accepted, 7) };
    store.put_calls(old, task, &[call("x", CallOutcome::Accepted, 5)]).await.expect("are put");
    store.put_calls(new, task, std::slice::from_ref(&cut_off)).await.expect("are put");
    let own = [call("x", CallOutcome::Accepted, 1), call("y", CallOutcome::Accepted, 1)];
    store.put_calls(private, task, &own).await.expect("are put");
    let found = store.find_shared_calls(&[key("x"), key("y"), key("x")]).await.expect("are found");
    assert_eq!(found.len(), 1, "the private run's are not there: {found:?}");
    assert_eq!((&found[0].record, found[0].run), (&cut_off, new));
    let own = store.find_calls("private", &[key("y")]).await.expect("are found");
    assert_eq!(own.len(), 1, "its own lineage goes on with them");
    assert_eq!(store.find_shared_calls(&[]).await.expect("are found"), []);
}

/// A reply that did not pass its parser is recorded and paid, never served again.
pub async fn p9_only_accepted_calls_are_served_again(fresh: &Fresh) {
    let store = &fresh.store;
    let run = store.create_run(&new_run("r")).await.expect("is created");
    let odd = CallRecord { reply: "a\0b".into(), ..call("odd", CallOutcome::Accepted, 1) };
    let calls = [call("x", CallOutcome::Rejected, 3), call("x", CallOutcome::Uncertain, 4), odd.clone()];
    store.put_calls(run, TaskKey::question(0, 0), &calls).await.expect("are put");
    assert_eq!(store.find_calls("r", &[key("x")]).await.expect("are found"), []);
    let found = store.find_calls("r", &[key("odd")]).await.expect("are found");
    assert_eq!(found[0].record, odd);
    let counters = store.run(run).await.expect("is read").counters;
    assert_eq!((counters.spent, counters.uncertain), (PicoUsd(8), PicoUsd(4)));
    let missing = store.put_calls(bench_proto::ids::RunNo(999), TaskKey::question(0, 0), &calls).await;
    assert!(matches!(missing, Err(StoreError::Missing(_))));
}

/// What a memory system calls itself is booked beside the run's tasks, and told by what it was for.
pub async fn p34_metered_calls_are_booked_apart_and_told_by_bank_stage_and_service(fresh: &Fresh) {
    let store = &fresh.store;
    let run = store.create_run(&new_run("metered")).await.expect("is created");
    let at = |bank, stage, service| MeteredKey { bank, stage, service };
    let (fill, lost) = (at(Some(1), Stage::Retain, Service::Chat), at(None, Stage::Unattributed, Service::Embeddings));
    let made = |asked: &str, outcome, cost, end: MeteredEnd| CallRecord {
        finish: end.to_text(),
        phase: Phase::Retain,
        ..call(asked, outcome, cost)
    };
    let answered = MeteredEnd::Answered { counted_here: false };
    let calls = [
        (fill.task(), made("a", CallOutcome::Accepted, 7, answered)),
        (fill.task(), made("b", CallOutcome::Rejected, 5, answered)),
        (fill.task(), made("a", CallOutcome::Rejected, 0, MeteredEnd::Stored)),
        (fill.task(), made("c", CallOutcome::Rejected, 0, MeteredEnd::Refused(429))),
        (lost.task(), made("d", CallOutcome::Uncertain, 40, MeteredEnd::Cut)),
    ];
    store.book_calls(run, &calls).await.expect("are booked");
    store.put_calls(run, TaskKey::retain(1, 0), &[call("own", CallOutcome::Accepted, 3)]).await.expect("is put");
    let read = store.metered_calls(run).await.expect("are read");
    let told: Vec<_> =
        read.iter().map(|of| (of.key, of.end, of.calls, of.cost.0, of.saved.0, of.is_uncertain)).collect();
    assert_eq!(
        told,
        [
            (fill, answered, 1, 7, 0, false),
            (fill, answered, 1, 5, 0, false),
            (fill, MeteredEnd::Refused(429), 1, 0, 0, false),
            (fill, MeteredEnd::Stored, 1, 0, 7, false),
            (lost, MeteredEnd::Cut, 1, 40, 0, true),
        ]
    );
    assert_eq!((read[0].prompt_tokens, read[0].completion_tokens), (10, 2));
    let ledger = store.ledger(&store.run(run).await.expect("is read")).await.expect("is read");
    let metered = ledger.metered;
    assert_eq!((metered.calls, metered.cached_calls, metered.cost.0), (2, 1, 12), "what came to nothing is no call");
    assert_eq!((ledger.ended.cost.0, ledger.uncertain.cost.0, ledger.booked.0), (3, 40, 55));
    assert_eq!(
        (ledger.uncertain.calls, ledger.uncertain.prompt_tokens),
        (1, 10),
        "of the same attempts as the dollars"
    );
}
