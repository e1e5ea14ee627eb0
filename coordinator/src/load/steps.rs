//! The steps of a load: at each rate operations begin on time, and what comes of them is counted.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bench_load::{
    arrivals::Arrivals,
    draws::Draws,
    mix::Operation,
    pacer::{self, Counted, Metronome, Step, StepTally, Wait},
    result::{Findings, OperationResult, Percentiles, StepResult},
    saturation::Standing,
    tally::Failed,
};
use bench_proto::failure::Failure;
use bench_systems::{MemorySystem, StepContext};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{
    banks::{Bank, Banks, MemorySearch, entry, look_for},
    plan::LoadPlan,
};
use crate::{app::systems::Driven, cli::LoadArrivals, exit::CliError, out};

/// Rates that are tried beyond those that were given, each twice the one before.
const MORE_STEPS: usize = 12;

/// Makes the steps with banks of one size.
pub(super) struct Stepper<'a> {
    pub(super) driven: &'a Driven,
    pub(super) plan: &'a LoadPlan,
    pub(super) stop: &'a CancellationToken,
    pub(super) banks: Arc<Banks>,
}

impl Stepper<'_> {
    /// All rates, and those beyond until the system is behind where that is wanted.
    ///
    /// # Errors
    /// Exit 4 when this process can start no thread.
    pub(super) async fn all(&self, steps: &mut Vec<StepResult>) -> Result<(), CliError> {
        let metronome = Metronome::start().map_err(|error| {
            CliError::infrastructure(format!("the process cannot start a thread: {error}")).because(error)
        })?;
        let mut wait = Wait::Exact(metronome);
        let mut rates = self.plan.shown.rates.clone();
        let most = if self.plan.arrivals == LoadArrivals::Steps { rates.len() + MORE_STEPS } else { rates.len() };
        let mut at = 0;
        while at < rates.len() && !self.stop.is_cancelled() {
            if let Some(begins) = self.plan.begins(at) {
                self.wait_for(begins).await?;
            }
            let step = self.one(rates[at], at, steps.len(), &mut wait).await;
            let behind = step.standing == Standing::Behind;
            steps.push(step);
            at += 1;
            if self.plan.arrivals == LoadArrivals::Steps {
                if behind {
                    break;
                }
                if at == rates.len() && at < most {
                    rates.push(rates[at - 1] * 2.0);
                }
            }
        }
        Ok(())
    }

    /// Waits for the moment at which all processes begin a step.
    async fn wait_for(&self, moment: Timestamp) -> Result<(), CliError> {
        let left = moment.duration_since(Timestamp::now());
        let Ok(left) = Duration::try_from(left) else {
            return Err(CliError::infrastructure(format!(
                "a step was to begin at {moment}, and what came before took longer: give a later --start-at"
            )));
        };
        out::note(&format!("waits until {moment}"));
        tokio::select! {
            () = tokio::time::sleep(left) => {}
            () = self.stop.cancelled() => {}
        }
        Ok(())
    }

    /// One step; `number` counts all of the load, so that each has draws of its own.
    async fn one(&self, rate: f64, at: usize, number: usize, wait: &mut Wait) -> StepResult {
        let plan = &self.plan.shown;
        let size = self.banks.size;
        out::note(&format!("step {}: {size} memories a bank, {rate} a second", at + 1));
        let arrivals = match self.plan.arrivals {
            LoadArrivals::Poisson => Arrivals::Poisson,
            LoadArrivals::Constant | LoadArrivals::Steps => Arrivals::Constant,
        };
        let seed = self.plan.seed.wrapping_add(number as u64);
        let step = Step {
            arrivals,
            rate,
            seed,
            warm_up: Duration::from_secs_f64(plan.warm_up_seconds),
            window: Duration::from_secs_f64(plan.seconds),
            drain: Duration::from_secs_f64(plan.drain_seconds),
            in_flight: plan.in_flight as usize,
        };
        let memories_per_bank = self.banks.memories_per_bank();
        let hands = Arc::new(Hands {
            system: Arc::clone(&self.driven.system),
            banks: Arc::clone(&self.banks),
            ordered: self.plan.ordered,
            top_k: plan.top_k,
            seen: RecallCounts::default(),
        });
        let (mut draws, mix, banks) = (Draws::new(seed, 1), plan.mix, Arc::clone(&self.banks));
        let draw = move |counted: Counted| {
            let (operation, bank) = (mix.draw(&mut draws), banks.draw(&mut draws));
            // drawn whatever the operation: the bank of the next one does not hang on it
            let index = draws.below(banks.size.into()) as u32;
            (class_of(operation), DueOperation { operation, bank, index, counted })
        };
        let carry_out = |asked: DueOperation| {
            let hands = Arc::clone(&hands);
            async move { hands.carry_out(asked).await.map_err(|failure| failed(&failure)) }
        };
        let begun_at_ms = Timestamp::now().as_millisecond() as u64 + step.warm_up.as_millis() as u64;
        let tally = pacer::run(&step, wait, self.stop, Operation::ALL.len(), draw, carry_out).await;
        let of_step = StepResult {
            bank_size: size,
            memories_per_bank,
            rate,
            begun_at_ms,
            seconds: tally.seconds,
            standing: Standing::Held,
            growth: None,
            operations: BTreeMap::new(),
            warm_up: OperationResult::default(),
            waited_for_a_place: tally.waited,
            late_ms: Percentiles::default(),
            late: tally.late.clone(),
        };
        filled_in(of_step, tally, hands.seen.findings(), plan.seconds)
    }
}

fn class_of(operation: Operation) -> usize {
    Operation::ALL.iter().position(|known| *known == operation).unwrap_or_default()
}

fn filled_in(mut step: StepResult, tally: StepTally, findings: Findings, window: f64) -> StepResult {
    for (operation, tally) in Operation::ALL.into_iter().zip(tally.classes) {
        if tally.intended() > 0 {
            let findings = (operation == Operation::Recall).then_some(findings);
            step.operations.insert(operation, OperationResult { tally, findings, ..OperationResult::default() });
        }
    }
    step.warm_up.tally = tally.warm_up;
    step.count(window);
    step
}

/// A failure as it is counted.
pub(super) fn failed(failure: &Failure) -> Failed {
    Failed { kind: failure.code.to_string(), message: failure.message.clone() }
}

/// An operation that is due.
struct DueOperation {
    operation: Operation,
    bank: Arc<Bank>,
    /// The memory that a recall asks for.
    index: u32,
    counted: Counted,
}

/// What recalls of a step have found.
#[derive(Default)]
struct RecallCounts {
    found: AtomicU64,
    missed: AtomicU64,
    foreign: AtomicU64,
}

impl RecallCounts {
    fn findings(&self) -> Findings {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Findings { found: read(&self.found), missed: read(&self.missed), foreign: read(&self.foreign) }
    }
}

/// Carries operations out.
struct Hands {
    system: Arc<dyn MemorySystem>,
    banks: Arc<Banks>,
    ordered: bool,
    top_k: u32,
    seen: RecallCounts,
}

impl Hands {
    async fn carry_out(&self, asked: DueOperation) -> Result<(), Failure> {
        let work = async {
            match asked.operation {
                Operation::Retain => self.retain(&asked.bank).await,
                Operation::Recall => self.recall(&asked).await,
            }
        };
        match self.system.capabilities().deadline {
            None => work.await,
            Some(deadline) => tokio::time::timeout(deadline, work).await.unwrap_or_else(|_| {
                Err(Failure::transient("system_timeout", format!("hangs for {} s", deadline.as_secs())))
            }),
        }
    }

    async fn retain(&self, bank: &Bank) -> Result<(), Failure> {
        let _turn = if self.ordered { Some(bank.turn.lock().await) } else { None };
        let entry = entry(self.banks.facts, bank.number, bank.take_next());
        self.system.retain(&bank.reference, &[entry], StepContext::default()).await.map(drop)
    }

    async fn recall(&self, asked: &DueOperation) -> Result<(), Failure> {
        let bank = &asked.bank;
        let fact = self.banks.facts.fact(bank.number, asked.index);
        let search = MemorySearch {
            bank: &bank.reference,
            number: bank.number,
            fact: &fact,
            words: &self.banks.words,
            k: self.top_k,
            entries: self.banks.size,
        };
        let brought = look_for(self.system.as_ref(), search).await?;
        if asked.counted == Counted::Step {
            let counter = if brought.copies > 0 { &self.seen.found } else { &self.seen.missed };
            counter.fetch_add(1, Ordering::Relaxed);
            self.seen.foreign.fetch_add(brought.foreign.into(), Ordering::Relaxed);
        }
        Ok(())
    }
}
