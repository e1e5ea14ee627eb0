//! What ends a dispatcher's pause between two looks.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;

/// Longest pause after a wake-up while much is in flight: commits follow each other closely, and one look at the store serves
/// several of them.
const GATHER: Duration = Duration::from_millis(10);
/// Tasks in flight for each millisecond of that pause: fewer are over too soon to wait for others, and so waits cost a slot at
/// most an eighth of a millisecond for each.
const IN_FLIGHT_PER_MS: i64 = 8;

/// What wakes a dispatcher before its pause is over. Nothing does in a cluster: it hears of commits by looking.
#[derive(Debug, Clone, Default)]
pub(crate) struct WakeUps {
    /// Tasks became ready in this process.
    pub opened: Arc<Notify>,
    /// Tasks ended in this process.
    pub ended: Arc<Notify>,
}

/// What the last look found, as far as the next one depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// A run has more tasks than its limit lets out now: the end of one makes room for the next.
    pub at_limit: bool,
    /// Tasks that are published or being worked on.
    pub in_flight: i64,
}

/// Pause after a wake-up, so that several commits share one look.
#[must_use]
pub(super) fn gather(in_flight: i64) -> Duration {
    Duration::from_millis(u64::try_from(in_flight / IN_FLIGHT_PER_MS).unwrap_or(0)).min(GATHER)
}

impl WakeUps {
    /// Waits until the next look is worth it, at most for `pause`.
    pub(super) async fn rest(&self, pause: Duration, found: Load, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(pause) => return,
            () = self.opened.notified() => {}
            // without a limit there is work at hand for all slots: ends are left to the next look
            () = self.ended.notified(), if found.at_limit => {}
        }
        let gather = gather(found.in_flight);
        if !gather.is_zero() {
            sleep(gather).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const PAUSE: Duration = Duration::from_millis(250);

    /// How long a dispatcher rests of which these wake-ups were heard.
    async fn rested(found: Load, opened: bool, ended: bool) -> Duration {
        let wake_ups = WakeUps::default();
        if opened {
            wake_ups.opened.notify_one();
        }
        if ended {
            wake_ups.ended.notify_one();
        }
        let began = Instant::now();
        wake_ups.rest(PAUSE, found, &CancellationToken::new()).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn p25_the_end_of_a_task_of_a_run_at_its_limit_wakes_the_dispatcher() {
        let found = |at_limit, in_flight| Load { at_limit, in_flight };
        assert_eq!(rested(found(true, 1), false, true).await, Duration::ZERO, "at once");
        assert_eq!(rested(found(false, 1), false, true).await, PAUSE, "others have work at hand");
        assert_eq!(rested(found(true, 1), false, false).await, PAUSE, "nothing has ended");
        assert_eq!(rested(found(false, 1), true, false).await, Duration::ZERO, "somebody waits for what became ready");
        assert_eq!(rested(found(true, 800), false, true).await, GATHER, "many ends are one look");
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_between_look_and_rest_is_not_missed() {
        let (wake_ups, stop) = (WakeUps::default(), CancellationToken::new());
        let began = Instant::now();
        for _ in 0..100 {
            wake_ups.ended.notify_one();
            wake_ups.rest(PAUSE, Load { at_limit: true, in_flight: 1 }, &stop).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[test]
    fn the_more_is_in_flight_the_more_commits_share_a_look() {
        let ms = [0, 1, 7, 8, 40, 80, 5_000].map(|in_flight| gather(in_flight).as_millis());
        assert_eq!(ms, [0, 0, 0, 1, 5, 10, 10]);
    }
}
