//! Metrics: what is counted, in one place, and the handles by which it is counted.
//!
//! `catalogue` holds every metric with its help, labels and buckets; docs/TELEMETRY.md is held to it by a test, as are dashboards
//! and alert rules. Recording costs one relaxed load until [`enable`] was called, and nothing is there to enable without the feature
//! `metrics`.

pub mod catalogue;
#[cfg(feature = "metrics")]
mod registry;

use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "metrics")]
pub(crate) use registry::{OtlpReader, resource};
#[cfg(feature = "metrics")]
pub use registry::{enable, render};

/// The version of OpenTelemetry's conventions by which spans and metrics are named.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only rises.
    Counter,
    /// A spread of values.
    Histogram,
    /// A value of now.
    Gauge,
}

/// What a metric is called, tells and is split by.
#[derive(Debug)]
pub struct Metric {
    /// Its name, the same in Prometheus and OTLP.
    pub name: &'static str,
    /// What it tells, in one line.
    pub help: &'static str,
    /// Its labels, in the order in which values are given. One whose value is empty is left out.
    pub labels: &'static [&'static str],
    /// Whether it is a counter, a gauge or a histogram.
    pub kind: MetricKind,
    /// Upper borders of a histogram's buckets.
    pub buckets: &'static [f64],
    /// Its unit for OTLP, where the name does not say it.
    pub unit: &'static str,
}

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Whether anything is recorded.
#[must_use]
pub fn enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// A counter of the catalogue.
#[derive(Debug)]
pub struct Counter(pub(crate) Metric);

impl Counter {
    /// Counts; `labels` are the values of the metric's labels, in their order.
    pub fn add(&self, value: f64, labels: &[&str]) {
        if enabled() && value > 0.0 {
            #[cfg(feature = "metrics")]
            registry::add(&self.0, value, labels);
            #[cfg(not(feature = "metrics"))]
            let _ = labels;
        }
    }
}

/// A histogram of the catalogue.
#[derive(Debug)]
pub struct Histogram(pub(crate) Metric);

impl Histogram {
    /// Records a value.
    pub fn record(&self, value: f64, labels: &[&str]) {
        self.record_all(&[value], labels);
    }

    /// Records values of one series: their labels are prepared once.
    pub fn record_all(&self, values: &[f64], labels: &[&str]) {
        if enabled() {
            #[cfg(feature = "metrics")]
            registry::record_all(&self.0, values, labels);
            #[cfg(not(feature = "metrics"))]
            let _ = (values, labels);
        }
    }
}

/// One series of a gauge: the values of its labels, and its value.
pub type Series = (Vec<String>, f64);

/// A gauge of the catalogue. Its series are replaced as a whole, so that what is gone is no longer shown.
#[derive(Debug)]
pub struct Gauge(pub(crate) Metric);

impl Gauge {
    /// What the gauge is called in Prometheus and OTLP.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.0.name
    }

    /// Replaces all series.
    pub fn set_all(&self, series: Vec<Series>) {
        if enabled() {
            #[cfg(feature = "metrics")]
            registry::set_all(&self.0, series);
            #[cfg(not(feature = "metrics"))]
            drop(series);
        }
    }

    /// Replaces all series by one without labels.
    pub fn set(&self, value: f64) {
        self.set_all(vec![(Vec::new(), value)]);
    }
}
