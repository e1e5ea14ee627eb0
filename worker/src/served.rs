//! Notes what answers the calls of a run, so that its report can say where the models were.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bench_proto::{ids::RunNo, served::ServedNote};
use bench_store::{Runs, SERVED_EVENT};
use tracing::debug;

/// Most notes of a run in one process: a server may give every reply another fingerprint.
const MOST: usize = 256;

/// The notes of one run in this process.
pub(crate) struct ServedNotes {
    store: Arc<dyn Runs>,
    run: RunNo,
    noted: Mutex<HashSet<ServedNote>>,
}

impl ServedNotes {
    pub(crate) fn new(store: Arc<dyn Runs>, run: RunNo) -> Self {
        Self { store, run, noted: Mutex::default() }
    }

    fn noted(&self) -> MutexGuard<'_, HashSet<ServedNote>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes who has answered, unless that is known. A store that does not take it now is told with the next reply.
    pub(crate) async fn note(&self, note: ServedNote) {
        let is_new = {
            let mut noted = self.noted();
            noted.len() < MOST && noted.insert(note.clone())
        };
        if !is_new {
            return;
        }
        let stored = match serde_json::to_string(&note) {
            Ok(message) => self.store.add_event(self.run, SERVED_EVENT, &message).await.map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = stored {
            debug!("who answered could not be noted yet: {error}");
            self.noted().remove(&note);
        }
    }
}
