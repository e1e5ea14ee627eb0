//! Retains one segment of a bank: one checkpoint per stream entry, in order, from the stored position on. Those of a batch are
//! stored while the next one is retained: who goes on after a loss may find as many more entries in the system as two batches have.

use bench_proto::{
    canary::is_fact,
    dataset::StreamEntry,
    failure::{
        Failure, FailureClass,
        code::{CANNOT_SERVE, MEMORIES_LOST, SYSTEM_UNAVAILABLE},
    },
    step::{Effect, Opens, StepFacts, StepNo, StepRecord, Timing},
};
use bench_store::{BankRow, ClaimedTask, StoreError};
use bench_systems::{BankRef, RetainReceipt, adapter::BROKEN};
use tracing::warn;

use super::{canary, prepared};
use crate::{
    clock::StepClock,
    context::{At, RunContext},
    ending::{BEGUN_TOO_OFTEN, LEFT_BY_THE_NEXT, TaskEnd, TaskResult, may_retry},
    tools::Tools,
};

/// Checkpoints per submission: a bound on the memory of one commit.
const CHECKPOINTS_PER_SUBMISSION: usize = 64;
/// Generations that failures may cost a bank whose system cannot repeat a retain, before it is given up. Those that lost
/// workers cost are counted with the losses.
const MOST_GENERATIONS: i64 = 8;

pub(super) async fn run(tools: &Tools, context: &RunContext, task: ClaimedTask) -> TaskResult {
    context.check_allowed()?;
    let bank_no = task.task.bank();
    let data = tools.banks.get(task.run, bank_no).await?;
    let mut row = fresh_row(tools, task, bank_no).await?;
    let until = row.segments.get(task.task.index() as usize).map(|segment| segment.until);
    if canary::is_closing(context, &row, task.task.index()) && until.is_some_and(|until| row.position >= until) {
        // nothing is written here, so nothing can be in doubt
        return finish_empty_segment(tools, task, &row).await;
    }
    if row.filled_before().is_some() {
        return take_as_filled(tools, task, &row).await;
    }
    if is_unsure(context, task, &row) {
        row = begin_anew(tools, task, bank_no).await?;
    }
    let segment = row.segments.get(task.task.index() as usize).ok_or_else(|| missing_segment(&task))?;
    let system = context.system();
    let mut bank = context.bank_ref(&row, &data);
    // a server that has to be started first is no part of what retaining takes
    let mut built = Timing::default();
    prepared(context, &bank, None, &mut built).await.map_err(|failure| context.system_end(&bank, failure))?;
    if bank.handle.is_none() {
        let handle = system.open_bank(&bank).await.map_err(|failure| context.system_end(&bank, failure))?;
        let stored = tools.store.set_bank_handle(task.run, bank_no, row.generation, &handle).await;
        let stored = stored?;
        if let Some(journal) = &tools.journal {
            journal.handle(task.run, bank_no, row.generation, stored.clone());
        }
        bank.handle = Some(stored);
    }
    let filling = Filling { tools, context, task, bank: &bank, row: &row, end: segment.until };
    let mut position = row.position;
    let mut retained = Vec::new();
    while position < segment.until {
        // a worker that drains hands a bank back between two sessions (P26): with all that is stored in it
        if let Err(end) = context.check_running() {
            store(tools, retained).await?;
            return Err(end);
        }
        let rest = data.content.entries.get(position as usize..segment.until as usize);
        let rest = rest.ok_or_else(|| missing_segment(&task))?;
        let batch =
            Batch { from: position, entries: &rest[..system.together(rest)], built: std::mem::take(&mut built) };
        retained = filling.retain(batch, std::mem::take(&mut retained)).await?;
        position += retained.len() as u32;
    }
    store(tools, retained).await?;
    if row.position >= segment.until {
        finish_empty_segment(tools, task, &row).await?;
    }
    Ok(())
}

/// Stores the steps of retained entries: a few in a commit, in their order.
async fn store(tools: &Tools, retained: Vec<StepRecord>) -> TaskResult {
    let mut rest = retained.into_iter().peekable();
    while rest.peek().is_some() {
        tools.writer.submit(rest.by_ref().take(CHECKPOINTS_PER_SUBMISSION).collect()).await?;
    }
    Ok(())
}

/// Entries that are retained together.
struct Batch<'a> {
    from: u32,
    entries: &'a [StreamEntry],
    /// What had to be built before the first of them.
    built: Timing,
}

/// A bank that a task fills.
struct Filling<'a> {
    tools: &'a Tools,
    context: &'a RunContext,
    task: ClaimedTask,
    bank: &'a BankRef,
    row: &'a BankRow,
    /// Where the segment ends.
    end: u32,
}

impl Filling<'_> {
    /// Retains a batch, or the first entries of it, while the steps of the one before it are stored; its own are returned.
    async fn retain(&self, batch: Batch<'_>, before: Vec<StepRecord>) -> Result<Vec<StepRecord>, TaskEnd> {
        let Self { tools, context, task, bank, row, end } = *self;
        let Batch { from, entries, built } = batch;
        let clock = StepClock::start();
        let entered = context.enter(At::System);
        let payer = context.payer(task, None);
        let retaining = async {
            let retained = context.system().retain(bank, entries, payer.step()).await;
            (retained, clock.timing(&task, clock.elapsed_us()))
        };
        let ((retained, mut spent), stored) = tokio::join!(retaining, store(tools, before));
        spent.in_flight = entered.in_flight;
        drop(entered);
        let retained = if stored.is_ok() { self.unless_in_doubt(retained).await } else { retained };
        let settled = context.settle(payer, retained);
        stored?;
        let (mut receipt, mut paid) = settled?;
        receipt.usage += paid.usage;
        let entries = &entries[..entries.len() - (receipt.left as usize).min(entries.len() - 1)];
        let facts = context.row().spec.facts_in(row.bank_no, &row.bank_id);
        spent.server = context.server(bank, paid.timing.server.take()).await;
        let shares = shares(&spent, receipt.build_us, entries);
        let records = (from..).zip(entries).zip(shares).map(|((position, entry), share)| StepRecord {
            run: task.run,
            task: task.task,
            step: StepNo::retain(position),
            epoch: task.epoch,
            facts: StepFacts::Retained {
                generation: row.generation,
                turns: if is_fact(&facts, entry) { 0 } else { entry.turns() as u64 },
                usage: if position == from { receipt.usage } else { bench_proto::call::Usage::default() },
                timing: Timing {
                    queue_wait_us: if position == row.position { share.queue_wait_us } else { 0 },
                    rate_wait_us: if position == from { paid.timing.rate_wait_us } else { 0 },
                    dispatch_us: if position == row.position { share.dispatch_us } else { 0 },
                    total_us: share.total_us + if position == from { built.build_us + built.build_wait_us } else { 0 },
                    build_us: share.build_us + if position == from { built.build_us } else { 0 },
                    build_wait_us: if position == from { built.build_wait_us } else { 0 },
                    // a batch is paid for at once, with its first entry
                    calls: if position == from { std::mem::take(&mut paid.timing.calls) } else { Vec::new() },
                    replies: if position == from { std::mem::take(&mut paid.timing.replies) } else { Vec::new() },
                    ..share
                },
            },
            text: None,
            calls: Vec::new(),
            effect: if position + 1 == end { Effect::Done { opens: Opens::ReadyTask } } else { Effect::Continue },
        });
        Ok(records.collect())
    }

    /// A failure after which nobody knows what was written is what becomes of its bank.
    async fn unless_in_doubt(&self, retained: Result<RetainReceipt, Failure>) -> Result<RetainReceipt, Failure> {
        let Self { tools, context, task, bank, row, .. } = *self;
        let failure = match retained {
            Ok(receipt) => return Ok(receipt),
            Err(failure) => failure,
        };
        let is_outage = context.is_outage(&failure);
        if !is_in_doubt(&failure, is_outage) {
            return Err(failure);
        }
        let is_excused = context.is_excused(bank, &failure);
        match leave(tools, context, task, Some(&failure)).await {
            // an outage is no failure of the bank: it costs a generation and no attempt
            true if is_outage => Err(failure),
            // what could not be left behind is left behind by the next attempt, so there has to be one
            false if is_outage || is_excused => Err(Failure::transient(LEFT_BY_THE_NEXT, failure.message)),
            // who has to wait may pay for each generation, so that they are counted
            _ => Err(begun_too_often(context, task, row, failure, is_excused)),
        }
    }
}

/// The part of each entry in what storing all of them took, by its turns: a session is not as short as a fact that goes with it.
fn shares(spent: &Timing, build_us: u64, entries: &[StreamEntry]) -> Vec<Timing> {
    let turns = |entry: &StreamEntry| entry.turns().max(1) as u64;
    let all: u64 = entries.iter().map(turns).sum();
    let share = |entry: &StreamEntry| {
        let part = |us: u64| us * turns(entry) / all;
        Timing {
            provider_us: part(spent.provider_us),
            total_us: part(spent.total_us),
            build_us: part(build_us.min(spent.total_us)),
            ..spent.clone()
        }
    };
    entries.iter().map(share).collect()
}

/// Whether it cannot be known after a failure what was written; what never reached the system has changed nothing in it. What fails
/// in an outage is sent again, whatever the system says of it.
fn is_in_doubt(failure: &Failure, is_outage: bool) -> bool {
    let code = failure.code.as_str();
    let is_sent_again = is_outage || failure.class == FailureClass::Transient;
    code == BROKEN || is_sent_again && ![SYSTEM_UNAVAILABLE, CANNOT_SERVE].contains(&code)
}

/// Whether a bank is given up that failures have cost so many generations. Those that are excused use up no attempts.
const fn is_given_up(generations: i64, is_excused: bool, may_retry: bool) -> bool {
    generations >= MOST_GENERATIONS || !is_excused && generations > 1 && !may_retry
}

/// Whether the system holds nothing of what had been stored: its memory was that of a process which has ended.
fn is_lost(failure: &Failure) -> bool {
    failure.code == MEMORIES_LOST
}

/// A failure of a system that cannot repeat costs a generation of the bank: what would help is said once, and the last one
/// ends the bank with a reason that says all of it.
fn begun_too_often(
    context: &RunContext,
    task: ClaimedTask,
    row: &BankRow,
    failure: Failure,
    is_excused: bool,
) -> Failure {
    if context.system().capabilities().retain_idempotent || failure.class != FailureClass::Transient {
        return failure;
    }
    let generations = generations_failed(task, row.generation);
    let retries = context.row().spec.limits.retries;
    // what is gone is not stored again by going on where it stopped
    let helps = if is_lost(&failure) { String::new() } else { format!("; {REPEAT_HELPS}") };
    if is_given_up(generations, is_excused, may_retry(&failure, task, retries)) {
        return Failure::permanent(
            BEGUN_TOO_OFTEN,
            format!(
                "bank {} was begun {generations} times and never filled: the system cannot repeat a retain, so that each \
                 failure, at last {failure}, begins the bank anew{helps}; `retry --errors` begins it anew",
                row.bank_id
            ),
        );
    }
    if context.is_first_doubt() {
        let (run, code, system) =
            (context.row().run_id.0.as_str(), failure.code.as_str(), context.row().spec.system.name.as_str());
        warn!(
            run,
            code,
            "{system} cannot repeat a retain: bank {} of run {run} begins anew after each failure, at most \
             {MOST_GENERATIONS} times{helps}: {failure}",
            row.bank_id
        );
    }
    failure
}

/// What spares a bank to begin anew.
const REPEAT_HELPS: &str =
    "where storing an item twice changes nothing, `can: {repeat: true}` in the adapter lets it go on where it stopped";

/// Generations of a bank that failures have cost since its retain was planned, with the one that fails now.
fn generations_failed(task: ClaimedTask, generation: i64) -> i64 {
    generation - task.planned_generation() + 1 - i64::from(task.losses)
}

/// Whether an earlier holder may have written what no checkpoint tells of: it was lost, or failed (P5), or forgotten (P44).
fn is_unsure(context: &RunContext, task: ClaimedTask, row: &BankRow) -> bool {
    let capabilities = context.system().capabilities();
    if capabilities.from_items || (capabilities.retain_idempotent && row.handle.is_some()) {
        return false;
    }
    // a holder whose claim the store has forgotten may have written under this name (P44)
    row.outdated || (row.handle.is_some() && (task.losses > 0 || task.attempts > 0))
}

/// Raises the generation before anything is written.
async fn begin_anew(tools: &Tools, task: ClaimedTask, bank_no: u32) -> Result<BankRow, TaskEnd> {
    let raised = tools.store.new_generation(task.run, bank_no, task.epoch).await?;
    if raised.is_none() {
        return Err(TaskEnd::Overtaken);
    }
    fresh_row(tools, task, bank_no).await
}

/// A retain ends in the middle: it cannot be known what was written, and the bank goes on in a fresh namespace (P5).
/// Where a retain may be repeated it goes on where it stopped, unless what had been stored is gone. False when the store could not
/// be told.
pub(super) async fn leave(tools: &Tools, context: &RunContext, task: ClaimedTask, failure: Option<&Failure>) -> bool {
    if context.system().capabilities().retain_idempotent && !failure.is_some_and(is_lost) {
        return true;
    }
    if let Err(error) = tools.store.new_generation(task.run, task.task.bank(), task.epoch).await {
        let (run, bank) = (context.row().run_id.0.as_str(), task.task.bank());
        warn!(
            run,
            code = "store",
            "bank number {bank} of run {run} begins anew at the next attempt, now it could not: {error}"
        );
        return false;
    }
    true
}

/// A bank that was filled before the run began: every entry counts as stored, and nothing is sent. Whether that holds is what the
/// readiness check asks (P33).
async fn take_as_filled(tools: &Tools, task: ClaimedTask, row: &BankRow) -> TaskResult {
    let until = row.segments.get(task.task.index() as usize).ok_or_else(|| missing_segment(&task))?.until;
    if row.position >= until {
        return finish_empty_segment(tools, task, row).await;
    }
    let nothing = |position: u32| StepRecord {
        step: StepNo::retain(position),
        effect: if position + 1 == until { Effect::Done { opens: Opens::ReadyTask } } else { Effect::Continue },
        ..nothing_retained(task, row)
    };
    store(tools, (row.position..until).map(nothing).collect()).await
}

/// The record of a step that has sent nothing, and ends its task.
fn nothing_retained(task: ClaimedTask, row: &BankRow) -> StepRecord {
    StepRecord {
        run: task.run,
        task: task.task,
        step: StepNo::retain(row.position),
        epoch: task.epoch,
        facts: StepFacts::Retained {
            generation: row.generation,
            turns: 0,
            usage: bench_proto::call::Usage::default(),
            timing: StepClock::start().timing(&task, 0),
        },
        text: None,
        calls: Vec::new(),
        effect: Effect::Done { opens: Opens::ReadyTask },
    }
}

/// A segment without new entries (or whose entries were all stored before a crash) still has to open its readiness check.
async fn finish_empty_segment(tools: &Tools, task: ClaimedTask, row: &BankRow) -> TaskResult {
    tools.writer.submit(vec![nothing_retained(task, row)]).await?;
    Ok(())
}

async fn fresh_row(tools: &Tools, task: ClaimedTask, bank_no: u32) -> Result<BankRow, TaskEnd> {
    let mut rows = tools.store.banks(task.run, Some(&[bank_no])).await?;
    Ok(rows.pop().ok_or_else(|| StoreError::Missing(format!("bank {bank_no}")))?)
}

fn missing_segment(task: &ClaimedTask) -> TaskEnd {
    StoreError::Corrupt(format!("{:?} names entries that its bank does not have", task.task).into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p5_what_fails_in_an_outage_and_is_sent_again_is_in_doubt_whatever_its_class() {
        let permanent = Failure::permanent("system_http_400", "retain: no");
        assert!(!is_in_doubt(&permanent, false) && is_in_doubt(&permanent, true));
        assert!(is_in_doubt(&Failure::transient("system_http_500", "retain: no"), false));
        assert!(!is_in_doubt(&Failure::transient(SYSTEM_UNAVAILABLE, "away"), true), "it never got there");
    }

    #[test]
    fn what_a_request_took_is_shared_by_turns() {
        use bench_proto::dataset::{Memory, Session, Turn};

        let session =
            |turns| StreamEntry::Session(Session { turns: vec![Turn::default(); turns], ..Session::default() });
        let spent = Timing { provider_us: 210, total_us: 420, ..Timing::default() };
        let took = |entries: &[StreamEntry]| {
            shares(&spent, 42, entries).iter().map(|of| (of.provider_us, of.total_us, of.build_us)).collect::<Vec<_>>()
        };
        assert_eq!(took(&[session(20), session(1)]), [(200, 400, 40), (10, 20, 2)]);
        assert_eq!(took(&[session(7)]), [(210, 420, 42)]);
        let memory = || StreamEntry::Memory(Memory::default());
        assert_eq!(took(&[memory(), memory()]), [(105, 210, 21); 2], "each is one");
    }

    #[test]
    fn p11_a_bank_that_waits_begins_anew_no_more_often_than_one_that_fails() {
        assert!(is_given_up(MOST_GENERATIONS, true, true) && is_given_up(MOST_GENERATIONS, false, true));
        assert!(!is_given_up(MOST_GENERATIONS - 1, true, false), "it uses up no attempts");
        assert!(is_given_up(2, false, false) && !is_given_up(1, false, false));
    }
}
