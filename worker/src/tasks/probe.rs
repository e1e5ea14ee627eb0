//! The latency probe of a run (P43): when all questions have ended, some of them are recalled again, one at a time, without an
//! answer and without a judge. Then, where the run wants it, at stated rates. Whatever comes of it is a part of the report and of
//! nothing else: recalls that fail are counted, and a probe that cannot be made says why.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bench_proto::{
    call::Usage,
    dataset::Question,
    failure::Failure,
    ids::TaskKey,
    probe::ProbePart,
    step::{Effect, Opens, StepFacts, Timing},
};
use bench_store::{BankRow, BankState, ClaimedTask};
use bench_systems::{BankRef, Capabilities, RecallQuery};
use futures::{StreamExt, stream::FuturesUnordered};
use tracing::info;

use super::{question::recall_query, store_facts};
use crate::{
    clock::StepClock,
    context::RunContext,
    embedder::NOT_MADE,
    ending::{TaskEnd, TaskResult},
    machine,
    tools::Tools,
};

/// Longest time between two stored parts: what a kill costs.
const PART_EVERY: Duration = Duration::from_secs(1);
/// How often the log says how far a slow probe is.
const SAY_EVERY: Duration = Duration::from_secs(10);
/// Longest time that a claim of a probe takes; what was measured until then counts.
const PROBE_WITHIN: Duration = Duration::from_secs(600);
/// Wait after a failed recall, times the failures in a row.
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// Failed recalls in a row after which there is no point in going on.
const MOST_FAILURES: u32 = 5;
/// The timers of the runtime are as coarse as this: what is left is waited for without them.
const TIMER: Duration = Duration::from_millis(2);

/// How often a pass at a rate looks, beside recalls that end or are due, whether it is to stop.
const TICK: Duration = Duration::from_secs(1);

/// Code of the failure of a probe whose banks are in systems that other machines have started.
const ELSEWHERE: &str = "probe_elsewhere";

pub(super) async fn run(tools: &Tools, context: &RunContext, task: ClaimedTask) -> TaskResult {
    context.check_allowed()?;
    let mut prober = Prober::new(tools, context, task);
    if let Some(why) = cannot_be_probed(context.system().capabilities()) {
        return prober.end(Failure::permanent("not_probed", why)).await;
    }
    let stored = match task.epoch {
        ..=1 => Vec::new(),
        _ => tools.store.question_steps(task.run, &[TaskKey::PROBE]).await?,
    };
    let (asked, sample) = sample(tools, context).await?;
    prober.part.of = asked;
    prober.part.left_out = asked.saturating_sub(u32::try_from(sample.len()).unwrap_or(u32::MAX));
    if sample.is_empty() {
        return prober.end(Failure::permanent("not_probed", "no question of the run was recalled")).await;
    }
    let plan = &context.row().spec.limits.latency_probe;
    prober.warm_up(&sample).await?;
    let last = plan.rates.len() as u32;
    for (pass, rate) in (0..).zip(plan.passes()) {
        let made = ProbePart::made_of(&stored, pass) as usize;
        if made >= sample.len() {
            continue;
        }
        let ended = match rate {
            None => prober.one_at_a_time(&sample, made, last == 0).await?,
            Some(rate) => prober.at_rate(&sample, pass, rate, last == pass).await?,
        };
        if ended {
            return Ok(());
        }
    }
    // its last part was stored, and its end was not
    prober.begin(last, plan.rates.last().copied(), sample.len());
    prober.store(true).await
}

/// Why a system is not probed.
fn cannot_be_probed(capabilities: &Capabilities) -> Option<&'static str> {
    match capabilities {
        Capabilities { recall_mutates: true, .. } => Some("a recall changes the system's state"),
        Capabilities { recalls: false, .. } => Some("the system does not search"),
        Capabilities { empty_by_design: true, .. } => Some("the system returns nothing"),
        Capabilities { sees_gold: true, .. } => Some("the system is a control"),
        _ => None,
    }
}

/// A question that is asked again.
struct Asked {
    bank: Arc<BankRow>,
    index: u32,
}

/// The questions of the probe, bank by bank, spread evenly over those that this machine can reach; and how many were to be asked.
/// Those that failed in the run are left out: what they did to the system, they would do again.
async fn sample(tools: &Tools, context: &RunContext) -> Result<(u32, Vec<Asked>), TaskEnd> {
    let run = context.run_no();
    let rows = tools.store.banks(run, None).await?;
    let ready: Vec<Arc<BankRow>> = rows.into_iter().filter(|row| row.state == BankState::Ready).map(Arc::new).collect();
    let reachable = |row: &&Arc<BankRow>| context.system().on_this_machine(&context.bank_at(row)).is_ok();
    let here: Vec<&Arc<BankRow>> = ready.iter().filter(reachable).collect();
    if here.is_empty() && !ready.is_empty() {
        let message = "the banks are in systems that were started on other machines";
        return Err(Failure::transient(ELSEWHERE, message).into());
    }
    let all: Vec<(&Arc<BankRow>, u32)> = here
        .into_iter()
        .flat_map(|row| row.segments.iter().flat_map(move |s| s.questions.iter().map(move |index| (row, *index))))
        .collect();
    let asked = all.len().min(context.row().spec.limits.latency_probe.recalls as usize);
    let chosen: Vec<(&Arc<BankRow>, u32)> = (0..asked).map(|at| all[at * all.len() / asked]).collect();
    let keys: Vec<TaskKey> = chosen.iter().map(|(row, index)| TaskKey::question(row.bank_no, *index)).collect();
    let facts = tools.store.facts_of(run, &keys).await?;
    let good: std::collections::HashSet<TaskKey> =
        facts.into_iter().filter(|facts| facts.outcome.has_score()).map(|facts| facts.task).collect();
    let of_good = chosen.into_iter().zip(keys).filter(|(_, key)| good.contains(key));
    let sample = of_good.map(|((bank, index), _)| Asked { bank: Arc::clone(bank), index }).collect();
    Ok((u32::try_from(asked).unwrap_or(u32::MAX), sample))
}

/// Makes recalls and stores what it measures.
struct Prober<'a> {
    tools: &'a Tools,
    context: &'a RunContext,
    task: ClaimedTask,
    /// What is not stored yet.
    part: ProbePart,
    clock: StepClock,
    begun: Instant,
}

impl<'a> Prober<'a> {
    fn new(tools: &'a Tools, context: &'a RunContext, task: ClaimedTask) -> Self {
        let part = ProbePart {
            machine: machine::class(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            ..ProbePart::default()
        };
        Self { tools, context, task, part, clock: StepClock::start(), begun: Instant::now() }
    }

    /// Begins a part of a pass.
    fn begin(&mut self, pass: u32, rate: Option<f64>, first: usize) {
        let ProbePart { of, left_out, machine, build, .. } = std::mem::take(&mut self.part);
        let first = u32::try_from(first).unwrap_or(u32::MAX);
        self.part = ProbePart { pass, rate, first, of, left_out, machine, build, ..ProbePart::default() };
        self.clock = StepClock::start();
    }

    /// Stores the part, and that the probe has ended with it.
    async fn store(&mut self, is_last: bool) -> TaskResult {
        let mut part = self.part.clone();
        let timing = self.clock.timing(&self.task, part.us.iter().sum());
        // it waited for the questions of its run
        part.timing = Timing { queue_wait_us: 0, dispatch_us: 0, ..timing };
        let step = ProbePart::step(part.pass, part.first);
        let effect = if is_last { Effect::Done { opens: Opens::Nothing } } else { Effect::Continue };
        store_facts(self.tools, self.task, step, StepFacts::Probed(Box::new(part)), effect).await
    }

    /// Ends the probe before its time.
    async fn end(&mut self, why: Failure) -> TaskResult {
        self.part.failure = Some(why);
        self.store(true).await
    }

    /// Builds what the recalls rest on, in this process, and makes one recall that nobody times: the first one of a process opens its
    /// connections.
    async fn warm_up(&self, sample: &[Asked]) -> TaskResult {
        let mut known = None;
        for asked in sample {
            if known == Some(asked.bank.bank_no) || self.begun.elapsed() > PROBE_WITHIN {
                continue;
            }
            let first = known.is_none();
            known = Some(asked.bank.bank_no);
            self.context.check_running()?;
            // what fails here fails again where it counts
            drop(self.recall(asked, first, None).await?);
        }
        Ok(())
    }

    /// The pass whose figures are compared. True when the probe has ended with it.
    async fn one_at_a_time(&mut self, sample: &[Asked], made: usize, is_last: bool) -> Result<bool, TaskEnd> {
        self.begin(0, None, made);
        let (mut stored, mut said, mut in_a_row) = (Instant::now(), Instant::now(), 0);
        for (at, asked) in sample.iter().enumerate().skip(made) {
            let recalled = match self.context.check_running() {
                Ok(()) => self.recall(asked, true, None).await,
                Err(end) => Err(end),
            };
            let recalled = match recalled {
                Ok(recalled) => recalled,
                Err(end) => {
                    if self.part.made() > 0 {
                        self.store(false).await?;
                    }
                    return Err(end);
                }
            };
            self.part.others = self.part.others.max(self.tools.others());
            self.part.in_flight = 1;
            in_a_row = if recalled.is_ok() { 0 } else { in_a_row + 1 };
            note(&mut self.part, recalled);
            let all = at + 1 == sample.len();
            if !all && in_a_row >= MOST_FAILURES {
                self.store(true).await?;
                return Ok(true);
            }
            tokio::time::sleep(AFTER_FAILURE * in_a_row).await;
            if !all && self.begun.elapsed() > PROBE_WITHIN {
                self.end(Self::too_slow()).await?;
                return Ok(true);
            }
            if all || stored.elapsed() >= PART_EVERY {
                self.store(all && is_last).await?;
                self.begin(0, None, at + 1);
                stored = Instant::now();
            }
            if said.elapsed() >= SAY_EVERY {
                let run = self.context.row().run_id.0.as_str();
                info!(run, "latency probe of run {run}: {} of {} recalls", at + 1, sample.len());
                said = Instant::now();
            }
        }
        Ok(is_last)
    }

    /// A pass in which recalls begin at a rate, whether or not those before them have ended. It is stored as a whole: in the middle
    /// of it there is no other pass to go on from. True when the probe has ended with it.
    async fn at_rate(&mut self, sample: &[Asked], pass: u32, rate: f64, is_last: bool) -> Result<bool, TaskEnd> {
        self.begin(pass, Some(rate), 0);
        let this = &*self;
        let (mut underway, mut part) = (FuturesUnordered::new(), this.part.clone());
        let (begun, mut next) = (Instant::now(), 0);
        let due = |at: usize| begun + due_after(at, rate);
        while next < sample.len() || !underway.is_empty() {
            this.context.check_running()?;
            let too_slow = this.begun.elapsed() > PROBE_WITHIN;
            let recalled = tokio::select! {
                Some(recalled) = underway.next(), if !underway.is_empty() => recalled,
                () = until(due(next)), if next < sample.len() && !too_slow => {
                    underway.push(this.recall(&sample[next], true, Some(due(next))));
                    next += 1;
                    part.in_flight = part.in_flight.max(u32::try_from(underway.len()).unwrap_or(u32::MAX));
                    part.others = part.others.max(this.tools.others());
                    continue;
                }
                () = tokio::time::sleep(TICK), if next < sample.len() && !too_slow || !underway.is_empty() => continue,
                else => break,
            };
            note(&mut part, recalled?);
        }
        if next < sample.len() {
            part.failure = Some(Self::too_slow());
        }
        drop(underway);
        self.part = part;
        let cut = next < sample.len();
        self.store(is_last || cut).await?;
        Ok(is_last || cut)
    }

    fn too_slow() -> Failure {
        Failure::transient("probe_too_slow", format!("stopped after {} s", PROBE_WITHIN.as_secs()))
    }

    /// One recall: builds what it rests on, then makes it when `is_made`. Brings the microseconds of the recall alone, with what it
    /// was late where it was `due` at a moment; or why the system or its embeddings failed.
    async fn recall(&self, asked: &Asked, is_made: bool, due: Option<Instant>) -> Result<Recalled, TaskEnd> {
        let bank_no = asked.bank.bank_no;
        let data = self.tools.banks.get(self.task.run, bank_no).await?;
        let question = data.question(asked.index).ok_or_else(|| {
            Failure::permanent("store", format!("question {} of bank {bank_no} is gone", asked.index))
        })?;
        // one without words is no search that anybody waits for
        let has_words = |question: &&Question| !question.text.trim().is_empty();
        let question =
            Some(question).filter(has_words).or_else(|| data.questions().iter().find(has_words)).unwrap_or(question);
        let bank = BankRef { content: Some(Arc::clone(&data.content)), ..self.context.bank_at(&asked.bank) };
        let payer = self.context.payer(self.task, None);
        let query = RecallQuery { is_check: true, step: payer.step(), ..recall_query(self.context, question, &data) };
        let system = self.context.system();
        let recalling = async {
            let asked_at = Instant::now();
            let late = due.map_or(Duration::ZERO, |due| asked_at.saturating_duration_since(due));
            system.prepare(&bank, Some(&query)).await?;
            if !is_made {
                return Ok::<_, Failure>((late, Usage::default()));
            }
            let begun = Instant::now();
            let recall = system.recall(&bank, &query).await?;
            Ok((late + begun.elapsed(), recall.usage))
        };
        // how the task ends is decided by the calls that were made for it; what the system itself says is what was measured
        let told = async {
            match recalling.await {
                Err(failure) if failure.code == NOT_MADE => Err(failure),
                told => Ok(told),
            }
        };
        let told = told.await;
        match self.context.settle(payer, told) {
            Ok((Ok((took, mut usage)), paid)) => {
                usage += paid.usage;
                let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
                Ok(Ok((us.saturating_sub(paid.timing.rate_wait_us), usage)))
            }
            Ok((Err(failure), _)) => Ok(Err(failure)),
            Err(TaskEnd::GiveUp(given_up)) => Ok(Err(given_up.failure)),
            Err(TaskEnd::RetryLater { failure, .. }) => Ok(Err(failure)),
            Err(end) => Err(end),
        }
    }
}

/// Microseconds and usage of a recall, or why it failed.
type Recalled = Result<(u64, Usage), Failure>;

fn note(part: &mut ProbePart, recalled: Recalled) {
    match recalled {
        Ok((us, usage)) => {
            part.us.push(us);
            part.usage += usage;
        }
        Err(failure) => {
            part.failed += 1;
            part.failure = Some(failure);
        }
    }
}

/// How long after the beginning of a pass its recall number `at` is due; what is due behind the end of the probe is never.
fn due_after(at: usize, rate: f64) -> Duration {
    Duration::from_secs_f64((at as f64 / rate).min(2.0 * PROBE_WITHIN.as_secs_f64()))
}

/// Waits until a moment, more exactly than a timer does.
async fn until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left > TIMER {
        tokio::time::sleep(left - TIMER).await;
    }
    while Instant::now() < due {
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p43_recalls_are_due_by_their_rate_and_none_is_due_never() {
        assert_eq!((due_after(0, 10.0), due_after(5, 10.0)), (Duration::ZERO, Duration::from_millis(500)));
        for rate in [1e-20, f64::MIN_POSITIVE] {
            assert!(due_after(0, rate).is_zero() && due_after(1, rate) > PROBE_WITHIN, "{rate}");
        }
    }
}
