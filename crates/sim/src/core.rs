//! The shared state of a simulator and the way of a request through it: key, model, quota, limits, try, fault.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::http::StatusCode;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{LiveConfig, SimConfig, Used},
    draw::RequestKey,
    error::ApiError,
    fault::{self, FaultKind, RequestKind},
    latency::latency,
    limit::{Announced, Limiter},
    stats::{Book, Paid, Stats},
};

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) config: SimConfig,
    pub(crate) stop: CancellationToken,
    live: RwLock<Arc<LiveConfig>>,
    limiter: Mutex<Limiter>,
    book: Mutex<Book>,
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
}

impl Ticket {
    pub(crate) fn open(core: &Arc<Core>, kind: RequestKind) -> Self {
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let epoch = core.book().open(core.now(), unix_ms);
        Self { core: Arc::clone(core), endpoint: kind.endpoint(), epoch, status: None }
    }

    pub(crate) fn answered(mut self, status: StatusCode) {
        self.status = Some(status.as_u16());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.core.book().close(self.epoch, self.endpoint, self.status);
    }
}

impl Core {
    pub(crate) fn new(config: SimConfig) -> Self {
        let live = RwLock::new(Arc::new(config.live.clone()));
        Self {
            config,
            stop: CancellationToken::new(),
            live,
            limiter: Mutex::default(),
            book: Mutex::default(),
            started: Instant::now(),
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // the books stay usable when a handler has panicked
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
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
        *self.limiter.lock().unwrap_or_else(PoisonError::into_inner) = Limiter::default();
    }

    /// Checks the key of a request.
    pub(crate) fn authorise(&self, key: &str) -> Result<(), ApiError> {
        let wrong = self.config.api_key.as_deref().is_some_and(|expected| expected != key);
        if wrong || self.config.bad_keys.iter().any(|bad| bad == key) { Err(ApiError::bad_key()) } else { Ok(()) }
    }

    pub(crate) fn check_model(&self, model: &str) -> Result<(), ApiError> {
        if self.config.unknown_models.iter().any(|unknown| unknown == model) {
            Err(ApiError::unknown_model(model))
        } else {
            Ok(())
        }
    }

    /// Quota, limits, then the fault and latency of this try. Only what passes the limits counts as a try: otherwise faults
    /// would depend on timing.
    pub(crate) fn admit(
        &self,
        account: &str,
        model: &str,
        tokens: u64,
        key: RequestKey,
        kind: RequestKind,
    ) -> Result<Admission, ApiError> {
        let live = self.live();
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
            let nth = book.begin_try(key);
            let fault = fault::decide(&live.faults, self.config.seed, key, nth, kind);
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
        self.book().paid(key, &Paid { model, used, price }, whole, self.now());
    }
}
