//! What can keep a report from being made.

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A value that the format cannot hold.
    #[error("the report cannot be written as json: {0}")]
    Json(#[from] serde_json::Error),
    /// The template of the page failed.
    #[error("the report cannot be written as html: {0}")]
    Html(#[from] askama::Error),
    /// A table could not be written as CSV.
    #[error("the report cannot be written as csv: {0}")]
    Csv(String),
    /// The report could not be written as JUnit XML.
    #[error("the report cannot be written as junit xml: {0}")]
    Junit(String),
}
