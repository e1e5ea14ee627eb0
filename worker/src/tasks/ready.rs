//! Asks the memory system whether what was retained can be found; holds no slot between two polls (P6, P11). Where the run
//! wants it, what was retained is consolidated in between, once per segment.

use bench_proto::step::{Effect, Opens, StepFacts, StepNo, Timing};
use bench_store::{ClaimedTask, StoreError};
use bench_systems::{BankRef, Counted, MemorySystem, Readiness, SystemStats};
use tracing::debug;

use super::{canary, store_facts};
use crate::{
    clock::StepClock,
    context::RunContext,
    ending::{TaskEnd, TaskResult},
    guard,
    tools::Tools,
};

/// What became of a bank that another run has filled and counted.
const LOST_SINCE: &str =
    " by another run: the memory system has lost the others since; `retry --errors` fills the bank anew";

/// What is said of one out of an archive that holds less than it was given.
const LOST_ON_THE_WAY: &str = " as its archive says: what the memory system was started on holds less, so that nothing can be asked of it; a run without \
     --banks-from or --reuse-banks fills its own";

pub(super) async fn run(tools: &Tools, context: &RunContext, task: ClaimedTask) -> TaskResult {
    context.check_allowed()?;
    let mut clock = StepClock::start();
    let data = tools.banks.get(task.run, task.task.bank()).await?;
    if canary::is_closing(context, &data.row, task.task.index()) {
        return canary::close(tools, context, &data, task).await;
    }
    let row = context.current_row(tools.store.as_ref(), &data).await?;
    let segment = row.segments.get(task.task.index() as usize);
    let until = segment.ok_or_else(|| StoreError::Corrupt(format!("{:?} has no segment", task.task).into()))?.until;
    let is_last = task.task.index() as usize + 1 == row.segments.len();
    let bank = context.bank_ref(&row, &data);
    let system = context.system();
    let filled = row.filled_before();
    // of a bank that is asked by its name alone, nobody knows what it has to hold
    let expects = context.row().spec.taken_over.bank.is_none();
    let mut known = if expects { is_ready(context, &bank, until).await? } else { Readiness::Promised };
    let consolidates = expects && system.capabilities().consolidates;
    // who filled it has consolidated it
    if consolidates && filled.is_none() && !is_consolidated(tools, task).await? {
        // what is not yet taken in cannot be made better
        consolidate(tools, context, task, &bank, row.generation).await?;
        clock = StepClock::start();
        known = is_ready(context, &bank, until).await?;
    }
    let counted = match expects {
        // what consolidation leaves of the items is the system's own business
        true if consolidates => system.verify(&bank, until).await.unwrap_or_default(),
        true => system.verify(&bank, until).await.map_err(|failure| context.system_end(&bank, failure))?,
        false => None,
    };
    if let Some(mut failure) = counted.filter(|_| !consolidates).and_then(|counted| guard::lost(&bank, counted)) {
        if let Some(filled) = filled {
            failure.message.push_str(if filled.by.is_some() { LOST_SINCE } else { LOST_ON_THE_WAY });
        }
        return Err(failure.into());
    }
    let stats = stats_of(system, &bank, counted).await;
    let timing = Timing { server: system.server(&bank).await, ..clock.timing(&task, clock.elapsed_us()) };
    // its time is nobody's phase
    let canary = if is_last { canary::of_turns(tools, context, &data, &bank).await? } else { None };
    let facts = StepFacts::Ready {
        polls: 1,
        proven: known != Readiness::Promised,
        // a count is looked at, and holds everything here
        returned: known == Readiness::Returned && counted.is_none(),
        stats,
        canary,
        holdings: None,
        timing,
    };
    store_facts(tools, task, StepNo::READY, facts, Effect::Done { opens: Opens::SegmentQuestions }).await
}

/// How it is known that everything can be found; parks the task while it cannot.
async fn is_ready(context: &RunContext, bank: &BankRef, until: u32) -> Result<Readiness, TaskEnd> {
    match context.system().readiness(bank, until).await.map_err(|failure| context.system_end(bank, failure))? {
        known @ (Readiness::Proven | Readiness::Returned | Readiness::Promised) => Ok(known),
        Readiness::NotYet { poll_after_ms } => {
            let reason = format!("bank {} is not ready yet", bank.bank_id);
            Err(TaskEnd::Park { delay_ms: poll_after_ms, reason, calls: Vec::new() })
        }
    }
}

/// What the system says about the bank, and how much it holds where that was counted.
async fn stats_of(system: &dyn MemorySystem, bank: &BankRef, counted: Option<Counted>) -> SystemStats {
    let mut stats = system.statistics(bank).await.unwrap_or_else(|failure| {
        debug!("bank {}: no statistics: {failure}", bank.bank_id);
        SystemStats::default()
    });
    if let Some(counted) = counted {
        stats.numbers.insert("items".to_owned(), counted.found as f64);
    }
    stats
}

/// Whether an earlier claim has consolidated the segment: it has a checkpoint of its own.
async fn is_consolidated(tools: &Tools, task: ClaimedTask) -> Result<bool, TaskEnd> {
    if task.epoch <= 1 {
        return Ok(false);
    }
    let steps = tools.store.bank_steps(task.run, task.task.bank()).await?;
    Ok(steps.iter().any(|stored| stored.task == task.task && stored.step == StepNo::CONSOLIDATE))
}

/// Lets the system make something better of what was retained. Its time and cost are a checkpoint.
async fn consolidate(
    tools: &Tools,
    context: &RunContext,
    task: ClaimedTask,
    bank: &BankRef,
    generation: i64,
) -> Result<(), TaskEnd> {
    context.check_running()?;
    let clock = StepClock::start();
    let done = context.system().consolidate(bank).await.map_err(|failure| context.system_end(bank, failure))?;
    let facts = StepFacts::Consolidated {
        generation,
        usage: done.usage,
        // the waits before this claim are those of the step that ends the task
        timing: Timing { queue_wait_us: 0, dispatch_us: 0, ..clock.timing(&task, clock.elapsed_us()) },
    };
    store_facts(tools, task, StepNo::CONSOLIDATE, facts, Effect::Continue).await
}
