//! Plots as SVG: the same pictures stand in `report.html` and beside it as files.
//!
//! | module | plot |
//! |---|---|
//! | `bars` | scores of categories with their intervals |
//! | `forest` | paired differences with their intervals |
//! | `curves` | the latency probe, and latency under load, by share of the operations; latency by rate or size |
//! | `cost` | dollars and tokens by phase |
//! | `dots` | scores of several runs with their intervals |
//! | `history` | scores over time |
//! | `front` | quality against a cost, with the front of what nothing beats in both |
//!
//! A plot is text, shapes and classes; colours come from [`STYLE`] (light and dark), so that pages can bring their own.

mod bars;
mod cost;
mod curves;
mod dots;
mod forest;
mod front;
mod history;

use bench_proto::summary::{Interval, Summary};

pub use curves::{Curve, latency_plot};
pub use dots::{Dot, dots};
pub use forest::{forest, forest_plain};
pub use front::{FrontAxis, FrontPoint, front_plot};
pub use history::{HistoryPoint, history, history_plain};

use crate::escape::escape;

/// A value between 0 and 1 with its interval over the naive one, small, without words.
#[must_use]
pub fn range(value: Option<f64>, ci95: Option<&Interval>, naive: Option<&Interval>) -> String {
    const WIDTH: f64 = 300.0;
    let at = |fraction: f64| 4.0 + (WIDTH - 8.0) * fraction.clamp(0.0, 1.0);
    let span = |i: &Interval, class: &str| line(at(i.low), 12.0, at(i.high), 12.0, class);
    let mut shapes = rect(at(0.0), 10.0, WIDTH - 8.0, 4.0, "track");
    shapes += &naive.map(|i| span(i, "thin")).unwrap_or_default();
    shapes += &ci95.map(|i| span(i, "whisker wide")).unwrap_or_default();
    shapes += &value.map(|value| circle(at(value), 12.0, 6.0, "bar")).unwrap_or_default();
    for (fraction, anchor, words) in [(0.0, "start", "0 %"), (0.5, "middle", "50 %"), (1.0, "end", "100 %")] {
        shapes += &text(at(fraction), 32.0, anchor, "soft", words);
    }
    figure(WIDTH, 36.0, "the score with its 95 % interval, between 0 and 100 %", &shapes)
}

/// Colours of the plots, for a file that stands alone.
pub const STYLE: &str = "svg{--ink:#1c2530;--soft:#5d6b7a;--line:#d4dae1;--fill:#2f6f9f;--naive:#b9c6d2;--good:#20794b;--bad:#b3372f;--paper:#fff;--a:#2f6f9f;--b:#b06a1f;--c:#20794b;--d:#7b4fa3;background:var(--paper);font:12px system-ui,sans-serif}@media(prefers-color-scheme:dark){svg{--ink:#e6eaee;--soft:#9aa7b4;--line:#38424d;--fill:#6fb1e0;--naive:#4d5a67;--good:#5fc48d;--bad:#f08a80;--paper:#14191f;--a:#6fb1e0;--b:#e0a35c;--c:#5fc48d;--d:#b691d8}}text{fill:var(--ink)}.paper{fill:var(--paper)}.soft{fill:var(--soft)}.rule{stroke:var(--line)}.zero{stroke:var(--soft);stroke-dasharray:3 3}.bar{fill:var(--fill)}.band{fill:var(--line);opacity:.5}.whisker{stroke:var(--ink);stroke-width:1.5;fill:none}.thin{stroke:var(--naive);stroke-width:5;fill:none}.good{fill:var(--good)}.bad{fill:var(--bad)}.dot{fill:var(--ink)}.whisker.good{stroke:var(--good)}.whisker.bad{stroke:var(--bad)}.open{fill:var(--paper);stroke:var(--ink);stroke-width:1.5}.part{opacity:.75}.control{opacity:.35}.strong{font-weight:600}.track{fill:var(--line)}.wide{stroke-width:3}.s0{stroke:var(--a)}.s1{stroke:var(--b)}.s2{stroke:var(--c)}.s3{stroke:var(--d)}.f0{fill:var(--a)}.f1{fill:var(--b)}.f2{fill:var(--c)}.f3{fill:var(--d)}.path{fill:none;stroke-width:2}";

/// A plot: its file's name and its picture without colours.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Name of its file, without a folder.
    pub file_name: &'static str,
    /// What stands above it on a page.
    pub title: String,
    /// `<svg …>…</svg>` without a style.
    pub svg: String,
}

impl Plot {
    /// The picture as a file that stands alone.
    #[must_use]
    pub fn standalone(&self) -> String {
        with_style(&self.svg)
    }
}

/// All plots of a run that have data.
#[must_use]
pub fn plots(summary: &Summary) -> Vec<Plot> {
    [bars::plot(summary), curves::probe(summary), curves::plot(summary), cost::plot(summary)]
        .into_iter()
        .flatten()
        .collect()
}

fn with_style(svg: &str) -> String {
    let at = svg.find('>').map_or(0, |at| at + 1);
    // not all viewers paint the background of a root: dark words must not stand on a dark page
    let paper = "<rect width=\"100%\" height=\"100%\" class=\"paper\"/>";
    format!("{}<style>{STYLE}</style>{paper}{}\n", &svg[..at], &svg[at..])
}

/// Wraps shapes; the title is read out where the picture cannot be seen.
fn figure(width: f64, height: f64, title: &str, shapes: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         role=\"img\" aria-label=\"{0}\"><title>{0}</title>{shapes}</svg>",
        escape(title)
    )
}

fn text(x: f64, y: f64, anchor: &str, class: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>", escape(words))
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64, class: &str) -> String {
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>")
}

fn rect(x: f64, y: f64, width: f64, height: f64, class: &str) -> String {
    format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" class=\"{class}\"/>",
        width.max(0.0)
    )
}

fn circle(x: f64, y: f64, r: f64, class: &str) -> String {
    format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\" class=\"{class}\"/>")
}

/// Whole steps of ten points around scores and the ends of their intervals (0 to 1), at least one.
fn steps_around(scores: impl Iterator<Item = f64>) -> (f64, f64) {
    // an interval may reach beyond what scores can be; what is farther away is no score, and would be millions of steps
    let scores = scores.map(|score| score.clamp(-1.0, 2.0));
    let (low, high) = scores.fold((1.0_f64, 0.0_f64), |(low, high), score| (low.min(score), high.max(score)));
    let low = (low * 10.0).floor() / 10.0;
    (low, ((high * 10.0).ceil() / 10.0).max(low + 0.1))
}

/// A rule for each step of ten points from `low` to `high`, with its per cent to the left.
fn percent_rules((low, high): (f64, f64), (left, right): (f64, f64), y: impl Fn(f64) -> f64) -> String {
    let rule = |step: u32| {
        let score = low + f64::from(step) / 10.0;
        let name = format!("{:.0} %", score * 100.0);
        line(left, y(score), right, y(score), "rule") + &text(left - 6.0, y(score) + 4.0, "end", "soft", &name)
    };
    (0..=((high - low) * 10.0).round() as u32).map(rule).collect()
}

/// Piece of a name that fits beside a plot.
fn short(text: &str, most: usize) -> String {
    crate::figures::one_line(text, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_picture() {
        let svg = figure(10.0, 10.0, "<script>\u{1}\"", &text(0.0, 0.0, "start", "", "a<b"));
        assert!(!svg.contains("<script>") && svg.contains("&lt;script&gt; &quot;") && svg.contains("a&lt;b"));
        assert!(with_style(&svg).starts_with("<svg") && with_style(&svg).contains("><style>"));
    }

    #[test]
    fn a_picture_that_stands_alone_has_paper_and_colours_of_its_own_light_and_dark() {
        let curve =
            |n: u32| Curve { name: format!("{n} at once"), points: vec![(1.0, 2.0 + f64::from(n)), (2.0, 30.0)] };
        let curves: Vec<Curve> = (0..4).map(curve).collect();
        let alone = latency_plot("a.svg", "latency", &curves).expect("has points").standalone();
        assert!(alone.contains("<rect width=\"100%\" height=\"100%\" class=\"paper\"/>"), "{alone}");
        let (light, dark) = STYLE.split_once("@media(prefers-color-scheme:dark)").expect("has both");
        let dark = dark.split("}}").next().unwrap_or_default();
        for colour in STYLE.split("var(").skip(1).filter_map(|rest| rest.split(')').next()) {
            let set = format!("{colour}:");
            assert!(light.contains(&set) && dark.contains(&set), "{colour}");
        }
        let classes = alone.split("class=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for class in classes.flat_map(str::split_whitespace) {
            assert!(STYLE.contains(&format!(".{class}{{")), "{class} has no colour");
        }
    }
}
