//! `report.json`: the summary as it is.

use bench_proto::{summary::Summary, text::json};

use crate::error::RenderError;

/// The summary as indented JSON; characters that would drive a terminal are escaped.
///
/// # Errors
/// Never for a summary made of finite numbers.
pub fn render(summary: &Summary) -> Result<String, RenderError> {
    let mut text = serde_json::to_string_pretty(summary)?;
    text.push('\n');
    Ok(json(&text).into_owned())
}
