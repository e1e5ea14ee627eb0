//! Measures steps.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bench_proto::step::Timing;
use bench_store::ClaimedTask;

/// Microseconds since 1970 by this machine's clock; for display only.
pub(crate) fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX))
}

/// Measures a step.
pub(crate) struct StepClock {
    started_us: i64,
    started: Instant,
}

impl StepClock {
    pub(crate) fn start() -> Self {
        Self { started_us: now_us(), started: Instant::now() }
    }

    /// When it began, microseconds since 1970.
    pub(crate) const fn started_us(&self) -> i64 {
        self.started_us
    }

    pub(crate) fn elapsed_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The timing of a step without waits, of which `provider_us` were spent in the memory system.
    pub(crate) fn timing(&self, task: &ClaimedTask, provider_us: u64) -> Timing {
        Timing {
            started_us: self.started_us,
            queue_wait_us: u64::try_from(task.queue_wait_us).unwrap_or(0),
            dispatch_us: u64::try_from(task.dispatch_us).unwrap_or(0),
            provider_us,
            total_us: self.elapsed_us(),
            attempts: u32::try_from(task.attempts).unwrap_or(0) + 1,
            session: task.session.0,
            ..Timing::default()
        }
    }
}
