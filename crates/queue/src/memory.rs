//! Queues within one process (`memory:`): what a run without a broker uses.
//!
//! Bounded only by the dispatcher's window (P15). Each connection has its own queues, and they end with it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bench_proto::task::{QueueName, TaskMessage};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{Consumer, Delivery, Headers, Outgoing, Queue, QueueDepth, QueueError};

/// Connects to fresh queues; the URL is `memory:` and nothing else.
pub(crate) fn connect(url: &str) -> Result<Arc<dyn Queue>, QueueError> {
    match url.strip_prefix("memory:") {
        Some("" | "//") => Ok(Arc::new(MemoryQueue::default())),
        _ => Err(QueueError::Setup(
            format!("cannot read queue URL '{url}': use memory: without anything after it").into(),
        )),
    }
}

/// A queue service within the process.
#[derive(Debug, Default)]
pub struct MemoryQueue {
    queues: Mutex<HashMap<QueueName, Arc<OneQueue>>>,
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct OneQueue {
    ready: Mutex<VecDeque<Item>>,
    /// One permit while something may be there for a waiting consumer; who leaves messages behind passes it on.
    arrived: Notify,
    consumers: AtomicU64,
    last_tag: AtomicU64,
}

#[derive(Debug, Clone)]
struct Item {
    message: TaskMessage,
    headers: Headers,
    redelivered: bool,
}

impl OneQueue {
    fn ready(&self) -> MutexGuard<'_, VecDeque<Item>> {
        // whole items only are moved under the lock, so that it is sound after a panic
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryQueue {
    fn queue(&self, name: &QueueName) -> Result<Arc<OneQueue>, QueueError> {
        if self.closed.is_cancelled() {
            return Err(QueueError::Closed);
        }
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues
            .get(name)
            .cloned()
            .ok_or_else(|| QueueError::Setup(format!("queue {} is not declared", name.wire_name()).into()))
    }
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn declare(&self, names: &[QueueName]) -> Result<(), QueueError> {
        if self.closed.is_cancelled() {
            return Err(QueueError::Closed);
        }
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            queues.entry(name.clone()).or_default();
        }
        Ok(())
    }

    async fn publish(&self, name: &QueueName, messages: &[Outgoing]) -> Result<(), QueueError> {
        let queue = self.queue(name)?;
        if messages.is_empty() {
            return Ok(());
        }
        let items = messages.iter().map(|outgoing| Item {
            message: outgoing.message.clone(),
            headers: outgoing.headers.clone(),
            redelivered: false,
        });
        queue.ready().extend(items);
        queue.arrived.notify_one();
        Ok(())
    }

    async fn consume(&self, name: &QueueName, prefetch: u16) -> Result<Box<dyn Consumer>, QueueError> {
        let queue = self.queue(name)?;
        queue.consumers.fetch_add(1, Ordering::Relaxed);
        let prefetch = if prefetch == 0 { usize::MAX } else { usize::from(prefetch) };
        Ok(Box::new(MemoryConsumer { queue, prefetch, unacked: VecDeque::new(), closed: self.closed.clone() }))
    }

    async fn depth(&self, name: &QueueName) -> Result<QueueDepth, QueueError> {
        let queue = self.queue(name)?;
        let ready = queue.ready().len() as u64;
        Ok(QueueDepth { ready, consumers: queue.consumers.load(Ordering::Relaxed) })
    }

    async fn purge(&self, name: &QueueName) -> Result<(), QueueError> {
        self.queue(name)?.ready().clear();
        Ok(())
    }

    fn describe(&self) -> String {
        "memory:".into()
    }

    async fn close(&self) {
        self.closed.cancel();
    }
}

#[derive(Debug)]
struct MemoryConsumer {
    queue: Arc<OneQueue>,
    prefetch: usize,
    /// Delivered and not acked, by rising tag.
    unacked: VecDeque<(u64, Item)>,
    closed: CancellationToken,
}

impl MemoryConsumer {
    fn take(&mut self, max: usize) -> Vec<Delivery> {
        let room = max.max(1).min(self.prefetch.saturating_sub(self.unacked.len()));
        if room == 0 {
            return Vec::new();
        }
        let (items, more): (Vec<Item>, bool) = {
            let mut ready = self.queue.ready();
            let count = room.min(ready.len());
            (ready.drain(..count).collect(), !ready.is_empty())
        };
        if more {
            self.queue.arrived.notify_one();
        }
        let first = self.queue.last_tag.fetch_add(items.len() as u64, Ordering::Relaxed) + 1;
        let mut deliveries = Vec::with_capacity(items.len());
        for (tag, item) in (first..).zip(items) {
            // a copy stays here: what is not acked goes back when the consumer is dropped
            let Item { message, headers, redelivered } = item.clone();
            self.unacked.push_back((tag, item));
            deliveries.push(Delivery { message, headers, tag, redelivered });
        }
        deliveries
    }
}

#[async_trait]
impl Consumer for MemoryConsumer {
    async fn receive(&mut self, max: usize, wait: Duration) -> Result<Vec<Delivery>, QueueError> {
        let mut deadline = None;
        loop {
            if self.closed.is_cancelled() {
                return Err(QueueError::Closed);
            }
            let deliveries = self.take(max);
            if !deliveries.is_empty() {
                return Ok(deliveries);
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + wait);
            if self.unacked.len() >= self.prefetch {
                // full: the permit is left for consumers that have room
                tokio::select! {
                    () = tokio::time::sleep_until(deadline) => return Ok(Vec::new()),
                    () = self.closed.cancelled() => {}
                }
            } else {
                tokio::select! {
                    () = self.queue.arrived.notified() => {}
                    () = tokio::time::sleep_until(deadline) => return Ok(Vec::new()),
                    () = self.closed.cancelled() => {}
                }
            }
        }
    }

    async fn ack(&mut self, deliveries: Vec<Delivery>) -> Result<(), QueueError> {
        if self.closed.is_cancelled() {
            return Err(QueueError::Closed);
        }
        for delivery in deliveries {
            if self.unacked.front().is_some_and(|(tag, _)| *tag == delivery.tag) {
                self.unacked.pop_front();
            } else if let Ok(place) = self.unacked.binary_search_by_key(&delivery.tag, |(tag, _)| *tag) {
                self.unacked.remove(place);
            } else {
                return Err(QueueError::Setup(
                    format!("delivery {} is not held by this consumer", delivery.tag).into(),
                ));
            }
        }
        Ok(())
    }
}

impl Drop for MemoryConsumer {
    fn drop(&mut self) {
        self.queue.consumers.fetch_sub(1, Ordering::Relaxed);
        if self.unacked.is_empty() {
            return;
        }
        let mut ready = self.queue.ready();
        for (_, item) in self.unacked.drain(..).rev() {
            ready.push_front(Item { redelivered: true, ..item });
        }
        drop(ready);
        self.queue.arrived.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_proto::ids::Role;

    async fn fixture() -> crate::conformance::Fixture {
        crate::conformance::Fixture { queue: Arc::new(MemoryQueue::default()), guard: Box::new(()) }
    }

    crate::queue_conformance!(fixture);

    #[tokio::test]
    async fn deliveries_of_another_consumer_cannot_be_acked() {
        let queue = MemoryQueue::default();
        let name = QueueName::new("default", Role::Question);
        queue.declare(std::slice::from_ref(&name)).await.expect("declares");
        queue.publish(&name, &crate::conformance::messages(0..2)).await.expect("publishes");
        let mut one = queue.consume(&name, 1).await.expect("consumes");
        let mut two = queue.consume(&name, 1).await.expect("consumes");
        let mut held = one.receive(1, Duration::ZERO).await.expect("receives");
        held.extend(two.receive(1, Duration::ZERO).await.expect("receives"));
        assert!(matches!(one.ack(held).await, Err(QueueError::Setup(_))));
    }

    /// Speed is printed, not asserted: the machine may be busy.
    #[tokio::test]
    async fn crude_speed() {
        let queue = MemoryQueue::default();
        let name = QueueName::new("default", Role::Question);
        queue.declare(std::slice::from_ref(&name)).await.expect("declares");
        let batch = crate::conformance::messages(0..100);
        let mut consumer = queue.consume(&name, 1000).await.expect("consumes");
        let started = std::time::Instant::now();
        let mut received = 0;
        for _ in 0..200 {
            queue.publish(&name, &batch).await.expect("publishes");
            let deliveries = consumer.receive(100, Duration::ZERO).await.expect("receives");
            received += deliveries.len();
            consumer.ack(deliveries).await.expect("acks");
        }
        eprintln!(
            "memory queue: {:.0} messages/s through publish, receive and ack",
            f64::from(received as u32) / started.elapsed().as_secs_f64()
        );
        assert_eq!(received, 20_000);
    }
}
