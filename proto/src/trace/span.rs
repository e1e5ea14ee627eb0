//! A span as everybody here understands it: the terminal draws it, exporters send it.

use serde::Serialize;

use super::{SpanId, TraceId};

/// What a span is about: its colour, so to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanClass {
    /// The whole.
    Question,
    /// From ready to published.
    Dispatch,
    /// From published to claimed.
    Queue,
    /// From the begin of a step until it has ended.
    Step,
    /// Waiting for an allowance, money, or another attempt.
    Wait,
    /// A call to a memory system or a model.
    Call,
    /// A try that stored no step.
    Attempt,
    /// From the end of a step until it is stored.
    Checkpoint,
    /// Of the run's own trace.
    Run,
}

/// OpenTelemetry's kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
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
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SpanValue {
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

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
impl From<u64> for SpanValue {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}
impl From<u32> for SpanValue {
    fn from(number: u32) -> Self {
        Self::Int(i64::from(number))
    }
}
impl From<f64> for SpanValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}
impl From<bool> for SpanValue {
    fn from(yes: bool) -> Self {
        Self::Bool(yes)
    }
}

/// A span of another trace that belongs to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanLink {
    /// Id of that other trace.
    pub trace: TraceId,
    /// The span in that trace.
    pub span: SpanId,
}

/// A part of a trace: what happened in it, and from when to when.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Id of the question's trace: derived from run and question.
    pub trace: TraceId,
    /// Id of the span within its trace.
    pub id: SpanId,
    /// Whose child it is.
    pub parent: Option<SpanId>,
    /// What happened.
    pub name: String,
    /// What the span is about.
    pub class: SpanClass,
    /// OpenTelemetry's kind.
    pub kind: SpanKind,
    /// Begin, microseconds since 1970.
    pub start_us: i64,
    /// Microseconds since 1970.
    pub end_us: i64,
    /// Attributes by the OpenTelemetry conventions, and our own (`bench.*`).
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// Spans of other traces.
    pub links: Vec<SpanLink>,
    /// Why it failed.
    pub error: Option<String>,
    /// The worker session that did it; 0 when it was nobody's.
    pub session: i64,
}

impl Span {
    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<SpanValue>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }
}
