//! The datasets, by name.

use crate::{Dataset, DatasetError, Manifest, OnProgress, OpenOptions};

/// A registered dataset.
pub struct DatasetEntry {
    /// What is known about it.
    pub manifest: &'static Manifest,
    /// Opens it.
    pub open: fn(&OpenOptions, OnProgress<'_>) -> Result<Box<dyn Dataset>, DatasetError>,
}

/// All datasets: one line each.
pub const DATASETS: &[DatasetEntry] = &[];

/// Opens a dataset by name.
///
/// # Errors
/// Unknown names and everything that opening can meet.
pub fn open(name: &str, _options: &OpenOptions, _on_progress: OnProgress<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    Err(DatasetError::Unknown { name: name.to_owned(), hint: String::new() })
}
