//! What kind of machine this is: latencies are compared only between machines of one kind (P43).

use std::num::NonZero;

/// System, processor and the cores that this process may use: `linux x86_64, AMD EPYC 7763 64-Core Processor, 4 cores`.
#[must_use]
pub fn class() -> String {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor(&cpuinfo).map(|name| format!(", {name}")).unwrap_or_default();
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("{os} {architecture}{processor}, {cores} {}", if cores == 1 { "core" } else { "cores" })
}

/// The processor's name, where the system tells.
fn processor(cpuinfo: &str) -> Option<&str> {
    let named = |line: &'_ str| line.starts_with("model name");
    let line = cpuinfo.lines().find(|line| named(line))?;
    line.split_once(':').map(|(_, name)| name.trim()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p43_a_machine_is_named_by_its_processor() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: AMD EPYC 7763\nflags : x"), Some("AMD EPYC 7763"));
        assert_eq!(processor("processor : 0\nBogoMIPS : 50.00"), None);
        assert!(class().contains("core"), "{}", class());
    }
}
