//! Scores over time with their intervals; runs that cannot be compared are not joined by a line.

use super::{circle, figure, line, percent_rules, short, steps_around, text, with_style};
use crate::figures::percent;

const LEFT: f64 = 56.0;
const TOP: f64 = 16.0;
const HEIGHT: f64 = 240.0;
const STEP: f64 = 64.0;

/// One run of a history.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryPoint {
    /// What stands below it: a date, a version.
    pub label: String,
    /// Its score, 0 to 1.
    pub value: f64,
    /// Ends of its 95 % interval, 0 to 1.
    pub interval: Option<(f64, f64)>,
    /// Runs of one group may be joined.
    pub group: usize,
    /// Whether it may be used.
    pub valid: bool,
}

/// The history as a picture that stands alone; oldest first.
#[must_use]
pub fn history(title: &str, points: &[HistoryPoint]) -> String {
    with_style(&history_plain(title, points))
}

/// The same without colours, for pages that bring their own.
#[must_use]
pub fn history_plain(title: &str, points: &[HistoryPoint]) -> String {
    let bounds = points.iter().flat_map(|p| {
        let (low, high) = p.interval.unwrap_or((p.value, p.value));
        [low, high, p.value]
    });
    let (low, high) = if points.is_empty() { (0.0, 1.0) } else { steps_around(bounds) };
    let width = STEP * points.len().max(4) as f64;
    let x = |i: usize| LEFT + STEP * (i as f64 + 0.5);
    let y = |value: f64| TOP + HEIGHT * (1.0 - (value - low) / (high - low));
    let mut shapes = percent_rules((low, high), (LEFT, LEFT + width), y);
    let mut last_of: std::collections::BTreeMap<usize, usize> = std::collections::BTreeMap::new();
    for (i, point) in points.iter().enumerate() {
        if let Some(before) = last_of.insert(point.group, i) {
            let class = format!("path s{}", point.group % 4);
            shapes += &line(x(before), y(points[before].value), x(i), y(point.value), &class);
        }
    }
    for (i, point) in points.iter().enumerate() {
        if let Some((low, high)) = point.interval {
            shapes += &line(x(i), y(low), x(i), y(high), "whisker");
        }
        let class = if point.valid { format!("f{}", point.group % 4) } else { "bad".to_owned() };
        shapes += &circle(x(i), y(point.value), 5.0, &class);
        shapes += &text(x(i), y(point.value) - 10.0, "middle", "", &percent(point.value));
        shapes += &text(x(i), TOP + HEIGHT + 16.0, "middle", "soft", &short(&point.label, 10));
    }
    figure(LEFT + width + 16.0, TOP + HEIGHT + 28.0, title, &shapes)
}
