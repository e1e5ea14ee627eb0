//! What is said about an archived run: the manifest beside its files, and its entry in the index.

use bench_proto::{ids::RunId, json_bound, spec::RunSpec, summary::Summary, text::acts};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::ArchiveError;
use crate::FORMATS;

/// Version of both documents.
pub const MANIFEST_VERSION: u32 = 1;

/// An archived file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name when it is unpacked.
    pub name: String,
    /// Its object, within the run's folder.
    pub object: String,
    /// sha256 of the object, as it lies there.
    pub sha256: String,
    /// Bytes of the object.
    pub bytes: u64,
    /// sha256 of the file when it is unpacked.
    pub plain_sha256: String,
    /// Bytes of the file when it is unpacked.
    pub plain_bytes: u64,
}

/// An archived run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`] of the writer.
    pub manifest_version: u32,
    /// What the index says too.
    #[serde(flatten)]
    pub entry: IndexEntry,
    /// All files, by name.
    pub files: Vec<FileEntry>,
}

/// A run in the index: enough for lists, histories and badges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// Public id of the run.
    pub run_id: String,
    /// Name given by the user.
    pub name: Option<String>,
    /// Folder of the run within the archive.
    pub folder: String,
    /// RFC 3339, UTC: when the run finished.
    pub finished_at: Option<String>,
    /// Name of the dataset.
    pub dataset: String,
    /// Preset of the sample.
    pub preset: String,
    /// Name of the memory system.
    pub system: String,
    /// Version of the memory system, as it says itself.
    pub system_version: String,
    /// Who answered, `provider:model`.
    pub answerer: String,
    /// The first judge, `provider:model`; absent when only scorers graded.
    pub judge: Option<String>,
    /// Metric of the headline.
    pub metric: String,
    /// The headline, 0 to 1; absent when nothing was scored.
    pub value: Option<f64>,
    /// Lower bound of its interval.
    pub low: Option<f64>,
    /// Upper bound of its interval.
    pub high: Option<f64>,
    /// By whose counting the run is held, where that is not ours; `value` and its interval are by ours all the same. Absent too from
    /// entries of releases that did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_as: Option<String>,
    /// The figure by that counting, 0 to 1; it has no interval of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_value: Option<f64>,
    /// Questions behind it.
    pub n: u64,
    /// `VALID` or `INVALID`.
    pub verdict: String,
    /// Hash of what can change a score.
    pub fingerprint: String,
    /// The same without the memory system: runs that share it were asked and graded alike.
    pub conditions: String,
    /// Hash over ids, outcomes and scores of its questions: equal for equal results.
    pub result_digest: String,
    /// Builds that worked on it.
    pub code_version: String,
    /// Why the texts of its questions, memories and answers are not there; absent where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_texts: Option<String>,
}

impl IndexEntry {
    /// Checks what becomes a path, and a picture: whoever can write to an archive chooses it.
    ///
    /// # Errors
    /// What is no plain name, and no score.
    pub(crate) fn check(&self) -> Result<(), String> {
        RunId::stored(&self.run_id).map_err(|e| e.to_string())?;
        let are_scores = are_figures(self.value, self.low.into_iter().chain(self.high))
            && are_figures(self.counted_value, std::iter::empty());
        if !are_scores {
            return Err("its score or its interval is beyond 0 and 1".to_owned());
        }
        if let Some(at) = self.finished_at.as_deref().filter(|at| !at.get(..10).is_some_and(is_date)) {
            return Err(format!("it finished at '{}', which is no time", shown(at)));
        }
        let parts: Vec<&str> = self.folder.split('/').collect();
        let [runs, date, dataset, methodology, run] = parts.as_slice() else {
            return Err(format!("'{}' is no folder of an archived run", shown(&self.folder)));
        };
        let dated = *date == "undated" || is_date(date);
        let fits = (*runs, *run, *dataset) == ("runs", self.run_id.as_str(), self.dataset.as_str());
        if fits && dated && is_methodology(methodology) && is_plain(dataset) {
            return Ok(());
        }
        Err(format!("'{}' is no folder of run {}", shown(&self.folder), self.run_id))
    }

    /// What the index says of a run.
    #[must_use]
    pub fn of_run(spec: &RunSpec, summary: &Summary) -> Self {
        let date = summary.run.finished_at.as_deref().or(summary.run.started_at.as_deref());
        let date = date.and_then(|at| at.get(..10)).unwrap_or("undated");
        let (dataset, methodology) = (&summary.dataset.name, spec.dataset.profile.methodology);
        let folder = format!("runs/{date}/{dataset}/v{methodology}/{}", summary.run.id);
        Self::of_report(summary, folder, conditions(spec))
    }

    /// The same by the report alone, with what it does not say: folder and conditions.
    pub(super) fn of_report(summary: &Summary, folder: String, conditions: String) -> Self {
        let (headline, counted) = (&summary.headline, summary.counting.as_ref());
        Self {
            run_id: summary.run.id.clone(),
            name: summary.run.name.clone(),
            folder,
            finished_at: summary.run.finished_at.clone(),
            dataset: summary.dataset.name.clone(),
            preset: summary.dataset.sample.preset.clone(),
            system: summary.spec.system.clone(),
            system_version: summary.spec.system_version.clone(),
            answerer: match summary.spec.scenario.answers() {
                true => summary.spec.answerer.clone(),
                false => summary.spec.scenario.name().to_owned(),
            },
            judge: summary.spec.judge.clone(),
            metric: headline.metric.clone(),
            value: headline.value,
            low: headline.ci95.as_ref().map(|interval| interval.low),
            high: headline.ci95.as_ref().map(|interval| interval.high),
            counted_as: counted.map(|counted| counted.counting.name.clone()),
            counted_value: counted.and_then(|counted| counted.value),
            n: headline.n,
            verdict: summary.run.verdict.name().to_owned(),
            fingerprint: summary.run.fingerprint.clone(),
            conditions,
            result_digest: summary.result_digest.clone(),
            code_version: summary.run.code_version.clone(),
            without_texts: None,
        }
    }

    /// The figure that lists, histories and badges show, with the ends of its interval: that by somebody else's counting, where the run
    /// is held to one.
    #[must_use]
    pub fn figure(&self) -> (Option<f64>, Option<(f64, f64)>) {
        match self.counted_as {
            Some(_) => (self.counted_value, None),
            None => (self.value, self.low.zip(self.high)),
        }
    }

    /// Name of its object in the index.
    #[must_use]
    pub fn object(&self) -> String {
        let date = self.finished_at.as_deref().and_then(|at| at.get(..10)).unwrap_or("undated");
        format!("index/{date}/{}.json", self.run_id)
    }

    /// The badge of a run, as shields.io reads it.
    #[must_use]
    pub fn badge(&self) -> serde_json::Value {
        let message = match self.figure() {
            _ if self.verdict != "VALID" => "invalid".to_owned(),
            (Some(value), Some((low, high))) => {
                format!("{:.1} % ({:.1} to {:.1})", value * 100.0, low * 100.0, high * 100.0)
            }
            (Some(value), None) => format!("{:.1} %", value * 100.0),
            (None, _) => "no score".to_owned(),
        };
        let counted = self.counted_as.as_ref().map(|name| format!(" counted as {name}")).unwrap_or_default();
        let colour = if self.verdict == "VALID" { "blue" } else { "lightgrey" };
        serde_json::json!({
            "schemaVersion": 1,
            "label": format!("{} {} {}{counted}", self.dataset, self.preset, self.metric),
            "message": message,
            "color": colour,
        })
    }
}

/// Hash of everything that can change a score but the memory system.
fn conditions(spec: &RunSpec) -> String {
    let parts = spec.fingerprint_parts();
    let lines = parts.iter().filter(|(key, _)| !key.starts_with("system."));
    sha256(lines.map(|(key, value)| format!("{key}={value}\n")).collect::<String>().as_bytes())
}

/// Hexadecimal sha256.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Whether a part of a path is the version of a dataset's methodology: `v1`.
fn is_methodology(part: &str) -> bool {
    let version = part.strip_prefix('v').filter(|version| !version.starts_with(['0', '+']));
    version.is_some_and(|version| version.parse::<u32>().is_ok())
}

/// Whether a part of a path is a day: `2026-11-20`.
pub(crate) fn is_date(part: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    part.len() == 10 && part.bytes().enumerate().all(fits)
}

/// Whether a name names a file or folder of its own, and nothing above or below it.
pub(crate) fn is_plain(name: &str) -> bool {
    let allowed = |c: char| !acts(c) && !matches!(c, '/' | '\\' | ':');
    !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && name.chars().all(allowed)
}

/// Whether numbers can be a score, where there is one, and the ends of its interval. A mean of weighted scores is rounded, and a t
/// interval may reach beyond what scores can be.
#[must_use]
pub fn are_figures(score: Option<f64>, mut ends: impl Iterator<Item = f64>) -> bool {
    score.is_none_or(|score| (-1e-9..=1.0 + 1e-9).contains(&score)) && ends.all(|end| (-1.0..=2.0).contains(&end))
}

/// Whether a run in an archive has a file of this name: the forms that people read, and what it is rebuilt from.
pub(crate) fn is_of_run(name: &str) -> bool {
    ["run.json", "banks.jsonl", "results.jsonl", "questions.jsonl"].contains(&name)
        || FORMATS.iter().any(|format| format.file_name == name)
}

/// A text from outside, as an error message can hold it.
pub(crate) fn shown(text: &str) -> String {
    text.chars().filter(|c| !acts(*c)).take(120).collect()
}

/// Reads a small document of the archive. What it has beside its members is kept while it is read, so its values are counted before.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, ArchiveError> {
    json_bound::from_slice(bytes, json_bound::SMALL)
        .map_err(|e| ArchiveError::Damaged(format!("{name} cannot be read: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_many_values_are_refused_before_they_are_read() {
        let unknown = format!("{{\"x\": [{}0]}}", "{\"\":0},".repeat(10_000));
        for refused in [
            parse::<Manifest>("a", unknown.as_bytes()).map(drop),
            parse::<IndexEntry>("a", unknown.as_bytes()).map(drop),
        ] {
            let why = refused.expect_err("is refused").to_string();
            assert!(why.contains("a cannot be read: it has 30004 values, at most 10000 are read"), "{why}");
        }
    }

    #[test]
    fn a_day_is_digits_with_dashes_between_them() {
        assert!(is_date("2026-11-20"));
        for other in
            ["", "undated", "2026-11-2", "2026-11-200", "----------", "20261120--", "2026/11/20", "../../../.."]
        {
            assert!(!is_date(other), "{other}");
        }
    }
}
