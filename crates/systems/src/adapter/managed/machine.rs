//! What this machine can bear of instances: how many may start at a time, and how many stay when nobody asks for them.
//! Starting is what takes the processors, staying is what takes the memory.

use std::{
    fs::{File, TryLockError},
    io,
    num::NonZero,
    path::Path,
};

use bench_settings::private;

/// Memory that an instance is taken to need, in bytes: an interpreter with its libraries and a small model.
const INSTANCE_BYTES: u64 = 512 << 20;
/// Instances of a run with one for each bank that this process keeps, however much memory there is: each is a process.
const MOST_KEPT: usize = 16;

/// Processors and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Machine {
    cores: usize,
    /// Bytes that are free for new processes; unknown where the system does not tell.
    free: Option<u64>,
}

impl Machine {
    /// This machine as it is now; the limits of a container count as its own.
    pub(super) fn here() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let of_machine = read("/proc/meminfo").as_deref().and_then(available);
        let limit = read("/sys/fs/cgroup/memory.max").as_deref().and_then(number);
        let used = read("/sys/fs/cgroup/memory.current").as_deref().and_then(number);
        let of_group = limit.zip(used).map(|(limit, used)| limit.saturating_sub(used));
        let free = [of_machine, of_group].into_iter().flatten().min();
        Self { cores: std::thread::available_parallelism().map_or(1, NonZero::get), free }
    }

    /// Instances for which there is memory, at least one.
    fn room(self) -> usize {
        self.free.map_or(usize::MAX, |free| usize::try_from(free / INSTANCE_BYTES).unwrap_or(usize::MAX)).max(1)
    }

    /// Instances that start at a time: one for each processor, fewer where memory is short.
    pub(super) fn at_once(self) -> usize {
        self.cores.max(1).min(self.room())
    }

    /// Instances that are kept although nobody asks for them.
    pub(super) fn kept(self) -> usize {
        MOST_KEPT.min(self.room()).max(self.at_once())
    }
}

/// `MemAvailable` of Linux, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    number(line.trim().strip_suffix("kB")?)?.checked_mul(1024)
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The right to start an instance. All processes that keep their systems in one place share the places; the kernel frees one
/// when its holder is gone, in whatever way.
#[derive(Debug)]
pub(super) struct Turn(File);

impl Turn {
    /// Takes one of `places`; `None` while all are taken.
    pub(super) fn take(folder: &Path, places: usize) -> io::Result<Option<Self>> {
        private::create_folder(folder)?;
        for place in 0..places.max(1) {
            let path = folder.join(format!("starting-{place}.lock"));
            let file = private::options().create(true).truncate(false).write(true).open(path)?;
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self(file))),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p39_processors_and_memory_bound_what_starts_and_what_stays() {
        let bounds = |cores, free: Option<u64>| {
            let machine = Machine { cores, free: free.map(|mib| mib << 20) };
            (machine.at_once(), machine.kept())
        };
        assert_eq!(bounds(2, Some(24_000)), (2, 16));
        assert_eq!(bounds(2, None), (2, 16), "where memory cannot be read");
        assert_eq!(bounds(8, Some(2_048)), (4, 4), "room for four");
        assert_eq!(bounds(2, Some(3_000)), (2, 5));
        assert_eq!(bounds(2, Some(100)), (1, 1), "never none");
        assert_eq!(bounds(64, Some(500_000)), (64, 64), "what starts is not ended at once");
    }

    #[test]
    fn memory_is_read_as_linux_writes_it() {
        let meminfo = "MemTotal:       24683884 kB\nMemFree:         1 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available(meminfo), Some(2 << 20));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        assert_eq!(number("max\n"), None, "a container without a limit");
        let here = Machine::here();
        assert!(here.at_once() >= 1 && here.kept() >= here.at_once());
    }

    #[test]
    fn p39_places_to_start_are_shared_and_come_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let take = || Turn::take(folder.path(), 2).expect("the folder can be used");
        let (first, second) = (take().expect("is free"), take().expect("is free"));
        assert!(take().is_none(), "both are taken");
        drop(first);
        let third = take();
        assert!(third.is_some() && take().is_none());
        drop((second, third));
        assert!(take().is_some());
    }
}
