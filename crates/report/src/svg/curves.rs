//! Latency by share of the operations, on a logarithmic scale: of the run under its load, a curve for each phase; and of the latency
//! probe, a curve for each pass.

use bench_proto::summary::Summary;

use super::{Plot, figure, line, text};
use crate::figures::ms;

const LEFT: f64 = 60.0;
const WIDTH: f64 = 480.0;
const TOP: f64 = 12.0;
const HEIGHT: f64 = 220.0;

/// Percentiles of the probe's curves, as aggregation makes them.
const PROBED: [f64; 13] = [0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.9, 100.0];

/// A curve: its name and its milliseconds at each percentile.
type Curve<'a> = (String, &'a [f64]);

pub(super) fn plot(summary: &Summary) -> Option<Plot> {
    let curves = summary.latency_curves.as_ref()?;
    let named = curves.phases.iter().map(|(phase, values)| (phase.clone(), values.as_slice())).collect();
    let title = "latency under load in milliseconds by share of the questions, waits for rate limits included";
    picture("latency.svg", title, &curves.percents, named)
}

pub(super) fn probe(summary: &Summary) -> Option<Plot> {
    let probe = summary.latency_probe.as_ref()?;
    let at_rates = probe.at_rates.iter().map(|at| (format!("{} a second", at.rate), at.curve.as_slice()));
    let named = std::iter::once(("one at a time".to_owned(), probe.curve.as_slice())).chain(at_rates).collect();
    picture("latency-probe.svg", "latency probe in milliseconds by share of the recalls", &PROBED, named)
}

fn picture(file_name: &'static str, title: &str, percents: &[f64], named: Vec<Curve<'_>>) -> Option<Plot> {
    let phases: Vec<Curve<'_>> =
        named.into_iter().filter(|(_, values)| values.len() == percents.len()).take(4).collect();
    let all = || phases.iter().flat_map(|(_, values)| values.iter().copied()).filter(|ms| *ms > 0.0);
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if phases.is_empty() || high <= 0.0 {
        return None;
    }
    let (low, high) = (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0));
    let x = |percent: f64| LEFT + WIDTH * percent / 100.0;
    let y = |ms: f64| TOP + HEIGHT * (1.0 - (ms.max(10_f64.powf(low)).log10() - low) / (high - low));
    let mut shapes = String::new();
    for decade in low as i32..=high as i32 {
        let value = 10_f64.powi(decade);
        shapes += &line(LEFT, y(value), LEFT + WIDTH, y(value), "rule");
        shapes += &text(LEFT - 6.0, y(value) + 4.0, "end", "soft", &ms(value));
    }
    for percent in [0, 25, 50, 75, 95] {
        let at = x(f64::from(percent));
        shapes += &line(at, TOP, at, TOP + HEIGHT, "rule");
        shapes += &text(at, TOP + HEIGHT + 16.0, "middle", "soft", &format!("{percent} %"));
    }
    for (number, (phase, values)) in phases.into_iter().enumerate() {
        let points: Vec<String> =
            percents.iter().zip(values).map(|(percent, ms)| format!("{:.1},{:.1}", x(*percent), y(*ms))).collect();
        shapes += &format!("<polyline points=\"{}\" class=\"path s{number}\"/>", points.join(" "));
        let at = TOP + 14.0 + 18.0 * number as f64;
        shapes += &line(LEFT + WIDTH + 12.0, at - 4.0, LEFT + WIDTH + 32.0, at - 4.0, &format!("path s{number}"));
        shapes += &text(LEFT + WIDTH + 38.0, at, "start", "", &phase);
    }
    let svg = figure(LEFT + WIDTH + 120.0, TOP + HEIGHT + 26.0, title, &shapes);
    Some(Plot { file_name, title: title.to_owned(), svg })
}
