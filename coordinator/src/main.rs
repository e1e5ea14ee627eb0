//! `bench-coord`: parses the command line and calls the library.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    ExitCode::from(bench_coord::run(bench_coord::cli::Cli::parse()))
}
