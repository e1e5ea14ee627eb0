//! One suite for all queue backends: [`queue_conformance!`](crate::queue_conformance) makes one test of each case.
//!
//! A case gets a connection to a service that no other test uses and in which nothing is declared. It panics with a reason
//! when the backend breaks the contract of [`crate::Queue`].

use std::{
    any::Any,
    collections::BTreeSet,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bench_proto::{
    ids::{Role, RunId, RunNo, TaskKey},
    task::{QueueName, TaskMessage},
};

use crate::{Consumer, Delivery, Outgoing, Queue, QueueDepth, QueueError};

/// Makes a test of each case. The argument is the path of an async function without arguments that returns a [`Fixture`].
#[macro_export]
macro_rules! queue_conformance {
    ($factory:path) => {
        $crate::queue_conformance! { @cases $factory:
            messages_arrive_in_order_with_their_headers,
            a_batch_is_received_at_once,
            receive_waits_for_a_message_and_no_longer,
            prefetch_bounds_what_is_held,
            acks_in_parts_are_kept,
            what_was_not_acked_comes_again,
            depth_counts_messages_and_consumers,
            purge_drops_what_is_ready,
            consumers_share_a_queue,
            a_cancelled_receive_loses_nothing,
            queues_are_apart,
            declaring_twice_keeps_messages,
            queues_that_are_not_declared_are_setup_errors,
            large_batches_are_confirmed,
            close_ends_everything,
        }
    };
    (@cases $factory:path: $($case:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let fixture = $factory().await;
                $crate::conformance::$case(fixture.queue.clone()).await;
                fixture.queue.close().await;
            }
        )+
    };
}

/// A connection under test, and what must live as long as it.
pub struct Fixture {
    /// The connection.
    pub queue: Arc<dyn Queue>,
    /// Dropped after the case: the service, the virtual host.
    pub guard: Box<dyn Any + Send>,
}

impl std::fmt::Debug for Fixture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Fixture").field(&self.queue.describe()).finish()
    }
}

/// How long a case waits for what must come.
const SOON: Duration = Duration::from_secs(30);
/// How long a case waits to see that nothing comes.
const A_MOMENT: Duration = Duration::from_millis(200);

/// Messages of a test run whose task numbers are the given ones; each carries its number in a header.
#[must_use]
pub fn messages(numbers: Range<u32>) -> Vec<Outgoing> {
    numbers
        .map(|n| Outgoing {
            message: TaskMessage::new(RunId("conformance".into()), RunNo(1), TaskKey::question(0, n)),
            headers: vec![("traceparent".into(), format!("00-{n:032x}-0000000000000001-01"))],
        })
        .collect()
}

/// The number of a message made by [`messages`].
#[must_use]
pub fn number(delivery: &Delivery) -> u32 {
    TaskKey::from_wire(delivery.message.task).expect("a task key").index()
}

fn numbers(deliveries: &[Delivery]) -> Vec<u32> {
    deliveries.iter().map(number).collect()
}

fn name() -> QueueName {
    QueueName::new("default", Role::Question)
}

async fn declared(queue: &dyn Queue) -> QueueName {
    queue.declare(&[name()]).await.expect("declares");
    name()
}

/// Receives until `count` messages are there.
///
/// # Panics
/// When they do not come within ten seconds.
pub async fn receive_all(consumer: &mut dyn Consumer, count: usize) -> Vec<Delivery> {
    let mut all = Vec::new();
    let deadline = tokio::time::Instant::now() + SOON;
    while all.len() < count {
        assert!(tokio::time::Instant::now() < deadline, "only {} of {count} messages have come", all.len());
        all.extend(consumer.receive(count - all.len(), Duration::from_secs(1)).await.expect("receives"));
    }
    all
}

async fn eventually_depth(queue: &dyn Queue, expected: QueueDepth) {
    let deadline = tokio::time::Instant::now() + SOON;
    loop {
        let depth = queue.depth(&name()).await.expect("depth");
        if depth == expected {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "depth stays {depth:?}, expected {expected:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Messages come in the order of their publication, with body and headers.
pub async fn messages_arrive_in_order_with_their_headers(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    let sent = messages(0..50);
    queue.publish(&name, &sent[..20]).await.expect("publishes");
    queue.publish(&name, &sent[20..]).await.expect("publishes");
    queue.publish(&name, &[]).await.expect("an empty batch is fine");
    let mut consumer = queue.consume(&name, 100).await.expect("consumes");
    let received = receive_all(&mut *consumer, 50).await;
    for (delivery, outgoing) in received.iter().zip(&sent) {
        assert_eq!(delivery.message, outgoing.message);
        assert_eq!(delivery.headers, outgoing.headers);
        assert!(!delivery.redelivered);
    }
    consumer.ack(received).await.expect("acks");
}

/// What is there comes at once, up to the number asked for.
pub async fn a_batch_is_received_at_once(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    queue.publish(&name, &messages(0..10)).await.expect("publishes");
    let mut consumer = queue.consume(&name, 100).await.expect("consumes");
    // a broker pushes: all ten are here when the first few have come and a moment has passed; on a busy machine moments are longer
    for patience in [1, 5, 25, 100] {
        let first = receive_all(&mut *consumer, 3).await;
        assert_eq!(numbers(&first), [0, 1, 2], "no more than asked for");
        tokio::time::sleep(A_MOMENT * patience).await;
        let mut rest = consumer.receive(100, SOON).await.expect("receives");
        let in_one_batch = rest.len() == 7;
        rest.extend(receive_all(&mut *consumer, 7 - rest.len()).await);
        assert_eq!(numbers(&rest), (3..10).collect::<Vec<_>>());
        if in_one_batch {
            return;
        }
        consumer.ack(first).await.expect("acks");
        consumer.ack(rest).await.expect("acks");
        queue.publish(&name, &messages(0..10)).await.expect("publishes");
    }
    panic!("what is there does not come in one batch");
}

/// An empty queue answers after the wait; a message that comes meanwhile ends it.
pub async fn receive_waits_for_a_message_and_no_longer(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    let mut consumer = queue.consume(&name, 10).await.expect("consumes");
    let started = tokio::time::Instant::now();
    assert!(consumer.receive(10, A_MOMENT).await.expect("receives").is_empty());
    assert!(started.elapsed() >= A_MOMENT / 2, "it has not waited");
    let publisher = Arc::clone(&queue);
    let publishing = tokio::spawn(async move {
        tokio::time::sleep(A_MOMENT).await;
        publisher.publish(&name, &messages(0..1)).await
    });
    let started = tokio::time::Instant::now();
    assert_eq!(numbers(&consumer.receive(10, SOON).await.expect("receives")), [0]);
    assert!(started.elapsed() < SOON / 2, "it has waited although a message was there");
    publishing.await.expect("no panic").expect("publishes");
}

/// A consumer never holds more than its prefetch; acking makes room.
pub async fn prefetch_bounds_what_is_held(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    queue.publish(&name, &messages(0..10)).await.expect("publishes");
    let mut consumer = queue.consume(&name, 4).await.expect("consumes");
    let mut held = receive_all(&mut *consumer, 4).await;
    assert!(consumer.receive(10, A_MOMENT).await.expect("receives").is_empty(), "more than the prefetch");
    consumer.ack(held.drain(..2).collect()).await.expect("acks");
    let more = receive_all(&mut *consumer, 2).await;
    assert_eq!(numbers(&more), [4, 5]);
    assert!(consumer.receive(10, A_MOMENT).await.expect("receives").is_empty(), "more than the prefetch");
}

/// Acking a part of a batch, also from its middle, settles that part and nothing else.
pub async fn acks_in_parts_are_kept(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    queue.publish(&name, &messages(0..10)).await.expect("publishes");
    let mut consumer = queue.consume(&name, 100).await.expect("consumes");
    let (mut acked, mut kept) = (Vec::new(), Vec::new());
    for delivery in receive_all(&mut *consumer, 10).await {
        let to = if matches!(number(&delivery), 1 | 2 | 5 | 9) { &mut acked } else { &mut kept };
        to.push(delivery);
    }
    consumer.ack(acked).await.expect("acks");
    let first_kept = kept.remove(0);
    consumer.ack(vec![first_kept]).await.expect("acks what is older than the last ack");
    consumer.ack(Vec::new()).await.expect("acking nothing is fine");
    drop(consumer);
    let mut next = queue.consume(&name, 100).await.expect("consumes");
    let again: BTreeSet<u32> = receive_all(&mut *next, 5).await.iter().map(number).collect();
    assert_eq!(again, BTreeSet::from([3, 4, 6, 7, 8]));
    assert!(next.receive(10, A_MOMENT).await.expect("receives").is_empty());
}

/// What a dropped consumer has not acked goes to the next one, marked as redelivered; what it has acked does not.
pub async fn what_was_not_acked_comes_again(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    queue.publish(&name, &messages(0..6)).await.expect("publishes");
    let mut consumer = queue.consume(&name, 4).await.expect("consumes");
    let mut held = receive_all(&mut *consumer, 4).await;
    consumer.ack(held.drain(..2).collect()).await.expect("acks");
    drop(consumer);
    let mut next = queue.consume(&name, 100).await.expect("consumes");
    let mut again = receive_all(&mut *next, 4).await;
    again.sort_by_key(number);
    assert_eq!(numbers(&again), [2, 3, 4, 5]);
    assert!(again[..2].iter().all(|delivery| delivery.redelivered), "2 and 3 were delivered before");
}

/// Depth counts what is ready, and who consumes.
pub async fn depth_counts_messages_and_consumers(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    eventually_depth(&*queue, QueueDepth { ready: 0, consumers: 0 }).await;
    queue.publish(&name, &messages(0..7)).await.expect("publishes");
    eventually_depth(&*queue, QueueDepth { ready: 7, consumers: 0 }).await;
    let mut consumer = queue.consume(&name, 3).await.expect("consumes");
    let held = receive_all(&mut *consumer, 3).await;
    eventually_depth(&*queue, QueueDepth { ready: 4, consumers: 1 }).await;
    drop(held);
    drop(consumer);
    eventually_depth(&*queue, QueueDepth { ready: 7, consumers: 0 }).await;
}

/// Purging drops what is ready; what is published later comes.
pub async fn purge_drops_what_is_ready(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    queue.publish(&name, &messages(0..7)).await.expect("publishes");
    eventually_depth(&*queue, QueueDepth { ready: 7, consumers: 0 }).await;
    queue.purge(&name).await.expect("purges");
    eventually_depth(&*queue, QueueDepth::default()).await;
    queue.publish(&name, &messages(7..8)).await.expect("publishes");
    let mut consumer = queue.consume(&name, 3).await.expect("consumes");
    assert_eq!(numbers(&receive_all(&mut *consumer, 1).await), [7]);
}

/// Two consumers get each message once, between them.
pub async fn consumers_share_a_queue(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    let mut tasks = Vec::new();
    let came = Arc::new(AtomicUsize::new(0));
    let deadline = tokio::time::Instant::now() + SOON;
    for _ in 0..2 {
        let mut consumer = queue.consume(&name, 5).await.expect("consumes");
        let came = Arc::clone(&came);
        tasks.push(tokio::spawn(async move {
            let mut seen = Vec::new();
            while came.load(Ordering::Relaxed) < 200 && tokio::time::Instant::now() < deadline {
                let batch = consumer.receive(5, A_MOMENT).await.expect("receives");
                came.fetch_add(batch.len(), Ordering::Relaxed);
                seen.extend(numbers(&batch));
                consumer.ack(batch).await.expect("acks");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            seen
        }));
    }
    for batch in 0..10 {
        queue.publish(&name, &messages(batch * 20..batch * 20 + 20)).await.expect("publishes");
    }
    let mut all = Vec::new();
    for task in tasks {
        let seen = task.await.expect("no panic");
        assert!(!seen.is_empty(), "a consumer got nothing");
        all.extend(seen);
    }
    all.sort_unstable();
    assert_eq!(all, (0..200).collect::<Vec<_>>());
}

/// A receive that is given up (dropped) takes no message with it.
pub async fn a_cancelled_receive_loses_nothing(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    let mut consumer = queue.consume(&name, 100).await.expect("consumes");
    for n in 0..20 {
        // the receive is dropped at the moment when the message comes
        let _ = tokio::time::timeout(Duration::from_millis(1), consumer.receive(10, SOON)).await.map(|received| {
            assert!(received.expect("receives").is_empty(), "nothing was published yet");
        });
        queue.publish(&name, &messages(n..n + 1)).await.expect("publishes");
        let received = receive_all(&mut *consumer, 1).await;
        assert_eq!(numbers(&received), [n]);
        consumer.ack(received).await.expect("acks");
    }
}

/// Queues of different roles and pools do not mix.
pub async fn queues_are_apart(queue: Arc<dyn Queue>) {
    let names = [name(), QueueName::new("default", Role::Judge), QueueName::new("gpu", Role::Question)];
    queue.declare(&names).await.expect("declares");
    for (n, name) in (0..).zip(&names) {
        queue.publish(name, &messages(n..n + 1)).await.expect("publishes");
    }
    for (n, name) in (0..).zip(&names) {
        let mut consumer = queue.consume(name, 10).await.expect("consumes");
        assert_eq!(numbers(&receive_all(&mut *consumer, 1).await), [n]);
        assert!(consumer.receive(10, A_MOMENT).await.expect("receives").is_empty());
    }
}

/// Declaring is idempotent.
pub async fn declaring_twice_keeps_messages(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    queue.publish(&name, &messages(0..3)).await.expect("publishes");
    declared(&*queue).await;
    let mut consumer = queue.consume(&name, 10).await.expect("consumes");
    assert_eq!(numbers(&receive_all(&mut *consumer, 3).await), [0, 1, 2]);
}

/// Using a queue that is not declared is a setup error that names it, and the connection stays usable.
pub async fn queues_that_are_not_declared_are_setup_errors(queue: Arc<dyn Queue>) {
    let missing = QueueName::new("nowhere", Role::Judge);
    let errors = [
        queue.publish(&missing, &messages(0..3)).await.err(),
        queue.consume(&missing, 1).await.err(),
        queue.depth(&missing).await.err(),
        queue.purge(&missing).await.err(),
    ];
    for (n, error) in errors.iter().enumerate() {
        match error {
            Some(QueueError::Setup(message)) => assert!(message.contains("bench.t1.nowhere.judge"), "{n}: {message}"),
            other => panic!("operation {n}: expected a setup error, got {other:?}"),
        }
    }
    messages_arrive_in_order_with_their_headers(queue).await;
}

/// A batch larger than any window is published whole.
pub async fn large_batches_are_confirmed(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    queue.publish(&name, &messages(0..5000)).await.expect("publishes");
    let mut consumer = queue.consume(&name, 200).await.expect("consumes");
    let mut seen = Vec::new();
    while seen.len() < 5000 {
        let batch = consumer.receive(200, SOON).await.expect("receives");
        assert!(!batch.is_empty(), "only {} of 5000 have come", seen.len());
        seen.extend(numbers(&batch));
        consumer.ack(batch).await.expect("acks");
    }
    assert_eq!(seen, (0..5000).collect::<Vec<_>>());
}

/// Closing ends waiting consumers and refuses everything later; closing twice is fine.
pub async fn close_ends_everything(queue: Arc<dyn Queue>) {
    let name = declared(&*queue).await;
    let mut consumer = queue.consume(&name, 10).await.expect("consumes");
    let waiting = tokio::spawn(async move { consumer.receive(1, SOON).await });
    tokio::time::sleep(A_MOMENT).await;
    queue.close().await;
    let ended = tokio::time::timeout(SOON / 2, waiting).await.expect("close wakes consumers").expect("no panic");
    assert!(matches!(ended, Err(QueueError::Closed)), "{ended:?}");
    assert!(matches!(queue.publish(&name, &messages(0..1)).await, Err(QueueError::Closed)));
    assert!(matches!(queue.consume(&name, 1).await.err(), Some(QueueError::Closed)));
    assert!(matches!(queue.depth(&name).await, Err(QueueError::Closed)));
    queue.close().await;
}
