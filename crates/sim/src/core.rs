//! The shared state of a simulator and the way of a request through it: key, model, quota, limits, try, fault.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::http::StatusCode;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    announced::Announced,
    config::{LiveConfig, SimConfig, Used},
    draw::{RequestKey, RequestKind},
    error::{ApiError, StartError},
    fault::{self, FaultKind},
    latency::latency,
    ledger::Ledger,
    limit::Limiter,
    outage::{About, Door, Outage, OutageFigures, Outages},
    stats::{Book, Paid, Stats},
};

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) config: SimConfig,
    pub(crate) stop: CancellationToken,
    live: RwLock<Arc<LiveConfig>>,
    limiter: Mutex<Limiter>,
    book: Mutex<Book>,
    ledger: Option<Mutex<Ledger>>,
    outages: Mutex<Outages>,
    /// Told when connections may have to be refused or accepted again.
    pub(crate) outages_changed: Notify,
    started: Instant,
}

/// What was decided for a try.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) nth: u32,
    pub(crate) fault: Option<FaultKind>,
    pub(crate) delay: Duration,
    pub(crate) announced: Announced,
}

/// A request as the books see it: counted when it arrives and when it ends, also when the client leaves.
#[derive(Debug)]
pub(crate) struct Ticket {
    core: Arc<Core>,
    endpoint: &'static str,
    epoch: u64,
    status: Option<u16>,
    model: Option<String>,
    /// Outages that cover the request and let it pass.
    passing: Vec<u64>,
}

impl Ticket {
    pub(crate) fn open(core: &Arc<Core>, kind: RequestKind) -> Self {
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let epoch = core.book().open(core.now(), unix_ms);
        Self {
            core: Arc::clone(core),
            endpoint: kind.endpoint(),
            epoch,
            status: None,
            model: None,
            passing: Vec::new(),
        }
    }

    /// The request was read: it counts for its model. The answer is the outage that strikes it.
    pub(crate) fn about(&mut self, about: &About<'_>) -> Option<Outage> {
        self.core.book().about(self.epoch, about.model);
        self.model = Some(about.model.to_owned());
        let mut outages = self.core.outages();
        let struck = outages.arrive(about, self.core.now(), &mut self.passing);
        drop(outages);
        if !self.passing.is_empty() {
            // this may have been the request that one waited for
            self.core.outages_changed.notify_waiters();
        }
        struck
    }

    pub(crate) fn answered(mut self, status: StatusCode) {
        self.status = Some(status.as_u16());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.core.book().close(self.epoch, self.endpoint, self.status, self.model.as_deref());
        if !self.passing.is_empty() {
            self.core.outages().leave(&self.passing, self.status);
        }
    }
}

impl Core {
    pub(crate) fn new(config: SimConfig) -> Result<Self, StartError> {
        let unwritable = |path: &PathBuf, source| StartError::Ledger { path: path.clone(), source };
        let ledger =
            config.ledger.as_ref().map(|path| Ledger::open(path).map_err(|e| unwritable(path, e))).transpose()?;
        let live = RwLock::new(Arc::new(config.live.clone()));
        let mut outages = Outages::default();
        config.outages.iter().for_each(|outage| {
            outages.set(outage.clone(), Duration::ZERO);
        });
        Ok(Self {
            config,
            ledger: ledger.map(Mutex::new),
            stop: CancellationToken::new(),
            live,
            limiter: Mutex::default(),
            book: Mutex::default(),
            outages: Mutex::new(outages),
            outages_changed: Notify::new(),
            started: Instant::now(),
        })
    }

    /// Time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // the books stay usable when a handler has panicked
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outages(&self) -> MutexGuard<'_, Outages> {
        self.outages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_outage(&self, outage: Outage) -> u64 {
        let id = self.outages().set(outage, self.now());
        self.outages_changed.notify_waiters();
        id
    }

    /// Ends an outage, or all; whether there was one.
    pub(crate) fn end_outages(&self, id: Option<u64>) -> bool {
        let found = self.outages().end(id, self.now());
        self.outages_changed.notify_waiters();
        found
    }

    pub(crate) fn outage_figures(&self) -> Vec<OutageFigures> {
        self.outages().figures(self.now())
    }

    /// Whether connections are refused now.
    pub(crate) fn door(&self) -> Door {
        self.outages().door(self.now())
    }

    pub(crate) fn live(&self) -> Arc<LiveConfig> {
        Arc::clone(&self.live.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_live(&self, live: LiveConfig) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
    }

    pub(crate) fn stats(&self) -> Stats {
        self.book().stats()
    }

    pub(crate) fn reset(&self) {
        self.book().reset();
        self.outages().reset(self.now());
        *self.limiter.lock().unwrap_or_else(PoisonError::into_inner) = Limiter::default();
    }

    /// Checks the key of a request.
    pub(crate) fn authorise(&self, key: &str) -> Result<(), ApiError> {
        if self.live().keys.is_good(key) { Ok(()) } else { Err(ApiError::bad_key()) }
    }

    pub(crate) fn check_model(&self, model: &str) -> Result<(), ApiError> {
        if self.config.unknown_models.iter().any(|unknown| unknown == model) {
            Err(ApiError::unknown_model(model))
        } else {
            Ok(())
        }
    }

    /// Capacity, quota, limits, then the fault and latency of this try. Only what passes the limits counts as a try: otherwise
    /// faults would depend on timing. An outage may have a fault in store already.
    pub(crate) fn admit(
        &self,
        about: &About<'_>,
        tokens: u64,
        forced: Option<FaultKind>,
    ) -> Result<Admission, ApiError> {
        let &About { key, kind, model, account, .. } = about;
        let live = self.live();
        if live.limits.capacity.is_some_and(|capacity| self.book().over_capacity(capacity)) {
            return Err(ApiError::overloaded());
        }
        let mut announced = Announced::default();
        if live.limits.rpm.is_some() || live.limits.tpm.is_some() {
            let mut limiter = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
            // the time is read under the lock: meters must not see it run backwards
            let (now_announced, taken) = limiter.take(&live.limits, account, model, tokens, self.now());
            drop(limiter);
            if !live.limits.hide_headers {
                announced = now_announced;
            }
            if let Err(refused) = taken {
                self.book().rate_limited(self.now());
                return Err(refused.into_error(account, model).announcing(announced));
            }
        }
        let (nth, fault) = {
            let mut book = self.book();
            if !book.within_quota(self.config.quota_after) {
                return Err(ApiError::quota().announcing(announced));
            }
            let nth = book.begin_try(key, model);
            let fault = forced.or_else(|| fault::decide(&live.faults, self.config.seed, key, nth, kind));
            if let Some(fault) = fault {
                book.fault(fault);
            }
            (nth, fault)
        };
        let mut delay = latency(&live.latency, self.config.seed, key, nth, kind);
        if fault::is_slow(&live.faults, self.config.seed, key, nth) {
            self.book().fault(FaultKind::Slow);
            delay *= 10;
        }
        Ok(Admission { nth, fault, delay, announced })
    }

    pub(crate) fn paid(&self, key: RequestKey, model: &str, used: Used, whole: bool) {
        let price = self.config.prices.get(model).copied().unwrap_or_default();
        let paid = Paid { model, used, price };
        if let Some(ledger) = &self.ledger
            && let Err(e) = ledger.lock().unwrap_or_else(PoisonError::into_inner).write(&paid)
        {
            // a ledger that lacks a reply is worse than none
            eprintln!("error: cannot write the ledger: {e}");
            self.stop.cancel();
        }
        self.book().paid(key, &paid, whole, self.now());
    }
}
