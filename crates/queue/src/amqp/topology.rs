//! Queues and dead letters as the broker knows them.
//!
//! Arguments never change within a topology number, which is part of every name (P12).

use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use bench_proto::task::QueueName;
use lapin::{
    Channel,
    options::{QueueDeclareOptions, QueueDeleteOptions, QueuePurgeOptions},
    types::{AMQPValue, FieldTable, ShortString},
};

use super::{dead, fault::Doing, link::BrokerLink};
use crate::{QueueDepth, QueueError};

/// A message that was delivered more often than this goes to the dead letters: it kills workers before they claim it.
const DELIVERY_LIMIT: i64 = 20;

/// Longest wait for the end of a queue.
const DELETION: Duration = Duration::from_secs(30);

/// A queue's name as AMQP wants it.
pub(super) fn short(name: &str) -> Result<ShortString, QueueError> {
    ShortString::try_new(name).map_err(|_| {
        QueueError::Setup(format!("queue name {name:.60}… is longer than 255 bytes: shorten the pool").into())
    })
}

/// Declares queues of tasks.
pub(super) async fn declare(link: &BrokerLink, queues: &[QueueName]) -> Result<(), QueueError> {
    let channel = link.channel().await?;
    for queue in queues {
        declare_queue(link, &channel, &queue.wire_name(), task_queue()).await?;
    }
    link.done_with(channel).await;
    Ok(())
}

/// Arguments of a queue of tasks.
fn task_queue() -> FieldTable {
    table([
        ("x-queue-type", AMQPValue::LongString("quorum".into())),
        ("x-delivery-limit", AMQPValue::LongLongInt(DELIVERY_LIMIT)),
        ("x-dead-letter-exchange", AMQPValue::LongString(dead::exchange().into())),
    ])
}

/// Deletes a queue of tasks and declares it again.
pub(super) async fn renew(link: &BrokerLink, queue: &QueueName) -> Result<(), QueueError> {
    let name = queue.wire_name();
    let channel = link.channel().await?;
    // the broker waits for the missing leader before it deletes; declaring meanwhile would find the old queue
    match tokio::time::timeout(DELETION, channel.queue_delete(short(&name)?, QueueDeleteOptions::default())).await {
        Ok(Ok(_)) => link.done_with(channel).await,
        Ok(Err(error)) => tracing::debug!("deleting {name}: {}", link.fault(Doing::Declaring(&name), &error)),
        Err(_) => return Err(link.silent()),
    }
    // what remains of the old queue can make the first attempts fail with an internal error
    let declaring = async || {
        let channel = link.channel().await?;
        declare_queue(link, &channel, &name, task_queue()).await?;
        link.done_with(channel).await;
        Ok(())
    };
    let attempts = ConstantBuilder::default().with_delay(Duration::from_millis(500)).with_max_times(20);
    declaring.retry(attempts).sleep(tokio::time::sleep).when(|error| matches!(error, QueueError::Unavailable(_))).await
}

/// Declares a durable queue.
pub(super) async fn declare_queue(
    link: &BrokerLink,
    channel: &Channel,
    name: &str,
    arguments: FieldTable,
) -> Result<(), QueueError> {
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    link.ask(Doing::Declaring(name), channel.queue_declare(short(name)?, durable, arguments)).await?;
    Ok(())
}

/// Arguments by their names.
pub(super) fn table<const N: usize>(entries: [(&str, AMQPValue); N]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in entries {
        table.insert(name.into(), value);
    }
    table
}

/// Counts what is ready and who consumes.
pub(super) async fn depth(link: &BrokerLink, queue: &QueueName) -> Result<QueueDepth, QueueError> {
    depth_of(link, &queue.wire_name()).await
}

/// As [`depth`], by the broker's name.
pub(super) async fn depth_of(link: &BrokerLink, name: &str) -> Result<QueueDepth, QueueError> {
    let channel = link.channel().await?;
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let declaring = channel.queue_declare(short(name)?, passive, FieldTable::default());
    let queue = link.ask(Doing::Using(name), declaring).await?;
    link.done_with(channel).await;
    Ok(QueueDepth { ready: u64::from(queue.message_count()), consumers: u64::from(queue.consumer_count()) })
}

/// Drops what is ready.
pub(super) async fn purge(link: &BrokerLink, queue: &QueueName) -> Result<(), QueueError> {
    let name = queue.wire_name();
    let channel = link.channel().await?;
    link.ask(Doing::Using(&name), channel.queue_purge(short(&name)?, QueuePurgeOptions::default())).await?;
    link.done_with(channel).await;
    Ok(())
}
