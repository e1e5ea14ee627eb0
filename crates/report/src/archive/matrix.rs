//! What is said about a matrix in an archive: one document with all of its cells, and where each run lies.

use std::collections::BTreeMap;

use bench_proto::{
    ids::RunId,
    json_bound,
    matrix::{MatrixCell, MatrixReport},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ArchiveError,
    manifest::{IndexEntry, are_figures, is_date, shown},
    place::{ArchivePlace, Found, Put},
    push::{Pushed, json},
};

/// Version of [`ArchivedMatrix`].
pub const ARCHIVED_MATRIX_VERSION: u32 = 1;
/// The folder of all documents.
const MATRICES: &str = "matrices";
/// Documents of one matrix and day: each time that it has grown there is another.
const MOST_OF_A_DAY: u32 = 1_000;
/// Figures that differ by no more are the same: means are added up in another order.
const SAME_FIGURE: f64 = 1e-6;
/// Documents of a matrix that are looked at while none can be read.
const MOST_DAMAGED: usize = 20;

/// A matrix whose runs have all ended. It holds figures, and no text of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchivedMatrix {
    /// [`ARCHIVED_MATRIX_VERSION`] of the writer.
    pub matrix_version: u32,
    /// The day on which its last run finished, UTC.
    pub date: String,
    /// Run → its folder within the archive.
    pub runs: BTreeMap<String, String>,
    /// All cells, pairs and main effects.
    pub report: MatrixReport,
}

impl ArchivedMatrix {
    /// Whether bytes are the document of the same runs by the same axes. What is archived of a run never changes, and
    /// neither do the figures of them all: another build, another name or another seed of the intervals is no reason
    /// for a second document.
    fn is_in(&self, document: &[u8]) -> bool {
        let there = json_bound::from_slice::<Self>(document, json_bound::REPORT);
        there.is_ok_and(|there| (&there.runs, &there.report.axes) == (&self.runs, &self.report.axes))
    }
}

impl ArchivedMatrix {
    /// Cells whose figure is not the mean of those of their runs, one line each. Cells of runs that are not among the entries are not
    /// looked at.
    #[must_use]
    pub fn disagreements(&self, entries: &[IndexEntry]) -> Vec<String> {
        let of_run = |run: &String| entries.iter().find(|entry| entry.run_id == *run)?.value;
        let wrong = |cell: &MatrixCell| {
            let runs: Vec<f64> = cell.runs.iter().map(of_run).collect::<Option<_>>()?;
            let (value, mean) = (cell.value?, runs.iter().sum::<f64>() / runs.len().max(1) as f64);
            let percent = |share: f64| share * 100.0;
            ((value - mean).abs() > SAME_FIGURE).then(|| {
                format!("cell {} says {:.2} %, and its runs {:.2} %", cell.number, percent(value), percent(mean))
            })
        };
        self.report.cells.iter().filter_map(wrong).collect()
    }
}

/// Looks at the documents of all matrices: the name of each with what is wrong with it.
///
/// # Errors
/// What the store meets.
pub async fn verify(place: &ArchivePlace, entries: &[IndexEntry]) -> Result<Vec<(String, Vec<String>)>, ArchiveError> {
    let Found { names, left_out } = place.look(MATRICES).await?;
    let mut all: Vec<(String, Vec<String>)> =
        left_out.into_iter().map(|(name, why)| (shown(&name), vec![why])).collect();
    for name in names {
        let id = name.split('/').nth(2).unwrap_or_default().to_owned();
        let Some((date, _)) = age(&name, &id) else { continue };
        let read = match place.read(&name).await {
            Ok(Some(document)) => read(&document, (&id, &date)),
            Ok(None) => continue,
            Err(ArchiveError::Damaged(what)) => Err(what),
            Err(away) => return Err(away),
        };
        let wrong = read.map_or_else(|why| vec![shown(&why)], |matrix| matrix.disagreements(entries));
        all.push((shown(&name), wrong));
    }
    Ok(all)
}

/// Brings a matrix into the archive; may be repeated, also by several at once. Returns the name of its object. A matrix
/// that has grown since has another name.
///
/// # Errors
/// [`ArchiveError::Damaged`] when its id or its date name no folder; what the store meets.
pub async fn push(place: &ArchivePlace, matrix: &ArchivedMatrix) -> Result<(String, Pushed), ArchiveError> {
    let (id, date) = (&matrix.report.id, &matrix.date);
    if RunId::stored(id).is_err() || !is_date(date) {
        return Err(ArchiveError::Damaged(format!("matrix {} of {} cannot be archived", shown(id), shown(date))));
    }
    let document = json(matrix)?;
    for number in 1..=MOST_OF_A_DAY {
        let further = if number == 1 { String::new() } else { format!("-{number}") };
        let name = format!("{MATRICES}/{date}/{id}/results-matrix-{date}{further}.json");
        if place.create(&name, document.clone()).await? == Put::Written {
            return Ok((name, Pushed::Archived));
        }
        if place.read(&name).await?.is_some_and(|there| matrix.is_in(&there)) {
            return Ok((name, Pushed::WasThere));
        }
    }
    Err(ArchiveError::Conflict(format!("matrix {id} was archived {MOST_OF_A_DAY} times on {date}: give it another id")))
}

/// The newest document of a matrix with exactly this id that can be read; `None` when there is none. With it, why others were left out:
/// one that is damaged hides neither an older one nor a run.
///
/// # Errors
/// What the store meets.
pub async fn find(place: &ArchivePlace, id: &str) -> Result<(Option<ArchivedMatrix>, Vec<String>), ArchiveError> {
    let mut left_out = Vec::new();
    // what names no run names no folder
    if RunId::stored(id).is_err() {
        return Ok((None, left_out));
    }
    let found = place.look(MATRICES).await?;
    // beside the documents of others it says nothing of this one
    let own = found.left_out.into_iter().filter(|(name, _)| name.split('/').nth(2) == Some(id));
    left_out.extend(own.map(|(name, why)| format!("{} is left out: {why}", shown(&name))));
    let mut documents: Vec<((String, u32), String)> =
        found.names.into_iter().filter_map(|name| Some((age(&name, id)?, name))).collect();
    documents.sort_unstable();
    for ((date, _), name) in documents.into_iter().rev().take(MOST_DAMAGED) {
        let read = match place.read(&name).await {
            Ok(Some(document)) => read(&document, (id, &date)),
            Ok(None) => continue,
            Err(ArchiveError::Damaged(what)) => Err(what),
            Err(away) => return Err(away),
        };
        match read {
            Ok(matrix) => return Ok((Some(matrix), left_out)),
            Err(why) => left_out.push(format!("{} is left out: {}", shown(&name), shown(&why))),
        }
    }
    Ok((None, left_out))
}

/// Reads the document of a matrix, and checks what becomes a path or a picture.
///
/// # Errors
/// What is wrong with it.
fn read(document: &[u8], (id, date): (&str, &str)) -> Result<ArchivedMatrix, String> {
    let read: Value = json_bound::from_slice(document, json_bound::REPORT).map_err(|error| error.to_string())?;
    match read["matrix_version"].as_u64() {
        Some(version) if version <= u64::from(ARCHIVED_MATRIX_VERSION) => {}
        version => return Err(format!("version {version:?} is of a newer program")),
    }
    let matrix: ArchivedMatrix = serde_json::from_value(read).map_err(|error| error.to_string())?;
    if (matrix.report.id.as_str(), matrix.date.as_str()) != (id, date) {
        return Err("it is the document of another matrix".to_owned());
    }
    if let Some(run) = matrix.runs.keys().find(|run| RunId::stored(run).is_err()) {
        return Err(format!("{} names no run", shown(run)));
    }
    let can_be = |cell: &MatrixCell| {
        are_figures(cell.value, cell.ci95.iter().flat_map(|interval| [interval.low, interval.high]))
    };
    if !matrix.report.cells.iter().all(can_be) {
        return Err("a score or its interval is beyond 0 and 1".to_owned());
    }
    Ok(matrix)
}

/// Day and number of the document of a matrix, by its object's name; `None` for any other object.
fn age(name: &str, id: &str) -> Option<(String, u32)> {
    let [_, date, of, file] = name.split('/').collect::<Vec<_>>()[..] else { return None };
    let number = file.strip_prefix(&format!("results-matrix-{date}"))?.strip_suffix(".json")?;
    let number = if number.is_empty() { 1 } else { number.strip_prefix('-')?.parse().ok()? };
    (of == id && is_date(date)).then(|| (date.to_owned(), number))
}
