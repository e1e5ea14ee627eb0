//! Quality against a cost, with the Pareto front among what can be held against each other.

use bench_proto::metric::Better;

use super::{Plot, circle, figure, line, percent_rules, short, steps_around, text};
use crate::{figures::percent, words};

const LEFT: f64 = 56.0;
const TOP: f64 = 16.0;
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 260.0;
/// Between the axes and the points nearest to them.
const MARGIN: f64 = 16.0;
/// Room for the words beside the picture.
const LEGEND: f64 = 300.0;
const ROW: f64 = 18.0;
/// Steps of the axis of costs.
const STEPS: u32 = 4;

/// A result: how good it is, and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontPoint {
    /// What stands beside it: a number, a short name.
    pub mark: String,
    /// What the mark means.
    pub label: String,
    /// Its score, 0 to 1.
    pub value: f64,
    /// Ends of its 95 % interval, 0 to 1.
    pub interval: Option<(f64, f64)>,
    /// What it costs, in the unit of the axis.
    pub cost: f64,
    /// Whether no other one beats it in both.
    pub on_front: bool,
}

/// What a picture of a front is about.
#[derive(Debug, Clone, Copy)]
pub struct FrontAxis<'a> {
    /// Name of the file, without a folder.
    pub file_name: &'static str,
    /// What stands above it.
    pub title: &'a str,
    /// In which direction scores are better.
    pub better: Better,
    /// A cost as it is written.
    pub written: fn(f64) -> String,
}

/// The picture; points on the front are full and joined, from the cheapest to the best. None without two points or where none of
/// them costs anything: such a picture shows nothing that the table does not.
#[must_use]
pub fn front_plot(axis: FrontAxis<'_>, points: &[FrontPoint]) -> Option<Plot> {
    let most = points.iter().map(|point| point.cost).fold(0.0, f64::max);
    if points.len() < 2 || most <= 0.0 {
        return None;
    }
    let (low, high) = steps_around(points.iter().flat_map(|point| {
        let (low, high) = point.interval.unwrap_or((point.value, point.value));
        [low, high, point.value]
    }));
    let x = |cost: f64| LEFT + MARGIN + (WIDTH - 2.0 * MARGIN) * (cost / most).clamp(0.0, 1.0);
    let y = |value: f64| TOP + HEIGHT * (1.0 - (value - low) / (high - low));
    let mut shapes = percent_rules((low, high), (LEFT, LEFT + WIDTH), y);
    for step in 0..=STEPS {
        let cost = most * f64::from(step) / f64::from(STEPS);
        shapes += &line(x(cost), TOP, x(cost), TOP + HEIGHT, "rule");
        shapes += &text(x(cost), TOP + HEIGHT + 16.0, "middle", "soft", &(axis.written)(cost));
    }
    let mut ahead: Vec<&FrontPoint> = points.iter().filter(|point| point.on_front).collect();
    let gain = |point: &FrontPoint| axis.better.gain(point.value);
    ahead.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(gain(a).total_cmp(&gain(b))));
    for pair in ahead.windows(2) {
        if let [from, to] = pair {
            // a step: what costs less than the next is no better than this one
            shapes += &line(x(from.cost), y(from.value), x(to.cost), y(from.value), "path s0");
            shapes += &line(x(to.cost), y(from.value), x(to.cost), y(to.value), "path s0");
        }
    }
    for (i, point) in points.iter().enumerate() {
        if let Some((low, high)) = point.interval {
            shapes += &line(x(point.cost), y(low), x(point.cost), y(high), "whisker");
        }
        shapes += &circle(x(point.cost), y(point.value), 5.0, if point.on_front { "f0" } else { "open" });
        shapes += &text(x(point.cost) + 9.0, y(point.value) - 6.0, "start", "strong", &short(&point.mark, 8));
        let cost = (axis.written)(point.cost);
        let words = format!("{}: {} at {cost}, {}", point.mark, percent(point.value), point.label);
        shapes += &text(LEFT + WIDTH + 16.0, TOP + 12.0 + ROW * i as f64, "start", "", &short(&words, 60));
    }
    let height = (TOP + HEIGHT + 28.0).max(TOP + ROW * points.len() as f64 + 12.0);
    let title = [axis.title, words::direction(axis.better)].concat();
    let svg = figure(LEFT + WIDTH + 16.0 + LEGEND, height, &title, &shapes);
    Some(Plot { file_name: axis.file_name, title, svg })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::usd;

    const AXIS: FrontAxis<'_> =
        FrontAxis { file_name: "front.svg", title: "score against dollars", better: Better::Higher, written: usd };

    fn point(mark: &str, value: f64, cost: f64, on_front: bool) -> FrontPoint {
        let (mark, label) = (mark.to_owned(), format!("system {mark}"));
        FrontPoint { mark, label, value, interval: Some((value - 0.05, value + 0.05)), cost, on_front }
    }

    #[test]
    fn each_point_stands_at_its_cost_and_those_ahead_are_joined() {
        let points = [point("1", 0.6, 1.0, true), point("2", 0.8, 4.0, true), point("3", 0.55, 2.0, false)];
        let plot = front_plot(AXIS, &points).expect("there is something to draw");
        for point in &points {
            assert!(plot.svg.contains(&point.label) && plot.svg.contains(&usd(point.cost)), "{}", plot.svg);
        }
        // two on the front, joined by one step of two lines; the other one is open
        let lines = |class: &str| plot.svg.matches(class).count();
        assert_eq!((lines("class=\"f0\""), lines("class=\"path s0\""), lines("class=\"open\"")), (2, 2, 1));
        // the dearest stands at the right end, the better of two above the other
        let places: Vec<(f64, f64)> = plot.svg.split("<circle ").skip(1).map(place).collect();
        let (cheap, dear) = (places[0], places[1]);
        assert!(dear.0 > cheap.0 && dear.1 < cheap.1, "{cheap:?} {dear:?}");
        assert!((dear.0 - (LEFT + WIDTH - MARGIN)).abs() < 0.1, "{dear:?}");
    }

    #[test]
    fn where_lower_is_better_the_path_falls_from_the_cheapest_to_the_best() {
        let points = [point("1", 0.4, 1.0, true), point("2", 0.1, 4.0, true), point("3", 0.5, 2.0, false)];
        let plot =
            front_plot(FrontAxis { better: Better::Lower, ..AXIS }, &points).expect("there is something to draw");
        assert_eq!(plot.title, "score against dollars (lower is better)");
        assert!(plot.svg.contains("(lower is better)"), "{}", plot.svg);
        let places: Vec<(f64, f64)> = plot.svg.split("<circle ").skip(1).map(place).collect();
        let (cheap, dear) = (places[0], places[1]);
        assert!(cheap.0 < dear.0 && cheap.1 < dear.1, "{cheap:?} {dear:?}");
        assert_eq!(plot.svg.matches("class=\"path s0\"").count(), 2);
    }

    /// Where a circle stands.
    fn place(circle: &str) -> (f64, f64) {
        let number = |name: &str| {
            let (_, rest) = circle.split_once(&format!("{name}=\"")).expect("has it");
            rest.split('"').next().and_then(|text| text.parse::<f64>().ok()).expect("a number")
        };
        (number("cx"), number("cy"))
    }

    #[test]
    fn what_costs_nothing_or_stands_alone_is_not_drawn() {
        assert_eq!(front_plot(AXIS, &[point("1", 0.5, 1.0, true)]), None);
        assert_eq!(front_plot(AXIS, &[point("1", 0.5, 0.0, true), point("2", 0.6, 0.0, true)]), None);
    }
}
