//! The queue backends, by the scheme of their URL.

use std::sync::Arc;

use crate::{Queue, QueueError};

/// A registered backend.
pub struct Backend {
    /// URL scheme.
    pub scheme: &'static str,
    /// One line for people.
    pub description: &'static str,
}

/// All backends: one line each.
pub const BACKENDS: &[Backend] = &[];

/// Connects to the queue behind a URL.
///
/// # Errors
/// Unknown schemes and everything that connecting can meet.
#[expect(clippy::unused_async, reason = "replaced with the first backend")]
pub async fn connect(url: &str) -> Result<Arc<dyn Queue>, QueueError> {
    Err(QueueError::Setup(format!("no queue backend for {url}")))
}
