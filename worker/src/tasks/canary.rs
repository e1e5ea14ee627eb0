//! Sends canaries into banks that were just proven ready (P45); `systems::canary` says what they look for.

use bench_proto::step::{Canary, RetrievedHit};
use bench_systems::{
    BankRef, RecallQuery,
    canary::{CANARY_BANKS, Probe, possible, probes, strange_to},
};
use tracing::debug;

use crate::{banks::BankData, context::RunContext, tools::Tools};

/// Sends a canary into a bank that was just proven ready; `None` where it makes no sense or nothing could be asked.
pub(super) async fn send(tools: &Tools, context: &RunContext, data: &BankData, bank: &BankRef) -> Option<Canary> {
    let bank_no = data.row.bank_no;
    if bank_no >= CANARY_BANKS || possible(context.system().capabilities()).is_err() {
        return None;
    }
    let entries = u32::try_from(data.content.entries.len()).unwrap_or(u32::MAX);
    let probes = probes(&data.content);
    let mut canary = Canary::default();
    for probe in &probes {
        let Some(hits) = ask(context, bank, probe, entries, &mut canary).await else { continue };
        canary.asked += 1;
        canary.found += u32::from(hits.iter().any(|hit| probe.is_in(hit)));
        canary.empty += u32::from(hits.is_empty());
        canary.verbatim |= hits.iter().any(|hit| probe.is_whole_in(hit));
    }
    if let Some((other, probe)) = stranger(tools, context, bank_no, &probes).await
        && let Some(hits) = ask(context, &other, &probe, 0, &mut canary).await
    {
        canary.leaked = hits.iter().any(|hit| probe.is_in(hit));
        canary.other = Some(other.bank_id);
    }
    (canary.asked > 0 || canary.other.is_some()).then_some(canary)
}

/// The hits of a probe; `None` when the system does not say.
async fn ask(
    context: &RunContext,
    bank: &BankRef,
    probe: &Probe,
    visible_entries: u32,
    canary: &mut Canary,
) -> Option<Vec<RetrievedHit>> {
    context.check_running().ok()?;
    let query = RecallQuery {
        question_id: "canary",
        text: &probe.query,
        time_text: None,
        k: context.row().spec.system.top_k,
        visible_entries,
        ..RecallQuery::default()
    };
    match context.system().recall(bank, &query).await {
        Ok(recall) => {
            canary.usage += recall.usage;
            Some(recall.hits)
        }
        Err(failure) => {
            debug!("bank {}: the canary was not answered: {failure}", bank.bank_id);
            None
        }
    }
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
