//! Finished spans on their way to a collector. Who makes them knows nothing of OTLP, who sends them nothing of questions.

use std::time::Duration;

use async_trait::async_trait;

/// OpenTelemetry's span kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Work of this system.
    Internal,
    /// A request to another.
    Client,
    /// A message sent.
    Producer,
    /// A message received.
    Consumer,
}

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A word, a name, any text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number that may have a fraction.
    Number(f64),
    /// Yes or no.
    Bool(bool),
    /// Several texts.
    Texts(Vec<String>),
}

/// A span whose times are known, to be sent as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedSpan {
    /// Id of the trace that it belongs to, as OpenTelemetry has it.
    pub trace: [u8; 16],
    /// Id of the span in its trace, as OpenTelemetry has it.
    pub id: [u8; 8],
    /// Whose child it is.
    pub parent: Option<[u8; 8]>,
    /// What happened.
    pub name: String,
    /// Work of this process, a request to another, or a message.
    pub kind: Kind,
    /// Begin, microseconds since 1970.
    pub start_us: i64,
    /// Microseconds since 1970.
    pub end_us: i64,
    /// What else is known of it, by name.
    pub attributes: Vec<(&'static str, Value)>,
    /// Spans of other traces: trace and span.
    pub links: Vec<([u8; 16], [u8; 8])>,
    /// Why it failed.
    pub error: Option<String>,
    /// Name of the process that did it: `service.instance.id` of its resource.
    pub process: String,
}

/// Takes finished spans.
#[async_trait]
pub trait SpanSink: Send + Sync {
    /// Sends spans; they are gone when it fails.
    ///
    /// # Errors
    /// In words, for one line of log.
    async fn send(&self, spans: Vec<FinishedSpan>) -> Result<(), String>;

    /// How long it is waited for at the end of the process.
    fn last_words(&self) -> Duration;
}
