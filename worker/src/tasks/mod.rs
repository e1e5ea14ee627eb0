//! The four kinds of task, one file each (P6), and the latency probe of a run (P43).
//!
//! In: a claimed task, its run's context and what the store knows of it ([`prepare`]). Out: steps at the writer, or one of the other
//! ways to end ([`TaskEnd`]). Start with `question`; `retain` fills banks, `ready` proves them, sends each `canary` and ends with a `listing`, `judge`
//! casts one vote, `probe` measures latency.

mod canary;
mod judge;
mod listing;
mod probe;
mod question;
mod ready;
mod retain;

use std::{collections::HashMap, time::Instant};

use bench_proto::{
    failure::Failure,
    ids::{RunNo, TaskKey, TaskKind},
    step::{Effect, SHORTEST_WAIT_US, StepFacts, StepNo, StepRecord, StepText, Timing},
};
use bench_store::{ClaimedTask, StoreError};
use bench_systems::{BankRef, Prepared, RecallQuery};

use crate::{
    context::RunContext,
    ending::{TaskEnd, TaskResult},
    tools::Tools,
};

/// What the store already knows about a task.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskInput {
    texts: Vec<(TaskKey, StepNo, StepText)>,
}

impl TaskInput {
    /// Text of a stored step of `task`.
    fn text(&self, task: TaskKey, step: StepNo) -> Option<&StepText> {
        self.texts_of(task).find(|(s, _)| *s == step).map(|(_, text)| text)
    }

    /// Texts of all stored steps of `task`.
    fn texts_of(&self, task: TaskKey) -> impl Iterator<Item = (StepNo, &StepText)> {
        self.texts.iter().filter(move |(t, ..)| *t == task).map(|(_, step, text)| (*step, text))
    }
}

/// Stores a step that has neither a text nor calls.
async fn store_facts(tools: &Tools, task: ClaimedTask, step: StepNo, facts: StepFacts, effect: Effect) -> TaskResult {
    let ClaimedTask { run, task, epoch, .. } = task;
    let record = StepRecord { run, task, step, epoch, facts, text: None, calls: Vec::new(), effect };
    tools.writer.submit(vec![record]).await?;
    Ok(())
}

/// Reads what the tasks of a claim need from the store, in one round trip per run and kind and not one per task: the
/// answer for judges, the earlier steps for questions and votes that were claimed before.
pub(crate) async fn prepare(
    tools: &Tools,
    claimed: Vec<ClaimedTask>,
) -> Vec<(ClaimedTask, Result<TaskInput, Failure>)> {
    let mut wanted: HashMap<(RunNo, TaskKind), Wanted> = HashMap::new();
    for task in claimed.iter().filter(|task| needs_texts(task)) {
        let wanted = wanted.entry((task.run, task.task.kind())).or_default();
        wanted.questions.push(task.task.question_of());
        if task.epoch > 1 {
            wanted.begun.push(task.task);
        }
    }
    let mut inputs: HashMap<(RunNo, TaskKind, TaskKey), TaskInput> = HashMap::new();
    let mut failed: HashMap<(RunNo, TaskKind), Failure> = HashMap::new();
    for ((run, kind), wanted) in wanted {
        match read_texts(tools, run, kind, &wanted).await {
            Ok(texts) => {
                for (task, step, text) in texts {
                    inputs.entry((run, kind, task.question_of())).or_default().texts.push((task, step, text));
                }
            }
            Err(error) => drop(failed.insert((run, kind), Failure::from(error))),
        }
    }
    // several votes may share one question, so inputs are copied out
    let input_of = |task: &ClaimedTask| {
        let (run, kind) = (task.run, task.task.kind());
        match failed.get(&(run, kind)) {
            Some(failure) => Err(failure.clone()),
            None => Ok(inputs.get(&(run, kind, task.task.question_of())).cloned().unwrap_or_default()),
        }
    };
    let mut prepared = Vec::with_capacity(claimed.len());
    for task in claimed {
        let input = if needs_texts(&task) { input_of(&task) } else { Ok(TaskInput::default()) };
        prepared.push((task, input));
    }
    prepared
}

fn needs_texts(task: &ClaimedTask) -> bool {
    match task.task.kind() {
        TaskKind::Judge => true,
        TaskKind::Question => task.epoch > 1 && task.task != TaskKey::PROBE,
        TaskKind::Retain | TaskKind::Ready => false,
    }
}

/// What is read for the tasks of one run and kind.
#[derive(Default)]
struct Wanted {
    /// The questions that they belong to.
    questions: Vec<TaskKey>,
    /// Tasks of the claim that had been claimed before: steps of theirs may be stored.
    begun: Vec<TaskKey>,
}

async fn read_texts(
    tools: &Tools,
    run: RunNo,
    kind: TaskKind,
    Wanted { questions, begun }: &Wanted,
) -> Result<Vec<(TaskKey, StepNo, StepText)>, StoreError> {
    match kind {
        TaskKind::Judge => tools.store.judging_texts(run, questions, begun).await,
        _ => tools.store.question_texts(run, questions).await,
    }
}

/// Carries out the steps of a claimed task of a run; `input` is what [`prepare`] has read for it.
pub(crate) async fn run(tools: &Tools, context: &RunContext, task: ClaimedTask, input: &TaskInput) -> TaskResult {
    let steps = async {
        match task.task.kind() {
            TaskKind::Retain => retain::run(tools, context, task).await,
            TaskKind::Ready => ready::run(tools, context, task).await,
            TaskKind::Question if task.task == TaskKey::PROBE => probe::run(tools, context, task).await,
            TaskKind::Question => question::run(tools, context, task, input).await,
            TaskKind::Judge => judge::run(tools, context, task, input).await,
        }
    };
    tokio::select! {
        () = context.dropped() => {
            if task.task.kind() == TaskKind::Retain {
                retain::leave(tools, context, task, None).await;
            }
            Err(TaskEnd::hand_back("dropped"))
        }
        ended = steps => ended,
    }
}

/// Makes sure of what an operation of the memory system rests on, and notes how long building it took, or waiting for somebody
/// else who built it (P43).
pub(crate) async fn prepared(
    context: &RunContext,
    bank: &BankRef,
    query: Option<&RecallQuery<'_>>,
    timing: &mut Timing,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let how = context.system().prepare(bank, query).await?;
    let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    match how {
        Prepared::Built => timing.build_us += took_us,
        // shorter ones are no wait for a build: two looked at the same moment
        Prepared::Waited if took_us >= SHORTEST_WAIT_US => timing.build_wait_us += took_us,
        Prepared::Waited | Prepared::Ready => {}
    }
    Ok(())
}
