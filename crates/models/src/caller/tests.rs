//! The caller against a scripted model.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Mutex,
};

use async_trait::async_trait;
use bench_proto::{
    call::{CallOutcome, Phase},
    ids::RunNo,
    money::PicoUsd,
    outage::{RouteKey, RouteKind},
    price::{Rates, Tier},
    step::Timing,
    trace::StepTrace,
};

use super::*;
use crate::{
    Attempt, AttemptError, ChatMessage, MessageRole, PaceHint,
    budget::{LocalBudget, OverCap},
    classify,
    classify::Transport,
    pace::{LocalPace, Paced},
    stop::StopCause,
};

/// A model that plays a script of attempts, then repeats good replies.
struct Scripted {
    script: Mutex<VecDeque<Attempt>>,
    sent: Mutex<Vec<Instant>>,
    takes: Duration,
}

#[async_trait]
impl ChatModel for Scripted {
    fn endpoint(&self) -> &str {
        "http://localhost/v1"
    }

    fn model(&self) -> &str {
        "gpt-4o-mini"
    }

    async fn attempt(&self, _: &ChatRequest, _: Option<&StepTrace>) -> Attempt {
        self.sent.lock().expect("no panic").push(Instant::now());
        if !self.takes.is_zero() {
            tokio::time::sleep(self.takes).await;
        }
        let next = self.script.lock().expect("no panic").pop_front();
        next.unwrap_or_else(|| good("yes"))
    }
}

fn attempt(result: Result<ChatReply, AttemptError>, retry_after_ms: Option<u64>) -> Attempt {
    Attempt { result, pace: PaceHint { retry_after_ms, ..PaceHint::default() }, duration_us: 1000 }
}

fn good(text: &str) -> Attempt {
    let reply = ChatReply {
        text: text.to_owned(),
        finish: "stop".to_owned(),
        model: "gpt-4o-mini-2024-07-18".to_owned(),
        prompt_tokens: Some(100),
        completion_tokens: Some(10),
        cached_prompt_tokens: 40,
        ..ChatReply::default()
    };
    attempt(Ok(reply), None)
}

fn answered(status: u16, body: &str, retry_after_ms: Option<u64>) -> Attempt {
    attempt(Err(classify::response(status, body.as_bytes(), retry_after_ms, None)), retry_after_ms)
}

fn broken(kind: Transport) -> Attempt {
    attempt(Err(classify::transport(kind, 0, "", None)), None)
}

const RATES: Rates = Rates { cached_input: PicoUsd(500), ..Rates::flat(PicoUsd(1000), PicoUsd(4000)) };
const PRICE: ModelPrice =
    ModelPrice { standard: Tier { rates: RATES, long: None }, services: BTreeMap::new(), batch_percent: None };

struct Setup {
    model: Arc<Scripted>,
    budget: Arc<LocalBudget>,
    parts: CallerParts,
}

fn setup(script: Vec<Attempt>) -> Setup {
    let model = Arc::new(Scripted { script: Mutex::new(script.into()), sent: Mutex::default(), takes: Duration::ZERO });
    let backoff = BackoffSettings { initial_interval: Duration::from_millis(2), ..BackoffSettings::default() };
    let budget = LocalBudget::new(Some(PicoUsd(1_000_000_000)), PicoUsd::ZERO);
    let parts = CallerParts {
        named: Named::default(),
        model: model.clone(),
        account: "openai".to_owned(),
        gate: Arc::new(Gate::new(512)),
        pace: None,
        returns_unused_reply: false,
        stop: StopFlag::new(),
        budget: budget.clone(),
        price: Some(PRICE),
        store: None,
        ledger: None,
        route: None,
        settings: CallSettings { retries: 2, backoff, ..CallSettings::default() },
    };
    Setup { model, budget, parts }
}

fn request() -> ChatRequest {
    ChatRequest {
        messages: vec![ChatMessage { role: MessageRole::User, text: "Is it blue?".to_owned() }],
        params: BTreeMap::new(),
        schema: None,
        max_output_tokens: 50,
    }
}

const CONTEXT: CallContext<'static> = CallContext {
    run: RunNo(1),
    task: TaskKey::judge(0, 0, 0, 0),
    question_id: "q:0",
    draw: 0,
    phase: Phase::Judge,
    lineage: "l",
    known_calls: true,
    failed_attempts: 0,
    trace: None,
};

fn yes(reply: &ChatReply) -> Result<bool, String> {
    match reply.text.as_str() {
        "yes" => Ok(true),
        other => Err(format!("'{other}' is no verdict")),
    }
}

async fn call(parts: CallerParts) -> CallResult<bool> {
    Caller::new(parts).call(CONTEXT, &request(), &yes).await
}

fn outcomes(result: &CallResult<bool>) -> Vec<CallOutcome> {
    result.records.iter().map(|record| record.outcome).collect()
}

#[tokio::test]
async fn a_good_reply_is_recorded_priced_and_settled() {
    let Setup { model, budget, parts } = setup(vec![]);
    let result = call(parts).await;
    let answered = result.outcome.expect("a verdict");
    assert!(answered.value && !answered.cached);
    let cost = PicoUsd(60 * 1000 + 40 * 500 + 10 * 4000);
    let usage = Usage { calls: 1, prompt_tokens: 100, completion_tokens: 10, cost, ..Usage::default() };
    assert_eq!(result.usage, usage);
    assert_eq!((budget.state().spent, budget.state().reserved), (cost, PicoUsd::ZERO));
    let [record] = result.records.as_slice() else { panic!("one record: {:?}", result.records) };
    assert_eq!(
        (record.outcome, record.cost, record.model.as_str()),
        (CallOutcome::Accepted, cost, "gpt-4o-mini-2024-07-18")
    );
    assert_eq!(result.timing.attempts, 1);
    assert_eq!(result.timing.calls[0].2, 200);
    assert_eq!(model.sent.lock().expect("no panic").len(), 1);
}

#[tokio::test]
async fn malformed_replies_are_paid_recorded_and_asked_again() {
    let Setup { parts, .. } = setup(vec![good("perhaps"), good("well")]);
    let result = call(parts).await;
    assert_eq!(outcomes(&result), [CallOutcome::Rejected, CallOutcome::Rejected, CallOutcome::Accepted]);
    assert_eq!((result.usage.calls, result.usage.retries, result.usage.prompt_tokens), (1, 2, 300));
    assert!(result.outcome.is_ok());

    let Setup { parts, model, .. } = setup(vec![good("a"), good("b"), good("c"), good("yes")]);
    let result = call(parts).await;
    assert_eq!(model.sent.lock().expect("no panic").len(), 3, "one and two retries");
    let failure = Failure::transient("unparsable_judgement", "'c' is no verdict");
    assert_eq!(result.outcome, Err(CallStop::Failed(failure)));
    assert_eq!(result.records.len(), 3);
}

#[tokio::test]
async fn what_a_provider_withholds_is_paid_once_and_not_asked_for_again() {
    for (finish, code) in [("content_filter", "content_filter"), ("refusal", "refusal")] {
        let mut withheld = good("");
        if let Ok(reply) = &mut withheld.result {
            reply.finish = finish.to_owned();
        }
        let Setup { parts, model, .. } = setup(vec![withheld]);
        let result = call(parts).await;
        assert_eq!(result.outcome, Err(CallStop::Failed(Failure::permanent(code, "'' is no verdict"))));
        assert_eq!(
            (model.sent.lock().expect("no panic").len(), outcomes(&result).as_slice()),
            (1, &[CallOutcome::Rejected][..])
        );
    }
}

#[tokio::test]
async fn p10_what_may_have_been_billed_is_uncertain_at_its_worst_case() {
    let Setup { parts, budget, .. } =
        setup(vec![broken(Transport::Timeout), answered(500, "", None), broken(Transport::Connect)]);
    let parts = CallerParts { settings: CallSettings { retries: 3, ..parts.settings }, ..parts };
    let result = call(parts).await;
    assert_eq!(outcomes(&result), [CallOutcome::Uncertain, CallOutcome::Accepted]);
    let prompt = Encoding::O200k.prompt_tokens(&request());
    let worst = PicoUsd((prompt as i64 * 21 + 19) / 20 * 1000 + 50 * 4000);
    assert_eq!(result.records[0].cost, worst);
    assert_eq!(budget.state().spent, worst.saturating_add(result.records[1].cost));
    assert_eq!(result.usage.cost, result.records[1].cost, "only what is known to be paid counts as paid");
    assert_eq!((result.usage.retries, result.timing.attempts), (3, 4));
    assert_eq!(result.timing.calls.iter().map(|call| call.2).collect::<Vec<_>>(), [0, 500, 0, 200]);
}

#[tokio::test]
async fn rate_limits_are_no_attempts() {
    let refusals = (0..10).map(|_| answered(429, "", Some(1))).collect();
    let Setup { parts, .. } = setup(refusals);
    let result = call(parts).await;
    assert!(result.outcome.is_ok());
    assert_eq!((result.usage.rate_limited, result.usage.retries, result.usage.calls), (10, 10, 1));
    assert_eq!(outcomes(&result), [CallOutcome::Accepted]);
    assert!(result.timing.rate_wait_us >= 10_000, "{:?}", result.timing);
}

#[tokio::test]
async fn retry_after_is_honoured_and_p11_long_ones_park() {
    let Setup { parts, model, .. } = setup(vec![answered(429, "", Some(80))]);
    assert!(call(parts).await.outcome.is_ok());
    let sent = model.sent.lock().expect("no panic").clone();
    assert!(sent[1] - sent[0] >= Duration::from_millis(75), "{:?}", sent[1] - sent[0]);

    let Setup { parts, .. } = setup(vec![broken(Transport::Connect), answered(503, "busy", Some(60_000))]);
    let gate = parts.gate.clone();
    match call(parts).await.outcome {
        Err(CallStop::Park { wait, failed_attempts: 2, reason, .. }) => {
            assert!(wait >= Duration::from_secs(60) && reason.contains("busy"), "{wait:?} {reason}");
        }
        other => panic!("{other:?}"),
    }
    let Setup { parts, model, .. } = setup(vec![]);
    let result = call(CallerParts { gate, ..parts }).await;
    assert!(
        matches!(result.outcome, Err(CallStop::Park { failed_attempts: 0, .. })),
        "the whole account waits: {result:?}"
    );
    assert!(model.sent.lock().expect("no panic").is_empty());
}

#[tokio::test]
async fn p39_what_is_not_decided_of_a_call_that_is_put_off_counts_once_it_is() {
    let routes = crate::routes::Routes::new(true);
    let key = RouteKey::Model { kind: RouteKind::Chat, account: "openai".to_owned(), model: "gpt-4o-mini".to_owned() };
    let route = routes.route(&key);
    let failed_attempts = async |context: CallContext<'static>| {
        let Setup { parts, .. } = setup(vec![answered(503, "busy", Some(60_000))]);
        let caller = Caller::new(CallerParts { route: Some(Arc::clone(&route)), ..parts });
        let result = caller.call(context, &request(), &yes).await;
        match result.outcome {
            Err(CallStop::Park { failed_attempts, .. }) => failed_attempts,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(failed_attempts(CONTEXT).await, 0, "nobody knows yet whose fault it was");
    assert_eq!(failed_attempts(CONTEXT).await, 0, "nor now");
    std::thread::sleep(crate::routes::OVERTAKING);
    route.send().expect("is clear").end(Way::Through, None);
    let (other_run, other_task) = (CallContext { run: RunNo(2), ..CONTEXT }, task(1));
    for equal in [other_run, other_task] {
        assert_eq!(failed_attempts(equal).await, 0, "an equal call of another run or task has not failed");
    }
    assert_eq!(failed_attempts(CONTEXT).await, 2, "the route works: they were its own; of the third nobody knows yet");
}

#[tokio::test(start_paused = true)]
async fn p39_what_may_have_been_billed_is_not_sent_again_before_it_is_known_whose_fault_it_was() {
    let key = RouteKey::Model { kind: RouteKind::Chat, account: "openai".to_owned(), model: "gpt-4o-mini".to_owned() };
    for (kind, again) in [(Transport::Garbage, false), (Transport::Cut, false), (Transport::Connect, true)] {
        let Setup { model, mut parts, .. } = setup((0..1_000).map(|_| broken(kind)).collect());
        let routes = crate::routes::Routes::new(true);
        parts.route = Some(routes.route(&key));
        let caller = Caller::new(parts);
        let asked = futures::future::join_all((0..8).map(|n| {
            let caller = &caller;
            async move { caller.call(task(n), &request(), &yes).await }
        }));
        // the route is closed after five seconds
        let ended = tokio::time::timeout(Duration::from_secs(4), asked).await;
        assert!(ended.is_err(), "nobody knows yet: {kind:?}");
        let sent = model.sent.lock().expect("no panic").len();
        assert_eq!(sent > 8, again, "{sent} were sent, eight of which were on their way when it began: {kind:?}");
    }
}

/// Eight calls of one caller, at the same time.
async fn eight_at_once(caller: &Caller) -> Vec<CallResult<bool>> {
    let request = request();
    let calls = (0..8).map(|draw| caller.call(CallContext { draw, ..CONTEXT }, &request, &yes));
    futures::future::join_all(calls).await
}

#[tokio::test(start_paused = true)]
async fn p39_what_may_have_been_billed_is_put_off_for_as_long_as_nobody_knows_whose_fault_it_was() {
    let key = RouteKey::Model { kind: RouteKind::Chat, account: "openai".to_owned(), model: "gpt-4o-mini".to_owned() };
    let Setup { model, mut parts, .. } = setup((0..8).map(|_| broken(Transport::Cut)).collect());
    let routes = crate::routes::Routes::new(true);
    let route = routes.route(&key);
    parts.route = Some(Arc::clone(&route));
    let (caller, patience) = (Caller::new(parts), CallSettings::default().patience);
    let sent = || model.sent.lock().expect("no panic").len();
    // nobody looks into it, as while the store is away
    for time in 1..=3 {
        let began = tokio::time::Instant::now();
        for result in eight_at_once(&caller).await {
            let Err(CallStop::Park { outage: true, failed_attempts: 0, .. }) = result.outcome else {
                panic!("{time}: {result:?}")
            };
        }
        let held = began.elapsed();
        assert!(held < patience + Duration::from_millis(100), "back-off and route together: {held:?}");
        assert_eq!(sent(), 8, "{time}: they come again, and nobody knows yet");
    }
    std::thread::sleep(crate::routes::OVERTAKING + Duration::from_millis(50));
    route.send().expect("is clear").end(Way::Through, None);
    let again = eight_at_once(&caller).await;
    assert!(again.iter().all(|result| result.outcome.is_ok()), "{again:?}");
    assert_eq!(sent(), 16);
}

#[tokio::test(start_paused = true)]
async fn p39_a_reply_that_cannot_be_read_is_known_to_be_billed_and_asked_for_again_at_once() {
    let key = RouteKey::Model { kind: RouteKind::Chat, account: "openai".to_owned(), model: "gpt-4o-mini".to_owned() };
    let Setup { model, mut parts, .. } = setup(vec![broken(Transport::Cut), good("perhaps")]);
    let routes = crate::routes::Routes::new(true);
    let route = routes.route(&key);
    parts.route = Some(Arc::clone(&route));
    // meanwhile others fail
    let read = |reply: &ChatReply| {
        if reply.text != "yes" {
            for _ in 0..5 {
                route.send().expect("is clear").end(Way::Failed, None);
            }
        }
        yes(reply)
    };
    let result = Caller::new(parts).call(CONTEXT, &request(), &read).await;
    assert!(result.outcome.is_ok(), "{result:?}");
    assert_eq!(model.sent.lock().expect("no panic").len(), 3);
}

#[tokio::test]
async fn attempts_before_a_park_count() {
    let Setup { parts, model, .. } = setup(vec![broken(Transport::Connect), broken(Transport::Connect)]);
    let context = CallContext { failed_attempts: 2, ..CONTEXT };
    let result = Caller::new(parts).call(context, &request(), &yes).await;
    assert!(matches!(result.outcome, Err(CallStop::Failed(failure)) if failure.code == "connect"));
    assert_eq!(model.sent.lock().expect("no panic").len(), 1);
}

#[tokio::test]
async fn permanent_failures_are_not_repeated_and_terminal_ones_stop_all() {
    let body = r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#;
    let Setup { parts, model, .. } = setup(vec![answered(400, body, None)]);
    let stop = parts.stop.clone();
    let result = call(parts).await;
    assert!(matches!(result.outcome, Err(CallStop::Failed(failure)) if failure.code == "context_length_exceeded"));
    assert_eq!((model.sent.lock().expect("no panic").len(), stop.cause()), (1, None));

    let body = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}"#;
    let Setup { parts, .. } = setup(vec![answered(429, body, None)]);
    let stop = parts.stop.clone();
    let result = call(parts).await;
    let Err(CallStop::Terminal(failure)) = result.outcome else { panic!("{result:?}") };
    assert!(failure.message.contains("You exceeded your current quota"), "{failure}");
    assert_eq!(stop.cause(), Some(StopCause::Terminal(failure)));
    assert_eq!(result.usage.rate_limited, 0, "it is no rate limit");
    let Setup { parts, model, .. } = setup(vec![]);
    let result = call(CallerParts { stop, ..parts }).await;
    assert!(matches!(result.outcome, Err(CallStop::Stopped(StopCause::Terminal(_)))));
    assert!(model.sent.lock().expect("no panic").is_empty());
}

#[tokio::test]
async fn p23_a_stop_wakes_waits_and_nothing_is_sent_after_it() {
    let Setup { parts, model, budget } = setup(vec![answered(429, "", Some(3000))]);
    let stop = parts.stop.clone();
    let running = tokio::spawn(call(parts));
    tokio::time::sleep(Duration::from_millis(50)).await;
    stop.stop("pause");
    let result = tokio::time::timeout(Duration::from_secs(1), running).await.expect("woken").expect("no panic");
    assert_eq!(result.outcome, Err(CallStop::Stopped(StopCause::Asked("pause".to_owned()))));
    assert_eq!(model.sent.lock().expect("no panic").len(), 1);
    assert_eq!((budget.state().spent, budget.state().reserved), (PicoUsd::ZERO, PicoUsd::ZERO));
}

#[tokio::test]
async fn p10_a_call_that_does_not_fit_is_not_sent() {
    let Setup { parts, model, .. } = setup(vec![]);
    let budget = LocalBudget::new(Some(PicoUsd(200_000)), PicoUsd::ZERO);
    let result = call(CallerParts { budget, ..parts }).await;
    let Err(CallStop::Budget(OverCap { needed, left, .. })) = result.outcome else { panic!("{result:?}") };
    assert!(needed > left && left == PicoUsd(200_000));
    assert!(model.sent.lock().expect("no panic").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p10_the_cap_holds_with_many_calls_at_once() {
    let Setup { parts, .. } = setup(vec![]);
    let model =
        Arc::new(Scripted { script: Mutex::default(), sent: Mutex::default(), takes: Duration::from_millis(2) });
    let cap = PicoUsd(120_000 * 20);
    let budget = LocalBudget::new(Some(cap), PicoUsd::ZERO);
    let caller = Arc::new(Caller::new(CallerParts { model: model.clone(), budget: budget.clone(), ..parts }));
    let calls: Vec<_> = (0..100)
        .map(|draw| {
            let caller = caller.clone();
            tokio::spawn(async move { caller.call(CallContext { draw, ..CONTEXT }, &request(), &yes).await.outcome })
        })
        .collect();
    let mut answered = 0;
    for call in calls {
        match call.await.expect("no panic") {
            Ok(_) => answered += 1,
            Err(CallStop::Budget(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    let state = budget.state();
    assert!(state.spent <= cap && state.reserved == PicoUsd::ZERO, "{state:?}");
    assert_eq!(state.spent, PicoUsd(120_000 * answered));
    assert!((18..=20).contains(&answered), "what fits is used: {answered}");
    assert_eq!(model.sent.lock().expect("no panic").len() as i64, answered);
}

#[tokio::test]
async fn prices_that_nobody_knows_cost_nothing_and_missing_usage_is_counted() {
    let mut silent = good("yes");
    if let Ok(reply) = &mut silent.result {
        (reply.prompt_tokens, reply.completion_tokens, reply.model) = (None, None, String::new());
    }
    let Setup { parts, .. } = setup(vec![silent]);
    let result = call(CallerParts { price: None, ..parts }).await;
    assert_eq!(result.usage.cost, PicoUsd::ZERO);
    assert_eq!(result.usage.prompt_tokens, Encoding::O200k.prompt_tokens(&request()));
    assert_eq!(result.usage.completion_tokens, 1);
    assert_eq!(result.records[0].model, "gpt-4o-mini");
}

#[tokio::test]
async fn adapted_refusals_are_repeated_at_once_and_free() {
    let mut refusal = answered(400, "no schemas here", None);
    if let Err(error) = &mut refusal.result {
        error.adapted = true;
    }
    let Setup { parts, model, .. } = setup(vec![refusal]);
    let settings = CallSettings { retries: 0, ..parts.settings };
    let result = call(CallerParts { settings, ..parts }).await;
    assert!(result.outcome.is_ok());
    assert_eq!(model.sent.lock().expect("no panic").len(), 2);
}

/// Calls by key; counts look-ups.
#[derive(Default)]
struct Known {
    calls: HashMap<Sha256Hash, CallRecord>,
    asked: Mutex<u32>,
    broken: bool,
    /// The task that made them all.
    own: Option<TaskKey>,
}

#[async_trait]
impl CallStore for Known {
    async fn find(&self, _: &str, key: Sha256Hash, task: TaskKey) -> Result<Option<Found>, Failure> {
        *self.asked.lock().expect("no panic") += 1;
        if self.broken {
            return Err(Failure::transient("store", "the store is away"));
        }
        let own = self.own == Some(task);
        Ok(self.calls.get(&key).cloned().map(|record| Found { record, own }))
    }
}

#[tokio::test]
async fn p9_stored_calls_are_served_once_per_draw_and_never_faked() {
    let Setup { parts, .. } = setup(vec![]);
    let first = call(parts).await;
    let record = first.records[0].clone();
    let saved = record.cost;
    let store = Arc::new(Known { calls: HashMap::from([(record.key, record)]), ..Known::default() });
    let with_store = |store: &Arc<Known>| {
        let Setup { parts, model, .. } = setup(vec![]);
        (Caller::new(CallerParts { store: Some(store.clone()), ..parts }), model)
    };
    let (caller, model) = with_store(&store);
    let again = caller.call(CONTEXT, &request(), &yes).await;
    assert!(again.outcome.expect("served").cached);
    assert_eq!((again.usage, again.records.len()), (Usage { cached_calls: 1, saved, ..Usage::default() }, 0));
    assert!(model.sent.lock().expect("no panic").is_empty());

    let calls = store.calls.clone();
    let (caller, _) = with_store(&Arc::new(Known { calls, own: Some(CONTEXT.task), ..Known::default() }));
    let resumed = caller.call(CONTEXT, &request(), &yes).await;
    assert_eq!((resumed.usage, resumed.records.len()), (first.usage, 0), "an interrupted task counts its own calls");

    let (caller, _) = with_store(&store);
    let other_draw = caller.call(CallContext { draw: 1, ..CONTEXT }, &request(), &yes).await;
    assert_eq!(other_draw.usage.calls, 1, "a repeat is never faked");

    let stricter = caller
        .call(CONTEXT, &request(), &|reply| {
            if reply.model.is_empty() { Ok(()) } else { Err("no".to_owned()) }
        })
        .await;
    assert!(matches!(stricter.outcome, Err(CallStop::Failed(_))));
    assert_eq!(stricter.usage.cached_calls, 0, "a parser that refuses it asks anew");

    *store.asked.lock().expect("no panic") = 0;
    let unknown = caller.call(CallContext { known_calls: false, ..CONTEXT }, &request(), &yes).await;
    assert_eq!((unknown.usage.calls, *store.asked.lock().expect("no panic")), (1, 0), "nothing to find, nothing asked");

    let (caller, model) = with_store(&Arc::new(Known { broken: true, ..Known::default() }));
    let away = caller.call(CONTEXT, &request(), &yes).await;
    assert!(matches!(away.outcome, Err(CallStop::Park { .. })), "calling could pay twice: {away:?}");
    assert!(model.sent.lock().expect("no panic").is_empty());
}

#[tokio::test]
async fn explicit_pace_spaces_calls_and_long_waits_park() {
    let Setup { parts, model, .. } = setup(vec![]);
    let pace = Arc::new(LocalPace::new(Some(1200), Some(1_000_000)).expect("limits"));
    let caller = Caller::new(CallerParts { pace: Some(pace), ..parts });
    for draw in 0..3 {
        assert!(caller.call(CallContext { draw, ..CONTEXT }, &request(), &yes).await.outcome.is_ok());
    }
    let sent = model.sent.lock().expect("no panic").clone();
    assert!(sent[2] - sent[0] >= Duration::from_millis(95), "{:?}", sent[2] - sent[0]);

    let Setup { parts, .. } = setup(vec![]);
    let pace = Arc::new(LocalPace::new(Some(6), None).expect("a limit"));
    let caller = Caller::new(CallerParts { pace: Some(pace), ..parts });
    assert!(caller.call(CONTEXT, &request(), &yes).await.outcome.is_ok());
    let parked = caller.call(CONTEXT, &request(), &yes).await.outcome;
    assert!(matches!(parked, Err(CallStop::Park { wait, .. }) if wait > Duration::from_secs(9)), "{parked:?}");
}

/// A pace that lets everything go and notes what comes back.
#[derive(Default)]
struct Noted(Mutex<(u64, u64)>);

#[async_trait]
impl Pace for Noted {
    async fn acquire(&self, _: crate::pace::Lane, tokens: u64, _: Duration) -> Paced {
        self.0.lock().expect("no panic").0 += tokens;
        Paced::Go { waited: Duration::ZERO }
    }

    fn counts_tokens(&self) -> bool {
        true
    }

    fn settled(&self, unused_tokens: u64) {
        self.0.lock().expect("no panic").1 += unused_tokens;
    }
}

#[tokio::test]
async fn p24_what_a_reply_did_not_use_goes_back_where_the_provider_counts_so() {
    for returns in [false, true] {
        let Setup { parts, .. } = setup(vec![]);
        let pace = Arc::new(Noted::default());
        let caller = Caller::new(CallerParts { pace: Some(pace.clone()), returns_unused_reply: returns, ..parts });
        assert!(caller.call(CONTEXT, &request(), &yes).await.outcome.is_ok());
        let (taken, back) = *pace.0.lock().expect("no panic");
        let limit = request().output_limit();
        assert!(taken > limit, "the largest reply is part of it");
        // ten tokens came
        assert_eq!(back, if returns { limit - 10 } else { 0 });
    }
}

#[test]
fn timings_add_up() {
    let call = CallTiming {
        replies: Vec::new(),
        rate_wait_us: 5,
        provider_us: 7,
        attempts: 2,
        calls: vec![(1, 3, 500), (6, 4, 200)],
        waits: vec![],
    };
    let mut timing = Timing::default();
    call.add_to(&mut timing, 100);
    assert_eq!(timing.calls, [(101, 3, 500), (106, 4, 200)]);
    assert_eq!((timing.rate_wait_us, timing.provider_us, timing.attempts), (5, 7, 2));
}

fn task(n: u32) -> CallContext<'static> {
    CallContext { task: TaskKey::judge(n, 0, 0, 0), ..CONTEXT }
}

const UNKNOWN: &str = r#"{"error": {"message": "Unsupported parameter: 'temperature'"}}"#;

#[tokio::test]
async fn a_refusal_before_any_reply_is_probed_once_and_stops_the_run_when_the_probe_is_refused_too() {
    let script = (0..20).map(|_| answered(400, UNKNOWN, None)).collect();
    let takes = Duration::from_millis(20);
    let model = Arc::new(Scripted { script: Mutex::new(script), sent: Mutex::default(), takes });
    let Setup { parts, .. } = setup(vec![]);
    let caller = Caller::new(CallerParts { model: model.clone(), ..parts });
    let asked = futures::future::join_all((0..8).map(|n| {
        let caller = &caller;
        async move { caller.call(task(n), &request(), &yes).await }
    }));
    for result in asked.await {
        let Err(CallStop::Terminal(failure)) = result.outcome else { panic!("{:?}", result.outcome) };
        assert!(failure.message.contains("Unsupported parameter: 'temperature'"), "{failure}");
        assert!(failure.message.contains("the smallest request is refused too"), "{failure}");
    }
    assert_eq!(model.sent.lock().expect("no panic").len(), 9, "eight questions and one probe");
    assert!(matches!(caller.stop_flag().cause(), Some(StopCause::Terminal(_))));
}

#[tokio::test]
async fn a_refusal_is_the_questions_own_when_the_probe_is_answered_until_five_are_refused_alike() {
    let mut script = vec![answered(400, UNKNOWN, None), good("ok")];
    script.extend((0..4).map(|_| answered(400, UNKNOWN, None)));
    let Setup { model, parts, budget } = setup(script);
    let caller = Caller::new(parts);
    let first = caller.call(task(0), &request(), &yes).await;
    assert!(matches!(&first.outcome, Err(CallStop::Failed(failure)) if failure.code == "bad_request"), "{first:?}");
    assert_eq!(outcomes(&first), [CallOutcome::Rejected], "the probe is paid, and nobody's answer");
    assert_eq!(budget.state().spent, first.usage.cost);
    for n in 1..4 {
        let result = caller.call(task(n), &request(), &yes).await;
        assert!(matches!(result.outcome, Err(CallStop::Failed(_))), "{result:?}");
    }
    let fifth = caller.call(task(4), &request(), &yes).await;
    assert!(
        matches!(&fifth.outcome, Err(CallStop::Terminal(failure)) if failure.message.contains("alike")),
        "{fifth:?}"
    );
    assert_eq!(model.sent.lock().expect("no panic").len(), 6, "one probe");
}

#[tokio::test]
async fn nothing_is_probed_after_a_reply_and_a_probe_that_shows_nothing_lets_the_question_be_asked_again() {
    let Setup { model, parts, .. } = setup(vec![good("yes"), answered(400, UNKNOWN, None)]);
    let caller = Caller::new(parts);
    assert!(caller.call(task(0), &request(), &yes).await.outcome.is_ok());
    let refused = caller.call(task(1), &request(), &yes).await;
    assert!(matches!(refused.outcome, Err(CallStop::Failed(_))), "{refused:?}");
    assert_eq!(model.sent.lock().expect("no panic").len(), 2);

    let Setup { model, parts, .. } = setup(vec![answered(400, UNKNOWN, None), answered(503, "", None), good("yes")]);
    assert!(call(parts).await.outcome.is_ok());
    assert_eq!(model.sent.lock().expect("no panic").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn replies_that_can_never_be_read_are_soon_paid_once_a_call() {
    let garbage = |n: usize| (0..n).map(|_| good("perhaps")).collect::<Vec<_>>();
    let Setup { model, parts, .. } = setup(garbage(60));
    let caller = Caller::new(parts);
    for n in 0..20 {
        let outcome = caller.call(task(n), &request(), &yes).await.outcome;
        let Err(CallStop::Failed(failure)) = outcome else { panic!("no grade: {outcome:?}") };
        assert!(failure.message.starts_with("'perhaps' is no verdict"), "{failure}");
        assert_eq!(failure.message.contains("none of the first 30 replies"), n >= 9, "{n}: {failure}");
    }
    assert_eq!(model.sent.lock().expect("no panic").len(), 40, "three attempts of ten, and one of ten");
    assert_eq!(caller.stop_flag().cause(), None, "the run goes on to its end");

    // a single one that could be read, and the others are matters of their questions
    let Setup { model, parts, .. } = setup([vec![good("yes")], garbage(60)].concat());
    let caller = Caller::new(parts);
    assert!(caller.call(task(0), &request(), &yes).await.outcome.is_ok());
    for n in 1..=20 {
        let outcome = caller.call(task(n), &request(), &yes).await.outcome;
        assert!(matches!(outcome, Err(CallStop::Failed(_))), "{outcome:?}");
    }
    assert_eq!(model.sent.lock().expect("no panic").len(), 61, "three attempts each");
}

#[tokio::test(start_paused = true)]
async fn p39_a_probe_of_a_provider_that_lets_requests_hang_ends_soon_and_may_have_been_billed() {
    let Setup { budget, mut parts, .. } = setup(vec![]);
    let takes = Duration::from_secs(3600);
    parts.model = Arc::new(Scripted { script: Mutex::default(), sent: Mutex::default(), takes });
    let began = tokio::time::Instant::now();
    let (probed, records) = Caller::new(parts).probe(CONTEXT, &request()).await;
    assert!(matches!(&probed, Probed::Failed(failure) if failure.code == "timeout"), "{probed:?}");
    assert_eq!(began.elapsed(), PROBE_PATIENCE);
    assert_eq!(records.iter().map(|record| record.outcome).collect::<Vec<_>>(), [CallOutcome::Uncertain]);
    assert_eq!(budget.state().reserved, PicoUsd::ZERO, "settled with its record");
}

#[tokio::test]
async fn counts_that_cannot_be_true_are_booked_with_the_most_that_the_call_can_cost() {
    let counted = |prompt, completion, cached| {
        let mut attempt = good("yes");
        if let Ok(reply) = &mut attempt.result {
            (reply.prompt_tokens, reply.completion_tokens) = (Some(prompt), Some(completion));
            reply.cached_prompt_tokens = cached;
        }
        attempt
    };
    const ABSURD: u64 = 9_000_000_000_000_000_000;
    let too_much = [(100, ABSURD, 0), (ABSURD, 10, 0), (100, 10, ABSURD), (u64::MAX, u64::MAX, 1)];
    let nothing = [(0, 0, 0), (0, 1, 0), (100, 0, 0)];
    let part_above_its_whole = [(100, 10, 101)];
    for (prompt, completion, cached) in too_much.into_iter().chain(nothing).chain(part_above_its_whole) {
        let Setup { budget, parts, .. } = setup(vec![counted(prompt, completion, cached)]);
        let caller = Caller::new(parts);
        let worst = caller.parts.model.prompt_tokens(caller.encoding, &request());
        let result = caller.call(CONTEXT, &request(), &yes).await;
        assert!(result.outcome.is_ok(), "the answer itself is as good as any");
        let record = &result.records[0];
        assert_eq!((record.prompt_tokens, record.completion_tokens), (worst, 1), "counted from the texts");
        assert_eq!(record.cost, PRICE.worst((worst * 21).div_ceil(20), 50, None, false));
        assert_eq!((budget.state().spent, budget.state().overdraft), (record.cost, PicoUsd::ZERO));
        assert_eq!((result.usage.prompt_tokens, result.usage.completion_tokens), (worst, 1));
        assert_eq!(result.usage.uncounted, 1, "reports say so");
    }
    // a model may think far beyond what it says
    let Setup { parts, .. } = setup(vec![counted(100, 30_000, 40)]);
    assert_eq!(call(parts).await.records[0].completion_tokens, 30_000);
}
