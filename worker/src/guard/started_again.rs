//! Notes that a process of a run's memory system was started again, so that its report can say so.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bench_proto::{ids::RunNo, started_again::StartedAgainNote};
use bench_store::{Runs, STARTED_AGAIN_EVENT};
use tracing::debug;

use crate::clock;

/// Most notes of a run in one process of ours.
const MOST: u32 = 1_000;

/// The notes of one run in this process.
pub(super) struct StartedAgain {
    store: Arc<dyn Runs>,
    run: RunNo,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    made: u32,
    /// Those that the store does not have yet.
    due: Vec<StartedAgainNote>,
}

impl StartedAgain {
    pub(super) fn new(store: Arc<dyn Runs>, run: RunNo) -> Self {
        Self { store, run, notes: Mutex::default() }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how processes ended in whose place others were started. What the store does not take now it is told with the next operation.
    pub(super) async fn note(&self, ended: Vec<String>) {
        let mut due = {
            let mut notes = self.notes();
            notes.add(ended, clock::now_us());
            std::mem::take(&mut notes.due).into_iter()
        };
        while let Some(note) = due.next() {
            let stored = match serde_json::to_string(&note) {
                Ok(message) => self.store.add_event(self.run, STARTED_AGAIN_EVENT, &message).await,
                Err(_) => continue,
            };
            if let Err(error) = stored {
                debug!("that a process was started again could not be noted yet: {error}");
                self.notes().due.extend(std::iter::once(note).chain(due));
                return;
            }
        }
    }
}

impl Notes {
    fn add(&mut self, ended: Vec<String>, at_us: i64) {
        for how in ended {
            if self.made == MOST {
                return;
            }
            self.made += 1;
            // the words of one tell what there is to look at
            let ended = (self.made == 1).then_some(how);
            self.due.push(StartedAgainNote { at_us, number: self.made, ended });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_noted_once_and_each_note_is_another() {
        let mut notes = Notes::default();
        notes.add(vec!["(exit status: 1): no memory".to_owned(), "killed".to_owned()], 5);
        notes.add(vec!["killed".to_owned()], 5);
        let told: Vec<(u32, Option<&str>)> =
            notes.due.iter().map(|note| (note.number, note.ended.as_deref())).collect();
        assert_eq!(told, [(1, Some("(exit status: 1): no memory")), (2, None), (3, None)]);
        notes.add(vec![String::new(); 2_000], 6);
        assert_eq!((notes.made, notes.due.len()), (MOST, MOST as usize));
    }
}
