//! The binary `bench-sim`.

mod args;

use std::io::Write as _;

use anyhow::Context as _;
use args::Args;
use bench_sim::Sim;
use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut runtime = if args.threads == 1 {
        // the cheapest per request: no work is moved between threads
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    let runtime = runtime.worker_threads(usize::from(args.threads)).enable_all().build()?;
    runtime.block_on(run(&args))
}

async fn run(args: &Args) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let sim = Sim::start(args.config()).await?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", serde_json::json!({"listening": sim.base_url}))?;
    stdout.flush()?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    let stats = sim.stop().await;
    if let Some(file) = &args.stats_file {
        let mut text = serde_json::to_string_pretty(&stats)?;
        text.push('\n');
        std::fs::write(file, text).with_context(|| format!("cannot write the statistics to {}", file.display()))?;
    }
    Ok(())
}
