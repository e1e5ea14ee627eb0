//! How processes ended in whose place others were started, kept until somebody asks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most ends of processes that are kept for who asks for them.
const MOST: usize = 1_000;

/// The ends of one program's processes.
#[derive(Debug, Default)]
pub(super) struct Replaced(Mutex<Ends>);

#[derive(Debug, Default)]
struct Ends {
    /// Of the one that ended last, until another one runs.
    last: Option<String>,
    /// Of those before, until somebody asks.
    told: Vec<String>,
}

impl Replaced {
    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how a process ended, in words that would stand behind its name.
    pub(super) fn note_end(&self, how: &str) {
        self.ends().last = Some(how.trim_start_matches([' ', ':']).to_owned());
    }

    /// Notes that another process runs: the end of the one before is worth a word now.
    pub(super) fn note_next(&self) {
        let mut ends = self.ends();
        let last = ends.last.take().filter(|_| ends.told.len() < MOST);
        ends.told.extend(last);
    }

    /// Those in whose place others run, since this was asked the last time.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.ends().told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_once_when_another_process_runs() {
        let replaced = Replaced::default();
        replaced.note_next();
        replaced.note_end(": killed");
        assert_eq!(replaced.take(), [""; 0], "nothing has taken its place");
        replaced.note_next();
        replaced.note_next();
        assert_eq!(replaced.take(), ["killed"]);
        assert_eq!(replaced.take(), [""; 0]);
        for _ in 0..=MOST {
            replaced.note_end("exit status: 1");
            replaced.note_next();
        }
        assert_eq!(replaced.take().len(), MOST);
    }
}
