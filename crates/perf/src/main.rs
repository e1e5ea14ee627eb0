//! Benchmarks of bench-coord. Each scenario runs the real release binaries several times, interleaved with a yardstick
//! program, and prints one JSON object: medians, ratios, and every single figure.
//!
//! ```text
//! cargo build --release --workspace --bins
//! cargo run --release -p bench-perf -- all
//! ```

mod measure;
mod scenarios;
mod yardstick;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Benchmarks of bench-coord; prints JSON.
#[derive(Debug, Parser)]
struct Cli {
    /// Counted rounds of each scenario
    #[arg(long, default_value_t = 5, global = true)]
    rounds: usize,
    /// Folder with bench-coord and bench-sim; beside this program by default
    #[arg(long, global = true)]
    binaries: Option<PathBuf>,
    /// Folder that holds locomo/locomo10.json; generated data of the same shape without it
    #[arg(long, env = "BENCH_DATASETS_DIR", global = true)]
    datasets_dir: Option<PathBuf>,
    #[command(subcommand)]
    scenario: Scenario,
}

/// What to measure.
#[derive(Debug, Clone, Copy, Subcommand)]
enum Scenario {
    /// Full run without any model
    Extractive,
    /// Full run, one answer and one judge call per question, provider without latency
    ZeroLatency,
    /// The same at 200 ms median latency, sigma 0.4
    Latency,
    /// 1,000 generated conversations against 10, without any model
    Scale,
    /// All of them
    All,
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let binaries = match cli.binaries {
        Some(folder) => folder,
        None => std::env::current_exe()?.parent().map(PathBuf::from).unwrap_or_default(),
    };
    let lab = scenarios::Lab::new(binaries, cli.datasets_dir, cli.rounds)?;
    let results = match cli.scenario {
        Scenario::Extractive => vec![lab.extractive()?],
        Scenario::ZeroLatency => vec![lab.zero_latency()?],
        Scenario::Latency => vec![lab.latency()?],
        Scenario::Scale => vec![lab.scale()?],
        Scenario::All => vec![lab.extractive()?, lab.zero_latency()?, lab.latency()?, lab.scale()?],
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!(
        "{}",
        serde_json::to_string_pretty(&serde_json::json!({"cores": cores, "rounds": cli.rounds, "results": results}))?
    );
    Ok(())
}
