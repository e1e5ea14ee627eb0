//! Questions for other tools, as CSV: one row a question, a column per facet and per metric. JSON lines are [`crate::questions`].

use std::{collections::BTreeSet, io::Write};

use bench_proto::summary::{QuestionLine, SearchLine, Summary};

use crate::csv::Cells;

/// Columns that every export has, before those of facets and metrics.
pub const COLUMNS: [&str; 24] = [
    "question_id",
    "bank_id",
    "category",
    "outcome",
    "question",
    "gold",
    "answer",
    "answered_by",
    "retrieved",
    "searches",
    "evidence",
    "citations",
    "failures",
    "verdicts",
    "error",
    "recall_ms",
    "answer_ms",
    "judge_ms",
    "question_ms",
    "prompt_tokens",
    "completion_tokens",
    "usd",
    "attempts",
    "trace_id",
];

/// The columns that an export has beside [`COLUMNS`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MoreColumns {
    /// Facets, in their order.
    pub facets: Vec<String>,
    /// Metrics, in their order.
    pub metrics: Vec<String>,
}

impl MoreColumns {
    /// The columns of a run.
    #[must_use]
    pub fn from_summary(summary: &Summary) -> Self {
        // a metric that few questions have may know few of the facets
        let facets: BTreeSet<&String> = summary.scores.iter().flat_map(|score| score.by_facet.keys()).collect();
        Self {
            facets: facets.into_iter().cloned().collect(),
            metrics: summary.scores.iter().map(|score| score.metric.clone()).collect(),
        }
    }

    pub(crate) fn facet_columns(&self) -> impl Iterator<Item = String> {
        self.facets.iter().map(|facet| format!("facet:{facet}"))
    }

    pub(crate) fn metric_columns(&self) -> impl Iterator<Item = String> {
        self.metrics.iter().map(|metric| format!("score:{metric}"))
    }
}

/// A cell of an export.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Text; absent when there is none.
    Text(Option<String>),
    /// A number; absent when it was not computed.
    Number(Option<f64>),
    /// How many; never absent.
    Count(u64),
}

/// Ids or words in a cell: joined by blanks, as JSON where that would say something else.
fn list<'a>(items: impl Iterator<Item = &'a str>) -> Cell {
    let items: Vec<&str> = items.collect();
    let is_plain = |item: &&str| !item.is_empty() && !item.contains(|c: char| c.is_whitespace() || c == ';');
    let first = items.first().is_none_or(|first| !first.starts_with('['));
    Cell::Text(Some(match first && items.iter().all(is_plain) {
        true => items.join(" "),
        false => serde_json::json!(items).to_string(),
    }))
}

/// What several recalls searched for, as in `questions.jsonl`; nothing where there was one.
fn searches(made: &[SearchLine]) -> Cell {
    Cell::Text((!made.is_empty()).then(|| serde_json::to_string(made).unwrap_or_default()))
}

/// The cells of a question: [`COLUMNS`], then a value for each facet and a score for each metric.
#[must_use]
pub fn cells(line: &QuestionLine, more: &MoreColumns) -> Vec<Cell> {
    let text = |text: &str| Cell::Text(Some(text.to_owned()));
    let usage = [&line.usage.recall, &line.usage.answer, &line.usage.judge];
    let verdicts: Vec<&str> = line.judgements.iter().map(|judgement| judgement.verdict.as_str()).collect();
    let mut cells = vec![
        text(&line.question_id),
        text(&line.bank_id),
        text(&line.category),
        text(line.outcome.name()),
        text(&line.question),
        Cell::Text(line.gold.clone()),
        Cell::Text(line.answer.clone()),
        Cell::Text(line.answered_by.map(|by| by.name().to_owned())),
        list(line.retrieved.iter().map(|hit| hit.id.as_str())),
        searches(&line.searches),
        list(line.evidence.iter().map(String::as_str)),
        list(line.citations.iter().map(String::as_str)),
        list(line.failures.iter().map(String::as_str)),
        Cell::Text(Some(verdicts.join(" "))),
        Cell::Text(line.error.clone()),
        Cell::Number(line.timing_ms.recall),
        Cell::Number(line.timing_ms.answer),
        Cell::Number(line.timing_ms.judge),
        Cell::Number(Some(line.timing_ms.question)),
        Cell::Count(usage.iter().map(|usage| usage.prompt_tokens).sum()),
        Cell::Count(usage.iter().map(|usage| usage.completion_tokens).sum()),
        Cell::Number(Some(usage.iter().map(|usage| usage.usd).sum())),
        Cell::Count(u64::from(line.attempts)),
        text(&line.trace_id),
    ];
    cells.extend(more.facets.iter().map(|facet| Cell::Text(line.facets.get(facet).cloned())));
    cells.extend(more.metrics.iter().map(|metric| Cell::Number(line.scores.get(metric).copied())));
    cells
}

/// Writes questions as CSV, one after the other.
#[derive(Debug)]
pub struct CsvQuestions<W: Write> {
    out: csv::Writer<W>,
    more: MoreColumns,
    cells: Cells,
}

impl<W: Write> CsvQuestions<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn new(out: W, more: MoreColumns, cells: Cells) -> std::io::Result<Self> {
        let mut out = csv::Writer::from_writer(out);
        let names =
            COLUMNS.iter().map(|name| (*name).to_owned()).chain(more.facet_columns()).chain(more.metric_columns());
        out.write_record(names.map(|name| cells.cell(name))).map_err(std::io::Error::other)?;
        Ok(Self { out, more, cells })
    }

    /// Writes a question; what is absent is an empty cell.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn write(&mut self, line: &QuestionLine) -> std::io::Result<()> {
        let record = cells(line, &self.more).into_iter().map(|cell| match cell {
            Cell::Text(text) => self.cells.cell(text.unwrap_or_default()),
            Cell::Number(number) => number.map(|number| number.to_string()).unwrap_or_default(),
            Cell::Count(count) => count.to_string(),
        });
        self.out.write_record(record).map_err(std::io::Error::other)
    }

    /// Flushes.
    ///
    /// # Errors
    /// When `out` cannot be flushed.
    pub fn finish(mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::tests::question;

    #[test]
    fn facets_have_columns_of_their_own_where_there_are_some() {
        let mut line = question();
        line.facets.insert("abstention".to_owned(), "yes".to_owned());
        let of = |more: MoreColumns| {
            let mut out = Vec::new();
            let mut csv = CsvQuestions::new(&mut out, more, Cells::Harmless).expect("writes");
            csv.write(&line).expect("writes");
            csv.finish().expect("flushes");
            String::from_utf8(out).expect("is UTF-8")
        };
        let metrics = vec!["locomo-f1".to_owned()];
        let plain = of(MoreColumns { metrics: metrics.clone(), ..MoreColumns::default() });
        assert!(plain.lines().next().expect("a header").ends_with("trace_id,score:locomo-f1"), "{plain}");
        let facets = vec!["abstention".to_owned(), "person".to_owned()];
        let faceted = of(MoreColumns { facets, metrics });
        let header = faceted.lines().next().expect("a header");
        assert!(header.ends_with("trace_id,facet:abstention,facet:person,score:locomo-f1"), "{header}");
        assert!(faceted.trim_end().ends_with(",yes,,0"), "{faceted}");
    }

    /// Named cells of a question.
    fn by_name(line: &QuestionLine) -> std::collections::HashMap<&'static str, Cell> {
        COLUMNS.into_iter().zip(cells(line, &MoreColumns::default())).collect()
    }

    #[test]
    fn lists_of_ids_read_back_whatever_the_ids_hold() {
        let hit = |id: &str| bench_proto::summary::RetrievedLine {
            id: id.to_owned(),
            session_id: String::new(),
            score: None,
            text: String::new(),
            placed_by: None,
            level: None,
            details: std::collections::BTreeMap::new(),
        };
        for (ids, expected) in [
            (&[][..], ""),
            (&["D1:2", "D1"], "D1:2 D1"),
            (&["my note", "D1"], r#"["my note","D1"]"#),
            (&["a;b"], r#"["a;b"]"#),
            (&["[1]"], r#"["[1]"]"#),
        ] {
            let line = QuestionLine { retrieved: ids.iter().map(|id| hit(id)).collect(), ..question() };
            assert_eq!(by_name(&line)["retrieved"], Cell::Text(Some(expected.to_owned())));
        }
    }

    #[test]
    fn a_row_says_whose_the_answer_is_and_what_was_searched_for() {
        let line = QuestionLine {
            answered_by: Some(bench_proto::scenario::AnsweredBy::Native),
            searches: vec![SearchLine { query: "what, when?".to_owned(), hits: 2 }],
            ..question()
        };
        let of = |line: &QuestionLine| {
            let mut cells = by_name(line);
            ["answered_by", "searches"].map(|name| cells.remove(name).expect("is a column"))
        };
        let text = |text: &str| Cell::Text(Some(text.to_owned()));
        assert_eq!(of(&line), [text("native"), text(r#"[{"query":"what, when?","hits":2}]"#)]);
        assert_eq!(of(&question()), [Cell::Text(None), Cell::Text(None)]);
    }

    #[test]
    fn a_facet_has_its_column_whichever_metric_knows_it() {
        let mut summary: Summary = serde_json::from_str(include_str!("../testdata/fair.json")).expect("a summary");
        let mut other = summary.scores[0].clone();
        other.by_facet.insert("person".to_owned(), Default::default());
        summary.scores.push(other);
        assert!(MoreColumns::from_summary(&summary).facets.contains(&"person".to_owned()));
    }
}
