//! Process spans on their way to a collector: `tracing` → `tracing-opentelemetry` → OTLP.
//!
//! The layer is part of the subscriber from the start and sees nothing until [`ProcessSpans::start`]: logging begins before the
//! settings are read. Ended spans go through a bounded channel to one task; what finds it full is counted and gone. Nothing waits
//! for the collector.

use std::{
    sync::{OnceLock, PoisonError, RwLock},
    time::Duration,
};

use opentelemetry::{
    Context, SpanId, TraceFlags, TraceId,
    trace::{SpanContext, Status, TraceContextExt as _, TraceState, TracerProvider as _},
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter as _, SpanProcessor},
};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout_at};
use tracing::{Level, Metadata, Span, Subscriber, field::display, level_filters::LevelFilter, subscriber::Interest};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{
    Layer,
    layer::{self, Filter},
    registry::LookupSpan,
};

use super::{Keep, SPANS, TARGET, on, turn};
use crate::{
    metrics::{self, catalogue},
    otlp::{OtlpError, OtlpOptions, SPANS_AT_ONCE, export, scope},
};

/// Ended spans that may wait for the collector.
const WAITING: usize = 2048;
/// Wait for more spans to send together.
const GATHER: Duration = Duration::from_secs(1);
/// A span that takes so long is worth a look.
const SLOW: Duration = Duration::from_secs(1);
/// Most lines of the log in one span.
const MOST_EVENTS: u32 = 64;

/// The layer of the subscriber. One provider serves all of them: it lives as long as the process.
pub(crate) fn layer<S>() -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'s> LookupSpan<'s> + Send + Sync,
{
    static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();
    let provider = PROVIDER.get_or_init(|| {
        SdkTracerProvider::builder()
            // decided when they end, by what they came to
            .with_sampler(Sampler::AlwaysOn)
            .with_max_events_per_span(MOST_EVENTS)
            // the exporter has the resource
            .with_resource(Resource::builder_empty().build())
            .with_span_processor(Outbox)
            .build()
    });
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer_with_scope(scope()))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_context_activation(false)
        .with_filter(Ours)
}

/// Lets process spans pass and, inside of them, what this project logs of level info and above; nothing at all without a collector.
struct Ours;

impl Ours {
    fn wants(metadata: &Metadata<'_>) -> bool {
        let named =
            if metadata.is_span() { metadata.target() == TARGET } else { metadata.target().starts_with("bench_") };
        named && *metadata.level() <= Level::INFO && on()
    }
}

impl<S> Filter<S> for Ours {
    fn enabled(&self, metadata: &Metadata<'_>, _: &layer::Context<'_, S>) -> bool {
        Self::wants(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if Self::wants(metadata) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(if on() { LevelFilter::INFO } else { LevelFilter::OFF })
    }
}

/// Where ended spans go.
#[derive(Debug)]
struct Way {
    sender: mpsc::Sender<SpanData>,
    rate: f64,
}

static WAY: RwLock<Option<Way>> = RwLock::new(None);

fn set_way(way: Option<Way>) {
    let is_open = way.is_some();
    *WAY.write().unwrap_or_else(PoisonError::into_inner) = way;
    turn(is_open);
}

/// Takes spans that end; never waits.
#[derive(Debug)]
struct Outbox;

impl SpanProcessor for Outbox {
    fn on_start(&self, _: &mut opentelemetry_sdk::trace::Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        let way = WAY.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(way) = way.as_ref().filter(|way| is_kept(&span, way.rate))
            && way.sender.try_send(span).is_err()
        {
            catalogue::SPANS.add(1.0, &["dropped"]);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Whether a span that has ended is sent.
fn is_kept(span: &SpanData, rate: f64) -> bool {
    let always = || SPANS.iter().any(|known| known.name == span.name && known.keep != Keep::Telling);
    let took = || span.end_time.duration_since(span.start_time).unwrap_or_default();
    !span.events.is_empty()
        || matches!(span.status, Status::Error { .. })
        || took() >= SLOW
        || always()
        || lot(span.span_context.trace_id()) < rate
}

/// A number in [0, 1) by which a share of all traces is chosen.
fn lot(trace: TraceId) -> f64 {
    let low = u128::from_be_bytes(trace.to_bytes()) as u64;
    // the upper 53 bits are a double exactly
    (low >> 11) as f64 / (1_u64 << 53) as f64
}

fn remote(trace: [u8; 16], span: [u8; 8]) -> SpanContext {
    let (trace, span) = (TraceId::from_bytes(trace), SpanId::from_bytes(span));
    SpanContext::new(trace, span, TraceFlags::SAMPLED, true, TraceState::NONE)
}

pub(crate) fn link(span: &Span, trace: [u8; 16], id: [u8; 8]) {
    span.add_link(remote(trace, id));
}

pub(crate) fn tell_trace(span: &Span) {
    let context = span.context();
    let context = context.span().span_context().clone();
    if context.is_valid() {
        span.record("trace_id", display(context.trace_id()));
    }
}

pub(crate) fn failed(span: &Span, why: &str) {
    span.set_status(Status::error(why.to_owned()));
}

/// Sends process spans until it is closed.
#[derive(Debug)]
pub struct ProcessSpans {
    task: JoinHandle<()>,
    options: OtlpOptions,
}

impl ProcessSpans {
    /// Begins to make and send process spans: those that tell something, and the share `rate` of the others.
    ///
    /// # Errors
    /// When the endpoint makes no sense.
    pub fn start(options: &OtlpOptions, rate: f64) -> Result<Self, OtlpError> {
        let mut exporter = options.spans()?;
        exporter.set_resource(&metrics::resource(&options.service, &options.instance));
        let (sender, mut waiting) = mpsc::channel(WAITING);
        set_way(Some(Way { sender, rate }));
        let sending = async move {
            let mut batch = Vec::with_capacity(SPANS_AT_ONCE);
            while gather(&mut waiting, &mut batch).await {
                // metrics say what was dropped; an outage is in the log once, told by those who send what nobody else has
                let _ = export(&exporter, std::mem::take(&mut batch)).await;
            }
        };
        Ok(Self { task: tokio::spawn(sending), options: options.clone() })
    }

    /// Makes no more spans, sends what waits and ends, within the rest of the patience.
    pub async fn close(mut self) {
        set_way(None);
        if tokio::time::timeout(self.options.last_rest(), &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

/// Waits for spans, and a little for more of them; false when none will come any more.
async fn gather(waiting: &mut mpsc::Receiver<SpanData>, batch: &mut Vec<SpanData>) -> bool {
    if waiting.recv_many(batch, SPANS_AT_ONCE).await == 0 {
        return false;
    }
    let until = tokio::time::Instant::now() + GATHER;
    while batch.len() < SPANS_AT_ONCE {
        let room = SPANS_AT_ONCE - batch.len();
        match timeout_at(until, waiting.recv_many(batch, room)).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
    }
    true
}

#[cfg(test)]
mod tests;
