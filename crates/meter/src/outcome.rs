//! Why a request is not sent, and what became of one that was.

use std::time::Duration;

use hyper::body::Bytes;

use crate::faults::FaultKind;

/// A reply that needs no provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReply {
    /// The body, as it was in [`Outcome::reply`].
    pub body: Bytes,
    /// Value of its header `content-type`.
    pub content_type: String,
}

impl StoredReply {
    /// A reply in JSON, as all that are stored are.
    #[must_use]
    pub fn json(body: Bytes) -> Self {
        Self { body, content_type: "application/json".to_owned() }
    }
}

/// Why a request may not be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No run has the name in the path.
    UnknownRun,
    /// The key is no token of this run.
    ForeignKey,
    /// The run has ended; how.
    RunEnded(String),
    /// The run may not use the model.
    ModelNotAllowed {
        /// The model that was asked for.
        model: String,
        /// Those that it may use.
        allowed: Vec<String>,
    },
    /// Nobody knows where the model is, or what it costs; what to do about it.
    UnknownModel(String),
    /// The request has a parameter of which it is not known that it costs nothing beyond tokens.
    UnknownParameter {
        /// As the request has it.
        name: String,
        /// What to do in its place.
        instead: &'static str,
        /// The account whose operator could let it through.
        account: String,
    },
    /// The run has no bank of the name in the path.
    UnknownBank(String),
    /// The request waited for its turn, and its time is over.
    Busy {
        /// When to come again.
        retry_after: Duration,
        /// What it waited for.
        reason: String,
    },
    /// The money is spent; which, and what raises it.
    OverBudget(String),
    /// The run is stopped; what resumes it.
    Stopped(String),
    /// The meter itself cannot say, and may later; why.
    Unavailable(String),
}

/// Tokens of one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Of the prompt, all of it.
    pub prompt: u64,
    /// Of the reply, thoughts included.
    pub completion: u64,
    /// Part of the prompt that was read from a cache.
    pub cached: u64,
    /// Part of the prompt that was written into a cache for a short time.
    pub cache_write: u64,
    /// Part of the prompt that was written into a cache for an hour.
    pub cache_write_1h: u64,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The reply came whole.
    Complete,
    /// It was answered from [`Admitted::stored`](crate::Admitted::stored).
    Stored,
    /// The provider broke off, was silent for too long, or said in its stream that it failed. It may ask money for it.
    CutByProvider(String),
    /// The client left, and what the provider would have done is not known.
    CutByClient,
    /// The reply came whole and is none of its operation.
    NotAReply,
    /// A web page came in the place of a reply, with the status of success: no model has answered.
    Page,
    /// There was no connection, and so no request; the cause.
    NotReached(String),
    /// A status other than success, by the provider or, with [`Outcome::fault`], by the meter.
    Refused(u16),
}

/// What became of a request that was admitted.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// HTTP status; 0 when none came.
    pub status: u16,
    /// What was used: the provider's count where it can be true, else the meter's, else nothing. After a cut it is what was seen until
    /// then.
    pub usage: Option<Tokens>,
    /// `usage` is the meter's own count, an upper bound for models whose vocabulary is not known.
    pub counted_here: bool,
    /// What the provider told that cannot be true, as far as it may be: not believed, and perhaps charged.
    pub doubted: Option<Tokens>,
    /// From sending to the end.
    pub latency: Duration,
    /// From sending to the first byte of the body.
    pub to_first_byte: Option<Duration>,
    /// How it ended.
    pub ended: Ended,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
    /// The model, as the reply says; empty where it says none.
    pub model: String,
    /// The service tier that the provider says it served.
    pub service_tier: Option<String>,
    /// The body as it came, without the key: of a whole reply whose request is cacheable, or of any where the settings keep replies;
    /// never more than their bound.
    pub reply: Option<Bytes>,
    /// The body of an error, without the key, for telling kinds of errors apart.
    pub error: Option<Bytes>,
    /// What the meter did to it on purpose.
    pub fault: Option<FaultKind>,
    /// The client did not wait for the end. With [`Ended::Complete`] the rest was read without it.
    pub client_left: bool,
}

impl Outcome {
    /// Whether the meter has answered it with a status on purpose, and not sent it. One that was only slow on purpose met the provider.
    #[must_use]
    pub const fn failed_on_purpose(&self) -> bool {
        matches!(self.fault, Some(FaultKind::Status(_)))
    }
}
