//! Latency by share of the operations, on a logarithmic scale: of the run under its load, a curve for each phase; and of the latency
//! probe, a curve for each pass. By rate or by size of banks, of a load.

use bench_proto::summary::Summary;

use super::{Plot, circle, figure, line, text};
use crate::figures::ms;

const LEFT: f64 = 60.0;
const WIDTH: f64 = 480.0;
const TOP: f64 = 12.0;
const HEIGHT: f64 = 220.0;

/// Percentiles of the probe's curves, as aggregation makes them.
const PROBED: [f64; 13] = [0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.9, 100.0];

/// Points that are marked: of more, the line is enough.
const MOST_MARKED: usize = 40;

/// A curve of latencies.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What stands beside it.
    pub name: String,
    /// Where it goes, from left to right: a number of the axis below, and milliseconds.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    fn new(name: impl Into<String>, percents: &[f64], values: &[f64]) -> Option<Self> {
        let points = percents.iter().copied().zip(values.iter().copied()).collect();
        (percents.len() == values.len()).then(|| Self { name: name.into(), points })
    }
}

/// The axis below: the numbers at its ends, and those that are written.
struct Axis {
    ends: (f64, f64),
    marks: Vec<(f64, String)>,
    /// Each point was measured at its own number.
    is_counted: bool,
}

impl Axis {
    fn of_percents() -> Self {
        let mark = |percent: i32| (f64::from(percent), format!("{percent} %"));
        Self { ends: (0.0, 100.0), marks: [0, 25, 50, 75, 95].map(mark).to_vec(), is_counted: false }
    }

    /// From nothing to at least the largest number of some curves, in at most six round steps.
    fn up_to(largest: f64) -> Self {
        let decade = 10_f64.powf(largest.max(1e-3).log10().floor() - 1.0);
        let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0].map(|step| step * decade);
        let step = steps.into_iter().find(|step| largest <= step * 6.0).unwrap_or(100.0 * decade);
        let n = (largest / step).ceil().max(1.0);
        let mark = |at: u32| (f64::from(at) * step, number(f64::from(at) * step));
        Self { ends: (0.0, n * step), marks: (0..=n as u32).map(mark).collect(), is_counted: true }
    }
}

/// A round number without needless digits.
fn number(number: f64) -> String {
    let written = format!("{number:.4}");
    written.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn plot(summary: &Summary) -> Option<Plot> {
    let curves = summary.latency_curves.as_ref()?;
    let named = curves.phases.iter().filter_map(|(phase, values)| Curve::new(phase, &curves.percents, values));
    let title = "latency under load in milliseconds by share of the questions, waits for rate limits included";
    picture("latency.svg", title, &Axis::of_percents(), named.take(4).collect())
}

pub(super) fn probe(summary: &Summary) -> Option<Plot> {
    let probe = summary.latency_probe.as_ref()?;
    let at_rates = probe.at_rates.iter().map(|at| (format!("{} a second", at.rate), at.curve.as_slice()));
    let all = std::iter::once(("one at a time".to_owned(), probe.curve.as_slice())).chain(at_rates);
    let named = all.filter_map(|(name, values)| Curve::new(name, &PROBED, values));
    let title = "latency probe in milliseconds by share of the recalls";
    picture("latency-probe.svg", title, &Axis::of_percents(), named.take(4).collect())
}

/// Latencies by something that is counted from nothing, on a logarithmic scale; the first four curves that have points.
#[must_use]
pub fn latency_plot(file_name: &'static str, title: &str, curves: &[Curve]) -> Option<Plot> {
    let curves: Vec<Curve> = curves.iter().filter(|curve| !curve.points.is_empty()).take(4).cloned().collect();
    let largest = curves.iter().flat_map(|curve| &curve.points).map(|(x, _)| *x).fold(0.0, f64::max);
    picture(file_name, title, &Axis::up_to(largest), curves)
}

fn picture(file_name: &'static str, title: &str, axis: &Axis, curves: Vec<Curve>) -> Option<Plot> {
    let all = || curves.iter().flat_map(|curve| &curve.points).map(|(_, ms)| *ms).filter(|ms| *ms > 0.0);
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if high <= 0.0 {
        return None;
    }
    let (low, high) = (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0));
    let x = |at: f64| LEFT + WIDTH * (at - axis.ends.0) / (axis.ends.1 - axis.ends.0);
    let y = |ms: f64| TOP + HEIGHT * (1.0 - (ms.max(10_f64.powf(low)).log10() - low) / (high - low));
    let mut shapes = String::new();
    for decade in low as i32..=high as i32 {
        let value = 10_f64.powi(decade);
        shapes += &line(LEFT, y(value), LEFT + WIDTH, y(value), "rule");
        shapes += &text(LEFT - 6.0, y(value) + 4.0, "end", "soft", &ms(value));
    }
    for (at, words) in &axis.marks {
        let at = x(*at);
        shapes += &line(at, TOP, at, TOP + HEIGHT, "rule");
        shapes += &text(at, TOP + HEIGHT + 16.0, "middle", "soft", words);
    }
    for (number, Curve { name, points }) in curves.into_iter().enumerate() {
        let places: Vec<String> = points.iter().map(|(at, ms)| format!("{:.1},{:.1}", x(*at), y(*ms))).collect();
        shapes += &format!("<polyline points=\"{}\" class=\"path s{number}\"/>", places.join(" "));
        if axis.is_counted && points.len() <= MOST_MARKED {
            shapes +=
                &points.iter().map(|(at, ms)| circle(x(*at), y(*ms), 3.0, &format!("f{number}"))).collect::<String>();
        }
        let at = TOP + 14.0 + 18.0 * number as f64;
        shapes += &line(LEFT + WIDTH + 12.0, at - 4.0, LEFT + WIDTH + 32.0, at - 4.0, &format!("path s{number}"));
        shapes += &text(LEFT + WIDTH + 38.0, at, "start", "", &name);
    }
    let width = LEFT + WIDTH + if axis.is_counted { 240.0 } else { 120.0 };
    let svg = figure(width, TOP + HEIGHT + 26.0, title, &shapes);
    Some(Plot { file_name, title: title.to_owned(), svg })
}
