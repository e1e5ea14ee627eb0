//! A real OTLP receiver, and what tests ask of what it got.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use mock_collector::{MockServer, Protocol, ServerHandle};
use opentelemetry_proto::tonic::{
    common::v1::{KeyValue, any_value::Value},
    metrics::v1::metric::Data,
};
use tokio::runtime::Runtime;

/// A span as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    /// Trace, as hexadecimal characters.
    pub trace: String,
    /// 16 hexadecimal characters.
    pub id: String,
    /// Whose child it is; empty for roots.
    pub parent: String,
    /// What the span is called.
    pub name: String,
    /// `service.instance.id` of its resource.
    pub process: String,
    /// Attributes, as texts.
    pub attributes: BTreeMap<String, String>,
    /// Spans that it is linked to.
    pub links: Vec<String>,
    /// Begin and end, nanoseconds since 1970.
    pub times: (u64, u64),
}

/// A point of a histogram: attributes, sum, borders of its buckets.
pub type Point = (BTreeMap<String, String>, f64, Vec<f64>);

/// A receiver on a port of its own.
pub struct Collector {
    runtime: Runtime,
    server: ServerHandle,
}

impl Collector {
    /// Starts one that speaks gRPC, or HTTP with protobuf bodies.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(http: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let protocol = if http { Protocol::HttpBinary } else { Protocol::Grpc };
        let server = runtime.block_on(MockServer::builder().protocol(protocol).port(0).start());
        Self { server: server.expect("a collector starts"), runtime }
    }

    /// What `OTEL_EXPORTER_OTLP_ENDPOINT` wants.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.server.addr())
    }

    /// All spans so far, each once: a span may arrive again under its id.
    #[must_use]
    pub fn spans(&self) -> Vec<Arrived> {
        let mut seen = BTreeSet::new();
        self.arrivals().into_iter().filter(|span| seen.insert(span.id.clone())).collect()
    }

    /// All spans so far, as often as they came.
    #[must_use]
    pub fn arrivals(&self) -> Vec<Arrived> {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        self.runtime.block_on(self.server.with_collector(|got| {
            let arrived = got.spans().iter().map(|test| {
                let span = test.span();
                Arrived {
                    trace: hex(&span.trace_id),
                    id: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    name: span.name.clone(),
                    process: test
                        .resource_attrs()
                        .iter()
                        .find(|attribute| attribute.key == "service.instance.id")
                        .map(|attribute| text(attribute.value.as_ref().and_then(|v| v.value.as_ref())))
                        .unwrap_or_default(),
                    attributes: span
                        .attributes
                        .iter()
                        .map(|a| (a.key.clone(), text(a.value.as_ref().and_then(|v| v.value.as_ref()))))
                        .collect(),
                    links: span.links.iter().map(|link| hex(&link.span_id)).collect(),
                    times: (span.start_time_unix_nano, span.end_time_unix_nano),
                }
            });
            arrived.collect()
        }))
    }

    /// Names of the metrics so far.
    #[must_use]
    pub fn metrics(&self) -> BTreeSet<String> {
        self.runtime.block_on(
            self.server.with_collector(|got| got.metrics().iter().map(|test| test.metric().name.clone()).collect()),
        )
    }

    /// The newest points of a histogram: attributes as texts, sum, borders of the buckets.
    #[must_use]
    pub fn histogram(&self, name: &str) -> Vec<Point> {
        self.runtime.block_on(self.server.with_collector(|got| {
            let newest = got.metrics().iter().rfind(|test| test.metric().name == name);
            let Some(Data::Histogram(histogram)) = newest.and_then(|test| test.metric().data.clone()) else {
                return Vec::new();
            };
            let attributes = |of: &[KeyValue]| {
                of.iter()
                    .map(|a| (a.key.clone(), text(a.value.as_ref().and_then(|v| v.value.as_ref()))))
                    .collect::<BTreeMap<_, _>>()
            };
            let points = histogram.data_points.iter();
            points.map(|p| (attributes(&p.attributes), p.sum.unwrap_or_default(), p.explicit_bounds.clone())).collect()
        }))
    }

    /// Everything that arrived, as one text: to search it.
    #[must_use]
    pub fn dump(&self) -> String {
        self.runtime.block_on(self.server.with_collector(|got| format!("{}\n{:?}", got.dump(), got.spans())))
    }

    /// Waits until what has arrived is as wanted.
    ///
    /// # Panics
    /// When that takes more than half a minute.
    #[must_use]
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&[Arrived]) -> bool) -> Vec<Arrived> {
        let began = Instant::now();
        loop {
            let spans = self.spans();
            if wanted(&spans) {
                return spans;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{what} did not arrive, {} spans did", spans.len());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(yes)) => yes.to_string(),
        _ => String::new(),
    }
}

/// The spans of a trace, its root first; checks that they are one tree.
///
/// # Panics
/// When they are not.
#[must_use]
pub fn tree<'s>(spans: &'s [Arrived], trace: &str) -> Vec<&'s Arrived> {
    let mut of_trace: Vec<&Arrived> = spans.iter().filter(|span| span.trace == trace).collect();
    let ids: BTreeSet<&str> = of_trace.iter().map(|span| span.id.as_str()).collect();
    let orphans: Vec<_> =
        of_trace.iter().filter(|s| !s.parent.is_empty() && !ids.contains(s.parent.as_str())).collect();
    assert!(orphans.is_empty(), "their parents did not arrive: {orphans:#?}");
    assert_eq!(of_trace.iter().filter(|span| span.parent.is_empty()).count(), 1, "one root: {of_trace:#?}");
    of_trace.sort_by_key(|span| (!span.parent.is_empty(), span.times));
    of_trace
}
