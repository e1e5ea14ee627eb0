//! `report.csv`: one row per metric and scope, fit to be put below those of other runs.

use bench_proto::{
    counting::CountingSummary,
    summary::{Interval, MetricScore, Summary},
    text::plain,
};

use crate::error::RenderError;

const HEADER: [&str; 21] = [
    "run_id",
    "dataset",
    "preset",
    "system",
    "answerer",
    "judge",
    "metric",
    "scope",
    "n",
    "population",
    "clusters",
    "value",
    "ci95_low",
    "ci95_high",
    "naive_low",
    "naive_high",
    "benchmark_low",
    "benchmark_high",
    "strict",
    "coverage",
    "counted_as",
];

/// One row of figures; what was not computed is an empty cell.
#[derive(Default)]
struct Row<'a> {
    metric: &'a str,
    scope: String,
    n: u64,
    population: Option<u64>,
    clusters: Option<u64>,
    value: Option<f64>,
    ci95: Option<&'a Interval>,
    naive: Option<&'a Interval>,
    benchmark: Option<&'a Interval>,
    strict: Option<f64>,
    coverage: Option<f64>,
}

/// What becomes of cells that a spreadsheet would compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells {
    /// They begin with `'`, which makes them text; what would drive a terminal is taken out.
    Harmless,
    /// Cells stay as they are.
    Raw,
}

impl Cells {
    /// A text as a cell. Numbers stay numbers.
    pub(crate) fn cell(self, text: String) -> String {
        const BEGINNINGS: [char; 10] = ['=', '+', '-', '@', '\t', '\n', '＝', '＋', '－', '＠'];
        if self == Self::Raw {
            return text;
        }
        let text = plain(&text).into_owned();
        let is_number = || text.parse::<f64>().is_ok_and(f64::is_finite);
        if text.trim_start_matches(' ').starts_with(BEGINNINGS) && !is_number() { format!("'{text}") } else { text }
    }
}

/// All scores as CSV with a header. Scopes are `headline`, further totals such as `without_adversarial`, `micro`, `macro`,
/// `weighted`, `figure:<name>`, `category:<name>` and `facet:<name>=<value>`; values are fractions, unrounded.
///
/// # Errors
/// Never for writing to memory.
pub fn render(summary: &Summary) -> Result<String, RenderError> {
    render_cells(summary, Cells::Harmless)
}

/// A report as CSV, with a choice of what cells may hold.
///
/// # Errors
/// As [`render`].
pub fn render_cells(summary: &Summary, cells: Cells) -> Result<String, RenderError> {
    let failed = |error: &dyn std::fmt::Display| RenderError::Csv(error.to_string());
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(HEADER).map_err(|e| failed(&e))?;
    for row in rows(summary) {
        out.write_record(record(summary, &row).map(|text| cells.cell(text))).map_err(|e| failed(&e))?;
    }
    let bytes = out.into_inner().map_err(|e| failed(&e))?;
    String::from_utf8(bytes).map_err(|e| failed(&e))
}

fn rows(summary: &Summary) -> Vec<Row<'_>> {
    let headline = &summary.headline;
    let mut rows = vec![Row {
        metric: &headline.metric,
        scope: "headline".to_owned(),
        n: headline.n,
        population: headline.population,
        clusters: Some(headline.clusters),
        value: headline.value,
        ci95: headline.ci95.as_ref(),
        naive: headline.naive_ci95.as_ref(),
        benchmark: headline.benchmark_ci95.as_ref(),
        strict: headline.strict,
        coverage: summary.outcomes.coverage,
    }];
    rows.extend(summary.counting.iter().flat_map(counted_rows));
    rows.extend(summary.all_totals().into_iter().map(|(part, total)| Row {
        metric: &total.metric,
        scope: part.word(),
        n: total.n,
        population: total.population,
        clusters: Some(total.clusters),
        value: total.value,
        ci95: total.ci95.as_ref(),
        naive: total.naive_ci95.as_ref(),
        benchmark: total.benchmark_ci95.as_ref(),
        strict: total.strict,
        coverage: None,
    }));
    rows.extend(summary.figures.iter().map(|figure| Row {
        metric: &headline.metric,
        scope: format!("figure:{}", figure.name),
        n: figure.n,
        value: figure.value,
        ..Row::default()
    }));
    rows.extend(summary.scores.iter().flat_map(metric_rows));
    rows
}

/// The figures by somebody else's counting.
fn counted_rows(counted: &CountingSummary) -> impl Iterator<Item = Row<'_>> {
    let metric = &counted.counting.metric;
    let row = move |scope: String, value, n| Row { metric, scope, n, value, ..Row::default() };
    let total = row(format!("counted:{}", counted.counting.name), counted.value, counted.n);
    let categories = counted.by_category.iter();
    std::iter::once(total)
        .chain(categories.map(move |of| row(format!("counted-category:{}", of.category), of.value, of.n)))
}

fn metric_rows(score: &MetricScore) -> impl Iterator<Item = Row<'_>> {
    let totals = [("micro", score.micro), ("macro", score.macro_), ("weighted", score.weighted)];
    let totals = totals.map(|(scope, value)| Row {
        metric: &score.metric,
        scope: scope.to_owned(),
        n: score.n,
        value,
        ..Row::default()
    });
    let categories = score.by_category.iter().map(|category| Row {
        metric: &score.metric,
        scope: format!("category:{}", category.category),
        n: category.n,
        population: category.population,
        clusters: Some(category.clusters),
        value: category.value,
        ci95: category.ci95.as_ref(),
        naive: category.naive_ci95.as_ref(),
        ..Row::default()
    });
    let facets = score.by_facet.iter().flat_map(|(facet, values)| values.iter().map(move |value| (facet, value)));
    let facets = facets.map(|(facet, (value, of_value))| Row {
        metric: &score.metric,
        scope: format!("facet:{facet}={value}"),
        n: of_value.n,
        clusters: Some(of_value.clusters),
        value: of_value.value,
        ci95: of_value.ci95.as_ref(),
        naive: of_value.naive_ci95.as_ref(),
        ..Row::default()
    });
    totals.into_iter().chain(categories).chain(facets)
}

fn record(summary: &Summary, row: &Row<'_>) -> [String; HEADER.len()] {
    let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    let whole = |value: Option<u64>| value.map(|v| v.to_string()).unwrap_or_default();
    let low = |interval: Option<&Interval>| number(interval.map(|i| i.low));
    let high = |interval: Option<&Interval>| number(interval.map(|i| i.high));
    [
        summary.run.id.clone(),
        summary.dataset.name.clone(),
        summary.dataset.sample.preset.clone(),
        summary.spec.system.clone(),
        summary.spec.answerer.clone(),
        summary.spec.judge.clone().unwrap_or_default(),
        row.metric.to_owned(),
        row.scope.clone(),
        row.n.to_string(),
        whole(row.population),
        whole(row.clusters),
        number(row.value),
        low(row.ci95),
        high(row.ci95),
        low(row.naive),
        high(row.naive),
        low(row.benchmark),
        high(row.benchmark),
        number(row.strict),
        number(row.coverage),
        summary.counting.as_ref().map(|counted| counted.counting.name.clone()).unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_text_unless_raw_cells_are_asked_for() {
        for formula in ["=HYPERLINK(\"http://x\")", "+1+1", "-2+3", "@SUM(A1)", " =1+1", "\t=1+1", "＝1+1"] {
            assert_eq!(Cells::Harmless.cell(formula.to_owned()), format!("'{}", plain(formula)), "{formula}");
            assert_eq!(Cells::Raw.cell(formula.to_owned()), formula);
        }
        for text in ["-5", "+0.5", "1e-3", "an answer", "a=b", ""] {
            assert_eq!(Cells::Harmless.cell(text.to_owned()), text);
        }
        assert_eq!(Cells::Harmless.cell("a\u{1b}]0;x\u{7}\nb".to_owned()), "a ]0;x \nb");
    }
}
