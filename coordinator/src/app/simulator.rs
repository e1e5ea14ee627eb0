//! The simulator behind `fake` models: the program `bench-sim` that lies beside this one, started by the first who calls such a model.
//! It listens on this machine alone and ends with this process, however that ends: its standard input is held open for so long.

use std::{
    io::{BufRead as _, BufReader, Error, ErrorKind},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use super::{App, Deployment};
use crate::exit::CliError;

/// Name of the program.
const PROGRAM: &str = "bench-sim";

/// A simulator that runs while this is held.
pub(super) struct Simulator {
    base_url: String,
    /// Holds the input open that it waits for.
    child: Child,
}

impl Simulator {
    fn start() -> Result<Self, String> {
        let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(PROGRAM)));
        let program = beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM));
        let mut child = Command::new(&program)
            .args(["--listen", "127.0.0.1:0", "--until-input-ends"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // a Ctrl-C is this process's: what is in flight is to finish
            .process_group(0)
            .spawn()
            .map_err(|error| not_started(&program, &error))?;
        let mut line = String::new();
        let read = child.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        let told: Option<serde_json::Value> = serde_json::from_str(&line).ok().filter(|_| matches!(read, Some(Ok(_))));
        let base_url = told.and_then(|told| Some(told["listening"].as_str()?.to_owned()));
        base_url
            .map(|base_url| Self { base_url, child })
            .ok_or_else(|| format!("{} does not listen", program.display()))
    }
}

/// Why it does not start, and what installs it: `cargo install` of a checkout takes one program at a time.
fn not_started(program: &Path, error: &Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!(
            "{PROGRAM}, which simulates it, is not installed: in a checkout run `cargo install --locked --path crates/sim`"
        ),
        _ => format!("{} cannot be started: {error}", program.display()),
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // it has nothing to lose
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl App {
    /// Base URL of the simulator of this process.
    ///
    /// # Errors
    /// Exit 2 in a cluster, whose workers could not reach it, and where the program is not installed.
    pub(super) fn simulator(&self, flag: &str) -> Result<String, CliError> {
        if self.deployment()? == Deployment::Cluster {
            return Err(CliError::usage(format!(
                "{flag}: a fake model is simulated in this process, where workers of a cluster cannot reach it; run {PROGRAM} and \
                 name it with OPENAI_BASE_URL"
            )));
        }
        if let Some(running) = self.simulator.get() {
            return Ok(running.base_url.clone());
        }
        let started = Simulator::start().map_err(|why| CliError::usage(format!("{flag}: {why}")))?;
        Ok(self.simulator.get_or_init(|| started).base_url.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_this_program_alone_is_told_how_to_get_the_other_one() {
        let absent = Command::new("/nowhere/bench-sim").spawn().expect_err("is not there");
        let told = not_started(Path::new(PROGRAM), &absent);
        assert!(told.contains("cargo install --locked --path crates/sim"), "{told}");
        let refused = not_started(Path::new("/x/bench-sim"), &Error::from(ErrorKind::PermissionDenied));
        assert!(refused.starts_with("/x/bench-sim cannot be started"), "{refused}");
    }
}
