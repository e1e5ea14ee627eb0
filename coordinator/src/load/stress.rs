//! The suite `stress`: what is stored and asked says `bench_load::stress`; here it is done.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bench_load::{
    facts::{BankWords, Facts},
    histogram::Latencies,
    result::{Findings, OperationResult},
    stress::{
        AT_ONCE, Asked, AtOnce, BANKS, Count, DUPLICATES, Duplicates, GROWTH, ROUNDS, Round, SCHEMA, SCHEMA_VERSION,
        SEED, SUITE_VERSION, StressResult, WIDTHS, recalls,
    },
};
use bench_proto::{dataset::StreamEntry, failure::Failure, ids::Sha256Hash};
use bench_systems::{BankRef, MemorySystem, StepContext, filling::until_ready};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{
    banks::{AT_A_TIME, bank_of, look_for, query},
    interrupted, process, remove,
    steps::failed,
};
use crate::{
    app::{App, systems::Driven},
    cli::LoadArgs,
    exit::CliError,
    out,
};

/// Carries the suite out. What was measured before an interruption is a result too.
///
/// # Errors
/// Exit 2 for a system that cannot do what is asked, 4 when it does not store, 3 when it was interrupted before anything was measured.
pub(super) async fn run(app: &App, args: &LoadArgs, driven: &Driven, id: &str) -> Result<StressResult, CliError> {
    let can = driven.system.capabilities();
    if !can.recalls || !can.banks || can.sees_gold {
        let name = &driven.name;
        return Err(CliError::usage(format!(
            "{name} does not search banks of its own: the suite cannot be asked of it"
        )));
    }
    let widths: Vec<u32> = WIDTHS.into_iter().filter(|k| can.max_k.is_none_or(|most| *k <= most)).collect();
    let (stop, started_at) = (app.interrupts().stop, Timestamp::now());
    let memories = BANKS * ROUNDS * GROWTH;
    out::note(&format!(
        "stress {id}: {} {}, {memories} retains over {BANKS} banks, {} recalls at {AT_ONCE:?} at once each",
        driven.name,
        can.version,
        ROUNDS * BANKS * widths.len() as u32,
    ));
    let named = format!("bench-load-{id}-stress");
    let mut suite = Suite::new(driven.system.as_ref(), &named, &widths);
    let ended = suite.all(&stop).await;
    if !args.keep_banks {
        let opened: Vec<&BankRef> = suite.banks.iter().filter(|bank| bank.handle.is_some()).collect();
        remove(driven, &named, &opened).await;
    }
    if let Err(failure) = ended {
        return Err(CliError::infrastructure(format!(
            "the system does not store: {failure}; `bench-coord systems check` shows what works"
        )));
    }
    if suite.at_once.iter().all(|at| at.rounds.is_empty()) {
        return Err(interrupted(id));
    }
    let settings = serde_json::to_vec(&driven.settings).map_err(CliError::usage_of)?;
    let Suite { at_once, retain, stored, duplicates, .. } = suite;
    let result = StressResult {
        schema: SCHEMA.to_owned(),
        schema_version: SCHEMA_VERSION,
        suite_version: SUITE_VERSION,
        system: driven.name.clone(),
        system_version: can.version.clone(),
        settings_sha256: Sha256Hash::of(&settings).hex(),
        process: process(id, SEED, started_at, stop.is_cancelled()),
        widths,
        retain,
        at_once,
        stored,
        duplicates,
        notes: Vec::new(),
    };
    Ok(result.counted())
}

/// The suite while it goes on.
struct Suite<'a> {
    system: &'a dyn MemorySystem,
    facts: Facts,
    words: BankWords,
    widths: &'a [u32],
    banks: Vec<BankRef>,
    retain: OperationResult,
    at_once: Vec<AtOnce>,
    stored: Option<Count>,
    duplicates: Duplicates,
}

impl<'a> Suite<'a> {
    fn new(system: &'a dyn MemorySystem, named: &str, widths: &'a [u32]) -> Self {
        let facts = Facts::new(SEED);
        let bank = |number| bank_of(facts, format!("{named}-b{number}"), number, ROUNDS * GROWTH);
        let at_once = |at_once| AtOnce {
            at_once,
            recall: OperationResult { findings: Some(Findings::default()), ..OperationResult::default() },
            found_by_width: BTreeMap::new(),
            rounds: Vec::new(),
            ms_per_1000_memories: None,
        };
        Self {
            system,
            facts,
            words: BankWords::of(facts, BANKS),
            widths,
            banks: (0..BANKS).map(bank).collect(),
            retain: OperationResult::default(),
            at_once: AT_ONCE.map(at_once).to_vec(),
            stored: None,
            duplicates: Duplicates::default(),
        }
    }

    /// Everything, until it is stopped.
    async fn all(&mut self, stop: &CancellationToken) -> Result<(), Failure> {
        let system = self.system;
        for bank in &mut self.banks {
            bank.handle = Some(system.open_bank(bank).await?);
        }
        for round in 0..ROUNDS {
            let going = async {
                self.grow(round).await?;
                for at in 0..self.at_once.len() {
                    self.ask(round, at).await;
                }
                Ok::<(), Failure>(())
            };
            match stop.run_until_cancelled(going).await {
                Some(ended) => ended?,
                None => return Ok(()),
            }
        }
        let end = async {
            self.stored = self.count().await?;
            self.send_again().await
        };
        stop.run_until_cancelled(end).await.unwrap_or(Ok(()))
    }

    /// Each bank grows by its memories of a round, four banks side by side, one memory after the other.
    async fn grow(&mut self, round: u32) -> Result<(), Failure> {
        let system = self.system;
        let (first, stored) = ((round * GROWTH) as usize, (round + 1) * GROWTH);
        let growing: Vec<_> =
            self.banks.iter().map(|bank| retain_all(system, bank, &entries(bank)[first..stored as usize])).collect();
        let grown = stream::iter(growing).buffered(AT_A_TIME).collect::<Vec<_>>().await;
        let mut first_failure = None;
        for (took, ended) in grown.into_iter().flatten() {
            if let Err(failure) = &ended {
                first_failure.get_or_insert_with(|| failure.clone());
            }
            self.retain.tally.note(share_of(round), took, ended.map_err(|failure| failed(&failure)));
        }
        if let Some(failure) = first_failure.filter(|_| self.retain.tally.served.n() == 0) {
            return Err(failure);
        }
        for bank in &self.banks {
            until_ready(system, bank, stored).await?;
            system.prepare(bank, Some(&query("anything", 1, stored))).await?;
        }
        Ok(())
    }

    /// All recalls of a round, so many at once as stands at place `at`.
    async fn ask(&mut self, round: u32, at: usize) {
        let stored = (round + 1) * GROWTH;
        let at_once = self.at_once[at].at_once as usize;
        let this = &*self;
        let asking: Vec<_> = recalls(round, this.widths).into_iter().map(|asked| this.timed(asked, stored)).collect();
        let ended = stream::iter(asking).buffer_unordered(at_once).collect::<Vec<_>>().await;
        let (mut of_round, into) = (Latencies::default(), &mut self.at_once[at]);
        for (asked, took, brought) in ended {
            let ended = match brought {
                Ok(findings) => {
                    of_round.record(took);
                    into.recall.findings.get_or_insert_default().add(findings);
                    into.found_by_width.entry(asked.k).or_default().add(findings);
                    Ok(())
                }
                Err(failure) => Err(failed(&failure)),
            };
            into.recall.tally.note(share_of(round), took, ended);
        }
        into.rounds.push(Round { memories: stored, median_ms: of_round.quantile_ms(0.5, 0), n: of_round.n() });
    }

    /// A recall, with the time that it took.
    async fn timed(&self, asked: Asked, stored: u32) -> (Asked, Duration, Result<Findings, Failure>) {
        let begun = Instant::now();
        let brought = self.recall(asked, stored).await;
        (asked, begun.elapsed(), brought)
    }

    async fn recall(&self, asked: Asked, stored: u32) -> Result<Findings, Failure> {
        let bank = (&self.banks[asked.bank as usize], asked.bank);
        let fact = self.facts.fact(asked.bank, asked.index);
        let brought = look_for(self.system, bank, (&fact, &self.words), asked.k, stored).await?;
        let found = u64::from(brought.times > 0);
        Ok(Findings { found, missed: 1 - found, foreign: brought.foreign.into() })
    }

    /// How often a memory is among the hits of a full bank.
    async fn times(&self, Asked { bank, index, k }: Asked) -> Result<usize, Failure> {
        let (of, fact) = ((&self.banks[bank as usize], bank), self.facts.fact(bank, index));
        let brought = look_for(self.system, of, (&fact, &self.words), k, ROUNDS * GROWTH).await?;
        Ok(brought.times)
    }

    /// Items of all banks, when the system counts them.
    async fn count(&self) -> Result<Option<Count>, Failure> {
        let mut all = Count::default();
        for bank in &self.banks {
            let Some(counted) = self.system.verify(bank, ROUNDS * GROWTH).await? else { return Ok(None) };
            all.expected += counted.expected;
            all.found += counted.found;
        }
        Ok(Some(all))
    }

    /// The first memories of each bank once more, as many in a request as the system takes; then each is asked for.
    async fn send_again(&mut self) -> Result<(), Failure> {
        let system = self.system;
        let batch = system.capabilities().max_batch.clamp(1, DUPLICATES) as usize;
        let mut duplicates = Duplicates { before: self.stored, ..Duplicates::default() };
        for bank in &self.banks {
            for chunk in entries(bank)[..DUPLICATES as usize].chunks(batch) {
                // who refuses what is there already has not stored it twice
                if let Ok(receipt) = system.retain(bank, chunk, StepContext::default()).await {
                    duplicates.sent += (chunk.len() as u64).saturating_sub(receipt.left.into());
                }
            }
            until_ready(system, bank, ROUNDS * GROWTH).await?;
        }
        duplicates.after = self.count().await?;
        let widest = self.widths.last().copied().unwrap_or(1);
        let this = &*self;
        let all = (0..BANKS).flat_map(|bank| (0..DUPLICATES).map(move |index| Asked { bank, index, k: widest }));
        let asking: Vec<_> = all.map(|asked| this.times(asked)).collect();
        let times: Vec<usize> = stream::iter(asking).buffer_unordered(AT_A_TIME).try_collect().await?;
        let count = |wanted: fn(usize) -> bool| times.iter().filter(|times| wanted(**times)).count() as u64;
        duplicates.asked = times.len() as u64;
        (duplicates.seen_once, duplicates.seen_twice) = (count(|times| times == 1), count(|times| times > 1));
        self.duplicates = duplicates;
        Ok(())
    }
}

/// Retains memories one after the other, each with the time that it took.
async fn retain_all(
    system: &dyn MemorySystem,
    bank: &BankRef,
    entries: &[StreamEntry],
) -> Vec<(Duration, Result<(), Failure>)> {
    let mut ends = Vec::with_capacity(entries.len());
    for entry in entries {
        let begun = Instant::now();
        let ended = system.retain(bank, std::slice::from_ref(entry), StepContext::default()).await;
        ends.push((begun.elapsed(), ended.map(drop)));
    }
    ends
}

/// The memories of a bank.
fn entries(bank: &BankRef) -> &[StreamEntry] {
    bank.content.as_deref().map_or(&[], |content| &content.entries)
}

/// Where in the suite a round is, 0 to 1.
fn share_of(round: u32) -> f64 {
    f64::from(round) / f64::from(ROUNDS)
}
