//! `submit --fork RUN --from PHASE`, `rejudge`, `rescore`: a new run that takes over what another has stored.
//!
//! Everything before the phase is copied, so that no call is made for it; what was paid for it stands in the new report as
//! saved. The new run belongs to the old one's lineage: calls that it makes all the same are found in the call store.

use std::collections::HashMap;

use bench_grading::prompts;
use bench_proto::{
    call::{Phase, Usage},
    facts::QuestionFacts,
    failure::Failure,
    ids::{RunId, TaskKey},
    money::PicoUsd,
    served::ServedNote,
    spec::RunSpec,
    step::{StepFacts, StepNo, StepText, Timing},
};
use bench_settings::ModelRole;
use bench_store::{AdoptedQuestion, BankRow, Creation, NewBank, NewRun, Right, RunRow, SERVED_EVENT, Store};
use bench_worker::banks::BankData;

use super::{
    estimate::Counting,
    fork_estimate, fork_source,
    submit::{self, Ending},
};
use crate::{
    app::{App, Place},
    cli::{ForkFrom, SubmitArgs},
    executor::RunExecutor,
    exit::{CliError, CliResult},
    out,
    planning::{self, DEFAULT_CAP},
    reach::look_first,
    results,
    runs::{check_whole, current_user, find_run},
};

/// Kind of the run event that says from which run and phase a run was forked: `<phase> <run id>`.
const FORK_EVENT: &str = "forked";

/// Questions whose texts are read at once.
pub(super) const TEXTS_AT_ONCE: usize = 256;
/// Provider of answerers that are the memory system itself.
const ANSWERS_ITSELF: &str = "system";

/// Runs the verb.
pub(super) async fn run(app: &App, args: &SubmitArgs, source: &str, from: ForkFrom) -> CliResult {
    let store = app.open_store().await?;
    let source = find_run(store.as_ref(), source).await?;
    fork_source::check(store.as_ref(), &source, from).await?;
    if from == ForkFrom::Recall {
        check_whole(store.as_ref(), &source).await?;
        app.check_allowed(store.as_ref(), &source).await?;
    }
    let spec = forked_spec(app, args, &source.spec, from)?;
    let counting = if args.dry_run { Counting::Exact } else { Counting::Rough };
    let estimate = fork_estimate::of(app, store.as_ref(), &source, &spec, from, counting).await?;
    if args.dry_run {
        return estimate.print(args.output.json);
    }
    store.may(Right::Results).await?;
    submit::check_detach(args.detach, app.place()?)?;
    app.check_queue().await?;
    let run_id = args.naming.id()?;
    let run_id = run_id.unwrap_or_else(RunId::fresh);
    let folder = args.output.output_dir.clone().unwrap_or_else(|| app.home().join("runs").join(&run_id.0));
    results::check_writable(&folder)?;
    if let Some(existing) = store.run_by_id(&run_id).await? {
        return submit::attach(app, store, &spec, existing, args).await;
    }
    if app.place()? == Place::Local {
        look_first(app, &spec, from != ForkFrom::Judge).await?;
    }
    submit::confirm(&estimate, &spec, args).await?;
    let executor = RunExecutor::of(app, &run_id)?;
    let judges: Vec<String> = spec.judges.iter().map(|judge| judge.display()).collect();
    let graders = if judges.is_empty() {
        spec.scorers.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ")
    } else {
        judges.join(", ")
    };
    out::note(&format!(
        "run {run_id}: {} questions of run {} from {} on, graded by {graders}\n{}",
        spec.sample.n,
        source.run_id,
        phase(from),
        estimate.line()
    ));
    let new_run = NewRun {
        run_id: run_id.clone(),
        name: args.naming.name.clone(),
        tags: args.naming.tag.clone(),
        user: current_user(),
        spec,
        lineage: source.lineage.clone(),
        control_of: None,
        domain: executor.domain().to_owned(),
        imported: false,
        code_version: bench_worker::version::VERSION.to_owned(),
        group: None,
        waits: false,
    };
    let interrupts = app.interrupts();
    let run_no = match store.create_or_find(&new_run, &[]).await? {
        Creation::Made(run_no) => run_no,
        Creation::Found(existing) => {
            drop(executor);
            return submit::attach(app, store, &new_run.spec, *existing, args).await;
        }
    };
    store.add_event(run_no, FORK_EVENT, &format!("{} {}", phase(from), source.run_id)).await?;
    let run = store.run(run_no).await?;
    adopt(store.as_ref(), &run, &source, from).await?;
    if args.detach {
        return submit::detached(&run, args.output.json);
    }
    let end = executor.execute(app, &store, &run, None, &args.output.watching(&interrupts)).await?;
    let ending = Ending {
        json: args.output.json,
        output_dir: args.output.output_dir.as_deref(),
        folder: &folder,
        floor: args.output.floor,
    };
    submit::conclude(app, store.as_ref(), &run, end, &ending).await
}

pub(super) const fn phase(from: ForkFrom) -> &'static str {
    match from {
        ForkFrom::Recall => "recall",
        ForkFrom::Answer => "answer",
        ForkFrom::Judge => "judge",
    }
}

/// The source's settings with what flags change; a flag for a phase that is taken over is refused.
fn forked_spec(app: &App, args: &SubmitArgs, source: &RunSpec, from: ForkFrom) -> Result<RunSpec, CliError> {
    let refused =
        |flag: &str| CliError::usage(format!("{flag} cannot change what a fork --from {} takes over", phase(from)));
    let prices = planning::user_prices(app, args)?;
    let priced = planning::limits(app, prices.clone())?;
    let mut spec = source.clone();
    fork_source::check_same_questions(args, source, from)?;
    if let Some(top_k) = args.top_k.filter(|top_k| *top_k != source.system.top_k) {
        if from != ForkFrom::Recall {
            return Err(refused("--top-k"));
        }
        spec.system.top_k = top_k;
    }
    if let Some(answerer) = &args.answerer {
        if from == ForkFrom::Judge {
            return Err(refused("--answerer"));
        }
        spec.answerer = planning::model_spec(app, answerer, ModelRole::Answerer, args, &priced, will_call(app, args)?)?;
        planning::add_prompts(&mut spec.answerer, ModelRole::Answerer, &spec.dataset.profile)?;
    }
    if from != ForkFrom::Judge && spec.answerer.provider == ANSWERS_ITSELF {
        return Err(CliError::usage(format!(
            "a fork --from {} answers from what is recalled, and {} would answer by itself: name another with --answerer",
            phase(from),
            source.system.name
        )));
    }
    if !args.judge.is_empty() {
        let judge =
            |name: &String| planning::model_spec(app, name, ModelRole::Judge, args, &priced, will_call(app, args)?);
        spec.judges = args.judge.iter().map(judge).collect::<Result<_, _>>()?;
        let profile = &spec.dataset.profile;
        prompts::check(profile, spec.sample.by_category.keys().map(String::as_str), true)?;
        spec.judges.iter_mut().try_for_each(|judge| planning::add_prompts(judge, ModelRole::Judge, profile))?;
        spec.votes = args.votes.unwrap_or(1);
        spec.headline = None;
    } else if let Some(votes) = args.votes {
        spec.votes = votes;
    }
    if !args.scorer.is_empty() {
        let named: Vec<&str> = args.scorer.iter().map(String::as_str).collect();
        let before: Vec<String> = source.scorers.iter().map(|scorer| scorer.name.clone()).collect();
        spec.scorers = planning::scorer_specs(&named, &before)?;
        spec.headline = None;
        if args.judge.is_empty() {
            // scoring again makes no calls: judgements stay with the run that paid for them
            spec.judges.clear();
        }
    }
    planning::check_grading(spec.judges.len(), spec.votes)?;
    let before = std::mem::take(&mut spec.limits);
    spec.limits = planning::limits(app, before.prices.into_iter().chain(prices).collect())?;
    // models that stay keep the prices of their file
    let lines = std::mem::take(&mut spec.limits.price_lines);
    spec.limits.price_lines = before.price_lines.into_iter().chain(lines).collect();
    if let Some(pool) = &args.pool {
        spec.limits.pool.clone_from(pool);
    }
    if from == ForkFrom::Recall {
        spec.limits.latency_probe = planning::latency_probe(app)?;
    }
    let pays = !spec.judges.is_empty() || from != ForkFrom::Judge;
    if spec.limits.max_cost.is_none() && pays && planning::is_paid(&spec) {
        spec.limits.max_cost = Some(DEFAULT_CAP);
    }
    Ok(spec)
}

/// In a cluster the keys are with the workers, and an estimate needs none.
fn will_call(app: &App, args: &SubmitArgs) -> Result<bool, CliError> {
    Ok(!args.dry_run && app.place()? == Place::Local)
}

/// Takes over again what a fork that was killed while it was being made has not yet; false when the run is no fork.
///
/// # Errors
/// Exit 2 when its source is gone.
pub(crate) async fn adopt_again(store: &dyn Store, run: &RunRow) -> Result<bool, CliError> {
    let events = store.events(run.run_no).await?;
    let Some(said) = events.iter().find(|event| event.kind == FORK_EVENT) else { return Ok(false) };
    let (word, id) = said.message.split_once(' ').unwrap_or_default();
    let from = match word {
        "recall" => ForkFrom::Recall,
        "answer" => ForkFrom::Answer,
        _ => ForkFrom::Judge,
    };
    let source = store.run_by_id(&RunId(id.to_owned())).await?;
    let source =
        source.ok_or_else(|| CliError::usage(format!("run {id}, from which {} was forked, is gone", run.run_id)))?;
    adopt(store, run, &source, from).await?;
    Ok(true)
}

/// Copies what is known of the models behind the steps that are taken over. Idempotent.
async fn adopt_notes(store: &dyn Store, run: &RunRow, source: &RunRow, from: ForkFrom) -> Result<(), CliError> {
    let there = store.events(run.run_no).await?;
    for event in store.events(source.run_no).await?.into_iter().filter(|event| event.kind == SERVED_EVENT) {
        let Ok(note) = serde_json::from_str::<ServedNote>(&event.message) else { continue };
        let is_taken_over = match from {
            ForkFrom::Recall => note.phase == Phase::Retain,
            ForkFrom::Answer => matches!(note.phase, Phase::Retain | Phase::Recall),
            ForkFrom::Judge => note.phase != Phase::Judge,
        };
        if is_taken_over && !there.iter().any(|known| (&known.kind, &known.message) == (&event.kind, &event.message)) {
            store.add_event(run.run_no, SERVED_EVENT, &event.message).await?;
        }
    }
    Ok(())
}

/// Copies banks and steps, bank by bank. Idempotent.
async fn adopt(store: &dyn Store, run: &RunRow, source: &RunRow, from: ForkFrom) -> Result<(), CliError> {
    adopt_notes(store, run, source, from).await?;
    for row in store.banks(source.run_no, None).await? {
        let bank_no = row.bank_no;
        let bank = NewBank {
            bank_no,
            bank_id: row.bank_id.clone(),
            content: row.content,
            questions: row.questions,
            gold: row.gold,
            segments: row.segments.clone(),
        };
        let questions = adopted(store, source, row, from).await?;
        store.adopt(run.run_no, &[bank], &questions).await?;
    }
    store.finish_plan(run.run_no).await?;
    Ok(())
}

/// The questions of a bank with what is taken over of each.
async fn adopted(
    store: &dyn Store,
    source: &RunRow,
    row: BankRow,
    from: ForkFrom,
) -> Result<Vec<AdoptedQuestion>, CliError> {
    let bank_no = row.bank_no;
    let bank = BankData::read(store, row).await?;
    let mut facts: HashMap<TaskKey, QuestionFacts> = results::facts_of_bank(store, source.run_no, &bank).await?;
    let keys: Vec<TaskKey> = bank.questions().iter().map(|q| TaskKey::question(bank_no, q.index)).collect();
    let mut texts: HashMap<TaskKey, Vec<(StepNo, StepText)>> = HashMap::new();
    for part in keys.chunks(TEXTS_AT_ONCE) {
        for (task, step, text) in store.question_texts(source.run_no, part).await? {
            texts.entry(task).or_default().push((step, text));
        }
    }
    let adopt = |task: TaskKey| {
        let stored = texts.remove(&task).unwrap_or_default();
        AdoptedQuestion { task, steps: steps(facts.remove(&task), stored, from) }
    };
    Ok(keys.into_iter().map(adopt).collect())
}

/// The steps of a question up to the phase, made again from its facts and texts.
fn steps(
    facts: Option<QuestionFacts>,
    texts: Vec<(StepNo, StepText)>,
    from: ForkFrom,
) -> Vec<(StepNo, StepFacts, Option<StepText>)> {
    let needed = match from {
        ForkFrom::Recall => return Vec::new(),
        ForkFrom::Answer => StepNo::RECALL,
        ForkFrom::Judge => StepNo::ANSWER,
    };
    let Some(facts) = facts else {
        return vec![failed(Failure::permanent("not_run", "the run that this one was forked from did not run it"))];
    };
    if texts.iter().all(|(step, _)| *step != needed) {
        let gone = || Failure::permanent("no_answer", "the run that this one was forked from holds no answer to it");
        return vec![failed(facts.failure.clone().unwrap_or_else(gone))];
    }
    texts
        .into_iter()
        .filter(|(step, _)| *step <= needed)
        .filter_map(|(step, text)| Some((step, step_facts(&facts, step, &text)?, Some(text))))
        .collect()
}

fn step_facts(facts: &QuestionFacts, step: StepNo, text: &StepText) -> Option<StepFacts> {
    let timing = |us: Option<u64>| Timing {
        started_us: facts.times.started_us,
        total_us: us.unwrap_or(0),
        attempts: 1,
        ..Timing::default()
    };
    match text {
        StepText::Recalled { hits } => Some(StepFacts::Recalled {
            generation: 1,
            hits: u32::try_from(hits.len()).unwrap_or(u32::MAX),
            effective_k: u32::try_from(hits.len()).unwrap_or(u32::MAX),
            context_bytes: facts.context_bytes.unwrap_or_else(|| {
                if facts.empty_context { 0 } else { hits.iter().map(|h| h.text.len() as u64).sum::<u64>().max(1) }
            }),
            top1_score: facts.top1_score,
            retrieval: facts.retrieval.clone().unwrap_or_default(),
            usage: saved(&facts.usage.recall),
            timing: timing(facts.times.recall_us),
        }),
        StepText::Answered { .. } => Some(StepFacts::Answered {
            finish: "stop".to_owned(),
            usage: saved(&facts.usage.answer),
            timing: timing(facts.times.answer_us),
        }),
        StepText::Judged { .. } => {
            debug_assert!(step > StepNo::ANSWER);
            None
        }
    }
}

fn failed(failure: Failure) -> (StepNo, StepFacts, Option<StepText>) {
    (StepNo::FAILED, StepFacts::Failed { failure, usage: Usage::default(), timing: Timing::default() }, None)
}

/// Usage of another run, as if served from the call store: nothing is paid for it here.
fn saved(usage: &Usage) -> Usage {
    Usage {
        calls: 0,
        cached_calls: usage.calls + usage.cached_calls,
        retries: 0,
        rate_limited: 0,
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
        cost: PicoUsd(0),
        saved: usage.cost.saturating_add(usage.saved),
    }
}
