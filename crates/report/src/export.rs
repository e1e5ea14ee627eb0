//! Questions for other tools, as CSV: one row a question, a column per metric. JSON lines are [`crate::questions`].

use std::io::Write;

use bench_proto::summary::QuestionLine;

use crate::csv::Cells;

/// Columns that every export has, before those of the metrics.
pub const COLUMNS: [&str; 22] = [
    "question_id",
    "bank_id",
    "category",
    "outcome",
    "question",
    "gold",
    "answer",
    "retrieved",
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

/// The cells of a question: [`COLUMNS`], then a score for each metric. Lists are joined by blanks.
#[must_use]
pub fn cells(line: &QuestionLine, metrics: &[String]) -> Vec<Cell> {
    let text = |text: &str| Cell::Text(Some(text.to_owned()));
    let list = |items: &mut dyn Iterator<Item = &str>| Cell::Text(Some(items.collect::<Vec<_>>().join(" ")));
    let usage = [&line.usage.recall, &line.usage.answer, &line.usage.judge];
    let mut cells = vec![
        text(&line.question_id),
        text(&line.bank_id),
        text(&line.category),
        text(line.outcome.name()),
        text(&line.question),
        Cell::Text(line.gold.clone()),
        Cell::Text(line.answer.clone()),
        list(&mut line.retrieved.iter().map(|hit| hit.id.as_str())),
        list(&mut line.evidence.iter().map(String::as_str)),
        list(&mut line.citations.iter().map(String::as_str)),
        list(&mut line.failures.iter().map(String::as_str)),
        list(&mut line.judgements.iter().map(|judgement| judgement.verdict.as_str())),
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
    cells.extend(metrics.iter().map(|metric| Cell::Number(line.scores.get(metric).copied())));
    cells
}

/// Name of a metric's column.
#[must_use]
pub fn metric_column(metric: &str) -> String {
    format!("score:{metric}")
}

/// Writes questions as CSV, one after the other.
#[derive(Debug)]
pub struct CsvQuestions<W: Write> {
    out: csv::Writer<W>,
    metrics: Vec<String>,
    cells: Cells,
}

impl<W: Write> CsvQuestions<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn new(out: W, metrics: Vec<String>, cells: Cells) -> std::io::Result<Self> {
        let mut out = csv::Writer::from_writer(out);
        let names = COLUMNS.iter().map(|name| (*name).to_owned()).chain(metrics.iter().map(|m| metric_column(m)));
        out.write_record(names.map(|name| cells.cell(name))).map_err(std::io::Error::other)?;
        Ok(Self { out, metrics, cells })
    }

    /// Writes a question; what is absent is an empty cell.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn write(&mut self, line: &QuestionLine) -> std::io::Result<()> {
        let record = cells(line, &self.metrics).into_iter().map(|cell| match cell {
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
