//! What a process sends of what it sees, by its settings.

use std::sync::Arc;

use bench_proto::failure::Failure;
use bench_settings::Settings;
use bench_telemetry::spans::SpanSink;

/// Code of an endpoint that makes no sense.
#[cfg(feature = "cluster")]
const TELEMETRY: &str = "telemetry";

/// The ways to a collector, as long as the process lives.
#[derive(Default)]
pub struct ProcessTelemetry {
    /// Where traces go.
    pub spans: Option<Arc<dyn SpanSink>>,
    #[cfg(feature = "cluster")]
    pusher: Option<bench_telemetry::otlp::MetricsPusher>,
    #[cfg(feature = "cluster")]
    live: Option<bench_telemetry::process::ProcessSpans>,
}

impl ProcessTelemetry {
    /// Opens the ways that the settings name: none without an endpoint. `refresh` brings gauges up to date.
    ///
    /// # Errors
    /// When the endpoint makes no sense.
    #[cfg(feature = "cluster")]
    pub fn start(
        settings: &Settings,
        service: &str,
        instance: &str,
        refresh: Option<Arc<dyn bench_telemetry::otlp::Refresh>>,
    ) -> Result<Self, Failure> {
        use bench_telemetry::{
            otlp::{MetricsPusher, OtlpError, OtlpOptions, span_sink},
            process::ProcessSpans,
        };
        let telemetry = &settings.telemetry;
        let Some(endpoint) = telemetry.endpoint.clone() else { return Ok(Self::default()) };
        let options = OtlpOptions {
            endpoint,
            http: telemetry.protocol != "grpc",
            metrics_interval: telemetry.metrics_interval,
            service: service.to_owned(),
            instance: instance.to_owned(),
            patience: telemetry.patience,
        };
        let failed = |error: OtlpError| Failure::terminal(TELEMETRY, error.to_string());
        bench_telemetry::metrics::enable(service, instance);
        let spans = Some(span_sink(&options).map_err(failed)?);
        let pusher = Some(MetricsPusher::start(&options, refresh).map_err(failed)?);
        let live = Some(ProcessSpans::start(&options, telemetry.process_rate).map_err(failed)?);
        Ok(Self { spans, pusher, live })
    }

    /// A build for one machine sends nothing, and says so.
    ///
    /// # Errors
    /// Never.
    #[cfg(not(feature = "cluster"))]
    pub fn start(settings: &Settings, service: &str, instance: &str, refresh: Option<()>) -> Result<Self, Failure> {
        let _ = (service, instance, refresh);
        if settings.telemetry.endpoint.is_some() {
            tracing::warn!("this build sends nothing to collectors: telemetry.endpoint is not used");
        }
        Ok(Self::default())
    }

    /// Sends what is left of process spans and metrics, both at once.
    pub async fn close(self) {
        #[cfg(feature = "cluster")]
        tokio::join!(
            async {
                if let Some(live) = self.live {
                    live.close().await;
                }
            },
            async {
                if let Some(pusher) = self.pusher {
                    pusher.close().await;
                }
            }
        );
    }
}
