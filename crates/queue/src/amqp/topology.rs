//! Queues and dead letters as the broker knows them.
//!
//! Arguments never change within a topology number, which is part of every name (P12).

use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use bench_proto::task::{QueueName, TOPOLOGY_VERSION, TaskMessage};
use lapin::{
    Channel, ExchangeKind,
    options::{
        BasicAckOptions, BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
        QueueDeleteOptions, QueuePurgeOptions,
    },
    types::{AMQPValue, FieldTable, ShortString},
};

use super::{fault::Doing, link::Link};
use crate::{DeadLetters, QueueDepth, QueueError};

/// A message that was delivered more often than this goes to the dead letters: it kills workers before they claim it.
const DELIVERY_LIMIT: i64 = 20;

/// Longest wait for the end of a queue.
const DELETION: Duration = Duration::from_secs(30);

/// Name of the dead-letter exchange and of its queue.
pub(super) fn dead_name() -> String {
    format!("bench.t{TOPOLOGY_VERSION}.dead")
}

/// A queue's name as AMQP wants it.
pub(super) fn short(name: &str) -> Result<ShortString, QueueError> {
    ShortString::try_new(name)
        .map_err(|_| QueueError::Setup(format!("queue name {name:.60}… is longer than 255 bytes: shorten the pool")))
}

/// Declares dead letters and queues.
pub(super) async fn declare(link: &Link, queues: &[QueueName]) -> Result<(), QueueError> {
    let channel = link.channel().await?;
    let dead = dead_name();
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let exchange = channel.exchange_declare(short(&dead)?, ExchangeKind::Fanout, durable, FieldTable::default());
    link.ask(Doing::Declaring(&dead), exchange).await?;
    // classic: what lies there is read and put back (`take_dead_letters`), which a quorum queue counts as deliveries
    let arguments = table([("x-queue-type", AMQPValue::LongString("classic".into()))]);
    declare_queue(link, &channel, &dead, arguments).await?;
    let bind =
        channel.queue_bind(short(&dead)?, short(&dead)?, "".into(), QueueBindOptions::default(), FieldTable::default());
    link.ask(Doing::Declaring(&dead), bind).await?;
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
        ("x-dead-letter-exchange", AMQPValue::LongString(dead_name().into())),
    ])
}

/// Deletes a queue of tasks and declares it again.
pub(super) async fn renew(link: &Link, queue: &QueueName) -> Result<(), QueueError> {
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

async fn declare_queue(link: &Link, channel: &Channel, name: &str, arguments: FieldTable) -> Result<(), QueueError> {
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    link.ask(Doing::Declaring(name), channel.queue_declare(short(name)?, durable, arguments)).await?;
    Ok(())
}

fn table<const N: usize>(entries: [(&str, AMQPValue); N]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in entries {
        table.insert(name.into(), value);
    }
    table
}

/// Counts what is ready and who consumes.
pub(super) async fn depth(link: &Link, queue: &QueueName) -> Result<QueueDepth, QueueError> {
    depth_of(link, &queue.wire_name()).await
}

/// As [`depth`], by the broker's name.
pub(super) async fn depth_of(link: &Link, name: &str) -> Result<QueueDepth, QueueError> {
    let channel = link.channel().await?;
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let declaring = channel.queue_declare(short(name)?, passive, FieldTable::default());
    let queue = link.ask(Doing::Using(name), declaring).await?;
    link.done_with(channel).await;
    Ok(QueueDepth { ready: u64::from(queue.message_count()), consumers: u64::from(queue.consumer_count()) })
}

/// Drops what is ready.
pub(super) async fn purge(link: &Link, queue: &QueueName) -> Result<(), QueueError> {
    let name = queue.wire_name();
    let channel = link.channel().await?;
    link.ask(Doing::Using(&name), channel.queue_purge(short(&name)?, QueuePurgeOptions::default())).await?;
    link.done_with(channel).await;
    Ok(())
}

/// Takes the tasks among at most `max` dead letters; what cannot be read stays.
pub(super) async fn take_dead_letters(link: &Link, max: usize) -> Result<DeadLetters, QueueError> {
    let dead = dead_name();
    let channel = link.channel().await?;
    let mut letters = DeadLetters::default();
    let mut readable = Vec::new();
    for _ in 0..max {
        let getting = channel.basic_get(short(&dead)?, BasicGetOptions::default());
        let Some(letter) = link.ask(Doing::Using(&dead), getting).await? else {
            break;
        };
        match TaskMessage::from_bytes(&letter.delivery.data) {
            Ok(message) => {
                letters.tasks.push(message);
                readable.push(letter.delivery.delivery_tag);
            }
            Err(_) => letters.unreadable += 1,
        }
    }
    for tag in readable {
        link.ask(Doing::Using(&dead), channel.basic_ack(tag, BasicAckOptions::default())).await?;
    }
    // closing the channel puts back what was not acked
    link.ask(Doing::Using(&dead), channel.close(200, "OK".into())).await?;
    Ok(letters)
}
