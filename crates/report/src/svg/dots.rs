//! Scores with their intervals, a line for each: a leaderboard to look at.

use super::{circle, figure, line, short, steps_around, text};
use crate::figures::percent;

const LEFT: f64 = 210.0;
const WIDTH: f64 = 420.0;
const ROW: f64 = 24.0;

/// A result.
#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    /// What stands beside it.
    pub label: String,
    /// Its score, 0 to 1.
    pub value: f64,
    /// Ends of its 95 % interval, 0 to 1.
    pub interval: Option<(f64, f64)>,
    /// Whether it is drawn full: results that nobody has checked are not.
    pub full: bool,
}

/// The picture, without colours: pages bring their own. Results stand in their order.
#[must_use]
pub fn dots(title: &str, results: &[Dot]) -> String {
    let (low, high) = steps_around(results.iter().flat_map(|result| {
        let (low, high) = result.interval.unwrap_or((result.value, result.value));
        [low, high, result.value].map(|score| score.clamp(0.0, 1.0))
    }));
    let at = |score: f64| LEFT + WIDTH * ((score - low) / (high - low)).clamp(0.0, 1.0);
    let bottom = 14.0 + ROW * results.len() as f64;
    let mut shapes = String::new();
    for step in 0..=((high - low) * 10.0).round() as u32 {
        let score = low + f64::from(step) / 10.0;
        shapes += &line(at(score), 8.0, at(score), bottom, "rule");
        shapes += &text(at(score), bottom + 16.0, "middle", "soft", &format!("{:.0} %", score * 100.0));
    }
    for (i, result) in results.iter().enumerate() {
        let y = 14.0 + ROW * i as f64 + 10.0;
        shapes += &text(LEFT - 12.0, y + 4.0, "end", "", &short(&result.label, 30));
        if let Some((low, high)) = result.interval {
            shapes += &line(at(low), y, at(high), y, "whisker");
        }
        shapes += &circle(at(result.value), y, 5.0, if result.full { "bar" } else { "open" });
        shapes += &text(LEFT + WIDTH + 14.0, y + 4.0, "start", "", &percent(result.value));
    }
    figure(LEFT + WIDTH + 90.0, bottom + 26.0, title, &shapes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_is_a_dot_on_its_interval_and_stays_inside() {
        let result = |value: f64, interval, full| Dot { label: "<b>".to_owned(), value, interval, full };
        let svg = dots("scores", &[result(0.62, Some((0.5, 0.7)), true), result(0.31, None, false)]);
        let count = |what: &str| svg.matches(what).count();
        assert_eq!((count("class=\"whisker\""), count("class=\"bar\""), count("class=\"open\"")), (1, 1, 1), "{svg}");
        assert!(svg.contains("&lt;b&gt;") && svg.contains("62.00 %") && svg.contains("30 %"), "{svg}");
        // what a report of others says is drawn at the edge at most
        let far = dots("scores", &[result(0.5, Some((-7.0, 1e300)), true)]);
        assert!(far.contains("x1=\"210.0\"") && far.contains("x2=\"630.0\""), "{far}");
    }
}
