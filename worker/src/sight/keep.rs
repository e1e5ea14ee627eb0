//! Keeping traces (P20): the decision at a question's end, and the sending of those that are kept.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bench_proto::{
    facts::{JudgePlan, QuestionFacts},
    ids::{RunId, RunNo, TaskKey},
    trace::{Kept, LatencySketch, Span, SpanKind, SpanValue, TraceId, TracePolicy, decide, own_us},
};
use bench_store::{RunRow, Store, StoreError};
use bench_telemetry::{
    metrics::catalogue,
    spans::{FinishedSpan, Kind, SpanSink, Value},
};
use tokio::{sync::mpsc, task::JoinHandle};
use tracing::{debug, warn};

use super::{QuestionTrace, Subject, gather};

/// Kept questions that may wait for the collector.
const WAITING: usize = 256;
/// Questions sent together.
const TOGETHER: usize = 16;
/// How often the spread of times is exchanged with the store.
const EXCHANGE: Duration = Duration::from_secs(1);
/// Longest wait at the end.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Runs whose spreads are in memory.
const RUNS: usize = 256;

/// Decides which traces are kept and sends them.
pub struct Keeper {
    spreads: Mutex<HashMap<RunNo, Spread>>,
    sender: Mutex<Option<mpsc::Sender<(RunNo, TaskKey)>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// How the times of a run's questions are spread.
#[derive(Default)]
struct Spread {
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
        let keeper =
            Arc::new(Self { spreads: Mutex::default(), sender: Mutex::new(Some(sender)), task: Mutex::default() });
        let sending = Sending { store, sink, keeper: Arc::downgrade(&keeper), runs: HashMap::new(), silent: false };
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
        let votes = u32::try_from(judges.metrics.len()).unwrap_or(u32::MAX).saturating_mul(judges.votes);
        let trace = TraceId::of_question(run_id, &facts.question_id);
        let mut spreads = lock(&self.spreads);
        if spreads.len() >= RUNS && !spreads.contains_key(&run) {
            spreads.clear();
        }
        let spread = spreads.entry(run).or_default();
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
        let taken = lock(&self.sender).as_ref().is_some_and(|sender| sender.try_send((run, facts.task)).is_ok());
        if !taken {
            catalogue::TRACES_DROPPED.add(1.0, &[]);
        }
    }

    /// Sends what waits and ends; gives up after some seconds.
    pub async fn close(&self) {
        drop(lock(&self.sender).take());
        let Some(mut task) = lock(&self.task).take() else { return };
        if tokio::time::timeout(LAST_WORDS, &mut task).await.is_err() {
            task.abort();
            warn!("some traces could not be sent within {} s", LAST_WORDS.as_secs());
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
    silent: bool,
}

impl Sending {
    async fn run(mut self, mut waiting: mpsc::Receiver<(RunNo, TaskKey)>) {
        let mut exchange = tokio::time::interval(EXCHANGE);
        let mut questions = Vec::with_capacity(TOGETHER);
        loop {
            tokio::select! {
                taken = waiting.recv_many(&mut questions, TOGETHER) => {
                    if taken == 0 {
                        break;
                    }
                    self.send(std::mem::take(&mut questions)).await;
                }
                _ = exchange.tick() => self.exchange().await,
            }
        }
        self.exchange().await;
    }

    async fn send(&mut self, questions: Vec<(RunNo, TaskKey)>) {
        let (mut spans, mut linked, mut traces) = (Vec::new(), BTreeSet::new(), 0);
        for (run, task) in questions {
            match self.read(run, task).await {
                Ok(Some(trace)) => {
                    traces += 1;
                    spans.extend(trace.spans.iter().map(|span| finished(span, &trace)));
                    let first_of = |span: &&Span| linked.insert((span.trace, span.id));
                    spans.extend(trace.linked.iter().filter(first_of).map(|span| finished(span, &trace)));
                }
                Ok(None) => {}
                Err(error) => {
                    catalogue::TRACES_DROPPED.add(1.0, &[]);
                    debug!("the trace of {task:?} could not be read: {error}");
                }
            }
        }
        if spans.is_empty() {
            return;
        }
        match self.sink.send(spans).await {
            Ok(()) => self.silent = false,
            Err(why) => {
                catalogue::TRACES_DROPPED.add(f64::from(traces), &[]);
                // once per outage: the run goes on as if nobody looked
                if !std::mem::replace(&mut self.silent, true) {
                    warn!("traces cannot be sent and are dropped until the collector is back: {why}");
                }
            }
        }
    }

    async fn read(&mut self, run: RunNo, task: TaskKey) -> Result<Option<QuestionTrace>, StoreError> {
        if !self.runs.contains_key(&run) {
            if self.runs.len() >= RUNS {
                self.runs.clear();
            }
            self.runs.insert(run, self.store.run(run).await?);
        }
        let Some(row) = self.runs.get(&run) else { return Ok(None) };
        let Some(facts) = self.store.facts_of(run, &[task]).await?.pop() else { return Ok(None) };
        gather(self.store.as_ref(), row, Subject::of(&facts)).await.map(Some)
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
