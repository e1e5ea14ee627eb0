//! How much a run may use, what it probes and what its traces hold, from settings.

use bench_proto::{
    call::Phase,
    probe::{HIGHEST_RATE, LOWEST_RATE, MOST_RATES, ProbePlan},
    spec::{BanksAfter, Limits},
    trace::TracePolicy,
};
use bench_settings::RunSettings;
use bench_systems::adapter::literal;

use super::models::{UserPrices, price_lines};
use crate::{app::App, exit::CliError};

/// Limits of a run from settings.
///
/// # Errors
/// Exit 2 for a trace URL that cannot lead to a trace.
pub(crate) fn limits(app: &App, prices: UserPrices) -> Result<Limits, CliError> {
    let run = &app.settings().run;
    check_caps(run)?;
    Ok(Limits {
        max_cost: run.max_cost,
        max_usage: run.max_usage,
        max_cost_by_phase: run.max_cost_by_phase.clone(),
        max_cost_per_day: run.max_cost_per_day,
        max_rpm: run.max_rpm,
        max_tpm: run.max_tpm,
        concurrency: run.concurrency,
        system_parallel: None,
        cache: run.cache,
        retries: run.retries,
        outage_timeout_s: run.outage_timeout,
        pool: run.pool.clone(),
        prices,
        price_lines: price_lines(app)?,
        unpriced_ok: run.unpriced_ok,
        trace: trace_policy(app.settings())?,
        // only runs that recall have one
        latency_probe: ProbePlan::default(),
        // only memory systems with calls of their own have one
        meter: None,
        // only runs that fill banks say it
        banks_after: BanksAfter::Unsaid,
    })
}

/// A cap on usage stands in the place of all caps on dollars.
fn check_caps(run: &RunSettings) -> Result<(), CliError> {
    let Some(cap) = run.max_usage else { return Ok(()) };
    let in_dollars = if run.max_cost_per_day.is_some() {
        "--max-cost-per-day"
    } else if let Some(phase) = run.max_cost_by_phase.keys().next() {
        match phase {
            Phase::Retain => "run.max_cost_retain",
            Phase::Recall => "run.max_cost_recall",
            Phase::Answer => "run.max_cost_answer",
            Phase::Judge => "run.max_cost_judge",
        }
    } else {
        return Ok(());
    };
    Err(CliError::usage(format!(
        "{in_dollars} is in dollars and --max-cost in {}: a run is capped in one of them, so leave one out",
        cap.unit.name()
    )))
}

/// What a run that recalls probes when its questions have ended.
///
/// # Errors
/// Exit 2 for what is no rate.
pub(crate) fn latency_probe(app: &App) -> Result<ProbePlan, CliError> {
    let run = &app.settings().run;
    let rate = |text: &String| match text.trim().parse::<f64>() {
        Ok(rate) if (LOWEST_RATE..=HIGHEST_RATE).contains(&rate) => Ok(rate),
        _ => Err(CliError::usage(format!(
            "--latency-probe-rate {text}: give recalls per second, from {LOWEST_RATE} to {HIGHEST_RATE}"
        ))),
    };
    let rates = run.latency_probe_rate.iter().map(rate).collect::<Result<Vec<_>, _>>()?;
    if rates.len() > MOST_RATES {
        return Err(CliError::usage(format!("--latency-probe-rate: give at most {MOST_RATES} rates")));
    }
    if run.latency_probe == 0 && !rates.is_empty() {
        return Err(CliError::usage("--latency-probe-rate needs a probe: give --latency-probe a number of recalls"));
    }
    Ok(ProbePlan { recalls: run.latency_probe, rates })
}

/// Refuses an address of traces that holds a key, or that leads nowhere: it stands in reports, whoever set it.
///
/// # Errors
/// What is wrong with it, as a mistake in usage.
pub(crate) fn check_trace_url(setting: &str, url: &str) -> Result<(), CliError> {
    // first: what is said of anything else repeats it
    literal::check_link(setting, url).map_err(CliError::usage)?;
    TracePolicy::check_url(url).map_err(|why| CliError::usage(format!("{setting}: {why}")))
}

/// What a run says about its traces.
///
/// # Errors
/// Exit 2 for a URL that cannot lead to a trace, or holds what looks like a key.
fn trace_policy(settings: &bench_settings::Settings) -> Result<TracePolicy, CliError> {
    let trace = &settings.trace;
    if let Some(url) = &trace.url {
        check_trace_url("trace.url", url)?;
    }
    Ok(TracePolicy {
        url: trace.url.clone(),
        content: trace.content,
        slow_ms: trace.slow.map(|slow| u64::try_from(slow.as_millis()).unwrap_or(u64::MAX)),
        quantile: trace.quantile,
        rate: trace.rate,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_traces_is_refused_by_the_name_that_it_was_given_under() {
        for setting in ["trace.url", "--trace-url"] {
            let said =
                check_trace_url(setting, "https://jaeger.example/trace/").expect_err("leads to no trace").message;
            assert!(said.starts_with(&format!("{setting}: ")), "{said}");
        }
    }
}
