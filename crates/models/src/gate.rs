//! What stands between a call and its send: the limiter of its (endpoint, account, limit group), and the account's
//! Retry-After, which holds back every call of the account.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::limiter::{Limiter, Permit};

/// Largest number of calls in flight of one allowance, unless set otherwise.
pub const DEFAULT_MAX_IN_FLIGHT: usize = 512;

/// An account that asked to be left alone for a while.
#[derive(Debug)]
pub struct AccountBlock {
    epoch: Instant,
    until_ms: AtomicU64,
}

impl Default for AccountBlock {
    fn default() -> Self {
        Self { epoch: Instant::now(), until_ms: AtomicU64::new(0) }
    }
}

impl AccountBlock {
    fn now_ms(&self) -> u64 {
        self.epoch.elapsed().as_millis() as u64
    }

    /// Holds all calls of the account back for `wait` from now; a longer hold stays.
    pub fn hold(&self, wait: Duration) {
        let wait_ms = u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
        self.until_ms.fetch_max(self.now_ms().saturating_add(wait_ms), Ordering::Relaxed);
    }

    /// Ends the hold.
    pub fn release(&self) {
        self.until_ms.store(0, Ordering::Relaxed);
    }

    /// Time that is left.
    #[must_use]
    pub fn left(&self) -> Duration {
        match self.until_ms.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            until => Duration::from_millis(until.saturating_sub(self.now_ms())),
        }
    }
}

/// The way in.
#[derive(Debug)]
pub enum Entry<'a> {
    /// Send now, and give the permit back with what the call showed.
    Go(Permit<'a>),
    /// The account is held for longer than the caller's patience.
    Later {
        /// Time that is left.
        wait: Duration,
    },
}

/// The gate of one (endpoint, account, limit group).
#[derive(Debug)]
pub struct Gate {
    /// In flight and learned rate.
    pub limiter: Limiter,
    /// Retry-After of the account.
    pub block: Arc<AccountBlock>,
}

impl Gate {
    /// A gate of its own, for one caller.
    #[must_use]
    pub fn new(max_in_flight: usize) -> Self {
        Self { limiter: Limiter::new(max_in_flight), block: Arc::default() }
    }

    /// Waits for the account and for a place; an account held for longer than `patience` is not waited for.
    pub async fn enter(&self, patience: Duration) -> Entry<'_> {
        loop {
            let wait = self.block.left();
            if wait > patience {
                return Entry::Later { wait };
            }
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            let permit = self.limiter.acquire().await;
            // while this call queued for its place, another one may have been told to wait
            if self.block.left().is_zero() {
                return Entry::Go(permit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn short_holds_are_waited_for() {
        let gate = Gate::new(4);
        gate.block.hold(Duration::from_millis(50));
        let begun = Instant::now();
        assert!(matches!(gate.enter(Duration::from_secs(5)).await, Entry::Go(_)));
        assert!(begun.elapsed() >= Duration::from_millis(45));
    }
}
