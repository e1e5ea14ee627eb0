//! `bench-coord`: parses the command line and calls the library.

use std::process::ExitCode;

/// A fifth of a run's time was the C library's allocator: docs/adr/0009-allocator.md.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    ExitCode::from(bench_coord::run(bench_coord::cli::parse()))
}
