//! Publishing: confirmed, mandatory, in windows.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bench_proto::{reason::Reason, task::QueueName};
use lapin::{
    Channel, Confirmation,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    types::ShortString,
};

use super::{
    fault::{Doing, not_declared},
    link::BrokerLink,
    topology, wire,
};
use crate::{Outgoing, QueueError};

/// Messages that may wait for their confirm on a channel.
const WINDOW: usize = 1000;
/// Longest wait for the confirms of a window.
const CONFIRM: Duration = Duration::from_secs(30);
/// Wait for a window's first confirm before the broker is asked how the queue is.
const FIRST_CONFIRM: Duration = Duration::from_secs(10);
/// Wait for it after the broker has answered.
const LAST_CONFIRM: Duration = Duration::from_secs(3);
/// Channels that are kept for the next publish.
const KEPT: usize = 4;

/// Publishes on channels of its own connection.
#[derive(Debug)]
pub(super) struct Publisher {
    link: Arc<BrokerLink>,
    /// A connection that publishes nothing: the broker reads it also while it holds publishers up.
    asking: Arc<BrokerLink>,
    /// Channels with confirms switched on that have never failed.
    idle: Mutex<Vec<Channel>>,
}

/// Why a window was not published whole.
enum Refusal {
    /// Confirms do not come.
    Late,
    /// The broker has confirmed nothing at all.
    Silent,
    Broken(lapin::Error),
    /// The broker could not store a message.
    Nacked,
    /// A message reached no queue.
    Returned,
    Unwritable(serde_json::Error),
}

impl From<lapin::Error> for Refusal {
    fn from(error: lapin::Error) -> Self {
        Self::Broken(error)
    }
}

impl Publisher {
    pub(super) fn new(link: Arc<BrokerLink>, asking: Arc<BrokerLink>) -> Self {
        Self { link, asking, idle: Mutex::default() }
    }

    /// See [`crate::Queue::publish`].
    pub(super) async fn publish(&self, queue: &QueueName, messages: &[Outgoing]) -> Result<(), QueueError> {
        let name = queue.wire_name();
        let key = topology::short(&name)?;
        for window in messages.chunks(WINDOW) {
            let channel = self.channel().await?;
            let confirmed = AtomicUsize::new(0);
            let publishing = tokio::time::timeout(CONFIRM, publish_window(&channel, &key, window, &confirmed));
            let outcome = tokio::select! {
                biased;
                published = publishing => published.unwrap_or(Err(Refusal::Late)),
                () = self.silence(queue, &confirmed) => Err(Refusal::Silent),
            };
            let Err(refusal) = outcome else {
                self.keep(channel);
                continue;
            };
            // After a nack, RabbitMQ 3.10 can go on nacking all of a channel's messages although the queue has a new leader.
            // No channel that was open then is used again; the caller publishes again on a fresh one.
            drop(channel);
            self.idle().clear();
            return Err(self.explain(queue, &name, refusal).await);
        }
        if messages.is_empty() && self.link.closed().is_cancelled() { Err(QueueError::Closed) } else { Ok(()) }
    }

    /// Returns when the broker answers and is not short of anything, and yet not one confirm comes.
    async fn silence(&self, queue: &QueueName, confirmed: &AtomicUsize) {
        loop {
            tokio::time::sleep(FIRST_CONFIRM).await;
            if !self.link.is_blocked().await && topology::depth(&self.asking, queue).await.is_ok() {
                tokio::time::sleep(LAST_CONFIRM).await;
                if confirmed.load(Ordering::Relaxed) == 0 {
                    return;
                }
            }
        }
    }

    async fn explain(&self, queue: &QueueName, name: &str, refusal: Refusal) -> QueueError {
        let place = self.link.describe();
        match refusal {
            Refusal::Broken(e) => self.link.fault(Doing::Using(name), &e),
            Refusal::Nacked => QueueError::Unavailable(format!("{place} could not store messages in {name}").into()),
            Refusal::Returned => match topology::depth(&self.asking, queue).await {
                Err(QueueError::Setup(_)) => QueueError::Setup(not_declared(&place, name).into()),
                _ => QueueError::Unavailable(format!("{place} could not route messages to {name}").into()),
            },
            Refusal::Unwritable(e) => QueueError::Setup(format!("cannot write a message for {name}: {e}").into()),
            Refusal::Late => {
                let alarm = if self.link.is_blocked().await {
                    ": it is short of memory or disk and blocks publishers"
                } else {
                    ""
                };
                QueueError::Unavailable(
                    format!("{place} has not confirmed messages within {} s{alarm}", CONFIRM.as_secs()).into(),
                )
            }
            Refusal::Silent => self.renew(queue, name).await,
        }
    }

    /// A broker that is well and a queue that confirms nothing: RabbitMQ 3.10, killed soon after a quorum queue was declared,
    /// brings the queue back without a leader, for ever. The queue is made anew: its messages are hints (P2).
    async fn renew(&self, queue: &QueueName, name: &str) -> QueueError {
        let place = self.link.describe();
        let why = match topology::renew(&self.asking, queue).await {
            Ok(()) => {
                tracing::info!(
                    "{name} at {place} had no leader and was declared anew; its messages are published again"
                );
                Reason::from(format!("{name} at {place} had no leader and was declared anew"))
            }
            Err(error) => Reason::from(format!(
                "{name} at {place} confirms nothing ({error}): if that lasts, delete the queue and run bench-coord migrate; nothing is lost"
            ))
            .because(&error),
        };
        QueueError::Unavailable(why)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Channel>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn channel(&self) -> Result<Channel, QueueError> {
        while let Some(channel) = { self.idle().pop() } {
            if channel.status().connected() {
                return Ok(channel);
            }
        }
        let channel = self.link.channel().await?;
        let selecting = channel.confirm_select(ConfirmSelectOptions::default());
        self.link.ask(Doing::Connecting, selecting).await?;
        Ok(channel)
    }

    fn keep(&self, channel: Channel) {
        let mut idle = self.idle();
        if idle.len() < KEPT {
            idle.push(channel);
        }
    }

    pub(super) fn reopened(&self) -> u64 {
        self.link.reopened()
    }

    pub(super) async fn close(&self) {
        self.idle().clear();
        self.link.close().await;
    }
}

/// Sends all messages, then awaits all confirms.
async fn publish_window(
    channel: &Channel,
    key: &ShortString,
    messages: &[Outgoing],
    confirmed: &AtomicUsize,
) -> Result<(), Refusal> {
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let mut confirms = Vec::with_capacity(messages.len());
    for outgoing in messages {
        let (body, properties) = wire::encode(outgoing).map_err(Refusal::Unwritable)?;
        confirms.push(channel.basic_publish("".into(), key.clone(), options, &body, properties).await?);
    }
    let mut refused = None;
    for confirm in confirms {
        // all are awaited, so that none is left behind on the channel
        let confirm = confirm.await?;
        confirmed.fetch_add(1, Ordering::Relaxed);
        match confirm {
            Confirmation::Ack(None) => {}
            Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => refused = Some(Refusal::Returned),
            Confirmation::Nack(None) | Confirmation::NotRequested => refused = refused.or(Some(Refusal::Nacked)),
        }
    }
    refused.map_or(Ok(()), Err)
}
