//! Hands tasks out. The queue is a hint, the store is the truth: a message that is lost, doubled or late is harmless (P1, P2).
//!
//! A backend is one file and one line in the registry ([`connect`]); all pass the suite of [`conformance`].
//!
//! In come messages that name a task (`bench_proto::task::TaskMessage`) and the queue of its pool and role; out come
//! deliveries, which are acknowledged by being consumed, and depths. Nothing is known of runs or the store. Start reading at
//! [`Queue`] and [`Consumer`], then at `memory`, the smaller backend.

#[cfg(feature = "amqp")]
pub mod amqp;
pub mod conformance;
pub mod memory;
mod registry;

use std::{error::Error, fmt, time::Duration};

use async_trait::async_trait;
use bench_proto::{
    reason::Reason,
    task::{QueueName, TaskMessage},
};

pub use registry::{BACKENDS, Backend, check, connect};

/// Trace context and other small headers of a message.
pub type Headers = Vec<(String, String)>;

/// Why something could not be done with the queue.
#[derive(Debug, Clone)]
pub enum QueueError {
    /// May pass: broker restarting, connection lost, publish refused (nack), alarm.
    Unavailable(Reason),
    /// Of one queue: not declared, declared otherwise, or not allowed. Also a URL that cannot be read.
    Setup(Reason),
    /// Of the whole broker: it does not take who connects (user, password, virtual host, certificate), or not what all queues need.
    Refused(Reason),
    /// The queue was closed by this process.
    Closed,
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => write!(f, "the queue is unavailable: {why}"),
            Self::Setup(why) | Self::Refused(why) => write!(f, "{why}"),
            Self::Closed => f.write_str("the queue is closed"),
        }
    }
}

/// By hand: the words of a reason are part of the message, and what is behind them is the cause.
impl Error for QueueError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable(why) | Self::Setup(why) | Self::Refused(why) => why.source(),
            Self::Closed => None,
        }
    }
}

/// Depth of a queue as the broker counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// Messages ready to be delivered.
    pub ready: u64,
    /// Consumers attached.
    pub consumers: u64,
}

/// A task on its way into a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The body.
    pub message: TaskMessage,
    /// Names and values that travel beside the body: the trace context.
    pub headers: Headers,
}

/// Dead letters that were looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadLetters {
    /// Tasks among them, taken out: to be published again when the store still wants them (P2).
    pub tasks: Vec<TaskMessage>,
    /// Messages that cannot be read and lie there, until somebody settles them.
    pub unreadable: u64,
}

/// A message that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Names it as long as it lies there.
    pub id: String,
    /// When it was found, in microseconds since 1970 by the clock of the coordinator; 0 when that is unknown.
    pub at_us: i64,
    /// Why it cannot be read.
    pub why: String,
    /// The queue that it came from, as the broker names it.
    pub from: Option<String>,
    /// Its headers; values that are no text as they are printed for people.
    pub headers: Headers,
    /// The bytes that were published.
    pub body: Vec<u8>,
}

/// What becomes of an unreadable message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Back into the queue that it came from.
    Requeue,
    /// Gone.
    Drop,
}

/// A queue service.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Declares queues and dead letters. Needs configure permission at a broker; workers never call it.
    async fn declare(&self, queues: &[QueueName]) -> Result<(), QueueError>;

    /// Publishes a batch and waits until every message is confirmed and was routed. On error some may have been published:
    /// the caller publishes the whole batch again, under the same message ids.
    async fn publish(&self, queue: &QueueName, messages: &[Outgoing]) -> Result<(), QueueError>;

    /// Starts consuming with a fixed prefetch.
    async fn consume(&self, queue: &QueueName, prefetch: u16) -> Result<Box<dyn Consumer>, QueueError>;

    /// Depth of a queue.
    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth, QueueError>;

    /// Drops all messages of a queue (tests, `gc`).
    async fn purge(&self, queue: &QueueName) -> Result<(), QueueError>;

    /// Takes at most `max` dead letters: tasks are returned, what cannot be read is kept apart. A backend without dead letters has none.
    async fn take_dead_letters(&self, max: usize) -> Result<DeadLetters, QueueError> {
        let _ = max;
        Ok(DeadLetters::default())
    }

    /// Whether the backend has dead letters at all.
    fn has_dead_letters(&self) -> bool {
        false
    }

    /// Unreadable messages, the oldest first. They stay.
    async fn unreadable(&self) -> Result<Vec<Unreadable>, QueueError> {
        Ok(Vec::new())
    }

    /// Settles unreadable messages by their ids; returns how many were still there.
    async fn settle_unreadable(&self, ids: &[String], fate: Fate) -> Result<u64, QueueError> {
        let _ = (ids, fate);
        Ok(0)
    }

    /// Messages that lie in the dead letters.
    async fn dead_letter_count(&self) -> Result<u64, QueueError> {
        Ok(0)
    }

    /// How often a connection was lost and opened again: when it rises, what was published may be gone (P2).
    fn reconnects(&self) -> u64 {
        0
    }

    /// The URL without password, for messages.
    fn describe(&self) -> String;

    /// Closes connections; consumers end.
    async fn close(&self);
}

/// A consumer of one queue. Dropping it returns what was not acked.
#[async_trait]
pub trait Consumer: Send {
    /// Waits for at least one delivery, then takes what else is there without waiting, up to `max` (at least 1).
    /// Unreadable messages go to the dead letters and are not returned. An empty answer means that `wait` has passed.
    async fn receive(&mut self, max: usize, wait: Duration) -> Result<Vec<Delivery>, QueueError>;

    /// Acks deliveries of this consumer, in delivery order. Acking consumes them.
    async fn ack(&mut self, deliveries: Vec<Delivery>) -> Result<(), QueueError>;
}

/// A delivered message. It is acked by [`Consumer::ack`]; nothing is ever put back by hand (P1).
#[derive(Debug)]
pub struct Delivery {
    /// The body.
    pub message: TaskMessage,
    /// Names and values that travelled beside the body: the trace context.
    pub headers: Headers,
    /// The broker's delivery tag.
    pub tag: u64,
    /// True when the broker says that it has delivered the message before.
    pub redelivered: bool,
}
