//! Which places of the code an input has reached. The compiler counts them when it is asked to (`scripts/fuzz-rustc.sh`), in arrays of
//! bytes that it announces here before `main`; without that nothing is counted, and inputs are chosen blindly.
#![allow(unsafe_code, reason = "the compiler's counters are announced as pointers, and under names that it looks for")]

use std::sync::{Mutex, PoisonError};

/// An array of counters: where it begins, and its length.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Counters(*mut u8, usize);

// SAFETY: whoever announces an array promises that it lives as long as the process; only [`Reached`] touches it besides the counting code
unsafe impl Send for Counters {}

static ALL: Mutex<Vec<Counters>> = Mutex::new(Vec::new());

/// Called by the start-up code of each instrumented module, with the same array of counters or with its own.
///
/// # Safety
/// `start` to `stop` is one array of bytes that lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    let counters = Counters(start, (stop as usize).saturating_sub(start as usize));
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if counters.1 > 0 && !all.contains(&counters) {
        all.push(counters);
    }
}

/// What has been reached by any input so far.
#[derive(Debug, Default)]
pub struct Reached {
    seen: Vec<u8>,
    now: Vec<u8>,
}

impl Reached {
    /// Whether anything is counted in this build.
    #[must_use]
    pub fn is_counted() -> bool {
        !ALL.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Forgets what was counted; an input follows.
    pub fn begin() {
        for Counters(start, length) in ALL.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // SAFETY: the array is there; a count that another thread writes at this moment may be lost, no more
            unsafe { std::ptr::write_bytes(*start, 0, *length) };
        }
    }

    /// Whether the input since [`Reached::begin`] has reached a place that none before it had, or one of them clearly more often.
    pub fn is_new(&mut self) -> bool {
        self.now.clear();
        for Counters(start, length) in ALL.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // SAFETY: as above
            self.now.extend_from_slice(unsafe { std::slice::from_raw_parts(*start, *length) });
        }
        self.seen.resize(self.now.len(), 0);
        let mut new = false;
        // nearly all of it is zero
        for (counts, seen) in self.now.chunks(64).zip(self.seen.chunks_mut(64)) {
            if counts.iter().fold(0, |any, count| any | count) != 0 {
                for (count, seen) in counts.iter().zip(seen) {
                    let bucket = bucket(*count);
                    new |= bucket & !*seen != 0;
                    *seen |= bucket;
                }
            }
        }
        new
    }

    /// Number of places.
    #[must_use]
    pub fn places(&self) -> usize {
        self.seen.iter().filter(|seen| **seen != 0).count()
    }
}

/// How often, roughly: one bit for each of eight sizes.
fn bucket(count: u8) -> u8 {
    match count {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => 4,
        4..=7 => 8,
        8..=15 => 16,
        16..=31 => 32,
        32..=127 => 64,
        128.. => 128,
    }
}
