//! Dead letters: what was delivered too often, and what cannot be read.
//!
//! Queues of tasks send both to one exchange, and from there into the queue `dead-letters`. The coordinator empties it: tasks go back
//! to the store (P2), what cannot be read goes on into `unreadable`, with why and where it came from, until a person drops it or
//! sends it back. Both are quorum queues with a bound; beyond it the oldest go, because the newest say what is wrong now, and no task
//! is lost with its message.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bench_proto::task::{TOPOLOGY_VERSION, TaskMessage};
use lapin::{
    BasicProperties, Channel, Confirmation, ExchangeKind,
    message::BasicGetMessage,
    options::{
        BasicAckOptions, BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions,
        QueueBindOptions, QueueDeleteOptions,
    },
    types::{AMQPValue, FieldTable, ShortString},
};

use super::{
    fault::Doing,
    link::BrokerLink,
    topology::{declare_queue, depth_of, short, table},
};
use crate::{DeadLetters, Fate, QueueError, Unreadable};

/// Most messages of each queue.
const MOST: i64 = 10_000;
/// Most bytes of their bodies.
const MOST_BYTES: i64 = 64 << 20;
/// Looking at a message counts as a delivery; no number of looks may drop it.
const DELIVERIES: i64 = i32::MAX as i64;
/// Longest wait for the confirm of a message.
const CONFIRM: Duration = Duration::from_secs(10);

/// Headers that say of an unreadable message what its properties cannot.
const ID: &str = "bench-id";
const WHY: &str = "bench-why";
const FROM: &str = "bench-from";
const AT: &str = "bench-at";

/// The exchange to which queues of tasks send; also the queue of builds that knew only one, which is emptied and removed.
pub(super) fn exchange() -> String {
    format!("bench.t{TOPOLOGY_VERSION}.dead")
}

fn arriving() -> String {
    format!("bench.t{TOPOLOGY_VERSION}.dead-letters")
}

fn unreadable() -> String {
    format!("bench.t{TOPOLOGY_VERSION}.unreadable")
}

/// Declares the exchange and both queues, and moves on what an earlier build has left.
pub(super) async fn declare(link: &BrokerLink, publishing: &BrokerLink) -> Result<(), QueueError> {
    let channel = link.channel().await?;
    let (exchange, arriving) = (exchange(), arriving());
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let declaring = channel.exchange_declare(short(&exchange)?, ExchangeKind::Fanout, durable, FieldTable::default());
    link.ask(Doing::Declaring(&exchange), declaring).await?;
    for name in [&arriving, &unreadable()] {
        declare_queue(link, &channel, name, bounded()).await?;
    }
    let (options, none) = (QueueBindOptions::default(), FieldTable::default());
    let bind = channel.queue_bind(short(&arriving)?, short(&exchange)?, "".into(), options, none);
    link.ask(Doing::Declaring(&arriving), bind).await?;
    link.done_with(channel).await;
    empty_old(link, publishing, &exchange, &arriving).await
}

fn bounded() -> FieldTable {
    table([
        ("x-queue-type", AMQPValue::LongString("quorum".into())),
        ("x-max-length", AMQPValue::LongLongInt(MOST)),
        ("x-max-length-bytes", AMQPValue::LongLongInt(MOST_BYTES)),
        ("x-overflow", AMQPValue::LongString("drop-head".into())),
        ("x-delivery-limit", AMQPValue::LongLongInt(DELIVERIES)),
    ])
}

/// Builds of the release before have one classic queue without a bound, named like the exchange. A coordinator of that release
/// declares it again, and so it goes on beside this one; each new leader empties it.
async fn empty_old(link: &BrokerLink, publishing: &BrokerLink, old: &str, arriving: &str) -> Result<(), QueueError> {
    match depth_of(link, old).await {
        Ok(_) => {}
        Err(QueueError::Setup(_)) => return Ok(()),
        Err(error) => return Err(error),
    }
    let channel = link.channel().await?;
    let unbind = channel.queue_unbind(short(old)?, short(old)?, "".into(), FieldTable::default());
    link.ask(Doing::Declaring(old), unbind).await?;
    let sender = Sender::open(publishing).await?;
    let mut moved = 0_u64;
    while let Some(letter) = next(link, &channel, old).await? {
        sender.send(arriving, &letter.delivery.data, letter.delivery.properties.clone()).await?;
        ack(link, &channel, old, &letter).await?;
        moved += 1;
    }
    let unused = QueueDeleteOptions { if_empty: true, ..QueueDeleteOptions::default() };
    link.ask(Doing::Declaring(old), channel.queue_delete(short(old)?, unused)).await?;
    link.done_with(channel).await;
    sender.close().await;
    tracing::info!("{moved} dead letters of an earlier build were moved, its queue {old} is gone");
    Ok(())
}

/// Empties what has arrived, up to `max`: tasks are returned, what cannot be read is kept.
pub(super) async fn take(link: &BrokerLink, publishing: &BrokerLink, max: usize) -> Result<DeadLetters, QueueError> {
    let arriving = arriving();
    let channel = link.channel().await?;
    let mut letters = DeadLetters::default();
    let mut sender = None;
    for _ in 0..max {
        let Some(letter) = next(link, &channel, &arriving).await? else { break };
        match TaskMessage::from_bytes(&letter.delivery.data) {
            Ok(message) => letters.tasks.push(message),
            Err(why) => {
                let sender = match &mut sender {
                    Some(sender) => sender,
                    none => none.insert(Sender::open(publishing).await?),
                };
                let properties = annotated(&letter.delivery.properties, &why);
                sender.send(&unreadable(), &letter.delivery.data, properties).await?;
            }
        }
        // a task whose message is acked and then lost with this process is published again by the store (P2)
        ack(link, &channel, &arriving, &letter).await?;
    }
    link.done_with(channel).await;
    if let Some(sender) = sender {
        sender.close().await;
    }
    letters.unreadable = depth_of(link, &unreadable()).await?.ready;
    Ok(letters)
}

/// Dead letters that wait, for whoever.
pub(super) async fn count(link: &BrokerLink) -> Result<u64, QueueError> {
    Ok(depth_of(link, &arriving()).await?.ready + depth_of(link, &unreadable()).await?.ready)
}

/// Unreadable messages, the oldest first; they stay.
pub(super) async fn look(link: &BrokerLink) -> Result<Vec<Unreadable>, QueueError> {
    let channel = link.channel().await?;
    let mut found: Vec<Unreadable> = all(link, &channel).await?.iter().map(read).collect();
    // closing puts back what is not acked
    link.done_with(channel).await;
    found.sort_by(|a, b| (a.at_us, &a.id).cmp(&(b.at_us, &b.id)));
    Ok(found)
}

/// Drops unreadable messages, or sends them back into the queues that they came from; returns how many.
pub(super) async fn settle(
    link: &BrokerLink,
    publishing: &BrokerLink,
    ids: &[String],
    fate: Fate,
) -> Result<u64, QueueError> {
    let name = unreadable();
    let channel = link.channel().await?;
    let sender = Sender::open(publishing).await?;
    let mut settled = 0;
    for letter in all(link, &channel).await? {
        let message = read(&letter);
        if !ids.contains(&message.id) {
            continue;
        }
        if fate == Fate::Requeue {
            let Some(from) = &message.from else {
                return Err(QueueError::Setup(
                    format!("message {} does not say where it came from: drop it", message.id).into(),
                ));
            };
            sender.send(from, &letter.delivery.data, without_ours(&letter.delivery.properties)).await?;
        }
        ack(link, &channel, &name, &letter).await?;
        settled += 1;
    }
    link.done_with(channel).await;
    sender.close().await;
    Ok(settled)
}

async fn all(link: &BrokerLink, channel: &Channel) -> Result<Vec<BasicGetMessage>, QueueError> {
    let name = unreadable();
    let mut letters = Vec::new();
    while letters.len() < MOST as usize
        && let Some(letter) = next(link, channel, &name).await?
    {
        letters.push(letter);
    }
    Ok(letters)
}

async fn next(link: &BrokerLink, channel: &Channel, queue: &str) -> Result<Option<BasicGetMessage>, QueueError> {
    link.ask(Doing::Using(queue), channel.basic_get(short(queue)?, BasicGetOptions::default())).await
}

async fn ack(link: &BrokerLink, channel: &Channel, queue: &str, letter: &BasicGetMessage) -> Result<(), QueueError> {
    let acking = channel.basic_ack(letter.delivery.delivery_tag, BasicAckOptions::default());
    link.ask(Doing::Using(queue), acking).await
}

/// Publishes one message after the other, each confirmed.
struct Sender<'l> {
    link: &'l BrokerLink,
    channel: Channel,
}

impl<'l> Sender<'l> {
    async fn open(link: &'l BrokerLink) -> Result<Self, QueueError> {
        let channel = link.channel().await?;
        link.ask(Doing::Connecting, channel.confirm_select(ConfirmSelectOptions::default())).await?;
        Ok(Self { link, channel })
    }

    async fn send(&self, queue: &str, body: &[u8], properties: BasicProperties) -> Result<(), QueueError> {
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let publishing = self.channel.basic_publish("".into(), short(queue)?, options, body, properties);
        let confirm = self.link.ask(Doing::Using(queue), publishing).await?;
        match tokio::time::timeout(CONFIRM, confirm).await {
            Ok(Ok(Confirmation::Ack(None))) => Ok(()),
            Ok(Ok(Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)))) => {
                Err(QueueError::Setup(super::fault::not_declared(&self.link.describe(), queue).into()))
            }
            Ok(Ok(Confirmation::Nack(None) | Confirmation::NotRequested)) => Err(QueueError::Unavailable(
                format!("{} could not store a message in {queue}", self.link.describe()).into(),
            )),
            Ok(Err(error)) => Err(self.link.fault(Doing::Using(queue), &error)),
            Err(_) => Err(self.link.silent()),
        }
    }

    async fn close(self) {
        self.link.done_with(self.channel).await;
    }
}

fn annotated(properties: &BasicProperties, why: &str) -> BasicProperties {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let mut headers = properties.headers().clone().unwrap_or_default();
    let from = text(&headers, "x-first-death-queue").unwrap_or_default();
    let mut set = |name: &str, value: AMQPValue| {
        headers.insert(ShortString::from(name), value);
    };
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    set(ID, AMQPValue::LongString(format!("{now:x}-{:x}-{number:x}", std::process::id()).into()));
    set(WHY, AMQPValue::LongString(why.into()));
    set(FROM, AMQPValue::LongString(from.into()));
    set(AT, AMQPValue::LongLongInt(now));
    properties.clone().with_headers(headers)
}

/// Properties as they were before the message died.
fn without_ours(properties: &BasicProperties) -> BasicProperties {
    let mut headers = FieldTable::default();
    let before = properties.headers().clone().unwrap_or_default();
    for (name, value) in before.inner() {
        if !name.as_str().starts_with("x-") && ![ID, WHY, FROM, AT].contains(&name.as_str()) {
            headers.insert(name.clone(), value.clone());
        }
    }
    properties.clone().with_headers(headers)
}

fn text(headers: &FieldTable, name: &str) -> Option<String> {
    match headers.inner().get(name)? {
        AMQPValue::LongString(text) => Some(String::from_utf8_lossy(text.as_bytes()).into_owned()),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        _ => None,
    }
}

fn read(letter: &BasicGetMessage) -> Unreadable {
    let headers = letter.delivery.properties.headers().clone().unwrap_or_default();
    let at_us = match headers.inner().get(AT) {
        Some(AMQPValue::LongLongInt(at)) => *at,
        _ => 0,
    };
    let known = |name: &str| text(&headers, name).filter(|text| !text.is_empty());
    // the broker counts looks too, and says by other names what its history of deaths says
    let told = headers.inner().iter().filter(|(name, _)| !["x-death", "x-delivery-count"].contains(&name.as_str()));
    let shown = told.map(|(name, value)| {
        let value = text(&headers, name.as_str()).unwrap_or_else(|| format!("{value:?}"));
        (name.to_string(), value)
    });
    Unreadable {
        id: known(ID).unwrap_or_else(|| format!("tag-{}", letter.delivery.delivery_tag)),
        at_us,
        why: known(WHY).unwrap_or_else(|| "it says no reason".to_owned()),
        from: known(FROM),
        headers: shown.collect(),
        body: letter.delivery.data.clone(),
    }
}
