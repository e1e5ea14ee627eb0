//! Ports for servers that must be told theirs.
//!
//! A port that was free a moment ago may be somebody else's when the server starts: the system hands such ports to every
//! outgoing connection and to every other test. These come from below its range, and a lock on a file keeps each for one
//! process, for as long as it lives.

use std::{
    fs::File,
    net::TcpListener,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, bail};

/// Below the ports that Linux gives to connections (32768 and up), above those of well-known services.
const RANGE: std::ops::Range<u16> = 15_000..32_000;

/// Takes `N` ports of 127.0.0.1 on which nobody listens.
///
/// # Errors
/// When none is left, or their locks cannot be kept in the folder for temporary files.
pub fn reserve<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut ports = [0; N];
    for port in &mut ports {
        *port = reserve_one()?;
    }
    Ok(ports)
}

fn reserve_one() -> anyhow::Result<u16> {
    /// Locks of this process, and the offset of the next port to try.
    static TAKEN: Mutex<(Vec<File>, u16)> = Mutex::new((Vec::new(), 0));
    let folder = std::env::temp_dir().join("bench-test-ports");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let (locks, tried) = &mut *taken;
    let size = RANGE.end - RANGE.start;
    // processes start at different places, so that they rarely ask for the same port
    let start = u32::from(size) * (std::process::id() % 251) / 251;
    for _ in 0..size {
        let port = RANGE.start + ((start + u32::from(*tried)) % u32::from(size)) as u16;
        *tried = (*tried + 1) % size;
        let lock = File::create(folder.join(port.to_string()))?;
        if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            locks.push(lock);
            return Ok(port);
        }
    }
    bail!("no port between {} and {} is free", RANGE.start, RANGE.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_given_once() {
        let mut ports: Vec<u16> = (0..50).flat_map(|_| reserve::<2>().expect("ports")).collect();
        assert!(ports.iter().all(|port| RANGE.contains(port)));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 100);
    }
}
