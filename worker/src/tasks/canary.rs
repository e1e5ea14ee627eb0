//! Asks for canaries (P45): the facts that a run has stored in a bank, behind its last question; in runs without facts,
//! turns of the dataset in banks that were just proven ready. `bench_proto::canary` makes the facts, `systems::canary`
//! says what is looked for.

use std::sync::atomic::{AtomicU32, Ordering};

use bench_proto::{
    call::Usage,
    canary::{Fact, is_fact},
    step::{Canary, Effect, Opens, StepFacts, StepNo, SystemStats, Timing},
};
use bench_store::{BankRow, ClaimedTask};
use bench_systems::{
    BankRef, Recall, RecallQuery,
    canary::{CANARY_BANKS, Probe, possible, probes, strange_to, wide},
};
use futures::{StreamExt, TryStreamExt, stream};
use tracing::debug;

use super::{listing, store_facts};
use crate::{
    banks::BankData,
    clock::StepClock,
    context::RunContext,
    ending::{TaskEnd, TaskResult},
    tools::Tools,
};

/// Recalls of a bank in flight.
const AT_ONCE: usize = 4;
/// Failed recalls in a row after which the rest is left out.
const MOST_FAILURES: u32 = 5;

/// Whether a segment is there for canaries and what the bank holds alone: it follows the last question and retains nothing.
pub(super) fn is_closing(context: &RunContext, row: &BankRow, segment: u32) -> bool {
    context.row().spec.closes_banks() && row.closes_with(segment)
}

/// Ends a bank whose questions have all been recalled: asks it for its facts and for a neighbour's, and for what it holds.
pub(super) async fn close(tools: &Tools, context: &RunContext, data: &BankData, task: ClaimedTask) -> TaskResult {
    let clock = StepClock::start();
    let row = context.current_row(tools.store.as_ref(), data).await?;
    let bank = context.bank_ref(&row, data);
    // instances of other machines are out of reach: whoever runs there asks
    context.system().on_this_machine(&bank)?;
    let has_facts = !context.row().spec.facts_in(data.row.bank_no, &data.row.bank_id).is_empty();
    let canary = if has_facts { Some(of_facts(tools, context, data, &bank).await?) } else { None };
    let holdings = match context.row().spec.lists {
        true => Some(Box::new(listing::holdings(tools, context, data, &row, &bank, task).await?)),
        false => None,
    };
    let facts = StepFacts::Ready {
        polls: 0,
        proven: true,
        returned: false,
        stats: SystemStats::default(),
        canary,
        holdings,
        // its time is nobody's phase
        timing: Timing { queue_wait_us: 0, dispatch_us: 0, ..clock.timing(&task, 0) },
    };
    store_facts(tools, task, StepNo::READY, facts, Effect::Done { opens: Opens::SegmentQuestions }).await
}

/// Looks for facts in their bank and for those of a neighbour, and for as many hits as are asked for.
async fn of_facts(tools: &Tools, context: &RunContext, data: &BankData, bank: &BankRef) -> Result<Canary, TaskEnd> {
    let spec = &context.row().spec;
    let (bank_no, visible) = (data.row.bank_no, u32::try_from(data.content.entries.len()).unwrap_or(u32::MAX));
    let mut facts = spec.facts_in(bank_no, &data.row.bank_id);
    // a bank that is asked before anything was retained holds none
    facts.retain(|fact| data.content.entries.iter().any(|entry| is_fact(std::slice::from_ref(fact), entry)));
    let (foreign, wide_recalls) = spec.canary_recalls(bank_no);
    let asking = Asking { context, bank, visible, failures: AtomicU32::new(0) };
    let mut canary = Canary { planted: true, ..Canary::default() };

    let own = asking.look_for(facts.iter().map(Probe::of_fact).collect()).await?;
    for (fact, seen) in facts.iter().zip(&own) {
        add(&mut canary, seen);
        if seen.is_answered && !seen.found {
            canary.lost.push(fact.text.clone());
        }
    }
    if let Some((other, facts)) = neighbour(tools, context, bank_no).await? {
        let seen = asking.look_for(facts.iter().take(foreign as usize).map(Probe::of_fact).collect()).await?;
        canary.foreign = seen.iter().filter(|seen| seen.is_answered).count() as u32;
        canary.foreign_found = seen.iter().filter(|seen| seen.found).count() as u32;
        canary.failed += seen.iter().filter(|seen| !seen.is_answered).count() as u32;
        seen.iter().for_each(|seen| canary.usage += seen.usage);
        canary.leaked = canary.foreign_found > 0;
        canary.other = (canary.foreign > 0).then_some(other.bank_id);
    }
    let by_turn = context.system().capabilities().stores_turns;
    for query in (0..wide_recalls).filter_map(|number| wide(&data.content, spec.system.top_k, number, by_turn)) {
        match asking.ask(&query).await? {
            Some(recall) => {
                canary.usage += recall.usage;
                canary.wide.push(u32::try_from(recall.hits.len()).unwrap_or(u32::MAX));
            }
            None => canary.failed += 1,
        }
    }
    Ok(canary)
}

/// Looks for turns of the dataset in a bank that was just proven ready; `None` where that makes no sense or nothing
/// could be asked.
pub(super) async fn of_turns(
    tools: &Tools,
    context: &RunContext,
    data: &BankData,
    bank: &BankRef,
) -> Result<Option<Canary>, TaskEnd> {
    let (bank_no, capabilities) = (data.row.bank_no, context.system().capabilities());
    if context.row().spec.canaries.is_some()
        || bank_no >= CANARY_BANKS
        || possible(capabilities).is_err()
        || !capabilities.banks
    {
        return Ok(None);
    }
    let visible = u32::try_from(data.content.entries.len()).unwrap_or(u32::MAX);
    let probes = probes(&data.content);
    let stranger = stranger(tools, context, bank_no, &probes).await;
    let asking = Asking { context, bank, visible, failures: AtomicU32::new(0) };
    let mut canary = Canary::default();
    asking.look_for(probes).await?.iter().for_each(|seen| add(&mut canary, seen));
    if let Some((other, probe)) = stranger {
        let asking = Asking { context, bank: &other, visible: 0, failures: AtomicU32::new(0) };
        for seen in asking.look_for(vec![probe]).await? {
            canary.leaked = seen.found;
            canary.usage += seen.usage;
            canary.other = seen.is_answered.then(|| other.bank_id.clone());
        }
    }
    Ok((canary.asked > 0 || canary.other.is_some()).then_some(canary))
}

/// What came of looking for something.
#[derive(Default)]
struct Seen {
    /// The system has said something at all.
    is_answered: bool,
    found: bool,
    is_whole: bool,
    is_empty: bool,
    usage: Usage,
}

/// Adds what came of looking for something in its own bank.
fn add(canary: &mut Canary, seen: &Seen) {
    canary.usage += seen.usage;
    if !seen.is_answered {
        canary.failed += u32::from(canary.planted);
        return;
    }
    canary.asked += 1;
    canary.found += u32::from(seen.found);
    canary.empty += u32::from(seen.is_empty);
    canary.whole += u32::from(seen.is_whole && canary.planted);
    canary.verbatim |= seen.is_whole;
}

/// A bank that is asked.
struct Asking<'a> {
    context: &'a RunContext,
    bank: &'a BankRef,
    visible: u32,
    /// Failures in a row.
    failures: AtomicU32,
}

impl Asking<'_> {
    /// What became of each of these, in their order.
    async fn look_for(&self, probes: Vec<Probe>) -> Result<Vec<Seen>, TaskEnd> {
        let looking = stream::iter(probes).map(|probe| async move { self.look_for_one(&probe).await });
        looking.buffered(AT_ONCE).try_collect().await
    }

    /// Asks, and once more in other words where nothing was found: a ranking that puts others first loses nothing.
    async fn look_for_one(&self, probe: &Probe) -> Result<Seen, TaskEnd> {
        let mut seen = Seen { is_empty: true, ..Seen::default() };
        for query in std::iter::once(&probe.query).chain(&probe.again) {
            let Some(Recall { hits, usage, .. }) = self.ask(query).await? else { continue };
            seen.is_answered = true;
            seen.usage += usage;
            seen.is_empty &= hits.is_empty();
            seen.found = hits.iter().any(|hit| probe.is_in(hit));
            seen.is_whole = hits.iter().any(|hit| probe.is_whole_in(hit));
            if seen.found {
                break;
            }
        }
        Ok(seen)
    }

    /// What comes back; `None` when the system does not say. One that is away is waited for.
    async fn ask(&self, text: &str) -> Result<Option<Recall>, TaskEnd> {
        self.context.check_running()?;
        if self.failures.load(Ordering::Relaxed) >= MOST_FAILURES {
            return Ok(None);
        }
        let query = RecallQuery {
            question_id: "canary",
            text,
            k: self.context.row().spec.system.top_k,
            visible_entries: self.visible,
            is_check: true,
            ..RecallQuery::default()
        };
        match self.context.system().recall(self.bank, &query).await {
            Ok(recall) => {
                self.failures.store(0, Ordering::Relaxed);
                Ok(Some(recall))
            }
            Err(failure) if self.context.is_excused(self.bank, &failure) => {
                Err(self.context.system_end(self.bank, failure))
            }
            Err(failure) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                debug!("bank {}: the canary was not answered: {failure}", self.bank.bank_id);
                Ok(None)
            }
        }
    }
}

/// The next bank with facts that is filled, those before this one first, and its facts.
async fn neighbour(tools: &Tools, context: &RunContext, bank_no: u32) -> Result<Option<(BankRef, Vec<Fact>)>, TaskEnd> {
    let spec = &context.row().spec;
    if !context.system().capabilities().banks {
        return Ok(None);
    }
    let banks = u32::try_from(spec.sample.banks).unwrap_or(u32::MAX);
    let near = (0..bank_no).rev().chain(bank_no + 1..banks);
    for other in near.filter(|other| !spec.facts_in(*other, "").is_empty()) {
        let Some(row) = tools.store.banks(context.run_no(), Some(&[other])).await?.pop() else { continue };
        let until = row.segments.last().map_or(0, |segment| segment.until);
        if row.handle.is_some() && until > 0 && row.position >= until {
            let facts = spec.facts_in(other, &row.bank_id);
            return Ok(Some((context.bank_at(&row), facts)));
        }
    }
    Ok(None)
}

/// Another bank that is open, and a probe of this one of whose signs it was given none.
async fn stranger(tools: &Tools, context: &RunContext, bank_no: u32, probes: &[Probe]) -> Option<(BankRef, Probe)> {
    let neighbour = if bank_no == 0 { 1 } else { bank_no - 1 };
    // its row as it is now: it may have been opened, or begun anew, since it was read
    let row = tools.store.banks(context.run_no(), Some(&[neighbour])).await.ok()?.pop()?;
    row.handle.as_ref()?;
    let data = tools.banks.get(context.run_no(), neighbour).await.ok()?;
    let strange = strange_to(&data.content, probes)?;
    Some((context.bank_ref(&row, &data), strange))
}
