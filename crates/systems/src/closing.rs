//! The end of what was started for a memory system: it is waited for, until somebody is in a hurry.

use std::time::Duration;

/// Longest wait once somebody is in a hurry.
const HURRIED: Duration = Duration::from_secs(5);

/// Waits until what was started has ended. Once `hurry` has come, five seconds more: then
/// `ends` is dropped, and what it waited for is killed.
pub async fn unless_hurried(ends: impl Future<Output = ()>, hurry: impl Future<Output = ()>) {
    tokio::pin!(ends);
    tokio::select! {
        () = &mut ends => return,
        () = hurry => {}
    }
    let _ = tokio::time::timeout(HURRIED, ends).await;
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_end_is_left_to_itself_once_somebody_is_in_a_hurry() {
        let begun = Instant::now();
        let seconds = Duration::from_secs;
        unless_hurried(sleep(seconds(33)), pending()).await;
        assert_eq!(begun.elapsed().as_secs(), 33, "nobody is in a hurry");
        unless_hurried(pending(), sleep(seconds(10))).await;
        assert_eq!(begun.elapsed().as_secs(), 33 + 10 + HURRIED.as_secs());
        unless_hurried(sleep(seconds(2)), ready(())).await;
        assert_eq!(begun.elapsed().as_secs(), 43 + HURRIED.as_secs() + 2, "what ends soon is waited for");
    }
}
