//! A live bar for terminals.

use std::time::Duration;

use bench_proto::text::one_line;
use indicatif::{ProgressBar, ProgressStyle};

use super::View;
use crate::standing::progress::{Snapshot, line};

/// A bar of ended questions with a line of figures beside it.
pub(super) struct Bar {
    bar: ProgressBar,
}

impl Bar {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} [{bar:32}] {percent:>3}% {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar }
    }
}

impl View for Bar {
    fn every(&self) -> Duration {
        Duration::from_millis(200)
    }

    fn show(&mut self, snapshot: &Snapshot) {
        self.bar.set_length(snapshot.questions);
        self.bar.set_position(snapshot.ended);
        self.bar.set_message(one_line(&line(snapshot)).into_owned());
    }

    fn finish(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
