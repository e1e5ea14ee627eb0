//! `trace RUN [QUESTION]`: where a question's time went, from the stored timings alone.

use bench_proto::{facts::QuestionFacts, ids::trace_id, trace::Span};
use bench_store::{RunRow, Traces};
use bench_worker::traces::{self, QuestionTrace, Subject};
use serde_json::{Value, json};

use crate::{
    app::App,
    cli::TraceArgs,
    display::waterfall::{self, Slow},
    exit::{CliError, CliResult, Exit},
    out,
    standing::find_run,
};

/// Questions of the overview.
const SLOWEST: u32 = 10;

/// Prints a question's time line from its stored timings, or the slowest questions of a run.
pub(super) async fn run(app: &App, args: &TraceArgs) -> CliResult {
    let store = app.open_store().await?;
    let store = store.as_ref();
    let run = find_run(store, &args.run).await?;
    let subject = match (&args.question, args.slowest) {
        (Some(wanted), _) => traces::find_subject(store, &run, wanted).await?.ok_or_else(|| {
            CliError::usage(format!(
                "run {} has no question '{wanted}'; `bench-coord trace {}` shows the slowest, questions.jsonl holds all ids",
                run.run_id, run.run_id
            ))
        })?,
        (None, true) => match store.slowest(run.run_no, 1).await?.first() {
            Some(facts) => Subject::from_facts(facts),
            None => return Err(CliError::usage(format!("no question of run {} has ended yet", run.run_id))),
        },
        (None, false) => return overview(store, &run, args.json).await,
    };
    let trace = traces::gather(store, &run, subject).await?;
    let link =
        trace.facts.as_ref().and_then(|facts| facts.kept).and_then(|_| run.spec.limits.trace.link(&trace.trace_id));
    if args.json {
        out::json(&as_json(&trace, &run, link.as_deref()));
    } else {
        out::painted(&waterfall::draw(&trace, &run.run_id.0, link.as_deref(), out::view()));
    }
    Ok(Exit::Done)
}

async fn overview(store: &dyn Traces, run: &RunRow, json: bool) -> CliResult {
    let slowest = store.slowest(run.run_no, SLOWEST).await?;
    if json {
        let rows: Vec<Value> = slowest.iter().map(|facts| slow_json(facts, run)).collect();
        out::json(&rows);
        return Ok(Exit::Done);
    }
    if slowest.is_empty() {
        out::note(&format!("no question of run {} has ended yet", run.run_id));
        return Ok(Exit::Done);
    }
    let ms = |us: Option<u64>| us.unwrap_or(0) as f64 / 1e3;
    let rows: Vec<Slow> = slowest
        .iter()
        .map(|facts| Slow {
            question_id: facts.question_id.clone(),
            ms: facts.times.question_us as f64 / 1e3,
            recall_ms: ms(facts.times.recall_us),
            answer_ms: ms(facts.times.answer_us),
            judge_ms: ms(facts.times.judge_us),
            wait_ms: facts.times.rate_wait_us as f64 / 1e3,
            kept: facts.kept.is_some(),
        })
        .collect();
    out::result(&format!("slowest questions of run {}", run.run_id));
    out::result(&waterfall::overview(&rows, out::view()));
    out::note(&format!("`bench-coord trace {} QUESTION` shows one of them", run.run_id));
    Ok(Exit::Done)
}

fn slow_json(facts: &QuestionFacts, run: &RunRow) -> Value {
    let trace_id = trace_id(&run.run_id, &facts.question_id);
    let ms = |us: Option<u64>| us.map(|us| us as f64 / 1e3);
    let link = facts.kept.and_then(|_| run.spec.limits.trace.link(&trace_id));
    json!({
        "question_id": facts.question_id,
        "ms": facts.times.question_us as f64 / 1e3,
        "phase_ms": {
            "recall": ms(facts.times.recall_us),
            "answer": ms(facts.times.answer_us),
            "judge": ms(facts.times.judge_us),
            "queue_wait": facts.times.queue_wait_us as f64 / 1e3,
            "rate_wait": facts.times.rate_wait_us as f64 / 1e3,
        },
        "outcome": facts.outcome.name(),
        "trace_id": trace_id,
        "kept": facts.kept.map(|kept| kept.name()),
        "trace_url": link,
    })
}

fn as_json(trace: &QuestionTrace, run: &RunRow, link: Option<&str>) -> Value {
    let start_us = trace.spans.first().map_or(0, |root| root.start_us);
    let shown = |span: &Span| span_json(trace, span, start_us);
    json!({
        "run": run.run_id,
        "question_id": trace.subject.question_id,
        "bank_id": trace.subject.bank_id,
        "category": trace.subject.category,
        "trace_id": trace.trace_id,
        "trace_url": link,
        "outcome": trace.facts.as_ref().map(|facts| facts.outcome.name()),
        "kept": trace.facts.as_ref().and_then(|facts| facts.kept).map(|kept| kept.name()),
        "attempts": trace.facts.as_ref().map(|facts| facts.attempts),
        "spans": trace.spans.iter().map(shown).collect::<Vec<_>>(),
        "linked": trace.linked.iter().map(|(_, span)| shown(span)).collect::<Vec<_>>(),
    })
}

fn span_json(trace: &QuestionTrace, span: &Span, start_us: i64) -> Value {
    let attributes: serde_json::Map<String, Value> =
        span.attributes.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    json!({
        "name": span.name,
        "class": span.class,
        "kind": span.kind,
        "trace_id": span.trace.to_string(),
        "span_id": span.id.to_string(),
        "parent_span_id": span.parent.map(|id| id.to_string()),
        "start_us": span.start_us,
        "offset_ms": (span.start_us - start_us) as f64 / 1e3,
        "duration_ms": (span.end_us - span.start_us) as f64 / 1e3,
        "worker": trace.workers.get(&span.session),
        "error": span.error,
        "attributes": attributes,
        "links": span.links.iter().map(|link| json!({
            "trace_id": link.trace.to_string(), "span_id": link.span.to_string(),
        })).collect::<Vec<_>>(),
    })
}
