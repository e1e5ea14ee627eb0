//! What is read of files that others made, without a store: for those who look at it from outside.

use crate::{
    cli::Reduce,
    import::{fields, forms, grades::Reading, ours::Given, read, records::Search},
};

/// Most bytes that are read, unpacked.
const MOST_BYTES: u64 = 1 << 20;

/// Reads results made elsewhere, as `import` does; `fields` are its `--field`s. The number of records that were understood.
///
/// # Errors
/// What is wrong, with its place.
pub fn import(name: &str, bytes: &[u8], fields: &[&str]) -> Result<usize, String> {
    let given = Given::read(fields.iter().copied())?;
    let search = Search { is_question: &|name| name.starts_with("conv-"), given: &given };
    let records = read::of_content(name, bytes, search, MOST_BYTES).map_err(|e| e.to_string())?;
    let form = forms::form_of(&records, &given);
    let reading = Reading { given, scale: 1.0, reduce: Reduce::Mean, metric: None };
    let lines = records.iter().map(|record| fields::line(record, form, &reading)).collect::<Result<Vec<_>, _>>();
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
