//! What Debian brings: the servers that tests start for themselves are installed when they are missing and this is root.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::{Command, Output},
};

use anyhow::{bail, ensure};

const NO_INSTALL: &str = "BENCH_NO_INSTALL";

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Installs a package, unless that is forbidden or not possible; then the error says what to run.
pub(crate) fn install(package: &str) -> anyhow::Result<()> {
    let command = format!("apt-get install -y --no-install-recommends {package}");
    if !is_root() || std::env::var_os(NO_INSTALL).is_some() || !Path::new("/usr/bin/apt-get").exists() {
        bail!("{package} is not installed: run {command}");
    }
    // apt-get locks: two tests that miss something wait for each other, also in two processes
    let one_at_a_time = fs::File::create(std::env::temp_dir().join("bench-test-packages.lock"))?;
    one_at_a_time.lock()?;
    let run = |arguments: &str| {
        Command::new("apt-get").args(arguments.split(' ').skip(1)).env("DEBIAN_FRONTEND", "noninteractive").output()
    };
    let updated = run("apt-get update")?;
    succeeded("apt-get update", &updated)?;
    succeeded(&command, &run(&command)?)
}

/// An error with what a command said, when it failed.
pub(crate) fn succeeded(what: &str, output: &Output) -> anyhow::Result<()> {
    let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
    ensure!(output.status.success(), "{what} failed: {} {}", text(&output.stdout), text(&output.stderr));
    Ok(())
}

/// The end of a log, in one line.
pub(crate) fn last_lines(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join(" | ")
}
