//! Latencies side by side: only probes of the same conditions are held against each other (P43).

use bench_proto::{
    comparison::{ComparedRun, LatencyComparison},
    summary::LatencyProbe,
};

/// What the probes of two runs say of each other.
pub(super) fn compare(a: &ComparedRun, b: &ComparedRun) -> LatencyComparison {
    match probes(a, b) {
        Ok((a, b)) => {
            let ratio = |a: Option<f64>, b: Option<f64>| Some(b? / a.filter(|a| *a > 0.0)?);
            LatencyComparison {
                compared: true,
                reason: None,
                p50_ratio: ratio(a.p50_ms, b.p50_ms),
                p95_ratio: ratio(a.p95_ms, b.p95_ms),
            }
        }
        Err(reason) => LatencyComparison { compared: false, reason: Some(reason), p50_ratio: None, p95_ratio: None },
    }
}

/// The probes of both runs, or why they must not be compared.
pub(crate) fn probes<'a>(
    a: &'a ComparedRun,
    b: &'a ComparedRun,
) -> Result<(&'a LatencyProbe, &'a LatencyProbe), String> {
    let of = |run: &'a ComparedRun, which: &str| {
        let probe = run.latency_probe.as_ref().ok_or_else(|| format!("the {which} run has no latency probe"))?;
        match (&probe.failure, probe.p50_ms) {
            (Some(why), _) => Err(format!("the latency probe of the {which} run is not whole: {why}")),
            (None, None) => Err(format!("the latency probe of the {which} run has no figure")),
            (None, Some(_)) => Ok(probe),
        }
    };
    let (a, b) = (of(a, "first")?, of(b, "second")?);
    if a.version != b.version {
        return Err(format!("latency probes of versions {} and {}", a.version, b.version));
    }
    a.conditions.differs(&b.conditions).map_or(Ok((a, b)), |differ| Err(format!("other conditions: {differ}")))
}
