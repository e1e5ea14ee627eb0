//! The command line of `bench-sim`.

use std::{net::SocketAddr, path::PathBuf};

use bench_sim::{
    AnswerMode, ConfigError, FaultConfig, JudgeMode, KeyConfig, LatencyConfig, LimitConfig, LiveConfig, Outage, Price,
    SimConfig, TokenCounter, Window,
};
use clap::Parser;

/// A simulated OpenAI-compatible provider for rehearsals, tests and benchmarks.
///
/// When ready it prints one line of JSON: {"listening":"http://127.0.0.1:PORT/v1","admin":"http://127.0.0.1:PORT"}. Replies
/// depend on the seed and the request alone, faults on the seed, the request and the number of its try; neither depends on time
/// or order.
#[derive(Debug, Parser)]
#[command(name = "bench-sim", version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where to answer questions about the simulator itself, also while it refuses connections
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    admin_listen: SocketAddr,
    /// Seed of all replies and faults
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Print the manual page, as packages have it
    #[arg(long, hide = true)]
    pub(crate) man: bool,
    /// Write the statistics to this file when stopping
    #[arg(long, value_name = "FILE")]
    pub(crate) stats_file: Option<PathBuf>,
    /// Append a line of JSON to this file for each reply that is paid, before it leaves
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Stop when standard input ends: with whoever started it, however that ends
    #[arg(long)]
    pub(crate) until_input_ends: bool,
    /// Threads that serve
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) threads: u16,

    /// Accept only this key; others are answered with 401 (repeatable)
    #[arg(long = "accept-key", alias = "api-key", value_name = "KEY", help_heading = "Accounts")]
    accept_keys: Vec<String>,
    /// Answer this key with 401 invalid_api_key (repeatable)
    #[arg(long = "bad-key", value_name = "KEY", help_heading = "Accounts")]
    bad_keys: Vec<String>,
    /// Answer this model with 404 model_not_found (repeatable)
    #[arg(long = "unknown-model", value_name = "MODEL", help_heading = "Accounts")]
    unknown_models: Vec<String>,
    /// Answer everything after N requests with 429 insufficient_quota
    #[arg(long, value_name = "N", help_heading = "Accounts")]
    quota_after: Option<u64>,
    /// Part of each prompt that is said to come from a cache
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = "Accounts")]
    cached_share: f64,
    /// Price of a model in dollars per million tokens, for the statistics (repeatable)
    #[arg(long = "price", value_name = "MODEL=IN/OUT[/CACHED[/WRITE]]", value_parser = parse_price, help_heading = "Accounts")]
    prices: Vec<(String, Price)>,

    /// Answer ordinary chat with: echo (the last user message), extract (a few of its words), fixed:TEXT
    #[arg(long, value_name = "MODE", default_value = "extract", help_heading = "Replies")]
    answer: AnswerMode,
    /// Probability of "No information available" instead of an extract
    #[arg(long, value_name = "P", default_value_t = 0.05, help_heading = "Replies")]
    abstain: f64,
    /// Judge by lot, or by whether the answer has the words of the reference in the request (reference)
    #[arg(long, value_name = "lot|reference", default_value = "lot", help_heading = "Replies")]
    judge: JudgeMode,
    /// Probability that a judge by lot accepts
    #[arg(long, value_name = "P", default_value_t = 0.7, help_heading = "Replies")]
    judge_accept: f64,
    /// Count tokens with OpenAI's tables (o200k for chats, cl100k for embeddings), or as bytes / 4 (cheap)
    #[arg(long, value_name = "o200k|bytes", default_value = "o200k", help_heading = "Replies")]
    tokens: TokenCounter,
    /// Refuse longer prompts with 400 context_length_exceeded
    #[arg(long, value_name = "TOKENS", default_value_t = 128_000, help_heading = "Replies")]
    max_context: u64,
    /// Length of embedding vectors when a request does not say
    #[arg(long, value_name = "N", default_value_t = 1536, help_heading = "Replies")]
    embed_dimensions: usize,
    /// Median latency (log-normal); 0 answers at once
    #[arg(long, value_name = "MS", default_value_t = 0.0, help_heading = "Replies")]
    latency_ms: f64,
    /// Standard deviation of the latency's logarithm
    #[arg(long, value_name = "SIGMA", default_value_t = 0.0, help_heading = "Replies")]
    latency_sigma: f64,
    /// Median latency of embeddings, when it differs
    #[arg(long, value_name = "MS", help_heading = "Replies")]
    embed_latency_ms: Option<f64>,

    /// Requests per minute, per key and model
    #[arg(long, value_name = "N", help_heading = "Limits")]
    rpm: Option<u64>,
    /// Tokens per minute, per key and model; a request counts its prompt and its maximal output
    #[arg(long, value_name = "N", help_heading = "Limits")]
    tpm: Option<u64>,
    /// Size of the token bucket, in seconds of the limit
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, help_heading = "Limits")]
    burst_seconds: f64,
    /// Enforce by a token bucket (bucket) or a sliding window (sliding60)
    #[arg(long, value_name = "bucket|sliding60", default_value = "bucket", help_heading = "Limits")]
    window: Window,
    /// Send no x-ratelimit headers
    #[arg(long, help_heading = "Limits")]
    hide_limits: bool,
    /// Requests in flight, of all keys, beyond which 503 is answered
    #[arg(long, value_name = "N", help_heading = "Limits")]
    capacity: Option<u64>,

    /// Probability of a 500, per try
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = FAULTS)]
    fault_500: f64,
    /// Probability of a 503, per try
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = FAULTS)]
    fault_503: f64,
    /// Probability of a 429 with Retry-After, per try
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = FAULTS)]
    fault_429: f64,
    /// Probability of no answer for ten minutes, per try
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = FAULTS)]
    fault_hang: f64,
    /// Probability of a connection closed in the middle of the body, per try
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = FAULTS)]
    fault_cut: f64,
    /// Probability of a 200 whose body is not JSON, per try
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = FAULTS)]
    fault_garbage: f64,
    /// Probability of a judge's reply without a verdict, per try
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = FAULTS)]
    fault_malformed_judge: f64,
    /// Probability of empty content; per try for judges, per request for ordinary chat
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = FAULTS)]
    fault_empty: f64,
    /// Probability of a reply cut off by its length; per try for judges, per request for ordinary chat
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = FAULTS)]
    fault_length: f64,
    /// Probability of a content filter, per request
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = FAULTS)]
    fault_filter: f64,
    /// Probability of a refusal in the model's own words, per request
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = FAULTS)]
    fault_refusal: f64,
    /// Probability of ten times the latency, per try
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = FAULTS)]
    fault_slow: f64,
    /// Fail no request more often than this in a row
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = FAULTS)]
    max_faults_in_a_row: u32,
    /// Lift that bound
    #[arg(long, help_heading = FAULTS)]
    permanent_faults: bool,

    /// Let all requests, or those of a model, meet the same end for a time, such as
    /// kind=status,status=503,model=m,after_ms=1000,for_ms=30000 (repeatable)
    #[arg(long = "outage", value_name = "NAME=VALUE,...", help_heading = "Outages")]
    outages: Vec<Outage>,
    /// Close the connection of each request that contains this text (repeatable)
    #[arg(long = "poison", value_name = "TEXT", help_heading = "Outages")]
    poisons: Vec<String>,
}

const FAULTS: &str = "Faults (probabilities from 0 to 1)";

const AFTER_HELP: &str = "\
It serves /v1/chat/completions, /v1/responses, /v1/embeddings and /v1/models, Azure's
/openai/deployments/NAME/chat/completions and .../embeddings, and Anthropic's /v1/messages. Beside them:
  GET  /healthz   ready
  GET  /stats     what it has seen: requests, answers, faults, repeats, tokens, cost
  POST /reset     forget all of that
  GET  /outages   outages and what was seen during and after each; POST an object to set one, such as
                  {\"kind\":\"status\",\"status\":503,\"for_ms\":30000}; DELETE /outages or /outages/ID ends them
  GET  /control   keys, limits, latency and faults as they are; POST a JSON merge patch to change them,
                  such as {\"limits\":{\"factor\":0.5}}: half the limit, without saying so

These are served at the admin address too, where they answer also while connections are refused.

An outage has a kind (status, hang, cut, cut_body, html, refuse), may be confined (model, calls=chat|judge|embeddings, key,
contains), begins (after_ms, after_requests) and ends (for_ms, times); with kind=status it has status, message and
retry_after_s.

The draw of a request is its header x-bench-draw, else its parameter seed, else 0.";

fn parse_price(text: &str) -> Result<(String, Price), ConfigError> {
    Price::parse(text)
}

impl Args {
    pub(crate) fn config(&self) -> SimConfig {
        SimConfig {
            listen: self.listen,
            admin: self.admin_listen,
            seed: self.seed,
            unknown_models: self.unknown_models.clone(),
            answer: self.answer.clone(),
            abstain: self.abstain,
            judge: self.judge,
            judge_accept: self.judge_accept,
            tokens: self.tokens,
            max_context: self.max_context,
            embed_dimensions: self.embed_dimensions,
            ledger: self.ledger.clone(),
            cached_share: self.cached_share,
            prices: self.prices.iter().cloned().collect(),
            quota_after: self.quota_after,
            outages: self.outages.iter().cloned().chain(self.poisons.iter().map(Outage::poison)).collect(),
            live: LiveConfig {
                keys: KeyConfig { accept: self.accept_keys.clone(), refuse: self.bad_keys.clone() },
                limits: LimitConfig {
                    rpm: self.rpm,
                    tpm: self.tpm,
                    burst_seconds: self.burst_seconds,
                    window: self.window,
                    factor: 1.0,
                    hide_headers: self.hide_limits,
                    capacity: self.capacity,
                },
                latency: LatencyConfig {
                    median_ms: self.latency_ms,
                    sigma: self.latency_sigma,
                    embed_median_ms: self.embed_latency_ms,
                },
                faults: FaultConfig {
                    http_500: self.fault_500,
                    http_503: self.fault_503,
                    http_429: self.fault_429,
                    hang: self.fault_hang,
                    cut: self.fault_cut,
                    garbage: self.fault_garbage,
                    malformed_judge: self.fault_malformed_judge,
                    empty: self.fault_empty,
                    length: self.fault_length,
                    filter: self.fault_filter,
                    refusal: self.fault_refusal,
                    slow: self.fault_slow,
                    max_in_a_row: self.max_faults_in_a_row,
                    permanent: self.permanent_faults,
                },
            },
        }
    }
}
