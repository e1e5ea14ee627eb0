//! One JSON object a line, for programs.

use std::time::Duration;

use super::View;
use crate::standing::progress::Snapshot;

/// Prints each snapshot as JSON.
#[derive(Debug)]
pub(super) struct JsonLines;

impl View for JsonLines {
    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn show(&mut self, snapshot: &Snapshot) {
        if let Ok(json) = serde_json::to_string(snapshot) {
            crate::out::note(&json);
        }
    }

    fn finish(&mut self) {}
}
