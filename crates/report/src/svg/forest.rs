//! Paired differences with their intervals, a line for each.

use bench_proto::{
    comparison::{ComparedRun, Comparison, PairedDifference, Word},
    ids::short_id,
};

use super::{circle, figure, line, rect, short, text, with_style};
use crate::figures::{in_order, points};

/// Room for names, at least; and of a letter in names that want more.
const LEFT: f64 = 150.0;
const LETTER: f64 = 6.5;
const WIDTH: f64 = 380.0;
const ROW: f64 = 26.0;
/// Values of facets that are drawn; tables and the JSON have all.
const MOST_FACET_ROWS: usize = 16;
/// Characters of the name of a category, and of a run's name or id.
const LONGEST_PART: usize = 24;
const LONGEST_RUN: usize = 14;

/// The forest plot of a comparison (overall and categories), or of all pairs of several runs; stands alone.
#[must_use]
pub fn forest(pairs: &[Comparison]) -> String {
    with_style(&forest_plain(pairs))
}

/// A forest plot without colours, for pages that bring their own.
#[must_use]
pub fn forest_plain(pairs: &[Comparison]) -> String {
    let rows = rows(pairs);
    let reach = rows
        .iter()
        .filter_map(|row| row.paired.ci95.as_ref())
        .map(|i| i.low.abs().max(i.high.abs()))
        .fold(0.05, f64::max);
    let step = nice_step(reach);
    let reach = (reach / step).ceil() * step;
    let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
    let left = if longest > LONGEST_PART { LETTER * longest as f64 + 8.0 } else { LEFT };
    let at = |difference: f64| left + WIDTH / 2.0 * (1.0 + (difference / reach).clamp(-1.0, 1.0));
    let bottom = 14.0 + ROW * rows.len() as f64;
    let tolerance = rows.first().map_or(0.0, |row| row.paired.tolerance);
    let mut shapes = rect(at(-tolerance), 8.0, at(tolerance) - at(-tolerance), bottom - 8.0, "band");
    let steps = (reach / step).round() as i32;
    for number in -steps..=steps {
        let difference = step * f64::from(number);
        let class = if number == 0 { "zero" } else { "rule" };
        shapes += &line(at(difference), 8.0, at(difference), bottom, class);
        let label = if number == 0 { "0".to_owned() } else { format!("{:+.0}", difference * 100.0) };
        shapes += &text(at(difference), bottom + 16.0, "middle", "soft", &label);
    }
    shapes += &text(left - 24.0, bottom + 16.0, "end", "soft", "points");
    for (i, Row { name, paired, says }) in rows.iter().enumerate() {
        let y = 14.0 + ROW * i as f64 + 12.0;
        shapes += &text(left - 8.0, y + 4.0, "end", "", name);
        let class = match paired.verdict {
            Word::Better => "good",
            Word::Worse => "bad",
            Word::NoChange => "dot",
            Word::Inconclusive => "open",
        };
        if let Some(i) = &paired.ci95 {
            shapes += &line(at(i.low), y, at(i.high), y, &format!("whisker {class}"));
        }
        if let Some(difference) = paired.difference {
            shapes += &circle(at(difference), y, 5.0, class);
        }
        shapes += &text(left + WIDTH + 52.0, y + 4.0, "end", "", &points(paired.difference));
        shapes += &text(left + WIDTH + 62.0, y + 4.0, "start", "soft", says);
    }
    let title = "paired differences in points with clustered 95 % intervals; band: tolerance";
    figure(left + WIDTH + 160.0, bottom + 26.0, title, &shapes)
}

/// A line of the plot.
struct Row<'a> {
    name: String,
    paired: &'a PairedDifference,
    says: &'static str,
}

impl<'a> Row<'a> {
    /// Of all questions of a pair, told by the pair's word.
    fn whole(name: String, pair: &'a Comparison) -> Self {
        Self { name, paired: &pair.paired, says: pair.word() }
    }

    /// Of some of them, told by their interval.
    fn part((name, paired): (String, &'a PairedDifference)) -> Self {
        Self { name: short(&name, LONGEST_PART), paired, says: paired.verdict.name() }
    }
}

fn rows(pairs: &[Comparison]) -> Vec<Row<'_>> {
    let [one] = pairs else {
        let name = |pair: &Comparison| format!("{} − {}", name_among(&pair.b, pairs), name_among(&pair.a, pairs));
        return pairs.iter().map(|pair| Row::whole(name(pair), pair)).collect();
    };
    let categories = one.by_category.iter().map(|c| (c.category.clone(), &c.paired));
    let retrieval = one.retrieval.iter().map(|r| (format!("{} {}@{}", r.level, r.metric, r.k), &r.paired));
    let parts = categories.chain(of_facets(one)).chain(retrieval);
    std::iter::once(Row::whole("all".to_owned(), one)).chain(parts.map(Row::part)).collect()
}

/// A run's name; where another run is called the same, with what of its id tells it from that one.
fn name_among(run: &ComparedRun, pairs: &[Comparison]) -> String {
    let called = |run: &ComparedRun| short(run.called(), LONGEST_RUN);
    let (name, id) = (called(run), short_id(&run.id));
    let mut others = pairs.iter().flat_map(|pair| [&pair.a, &pair.b]).filter(|other| other.id != run.id);
    if others.any(|other| called(other) == name) { format!("{name} {}", short(id, LONGEST_RUN)) } else { name }
}

/// A row for each value of the facets that both runs have.
fn of_facets(comparison: &Comparison) -> impl Iterator<Item = (String, &PairedDifference)> {
    let values = comparison.by_facet.iter().flat_map(|(facet, values)| {
        in_order(values).into_iter().map(move |(value, paired)| (format!("{facet}={value}"), paired))
    });
    values.take(MOST_FACET_ROWS)
}

/// The distance of the rules: two to five of them on either side of nothing.
fn nice_step(reach: f64) -> f64 {
    [0.01, 0.02, 0.05, 0.1, 0.2].into_iter().find(|step| reach <= step * 5.0).unwrap_or(0.25)
}
