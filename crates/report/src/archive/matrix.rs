//! What is said about a matrix in an archive: one document with all of its cells, and where each run lies.

use std::collections::BTreeMap;

use bench_proto::{ids::RunId, matrix::MatrixReport};
use serde::{Deserialize, Serialize};

use super::{
    ArchiveError,
    manifest::shown,
    place::{ArchivePlace, Put},
    push::{Pushed, json},
};

/// Version of [`ArchivedMatrix`].
pub const ARCHIVED_MATRIX_VERSION: u32 = 1;
/// Documents of one matrix and day: each time that it has grown there is another.
const MOST_OF_A_DAY: u32 = 1_000;

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

/// Brings a matrix into the archive; may be repeated. Returns the name of its object. A matrix that has grown since has another name.
///
/// # Errors
/// [`ArchiveError::Damaged`] when its id or its date name no folder; what the store meets.
pub async fn push(place: &ArchivePlace, matrix: &ArchivedMatrix) -> Result<(String, Pushed), ArchiveError> {
    let (id, date) = (&matrix.report.id, &matrix.date);
    let is_dated = date.len() == 10 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if RunId::parse(id).is_err() || !is_dated {
        return Err(ArchiveError::Damaged(format!("matrix {} of {} cannot be archived", shown(id), shown(date))));
    }
    let document = json(matrix)?;
    for number in 1..=MOST_OF_A_DAY {
        let further = if number == 1 { String::new() } else { format!("-{number}") };
        let name = format!("matrices/{date}/{id}/results-matrix-{date}{further}.json");
        if place.create(&name, document.clone()).await? == Put::Written {
            return Ok((name, Pushed::Archived));
        }
        if place.read(&name).await?.is_some_and(|there| there == document) {
            return Ok((name, Pushed::WasThere));
        }
    }
    Err(ArchiveError::Conflict(format!("matrix {id} was archived {MOST_OF_A_DAY} times on {date}: give it another id")))
}
