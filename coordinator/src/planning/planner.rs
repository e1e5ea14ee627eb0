//! Writes the plan of a run into the store, bank by bank, ahead of the workers (P16, P28).

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use bench_datasets::Dataset;
use bench_plan::{Rounds, SampledBank, segments};
use bench_proto::{
    canary,
    dataset::{Bank, BankContent, GoldRecord, Question},
    ids::RunNo,
    spec::RunSpec,
};
use bench_store::{Item, Later, LaterRound, NewBank, RunState, Runs, Segment, Store, retry_until};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::filled::FilledBefore;
use crate::exit::CliError;

/// Banks written in one transaction.
const BANKS_PER_BATCH: usize = 8;
/// Bytes of items written in one transaction.
const BYTES_PER_BATCH: usize = 4 << 20;
/// How long a planner waits for the filling of a run that nobody works on, before its run fills banks of its own.
const UNTIL_GIVEN_UP: Duration = Duration::from_secs(30);
/// How long a planner waits for a paused run of its own group before it pauses its run too: whoever pauses a group pauses its runs one
/// after the other.
const UNTIL_PAUSED_TOO: Duration = Duration::from_secs(2);
/// How often a planner looks whether a bank that another run fills is filled.
const LOOK_FOR_FILLED: Duration = Duration::from_millis(500);
/// The same in a cluster, where many such runs look at one store.
const LOOK_FOR_FILLED_AFAR: Duration = Duration::from_secs(1);
/// Banks that may be planned and not yet ready: more would only fill the store ahead of time.
const BANKS_AHEAD: i64 = 64;
/// Questions that may be planned and not yet ended: a bound on the rows that the dispatcher looks through.
const QUESTIONS_AHEAD: u64 = 8192;
/// How often the planner looks whether it may go on.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Streams banks of an open dataset into the store.
pub(crate) struct Planner {
    /// Number of the run in its store.
    pub run: RunNo,
    /// The open dataset.
    pub dataset: Arc<dyn Dataset>,
    /// The banks of the sample in the order of work: their position is their number.
    pub banks: Vec<SampledBank>,
    /// The run's spec: how many sessions are kept of each bank, and which facts are stored beside them.
    pub spec: Arc<RunSpec>,
    /// Which questions are asked only after a look, of a run that may stop early.
    pub rounds: Option<Arc<Rounds>>,
    /// Where imported archives of filled banks lie.
    pub home: PathBuf,
    /// Banks that an earlier owner has planned already.
    pub done: u32,
    /// What another run is about to fill is waited for. Whoever leaves asks what is filled by now, and its run fills the rest.
    pub waits: bool,
}

/// The wait for what other runs are about to fill, over all banks of a plan.
struct Awaiting<'a> {
    store: &'a dyn Store,
    /// Id of the run's group.
    group: Option<String>,
    stop: &'a CancellationToken,
    look_again: Duration,
    unattended: Unattended,
}

/// How long nobody was at work on the run whose banks are awaited. Looks are counted, not the clock: while this process stood still, or
/// the store was away, nobody was looked for.
#[derive(Debug, Default)]
struct Unattended(Duration);

impl Unattended {
    /// Begins anew, unless it has been too long already: of a run that was given up not every bank is waited for.
    fn begin(&mut self) {
        if !self.is_too_long() {
            self.0 = Duration::ZERO;
        }
    }

    /// Counts a look that saw nobody.
    fn seen(&mut self, since_last_look: Duration, look_again: Duration) {
        self.0 += since_last_look.min(look_again * 2);
    }

    fn is_too_long(&self) -> bool {
        self.0 > UNTIL_GIVEN_UP
    }
}

impl Planner {
    /// Plans all banks; may be stopped and started again at any point. A store that is away is waited for: every write of a plan may
    /// be made twice.
    ///
    /// # Errors
    /// When the dataset or the store fails.
    pub(crate) async fn run(
        &self,
        store: Arc<dyn Store>,
        opened: Arc<Notify>,
        stop: CancellationToken,
        ahead: Ahead,
    ) -> Result<(), CliError> {
        let taken_over = &self.spec.taken_over;
        let mut awaiting = Awaiting {
            store: store.as_ref(),
            group: None,
            stop: &stop,
            look_again: if ahead == Ahead::Unbounded { LOOK_FOR_FILLED_AFAR } else { LOOK_FOR_FILLED },
            unattended: Unattended::default(),
        };
        if !taken_over.banks_of.is_empty() {
            let run = retry_until(stop.cancelled(), || store.run(self.run)).await?;
            awaiting.group = run.group.map(|group| group.id);
        }
        let mut filled = self.filled_by_now(&awaiting).await?;
        // a bank that is filled is asked before the next one is
        let at_once = if taken_over.asks_filled_banks() { 1 } else { BANKS_PER_BATCH };
        let mut next = self.done as usize;
        let questions = |banks: &[SampledBank]| banks.iter().map(|bank| bank.questions.len() as u64).sum::<u64>();
        let mut questions_planned = questions(&self.banks[..next.min(self.banks.len())]);
        while next < self.banks.len() {
            if stop.is_cancelled() {
                return Ok(());
            }
            if ahead == Ahead::Bounded && self.is_far_ahead(store.as_ref(), &stop, questions_planned).await? {
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    () = tokio::time::sleep(LOOK_AGAIN) => continue,
                }
            }
            // reading and serialising is computing: off the threads that talk to the store
            let (dataset, banks, spec) = (
                Arc::clone(&self.dataset),
                self.banks[next..].iter().take(at_once).cloned().collect::<Vec<_>>(),
                Arc::clone(&self.spec),
            );
            let first = next as u32;
            let mut prepared = tokio::task::spawn_blocking(move || {
                prepare(dataset.as_ref(), &banks, first, Some(&spec), BYTES_PER_BATCH)
            })
            .await
            .map_err(|e| CliError::internal_fault("planning the banks", e))??;
            if self.waits && !self.wait_for_filled(&mut awaiting, &prepared.banks, &mut filled).await? {
                return Ok(());
            }
            prepared.banks.iter_mut().for_each(|bank| bank.filled = filled.filled_bank(bank));
            let planned = next + prepared.banks.len();
            if let Some(rounds) = &self.rounds {
                let banks = prepared.banks.iter_mut().zip(&self.banks[next..planned]);
                banks.for_each(|(bank, sampled)| ask_later(bank, sampled, rounds));
            }
            questions_planned += questions(&self.banks[next..planned]);
            next = planned;
            retry_until(stop.cancelled(), || store.put_items(&prepared.items)).await?;
            retry_until(stop.cancelled(), || store.add_banks(self.run, &prepared.banks)).await?;
            opened.notify_one();
        }
        retry_until(stop.cancelled(), || store.finish_plan(self.run)).await?;
        opened.notify_one();
        Ok(())
    }
}

/// Takes the questions out of a bank's segments that are asked in later rounds.
fn ask_later(bank: &mut NewBank, sampled: &SampledBank, rounds: &Rounds) {
    let of: HashMap<u32, u32> = sampled
        .questions
        .iter()
        .copied()
        .zip(rounds.of_bank(sampled.file_index).iter().map(|r| u32::from(*r)))
        .collect();
    let round_of = |question: &u32| of.get(question).copied().unwrap_or(0);
    let mut later: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for (number, segment) in (0_u32..).zip(&mut bank.segments) {
        for question in segment.questions.extract_if(.., |question| round_of(question) > 0) {
            later.entry((round_of(&question), number)).or_default().push(question);
        }
    }
    let rounds = later.into_iter().map(|((round, segment), questions)| LaterRound { round, segment, questions });
    let rounds: Vec<LaterRound> = rounds.collect();
    bank.later = (!rounds.is_empty()).then_some(Later { rounds, left_out: false });
}

impl Planner {
    /// What other runs have filled, or are about to.
    async fn filled_by_now(&self, awaiting: &Awaiting<'_>) -> Result<FilledBefore, CliError> {
        let group = awaiting.group.as_deref();
        FilledBefore::of_run(awaiting.store, &self.spec, &self.home, group, awaiting.stop).await
    }

    /// Waits for those who are about to fill what new banks are to hold; false where the plan is not to be gone on with: it was
    /// stopped, or its run is paused with the one that fills.
    async fn wait_for_filled(
        &self,
        awaiting: &mut Awaiting<'_>,
        banks: &[NewBank],
        filled: &mut FilledBefore,
    ) -> Result<bool, CliError> {
        awaiting.unattended.begin();
        let (mut looked, mut paused_since) = (Instant::now(), None::<Instant>);
        while banks.iter().any(|bank| filled.awaits(bank)) {
            *filled = self.filled_by_now(awaiting).await?;
            let since_last_look = looked.elapsed();
            looked = Instant::now();
            match filled.paused() {
                _ if filled.is_worked_on() => (awaiting.unattended, paused_since) = (Unattended::default(), None),
                // banks of its own would be filled under the same cap, and at the same server
                Some(why) => {
                    awaiting.unattended = Unattended::default();
                    if paused_since.get_or_insert_with(Instant::now).elapsed() >= UNTIL_PAUSED_TOO {
                        let pause = || {
                            awaiting.store.set_run_state(self.run, &[RunState::Running], RunState::Paused, Some(why))
                        };
                        retry_until(awaiting.stop.cancelled(), pause).await?;
                        return Ok(false);
                    }
                }
                None => {
                    awaiting.unattended.seen(since_last_look, awaiting.look_again);
                    if awaiting.unattended.is_too_long() {
                        break;
                    }
                }
            }
            tokio::select! {
                () = awaiting.stop.cancelled() => return Ok(false),
                () = tokio::time::sleep(awaiting.look_again) => {}
            }
        }
        Ok(true)
    }

    async fn is_far_ahead(
        &self,
        store: &dyn Runs,
        stop: &CancellationToken,
        questions_planned: u64,
    ) -> Result<bool, CliError> {
        let counters = retry_until(stop.cancelled(), || store.run(self.run)).await?.counters;
        let ended = u64::try_from(counters.ended()).unwrap_or(0);
        let banks = counters.banks_planned - counters.banks_ready;
        Ok(banks >= BANKS_AHEAD || questions_planned.saturating_sub(ended) >= QUESTIONS_AHEAD)
    }
}

/// How far a plan may be ahead of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// The plan is written so far ahead that no worker waits for it: its writer stays with the run anyway.
    Bounded,
    /// As far as it goes: its writer may leave, and the dispatcher holds banks back.
    Unbounded,
}

/// Banks as items and rows.
pub(crate) struct Prepared {
    /// Three items per bank.
    pub items: Vec<Item>,
    /// The rows.
    pub banks: Vec<NewBank>,
    /// The sample's questions and their gold, per bank.
    pub parts: Vec<BankParts>,
}

/// The questions of a bank that are in the sample.
pub(crate) struct BankParts {
    /// The dataset's id of the bank.
    pub bank_id: String,
    /// In the dataset's order.
    pub questions: Vec<Question>,
    /// One record per question, in the same order.
    pub gold: Vec<GoldRecord>,
}

/// Reads banks until the batch is full and turns them into items and rows; at least one.
///
/// # Errors
/// When the dataset fails or is not the one that was sampled.
pub(crate) fn prepare(
    dataset: &dyn Dataset,
    sampled: &[SampledBank],
    first: u32,
    spec: Option<&RunSpec>,
    most_bytes: usize,
) -> Result<Prepared, CliError> {
    let mut prepared = Prepared { items: Vec::new(), banks: Vec::new(), parts: Vec::new() };
    let mut bytes = 0;
    for (bank_no, sampled) in (first..).zip(sampled) {
        let bank = dataset.bank(sampled.file_index as usize)?;
        let (mut content, mut parts) = parts(bank, sampled, spec.and_then(|spec| spec.sample.max_sessions))?;
        let facts = spec.map(|spec| spec.facts_in(bank_no, &sampled.bank_id)).unwrap_or_default();
        canary::plant(&facts, &mut content, &mut parts.questions);
        let BankParts { questions, gold, .. } = &parts;
        let entries = u32::try_from(content.entries.len()).unwrap_or(u32::MAX);
        let segments = segments(questions.iter().map(|q| (q.index, q.ask_after)), entries);
        let mut segments: Vec<Segment> =
            segments.into_iter().map(|s| Segment { until: s.until, questions: s.questions }).collect();
        // facts, and what the bank holds, are asked for when all questions have been recalled: a segment of its own, which retains nothing (P45)
        let closes = !facts.is_empty() || spec.is_some_and(|spec| spec.lists);
        let closing = segments.last().filter(|_| closes).map(|last| last.until);
        segments.extend(closing.map(|until| Segment { until, questions: Vec::new() }));
        let item = |value: serde_json::Result<Vec<u8>>| {
            value.map(Item::from_bytes).map_err(|e| {
                CliError::infrastructure(format!("bank {} cannot be stored: {e}", sampled.bank_id)).because(e)
            })
        };
        let items = [
            item(serde_json::to_vec(&content))?,
            item(serde_json::to_vec(questions))?,
            item(serde_json::to_vec(gold))?,
        ];
        prepared.banks.push(NewBank {
            bank_no,
            bank_id: sampled.bank_id.clone(),
            content: items[0].hash,
            questions: items[1].hash,
            gold: items[2].hash,
            segments,
            filled: None,
            later: None,
        });
        bytes += items.iter().map(|i| i.bytes.len()).sum::<usize>();
        prepared.items.extend(items);
        prepared.parts.push(parts);
        if bytes >= most_bytes {
            break;
        }
    }
    Ok(prepared)
}

/// Reads all banks of a sample, for a run of this spec where there is one, as many at a time as one transaction writes: no more of a
/// dataset is ever in memory.
pub(crate) fn batches<'a>(
    dataset: &'a dyn Dataset,
    sampled: &'a [SampledBank],
    spec: Option<&'a RunSpec>,
) -> impl Iterator<Item = Result<Prepared, CliError>> + Send + 'a {
    let mut next = 0;
    std::iter::from_fn(move || {
        let left = sampled.get(next..).filter(|left| !left.is_empty())?;
        let batch = prepare(dataset, left, next as u32, spec, BYTES_PER_BATCH);
        // a bank that cannot be read ends it
        next = batch.as_ref().map_or(usize::MAX, |batch| next + batch.banks.len());
        Some(batch)
    })
}

/// The part of a bank that the sample needs; gold apart from everything that leaves the harness.
///
/// # Errors
/// When the bank has not the questions that were sampled.
pub(crate) fn parts(
    mut bank: Bank,
    sampled: &SampledBank,
    max_sessions: Option<u32>,
) -> Result<(BankContent, BankParts), CliError> {
    if let Some(most) = max_sessions {
        bank.content.keep_sessions(most);
    }
    let entries = u32::try_from(bank.content.entries.len()).unwrap_or(u32::MAX);
    let wanted: HashSet<u32> = sampled.questions.iter().copied().collect();
    let (mut questions, mut gold) = (Vec::with_capacity(wanted.len()), Vec::with_capacity(wanted.len()));
    for (mut question, record) in bank.questions.into_iter().zip(bank.gold) {
        if wanted.contains(&question.index) {
            question.ask_after = question.ask_after.min(entries);
            questions.push(question);
            gold.push(record);
        }
    }
    if questions.len() != wanted.len() {
        return Err(CliError::infrastructure(format!(
            "bank {} has {} of the {} questions of the sample: the dataset has changed since the run was planned",
            sampled.bank_id,
            questions.len(),
            wanted.len()
        )));
    }
    Ok((bank.content, BankParts { bank_id: sampled.bank_id.clone(), questions, gold }))
}

#[cfg(test)]
mod tests {
    use bench_datasets::OpenOptions;
    use bench_store::{NewGroup, NewRun, RunRow, conformance};

    use super::*;

    /// The first of two runs of one group, and what writes the plan of the second, which asks what the first fills.
    async fn group_in(folder: &std::path::Path) -> (Arc<dyn Store>, RunRow, Planner) {
        let store = conformance::store_in(folder).await;
        let of_group = |id: &str| {
            let group = Some(NewGroup { id: "g".to_owned(), cap: None });
            NewRun { group, ..conformance::new_run(id) }
        };
        let first = store.create_run(&of_group("g-r1")).await.expect("is created");
        let mut second = of_group("g-r2");
        second.spec.taken_over.banks_of = vec!["g-r1".to_owned()];
        let run = store.create_run(&second).await.expect("is created");
        let dataset = bench_datasets::open("locomo-sim", &OpenOptions::default(), &|_, _| ()).expect("is generated");
        let bank = dataset.bank(0).expect("is generated");
        let asked = bank.questions.first().expect("is asked something").index;
        let banks =
            vec![SampledBank { file_index: 0, bank_id: "b".to_owned(), entries: 0, turns: 0, questions: vec![asked] }];
        let planner = Planner {
            run,
            dataset: Arc::from(dataset),
            banks,
            spec: Arc::new(second.spec),
            rounds: None,
            home: folder.to_owned(),
            done: 0,
            waits: true,
        };
        let first = store.run(first).await.expect("is there");
        (store, first, planner)
    }

    async fn write(planner: &Planner, store: &Arc<dyn Store>) -> RunRow {
        let (opened, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        planner.run(Arc::clone(store), opened, stop, Ahead::Unbounded).await.expect("is planned as far as it goes");
        store.run(planner.run).await.expect("is there")
    }

    #[test]
    fn a_gap_between_two_looks_is_no_time_in_which_nobody_worked() {
        let mut unattended = Unattended::default();
        unattended.seen(Duration::from_secs(3600), LOOK_FOR_FILLED_AFAR);
        assert!(!unattended.is_too_long(), "the process stood still");
        let looks = |unattended: &mut Unattended, number: u32| {
            (0..number).for_each(|_| unattended.seen(LOOK_FOR_FILLED_AFAR, LOOK_FOR_FILLED_AFAR));
        };
        looks(&mut unattended, 20);
        unattended.begin();
        looks(&mut unattended, 30);
        assert!(!unattended.is_too_long(), "each wait counts its own looks");
        looks(&mut unattended, 1);
        assert!(unattended.is_too_long());
        unattended.begin();
        assert!(unattended.is_too_long(), "a run that was given up is not waited for again");
    }

    #[tokio::test]
    async fn who_leaves_waits_for_no_filling() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, _, planner) = group_in(folder.path()).await;
        let row = write(&Planner { waits: false, ..planner }, &store).await;
        assert!(row.planned && row.state == RunState::Running);
        let banks = store.banks(row.run_no, None).await.expect("are read");
        assert_eq!(banks.iter().map(|bank| bank.filled.is_none()).collect::<Vec<_>>(), [true], "it fills its own");
    }

    #[tokio::test]
    async fn a_run_is_paused_with_the_one_of_its_group_that_fills() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, first, planner) = group_in(folder.path()).await;
        let why = Some("budget: the cap is reached");
        let paused = store.set_run_state(first.run_no, &[RunState::Running], RunState::Paused, why).await;
        assert!(paused.expect("is set"));
        let row = write(&planner, &store).await;
        assert_eq!((row.state, row.planned), (RunState::Paused, false), "its plan stays open");
        let reason = row.reason.expect("is told");
        let goes_on = "`bench-coord resume g --max-cost USD` goes on with both (g-r1: budget: the cap is reached)";
        assert!(reason.contains(goes_on), "{reason}");
        assert!(store.banks(row.run_no, None).await.expect("are read").is_empty(), "it fills none of its own");
    }
}
