//! The stop flag of a run (P23): set once, looked at before every send, and able to wake whatever waits.

use std::sync::Arc;

use bench_proto::failure::Failure;
use tokio::sync::watch;

/// What calls say that stopped because their process has not been heard of.
pub const OUT_OF_REACH: &str = "the store is out of reach";

/// Whether a process is known to be alive to those who hand out work (P4).
pub trait Liveness: Send + Sync + std::fmt::Debug {
    /// False once nobody has heard of it for so long that its work may be given to others.
    fn alive(&self) -> bool;
}

/// Why calls stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopCause {
    /// Somebody asked: stop, pause, cancel.
    Asked(String),
    /// This process makes no more calls: it drains, or nobody has heard of it. The run goes on, here or elsewhere.
    Here(String),
    /// A call met a failure that no other call of the account can avoid (invalid key, quota used up).
    Terminal(Failure),
}

impl StopCause {
    /// Why, in words.
    #[must_use]
    pub fn into_reason(self) -> String {
        match self {
            Self::Asked(reason) | Self::Here(reason) => reason,
            Self::Terminal(failure) => failure.message,
        }
    }
}

/// A flag shared by all calls of a run in this process. The first cause stays; a resumed run gets a new flag.
#[derive(Debug, Clone)]
pub struct StopFlag {
    flag: watch::Sender<Option<StopCause>>,
    /// A worker that has not been heard of starts no call (P4).
    liveness: Option<Arc<dyn Liveness>>,
}

impl Default for StopFlag {
    fn default() -> Self {
        Self::new()
    }
}

impl StopFlag {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self { flag: watch::Sender::new(None), liveness: None }
    }

    /// A flag that also stands while the worker's session is not known to be alive.
    #[must_use]
    pub fn guarded(liveness: Arc<dyn Liveness>) -> Self {
        Self { liveness: Some(liveness), ..Self::new() }
    }

    /// Sets the flag unless it is set. True when this call did it.
    pub fn set(&self, cause: StopCause) -> bool {
        self.flag.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(cause);
            }
            first
        })
    }

    /// Sets the flag because somebody asked.
    pub fn stop(&self, reason: impl Into<String>) -> bool {
        self.set(StopCause::Asked(reason.into()))
    }

    /// The cause, when the flag is set.
    #[must_use]
    pub fn cause(&self) -> Option<StopCause> {
        let silent = || self.liveness.as_ref().is_some_and(|liveness| !liveness.alive());
        self.flag.borrow().clone().or_else(|| silent().then(|| StopCause::Here(OUT_OF_REACH.to_owned())))
    }

    /// Waits for the flag.
    pub async fn stopped(&self) -> StopCause {
        if let Some(cause) = self.cause() {
            return cause;
        }
        let mut receiver = self.flag.subscribe();
        match receiver.wait_for(Option::is_some).await.map(|cause| cause.clone()) {
            Ok(Some(cause)) => cause,
            // the sender lives in `self`, so neither arm can be met while this borrow lasts
            Ok(None) | Err(_) => StopCause::Asked("stopped".to_owned()),
        }
    }

    /// Runs `work` unless the flag is or becomes set first.
    ///
    /// # Errors
    /// The cause of the stop; `work` is dropped.
    pub async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, StopCause> {
        tokio::select! {
            biased;
            cause = self.stopped() => Err(cause),
            value = work => Ok(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn p23_the_first_cause_stays_and_waits_are_woken() {
        let flag = StopFlag::new();
        assert_eq!(flag.cause(), None);
        let waiting = tokio::spawn({
            let flag = flag.clone();
            async move { flag.unless_stopped(tokio::time::sleep(Duration::from_secs(600))).await }
        });
        tokio::task::yield_now().await;
        assert!(flag.stop("pause"));
        assert!(!flag.set(StopCause::Terminal(Failure::terminal("invalid_api_key", "no"))));
        let woken = tokio::time::timeout(Duration::from_secs(1), waiting).await.expect("woken at once");
        assert_eq!(woken.expect("no panic"), Err(StopCause::Asked("pause".to_owned())));
        assert_eq!(flag.unless_stopped(async { 1 }).await, Err(StopCause::Asked("pause".to_owned())));
    }

    #[derive(Debug)]
    struct Silent;

    impl Liveness for Silent {
        fn alive(&self) -> bool {
            false
        }
    }

    #[test]
    fn p4_a_process_that_nobody_has_heard_of_stops_here_and_its_run_does_not() {
        let flag = StopFlag::guarded(Arc::new(Silent));
        assert_eq!(flag.cause(), Some(StopCause::Here(OUT_OF_REACH.to_owned())));
        let drains = StopCause::Here("the worker is stopping".to_owned());
        assert!(flag.set(drains.clone()));
        assert_eq!(flag.cause(), Some(drains));
    }
}
