//! The binary `bench-sim`.

mod args;

use std::{io::Write as _, process::ExitCode};

use anyhow::Context as _;
use args::Args;
use bench_settings::{numbers, signals::Interrupts};
use bench_sim::{Sim, StartError};
use clap::{CommandFactory as _, Parser as _};

fn main() -> ExitCode {
    let args = arguments();
    let done = match args.man {
        true => clap_mangen::Man::new(Args::command()).render(&mut std::io::stdout()).map_err(anyhow::Error::from),
        false => serve(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            // as for arguments that cannot be read
            ExitCode::from(if e.is::<StartError>() { 2 } else { 1 })
        }
    }
}

/// Reads the command line of this process; help, and what cannot be read, end it with clap's exit codes.
fn arguments() -> Args {
    let words: Vec<_> = std::env::args_os().collect();
    Args::try_parse_from(&words).unwrap_or_else(|error| match numbers::problem(&error, &words) {
        Some(problem) => {
            eprintln!("error: {problem}\n\nFor more information, try '--help'.");
            std::process::exit(2)
        }
        None => error.exit(),
    })
}

fn serve(args: &Args) -> anyhow::Result<()> {
    let mut runtime = if args.threads == 1 {
        // the cheapest per request: no work is moved between threads
        tokio::runtime::Builder::new_current_thread()
    } else {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(usize::from(args.threads));
        runtime
    };
    runtime.enable_all().build()?.block_on(run(args))
}

async fn run(args: &Args) -> anyhow::Result<()> {
    let interrupts = Interrupts::listen()?;
    let sim = Sim::start(args.config()).await?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", serde_json::json!({"listening": sim.base_url, "admin": sim.admin_url}))?;
    stdout.flush()?;
    let (ended, input_ended) = tokio::sync::oneshot::channel::<()>();
    let never = if args.until_input_ends {
        // a thread of its own: nothing waits for it at the end
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            drop(ended);
        });
        None
    } else {
        Some(ended)
    };
    tokio::select! {
        () = interrupts.stop.cancelled() => {}
        _ = input_ended => {}
    }
    drop(never);
    let stats = sim.stop().await;
    if let Some(file) = &args.stats_file {
        let mut text = serde_json::to_string_pretty(&stats)?;
        text.push('\n');
        std::fs::write(file, text).with_context(|| format!("cannot write the statistics to {}", file.display()))?;
    }
    Ok(())
}
