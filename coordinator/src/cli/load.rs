//! Flags of `load`.

use std::path::PathBuf;

use bench_load::{gate::Ceiling, mix::Mix};
use clap::{Args, ValueEnum};

/// Flags of `load`.
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    /// Name of a memory system, or an adapter file
    #[arg(value_name = "NAME|FILE", required_unless_present = "merge", conflicts_with = "merge")]
    pub system: Option<String>,
    /// Operations a second, separated by commas: a step for each
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "10")]
    pub rate: Vec<f64>,
    /// How they are spread over time; `steps`: with equal gaps, and when all rates were held the last one is doubled until one is not
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub arrivals: LoadArrivals,
    /// Seconds of a step
    #[arg(long, value_name = "N", default_value_t = 30.0)]
    pub seconds: f64,
    /// Seconds of load of the same rate before each step, counted apart
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    pub warm_up: f64,
    /// Seconds after each step in which what is due is still sent and waited for
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub drain: f64,
    /// Shares of the operations
    #[arg(long, value_name = "SHARES", default_value_t)]
    pub mix: Mix,
    /// Banks over which the operations are spread
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub banks: u32,
    /// Memories that each bank is filled with before, separated by commas: all rates for each size
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "100")]
    pub bank_size: Vec<u32>,
    /// Hits that a recall asks for
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub top_k: u32,
    /// Most operations under way; an adapter's own limit holds too
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub in_flight: u32,
    /// Of arrivals, mix and memories [default: another one each time]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Begin the first step at this time, so that several processes load together
    #[arg(long, value_name = "TIME")]
    pub start_at: Option<String>,
    /// Leave the banks in the memory system
    #[arg(long)]
    pub keep_banks: bool,
    /// Write load.json, load.html and the plots here [default: $BENCH_HOME/load/ID]
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Store and ask what a suite says, instead of a rate
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        conflicts_with_all = ["rate", "arrivals", "seconds", "warm_up", "drain", "mix", "banks", "bank_size", "top_k", "in_flight", "seed", "start_at"]
    )]
    pub suite: Option<LoadSuite>,
    /// Is it worse than this earlier result of the same conditions? Exit 1 when it is, 6 when that cannot be told
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Times the baseline's latency that are still no regression
    #[arg(long, value_name = "TIMES", default_value_t = 1.25)]
    pub ratio: f64,
    /// Latency of recalls that must not be passed, in milliseconds, or slope in milliseconds for 1,000 memories: p95=50,slope=2
    #[arg(long, value_name = "FIGURE=LIMIT", value_delimiter = ',')]
    pub ceiling: Vec<Ceiling>,
    /// Add up the results (load.json) of several processes that have loaded one system together, instead of loading; one result,
    /// of a load or a suite, is shown again
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub merge: Vec<PathBuf>,
}

/// How the starts of operations are spread over time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LoadArrivals {
    /// As of many users who know nothing of each other
    #[default]
    Poisson,
    /// With equal gaps
    Constant,
    /// With equal gaps, at rates that rise until the system is behind
    Steps,
}

impl LoadArrivals {
    /// For people and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Constant => "constant",
            Self::Steps => "steps",
        }
    }
}

/// What is stored and asked, the same for every system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadSuite {
    /// 1,000 retains over 10 banks, and 500 recalls while they grow, at 1, 4 and 16 at once; then duplicates
    Stress,
}
