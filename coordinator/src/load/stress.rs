//! The suite `stress`: what is stored and asked says `bench_load::stress`; here it is done.

use std::{
    collections::BTreeMap,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
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

/// Operations of a kind that may all end with their time over before the suite is given up: it has thousands, and an adapter gives
/// each a minute.
const HANGING: u32 = 8;
/// Code of the failure of an operation that was given up because nothing came.
const NOTHING_CAME: &str = "system_timeout";

/// Carries the suite out. What was measured before an interruption is a result too.
///
/// # Errors
/// Exit 2 for a system that cannot do what is asked, 4 when it does not store or hangs, 3 when it was interrupted before anything was
/// measured.
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
        return Err(CliError::infrastructure(why_ended(driven, suite.hanging(), &failure)));
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

/// What somebody is told whose system the suite could not be asked of.
fn why_ended(driven: &Driven, hanging: Option<&str>, failure: &Failure) -> String {
    let place = driven.system.place();
    let system = if place.is_empty() { driven.name.clone() } else { format!("{} at {place}", driven.name) };
    match hanging {
        Some(what) => format!(
            "{system} hangs: {HANGING} {what} ended with their time over before one was answered ({failure}); look at its log and at \
             what it waits for itself (a database, a model), or raise `timeout` in its file if it is only slow"
        ),
        None => format!("{system} does not store: {failure}; `bench-coord systems check` shows what works"),
    }
}

/// What is known of the operations of a kind while none of them was answered.
#[derive(Default)]
struct Silence {
    answered: AtomicBool,
    ended: AtomicU32,
    given_up: OnceLock<Failure>,
}

impl Silence {
    fn note<T>(&self, ended: &Result<T, Failure>) {
        match ended {
            Err(failure) if failure.code == NOTHING_CAME => {
                let ended = self.ended.fetch_add(1, Ordering::Relaxed) + 1;
                if ended >= HANGING && !self.answered.load(Ordering::Relaxed) {
                    self.given_up.get_or_init(|| failure.clone());
                }
            }
            // who was not reached, or was cut off, has said nothing
            Err(failure) if !is_answer(failure) => {}
            _ => self.answered.store(true, Ordering::Relaxed),
        }
    }

    /// The failure with which operations of the kind were given up. An answer that comes later changes nothing: some were not begun.
    fn given_up(&self) -> Option<&Failure> {
        self.given_up.get()
    }
}

/// Whether a failure is what a system has said itself.
fn is_answer(failure: &Failure) -> bool {
    const SAID: [&str; 5] =
        ["system_auth", "system_refused", "system_shape", "system_item_failed", "system_partial_batch"];
    failure.code.starts_with("system_http_") || SAID.contains(&failure.code.as_str())
}

/// The suite while it goes on.
struct Suite<'a> {
    system: &'a dyn MemorySystem,
    facts: Facts,
    words: BankWords,
    widths: &'a [u32],
    banks: Vec<BankRef>,
    /// Of retains and of recalls.
    silence: [Silence; 2],
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
            silence: Default::default(),
            retain: OperationResult::default(),
            at_once: AT_ONCE.map(at_once).to_vec(),
            stored: None,
            duplicates: Duplicates::default(),
        }
    }

    /// The operations of which not one was answered, where it was given up for that.
    fn hanging(&self) -> Option<&'static str> {
        let mut kinds = self.silence.iter().zip(["retains", "recalls"]);
        kinds.find(|(silence, _)| silence.given_up().is_some()).map(|(_, what)| what)
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
                    self.ask(round, at).await?;
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
        let (silence, of_round) = (&self.silence[0], first..stored as usize);
        let growing: Vec<_> =
            self.banks.iter().map(|bank| retain_all(system, bank, &entries(bank)[of_round.clone()], silence)).collect();
        let grown = stream::iter(growing).buffered(AT_A_TIME).collect::<Vec<_>>().await;
        // some memories were never sent: whoever went on would count them as lost
        if let Some(failure) = silence.given_up() {
            return Err(failure.clone());
        }
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
    async fn ask(&mut self, round: u32, at: usize) -> Result<(), Failure> {
        let stored = (round + 1) * GROWTH;
        let at_once = self.at_once[at].at_once as usize;
        let this = &*self;
        let asking: Vec<_> = recalls(round, this.widths).into_iter().map(|asked| this.timed(asked, stored)).collect();
        let (mut asking, mut ended) = (stream::iter(asking).buffer_unordered(at_once), Vec::new());
        while let Some((asked, took, brought)) = asking.next().await {
            let silence = &this.silence[1];
            silence.note(&brought);
            if let Some(failure) = silence.given_up() {
                return Err(failure.clone());
            }
            ended.push((asked, took, brought));
        }
        drop(asking);
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
        Ok(())
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

/// Retains memories one after the other, each with the time that it took, unless nothing comes of any.
async fn retain_all(
    system: &dyn MemorySystem,
    bank: &BankRef,
    entries: &[StreamEntry],
    silence: &Silence,
) -> Vec<(Duration, Result<(), Failure>)> {
    let mut ends = Vec::with_capacity(entries.len());
    for entry in entries {
        if silence.given_up().is_some() {
            break;
        }
        let begun = Instant::now();
        let ended = system.retain(bank, std::slice::from_ref(entry), StepContext::default()).await;
        silence.note(&ended);
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

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use bench_systems::{Capabilities, ListCursor, ListedPage, Readiness, Recall, RecallQuery, RetainReceipt};

    use super::*;

    /// A server that takes requests and answers retains of some banks alone; counts what it does not answer.
    struct Hung {
        can: Capabilities,
        /// How the names of those banks end.
        stores: &'static str,
        unanswered: AtomicU32,
    }

    impl Hung {
        fn hang<T>(&self) -> Result<T, Failure> {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
            Err(Failure::transient(NOTHING_CAME, "no complete response within 60 s"))
        }
    }

    #[async_trait]
    impl MemorySystem for Hung {
        fn capabilities(&self) -> &Capabilities {
            &self.can
        }

        async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
            Ok(bank.name.clone())
        }

        async fn retain(
            &self,
            bank: &BankRef,
            _: &[StreamEntry],
            _: StepContext<'_>,
        ) -> Result<RetainReceipt, Failure> {
            if !bank.name.ends_with(self.stores) {
                return self.hang();
            }
            // it is under way while others end
            tokio::task::yield_now().await;
            Ok(RetainReceipt::default())
        }

        async fn readiness(&self, _: &BankRef, _: u32) -> Result<Readiness, Failure> {
            Ok(Readiness::Returned)
        }

        async fn recall(&self, _: &BankRef, _: &RecallQuery<'_>) -> Result<Recall, Failure> {
            self.hang()
        }

        async fn list(&self, _: &BankRef, _: u32, _: &ListCursor) -> Result<ListedPage, Failure> {
            self.hang()
        }

        async fn reset_bank(&self, _: &BankRef) -> Result<(), Failure> {
            Ok(())
        }

        async fn health(&self) -> Result<String, Failure> {
            Ok(String::new())
        }
    }

    #[tokio::test]
    async fn a_server_that_hangs_is_given_up_after_the_first_operations() {
        // of one bank: it is answered when the others were given up already
        for (stores, what) in [("no bank", "retains"), ("", "recalls"), ("-b0", "retains")] {
            let hung = Hung { can: Capabilities::from_items("1"), stores, unanswered: AtomicU32::new(0) };
            let mut suite = Suite::new(&hung, "bench-load-x-stress", &WIDTHS);
            let failure = suite.all(&CancellationToken::new()).await.expect_err("it hangs");
            assert_eq!((failure.code.as_str(), suite.hanging()), (NOTHING_CAME, Some(what)));
            let unanswered = hung.unanswered.load(Ordering::Relaxed);
            assert!((HANGING..HANGING + AT_A_TIME as u32).contains(&unanswered), "{unanswered} {what} {stores}");
        }
    }

    #[test]
    fn one_answer_of_whatever_kind_ends_the_silence() {
        let silence = Silence::default();
        let late = || Err::<(), _>(Failure::transient(NOTHING_CAME, "60 s"));
        (1..HANGING).for_each(|_| silence.note(&late()));
        assert!(silence.given_up().is_none());
        silence.note(&Err::<(), _>(Failure::transient("system_http_500", "500")));
        (0..HANGING).for_each(|_| silence.note(&late()));
        assert!(silence.given_up().is_none(), "it is a result that most of them end so");
    }

    #[test]
    fn what_never_reached_the_server_is_no_answer_and_a_late_one_changes_nothing() {
        let silence = Silence::default();
        let failed = |code: &str| Err::<(), _>(Failure::transient(code, "x"));
        for code in ["system_unreachable", "system_connection"] {
            silence.note(&failed(code));
        }
        (0..HANGING).for_each(|_| silence.note(&failed(NOTHING_CAME)));
        silence.note(&Ok(()));
        assert_eq!(silence.given_up().map(|failure| failure.code.as_str()), Some(NOTHING_CAME));
    }
}
