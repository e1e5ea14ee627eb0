//! The OpenTelemetry meter behind the catalogue, its Prometheus page, and the reader of the OTLP exporter.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak, atomic::Ordering},
    time::Duration,
};

use opentelemetry::{
    InstrumentationScope, KeyValue,
    metrics::{Counter, Histogram, Meter, MeterProvider as _},
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    metrics::{
        InstrumentKind, ManualReader, Pipeline, SdkMeterProvider, Temporality, data::ResourceMetrics,
        reader::MetricReader,
    },
};
use prometheus::TextEncoder;

use super::{ENABLED, Metric, MetricKind, SCHEMA_URL, Series, catalogue};

/// Name of the meter.
const SCOPE: &str = "bench-coord";

struct Registry {
    counters: HashMap<&'static str, Counter<f64>>,
    histograms: HashMap<&'static str, Histogram<f64>>,
    gauges: Arc<Gauges>,
    page: prometheus::Registry,
    reader: OtlpReader,
    // instruments write to it as long as it lives
    _provider: SdkMeterProvider,
}

/// Series of gauges, as they were last set.
#[derive(Default)]
struct Gauges(Mutex<HashMap<&'static str, Vec<Labelled>>>);

/// A series as OpenTelemetry takes it.
type Labelled = (Vec<KeyValue>, f64);

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// The reader that collects for OTLP.
#[derive(Debug, Clone)]
pub(crate) struct OtlpReader(Arc<ManualReader>);

impl MetricReader for OtlpReader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}

impl OtlpReader {
    /// The reader of the process, once metrics are enabled.
    pub(crate) fn of_this_process() -> Option<Self> {
        REGISTRY.get().map(|registry| registry.reader.clone())
    }
}

/// Starts recording in this process, under its service and instance name. A second call changes nothing.
pub fn enable(service: &str, instance: &str) {
    REGISTRY.get_or_init(|| build(service, instance));
    ENABLED.store(true, Ordering::Relaxed);
}

fn build(service: &str, instance: &str) -> Registry {
    let page = prometheus::Registry::new();
    let reader = OtlpReader(Arc::new(ManualReader::builder().build()));
    let mut provider =
        SdkMeterProvider::builder().with_resource(resource(service, instance)).with_reader(reader.clone());
    // names are whole in the catalogue: nothing is added to them
    let prometheus = opentelemetry_prometheus::exporter()
        .with_registry(page.clone())
        .without_units()
        .without_counter_suffixes()
        .without_target_info()
        .scope_info_enabled(false)
        .build();
    match prometheus {
        Ok(exporter) => provider = provider.with_reader(exporter),
        Err(error) => tracing::warn!("there is no Prometheus page: {error}"),
    }
    let provider = provider.build();
    let scope = InstrumentationScope::builder(SCOPE)
        .with_version(env!("CARGO_PKG_VERSION"))
        .with_schema_url(SCHEMA_URL)
        .build();
    let meter = provider.meter_with_scope(scope);
    let gauges = Arc::new(Gauges::default());
    let (mut counters, mut histograms) = (HashMap::new(), HashMap::new());
    for metric in catalogue::all() {
        match metric.kind {
            MetricKind::Counter => {
                let counter = meter.f64_counter(metric.name).with_description(metric.help).build();
                counters.insert(metric.name, counter);
            }
            MetricKind::Histogram => {
                let histogram = meter.f64_histogram(metric.name).with_description(metric.help).with_unit(metric.unit);
                histograms.insert(metric.name, histogram.with_boundaries(metric.buckets.to_vec()).build());
            }
            MetricKind::Gauge => observe(&meter, metric, &gauges),
        }
    }
    Registry { counters, histograms, gauges, page, reader, _provider: provider }
}

/// What the process is called at a collector.
pub(crate) fn resource(service: &str, instance: &str) -> Resource {
    let attributes = [
        KeyValue::new("service.name", service.to_owned()),
        KeyValue::new("service.namespace", SCOPE),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", instance.to_owned()),
    ];
    Resource::builder_empty().with_schema_url(attributes, SCHEMA_URL).build()
}

/// A gauge reports the series that are there when it is asked.
fn observe(meter: &Meter, metric: &'static Metric, gauges: &Arc<Gauges>) {
    let gauges = Arc::clone(gauges);
    let gauge = meter.f64_observable_gauge(metric.name).with_description(metric.help);
    let gauge = gauge.with_callback(move |observer| {
        let series = gauges.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (labels, value) in series.get(metric.name).into_iter().flatten() {
            observer.observe(*value, labels);
        }
    });
    // the meter keeps it
    let _ = gauge.build();
}

fn labelled(metric: &Metric, labels: &[impl AsRef<str>]) -> Vec<KeyValue> {
    debug_assert_eq!(metric.labels.len(), labels.len(), "{}", metric.name);
    let labels = metric.labels.iter().copied().zip(labels.iter().map(AsRef::as_ref));
    let pair = |(name, value): (&'static str, &str)| match value.parse::<i64>() {
        // the one number among attributes
        Ok(port) if name == "server.port" => KeyValue::new(name, port),
        _ => KeyValue::new(name, value.to_owned()),
    };
    labels.filter(|(_, value)| !value.is_empty()).map(pair).collect()
}

pub(super) fn add(metric: &Metric, value: f64, labels: &[&str]) {
    if let Some(counter) = REGISTRY.get().and_then(|registry| registry.counters.get(metric.name)) {
        counter.add(value, &labelled(metric, labels));
    }
}

pub(super) fn record_all(metric: &Metric, values: &[f64], labels: &[&str]) {
    if let Some(histogram) = REGISTRY.get().and_then(|registry| registry.histograms.get(metric.name)) {
        let labels = labelled(metric, labels);
        values.iter().for_each(|value| histogram.record(*value, &labels));
    }
}

pub(super) fn set_all(metric: &Metric, series: Vec<Series>) {
    let Some(registry) = REGISTRY.get() else { return };
    let series = series.iter().map(|(labels, value)| (labelled(metric, labels), *value)).collect();
    registry.gauges.0.lock().unwrap_or_else(PoisonError::into_inner).insert(metric.name, series);
}

/// The Prometheus page: text format 0.0.4.
///
/// # Errors
/// In words, when there is no page.
pub fn render() -> Result<String, String> {
    let registry = REGISTRY.get().ok_or_else(|| "metrics are not recorded in this process".to_owned())?;
    TextEncoder::new().encode_to_string(&registry.page.gather()).map_err(|e| e.to_string())
}
