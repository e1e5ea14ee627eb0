//! Asks the memory system whether what was retained can be found; holds no slot between two polls (P6, P11).

use bench_proto::step::{Effect, Opens, StepFacts, StepNo, StepRecord};
use bench_store::{ClaimedTask, StoreError};

use super::{StepClock, TaskEnd, TaskResult};
use crate::{
    context::RunContext,
    engine::{Shared, store_failure},
    systems::Readiness,
};

pub(super) async fn run(shared: &Shared, context: &RunContext, task: ClaimedTask) -> TaskResult {
    let clock = StepClock::start();
    let data = shared.banks.get(task.run, task.task.bank()).await.map_err(|e| store_failure(&e))?;
    let row = context.current_row(shared, &data).await?;
    let segment = row.segments.get(task.task.index() as usize);
    let until =
        segment.ok_or_else(|| store_failure(&StoreError::Corrupt(format!("{:?} has no segment", task.task))))?.until;
    let bank = context.bank_ref(&row, &data);
    let proven = match context.system().readiness(&bank, until).await? {
        Readiness::Proven => true,
        Readiness::Promised => false,
        Readiness::NotYet { poll_after_ms } => {
            let reason = format!("bank {} is not ready yet", row.bank_id);
            return Err(TaskEnd::Park { delay_ms: poll_after_ms, reason, calls: Vec::new() });
        }
    };
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
