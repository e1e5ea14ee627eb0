//! The slowest questions of a run as one line each.

use bench_report::terminal::View;

use super::{BAR, BARS, LEAST, NAME, clipped, duration};

/// A question's time with the blanks around it.
const TIME: usize = 13;

/// The slowest questions as one line each: where the time of each went.
#[must_use]
pub(crate) fn overview(questions: &[Slow], view: View) -> String {
    let longest = questions.iter().map(|slow| slow.ms).fold(0.0, f64::max).max(1e-9);
    let behind = questions.iter().map(|slow| slow.remarks().chars().count()).max().unwrap_or(0);
    let names = questions.iter().map(|slow| slow.question_id.chars().count()).max().unwrap_or(0).min(NAME);
    let room = view.width.map(|width| width.saturating_sub(TIME + behind));
    let columns = room.map_or(BAR, |room| room.saturating_sub(names).clamp(LEAST, BARS.1));
    let names = room.map_or(names, |room| names.min(room.saturating_sub(columns).max(LEAST)));
    let line = |slow: &Slow| {
        let mut bar = String::new();
        let mut done = 0.0;
        for (mark, ms) in [("▓", slow.recall_ms), ("█", slow.answer_ms), ("▒", slow.judge_ms)] {
            done += ms;
            let until = (done / longest * columns as f64).round() as usize;
            bar.push_str(&mark.repeat(until.min(columns).saturating_sub(bar.chars().count())));
        }
        let (name, time) = (clipped(&slow.question_id, names), duration((slow.ms * 1e3) as i64));
        format!("{name:names$}  {bar:columns$}  {time:>9}{}", slow.remarks()).trim_end().to_owned()
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

impl Slow {
    /// What stands behind its time.
    fn remarks(&self) -> String {
        let kept = if self.kept { "  trace kept" } else { "" };
        match self.wait_ms {
            below if below < 1.0 => kept.to_owned(),
            ms => format!("  {} of it waiting{kept}", duration((ms * 1e3) as i64)),
        }
    }
}
