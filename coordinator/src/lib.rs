//! bench-coord: plans runs, hands out their tasks, watches over them, reports.
//!
//! A command line comes in; an exit code, messages and files go out, and everything that lasts is in the store. Start reading at
//! `commands/submit.rs`: its six steps name the rooms. A room uses those below it, never one above:
//!
//! | room | question |
//! |---|---|
//! | `commands` | what does a verb do? One file each |
//! | `runs` | how is a run estimated, executed, concluded, taken up again, forked? |
//! | `cluster` | what does a coordinator of a cluster do while it leads? |
//! | `archive` | how does a run become files, and files a run? |
//! | `comparison` | what is compared with what? |
//! | `load` | how does a memory system do under load? |
//! | `results` | what is the result of a run, and where is it written? |
//! | `planning` | which run is meant by settings and flags, and how does its plan get into the store? |
//! | `display` | how is progress shown? |
//! | `dispatch` | which tasks are handed out now? |
//! | `import` | how are results read that others made? |
//! | `banks` | how does a file become filled banks of this machine? |
//! | `app` | which store, queue, accounts and memory systems does this process have? |
//! | `standing` | how does a run stand? |
//! | [`cli`] | what can be typed? |
//! | `out` | how do words get to a person? |
//! | `exit` | which exit code, and which message? |
//!
//! [`heard`] is a window for those who test from outside what is read of other people's files.

mod app;
#[cfg(feature = "archive")]
mod archive;
mod banks;
pub mod cli;
mod cluster;
mod commands;
mod comparison;
mod dispatch;
mod display;
mod exit;
pub mod heard;
mod import;
mod load;
mod out;
mod planning;
mod results;
mod runs;
mod standing;

pub use exit::{CliError, Exit};

/// Stack of the program's threads: a build without optimisation keeps the whole state of a verb on it, several times over.
const STACK: usize = 8 << 20;
/// Threads that carry a meter's requests. A request goes through five tasks that do little each: threads that hand them to one another
/// cost more CPU than the work itself, and who needs more than a processor runs more meters.
const METER_THREADS: usize = 1;

/// Says that results did not reach their reader; true in any case.
fn tell_lost(why: &out::Lost) -> bool {
    // who closes a pipe (`| head`) knows
    if let out::Lost::Unwritable(why) = why {
        out::note(&format!("error: the result could not be written to standard output: {why}"));
    }
    true
}

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
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if cli.verb.is_meter() {
        builder.worker_threads(METER_THREADS);
    }
    let runtime = match builder.enable_all().thread_stack_size(STACK).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            out::note(&format!("error: the process cannot start its threads: {error}"));
            return Exit::Infrastructure as u8;
        }
    };
    let (is_service, is_verbose) = (cli.verb.is_service(), cli.global.verbose > 0);
    // a panic anywhere becomes one readable line and an exit code: nothing else reaches a person
    let outcome = runtime.block_on(async { tokio::spawn(commands::run(cli)).await });
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    // said whatever the exit is: a regression that nobody could read is one all the same
    let is_lost = out::lost().is_some_and(tell_lost);
    match outcome {
        Ok(Ok(Exit::Done)) if is_lost => Exit::Infrastructure as u8,
        Ok(Ok(exit)) => exit as u8,
        Ok(Err(error)) => {
            if is_service {
                bench_telemetry::last_words(&error.message);
            } else {
                out::note(&format!("error: {error}"));
                if is_verbose {
                    error.causes().for_each(|cause| out::note(&format!("  caused by: {cause}")));
                }
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
