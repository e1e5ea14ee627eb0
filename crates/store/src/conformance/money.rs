//! The hard caps (P10): whatever processes reserve, settle, lose and repeat, the sums come out right.

use std::{collections::BTreeMap, sync::Arc};

use bench_proto::{
    call::{CallOutcome, CallRecord, Phase, Usage},
    facts::Outcome,
    ids::{RunId, RunNo, TaskKey},
    money::PicoUsd,
    spec::Limits,
    step::{Opens, StepNo},
    usage_cap::{UsageCap, UsageUnit},
};
use uuid::Uuid;

use super::{Fresh, HEADLINE, Scene, bank, call, ending, new_run, question_facts, scored};
use crate::{
    BudgetAnswer, BudgetChange, BudgetScope, BudgetState, Creation, GroupState, MEASURED_FIRST, NewGroup, NewRun,
    RunCounters, RunFilter, RunState, SessionId, Store, StoreError, Want, open,
};

fn want(phase: Phase, amount: i64) -> Want {
    Want { attempt: Uuid::now_v7(), phase, amount: PicoUsd(amount) }
}

/// The record of an attempt that was reserved.
fn record(want: &Want, outcome: CallOutcome, cost: i64) -> CallRecord {
    CallRecord { attempt_id: want.attempt, phase: want.phase, ..call("x", outcome, cost) }
}

fn with_caps(id: &str, limits: Limits) -> NewRun {
    let mut run = new_run(id);
    run.spec.limits = limits;
    run
}

fn capped(id: &str, cap: i64) -> NewRun {
    with_caps(id, Limits { max_cost: Some(PicoUsd(cap)), ..Limits::default() })
}

/// One run and one session of a process.
struct Reservations<'s> {
    store: &'s dyn Store,
    run: RunNo,
    session: SessionId,
}

impl<'s> Reservations<'s> {
    async fn open(store: &'s dyn Store, run: &NewRun) -> Self {
        let run = store.create_run(run).await.expect("is created");
        Self { store, run, session: store.open_session("w", "local", "{}").await.expect("opens") }
    }

    fn nothing(&self) -> BudgetChange {
        BudgetChange { run: self.run, session: self.session, release: vec![], lose: vec![], wants: vec![] }
    }

    async fn change(&self, change: BudgetChange) -> BudgetAnswer {
        self.store.change_budget(&change).await.expect("the budget is changed")
    }

    async fn reserve(&self, wants: &[Want]) -> BudgetAnswer {
        self.change(BudgetChange { wants: wants.to_vec(), ..self.nothing() }).await
    }

    async fn settle(&self, record: &CallRecord) {
        let task = TaskKey::question(0, 0);
        self.store.put_calls(self.run, task, std::slice::from_ref(record)).await.expect("is put");
    }

    async fn counters(&self) -> RunCounters {
        self.store.run(self.run).await.expect("is read").counters
    }

    /// (spent, reserved, uncertain, overdraft).
    async fn sums(&self) -> [i64; 4] {
        let counters = self.counters().await;
        [counters.spent.0, counters.reserved.0, counters.uncertain.0, counters.overdraft.0]
    }
}

/// Caps of run, phase and day each refuse by themselves; the day is that of all runs.
pub async fn p10_every_cap_is_held(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let limits = Limits {
        max_cost: Some(PicoUsd(100)),
        max_cost_by_phase: BTreeMap::from([(Phase::Judge, PicoUsd(30))]),
        max_cost_per_day: Some(PicoUsd(120)),
        ..Limits::default()
    };
    let first = Reservations::open(store, &with_caps("a", limits.clone())).await;
    let second = Reservations::open(store, &with_caps("b", limits)).await;
    let answer = first.reserve(&[want(Phase::Judge, 31), want(Phase::Judge, 30), want(Phase::Answer, 70)]).await;
    assert_eq!(answer.refused, [(0, BudgetScope::Phase(Phase::Judge))]);
    let state =
        |scope, cap, reserved| BudgetState { scope, cap: PicoUsd(cap), spent: PicoUsd(0), reserved: PicoUsd(reserved) };
    let caps = [
        state(BudgetScope::Run, 100, 100),
        state(BudgetScope::Phase(Phase::Judge), 30, 30),
        state(BudgetScope::Day, 120, 100),
    ];
    assert_eq!((answer.caps, answer.stopped), (caps.to_vec(), false));
    assert_eq!(first.reserve(&[want(Phase::Answer, 1)]).await.refused, [(0, BudgetScope::Run)]);
    let answer = second.reserve(&[want(Phase::Answer, 21), want(Phase::Answer, 20)]).await;
    assert_eq!(answer.refused, [(0, BudgetScope::Day)]);
    assert_eq!((first.sums().await, second.sums().await), ([0, 100, 0, 0], [0, 20, 0, 0]));
    // a raised cap holds from the next change on
    let limits = Limits { max_cost: Some(PicoUsd(100)), ..Limits::default() };
    store.set_limits(second.run, &limits).await.expect("limits are set");
    assert_eq!(second.reserve(&[want(Phase::Answer, 80)]).await.refused, []);
    let free = Reservations::open(store, &new_run("c")).await;
    let answer = free.reserve(&[want(Phase::Answer, i64::MAX / 4)]).await;
    assert_eq!((answer.refused, answer.caps), (vec![], vec![]), "no cap, and booked all the same");
    assert_eq!(free.sums().await, [0, i64::MAX / 4, 0, 0]);
}

/// The checkpoint that stores the attempt's record settles it, once.
pub async fn p10_a_settlement_replaces_its_reservation(fresh: &Fresh) {
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &[0])])]).await;
    scene.make_ready(0, 1).await;
    let reservations = Reservations { store: scene.store, run: scene.run, session: scene.session };
    let wants = [want(Phase::Answer, 50), want(Phase::Answer, 10), want(Phase::Answer, 5)];
    reservations.reserve(&wants).await;
    let question = TaskKey::question(0, 0);
    let epoch = scene.claim(question).await.epoch;
    let mut done = ending(scene.run, question, StepNo::SCORE, epoch, scored(1.0), Opens::Nothing);
    done.calls = vec![record(&wants[0], CallOutcome::Accepted, 20), record(&wants[1], CallOutcome::Rejected, 14)];
    for _ in 0..2 {
        scene.commit(std::slice::from_ref(&done)).await;
        assert_eq!(reservations.sums().await, [34, 5, 0, 4], "4 more than the second one's worst case");
    }
    reservations.settle(&record(&wants[2], CallOutcome::Uncertain, 5)).await;
    assert_eq!(reservations.sums().await, [39, 0, 5, 4]);
    // an attempt that nobody reserved is booked all the same
    reservations.settle(&call("y", CallOutcome::Accepted, 7)).await;
    assert_eq!(reservations.sums().await, [46, 0, 5, 4]);
    scene.store.sweep(scene.run).await.expect("is swept");
    assert_eq!(reservations.sums().await, [46, 0, 5, 4], "the sweep counts the same");
}

/// Kill -9: what was reserved is counted at its worst case, until somebody releases it or a late settlement corrects it.
pub async fn p10_what_a_dead_session_reserved_is_uncertain_until_released(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let dead = Reservations::open(store, &capped("r", 100)).await;
    let wants = [want(Phase::Answer, 40), want(Phase::Answer, 30), want(Phase::Judge, 20)];
    dead.reserve(&wants).await;
    store.end_session(dead.session).await.expect("is ended");
    assert_eq!(dead.sums().await, [90, 0, 90, 0]);
    store.end_session(dead.session).await.expect("is ended again");
    assert_eq!(dead.sums().await, [90, 0, 90, 0]);
    let heir = Reservations { session: store.open_session("w2", "local", "{}").await.expect("opens"), ..dead };
    assert_eq!(heir.reserve(&[want(Phase::Answer, 11)]).await.refused, [(0, BudgetScope::Run)]);
    // the reply of one of them came, and is committed late
    heir.settle(&record(&wants[0], CallOutcome::Accepted, 3)).await;
    assert_eq!(heir.sums().await, [53, 0, 50, 0]);
    heir.settle(&call("cut", CallOutcome::Uncertain, 6)).await;
    assert_eq!(heir.sums().await, [59, 0, 56, 0]);
    store.sweep(heir.run).await.expect("is swept");
    assert_eq!(heir.sums().await, [59, 0, 56, 0], "the sweep counts the same");
    for released in [56, 0] {
        assert_eq!(store.release_uncertain(heir.run).await.expect("is released"), PicoUsd(released));
        assert_eq!(heir.sums().await, [3, 0, 0, 0]);
    }
    store.sweep(heir.run).await.expect("is swept");
    assert_eq!(heir.sums().await, [3, 0, 0, 0]);
    // later than late: what was released is booked when its reply comes after all
    heir.settle(&record(&wants[1], CallOutcome::Accepted, 2)).await;
    assert_eq!(heir.sums().await, [5, 0, 0, 0]);
    assert_eq!(heir.reserve(&[want(Phase::Answer, 95)]).await.refused, []);
}

/// The report of a run that has ended is made anew where what it says of uncertain attempts no longer holds, and no other one is.
pub async fn p10_what_is_released_of_a_run_that_has_ended_makes_its_result_another(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let of = Reservations::open(store, &capped("r", 100)).await;
    of.settle(&call("cut", CallOutcome::Uncertain, 6)).await;
    let version = async || store.run(of.run).await.expect("is read").result_version;
    let before = version().await;
    let set = async |from, to| store.set_run_state(of.run, &[from], to, None).await.expect("is set");
    assert!(set(RunState::Running, RunState::Finished).await);
    store.put_summary(of.run, before, "{}").await.expect("is put");
    assert_eq!(store.release_uncertain(of.run).await.expect("is released"), PicoUsd(6));
    assert_eq!(version().await, before + 1);
    assert_eq!(store.summary(of.run).await.expect("is read"), None, "it is made anew");
    assert_eq!(store.release_uncertain(of.run).await.expect("is released"), PicoUsd::ZERO);
    assert_eq!(version().await, before + 1, "nothing has changed");
    // one that goes on makes its report when it ends
    let open = Reservations::open(store, &capped("open", 100)).await;
    open.settle(&call("cut2", CallOutcome::Uncertain, 6)).await;
    assert_eq!(store.release_uncertain(open.run).await.expect("is released"), PicoUsd(6));
    assert_eq!(store.run(open.run).await.expect("is read").result_version, before);
}

/// Calls that were dropped: what their session holds open of that run is uncertain, of other runs it goes on.
pub async fn p10_what_dropped_calls_left_open_is_uncertain(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let dropped = Reservations::open(store, &capped("r", 100)).await;
    let other = Reservations { run: store.create_run(&new_run("s")).await.expect("is created"), ..dropped };
    let wants = [want(Phase::Answer, 40), want(Phase::Answer, 30)];
    dropped.reserve(&wants).await;
    other.reserve(&[want(Phase::Answer, 7)]).await;
    for _ in 0..2 {
        store.lose_open(dropped.run, dropped.session).await.expect("is lost");
        assert_eq!((dropped.sums().await, other.sums().await), ([70, 0, 70, 0], [0, 7, 0, 0]));
    }
    dropped.settle(&record(&wants[0], CallOutcome::Accepted, 3)).await;
    assert_eq!(dropped.sums().await, [33, 0, 30, 0], "its record was on the way all the same");
}

/// Tokens or calls in the place of dollars: what is reserved, used, uncertain and released is theirs, and what attempts cost is booked as
/// ever.
pub async fn p10_usage_is_capped_apart_from_dollars(fresh: &Fresh) {
    for (unit, most, of_one) in [(UsageUnit::Tokens, 100, 12), (UsageUnit::Calls, 10, 1)] {
        let store = fresh.store.as_ref();
        let limits = Limits { max_usage: Some(UsageCap { unit, most }), ..Limits::default() };
        let run = Reservations::open(store, &with_caps(unit.name(), limits)).await;
        let scope = BudgetScope::Usage(unit);
        let left = async |reservations: &Reservations<'_>| {
            let caps = reservations.change(reservations.nothing()).await.caps;
            assert_eq!((caps.len(), caps[0].scope, caps[0].cap), (1, scope, PicoUsd(most)));
            (caps[0].spent.0, caps[0].reserved.0)
        };
        let tenth = most / 10;
        let wants = [want(Phase::Answer, 6 * tenth), want(Phase::Judge, 4 * tenth), want(Phase::Retain, 1)];
        assert_eq!(run.reserve(&wants).await.refused, [(2, scope)]);
        assert_eq!((left(&run).await, run.sums().await), ((0, most), [0, 0, 0, 0]));
        // a record says what was used, and what it cost
        run.settle(&record(&wants[0], CallOutcome::Accepted, 7)).await;
        assert_eq!((left(&run).await, run.sums().await), ((of_one, 4 * tenth), [7, 0, 0, 0]));
        // what its process leaves open is uncertain at its worst case
        store.end_session(run.session).await.expect("is ended");
        let heir = Reservations { session: store.open_session("w2", "local", "{}").await.expect("opens"), ..run };
        assert_eq!((left(&heir).await, heir.sums().await), ((of_one + 4 * tenth, 0), [7, 0, 0, 0]));
        let cut = want(Phase::Answer, 2 * tenth);
        assert_eq!(heir.reserve(&[cut]).await.refused, []);
        heir.settle(&record(&cut, CallOutcome::Uncertain, 0)).await;
        let worst = of_one.max(2 * tenth);
        assert_eq!(left(&heir).await, (of_one + 4 * tenth + worst, 0));
        store.sweep(heir.run).await.expect("is swept");
        assert_eq!(heir.sums().await, [7, 0, 0, 0], "the sweep counts dollars alone");
        for _ in 0..2 {
            assert_eq!(store.release_uncertain(heir.run).await.expect("is released"), PicoUsd::ZERO);
            assert_eq!(left(&heir).await, (of_one, 0));
        }
        // one that was never sent
        let unsent = want(Phase::Answer, 3 * tenth);
        assert_eq!(heir.reserve(&[unsent]).await.refused, []);
        heir.change(BudgetChange { release: vec![unsent.attempt], ..heir.nothing() }).await;
        assert_eq!(left(&heir).await, (of_one, 0));
    }
    let other = Reservations::open(
        fresh.store.as_ref(),
        &with_caps("day", Limits { max_cost_per_day: Some(PicoUsd(107)), ..Limits::default() }),
    )
    .await;
    assert_eq!(
        other.reserve(&[want(Phase::Answer, 93)]).await.refused,
        [],
        "a day knows the dollars of others, and not their usage"
    );
    assert_eq!(other.reserve(&[want(Phase::Answer, 1)]).await.refused, [(0, BudgetScope::Day)]);
}

/// A call whose answer was lost is repeated; releasing and losing count once.
pub async fn p10_repeats_and_given_up_attempts(fresh: &Fresh) {
    let reservations = Reservations::open(fresh.store.as_ref(), &capped("r", 100)).await;
    let wants = [want(Phase::Answer, 60), want(Phase::Answer, 30), want(Phase::Answer, 30)];
    for _ in 0..2 {
        assert_eq!(reservations.reserve(&wants).await.refused, [(2, BudgetScope::Run)]);
        assert_eq!(reservations.sums().await, [0, 90, 0, 0]);
    }
    let change =
        BudgetChange { release: vec![wants[1].attempt], lose: vec![wants[0].attempt], ..reservations.nothing() };
    for _ in 0..2 {
        reservations.change(change.clone()).await;
        assert_eq!(reservations.sums().await, [60, 0, 60, 0]);
    }
    // given up is given up: releasing it afterwards changes nothing about the money that may be gone
    assert_eq!(reservations.reserve(&wants[2..]).await.refused, []);
    assert_eq!(reservations.sums().await, [60, 30, 60, 0]);
}

/// Paused runs and ended sessions reserve nothing; what they hold can still be given back.
pub async fn p10_nothing_is_reserved_for_a_run_that_does_not_run(fresh: &Fresh) {
    let reservations = Reservations::open(fresh.store.as_ref(), &capped("r", 100)).await;
    let held = want(Phase::Answer, 10);
    reservations.reserve(&[held]).await;
    let set = async |from: RunState, to: RunState| {
        reservations.store.set_run_state(reservations.run, &[from], to, None).await
    };
    assert!(set(RunState::Running, RunState::Paused).await.expect("is paused"));
    let answer = reservations
        .change(BudgetChange {
            release: vec![held.attempt],
            wants: vec![want(Phase::Answer, 1)],
            ..reservations.nothing()
        })
        .await;
    assert!(answer.stopped);
    assert_eq!(reservations.sums().await, [0, 0, 0, 0]);
    assert!(set(RunState::Paused, RunState::Running).await.expect("is resumed"));
    reservations.store.end_session(reservations.session).await.expect("is ended");
    assert!(reservations.reserve(&[want(Phase::Answer, 1)]).await.stopped);
    assert_eq!(reservations.sums().await, [0, 0, 0, 0]);
    let zero = reservations
        .store
        .change_budget(&BudgetChange { wants: vec![want(Phase::Answer, 0)], ..reservations.nothing() })
        .await;
    assert!(matches!(zero, Err(crate::StoreError::BadData(_))));
}

/// Whatever a process writes, sums stay whole numbers that can be read: of a run, a group, a phase, a day and the ledger.
pub async fn p10_absurd_amounts_damage_no_sum(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let reservations = Reservations::open(store, &in_group("a", None)).await;
    let tokens = u64::MAX;
    for outcome in [CallOutcome::Accepted, CallOutcome::Uncertain].repeat(2) {
        let absurd = want(Phase::Answer, i64::MAX);
        assert_eq!(reservations.reserve(std::slice::from_ref(&absurd)).await.refused, []);
        let call = record(&absurd, outcome, i64::MAX);
        reservations.settle(&CallRecord { prompt_tokens: tokens, completion_tokens: tokens, ..call }).await;
    }
    reservations.reserve(&[want(Phase::Answer, i64::MAX), want(Phase::Answer, i64::MAX)]).await;
    let most = 4_000_000_000_000_000_000;
    let [spent, reserved, uncertain, _] = reservations.sums().await;
    assert_eq!((spent, uncertain), (most, most));
    assert!((0..=most).contains(&reserved), "{reserved}");
    let group = group_of(store, reservations.run).await;
    assert_eq!(group.spent, PicoUsd(most));
    let run = store.run(reservations.run).await.expect("is read");
    let ledger = store.ledger(&run).await.expect("is read");
    assert_eq!(ledger.unfinished.prompt_tokens, most.unsigned_abs());
    // the sweep derives the same
    store.sweep(reservations.run).await.expect("is swept");
    assert_eq!(reservations.counters().await.spent, PicoUsd(most));
    store.list_runs(&RunFilter::default()).await.expect("are listed");
}

/// Several processes reserve, settle (some late, some twice), release, lose and die, in any order: what is spent, reserved
/// and uncertain never passes the cap, and ends as what was settled and what was lost.
pub async fn p10_the_cap_holds_under_any_interleaving(fresh: &Fresh) {
    const CAP: i64 = 2_000;
    let other = open(&fresh.url).await.expect("another process opens the store");
    let stores = [Arc::clone(&fresh.store), Arc::clone(&other)];
    let run = fresh.store.create_run(&capped("r", CAP)).await.expect("is created");
    let tasks = (0..6_u64).map(|seed| spend(Arc::clone(&stores[seed as usize % 2]), run, seed));
    let watch = async {
        for _ in 0..40 {
            let c = fresh.store.run(run).await.expect("is read").counters;
            assert!(c.spent.0 + c.reserved.0 <= CAP && c.reserved.0 >= 0 && c.uncertain <= c.spent, "{c:?}");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let (ended, ()) = tokio::join!(futures::future::join_all(tasks), watch);
    let settled: i64 = ended.into_iter().sum();
    let c = fresh.store.run(run).await.expect("is read").counters;
    assert_eq!((c.reserved.0, c.overdraft.0), (0, 0));
    assert_eq!(c.spent.0 - c.uncertain.0, settled);
    assert!(c.spent.0 <= CAP);
    let before = c;
    fresh.store.sweep(run).await.expect("is swept");
    assert_eq!(fresh.store.run(run).await.expect("is read").counters.spent, before.spent, "the sweep counts the same");
    other.close().await;
}

/// One process of the interleaving; returns what it settled for certain.
async fn spend(store: Arc<dyn Store>, run: RunNo, seed: u64) -> i64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut settled = 0;
    for _ in 0..4 {
        let session = persist(async || store.open_session("w", "local", "{}").await).await;
        let mut open: Vec<Want> = Vec::new();
        for _ in 0..8 {
            let wants: Vec<Want> = (0..random(4)).map(|_| want(Phase::Answer, 1 + random(90) as i64)).collect();
            let split = open.len() / 3;
            let release: Vec<Uuid> = open.drain(..split / 2).map(|want| want.attempt).collect();
            let lose: Vec<Uuid> = open.drain(..split / 3).map(|want| want.attempt).collect();
            let change = BudgetChange { run, session, release, lose, wants: wants.clone() };
            let answer = persist(async || store.change_budget(&change).await).await;
            let refused: Vec<usize> = answer.refused.iter().map(|(place, _)| *place).collect();
            open.extend(wants.iter().enumerate().filter(|(place, _)| !refused.contains(place)).map(|(_, want)| *want));
            while open.len() > 3 {
                let want = open.swap_remove(random(open.len() as u64) as usize);
                let cost = random(want.amount.0 as u64 + 1) as i64;
                let record = record(&want, CallOutcome::Accepted, cost);
                for _ in 0..1 + random(2) {
                    let calls = std::slice::from_ref(&record);
                    persist(async || store.put_calls(run, TaskKey::question(0, 0), calls).await).await;
                }
                settled += cost;
            }
        }
        persist(async || store.end_session(session).await).await;
        // one reply was on its way when the session ended
        if let Some(want) = open.pop() {
            let record = record(&want, CallOutcome::Accepted, 1);
            persist(async || store.put_calls(run, TaskKey::question(0, 0), std::slice::from_ref(&record)).await).await;
            settled += 1;
        }
    }
    settled
}

/// Repeats a call while the store says that it may.
async fn persist<T>(mut call: impl AsyncFnMut() -> crate::StoreResult<T>) -> T {
    loop {
        match call().await {
            Err(error) if error.is_transient() => {}
            other => return other.expect("only what may pass fails"),
        }
    }
}

fn in_group(id: &str, cap: Option<i64>) -> NewRun {
    let group = NewGroup { id: "measured".into(), cap: cap.map(PicoUsd) };
    NewRun { group: Some(group), ..capped(id, 1) }
}

async fn group_of(store: &dyn Store, run: RunNo) -> GroupState {
    store.group(run).await.expect("is read").expect("has a group")
}

/// Runs of a group share one cap, whichever of them spends, and whichever of them raises it; who has no group is not held.
pub async fn p41_the_runs_of_a_group_share_one_cap(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let measured = Reservations::open(store, &in_group("measured", Some(100))).await;
    let control = Reservations::open(store, &in_group("control", Some(7))).await;
    let alone = Reservations::open(store, &capped("alone", 100)).await;
    let row = store.run(control.run).await.expect("is read");
    assert_eq!((row.group.expect("is in it").id.as_str(), row.spec.limits.max_cost), ("measured", Some(PicoUsd(100))));
    let wants = [want(Phase::Answer, 60), want(Phase::Answer, 30)];
    assert_eq!(measured.reserve(&wants).await.refused, []);
    let answer = control.reserve(&[want(Phase::Answer, 11), want(Phase::Judge, 10)]).await;
    assert_eq!(answer.refused, [(0, BudgetScope::Group)]);
    let (scope, spent) = (BudgetScope::Group, PicoUsd(0));
    assert_eq!(answer.caps, [BudgetState { scope, cap: PicoUsd(100), spent, reserved: PicoUsd(100) }]);
    assert_eq!(alone.reserve(&[want(Phase::Answer, 100)]).await.refused, []);
    assert_eq!(alone.reserve(&[want(Phase::Answer, 1)]).await.refused, [(0, BudgetScope::Run)]);
    assert_eq!(store.group(alone.run).await.expect("is read"), None);
    // what one did not use is there for the other; what one may have lost is not
    measured.settle(&record(&wants[0], CallOutcome::Accepted, 20)).await;
    store.end_session(measured.session).await.expect("is ended");
    assert_eq!(control.reserve(&[want(Phase::Answer, 41), want(Phase::Answer, 40)]).await.refused, [(0, scope)]);
    let state = |cap, spent, reserved| GroupState {
        id: "measured".into(),
        cap: Some(PicoUsd(cap)),
        spent: PicoUsd(spent),
        reserved: PicoUsd(reserved),
        runs: 2,
    };
    assert_eq!(group_of(store, measured.run).await, state(100, 50, 50));
    for run in [measured.run, control.run] {
        store.sweep(run).await.expect("is swept");
    }
    assert_eq!(group_of(store, control.run).await, state(100, 50, 50), "the sweep counts the same");
    assert_eq!(store.release_uncertain(measured.run).await.expect("is released"), PicoUsd(30));
    assert_eq!(control.reserve(&[want(Phase::Answer, 30)]).await.refused, []);
    // any of them raises the cap of all
    let limits = Limits { max_cost: Some(PicoUsd(200)), ..Limits::default() };
    store.set_limits(control.run, &limits).await.expect("limits are set");
    assert_eq!(store.run(measured.run).await.expect("is read").spec.limits.max_cost, Some(PicoUsd(200)));
    let heir = Reservations { session: store.open_session("w", "local", "{}").await.expect("opens"), ..measured };
    assert_eq!(heir.reserve(&[want(Phase::Answer, 101), want(Phase::Answer, 100)]).await.refused, [(0, scope)]);
    assert_eq!(group_of(store, control.run).await, state(200, 20, 180));
    let free = store.set_limits(heir.run, &Limits::default()).await;
    free.expect("limits are set");
    assert_eq!(heir.reserve(&[want(Phase::Answer, 1_000)]).await.caps, [], "the group has no cap any more");
}

/// The same where calls or tokens are capped.
pub async fn p41_the_runs_of_a_group_share_one_cap_on_usage(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    for unit in UsageUnit::ALL {
        let limits = |most| Limits { max_usage: Some(UsageCap { unit, most }), ..Limits::default() };
        let of = |id: &str, group: &str| {
            let group = NewGroup { id: format!("{group}-{}", unit.name()), cap: None };
            NewRun { group: Some(group), ..with_caps(&format!("{id}-{}", unit.name()), limits(10)) }
        };
        let first = Reservations::open(store, &of("first", "one")).await;
        let second = Reservations::open(store, &of("second", "one")).await;
        let stranger = Reservations::open(store, &of("stranger", "other")).await;
        let usage = async |run| {
            let row = store.run(run).await.expect("is read");
            let state = store.usage(&row).await.expect("is read").expect("has such a cap");
            assert_eq!(state.scope, BudgetScope::Usage(unit));
            (state.cap.0, state.spent.0, state.reserved.0)
        };
        assert_eq!(usage(first.run).await, (10, 0, 0));
        let wants = [want(Phase::Answer, 6), want(Phase::Judge, 3)];
        assert_eq!(first.reserve(&wants).await.refused, []);
        let scope = BudgetScope::Usage(unit);
        let answer = second.reserve(&[want(Phase::Answer, 2), want(Phase::Answer, 1)]).await;
        assert_eq!((answer.refused.as_slice(), answer.caps[0].left().0), (&[(0, scope)][..], 0));
        assert_eq!(stranger.reserve(&[want(Phase::Answer, 10)]).await.refused, []);
        assert_eq!(usage(first.run).await, (10, 0, 10));
        // what one did not use is there for the other
        first.change(BudgetChange { release: vec![wants[0].attempt], ..first.nothing() }).await;
        assert_eq!(second.reserve(&[want(Phase::Answer, 7), want(Phase::Answer, 6)]).await.refused, [(0, scope)]);
        // any of them raises the cap of all
        store.set_limits(second.run, &limits(12)).await.expect("limits are set");
        assert_eq!((usage(first.run).await, usage(second.run).await), ((12, 0, 10), (12, 0, 10)));
        assert_eq!(usage(stranger.run).await, (10, 0, 10));
        assert_eq!(first.reserve(&[want(Phase::Answer, 3), want(Phase::Answer, 2)]).await.refused, [(0, scope)]);
    }
    let dollars = Reservations::open(store, &capped("dollars", 5)).await;
    let row = store.run(dollars.run).await.expect("is read");
    assert_eq!(store.usage(&row).await.expect("is read"), None);
}

/// Processes of several runs of a group reserve, settle, lose and die, in any order: what all of them have spent and reserved
/// never passes the cap of the group, at no commit.
pub async fn p41_the_cap_of_a_group_holds_under_any_interleaving(fresh: &Fresh) {
    const CAP: i64 = 2_000;
    let other = open(&fresh.url).await.expect("another process opens the store");
    let stores = [Arc::clone(&fresh.store), Arc::clone(&other)];
    let mut runs = Vec::new();
    for id in ["measured", "none", "oracle"] {
        runs.push(fresh.store.create_run(&in_group(id, Some(CAP))).await.expect("is created"));
    }
    let tasks = (0..6_u64).map(|seed| spend(Arc::clone(&stores[seed as usize % 2]), runs[seed as usize % 3], seed));
    let watch = async {
        for _ in 0..40 {
            let group = group_of(fresh.store.as_ref(), runs[1]).await;
            assert!(group.spent.0 + group.reserved.0 <= CAP && group.reserved.0 >= 0, "{group:?}");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let (ended, ()) = tokio::join!(futures::future::join_all(tasks), watch);
    let settled: i64 = ended.into_iter().sum();
    let group = group_of(fresh.store.as_ref(), runs[0]).await;
    let mut uncertain = 0;
    for run in &runs {
        let c = fresh.store.run(*run).await.expect("is read").counters;
        assert_eq!((c.reserved.0, c.overdraft.0), (0, 0));
        uncertain += c.uncertain.0;
    }
    assert_eq!((group.spent.0 - uncertain, group.reserved.0, group.runs), (settled, 0, 3));
    assert!(group.spent.0 <= CAP, "{group:?}");
    other.close().await;
}

/// What is deleted lifts no cap: that of its group gets lower by what it has cost, and its day keeps what may have been paid.
pub async fn p41_a_run_that_is_deleted_lifts_no_cap(fresh: &Fresh) {
    let (store, owner) = (fresh.store.as_ref(), open(&fresh.url).await.expect("the owner opens it"));
    let delete = async |run| {
        let paused = store.set_run_state(run, &[RunState::Running], RunState::Paused, None).await;
        assert!(paused.expect("is paused") && owner.delete_runs(&[run]).await.expect("is deleted"));
    };
    let per_day = Limits { max_cost_per_day: Some(PicoUsd(1_000)), ..Limits::default() };
    let day = Reservations::open(store, &with_caps("day", per_day)).await;
    let today = async || {
        let caps = day.change(day.nothing()).await.caps;
        (caps[0].spent.0, caps[0].reserved.0)
    };
    let gone = Reservations::open(store, &in_group("gone", Some(100))).await;
    let stays = Reservations::open(store, &in_group("stays", None)).await;
    let wants = [want(Phase::Answer, 60), want(Phase::Answer, 10)];
    assert_eq!(gone.reserve(&wants).await.refused, []);
    gone.settle(&record(&wants[0], CallOutcome::Accepted, 50)).await;
    assert_eq!(today().await, (50, 10));
    delete(gone.run).await;
    assert_eq!(today().await, (60, 0), "nobody knows what became of the second");
    let group = group_of(store, stays.run).await;
    assert_eq!((group.cap, group.spent, group.runs), (Some(PicoUsd(40)), PicoUsd(0), 1));
    let answer = stays.reserve(&[want(Phase::Answer, 41), want(Phase::Answer, 40)]).await;
    assert_eq!(answer.refused, [(0, BudgetScope::Group)]);

    let limits = Limits { max_usage: Some(UsageCap { unit: UsageUnit::Calls, most: 10 }), ..Limits::default() };
    let of = |id: &str| {
        let group = NewGroup { id: "counted".into(), cap: None };
        NewRun { group: Some(group), ..with_caps(id, limits.clone()) }
    };
    let (gone, stays) = (Reservations::open(store, &of("c1")).await, Reservations::open(store, &of("c2")).await);
    let wants = [want(Phase::Answer, 1), want(Phase::Answer, 1)];
    assert_eq!(gone.reserve(&wants).await.refused, []);
    gone.settle(&record(&wants[0], CallOutcome::Accepted, 0)).await;
    delete(gone.run).await;
    let row = store.run(stays.run).await.expect("is read");
    let usage = store.usage(&row).await.expect("is read").expect("has such a cap");
    assert_eq!((usage.cap.0, usage.spent.0), (8, 0), "one call was made, and one may have been");
    owner.close().await;
}

/// A control is created paused, and its first start is no resume.
pub async fn p41_a_control_waits_for_the_measured_run(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let run = store.create_run(&NewRun { waits: true, ..in_group("control", None) }).await.expect("is created");
    let row = store.run(run).await.expect("is read");
    assert_eq!((row.state, row.reason.as_deref(), row.active_since_ms), (RunState::Paused, Some(MEASURED_FIRST), None));
    let set = async |from, to| store.set_run_state(run, &[from], to, None).await.expect("is set");
    assert!(set(RunState::Paused, RunState::Running).await);
    let row = store.run(run).await.expect("is read");
    assert_eq!((row.resumed_times, row.result_version, row.reason), (0, 1, None));
    assert!(row.active_since_ms.is_some());
    assert!(set(RunState::Running, RunState::Paused).await && set(RunState::Paused, RunState::Running).await);
    assert_eq!(store.run(run).await.expect("is read").resumed_times, 1);
}

/// A run and its controls are there together, or none of them is.
pub async fn p41_controls_are_created_with_their_run_or_not_at_all(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let control = |id: &str| NewRun { waits: true, ..in_group(id, None) };
    let controls = async |run| {
        let filter = RunFilter { control_of: Some(run), ..RunFilter::default() };
        let rows = store.list_runs(&filter).await.expect("is listed");
        rows.into_iter().map(|row| row.run_id.0).collect::<Vec<_>>()
    };
    let made = store.create_or_find(&in_group("m", None), &[control("m-none"), control("m-oracle")]).await;
    let Ok(Creation::Made(run)) = made else { panic!("{made:?}") };
    assert_eq!(controls(run).await, ["m-oracle", "m-none"]);
    let again = store.create_or_find(&in_group("m", None), &[control("m-other")]).await;
    assert!(matches!(again, Ok(Creation::Found(_))), "{again:?}");
    assert_eq!(controls(run).await, ["m-oracle", "m-none"]);
    let taken = store.create_or_find(&in_group("n", None), &[control("n-none"), control("m-none")]).await;
    assert!(matches!(taken, Err(StoreError::Exists(_))), "{taken:?}");
    for id in ["n", "n-none"] {
        assert_eq!(store.run_by_id(&RunId(id.to_owned())).await.expect("is read"), None, "nothing of it is left");
    }
}

/// Repeats are created together as equals: none is a control, all are in one group, and each knows its number.
pub async fn p41_repeats_are_created_together_as_equals(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let of_group =
        |id: &str| NewRun { group: Some(NewGroup { id: "g".to_owned(), cap: Some(PicoUsd(7)) }), ..new_run(id) };
    let control = NewRun { waits: true, ..of_group("g-r1-none") };
    let made = store.create_or_find(&of_group("g-r1"), &[of_group("g-r2"), of_group("g-r10"), control]).await;
    let Ok(Creation::Made(first)) = made else { panic!("{made:?}") };
    let filter = RunFilter { id_part: Some("g-r".into()), controls: true, ..RunFilter::default() };
    let rows = store.list_runs(&filter).await.expect("is listed");
    let told: Vec<_> =
        rows.iter().map(|row| (row.run_id.0.as_str(), row.repeat(), row.control_of, row.state)).collect();
    let running = RunState::Running;
    assert_eq!(
        told,
        [
            ("g-r1-none", None, Some(first), RunState::Paused),
            ("g-r10", Some(10), None, running),
            ("g-r2", Some(2), None, running),
            ("g-r1", Some(1), None, running)
        ]
    );
    let group = store.group(first).await.expect("is read").expect("is there");
    assert_eq!((group.id.as_str(), group.cap, group.runs), ("g", Some(PicoUsd(7)), 4));
    // who has such an id by itself is no repeat
    let alone = store.create_run(&new_run("h-r1")).await.expect("is created");
    let odd = store.create_run(&of_group("g-r01")).await.expect("is created");
    for run in [alone, odd] {
        assert_eq!(store.run(run).await.expect("is read").repeat(), None);
    }
    let taken = store.create_or_find(&of_group("g-r3"), &[of_group("g-r2")]).await;
    assert!(matches!(taken, Err(StoreError::Exists(_))), "{taken:?}");
    assert_eq!(store.run_by_id(&RunId("g-r3".to_owned())).await.expect("is read"), None, "nothing of it is left");
}

/// The ledger names what every booked attempt belongs to, whatever became of its question.
pub async fn p41_the_ledger_names_what_was_paid_for(fresh: &Fresh) {
    let scene = Scene::start(fresh.store.as_ref(), &[bank(0, &[(1, &[0, 1])])]).await;
    scene.make_ready(0, 1).await;
    let (store, run) = (scene.store, scene.run);
    let done = TaskKey::question(0, 0);
    let epoch = scene.claim(done).await.epoch;
    let mut records = scene.whole_question(done, epoch, 1.0, Opens::Nothing);
    records.last_mut().expect("some").calls = vec![call("used", CallOutcome::Accepted, 100)];
    scene.commit(&records).await;
    let put = async |task, calls: &[CallRecord]| store.put_calls(run, task, calls).await.expect("are put");
    put(TaskKey::retain(0, 0), &[call("written", CallOutcome::Accepted, 1_000)]).await;
    put(done, &[call("refused", CallOutcome::Rejected, 1), call("cut", CallOutcome::Uncertain, 40)]).await;
    put(TaskKey::question(0, 1), &[call("open", CallOutcome::Accepted, 7)]).await;
    put(TaskKey::judge(0, 1, 1, 2), &[call("vote", CallOutcome::Rejected, 2)]).await;
    put(TaskKey::judge(0, 0, 1, 2), &[call("vote of the ended", CallOutcome::Accepted, 20)]).await;
    put(TaskKey::OVERHEAD, &[call("probe", CallOutcome::Rejected, 5)]).await;
    let reservations = Reservations { store, run, session: scene.session };
    reservations.reserve(&[want(Phase::Answer, 60)]).await;
    store.end_session(scene.session).await.expect("is ended");
    let facts = [question_facts(done, Outcome::Scored, 1.0)];
    store.store_facts(run, HEADLINE, &facts).await.expect("is concluded");
    let ledger = store.ledger(&store.run(run).await.expect("is read")).await.expect("is read");
    let of = |usage: Usage| (usage.calls, usage.retries, usage.cost.0);
    assert_eq!(of(ledger.ended), (3, 1, 1_121));
    assert_eq!(of(ledger.unfinished), (1, 1, 9));
    assert_eq!(of(ledger.overhead), (1, 0, 5));
    assert_eq!(of(ledger.uncertain), (2, 0, 100));
    let nothing = (0, PicoUsd::ZERO);
    assert_eq!(ledger.lost, [nothing, nothing, (1, PicoUsd(60)), nothing], "what was under way, by its phase");
    assert_eq!(ledger.booked.0, 1_121 + 9 + 5 + 100);
    store.sweep(run).await.expect("is swept");
    assert_eq!(reservations.counters().await.spent, ledger.booked, "the sweep counts the same");
}
