//! The slowest questions of a run as one line each.

use super::{BAR, NAME, clipped, duration};

/// The slowest questions as one line each: where the time of each went.
#[must_use]
pub(crate) fn overview(questions: &[Slow]) -> String {
    let longest = questions.iter().map(|slow| slow.ms).fold(0.0, f64::max).max(1e-9);
    let width = questions.iter().map(|slow| slow.question_id.chars().count()).max().unwrap_or(0).min(NAME);
    let line = |slow: &Slow| {
        let mut bar = String::new();
        let mut done = 0.0;
        for (mark, ms) in [("▓", slow.recall_ms), ("█", slow.answer_ms), ("▒", slow.judge_ms)] {
            done += ms;
            let until = (done / longest * BAR as f64).round() as usize;
            bar.push_str(&mark.repeat(until.min(BAR).saturating_sub(bar.chars().count())));
        }
        let kept = if slow.kept { "  trace kept" } else { "" };
        let waits = match slow.wait_ms {
            below if below < 1.0 => String::new(),
            ms => format!("  {} of it waiting", duration((ms * 1e3) as i64)),
        };
        let time = duration((slow.ms * 1e3) as i64);
        format!("{:width$}  {bar:BAR$}  {time:>9}{waits}{kept}", clipped(&slow.question_id, NAME)).trim_end().to_owned()
    };
    let mut lines: Vec<String> = questions.iter().map(line).collect();
    lines.push("▓ recall  █ answer  ▒ judge".to_owned());
    lines.join("\n")
}

/// A slow question, for the overview.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slow {
    /// The dataset's id.
    pub question_id: String,
    /// Own time in milliseconds.
    pub ms: f64,
    /// Milliseconds of its recall.
    pub recall_ms: f64,
    /// Milliseconds of its answer.
    pub answer_ms: f64,
    /// Milliseconds of its slowest judgement.
    pub judge_ms: f64,
    /// Milliseconds that it waited for allowances, money and repeats.
    pub wait_ms: f64,
    /// Whether its trace is kept.
    pub kept: bool,
}
