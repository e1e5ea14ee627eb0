//! Fills a bank and waits until what was stored can be found: for whoever drives a system outside of a run.

use std::time::{Duration, Instant};

use bench_proto::{dataset::StreamEntry, failure::Failure};

use crate::{BankRef, MemorySystem, Readiness, StepContext};

/// Longest wait for a bank to be ready.
const READY_WITHIN: Duration = Duration::from_secs(600);
/// Entries of one call, where a system takes any number.
const BATCH: usize = 64;
/// Shortest and longest wait between two looks, in milliseconds.
const POLL_MS: (u64, u64) = (10, 5_000);

/// How a bank became ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// How often was asked.
    pub polls: u32,
    /// The system has shown it, and not only said so.
    pub proven: bool,
    /// It has not been asked: storing returned, by which it means it.
    pub returned: bool,
}

/// Stores entries in order and waits until the system says that they can be found.
///
/// # Errors
/// The system's failure, or that it is not ready after ten minutes.
pub async fn fill(system: &dyn MemorySystem, bank: &BankRef, entries: &[StreamEntry]) -> Result<Filled, Failure> {
    fill_behind(system, bank, entries, 0).await
}

/// The same behind entries that are stored already.
pub(crate) async fn fill_behind(
    system: &dyn MemorySystem,
    bank: &BankRef,
    entries: &[StreamEntry],
    before: usize,
) -> Result<Filled, Failure> {
    store(system, bank, entries).await?;
    until_ready(system, bank, u32::try_from(before + entries.len()).unwrap_or(u32::MAX)).await
}

/// Stores entries in order, in the portions in which a run gives them: what a retain has left is given again. How many turns and
/// memories were written.
///
/// # Errors
/// The system's failure; that it has stored none of what it was given.
pub async fn store(system: &dyn MemorySystem, bank: &BankRef, entries: &[StreamEntry]) -> Result<u64, Failure> {
    let (mut rest, mut written) = (entries, 0);
    while !rest.is_empty() {
        let given = system.together(rest).clamp(1, BATCH.min(rest.len()));
        let receipt = system.retain(bank, &rest[..given], StepContext::default()).await?;
        let stored = given.saturating_sub(receipt.left as usize);
        if stored == 0 {
            return Err(Failure::permanent("system_partial_batch", format!("none of {given} entries was stored")));
        }
        (rest, written) = (&rest[stored..], written + receipt.written);
    }
    Ok(written)
}

/// Waits until the system says that the first `stored` entries of a bank can be found.
///
/// # Errors
/// As [`fill`].
pub async fn until_ready(system: &dyn MemorySystem, bank: &BankRef, stored: u32) -> Result<Filled, Failure> {
    let (begun, mut polls) = (Instant::now(), 0);
    loop {
        polls += 1;
        match system.readiness(bank, stored).await? {
            Readiness::Proven => return Ok(Filled { polls, proven: true, returned: false }),
            Readiness::Returned => return Ok(Filled { polls, proven: false, returned: true }),
            Readiness::Promised => return Ok(Filled { polls, proven: false, returned: false }),
            Readiness::NotYet { .. } if begun.elapsed() > READY_WITHIN => {
                let message = format!("not ready after {} s", READY_WITHIN.as_secs());
                return Err(Failure::transient("system_not_ready", message));
            }
            Readiness::NotYet { poll_after_ms } => {
                tokio::time::sleep(Duration::from_millis(poll_after_ms.clamp(POLL_MS.0, POLL_MS.1))).await;
            }
        }
    }
}
