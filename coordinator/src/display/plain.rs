//! Plain lines, at most one every few seconds, for logs and CI.

use std::time::Duration;

use super::View;
use crate::standing::progress::{Snapshot, line};

/// Prints a line when something moved.
#[derive(Debug, Default)]
pub(super) struct Plain {
    last: String,
    looks: u32,
}

impl View for Plain {
    fn every(&self) -> Duration {
        // the first lines come soon, a long run is not drowned in them
        Duration::from_secs(if self.looks < 5 { 2 } else { 10 })
    }

    fn show(&mut self, snapshot: &Snapshot) {
        self.looks = self.looks.saturating_add(1);
        let line = line(snapshot);
        if line != self.last {
            crate::out::note(&line);
            self.last = line;
        }
    }

    fn finish(&mut self) {}
}
