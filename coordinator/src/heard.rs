//! What is read of files that others made, without a store: for those who look at it from outside.

use crate::{
    cli::Reduce,
    import::{fields, grades::Reading, read},
};

/// Most bytes that are read, unpacked.
const MOST_BYTES: u64 = 1 << 20;

/// Reads results made elsewhere, as `import` does; the number of records that were understood.
///
/// # Errors
/// What is wrong, with its place.
pub fn import(name: &str, bytes: &[u8]) -> Result<usize, String> {
    let is_question = |name: &str| name.starts_with("conv-");
    let records = read::of_content(name, bytes, &is_question, MOST_BYTES).map_err(|e| e.to_string())?;
    let reading = Reading { score_field: None, scale: 1.0, reduce: Reduce::Mean, metric: None };
    let lines = records.iter().map(|record| fields::line(record, &reading)).collect::<Result<Vec<_>, _>>();
    lines.map(|lines| lines.len()).map_err(|e| e.to_string())
}

/// Reads a file that an archived run is rebuilt from; the number of its documents.
///
/// # Errors
/// What is wrong with it.
#[cfg(feature = "archive")]
pub fn archived(name: &str, bytes: &[u8]) -> Result<usize, String> {
    crate::archive::restore::read(name, bytes).map_err(|e| e.message)
}
