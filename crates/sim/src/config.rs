//! What the simulator is told: everything that shapes its replies, limits and faults.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{error::ConfigError, outage::Outage};

/// Settings of a simulator. The default answers everything at once, without limits and without faults.
#[derive(Debug, Clone, PartialEq)]
pub struct SimConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where to answer questions about the simulator itself, also while it refuses connections; port 0 takes a free one.
    pub admin: SocketAddr,
    /// Seed of all replies and faults.
    pub seed: u64,
    /// Models that are answered with 404.
    pub unknown_models: Vec<String>,
    /// How ordinary chat requests are answered.
    pub answer: AnswerMode,
    /// Probability that an extracted answer is "No information available" instead.
    pub abstain: f64,
    /// How a judge comes to its verdict.
    pub judge: JudgeMode,
    /// Probability that a judge by lot accepts.
    pub judge_accept: f64,
    /// How tokens are counted.
    pub tokens: TokenCounter,
    /// Requests with more prompt tokens are refused with 400 `context_length_exceeded`.
    pub max_context: u64,
    /// Length of embedding vectors when the request does not say.
    pub embed_dimensions: usize,
    /// Prices by model, for the statistics only.
    pub prices: BTreeMap<String, Price>,
    /// A file that gets a line of JSON for each reply that is paid (`model`, `prompt_tokens`, `completion_tokens`, `cost_pico_usd`); what
    /// it holds already stays.
    pub ledger: Option<PathBuf>,
    /// Part of each prompt that is said to come from a cache.
    pub cached_share: f64,
    /// After so many admitted requests everything is answered with 429 `insufficient_quota`, for ever.
    pub quota_after: Option<u64>,
    /// Outages that are set at the start.
    pub outages: Vec<Outage>,
    /// What can be changed at run time.
    pub live: LiveConfig,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            admin: SocketAddr::from(([127, 0, 0, 1], 0)),
            seed: 0,
            unknown_models: Vec::new(),
            answer: AnswerMode::Extract,
            abstain: 0.05,
            judge: JudgeMode::Lot,
            judge_accept: 0.7,
            tokens: TokenCounter::O200k,
            max_context: 128_000,
            embed_dimensions: 1536,
            prices: BTreeMap::new(),
            ledger: None,
            cached_share: 0.0,
            quota_after: None,
            outages: Vec::new(),
            live: LiveConfig::default(),
        }
    }
}

impl SimConfig {
    /// Checks what types cannot say.
    ///
    /// # Errors
    /// A probability outside of [0, 1], faults that sum to more than 1, or a limit of zero.
    pub fn check(&self) -> Result<(), ConfigError> {
        for (name, value) in
            [("abstain", self.abstain), ("judge-accept", self.judge_accept), ("cached-share", self.cached_share)]
        {
            probability(name, value)?;
        }
        if self.embed_dimensions == 0 || self.embed_dimensions > 8192 {
            return Err(ConfigError("embed-dimensions must be between 1 and 8192".into()));
        }
        self.outages.iter().try_for_each(Outage::check)?;
        self.live.check()
    }
}

/// The part of the settings that `POST /control` can change while the simulator runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveConfig {
    /// Which keys are accepted.
    pub keys: KeyConfig,
    /// Requests and tokens per minute, and how they are enforced.
    pub limits: LimitConfig,
    /// How long replies take.
    pub latency: LatencyConfig,
    /// How often requests fail, by kind.
    pub faults: FaultConfig,
}

impl LiveConfig {
    /// The settings after a JSON merge patch (RFC 7396) such as `{"limits": {"factor": 0.5}}`; `null` lifts a limit.
    ///
    /// # Errors
    /// An unknown field, a wrong type, or a value that [`SimConfig::check`] refuses.
    pub fn patched(&self, patch: &serde_json::Value) -> Result<Self, ConfigError> {
        let wrong = |e: serde_json::Error| ConfigError(format!("cannot apply control: {e}"));
        let mut value = serde_json::to_value(self).map_err(wrong)?;
        merge(&mut value, patch);
        let patched: Self = serde_json::from_value(value).map_err(wrong)?;
        patched.check()?;
        Ok(patched)
    }

    /// See [`SimConfig::check`].
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.faults.check()?;
        let limits = &self.limits;
        if [limits.rpm, limits.tpm, limits.capacity].contains(&Some(0)) {
            return Err(ConfigError("a limit must be at least 1; leave it out for no limit".into()));
        }
        if !(limits.factor.is_finite()
            && limits.factor > 0.0
            && limits.burst_seconds.is_finite()
            && limits.burst_seconds > 0.0)
        {
            return Err(ConfigError("limit factor and burst seconds must be above 0".into()));
        }
        let latency = &self.latency;
        let finite = |value: f64| value.is_finite() && value >= 0.0;
        if !finite(latency.median_ms) || !finite(latency.sigma) || latency.embed_median_ms.is_some_and(|ms| !finite(ms))
        {
            return Err(ConfigError("latency and its sigma must be 0 or more".into()));
        }
        Ok(())
    }
}

fn merge(target: &mut serde_json::Value, patch: &serde_json::Value) {
    match (target, patch) {
        (serde_json::Value::Object(target), serde_json::Value::Object(patch)) => {
            for (name, value) in patch {
                merge(target.entry(name.clone()).or_insert(serde_json::Value::Null), value);
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}

/// Which keys are good; all others are answered with 401.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyConfig {
    /// Good keys; every key is one when this is empty.
    pub accept: Vec<String>,
    /// Keys that are not good.
    pub refuse: Vec<String>,
}

impl KeyConfig {
    /// Whether a key is good.
    pub(crate) fn is_good(&self, key: &str) -> bool {
        (self.accept.is_empty() || self.accept.iter().any(|good| good == key))
            && !self.refuse.iter().any(|bad| bad == key)
    }
}

/// Limits per account (API key) and model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitConfig {
    /// Requests per minute, as announced in headers.
    pub rpm: Option<u64>,
    /// Tokens per minute, as announced in headers.
    pub tpm: Option<u64>,
    /// Size of the bucket, in seconds of the limit.
    pub burst_seconds: f64,
    /// How the limits are enforced.
    pub window: Window,
    /// The limits really enforced are the announced ones times this.
    pub factor: f64,
    /// Send no `x-ratelimit-*` headers.
    pub hide_headers: bool,
    /// Requests in flight beyond which 503 is answered, for all accounts together.
    pub capacity: Option<u64>,
}

impl Default for LimitConfig {
    fn default() -> Self {
        Self {
            rpm: None,
            tpm: None,
            burst_seconds: 1.0,
            window: Window::Bucket,
            factor: 1.0,
            hide_headers: false,
            capacity: None,
        }
    }
}

/// How limits are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Window {
    /// A token bucket that is refilled evenly.
    Bucket,
    /// No more than the limit (per minute) × window within any window of this length.
    Sliding(Duration),
}

impl From<Window> for String {
    fn from(window: Window) -> Self {
        match window {
            Window::Bucket => "bucket".into(),
            Window::Sliding(length) => format!("sliding{}", length.as_secs()),
        }
    }
}

impl TryFrom<String> for Window {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

impl std::str::FromStr for Window {
    type Err = ConfigError;

    /// `bucket`, `sliding60`, or any other number of seconds after `sliding`.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        if text == "bucket" {
            return Ok(Self::Bucket);
        }
        match text.strip_prefix("sliding").and_then(|seconds| seconds.parse().ok()) {
            Some(seconds @ 1..=3600) => Ok(Self::Sliding(Duration::from_secs(seconds))),
            _ => Err(ConfigError(format!("unknown window '{text}': use bucket or sliding60"))),
        }
    }
}

/// Latency of replies: log-normal, a pure function of (seed, request, try).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyConfig {
    /// Median in milliseconds; 0 answers at once.
    pub median_ms: f64,
    /// Standard deviation of the logarithm.
    pub sigma: f64,
    /// Median for embeddings, when it differs.
    pub embed_median_ms: Option<f64>,
}

/// Faults by kind, as probabilities per try or per request (see [`crate::FaultKind`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are the kinds, documented at FaultKind")]
pub struct FaultConfig {
    pub http_500: f64,
    pub http_503: f64,
    pub http_429: f64,
    pub hang: f64,
    pub cut: f64,
    pub garbage: f64,
    pub malformed_judge: f64,
    pub empty: f64,
    pub length: f64,
    pub filter: f64,
    pub refusal: f64,
    pub slow: f64,
    /// A request is never failed more often than this in a row.
    pub max_in_a_row: u32,
    /// Lifts `max_in_a_row`.
    pub permanent: bool,
}

impl Default for FaultConfig {
    fn default() -> Self {
        Self {
            http_500: 0.0,
            http_503: 0.0,
            http_429: 0.0,
            hang: 0.0,
            cut: 0.0,
            garbage: 0.0,
            malformed_judge: 0.0,
            empty: 0.0,
            length: 0.0,
            filter: 0.0,
            refusal: 0.0,
            slow: 0.0,
            max_in_a_row: 3,
            permanent: false,
        }
    }
}

impl FaultConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let failing = [
            ("500", self.http_500),
            ("503", self.http_503),
            ("429", self.http_429),
            ("hang", self.hang),
            ("cut", self.cut),
            ("garbage", self.garbage),
            ("malformed-judge", self.malformed_judge),
            ("empty", self.empty),
            ("length", self.length),
        ];
        for (name, value) in
            failing.iter().chain(&[("filter", self.filter), ("refusal", self.refusal), ("slow", self.slow)])
        {
            probability(&format!("fault {name}"), *value)?;
        }
        if failing.iter().map(|(_, value)| value).sum::<f64>() > 1.0 + 1e-9
            || self.empty + self.length + self.filter + self.refusal > 1.0 + 1e-9
        {
            return Err(ConfigError("the probabilities of all faults must not sum to more than 1".into()));
        }
        Ok(())
    }
}

fn probability(name: &str, value: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError(format!("{name} is {value}, expected a probability from 0 to 1")))
    }
}

/// How ordinary chat requests are answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerMode {
    /// The last user message, whole.
    Echo,
    /// A few words of the last user message, chosen by hash.
    Extract,
    /// Always this text.
    Fixed(String),
}

impl std::str::FromStr for AnswerMode {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "echo" => Ok(Self::Echo),
            "extract" => Ok(Self::Extract),
            _ => match text.strip_prefix("fixed:") {
                Some(fixed) => Ok(Self::Fixed(fixed.to_owned())),
                None => Err(ConfigError(format!("unknown answer mode '{text}': use echo, extract or fixed:TEXT"))),
            },
        }
    }
}

/// How a judge comes to its verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgeMode {
    /// By lot, whatever the answer is: accepts with the probability `judge_accept`.
    Lot,
    /// By the reference: accepts an answer with at least half of the reference's words; where no reference is shown, one that
    /// says that it does not know. What it cannot read it judges by lot.
    Reference,
}

impl std::str::FromStr for JudgeMode {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "lot" => Ok(Self::Lot),
            "reference" => Ok(Self::Reference),
            _ => Err(ConfigError(format!("unknown judge '{text}': use lot or reference"))),
        }
    }
}

/// How tokens are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCounter {
    /// OpenAI's tables: o200k for chats, cl100k for embeddings; each is loaded with the first request.
    O200k,
    /// Bytes / 4, rounded up: for benchmarks, where counting must cost nothing.
    Bytes,
}

impl std::str::FromStr for TokenCounter {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "o200k" => Ok(Self::O200k),
            "bytes" => Ok(Self::Bytes),
            _ => Err(ConfigError(format!("unknown token counter '{text}': use o200k or bytes"))),
        }
    }
}

/// Price of a model in pico-dollars per token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Price {
    /// Per prompt token.
    pub input: i64,
    /// Per completion token.
    pub output: i64,
    /// Per prompt token read from a cache.
    pub cached: i64,
    /// Per prompt token written into one.
    pub cache_write: i64,
}

/// What a reply used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// All prompt tokens.
    pub(crate) prompt: u64,
    /// Prompt tokens that came from a cache.
    pub(crate) cached: u64,
    /// Prompt tokens that were written into a cache.
    pub(crate) cache_write: u64,
    /// Completion tokens.
    pub(crate) completion: u64,
}

impl Price {
    /// Reads `MODEL=IN/OUT` in dollars per million tokens, such as `gpt-4o-mini=0.15/0.60`, or `MODEL=IN/OUT/CACHED/WRITE`
    /// where tokens from a cache and into one have prices of their own.
    ///
    /// # Errors
    /// When it has another form or more than six decimals.
    pub fn parse(text: &str) -> Result<(String, Self), ConfigError> {
        let wrong = || {
            ConfigError(format!(
                "cannot read price '{text}': use MODEL=IN/OUT (or IN/OUT/CACHED/WRITE) in dollars per million tokens, such as gpt-4o-mini=0.15/0.60"
            ))
        };
        let per_token = |usd: &str| {
            let pico = bench_proto::money::PicoUsd::parse(usd)?.0;
            (pico % 1_000_000 == 0).then_some(pico / 1_000_000)
        };
        let (model, prices) = text.rsplit_once('=').ok_or_else(wrong)?;
        let prices: Option<Vec<i64>> = prices.split('/').map(per_token).collect();
        let price = match prices.as_deref() {
            Some(&[input, output]) => Self { input, output, cached: input, cache_write: input },
            Some(&[input, output, cached]) => Self { input, output, cached, cache_write: input },
            Some(&[input, output, cached, cache_write]) => Self { input, output, cached, cache_write },
            _ => return Err(wrong()),
        };
        if model.is_empty() { Err(wrong()) } else { Ok((model.to_owned(), price)) }
    }

    /// Cost of a call in pico-dollars.
    pub(crate) fn cost(self, used: Used) -> i64 {
        let fresh = used.prompt.saturating_sub(used.cached).saturating_sub(used.cache_write);
        let parts = [
            (self.input, fresh),
            (self.cached, used.cached),
            (self.cache_write, used.cache_write),
            (self.output, used.completion),
        ];
        parts.into_iter().fold(0_i64, |sum, (price, tokens)| sum.saturating_add(price.saturating_mul(tokens as i64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_exact_pico_dollars_per_token() {
        let (model, price) = Price::parse("openai/gpt-4o-mini=0.15/0.60").expect("a price");
        assert_eq!(
            (model.as_str(), price),
            ("openai/gpt-4o-mini", Price { input: 150_000, output: 600_000, cached: 150_000, cache_write: 150_000 })
        );
        let used = |prompt, cached, cache_write, completion| Used { prompt, cached, cache_write, completion };
        assert_eq!(price.cost(used(1_000_000, 0, 0, 1_000_000)), 750_000_000_000);
        let (_, price) = Price::parse("m=1/2/0.5/1.25").expect("a price");
        assert_eq!(price.cost(used(10, 4, 2, 1)), 4_000_000 + 2_000_000 + 2_500_000 + 2_000_000);
        for bad in ["m", "m=1", "=1/2", "m=1/x", "m=0.0000001/1", "m=-1/1"] {
            assert!(Price::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn control_changes_only_what_it_names() {
        let live =
            LiveConfig { limits: LimitConfig { rpm: Some(600), ..LimitConfig::default() }, ..LiveConfig::default() };
        let halved =
            live.patched(&serde_json::json!({"limits": {"factor": 0.5, "window": "sliding60"}})).expect("a good patch");
        assert_eq!((halved.limits.rpm, halved.limits.factor), (Some(600), 0.5));
        assert_eq!(halved.limits.window, Window::Sliding(Duration::from_secs(60)));
        assert_eq!(halved.faults, live.faults);
        assert_eq!(
            halved.patched(&serde_json::json!({"limits": {"rpm": null}})).expect("a good patch").limits.rpm,
            None
        );
        for bad in [
            serde_json::json!({"limit": {}}),
            serde_json::json!({"limits": {"rpm": 0}}),
            serde_json::json!({"faults": {"cut": 2}}),
            serde_json::json!(3),
        ] {
            assert!(live.patched(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn nonsense_is_refused_before_listening() {
        let with = |change: fn(&mut SimConfig)| {
            let mut config = SimConfig::default();
            change(&mut config);
            config.check()
        };
        assert!(SimConfig::default().check().is_ok());
        assert!(with(|c| c.judge_accept = 1.5).is_err());
        assert!(with(|c| c.live.faults.http_500 = f64::NAN).is_err());
        assert!(with(|c| (c.live.faults.http_500, c.live.faults.cut) = (0.6, 0.6)).is_err());
        assert!(with(|c| c.live.limits.rpm = Some(0)).is_err());
        assert!(with(|c| c.live.limits.factor = 0.0).is_err());
        assert!("sliding60".parse::<Window>().is_ok() && "sliding0".parse::<Window>().is_err());
    }
}
