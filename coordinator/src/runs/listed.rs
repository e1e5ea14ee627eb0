//! Runs as lists show them: in a table, as JSON, and on the page of all runs.

use std::path::{Component, Path, PathBuf};

use bench_proto::{ids::RunId, summary::labels};
use bench_report::html::IndexedRun;
use bench_store::{RunRow, Store};
use serde_json::{Value, json};

use crate::{
    app::App,
    exit::CliError,
    out::times::rfc3339,
    results,
    runs::fork::source_of,
    standing::{
        Standing,
        group::group_of_equals,
        score::{Score, score_of},
    },
};

/// A run and what is told of it.
pub(crate) struct Listed {
    pub(crate) run: RunRow,
    pub(crate) score: Score,
    pub(crate) status: &'static str,
    /// Of a fork or an import what it was made from.
    pub(crate) source: Option<String>,
}

impl Listed {
    /// A run of the store.
    ///
    /// # Errors
    /// What the store meets.
    pub(crate) async fn of_run(app: &App, store: &dyn Store, run: RunRow) -> Result<Self, CliError> {
        let score = score_of(store, &run).await?;
        let status = Standing::of_run(&run, app.store_file().as_deref()).word();
        let source = source_of(store, &run).await?;
        Ok(Self { run, score, status, source })
    }

    /// Dollars that were surely paid: those of its report, whose calls may be in another store, else those that are booked so far.
    pub(crate) fn usd(&self) -> f64 {
        self.score.usd.unwrap_or_else(|| self.run.counters.usd_paid())
    }

    /// Whether its memory system may have spent more, of which nobody knows.
    pub(crate) fn usd_incomplete(&self) -> bool {
        self.score.usd_incomplete
    }

    /// What is marked beside its result as far as that follows from what was asked, whether it has one yet or not: its report may have
    /// one more, `LABEL_OFFICIAL_JUDGE`.
    pub(crate) fn labels(&self) -> Vec<String> {
        labels(&self.run.spec)
    }

    /// Its model judges.
    pub(crate) fn judges(&self) -> Vec<String> {
        self.run.spec.judges.iter().map(|judge| judge.display()).collect()
    }

    /// The element of `list --json` that it is.
    pub(crate) fn as_json(&self) -> Value {
        let Self { run, score, status, source } = self;
        json!({
            "id": run.run_id, "name": run.name, "tags": run.tags, "user": run.user,
            "status": status, "created_ms": run.created_ms,
            "dataset": run.spec.dataset.name, "preset": run.spec.sample.preset, "questions": run.sample_size(),
            "system": run.spec.system.name, "answerer": run.spec.who_answers(), "judges": self.judges(),
            "ended": run.counters.ended(), "score": score.value, "estimator": score.estimator,
            "metric": score.metric, "ci95": score.ci95, "counted_as": score.counted_as, "verdict": score.verdict,
            "usd": self.usd(), "usd_incomplete": self.usd_incomplete(), "source": source, "labels": self.labels(),
            "repeat_of": group_of_equals(run).map(|group| &group.id),
        })
    }

    /// As the page of all runs shows it, which lies in `folder`.
    pub(crate) fn indexed(&self, app: &App, folder: &Path) -> IndexedRun {
        let Self { run, score, status, source } = self;
        IndexedRun {
            id: run.run_id.to_string(),
            name: run.name.clone(),
            dataset: run.spec.dataset.name.clone(),
            preset: run.spec.sample.preset.clone(),
            system: run.spec.system.name.clone(),
            answerer: run.spec.who_answers(),
            status: (*status).to_owned(),
            verdict: score.verdict,
            score: score.value,
            metric: score.counted(),
            ci95: score.ci95.clone(),
            judges: self.judges(),
            usd: self.usd(),
            usd_incomplete: self.usd_incomplete(),
            created: rfc3339(run.created_ms),
            source: source.clone().unwrap_or_default(),
            tags: run.tags.clone(),
            labels: self.labels(),
            page: self.page(app).map(|page| link(folder, &page)),
        }
    }

    /// Its `report.html`, where there is one.
    pub(crate) fn page(&self, app: &App) -> Option<PathBuf> {
        page_of(app, &self.run.run_id)
    }
}

/// The `report.html` of a run or of a group, where there is one.
pub(super) fn page_of(app: &App, id: &RunId) -> Option<PathBuf> {
    results::page_in(&results::run_folder(app, id, None))
}

/// The way from a folder to a file, as a page of that folder links to it.
pub(super) fn link(folder: &Path, file: &Path) -> String {
    let whole =
        |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.into());
    let (folder, file) = (whole(folder), whole(file));
    let (from, to): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (folder.components().collect(), file.components().collect());
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - shared);
    let down = to[shared..].iter().map(|part| encoded(part.as_os_str().as_encoded_bytes()));
    std::iter::once(".".to_owned()).chain(up).chain(down).collect::<Vec<_>>().join("/")
}

/// A part of a path as it stands in a link.
fn encoded(part: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    part.iter().map(|byte| if plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_from_the_page_to_the_file() {
        for (folder, file, wanted) in [
            ("/b/runs", "/b/runs/one/report.html", "./one/report.html"),
            ("/b/out", "/b/runs/one/report.html", "./../runs/one/report.html"),
            ("/b", "/b/a b/javascript:x%/é.html", "./a%20b/javascript%3Ax%25/%C3%A9.html"),
            ("/", "/x", "./x"),
        ] {
            assert_eq!(link(Path::new(folder), Path::new(file)), wanted);
        }
    }
}
