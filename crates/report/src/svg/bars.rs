//! Scores of categories as bars from 0 to 100 %, with the clustered interval over the naive one.

use bench_proto::summary::{Interval, Summary};

use super::{Plot, figure, line, rect, short, text};
use crate::figures::{count, percent_or_none};

const LEFT: f64 = 150.0;
const WIDTH: f64 = 400.0;
const ROW: f64 = 30.0;

pub(super) fn plot(summary: &Summary) -> Option<Plot> {
    let score = summary.scores.first()?;
    let headline = &summary.headline;
    let all = ("all", headline.value, headline.ci95.as_ref(), headline.naive_ci95.as_ref(), headline.n);
    let categories =
        score.by_category.iter().map(|c| (c.category.as_str(), c.value, c.ci95.as_ref(), c.naive_ci95.as_ref(), c.n));
    let controls = summary.controls.iter().filter(|control| control.metric == headline.metric);
    let names: Vec<(String, Option<f64>, u64)> =
        controls.map(|control| (format!("control: {}", control.name), control.value, control.n)).collect();
    let controls = names.iter().map(|(name, value, n)| (name.as_str(), *value, None, None, *n));
    let rows: Vec<_> = std::iter::once(all).chain(categories).chain(controls).collect();
    let mut shapes = String::new();
    let bottom = 14.0 + ROW * rows.len() as f64;
    for step in 0..=4 {
        let x = LEFT + WIDTH * f64::from(step) / 4.0;
        shapes += &line(x, 8.0, x, bottom, "rule");
        shapes += &text(x, bottom + 16.0, "middle", "soft", &format!("{} %", step * 25));
    }
    let at = |fraction: f64| LEFT + WIDTH * fraction.clamp(0.0, 1.0);
    for (i, (name, value, ci95, naive, n)) in rows.into_iter().enumerate() {
        let y = 14.0 + ROW * i as f64;
        let (bar, word) = match i {
            0 => ("bar", "strong"),
            _ if name.starts_with("control: ") => ("bar control", "soft"),
            _ => ("bar part", ""),
        };
        shapes += &text(LEFT - 8.0, y + 16.0, "end", word, &short(name, 22));
        shapes += &rect(LEFT, y + 3.0, WIDTH * value.unwrap_or(0.0).clamp(0.0, 1.0), 18.0, bar);
        let span = |i: &Interval, class: &str| line(at(i.low), y + 12.0, at(i.high), y + 12.0, class);
        shapes += &naive.map(|i| span(i, "thin")).unwrap_or_default();
        if let Some(i) = ci95 {
            shapes += &span(i, "whisker");
            shapes += &line(at(i.low), y + 7.0, at(i.low), y + 17.0, "whisker");
            shapes += &line(at(i.high), y + 7.0, at(i.high), y + 17.0, "whisker");
        }
        shapes += &text(LEFT + WIDTH + 64.0, y + 16.0, "end", word, &percent_or_none(value));
        shapes += &text(LEFT + WIDTH + 74.0, y + 16.0, "start", "soft", &format!("n {}", count(n)));
    }
    let title =
        format!("{} by category, with 95 % intervals (line: clustered by conversation, band: naive)", headline.metric);
    let svg = figure(LEFT + WIDTH + 130.0, bottom + 26.0, &title, &shapes);
    Some(Plot { file_name: "categories.svg", title, svg })
}
