//! Asks the memory system whether what was retained can be found; holds no slot between two polls (P6, P11).

use bench_proto::step::{Effect, Opens, StepFacts, StepNo, StepRecord, StepText};
use bench_store::{ClaimedTask, StoreError};

use super::{StepClock, TaskEnd, TaskResult};
use crate::{
    context::RunContext,
    engine::{Shared, store_failure},
    guard,
    systems::{BankRef, Readiness},
};

pub(super) async fn run(shared: &Shared, context: &RunContext, task: ClaimedTask) -> TaskResult {
    let clock = StepClock::start();
    let data = shared.banks.get(task.run, task.task.bank()).await.map_err(|e| store_failure(&e))?;
    let row = context.current_row(shared, &data).await?;
    let segment = row.segments.get(task.task.index() as usize);
    let until =
        segment.ok_or_else(|| store_failure(&StoreError::Corrupt(format!("{:?} has no segment", task.task))))?.until;
    let bank = context.bank_ref(&row, &data);
    let system = context.system();
    if system.capabilities().consolidates && !is_consolidated(shared, task).await? {
        consolidate(shared, context, task, &bank, row.generation).await?;
    }
    let proven = match system.readiness(&bank, until).await.map_err(|failure| context.system_end(failure))? {
        Readiness::Proven => true,
        Readiness::Promised => false,
        Readiness::NotYet { poll_after_ms } => {
            let reason = format!("bank {} is not ready yet", row.bank_id);
            return Err(TaskEnd::Park { delay_ms: poll_after_ms, reason, calls: Vec::new() });
        }
    };
    // what consolidation leaves of the items is the system's own business
    if !system.capabilities().consolidates
        && let Some(counted) = system.verify(&bank, until).await.map_err(|failure| context.system_end(failure))?
        && let Some(failure) = guard::lost(&bank, counted)
    {
        return Err(failure.into());
    }
    let record = StepRecord {
        run: task.run,
        task: task.task,
        step: StepNo::READY,
        epoch: task.epoch,
        facts: StepFacts::Ready { polls: 1, proven, timing: clock.timing(&task, clock.elapsed_us()) },
        text: None,
        calls: Vec::new(),
        effect: Effect::Done { opens: Opens::SegmentQuestions },
    };
    shared.writer.submit(vec![record]).await?;
    Ok(())
}

/// Whether an earlier claim has consolidated the segment: it has a checkpoint of its own.
async fn is_consolidated(shared: &Shared, task: ClaimedTask) -> Result<bool, TaskEnd> {
    if task.epoch <= 1 {
        return Ok(false);
    }
    let texts = shared.store.step_texts(task.run, &[task.task], StepNo::CONSOLIDATE).await;
    Ok(!texts.map_err(|e| store_failure(&e))?.is_empty())
}

/// Lets the system make something better of what was retained. Its time and cost are a checkpoint.
async fn consolidate(
    shared: &Shared,
    context: &RunContext,
    task: ClaimedTask,
    bank: &BankRef,
    generation: i64,
) -> Result<(), TaskEnd> {
    context.check_running()?;
    let clock = StepClock::start();
    let done = context.system().consolidate(bank).await.map_err(|failure| context.system_end(failure))?;
    let record = StepRecord {
        run: task.run,
        task: task.task,
        step: StepNo::CONSOLIDATE,
        epoch: task.epoch,
        facts: StepFacts::Retained {
            generation,
            turns: 0,
            usage: done.usage,
            timing: clock.timing(&task, clock.elapsed_us()),
        },
        text: Some(StepText::Recalled { hits: Vec::new() }),
        calls: Vec::new(),
        effect: Effect::Continue,
    };
    shared.writer.submit(vec![record]).await?;
    Ok(())
}
