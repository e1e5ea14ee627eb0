//! A command's wall time, CPU time and peak memory, from the kernel's own counters.

use std::{
    fs::File,
    io::{Read as _, Seek as _},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use serde::Serialize;

/// What one run of a command took.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Sample {
    /// Seconds from start to end.
    pub(crate) wall_seconds: f64,
    /// User and system seconds.
    pub(crate) cpu_seconds: f64,
    /// Peak resident memory in MiB.
    pub(crate) peak_mib: f64,
}

/// Clock ticks per second of `/proc`; 100 on every Linux that this runs on.
pub(crate) const TICKS: f64 = 100.0;

/// Runs a command to its end; its output is thrown away.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<Sample> {
    run_until(command, &[0])
}

/// The same with a command that may end with any of these codes.
pub(crate) fn run_until(command: &mut Command, codes: &[i32]) -> anyhow::Result<Sample> {
    run_within(command, codes, Duration::MAX)
}

/// The same with a command that is killed when it takes longer than this. What it said last is told when it fails.
pub(crate) fn run_within(command: &mut Command, codes: &[i32], longest: Duration) -> anyhow::Result<Sample> {
    let mut said = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?);
    let cpu_before = children_cpu()?;
    let began = Instant::now();
    let mut child = command.spawn().with_context(|| format!("{command:?} cannot be started"))?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0.0_f64;
    let status = loop {
        // the high-water mark only grows: the last look before the end is the peak
        if let Ok(text) = std::fs::read_to_string(&status_file) {
            peak_kib = peak_kib.max(field(&text, "VmHWM:"));
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > longest {
            child.kill()?;
            child.wait()?;
            bail!("{command:?} had not ended after {:.0} s: {}", longest.as_secs_f64(), last_words(&mut said));
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    let wall_seconds = began.elapsed().as_secs_f64();
    let is_expected = status.code().is_some_and(|code| codes.contains(&code));
    ensure!(is_expected, "{command:?} ended with {status}: {}", last_words(&mut said));
    Ok(Sample { wall_seconds, cpu_seconds: children_cpu()? - cpu_before, peak_mib: peak_kib / 1024.0 })
}

/// The end of what a program said, for messages.
fn last_words(said: &mut File) -> String {
    let mut bytes = Vec::new();
    // a message without these words is still one
    let _ = said.rewind().and_then(|()| said.read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

/// CPU seconds of all children that were waited for.
fn children_cpu() -> anyhow::Result<f64> {
    own_stat([13, 14])
}

/// CPU seconds of this process, its threads together.
pub(crate) fn cpu_of_this_process() -> anyhow::Result<f64> {
    own_stat([11, 12])
}

/// The sum of two fields of this process's counters, in seconds.
fn own_stat(at: [usize; 2]) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').context("/proc/self/stat has a name in brackets")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    Ok(at.into_iter().map(ticks).sum::<f64>() / TICKS)
}

/// A number of kB of `/proc/…/status`; 0 when it is not there.
pub(crate) fn field(status: &str, name: &str) -> f64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()).and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

/// The first line of what a command said.
pub(crate) fn first_line(said: &[u8]) -> String {
    String::from_utf8_lossy(said).lines().next().unwrap_or_default().to_owned()
}

/// Median of some figures.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}
