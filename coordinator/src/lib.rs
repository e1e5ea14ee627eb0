//! bench-coord: plans runs, hands out their tasks, watches over them, reports.
//!
//! `cli` says what can be typed, `commands` holds one file per verb. `planning` and `planner` turn settings into a spec and
//! a plan, `dispatch` and `local` keep a run going, `results` turns what is stored into a report.

mod answer_key;
mod app;
#[cfg(feature = "archive")]
mod archive;
pub mod cli;
mod cluster;
mod commands;
mod comparison_inputs;
mod dispatch;
mod display;
mod executor;
mod exit;
pub mod heard;
mod import;
mod latency;
mod local;
mod lock;
mod mirror;
mod out;
mod outages;
mod planner;
mod planning;
mod progress;
mod reach;
mod rehearsal;
mod results;
mod runs;
mod self_check;
mod tables;
mod times;
mod trusted;
mod waiting;
mod waterfall;

pub use exit::{CliError, Exit};

/// Stack of the program's threads: a build without optimisation keeps the whole state of a verb on it, several times over.
const STACK: usize = 8 << 20;

/// Runs a parsed command line to its exit code. Messages go to standard error, results to standard output.
#[must_use]
pub fn run(cli: cli::Cli) -> u8 {
    bench_worker::environment::keep_to_itself();
    let _telemetry = match bench_telemetry::LogOptions::of_process(cli.global.verbose)
        .and_then(|logs| bench_telemetry::init(&logs))
    {
        Ok(guard) => guard,
        Err(error) => {
            out::note(&format!("error: {error}"));
            return Exit::Usage as u8;
        }
    };
    // one line in the log, never a trace on the person's screen
    bench_worker::engine::catch_all();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            out::note(&format!("error: the process cannot start its threads: {error}"));
            return Exit::Infrastructure as u8;
        }
    };
    let is_service = cli.verb.is_service();
    // a panic anywhere becomes one readable line and an exit code: nothing else reaches a person
    let outcome = runtime.block_on(async { tokio::spawn(commands::run(cli)).await });
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    match outcome {
        Ok(Ok(exit)) => exit as u8,
        Ok(Err(error)) => {
            if is_service {
                bench_telemetry::last_words(&error.message);
            } else {
                out::note(&format!("error: {}", error.message));
            }
            error.exit as u8
        }
        Err(failure) => {
            out::note(&format!(
                "error: an internal fault stopped the program ({failure}); stored work is kept, please report this"
            ));
            Exit::Infrastructure as u8
        }
    }
}
