//! The store backends, by the scheme of their URL.

use std::sync::Arc;

use crate::{Store, StoreError};

/// A registered backend.
pub struct Backend {
    /// URL scheme.
    pub scheme: &'static str,
    /// One line for people.
    pub description: &'static str,
}

/// All backends: one line each.
pub const BACKENDS: &[Backend] = &[];

/// Opens the store behind a URL and brings its schema up to date when it is a local file.
///
/// # Errors
/// Unknown schemes and everything that opening can meet.
#[expect(clippy::unused_async, reason = "replaced with the first backend")]
pub async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    Err(StoreError::Open(format!("no store backend for {url}")))
}
