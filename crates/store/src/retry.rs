//! Waiting for a store that is away: every call of the store may be made again, so whoever needs its answer repeats it.
//!
//! Which errors pass, the errors know ([`crate::StoreError::is_transient`]); that the store is away, and that it is back, is said once for
//! the whole process ([`outage::STORE`]).

use std::{
    future::{Future, pending},
    pin::pin,
    time::Duration,
};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use bench_telemetry::outage;

use crate::StoreResult;

/// Waits between tries.
const WAITS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(50))
    .with_factor(2.0)
    .with_max_delay(Duration::from_secs(2))
    .without_max_times();

/// Repeats a call while the store is away.
///
/// # Errors
/// What no repetition helps against.
pub async fn retry<T, F>(call: impl FnMut() -> F) -> StoreResult<T>
where
    F: Future<Output = StoreResult<T>>,
{
    retry_until(pending(), call).await
}

/// Repeats a call while the store is away, until `stop`: then nobody waits any longer. A try that is under way is never dropped.
///
/// # Errors
/// What no repetition helps against; after `stop` also what the last try has met.
pub async fn retry_until<T, F>(stop: impl Future<Output = ()>, mut call: impl FnMut() -> F) -> StoreResult<T>
where
    F: Future<Output = StoreResult<T>>,
{
    let (mut stop, mut waits, mut waiting) = (pin!(stop), WAITS.build(), None);
    loop {
        match call().await {
            Err(error) if error.is_transient() => {
                outage::STORE.met(&mut waiting, &error);
                tokio::select! {
                    biased;
                    () = &mut stop => return Err(error),
                    () = tokio::time::sleep(waits.next().unwrap_or_default()) => {}
                }
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;
    use crate::StoreError;

    fn away() -> StoreError {
        StoreError::Unavailable("away".into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_away_is_waited_for_ever_more_slowly() {
        let (tries, begun) = (Cell::new(0), Instant::now());
        let back_at_the_tenth = || {
            tries.set(tries.get() + 1);
            let number = tries.get();
            async move { if number < 10 { Err(away()) } else { Ok(number) } }
        };
        assert_eq!(retry(back_at_the_tenth).await.expect("is back"), 10);
        let waits = [50, 100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000];
        let (waited, expected) = (begun.elapsed().as_millis(), waits.iter().sum::<u128>());
        assert!((expected..expected + 50).contains(&waited), "{waited} ms");
    }

    #[tokio::test]
    async fn what_does_not_pass_is_said_at_once() {
        let tries = Cell::new(0);
        let damaged = || {
            tries.set(tries.get() + 1);
            async { Err::<(), _>(StoreError::Corrupt("broken".into())) }
        };
        assert!(matches!(retry(damaged).await, Err(StoreError::Corrupt(_))));
        assert_eq!(tries.get(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_told_to_stop_waits_no_more_and_drops_no_try() {
        let begun = Instant::now();
        let stop = || tokio::time::sleep(Duration::from_secs(1));
        let waited = retry_until(stop(), || async { Err::<(), _>(away()) }).await;
        assert!(waited.is_err_and(|error| error.is_transient()));
        assert!(begun.elapsed() < Duration::from_millis(1_010), "{:?}", begun.elapsed());
        let slow = || async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            Ok(())
        };
        assert!(retry_until(stop(), slow).await.is_ok(), "it was under way");
    }
}
