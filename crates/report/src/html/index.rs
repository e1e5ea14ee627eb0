//! The page of the runs of a store: a table that is filtered and sorted, with links to the runs' own pages. A group is a line that
//! opens.

use std::collections::BTreeSet;

use askama::Template;
use bench_proto::{
    ids::short_id,
    summary::{Interval, Verdict},
};

use super::page::STYLE;
use crate::{
    error::RenderError,
    figures::{interval, percent, usd},
};

/// A run as the page shows it.
#[derive(Debug, Clone, Default)]
pub struct IndexedRun {
    /// Public id.
    pub id: String,
    /// Name given by the user.
    pub name: Option<String>,
    /// Name of the dataset.
    pub dataset: String,
    /// Sample preset.
    pub preset: String,
    /// Name of the memory system.
    pub system: String,
    /// Who answers.
    pub answerer: String,
    /// How it stands, in a word.
    pub status: String,
    /// Whether it may be used; none where there is no report yet.
    pub verdict: Option<Verdict>,
    /// Its figure, as a fraction; none where no question has one.
    pub score: Option<f64>,
    /// What the figure measures, and by whose counting where that is not ours.
    pub metric: String,
    /// The interval of the figure.
    pub ci95: Option<Interval>,
    /// Its model judges.
    pub judges: Vec<String>,
    /// What it cost, in dollars.
    pub usd: f64,
    /// Whether its memory system may have spent more, of which nobody knows.
    pub usd_incomplete: bool,
    /// When it was created, in UTC: `2026-11-25T16:48:46Z`.
    pub created: String,
    /// What it was made from, where it is a fork or an import; else empty.
    pub source: String,
    /// Words by which people find it.
    pub tags: Vec<String>,
    /// What is marked beside its result, such as that its answerer was a simulated one.
    pub labels: Vec<String>,
    /// Where its own page lies, as a link of this page; none where there is no page.
    pub page: Option<String>,
}

/// A line of the page: a run, or a group with its runs.
#[derive(Debug, Clone, Default)]
pub struct IndexedLine {
    /// The run; of a group what its runs have in common or come to, with the group's id, name and page.
    pub told: IndexedRun,
    /// How many runs the group has: `5 repeats`; none for a run that stands for itself.
    pub count: Option<String>,
    /// The runs of the group, the newest first.
    pub runs: Vec<IndexedRun>,
}

impl IndexedLine {
    /// A run that stands for itself.
    #[must_use]
    pub fn of_run(run: IndexedRun) -> Self {
        Self { told: run, ..Self::default() }
    }

    /// The runs that are counted, searched and chosen from.
    fn all(&self) -> &[IndexedRun] {
        match self.count {
            Some(_) => &self.runs,
            None => std::slice::from_ref(&self.told),
        }
    }
}

/// Columns of the table, and whether they are written to the right.
const COLUMNS: [(&str, bool); 15] = [
    ("run", false),
    ("dataset", false),
    ("preset", false),
    ("system", false),
    ("answerer", false),
    ("status", false),
    ("verdict", false),
    ("score", true),
    ("95 %", true),
    ("judge", false),
    ("cost", true),
    ("created, UTC", false),
    ("source", false),
    ("tags", false),
    ("labels", false),
];

/// What it does.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(function () {\n",
    include_str!("script/elements.js"),
    include_str!("script/theme.js"),
    include_str!("script/runs.js"),
    "})();\n",
);

/// A choice of the filter: column, what stands for all of them, the values.
type Choice = (usize, &'static str, BTreeSet<String>);

/// A cell: what it is sorted by, what is shown, whether it is written to the right.
type Cell = (String, String, bool);

struct Row {
    /// All of its id: its name and the end of that stand in the row.
    id: String,
    name: String,
    page: Option<String>,
    cells: Vec<Cell>,
}

struct Line {
    row: Row,
    /// How many runs a group has, and their rows.
    opens: Option<(String, Vec<Row>)>,
}

#[derive(Template)]
#[template(path = "index.html")]
struct View<'a> {
    title: String,
    store: &'a str,
    made: &'a str,
    choices: Vec<Choice>,
    columns: &'static [(&'static str, bool)],
    lines: Vec<Line>,
    style: &'static str,
    script: &'static str,
}

/// The page: one file that needs no network. `store` says whose runs these are, `made` when it was made; lines stand in their
/// order until they are sorted.
///
/// # Errors
/// Never for text.
pub fn index(store: &str, made: &str, lines: &[IndexedLine]) -> Result<String, RenderError> {
    let runs: Vec<&IndexedRun> = lines.iter().flat_map(IndexedLine::all).collect();
    let values = |of: fn(&IndexedRun) -> &str| runs.iter().map(|run| of(run).to_owned()).collect();
    let choices = vec![
        (1, "all datasets", values(|run| &run.dataset)),
        (2, "all presets", values(|run| &run.preset)),
        (3, "all systems", values(|run| &run.system)),
        (6, "all verdicts", values(verdict)),
    ];
    let view = View {
        title: format!("{} runs", runs.len()),
        store,
        made,
        choices,
        columns: &COLUMNS,
        lines: lines.iter().map(Line::from_indexed).collect(),
        style: STYLE,
        script: SCRIPT,
    };
    let mut html = view.render()?;
    html.push('\n');
    Ok(html)
}

/// `answer of ID`, with the end of an id that was drawn.
fn shortened(source: &str) -> String {
    let Some((phase, id)) = source.split_once(" of ") else { return source.to_owned() };
    format!("{phase} of {}", short_id(id))
}

fn verdict(run: &IndexedRun) -> &str {
    run.verdict.map_or("–", Verdict::name)
}

impl Line {
    fn from_indexed(line: &IndexedLine) -> Self {
        let opens = line.count.clone().map(|count| (count, line.runs.iter().map(Row::from_run).collect()));
        Self { row: Row::from_run(&line.told), opens }
    }
}

impl Row {
    fn from_run(run: &IndexedRun) -> Self {
        let text = |text: &str| (text.to_owned(), text.to_owned(), false);
        // what has no figure stands below what has one
        let number = |value: Option<f64>| value.map_or_else(|| "-1".to_owned(), |value| value.to_string());
        let score = run.score.map_or_else(|| "–".to_owned(), |score| format!("{} {}", percent(score), run.metric));
        let (judges, low) = (run.judges.join(", "), run.ci95.as_ref().map(|interval| interval.low));
        let cost = format!("{}{}", usd(run.usd), if run.usd_incomplete { " + unknown" } else { "" });
        let created = run.created.get(..16).unwrap_or(&run.created).replace('T', " ");
        let cells = vec![
            text(&run.dataset),
            text(&run.preset),
            text(&run.system),
            text(&run.answerer),
            text(&run.status),
            text(verdict(run)),
            (number(run.score), score, true),
            (number(low), interval(run.ci95.as_ref()), true),
            (judges.clone(), if judges.is_empty() { "–".to_owned() } else { judges }, false),
            (number(Some(run.usd)), cost, true),
            (run.created.clone(), created, false),
            text(&shortened(&run.source)),
            text(&run.tags.join(", ")),
            text(&run.labels.join(", ")),
        ];
        let short = short_id(&run.id);
        let name = run.name.as_ref().map_or_else(|| short.to_owned(), |name| format!("{name} ({short})"));
        Self { id: run.id.clone(), name, page: run.page.clone(), cells }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_row_and_nothing_of_it_is_markup() {
        let nasty = "<img src=x onerror=alert(1)>\u{202e}\"'";
        let run = IndexedRun {
            id: "r1".to_owned(),
            name: Some(nasty.to_owned()),
            dataset: nasty.to_owned(),
            system: nasty.to_owned(),
            score: Some(0.625),
            metric: "locomo-f1".to_owned(),
            ci95: Some(Interval { low: 0.5, high: 0.75, method: "t".to_owned() }),
            verdict: Some(Verdict::Valid),
            judges: vec!["openai:a".to_owned(), "openai:b".to_owned()],
            usd: 0.0123,
            usd_incomplete: true,
            created: "2026-11-25T16:48:46Z".to_owned(),
            source: "answer of 01a228da-aaaa-7bbb-8ccc-0123456789ab".to_owned(),
            tags: vec!["team-a".to_owned(), nasty.to_owned()],
            labels: vec!["simulated answerer".to_owned()],
            page: Some("r1/report.html".to_owned()),
            ..IndexedRun::default()
        };
        let plain = IndexedRun { id: "r2".to_owned(), ..IndexedRun::default() };
        let html = index(nasty, "now", &[run, plain].map(IndexedLine::of_run)).expect("renders");
        assert!(!html.contains("<img") && !html.contains('\u{202e}'), "{html}");
        for words in [
            "2 runs",
            "62.50 % locomo-f1",
            "50.0 to 75.0",
            "VALID",
            "openai:a, openai:b",
            "$0.0123 + unknown",
            "2026-11-25 16:48",
            ">answer of 0123456789ab<",
            "team-a, ",
            "simulated answerer",
        ] {
            assert!(html.contains(words), "'{words}' is missing:\n{html}");
        }
        assert_eq!((html.matches("<a href=\"r1/report.html\">").count(), html.matches("<a ").count()), (1, 1));
    }

    #[test]
    fn a_row_is_short_and_has_all_of_the_id_for_who_points_at_it() {
        let drawn = "01a228da-aaaa-7bbb-8ccc-0123456789ab";
        let named = IndexedRun { id: drawn.to_owned(), name: Some("nightly".to_owned()), ..IndexedRun::default() };
        let unnamed = IndexedRun { id: drawn.to_owned(), ..IndexedRun::default() };
        let html = index("s", "now", &[named, unnamed].map(IndexedLine::of_run)).expect("renders");
        assert!(html.contains(">nightly (0123456789ab)<") && html.contains(">0123456789ab<"), "{html}");
        assert_eq!(html.matches(&format!("title=\"{drawn}\"")).count(), 2, "{html}");
    }

    #[test]
    fn a_group_is_a_line_with_its_runs_behind_it_and_what_is_chosen_from_are_runs() {
        let nasty = "\"><img src=x onerror=alert(1)>";
        let run = |id: &str, system: &str| IndexedRun {
            id: id.to_owned(),
            system: system.to_owned(),
            page: Some(format!("{id}/report.html")),
            ..IndexedRun::default()
        };
        let told = IndexedRun { score: Some(0.5), metric: "f1, mean of 2".to_owned(), ..run(nasty, "2 systems") };
        let line = IndexedLine {
            told,
            count: Some("2 repeats".to_owned()),
            runs: vec![run("g-r2", "bm25"), run("g-r1", "none")],
        };
        let html = index("s", "now", &[line, IndexedLine::of_run(run("alone", "random"))]).expect("renders");
        assert!(html.contains("<h1>3 runs</h1>") && html.contains("50.00 % f1, mean of 2"), "{html}");
        assert_eq!((html.matches("<tbody").count(), html.matches("<a href").count()), (3, 4), "{html}");
        assert!(html.contains("aria-controls=\"runs-1\"") && html.contains("<tbody id=\"runs-1\""), "{html}");
        for (system, is_chosen) in [("bm25", true), ("none", true), ("random", true), ("2 systems", false)] {
            assert_eq!(html.contains(&format!("<option value=\"{system}\">")), is_chosen, "{system}: {html}");
        }
        assert!(!html.contains("<img"), "{html}");
    }
}
