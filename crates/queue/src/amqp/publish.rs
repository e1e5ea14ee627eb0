//! Publishing: confirmed, mandatory, in windows.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bench_proto::task::QueueName;
use lapin::{
    Channel, Confirmation,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    types::ShortString,
};

use super::{
    fault::{Doing, not_declared},
    link::Link,
    topology, wire,
};
use crate::{Outgoing, QueueError};

/// Messages that may wait for their confirm on a channel.
const WINDOW: usize = 1000;
/// Longest wait for the confirms of a window.
const CONFIRM: Duration = Duration::from_secs(30);
/// Channels that are kept for the next publish.
const KEPT: usize = 4;

/// Publishes on channels of its own connection.
#[derive(Debug)]
pub(super) struct Publisher {
    link: Arc<Link>,
    /// Channels with confirms switched on that have never failed.
    idle: Mutex<Vec<Channel>>,
}

/// Why a window was not published whole.
enum Refusal {
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
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self { link, idle: Mutex::default() }
    }

    /// See [`crate::Queue::publish`].
    pub(super) async fn publish(&self, queue: &QueueName, messages: &[Outgoing]) -> Result<(), QueueError> {
        let name = queue.wire_name();
        let key = topology::short(&name)?;
        for window in messages.chunks(WINDOW) {
            let channel = self.channel().await?;
            let refusal = match tokio::time::timeout(CONFIRM, publish_window(&channel, &key, window)).await {
                Ok(Ok(())) => {
                    self.keep(channel);
                    continue;
                }
                Ok(Err(refusal)) => Some(refusal),
                Err(_) => None,
            };
            // After a nack, RabbitMQ 3.10 can go on nacking all of a channel's messages although the queue has a new leader.
            // No channel that was open then is used again; the caller publishes again on a fresh one.
            drop(channel);
            self.idle().clear();
            return Err(self.explain(queue, &name, refusal).await);
        }
        if messages.is_empty() && self.link.closed().is_cancelled() { Err(QueueError::Closed) } else { Ok(()) }
    }

    async fn explain(&self, queue: &QueueName, name: &str, refusal: Option<Refusal>) -> QueueError {
        let place = self.link.describe();
        match refusal {
            Some(Refusal::Broken(e)) => self.link.fault(Doing::Using(name), &e),
            Some(Refusal::Nacked) => QueueError::Unavailable(format!("{place} could not store messages in {name}")),
            Some(Refusal::Returned) => match topology::depth(&self.link, queue).await {
                Err(QueueError::Setup(_)) => QueueError::Setup(not_declared(&place, name)),
                _ => QueueError::Unavailable(format!("{place} could not route messages to {name}")),
            },
            Some(Refusal::Unwritable(e)) => QueueError::Setup(format!("cannot write a message for {name}: {e}")),
            None => {
                let alarm = if self.link.is_blocked().await {
                    ": it is short of memory or disk and blocks publishers"
                } else {
                    ""
                };
                QueueError::Unavailable(format!(
                    "{place} has not confirmed messages within {} s{alarm}",
                    CONFIRM.as_secs()
                ))
            }
        }
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
async fn publish_window(channel: &Channel, key: &ShortString, messages: &[Outgoing]) -> Result<(), Refusal> {
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let mut confirms = Vec::with_capacity(messages.len());
    for outgoing in messages {
        let (body, properties) = wire::encode(outgoing).map_err(Refusal::Unwritable)?;
        confirms.push(channel.basic_publish("".into(), key.clone(), options, &body, properties).await?);
    }
    let mut refused = None;
    for confirm in confirms {
        // all are awaited, so that none is left behind on the channel
        match confirm.await? {
            Confirmation::Ack(None) => {}
            Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => refused = Some(Refusal::Returned),
            Confirmation::Nack(None) | Confirmation::NotRequested => refused = refused.or(Some(Refusal::Nacked)),
        }
    }
    refused.map_or(Ok(()), Err)
}
