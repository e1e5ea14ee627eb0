//! Keeping traces (P20): the decision at a question's end, and the sending of those that are kept.
//!
//! The decision is stored with a note that the trace is unsent, which is taken away when it was sent. What a process could not send, or
//! did not live to send, the next one sends that looks: ids are derived, so a trace that arrives twice is the same trace. Parts of a run's
//! own trace are sent with one of its questions, which the store knows.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bench_proto::{
    facts::{JudgePlan, QuestionFacts},
    ids::{RunId, RunNo, TaskKey},
    trace::{
        Kept, LatencySketch, Span, SpanId, SpanKind, SpanValue, TraceId, TracePolicy, decide, own_us, span_of_question,
    },
};
use bench_store::{RunRow, Store, StoreError};
use bench_telemetry::{
    metrics::catalogue,
    spans::{FinishedSpan, Kind, SpanSink, Value},
};
use tokio::{sync::mpsc, task::JoinHandle, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::{QuestionTrace, Subject, gather};

/// Kept questions that may wait for the collector.
const WAITING: usize = 256;
/// Questions sent together.
const TOGETHER: usize = 16;
/// How often traces are looked for that others have left unsent, and how many are taken at a time.
const LEFT_OVER: (Duration, u32) = (Duration::from_secs(10), 64);
/// How long a question that was decided here is sent by nobody else: less than the store gives, so that nobody sends it twice.
const OURS: Duration = Duration::from_secs(20);
/// Parts of runs' own traces that are known to be sent with some question.
const PARTS: usize = 100_000;
/// How often the spread of times is exchanged with the store.
const EXCHANGE: Duration = Duration::from_secs(1);
/// Longest wait for the store to note what is left to others.
const LEAVING: Duration = Duration::from_millis(500);
/// Runs whose spreads are in memory.
const RUNS: usize = 256;

/// Decides which traces are kept and sends them.
pub struct Keeper {
    spreads: Mutex<HashMap<RunNo, Spread>>,
    sender: Mutex<Option<mpsc::Sender<Waiting>>>,
    task: Mutex<Option<JoinHandle<()>>>,
    sink: Arc<dyn SpanSink>,
    /// Cancelled when the process has waited long enough for the collector.
    enough: CancellationToken,
}

/// A kept question that waits for the collector, and since when.
type Waiting = (RunNo, TaskKey, Instant);

/// How the times of a run's questions are spread.
#[derive(Default)]
struct Spread {
    /// The run's public id.
    run_id: Option<RunId>,
    /// As far as this process knows.
    all: LatencySketch,
    /// What the store has not heard of.
    fresh: LatencySketch,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keeper {
    /// A keeper that reads from a store and sends to a sink.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, sink: Arc<dyn SpanSink>) -> Arc<Self> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let keeper = Arc::new(Self {
            spreads: Mutex::default(),
            sender: Mutex::new(Some(sender)),
            task: Mutex::default(),
            sink: Arc::clone(&sink),
            enough: CancellationToken::new(),
        });
        let (enough, runs) = (keeper.enough.clone(), HashMap::new());
        let (weak, parts) = (Arc::downgrade(&keeper), HashSet::new());
        let sending = Sending { store, sink, keeper: weak, runs, parts, silent: false, enough };
        *lock(&keeper.task) = Some(tokio::spawn(sending.run(receiver)));
        keeper
    }

    /// Whether the trace of a question that ends now is kept.
    pub(crate) fn decide(
        &self,
        run: RunNo,
        run_id: &RunId,
        policy: &TracePolicy,
        judges: &JudgePlan,
        facts: &QuestionFacts,
    ) -> Option<Kept> {
        let asked = judges.asked(&facts.category, &facts.question_id).count();
        let votes = u32::try_from(asked).unwrap_or(u32::MAX).saturating_mul(judges.votes);
        let trace = TraceId::of_question(run_id, &facts.question_id);
        let mut spreads = lock(&self.spreads);
        if spreads.len() >= RUNS && !spreads.contains_key(&run) {
            spreads.clear();
        }
        let spread = spreads.entry(run).or_default();
        spread.run_id.get_or_insert_with(|| run_id.clone());
        let kept = decide(policy, facts, votes, &trace, &spread.all);
        if policy.slow_ms.is_none() {
            spread.all.add(own_us(facts));
            spread.fresh.add(own_us(facts));
        }
        kept
    }

    /// Sends the trace of a question whose end is stored. Never waits.
    pub(crate) fn send(&self, run: RunNo, facts: &QuestionFacts) {
        let Some(kept) = facts.kept else { return };
        catalogue::TRACES.add(1.0, &[kept.name()]);
        let taken = lock(&self.sender)
            .as_ref()
            .is_some_and(|sender| sender.try_send((run, facts.task, Instant::now())).is_ok());
        if !taken {
            // the store knows of it: it is found among those that are left over
            catalogue::TRACES_DELAYED.add(1.0, &[]);
        }
    }

    /// The root of the trace of a question that was decided here.
    pub(crate) fn root_of(&self, run: RunNo, facts: &QuestionFacts) -> Option<(TraceId, SpanId)> {
        let run_id = lock(&self.spreads).get(&run)?.run_id.clone()?;
        let trace = TraceId::of_question(&run_id, &facts.question_id);
        Some((trace, span_of_question(&trace)))
    }

    /// Sends what waits and ends; gives up after some seconds, and leaves the rest to others.
    pub async fn close(&self) {
        drop(lock(&self.sender).take());
        let Some(mut task) = lock(&self.task).take() else { return };
        if tokio::time::timeout(self.sink.last_words(), &mut task).await.is_ok() {
            return;
        }
        // what is under way and what waits is left to others, at once if the store can still be told
        self.enough.cancel();
        if tokio::time::timeout(LEAVING, &mut task).await.is_err() {
            task.abort();
        }
    }

    fn take_fresh(&self) -> Vec<(RunNo, Vec<(u16, u64)>)> {
        let mut spreads = lock(&self.spreads);
        let fresh = spreads.iter_mut().filter(|(_, spread)| spread.fresh.total() > 0);
        fresh.map(|(run, spread)| (*run, std::mem::take(&mut spread.fresh).counts().collect())).collect()
    }

    /// Takes over what the store knows, with what came meanwhile.
    fn learn(&self, run: RunNo, counts: Vec<(u16, u64)>) {
        let mut spreads = lock(&self.spreads);
        let spread = spreads.entry(run).or_default();
        let mut all = LatencySketch::default();
        counts.into_iter().for_each(|(bucket, count)| all.add_many(bucket, count));
        spread.fresh.counts().for_each(|(bucket, count)| all.add_many(bucket, count));
        spread.all = all;
    }
}

/// The one task that reads and sends.
struct Sending {
    store: Arc<dyn Store>,
    sink: Arc<dyn SpanSink>,
    keeper: std::sync::Weak<Keeper>,
    runs: HashMap<RunNo, RunRow>,
    /// Parts of runs' own traces that go with a question that is known.
    parts: HashSet<(RunNo, TaskKey)>,
    silent: bool,
    enough: CancellationToken,
}

impl Sending {
    async fn run(mut self, mut waiting: mpsc::Receiver<Waiting>) {
        let (mut exchange, mut left_over) = (tokio::time::interval(EXCHANGE), tokio::time::interval(LEFT_OVER.0));
        left_over.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut questions, mut late) = (Vec::with_capacity(TOGETHER), false);
        loop {
            tokio::select! {
                taken = waiting.recv_many(&mut questions, TOGETHER) => {
                    if taken == 0 {
                        break;
                    }
                    // what has waited too long others may have taken: it is looked for in the store, like theirs
                    let ours = questions.drain(..).filter(|(.., since)| since.elapsed() < OURS);
                    let ours: Vec<(RunNo, TaskKey)> = ours.map(|(run, task, _)| (run, task)).collect();
                    late |= ours.len() < taken;
                    self.send(ours, false).await;
                }
                _ = exchange.tick() => self.exchange().await,
                _ = left_over.tick() => self.send_left_over().await,
            }
        }
        self.exchange().await;
        if late {
            self.send_left_over().await;
        }
    }

    /// Sends what other processes, or this one, have decided and not sent.
    async fn send_left_over(&mut self) {
        let left_over = match self.store.take_unsent_traces(LEFT_OVER.1).await {
            Ok(left_over) => left_over,
            Err(error) => return debug!("traces that are left over could not be read: {error}"),
        };
        for questions in left_over.chunks(TOGETHER) {
            self.send(questions.to_vec(), true).await;
        }
    }

    /// Sends questions; `again`: somebody may have tried before, and not lived to send all of it.
    async fn send(&mut self, questions: Vec<(RunNo, TaskKey)>, again: bool) {
        if self.enough.is_cancelled() {
            // the process ends: others have them at once, without any reading
            catalogue::TRACES_DELAYED.add(questions.len() as f64, &[]);
            if let Err(error) = self.store.settle_traces(&questions, false).await {
                debug!("traces that are left to others could not be noted: {error}");
            }
            return;
        }
        let (mut spans, mut read) = (Vec::new(), Vec::with_capacity(questions.len()));
        for (run, task) in questions {
            match self.read(run, task, again).await {
                Ok(Some((trace, parts))) => {
                    spans.extend(trace.spans.iter().map(|span| finished(span, &trace)));
                    let linked = trace.linked.iter().filter(|(part, _)| parts.contains(part));
                    spans.extend(linked.map(|(_, span)| finished(span, &trace)));
                }
                // it was reopened meanwhile: its next end decides anew
                Ok(None) => {}
                Err(error) => {
                    catalogue::TRACES_DELAYED.add(1.0, &[]);
                    debug!("the trace of {task:?} could not be read: {error}");
                    continue;
                }
            }
            read.push((run, task));
        }
        let sent = async { if spans.is_empty() { Ok(()) } else { self.sink.send(spans).await } };
        let sent = tokio::select! {
            biased;
            sent = sent => sent,
            () = self.enough.cancelled() => Err("no answer before the process ended".to_owned()),
        };
        if let Err(error) = self.store.settle_traces(&read, sent.is_ok()).await {
            // they are sent once more
            debug!("that traces were sent could not be noted: {error}");
        }
        match sent {
            Ok(()) => self.silent = false,
            Err(why) => {
                catalogue::TRACES_DELAYED.add(read.len() as f64, &[]);
                // once per outage: the run goes on as if nobody looked
                if !std::mem::replace(&mut self.silent, true) {
                    warn!("traces cannot be sent and wait in the store until the collector is back: {why}");
                }
            }
        }
    }

    /// A question's trace, and which parts of its run's own trace go with it.
    async fn read(
        &mut self,
        run: RunNo,
        task: TaskKey,
        again: bool,
    ) -> Result<Option<(QuestionTrace, Vec<TaskKey>)>, StoreError> {
        if !self.runs.contains_key(&run) {
            if self.runs.len() >= RUNS {
                self.runs.clear();
            }
            self.runs.insert(run, self.store.run(run).await?);
        }
        let Some(row) = self.runs.get(&run) else { return Ok(None) };
        let Some(facts) = self.store.facts_of(run, &[task]).await?.pop() else { return Ok(None) };
        let trace = gather(self.store.as_ref(), row, Subject::from_facts(&facts)).await?;
        let parts: BTreeSet<TaskKey> = trace.linked.iter().map(|(part, _)| *part).collect();
        let asked: Vec<TaskKey> =
            parts.into_iter().filter(|part| again || !self.parts.contains(&(run, *part))).collect();
        if asked.is_empty() {
            return Ok(Some((trace, asked)));
        }
        let own = self.store.own_trace_parts(run, task, &asked).await?;
        if self.parts.len() >= PARTS {
            self.parts.clear();
        }
        self.parts.extend(asked.into_iter().map(|part| (run, part)));
        Ok(Some((trace, own)))
    }

    async fn exchange(&self) {
        let Some(keeper) = self.keeper.upgrade() else { return };
        for (run, counts) in keeper.take_fresh() {
            match self.store.add_latencies(run, &counts).await {
                Ok(all) => keeper.learn(run, all),
                // this process still knows them, the others do not
                Err(error) => debug!("the spread of times of run {} could not be stored: {error}", run.0),
            }
        }
    }
}

/// A span as the exporter takes it.
fn finished(span: &Span, trace: &QuestionTrace) -> FinishedSpan {
    let value = |value: &SpanValue| match value {
        SpanValue::Text(text) => Value::Text(text.clone()),
        SpanValue::Int(number) => Value::Int(*number),
        SpanValue::Number(number) => Value::Number(*number),
        SpanValue::Bool(yes) => Value::Bool(*yes),
        SpanValue::Texts(texts) => Value::Texts(texts.clone()),
    };
    FinishedSpan {
        trace: span.trace.0,
        id: span.id.0,
        parent: span.parent.map(|id| id.0),
        name: span.name.clone(),
        kind: match span.kind {
            SpanKind::Internal => Kind::Internal,
            SpanKind::Client => Kind::Client,
            SpanKind::Producer => Kind::Producer,
            SpanKind::Consumer => Kind::Consumer,
        },
        start_us: span.start_us,
        end_us: span.end_us,
        attributes: span.attributes.iter().map(|(name, of)| (*name, value(of))).collect(),
        links: span.links.iter().map(|link| (link.trace.0, link.span.0)).collect(),
        error: span.error.clone(),
        process: trace.workers.get(&span.session).cloned().unwrap_or_default(),
    }
}
