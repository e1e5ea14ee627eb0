//! RunReservations over a real store.

use std::collections::{BTreeSet, HashMap};

use bench_proto::{
    call::{CallOutcome, CallRecord},
    ids::TaskKey,
    spec::Limits,
};
use bench_store::{
    BudgetScope, BudgetState, NewGroup, NewRun, RunCounters, Store,
    conformance::{Counted, call, new_run},
};

use super::*;
use crate::budget::OverCap;

const PHASE: Phase = Phase::Answer;

const fn usd(amount: i64) -> PicoUsd {
    PicoUsd(amount)
}

/// A store with one run, which counts transactions of money.
struct Bank {
    money: Arc<Counted>,
    store: Arc<dyn Store>,
    run: RunRow,
    _folder: Option<tempfile::TempDir>,
}

impl Bank {
    async fn open(limits: Limits) -> Arc<Self> {
        let mut run = new_run("r");
        run.spec.limits = limits;
        Self::opened_for(&run).await
    }

    async fn opened_for(run: &NewRun) -> Arc<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = bench_store::conformance::store_in(folder.path()).await;
        let run = store.create_run(run).await.expect("is created");
        let run = store.run(run).await.expect("is read");
        Arc::new(Self { money: Counted::new(&store), store, run, _folder: Some(folder) })
    }

    /// Another run of the same store.
    async fn beside(&self, run: &NewRun) -> Arc<Self> {
        let run = self.store.create_run(run).await.expect("is created");
        let run = self.store.run(run).await.expect("is read");
        Arc::new(Self { money: Counted::new(&self.store), store: Arc::clone(&self.store), run, _folder: None })
    }

    async fn capped(cap: i64) -> Arc<Self> {
        Self::open(Limits { max_cost: Some(usd(cap)), ..Limits::default() }).await
    }

    fn money(&self) -> Arc<dyn Money> {
        Arc::clone(&self.money) as Arc<dyn Money>
    }

    async fn session(&self) -> SessionId {
        self.store.open_session("w", "local", "{}").await.expect("opens")
    }

    async fn reservations(self: &Arc<Self>) -> Arc<Reservations> {
        let session = self.session().await;
        Arc::new(Reservations::open(self.money(), &self.run, session))
    }

    /// Books what an attempt cost, as its checkpoint would.
    async fn book(&self, mut reservation: Reservation, cost: i64) {
        reservation.sent();
        let record = CallRecord { attempt_id: reservation.id(), ..call("x", CallOutcome::Accepted, cost) };
        reservation.settle(usd(cost));
        self.store.put_calls(self.run.run_no, TaskKey::question(0, 0), &[record]).await.expect("is put");
    }

    async fn counters(&self) -> RunCounters {
        self.store.run(self.run.run_no).await.expect("is read").counters
    }

    /// (spent, reserved, uncertain).
    async fn sums(&self) -> [i64; 3] {
        let counters = self.counters().await;
        [counters.spent.0, counters.reserved.0, counters.uncertain.0]
    }
}

fn over(needed: i64, left: i64) -> Refusal {
    Refusal::OverCap(OverCap { needed: usd(needed), left: usd(left), cap: usd(100), scope: BudgetScope::Run })
}

#[tokio::test]
async fn p10_a_refused_call_waits_for_settlements_and_only_then_gives_up() {
    let bank = Bank::capped(100).await;
    let reservations = bank.reservations().await;
    let first = reservations.reserve(PHASE, usd(80)).await.expect("fits");
    assert_eq!(bank.sums().await, [0, 80, 0]);
    let waiting = tokio::spawn({
        let reservations = reservations.clone();
        async move { reservations.reserve(PHASE, usd(50)).await }
    });
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert!(!waiting.is_finished());
    let starve = async {
        while !reservations.are_starving() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), starve).await.expect("it is known that a call waits for money");
    bank.book(first, 10).await;
    let second = waiting.await.expect("no panic").expect("fits now");
    // dropped unsent: its money serves the next, and goes back when there is none
    drop(second);
    assert_eq!(reservations.reserve(PHASE, usd(91)).await.err(), Some(over(91, 90)));
    assert!(reservations.reserve_generously(PHASE, usd(46)).await.is_none(), "more than half of what is left");
    reservations.close().await;
    assert_eq!(bank.sums().await, [10, 0, 0]);
    assert!(matches!(reservations.reserve(PHASE, usd(1)).await, Err(Refusal::Stopped(_))));
}

#[tokio::test]
async fn p10_a_call_that_came_while_the_store_was_asked_is_not_refused_what_is_left() {
    let bank = Bank::capped(100).await;
    let (mut plan, now) = (Plan::new(&bank.run), std::time::Instant::now());
    let ((large, _large), (small, _small)) = (oneshot::channel::<()>(), oneshot::channel::<()>());
    plan.wait(PHASE, 60, false, large);
    let (wants, asked) = plan.wants(now);
    plan.wait(PHASE, 18, false, small);
    let caps = vec![BudgetState { scope: BudgetScope::Run, cap: usd(100), spent: usd(50), reserved: PicoUsd::ZERO }];
    let answer = BudgetAnswer { refused: vec![(0, BudgetScope::Run)], caps, stopped: false };
    let told = plan.answered(now, asked, &wants, &answer);
    let refused: Vec<Option<&Refusal>> = told.iter().map(|(_, outcome)| outcome.as_ref().err()).collect();
    assert_eq!(refused, [Some(&over(60, 50))], "the next call may cost 18, 50 are left: that is no refusal");
    let again: Vec<PicoUsd> = plan.wants(now).0.iter().map(|want| want.amount).collect();
    assert_eq!(again, [usd(18)], "it is asked for");
}

#[tokio::test]
async fn p10_a_float_serves_calls_that_differ_a_little_and_is_filled_anew_where_they_have_grown() {
    let bank = Bank::open(Limits::default()).await;
    let (mut plan, now) = (Plan::<oneshot::Sender<()>>::new(&bank.run), std::time::Instant::now());
    let held = |given: Given| match given {
        Given::FromFloat { amount, .. } => Some(amount),
        Given::Nothing | Given::Closed => None,
    };
    let fill = |plan: &mut Plan<oneshot::Sender<()>>| {
        let (wants, asked) = plan.wants(now);
        let answer = BudgetAnswer { refused: Vec::new(), caps: Vec::new(), stopped: false };
        assert!(plan.answered(now, asked, &wants, &answer).is_empty(), "nobody waits");
        wants.iter().map(|want| want.amount.0).collect::<Vec<i64>>()
    };
    for _ in 0..100 {
        assert_eq!(held(plan.take(PHASE, 1000)), None, "nothing is ready yet");
    }
    let first = fill(&mut plan);
    assert!(first.len() > 10 && first.iter().all(|amount| *amount == 1024), "{first:?}");
    assert_eq!(held(plan.take(PHASE, 1010)), Some(1024), "it is longer by a few bytes");
    assert_eq!(fill(&mut plan), [1024], "no more than was taken");
    assert_eq!(held(plan.take(PHASE, 1100)), None);
    let second = fill(&mut plan);
    assert_eq!(second, vec![1152; first.len()], "what is too small counts for nothing");
    assert_eq!((held(plan.take(PHASE, 1100)), held(plan.take(PHASE, 900))), (Some(1152), Some(1024)));
    for _ in 2..second.len() {
        assert_eq!(held(plan.take(PHASE, 1100)), Some(1152));
    }
    let low = plan.take(PHASE, 1100);
    assert!(matches!(low, Given::FromFloat { low: true, .. }), "those that are too small do not hide that it is empty");
    assert_eq!(held(plan.take(PHASE, 1100)), None);
}

/// A plan whose calls come by the clock, and what it holds ready.
struct Clocked {
    plan: Plan<oneshot::Sender<()>>,
    now: std::time::Instant,
    held: HashMap<Uuid, i64>,
}

impl Clocked {
    /// Calls of each 10 ms.
    const EACH: usize = 3;
    /// Most that are held: enough for 150 ms and half as many again, of a rate that is measured.
    const MOST: usize = 75;

    async fn new() -> Self {
        let bank = Bank::open(Limits::default()).await;
        Self { plan: Plan::new(&bank.run), now: std::time::Instant::now(), held: HashMap::new() }
    }

    /// Whether a call finds what it needs.
    fn take(&mut self, amount: i64) -> bool {
        let Given::FromFloat { id, amount: given, .. } = self.plan.take(PHASE, amount) else { return false };
        assert!(self.held.remove(&id) == Some(given) && given >= amount);
        true
    }

    /// Goes on for so many times 10 ms, with these amounts in turn; how many calls found nothing.
    fn go(&mut self, times: usize, amounts: &[i64]) -> usize {
        let mut calls = amounts.iter().cycle();
        let mut found_nothing = 0;
        for _ in 0..times {
            found_nothing += calls.by_ref().take(Self::EACH).filter(|amount| !self.take(**amount)).count();
            self.now += Duration::from_millis(10);
            let (wants, asked) = self.plan.wants(self.now);
            for id in self.plan.returns().0 {
                assert!(self.held.remove(&id).is_some(), "what goes back was held");
            }
            let answer = BudgetAnswer { refused: Vec::new(), caps: Vec::new(), stopped: false };
            assert!(self.plan.answered(self.now, asked, &wants, &answer).is_empty(), "nobody waits");
            self.held.extend(wants.iter().map(|want| (want.attempt, want.amount.0)));
            assert!(self.held.len() <= Self::MOST, "{} are held", self.held.len());
        }
        found_nothing
    }

    /// The amounts that are held.
    fn amounts(&self) -> BTreeSet<i64> {
        self.held.values().copied().collect()
    }
}

#[tokio::test]
async fn p10_a_rare_large_call_is_forgotten_while_others_go_on() {
    let mut clocked = Clocked::new().await;
    clocked.go(100, &[1000]);
    assert_eq!(clocked.amounts(), [1024].into());
    assert!(!clocked.take(50_000), "it waits for a transaction of its own");
    assert_eq!(clocked.go(110, &[1000]), 0, "all others are served");
    assert_eq!(clocked.amounts(), [1024].into());
    assert!(clocked.held.len() > 30, "and go on to be: {}", clocked.held.len());
}

#[tokio::test]
async fn p10_a_float_serves_calls_of_several_sizes() {
    let mut clocked = Clocked::new().await;
    clocked.go(100, &[1000, 9000]);
    assert_eq!(clocked.go(300, &[1000, 9000]), 0);
    assert_eq!(clocked.amounts(), [9216].into());
}

#[tokio::test]
async fn p10_what_is_too_small_goes_back_once_there_is_enough_that_fits() {
    let mut clocked = Clocked::new().await;
    clocked.go(100, &[1000]);
    assert_eq!(clocked.go(1, &[1100]), Clocked::EACH);
    assert_eq!(clocked.amounts(), [1024, 1152].into(), "smaller calls may come");
    // grown again and again, it is no larger either
    for amount in [1200, 1300, 1500] {
        clocked.go(1, &[amount]);
    }
    assert_eq!(clocked.go(2, &[1500]), 0);
    assert_eq!(clocked.amounts(), [1536].into());
}

#[tokio::test]
async fn p10_other_processes_are_waited_for_too() {
    let bank = Bank::capped(100).await;
    let (one, other) = (bank.reservations().await, bank.reservations().await);
    let held = one.reserve(PHASE, usd(60)).await.expect("fits");
    let waiting = tokio::spawn(async move { other.reserve(PHASE, usd(50)).await.map(|r| r.amount()) });
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(!waiting.is_finished());
    held.free();
    assert_eq!(waiting.await.expect("no panic"), Ok(usd(50)));
}

#[tokio::test]
async fn p10_dropped_calls_are_uncertain() {
    let bank = Bank::capped(1000).await;
    let session = bank.session().await;
    let reservations = Reservations::open(bank.money(), &bank.run, session);
    let mut sent = reservations.reserve(PHASE, usd(30)).await.expect("fits");
    sent.sent();
    drop(sent);
    let unsent = reservations.reserve(PHASE, usd(20)).await.expect("fits");
    let mut killed = reservations.reserve(PHASE, usd(7)).await.expect("fits");
    killed.sent();
    drop(unsent);
    reservations.close().await;
    assert_eq!(bank.sums().await, [30, 7, 30]);
    bank.store.end_session(session).await.expect("is ended");
    assert_eq!(bank.sums().await, [37, 0, 37], "what was in flight at a kill is counted at its worst case");
    assert_eq!(bank.store.release_uncertain(bank.run.run_no).await.expect("is released"), usd(37));
}

#[tokio::test]
async fn p10_a_pause_refuses_all_that_wait() {
    use bench_store::RunState;
    let bank = Bank::capped(100).await;
    let reservations = bank.reservations().await;
    let held = reservations.reserve(PHASE, usd(90)).await.expect("fits");
    let waiting = tokio::spawn({
        let reservations = reservations.clone();
        async move { reservations.reserve(PHASE, usd(50)).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let paused = bank.store.set_run_state(bank.run.run_no, &[RunState::Running], RunState::Paused, None).await;
    assert!(paused.expect("is paused"));
    let refused = tokio::time::timeout(Duration::from_secs(1), waiting).await.expect("is told soon");
    assert!(matches!(refused.expect("no panic"), Err(Refusal::Stopped(_))));
    drop(held);
}

/// 1,000 calls a second in four processes: few transactions, short waits, and no float is left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p10_many_calls_share_few_transactions() {
    const CALLS: u32 = 1200;
    const EACH: i64 = 10;
    let bank = Bank::capped(i64::from(CALLS) * EACH * 100).await;
    let mut processes = Vec::new();
    for _ in 0..4 {
        processes.push(bank.reservations().await);
    }
    let begun = std::time::Instant::now();
    let calls: Vec<_> = (0..CALLS)
        .map(|n| {
            let (bank, reservations) = (bank.clone(), processes[n as usize % 4].clone());
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(u64::from(n))).await;
                let asked = std::time::Instant::now();
                let reservation =
                    reservations.reserve_generously(PHASE, usd(EACH + i64::from(n % 3))).await.expect("is roomy");
                let waited = asked.elapsed();
                let mut reservation = reservation;
                reservation.sent();
                let record = CallRecord { attempt_id: reservation.id(), ..call("x", CallOutcome::Accepted, 5) };
                reservation.settle(usd(5));
                let _ = bank;
                (waited, record)
            })
        })
        .collect();
    let (mut waits, mut records) = (Vec::new(), Vec::new());
    for call in calls {
        let (waited, record) = call.await.expect("no panic");
        waits.push(waited);
        records.push(record);
    }
    let seconds = begun.elapsed().as_secs_f64();
    bank.store.put_calls(bank.run.run_no, TaskKey::question(0, 0), &records).await.expect("are put");
    for process in &processes {
        process.close().await;
    }
    waits.sort_unstable();
    let per_second = bank.money.count() as f64 / seconds;
    eprintln!("{per_second:.0} transactions/s; waits: p50 {:?}, p99 {:?}", waits[600], waits[1188]);
    assert!(per_second < 200.0, "{per_second}");
    assert!(waits[600] < Duration::from_millis(10), "most calls are served from the float: {:?}", waits[600]);
    assert_eq!(bank.sums().await, [i64::from(CALLS) * 5, 0, 0]);
}

/// Three times the worst case where there is room for it, else the worst case.
async fn reserve_somehow(reservations: &Reservations, worst: i64) -> Result<Reservation, Refusal> {
    match reservations.reserve_generously(PHASE, usd(worst * 3)).await {
        Some(reservation) => Ok(reservation),
        None => reservations.reserve(PHASE, usd(worst)).await,
    }
}

/// Whatever the calls cost, and in however many processes: the cap is held, and what is left is less than the next call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p10_the_cap_is_used_up_and_never_passed() {
    const CAP: i64 = 20_000;
    let bank = Bank::capped(CAP).await;
    let processes = [bank.reservations().await, bank.reservations().await];
    let calls: Vec<_> = (0..400_i64)
        .map(|n| {
            let (bank, reservations) = (bank.clone(), processes[n as usize % 2].clone());
            tokio::spawn(async move {
                let worst = 60 + n % 40;
                match reserve_somehow(&reservations, worst).await {
                    Ok(reservation) => {
                        tokio::time::sleep(Duration::from_millis((n % 7) as u64)).await;
                        bank.book(reservation, worst).await;
                        true
                    }
                    Err(Refusal::OverCap(_)) => false,
                    Err(other) => panic!("{other:?}"),
                }
            })
        })
        .collect();
    let mut done = 0;
    for call in calls {
        done += i64::from(call.await.expect("no panic"));
    }
    let counters = bank.counters().await;
    assert!(counters.spent.0 <= CAP && counters.overdraft.0 == 0, "{counters:?}");
    assert!(done < 400 && counters.spent.0 > CAP * 95 / 100, "{done} calls, {counters:?}");
    for process in &processes {
        process.close().await;
    }
    assert_eq!(bank.counters().await.reserved, PicoUsd::ZERO);
}

fn in_group(id: &str, cap: i64) -> NewRun {
    NewRun { group: Some(NewGroup { id: "g".to_owned(), cap: Some(usd(cap)) }), ..new_run(id) }
}

#[tokio::test]
async fn p41_what_another_run_of_the_group_has_reserved_is_waited_for() {
    let measured = Bank::opened_for(&in_group("measured", 100)).await;
    let control = measured.beside(&in_group("control", 100)).await;
    let (first, second) = (measured.reservations().await, control.reservations().await);
    let held = first.reserve(PHASE, usd(70)).await.expect("fits");
    assert!(second.reserve_generously(PHASE, usd(40)).await.is_none(), "30 are left");
    let waiting = tokio::spawn({
        let second = Arc::clone(&second);
        async move { second.reserve(PHASE, usd(50)).await }
    });
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(!waiting.is_finished());
    measured.book(held, 20).await;
    let reservation = waiting.await.expect("no panic").expect("fits now");
    control.book(reservation, 50).await;
    let refused = first.reserve(PHASE, usd(31)).await.expect_err("30 are left, and nothing is outstanding");
    let over = OverCap { needed: usd(31), left: usd(30), cap: usd(100), scope: BudgetScope::Group };
    assert_eq!(refused, Refusal::OverCap(over));
    let told = over.of_run("mine");
    assert!(told.contains("the group's cap of") && told.contains("--max-cost"), "{told}");
    for scope in [BudgetScope::Run, BudgetScope::Group, BudgetScope::Phase(PHASE), BudgetScope::Day] {
        let told = OverCap { scope, ..over }.of_run("mine");
        assert!(told.contains("`bench-coord resume mine --"), "{told}");
    }
}

/// Whatever the calls of several runs cost, in however many processes: the cap of their group is used up and never passed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p41_the_cap_of_a_group_is_used_up_and_never_passed() {
    const CAP: i64 = 20_000;
    let measured = Bank::opened_for(&in_group("measured", CAP)).await;
    let runs = [
        Arc::clone(&measured),
        measured.beside(&in_group("none", CAP)).await,
        measured.beside(&in_group("oracle", CAP)).await,
    ];
    let mut processes = Vec::new();
    for run in &runs {
        processes.push(run.reservations().await);
    }
    let calls: Vec<_> = (0..400_i64)
        .map(|n| {
            let (run, reservations) = (Arc::clone(&runs[n as usize % 3]), Arc::clone(&processes[n as usize % 3]));
            tokio::spawn(async move {
                let worst = 60 + n % 40;
                match reserve_somehow(&reservations, worst).await {
                    Ok(reservation) => run.book(reservation, worst).await,
                    Err(Refusal::OverCap(over)) => assert_eq!(over.scope, BudgetScope::Group),
                    Err(other) => panic!("{other:?}"),
                }
            })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic");
    }
    let group = measured.store.group(measured.run.run_no).await.expect("is read").expect("is a group");
    assert!(group.spent.0 <= CAP && group.spent.0 > CAP * 95 / 100, "{group:?}");
    for process in &processes {
        process.close().await;
    }
    let group = measured.store.group(measured.run.run_no).await.expect("is read").expect("is a group");
    assert_eq!(group.reserved, PicoUsd::ZERO);
}
