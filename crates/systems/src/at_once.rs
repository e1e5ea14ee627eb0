//! Requests to a model about one bank: several at once, and none is begun after one has failed.

use bench_proto::failure::Failure;
use futures::{StreamExt, stream::FuturesUnordered};

/// Makes requests, at most so many at once; their replies in order. What is under way is finished when one fails: it may be paid for.
///
/// # Errors
/// The failure of the first request that has failed, in their order.
pub(crate) async fn several_at_once<T, R>(requests: Vec<R>, most: usize) -> Result<Vec<T>, Failure>
where
    R: Future<Output = Result<T, Failure>>,
{
    let mut replies = Vec::with_capacity(requests.len());
    let (mut waiting, mut under_way) = (requests.into_iter().enumerate(), FuturesUnordered::new());
    let mut has_failed = false;
    loop {
        while !has_failed && under_way.len() < most {
            let Some((number, request)) = waiting.next() else { break };
            under_way.push(numbered(number, request));
        }
        let Some((number, reply)) = under_way.next().await else { break };
        has_failed |= reply.is_err();
        replies.push((number, reply));
    }
    replies.sort_unstable_by_key(|(number, _)| *number);
    replies.into_iter().map(|(_, reply)| reply).collect()
}

async fn numbered<R: Future>(number: usize, request: R) -> (usize, R::Output) {
    (number, request.await)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn replies_are_in_the_order_of_requests_whichever_comes_first() {
        let slow_first = (0..5_u64).map(|number| async move {
            tokio::time::sleep(std::time::Duration::from_millis(20 - 4 * number)).await;
            Ok(number)
        });
        assert_eq!(several_at_once(slow_first.collect(), 3).await, Ok(vec![0, 1, 2, 3, 4]));
    }

    #[tokio::test]
    async fn nothing_is_begun_after_a_failure_and_what_is_under_way_is_finished() {
        let (begun, finished) = (&AtomicU32::new(0), &AtomicU32::new(0));
        let requests = (0..100).map(|number| async move {
            begun.fetch_add(1, Ordering::Relaxed);
            if number == 2 {
                return Err(Failure::permanent("broken", "no"));
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            finished.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let failure = several_at_once(requests.collect(), 4).await.expect_err("one has failed");
        assert_eq!(failure.code, "broken");
        let (begun, finished) = (begun.load(Ordering::Relaxed), finished.load(Ordering::Relaxed));
        assert!(begun == 4 && finished == begun - 1, "{begun} begun, {finished} finished");
    }
}
