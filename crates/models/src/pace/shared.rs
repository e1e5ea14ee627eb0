//! The pace of an allowance, shared with all processes of the store (P24).
//!
//! One task per allowance and process asks the store for the slots of all calls that wait, some hundred milliseconds ahead,
//! and maps them to this process's monotonic clock. The same exchange carries Retry-After and what 429s have taught, so that
//! all processes hold back when one is told to. Without known limits calls pass at once, and only the exchange is left.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bench_store::{Allowance, Observed, PaceLimits, Paces, SlotAsk};
use bench_telemetry::outage;
use tokio::sync::{Notify, oneshot};
use tracing::warn;

use super::{Lane, Pace, Paced, queue::PaceQueue};
use crate::gate::Gate;

/// A slot that is older when its call gets to it is void.
const VOID_AFTER: Duration = Duration::from_millis(250);
/// After a 429 all calls of a stated limit are held at least so long: a full window then has room for what comes early.
const PHASE_HOLD: Duration = Duration::from_millis(200);
/// Wait between tries while the store is unavailable.
const AFTER_FAILURE: Duration = Duration::from_millis(200);

/// Who waits for a slot.
type Answer = oneshot::Sender<Slot>;

/// A slot: when its call may leave. Where the call goes away before that, wherever it was, others have it.
struct Slot {
    at: Instant,
    tokens: u64,
    /// `None` once its time has come.
    of: Option<Arc<Inner>>,
}

impl Slot {
    async fn wait(mut self) -> Instant {
        tokio::time::sleep_until(self.at.into()).await;
        self.of = None;
        self.at
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(inner) = self.of.take() {
            inner.lock().unused(self.tokens);
        }
    }
}

/// The shared pace of one allowance in this process.
pub struct SharedPace {
    inner: Arc<Inner>,
    limits: PaceLimits,
}

struct Inner {
    queue: Mutex<PaceQueue<Answer>>,
    wake: Arc<Notify>,
    gate: Arc<Gate>,
}

impl SharedPace {
    /// Joins the processes that share an allowance. `gate` is that of the same allowance in this process.
    #[must_use]
    pub fn join(store: Arc<dyn Paces>, allowance: Allowance, limits: PaceLimits, gate: Arc<Gate>) -> Self {
        let wake = Arc::new(Notify::new());
        let inner = Arc::new(Inner { queue: Mutex::new(PaceQueue::new(limits)), wake: Arc::clone(&wake), gate });
        let ask = SlotAsk {
            allowance,
            asker: uuid::Uuid::now_v7().simple().to_string(),
            limits,
            calls: Vec::new(),
            demand: 0,
            give_back: (0, 0),
            hold_us: 0,
            seen: Observed::default(),
        };
        inner.gate.limiter.share();
        tokio::spawn(serve(Arc::downgrade(&inner), wake, store, ask));
        Self { inner, limits }
    }
}

impl Drop for SharedPace {
    fn drop(&mut self) {
        self.inner.wake.notify_one();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, PaceQueue<Answer>> {
        // every change of the state is complete when the lock is dropped, so a panic elsewhere leaves it usable
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Pace for SharedPace {
    async fn acquire(&self, lane: Lane, tokens: u64, patience: Duration) -> Paced {
        if self.limits.is_none() {
            if self.inner.lock().touch() {
                self.inner.wake.notify_one();
            }
            return Paced::Go { waited: Duration::ZERO };
        }
        let begun = Instant::now();
        loop {
            let (sender, receiver) = oneshot::channel();
            {
                let mut queue = self.inner.lock();
                let wait = queue.expected_wait(lane, Instant::now());
                if wait > patience {
                    return later(wait, patience);
                }
                if queue.wait(lane, tokens, sender) {
                    self.inner.wake.notify_one();
                }
            }
            // other processes and lanes may take more than was expected; who goes away takes no slot
            let Ok(Ok(slot)) = tokio::time::timeout(patience * 2, receiver).await else {
                return later(self.inner.lock().expected_wait(lane, Instant::now()), patience);
            };
            let at = slot.wait().await;
            // a slot within a hold is void as well: calls that leave together at its end would be refused again
            let held = self.inner.gate.block.left();
            if held > patience || (held.is_zero() && at.elapsed() <= VOID_AFTER) {
                return Paced::Go { waited: begun.elapsed() };
            }
            tokio::time::sleep(held).await;
        }
    }

    fn counts_tokens(&self) -> bool {
        self.limits.tpm.is_some()
    }

    fn settled(&self, unused_tokens: u64) {
        self.inner.lock().settled(unused_tokens);
    }

    fn told(&self, hold: Duration) -> Duration {
        let hold = if self.limits.is_none() { hold } else { hold.max(PHASE_HOLD) };
        self.inner.lock().told(hold);
        self.inner.wake.notify_one();
        hold
    }
}

/// Comes again when the queue is expected to be half as long as a call may wait in it: it must not run dry.
fn later(expected: Duration, patience: Duration) -> Paced {
    Paced::Later { wait: expected.saturating_sub(patience / 2).max(Duration::from_millis(500)) }
}

/// The one task of an allowance that speaks with the store.
async fn serve(inner: Weak<Inner>, wake: Arc<Notify>, store: Arc<dyn Paces>, template: SlotAsk) {
    let (mut waiting, mut silent) = (None, false);
    loop {
        let Some(due) = inner.upgrade().map(|inner| inner.lock().due(Instant::now())) else { return };
        match due {
            Some(at) if at > Instant::now() => {
                drop(tokio::time::timeout_at(at.into(), wake.notified()).await);
                continue;
            }
            Some(_) => {}
            None => {
                wake.notified().await;
                continue;
            }
        }
        let Some(inner) = inner.upgrade() else { return };
        let begun = Instant::now();
        let request = inner.lock().request(begun);
        let ask = SlotAsk {
            calls: request.tokens(),
            demand: request.demand.max(inner.gate.limiter.present()),
            give_back: request.give_back,
            hold_us: u64::try_from(request.hold.as_micros()).unwrap_or(u64::MAX),
            seen: inner.gate.limiter.take_seen(),
            ..template.clone()
        };
        match store.take_slots(&ask).await {
            Ok(answer) => {
                (waiting, silent) = (None, false);
                // the store read its clock somewhere between request and answer
                let base = begun + begun.elapsed() / 2;
                let leaves = inner.lock().answered(request, base, &answer);
                if answer.blocked_us > 0 {
                    inner.gate.block.hold(Duration::from_micros(answer.blocked_us));
                }
                inner.gate.limiter.impose(answer.learned);
                for (call, at, tokens) in leaves {
                    // dropped where nobody waits for it any more
                    let _ = call.send(Slot { at, tokens, of: Some(Arc::clone(&inner)) });
                }
            }
            Err(error) => {
                if error.is_transient() {
                    outage::STORE.met(&mut waiting, &error);
                } else if !std::mem::replace(&mut silent, true) {
                    warn!("the pace of account {} cannot be kept: {error}", ask.allowance.account);
                }
                inner.gate.limiter.put_back(ask.seen);
                inner.lock().failed(request, Instant::now() + AFTER_FAILURE);
                drop(inner);
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::{call::Phase, ids::RunNo};
    use bench_store::Store;

    use super::*;

    const LANE: Lane = (RunNo(1), Phase::Answer);

    async fn store() -> (tempfile::TempDir, Arc<dyn Store>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = bench_store::conformance::store_in(folder.path()).await;
        (folder, store)
    }

    fn join(store: &Arc<dyn Store>, limits: PaceLimits) -> (Arc<SharedPace>, Arc<Gate>) {
        let gate = Arc::new(Gate::new(512));
        let allowance = Allowance { endpoint: "e".into(), account: "a".into(), ..Allowance::default() };
        let pace = SharedPace::join(Arc::clone(store) as Arc<dyn Paces>, allowance, limits, Arc::clone(&gate));
        (Arc::new(pace), gate)
    }

    /// Two processes with many calls each: together they leave at the limit, evenly.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn p24_processes_leave_together_at_the_limit() {
        let (_folder, store) = store().await;
        let limits = PaceLimits { rpm: Some(6000), tpm: None };
        let paces = [join(&store, limits).0, join(&store, limits).0];
        let begun = Instant::now();
        let calls: Vec<_> = (0..200)
            .map(|n| {
                let pace = Arc::clone(&paces[n % 2]);
                tokio::spawn(async move {
                    let paced = pace.acquire(LANE, 0, Duration::from_secs(20)).await;
                    assert!(matches!(paced, Paced::Go { .. }), "{paced:?}");
                    Instant::now()
                })
            })
            .collect();
        let mut left = Vec::new();
        for call in calls {
            left.push(call.await.expect("no panic") - begun);
        }
        left.sort_unstable();
        let seconds = left[199].as_secs_f64();
        assert!((1.9..2.6).contains(&seconds), "200 calls at 100/s took {seconds} s");
        for window in left.windows(51) {
            let span = (window[50] - window[0]).as_secs_f64();
            assert!(span > 0.25, "50 calls within {span} s");
        }
    }

    #[tokio::test]
    async fn p11_long_waits_are_told_at_once_and_dropped_calls_leave_their_slot() {
        let (_folder, store) = store().await;
        let (pace, _) = join(&store, PaceLimits { rpm: Some(60), tpm: Some(60_000) });
        assert!(pace.counts_tokens());
        let patience = Duration::from_secs(5);
        assert!(
            matches!(pace.acquire(LANE, 10, patience).await, Paced::Go { waited } if waited < Duration::from_millis(500))
        );
        let waiting: Vec<_> = (0..6)
            .map(|_| {
                let pace = Arc::clone(&pace);
                tokio::spawn(async move { pace.acquire(LANE, 10, patience).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        match pace.acquire(LANE, 10, patience).await {
            Paced::Later { wait } => assert!(wait > Duration::from_secs(2), "{wait:?}"),
            go @ Paced::Go { .. } => panic!("{go:?}"),
        }
        for call in waiting {
            call.abort();
        }
    }

    #[tokio::test]
    async fn p11_a_call_that_goes_away_leaves_its_slot_to_others_wherever_it_was() {
        let limits = PaceLimits { rpm: Some(60), tpm: Some(60_000) };
        let inner = Arc::new(Inner {
            queue: Mutex::new(PaceQueue::new(limits)),
            wake: Arc::default(),
            gate: Arc::new(Gate::new(4)),
        });
        let slot = |after_ms| Slot {
            at: Instant::now() + Duration::from_millis(after_ms),
            tokens: 10,
            of: Some(Arc::clone(&inner)),
        };
        let given_back = || inner.lock().request(Instant::now()).give_back;
        slot(0).wait().await;
        assert_eq!(given_back(), (0, 0), "it was used");
        assert!(tokio::time::timeout(Duration::from_millis(20), slot(60_000).wait()).await.is_err());
        assert_eq!(given_back(), (1, 10), "it waited for its time");
        let (sender, receiver) = oneshot::channel();
        assert!(sender.send(slot(0)).is_ok());
        drop(receiver);
        assert_eq!(given_back(), (1, 10), "it had not heard of it");
    }

    #[tokio::test]
    async fn p24_all_processes_hold_back_when_one_is_told_to() {
        let (_folder, store) = store().await;
        let (one, _) = join(&store, PaceLimits::default());
        let (other, gate) = join(&store, PaceLimits::default());
        assert_eq!(other.acquire(LANE, 0, Duration::ZERO).await, Paced::Go { waited: Duration::ZERO });
        one.told(Duration::from_secs(30));
        let begun = Instant::now();
        while gate.block.left() < Duration::from_secs(20) {
            assert!(begun.elapsed() < Duration::from_secs(1), "heard within a second");
            other.acquire(LANE, 0, Duration::ZERO).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
