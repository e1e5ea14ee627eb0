//! What of a run does not change a score: caps, pace, retries, traces. May differ on resume.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    call::{CacheScope, Phase},
    metered::MeterPlan,
    money::PicoUsd,
    price::ModelPrice,
    probe::ProbePlan,
    usage_cap::UsageCap,
};

/// Limits: what bounds a run without changing a score. Not part of the fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Hard cap on spending, in pico-dollars.
    pub max_cost: Option<PicoUsd>,
    /// Hard cap on what is used, in the place of all caps on dollars; the same unit as long as the run lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_usage: Option<UsageCap>,
    /// Hard caps of single phases, in pico-dollars.
    pub max_cost_by_phase: BTreeMap<Phase, PicoUsd>,
    /// Hard cap on what all runs of the store together spend in a UTC day, while this run reserves.
    pub max_cost_per_day: Option<PicoUsd>,
    /// Requests per minute for the run's models.
    pub max_rpm: Option<u64>,
    /// Tokens per minute for the run's models.
    pub max_tpm: Option<u64>,
    /// Questions in flight over all workers.
    pub concurrency: Option<u32>,
    /// Operations in flight that the system takes, over all workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_parallel: Option<u32>,
    /// Whose stored replies may be used.
    pub cache: CacheScope,
    /// Attempts per task after the first.
    pub retries: u32,
    /// Seconds that the run waits for a provider that is away when nothing else of it can move, before it is paused; not set:
    /// what the coordinator's settings say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage_timeout_s: Option<u64>,
    /// Worker pool.
    pub pool: String,
    /// User-given prices: model → (input, output) pico-dollars per token.
    pub prices: BTreeMap<String, (PicoUsd, PicoUsd)>,
    /// Prices of the run's models from the user's price file; all of its lines where the run is metered.
    pub price_lines: BTreeMap<String, ModelPrice>,
    /// Unpriced models may be used (and count as free).
    pub unpriced_ok: bool,
    /// Which questions keep their traces, and where people find them.
    #[serde(skip_serializing_if = "TracePolicy::is_default")]
    pub trace: TracePolicy,
    /// What is probed when all questions have ended (P43).
    #[serde(skip_serializing_if = "ProbePlan::is_off")]
    pub latency_probe: ProbePlan,
    /// The memory system's own model calls go through the meter (P34); `None`: nobody sees them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meter: Option<MeterPlan>,
    /// What becomes of the banks that it fills.
    #[serde(skip_serializing_if = "BanksAfter::is_unsaid")]
    pub banks_after: BanksAfter,
}

/// What becomes of the banks that a run has filled, when it has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BanksAfter {
    /// They stay; those of a cancelled run are removed when somebody tidies up (`gc`).
    #[default]
    Unsaid,
    /// They stay, also when the run is cancelled, until somebody names them (`--keep-banks`).
    Kept,
    /// They are removed (`--clean-after`).
    Removed,
}

impl BanksAfter {
    fn is_unsaid(&self) -> bool {
        *self == Self::Unsaid
    }
}

impl Limits {
    /// Questions in flight over all workers, until their votes are in (P25): each may have one operation of the system in
    /// flight.
    #[must_use]
    pub fn questions_at_once(&self) -> Option<u32> {
        self.concurrency.into_iter().chain(self.system_parallel).min()
    }

    /// Whether the run as a whole may spend and use what it likes.
    #[must_use]
    pub const fn is_uncapped(&self) -> bool {
        self.max_cost.is_none() && self.max_usage.is_none()
    }

    /// Segments of banks in flight over all workers (P25).
    #[must_use]
    pub fn segments_at_once(&self) -> Option<u32> {
        self.system_parallel
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_cost: None,
            max_usage: None,
            max_cost_by_phase: BTreeMap::new(),
            max_cost_per_day: None,
            max_rpm: None,
            max_tpm: None,
            concurrency: None,
            system_parallel: None,
            cache: CacheScope::Lineage,
            retries: 6,
            outage_timeout_s: None,
            pool: "default".to_owned(),
            prices: BTreeMap::new(),
            price_lines: BTreeMap::new(),
            unpriced_ok: false,
            trace: TracePolicy::default(),
            latency_probe: ProbePlan::default(),
            meter: None,
            banks_after: BanksAfter::Unsaid,
        }
    }
}

/// What a run says about its traces. Not part of the fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TracePolicy {
    /// Where people find a trace: a URL with `{trace_id}` in it.
    pub url: Option<String>,
    /// Traces hold the texts of questions and answers.
    pub content: bool,
    /// Slow is what takes at least so many milliseconds; without it the run's own quantile decides.
    pub slow_ms: Option<u64>,
    /// The quantile above which a question may be slow.
    pub quantile: f64,
    /// Share of questions that keep their trace whatever happens.
    pub rate: f64,
}

impl Default for TracePolicy {
    fn default() -> Self {
        Self { url: None, content: false, slow_ms: None, quantile: 0.99, rate: 0.0001 }
    }
}

/// What a trace URL must hold.
const PLACE: &str = "{trace_id}";

impl TracePolicy {
    /// Whether nothing was changed.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Where people find a trace.
    #[must_use]
    pub fn link(&self, trace_id: &str) -> Option<String> {
        self.url.as_ref().map(|url| url.replace(PLACE, trace_id))
    }

    /// Checks a URL for people.
    ///
    /// # Errors
    /// In words, with what to do.
    pub fn check_url(url: &str) -> Result<(), String> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(format!("'{url}' is no web address: give one such as https://jaeger.example/trace/{PLACE}"));
        }
        if url.contains(|c: char| c.is_control() || c.is_whitespace() || matches!(c, '"' | '<' | '>' | '\'')) {
            return Err("a trace URL holds no blanks, quotes or angle brackets".to_owned());
        }
        if !url.contains(PLACE) {
            return Err(format!("'{url}' does not say where the id goes: write {PLACE} in it"));
        }
        Ok(())
    }
}
