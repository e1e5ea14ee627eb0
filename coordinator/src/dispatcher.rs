//! The dispatcher: select, publish, await the confirm, then note (P2). It publishes only a window of ready tasks (P15), so
//! the broker's memory does not grow with the run, and pause and cancel act at once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bench_proto::{
    ids::{Role, RunId, RunNo},
    task::{QueueName, TaskMessage},
};
use bench_queue::{Outgoing, Queue, QueueError};
use bench_store::{OpenByRole, Store, StoreError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Longest time between two looks at the store.
const POLL: Duration = Duration::from_millis(250);
/// Pause after a wake-up: commits follow each other closely, and one look at the store serves several of them.
const GATHER: Duration = Duration::from_millis(4);
/// Pause after an error of the queue or the store.
const ERROR_PAUSE: Duration = Duration::from_millis(500);
/// Most tasks published in one batch.
const PUBLISH_BATCH: u32 = 512;
/// Smallest window, so that the first worker finds work.
const SMALLEST_WINDOW: i64 = 64;

/// What one run may have in flight.
#[derive(Debug, Clone)]
pub(crate) struct RunWindow {
    /// The run.
    pub run_no: RunNo,
    /// Its public id, for messages.
    pub run_id: RunId,
    /// Its pool.
    pub pool: String,
    /// Live slots per role.
    pub slots: BTreeMap<Role, usize>,
    /// `--concurrency`: questions of the run in flight over all workers.
    pub concurrency: Option<u32>,
}

impl RunWindow {
    /// How many more tasks of a role may be published now.
    #[must_use]
    pub(crate) fn room(&self, role: Role, open: &OpenByRole) -> u32 {
        let in_flight = |role: Role| open.get(&role).map_or(0, |o| o.queued + o.leased);
        let slots = self.slots.get(&role).copied().unwrap_or(0) as i64;
        let mut room = SMALLEST_WINDOW.max(3 * slots) - in_flight(role);
        if role == Role::Question
            && let Some(concurrency) = self.concurrency
        {
            // a question is in flight until its votes are in
            let judging = open.get(&Role::Judge).map_or(0, |o| o.unpublished + o.queued + o.delayed + o.leased);
            room = room.min(i64::from(concurrency) - in_flight(Role::Question) - judging);
        }
        u32::try_from(room.max(0)).unwrap_or(u32::MAX).min(PUBLISH_BATCH)
    }
}

/// Publishes ready tasks of one run until stopped.
pub(crate) async fn dispatch(
    store: Arc<dyn Store>,
    queue: Arc<dyn Queue>,
    window: RunWindow,
    opened: Arc<Notify>,
    stop: CancellationToken,
) {
    loop {
        let pause = match dispatch_once(store.as_ref(), queue.as_ref(), &window).await {
            Ok(Dispatched { published: 1.., .. }) => Duration::ZERO,
            Ok(Dispatched { next_due, .. }) => next_due.unwrap_or(POLL).min(POLL),
            Err(error) => {
                warn!("dispatching run {} waits: {error}", window.run_id);
                ERROR_PAUSE
            }
        };
        if pause.is_zero() {
            if stop.is_cancelled() {
                return;
            }
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = opened.notified() => tokio::time::sleep(GATHER).await,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

struct Dispatched {
    published: u32,
    next_due: Option<Duration>,
}

#[derive(Debug, thiserror::Error)]
enum DispatchError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
}

async fn dispatch_once(store: &dyn Store, queue: &dyn Queue, window: &RunWindow) -> Result<Dispatched, DispatchError> {
    let open = store.open_tasks(window.run_no).await?;
    let mut published = 0;
    for role in Role::ALL {
        let Some(of_role) = open.get(&role) else { continue };
        let room = window.room(role, &open);
        if of_role.unpublished == 0 || room == 0 {
            continue;
        }
        let tasks: Vec<_> = store.ready_tasks(window.run_no, role, room).await?.into_iter().map(|t| t.task).collect();
        if tasks.is_empty() {
            continue;
        }
        let message = |task: &_| Outgoing {
            message: TaskMessage::new(window.run_id.clone(), window.run_no, *task),
            headers: Vec::new(),
        };
        let messages: Vec<Outgoing> = tasks.iter().map(message).collect();
        queue.publish(&QueueName::new(window.pool.clone(), role), &messages).await?;
        // a crash before the note only publishes twice: the claim rule makes that harmless
        store.note_published(window.run_no, &tasks).await?;
        published += tasks.len() as u32;
    }
    let next_due = open
        .values()
        .filter_map(|o| o.next_due_ms)
        .min()
        .map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
    Ok(Dispatched { published, next_due: next_due.filter(|due| !due.is_zero()) })
}

#[cfg(test)]
mod tests {
    use bench_store::OpenTasks;

    use super::*;

    fn window(concurrency: Option<u32>) -> RunWindow {
        RunWindow {
            run_no: RunNo(1),
            run_id: RunId("r".into()),
            pool: "default".into(),
            slots: BTreeMap::from([(Role::Question, 100)]),
            concurrency,
        }
    }

    #[test]
    fn p15_the_window_is_three_times_the_slots_and_at_least_64() {
        let open = OpenByRole::from([(Role::Question, OpenTasks { queued: 50, leased: 100, ..OpenTasks::default() })]);
        assert_eq!(window(None).room(Role::Question, &open), 150);
        assert_eq!(
            window(None).room(Role::Judge, &open),
            64,
            "a role without live slots still gets the smallest window"
        );
        let full = OpenByRole::from([(Role::Question, OpenTasks { queued: 250, leased: 100, ..OpenTasks::default() })]);
        assert_eq!(window(None).room(Role::Question, &full), 0);
    }

    #[test]
    fn p25_concurrency_counts_questions_until_their_votes_are_in() {
        let open = OpenByRole::from([
            (Role::Question, OpenTasks { leased: 3, ..OpenTasks::default() }),
            (Role::Judge, OpenTasks { unpublished: 2, leased: 1, ..OpenTasks::default() }),
        ]);
        assert_eq!(window(Some(8)).room(Role::Question, &open), 2);
        assert_eq!(window(Some(4)).room(Role::Question, &open), 0);
    }
}
