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
use bench_proto::{
    dataset::StreamEntry,
    failure::{Failure, FailureClass},
    ids::Sha256Hash,
};
use bench_systems::{BankRef, MemorySystem, StepContext, filling::until_ready};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{
    banks::{AT_A_TIME, Brought, MemorySearch, bank_of, look_for, query},
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
/// Memories in each bank when it has grown to its end.
const FULL: u32 = ROUNDS * GROWTH;
/// Entries that may be seen when memories were sent a second time: what is appended then is behind the others.
const FULL_TWICE: u32 = FULL + DUPLICATES;

/// Carries the suite out. What was measured before an interruption or a failure is a result too, and says why it is not whole.
///
/// # Errors
/// Exit 2 for a system that cannot do what is asked, 4 when it does not store or hangs, or 3 when it was interrupted, before anything
/// was measured.
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
    let memories = BANKS * FULL;
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
    let failure = ended.err().map(|failure| why_ended(driven, &suite, &failure));
    if !suite.has_measured() {
        return Err(failure.map_or_else(|| interrupted(id), CliError::infrastructure));
    }
    let settings = serde_json::to_vec(&driven.settings).map_err(CliError::usage_of)?;
    let Suite { at_once, retain, stored, duplicates, .. } = suite;
    let result = StressResult {
        schema: SCHEMA.to_owned(),
        schema_version: SCHEMA_VERSION,
        suite_version: SUITE_VERSION,
        system: driven.name.clone(),
        system_version: can.version.clone(),
        settings_sha256: Sha256Hash::of_bytes(&settings).hex(),
        process: process(id, SEED, started_at, stop.is_cancelled()),
        widths,
        retain,
        at_once,
        stored,
        duplicates,
        failure,
        notes: Vec::new(),
    };
    Ok(result.counted())
}

/// What somebody is told whose system has ended the suite.
fn why_ended(driven: &Driven, suite: &Suite<'_>, failure: &Failure) -> String {
    let place = driven.system.place();
    let system = if place.is_empty() { driven.name.clone() } else { format!("{} at {place}", driven.name) };
    match suite.hanging() {
        Some(what) => format!(
            "{system} hangs: {HANGING} {what} ended with their time over before one was answered ({failure}); look at its log and at \
             what it waits for itself (a database, a model), or raise `timeout` in its file if it is only slow"
        ),
        None => {
            let doing = suite.doing;
            format!("{system} does not {doing}: {failure}; `bench-coord systems check SYSTEM` shows what works")
        }
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
    /// What the system is to do, for who is told that it does not.
    doing: &'static str,
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
        let bank = |number| bank_of(facts, format!("{named}-b{number}"), number, FULL);
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
            words: BankWords::from_facts(facts, BANKS),
            widths,
            banks: (0..BANKS).map(bank).collect(),
            doing: "make banks",
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

    /// Whether anything was measured that a result can tell of.
    fn has_measured(&self) -> bool {
        self.at_once.iter().any(|at| !at.rounds.is_empty())
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
            self.stored = self.count(FULL).await;
            self.send_again().await
        };
        stop.run_until_cancelled(end).await.unwrap_or(Ok(()))
    }

    /// Each bank grows by its memories of a round, four banks side by side, one memory after the other.
    async fn grow(&mut self, round: u32) -> Result<(), Failure> {
        let system = self.system;
        self.doing = "store";
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
        self.doing = "get ready for recalls";
        for bank in &self.banks {
            until_ready(system, bank, stored).await?;
            system.prepare(bank, Some(&query("anything", 1, stored))).await?;
        }
        Ok(())
    }

    /// All recalls of a round, so many at once as stands at place `at`.
    async fn ask(&mut self, round: u32, at: usize) -> Result<(), Failure> {
        self.doing = "answer recalls";
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
        let brought = self.look_for(asked, stored).await?;
        let found = u64::from(brought.copies > 0);
        Ok(Findings { found, missed: 1 - found, foreign: brought.foreign.into() })
    }

    /// How often a memory is among the hits of a bank to which it was sent a second time.
    async fn copies(&self, asked: Asked) -> Result<usize, Failure> {
        Ok(self.look_for(asked, FULL_TWICE).await?.copies)
    }

    async fn look_for(&self, Asked { bank: number, index, k }: Asked, entries: u32) -> Result<Brought, Failure> {
        let (bank, fact, words) = (&self.banks[number as usize], self.facts.fact(number, index), &self.words);
        look_for(self.system, MemorySearch { bank, number, fact: &fact, words, k, entries }).await
    }

    /// Items of all banks, of their first entries, when the system counts them. One that fails at it has not counted.
    async fn count(&self, entries: u32) -> Option<Count> {
        let mut all = Count::default();
        for bank in &self.banks {
            let counted = match self.system.verify(bank, entries).await {
                Ok(counted) => counted?,
                Err(failure) => {
                    out::note(&format!("the items are not counted: {failure}"));
                    return None;
                }
            };
            all.expected += counted.expected;
            all.found += counted.found;
        }
        Some(all)
    }

    /// The first memories of each bank once more, as many in a request as the system takes; then each is asked for.
    async fn send_again(&mut self) -> Result<(), Failure> {
        let system = self.system;
        self.duplicates.before = self.stored;
        for at in 0..self.banks.len() {
            self.send_again_to(at).await;
        }
        self.doing = "get ready after memories were sent a second time";
        for bank in &self.banks {
            until_ready(system, bank, FULL).await?;
        }
        let after = self.count(FULL_TWICE).await;
        let widest = self.widths.last().copied().unwrap_or(1);
        let this = &*self;
        let all = (0..BANKS).flat_map(|bank| (0..DUPLICATES).map(move |index| Asked { bank, index, k: widest }));
        let asking: Vec<_> = all.map(|asked| this.copies(asked)).collect();
        let ended: Vec<Result<usize, Failure>> = stream::iter(asking).buffer_unordered(AT_A_TIME).collect().await;
        let copies: Vec<usize> = ended.into_iter().filter_map(Result::ok).collect();
        let count = |wanted: fn(usize) -> bool| copies.iter().filter(|copies| wanted(**copies)).count() as u64;
        let asked = copies.len() as u64;
        let (seen_once, seen_twice) = (count(|copies| copies == 1), count(|copies| copies > 1));
        self.duplicates = Duplicates { after, asked, seen_once, seen_twice, ..self.duplicates };
        Ok(())
    }

    /// The first memories of a bank once more; what a request has left is sent again, as when a bank is filled.
    async fn send_again_to(&mut self, at: usize) {
        let (system, bank) = (self.system, &self.banks[at]);
        let batch = system.capabilities().max_batch.clamp(1, DUPLICATES) as usize;
        let mut rest = &entries(bank)[..DUPLICATES as usize];
        while !rest.is_empty() {
            let chunk = &rest[..batch.min(rest.len())];
            let ended = system.retain(bank, chunk, StepContext::default()).await;
            let (done, counter) = match &ended {
                Ok(receipt) if (receipt.left as usize) < chunk.len() => {
                    (chunk.len() - receipt.left as usize, &mut self.duplicates.sent)
                }
                // who refuses what is there already has not stored it twice
                Err(failure) if failure.class == FailureClass::Permanent => (chunk.len(), &mut self.duplicates.refused),
                _ => (chunk.len(), &mut self.duplicates.failed),
            };
            *counter += done as u64;
            rest = &rest[done..];
        }
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
    use std::sync::Mutex;

    use async_trait::async_trait;
    use bench_proto::step::RetrievedHit;
    use bench_systems::{Capabilities, Counted, ListCursor, ListedPage, Readiness, Recall, RecallQuery, RetainReceipt};

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

    /// Keeps memories behind each other, and sees of them what an operation may see.
    struct Keeps {
        can: Capabilities,
        banks: Mutex<BTreeMap<String, Vec<String>>>,
        /// What becomes of a memory that it has already.
        again: Again,
        /// It makes something of each memory, and brings that too.
        derives: bool,
        /// It gets ready no more, and counts no more, from so many entries on.
        fails_from: u32,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Again {
        Stored,
        Refused,
        Fails,
    }

    impl Keeps {
        fn new(again: Again) -> Self {
            let can = Capabilities::from_items("1");
            Self { can, banks: Mutex::default(), again, derives: false, fails_from: u32::MAX }
        }

        fn check(&self, entries: u32) -> Result<(), Failure> {
            match entries >= self.fails_from {
                true => Err(Failure::transient("system_http_503", "busy")),
                false => Ok(()),
            }
        }

        fn of_bank<T>(&self, bank: &BankRef, use_of: impl FnOnce(&mut Vec<String>) -> T) -> T {
            let mut banks = self.banks.lock().expect("is not poisoned");
            use_of(banks.entry(bank.name.clone()).or_default())
        }

        async fn duplicates(&self) -> Duplicates {
            let mut suite = Suite::new(self, "bench-load-x-stress", &WIDTHS);
            suite.all(&CancellationToken::new()).await.expect("it answers");
            suite.duplicates
        }
    }

    #[async_trait]
    impl MemorySystem for Keeps {
        fn capabilities(&self) -> &Capabilities {
            &self.can
        }

        async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
            Ok(bank.name.clone())
        }

        async fn retain(
            &self,
            bank: &BankRef,
            entries: &[StreamEntry],
            _: StepContext<'_>,
        ) -> Result<RetainReceipt, Failure> {
            let texts = entries.iter().map(|entry| match entry {
                StreamEntry::Memory(memory) => memory.text.clone(),
                _ => String::new(),
            });
            let texts: Vec<String> = texts.collect();
            self.of_bank(bank, |held| match self.again {
                Again::Refused if held.contains(&texts[0]) => Err(Failure::permanent("system_http_409", "it is there")),
                Again::Fails if held.contains(&texts[0]) => Err(Failure::transient("system_http_503", "busy")),
                _ => {
                    held.extend(texts);
                    Ok(RetainReceipt::default())
                }
            })
        }

        async fn readiness(&self, _: &BankRef, entries: u32) -> Result<Readiness, Failure> {
            self.check(entries).map(|()| Readiness::Proven)
        }

        async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
            let drawer = query.text.split(' ').nth(5).unwrap_or_default();
            let found = self.of_bank(bank, |held| {
                let seen = held.iter().take(query.visible_entries as usize);
                seen.filter(|text| text.contains(drawer)).cloned().collect::<Vec<_>>()
            });
            let made_of = found.first().filter(|_| self.derives).map(|text| format!("It was noted: {text}"));
            let hit = |text: String| RetrievedHit { text, ..RetrievedHit::default() };
            Ok(Recall { hits: found.into_iter().chain(made_of).map(hit).collect(), ..Recall::default() })
        }

        async fn verify(&self, bank: &BankRef, entries: u32) -> Result<Option<Counted>, Failure> {
            self.check(entries)?;
            let found = self.of_bank(bank, |held| held.len().min(entries as usize) as u64);
            Ok(Some(Counted { expected: FULL.into(), found }))
        }

        async fn list(&self, _: &BankRef, _: u32, _: &ListCursor) -> Result<ListedPage, Failure> {
            Ok(ListedPage::default())
        }

        async fn reset_bank(&self, _: &BankRef) -> Result<(), Failure> {
            Ok(())
        }

        async fn health(&self) -> Result<String, Failure> {
            Ok(String::new())
        }
    }

    /// What is appended is behind all that was stored before.
    #[tokio::test]
    async fn what_is_stored_a_second_time_is_counted_and_seen_and_what_is_made_of_it_is_not() {
        let twice = Keeps::new(Again::Stored).duplicates().await;
        assert_eq!((twice.sent, twice.after.map(|after| after.found)), (100, Some(1_100)), "{twice:?}");
        assert_eq!((twice.asked, twice.seen_twice, twice.stored_once()), (100, 100, Some(false)));
        let derives = Keeps { derives: true, ..Keeps::new(Again::Refused) }.duplicates().await;
        assert_eq!((derives.sent, derives.refused, derives.failed), (0, 100, 0));
        assert_eq!((derives.seen_once, derives.seen_twice, derives.stored_once()), (100, 0, Some(true)));
        let fails = Keeps::new(Again::Fails).duplicates().await;
        assert_eq!((fails.failed, fails.stored_once()), (100, None), "nothing was sent a second time");
    }

    #[tokio::test]
    async fn what_was_measured_stays_where_the_system_fails_later() {
        let of = |fails_from| Keeps { fails_from, ..Keeps::new(Again::Stored) };
        let (late, counts_no_more, never) = (of(50), of(FULL_TWICE), of(1));
        for (system, rounds, ends) in [(&late, 4, true), (&counts_no_more, 10, false), (&never, 0, true)] {
            let mut suite = Suite::new(system, "bench-load-x-stress", &WIDTHS);
            let ended = suite.all(&CancellationToken::new()).await;
            let measured = suite.at_once[0].rounds.len();
            assert_eq!((measured, ended.is_err(), suite.has_measured()), (rounds, ends, rounds > 0));
            if ends {
                assert_eq!(suite.doing, "get ready for recalls");
            }
        }
        let uncounted = counts_no_more.duplicates().await;
        assert_eq!((uncounted.before.is_some(), uncounted.after), (true, None), "{uncounted:?}");
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
