//! A process of its own group, or a container, that is ended with everything it has started.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use bench_settings::private;
use rustix::process::{Pid, Signal, kill_process_group};

/// What a system sees of the environment of whoever runs the benchmark.
const PASSED_ON: [&str; 6] = ["PATH", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Variables that a system sees although nobody gives them to it.
pub(in super::super) fn passed_on() -> impl Iterator<Item = (&'static str, OsString)> {
    PASSED_ON.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}

/// A started system.
#[derive(Debug)]
pub(super) struct Child {
    process: std::process::Child,
    container: Option<String>,
    ended: bool,
}

impl Child {
    /// Starts a program. It sees `PATH`, `LANG`, a `HOME` in its own folder, and what the adapter gives it: nothing private of
    /// whoever runs the benchmark changes what is measured.
    pub(super) fn command(
        words: &[String],
        env: &BTreeMap<String, String>,
        dir: &Path,
        log: &Path,
    ) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or_else(|| io::Error::other("no command"))?;
        let mut command = std::process::Command::new(program);
        command.args(arguments).env_clear().env("HOME", dir).current_dir(dir).envs(passed_on()).envs(env);
        Self::spawn(command, log, None).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::other(format!("program '{program}' is not there")),
            _ => error,
        })
    }

    /// Starts a container whose port is published on loopback only.
    pub(super) fn container(
        image: &str,
        name: &str,
        (port, image_port): (u16, u16),
        env: &BTreeMap<String, String>,
        dir: &Path,
        log: &Path,
    ) -> io::Result<Self> {
        let mut command = std::process::Command::new("docker");
        command.args(["run", "--rm", "--name", name, "-p", &format!("127.0.0.1:{port}:{image_port}")]);
        command.args(["-v", &format!("{}:/data", dir.display())]);
        for (key, value) in env {
            // by name only, so that no secret stands in a process list
            command.args(["-e", key]).env(key, value);
        }
        command.arg(image);
        Self::spawn(command, log, Some(name.to_owned()))
    }

    fn spawn(mut command: std::process::Command, log: &Path, container: Option<String>) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let log = private::append(log)?;
        let process = command.process_group(0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        Ok(Self { process, container, ended: false })
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The container's name, when it is one.
    pub(super) fn container_name(&self) -> Option<&str> {
        self.container.as_deref()
    }

    /// How it ended, when it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.process.try_wait().ok().flatten();
        if status.is_some() {
            // what it had started goes with it
            signal_group(self.process.id(), Signal::KILL);
            self.ended = true;
        }
        status
    }

    /// Asks it to end, and kills it after `grace`.
    pub(super) async fn end(&mut self, grace: Duration) {
        if self.ended().is_some() {
            return;
        }
        if let Some(name) = &self.container {
            remove_container(name).await;
        }
        signal_group(self.process.id(), Signal::TERM);
        let asked = Instant::now();
        while self.ended().is_none() {
            if asked.elapsed() > grace {
                signal_group(self.process.id(), Signal::KILL);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended().is_none() {
            signal_group(self.process.id(), Signal::KILL);
            let _ = self.process.wait();
        }
    }
}

/// Sends a signal to a process group.
pub(in super::super) fn signal_group(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // it may have ended in between
        let _ = kill_process_group(pid, signal);
    }
}

/// Removes a container and what runs in it.
pub(super) async fn remove_container(name: &str) {
    let mut command = tokio::process::Command::new("docker");
    command.args(["rm", "-f", name]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = tokio::time::timeout(Duration::from_secs(20), command.status()).await;
}
