//! A live bar for terminals.

use std::time::Duration;

use bench_proto::text::one_line;
use indicatif::{ProgressBar, ProgressStyle};

use super::View;
use crate::standing::progress::{Snapshot, line, short_line};

/// Columns from which on a wide bar leaves room for the figures beside it.
const WIDE: u16 = 120;

/// A bar of ended questions with a line of figures beside it.
pub(super) struct Bar {
    bar: ProgressBar,
    /// Whether it was last drawn for a wide terminal.
    wide: Option<bool>,
}

impl Bar {
    pub(super) fn new() -> Self {
        Self { bar: ProgressBar::new(0), wide: None }
    }

    /// Shows a snapshot on a terminal of so many columns.
    fn draw(&mut self, snapshot: &Snapshot, columns: u16) {
        let wide = columns >= WIDE;
        if self.wide != Some(wide) {
            self.wide = Some(wide);
            let cells = if wide { 32 } else { 10 };
            let template = format!("{{elapsed_precise}} [{{bar:{cells}}}] {{percent:>3}}% {{wide_msg}}");
            if let Ok(style) = ProgressStyle::with_template(&template) {
                self.bar.set_style(style.progress_chars("=> "));
            }
        }
        self.bar.set_length(snapshot.questions);
        self.bar.set_position(snapshot.ended);
        let text = if wide { line(snapshot) } else { short_line(snapshot) };
        self.bar.set_message(one_line(&text).into_owned());
    }
}

impl View for Bar {
    fn every(&self) -> Duration {
        Duration::from_millis(200)
    }

    fn show(&mut self, snapshot: &Snapshot) {
        // at each look: people make windows smaller
        let (_, columns) = console::Term::stderr().size();
        self.draw(snapshot, columns);
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

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;
    use crate::standing::progress::tests::snapshot;

    /// A terminal that remembers what was written last.
    #[derive(Debug, Clone)]
    struct Screen {
        columns: u16,
        last: Arc<Mutex<String>>,
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            self.columns
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            if !text.trim().is_empty() {
                text.clone_into(&mut self.last.lock().expect("nobody panics with it"));
            }
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What stands on a terminal of so many columns.
    fn drawn(snapshot: &Snapshot, columns: u16) -> String {
        let screen = Screen { columns, last: Arc::default() };
        let mut bar = Bar::new();
        bar.bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(screen.clone())));
        bar.draw(snapshot, columns);
        bar.bar.force_draw();
        screen.last.lock().expect("nobody panics with it").clone()
    }

    #[test]
    fn time_left_and_dollars_are_within_the_line_of_a_narrow_terminal() {
        let large = Snapshot {
            questions: 1_234_567,
            ended: 123_456,
            answered: 234_567,
            infra_error: 12_345,
            banks: 10_000,
            banks_ready: 5_000,
            entries_retained: 12_345_678,
            entries_planned: 23_456_789,
            usd: 12_345.678_9,
            usd_uncertain: 1_234.5,
            usd_cap: Some(100_000.0),
            per_second: 12_345.6,
            eta_seconds: Some(999.0 * 3600.0 + 59.0 * 60.0),
            ..snapshot()
        };
        let (narrow, wide) = (drawn(&large, 80), drawn(&snapshot(), 160));
        assert!(narrow.contains("999 h 59 min left · $12345.6789 of $100000.00"), "{narrow}");
        assert!(console::measure_text_width(narrow.trim_end()) <= 80, "{narrow}");
        assert!(wide.contains("120/200 questions") && wide.contains("1 s left · $0.0042 of $20.00"), "{wide}");
    }
}
