//! Consuming: a channel of its own with a fixed prefetch, opened again when the broker was away.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use bench_proto::task::QueueName;
use futures::{FutureExt, StreamExt};
use lapin::{
    Channel,
    options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, BasicRejectOptions},
    types::FieldTable,
};
use tokio::{task::JoinHandle, time::Instant};

use super::{acks::Unsettled, fault::Doing, link::BrokerLink, topology::short, wire};
use crate::{Consumer, Delivery, QueueError};

/// A consumer that survives restarts of the broker.
#[derive(Debug)]
pub(super) struct AmqpConsumer {
    link: Arc<BrokerLink>,
    queue: String,
    prefetch: u16,
    state: State,
    /// Added to the broker's tags, which start at 1 on each channel: so tags never repeat, and old ones are known.
    tag_base: u64,
    /// Read and not yet handed out: here, so that a receive that is dropped loses nothing.
    read: VecDeque<Delivery>,
}

#[derive(Debug)]
enum State {
    Live(Live),
    Lost(Lost),
}

#[derive(Debug)]
struct Lost {
    reason: QueueError,
    again_at: Instant,
    delays: ExponentialBackoff,
    /// The attempt under way: apart, so that it outlives a receive whose wait is over.
    attempt: Option<JoinHandle<Result<Live, QueueError>>>,
}

impl Drop for Lost {
    fn drop(&mut self) {
        if let Some(attempt) = &self.attempt {
            attempt.abort();
        }
    }
}

#[derive(Debug)]
struct Live {
    channel: Channel,
    deliveries: lapin::Consumer,
    unsettled: Unsettled,
    /// Broker's tags of what could not be read and must be rejected.
    unreadable: Vec<u64>,
    last_tag: u64,
}

/// How long to wait before each attempt to come back: 0.1 to 5 s, with jitter, without end.
fn delays() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(5))
        .with_factor(2.0)
        .with_jitter()
        .without_max_times()
        .build()
}

impl AmqpConsumer {
    /// Starts consuming, in one attempt.
    pub(super) async fn start(link: Arc<BrokerLink>, queue: &QueueName, prefetch: u16) -> Result<Self, QueueError> {
        let queue = queue.wire_name();
        let live = open(&link, &queue, prefetch).await?;
        Ok(Self { link, queue, prefetch, state: State::Live(live), tag_base: 0, read: VecDeque::new() })
    }

    fn lose(&mut self, reason: QueueError) {
        // told by whoever receives, unless it is back before anybody asks
        tracing::debug!("consumer of {} is interrupted: {reason}", self.queue);
        if let State::Live(live) = &self.state {
            self.tag_base += live.last_tag;
        }
        // what was read and not handed out comes again
        self.read.clear();
        self.state = State::Lost(Lost { reason, again_at: Instant::now(), delays: delays(), attempt: None });
    }

    /// Waits until the channel is open again, but not past `deadline`; then says why it is not.
    async fn come_back(&mut self, deadline: Instant) -> Result<(), QueueError> {
        let State::Lost(lost) = &mut self.state else {
            return Ok(());
        };
        let closed = self.link.closed().clone();
        let attempt = async {
            tokio::time::sleep_until(lost.again_at).await;
            let attempt = lost.attempt.get_or_insert_with(|| {
                let (link, queue, prefetch) = (Arc::clone(&self.link), self.queue.clone(), self.prefetch);
                tokio::spawn(async move { open(&link, &queue, prefetch).await })
            });
            attempt.await
        };
        let attempted = tokio::select! {
            () = closed.cancelled() => return Err(QueueError::Closed),
            attempted = tokio::time::timeout_at(deadline, attempt) => attempted,
        };
        let Ok(attempted) = attempted else {
            return Err(lost.reason.clone());
        };
        lost.attempt = None;
        let opened = attempted
            .unwrap_or_else(|e| Err(QueueError::Unavailable(format!("the attempt to come back failed: {e}").into())));
        match opened {
            Ok(live) => {
                tracing::debug!("consumer of {} is back", self.queue);
                self.state = State::Live(live);
                Ok(())
            }
            Err(reason) => {
                lost.again_at = Instant::now() + lost.delays.next().unwrap_or(Duration::from_secs(5));
                lost.reason = reason;
                // what does not pass by itself is told at once
                let passes = !matches!(lost.reason, QueueError::Setup(_) | QueueError::Refused(_));
                if passes { Ok(()) } else { Err(lost.reason.clone()) }
            }
        }
    }
}

async fn open(link: &BrokerLink, queue: &str, prefetch: u16) -> Result<Live, QueueError> {
    let channel = link.channel().await?;
    let doing = Doing::Using(queue);
    link.ask(doing, channel.basic_qos(prefetch, BasicQosOptions { global: false })).await?;
    let consuming = channel.basic_consume(
        short(queue)?,
        consumer_tag().as_str().into(),
        BasicConsumeOptions::default(),
        FieldTable::default(),
    );
    let deliveries = link.ask(doing, consuming).await?;
    Ok(Live { channel, deliveries, unsettled: Unsettled::default(), unreadable: Vec::new(), last_tag: 0 })
}

/// A tag that no other consumer of the broker has: two with the same tag on one channel would be an error, and people look
/// for them in its management pages.
fn consumer_tag() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_micros();
    format!("bench-{}-{started:x}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Live {
    /// Waits for a delivery and reads all that are there, up to `max`.
    async fn read(&mut self, base: u64, max: usize, into: &mut VecDeque<Delivery>) -> lapin::Result<Read> {
        let mut next = self.deliveries.next().await;
        loop {
            match next {
                None => return Ok(Read::Cancelled),
                Some(delivery) => self.take(delivery?, base, into),
            }
            if into.len() >= max {
                return Ok(Read::Some);
            }
            match self.deliveries.next().now_or_never() {
                Some(more) => next = more,
                None => return Ok(Read::Some),
            }
        }
    }

    fn take(&mut self, delivery: lapin::message::Delivery, base: u64, into: &mut VecDeque<Delivery>) {
        let tag = delivery.delivery_tag;
        self.last_tag = self.last_tag.max(tag);
        self.unsettled.push(tag);
        match wire::decode(&delivery.data, &delivery.properties) {
            Ok((message, headers)) => {
                into.push_back(Delivery { message, headers, tag: base + tag, redelivered: delivery.redelivered });
            }
            Err(why) => {
                tracing::warn!(
                    code = "unreadable",
                    "a message of {} goes to the dead letters: {why}",
                    delivery.routing_key
                );
                self.unreadable.push(tag);
            }
        }
    }

    async fn reject_unreadable(&mut self) -> lapin::Result<()> {
        while let Some(tag) = self.unreadable.pop() {
            // settled from the moment it is sent, also when this is dropped meanwhile
            self.unsettled.remove(tag);
            self.channel.basic_reject(tag, BasicRejectOptions { requeue: false }).await?;
        }
        Ok(())
    }
}

enum Read {
    Some,
    /// The broker has ended the consumer: its queue was deleted or has lost its leader.
    Cancelled,
}

#[async_trait]
impl Consumer for AmqpConsumer {
    async fn receive(&mut self, max: usize, wait: Duration) -> Result<Vec<Delivery>, QueueError> {
        let max = max.max(1);
        let deadline = Instant::now() + wait;
        loop {
            if self.link.closed().is_cancelled() {
                return Err(QueueError::Closed);
            }
            let State::Live(live) = &mut self.state else {
                self.come_back(deadline).await?;
                continue;
            };
            let closed = self.link.closed().clone();
            let work = async {
                live.reject_unreadable().await?;
                if !self.read.is_empty() {
                    return Ok(Read::Some);
                }
                let read = live.read(self.tag_base, max, &mut self.read).await?;
                live.reject_unreadable().await?;
                Ok(read)
            };
            let outcome = tokio::select! {
                () = closed.cancelled() => return Err(QueueError::Closed),
                outcome = tokio::time::timeout_at(deadline, work) => outcome,
            };
            match outcome {
                Err(_) if self.read.is_empty() => return Ok(Vec::new()),
                Ok(Ok(Read::Some)) | Err(_) => {
                    if !self.read.is_empty() {
                        let count = max.min(self.read.len());
                        return Ok(self.read.drain(..count).collect());
                    }
                }
                Ok(Ok(Read::Cancelled)) => {
                    self.lose(QueueError::Unavailable(
                        format!("{} has ended the consumer of {}", self.link.describe(), self.queue).into(),
                    ));
                }
                Ok(Err(e)) => {
                    let reason = self.link.fault(Doing::Using(&self.queue), &e);
                    self.lose(reason);
                }
            }
        }
    }

    async fn ack(&mut self, deliveries: Vec<Delivery>) -> Result<(), QueueError> {
        if self.link.closed().is_cancelled() {
            return Err(QueueError::Closed);
        }
        let asked = deliveries.len();
        let lost =
            || QueueError::Unavailable("the channel of these deliveries is gone: they will be delivered again".into());
        let State::Live(live) = &mut self.state else {
            return if asked == 0 { Ok(()) } else { Err(lost()) };
        };
        let tags: Vec<u64> = deliveries
            .iter()
            .filter_map(|delivery| delivery.tag.checked_sub(self.tag_base))
            .filter(|tag| *tag > 0)
            .collect();
        let current = tags.len();
        let frames = live.unsettled.ack(tags);
        let sending =
            frames.iter().map(|ack| live.channel.basic_ack(ack.tag, BasicAckOptions { multiple: ack.multiple }));
        let sent = self.link.ask(Doing::Using(&self.queue), futures::future::try_join_all(sending)).await;
        if let Err(reason) = sent {
            self.lose(reason);
            return Err(lost());
        }
        if current < asked { Err(lost()) } else { Ok(()) }
    }
}
