//! Paired differences with their intervals, a line for each.

use bench_proto::comparison::{Comparison, PairedDifference, Word};

use super::{circle, figure, line, rect, short, text, with_style};

const LEFT: f64 = 220.0;
const WIDTH: f64 = 400.0;
const ROW: f64 = 26.0;

/// The forest plot of a comparison (overall and categories), or of all pairs of several runs; stands alone.
#[must_use]
pub fn forest(pairs: &[Comparison]) -> String {
    with_style(&forest_plain(pairs))
}

/// The same without colours, for pages that bring their own.
#[must_use]
pub fn forest_plain(pairs: &[Comparison]) -> String {
    let rows: Vec<(String, &PairedDifference)> = match pairs {
        [one] => std::iter::once(("all".to_owned(), &one.paired))
            .chain(one.by_category.iter().map(|c| (c.category.clone(), &c.paired)))
            .chain(one.retrieval.iter().map(|r| (format!("{} {}@{}", r.level, r.metric, r.k), &r.paired)))
            .collect(),
        pairs => {
            pairs.iter().map(|c| (format!("{} − {}", short(&c.b.id, 14), short(&c.a.id, 14)), &c.paired)).collect()
        }
    };
    let reach = rows
        .iter()
        .filter_map(|(_, paired)| paired.ci95.as_ref())
        .map(|i| i.low.abs().max(i.high.abs()))
        .fold(0.05, f64::max);
    // whole steps of five points
    let reach = (reach * 20.0).ceil() / 20.0;
    let at = |difference: f64| LEFT + WIDTH / 2.0 * (1.0 + (difference / reach).clamp(-1.0, 1.0));
    let bottom = 14.0 + ROW * rows.len() as f64;
    let tolerance = rows.first().map_or(0.0, |(_, paired)| paired.tolerance);
    let mut shapes = rect(at(-tolerance), 8.0, at(tolerance) - at(-tolerance), bottom - 8.0, "band");
    for step in -2..=2 {
        let difference = reach * f64::from(step) / 2.0;
        let class = if step == 0 { "zero" } else { "rule" };
        shapes += &line(at(difference), 8.0, at(difference), bottom, class);
        shapes += &text(at(difference), bottom + 16.0, "middle", "soft", &format!("{:+.1}", difference * 100.0));
    }
    for (i, (name, paired)) in rows.iter().enumerate() {
        let y = 14.0 + ROW * i as f64 + 12.0;
        shapes += &text(LEFT - 8.0, y + 4.0, "end", "", &short(name, 34));
        if let Some(i) = &paired.ci95 {
            shapes += &line(at(i.low), y, at(i.high), y, "whisker");
        }
        if let Some(difference) = paired.difference {
            let class = match paired.verdict {
                Word::Better => "good",
                Word::Worse => "bad",
                Word::NoChange | Word::Inconclusive => "dot",
            };
            shapes += &circle(at(difference), y, 5.0, class);
        }
        shapes += &text(LEFT + WIDTH + 10.0, y + 4.0, "start", "", paired.verdict.name());
    }
    let title = "paired differences in points with clustered 95 % intervals; band: tolerance";
    figure(LEFT + WIDTH + 120.0, bottom + 26.0, title, &shapes)
}
