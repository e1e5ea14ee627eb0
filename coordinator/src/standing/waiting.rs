//! Why nothing of a run moves although nothing is away: all that is left waits for another try, after a `Retry-After` for instance.

use bench_store::{OpenByRole, OpenTasks, RunRow, StoreResult, Tasks};
use serde::Serialize;

/// Tasks of a run that all wait for another try.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Waiting {
    /// How many.
    pub tasks: i64,
    /// Seconds until the first of them is tried again.
    pub next_try_seconds: f64,
    /// What the one that comes next waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Waiting {
    /// What a run waits for; `None` while any of its tasks can be worked on.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn read(store: &dyn Tasks, run: &RunRow) -> StoreResult<Option<Self>> {
        let waiting = Self::from_open(&store.open_tasks(run.run_no).await?, None);
        Ok(match waiting {
            Some(waiting) => Some(Self { reason: store.waits_for(run.run_no).await?, ..waiting }),
            None => None,
        })
    }

    /// What a run waits for, by its open tasks that were read already.
    pub(crate) fn from_open(open: &OpenByRole, reason: Option<String>) -> Option<Self> {
        let total = |pick: fn(&OpenTasks) -> i64| open.values().map(pick).sum::<i64>();
        let tasks = total(|o| o.delayed);
        if tasks == 0 || total(|o| o.leased + o.queued + o.unpublished) > 0 {
            return None;
        }
        let due_ms = open.values().filter_map(|o| o.next_due_ms).min().unwrap_or(0);
        Some(Self { tasks, next_try_seconds: due_ms.max(0) as f64 / 1000.0, reason })
    }

    /// One line: `12 tasks wait for another try, the next one in 41.2 s: the provider asks to wait 60 s`.
    #[must_use]
    pub(crate) fn line(&self) -> String {
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{} tasks wait for another try, the next one in {:.1} s{reason}", self.tasks, self.next_try_seconds)
    }
}
