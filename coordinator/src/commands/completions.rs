//! `completions SHELL`: the script on standard output.

use clap::CommandFactory;

use crate::{
    cli::Cli,
    exit::{CliResult, Exit},
    out,
};

/// Prints the completion script of a shell.
pub(super) fn run(shell: clap_complete::Shell) -> CliResult {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "bench-coord", &mut script);
    out::result(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}
