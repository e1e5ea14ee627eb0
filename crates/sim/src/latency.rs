//! How long a reply takes: log-normal, a pure function of (seed, request, try).

use std::time::Duration;

use crate::{
    config::LatencyConfig,
    draw::{Purpose, RequestKey, RequestKind, unit},
};

/// The latency of a try: `median × exp(sigma × z)` with z standard normal (Box and Muller 1958).
pub(crate) fn latency(config: &LatencyConfig, seed: u64, key: RequestKey, nth: u32, kind: RequestKind) -> Duration {
    let median_ms = match (kind, config.embed_median_ms) {
        (RequestKind::Embedding, Some(ms)) => ms,
        _ => config.median_ms,
    };
    if median_ms <= 0.0 {
        return Duration::ZERO;
    }
    let mut factor = 1.0;
    if config.sigma > 0.0 {
        let radius = (-2.0 * (1.0 - unit(seed, key, Purpose::LatencyRadius, u64::from(nth))).ln()).sqrt();
        let angle = std::f64::consts::TAU * unit(seed, key, Purpose::LatencyAngle, u64::from(nth));
        factor = (config.sigma * radius * angle.cos()).exp();
    }
    // ten minutes are the longest that the simulator holds any request
    Duration::from_secs_f64((median_ms * factor / 1000.0).min(600.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_spread_are_as_asked() {
        let config = LatencyConfig { median_ms: 200.0, sigma: 0.4, embed_median_ms: Some(0.0) };
        let mut ms: Vec<f64> = (0..5001)
            .map(|key| latency(&config, 9, RequestKey(key), 0, RequestKind::Chat).as_secs_f64() * 1e3)
            .collect();
        ms.sort_by(f64::total_cmp);
        assert!((ms[2500] - 200.0).abs() < 8.0, "median {}", ms[2500]);
        let log_sd = (ms[4207] / ms[2500]).ln(); // the 84.13th percentile is one standard deviation above
        assert!((log_sd - 0.4).abs() < 0.03, "sigma {log_sd}");
        assert_eq!(latency(&config, 9, RequestKey(1), 0, RequestKind::Embedding), Duration::ZERO);
        assert_ne!(
            latency(&config, 9, RequestKey(1), 0, RequestKind::Chat),
            latency(&config, 9, RequestKey(1), 1, RequestKind::Chat)
        );
    }
}
