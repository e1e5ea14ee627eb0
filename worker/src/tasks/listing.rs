//! Asks a memory system what a bank holds, behind its last question, page by page. Each page is a checkpoint: who goes on after a
//! kill asks for those that are missing. What is looked for in a page is in `bench_grading::holdings`.

use std::hash::{DefaultHasher, Hash, Hasher};

use bench_grading::holdings::Expected;
use bench_models::backoff::BackoffSettings;
use bench_proto::{
    canary::Fact,
    failure::{Failure, FailureClass},
    step::{
        Effect, StepFacts, Timing,
        listing::{Holdings, ListCursor, ListedPart, MOST_LISTED, MOST_LISTED_BYTES, MOST_PAGES, Seen},
    },
};
use bench_store::{BankRow, ClaimedTask};
use bench_systems::{BankRef, ListedPage};
use tracing::debug;

use super::store_facts;
use crate::{
    banks::BankData,
    clock::StepClock,
    context::RunContext,
    ending::{TaskEnd, TaskResult},
    tools::Tools,
};

/// Times that a page is asked for before the rest is left out.
const MOST_TRIES: u32 = 3;

/// What the bank holds, by all pages of its listing.
pub(super) async fn holdings(
    tools: &Tools,
    context: &RunContext,
    data: &BankData,
    row: &BankRow,
    bank: &BankRef,
    task: ClaimedTask,
) -> Result<Holdings, TaskEnd> {
    let until = row.segments.last().map_or(0, |segment| segment.until);
    let asked = data.questions().iter().map(|question| (question, data.gold(&question.question_id)));
    let expected = Expected::of_bank(&data.content, until, asked, facts_of_run(tools, context).await?);
    let mut parts = stored(tools, task, row.generation).await?;
    let failure = loop {
        let from = match parts.last() {
            None => ListCursor::default(),
            Some(part) => match &part.next {
                Some(next) if !is_enough(&parts) => next.clone(),
                _ => break None,
            },
        };
        context.check_running()?;
        let clock = StepClock::start();
        let ListedPage { items, next } = match page(context, bank, until, &from).await? {
            Ok(page) => page,
            Err(failure) => break Some(failure),
        };
        let mut hasher = DefaultHasher::new();
        items.iter().for_each(|item| (&item.id, &item.text).hash(&mut hasher));
        let hash = hasher.finish();
        if !items.is_empty() && parts.last().is_some_and(|last| last.hash == hash) {
            let message = "list: a page is the same as the one before it: the listing has no end";
            break Some(Failure::permanent("system_shape", message));
        }
        let part = ListedPart {
            generation: row.generation,
            number: u32::try_from(parts.len()).unwrap_or(u32::MAX),
            seen: expected.look(items),
            hash,
            next,
            // the waits before this claim are those of the step that ends the task
            timing: Timing { queue_wait_us: 0, dispatch_us: 0, ..clock.timing(&task, clock.elapsed_us()) },
        };
        store(tools, task, part.clone()).await?;
        parts.push(part);
    };
    let cut = failure.is_none() && parts.last().is_some_and(|part| part.next.is_some());
    Ok(expected.holdings(parts.iter().map(|part| &part.seen), cut, failure))
}

/// Whether no more is listed, though there may be more.
fn is_enough(parts: &[ListedPart]) -> bool {
    let sum = |of: fn(&Seen) -> u64| parts.iter().map(|part| of(&part.seen)).sum::<u64>();
    parts.len() >= MOST_PAGES as usize
        || sum(|seen| seen.items + seen.canaries) >= MOST_LISTED
        || sum(|seen| seen.bytes) >= MOST_LISTED_BYTES
}

/// Pages that an earlier claim has stored, from the first without a hole.
async fn stored(tools: &Tools, task: ClaimedTask, generation: i64) -> Result<Vec<ListedPart>, TaskEnd> {
    if task.epoch <= 1 {
        return Ok(Vec::new());
    }
    let steps = tools.store.question_steps(task.run, &[task.task]).await?;
    let mut parts: Vec<ListedPart> = steps
        .into_iter()
        .filter(|stored| stored.task == task.task)
        .filter_map(|stored| match stored.facts {
            StepFacts::Listed(part) if part.generation == generation => Some(*part),
            _ => None,
        })
        .collect();
    parts.sort_by_key(|part| part.number);
    let whole = parts.iter().zip(0..).take_while(|(part, number)| part.number == *number).count();
    parts.truncate(whole);
    Ok(parts)
}

async fn store(tools: &Tools, task: ClaimedTask, part: ListedPart) -> TaskResult {
    let step = ListedPart::step(part.number);
    store_facts(tools, task, step, StepFacts::Listed(Box::new(part)), Effect::Continue).await
}

/// A page, or why there is none. A system that is away is waited for, for as long as the run is not stopped.
async fn page(
    context: &RunContext,
    bank: &BankRef,
    until: u32,
    from: &ListCursor,
) -> Result<Result<ListedPage, Failure>, TaskEnd> {
    let may_pass = |failure: &Failure| !context.is_excused(bank, failure) && context.check_running().is_ok();
    let call = || context.system().list(bank, until, from);
    match BackoffSettings::default().patiently(MOST_TRIES, may_pass, call).await {
        Ok(page) => Ok(Ok(page)),
        Err(failure) if context.is_excused(bank, &failure) => Err(context.system_end(bank, failure)),
        Err(failure) => {
            if failure.class == FailureClass::Transient {
                // the tries, or the wait between them, may have ended because the run does
                context.check_running()?;
            }
            debug!("bank {}: it is not known what it holds: {failure}", bank.bank_id);
            Ok(Err(failure))
        }
    }
}

/// The canaries of all banks of the run: a system that mixes banks up may hold those of another one.
async fn facts_of_run(tools: &Tools, context: &RunContext) -> Result<Vec<Fact>, TaskEnd> {
    let spec = &context.row().spec;
    if !spec.plants_canaries() {
        return Ok(Vec::new());
    }
    let banks = u32::try_from(spec.sample.banks).unwrap_or(u32::MAX);
    let with_facts: Vec<u32> = (0..banks).filter(|bank| !spec.facts_in(*bank, "").is_empty()).collect();
    let rows = tools.store.banks(context.run_no(), Some(&with_facts)).await?;
    Ok(rows.iter().flat_map(|row| spec.facts_in(row.bank_no, &row.bank_id)).collect())
}
