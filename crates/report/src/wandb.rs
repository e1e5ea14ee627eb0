//! A result as Weights & Biases keeps it: its settings are the config of a run, its figures the run's summary, its questions a
//! table. Who brings it there is elsewhere.

use bench_proto::summary::{QuestionLine, Summary, Verdict};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    export::{COLUMNS, Cell, MoreColumns, cells},
    mlflow::metrics,
    settings::settings_of,
};

/// Rows of a table that its pages show.
pub const MOST_ROWS: usize = 10_000;
/// Columns with words of the dataset, of models and of memory systems.
const TEXTS: [&str; 4] = ["question", "gold", "answer", "searches"];
/// Longest name of a run, in characters.
const MOST_NAME: usize = 128;
/// Longest tag, in characters.
const MOST_TAG: usize = 64;
/// Longest id of ours that stands in an id there, which has room for 128 characters.
const MOST_ID: usize = 100;
/// Characters of the digest in an id: another result of the same run is another run there.
const DIGEST: usize = 12;

/// What is logged of a result beside its questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// What it is found again by: run and digest.
    pub id: String,
    /// Name of the run as people see it.
    pub name: String,
    /// Why it may not be used; null when it may.
    pub notes: Option<String>,
    /// Tags of the run, its dataset and its memory system.
    pub tags: Vec<String>,
    /// Which run it is, and its settings.
    pub config: Value,
    /// Figures by their names, with verdict and digest; what was not computed is left out.
    pub summary: Map<String, Value>,
    /// Whether it may be used.
    pub valid: bool,
}

/// The record of a result; `tags` are those of its run.
#[must_use]
pub fn record(summary: &Summary, tags: &[String]) -> Record {
    let run = &summary.run;
    let (digest, reasons) = (&summary.result_digest, run.reasons.join("; "));
    let id = run.id.get(run.id.len().saturating_sub(MOST_ID)..).unwrap_or(&run.id);
    let mut figures: Map<String, Value> =
        metrics(summary).into_iter().map(|(name, value)| (name, json!(value))).collect();
    figures.insert("verdict".to_owned(), json!(run.verdict.name()));
    figures.insert("result_digest".to_owned(), json!(digest));
    Record {
        id: format!("{id}-{}", digest.get(..DIGEST).unwrap_or(digest)),
        name: within(run.name.as_deref().unwrap_or(&run.id), MOST_NAME),
        notes: (!reasons.is_empty()).then(|| format!("{}: {reasons}", run.verdict.name())),
        tags: all_tags(summary, tags),
        config: config(summary),
        summary: figures,
        valid: run.verdict == Verdict::Valid,
    }
}

fn all_tags(summary: &Summary, own: &[String]) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for tag in own.iter().map(String::as_str).chain([summary.dataset.name.as_str(), summary.spec.system.as_str()]) {
        let tag = within(tag, MOST_TAG);
        if !tag.is_empty() && !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

fn config(summary: &Summary) -> Value {
    let (run, dataset, spec) = (&summary.run, &summary.dataset, &summary.spec);
    let settings: Map<String, Value> = settings_of(spec).map(|(key, value)| (key.clone(), value.clone())).collect();
    json!({
        "run": run.id,
        "fingerprint": run.fingerprint,
        "code_version": run.code_version,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "labels": summary.labels,
        "dataset": dataset.name,
        "dataset_version": dataset.version,
        "dataset_sha256": dataset.sha256,
        "dataset_methodology": dataset.methodology,
        "preset": dataset.sample.preset,
        "questions": dataset.sample.n,
        "sample_signature": dataset.sample.signature,
        "metric": summary.headline.metric,
        "system": spec.system,
        "system_version": spec.system_version,
        "system_settings": settings,
        "top_k": spec.known_top_k(),
        "scenario": spec.scenario.name(),
        "answerer": spec.known_answerer().map(|_| &spec.answerer),
        "answerer_params": spec.answerer_params,
        "judges": spec.judges,
        "judge_params": spec.judge_params,
        "votes": spec.votes,
        "scorers": spec.scorers,
    })
}

/// The questions of a result as a table.
#[derive(Debug, Clone, Serialize)]
pub struct Questions {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    #[serde(skip)]
    more: MoreColumns,
    #[serde(skip)]
    with_texts: bool,
}

impl Questions {
    /// A table without rows yet. Without texts it has ids, figures and verdicts.
    #[must_use]
    pub fn new(more: MoreColumns, with_texts: bool) -> Self {
        let own = COLUMNS.iter().filter(|name| with_texts || !TEXTS.contains(name)).map(|name| (*name).to_owned());
        let columns = own.chain(more.facet_columns()).chain(more.metric_columns()).collect();
        Self { columns, rows: Vec::new(), more, with_texts }
    }

    /// Adds a question; false when there is no room for it.
    pub fn add(&mut self, line: QuestionLine) -> bool {
        if self.rows.len() == MOST_ROWS {
            return false;
        }
        let line = if self.with_texts { line } else { line.without_texts() };
        let names = COLUMNS.iter().map(Some).chain(std::iter::repeat(None));
        let shown = cells(&line, &self.more).into_iter().zip(names).filter(|(_, name)| {
            let is_text = name.is_some_and(|name| TEXTS.contains(name));
            self.with_texts || !is_text
        });
        self.rows.push(shown.map(|(cell, _)| plain(cell)).collect());
        true
    }
}

fn plain(cell: Cell) -> Value {
    match cell {
        Cell::Text(text) => text.map_or(Value::Null, Value::String),
        Cell::Number(number) => json!(number),
        Cell::Count(count) => json!(count),
    }
}

fn within(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{golden, questions::tests::question};

    #[test]
    fn figures_are_numbers_settings_keep_their_types_and_another_result_is_another_run() {
        let mut summary = golden::report();
        let tags = ["x".repeat(90), "kept".to_owned(), summary.dataset.name.clone()];
        for (key, value) in [("adapter", json!("{}")), ("system.url", json!("http://inside")), ("bm25.k1", json!(0.9))]
        {
            summary.spec.system_settings.insert(key.to_owned(), value);
        }
        let first = record(&summary, &tags);
        assert_eq!(first.summary["score"].as_f64(), summary.headline.value);
        assert_eq!(first.summary["result_digest"], summary.result_digest);
        assert_eq!((&first.config["system_settings"]["bm25.k1"], first.config["top_k"].is_u64()), (&json!(0.9), true));
        let told = serde_json::to_string(&first).expect("is written");
        assert!(!told.contains("inside") && !told.contains("adapter"), "{told}");
        assert_eq!(first.tags.iter().filter(|tag| **tag == summary.dataset.name).count(), 1, "{:?}", first.tags);
        assert!(first.tags.iter().all(|tag| tag.len() <= MOST_TAG), "{:?}", first.tags);
        summary.result_digest = "f".repeat(64);
        summary.run.id = format!("{}e", "i".repeat(199));
        let second = record(&summary, &tags);
        assert_ne!(first.id, second.id);
        assert!(second.id.len() <= 128 && second.id.ends_with("ie-ffffffffffff"), "{}", second.id);
    }

    #[test]
    fn a_table_has_texts_where_they_may_go_and_ends_where_a_page_does() {
        let mut line = question();
        let secret = "nobody may read this";
        (line.question, line.gold, line.answer) = (secret.to_owned(), Some(secret.to_owned()), Some(secret.to_owned()));
        line.error = Some(format!("system_error: {secret}"));
        line.citations = vec![secret.to_owned()];
        let more = MoreColumns::from_summary(&golden::report());
        let table = |with_texts: bool| {
            let mut table = Questions::new(more.clone(), with_texts);
            assert!(table.add(line.clone()));
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{table:?}");
            serde_json::to_value(&table).expect("is written")
        };
        let (bare, whole) = (table(false), table(true));
        assert!(whole.to_string().contains(secret) && !bare.to_string().contains(secret), "{bare}");
        let place = |of: &Value, name: &str| of["columns"].as_array()?.iter().position(|column| column == name);
        for name in TEXTS {
            assert!(place(&whole, name).is_some() && place(&bare, name).is_none(), "{name}: {bare}");
        }
        let value = |of: &Value| of["rows"][0][place(of, "outcome").expect("a column")].clone();
        assert_eq!(value(&bare), value(&whole));
        let mut full = Questions::new(more, false);
        for _ in 0..MOST_ROWS {
            assert!(full.add(line.clone()));
        }
        assert!(!full.add(line) && full.rows.len() == MOST_ROWS);
    }
}
