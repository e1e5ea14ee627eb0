//! RabbitMQ, 3.10 to 4.x, without plugins (`amqp:`, `amqps:`).
//!
//! - Quorum queues, one per pool and role, declared by `migrate`; workers need no configure permission (P12).
//! - Publishing is confirmed and mandatory: [`Queue::publish`] returns when every message is safe in its queue.
//! - A consumer has a channel and a fixed prefetch of its own, and comes back by itself when the broker does.
//! - What cannot be read, and what has been delivered more than 20 times, goes to the dead letters.
//! - Two connections: what publishes must not be held up by what consumes (the broker stops reading from connections that
//!   publish while it is short of memory or disk). Each is opened when it is first used.
//!
//! Nothing here is needed for safety: messages are hints, and every loss is repaired from the store (P1, P2).

mod acks;
mod consume;
mod dead;
mod fault;
mod link;
mod publish;
mod tls;
mod topology;
pub mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use bench_proto::task::QueueName;
use tokio_util::sync::CancellationToken;

use crate::{Consumer, DeadLetters, Fate, Outgoing, Queue, QueueDepth, QueueError, Unreadable};
use link::BrokerLink;
use publish::Publisher;

/// Connects to the broker behind a URL such as `amqp://user:password@host:5672/vhost`.
///
/// # Errors
/// [`QueueError::Setup`] for a URL that cannot be read, [`QueueError::Refused`] for a user, password or virtual host that the broker
/// refuses, [`QueueError::Unavailable`] when it cannot be reached.
pub async fn connect(url: &str) -> Result<Arc<dyn Queue>, QueueError> {
    let closed = CancellationToken::new();
    let consuming = Arc::new(BrokerLink::new(url, "consume", closed.clone())?);
    let publishing = Arc::new(BrokerLink::new(url, "publish", closed.clone())?);
    consuming.done_with(consuming.channel().await?).await;
    let publisher = Publisher::new(Arc::clone(&publishing), Arc::clone(&consuming));
    Ok(Arc::new(AmqpQueue { consuming, publishing, publisher, closed }))
}

/// A connection to a broker.
#[derive(Debug)]
struct AmqpQueue {
    /// Consumes, declares and counts.
    consuming: Arc<BrokerLink>,
    publishing: Arc<BrokerLink>,
    publisher: Publisher,
    closed: CancellationToken,
}

#[async_trait]
impl Queue for AmqpQueue {
    async fn declare(&self, queues: &[QueueName]) -> Result<(), QueueError> {
        dead::declare(&self.consuming, &self.publishing).await.map_err(|error| match error {
            // every queue names them
            QueueError::Setup(why) => QueueError::Refused(why),
            error => error,
        })?;
        topology::declare(&self.consuming, queues).await
    }

    async fn publish(&self, queue: &QueueName, messages: &[Outgoing]) -> Result<(), QueueError> {
        self.publisher.publish(queue, messages).await
    }

    async fn consume(&self, queue: &QueueName, prefetch: u16) -> Result<Box<dyn Consumer>, QueueError> {
        Ok(Box::new(consume::AmqpConsumer::start(Arc::clone(&self.consuming), queue, prefetch).await?))
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth, QueueError> {
        topology::depth(&self.consuming, queue).await
    }

    async fn purge(&self, queue: &QueueName) -> Result<(), QueueError> {
        topology::purge(&self.consuming, queue).await
    }

    async fn take_dead_letters(&self, max: usize) -> Result<DeadLetters, QueueError> {
        dead::take(&self.consuming, &self.publishing, max).await
    }

    async fn dead_letter_count(&self) -> Result<u64, QueueError> {
        dead::count(&self.consuming).await
    }

    fn has_dead_letters(&self) -> bool {
        true
    }

    async fn unreadable(&self) -> Result<Vec<Unreadable>, QueueError> {
        dead::look(&self.consuming).await
    }

    async fn settle_unreadable(&self, ids: &[String], fate: Fate) -> Result<u64, QueueError> {
        dead::settle(&self.consuming, &self.publishing, ids, fate).await
    }

    fn reconnects(&self) -> u64 {
        self.consuming.reopened() + self.publisher.reopened()
    }

    fn describe(&self) -> String {
        self.consuming.describe()
    }

    async fn close(&self) {
        self.closed.cancel();
        self.publisher.close().await;
        self.consuming.close().await;
    }
}
