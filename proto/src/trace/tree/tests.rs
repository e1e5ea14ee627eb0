use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::{
    call::{Phase, Usage},
    failure::Failure,
    ids::RunId,
    money::PicoUsd,
    scenario::Scenario,
    server::ServerAddress,
    spec::{ModelSpec, RunSpec},
    step::{ReplyNote, Retrieval, Served, WaitFor},
    trace::{BankSpan, SpanValue, TraceTexts, bank_spans, span_of_call, span_of_dispatch, span_of_step},
};

fn spec() -> RunSpec {
    let mut spec: RunSpec = serde_json::from_str(include_str!("../../../golden/run_spec.v1.json")).expect("a spec");
    let model = ModelSpec {
        provider: "openai".into(),
        name: "gpt-4o-mini".into(),
        account: "openai".into(),
        params: BTreeMap::new(),
        prompts: BTreeMap::new(),
        version: 1,
    };
    spec.answerer = model.clone();
    spec.judges = vec![model];
    spec
}

const QUESTION: TaskKey = TaskKey::question(3, 7);
const JUDGE: TaskKey = TaskKey::judge(3, 7, 0, 0);

fn stored(task: TaskKey, step: StepNo, facts: StepFacts, stored_us: i64) -> StoredSpan {
    StoredSpan { task, step, facts, stored_us: Some(stored_us) }
}

/// A question that was recalled by session 1 and judged by session 2; its first call was answered with 429.
fn steps() -> Vec<StoredSpan> {
    let usage =
        Usage { calls: 1, prompt_tokens: 100, completion_tokens: 5, cost: PicoUsd(2_000_000), ..Usage::default() };
    let recalled = StepFacts::Recalled {
        generation: 1,
        hits: 10,
        effective_k: 10,
        context_bytes: 900,
        top1_score: None,
        retrieval: Retrieval::default(),
        usage: Usage::default(),
        timing: Timing {
            started_us: 1_000_000,
            queue_wait_us: 40_000,
            dispatch_us: 10_000,
            provider_us: 900,
            total_us: 1_000,
            attempts: 1,
            session: 1,
            ..Timing::default()
        },
    };
    let answered = StepFacts::Answered {
        finish: "stop".into(),
        usage,
        timing: Timing {
            started_us: 1_003_000,
            rate_wait_us: 20_000,
            provider_us: 80_000,
            total_us: 100_000,
            attempts: 2,
            calls: vec![(0, 5_000, 429), (25_000, 75_000, 200)],
            waits: vec![(5_000, 20_000, WaitFor::Retry)],
            session: 1,
            ..Timing::default()
        },
    };
    let judged = StepFacts::Judged {
        score: Some(1.0),
        parts: vec![],
        usage,
        timing: Timing {
            started_us: 1_140_000,
            queue_wait_us: 30_000,
            provider_us: 50_000,
            total_us: 50_000,
            attempts: 1,
            calls: vec![(0, 50_000, 200)],
            session: 2,
            ..Timing::default()
        },
    };
    let scored = StepFacts::Scored { scores: vec![], abstained: false, answer_hash: 1 };
    vec![
        stored(QUESTION, StepNo::RECALL, recalled, 1_002_500),
        stored(QUESTION, StepNo::ANSWER, answered, 1_105_000),
        stored(QUESTION, StepNo::SCORE, scored, 1_105_000),
        stored(JUDGE, StepNo::JUDGE, judged, 1_192_000),
    ]
}

fn built(steps: &[StoredSpan], attempts: &[AttemptNote], texts: Option<TraceTexts>) -> Vec<Span> {
    built_for(&spec(), steps, attempts, texts)
}

fn built_for(spec: &RunSpec, steps: &[StoredSpan], attempts: &[AttemptNote], texts: Option<TraceTexts>) -> Vec<Span> {
    let banks = [BankSpan {
        task: TaskKey::retain(3, 0),
        bank_id: "b".into(),
        start_us: 1,
        end_us: 2,
        entries: 4,
        session: 1,
        server: None,
        calls: Vec::new(),
        own_tokens: (0, 0),
    }];
    question_spans(&TraceInput { attempts, texts, ..input(spec, &RunId("r".into()), steps, &banks) })
}

fn input<'a>(spec: &'a RunSpec, run: &'a RunId, steps: &'a [StoredSpan], banks: &'a [BankSpan]) -> TraceInput<'a> {
    TraceInput {
        run,
        spec,
        embeddings: spec.system.settings.get("vector.model").and_then(|name| Some((name.as_str()?, "openai"))),
        submitted_us: 500,
        task: QUESTION,
        question_id: "b:7",
        bank_id: "b",
        category: "temporal",
        steps,
        attempts: &[],
        facts: None,
        banks,
        db_system: "postgresql",
        messaging_system: Some("rabbitmq"),
        texts: None,
    }
}

/// Spans that tell of tokens, with their sums.
fn tokens(spans: &[Span]) -> Vec<(&str, [i64; 2])> {
    let number = |span: &Span, wanted: &str| match span.attributes.iter().find(|(name, _)| *name == wanted) {
        Some((_, SpanValue::Int(number))) => *number,
        _ => 0,
    };
    let of = |span| ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"].map(|name| number(span, name));
    spans.iter().map(|span| (span.name.as_str(), of(span))).filter(|(_, tokens)| *tokens != [0, 0]).collect()
}

fn reply(call: usize, prompt_tokens: u64, completion_tokens: u64) -> ReplyNote {
    let served = Served { model: "gpt-4o-mini-2024-07-18".into(), fingerprint: Some("fp_44".into()) };
    ReplyNote { call, prompt_tokens, completion_tokens, served }
}

#[test]
fn p20_tokens_are_told_once_by_the_span_of_the_call_that_used_them() {
    let mut steps = steps();
    for step in &mut steps {
        match &mut step.facts {
            StepFacts::Answered { timing, .. } => timing.replies = vec![reply(1, 100, 5)],
            StepFacts::Judged { timing, .. } => timing.replies = vec![reply(0, 100, 5)],
            _ => {}
        }
    }
    let spans = built(&steps, &[], None);
    assert_eq!(tokens(&spans), [("chat gpt-4o-mini", [100, 5]), ("chat gpt-4o-mini", [100, 5])]);
    let told = |span: &&Span| span.attributes.iter().any(|(name, _)| name.starts_with("gen_ai."));
    assert!(spans.iter().filter(told).all(|span| span.class == SpanClass::Call), "nobody else is a model's span");
    let answered = spans.iter().rfind(|span| span.name.starts_with("chat") && span.session == 1).expect("is there");
    for (name, value) in [
        ("gen_ai.response.model", "gpt-4o-mini-2024-07-18".into()),
        ("openai.response.system_fingerprint", "fp_44".into()),
        ("gen_ai.response.finish_reasons", SpanValue::Texts(vec!["stop".into()])),
    ] {
        assert!(answered.attributes.contains(&(name, value)), "{name}: {answered:?}");
    }
}

#[test]
fn p20_tokens_that_no_reply_told_of_are_told_by_the_step() {
    // as an older build has stored them
    assert_eq!(tokens(&built(&steps(), &[], None)), [("answer", [100, 5]), ("judge", [100, 5])]);
    // a memory system's own tokens belong to the request to it
    let mut steps = steps();
    if let StepFacts::Recalled { usage, .. } = &mut steps[0].facts {
        usage.prompt_tokens = 30;
    }
    assert_eq!(tokens(&built(&steps[..1], &[], None)), [("search bm25", [30, 0])]);
}

#[test]
fn p20_what_was_retained_is_told_once_its_segment_has_ended() {
    let mut spec = spec();
    spec.system.settings.insert("vector.model".into(), "text-embedding-3-small".into());
    let retained = |segment, step: u32, used: u64, calls: &[(u64, u64, u16)], replies: &[ReplyNote]| {
        let usage = Usage { prompt_tokens: used, ..Usage::default() };
        let timing = Timing {
            started_us: 1_000,
            total_us: 10,
            session: 1,
            calls: calls.to_vec(),
            replies: replies.to_vec(),
            ..Timing::default()
        };
        let facts = StepFacts::Retained { generation: 1, turns: 2, usage, timing };
        stored(TaskKey::retain(3, segment), StepNo::retain(step), facts, 1_020)
    };
    let ready = StepFacts::Ready {
        returned: false,
        canary: None,
        holdings: None,
        polls: 1,
        proven: true,
        stats: crate::step::SystemStats::default(),
        timing: Timing { started_us: 1_200, total_us: 5, session: 2, ..Timing::default() },
    };
    let steps = [
        retained(0, 0, 47, &[(2, 900, 200)], &[reply(0, 40, 0)]),
        retained(0, 1, 0, &[], &[]),
        retained(1, 2, 5, &[], &[]),
        stored(TaskKey::ready(3, 0), StepNo::READY, ready, 1_206),
    ];
    let banks = BankSpan::from_steps("b", &steps);
    assert_eq!(banks.iter().map(|bank| bank.task).collect::<Vec<_>>(), [TaskKey::retain(3, 0), TaskKey::ready(3, 0)]);
    let run = RunId("r".into());
    let (parts, spans): (Vec<TaskKey>, Vec<Span>) = bank_spans(&input(&spec, &run, &[], &banks)).into_iter().unzip();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["submit", "retain", "embeddings text-embedding-3-small", "ready"]);
    assert_eq!(parts[0], TaskKey::OVERHEAD);
    assert_eq!((parts[2], spans[2].parent), (parts[1], Some(spans[1].id)));
    assert_eq!(tokens(&spans), [("retain", [7, 0]), ("embeddings text-embedding-3-small", [40, 0])]);
    lie_inside(&spans);
    let linked = |span: &Span| span.parent.is_none() && span.links.iter().any(|link| link.span == spans[0].id);
    assert!(linked(&spans[1]) && linked(&spans[3]), "they end long after the submission: no children of it");
}

/// No span begins before its parent or ends after it.
fn lie_inside(spans: &[Span]) {
    for span in spans {
        let Some(parent) = spans.iter().find(|other| Some(other.id) == span.parent) else { continue };
        assert!(parent.start_us <= span.start_us && span.end_us <= parent.end_us, "{span:?} leaves {parent:?}");
    }
}

/// The tree as people would draw it.
fn drawn(spans: &[Span]) -> String {
    let depth = |span: &Span| {
        let (mut depth, mut at) = (0, span.parent);
        while let Some(parent) = at.and_then(|id| spans.iter().find(|s| s.id == id)) {
            depth += 1;
            at = parent.parent;
        }
        depth
    };
    let begin = spans.first().map_or(0, |root| root.start_us);
    let line = |span: &Span| {
        let (from, to) = ((span.start_us - begin) as f64 / 1e3, (span.end_us - begin) as f64 / 1e3);
        let error = span.error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        format!("{}{} {from}..{to} session {}{error}\n", "  ".repeat(depth(span)), span.name, span.session)
    };
    spans.iter().map(line).collect()
}

#[test]
fn p20_the_tree_of_a_question_is_built_of_its_stored_steps() {
    insta::assert_snapshot!(drawn(&built(&steps(), &[], None)));
}

#[test]
fn attempts_that_stored_nothing_are_shown_with_their_waits() {
    let note = AttemptNote {
        task: QUESTION,
        epoch: 1,
        started_us: 800_000,
        total_us: 50_000,
        queue_wait_us: 10_000,
        session: 1,
        end: AttemptEnd::Retried,
        delay_us: 110_000,
        reason: "timeout: no reply".into(),
    };
    insta::assert_snapshot!(drawn(&built(&steps()[..1], &[note], None)));
}

#[test]
fn steps_that_were_stored_together_have_one_checkpoint() {
    let mut steps = steps();
    steps.truncate(3);
    for step in &mut steps {
        step.stored_us = Some(1_105_000);
    }
    let spans = built(&steps, &[], None);
    let checkpoints: Vec<&Span> = spans.iter().filter(|s| s.class == SpanClass::Checkpoint).collect();
    assert_eq!(checkpoints.len(), 1);
    assert_eq!((checkpoints[0].start_us, checkpoints[0].end_us), (1_103_000, 1_105_000));
}

#[test]
fn a_failure_has_the_place_of_the_step_it_came_to() {
    let timing = Timing { started_us: 1_003_000, total_us: 10, attempts: 7, ..Timing::default() };
    let failure = Failure::transient("timeout", "no reply");
    let failed = StepFacts::Failed { failure, usage: Usage::default(), timing };
    let failed = stored(QUESTION, StepNo::FAILED, failed, 1_004_000);
    for (before, name) in [(0, "recall"), (1, "answer"), (2, "score")] {
        let mut steps = steps();
        steps.truncate(before);
        steps.push(failed.clone());
        let spans = built(&steps, &[], None);
        let ids: BTreeSet<SpanId> = spans.iter().map(|span| span.id).collect();
        assert_eq!(ids.len(), spans.len(), "no id twice");
        let span = spans.iter().find(|s| s.error.is_some()).expect("an error is shown");
        assert_eq!(span.name, name);
    }
}

#[test]
fn the_steps_of_several_recalls_stand_in_the_order_in_which_they_were_made() {
    let mut spec = spec();
    (spec.scenario, spec.recalls.at_most) = (Scenario::Agentic, 3);
    let at = |started_us: i64, facts: &StepFacts| {
        let mut facts = facts.clone();
        if let StepFacts::Recalled { timing, .. } | StepFacts::Answered { timing, .. } = &mut facts {
            timing.started_us = started_us;
        }
        facts
    };
    let timing = |started_us, queue_wait_us| Timing {
        started_us,
        queue_wait_us,
        total_us: 100,
        attempts: 1,
        calls: vec![(0, 50, 200)],
        ..Timing::default()
    };
    let phrased = |timing| StepFacts::Phrased { phase: Phase::Answer, usage: Usage::default(), timing };
    let searched =
        |timing| StepFacts::Searched { generation: 1, hits: 2, effective_k: 2, usage: Usage::default(), timing };
    let [recalled, answered, ..] = &steps()[..] else { panic!("there are four") };
    let mut together = at(1_003_300, &recalled.facts);
    if let StepFacts::Recalled { timing, .. } = &mut together {
        (timing.queue_wait_us, timing.total_us, timing.provider_us) = (0, 0, 0);
    }
    let steps = [
        stored(QUESTION, StepNo::RECALL, together, 1_210_000),
        stored(QUESTION, StepNo::ANSWER, at(1_003_310, &answered.facts), 1_210_000),
        stored(QUESTION, StepNo::phrase(0), phrased(timing(1_003_000, 40)), 1_003_150),
        stored(QUESTION, StepNo::search(0), searched(Timing { calls: vec![], ..timing(1_003_160, 0) }), 1_003_270),
    ];
    let spans = built_for(&spec, &steps, &[], None);
    let names: Vec<&str> = spans.iter().filter(|s| s.class == SpanClass::Step).map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["phrase", "search", "recall", "answer"]);
    let trace = TraceId::of_question(&RunId("r".into()), "b:7");
    let known: BTreeSet<SpanId> = spans.iter().map(|s| s.id).collect();
    // what goes along with a message and with each move of the model
    let sent = [0, 1].map(|number| span_of_call(&trace, QUESTION, StepNo::phrase(number), 0));
    for id in sent.into_iter().chain([span_of_dispatch(&trace, QUESTION)]) {
        assert!(known.contains(&id), "{id} is missing");
    }
    let checkpoints = spans.iter().filter(|s| s.class == SpanClass::Checkpoint).count();
    assert_eq!(checkpoints, 3, "the answer is stored with what was found together");

    let failed = StepFacts::Failed {
        failure: Failure::transient("timeout", "no reply"),
        usage: Usage::default(),
        timing: Timing { started_us: 1_004_000, total_us: 10, attempts: 7, ..Timing::default() },
    };
    // with one move stored it came to the search, with that stored to the next move
    for (moves, name) in [(1, "search"), (2, "phrase")] {
        let mut failing = steps[2..2 + moves].to_vec();
        failing.push(stored(QUESTION, StepNo::FAILED, failed.clone(), 1_004_100));
        let spans = built_for(&spec, &failing, &[], None);
        let span = spans.iter().find(|s| s.error.is_some()).expect("an error is shown");
        assert_eq!(span.name, name);
    }
}

#[test]
fn p20_what_senders_put_into_headers_is_in_the_tree() {
    let trace = TraceId::of_question(&RunId("r".into()), "b:7");
    let spans = built(&steps(), &[], None);
    let known: BTreeSet<SpanId> = spans.iter().map(|s| s.id).collect();
    for id in [
        span_of_dispatch(&trace, QUESTION),
        span_of_dispatch(&trace, JUDGE),
        span_of_step(&trace, QUESTION, StepNo::RECALL),
        span_of_call(&trace, QUESTION, StepNo::RECALL, 0),
        span_of_call(&trace, QUESTION, StepNo::ANSWER, 1),
        span_of_call(&trace, JUDGE, StepNo::JUDGE, 0),
    ] {
        assert!(known.contains(&id), "{id} is missing");
    }
}

#[test]
fn calls_say_where_they_went() {
    let of = |name: &str, port| Some(ServerAddress { name: name.into(), port });
    let mut steps = steps();
    for (step, server) in steps.iter_mut().zip([of("memory.internal", 8888), of("api.openai.com", 443), None, None]) {
        let (StepFacts::Recalled { timing, .. } | StepFacts::Answered { timing, .. }) = &mut step.facts else {
            continue;
        };
        timing.server = server;
    }
    let attribute = |span: &Span, wanted: &str| {
        span.attributes.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone())
    };
    let called = |name: &str| -> Vec<_> {
        let spans = built(&steps, &[], None);
        let calls = spans.iter().filter(|span| span.name == name);
        calls.map(|span| (attribute(span, "server.address"), attribute(span, "server.port"))).collect()
    };
    let at = |name: &str, port: i64| (Some(SpanValue::from(name)), Some(SpanValue::Int(port)));
    assert_eq!(called("search bm25"), [at("memory.internal", 8888)]);
    let unknown = (None, None);
    assert_eq!(called("chat gpt-4o-mini"), [at("api.openai.com", 443), at("api.openai.com", 443), unknown]);
}

#[test]
fn embeddings_and_a_systems_own_answers_are_calls() {
    let mut spec = spec();
    spec.system.settings.insert("vector.model".into(), "text-embedding-3-small".into());
    spec.answerer.provider = "system".into();
    let mut steps = steps();
    if let StepFacts::Recalled { timing, .. } = &mut steps[0].facts {
        timing.calls = vec![(10, 500, 200)];
    }
    if let StepFacts::Answered { timing, .. } = &mut steps[1].facts {
        timing.calls.clear();
    }
    let spans = built_for(&spec, &steps, &[], None);
    let calls = spans.iter().filter(|span| span.class == SpanClass::Call).map(|span| span.name.as_str());
    assert_eq!(calls.collect::<Vec<_>>(), ["embeddings text-embedding-3-small", "answer bm25", "chat gpt-4o-mini"]);
}

#[test]
fn texts_are_in_traces_only_when_the_run_allows_them() {
    let texts = TraceTexts { question: "Who is Zyx?".into(), answer: Some("a cat".into()), gold: None };
    let holds = |spans: &[Span]| format!("{spans:?}").contains("Zyx");
    assert!(!holds(&built(&steps(), &[], None)));
    assert!(holds(&built(&steps(), &[], Some(texts))));
}

proptest! {
    #[test]
    fn any_stored_timings_make_one_tree(
        times in proptest::collection::vec((0_i64..1 << 50, 0_u64..1 << 40, 0_u64..1 << 40, 0_u64..1 << 40), 3),
        at in proptest::option::of(0_i64..1 << 50),
    ) {
        let mut steps = steps();
        for (step, (started, total, queue, dispatch)) in steps.iter_mut().filter(|s| s.facts.timing().is_some()).zip(times) {
            let (StepFacts::Recalled { timing, .. } | StepFacts::Answered { timing, .. } | StepFacts::Judged { timing, .. }) =
                &mut step.facts else { continue };
            (timing.started_us, timing.total_us, timing.queue_wait_us, timing.dispatch_us) = (started, total, queue, dispatch);
            step.stored_us = at;
        }
        let spans = built(&steps, &[], None);
        let ids: BTreeSet<SpanId> = spans.iter().map(|s| s.id).collect();
        prop_assert_eq!(ids.len(), spans.len(), "ids are unique");
        prop_assert_eq!(spans.iter().filter(|s| s.parent.is_none()).count(), 1, "one root");
        for span in &spans {
            prop_assert!(span.start_us <= span.end_us);
            prop_assert!(span.parent.is_none_or(|parent| ids.contains(&parent)), "no orphan");
        }
        lie_inside(&spans);
    }
}
