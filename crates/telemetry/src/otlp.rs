//! Sends spans and metrics to a collector by OTLP, over gRPC or HTTP.
//!
//! Nothing waits for a collector: spans of questions come from the store when they are sent, those of the process itself (`process`) from a
//! bounded channel, metrics are sums, and all give up after `PATIENCE`. What could not be sent is counted.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use bench_proto::redact;
use opentelemetry::{
    InstrumentationScope, KeyValue, SpanId, TraceFlags, TraceId,
    trace::{Link, SpanContext, SpanKind, Status, TraceState},
};
use opentelemetry_otlp::{
    MetricExporter, Protocol, SpanExporter, WithExportConfig, WithTonicConfig, tonic_types::transport::ClientTlsConfig,
};
use opentelemetry_sdk::{
    metrics::{data::ResourceMetrics, exporter::PushMetricExporter as _, reader::MetricReader as _},
    trace::{SpanData, SpanExporter as _, SpanLinks},
};
use tokio::{sync::Mutex, task::JoinHandle};

use crate::{
    metrics::{self, catalogue},
    spans::{FinishedSpan, Kind, SpanSink, Value},
};

/// Longest wait for a collector.
const PATIENCE: Duration = Duration::from_secs(5);
/// Spans in one request.
pub(crate) const SPANS_AT_ONCE: usize = 512;

/// Where a collector is, and who is speaking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpOptions {
    /// Its URL (`http://localhost:4317`).
    pub endpoint: String,
    /// HTTP with protobuf bodies instead of gRPC.
    pub http: bool,
    /// How often metrics are sent.
    pub metrics_interval: Duration,
    /// Name of the service (`bench-worker`).
    pub service: String,
    /// Name of the process.
    pub instance: String,
    /// Longest wait at the end of the process, in all; a third of it for a collector that has never taken anything.
    pub patience: Duration,
}

/// Whether the collector has ever taken anything from this process.
static TAKES: AtomicBool = AtomicBool::new(false);

/// A collector that cannot be spoken to, whatever it does.
#[derive(Debug, thiserror::Error)]
#[error("telemetry.endpoint {endpoint}: {reason}")]
pub struct OtlpError {
    /// The endpoint, without its password.
    pub endpoint: String,
    /// Why the endpoint cannot be used.
    pub reason: String,
}

impl OtlpOptions {
    fn failed(&self, reason: impl ToString) -> OtlpError {
        let endpoint = redact::url(&self.endpoint).into_owned();
        // the exporter's own words repeat the endpoint, password and all
        let reason =
            if endpoint == self.endpoint { reason.to_string() } else { "it is no URL of a receiver".to_owned() };
        OtlpError { endpoint, reason }
    }

    /// What is left of the patience for traces of questions: two thirds; they are sent first.
    fn last_traces(&self) -> Duration {
        self.last_words() * 2 / 3
    }

    /// What is left for everything else, at once.
    pub(crate) fn last_rest(&self) -> Duration {
        self.last_words() / 3
    }

    fn last_words(&self) -> Duration {
        if TAKES.load(Ordering::Relaxed) { self.patience } else { self.patience / 3 }
    }

    /// The URL of a signal: over HTTP each has a path of its own.
    fn url(&self, path: &str) -> String {
        let base = self.endpoint.trim_end_matches('/');
        if self.http { format!("{base}/{path}") } else { base.to_owned() }
    }

    fn is_tls(&self) -> bool {
        self.endpoint.starts_with("https://")
    }

    /// An exporter of a signal that is sent over HTTP, to its path.
    fn over_http<B: WithExportConfig>(&self, builder: B, path: &str) -> B {
        builder.with_protocol(Protocol::HttpBinary).with_endpoint(self.url(path)).with_timeout(PATIENCE)
    }

    /// An exporter of a signal that is sent over gRPC.
    fn over_grpc<B: WithExportConfig + WithTonicConfig>(&self, builder: B) -> B {
        let builder = builder.with_endpoint(self.url("")).with_timeout(PATIENCE);
        if self.is_tls() { builder.with_tls_config(trusted()) } else { builder }
    }

    pub(crate) fn spans(&self) -> Result<SpanExporter, OtlpError> {
        let builder = SpanExporter::builder();
        let built = if self.http {
            self.over_http(builder.with_http(), "v1/traces").build()
        } else {
            self.over_grpc(builder.with_tonic()).build()
        };
        built.map_err(|e| self.failed(e))
    }

    fn metrics(&self) -> Result<MetricExporter, OtlpError> {
        let builder = MetricExporter::builder();
        let built = if self.http {
            self.over_http(builder.with_http(), "v1/metrics").build()
        } else {
            self.over_grpc(builder.with_tonic()).build()
        };
        built.map_err(|e| self.failed(e))
    }
}

/// Whom the machine trusts is trusted.
fn trusted() -> ClientTlsConfig {
    ClientTlsConfig::new().with_native_roots()
}

/// Opens the way for spans. The collector need not be there yet.
///
/// # Errors
/// When the endpoint makes no sense.
pub fn span_sink(options: &OtlpOptions) -> Result<Arc<dyn SpanSink>, OtlpError> {
    Ok(Arc::new(OtlpSpans { options: options.clone(), exporter: Mutex::new(options.spans()?) }))
}

struct OtlpSpans {
    options: OtlpOptions,
    /// One request at a time: its resource says whose spans they are.
    exporter: Mutex<SpanExporter>,
}

#[async_trait]
impl SpanSink for OtlpSpans {
    async fn send(&self, spans: Vec<FinishedSpan>) -> Result<(), String> {
        let mut by_process: BTreeMap<String, Vec<SpanData>> = BTreeMap::new();
        for span in spans {
            let process = if span.process.is_empty() { self.options.instance.clone() } else { span.process.clone() };
            by_process.entry(process).or_default().push(span_data(span));
        }
        let mut exporter = self.exporter.lock().await;
        let mut failed = Ok(());
        for (process, spans) in by_process {
            exporter.set_resource(&metrics::resource(&self.options.service, &process));
            for part in spans.chunks(SPANS_AT_ONCE) {
                if let Err(why) = export(&exporter, part.to_vec()).await {
                    failed = Err(why);
                }
            }
        }
        failed
    }

    fn last_words(&self) -> Duration {
        self.options.last_traces()
    }
}

/// Sends spans in one request, and counts them.
pub(crate) async fn export(exporter: &SpanExporter, spans: Vec<SpanData>) -> Result<(), String> {
    let count = spans.len() as f64;
    let sent = match tokio::time::timeout(PATIENCE, exporter.export(spans)).await {
        Ok(sent) => sent.map_err(|e| e.to_string()),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    if sent.is_ok() {
        TAKES.store(true, Ordering::Relaxed);
    }
    catalogue::SPANS.add(count, &[if sent.is_ok() { "sent" } else { "dropped" }]);
    sent
}

fn span_data(span: FinishedSpan) -> SpanData {
    let context = |trace, id| {
        SpanContext::new(
            TraceId::from_bytes(trace),
            SpanId::from_bytes(id),
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        )
    };
    let mut links = SpanLinks::default();
    links.links = span.links.iter().map(|(trace, id)| Link::new(context(*trace, *id), Vec::new(), 0)).collect();
    SpanData {
        span_context: context(span.trace, span.id),
        parent_span_id: span.parent.map_or(SpanId::INVALID, SpanId::from_bytes),
        parent_span_is_remote: false,
        span_kind: match span.kind {
            Kind::Internal => SpanKind::Internal,
            Kind::Client => SpanKind::Client,
            Kind::Producer => SpanKind::Producer,
            Kind::Consumer => SpanKind::Consumer,
        },
        name: span.name.into(),
        start_time: time(span.start_us),
        end_time: time(span.end_us),
        attributes: span.attributes.into_iter().map(|(name, value)| KeyValue::new(name, attribute(value))).collect(),
        dropped_attributes_count: 0,
        events: Default::default(),
        links,
        status: span.error.map_or(Status::Unset, Status::error),
        instrumentation_scope: scope(),
    }
}

/// Who makes spans, and by which conventions.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("bench-coord")
        .with_version(env!("CARGO_PKG_VERSION"))
        .with_schema_url(metrics::SCHEMA_URL)
        .build()
}

fn attribute(value: Value) -> opentelemetry::Value {
    match value {
        Value::Text(text) => text.into(),
        Value::Int(number) => number.into(),
        Value::Number(number) => number.into(),
        Value::Bool(yes) => yes.into(),
        Value::Texts(texts) => {
            opentelemetry::Value::Array(opentelemetry::Array::String(texts.into_iter().map(Into::into).collect()))
        }
    }
}

fn time(us: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(us).unwrap_or(0))
}

/// Brings gauges up to date before they are sent.
#[async_trait]
pub trait Refresh: Send + Sync {
    /// Brings them up to date.
    async fn refresh(&self);
}

/// Sends metrics from time to time until it is closed.
#[derive(Debug)]
pub struct MetricsPusher {
    stop: tokio::sync::watch::Sender<bool>,
    task: JoinHandle<()>,
    options: OtlpOptions,
}

impl MetricsPusher {
    /// Starts sending; metrics must be enabled.
    ///
    /// # Errors
    /// When the endpoint makes no sense.
    pub fn start(options: &OtlpOptions, refresh: Option<Arc<dyn Refresh>>) -> Result<Self, OtlpError> {
        let exporter = options.metrics()?;
        let reader =
            metrics::OtlpReader::of_this_process().ok_or_else(|| options.failed("metrics are not recorded"))?;
        let (stop, mut stopped) = tokio::sync::watch::channel(false);
        let interval = options.metrics_interval.max(Duration::from_millis(100));
        let task = tokio::spawn(async move {
            let mut silent = false;
            loop {
                let last = tokio::select! {
                    () = tokio::time::sleep(interval) => false,
                    _ = stopped.changed() => true,
                };
                if let Some(refresh) = &refresh {
                    refresh.refresh().await;
                }
                let mut collected = ResourceMetrics::default();
                let sent = match reader.collect(&mut collected) {
                    Ok(()) => tokio::time::timeout(PATIENCE, exporter.export(&collected)).await,
                    Err(error) => Ok(Err(error)),
                };
                let why = match sent {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) => Some(error.to_string()),
                    Err(_) => Some(format!("no answer within {} s", PATIENCE.as_secs())),
                };
                if why.is_none() {
                    TAKES.store(true, Ordering::Relaxed);
                }
                // once per outage, not once per interval
                if let Some(why) = why.as_ref().filter(|_| !silent) {
                    tracing::warn!("metrics cannot be sent, the next ones will hold what these do: {why}");
                }
                silent = why.is_some();
                if last {
                    return;
                }
            }
        });
        Ok(Self { stop, task, options: options.clone() })
    }

    /// Sends a last time and ends, within the rest of the patience.
    pub async fn close(mut self) {
        self.stop.send_replace(true);
        if tokio::time::timeout(self.options.last_rest(), &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

#[cfg(test)]
mod tests;
