//! CPU time and peak memory of processes that are still running, from `/proc`.

use std::collections::HashMap;

use anyhow::Context;
use serde_json::{Map, Value, json};

use crate::measure::{TICKS, field};

/// User and system seconds of a process and of its children that have ended.
fn of_process(pid: u32) -> anyhow::Result<(f64, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').context("a stat line has a name in brackets")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    // fields 14 to 17 of proc(5), counted from the one after the name
    Ok(((number(11) + number(12) + number(13) + number(14)) / TICKS, number(1) as u32))
}

/// CPU seconds of a process and its children: servers like PostgreSQL have one per connection.
pub(crate) fn cpu_of_family(pid: u32) -> anyhow::Result<f64> {
    let mut sum = of_process(pid)?.0;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // a process that ends meanwhile is in its parent's times the next time
        if let Ok((seconds, parent)) = of_process(child)
            && parent == pid
        {
            sum += seconds;
        }
    }
    Ok(sum)
}

/// Peak resident memory of a process in MiB.
pub(crate) fn peak_mib(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    field(&status, "VmHWM:") / 1024.0
}

/// CPU seconds by what they were spent for.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuTimes(HashMap<&'static str, f64>);

impl CpuTimes {
    /// Reads the times of processes by purpose.
    pub(crate) fn read(processes: &[(&'static str, u32)]) -> Self {
        let mut cpu_times = HashMap::new();
        for (purpose, pid) in processes {
            *cpu_times.entry(*purpose).or_default() += cpu_of_family(*pid).unwrap_or(0.0);
        }
        Self(cpu_times)
    }

    /// Milliseconds per item since `before`, by purpose and in sum.
    pub(crate) fn per_item_since(&self, before: &Self, items: f64) -> Value {
        let mut map: Map<String, Value> = Map::new();
        let mut sum = 0.0;
        for (purpose, seconds) in &self.0 {
            let spent = (seconds - before.0.get(purpose).copied().unwrap_or(0.0)) * 1000.0 / items;
            sum += spent;
            map.insert((*purpose).to_owned(), json!(round(spent)));
        }
        map.insert("sum".to_owned(), json!(round(sum)));
        Value::Object(map)
    }
}

/// Four significant places are enough for people.
pub(crate) fn round(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}
